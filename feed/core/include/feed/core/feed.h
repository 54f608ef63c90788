/* The core of one feed: publishers stream numbered batches, and the core decides whose copy of the
 * next number is taken. feed_step(core, now, event) -> effects, without clock, socket or SQL.
 *
 * - The cursor is the number of the last batch that the database has. Only number cursor + 1 can be
 *   taken. The first session that sends its header is the winner; the others skip it, and their
 *   items of it are dropped.
 * - A copy is what one session sent after one header. The core numbers copies and never uses a
 *   number again. Effects and answers name the copy, so an answer about a copy that was given up
 *   changes nothing, whatever happened to its number since.
 * - When the copy is complete it is verified, then stored. Its store is one statement that also
 *   moves the cursor if it still is number - 1, so the database decides between relays. Every open
 *   session is acknowledged, and only once the database has the batch.
 * - The core counts bytes; the owner keeps them. Items are kept only after FEED_FX_KEEP, and the
 *   owner frees a copy at FEED_FX_DROP.
 * - A session is named by a number that its owner gives it. After FEED_FX_SEND with FEED_MSG_END
 *   the owner sends nothing more, drops what it receives, and reports FEED_EV_GONE once the stream
 *   is closed.
 * - A session that is held is not read: between FEED_FX_HOLD and FEED_FX_RELEASE its owner reports
 *   nothing of it but FEED_EV_GONE.
 *
 * feed_table.c has the two tables of states. docs/design.md shows them. */
#ifndef FEED_CORE_FEED_H
#define FEED_CORE_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct feed_core;

enum {
    FEED_PUBLISHERS_MAX = 32, /* publishers of a feed */
    FEED_NONE = -1,           /* the cursor of a feed that has no batch yet */
};

struct feed_config {
    uint32_t persistence_ack_ms; /* from the trailer to the answer of the database; default 30000 */
    uint32_t stale_winner_ms;    /* from the header to the trailer, if others wait; default 60000 */
    uint32_t resend_ms;          /* for how long a publisher whose copy was bad or late has to let
                                    others try the number; default 10000 */
    uint32_t retry_ms, retry_max_ms; /* back-off of loads; defaults 200 and 10000 */
    uint64_t batch_bytes_max;        /* of the items of a batch; default 16 MiB */
    uint32_t batch_calls_max;        /* default 10000 */
    uint32_t sessions_max;           /* default 1024 */
    uint32_t abandoned_max; /* copies that were given up and whose verification or store has not
                               answered; no number is won while there are as many. Default 2 */
    uint32_t duplicate_skip_window; /* a number at most this far below the cursor + 1 is skipped and
                                       acknowledged, and the stream stays open. Default 0: never */
    bool behind_stays_open; /* a number above cursor + 1: FEED_MSG_BEHIND, and the stream stays */
    uint64_t seed;          /* of the jitter */
};

/* The states of a session. A WAIT lasts until an answer of the owner. */
enum feed_session_state {
    FEED_NEW,     /* between batches */
    FEED_TAKING,  /* it is the winner: its items are kept */
    FEED_WAIT,    /* its batch is complete, and is verified or stored */
    FEED_SKIPPED, /* another has the number, and its outcome is open: items are dropped */
    FEED_PASSED,  /* the outcome is known: what is still on its way of that batch is dropped */
    FEED_ENDED,   /* the end is sent */
};

/* The phases of a feed. */
enum feed_phase {
    FEED_IDLE,        /* not served here */
    FEED_LOAD_WAIT,   /* the cursor is being read */
    FEED_LOAD_LATER,  /* it could not be read: again later */
    FEED_FREE,        /* no session has the next number */
    FEED_COLLECT,     /* the winner streams it */
    FEED_VERIFY_WAIT, /* its copy is being verified */
    FEED_STORE_WAIT,  /* its copy is being stored */
};

/* How a stream ends. The values are those of the protocol (feed.proto). */
enum feed_end {
    FEED_END_SUCCESS = 1,         /* the client asked for it */
    FEED_END_INVALID_REQUEST = 2, /* not a header first, too large, or not understood */
    FEED_END_ERROR = 3,           /* the feed is paused, removed or full, or ours to mend */
    FEED_END_TIMEOUT = 4,         /* its batch was not complete or not stored in time */
    FEED_END_DUPLICATE_BLOCK = 5, /* the number is stored already */
    FEED_END_BAD_BLOCK_PROOF = 6, /* the copy is not valid */
    FEED_END_PERSISTENCE_FAILED = 7,
    FEED_END_BEHIND = 8,     /* the number is above cursor + 1 */
    FEED_END_NOT_LEADER = 9, /* another relay serves the feed */
};

enum feed_event_type {
    FEED_EV_SERVE,    /* this relay leads the account, and the feed is not paused */
    FEED_EV_LEAVE,    /* no longer: its sessions end with `end` */
    FEED_EV_LOADED,   /* answer to LOAD */
    FEED_EV_OPEN,     /* a session is there */
    FEED_EV_HEADER,   /* the header of a batch */
    FEED_EV_ITEMS,    /* items of the batch */
    FEED_EV_TRAILER,  /* its trailer */
    FEED_EV_CLOSE,    /* the client ends its stream */
    FEED_EV_REFUSE,   /* the client sent what is not understood */
    FEED_EV_GONE,     /* the stream is closed */
    FEED_EV_VERIFIED, /* answer to VERIFY */
    FEED_EV_STORED,   /* answer to STORE */
    FEED_EV_TICK,     /* feed_due has come; spurious ones are allowed */
};

