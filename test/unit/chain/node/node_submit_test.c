/* Submissions: what the node says in every shape, what is refused, what is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "support_node.h"

static struct fake_runtime contracts;

struct tx {
    struct node_submit submit;
    bool replied, lost;
    unsigned replies;
    struct err err; /* of the reply */
    enum tx_status status[16];
    bool has_hash[16];
    uint8_t hash[32]; /* of the last status that has one */
    size_t count;
    size_t forget_at; /* this many statuses */
};

static struct tx *of(struct node_submit *s)
{
    return CONTAINER_OF(s, struct tx, submit);
}

static void on_reply(struct node_submit *s)
{
    struct tx *t = of(s);
    t->replied = true;
    t->replies++;
    t->err = s->sub.call.err;
}

static void on_status(struct node_submit *s, enum tx_status status, const uint8_t *hash)
{
    struct tx *t = of(s);
    assert_true(t->replied);
    assert_true(t->count < ARRAY_LEN(t->status));
    t->has_hash[t->count] = hash != NULL;
    t->status[t->count++] = status;
    if (hash)
        memcpy(t->hash, hash, 32);
    if (t->count == t->forget_at) {
        node_submit_forget(s);
        memset(t->hash, 0xee, sizeof(t->hash));
    }
}

static void on_lost(struct node_submit *s)
{
    assert_false(of(s)->lost);
    of(s)->lost = true;
}

static void submit(struct node_rig *rig, struct tx *t, bool (*gate)(void *arg), void *gate_arg)
{
    static const uint8_t bytes[] = {0x0c, 0x84, 0x01, 0xff};
    node_submit_start(rig->node, &t->submit, bytes, sizeof(bytes), gate, gate_arg, on_reply,
                      on_status, on_lost);
    assert_false(t->replied);
}

static bool is_true(void *arg)
{
    return *(bool *)arg;
}

static void wait_for(struct node_rig *rig, bool *flag)
{
    assert_true(run_until(rig->loop, is_true, flag, rig_limit()));
}

struct statuses {
    struct tx *tx;
    size_t count;
};

static bool has_statuses(void *arg)
{
    struct statuses *s = arg;
    return s->tx->count >= s->count;
}

static void wait_statuses(struct node_rig *rig, struct tx *t, size_t count)
{
    struct statuses s = {t, count};
    assert_true(run_until(rig->loop, has_statuses, &s, rig_limit()));
}

#define H1 "0x1111111111111111111111111111111111111111111111111111111111111111"
#define H2 "0x2222222222222222222222222222222222222222222222222222222222222222"

/* ---- the node's side: one script for all tests, its parts by what the test sets ---- */

struct script {
    const char *early;   /* statuses as a JSON array: before the answer */
    const char *late;    /* after it */
    const char *refusal; /* data text: 1010 */
    const char *message; /* of the refusal */
    bool mute;           /* no answer */
    bool keep;           /* keep the request's id in `kept` */
    json_t *kept;
    unsigned limit; /* of watches at a time; 0: none */
    bool *shuts;    /* becomes false when a watch is refused */
    unsigned submissions, unwatched, watching, plain;
    char bytes[64];
    char unwatched_id[32];
    bool got_unwatch, got_submit;
};

static void send_statuses(struct ws_peer *p, const char *text)
{
    json_t *list = text ? json_loads(text, 0, NULL) : NULL, *item;
    size_t i;
    json_array_foreach(list, i, item)
        fake_notify(p, "author_extrinsicUpdate", "TxTxTxTxTxTxTxTx", json_incref(item));
    json_decref(list);
}

