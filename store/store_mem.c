/* The memory store's requests: each runs in the next round of the loop, in the order of the starts, and
 * answers there. A friendlier double than the database would hide what is wrong in its callers. */
#include "store_mem.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

char *mem__copy(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

struct store_bytes mem__copy_bytes(const void *data, size_t len)
{
    uint8_t *out = xmalloc(len ? len : 1);
    if (len)
        memcpy(out, data, len);
    return (struct store_bytes){.data = out, .len = len};
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

#define X(name, type)                                                                                        \
    static void run_##name(struct store_req *req)                                                            \
    {                                                                                                        \
        mem__##name(mem_of(req->owner), CONTAINER_OF(req, struct type, req));                                \
    }                                                                                                        \
    static void enter_##name(struct store *s, struct type *r)                                                \
    {                                                                                                        \
        enter(s, &r->req, run_##name);                                                                       \
    }
STORE_REQUESTS(X)
#undef X

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
    for (size_t i = 0; i < s->account_count; i++)
        mem__account_free(s->accounts[i]);
    struct mem_key *k, *next;
    HASH_ITER(hh, s->keys, k, next)
    {
        HASH_DELETE(hh, s->keys, k);
        free((void *)k->call.data);
        free(k);
    }
    for (size_t i = 0; i < s->member_count; i++)
        free(s->members[i].holder);
    free(s->members);
    free(s->accounts);
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
    return &s->base;
}
