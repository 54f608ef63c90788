/* The manager's own types. The files of the core:
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
#ifndef RELAY_MANAGER_INTERNAL_H
#define RELAY_MANAGER_INTERNAL_H

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

/* What the manager knows, by the file that owns it: others read it, and change it through that
 * file's functions where they do not say otherwise. */

struct chain_view { /* chain.c: the node, and what it says of the chain */
    bool up;
    uint64_t finalized, best;
    uint64_t best_known; /* the highest block that any node reported */
    uint32_t spec_version, transaction_version;
    uint64_t version_since; /* the best block at which another transaction_version than the
                               accepted one was heard; UINT64_MAX: none was */
    uint32_t runtimes;      /* changes of the runtime */
    /* The best block at the last one: a final block far above it is under this runtime. */
    uint64_t runtime_block;
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
    uint64_t unread_from, unread_to; /* among these are blocks that no endpoint has; 0: none */
    uint64_t stuck_at, stuck_again;  /* a wait needs this block; when it is asked for again */
    uint64_t at; /* ms: when the last one was worked through, or following began */
};

struct chain_ticks {   /* chain.c: the pace of repair */
    uint32_t count;    /* best blocks, and steps of a stalled chain, from 1 */
    uint64_t at;       /* deadline of a stalled chain's next step */
    uint64_t block_at; /* ms: when the last best block came, or the node */
    struct backoff stall;
};

