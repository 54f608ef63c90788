/* A Substrate node, as the relay needs it: chain facts, finalized blocks without gaps, submissions.
 * It uses one of several endpoints: the first healthy one, and another one when that is lost or
 * lags.
 *
 *   OFFLINE -> HANDSHAKE_WAIT (genesis, runtime version, metadata, heads) -> READY -> OFFLINE ...
 *
 * The node reports; it decides nothing about transactions. All callbacks fire from the loop. */
#ifndef CHAIN_NODE_NODE_H
#define CHAIN_NODE_NODE_H

#include "base/buf.h"
#include "base/tx.h"
#include "chain/codec/events.h"
#include "chain/codec/extrinsic.h"
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
    /* The highest block that any endpoint reported since node_new, or that node_expect_height
     * named. */
    uint64_t best_known;
    uint8_t best_hash[32], finalized_hash[32];
};

struct node_head {
    uint64_t number;
    uint8_t hash[32];
    uint8_t parent[32];
};

/* One extrinsic of a finalized block that `wants` asked for. */
struct node_included {
    /* own_signer is true: the owner passes it to the account of the signer only */
    struct tx_included tx;
    bool is_signed;
    uint8_t signer[ACCOUNT_ID_MAX];
    size_t signer_len;
    const uint8_t *call; /* the last part of tx.bytes */
};

enum node_want {
    NODE_WANT_NOT,
    NODE_WANT,
    /* Report it with its signature checked by `verify`. The node refuses a block in which one is
     * wrong, because no chain takes it. */
    NODE_WANT_VERIFIED,
};

/* The free balance of an account. An account that does not exist has a balance of 0. */
struct node_balance {
    bool known; /* false: the chain stores it elsewhere, or the node has pruned that state */
    u128 free;
};

struct node_block {
    struct node_head head;
    /* No endpoint has its body, or even its hash (then that is all 0): nothing is included, and
     * whatever it held is not known. */
    bool unread;
    int64_t time_ms; /* from its Timestamp inherent; -1: it has none */
    /* Of the runtime that executed it: no later block holds an extrinsic of a former one. 0: the
     * state that tells it is gone, or the owner did not ask. */
    uint32_t spec_version;
    uint32_t extrinsic_count;
    const struct node_included *included;
    size_t included_count;
    /* Of the watched accounts at this block, in the order of node_watch_account. UINT64_MAX: not
     * known. */
    const uint64_t *nonces;
    const struct node_balance *balances;
    size_t nonce_count; /* of both arrays */
};

/* Blocks behind the highest known one at which another endpoint is better. */
enum { NODE_LAG_MAX = 16 };

