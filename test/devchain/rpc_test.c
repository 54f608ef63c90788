/* The program from outside: frames, errors, subscriptions, limits and scripted faults over a real
 * socket. Each test is one or more lines of behaviour.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/hash.h"
#include "chain/codec/ss58.h"
#include "testlib.h"

enum { SOON = 10000, SILENCE = 150 };

struct bed {
    struct child child;
    struct ws *ws;
    struct tx_facts facts;
    struct keypair *alice, *bob;
};

static void bed_open(struct bed *b, const char *const *args)
{
    static const char *const MANUAL[] = {"--block-ms", "0", "--finality-lag", "1000", "--seed",
                                         "7",          NULL};
    child_start(&b->child, args ? args : MANUAL);
    b->ws = ws_open(b->child.port);
    b->facts = ws_facts(b->ws);
    b->alice = test_key("//Alice", KEY_SR25519);
    b->bob = test_key("//Bob", KEY_ECDSA);
}

static void bed_close(struct bed *b)
{
    ws_close(b->ws);
    child_stop(&b->child);
    keypair_free(b->alice);
    keypair_free(b->bob);
}

/* Parameters of a submission: a remark. */
static char *remark(const struct bed *b, const struct keypair *key, uint32_t nonce, u128 tip,
                    uint8_t hash[32])
{
    struct buf call = {0}, bytes = {0};
    call_remark(&call, "hello");
    test_sign(&b->facts, key, nonce, tip, &call, &bytes);
    if (hash)
        hash_blake2b_256(bytes.data, bytes.len, hash);
    char *params = tx_params(&bytes);
    buf_done(&call);
    buf_done(&bytes);
    return params;
}

static const char *result_text(const json_t *answer)
{
    const char *text = json_string_value(json_object_get(answer, "result"));
    assert_non_null(text);
    return text;
}

static void assert_hash(const char *text, const uint8_t hash[32])
{
    uint8_t got[32];
    assert_true(hex_decode_fixed(text, strlen(text), got, 32));
    assert_memory_equal(got, hash, 32);
}

static int error_code(const json_t *answer)
{
    return (int)json_integer_value(json_object_get(json_object_get(answer, "error"), "code"));
}

static void assert_error(json_t *answer, int code, const char *message, const char *data)
{
    json_t *e = json_object_get(answer, "error");
    assert_int_equal(json_integer_value(json_object_get(e, "code")), code);
    assert_non_null(strstr(json_string_value(json_object_get(e, "message")), message));
    if (data)
        assert_string_equal(json_string_value(json_object_get(e, "data")), data);
    else
        assert_null(json_object_get(e, "data"));
    json_decref(answer);
}

static void do_call(struct bed *b, const char *method, const char *params)
{
    json_t *a = ws_call(b->ws, method, params);
    assert_null(json_object_get(a, "error"));
    json_decref(a);
}

static void watch(struct bed *b, char *params, char sub[32])
{
    json_t *a = ws_call(b->ws, "author_submitAndWatchExtrinsic", params);
    snprintf(sub, 32, "%s", result_text(a));
    json_decref(a);
    free(params);
}

/* The next status of the subscription as "ready" or "inBlock". */
static void expect_status(struct bed *b, const char *sub, const char *name)
{
    json_t *s = ws_note(b->ws, sub, SOON);
    assert_non_null(s);
    if (json_is_string(s))
        assert_string_equal(json_string_value(s), name);
    else
        assert_string_equal(json_object_iter_key(json_object_iter(s)), name);
    json_decref(s);
}

static void expect_silence(struct bed *b, const char *sub)
{
    assert_null(ws_note(b->ws, sub, SILENCE));
}

static json_t *header_of(struct bed *b, const char *hash)
{
    char params[80];
    snprintf(params, sizeof params, "[\"%s\"]", hash);
    return ws_call(b->ws, "chain_getHeader", params);
}

static void submit_answers_the_hash(void **state)
{
    (void)state;
    struct bed b;
    uint8_t hash[32];
    bed_open(&b, NULL);
    char *p = remark(&b, b.alice, 0, 0, hash);
    json_t *a = ws_call(b.ws, "author_submitExtrinsic", p);
    assert_hash(result_text(a), hash);
    json_decref(a);
    a = ws_call(b.ws, "chain_getHeader", "[]");
    assert_string_equal(json_string_value(json_object_get(json_object_get(a, "result"), "number")),
                        "0x0");
    json_decref(a);
    free(p);
    bed_close(&b);
}

static void watch_frames(void **state)
{
    (void)state;
    struct bed b;
    char one[32], two[32];
    bed_open(&b, NULL);
    watch(&b, remark(&b, b.alice, 0, 0, NULL), one);
    watch(&b, remark(&b, b.bob, 1, 0, NULL), two);
    assert_int_equal(strlen(one), 16);
    for (const char *p = one; *p; p++)
        assert_true(isalnum((unsigned char)*p));
    assert_string_not_equal(one, two);
    json_t *s = ws_note(b.ws, one, SOON);
    assert_string_equal(json_string_value(s), "ready");
    assert_string_equal(ws_note_method(b.ws), "author_extrinsicUpdate");
    json_decref(s);
    s = ws_note(b.ws, two, SOON);
    assert_string_equal(json_string_value(s), "future");
    json_decref(s);
    do_call(&b, "dev_newBlock", "[]");
    json_t *best = ws_call(b.ws, "chain_getBlockHash", "[]");
    s = ws_note(b.ws, one, SOON);
    assert_string_equal(json_string_value(json_object_get(s, "inBlock")), result_text(best));
    assert_int_equal(json_object_size(s), 1);
    json_decref(s);
    do_call(&b, "dev_newBlock", "[]");
    do_call(&b, "dev_finalize", "[2]");
    s = ws_note(b.ws, one, SOON);
    assert_string_equal(json_string_value(json_object_get(s, "finalized")), result_text(best));
    json_decref(s);
    json_decref(best);
    do_call(&b, "dev_newBlock", "[]");
    do_call(&b, "dev_finalize", "[3]");
    expect_silence(&b, one);
    char params[40];
    snprintf(params, sizeof params, "[\"%s\"]", one);
    json_t *u = ws_call(b.ws, "author_unwatchExtrinsic", params);
    assert_true(json_is_false(json_object_get(u, "result")));
    json_decref(u);
    bed_close(&b);
}

