/* Methods that an endpoint closes without saying so. Gateways refuse them by codes and texts of
 * their own ("Forbidden"), which rpc_error.c cannot know all. A method that is refused again and
 * again for some time, always by an error of which nothing is known, counts as closed, so that the
 * caller takes another way. It counts as open again from its first result on.
 *
 * Only methods whose other way, or another endpoint, tells the same are counted, and only theirs
 * are closed by a word like "denied". Without bodies of blocks, for example, outcomes are unknown,
 * and an endpoint may be broken for longer than it takes here. */
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "rpc_internal.h"

enum {
    CLOSED_COUNT = 5,
    CLOSED_BACKOFFS = 30, /* times the first back-off: three seconds */
    POOL_FIRST = 1000,    /* codes of a pool tell of bytes and not of a method */
    POOL_LAST = 1999,
};

static const char *const methods[RPC_CLOSED_METHODS] = {"author_pendingExtrinsics",
                                                        "author_submitAndWatchExtrinsic",
                                                        "author_submitExtrinsic",
                                                        "chain_getBlockHash",
                                                        "chain_getFinalizedHead",
                                                        "chain_getHeader",
                                                        "chain_subscribeFinalizedHeads",
                                                        "chain_subscribeNewHeads",
                                                        "state_getMetadata",
                                                        "state_getRuntimeVersion",
                                                        "state_getStorage",
                                                        "state_queryStorageAt",
                                                        "state_subscribeRuntimeVersion",
                                                        "transactionWatch_v1_submitAndWatch",
                                                        "transaction_v1_broadcast"};

static struct rpc_closed *of(struct rpc *r, const char *method)
{
    for (size_t i = 0; method && i < RPC_CLOSED_METHODS; i++) /* none: nobody waits for it */
        if (strcmp(methods[i], method) == 0)
            return &r->closed[i];
    return NULL;
}

static bool is_broken(const struct rpc_call *call)
{
    return call->refused == RPC_ERROR_OTHER &&
           (call->rpc_code < POOL_FIRST || call->rpc_code > POOL_LAST);
}

void rpc__closed_check(struct rpc *r, struct rpc_call *call)
{
    struct rpc_closed *c = of(r, call->method);
    uint64_t now = loop_now_ms(r->loop);
    if (call->refused == RPC_ERROR_DENIED)
        call->refused = c ? RPC_ERROR_METHOD : RPC_ERROR_OTHER;
    if (!c)
        return;
    if (call->refused == RPC_ERROR_NONE) {
        *c = (struct rpc_closed){0};
        return;
    }
    if (!is_broken(call))
        return;
    if (!c->count)
        c->since = now;
    c->count++;
    if (c->count < CLOSED_COUNT || now < c->since + CLOSED_BACKOFFS * r->config.backoff_base_ms)
        return;
    call->refused = RPC_ERROR_METHOD;
    if (!c->told)
        log_warn("node.closed", "url=%s method=%s text=\"%s\" refusals=%u", r->config.url,
                 call->method, call->err.text, c->count);
    c->told = true;
}
