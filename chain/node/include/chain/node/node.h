/* A Substrate node, as the relay needs it: chain facts, finalized blocks without holes, submissions.
 * Sits on rpc.h; several endpoints: the first healthy one is used, another when it is lost or lags.
 *
 *   OFFLINE -> HANDSHAKE_WAIT (genesis, runtime version, metadata, heads) -> READY -> OFFLINE ...
 *
 * Everything decided from this is decided elsewhere: the door only reports. */
#ifndef CHAIN_NODE_NODE_H
#define CHAIN_NODE_NODE_H

#include "base/buf.h"
#include "base/tx.h"
#include "chain/codec/events.h"
#include "chain/codec/metadata.h"
#include "chain/codec/scale.h"
#include "chain/codec/ss58.h"
#include "chain/node/rpc.h"

struct node;

struct node_info {
    uint8_t genesis[32];
    uint32_t spec_version;
    uint32_t transaction_version;
    char spec_name[64];
    uint16_t ss58_prefix;
    uint32_t block_hash_count;       /* System.BlockHashCount; 2400 when absent */
    const struct metadata *metadata; /* owned by the node; valid until the next on_runtime */
    uint64_t best_number, finalized_number;
    uint64_t
        best_known; /* the highest block that any endpoint told of since node_new, or node_expect_height */
    uint8_t best_hash[32], finalized_hash[32];
};

struct node_head {
    uint64_t number;
    uint8_t hash[32];
    uint8_t parent[32];
};

/* One extrinsic of a finalized block that `wants` asked for. */
struct node_included {
    uint8_t hash[32];
    uint32_t index;
    bool is_signed;
    uint8_t signer[ACCOUNT_ID_MAX];
    size_t signer_len;
    uint64_t nonce;
    u128 tip;
    int64_t era_birth, era_death; /* -1: immortal */
    const uint8_t *bytes;         /* the extrinsic, borrowed during the callback */
    size_t len;
    const uint8_t *call; /* the end of it */
    size_t call_len;
    struct dispatch_result result;
};

/* The free balance of an account; an account that does not exist has none at all. */
struct node_balance {
    bool known; /* false: this chain keeps it elsewhere, or the node has pruned that state */
    u128 free;
};

struct node_block {
    struct node_head head;
    int64_t time_ms; /* by its Timestamp inherent; -1: it has none */
    uint32_t extrinsic_count;
    const struct node_included *included;
    size_t included_count;
    /* Of the watched accounts, in node_watch_account order, at this block; UINT64_MAX: not known. */
    const uint64_t *nonces;
    const struct node_balance *balances;
    size_t nonce_count; /* of each of the two */
};

struct node_config {
    const char *const *urls; /* copied */
    size_t url_count;
    const char *ca_file;
    bool insecure;
    uint32_t call_timeout_ms;
    uint32_t silence_timeout_ms;
    const uint8_t
        *genesis; /* 32 bytes or NULL: refuse any other chain (ERR_GENESIS, on_down, keeps trying) */
    /* All of them from the loop. A runtime that changed while the node was away: on_runtime, then on_ready.
     */
    void (*on_ready)(void *arg, const struct node_info *info);
    /* READY was left, or an attempt to get there failed for a reason not told before. */
    void (*on_down)(void *arg, const struct err *err);
    void (*on_runtime)(void *arg, const struct node_info *info); /* version or metadata changed */
    void (*on_best)(void *arg, const struct node_head *head);
    /* Every height in ascending order from node_follow's start, none skipped, none twice. */
    void (*on_finalized)(void *arg, const struct node_block *block);
    /* Is this extrinsic of a finalized block interesting? Events are fetched only for blocks where one is.
     * signer NULL: unsigned, or its format is not known. May be asked twice of the same extrinsic. */
    bool (*wants)(void *arg, const uint8_t hash[32], const uint8_t *signer, size_t signer_len);
    /* Are this watched account's nonce and balance wanted at a block that is being read? Elsewhere they are
     * not known. NULL: always. */
    bool (*wants_account)(void *arg, size_t index);
    void *arg;
};

