/* The door of the elector: effects become store requests, their answers and the timer become events.
 *
 *   RUNNING -> CLOSING_WAIT (requests in flight) -> freed
 *
 * Callbacks of the owner may call back into this door: what they say is queued and handled after the effects
 * of the present event. */
#include "election/election.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"

struct candidate {
    struct election *e;
    int index;
    int32_t store_account;
    int64_t lock_key;
    char *label;
    /* One of these is in flight at most: the elector waits for each answer. */
    struct store_lock lock;
    struct store_claim claim;
    struct store_evict evict;
    struct store_release release;
    uint64_t bid_at; /* the bid that is going on was begun */
    int said_code;   /* last error that was logged */
    struct election_stats stats;
};

/* An unlock is not waited for by the elector, so that a second one may begin before it is answered. */
struct unlock {
    struct store_lock req;
    struct election *e;
};

/* All accounts that are led now; its arrays follow it. */
struct renewal {
    struct store_renew req;
    struct election *e;
    uint64_t begun;
    int *indexes;
    int32_t *accounts;
    int64_t *epochs, *keys;
    bool *renewed;
};

struct queued {
    struct elector_event ev;
    char *holder, *address;
    struct queued *next;
};

struct election {
    struct loop *loop;
    struct store *store;
    struct elector *core;
    struct election_config config;
    char *holder, *address;
    struct candidate **candidates; /* each its own object: requests must not move */
    size_t count;
    struct loop_timer *timer;
    size_t in_flight;

    uint64_t last_renew_ms;

    bool running; /* an event is being handled */
    struct queued *queue, **queue_end;

    bool closing;
    struct loop_task drained_task, closed_task;
    void (*drain_cb)(void *arg);
    void *drain_arg;
    void (*close_cb)(void *arg);
    void *close_arg;
};

/* Read now, not the loop's cached time: a process that was stopped in the middle of a callback must see it.
 */
static uint64_t now_ms(void)
{
    return loop_clock_ns() / 1000000;
}

static void feed(struct election *e, const struct elector_event *ev);

/* ---- the end ---- */

static void closed(struct loop_task *task)
{
    struct election *e = CONTAINER_OF(task, struct election, closed_task);
    void (*cb)(void *arg) = e->close_cb;
    void *arg = e->close_arg;
    for (size_t i = 0; i < e->count; i++) {
        free(e->candidates[i]->label);
        free(e->candidates[i]);
    }
    elector_free(e->core);
    free(e->candidates);
    free(e->holder);
    free(e->address);
    free(e);
    cb(arg);
}

static void close_when_idle(struct election *e)
{
    if (e->closing && e->in_flight == 0)
        loop_post(e->loop, &e->closed_task, closed);
}

static void answered(struct election *e)
{
    INVARIANT(e->in_flight > 0);
    e->in_flight--;
    close_when_idle(e);
}

/* ---- answers ---- */

/* Says an error once, until another one or none comes. */
static bool failed(struct candidate *c, const struct err *err, const char *what)
{
    if (err->code && err->code != c->said_code && err->code != ERR_CANCELED)
        log_warn("election.request_failed", "account=%s request=%s code=%s text=\"%s\"", c->label, what,
                 err_name(err->code), err->text);
    c->said_code = err->code;
    return err->code != 0;
}

static void on_lock(struct store_req *req)
{
    struct candidate *c = CONTAINER_OF(req, struct candidate, lock.req);
    struct election *e = c->e;
    struct elector_event ev = {.type = ELECTOR_EV_LOCK_REPLY, .account = c->index};
    ev.failed = failed(c, &req->err, "lock");
    ev.ok = !ev.failed && c->lock.got;
    store_req_done(req);
    feed(e, &ev);
    answered(e);
}

static void on_unlock(struct store_req *req)
{
    struct unlock *u = CONTAINER_OF(req, struct unlock, req.req);
    struct election *e = u->e;
    store_req_done(req);
    free(u);
    answered(e);
}

