/* Subscriptions: their items, their end, and notifications that overtake the answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "support_rpc.h"

/* ---- subscriptions ---- */

struct watch {
    struct rpc_sub sub;
    struct rig *rig;
    bool replied, ended;
    unsigned items;
    int last;
    bool items_before_reply;
    unsigned unsubscribe_after; /* items */
    struct err end;
};

static void watch_reply(struct rpc_call *call)
{
    struct watch *w = CONTAINER_OF(CONTAINER_OF(call, struct rpc_sub, call), struct watch, sub);
    assert_false(w->replied);
    w->replied = true;
}

static void watch_item(struct rpc_sub *sub, const struct jv *item)
{
    struct watch *w = CONTAINER_OF(sub, struct watch, sub);
    w->items_before_reply |= !w->replied;
    w->items++;
    int64_t number;
    assert_true(jv_int(item, &number));
    assert_int_equal(number, w->last + 1);
    w->last = (int)number;
    if (w->items == w->unsubscribe_after)
        rpc_unsubscribe(w->rig->rpc, sub, "unsub");
}

static void watch_end(struct rpc_sub *sub, const struct err *err)
{
    struct watch *w = CONTAINER_OF(sub, struct watch, sub);
    assert_false(w->ended);
    w->ended = true;
    w->end = *err;
}

static void watch_start(struct watch *w, const char *method)
{
    rpc_subscribe_start(w->rig->rpc, &w->sub, method, "[]", NULL, NULL, watch_reply, watch_item,
                        watch_end);
    assert_false(w->replied);
}

static bool has_three(void *arg)
{
    return ((struct watch *)arg)->items >= 3;
}

static bool has_two(void *arg)
{
    return ((struct watch *)arg)->items >= 2;
}

static bool has_one(void *arg)
{
    return ((struct watch *)arg)->items >= 1;
}

static bool unsubscribed(void *arg)
{
    return ((struct rig *)arg)->unsubscribed[0] != 0;
}

static void test_subscription(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig};
    rpc_rig_start(&rig);
    watch_start(&w, "sub");
    assert_true(run_until(rig.loop, has_two, &w, LIMIT_MS));
    rpc_unsubscribe(rig.rpc, &w.sub, "unsub");
    assert_true(run_until(rig.loop, unsubscribed, &rig, LIMIT_MS));
    assert_string_equal(rig.unsubscribed, "[\"S1\"]");
    assert_false(w.ended);
    rpc_rig_done(&rig);
    assert_int_equal(w.items, 2);
}

static void test_notification_before_the_answer(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig};
    rpc_rig_start(&rig);
    watch_start(&w, "sub_early");
    assert_true(run_until(rig.loop, has_three, &w, LIMIT_MS));
    assert_false(w.items_before_reply);
    rpc_rig_done(&rig);
    assert_true(w.ended);
    assert_int_equal(w.end.code, ERR_CANCELED);
}

/* What a node sends before its answer is kept up to 1 MiB: the oldest is dropped. */
static void test_early_notifications_have_a_bound(void **state)
{
    (void)state;
    static const char *const floods[] = {"sub_early_flood", "sub_early_many"};
    for (size_t i = 0; i < ARRAY_LEN(floods); i++) { /* by their bytes, and by their number */
        struct rig rig;
        struct watch w = {.rig = &rig, .last = 1};
        rpc_rig_start(&rig);
        watch_start(&w, floods[i]);
        assert_true(run_until(rig.loop, has_one, &w, LIMIT_MS));
        assert_int_equal(w.last, 2);
        rpc_rig_done(&rig);
    }
}

static void test_an_early_notification_that_is_too_large_is_dropped_alone(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig};
    rpc_rig_start(&rig);
    watch_start(&w, "sub_early_large");
    assert_true(run_until(rig.loop, has_two, &w, LIMIT_MS));
    rpc_rig_done(&rig);
}

static void test_unsubscribe_within_an_early_item(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig, .unsubscribe_after = 1};
    rpc_rig_start(&rig);
    watch_start(&w, "sub_early");
    assert_true(run_until(rig.loop, unsubscribed, &rig, LIMIT_MS));
    assert_string_equal(rig.unsubscribed, "[\"E1\"]");
    rpc_rig_done(&rig);
    assert_int_equal(w.items, 1);
    assert_false(w.ended);
}

