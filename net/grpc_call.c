/* The life of a call.
 *
 *   server:  headers -> on_call -> messages ... finish -> trailers -> closed
 *   client:  request -> headers -> messages ... trailers -> closed
 *
 * Bytes that come are taken (their window opens again) when the reader of frames has them: a half
 * message is taken, because a message may be longer than the window. While the call is blocked they
 * are held instead, and the window, which stays closed, bounds them. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "h2_internal.h"

#define NV(n, v)                                                                                   \
    {                                                                                              \
        .name = (uint8_t *)(uintptr_t)(n), .value = (uint8_t *)(uintptr_t)(v),                     \
        .namelen = strlen(n), .valuelen = strlen(v)                                                \
    }

enum { KEEP_OUT_BYTES = 65536 };

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

static void drop_output(struct grpc_call *call)
{
    call->conn->out_bytes -= call->out.len - call->out_at;
    call->out_at = 0;
    buf_done(&call->out);
}

void grpc__call_free(struct grpc_call *call)
{
    list_remove(&call->node);
    call->conn->partial_bytes -= call->partial;
    drop_output(call);
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

static void wake(struct grpc_call *call)
{
    call->conn->io.wake(call->conn->arg);
}

/* The call has its status: what still comes is dropped. */
static void decide(struct grpc_call *call, enum grpc_status status, const char *text)
{
    call->deaf = true;
    call->status = status;
    snprintf(call->text, sizeof(call->text), "%s", text ? text : "");
}

static void reset(struct grpc_call *call, uint32_t code, enum grpc_status status, const char *text)
{
    if (call->reset || call->told)
        return;
    decide(call, status, text);
    call->reset = true;
    drop_output(call);
    if (call->stream > 0)
        nghttp2_submit_rst_stream(call->conn->session, NGHTTP2_FLAG_NONE, call->stream, code);
    wake(call);
}

/* ---- what leaves ---- */

static size_t status_headers(const struct grpc_call *call, nghttp2_nv nv[2], char number[4],
                             char text[3 * sizeof(call->text)])
{
    snprintf(number, 4, "%d", (int)call->status);
    grpc__percent_encode(call->text, text, 3 * sizeof(call->text));
    nv[0] = (nghttp2_nv)NV("grpc-status", number);
    nv[1] = (nghttp2_nv)NV("grpc-message", text);
    return text[0] ? 2 : 1;
}

static void send_trailers(struct grpc_call *call)
{
    char number[4], text[3 * sizeof(call->text)];
    nghttp2_nv nv[2];
    call->trailers = true;
    nghttp2_submit_trailer(call->conn->session, call->stream, nv,
                           status_headers(call, nv, number, text));
}

static ssize_t read_output(nghttp2_session *session, int32_t stream, uint8_t *data, size_t max,
                           uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    (void)session;
    (void)stream;
    (void)arg;
    struct grpc_call *call = source->ptr;
    size_t n = call->out.len - call->out_at;
    n = n < max ? n : max;
    if (n) {
        memcpy(data, call->out.data + call->out_at, n);
        call->out_at += n;
        call->conn->out_bytes -= n;
        call->moved_ms = call->conn->now;
        h2__useful(call->conn);
    }
    if (call->out_at == call->out.len) {
        call->out_at = 0;
        buf_clear(&call->out);
        if (call->out.cap > KEEP_OUT_BYTES)
            buf_done(&call->out);
        if (call->finishing) {
            *flags |= NGHTTP2_DATA_FLAG_EOF;
            if (call->conn->server) {
                *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
                send_trailers(call);
            }
        } else if (!n) {
            call->deferred = true;
            return NGHTTP2_ERR_DEFERRED;
        }
    }
    if (call->was_full)
        wake(call);
    return (ssize_t)n;
}

static void resume(struct grpc_call *call)
{
    if (call->deferred) {
        call->deferred = false;
        nghttp2_session_resume_data(call->conn->session, call->stream);
    }
    wake(call);
}

