/* The pure elector, one transition or one gap of the DELAY/FAIL matrix a test. Effects are compared
 * as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/ring.h"
#include "design_page.h"
#include "election/core/elector.h"
#include "election/election.h"

struct rig {
    struct elector *e;
    uint64_t now;
    struct buf log;
};

static bool beat_open;  /* a beat was not answered yet */
static bool show_beats; /* elsewhere the first one is never answered, and there are no more */

static void put_effect(struct buf *b, const struct elector_effect *fx)
{
    if (fx->type == ELECTOR_FX_HEARTBEAT)
        beat_open = !fx->leaving;
    if (fx->type == ELECTOR_FX_HEARTBEAT && !show_beats)
        return;
    static const char *const names[] = {"LOCK",   "UNLOCK", "CLAIM",  "EVICT", "RELEASE",
                                        "RENEW",  "SCAN",   "BEAT",   "LEAVE", "PROMOTE",
                                        "DEMOTE", "GATE",   "DRAINED"};
    buf_printf(b, "%s%s", b->len ? " " : "", names[fx->type]);
    if (fx->account >= 0)
        buf_printf(b, ":%d", fx->account);
    if (fx->type == ELECTOR_FX_HEARTBEAT)
        buf_puts(b, fx->leaving ? "-" : "");
    if (fx->type == ELECTOR_FX_GATE)
        buf_puts(b, fx->gate.open ? "+" : "-");
    if (fx->type == ELECTOR_FX_CLAIM)
        buf_puts(b, fx->have_lock ? "L" : "");
    if (fx->type == ELECTOR_FX_PROMOTE || fx->type == ELECTOR_FX_RELEASE)
        buf_printf(b, "@%lld", (long long)fx->epoch);
    if (fx->type == ELECTOR_FX_DEMOTE) {
        buf_printf(b, "@%lld", (long long)fx->demoted.epoch);
        assert_non_null(fx->demoted.reason);
    }
    if (fx->type == ELECTOR_FX_GATE)
        assert_non_null(fx->gate.reason);
}

static void step(struct rig *r, struct elector_event ev, const char *expected)
{
    const struct elector_effect *fx;
    size_t count;
    buf_clear(&r->log);
    elector_step(r->e, r->now, &ev, &fx, &count);
    for (size_t i = 0; i < count; i++)
        put_effect(&r->log, &fx[i]);
    assert_string_equal(buf_str(&r->log), expected);
}

static void tick_at(struct rig *r, uint64_t now, const char *expected)
{
    assert_true(now >= r->now);
    r->now = now;
    step(r, (struct elector_event){.type = ELECTOR_EV_TICK}, expected);
}

/* Lets time pass to the next deadline, which must lie within lo..hi ms from now. */
static void wait_due(struct rig *r, uint64_t lo, uint64_t hi, const char *expected)
{
    uint64_t due = elector_deadline(r->e);
    assert_in_range(due, r->now + lo, r->now + hi);
    tick_at(r, due, expected);
}

/* The same when ticks without effect may come before; NULL: whatever it is. */
static void wait_effect(struct rig *r, uint64_t lo, uint64_t hi, const char *expected)
{
    uint64_t from = r->now;
    buf_clear(&r->log);
    while (!r->log.len) {
        const struct elector_effect *fx;
        size_t count;
        r->now = elector_deadline(r->e);
        assert_true(r->now <= from + hi);
        elector_step(r->e, r->now, &(struct elector_event){.type = ELECTOR_EV_TICK}, &fx, &count);
        for (size_t i = 0; i < count; i++)
            put_effect(&r->log, &fx[i]);
    }
    if (expected)
        assert_string_equal(buf_str(&r->log), expected);
    assert_in_range(r->now, from + lo, from + hi);
}

#define EV(...) ((struct elector_event){__VA_ARGS__})
#define UP      EV(.type = ELECTOR_EV_STORE_UP)
#define DOWN    EV(.type = ELECTOR_EV_STORE_DOWN)
#define LOST    EV(.type = ELECTOR_EV_CONTROL_LOST)
#define DRAIN   EV(.type = ELECTOR_EV_DRAIN)
#define GOT     EV(.type = ELECTOR_EV_LOCK_REPLY, .lock = {.got = true})
#define TAKEN   EV(.type = ELECTOR_EV_LOCK_REPLY)
#define GRANTED(n)                                                                                 \
    EV(.type = ELECTOR_EV_CLAIM_REPLY,                                                             \
       .claim = {.granted = true, .epoch = (n), .holder = "me", .address = "here"})
#define DENIED(n)                                                                                  \
    EV(.type = ELECTOR_EV_CLAIM_REPLY,                                                             \
       .claim = {.epoch = (n), .holder = "other", .address = "there"})
#define FAILED(what) EV(.type = ELECTOR_EV_##what##_REPLY, .failed = true)
#define RELEASED     EV(.type = ELECTOR_EV_RELEASE_REPLY)

static struct rig *rig_new(bool use_lock)
{
    struct rig *r = test_calloc(1, sizeof(*r));
    struct elector_config config = {.use_lock = use_lock, .seed = 7, .hash = election_hash};
    r->now = 1000;
    r->e = elector_new(&config);
    assert_int_equal(elector_add(r->e), 0);
    return r;
}

static void rig_free(struct rig *r)
{
    elector_check(r->e);
    elector_free(r->e);
    buf_done(&r->log);
    test_free(r);
}

static void renewed(struct rig *r, bool ok, const char *expected)
{
    int account = 0;
    step(r,
         EV(.type = ELECTOR_EV_RENEW_REPLY,
            .renew = {.count = 1, .accounts = &account, .renewed = &ok}),
         expected);
}

/* What a scan tells about account 0. */
static void seen(struct rig *r, struct elector_view what, const char *expected)
{
    int account = 0;
    step(r,
         EV(.type = ELECTOR_EV_SCAN_REPLY,
            .scan = {.count = 1, .accounts = &account, .seen = &what}),
         expected);
}
#define SEEN(...) ((struct elector_view){__VA_ARGS__})
#define HELD(n, ms)                                                                                \
    SEEN(.taken = true, .lock_held = true, .holder = "other", .address = "there", .epoch = (n),    \
         .expiry_1_left_ms = (ms), .expiry_2_left_ms = (ms) + 9000)

static void seen_nothing_new(struct rig *r)
{
    step(r, EV(.type = ELECTOR_EV_SCAN_REPLY), "");
}

/* The next scan, lo..hi ms from now, finds account 0 free. */
static void wait_bid(struct rig *r, uint64_t lo, uint64_t hi, const char *expected)
{
    wait_due(r, lo, hi, "SCAN");
    seen(r, SEEN(.holder = "", .address = "", .epoch = 1000), expected);
}

/* And its lock taken behind a claim that has lapsed. */
static void wait_lapsed(struct rig *r)
{
    wait_due(r, 0, 450, "SCAN");
    seen(r, HELD(1000, -1), "EVICT:0");
}

/* A leader of account 0 at epoch 5; the claim was sent at the time returned. */
static uint64_t lead(struct rig *r, bool use_lock)
{
    step(r, UP, "");
    if (use_lock) {
        wait_bid(r, 0, 150, "LOCK:0");
        r->now += 3;
        step(r, GOT, "CLAIM:0L");
    } else {
        wait_bid(r, 0, 150, "CLAIM:0");
    }
    uint64_t sent = r->now;
    r->now += 20;
    step(r, GRANTED(5), "PROMOTE:0@5 GATE:0+");
    assert_int_equal(elector_state(r->e, 0), ELECTOR_LEADER);
    assert_int_equal(elector_epoch(r->e, 0), 5);
    assert_string_equal(elector_holder(r->e, 0), "me");
    return sent;
}

