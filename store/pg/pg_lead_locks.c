/* Advisory locks of the control session: leadership of accounts (64-bit keys) and doorbells (two
 * integers). Session locks stack: one unlock would not free what was taken twice. So the operations
 * of one key take turns, and a lock that is known to be held is not asked for again.
 *
 *   per key:  FREE --try--> ASKED_WAIT --got--> HELD --drop--> DROPPING_WAIT --> FREE
 *
 * At the end of each of its transactions a session goes through all locks that it has. So
 * operations of one sort that come together, or while one of theirs is at the server, go in one
 * statement: that many fewer walks for a relay of thousands of accounts. Doorbells also wait for a
 * moment, the longer the more locks there are (20 ms with 20,000): an account that is awake for so
 * much longer misses nothing.
 *
 * An operation that fails at the server leaves it open whether the session has the lock: the
 * session is dropped, and with it every lock. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/plant.h"
#include "pg/pg.h"

struct lock_key {
    int64_t key;
    int64_t kind;
};

enum { KIND_ACCOUNT, KIND_DOORBELL };
enum { BATCH_MOST = 500, LOCKS_A_MS = 1000 };

struct lock_entry {
    UT_hash_handle hh;
    struct lock_key key;
    bool held;
    /* of struct lock_op; the first one is at the server, or waits for its batch */
    struct list turns;
};

struct lock_op {
    struct list node, batch_node;
    bool sent;
    struct store_pg *s;
    struct lock_entry *entry;
    struct store_req *req;
    bool *out; /* of the request: is the lock held now? */
    bool take;
};

static struct lock_entry *entry_of(struct store_pg *s, int kind, int64_t key)
{
    struct lock_key k = {.key = key, .kind = kind};
    struct lock_entry *e;
    HASH_FIND(hh, s->locks, &k, sizeof(k), e);
    if (e)
        return e;
    e = xcalloc(1, sizeof(*e));
    e->key = k;
    list_init(&e->turns);
    HASH_ADD(hh, s->locks, key, sizeof(e->key), e);
    return e;
}

static void drop_if_idle(struct store_pg *s, struct lock_entry *e)
{
    if (e->held || !list_empty(&e->turns))
        return;
    HASH_DELETE(hh, s->locks, e);
    free(e);
}

static void send_op(struct lock_op *op);
static void flush(struct lock_batch *b);

/* Answer without asking, as far as the outcome is known, up to the first that must ask. */
static void next_turn(struct store_pg *s, struct lock_entry *e)
{
    for (struct list *n = list_first(&e->turns); n; n = list_first(&e->turns)) {
        struct lock_op *op = CONTAINER_OF(n, struct lock_op, node);
        if (PLANTED(LOCK_STACKED))
            e->held =
                false; /* it is not known that the session has it, and not given back either */
        if (op->take != e->held) {
            send_op(op);
            return;
        }
        *op->out = e->held;
        list_remove(n);
        store__answer_later(&s->base, op->req);
        free(op);
    }
    drop_if_idle(s, e);
}

static void settle(struct lock_op *op, const struct conn_query *q, bool held)
{
    struct store_pg *s = op->s;
    struct lock_entry *e = op->entry;
    struct store_req *req = op->req;
    req->err = q->err;
    e->held = held;
    *op->out = held;
    list_remove(&op->batch_node);
    list_remove(&op->node);
    free(op);
    if (s->closing) { /* the store ends right after this */
        next_turn(s, e);
        store__answer(&s->base, req);
        return;
    }
    store__answer_later(&s->base, req); /* behind those that were answered without asking */
    next_turn(s, e);
}

static void on_answer(struct conn_query *q, const struct conn_result *r)
{
    struct lock_batch *b = CONTAINER_OF(q, struct lock_batch, query);
    struct store_pg *s = b->s;
    if (!r && !s->closing)
        conn_reconnect(s->control.conn, &q->err); /* nothing to do when it is what failed */
    struct pg_row row = {.r = r};
    for (struct list *n = list_first(&b->sent); n; n = list_first(&b->sent)) {
        struct lock_op *op = CONTAINER_OF(n, struct lock_op, batch_node);
        settle(op, q, r && row.row < conn_result_rows(r) && pg_get_bool(&row, 0) && op->take);
        row.row++;
    }
    b->busy = false;
    uint64_t pause_ms = HASH_COUNT(s->locks) / LOCKS_A_MS;
    if (pause_ms && b->may_wait && !s->closing && !list_empty(&b->waiting))
        loop_timer_at(b->timer, loop_now_ms(s->base.loop) + pause_ms);
    else
        flush(b);
}

static void on_timer(void *arg)
{
    flush(arg);
}

