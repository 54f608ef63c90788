/* The side of applications and operators, on the work session: enqueue, and what is asked for later. */
#include "base/check.h"
#include "store_pg.h"

static void decode_enqueue(struct store_req *req, const struct conn_result *r)
{
    struct pg_row row = {.r = r};
    CONTAINER_OF(req, struct store_enqueue, req)->id = pg_get_int(&row, 0, 0);
    if (row.bad)
        store_pg__misfit(req, SQL_ENQUEUE_CALL);
}

static void put_opt(struct pg_args *a, int64_t v) /* 0: NULL */
{
    if (v)
        pg_put_int8(a, v);
    else
        pg_put_null8(a);
}

void store_pg__enqueue(struct store *base, struct store_enqueue *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    pg_put_text(&a, r->account);
    pg_put_bytes(&a, r->call.data ? (const void *)r->call.data : "", r->call.len);
    pg_put_text(&a, r->key);
    pg_put_int4(&a, r->priority);
    pg_put_text(&a, r->creator);
    put_opt(&a, r->not_before_ms);
    put_opt(&a, r->deadline_ms);
    put_opt(&a, r->guard);
    pg_put_text(&a, r->tip);
    pg_put_text(&a, r->max_tip);
    put_opt(&a, r->deadline_block);
    pg_put_int8(&a, r->retries);
    store_pg__send(s, &s->work, SQL_ENQUEUE_CALL, &a, &r->req, decode_enqueue);
}

/* ---- asked for later ---- */

static void free_rows(void *rows)
{
    conn_result_free(rows);
}

static void decode_answer(struct store_req *req, const struct conn_result *r)
{
    struct conn_result *rows = conn_result_keep(r); /* the text lies in it */
    struct pg_row row = {.r = rows};
    CONTAINER_OF(req, struct store_ask, req)->answer = pg_get_text(&row, 0, "");
    store__arena(req, 0, rows, free_rows);
}

void store_pg__cancel(struct store *base, struct store_ask *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->answer = "";
    pg_put_int8(&a, r->id);
    store_pg__send(s, &s->work, SQL_CANCEL_ONE, &a, &r->req, decode_answer);
}

void store_pg__bump(struct store *base, struct store_ask *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->answer = "";
    pg_put_int8(&a, r->id);
    pg_put_text(&a, r->tip);
    store_pg__send(s, &s->work, SQL_BUMP_ONE, &a, &r->req, decode_answer);
}

void store_pg__resume(struct store *base, struct store_ask *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->answer = "";
    pg_put_text(&a, r->account);
    store_pg__send(s, &s->work, SQL_RESUME_ACCOUNT, &a, &r->req, decode_nothing);
}
