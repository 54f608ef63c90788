/* When the table is asked, and why: one account after the other, and all of them together. */
#include "poll_harness.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "design_page.h"

static const struct poll_config swept = {.doorbells = true, .sweeps = true};
static const struct poll_config two_swept = {.accounts = 2, .doorbells = true, .sweeps = true};
static const struct poll_config no_doorbells = {0};
static const struct poll_config two_merge = {.accounts = 2};

/* From nothing to ASLEEP, with a request poll that named no time: it takes 4 ms. */
#define FALLS_ASLEEP                                                                               \
    {0, "led", ""}, {0, "wish serial=1", "requests:wanted"}, {1, "asked", ""},                     \
        {2, "want limit=4", "arm:wanted"}, {3, "armed", "outbox:armed"},                           \
        {4, "none", "requests:fell_asleep"},                                                       \
    {                                                                                              \
        4, "asked", ""                                                                             \
    }

/* ---- the outbox and its doorbell ---- */

static void sleeps_when_there_is_nothing(void **state)
{
    (void)state;
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "rang", ""}, /* no rows are wanted */
                {0, "want", "arm:wanted"}, {2, "armed", "outbox:armed"}, {3, "none", ""},
                {4, "tick", ""}, {5, "rang", "outbox:rang"}, {6, "rows", "disarm:rows"},
                {5000, "tick", ""}, {5000, "rang", ""});
}

static void the_slow_poll(void **state)
{
    (void)state;
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "want", "arm:wanted"}, {2, "armed", "outbox:armed"},
                {3, "none", ""}, {1002, "tick", ""}, {1003, "tick", "outbox:slow"},
                {1004, "none", ""}, {2003, "tick", ""}, {2004, "tick", "outbox:slow"});
}

/* The doorbell cannot be taken while a transaction that enqueued is open: 1, 2, 4 .. 20 ms. */
static void polls_while_a_transaction_is_open(void **state)
{
    (void)state;
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "want", "arm:wanted"},
                {0, "not_armed", "outbox:not_armed"}, /* at once: nothing was polled yet */
                {0, "none", "arm:empty"}, {0, "not_armed", ""}, {1, "tick", "outbox:backoff"},
                {1, "none", "arm:empty"}, {1, "not_armed", ""}, {2, "tick", ""},
                {3, "tick", "outbox:backoff"}, {3, "none", "arm:empty"}, {3, "not_armed", ""},
                {7, "tick", "outbox:backoff"}, {7, "none", "arm:empty"}, {7, "not_armed", ""},
                {15, "tick", "outbox:backoff"}, {15, "none", "arm:empty"}, {15, "not_armed", ""},
                {31, "tick", "outbox:backoff"}, {31, "none", "arm:empty"}, {31, "not_armed", ""},
                {50, "tick", ""}, {51, "tick", "outbox:backoff"}, {51, "none", "arm:empty"},
                {51, "not_armed", ""}, {60, "rang", "outbox:rang"}, {60, "rows", ""},
                {60, "want", "arm:wanted"}, {60, "not_armed", "outbox:not_armed"},
                {60, "none", "arm:empty"}, {60, "not_armed", ""}, {61, "tick", "outbox:backoff"});
}

/* Rows twice in a row: there are more, likely, and the doorbell would only be taken to be given
 * back. */
static void a_busy_account_polls_first(void **state)
{
    (void)state;
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "want", "arm:wanted"}, {0, "armed", "outbox:armed"},
                {0, "rows", "disarm:rows"}, {0, "want", "arm:wanted"}, {0, "armed", "outbox:armed"},
                {0, "rows", "disarm:rows"}, {0, "want", "outbox:wanted"}, {0, "rows", ""},
                {0, "want", "outbox:wanted"}, {0, "none", "arm:empty"},
                {0, "armed", "outbox:armed"}, {0, "none", ""}, {0, "rang", "outbox:rang"},
                {0, "rows", "disarm:rows"}, {0, "want", "arm:wanted"}); /* one row now and then */
}

