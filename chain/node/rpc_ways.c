/* Which questions of the older JSON-RPC are asked in the newer one, and in which steps?
 *
 * Those that an endpoint refuses are asked in the newer one (paritytech/json-rpc-interface-spec),
 * and answered in the older one's shape, so that no code above rpc_way*.c knows of it. The table
 * `ways` says which question has which steps; rpc_way_steps.c carries them out.
 *
 *   the older method --refused--> start -> steps, one call each -> rpc__way_end: the owner's call
 *   (or known to be refused) ------^         \--refused--> the owner's call is refused, too
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

/* Where the parameters of the older method have the block. */
static const struct way_row {
    const char *older;
    enum way_step steps[STEPS];
    int block; /* -1: it has none */
} ways[WAY_COUNT] = {
    [WAY_HASH] = {"chain_getBlockHash", {STEP_HASH}, -1},
    [WAY_FINAL] = {"chain_getFinalizedHead", {STEP_HEIGHT, STEP_HASH}, -1},
    [WAY_HEADER] = {"chain_getHeader", {STEP_HEADER}, 0},
    [WAY_BLOCK] = {"chain_getBlock", {STEP_HEADER, STEP_BODY}, 0},
    [WAY_STORAGE] = {"state_getStorage", {STEP_STORAGE}, 1},
    [WAY_CALL] = {"state_call", {STEP_CALL}, 2},
    [WAY_METADATA] = {"state_getMetadata", {STEP_CALL}, 0},
};

static const struct way_row *row_of(const struct rpc_way *w)
{
    return &ways[w->kind];
}

enum way_step rpc__way_now(const struct rpc_way *w)
{
    return w->finding_best ? STEP_BEST : row_of(w)->steps[w->step];
}

/* ---- ends ---- */

static void way_free(struct rpc_way *w)
{
    jv_done(&w->given);
    jv_done(&w->answer);
    buf_done(&w->text);
    free(w);
}

void rpc__way_drop(struct rpc_way *w)
{
    w->outer = NULL;
    rpc_unsubscribe(w->rpc, &w->sub, NULL);
    way_free(w);
}

static void found(struct rpc *r, enum rpc_way_kind kind)
{
    if (r->ways[kind] == WAY_TRIED)
        log_info("node.newer_methods", "url=%s instead_of=%s", r->config.url, ways[kind].older);
    r->ways[kind] = WAY_NEWER;
}

void rpc__way_end(struct rpc_way *w, const struct jv *result)
{
    struct rpc_call *outer = w->outer;
    PRE((result != NULL) != (outer->err.code != 0));
    if (result)
        found(w->rpc, w->kind);
    outer->way = NULL;
    rpc_unsubscribe(w->rpc, &w->sub, NULL);
    rpc__call_end(w->rpc, outer, result);
    way_free(w); /* the result was in it */
}

/* ---- the older question ---- */

static enum rpc_way_kind kind_of(const char *method)
{
    size_t i = 0;
    while (i < WAY_COUNT && strcmp(ways[i].older, method) != 0)
        i++;
    return (enum rpc_way_kind)i;
}

/* The newer method has no word for the best block. */
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
    snprintf(w->older, sizeof(w->older), "%s", params);
    bool good =
        strlen(params) < sizeof(w->older) && jv_read(&w->given, w->older, strlen(w->older), &err);
    const struct jv *block =
        good ? rpc__way_given(w, ways[kind].block > 0 ? (size_t)ways[kind].block : 0) : NULL;
    if (!good || (block && !rpc__way_keep_block(w, block)) || (kind == WAY_HASH && !block)) {
        way_free(w);
        return false;
    }
    w->finding_best = of_no_block(w);
    call->way = w;
    rpc__way_step(w);
    return true;
}

static bool is_newer(enum rpc_way_choice choice)
{
    return choice == WAY_TRIED || choice == WAY_NEWER;
}

bool rpc__way_begin(struct rpc *r, struct rpc_call *call, const char *params)
{
    enum rpc_way_kind kind = kind_of(call->method);
    return kind < WAY_COUNT && is_newer(r->ways[kind]) && start(r, call, kind, params);
}

bool rpc__way_refused(struct rpc *r, struct rpc_call *call)
{
    enum rpc_way_kind kind = kind_of(call->method);
    if (call->refused != RPC_ERROR_METHOD || call->sub || kind == WAY_COUNT ||
        r->ways[kind] == WAY_NONE || !start(r, call, kind, call->again))
        return false;
    if (r->ways[kind] == WAY_OLDER)
        r->ways[kind] = WAY_TRIED;
    err_clear(&call->err);
    call->refused = RPC_ERROR_NONE;
    return true;
}

void rpc_ways_text(const struct rpc *r, struct buf *out)
{
    static const char *const newer[] = {
        [STEP_HASH] = "archive_v1_hashByHeight", [STEP_HEADER] = "archive_v1_header",
        [STEP_BODY] = "archive_v1_body",         [STEP_CALL] = "archive_v1_call",
        [STEP_STORAGE] = "archive_v1_storage",
    };
    for (size_t i = 0; i < WAY_COUNT; i++)
        if (r->ways[i] == WAY_NEWER)
            buf_printf(out, "%s%s in place of %s", out->len ? ", " : "",
                       newer[ways[i].steps[1] ? ways[i].steps[1] : ways[i].steps[0]],
                       ways[i].older);
}
