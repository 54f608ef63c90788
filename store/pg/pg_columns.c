/* Arguments and answers that several requests share. Arrays travel in binary form. Amounts are
 * decimal text: numeric's binary form would gain nothing for a few digits. */
#include "base/check.h"
#include "pg/pg.h"

void store_pg__free_rows(void *rows)
{
    conn_result_free(rows);
}

struct store_bytes store_pg__bytes(struct pg_row *row, int col)
{
    struct store_bytes b;
    b.data = pg_get_bytes(row, col, &b.len);
    return b;
}

void store_pg__fenced(struct store_pg *s, struct pg_args *a, int32_t account, int64_t epoch)
{
    store_pg__args(s, a);
    pg_put_int4(a, account);
    pg_put_int8(a, epoch);
}

/* ---- columns of attempts ---- */

void store_pg__put_ids(struct pg_args *a, const struct store_attempts *r)
{
    COLUMN(a, PG_ELEM_INT8, r, pg_elem_int8(a, r->rows[i].id));
}

void store_pg__put_nonces(struct pg_args *a, const struct store_attempts *r)
{
    COLUMN(a, PG_ELEM_INT8, r, pg_elem_int8(a, r->rows[i].nonce));
}

void store_pg__put_hashes(struct pg_args *a, const struct store_attempts *r)
{
    COLUMN(a, PG_ELEM_BYTES, r, pg_elem_bytes(a, r->rows[i].hash, 32));
}

void store_pg__put_tips(struct pg_args *a, const struct store_attempts *r)
{
    COLUMN(a, PG_ELEM_TEXT, r, pg_elem_text(a, r->rows[i].tip ? r->rows[i].tip : "0"));
}

void store_pg__put_eras(struct pg_args *a, const struct store_attempts *r)
{
    COLUMN(a, PG_ELEM_INT8, r, pg_elem_opt(a, r->rows[i].era_birth));
    COLUMN(a, PG_ELEM_INT8, r, pg_elem_opt(a, r->rows[i].era_death));
}

/* Hashes, bytes, tips, eras: the same for every kind of attempt that was signed here. */
void store_pg__put_signed(struct pg_args *a, const struct store_attempts *r)
{
    store_pg__put_hashes(a, r);
    COLUMN(a, PG_ELEM_BYTES, r,
           pg_elem_bytes(a, r->rows[i].extrinsic.data, r->rows[i].extrinsic.len));
    store_pg__put_tips(a, r);
    store_pg__put_eras(a, r);
    pg_put_int8(a, r->spec_version);
    pg_put_int8(a, r->transaction_version);
    pg_put_int8(a, r->block);
}

void store_pg__put_outcomes(struct pg_args *a, const struct store_finish *r)
{
    COLUMN(a, PG_ELEM_TEXT, r, pg_elem_text(a, r->rows[i].outcome));
    COLUMN(a, PG_ELEM_TEXT, r, pg_elem_text(a, store__text(r->rows[i].error)));
}

void store_pg__next_nonce(struct store_req *req, const struct conn_result *r)
{
    struct pg_row row = {.r = r};
    CONTAINER_OF(req, struct store_attempts, req)->next_nonce = pg_get_int(&row, 0, -1);
    if (row.bad)
        store_pg__misfit(req, SQL_ADMIT_ROWS);
}
