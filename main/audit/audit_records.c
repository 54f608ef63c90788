#include "audit/audit_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "cli.h"
#include "store/conn.h"

struct audit_records {
    struct loop *loop;
    struct conn *conn;
    struct err down;
    bool up;
};

/* ---- the connection ---- */

static void on_up(void *arg)
{
    struct audit_records *r = arg;
    r->up = true;
    loop_stop(r->loop);
}

static void on_down(void *arg, const struct err *err)
{
    struct audit_records *r = arg;
    r->down = *err;
    loop_stop(r->loop);
}

static void on_closed(void *arg)
{
    struct audit_records *r = arg;
    r->conn = NULL;
    loop_stop(r->loop);
}

struct audit_records *audit_records_open(struct loop *l, const char *dsn, struct err *ret_err)
{
    struct audit_records *r = xcalloc(1, sizeof(*r));
    r->loop = l;
    r->conn = conn_new(
        l, &(struct conn_config){
               .dsn = dsn, .name = "txrelay audit", .on_up = on_up, .on_down = on_down, .arg = r});
    conn_open(r->conn);
    while (!r->up && !r->down.code)
        loop_run(l);
    if (r->up)
        return r;
    *ret_err = r->down;
    audit_records_close(r);
    return NULL;
}

void audit_records_close(struct audit_records *r)
{
    if (!r)
        return;
    conn_close(r->conn, on_closed, r);
    while (r->conn)
        loop_run(r->loop);
    free(r);
}

/* ---- questions ---- */

struct question {
    struct conn_query q;
    struct audit_records *records;
    void (*rows)(void *arg, const struct conn_result *result);
    void *arg;
    bool done;
};

static void answered(struct conn_query *query, const struct conn_result *result)
{
    struct question *q = CONTAINER_OF(query, struct question, q);
    if (!query->err.code)
        q->rows(q->arg, result);
    q->done = true;
    loop_stop(q->records->loop);
}

static int ask(struct audit_records *r, const char *file, int nparams,
               const struct conn_param *params,
               void (*rows)(void *arg, const struct conn_result *result), void *arg,
               struct err *err)
{
    struct question q = {.records = r, .rows = rows, .arg = arg};
    conn_query_start(r->conn, &q.q, NULL, cli_sql(file), nparams, params, 0, answered);
    while (!q.done)
        loop_run(r->loop);
    *err = q.q.err;
    return err->code;
}

/* ---- values ---- */

static const char *cell(const struct conn_result *r, int row, int col)
{
    return conn_result_is_null(r, row, col) ? "" : conn_result_get(r, row, col, NULL);
}

static int64_t number(const struct conn_result *r, int row, int col)
{
    return strtoll(cell(r, row, col), NULL, 10);
}

static bool truth(const struct conn_result *r, int row, int col)
{
    return *cell(r, row, col) == 't';
}

static void hash(const struct conn_result *r, int row, int col, uint8_t out[32])
{
    const char *text = cell(r, row, col);
    if (!hex_decode_fixed(text, strlen(text), out, 32))
        memset(out, 0, 32);
}

static size_t account_index(const struct audit *a, int64_t account)
{
    size_t i = 0;
    while (i < a->account_count && a->accounts[i].number != account)
        i++;
    INVARIANT(i < a->account_count); /* the statement asked for these alone */
    return i;
}

static void put_accounts(const struct audit *a, struct buf *out)
{
    for (size_t i = 0; i < a->account_count; i++)
        buf_printf(out, "%c%d", i ? ',' : '{', a->accounts[i].number);
    buf_puts(out, a->account_count ? "}" : "{}");
}

/* ---- accounts ---- */

static void on_accounts(void *arg, const struct conn_result *r)
{
    struct audit *a = arg;
    a->account_count = (size_t)conn_result_rows(r);
    a->accounts = xcalloc(a->account_count + 1, sizeof(*a->accounts));
    for (int i = 0; i < conn_result_rows(r); i++) {
        struct audit_account *to = &a->accounts[i];
        const char *id = cell(r, i, 2);
        to->number = (int32_t)number(r, i, 0);
        snprintf(to->alias, sizeof(to->alias), "%s", cell(r, i, 1));
        to->id_len = strlen(id) / 2;
        INVARIANT(to->id_len <= sizeof(to->id));
        hex_decode_fixed(id, strlen(id), to->id, to->id_len);
    }
}

static bool is_wanted(const struct audit_account *x, const char *const *aliases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(x->alias, aliases[i]))
            return true;
    return count == 0;
}

int audit_records_accounts(struct audit_records *r, const char *const *aliases, size_t count,
                           const uint8_t genesis[32], struct audit *a, struct err *err)
{
    size_t kept = 0;
    char text[65];
    for (size_t i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", genesis[i]);
    struct conn_param params[] = {cli_text(text)};
    if (ask(r, "audit_accounts.sql", 1, params, on_accounts, a, err))
        return err->code;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < a->account_count && strcmp(a->accounts[at].alias, aliases[i]) != 0)
            at++;
        if (at == a->account_count)
            return err_set(err, ERR_ARGUMENT,
                           "no account of this chain has the alias '%.64s': txrelay accounts lists "
                           "them",
                           aliases[i]);
    }
    for (size_t i = 0; i < a->account_count; i++)
        if (is_wanted(&a->accounts[i], aliases, count))
            a->accounts[kept++] = a->accounts[i];
    a->account_count = kept;
    return 0;
}