static void unit_and_hash_statuses(void **state)
{
    (void)state;
    struct bed b;
    char old[32], gone[32], bad[32];
    uint8_t newer[32], hash[32];
    char params[100];
    bed_open(&b, NULL);
    watch(&b, remark(&b, b.alice, 0, 0, NULL), old);
    char *p = remark(&b, b.alice, 0, 9, newer);
    json_decref(ws_call(b.ws, "author_submitExtrinsic", p));
    free(p);
    expect_status(&b, old, "ready");
    json_t *s = ws_note(b.ws, old, SOON);
    assert_hash(json_string_value(json_object_get(s, "usurped")), newer);
    json_decref(s);
    watch(&b, remark(&b, b.bob, 0, 0, NULL), gone);
    do_call(&b, "dev_dropPool", "[{\"silent\":false}]");
    expect_status(&b, gone, "ready");
    expect_status(&b, gone, "dropped");
    watch(&b, remark(&b, b.bob, 0, 1, hash), bad);
    struct buf h = {0};
    hex_put_0x(&h, hash, 32);
    snprintf(params, sizeof params, "[[{\"hash\":\"%s\"}]]", buf_str(&h));
    json_t *removed = ws_call(b.ws, "author_removeExtrinsic", params);
    assert_int_equal(json_array_size(json_object_get(removed, "result")), 1);
    json_decref(removed);
    expect_status(&b, bad, "ready");
    expect_status(&b, bad, "invalid");
    do_call(&b, "dev_newBlock", "[{\"count\":3}]");
    expect_silence(&b, bad);
    buf_done(&h);
    bed_close(&b);
}

static void refused_watch_is_an_error_answer(void **state)
{
    (void)state;
    struct bed b;
    bool closed;
    bed_open(&b, NULL);
    char *p = remark(&b, b.alice, 0, ~(u128)0 >> 2, NULL);
    assert_error(ws_call(b.ws, "author_submitAndWatchExtrinsic", p), 1010, "Invalid Transaction",
                 "Inability to pay some fees (e.g. account balance too low)");
    assert_error(ws_call(b.ws, "author_submitAndWatchExtrinsic", p), 1012,
                 "Transaction is temporarily banned", NULL);
    assert_null(ws_next(b.ws, SILENCE, &closed));
    assert_false(closed);
    free(p);
    p = remark(&b, b.alice, 0, 0, NULL);
    json_decref(ws_call(b.ws, "author_submitExtrinsic", p));
    assert_error(ws_call(b.ws, "author_submitAndWatchExtrinsic", p), 1013,
                 "Transaction Already Imported", "Any { .. }");
    assert_error(ws_call(b.ws, "author_submitAndWatchExtrinsic", p), 1012,
                 "Transaction is temporarily banned", NULL);
    free(p);
    json_t *pending = ws_call(b.ws, "author_pendingExtrinsics", "[]");
    assert_int_equal(json_array_size(json_object_get(pending, "result")), 1);
    json_decref(pending);
    bed_close(&b);
}

static void fork_aware_pool(void **state)
{
    (void)state;
    static const char *const ARGS[] = {"--block-ms", "0", "--finality-lag", "1000", "--pool-type",
                                       "fork-aware", NULL};
    struct bed b;
    char sub[32];
    bed_open(&b, ARGS);
    char *p = remark(&b, b.bob, 0, 0, NULL);
    watch(&b, remark(&b, b.bob, 0, 0, NULL), sub);
    for (unsigned i = 0; i < 3; i++)
        assert_error(ws_call(b.ws, "author_submitAndWatchExtrinsic", p), 1013,
                     "Transaction Already Imported", "Any { .. }");
    do_call(&b, "dev_newBlock", "[1]");
    do_call(&b, "dev_reorg", "[{\"depth\":1}]");
    assert_error(ws_call(b.ws, "author_submitExtrinsic", p), 1013, "Transaction Already Imported",
                 "Any { .. }");
    do_call(&b, "dev_finalize", "[]");
    static const char *const WANT[] = {"ready", "inBlock", "inBlock", "finalized"};
    for (size_t i = 0; i < ARRAY_LEN(WANT); i++)
        expect_status(&b, sub, WANT[i]);
    free(p);
    bed_close(&b);
}

static void priority_refusal_text(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, NULL);
    char *p = remark(&b, b.alice, 0, 5, NULL), *q = remark(&b, b.alice, 0, 4, NULL);
    json_decref(ws_call(b.ws, "author_submitExtrinsic", p));
    json_t *a = ws_call(b.ws, "author_submitExtrinsic", q);
    unsigned long long old, fresh;
    const char *m = json_string_value(json_object_get(json_object_get(a, "error"), "message"));
    assert_int_equal(sscanf(m, "Priority is too low: (%llu vs %llu)", &old, &fresh), 2);
    assert_true(old > fresh);
    assert_error(
        a, 1014, "Priority is too low",
        "The transaction has too low priority to replace another transaction already in the pool.");
    free(p);
    free(q);
    bed_close(&b);
}

static void unwatch_answers(void **state)
{
    (void)state;
    struct bed b;
    char sub[32], params[40];
    bed_open(&b, NULL);
    struct ws *other = ws_open(b.child.port);
    watch(&b, remark(&b, b.alice, 0, 0, NULL), sub);
    snprintf(params, sizeof params, "[\"%s\"]", sub);
    json_t *a = ws_call(other, "author_unwatchExtrinsic", params);
    assert_true(json_is_false(json_object_get(a, "result")));
    json_decref(a);
    static const char *const WANT[] = {"true", "false"};
    for (int i = 0; i < 2; i++) {
        a = ws_call(b.ws, "author_unwatchExtrinsic", params);
        assert_true(json_is_true(json_object_get(a, "result")) == (WANT[i][0] == 't'));
        json_decref(a);
    }
    a = ws_call(b.ws, "author_unwatchExtrinsic", "[\"nonsense\"]");
    assert_true(json_is_false(json_object_get(a, "result")));
    json_decref(a);
    a = ws_call(b.ws, "author_pendingExtrinsics", "[]");
    assert_int_equal(json_array_size(json_object_get(a, "result")), 1);
    json_decref(a);
    ws_close(other);
    bed_close(&b);
}

