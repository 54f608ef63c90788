/* When does a call take what comes?
 *
 * Bytes are taken (their window opens again) when the reader of frames has them: a half message is
 * taken, because a message may be longer than the window. While the call is blocked they are held
 * instead, and the window, which stays closed, bounds them. */
#include "h2_internal.h"

/* A client reads in any case: what the server says may be why it takes nothing. */
bool grpc__call_blocked(const struct grpc_call *call)
{
    return !call->deaf && (call->paused || (call->conn->server && grpc__call_output_blocks(call)));
}

static void count_partial(struct grpc_call *call)
{
    struct h2_conn *c = call->conn;
    size_t partial = call->deaf ? 0 : grpc__frames_partial(&call->frames);
    if (!partial || grpc__call_blocked(call))
        call->partial_ms = 0;
    else if (!call->partial_ms)
        call->partial_ms = c->now;
    c->partial_bytes += partial - call->partial;
    call->partial = partial;
    if (c->partial_bytes > c->limits.conn_partial_bytes)
        grpc__call_fail(call, GRPC_RESOURCE_EXHAUSTED,
                        "too many bytes of messages that are not whole");
}

static void refuse_frame(struct grpc_call *call, enum grpc_frame_result result)
{
    if (result == GRPC_FRAME_TOO_LONG)
        grpc__call_fail(call, GRPC_RESOURCE_EXHAUSTED, "the message is too long");
    else if (result == GRPC_FRAME_COMPRESSED)
        grpc__call_fail(call, GRPC_UNIMPLEMENTED, "no compression is accepted");
    else
        grpc__call_fail(call, GRPC_INTERNAL, "a frame of gRPC does not parse");
}

/* Delivers messages until the call blocks; returns how many bytes were taken. */
static size_t take(struct grpc_call *call, const uint8_t *data, size_t len)
{
    size_t left = len;
    while (left && !grpc__call_blocked(call) && !call->deaf && !call->conn->ending) {
        const uint8_t *message = NULL;
        size_t n = 0;
        enum grpc_frame_result r = grpc__frames_take(&call->frames, &data, &left, &message, &n);
        if (r == GRPC_FRAME_MESSAGE)
            call->events->on_message(call->arg, message, n);
        else if (r != GRPC_FRAME_MORE)
            refuse_frame(call, r);
    }
    if (call->deaf || call->conn->ending)
        left = 0;
    count_partial(call);
    return len - left;
}

static void consume(struct grpc_call *call, size_t n)
{
    if (n)
        nghttp2_session_consume_stream(call->conn->session, call->stream, n);
}

void grpc__call_bytes(struct grpc_call *call, const uint8_t *data, size_t len)
{
    bool waiting = call->held.len > call->held_at && !call->deaf;
    size_t taken = waiting ? 0 : take(call, data, len);
    if (taken < len)
        buf_put(&call->held, data + taken, len - taken);
    consume(call, taken);
}

void grpc__call_take_held(struct grpc_call *call)
{
    size_t n = call->held.len - call->held_at;
    if (!n || grpc__call_blocked(call))
        return;
    /* A callback may add bytes to no other place than the end, and only from a later round. */
    size_t taken = take(call, call->held.data + call->held_at, n);
    call->held_at += taken;
    if (call->held_at == call->held.len) {
        call->held_at = 0;
        buf_done(&call->held);
    }
    consume(call, taken);
}

/* The peer's side ended: told once every message before it is delivered. */
void grpc__call_report_half(struct grpc_call *call)
{
    if (!call->peer_half || call->half_told || call->deaf || call->conn->ending ||
        call->held.len > call->held_at || grpc__call_blocked(call))
        return;
    call->half_told = true;
    if (grpc__frames_partial(&call->frames)) {
        grpc__call_fail(call, GRPC_INTERNAL, "the peer's side ended inside a message");
        return;
    }
    if (call->events->on_half)
        call->events->on_half(call->arg);
}

void grpc__call_half(struct grpc_call *call)
{
    call->peer_half = true;
    if (!call->conn->server && call->has_status && !call->finishing && !call->reset)
        /* The call is over, and our side of the stream is open: nothing more goes there. */
        nghttp2_submit_rst_stream(call->conn->session, NGHTTP2_FLAG_NONE, call->stream,
                                  NGHTTP2_NO_ERROR);
    grpc__call_report_half(call);
}

void grpc_call_pause(struct grpc_call *call, bool paused)
{
    if (call->paused == paused || call->told)
        return;
    call->paused = paused;
    call->partial_ms = 0; /* the peer could not go on */
    if (!paused)
        grpc__call_wake(call);
}
