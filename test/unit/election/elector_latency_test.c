/* One healthy relay and slow sessions: whatever the latency of its control session, the duration of
 * the statements of its work session, and the order of the two, it keeps its accounts; or it can
 * say that the control session is too slow.
 *
 * The database is modelled by the rules of 11_leadership.sql that row locks take part in. A
 * statement of the work session locks the row of its account for as long as it runs, and other
 * statements wait for that up to lock_timeout. The former rule, a claim that joins the lease only
 * with its first renewal, is a parameter of the model: under it the same grid finds leaders that
 * lose accounts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "election/core/elector.h"
#include "election/election.h"

enum { ACCOUNTS = 3, LOCK_TIMEOUT = 500, RUN_MS = 40000, WIRE_MAX = 64 };

/* What is under way on the control session: first to the database, then back. */
struct wire {
    uint64_t at;
    bool back;
    enum elector_effect_type kind;
    int account;
    size_t count;
    int accounts[ACCOUNTS];
    int64_t epochs[ACCOUNTS], epoch;
    bool renewed[ACCOUNTS], granted;
};

struct row {
    bool claimed, leased;
    int64_t epoch;
    uint64_t claimed_at, locked_until;
};

/* The worst of each setting that elector_config_check takes, and the defaults. */
static const struct elector_config configs[] = {
    {.use_lock = true},
    {.use_lock = true, .heartbeat_ms = 1666},
    {.use_lock = true, .expiry_1_ms = 1000, .margin_ms = 100, .heartbeat_ms = 375},
    {.use_lock = true, .expiry_1_ms = 5000, .margin_ms = 4000, .heartbeat_ms = 100},
    {.use_lock = false},
    {.use_lock = false, .heartbeat_ms = 1666, .bid_min_ms = 1, .bid_max_ms = 1},
};

struct world {
    struct elector *e;
    struct elector_config config;
    uint64_t now, one_way, server_free, last_back;
    uint64_t work_after,
        work_ms;     /* a statement begins so long after the promotion, and runs so long */
    bool joins_late; /* the former rule */
    struct row rows[ACCOUNTS];
    uint64_t lease_beat; /* 0: there is no lease */
    struct wire wires[WIRE_MAX];
    size_t wire_count;
    uint64_t work_at[ACCOUNTS]; /* the next one; 0: none */
    unsigned promoted, lost;
};

/* ---- the control session ---- */

static struct wire *put(struct world *w, const struct wire *m)
{
    INVARIANT(w->wire_count < WIRE_MAX);
    w->wires[w->wire_count] = *m;
    return &w->wires[w->wire_count++];
}

static void request(struct world *w, const struct elector_effect *fx)
{
    struct wire m = {.at = w->now + w->one_way, .kind = fx->type, .account = fx->account};
    const int *accounts;
    const int64_t *epochs;
    if (fx->type == ELECTOR_FX_RELEASE)
        m.epoch = fx->epoch;
    if (fx->type == ELECTOR_FX_RENEW || fx->type == ELECTOR_FX_SCAN) {
        m.count = fx->type == ELECTOR_FX_RENEW ? elector_renewing(w->e, &accounts, &epochs)
                                               : elector_scanning(w->e, &accounts, &epochs);
        memcpy(m.accounts, accounts, m.count * sizeof(*accounts));
        memcpy(m.epochs, epochs, m.count * sizeof(*epochs));
    }
    put(w, &m);
}

/* When the row is free, or that the wait was given up. */
static bool waits(const struct row *r, uint64_t *at)
{
    if (r->locked_until <= *at)
        return true;
    bool gets = r->locked_until <= *at + LOCK_TIMEOUT;
    *at = gets ? r->locked_until : *at + LOCK_TIMEOUT;
    return gets;
}

static void claim(struct world *w, struct wire *m, uint64_t *at)
{
    struct row *r = &w->rows[m->account];
    m->granted = waits(r, at);
    if (m->granted) {
        *r = (struct row){.claimed = true,
                          .leased = !w->joins_late,
                          .epoch = r->epoch + 1,
                          .claimed_at = *at,
                          .locked_until = r->locked_until};
        if (!w->lease_beat)
            w->lease_beat = *at;
    }
    m->epoch = r->epoch;
}

