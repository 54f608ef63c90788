/* The store of a standalone relay, and of tests: one session on a memory database of its own
 * (store/mem_db.h). Requests run in the next round of the loop, in the order of the starts, and
 * answer there: a friendlier store than the database's would hide what is wrong in its callers. */
#include "mem/mem.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

enum { FINISHED_MOST = 10000, KEYS_MOST = 100000 };

struct store_mem {
    struct store base;
    struct store_mem_config config;
    struct mem_db *db;
    struct mem_session *session;
    int64_t begun_us; /* wall clock when the loop's clock was at begun_ms */
    uint64_t begun_ms;
    bool closing;
    struct loop_task open_task, close_task;
    void (*close_cb)(void *arg);
    void *close_arg;
};

static struct store_mem *mem_of(struct store *s)
{
    return CONTAINER_OF(s, struct store_mem, base);
}

/* ---- requests ---- */

static void run_request(struct loop_task *task)
{
    struct store_req *req = CONTAINER_OF(task, struct store_req, task);
    struct store_mem *s = mem_of(req->owner);
    if (s->closing)
        err_set(&req->err, ERR_CANCELED, "the store is closing");
    else if (s->base.state != STORE_UP)
        err_set(&req->err, ERR_DB_UNAVAILABLE, "the store is not open");
    else
        req->run(req);
    store__answer(&s->base, req);
}

static void enter(struct store *s, struct store_req *req, void (*run)(struct store_req *req))
{
    req->owner = s;
    req->run = run;
    loop_post(s->loop, &req->task, run_request);
}

/* A lock that is held is not taken again: it would stack. */
static bool answered(struct store_mem *s, enum mem_request what, struct store_req *req)
{
    if (what == MEM_REQUEST_lock) {
        struct store_lock *r = CONTAINER_OF(req, struct store_lock, req);
        return r->got = mem_lock_owner(s->db, r->lock_key) == s->session;
    }
    if (what == MEM_REQUEST_doorbell_arm) {
        struct store_doorbell *r = CONTAINER_OF(req, struct store_doorbell, req);
        return r->armed = mem_doorbell_owner(s->db, r->account) == s->session;
    }
    return false;
}

static void run(struct store_req *req, enum mem_request what)
{
    struct store_mem *s = mem_of(req->owner);
    if (!answered(s, what, req))
        mem_session_run(s->session, what, req);
}

#define X(name, type)                                                                              \
    static void run_##name(struct store_req *req)                                                  \
    {                                                                                              \
        run(req, MEM_REQUEST_##name);                                                              \
    }                                                                                              \
    static void enter_##name(struct store *s, struct type *r)                                      \
    {                                                                                              \
        enter(s, &r->req, run_##name);                                                             \
    }
STORE_REQUESTS(X)
#undef X

/* ---- what the database asks and tells ---- */

/* The loop's clock: a step of the wall clock moves nothing that was accepted. */
static int64_t now_us(void *arg)
{
    const struct store_mem *s = arg;
    return s->begun_us + (int64_t)(loop_now_ms(s->base.loop) - s->begun_ms) * 1000;
}

static int64_t wall_us(void *arg)
{
    (void)arg;
    return (int64_t)loop_wall_ms() * 1000;
}

static void report_event(const struct store_mem *s, const char *kind, const struct mem_notice *n,
                         const char *outcome, const char *error)
{
    static const uint8_t no_hash[32];
    if (s->config.on_event)
        s->config.on_event(s->config.arg, kind, n->account, n->nonce, n->id,
                           n->state ? n->state : "", n->hash ? n->hash : no_hash, outcome, error);
}

static void on_notice(void *arg, struct mem_session *to, const struct mem_notice *n)
{
    const struct store_mem *s = arg;
    (void)to;
    if (n->channel == MEM_OUTBOX_WAKE && s->config.on_wake)
        s->config.on_wake(s->config.arg, n->account);
    else if (n->channel == MEM_TX_NEW)
        report_event(s, "new", n, NULL, NULL);
    else if (n->channel == MEM_TX_UPDATE || n->channel == MEM_TX_REFUSED)
        report_event(s, "update", n, NULL, n->error);
    else if (n->channel == MEM_TX_REMOVED)
        report_event(s, "finished", n, n->nonce_outcome, n->error);
}

bool store_mem_idle(const struct store *base)
{
    const struct mem_tables *t = &CONTAINER_OF(base, const struct store_mem, base)->db->t;
    for (size_t i = 0; i < t->account_count; i++) {
        const struct mem_account *a = t->accounts[i];
        if (a->pending_count || !list_empty(&a->outbox) || !list_empty(&a->signed_rows))
            return false;
    }
    return true;
}

/* ---- life ---- */

static void opened(struct loop_task *task)
{
    struct store_mem *s = CONTAINER_OF(task, struct store_mem, open_task);
    s->base.state = STORE_UP;
    if (s->config.on_state)
        s->config.on_state(s->config.arg, STORE_UP, NULL);
}

static void mem_open(struct store *base)
{
    struct store_mem *s = mem_of(base);
    loop_post(base->loop, &s->open_task, opened);
}

static void closed(struct loop_task *task)
{
    struct store_mem *s = CONTAINER_OF(task, struct store_mem, close_task);
    void (*cb)(void *arg) = s->close_cb;
    void *arg = s->close_arg;
    s->db = mem_db_free(s->db);
    free(s);
    if (cb)
        cb(arg);
}

static void mem_close(struct store *base, void (*cb)(void *arg), void *arg)
{
    struct store_mem *s = mem_of(base);
    PRE(!s->closing);
    s->closing = true;
    base->state = STORE_DOWN;
    loop_task_cancel(&s->open_task);
    s->close_cb = cb;
    s->close_arg = arg;
    loop_post(base->loop, &s->close_task, closed); /* after the requests that wait */
}

static void mem_sessions(const struct store *base, struct store_status *ret)
{
    (void)base;
    (void)ret; /* a memory store has none */
}

static const struct store_ops ops = {.open = mem_open,
                                     .close = mem_close,
                                     .sessions = mem_sessions,
#define X(name, type) .name = enter_##name,
                                     STORE_ENTRIES(X)
#undef X
};

struct store *store_mem_new(struct loop *l, const struct store_mem_config *config)
{
    struct store_mem *s = xcalloc(1, sizeof(*s));
    s->base = (struct store){.ops = &ops, .loop = l, .state = STORE_DOWN};
    s->config = *config;
    s->begun_us = (int64_t)loop_wall_ms() * 1000;
    s->begun_ms = loop_now_ms(l);
    s->db = mem_db_new(&(struct mem_db_config){.now_us = now_us,
                                               .wall_us = wall_us,
                                               .on_notice = on_notice,
                                               .arg = s,
                                               .finished_most = FINISHED_MOST,
                                               .keys_most = KEYS_MOST,
                                               .always_wake = true});
    s->session = mem_session_new(s->db, s, true);
    mem_session_listen(s->session, MEM_LISTEN_SIGNALS | MEM_LISTEN_ROWS | MEM_TX_REFUSED);
    return &s->base;
}
