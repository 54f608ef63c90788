/* What leaves a call: messages, and the status after them.
 *
 *   grpc_call_send -> out -> nghttp2 reads as the peer's window allows -> after finish: trailers
 *
 * The queue has a cap, of the call and of its connection. Beyond it the call ends: nothing waits
 * for a reader that does not read. */
#include <string.h>

#include "h2_internal.h"

enum { KEEP_OUT_BYTES = 65536 };

void grpc__call_output_drop(struct grpc_call *call)
{
    call->conn->out_bytes -= call->out.len - call->out_at;
    call->out_at = 0;
    buf_done(&call->out);
}

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

ssize_t grpc__call_read_output(nghttp2_session *session, int32_t stream, uint8_t *data, size_t max,
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
        grpc__call_wake(call);
    return (ssize_t)n;
}

static void resume(struct grpc_call *call)
{
    if (call->deferred) {
        call->deferred = false;
        nghttp2_session_resume_data(call->conn->session, call->stream);
    }
    grpc__call_wake(call);
}

static void send_headers(struct grpc_call *call)
{
    nghttp2_nv nv[] = {NV(":status", "200"), NV("content-type", "application/grpc"),
                       NV("grpc-accept-encoding", "identity")};
    nghttp2_data_provider provider = {.source.ptr = call, .read_callback = grpc__call_read_output};
    call->headers_sent = true;
    nghttp2_submit_response(call->conn->session, call->stream, nv, ARRAY_LEN(nv), &provider);
}

bool grpc__call_output_blocks(const struct grpc_call *call)
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
        grpc__call_reset(call, NGHTTP2_ENHANCE_YOUR_CALM, GRPC_RESOURCE_EXHAUSTED,
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
    call->was_full = call->was_full || grpc__call_output_blocks(call);
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
    grpc__call_wake(call);
}

void grpc_call_finish(struct grpc_call *call, enum grpc_status status, const char *text)
{
    PRE(call->conn->server);
    if (call->told || call->reset || call->finishing)
        return;
    grpc__call_decide(call, status, text);
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
