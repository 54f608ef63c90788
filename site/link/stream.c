/* One stream to a relay of another site: a Hello of each side first, then messages and refusals in
 * both directions, until nothing was said for a while. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "link_internal.h"

struct stream *site__stream_find(struct peer *p, const char *address)
{
    LIST_EACH (n, &p->streams) {
        struct stream *s = CONTAINER_OF(n, struct stream, node);
        if (s->ending || !s->call || (!s->hello && !s->dial))
            continue;
        if (!address || (s->address && !strcmp(s->address, address)))
            return s;
    }
    return NULL;
}

bool site__stream_send(struct stream *s, const void *frame, size_t len)
{
    struct site_links *links = s->peer->links;
    if (!s->call || s->ending || grpc_call_queued(s->call) + len > links->config.flight_bytes) {
        s->peer->dropped++;
        return false;
    }
    grpc_call_send(s->call, frame, len);
    s->used_at = loop_now_ms(links->loop);
    s->peer->sent++;
    s->peer->sent_bytes += len;
    return true;
}

static void stream_end(struct stream *s)
{
    if (s->ending || !s->call)
        return;
    s->ending = true;
    if (s->dial)
        grpc_call_half_close(s->call);
    else
        grpc_call_finish(s->call, GRPC_OK, "");
}

/* ---- what comes ---- */

static void bad(struct stream *s, const char *why)
{
    char text[400];
    snprintf(text, sizeof(text), "%s", why);
    s->ending = s->broken = true;
    if (s->dial)
        grpc_call_cancel(s->call, text);
    else
        grpc_call_finish(s->call, GRPC_INVALID_ARGUMENT, text);
    site__links_note(s->peer->links, SITE_LINKS_BAD, s->peer, text);
}

/* Two relays dialled each other: the site with the greater name closes its own stream. */
static void leave_one(struct stream *s)
{
    struct peer *p = s->peer;
    if (strcmp(p->links->config.self, p->name) < 0)
        return;
    struct stream *mine = NULL;
    bool theirs = false;
    LIST_EACH (n, &p->streams) {
        struct stream *one = CONTAINER_OF(n, struct stream, node);
        if (one->ending || !one->hello || strcmp(one->address, s->address) != 0)
            continue;
        if (one->dial)
            mine = one;
        else
            theirs = true;
    }
    if (mine && theirs)
        stream_end(mine);
}

static void on_hello(struct stream *s, const char *address)
{
    struct site_links *links = s->peer->links;
    if (s->hello) {
        bad(s, "a second Hello");
        return;
    }
    s->hello = true;
    free(s->address);
    s->address = xstrdup(address);
    backoff_reset(&s->peer->backoff);
    s->peer->retry_at = 0;
    s->used_at = loop_now_ms(links->loop);
    if (s->dial)
        loop_timer_at(s->timer, s->used_at + links->config.idle_ms);
    else
        loop_timer_stop(s->timer); /* who opened it closes it */
    leave_one(s);
    site__links_note(links, SITE_LINKS_UP, s->peer, address);
}

static void on_wire_message(struct stream *s, const struct site_wire_message *m)
{
    struct site_links *links = s->peer->links;
    s->used_at = loop_now_ms(links->loop);
    s->peer->received++;
    links->current = s;
    links->current_account = m->account;
    if (links->config.on_message(links->config.arg, s->peer->index, m))
        site__route_set(links, s->peer->index, m->account, s->address);
    links->current = NULL;
}

/* The leader is elsewhere. A relay that does not know where is not asked again first. */
static void on_refusal(struct stream *s, const struct site_wire_frame *f)
{
    struct peer *p = s->peer;
    const char *leader = f->refusal.leader;
    char text[100 + SITE_WIRE_ADDRESS_MAX];
    p->refused++;
    snprintf(text, sizeof(text), "%s", site_wire_why_name(f->refusal.why));
    if (f->refusal.why != SITE_WIRE_NOT_LEADER) {
        site__links_note(p->links, SITE_LINKS_REFUSED, p, text);
        return;
    }
    /* A unix socket is a place on this machine, which another one has no say in. */
    if (!leader[0] || !strncmp(leader, "unix:", 5) || !strcmp(leader, s->address)) {
        leader = site__next_target(p);
        if (!strcmp(leader, s->address))
            leader = site__next_target(p);
    }
    site__route_set(p->links, p->index, f->refusal.account, leader);
}

