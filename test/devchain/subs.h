/* Subscriptions: ids, the notifications that go out, and their end. */
#ifndef DEVCHAIN_SUBS_H
#define DEVCHAIN_SUBS_H

#include "metadata_build.h"
#include "rpc_call.h"

enum sub_kind {
    SUB_EXTRINSIC,
    SUB_NEW_HEADS,
    SUB_ALL_HEADS,
    SUB_FINALIZED_HEADS,
    SUB_RUNTIME,
    SUB_STORAGE,
    SUB_ARCHIVE_STORAGE,
    SUB_FOLLOW,
    SUB_TRANSACTION, /* transactionWatch_v1 */
    SUB_BROADCAST,   /* transaction_v1_broadcast: it notifies nothing */
    SUB_KINDS
};

/* A block that chainHead_v1_follow has announced. */
struct pin {
    uint8_t hash[32];
    bool pruned; /* it was reported so */
};

struct sub {
    struct list conn_node; /* of the connection */
    struct list kind_node; /* of the app, block-driven kinds */
    struct watch watch;    /* SUB_EXTRINSIC */
    struct app *app;
    struct conn *conn;
    enum sub_kind kind;
    char id[17];
    bool held;             /* the response is not out yet */
    uint32_t backlog;      /* items since the connection backed up */
    bool muted;            /* a script ended it: nothing more is told */
    bool ended;            /* a final status came while it was held */
    struct buf held_items; /* complete messages, each with a u32 length in front */
    uint32_t last_spec;    /* SUB_RUNTIME */
    json_t *keys;          /* SUB_STORAGE: owned */
    struct tx *tx;         /* SUB_EXTRINSIC, SUB_TRANSACTION: for scripts; SUB_BROADCAST */
    struct buf pins;       /* SUB_FOLLOW: of struct pin */
    bool with_runtime;     /* SUB_FOLLOW */
    uint64_t final;        /* SUB_FOLLOW: the height that was reported last */
};

/* NULL: answered with an error (no WebSocket, too many). Held until sub_release. */
struct sub *sub_new(struct call *c, enum sub_kind kind);
void sub_free(struct sub *s);
void sub_release(struct sub *s); /* the response went out: so do the held items; may free s */
struct sub *sub_find(const struct app *a, const struct conn *conn, const char *id,
                     enum sub_kind kind);

void sub_answer(struct call *c, struct sub *s);                 /* with its id */
void sub_notify(struct sub *s, const void *result, size_t len); /* result as JSON text */

/* Core callbacks. */
void subs_on_status(void *arg, struct watch *w, enum pool_status status, const uint8_t *hash);
void subs_on_block(void *arg, const struct block *b, bool best);
void subs_on_finalized(void *arg, const struct block *b);
void subs_on_runtime(void *arg);

void subs_start_heads(struct call *c, enum sub_kind kind);
void subs_start_runtime(struct call *c);
void subs_start_storage(struct call *c);
void subs_stop(struct call *c, enum sub_kind kind); /* params [id] */

void subs_late_done(struct app *a);

/* methods_head.c */
void follow_on_block(struct sub *s, const struct block *b, bool best);
void follow_on_finalized(struct sub *s, const struct block *b);

/* methods_transaction.c */
/* The event of this status; nothing is appended if it has none. */
void put_watch_event(struct buf *b, const struct app *a, const struct sub *s,
                     enum pool_status status, const uint8_t *hash);
void broadcast_on_status(struct sub *s, enum pool_status status);
void broadcast_again(struct app *a); /* what left the pool, at a new best block */

void put_header_json(struct buf *b, const struct block *block);
/* methods_state.c: false: there is no such function, or its arguments do not decode. */
bool runtime_api_call(struct app *a, const struct block *b, const char *name,
                      const struct buf *args, struct buf *out);

/* archive_v1 and chainHead_v1 */
void put_body_json(struct buf *b, const struct block *block);
void put_runtime_json(struct buf *b, struct chain_version v); /* {"type":"valid","spec":{..}} */
void put_version_json(struct buf *b, const struct app *a, struct chain_version v);

/* storage.c: the value of a storage key at a block; false: none. */
bool storage_get(const struct core *c, const struct block *b, const uint8_t *key, size_t len,
                 struct buf *out);
void storage_keys(const struct core *c, const struct block *b, struct buf *ret_keys,
                  size_t *ret_count);

#endif
