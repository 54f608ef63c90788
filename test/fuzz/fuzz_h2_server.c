/* Bytes of an HTTP/2 client into a server's connection, with the preface, SETTINGS and one open
 * call in front of them. The first byte is the length of the pieces. Each call ends once, nothing
 * comes of a call after its end or while it is paused, queues stay under their caps, and everything
 * is freed. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "h2_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CALLS = 64, MESSAGE_MAX = 4096 };

struct user {
    struct grpc_call *call;
    bool ended, half, paused;
    unsigned messages;
};

static struct user users[CALLS];
static size_t user_count, queued, ends;
static bool woken;

static void on_message(void *arg, const uint8_t *data, size_t len)
{
    struct user *u = arg;
    INVARIANT(!u->ended && !u->half && !u->paused && len <= MESSAGE_MAX);
    unsigned sum = 0;
    for (size_t i = 0; i < len; i++)
        sum += data[i];
    switch (++u->messages % 8) {
    case 2:
    case 4:
        grpc_call_send(u->call, data, len);
        break;
    case 3:
        u->paused = true;
        grpc_call_pause(u->call, true);
        break;
    case 6:
        grpc_call_finish(u->call, GRPC_OK, sum % 2 ? "" : "even");
        break;
    case 7:
        grpc_call_cancel(u->call, "seven");
        break;
    default:
        break;
    }
}

static void on_half(void *arg)
{
    struct user *u = arg;
    INVARIANT(!u->ended && !u->half);
    u->half = true;
    grpc_call_finish(u->call, GRPC_OK, "");
}

static void on_end(void *arg, enum grpc_status status, const char *text)
{
    struct user *u = arg;
    INVARIANT(!u->ended && status <= GRPC_UNAUTHENTICATED && text);
    u->ended = true;
    u->call = NULL;
}

static const struct grpc_call_events events = {
    .on_message = on_message, .on_half = on_half, .on_end = on_end};

static bool on_call(void *arg, struct grpc_call *call)
{
    (void)arg;
    INVARIANT(strlen(grpc_call_path(call)) < 256 && strlen(grpc_call_token(call)) < 1024);
    if (user_count == CALLS)
        return false;
    struct user *u = &users[user_count++];
    *u = (struct user){.call = call};
    grpc_call_listen(call, &events, u);
    return true;
}

static void io_write(void *arg, const uint8_t *data, size_t len)
{
    (void)arg;
    (void)data;
    queued += len;
}

static size_t io_queued(void *arg)
{
    (void)arg;
    return queued;
}

static void io_wake(void *arg)
{
    (void)arg;
    woken = true;
}

static void io_end(void *arg, const struct err *why)
{
    (void)arg;
    (void)why;
    ends++;
}

static void check(const struct h2_conn *c)
{
    size_t out = 0;
    LIST_EACH (n, &c->calls) {
        const struct grpc_call *call = CONTAINER_OF(n, struct grpc_call, node);
        out += grpc_call_queued(call);
        INVARIANT(call->held.len - call->held_at <= c->limits.window_bytes);
    }
    INVARIANT(out == c->out_bytes && out <= c->limits.conn_out_bytes + MESSAGE_MAX);
    INVARIANT(c->partial_bytes <= c->limits.conn_partial_bytes + 65536);
}

static void resume_some(size_t step)
{
    for (size_t i = 0; i < user_count; i++)
        if (users[i].call && users[i].paused && (step + i) % 3 == 0) {
            users[i].paused = false;
            grpc_call_pause(users[i].call, false);
        }
}

static void give(struct h2_conn *c, uint64_t now, const uint8_t *data, size_t len)
{
    uint8_t *exact = xmalloc(len);
    memcpy(exact, data, len);
    h2__conn_bytes(c, now, exact, len);
    free(exact);
    if (!ends)
        check(c);
}

static const uint8_t opening[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                 "\0\0\0\4\0\0\0\0\0"         /* SETTINGS */
                                 "\0\0\61\1\4\0\0\0\1"        /* HEADERS of stream 1, 49 bytes */
                                 "\203\206\4\5/test"          /* POST, http, :path */
                                 "\1\1t"                      /* :authority */
                                 "\17\20\20application/grpc"  /* content-type */
                                 "\0\2te\10trailers\0\1x\1y"; /* te, and one more */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct h2_io io = {.write = io_write,
                                    .queued = io_queued,
                                    .wake = io_wake,
                                    .on_call = on_call,
                                    .on_end = io_end};
    const struct grpc_limits limits = {.message_bytes = MESSAGE_MAX,
                                       .window_bytes = 65535,
                                       .call_out_bytes = 8192,
                                       .streams_max = 16};
    uint64_t now = 1000;
    if (size < 2)
        return 0;
    user_count = queued = ends = 0;
    struct h2_conn *c = h2__conn_new(true, &limits, &io, NULL, now);
    give(c, now, opening, sizeof(opening) - 1);
    INVARIANT(user_count == 1); /* the opening is right */
    size_t piece = data[0] ? data[0] : 1;
    for (size_t at = 1; at < size && !ends; at += piece) {
        give(c, now, data + at, size - at < piece ? size - at : piece);
        if (at % 5 == 0)
            queued /= 2; /* the peer takes some output */
        resume_some(at);
        now += piece;
        if (woken)
            h2__conn_turn(c, now);
        woken = false;
    }
    for (size_t i = 0; i < 8 && !ends; i++) { /* time goes on until nothing is open */
        now = h2__conn_deadline(c) > now ? h2__conn_deadline(c) : now + 1;
        h2__conn_turn(c, now);
    }
    struct err why;
    err_set(&why, ERR_NET, "over");
    h2__conn_lost(c, now, &why);
    INVARIANT(ends == 1);
    for (size_t i = 0; i < user_count; i++)
        INVARIANT(users[i].ended);
    h2__conn_free(c);
    return 0;
}
