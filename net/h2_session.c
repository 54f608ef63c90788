/* What nghttp2 reports of a session.
 *
 * What its version in Debian 12 (1.52) leaves to us: every clock; the limit of a header list; how
 * many SETTINGS, PING, empty DATA and RST_STREAM frames of its own are too many. nghttp2 itself
 * limits resets by the peer, CONTINUATION frames, entries of SETTINGS, and answers that the peer
 * does not read (set below where there is a setting). No callback returns an error: one from
 * on_stream_close leaks a stream. */
#include <string.h>

#include "base/alloc.h"
#include "h2_internal.h"

enum { /* in ten seconds */
       SETTINGS_MAX = 50,
       PINGS_MAX = 100,
       RESETS_MAX = 200,    /* that we sent because of a fault of the peer */
       REFUSED_MAX = 10000, /* calls above the limit: an honest client may send a burst of them */
       EMPTIES_MAX = 1000,
};
enum { RESET_BURST = 200, RESET_RATE = 20, ACKS_MAX = 200, SETTINGS_ENTRIES_MAX = 32 };
enum { WINDOWS = 4 }; /* calls whose windows may be full before the connection's is */

static uint32_t or_default(uint32_t value, uint32_t standard)
{
    return value ? value : standard;
}

void h2__limits_fill(struct grpc_limits *l)
{
    *l = (struct grpc_limits){
        .connections_max = or_default(l->connections_max, 1000),
        .streams_max = or_default(l->streams_max, 100),
        .message_bytes = or_default(l->message_bytes, 4 << 20),
        .window_bytes = or_default(l->window_bytes, 256 << 10),
        .call_out_bytes = or_default(l->call_out_bytes, 1 << 20),
        .conn_out_bytes = or_default(l->conn_out_bytes, 4 << 20),
        .conn_partial_bytes = or_default(l->conn_partial_bytes, 16 << 20),
        .up_ms = or_default(l->up_ms, 5000),
        .header_ms = or_default(l->header_ms, 10000),
        .message_ms = or_default(l->message_ms, 60000),
        .stall_ms = or_default(l->stall_ms, 30000),
        .keepalive_ms = or_default(l->keepalive_ms, 10000),
        .ping_ms = or_default(l->ping_ms, 5000),
        .unused_ms = or_default(l->unused_ms, 60000),
    };
}

