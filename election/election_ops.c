/* The elector's requests to the store, and the answers. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "election_internal.h"

enum { LOCK_TOLD_MS = 10000, FAILED_TOLD_MS = 60000 };

/* A request of one account. Each has memory of its own: an answer may start the account's next
 * request before it is freed, and the texts that the elector reads lie in it. */
struct asked {
    struct candidate *c;
    union {
        struct store_req req;
        struct store_lock lock;
        struct store_claim claim;
        struct store_evict evict;
        struct store_release release;
    } u;
};

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

/* ---- answers ---- */

static struct asked *asked_new(struct candidate *c)
{
    struct asked *q = xcalloc(1, sizeof(*q));
    q->c = c;
    c->e->in_flight++;
    return q;
}

static struct asked *asked_of(struct store_req *req)
{
    return CONTAINER_OF(req, struct asked, u.req);
}

/* The last statement of its answer. */
static void asked_free(struct asked *q)
{
    struct election *e = q->c->e;
    store_req_done(&q->u.req);
    free(q);
    election__answered(e);
}

/* Logs an error once, until it changes or ends, and once a minute while it lasts. Requests of one
 * kind may fail for good while the others succeed. */
static bool failed(struct candidate *c, const struct err *err, enum request_kind kind)
{
    static const char *const names[REQUEST_COUNT] = {"lock", "claim", "evict", "release"};
    uint64_t now = election__now(c->e);
    if (err->code && err->code != ERR_CANCELED &&
        (err->code != c->said[kind].code || now >= c->said[kind].again_ms)) {
        log_warn("election.request_failed", "account=%s request=%s code=%s text=\"%s\"", c->label,
                 names[kind], err_name(err->code), err->text);
        c->said[kind].again_ms = now + FAILED_TOLD_MS;
    }
    c->said[kind].code = err->code;
    return err->code != 0;
}

static void on_lock(struct store_req *req)
{
    struct asked *q = asked_of(req);
    struct elector_event ev = {.type = ELECTOR_EV_LOCK_REPLY, .account = q->c->index};
    ev.failed = failed(q->c, &req->err, REQUEST_LOCK);
    ev.lock.got = !ev.failed && q->u.lock.got;
    if (ev.lock.got)
        FAILPOINT("after_lock");
    election__feed(q->c->e, &ev);
    asked_free(q);
}

/* The elector does not wait for an unlock. */
static void on_unlock(struct store_req *req)
{
    asked_free(asked_of(req));
}

static void on_claim(struct store_req *req)
{
    struct asked *q = asked_of(req);
    struct election *e = q->c->e;
    const struct store_claim *r = &q->u.claim;
    struct elector_event ev = {.type = ELECTOR_EV_CLAIM_REPLY, .account = q->c->index};
    ev.failed = failed(q->c, &req->err, REQUEST_CLAIM);
    if (!ev.failed) {
        ev.claim.granted = r->granted;
        ev.claim.epoch = r->epoch;
        ev.claim.holder = r->granted ? e->holder : r->current_holder;
        ev.claim.address = r->granted ? e->address : r->current_address;
    }
    if (ev.claim.granted)
        FAILPOINT("after_claim");
    election__feed(e, &ev);
    asked_free(q);
}

static void on_evict(struct store_req *req)
{
    struct asked *q = asked_of(req);
    struct candidate *c = q->c;
    const struct store_evict *r = &q->u.evict;
    struct elector_event ev = {.type = ELECTOR_EV_EVICT_REPLY, .account = c->index};
    ev.failed = failed(c, &req->err, REQUEST_EVICT);
    if (!ev.failed) {
        ev.evict.terminated = r->terminated;
        ev.evict.holder = r->current_holder;
        ev.evict.address = r->current_address;
        ev.evict.epoch = r->epoch;
    }
    if (ev.evict.terminated) {
        c->stats.evicted_total++;
        if (*r->lock_holder)
            log_warn(
                "election.evicted",
                "account=%s scope=%lld text=\"%s held the lock without a claim: the session was "
                "ended\"",
                c->label, (long long)c->lock_key, r->lock_holder);
        else
            log_warn(
                "election.evicted",
                "account=%s scope=%lld holder=%s epoch=%lld text=\"its claim expired while its "
                "session held the lock: the session was ended\"",
                c->label, (long long)c->lock_key, ev.evict.holder ? ev.evict.holder : "",
                (long long)ev.evict.epoch);
    } else if (!ev.failed && *r->lock_holder && election__now(c->e) >= c->lock_told_ms) {
        c->lock_told_ms = election__now(c->e) + LOCK_TOLD_MS;
        log_warn("election.lock_held",
                 "account=%s scope=%lld text=\"nobody leads it: its lock is held by %s\"", c->label,
                 (long long)c->lock_key, r->lock_holder);
    }
    election__feed(c->e, &ev);
    asked_free(q);
}

