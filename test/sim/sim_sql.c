/* The statements that the product sends as text, and what the memory database says to them:
 * those of the listener (listen/sql), the locks, doorbells and claims that
 * store/pg/pg_lead_*.c put together, and the check of the schema. All
 * other requests of store.h go as they are (sim_request.c). */
#include "sim_sql.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hex.h"
#include "embedded.h"
#include "schema/schema.h"
#include "sim_memory.h"
#include "sql.h"

extern const struct embedded_file listen_sql_files[];
extern const size_t listen_sql_count;

/* ---- rows ---- */

static void put_cell(struct conn_result *r, const void *data, int len)
{
    struct cell *c = &r->cells[r->cap++];
    c->len = len;
    c->data = NULL;
    if (!data)
        return;
    c->data = world_alloc((size_t)len + 1);
    memcpy(c->data, data, (size_t)len);
}

static struct conn_result *result_new(int columns, size_t rows)
{
    struct conn_result *r = world_alloc(sizeof(*r));
    r->columns = columns;
    r->cells = world_alloc((size_t)columns * rows * sizeof(*r->cells));
    return r;
}

static void put_text(struct conn_result *r, const char *s)
{
    put_cell(r, s, s ? (int)strlen(s) : 0);
}

static void put_number(struct conn_result *r, const struct query *q, bool known, int64_t v)
{
    char text[24];
    uint8_t be[8];
    if (!known) {
        put_cell(r, NULL, 0);
        return;
    }
    if (q->format == 0) {
        snprintf(text, sizeof(text), "%" PRId64, v);
        put_text(r, text);
        return;
    }
    for (int i = 0; i < 8; i++)
        be[i] = (uint8_t)((uint64_t)v >> (56 - 8 * i));
    put_cell(r, be, 8);
}

static void put_bool(struct conn_result *r, bool v)
{
    put_cell(r, v ? "\1" : "\0", 1);
}

static void put_hex(struct conn_result *r, const uint8_t *hash, size_t len)
{
    put_cell(r, hash ? hex_log(hash, len) + 2 : NULL, (int)(2 * len));
}

int conn_result_rows(const struct conn_result *r)
{
    return r->rows;
}

int conn_result_columns(const struct conn_result *r)
{
    return r->columns;
}

static const struct cell *cell_of(const struct conn_result *r, int row, int col)
{
    PRE(row >= 0 && row < r->rows && col >= 0 && col < r->columns);
    return &r->cells[row * r->columns + col];
}

bool conn_result_is_null(const struct conn_result *r, int row, int col)
{
    return !cell_of(r, row, col)->data;
}

const char *conn_result_get(const struct conn_result *r, int row, int col, int *ret_len)
{
    const struct cell *c = cell_of(r, row, col);
    if (ret_len)
        *ret_len = c->len;
    return c->data;
}

const char *conn_result_name(const struct conn_result *r, int col)
{
    (void)r, (void)col;
    UNREACHABLE();
}

/* Nobody above this seam keeps rows of what is sent as text. */
struct conn_result *conn_result_take(const struct conn_result *r)
{
    (void)r;
    UNREACHABLE();
}

void conn_result_free(struct conn_result *r)
{
    INVARIANT(!r);
}

/* ---- parameters ---- */

static int64_t number(const struct query *q, int i)
{
    return q->params[i].data ? strtoll(q->params[i].data, NULL, 10) : 0;
}

/* A binary array of integers: its length, and one of them (pg_codec.c). */
static size_t array_count(const struct query *q, int i)
{
    const uint8_t *p = (const uint8_t *)q->params[i].data;
    return (size_t)p[12] << 24 | (size_t)p[13] << 16 | (size_t)p[14] << 8 | p[15];
}

static int64_t array_at(const struct query *q, int i, size_t index, size_t bytes)
{
    const uint8_t *p = (const uint8_t *)q->params[i].data + 20 + index * (4 + bytes) + 4;
    uint64_t v = 0;
    for (size_t k = 0; k < bytes; k++)
        v = v << 8 | p[k];
    return bytes == 4 ? (int32_t)(uint32_t)v : (int64_t)v;
}