/* The lock, then the claim; the gate counts from when the claim was sent, not answered. */
static void bid_lock_then_claim(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    uint64_t sent = lead(r, true);
    assert_true(elector_gate(r->e, 0, sent + 3999));
    assert_false(elector_gate(r->e, 0, sent + 4000));
    rig_free(r);
}

static void bid_without_lock(void **state)
{
    (void)state;
    struct rig *r = rig_new(false);
    uint64_t sent = lead(r, false);
    assert_true(elector_gate(r->e, 0, sent + 3999));
    assert_false(elector_gate(r->e, 0, sent + 4000));
    rig_free(r);
}

/* No store, no bid, however long. */
static void no_bid_while_store_down(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    assert_int_equal(elector_deadline(r->e), UINT64_MAX);
    tick_at(r, 10000000, "");
    assert_false(elector_gate(r->e, 0, r->now));
    rig_free(r);
}

/* A healthy holder is looked at within the jitter, and neither its lock nor its session is asked
 * for; once its claim has lapsed the database is asked. Who leads is known from the first look. */
static void followers_look_before_they_bid(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_due(r, 0, 150, "SCAN");
    seen(r, HELD(4, 2000), "");
    assert_string_equal(elector_holder(r->e, 0), "other");
    assert_string_equal(elector_address(r->e, 0), "there");
    for (int i = 0; i < 20; i++) {
        const int *accounts;
        const int64_t *epochs;
        wait_due(r, 150, 450, "SCAN");
        assert_int_equal(elector_scanning(r->e, &accounts, &epochs), 1);
        assert_int_equal(epochs[0], 4);
        tick_at(r, r->now + 1, ""); /* one in flight */
        assert_int_equal(elector_deadline(r->e), UINT64_MAX);
        seen_nothing_new(r);
    }
    wait_due(r, 0, 450, "SCAN");
    seen(r, HELD(4, -1), "EVICT:0");
    rig_free(r);
}

/* One statement serves all followers, however many: what it costs does not grow with the
 * accounts. */
static void one_scan_for_a_thousand_followers(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    while (elector_add(r->e) < 999)
        ;
    step(r, UP, "");
    int accounts[1000];
    struct elector_view all[1000];
    for (int i = 0; i < 1000; i++) {
        accounts[i] = i;
        all[i] = HELD(3, 4000);
    }
    int scans = 0;
    for (uint64_t end = r->now + 30000; r->now < end; scans++) {
        r->now = elector_deadline(r->e);
        const struct elector_effect *fx;
        size_t count;
        elector_step(r->e, r->now, &EV(.type = ELECTOR_EV_TICK), &fx, &count);
        assert_int_equal(count, 1);
        assert_int_equal(fx[0].type, ELECTOR_FX_SCAN);
        size_t told = scans ? 0 : 1000;
        step(r,
             EV(.type = ELECTOR_EV_SCAN_REPLY,
                .scan = {.count = told, .accounts = accounts, .seen = all}),
             "");
    }
    assert_in_range(scans, 30000 / 450, 30000 / 150 + 1);
    rig_free(r);
}

/* A claim that stands without the lock is not undone by a free lock; one of our own that we do not
 * know of is. Without locks one that has lapsed is bid for although somebody has its lock: the
 * claim is refused if that is a relay. */
static void scan_tells_who_may_claim(void **state)
{
    (void)state;
    static const struct elector_view lockless = {
        .holder = "x", .epoch = 2, .expiry_1_left_ms = 50, .expiry_2_left_ms = 90};
    struct elector_view lapsed = lockless, mine = lockless, dead = lockless, mid = lockless;
    lapsed.expiry_1_left_ms = lapsed.expiry_2_left_ms = 0;
    mid.expiry_1_left_ms = 0;
    mine.mine = true;
    dead.lock_held = true;
    const struct {
        bool use_lock;
        struct elector_view seen;
        const char *expected;
    } cases[] = {
        {true, lockless, ""},       {true, lapsed, "LOCK:0"},        {true, mine, "LOCK:0"},
        {true, dead, "LOCK:0"},     {true, mid, "LOCK:0"},           {false, lockless, ""},
        {false, lapsed, "CLAIM:0"}, {false, mine, "CLAIM:0"},        {false, dead, ""},
        {false, mid, "CLAIM:0"},    {false, HELD(2, -1), "CLAIM:0"}, {true, HELD(2, 1), ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *r = rig_new(cases[i].use_lock);
        step(r, UP, "");
        wait_due(r, 0, 150, "SCAN");
        seen(r, cases[i].seen, cases[i].expected);
        rig_free(r);
    }
}

static void assert_unled(const struct rig *r, bool unled, bool in_way)
{
    bool taken;
    assert_int_equal(elector_unled(r->e, 0, &taken), unled);
    assert_int_equal(taken, in_way);
}

/* By a scan until the next one; a failed claim says so as well, and a granted one ends it. */
static void nobody_leads_it(void **state)
{
    (void)state;
    const struct {
        struct elector_view seen;
        bool unled, in_way;
    } cases[] = {
        {SEEN(.holder = "x", .expiry_1_left_ms = -1, .expiry_2_left_ms = 1), false, false},
        {SEEN(.holder = "x", .expiry_1_left_ms = -9, .expiry_2_left_ms = 0), true, false},
        {SEEN(.holder = ""), true, false},
        {SEEN(.holder = "", .taken = true), true, true},
        {HELD(2, -1), false, false},
        {HELD(2, -9000), true, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *r = rig_new(true);
        struct elector_view view = cases[i].seen;
        int account = 0;
        const struct elector_effect *fx;
        size_t count;
        step(r, UP, "");
        wait_due(r, 0, 150, "SCAN");
        elector_step(r->e, r->now,
                     &EV(.type = ELECTOR_EV_SCAN_REPLY,
                         .scan = {.count = 1, .accounts = &account, .seen = &view}),
                     &fx, &count);
        assert_unled(r, cases[i].unled, cases[i].in_way);
        rig_free(r);
    }
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_due(r, 0, 150, "SCAN");
    seen(r, SEEN(.holder = "", .taken = true), "");
    wait_due(r, 0, 450, "SCAN");
    seen_nothing_new(r);
    assert_unled(r, false, false);
    wait_bid(r, 0, 450, "LOCK:0");
    step(r, GOT, "CLAIM:0L");
    step(r, FAILED(CLAIM), "UNLOCK:0");
    assert_unled(r, true, false);
    wait_effect(r, 0, 9000, "LOCK:0");
    step(r, GOT, "CLAIM:0L");
    step(r, GRANTED(5), "PROMOTE:0@5 GATE:0+");
    assert_unled(r, false, false);
    rig_free(r);
}

/* Between the two expiries something may be mid-submission: who was denied asks again after half a
 * heartbeat. */
static void denied_without_lock_asks_later(void **state)
{
    (void)state;
    struct rig *r = rig_new(false);
    struct elector_view mid = SEEN(.holder = "x", .epoch = 2, .expiry_2_left_ms = 9000);
    step(r, UP, "");
    wait_due(r, 0, 150, "SCAN");
    seen(r, mid, "CLAIM:0");
    step(r, DENIED(2), "");
    uint64_t denied = r->now;
    do {
        wait_due(r, 0, 450, "SCAN");
        seen(r, mid, r->now < denied + 500 ? "" : "CLAIM:0");
    } while (r->now < denied + 500);
    rig_free(r);
}

/* A lock without a claim is mostly one whose owner is about to claim. */
static void orphaned_lock_takes_two_looks(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    struct elector_view orphan = SEEN(.taken = true, .holder = "");
    step(r, UP, "");
    wait_due(r, 0, 150, "SCAN");
    seen(r, orphan, "");
    wait_due(r, 150, 450, "SCAN");
    seen(r, HELD(2, 4000), ""); /* it claimed */
    wait_due(r, 150, 450, "SCAN");
    orphan.epoch = 2;
    seen(r, orphan, "");
    wait_due(r, 150, 450, "SCAN");
    seen(r, orphan, "EVICT:0");
    rig_free(r);
}

/* What a scan tells about an account that has moved since it was asked is old. */
static void scan_is_no_news_after_a_move(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_due(r, 0, 150, "SCAN");
    step(r, EV(.type = ELECTOR_EV_LEADER_CHANGE, .change = {.holder = "b", .epoch = 7}), "");
    seen(r, SEEN(.holder = "", .epoch = 6), "");
    assert_string_equal(elector_holder(r->e, 0), "b");
    wait_due(r, 0, 450, "SCAN");
    step(r, EV(.type = ELECTOR_EV_LEADER_CHANGE, .change = {.holder = "", .epoch = 7}), "");
    wait_due(r, 0, 50, "LOCK:0");
    step(r, TAKEN, "");
    seen(r, SEEN(.holder = "", .epoch = 7), ""); /* asked before the bid */
    wait_bid(r, 0, 450, "LOCK:0");
    rig_free(r);
}

/* txsim: a failover that lost commits sets the epochs back; what the table says then is what
 * counts. */
static void epoch_that_went_back(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_due(r, 0, 150, "SCAN");
    seen(r, HELD(9, 4000), "");
    wait_due(r, 150, 450, "SCAN");
    seen(r, SEEN(.holder = "", .epoch = 6), "LOCK:0");
    rig_free(r);
}

/* With thousands of accounts a scan is work for the server: a fifth of the time at most, but one
 * each heartbeat. */
static void slow_scans_rest(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_due(r, 0, 150, "SCAN");
    static const struct {
        uint64_t took, least, most;
    } turns[] = {{20, 130, 430}, {150, 600, 600}, {400, 1000, 1000}, {0, 150, 450}};
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
        r->now += turns[i].took;
        seen(r, HELD(4, 2000), "");
        wait_due(r, turns[i].least, turns[i].most, "SCAN");
    }
    rig_free(r);
}

/* Scans that fail wait longer and longer, and the next answer ends that. */
static void scan_errors_grow(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_due(r, 0, 150, "SCAN");
    static const uint64_t most[] = {200, 400, 800, 1600, 3000, 3000};
    for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
        step(r, FAILED(SCAN), "");
        wait_due(r, most[i] / 2, most[i], "SCAN");
    }
    seen(r, HELD(4, 2000), "");
    wait_due(r, 150, 450, "SCAN");
    step(r, DOWN, "");
    step(r, FAILED(SCAN), "");
    assert_int_equal(elector_deadline(r->e), UINT64_MAX);
    step(r, UP, "");
    wait_bid(r, 0, 150, "LOCK:0");
    rig_free(r);
}