static void on_release(struct store_req *req)
{
    struct asked *q = asked_of(req);
    struct elector_event ev = {.type = ELECTOR_EV_RELEASE_REPLY, .account = q->c->index};
    ev.failed = failed(q->c, &req->err, REQUEST_RELEASE);
    election__feed(q->c->e, &ev);
    asked_free(q);
}

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
    if (!b->req.leave)
        election__feed(e, &ev);
    store_req_done(req);
    free(b);
    election__answered(e);
}

/* ---- requests ---- */

static void start_unlock(struct candidate *c)
{
    struct asked *q = asked_new(c);
    q->u.lock = (struct store_lock){.lock_key = c->lock_key};
    store_unlock_start(c->e->store, &q->u.lock, on_unlock);
}

static void start_lock(struct candidate *c)
{
    struct asked *q = asked_new(c);
    c->bid_at = election__now(c->e);
    c->stats.bids_total++;
    q->u.lock = (struct store_lock){.lock_key = c->lock_key};
    store_lock_start(c->e->store, &q->u.lock, on_lock);
}

static void start_claim(struct candidate *c, bool have_lock)
{
    struct election *e = c->e;
    struct asked *q = asked_new(c);
    if (!have_lock) {
        c->bid_at = election__now(e);
        c->stats.bids_total++;
    }
    q->u.claim = (struct store_claim){
        .account = c->store_account,
        .holder = e->holder,
        .address = e->address,
        .have_lock = have_lock,
        .expiry_1_ms = e->config.core.expiry_1_ms,
        .expiry_2_ms = e->config.core.expiry_2_ms,
    };
    store_claim_start(e->store, &q->u.claim, on_claim);
}

static void start_evict(struct candidate *c)
{
    struct asked *q = asked_new(c);
    q->u.evict = (struct store_evict){.lock_key = c->lock_key};
    store_evict_start(c->e->store, &q->u.evict, on_evict);
}

static void start_release(struct candidate *c, int64_t epoch)
{
    struct asked *q = asked_new(c);
    q->u.release =
        (struct store_release){.account = c->store_account, .epoch = epoch, .holder = c->e->holder};
    store_release_start(c->e->store, &q->u.release, on_release);
}

static void start_renew(struct election *e)
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

static void start_scan(struct election *e)
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

static void start_heartbeat(struct election *e, bool leaving)
{
    struct heartbeat *b = xcalloc(1, sizeof(*b));
    uint64_t best = heard_best(&e->heard, loop_now_ms(e->loop));
    b->e = e;
    b->req = (struct store_member){.holder = e->holder,
                                   .address = e->address,
                                   .serves = e->serves,
                                   .ttl_ms = e->config.core.expiry_1_ms,
                                   .best = best ? (int64_t)best : -1,
                                   .leave = leaving};
    e->in_flight++;
    store_member_start(e->store, &b->req, on_heartbeat);
}

void election__request(struct election *e, const struct elector_effect *fx)
{
    struct candidate *c = fx->account >= 0 ? e->candidates[fx->account] : NULL;
    switch ((int)fx->type) {
    case ELECTOR_FX_LOCK:
        start_lock(c);
        return;
    case ELECTOR_FX_UNLOCK:
        start_unlock(c);
        return;
    case ELECTOR_FX_CLAIM:
        start_claim(c, fx->have_lock);
        return;
    case ELECTOR_FX_EVICT:
        start_evict(c);
        return;
    case ELECTOR_FX_RELEASE:
        start_release(c, fx->epoch);
        return;
    case ELECTOR_FX_RENEW:
        start_renew(e);
        return;
    case ELECTOR_FX_SCAN:
        start_scan(e);
        return;
    case ELECTOR_FX_HEARTBEAT:
        start_heartbeat(e, fx->leaving);
        return;
    default:
        UNREACHABLE();
    }
}
