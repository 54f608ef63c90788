/* Finalized blocks: every height once and in order, from that of node_follow on. A small pipeline
 * of slots reads ahead, one height each (slot of height h: h % NODE_PIPELINE). Blocks that are done
 * are reported in order.
 *
 *   IDLE -> HASH_WAIT -> BLOCK_WAIT -> [RUNTIME_WAIT] -> [BIRTH_WAIT] -> [EVENTS_WAIT]
 *    ^ ^        |            |               |               |               |
 *    | |        |            |               |               |        [NONCES_WAIT] -> DONE
 *    | +--------+------------+---------------+---------------+-------- failed -+         |
 *    +-------------------------------------------------------------------------- reported -+
 *
 * Steps in brackets are taken only if they are needed. NONCE_WAIT, one account after another, takes
 * the place of NONCES_WAIT at nodes that cannot read several at once.
 *
 * The runtime in the state of its parent wrote the extrinsics and events of block h (an upgrade in
 * h applies from h + 1), so that runtime's metadata decodes them. The node asks for the version
 * only when it matters: when an extrinsic is wanted, or does not decode with the current
 * metadata. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "chain/codec/events.h"
#include "chain/codec/extrinsic.h"
#include "chain/codec/hash.h"
#include "chain/codec/trie.h"
#include "node_internal.h"

enum { EXTRINSICS_MAX = 1 << 20 };

static void slot_start(struct slot *s);
static void hand_out(struct node *n);

void blocks_init(struct node *n)
{
    for (size_t i = 0; i < NODE_PIPELINE; i++)
        n->slots[i].node = n;
}

static void slot_clear(struct slot *s)
{
    struct node *n = s->node;
    unsigned attempts = s->attempts;
    PRE(!list_linked(&s->call.bucket) && s->fetch.step == FETCH_IDLE);
    runtime_unref(s->runtime);
    buf_done(&s->bytes);
    free(s->extrinsics);
    free(s->included);
    free(s->unverified);
    free(s->nonces);
    free(s->balances);
    free(s->asked);
    *s = (struct slot){.node = n, .attempts = attempts};
}

void blocks_done(struct node *n)
{
    for (size_t i = 0; i < NODE_PIPELINE; i++)
        slot_clear(&n->slots[i]);
    for (size_t i = 0; i < n->account_count; i++) {
        free(n->accounts[i].key);
        free(n->accounts[i].contradicted);
    }
    free(n->accounts);
}

/* ---- failures ---- */

static void slot_again(struct slot *s)
{
    slot_clear(s);
    if (s->node->phase == NODE_READY)
        blocks_kick(s->node);
}

void slot_failed(struct slot *s, const struct err *err)
{
    PRE(s->state != SLOT_IDLE && err->code);
    struct node *n = s->node;
    struct err reason = *err;
    if (node__gone(&reason) || n->phase != NODE_READY) {
        slot_clear(s); /* node__ready kicks again */
        return;
    }
    log_debug("node.block", "url=%s number=%llu error=\"%s\"", node__url(n),
              (unsigned long long)s->number, reason.text);
    if (s->call.refused == RPC_ERROR_PACE || ++s->attempts < NODE_ATTEMPTS) {
        slot_again(s);
        return;
    }
    s->attempts = 0;
    slot_clear(s);
    node__fault(n, &reason);
}

void slot_failed_protocol(struct slot *s, const char *what)
{
    struct err err;
    err_set(&err, ERR_PROTOCOL, "%s: block %llu: %s", node__url(s->node),
            (unsigned long long)s->number, what);
    slot_failed(s, &err);
}

/* Every callback of a slot begins with this. */
bool slot_going_on(struct slot *s)
{
    PRE(s->state != SLOT_IDLE && s->state != SLOT_DONE);
    if (s->abandoned) {
        s->attempts = 0;
        slot_again(s);
        return false;
    }
    if (s->call.err.code) {
        slot_failed(s, &s->call.err);
        return false;
    }
    return true;
}

void slot_finished(struct slot *s)
{
    PRE(s->state != SLOT_IDLE && s->state != SLOT_DONE);
    s->state = SLOT_DONE;
    blocks_kick(s->node);
}

