/* Questions and subscriptions of the older JSON-RPC at an endpoint that has nothing but
 * chainHead_v1: answered from its subscription, asked again when that ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "rpc_internal.h"
#include "support_rpc.h"

#define GENESIS "0x0000000000000000000000000000000000000000000000000000000000000001"
#define FINAL   "0x4444444444444444444444444444444444444444444444444444444444444444"
#define BEST    "0x5555555555555555555555555555555555555555555555555555555555555555"
#define NEXT    "0x6666666666666666666666666666666666666666666666666666666666666666"
#define OTHER   "0x7777777777777777777777777777777777777777777777777777777777777777"
#define ROOT    "3333333333333333333333333333333333333333333333333333333333333333"
/* Heights 4 and 5, compact; no digest. */
#define HEADER(parent, height) "\"" parent height ROOT ROOT "00\""
#define OLDER(parent, height)                                                                      \
    "{\"parentHash\":\"" parent "\",\"number\":\"" height "\",\"stateRoot\":\"0x" ROOT             \
    "\",\"extrinsicsRoot\":\"0x" ROOT "\",\"digest\":{\"logs\":[]}}"

static struct {
    unsigned follows; /* times that it was asked for */
    bool refuse;      /* chainHead_v1_follow */
    enum { TALKS, NO_EVENT, NO_ANSWER } mute;
    json_t *unanswered;
    unsigned unfollowed;
    bool refuse_header;
    bool stop_at_once;      /* the first subscription ends at the first operation */
    bool events_first;      /* those of an operation, before the answer that names it */
    unsigned limit_reached; /* so many operations are refused */
    const char *events[3];  /* of an operation; NULL: what it finds */
    unsigned operations;    /* that were begun */
    unsigned continued, stopped, unpinned;
    char params[400]; /* of the last operation */
    char follow_id[8];
} server;

static void reply(struct ws_peer *p, const json_t *id, const char *result)
{
    ws_peer_printf(p, "{\"jsonrpc\":\"2.0\",\"id\":%" JSON_INTEGER_FORMAT ",\"result\":%s}",
                   json_integer_value(id), result);
}

static void refuse(struct ws_peer *p, const json_t *id, int code)
{
    ws_peer_printf(p,
                   "{\"jsonrpc\":\"2.0\",\"id\":%" JSON_INTEGER_FORMAT
                   ",\"error\":{\"code\":%d,\"message\":\"no\"}}",
                   json_integer_value(id), code);
}

static void event(struct ws_peer *p, const char *text)
{
    ws_peer_printf(p,
                   "{\"jsonrpc\":\"2.0\",\"method\":\"chainHead_v1_followEvent\",\"params\":{"
                   "\"subscription\":\"%s\",\"result\":%s}}",
                   server.follow_id, text);
}

static void follow(struct ws_peer *p, const json_t *id)
{
    char text[16];
    if (server.refuse) {
        refuse(p, id, -32601);
        return;
    }
    server.follows++;
    if (server.mute == NO_ANSWER) {
        server.unanswered = json_copy((json_t *)id);
        return;
    }
    snprintf(server.follow_id, sizeof(server.follow_id), "F%u", server.follows);
    snprintf(text, sizeof(text), "\"%s\"", server.follow_id);
    reply(p, id, text);
    if (server.mute)
        return;
    event(p, "{\"event\":\"initialized\",\"finalizedBlockHashes\":[\"" FINAL
             "\"],\"finalizedBlockRuntime\":{\"type\":\"valid\",\"spec\":{\"specVersion\":1}}}");
    event(p, "{\"event\":\"newBlock\",\"blockHash\":\"" BEST "\",\"parentBlockHash\":\"" FINAL
             "\",\"newRuntime\":null}");
    event(p, "{\"event\":\"bestBlockChanged\",\"bestBlockHash\":\"" BEST "\"}");
}

static void operation_events(struct ws_peer *p, const char *found)
{
    if (!server.events[0])
        event(p, found);
    for (size_t i = 0; i < ARRAY_LEN(server.events) && server.events[i]; i++)
        event(p, server.events[i]);
}

