/* An endpoint that answers questions about one block by errors of no known meaning, or by what does
 * not decode: its connection stays, the other blocks go on, the log names what it lacks, and
 * another endpoint is asked. */
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

enum { BLOCKS = 20, BROKEN = 4, ALL = 0 };

static struct fake_runtime polkadot;
static struct keypair *alice;
static uint8_t account[32] = {7};

/* Questions of this method about this block, or about ALL, are answered by an error, or, where the
 * code is 0, by this text: so often. */
struct broken {
    const char *method;
    unsigned block; /* whose hash is asked with, or the height */
    int code;
    const char *text;
    unsigned times, asked;
};

static bool is_of(const struct fake *f, unsigned block, const json_t *params)
{
    const json_t *last = json_array_get(params, json_array_size(params) - 1);
    const char *hash = json_string_value(last);
    if (block == ALL)
        return true;
    return hash ? !strcmp(hash, f->blocks[block].hash)
                : json_is_integer(last) && json_integer_value(last) == block;
}

static bool breaks(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                   const json_t *params)
{
    struct broken *b = f->hook_arg;
    if (!f->version_sub[0] || strcmp(method, b->method) != 0 || !is_of(f, b->block, params))
        return false;
    b->asked++;
    if (!b->times)
        return false;
    b->times--;
    if (b->code)
        fake_error(p, id, b->code, b->text, NULL);
    else
        fake_answer(p, id, json_string(b->text));
    return true;
}

/* The fourth block has an extrinsic of ours. */
static void begin(struct node_rig *rig, size_t endpoints, struct broken *b, uint32_t tick_ms)
{
    static const uint8_t remark[] = {0, 0, 4, 'x'};
    static uint8_t hash[32];
    struct extrinsic_params params = {.spec_version = polkadot.spec_version,
                                      .transaction_version = polkadot.transaction_version};
    struct buf bytes = {0}, text = {0}, events = {0};
    struct err err = {0};
    rig_start(rig, endpoints, &polkadot);
    struct fake *f = &rig->fake[0];
    if (extrinsic_sign(polkadot.md, &params, alice, remark, sizeof(remark), &bytes, hash, &err))
        fail_msg("%s", err.text);
    hex_put_0x(&text, bytes.data, bytes.len);
    fake_events_begin(&events, 1);
    fake_event(&events, 0, true);
    for (unsigned i = 1; i <= BLOCKS; i++)
        fake_add(f, i == BROKEN ? json_pack("[s]", buf_str(&text)) : NULL,
                 i == BROKEN ? &events : NULL);
    for (size_t i = 0; i < endpoints; i++) {
        if (i)
            fake_copy(&rig->fake[i], f);
        rig->fake[i].finalized = rig->fake[i].best = BLOCKS;
    }
    f->hook = breaks;
    f->hook_arg = b;
    rig->want = hash;
    rig->config.confirm_ms = tick_ms; /* its patience */
    rig_connect(rig);
    node_watch_account(rig->node, account, sizeof(account));
    node_follow(rig->node, 1);
    buf_done(&bytes);
    buf_done(&text);
    buf_done(&events);
}

/* Each question about one block, and what is missing if no endpoint ever answers it. */
static const struct {
    struct broken b;
    bool unread, no_result, no_nonce;
} questions[] = {
    {{"chain_getBlock", BROKEN, -32603, "Internal error", UINT32_MAX, 0}, true, true, false},
    {{"chain_getBlock", BROKEN, -32000, "Database error", UINT32_MAX, 0}, true, true, false},
    {{"chain_getBlock", BROKEN, 502, "Bad Gateway", UINT32_MAX, 0}, true, true, false},
    {{"chain_getBlockHash", BROKEN, -32603, "Internal error", UINT32_MAX, 0}, true, true, true},
    {{"state_getRuntimeVersion", BROKEN - 1, -32603, "Internal error", UINT32_MAX, 0},
     false,
     true,
     false},
    {{"state_getStorage", BROKEN, -32603, "Internal error", UINT32_MAX, 0}, false, true, false},
    {{"state_queryStorageAt", BROKEN, -32603, "Internal error", UINT32_MAX, 0}, false, false, true},
    {{"state_getStorage", BROKEN, 0, "0x0400", UINT32_MAX, 0}, false, true, false},
    {{"state_getStorage", BROKEN, 0, "no events", UINT32_MAX, 0}, false, true, false},
    {{"state_queryStorageAt", BROKEN, 0, "0x00", UINT32_MAX, 0}, false, false, true},
};

