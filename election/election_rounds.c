/* The elector's requests for all accounts at once: renewals, scans of the leaders' claims, this
 * relay's heartbeat. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "election_internal.h"

/* All accounts that this relay leads; the arrays follow the request. */
struct renewal {
    struct store_renew req;
    struct election *e;
    uint64_t begun;
    int *indexes;
    int32_t *accounts;
    int64_t *epochs, *keys;
    bool *renewed;
};

/* All followers that wait for a scan; the arrays follow the request. */
struct scan {
    struct store_scan req;
    struct election *e;
    int *indexes;
    int32_t *accounts;
    int64_t *epochs;
    int *seen_indexes;
    struct elector_view *seen;
};

/* The elector does not wait for a leave either. */
struct heartbeat {
    struct store_member req;
    struct election *e;
};

static void renewal_free(struct renewal *n)
{
    free(n->indexes);
    free(n->accounts);
    free(n->epochs);
    free(n->keys);
    free(n->renewed);
    free(n);
}

static void on_renew(struct store_req *req)
{
    struct renewal *n = CONTAINER_OF(req, struct renewal, req.req);
    struct election *e = n->e;
    struct elector_event ev = {
        .type = ELECTOR_EV_RENEW_REPLY,
        .renew = {.count = n->req.count, .accounts = n->indexes, .renewed = n->renewed},
        .failed = req->err.code != 0};
    if (ev.failed && req->err.code != ERR_CANCELED)
        log_warn("election.renewal_failed", "accounts=%zu code=%s text=\"%s\"", n->req.count,
                 err_name(req->err.code), req->err.text);
    if (!ev.failed) {
        e->last_renew_ms = election__now(e) - n->begun;
        for (size_t i = 0; i < n->req.count; i++)
            if (n->renewed[i])
                e->candidates[n->indexes[i]]->stats.renewed_at_ms = n->begun;
    }
    store_req_done(req);
    election__feed(e, &ev);
    renewal_free(n);
    election__answered(e);
}

void election__start_renew(struct election *e)
{
    const int *accounts;
    const int64_t *epochs;
    size_t count = elector_renewing(e->core, &accounts, &epochs);
    struct renewal *n = xcalloc(1, sizeof(*n));
    n->e = e;
    n->begun = election__now(e);
    n->indexes = xcalloc(count, sizeof(*n->indexes));
    n->accounts = xcalloc(count, sizeof(*n->accounts));
    n->epochs = xcalloc(count, sizeof(*n->epochs));
    n->keys = xcalloc(count, sizeof(*n->keys));
    n->renewed = xcalloc(count, sizeof(*n->renewed));
    for (size_t i = 0; i < count; i++) {
        const struct candidate *c = e->candidates[accounts[i]];
        n->indexes[i] = accounts[i];
        n->accounts[i] = c->store_account;
        n->epochs[i] = epochs[i];
        n->keys[i] = c->lock_key;
    }
    n->req = (struct store_renew){
        .holder = e->holder,
        .count = count,
        .accounts = n->accounts,
        .epochs = n->epochs,
        .lock_keys = e->config.core.use_lock ? n->keys : NULL,
        .expiry_1_ms = e->config.core.expiry_1_ms,
        .expiry_2_ms = e->config.core.expiry_2_ms,
        .block = e->block,
        .renewed = n->renewed,
    };
    e->in_flight++;
    store_renew_start(e->store, &n->req, on_renew);
}

static void scan_free(struct scan *n)
{
    free(n->indexes);
    free(n->accounts);
    free(n->epochs);
    free(n->seen_indexes);
    free(n->seen);
    free(n);
}

