/* The door of the elector (election/election*.c) and the turns of session locks (store/store_pg_locks.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "election/election.h"
#include "sim.h"

/* ---- locks: the operations of one key take turns, what is known is not asked ---- */

static void lock_answered(struct world *w, struct stmt *s);

static void answer_now(struct world *w, struct event *e)
{
    struct stmt *s = e->p;
    void (**done)(struct world * w, struct stmt * s) = (void *)&s->after_id;
    (*done)(w, s);
    stmt_unref(s);
}

static void drop_stmt(struct event *e)
{
    stmt_unref(e->p);
}

static void answer_later(struct world *w, struct stmt *s)
{
    struct event *e = relay_at(w, s->relay, s->life, w->now, "lock answered", answer_now);
    e->p = s;
    e->drop = drop_stmt;
    e->account = s->account;
    e->a = (uint32_t)s->op;
}

static struct lock_entry *entry_of(struct world *w, const struct stmt *s)
{
    bool bell = s->op == OP_ARM || s->op == OP_DISARM;
    return &w->relays[s->relay].locks[bell ? KIND_BELL : KIND_ACCOUNT][s->account];
}

static struct lock_turn *turn_off(struct lock_entry *e)
{
    struct lock_turn *t = e->first;
    e->first = t->next;
    if (!e->first)
        e->end = &e->first;
    return t;
}

static void next_turn(struct world *w, struct relay *r, struct lock_entry *e)
{
    while (e->first) {
        struct stmt *s = e->first->stmt;
        if (e->first->take != e->held || (PLANTED(LOCK_STACKED) && e->first->take)) {
            stmt_send(w, &r->links[LINK_CONTROL], s);
            return;
        }
        s->ok = e->held;
        s->code = 0;
        free(turn_off(e));
        answer_later(w, s);
    }
}

/* The stmt's own callback is kept in a field that a lock does not use. */
static void keep_done(struct stmt *s)
{
    _Static_assert(sizeof(s->after_id) >= sizeof(s->done), "a pointer fits");
    memcpy(&s->after_id, &s->done, sizeof(s->done));
    s->done = lock_answered;
}

static void lock_answered(struct world *w, struct stmt *s)
{
    struct relay *r = &w->relays[s->relay];
    struct lock_entry *e = entry_of(w, s);
    struct lock_turn *t = turn_off(e);
    void (*done)(struct world * w, struct stmt * q);
    e->held = !s->code && t->take && s->ok;
    if (s->code)
        link_cut(w, &r->links[LINK_CONTROL], true); /* nothing to do when it is what failed */
    s->ok = e->held;
    free(t);
    next_turn(w, r, e);
    memcpy(&done, &s->after_id, sizeof(done));
    done(w, s);
}

void lock_request(struct world *w, struct relay *r, int kind, struct stmt *s, bool take)
{
    struct lock_entry *e = &r->locks[kind][s->account];
    keep_done(s);
    if (!r->store_up || !w->plan.use_lock) {
        s->code = r->store_up ? 0 : ERR_DB_UNAVAILABLE;
        s->ok = false;
        answer_later(w, s);
        return;
    }
    struct lock_turn *t = xcalloc(1, sizeof(*t));
    bool first = !e->first;
    t->stmt = s;
    t->take = take;
    *e->end = t;
    e->end = &t->next;
    if (first)
        next_turn(w, r, e);
}

void locks_lost(struct world *w, struct relay *r)
{
    for (int k = 0; k < KINDS; k++)
        for (int a = 0; a < w->plan.accounts; a++)
            r->locks[k][a].held = false;
}

/* The turn at the server belongs to its connection; those behind it are ours. */
void locks_free(struct relay *r)
{
    for (int k = 0; k < KINDS; k++)
        for (int a = 0; a < ACCOUNTS; a++) {
            struct lock_entry *e = &r->locks[k][a];
            for (bool at_server = true; e->first; at_server = false) {
                struct lock_turn *t = turn_off(e);
                if (!at_server)
                    stmt_unref(t->stmt);
                free(t);
            }
            e->held = false;
            e->first = NULL;
            e->end = &e->first;
        }
}

/* ---- requests ---- */

static struct relay *relay_of(struct world *w, const struct stmt *s)
{
    return &w->relays[s->relay];
}

static void send_control(struct world *w, struct relay *r, struct stmt *s)
{
    if (r->store_up) {
        stmt_send(w, &r->links[LINK_CONTROL], s);
        return;
    }
    keep_done(s);
    s->code = ERR_DB_UNAVAILABLE;
    answer_later(w, s);
}

static void on_lock(struct world *w, struct stmt *s)
{
    elect_feed(w, relay_of(w, s),
               &(struct elector_event){.type = ELECTOR_EV_LOCK_REPLY,
                                       .account = s->account,
                                       .failed = s->code != 0,
                                       .ok = !s->code && s->ok});
}

