/* The rows of an account by nonce, and their indexes: the line that its transactions stand in. This
 * is the only place that changes a row's state; each change is looked up in the table of moves
 * (row_table.c).
 *
 *   line.c       rows by nonce, in a ring
 *   nset.c       sets of nonces: one for each state, and those that other functions ask for
 *   hashes.c     the row of an extrinsic, by its hash
 *   eras.c       rows in the order in which their bytes die
 *   row.c        what a change of a row means for all of these
 *   row_table.c  the moves between the states
 *   line_check.c invariants
 *
 * It knows nothing of nodes, the database or what is to be done with a row (relay/core/tx).
 * Members of a row that no index depends on are written there. Everything costs O(1) amortised
 * for each row. */
#ifndef RELAY_CORE_LINE_H
#define RELAY_CORE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/sm.h"
#include "base/tx.h"

enum {
    SPAN_MAX = 1 << 24,  /* nonces between the lowest row and the next one; more is no sane table */
    STATUS_SIGNED = 255, /* row.status: the current attempt has no status yet */
};

/* What is known of a nonce in use. row_table.c has every move; the usual way is
 *
 *   UNSENT -> SUBMITTED -> POOLED -> IN_BLOCK -> ENDING -> FINISHING -> (gone)
 */
enum row_state {
    ROW_UNSENT,    /* committed, not submitted; not before `not_before_tick` */
    ROW_SUBMITTED, /* on the wire, no answer yet */
    ROW_POOLED,    /* a pool has it */
    ROW_UNSURE,    /* only a probe can decide */
    ROW_IN_BLOCK,  /* the best chain used its nonce; finalized blocks will show by what */
    ROW_RESIGN,    /* wants new bytes at its nonce */
    ROW_FILL,      /* wants a filler at its nonce */
    ROW_SIGNING,   /* RESIGN or FILL is in flight */
    ROW_ENDING,    /* its end is known and not stored */
    ROW_FINISHING, /* STORE_FINISH is in flight */
    ROW_STATES,
};

/* One set of nonces for each state (same numbers), and these. */
enum {
    SET_BARRIER = ROW_STATES, /* later nonces are not sent while one of these is below them */
    SET_LIVE,                 /* no end is known */
    SET_DIRTY,                /* the status is not stored */
    SET_COUNT,
};

enum row_reason {
    REASON_NONE,
    REASON_BANNED,
    REASON_ERA,
    REASON_RUNTIME,
    REASON_PROOF,
    REASON_HOLE,
    REASON_INVALID,
    REASON_STOP,
    REASON_FEE
};

/* How a nonce ended, kept until it is stored. */
struct row_end {
    struct tx_end tx; /* without nonce and id, which are the row's */
    bool given_back;  /* nothing of it can be included and the nonce is unused: it is free again */
    bool requeue;     /* the transaction goes back to the outbox */
};

/* Why a row gets no new bytes, and how it ends once the old ones can no longer be included. */
struct row_stop {
    const char *outcome; /* static */
    bool invalid; /* a node refused it as invalid: that pool has nothing that a tip must outbid */
    char reason[200];
};

/* The terms of a row: tip and limits; most rows have none. */
struct row_terms {
    u128 tip;  /* of the current attempt */
    u128 want; /* the next one pays at least this */
    u128 max_tip;
    uint64_t deadline_block; /* UINT64_MAX: none */
    uint32_t retries;
};

struct row {
    uint64_t nonce;
    int64_t id; /* 0: filler or hole */
    uint8_t hash[32];
    uint8_t *bytes; /* owned; NULL: a hole */
    uint32_t bytes_len;
    uint32_t call_len;
    int64_t era_death; /* -1: immortal */
    int64_t own_death; /* the same of the transaction's own bytes alone; 0: none were sent */
    /* from this finalized height on nothing that was submitted can be included */
    int64_t out_death;
    uint64_t submitted_block;
    uint8_t *block_hash; /* owned 32 bytes, NULL: none */
    uint8_t (*earlier)[32];
    struct row_end *end;
    char *note;              /* owned: the node's last refusal */
    struct row_stop *stop;   /* owned; NULL: go on */
    struct row_terms *terms; /* owned; NULL: none */
    struct list activity;    /* in the line's while POOLED or IN_BLOCK, oldest news first */
    uint32_t spec_version;
    uint32_t guard;           /* of the runtime; 0: none */
    uint32_t not_before_tick; /* UNSENT: submit from this tick on */
    uint32_t submitted_tick;  /* tick of the last submission */
    uint32_t resign_after;    /* re-sign from this tick on */
    uint32_t sign_runtime;    /* runtime count when it was signed */
    uint32_t seq;             /* probe count when this state began: older probes do not count */
    uint32_t last_pool_probe; /* probe count of the last pool answer that held it */
    uint32_t activity_block;  /* block count of the last news */
    uint16_t earlier_count;
    uint16_t earlier_own; /* the first earlier_own attempts were the transaction's own bytes */
    uint8_t state;
    uint8_t status; /* enum tx_status or STATUS_SIGNED */
    uint8_t reason;
    uint8_t resigns;  /* new signatures since a node last accepted one */
    uint8_t futures;  /* refusals as 'future' since then */
    bool watched : 1; /* the adapter has a watch, or an unanswered submission, for the current hash
                       */
    bool was_out : 1; /* some bytes of this nonce may be in some pool */
    bool was_pooled : 1; /* a pool had it once: it may still wait there unseen, behind a missing
                            nonce */
    bool banned : 1;
    bool let_go : 1;    /* the last pool that was offered them dropped them: it has no room */
    bool tentative : 1; /* UNSURE only for lack of news: later nonces need not wait */
    bool refollowed : 1;
    bool found : 1;   /* bytes with its call are in a final block and not on record: they are being
                         adopted */
    bool foreign : 1; /* they were not: a foreign extrinsic */
    bool racing : 1;  /* RESIGN, SIGNING: the new bytes are a filler that takes the transaction's
                         place */
    bool filler : 1;  /* the current attempt is one */
    bool refused : 1; /* the note is not in the history yet; */
    bool tried : 1;   /* and it is an answer that is no refusal, or that there was none */
    bool turned_away : 1; /* a node refused it, and it has been in no pool and no block since */
    bool unstored : 1;    /* the status is not stored yet */
    bool presigned : 1;   /* its own bytes are presigned */
};

