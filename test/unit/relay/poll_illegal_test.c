/* A move of the scheduler that no table has: the relay survives it, and tests do not forgive it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "aborts.h"
#include "poll_internal.h"

static struct poll *asleep(void)
{
    struct poll *p = poll_new(&(struct poll_config){.accounts = 2, .doorbells = true}, 1000);
    struct poll_effect fx;
    poll_step(p, 1000, &(struct poll_event){.type = POLL_EV_LED, .account = 1});
    poll_step(p, 1000, &(struct poll_event){.type = POLL_EV_WANT_REQUESTS, .account = 1});
    poll_step(p, 1000, &(struct poll_event){.type = POLL_EV_WANT_ROWS, .account = 1, .limit = 4});
    assert_true(poll_take(p, &fx) && fx.query == POLL_QUERY_REQUESTS);
    assert_true(poll_take(p, &fx) && fx.query == POLL_QUERY_ARM);
    poll_step(p, 1001,
              &(struct poll_event){.type = POLL_EV_ARMED, .account = 1, .question = fx.question});
    assert_true(poll_take(p, &fx) && fx.query == POLL_QUERY_OUTBOX);
    poll_step(p, 1002,
              &(struct poll_event){.type = POLL_EV_NO_ROWS, .account = 1, .question = fx.question});
    assert_int_equal(poll_outbox_state(p, 1), POLL_ASLEEP);
    assert_false(poll_take(p, &fx));
    poll_check(p);
    return p;
}

/* The polls end, the doorbell is given back, and the owner is told to load the account again. */
static void recovers(struct poll *p, const char *move)
{
    struct poll_effect fx;
    poll_step(p, 1003, &(struct poll_event){.type = POLL_EV_TICK});
    assert_true(poll_take(p, &fx) && fx.query == POLL_QUERY_DISARM && !fx.bug);
    assert_true(poll_take(p, &fx) && fx.bug && fx.account == 1);
    assert_non_null(strstr(fx.bug, move));
    assert_false(poll_take(p, &fx));
    assert_int_equal(poll_outbox_state(p, 1), POLL_OFF);
    assert_true(ABORTS(poll_check(p)));

    /* what the load wants begins new polls, and nothing is reported twice */
    poll_step(p, 1004, &(struct poll_event){.type = POLL_EV_WANT_REQUESTS, .account = 1});
    assert_true(poll_take(p, &fx) && fx.query == POLL_QUERY_REQUESTS && !fx.bug);
    poll_step(p, 1004, &(struct poll_event){.type = POLL_EV_WANT_ROWS, .account = 1, .limit = 4});
    assert_true(poll_take(p, &fx) && fx.query == POLL_QUERY_ARM && !fx.bug);
    assert_false(poll_take(p, &fx));
    poll_free(p);
}

static void of_the_outbox(void **state)
{
    (void)state;
    struct poll *p = asleep();
    poll__move_outbox(p, &p->accounts[1], POLL_MERGE_WAIT);
    recovers(p, "ASLEEP -> MERGE_WAIT");
}

static void of_requests(void **state)
{
    (void)state;
    struct poll *p = asleep();
    poll__move_requests(p, &p->accounts[1], POLL_ASLEEP);
    recovers(p, "REQUESTS_WAIT -> ASLEEP");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_outbox),
        cmocka_unit_test(of_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