static void closing_keeps_the_transaction(void **state)
{
    (void)state;
    struct bed b;
    char sub[32];
    bed_open(&b, NULL);
    watch(&b, remark(&b, b.alice, 0, 0, NULL), sub);
    ws_close(b.ws);
    b.ws = ws_open(b.child.port);
    do_call(&b, "dev_newBlock", "[]");
    json_t *block = ws_call(b.ws, "chain_getBlock", "[]");
    json_t *list =
        json_object_get(json_object_get(json_object_get(block, "result"), "block"), "extrinsics");
    assert_int_equal(json_array_size(list), 2);
    json_decref(block);
    bed_close(&b);
}

static void http(void **state)
{
    (void)state;
    struct bed b;
    int status;
    bed_open(&b, NULL);
    char *p = remark(&b, b.alice, 0, 0, NULL);
    struct buf body = {0};
    buf_printf(&body,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"author_submitAndWatchExtrinsic\","
               "\"params\":%s}",
               p);
    char *text = http_post(b.child.port, buf_str(&body), &status);
    assert_int_equal(status, 200);
    json_t *a = json_loads(text, 0, NULL);
    assert_error(a, -32603, "Internal error", NULL);
    free(text);
    buf_clear(&body);
    buf_printf(
        &body,
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"author_submitExtrinsic\",\"params\":%s}",
        p);
    text = http_post(b.child.port, buf_str(&body), &status);
    a = json_loads(text, 0, NULL);
    assert_int_equal(strlen(result_text(a)), 66);
    assert_string_equal(json_string_value(json_object_get(a, "id")), "x");
    json_decref(a);
    free(text);
    text = http_post(b.child.port,
                     "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"system_chain\"},{\"jsonrpc\":\"2."
                     "0\",\"method\":\"system_chain\"},5]",
                     &status);
    a = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(a), 2);
    assert_int_equal(error_code(json_array_get(a, 1)), -32600);
    json_decref(a);
    free(text);
    free(p);
    buf_done(&body);
    bed_close(&b);
}

static void broadcast(void **state)
{
    (void)state;
    struct bed b;
    char sub[32];
    bed_open(&b, NULL);
    watch(&b, remark(&b, b.alice, 0, 0, NULL), sub);
    expect_status(&b, sub, "ready");
    do_call(&b, "dev_broadcast", "[{\"peers\":[\"12D3KooWA\",\"12D3KooWB\"]}]");
    do_call(&b, "dev_newBlock", "[]");
    json_t *s = ws_note(b.ws, sub, SOON);
    assert_int_equal(json_array_size(json_object_get(s, "broadcast")), 2);
    json_decref(s);
    expect_status(&b, sub, "inBlock");
    bed_close(&b);
}

static void finalized_heads_skip(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, NULL);
    json_t *a = ws_call(b.ws, "chain_subscribeFinalizedHeads", "[]");
    const char *sub = result_text(a);
    static const char *const WANT[] = {"0x0", "0x5", "0x6"};
    do_call(&b, "dev_newBlock", "[6]");
    do_call(&b, "dev_finalize", "[5]");
    do_call(&b, "dev_finalize", "[4]"); /* never back */
    do_call(&b, "dev_finalize", "[6]");
    for (int i = 0; i < 3; i++) {
        json_t *h = ws_note(b.ws, sub, SOON);
        assert_string_equal(json_string_value(json_object_get(h, "number")), WANT[i]);
        assert_string_equal(ws_note_method(b.ws), "chain_finalizedHead");
        json_decref(h);
    }
    expect_silence(&b, sub);
    json_t *hash = ws_call(b.ws, "chain_getBlockHash", "[3]");
    json_t *h = header_of(&b, result_text(hash));
    assert_string_equal(json_string_value(json_object_get(json_object_get(h, "result"), "number")),
                        "0x3");
    json_decref(h);
    json_decref(hash);
    json_decref(a);
    bed_close(&b);
}

static void new_heads_and_reorg(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, NULL);
    do_call(&b, "dev_newBlock", "[2]");
    json_t *a = ws_call(b.ws, "chain_subscribeNewHeads", "[]");
    json_t *all = ws_call(b.ws, "chain_subscribeAllHeads", "[]");
    do_call(&b, "dev_newBlock", "[]");
    do_call(&b, "dev_reorg", "[{\"depth\":2,\"length\":2}]");
    static const char *const WANT[] = {"0x2", "0x3", "0x3"};
    for (int i = 0; i < 3; i++) {
        json_t *h = ws_note(b.ws, result_text(a), SOON);
        assert_string_equal(json_string_value(json_object_get(h, "number")), WANT[i]);
        json_decref(h);
    }
    static const char *const ALL[] = {"0x2", "0x3", "0x2", "0x3"};
    for (int i = 0; i < 4; i++) {
        json_t *h = ws_note(b.ws, result_text(all), SOON);
        assert_string_equal(json_string_value(json_object_get(h, "number")), ALL[i]);
        json_decref(h);
    }
    expect_silence(&b, result_text(a));
    json_decref(a);
    json_decref(all);
    bed_close(&b);
}

