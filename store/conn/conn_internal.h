/* Private to store/conn*.c: one connection and how its files divide the work.
 *
 *   conn.c          states, deadlines, back-off, close
 *   conn_dsn.c      the connection string taken apart into hosts
 *   conn_connect.c  names, addresses, PQconnectPoll
 *   conn_setup.c    probes and setup statements before a session is UP
 *   conn_send.c     the queue, and what is given to libpq
 *   conn_io.c       pipeline, results, notifications
 *   conn_result.c   rows and errors of libpq in our words
 *   conn_info.c     what a connection string says of passwords and of the link
 *   pg_codec.c      parameters, arrays and cells in binary form
 *   sqlstate.c      every SQLSTATE to a code of base/error.h */
#ifndef STORE_CONN_INTERNAL_H
#define STORE_CONN_INTERNAL_H

#include <libpq-fe.h>

#include "base/backoff.h"
#include "base/rng.h"
#include "store/conn.h"

enum conn_state {
    CONN_IDLE,         /* not opened, or the connection string is not usable */
    CONN_RESOLVE_WAIT, /* a name is looked up */
    CONN_CONNECT_WAIT, /* PQconnectPoll goes on with one address */
    CONN_SETUP_WAIT,   /* connected; probes and setup statements are on the way */
    CONN_UP,
    CONN_BACKOFF_WAIT, /* every address failed, or the session was lost */
    CONN_CLOSING,
};

/* One entry of the host list. A socket directory, a number or a name; NULL: the default socket. */
struct conn_host {
    char *host;
    char *hostaddr;
    char *port;
};

/* The connection string without its hosts: these go to libpq for one address at a time. */
struct conn_dsn {
    char **keys;
    char **values;
    size_t count;
    struct conn_host *hosts;
    size_t host_count;
    bool want_primary;           /* target_session_attrs=read-write or primary */
    uint32_t connect_timeout_ms; /* 0: the string does not say */
};

/* A statement by its prepare_name. It is used by name only after its Parse was answered: a Parse
 * that fails must not make others fail with "does not exist". */
struct conn_statement {
    char *name;
    enum { STATEMENT_NEW, STATEMENT_SENT, STATEMENT_READY } state;
};

/* A query of the connection itself, before it is UP. */
struct conn_step {
    struct conn_query query;
    struct conn *conn;
};

struct conn_result {
    PGresult *pg; /* NULL after conn_result_take */
};

struct conn {
    struct loop *loop;
    struct conn_config config; /* strings owned */
    char **setup;              /* NULL-terminated, owned; config.setup points here */
    size_t setup_count;
    enum conn_state state;
    struct conn_dsn dsn;
    struct err dsn_err;

    /* this round over the hosts */
    size_t host;       /* index of the entry at work */
    size_t first_host; /* the round starts with the one that worked last */
    size_t hosts_left;
    size_t addr; /* index of the resolved address at work */
    struct loop_resolve resolve;
    struct err round_err; /* the most telling failure of the round */

    /* the session */
    PGconn *pg;
    uint64_t session; /* its number: a new PGconn may lie where the old one was */
    struct loop_poll *poll;
    bool raw_texts;   /* the database is SQL_ASCII: its texts may be in any encoding */
    bool pooled;      /* a pooler answers for the server: nothing of the session can be relied on */
    struct err fatal; /* what the server said when it ended the session */
    struct conn_step *steps; /* probes, then setup statements */
    size_t step_count;
    size_t steps_left;
    struct err refused; /* what a probe found, until all are answered */
    char token[24];     /* what the probes look for */

    struct loop_timer *timer; /* deadline of the state; in UP: of the next answer */
    uint64_t deadline_ms;     /* how long the timer was set for */
    uint64_t answer_deadline_ms;
    struct backoff backoff;
    struct rng rng;

    struct list queued; /* not given to libpq: never sent */
    struct list sent;   /* given to libpq: their outcome is unknown when the session is lost */
    size_t bytes_in_flight;
    struct conn_statement **statements;
    size_t statement_count;

    struct loop_task down_task;
    uint64_t tell_no_room_ms; /* not before */
    struct err down_err;
    /* look at the session soon: a send failed or conn_reconnect was asked */
    struct loop_task check_task;
    struct err check_err;
    uint64_t renew_after_ms; /* a stale statement makes a new session, but not before this */
    struct loop_task close_task;
    void (*close_cb)(void *arg);
    void *close_arg;
};

/* conn.c */
void conn__move(struct conn *c, enum conn_state state);
void conn__deadline(struct conn *c, uint64_t ms);
void conn__address_failed(struct conn *c,
                          const struct err *err); /* before UP: on to the next address */
void conn__session_lost(struct conn *c, const struct err *err); /* in SETUP_WAIT or UP */
void conn__round_failed(struct conn *c, const struct err *err);
void conn__up(struct conn *c);
void conn__check_later(struct conn *c, const struct err *why);

/* conn_dsn.c */
int conn__dsn_parse(struct conn_dsn *d, const char *text, struct err *err);
/* A URI whose password may reach beyond where libpq ends it: libpq would take the rest of it for a
 * host, port or database, and print it. */
bool conn__dsn_is_ambiguous(const char *text);
void conn__dsn_done(struct conn_dsn *d);
bool conn__dsn_has(const struct conn_dsn *d, const char *key);
bool conn__host_is_name(const struct conn_host *h);

/* conn_connect.c */
void conn__round_start(struct conn *c);
void conn__next_address(struct conn *c);
void conn__session_end(struct conn *c); /* poll closed, PQfinish; statements forgotten */

/* conn_setup.c */
void conn__setup_start(struct conn *c);
void conn__setup_drop(struct conn *c);

/* conn_send.c */
void conn__submit(struct conn *c, struct conn_query *q, const char *prepare_name, const char *sql,
                  int nparams, const struct conn_param *params, int result_format,
                  void (*cb)(struct conn_query *q, const struct conn_result *r));
void conn__flush(struct conn *c);
void conn__pump(struct conn *c); /* sends what is queued, as far as there is room */
void conn__answer_posted(struct loop_task *task); /* the query failed before it was sent */

/* conn_io.c */
void conn__io_start(struct conn *c); /* poll of an established session */
/* After each call of libpq that reads or writes: it closes its descriptor by itself when a session
 * fails, and the next one that is opened gets its number. The poll ends in the same moment. False:
 * the caller ends the session, now or by conn__check_later. */
bool conn__socket_open(struct conn *c);
void conn__notice(void *arg, const PGresult *res);
bool conn__read(struct conn *c); /* false: the session is gone */
void conn__abandon(struct conn *c, int code_sent, int code_queued, const char *text);
void conn__answer_overdue(struct conn *c);

/* conn_result.c */
void conn__result_err(const PGresult *res, struct err *err);
/* Another session may know better: it prepares the statement anew. */
void conn__result_make_utf8(PGresult *res);
bool conn__result_stale(const PGresult *res);
bool conn__result_fatal(const PGresult *res); /* the server ends the session with it */
void conn__connect_err(const PGconn *pg, struct err *err);

#endif
