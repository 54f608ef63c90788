/* Private to node*.c. */
#ifndef CHAIN_NODE_NODE_INTERNAL_H
#define CHAIN_NODE_NODE_INTERNAL_H

#include "base/backoff.h"
#include "base/heard.h"
#include "base/list.h"
#include "chain/node/node.h"
#include "rpc_internal.h"

enum { NODE_PIPELINE = 8, NODE_BIRTHS = 64, NODE_ATTEMPTS = 3, HASH_TEXT = 67, SPEC_NAME = 64 };

/* ---- node_wire.c: shapes of JSON ---- */
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
extern const char wire_events_key[]; /* System.Events, as text */

/* ---- node_hash.c: the hash of a height ---- */
/* closed: the endpoint is known to refuse chain_getBlockHash. The answer is that of
 * chain_getBlockHash in both ways: null where the height is not known. */
void hash_start(struct rpc *r, struct rpc_call *call, uint64_t number, bool closed,
                void (*cb)(struct rpc_call *call));
/* For the head of cb. True: chain_getBlockHash was refused, and the other way is tried. */
bool hash_again(struct rpc *r, struct rpc_call *call, uint64_t number, bool *closed,
                void (*cb)(struct rpc_call *call));

/* ---- node_runtime.c: versions and metadata ---- */
struct runtime {
    struct list node;
    unsigned refs;
    uint32_t spec_version;
    uint32_t transaction_version;
    char spec_name[SPEC_NAME];
    struct metadata *metadata;
    uint8_t hash[32]; /* of its metadata */
    bool by_api;      /* it was read as V15, from the runtime */
    bool confirmed;   /* a second reading on this connection gave the same */
    bool agreed;      /* other endpoints gave the same */
    bool replaced;    /* a later reading gave another one; not found any more */
};

enum fetch_step {
    FETCH_IDLE,
    FETCH_BEST_WAIT,
    FETCH_VERSION_WAIT,
    FETCH_API_WAIT,
    FETCH_METADATA_WAIT
};

/* A query for the runtime in the state of one block, or of the best block. */
struct runtime_fetch {
    struct node *node;
    enum fetch_step step;
    struct rpc_call call;
    char at[HASH_TEXT];
    bool again;             /* read the metadata also if it is cached */
    struct runtime version; /* as far as known */
    /* out */
    struct err err;
    bool pruned;             /* with err: the state is gone */
    struct runtime *runtime; /* a reference that the callback owns; NULL on an error */
    void (*cb)(struct runtime_fetch *f);
};
void runtime_fetch_start(struct node *n, struct runtime_fetch *f,
                         const uint8_t *at, /* NULL: best */
                         void (*cb)(struct runtime_fetch *f));
void runtime_unref(struct runtime *r);
bool runtime_version_read(const struct jv *value, struct runtime *ret_version);
/* The answer of state_call Core_version. */
bool runtime_version_decode(const struct jv *value, struct runtime *ret_version, bool *ret_api);
void runtimes_done(struct node *n);
/* Make it the current runtime, take over the reference, and update node_info. */
void runtime_adopt(struct node *n, struct runtime *r);
void runtime_changed(struct node *n, const struct jv *version); /* a notification */

/* ---- node_heads.c: best and finalized ---- */
struct head_watch {
    struct node *node;
    bool finalized;
    struct rpc_sub sub;
    struct rpc_call call; /* the hash of `next` */
    bool asking;          /* call is in flight for `asked` */
    struct node_head asked;
    bool waiting; /* `next` waits; a newer head replaces it */
    struct node_head next;
    bool notified;    /* since the last poll */
    unsigned strikes; /* polls in a row that found a head which the subscription had not reported */
};
void heads_item(struct rpc_sub *sub, const struct jv *item);
void heads_apply(struct head_watch *w, const struct node_head *head);
/* Record that a block of this height exists somewhere. False: a higher one was known already. */
bool heads_raise_best_known(struct node *n, uint64_t height, bool told);
void heads_reset(struct node *n); /* connection lost */
void heads_poll(void *arg);       /* timer */
void heads_poll_later(struct node *n);

/* ---- node_handshake.c ---- */
enum handshake_step {
    HS_IDLE,
    HS_VERSION_WAIT,
    HS_GENESIS_WAIT,
    HS_BEST_WAIT,
    HS_BEST_HEADER_WAIT,
    HS_RUNTIME_WAIT,
    HS_FINALIZED_WAIT,
    HS_FINALIZED_HEADER_WAIT,
    HS_NEW_HEADS_WAIT,
    HS_FINALIZED_HEADS_WAIT,
    HS_RUNTIME_VERSION_WAIT,
    HS_FINAL_ITEM_WAIT,
};
void handshake_start(struct node *n);
/* A finalized head was notified, or nothing was for a while. HS_FINAL_ITEM_WAIT ends. */
void handshake_final_head(struct node *n);
void handshake_silent(struct node *n);

