/* Several electors against one modelled database, with everything that can go wrong between them:
 * sessions that end, replies that never come, processes that stop and go on, stores that come and
 * go, drains, errors.
 *
 * Claim, at every event of every seed: under real time at most one relay has an account's gate
 * open; the epochs of promotions rise; and when the faults end, every account gets a leader.
 *
 * The one exception is stated, not hidden: with locks, a session that ended frees its lock at once,
 * and its owner goes on until it hears of it. In that moment the epoch is what protects (I3, I4),
 * and the model checks that none of its writes is accepted once another relay has claimed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/rng.h"
#include "election/core/elector.h"
#include "election/election.h"

enum {
    RELAYS = 4,
    ACCOUNTS = 2,
    HEARTBEAT = 200,
    EXPIRY_1 = 1000,
    EXPIRY_2 = 3000,
    MARGIN = 200,
    ORPHAN_MS = 2000, /* a lock without a claim is left alone for so long */
    FAULTS_END = 60000,
    CALM_MS = 12000,
};

/* ---- the database ---- */

struct row {
    int claimant; /* incarnation of a relay, 0: free */
    bool lock_held;
    int lock_session;
    int64_t epoch;
    uint64_t expiry_1, expiry_2;
    int locked_by; /* session, 0: nobody */
    uint64_t locked_at;
    bool mid_submission;
};

/* ---- a relay ---- */

enum wire_kind {
    W_NONE,
    W_LOCK,
    W_UNLOCK,
    W_CLAIM,
    W_EVICT,
    W_RELEASE,
    W_RENEW,
    W_SCAN,
    W_WRITE,
    W_REPLY,       /* carries an event to the relay */
    W_FAILED,      /* the store answers by itself: not connected */
    W_CONTROL_END, /* the relay hears that its control session is gone */
    W_STORE_DOWN,
    W_STORE_UP,
    W_NOTIFY,
    W_MEMBERS,
    W_HAND_OVER,
    W_RESUME,
    W_START,
};

struct message {
    bool used;
    uint64_t at, seq;
    enum wire_kind kind;
    int relay, incarnation, session;
    struct elector_event ev; /* also the request's account */
    int64_t epoch;           /* of a release or a write */
    bool have_lock;
    size_t count;
    int accounts[ACCOUNTS];
    int64_t epochs[ACCOUNTS];
    bool renewed[ACCOUNTS];
    struct elector_view seen[ACCOUNTS];
};

struct relay {
    struct elector *e; /* NULL: not running */
    bool use_lock, paused, draining, drained, up;
    int incarnation, session; /* session 0: none */
    bool session_dead;        /* ended, and the relay has not heard of it */
    uint64_t paused_until;
    uint64_t last_request, last_reply; /* order of the session */
    enum wire_kind op[ACCOUNTS];       /* in flight; W_NONE: nothing */
    bool renewing, scanning;
    bool holds[ACCOUNTS]; /* its own view: to catch stacked locks */
    bool gate[ACCOUNTS];  /* as told by edges */
    int64_t epoch[ACCOUNTS];
};

enum lock_mode { LOCKS_ON, LOCKS_OFF, LOCKS_MIXED };

struct world {
    struct rng rng;
    uint64_t now, seq, seed;
    struct row rows[ACCOUNTS];
    struct relay relays[RELAYS];
    struct message *messages;
    size_t count, cap;
    int next_session, next_incarnation;
    int64_t last_promoted[ACCOUNTS];
    bool faults;
    enum lock_mode mode;
    uint64_t promotions, steps;
};

static uint32_t moved; /* by all relays of all worlds */

#define CHECK(w, cond)                                                                             \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            print_error("seed %llu mode %d at %llu: %s\n", (unsigned long long)(w)->seed,          \
                        (int)(w)->mode, (unsigned long long)(w)->now, #cond);                      \
            assert_true(cond);                                                                     \
        }                                                                                          \
    } while (0)

