/* The leader's reads, on the work session. What they return lies in the rows of libpq until
 * store_req_done; one more block holds the array that points into them. */
#include "base/check.h"
#include "pg/pg.h"

/* ---- what every snapshot and request poll says about the account ---- */

enum facts_column {
    FACTS_PAUSED,
    FACTS_SUSPENSION,
    FACTS_REBORN,
    FACTS_TRANSACTION_VERSION,
    FACTS_TIP_START,
    FACTS_TIP_STEP,
    FACTS_TIP_CAP,
    FACTS_TIP_STEP_PERCENT,
    FACTS_TIP_AFTER_BLOCKS,
    FACTS_SKIP_AFTER_BLOCKS,
    FACTS_REQUEUE_USURPED,
    FACTS_LOW_BALANCE,
    FACTS_RETRY_REFUSALS,
    FACTS_COUNT,
};

static void decode_facts(struct pg_row *row, struct store_account *out)
{
    out->paused = pg_get_bool(row, FACTS_PAUSED);
    out->suspension = pg_get_text(row, FACTS_SUSPENSION, "");
    out->reborn = pg_get_bool(row, FACTS_REBORN);
    out->transaction_version = (uint32_t)pg_get_int(row, FACTS_TRANSACTION_VERSION, 0);
    out->tip_start = pg_get_text(row, FACTS_TIP_START, "0");
    out->tip_step = pg_get_text(row, FACTS_TIP_STEP, "0");
    out->tip_cap = pg_get_text(row, FACTS_TIP_CAP, NULL);
    out->tip_step_percent = (uint32_t)pg_get_int(row, FACTS_TIP_STEP_PERCENT, 0);
    out->tip_after_blocks = (uint32_t)pg_get_int(row, FACTS_TIP_AFTER_BLOCKS, 0);
    out->skip_after_blocks = (uint32_t)pg_get_int(row, FACTS_SKIP_AFTER_BLOCKS, 0);
    out->requeue_usurped = pg_get_bool(row, FACTS_REQUEUE_USURPED);
    out->low_balance = pg_get_text(row, FACTS_LOW_BALANCE, NULL);
    out->retry_refusals = pg_get_text(row, FACTS_RETRY_REFUSALS, NULL);
}

/* ---- pending rows ---- */

enum snapshot_column {
    SNAP_NEXT_NONCE = FACTS_COUNT,
    SNAP_USED_NONCE,
    SNAP_USED_BLOCK,
    SNAP_SEEN_BLOCK,
    SNAP_RECONCILE_FROM,
    SNAP_LOST_SINCE_MS,
    SNAP_LOST_UNTIL,
    SNAP_ERA_IMMORTAL,
    SNAP_SUSPENSION_TEXT,
    SNAP_DATABASE_MS,
    SNAP_NONCE, /* NULL in the only row: no pending row after after_nonce */
    SNAP_ID,
    SNAP_STATE,
    SNAP_HASH,
    SNAP_ATTEMPT,
    SNAP_EXTRINSIC,
    SNAP_CALL,
    SNAP_BLOCK_HASH,
    SNAP_BLOCK_NUMBER,
    SNAP_ERA_BIRTH,
    SNAP_ERA_DEATH,
    SNAP_SPEC_VERSION,
    SNAP_TIP,
    SNAP_SUBMITTED_BLOCK,
    SNAP_EARLIER, /* hashes, 32 bytes each */
    SNAP_GUARD,
    SNAP_MAX_TIP,
    SNAP_DEADLINE_BLOCK,
    SNAP_RETRIES,
    SNAP_FILLER,
    SNAP_STOP_OUTCOME,
    SNAP_STOP_REASON,
    SNAP_EARLIER_OWN,
    SNAP_EARLIER_DEATH,
    SNAP_PRESIGNED,
    SNAP_AGE_MS,
    SNAP_TRACE,
};