/* The client computes the hash itself: blake2b-256 over the SCALE header. */
static void header_hash(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, NULL);
    do_call(&b, "dev_newBlock", "[20]");
    json_t *hash = ws_call(b.ws, "chain_getBlockHash", "[\"0x14\"]");
    json_t *a = header_of(&b, result_text(hash));
    json_t *h = json_object_get(a, "result");
    assert_string_equal(json_string_value(json_object_get(h, "number")), "0x14");
    assert_null(json_object_get(h, "hash"));
    json_t *logs = json_object_get(json_object_get(h, "digest"), "logs");
    struct buf s = {0};
    const char *text = json_string_value(json_object_get(h, "parentHash"));
    assert_true(hex_decode(text, strlen(text), &s));
    scale_put_compact(&s, 20);
    text = json_string_value(json_object_get(h, "stateRoot"));
    assert_true(hex_decode(text, strlen(text), &s));
    text = json_string_value(json_object_get(h, "extrinsicsRoot"));
    assert_true(hex_decode(text, strlen(text), &s));
    scale_put_compact(&s, json_array_size(logs));
    for (size_t i = 0; i < json_array_size(logs); i++) {
        text = json_string_value(json_array_get(logs, i));
        assert_true(hex_decode(text, strlen(text), &s));
    }
    uint8_t got[32];
    hash_blake2b_256(s.data, s.len, got);
    assert_hash(result_text(hash), got);
    buf_done(&s);
    json_decref(a);
    json_decref(hash);
    a = ws_call(b.ws, "chain_getBlockHash", "[[0,99,\"0x1\"]]");
    assert_true(json_is_null(json_array_get(json_object_get(a, "result"), 1)));
    assert_true(json_is_string(json_array_get(json_object_get(a, "result"), 2)));
    json_decref(a);
    bed_close(&b);
}

static json_int_t next_index(struct bed *b, const char *address)
{
    char params[100];
    snprintf(params, sizeof params, "[\"%s\"]", address);
    json_t *a = ws_call(b->ws, "system_accountNextIndex", params);
    json_int_t n = json_object_get(a, "error") ? error_code(a)
                                               : json_integer_value(json_object_get(a, "result"));
    json_decref(a);
    return n;
}

static int error_code_of(struct bed *b, const char *submission)
{
    json_t *a = ws_call(b->ws, "author_submitExtrinsic", submission);
    int code = error_code(a);
    json_decref(a);
    return code;
}

static void account_next_index(void **state)
{
    (void)state;
    struct bed b;
    char address[SS58_TEXT_MAX], foreign[SS58_TEXT_MAX];
    bed_open(&b, NULL);
    ss58_encode(rig_id(b.alice), 42, address);
    ss58_encode(rig_id(b.alice), 0, foreign);
    static const uint32_t NONCES[] = {0, 1, 3};
    for (int i = 0; i < 3; i++) {
        char *p = remark(&b, b.alice, NONCES[i], 0, NULL);
        json_decref(ws_call(b.ws, "author_submitExtrinsic", p));
        free(p);
    }
    assert_int_equal(next_index(&b, address), 2);
    assert_int_equal(next_index(&b, foreign), 2); /* any prefix */
    do_call(&b, "dev_newBlock", "[]");
    assert_int_equal(next_index(&b, address), 2);
    do_call(&b, "dev_set", "[{\"pool_blind_nonce\":true}]");
    char *p = remark(&b, b.alice, 2, 0, NULL);
    json_decref(ws_call(b.ws, "author_submitExtrinsic", p));
    free(p);
    assert_int_equal(next_index(&b, address), 2);
    do_call(&b, "dev_set", "[{\"pool_blind_nonce\":false}]");
    assert_int_equal(next_index(&b, address), 4);
    assert_int_equal(
        next_index(&b, "0xd43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d"),
        -32602);
    assert_int_equal(next_index(&b, "nobody"), -32602);
    bed_close(&b);
}

static void undecodable(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, NULL);
    assert_error(ws_call(b.ws, "author_submitExtrinsic", "[\"0x1084\"]"), 1040,
                 "Client error: ", NULL);
    assert_error(ws_call(b.ws, "author_submitAndWatchExtrinsic", "[\"0x1084\"]"), 1001,
                 "Extrinsic has invalid format: ", NULL);
    json_t *a = ws_call(b.ws, "author_submitExtrinsic", "[\"0x0c840102\"]");
    assert_int_equal(error_code(a), 1002);
    json_decref(a);
    a = ws_call(b.ws, "author_submitExtrinsic", "[\"84\"]");
    assert_int_equal(error_code(a), -32602);
    json_decref(a);
    a = ws_call(b.ws, "author_submitExtrinsic", "[\"0x8g\"]");
    assert_int_equal(error_code(a), -32602);
    json_decref(a);
    a = ws_call(b.ws, "author_submitExtrinsic", "[]");
    assert_int_equal(error_code(a), -32602);
    json_decref(a);
    a = ws_call(b.ws, "author_noSuchThing", "[]");
    assert_error(a, -32601, "Method not found", NULL);
    ws_send(b.ws, "{not json");
    bool closed;
    a = ws_next(b.ws, SOON, &closed);
    assert_true(json_is_null(json_object_get(a, "id")));
    assert_error(a, -32700, "Parse error", NULL);
    bed_close(&b);
}

static void unsafe_is_denied(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, (const char *const[]){"--deny-unsafe", "--block-ms", "0", NULL});
    assert_error(ws_call(b.ws, "author_removeExtrinsic", "[[]]"), -32601,
                 "RPC call is unsafe to be called externally", NULL);
    assert_error(ws_call(b.ws, "system_dryRun", "[\"0x00\"]"), -32601,
                 "RPC call is unsafe to be called externally", NULL);
    bed_close(&b);
}

static void limits(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, (const char *const[]){"--max-subscriptions", "2", "--max-connections", "3",
                                       "--block-ms", "0", NULL});
    char sub[32];
    json_decref(ws_call(b.ws, "chain_subscribeNewHeads", "[]"));
    watch(&b, remark(&b, b.bob, 0, 0, NULL), sub);
    char *p = remark(&b, b.alice, 0, 0, NULL);
    assert_error(ws_call(b.ws, "author_submitAndWatchExtrinsic", p), -32006,
                 "Too many subscriptions on the connection", "Exceeded max limit of 2");
    json_t *a = ws_call(b.ws, "author_pendingExtrinsics", "[]");
    assert_int_equal(json_array_size(json_object_get(a, "result")), 1); /* it was not submitted */
    json_decref(a);
    free(p);
    struct ws *two = ws_open(b.child.port), *three = ws_open(b.child.port);
    assert_int_equal(ws_open_status(b.child.port), 429);
    ws_close(two);
    ws_close(three);
    bed_close(&b);
}