static void a_wakeup_during_the_query_polls_again(void **state)
{
    (void)state;
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "want", "arm:wanted"}, {0, "armed", "outbox:armed"},
                {0, "rang", ""},
                {0, "none", "outbox:rang"}, /* the answer may be older than the wakeup */
                {0, "none", ""}, {0, "rang", "outbox:rang"}, {0, "rang", ""},
                {0, "none", "outbox:rang"}, {0, "none", ""});
}

static void a_lost_session_polls(void **state)
{
    (void)state;
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "want", "arm:wanted"}, {0, "armed", "outbox:armed"},
                {0, "none", ""}, {10, "control_lost", ""}, {209, "tick", ""},
                {210, "tick", "outbox:retry"}, {300, "rows", ""}); /* no doorbell to give back */
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "want", "arm:wanted"}, {0, "armed", "outbox:armed"},
                {1, "control_lost", ""}, {2, "none", "arm:empty"}, {3, "control_lost", ""},
                {4, "arm_failed", ""}, {203, "tick", "outbox:retry"}, {204, "control_lost", ""},
                {205, "none", "arm:empty"});
}

static void failures_are_tried_again(void **state)
{
    (void)state;
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "want", "arm:wanted"}, {0, "arm_failed", ""},
                {200, "tick", "outbox:retry"}, {210, "failed", ""}, {409, "tick", ""},
                {410, "tick", "outbox:retry"}, {410, "none", "arm:empty"},
                {410, "armed", "outbox:armed"}, {410, "failed", ""}, {610, "tick", "outbox:retry"},
                {610, "none", ""}); /* it has the doorbell all the time */
}

/* A query that the database refuses is repeated ever more rarely, whatever else asks for it. */
static void refused_queries_back_off(void **state)
{
    (void)state;
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "want", "arm:wanted"}, {0, "armed", "outbox:armed"},
                {0, "failed refused=1", ""}, {1, "rang", ""}, {199, "tick", ""},
                {200, "tick", "outbox:retry"}, {200, "failed refused=1", ""}, {599, "tick", ""},
                {600, "tick", "outbox:retry"}, {600, "failed refused=1", ""},
                {1400, "tick", "outbox:retry"}, {1400, "failed refused=1", ""},
                {3000, "tick", "outbox:retry"}, {3000, "failed refused=1", ""},
                {6200, "tick", "outbox:retry"}, {6200, "failed refused=1", ""},
                {12600, "tick", "outbox:retry"}, {12600, "failed refused=1", ""},
                {22599, "tick", ""}, {22600, "tick", "outbox:retry"}, /* the cap */
                {22600, "failed refused=1", ""}, {32600, "tick", "outbox:retry"},
                {32600, "none", ""}, {32601, "rang", "outbox:rang"});
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "wish serial=1", "requests:wanted"},
                {0, "ask_failed refused=1", ""}, {1, "wish serial=2", ""}, {2, "rang", ""},
                {200, "tick", "requests:retry"}, {201, "rang", ""},
                {202, "ask_failed refused=1", ""}, {203, "rang", ""}, {601, "tick", ""},
                {602, "tick", "requests:retry"}, {602, "asked", ""},
                {603, "rang", "requests:rang"});
}

/* ---- retries ---- */

/* Each query that can fail, and how it fails. `ends`: what ends its trouble. */
static const struct retry {
    enum poll_query query;
    enum poll_event_type fails, ends;
    bool refused;
    uint64_t cap;
} retries[] = {
    {POLL_QUERY_OUTBOX, POLL_EV_OUTBOX_FAILED, POLL_EV_NODE_UP, false, POLL_FAILED_MS},
    {POLL_QUERY_OUTBOX, POLL_EV_OUTBOX_FAILED, POLL_EV_STORE_UP, false, POLL_FAILED_MS},
    {POLL_QUERY_OUTBOX, POLL_EV_OUTBOX_FAILED, POLL_EV_STORE_UP, true, POLL_REFUSED_MS},
    {POLL_QUERY_REQUESTS, POLL_EV_REQUESTS_FAILED, POLL_EV_STORE_UP, false, POLL_FAILED_MS},
    {POLL_QUERY_REQUESTS, POLL_EV_REQUESTS_FAILED, POLL_EV_STORE_UP, true, POLL_REFUSED_MS},
    {POLL_QUERY_ARM, POLL_EV_ARM_FAILED, POLL_EV_TICK, false, POLL_UNARMED_MS},
    {POLL_QUERY_SWEEP, POLL_EV_SWEPT, POLL_EV_STORE_UP, false, POLL_REFUSED_MS},
};

