/* Subscriptions, by the id that the node gave them. A notification may come before the answer that
 * names its subscription (chopsticks does this). It is buffered while a subscription that it can
 * belong to has no answer. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "rpc_internal.h"

enum { EARLY_MAX = 1024, EARLY_BYTES_MAX = 1 << 20 };

struct orphan { /* a subscription that its owner forgot before the answer */
    struct rpc_call call;
    char method[64];
};

void rpc__subs_init(struct rpc *r)
{
    rpc__table_init(&r->subs);
    list_init(&r->unanswered);
    list_init(&r->early);
}

void rpc__subs_done(struct rpc *r)
{
    INVARIANT(list_empty(&r->unanswered) && list_empty(&r->early));
    rpc__table_done(&r->subs);
}

static uint64_t hash_id(const char *id) /* FNV-1a */
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *id; id++)
        h = (h ^ (uint8_t)*id) * 0x100000001b3u;
    return h ^ h >> 32;
}

static uint64_t sub_hash(struct list *n)
{
    return hash_id(CONTAINER_OF(n, struct rpc_sub, node)->id);
}

static struct rpc_sub *sub_find(struct rpc *r, const char *id)
{
    struct list *bucket = rpc__table_bucket(&r->subs, hash_id(id));
    LIST_EACH (n, bucket) {
        struct rpc_sub *sub = CONTAINER_OF(n, struct rpc_sub, node);
        if (strcmp(sub->id, id) == 0)
            return sub;
    }
    return NULL;
}

bool rpc__operation_id(const struct jv *operation, char out[72])
{
    char text[56];
    size_t n = jv_copy(operation, text, sizeof(text));
    return n > 0 && n < sizeof(text) && snprintf(out, 72, "operation %s", text) > 0;
}

/* Ids are strings; some servers use numbers; chainHead_v1 has {"operationId":".."}. */
static bool id_text(const struct jv *id, char out[72])
{
    int64_t number;
    if (jv_is(id, JV_OBJECT))
        return rpc__operation_id(jv_get(id, "operationId"), out);
    if (jv_int(id, &number))
        return snprintf(out, 72, "%lld", (long long)number) > 0;
    size_t n = jv_copy(id, out, 72);
    return n > 0 && n < 72;
}

/* ---- early notifications ---- */

static void early_free(struct rpc *r, struct rpc_early *e)
{
    PRE(r->early_count > 0 && r->early_bytes >= e->len);
    list_remove(&e->node);
    r->early_count--;
    r->early_bytes -= e->len;
    free(e);
}

static struct rpc_early *early_first(struct rpc *r)
{
    struct list *n = list_first(&r->early);
    return n ? CONTAINER_OF(n, struct rpc_early, node) : NULL;
}

static bool early_is_full(const struct rpc *r, size_t len)
{
    return r->early_count == EARLY_MAX || r->early_bytes + len > EARLY_BYTES_MAX;
}

/* A node chooses the size and the number of notifications, so both have a bound: the oldest ones
 * are dropped. */
static void early_save(struct rpc *r, const char *id, const struct jv *item)
{
    PRE(!list_empty(&r->unanswered));
    size_t len;
    const char *text = jv_raw(item, &len);
    if (len > EARLY_BYTES_MAX) {
        log_debug("rpc.early_too_large", "url=%s subscription=%s bytes=%zu", r->config.url, id,
                  len);
        return;
    }
    while (early_is_full(r, len)) {
        log_debug("rpc.early_overflow", "url=%s subscription=%s", r->config.url,
                  early_first(r)->id);
        early_free(r, early_first(r));
    }
    struct rpc_early *e = xmalloc(sizeof(*e) + len);
    *e = (struct rpc_early){.stamp = r->next_id, .len = len};
    snprintf(e->id, sizeof(e->id), "%s", id);
    memcpy(e->text, text, len);
    list_append(&r->early, &e->node);
    r->early_count++;
    r->early_bytes += len;
}

/* Free the notifications that can belong to no unanswered subscription. */
static void early_purge(struct rpc *r)
{
    struct list *n = list_first(&r->unanswered);
    uint64_t oldest = n ? CONTAINER_OF(n, struct rpc_sub, unanswered)->call.id : UINT64_MAX;
    for (struct rpc_early *e = early_first(r); e && e->stamp <= oldest; e = early_first(r))
        early_free(r, e);
}

void rpc__sub_settled(struct rpc *r, const char *id)
{
    struct list mine;
    struct jv_doc doc = {0};
    list_init(&mine);
    for (struct list *n = r->early.next, *next; n != &r->early; n = next) {
        next = n->next;
        if (strcmp(CONTAINER_OF(n, struct rpc_early, node)->id, id) != 0)
            continue;
        list_remove(n);
        list_append(&mine, n);
    }
    for (struct list *n = list_first(&mine); n; n = list_first(&mine)) {
        struct rpc_early *e = CONTAINER_OF(n, struct rpc_early, node);
        struct rpc_sub *sub = sub_find(r, id); /* on_item may have ended it */
        if (sub) /* the text parses: it did as a part of its message */
            sub->on_item(sub, jv_read(&doc, e->text, e->len, NULL));
        early_free(r, e);
    }
    jv_done(&doc);
    early_purge(r);
}