struct node_config {
    const char *const *urls; /* copied */
    size_t url_count;
    const char *ca_file;
    bool insecure;
    uint32_t call_timeout_ms;
    uint32_t silence_timeout_ms;
    /* 32 bytes: refuse every other chain. on_down says so with ERR_PROTOCOL, or with ERR_GENESIS if
     * every endpoint is of another chain; the node keeps trying. NULL: accept the first chain that
     * answers. */
    const uint8_t *genesis;
    /* Refuse finalized blocks whose header does not have their hash, or whose extrinsics do not
     * have the root in the header, and endpoints whose headers have another form. */
    bool verify_blocks;
    /* But not at an endpoint on this host that says it is chopsticks, which makes up its roots. */
    bool allow_chopsticks;
    /* Bytes of signed extensions that are not known here; borrowed. */
    const struct extrinsic_extension *extensions;
    size_t extension_count;
    /* For the metadata hash; borrowed. symbol NULL: the endpoint is asked where one is signed. */
    struct metadata_token token;
    /* READY was reached. If the runtime changed while the node was away, on_runtime comes first. */
    void (*on_ready)(void *arg, const struct node_info *info);
    /* READY was left, or an attempt to reach it failed: for another reason than the last one, or
     * for the same one for a minute. */
    void (*on_down)(void *arg, const struct err *err);
    void (*on_runtime)(void *arg, const struct node_info *info); /* version or metadata changed */
    void (*on_best)(void *arg, const struct node_head *head);
    /* Every height in ascending order from that of node_follow, none skipped, none twice. */
    void (*on_finalized)(void *arg, const struct node_block *block);
    /* Should this extrinsic of a finalized block be reported? The node fetches events only for
     * blocks in which one is. Its signer_len is 0 if it is unsigned or does not decode. May be
     * called twice for the same extrinsic. */
    enum node_want (*wants)(void *arg, const struct node_included *x);
    /* Does the owner need the body of the block at this height? If not, the node keeps an endpoint
     * that lacks it. NULL: yes. */
    bool (*needs)(void *arg, uint64_t number);
    /* Is the signature right under these facts of its block? PRE of NODE_WANT_VERIFIED: set. */
    enum tx_signature (*verify)(void *arg, const struct tx_included *x, const struct metadata *md,
                                const struct extrinsic_params *facts);
    /* Should this watched account's nonce and balance be read at the present block? If not they are
     * reported as not known. NULL: always read them. */
    bool (*wants_account)(void *arg, size_t index);
    /* Does the owner want to know which runtime executed the next blocks? Each of them takes one
     * more question then. NULL: no. */
    bool (*wants_runtime)(void *arg);
    /* May something follow from the nonce of this watched account at the block that cannot be taken
     * back? TX_TWICE: the endpoint is asked once more before the block is reported. TX_DOUBTED: it
     * is asked again, and another one as well if there is any; a nonce that another endpoint
     * contradicts is reported as not known. NULL: no nonce is doubted. Must not call the node. */
    enum tx_doubt (*doubts)(void *arg, const struct node_block *block, size_t index);
    /* Report a finalized block only when this many endpoints, the one in use included, have its
     * hash at its height as final, and the same nonces. 0, 1: the one in use suffices. PRE: there
     * are so many. */
    unsigned quorum;
    uint32_t confirm_ms; /* between two questions to an endpoint about a block; default 1000 */
    void *arg;
};

/* NULL: ret_err (ERR_CONFIG) says what is wrong with an endpoint. PRE: there is an endpoint. */
struct node *node_new(struct loop *l, const struct node_config *config, struct err *ret_err);
void node_open(struct node *n); /* PRE: not opened before */
/* Every call and submission fails with ERR_CANCELED first; cb fires once, when n is freed. */
void node_close(struct node *n, void (*cb)(void *arg), void *arg);
const struct node_info *node_info(const struct node *n); /* NULL unless READY */
const char *node_endpoint(const struct node *n); /* url of the endpoint in use, or being tried */
/* Append what the endpoint in use refused so far, and what is asked in its place. */
void node_other_ways(const struct node *n, struct buf *out);

/* What is done to make an endpoint ready. */
enum node_doing { NODE_IS_READY, NODE_CONNECTS, NODE_ASKS_CHAIN, NODE_READS_METADATA };
enum node_doing node_doing(const struct node *n);

/* Questions to all endpoints since node_new, and what the endpoints are now. */
struct node_stats {
    uint64_t requests, failures;                /* failures: an error, or no answer */
    uint64_t took_ms;                           /* from question to answer, all of them together */
    size_t in_use, failed, other_chain, unused; /* endpoints */
};
void node_stats(const struct node *n, struct node_stats *ret);

/* Report finalized blocks from this height on, also those that are finalized already. A second call
 * starts over from its height. Reconnecting does not interrupt the sequence. No block is reported
 * before the first call. A block whose
 * body no endpoint has is `unread`. If no endpoint has the state, results are DISPATCH_NONE; if the
 * present one has pruned it, nonces are UINT64_MAX and balances not known. */
void node_follow(struct node *n, uint64_t from_number);
/* Has a second reading on this connection given the same metadata, and another endpoint as well, if
 * there is any that answers? If not they are asked, and on_runtime follows, also if it is the same.
 * Nothing that cannot be undone may follow from one reading. */
