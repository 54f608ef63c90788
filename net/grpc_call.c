/* The course of a call: how it begins, what is overdue, and how it ends.
 *
 *   server:  headers -> on_call -> messages ... finish -> trailers -> closed
 *   client:  request -> headers -> messages ... trailers -> closed
 *
 * A call is decided when it has its status (then it is deaf: what still comes is dropped), told
 * when on_end was called, and freed when nghttp2 closes its stream or the connection goes. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "h2_internal.h"

static void ignore_message(void *arg, const uint8_t *data, size_t len)
{
    (void)arg;
    (void)data;
    (void)len;
}

static void ignore_end(void *arg, enum grpc_status status, const char *text)
{
    (void)arg;
    (void)status;
    (void)text;
}

/* Of a call that nobody listens to: it was refused. */
static const struct grpc_call_events nobody = {.on_message = ignore_message, .on_end = ignore_end};

struct grpc_call *grpc__call_new(struct h2_conn *c, int32_t stream)
{
    struct grpc_call *call = xcalloc(1, sizeof(*call));
    call->conn = c;
    call->stream = stream;
    call->events = &nobody;
    grpc__frames_init(&call->frames, c->limits.message_bytes);
    list_append(&c->calls, &call->node);
    return call;
}

void grpc__call_free(struct grpc_call *call)
{
    list_remove(&call->node);
    call->conn->partial_bytes -= call->partial;
    grpc__call_output_drop(call);
    buf_done(&call->held);
    grpc__frames_done(&call->frames);
    explicit_bzero(call->token, sizeof(call->token));
    free(call);
}

void grpc__call_end(struct grpc_call *call, enum grpc_status status, const char *text)
{
    if (call->told)
        return;
    call->told = true;
    call->events->on_end(call->arg, status, text);
}

void grpc__call_silence(struct grpc_call *call)
{
    call->deaf = call->told = true;
    call->events = &nobody;
}

void grpc__call_wake(struct grpc_call *call)
{
    call->conn->io.wake(call->conn->arg);
}

void grpc__call_decide(struct grpc_call *call, enum grpc_status status, const char *text)
{
    call->deaf = true;
    call->status = status;
    snprintf(call->text, sizeof(call->text), "%s", text ? text : "");
}

void grpc__call_reset(struct grpc_call *call, uint32_t code, enum grpc_status status,
                      const char *text)
{
    if (call->reset || call->told)
        return;
    grpc__call_decide(call, status, text);
    call->reset = true;
    grpc__call_output_drop(call);
    if (call->stream > 0)
        nghttp2_submit_rst_stream(call->conn->session, NGHTTP2_FLAG_NONE, call->stream, code);
    grpc__call_wake(call);
}

void grpc_call_cancel(struct grpc_call *call, const char *why)
{
    grpc__call_reset(call, NGHTTP2_CANCEL, GRPC_CANCELLED, why);
}

void grpc__call_fail(struct grpc_call *call, enum grpc_status status, const char *text)
{
    if (call->conn->server)
        grpc_call_finish(call, status, text);
    else
        grpc__call_reset(call, NGHTTP2_CANCEL, status, text);
}

/* ---- time ---- */

uint64_t grpc__call_deadline(const struct grpc_call *call)
{
    const struct grpc_limits *l = &call->conn->limits;
    uint64_t at = call->deadline_ms && !call->deaf ? call->deadline_ms : UINT64_MAX;
    if (grpc_call_queued(call) && call->moved_ms && call->moved_ms + l->stall_ms < at)
        at = call->moved_ms + l->stall_ms;
    if (call->partial_ms && !call->deaf && call->partial_ms + l->message_ms < at)
        at = call->partial_ms + l->message_ms;
    return at;
}

void grpc__call_turn(struct grpc_call *call)
{
    struct h2_conn *c = call->conn;
    const struct grpc_limits *l = &c->limits;
    if (call->stream < 0) { /* it could not be opened */
        grpc__call_end(call, call->status, call->text);
        grpc__call_free(call);
        return;
    }
    if (call->told)
        return;
    if (!call->moved_ms)
        call->moved_ms = c->now;
    if (!call->partial_ms && call->partial && !grpc__call_blocked(call))
        call->partial_ms = c->now;
    if (call->deadline_ms && !call->deaf && c->now >= call->deadline_ms)
        grpc__call_reset(call, NGHTTP2_CANCEL, GRPC_DEADLINE_EXCEEDED,
                         "the deadline of the call passed");
    else if (grpc_call_queued(call) && c->now - call->moved_ms >= l->stall_ms)
        grpc__call_reset(call, NGHTTP2_ENHANCE_YOUR_CALM, GRPC_RESOURCE_EXHAUSTED,
                         "the peer does not read its messages");
    else if (call->partial_ms && !call->deaf && c->now - call->partial_ms >= l->message_ms)
        grpc__call_fail(call, GRPC_DEADLINE_EXCEEDED, "a message did not end in time");
    if (call->was_full && !grpc__call_output_blocks(call)) {
        call->was_full = false;
        if (call->events->on_room && !call->deaf)
            call->events->on_room(call->arg);
    }
    grpc__call_take_held(call);
    grpc__call_report_half(call);
}

/* ---- the end ---- */

void grpc__call_closed(struct grpc_call *call, uint32_t code)
{
    bool known = call->deaf || call->has_status;
    if (known)
        grpc__call_end(call, call->status, call->text);
    else if (code == NGHTTP2_NO_ERROR)
        grpc__call_end(call, GRPC_INTERNAL, "the peer ended the call without a status");
    else
        grpc__call_end(call, grpc__status_of_reset(code), "the peer reset the call");
    grpc__call_free(call);
}

/* ---- what a server asks of a call ---- */

void grpc_call_listen(struct grpc_call *call, const struct grpc_call_events *events, void *arg)
{
    PRE(call->events == &nobody);
    call->events = events;
    call->arg = arg;
}

bool grpc__call_served(const struct grpc_call *call)
{
    return call->events != &nobody && !call->told;
}

const char *grpc_call_path(const struct grpc_call *call)
{
    return call->path;
}

const char *grpc_call_token(const struct grpc_call *call)
{
    return call->token;
}

const char *grpc_call_peer(const struct grpc_call *call)
{
    return call->conn->peer;
}

const char *grpc_call_identity(const struct grpc_call *call)
{
    return call->conn->identity;
}
