/* A move of a lane that the table does not have: the relay survives it, and tests do not forgive
 * it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "hook_internal.h"

static const struct hook_effect *effects;
static size_t count;

static void step(struct hook_core *h, struct hook_event ev)
{
    hook_step(h, 1000, &ev, &effects, &count);
}

/* The request of the lane is under way, and the table has no way back to READY: it is sent once
 * more. Whatever the two answers are, the lane ends with one report. */
static void a_lane_goes_on(void **state)
{
    (void)state;
    int item;
    struct hook_core *h = hook_core_new(&(struct hook_config){0});
    step(h, (struct hook_event){.type = HOOK_EV_TICK});
    assert_int_equal(count, 1);
    struct hook_row row = {.number = 7, .item = &item};
    struct hook_rows rows = {.webhook = "a", .account = 1, .rows = &row, .count = 1};
    step(h, (struct hook_event){.type = HOOK_EV_ROWS,
                                .rows = {.lanes = &rows, .count = 1, .due_ms = -1}});
    assert_int_equal(effects[0].type, HOOK_FX_SEND);
    assert_null(hook_check(h));
    uint64_t lane = effects[0].lane;

    struct hook_lane *l = CONTAINER_OF(list_first(&h->lanes), struct hook_lane, node);
    hook__move(h, l->state, HOOK_READY);
    l->state = HOOK_READY;
    step(h, (struct hook_event){.type = HOOK_EV_TICK});
    assert_non_null(strstr(hook_bug(h), "SENDING -> READY"));
    assert_int_equal(effects[0].type, HOOK_FX_SEND);
    assert_non_null(hook_check(h));

    step(h, (struct hook_event){.type = HOOK_EV_ANSWER, .lane = lane});
    assert_null(hook_bug(h));
    assert_int_equal(effects[count - 1].type, HOOK_FX_REPORT);
    step(h, (struct hook_event){.type = HOOK_EV_ANSWER, .lane = lane, .failed = true});
    assert_int_equal(count, 0);
    step(h, (struct hook_event){.type = HOOK_EV_REPORTED, .lane = lane});
    assert_true(list_empty(&h->lanes));
    hook_core_free(h, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_lane_goes_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
