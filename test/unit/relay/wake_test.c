/* The outbox wake-up: no wake-up is lost in any order of commits, and a leader that sleeps asks nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/rng.h"
#include "relay/core/poll/wake.h"

static void sleeps_when_there_is_nothing(void **state)
{
    (void)state;
    struct wake w;
    wake_init(&w);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_RING), WAKE_FX_NONE); /* not wanted: nothing to do */
    assert_int_equal(wake_step(&w, 0, WAKE_EV_WANT), WAKE_FX_ARM);
    assert_int_equal(wake_step(&w, 2, WAKE_EV_ARMED), WAKE_FX_FETCH);
    assert_int_equal(wake_step(&w, 3, WAKE_EV_NONE), WAKE_FX_NONE);
    assert_int_equal(w.state, WAKE_ASLEEP);
    assert_int_equal(w.deadline_ms, 3 + WAKE_NET_MS);
    assert_int_equal(wake_step(&w, 4, WAKE_EV_TICK), WAKE_FX_NONE);
    assert_int_equal(wake_step(&w, 4, WAKE_EV_COVERED), WAKE_FX_NONE); /* others look for it */
    assert_int_equal(w.deadline_ms, 4 + WAKE_REST_MS);
    assert_int_equal(wake_step(&w, 5, WAKE_EV_RING), WAKE_FX_FETCH);
    assert_int_equal(wake_step(&w, 5, WAKE_EV_COVERED), WAKE_FX_NONE); /* a question is out: it stays so */
    assert_int_equal(w.state, WAKE_FETCH_WAIT);
    assert_int_equal(wake_step(&w, 6, WAKE_EV_ROWS), WAKE_FX_DISARM);
    assert_int_equal(w.state, WAKE_OFF);
}

static void polls_while_a_transaction_is_open(void **state)
{
    (void)state;
    struct wake w;
    wake_init(&w);
    uint64_t now = 0, gap = 0;
    assert_int_equal(wake_step(&w, now, WAKE_EV_WANT), WAKE_FX_ARM);
    assert_int_equal(wake_step(&w, now, WAKE_EV_NOT_ARMED),
                     WAKE_FX_FETCH); /* at once: it has not asked yet */
    for (int i = 0; i < 20; i++) {
        assert_int_equal(wake_step(&w, now, WAKE_EV_NONE), WAKE_FX_ARM);
        assert_int_equal(wake_step(&w, now, WAKE_EV_NOT_ARMED), WAKE_FX_NONE);
        gap = w.deadline_ms - now;
        assert_in_range(gap, 1, WAKE_POLL_MAX_MS);
        now = w.deadline_ms;
        assert_int_equal(wake_step(&w, now, WAKE_EV_TICK), WAKE_FX_FETCH);
    }
    assert_int_equal(gap, WAKE_POLL_MAX_MS);
}

/* Rows twice in a row: there are more, likely, and the bell would only be taken to be given back. */
static void a_busy_account_asks_first(void **state)
{
    (void)state;
    struct wake w;
    wake_init(&w);
    wake_step(&w, 0, WAKE_EV_WANT);
    wake_step(&w, 0, WAKE_EV_ARMED);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_ROWS), WAKE_FX_DISARM);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_WANT), WAKE_FX_ARM);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_ARMED), WAKE_FX_FETCH);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_ROWS), WAKE_FX_DISARM);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_WANT), WAKE_FX_FETCH);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_ROWS), WAKE_FX_NONE);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_WANT), WAKE_FX_FETCH);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_NONE), WAKE_FX_ARM);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_ARMED), WAKE_FX_FETCH); /* looks once more */
    assert_int_equal(wake_step(&w, 0, WAKE_EV_NONE), WAKE_FX_NONE);
    assert_int_equal(w.state, WAKE_ASLEEP);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_RING), WAKE_FX_FETCH);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_ROWS), WAKE_FX_DISARM);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_WANT), WAKE_FX_ARM); /* one row now and then */
}

static void a_ring_during_the_question_asks_again(void **state)
{
    (void)state;
    struct wake w;
    wake_init(&w);
    wake_step(&w, 0, WAKE_EV_WANT);
    wake_step(&w, 0, WAKE_EV_ARMED);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_RING), WAKE_FX_NONE);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_NONE),
                     WAKE_FX_FETCH); /* the answer may be older than the ring */
    assert_int_equal(wake_step(&w, 0, WAKE_EV_NONE), WAKE_FX_NONE);
    assert_int_equal(w.state, WAKE_ASLEEP);
}