static bool chance(struct world *w, uint64_t percent)
{
    return rng_below(&w->rng, 100) < percent;
}

static struct message *post(struct world *w, uint64_t at, enum wire_kind kind, int relay)
{
    struct message *m = NULL;
    for (size_t i = 0; i < w->count && !m; i++)
        if (!w->messages[i].used)
            m = &w->messages[i];
    if (!m) {
        if (w->count == w->cap) {
            w->cap = w->cap ? w->cap * 2 : 64;
            w->messages = xrealloc(w->messages, w->cap * sizeof(*w->messages));
        }
        m = &w->messages[w->count++];
    }
    *m = (struct message){.used = true,
                          .at = at,
                          .seq = w->seq++,
                          .kind = kind,
                          .relay = relay,
                          .incarnation = w->relays[relay].incarnation,
                          .session = w->relays[relay].session};
    return m;
}

static uint64_t latency(struct world *w)
{
    if (w->faults && chance(w, 3))
        return rng_between(&w->rng, 50, 1500); /* a slow database or network */
    return rng_between(&w->rng, 0, 5);
}

static uint64_t in_order(uint64_t *last, uint64_t at)
{
    if (at < *last)
        at = *last;
    return *last = at;
}

/* ---- effects of a relay become requests ---- */

static void step(struct world *w, int relay, struct elector_event ev);

static const enum elector_event_type reply_types[] = {
    [W_LOCK] = ELECTOR_EV_LOCK_REPLY,       [W_CLAIM] = ELECTOR_EV_CLAIM_REPLY,
    [W_EVICT] = ELECTOR_EV_EVICT_REPLY,     [W_RENEW] = ELECTOR_EV_RENEW_REPLY,
    [W_RELEASE] = ELECTOR_EV_RELEASE_REPLY, [W_SCAN] = ELECTOR_EV_SCAN_REPLY,
};

static void request(struct world *w, int relay, enum wire_kind kind,
                    const struct elector_effect *fx)
{
    struct relay *r = &w->relays[relay];
    if (!r->session) { /* between the loss of the connection and the news of it */
        if (kind != W_UNLOCK)
            post(w, w->now, W_FAILED, relay)->ev = (struct elector_event){
                .type = reply_types[kind], .account = fx->account, .failed = true};
        return;
    }
    struct message *m = post(w, in_order(&r->last_request, w->now + latency(w)), kind, relay);
    m->ev.account = fx->account;
    m->epoch = kind == W_RELEASE || kind == W_WRITE ? fx->epoch : 0;
    m->have_lock = kind == W_CLAIM && fx->have_lock;
    if (kind != W_RENEW && kind != W_SCAN)
        return;
    const int *accounts;
    const int64_t *epochs;
    m->count = kind == W_RENEW ? elector_renewing(r->e, &accounts, &epochs)
                               : elector_scanning(r->e, &accounts, &epochs);
    CHECK(w, m->count > 0 && m->count <= ACCOUNTS);
    memcpy(m->accounts, accounts, m->count * sizeof(*accounts));
    memcpy(m->epochs, epochs, m->count * sizeof(*epochs));
}

static void start_op(struct world *w, int relay, enum wire_kind kind,
                     const struct elector_effect *fx)
{
    struct relay *r = &w->relays[relay];
    CHECK(w, r->op[fx->account] == W_NONE); /* one request of an account at a time */
    CHECK(w, r->up);
    r->op[fx->account] = kind;
    request(w, relay, kind, fx);
}

