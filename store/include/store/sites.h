/* Sites: what the leader of an account that has several sites reads and writes, on a connection of
 * its own. site/core decides; each STORE effect is one row of a store_site_apply, and the effects
 * of one step are one request, so that they are one transaction. Requests are answered in the order
 * of their starts. A request ends with an error as long as the connection is not up;
 * ERR_DB_UNKNOWN_OUTCOME: it is not known whether it is stored, so the tables have to be read.
 *
 * A member is known by its place in the list of store_site_setup, which is the same at all sites.
 * Ids are those of the core: one with bit 63 is a filler's. */
#ifndef STORE_SITES_H
#define STORE_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"
#include "store/conn.h"
#include "store/store.h"

struct store_sites;

/* dsn: of the relay's login. `name` for the server's list of sessions. */
struct store_sites *store_sites_new(struct loop *l, const char *dsn, const char *name);
/* Requests in flight end before: their outcome is not known. */
void store_sites_close(struct store_sites *s, void (*cb)(void *arg), void *arg);

/* ---- what the account's sites are ---- */

struct store_site_member {
    const char *name;
    const char *address; /* where its relays take messages; "": of this site */
    const uint8_t *key;  /* the account that its nonces belong to, 20 or 32 bytes */
    size_t key_len;
};

/* Records the configuration of this relay, before the tables are read. The first one needs an
 * account without pending transactions; `final` and `next` are those of the node then, and are not
 * used later. Members, keys and era_blocks change only while nothing is granted or dispatched. */
struct store_site_setup {
    /* in */
    int32_t account;
    int64_t epoch;
    size_t count; /* of members, at most 32 */
    const struct store_site_member *members;
    uint32_t self; /* which one this site is */
    bool own_keys, sticky, silence_is_down;
    uint32_t range_blocks, era_blocks, approvals;
    int64_t final;
    const int64_t *next; /* of each member's key: its nonce after that block */
    /* out */
    struct err err;
    /* private */
    struct conn_query query;
    void (*cb)(struct store_site_setup *r);
};
void store_site_setup_start(struct store_sites *s, struct store_site_setup *r,
                            void (*cb)(struct store_site_setup *r));

/* ---- what is read ---- */

/* Signed bytes: struct site_bytes of the core, and the bytes. */
struct store_site_bytes {
    uint8_t hash[32];
    uint32_t key;
    int64_t nonce;
    int64_t death;                /* the last block that can include them */
    struct store_bytes extrinsic; /* NULL: where only the hash matters */
};

/* A transaction of this site that has not ended. */
struct store_site_tx {
    int64_t id;
    struct store_bytes call;
    bool cancel;    /* it is to be stopped */
    uint32_t guard; /* the only runtime spec version under which it may be signed; 0: any */
    const char *tip, *max_tip; /* decimal; NULL: the account's policy */
    int64_t deadline_block;    /* -1: none */
    const char *trace;         /* NULL: none */
    size_t attempt_count;
    const struct store_site_bytes *attempts; /* granted, and not dead by the stored final block */
};

struct store_site_dispatch {
    uint32_t sender;
    int64_t id;
    struct store_site_bytes bytes;
};

/* Everything that LOADED wants: granted transactions, dispatches, heights. Transactions without
 * bytes come by store_site_rows. */
struct store_site_load {
    /* in */
    int32_t account;
    int64_t epoch;
    /* out; valid in the callback only */
    struct err err;
    bool lost;             /* commits may be lost, and no wait is on record */
    int64_t wait_until;    /* 0: none on record */
    int64_t highest;       /* height that a relay of this site has heard of; 0: none */
    int64_t final;         /* the last finalized block whose outcomes are on record */
    int64_t lost_since_ms; /* 0: no commits are lost */
    size_t next_count;
    const int64_t *next; /* of each key, after that block */
    size_t tx_count, dispatch_count;
    const struct store_site_tx *txs;
    const struct store_site_dispatch *dispatches;
    /* private */
    struct conn_query query;
    void (*cb)(struct store_site_load *r);
};
void store_site_load_start(struct store_sites *s, struct store_site_load *r,
                           void (*cb)(struct store_site_load *r));

/* A transaction to stop: by an application, or because its deadline has passed. */
struct store_site_stop {
    int64_t id;
    const char *outcome, *error; /* "cancelled" or "expired", for STORE_SITE_END */
};

