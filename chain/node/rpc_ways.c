/* Which questions of the older JSON-RPC are asked in the newer one, and in which steps?
 *
 * Those that an endpoint refuses are asked in the newer one (paritytech/json-rpc-interface-spec),
 * and answered in the older one's shape, so that no code above rpc_way*.c knows of it. The table
 * `ways` says which question has which steps, first with archive_v1, then with chainHead_v1, which
 * has recent blocks only; rpc_way_steps.c and rpc_way_follow.c carry them out.
 *
 *   the older method --refused--> start -> steps, one call each -> rpc__way_end: the owner's call
 *   (or known to be refused) ------^ ^       \
 *                                     +--refused: the next methods; none: the owner's call, too
 *
 * The owner's call stays among the calls in flight, with a deadline of its own. What an endpoint
 * refuses is learnt anew with each connection. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "rpc_ways.h"

enum { STEPS = 2 };

static const struct way_row {
    const char *older;
    int block; /* where its parameters have the block; -1: it has none */
    enum way_step steps[VIA_NONE][STEPS];
} ways[WAY_COUNT] = {
    [WAY_BEST] = {"chain_getBlockHash", -1, {[VIA_FOLLOW] = {STEP_KNOWN}}},
    [WAY_HASH] = {"chain_getBlockHash",
                  -1,
                  {[VIA_ARCHIVE] = {STEP_HASH}, [VIA_FOLLOW] = {STEP_KNOWN}}},
    [WAY_FINAL] = {"chain_getFinalizedHead",
                   -1,
                   {[VIA_ARCHIVE] = {STEP_HEIGHT, STEP_HASH}, [VIA_FOLLOW] = {STEP_KNOWN}}},
    [WAY_HEADER] = {"chain_getHeader",
                    0,
                    {[VIA_ARCHIVE] = {STEP_HEADER}, [VIA_FOLLOW] = {STEP_PINNED_HEADER}}},
    [WAY_BLOCK] = {"chain_getBlock",
                   0,
                   {[VIA_ARCHIVE] = {STEP_HEADER, STEP_BODY},
                    [VIA_FOLLOW] = {STEP_PINNED_HEADER, STEP_PINNED_BODY}}},
    [WAY_STORAGE] = {"state_getStorage",
                     1,
                     {[VIA_ARCHIVE] = {STEP_STORAGE}, [VIA_FOLLOW] = {STEP_PINNED_STORAGE}}},
    [WAY_CALL] = {"state_call",
                  2,
                  {[VIA_ARCHIVE] = {STEP_CALL}, [VIA_FOLLOW] = {STEP_PINNED_CALL}}},
    [WAY_METADATA] = {"state_getMetadata",
                      0,
                      {[VIA_ARCHIVE] = {STEP_CALL}, [VIA_FOLLOW] = {STEP_PINNED_CALL}}},
    [WAY_HEADS] = {"chain_subscribeNewHeads", -1, {[VIA_FOLLOW] = {STEP_WATCH}}},
    [WAY_FINAL_HEADS] = {"chain_subscribeFinalizedHeads", -1, {[VIA_FOLLOW] = {STEP_WATCH}}},
    [WAY_VERSIONS] = {"state_subscribeRuntimeVersion", -1, {[VIA_FOLLOW] = {STEP_WATCH}}},
};

static const struct way_row *row_of(const struct rpc_way *w)
{
    return &ways[w->kind];
}

/* The archive's methods take any height; chainHead_v1 has no height, but chainSpec_v1 has block
 * 0. */
enum way_step rpc__way_now(const struct rpc_way *w)
{
    if (w->finding_best)
        return STEP_BEST;
    if (w->kind == WAY_HASH && w->via == VIA_FOLLOW && !strcmp(w->block, "0"))
        return STEP_GENESIS;
    return row_of(w)->steps[w->via][w->step];
}

/* The methods that are tried after these. */
static enum rpc_via next_via(enum rpc_way_kind kind, enum rpc_via via)
{
    do
        via++;
    while (via < VIA_NONE && ways[kind].steps[via][0] == STEP_NONE);
    return via;
}

/* ---- ends ---- */

static void way_free(struct rpc_way *w)
{
    rpc__follow_leave(w);
    jv_done(&w->given);
    jv_done(&w->answer);
    buf_done(&w->text);
    free(w);
}

void rpc__way_drop(struct rpc_way *w)
{
    w->outer = NULL;
    rpc__way_stop_operation(w);
    rpc_unsubscribe(w->rpc, &w->sub, NULL);
    way_free(w);
}

static void found(struct rpc *r, const struct rpc_way *w)
{
    struct rpc_way_choice *choice = &r->ways[w->kind];
    if (choice->via != w->via || choice->proven)
        return;
    choice->proven = true;
    log_info("node.newer_methods", "url=%s instead_of=%s", r->config.url, row_of(w)->older);
}

void rpc__way_end(struct rpc_way *w, const struct jv *result)
{
    struct rpc_call *outer = w->outer;
    PRE((result != NULL) != (outer->err.code != 0));
    if (result)
        found(w->rpc, w);
    outer->way = NULL;
    rpc_unsubscribe(w->rpc, &w->sub, NULL);
    rpc__call_end(w->rpc, outer, result);
    way_free(w); /* the result was in it */
}