/* The hung holder's session is ended, then lock, then claim; the lock may be free a moment
 * after the session was told to end. */
static void hung_holder_is_evicted(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_lapsed(r);
    assert_int_equal(elector_state(r->e, 0), ELECTOR_EVICT_WAIT);
    step(r, EV(.type = ELECTOR_EV_EVICT_REPLY, .evict = {.terminated = true}), "LOCK:0");
    step(r, TAKEN, "");
    wait_due(r, 5, 20, "LOCK:0");
    step(r, GOT, "CLAIM:0L");
    step(r, GRANTED(6), "PROMOTE:0@6 GATE:0+");
    rig_free(r);
}

/* An ended session that never lets go does not spin for ever. */
static void evicted_lock_that_stays_taken(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_lapsed(r);
    step(r, EV(.type = ELECTOR_EV_EVICT_REPLY, .evict = {.terminated = true}), "LOCK:0");
    int tries = 0;
    for (step(r, TAKEN, ""); elector_deadline(r->e) <= r->now + 20; tries++) {
        wait_due(r, 5, 20, "LOCK:0");
        step(r, TAKEN, "");
    }
    assert_in_range(tries, 10, 40);
    wait_lapsed(r);
    rig_free(r);
}

/* The right to end sessions may be missing: the looks go on, the question waits a heartbeat. */
static void evict_failure_keeps_bidding(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_lapsed(r);
    step(r, FAILED(EVICT), "");
    uint64_t failed = r->now;
    do {
        wait_due(r, 0, 450, "SCAN");
        seen(r, HELD(1000, -1), r->now < failed + 1000 ? "" : "EVICT:0");
    } while (r->now < failed + 1000);
    rig_free(r);
}

/* The lock goes back when the claim is denied (the holder leads without locks). */
static void denied_claim_unlocks(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_bid(r, 0, 150, "LOCK:0");
    step(r, GOT, "CLAIM:0L");
    step(r, DENIED(9), "UNLOCK:0");
    assert_int_equal(elector_state(r->e, 0), ELECTOR_FOLLOWER);
    assert_string_equal(elector_address(r->e, 0), "there");
    wait_bid(r, 150, 450, "LOCK:0");
    rig_free(r);
}

/* Store errors are answered by waits that grow to a few seconds; an answer ends that. */
static void lock_errors_grow(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_bid(r, 0, 150, "LOCK:0");
    static const uint64_t most[] = {200, 400, 800, 1600, 3000, 3000};
    for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
        step(r, FAILED(LOCK), "");
        wait_effect(r, most[i] / 2, most[i], "LOCK:0");
    }
    step(r, TAKEN, "");
    wait_bid(r, 150, 450, "LOCK:0");
    rig_free(r);
}

/* Renewal every second +-20 %, one in flight, and the gate counts from when it was sent. */
static void renewals_extend(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    uint64_t sent = lead(r, true);
    for (int i = 0; i < 20; i++) {
        wait_due(r, i ? 700 : 800, 1200, "RENEW");
        const int *accounts;
        const int64_t *epochs;
        assert_int_equal(elector_renewing(r->e, &accounts, &epochs), 1);
        assert_int_equal(accounts[0], 0);
        assert_int_equal(epochs[0], 5);
        uint64_t end = sent + 4000;
        sent = r->now;
        tick_at(r, r->now + 50, ""); /* no second one while it is in flight */
        assert_int_equal(elector_deadline(r->e), end);
        renewed(r, true, "");
        assert_true(elector_gate(r->e, 0, sent + 3999));
        assert_false(elector_gate(r->e, 0, sent + 4000));
    }
    rig_free(r);
}

/* A renewal that fails is tried again; only the time ends the tenure. */
static void failing_renewals_end_at_the_deadline(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    uint64_t end = lead(r, true) + 4000;
    wait_due(r, 800, 1200, "RENEW");
    for (step(r, FAILED(RENEW), ""); elector_deadline(r->e) < end; step(r, FAILED(RENEW), "")) {
        assert_true(elector_gate(r->e, 0, r->now));
        wait_due(r, 100, 1000, "RENEW");
    }
    assert_true(elector_gate(r->e, 0, end - 1));
    tick_at(r, end, "GATE:0- DEMOTE:0@5 UNLOCK:0 RELEASE:0@5");
    assert_int_equal(elector_epoch(r->e, 0), 0);
    assert_string_equal(elector_holder(r->e, 0), "");
    step(r, RELEASED, "");
    wait_bid(r, 150, 450, "LOCK:0");
    rig_free(r);
}

