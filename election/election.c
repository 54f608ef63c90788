/* The adapter of the elector: effects become store requests; their answers and the timer become
 * events.
 *
 *   RUNNING -> CLOSING_WAIT (requests in flight) -> freed
 *
 * Callbacks of the owner may call this adapter again. Such events are queued and handled after the
 * effects of the present event. */
#include "election/election.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "election_internal.h"

/* Read the clock instead of the loop's cached time, so that a process that was stopped inside a
 * callback notices it. */
uint64_t election__now(const struct election *e)
{
    return loop_clock_ns(e->loop) / 1000000;
}

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

void election__answered(struct election *e)
{
    INVARIANT(e->in_flight > 0);
    e->in_flight--;
    close_when_idle(e);
}

/* ---- effects ---- */

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
    case ELECTOR_FX_UNLOCK:
    case ELECTOR_FX_CLAIM:
    case ELECTOR_FX_EVICT:
    case ELECTOR_FX_RELEASE:
    case ELECTOR_FX_RENEW:
    case ELECTOR_FX_SCAN:
    case ELECTOR_FX_HEARTBEAT:
        election__request(e, fx);
        return;
    case ELECTOR_FX_PROMOTE:
        c->stats.acquired_total++;
        c->stats.acquire_ms = election__now(e) - c->bid_at;
        c->stats.renewed_at_ms = c->bid_at;
        if (e->config.on_promote)
            e->config.on_promote(e->config.arg, fx->account, fx->epoch);
        return;
    case ELECTOR_FX_DEMOTE:
        c->stats.lost_total++;
        if (e->config.on_demote)
            e->config.on_demote(e->config.arg, fx->account, fx->demoted.reason);
        return;
    case ELECTOR_FX_GATE:
        if (e->config.on_gate)
            e->config.on_gate(e->config.arg, fx->account, fx->gate.open, fx->gate.reason);
        return;
    case ELECTOR_FX_LEAVE:
        c->stats.left_total++;
        if (e->config.on_leave)
            e->config.on_leave(e->config.arg, fx->account, fx->reason);
        else
            election_hand_over(e, fx->account);
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
    elector_step(e->core, election__now(e), ev, &effects, &count);
    if (elector_bug(e->core))
        log_error("internal.bug", "part=election text=\"%s: the account is given up\"",
                  elector_bug(e->core));
    for (size_t i = 0; i < count; i++)
        carry_out(e, &effects[i]);
}

static void put_off(struct election *e, const struct elector_event *ev)
{
    /* What a reply points to would not outlive the call; replies come from the loop alone. */
    PRE(ev->type < ELECTOR_EV_LOCK_REPLY || ev->type > ELECTOR_EV_MEMBERS);
    struct queued *q = xcalloc(1, sizeof(*q));
    q->ev = *ev;
    if (ev->type == ELECTOR_EV_LEADER_CHANGE && ev->change.holder)
        q->ev.change.holder = q->holder = xstrdup(ev->change.holder);
    if (ev->type == ELECTOR_EV_LEADER_CHANGE && ev->change.address)
        q->ev.change.address = q->address = xstrdup(ev->change.address);
    *e->queue_end = q;
    e->queue_end = &q->next;
}

void election__feed(struct election *e, const struct elector_event *ev)
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
    election__feed(arg, &(struct elector_event){.type = ELECTOR_EV_TICK});
}

void election_store_state(struct election *e, enum store_state state)
{
    election__feed(e, &(struct elector_event){.type = state == STORE_UP ? ELECTOR_EV_STORE_UP
                                                                        : ELECTOR_EV_STORE_DOWN});
}

void election_control_lost(struct election *e)
{
    election__feed(e, &(struct elector_event){.type = ELECTOR_EV_CONTROL_LOST});
}