/* ---- node_lack.c: what endpoints lack ---- */
enum lack { LACK_BODY, LACK_STATE, LACK_POOL, LACK_COUNT };

/* The search for the height up to which the present endpoint lacks blocks or states. */
struct reach {
    bool on;
    enum lack kind;
    uint64_t lacks, has, middle;
    bool of_hash; /* the call asks for the hash of `middle` */
    struct rpc_call call;
    struct err why;
};

/* The present endpoint lacks this. True: another one may have it, and the node leaves this one with
 * this reason. False: nobody is known to have it. */
bool lack_leave(struct node *n, enum lack kind, uint64_t number, const struct err *why);
/* Ask the present endpoint up to where it lacks blocks. True: blocks_reached follows. False: there
 * is nothing to find out. */
bool lack_search(struct node *n, enum lack kind, uint64_t number, const struct err *why);
/* "url: method of block 5: State already discarded (not this block)" */
void lack_refusal(const struct rpc_call *call, const char *url, const char *of, struct err *ret);
void blocks_reached(struct node *n); /* node_blocks.c: lack_search or lack_wait has ended */
/* Nobody is known to have it, but an endpoint is away that may: it is waited for, for a while.
 * False: there is none, or it was waited for in vain. True: blocks_reached follows. */
bool lack_wait(struct node *n, enum lack kind, uint64_t number);
void lack_back(struct node *n, size_t endpoint); /* its connection opened */
bool lack_may_return(const struct node *n, size_t endpoint);
void lack_stop(struct node *n); /* connection lost: nothing waits */
void lack_tick(void *arg);      /* timer */

/* ---- node_blocks.c ---- */
enum slot_state {
    SLOT_IDLE,
    SLOT_HASH_WAIT,
    SLOT_BLOCK_WAIT,
    SLOT_RUNTIME_WAIT,
    SLOT_BIRTH_WAIT,
    SLOT_EVENTS_WAIT,
    SLOT_NONCES_WAIT,
    SLOT_NONCE_WAIT,
    SLOT_REACH_WAIT, /* the endpoint lacks it: lack_search finds out from where on it has blocks */
    SLOT_DONE,
};

struct span {
    size_t at, len;
};

/* One height of the pipeline. */
struct slot {
    struct node *node;
    enum slot_state state;
    bool abandoned; /* its call is in flight; the answer will be ignored */
    unsigned attempts;
    uint64_t number;
    struct node_head head;
    struct rpc_call call;
    struct runtime_fetch fetch;
    struct runtime *runtime; /* NULL: not known yet; the current one is assumed */
    bool has_events;         /* they were read; their hash is known */
    uint8_t events[32];
    bool state_pruned;
    bool unread;    /* no endpoint has its body */
    enum lack lack; /* SLOT_REACH_WAIT */
    struct err why;
    struct buf bytes; /* of all extrinsics */
    int64_t time_ms;
    struct span *extrinsics;
    uint32_t extrinsic_count;
    struct node_included *included;
    size_t included_count;
    bool *unverified; /* of `included` */
    size_t verified;  /* SLOT_BIRTH_WAIT: signatures before this one are checked */
    uint64_t *nonces;
    struct node_balance *balances;
    size_t nonce_count;
    size_t *asked; /* indices of the accounts to read, ascending */
    size_t asked_count;
    size_t nonce_next; /* SLOT_NONCE_WAIT: number of them answered */
    bool confirmed;    /* it may be reported */
};

/* May the block be reported now? If not, it is being confirmed: blocks_kick or slot_failed
 * follows. */
bool confirm_passed(struct node *n, struct slot *s, const struct node_block *block);

struct account {
    char *key;          /* storage key, as text */
    uint64_t reported;  /* the last nonce; UINT64_MAX: none */
    char *contradicted; /* what endpoints say of a later one; NULL: they agree */
};

/* ---- node_peer.c: other endpoints, and the questions to them ---- */
enum opinion { OPINION_NONE, OPINION_SAME, OPINION_OTHER };
enum peer_step {
    PEER_IDLE,
    PEER_GENESIS_WAIT,
    PEER_FINAL_WAIT,
    PEER_HEADER_WAIT,
    PEER_HASH_WAIT,
    PEER_NONCE_WAIT,
    PEER_EVENTS_WAIT,
    PEER_VERSION_WAIT,
    PEER_METADATA_WAIT,
};

/* An endpoint that is asked for its opinion. The one in use is asked on its connection, every
 * other one on a connection of its own. */
