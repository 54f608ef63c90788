/* Private to the core of a feed: its data, and what its files call of each other. */
#ifndef FEED_CORE_FEED_INTERNAL_H
#define FEED_CORE_FEED_INTERNAL_H

#include "base/backoff.h"
#include "base/rng.h"
#include "base/sm.h"
#include "base/table.h"
#include "feed/core/feed.h"

#define FEED_NEVER UINT64_MAX

enum { FEED_ABANDONED_MAX = 8 };

struct feed_session_row {
    uint64_t id;
    enum feed_session_state state;
    int64_t number; /* TAKING, WAIT, SKIPPED: the one that its header named */
    int publisher;  /* of its last header; -1: none yet */
    bool held;
    UT_hash_handle hh;
};

/* The one copy that may become the next batch. */
struct feed_copy {
    uint64_t id;      /* 0: none */
    uint64_t session; /* whose it is; its stream may be closed */
    int publisher;
    uint64_t won_at, complete_at;
    uint64_t bytes;
    uint32_t calls;
};

/* Sessions are in the order in which they came, so a step depends on its events alone. */
struct feed_core {
    struct feed_config config;
    struct rng rng;
    struct backoff retry;
    enum feed_phase phase;
    int64_t last; /* the cursor; its value before a load is from the former tenure */
    struct feed_session_row *sessions;
    size_t open;    /* sessions that are not FEED_ENDED */
    size_t skipped; /* sessions that are FEED_SKIPPED: they wait for this core */
    uint64_t loads; /* numbers given to loads */
    struct feed_copy copy;
    uint64_t copies;                        /* numbers given to copies */
    uint64_t abandoned[FEED_ABANDONED_MAX]; /* copies whose answer is still to come */
    uint32_t abandoned_count;
    uint32_t barred;    /* publishers whose copy of the next number was bad or late */
    uint64_t barred_at; /* since when others may try it; FEED_NEVER: no publisher is barred */
    uint64_t load_at;   /* LOAD_LATER */
    bool leaving;       /* ends with the copy that is being verified or stored */
    enum feed_end leave_end;

    struct sm_trace phase_moves, session_moves;
    char bug[SM_BUG_MAX]; /* of the last step; "": none */
    struct feed_counts counts;
    struct feed_effect *effects;
    size_t effect_count, effect_cap;
};

/* ---- feed.c ---- */

struct feed_effect *feed__emit(struct feed_core *f, enum feed_effect_type type);
void feed__emit_copy(struct feed_core *f, enum feed_effect_type type); /* about the copy */
/* Ends all sessions, with this code, and gives the copy up. */
void feed__leave(struct feed_core *f, enum feed_end code);
/* The next number is free, or the feed is left if that was to come next. */
void feed__free_number(struct feed_core *f);

/* ---- feed_session.c ---- */

struct feed_session_row *feed__row(struct feed_core *f, uint64_t id); /* NULL: none */
/* The session whose copy it is; NULL: its stream is closed. */
struct feed_session_row *feed__winner(struct feed_core *f);
bool feed__is_open(const struct feed_session_row *s);
void feed__send(struct feed_core *f, const struct feed_session_row *s, enum feed_message message,
                int64_t number);
void feed__hold(struct feed_core *f, struct feed_session_row *s, bool held);
void feed__end(struct feed_core *f, struct feed_session_row *s, enum feed_end code);
/* Tells all open sessions but `but` to send `number` again. None is open once the feed is left. */
void feed__resend(struct feed_core *f, int64_t number, const struct feed_session_row *but);
/* Acknowledges everything up to the cursor, which has moved, to all open sessions. */
void feed__acknowledge(struct feed_core *f);
void feed__on_open(struct feed_core *f, uint64_t id);
/* The client's stream ends, for a reason of its own or with a message of ours. */
void feed__end_client(struct feed_core *f, uint64_t now, struct feed_session_row *s,
                      enum feed_end code);
void feed__on_gone(struct feed_core *f, uint64_t now, struct feed_session_row *s);

/* ---- feed_winner.c ---- */

/* A publisher whose copy was bad or late lets the others try first. */
void feed__bar(struct feed_core *f, int publisher, uint64_t now);
void feed__unbar(struct feed_core *f);
/* The winner's copy is given up before its trailer. */
void feed__lose(struct feed_core *f, uint64_t now, bool barred);
/* Ends the winner, who was too slow, because others wait. */
void feed__replace(struct feed_core *f, uint64_t now);
void feed__high_header(struct feed_core *f, struct feed_session_row *s); /* above cursor + 1 */
void feed__on_header(struct feed_core *f, uint64_t now, struct feed_session_row *s,
                     const struct feed_event *ev);
void feed__on_items(struct feed_core *f, uint64_t now, struct feed_session_row *s,
                    const struct feed_event *ev);
void feed__on_trailer(struct feed_core *f, uint64_t now, struct feed_session_row *s);

/* ---- feed_answer.c ---- */

bool feed__waits_for_answer(const struct feed_core *f);
/* The copy ends here. The answer about it may still be under way. */
void feed__drop(struct feed_core *f, bool answer_comes);
void feed__load(struct feed_core *f);
/* No answer in time. An answer that comes later changes nothing: the cursor decides. */
void feed__time_out(struct feed_core *f, uint64_t now);
void feed__on_verified(struct feed_core *f, uint64_t now, const struct feed_event *ev);
void feed__on_stored(struct feed_core *f, uint64_t now, const struct feed_event *ev);
/* The answer about a copy that was given up: another number may be won again. */
void feed__late_answer(struct feed_core *f, uint64_t copy);
void feed__on_loaded(struct feed_core *f, uint64_t now, const struct feed_event *ev);

/* ---- feed_table.c ---- */

/* The only ways to change a phase or a state: they check the tables. */
void feed__phase(struct feed_core *f, enum feed_phase to);
void feed__session(struct feed_core *f, struct feed_session_row *s, enum feed_session_state to);
void feed__opened(struct feed_core *f);
void feed__gone(struct feed_core *f, const struct feed_session_row *s);
bool feed__illegal(const struct feed_core *f); /* this step made a move that no table has */
void feed__forgive(struct feed_core *f);       /* records it in `bug`; the machine is new */

#endif