void election_leader_change(struct election *e, int32_t store_account, const char *holder,
                            const char *address, int64_t epoch)
{
    for (size_t i = 0; i < e->count; i++) {
        if (e->candidates[i]->store_account != store_account)
            continue;
        election__feed(e, &(struct elector_event){
                              .type = ELECTOR_EV_LEADER_CHANGE,
                              .account = (int)i,
                              .change = {.holder = holder, .address = address, .epoch = epoch}});
        return;
    }
}

void election_stale(struct election *e, int account)
{
    election__feed(e, &(struct elector_event){.type = ELECTOR_EV_STALE, .account = account});
}

void election_doubt(struct election *e, int account)
{
    election__feed(e, &(struct elector_event){.type = ELECTOR_EV_DOUBT, .account = account});
}

void election_saw(struct election *e, uint64_t block)
{
    if ((int64_t)block > e->block)
        e->block = (int64_t)block;
}

void election_best(struct election *e, uint64_t block, uint64_t finalized)
{
    heard_base(&e->heard, finalized);
    heard_add(&e->heard, block, loop_now_ms(e->loop));
    e->best = block;
}

void election_no_best(struct election *e)
{
    e->best = 0;
}

void election_place(struct election *e, int account, uint64_t place)
{
    elector_place(e->core, account, place);
}

void election_rotate(struct election *e, int account)
{
    election__feed(e, &(struct elector_event){.type = ELECTOR_EV_ROTATE, .account = account});
}

void election_hand_over(struct election *e, int account)
{
    election__feed(e, &(struct elector_event){.type = ELECTOR_EV_HAND_OVER, .account = account});
}

void election_retire(struct election *e)
{
    election__feed(e, &(struct elector_event){.type = ELECTOR_EV_RETIRE});
}

/* ---- questions ---- */

size_t election_members(const struct election *e)
{
    return elector_members(e->core);
}

bool election_gate(struct election *e, int account)
{
    return !e->closing && elector_gate(e->core, account, election__now(e));
}

const char *election_leader(const struct election *e, int account, const char **ret_address)
{
    if (ret_address)
        *ret_address = elector_address(e->core, account);
    return elector_holder(e->core, account);
}

uint64_t election_slow(const struct election *e, uint32_t *ret_lasts_ms)
{
    uint64_t waits = e->beat_sent ? election__now(e) - e->beat_sent : 0;
    uint64_t ms = waits > e->beat_ms ? waits : e->beat_ms;
    *ret_lasts_ms = e->config.core.expiry_1_ms - e->config.core.margin_ms;
    return ms > *ret_lasts_ms / 3 ? ms : 0;
}

bool election_unled(const struct election *e, int account, bool *ret_in_way, const char **ret_why)
{
    bool unled = elector_unled(e->core, account, ret_in_way);
    const struct candidate *c = e->candidates[account];
    *ret_why = "";
    for (size_t i = 0; i < ARRAY_LEN(c->said); i++)
        if (c->said[i].code)
            *ret_why = c->said[i].text;
    if (*ret_in_way && c->in_way[0])
        *ret_why = c->in_way;
    return unled;
}

void election_stats(const struct election *e, int account, struct election_stats *ret_stats)
{
    PRE(account >= 0 && (size_t)account < e->count);
    *ret_stats = e->candidates[account]->stats;
    ret_stats->state = elector_state(e->core, account);
    ret_stats->leaving = elector_leaving(e->core, account);
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
    e->block = -1;
    e->config.core = elector_config_defaults(&config->core);
    if (!e->config.core.seed)
        e->config.core.seed = loop_seed(l);
    e->config.core.hash = election_hash;
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
    e->serves ^= (int64_t)election_hash(&store_account, sizeof(store_account));
    return c->index;
}

void election_drain(struct election *e, void (*cb)(void *arg), void *arg)
{
    PRE(!e->drain_cb && !e->closing);
    e->drain_cb = cb;
    e->drain_arg = arg;
    election__feed(e, &(struct elector_event){.type = ELECTOR_EV_DRAIN});
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
