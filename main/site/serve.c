#include "site/serve.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "chain/keys/keys.h"
#include "site/reach.h"

enum { NAME_MAX_LENGTH = 64 };

static bool has_sites(const struct config_file *f)
{
    for (uint32_t i = 0; i < f->accounts_count; i++)
        if (f->accounts[i].sites_count)
            return true;
    return false;
}

/* As leader_site_setup (schema/functions) takes it. */
static bool is_name(const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    size_t len = strlen(text), first = strspn(text, letters), i = 0;
    while (text[i] && (strchr(letters, text[i]) || strchr("._-", text[i])))
        i++;
    return first && i == len && len <= NAME_MAX_LENGTH;
}

static int check_name(const char *name, struct err *err)
{
    if (is_name(name))
        return 0;
    return err_set(err, ERR_CONFIG,
                   "sites: '%.80s' is no name of a site: give 1 to %d letters, digits, '.', '_' "
                   "and '-', such as frankfurt",
                   name, NAME_MAX_LENGTH);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All sites have the same order. */
static const char *const *in_order(const struct config_account *a)
{
    char **names = xcalloc(a->sites_count, sizeof(*names));
    memcpy(names, a->sites, a->sites_count * sizeof(*names));
    qsort(names, a->sites_count, sizeof(*names), by_name);
    return (const char *const *)names;
}

static void read_file(struct site_serve *s, const struct config_file *f)
{
    const struct config_sites *c = &f->sites;
    s->peers = xcalloc(c->peers_count + 1, sizeof(*s->peers));
    s->accounts = xcalloc(f->accounts_count + 1, sizeof(*s->accounts));
    s->config = (struct sites_config){.self = c->name,
                                      .listen = c->listen,
                                      .address = c->address,
                                      .cert_file = c->cert_file,
                                      .key_file = c->key_file,
                                      .ca_file = c->ca_file,
                                      .peers = s->peers,
                                      .peer_count = c->peers_count,
                                      .accounts = s->accounts};
    for (uint32_t i = 0; i < c->peers_count; i++)
        s->peers[i] = (struct sites_peer){.name = c->peers[i].name,
                                          .targets = (const char *const *)c->peers[i].targets,
                                          .target_count = c->peers[i].targets_count};
    for (uint32_t i = 0; i < f->accounts_count; i++) {
        const struct config_account *a = &f->accounts[i];
        if (!a->sites_count)
            continue;
        s->accounts[s->config.account_count++] =
            (struct sites_account){.account = a->alias,
                                   .names = in_order(a),
                                   .count = a->sites_count,
                                   .sticky = a->sites_policy && !strcmp(a->sites_policy, "sticky"),
                                   .silence_is_down = c->silence_is_down,
                                   .range_blocks = c->range_blocks,
                                   .approvals = c->approvals,
                                   .era_blocks = c->era_blocks};
    }
}

static int check_file(const struct config_file *f, struct err *err)
{
    const struct config_sites *c = &f->sites;
    if (!f->database.url)
        return err_set(err, ERR_CONFIG,
                       "an account has sites, and there is no database: sites need one "
                       "(database.url)");
    if (!c->name || !c->listen)
        return err_set(err, ERR_CONFIG,
                       "an account has sites: give sites.name, the name of this site, and "
                       "sites.listen, where it takes messages of the others");
    if (check_name(c->name, err))
        return err->code;
    for (uint32_t i = 0; i < c->peers_count; i++)
        if (check_name(c->peers[i].name, err))
            return err->code;
    return 0;
}

/* *s: site_serve_done in any case. */
static int load(struct site_serve *s, const struct config_file *f, struct err *err)
{
    if (check_file(f, err))
        return err->code;
    read_file(s, f);
    return sites_config_check(&s->config, err);
}

/* A section that nothing reads would be a mistake that nobody sees. */
static int check_unused(const struct config_file *f, struct err *err)
{
    if (!f->sites.name && !f->sites.listen && !f->sites.peers_count)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "sites are configured, and no account has them: name them in an account's "
                   "sites, or remove the section");
}

int site_serve_fill(struct site_serve *s, const struct config_file *f, struct service_config *ret,
                    struct err *err)
{
    *s = (struct site_serve){0};
    if (!has_sites(f))
        return check_unused(f, err);
    if (load(s, f, err))
        return err->code;
    ret->sites = &s->config;
    return 0;
}

void site_serve_done(struct site_serve *s)
{
    for (size_t i = 0; i < s->config.account_count; i++)
        free((void *)(uintptr_t)s->accounts[i].names);
    free(s->peers);
    free(s->accounts);
    *s = (struct site_serve){0};
}

/* As the relay writes it (relay/sites/sites_room.c). */
static void id_of(const struct service_config *c, const char *alias,
                  uint8_t ret[SELECTOR_ACCOUNT_BYTES])
{
    for (size_t i = 0; i < c->account_count; i++) {
        const struct service_account *a = &c->accounts[i];
        size_t len = a->id_len;
        const uint8_t *id = a->key ? keypair_account_id(a->key, &len) : a->id;
        if (!strcmp(a->alias, alias))
            memcpy(ret, id, len);
    }
}

static int reach(const struct sites_config *sites, const struct service_config *c, struct buf *out,
                 void (*caution)(void *arg, const char *text), void *arg, struct err *err)
{
    uint8_t(*ids)[SELECTOR_ACCOUNT_BYTES] = xcalloc(sites->account_count + 1, sizeof(*ids));
    for (size_t i = 0; i < sites->account_count; i++)
        id_of(c, sites->accounts[i].account, ids[i]);
    int rc =
        site_reach(sites, (const uint8_t(*)[SELECTOR_ACCOUNT_BYTES])ids, out, caution, arg, err);
    free(ids);
    return rc;
}

int site_serve_check(const struct config_file *f, const struct service_config *c, struct buf *out,
                     void (*caution)(void *arg, const char *text), void *arg, struct err *err)
{
    struct site_serve s = {0};
    if (!has_sites(f))
        return check_unused(f, err);
    if (load(&s, f, err) == 0)
        reach(&s.config, c, out, caution, arg, err);
    site_serve_done(&s);
    return err->code;
}

void site_serve_reload(const struct site_serve *s, struct service *service)
{
    struct err err = {0};
    if (s->config.self && service_sites_reload(service, &err))
        log_error("site.reload_failed", "text=\"%s\" kept=\"the certificates that were in force\"",
                  err.text);
}
