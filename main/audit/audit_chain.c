#include "audit/audit_chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/host.h"
#include "chain/codec/events.h"
#include "chain/codec/extrinsic.h"
#include "chain/codec/hash.h"
#include "chain/codec/metadata.h"
#include "chain/node/rpc.h"

/* At once: as many questions as an endpoint answers without complaint. */
enum { AT_ONCE = 16, OPEN_MS = 10000, METADATA_MS = 60000 };

/* twox_128("System") and twox_128("Events"), the key of System.Events. */
#define EVENTS_KEY "0x26aa394eea5630e07c48ae0c9558cef780d41e5e16056765bc8461851072c9d7"

struct runtime {
    uint32_t spec_version;
    struct metadata *metadata;
};

struct audit_chain {
    struct loop *loop;
    struct rpc *rpc;
    char *shown;
    struct loop_timer *limit;
    struct err err; /* of the connection */
    bool open, late;
    struct runtime *runtimes;
    size_t runtime_count;
};

/* ---- questions ---- */

/* One question. `take` gets a result, and returns what is wrong with it, or NULL. */
struct question {
    struct rpc_call call;
    struct audit_chain *chain;
    const char *method;
    char params[200];
    const char *(*take)(void *arg, const struct jv *result);
    void *arg;
    size_t *left;
    struct err *err;
};

static void answered(struct rpc_call *call)
{
    struct question *q = CONTAINER_OF(call, struct question, call);
    const char *wrong = NULL;
    if (!call->err.code)
        wrong = q->take(q->arg, call->result);
    if (call->err.code && !q->err->code)
        err_set(q->err, call->err.code, "%s: %s%s: %s", q->chain->shown, q->method, q->params,
                call->err.text);
    else if (wrong && !q->err->code)
        err_set(q->err, ERR_PROTOCOL, "%s: %s%s: %s", q->chain->shown, q->method, q->params, wrong);
    if (--*q->left == 0)
        loop_stop(q->chain->loop);
}

/* Asks all and waits for all; the first error counts. */
static int ask_all(struct audit_chain *c, struct question *list, size_t count, struct err *err)
{
    size_t left = count;
    *err = (struct err){0};
    for (size_t i = 0; i < count; i++) {
        struct question *q = &list[i];
        q->chain = c;
        q->left = &left;
        q->err = err;
        rpc_call_start(c->rpc, &q->call, q->method, q->params, METADATA_MS, NULL, NULL, answered);
    }
    while (left)
        loop_run(c->loop); /* a change of the connection's state ends a run too */
    return err->code;
}

static int ask(struct audit_chain *c, const char *method, const char *params,
               const char *(*take)(void *arg, const struct jv *result), void *arg, struct err *err)
{
    struct question q = {.method = method, .take = take, .arg = arg};
    snprintf(q.params, sizeof(q.params), "%s", params);
    return ask_all(c, &q, 1, err);
}

static const char *take_hash(void *arg, const struct jv *result)
{
    return jv_hex_fixed(result, arg, 32) ? NULL : "the answer is no hash";
}

static const char *take_number(void *arg, const struct jv *result)
{
    char text[24];
    char *end;
    if (jv_copy(jv_get(result, "number"), text, sizeof(text)) >= sizeof(text) || text[0] != '0')
        return "the answer is no header";
    *(uint64_t *)arg = strtoull(text, &end, 16);
    return *end ? "the answer is no header" : NULL;
}

static const char *take_spec(void *arg, const struct jv *result)
{
    int64_t spec;
    if (!jv_int(jv_get(result, "specVersion"), &spec) || spec < 0 || spec > UINT32_MAX)
        return "the answer has no specVersion";
    *(uint32_t *)arg = (uint32_t)spec;
    return NULL;
}

static const char *take_bytes(void *arg, const struct jv *result)
{
    return jv_hex(result, arg) ? NULL : "the answer is not hexadecimal";
}