static void effect(struct world *w, int relay, const struct elector_effect *fx)
{
    struct relay *r = &w->relays[relay];
    int a = fx->account;
    switch (fx->type) {
    case ELECTOR_FX_LOCK:
        CHECK(w, !r->holds[a]); /* never stacked */
        CHECK(w, r->use_lock && !r->draining);
        start_op(w, relay, W_LOCK, fx);
        return;
    case ELECTOR_FX_UNLOCK:
        CHECK(w, r->holds[a]);
        r->holds[a] = false;
        request(w, relay, W_UNLOCK, fx);
        return;
    case ELECTOR_FX_CLAIM:
        CHECK(w, fx->have_lock == r->holds[a] && r->use_lock == fx->have_lock);
        start_op(w, relay, W_CLAIM, fx);
        return;
    case ELECTOR_FX_EVICT:
        CHECK(w, r->use_lock && !r->holds[a]);
        start_op(w, relay, W_EVICT, fx);
        return;
    case ELECTOR_FX_RELEASE:
        CHECK(w, !r->gate[a]);
        start_op(w, relay, W_RELEASE, fx);
        return;
    case ELECTOR_FX_RENEW:
        CHECK(w, !r->renewing);
        r->renewing = true;
        request(w, relay, W_RENEW, fx);
        return;
    case ELECTOR_FX_SCAN:
        CHECK(w, !r->scanning && r->up && !r->draining); /* one in flight, for all accounts */
        r->scanning = true;
        request(w, relay, W_SCAN, fx);
        return;
    case ELECTOR_FX_HEARTBEAT:
        if (!fx->leaving)
            post(w, w->now + latency(w), W_MEMBERS, relay);
        return;
    case ELECTOR_FX_LEAVE:
        CHECK(w, r->epoch[a] && !r->drained);
        post(w, w->now + rng_between(&w->rng, 0, 1500), W_HAND_OVER, relay)->ev.account = a;
        return;
    case ELECTOR_FX_PROMOTE:
        CHECK(w, r->epoch[a] == 0 && !r->draining);
        CHECK(w, r->session_dead || fx->epoch > w->last_promoted[a]);
        if (fx->epoch > w->last_promoted[a])
            w->last_promoted[a] = fx->epoch;
        r->epoch[a] = fx->epoch;
        w->promotions++;
        return;
    case ELECTOR_FX_DEMOTE:
        CHECK(w, r->epoch[a] == fx->demoted.epoch && !r->gate[a]); /* the gate shut first */
        r->epoch[a] = 0;
        return;
    case ELECTOR_FX_GATE:
        CHECK(w, r->gate[a] != fx->gate.open); /* edges, once */
        CHECK(w, !fx->gate.open || r->epoch[a]);
        r->gate[a] = fx->gate.open;
        return;
    case ELECTOR_FX_DRAINED:
        CHECK(w, r->draining && !r->drained);
        r->drained = true;
        return;
    }
}

static void check_gates(struct world *w);

static void step(struct world *w, int relay, struct elector_event ev)
{
    struct relay *r = &w->relays[relay];
    const struct elector_effect *fx;
    size_t count;
    w->steps++;
    elector_step(r->e, w->now, &ev, &fx, &count);
    elector_check(r->e);
    for (size_t i = 0; i < count; i++)
        effect(w, relay, &fx[i]);
    for (int a = 0; a < ACCOUNTS;
         a++) /* the edges tell what the question answers, now that time was looked at */
        CHECK(w, elector_gate(r->e, a, w->now) == r->gate[a]);
    check_gates(w);
}

/* ---- the database answers ---- */

static bool expired(const struct world *w, const struct row *t)
{
    return t->expiry_2 <= w->now || (t->expiry_1 <= w->now && !t->mid_submission);
}

static void notify(struct world *w, int account)
{
    for (int i = 0; i < RELAYS; i++) {
        if (!w->relays[i].e || (w->faults && chance(w, 20)))
            continue; /* lost */
        struct message *m = post(w, w->now + latency(w), W_NOTIFY, i);
        m->ev = (struct elector_event){
            .type = ELECTOR_EV_LEADER_CHANGE,
            .account = account,
            .change = {.epoch = w->rows[account].epoch,
                       .holder = w->rows[account].claimant ? "somebody" : ""}};
    }
}

static void end_session(struct world *w, int relay)
{
    struct relay *r = &w->relays[relay];
    if (!r->session || r->session_dead)
        return;
    for (int a = 0; a < ACCOUNTS; a++)
        if (w->rows[a].locked_by == r->session)
            w->rows[a].locked_by = 0;
    r->session_dead = true;
    post(w, in_order(&r->last_reply, w->now + latency(w)), W_CONTROL_END, relay);
}