/* The poll: transactions without bytes that the caller does not know, in their order, and all that
 * are to be stopped, known or not. */
struct store_site_rows {
    /* in */
    int32_t account;
    int64_t epoch;
    uint32_t limit;
    size_t known_count;
    const int64_t *known; /* that wait in the outbox */
    /* out; valid in the callback only */
    struct err err;
    size_t count;
    const struct store_site_tx *rows;
    size_t stop_count;
    const struct store_site_stop *stops;
    int64_t next_ms; /* until the next deadline or not_before; -1: none */
    bool paused;     /* no rows are given */
    /* private */
    struct conn_query query;
    void (*cb)(struct store_site_rows *r);
};
void store_site_rows_start(struct store_sites *s, struct store_site_rows *r,
                           void (*cb)(struct store_site_rows *r));

/* During the wait after lost commits: whose call an extrinsic of a finalized block carries.
 * `equals`: how many transactions that have not ended have this call; only one is certain. */
struct store_site_match {
    /* in */
    int32_t account;
    int64_t epoch;
    size_t count;
    const struct store_bytes *calls;
    const int64_t *at_ms; /* the time of each one's block; -1: not known */
    /* out; valid in the callback only */
    struct err err;
    const int64_t *ids;    /* 0: none */
    const int64_t *equals; /* how many have this call */
    /* private */
    struct conn_query query;
    void (*cb)(struct store_site_match *r);
};
void store_site_match_start(struct store_sites *s, struct store_site_match *r,
                            void (*cb)(struct store_site_match *r));

/* ---- what is written ---- */

enum store_site_kind {
    STORE_SITE_GRANT,    /* id, bytes with era and versions; member: who proposed them */
    STORE_SITE_DISPATCH, /* member: the sender; id, bytes; extrinsic NULL: they are granted here */
    STORE_SITE_NOTED,    /* member: who has dispatched the bytes; id, hash */
    STORE_SITE_DROP,     /* hash */
    STORE_SITE_STATE,    /* what this site's node reported of granted bytes: id, hash, outcome (a
                          * state, as in leader_record_status, or `refused`), block, number,
                          * error */
    STORE_SITE_END,      /* id, outcome, error; hash and block if a finalized block has it */
    STORE_SITE_FINAL,    /* number: the block; `next` of the request: of each key */
    STORE_SITE_WAIT,     /* number: nothing is granted or ended before this block was read */
};

struct store_site_write {
    enum store_site_kind kind;
    uint32_t member;
    int64_t id;
    struct store_site_bytes bytes;
    int64_t birth;   /* of the era; -1: not known */
    const char *tip; /* decimal; NULL: "0" */
    uint32_t spec_version, transaction_version;
    const char *outcome, *error; /* NULL: none */
    const uint8_t *block;        /* 32 bytes; NULL: none */
    int64_t number, index;       /* of the block, and in it; -1: none */
    const char *fee;             /* decimal; NULL: not known */
};

/* All or nothing. Rows and `next` are read before the start returns. It is refused where a rule
 * does not hold, which is a fault of the caller: bytes that are granted while others at another
 * place can be included, or during the wait; bytes that outlive final + era_blocks; a transaction
 * that is stopped while its bytes can be included. */
struct store_site_apply {
    /* in */
    int32_t account;
    int64_t epoch;
    size_t count;
    const struct store_site_write *rows;
    size_t next_count; /* with a STORE_SITE_FINAL: the members; else 0 */
    const int64_t *next;
    /* out */
    struct err err;
    /* private */
    struct conn_query query;
    void (*cb)(struct store_site_apply *r);
};
void store_site_apply_start(struct store_sites *s, struct store_site_apply *r,
                            void (*cb)(struct store_site_apply *r));

/* What operators see (txrelay.sites): who coordinates, as this site sees it. Written when it
 * changes. */
struct store_site_note {
    /* in */
    int32_t account;
    int64_t epoch;
    const char *state;   /* site_state_name */
    int32_t coordinator; /* -1: nobody */
    int64_t height;      /* since when */
    const char *reason;  /* why, in words */
    uint32_t down;       /* a bit for each member that is considered away */
    /* out */
    struct err err;
    /* private */
    struct conn_query query;
    void (*cb)(struct store_site_note *r);
};
void store_site_note_start(struct store_sites *s, struct store_site_note *r,
                           void (*cb)(struct store_site_note *r));

#endif
