/* One-off queries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "chain/codec/hash.h"
#include "node_internal.h"

static void fail_later(struct node *n, struct node_ask *a, void (*answered)(struct rpc_call *call))
{
    rpc__call_fail_later(n->loop, &a->call, n->phase == NODE_CLOSING ? ERR_CANCELED : ERR_NET,
                         "no node is ready", answered);
}

static void ask(struct node *n, struct node_ask *a, const char *method, const char *params,
                void (*answered)(struct rpc_call *call), void (*cb)(struct node_ask *a))
{
    PRE(cb);
    *a = (struct node_ask){.node = n, .cb = cb};
    if (n->phase == NODE_READY)
        rpc_call_start(node__rpc(n), &a->call, method, params, 0, NULL, NULL, answered);
    else
        fail_later(n, a, answered);
}

static void bad_answer(struct node_ask *a)
{
    err_set(&a->err, ERR_PROTOCOL, "%s: %s gave something else", node__url(a->node),
            a->call.method);
}

static struct node_ask *of_call(struct rpc_call *call)
{
    struct node_ask *a = CONTAINER_OF(call, struct node_ask, call);
    a->err = call->err;
    return a;
}

/* No answer to this question while others are answered, or something that is none. */
static bool is_no_answer(const struct node_ask *a)
{
    return a->err.code == ERR_PROTOCOL || (a->call.err.code == ERR_TIMEOUT && a->call.written);
}

/* The node leaves an endpoint that refuses the question, or does not answer it, for another one.
 * True: no endpoint answers. */
static bool no_endpoint_answers(struct node_ask *a, enum lack kind)
{
    struct node *n = a->node;
    const struct rpc_call *call = &a->call;
    bool refused = call->refused == RPC_ERROR_METHOD || call->refused == RPC_ERROR_SIZE;
    if ((!refused && !is_no_answer(a)) || n->phase != NODE_READY)
        return false;
    struct err why = a->err;
    if (refused)
        lack_refusal(call, node__url(n), "", &why);
    a->err = why;
    return !lack_leave(n, kind, UINT64_MAX, &why);
}

static void got_nonce(struct rpc_call *call);

/* The runtime tells it, too; its answer begins with the nonce as an AccountInfo does. */
static void ask_nonce_of_runtime(struct node_ask *a)
{
    struct buf params = {0};
    buf_puts(&params, "[\"AccountNonceApi_account_nonce\",\"");
    hex_put_0x(&params, a->account, a->account_len);
    buf_puts(&params, "\"]");
    rpc_call_start(node__rpc(a->node), &a->call, "state_call", buf_str(&params), 0, NULL, NULL,
                   got_nonce);
    buf_done(&params);
}

/* Final blocks showed that the account has used nonces. */
static bool has_used_nonces(const struct node_ask *a)
{
    const struct node *n = a->node;
    struct buf key = {0}, text = {0};
    uint64_t reported = 0;
    wire_account_key(a->account, a->account_len, &key);
    hex_put_0x(&text, key.data, key.len);
    for (size_t i = 0; i < n->account_count; i++)
        if (!strcmp(n->accounts[i].key, buf_str(&text)))
            reported = n->accounts[i].reported;
    buf_done(&key);
    buf_done(&text);
    return reported && reported != UINT64_MAX;
}

/* A gateway may answer null for a state that it does not have. Where the runtime does not tell
 * either, the nonce of an account that has used some is not known; that of another one is 0. */
static void judge_absent(struct node_ask *a)
{
    if (!a->err.code || node__gone(&a->err))
        return;
    err_clear(&a->err);
    a->number = 0;
    if (has_used_nonces(a))
        err_set(&a->err, ERR_PROTOCOL,
                "%s: state_getStorage says that an account does not exist which has used nonces",
                node__url(a->node));
}

static void got_nonce(struct rpc_call *call)
{
    struct node_ask *a = of_call(call);
    bool first = !strcmp(call->method, "state_getStorage");
    if (!a->err.code && !wire_account(call->result, NULL, &a->number, NULL))
        bad_answer(a);
    if (first)
        a->absent = !a->err.code && jv_is(call->result, JV_NULL);
    if (first && (call->refused == RPC_ERROR_METHOD || is_no_answer(a) || a->absent) &&
        a->node->phase == NODE_READY) {
        ask_nonce_of_runtime(a);
        return;
    }
    if (a->absent)
        judge_absent(a);
    if (a->err.code && no_endpoint_answers(a, LACK_STATE))
        log_warn("node.nonce_untold", "text=\"%s\"", a->err.text);
    a->cb(a);
}

void node_ask_nonce(struct node *n, struct node_ask *a, const uint8_t *account_id, size_t len,
                    void (*cb)(struct node_ask *a))
{
    struct buf key = {0}, params = {0};
    wire_account_key(account_id, len, &key);
    buf_puts(&params, "[\"");
    hex_put_0x(&params, key.data, key.len);
    buf_puts(&params, "\"]");
    ask(n, a, "state_getStorage", buf_str(&params), got_nonce, cb);
    memcpy(a->account, account_id, len);
    a->account_len = len;
    buf_done(&key);
    buf_done(&params);
}

static void got_hash(struct rpc_call *call)
{
    struct node_ask *a = CONTAINER_OF(call, struct node_ask, call);
    if (hash_again(node__rpc(a->node), call, a->number, &a->node->no_block_hash, got_hash))
        return;
    of_call(call);
    if (!a->err.code && !jv_is(call->result, JV_NULL)) {
        a->found = wire_hash(call->result, a->hash);
        if (!a->found)
            bad_answer(a);
    }
    a->cb(a);
}