static void a_lost_session_polls(void **state)
{
    (void)state;
    struct wake w;
    wake_init(&w);
    wake_step(&w, 0, WAKE_EV_WANT);
    wake_step(&w, 0, WAKE_EV_ARMED);
    wake_step(&w, 0, WAKE_EV_NONE);
    assert_int_equal(wake_step(&w, 10, WAKE_EV_CONTROL_LOST), WAKE_FX_NONE);
    assert_int_equal(w.state, WAKE_POLL);
    assert_false(w.armed);
    assert_int_equal(wake_step(&w, 10 + WAKE_RETRY_MS, WAKE_EV_TICK), WAKE_FX_FETCH);
    assert_int_equal(wake_step(&w, 300, WAKE_EV_ROWS), WAKE_FX_NONE); /* there is no doorbell to give back */
}

static void reset_gives_the_doorbell_back(void **state)
{
    (void)state;
    struct wake w;
    wake_init(&w);
    wake_step(&w, 0, WAKE_EV_WANT);
    wake_step(&w, 0, WAKE_EV_ARMED);
    assert_int_equal(wake_step(&w, 0, WAKE_EV_RESET), WAKE_FX_DISARM);
    assert_int_equal(w.state, WAKE_OFF);
    assert_int_equal(w.deadline_ms, UINT64_MAX);
}

/* A model of enqueues, commits, the lock and NOTIFY in random order: a committed row is fetched without the
 * slow net. */
static void no_wake_up_is_lost(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct rng rng = {seed};
        struct wake w;
        wake_init(&w);
        int open_shared = 0, open_ring = 0,
            visible = 0; /* open transactions: with the lock; that will notify */
        int rings = 0;
        uint64_t now = 0;
        enum { NOTHING, FETCH, ARM } asked = NOTHING;
        int seen_at_ask = 0;
        bool held = false;
        unsigned fx = wake_step(&w, now, WAKE_EV_WANT);
        for (int step = 0; step < 300; step++) {
            if (fx & WAKE_FX_DISARM)
                held = false;
            if (fx & WAKE_FX_FETCH)
                asked = FETCH;
            if (fx & WAKE_FX_ARM)
                asked = ARM;
            fx = 0;
            now++;
            bool quiet = step > 200; /* no new work: everything must drain */
            switch (rng_below(&rng, 6)) {
            case 0: /* an application enqueues */
                if (quiet)
                    break;
                if (held)
                    open_ring++;
                else
                    open_shared++;
                break;
            case 1: /* commit or roll back: visible before the lock goes and before listeners hear */
                if (open_shared) {
                    open_shared--;
                    visible += rng_below(&rng, 4) != 0;
                }
                break;
            case 2:
                if (open_ring) {
                    open_ring--;
                    if (rng_below(&rng, 4)) {
                        visible++;
                        rings++;
                    }
                }
                break;
            case 3: /* the question reaches the database; a fetch sees what is visible then */
                seen_at_ask = asked == FETCH ? visible : seen_at_ask;
                if (asked == FETCH) {
                    asked = NOTHING;
                    visible -= seen_at_ask;
                    fx = wake_step(&w, now, seen_at_ask ? WAKE_EV_ROWS : WAKE_EV_NONE);
                    if (seen_at_ask)
                        fx |= wake_step(&w, now, WAKE_EV_WANT);
                } else if (asked == ARM) {
                    asked = NOTHING;
                    held = open_shared == 0;
                    fx = wake_step(&w, now, held ? WAKE_EV_ARMED : WAKE_EV_NOT_ARMED);
                }
                break;
            case 4:
                if (rings) {
                    rings--;
                    fx = wake_step(&w, now, WAKE_EV_RING);
                }
                break;
            default:
                if (w.state == WAKE_POLL && now >= w.deadline_ms)
                    fx = wake_step(&w, now, WAKE_EV_TICK);
                break;
            }
            if (w.state == WAKE_ASLEEP) /* nothing visible may wait while nobody will ring */
                assert_true(visible == 0 || rings > 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sleeps_when_there_is_nothing),
        cmocka_unit_test(polls_while_a_transaction_is_open),
        cmocka_unit_test(a_busy_account_asks_first),
        cmocka_unit_test(a_ring_during_the_question_asks_again),
        cmocka_unit_test(a_lost_session_polls),
        cmocka_unit_test(reset_gives_the_doorbell_back),
        cmocka_unit_test(no_wake_up_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
