/* libtxrelay-listen: this layer's listener behind one public header. A context is a loop and a
 * subscription is a listener; both are freed when the loop has released them. */
#include "txrelay/listen.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/list.h"
#include "base/log.h"
#include "listen/listen.h"

enum { STALE_MS = 10000 };

struct txrelay {
    struct loop *loop;
    char *database, *name;
    struct list subscriptions;
    bool processing;
};

struct txrelay_subscription {
    struct txrelay *owner;
    struct list node;
    struct listen *listen;
    void (*callback)(void *arg, const struct txrelay_event *event);
    void *arg;
    bool ended;
};

static const enum txrelay_kind kinds[] = {
    [LISTEN_NEW] = TXRELAY_NEW,
    [LISTEN_UPDATE] = TXRELAY_UPDATE,
    [LISTEN_REMOVED] = TXRELAY_REMOVED,
    [LISTEN_FINISHED] = TXRELAY_FINISHED,
};

static void on_event(void *arg, const struct listen_event *ev)
{
    struct txrelay_subscription *s = arg;
    struct txrelay_event event = {
        .kind = kinds[ev->kind],
        .position = ev->position_us,
        .account = ev->alias,
        .account_id = ev->account_id_len ? ev->account_id : NULL,
        .account_id_len = ev->account_id_len,
        .id = ev->id,
        .nonce = ev->nonce,
        .hash = ev->has_hash ? ev->hash : NULL,
        .block_hash = ev->has_block ? ev->block_hash : NULL,
        .block_number = ev->block_number,
        .state = ev->state,
        .outcome = ev->outcome,
        .error = ev->error,
        .creator = ev->creator,
        .updated_at = ev->updated_at_us,
        .code = "",
        .traceparent = ev->trace,
    };
    s->callback(s->arg, &event);
}

static void on_state(void *arg, bool live, uint64_t since_ms, const struct err *err)
{
    struct txrelay_subscription *s = arg;
    struct txrelay_event event = {
        .kind = live ? TXRELAY_LIVE : TXRELAY_STALE,
        .position = listen_position(s->listen),
        .nonce = -1,
        .block_number = -1,
        .account = "",
        .state = "",
        .outcome = "",
        .error = live ? "" : err->text,
        .creator = "",
        .age_ms = live ? 0 : loop_now_ms(s->owner->loop) - since_ms,
        .code = live ? "" : err_name(err->code),
        .permanent = !live && err_class(err->code) == ERR_CLASS_PERMANENT,
        .traceparent = "",
    };
    s->callback(s->arg, &event);
}

static void on_gap(void *arg, int64_t from_us, int64_t to_us)
{
    struct txrelay_subscription *s = arg;
    struct txrelay_event event = {
        .kind = TXRELAY_GAP,
        .position = from_us,
        .nonce = -1,
        .block_number = -1,
        .account = "",
        .state = "",
        .outcome = "",
        .error = "retention may have removed records before they were delivered",
        .creator = "",
        .updated_at = to_us,
        .code = "",
        .traceparent = "",
    };
    s->callback(s->arg, &event);
}

struct txrelay *txrelay_open(const char *database, const char *name)
{
    PRE(database);
    struct txrelay *t = xcalloc(1, sizeof(*t));
    log_set_level(LOG_LEVEL_ERROR); /* errors go to the callback */
    t->loop = loop_new();
    t->database = xstrdup(database);
    t->name = xstrdup(name ? name : "txrelay listen");
    list_init(&t->subscriptions);
    return t;
}

struct txrelay_subscription *txrelay_subscribe(struct txrelay *t, const struct txrelay_options *o)
{
    if (!o->callback || o->id < 0 || o->since < 0) {
        errno = EINVAL;
        return NULL;
    }
    struct txrelay_subscription *s = xcalloc(1, sizeof(*s));
    s->owner = t;
    s->callback = o->callback;
    s->arg = o->arg;
    s->listen = listen_new(t->loop, &(struct listen_config){
                                        .dsn = t->database,
                                        .name = t->name,
                                        .account = o->account,
                                        .id = o->id,
                                        .since_us = o->since,
                                        .probe_ms = o->probe_ms,
                                        .stale_ms = o->stale_ms ? o->stale_ms : STALE_MS,
                                        .on_event = on_event,
                                        .on_gap = on_gap,
                                        .on_state = on_state,
                                        .arg = s,
                                    });
    list_append(&t->subscriptions, &s->node);
    listen_open(s->listen);
    return s;
}

static void on_closed(void *arg)
{
    struct txrelay_subscription *s = arg;
    list_remove(&s->node);
    free(s);
}

void txrelay_unsubscribe(struct txrelay_subscription *s)
{
    PRE(!s->ended);
    s->ended = true;
    listen_close(s->listen, on_closed, s);
}

int txrelay_fd(const struct txrelay *t)
{
    return loop_fd(t->loop);
}

int txrelay_timeout_ms(struct txrelay *t)
{
    return loop_wait_ms(t->loop);
}

void txrelay_process(struct txrelay *t)
{
    PRE(!t->processing);
    t->processing = true;
    loop_turn(t->loop);
    t->processing = false;
}

int txrelay_run(struct txrelay *t, int max_ms)
{
    struct pollfd fd = {.fd = loop_fd(t->loop), .events = POLLIN};
    int ms = loop_wait_ms(t->loop);
    if (max_ms >= 0 && (ms < 0 || ms > max_ms))
        ms = max_ms;
    int rc = poll(&fd, 1, ms);
    if (rc >= 0)
        txrelay_process(t);
    return rc < 0 ? -1 : 0;
}

void txrelay_close(struct txrelay *t)
{
    if (!t)
        return;
    PRE(!t->processing);
    for (struct list *n = t->subscriptions.next; n != &t->subscriptions; n = n->next) {
        struct txrelay_subscription *s = CONTAINER_OF(n, struct txrelay_subscription, node);
        if (!s->ended)
            txrelay_unsubscribe(s);
    }
    loop_run(t->loop);
    INVARIANT(list_empty(&t->subscriptions));
    loop_free(t->loop);
    free(t->database);
    free(t->name);
    free(t);
}