void node_ask_hash(struct node *n, struct node_ask *a, uint64_t number,
                   void (*cb)(struct node_ask *a))
{
    PRE(cb);
    *a = (struct node_ask){.node = n, .number = number, .cb = cb};
    if (n->phase == NODE_READY)
        hash_start(node__rpc(n), &a->call, number, n->no_block_hash, got_hash);
    else
        fail_later(n, a, got_hash);
}

/* Append the hashes of a list of extrinsics, and report the signed ones as if in a block of this
 * height. */
static bool read_list(struct node_ask *a, const struct jv *list, uint64_t number)
{
    PRE(a->hashes);
    const struct node_info *info = node_info(a->node);
    struct buf bytes = {0};
    size_t start = a->hashes->len;
    bool good = jv_is(list, JV_ARRAY);
    for (const struct jv *item = jv_first(list); item; item = jv_next(list, item)) {
        struct node_included x;
        uint8_t hash[32];
        buf_clear(&bytes);
        good = good && wire_bytes(item, &bytes);
        hash_blake2b_256(bytes.data, bytes.len, hash);
        buf_put(a->hashes, hash, sizeof(hash));
        if (good && a->each && info &&
            node__included(info->metadata, bytes.data, bytes.len, number, &x) && x.signer_len)
            a->each(a, &x);
    }
    buf_done(&bytes);
    if (!good) {
        bad_answer(a);
        a->hashes->len = start;
    }
    return good;
}

/* Extrinsics of a pool are read as if they were in the next block. */
static void got_pending(struct rpc_call *call)
{
    struct node_ask *a = of_call(call);
    a->found = !a->err.code && read_list(a, call->result, a->node->info.best_number + 1);
    a->untold = no_endpoint_answers(a, LACK_POOL);
    if (a->untold)
        log_warn("node.pool_untold", "text=\"%s\"", a->err.text);
    a->cb(a);
}

void node_ask_pending(struct node *n, struct node_ask *a, struct buf *ret_hashes,
                      void (*each)(struct node_ask *a, const struct node_included *x),
                      void (*cb)(struct node_ask *a))
{
    PRE(ret_hashes);
    ask(n, a, "author_pendingExtrinsics", "[]", got_pending,
        cb); /* cb fires from the loop, after the lines below */
    a->hashes = ret_hashes;
    a->each = each;
}

/* ---- fees ---- */

/* Of RuntimeDispatchInfo the fee comes last, behind a weight whose form differs. */
static void got_fee(struct rpc_call *call)
{
    struct node_ask *a = of_call(call);
    struct buf info = {0};
    if (!a->err.code && wire_bytes(call->result, &info) && info.len > sizeof(a->fee)) {
        struct scale_in in = scale_in_of(info.data + info.len - sizeof(a->fee), sizeof(a->fee));
        a->fee = scale_get_u128(&in);
        a->found = true;
    } else if (!a->err.code) {
        bad_answer(a);
    }
    buf_done(&info);
    a->cb(a);
}

void node_ask_fee(struct node *n, struct node_ask *a, const uint8_t *call, size_t len,
                  size_t extrinsic_len, void (*cb)(struct node_ask *a))
{
    struct buf params = {0}, args = {0};
    buf_put(&args, call, len);
    scale_put_u32(&args, (uint32_t)extrinsic_len);
    buf_puts(&params, "[\"TransactionPaymentCallApi_query_call_info\",\"");
    hex_put_0x(&params, args.data, args.len);
    buf_puts(&params, "\"]");
    ask(n, a, "state_call", buf_str(&params), got_fee, cb);
    buf_done(&params);
    buf_done(&args);
}

/* ---- the newest blocks ---- */

static void got_above(struct rpc_call *call);

/* From a header that does not say everything its hash is not known; the block above names it. */
static void set_head(struct node_ask *a, const struct wire_header *h)
{
    struct node_head head = h->head;
    if (!h->complete)
        memcpy(head.hash, a->head.parent, sizeof(head.hash));
    a->head = head;
}

/* True: there is another block to read, and its call was started. */
static bool read_block(struct node_ask *a, const struct jv *block)
{
    struct wire_header h;
    if (!wire_header(jv_get(block, "header"), &h)) {
        bad_answer(a);
        return false;
    }
    if (h.head.number < a->lowest)
        return false;
    set_head(a, &h);
    if (!read_list(a, jv_get(block, "extrinsics"), h.head.number) || h.head.number == a->lowest ||
        (a->has && a->has(a, h.head.parent)))
        return false;
    char text[HASH_TEXT], params[HASH_TEXT + 8];
    wire_hash_text(h.head.parent, text);
    snprintf(params, sizeof(params), "[\"%s\"]", text);
    rpc_call_start(node__rpc(a->node), &a->call, "chain_getBlock", params, 0, NULL, NULL,
                   got_above);
    return true;
}

static void got_above(struct rpc_call *call)
{
    struct node_ask *a = of_call(call);
    if (!a->err.code && a->node->phase != NODE_READY)
        err_set(&a->err, ERR_NET, "no node is ready");
    if (!a->err.code && read_block(a, jv_get(call->result, "block")))
        return;
    a->found = !a->err.code;
    a->cb(a);
}

void node_ask_above(struct node *n, struct node_ask *a, uint64_t number, struct buf *ret_hashes,
                    void (*each)(struct node_ask *a, const struct node_included *x),
                    void (*cb)(struct node_ask *a))
{
    PRE(ret_hashes);
    ask(n, a, "chain_getBlock", "[]", got_above,
        cb); /* cb fires from the loop, after the lines below */
    a->hashes = ret_hashes;
    a->each = each;
    a->lowest = number + 1;
}