static void send_headers(struct grpc_call *call)
{
    nghttp2_nv nv[] = {NV(":status", "200"), NV("content-type", "application/grpc"),
                       NV("grpc-accept-encoding", "identity")};
    nghttp2_data_provider provider = {.source.ptr = call, .read_callback = read_output};
    call->headers_sent = true;
    nghttp2_submit_response(call->conn->session, call->stream, nv, ARRAY_LEN(nv), &provider);
}

static bool output_blocks(const struct grpc_call *call)
{
    return grpc_call_queued(call) > call->conn->limits.call_out_bytes / 4;
}

void grpc_call_send(struct grpc_call *call, const void *message, size_t len)
{
    struct h2_conn *c = call->conn;
    size_t more = len + GRPC_FRAME_HEAD;
    if (call->told || call->reset || call->finishing)
        return;
    /* One message always fits, however long. */
    if ((grpc_call_queued(call) && grpc_call_queued(call) + more > c->limits.call_out_bytes) ||
        (c->out_bytes && c->out_bytes + more > c->limits.conn_out_bytes)) {
        reset(call, NGHTTP2_ENHANCE_YOUR_CALM, GRPC_RESOURCE_EXHAUSTED,
              "the peer does not read its messages");
        return;
    }
    if (!grpc_call_queued(call))
        call->moved_ms = 0; /* the next turn knows the time */
    if (call->out_at > KEEP_OUT_BYTES) {
        memmove(call->out.data, call->out.data + call->out_at, grpc_call_queued(call));
        call->out.len -= call->out_at;
        call->out_at = 0;
    }
    grpc__frame_put(&call->out, message, len);
    c->out_bytes += more;
    call->was_full = call->was_full || output_blocks(call);
    if (c->server && !call->headers_sent)
        send_headers(call);
    resume(call);
}

size_t grpc_call_queued(const struct grpc_call *call)
{
    return call->out.len - call->out_at;
}

static void finish(struct grpc_call *call)
{
    if (call->headers_sent) {
        call->finishing = true;
        resume(call);
        return;
    }
    char number[4], text[3 * sizeof(call->text)];
    nghttp2_nv nv[5] = {NV(":status", "200"), NV("content-type", "application/grpc"),
                        NV("grpc-accept-encoding", "identity")};
    size_t n = 3 + status_headers(call, nv + 3, number, text);
    call->headers_sent = call->finishing = call->trailers = true;
    nghttp2_submit_response(call->conn->session, call->stream, nv, n, NULL);
    wake(call);
}

void grpc_call_finish(struct grpc_call *call, enum grpc_status status, const char *text)
{
    PRE(call->conn->server);
    if (call->told || call->reset || call->finishing)
        return;
    decide(call, status, text);
    finish(call);
}

void grpc_call_half_close(struct grpc_call *call)
{
    PRE(!call->conn->server);
    if (call->told || call->reset || call->finishing)
        return;
    call->finishing = true;
    resume(call);
}

void grpc_call_cancel(struct grpc_call *call, const char *why)
{
    reset(call, NGHTTP2_CANCEL, GRPC_CANCELLED, why);
}

void grpc__call_fail(struct grpc_call *call, enum grpc_status status, const char *text)
{
    if (call->conn->server)
        grpc_call_finish(call, status, text);
    else
        reset(call, NGHTTP2_CANCEL, status, text);
}

/* ---- headers ---- */

static bool is(const char *name, size_t len, const char *want)
{
    return strlen(want) == len && !memcmp(name, want, len);
}

