/* Sites: what their leader reads. Rows live as long as the callback. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "pg/pg_sites.h"

static struct store_bytes bytes_of(struct pg_row *row, int col)
{
    struct store_bytes b;
    b.data = pg_get_bytes(row, col, &b.len);
    return b;
}

/* ---- the load ---- */

enum load_column {
    LOAD_FINAL,
    LOAD_WAIT_UNTIL,
    LOAD_LOST,
    LOAD_LOST_SINCE_MS,
    LOAD_HIGHEST,
    LOAD_KIND,
    LOAD_MEMBER,
    LOAD_ID,
    LOAD_HASH,
    LOAD_KEY,
    LOAD_NONCE,
    LOAD_DEATH,
    LOAD_EXTRINSIC,
    LOAD_CALL,
    LOAD_GUARD,
    LOAD_TIP,
    LOAD_MAX_TIP,
    LOAD_DEADLINE_BLOCK,
    LOAD_TRACE,
    LOAD_STOP,
};

/* What is gathered of the rows; each array has room for all of them. */
struct gathered {
    int64_t *next;
    struct store_site_tx *txs;
    struct store_site_bytes *attempts;
    struct store_site_dispatch *dispatches;
    size_t attempt_count;
};

static struct store_site_bytes read_bytes(struct pg_row *row)
{
    struct store_site_bytes b = {.key = (uint32_t)pg_get_int(row, LOAD_KEY, 0),
                                 .nonce = pg_get_int(row, LOAD_NONCE, 0),
                                 .death = pg_get_int(row, LOAD_DEATH, 0),
                                 .extrinsic = bytes_of(row, LOAD_EXTRINSIC)};
    pg_get_hash(row, LOAD_HASH, b.hash);
    return b;
}

static void read_tx(struct pg_row *row, struct store_site_tx *tx)
{
    *tx = (struct store_site_tx){
        .id = pg_get_int(row, LOAD_ID, 0),
        .call = bytes_of(row, LOAD_CALL),
        .cancel = pg_get_bool(row, LOAD_STOP),
        .guard = (uint32_t)pg_get_int(row, LOAD_GUARD, 0),
        .tip = pg_get_text(row, LOAD_TIP, NULL),
        .max_tip = pg_get_text(row, LOAD_MAX_TIP, NULL),
        .deadline_block = pg_get_int(row, LOAD_DEADLINE_BLOCK, -1),
        .trace = pg_get_text(row, LOAD_TRACE, NULL),
    };
}

/* A grant follows its transaction. */
static void read_load_row(struct pg_row *row, struct store_site_load *r, struct gathered *g)
{
    const char *kind = pg_get_text(row, LOAD_KIND, "");
    if (strcmp(kind, "key") == 0) {
        row->bad |= pg_get_int(row, LOAD_MEMBER, -1) != (int64_t)r->next_count;
        g->next[r->next_count++] = pg_get_int(row, LOAD_NONCE, 0);
    } else if (strcmp(kind, "tx") == 0) {
        read_tx(row, &g->txs[r->tx_count++]);
    } else if (strcmp(kind, "grant") == 0 && r->tx_count &&
               g->txs[r->tx_count - 1].id == pg_get_int(row, LOAD_ID, 0)) {
        struct store_site_tx *tx = &g->txs[r->tx_count - 1];
        g->attempts[g->attempt_count] = read_bytes(row);
        if (!tx->attempt_count++)
            tx->attempts = &g->attempts[g->attempt_count];
        g->attempt_count++;
    } else if (strcmp(kind, "dispatch") == 0) {
        g->dispatches[r->dispatch_count++] =
            (struct store_site_dispatch){.sender = (uint32_t)pg_get_int(row, LOAD_MEMBER, 0),
                                         .id = pg_get_int(row, LOAD_ID, 0),
                                         .bytes = read_bytes(row)};
    } else {
        row->bad = true;
    }
}

static void read_load(struct store_site_load *r, const struct conn_result *result, size_t n,
                      struct gathered *g)
{
    struct pg_row row = {.r = result};
    if (!n) {
        pg_session_misfit(&r->err, SQL_LOAD_SITES);
        return;
    }
    r->final = pg_get_int(&row, LOAD_FINAL, 0);
    r->wait_until = pg_get_int(&row, LOAD_WAIT_UNTIL, 0);
    r->lost = pg_get_bool(&row, LOAD_LOST);
    r->lost_since_ms = pg_get_int(&row, LOAD_LOST_SINCE_MS, 0);
    r->highest = pg_get_int(&row, LOAD_HIGHEST, 0);
    for (size_t i = 0; i < n; i++) {
        row.row = (int)i;
        read_load_row(&row, r, g);
    }
    r->next = g->next;
    r->txs = g->txs;
    r->dispatches = g->dispatches;
    if (row.bad)
        pg_session_misfit(&r->err, SQL_LOAD_SITES);
}

static void on_load(struct conn_query *q, const struct conn_result *result)
{
    struct store_site_load *r = CONTAINER_OF(q, struct store_site_load, query);
    size_t n = result ? (size_t)conn_result_rows(result) : 0;
    struct gathered g = {.next = xcalloc(n + 1, sizeof(*g.next)),
                         .txs = xcalloc(n + 1, sizeof(*g.txs)),
                         .attempts = xcalloc(n + 1, sizeof(*g.attempts)),
                         .dispatches = xcalloc(n + 1, sizeof(*g.dispatches))};
    r->err = q->err;
    r->next_count = r->tx_count = r->dispatch_count = 0;
    if (result)
        read_load(r, result, n, &g);
    r->cb(r);
    free(g.next);
    free(g.txs);
    free(g.attempts);
    free(g.dispatches);
}