static void on_question(struct stream *s, const uint8_t account[SELECTOR_ACCOUNT_BYTES])
{
    const struct site_links_config *c = &s->peer->links->config;
    struct site_wire_settings answer = {0};
    struct buf frame = {0};
    memcpy(answer.account, account, sizeof(answer.account));
    if (!c->on_question || !c->on_question(c->arg, &answer))
        answer.count = 0;
    site_wire_answer_write(&frame, &answer);
    site__stream_send(s, frame.data, frame.len);
    buf_done(&frame);
}

static void on_answer(const struct stream *s, const struct site_wire_settings *answer)
{
    const struct site_links_config *c = &s->peer->links->config;
    if (c->on_answer)
        c->on_answer(c->arg, s->peer->index, answer);
}

static void on_frame(struct stream *s, const struct site_wire_frame *frame)
{
    switch (frame->type) {
    case SITE_WIRE_HELLO:
        on_hello(s, frame->address);
        return;
    case SITE_WIRE_MESSAGE:
        on_wire_message(s, &frame->message);
        return;
    case SITE_WIRE_REFUSAL:
        on_refusal(s, frame);
        return;
    case SITE_WIRE_QUESTION:
        on_question(s, frame->question);
        return;
    case SITE_WIRE_ANSWER:
        on_answer(s, &frame->answer);
        return;
    }
    UNREACHABLE();
}

static void on_message(void *arg, const uint8_t *data, size_t len)
{
    struct stream *s = arg;
    struct site_wire_frame frame;
    struct site_wire_memory *memory = NULL;
    struct err err = {0};
    if (s->broken)
        return;
    if (site_wire_read(data, len, &frame, &memory, &err)) {
        bad(s, err.text);
        return;
    }
    if (frame.type != SITE_WIRE_HELLO && !s->hello)
        bad(s, "a message before the Hello");
    else
        on_frame(s, &frame);
    site_wire_free(memory);
}

static void on_half(void *arg)
{
    struct stream *s = arg;
    if (!s->dial)
        stream_end(s);
}

static void on_end(void *arg, enum grpc_status status, const char *text)
{
    struct stream *s = arg;
    char why[400];
    snprintf(why, sizeof(why), "%s: %s", grpc_status_name(status), text);
    s->call = NULL;
    if (s->dial) {
        site__dial_over(s->dial, why);
        return;
    }
    struct peer *p = s->peer;
    bool meant = s->ending;
    site__stream_free(s);
    if (!meant)
        site__links_note(p->links, SITE_LINKS_LOST, p, why);
}

const struct grpc_call_events site__stream_events = {
    .on_message = on_message, .on_half = on_half, .on_end = on_end};

/* ---- its life ---- */

static void on_timer(void *arg)
{
    struct stream *s = arg;
    const struct site_links *links = s->peer->links;
    if (s->ending)
        return;
    if (!s->hello)
        bad(s, "no Hello in time");
    else if (loop_now_ms(links->loop) >= s->used_at + links->config.idle_ms)
        stream_end(s);
    else
        loop_timer_at(s->timer, s->used_at + links->config.idle_ms);
}

struct stream *site__stream_new(struct peer *p, struct dial *d)
{
    struct stream *s = xcalloc(1, sizeof(*s));
    s->peer = p;
    s->dial = d;
    s->address = d ? xstrdup(d->target) : NULL;
    s->timer = loop_timer_new(p->links->loop, on_timer, s);
    list_append(&p->streams, &s->node);
    p->taken += !d;
    return s;
}

void site__stream_begin(struct stream *s)
{
    struct site_links *links = s->peer->links;
    struct buf out = {0};
    s->used_at = loop_now_ms(links->loop);
    loop_timer_at(s->timer, s->used_at + links->config.hello_ms);
    site_wire_hello_write(&out, links->address);
    grpc_call_send(s->call, out.data, out.len);
    buf_done(&out);
}

void site__stream_free(struct stream *s)
{
    if (s->peer->links->current == s)
        s->peer->links->current = NULL;
    if (s->dial)
        s->dial->stream = NULL;
    else
        s->peer->taken--;
    list_remove(&s->node);
    loop_timer_close(s->timer);
    free(s->address);
    free(s);
}
