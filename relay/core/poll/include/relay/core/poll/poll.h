/* When to query the table: one pure core for all accounts of a relay. every query that is sent only
 * to find out whether there is something to do is decided here, and nowhere else.
 *
 *   outbox poll    of one account: rows that can be admitted (leader_outbox)
 *   request poll   of one account: cancellations, deadlines, bumps, changed settings
 *                  (leader_poll_requests)
 *   sweep          once a second for all accounts: would one of these find anything? (leader_due)
 *   merged poll    without doorbells: the outbox polls of many accounts in one query (leader_due)
 *   doorbell       taken before a leader sleeps, given back when rows come
 *
 * Each query that is sent carries its reason. The states of an account are drawn in docs/design.md,
 * section 5; poll_table.c prints the diagrams and checks every move against its tables.
 *
 * No wakeup is lost. The doorbell is an exclusive session lock that a sleeping leader holds;
 * enqueue tries it shared and notifies only if that fails. A leader gets it only when no open
 * transaction enqueued while it was awake, and it sleeps only after it has the doorbell and has
 * polled once more (test/model/doorbell.pml).
 *
 * poll_step(core, now, event) changes plain data and queues effects; poll_take() hands them out
 * in order. Carrying one out may step the core again. Neither reads a clock, waits or knows SQL. */
#ifndef RELAY_CORE_POLL_H
#define RELAY_CORE_POLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct poll;

enum {
    POLL_SLOW_MS = 1000, /* polls that are due only because time has passed */
    POLL_STREAK = 2, /* polls in a row that found rows: the next one comes before the doorbell */
    POLL_BACKOFF_MIN_MS = 1, /* while the doorbell cannot be taken; doubles */
    POLL_BACKOFF_MAX_MS = 20,
    /* The wait after a failed query doubles with each further failure, from RETRY up to one of
     * these caps. The end of the trouble, if it is known, ends the wait. */
    POLL_RETRY_MS = 200,
    POLL_FAILED_MS = 5000,          /* something is away: the database, or what the node is asked */
    POLL_REFUSED_MS = 10000,        /* the database refuses the query */
    POLL_UNARMED_MS = POLL_SLOW_MS, /* the doorbell cannot be taken: rows come without a sound */
    POLL_REST_MS = 10000,           /* a covered account re-checks its coverage this often */
    POLL_LOST_MS = 60000,           /* an answer that never comes must not end the polling */
    POLL_SWEEP_MS = 1000,           /* every account's turn comes this often */
    POLL_PAUSE_MS = 200,            /* between sweeps that take longer than that */
    POLL_SLICE = 1000,              /* accounts in one query */
    POLL_AHEAD_MS = 10000,          /* a sweep names times that are nearer than this */
    /* A swept account is covered for this long, or for COVER_TURNS times the interval between its
     * last two turns, if that is longer: when sweeps are slow because the server is, thousands of
     * extra polls would make them slower. */
    POLL_COVER_MS = 3000,
    POLL_COVER_TURNS = 3,
};

enum poll_state {
    POLL_OFF, /* the manager wants no rows, or the account is not led */
    POLL_FETCH_WAIT,
    POLL_BACKOFF,
    POLL_MERGE_WAIT,
    POLL_ARM_WAIT,
    POLL_RECHECK_WAIT,
    POLL_ASLEEP,
    POLL_REQUESTS_OFF, /* the second machine: request polls */
    POLL_REQUESTS_WAIT,
    POLL_REQUESTS_IDLE,
    POLL_STATES
};

enum poll_query {
    POLL_QUERY_OUTBOX,
    POLL_QUERY_REQUESTS,
    POLL_QUERY_ARM,
    POLL_QUERY_DISARM,
    POLL_QUERY_SWEEP,
    POLL_QUERY_MERGED,
    POLL_QUERIES
};

enum poll_reason {
    POLL_WHY_WANTED,      /* the manager asked */
    POLL_WHY_RANG,        /* a wakeup was heard */
    POLL_WHY_ARMED,       /* the doorbell is held: once more before the account sleeps */
    POLL_WHY_NOT_ARMED,   /* the doorbell cannot be taken, and nothing was polled yet */
    POLL_WHY_BACKOFF,     /* there is no doorbell to wait for */
    POLL_WHY_RETRY,       /* the last one failed */
    POLL_WHY_NO_ANSWER,   /* the last one was given up */
    POLL_WHY_FELL_ASLEEP, /* from here on enqueue notifies, so one more request poll sees all times
                           */
    POLL_WHY_SLOW,        /* time passed, and no sweep covers the account */
    POLL_WHY_DEADLINE,    /* a time that the table named has come */
    POLL_WHY_SWEEP,       /* a sweep found something */
    POLL_WHY_MERGED,      /* a merged poll found rows */
    POLL_WHY_TIMED,       /* a request poll found rows whose time has come */
    POLL_WHY_REQUEUED,    /* rows went back to the outbox, or may be admitted again */
    POLL_WHY_EMPTY,       /* arm: no rows */
    POLL_WHY_ROWS,        /* disarm: rows have come */
    POLL_WHY_OVER,        /* disarm: not led any more */
    POLL_WHY_DUE,         /* sweep, merged poll: its time has come */
    POLL_REASONS
};

