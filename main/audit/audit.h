/* Compares what finalized blocks hold of the accounts with what the database has on record of them.
 * Pure: audit_chain.h reads the blocks and audit_records.h the tables, on a path that shares no
 * code with the relay's (but for the decoding of bytes). */
#ifndef MAIN_AUDIT_AUDIT_H
#define MAIN_AUDIT_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/tx.h"

struct audit_account {
    int32_t number; /* its row */
    char alias[65];
    uint8_t id[32];
    size_t id_len;
    /* out */
    bool any;
    uint64_t next_nonce; /* after the last one that was seen */
};

/* ---- what the chain holds ---- */

struct audit_block {
    uint64_t number;
    uint8_t hash[32];
    int64_t time_ms;  /* by Timestamp.set; -1: it has none */
    uint32_t unread;  /* extrinsics that do not decode */
    bool no_outcomes; /* the events do not decode: how its calls ended is not known */
};

struct audit_extrinsic {
    size_t account; /* index */
    size_t block;   /* index in the chunk */
    uint32_t index;
    uint64_t nonce;
    uint8_t hash[32];
    struct dispatch_result result;
};

/* ---- what the database has ---- */

/* A finished transaction, or the record of a nonce, that names a block of the chunk. */
struct audit_record {
    size_t account;
    int64_t id, requeued; /* 0: NULL; neither: a filler */
    int64_t nonce;
    uint64_t block;
    uint32_t index;
    uint8_t block_hash[32], hash[32];
    char outcome[16], creator[201];
    bool has_fee;
    u128 fee;
};

/* What the database has about one extrinsic of the chain. */
struct audit_known {
    bool attempt;        /* it signed or took these bytes */
    bool pending;        /* they have not ended */
    bool recorded, same; /* the nonce has ended; with this hash */
    bool has_block;      /* ... and the record names a block */
    int64_t id;          /* the record's; 0: none */
    char outcome[16];    /* the record's */
};

/* Consecutive blocks with all that concerns them. known[i] belongs to extrinsics[i]. */
struct audit_chunk {
    struct audit_block *blocks;
    size_t block_count;
    struct audit_extrinsic *extrinsics; /* of the accounts, signed, in order */
    size_t extrinsic_count;
    struct audit_known *known;
    struct audit_record *records; /* in the order of their blocks */
    size_t record_count;
};
void audit_chunk_done(struct audit_chunk *c);

/* ---- the result ---- */

enum audit_class { AUDIT_OK, AUDIT_FAILED, AUDIT_FILLER, AUDIT_FOREIGN, AUDIT_OPEN, AUDIT_CLASSES };
const char *audit_class_name(enum audit_class c); /* "ok", "dispatch_error", ... */

/* What one account, creator and day (UTC) add up to. */
struct audit_sum {
    size_t account;
    char creator[201]; /* "": none, or none of ours */
    int64_t day;       /* since 1970; -1: the block has no time */
    uint64_t count[AUDIT_CLASSES];
    u128 fees;    /* of the relay's own extrinsics */
    u128 foreign; /* fees of those that the account's key signed elsewhere */
};

struct audit_finding {
    size_t account;
    int64_t nonce; /* -1: none */
    int64_t id;    /* 0: none */
    uint64_t block;
    char text[320];
};

struct audit {
    struct audit_account *accounts;
    size_t account_count;
    uint64_t last; /* the last final block: what is `late` blocks below it must have ended */
    uint64_t late;
    /* out */
    struct audit_sum *sums;
    size_t sum_count, sum_cap;
    struct audit_finding *findings;
    size_t finding_count, finding_cap;
    uint64_t blocks, extrinsics, records, unread;
};

/* Chunks in the order of their blocks, each once. */
void audit_compare(struct audit *a, const struct audit_chunk *c);
/* A transaction with several records of a result. */
void audit_twice(struct audit *a, size_t account, int64_t id, int64_t records);
void audit_done(struct audit *a);

#endif