/* By an error of which nothing is known, too, if the newer methods never answered: the older one is
 * refused already. A body has no other way: outcomes would be unknown for an error that passes. */
static bool newer_is_closed(const struct rpc_way *w, const struct rpc_call *step)
{
    if (w->finding_best)
        return false;
    return step->refused == RPC_ERROR_METHOD ||
           (step->refused == RPC_ERROR_OTHER && w->kind != WAY_BLOCK &&
            !w->rpc->ways[w->kind].proven);
}

void rpc__way_refused_newer(struct rpc_way *w, const struct rpc_call *step)
{
    struct rpc_call *outer = w->outer;
    struct rpc_way_choice *choice = &w->rpc->ways[w->kind];
    bool closed = newer_is_closed(w, step);
    enum rpc_via next = next_via(w->kind, w->via);
    if (closed && choice->via == w->via)
        *choice = (struct rpc_way_choice){.via = next};
    if (closed && next != VIA_NONE) {
        rpc_unsubscribe(w->rpc, &w->sub, NULL);
        rpc__follow_leave(w);
        w->via = next;
        w->step = 0;
        buf_clear(&w->text);
        rpc__way_step(w);
        return;
    }
    outer->err = step->err;
    outer->rpc_code = step->rpc_code;
    memcpy(outer->rpc_data, step->rpc_data, sizeof(outer->rpc_data));
    outer->refused = closed ? RPC_ERROR_METHOD : step->refused;
    rpc__way_end(w, NULL);
}

/* ---- the older question ---- */

static enum rpc_way_kind kind_of(const char *method, const char *params)
{
    size_t i = 0;
    while (i < WAY_COUNT && strcmp(ways[i].older, method) != 0)
        i++;
    return i == WAY_BEST && strcmp(params, "[]") != 0 ? WAY_HASH : (enum rpc_way_kind)i;
}

/* The newer methods have no word for the best block. */
static bool of_no_block(const struct rpc_way *w)
{
    int at = row_of(w)->block;
    return at >= 0 && !rpc__way_given(w, (size_t)at);
}

static bool start(struct rpc *r, struct rpc_call *call, enum rpc_way_kind kind, const char *params)
{
    struct rpc_way *w = xcalloc(1, sizeof(*w));
    struct err err;
    *w = (struct rpc_way){.rpc = r, .outer = call, .kind = kind};
    w->via = r->ways[kind].via == VIA_OLDER ? next_via(kind, VIA_OLDER) : r->ways[kind].via;
    snprintf(w->older, sizeof(w->older), "%s", params);
    bool good = w->via != VIA_NONE && strlen(params) < sizeof(w->older) &&
                jv_read(&w->given, w->older, strlen(w->older), &err);
    const struct jv *block =
        good ? rpc__way_given(w, ways[kind].block > 0 ? (size_t)ways[kind].block : 0) : NULL;
    if (!good || (block && !rpc__way_set_block(w, block))) {
        way_free(w);
        return false;
    }
    w->finding_best = of_no_block(w);
    call->way = w;
    rpc__way_step(w);
    return true;
}

bool rpc__way_begin(struct rpc *r, struct rpc_call *call, const char *params)
{
    enum rpc_way_kind kind = kind_of(call->method, params);
    return kind < WAY_COUNT && r->ways[kind].via != VIA_OLDER && start(r, call, kind, params);
}

bool rpc__way_refused(struct rpc *r, struct rpc_call *call)
{
    enum rpc_way_kind kind = kind_of(call->method, call->again);
    if (call->refused != RPC_ERROR_METHOD || kind == WAY_COUNT || r->ways[kind].via == VIA_NONE ||
        !start(r, call, kind, call->again))
        return false;
    if (r->ways[kind].via == VIA_OLDER)
        r->ways[kind].via = call->way->via;
    err_clear(&call->err);
    call->refused = RPC_ERROR_NONE;
    return true;
}

void rpc_ways_text(const struct rpc *r, struct buf *out)
{
    static const char *const newer[] = {
        [STEP_HASH] = "archive_v1_hashByHeight",
        [STEP_HEADER] = "archive_v1_header",
        [STEP_BODY] = "archive_v1_body",
        [STEP_CALL] = "archive_v1_call",
        [STEP_STORAGE] = "archive_v1_storage",
        [STEP_KNOWN] = "chainHead_v1_follow",
        [STEP_WATCH] = "chainHead_v1_follow",
        [STEP_PINNED_HEADER] = "chainHead_v1_header",
        [STEP_PINNED_BODY] = "chainHead_v1_body",
        [STEP_PINNED_CALL] = "chainHead_v1_call",
        [STEP_PINNED_STORAGE] = "chainHead_v1_storage",
    };
    for (size_t i = 0; i < WAY_COUNT; i++) {
        const enum way_step *steps = ways[i].steps[r->ways[i].via % VIA_NONE];
        if (r->ways[i].proven)
            buf_printf(out, "%s%s in place of %s", out->len ? ", " : "",
                       newer[steps[1] ? steps[1] : steps[0]], ways[i].older);
    }
}