static void request_too_big(void **state)
{
    (void)state;
    struct bed b;
    bool closed;
    bed_open(&b, NULL);
    size_t len = 15728641;
    char *big = xmalloc(len);
    memset(big, ' ', len);
    ws_send_bytes(b.ws, big, len);
    free(big);
    json_t *a = ws_next(b.ws, SOON, &closed);
    assert_true(json_is_null(json_object_get(a, "id")));
    assert_error(a, -32007, "Request is too big", "Exceeded max limit of 15728640");
    do_call(&b, "system_chain", "[]"); /* the connection goes on */
    bed_close(&b);
}

static bool closed_by_now(struct ws *w)
{
    bool closed;
    assert_null(ws_next(w, SILENCE, &closed));
    return closed;
}

static void pings(void **state)
{
    (void)state;
    struct bed b;
    bool closed = false;
    bed_open(&b, (const char *const[]){"--ping-seconds", "1", "--block-ms", "0", NULL});
    struct ws *mute = ws_open(b.child.port);
    ws_answer_pings(mute, false);
    json_t *m = ws_next(mute, SOON, &closed); /* pinged, then dropped for its silence */
    assert_null(m);
    assert_true(closed);
    assert_true(ws_pings(mute) >= 1);
    ws_close(mute);
    ws_close(b.ws);
    b.ws = ws_open(b.child.port);
    while (!closed_by_now(b.ws) && ws_pings(b.ws) < 3)
        continue;
    assert_int_equal(ws_pings(b.ws), 3);
    do_call(&b, "system_chain", "[]"); /* the client that answers lives */
    bed_close(&b);
}

static void restart_loses_the_pool(void **state)
{
    (void)state;
    struct bed b;
    char sub[32], params[40];
    bed_open(&b, NULL);
    watch(&b, remark(&b, b.alice, 0, 0, NULL), sub);
    child_kill(&b.child);
    ws_close(b.ws);
    child_start(&b.child, (const char *const[]){"--block-ms", "0", NULL});
    b.ws = ws_open(b.child.port);
    json_t *a = ws_call(b.ws, "author_pendingExtrinsics", "[]");
    assert_int_equal(json_array_size(json_object_get(a, "result")), 0);
    json_decref(a);
    snprintf(params, sizeof params, "[\"%s\"]", sub);
    a = ws_call(b.ws, "author_unwatchExtrinsic", params);
    assert_true(json_is_false(json_object_get(a, "result")));
    json_decref(a);
    bed_close(&b);
}

static void answers_out_of_order(void **state)
{
    (void)state;
    struct bed b;
    bool closed;
    bed_open(&b, NULL);
    do_call(&b, "dev_script",
            "[{\"match\":{\"method\":\"system_name\"},\"action\":{\"delay_ms\":100}}]");
    ws_send(b.ws, "{\"jsonrpc\":\"2.0\",\"id\":\"slow\",\"method\":\"system_name\",\"params\":[]}");
    ws_send(b.ws, "{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"system_chain\",\"params\":[]}");
    json_t *first = ws_next(b.ws, SOON, &closed);
    json_t *second = ws_next(b.ws, SOON, &closed);
    assert_int_equal(json_integer_value(json_object_get(first, "id")), 77);
    assert_string_equal(json_string_value(json_object_get(second, "id")), "slow");
    json_decref(first);
    json_decref(second);
    bed_close(&b);
}

static void runtime_upgrade(void **state)
{
    (void)state;
    struct bed b;
    char pooled[32];
    bed_open(&b, NULL);
    json_t *a = ws_call(b.ws, "state_subscribeRuntimeVersion", "[]");
    const char *sub = result_text(a);
    json_t *v = ws_note(b.ws, sub, SOON);
    assert_int_equal(json_integer_value(json_object_get(v, "specVersion")), 100);
    json_decref(v);
    watch(&b, remark(&b, b.alice, 0, 0, NULL), pooled);
    do_call(&b, "dev_set", "[{\"min_tip\":1}]"); /* so that it is still pooled */
    do_call(&b, "dev_newBlock", "[2]");
    expect_silence(&b, sub);
    do_call(&b, "dev_upgrade", "[{\"spec\":105}]");
    v = ws_note(b.ws, sub, SOON);
    assert_int_equal(json_integer_value(json_object_get(v, "specVersion")), 105);
    json_decref(v);
    expect_status(&b, pooled, "ready");
    expect_status(&b, pooled, "invalid");
    char *p = remark(&b, b.alice, 0, 1, NULL);
    assert_error(ws_call(b.ws, "author_submitExtrinsic", p), 1010, "Invalid Transaction",
                 "Transaction has a bad signature");
    free(p);
    b.facts.spec = 105;
    p = remark(&b, b.alice, 0, 1, NULL);
    json_t *ok = ws_call(b.ws, "author_submitExtrinsic", p);
    assert_int_equal(strlen(result_text(ok)), 66);
    json_decref(ok);
    free(p);
    json_decref(a);
    bed_close(&b);
}

static void dry_run_and_fee(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, NULL);
    char *p = remark(&b, b.alice, 0, 0, NULL), *ahead = remark(&b, b.alice, 1, 0, NULL);
    json_t *a = ws_call(b.ws, "system_dryRun", p);
    assert_string_equal(result_text(a), "0x0000");
    json_decref(a);
    a = ws_call(b.ws, "system_dryRun", ahead);
    assert_string_equal(result_text(a), "0x010002");
    json_decref(a);
    a = ws_call(b.ws, "payment_queryInfo", p);
    assert_true(json_is_string(json_object_get(json_object_get(a, "result"), "partialFee")));
    json_decref(a);
    free(p);
    free(ahead);
    bed_close(&b);
}

/* ---- scripted faults ---- */

static void script(struct bed *b, const char *rule)
{
    struct buf p = {0};
    buf_printf(&p, "[%s]", rule);
    do_call(b, "dev_script", buf_str(&p));
    buf_done(&p);
}

