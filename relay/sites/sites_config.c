/* Values that can never be right, before anything is opened. */
#include "relay/sites_config.h"

#include <string.h>

#include "site/core/site.h"

enum { ERA_MIN = 16, ERA_MAX = 4096, RANGE_MAX = 1000000 };

static bool is_peer(const struct sites_config *c, const char *name)
{
    for (size_t i = 0; i < c->peer_count; i++)
        if (!strcmp(c->peers[i].name, name))
            return true;
    return false;
}

static int check_names(const struct sites_config *c, const struct sites_account *a, struct err *err)
{
    bool self = false;
    for (size_t i = 0; i < a->count; i++) {
        bool is_self = !strcmp(a->names[i], c->self);
        self = self || is_self;
        if (!is_self && !is_peer(c, a->names[i]))
            return err_set(err, ERR_CONFIG,
                           "sites: account %s: site %s is not in the list of sites", a->account,
                           a->names[i]);
        if (i && strcmp(a->names[i - 1], a->names[i]) >= 0)
            return err_set(err, ERR_CONFIG,
                           "sites: account %s: site %s: the names are in order, each once",
                           a->account, a->names[i]);
    }
    if (!self || a->count > SITE_MEMBERS_MAX)
        return err_set(err, ERR_CONFIG,
                       "sites: account %s: it has 1 to %d sites, and this one, %s, is among them",
                       a->account, SITE_MEMBERS_MAX, c->self);
    return 0;
}

static int check_account(const struct sites_config *c, const struct sites_account *a,
                         struct err *err)
{
    if (check_names(c, a, err))
        return err->code;
    if (a->approvals >= a->count)
        return err_set(err, ERR_CONFIG,
                       "sites: account %s: approvals is %u, and there are %zu other sites",
                       a->account, a->approvals, a->count - 1);
    if (a->era_blocks && (a->era_blocks < ERA_MIN || a->era_blocks > ERA_MAX))
        return err_set(err, ERR_CONFIG, "sites: account %s: era_blocks is %u; it must be %d to %d",
                       a->account, a->era_blocks, ERA_MIN, ERA_MAX);
    if (a->range_blocks > RANGE_MAX)
        return err_set(err, ERR_CONFIG, "sites: account %s: range_blocks is %u; it must be 1 to %d",
                       a->account, a->range_blocks, RANGE_MAX);
    return 0;
}

static int check_peer(const struct sites_config *c, size_t at, struct err *err)
{
    const struct sites_peer *p = &c->peers[at];
    if (!strcmp(p->name, c->self))
        return err_set(err, ERR_CONFIG, "sites: site %s is this site itself", c->self);
    if (!p->target_count)
        return err_set(err, ERR_CONFIG, "sites: site %s has no address", p->name);
    for (size_t i = 0; i < at; i++)
        if (!strcmp(c->peers[i].name, p->name))
            return err_set(err, ERR_CONFIG, "sites: two sites have the name %s", p->name);
    return 0;
}

int sites_config_check(const struct sites_config *c, struct err *err)
{
    if (!c->self || !c->listen)
        return err_set(err, ERR_CONFIG,
                       "sites: give this site's name, and where it takes messages of the others");
    if (!c->cert_file || !c->key_file || !c->ca_file)
        return err_set(err, ERR_CONFIG,
                       "sites: cert_file, key_file and ca_file are all needed: the name of a site "
                       "is believed from its certificate");
    for (size_t i = 0; i < c->peer_count; i++)
        if (check_peer(c, i, err))
            return err->code;
    for (size_t i = 0; i < c->account_count; i++) {
        if (check_account(c, &c->accounts[i], err))
            return err->code;
        for (size_t k = 0; k < i; k++)
            if (!strcmp(c->accounts[k].account, c->accounts[i].account))
                return err_set(err, ERR_CONFIG, "sites: account %s is there twice",
                               c->accounts[i].account);
    }
    return 0;
}
