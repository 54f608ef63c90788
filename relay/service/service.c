/* Life of the service: parts come up in any order, accounts are registered once the store is up
 * and the chain's genesis is known, leadership begins; at the end everything is released and
 * closed in order. */
#include "relay/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "account/tally.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "service/service_internal.h"

/* ---- accounts ---- */

struct account *service_account_by_row(struct service *s, int32_t store_account)
{
    for (size_t i = 0; i < s->account_count; i++)
        if (s->accounts[i].store_account == store_account)
            return &s->accounts[i];
    return NULL;
}

struct account *service_account_by_name(struct service *s, const char *name)
{
    uint8_t id[ACCOUNT_ID_MAX];
    size_t len;
    struct account *a = NULL;
    for (size_t i = 0; i < s->account_count; i++)
        if (!strcmp(s->accounts[i].alias, name))
            return &s->accounts[i];
    if (account_id_parse(name, id, &len))
        HASH_FIND(hh, s->by_id, id, (unsigned)len, a);
    return a;
}

void service_fail(struct service *s, const struct err *err)
{
    if (s->config.on_exit)
        s->config.on_exit(s->config.arg, err);
}

/* ---- registration ---- */

struct registering {
    struct store_enroll req;
    struct account *account;
};

static void start_leading(struct service *s)
{
    if (s->config.on_registered) {
        s->config.on_registered(s->config.arg);
        return;
    }
    s->phase = SERVICE_RUNNING;
    s->registered = true;
    log_info("relay.running", "relay=%s holder=%s accounts=%zu role=%s", s->name, s->holder,
             s->account_count, s->standalone ? "standalone" : "follower");
    for (size_t i = 0; i < s->room_count; i++)
        room_run(s->rooms[i]);
}

/* The accounts are registered for another chain than the endpoint's: one of its chain may follow in
 * the list. */
static bool pass_over(struct service *s, const struct err *why)
{
    if (!node_refuse_chain(s->node, s->genesis, why))
        return false;
    if (!s->other_chain)
        log_error("chain.other", "text=\"%s; %s\"", why->text,
                  s->config.endpoint_count > 1 ? "the next endpoint is tried"
                                               : "it is tried again");
    s->other_chain = true;
    for (size_t i = 0; i < s->account_count; i++)
        s->accounts[i].store_account = 0;
    return true;
}

static void registered(struct store_req *req)
{
    struct registering *r = CONTAINER_OF(req, struct registering, req.req);
    struct account *a = r->account;
    struct service *s = a->service;
    struct err err = req->err;
    s->registering--;
    if (!err.code)
        a->store_account = r->req.account;
    store_req_done(req);
    free(r);
    service_op_done(s);
    bool passed_over = err.code == ERR_GENESIS && pass_over(s, &err);
    if (err.code && !passed_over && err_class(err.code) != ERR_CLASS_RETRY &&
        err_class(err.code) != ERR_CLASS_CANCELED)
        service_fail(s, &err);
    if (s->registering || s->phase != SERVICE_STARTING)
        return;
    for (size_t i = 0; i < s->account_count; i++) {
        if (s->accounts[i].store_account)
            continue;
        if (s->other_chain)
            service_register(s); /* another endpoint may be up already */
        return;                  /* else tried again when the store comes back */
    }
    start_leading(s);
}

/* The key is the right one, but funds that are sent to the address in the file go to another
 * chain. */
static void warn_of_prefix(const struct account *a, uint16_t prefix)
{
    if (a->has_prefix && a->prefix != prefix)
        log_warn(
            "config.warning",
            "about=account text=\"account %s: its address has the SS58 prefix %u, the chain's is "
            "%u: write %s\"",
            a->alias, a->prefix, prefix, a->address);
}

void service_register(struct service *s)
{
    const struct node_info *info = node_info(s->node);
    if (s->phase != SERVICE_STARTING || !s->store_up || !info || s->registering)
        return;
    memcpy(s->genesis, info->genesis, sizeof(s->genesis));
    s->other_chain = false;
    for (size_t i = 0; i < s->account_count; i++)
        s->aliases[i] = s->accounts[i].alias;
    for (size_t i = 0; i < s->account_count; i++) {
        struct account *a = &s->accounts[i];
        struct registering *r = xcalloc(1, sizeof(*r));
        if (a->id_len == 32)
            ss58_encode(a->id, info->ss58_prefix, a->address);
        else
            snprintf(a->address, sizeof(a->address), "%s", hex_log(a->id, a->id_len));
        warn_of_prefix(a, info->ss58_prefix);
        if (!a->has_lock_key)
            a->lock_key = election_lock_key(info->genesis, a->id, a->id_len);
        r->account = a;
        r->req.alias = a->alias;
        r->req.scheme = key_scheme_name(a->scheme);
        r->req.address = a->address;
        r->req.account_id = (struct store_bytes){a->id, a->id_len};
        r->req.genesis = (struct store_bytes){s->genesis, sizeof(s->genesis)};
        r->req.lock_key = a->lock_key;
        r->req.watch_only = !a->key;
        r->req.era_longest = manager_era_longest(s->config.manager.era_period);
        r->req.era_immortal = !s->config.manager.era_period;
        r->req.beside = s->aliases;
        r->req.beside_count = s->account_count;
        s->registering++;
        s->ops++;
        store_enroll_start(s->store, &r->req, registered);
    }
}