static void flush(struct lock_batch *b)
{
    struct store_pg *s = b->s;
    size_t count = 0;
    if (b->busy)
        return;
    for (struct list *n = list_first(&b->waiting); n && count < BATCH_MOST;
         n = list_first(&b->waiting)) {
        list_remove(n);
        list_append(&b->sent, n);
        CONTAINER_OF(n, struct lock_op, batch_node)->sent = true;
        count++;
    }
    if (!count)
        return;
    b->busy = true;
    struct pg_args a;
    store_pg__args(s, &a);
    pg_array_begin(&a, PG_ELEM_INT8, count);
    LIST_EACH (n, &b->sent)
        pg_elem_int8(&a, CONTAINER_OF(n, struct lock_op, batch_node)->entry->key.key);
    pg_array_end(&a);
    conn_query_start(s->control.conn, &b->query, sql__name(b->statement), sql__text(b->statement),
                     a.count, pg_args_end(&a), 1, on_answer);
}

static void on_task(struct loop_task *task)
{
    flush(CONTAINER_OF(task, struct lock_batch, task));
}

static void send_op(struct lock_op *op)
{
    struct lock_batch *b = &op->s->batches[op->entry->key.kind][op->take];
    list_append(&b->waiting, &op->batch_node);
    if (!b->busy && !list_linked(&b->task.node) && !loop_timer_armed(b->timer))
        loop_post(op->s->base.loop, &b->task, on_task); /* once all that come now have come */
}

void store_pg__locks_init(struct store_pg *s)
{
    static const enum sql_id statements[2][2] = {{SQL_DROP_LOCK, SQL_TAKE_LOCK},
                                                 {SQL_DISARM_DOORBELL, SQL_ARM_DOORBELL}};
    for (int kind = 0; kind < 2; kind++)
        for (int take = 0; take < 2; take++) {
            struct lock_batch *b = &s->batches[kind][take];
            b->s = s;
            b->statement = statements[kind][take];
            b->may_wait = kind == KIND_DOORBELL;
            b->timer = loop_timer_new(s->base.loop, on_timer, b);
            list_init(&b->waiting);
            list_init(&b->sent);
        }
}

static void start(struct store *base, int kind, int64_t key, bool take, struct store_req *req,
                  bool *out)
{
    struct store_pg *s = pg_of(base);
    *out = false;
    if (s->base.state != STORE_UP || !s->config.use_lock) {
        /* Without locks nothing is ever held: leadership goes by expiry, and the leader polls. */
        if (s->base.state != STORE_UP)
            err_set(&req->err, s->closing ? ERR_CANCELED : ERR_DB_UNAVAILABLE,
                    "database is not connected");
        store__answer_later(base, req);
        return;
    }
    struct lock_entry *e = entry_of(s, kind, key);
    struct lock_op *op = xcalloc(1, sizeof(*op));
    *op = (struct lock_op){.s = s, .entry = e, .req = req, .out = out, .take = take};
    bool first = list_empty(&e->turns);
    list_append(&e->turns, &op->node);
    if (first)
        next_turn(s, e);
}

void store_pg__lock(struct store *s, struct store_lock *r)
{
    start(s, KIND_ACCOUNT, r->lock_key, true, &r->req, &r->got);
}

void store_pg__unlock(struct store *s, struct store_lock *r)
{
    start(s, KIND_ACCOUNT, r->lock_key, false, &r->req, &r->got);
}

void store_pg__doorbell_arm(struct store *s, struct store_doorbell *r)
{
    start(s, KIND_DOORBELL, r->account, true, &r->req, &r->armed);
}

void store_pg__doorbell_disarm(struct store *s, struct store_doorbell *r)
{
    start(s, KIND_DOORBELL, r->account, false, &r->req, &r->armed);
}

bool store_pg__lock_held(const struct store_pg *s, int64_t lock_key)
{
    struct lock_key k = {.key = lock_key, .kind = KIND_ACCOUNT};
    const struct lock_entry *e;
    HASH_FIND(hh, s->locks, &k, sizeof(k), e);
    return e && e->held;
}

/* What was at the server was answered before; what waits behind it finds a connection that is
 * down. */
void store_pg__locks_lost(struct store_pg *s)
{
    struct lock_entry *e, *next;
    HASH_ITER(hh, s->locks, e, next)
    {
        e->held = false;
        drop_if_idle(s, e);
    }
}

void store_pg__locks_cancel(struct store_pg *s)
{
    for (int i = 0; i < 4; i++) {
        struct lock_batch *b = &s->batches[i / 2][i % 2];
        loop_task_cancel(&b->task);
        b->timer = loop_timer_close(b->timer);
    }
    struct lock_entry *e, *next;
    HASH_ITER(hh, s->locks, e, next)
    {
        e->held = false;
        for (struct list *n = list_first(&e->turns), *after; n && n != &e->turns; n = after) {
            struct lock_op *op = CONTAINER_OF(n, struct lock_op, node);
            after = n->next;
            if (op->sent) /* ends with the connection */
                continue;
            if (list_linked(&op->batch_node))
                list_remove(&op->batch_node);
            list_remove(n);
            err_set(&op->req->err, ERR_CANCELED, "the store is closing");
            store__answer_later(&s->base, op->req);
            free(op);
        }
        drop_if_idle(s, e);
    }
}
