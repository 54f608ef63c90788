/* Questions that are refused in the older JSON-RPC: asked in the newer one, answered in the older
 * one's shape. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "support_rpc.h"

#define REFUSED      "refused"
#define HASH         "0x1111111111111111111111111111111111111111111111111111111111111111"
#define PARENT       "0x2222222222222222222222222222222222222222222222222222222222222222"
#define STATE        "3333333333333333333333333333333333333333333333333333333333333333"
#define ROOT         "4444444444444444444444444444444444444444444444444444444444444444"
#define HEADER(tail) "\"" PARENT "14" STATE ROOT tail "\"" /* number 5, compact */
#define OLDER(tail)                                                                                \
    "{\"parentHash\":\"" PARENT "\",\"number\":\"0x5\",\"stateRoot\":\"0x" STATE                   \
    "\",\"extrinsicsRoot\":\"0x" ROOT "\"" tail "}"
/* A pre-runtime digest of 2 bytes, a seal of 1, "other" of 1, and an update of the runtime. */
#define LOGS                                                                                       \
    "10"                                                                                           \
    "0661757261"                                                                                   \
    "08"                                                                                           \
    "abcd"                                                                                         \
    "0561757261"                                                                                   \
    "04"                                                                                           \
    "ee"                                                                                           \
    "00"                                                                                           \
    "04"                                                                                           \
    "77"                                                                                           \
    "08"
#define OLDER_LOGS                                                                                 \
    ",\"digest\":{\"logs\":[\"0x066175726108abcd\",\"0x056175726104ee\",\"0x000477\",\"0x08\"]}"

struct answer {
    const char *method, *params, *result;
    const char *items[2]; /* of the subscription that it starts */
};

enum { ANSWERS = 3 };

struct question {
    const char *method, *params;
    struct answer newer[ANSWERS];
    const char *result; /* NULL: it is refused, as: */
    enum rpc_error refused;
};

static struct {
    const struct question *q;
    const char *older; /* the method that is refused */
    unsigned asked_older, asked_newer;
} script;

static void answer(struct ws_peer *p, const json_t *id, const struct answer *a)
{
    if (a && !a->result[0])
        return; /* it never comes */
    if (!a || !strcmp(a->result, REFUSED)) {
        ws_peer_printf(p,
                       "{\"jsonrpc\":\"2.0\",\"id\":%" JSON_INTEGER_FORMAT
                       ",\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}",
                       json_integer_value(id));
        return;
    }
    ws_peer_printf(p, "{\"jsonrpc\":\"2.0\",\"id\":%" JSON_INTEGER_FORMAT ",\"result\":%s}",
                   json_integer_value(id), a->result);
    for (size_t i = 0; i < ARRAY_LEN(a->items) && a->items[i]; i++)
        ws_peer_printf(p,
                       "{\"jsonrpc\":\"2.0\",\"method\":\"archive_v1_storageEvent\",\"params\":{"
                       "\"subscription\":%s,\"result\":%s}}",
                       a->result, a->items[i]);
}

static bool hook(struct rig *rig, struct ws_peer *p, const char *method, const json_t *id,
                 const char *params)
{
    (void)rig;
    if (!strcmp(method, script.older)) {
        script.asked_older++;
        answer(p, id, NULL);
        return true;
    }
    if (!strcmp(method, "chainHead_v1_follow")) {
        answer(p, id, NULL);
        return true;
    }
    for (size_t i = 0; i < ANSWERS && script.q->newer[i].method; i++)
        if (!strcmp(script.q->newer[i].method, method)) {
            script.asked_newer++;
            assert_string_equal(params, script.q->newer[i].params);
            answer(p, id, &script.q->newer[i]);
            return true;
        }
    return false;
}

