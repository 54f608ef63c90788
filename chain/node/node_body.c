/* The body of one height: its hash, its header and extrinsics, and which of them the owner wants.
 *
 * The runtime in the state of its parent wrote the extrinsics and events of block h (an upgrade in
 * h applies from h + 1), so that runtime's metadata decodes them. The node asks for the version
 * only when it matters: when an extrinsic is wanted, or does not decode with the current
 * metadata, or when the owner waits for the end of a former runtime. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/codec/extrinsic.h"
#include "chain/codec/hash.h"
#include "chain/codec/trie.h"
#include "node_internal.h"

enum { EXTRINSICS_MAX = 1 << 20 };

bool node__included(const struct metadata *md, const uint8_t *bytes, size_t len, uint64_t number,
                    struct node_included *ret)
{
    struct extrinsic_view view = {0};
    bool decoded = extrinsic_decode(md, bytes, len, &view, NULL) == 0;
    *ret = (struct node_included){
        .tx = {.bytes_len = len, .era_birth = -1, .era_death = -1, .own_signer = true}};
    hash_blake2b_256(bytes, len, ret->tx.hash);
    if (!decoded)
        return false;
    ret->is_signed = view.is_signed;
    ret->signer_len = view.is_signed ? view.signer_len : 0;
    memcpy(ret->signer, view.signer, ret->signer_len);
    ret->tx.nonce = view.nonce;
    ret->tx.tip = view.tip;
    ret->tx.bytes = view.call_len ? bytes : NULL;
    ret->call = view.call;
    ret->tx.call_len = view.call_len;
    if (view.is_signed && view.era.period) {
        ret->tx.era_birth = (int64_t)era_birth(view.era, number);
        ret->tx.era_death = (int64_t)era_death(view.era, number);
    }
    return true;
}

/* Collects the wanted extrinsics. False: one does not decode with this metadata. */
static bool scan(struct slot *s, const struct metadata *md)
{
    struct node *n = s->node;
    uint8_t set[2];
    bool all = true, timed = metadata_find_call(md, "Timestamp", "set", set);
    s->included_count = 0;
    s->time_ms = -1;
    for (uint32_t i = 0; i < s->extrinsic_count; i++) {
        struct node_included in;
        bool decoded = node__included(md, s->bytes.data + s->extrinsics[i].at, s->extrinsics[i].len,
                                      s->number, &in);
        in.tx.index = i;
        all &= decoded;
        if (decoded && timed && s->time_ms < 0 && !in.is_signed)
            s->time_ms = extrinsic_time(in.call, in.tx.call_len, set);
        enum node_want want = n->config.wants ? n->config.wants(n->config.arg, &in) : NODE_WANT_NOT;
        if (want == NODE_WANT_NOT)
            continue;
        s->unverified[s->included_count] = want == NODE_WANT_VERIFIED;
        s->included[s->included_count++] = in;
    }
    return all;
}

static void got_runtime(struct runtime_fetch *f)
{
    struct slot *s = CONTAINER_OF(f, struct slot, fetch);
    struct err err = f->err;
    PRE(s->state == SLOT_RUNTIME_WAIT);
    s->runtime = f->runtime;
    if (s->abandoned) {
        slot_again(s);
        return;
    }
    bool gone = f->pruned || slot_gave_up(s, &f->call);
    if (!s->runtime && !gone) {
        slot_failed(s, &err);
        return;
    }
    if (!s->runtime && ++s->attempts < NODE_ATTEMPTS) {
        slot_again(s);
        return;
    }
    if (!s->runtime) { /* pruned: decode with the current metadata; the events are gone */
        s->state_pruned = true;
        s->runtime = s->node->runtime;
        s->runtime->refs++;
    }
    scan(s, s->runtime->metadata);
    slot_signatures(s);
}

/* Block 0 has no parent and no extrinsics. */
static void block_read(struct slot *s)
{
    const struct node_config *config = &s->node->config;
    bool decoded = scan(s, s->node->runtime->metadata);
    bool wanted =
        s->included_count || (config->wants_runtime && config->wants_runtime(config->arg));
    if (s->number == 0 || (decoded && !wanted)) {
        slot_nonces(s);
        return;
    }
    s->state = SLOT_RUNTIME_WAIT;
    runtime_fetch_start(s->node, &s->fetch, s->head.parent, got_runtime);
}

