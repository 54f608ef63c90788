/* Transactions without a nonce: enqueue, which accounts have something to do, and admission, on the
 * work session. (Doorbells are session locks: pg_lead_locks.c.) */
#include "base/check.h"
#include "pg/pg.h"

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
    put_opt(&a, r->delay_ms);
    put_opt(&a, r->expires_in_ms);
    pg_put_text(&a, r->traceparent);
    pg_put_text(&a, r->who);
    store_pg__send(s, &s->work, SQL_ENQUEUE_CALL, &a, &r->req, decode_enqueue);
}

/* ---- which accounts have something to do. On the work session the answer comes in its place among
 * the requests of each of them ---- */

/* The rows come in the order of the question, with gaps. */
static void decode_due(struct store_req *req, const struct conn_result *r)
{
    struct store_due *d = CONTAINER_OF(req, struct store_due, req);
    size_t rows = (size_t)conn_result_rows(r), at = 0;
    struct store_want *wants = store__arena(req, rows * sizeof(*wants), NULL, NULL);
    struct pg_row row = {.r = r, .bad = rows > d->count};
    for (size_t i = 0; i < rows && !row.bad; i++, at++) {
        row.row = (int)i;
        int64_t account = pg_get_int(&row, 0, 0);
        while (at < d->count && d->accounts[at] != account)
            at++;
        row.bad |= at == d->count;
        wants[i] = (struct store_want){.index = at,
                                       .lost = pg_get_bool(&row, 1),
                                       .has_requests = pg_get_bool(&row, 2),
                                       .has_rows = pg_get_bool(&row, 3),
                                       .next_ms = pg_get_int(&row, 4, -1)};
    }
    if (row.bad) {
        store_pg__misfit(req, SQL_FIND_DUE);
        return;
    }
    d->wants = wants;
    d->want_count = rows;
}

void store_pg__due(struct store *base, struct store_due *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->wants = NULL;
    r->want_count = 0;
    COLUMN(&a, PG_ELEM_INT4, r, pg_elem_int4(&a, r->accounts[i]));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, r->epochs[i]));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_opt(&a, r->fingerprints[i]));
    pg_put_int4(&a, (int32_t)r->ahead_ms);
    store_pg__send(s, &s->work, SQL_FIND_DUE, &a, &r->req, decode_due);
}

/* ---- rows to admit ---- */

static void decode_outbox(struct store_req *req, const struct conn_result *r)
{
    struct store_outbox *box = CONTAINER_OF(req, struct store_outbox, req);
    struct conn_result *rows = conn_result_take(r);
    size_t n = (size_t)conn_result_rows(rows);
    struct store_outbox_row *out = store__arena(req, n * sizeof(*out), rows, store_pg__free_rows);
    struct pg_row row = {.r = rows};
    for (size_t i = 0; i < n; i++) {
        row.row = (int)i;
        if (conn_result_is_null(rows, (int)i, 1)) { /* passed over: one of each kind at most */
            if (pg_get_bool(&row, 12)) {
                box->waits_id = pg_get_int(&row, 0, 0);
                box->waits = pg_get_text(&row, 4, "");
            } else if (!box->held_id) {
                box->held_id = pg_get_int(&row, 0, 0);
                box->held_by = pg_get_text(&row, 4, "");
            }
            continue;
        }
        struct store_outbox_row *o = &out[box->count++];
        o->id = pg_get_int(&row, 0, 0);
        o->call = store_pg__bytes(&row, 1);
        o->priority = (int32_t)pg_get_int(&row, 2, 0);
        o->deadline_ms = pg_get_int(&row, 3, -1);
        o->creator = pg_get_text(&row, 4, "");
        o->guard = (uint32_t)pg_get_int(&row, 5, 0);
        o->tip = pg_get_text(&row, 6, NULL);
        o->max_tip = pg_get_text(&row, 7, NULL);
        o->deadline_block = pg_get_int(&row, 8, -1);
        o->retries = (uint32_t)pg_get_int(&row, 9, 0);
        o->presigned = pg_get_bool(&row, 10);
        int64_t reserved = pg_get_int(&row, 11, -1);
        o->waited = pg_get_bool(&row, 12);
        o->age_ms = pg_get_int(&row, 13, -1);
        o->trace = pg_get_text(&row, 14, NULL);
        box->reserved = reserved >= 0 ? reserved : box->reserved;
    }
    box->rows = out;
    if (row.bad)
        store_pg__misfit(req, SQL_READ_OUTBOX);
}

void store_pg__outbox(struct store *base, struct store_outbox *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->count = 0;
    r->rows = NULL;
    r->reserved = -1;
    r->held_id = 0;
    r->held_by = "";
    r->waits_id = 0;
    r->waits = "";
    pg_put_int4(&a, r->account);
    pg_put_int8(&a, r->epoch);
    pg_put_int4(&a, (int32_t)r->limit);
    pg_put_int8(&a, r->next_nonce);
    pg_put_int8(&a, r->block);
    store_pg__send(s, &s->work, SQL_READ_OUTBOX, &a, &r->req, decode_outbox);
}

void store_pg__admit(struct store *base, struct store_attempts *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__fenced(s, &a, r->account, r->epoch);
    store_pg__put_ids(&a, r);
    store_pg__put_nonces(&a, r);
    store_pg__put_signed(&a, r);
    store_pg__send(s, &s->work, SQL_ADMIT_ROWS, &a, &r->req, store_pg__next_nonce);
}

void store_pg__admit_signed(struct store *base, struct store_attempts *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__fenced(s, &a, r->account, r->epoch);
    store_pg__put_ids(&a, r);
    store_pg__put_nonces(&a, r);
    store_pg__put_hashes(&a, r);
    COLUMN(&a, PG_ELEM_INT4, r, pg_elem_opt4(&a, (int32_t)r->rows[i].call.len));
    store_pg__put_tips(&a, r);
    store_pg__put_eras(&a, r);
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, r->rows[i].block));
    pg_put_int8(&a, r->spec_version);
    pg_put_int8(&a, r->transaction_version);
    pg_put_int8(&a, r->next_nonce);
    store_pg__send(s, &s->work, SQL_ADMIT_PRESIGNED, &a, &r->req, store_pg__next_nonce);
}

void store_pg__note(struct store *base, struct store_note *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__fenced(s, &a, r->account, r->epoch);
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, r->rows[i].id));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_opt(&a, (int64_t)r->rows[i].nonce));
    COLUMN(&a, PG_ELEM_BYTES, r, pg_elem_bytes(&a, r->rows[i].hash, 32));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_opt(&a, r->rows[i].era_death));
    COLUMN(&a, PG_ELEM_INT8, r,
           pg_elem_opt(&a, r->rows[i].wait_block ? (int64_t)r->rows[i].wait_block : -1));
    COLUMN(&a, PG_ELEM_TEXT, r, pg_elem_text(&a, store__text(r->rows[i].text)));
    store_pg__send(s, &s->work, SQL_NOTE_PRESIGNED, &a, &r->req, decode_nothing);
}

void store_pg__reject(struct store *base, struct store_finish *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__fenced(s, &a, r->account, r->epoch);
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, r->rows[i].id));
    store_pg__put_outcomes(&a, r);
    store_pg__send(s, &s->work, SQL_REJECT_ROWS, &a, &r->req, decode_nothing);
}
