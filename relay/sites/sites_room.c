/* The room of accounts that have several sites: their configuration, and the links to other
 * sites. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "sites/sites.h"

enum { ERA_BLOCKS = 64 };

/* ---- the room ---- */

static int add_account(struct service_sites_room *k, struct site_host *h, struct site_room *sites,
                       struct err *err)
{
    const struct sites_account *c = h->config;
    struct site_config config = {.hash = election_hash,
                                 .names = c->names,
                                 .members = (uint32_t)c->count,
                                 .self = h->self,
                                 .sticky = c->sticky,
                                 .silence_is_down = c->silence_is_down,
                                 .range_blocks = c->range_blocks,
                                 .approvals = c->approvals,
                                 .era_blocks = h->era_blocks};
    memcpy(config.account, h->account->id, h->account->id_len);
    h->site = site_room_add(sites, &config, h, err);
    if (!h->site)
        return err->code;
    h->tables = site_tables_new(&(struct site_tables_config){.store = k->store,
                                                             .account = h->site,
                                                             .self = h->self,
                                                             .members = config.members,
                                                             .row = h->account->store_account,
                                                             .describe = sites_describe,
                                                             .failed = sites_failed,
                                                             .polled = sites_polled,
                                                             .loaded = sites_chain_loaded,
                                                             .arg = h});
    return 0;
}

static int try_links(struct entry *e, struct err *err)
{
    struct service_sites_room *k = CONTAINER_OF(e, struct service_sites_room, entry);
    const struct sites_config *c = k->config;
    struct site_links_peer *peers = xcalloc(c->peer_count + 1, sizeof(*peers));
    for (size_t i = 0; i < c->peer_count; i++)
        peers[i] = (struct site_links_peer){.name = c->peers[i].name,
                                            .targets = c->peers[i].targets,
                                            .target_count = c->peers[i].target_count};
    const struct site_links_config links = {.self = c->self,
                                            .listen = c->listen,
                                            .address = c->address,
                                            .cert_file = c->cert_file,
                                            .key_file = c->key_file,
                                            .ca_file = c->ca_file,
                                            .peers = peers,
                                            .peer_count = c->peer_count};
    k->sites = site_room_open(e->service->loop, &links, &sites_host_ops, k, err);
    free(peers);
    if (!k->sites)
        return err->code;
    for (size_t i = 0; i < k->host_count; i++)
        if (add_account(k, &k->hosts[i], k->sites, err))
            UNREACHABLE(); /* sites_config_check has looked */
    log_info("site.listening", "site=%s address=%s", c->self,
             site_links_address(site_room_links(k->sites)));
    return 0;
}

static void sites_run(struct room *r)
{
    struct service_sites_room *k = CONTAINER_OF(r, struct service_sites_room, room);
    const struct service_config *c = &r->service->config;
    k->store = store_sites_new(r->service->loop, c->work_dsn ? c->work_dsn : c->control_dsn,
                               r->service->holder);
    k->entry = (struct entry){.name = "sites", .service = r->service, .open = try_links};
    entry_begin(&k->entry);
}

static void on_store_closed(void *arg)
{
    struct service_sites_room *k = arg;
    k->store = NULL;
    entry_end(&k->entry);
    k->sites = site_room_close(k->sites);
    for (size_t i = 0; i < k->host_count; i++) {
        struct site_host *h = &k->hosts[i];
        h->again = loop_timer_close(h->again);
        h->tables = site_tables_free(h->tables);
    }
    room_ended(&k->room);
}

static void sites_close(struct room *r)
{
    struct service_sites_room *k = CONTAINER_OF(r, struct service_sites_room, room);
    for (size_t i = 0; i < k->host_count; i++)
        sites_leave(&k->hosts[i]);
    if (k->store)
        store_sites_close(k->store, on_store_closed, k);
    else
        on_store_closed(k);
}

