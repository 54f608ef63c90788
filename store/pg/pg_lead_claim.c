/* Claims of accounts, on the control session: the session that holds the lock is the one that
 * claims. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "pg/pg.h"

/* ---- claims: those of one loop turn are batched, like the locks: one commit instead of N ---- */

enum { CLAIMS_MOST = 100 };

struct claim_op {
    struct list node;
    struct store_claim *r;
    bool alone;
};

static const char *copied(char **at, const char *text)
{
    size_t n = strlen(text) + 1;
    const char *copy = memcpy(*at, text, n);
    *at += n;
    return copy;
}

static void decode_claim(struct store_claim *c, struct pg_row *row)
{
    const char *holder = pg_get_text(row, 2, ""), *address = pg_get_text(row, 3, "");
    char *texts = store__arena(&c->req, strlen(holder) + strlen(address) + 2, NULL, NULL);
    c->granted = pg_get_bool(row, 0);
    c->epoch = pg_get_int(row, 1, 0);
    c->current_holder = copied(&texts, holder);
    c->current_address = copied(&texts, address);
    c->lock_held = pg_get_bool(row, 4);
    c->mid_submission = pg_get_bool(row, 5);
    c->expiry_1_left_ms = pg_get_int(row, 6, 0);
    c->expiry_2_left_ms = pg_get_int(row, 7, 0);
    if (row->bad)
        store_pg__misfit(&c->req, SQL_CLAIM_ACCOUNTS);
}

/* Without locks relays compete for rows, and those that want the same ones in another order
 * would stop each other. */
static bool together(const struct claim_op *x, const struct claim_op *y)
{
    const struct store_claim *a = x->r, *b = y->r;
    return !x->alone && !y->alone && a->have_lock && b->have_lock &&
           a->expiry_1_ms == b->expiry_1_ms && a->expiry_2_ms == b->expiry_2_ms &&
           !strcmp(a->holder, b->holder) &&
           !strcmp(a->address ? a->address : "", b->address ? b->address : "");
}

static void claims_flush(struct claim_batch *b);

/* What a server that lives refuses, or gives up waiting for, is about one of them: each asks for
 * itself. */
static bool ask_alone(struct claim_batch *b, const struct err *err)
{
    bool verdict = err->sqlstate[0] && err->code != ERR_DB_UNAVAILABLE && !b->s->closing;
    if (!verdict || list_first(&b->sent)->next == &b->sent)
        return false;
    while (!list_empty(&b->sent)) {
        struct list *last = b->sent.prev;
        list_remove(last);
        CONTAINER_OF(last, struct claim_op, node)->alone = true;
        list_append(b->waiting.next, last); /* before the first one */
    }
    return true;
}

static void on_claims(struct conn_query *q, const struct conn_result *r)
{
    struct claim_batch *b = CONTAINER_OF(q, struct claim_batch, query);
    struct pg_row row = {.r = r};
    if (r || !ask_alone(b, &q->err))
        for (struct list *n = list_first(&b->sent); n; n = list_first(&b->sent)) {
            struct claim_op *op = CONTAINER_OF(n, struct claim_op, node);
            struct store_claim *claim = op->r;
            list_remove(n);
            free(op);
            claim->req.err = q->err;
            row.bad |= r && row.row >= conn_result_rows(r);
            if (r && row.bad)
                store_pg__misfit(&claim->req, SQL_CLAIM_ACCOUNTS);
            else if (r)
                decode_claim(claim, &row);
            row.row++;
            store__answer(&b->s->base, &claim->req);
        }
    b->busy = false;
    claims_flush(b);
}

static void claims_send(struct claim_batch *b, size_t count)
{
    struct pg_args a;
    const struct store_claim *first = CONTAINER_OF(list_first(&b->sent), struct claim_op, node)->r;
    store_pg__args(b->s, &a);
    pg_array_begin(&a, PG_ELEM_INT4, count);
    LIST_EACH (n, &b->sent)
        pg_elem_int4(&a, CONTAINER_OF(n, struct claim_op, node)->r->account);
    pg_array_end(&a);
    pg_put_text(&a, first->holder);
    pg_put_text(&a, first->address);
    pg_put_bool(&a, first->have_lock);
    pg_put_int4(&a, (int32_t)first->expiry_1_ms);
    pg_put_int4(&a, (int32_t)first->expiry_2_ms);
    conn_query_start(b->s->control.conn, &b->query, sql__name(SQL_CLAIM_ACCOUNTS),
                     sql__text(SQL_CLAIM_ACCOUNTS), a.count, pg_args_end(&a), 1, on_claims);
}