static void operation(struct ws_peer *p, const json_t *id, const char *params, const char *found)
{
    server.operations++;
    snprintf(server.params, sizeof(server.params), "%s", params);
    if (server.stop_at_once && server.follows == 1) {
        event(p, "{\"event\":\"stop\"}");
        reply(p, id, "{\"result\":\"limitReached\"}");
        return;
    }
    if (server.limit_reached) {
        server.limit_reached--;
        reply(p, id, "{\"result\":\"limitReached\"}");
        return;
    }
    if (server.events_first)
        operation_events(p, found);
    reply(p, id, "{\"result\":\"started\",\"operationId\":\"7\"}");
    if (!server.events_first)
        operation_events(p, found);
}

static bool hook(struct rig *rig, struct ws_peer *p, const char *method, const json_t *id,
                 const char *params)
{
    (void)rig;
    bool of_best = strstr(params, BEST) != NULL;
    if (!strcmp(method, "chainHead_v1_follow"))
        follow(p, id);
    else if (!strcmp(method, "chainHead_v1_header") && !server.refuse_header)
        reply(p, id, of_best ? HEADER(FINAL, "14") : HEADER(GENESIS, "10"));
    else if (!strcmp(method, "chainHead_v1_body"))
        operation(p, id, params,
                  "{\"event\":\"operationBodyDone\",\"operationId\":\"7\",\"value\":[\"0x04\"]}");
    else if (!strcmp(method, "chainHead_v1_call"))
        operation(
            p, id, params,
            "{\"event\":\"operationCallDone\",\"operationId\":\"7\",\"output\":\"0x0c6d6574\"}");
    else if (!strcmp(method, "chainHead_v1_storage"))
        operation(p, id, params, "{\"event\":\"operationStorageDone\",\"operationId\":\"7\"}");
    else if (!strcmp(method, "chainSpec_v1_genesisHash"))
        reply(p, id, "\"" GENESIS "\"");
    else if (!strcmp(method, "chainHead_v1_continue"))
        server.continued++;
    else if (!strcmp(method, "chainHead_v1_stopOperation"))
        server.stopped++;
    else if (!strcmp(method, "chainHead_v1_unpin"))
        server.unpinned++;
    else if (!strcmp(method, "chainHead_v1_unfollow"))
        server.unfollowed++;
    else if (!strncmp(method, "chain", 5) || !strncmp(method, "state", 5) ||
             !strncmp(method, "archive", 7))
        refuse(p, id, -32601);
    else
        return false;
    return true;
}

static void start(struct rig *rig)
{
    memset(&server, 0, sizeof(server));
    rpc_rig_start(rig);
    rig->hook = hook;
}

/* NULL: it fails so. */
static void expect(struct rig *rig, const char *method, const char *params, const char *result,
                   enum rpc_error refused)
{
    struct ask a = {0};
    print_message("%s %s\n", method, params);
    ask(rig, &a, method, params, 0);
    await(rig, &a);
    if (result)
        assert_string_equal(a.result, result);
    assert_int_equal(a.call.err.code, result ? 0 : ERR_RPC);
    assert_int_equal(a.call.refused, refused);
    ask_done(&a);
}