enum feed_stored {
    FEED_STORED,         /* the cursor is at `last`: at the batch's number, or where another relay
                          * moved it */
    FEED_STORED_BAD,     /* the database refuses a call of it for good */
    FEED_STORED_LOST,    /* another relay leads */
    FEED_STORED_UNKNOWN, /* no answer, or it failed: what is stored has to be read */
};

struct feed_event {
    enum feed_event_type type;
    uint64_t session;
    union {
        struct {
            enum feed_end end;
            bool graceful; /* a batch that is being verified or stored may end first */
        } leave;
        struct {
            uint64_t load; /* which LOAD it answers */
            bool failed;
            int64_t last; /* FEED_NONE: no batch yet */
        } loaded;
        struct {
            int64_t number;
            int publisher; /* which of the feed's publishers, 0 .. FEED_PUBLISHERS_MAX - 1 */
        } header;
        struct {
            uint32_t count;
            uint64_t bytes;
        } items;
        struct {
            uint64_t copy;
            bool valid;
        } verified;
        struct {
            uint64_t copy;
            enum feed_stored outcome;
            int64_t last;
        } stored;
    };
};

enum feed_effect_type {
    FEED_FX_LOAD,    /* read the cursor */
    FEED_FX_SEND,    /* a message to a session */
    FEED_FX_HOLD,    /* do not read the session */
    FEED_FX_RELEASE, /* read it again */
    FEED_FX_BEGIN,   /* the session won: a copy begins */
    FEED_FX_KEEP,    /* keep the items of this event */
    FEED_FX_VERIFY,  /* verify the copy */
    FEED_FX_STORE,   /* store the copy under the tenure that SERVE belongs to */
    FEED_FX_DROP,    /* free the copy, and ignore what is under way for it */
    FEED_FX_SETTLED, /* how a complete copy ended, for metrics and the log */
};

enum feed_message {
    FEED_MSG_ACK,    /* all numbers up to `number` are stored */
    FEED_MSG_SKIP,   /* another sends `number`: an ACK or a RESEND of it follows */
    FEED_MSG_RESEND, /* send `number` again, from its header */
    FEED_MSG_BEHIND, /* the number is too high: `number` is the cursor */
    FEED_MSG_END,    /* `end`; `number` is the cursor */
};

enum feed_outcome { FEED_ACKNOWLEDGED, FEED_TIMED_OUT, FEED_NOT_VALID, FEED_NOT_STORED };

struct feed_effect {
    enum feed_effect_type type;
    uint64_t session; /* SEND, HOLD, RELEASE, BEGIN, KEEP */
    uint64_t copy;    /* BEGIN, KEEP, VERIFY, STORE, DROP, SETTLED; of LOAD, its number */
    int64_t number;   /* SEND, BEGIN, VERIFY, STORE, SETTLED */
    union {
        struct {
            enum feed_message message;
            enum feed_end end;
        } send;
        struct {
            enum feed_outcome outcome;
            uint64_t took_ms; /* since the trailer */
        } settled;
    };
};

/* What happened since the core was made. */
struct feed_counts {
    uint64_t items;                                              /* received, kept or not */
    uint64_t primary, behind, duplicate, future, skipped, stale; /* headers, by what became of
                                                                    them; winners replaced */
    uint64_t acknowledged;                                       /* numbers */
    uint64_t sent[FEED_MSG_END + 1];
    uint64_t ended[FEED_END_NOT_LEADER + 1];
};

struct feed_core *feed_core_new(const struct feed_config *config); /* zeros = defaults */
struct feed_core *feed_core_free(struct feed_core *f);
/* Other options from now on, but for abandoned_max. What is kept already stays. */
void feed_core_options(struct feed_core *f, const struct feed_config *config);

/* Effects are valid until the next step. */
void feed_step(struct feed_core *f, uint64_t now, const struct feed_event *ev,
               const struct feed_effect **ret_effects, size_t *ret_count);

/* When to send a TICK; UINT64_MAX: never. */
uint64_t feed_due(const struct feed_core *f);

enum feed_phase feed_core_phase(const struct feed_core *f);
int64_t feed_core_last(const struct feed_core *f); /* the cursor; FEED_NONE also if not loaded */
size_t feed_core_sessions(const struct feed_core *f);
const struct feed_counts *feed_core_counts(const struct feed_core *f);

const char *feed_end_name(enum feed_end end);       /* "DUPLICATE_BLOCK" */
const char *feed_phase_name(enum feed_phase phase); /* "VERIFY_WAIT" */

void feed_phase_dump(struct buf *out);   /* the phases as a diagram */
void feed_session_dump(struct buf *out); /* the states of a session as a diagram */
/* The moves of the phases (low bits) and of the sessions (from bit 32) that were made. */
uint64_t feed_core_moved(const struct feed_core *f);
void feed_core_missing(uint64_t moved, struct buf *out);

/* The last step made a move that no table has: which one. NULL, as ever: none. All sessions were
 * ended, and the feed is served anew from the cursor in the database. */
const char *feed_core_bug(const struct feed_core *f);
/* What contradicts itself in the core; NULL: nothing. The simulation asks after every step. */
const char *feed_core_check(const struct feed_core *f);

#endif
