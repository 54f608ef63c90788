/* The events of a block that holds an extrinsic of ours: they tell whether its call succeeded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/codec/events.h"
#include "chain/codec/hash.h"
#include "node_internal.h"

static void ask_events(struct slot *s);

static void lacks_events(struct slot *s)
{
    struct err why;
    char of[60];
    snprintf(of, sizeof(of), " of the events of block %llu", (unsigned long long)s->number);
    if (s->state_pruned)
        err_set(&why, ERR_PROTOCOL, "%s: the state before block %llu is pruned", node__url(s->node),
                (unsigned long long)s->number);
    else
        lack_refusal(&s->call, node__url(s->node), of, &why);
    slot_lacks(s, LACK_STATE, &why);
}

/* A balancer may ask another node the next time, as for a body. */
static void refused(struct slot *s)
{
    if (later_goes_on(s, &s->call.err))
        return;
    if (++s->attempts < NODE_ATTEMPTS)
        ask_events(s);
    else
        lacks_events(s);
}

/* They do not fit the runtime's metadata. The endpoint may give others the next time; after a while
 * this counts as a lack, and nothing else waits for it. */
static void unreadable(struct slot *s, const struct err *err)
{
    struct err why;
    err_set(&why, err->code, "%s: events of block %llu: %s", node__url(s->node),
            (unsigned long long)s->number, err->text);
    if (later_goes_on(s, &why))
        return;
    if (s->given_up)
        slot_lacks(s, LACK_STATE, &why);
    else
        slot_failed(s, &why);
}

/* A block that holds an extrinsic has events: who says that there are none does not have them. */
static bool is_empty(const struct jv *value)
{
    return jv_is(value, JV_NULL) || jv_equals(value, "0x");
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
    bool means = call->refused != RPC_ERROR_NONE && call->refused != RPC_ERROR_OTHER &&
                 call->refused != RPC_ERROR_PACE;
    if (!s->abandoned && (means || slot_gave_up(s, call))) {
        refused(s);
        return;
    }
    if (!slot_going_on(s))
        return;
    struct buf bytes = {0};
    struct dispatch_result *results = xcalloc(s->extrinsic_count + 1u, sizeof(*results));
    const struct jv *changes = jv_get(jv_at(call->result, 0), "changes");
    const struct jv *value = other_way ? jv_at(jv_at(changes, 0), 1) : call->result;
    int rc = 0;
    if (is_empty(value)) {
        free(results);
        refused(s);
        return;
    }
    if (!wire_bytes(value, &bytes))
        rc = err_set(&err, ERR_PROTOCOL, "the events are not hexadecimal");
    else
        rc = events_decode(s->runtime->metadata, bytes.data, bytes.len, results, s->extrinsic_count,
                           &err);
    for (size_t i = 0; !rc && i < s->included_count; i++)
        s->included[i].tx.result = results[s->included[i].tx.index];
    free(results);
    s->has_events = !rc;
    hash_blake2b_256(bytes.data, bytes.len, s->events);
    buf_done(&bytes);
    if (rc)
        unreadable(s, &err);
    else
        slot_nonces(s);
}

static void ask_events(struct slot *s)
{
    PRE(s->runtime && s->included_count > 0);
    char hash[HASH_TEXT], params[256];
    wire_hash_text(s->head.hash, hash);
    bool query = s->node->no_storage;
    snprintf(params, sizeof(params), query ? "[[\"%s\"],\"%s\"]" : "[\"%s\",\"%s\"]", events_key,
             hash);
    s->state = SLOT_EVENTS_WAIT;
    rpc_call_start(node__rpc(s->node), &s->call,
                   query ? "state_queryStorageAt" : "state_getStorage", params, 0, NULL, NULL,
                   got_events);
}

void slot_events(struct slot *s)
{
    if (s->included_count && s->state_pruned)
        lacks_events(s);
    else if (s->included_count)
        ask_events(s);
    else
        slot_nonces(s);
}