static void answer_claim(struct world *w, const struct message *m, struct elector_event *ev)
{
    struct row *t = &w->rows[m->ev.account];
    CHECK(w, !m->have_lock || t->locked_by == m->session);
    bool granted = !t->claimant || t->claimant == m->incarnation ||
                   (t->lock_held && m->have_lock) || expired(w, t);
    if (granted) {
        t->claimant = m->incarnation;
        t->lock_held = m->have_lock;
        t->lock_session = m->have_lock ? m->session : 0;
        t->epoch++;
        t->expiry_1 = w->now + EXPIRY_1;
        t->expiry_2 = w->now + EXPIRY_2;
        notify(w, m->ev.account);
    }
    ev->claim.granted = granted;
    ev->claim.epoch = t->epoch;
    ev->claim.holder = "somebody";
}

static void answer_evict(struct world *w, const struct message *m, struct elector_event *ev)
{
    struct row *t = &w->rows[m->ev.account];
    bool foreign = !t->claimant || t->lock_session != t->locked_by;
    if ((t->claimant && !expired(w, t)) || !t->locked_by ||
        (foreign && t->locked_at + ORPHAN_MS > w->now)) {
        ev->evict.holder = t->claimant ? "somebody" : "";
        return;
    }
    CHECK(w, t->locked_by != m->session);
    for (int i = 0; i < RELAYS; i++)
        if (w->relays[i].session == t->locked_by)
            end_session(w, i);
    ev->evict.terminated = true;
}

static void answer_renew(struct world *w, struct message *m, struct message *reply)
{
    bool use_lock = w->relays[m->relay].use_lock;
    for (size_t i = 0; i < m->count; i++) {
        struct row *t = &w->rows[m->accounts[i]];
        reply->renewed[i] = t->claimant == m->incarnation && t->epoch == m->epochs[i] &&
                            (!use_lock || t->locked_by == m->session);
        reply->accounts[i] = m->accounts[i];
        if (reply->renewed[i]) {
            t->expiry_1 = w->now + EXPIRY_1;
            t->expiry_2 = w->now + EXPIRY_2;
        }
    }
    reply->count = m->count;
}

/* Writes nothing; rows that say nothing new are left out. */
static void answer_scan(struct world *w, struct message *m, struct message *reply)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct row *t = &w->rows[m->accounts[i]];
        bool taken = t->locked_by != 0;
        bool in_force = t->claimant && t->expiry_1 > w->now && (taken || !t->lock_held);
        if (in_force && t->epoch == m->epochs[i])
            continue;
        reply->accounts[reply->count] = m->accounts[i];
        reply->seen[reply->count++] =
            (struct elector_view){.taken = taken,
                                  .mine = t->claimant == m->incarnation,
                                  .lock_held = t->lock_held,
                                  .holder = t->claimant ? "somebody" : "",
                                  .epoch = t->epoch,
                                  .expiry_1_left_ms = (int64_t)(t->expiry_1 - w->now),
                                  .expiry_2_left_ms = (int64_t)(t->expiry_2 - w->now)};
    }
}