void store_site_load_start(struct store_sites *s, struct store_site_load *r,
                           void (*cb)(struct store_site_load *r))
{
    struct pg_args a;
    r->cb = cb;
    store_sites__begin(s, &a, r->account, r->epoch);
    pg_session_ask(&s->session, &r->query, SQL_LOAD_SITES, &a, on_load);
}

/* ---- the poll ---- */

enum rows_column {
    ROWS_KIND, /* NULL in the only row: there is none */
    ROWS_ID,
    ROWS_CALL,
    ROWS_GUARD,
    ROWS_TIP,
    ROWS_MAX_TIP,
    ROWS_DEADLINE_BLOCK,
    ROWS_TRACE,
    ROWS_OUTCOME,
    ROWS_ERROR,
    ROWS_NEXT_MS,
    ROWS_PAUSED,
};

static void read_row(struct pg_row *row, struct store_site_rows *r, struct store_site_tx *txs,
                     struct store_site_stop *stops)
{
    const char *kind = pg_get_text(row, ROWS_KIND, "");
    if (strcmp(kind, "row") == 0)
        txs[r->count++] = (struct store_site_tx){
            .id = pg_get_int(row, ROWS_ID, 0),
            .call = bytes_of(row, ROWS_CALL),
            .guard = (uint32_t)pg_get_int(row, ROWS_GUARD, 0),
            .tip = pg_get_text(row, ROWS_TIP, NULL),
            .max_tip = pg_get_text(row, ROWS_MAX_TIP, NULL),
            .deadline_block = pg_get_int(row, ROWS_DEADLINE_BLOCK, -1),
            .trace = pg_get_text(row, ROWS_TRACE, NULL),
        };
    else if (strcmp(kind, "stop") == 0)
        stops[r->stop_count++] =
            (struct store_site_stop){.id = pg_get_int(row, ROWS_ID, 0),
                                     .outcome = pg_get_text(row, ROWS_OUTCOME, ""),
                                     .error = pg_get_text(row, ROWS_ERROR, "")};
}

static void on_rows(struct conn_query *q, const struct conn_result *result)
{
    struct store_site_rows *r = CONTAINER_OF(q, struct store_site_rows, query);
    size_t n = result ? (size_t)conn_result_rows(result) : 0;
    struct store_site_tx *txs = xcalloc(n + 1, sizeof(*txs));
    struct store_site_stop *stops = xcalloc(n + 1, sizeof(*stops));
    struct pg_row row = {.r = result};
    r->err = q->err;
    r->count = r->stop_count = 0;
    if (n) {
        r->next_ms = pg_get_int(&row, ROWS_NEXT_MS, -1);
        r->paused = pg_get_bool(&row, ROWS_PAUSED);
    }
    for (size_t i = 0; i < n; i++) {
        row.row = (int)i;
        read_row(&row, r, txs, stops);
    }
    if (result && (!n || row.bad))
        pg_session_misfit(&r->err, SQL_READ_SITE_ROWS);
    r->rows = txs;
    r->stops = stops;
    r->cb(r);
    free(txs);
    free(stops);
}

void store_site_rows_start(struct store_sites *s, struct store_site_rows *r,
                           void (*cb)(struct store_site_rows *r))
{
    struct pg_args a;
    r->cb = cb;
    store_sites__begin(s, &a, r->account, r->epoch);
    pg_put_int4(&a, (int32_t)r->limit);
    pg_array_begin(&a, PG_ELEM_INT8, r->known_count);
    for (size_t i = 0; i < r->known_count; i++)
        pg_elem_int8(&a, r->known[i]);
    pg_array_end(&a);
    pg_session_ask(&s->session, &r->query, SQL_READ_SITE_ROWS, &a, on_rows);
}

/* ---- whose calls ---- */

static void on_match(struct conn_query *q, const struct conn_result *result)
{
    struct store_site_match *r = CONTAINER_OF(q, struct store_site_match, query);
    int64_t *ids = xcalloc(2 * r->count + 1, sizeof(*ids)), *equals = ids + r->count;
    struct pg_row row = {.r = result};
    bool whole = result && (size_t)conn_result_rows(result) == r->count;
    r->err = q->err;
    for (size_t i = 0; whole && i < r->count; i++) {
        row.row = (int)i;
        ids[i] = pg_get_int(&row, 0, 0);
        equals[i] = pg_get_int(&row, 1, 0);
    }
    if (result && (!whole || row.bad))
        pg_session_misfit(&r->err, SQL_MATCH_SITE_CALLS);
    r->ids = ids;
    r->equals = equals;
    r->cb(r);
    free(ids);
}

void store_site_match_start(struct store_sites *s, struct store_site_match *r,
                            void (*cb)(struct store_site_match *r))
{
    struct pg_args a;
    r->cb = cb;
    store_sites__begin(s, &a, r->account, r->epoch);
    pg_array_begin(&a, PG_ELEM_BYTES, r->count);
    for (size_t i = 0; i < r->count; i++)
        pg_elem_bytes(&a, r->calls[i].data, r->calls[i].len);
    pg_array_end(&a);
    pg_array_begin(&a, PG_ELEM_INT8, r->count);
    for (size_t i = 0; i < r->count; i++)
        pg_elem_opt(&a, r->at_ms[i]);
    pg_array_end(&a);
    pg_session_ask(&s->session, &r->query, SQL_MATCH_SITE_CALLS, &a, on_match);
}