static bool author(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                   const json_t *params)
{
    struct script *s = f->hook_arg;
    const char *first = json_string_value(json_array_get(params, 0));
    if (!strcmp(method, "author_unwatchExtrinsic")) {
        s->unwatched++;
        s->got_unwatch = true;
        snprintf(s->unwatched_id, sizeof(s->unwatched_id), "%s", first);
        fake_answer(p, id, json_true());
        return true;
    }
    if (!strcmp(method, "author_submitExtrinsic")) {
        s->plain++;
        fake_answer(p, id, json_string(H1));
        return true;
    }
    if (strcmp(method, "author_submitAndWatchExtrinsic") != 0)
        return false;
    if (s->limit && s->watching == s->limit) {
        if (s->shuts)
            *s->shuts = false;
        fake_error(p, id, -32006, "Too many subscriptions on the connection", "Exceeded max limit");
        return true;
    }
    if (s->limit) {
        char sub[16];
        snprintf(sub, sizeof(sub), "watch %u", s->watching++);
        fake_answer(p, id, json_string(sub));
        return true;
    }
    s->submissions++;
    s->got_submit = true;
    snprintf(s->bytes, sizeof(s->bytes), "%s", first);
    if (s->keep)
        s->kept = json_deep_copy(id);
    if (s->mute || s->keep)
        return true;
    if (s->refusal || s->message) {
        fake_error(p, id, 1010, s->message ? s->message : "Invalid Transaction", s->refusal);
        return true;
    }
    send_statuses(p, s->early);
    fake_answer(p, id, json_string("TxTxTxTxTxTxTxTx"));
    send_statuses(p, s->late);
    return true;
}

static void start(struct node_rig *rig, struct script *s)
{
    rig_start(rig, 1, &contracts);
    rig->fake[0].hook = author;
    rig->fake[0].hook_arg = s;
    rig_up(rig);
}

static void a_nodes_statuses(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {0};
    struct script s = {.late = "[\"future\",\"ready\",{\"broadcast\":[\"12D3\"]},{\"inBlock\":\"" H1
                               "\"},{\"retracted\":\"" H1 "\"},\"news\",{\"inBlock\":\"" H2
                               "\"},{\"finalized\":\"" H2 "\"},\"invalid\"]"};
    static const enum tx_status want[] = {TX_FUTURE,    TX_READY,    TX_BROADCAST, TX_IN_BLOCK,
                                          TX_RETRACTED, TX_IN_BLOCK, TX_FINALIZED};
    uint8_t h2[32];
    memset(h2, 0x22, sizeof(h2));
    start(&rig, &s);
    submit(&rig, &t, NULL, NULL);
    wait_statuses(&rig, &t, 7);
    assert_int_equal(t.err.code, 0);
    assert_string_equal(s.bytes, "0x0c8401ff");
    assert_memory_equal(t.status, want, sizeof(want));
    assert_false(t.has_hash[2]);
    assert_true(t.has_hash[3]);
    assert_memory_equal(t.hash, h2, 32);
    node_submit_forget(&t.submit); /* after the end: nothing to do */
    rig_done(&rig);
    assert_int_equal(t.count, 7);
    assert_int_equal(t.replies, 1);
    assert_int_equal(s.unwatched, 0);
    assert_false(t.lost);
}

/* A status whose block is no hash is not reported: the watch ends, and the endpoint is left if
 * there is another one. */
static void statuses_without_their_hash(void **state)
{
    (void)state;
    static const char *const bad[] = {"[\"ready\",{\"finalized\":\"garbage\"}]",
                                      "[\"ready\",{\"inBlock\":5}]",
                                      "[\"ready\",{\"retracted\":null}]", "[\"ready\",\"usurped\"]",
                                      "[\"ready\",{\"finalityTimeout\":[]}]"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct node_rig rig;
        struct tx t = {0};
        struct script s = {.late = bad[i]};
        start(&rig, &s);
        submit(&rig, &t, NULL, NULL);
        wait_for(&rig, &t.lost);
        assert_int_equal(t.count, 1);
        assert_int_equal(rig.down, 0);
        rig_done(&rig);
    }
}

static void a_status_without_its_hash_beside_another_endpoint(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {0};
    struct script s = {.late = "[{\"finalized\":\"garbage\"}]"};
    rig_start(&rig, 2, &contracts);
    rig.fake[0].hook = author;
    rig.fake[0].hook_arg = &s;
    rig_up(&rig);
    submit(&rig, &t, NULL, NULL);
    wait_for(&rig, &t.lost);
    assert_int_equal(t.count, 0);
    assert_int_equal(rig.why.code, ERR_PROTOCOL);
    rig_wait_ready(&rig, 2);
    assert_string_equal(node_endpoint(rig.node), rig.urls[1]);
    rig_done(&rig);
}