/* No value is an empty one. */
static const char *take_storage(void *arg, const struct jv *result)
{
    return jv_is(result, JV_NULL) ? NULL : take_bytes(arg, result);
}

/* ---- the connection ---- */

static void on_state(void *arg, enum rpc_state state, const struct err *err)
{
    struct audit_chain *c = arg;
    if (state == RPC_OPEN)
        c->open = true;
    else if (err)
        c->err = *err;
    loop_stop(c->loop);
}

static void on_late(void *arg)
{
    struct audit_chain *c = arg;
    c->late = true;
    loop_stop(c->loop);
}

static void rpc_gone(void *arg)
{
    struct audit_chain *c = arg;
    c->rpc = NULL;
    loop_stop(c->loop);
}

static void disconnect(struct audit_chain *c)
{
    if (!c->rpc)
        return;
    rpc_close(c->rpc, rpc_gone, c);
    while (c->rpc)
        loop_run(c->loop);
}

static bool connect_to(struct audit_chain *c, const struct audit_chain_config *config,
                       const char *url)
{
    struct rpc_config rpc = {.url = url,
                             .ca_file = config->ca_file,
                             .insecure = config->insecure,
                             .call_timeout_ms = METADATA_MS,
                             .on_state = on_state,
                             .arg = c};
    c->rpc = rpc_new(c->loop, &rpc, &c->err);
    if (!c->rpc)
        return false;
    free(c->shown);
    c->shown = host_url_shown(url);
    c->late = false;
    loop_timer_at(c->limit, loop_now_ms(c->loop) + OPEN_MS);
    rpc_open(c->rpc);
    while (!c->open && !c->late && rpc_state(c->rpc) != RPC_BACKOFF)
        loop_run(c->loop);
    loop_timer_stop(c->limit);
    if (!c->open)
        disconnect(c);
    return c->open;
}

struct audit_chain *audit_chain_open(struct loop *l, const struct audit_chain_config *config,
                                     struct err *ret_err)
{
    struct audit_chain *c = xcalloc(1, sizeof(*c));
    c->loop = l;
    c->limit = loop_timer_new(l, on_late, c);
    err_set(&c->err, ERR_TIMEOUT, "no endpoint answered within %d s", OPEN_MS / 1000);
    for (size_t i = 0; !c->open && i < config->url_count; i++)
        connect_to(c, config, config->urls[i]);
    if (c->open)
        return c;
    *ret_err = c->err;
    audit_chain_close(c);
    return NULL;
}

void audit_chain_close(struct audit_chain *c)
{
    if (!c)
        return;
    disconnect(c);
    loop_timer_close(c->limit);
    for (size_t i = 0; i < c->runtime_count; i++)
        metadata_free(c->runtimes[i].metadata);
    free(c->runtimes);
    free(c->shown);
    free(c);
}

const char *audit_chain_url(const struct audit_chain *c)
{
    return c->shown;
}

/* ---- heads and hashes ---- */

static int hash_at(struct audit_chain *c, uint64_t number, uint8_t ret[32], struct err *err)
{
    char params[32];
    snprintf(params, sizeof(params), "[%llu]", (unsigned long long)number);
    return ask(c, "chain_getBlockHash", params, take_hash, ret, err);
}

int audit_chain_head(struct audit_chain *c, uint8_t ret_genesis[32], uint64_t *ret_last,
                     struct err *err)
{
    uint8_t head[32];
    char params[80];
    int rc = hash_at(c, 0, ret_genesis, err);
    if (rc == 0)
        rc = ask(c, "chain_getFinalizedHead", "[]", take_hash, head, err);
    snprintf(params, sizeof(params), "[\"%s\"]", rc ? "" : hex_log(head, 32));
    return rc ? rc : ask(c, "chain_getHeader", params, take_number, ret_last, err);
}

/* ---- runtimes ---- */