bool node_metadata_confirmed(struct node *n);
/* The same of the runtime's version, where one reading of the endpoint in use is enough. */
bool node_version_confirmed(struct node *n);
/* What a final block, or the runtime, waits for while other endpoints do not say the same about it:
 * blocks are not reported meanwhile. Valid until the next call. NULL: nothing waits. */
const char *node_unconfirmed(struct node *n);
/* The owner waits for a block that another node has and that the present endpoint did not reach for
 * a while: it is left for one that did not show the same lately, if there is one. */
void node_behind(struct node *n);
/* Final blocks come faster than the endpoint in use lets them be read, and there is no other one
 * that may be faster: the figures. Valid until the loop runs. NULL: nothing is known of it. */
const char *node_slow(const struct node *n);
/* Endpoints contradict each other about the nonce of this watched account, and it counts as not
 * known. Valid until the loop runs. NULL: they do not. */
const char *node_contradicted(const struct node *n, size_t account);
/* The owner has nothing to do on the chain of this genesis: endpoints of it are left, the present
 * one now, and the next one that answers names the chain. Where all are of such chains they are
 * tried again and again. False: the configuration names the chain. */
bool node_refuse_chain(struct node *n, const uint8_t genesis[32], const struct err *why);
/* Ask for the runtime version now, because a node answered "bad proof" and its subscription may
 * have missed an upgrade. on_runtime follows if the version is another one. Not READY: nothing
 * happens. */
void node_recheck_runtime(struct node *n);
/* A block of this height exists elsewhere. If the present endpoint is far below it and there are
 * others, the node moves to the next one, from the loop. If all of them are far below, it stays at
 * the last one. A height far above the last block that was read counts for HEARD_TOLD_MS: who told
 * of it repeats it. */
void node_expect_height(struct node *n, uint64_t height);
/* Add an account whose nonce and free balance are to be read at each reported block; returns its
 * index. */
size_t node_watch_account(struct node *n, const uint8_t *account_id, size_t len);

/* In the order in which they are tried. */
enum node_submit_way {
    SUBMIT_WATCHED,     /* author_submitAndWatchExtrinsic */
    SUBMIT_PLAIN,       /* author_submitExtrinsic */
    SUBMIT_TRANSACTION, /* transactionWatch_v1_submitAndWatch */
    SUBMIT_BROADCAST,   /* transaction_v1_broadcast */
    SUBMIT_WAYS
};

/* No block after this one can hold the bytes, nor one after which the nonce of the watched account
 * is used. */
struct node_last {
    size_t account;
    uint64_t nonce;
    uint64_t block; /* UINT64_MAX: they have no era */
};

/* One submission, embedded by its owner. */
struct node_submit {
    struct rpc_sub sub; /* in on_reply: .call.err, .rpc_code, .rpc_data describe a refusal */
    /* private */
    struct node *node;
    void (*on_reply)(struct node_submit *s);
    void (*on_status)(struct node_submit *s, enum tx_status status, const uint8_t *block_hash);
    void (*on_lost)(struct node_submit *s);
    bool (*gate)(void *arg);
    void *gate_arg;
    struct buf params; /* until the answer */
    bool done, watched;
    bool written; /* in a way before, which the node refused: it may have the bytes */
    enum node_submit_way way;
    struct node_last last;
    /* SUBMIT_TRANSACTION */
    bool pending; /* its first event, which is the reply, has not come */
    struct loop_timer *first;
    bool *gone;    /* set when the owner forgets it in on_reply */
    bool in_block; /* in `block`, when it was notified last */
    uint8_t block[32];
};
/* Submit an extrinsic.
 *   gate       is asked immediately before the bytes go to the socket; false: nothing is sent
 *   on_reply   fires exactly once: accepted (err.code 0), refused, or the connection was lost
 *   on_status  a status of the watch; block_hash is the block's, or the usurper's, or NULL
 *   on_lost    the watch ended without a final status, because the connection was lost
 * A node that grants no more subscriptions gets the extrinsic without a watch: no status follows
 * on_reply. ERR_NOT_LEADER says that nothing was written, by neither try. */