/* A request arrived at the database: carried out, and its answer is on the way. */
static void execute(struct world *w, struct message m)
{
    struct relay *r = &w->relays[m.relay];
    if (m.incarnation != r->incarnation || m.session != r->session || r->session_dead)
        return; /* the session is gone; the relay hears of it */
    struct row *t = &w->rows[m.ev.account >= 0 ? m.ev.account : 0];
    if (m.kind == W_UNLOCK) {
        if (t->locked_by == m.session)
            t->locked_by = 0;
        return;
    }
    struct message reply = {.ev = {.account = m.ev.account}};
    struct elector_event *ev = &reply.ev;
    bool error = w->faults && chance(w, 2); /* refused by the server: nothing was done */
    ev->failed = error;
    switch ((int)m.kind) {
    case W_LOCK:
        ev->type = ELECTOR_EV_LOCK_REPLY;
        if (!error && (!t->locked_by || t->locked_by == m.session)) {
            CHECK(w, t->locked_by == 0); /* stacked at the server */
            t->locked_by = m.session;
            t->locked_at = w->now;
            ev->lock.got = true;
        }
        break;
    case W_CLAIM:
        ev->type = ELECTOR_EV_CLAIM_REPLY;
        if (!error)
            answer_claim(w, &m, ev);
        break;
    case W_EVICT:
        ev->type = ELECTOR_EV_EVICT_REPLY;
        if (!error)
            answer_evict(w, &m, ev);
        break;
    case W_RELEASE:
        ev->type = ELECTOR_EV_RELEASE_REPLY;
        if (!error && t->claimant == m.incarnation && t->epoch == m.epoch) {
            t->claimant = 0;
            t->lock_held = false;
            t->lock_session = 0;
            notify(w, m.ev.account);
        }
        break;
    case W_RENEW:
        ev->type = ELECTOR_EV_RENEW_REPLY;
        if (!error)
            answer_renew(w, &m, &reply);
        break;
    case W_SCAN:
        ev->type = ELECTOR_EV_SCAN_REPLY;
        if (!error)
            answer_scan(w, &m, &reply);
        break;
    case W_WRITE:
        ev->type = ELECTOR_EV_STALE;
        ev->stale_epoch = m.epoch;
        if (error || (t->claimant == m.incarnation && t->epoch == m.epoch))
            return; /* accepted: I4 is the condition itself */
        break;
    default:
        UNREACHABLE();
    }
    struct message *sent = post(w, in_order(&r->last_reply, w->now + latency(w)), W_REPLY, m.relay);
    sent->ev = reply.ev;
    sent->count = reply.count;
    memcpy(sent->accounts, reply.accounts, sizeof(reply.accounts));
    memcpy(sent->renewed, reply.renewed, sizeof(reply.renewed));
    memcpy(sent->seen, reply.seen, sizeof(reply.seen));
}

/* ---- what reaches a relay ---- */

static void reply(struct world *w, struct message *m)
{
    struct relay *r = &w->relays[m->relay];
    struct elector_event ev = m->ev;
    if (ev.type == ELECTOR_EV_RENEW_REPLY) {
        r->renewing = false;
        ev.renew.accounts = m->accounts;
        ev.renew.renewed = m->renewed;
        ev.renew.count = m->count;
    } else if (ev.type == ELECTOR_EV_SCAN_REPLY) {
        r->scanning = false;
        ev.scan.accounts = m->accounts;
        ev.scan.seen = m->seen;
        ev.scan.count = m->count;
    } else if (ev.type != ELECTOR_EV_STALE) {
        r->op[ev.account] = W_NONE;
        if (ev.type == ELECTOR_EV_LOCK_REPLY)
            r->holds[ev.account] = !ev.failed && ev.lock.got;
    }
    step(w, m->relay, ev);
}

static void fail_all(struct world *w, int relay)
{
    struct relay *r = &w->relays[relay];
    enum wire_kind op[ACCOUNTS];
    bool renewing = r->renewing, scanning = r->scanning;
    memcpy(op, r->op, sizeof(op));
    for (int a = 0; a < ACCOUNTS; a++) {
        if (op[a] == W_NONE)
            continue;
        r->op[a] = W_NONE;
        step(w, relay,
             (struct elector_event){.type = reply_types[op[a]], .account = a, .failed = true});
    }
    if (renewing) {
        r->renewing = false;
        step(w, relay, (struct elector_event){.type = ELECTOR_EV_RENEW_REPLY, .failed = true});
    }
    if (scanning) {
        r->scanning = false;
        step(w, relay, (struct elector_event){.type = ELECTOR_EV_SCAN_REPLY, .failed = true});
    }
}