static void on_unlock(struct world *w, struct stmt *s)
{
    (void)w;
    (void)s;
}

static void on_claim(struct world *w, struct stmt *s)
{
    struct relay *r = relay_of(w, s);
    char holder[24];
    struct elector_event ev = {.type = ELECTOR_EV_CLAIM_REPLY, .account = s->account, .failed = s->code != 0};
    if (!s->code) {
        ev.ok = s->ok;
        ev.epoch = s->next_nonce;
        ev.holder = ev.address = holder_name(s->holder, holder);
        ev.lock_held = s->lock_held;
        ev.mid_submission = s->mid_submission;
        ev.expiry_1_left_ms = s->expiry_1_left_ms;
        ev.expiry_2_left_ms = s->expiry_2_left_ms;
        if (s->ok)
            r->accounts[s->account].renewed_sent = s->sent_at;
    }
    elect_feed(w, r, &ev);
}

static void on_renew(struct world *w, struct stmt *s)
{
    struct relay *r = relay_of(w, s);
    struct elector_event ev = {.type = ELECTOR_EV_RENEW_REPLY,
                               .count = s->count,
                               .accounts = s->accounts,
                               .renewed = s->renewed,
                               .failed = s->code != 0};
    for (size_t i = 0; i < s->count && !s->code; i++)
        if (s->renewed[i])
            r->accounts[s->accounts[i]].renewed_sent = s->sent_at;
    elect_feed(w, r, &ev);
}

static void on_release(struct world *w, struct stmt *s)
{
    elect_feed(w, relay_of(w, s),
               &(struct elector_event){
                   .type = ELECTOR_EV_RELEASE_REPLY, .account = s->account, .failed = s->code != 0});
}

static void on_evict(struct world *w, struct stmt *s)
{
    char holder[24];
    struct elector_event ev = {.type = ELECTOR_EV_EVICT_REPLY, .account = s->account, .failed = s->code != 0};
    if (!s->code) {
        ev.ok = s->ok;
        ev.holder = ev.address = holder_name(s->holder, holder);
        ev.epoch = s->next_nonce;
        ev.expiry_1_left_ms = s->expiry_1_left_ms;
    }
    elect_feed(w, relay_of(w, s), &ev);
}

static void on_scan(struct world *w, struct stmt *s)
{
    char holders[ACCOUNTS][24];
    for (size_t i = 0; i < s->count && !s->code; i++)
        s->seen[i].holder = s->seen[i].address = holder_name(s->holders[i], holders[i]);
    elect_feed(w, relay_of(w, s),
               &(struct elector_event){.type = ELECTOR_EV_SCAN_REPLY,
                                       .count = s->code ? 0 : s->count,
                                       .accounts = s->accounts,
                                       .seen = s->seen,
                                       .failed = s->code != 0});
}

static void start_scan(struct world *w, struct relay *r)
{
    const int *accounts;
    const int64_t *epochs;
    struct stmt *s = stmt_new(w, r, -1, OP_SCAN, on_scan);
    s->count = elector_scanning(r->elector, &accounts, &epochs);
    memcpy(s->accounts, accounts, s->count * sizeof(*accounts));
    memcpy(s->epochs, epochs, s->count * sizeof(*epochs));
    send_control(w, r, s);
}

static void start_renew(struct world *w, struct relay *r)
{
    const int *accounts;
    const int64_t *epochs;
    struct stmt *s = stmt_new(w, r, -1, OP_RENEW, on_renew);
    s->count = elector_renewing(r->elector, &accounts, &epochs);
    memcpy(s->accounts, accounts, s->count * sizeof(*accounts));
    memcpy(s->epochs, epochs, s->count * sizeof(*epochs));
    s->seen_block = r->saw;
    send_control(w, r, s);
}

/* Members are not in a table here: whoever runs may be seen, and may be missed. Nothing may depend on it. */
static void on_members(struct world *w, struct event *e)
{
    static const char *const names[] = {"r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"};
    const char *seen[RELAYS];
    struct elector_event ev = {.type = ELECTOR_EV_MEMBERS, .names = seen, .self = -1};
    _Static_assert(ARRAY_LEN(names) >= RELAYS, "a name for each");
    uint64_t best = 0;
    ev.failed = chance(w, 5);
    for (int i = 0; i < RELAYS; i++) {
        if (!w->relays[i].running || chance(w, 3))
            continue;
        if (w->relays[i].saw_best > best)
            best = w->relays[i].saw_best;
        if (i == e->relay)
            ev.self = (int)ev.count;
        seen[ev.count++] = names[i];
    }
    if (!ev.failed)
        door_expect_height(w, &w->relays[e->relay], best);
    elect_feed(w, &w->relays[e->relay], &ev);
}

static void beat(struct world *w, struct relay *r)
{
    relay_later(w, r, latency(w), "members", on_members);
}