static void chopsticks_statuses_before_the_answer(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {0};
    struct script s = {.early = "[{\"ready\":null}]",
                       .late = "[{\"broadcast\":[]},{\"invalid\":{\"stale\":null}}]"};
    start(&rig, &s);
    submit(&rig, &t, NULL, NULL);
    wait_statuses(&rig, &t, 3);
    assert_int_equal(t.status[0], TX_READY);
    assert_int_equal(t.status[1], TX_BROADCAST);
    assert_int_equal(t.status[2], TX_INVALID);
    assert_false(t.has_hash[2]);
    rig_done(&rig);
    assert_false(t.lost);
}

static void refused(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {0}, u = {0};
    struct script s = {.refusal = "Transaction is outdated"};
    start(&rig, &s);
    submit(&rig, &t, NULL, NULL);
    wait_for(&rig, &t.replied);
    assert_int_equal(t.err.code, ERR_RPC);
    assert_int_equal(t.submit.sub.call.rpc_code, 1010);
    assert_string_equal(t.err.text, "Invalid Transaction");
    assert_string_equal(t.submit.sub.call.rpc_data, "Transaction is outdated");
    s.refusal = NULL;
    s.message = "{\"invalid\":{\"badProof\":null}}"; /* chopsticks */
    submit(&rig, &u, NULL, NULL);
    wait_for(&rig, &u.replied);
    assert_string_equal(u.err.text, "{\"invalid\":{\"badProof\":null}}");
    assert_string_equal(u.submit.sub.call.rpc_data, "");
    rig_done(&rig);
    assert_false(t.lost || u.lost);
    assert_int_equal(t.count, 0);
}

static bool gate(void *arg)
{
    return *(bool *)arg;
}

static bool gate_for_some(void *arg)
{
    unsigned *left = arg;
    return *left > 0 && (*left)-- > 0;
}

/* A node grants two watches: what comes after them is submitted without one, and is watched again
 * when one of them has ended. */
static void too_many_watches(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t[5] = {0}, u = {0}, v = {0};
    struct script s = {.limit = 2};
    bool open = true;
    start(&rig, &s);
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        submit(&rig, &t[i], gate, &open);
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        wait_for(&rig, &t[i].replied);
        assert_int_equal(t[i].err.code, 0);
    }
    assert_int_equal(s.watching, 2);
    assert_int_equal(s.plain, 3);
    submit(&rig, &u, NULL, NULL); /* nobody is asked for a watch again */
    wait_for(&rig, &u.replied);
    assert_int_equal(s.plain, 4);
    node_submit_forget(&t[0].submit);
    s.watching--;
    submit(&rig, &v, NULL, NULL);
    wait_for(&rig, &v.replied);
    assert_int_equal(v.err.code, 0);
    assert_int_equal(s.watching, 2);
    node_submit_forget(&t[1].submit);
    node_submit_forget(&t[2].submit); /* has none: nothing to end */
    node_submit_forget(&v.submit);
    rig_done(&rig);
    assert_int_equal(s.plain, 4);
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        assert_int_equal(t[i].replies, 1);
}

/* Leadership is lost between the refused watch and the second try. The refusal does not prove that
 * no pool has the bytes, so the answer must not say that nothing was written. */
static void too_many_watches_and_the_gate(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {0};
    struct script s = {.limit = 2, .watching = 2};
    bool open = true;
    start(&rig, &s);
    s.shuts = &open;
    submit(&rig, &t, gate, &open);
    wait_for(&rig, &t.replied);
    assert_int_equal(t.err.code, ERR_NET);
    assert_int_equal(s.plain, 0);
    rig_done(&rig);
}

static void lost_watch(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {0}, cut = {0};
    struct script s = {.late = "[\"ready\"]"};
    start(&rig, &s);
    submit(&rig, &t, NULL, NULL);
    wait_statuses(&rig, &t, 1);
    s.mute = true;
    s.got_submit = false;
    submit(&rig, &cut, NULL, NULL);
    wait_for(&rig, &s.got_submit);
    ws_peer_cut(rig.fake[0].peer);
    wait_for(&rig, &t.lost);
    wait_for(&rig, &cut.replied);
    assert_int_equal(cut.err.code, ERR_NET);
    assert_true(cut.submit.sub.call.written); /* the node may have it */
    assert_false(cut.lost);
    rig_wait_ready(&rig, 2);
    s.mute = false;
    struct tx again = {0};
    submit(&rig, &again, NULL, NULL);
    wait_statuses(&rig, &again, 1);
    node_submit_forget(&again.submit);
    rig_done(&rig);
    assert_int_equal(t.replies, 1);
}