static const struct question questions[] = {
    {"chain_getBlockHash",
     "[7]",
     {{"archive_v1_hashByHeight", "[7]", "[\"" HASH "\"]", {0}}},
     "\"" HASH "\"",
     0},
    {"chain_getBlockHash", "[7]", {{"archive_v1_hashByHeight", "[7]", "[]", {0}}}, "null", 0},
    {"chain_getFinalizedHead",
     "[]",
     {{"archive_v1_finalizedHeight", "[]", "9", {0}},
      {"archive_v1_hashByHeight", "[9]", "[\"" HASH "\"]", {0}}},
     "\"" HASH "\"",
     0},
    {"chain_getHeader",
     "[\"" HASH "\"]",
     {{"archive_v1_header", "[\"" HASH "\"]", HEADER(LOGS), {0}}},
     OLDER(OLDER_LOGS),
     0},
    /* A header that goes on behind its digest, and a digest that is not known. */
    {"chain_getHeader",
     "[\"" HASH "\"]",
     {{"archive_v1_header", "[\"" HASH "\"]", HEADER("0000"), {0}}},
     OLDER(""),
     0},
    {"chain_getHeader",
     "[\"" HASH "\"]",
     {{"archive_v1_header", "[\"" HASH "\"]", HEADER("040700"), {0}}},
     OLDER(""),
     0},
    {"chain_getHeader",
     "[\"" HASH "\"]",
     {{"archive_v1_header", "[\"" HASH "\"]", "null", {0}}},
     "null",
     0},
    {"chain_getHeader",
     "[]",
     {{"chain_getBlockHash", "[]", "\"" HASH "\"", {0}},
      {"archive_v1_header", "[\"" HASH "\"]", HEADER("00"), {0}}},
     OLDER(",\"digest\":{\"logs\":[]}"),
     0},
    {"chain_getBlock",
     "[\"" HASH "\"]",
     {{"archive_v1_header", "[\"" HASH "\"]", HEADER("00"), {0}},
      {"archive_v1_body", "[\"" HASH "\"]", "[\"0x04\",\"0x0801\"]", {0}}},
     "{\"block\":{\"header\":" OLDER(",\"digest\":{\"logs\":[]}") ",\"extrinsics\":[\"0x04\","
                                                                  "\"0x0801\"]}}",
     0},
    {"chain_getBlock",
     "[\"" HASH "\"]",
     {{"archive_v1_header", "[\"" HASH "\"]", HEADER("00"), {0}},
      {"archive_v1_body", "[\"" HASH "\"]", "null", {0}}},
     "null",
     0},
    {"state_call",
     "[\"Core_version\",\"0x\",\"" HASH "\"]",
     {{"archive_v1_call",
       "[\"" HASH "\",\"Core_version\",\"0x\"]",
       "{\"success\":true,\"value\":\"0x01\"}",
       {0}}},
     "\"0x01\"",
     0},
    {"state_call",
     "[\"Core_version\",\"0x\",\"" HASH "\"]",
     {{"archive_v1_call", "[\"" HASH "\",\"Core_version\",\"0x\"]", "null", {0}}},
     NULL,
     RPC_ERROR_BLOCK},
    {"state_call",
     "[\"Core_version\",\"0x\",\"" HASH "\"]",
     {{"archive_v1_call",
       "[\"" HASH "\",\"Core_version\",\"0x\"]",
       "{\"success\":false,\"error\":\"Execution failed\"}",
       {0}}},
     NULL,
     RPC_ERROR_OTHER},
    {"state_getMetadata",
     "[\"" HASH "\"]",
     {{"archive_v1_call",
       "[\"" HASH "\",\"Metadata_metadata\",\"0x\"]",
       "{\"success\":true,\"value\":\"0x0c6d6574\"}",
       {0}}},
     "\"0x6d6574\"",
     0},
    {"state_getStorage",
     "[\"0xaa\",\"" HASH "\"]",
     {{"archive_v1_storage",
       "[\"" HASH "\",[{\"key\":\"0xaa\",\"type\":\"value\"}],null]",
       "\"S\"",
       {"{\"event\":\"storage\",\"key\":\"0xaa\",\"value\":\"0xbb\"}",
        "{\"event\":\"storageDone\"}"}}},
     "\"0xbb\"",
     0},
    {"state_getStorage",
     "[\"0xaa\",\"" HASH "\"]",
     {{"archive_v1_storage",
       "[\"" HASH "\",[{\"key\":\"0xaa\",\"type\":\"value\"}],null]",
       "\"S\"",
       {"{\"event\":\"storageDone\"}"}}},
     "null",
     0},
    {"state_getStorage",
     "[\"0xaa\",\"" HASH "\"]",
     {{"archive_v1_storage",
       "[\"" HASH "\",[{\"key\":\"0xaa\",\"type\":\"value\"}],null]",
       "\"S\"",
       {"{\"event\":\"storageError\",\"error\":\"Block not found\"}"}}},
     NULL,
     RPC_ERROR_BLOCK},
    /* The newer method is refused, too. */
    {"chain_getBlock",
     "[\"" HASH "\"]",
     {{"archive_v1_header", "[\"" HASH "\"]", REFUSED, {0}}},
     NULL,
     RPC_ERROR_METHOD},
};

