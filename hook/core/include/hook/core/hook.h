/* The core of webhooks: hook_step(core, now, event) -> effects, without clock, socket or SQL.
 *
 * - The database knows what is to be delivered. The core asks it (ASK), and the answer (ROWS) has
 *   for each webhook and account the next deliveries in their order.
 * - A lane is one webhook and one account. It sends one delivery at a time: the next one only when
 *   the receiver has taken the one before. So what a receiver gets of an account is in order.
 * - A delivery that fails ends the lane: the database notes when it is due again (it stays the
 *   first of its account), or that it is given up, and the lane's other rows are dropped.
 * - What was taken is reported when the lane has no more rows. Before the report is stored, a crash
 *   or another leader sends it again: at least once.
 * - A lane whose report the database did not answer reports again; the report can be repeated.
 * - The owner keeps the contents of a row under its `item`. The core gives each item back once,
 *   with RELEASE.
 *
 * hook_table.c has the table of a lane's states. */
#ifndef HOOK_CORE_HOOK_H
#define HOOK_CORE_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct hook_core;

enum { HOOK_NAME_MAX = 65 };

struct hook_config {
    uint32_t sending_max;     /* requests under way; default 64 */
    uint32_t of_webhook;      /* of them to one webhook; default 8 */
    uint32_t attempts_max;    /* of a delivery until it is given up; default 20 */
    uint32_t base_ms, cap_ms; /* delay after a failure; defaults 5,000 and 7,200,000 */
    uint32_t poll_ms;         /* between two questions while there are webhooks; default 500 */
    uint32_t idle_ms;         /* and while there are none; default 5,000 */
    uint32_t retry_ms;        /* after the database did not answer; default 1,000 */
    uint64_t seed;            /* of the jitter */
};

enum hook_state {
    HOOK_READY,        /* it waits for its turn: too many requests are under way */
    HOOK_SENDING,      /* a request is under way */
    HOOK_REPORT_WAIT,  /* the database is told */
    HOOK_REPORT_LATER, /* it did not answer: again later */
};

struct hook_row {
    void *item; /* the owner's */
    uint64_t number;
    uint32_t attempts; /* that failed */
};
struct hook_rows { /* of one webhook and one account, in their order */
    const char *webhook;
    int32_t account;
    const struct hook_row *rows;
    size_t count;
};

enum hook_event_type {
    HOOK_EV_ROWS,     /* answer to ASK */
    HOOK_EV_ANSWER,   /* answer to SEND */
    HOOK_EV_REPORTED, /* answer to REPORT */
    HOOK_EV_DRAIN,    /* send and ask no more */
    HOOK_EV_TICK,     /* hook_due has come; spurious ones are allowed */
};
struct hook_event {
    enum hook_event_type type;
    uint64_t lane; /* ANSWER, REPORTED */
    bool failed;   /* ROWS and REPORTED: the database did not answer. ANSWER: not taken */
    struct {
        const struct hook_rows *lanes;
        size_t count;
        int64_t due_ms; /* until a delivery that waits is due; -1: none waits */
        bool none;      /* there are no webhooks */
    } rows;
};

enum hook_effect_type {
    HOOK_FX_ASK,     /* ask the database what is to be delivered */
    HOOK_FX_SEND,    /* send the item */
    HOOK_FX_REPORT,  /* tell the database: `taken` were, and `number` was not unless it is 0 */
    HOOK_FX_RELEASE, /* the item is not needed any more */
};
struct hook_effect {
    enum hook_effect_type type;
    uint64_t lane;
    void *item;
    const uint64_t *taken;
    size_t taken_count;
    uint64_t number;
    uint64_t delay_ms; /* until it is due again */
    bool dead;         /* it is given up */
};

/* What happened since the core was made. */
struct hook_counts {
    uint64_t taken, failed, dead;
};

struct hook_core *hook_core_new(const struct hook_config *config); /* zeros = defaults */
/* Every item that the core still has is given to `release` (NULL: not). */
struct hook_core *hook_core_free(struct hook_core *h, void (*release)(void *item));
/* Effects are valid until the next step. */
void hook_step(struct hook_core *h, uint64_t now_ms, const struct hook_event *ev,
               const struct hook_effect **ret_effects, size_t *ret_count);
uint64_t hook_due(const struct hook_core *h); /* when a TICK is wanted; UINT64_MAX: none */

struct hook_counts hook_counts_of(const struct hook_core *h);
size_t hook_sending(const struct hook_core *h); /* requests under way */
/* The last step made a move that the table does not have: which one. NULL, as ever: none. The lane
 * goes on. */
const char *hook_bug(const struct hook_core *h);
/* NULL, or what is wrong with it: a bug. */
const char *hook_check(const struct hook_core *h);
void hook_dump(struct buf *out);                               /* the table as a diagram */
void hook_missing(const struct hook_core *h, struct buf *out); /* moves that were never made */

/* ---- what is sent ---- */

/* Does a status say that the receiver took it? */
bool hook_taken(int status);
/* The value of webhook-signature: "v1," and the HMAC in base64. */
enum { HOOK_BASE64_MAX = 48 };
void hook_base64(const uint8_t *data, size_t len, char ret[HOOK_BASE64_MAX]); /* len: at most 33 */

#endif