static void decode_pending(struct pg_row *row, struct tx_pending *out)
{
    out->nonce = (uint64_t)pg_get_int(row, SNAP_NONCE, -1);
    out->id = pg_get_int(row, SNAP_ID, 0);
    out->state = pg_get_text(row, SNAP_STATE, "");
    pg_get_hash(row, SNAP_HASH, out->hash);
    out->attempt = (int32_t)pg_get_int(row, SNAP_ATTEMPT, 0);
    out->bytes = pg_get_bytes(row, SNAP_EXTRINSIC, &out->bytes_len);
    pg_get_bytes(row, SNAP_CALL, &out->call_len);
    out->has_block = store_pg__bytes(row, SNAP_BLOCK_HASH).data != NULL;
    if (out->has_block)
        pg_get_hash(row, SNAP_BLOCK_HASH, out->block_hash);
    out->block_number = pg_get_int(row, SNAP_BLOCK_NUMBER, -1);
    out->era_birth = pg_get_int(row, SNAP_ERA_BIRTH, -1);
    out->era_death = pg_get_int(row, SNAP_ERA_DEATH, -1);
    out->spec_version = (uint32_t)pg_get_int(row, SNAP_SPEC_VERSION, 0);
    out->tip = pg_get_amount(row, SNAP_TIP, 0);
    out->submitted_block = (uint64_t)pg_get_int(row, SNAP_SUBMITTED_BLOCK, 0);
    out->guard = (uint32_t)pg_get_int(row, SNAP_GUARD, 0);
    out->has_max_tip = pg_get_text(row, SNAP_MAX_TIP, NULL) != NULL;
    out->max_tip = pg_get_amount(row, SNAP_MAX_TIP, U128_MAX);
    out->deadline_block = (uint64_t)pg_get_int(row, SNAP_DEADLINE_BLOCK, 0);
    out->retries = (uint32_t)pg_get_int(row, SNAP_RETRIES, 0);
    out->filler_len = (size_t)pg_get_int(row, SNAP_FILLER, 0);
    out->stop_outcome = pg_get_text(row, SNAP_STOP_OUTCOME, NULL);
    out->stop_reason = pg_get_text(row, SNAP_STOP_REASON, NULL);
    out->earlier_own = (size_t)pg_get_int(row, SNAP_EARLIER_OWN, 0);
    out->earlier_death = pg_get_int(row, SNAP_EARLIER_DEATH, 0);
    out->presigned = pg_get_bool(row, SNAP_PRESIGNED);
    out->age_ms = pg_get_int(row, SNAP_AGE_MS, -1);
    out->trace = pg_get_text(row, SNAP_TRACE, NULL);
    struct store_bytes earlier = store_pg__bytes(row, SNAP_EARLIER);
    row->bad |= earlier.len % 32 != 0;
    out->earlier_count = earlier.len / 32;
    out->earlier = (const uint8_t(*)[32])(const void *)earlier.data;
}

static void decode_snapshot(struct store_req *req, const struct conn_result *r)
{
    struct store_snapshot *snap = CONTAINER_OF(req, struct store_snapshot, req);
    struct conn_result *rows = conn_result_take(r);
    size_t n = (size_t)conn_result_rows(rows);
    struct tx_pending *out = store__arena(req, n * sizeof(*out), rows, store_pg__free_rows);
    struct pg_row row = {.r = rows};
    if (!n) {
        store_pg__misfit(req, SQL_READ_SNAPSHOT);
        return;
    }
    snap->next_nonce = pg_get_int(&row, SNAP_NEXT_NONCE, -1);
    snap->used_nonce = pg_get_int(&row, SNAP_USED_NONCE, -1);
    snap->used_block = pg_get_int(&row, SNAP_USED_BLOCK, -1);
    snap->seen_block = pg_get_int(&row, SNAP_SEEN_BLOCK, -1);
    snap->reconcile_from = pg_get_int(&row, SNAP_RECONCILE_FROM, -1);
    snap->lost_since_ms = pg_get_int(&row, SNAP_LOST_SINCE_MS, 0);
    snap->lost_until = pg_get_int(&row, SNAP_LOST_UNTIL, -1);
    snap->database_ms = pg_get_int(&row, SNAP_DATABASE_MS, 0);
    snap->era_immortal = pg_get_bool(&row, SNAP_ERA_IMMORTAL);
    snap->suspension_text = pg_get_text(&row, SNAP_SUSPENSION_TEXT, NULL);
    decode_facts(&row, &snap->facts);
    if (n == 1 && pg_get_int(&row, SNAP_NONCE, -1) < 0)
        n = 0;
    for (size_t i = 0; i < n; i++) {
        row.row = (int)i;
        decode_pending(&row, &out[i]);
        row.bad |= i && out[i].nonce <= out[i - 1].nonce;
    }
    snap->rows = out;
    snap->count = n;
    if (row.bad)
        store_pg__misfit(req, SQL_READ_SNAPSHOT);
}