static bool names(const struct wire *m, const struct row *r, int account)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->accounts[i] == account && m->epochs[i] == r->epoch)
            return r->claimed;
    return false;
}

static void renew(struct world *w, struct wire *m, uint64_t *at)
{
    for (int a = 0; a < ACCOUNTS; a++) {
        struct row *r = &w->rows[a];
        bool named = names(m, r, a);
        bool fresh = r->leased && (!w->lease_beat || r->claimed_at >= w->lease_beat);
        if (r->claimed && named != r->leased && !(fresh && !w->joins_late) && waits(r, at))
            r->leased = named;
    }
    w->lease_beat = *at;
    for (size_t i = 0; i < m->count; i++) {
        const struct row *r = &w->rows[m->accounts[i]];
        m->renewed[i] = names(m, r, m->accounts[i]) && r->leased;
    }
}

/* Statements run one after the other. */
static void run(struct world *w, struct wire m)
{
    uint64_t at = w->server_free > w->now ? w->server_free : w->now;
    if (m.kind == ELECTOR_FX_CLAIM)
        claim(w, &m, &at);
    else if (m.kind == ELECTOR_FX_RENEW)
        renew(w, &m, &at);
    else if (m.kind == ELECTOR_FX_RELEASE && waits(&w->rows[m.account], &at) &&
             w->rows[m.account].epoch == m.epoch)
        w->rows[m.account].claimed = w->rows[m.account].leased = false;
    w->server_free = at;
    m.at = at + w->one_way > w->last_back ? at + w->one_way : w->last_back;
    w->last_back = m.at;
    m.back = true;
    if (m.kind != ELECTOR_FX_UNLOCK)
        put(w, &m);
}

/* ---- the relay ---- */

static void step(struct world *w, const struct elector_event *ev)
{
    const struct elector_effect *fx;
    size_t count;
    elector_step(w->e, w->now, ev, &fx, &count);
    for (size_t i = 0; i < count; i++) {
        if (fx[i].type == ELECTOR_FX_PROMOTE) {
            w->promoted++;
            w->work_at[fx[i].account] = w->now + w->work_after;
        } else if (fx[i].type == ELECTOR_FX_DEMOTE) {
            w->lost++;
            w->work_at[fx[i].account] = 0;
        } else if (fx[i].type < ELECTOR_FX_LEAVE) {
            request(w, &fx[i]);
        }
    }
}

static void scanned(struct world *w, const struct wire *m)
{
    struct elector_view seen[ACCOUNTS];
    for (size_t i = 0; i < m->count; i++) {
        const struct row *r = &w->rows[m->accounts[i]];
        seen[i] = (struct elector_view){.mine = r->claimed,
                                        .holder = r->claimed ? "me" : "",
                                        .address = "",
                                        .epoch = r->epoch,
                                        .expiry_1_left_ms = 1,
                                        .expiry_2_left_ms = 1};
    }
    step(w, &(struct elector_event){
                .type = ELECTOR_EV_SCAN_REPLY,
                .scan = {.count = m->count, .accounts = m->accounts, .seen = seen}});
}

static void hear(struct world *w, const struct wire *m)
{
    struct elector_event ev = {.account = m->account};
    switch ((int)m->kind) {
    case ELECTOR_FX_LOCK:
        ev.type = ELECTOR_EV_LOCK_REPLY;
        ev.lock.got = true;
        break;
    case ELECTOR_FX_CLAIM:
        ev.type = ELECTOR_EV_CLAIM_REPLY;
        ev.claim.granted = m->granted;
        ev.claim.holder = "me";
        ev.claim.epoch = m->epoch;
        break;
    case ELECTOR_FX_RELEASE:
        ev.type = ELECTOR_EV_RELEASE_REPLY;
        break;
    case ELECTOR_FX_RENEW:
        ev.type = ELECTOR_EV_RENEW_REPLY;
        ev.renew.count = m->count;
        ev.renew.accounts = m->accounts;
        ev.renew.renewed = m->renewed;
        break;
    case ELECTOR_FX_SCAN:
        scanned(w, m);
        return;
    case ELECTOR_FX_HEARTBEAT:
        ev.type = ELECTOR_EV_MEMBERS;
        ev.members.self = -1;
        break;
    default:
        UNREACHABLE();
    }
    step(w, &ev);
}