/* ---- what the endpoint lacks ---- */

/* The block is reported without its body. Its nonces may be there, if its hash is. */
static void slot_unread(struct slot *s)
{
    static const uint8_t none[32];
    s->unread = true;
    s->time_ms = -1;
    s->included_count = 0;
    if (memcmp(s->head.hash, none, 32) != 0)
        slot_nonces(s);
    else
        slot_nonces_unknown(s);
}

/* Nobody is known to have what this endpoint lacks, or the next one is asked. */
static void slot_decide(struct slot *s)
{
    struct node *n = s->node;
    struct err why = s->why;
    if (lack_leave(n, s->lack, s->number, &why))
        return; /* blocks_reset has cleared the slot */
    if (lack_wait(n, s->lack, s->number))
        return;
    if (s->lack == LACK_BODY)
        slot_unread(s);
    else
        slot_nonces(s); /* the results stay DISPATCH_NONE */
}

static void slot_lacks(struct slot *s, enum lack kind, const struct err *why)
{
    struct node *n = s->node;
    s->lack = kind;
    s->why = *why;
    s->state = SLOT_REACH_WAIT;
    if (kind == LACK_BODY && n->config.needs && !n->config.needs(n->config.arg, s->number))
        slot_unread(s);
    else if (!lack_search(n, kind, s->number, why) && s->state == SLOT_REACH_WAIT)
        slot_decide(s);
}

void blocks_reached(struct node *n)
{
    for (size_t i = 0; i < NODE_PIPELINE && n->phase == NODE_READY; i++) {
        struct slot *s = &n->slots[i];
        if (s->state == SLOT_REACH_WAIT && !lack_search(n, s->lack, s->number, &s->why) &&
            s->state == SLOT_REACH_WAIT)
            slot_decide(s);
    }
}

void blocks_reset(struct node *n)
{
    for (size_t i = 0; i < NODE_PIPELINE; i++)
        if (n->slots[i].state == SLOT_REACH_WAIT)
            slot_clear(&n->slots[i]);
}

/* The answer says that this endpoint does not have the block, or does not answer this question.
 * True: it is handled. */
static bool lacks_body(struct slot *s)
{
    const struct rpc_call *call = &s->call;
    bool refused = call->refused == RPC_ERROR_BLOCK || call->refused == RPC_ERROR_METHOD ||
                   call->refused == RPC_ERROR_SIZE;
    bool null = !call->err.code && jv_is(call->result, JV_NULL);
    if (s->abandoned || (!refused && !null))
        return false;
    if (++s->attempts < NODE_ATTEMPTS) { /* a balancer may have asked a node that lags */
        slot_again(s);
        return true;
    }
    struct err why;
    char of[40];
    snprintf(of, sizeof(of), " of block %llu", (unsigned long long)s->number);
    lack_refusal(call, node__url(s->node), of, &why);
    slot_lacks(s, LACK_BODY, &why);
    return true;
}

/* ---- events ---- */

static void ask_events(struct slot *s);

static void lacks_events(struct slot *s)
{
    struct err why;
    char of[60];
    snprintf(of, sizeof(of), " of the events of block %llu", (unsigned long long)s->number);
    if (s->call.err.code)
        lack_refusal(&s->call, node__url(s->node), of, &why);
    else
        err_set(&why, ERR_PROTOCOL, "%s: the state before block %llu is pruned", node__url(s->node),
                (unsigned long long)s->number);
    slot_lacks(s, LACK_STATE, &why);
}