static void the_gate(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {0};
    struct script s = {0};
    bool open = true;
    start(&rig, &s);
    submit(&rig, &t, gate, &open);
    open = false;
    wait_for(&rig, &t.replied);
    assert_int_equal(t.err.code, ERR_NOT_LEADER);
    assert_false(t.submit.sub.call.written);
    rig_done(&rig);
    assert_int_equal(s.submissions, 0);
}

static void not_ready(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {0}, forgotten = {0};
    rig_start(&rig, 1, &contracts);
    rig_connect(&rig);
    submit(&rig, &t, NULL, NULL);
    submit(&rig, &forgotten, NULL, NULL);
    node_submit_forget(&forgotten.submit);
    wait_for(&rig, &t.replied);
    assert_int_equal(t.err.code, ERR_NET);
    rig_done(&rig);
    assert_int_equal(forgotten.replies, 0);
}

static void forgotten(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {.forget_at = 2};
    struct script s = {.late = "[\"ready\",{\"inBlock\":\"" H1 "\"},{\"finalized\":\"" H1 "\"}]"};
    start(&rig, &s);
    submit(&rig, &t, NULL, NULL);
    wait_for(&rig, &s.got_unwatch);
    assert_string_equal(s.unwatched_id, "TxTxTxTxTxTxTxTx");
    rig_done(&rig);
    assert_int_equal(t.count, 2);
    assert_false(t.lost);
}

/* No answer in time: the outcome is unknown; should the answer come late, the watch is undone. */
static void timed_out(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {0};
    struct script s = {.keep = true};
    rig_start(&rig, 1, &contracts);
    rig.config.call_timeout_ms = rig_patience(150);
    rig.fake[0].hook = author;
    rig.fake[0].hook_arg = &s;
    rig_up(&rig);
    submit(&rig, &t, NULL, NULL);
    wait_for(&rig, &s.got_submit);
    struct fake *f = &rig.fake[0];
    node_recheck_runtime(rig.node); /* answered: the line is not dead */
    wait_for(&rig, &t.replied);
    assert_int_equal(t.err.code, ERR_TIMEOUT);
    assert_int_equal(rig.down, 0);
    fake_answer(f->peer, s.kept, json_string("LateLateLateLate"));
    wait_for(&rig, &s.got_unwatch);
    assert_string_equal(s.unwatched_id, "LateLateLateLate");
    json_decref(s.kept);
    rig_done(&rig);
    assert_int_equal(t.replies, 1);
}

static void closed_meanwhile(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {0}, u = {0}, late = {0};
    struct script s = {.late = "[\"ready\"]"};
    start(&rig, &s);
    submit(&rig, &t, NULL, NULL);
    wait_statuses(&rig, &t, 1);
    s.mute = true;
    submit(&rig, &u, NULL, NULL);
    node_close(rig.node, NULL, NULL);
    submit(&rig, &late, NULL, NULL);
    wait_for(&rig, &u.replied);
    wait_for(&rig, &late.replied);
    rig.node = NULL;
    assert_int_equal(u.err.code, ERR_CANCELED);
    assert_int_equal(late.err.code, ERR_CANCELED);
    assert_true(t.lost);
    rig_done(&rig);
}

/* ---- endpoints without author_*: transactionWatch_v1, transaction_v1 ---- */

struct newer {
    const char *events;    /* a JSON array; NULL: none */
    const char *broadcast; /* the answer; NULL: transactionWatch_v1 is there */
    unsigned watched, unwatched, broadcasts, refused;
    bool keep; /* the next broadcast: it is answered later */
    json_t *kept;
    bool got_broadcast, got_stop;
    char stopped[200]; /* the ids, one after another */
};

