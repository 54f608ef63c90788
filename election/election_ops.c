/* The elector's requests for one account, and the answers; those for all accounts at once are in
 * election_rounds.c. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
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
    plain_text(c->said[kind].text, sizeof(c->said[kind].text), err->code ? err->text : "");
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
    if (!ev.failed)
        plain_text(c->in_way, sizeof(c->in_way), r->lock_holder);
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
        election__start_renew(e);
        return;
    case ELECTOR_FX_SCAN:
        election__start_scan(e);
        return;
    case ELECTOR_FX_HEARTBEAT:
        election__start_heartbeat(e, fx->leaving);
        return;
    default:
        UNREACHABLE();
    }
}