enum poll_event_type {
    POLL_EV_LED,           /* account: this relay leads it from now on */
    POLL_EV_NOT_LED,       /* account */
    POLL_EV_LEAVING,       /* account: it is being handed over; nothing more is admitted */
    POLL_EV_WANT_ROWS,     /* account, limit: the most rows that the manager can admit */
    POLL_EV_WANT_REQUESTS, /* account, serial: the manager wants a request poll that begins now */
    POLL_EV_RANG,          /* account: a wakeup was heard */
    POLL_EV_REQUEUED,      /* account: rows may be there without a notification */
    /* answers: account, question */
    POLL_EV_ROWS,
    POLL_EV_NO_ROWS,
    POLL_EV_OUTBOX_FAILED,
    POLL_EV_ARMED,
    POLL_EV_NOT_ARMED,
    POLL_EV_ARM_FAILED,
    POLL_EV_REQUESTS, /* requests */
    POLL_EV_REQUESTS_FAILED,
    POLL_EV_SWEPT,  /* question, swept; no account */
    POLL_EV_MERGED, /* the same */
    /* the relay */
    POLL_EV_CONTROL_LOST, /* the session that held the doorbells is gone */
    POLL_EV_STORE_UP,
    POLL_EV_STORE_DOWN,
    POLL_EV_NODE_UP, /* what rows need of the node can be asked again */
    POLL_EV_TICK,
};

/* What a sweep or merged poll found out about one of its accounts; those without a reason are left
 * out. */
struct poll_found {
    size_t index;      /* in the effect's accounts; rising */
    bool lost;         /* another relay leads it */
    bool has_requests; /* a request poll would find something */
    bool has_rows;     /* an outbox poll would find rows */
    int64_t next_ms;   /* until the table's next time; -1: none within ahead_ms */
};

struct poll_event {
    enum poll_event_type type;
    size_t account;
    uint64_t question; /* answers: of the effect */
    union {
        uint32_t limit;
        uint64_t serial;
        bool refused; /* OUTBOX_FAILED, REQUESTS_FAILED: the same query would fail again */
        struct {
            int64_t fingerprint; /* of the account's settings that the manager receives now */
            int64_t next_ms;     /* until the table's next deadline or not_before; -1: none */
            bool has_rows;
        } requests;
        struct {
            bool failed;
            const struct poll_found *found;
            size_t count;
        } swept;
    };
};

/* Query one of the tables' functions, or operate the doorbell. */
struct poll_effect {
    enum poll_query query; /* the type of the effect */
    enum poll_reason why;
    bool lost;       /* no query: the account is led by another relay, says a sweep */
    const char *bug; /* no query: the account made this move, which no table has, and its polls
                        are dropped: load it again. NULL: none */
    size_t account;
    uint64_t tenure;   /* of the account */
    uint64_t question; /* to be given back with the answer; 0: no answer is wanted */
    uint32_t limit;    /* outbox */
    uint64_t serial;   /* requests: of the manager's last wish; the answer covers it */
    /* sweep, merged; borrowed until the next step */
    const size_t *accounts;
    const int64_t *fingerprints; /* -1: not known */
    size_t count;
    uint32_t ahead_ms;
};

struct poll_config {
    size_t accounts;
    uint64_t seed;
    bool doorbells; /* false: a leader polls instead of sleeping */
    bool sweeps;    /* false: every account polls for itself */
};

struct poll *poll_new(const struct poll_config *config, uint64_t now);
struct poll *poll_free(struct poll *p);

/* False: the event answers a query that was given up, or one of a former tenure. The caller drops
 * it and does not pass it to the manager. */
bool poll_step(struct poll *p, uint64_t now, const struct poll_event *ev);
bool poll_take(struct poll *p, struct poll_effect *ret);
uint64_t poll_deadline(const struct poll *p); /* when a TICK is wanted; UINT64_MAX: never */

/* For status, metrics and tests. */
const char *poll_query_name(enum poll_query query);
const char *poll_reason_name(enum poll_reason why);
enum poll_state poll_outbox_state(const struct poll *p, size_t account);
bool poll_covered(const struct poll *p, size_t account, uint64_t now);
void poll_check(const struct poll *p); /* INVARIANTs over the whole state */

/* poll_table.c */
void poll_outbox_dump(struct buf *out); /* the tables as mermaid diagrams */
void poll_requests_dump(struct buf *out);
uint64_t poll_moved(const struct poll *p); /* one bit for each edge that was taken */
void poll_moves_missing(uint64_t moved, struct buf *out);

#endif
