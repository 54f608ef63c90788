/* The leader's writes to transactions that have a nonce and to its account, on the work session. A
 * batch is one statement, so it is one transaction that no frozen client can hold open. */
#include "pg/pg.h"

static void put_reasons(struct pg_args *a, const struct store_attempts *r)
{
    COLUMN(a, PG_ELEM_TEXT, r, pg_elem_text(a, r->rows[i].reason));
}

/* Which of the attempts are fillers, and how their transactions end if these get in. */
static void put_fillers(struct pg_args *a, const struct store_attempts *r)
{
    COLUMN(a, PG_ELEM_INT4, r,
           pg_elem_opt4(a, r->rows[i].filler_len ? (int32_t)r->rows[i].filler_len : -1));
    COLUMN(a, PG_ELEM_TEXT, r, pg_elem_text(a, r->rows[i].filler_len ? r->rows[i].outcome : NULL));
    COLUMN(a, PG_ELEM_TEXT, r,
           pg_elem_text(a, r->rows[i].filler_len ? r->rows[i].stop_reason : NULL));
}

void store_pg__attempt(struct store *base, struct store_attempts *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__fenced(s, &a, r->account, r->epoch);
    store_pg__put_nonces(&a, r);
    store_pg__put_signed(&a, r);
    put_reasons(&a, r);
    put_fillers(&a, r);
    store_pg__send(s, &s->work, SQL_ATTEMPT_ROWS, &a, &r->req, decode_nothing);
}

void store_pg__fill(struct store *base, struct store_attempts *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__fenced(s, &a, r->account, r->epoch);
    store_pg__put_nonces(&a, r);
    COLUMN(&a, PG_ELEM_BYTES, r, pg_elem_bytes(&a, r->rows[i].call.data, r->rows[i].call.len));
    store_pg__put_signed(&a, r);
    COLUMN(&a, PG_ELEM_TEXT, r, pg_elem_text(&a, r->rows[i].outcome));
    put_reasons(&a, r);
    store_pg__send(s, &s->work, SQL_FILL_NONCES, &a, &r->req, store_pg__next_nonce);
}

/* ---- what the chain said ---- */

void store_pg__state(struct store *base, struct store_states *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__fenced(s, &a, r->account, r->epoch);
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, (int64_t)r->rows[i].nonce));
    COLUMN(&a, PG_ELEM_BYTES, r, pg_elem_bytes(&a, r->rows[i].hash, 32));
    COLUMN(&a, PG_ELEM_TEXT, r, pg_elem_text(&a, r->rows[i].state));
    COLUMN(&a, PG_ELEM_BYTES, r,
           pg_elem_bytes(&a, r->rows[i].has_block ? r->rows[i].block_hash : NULL, 32));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_opt(&a, r->rows[i].block_number));
    COLUMN(&a, PG_ELEM_TEXT, r, pg_elem_text(&a, store__text(r->rows[i].error)));
    store_pg__send(s, &s->work, SQL_RECORD_STATES, &a, &r->req, decode_nothing);
}

static void put_fee(struct pg_args *a, const struct tx_end *row)
{
    if (row->has_fee)
        pg_elem_amount(a, row->fee);
    else
        pg_elem_text(a, NULL);
}

static void finish(struct store *base, struct store_finish *r, enum sql_id sql)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__fenced(s, &a, r->account, r->epoch);
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, (int64_t)r->rows[i].nonce));
    COLUMN(&a, PG_ELEM_BYTES, r, pg_elem_bytes(&a, r->rows[i].hash, 32));
    COLUMN(&a, PG_ELEM_BYTES, r,
           pg_elem_bytes(&a, r->rows[i].has_block ? r->rows[i].block_hash : NULL, 32));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_opt(&a, store__end_number(&r->rows[i])));
    COLUMN(&a, PG_ELEM_INT4, r, pg_elem_int4(&a, store__end_index(&r->rows[i])));
    store_pg__put_outcomes(&a, r);
    COLUMN(&a, PG_ELEM_TEXT, r, put_fee(&a, &r->rows[i]));
    store_pg__send(s, &s->work, sql, &a, &r->req, decode_nothing);
}

void store_pg__finish(struct store *base, struct store_finish *r)
{
    finish(base, r, SQL_FINISH_ROWS);
}

void store_pg__requeue(struct store *base, struct store_finish *r)
{
    finish(base, r, SQL_REQUEUE_ROWS);
}

/* ---- the account ---- */

void store_pg__nonce(struct store *base, struct store_nonce *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__fenced(s, &a, r->account, r->epoch);
    pg_put_int8(&a, r->next_nonce);
    pg_put_bool(&a, r->lower);
    pg_put_bool(&a, r->reborn);
    store_pg__send(s, &s->work, SQL_SET_NONCE, &a, &r->req, decode_nothing);
}

void store_pg__pause(struct store *base, struct store_pause *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__fenced(s, &a, r->account, r->epoch);
    pg_put_text(&a, r->suspension);
    pg_put_text(&a, r->reason);
    store_pg__send(s, &s->work, SQL_PAUSE_ACCOUNT, &a, &r->req, decode_nothing);
}