static void scripted_error_at_the_nth(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, NULL);
    script(&b, "{\"match\":{\"method\":\"author_submitExtrinsic\",\"nth\":2},\"action\":{\"error\":"
               "{\"code\":1016,\"message\":\"Immediately Dropped\",\"data\":\"full\"}}}");
    for (uint32_t i = 0; i < 3; i++) {
        char *p = remark(&b, b.alice, i, 0, NULL);
        json_t *a = ws_call(b.ws, "author_submitExtrinsic", p);
        assert_int_equal(error_code(a), i == 1 ? 1016 : 0);
        json_decref(a);
        free(p);
    }
    assert_error(ws_call(b.ws, "dev_script", "[{\"match\":{},\"action\":\"omit\"}]"), -32602,
                 "match holds none", NULL);
    assert_error(
        ws_call(b.ws, "dev_script", "[{\"match\":{\"method\":\"x\"},\"action\":\"explode\"}]"),
        -32602, "'explode' is not known", NULL);
    bed_close(&b);
}

/* Where the connection is cut decides whether the node has the transaction; the client cannot
 * tell. */
static void cut(const char *where, int in_pool)
{
    struct bed b;
    bool closed;
    struct buf text = {0};
    bed_open(&b, NULL);
    buf_printf(&text,
               "{\"match\":{\"method\":\"author_submitAndWatchExtrinsic\"},\"action\":\"%s\"}",
               where);
    script(&b, buf_str(&text));
    char *p = remark(&b, b.alice, 0, 0, NULL);
    buf_clear(&text);
    buf_printf(&text,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"author_submitAndWatchExtrinsic\","
               "\"params\":%s}",
               p);
    ws_send(b.ws, buf_str(&text));
    assert_null(ws_next(b.ws, SOON, &closed));
    assert_true(closed);
    ws_close(b.ws);
    b.ws = ws_open(b.child.port);
    json_t *a = ws_call(b.ws, "author_pendingExtrinsics", "[]");
    assert_int_equal(json_array_size(json_object_get(a, "result")), in_pool);
    json_decref(a);
    free(p);
    buf_done(&text);
    bed_close(&b);
}

static void scripted_cuts(void **state)
{
    (void)state;
    cut("cut_before", 0);
    cut("cut_after", 1);
}

static void scripted_silences(void **state)
{
    (void)state;
    struct bed b;
    char sub[32];
    bed_open(&b, NULL);
    script(&b, "{\"match\":{\"method\":\"system_chain\"},\"action\":\"no_reply\"}");
    ws_send(b.ws, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"system_chain\",\"params\":[]}");
    assert_null(ws_answer(b.ws, 5, SILENCE));
    do_call(&b, "system_chain", "[]");
    script(&b, "{\"match\":{\"method\":\"author_submitAndWatchExtrinsic\"},\"action\":\"accept_and_"
               "drop\"}");
    watch(&b, remark(&b, b.alice, 0, 0, NULL), sub);
    expect_status(&b, sub, "ready");
    do_call(&b, "dev_newBlock", "[2]");
    expect_silence(&b, sub);
    json_t *a = ws_call(b.ws, "author_pendingExtrinsics", "[]");
    assert_int_equal(json_array_size(json_object_get(a, "result")), 0);
    json_decref(a);
    bed_close(&b);
}

static void scripted_statuses(void **state)
{
    (void)state;
    struct bed b;
    char sub[32], bobs[32];
    bed_open(&b, NULL);
    script(&b, "{\"match\":{\"status\":\"inBlock\",\"nonce\":0},\"action\":\"omit\"}");
    script(&b, "{\"match\":{\"status\":\"inBlock\",\"nonce\":1},\"action\":\"end\"}");
    watch(&b, remark(&b, b.alice, 0, 0, NULL), sub);
    watch(&b, remark(&b, b.alice, 1, 0, NULL), bobs);
    do_call(&b, "dev_newBlock", "[]");
    do_call(&b, "dev_finalize", "[1]");
    expect_status(&b, sub, "ready");
    expect_status(&b, sub, "finalized");
    expect_status(&b, bobs, "ready");
    expect_silence(&b, bobs);
    bed_close(&b);
}

static void scripted_verdicts_ban_like_the_real_ones(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, NULL);
    static const struct {
        const char *verdict;
        int code, again;
    } CASES[] = {
        {"Stale", 1010, 1012},     {"Payment", 1010, 1012}, {"ExhaustsResources", 1010, 1012},
        {"CannotLookup", 1011, 0}, {"Trap", 1002, 1012},    {"NoTags", 1019, 1012},
        {"Unactionable", 1018, 0}};
    for (uint32_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char rule[160];
        snprintf(rule, sizeof rule,
                 "{\"match\":{\"method\":\"author_submitExtrinsic\",\"nonce\":%u},\"action\":{"
                 "\"verdict\":\"%s\"}}",
                 i, CASES[i].verdict);
        script(&b, rule);
        char *p = remark(&b, b.alice, i, 0, NULL);
        json_t *a = ws_call(b.ws, "author_submitExtrinsic", p);
        assert_int_equal(error_code(a), CASES[i].code);
        json_decref(a);
        a = ws_call(b.ws, "author_submitExtrinsic", p);
        assert_int_equal(error_code(a), CASES[i].again);
        json_decref(a);
        free(p);
    }
    bed_close(&b);
}

static void scripted_heads(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, NULL);
    json_t *a = ws_call(b.ws, "chain_subscribeFinalizedHeads", "[]");
    script(&b, "{\"match\":{\"notify\":\"chain_finalizedHead\",\"nth\":2},\"action\":\"omit\"}");
    script(&b, "{\"match\":{\"notify\":\"chain_finalizedHead\",\"nth\":3},\"action\":\"end\"}");
    do_call(&b, "dev_set", "[{\"finality_lag\":0}]");
    do_call(&b, "dev_newBlock", "[5]");
    /* 2 is omitted; the second rule counts what the first one lets pass, so that 4 is its third. */
    static const char *const WANT[] = {"0x0", "0x1", "0x3"};
    for (int i = 0; i < 3; i++) {
        json_t *h = ws_note(b.ws, result_text(a), SOON);
        assert_string_equal(json_string_value(json_object_get(h, "number")), WANT[i]);
        json_decref(h);
    }
    expect_silence(&b, result_text(a));
    json_decref(a);
    bed_close(&b);
}