static void on_claim(struct store_req *req)
{
    struct candidate *c = CONTAINER_OF(req, struct candidate, claim.req);
    struct election *e = c->e;
    const struct store_claim *r = &c->claim;
    struct elector_event ev = {.type = ELECTOR_EV_CLAIM_REPLY, .account = c->index};
    ev.failed = failed(c, &req->err, "claim");
    if (!ev.failed) {
        ev.ok = r->granted;
        ev.epoch = r->epoch;
        ev.holder = r->granted ? e->holder : r->current_holder;
        ev.address = r->granted ? e->address : r->current_address;
        ev.lock_held = r->lock_held;
        ev.mid_submission = r->mid_submission;
        ev.expiry_1_left_ms = r->expiry_1_left_ms;
        ev.expiry_2_left_ms = r->expiry_2_left_ms;
    }
    feed(e, &ev);
    store_req_done(req);
    answered(e);
}

static void on_evict(struct store_req *req)
{
    struct candidate *c = CONTAINER_OF(req, struct candidate, evict.req);
    struct election *e = c->e;
    const struct store_evict *r = &c->evict;
    struct elector_event ev = {.type = ELECTOR_EV_EVICT_REPLY, .account = c->index};
    ev.failed = failed(c, &req->err, "evict");
    if (!ev.failed) {
        ev.ok = r->terminated;
        ev.holder = r->current_holder;
        ev.address = r->current_address;
        ev.epoch = r->epoch;
        ev.expiry_1_left_ms = r->expiry_1_left_ms;
    }
    if (ev.ok) {
        c->stats.evicted_total++;
        log_warn("election.evicted",
                 "account=%s scope=%lld holder=%s epoch=%lld text=\"its claim ran out while its "
                 "session kept the lock: the session was ended\"",
                 c->label, (long long)c->lock_key, ev.holder ? ev.holder : "", (long long)ev.epoch);
    }
    feed(e, &ev);
    store_req_done(req);
    answered(e);
}

static void on_release(struct store_req *req)
{
    struct candidate *c = CONTAINER_OF(req, struct candidate, release.req);
    struct election *e = c->e;
    struct elector_event ev = {.type = ELECTOR_EV_RELEASE_REPLY, .account = c->index};
    ev.failed = failed(c, &req->err, "release");
    store_req_done(req);
    feed(e, &ev);
    answered(e);
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
    struct elector_event ev = {.type = ELECTOR_EV_RENEW_REPLY,
                               .count = n->req.count,
                               .accounts = n->indexes,
                               .renewed = n->renewed,
                               .failed = req->err.code != 0};
    if (ev.failed && req->err.code != ERR_CANCELED)
        log_warn("election.renewal_failed", "accounts=%zu code=%s text=\"%s\"", ev.count,
                 err_name(req->err.code), req->err.text);
    if (!ev.failed) {
        e->last_renew_ms = now_ms() - n->begun;
        for (size_t i = 0; i < ev.count; i++)
            if (n->renewed[i])
                e->candidates[n->indexes[i]]->stats.renewed_at_ms = n->begun;
    }
    store_req_done(req);
    feed(e, &ev);
    renewal_free(n);
    answered(e);
}

/* ---- effects ---- */

static void start_unlock(struct election *e, const struct candidate *c)
{
    struct unlock *u = xcalloc(1, sizeof(*u));
    u->e = e;
    u->req.lock_key = c->lock_key;
    e->in_flight++;
    store_unlock_start(e->store, &u->req, on_unlock);
}

static void start_lock(struct election *e, struct candidate *c)
{
    c->bid_at = now_ms();
    c->stats.bids_total++;
    c->lock = (struct store_lock){.lock_key = c->lock_key};
    e->in_flight++;
    store_lock_start(e->store, &c->lock, on_lock);
}

static void start_claim(struct election *e, struct candidate *c, bool have_lock)
{
    if (!have_lock) {
        c->bid_at = now_ms();
        c->stats.bids_total++;
    }
    c->claim = (struct store_claim){
        .account = c->store_account,
        .holder = e->holder,
        .address = e->address,
        .have_lock = have_lock,
        .expiry_1_ms = e->config.core.expiry_1_ms,
        .expiry_2_ms = e->config.core.expiry_2_ms,
    };
    e->in_flight++;
    store_claim_start(e->store, &c->claim, on_claim);
}

