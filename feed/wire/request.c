/* What publishers send. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "feed.pb-c.h"
#include "feed/wire/wire.h"
#include "wire/wire.h"

/* Short names for what protoc-c calls things. */
typedef Txrelay__Feed__V1__PublishRequest request_msg;
typedef Txrelay__Feed__V1__BlockItems items_msg;
typedef Txrelay__Feed__V1__BlockItem item_msg;
typedef Txrelay__Feed__V1__BlockHeader header_msg;
typedef Txrelay__Feed__V1__BlockTrailer trailer_msg;
typedef Txrelay__Feed__V1__EndStream end_msg;
typedef Txrelay__Feed__V1__Call call_msg;
#define REQUEST_ITEMS TXRELAY__FEED__V1__PUBLISH_REQUEST__REQUEST_BLOCK_ITEMS
#define REQUEST_END   TXRELAY__FEED__V1__PUBLISH_REQUEST__REQUEST_END_STREAM
#define ITEM_HEADER   TXRELAY__FEED__V1__BLOCK_ITEM__ITEM_HEADER
#define ITEM_CALL     TXRELAY__FEED__V1__BLOCK_ITEM__ITEM_CALL
#define ITEM_TRAILER  TXRELAY__FEED__V1__BLOCK_ITEM__ITEM_TRAILER

struct feed_wire_request {
    struct arena arena;
    request_msg *msg;
};

/* The generated descriptors are not const where they are used. */
static const ProtobufCMessageDescriptor *const request_descriptor =
    &txrelay__feed__v1__publish_request__descriptor;
static const ProtobufCMessageDescriptor *const call_descriptor =
    &txrelay__feed__v1__call__descriptor;

static bool check_header(const header_msg *h, struct err *err)
{
    size_t n = strlen(h->feed);
    if (n < 1 || n > FEED_WIRE_NAME_MAX)
        err_set(err, ERR_PROTOCOL, "a feed's name has 1 to %d bytes", FEED_WIRE_NAME_MAX);
    else if (h->number < 0)
        err_set(err, ERR_PROTOCOL, "a batch's number is 0 or more");
    else if (h->publisher.len != FEED_WIRE_KEY)
        err_set(err, ERR_PROTOCOL, "a publisher is named by its public key of %d bytes",
                FEED_WIRE_KEY);
    else
        return true;
    return false;
}

static bool check_item(const item_msg *item, struct err *err)
{
    switch ((int)item->item_case) {
    case ITEM_HEADER:
        return check_header(item->header, err);
    case ITEM_CALL:
        return true;
    case ITEM_TRAILER:
        if (item->trailer->digest.len == FEED_WIRE_DIGEST &&
            item->trailer->signature.len == FEED_WIRE_SIGNATURE)
            return true;
        err_set(err, ERR_PROTOCOL, "a trailer has a digest of %d bytes and a signature of %d",
                FEED_WIRE_DIGEST, FEED_WIRE_SIGNATURE);
        return false;
    default:
        err_set(err, ERR_PROTOCOL, "an item is a header, a call or a trailer");
        return false;
    }
}

static bool check(const request_msg *msg, struct err *err)
{
    if ((int)msg->request_case == REQUEST_END)
        return true;
    if ((int)msg->request_case != REQUEST_ITEMS || !msg->block_items->n_items) {
        err_set(err, ERR_PROTOCOL, "a request has one item or more, or it ends the stream");
        return false;
    }
    for (size_t i = 0; i < msg->block_items->n_items; i++)
        if (!check_item(msg->block_items->items[i], err))
            return false;
    return true;
}

struct feed_wire_request *feed_wire_request_read(const uint8_t *data, size_t len, struct err *err)
{
    struct feed_wire_request *r = xcalloc(1, sizeof(*r));
    arena_init(&r->arena, len);
    r->msg = (request_msg *)(void *)protobuf_c_message_unpack(request_descriptor,
                                                              &r->arena.allocator, len, data);
    if (!r->msg)
        err_set(
            err, ERR_PROTOCOL,
            "a request is not a PublishRequest, or has too many short items: send fewer in one");
    else if (check(r->msg, err))
        return r;
    return feed_wire_request_free(r);
}

size_t feed_wire_request_count(const struct feed_wire_request *r)
{
    return (int)r->msg->request_case == REQUEST_END ? 1 : r->msg->block_items->n_items;
}

struct feed_wire_item feed_wire_request_item(const struct feed_wire_request *r, size_t i)
{
    PRE(i < feed_wire_request_count(r));
    if ((int)r->msg->request_case == REQUEST_END)
        return (struct feed_wire_item){.kind = FEED_WIRE_END_STREAM,
                                       .end = {.code = (int)r->msg->end_stream->code,
                                               .earliest = r->msg->end_stream->earliest,
                                               .latest_acked = r->msg->end_stream->latest_acked}};
    const item_msg *item = r->msg->block_items->items[i];
    struct feed_wire_item ret = {.kind = FEED_WIRE_CALL};
    if ((int)item->item_case == ITEM_HEADER) {
        ret.kind = FEED_WIRE_HEADER;
        ret.header = (struct feed_wire_header){.feed = item->header->feed,
                                               .number = item->header->number,
                                               .publisher = item->header->publisher.data};
    } else if ((int)item->item_case == ITEM_TRAILER) {
        ret.kind = FEED_WIRE_TRAILER;
        ret.trailer = (struct feed_wire_trailer){.count = item->trailer->count,
                                                 .digest = item->trailer->digest.data,
                                                 .signature = item->trailer->signature.data};
    } else {
        ret.call.data = item->call.data;
        ret.call.len = item->call.len;
    }
    return ret;
}

