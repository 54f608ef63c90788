/* What the manager knows. Each room has a header with its functions, which names its files. The
 * files of the core:
 *   manager.c      events, the step, the order of the pumps, which turn what is due into effects
 *   next.h         what a pump does next, as pure functions of a view
 *   phase_table.c  the moves of the phases; what follows a move that no table has
 *   effects.c      the list of effects and the memory that lives until the next step
 *   load.c         promotion, snapshot, load again
 *   chain.c        the node is up or down, best blocks, the runtime, the pace of repair
 *   probe.c        questions to pool and chain
 *   judge.c        what becomes of a row by the answers
 *   nonces.c       the next nonce, holes, nonces that are free again
 *   admit.c        outbox to rows
 *   admitted.c     what was admitted becomes rows
 *   presigned.c    presigned transactions: never signed again, at given nonces
 *   submit.c       submissions and their answers
 *   window.c       how much of ours a pool takes
 *   statuses.c     watch statuses, received and stored
 *   resign.c       new bytes and fillers
 *   finality.c     finalized blocks: the truth
 *   ends.c         how a row ends, and the storing of it
 *   validity.c     eras, deadlines, runtimes: what can be included for how long
 *   stop.c         deadlines and cancellations: what is no longer signed
 *   tip.c          what an attempt pays, bumps
 *   head.c         the head of the line, and gaps below pooled rows
 *   suspend.c      what the table says of the account; why it is suspended, and its orders
 *   life.c         a reaped account
 *   reconcile.c    what the database lost and the chain still has
 *   era_wait.c     how long lost extrinsics may still be included
 *   clocks.c       whether the database's clock is ahead
 *   obstacle.c     what keeps the account from going on, for operators
 *   obstacle_track.c  which obstacles last
 *   writes.c       what the store answered
 *   answer_table.c what an answer to a submission means and proves
 *   rules.c        rules that the adapters call
 *   names.c        names of states and codes, for operators
 *   check.c        invariants
 *
 * The rows and their indexes are relay/core/line. Besides that only base/ is included here: the
 * build and test/lint/purity.sh refuse anything else. */
#ifndef RELAY_CORE_TX_STATE_H
#define RELAY_CORE_TX_STATE_H

#include "base/backoff.h"
#include "base/check.h"
#include "base/plant.h"
#include "base/sm.h"
#include "next.h"
#include "relay/core/line/line.h"
#include "relay/core/tx/answer.h"
#include "relay/core/tx/manager.h"
#include "row_facts.h"

enum {
    ERA_PERIOD_MIN = 4, /* blocks; sp-runtime's bounds, and a usual one where eras are immortal */
    ERA_PERIOD_MAX = 64,
    TRAPS_MAX = 3, /* times a runtime may trap on the same bytes before they are given up */
    FINISH_BATCH_MAX = 1024,  /* ends of one store write */
    PROBE_TIMEOUT_MS = 30000, /* a query without an answer is repeated */
    STALL_BASE_MS = 10000, /* after this long without a best block, repair advances all the same */
    STALL_CAP_MS = 120000,
    STALL_SILENT_MS = 30000, /* without one, rows of which nothing is heard are asked about */
    RESIGN_EASY =
        4, /* this many new signatures in a row come one per block, later ones more rarely */
    RESIGN_GAP_MAX = 8,   /* blocks between two later ones */
    NOTE_SIZE = 200,      /* of a node's text that is kept */
    SEARCH_BLOCKS = 1024, /* how many blocks back an immortal presigned extrinsic is searched for */
    SEARCH_NONCES = 4096, /* one whose nonce is further back is not searched for */
    FUTURES_MAX = 5,      /* answers 'future' in a row before an alert */
    CONFLICTS_MAX = 3,    /* admissions refused in a row before everything is loaded again */
    RECONCILE_BLOCKS_MAX = 100000, /* most blocks searched for lost commits */
    FOREIGN_ANSWERS = 4,           /* in a row, see is_certain in probe.c */
    NO_FUNDS_RETRY_MS = 250,       /* between two tries of an account that cannot pay, at least */
};

enum {
    ALERT_FOREIGN_POOL = 2,
    ALERT_BUSY = 4,
    ALERT_INVALID = 8,
    ALERT_BEHIND = 16,
    ALERT_GAP = 32,
    ALERT_FINALITY = 64,
    ALERT_FUTURE = 128,
    ALERT_GUARD = 512,
    ALERT_BALANCE = 1024,
    ALERT_BELOW = 2048,
    ALERT_NONCE = 4096,
    ALERT_POOL = 8192,
    ALERT_UNREAD = 16384,
    ALERT_DEADLINE = 32768,
    ALERTS_OF_SENDING = ALERT_FOREIGN_POOL | ALERT_BUSY | ALERT_INVALID | ALERT_FUTURE
};

/* What the manager knows, by the file that owns it. Others read it. Where the comment says `alone`,
 * only the files that it names write it (test/lint/owners.py), and the others call them. */