/* Answers every query that is out, the one of `r` with a failure; returns how many of those. */
static unsigned answer(struct poll *p, uint64_t now, const struct retry *r)
{
    static const enum poll_event_type good[POLL_QUERIES] = {
        [POLL_QUERY_OUTBOX] = POLL_EV_NO_ROWS,
        [POLL_QUERY_REQUESTS] = POLL_EV_REQUESTS,
        [POLL_QUERY_ARM] = POLL_EV_ARMED,
        [POLL_QUERY_SWEEP] = POLL_EV_SWEPT,
    };
    struct poll_effect fx;
    unsigned count = 0;
    while (poll_take(p, &fx)) {
        bool fails = fx.query == r->query;
        struct poll_event ev = {.type = fails ? r->fails : good[fx.query], .question = fx.question};
        if (fails && fx.query == POLL_QUERY_SWEEP)
            ev.swept.failed = true;
        else if (fails)
            ev.refused = r->refused;
        else if (fx.query == POLL_QUERY_REQUESTS)
            ev.requests.next_ms = -1;
        if (fx.query != POLL_QUERY_DISARM)
            poll_step(p, now, &ev);
        count += fails;
    }
    return count;
}

/* Each retry comes later than the one before, up to a cap; the end of the trouble ends the wait. */
static void backs_off(const struct retry *r)
{
    enum { ALL_MS = 200000 };
    struct poll *p =
        poll_new(&(struct poll_config){.accounts = 1, .doorbells = true, .sweeps = true}, 1);
    poll_step(p, 1, &(struct poll_event){.type = POLL_EV_STORE_UP});
    poll_step(p, 1, &(struct poll_event){.type = POLL_EV_LED});
    poll_step(p, 1, &(struct poll_event){.type = POLL_EV_WANT_ROWS, .limit = 1});
    poll_step(p, 1, &(struct poll_event){.type = POLL_EV_WANT_REQUESTS, .serial = 1});
    uint64_t last = 0, wait = 0, now = 1;
    for (; now < ALL_MS; now = poll_deadline(p)) {
        poll_step(p, now, &(struct poll_event){.type = POLL_EV_TICK});
        if (!answer(p, now, r))
            continue;
        if (last && wait)
            assert_true(now - last >= wait);
        assert_true(!last || now - last <= r->cap + POLL_SLOW_MS);
        wait = last ? now - last : 0;
        last = now;
    }
    assert_in_range(wait, r->cap, r->cap + POLL_SLOW_MS);
    now = last + 1;
    poll_step(p, now, &(struct poll_event){.type = r->ends});
    if (r->query == POLL_QUERY_SWEEP)
        poll_step(p, poll_deadline(p), &(struct poll_event){.type = POLL_EV_TICK});
    assert_true(r->ends == POLL_EV_TICK || answer(p, now, r) == 1);
    poll_free(p);
}

static void every_retry_backs_off(void **state)
{
    (void)state;
    bool seen[POLL_QUERIES] = {
        [POLL_QUERY_DISARM] = true, /* never repeated */
        [POLL_QUERY_MERGED] = true, /* each of its accounts retries for itself */
    };
    for (size_t i = 0; i < ARRAY_LEN(retries); i++) {
        backs_off(&retries[i]);
        seen[retries[i].query] = true;
    }
    for (size_t q = 0; q < POLL_QUERIES; q++)
        if (!seen[q])
            fail_msg("no row of `retries` is about query %s", poll_query_name((enum poll_query)q));
}