static void test_numeric_subscription_id(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig, .unsubscribe_after = 1};
    rpc_rig_start(&rig);
    watch_start(&w, "sub_number");
    assert_true(run_until(rig.loop, has_one, &w, LIMIT_MS));
    assert_true(run_until(rig.loop, unsubscribed, &rig, LIMIT_MS));
    assert_string_equal(rig.unsubscribed, "[42]");
    rpc_rig_done(&rig);
}

static void test_server_ends_a_subscription(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig};
    rpc_rig_start(&rig);
    watch_start(&w, "sub_ends");
    assert_true(run_until(rig.loop, is_true, &w.ended, LIMIT_MS));
    assert_int_equal(w.end.code, ERR_RPC);
    assert_non_null(strstr(w.end.text, "too slow"));
    rpc_rig_done(&rig);
}

static void test_subscription_refused(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig}, x = {.rig = &rig};
    rpc_rig_start(&rig);
    watch_start(&w, "fail");
    assert_true(run_until(rig.loop, is_true, &w.replied, LIMIT_MS));
    assert_int_equal(w.sub.call.rpc_code, 1010);
    watch_start(&x, "echo"); /* answers an array: no id */
    assert_true(run_until(rig.loop, is_true, &x.replied, LIMIT_MS));
    assert_int_equal(x.sub.call.err.code, ERR_PROTOCOL);
    rpc_rig_done(&rig);
    assert_false(w.ended || x.ended);
}

static void test_connection_lost_ends_subscriptions(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig};
    struct ask a = {0};
    rpc_rig_start(&rig);
    watch_start(&w, "sub");
    assert_true(run_until(rig.loop, has_two, &w, LIMIT_MS));
    ask(&rig, &a, "cut", "[]", 0);
    await(&rig, &a);
    assert_true(run_until(rig.loop, is_true, &w.ended, LIMIT_MS));
    assert_int_equal(w.end.code, ERR_NET);
    ask_done(&a);
    rpc_rig_done(&rig);
}

/* Forgotten before its answer, or given up at its deadline: the late answer is undone at the
 * node. */
static bool holds(void *arg)
{
    return ((struct rig *)arg)->held != NULL;
}

static void test_forgotten_before_the_answer(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig}, x = {.rig = &rig};
    struct ask a = {0}, b = {0}, c = {0};
    rpc_rig_start(&rig);
    watch_start(&w, "hold");
    rpc_unsubscribe(rig.rpc, &w.sub, "unsub"); /* before it is sent: nothing to undo */
    ask(&rig, &a, "echo", "[]", 0);
    await(&rig, &a);
    assert_int_equal(rig.seen, 1);
    watch_start(&w, "hold");
    assert_true(run_until(rig.loop, holds, &rig, LIMIT_MS));
    rpc_unsubscribe(rig.rpc, &w.sub, "unsub");
    memset(&w, 0xee, sizeof(w));    /* its owner has freed it */
    ask(&rig, &b, "echo", "[]", 0); /* makes the held one be answered */
    assert_true(run_until(rig.loop, unsubscribed, &rig, LIMIT_MS));
    assert_string_equal(rig.unsubscribed, "[\"held\"]");
    rig.unsubscribed[0] = 0;
    x.sub.call.err.code = 0;
    watch_start(&x, "hold");
    assert_true(run_until(rig.loop, holds, &rig, LIMIT_MS));
    ask(&rig, &c, "mute", "[]",
        0); /* keeps an answer out, so that the line is not taken for dead */
    await(&rig, &b);
    rpc_unsubscribe(rig.rpc, &x.sub, "unsub");
    assert_true(run_until(rig.loop, unsubscribed, &rig, LIMIT_MS));
    rpc_rig_done(&rig);
    ask_done(&a);
    ask_done(&b);
    ask_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_subscription),
        cmocka_unit_test(test_notification_before_the_answer),
        cmocka_unit_test(test_early_notifications_have_a_bound),
        cmocka_unit_test(test_an_early_notification_that_is_too_large_is_dropped_alone),
        cmocka_unit_test(test_unsubscribe_within_an_early_item),
        cmocka_unit_test(test_numeric_subscription_id),
        cmocka_unit_test(test_server_ends_a_subscription),
        cmocka_unit_test(test_subscription_refused),
        cmocka_unit_test(test_connection_lost_ends_subscriptions),
        cmocka_unit_test(test_forgotten_before_the_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