static struct grpc_call *call_of(struct h2_conn *c, int32_t stream)
{
    return stream ? nghttp2_session_get_stream_user_data(c->session, stream) : NULL;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct h2_conn *c = arg;
    int32_t stream = frame->hd.stream_id;
    c->header_ms = c->now;
    if (c->server && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        nghttp2_session_set_stream_user_data(session, stream, grpc__call_new(c, stream));
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t len, uint8_t flags, void *arg)
{
    (void)session;
    (void)flags;
    struct grpc_call *call = call_of(arg, frame->hd.stream_id);
    if (call)
        grpc__call_header(call, (const char *)name, name_len, (const char *)value, len);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t len, void *arg)
{
    (void)flags;
    struct h2_conn *c = arg;
    struct grpc_call *call = call_of(c, stream);
    h2__useful(c);
    /* The connection's window opens at once: one slow call must not stall its neighbours. */
    nghttp2_session_consume_connection(session, len);
    if (call && !c->ending)
        grpc__call_bytes(call, data, len);
    else
        nghttp2_session_consume_stream(session, stream, len);
    return 0;
}

static void on_ping(struct h2_conn *c, const nghttp2_frame *frame)
{
    if (!(frame->hd.flags & NGHTTP2_FLAG_ACK)) {
        if (h2__over(&c->pings, c->now, PINGS_MAX))
            h2__fail(c, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
        return;
    }
    c->ping_ms = 0;
    if (!c->draining || c->drain_final || memcmp(frame->ping.opaque_data, "draining", 8) != 0)
        return;
    c->drain_final = true;
    nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(c->session), NGHTTP2_NO_ERROR,
                          NULL, 0);
}

static void on_settings(struct h2_conn *c, const nghttp2_frame *frame)
{
    if (frame->hd.flags & NGHTTP2_FLAG_ACK)
        return;
    if (h2__over(&c->settings, c->now, SETTINGS_MAX))
        h2__fail(c, NGHTTP2_ENHANCE_YOUR_CALM, "too many SETTINGS");
    if (c->up)
        return;
    c->up = true;
    if (c->io.on_up)
        c->io.on_up(c->arg);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    (void)session;
    struct h2_conn *c = arg;
    struct grpc_call *call = call_of(c, frame->hd.stream_id);
    bool last = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (c->ending)
        return 0;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        c->header_ms = 0;
        h2__useful(c);
        if (call)
            grpc__call_headers_end(call, last);
        break;
    case NGHTTP2_DATA:
        if (!last && frame->hd.length <= frame->data.padlen &&
            h2__over(&c->empties, c->now, EMPTIES_MAX))
            h2__fail(c, NGHTTP2_ENHANCE_YOUR_CALM, "too many empty DATA frames");
        if (call && last)
            grpc__call_half(call);
        break;
    case NGHTTP2_SETTINGS:
        on_settings(c, frame);
        break;
    case NGHTTP2_PING:
        on_ping(c, frame);
        break;
    case NGHTTP2_GOAWAY:
        c->gone_away = true;
        break;
    default:
        break;
    }
    return 0;
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct h2_conn *c = arg;
    int32_t stream = frame->hd.stream_id;
    /* grpc-go measures the way with a PING for each DATA frame that it gets. */
    if (frame->hd.type == NGHTTP2_DATA && c->pings.count)
        c->pings.count--;
    if (frame->hd.type == NGHTTP2_HEADERS && c->server &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
        nghttp2_session_get_stream_remote_close(session, stream) == 0)
        /* The status is out, and the client still sends: free its stream. */
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_NO_ERROR);
    if (frame->hd.type != NGHTTP2_RST_STREAM)
        return 0;
    uint32_t code = frame->rst_stream.error_code;
    if (code == NGHTTP2_REFUSED_STREAM ? h2__over(&c->refused, c->now, REFUSED_MAX)
                                       : code != NGHTTP2_NO_ERROR && code != NGHTTP2_CANCEL &&
                                             h2__over(&c->resets, c->now, RESETS_MAX))
        h2__fail(c, NGHTTP2_ENHANCE_YOUR_CALM, "too many streams had to be reset");
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t code, void *arg)
{
    struct grpc_call *call = call_of(arg, stream);
    if (call) {
        nghttp2_session_set_stream_user_data(session, stream, NULL);
        grpc__call_closed(call, code);
    }
    return 0;
}

static nghttp2_session_callbacks *callbacks_new(void)
{
    nghttp2_session_callbacks *cb = NULL;
    INVARIANT(nghttp2_session_callbacks_new(&cb) == 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
    return cb;
}

static nghttp2_option *option_new(const struct grpc_limits *l)
{
    nghttp2_option *o = NULL;
    INVARIANT(nghttp2_option_new(&o) == 0);
    nghttp2_option_set_no_auto_window_update(o, 1);
    nghttp2_option_set_stream_reset_rate_limit(o, RESET_BURST, RESET_RATE);
    nghttp2_option_set_max_outbound_ack(o, ACKS_MAX);
    nghttp2_option_set_max_settings(o, SETTINGS_ENTRIES_MAX);
    nghttp2_option_set_peer_max_concurrent_streams(o, l->streams_max);
    return o;
}

nghttp2_session *h2__session_new(struct h2_conn *c)
{
    nghttp2_session *session = NULL;
    nghttp2_session_callbacks *cb = callbacks_new();
    nghttp2_option *o = option_new(&c->limits);
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, c->limits.window_bytes},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_HEADER_BYTES},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
        {c->server ? NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS : NGHTTP2_SETTINGS_ENABLE_PUSH,
         c->server ? c->limits.streams_max : 0},
    };
    int rc = c->server ? nghttp2_session_server_new2(&session, cb, c, o)
                       : nghttp2_session_client_new2(&session, cb, c, o);
    INVARIANT(rc == 0);
    nghttp2_option_del(o);
    nghttp2_session_callbacks_del(cb);
    INVARIANT(nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings)) ==
              0);
    INVARIANT(nghttp2_session_set_local_window_size(
                  session, NGHTTP2_FLAG_NONE, 0, (int32_t)(c->limits.window_bytes * WINDOWS)) == 0);
    return session;
}