/* What the database refuses is not ended by a node that comes back, nor by a wakeup. */
static void a_refusal_is_ended_by_the_database(void **state)
{
    (void)state;
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "want", "arm:wanted"}, {0, "armed", "outbox:armed"},
                {0, "failed refused=1", ""}, {1, "node_up", ""}, {2, "rang", ""},
                {3, "up", "outbox:retry"}, {4, "failed", ""}, {5, "node_up", "outbox:retry"},
                {6, "none", ""}, {7, "node_up", ""}, {8, "up", ""});
}

/* A tenure's end gives the doorbell back; one that was taken too late as well. */
static void the_doorbell_is_given_back(void **state)
{
    (void)state;
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "want", "arm:wanted"}, {0, "armed", "outbox:armed"},
                {0, "not_led", "disarm:over"}, {0, "none", ""}, {9000, "tick", ""});
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "want", "arm:wanted"}, {0, "not_led", ""},
                {1, "armed", "disarm:over"});
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "want", "arm:wanted"}, {0, "leaving", ""},
                {1, "armed", "disarm:over"}, {1, "want", ""}, {2, "not_led", ""});
    /* led again meanwhile: the lock is one, so it must not be given back under the new query */
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "want", "arm:wanted"}, {0, "not_led", ""}, {0, "led", ""},
                {0, "want", "arm:wanted"}, {1, "late armed", ""}, {1, "armed", "outbox:armed"},
                {1, "late armed", ""}, {2, "none", ""});
}

static void leaving_ends_the_outbox_polls(void **state)
{
    (void)state;
    POLL_SCRIPT(NULL, FALLS_ASLEEP, {5, "leaving", "disarm:over"},
                {6, "rang", "requests:rang"}, /* who cancels is still heard */
                {6, "want", ""}, {6, "asked", ""}, {7, "not_led", ""}, {8, "led", ""},
                {8, "want", "arm:wanted"}, {9, "leaving", ""}, {9, "not_led", ""});
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "want", "arm:wanted"},
                {0, "not_armed", "outbox:not_armed"}, {0, "leaving", ""},
                {1, "rows", ""}); /* not taken: the next leader reads them */
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "want", "arm:wanted"}, {0, "arm_failed", ""},
                {0, "leaving", ""}, {500, "tick", ""});
}

/* An answer that never comes does not end the polling, and one that comes then is nobody's. */
static void an_answer_that_never_comes(void **state)
{
    (void)state;
    POLL_SCRIPT(
        NULL, {0, "led", ""}, {0, "want", "arm:wanted"}, {59999, "tick", ""}, {60000, "tick", ""},
        {60200, "tick", "outbox:retry"}, {120200, "tick", "outbox:no_answer"},
        {120201, "late rows", ""}, {120202, "none", "arm:empty"}, {120203, "armed", "outbox:armed"},
        {180203, "tick", "outbox:no_answer"}, {180204, "late none", ""}, {180205, "none", ""});
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "wish", "requests:wanted"},
                {60000, "tick", "requests:no_answer"}, {60001, "late asked", ""},
                {60002, "asked", ""});
    POLL_SCRIPT(&swept, {0, "led", ""}, {0, "up", ""}, {0, "tick", "sweep:due"},
                {59999, "tick", ""}, {60000, "tick", ""}, {60200, "tick", "sweep:due"},
                {60201, "late swept", ""}, {60201, "swept", ""}, {61199, "tick", ""},
                {61200, "tick", "sweep:due"});
}

/* ---- request polls ---- */

static void when_requests_are_polled(void **state)
{
    (void)state;
    POLL_SCRIPT(NULL, {0, "led", ""}, {0, "rang", ""}, /* the rows are not loaded */
                {5000, "tick", ""}, {5000, "wish serial=1", "requests:wanted"},
                {5001, "asked next=300", ""}, {5300, "tick", ""},
                {5301, "tick", "requests:deadline"}, {5302, "asked next=90000", ""},
                {6301, "tick", ""}, {6302, "tick", "requests:slow"}, {6302, "rang", ""},
                {6302, "rang", ""}, {6303, "asked", "requests:rang"}, {6304, "ask_failed", ""},
                {6503, "tick", ""}, {6504, "tick", "requests:retry"}, {6505, "wish serial=2", ""},
                {6506, "ask_failed", "requests:wanted"}, {6507, "asked next=0", ""},
                {6507, "tick", "requests:deadline"}, {6508, "not_led", ""}, {6509, "asked", ""},
                {99999, "tick", ""}, {99999, "wish", ""});
}

