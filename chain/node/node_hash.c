/* The hash of the block at a height: chain_getBlockHash, or, at an endpoint that refuses it, the
 * storage of the best block. System.BlockHash keeps the hash of block 0, and those of the blocks
 * before the best one, as many as the chain's constant BlockHashCount says. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/hash.h"
#include "node_internal.h"

/* twox_128("System") ++ twox_128("BlockHash") ++ twox_64_concat(height) */
static void storage_params(uint64_t number, struct buf *out)
{
    struct buf key = {0};
    uint8_t hash[16], height[4];
    hash_twox_128("System", 6, hash);
    buf_put(&key, hash, sizeof(hash));
    hash_twox_128("BlockHash", 9, hash);
    buf_put(&key, hash, sizeof(hash));
    for (unsigned i = 0; i < sizeof(height); i++)
        height[i] = (uint8_t)(number >> 8 * i);
    hash_twox_128(height, sizeof(height), hash); /* it begins with twox_64 */
    buf_put(&key, hash, 8);
    buf_put(&key, height, sizeof(height));
    buf_puts(out, "[\"");
    hex_put_0x(out, key.data, key.len);
    buf_puts(out, "\"]");
    buf_done(&key);
}

void hash_start(struct rpc *r, struct rpc_call *call, uint64_t number, bool closed,
                void (*cb)(struct rpc_call *call))
{
    struct buf params = {0};
    if (closed)
        storage_params(number, &params);
    else
        buf_printf(&params, "[%llu]", (unsigned long long)number);
    rpc_call_start(r, call, closed ? "state_getStorage" : "chain_getBlockHash", buf_str(&params), 0,
                   NULL, NULL, cb);
    buf_done(&params);
}

bool hash_again(struct rpc *r, struct rpc_call *call, uint64_t number, bool *closed,
                void (*cb)(struct rpc_call *call))
{
    if (call->refused != RPC_ERROR_METHOD || strcmp(call->method, "chain_getBlockHash") != 0)
        return false;
    *closed = true;
    hash_start(r, call, number, true, cb);
    return true;
}