/* ---- construction ---- */

/* <network>-<relay>-<hostname>-<pid>-<uuid>. The relay's name stands where the source has the
 * account: one statement renews all accounts of a relay, and the account is the row that the
 * holder is stored in. */
static char *identity(struct loop *l, const char *name)
{
    char host[256] = "localhost";
    gethostname(host, sizeof(host) - 1);
    return xasprintf("txrelay-%s-%s-%ld-%08llx%08llx", name, host, (long)getpid(),
                     (unsigned long long)(loop_seed(l) & 0xffffffff),
                     (unsigned long long)(loop_seed(l) & 0xffffffff));
}

/* In this order they are made and opened; drained together; closed in the reverse order. The
 * first ones may fail to be made. The questions of the pool and of sites end with the chain, so
 * they come first; the election works on the store. */
static room_make *const rooms[] = {
    service_control,  service_metrics,    service_pool,      service_sites,  service_chain,
    service_database, service_standalone, service_election,  service_listen, service_retention,
    service_poll,     service_handover,   service_obstacles, service_sample, service_feeds,
    service_http,     service_webhooks};
_Static_assert(ARRAY_LEN(rooms) <= ROOMS_MAX, "struct service has place for all rooms");

static int make_rooms(struct service *s, struct err *err)
{
    err_clear(err);
    for (size_t i = 0; i < ARRAY_LEN(rooms); i++) {
        struct room *r = rooms[i](s, err);
        if (err->code)
            return err->code;
        if (r)
            s->rooms[s->room_count++] = r;
    }
    return 0;
}

static void service_free(struct service *s)
{
    for (size_t i = 0; i < s->account_count; i++)
        account_done(&s->accounts[i]);
    tally_done(s);
    while (s->room_count) {
        struct room *r = s->rooms[--s->room_count];
        r->ops->free(r);
    }
    owners_done(&s->owners);
    free(s->accounts);
    free(s->aliases);
    free(s->control_address);
    free(s->name);
    free(s->holder);
    free(s);
}

struct service *service_new(struct loop *l, const struct service_config *config, struct err *err)
{
    struct service *s = xcalloc(1, sizeof(*s));
    char host[256] = "relay";
    gethostname(host, sizeof(host) - 1);
    s->loop = l;
    s->config = *config;
    s->name = xstrdup(config->name ? config->name : host);
    s->holder = config->holder ? xstrdup(config->holder) : identity(l, s->name);
    s->standalone = config->control_dsn == NULL;
    s->accounts = xcalloc(config->account_count, sizeof(*s->accounts));
    s->aliases = xcalloc(config->account_count, sizeof(*s->aliases));
    for (size_t i = 0; i < config->account_count; i++)
        account_init(&s->accounts[i], s, (int)i, &config->accounts[i]);
    s->account_count = config->account_count;
    if (make_rooms(s, err) == 0)
        return s;
    service_free(s);
    return NULL;
}

void service_open(struct service *s)
{
    for (; s->rooms_open < s->room_count; s->rooms_open++)
        room_open(s->rooms[s->rooms_open]);
}

/* ---- the end ---- */

static void finish(struct service *s)
{
    if (s->rooms_open || s->ops)
        return;
    void (*cb)(void *arg) = s->stop_cb;
    void *arg = s->stop_arg;
    service_free(s);
    cb(arg);
}

void service_op_done(struct service *s)
{
    INVARIANT(s->ops > 0);
    s->ops--;
    if (s->phase == SERVICE_CLOSING)
        finish(s);
}

static void closed(struct room *r);

static void close_next(struct service *s)
{
    if (s->rooms_open)
        room_close(s->rooms[s->rooms_open - 1], closed);
    else
        finish(s);
}

static void closed(struct room *r)
{
    struct service *s = r->service;
    s->rooms_open--;
    close_next(s);
}

static void drained(struct room *r)
{
    struct service *s = r->service;
    if (--s->rooms_draining)
        return;
    s->phase = SERVICE_CLOSING;
    log_info("relay.released", "relay=%s", s->name);
    for (size_t i = 0; i < s->account_count; i++) {
        account_demote(&s->accounts[i], "stopping");
        account_unwatch_all(&s->accounts[i]);
    }
    close_next(s);
}

void service_stop(struct service *s, void (*cb)(void *arg), void *arg)
{
    PRE(s->phase != SERVICE_DRAINING && s->phase != SERVICE_CLOSING);
    s->stop_cb = cb;
    s->stop_arg = arg;
    s->phase = SERVICE_DRAINING;
    s->rooms_draining = s->room_count;
    for (size_t i = 0; i < s->room_count; i++)
        room_drain(s->rooms[i], drained);
}
