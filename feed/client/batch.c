/* Which batches the publisher keeps, and how does it send them? A batch is signed when it is put,
 * sent in pieces while the stream has room, and freed once it is acknowledged. One at a time, the
 * lowest number first. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/codec/hash.h"
#include "chain/keys/keys.h"
#include "client_internal.h"
#include "net/grpc.h"

enum {
    PIECE_BYTES = 64 << 10,   /* of calls in one request */
    QUEUED_BYTES = 256 << 10, /* in the call's queue, before it waits for room */
    CALL_OVERHEAD = 1024,
};

/* ---- batches ---- */

struct batch *feed__client_batch_free(struct feed_client *c, struct batch *b)
{
    list_remove(&b->node);
    c->kept--;
    if (c->sending == b)
        c->sending = NULL;
    buf_done(&b->body);
    free(b);
    return NULL;
}

struct batch *feed__client_first_batch(const struct feed_client *c)
{
    struct list *n = list_first(&c->batches);
    return n ? CONTAINER_OF(n, struct batch, node) : NULL;
}

static void put_be32(struct buf *out, size_t v)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_put_u8(out, (uint8_t)(v >> shift));
}

static void sign(struct feed_client *c, struct batch *b)
{
    struct buf message = {0};
    hash_sha256(b->body.data, b->body.len, b->digest);
    feed_wire_signed_put(&message, c->config.feed, b->number, b->count, b->digest);
    keypair_sign(c->config.key, message.data, message.len, b->signature);
    buf_done(&message);
}

int feed_client_put(struct feed_client *c, int64_t number, const struct feed_wire_call *calls,
                    size_t count, struct err *err)
{
    PRE(!c->ending && number >= 0);
    PRE(list_empty(&c->batches) ||
        CONTAINER_OF(c->batches.prev, struct batch, node)->number + 1 == number);
    for (size_t i = 0; i < count; i++)
        if (calls[i].call_len > FEED_WIRE_REQUEST_MAX - CALL_OVERHEAD)
            return err_set(err, ERR_ARGUMENT, "batch %lld, call %zu: it has %zu bytes, at most %d",
                           (long long)number, i, calls[i].call_len,
                           FEED_WIRE_REQUEST_MAX - CALL_OVERHEAD);
    struct batch *b = xcalloc(1, sizeof(*b));
    struct buf one = {0};
    b->number = number;
    b->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        buf_clear(&one);
        feed_wire_call_write(&one, &calls[i]);
        put_be32(&b->body, one.len);
        buf_put(&b->body, one.data, one.len);
    }
    buf_done(&one);
    sign(c, b);
    list_append(&c->batches, &b->node);
    c->kept++;
    if (number <= c->last)
        feed__client_batch_free(c, b); /* another publisher's copy is stored */
    feed__client_wake(c);
    return 0;
}

void feed_client_rewind(struct feed_client *c, int64_t number)
{
    PRE(number >= 0);
    while (feed__client_first_batch(c))
        feed__client_batch_free(c, feed__client_first_batch(c));
    c->last = number - 1;
    c->ending = false;
}

enum missing feed__client_missing(struct feed_client *c, int64_t last)
{
    const struct batch *b = feed__client_first_batch(c);
    if (!b || b->number <= last + 1)
        return MISSING_NONE;
    if (c->config.on_missing && c->config.on_missing(c->config.arg, last + 1))
        return MISSING_NONE;
    feed__client_note(c, FEED_CLIENT_MISSING, last + 1, "");
    return last < c->last ? MISSING_LOST : MISSING_OTHERS;
}

size_t feed_client_kept(const struct feed_client *c)
{
    return c->kept;
}

void feed__client_acked(struct feed_client *c, int64_t number)
{
    bool any = number > c->last;
    c->last = any ? number : c->last;
    for (struct batch *b = feed__client_first_batch(c); b && b->number <= number;
         b = feed__client_first_batch(c))
        feed__client_batch_free(c, b);
    if (!any)
        return;
    backoff_reset(&c->backoff);
    c->config.on_acked(c->config.arg, number);
}