static void hand_over(struct world *w, struct event *e)
{
    elect_feed(w, &w->relays[e->relay],
               &(struct elector_event){.type = ELECTOR_EV_HAND_OVER, .account = e->account});
}

static void leave(struct world *w, struct relay *r, int account)
{
    relay_later(w, r, between(w, MS, 2 * SECOND), "hand over", hand_over)->account = account;
}

static void drained(struct world *w, struct event *e)
{
    relay_drained(w, &w->relays[e->relay]);
}

static void carry_out(struct world *w, struct relay *r, const struct elector_effect *fx)
{
    struct stmt *s;
    switch (fx->type) {
    case ELECTOR_FX_LOCK:
        lock_request(w, r, KIND_ACCOUNT, stmt_new(w, r, fx->account, OP_LOCK, on_lock), true);
        return;
    case ELECTOR_FX_UNLOCK:
        if (!PLANTED(LOCK_STACKED))
            lock_request(w, r, KIND_ACCOUNT, stmt_new(w, r, fx->account, OP_UNLOCK, on_unlock), false);
        return;
    case ELECTOR_FX_CLAIM:
        s = stmt_new(w, r, fx->account, OP_CLAIM, on_claim);
        s->have_lock = fx->have_lock;
        send_control(w, r, s);
        return;
    case ELECTOR_FX_EVICT:
        send_control(w, r, stmt_new(w, r, fx->account, OP_EVICT, on_evict));
        return;
    case ELECTOR_FX_RELEASE:
        s = stmt_new(w, r, fx->account, OP_RELEASE, on_release);
        s->epoch = fx->epoch;
        send_control(w, r, s);
        return;
    case ELECTOR_FX_RENEW:
        start_renew(w, r);
        return;
    case ELECTOR_FX_SCAN:
        start_scan(w, r);
        return;
    case ELECTOR_FX_BEAT:
        if (!fx->leaving)
            beat(w, r);
        return;
    case ELECTOR_FX_LEAVE:
        leave(w, r, fx->account);
        return;
    case ELECTOR_FX_PROMOTE:
        account_promote(w, r, fx->account, fx->epoch);
        return;
    case ELECTOR_FX_DEMOTE:
        account_demote(w, r, fx->account);
        return;
    case ELECTOR_FX_GATE:
        note(w, "  r%d a%d gate %s", r->index, fx->account, fx->open ? "open" : "shut");
        if (fx->open && r->accounts[fx->account].leader)
            account_event(w, r, fx->account, &(struct manager_event){.type = MANAGER_EV_GATE_OPEN});
        return;
    case ELECTOR_FX_DRAINED:
        relay_later(w, r, 0, "drained", drained);
        return;
    }
    UNREACHABLE();
}

/* ---- the step ---- */

static void step(struct world *w, struct relay *r, const struct elector_event *ev)
{
    const struct elector_effect *fx;
    size_t count;
    elector_step(r->elector, local_ms(w, r), ev, &fx, &count);
    for (size_t i = 0; i < count; i++)
        carry_out(w, r, &fx[i]);
}

static void put_off(struct relay *r, const struct elector_event *ev)
{
    struct told *t = xcalloc(1, sizeof(*t));
    t->ev = *ev;
    if (ev->holder) {
        snprintf(t->holder, sizeof(t->holder), "%s", ev->holder);
        t->ev.holder = t->ev.address = t->holder;
    }
    *r->told_end = t;
    r->told_end = &t->next;
}

static void on_timer(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    if (timer_fired(&r->elector_timer, e))
        elect_feed(w, r, &(struct elector_event){.type = ELECTOR_EV_TICK});
}

void elect_feed(struct world *w, struct relay *r, const struct elector_event *ev)
{
    if (r->electing) {
        put_off(r, ev);
        return;
    }
    r->electing = true;
    step(w, r, ev);
    while (r->told) {
        struct told *t = r->told;
        r->told = t->next;
        if (!r->told)
            r->told_end = &r->told;
        step(w, r, &t->ev);
        free(t);
    }
    r->electing = false;
    timer_set(w, r, &r->elector_timer, elector_deadline(r->elector), -1, "elector's timer", on_timer);
}

void elect_start(struct world *w, struct relay *r)
{
    struct elector_config config = {.use_lock = w->plan.use_lock,
                                    .expiry_1_ms = w->plan.expiry_1_ms,
                                    .expiry_2_ms = w->plan.expiry_2_ms,
                                    .bid_min_ms = 250,
                                    .bid_max_ms = 750,
                                    .ring = chance(w, 30),
                                    .seed = rng_next(&w->rng),
                                    .hash = election_hash};
    r->elector = elector_new(&config);
    r->elector_timer.at = NEVER;
    r->told = NULL;
    r->told_end = &r->told;
    r->electing = false;
}
