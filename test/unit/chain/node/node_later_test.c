/* A balancer before nodes that are not equally far: what one names, another one does not have. It
 * is asked again until it is there, and what never comes is reported without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "node_internal.h"
#include "support_node.h"
#include "support_vectors.h"

static struct fake_runtime polkadot;
static struct keypair *alice;
static uint8_t account[32] = {7};

/* The node that is asked has not heard of the block that the question names, or has: so often. */
struct balancer {
    const char *method;
    unsigned block, times, asked;
    bool by_error; /* else null */
};

static bool unheard(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                    const json_t *params)
{
    struct balancer *b = f->hook_arg;
    const json_t *last = json_array_get(params, json_array_size(params) - 1);
    const char *hash = json_string_value(last);
    bool of_block = hash ? !strcmp(hash, f->blocks[b->block].hash)
                         : json_is_integer(last) && json_integer_value(last) == b->block;
    if (strcmp(method, b->method) != 0 || !of_block)
        return false;
    b->asked++;
    if (!b->times)
        return false;
    b->times--;
    if (b->by_error)
        fake_error(p, id, 4003, "Client error: UnknownBlock: Header was not found in the database",
                   NULL);
    else
        fake_answer(p, id, json_null());
    return true;
}

/* Five blocks; the fourth has an extrinsic of ours. */
static void rig_behind(struct node_rig *rig, struct balancer *b)
{
    static const uint8_t remark[] = {0, 0, 4, 'x'};
    struct extrinsic_params params = {.spec_version = polkadot.spec_version,
                                      .transaction_version = polkadot.transaction_version};
    struct buf bytes = {0}, text = {0}, events = {0};
    static uint8_t hash[32];
    struct err err = {0};
    rig_start(rig, 1, &polkadot);
    struct fake *f = &rig->fake[0];
    if (extrinsic_sign(polkadot.md, &params, alice, remark, sizeof(remark), &bytes, hash, &err))
        fail_msg("%s", err.text);
    hex_put_0x(&text, bytes.data, bytes.len);
    fake_events_begin(&events, 1);
    fake_event(&events, 0, true);
    for (unsigned i = 1; i <= 5; i++)
        fake_add(f, i == 4 ? json_pack("[s]", buf_str(&text)) : NULL, i == 4 ? &events : NULL);
    f->finalized = f->best = 5;
    f->hook = unheard;
    f->hook_arg = b;
    rig->want = hash;
    rig_connect(rig);
    node_watch_account(rig->node, account, 32);
    node_follow(rig->node, 1);
    buf_done(&bytes);
    buf_done(&text);
    buf_done(&events);
}

/* More often than it is asked at once. */
static void each_question_is_asked_again(void **state)
{
    (void)state;
    enum { TIMES = NODE_ATTEMPTS * 2 };
    static const struct balancer questions[] = {
        {"chain_getBlock", 4, TIMES, 0, false},      {"chain_getBlock", 5, TIMES, 0, false},
        {"chain_getBlockHash", 4, TIMES, 0, false},  {"state_getRuntimeVersion", 3, TIMES, 0, true},
        {"state_getStorage", 4, TIMES, 0, true}, /* the events */
        {"state_queryStorageAt", 4, TIMES, 0, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
        struct node_rig rig;
        struct balancer b = questions[i];
        rig_behind(&rig, &b);
        rig_wait_seen(&rig, 5);
        assert_int_equal(b.times, 0);
        for (size_t k = 0; k < 5; k++) {
            assert_int_equal(rig.seen[k].head.number, k + 1);
            assert_false(rig.seen[k].unread);
            assert_true(rig.seen[k].nonce != UINT64_MAX);
        }
        assert_int_equal(rig.seen[3].included.tx.result.outcome, DISPATCH_OK);
        assert_int_equal(rig.down, 0);
        assert_int_equal(ws_server_accepted(rig.fake[0].server), 1);
        rig_done(&rig);
    }
}

/* It is reported without, after a while and a few questions; the next one does not wait. */
static void what_never_comes(void **state)
{
    (void)state;
    struct node_rig rig;
    struct balancer b = {"chain_getBlock", 5, UINT32_MAX, 0, false};
    rig_behind(&rig, &b);
    rig_wait_seen(&rig, 5);
    assert_true(rig.seen[4].unread);
    assert_in_range(b.asked, 2 * NODE_ATTEMPTS, 60);
    struct fake *f = &rig.fake[0];
    b = (struct balancer){"chain_getBlock", 6, UINT32_MAX, 0, false};
    fake_add(f, NULL, NULL);
    fake_set_best(f, 6);
    fake_set_finalized(f, 6);
    rig_wait_seen(&rig, 6);
    assert_true(rig.seen[5].unread);
    assert_int_equal(b.asked, NODE_ATTEMPTS);
    assert_int_equal(rig.down, 0);
    rig_done(&rig);
}

/* Far below the head it has been pruned. */
static void what_is_pruned_is_not_waited_for(void **state)
{
    (void)state;
    struct node_rig rig;
    struct balancer b = {"chain_getBlock", 4, UINT32_MAX, 0, false};
    rig_behind(&rig, &b);
    struct fake *f = &rig.fake[0];
    for (unsigned i = 0; i < 30; i++)
        fake_add(f, NULL, NULL);
    f->finalized = f->best = 35;
    rig_wait_seen(&rig, 35);
    assert_true(rig.seen[3].unread);
    assert_int_equal(b.asked, NODE_ATTEMPTS);
    rig_done(&rig);
}

/* In a handshake. More often than that it is a fault of the endpoint. */
static void heads_that_are_named_and_not_there(void **state)
{
    (void)state;
    static const struct balancer questions[] = {
        {"chain_getHeader", 5, 7, 0, false},
        {"chain_getHeader", 5, 7, 0, true},
        {"state_getRuntimeVersion", 5, 7, 0, true},
        {"chain_getHeader", 5, 25, 0, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
        struct node_rig rig;
        struct balancer b = questions[i];
        rig_behind(&rig, &b);
        rig_wait_ready(&rig, 1);
        assert_int_equal(b.times, 0);
        assert_int_equal(rig.down > 0, i == 3);
        rig_done(&rig);
    }
}

/* Not at once: an endpoint that is back soon is not worth a word. */
static void what_waits_is_told_after_a_while(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 1, &polkadot);
    rig_up(&rig);
    rig.node->away.on = true;
    rig.node->away.number = 7;
    rig.node->away.since = loop_now_ms(rig.loop) + RIG_LIMIT_MS;
    assert_null(node_unconfirmed(rig.node));
    rig.node->away.since = 0;
    assert_non_null(strstr(node_unconfirmed(rig.node), "block 7 waits for an endpoint"));
    rig.node->away.on = false;
    assert_null(node_unconfirmed(rig.node));
    rig_done(&rig);
}

static int load(void **state)
{
    (void)state;
    fake_runtime_load(&polkadot, "polkadot", 1002005, 26, "v14-polkadot");
    alice = vectors_key("ed25519");
    return 0;
}

static int unload(void **state)
{
    (void)state;
    fake_runtime_done(&polkadot);
    keypair_free(alice);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_question_is_asked_again),
        cmocka_unit_test(what_never_comes),
        cmocka_unit_test(what_is_pruned_is_not_waited_for),
        cmocka_unit_test(heads_that_are_named_and_not_there),
        cmocka_unit_test(what_waits_is_told_after_a_while),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
