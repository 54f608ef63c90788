/* The headers of a call: what a request or an answer says, what is refused for it, and the request
 * of a client. */
#include <string.h>

#include "h2_internal.h"

/* ---- what comes ---- */

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
    grpc__call_decide(call, GRPC_INVALID_ARGUMENT, "not a call of gRPC");
    call->headers_sent = call->finishing = call->trailers = true;
    nghttp2_submit_response(call->conn->session, call->stream, nv, ARRAY_LEN(nv), NULL);
    grpc__call_wake(call);
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
            grpc__call_reset(call, NGHTTP2_CANCEL, grpc__status_of_http(call->http_status),
                             "the peer does not speak gRPC");
    } else if (!call->deaf && call->encoded) {
        grpc__call_reset(call, NGHTTP2_CANCEL, GRPC_INTERNAL,
                         "the peer compresses, which is not accepted");
    }
    call->header_bytes = 0;
    if (end_stream)
        grpc__call_half(call);
}

/* ---- the request of a client ---- */

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
    nghttp2_data_provider provider = {.source.ptr = call, .read_callback = grpc__call_read_output};
    int32_t stream = nghttp2_session_check_request_allowed(c->session)
                         ? nghttp2_submit_request(c->session, NULL, nv, n, &provider, call)
                         : -1;
    if (stream > 0)
        call->stream = stream;
    else
        grpc__call_decide(call, GRPC_UNAVAILABLE, "the connection takes no more calls");
    grpc__call_wake(call);
    return call;
}