static void late_status_and_dead_connection(void **state)
{
    (void)state;
    struct bed b;
    char sub[32];
    bed_open(&b, NULL);
    script(&b, "{\"match\":{\"status\":\"inBlock\"},\"action\":{\"delay_ms\":100}}");
    watch(&b, remark(&b, b.alice, 0, 0, NULL), sub);
    do_call(&b, "dev_newBlock", "[]");
    do_call(&b, "dev_newBlock", "[]");
    expect_status(&b, sub, "ready");
    expect_status(&b, sub, "inBlock");
    script(&b, "{\"match\":{\"method\":\"system_name\"},\"action\":\"freeze\"}");
    ws_send(b.ws, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"system_name\",\"params\":[]}");
    ws_send(b.ws, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"system_chain\",\"params\":[]}");
    bool closed;
    assert_null(ws_next(b.ws, SILENCE, &closed));
    assert_false(closed);
    bed_close(&b);
}

/* A reader that stops reading loses its busiest subscription in silence; the connection lives
 * on. */
static void slow_reader(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, (const char *const[]){"--subscription-buffer", "16", "--block-ms", "0", NULL});
    json_t *a = ws_call(b.ws, "chain_subscribeNewHeads", "[]");
    do_call(&b, "dev_newBlock", "[2000]"); /* in one go: nothing is written in between */
    unsigned heads = 0;
    for (json_t *h; (h = ws_note(b.ws, result_text(a), SILENCE)); heads++)
        json_decref(h);
    assert_in_range(heads, 64, 90);
    do_call(&b, "dev_newBlock", "[]");
    expect_silence(&b, result_text(a));
    char params[40];
    snprintf(params, sizeof params, "[\"%s\"]", result_text(a));
    json_t *u = ws_call(b.ws, "chain_unsubscribeNewHeads", params);
    assert_true(json_is_false(json_object_get(u, "result")));
    json_decref(u);
    json_decref(a);
    bed_close(&b);
}

static void author_skips(void **state)
{
    (void)state;
    struct bed b;
    char sub[32];
    bed_open(&b, NULL);
    script(&b, "{\"match\":{\"include\":true,\"nonce\":0},\"action\":\"skip\"}");
    watch(&b, remark(&b, b.alice, 0, 0, NULL), sub);
    expect_status(&b, sub, "ready");
    do_call(&b, "dev_newBlock", "[]");
    expect_silence(&b, sub);
    do_call(&b, "dev_newBlock", "[]");
    expect_status(&b, sub, "inBlock");
    bed_close(&b);
}

static void submit(struct bed *b, uint32_t nonce)
{
    char *p = remark(b, b->alice, nonce, 0, NULL);
    json_t *a = ws_call(b->ws, "author_submitExtrinsic", p);
    assert_int_equal(strlen(result_text(a)), 66);
    json_decref(a);
    free(p);
}

/* How often the last block's events tell of this failure. */
static unsigned failures(struct bed *b, const char *dispatch_error)
{
    static const char events[] =
        "[\"0x26aa394eea5630e07c48ae0c9558cef780d41e5e16056765bc8461851072c9d7\"]";
    unsigned n = 0;
    json_t *a = ws_call(b->ws, "state_getStorage", events);
    for (const char *at = result_text(a); (at = strstr(at, dispatch_error)); at++)
        n++;
    json_decref(a);
    return n;
}

static void scripted_dispatch_failures(void **state)
{
    (void)state;
    static const char failed[] =
        "0001030a02000000"; /* System.ExtrinsicFailed, Module, Balances, error 2 */
    struct bed b;
    bed_open(&b, NULL);
    script(&b, "{\"match\":{\"dispatch\":true,\"times\":2},\"action\":{\"fail\":[10,2]}}");
    char *p = remark(&b, b.alice, 0, 0, NULL);
    json_t *a = ws_call(b.ws, "system_dryRun", p);
    assert_string_equal(result_text(a), "0x0000");
    json_decref(a);
    free(p);
    submit(&b, 0);
    do_call(&b, "dev_newBlock", "[]");
    assert_int_equal(failures(&b, failed), 1);
    submit(&b, 1);
    submit(&b, 2);
    do_call(&b, "dev_newBlock", "[]");
    assert_int_equal(failures(&b, failed), 1);
    a = ws_call(b.ws, "dev_script", "[{\"match\":{\"dispatch\":true},\"action\":{\"fail\":10}}]");
    assert_error(a, -32602, "action.fail", NULL);
    bed_close(&b);
}

/* The account's nonce goes with its balance, and starts again with it. */
static void reaped_and_alive_again(void **state)
{
    (void)state;
    struct bed b;
    char address[SS58_TEXT_MAX];
    struct buf params = {0};
    bed_open(&b, NULL);
    ss58_encode(rig_id(b.alice), 42, address);
    submit(&b, 0);
    do_call(&b, "dev_newBlock", "[]");
    char sub[32];
    watch(&b, remark(&b, b.alice, 1, 0, NULL), sub);
    expect_status(&b, sub, "ready");
    assert_int_equal(next_index(&b, address), 2);
    buf_printf(&params, "[{\"account\":\"%s\",\"free\":0}]", address);
    do_call(&b, "dev_setBalance", buf_str(&params));
    assert_int_equal(next_index(&b, address), 0);
    expect_status(&b, sub, "invalid");
    char *p = remark(&b, b.alice, 0, 0, NULL);
    assert_int_equal(error_code_of(&b, p), 1010); /* nobody is there to pay */
    free(p);
    buf_clear(&params);
    buf_printf(&params, "[{\"account\":\"%s\",\"free\":\"1000000000000\"}]", address);
    do_call(&b, "dev_setBalance", buf_str(&params));
    submit(&b, 0);
    assert_int_equal(next_index(&b, address), 1);
    do_call(&b, "dev_newBlock", "[]");
    do_call(&b, "dev_set", "[{\"pool_blind_nonce\":true}]");
    assert_int_equal(next_index(&b, address), 1);
    buf_done(&params);
    bed_close(&b);
}

