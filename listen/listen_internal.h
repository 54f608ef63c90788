/* Private to listen/listen*.c: the door's data.
 *
 *   listen.c           connection, notifications, timer, states, the end
 *   listen_query.c     statements and their rows
 *   listen_accounts.c  which accounts there are */
#ifndef LISTEN_LISTEN_INTERNAL_H
#define LISTEN_LISTEN_INTERNAL_H

#include "base/table.h"

#include "base/backoff.h"
#include "base/list.h"
#include "base/rng.h"
#include "listen/core/cursor.h"
#include "listen/listen.h"
#include "store/conn.h"

enum listen_state {
    LISTEN_CONNECT_WAIT,  /* the connection tries by itself */
    LISTEN_ACCOUNTS_WAIT, /* accounts and the database's clock */
    LISTEN_SCAN_WAIT,     /* the cursor catches up */
    LISTEN_LIVE,          /* repairs go on in here */
    LISTEN_RETRY_WAIT,    /* a question failed: connect again after a while */
    LISTEN_CLOSING_WAIT,
};

struct account_row {
    UT_hash_handle by_number, by_id;
    int32_t number;
    bool ambiguous; /* the id is registered for several chains: a notification does not tell which */
    char *alias, *address;
    uint8_t id[LISTEN_ACCOUNT_ID_MAX];
    unsigned id_len;
};

/* A notification that waits for the answer to a pending scan. */
struct held {
    struct list node;
    enum listen_kind kind;
    size_t len;
    char text[];
};

/* One kind of question; one of each is in flight at most. */
struct question {
    struct conn_query query;
    struct listen *s;
    bool busy;
};

struct listen {
    struct loop *loop;
    struct listen_config config;
    char *account; /* of the filter */
    struct conn *conn;
    struct cursor *cursor;
    struct account_row *accounts, *account_ids;
    enum listen_state state;

    struct question read_accounts, scan, lookup, probe;
    bool scan_pending; /* the scan in flight is one of the pending rows: notifications are held */
    uint64_t busy_since;
    struct list held;
    size_t held_count;
    bool rescan; /* something was heard that cannot be placed */

    struct loop_timer *timer;
    uint64_t probe_at, repair_at, retry_at;
    uint64_t begun_at; /* of the scan that is going on */
    struct backoff backoff;
    struct rng rng;

    bool told_live;
    uint64_t since_ms;
    double queue_usage;
    uint64_t fresh_at; /* the view was proved to be current: when the question left that was answered */
    uint64_t stale_at; /* it is told again that the view is stale */
    struct err told;
    void (*close_cb)(void *arg);
    void *close_arg;
};

/* ---- listen.c ---- */

/* Carries out what the cursor wants. */
void listen__step(struct listen *s, const struct cursor_event *ev);
/* The session cannot be used as it is: state and retry. */
void listen__question_failed(struct listen *s, const struct err *err);
void listen__accounts_read(struct listen *s, int64_t now_us, int64_t kept_us);
void listen__pending_answered(struct listen *s); /* let go of the notifications that were held */
void listen__arm(struct listen *s);              /* the timer, to whatever is next */
static inline bool listen__closing(const struct listen *s)
{
    return s->state == LISTEN_CLOSING_WAIT;
}

void listen__rescan(struct listen *s);
void listen__proved(struct listen *s, uint64_t asked_at);

/* ---- listen_query.c ---- */

extern const char *const listen__channels[]; /* NULL-terminated; the first two are the signals */

void listen__read_accounts(struct listen *s);
void listen__scan_pending(struct listen *s, const struct cursor_effect *fx);
void listen__scan_finished(struct listen *s, const struct cursor_effect *fx);
void listen__look_up(struct listen *s);
void listen__probe(struct listen *s);
bool listen__asking(const struct listen *s); /* any question but the probe is in flight */

/* ---- listen_accounts.c ---- */

/* Takes the place of what was known. false: the rows do not fit. */
bool listen__accounts_take(struct listen *s, const struct conn_result *r, int64_t *ret_now_us,
                           int64_t *ret_kept_us);
void listen__accounts_free(struct listen *s);
const struct account_row *listen__account(const struct listen *s, int32_t number);
/* By id, as a notification has it: NULL when it is not known or not the only one. */
const struct account_row *listen__account_by_id(const struct listen *s, const uint8_t *id, size_t len);
const struct account_row *listen__account_by_name(const struct listen *s, const char *name);

#endif
