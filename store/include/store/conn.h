/* One asynchronous libpq connection on the loop: the only file pair that knows libpq is store/conn*.c.
 *
 *   IDLE -> RESOLVE_WAIT -> CONNECT_WAIT -> SETUP_WAIT -> UP -> (lost) BACKOFF_WAIT -> RESOLVE_WAIT
 *
 * DNS off the loop, own connect deadline per address, pipeline mode, one Sync per conn_sync (a commit
 * boundary: everything between two is one implicit transaction), back-off with jitter. Rules and pitfalls:
 * store/README.md. After SETUP: the statements of `setup` were run (application_name, timeouts, keepalives,
 * LISTEN...). */
#ifndef STORE_CONN_H
#define STORE_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "loop/loop.h"

struct conn;

struct conn_config {
    const char *dsn;         /* libpq connection string or URI; copied */
    const char *name;        /* application_name */
    const char *const *setup; /* NULL-terminated SQL, run one by one after each connect; copied */
    bool refuse_standby;     /* pg_is_in_recovery() or transaction_read_only: ERR_DB_READONLY, tries again */
    bool refuse_pooler;      /* a transaction pooler in between: ERR_DB_POOLER */
    uint32_t connect_timeout_ms; /* per address, default 5000 */
    uint32_t backoff_base_ms, backoff_cap_ms; /* default 50, 5000 */
    void (*on_up)(void *arg);
    /* Lost or not reachable; tries again by itself. Every query in flight has been answered already:
     * ERR_DB_UNKNOWN_OUTCOME when it was sent, ERR_DB_UNAVAILABLE when it was not. */
    void (*on_down)(void *arg, const struct err *err);
    void (*on_notify)(void *arg, const char *channel, const char *payload, int from_pid);
    void *arg;
};

struct conn *conn_new(struct loop *l, const struct conn_config *config);
void conn_open(struct conn *c);
void conn_close(struct conn *c, void (*cb)(void *arg), void *arg); /* queries end with ERR_CANCELED; frees c */
bool conn_is_up(const struct conn *c);
int conn_backend_pid(const struct conn *c); /* 0 when not up */
void conn_reconnect(struct conn *c, const struct err *why); /* drop the session now, e.g. a probe failed */

/* A parameter: text or binary (OIDs given where binary). */
struct conn_param {
    const char *data; /* NULL: SQL NULL */
    int len;          /* binary only */
    int format;       /* 0 text, 1 binary */
    uint32_t oid;     /* 0: the server infers it */
};

struct conn_result; /* rows, valid in the callback only */
int conn_result_rows(const struct conn_result *r);
int conn_result_columns(const struct conn_result *r);
bool conn_result_is_null(const struct conn_result *r, int row, int col);
const char *conn_result_get(const struct conn_result *r, int row, int col, int *ret_len); /* text or binary */
const char *conn_result_name(const struct conn_result *r, int col);

struct conn_query {
    struct err err; /* out; sqlstate filled when the server said one */
    /* private */
    struct list node;
    struct loop_task task;
    void (*cb)(struct conn_query *q, const struct conn_result *r); /* r NULL on error */
    void *state;
};
/* One statement in its own transaction (a Sync follows). `prepare_name` non-NULL: prepared once per session
 * under that name, then executed. result_format 0 text, 1 binary. Statement text and parameters are copied
 * or sent before return. A connection that is not up answers ERR_DB_UNAVAILABLE. */
void conn_query_start(struct conn *c, struct conn_query *q, const char *prepare_name, const char *sql,
                      int nparams, const struct conn_param *params, int result_format,
                      void (*cb)(struct conn_query *q, const struct conn_result *r));

/* SQLSTATE and libpq state to a code of base/error.h: the one place. */
int conn_map_sqlstate(const char *sqlstate);

#endif
