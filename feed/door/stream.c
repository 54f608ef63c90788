/* One stream: messages of the protocol to calls of the session, and back.
 *
 * A request is parsed whole and given to the session item by item. The session may hold the stream
 * at any item: the rest of the request waits here, and the call is paused, so that the publisher's
 * window closes behind it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "door_internal.h"
#include "feed/wire/wire.h"

static void give_item(struct feed_stream *s, const struct feed_wire_item *item)
{
    switch (item->kind) {
    case FEED_WIRE_HEADER:
        feed_session_header(s->session, item->header.feed, item->header.number,
                            item->header.publisher);
        return;
    case FEED_WIRE_CALL:
        feed_session_call(s->session, item->call.data, item->call.len);
        return;
    case FEED_WIRE_TRAILER:
        feed_session_trailer(s->session, item->trailer.count, item->trailer.digest,
                             item->trailer.signature);
        return;
    case FEED_WIRE_END_STREAM:
        feed_session_end_stream(s->session, item->end.code, item->end.earliest,
                                item->end.latest_acked);
        return;
    }
}

static void drop_request(struct feed_stream *s)
{
    s->request = feed_wire_request_free(s->request);
    s->next = 0;
}

/* Items of the request, until the session holds the stream. */
static void give(struct feed_stream *s)
{
    s->giving = true;
    while (s->request && !s->held && !s->ended) {
        struct feed_wire_item item = feed_wire_request_item(s->request, s->next++);
        give_item(s, &item);
        if (s->next == feed_wire_request_count(s->request))
            drop_request(s);
    }
    s->giving = false;
    if (s->ended)
        drop_request(s);
    if (s->call)
        grpc_call_pause(s->call, s->held && !s->ended);
}

static void on_message(void *arg, const uint8_t *data, size_t len)
{
    struct feed_stream *s = arg;
    struct err err = {0};
    if (s->ended)
        return;
    INVARIANT(!s->request); /* the call is paused while there is one */
    s->request = feed_wire_request_read(data, len, &err);
    if (s->request)
        give(s);
    else
        feed_session_bad(s->session, err.text);
}

/* A publisher that closed its side without a word has ended its stream. */
static void on_half(void *arg)
{
    struct feed_stream *s = arg;
    INVARIANT(s->ended || (!s->request && !s->held)); /* a paused call does not report it */
    if (!s->ended)
        feed_session_end_stream(s->session, 0, 0, 0);
}

static void on_end(void *arg, enum grpc_status status, const char *text)
{
    struct feed_stream *s = arg;
    if (status != GRPC_OK)
        feed_session_cut(s->session, text);
    s->call = NULL;
    feed__stream_gone(s);
}

static const struct grpc_call_events events = {
    .on_message = on_message, .on_half = on_half, .on_end = on_end};

/* ---- what the session says ---- */

static enum feed_wire_answer answer_of(enum feed_message message)
{
    switch (message) {
    case FEED_MSG_ACK:
        return FEED_WIRE_ACK;
    case FEED_MSG_SKIP:
        return FEED_WIRE_SKIP;
    case FEED_MSG_RESEND:
        return FEED_WIRE_RESEND;
    case FEED_MSG_BEHIND:
        return FEED_WIRE_BEHIND;
    case FEED_MSG_END:
        return FEED_WIRE_END;
    }
    UNREACHABLE();
}

static void on_send(void *ctx, const struct feed_message_out *m)
{
    struct feed_stream *s = ctx;
    struct buf out = {0};
    struct feed_wire_response r = {.answer = answer_of(m->message), .number = m->number};
    if (!s->call || s->ended)
        return;
    if (m->message == FEED_MSG_END) {
        r.status = (int)m->end;
        snprintf(r.leader, sizeof(r.leader), "%s", m->leader ? m->leader : "");
        snprintf(r.detail, sizeof(r.detail), "%s", m->detail ? m->detail : "");
    }
    feed_wire_response_write(&out, &r);
    /* Over the cap the call is cut, and on_end follows from the loop. */
    grpc_call_send(s->call, out.data, out.len);
    buf_done(&out);
    if (m->message == FEED_MSG_END) {
        s->ended = true;
        grpc_call_finish(s->call, GRPC_OK, "");
    }
}

static void go_on(struct loop_task *task)
{
    give(CONTAINER_OF(task, struct feed_stream, task));
}

static void on_hold(void *ctx, bool held)
{
    struct feed_stream *s = ctx;
    s->held = held;
    if (held && s->call && !s->ended)
        grpc_call_pause(s->call, true);
    /* Not from inside the session's call. */
    if (!held && !s->giving && !list_linked(&s->task.node))
        loop_post(s->door->loop, &s->task, go_on);
}

static const struct feed_session_ops ops = {.send = on_send, .hold = on_hold};

/* ---- its life ---- */

void feed__stream_open(struct feed_door *d, struct grpc_call *call)
{
    struct feed_stream *s = xcalloc(1, sizeof(*s));
    char peer[400];
    const char *identity = grpc_call_identity(call);
    snprintf(peer, sizeof(peer), "%s%s%s", grpc_call_peer(call), identity[0] ? " " : "", identity);
    s->door = d;
    s->call = call;
    list_append(&d->streams, &s->node);
    d->count++;
    grpc_call_listen(call, &events, s);
    s->session = feed_session_open(d->room, &ops, s, peer);
}

void feed__stream_gone(struct feed_stream *s)
{
    list_remove(&s->node);
    s->door->count--;
    s->call = NULL;
    loop_task_cancel(&s->task);
    drop_request(s);
    feed_session_gone(s->session);
    free(s);
}
