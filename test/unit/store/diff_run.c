/* One call to both sides. */
#include "base/alloc.h"
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

/* ---- one request to both ---- */

#define X(name, type)                                                                              \
    static void start_##name(struct store *s, struct store_req *req, store_cb cb)                  \
    {                                                                                              \
        store_##name##_start(s, CONTAINER_OF(req, struct type, req), cb);                          \
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
    if (what == MEM_REQUEST_doorbell_arm &&
        mem_doorbell_owner(d->db, u->doorbell_arm.account) == r->mem)
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
    if (what == MEM_REQUEST_retry && u->retry.deadline_ms && u->retry.deadline_ms != STORE_ASK_NONE)
        u->retry.deadline_ms += d->shift_us / 1000;
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

/* The ids of a side that fails come from its sequence too: they are brought into line before each
 * call. */
static void align_ids(struct diff *d, enum mem_request what, const union any_request *pg)
{
    int64_t id = what == MEM_REQUEST_enqueue ? pg->enqueue.id
                 : what == MEM_REQUEST_retry ? strtoll(pg->retry.answer, NULL, 10)
                                             : 0;
    if (!pg->req.err.code && id > d->db->t.last_id)
        d->db->t.last_id = id - 1;
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
    if (what == MEM_REQUEST_poll_requests && !pg->req.err.code) {
        d->pg_fingerprints[pg->poll_requests.account - 1] = pg->poll_requests.fingerprint;
        d->mem_fingerprints[pg->poll_requests.account - 1] = mem->poll_requests.fingerprint;
    }
}

void diff_request(struct diff *d, size_t relay, enum mem_request what, const union any_request *u)
{
    union any_request pg = *u, mem = *u;
    bool renewed[2][ACCOUNTS + 1] = {{false}};
    int64_t fingerprints[ACCOUNTS];
    buf_printf(&d->said, " %s by %zu", diff_request_name(what), relay);
    if (what == MEM_REQUEST_renew) {
        pg.renew.renewed = renewed[0];
        mem.renew.renewed = renewed[1];
    }
    if (what == MEM_REQUEST_due) {
        for (size_t i = 0; i < u->due.count;
             i++) /* the generator says by 0 which fingerprints are to be known */
            fingerprints[i] =
                u->due.fingerprints[i] < 0 ? -1 : d->mem_fingerprints[u->due.accounts[i] - 1];
        mem.due.fingerprints = fingerprints;
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
