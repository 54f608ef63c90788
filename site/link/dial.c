/* Connections that this relay opens: one is opened when there is something to say, and not again
 * before the back-off is over. Frames wait for it, within the cap. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "link_internal.h"

struct frame {
    struct list node;
    size_t len;
    uint8_t data[];
};

struct dial *site__dial_find(struct peer *p, const char *target)
{
    LIST_EACH (n, &p->dials) {
        struct dial *d = CONTAINER_OF(n, struct dial, node);
        if (!d->stream && (!target || !strcmp(d->target, target)))
            return d;
    }
    return NULL;
}

const char *site__next_target(struct peer *p)
{
    return p->targets[p->next_target++ % p->target_count];
}

static void drop_frames(struct dial *d)
{
    for (struct list *n = list_first(&d->waiting); n; n = list_first(&d->waiting)) {
        struct frame *f = CONTAINER_OF(n, struct frame, node);
        list_remove(&f->node);
        free(f);
    }
    d->waiting_bytes = 0;
}

bool site__dial_queue(struct dial *d, const struct buf *frame)
{
    if (d->waiting_bytes + frame->len > d->peer->links->config.flight_bytes)
        return false;
    struct frame *f = xmalloc(sizeof(*f) + frame->len);
    *f = (struct frame){.len = frame->len};
    memcpy(f->data, frame->data, frame->len);
    list_append(&d->waiting, &f->node);
    d->waiting_bytes += frame->len;
    return true;
}

void site__dial_free(struct dial *d)
{
    if (d->stream)
        site__stream_free(d->stream);
    list_remove(&d->node);
    for (struct list *n = d->waiting.next; n != &d->waiting; n = n->next)
        d->peer->dropped++;
    drop_frames(d);
    grpc_client_close(d->client);
    free(d->target);
    free(d);
}

static void on_up(void *arg)
{
    struct dial *d = arg;
    struct stream *s = d->stream = site__stream_new(d->peer, d);
    s->call = grpc_client_call(d->client, SITE_WIRE_EXCHANGE, NULL, 0, &site__stream_events, s);
    site__stream_begin(s);
    LIST_EACH (n, &d->waiting) {
        const struct frame *f = CONTAINER_OF(n, struct frame, node);
        site__stream_send(s, f->data, f->len);
    }
    drop_frames(d);
}

void site__dial_over(struct dial *d, const char *why)
{
    struct peer *p = d->peer;
    const struct stream *s = d->stream;
    bool meant = s && s->ending && !s->broken;
    if (!meant) {
        if (s)
            site__routes_forget(p->links, p->index, s->address);
        p->retry_at = loop_now_ms(p->links->loop) + backoff_next(&p->backoff, &p->links->rng);
        site__routes_forget(p->links, p->index, d->target);
    }
    site__dial_free(d);
    if (!meant)
        site__links_note(p->links, SITE_LINKS_LOST, p, why);
}

static void on_down(void *arg, const struct err *why)
{
    const struct err text = *why;
    site__dial_over(arg, text.text);
}

struct dial *site__dial(struct peer *p, const char *target)
{
    struct site_links *s = p->links;
    if (loop_now_ms(s->loop) < p->retry_at)
        return NULL;
    struct dial *d = xcalloc(1, sizeof(*d));
    struct err err = {0};
    d->peer = p;
    d->target = xstrdup(target ? target : site__next_target(p));
    list_init(&d->waiting);
    list_append(&p->dials, &d->node);
    struct grpc_client_config config = {
        .target = d->target,
        .tls = s->tls_client,
        .server_name = p->name,
        .limits = s->limits,
        .on_up = on_up,
        .on_down = on_down,
        .arg = d,
    };
    d->client = grpc_client_new(s->loop, &config, &err);
    if (!d->client) { /* an address that a relay gave */
        site__routes_forget(s, p->index, d->target);
        site__dial_free(d);
        return NULL;
    }
    grpc_client_open(d->client);
    return d;
}