static void start_evict(struct election *e, struct candidate *c)
{
    c->evict = (struct store_evict){.lock_key = c->lock_key};
    e->in_flight++;
    store_evict_start(e->store, &c->evict, on_evict);
}

static void start_release(struct election *e, struct candidate *c, int64_t epoch)
{
    c->release = (struct store_release){.account = c->store_account, .epoch = epoch, .holder = e->holder};
    e->in_flight++;
    store_release_start(e->store, &c->release, on_release);
}

static void start_renew(struct election *e)
{
    const int *accounts;
    const int64_t *epochs;
    size_t count = elector_renewing(e->core, &accounts, &epochs);
    struct renewal *n = xcalloc(1, sizeof(*n));
    n->e = e;
    n->begun = now_ms();
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
        .renewed = n->renewed,
    };
    e->in_flight++;
    store_renew_start(e->store, &n->req, on_renew);
}

static void on_drained(struct loop_task *task)
{
    struct election *e = CONTAINER_OF(task, struct election, drained_task);
    void (*cb)(void *arg) = e->drain_cb;
    e->drain_cb = NULL;
    cb(e->drain_arg);
}

static void carry_out(struct election *e, const struct elector_effect *fx)
{
    struct candidate *c = fx->account >= 0 ? e->candidates[fx->account] : NULL;
    switch (fx->type) {
    case ELECTOR_FX_LOCK:
        start_lock(e, c);
        return;
    case ELECTOR_FX_UNLOCK:
        start_unlock(e, c);
        return;
    case ELECTOR_FX_CLAIM:
        start_claim(e, c, fx->have_lock);
        return;
    case ELECTOR_FX_EVICT:
        start_evict(e, c);
        return;
    case ELECTOR_FX_RELEASE:
        start_release(e, c, fx->epoch);
        return;
    case ELECTOR_FX_RENEW:
        start_renew(e);
        return;
    case ELECTOR_FX_PROMOTE:
        c->stats.acquired_total++;
        c->stats.acquire_ms = now_ms() - c->bid_at;
        c->stats.renewed_at_ms = c->bid_at;
        if (e->config.on_promote)
            e->config.on_promote(e->config.arg, fx->account, fx->epoch);
        return;
    case ELECTOR_FX_DEMOTE:
        c->stats.lost_total++;
        if (e->config.on_demote)
            e->config.on_demote(e->config.arg, fx->account, fx->reason);
        return;
    case ELECTOR_FX_GATE:
        if (e->config.on_gate)
            e->config.on_gate(e->config.arg, fx->account, fx->open);
        return;
    case ELECTOR_FX_DRAINED:
        loop_post(e->loop, &e->drained_task, on_drained);
        return;
    }
}

/* ---- events ---- */

static void step(struct election *e, const struct elector_event *ev)
{
    const struct elector_effect *effects;
    size_t count;
    elector_step(e->core, now_ms(), ev, &effects, &count);
    for (size_t i = 0; i < count; i++)
        carry_out(e, &effects[i]);
}

static void put_off(struct election *e, const struct elector_event *ev)
{
    struct queued *q = xcalloc(1, sizeof(*q));
    q->ev = *ev;
    if (ev->holder)
        q->ev.holder = q->holder = xstrdup(ev->holder);
    if (ev->address)
        q->ev.address = q->address = xstrdup(ev->address);
    *e->queue_end = q;
    e->queue_end = &q->next;
}

static void feed(struct election *e, const struct elector_event *ev)
{
    if (e->closing)
        return;
    if (e->running) {
        put_off(e, ev);
        return;
    }
    e->running = true;
    step(e, ev);
    for (struct queued *q = e->queue; q; q = e->queue) {
        e->queue = q->next;
        if (!e->queue)
            e->queue_end = &e->queue;
        if (!e->closing)
            step(e, &q->ev);
        free(q->holder);
        free(q->address);
        free(q);
    }
    e->running = false;
    if (e->closing)
        return;
    uint64_t deadline = elector_deadline(e->core);
    if (deadline == UINT64_MAX)
        loop_timer_stop(e->timer);
    else
        loop_timer_at(e->timer, deadline);
}