/* Matrix "stored - renewal", DELAY: the renewal finds another epoch. */
static void refused_renewal_demotes_at_once(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    lead(r, true);
    wait_due(r, 800, 1200, "RENEW");
    renewed(r, false, "GATE:0- DEMOTE:0@5 UNLOCK:0 RELEASE:0@5");
    assert_false(elector_gate(r->e, 0, r->now));
    rig_free(r);
}

/* River's rule: a slow success must not stretch the trust: the reply comes after the time counted
 * from its sending is over. */
static void slow_success_does_not_extend(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    uint64_t end = lead(r, true) + 4000;
    wait_due(r, 800, 1200, "RENEW");
    uint64_t sent = r->now;
    r->now = sent + 4500; /* the process was stopped: no tick ran at `end` */
    assert_true(r->now > end);
    assert_false(elector_gate(r->e, 0, r->now));
    renewed(r, true, "GATE:0- DEMOTE:0@5 UNLOCK:0 RELEASE:0@5");
    rig_free(r);
}

/* The renewal of an ended tenure says nothing about the next one. */
static void renewal_of_an_earlier_tenure(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    lead(r, true);
    wait_due(r, 800, 1200, "RENEW");
    step(r, EV(.type = ELECTOR_EV_STALE), "GATE:0- DEMOTE:0@5 UNLOCK:0");
    wait_bid(r, 150, 450, "LOCK:0");
    step(r, GOT, "CLAIM:0L");
    step(r, GRANTED(8), "PROMOTE:0@8 GATE:0+");
    renewed(r, false, ""); /* refused for epoch 5, of course */
    assert_true(elector_gate(r->e, 0, r->now));
    rig_free(r);
}

/* I4: a fenced write was refused. A claim under the newer epoch is not ours to release. */
static void stale_write_demotes(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    lead(r, true);
    step(r, EV(.type = ELECTOR_EV_STALE, .stale_epoch = 4), ""); /* of an earlier tenure */
    step(r, EV(.type = ELECTOR_EV_STALE, .stale_epoch = 5), "GATE:0- DEMOTE:0@5 UNLOCK:0");
    step(r, EV(.type = ELECTOR_EV_STALE, .stale_epoch = 5), "");
    rig_free(r);
}

/* A write whose outcome is unknown (txsim): the tenure goes on under a new epoch, the lock
 * stays. */
static void doubt_claims_again(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    lead(r, true);
    step(r, EV(.type = ELECTOR_EV_DOUBT), "GATE:0- DEMOTE:0@5 CLAIM:0L");
    step(r, EV(.type = ELECTOR_EV_DOUBT), "");
    step(r, GRANTED(6), "PROMOTE:0@6 GATE:0+");
    step(r, EV(.type = ELECTOR_EV_DOUBT), "GATE:0- DEMOTE:0@6 CLAIM:0L");
    step(r, FAILED(CLAIM), "UNLOCK:0 RELEASE:0@6"); /* the former claim may still be there */
    step(r, RELEASED, "");
    rig_free(r);
}

/* The same while the store is away: what is ours is handed back when it returns. */
static void doubt_while_store_down(void **state)
{
    (void)state;
    struct rig *r = rig_new(false);
    lead(r, false);
    step(r, DOWN, "GATE:0-");
    step(r, EV(.type = ELECTOR_EV_DOUBT), "DEMOTE:0@5");
    step(r, UP, "RELEASE:0@5");
    rig_free(r);
}

/* The loss of the lock session ends the role at once. */
static void control_lost_demotes_with_lock(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    lead(r, true);
    step(r, LOST, "GATE:0- DEMOTE:0@5");
    step(r, DOWN, "");
    assert_int_equal(elector_deadline(r->e), UINT64_MAX);
    step(r, UP, ""); /* nothing is unlocked: the lock went with the session */
    wait_bid(r, 0, 150, "LOCK:0");
    rig_free(r);
}

/* Without locks the claim stands: the gate waits for a renewal. */
static void control_lost_without_lock(void **state)
{
    (void)state;
    struct rig *r = rig_new(false);
    lead(r, false);
    step(r, LOST, "GATE:0-");
    step(r, DOWN, "");
    r->now += 100;
    step(r, UP, "RENEW");
    assert_false(elector_gate(r->e, 0, r->now));
    renewed(r, true, "GATE:0+");
    rig_free(r);
}

/* "A configured but unreachable database means follower with the gate shut." */
static void store_down_shuts_then_demotes(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    uint64_t end = lead(r, true) + 4000;
    step(r, DOWN, "GATE:0-");
    assert_false(elector_gate(r->e, 0, r->now));
    wait_due(r, 0, 4000, "DEMOTE:0@5");
    assert_int_equal(r->now, end);
    assert_int_equal(elector_state(r->e, 0), ELECTOR_FOLLOWER);
    step(r, UP, "UNLOCK:0 RELEASE:0@5"); /* what could not be given back before */
    step(r, RELEASED, "");
    wait_bid(r, 150, 450, "LOCK:0");
    rig_free(r);
}

/* After a short outage the gate opens with the first renewal that succeeds under the same epoch. */
static void store_back_in_time(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    lead(r, true);
    wait_due(r, 800, 1200, "RENEW");
    step(r, DOWN, "GATE:0-");
    step(r, FAILED(RENEW), "");
    r->now += 50;
    step(r, UP, "RENEW");
    r->now += 5;
    assert_false(elector_gate(r->e, 0, r->now));
    renewed(r, true, "GATE:0+");
    assert_int_equal(elector_epoch(r->e, 0), 5);
    rig_free(r);
}

/* R9: a claim that the database refuses again and again, while its lock is free. */
static void claims_that_fail_wait_longer(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_bid(r, 0, 150, "LOCK:0");
    static const uint64_t most[] = {200, 400, 800, 1600, 3000, 3000};
    for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
        step(r, GOT, "CLAIM:0L");
        step(r, FAILED(CLAIM), "UNLOCK:0");
        uint64_t failed = r->now;
        for (wait_effect(r, 0, most[i], NULL); !strcmp(buf_str(&r->log), "SCAN");
             wait_effect(r, 0, most[i], NULL))
            seen(r, SEEN(.holder = "", .epoch = 1000), "");
        assert_string_equal(buf_str(&r->log), "LOCK:0");
        assert_in_range(r->now, failed + most[i] / 2, failed + most[i]);
    }
    step(r, GOT, "CLAIM:0L");
    step(r, GRANTED(7), "PROMOTE:0@7 GATE:0+");
    rig_free(r);
}

/* Matrix "ask claim - got claim", FAIL: the outcome of the claim is unknown; the lock went with the
 * session. */
static void claim_unknown_outcome(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_bid(r, 0, 150, "LOCK:0");
    step(r, GOT, "CLAIM:0L");
    step(r, LOST, "");
    step(r, FAILED(CLAIM), "");
    step(r, DOWN, "");
    step(r, UP, "");
    wait_bid(r, 0, 150, "LOCK:0");
    step(r, GOT, "CLAIM:0L");
    step(r, GRANTED(7), "PROMOTE:0@7 GATE:0+");
    rig_free(r);
}

