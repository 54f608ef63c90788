/* The nonces and free balances of the watched accounts at a finalized block: all in one
 * state_queryStorageAt, or, if the node does not have it, with one state_getStorage after
 * another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/table.h"
#include "node_internal.h"

size_t node_watch_account(struct node *n, const uint8_t *account_id, size_t len)
{
    PRE(len == 32 || len == 20);
    struct buf key = {0}, text = {0};
    wire_account_key(account_id, len, &key);
    hex_put_0x(&text, key.data, key.len);
    n->accounts = xrealloc(n->accounts, (n->account_count + 1) * sizeof(*n->accounts));
    n->accounts[n->account_count] =
        (struct account){.key = xstrdup(buf_str(&text)), .reported = UINT64_MAX};
    buf_done(&key);
    buf_done(&text);
    return n->account_count++;
}

static bool wanted(const struct node *n, size_t account)
{
    return !n->config.wants_account || n->config.wants_account(n->config.arg, account);
}

static void nonces_begin(struct slot *s)
{
    const struct node *n = s->node;
    PRE(n->runtime && !s->nonces);
    s->nonce_count = n->account_count;
    s->nonces = xcalloc(s->nonce_count + 1, sizeof(*s->nonces));
    s->balances = xcalloc(s->nonce_count + 1, sizeof(*s->balances));
    s->asked = xcalloc(s->nonce_count + 1, sizeof(*s->asked));
    for (size_t i = 0; i < s->nonce_count; i++) {
        bool asked = wanted(n, i);
        s->nonces[i] = asked ? 0 : UINT64_MAX;
        s->balances[i].known = asked && metadata_account_has_free(n->runtime->metadata);
        if (asked)
            s->asked[s->asked_count++] = i;
    }
}

/* The endpoint does not have the state, or does not answer this to us. */
static bool unanswerable(const struct slot *s)
{
    const struct rpc_call *call = &s->call;
    return slot_gave_up(s, call) || call->refused == RPC_ERROR_BLOCK ||
           call->refused == RPC_ERROR_METHOD || call->refused == RPC_ERROR_SIZE;
}

/* A node behind a balancer may not have heard of the block that another one has told. */
static bool comes(struct slot *s)
{
    return !s->unread && (later_goes_on(s, &s->call.err) || later_wait(s));
}

void slot_nonces_unknown(struct slot *s)
{
    if (!s->nonces)
        nonces_begin(s);
    for (size_t i = 0; i < s->nonce_count; i++)
        s->nonces[i] = UINT64_MAX;
    memset(s->balances, 0, s->nonce_count * sizeof(*s->balances));
    slot_finished(s);
}

/* Where errors of no known meaning are the reason, another endpoint may answer. */
static void nonces_lacked(struct slot *s, const struct err *reason)
{
    struct err why = *reason;
    enum slot_state state = s->state;
    s->state = SLOT_REACH_WAIT; /* cleared if the endpoint is left */
    if (s->given_up && lack_leave(s->node, LACK_STATE, s->number, &why))
        return;
    s->state = state;
    slot_nonces_unknown(s);
}

static void nonces_refused(struct slot *s)
{
    if (!comes(s))
        nonces_lacked(s, &s->call.err);
}

static void nonces_bad(struct slot *s, const char *what)
{
    struct err err;
    err_set(&err, ERR_PROTOCOL, "%s: nonces at block %llu: %s", node__url(s->node),
            (unsigned long long)s->number, what);
    if (later_goes_on(s, &err))
        return;
    if (s->given_up)
        nonces_lacked(s, &err);
    else
        slot_failed(s, &err);
}

/* Reads with the metadata of the current runtime, which may differ from that of an old block: of an
 * AccountInfo of another size only the nonce is read. */
static bool read_account(struct slot *s, size_t at, const struct jv *value)
{
    return wire_account(value, s->node->runtime->metadata, &s->nonces[at], &s->balances[at]);
}

/* ---- one by one ---- */

static void ask_one(struct slot *s);

static void got_one(struct rpc_call *call)
{
    struct slot *s = CONTAINER_OF(call, struct slot, call);
    PRE(s->state == SLOT_NONCE_WAIT && s->nonce_next < s->asked_count);
    if (!s->abandoned && unanswerable(s)) {
        nonces_refused(s);
        return;
    }
    if (!slot_going_on(s))
        return;
    if (!read_account(s, s->asked[s->nonce_next], call->result)) {
        nonces_bad(s, "an account is not readable");
        return;
    }
    s->nonce_next++;
    ask_one(s);
}