/* ---- time ---- */

static void work(struct world *w)
{
    for (int a = 0; a < ACCOUNTS; a++)
        if (w->work_at[a] && w->work_at[a] <= w->now && w->rows[a].locked_until <= w->now) {
            w->rows[a].locked_until = w->now + w->work_ms;
            w->work_at[a] = w->now + w->work_ms + 1; /* chunk after chunk */
        }
}

static size_t next_wire(const struct world *w)
{
    size_t first = 0;
    for (size_t i = 1; i < w->wire_count; i++)
        if (w->wires[i].at < w->wires[first].at)
            first = i;
    return first;
}

static void turn(struct world *w)
{
    uint64_t due = elector_deadline(w->e);
    size_t i = next_wire(w);
    uint64_t next = w->wire_count && w->wires[i].at < due ? w->wires[i].at : due;
    for (int a = 0; a < ACCOUNTS; a++)
        if (w->work_at[a] > w->now && w->work_at[a] < next)
            next = w->work_at[a];
    w->now = next > w->now ? next : w->now;
    work(w);
    if (w->wire_count && w->wires[i].at <= w->now) {
        struct wire m = w->wires[i];
        memmove(&w->wires[i], &w->wires[i + 1], (--w->wire_count - i) * sizeof(m));
        if (m.back)
            hear(w, &m);
        else
            run(w, m);
    } else {
        step(w, &(struct elector_event){.type = ELECTOR_EV_TICK});
    }
}

/* ---- the grid ---- */

static unsigned lost_by(const struct elector_config *config, uint64_t one_way, uint64_t work_after,
                        uint64_t work_ms, uint64_t seed, bool joins_late)
{
    struct world w = {.one_way = one_way,
                      .work_after = work_after,
                      .work_ms = work_ms,
                      .joins_late = joins_late,
                      .config = *config,
                      .now = 1000};
    w.config.seed = seed;
    w.config.hash = election_hash;
    w.e = elector_new(&w.config);
    for (int a = 0; a < ACCOUNTS; a++)
        elector_add(w.e);
    step(&w, &(struct elector_event){.type = ELECTOR_EV_STORE_UP});
    while (w.now < RUN_MS)
        turn(&w);
    if (w.promoted < ACCOUNTS)
        fail_msg("one way %llu ms: not all accounts are led", (unsigned long long)one_way);
    elector_free(w.e);
    return w.lost;
}

/* A round trip in parts of thirty of the time that election_slow() takes from. */
static unsigned grid(bool joins_late, bool tell)
{
    static const uint64_t afters[] = {0, 10, 300, 900, 1500, 3000};
    static const uint64_t works[] = {1, 400, 700, 2000, 6000, 20000};
    unsigned lost = 0;
    for (size_t c = 0; c < ARRAY_LEN(configs); c++) {
        struct elector_config full = elector_config_defaults(&configs[c]);
        assert_int_equal(elector_config_check(&full, NULL), 0);
        uint64_t slow_ms = (full.expiry_1_ms - full.margin_ms) / 3;
        for (uint64_t part = 0; part <= 30; part += 5)
            for (size_t i = 0; i < ARRAY_LEN(afters) * ARRAY_LEN(works); i++) {
                uint64_t one_way = slow_ms * part / 30 / 2, after = afters[i / ARRAY_LEN(works)],
                         works_ms = works[i % ARRAY_LEN(works)];
                for (uint64_t seed = 1; seed <= 2; seed++)
                    lost += lost_by(&full, one_way, after, works_ms, seed, joins_late) > 0;
                if (lost && tell)
                    fail_msg(
                        "settings %zu: one way %llu ms, a statement after %llu ms for %llu ms: "
                        "accounts are lost",
                        c, (unsigned long long)one_way, (unsigned long long)after,
                        (unsigned long long)works_ms);
            }
    }
    return lost;
}

static void no_latency_deposes(void **state)
{
    (void)state;
    assert_int_equal(grid(false, true), 0);
}

static void the_former_rule_did(void **state)
{
    (void)state;
    assert_true(grid(true, false) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_latency_deposes),
        cmocka_unit_test(the_former_rule_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