/* Matrix "ask claim - got claim", DELAY: we were stopped so long that the claim is near its end. */
static void claim_granted_too_late(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_bid(r, 0, 150, "LOCK:0");
    step(r, GOT, "CLAIM:0L");
    r->now += 4000;
    step(r, GRANTED(5), "UNLOCK:0 RELEASE:0@5");
    step(r, RELEASED, "");
    wait_bid(r, 150, 450, "LOCK:0");
    rig_free(r);
}

/* A claim that is granted after the lock was lost is given back when the store is there again. */
static void claim_granted_after_session_lost(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_bid(r, 0, 150, "LOCK:0");
    step(r, GOT, "CLAIM:0L");
    step(r, LOST, "");
    step(r, GRANTED(5), "");
    assert_int_equal(elector_state(r->e, 0), ELECTOR_FOLLOWER);
    assert_string_equal(elector_holder(r->e, 0), "");
    step(r, UP, "RELEASE:0@5");
    step(r, RELEASED, "");
    wait_bid(r, 150, 450, "LOCK:0");
    rig_free(r);
}

/* A lock of a session that was lost meanwhile is no lock. */
static void lock_got_in_a_lost_session(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_bid(r, 0, 150, "LOCK:0");
    step(r, LOST, "");
    step(r, UP, "");
    step(r, GOT, "");
    assert_int_equal(elector_state(r->e, 0), ELECTOR_FOLLOWER);
    wait_bid(r, 150, 450, "LOCK:0");
    rig_free(r);
}

/* The work session alone was lost: the lock that came meanwhile is still held, so it is given back
 * before a bid asks for it again. */
static void lock_got_while_store_down(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_bid(r, 0, 150, "LOCK:0");
    step(r, DOWN, "");
    step(r, GOT, "");
    step(r, UP, "UNLOCK:0");
    wait_bid(r, 0, 150, "LOCK:0");
    rig_free(r);
}

/* Who hears that the account is free bids at once. */
static void free_account_is_bid_for_at_once(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_lapsed(r);
    step(r,
         EV(.type = ELECTOR_EV_EVICT_REPLY,
            .evict = {.holder = "other", .address = "there", .epoch = 1004}),
         "");
    step(r,
         EV(.type = ELECTOR_EV_LEADER_CHANGE, .change = {.holder = "", .address = "", .epoch = 3}),
         ""); /* old news */
    assert_string_equal(elector_holder(r->e, 0), "other");
    step(r,
         EV(.type = ELECTOR_EV_LEADER_CHANGE,
            .change = {.holder = "", .address = "", .epoch = 1004}),
         "");
    assert_string_equal(elector_holder(r->e, 0), "");
    wait_due(r, 0, 50, "LOCK:0");
    /* Heard while a request is in flight: the next bid is early. */
    step(r, EV(.type = ELECTOR_EV_LEADER_CHANGE, .change = {.epoch = 1004}), "");
    r->now += 10;
    step(r, FAILED(LOCK), "");
    wait_due(r, 0, 50, "LOCK:0");
    rig_free(r);
}

static void new_leader_is_learned(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    step(r,
         EV(.type = ELECTOR_EV_LEADER_CHANGE,
            .change = {.holder = "b", .address = "b:1", .epoch = 2}),
         "");
    assert_string_equal(elector_holder(r->e, 0), "b");
    assert_string_equal(elector_address(r->e, 0), "b:1");
    rig_free(r);
}

/* A leader that hears of a newer epoch asks the table; a NOTIFY alone does not depose it. */
static void leader_hears_of_another(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    lead(r, true);
    step(r, EV(.type = ELECTOR_EV_LEADER_CHANGE, .change = {.holder = "me", .epoch = 5}), "");
    step(r,
         EV(.type = ELECTOR_EV_LEADER_CHANGE,
            .change = {.holder = "b", .address = "b:1", .epoch = 6}),
         "RENEW");
    assert_true(elector_gate(r->e, 0, r->now));
    renewed(r, true, "");
    assert_string_equal(elector_holder(r->e, 0), "me");
    rig_free(r);
}

/* Gate shut, released, no more bids, DRAINED once. */
static void drain_leader(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    lead(r, true);
    step(r, DRAIN, "GATE:0- DEMOTE:0@5 UNLOCK:0 RELEASE:0@5");
    step(r, RELEASED, "DRAINED");
    step(r, EV(.type = ELECTOR_EV_LEADER_CHANGE, .change = {.holder = "", .epoch = 5}), "");
    tick_at(r, r->now + 100000, "");
    assert_int_equal(elector_deadline(r->e), UINT64_MAX);
    step(r, DRAIN, "");
    rig_free(r);
}

static void drain_follower(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    step(r, DRAIN, "DRAINED");
    rig_free(r);
}

static void drain_in_the_middle_of_a_bid(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    wait_bid(r, 0, 150, "LOCK:0");
    step(r, DRAIN, "");
    step(r, GOT, "UNLOCK:0 DRAINED");
    rig_free(r);

    r = rig_new(true);
    step(r, UP, "");
    wait_bid(r, 0, 150, "LOCK:0");
    step(r, GOT, "CLAIM:0L");
    step(r, DRAIN, "");
    step(r, GRANTED(3), "UNLOCK:0 RELEASE:0@3"); /* granted after we gave up */
    step(r, RELEASED, "DRAINED");
    rig_free(r);

    r = rig_new(true);
    step(r, UP, "");
    wait_lapsed(r);
    step(r, DRAIN, "");
    step(r, EV(.type = ELECTOR_EV_EVICT_REPLY, .evict = {.terminated = true}), "DRAINED");
    rig_free(r);
}

static void drain_while_store_down(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    lead(r, true);
    step(r, DOWN, "GATE:0-");
    step(r, DRAIN, "DEMOTE:0@5 DRAINED");
    rig_free(r);

    r = rig_new(true);
    lead(r, true);
    step(r, DRAIN, "GATE:0- DEMOTE:0@5 UNLOCK:0 RELEASE:0@5");
    step(r, DOWN, "DRAINED"); /* the release is not waited for */
    step(r, FAILED(RELEASE), "");
    rig_free(r);
}

/* One renewal covers all accounts of the relay, and one refusal ends one tenure. */
static void many_accounts_one_renewal(void **state)
{
    (void)state;
    struct rig *r = rig_new(false);
    elector_add(r->e);
    elector_add(r->e);
    step(r, UP, "");
    wait_due(r, 0, 150, "SCAN");
    const int all[] = {0, 1, 2};
    const struct elector_view free_accounts[3] = {{.holder = ""}, {.holder = ""}, {.holder = ""}};
    step(r,
         EV(.type = ELECTOR_EV_SCAN_REPLY,
            .scan = {.count = 3, .accounts = all, .seen = free_accounts}),
         "CLAIM:0 CLAIM:1 CLAIM:2");
    for (int i = 0; i < 3; i++) {
        const struct elector_effect *fx;
        size_t count;
        struct elector_event granted = GRANTED(11);
        granted.account = i;
        elector_step(r->e, r->now, &granted, &fx, &count);
        assert_int_equal(fx[0].type, ELECTOR_FX_PROMOTE);
    }
    wait_due(r, 650, 1200, "RENEW");
    const int *accounts;
    const int64_t *epochs;
    assert_int_equal(elector_renewing(r->e, &accounts, &epochs), 3);
    bool ok[] = {true, false, true};
    step(r,
         EV(.type = ELECTOR_EV_RENEW_REPLY,
            .renew = {.count = 3, .accounts = accounts, .renewed = ok}),
         "GATE:1- DEMOTE:1@11 RELEASE:1@11");
    assert_true(elector_gate(r->e, 0, r->now));
    assert_false(elector_gate(r->e, 1, r->now));
    assert_true(elector_gate(r->e, 2, r->now));
    rig_free(r);
}