/* The answer says which of the manager's wishes it covers: none that came after it was sent. */
static void the_answer_covers_earlier_wishes(void **state)
{
    (void)state;
    struct poll *p = poll_new(&(struct poll_config){.accounts = 1, .doorbells = true}, 0);
    struct poll_effect fx;
    poll_step(p, 0, &(struct poll_event){.type = POLL_EV_LED});
    poll_step(p, 0, &(struct poll_event){.type = POLL_EV_WANT_REQUESTS, .serial = 4});
    assert_true(poll_take(p, &fx));
    assert_int_equal(fx.serial, 4);
    poll_step(p, 0, &(struct poll_event){.type = POLL_EV_WANT_REQUESTS, .serial = 5});
    assert_false(poll_take(p, &fx)); /* one at a time */
    assert_true(
        poll_step(p, 0, &(struct poll_event){.type = POLL_EV_REQUESTS, .question = fx.question}));
    assert_true(poll_take(p, &fx));
    assert_int_equal(fx.serial, 5);
    poll_free(p);
}

static void timed_rows_are_fetched(void **state)
{
    (void)state;
    POLL_SCRIPT(NULL, FALLS_ASLEEP, {5, "rang", "outbox:rang requests:rang"}, {6, "none", ""},
                {7, "asked rows=1", "outbox:timed"}, {8, "rows", "disarm:rows"});
}

/* ---- sweeps ---- */

static void once_a_second(void **state)
{
    (void)state;
    POLL_SCRIPT(&two_swept, {0, "led", ""}, {0, "tick", ""}, {0, "up", ""}, {999, "tick", ""},
                {1000, "tick", "sweep:due"}, {1000, "1 led", ""}, {1999, "tick", ""},
                {2500, "tick", ""}, /* one at a time */
                {2500, "swept", ""}, {2699, "tick", ""}, {2700, "tick", "sweep:due*2"},
                {2705, "swept", ""}, {3700, "down", ""}, {3700, "tick", ""}, {3700, "up", ""},
                {4700, "tick", "sweep:due*2"}, {4701, "1 not_led", ""}, {4702, "swept", ""},
                {5700, "tick", "sweep:due"});
}

/* A covered account sends nothing; what is known of its time counts to the millisecond. */
static void a_covered_account(void **state)
{
    (void)state;
    POLL_SCRIPT(&swept, {0, "up", ""}, FALLS_ASLEEP, {4, "tick", "sweep:due"}, {5, "swept", ""},
                {1004, "tick", "sweep:due"}, {1005, "swept next=800", ""}, {1803, "tick", ""},
                {1804, "tick", "requests:deadline"}, {1805, "asked next=40", ""},
                {1844, "tick", ""}, {1845, "tick", "requests:deadline"}, {1846, "asked", ""},
                {2004, "tick", "sweep:due"}, {2005, "swept", ""}, {2846, "tick", ""},
                {3004, "down", ""}, {3004, "tick", ""}, {4004, "tick", ""},
                {5004, "tick", ""},                            /* covered for three seconds */
                {12846, "tick", "outbox:slow requests:slow"}); /* it found out within ten */
}

/* Without settings that the manager was told, a request poll is a real one. */
static void settings_that_are_not_known(void **state)
{
    (void)state;
    POLL_SCRIPT(&swept, {0, "up", ""}, {0, "led", ""}, {0, "tick", "sweep:due"}, {1, "swept", ""},
                {1, "wish", "requests:wanted"}, {2, "ask_failed", ""},
                {202, "tick", "requests:retry"}, {203, "asked", ""}, {1203, "tick", "sweep:due"});
}