static void each_question(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    for (unsigned time = 0; time < 2; time++) {
        expect(&rig, "chain_getBlockHash", "[]", "\"" BEST "\"", 0);
        expect(&rig, "chain_getBlockHash", "[0]", "\"" GENESIS "\"", 0);
        expect(&rig, "chain_getBlockHash", "[4]", "\"" FINAL "\"", 0);
        expect(&rig, "chain_getBlockHash", "[5]", "\"" BEST "\"", 0);
        expect(&rig, "chain_getBlockHash", "[3]", NULL, RPC_ERROR_METHOD); /* another way has it */
        expect(&rig, "chain_getFinalizedHead", "[]", "\"" FINAL "\"", 0);
        expect(&rig, "chain_getHeader", "[]", OLDER(FINAL, "0x5"), 0);
        expect(&rig, "chain_getHeader", "[\"" FINAL "\"]", OLDER(GENESIS, "0x4"), 0);
        expect(&rig, "chain_getHeader", "[\"" OTHER "\"]", NULL, RPC_ERROR_BLOCK);
        expect(&rig, "chain_getBlock", "[]",
               "{\"block\":{\"header\":" OLDER(FINAL, "0x5") ",\"extrinsics\":[\"0x04\"]}}", 0);
        expect(&rig, "chain_getBlock", "[\"" OTHER "\"]", NULL, RPC_ERROR_BLOCK);
        expect(&rig, "state_call", "[\"Core_version\",\"0x\",\"" FINAL "\"]", "\"0x0c6d6574\"", 0);
        assert_string_equal(server.params, "[\"F1\",\"" FINAL "\",\"Core_version\",\"0x\"]");
        expect(&rig, "state_getMetadata", "[\"" FINAL "\"]", "\"0x6d6574\"", 0);
        assert_string_equal(server.params, "[\"F1\",\"" FINAL "\",\"Metadata_metadata\",\"0x\"]");
        expect(&rig, "state_getStorage", "[\"0xaa\",\"" FINAL "\"]", "null", 0);
        assert_string_equal(server.params,
                            "[\"F1\",\"" FINAL "\",[{\"key\":\"0xaa\",\"type\":\"value\"}],null]");
        expect(&rig, "state_getStorage", "[\"0xaa\",\"" OTHER "\"]", NULL, RPC_ERROR_BLOCK);
    }
    assert_int_equal(server.follows, 1);
    rpc_rig_done(&rig);
}

static bool counted(void *arg)
{
    return *(unsigned *)arg > 0;
}

static void each_end_of_an_operation(void **state)
{
    (void)state;
    static const struct {
        const char *events[3];
        const char *result;
        enum rpc_error refused;
        unsigned continued;
    } ends[] = {
        {{"{\"event\":\"operationStorageItems\",\"operationId\":\"7\",\"items\":[{\"key\":\"0xaa\","
          "\"value\":\"0xbb\"}]}",
          "{\"event\":\"operationStorageDone\",\"operationId\":\"7\"}"},
         "\"0xbb\"",
         0,
         0},
        {{"{\"event\":\"operationWaitingForContinue\",\"operationId\":\"7\"}",
          "{\"event\":\"operationStorageDone\",\"operationId\":\"7\"}"},
         "null",
         0,
         1},
        {{"{\"event\":\"operationError\",\"operationId\":\"7\",\"error\":\"State already "
          "discarded\"}"},
         NULL,
         RPC_ERROR_BLOCK,
         0},
        {{"{\"event\":\"operationInaccessible\",\"operationId\":\"7\"}"}, NULL, RPC_ERROR_OTHER, 0},
        /* Events of other operations, or of none. */
        {{"{\"event\":\"operationStorageDone\",\"operationId\":\"8\"}",
          "{\"event\":\"operationBodyDone\",\"operationId\":\"7\",\"value\":[]}",
          "{\"event\":\"operationStorageDone\",\"operationId\":\"7\"}"},
         "null",
         0,
         0},
    };
    for (unsigned first = 0; first < 2; first++)
        for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
            struct rig rig;
            start(&rig);
            server.events_first = first;
            memcpy(server.events, ends[i].events, sizeof(server.events));
            expect(&rig, "state_getStorage", "[\"0xaa\",\"" FINAL "\"]", ends[i].result,
                   ends[i].refused);
            if (ends[i].continued) /* the server may hear it after it has given the rest */
                assert_true(run_until(rig.loop, counted, &server.continued, LIMIT_MS));
            assert_int_equal(server.continued, ends[i].continued);
            rpc_rig_done(&rig);
        }
}

static void asked_again_when_there_was_no_room(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    server.limit_reached = 2;
    expect(&rig, "state_call", "[\"Core_version\",\"0x\",\"" FINAL "\"]", "\"0x0c6d6574\"", 0);
    assert_int_equal(server.operations, 3);
    assert_int_equal(server.follows, 1);
    assert_int_equal(server.unpinned, 0); /* none of these events has left a block behind */
    rpc_rig_done(&rig);
}

static void asked_again_in_the_next_subscription(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    server.stop_at_once = true;
    expect(&rig, "chain_getBlock", "[\"" BEST "\"]",
           "{\"block\":{\"header\":" OLDER(FINAL, "0x5") ",\"extrinsics\":[\"0x04\"]}}", 0);
    assert_int_equal(server.follows, 2);
    assert_string_equal(server.params, "[\"F2\",\"" BEST "\"]");
    rpc_rig_done(&rig);
}