static void on_timer(void *arg)
{
    feed(arg, &(struct elector_event){.type = ELECTOR_EV_TICK});
}

void election_store_state(struct election *e, enum store_state state)
{
    feed(e, &(struct elector_event){.type = state == STORE_UP ? ELECTOR_EV_STORE_UP : ELECTOR_EV_STORE_DOWN});
}

void election_control_lost(struct election *e)
{
    feed(e, &(struct elector_event){.type = ELECTOR_EV_CONTROL_LOST});
}

void election_leader_change(struct election *e, int32_t store_account, const char *holder,
                            const char *address, int64_t epoch)
{
    for (size_t i = 0; i < e->count; i++) {
        if (e->candidates[i]->store_account != store_account)
            continue;
        feed(e, &(struct elector_event){.type = ELECTOR_EV_LEADER_CHANGE,
                                        .account = (int)i,
                                        .holder = holder,
                                        .address = address,
                                        .epoch = epoch});
        return;
    }
}

void election_stale(struct election *e, int account)
{
    feed(e, &(struct elector_event){.type = ELECTOR_EV_STALE, .account = account});
}

/* ---- questions ---- */

bool election_gate(struct election *e, int account)
{
    return !e->closing && elector_gate(e->core, account, now_ms());
}

int64_t election_epoch(const struct election *e, int account)
{
    return elector_epoch(e->core, account);
}

bool election_leads(const struct election *e, int account)
{
    return elector_state(e->core, account) == ELECTOR_LEADER;
}

const char *election_leader(const struct election *e, int account, const char **ret_address)
{
    if (ret_address)
        *ret_address = elector_address(e->core, account);
    return elector_holder(e->core, account);
}

void election_stats(const struct election *e, int account, struct election_stats *ret_stats)
{
    PRE(account >= 0 && (size_t)account < e->count);
    *ret_stats = e->candidates[account]->stats;
    ret_stats->epoch = elector_epoch(e->core, account);
    ret_stats->renew_ms = e->last_renew_ms;
}

/* ---- life ---- */

struct election *election_new(struct loop *l, struct store *s, const struct election_config *config)
{
    struct election *e = xcalloc(1, sizeof(*e));
    e->loop = l;
    e->store = s;
    e->config = *config;
    e->config.core = elector_config_defaults(&config->core);
    if (!e->config.core.seed)
        e->config.core.seed = loop_seed();
    e->core = elector_new(&e->config.core);
    e->holder = xstrdup(config->holder);
    e->address = xstrdup(config->address ? config->address : "");
    e->timer = loop_timer_new(l, on_timer, e);
    e->queue_end = &e->queue;
    return e;
}

int election_add(struct election *e, int32_t store_account, int64_t lock_key, const char *label)
{
    struct candidate *c = xcalloc(1, sizeof(*c));
    c->e = e;
    c->index = elector_add(e->core);
    INVARIANT((size_t)c->index == e->count);
    c->store_account = store_account;
    c->lock_key = lock_key;
    c->label = xstrdup(label);
    e->candidates = xrealloc(e->candidates, (e->count + 1) * sizeof(struct candidate *));
    e->candidates[e->count++] = c;
    return c->index;
}

void election_drain(struct election *e, void (*cb)(void *arg), void *arg)
{
    PRE(!e->drain_cb && !e->closing);
    e->drain_cb = cb;
    e->drain_arg = arg;
    feed(e, &(struct elector_event){.type = ELECTOR_EV_DRAIN});
}

void election_close(struct election *e, void (*cb)(void *arg), void *arg)
{
    PRE(!e->closing);
    e->closing = true;
    e->close_cb = cb;
    e->close_arg = arg;
    e->timer = loop_timer_close(e->timer);
    loop_task_cancel(&e->drained_task);
    close_when_idle(e);
}