static bool transaction(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                        const json_t *params)
{
    struct newer *s = f->hook_arg;
    json_t *list, *item;
    size_t i;
    if (!strncmp(method, "author_", 7) ||
        (s->broadcast && !strncmp(method, "transactionWatch", 16))) {
        s->refused++;
        fake_error(p, id, -32601, "Method not found", NULL);
        return true;
    }
    if (!strcmp(method, "transactionWatch_v1_unwatch")) {
        s->unwatched++;
        fake_answer(p, id, json_true());
        return true;
    }
    if (!strcmp(method, "transaction_v1_stop")) {
        size_t len = strlen(s->stopped);
        snprintf(s->stopped + len, sizeof(s->stopped) - len, "%s",
                 json_string_value(json_array_get(params, 0)));
        s->got_stop = true;
        fake_answer(p, id, json_null());
        return true;
    }
    if (!strcmp(method, "transaction_v1_broadcast")) {
        s->broadcasts++;
        s->got_broadcast = true;
        if (s->keep) {
            s->kept = json_copy((json_t *)id);
            return true;
        }
        fake_answer(p, id, json_loads(s->broadcast, JSON_DECODE_ANY, NULL));
        return true;
    }
    if (strcmp(method, "transactionWatch_v1_submitAndWatch") != 0)
        return false;
    assert_string_equal(json_string_value(json_array_get(params, 0)), "0x0c8401ff");
    s->watched++;
    fake_answer(p, id, json_string("WaWaWa"));
    list = s->events ? json_loads(s->events, 0, NULL) : NULL;
    json_array_foreach(list, i, item)
        fake_notify(p, "transactionWatch_v1_watchEvent", "WaWaWa", json_incref(item));
    json_decref(list);
    return true;
}

static void start_newer(struct node_rig *rig, struct newer *s)
{
    rig_start(rig, 1, &contracts);
    rig->config.call_timeout_ms = rig_patience(300);
    rig->fake[0].hook = transaction;
    rig->fake[0].hook_arg = s;
    rig_up(rig);
}

#define INCLUDED(hash)                                                                             \
    "{\"event\":\"bestChainBlockIncluded\",\"block\":{\"hash\":\"" hash "\",\"index\":1}}"

static void a_transaction_watch(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {0}, u = {0};
    struct newer s = {.events = "[{\"event\":\"validated\"}," INCLUDED(
                          H1) ",{\"event\":\"news\"},"
                              "{\"event\":\"bestChainBlockIncluded\",\"block\":null}," INCLUDED(
                                  H2) ",{\"event\":\"finalized\",\"block\":{\"hash\":\"" H2
                                      "\",\"index\":1}}]"};
    static const enum tx_status want[] = {TX_READY, TX_IN_BLOCK, TX_RETRACTED, TX_IN_BLOCK,
                                          TX_FINALIZED};
    start_newer(&rig, &s);
    submit(&rig, &t, NULL, NULL);
    wait_statuses(&rig, &t, ARRAY_LEN(want));
    assert_int_equal(t.err.code, 0);
    assert_int_equal(t.replies, 1);
    assert_memory_equal(t.status, want, sizeof(want));
    assert_true(t.has_hash[1] && t.has_hash[2] && !t.has_hash[0]);
    assert_int_equal(s.refused, 2); /* what it refuses is known after the first one */
    s.events = "[" INCLUDED(H1) "]";
    submit(&rig, &u, NULL, NULL);
    wait_statuses(&rig, &u, 1); /* its first event */
    assert_int_equal(u.status[0], TX_IN_BLOCK);
    assert_int_equal(s.refused, 2);
    node_submit_forget(&u.submit);
    rig_done(&rig);
    assert_int_equal(s.watched, 2);
}

/* The reply is the refusal that author_submitExtrinsic would have been. */
static void refused_by_its_first_event(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {0};
    struct newer s = {.events = "[{\"event\":\"invalid\",\"error\":\"Invalid transaction: "
                                "Transaction is outdated\"}]"};
    start_newer(&rig, &s);
    submit(&rig, &t, NULL, NULL);
    wait_for(&rig, &t.replied);
    assert_int_equal(t.err.code, ERR_RPC);
    assert_int_equal(t.submit.sub.call.rpc_code, 1010);
    assert_string_equal(t.err.text, "Invalid Transaction");
    assert_string_equal(t.submit.sub.call.rpc_data, "Transaction is outdated");
    rig_done(&rig);
    assert_int_equal(t.count, 0);
    assert_false(t.lost);
    assert_int_equal(s.unwatched, 0);
}

