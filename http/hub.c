/* One listener for all readers: it opens with the first one, and closes a minute after the last. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "events_internal.h"

enum {
    EVENTS_MAX = 16384,
    BYTES_MAX = 8 << 20,
    FOLLOWERS_MAX = 300,
    PUMP_MS = 5, /* what comes within it is written at once; longer with many readers */
    BEAT_MS = 5000,
    LEAVE_MS = 60000
};

/* ---- time ---- */

static void arm(struct hub *h)
{
    uint64_t next = h->beat_at < h->pump_at ? h->beat_at : h->pump_at;
    if (h->leave_at < next)
        next = h->leave_at;
    if (next == UINT64_MAX)
        loop_timer_stop(h->timer);
    else
        loop_timer_at(h->timer, next);
}

/* A reader may leave while it is called. */
static void each(struct hub *h, void (*call)(struct follower *f, uint64_t now))
{
    uint64_t now = loop_now_ms(h->api->loop);
    for (struct list *n = h->followers.next, *next; n != &h->followers; n = next) {
        next = n->next;
        call(CONTAINER_OF(n, struct follower, node), now);
    }
}

static void pump(struct follower *f, uint64_t now)
{
    (void)now;
    follower__go_on(f);
}

static void stale(struct follower *f, uint64_t now)
{
    (void)now;
    follower__stale(f);
}

static void pump_soon(struct hub *h)
{
    if (h->pump_at != UINT64_MAX || !h->count)
        return;
    h->pump_at = loop_now_ms(h->api->loop) + PUMP_MS;
    if (h->pump_at < h->rest_until)
        h->pump_at = h->rest_until;
    arm(h);
}

/* ---- the listener ---- */

static void on_event(void *arg, const struct listen_event *ev)
{
    struct hub *h = arg;
    struct buf text = {0};
    char id[EVENT_ID_TEXT];
    struct recent_event row = {.updated_us = ev->updated_at_us,
                               .id = ev->id,
                               .nonce = ev->nonce,
                               .account = ev->account,
                               .ended = ev->kind == LISTEN_FINISHED,
                               .removed = ev->kind == LISTEN_REMOVED,
                               .passing = ev->kind == LISTEN_UPDATE};
    h->position_us = ev->position_us;
    follower__forget_batches(h);
    event_id_put(&(struct event_id){ev->position_us, h->tag, recent_end(h->recent)}, id);
    buf_printf(&text, "id: %s\ndata: ", id);
    listen_format_json(ev, &text);
    buf_puts(&text, "\n\n");
    snprintf(row.state, sizeof(row.state), "%s", ev->state ? ev->state : "");
    snprintf(row.outcome, sizeof(row.outcome), "%s", ev->outcome ? ev->outcome : "");
    row.text = (char *)text.data;
    row.len = text.len;
    recent_put(h->recent, &row);
    buf_done(&text);
    pump_soon(h);
}

static void on_state(void *arg, bool live, uint64_t since_ms, const struct err *err)
{
    struct hub *h = arg;
    (void)since_ms;
    h->live = live;
    h->why = err ? *err : (struct err){0};
    if (live) {
        h->position_us = listen_position(h->listen);
        if (h->fresh)
            recent_cover_from(h->recent, h->position_us);
        h->fresh = false;
        pump_soon(h);
    } else if (err && err->code) {
        each(h, stale);
    }
}

static void open_listener(struct hub *h)
{
    const struct listen_config config = {.dsn = h->dsn,
                                         .name = "txrelay http listen",
                                         .on_event = on_event,
                                         .on_state = on_state,
                                         .arg = h};
    h->tag = (uint32_t)loop_seed(h->api->loop) | 1;
    h->recent = recent_new(EVENTS_MAX, BYTES_MAX);
    h->fresh = true;
    h->listen = listen_new(h->api->loop, &config);
    listen_open(h->listen);
    h->beat_at = loop_now_ms(h->api->loop) + BEAT_MS;
    arm(h);
}

static void hub_free(struct hub *h)
{
    void (*cb)(void *arg) = h->cb;
    void *arg = h->cb_arg;
    INVARIANT(list_empty(&h->followers));
    loop_timer_close(h->timer);
    buf_done(&h->text);
    free(h->dsn);
    free(h);
    cb(arg);
}

static void on_closed(void *arg)
{
    struct hub *h = arg;
    h->listen = NULL;
    h->closing = false;
    follower__forget_batches(h);
    h->recent = recent_free(h->recent);
    if (h->cb)
        hub_free(h);
    else if (h->count)
        open_listener(h);
}

static void close_listener(struct hub *h)
{
    h->live = false;
    h->closing = true;
    h->beat_at = h->pump_at = h->leave_at = UINT64_MAX;
    arm(h);
    listen_close(h->listen, on_closed, h);
}

static void on_timer(void *arg)
{
    struct hub *h = arg;
    uint64_t now = loop_now_ms(h->api->loop);
    if (now >= h->leave_at) {
        close_listener(h);
        return;
    }
    if (now >= h->pump_at) {
        h->pump_at = UINT64_MAX;
        h->writes = h->bytes = 0;
        each(h, pump);
        h->rest_until = now + events_pause_ms(h->writes, h->bytes);
    }
    if (now >= h->beat_at) {
        h->beat_at = now + BEAT_MS;
        each(h, follower__beat);
    }
    arm(h);
}

/* ---- readers ---- */

bool hub__has_room(const struct hub *h)
{
    return !h->draining && h->count < FOLLOWERS_MAX;
}

void hub__join(struct hub *h, struct follower *f)
{
    list_append(&h->followers, &f->node);
    h->count++;
    h->leave_at = UINT64_MAX;
    if (!h->listen)
        open_listener(h);
    arm(h);
}

void hub__left(struct hub *h, struct follower *f)
{
    list_remove(&f->node);
    if (--h->count || h->closing || !h->listen)
        return;
    h->leave_at = loop_now_ms(h->api->loop) + LEAVE_MS;
    arm(h);
}

/* ---- life ---- */

struct hub *hub__new(struct api *a, const char *dsn)
{
    struct hub *h = xcalloc(1, sizeof(*h));
    h->api = a;
    h->dsn = xstrdup(dsn);
    h->beat_at = h->pump_at = h->leave_at = UINT64_MAX;
    h->timer = loop_timer_new(a->loop, on_timer, h);
    list_init(&h->followers);
    return h;
}

void hub__drain(struct hub *h)
{
    h->draining = true;
    for (struct list *n = list_first(&h->followers); n; n = list_first(&h->followers))
        follower__end(CONTAINER_OF(n, struct follower, node),
                      "the relay stops: resume from your last id at another one");
}

void hub__close(struct hub *h, void (*cb)(void *arg), void *arg)
{
    h->cb = cb;
    h->cb_arg = arg;
    if (!h->listen)
        hub_free(h);
    else if (!h->closing)
        close_listener(h);
}