struct peer {
    struct node *node;
    size_t endpoint;
    char *url;       /* whole: it may hold a secret */
    struct rpc *rpc; /* NULL before the first question */
    bool stopping;
    bool same_chain; /* of the present connection */
    /* It refuses state_getStorageHash, chain_getBlockHash, state_getRuntimeVersion. */
    bool no_storage_hash, no_block_hash, no_version;
    enum peer_step step;
    uint64_t round; /* confirm.round or second.round of the question that is open */
    size_t nonce_next;
    struct rpc_call call;
    enum opinion opinion;    /* of the block */
    enum opinion of_runtime; /* of the runtime */
    uint64_t runtime_at;     /* it is asked for the runtime again */
    char text[200];          /* what it said last, for the log */
    char runtime_text[200];  /* of the runtime */
};

void peers_init(struct node *n, const char *const *urls);
/* Closes the peers' connections, and returns their number; `closed` is called for each. */
size_t peers_close(struct node *n, void (*closed)(void *arg));
void peers_done(struct node *n);
void peers_rest(struct node *n); /* nothing more is asked: give the connections back */
bool peer_in_use(const struct peer *p);
/* Nothing happens while a question of this peer is open, or if nothing is wanted of it. */
void peer_ask(struct peer *p);
void peer_connect(struct peer *p); /* unless it is connected, or being so */

/* ---- node_confirm.c: what one answer does not prove ---- */

/* The block that waits to be reported. */
struct confirm {
    bool on;
    bool doubted;   /* some of `nonces` is */
    bool twice;     /* some of them is wanted once more */
    uint64_t round; /* counts; an answer of a former one is ignored */
    uint64_t number;
    uint8_t hash[32];
    bool has_events; /* they are compared */
    uint8_t events[32];
    struct confirm_nonce {
        size_t account;
        uint64_t nonce;
        bool doubted;
    } * nonces; /* that are asked for again */
    size_t nonce_count;
    unsigned again; /* times that the endpoint in use has said the same again */
    uint64_t again_at, began_at, told_at;
    struct loop_timer *timer;
};

void confirm_init(struct node *n, const char *const *urls);
void confirm_done(struct node *n);
void confirm_stop(struct node *n); /* the block is not waited for any more */
void confirm_opinion(struct peer *p, enum opinion opinion);

/* ---- node_second.c: what other endpoints say of the runtime ---- */
struct second {
    bool on;
    uint64_t round;
    struct runtime *runtime; /* a reference */
    uint8_t at[32];          /* the block in whose state it is */
    bool of_block;           /* a block that is to be reported; else a recent one */
    uint64_t began_at, told_at, at_ms;
    bool alone; /* no other endpoint answered, on this connection */
    struct loop_timer *timer;
};

/* Have other endpoints said that this is the runtime in the state of this block (NULL: at present)
 * and that this is its metadata? If not they are asked; on_runtime and blocks_kick follow. Without
 * a quorum it is agreed as well where none of them answers, or where there is none. */
bool second_agrees(struct node *n, struct runtime *r, const uint8_t *at);
void second_opinion(struct peer *p, enum opinion opinion);
void second_stop(struct node *n);
void second_tick(void *arg);

/* The hash of a finalized block on which eras begin. */
struct birth {
    bool known;
    uint64_t number;
    uint8_t hash[32];
};

/* Fill ret from an extrinsic in a block of this height. False: it does not decode with this
 * metadata; only bytes and hash are set. */
bool node__included(const struct metadata *md, const uint8_t *bytes, size_t len, uint64_t number,
                    struct node_included *ret);
void blocks_init(struct node *n);
void blocks_done(struct node *n);
void blocks_reset(struct node *n); /* connection lost */
void blocks_kick(struct node *n);  /* report blocks that are done, start to read further ones */

void slot_failed_protocol(struct slot *s, const char *what);

/* ---- node_signatures.c: signatures of a slot's extrinsics ---- */
void slot_signatures(
    struct slot *s);               /* ends in slot_scanned, slot_failed or slot_failed_protocol */
void slot_scanned(struct slot *s); /* all are right, or cannot be checked */

/* ---- node_nonces.c: nonces and balances of a slot's accounts ---- */
void slot_nonces(struct slot *s);         /* ends in slot_finished or slot_failed */
void slot_nonces_unknown(struct slot *s); /* ends in slot_finished */
void slot_finished(struct slot *s);
bool slot_going_on(struct slot *s); /* false: abandoned, or its call failed; both are handled */
void slot_failed(struct slot *s, const struct err *err);

/* ---- node.c ---- */
enum node_phase {
    NODE_CLOSED,
    NODE_OFFLINE, /* the endpoint's rpc connects, or backs off */
    NODE_HANDSHAKE_WAIT,
    NODE_READY,
    NODE_ROTATE_WAIT, /* the endpoint's rpc is being stopped */
    NODE_RETRY_WAIT,  /* back-off after every endpoint has failed */
    NODE_CLOSING,
};