struct chain_view { /* chain.c alone: the node, and what it says of the chain */
    bool up;
    uint64_t finalized, best;
    uint64_t best_known; /* the highest block that any node reported */
    uint32_t spec_version, transaction_version;
    uint32_t runtimes;     /* changes of the runtime */
    u128 tip_max;          /* the highest tip that the runtime's type holds; 0: unknown */
    char unsupported[200]; /* why nothing can be signed for the account; "": it can */
};

struct final_view {        /* finality.c: what finalized blocks said */
    bool following;        /* FOLLOW was asked since the rows were loaded */
    uint64_t processed;    /* highest finalized height that was worked through */
    uint64_t read;         /* the highest one ever, also while earlier ones are read again */
    uint64_t nonce;        /* highest account nonce of a finalized block */
    uint64_t nonce_block;  /* highest block that `nonce` takes into account */
    bool known;            /* `nonce` is */
    uint64_t nonce_read;   /* highest block at which the account's nonce was read */
    uint64_t regular_from; /* earlier blocks are searched for what is lost, and say nothing else */
    uint64_t gap_from;     /* a skipped height that was requested again */
    uint64_t spec_block;   /* the last one whose runtime is known, */
    uint32_t spec_version; /* and its version */
    uint64_t unread_from, unread_to; /* among these are blocks that no endpoint has; 0: none */
    uint64_t stuck_at, stuck_again;  /* a wait needs this block; when it is asked for again */
    uint64_t at; /* ms: when the last one was worked through, or following began */
};

struct chain_ticks {   /* chain.c: the pace of repair */
    uint32_t count;    /* best heads, and steps of a stalled chain, from 1 */
    uint64_t highest;  /* best block that was counted as one */
    uint64_t at;       /* deadline of a stalled chain's next step */
    uint64_t block_at; /* ms: when the last best block came, or the node */
    struct backoff stall, silent;
    uint64_t silent_next; /* see manager__silent_at */
};

struct load { /* load.c alone */
    bool out;
    uint64_t at;
    struct backoff backoff;
    /* The database refused this write, and may refuse it after each load: the back-off goes on
     * until it is stored. */
    bool refused;
    enum manager_effect_type refused_write;
    int64_t after;
    int64_t next_nonce; /* of the snapshot; -1: never set */
    uint64_t min_submitted, max_submitted;
};

enum probe { PROBE_NONE, PROBE_POOL, PROBE_NONCE, PROBE_UNFINAL };

struct probing {         /* probe.c, and judge.c the scout */
    uint64_t used_below; /* the nonce of the last probe at this node */
    enum probe question;
    enum probe unanswered; /* the last one that was not answered */
    bool discard;          /* the answer that is on its way is too old to be used */
    bool now, at_tick;
    uint64_t at; /* deadline: retry or timeout; UINT64_MAX: none */
    struct backoff backoff;
    uint64_t nonce;    /* UNFINAL: what was answered before */
    bool used_unfinal; /* the last such answer showed more used nonces */
    bool unread;       /* there are too many such blocks: what seems lost is not judged */
    /* nonce whose return to the pool shows who else is there; UINT64_MAX: none */
    uint64_t probe_head;
    bool probe_head_back; /* it is back: what the next probe does not see is lost */
    bool pool_untold;     /* no endpoint told its pool when it was asked last */
    /* Answers in a row with a nonce above all that is known, and the lowest of them. */
    unsigned foreign_answers;
    uint64_t foreign;
    uint64_t certain;     /* what such answers have made certain */
    bool node_unverified; /* the node's account nonce is unknown or behind: do not submit */
};

struct next_nonce { /* nonces.c */
    bool rewind;    /* the stored next nonce is above every row and the chain: admission waits */
    bool wanted, lower;  /* to be stored; and it goes down */
    uint64_t given_back; /* lowest nonce that is free again since the next one was set; UINT64_MAX:
                            none */
};

struct admitting {              /* the terms of one row of the admission in flight */
    uint64_t nonce, from_block; /* presigned */
    u128 max_tip;
    uint64_t deadline_block;
    uint32_t retries;
};

struct admission {     /* admit.c and presigned.c */
    bool wanted;       /* rows of the outbox were asked for */
    bool presigned;    /* those in flight are presigned */
    uint32_t count;    /* rows in flight; 0: none */
    uint32_t ahead;    /* of them, those at the next nonce and above it */
    uint64_t first;    /* the next nonce when they were taken */
    uint64_t block;    /* and the height that was worked through */
    uint32_t runtimes; /* and the runtime */
    uint32_t conflicts;
    struct admitting *rows;
};

struct sending { /* submit.c and window.c alone: what the node takes, and how much of it */
    uint32_t window;
    uint32_t limit;      /* of ours a pool held this many when it was full; UINT32_MAX: unknown */
    uint32_t limit_from; /* the block from which on it is tried whether there is room for more, */
    uint32_t limit_wait; /* which was put off for so many */
    uint32_t wire;       /* most submissions without an answer */
    uint32_t accepted;   /* since that grew, modulo WIRE_STEP */
    bool full_this_block;
    bool half_open; /* after a refusal for lack of room, money or service: one at a time until one
                       is accepted */
    bool gate_shut;
    uint32_t no_funds_tick;  /* of the last submission */
    uint64_t no_funds_until; /* not tried before, however fast the blocks */
};