static void got_events(struct rpc_call *call)
{
    struct slot *s = CONTAINER_OF(call, struct slot, call);
    struct err err;
    PRE(s->state == SLOT_EVENTS_WAIT);
    bool other_way = !strcmp(call->method, "state_queryStorageAt");
    if (!s->abandoned && call->refused == RPC_ERROR_METHOD && !other_way) {
        s->node->no_storage = true;
        ask_events(s);
        return;
    }
    if (!s->abandoned && call->refused != RPC_ERROR_NONE && call->refused != RPC_ERROR_OTHER &&
        call->refused != RPC_ERROR_PACE) {
        lacks_events(s);
        return;
    }
    if (!slot_going_on(s))
        return;
    struct buf bytes = {0};
    struct dispatch_result *results = xcalloc(s->extrinsic_count + 1u, sizeof(*results));
    const struct jv *changes = jv_get(jv_at(call->result, 0), "changes");
    const struct jv *value = other_way ? jv_at(jv_at(changes, 0), 1) : call->result;
    int rc = 0;
    if (!jv_is(value, JV_NULL) && !wire_bytes(value, &bytes))
        rc = err_set(&err, ERR_PROTOCOL, "the events are not hexadecimal");
    else if (bytes.len)
        rc = events_decode(s->runtime->metadata, bytes.data, bytes.len, results, s->extrinsic_count,
                           &err);
    for (size_t i = 0; !rc && i < s->included_count; i++)
        s->included[i].tx.result = results[s->included[i].tx.index];
    free(results);
    s->has_events = !rc;
    hash_blake2b_256(bytes.data, bytes.len, s->events);
    buf_done(&bytes);
    if (rc) {
        struct err named;
        err_set(&named, err.code, "%s: events of block %llu: %s", node__url(s->node),
                (unsigned long long)s->number, err.text);
        slot_failed(s, &named);
        return;
    }
    slot_nonces(s);
}

static void ask_events(struct slot *s)
{
    PRE(s->runtime && s->included_count > 0);
    char hash[HASH_TEXT], params[256];
    wire_hash_text(s->head.hash, hash);
    bool query = s->node->no_storage;
    snprintf(params, sizeof(params), query ? "[[\"%s\"],\"%s\"]" : "[\"%s\",\"%s\"]",
             wire_events_key, hash);
    s->state = SLOT_EVENTS_WAIT;
    rpc_call_start(node__rpc(s->node), &s->call,
                   query ? "state_queryStorageAt" : "state_getStorage", params, 0, NULL, NULL,
                   got_events);
}

/* ---- extrinsics ---- */

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

/* The inherent Timestamp.set carries a compact number of milliseconds. */
static int64_t time_of(const struct node_included *x, const uint8_t set[2])
{
    if (x->is_signed || x->tx.call_len < 3 || memcmp(x->call, set, 2))
        return -1;
    struct scale_in in = scale_in_of(x->call + 2, x->tx.call_len - 2);
    u128 ms = scale_get_compact(&in);
    return in.bad || ms > INT64_MAX ? -1 : (int64_t)ms;
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
        if (decoded && timed && s->time_ms < 0)
            s->time_ms = time_of(&in, set);
        enum node_want want = n->config.wants ? n->config.wants(n->config.arg, &in) : NODE_WANT_NOT;
        if (want == NODE_WANT_NOT)
            continue;
        s->unverified[s->included_count] = want == NODE_WANT_VERIFIED;
        s->included[s->included_count++] = in;
    }
    return all;
}

void slot_scanned(struct slot *s)
{
    if (s->included_count && s->state_pruned)
        lacks_events(s);
    else if (s->included_count)
        ask_events(s);
    else
        slot_nonces(s);
}

