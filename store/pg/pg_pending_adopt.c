/* What a failover lost and the chain still knows, on the work session
 * (schema/functions/17_reconcile.sql). */
#include "base/check.h"
#include "pg/pg.h"

static void decode_adopted(struct store_req *req, const struct conn_result *r)
{
    struct pg_row row = {.r = r};
    CONTAINER_OF(req, struct store_adopt, req)->adopted = (int32_t)pg_get_int(&row, 0, 0);
    if (row.bad)
        store_pg__misfit(req, SQL_ADOPT_ROWS);
}

static void put_bytes(struct pg_args *a, const struct store_adopt *r)
{
    COLUMN(a, PG_ELEM_INT8, r, pg_elem_int8(a, (int64_t)r->rows[i].nonce));
    COLUMN(a, PG_ELEM_BYTES, r, pg_elem_bytes(a, r->rows[i].hash, 32));
    COLUMN(a, PG_ELEM_BYTES, r, pg_elem_bytes(a, r->rows[i].bytes, r->rows[i].bytes_len));
    COLUMN(a, PG_ELEM_INT4, r, pg_elem_int4(a, (int32_t)r->rows[i].call_len));
    COLUMN(a, PG_ELEM_TEXT, r, pg_elem_amount(a, r->rows[i].tip));
}

static void put_times(struct pg_args *a, const struct store_adopt *r)
{
    COLUMN(a, PG_ELEM_INT8, r, pg_elem_opt(a, r->rows[i].era_birth));
    COLUMN(a, PG_ELEM_INT8, r, pg_elem_opt(a, r->rows[i].era_death));
    COLUMN(a, PG_ELEM_INT8, r, pg_elem_opt(a, r->rows[i].time_ms));
}

void store_pg__adopt(struct store *base, struct store_adopt *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    r->adopted = 0;
    store_pg__args(s, &a);
    pg_put_int4(&a, r->account);
    pg_put_int8(&a, r->epoch);
    put_bytes(&a, r);
    put_times(&a, r);
    pg_put_int8(&a, r->spec_version);
    pg_put_int8(&a, r->transaction_version);
    pg_put_int8(&a, r->block);
    pg_put_bool(&a, r->done);
    if (r->read < 0)
        pg_put_null8(&a);
    else
        pg_put_int8(&a, r->read);
    store_pg__send(s, &s->work, SQL_ADOPT_ROWS, &a, &r->req, decode_adopted);
}

/* ---- the wait ---- */

static void decode_heard(struct store_req *req, const struct conn_result *r)
{
    struct pg_row row = {.r = r};
    CONTAINER_OF(req, struct store_heard, req)->until = pg_get_int(&row, 0, -1);
    if (row.bad)
        store_pg__misfit(req, SQL_NOTE_HEARD);
}

void store_pg__heard(struct store *base, struct store_heard *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    r->until = -1;
    store_pg__fenced(s, &a, r->account, r->epoch);
    pg_put_int8(&a, r->heard);
    store_pg__send(s, &s->work, SQL_NOTE_HEARD, &a, &r->req, decode_heard);
}