static void stats_and_waiting(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, (const char *const[]){"--instant", "--finality-lag", "0", NULL});
    for (uint32_t i = 0; i < 2; i++) {
        char *p = remark(&b, b.alice, 0, i, NULL);
        json_decref(ws_call(b.ws, "author_submitExtrinsic", p));
        free(p);
    }
    do_call(&b, "dev_waitFor", "[{\"finalized\":1,\"submits\":2}]");
    json_t *a = ws_call(b.ws, "dev_stats", "[{\"limit\":10}]");
    json_t *s = json_object_get(a, "result");
    assert_int_equal(json_integer_value(json_object_get(s, "submit_count")), 2);
    assert_int_equal(json_integer_value(json_object_get(s, "max_hashes_per_nonce")), 2);
    assert_int_equal(json_array_size(json_object_get(s, "several_hashes")), 1);
    assert_int_equal(json_array_size(json_object_get(s, "submits")), 2);
    assert_int_equal(json_integer_value(json_object_get(
                         json_array_get(json_object_get(s, "submits"), 0), "nonce")),
                     0);
    json_decref(a);
    bed_close(&b);
}

static void chopsticks(void **state)
{
    (void)state;
    struct bed b;
    char sub[32];
    bed_open(&b, (const char *const[]){"--chopsticks-shapes", "--block-ms", "0", NULL});
    watch(&b, remark(&b, b.alice, 0, 0, NULL), sub);
    json_t *s = ws_note(b.ws, sub, SOON);
    assert_true(json_is_null(json_object_get(s, "ready")) && json_object_size(s) == 1);
    json_decref(s);
    do_call(&b, "dev_newBlock", "[]");
    do_call(&b, "dev_clearBans", "[]");
    char *p = remark(&b, b.alice, 0, 7, NULL);
    json_t *a = ws_call(b.ws, "author_submitExtrinsic", p);
    assert_string_equal(json_string_value(json_object_get(json_object_get(a, "error"), "message")),
                        "{\"invalid\":{\"stale\":null}}");
    json_decref(a);
    free(p);
    bed_close(&b);
}

static void storage_and_calls(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, NULL);
    struct buf key = {0}, params = {0};
    hash_twox_128("System", 6, buf_grow(&key, 16));
    key.len += 16;
    hash_twox_128("Account", 7, buf_grow(&key, 16));
    key.len += 16;
    hash_blake2b_128(rig_id(b.alice), 32, buf_grow(&key, 16));
    key.len += 16;
    buf_put(&key, rig_id(b.alice), 32);
    buf_puts(&params, "[\"");
    hex_put_0x(&params, key.data, key.len);
    buf_puts(&params, "\"]");
    char *p = remark(&b, b.alice, 0, 0, NULL);
    json_decref(ws_call(b.ws, "author_submitExtrinsic", p));
    free(p);
    do_call(&b, "dev_newBlock", "[]");
    json_t *a = ws_call(b.ws, "state_getStorage", buf_str(&params));
    assert_memory_equal(result_text(a), "0x01000000000000000100000000000000",
                        34); /* nonce 1, one provider */
    json_decref(a);
    params.len--;
    a = ws_call(b.ws, "chain_getBlockHash", "[0]");
    buf_printf(&params, ",\"%s\"]", result_text(a));
    json_decref(a);
    a = ws_call(b.ws, "state_getStorage", buf_str(&params));
    assert_memory_equal(result_text(a), "0x00000000", 10);
    json_decref(a);
    a = ws_call(b.ws, "state_call", "[\"Metadata_metadata_versions\",\"0x\"]");
    assert_string_equal(result_text(a), "0x080e0000000f000000");
    json_decref(a);
    assert_error(ws_call(b.ws, "state_call", "[\"No_such\",\"0x\"]"), 4003,
                 "Exported method No_such is not found", NULL);
    a = ws_call(
        b.ws, "state_getStorage",
        "[\"0x00\",\"0x2222222222222222222222222222222222222222222222222222222222222222\"]");
    assert_int_equal(error_code(a), 4003);
    json_decref(a);
    buf_done(&key);
    buf_done(&params);
    bed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(submit_answers_the_hash),
        cmocka_unit_test(watch_frames),
        cmocka_unit_test(unit_and_hash_statuses),
        cmocka_unit_test(refused_watch_is_an_error_answer),
        cmocka_unit_test(fork_aware_pool),
        cmocka_unit_test(priority_refusal_text),
        cmocka_unit_test(unwatch_answers),
        cmocka_unit_test(closing_keeps_the_transaction),
        cmocka_unit_test(http),
        cmocka_unit_test(broadcast),
        cmocka_unit_test(finalized_heads_skip),
        cmocka_unit_test(new_heads_and_reorg),
        cmocka_unit_test(header_hash),
        cmocka_unit_test(account_next_index),
        cmocka_unit_test(undecodable),
        cmocka_unit_test(unsafe_is_denied),
        cmocka_unit_test(limits),
        cmocka_unit_test(request_too_big),
        cmocka_unit_test(pings),
        cmocka_unit_test(restart_loses_the_pool),
        cmocka_unit_test(answers_out_of_order),
        cmocka_unit_test(runtime_upgrade),
        cmocka_unit_test(dry_run_and_fee),
        cmocka_unit_test(scripted_error_at_the_nth),
        cmocka_unit_test(scripted_cuts),
        cmocka_unit_test(scripted_silences),
        cmocka_unit_test(scripted_statuses),
        cmocka_unit_test(scripted_verdicts_ban_like_the_real_ones),
        cmocka_unit_test(scripted_heads),
        cmocka_unit_test(late_status_and_dead_connection),
        cmocka_unit_test(slow_reader),
        cmocka_unit_test(author_skips),
        cmocka_unit_test(scripted_dispatch_failures),
        cmocka_unit_test(reaped_and_alive_again),
        cmocka_unit_test(stats_and_waiting),
        cmocka_unit_test(chopsticks),
        cmocka_unit_test(storage_and_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