static bool read_extrinsics(struct slot *s, const struct jv *list)
{
    PRE(!s->extrinsics && !s->included);
    if (!jv_is(list, JV_ARRAY) || list->count > EXTRINSICS_MAX)
        return false;
    struct span *span = s->extrinsics = xcalloc(list->count + 1u, sizeof(*s->extrinsics));
    s->included = xcalloc(list->count + 1u, sizeof(*s->included));
    s->unverified = xcalloc(list->count + 1u, sizeof(*s->unverified));
    s->extrinsic_count = list->count;
    for (const struct jv *item = jv_first(list); item; item = jv_next(list, item)) {
        size_t at = s->bytes.len;
        if (!wire_bytes(item, &s->bytes))
            return false;
        *span++ = (struct span){at, s->bytes.len - at};
    }
    return true;
}

/* The hash of block 0 is not computed: chopsticks invents one, and the handshake has checked it. */
static bool hash_fits(const struct slot *s, const struct wire_header *h)
{
    return s->number == 0 || !s->node->hash_computable ||
           (h->complete && memcmp(h->head.hash, s->head.hash, 32) == 0);
}

/* Does the header commit to these extrinsics, in this order, and to no others? The layout of its
 * trie depends on the runtime; no list of extrinsics has the root of another one in either. */
static bool body_fits(const struct slot *s, const struct wire_header *h)
{
    if (s->number == 0 || !s->node->verify_blocks)
        return true;
    uint8_t root[32];
    struct trie_item *items = xcalloc(s->extrinsic_count + 1u, sizeof(*items));
    for (uint32_t i = 0; i < s->extrinsic_count; i++)
        items[i] = (struct trie_item){s->bytes.data + s->extrinsics[i].at, s->extrinsics[i].len};
    bool fits = false;
    for (unsigned i = 0; i < 2 && !fits; i++) {
        enum trie_layout layout = (i == 1) != s->node->roots_v1 ? TRIE_V1 : TRIE_V0;
        trie_ordered_root(layout, items, s->extrinsic_count, root);
        fits = memcmp(root, h->extrinsics_root, 32) == 0;
        if (fits)
            s->node->roots_v1 = layout == TRIE_V1; /* begin with it at the next block */
    }
    free(items);
    return fits;
}

static void got_block(struct rpc_call *call)
{
    struct slot *s = CONTAINER_OF(call, struct slot, call);
    struct wire_header h;
    PRE(s->state == SLOT_BLOCK_WAIT);
    if (slot_lacks_body(s) || !slot_going_on(s))
        return;
    const struct jv *block = jv_get(call->result, "block");
    if (!wire_header(jv_get(block, "header"), &h))
        slot_failed_protocol(s, "chain_getBlock gave no block");
    else if (h.head.number != s->number)
        slot_failed_protocol(s, "chain_getBlock gave another height");
    else if (!hash_fits(s, &h))
        slot_failed_protocol(s, "its header has another hash than was asked for");
    else if (!read_extrinsics(s, jv_get(block, "extrinsics")))
        slot_failed_protocol(s, "its extrinsics are not hexadecimal");
    else if (!body_fits(s, &h))
        slot_failed_protocol(s, "its extrinsics do not have the extrinsicsRoot of its header");
    else {
        memcpy(s->head.parent, h.head.parent, 32);
        block_read(s);
    }
}

static void ask_block(struct slot *s)
{
    char text[HASH_TEXT], params[HASH_TEXT + 8];
    wire_hash_text(s->head.hash, text);
    snprintf(params, sizeof(params), "[\"%s\"]", text);
    s->state = SLOT_BLOCK_WAIT;
    rpc_call_start(node__rpc(s->node), &s->call, "chain_getBlock", params, 0, NULL, NULL,
                   got_block);
}

static void got_hash(struct rpc_call *call)
{
    struct slot *s = CONTAINER_OF(call, struct slot, call);
    PRE(s->state == SLOT_HASH_WAIT);
    if (hash_again(node__rpc(s->node), call, s->number, &s->node->no_block_hash, got_hash) ||
        slot_lacks_body(s) || !slot_going_on(s))
        return;
    if (wire_hash(call->result, s->head.hash))
        ask_block(s);
    else
        slot_failed_protocol(s, "chain_getBlockHash gave no hash");
}

void slot_body(struct slot *s)
{
    PRE(s->state == SLOT_IDLE);
    struct node *n = s->node;
    if (!s->begun_at)
        s->begun_at = loop_now_ms(n->loop);
    s->head.number = s->number;
    /* The endpoint has told its hash. One that does not lead to a block is asked for. */
    if (s->number == n->info.finalized_number && (s->attempts == 0 || n->no_block_hash)) {
        memcpy(s->head.hash, n->info.finalized_hash, 32);
        ask_block(s);
        return;
    }
    s->state = SLOT_HASH_WAIT;
    hash_start(node__rpc(n), &s->call, s->number, n->no_block_hash, got_hash);
}
