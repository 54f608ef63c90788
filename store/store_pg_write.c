/* The leader's writes, on the work session: a batch is one statement, so it is one transaction that no frozen
 * client can hold open. Arrays travel in binary form. Amounts are decimal text: numeric's binary form would
 * gain nothing for a few digits. */
#include "base/check.h"
#include "store_pg.h"

static void decode_next_nonce(struct store_req *req, const struct conn_result *r)
{
    struct pg_row row = {.r = r};
    CONTAINER_OF(req, struct store_attempts, req)->next_nonce = pg_get_int(&row, 0, -1);
    if (row.bad)
        store_pg__misfit(req, SQL_ADMIT_ROWS);
}

/* ---- columns of attempts ---- */

static void put_ids(struct pg_args *a, const struct store_attempts *r)
{
    COLUMN(a, PG_ELEM_INT8, r, pg_elem_int8(a, r->rows[i].id));
}

static void put_nonces(struct pg_args *a, const struct store_attempts *r)
{
    COLUMN(a, PG_ELEM_INT8, r, pg_elem_int8(a, r->rows[i].nonce));
}

static void put_hashes(struct pg_args *a, const struct store_attempts *r)
{
    COLUMN(a, PG_ELEM_BYTES, r, pg_elem_bytes(a, r->rows[i].hash, 32));
}

static void put_tips(struct pg_args *a, const struct store_attempts *r)
{
    COLUMN(a, PG_ELEM_TEXT, r, pg_elem_text(a, r->rows[i].tip ? r->rows[i].tip : "0"));
}

static void put_eras(struct pg_args *a, const struct store_attempts *r)
{
    COLUMN(a, PG_ELEM_INT8, r, pg_elem_opt(a, r->rows[i].era_birth));
    COLUMN(a, PG_ELEM_INT8, r, pg_elem_opt(a, r->rows[i].era_death));
}

/* Hashes, bytes, tips, eras: the same for every kind of attempt that was signed here. */
static void put_signed(struct pg_args *a, const struct store_attempts *r)
{
    put_hashes(a, r);
    COLUMN(a, PG_ELEM_BYTES, r, pg_elem_bytes(a, r->rows[i].extrinsic.data, r->rows[i].extrinsic.len));
    put_tips(a, r);
    put_eras(a, r);
    pg_put_int8(a, r->spec_version);
    pg_put_int8(a, r->transaction_version);
    pg_put_int8(a, r->block);
}

static void put_reasons(struct pg_args *a, const struct store_attempts *r)
{
    COLUMN(a, PG_ELEM_TEXT, r, pg_elem_text(a, r->rows[i].reason));
}

/* Which of the attempts are fillers, and how their transactions end if these get in. */
static void put_fillers(struct pg_args *a, const struct store_attempts *r)
{
    COLUMN(a, PG_ELEM_INT4, r, pg_elem_opt4(a, r->rows[i].filler_len ? (int32_t)r->rows[i].filler_len : -1));
    COLUMN(a, PG_ELEM_TEXT, r, pg_elem_text(a, r->rows[i].filler_len ? r->rows[i].outcome : NULL));
    COLUMN(a, PG_ELEM_TEXT, r, pg_elem_text(a, r->rows[i].filler_len ? r->rows[i].stop_reason : NULL));
}

static void begin(struct store_pg *s, struct pg_args *a, int32_t account, int64_t epoch)
{
    store_pg__args(s, a);
    pg_put_int4(a, account);
    pg_put_int8(a, epoch);
}

void store_pg__admit(struct store *base, struct store_attempts *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    begin(s, &a, r->account, r->epoch);
    put_ids(&a, r);
    put_nonces(&a, r);
    put_signed(&a, r);
    store_pg__send(s, &s->work, SQL_ADMIT_ROWS, &a, &r->req, decode_next_nonce);
}

void store_pg__admit_signed(struct store *base, struct store_attempts *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    begin(s, &a, r->account, r->epoch);
    put_ids(&a, r);
    put_nonces(&a, r);
    put_hashes(&a, r);
    COLUMN(&a, PG_ELEM_INT4, r, pg_elem_opt4(&a, (int32_t)r->rows[i].call.len));
    put_tips(&a, r);
    put_eras(&a, r);
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, r->rows[i].block));
    pg_put_int8(&a, r->spec_version);
    pg_put_int8(&a, r->transaction_version);
    pg_put_int8(&a, r->next_nonce);
    store_pg__send(s, &s->work, SQL_ADMIT_SIGNED, &a, &r->req, decode_next_nonce);
}

void store_pg__note(struct store *base, struct store_note *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    begin(s, &a, r->account, r->epoch);
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, r->rows[i].id));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_opt(&a, r->rows[i].nonce));
    COLUMN(&a, PG_ELEM_BYTES, r, pg_elem_bytes(&a, r->rows[i].hash, 32));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_opt(&a, r->rows[i].era_death));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_opt(&a, r->rows[i].wait_block));
    COLUMN(&a, PG_ELEM_TEXT, r, pg_elem_text(&a, r->rows[i].text));
    store_pg__send(s, &s->work, SQL_NOTE_SIGNED, &a, &r->req, decode_nothing);
}