static void a_contradiction_makes_it_anew(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    expect(&rig, "chain_getBlockHash", "[]", "\"" BEST "\"", 0);
    event(rig.peer, "{\"event\":\"bestBlockChanged\",\"bestBlockHash\":\"" OTHER "\"}");
    struct ask a = {0};
    ask(&rig, &a, "echo", "[]", 0); /* the event is there, too, when this is answered */
    await(&rig, &a);
    ask_done(&a);
    expect(&rig, "chain_getBlockHash", "[]", "\"" BEST "\"", 0);
    assert_int_equal(server.follows, 2);
    rpc_rig_done(&rig);
}

static void refused_as_well(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    for (unsigned header = 0; header < 2; header++) {
        if (header)
            start(&rig);
        server.refuse = !header;
        server.refuse_header = header;
        for (unsigned time = 0; time < 2; time++) {
            expect(&rig, "chain_getBlockHash", "[]", NULL, RPC_ERROR_METHOD);
            expect(&rig, "chain_getHeader", "[\"" BEST "\"]", NULL, RPC_ERROR_METHOD);
            expect(&rig, "state_getStorage", "[\"0xaa\",\"" FINAL "\"]", NULL, RPC_ERROR_METHOD);
        }
        assert_int_equal(server.follows, header);
        rpc_rig_done(&rig);
    }
}

/* An operation whose owner has gone is stopped; one of a lost connection fails once. */
static void without_an_owner(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0}, cut = {0};
    start(&rig);
    server.events[0] = "{\"event\":\"operationWaitingForContinue\",\"operationId\":\"7\"}";
    ask(&rig, &a, "state_getStorage", "[\"0xaa\",\"" FINAL "\"]", 0);
    assert_true(run_until(rig.loop, counted, &server.continued, LIMIT_MS));
    rpc__call_forget(rig.rpc, &a.call);
    assert_true(run_until(rig.loop, counted, &server.stopped, LIMIT_MS));
    server.continued = 0;
    ask(&rig, &a, "state_getStorage", "[\"0xaa\",\"" FINAL "\"]", 0);
    assert_true(run_until(rig.loop, counted, &server.continued, LIMIT_MS));
    ask(&rig, &cut, "cut", "[]", 0);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, ERR_NET);
    assert_int_equal(a.times, 1);
    await(&rig, &cut);
    ask_done(&a);
    ask_done(&cut);
    rpc_rig_done(&rig);
}

/* ---- subscriptions ---- */

struct heads {
    struct rpc_sub sub;
    bool ready, ended;
    unsigned items;
    char last[400];
    const char *until;
};

static void subscribed(struct rpc_call *call)
{
    struct heads *h = CONTAINER_OF(CONTAINER_OF(call, struct rpc_sub, call), struct heads, sub);
    assert_int_equal(call->err.code, 0);
    h->ready = true;
}

static void item(struct rpc_sub *sub, const struct jv *value)
{
    struct heads *h = CONTAINER_OF(sub, struct heads, sub);
    size_t len;
    const char *text = jv_raw(value, &len);
    assert_true(h->ready);
    h->items++;
    snprintf(h->last, sizeof(h->last), "%.*s", (int)len, text);
}

static void ended(struct rpc_sub *sub, const struct err *err)
{
    (void)err;
    CONTAINER_OF(sub, struct heads, sub)->ended = true;
}

static bool has_come(void *arg)
{
    const struct heads *h = arg;
    return strcmp(h->last, h->until) == 0;
}

static void wait_item(struct rig *rig, struct heads *h, const char *text)
{
    h->until = text;
    assert_true(run_until(rig->loop, has_come, h, LIMIT_MS));
}

static void subscribe(struct rig *rig, struct heads *h, const char *method)
{
    rpc_subscribe_start(rig->rpc, &h->sub, method, "[]", NULL, NULL, subscribed, item, ended);
}