struct endpoint {
    struct node *node;
    struct rpc *rpc;
    char down[200];                /* the last text given to on_down */
    uint64_t told_at;              /* when it was given */
    uint64_t failed_at;            /* the last attempt to make it READY that failed; 0: none */
    uint64_t lacks_to[LACK_COUNT]; /* of this height and all below, when it was asked last */
    uint64_t lacks_at[LACK_COUNT]; /* then; 0: never */
    bool other_chain;              /* its genesis was another one, when it was asked last */
    bool waited;                   /* in vain, for what others lack, since it was up last */
    uint64_t back_at;              /* it was back while something waited for it; 0: never */
};

struct node {
    struct loop *loop;
    struct node_config config; /* only callbacks, arg and times are read after node_new */
    struct endpoint *endpoints;
    size_t endpoint_count, endpoint_at;
    enum node_phase phase;
    struct loop_timer *retry;
    struct backoff backoff;
    struct rng rng;
    unsigned failures; /* since READY; back off after each has failed once */
    size_t open_rpcs;
    void (*close_cb)(void *arg);
    void *close_arg;

    bool genesis_known; /* configured, or of the first node; every other chain is refused */
    uint8_t genesis[32];
    uint8_t (*refused)[32]; /* chains that the owner has nothing to do on */
    size_t refused_count;
    struct node_info info;

    enum handshake_step step;
    struct rpc_call call; /* of the handshake */
    struct runtime_fetch fetch;
    bool verify_blocks;   /* of this endpoint */
    bool hash_computable; /* on this chain a block's hash is blake2b-256 of its header */
    bool roots_v1;        /* the last root of extrinsics was one of sp-trie's layout V1 */
    unsigned lag_refusals;
    uint64_t lag_retry_at;
    struct loop_task expect; /* node_expect_height raised info.best_known */

    unsigned watches;   /* extrinsics watched, or being submitted with a watch */
    unsigned watch_max; /* if watch_full: the number at which the node refused another */
    bool watch_full;

    struct list runtimes; /* a few, by last use */
    struct runtime *runtime;
    struct runtime_fetch refetch;
    bool refetch_again;
    struct rpc_sub runtime_sub;

    struct head_watch best, finalized;
    struct heard heard; /* heights, of this node and of others */
    struct loop_timer *poll;
    struct rpc_call poll_call;
    bool polling;

    bool following, follow_restart;
    uint64_t follow_from; /* of the restart */
    uint64_t follow_next; /* the next height to be reported */
    bool link_known;      /* link: hash of the height before */
    uint8_t link[32];
    bool handing_out;
    struct slot slots[NODE_PIPELINE];
    struct birth births[NODE_BIRTHS]; /* by number; of the present connection */
    struct account *accounts;
    size_t account_count;
    struct reach reach;
    struct away {
        bool on;
        uint64_t number, since;
        struct loop_timer *timer;
    } away;               /* what the present endpoint lacks waits for others that are away */
    uint64_t unread_last; /* the last height that was reported as unread */
    /* Methods that this endpoint refuses. */
    bool no_query_storage, no_storage, no_header, no_watch, no_heads, no_finalized;
    bool no_block_hash, no_final_head, no_version;
    bool final_heard;    /* a finalized head was notified on this connection */
    uint64_t recheck_at; /* the runtime is asked for again */
    struct confirm confirm;
    struct second second;
    struct peer *peers;    /* of each endpoint */
    char unconfirmed[400]; /* the text of node_unconfirmed */
};

static inline struct rpc *node__rpc(struct node *n)
{
    return n->endpoints[n->endpoint_at].rpc;
}

static inline const char *node__url(struct node *n)
{
    return node__rpc(n)->config.url;
}

/* Between two questions to an endpoint about what is to be confirmed. */
static inline uint64_t node__tick_ms(const struct node *n)
{
    enum { TICK_MS = 1000 };
    return n->config.confirm_ms ? n->config.confirm_ms : TICK_MS;
}

/* The header in the answer to chain_getHeader, or to chain_getBlock where that is refused. */
static inline const struct jv *node__header(const struct node *n, const struct jv *result)
{
    return n->no_header ? jv_get(jv_get(result, "block"), "header") : result;
}

/* Leave this endpoint and try the next one. */
void node__fault(struct node *n, const struct err *err);
void node__ready(struct node *n);
/* Did the call end because its connection is gone? on_state handles that. */
static inline bool node__gone(const struct err *err)
{
    return err->code == ERR_NET || err->code == ERR_CANCELED;
}

#endif