struct load { /* load.c */
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

struct sending { /* submit.c: what the node takes; window.c: how much of it */
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
    bool no_funds; /* the last submission failed for lack of funds; outlives the suspension, which
                      ends when no row is left */
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

struct era_wait {       /* era_wait.c: what lost commits have sent may still be included */
    bool on;            /* nothing is admitted, signed or ended before it is over */
    bool immortal;      /* and bytes without an era may be out there, which nothing waits for */
    bool found, wanted; /* `heard` is known; and is to be stored */
    bool told;          /* for how long it waits */
    uint64_t since_ms;  /* lost commits are older, by the database's clock */
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
    /* number of the first LOOK after that: earlier polls may have read before it */
    uint64_t first_poll;
    bool not_signed;   /* SIGNING: the adapter found that out when it signed, */
    uint32_t runtimes; /* under this runtime */
};

struct life {     /* life.c: an account that was reaped begins anew */
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
    struct suspension suspension;
    struct life life;
    struct head_of_line head;
    uint64_t polls; /* stop.c: number of the last LOOK */
    struct writes writes;
    struct step_effects fx;
};

/* ---- phase_table.c ---- */
void manager__phase(struct manager *m, enum manager_phase to);
/* since the last recovery a move was made that no table has */
static inline bool manager__illegal(const struct manager *m)
{
    return (m->phases.illegal | m->line.moves.illegal) != 0;
}
/* After a move that no table has: alerts, drops what this step decided, and loads everything
 * again. */
void manager__recover(struct manager *m);

/* ---- effects.c ---- */
void manager__effects_reset(struct manager *m);
/* freed at the next step */
void *manager__arena_add(struct manager *m, void *p);
struct manager_effect *manager__fx(struct manager *m, enum manager_effect_type type);
void manager__alert(struct manager *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What these alerts reported is over: the next time they are raised again. */
static inline void manager__alert_over(struct manager *m, unsigned kinds)
{
    m->alerted &= ~kinds;
}
void manager__alert_once(struct manager *m, unsigned kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- load.c ---- */
void manager__promote(struct manager *m, int64_t epoch);
void manager__reload(struct manager *m, bool at_once);
void manager__forget(struct manager *m);
void manager__snapshot(struct manager *m, const struct manager_event *ev);
void manager__load_failed(struct manager *m, int code);
void manager__load_pump(struct manager *m);

/* ---- chain.c ---- */
void manager__chain_ready(struct manager *m);
void manager__runtime(struct manager *m, const struct manager_event *ev);
void manager__chain_back(struct manager *m);
void manager__chain_up(struct manager *m, const struct manager_event *ev);
void manager__chain_down(struct manager *m);
void manager__best(struct manager *m, const struct manager_event *ev);

void manager__chain_tick(struct manager *m, bool block);
void manager__stall_pump(struct manager *m);

/* ---- probe.c ---- */
/* Something is uncertain: a probe is wanted now, or with the next tick. */
static inline void manager__probe_soon(struct manager *m)
{
    m->probe.now = true;
}
static inline void manager__probe_at_beat(struct manager *m)
{
    m->probe.at_tick = true;
}
void manager__pool_answer(struct manager *m, const struct manager_event *ev);
void manager__nonce_answer(struct manager *m, const struct manager_event *ev);
void manager__unfinal_answer(struct manager *m, const struct manager_event *ev);
void manager__probe_stop(struct manager *m);
bool manager__probe_may(const struct manager *m);
void manager__probe_pump(struct manager *m);
void manager__probe_tick(struct manager *m);

/* ---- judge.c ---- */
void manager__unsure(struct manager *m, struct row *row, bool at_once, bool tentative);
void manager__pooled(struct manager *m, struct row *row, bool found);
/* What waited to be sent again, or for new bytes, was in some pool all the time: whatever was
 * answered, a refusal as invalid included. */
void manager__nonces_used(struct manager *m, uint64_t best_nonce);
void manager__judge_all(struct manager *m, uint64_t best_nonce);

/* ---- nonces.c ---- */
bool manager__try_rebuild(struct manager *m, uint64_t best_nonce);
/* An account nonce as of this block that cannot be: it says nothing, and is not stored. */
/* All below it is accounted for: by rows, by the table, or by final blocks. */
uint64_t manager__nonce_known(const struct manager *m);
bool manager__nonce_absurd(struct manager *m, uint64_t nonce, uint64_t block);
bool manager__try_find_gaps(struct manager *m, uint64_t best_nonce);
void manager__chain_nonce(struct manager *m, uint64_t nonce, const char *where);
void manager__rewind_check(struct manager *m, uint64_t best_nonce);
void manager__give_back_pump(struct manager *m);
void manager__nonce_pump(struct manager *m);

/* ---- admit.c ---- */
void manager__outbox(struct manager *m, const struct manager_event *ev);
void manager__admit_pump(struct manager *m);
uint32_t manager__room(const struct manager *m);

/* ---- admitted.c ---- */
void manager__admitted(struct manager *m, const struct manager_event *ev);
/* nothing is on its way any more */
void manager__admit_over(struct manager *m);

/* ---- presigned.c ---- */
/* Those among the rows of the outbox. Returns the nonce that calls have to stay below (the next
 * one: such a row is being admitted); ret_rejects: those that end now. */
uint64_t manager__presigned_rows(struct manager *m, const struct manager_event *ev,
                                 struct tx_end **ret_rejects, size_t *ret_count);
/* The row wants other bytes, and there are none: it ends if its own can never get in, or waits
 * to be sent again. */
void manager__presigned_retry(struct manager *m, struct row *row, enum row_reason reason);
/* a block is final: which of them can never get in? */
void manager__presigned_dead(struct manager *m);
/* rows of our own wait above it */
bool manager__hole_ours(const struct manager *m, const struct row *hole);

/* ---- submit.c ---- */
void manager__send_pump(struct manager *m);
/* The open row that an answer or a status is about; NULL: it ended meanwhile, or was forgotten. */
struct row *manager__known(const struct manager *m, uint64_t nonce, const uint8_t hash[32],
                           bool *ret_current);
void manager__reply(struct manager *m, const struct manager_event *ev);
/* The probe that was answered while these bytes were on the wire or were signed, or before, showed
 * their nonce used: they are not sent. Where a fork has freed it since, the next probe says so. */
void manager__used_meanwhile(struct manager *m, struct row *row);

/* ---- window.c ---- */
void manager__window_reset(struct manager *m);
bool manager__window_open(const struct manager *m, const struct row *row);
bool manager__wire_open(const struct manager *m);
void manager__window_accepted(struct manager *m); /* a submission was */
/* A block has come: the window grows unless the pool was full in it. */
void manager__window_block(struct manager *m);
void manager__window_shrink(struct manager *m);
/* The pool has no room for the head of the line, and our own later nonces are in it: true, it is
 * signed again with a tip for which a pool makes room. */
bool manager__window_outbid(struct manager *m, struct row *row);

/* ---- statuses.c ---- */
void manager__unwatch(struct manager *m, struct row *row);
void manager__watch_status(struct manager *m, const struct manager_event *ev);
void manager__watch_lost(struct manager *m, const struct manager_event *ev);
void manager__states_pump(struct manager *m);

/* ---- resign.c ---- */
void manager__resign(struct manager *m, struct row *row, enum row_reason reason);
void manager__eras(struct manager *m);
void manager__late_resigns(struct manager *m);
void manager__sign_pump(struct manager *m);

/* ---- finality.c ---- */
/* The account's nonce at the last finalized block that was read is known: no nonce from
 * `final.nonce` on is used there. */
bool manager__nonce_settled(const struct manager *m);
/* Up to this finalized block it is known whether it held bytes that are on record. One that no
 * endpoint has may hold them until the account's nonce behind it was read. */
uint64_t manager__searched(const struct manager *m);
/* May a block that no endpoint has hold bytes of this row? */
bool manager__may_be_unread(const struct manager *m, const struct row *row);
void manager__follow(struct manager *m, uint64_t from);
void manager__finalized(struct manager *m, const struct manager_block *told);
void manager__consumed(struct manager *m, uint64_t account_nonce,
                       const struct manager_block *block);

/* ---- ends.c ---- */
/* finish or requeue */
void manager__ends_stored(struct manager *m, const struct manager_event *ev);
void manager__finish_pump(struct manager *m);
/* Some row is about to go back to the outbox. */
bool manager__requeuing(const struct manager *m);
void manager__end_unused(struct manager *m, struct row *row, const char *outcome, const char *why);
/* The account begins a new life: what its former one has signed and can no longer get in ends. */
void manager__end_life(struct manager *m);
/* If nothing else is open: holes with nothing signed behind them. */
void manager__drop_holes(struct manager *m);
bool manager__try_drop_gap(struct manager *m, struct row *row);
/* The block holds this attempt of the row. */
void manager__end_ours(struct manager *m, struct row *row, const struct tx_included *x,
                       const struct manager_block *block);
/* The block holds another program's extrinsic at the row's nonce. */
void manager__end_usurped(struct manager *m, struct row *row, const struct tx_included *x,
                          const struct manager_block *block);
/* The nonce is used as of this block, and no block showed by what. */
void manager__end_unseen(struct manager *m, struct row *row, const struct manager_block *block);
#ifdef TXRELAY_PLANT
void manager__requeue_early(struct manager *m, struct row *row);
void manager__trust_watch(struct manager *m, struct row *row, const uint8_t *block_hash);
#endif

/* ---- validity.c ---- */
/* Some of its bytes may be in a pool and may still be included. */
bool manager__live(const struct manager *m, const struct row *row);
/* none of its bytes can get in */
bool manager__dead(const struct manager *m, const struct row *row);
bool manager__stillborn(struct manager *m);    /* with an alert */
bool manager__unborn(const struct manager *m); /* the same, as a question */
/* The best block that something may end by: not one that is far above the last one that was read,
 * because the node may have invented it. */
uint64_t manager__plausible_best(const struct manager *m);
/* UINT64_MAX: no deadline. 0: none fits now, because it is late or because finality lags. */
uint32_t manager__era_period(const struct manager *m, uint64_t deadline_block);
/* None will fit any more, however near finality comes to the best block. */
bool manager__era_late(const struct manager *m, uint64_t deadline_block);
/* One may fit once finality has caught up. */
bool manager__era_waits(const struct manager *m, uint64_t deadline_block);
/* true, with the reason: the runtime is not the one that the call was made for. */
bool manager__guarded(const struct manager *m, uint32_t guard, char *reason, size_t size);

/* ---- stop.c ---- */
void manager__poll_requests(struct manager *m); /* a request poll is wanted */
void manager__requests_polled(struct manager *m, const struct manager_event *ev);
/* no more bytes fit before its deadline: stop */
void manager__late(struct manager *m, struct row *row);
void manager__stop(struct row *row, const char *outcome, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* what a stop means in its state */
void manager__stop_now(struct manager *m, struct row *row);
/* The row wants new bytes or wants to be sent again, and must not: it has become a FILL, or a
 * RESIGN whose bytes are a filler, or it ends. */
bool manager__try_stop(struct manager *m, struct row *row);
/* A filler with a higher tip is signed against the row's own bytes; false: it may not pay more. */
bool manager__try_replace(struct manager *m, struct row *row);
/* A node refuses it as invalid: a filler is signed against it, with the same tip if that may not
 * rise. */
void manager__give_up(struct manager *m, struct row *row, const char *why);

/* ---- tip.c ---- */
struct row_terms *manager__terms(struct row *row);
/* New bytes of its own need an era that ends by its deadline. */
bool manager__may_sign(const struct manager *m, const struct row *row);
u128 manager__tip_first(const struct manager *m, const struct manager_outbox_row *o);
u128 manager__tip_next(const struct manager *m, const struct row *row);
u128 manager__tip_of_filler(const struct manager *m); /* at a nonce without a transaction */
/* more was asked than it pays */
bool manager__tip_short(const struct manager *m, const struct row *row);
void manager__tip_paid(struct row *row, u128 tip);
/* It is to pay more by this, as far as the cap allows; false: the cap is reached. */
bool manager__try_add_tip(const struct manager *m, struct row *row, u128 more);
/* one step; false: the cap is reached */
bool manager__try_raise_tip(struct manager *m, struct row *row);
/* by the ladder; true: it is a RESIGN now */
bool manager__try_outbid(struct manager *m, struct row *row);
void manager__sign_soon(struct manager *m, struct row *row);
void manager__bump(struct manager *m, const struct tx_stop *s);
/* true: it has become a RESIGN or a FILL */
bool manager__try_unblock_head(struct manager *m, struct row *row);

/* ---- head.c ---- */
/* The lowest nonce that is in no block yet; NULL: there is none. */
struct row *manager__head(const struct manager *m);
void manager__head_tick(struct manager *m);

/* ---- suspend.c ---- */
bool manager__blocked(const struct manager *m);
bool manager__cannot_sign(const struct manager *m);
/* What a node's runtime takes of this account; why: NULL, or why nothing can be signed for it. */
void manager__chain_signing(struct manager *m, u128 tip_max, const char *why);
void manager__signing_check(struct manager *m); /* begin or end the suspension, by what is known */
void manager__signing_refused(struct manager *m, const char *why); /* found when it was tried */
void manager__suspension_reset(struct manager *m);
void manager__suspend(struct manager *m, enum manager_suspension suspension, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void manager__paid(struct manager *m);
void manager__suspension_pump(struct manager *m);
void manager__pause_stored(struct manager *m, const struct manager_event *ev);
/* The write, if it is of the suspension, was not carried out, or its outcome is unknown. */
void manager__suspension_unstored(struct manager *m, enum manager_effect_type write);
void manager__account_polled(struct manager *m, const struct manager_account *account,
                             uint64_t number);
void manager__account_loaded(struct manager *m, const struct manager_event *ev);
void manager__version_check(struct manager *m);
/* An operator ordered the account to go on. */
void manager__ordered(struct manager *m);

/* ---- life.c ---- */
void manager__reaped(struct manager *m, uint64_t nonce, uint64_t was, uint64_t block);
void manager__former_life(struct manager *m, const struct manager_block *block);
void manager__reborn_pump(struct manager *m);
void manager__nonce_stored(struct manager *m, const struct manager_event *ev);

/* ---- reconcile.c ---- */
/* from the first block that could hold what is looked for */
void manager__follow_loaded(struct manager *m);
void manager__found_clear(struct manager *m);
/* the chain is there: how long to wait, and the first block to search */
uint64_t manager__reconcile_begin(struct manager *m);
/* The search began behind blocks that it should read: the node had invented a final height. */
bool manager__reconcile_skips(const struct manager *m);
/* what is not final yet is waited for, from here on */
void manager__reconcile_patience(struct manager *m);
void manager__reconcile_loaded(struct manager *m, const struct manager_event *ev);
/* An extrinsic of ours that no row knows; true: it is kept to be adopted. `block` NULL: in a
 * pool. */
bool manager__try_collect(struct manager *m, const struct tx_included *x,
                          const struct manager_block *block);
/* The first probe is answered; false: it is not yet certain what the database lost. */
bool manager__try_reconcile(struct manager *m, uint64_t best_nonce);
void manager__adopt_pump(struct manager *m);
void manager__adopted(struct manager *m, const struct manager_event *ev);

/* ---- era_wait.c ---- */
void manager__era_wait_loaded(struct manager *m, const struct manager_event *ev);
/* a finalized block was worked through */
void manager__era_wait_block(struct manager *m, const struct manager_block *block);
void manager__era_wait_pump(struct manager *m);
void manager__heard_stored(struct manager *m, const struct manager_event *ev);
/* Blocks that are left; 0: none, or not known yet. */
uint64_t manager__era_wait_left(const struct manager *m);
/* For ADOPT: what was read; -1: it did not wait. */
int64_t manager__era_wait_read(const struct manager *m);

/* ---- writes.c ---- */
void manager__batch_put(struct batch *b, uint64_t nonce);
/* The effect of a write; none of its kind is in flight. */
struct manager_effect *manager__write(struct manager *m, enum manager_effect_type write);
bool manager__writing(const struct manager *m);
void manager__write_failed(struct manager *m, const struct manager_event *ev);
void manager__stored(struct manager *m, const struct manager_event *ev);

#endif