/* What is in flight fails and the loss is told, in either order; then the state. */
static void control_end(struct world *w, int relay)
{
    struct relay *r = &w->relays[relay];
    bool loss_first = chance(w, 50);
    r->session = 0;
    if (!loss_first)
        fail_all(w, relay);
    memset(r->holds, 0, sizeof(r->holds));
    r->up = false;
    step(w, relay, (struct elector_event){.type = ELECTOR_EV_CONTROL_LOST});
    r->session_dead = false;
    if (loss_first)
        fail_all(w, relay);
    step(w, relay, (struct elector_event){.type = ELECTOR_EV_STORE_DOWN});
    post(w, w->now + rng_between(&w->rng, 10, 800), W_STORE_UP, relay);
}

/* Who lives, as some list that may be wrong says: no rule may depend on it. */
static void members(struct world *w, int relay)
{
    static const char *const names[RELAYS] = {"a", "b", "c", "d"};
    const char *seen[RELAYS];
    struct elector_event ev = {.type = ELECTOR_EV_MEMBERS, .members = {.names = seen, .self = -1}};
    ev.failed = w->faults && chance(w, 5);
    for (int i = 0; i < RELAYS; i++) {
        if (!w->relays[i].e || w->relays[i].draining || (w->faults && chance(w, 1)))
            continue;
        if (i == relay)
            ev.members.self = (int)ev.members.count;
        seen[ev.members.count++] = names[i];
    }
    step(w, relay, ev);
}

static void start_relay(struct world *w, int relay)
{
    struct relay *r = &w->relays[relay];
    bool use_lock = w->mode == LOCKS_ON || (w->mode == LOCKS_MIXED && relay % 2 == 0);
    struct elector_config config = {.use_lock = use_lock,
                                    .heartbeat_ms = HEARTBEAT,
                                    .expiry_1_ms = EXPIRY_1,
                                    .expiry_2_ms = EXPIRY_2,
                                    .margin_ms = MARGIN,
                                    .bid_min_ms = 100,
                                    .bid_max_ms = 300,
                                    .ring = w->seed % 2,
                                    .rotate = w->seed % 8 == 3,
                                    .hash = election_hash,
                                    .seed = rng_next(&w->rng)};
    *r = (struct relay){
        .use_lock = use_lock, .incarnation = ++w->next_incarnation, .e = elector_new(&config)};
    for (int a = 0; a < ACCOUNTS; a++)
        elector_add(r->e);
    post(w, w->now + rng_between(&w->rng, 0, 100), W_STORE_UP, relay);
}

static void crash(struct world *w, int relay)
{
    struct relay *r = &w->relays[relay];
    for (int a = 0; a < ACCOUNTS; a++)
        if (r->session && w->rows[a].locked_by == r->session)
            w->rows[a].locked_by = 0;
    moved |= elector_moved(r->e);
    r->e = elector_free(r->e);
    *r = (struct relay){.incarnation = ++w->next_incarnation};
    post(w, w->now + rng_between(&w->rng, 100, 4000), W_START, relay);
}

static void deliver(struct world *w, struct message *m)
{
    struct relay *r = &w->relays[m->relay];
    if (m->incarnation != r->incarnation)
        return;
    bool of_session = m->kind == W_REPLY || m->kind == W_CONTROL_END;
    if (of_session && m->session != r->session)
        return;
    switch ((int)m->kind) {
    case W_REPLY:
    case W_FAILED:
        reply(w, m);
        return;
    case W_CONTROL_END:
        control_end(w, m->relay);
        return;
    case W_STORE_DOWN:
        if (!r->session || !r->up)
            return;
        r->up = false;
        step(w, m->relay, (struct elector_event){.type = ELECTOR_EV_STORE_DOWN});
        post(w, w->now + rng_between(&w->rng, 10, 3000), W_STORE_UP, m->relay);
        return;
    case W_STORE_UP:
        if (r->up)
            return;
        if (!r->session)
            r->session = ++w->next_session;
        r->up = true;
        step(w, m->relay, (struct elector_event){.type = ELECTOR_EV_STORE_UP});
        return;
    case W_MEMBERS:
        members(w, m->relay);
        return;
    case W_HAND_OVER:
        step(w, m->relay,
             (struct elector_event){.type = ELECTOR_EV_HAND_OVER, .account = m->ev.account});
        return;
    case W_NOTIFY:
        step(w, m->relay, m->ev);
        return;
    default:
        UNREACHABLE();
    }
}

