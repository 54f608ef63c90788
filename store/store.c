/* The starts of all requests, which hand them to the implementation, and what both implementations
 * share. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "store_internal.h"

struct arena {
    void *extra;
    void (*free_extra)(void *extra);
    max_align_t data[];
};

void *store__arena(struct store_req *req, size_t n, void *extra, void (*free_extra)(void *extra))
{
    PRE(!req->arena);
    struct arena *a = xcalloc(1, sizeof(*a) + n);
    a->extra = extra;
    a->free_extra = free_extra;
    req->arena = a;
    return a->data;
}

void store_req_done(struct store_req *req)
{
    struct arena *a = req->arena;
    if (!a)
        return;
    if (a->free_extra)
        a->free_extra(a->extra);
    free(a);
    req->arena = NULL;
}

static void begin(struct store *s, struct store_req *req, store_cb cb)
{
    PRE(!req->arena); /* store_req_done was forgotten */
    PRE(!list_linked(&req->task.node));
    err_clear(&req->err);
    req->cb = cb;
    s->started++;
    req->started_ms = loop_now_ms(s->loop);
}

static void ended(struct store *s, const struct store_req *req)
{
    INVARIANT(s->ended < s->started);
    s->ended++;
    s->failed += req->err.code != 0;
    s->took_ms += loop_now_ms(s->loop) - req->started_ms;
}

void store__answer(struct store *s, struct store_req *req)
{
    ended(s, req);
    req->cb(req);
}

static void answer_posted(struct loop_task *task)
{
    struct store_req *req = CONTAINER_OF(task, struct store_req, task);
    req->cb(req);
}

void store__answer_later(struct store *s, struct store_req *req)
{
    ended(s, req); /* the store may be gone by then */
    loop_post(s->loop, &req->task, answer_posted);
}

#define START(part, name, type)                                                                    \
    void store_##name##_start(struct store *s, struct type *r, store_cb cb)                        \
    {                                                                                              \
        begin(s, &r->req, cb);                                                                     \
        s->ops->part.name(s, r);                                                                   \
    }
#define X(name, type) START(lead, name, type)
STORE_LEAD_REQUESTS(X)
#undef X
#define X(name, type) START(outbox, name, type)
STORE_OUTBOX_REQUESTS(X)
#undef X
#define X(name, type) START(pending, name, type)
STORE_PENDING_REQUESTS(X)
#undef X
#define X(name, type) START(operators, name, type)
STORE_OPERATOR_REQUESTS(X)
#undef X

void store_open(struct store *s)
{
    s->ops->open(s);
}

void store_close(struct store *s, void (*cb)(void *arg), void *arg)
{
    s->ops->close(s, cb, arg);
}

enum store_state store_state(const struct store *s)
{
    return s->state;
}

struct store_status store_status(const struct store *s)
{
    struct store_status r = {.state = s->state,
                             .started = s->started,
                             .failed = s->failed,
                             .in_flight = (size_t)(s->started - s->ended),
                             .took_ms = s->took_ms};
    s->ops->sessions(s, &r);
    return r;
}

int64_t store__end_number(const struct tx_end *end)
{
    if (end->has_block)
        return end->block_number;
    return end->used_block ? end->used_block : -1;
}

int32_t store__end_index(const struct tx_end *end)
{
    return end->has_block ? (int32_t)end->index : -1;
}

const char *store__text(const char *text)
{
    return text[0] ? text : NULL;
}