/* ---- sending ---- */

static void send_items(struct feed_client *c, const struct feed_wire_item *items, size_t count)
{
    struct buf out = {0};
    feed_wire_request_write(&out, items, count);
    grpc_call_send(c->call, out.data, out.len);
    buf_done(&out);
}

static size_t call_at(const struct batch *b, size_t at, struct feed_wire_item *ret)
{
    const uint8_t *p = b->body.data + at;
    size_t len = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
    *ret = (struct feed_wire_item){.kind = FEED_WIRE_CALL};
    ret->call.data = p + 4;
    ret->call.len = len;
    return 4 + len;
}

/* The next request of the batch: up to PIECE_BYTES of calls, the header before the first, the
 * trailer after the last. */
static void send_piece(struct feed_client *c)
{
    enum { ITEMS = 512 };
    struct feed_wire_item items[ITEMS + 2];
    struct batch *b = c->sending;
    size_t n = 0, bytes = 0, calls = 0, public_len = 0;
    if (!c->header_sent) {
        items[n].kind = FEED_WIRE_HEADER;
        items[n++].header =
            (struct feed_wire_header){.feed = c->config.feed,
                                      .number = b->number,
                                      .publisher = keypair_public(c->config.key, &public_len)};
        c->header_sent = true;
    }
    for (; c->sent_at < b->body.len && calls < ITEMS; calls++) {
        size_t len = call_at(b, c->sent_at, &items[n]);
        if (calls && bytes + len > PIECE_BYTES)
            break;
        bytes += len;
        c->sent_at += len;
        n++;
    }
    bool whole = c->sent_at == b->body.len;
    if (whole) {
        items[n].kind = FEED_WIRE_TRAILER;
        items[n++].trailer = (struct feed_wire_trailer){
            .count = b->count, .digest = b->digest, .signature = b->signature};
    }
    send_items(c, items, n);
    if (whole) {
        int64_t number = b->number;
        feed__client_wait_answer(c, ANSWER_WAIT, c->config.answer_ms);
        feed__client_note(c, FEED_CLIENT_SENT, number, "");
    }
}

void feed__client_send_end(struct feed_client *c, int code, enum phase phase)
{
    const struct batch *b = feed__client_first_batch(c);
    struct feed_wire_item end = {
        .kind = FEED_WIRE_END_STREAM,
        .end = {.code = code, .earliest = b ? b->number : c->last + 1, .latest_acked = c->last}};
    send_items(c, &end, 1);
    grpc_call_half_close(c->call);
    c->sending = NULL;
    feed__client_wait_answer(c, phase, c->config.answer_ms);
}

/* Offers the first batch that is kept. */
static void go_on(struct loop_task *task)
{
    struct feed_client *c = CONTAINER_OF(task, struct feed_client, task);
    struct batch *b = feed__client_first_batch(c);
    if (c->ending && !b && (c->phase == BACKOFF_WAIT || c->phase == CONNECT_WAIT)) {
        feed__client_finish(c); /* nothing is open that has to be closed */
        return;
    }
    if (c->phase == STREAM_IDLE && b) {
        c->phase = SENDING;
        c->sending = b;
        c->sent_at = 0;
        c->header_sent = false;
        loop_timer_stop(c->timer);
    } else if (c->phase == STREAM_IDLE && c->ending) {
        feed__client_send_end(c, FEED_WIRE_END_RESET, ENDING_WAIT);
    }
    while (c->phase == SENDING && grpc_call_queued(c->call) < QUEUED_BYTES)
        send_piece(c);
}

void feed__client_wake(struct feed_client *c)
{
    if (c->phase != OVER && !list_linked(&c->task.node))
        loop_post(c->loop, &c->task, go_on);
}