static void what_a_sweep_finds_is_a_reason(void **state)
{
    (void)state;
    POLL_SCRIPT(&swept, {0, "up", ""}, FALLS_ASLEEP, {4, "tick", "sweep:due"},
                {5, "swept look=1 rows=1", "requests:sweep outbox:sweep"}, {6, "none", ""},
                {6, "asked", ""}, {1004, "tick", "sweep:due"},
                {1005, "swept rows=1", "outbox:sweep"}, {1006, "rows", "disarm:rows"},
                {2004, "tick", "sweep:due"},
                {2005, "swept rows=1", ""}, /* the manager wants none */
                {3004, "tick", "sweep:due"}, {3005, "swept lost=1", "lost:over"});
}

static void a_failed_sweep_covers_nobody(void **state)
{
    (void)state;
    POLL_SCRIPT(&swept, {0, "up", ""}, FALLS_ASLEEP, {4, "tick", "sweep:due"},
                {500, "swept failed=1", ""}, {1003, "tick", ""},
                {1004, "tick", "outbox:slow requests:slow sweep:due"});
}

/* While a sweep is on its way, however long, the account's own query would only stand behind it; a
 * slow one covers for longer. */
static void slow_sweeps(void **state)
{
    (void)state;
    struct poll *p =
        poll_new(&(struct poll_config){.accounts = 1, .sweeps = true, .doorbells = true}, 0);
    struct poll_effect fx;
    static const struct {
        uint64_t asked, answered, covered_until;
    } turns[] = {{0, 5, 5 + 3000},
                 {1000, 5005, 5005 + 15000},
                 {5205, 6005, 6005 + 3000},
                 {6205, 66000, 66000 + 60000}};
    poll_step(p, 0, &(struct poll_event){.type = POLL_EV_STORE_UP});
    poll_step(p, 0, &(struct poll_event){.type = POLL_EV_LED});
    for (size_t i = 0; i < sizeof(turns) / sizeof(*turns); i++) {
        poll_step(p, turns[i].asked, &(struct poll_event){.type = POLL_EV_TICK});
        assert_true(poll_take(p, &fx));
        assert_true(poll_covered(p, 0, turns[i].answered));
        struct poll_event ev = {.type = POLL_EV_SWEPT, .question = fx.question};
        assert_true(poll_step(p, turns[i].answered, &ev));
        assert_true(poll_covered(p, 0, turns[i].covered_until - 1));
        assert_false(poll_covered(p, 0, turns[i].covered_until));
    }
    poll_free(p);
}

static void not_together_with_other_relays(void **state)
{
    (void)state;
    static const uint64_t seeds[] = {7, 8, UINT64_MAX};
    uint64_t due[3];
    for (int i = 0; i < 3; i++) {
        struct poll *p =
            poll_new(&(struct poll_config){.accounts = 1, .sweeps = true, .seed = seeds[i]}, 50);
        due[i] = poll_deadline(p);
        assert_in_range(due[i], 50, 50 + POLL_SWEEP_MS - 1);
        poll_free(p);
    }
    assert_int_not_equal(due[0], due[1]);
}

/* Every account's turn comes within a second, and no query is about more than a slice. */
static void slices(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 999, 1000, 1001, 2500, 10000};
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        struct poll *p = poll_new(&(struct poll_config){.accounts = counts[i], .sweeps = true}, 0);
        struct poll_effect fx;
        size_t asked = 0, statements = 0;
        poll_step(p, 0, &(struct poll_event){.type = POLL_EV_STORE_UP});
        for (size_t a = 0; a < counts[i]; a++)
            poll_step(p, 0, &(struct poll_event){.type = POLL_EV_LED, .account = a});
        for (uint64_t now = 0; now < POLL_SWEEP_MS; now = poll_deadline(p)) {
            poll_step(p, now, &(struct poll_event){.type = POLL_EV_TICK});
            assert_true(poll_take(p, &fx));
            assert_in_range(fx.count, 1, POLL_SLICE);
            assert_int_equal(fx.accounts[0], asked % counts[i]);
            asked += fx.count;
            statements++;
            poll_step(p, now, &(struct poll_event){.type = POLL_EV_SWEPT, .question = fx.question});
        }
        assert_true(asked >= counts[i]);
        assert_in_range(statements, (counts[i] + POLL_SLICE - 1) / POLL_SLICE,
                        counts[i] / POLL_SLICE + 2);
        poll_free(p);
    }
}