void store_pg__attempt(struct store *base, struct store_attempts *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    begin(s, &a, r->account, r->epoch);
    put_nonces(&a, r);
    put_signed(&a, r);
    put_reasons(&a, r);
    put_fillers(&a, r);
    store_pg__send(s, &s->work, SQL_ATTEMPT_ROWS, &a, &r->req, decode_nothing);
}

void store_pg__fill(struct store *base, struct store_attempts *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    begin(s, &a, r->account, r->epoch);
    put_nonces(&a, r);
    COLUMN(&a, PG_ELEM_BYTES, r, pg_elem_bytes(&a, r->rows[i].call.data, r->rows[i].call.len));
    put_signed(&a, r);
    COLUMN(&a, PG_ELEM_TEXT, r, pg_elem_text(&a, r->rows[i].outcome));
    put_reasons(&a, r);
    store_pg__send(s, &s->work, SQL_FILL_NONCES, &a, &r->req, decode_next_nonce);
}

/* ---- what the chain said ---- */

void store_pg__state(struct store *base, struct store_states *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    begin(s, &a, r->account, r->epoch);
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, r->rows[i].nonce));
    COLUMN(&a, PG_ELEM_BYTES, r, pg_elem_bytes(&a, r->rows[i].hash, 32));
    COLUMN(&a, PG_ELEM_TEXT, r, pg_elem_text(&a, r->rows[i].state));
    COLUMN(&a, PG_ELEM_BYTES, r, pg_elem_bytes(&a, r->rows[i].block_hash.data, r->rows[i].block_hash.len));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_opt(&a, r->rows[i].block_number));
    COLUMN(&a, PG_ELEM_TEXT, r, pg_elem_text(&a, r->rows[i].error));
    store_pg__send(s, &s->work, SQL_RECORD_STATES, &a, &r->req, decode_nothing);
}

static void put_outcomes(struct pg_args *a, const struct store_finish *r)
{
    COLUMN(a, PG_ELEM_TEXT, r, pg_elem_text(a, r->rows[i].outcome));
    COLUMN(a, PG_ELEM_TEXT, r, pg_elem_text(a, r->rows[i].error));
}

/* Without a hash: not where it ended, but from when on the nonce is used. */
static int64_t number_of(const struct store_finish_row *row)
{
    return row->block_number < 0 && row->used_block ? row->used_block : row->block_number;
}

static void finish(struct store *base, struct store_finish *r, enum sql_id sql)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    begin(s, &a, r->account, r->epoch);
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, r->rows[i].nonce));
    COLUMN(&a, PG_ELEM_BYTES, r, pg_elem_bytes(&a, r->rows[i].hash, 32));
    COLUMN(&a, PG_ELEM_BYTES, r,
           pg_elem_bytes(&a, r->rows[i].block_number < 0 ? NULL : r->rows[i].block_hash, 32));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_opt(&a, number_of(&r->rows[i])));
    COLUMN(&a, PG_ELEM_INT4, r, pg_elem_int4(&a, r->rows[i].index));
    put_outcomes(&a, r);
    COLUMN(&a, PG_ELEM_TEXT, r, pg_elem_text(&a, r->rows[i].fee));
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

void store_pg__reject(struct store *base, struct store_finish *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    begin(s, &a, r->account, r->epoch);
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, r->rows[i].id));
    put_outcomes(&a, r);
    store_pg__send(s, &s->work, SQL_REJECT_ROWS, &a, &r->req, decode_nothing);
}

/* ---- the account ---- */

void store_pg__nonce(struct store *base, struct store_nonce *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    begin(s, &a, r->account, r->epoch);
    pg_put_int8(&a, r->next_nonce);
    pg_put_bool(&a, r->lower);
    pg_put_bool(&a, r->reborn);
    store_pg__send(s, &s->work, SQL_SET_NONCE, &a, &r->req, decode_nothing);
}

void store_pg__pause(struct store *base, struct store_pause *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    begin(s, &a, r->account, r->epoch);
    pg_put_text(&a, r->hold);
    pg_put_text(&a, r->reason);
    store_pg__send(s, &s->work, SQL_PAUSE_ACCOUNT, &a, &r->req, decode_nothing);
}

static void decode_register(struct store_req *req, const struct conn_result *r)
{
    struct pg_row row = {.r = r};
    CONTAINER_OF(req, struct store_register, req)->account = (int32_t)pg_get_int(&row, 0, 0);
    if (row.bad)
        store_pg__misfit(req, SQL_REGISTER_ACCOUNT);
}

void store_pg__enroll(struct store *base, struct store_register *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    pg_put_text(&a, r->alias);
    pg_put_bytes(&a, r->account_id.data, r->account_id.len);
    pg_put_text(&a, r->scheme);
    pg_put_bytes(&a, r->genesis.data, r->genesis.len);
    pg_put_text(&a, r->address);
    pg_put_int8(&a, r->lock_key);
    pg_put_bool(&a, r->watch_only);
    store_pg__send(s, &s->work, SQL_REGISTER_ACCOUNT, &a, &r->req, decode_register);
}
