/* system_*, payment_* and rpc_methods. */
#include <string.h>

#include "base/hex.h"
#include "server.h"
#include "subs.h"

static void account_next_index(struct call *c)
{
    uint8_t id[32];
    if (!call_account(c, call_param(c, 0), id))
        return;
    uint32_t nonce = c->app->pool_blind_nonce
                         ? chain_account_at(&c->app->core.chain, c->app->core.chain.best, id).nonce
                         : core_next_index(&c->app->core, id);
    buf_printf(call_begin(c), "%u", nonce);
    call_end(c);
}

static void chain_name(struct call *c)
{
    put_json_str(call_begin(c), c->app->options.chain_name);
    call_end(c);
}

static void name(struct call *c)
{
    call_result(c, "\"txrelay devchain\"");
}

static void version(struct call *c)
{
    call_result(c, "\"0.1.0-devchain\"");
}

static void properties(struct call *c)
{
    buf_printf(call_begin(c), "{\"ss58Format\":%u,\"tokenDecimals\":12,\"tokenSymbol\":\"DEV\"}",
               c->app->core.rt.ss58_prefix);
    call_end(c);
}

static void health(struct call *c)
{
    call_result(c, "{\"peers\":0,\"isSyncing\":false,\"shouldHavePeers\":false}");
}

static void chain_type(struct call *c)
{
    call_result(c, "\"Development\"");
}

static void node_roles(struct call *c)
{
    call_result(c, "[\"Authority\"]");
}

static void no_list(struct call *c)
{
    call_result(c, "[]");
}

static void local_peer_id(struct call *c)
{
    call_result(c, "\"12D3KooWDevchainDevchainDevchainDevchainDevchain00000\"");
}

static void sync_state(struct call *c)
{
    unsigned long long best = c->app->core.chain.best->number;
    buf_printf(call_begin(c), "{\"startingBlock\":0,\"currentBlock\":%llu,\"highestBlock\":%llu}",
               best, best);
    call_end(c);
}

/* Result<Result<(), DispatchError>, TransactionValidityError>. */
static void put_dry_run(struct buf *b, struct validity v, struct dispatch_error e)
{
    if (v.kind == VALIDITY_OK) {
        buf_put_u8(b, 0);
        buf_put_u8(b, e.kind != DISPATCH_KIND_OK);
        if (e.kind != DISPATCH_KIND_OK)
            dispatch_error_scale(e, b);
        return;
    }
    buf_put_u8(b, 1);
    buf_put_u8(b, v.kind == VALIDITY_UNKNOWN);
    buf_put_u8(b, v.code);
    if (v.kind == VALIDITY_INVALID && v.code == INVALID_CUSTOM)
        buf_put_u8(b, v.custom);
}

static void dry_run(struct call *c)
{
    struct buf bytes = {0}, result = {0};
    struct tx *tx = NULL;
    struct dispatch_error e = {.kind = DISPATCH_KIND_OK};
    if (c->app->options.deny_unsafe) {
        call_error(c, RPC_METHOD_NOT_FOUND, "RPC call is unsafe to be called externally", NULL);
        return;
    }
    if (!call_bytes(c, 0, &bytes))
        return;
    if (tx_decode(bytes.data, bytes.len, &tx) != TX_DECODE_OK) {
        call_error(c, 2, "Unable to dry run extrinsic", "Could not decode the extrinsic");
    } else {
        struct validity v = exec_dry_run(&c->app->core.rt, tx, &e);
        put_dry_run(&result, v, e);
        put_json_hex(call_begin(c), result.data, result.len);
        call_end(c);
    }
    tx_unref(tx);
    buf_done(&bytes);
    buf_done(&result);
}

static void query_info(struct call *c)
{
    struct buf bytes = {0};
    struct tx *tx = NULL;
    char fee[40];
    if (!call_bytes(c, 0, &bytes))
        return;
    if (tx_decode(bytes.data, bytes.len, &tx) != TX_DECODE_OK) {
        call_error(c, 1, "Unable to query dispatch info.", "Could not decode the extrinsic");
    } else {
        buf_printf(call_begin(c),
                   "{\"weight\":{\"ref_time\":%llu,\"proof_size\":%llu},\"class\":\"normal\","
                   "\"partialFee\":\"%s\"}",
                   (unsigned long long)tx->ref_time, (unsigned long long)tx->proof_size,
                   u128_text(runtime_fee_of(&c->app->core.rt, tx->len), fee));
        call_end(c);
    }
    tx_unref(tx);
    buf_done(&bytes);
}

const struct method METHODS_SYSTEM[] = {
    {"system_accountNextIndex", account_next_index},
    {"account_nextIndex", account_next_index},
    {"system_chain", chain_name},
    {"system_name", name},
    {"system_version", version},
    {"system_properties", properties},
    {"system_health", health},
    {"system_chainType", chain_type},
    {"system_nodeRoles", node_roles},
    {"system_peers", no_list},
    {"system_localListenAddresses", no_list},
    {"system_localPeerId", local_peer_id},
    {"system_syncState", sync_state},
    {"system_dryRun", dry_run},
    {"system_dryRunAt", dry_run},
    {"payment_queryInfo", query_info},
    {"rpc_methods", rpc_list_methods},
    {NULL, NULL},
};