/* ---- placement ---- */

/* Members "a".."e", of which this relay is `self`. */
static void members(struct rig *r, size_t count, int self, const char *expected)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    beat_open = false;
    step(r,
         EV(.type = ELECTOR_EV_MEMBERS, .members = {.names = names, .count = count, .self = self}),
         expected);
}

/* A place that is closest to the member, among so many. */
static uint64_t place_of(size_t count, size_t member)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    struct ring *ring = ring_new(election_hash);
    size_t order[5] = {SIZE_MAX};
    uint64_t place = 0;
    for (size_t i = 0; i < count; i++)
        ring_add(ring, names[i], RING_POINTS);
    while (order[0] != member) {
        place += UINT64_C(0x123456789abcdef);
        ring_order(ring, place, order);
    }
    ring_free(ring);
    return place;
}

static struct rig *rig_place(bool ring, bool rotate)
{
    struct rig *r = test_calloc(1, sizeof(*r));
    struct elector_config config = {
        .use_lock = true, .seed = 7, .ring = ring, .rotate = rotate, .hash = election_hash};
    r->now = 1000;
    r->e = elector_new(&config);
    assert_int_equal(elector_add(r->e), 0);
    return r;
}

/* One heartbeat: it answers renewals, scans and beats, and reports the next members at its end. */
static void next_beat(struct rig *r, size_t count, int self, const char *expected)
{
    for (int tick = 0; tick < 100 && !beat_open; tick++) {
        const struct elector_effect *fx;
        size_t n;
        r->now = elector_deadline(r->e);
        elector_step(r->e, r->now, &EV(.type = ELECTOR_EV_TICK), &fx, &n);
        enum elector_effect_type types[8];
        assert_true(n <= 8);
        for (size_t i = 0; i < n; i++)
            types[i] = fx[i].type;
        for (size_t i = 0; i < n; i++) {
            beat_open |= types[i] == ELECTOR_FX_HEARTBEAT;
            if (types[i] == ELECTOR_FX_RENEW)
                renewed(r, true, "");
            else if (types[i] == ELECTOR_FX_SCAN)
                seen_nothing_new(r);
            else
                assert_int_equal(types[i], ELECTOR_FX_HEARTBEAT);
        }
    }
    assert_true(beat_open);
    members(r, count, self, expected);
}

/* One beat a heartbeat, one in flight; it ends with the relay's bids. */
static void beats(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    show_beats = true;
    step(r, UP, "BEAT");
    wait_effect(r, 0, 150, "SCAN");
    seen(r, HELD(4, 4000), "");
    for (int i = 0; i < 8; i++) /* not answered: no second one */
        wait_effect(r, 150, 450, "SCAN"), seen_nothing_new(r);
    members(r, 2, 1, "BEAT"); /* long due */
    assert_int_equal(elector_members(r->e), 2);
    step(r, EV(.type = ELECTOR_EV_MEMBERS, .failed = true), "");
    assert_int_equal(elector_members(r->e), 2); /* the last word counts */
    uint64_t sent = r->now;
    for (bool beat = false; !beat;) {
        const struct elector_effect *fx;
        size_t n;
        r->now = elector_deadline(r->e);
        elector_step(r->e, r->now, &EV(.type = ELECTOR_EV_TICK), &fx, &n);
        for (size_t i = 0; i < n; i++)
            beat |= fx[i].type == ELECTOR_FX_HEARTBEAT;
        if (n && fx[0].type == ELECTOR_FX_SCAN)
            seen_nothing_new(r);
    }
    assert_in_range(r->now, sent + 800, sent + 1200);
    step(r, DRAIN, "BEAT- DRAINED");
    show_beats = false;
    rig_free(r);
}

/* The member that the ring prefers bids at once; the others within twice bid_max, and not if they
 * hear of it. */
static void bids_by_rank(void **state)
{
    (void)state;
    uint64_t last = 0;
    for (size_t target = 0; target < 5; target++) {
        struct rig *r = rig_place(false, false);
        elector_place(r->e, 0, place_of(5, target));
        step(r, UP, "");
        members(r, 5, 2, "");
        wait_effect(r, 0, 150, "SCAN");
        if (target == 2) {
            seen(r, SEEN(.holder = "", .epoch = 1), "LOCK:0");
            rig_free(r);
            continue;
        }
        seen(r, SEEN(.holder = "", .epoch = 1), "");
        uint64_t due = elector_deadline(r->e) - r->now;
        assert_in_range(due, 150, 450); /* a scan's tick may be first */
        step(r, EV(.type = ELECTOR_EV_LEADER_CHANGE, .change = {.holder = "x", .epoch = 2}), "");
        wait_effect(r, 0, 900, "SCAN");
        assert_string_equal(elector_holder(r->e, 0), "x");
        seen(r, SEEN(.holder = "x", .epoch = 2, .lock_held = true, .expiry_1_left_ms = 1), "");
        wait_effect(r, 390, 450,
                    "LOCK:0"); /* the lock is free, and the preferred one does not come */
        last = r->now;
        rig_free(r);
    }
    assert_true(last > 0);
}

/* One of five ends a hung holder's session; the others wait for that one, and for its claim. */
static void evicts_by_rank(void **state)
{
    (void)state;
    for (size_t target = 0; target < 5; target++) {
        struct rig *r = rig_place(false, false);
        elector_place(r->e, 0, place_of(5, target));
        step(r, UP, "");
        members(r, 5, 2, "");
        wait_effect(r, 0, 150, "SCAN");
        seen(r, HELD(4, -1), target == 2 ? "EVICT:0" : "");
        if (target != 2) {
            step(r, EV(.type = ELECTOR_EV_LEADER_CHANGE, .change = {.holder = "b", .epoch = 5}),
                 "");
            wait_effect(r, 0, 450,
                        "SCAN");      /* the first in rank has done it: nothing is left to do */
            seen(r, HELD(5, -1), ""); /* and hangs in its turn */
            wait_effect(r, 390, 450, "EVICT:0");
            step(r, EV(.type = ELECTOR_EV_EVICT_REPLY, .evict = {.terminated = true}), "LOCK:0");
            step(r, TAKEN, "");
            wait_effect(r, 5, 20, "LOCK:0"); /* an eviction was due: now it is a bid */
        }
        rig_free(r);
    }
}

/* The lock is free before the eviction was due: a bid, and no eviction. */
static void eviction_becomes_a_bid(void **state)
{
    (void)state;
    struct rig *r = rig_place(false, false);
    elector_place(r->e, 0, place_of(2, 0));
    step(r, UP, "");
    members(r, 2, 1, "");
    wait_effect(r, 0, 150, "SCAN");
    seen(r, HELD(4, -1), "");
    step(r, EV(.type = ELECTOR_EV_LEADER_CHANGE, .change = {.holder = "", .epoch = 5}), "");
    wait_effect(r, 0, 225, "LOCK:0");
    rig_free(r);
}

/* The one that hangs may still be a member, and the first in rank: it is not waited for. */
static void hung_holder_has_no_rank(void **state)
{
    (void)state;
    struct rig *r = rig_place(false, false);
    elector_place(r->e, 0, place_of(2, 0));
    step(r, UP, "");
    members(r, 2, 1, "");
    wait_effect(r, 0, 150, "SCAN");
    struct elector_view hung = HELD(4, -1);
    hung.holder = "a";
    seen(r, hung, "EVICT:0");
    rig_free(r);
}

