/* Private to the core of a feed: its data and its two tables of states. */
#ifndef FEED_CORE_FEED_INTERNAL_H
#define FEED_CORE_FEED_INTERNAL_H

#include "base/backoff.h"
#include "base/rng.h"
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
    uint64_t session; /* whose it is; 0: its stream is closed */
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
    uint64_t barred_at; /* since when others may try it; FEED_NEVER: nobody is barred */
    uint64_t load_at;   /* LOAD_LATER */
    bool leaving;       /* ends with the copy that is being verified or stored */
    enum feed_end leave_end;

    uint64_t moved; /* the moves of both tables that were made */
    struct feed_counts counts;
    struct feed_effect *effects;
    size_t effect_count, effect_cap;
};

/* The only ways to change a phase or a state: they check the tables. */
void feed__phase(struct feed_core *f, enum feed_phase to);
void feed__session(struct feed_core *f, struct feed_session_row *s, enum feed_session_state to);
void feed__opened(struct feed_core *f);
void feed__gone(struct feed_core *f, const struct feed_session_row *s);

#endif