struct node *node_new(struct loop *l, const struct node_config *config, struct err *ret_err);
void node_open(struct node *n);
void node_close(struct node *n, void (*cb)(void *arg), void *arg);
const struct node_info *node_info(const struct node *n); /* NULL unless READY */
const char *node_endpoint(const struct node *n);         /* url of the one that is used, or tried */

/* Report finalized blocks from this height on (back-filling what is already past). Calling again with a
 * lower height starts over from there. Survives reconnects. Without it nothing is reported.
 * State that the node has pruned: events are reported as DISPATCH_NONE, nonces as UINT64_MAX, balances as not
 * known. */
void node_follow(struct node *n, uint64_t from_number);
/* Ask for the runtime version now (a bad proof was answered; case 101: the subscription may stay silent).
 * on_runtime follows if it is another one; nothing otherwise. Not READY: nothing. */
void node_recheck_runtime(struct node *n);
/* A block of this height is known to exist elsewhere. Where there are several endpoints, one that is far
 * below it is left (case 132), from the loop; when all of them are, the last one is what there is. */
void node_expect_height(struct node *n, uint64_t height);
/* Add an account whose nonce and free balance are read at each reported block; returns its index. */
size_t node_watch_account(struct node *n, const uint8_t *account_id, size_t len);

/* author_submitAndWatchExtrinsic. Embedded by its owner. */
struct node_submit {
    struct rpc_sub sub; /* .call.err, .rpc_code, .rpc_data tell a refusal in on_reply */
    /* private */
    struct node *node;
    void (*on_reply)(struct node_submit *s); /* exactly once: accepted (err.code 0) or refused or lost */
    void (*on_status)(struct node_submit *s, enum tx_status status,
                      const uint8_t *block_hash); /* or usurper's hash; NULL */
    void (*on_lost)(struct node_submit *s); /* the watch ended without a final status (connection lost) */
    bool (*gate)(void *arg);
    void *gate_arg;
    struct buf params; /* until the answer */
    bool done, watched;
};
/* Where a node grants no more subscriptions it is submitted without a watch: no status follows on_reply.
 * gate: asked immediately before the bytes go to the socket. */
void node_submit_start(struct node *n, struct node_submit *s, const uint8_t *bytes, size_t len,
                       bool (*gate)(void *arg), void *gate_arg, void (*on_reply)(struct node_submit *s),
                       void (*on_status)(struct node_submit *s, enum tx_status status,
                                         const uint8_t *block_hash),
                       void (*on_lost)(struct node_submit *s));
void node_submit_forget(struct node_submit *s); /* nothing fires any more; may be freed */

/* One-off questions. The request is embedded; cb exactly once. */
struct node_ask {
    struct rpc_call call;
    struct err err;
    uint64_t number;  /* node_ask_nonce: the nonce at `best` state */
    uint8_t hash[32]; /* node_ask_hash: of that height */
    bool found;
    struct buf *hashes; /* node_ask_pending, node_ask_above: 32 bytes each, appended; owner's buffer */
    /* the same two: NULL, or told of each that is signed, before cb; index and result say nothing */
    void (*each)(struct node_ask *a, const struct node_included *x);
    /* private */
    struct node *node;
    void (*cb)(struct node_ask *a);
    uint64_t lowest; /* node_ask_above: of the blocks that are wanted */
};
void node_ask_nonce(struct node *n, struct node_ask *a, const uint8_t *account_id, size_t len,
                    void (*cb)(struct node_ask *a)); /* System.Account at the best block; pool not counted */
void node_ask_hash(struct node *n, struct node_ask *a, uint64_t number, void (*cb)(struct node_ask *a));
void node_ask_pending(struct node *n, struct node_ask *a, struct buf *ret_hashes,
                      void (*each)(struct node_ask *a, const struct node_included *x),
                      void (*cb)(struct node_ask *a));
/* What the blocks of the best chain above this height hold: the hashes of all extrinsics, and of those that
 * are signed and can be read what they say, each with its block's number. From the best block down, by
 * parents, so all are of one fork. */
void node_ask_above(struct node *n, struct node_ask *a, uint64_t number, struct buf *ret_hashes,
                    void (*each)(struct node_ask *a, const struct node_included *x),
                    void (*cb)(struct node_ask *a));

#endif