/* ---- time ---- */

static void check_gates(struct world *w)
{
    for (int a = 0; a < ACCOUNTS; a++) {
        int open = 0;
        for (int i = 0; i < RELAYS; i++) {
            const struct relay *r = &w->relays[i];
            bool deaf = r->use_lock && r->session_dead; /* the exception at the head of this file */
            if (r->e && !deaf && elector_gate(r->e, a, w->now))
                open++;
        }
        CHECK(w, open <= 1);
    }
}

static void fault(struct world *w)
{
    int i = (int)rng_below(&w->rng, RELAYS);
    struct relay *r = &w->relays[i];
    w->rows[rng_below(&w->rng, ACCOUNTS)].mid_submission = chance(w, 50);
    if (!r->e)
        return;
    switch (rng_below(&w->rng, 10)) {
    case 9: /* a write whose outcome is not known */
        if (!r->paused)
            step(w, i,
                 (struct elector_event){.type = ELECTOR_EV_DOUBT,
                                        .account = (int)rng_below(&w->rng, ACCOUNTS)});
        return;
    case 8:
        if (!r->paused)
            step(w, i,
                 (struct elector_event){.type = ELECTOR_EV_ROTATE,
                                        .account = (int)rng_below(&w->rng, ACCOUNTS)});
        return;
    case 0:
        end_session(w, i);
        return;
    case 1: /* the database restarts */
        for (int k = 0; k < RELAYS; k++)
            if (chance(w, 80))
                end_session(w, k);
        return;
    case 2:
    case 3: /* SIGSTOP */
        r->paused = true;
        r->paused_until = w->now + rng_between(&w->rng, 50, chance(w, 50) ? 900 : 8000);
        return;
    case 4:
        post(w, w->now, W_STORE_DOWN, i);
        return;
    case 5:
        if (chance(w, 50))
            crash(w, i);
        return;
    case 6:
        if (!r->draining && !r->paused) {
            r->draining = true;
            if (chance(w, 50))
                step(w, i, (struct elector_event){.type = ELECTOR_EV_RETIRE});
            step(w, i, (struct elector_event){.type = ELECTOR_EV_DRAIN});
        }
        return;
    default:
        for (int a = 0; a < ACCOUNTS;
             a++) /* a leader writes, perhaps long after it looked at its epoch */
            if (r->epoch[a] && r->session && !r->paused) {
                struct elector_effect fx = {.account = a, .epoch = r->epoch[a]};
                request(w, i, W_WRITE, &fx);
            }
    }
}

/* The next message that can be delivered: those of a stopped relay wait until it goes on. */
static struct message *next_message(struct world *w)
{
    struct message *best = NULL;
    for (size_t i = 0; i < w->count; i++) {
        struct message *m = &w->messages[i];
        if (!m->used)
            continue;
        struct relay *r = &w->relays[m->relay];
        bool to_relay = m->kind >= W_REPLY;
        if (to_relay && r->paused && r->incarnation == m->incarnation && m->at < r->paused_until)
            m->at = r->paused_until;
        if (!best || m->at < best->at || (m->at == best->at && m->seq < best->seq))
            best = m;
    }
    return best;
}

static void advance(struct world *w, uint64_t now)
{
    w->now = now;
    for (int i = 0; i < RELAYS; i++)
        if (w->relays[i].paused && w->relays[i].paused_until <= now)
            w->relays[i].paused = false;
}

/* One event: a message or a timer, whichever is first. A relay that was just woken may see either
 * first. */
