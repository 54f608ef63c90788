/* The two sides, and one call to both. */
#include "diff.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- clocks ---- */

int64_t diff_real_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t diff_now_us(const struct diff *d)
{
    return diff_real_us() + d->shift_us;
}

static int64_t now_us(void *arg)
{
    return diff_now_us(arg);
}

/* ---- requests of the superuser ---- */

struct sql {
    struct conn_query q;
    struct loop *l;
    char *cell;
    bool done;
};

static void on_sql(struct conn_query *q, const struct conn_result *r)
{
    struct sql *x = CONTAINER_OF(q, struct sql, q);
    bool any = r && conn_result_rows(r) && conn_result_columns(r) && !conn_result_is_null(r, 0, 0);
    x->cell = xstrdup(any ? conn_result_get(r, 0, 0, NULL) : "");
    x->done = true;
    loop_stop(x->l);
}

static char *ask(struct diff *d, struct conn *c, const char *text, struct err *ret_err)
{
    struct sql x = {.l = d->l};
    conn_query_start(c, &x.q, NULL, text, 0, NULL, 0, on_sql);
    while (!x.done)
        loop_run(d->l);
    *ret_err = x.q.err;
    return x.cell;
}

char *diff_sql(struct diff *d, enum diff_conn conn, char ret_state[6], const char *fmt, ...)
{
    char text[4000];
    struct err err;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    assert_true(n > 0 && (size_t)n < sizeof(text));
    buf_printf(&d->said, " %s", text);
    char *cell = ask(d, d->conns[conn], text, &err);
    snprintf(ret_state, 6, "%s", err.sqlstate);
    return cell;
}

char *diff_admin(struct diff *d, const char *sql)
{
    struct err err;
    char *cell = ask(d, d->conns[DIFF_ADMIN], sql, &err);
    if (err.code)
        fail_msg("%s: %s", sql, err.text);
    return cell;
}

/* ---- life ---- */

static void on_session_end(void *arg, struct mem_session *s)
{
    struct diff *d = arg;
    for (size_t i = 0; i < RELAYS; i++)
        if (d->relays[i].mem == s)
            d->relays[i].mem = NULL;
}

static struct conn *connect_admin(struct diff *d)
{
    struct conn *c = conn_new(
        d->l,
        &(struct conn_config){
            .dsn = d->server.dsn, .name = "diff", .backoff_base_ms = 10, .on_notify = diff_hear, .arg = d});
    conn_open(c);
    WAIT_FOR(d->l, conn_is_up(c));
    return c;
}