static void expect(const struct node_rig *rig, bool unread, bool no_result, bool no_nonce)
{
    assert_int_equal(rig->view_count, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++) {
        const struct seen_block *s = &rig->seen[i];
        bool here = i + 1 == BROKEN;
        assert_int_equal(s->head.number, i + 1);
        assert_int_equal(s->unread, here && unread);
        assert_int_equal(s->nonce == UINT64_MAX, here && no_nonce);
        assert_int_equal(s->included_count, here && !unread);
        if (here && !unread)
            assert_int_equal(s->included.tx.result.outcome,
                             no_result ? DISPATCH_NONE : DISPATCH_OK);
    }
}

static void the_connection_stays(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
        struct node_rig rig;
        struct broken b = questions[i].b;
        begin(&rig, 1, &b, RIG_TICK_MS);
        rig_wait_seen(&rig, BLOCKS);
        expect(&rig, questions[i].unread, questions[i].no_result, questions[i].no_nonce);
        assert_true(b.asked > NODE_ATTEMPTS);
        assert_int_equal(rig.ready, 1);
        assert_int_equal(rig.down, 0);
        assert_int_equal(ws_server_accepted(rig.fake[0].server), 1);
        rig_done(&rig);
    }
}

static void the_second_endpoint_is_asked(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
        struct node_rig rig;
        struct broken b = questions[i].b;
        begin(&rig, 2, &b, RIG_TICK_MS);
        rig_wait_seen(&rig, BLOCKS);
        expect(&rig, false, false, false);
        assert_int_equal(rig.ready, 2);
        assert_non_null(rig.fake[1].peer);
        rig_done(&rig);
    }
}

/* All blocks are refused for longer than one alone would wait: none is passed over. */
static void an_outage_loses_nothing(void **state)
{
    (void)state;
    enum { ROUNDS = 15 };
    struct node_rig rig;
    struct broken b = {"chain_getBlock",
                       ALL,
                       -32603,
                       "Internal error",
                       NODE_PIPELINE * (NODE_ATTEMPTS + ROUNDS),
                       0};
    begin(&rig, 1, &b, RIG_TICK_MS);
    rig_wait_seen(&rig, BLOCKS);
    expect(&rig, false, false, false);
    assert_int_equal(b.times, 0);
    assert_int_equal(rig.down, 0);
    rig_done(&rig);
}

static bool is_told(void *arg)
{
    struct node_rig *rig = arg;
    const char *text = node_unconfirmed(rig->node);
    return text && strstr(text, "block 1 waits: ws://") && strstr(text, "Internal error");
}

/* It is told while they wait, and in the end they are reported without their bodies. */
static void an_outage_for_ever(void **state)
{
    (void)state;
    struct node_rig rig;
    struct broken b = {"chain_getBlock", ALL, -32603, "Internal error", UINT32_MAX, 0};
    begin(&rig, 1, &b, 5);
    assert_true(rig_wait(&rig, is_told));
    rig_wait_seen(&rig, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++) {
        assert_int_equal(rig.seen[i].head.number, i + 1);
        assert_true(rig.seen[i].unread);
        assert_true(rig.seen[i].nonce != UINT64_MAX);
    }
    assert_int_equal(rig.down, 0);
    rig_done(&rig);
}

/* The first endpoint has no body below HAS, and answers by this error for the block that the search
 * for its oldest body asks for first. */
enum { HAS = 5, MIDDLE = 11 };

static bool pruned_and_broken(struct fake *f, struct ws_peer *p, const char *method,
                              const json_t *id, const json_t *params)
{
    const struct broken *b = f->hook_arg;
    if (strcmp(method, "chain_getBlock") != 0)
        return false;
    for (unsigned block = 1; block < HAS; block++)
        if (is_of(f, block, params)) {
            fake_answer(p, id, json_null());
            return true;
        }
    if (!is_of(f, MIDDLE, params))
        return false;
    fake_error(p, id, b->code, b->text, NULL);
    return true;
}

