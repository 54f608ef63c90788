#include "audit/audit_chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit_ask.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/events.h"
#include "chain/codec/extrinsic.h"
#include "chain/codec/hash.h"
#include "chain/codec/metadata.h"

/* At once: as many questions as an endpoint answers without complaint. */
enum { AT_ONCE = 16 };

struct runtime {
    uint32_t spec_version;
    struct metadata *metadata;
};

struct audit_chain {
    struct asker asker;
    struct runtime *runtimes;
    size_t runtime_count;
    /* The answer to runtime_after that came last. */
    uint8_t after[32];
    const struct metadata *of_after; /* NULL: none yet */
};

/* ---- life ---- */

struct audit_chain *audit_chain_open(struct loop *l, const struct audit_chain_config *config,
                                     struct err *ret_err)
{
    struct audit_chain *c = xcalloc(1, sizeof(*c));
    asker_open(&c->asker, l, config);
    if (c->asker.open)
        return c;
    *ret_err = c->asker.err;
    audit_chain_close(c);
    return NULL;
}

void audit_chain_close(struct audit_chain *c)
{
    if (!c)
        return;
    asker_close(&c->asker);
    for (size_t i = 0; i < c->runtime_count; i++)
        metadata_free(c->runtimes[i].metadata);
    free(c->runtimes);
    free(c);
}

const char *audit_chain_url(const struct audit_chain *c)
{
    return c->asker.shown;
}

/* ---- heads and hashes ---- */

static int hash_at(struct audit_chain *c, uint64_t number, uint8_t ret[32], struct err *err)
{
    char params[32];
    snprintf(params, sizeof(params), "[%llu]", (unsigned long long)number);
    return asker_ask(&c->asker, "chain_getBlockHash", params, asker_take_hash, ret, err);
}

int audit_chain_head(struct audit_chain *c, uint8_t ret_genesis[32], uint64_t *ret_last,
                     struct err *err)
{
    uint8_t head[32];
    char params[80];
    int rc = hash_at(c, 0, ret_genesis, err);
    if (rc == 0)
        rc = asker_ask(&c->asker, "chain_getFinalizedHead", "[]", asker_take_hash, head, err);
    snprintf(params, sizeof(params), "[\"%s\"]", rc ? "" : hex_log(head, 32));
    return rc ? rc
              : asker_ask(&c->asker, "chain_getHeader", params, asker_take_number, ret_last, err);
}

/* ---- runtimes ---- */

static int metadata_at(struct audit_chain *c, uint32_t spec, const uint8_t hash[32],
                       struct err *err)
{
    struct buf bytes = {0};
    struct metadata *md = NULL;
    char params[80];
    snprintf(params, sizeof(params), "[\"%s\"]", hex_log(hash, 32));
    int rc = asker_ask(&c->asker, "state_getMetadata", params, asker_take_bytes, &bytes, err);
    if (rc == 0)
        rc = metadata_parse(bytes.data, bytes.len, &md, err);
    buf_done(&bytes);
    if (rc)
        return rc;
    c->runtimes = xrealloc(c->runtimes, (c->runtime_count + 1) * sizeof(*c->runtimes));
    c->runtimes[c->runtime_count++] = (struct runtime){spec, md};
    return 0;
}

/* The metadata of the runtime in the state of this block. */
static int runtime_after(struct audit_chain *c, const uint8_t hash[32], const struct metadata **ret,
                         struct err *err)
{
    uint32_t spec;
    char params[80];
    if (c->of_after && !memcmp(c->after, hash, 32)) {
        *ret = c->of_after;
        return 0;
    }
    snprintf(params, sizeof(params), "[\"%s\"]", hex_log(hash, 32));
    if (asker_ask(&c->asker, "state_getRuntimeVersion", params, asker_take_spec, &spec, err))
        return err->code;
    for (size_t i = 0; i <= c->runtime_count; i++) {
        if (i == c->runtime_count && metadata_at(c, spec, hash, err))
            return err->code;
        if (c->runtimes[i].spec_version != spec)
            continue;
        *ret = c->of_after = c->runtimes[i].metadata;
        memcpy(c->after, hash, 32);
        break;
    }
    return 0;
}