void diff_open(struct diff *d)
{
    static char dsn[300];
    fx_pg_start(&d->server, "");
    fx_migrate(d->server.dsn);
    free(fx_pg_sql(&d->server, "CREATE ROLE relay LOGIN IN ROLE txrelay_relay"));
    free(fx_pg_sql(&d->server, "GRANT pg_signal_backend, pg_read_all_stats TO postgres"));
    snprintf(dsn, sizeof(dsn), "host=%s port=5432 user=relay dbname=postgres", d->server.dir);
    d->l = loop_new();
    for (size_t i = 0; i < RELAYS; i++) {
        struct side *r = &d->relays[i];
        struct store_pg_config config = {.control_dsn = dsn, .use_lock = i != 2};
        r->use_lock = config.use_lock;
        snprintf(r->holder, sizeof(r->holder), "relay-%zu", i);
        fx_store_pg(&r->pg, d->l, &config);
    }
    for (size_t i = 0; i < RELAYS; i++)
        WAIT_FOR(d->l, d->relays[i].pg.ups == 1);
    for (size_t i = 0; i < DIFF_CONNS; i++)
        d->conns[i] = connect_admin(d);
    diff_listen(d);
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void close_conn(struct diff *d, struct conn *c)
{
    bool closed = false;
    conn_close(c, on_closed, &closed);
    WAIT_FOR(d->l, closed);
}

void diff_close(struct diff *d)
{
    d->db = mem_db_free(d->db);
    for (size_t i = 0; i < RELAYS; i++)
        fx_store_close(&d->relays[i].pg);
    for (size_t i = 0; i < DIFF_CONNS; i++)
        close_conn(d, d->conns[i]);
    diff_notices_clear(d);
    loop_free(d->l);
    buf_done(&d->said);
    buf_done(&d->why);
    fx_pg_stop(&d->server);
}

static void open_memory(struct diff *d)
{
    d->db = mem_db_free(d->db);
    d->db = mem_db_new(&(struct mem_db_config){
        .now_us = now_us, .on_notice = diff_notice, .on_session_end = on_session_end, .arg = d});
    for (size_t i = 0; i < RELAYS; i++)
        d->relays[i].mem = mem_session_new(d->db, &d->relays[i], d->relays[i].use_lock);
    d->mem_app = mem_session_new(d->db, NULL, true);
    d->mem_admin = mem_session_new(d->db, NULL, true);
    mem_session_listen(d->mem_admin, MEM_LISTEN_SIGNALS | MEM_LISTEN_ROWS);
}

/* The sessions of Postgres stay: they give their locks back by requests. */
static void drop_locks(struct diff *d)
{
    for (size_t i = 0; i < RELAYS; i++)
        for (size_t k = 0; d->db && k < mem_account_count(d->db); k++) {
            const struct mem_account *a = mem_account_at(d->db, (int32_t)k + 1);
            struct store_lock lock = {.lock_key = a->lock_key};
            struct store_doorbell bell = {.account = a->number};
            RUN_OK(&d->relays[i].pg, unlock, &lock);
            RUN_OK(&d->relays[i].pg, doorbell_disarm, &bell);
        }
}

void diff_reset(struct diff *d)
{
    drop_locks(d);
    free(diff_admin(d, "SET session_replication_role = replica"));
    free(diff_admin(d, "TRUNCATE txrelay.accounts, txrelay.leases, txrelay.outbox, txrelay.outbox_signed, "
                       "txrelay.idempotency_keys, txrelay.pending_transactions, txrelay.cancellations, "
                       "txrelay.bumps, txrelay.attempts, txrelay.refusals, txrelay.finished_transactions, "
                       "txrelay.members RESTART IDENTITY"));
    free(diff_admin(d, "SET session_replication_role = origin"));
    free(diff_admin(d, "SELECT setval('txrelay.transaction_id', 1, false)"));
    d->shift_us = 0;
    d->began_us = diff_real_us();
    d->last_hash = d->last_id = 0;
    d->call = 0;
    d->open = d->differs = false;
    open_memory(d);
    diff_notices_compare(d); /* what is left of the seed before */
    d->differs = false;
    for (size_t i = 0; i < RELAYS; i++)
        memset(d->relays[i].epochs, 0, sizeof(d->relays[i].epochs));
    for (size_t i = 0; i < ACCOUNTS; i++)
        d->pg_marks[i] = d->mem_marks[i] = -1;
}

/* ---- one request to both ---- */

#define X(name, type)                                                                                        \
    static void start_##name(struct store *s, struct store_req *req, store_cb cb)                            \
    {                                                                                                        \
        store_##name##_start(s, CONTAINER_OF(req, struct type, req), cb);                                    \
    }
STORE_REQUESTS(X)
#undef X

static struct loop *waiting;
static bool answered;

static void on_answer(struct store_req *req)
{
    (void)req;
    answered = true;
    loop_stop(waiting);
}

static void run_pg(struct diff *d, size_t relay, enum mem_request what, union any_request *u)
{
    static void (*const starts[])(struct store * s, struct store_req * req, store_cb cb) = {
#define X(name, type) [MEM_REQUEST_##name] = start_##name,
        STORE_REQUESTS(X)
#undef X
    };
    answered = false;
    waiting = d->l;
    starts[what](d->relays[relay].pg.s, &u->req, on_answer);
    while (!answered)
        loop_run(d->l);
}

/* What a store of store.h does not ask again. */
static bool held(struct diff *d, struct side *r, enum mem_request what, union any_request *u)
{
    if (what == MEM_REQUEST_lock && mem_lock_owner(d->db, u->lock.lock_key) == r->mem)
        return u->lock.got = true;
    if (what == MEM_REQUEST_doorbell_arm && mem_doorbell_owner(d->db, u->doorbell_arm.account) == r->mem)
        return u->doorbell_arm.armed = true;
    return false;
}

static void run_mem(struct diff *d, size_t relay, enum mem_request what, union any_request *u)
{
    struct side *r = &d->relays[relay];
    if (what == MEM_REQUEST_enqueue) {
        int64_t *times[] = {&u->enqueue.not_before_ms, &u->enqueue.deadline_ms};
        for (size_t i = 0; i < 2; i++)
            *times[i] += *times[i] ? d->shift_us / 1000 : 0;
    }
    if (!held(d, r, what, u))
        mem_session_run(r->mem, what, &u->req);
}

void diff_found(struct diff *d, const char *what, const char *pg, const char *mem)
{
    if (d->differs)
        return;
    d->differs = true;
    buf_clear(&d->why);
    buf_printf(&d->why, "seed %llu, call %zu (%s): %s\n  Postgres: %s\n  memory:   %s",
               (unsigned long long)d->seed, d->call, buf_str(&d->said), what, pg, mem);
}

/* The ids of a side that fails come from its sequence too: they are brought into line before each call. */
static void align_ids(struct diff *d, enum mem_request what, const union any_request *pg)
{
    if (what == MEM_REQUEST_enqueue && !pg->req.err.code && pg->enqueue.id > d->db->t.last_id)
        d->db->t.last_id = pg->enqueue.id - 1;
}

/* A session that was ended comes back, without its locks. */
static void bring_back(struct diff *d)
{
    for (size_t i = 0; i < RELAYS; i++) {
        struct side *r = &d->relays[i];
        if (r->mem)
            continue;
        WAIT_FOR(d->l, r->pg.control_lost);
        WAIT_FOR(d->l, store_state(r->pg.s) == STORE_UP);
        r->pg.control_lost = 0;
        r->mem = mem_session_new(d->db, r, r->use_lock);
    }
}

static void compare(struct diff *d, enum mem_request what, const union any_request *pg,
                    const union any_request *mem)
{
    struct buf x = {0}, y = {0};
    int64_t real_ms = diff_real_us() / 1000;
    diff_answer(&x, what, pg, real_ms);
    diff_answer(&y, what, mem, real_ms + d->shift_us / 1000);
    if (strcmp(buf_str(&x), buf_str(&y)) != 0) {
        buf_printf(&x, " (%s)", pg->req.err.text);
        buf_printf(&y, " (%s)", mem->req.err.text);
        diff_found(d, "answers differ", buf_str(&x), buf_str(&y));
    }
    buf_done(&x);
    buf_done(&y);
}

static void learn(struct diff *d, size_t relay, enum mem_request what, const union any_request *pg,
                  const union any_request *mem)
{
    if (what == MEM_REQUEST_claim && !pg->req.err.code && pg->claim.granted)
        d->relays[relay].epochs[pg->claim.account - 1] = pg->claim.epoch;
    if (what == MEM_REQUEST_look && !pg->req.err.code) {
        d->pg_marks[pg->look.account - 1] = pg->look.mark;
        d->mem_marks[pg->look.account - 1] = mem->look.mark;
    }
}

void diff_request(struct diff *d, size_t relay, enum mem_request what, const union any_request *u)
{
    union any_request pg = *u, mem = *u;
    bool renewed[2][ACCOUNTS + 1] = {{false}};
    int64_t marks[ACCOUNTS];
    buf_printf(&d->said, " %s by %zu", diff_request_name(what), relay);
    if (what == MEM_REQUEST_renew) {
        pg.renew.renewed = renewed[0];
        mem.renew.renewed = renewed[1];
    }
    if (what == MEM_REQUEST_due) {
        for (size_t i = 0; i < u->due.count; i++) /* the generator says by 0 which marks are to be known */
            marks[i] = u->due.marks[i] < 0 ? -1 : d->mem_marks[u->due.accounts[i] - 1];
        mem.due.marks = marks;
    }
    run_pg(d, relay, what, &pg);
    align_ids(d, what, &pg);
    run_mem(d, relay, what, &mem);
    compare(d, what, &pg, &mem);
    learn(d, relay, what, &pg, &mem);
    store_req_done(&pg.req);
    store_req_done(&mem.req);
    bring_back(d);
}