static void each_subscription(void **state)
{
    (void)state;
    struct rig rig;
    struct heads best = {0}, final = {0}, versions = {0};
    start(&rig);
    subscribe(&rig, &best, "chain_subscribeNewHeads");
    subscribe(&rig, &final, "chain_subscribeFinalizedHeads");
    subscribe(&rig, &versions, "state_subscribeRuntimeVersion");
    wait_item(&rig, &best, OLDER(FINAL, "0x5"));
    wait_item(&rig, &final, OLDER(GENESIS, "0x4"));
    wait_item(&rig, &versions, "{\"specVersion\":1}");
    event(rig.peer, "{\"event\":\"finalized\",\"finalizedBlockHashes\":[\"" BEST
                    "\"],\"prunedBlockHashes\":[]}");
    wait_item(&rig, &final, OLDER(FINAL, "0x5"));
    event(rig.peer, "{\"event\":\"newBlock\",\"blockHash\":\"" NEXT "\",\"parentBlockHash\":\"" BEST
                    "\",\"newRuntime\":{\"type\":\"valid\",\"spec\":{\"specVersion\":2}}}");
    event(rig.peer, "{\"event\":\"bestBlockChanged\",\"bestBlockHash\":\"" NEXT "\"}");
    wait_item(&rig, &versions, "{\"specVersion\":2}");
    assert_int_equal(versions.items, 2);
    assert_int_equal(server.follows, 1);
    /* Nobody asks the node to end what it does not know, and a new one begins with the head. */
    rpc_unsubscribe(rig.rpc, &final.sub, "unsub_final");
    final = (struct heads){0};
    subscribe(&rig, &final, "chain_subscribeFinalizedHeads");
    wait_item(&rig, &final, OLDER(FINAL, "0x5"));
    assert_string_equal(rig.unsubscribed, "");
    /* The server ends it and then refuses another one: the subscriptions end, too. */
    server.refuse = true;
    event(rig.peer, "{\"event\":\"stop\"}");
    assert_true(run_until(rig.loop, is_true, &best.ended, LIMIT_MS));
    assert_true(final.ended && versions.ended);
    rpc_rig_done(&rig);
}

static void subscriptions_end_with_the_connection(void **state)
{
    (void)state;
    struct rig rig;
    struct heads best = {0};
    struct ask cut = {0};
    start(&rig);
    subscribe(&rig, &best, "chain_subscribeNewHeads");
    wait_item(&rig, &best, OLDER(FINAL, "0x5"));
    ask(&rig, &cut, "cut", "[]", 0);
    await(&rig, &cut);
    assert_true(best.ended);
    ask_done(&cut);
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    expect(&rig, "chain_getBlockHash", "[]", "\"" BEST "\"", 0);
    assert_int_equal(server.follows, 2);
    rpc_rig_done(&rig);
}

/* Accepted, and then nothing, or not even an answer: refused before the question's deadline. */
static void it_never_begins(void **state)
{
    (void)state;
    for (unsigned mute = NO_EVENT; mute <= NO_ANSWER; mute++) {
        struct rig rig;
        memset(&server, 0, sizeof(server));
        server.mute = mute;
        rpc_rig_open(&rig);
        rig.hook = hook;
        struct rpc_config config = rpc_rig_config(&rig);
        config.call_timeout_ms = 2000;
        client_start(&rig, &config);
        assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
        expect(&rig, "chain_getBlockHash", "[]", NULL, RPC_ERROR_METHOD);
        expect(&rig, "chain_getFinalizedHead", "[]", NULL, RPC_ERROR_METHOD);
        assert_int_equal(server.follows, 1);
        if (mute == NO_ANSWER)
            reply(rig.peer, server.unanswered, "\"F1\""); /* too late */
        assert_true(run_until(rig.loop, counted, &server.unfollowed, LIMIT_MS));
        json_decref(server.unanswered);
        rpc_rig_done(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_question),
        cmocka_unit_test(each_end_of_an_operation),
        cmocka_unit_test(asked_again_when_there_was_no_room),
        cmocka_unit_test(asked_again_in_the_next_subscription),
        cmocka_unit_test(a_contradiction_makes_it_anew),
        cmocka_unit_test(refused_as_well),
        cmocka_unit_test(without_an_owner),
        cmocka_unit_test(it_never_begins),
        cmocka_unit_test(each_subscription),
        cmocka_unit_test(subscriptions_end_with_the_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
