/* The database of an account that has several sites: what a room (site/room.h) wants loaded and
 * stored becomes requests (store/sites.h), and their answers go back to the room.
 *
 *   room: load, store --> tables --> store_sites --> Postgres
 *   room <-- loaded, rows, cancel, stored <-- tables
 *
 * Each leadership has an epoch. What is answered for an older one, or after a write whose outcome
 * is not known, is ignored: the room loads again then. */
#ifndef SITE_TABLES_H
#define SITE_TABLES_H

#include "site/room.h"
#include "store/sites.h"

struct site_tables;

struct site_tables_config {
    struct store_sites *store; /* borrowed; closed before the tables are freed */
    struct site_account *account;
    uint32_t self, members;
    int32_t row; /* of the account in this database */
    /* Fills birth, tip (a text in ret_tip) and versions, which are read from the bytes; they are
     * for the record. NULL: not known. */
    void (*describe)(void *arg, const uint8_t *data, size_t len, struct store_site_write *ret,
                     char ret_tip[40]);
    /* A request failed. What has to follow from it is done; lost leaderships are for the host to
     * tell the election. */
    void (*failed)(void *arg, const char *request, const struct err *err);
    /* An answer to site_tables_poll: how many new rows it brought. next_ms: until the next one is
     * wanted; -1: when the doorbell rings. */
    void (*polled)(void *arg, size_t count, int64_t next_ms);
    /* The room has what the tables have: the last finalized block on record, and the nonce of
     * each key after it. NULL: the host does not need it. */
    void (*loaded)(void *arg, uint64_t final, const uint64_t *next);
    void *arg;
};

/* How a transaction of this site ended in a finalized block. */
struct site_tables_end {
    const char *outcome; /* "ok", "dispatch_error", "unknown" */
    const char *error;   /* NULL: none */
    int64_t index;       /* of the extrinsic in the block */
    const char *fee;     /* decimal; NULL: not known */
};

struct site_tables_block {
    uint64_t number;
    const uint8_t *hash;
    const uint64_t *next; /* of each key, after it */
    const struct site_used *used;
    const struct site_tables_end *ends; /* one for each of `used` */
    size_t count;
};

/* Granted bytes of this site in a block of the best chain that is not final. */
struct site_tables_seen {
    uint64_t number;
    uint8_t block[32], hash[SITE_HASH_BYTES];
};

/* What a node answered when bytes were submitted. */
struct site_tables_refusal {
    uint8_t hash[SITE_HASH_BYTES];
    const char *text;
};

/* The best chain from the block `first` on, as it is now: what is below did not change. */
struct site_tables_best {
    uint64_t first;
    const uint8_t (*hashes)[32]; /* of the blocks */
    size_t count;
    const struct site_tables_seen *seen;
    size_t seen_count;
};

struct site_tables *site_tables_new(const struct site_tables_config *config);
struct site_tables *site_tables_free(struct site_tables *t);

/* This relay leads under this epoch, and leader_site_setup is done; 0: not any more. Tells the
 * room. */
void site_tables_lead(struct site_tables *t, int64_t epoch);
/* The operations of the room. */
void site_tables_load(struct site_tables *t, uint64_t load);
void site_tables_store(struct site_tables *t, uint64_t batch, const struct site_room_write *writes,
                       size_t count);
/* Brings at most `limit` rows that the room does not know, and what is to be stopped. One at a
 * time: false: one is on its way, or nothing is loaded. */
bool site_tables_poll(struct site_tables *t, uint32_t limit);
/* The transaction of this site that was granted these bytes; 0: none. */
uint64_t site_tables_id_of(const struct site_tables *t, const uint8_t hash[SITE_HASH_BYTES]);
/* May bytes of a transaction of this site be included that have this death and this tip, by its
 * guard, its deadline and what it is to pay? */
bool site_tables_allows(const struct site_tables *t, uint64_t id, uint32_t spec_version,
                        const struct site_terms *has);
/* Stops those that can never be included any more, by the runtime and the last final block. Not
 * from within an operation of the room. */
void site_tables_review(struct site_tables *t, uint32_t spec_version, uint64_t final);
/* The next finalized block, to the room: with how transactions ended, for what the room wants
 * stored then. */
void site_tables_final(struct site_tables *t, const struct site_tables_block *b);
/* Stores which blocks of the best chain have granted bytes, for those who read statuses. */
void site_tables_best(struct site_tables *t, const struct site_tables_best *b);
/* Stores refusals of granted bytes of this site, for the history. Others are left out. */
void site_tables_refused(struct site_tables *t, const struct site_tables_refusal *all,
                         size_t count);
/* Was this block of the best chain among the last ones that site_tables_best was given? */
bool site_tables_best_has(const struct site_tables *t, const uint8_t hash[SITE_HASH_BYTES]);

#endif