/* A text array of numbers: {1,2}. */
static size_t list_of(const struct query *q, int i, int64_t *ret, size_t most)
{
    const char *at = q->params[i].data + 1;
    size_t n = 0;
    while (*at && *at != '}' && n < most) {
        char *end;
        ret[n++] = strtoll(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    return n;
}

/* ---- locks, doorbells, claims ---- */

static void locks(struct world *w, struct session *s, struct query *q, bool bell, bool take)
{
    size_t count = array_count(q, 0);
    q->result = result_new(1, count);
    for (size_t i = 0; i < count; i++) {
        int64_t key = array_at(q, 0, i, 8);
        struct store_lock lock = {.lock_key = key};
        struct store_doorbell doorbell = {.account = (int32_t)key};
        if (bell)
            db_run(w, s, take ? MEM_REQUEST_doorbell_arm : MEM_REQUEST_doorbell_disarm,
                   &doorbell.req);
        else
            db_run(w, s, take ? MEM_REQUEST_lock : MEM_REQUEST_unlock, &lock.req);
        put_bool(q->result, bell ? doorbell.armed : lock.got);
        q->result->rows++;
    }
}

static void take_lock(struct world *w, struct session *s, struct query *q)
{
    locks(w, s, q, false, true);
}

static void drop_lock(struct world *w, struct session *s, struct query *q)
{
    locks(w, s, q, false, false);
}

static void arm_doorbell(struct world *w, struct session *s, struct query *q)
{
    locks(w, s, q, true, true);
}

static void disarm_doorbell(struct world *w, struct session *s, struct query *q)
{
    locks(w, s, q, true, false);
}

static uint32_t be32(const struct query *q, int i)
{
    const uint8_t *p = (const uint8_t *)q->params[i].data;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void claim_accounts(struct world *w, struct session *s, struct query *q)
{
    size_t count = array_count(q, 0);
    q->result = result_new(8, count);
    for (size_t i = 0; i < count; i++) {
        struct store_claim c = {.account = (int32_t)array_at(q, 0, i, 4),
                                .holder = q->params[1].data,
                                .address = q->params[2].data,
                                .have_lock = *q->params[3].data != 0,
                                .expiry_1_ms = be32(q, 4),
                                .expiry_2_ms = be32(q, 5)};
        db_run(w, s, MEM_REQUEST_claim, &c.req);
        INVARIANT(!c.req.err.code);
        put_bool(q->result, c.granted);
        put_number(q->result, q, true, c.epoch);
        put_text(q->result, c.current_holder);
        put_text(q->result, c.current_address);
        put_bool(q->result, c.lock_held);
        put_bool(q->result, c.mid_submission);
        put_number(q->result, q, true, c.expiry_1_left_ms);
        put_number(q->result, q, true, c.expiry_2_left_ms);
        q->result->rows++;
        store_req_done(&c.req);
    }
}

/* The relay hears it: from now on it may send, for as long as a claim that was sent then lasts. */
void query_heard(struct world *w, const struct query *q)
{
    for (int i = 0; !strcmp(q->message.name, "claim_accounts") && i < q->result->rows; i++)
        if (*q->result->cells[i * q->result->columns].data)
            claim_heard(w, q->message.process, (int32_t)array_at(q, 0, (size_t)i, 4),
                        q->message.sent_at);
}

/* The schema is the one that is compiled in. */
static void check_schema(struct world *w, struct session *s, struct query *q)
{
    const struct schema_set *set = schema_set();
    struct buf migrations = {0};
    (void)w, (void)s;
    for (size_t i = 0; i < set->count; i++)
        buf_printf(&migrations, "%s%zu:%s:%s", i ? "," : "", i + 1, set->migrations[i].name,
                   set->migrations[i].checksum);
    q->result = result_new(7, 1);
    put_text(q->result, buf_str(&migrations));
    buf_done(&migrations);
    put_text(q->result, set->functions_checksum);
    put_text(q->result, "digest");
    put_text(q->result, "digest");
    put_text(q->result, "catalog");
    put_number(q->result, q, true, 1);
    put_number(q->result, q, true, 1);
    q->result->rows = 1;
}

/* ---- what a listener asks ---- */

enum { ROW_COLUMNS = 12, ROWS_MOST = 64 };

static void put_rows(struct query *q, const struct mem_follow_row *rows, size_t count)
{
    struct conn_result *r = q->result = result_new(ROW_COLUMNS, count);
    for (size_t i = 0; i < count; i++) {
        const struct mem_follow_row *x = &rows[i];
        put_number(r, q, true, x->account);
        put_number(r, q, x->nonce >= 0, x->nonce);
        put_number(r, q, x->id != 0, x->id);
        put_hex(r, x->hash, 32);
        put_text(r, x->state);
        put_hex(r, x->block_hash, 32);
        put_number(r, q, x->block_number >= 0, x->block_number);
        put_text(r, x->outcome);
        put_text(r, x->error);
        put_text(r, x->creator);
        put_number(r, q, true, x->at_us);
        put_text(r, x->trace);
        r->rows++;
    }
}

static void read_accounts(struct world *w, struct session *s, struct query *q)
{
    const struct mem_db *db = w->db.mem;
    size_t count = mem_account_count(db);
    struct conn_result *r = q->result = result_new(6, count + 1);
    (void)s;
    for (size_t i = 0; i < count || !i; i++) {
        const struct mem_account *a = i < count ? mem_account_at(db, (int32_t)i + 1) : NULL;
        put_number(r, q, a != NULL, a ? a->number : 0);
        put_text(r, a ? a->alias : NULL);
        put_hex(r, a ? a->account_id.data : NULL, a ? a->account_id.len : 0);
        put_text(r, a ? a->address : NULL);
        put_number(r, q, true, mem_follow_position(db));
        put_number(r, q, true, 0);
        r->rows++;
    }
}

static void read_sources(struct world *w, struct session *s, struct query *q)
{
    struct conn_result *r = q->result = result_new(2, SESSIONS);
    (void)s;
    for (int i = 0; i < SESSIONS; i++) {
        const struct session *x = &w->db.sessions[i];
        if (!x->serial || x->process >= RELAYS)
            continue;
        put_number(r, q, true, x->serial);
        put_number(r, q, true, db_now_us(w));
        r->rows++;
    }
}

static void scan_pending(struct world *w, struct session *s, struct query *q)
{
    struct mem_follow_row rows[ROWS_MOST];
    size_t limit = (size_t)number(q, 2);
    (void)s;
    INVARIANT(limit <= ROWS_MOST);
    size_t n = mem_scan_pending(w->db.mem, (int32_t)number(q, 0), number(q, 1),
                                (int32_t)number(q, 3), number(q, 4), limit, rows);
    put_rows(q, rows, n);
}

static void scan_finished(struct world *w, struct session *s, struct query *q)
{
    struct mem_follow_row rows[ROWS_MOST];
    size_t limit = (size_t)number(q, 4);
    (void)s;
    INVARIANT(limit <= ROWS_MOST);
    size_t n = mem_scan_finished(w->db.mem, number(q, 0), (int32_t)number(q, 1), number(q, 2),
                                 number(q, 3), (int32_t)number(q, 5), number(q, 6), limit, rows);
    put_rows(q, rows, n);
}

static void find_finished(struct world *w, struct session *s, struct query *q)
{
    enum { MOST = 1024 };
    static int64_t ids[MOST], accounts64[MOST], nonces[MOST];
    static int32_t accounts[MOST];
    static struct mem_follow_row rows[2 * MOST];
    size_t count = list_of(q, 0, ids, MOST), fillers = list_of(q, 1, accounts64, MOST);
    (void)s;
    list_of(q, 2, nonces, MOST);
    for (size_t i = 0; i < fillers; i++)
        accounts[i] = (int32_t)accounts64[i];
    put_rows(
        q, rows,
        mem_find_finished(w->db.mem, count, ids, fillers, accounts, nonces, ARRAY_LEN(rows), rows));
}

static void probe(struct world *w, struct session *s, struct query *q)
{
    char channels[4];
    size_t n = 1;
    (void)w, (void)s;
    for (const char *at = q->params[0].data; *at; at++)
        n += *at == ',';
    snprintf(channels, sizeof(channels), "%zu", n);
    q->result = result_new(3, 1);
    put_text(q->result, channels);
    put_text(q->result, "0"); /* the usage of the queue */
    put_text(q->result, "0"); /* by which the clock is behind */
    q->result->rows = 1;
}

/* ---- retention: nothing of a simulated day is old enough ---- */

static void clean_nothing(struct world *w, struct session *s, struct query *q)
{
    (void)w, (void)s;
    q->result = result_new(1, 1);
    put_number(q->result, q, true, 0);
    q->result->rows = 1;
}

/* ---- the statements ---- */

static const struct {
    const char *name;
    void (*run)(struct world *w, struct session *s, struct query *q);
} statements[] = {
    {"take_lock", take_lock},
    {"drop_lock", drop_lock},
    {"arm_doorbell", arm_doorbell},
    {"disarm_doorbell", disarm_doorbell},
    {"claim_accounts", claim_accounts},
    {"check_schema", check_schema},
    {"read_accounts.sql", read_accounts},
    {"read_sources.sql", read_sources},
    {"scan_pending.sql", scan_pending},
    {"scan_finished.sql", scan_finished},
    {"find_finished.sql", find_finished},
    {"probe_signals.sql", probe},
    {"probe_listen.sql", probe},
    {"ensure_partitions", clean_nothing},
    {"drop_partitions", clean_nothing},
    {"clean_account", clean_nothing},
};

/* The embedded text is the statement; its file's name says which. */
static const char *name_of(const char *sql)
{
    for (size_t i = 0; i < listen_sql_count; i++)
        if (listen_sql_files[i].text == sql)
            return listen_sql_files[i].name;
    for (int i = 0; i < SQL_COUNT; i++)
        if (sql__text((enum sql_id)i) == sql)
            return sql__name((enum sql_id)i);
    return sql;
}

static void run_query(struct world *w, struct session *s, struct message *m)
{
    struct query *q = CONTAINER_OF(m, struct query, message);
    for (size_t i = 0; i < ARRAY_LEN(statements); i++)
        if (!strcmp(statements[i].name, m->name)) {
            statements[i].run(w, s, q);
            return;
        }
    fprintf(stderr, "the simulator does not know this statement: %s\n", m->name);
    UNREACHABLE();
}

static void release_query(struct message *m)
{
    struct query *q = CONTAINER_OF(m, struct query, message);
    for (int i = 0; i < q->count; i++)
        free(q->params[i].data);
    if (!q->result)
        return;
    for (int i = 0; i < q->result->rows * q->result->columns; i++)
        free(q->result->cells[i].data);
    free(q->result->cells);
    free(q->result);
}

struct query *query_new(const char *sql, int count, const struct conn_param *params, int format)
{
    struct query *q = world_alloc(sizeof(*q));
    PRE(count <= (int)ARRAY_LEN(q->params));
    q->message.run = run_query;
    q->message.release = release_query;
    q->message.name = name_of(sql);
    q->message.account = -1;
    q->count = count;
    q->format = format;
    for (int i = 0; i < count; i++) {
        const struct conn_param *p = &params[i];
        if (!p->data)
            continue;
        size_t len = p->format ? (size_t)p->len : strlen(p->data);
        q->params[i].len = (int)len;
        q->params[i].data = world_alloc(len + 1);
        memcpy(q->params[i].data, p->data, len);
    }
    return q;
}