static int metadata_at(struct audit_chain *c, uint32_t spec, const uint8_t hash[32],
                       struct err *err)
{
    struct buf bytes = {0};
    struct metadata *md = NULL;
    char params[80];
    snprintf(params, sizeof(params), "[\"%s\"]", hex_log(hash, 32));
    int rc = ask(c, "state_getMetadata", params, take_bytes, &bytes, err);
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
    snprintf(params, sizeof(params), "[\"%s\"]", hex_log(hash, 32));
    if (ask(c, "state_getRuntimeVersion", params, take_spec, &spec, err))
        return err->code;
    for (size_t i = 0; i <= c->runtime_count; i++) {
        if (i == c->runtime_count && metadata_at(c, spec, hash, err))
            return err->code;
        if (c->runtimes[i].spec_version != spec)
            continue;
        *ret = c->runtimes[i].metadata;
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
                      void (*form)(struct question *q, struct body *b, uint64_t number),
                      struct err *err)
{
    struct question list[AT_ONCE];
    size_t used = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        list[used] = (struct question){0};
        form(&list[used], &bodies[i], from + i);
        used += list[used].method != NULL;
        if (used == AT_ONCE || i + 1 == count) {
            rc = ask_all(c, list, used, err);
            used = 0;
        }
    }
    return rc;
}

static void form_hash(struct question *q, struct body *b, uint64_t number)
{
    q->method = "chain_getBlockHash";
    q->take = take_hash;
    q->arg = b->hash;
    snprintf(q->params, sizeof(q->params), "[%llu]", (unsigned long long)number);
}

static void form_block(struct question *q, struct body *b, uint64_t number)
{
    (void)number;
    q->method = "chain_getBlock";
    q->take = take_block;
    q->arg = b;
    snprintf(q->params, sizeof(q->params), "[\"%s\"]", hex_log(b->hash, 32));
}

static void form_events(struct question *q, struct body *b, uint64_t number)
{
    (void)number;
    if (!b->wanted)
        return;
    q->method = "state_getStorage";
    q->take = take_storage;
    q->arg = &b->events;
    snprintf(q->params, sizeof(q->params), "[\"" EVENTS_KEY "\",\"%s\"]", hex_log(b->hash, 32));
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

/* The inherent Timestamp.set carries a compact number of milliseconds. */
static int64_t time_of(const struct metadata *md, const struct extrinsic_view *view)
{
    uint8_t set[2];
    if (view->is_signed || view->call_len < 3 || !metadata_find_call(md, "Timestamp", "set", set) ||
        memcmp(view->call, set, 2) != 0)
        return -1;
    struct scale_in in = scale_in_of(view->call + 2, view->call_len - 2);
    u128 ms = scale_get_compact(&in);
    return in.bad || ms > INT64_MAX ? -1 : (int64_t)ms;
}

static void scan(const struct metadata *md, const struct audit *a, size_t block, struct body *b,
                 struct audit_chunk *ret)
{
    struct audit_block *to = &ret->blocks[block];
    to->time_ms = -1;
    for (size_t i = 0; i < b->count; i++) {
        struct extrinsic_view view;
        const uint8_t *bytes = b->bytes.data + b->list[i].at;
        if (extrinsic_decode(md, bytes, b->list[i].len, &view, NULL)) {
            to->unread++;
            continue;
        }
        if (to->time_ms < 0)
            to->time_ms = time_of(md, &view);
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

/* The runtime in the state of the parent wrote a block. Versions only rise: where the first and the
 * last block of a chunk have one runtime, all have. */
static int decode(struct audit_chain *c, const struct audit *a, struct body *bodies, size_t count,
                  struct audit_chunk *ret, struct err *err)
{
    const struct metadata *first, *last, *md;
    uint64_t from = ret->blocks[0].number;
    if (runtime_after(c, bodies[0].parent, &first, err) ||
        runtime_after(c, bodies[count - 1].parent, &last, err))
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
    struct audit nobody = {0};
    uint64_t low = 1, high = last + 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct audit_chunk one;
        int rc = audit_chain_read(c, &nobody, middle, 1, &one, err);
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
