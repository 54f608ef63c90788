/* Private to listen/listen*.c: the adapter's data.
 *
 *   listen.c           connection, notifications, timer, states, the end
 *   listen_query.c     statements and their rows
 *   listen_accounts.c  the accounts of the database
 *   listen_sources.c   whose notifications are believed */
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
    LISTEN_CONNECT_WAIT,  /* the connection retries by itself */
    LISTEN_ACCOUNTS_WAIT, /* accounts and the database's clock */
    LISTEN_SCAN_WAIT,     /* the cursor catches up */
    LISTEN_LIVE,          /* includes repairs */
    LISTEN_RETRY_WAIT,    /* a query failed: reconnect after a while */
    LISTEN_CLOSING_WAIT,
};

struct account_row {
    UT_hash_handle by_number, by_id;
    int32_t number;
    bool ambiguous; /* the id is registered for several chains: a notification does not say which */
    char *alias, *address;
    uint8_t id[LISTEN_ACCOUNT_ID_MAX];
    unsigned id_len;
};

/* A notification that waits for the answer to a pending scan. */
struct held {
    struct list node;
    enum listen_kind kind;
    int from_pid;
    size_t len;
    char text[];
};

/* One kind of query; at most one of each is in flight. */
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

    struct question read_accounts, sources, scan, lookup, probe;
    bool scan_pending; /* the scan in flight reads pending rows: notifications are buffered */
    uint64_t busy_since;
    struct list held;
    size_t buffered_count, buffered_bytes;
    bool rescan; /* a notification requires a repair */

    /* The backends of relays' sessions at sources_at, when the database's clock was clock_us. */
    int *source_pids;
    size_t source_count;
    uint64_t sources_at;
    int64_t clock_us;

    struct loop_timer *timer;
    uint64_t probe_at, repair_at, retry_at;
    uint64_t begun_at; /* of the present scan */
    uint64_t scan_ms;  /* duration of the last one */
    struct backoff backoff;
    struct rng rng;

    bool reported_live;
    uint64_t since_ms;
    double queue_usage, clock_back_s;
    uint64_t fresh_at; /* when the last answered query was sent: the view was current then */
    uint64_t stale_at; /* when the stale view is reported again */
    struct err told;
    void (*close_cb)(void *arg);
    void *close_arg;
};

/* ---- listen.c ---- */

/* Carries out the cursor's effects. */
void listen__step(struct listen *s, const struct cursor_event *ev);
/* The session is unusable: report it and retry. */
void listen__question_failed(struct listen *s, const struct err *err);
void listen__accounts_read(struct listen *s, int64_t now_us, int64_t kept_us);
void listen__arm(struct listen *s); /* sets the timer to the next deadline */
static inline bool listen__closing(const struct listen *s)
{
    return s->state == LISTEN_CLOSING_WAIT;
}

void listen__rescan(struct listen *s);
void listen__proved(struct listen *s, uint64_t asked_at);

/* ---- listen_notify.c ---- */

/* A notification arrived: the connection's on_notify. */
void listen__notified(void *arg, const char *channel, const char *payload, int from_pid);
/* A question is answered for which notifications were buffered: passes them to the cursor. */
void listen__drain_buffered(struct listen *s);
void listen__drop_buffered(struct listen *s);

/* ---- listen_query.c ---- */

extern const char *const listen__channels[]; /* NULL-terminated; the first two are the signals */

void listen__read_accounts(struct listen *s);
void listen__read_sources(struct listen *s);
void listen__scan_pending(struct listen *s, const struct cursor_effect *fx);
void listen__scan_finished(struct listen *s, const struct cursor_effect *fx);
void listen__look_up(struct listen *s);
void listen__probe(struct listen *s);
bool listen__asking(const struct listen *s); /* a query other than the probe is in flight */

/* ---- listen_accounts.c ---- */

/* Replaces the known accounts. false: the rows are malformed. */
bool listen__accounts_take(struct listen *s, const struct conn_result *r, int64_t *ret_now_us,
                           int64_t *ret_kept_us);
void listen__accounts_free(struct listen *s);
const struct account_row *listen__account(const struct listen *s, int32_t number);
/* By id, as in a notification: NULL if it is unknown or not unique. */
const struct account_row *listen__account_by_id(const struct listen *s, const uint8_t *id,
                                                size_t len);
const struct account_row *listen__account_by_name(const struct listen *s, const char *name);

/* false: NULL or not a number. */
bool listen__number_at(const struct conn_result *r, int row, int column, int64_t *ret);

/* ---- listen_sources.c ---- */

/* Replaces the backends of relays. false: the rows are malformed. */
bool listen__sources_take(struct listen *s, const struct conn_result *r);
void listen__sources_drop(struct listen *s);
bool listen__believes(const struct listen *s, int pid);
/* The database's clock now: at most a round trip behind. */
int64_t listen__clock_us(const struct listen *s);

#endif