static void server_header(struct grpc_call *call, const char *name, size_t name_len,
                          const char *value, size_t len)
{
    static const char bearer[] = "Bearer ";
    size_t skip = sizeof(bearer) - 1;
    uint64_t ms = 0;
    if (is(name, name_len, ":path")) {
        if (len < sizeof(call->path))
            memcpy(call->path, value, len); /* else it stays empty, which is no method */
    } else if (is(name, name_len, ":method")) {
        call->post = is(value, len, "POST");
    } else if (is(name, name_len, "content-type")) {
        call->grpc_type = grpc__type_is_grpc(value, len);
    } else if (is(name, name_len, "grpc-encoding")) {
        call->encoded = !is(value, len, "identity");
    } else if (is(name, name_len, "grpc-timeout")) {
        call->timeout_bad = !grpc__timeout_parse(value, len, &ms);
        call->deadline_ms = call->conn->now + ms;
    } else if (is(name, name_len, "authorization")) {
        if (len > skip && len - skip < sizeof(call->token) && !memcmp(value, bearer, skip)) {
            memcpy(call->token, value + skip, len - skip);
            call->token[len - skip] = 0;
        }
    }
}

static void client_header(struct grpc_call *call, const char *name, size_t name_len,
                          const char *value, size_t len)
{
    if (is(name, name_len, ":status"))
        call->http_status =
            len == 3 ? (unsigned)((value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0'))
                     : 0;
    else if (is(name, name_len, "content-type"))
        call->grpc_type = grpc__type_is_grpc(value, len);
    else if (is(name, name_len, "grpc-encoding"))
        call->encoded = !is(value, len, "identity");
    else if (is(name, name_len, "grpc-status") && !call->deaf)
        call->has_status = grpc__status_parse(value, len, &call->status);
    else if (is(name, name_len, "grpc-message") && !call->deaf)
        grpc__percent_decode(value, len, call->text, sizeof(call->text));
}

void grpc__call_header(struct grpc_call *call, const char *name, size_t name_len, const char *value,
                       size_t len)
{
    call->header_bytes += name_len + len + 32;
    if (call->header_bytes > GRPC_HEADER_BYTES)
        return; /* judged at the end of the block */
    if (call->conn->server && !call->begun)
        server_header(call, name, name_len, value, len);
    else if (!call->conn->server)
        client_header(call, name, name_len, value, len);
}

/* A status of HTTP, for what does not speak gRPC. */
static void refuse_http(struct grpc_call *call, const char *status)
{
    nghttp2_nv nv[] = {NV(":status", status)};
    decide(call, GRPC_INVALID_ARGUMENT, "not a call of gRPC");
    call->headers_sent = call->finishing = call->trailers = true;
    nghttp2_submit_response(call->conn->session, call->stream, nv, ARRAY_LEN(nv), NULL);
    wake(call);
}

static void server_begin(struct grpc_call *call)
{
    if (!call->post)
        refuse_http(call, "405");
    else if (!call->grpc_type)
        refuse_http(call, "415");
    else if (call->encoded)
        grpc_call_finish(call, GRPC_UNIMPLEMENTED, "no compression is accepted");
    else if (call->timeout_bad)
        grpc_call_finish(call, GRPC_INTERNAL, "grpc-timeout does not parse");
    else if (!call->conn->io.on_call(call->conn->arg, call))
        grpc_call_finish(call, GRPC_UNIMPLEMENTED, "no such method");
}

void grpc__call_headers_end(struct grpc_call *call, bool end_stream)
{
    bool first = !call->begun;
    call->begun = true;
    if (call->header_bytes > GRPC_HEADER_BYTES && !call->deaf) {
        grpc__call_fail(call, GRPC_RESOURCE_EXHAUSTED, "the headers are too long");
    } else if (call->conn->server) {
        if (first)
            server_begin(call);
    } else if (!call->deaf && call->http_status != 200) {
        if (!call->has_status)
            reset(call, NGHTTP2_CANCEL, grpc__status_of_http(call->http_status),
                  "the peer does not speak gRPC");
    } else if (!call->deaf && call->encoded) {
        reset(call, NGHTTP2_CANCEL, GRPC_INTERNAL, "the peer compresses, which is not accepted");
    }
    call->header_bytes = 0;
    if (end_stream)
        grpc__call_half(call);
}

/* ---- what comes ---- */

/* A client reads in any case: what the server says may be why it takes nothing. */
static bool blocked(const struct grpc_call *call)
{
    return !call->deaf && (call->paused || (call->conn->server && output_blocks(call)));
}

static void count_partial(struct grpc_call *call)
{
    struct h2_conn *c = call->conn;
    size_t partial = call->deaf ? 0 : grpc__frames_partial(&call->frames);
    if (!partial || blocked(call))
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
    while (left && !blocked(call) && !call->deaf && !call->conn->ending) {
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

static void take_held(struct grpc_call *call)
{
    size_t n = call->held.len - call->held_at;
    if (!n || blocked(call))
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
static void tell_half(struct grpc_call *call)
{
    if (!call->peer_half || call->half_told || call->deaf || call->conn->ending ||
        call->held.len > call->held_at || blocked(call))
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
    tell_half(call);
}

void grpc_call_pause(struct grpc_call *call, bool paused)
{
    if (call->paused == paused || call->told)
        return;
    call->paused = paused;
    call->partial_ms = 0; /* the peer could not go on */
    if (!paused)
        wake(call);
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
    if (!call->partial_ms && call->partial && !blocked(call))
        call->partial_ms = c->now;
    if (call->deadline_ms && !call->deaf && c->now >= call->deadline_ms)
        reset(call, NGHTTP2_CANCEL, GRPC_DEADLINE_EXCEEDED, "the deadline of the call passed");
    else if (grpc_call_queued(call) && c->now - call->moved_ms >= l->stall_ms)
        reset(call, NGHTTP2_ENHANCE_YOUR_CALM, GRPC_RESOURCE_EXHAUSTED,
              "the peer does not read its messages");
    else if (call->partial_ms && !call->deaf && c->now - call->partial_ms >= l->message_ms)
        grpc__call_fail(call, GRPC_DEADLINE_EXCEEDED, "a message did not end in time");
    if (call->was_full && !output_blocks(call)) {
        call->was_full = false;
        if (call->events->on_room && !call->deaf)
            call->events->on_room(call->arg);
    }
    take_held(call);
    tell_half(call);
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

/* ---- client ---- */

struct grpc_call *grpc__call_start(struct h2_conn *c, const char *path, const char *authority,
                                   const char *token, uint64_t deadline_ms,
                                   const struct grpc_call_events *events, void *arg)
{
    PRE(!c->server);
    struct grpc_call *call = grpc__call_new(c, -1);
    char timeout[16], bearer[sizeof(call->token) + 8];
    nghttp2_nv nv[10] = {
        NV(":method", "POST"),
        NV(":scheme", "http"),
        NV(":path", path),
        NV(":authority", authority),
        NV("te", "trailers"),
        NV("content-type", "application/grpc"),
        NV("grpc-accept-encoding", "identity"),
    };
    size_t n = 7;
    call->events = events;
    call->arg = arg;
    call->deadline_ms = deadline_ms;
    call->headers_sent = true;
    if (deadline_ms) {
        grpc__timeout_text(deadline_ms > c->now ? deadline_ms - c->now : 1, timeout);
        nv[n++] = (nghttp2_nv)NV("grpc-timeout", timeout);
    }
    if (token) {
        snprintf(bearer, sizeof(bearer), "Bearer %s", token);
        nv[n] = (nghttp2_nv)NV("authorization", bearer);
        nv[n++].flags = NGHTTP2_NV_FLAG_NO_INDEX;
    }
    nghttp2_data_provider provider = {.source.ptr = call, .read_callback = read_output};
    int32_t stream = nghttp2_session_check_request_allowed(c->session)
                         ? nghttp2_submit_request(c->session, NULL, nv, n, &provider, call)
                         : -1;
    if (stream > 0)
        call->stream = stream;
    else
        decide(call, GRPC_UNAVAILABLE, "the connection takes no more calls");
    wake(call);
    return call;
}

/* ---- what a server asks of a call ---- */

void grpc_call_listen(struct grpc_call *call, const struct grpc_call_events *events, void *arg)
{
    PRE(call->events == &nobody);
    call->events = events;
    call->arg = arg;
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
