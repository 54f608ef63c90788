/* Private to relay/core/poll/.
 *
 *   poll.c           life, events, effects, the timer
 *   poll_outbox.c    outbox polls and the doorbell of one account
 *   poll_requests.c  request polls of one account
 *   poll_sweep.c     queries for many accounts: when, about whom, and what they found
 *   poll_table.c     the table of moves
 *   poll_heap.c      which account's time comes next
 *   turn.c           when an account that rotates over the relays moves on
 *   ability.c        when a leader that cannot act gives its accounts up
 *   retention_plan.c when to run retention, and what to remove */
#ifndef RELAY_CORE_POLL_INTERNAL_H
#define RELAY_CORE_POLL_INTERNAL_H

#include "base/check.h"
#include "base/sm.h"
#include "relay/core/poll/poll.h"

struct poll_outbox {
    enum poll_state state;
    bool armed;   /* the control session has the doorbell */
    bool rung;    /* while a query was out: its answer may be older */
    bool unasked; /* ARM_WAIT: nothing was polled yet */
    bool merges;  /* MERGE_WAIT: not in a query yet */
    uint8_t streak;
    uint32_t backoff_ms, limit;
    uint32_t failed_ms;   /* wait after the last query, which failed; 0: it did not */
    uint32_t unarmed_ms;  /* the same of the doorbell */
    bool refused;         /* the last query, by the database: no reason to ask shortens the wait */
    uint64_t at;          /* UINT64_MAX: no time is waited for */
    uint64_t question;    /* that is out; 0: none */
    enum poll_reason why; /* BACKOFF: of the poll that comes at its end */
};

struct poll_requests {
    enum poll_state state;
    bool again; /* wanted while one was out that may have begun before */
    enum poll_reason again_why, why;
    uint32_t failed_ms; /* as in poll_outbox */
    bool refused;
    uint64_t at, question;
    uint64_t serial;     /* of the manager's last wish */
    uint64_t next_at;    /* the next time in the table that is known; UINT64_MAX: none */
    int64_t fingerprint; /* of the settings that the manager received last; -1: unknown */
};

struct poll_account {
    bool led, leaving;
    bool bug;        /* it made a move in this step that its table does not have */
    uint64_t tenure; /* goes up when leading begins and ends */
    struct poll_outbox outbox;
    struct poll_requests requests;
    uint64_t covered_until;
    uint64_t turn; /* when a sweep asked last; 0: never */
    size_t heap_at;
};

/* A query for many accounts: at most one sweep and one merged poll are out. */
struct poll_batch {
    uint64_t question; /* 0: none is out */
    uint64_t begun;
    size_t turn; /* the account that the next one begins with */
    size_t count;
    size_t *accounts;
    uint64_t *tenures;
    int64_t *fingerprints;
};

struct poll {
    struct poll_config config;
    uint64_t now;
    uint64_t questions;
    struct poll_account *accounts;
    size_t led;
    bool store_up;
    struct poll_batch sweep, merged;
    uint64_t sweep_due;
    uint32_t sweep_failed_ms; /* as in poll_outbox */
    uint32_t slices;
    size_t merging; /* accounts that wait for the next merged poll */
    size_t *heap;
    struct poll_effect *effects; /* a queue: from effects_first on */
    size_t effects_first, effects_end, effects_room;
    struct sm_trace outbox_moves, requests_moves;
    char bug[SM_BUG_MAX]; /* the text of an effect */
};

/* poll.c */
struct poll_effect *poll__emit(struct poll *p, enum poll_query query, struct poll_account *a,
                               enum poll_reason why);
size_t poll__index(const struct poll *p, const struct poll_account *a);
uint32_t poll__retry_ms(uint32_t last, uint32_t cap); /* how long to wait after one more failure */
uint64_t poll__key(const struct poll_account *a);     /* when its time comes */

/* poll_outbox.c */
void poll__outbox_init(struct poll_outbox *o);
void poll__outbox_off(struct poll *p, struct poll_account *a);
void poll__outbox_want(struct poll *p, struct poll_account *a, uint32_t limit);
void poll__outbox_rang(struct poll *p, struct poll_account *a, enum poll_reason why);
void poll__outbox_tick(struct poll *p, struct poll_account *a);
bool poll__outbox_answered(struct poll *p, struct poll_account *a, const struct poll_event *ev);
void poll__control_lost(struct poll *p, struct poll_account *a);
void poll__outbox_mended(struct poll *p, struct poll_account *a, bool store);
bool poll__may_merge(const struct poll *p,
                     const struct poll_account *a); /* soon enough to come along */
void poll__merge(struct poll *p, struct poll_account *a);
void poll__merged(struct poll *p, struct poll_account *a, bool gone, bool rows);

/* poll_requests.c */
void poll__requests_init(struct poll_requests *r);
void poll__requests_off(struct poll *p, struct poll_account *a);
void poll__requests_want(struct poll *p, struct poll_account *a, uint64_t serial);
void poll__requests_now(struct poll *p, struct poll_account *a, enum poll_reason why);
void poll__requests_tick(struct poll *p, struct poll_account *a);
void poll__requests_mended(struct poll *p, struct poll_account *a);
void poll__requests_swept(struct poll_account *a, uint64_t next_at);
bool poll__requests_answered(struct poll *p, struct poll_account *a, const struct poll_event *ev);

/* poll_sweep.c */
void poll__batch_init(const struct poll *p, struct poll_batch *b);
void poll__batch_free(struct poll_batch *b);
uint64_t poll__batch_deadline(const struct poll *p);
void poll__batches_tick(struct poll *p);
bool poll__swept(struct poll *p, const struct poll_event *ev);
bool poll__merged_answer(struct poll *p, const struct poll_event *ev);
bool poll__covered(const struct poll *p, const struct poll_account *a);
void poll__sweep_mended(struct poll *p);

/* poll_table.c */
void poll__move_outbox(struct poll *p, struct poll_account *a, enum poll_state to);
void poll__move_requests(struct poll *p, struct poll_account *a, enum poll_state to);
void poll__recover(struct poll *p); /* at the end of a step: of moves that no table has */

/* poll_heap.c */
void poll__heap_new(struct poll *p);
void poll__heap_set(struct poll *p, struct poll_account *a); /* its time has changed */
uint64_t poll__heap_min(const struct poll *p);
struct poll_account *poll__heap_top(const struct poll *p);

#endif