/* The holder whose lock is free is dead: its rank costs nothing. */
static void dead_holder_has_no_rank(void **state)
{
    (void)state;
    struct rig *r = rig_place(false, false);
    uint64_t place = place_of(2, 0);
    elector_place(r->e, 0, place);
    step(r, UP, "");
    members(r, 2, 1, "");
    wait_effect(r, 0, 150, "SCAN");
    seen(
        r,
        SEEN(.holder = "a", .taken = true, .lock_held = true, .epoch = 3, .expiry_1_left_ms = 4000),
        "");
    wait_effect(r, 150, 450, "SCAN");
    seen(r, SEEN(.holder = "a", .lock_held = true, .epoch = 3, .expiry_1_left_ms = 3000), "LOCK:0");
    rig_free(r);
}

/* Leads account 0 as member `self` of `count`. */
static void lead_as(struct rig *r, size_t count, int self)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    step(r, UP, "");
    members(r, count, self, "");
    wait_effect(r, 0, 150, "SCAN");
    seen(r, SEEN(.holder = names[self], .mine = true, .epoch = 1), "LOCK:0");
    step(r, GOT, "CLAIM:0L");
    step(r,
         EV(.type = ELECTOR_EV_CLAIM_REPLY,
            .claim = {.granted = true, .epoch = 5, .holder = names[self]}),
         "PROMOTE:0@5 GATE:0+");
}

/* Sticky: who leads stays, whatever the ring says. */
static void sticky_stays(void **state)
{
    (void)state;
    struct rig *r = rig_place(false, false);
    elector_place(r->e, 0, place_of(3, 1));
    lead_as(r, 3, 0);
    for (int i = 0; i < 20; i++)
        next_beat(r, 3, 0, "");
    rig_free(r);
}

/* Ring: handed over once the same other member was preferred for three heartbeats; the leader leads
 * on until it has settled, and lets the others bid first. */
static void ring_hands_over(void **state)
{
    (void)state;
    struct rig *r = rig_place(true, false);
    elector_place(r->e, 0, place_of(3, 1));
    lead_as(r, 3, 0);
    next_beat(r, 3, 0, "");
    next_beat(r, 3, 0, "");
    next_beat(r, 1, 0, ""); /* gone: it is counted from the start */
    next_beat(r, 3, 0, "");
    next_beat(r, 3, 0, "");
    next_beat(r, 3, 0, "LEAVE:0");
    assert_true(elector_leaving(r->e, 0));
    assert_true(elector_gate(r->e, 0, r->now));
    next_beat(r, 3, 0, ""); /* said once */
    step(r, EV(.type = ELECTOR_EV_HAND_OVER), "GATE:0- DEMOTE:0@5 UNLOCK:0 RELEASE:0@5");
    step(r, RELEASED, "");
    uint64_t handed = r->now;
    step(r, EV(.type = ELECTOR_EV_LEADER_CHANGE, .change = {.holder = "", .epoch = 5}), "");
    wait_effect(r, 0, 450, "SCAN");
    seen(r, SEEN(.holder = "", .epoch = 5), "");
    while (r->now < handed + 1850) { /* nobody wants it: then it is bid for again */
        wait_effect(r, 0, 450, "SCAN");
        seen(r, SEEN(.holder = "", .epoch = 5), "");
    }
    wait_effect(r, 0, 450, "LOCK:0");
    /* No flapping: it takes twice as long before the same member is offered it again. */
    step(r, GOT, "CLAIM:0L");
    step(r, GRANTED(6), "PROMOTE:0@6 GATE:0+");
    for (int i = 0; i < 5; i++)
        next_beat(r, 3, 0, "");
    next_beat(r, 3, 0, "LEAVE:0");
    rig_free(r);
}

/* A bounded number a heartbeat. */
static void ring_hands_over_a_few_at_a_time(void **state)
{
    (void)state;
    struct rig *r = rig_place(true, false);
    struct elector_view all[20];
    int accounts[20];
    for (int i = 0; i < 20; i++) {
        if (i)
            elector_add(r->e);
        elector_place(r->e, i, place_of(2, 1));
        accounts[i] = i;
        all[i] = SEEN(.holder = "", .mine = true);
    }
    const struct elector_effect *fx;
    size_t n;
    step(r, UP, "");
    members(r, 2, 0, "");
    wait_effect(r, 0, 150, "SCAN");
    elector_step(r->e, r->now,
                 &EV(.type = ELECTOR_EV_SCAN_REPLY,
                     .scan = {.count = 20, .accounts = accounts, .seen = all}),
                 &fx, &n);
    for (int i = 0; i < 20; i++) {
        struct elector_event got = GOT, granted = GRANTED(5);
        got.account = granted.account = i;
        elector_step(r->e, r->now, &got, &fx, &n);
        elector_step(r->e, r->now, &granted, &fx, &n);
    }
    static const char *const names[] = {"a", "b"};
    static const size_t told[] = {0, 0, 8, 8, 4, 0};
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]);) {
        bool renew_[20], beat = false;
        memset(renew_, true, sizeof(renew_));
        r->now = elector_deadline(r->e);
        elector_step(r->e, r->now, &EV(.type = ELECTOR_EV_TICK), &fx, &n);
        bool renewal = false;
        for (size_t k = 0; k < n; k++) {
            beat |= fx[k].type == ELECTOR_FX_HEARTBEAT;
            renewal |= fx[k].type == ELECTOR_FX_RENEW;
        }
        if (renewal)
            step(r,
                 EV(.type = ELECTOR_EV_RENEW_REPLY,
                    .renew = {.count = 20, .accounts = accounts, .renewed = renew_}),
                 "");
        if (!beat)
            continue;
        elector_step(r->e, r->now,
                     &EV(.type = ELECTOR_EV_MEMBERS, .members = {.names = names, .count = 2}), &fx,
                     &n);
        assert_int_equal(n, told[i++]);
    }
    rig_free(r);
}

/* Rotation: the epoch that ended names the next one in the ring, and everybody agrees. */
static void rotation_goes_round(void **state)
{
    (void)state;
    int rotated[3] = {0};
    for (int64_t epoch = 10; epoch < 22; epoch++) {
        int first = 0;
        for (int self = 0; self < 3; self++) {
            struct rig *r = rig_place(false, true);
            const struct elector_effect *fx;
            size_t n;
            elector_place(r->e, 0, 77);
            step(r, UP, "");
            members(r, 3, self, "");
            elector_step(
                r->e, r->now,
                &EV(.type = ELECTOR_EV_LEADER_CHANGE, .change = {.holder = "", .epoch = epoch}),
                &fx, &n);
            bool at_once = n == 1 && fx[0].type == ELECTOR_FX_LOCK;
            first += at_once;
            rotated[self] += at_once;
            rig_free(r);
        }
        assert_int_equal(first, 1);
    }
    for (int self = 0; self < 3; self++)
        assert_int_equal(rotated[self], 4);
    struct rig *r = rig_place(false, true);
    elector_place(r->e, 0, place_of(2, 1));
    lead_as(r, 2, 0);
    for (int i = 0; i < 5; i++)
        next_beat(r, 2, 0, "");
    step(r, EV(.type = ELECTOR_EV_ROTATE), "LEAVE:0");
    step(r, EV(.type = ELECTOR_EV_ROTATE), "");
    step(r, EV(.type = ELECTOR_EV_HAND_OVER), "GATE:0- DEMOTE:0@5 UNLOCK:0 RELEASE:0@5");
    rig_free(r);
    r = rig_place(false, true);
    lead_as(r, 1, 0);
    step(r, EV(.type = ELECTOR_EV_ROTATE), ""); /* alone: there is nobody to hand it to */
    rig_free(r);
}

