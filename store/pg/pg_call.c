/* One request is one statement in one transaction: parameters laid out in one buffer, one round
 * trip, the rows decoded where they lie. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "pg/pg.h"

struct call {
    struct conn_query query;
    struct store *store;
    struct store_req *req;
    decode_fn decode;
};

void store_pg__args(struct store_pg *s, struct pg_args *a)
{
    pg_args_begin(a, &s->scratch);
}

/* An object or a column that is not there, a right that was taken away, an answer of another
 * shape. */
static bool is_of_schema(const struct err *err)
{
    static const char *const states[] = {"42883", "42P01", "42703", "42501"};
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        if (!strcmp(err->sqlstate, states[i]))
            return true;
    return err->code == ERR_DB_SCHEMA;
}

static void on_answer(struct conn_query *q, const struct conn_result *r)
{
    struct call *call = CONTAINER_OF(q, struct call, query);
    struct store *s = call->store;
    struct store_req *req = call->req;
    req->err = q->err;
    if (!req->err.code)
        call->decode(req, r);
    if (is_of_schema(&req->err))
        store_pg__check_again(pg_of(s));
    free(call);
    store__answer(s, req);
}

bool store_pg__refused(struct store_pg *s, struct store_req *req)
{
    if (s->base.state == STORE_UP)
        return false;
    if (s->closing)
        err_set(&req->err, ERR_CANCELED, "the store is closing");
    else if (s->told.code)
        err_set(&req->err, ERR_DB_UNAVAILABLE, "database not reachable: %s", s->told.text);
    else
        err_set(&req->err, ERR_DB_UNAVAILABLE, "database is not connected yet");
    store__answer_later(&s->base, req);
    return true;
}

void store_pg__send(struct store_pg *s, struct side *side, enum sql_id id, struct pg_args *a,
                    struct store_req *req, decode_fn decode)
{
    if (store_pg__refused(s, req))
        return;
    struct call *call = xmalloc(sizeof(*call));
    call->store = &s->base;
    call->req = req;
    call->decode = decode;
    conn_query_start(side->conn, &call->query, sql__name(id), sql__text(id), a->count,
                     pg_args_end(a), 1, on_answer);
}

void store_pg__misfit(struct store_req *req, enum sql_id id)
{
    err_set(&req->err, ERR_DB_SCHEMA,
            "statement %s answered in a form that this program does not know: program and "
            "schema are of different versions, run txrelay migrate",
            sql__name(id));
}

void decode_nothing(struct store_req *req, const struct conn_result *r)
{
    (void)req;
    (void)r;
}