/* ---- blocks ---- */

struct span {
    size_t at, len;
};

struct body {
    uint8_t hash[32], parent[32];
    struct buf bytes; /* of all extrinsics */
    struct span *list;
    size_t count;
    struct buf events;
    bool wanted; /* it holds extrinsics of the accounts */
};

static const char *take_block(void *arg, const struct jv *result)
{
    struct body *b = arg;
    const struct jv *block = jv_get(result, "block");
    const struct jv *list = jv_get(block, "extrinsics");
    if (!jv_is(list, JV_ARRAY) ||
        !jv_hex_fixed(jv_get(jv_get(block, "header"), "parentHash"), b->parent, 32))
        return "the answer is no block";
    b->list = xcalloc(list->count + 1u, sizeof(*b->list));
    for (const struct jv *i = jv_first(list); i; i = jv_next(list, i)) {
        size_t at = b->bytes.len;
        if (!jv_hex(i, &b->bytes))
            return "an extrinsic is not hexadecimal";
        b->list[b->count++] = (struct span){at, b->bytes.len - at};
    }
    return NULL;
}

static void bodies_free(struct body *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_done(&list[i].bytes);
        buf_done(&list[i].events);
        free(list[i].list);
    }
    free(list);
}

/* The same question about each block of a chunk, AT_ONCE at a time. */
static int each_block(struct audit_chain *c, struct body *bodies, size_t count, uint64_t from,
                      void (*form)(struct asker_question *q, struct body *b, uint64_t number),
                      struct err *err)
{
    struct asker_question list[AT_ONCE];
    size_t used = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        list[used] = (struct asker_question){0};
        form(&list[used], &bodies[i], from + i);
        used += list[used].method != NULL;
        if (used == AT_ONCE || i + 1 == count) {
            rc = asker_ask_all(&c->asker, list, used, err);
            used = 0;
        }
    }
    return rc;
}

static void form_hash(struct asker_question *q, struct body *b, uint64_t number)
{
    q->method = "chain_getBlockHash";
    q->take = asker_take_hash;
    q->arg = b->hash;
    snprintf(q->params, sizeof(q->params), "[%llu]", (unsigned long long)number);
}

static void form_block(struct asker_question *q, struct body *b, uint64_t number)
{
    (void)number;
    q->method = "chain_getBlock";
    q->take = take_block;
    q->arg = b;
    snprintf(q->params, sizeof(q->params), "[\"%s\"]", hex_log(b->hash, 32));
}

static void form_events(struct asker_question *q, struct body *b, uint64_t number)
{
    (void)number;
    if (!b->wanted)
        return;
    q->method = "state_getStorage";
    q->take = asker_take_storage;
    q->arg = &b->events;
    snprintf(q->params, sizeof(q->params), "[\"%s\",\"%s\"]", events_key, hex_log(b->hash, 32));
}

/* ---- extrinsics ---- */

static size_t account_of(const struct audit *a, const struct extrinsic_view *view)
{
    size_t i = 0;
    while (i < a->account_count && (!view->is_signed || view->signer_len != a->accounts[i].id_len ||
                                    memcmp(view->signer, a->accounts[i].id, view->signer_len) != 0))
        i++;
    return i;
}