void store_pg__snapshot(struct store *base, struct store_snapshot *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->count = 0;
    r->rows = NULL;
    pg_put_int4(&a, r->account);
    pg_put_int8(&a, r->epoch);
    pg_put_int8(&a, r->after_nonce);
    pg_put_int4(&a, (int32_t)r->limit);
    store_pg__send(s, &s->work, SQL_READ_SNAPSHOT, &a, &r->req, decode_snapshot);
}

/* ---- what is to be stopped ---- */

enum request_column {
    REQUEST_HAS_ROWS = FACTS_COUNT,
    REQUEST_NEXT_MS,
    REQUEST_FINGERPRINT,
    REQUEST_NONCE,
    REQUEST_ID,
    REQUEST_OUTCOME,
    REQUEST_ERROR,
    REQUEST_TIP,
    REQUEST_TRACE
};

static void decode_requests(struct store_req *req, const struct conn_result *r)
{
    struct store_poll_requests *polled = CONTAINER_OF(req, struct store_poll_requests, req);
    struct conn_result *rows = conn_result_take(r);
    size_t n = (size_t)conn_result_rows(rows);
    struct store_ended *ended;
    struct tx_stop *out =
        store__arena(req, n * (sizeof(*out) + sizeof(*ended)), rows, store_pg__free_rows);
    struct pg_row row = {.r = rows};
    ended = (struct store_ended *)(out + n);
    if (!n) {
        store_pg__misfit(req, SQL_POLL_REQUESTS);
        return;
    }
    polled->has_rows = pg_get_bool(&row, REQUEST_HAS_ROWS);
    polled->next_ms = pg_get_int(&row, REQUEST_NEXT_MS, -1);
    polled->fingerprint = pg_get_int(&row, REQUEST_FINGERPRINT, -1);
    decode_facts(&row, &polled->facts);
    for (size_t i = 0; i < n; i++) {
        row.row = (int)i;
        int64_t nonce = pg_get_int(&row, REQUEST_NONCE, -1), id = pg_get_int(&row, REQUEST_ID, 0);
        const char *outcome = pg_get_text(&row, REQUEST_OUTCOME, NULL);
        const char *error = pg_get_text(&row, REQUEST_ERROR, outcome ? "" : NULL);
        if (nonce >= 0)
            out[polled->count++] = (struct tx_stop){
                .nonce = (uint64_t)nonce,
                .id = id,
                .outcome = outcome,
                .reason = error,
                .tip = outcome ? 0 : pg_get_amount(&row, REQUEST_TIP, 0),
            };
        else if (id && outcome)
            ended[polled->ended_count++] = (struct store_ended){
                .id = id,
                .outcome = outcome,
                .error = error,
                .trace = pg_get_text(&row, REQUEST_TRACE, ""),
            };
    }
    polled->stops = out;
    polled->ended = ended;
    if (row.bad)
        store_pg__misfit(req, SQL_POLL_REQUESTS);
}

void store_pg__poll_requests(struct store *base, struct store_poll_requests *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->count = r->ended_count = 0;
    r->stops = NULL;
    r->ended = NULL;
    pg_put_int4(&a, r->account);
    pg_put_int8(&a, r->epoch);
    store_pg__send(s, &s->work, SQL_POLL_REQUESTS, &a, &r->req, decode_requests);
}