struct feed_wire_request *feed_wire_request_free(struct feed_wire_request *r)
{
    if (r) {
        arena_done(&r->arena);
        free(r);
    }
    return NULL;
}

/* ---- calls ---- */

struct feed_wire_call_memory {
    struct arena arena;
};

int feed_wire_call_read(const uint8_t *data, size_t len, struct feed_wire_call *ret,
                        struct feed_wire_call_memory **ret_memory, struct err *err)
{
    struct feed_wire_call_memory *m = xcalloc(1, sizeof(*m));
    arena_init(&m->arena, len);
    const call_msg *c = (const call_msg *)(void *)protobuf_c_message_unpack(
        call_descriptor, &m->arena.allocator, len, data);
    if (!c) {
        feed_wire_call_free(m);
        return err_set(err, ERR_PROTOCOL, "it is not a Call of feed.proto");
    }
    *ret = (struct feed_wire_call){
        .call = c->call.data,
        .call_len = c->call.len,
        .priority = c->priority,
        .tip = c->tip,
        .max_tip = c->max_tip,
        .not_before_ms = c->not_before_ms,
        .deadline_ms = c->deadline_ms,
        .deadline_block = c->deadline_block,
        .retries = c->retries,
        .spec_version = c->spec_version,
    };
    *ret_memory = m;
    return 0;
}

struct feed_wire_call_memory *feed_wire_call_free(struct feed_wire_call_memory *m)
{
    if (m) {
        arena_done(&m->arena);
        free(m);
    }
    return NULL;
}

/* ---- what a client writes ---- */

static ProtobufCBinaryData bytes(const uint8_t *data, size_t len)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)data, .len = len};
}

static char *text(const char *s)
{
    return (char *)(uintptr_t)(s ? s : "");
}

void feed_wire_call_write(struct buf *out, const struct feed_wire_call *call)
{
    call_msg c = TXRELAY__FEED__V1__CALL__INIT;
    c.call = bytes(call->call, call->call_len);
    c.priority = call->priority;
    c.tip = text(call->tip);
    c.max_tip = text(call->max_tip);
    c.not_before_ms = call->not_before_ms;
    c.deadline_ms = call->deadline_ms;
    c.deadline_block = call->deadline_block;
    c.retries = call->retries;
    c.spec_version = call->spec_version;
    wire_put(out, &c);
}

/* One item with the messages that it may need. */
struct item_room {
    item_msg item;
    header_msg header;
    trailer_msg trailer;
};

static void fill_item(struct item_room *room, const struct feed_wire_item *from)
{
    txrelay__feed__v1__block_item__init(&room->item);
    if (from->kind == FEED_WIRE_HEADER) {
        txrelay__feed__v1__block_header__init(&room->header);
        room->header.feed = text(from->header.feed);
        room->header.number = from->header.number;
        room->header.publisher = bytes(from->header.publisher, FEED_WIRE_KEY);
        room->item.item_case = ITEM_HEADER;
        room->item.header = &room->header;
    } else if (from->kind == FEED_WIRE_TRAILER) {
        txrelay__feed__v1__block_trailer__init(&room->trailer);
        room->trailer.count = from->trailer.count;
        room->trailer.digest = bytes(from->trailer.digest, FEED_WIRE_DIGEST);
        room->trailer.signature = bytes(from->trailer.signature, FEED_WIRE_SIGNATURE);
        room->item.item_case = ITEM_TRAILER;
        room->item.trailer = &room->trailer;
    } else {
        room->item.item_case = ITEM_CALL;
        room->item.call = bytes(from->call.data, from->call.len);
    }
}

void feed_wire_request_write(struct buf *out, const struct feed_wire_item *items, size_t count)
{
    PRE(count > 0);
    request_msg r = TXRELAY__FEED__V1__PUBLISH_REQUEST__INIT;
    if (items[0].kind == FEED_WIRE_END_STREAM) {
        end_msg e = TXRELAY__FEED__V1__END_STREAM__INIT;
        e.code = (Txrelay__Feed__V1__EndStream__Code)items[0].end.code;
        e.earliest = items[0].end.earliest;
        e.latest_acked = items[0].end.latest_acked;
        r.request_case = REQUEST_END;
        r.end_stream = &e;
        wire_put(out, &r);
        return;
    }
    items_msg list = TXRELAY__FEED__V1__BLOCK_ITEMS__INIT;
    struct item_room *rooms = xcalloc(count, sizeof(*rooms));
    item_msg **pointers = xcalloc(count, sizeof(item_msg *));
    for (size_t i = 0; i < count; i++) {
        fill_item(&rooms[i], &items[i]);
        pointers[i] = &rooms[i].item;
    }
    list.n_items = count;
    list.items = pointers;
    r.request_case = REQUEST_ITEMS;
    r.block_items = &list;
    wire_put(out, &r);
    free(pointers);
    free(rooms);
}

static void put_be(struct buf *out, uint64_t v, unsigned len)
{
    while (len--)
        buf_put_u8(out, (uint8_t)(v >> (8 * len)));
}

void feed_wire_signed_put(struct buf *out, const char *feed, int64_t number, uint32_t count,
                          const uint8_t digest[FEED_WIRE_DIGEST])
{
    static const char domain[16] = "txrelay-feed-v1"; /* and a NUL */
    buf_put(out, domain, sizeof(domain));
    put_be(out, strlen(feed), 4);
    buf_put(out, feed, strlen(feed));
    put_be(out, (uint64_t)number, 8);
    put_be(out, count, 4);
    buf_put(out, digest, FEED_WIRE_DIGEST);
}