/* A relay that retires leads on until each account has settled, and bids no more. */
static void retire_then_drain(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    elector_add(r->e);
    show_beats = true;
    step(r, UP, "BEAT");
    wait_effect(r, 0, 150, "SCAN");
    seen(r, SEEN(.holder = "", .epoch = 1), "LOCK:0");
    step(r, GOT, "CLAIM:0L");
    step(r, GRANTED(5), "PROMOTE:0@5 GATE:0+");
    step(r, EV(.type = ELECTOR_EV_RETIRE), "BEAT- LEAVE:0");
    assert_true(elector_gate(r->e, 0, r->now));
    step(r,
         EV(.type = ELECTOR_EV_LEADER_CHANGE, .account = 1, .change = {.holder = "", .epoch = 5}),
         "");
    wait_effect(r, 800, 1200, "RENEW");
    renewed(r, true, "");
    step(r, EV(.type = ELECTOR_EV_HAND_OVER), "GATE:0- DEMOTE:0@5 UNLOCK:0 RELEASE:0@5");
    step(r, RELEASED, "");
    assert_int_equal(elector_deadline(r->e), UINT64_MAX);
    step(r, DRAIN, "DRAINED");
    show_beats = false;
    rig_free(r);
}

/* Accounts that are added while the store is up bid at once. */
static void late_account(void **state)
{
    (void)state;
    struct rig *r = rig_new(true);
    step(r, UP, "");
    elector_add(r->e);
    assert_true(elector_deadline(r->e) <= r->now);
    step(r, EV(.type = ELECTOR_EV_TICK), "LOCK:1");
    rig_free(r);
}

/* The bounds of the times: each refusal names the values. */
static void config_bounds(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(elector_config_check(&(struct elector_config){0}, &err), 0);
    assert_int_equal(elector_config_check(&(struct elector_config){.heartbeat_ms = 100,
                                                                   .expiry_1_ms = 600,
                                                                   .expiry_2_ms = 600,
                                                                   .margin_ms = 100},
                                          &err),
                     0);
    assert_int_equal(elector_config_check(
                         &(struct elector_config){.expiry_1_ms = 9000, .expiry_2_ms = 8000}, &err),
                     ERR_CONFIG);
    assert_non_null(strstr(err.text, "8000"));
    assert_int_equal(elector_config_check(&(struct elector_config){.margin_ms = 5000}, &err),
                     ERR_CONFIG);
    assert_int_equal(elector_config_check(&(struct elector_config){.heartbeat_ms = 3000}, &err),
                     ERR_CONFIG);
    assert_non_null(strstr(err.text, "1666"));
    assert_int_equal(
        elector_config_check(&(struct elector_config){.bid_min_ms = 500, .bid_max_ms = 400}, &err),
        ERR_CONFIG);
}

/* The picture is printed from the table that the moves are checked against. */
static void dump_names_every_state(void **state)
{
    (void)state;
    struct buf b = {0};
    elector_dump(&b);
    const char *text = buf_str(&b);
    assert_int_equal(strncmp(text, "stateDiagram-v2\n", 16), 0);
    for (int s = ELECTOR_FOLLOWER; s <= ELECTOR_RELEASE_WAIT; s++)
        assert_non_null(strstr(text, elector_state_name((enum elector_state)s)));
    assert_non_null(strstr(text, "CLAIM_WAIT --> LEADER: granted"));
    assert_null(strstr(text, "FOLLOWER --> LEADER"));
    assert_null(strstr(text, "LOCK_WAIT --> LEADER"));
    buf_done(&b);
}

/* docs/design.md shows this very table; what it shows is what is enforced. */
static void document_shows_the_table(void **state)
{
    (void)state;
    design_page_shows(elector_dump);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bid_lock_then_claim),
        cmocka_unit_test(bid_without_lock),
        cmocka_unit_test(no_bid_while_store_down),
        cmocka_unit_test(followers_look_before_they_bid),
        cmocka_unit_test(one_scan_for_a_thousand_followers),
        cmocka_unit_test(scan_tells_who_may_claim),
        cmocka_unit_test(nobody_leads_it),
        cmocka_unit_test(denied_without_lock_asks_later),
        cmocka_unit_test(orphaned_lock_takes_two_looks),
        cmocka_unit_test(scan_is_no_news_after_a_move),
        cmocka_unit_test(epoch_that_went_back),
        cmocka_unit_test(slow_scans_rest),
        cmocka_unit_test(scan_errors_grow),
        cmocka_unit_test(hung_holder_is_evicted),
        cmocka_unit_test(evicted_lock_that_stays_taken),
        cmocka_unit_test(evict_failure_keeps_bidding),
        cmocka_unit_test(denied_claim_unlocks),
        cmocka_unit_test(lock_errors_grow),
        cmocka_unit_test(renewals_extend),
        cmocka_unit_test(failing_renewals_end_at_the_deadline),
        cmocka_unit_test(refused_renewal_demotes_at_once),
        cmocka_unit_test(slow_success_does_not_extend),
        cmocka_unit_test(renewal_of_an_earlier_tenure),
        cmocka_unit_test(stale_write_demotes),
        cmocka_unit_test(doubt_claims_again),
        cmocka_unit_test(doubt_while_store_down),
        cmocka_unit_test(control_lost_demotes_with_lock),
        cmocka_unit_test(control_lost_without_lock),
        cmocka_unit_test(store_down_shuts_then_demotes),
        cmocka_unit_test(store_back_in_time),
        cmocka_unit_test(claims_that_fail_wait_longer),
        cmocka_unit_test(claim_unknown_outcome),
        cmocka_unit_test(claim_granted_too_late),
        cmocka_unit_test(claim_granted_after_session_lost),
        cmocka_unit_test(lock_got_in_a_lost_session),
        cmocka_unit_test(lock_got_while_store_down),
        cmocka_unit_test(free_account_is_bid_for_at_once),
        cmocka_unit_test(new_leader_is_learned),
        cmocka_unit_test(leader_hears_of_another),
        cmocka_unit_test(drain_leader),
        cmocka_unit_test(drain_follower),
        cmocka_unit_test(drain_in_the_middle_of_a_bid),
        cmocka_unit_test(drain_while_store_down),
        cmocka_unit_test(many_accounts_one_renewal),
        cmocka_unit_test(beats),
        cmocka_unit_test(bids_by_rank),
        cmocka_unit_test(evicts_by_rank),
        cmocka_unit_test(eviction_becomes_a_bid),
        cmocka_unit_test(hung_holder_has_no_rank),
        cmocka_unit_test(dead_holder_has_no_rank),
        cmocka_unit_test(sticky_stays),
        cmocka_unit_test(ring_hands_over),
        cmocka_unit_test(ring_hands_over_a_few_at_a_time),
        cmocka_unit_test(rotation_goes_round),
        cmocka_unit_test(retire_then_drain),
        cmocka_unit_test(late_account),
        cmocka_unit_test(config_bounds),
        cmocka_unit_test(dump_names_every_state),
        cmocka_unit_test(document_shows_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
