/* One asynchronous libpq connection on the loop: the only file pair that knows libpq is
 * store/conn*.c.
 *
 *   IDLE -> RESOLVE_WAIT -> CONNECT_WAIT -> SETUP_WAIT -> UP -> (lost) BACKOFF_WAIT -> RESOLVE_WAIT
 *
 * DNS off the loop, own connect deadline per address, pipeline mode, one Sync after each query
 * (a commit boundary: every query is its own transaction), back-off with jitter. Rules and
 * pitfalls: docs/connections.md. After SETUP: the statements of `setup` were run (timeouts,
 * keepalives, LISTEN...). */
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
    const char *dsn;          /* libpq connection string or URI; copied */
    const char *name;         /* application_name */
    const char *const *setup; /* NULL-terminated SQL, run one by one after each connect, behind
                               * sql/set_session.sql, which every session runs; copied */
    bool refuse_standby; /* pg_is_in_recovery() or transaction_read_only: ERR_DB_READONLY, tries
                            again */
    bool refuse_pooler;  /* a pooler in between: ERR_DB_POOLER. Without it, behind a pooler neither
                          * `setup`  nor prepared statements are used: both belong to a session. */
    bool plain; /* no pipeline: one query at a time, without parameters it may hold many statements;
                         * the callback sees the last result, or the first error */
    uint32_t connect_timeout_ms; /* for each answer of an address, default 5000; connect_timeout of
                                    the string overrules it */
    uint32_t setup_timeout_ms;   /* for `setup`; 0: as for the other answers */
    uint32_t answer_timeout_ms;  /* 0: none. Queries in flight without a result for this long: the
                                    session is dropped */
    uint32_t backoff_base_ms, backoff_cap_ms; /* default 50, 5000 */
    void (*on_up)(void *arg);
    /* Lost or not reachable; tries again by itself. Every query in flight has been answered
     * already: ERR_DB_UNKNOWN_OUTCOME when it was sent, ERR_DB_UNAVAILABLE when it was not. */
    void (*on_down)(void *arg, const struct err *err);
    void (*on_notify)(void *arg, const char *channel, const char *payload, int from_pid);
    void *arg;
};

struct conn *conn_new(struct loop *l, const struct conn_config *config);
void conn_open(struct conn *c);
void conn_close(struct conn *c, void (*cb)(void *arg),
                void *arg); /* queries end with ERR_CANCELED; frees c */
bool conn_is_up(const struct conn *c);
const char *conn_login(const struct conn *c); /* up: the user of the session */
bool conn_is_pooled(const struct conn *c); /* up, behind a pooler: nothing of the session lasts */
void conn_reconnect(struct conn *c,
                    const struct err *why); /* drop the session now, e.g. a probe failed */

/* A parameter: text or binary (OIDs given where binary). */
struct conn_param {
    const char *data; /* NULL: SQL NULL */
    int len;          /* binary only */
    int format;       /* 0 text, 1 binary */
    uint32_t oid;     /* 0: the server infers it */
};

enum { CONN_PARAMS_MAX = 32 };

struct conn_result; /* rows, valid in the callback only */
int conn_result_rows(const struct conn_result *r);
int conn_result_columns(const struct conn_result *r);
bool conn_result_is_null(const struct conn_result *r, int row, int col);
const char *conn_result_get(const struct conn_result *r, int row, int col,
                            int *ret_len); /* text or binary */
const char *conn_result_name(const struct conn_result *r, int col);
uint32_t conn_result_type(const struct conn_result *r, int col); /* OID of pg_type */
/* Takes the rows over inside the callback: they live until conn_result_free. */
struct conn_result *conn_result_take(const struct conn_result *r);
void conn_result_free(struct conn_result *r); /* NULL allowed */

struct conn_query {
    struct err err; /* out; sqlstate filled when the server said one */
    /* private */
    struct list node;
    struct loop_task task;
    void (*cb)(struct conn_query *q, const struct conn_result *r); /* r NULL on error */
    void *call;      /* copy of statement and parameters while it waits to be sent */
    void *held;      /* its result, until the Sync says that it is committed */
    void *preparing; /* the statement whose Parse goes ahead of it */
    size_t bytes;    /* its share of what is in flight */
    bool internal;   /* belongs to the connection itself */
};
/* One statement in its own transaction (a Sync follows). `prepare_name` non-NULL: prepared once
 * per session under that name, then executed. result_format 0 text, 1 binary. Statement text and
 * parameters are copied or sent before return. A connection that is not up answers
 * ERR_DB_UNAVAILABLE. */
void conn_query_start(struct conn *c, struct conn_query *q, const char *prepare_name,
                      const char *sql, int nparams, const struct conn_param *params,
                      int result_format,
                      void (*cb)(struct conn_query *q, const struct conn_result *r));

/* SQLSTATE and libpq state to a code of base/error.h: the one place. */
int conn_map_sqlstate(const char *sqlstate);

#endif
