/* A small world for one manager: a chain with a pool, a store, and the door between them, all driven by
 * one seed. Others may extend it: a fault is an action in model_world.c, a rule is a check where the fact is
 * born (model_chain.c: what is included; model_store.c: what is written).
 *
 * The node is a single-state pool (facts/pool.md): bans, 1013 bans, futures that wait, evictions said and
 * unsaid, false in_block, retractions that forget. */
#ifndef TEST_SIM_MODEL_H
#define TEST_SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "base/rng.h"
#include "relay/manager.h"

enum {
    TX_MAX = 60000,
    BLOCK_MAX = 20000,
    BLOCK_TXS = 12,
    POOL_MAX = 512,
    ID_MAX = 20000,
    NONCE_MAX = 30000,
    EARLIER_MAX = 128,
    QUEUE_MAX = 8192,
    ERA = 32,
    BAN_BLOCKS = 12,
    CALL_LEN = 8,
    BYTES_LEN = 24,
};

/* Every extrinsic that was ever signed; its hash names its index. */
struct tx {
    uint64_t nonce;
    int64_t id; /* 0: filler, -1: somebody else's */
    int64_t death;
    uint32_t spec;
    uint64_t ban_until;
    bool committed; /* on record in the store */
    bool in_pool, watched;
    uint64_t sent_beat; /* the last beat in which it was sent */
};

struct block {
    uint32_t fork; /* tells blocks of one height apart */
    uint32_t spec; /* the runtime after it */
    uint64_t nonce_after;
    uint32_t count;
    uint32_t txs[BLOCK_TXS];
};

struct pending {
    bool used;
    int64_t id;
    uint32_t tx; /* current attempt */
    enum manager_row_stage stage;
    uint64_t submitted;
    uint32_t earlier_count;
    uint32_t earlier[EARLIER_MAX];
};

struct write {
    enum manager_effect_type type;
    int64_t after_nonce;
    uint64_t nonce;
    enum manager_hold hold;
    struct manager_row_effect *rows; /* owned */
    size_t count;
    uint32_t *signed_txs; /* owned: what the door signed for each row */
};

struct answer { /* of the store */
    struct manager_event ev;
    struct manager_written_row *written; /* owned, as is bytes */
    uint8_t *bytes;
    struct manager_snapshot_row *snapshot;
    uint8_t (*earlier)[32];
};

struct node_event {
    enum manager_event_type type;
    uint32_t tx;
    int code;
    int64_t rpc_code;
    const char *text;
    enum tx_status status;
    bool has_hash;
    uint8_t hash[32];
    uint64_t number;
};

struct node_request {
    enum manager_effect_type type;
    uint32_t tx;
};

struct world {
    struct rng rng;
    struct manager *m;
    uint64_t now;
    uint64_t steps;
    bool faults;
    unsigned fault_every; /* actions, in the mean */
    int64_t epoch;

    /* chain */
    struct tx *txs;
    uint32_t tx_count;
    struct block *blocks;
    uint64_t best, finalized;
    uint32_t forks, spec;
    uint32_t pool[POOL_MAX];
    uint32_t pool_count, pool_limit;
    uint32_t limbo[POOL_MAX]; /* gone from our node's pool, but other nodes may have it and include it */
    uint32_t limbo_count;
    bool unpaid;

    /* store */
    struct pending *pending; /* by nonce */
    int64_t next_nonce;
    enum manager_hold hold;
    struct manager_account account; /* as the last snapshot said it */
    int64_t next_id;
    int64_t *outbox;
    size_t outbox_count;
    const char **ended; /* by id: outcome */
    uint32_t *effects;  /* by id: how often it is in a finalized block */
    bool *nonce_finished;
    size_t pending_count;
    bool store_breaks;

    /* door */
    bool leading, chain_up, gate_open, stream;
    uint32_t door_spec;
    uint32_t want;
    bool wanted;
    uint64_t follow_next;
    struct write writes[QUEUE_MAX];
    size_t write_head, write_tail;
    struct answer answers[QUEUE_MAX];
    size_t answer_head, answer_tail;
    struct node_request requests[QUEUE_MAX];
    size_t request_head, request_tail;
    struct node_event events[QUEUE_MAX];
    size_t event_head, event_tail;

    uint64_t beats; /* what may justify another try: blocks, time, a new start */
    uint64_t submits, duplicates, resigns, late, fills, usurped, crashes, reorgs, reloads;
};

bool chance(struct world *w, unsigned percent);

/* model_chain.c */
void hash_of_tx(uint32_t tx, uint8_t out[32]);
uint32_t tx_of_hash(const uint8_t hash[32]);
void hash_of_block(const struct world *w, uint64_t number, uint8_t out[32]);
uint32_t tx_new(struct world *w, uint64_t nonce, int64_t id, uint32_t spec, int64_t death);
uint64_t chain_nonce(const struct world *w, uint64_t height);
void chain_submit(struct world *w, uint32_t tx, struct node_event *ret_reply);
void chain_block(struct world *w);
void chain_finalize(struct world *w);
void chain_reorg(struct world *w, uint64_t depth);
void chain_evict(struct world *w, bool say);
bool chain_ready(const struct world *w, uint32_t tx);

/* model_store.c */
bool moody(int64_t id);          /* the runtime refuses this transaction at times */
bool never_admitted(int64_t id); /* the door finds it bad */
void store_enqueue(struct world *w);
void store_push(struct world *w, const struct manager_effect *fx);
void store_run(struct world *w); /* carries out the oldest request and queues its answer */
void store_break(struct world *w,
                 bool answer);      /* the connection is lost: an unknown prefix was carried out */
void store_answer(struct world *w); /* delivers the oldest answer */
void answer_done(struct answer *a);

/* model_world.c */
struct world *world_new(uint64_t seed);
void world_free(struct world *w);
void feed(struct world *w, struct manager_event ev);
void say(struct world *w, struct node_event ev); /* something the node says, if anybody listens */
void world_step(struct world *w);                /* one action, faults and all */
void world_settle(struct world *w);              /* no more faults: everything must end */
void world_verify(const struct world *w);

#endif
