/* Advisory locks of the control session: leadership of accounts (64-bit keys) and doorbells (two integers).
 * Session locks stack: one unlock would not free what was taken twice. So the operations of one key take
 * turns, and a lock that is known to be held is not asked for again.
 *
 *   per key:  FREE --try--> ASKED_WAIT --got--> HELD --drop--> DROPPING_WAIT --> FREE
 *
 * An operation that fails at the server leaves it open whether the session has the lock: the session is
 * dropped, and with it every lock. */
#include <stdlib.h>

#include "base/check.h"
#include "store_pg.h"

struct lock_key {
    int64_t key;
    int64_t kind;
};

enum { KIND_ACCOUNT, KIND_DOORBELL };

struct lock_entry {
    UT_hash_handle hh;
    struct lock_key key;
    bool held;
    struct list turns; /* of struct lock_op; the first one is at the server */
};

struct lock_op {
    struct list node;
    struct conn_query query;
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

/* Answer without asking, as far as the outcome is known, up to the first that must ask. */
static void next_turn(struct store_pg *s, struct lock_entry *e)
{
    for (struct list *n = list_first(&e->turns); n; n = list_first(&e->turns)) {
        struct lock_op *op = CONTAINER_OF(n, struct lock_op, node);
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

static void on_answer(struct conn_query *q, const struct conn_result *r)
{
    struct lock_op *op = CONTAINER_OF(q, struct lock_op, query);
    struct store_pg *s = op->s;
    struct lock_entry *e = op->entry;
    struct store_req *req = op->req;
    req->err = q->err;
    if (r) {
        struct pg_row row = {.r = r};
        bool yes = pg_get_bool(&row, 0);
        e->held = op->take && yes;
    } else {
        e->held = false;
        if (!s->closing)
            conn_reconnect(s->control.conn, &q->err); /* nothing to do when it is what failed */
    }
    *op->out = e->held;
    list_remove(&op->node);
    free(op);
    if (s->closing) { /* the store ends right after this */
        next_turn(s, e);
        req->cb(req);
        return;
    }
    store__answer_later(&s->base, req); /* behind those that were answered without asking */
    next_turn(s, e);
}

static void send_op(struct lock_op *op)
{
    struct store_pg *s = op->s;
    bool account = op->entry->key.kind == KIND_ACCOUNT;
    enum sql_id id = account ? (op->take ? SQL_TAKE_LOCK : SQL_DROP_LOCK)
                             : (op->take ? SQL_ARM_DOORBELL : SQL_DISARM_DOORBELL);
    struct pg_args a;
    store_pg__args(s, &a);
    if (account)
        pg_put_int8(&a, op->entry->key.key);
    else
        pg_put_int4(&a, (int32_t)op->entry->key.key);
    conn_query_start(s->control.conn, &op->query, sql__name(id), sql__text(id), a.count, pg_args_end(&a), 1,
                     on_answer);
}

static void start(struct store *base, int kind, int64_t key, bool take, struct store_req *req, bool *out)
{
    struct store_pg *s = pg_of(base);
    *out = false;
    if (s->base.state != STORE_UP || !s->config.use_lock) {
        /* Without locks nothing is ever held: leadership goes by expiry, and the leader polls. */
        if (s->base.state != STORE_UP)
            err_set(&req->err, s->closing ? ERR_CANCELED : ERR_DB_UNAVAILABLE, "database is not connected");
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

/* The operation at the server was answered before; what waits behind it finds a connection that is down. */
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
    struct lock_entry *e, *next;
    HASH_ITER(hh, s->locks, e, next)
    {
        e->held = false;
        struct list *first = list_first(&e->turns);
        for (struct list *n = first ? first->next : NULL; n && n != &e->turns; n = first->next) {
            struct lock_op *op = CONTAINER_OF(n, struct lock_op, node);
            list_remove(n);
            err_set(&op->req->err, ERR_CANCELED, "the store is closing");
            store__answer_later(&s->base, op->req);
            free(op);
        }
        drop_if_idle(s, e);
    }
}
