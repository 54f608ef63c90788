/* The shapes of a node's JSON, and the two ways to ask for the hash of a height. Every reader
 * returns false, and leaves its result alone or undefined, where the value has another shape. */
#ifndef CHAIN_NODE_NODE_WIRE_H
#define CHAIN_NODE_NODE_WIRE_H

#include "base/buf.h"
#include "chain/node/node.h"
#include "rpc_internal.h"

enum { HASH_TEXT = 67 };

struct wire_header {
    struct node_head head; /* hash: computed */
    bool complete;         /* every field was there, so the computed hash means something */
    uint8_t extrinsics_root[32];
};
bool wire_hash(const struct jv *value, uint8_t ret_hash[32]);
bool wire_number(const struct jv *value, uint64_t *ret_number); /* as "0x14", "0x00000014" or 20 */
bool wire_bytes(const struct jv *value, struct buf *out);       /* appended */
bool wire_header(const struct jv *value, struct wire_header *ret_header);
void wire_hash_text(const uint8_t hash[32], char out[HASH_TEXT]);
/* Append the storage key of System.Account. */
void wire_account_key(const uint8_t *account_id, size_t len, struct buf *out);
/* Read a value of System.Account. null: the account does not exist; its nonce and balance are 0. md
 * and ret_balance NULL: read the nonce only. */
bool wire_account(const struct jv *storage_value, const struct metadata *md, uint64_t *ret_nonce,
                  struct node_balance *ret_balance);

/* ---- node_hash.c: the hash of a height ---- */
/* closed: the endpoint is known to refuse chain_getBlockHash. The answer is that of
 * chain_getBlockHash in both ways: null where the height is not known. */
void hash_start(struct rpc *r, struct rpc_call *call, uint64_t number, bool closed,
                void (*cb)(struct rpc_call *call));
/* For the head of cb. True: chain_getBlockHash was refused, and the other way is tried. */
bool hash_again(struct rpc *r, struct rpc_call *call, uint64_t number, bool *closed,
                void (*cb)(struct rpc_call *call));

#endif