static void sites_free(struct room *r)
{
    struct service_sites_room *k = CONTAINER_OF(r, struct service_sites_room, room);
    INVARIANT(!k->sites && !k->store);
    for (size_t i = 0; i < k->host_count; i++) {
        struct site_host *h = &k->hosts[i];
        loop_timer_close(h->again);
        sites_best_free(h);
        free(h->anchors);
        free(h->members);
        free(h->setup_next);
    }
    free(k->hosts);
    r->service->sites = NULL;
    free(k);
}

static const struct room_ops ops = {
    .name = "sites", .run = sites_run, .close = sites_close, .free = sites_free};

static const char *address_of(const struct sites_config *c, const char *name)
{
    for (size_t i = 0; i < c->peer_count; i++)
        if (!strcmp(c->peers[i].name, name))
            return c->peers[i].targets[0];
    return "";
}

static void init_host(struct service_sites_room *k, struct site_host *h, struct account *a,
                      const struct sites_account *c)
{
    h->room = k;
    h->account = a;
    h->config = c;
    h->era_blocks = c->era_blocks ? c->era_blocks : ERA_BLOCKS;
    h->members = xcalloc(c->count, sizeof(*h->members));
    h->setup_next = xcalloc(c->count, sizeof(*h->setup_next));
    for (size_t i = 0; i < c->count; i++) {
        if (!strcmp(c->names[i], k->config->self))
            h->self = (uint32_t)i;
        h->members[i] = (struct store_site_member){.name = c->names[i],
                                                   .address = address_of(k->config, c->names[i]),
                                                   .key = a->id,
                                                   .key_len = a->id_len};
    }
    h->anchor_count = h->era_blocks + ANCHORS_MORE;
    h->anchors = xcalloc(h->anchor_count, sizeof(*h->anchors));
    h->last = &h->blocks;
    h->again = loop_timer_new(k->room.service->loop, sites_chain_again, h);
    a->site = h;
}

static int check_accounts(struct service *s, const struct sites_config *c, struct err *err)
{
    for (size_t i = 0; i < c->account_count; i++) {
        const struct account *a = service_account_by_name(s, c->accounts[i].account);
        if (!a)
            return err_set(err, ERR_CONFIG, "sites: account %s is not among this relay's accounts",
                           c->accounts[i].account);
        if (!a->key)
            return err_set(err, ERR_CONFIG,
                           "sites: this relay has no key of account %s: what is signed elsewhere "
                           "cannot be sent through several sites",
                           a->alias);
    }
    return 0;
}

struct room *service_sites(struct service *s, struct err *err)
{
    const struct sites_config *c = s->config.sites;
    if (!c)
        return NULL;
    if (s->standalone) {
        err_set(err, ERR_CONFIG, "sites need a database: give database.url");
        return NULL;
    }
    if (sites_config_check(c, err) || check_accounts(s, c, err))
        return NULL;
    struct service_sites_room *k = xcalloc(1, sizeof(*k));
    k->room = (struct room){.ops = &ops, .service = s};
    k->config = c;
    s->sites = k;
    k->host_count = c->account_count;
    k->hosts = xcalloc(k->host_count + 1, sizeof(*k->hosts));
    for (size_t i = 0; i < k->host_count; i++)
        init_host(k, &k->hosts[i], service_account_by_name(s, c->accounts[i].account),
                  &c->accounts[i]);
    return &k->room;
}

/* ---- what the service asks ---- */

int service_sites_reload(struct service *s, struct err *err)
{
    struct site_room *sites = s->sites ? s->sites->sites : NULL;
    return sites ? site_links_reload(site_room_links(sites), err) : 0;
}

static const char *alias_of(const struct site_account *a)
{
    const struct site_host *h = site_account_ctx(a);
    return h->account->alias;
}

void service_sites_metrics(const struct service *s, struct buf *out)
{
    if (s->sites && s->sites->sites)
        site_room_metrics(s->sites->sites, alias_of, out);
}