/* Such an answer does not say that the endpoint lacks what it was asked for. */
static void an_error_is_no_lack(void **state)
{
    (void)state;
    static const struct broken answers[] = {{.code = -32603, .text = "Internal error"},
                                            {.code = -32000, .text = "Database error"},
                                            {.code = 502, .text = "Bad Gateway"},
                                            {.code = 403, .text = "Forbidden"}};
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct node_rig rig;
        struct broken b = answers[i], none = {.method = ""};
        begin(&rig, 2, &none, RIG_TICK_MS);
        rig.fake[0].hook = pruned_and_broken;
        rig.fake[0].hook_arg = &b;
        rig_wait_seen(&rig, BLOCKS);
        expect(&rig, false, false, false);
        assert_int_equal(rig.ready, 2);
        assert_in_range(rig.node->endpoints[0].lacks_to[LACK_BODY], 1, HAS - 1);
        rig_done(&rig);
    }
}

/* ---- a state that an endpoint says it does not have ---- */

enum { USED = 77 };

struct asked_nonce {
    struct node_ask ask;
    bool done;
};

static void told(struct node_ask *ask)
{
    CONTAINER_OF(ask, struct asked_nonce, ask)->done = true;
}

static bool is_done(void *arg)
{
    const struct asked_nonce *q = arg;
    return q->done;
}

/* The best block's account is null; the runtime answers this about its nonce, or, if NULL, nothing
 * that anyone can use. */
static bool absent(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                   const json_t *params)
{
    const char *of_runtime = f->hook_arg;
    bool call = !strcmp(method, "state_call") &&
                strstr(json_string_value(json_array_get(params, 0)), "AccountNonceApi");
    if (call && of_runtime)
        fake_answer(p, id, json_string(of_runtime));
    else if (call)
        fake_error(p, id, -32603, "Internal error", NULL);
    else if (!strcmp(method, "state_getStorage") && json_array_size(params) == 1)
        fake_answer(p, id, json_null());
    else
        return false;
    return true;
}

static void ask_again(struct node_rig *rig, struct asked_nonce *q)
{
    q->done = false;
    node_ask_nonce(rig->node, &q->ask, account, sizeof(account), told);
    assert_true(run_until(rig->loop, is_done, q, rig_limit()));
}

/* Null is a nonce of 0 only for an account that has used none. */
static void null_for_an_account(void **state)
{
    (void)state;
    static const struct {
        uint32_t used;
        const char *of_runtime;
        bool leaves;
        uint64_t nonce;
    } cases[] = {
        {USED, "0x4d000000", false, USED},
        {USED, "0x00000000", false, 0}, /* it was reaped after the last final block */
        {USED, NULL, true, USED},
        {0, NULL, false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct node_rig rig;
        struct asked_nonce q = {0};
        rig_start(&rig, 2, &polkadot);
        struct fake *f = &rig.fake[0];
        for (unsigned block = 1; block <= 3; block++)
            fake_add(f, NULL, NULL);
        for (unsigned block = 0; block <= 3; block++)
            f->blocks[block].nonce = cases[i].used;
        fake_copy(&rig.fake[1], f);
        f->best = f->finalized = rig.fake[1].best = rig.fake[1].finalized = 3;
        f->hook = absent;
        f->hook_arg = (void *)(uintptr_t)cases[i].of_runtime;
        rig_connect(&rig);
        node_watch_account(rig.node, account, sizeof(account));
        node_follow(rig.node, 1);
        rig_wait_seen(&rig, 3);
        ask_again(&rig, &q);
        assert_int_equal(q.ask.err.code != 0, cases[i].leaves);
        if (cases[i].leaves) {
            rig_wait_ready(&rig, 2);
            assert_non_null(strstr(rig.why.text, "which has used nonces"));
            ask_again(&rig, &q);
        }
        assert_int_equal(q.ask.err.code, 0);
        assert_int_equal(q.ask.number, cases[i].nonce);
        assert_int_equal(rig.ready, cases[i].leaves ? 2 : 1);
        rig_done(&rig);
    }
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
        cmocka_unit_test(the_connection_stays),    cmocka_unit_test(the_second_endpoint_is_asked),
        cmocka_unit_test(an_outage_loses_nothing), cmocka_unit_test(an_outage_for_ever),
        cmocka_unit_test(an_error_is_no_lack),     cmocka_unit_test(null_for_an_account),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