/* ---- without doorbells ---- */

/* Five polls without rows, at 0, 1, 3, 7 and 15 ms. */
#define GETS_TIRED                                                                                 \
    {0, "led", ""}, {0, "want", "outbox:wanted"}, {0, "none", ""}, {1, "tick", "outbox:backoff"},  \
        {1, "none", ""}, {3, "tick", "outbox:backoff"}, {3, "none", ""},                           \
        {7, "tick", "outbox:backoff"}, {7, "none", ""}, {15, "tick", "outbox:backoff"},            \
    {                                                                                              \
        15, "none", ""                                                                             \
    }

static void one_account_without_doorbells(void **state)
{
    (void)state;
    POLL_SCRIPT(&no_doorbells, {0, "led", ""}, {0, "want", "outbox:wanted"}, {0, "rows", ""},
                {0, "want", "outbox:wanted"}, {0, "none", ""}, {1, "tick", "outbox:backoff"},
                {1, "failed", ""}, {201, "tick", "outbox:retry"}, {201, "none", ""},
                {203, "tick", "outbox:backoff"}, {203, "control_lost", ""}, {204, "rows", ""});
    POLL_SCRIPT(&no_doorbells, GETS_TIRED, {31, "tick", "outbox:backoff"}, {31, "none", ""},
                {50, "tick", ""}, {51, "tick", "outbox:backoff"}); /* nobody to poll with */
}

static void tired_accounts_poll_together(void **state)
{
    (void)state;
    POLL_SCRIPT(&two_merge, GETS_TIRED, {31, "tick", "merged:due"}, {32, "merged", ""},
                {32, "1 led", ""}, {32, "1 want", "1.outbox:wanted"}, {32, "1 none", ""},
                {33, "tick", "1.outbox:backoff"}, {33, "1 none", ""},
                {35, "tick", "1.outbox:backoff"}, {35, "1 none", ""},
                {39, "tick", "1.outbox:backoff"}, {39, "1 none", ""},
                {47, "tick", "1.outbox:backoff"}, {49, "1 none", ""},
                {52, "tick", "merged:due*2"}, /* the second one, due at 65, comes along */
                {53, "rang", ""}, {54, "merged index=1 rows=1", "outbox:rang 1.outbox:merged"},
                {55, "1 rows", ""}, {55, "none", ""}, {75, "tick", "merged:due"},
                {76, "merged failed=1", ""}, {276, "tick", "outbox:retry"}, {276, "none", ""},
                {296, "tick", "merged:due"}, {297, "not_led", ""}, {298, "merged rows=1", ""});
}

/* One merged poll is out at a time: who is due meanwhile is in the next one. */
static void merged_polls_take_turns(void **state)
{
    (void)state;
    POLL_SCRIPT(&two_merge, GETS_TIRED, {20, "1 led", ""}, {20, "1 want", "1.outbox:wanted"},
                {20, "1 none", ""}, {21, "tick", "1.outbox:backoff"}, {21, "1 none", ""},
                {23, "tick", "1.outbox:backoff"}, {23, "1 none", ""},
                {27, "tick", "1.outbox:backoff"}, {27, "1 none", ""}, {31, "tick", "merged:due"},
                {35, "tick", "1.outbox:backoff"}, {35, "1 none", ""}, {51, "tick", ""},
                {52, "merged", "merged:due*2"}, {53, "merged", ""}, {60, "leaving", ""},
                {73, "tick", "merged:due"}, {74, "1 leaving", ""}, {75, "merged", ""},
                {76, "1 not_led", ""});
}