static void start(struct rig *rig)
{
    rpc_rig_start(rig);
    rig->hook = hook;
}

static bool newer_was_asked(void *arg)
{
    (void)arg;
    return script.asked_newer > 0;
}

static void each_question(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
        const struct question *q = &questions[i];
        struct rig rig;
        print_message("%zu: %s %s\n", i, q->method, q->params);
        script.q = q;
        script.older = q->method;
        script.asked_older = script.asked_newer = 0;
        start(&rig);
        for (unsigned time = 1; time <= 2; time++) {
            struct ask a = {0};
            ask(&rig, &a, q->method, q->params, 0);
            await(&rig, &a);
            if (q->result)
                assert_string_equal(a.result, q->result);
            else
                assert_int_equal(a.call.refused, q->refused);
            assert_int_equal(a.call.err.code, q->result ? 0 : ERR_RPC);
            /* What both refuse is asked in the older way again, the rest in the newer one. */
            assert_int_equal(script.asked_older, q->refused == RPC_ERROR_METHOD ? time : 1);
            ask_done(&a);
        }
        if (q->refused == RPC_ERROR_METHOD)
            assert_int_equal(script.asked_newer, 1);
        rpc_rig_done(&rig);
    }
}

/* Before the second step; or the items of a subscription do not come. */
static void lost_between_its_steps(void **state)
{
    (void)state;
    static const struct question lost[] = {
        {"chain_getBlock",
         "[\"" HASH "\"]",
         {{"archive_v1_header", "[\"" HASH "\"]", "", {0}}},
         NULL,
         0},
        {"state_getStorage",
         "[\"0xaa\",\"" HASH "\"]",
         {{"archive_v1_storage",
           "[\"" HASH "\",[{\"key\":\"0xaa\",\"type\":\"value\"}],null]",
           "\"S\"",
           {0}}},
         NULL,
         0},
    };
    for (size_t i = 0; i < ARRAY_LEN(lost); i++) {
        struct rig rig;
        struct ask a = {0}, cut = {0};
        script.q = &lost[i];
        script.older = lost[i].method;
        script.asked_newer = 0;
        start(&rig);
        ask(&rig, &a, lost[i].method, lost[i].params, 0);
        assert_true(run_until(rig.loop, newer_was_asked, NULL, LIMIT_MS));
        ask(&rig, &cut, "cut", "[]", 0);
        await(&rig, &a);
        assert_int_equal(a.call.err.code, ERR_NET);
        assert_int_equal(a.times, 1);
        await(&rig, &cut);
        ask_done(&a);
        ask_done(&cut);
        rpc_rig_done(&rig);
    }
}

/* A new connection may be to another node: the older method is tried again. */
static void learnt_anew_with_each_connection(void **state)
{
    (void)state;
    struct rig rig;
    script.q = &questions[0];
    script.older = script.q->method;
    script.asked_older = 0;
    start(&rig);
    for (unsigned time = 1; time <= 2; time++) {
        struct ask a = {0};
        struct err why;
        ask(&rig, &a, script.q->method, script.q->params, 0);
        await(&rig, &a);
        assert_string_equal(a.result, script.q->result);
        assert_int_equal(script.asked_older, time);
        ask_done(&a);
        err_set(&why, ERR_NET, "again");
        rpc_reconnect(rig.rpc, &why);
        assert_true(run_until(rig.loop, has_lost, &rig, LIMIT_MS));
        assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
        rig.lost = 0;
    }
    rpc_rig_done(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_question),
        cmocka_unit_test(lost_between_its_steps),
        cmocka_unit_test(learnt_anew_with_each_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