static void scan(const struct metadata *md, const struct audit *a, size_t block, struct body *b,
                 struct audit_chunk *ret)
{
    struct audit_block *to = &ret->blocks[block];
    uint8_t set[2];
    bool timed = metadata_find_call(md, "Timestamp", "set", set);
    to->time_ms = -1;
    for (size_t i = 0; i < b->count; i++) {
        struct extrinsic_view view;
        const uint8_t *bytes = b->bytes.data + b->list[i].at;
        if (extrinsic_decode(md, bytes, b->list[i].len, &view, NULL)) {
            to->unread++;
            continue;
        }
        if (timed && to->time_ms < 0 && !view.is_signed)
            to->time_ms = extrinsic_time(view.call, view.call_len, set);
        size_t account = account_of(a, &view);
        if (account == a->account_count)
            continue;
        b->wanted = true;
        ret->extrinsics =
            xrealloc(ret->extrinsics, (ret->extrinsic_count + 1) * sizeof(*ret->extrinsics));
        struct audit_extrinsic *x = &ret->extrinsics[ret->extrinsic_count++];
        *x = (struct audit_extrinsic){
            .account = account, .block = block, .index = (uint32_t)i, .nonce = view.nonce};
        hash_blake2b_256(bytes, b->list[i].len, x->hash);
    }
}

static void add_results(const struct metadata *md, size_t block, const struct body *b,
                        struct audit_chunk *ret)
{
    struct dispatch_result *results = xcalloc(b->count + 1, sizeof(*results));
    struct err err;
    ret->blocks[block].no_outcomes =
        events_decode(md, b->events.data, b->events.len, results, b->count, &err) != 0;
    for (size_t i = 0; i < ret->extrinsic_count; i++)
        if (ret->extrinsics[i].block == block)
            ret->extrinsics[i].result = results[ret->extrinsics[i].index];
    free(results);
}

/* The runtime in the state of the parent wrote a block. Versions only rise: where the parent of the
 * first block and the last block have one runtime, all blocks between have it. The next chunk
 * begins with that of the last block, so it is not asked for twice. */
static int decode(struct audit_chain *c, const struct audit *a, struct body *bodies, size_t count,
                  struct audit_chunk *ret, struct err *err)
{
    const struct metadata *first, *last, *md;
    uint64_t from = ret->blocks[0].number;
    if (runtime_after(c, bodies[0].parent, &first, err))
        return err->code;
    last = first;
    if (count > 1 && runtime_after(c, bodies[count - 1].hash, &last, err))
        return err->code;
    const struct metadata **of = xcalloc(count, sizeof(const struct metadata *));
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        md = first;
        if (first != last)
            rc = runtime_after(c, bodies[i].parent, &md, err);
        of[i] = md;
        if (rc == 0)
            scan(md, a, i, &bodies[i], ret);
    }
    if (rc == 0)
        rc = each_block(c, bodies, count, from, form_events, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        if (bodies[i].wanted)
            add_results(of[i], i, &bodies[i], ret);
    free(of);
    return rc;
}

int audit_chain_read(struct audit_chain *c, const struct audit *a, uint64_t from, size_t count,
                     struct audit_chunk *ret, struct err *err)
{
    PRE(from > 0 && count > 0);
    struct body *bodies = xcalloc(count, sizeof(*bodies));
    *ret =
        (struct audit_chunk){.blocks = xcalloc(count, sizeof(*ret->blocks)), .block_count = count};
    int rc = each_block(c, bodies, count, from, form_hash, err);
    if (rc == 0)
        rc = each_block(c, bodies, count, from, form_block, err);
    for (size_t i = 0; i < count; i++) {
        ret->blocks[i].number = from + i;
        memcpy(ret->blocks[i].hash, bodies[i].hash, 32);
    }
    if (rc == 0)
        rc = decode(c, a, bodies, count, ret, err);
    bodies_free(bodies, count);
    return rc;
}

int audit_chain_at(struct audit_chain *c, int64_t time_ms, uint64_t last, uint64_t *ret_block,
                   struct err *err)
{
    struct audit no_accounts = {0};
    uint64_t low = 1, high = last + 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct audit_chunk one;
        int rc = audit_chain_read(c, &no_accounts, middle, 1, &one, err);
        int64_t then = rc ? -1 : one.blocks[0].time_ms;
        audit_chunk_done(&one);
        if (rc)
            return rc;
        if (then < 0)
            return err_set(err, ERR_PROTOCOL,
                           "block %llu has no time (Timestamp.set): give block numbers",
                           (unsigned long long)middle);
        if (then < time_ms)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_block = low;
    return 0;
}