void node_submit_start(struct node *n, struct node_submit *s, const uint8_t *bytes, size_t len,
                       bool (*gate)(void *arg), void *gate_arg,
                       void (*on_reply)(struct node_submit *s),
                       void (*on_status)(struct node_submit *s, enum tx_status status,
                                         const uint8_t *block_hash),
                       void (*on_lost)(struct node_submit *s));
/* From when on an endpoint need not keep the bytes for us; without it, it does until the connection
 * ends. Call it right after node_submit_start. */
void node_submit_until(struct node_submit *s, const struct node_last *last);
void node_submit_forget(struct node_submit *s); /* no callback fires any more; may be freed */

/* One-off queries, embedded by their owner. cb fires exactly once. Not READY: it gets ERR_NET. */
struct node_ask {
    struct rpc_call call;
    struct err err;
    uint64_t number;  /* node_ask_nonce: the nonce in the state of the best block */
    uint8_t hash[32]; /* node_ask_hash: of that height */
    u128 fee;         /* node_ask_fee */
    bool found;       /* the height or the list exists */
    /* node_ask_pending: with an error: no endpoint tells its pool to us, now */
    bool untold;
    /* node_ask_pending, node_ask_above: the owner's; gets 32 bytes per extrinsic */
    struct buf *hashes;
    /* The same two: called for each signed extrinsic, before cb; its index and result are not set.
     * NULL: not called. */
    void (*each)(struct node_ask *a, const struct node_included *x);
    /* node_ask_above: the block that `each` is called for, and in cb the lowest one that was read.
     * Its hash is all 0 if it is not known. */
    struct node_head head;
    /* node_ask_above, set by the owner after the call: was the block with this hash read before?
     * Then neither it nor what is below is read. NULL: no block was. */
    bool (*has)(struct node_ask *a, const uint8_t hash[32]);
    /* private */
    struct node *node;
    void (*cb)(struct node_ask *a);
    uint64_t lowest;                 /* node_ask_above: the lowest block to read */
    uint8_t account[ACCOUNT_ID_MAX]; /* node_ask_nonce */
    size_t account_len;
    bool absent; /* the same: the state has no such account, says the endpoint */
};
/* The account's nonce in System.Account at the best block. The pool is not counted. */
void node_ask_nonce(struct node *n, struct node_ask *a, const uint8_t *account_id, size_t len,
                    void (*cb)(struct node_ask *a));
/* The hash of the block at this height. */
void node_ask_hash(struct node *n, struct node_ask *a, uint64_t number,
                   void (*cb)(struct node_ask *a));
/* The extrinsics in the node's pool: all hashes, and the fields of the signed ones. */
void node_ask_pending(struct node *n, struct node_ask *a, struct buf *ret_hashes,
                      void (*each)(struct node_ask *a, const struct node_included *x),
                      void (*cb)(struct node_ask *a));
/* The extrinsics in the blocks of the best chain above this height: all hashes, and the fields of
 * the signed ones that decode. The blocks are read from the best one down, by their parents, so all
 * are of one fork. */
void node_ask_above(struct node *n, struct node_ask *a, uint64_t number, struct buf *ret_hashes,
                    void (*each)(struct node_ask *a, const struct node_included *x),
                    void (*cb)(struct node_ask *a));
/* What the chain would take for this call in an extrinsic of `extrinsic_len` bytes, without a tip,
 * at the best block. found: the runtime has this API (TransactionPaymentCallApi). */
void node_ask_fee(struct node *n, struct node_ask *a, const uint8_t *call, size_t len,
                  size_t extrinsic_len, void (*cb)(struct node_ask *a));

#endif