struct nset {
    uint64_t *level[3];
    size_t words[3];
    size_t count;
};

struct era_entry {
    uint64_t death;
    uint64_t nonce;
};

struct hash_entry;

struct line {
    struct row **slots; /* by nonce & (cap - 1) */
    size_t cap;
    uint64_t low, next; /* rows live in [low, next) */
    size_t rows;
    size_t presigned_rows; /* of them, those with `presigned` */
    struct nset sets[SET_COUNT];
    struct hash_entry *table;
    size_t table_cap, table_count;
    struct era_entry *eras; /* min-heap by death; entries of rows that have moved on are skipped */
    size_t era_count, era_cap;
    struct list activity; /* rows in POOLED and IN_BLOCK, oldest news first */
    /* Two clocks of the owner: what a row's state and its news are stamped with. */
    uint32_t probe_seq, blocks;
    struct sm_trace moves;
    uint64_t illegal_nonce; /* of the illegal move in `moves` */
};

/* ---- rows by nonce ---- */
/* drops every row; a zeroed line has to be cleared before its first use */
void line_clear(struct line *line);
void line_done(struct line *line);
/* Room for [low, next). Rows outside of it must not exist. */
void line_cover(struct line *line, uint64_t low, uint64_t next);
struct row *line_add(struct line *line, uint64_t nonce,
                     enum row_state state);           /* of a free nonce in [low, next) */
void line_remove(struct line *line, struct row *row); /* frees it; `low` moves up to the next row */
static inline struct row *line_at(const struct line *line, uint64_t nonce) /* NULL: none */
{
    if (nonce < line->low || nonce >= line->next)
        return NULL;
    return line->slots[nonce & (line->cap - 1)];
}
struct row *line_by_hash(const struct line *line, const uint8_t hash[32]);

/* ---- states ---- */
void line_move(struct line *line, struct row *row, enum row_state state);
/* The row's end, its refusal or its unstored status came or went: LIVE and DIRTY follow. */
void line_refresh(struct line *line, struct row *row);
void line_news(struct line *line, struct row *row); /* something was heard of it */
struct row *line_first(const struct line *line, unsigned set,
                       uint64_t from); /* lowest nonce >= from; NULL: none */

static inline size_t line_count(const struct line *line, unsigned set)
{
    return line->sets[set].count;
}
static inline size_t line_not_in_block(const struct line *line)
{
    return line->rows - line_count(line, ROW_IN_BLOCK) - line_count(line, ROW_ENDING) -
           line_count(line, ROW_FINISHING);
}

/* ---- attempts ---- */
/* A committed attempt becomes the row's current one; what was current is an earlier one from now
 * on. */
void line_bytes(struct line *line, struct row *row, const uint8_t hash[32], const uint8_t *bytes,
                size_t len, size_t call_len, int64_t era_death, uint32_t spec_version);
void line_earlier(struct line *line, struct row *row, const uint8_t hash[32]);
void line_set_presigned(struct line *line, struct row *row); /* its own bytes are presigned */
/* What followers see. Only the last status of a row is stored. */
void line_status(struct line *line, struct row *row, enum tx_status status,
                 const uint8_t *block_hash);
bool line_era_next(struct line *line, uint64_t height,
                   struct era_entry *ret_entry); /* pop one that is due */
static inline bool row_era_over(const struct row *row, uint64_t height)
{
    return row->era_death >= 0 && height >= (uint64_t)row->era_death;
}
bool row_knows(const struct row *row, const uint8_t hash[32], bool *ret_current);
/* The current bytes were written to a socket: they can be included until their era ends. */
void row_went_out(struct row *row);
const char *row_status_name(uint8_t status);
const char *row_reason_text(uint8_t reason);

/* ---- the table of moves ---- */
const char *row_state_name(enum row_state state);
void row_moves_dump(struct buf *out);
void row_moves_missing(uint64_t made, struct buf *out);

void line_check(const struct line *line); /* INVARIANTs over all rows and indexes */

#endif