static void ask_one(struct slot *s)
{
    char hash[HASH_TEXT];
    if (s->nonce_next == s->asked_count) {
        slot_finished(s);
        return;
    }
    wire_hash_text(s->head.hash, hash);
    char *params =
        xasprintf("[\"%s\",\"%s\"]", s->node->accounts[s->asked[s->nonce_next]].key, hash);
    s->state = SLOT_NONCE_WAIT;
    rpc_call_start(node__rpc(s->node), &s->call, "state_getStorage", params, 0, NULL, NULL,
                   got_one);
    free(params);
}

/* ---- all at once ---- */

enum { KEY_TEXT = 2 + 2 * 96 }; /* longer than any key that wire_account_key makes */

/* An account of the question, by its key. */
struct named {
    const char *key;
    size_t account;
    UT_hash_handle hh;
};

/* Is of the changes the one at `i` the account that was asked for there? Nodes answer in the order
 * of the question. */
static bool in_order(const struct slot *s, const struct jv *key, size_t i)
{
    return jv_equals(key, s->node->accounts[s->asked[i]].key);
}

static struct named *names_of(const struct slot *s, struct named *rows)
{
    struct named *table = NULL;
    for (size_t i = 0; i < s->asked_count; i++) {
        const char *key = s->node->accounts[s->asked[i]].key;
        rows[i] = (struct named){.key = key, .account = s->asked[i]};
        HASH_ADD_KEYPTR(hh, table, key, strlen(key), &rows[i]);
    }
    return table;
}

static const struct named *named(const struct named *table, const struct jv *key)
{
    char text[KEY_TEXT];
    struct named *found = NULL;
    size_t len = jv_copy(key, text, sizeof(text));
    if (len > 0 && len < sizeof(text))
        HASH_FIND(hh, table, text, len, found);
    return found;
}

/* In any order. Each key is looked up, so that the time is that of reading the answer. */
static bool read_named(struct slot *s, const struct jv *changes)
{
    struct named *rows = xcalloc(s->asked_count, sizeof(*rows)), *table = names_of(s, rows);
    bool good = true;
    for (const struct jv *x = jv_first(changes); x && good; x = jv_next(changes, x)) {
        const struct named *account = named(table, jv_at(x, 0));
        good = account && read_account(s, account->account, jv_at(x, 1));
    }
    HASH_CLEAR(hh, table);
    free(rows);
    return good;
}

/* [{"block":"0x..","changes":[["0xkey","0xvalue"|null],..]}]; a missing key is a missing
 * account. */
static bool read_changes(struct slot *s, const struct jv *result)
{
    const struct jv *changes = jv_get(jv_at(result, 0), "changes"), *change;
    size_t i = 0;
    if (!jv_is(changes, JV_ARRAY) || changes->count > s->asked_count)
        return false;
    for (change = jv_first(changes); change; change = jv_next(changes, change), i++) {
        if (!in_order(s, jv_at(change, 0), i))
            return read_named(s, changes);
        if (!read_account(s, s->asked[i], jv_at(change, 1)))
            return false;
    }
    return true;
}

static void got_all(struct rpc_call *call)
{
    struct slot *s = CONTAINER_OF(call, struct slot, call);
    PRE(s->state == SLOT_NONCES_WAIT);
    if (!s->abandoned && (call->refused == RPC_ERROR_METHOD || call->refused == RPC_ERROR_SIZE)) {
        s->node->no_query_storage = true;
        ask_one(s);
        return;
    }
    if (!s->abandoned && unanswerable(s)) {
        nonces_refused(s);
        return;
    }
    if (!slot_going_on(s))
        return;
    if (read_changes(s, call->result))
        slot_finished(s);
    else
        nonces_bad(s, "state_queryStorageAt gave something else");
}

static void ask_all(struct slot *s)
{
    PRE(s->asked_count > 0);
    struct buf params = {0};
    char hash[HASH_TEXT];
    wire_hash_text(s->head.hash, hash);
    for (size_t i = 0; i < s->asked_count; i++)
        buf_printf(&params, "%s\"%s\"", i ? "," : "[[", s->node->accounts[s->asked[i]].key);
    buf_printf(&params, "],\"%s\"]", hash);
    s->state = SLOT_NONCES_WAIT;
    rpc_call_start(node__rpc(s->node), &s->call, "state_queryStorageAt", buf_str(&params), 0, NULL,
                   NULL, got_all);
    buf_done(&params);
}

void slot_nonces(struct slot *s)
{
    nonces_begin(s);
    if (s->asked_count == 0)
        slot_finished(s);
    else if (s->node->no_query_storage)
        ask_one(s);
    else
        ask_all(s);
}
