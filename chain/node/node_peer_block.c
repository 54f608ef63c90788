/* What another endpoint says of the block that waits to be reported (node_confirm.c):
 *
 *   final head -> its header -> hash of the height -> nonces -> [events]
 *
 * The endpoint in use begins with the hash of the height. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/codec/events.h"
#include "chain/codec/hash.h"
#include "node_internal.h"

void peer_ask_hash(struct peer *p)
{
    p->nonce_next = 0;
    peer_ask_height(p, PEER_HASH_WAIT);
}
/* The hash of the events is enough, where the endpoint tells it and it is blake2b-256 of them. */
void peer_ask_events(struct peer *p)
{
    const struct node *n = p->node;
    bool hash = n->hash_computable && !p->no_storage_hash;
    char text[HASH_TEXT], params[256];
    wire_hash_text(n->confirm.hash, text);
    snprintf(params, sizeof(params), "[\"%s\",\"%s\"]", events_key, text);
    peer_call(p, PEER_EVENTS_WAIT, hash ? "state_getStorageHash" : "state_getStorage", params);
}

static void ask_next(struct peer *p)
{
    const struct confirm *c = &p->node->confirm;
    char hash[HASH_TEXT];
    if (p->nonce_next == c->nonce_count && c->has_events && !peer_in_use(p)) {
        peer_ask_events(p);
        return;
    }
    if (p->nonce_next == c->nonce_count) {
        peer_says(p, "says the same");
        confirm_opinion(p, OPINION_SAME);
        return;
    }
    wire_hash_text(c->hash, hash);
    char *params =
        xasprintf("[\"%s\",\"%s\"]", p->node->accounts[c->nonces[p->nonce_next].account].key, hash);
    peer_call(p, PEER_NONCE_WAIT, "state_getStorage", params);
    free(params);
}
void peer_got_final(struct peer *p, const struct rpc_call *call)
{
    uint8_t hash[32];
    char text[HASH_TEXT], params[HASH_TEXT + 8];
    if (!wire_hash(call->result, hash)) {
        peer_says(p, "chain_getFinalizedHead gave no hash");
        return;
    }
    wire_hash_text(hash, text);
    snprintf(params, sizeof(params), "[\"%s\"]", text);
    peer_call(p, PEER_HEADER_WAIT, "chain_getHeader", params);
}

void peer_got_header(struct peer *p, const struct rpc_call *call)
{
    struct wire_header h;
    if (!wire_header(call->result, &h))
        peer_says(p, "chain_getHeader gave no header");
    else if (h.head.number < p->node->confirm.number)
        peer_says(p, "has only %llu final blocks", (unsigned long long)h.head.number);
    else
        peer_ask_hash(p);
}

void peer_got_hash(struct peer *p, const struct rpc_call *call)
{
    uint8_t hash[32];
    char text[HASH_TEXT];
    if (!wire_hash(call->result, hash)) {
        peer_says(p, "does not know the height");
    } else if (memcmp(hash, p->node->confirm.hash, 32) != 0) {
        wire_hash_text(hash, text);
        peer_says(p, "says that the block is %s", text);
        confirm_opinion(p, OPINION_OTHER);
    } else {
        ask_next(p);
    }
}

void peer_got_nonce(struct peer *p, const struct rpc_call *call)
{
    const struct confirm *c = &p->node->confirm;
    PRE(p->nonce_next < c->nonce_count);
    const struct confirm_nonce *x = &c->nonces[p->nonce_next];
    uint64_t nonce;
    if (!wire_account(call->result, NULL, &nonce, NULL)) {
        peer_says(p, "gave an account that is not readable");
    } else if (nonce != x->nonce) {
        peer_says(p, "says that the nonce is %llu, not %llu", (unsigned long long)nonce,
                  (unsigned long long)x->nonce);
        confirm_opinion(p, OPINION_OTHER);
    } else {
        p->nonce_next++;
        ask_next(p);
    }
}

void peer_got_events(struct peer *p, const struct rpc_call *call)
{
    uint8_t hash[32];
    struct buf bytes = {0};
    bool null = jv_is(call->result, JV_NULL), whole = !strcmp(call->method, "state_getStorage");
    bool good = null || (whole ? wire_bytes(call->result, &bytes) : wire_hash(call->result, hash));
    if (good && (null || whole))
        hash_blake2b_256(bytes.data, bytes.len, hash);
    buf_done(&bytes);
    if (!good) {
        peer_says(p, "gave events that are not readable");
    } else if (memcmp(hash, p->node->confirm.events, 32) != 0) {
        peer_says(p, "says that the events of the block are others");
        confirm_opinion(p, OPINION_OTHER);
    } else {
        peer_says(p, "says the same");
        confirm_opinion(p, OPINION_SAME);
    }
}