static void got_runtime(struct runtime_fetch *f)
{
    struct slot *s = CONTAINER_OF(f, struct slot, fetch);
    struct err err = f->err;
    PRE(s->state == SLOT_RUNTIME_WAIT);
    s->runtime = f->runtime;
    if (s->abandoned) {
        s->attempts = 0;
        slot_again(s);
        return;
    }
    if (!s->runtime && !f->pruned) {
        slot_failed(s, &err);
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
    bool decoded = scan(s, s->node->runtime->metadata);
    if (s->number == 0 || (decoded && !s->included_count)) {
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
    if (lacks_body(s) || !slot_going_on(s))
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
        lacks_body(s) || !slot_going_on(s))
        return;
    if (wire_hash(call->result, s->head.hash))
        ask_block(s);
    else
        slot_failed_protocol(s, "chain_getBlockHash gave no hash");
}

static void slot_start(struct slot *s)
{
    PRE(s->state == SLOT_IDLE);
    struct node *n = s->node;
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

/* ---- the pipeline ---- */

static struct slot *slot_of(struct node *n, uint64_t number)
{
    return &n->slots[number % NODE_PIPELINE];
}

static void restart(struct node *n)
{
    n->follow_restart = false;
    n->follow_next = n->follow_from;
    n->link_known = false;
    confirm_stop(n);
    for (size_t i = 0; i < NODE_PIPELINE; i++) {
        struct slot *s = &n->slots[i];
        s->attempts = 0;
        if (s->state == SLOT_IDLE || s->state == SLOT_DONE || s->state == SLOT_REACH_WAIT)
            slot_clear(s);
        else
            s->abandoned = true;
    }
}

void node_follow(struct node *n, uint64_t from_number)
{
    n->following = true;
    n->follow_from = from_number;
    n->follow_restart = true;
    if (n->handing_out)
        return; /* the block being reported stays until its callback returns */
    restart(n);
    if (n->phase == NODE_READY)
        blocks_kick(n);
}

void blocks_kick(struct node *n)
{
    if (!n->following || n->phase != NODE_READY || n->handing_out)
        return;
    hand_out(n);
    for (uint64_t h = n->follow_next;
         h < n->follow_next + NODE_PIPELINE && h <= n->info.finalized_number; h++) {
        struct slot *s = slot_of(n, h);
        if (n->phase != NODE_READY)
            return;
        if (s->state != SLOT_IDLE)
            continue;
        s->number = h;
        slot_start(s);
    }
}

/* Is the parent of this finalized block the finalized block before it? If not, the node contradicts
 * itself or another endpoint: the block is asked again, and the endpoint is left if that does not
 * help. */
static bool linked(struct node *n, struct slot *s)
{
    struct err err;
    char have[HASH_TEXT], want[HASH_TEXT];
    if (!n->link_known || s->unread || memcmp(n->link, s->head.parent, 32) == 0)
        return true;
    wire_hash_text(s->head.parent, have);
    wire_hash_text(n->link, want);
    log_warn("node.finality_disagrees", "url=%s number=%llu parent=%s reported=%s", node__url(n),
             (unsigned long long)s->number, have, want);
    err_set(&err, ERR_PROTOCOL,
            "%s: the parent of finalized block %llu is %s, reported before as finalized was %s",
            node__url(n), (unsigned long long)s->number, have, want);
    n->handing_out = true; /* slot_failed must not report blocks */
    slot_failed(s, &err);
    n->handing_out = false;
    return false;
}

/* The first of a row of them at a higher level than the others. */
static void tell_unread(struct node *n, const struct slot *s)
{
    bool first = s->number != n->unread_last + 1;
    log_line(first ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG, "node.block_unread",
             "number=%llu text=\"%s\"", (unsigned long long)s->number, s->why.text);
    n->unread_last = s->number;
}

static void reported(struct account *a, uint64_t nonce)
{
    a->reported = nonce;
    free(a->contradicted);
    a->contradicted = NULL;
}

static void hand_out(struct node *n)
{
    PRE(!n->handing_out);
    for (;;) {
        struct slot *s = slot_of(n, n->follow_next);
        if (n->phase != NODE_READY || s->state != SLOT_DONE || s->number != n->follow_next ||
            !linked(n, s))
            return;
        struct node_block block = {
            .head = s->head,
            .unread = s->unread,
            .time_ms = s->time_ms,
            .extrinsic_count = s->extrinsic_count,
            .included = s->included,
            .included_count = s->included_count,
            .nonces = s->nonces,
            .balances = s->balances,
            .nonce_count = s->nonce_count,
        };
        if (!confirm_passed(n, s, &block))
            return;
        if (s->unread)
            tell_unread(n, s);
        for (size_t i = 0; i < block.nonce_count; i++)
            if (block.nonces[i] != UINT64_MAX)
                reported(&n->accounts[i], block.nonces[i]);
        n->follow_next++;
        if (s->number > n->heard.base)
            heard_base(&n->heard, s->number);
        n->link_known = !s->unread;
        memcpy(n->link, s->head.hash, 32);
        n->handing_out = true;
        if (n->config.on_finalized)
            n->config.on_finalized(n->config.arg, &block);
        n->handing_out = false;
        s->attempts = 0;
        slot_clear(s);
        if (n->follow_restart)
            restart(n);
    }
}