static void claims_flush(struct claim_batch *b)
{
    struct list *first = list_first(&b->waiting);
    if (b->busy || !first)
        return;
    size_t count = 0;
    for (struct list *n = first; n && count < CLAIMS_MOST; n = list_first(&b->waiting)) {
        if (count && !together(CONTAINER_OF(first, struct claim_op, node),
                               CONTAINER_OF(n, struct claim_op, node)))
            break;
        list_remove(n);
        list_append(&b->sent, n);
        count++;
    }
    b->busy = true;
    claims_send(b, count);
}

static void on_task(struct loop_task *task)
{
    claims_flush(CONTAINER_OF(task, struct claim_batch, task));
}

void store_pg__claim(struct store *base, struct store_claim *r)
{
    struct store_pg *s = pg_of(base);
    struct claim_batch *b = &s->claims;
    if (store_pg__refused(s, &r->req))
        return;
    struct claim_op *op = xcalloc(1, sizeof(*op));
    op->r = r;
    list_append(&b->waiting, &op->node);
    if (!b->busy && !list_linked(&b->task.node)) /* once all that come now have come */
        loop_post(base->loop, &b->task, on_task);
}

void store_pg__claims_init(struct store_pg *s)
{
    s->claims.s = s;
    list_init(&s->claims.waiting);
    list_init(&s->claims.sent);
}

void store_pg__claims_cancel(struct store_pg *s)
{
    loop_task_cancel(&s->claims.task);
    for (struct list *n = list_first(&s->claims.waiting); n; n = list_first(&s->claims.waiting)) {
        struct claim_op *op = CONTAINER_OF(n, struct claim_op, node);
        list_remove(n);
        err_set(&op->r->req.err, ERR_CANCELED, "the store is closing");
        store__answer_later(&s->base, &op->r->req);
        free(op);
    }
}

/* ---- the account ---- */

static void decode_enroll(struct store_req *req, const struct conn_result *r)
{
    struct pg_row row = {.r = r};
    CONTAINER_OF(req, struct store_enroll, req)->account = (int32_t)pg_get_int(&row, 0, 0);
    if (row.bad)
        store_pg__misfit(req, SQL_REGISTER_ACCOUNT);
}

void store_pg__enroll(struct store *base, struct store_enroll *r)
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
    pg_put_int4(&a, (int32_t)r->era_longest);
    pg_put_bool(&a, r->era_immortal);
    pg_array_begin(&a, PG_ELEM_TEXT, r->beside_count);
    for (size_t i = 0; i < r->beside_count; i++)
        pg_elem_text(&a, r->beside[i]);
    pg_array_end(&a);
    store_pg__send(s, &s->work, SQL_REGISTER_ACCOUNT, &a, &r->req, decode_enroll);
}

/* ---- the end of a claim ---- */

static void decode_release(struct store_req *req, const struct conn_result *r)
{
    struct pg_row row = {.r = r};
    CONTAINER_OF(req, struct store_release, req)->released = pg_get_bool(&row, 0);
    if (row.bad)
        store_pg__misfit(req, SQL_RELEASE_CLAIM);
}

void store_pg__release(struct store *base, struct store_release *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->released = false;
    pg_put_int4(&a, r->account);
    pg_put_int8(&a, r->epoch);
    pg_put_text(&a, r->holder);
    store_pg__send(s, &s->control, SQL_RELEASE_CLAIM, &a, &r->req, decode_release);
}

static void decode_evict(struct store_req *req, const struct conn_result *r)
{
    struct store_evict *v = CONTAINER_OF(req, struct store_evict, req);
    if (conn_result_rows(r) == 0)
        return; /* the account is not registered, so it cannot be claimed */
    struct conn_result *rows = conn_result_take(r); /* the texts lie in it */
    struct pg_row row = {.r = rows};
    v->lock_holder = pg_get_text(&row, 0, "");
    v->terminated = pg_get_bool(&row, 1);
    v->current_holder = pg_get_text(&row, 2, "");
    v->current_address = pg_get_text(&row, 3, "");
    v->epoch = pg_get_int(&row, 4, 0);
    v->expiry_1_left_ms = pg_get_int(&row, 5, 0);
    store__arena(req, 0, rows, store_pg__free_rows);
    if (row.bad)
        store_pg__misfit(req, SQL_EVICT_HOLDER);
}

void store_pg__evict(struct store *base, struct store_evict *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->terminated = false;
    r->current_holder = r->current_address = r->lock_holder = "";
    r->epoch = r->expiry_1_left_ms = 0;
    pg_put_int8(&a, r->lock_key);
    store_pg__send(s, &s->control, SQL_EVICT_HOLDER, &a, &r->req, decode_evict);
}
