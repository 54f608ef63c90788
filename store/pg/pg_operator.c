/* What operators and applications ask for after enqueue, on the work session. */
#include "base/check.h"
#include "pg/pg.h"

static void decode_answer(struct store_req *req, const struct conn_result *r)
{
    struct conn_result *rows = conn_result_take(r); /* the text lies in it */
    struct pg_row row = {.r = rows};
    CONTAINER_OF(req, struct store_ask, req)->answer = pg_get_text(&row, 0, "");
    store__arena(req, 0, rows, store_pg__free_rows);
}

static void put_who(struct pg_args *a, const char *who)
{
    pg_put_text(a, who ? who : "");
}

void store_pg__cancel(struct store *base, struct store_ask *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->answer = "";
    pg_put_int8(&a, r->id);
    put_who(&a, r->who);
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
    put_who(&a, r->who);
    store_pg__send(s, &s->work, SQL_BUMP_ONE, &a, &r->req, decode_answer);
}

void store_pg__resume(struct store *base, struct store_ask *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->answer = "";
    pg_put_text(&a, r->account);
    put_who(&a, r->who);
    store_pg__send(s, &s->work, SQL_RESUME_ACCOUNT, &a, &r->req, decode_nothing);
}

static void put_ask(struct pg_args *a, int64_t value)
{
    if (value)
        pg_put_int8(a, value);
    else
        pg_put_null8(a);
}

void store_pg__retry(struct store *base, struct store_ask *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->answer = "";
    pg_put_int8(&a, r->id);
    put_ask(&a, r->deadline_ms);
    put_ask(&a, r->deadline_block);
    put_who(&a, r->who);
    store_pg__send(s, &s->work, SQL_RETRY_ONE, &a, &r->req, decode_answer);
}

void store_pg__drained(struct store *base, struct store_drained *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    pg_put_text(&a, r->relay);
    pg_put_text(&a, r->who);
    store_pg__send(s, &s->work, SQL_NOTE_DRAIN, &a, &r->req, decode_nothing);
}