/* A pool had the bytes, whatever the first event is. */
static void each_end_of_a_transaction_watch(void **state)
{
    (void)state;
    static const struct {
        const char *events;
        size_t statuses;
        enum tx_status status;
        bool lost;
    } ends[] = {
        {"[{\"event\":\"invalid\",\"error\":\"Extrinsic marked as invalid\"}]", 1, TX_INVALID,
         false},
        {"[{\"event\":\"validated\"},{\"event\":\"dropped\",\"error\":\"of a kind\"}]", 2,
         TX_DROPPED, false},
        {"[{\"event\":\"validated\"},{\"event\":\"finalized\"}]", 1, TX_READY, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct node_rig rig;
        struct tx t = {0};
        struct newer s = {.events = ends[i].events};
        start_newer(&rig, &s);
        submit(&rig, &t, NULL, NULL);
        wait_statuses(&rig, &t, ends[i].statuses);
        if (ends[i].lost)
            wait_for(&rig, &t.lost);
        assert_int_equal(t.err.code, 0);
        assert_int_equal(t.status[ends[i].statuses - 1], ends[i].status);
        rig_done(&rig);
        assert_int_equal(t.lost, ends[i].lost);
    }
}

/* Nothing is known of the bytes: an id alone says nothing. */
static void no_first_event(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {0}, u = {0}, v = {0};
    struct newer s = {0};
    start_newer(&rig, &s);
    submit(&rig, &t, NULL, NULL);
    wait_for(&rig, &t.replied);
    assert_int_equal(t.err.code, ERR_TIMEOUT);
    assert_int_equal(t.submit.sub.call.written, true);
    submit(&rig, &v, NULL, NULL);
    submit(&rig, &u, NULL, NULL);
    node_submit_forget(&v.submit);
    rig_close_node(&rig);
    wait_for(&rig, &u.replied);
    assert_int_equal(u.err.code, ERR_CANCELED);
    assert_false(v.replied || t.lost || u.lost);
    rig_done(&rig);
}

static void broadcast(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {0}, u = {0};
    struct newer s = {.broadcast = "\"OpOpOp\""};
    start_newer(&rig, &s);
    submit(&rig, &t, NULL, NULL);
    wait_for(&rig, &t.replied);
    assert_int_equal(t.err.code, 0);
    s.broadcast = "null"; /* it takes no more of them */
    submit(&rig, &u, NULL, NULL);
    wait_for(&rig, &u.replied);
    assert_int_equal(u.err.code, ERR_RPC);
    assert_int_equal(u.submit.sub.call.rpc_code, 0);
    assert_int_equal(s.broadcasts, 2);
    assert_int_equal(s.refused, 3);
    rig_done(&rig);
}

static void broadcast_of(struct node_rig *rig, struct newer *s, const char *id,
                         const struct node_last *last)
{
    struct tx t = {0};
    s->broadcast = id;
    submit(rig, &t, NULL, NULL);
    node_submit_until(&t.submit, last);
    wait_for(rig, &t.replied);
    assert_int_equal(t.err.code, 0);
    node_submit_forget(&t.submit);
}

/* Each is stopped when a final block shows that no later one can hold its bytes, and not before. */
static void broadcasts_are_stopped(void **state)
{
    (void)state;
    struct node_rig rig;
    struct newer s = {0};
    struct tx late = {0}, forgotten = {0};
    static const uint8_t id[32] = {1};
    start_newer(&rig, &s);
    struct fake *f = &rig.fake[0];
    size_t account = node_watch_account(rig.node, id, sizeof(id));
    for (uint64_t n = 1; n <= 4; n++) {
        fake_add(f, NULL, NULL);
        f->blocks[n].nonce = n == 4 ? 9 : 7;
    }
    node_follow(rig.node, 1);
    broadcast_of(&rig, &s, "\"never \"", &(struct node_last){account, 9, UINT64_MAX});
    broadcast_of(&rig, &s, "\"nonce 8 \"", &(struct node_last){account, 8, UINT64_MAX});
    broadcast_of(&rig, &s, "\"era of 3 \"", &(struct node_last){account, 9, 3});
    broadcast_of(&rig, &s, "\"nobody's \"", &(struct node_last){account + 5, 0, UINT64_MAX});
    broadcast_of(&rig, &s, "17", &(struct node_last){account, 0, 0}); /* it is no name */
    s.keep = true;
    submit(&rig, &late, NULL, NULL);
    node_submit_until(&late.submit, &(struct node_last){account, 8, 4});
    node_recheck_runtime(rig.node); /* answered: the line is not dead */
    wait_for(&rig, &late.replied);
    assert_int_equal(late.err.code, ERR_TIMEOUT);
    fake_answer(f->peer, s.kept, json_string("late "));
    json_decref(s.kept);
    s.got_broadcast = false;
    submit(&rig, &forgotten, NULL, NULL);
    node_submit_until(&forgotten.submit, &(struct node_last){account, 8, 4});
    wait_for(&rig, &s.got_broadcast);
    node_submit_forget(&forgotten.submit);
    fake_answer(f->peer, s.kept, json_string("forgotten "));
    json_decref(s.kept);
    fake_set_finalized(f, 2);
    rig_wait_seen(&rig, 2);
    assert_string_equal(s.stopped, "");
    fake_set_finalized(f, 3);
    wait_for(&rig, &s.got_stop);
    assert_string_equal(s.stopped, "era of 3 ");
    s.got_stop = false;
    fake_set_finalized(f, 4);
    rig_wait_seen(&rig, 4);
    for (unsigned i = 0; strlen(s.stopped) < strlen("era of 3 nonce 8 late forgotten "); i++) {
        assert_true(i < 10);
        s.got_stop = false;
        wait_for(&rig, &s.got_stop);
    }
    assert_string_equal(s.stopped, "era of 3 nonce 8 late forgotten ");
    rig_done(&rig);
}

/* The gate is asked before each try. */
static void shut_between_two_ways(void **state)
{
    (void)state;
    struct node_rig rig;
    struct tx t = {0};
    struct newer s = {0};
    unsigned left = 2;
    start_newer(&rig, &s);
    submit(&rig, &t, gate_for_some, &left);
    wait_for(&rig, &t.replied);
    assert_int_equal(t.err.code, ERR_NET); /* the endpoint that refused may have the bytes */
    assert_int_equal(s.watched, 0);
    rig_done(&rig);
}

static void status_names(void **state)
{
    (void)state;
    assert_string_equal(tx_status_name(TX_IN_BLOCK), "in_block");
    assert_string_equal(tx_status_name(TX_FINALITY_TIMEOUT), "finality_timeout");
    assert_true(tx_status_final(TX_USURPED) && tx_status_final(TX_DROPPED) &&
                tx_status_final(TX_INVALID));
    assert_true(tx_status_final(TX_FINALIZED) && tx_status_final(TX_FINALITY_TIMEOUT));
    assert_false(tx_status_final(TX_RETRACTED) || tx_status_final(TX_IN_BLOCK) ||
                 tx_status_final(TX_FUTURE));
}

static int load(void **state)
{
    (void)state;
    fake_runtime_load(&contracts, "contracts", 100, 1, "v14-substrate-contracts-node");
    return 0;
}

static int unload(void **state)
{
    (void)state;
    fake_runtime_done(&contracts);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nodes_statuses),
        cmocka_unit_test(statuses_without_their_hash),
        cmocka_unit_test(a_status_without_its_hash_beside_another_endpoint),
        cmocka_unit_test(chopsticks_statuses_before_the_answer),
        cmocka_unit_test(refused),
        cmocka_unit_test(lost_watch),
        cmocka_unit_test(too_many_watches),
        cmocka_unit_test(too_many_watches_and_the_gate),
        cmocka_unit_test(the_gate),
        cmocka_unit_test(not_ready),
        cmocka_unit_test(forgotten),
        cmocka_unit_test(timed_out),
        cmocka_unit_test(closed_meanwhile),
        cmocka_unit_test(a_transaction_watch),
        cmocka_unit_test(refused_by_its_first_event),
        cmocka_unit_test(each_end_of_a_transaction_watch),
        cmocka_unit_test(no_first_event),
        cmocka_unit_test(broadcast),
        cmocka_unit_test(broadcasts_are_stopped),
        cmocka_unit_test(shut_between_two_ways),
        cmocka_unit_test(status_names),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