static void on_scan(struct store_req *req)
{
    struct scan *n = CONTAINER_OF(req, struct scan, req.req);
    struct election *e = n->e;
    struct elector_event ev = {.type = ELECTOR_EV_SCAN_REPLY,
                               .failed = req->err.code != 0,
                               .scan = {.count = req->err.code ? 0 : n->req.view_count,
                                        .accounts = n->seen_indexes,
                                        .seen = n->seen}};
    if (ev.failed && req->err.code != ERR_CANCELED)
        log_warn("election.scan_failed", "accounts=%zu code=%s text=\"%s\"", n->req.count,
                 err_name(req->err.code), req->err.text);
    for (size_t i = 0; i < ev.scan.count; i++) {
        const struct store_lock_view *s = &n->req.seen[i];
        n->seen_indexes[i] = n->indexes[s->index];
        n->seen[i] = (struct elector_view){.taken = s->taken,
                                           .mine = !strcmp(s->holder, e->holder),
                                           .lock_held = s->lock_held,
                                           .holder = s->holder,
                                           .address = s->address,
                                           .epoch = s->epoch,
                                           .expiry_1_left_ms = s->expiry_1_left_ms,
                                           .expiry_2_left_ms = s->expiry_2_left_ms};
    }
    election__feed(e, &ev);
    store_req_done(req);
    scan_free(n);
    election__answered(e);
}

void election__start_scan(struct election *e)
{
    const int *accounts;
    const int64_t *epochs;
    size_t count = elector_scanning(e->core, &accounts, &epochs);
    struct scan *n = xcalloc(1, sizeof(*n));
    n->e = e;
    n->indexes = xcalloc(count, sizeof(*n->indexes));
    n->accounts = xcalloc(count, sizeof(*n->accounts));
    n->epochs = xcalloc(count, sizeof(*n->epochs));
    n->seen_indexes = xcalloc(count, sizeof(*n->seen_indexes));
    n->seen = xcalloc(count, sizeof(*n->seen));
    for (size_t i = 0; i < count; i++) {
        n->indexes[i] = accounts[i];
        n->accounts[i] = e->candidates[accounts[i]]->store_account;
        n->epochs[i] = epochs[i];
    }
    n->req = (struct store_scan){.count = count, .accounts = n->accounts, .epochs = n->epochs};
    e->in_flight++;
    store_scan_start(e->store, &n->req, on_scan);
}

static void on_heartbeat(struct store_req *req)
{
    struct heartbeat *b = CONTAINER_OF(req, struct heartbeat, req.req);
    struct election *e = b->e;
    struct elector_event ev = {
        .type = ELECTOR_EV_MEMBERS,
        .failed = req->err.code != 0,
        .members = {.names = b->req.holders, .count = b->req.count, .self = -1}};
    if (ev.failed && req->err.code != ERR_CANCELED)
        log_warn("election.heartbeat_failed", "code=%s text=\"%s\"", err_name(req->err.code),
                 req->err.text);
    for (size_t i = 0; i < ev.members.count && !ev.failed; i++)
        if (!strcmp(ev.members.names[i], e->holder))
            ev.members.self = (int)i;
    if (!ev.failed && b->req.best_known >= 0 && e->config.on_best)
        e->config.on_best(e->config.arg, (uint64_t)b->req.best_known);
    if (!b->req.leave) {
        e->beat_ms = election__now(e) - e->beat_sent;
        e->beat_sent = 0;
        election__feed(e, &ev);
    }
    store_req_done(req);
    free(b);
    election__answered(e);
}

void election__start_heartbeat(struct election *e, bool leaving)
{
    struct heartbeat *b = xcalloc(1, sizeof(*b));
    uint64_t now = loop_now_ms(e->loop);
    heard_repeat(&e->heard, e->best, now);
    uint64_t best = heard_best(&e->heard, now);
    b->e = e;
    b->req = (struct store_member){.holder = e->holder,
                                   .address = e->address,
                                   .serves = e->serves,
                                   .ttl_ms = e->config.core.expiry_1_ms,
                                   .best = best ? (int64_t)best : -1,
                                   .leave = leaving};
    if (!leaving)
        e->beat_sent = election__now(e);
    e->in_flight++;
    store_member_start(e->store, &b->req, on_heartbeat);
}