static void on_kept(void *arg, const struct conn_result *r)
{
    *(int64_t *)arg = conn_result_rows(r) ? number(r, 0, 0) : -1;
}

int audit_records_kept(struct audit_records *r, int64_t *ret_ms, struct err *err)
{
    return ask(r, "audit_kept.sql", 0, NULL, on_kept, ret_ms, err);
}

/* ---- a chunk ---- */

struct reading {
    const struct audit *a;
    struct audit_chunk *c;
};

static void on_records(void *arg, const struct conn_result *r)
{
    const struct reading *x = arg;
    struct audit_chunk *c = x->c;
    c->record_count = (size_t)conn_result_rows(r);
    c->records = xcalloc(c->record_count + 1, sizeof(*c->records));
    for (int i = 0; i < conn_result_rows(r); i++) {
        struct audit_record *to = &c->records[i];
        to->account = account_index(x->a, number(r, i, 0));
        to->id = number(r, i, 1);
        to->requeued = number(r, i, 2);
        to->nonce = number(r, i, 3);
        hash(r, i, 4, to->hash);
        hash(r, i, 5, to->block_hash);
        to->block = (uint64_t)number(r, i, 6);
        to->index = (uint32_t)number(r, i, 7);
        snprintf(to->outcome, sizeof(to->outcome), "%s", cell(r, i, 8));
        to->has_fee = u128_parse(cell(r, i, 9), &to->fee);
        snprintf(to->creator, sizeof(to->creator), "%s", cell(r, i, 10));
    }
}

static void on_known(void *arg, const struct conn_result *r)
{
    struct audit_chunk *c = arg;
    INVARIANT((size_t)conn_result_rows(r) == c->extrinsic_count);
    for (int i = 0; i < conn_result_rows(r); i++) {
        struct audit_known *to = &c->known[i];
        to->attempt = truth(r, i, 0);
        to->pending = truth(r, i, 1);
        to->recorded = truth(r, i, 2);
        to->same = truth(r, i, 3);
        to->has_block = truth(r, i, 4);
        to->id = number(r, i, 5);
        snprintf(to->outcome, sizeof(to->outcome), "%s", cell(r, i, 6));
    }
}

static int read_known(struct audit_records *r, const struct audit *a, struct audit_chunk *c,
                      struct err *err)
{
    struct buf accounts = {0}, nonces = {0}, hashes = {0};
    c->known = xcalloc(c->extrinsic_count + 1, sizeof(*c->known));
    if (!c->extrinsic_count)
        return 0;
    for (size_t i = 0; i < c->extrinsic_count; i++) {
        const struct audit_extrinsic *x = &c->extrinsics[i];
        const char *between = i ? "," : "{";
        buf_printf(&accounts, "%s%d", between, a->accounts[x->account].number);
        buf_printf(&nonces, "%s%llu", between, (unsigned long long)x->nonce);
        buf_puts(&hashes, between);
        hex_put(&hashes, x->hash, 32);
    }
    buf_puts(&accounts, "}");
    buf_puts(&nonces, "}");
    buf_puts(&hashes, "}");
    struct conn_param params[] = {cli_text(buf_str(&accounts)), cli_text(buf_str(&nonces)),
                                  cli_text(buf_str(&hashes))};
    int rc = ask(r, "audit_known.sql", 3, params, on_known, c, err);
    buf_done(&accounts);
    buf_done(&nonces);
    buf_done(&hashes);
    return rc;
}

int audit_records_read(struct audit_records *r, const struct audit *a, struct audit_chunk *c,
                       struct err *err)
{
    PRE(!c->known && !c->records && c->block_count);
    struct buf accounts = {0};
    struct reading x = {a, c};
    char from[24], to[24];
    snprintf(from, sizeof(from), "%llu", (unsigned long long)c->blocks[0].number);
    snprintf(to, sizeof(to), "%llu", (unsigned long long)c->blocks[c->block_count - 1].number);
    put_accounts(a, &accounts);
    struct conn_param params[] = {cli_text(from), cli_text(to), cli_text(buf_str(&accounts))};
    int rc = ask(r, "audit_records.sql", 3, params, on_records, &x, err);
    buf_done(&accounts);
    return rc ? rc : read_known(r, a, c, err);
}

static void on_twice(void *arg, const struct conn_result *r)
{
    struct audit *a = arg;
    for (int i = 0; i < conn_result_rows(r); i++)
        audit_twice(a, account_index(a, number(r, i, 0)), number(r, i, 1), number(r, i, 2));
}

int audit_records_twice(struct audit_records *r, struct audit *a, uint64_t from, uint64_t to,
                        struct err *err)
{
    struct buf accounts = {0};
    char first[24], last[24];
    snprintf(first, sizeof(first), "%llu", (unsigned long long)from);
    snprintf(last, sizeof(last), "%llu", (unsigned long long)to);
    put_accounts(a, &accounts);
    struct conn_param params[] = {cli_text(first), cli_text(last), cli_text(buf_str(&accounts))};
    int rc = ask(r, "audit_twice.sql", 3, params, on_twice, a, err);
    buf_done(&accounts);
    return rc;
}