struct reconciling { /* reconcile.c: commits that may be lost */
    bool on;         /* blocks and pool are searched; nothing is admitted before ADOPT is stored */
    bool done;       /* in this leadership */
    bool adopt_due;  /* found[] is to be stored */
    uint64_t from;   /* no block up to it can know more */
    uint64_t after;  /* the search began behind this one, which is higher if `from` is too far */
    uint64_t end;    /* used nonces that are not final by then are no longer waited for */
    uint64_t seen_block; /* of the snapshot */
    struct tx_found *found;
    size_t found_count;
};

struct clocks {       /* clocks.c: what they showed at the load */
    int64_t ahead_ms; /* the database's is ahead of this relay's by so much, or behind */
    int64_t here_ms;
    uint64_t at;
    bool late; /* this relay's is behind the chain's */
};

struct era_wait {       /* era_wait.c: what lost commits have sent may still be included */
    bool on;            /* nothing is admitted, signed or ended before it is over */
    bool immortal;      /* and bytes without an era may be out there, which nothing waits for */
    bool found, wanted; /* `heard` is known; and is to be stored */
    bool told;          /* for how long it waits */
    int64_t since_ms;   /* lost commits are older, by the database's clock */
    uint64_t heard;     /* a block not lower than any that they could know */
    uint64_t until;     /* the last block of the wait; UINT64_MAX: not known yet */
    uint64_t read;      /* every finalized block up to this one was read since the load */
};

struct suspension { /* suspend.c: why the account is suspended */
    enum manager_suspension why;
    char text[200];
    bool wanted; /* to be stored */
    /* stored: a request poll that finds the account not paused is the order to go on */
    bool stored;
    /* number of the first request poll after that: earlier polls may have read before it */
    uint64_t first_poll;
    bool no_funds; /* the last submission failed for lack of funds; outlives the suspension, which
                      ends when no row is left */
    uint64_t version_since; /* the best block at which another transaction_version than the
                               accepted one was heard; UINT64_MAX: none was */
    uint64_t version_at;    /* when, from a node that is there since */
    bool not_signed;        /* SIGNING: the adapter found that out when it signed, */
    uint32_t runtimes;      /* under this runtime */
};

struct life {     /* life.c alone: an account that was reaped begins anew */
    bool ordered; /* to bury the former life */
    bool wanted;  /* the next nonce of the new one is being stored */
    bool known;   /* `nonce` and `block` are */
    uint64_t stored_nonce;
    uint64_t nonce; /* the account's, of its present life */
    /* Once it is final, what was signed in the former life is dead, also of ended rows. */
    uint64_t block;
    uint64_t used_block; /* see used_nonce; UINT64_MAX: the chain is not there yet */
    uint64_t used_nonce; /* by the table's records all below it were used for good; 0: unknown */
};

struct head_of_line { /* head.c */
    uint64_t nonce;   /* UINT64_MAX: none */
    uint32_t since, steps;
    uint32_t gap_since; /* the block count at which a gap was seen first; 0: there is none */
    uint32_t gap_longest;
    uint64_t gaps; /* that began */
};

struct batch {
    uint64_t *nonces;
    size_t count, cap;
};

struct writes { /* writes.c: at most one of a kind is in flight */
    bool out[MANAGER_WRITE_COUNT];
    struct batch batch[MANAGER_WRITE_COUNT];
    uint64_t sign_after_tick;   /* nothing could be signed: retry at this tick */
    bool unsigned_since_stored; /* and nothing that was signed has been stored since */
};

struct step_effects { /* effects.c: of this step, and the memory that they point into */
    struct manager_effect *list;
    size_t count, cap;
    void **garbage;
    size_t garbage_count, garbage_cap;
};

struct manager {
    struct manager_config config;
    enum manager_phase phase; /* phase_table.c */
    struct sm_trace phases;
    uint64_t now;
    bool fenced; /* leadership is lost: silent until DEMOTED */
    struct rng rng;
    unsigned alerted; /* effects.c: the ALERT_s that were raised and have not ended */

    struct line line;
    struct manager_account account; /* what the table says of it (suspend.c) */
    struct chain_view chain;
    struct final_view final;
    struct chain_ticks chain_tick;
    struct load load;
    struct probing probe;
    struct next_nonce nonces;
    struct admission admit;
    struct sending send;
    struct reconciling reconcile;
    struct era_wait era_wait;
    struct clocks clocks;
    struct suspension suspension;
    struct life life;
    struct head_of_line head;
    uint64_t polls; /* stop.c: number of the last request poll */
    struct writes writes;
    struct step_effects fx;
};

#endif