/* ---- life of a subscription ---- */

void rpc_subscribe_start(struct rpc *r, struct rpc_sub *sub, const char *method, const char *params,
                         bool (*before_write)(void *arg), void *before_arg,
                         void (*cb)(struct rpc_call *call),
                         void (*on_item)(struct rpc_sub *sub, const struct jv *item),
                         void (*on_end)(struct rpc_sub *sub, const struct err *err))
{
    PRE(on_item && on_end);
    PRE(!sub->active);
    sub->on_item = on_item;
    sub->on_end = on_end;
    rpc__call_begin(r, &sub->call, method, params, 0, before_write, before_arg, cb);
    sub->call.sub = sub;
    if (sub->call.id)
        list_append(&r->unanswered, &sub->unanswered);
}

void rpc__sub_unanswered_end(struct rpc *r, struct rpc_sub *sub)
{
    (void)r;
    list_remove(&sub->unanswered);
}

bool rpc__sub_accept(struct rpc *r, struct rpc_sub *sub, const struct jv *id)
{
    PRE(!sub->active);
    if (!id_text(id, sub->id))
        return false;
    sub->id_number = jv_is(id, JV_NUMBER);
    sub->active = true;
    rpc__table_add(&r->subs, &sub->node, hash_id(sub->id), sub_hash);
    return true;
}

static void sub_leave(struct rpc *r, struct rpc_sub *sub)
{
    PRE(sub->active);
    rpc__table_remove(&r->subs, &sub->node);
    sub->active = false;
    rpc__watch_stop(r, sub);
}

void rpc__end_by_id(struct rpc *r, const char *method, const char *id, bool number)
{
    json_t *params =
        number ? json_pack("[I]", (json_int_t)strtoll(id, NULL, 10)) : json_pack("[s]", id);
    char *text = json_dumps(params, JSON_COMPACT);
    rpc__notify(r, method, text);
    free(text);
    json_decref(params);
}

static void orphan_answered(struct rpc_call *call)
{
    struct orphan *o = CONTAINER_OF(call, struct orphan, call);
    char id[72];
    if (!call->err.code && id_text(call->result, id))
        rpc__end_by_id(call->rpc, o->method, id, jv_is(call->result, JV_NUMBER));
    free(o);
}

static void orphan_leave(struct rpc *r, uint64_t call_id, const char *method)
{
    PRE(call_id > 0);
    struct orphan *o = xcalloc(1, sizeof(*o));
    snprintf(o->method, sizeof(o->method), "%s", method);
    rpc__call_adopt(r, &o->call, call_id, orphan_answered);
}

void rpc_unsubscribe(struct rpc *r, struct rpc_sub *sub, const char *method)
{
    struct rpc_call *call = &sub->call;
    bool out = list_linked(&call->bucket);
    bool timed_out = !out && call->err.code == ERR_TIMEOUT && call->id;
    uint64_t late_answer = call->written && !call->way && (out || timed_out) ? call->id : 0;
    rpc__call_forget(r, call);
    call->id = 0;
    if (sub->active) {
        bool ours = rpc__watch_stop(r, sub); /* the node does not know it */
        sub_leave(r, sub);
        if (method && !ours)
            rpc__end_by_id(r, method, sub->id, sub->id_number);
    } else if (late_answer && method && r->phase == RPC_PHASE_OPEN &&
               call->connection == r->connection) {
        orphan_leave(r, late_answer, method);
    }
    early_purge(r);
}

void rpc__subs_end(struct rpc *r, const struct err *why)
{
    INVARIANT(list_empty(&r->unanswered)); /* their calls have failed already */
    early_purge(r);
    for (size_t i = 0; i < r->subs.bucket_count; i++) {
        struct list *bucket = &r->subs.buckets[i];
        for (struct list *n = list_first(bucket); n; n = list_first(bucket)) {
            struct rpc_sub *sub = CONTAINER_OF(n, struct rpc_sub, node);
            sub_leave(r, sub);
            sub->on_end(sub, why);
        }
    }
}

void rpc__sub_end(struct rpc *r, struct rpc_sub *sub, const struct err *why)
{
    sub_leave(r, sub);
    sub->on_end(sub, why);
}

void rpc__notify_item(struct rpc *r, const char *id, const struct jv *item)
{
    struct rpc_sub *sub = sub_find(r, id);
    if (sub)
        sub->on_item(sub, item);
    else if (!list_empty(&r->unanswered))
        early_save(r, id, item);
}

void rpc__notification(struct rpc *r, const struct jv *params)
{
    char id[72];
    const struct jv *item = jv_get(params, "result"), *error = jv_get(params, "error");
    if ((!item && !error) || !id_text(jv_get(params, "subscription"), id))
        return;
    if (item) {
        rpc__notify_item(r, id, item);
        return;
    }
    struct rpc_sub *sub = sub_find(r, id);
    if (sub) { /* jsonrpsee: the server ends the subscription */
        const struct jv *message = jv_get(error, "message");
        char text[200];
        struct err why;
        jv_copy(message, text, sizeof(text));
        err_set(&why, ERR_RPC, "%s: %s ended the subscription: %s", sub->call.method, r->config.url,
                jv_is(message, JV_STRING) ? text : "(no message)");
        rpc__sub_end(r, sub, &why);
    }
}
