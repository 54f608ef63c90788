/* A session of a part of its own (feeds, sites), beside those of the store: its life, and one
 * statement as one request. Private to store/. */
#ifndef STORE_PG_PG_SESSION_H
#define STORE_PG_PG_SESSION_H

#include "base/buf.h"
#include "conn/pg_codec.h"
#include "sql.h"
#include "store/conn.h"

struct pg_session {
    struct conn *conn;
    struct buf scratch; /* the parameters of one request */
    const char *part;
    void *owner;
    void (*closed)(void *arg);
    void *arg;
};

/* part: "feeds", in the session's name; static text. owner: has the session, and is freed when that
 * is closed. */
void pg_session_open(struct pg_session *s, struct loop *l, const char *dsn, const char *name,
                     const char *part, void *owner);
void pg_session_close(struct pg_session *s, void (*cb)(void *arg), void *arg);
void pg_session_ask(struct pg_session *s, struct conn_query *q, enum sql_id id, struct pg_args *a,
                    void (*cb)(struct conn_query *q, const struct conn_result *r));
/* The answer does not have the shape that this program was built for. */
void pg_session_misfit(struct err *err, enum sql_id id);

#endif