static void run_one(struct world *w, uint64_t until)
{
    struct message *m = next_message(w);
    uint64_t at = m && m->at < until ? m->at : until;
    int ticking = -1;
    for (int i = 0; i < RELAYS; i++) {
        struct relay *r = &w->relays[i];
        uint64_t due = r->e ? elector_deadline(r->e) : UINT64_MAX;
        if (r->paused && due < r->paused_until)
            due = r->paused_until;
        if (due < w->now)
            due = w->now;
        if (due < at || (due == at && due < until && chance(w, 50))) {
            at = due;
            ticking = i;
        }
    }
    advance(w, at);
    check_gates(w);
    if (ticking >= 0) {
        step(w, ticking, (struct elector_event){.type = ELECTOR_EV_TICK});
    } else if (m && m->at <= at) {
        struct message copy = *m;
        m->used = false;
        if (copy.kind == W_START) {
            if (copy.incarnation == w->relays[copy.relay].incarnation)
                start_relay(w, copy.relay);
        } else if (copy.kind < W_REPLY) {
            execute(w, copy);
        } else {
            deliver(w, &copy);
        }
        /* A drained relay leaves, and another one takes its place. */
        struct relay *r = &w->relays[copy.relay];
        if (r->e && r->drained)
            crash(w, copy.relay);
    }
}

static void check_live(struct world *w)
{
    for (int a = 0; a < ACCOUNTS; a++) {
        int open = 0;
        for (int i = 0; i < RELAYS; i++)
            open += w->relays[i].e && elector_gate(w->relays[i].e, a, w->now);
        CHECK(w, open == 1);
    }
}

static void run_seed(uint64_t seed, enum lock_mode mode, uint64_t *ret_promotions)
{
    struct world w = {
        .seed = seed, .rng = {.state = seed * 2654435761u + (uint64_t)mode}, .mode = mode};
    w.faults = true;
    w.now = 1000;
    for (int i = 0; i < RELAYS; i++)
        start_relay(&w, i);
    for (uint64_t next = w.now; w.now < FAULTS_END;) {
        next = w.now + rng_between(&w.rng, 1, 1200);
        while (w.now < next)
            run_one(&w, next);
        fault(&w);
    }
    w.faults = false;
    for (int i = 0; i < RELAYS; i++)
        w.relays[i].paused = w.relays[i].paused && w.relays[i].paused_until < w.now + 1000;
    while (w.now < FAULTS_END + CALM_MS + 3000)
        run_one(&w, FAULTS_END + CALM_MS + 3000);
    check_live(&w);
    *ret_promotions += w.promotions;
    for (int i = 0; i < RELAYS; i++)
        if (w.relays[i].e)
            crash(&w, i);
    free(w.messages);
}

static void run_mode(enum lock_mode mode)
{
    const char *text = getenv("ELECTOR_SEEDS"); /* more, for a long run */
    uint64_t seeds = text ? strtoull(text, NULL, 10) : 150, promotions = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++)
        run_seed(seed, mode, &promotions);
    assert_true(promotions > seeds * 5); /* the faults did move leadership */
}

static void with_locks(void **state)
{
    (void)state;
    run_mode(LOCKS_ON);
}

static void without_locks(void **state)
{
    (void)state;
    run_mode(LOCKS_OFF);
}

static void mixed(void **state)
{
    (void)state;
    run_mode(LOCKS_MIXED);
}

/* The table, and with it the diagram, has no arrow that nobody ever goes along. */
static void every_move_is_made(void **state)
{
    (void)state;
    struct buf missing = {0};
    elector_moves_missing(moved, &missing);
    assert_string_equal(buf_str(&missing), "");
    elector_moves_missing(moved & (moved - 1), &missing); /* it can fail */
    assert_string_not_equal(buf_str(&missing), "");
    buf_done(&missing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_locks),
        cmocka_unit_test(without_locks),
        cmocka_unit_test(mixed),
        cmocka_unit_test(every_move_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