static void a_merged_poll_that_is_lost(void **state)
{
    (void)state;
    POLL_SCRIPT(&two_merge, GETS_TIRED, {31, "tick", "merged:due"}, {60031, "tick", ""},
                {60231, "tick", "outbox:retry"}, {60231, "none", ""}, {60251, "tick", "merged:due"},
                {60252, "late merged rows=1", ""}, {60253, "merged lost=1", "lost:over"},
                {60453, "tick", "outbox:retry"});
}

/* ---- the core itself ---- */

/* What was queued for a tenure that has ended is not carried out; the doorbell is still given
 * back. */
static void effects_of_a_former_tenure(void **state)
{
    (void)state;
    struct poll *p = poll_new(&(struct poll_config){.accounts = 1, .doorbells = true}, 0);
    struct poll_effect fx;
    poll_step(p, 0, &(struct poll_event){.type = POLL_EV_LED});
    poll_step(p, 0, &(struct poll_event){.type = POLL_EV_WANT_ROWS, .limit = 9});
    assert_true(poll_take(p, &fx));
    assert_int_equal(fx.query, POLL_QUERY_ARM);
    poll_step(p, 0, &(struct poll_event){.type = POLL_EV_ARMED, .question = fx.question});
    poll_step(p, 0, &(struct poll_event){.type = POLL_EV_NOT_LED});
    assert_true(poll_take(p, &fx));
    assert_int_equal(fx.query, POLL_QUERY_DISARM);
    assert_false(poll_take(p, &fx));
    poll_free(p);
}

static void every_name_is_there(void **state)
{
    (void)state;
    for (int i = 0; i < POLL_QUERIES; i++)
        assert_non_null(poll_query_name((enum poll_query)i));
    for (int i = 0; i < POLL_REASONS; i++)
        assert_non_null(poll_reason_name((enum poll_reason)i));
}

static void document_shows_the_tables(void **state)
{
    (void)state;
    design_page_shows(poll_outbox_dump);
    design_page_shows(poll_requests_dump);
}

/* The scripts of this file take every edge of the table. */
static void every_edge_was_taken(void **state)
{
    (void)state;
    struct buf missing = {0};
    poll_moves_missing(poll_script_moved, &missing);
    if (missing.len)
        fail_msg("not taken:\n%s", buf_str(&missing));
    buf_done(&missing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sleeps_when_there_is_nothing),
        cmocka_unit_test(the_slow_poll),
        cmocka_unit_test(polls_while_a_transaction_is_open),
        cmocka_unit_test(a_busy_account_polls_first),
        cmocka_unit_test(a_wakeup_during_the_query_polls_again),
        cmocka_unit_test(a_lost_session_polls),
        cmocka_unit_test(failures_are_tried_again),
        cmocka_unit_test(refused_queries_back_off),
        cmocka_unit_test(every_retry_backs_off),
        cmocka_unit_test(a_refusal_is_ended_by_the_database),
        cmocka_unit_test(the_doorbell_is_given_back),
        cmocka_unit_test(leaving_ends_the_outbox_polls),
        cmocka_unit_test(an_answer_that_never_comes),
        cmocka_unit_test(when_requests_are_polled),
        cmocka_unit_test(the_answer_covers_earlier_wishes),
        cmocka_unit_test(timed_rows_are_fetched),
        cmocka_unit_test(once_a_second),
        cmocka_unit_test(a_covered_account),
        cmocka_unit_test(settings_that_are_not_known),
        cmocka_unit_test(what_a_sweep_finds_is_a_reason),
        cmocka_unit_test(a_failed_sweep_covers_nobody),
        cmocka_unit_test(slow_sweeps),
        cmocka_unit_test(not_together_with_other_relays),
        cmocka_unit_test(slices),
        cmocka_unit_test(one_account_without_doorbells),
        cmocka_unit_test(tired_accounts_poll_together),
        cmocka_unit_test(merged_polls_take_turns),
        cmocka_unit_test(a_merged_poll_that_is_lost),
        cmocka_unit_test(effects_of_a_former_tenure),
        cmocka_unit_test(every_name_is_there),
        cmocka_unit_test(document_shows_the_tables),
        cmocka_unit_test(every_edge_was_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
