/* Messages of feed.proto, as a relay and as a publisher get them: what is taken has the promised
 * lengths, every byte of it is there, and what is written again reads the same. */
#include <string.h>

#include "base/check.h"
#include "feed/wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned touch(const void *data, size_t len)
{
    unsigned sum = 0;
    for (size_t i = 0; i < len; i++)
        sum += ((const uint8_t *)data)[i];
    return sum;
}

static unsigned touch_item(const struct feed_wire_item *item)
{
    switch (item->kind) {
    case FEED_WIRE_HEADER:
        INVARIANT(item->header.number >= 0);
        INVARIANT(strlen(item->header.feed) >= 1);
        INVARIANT(strlen(item->header.feed) <= FEED_WIRE_NAME_MAX);
        return touch(item->header.publisher, FEED_WIRE_KEY);
    case FEED_WIRE_CALL:
        return touch(item->call.data, item->call.len);
    case FEED_WIRE_TRAILER:
        return touch(item->trailer.digest, FEED_WIRE_DIGEST) +
               touch(item->trailer.signature, FEED_WIRE_SIGNATURE);
    case FEED_WIRE_END_STREAM:
        return 0;
    }
    UNREACHABLE();
}

static void request(const uint8_t *data, size_t size)
{
    struct feed_wire_item items[64];
    struct buf out = {0};
    struct err err;
    struct feed_wire_request *r = feed_wire_request_read(data, size, &err);
    if (!r)
        return;
    size_t n = feed_wire_request_count(r);
    INVARIANT(n >= 1);
    unsigned sum = 0, again = 0;
    for (size_t i = 0; i < n; i++) {
        struct feed_wire_item item = feed_wire_request_item(r, i);
        sum += touch_item(&item);
        if (i < 64)
            items[i] = item;
    }
    if (n <= 64) {
        feed_wire_request_write(&out, items, n);
        struct feed_wire_request *same = feed_wire_request_read(out.data, out.len, &err);
        INVARIANT(same && feed_wire_request_count(same) == n);
        for (size_t i = 0; i < n; i++) {
            struct feed_wire_item item = feed_wire_request_item(same, i);
            INVARIANT(item.kind == items[i].kind);
            again += touch_item(&item);
        }
        INVARIANT(again == sum);
        feed_wire_request_free(same);
    }
    buf_done(&out);
    feed_wire_request_free(r);
}

static void call(const uint8_t *data, size_t size)
{
    struct feed_wire_call_memory *memory = NULL, *again = NULL;
    struct feed_wire_call c, same;
    struct buf out = {0};
    struct err err;
    if (feed_wire_call_read(data, size, &c, &memory, &err))
        return;
    feed_wire_call_write(&out, &c);
    INVARIANT(feed_wire_call_read(out.data, out.len, &same, &again, &err) == 0);
    INVARIANT(same.call_len == c.call_len && same.priority == c.priority);
    INVARIANT(!strcmp(same.tip, c.tip) && !strcmp(same.max_tip, c.max_tip));
    INVARIANT(!c.call_len || !memcmp(same.call, c.call, c.call_len));
    buf_done(&out);
    feed_wire_call_free(again);
    feed_wire_call_free(memory);
}

static void response(const uint8_t *data, size_t size)
{
    struct feed_wire_response r, same;
    struct buf out = {0};
    struct err err;
    if (feed_wire_response_read(data, size, &r, &err))
        return;
    INVARIANT(feed_wire_status_name(r.status)[0]);
    feed_wire_response_write(&out, &r);
    INVARIANT(feed_wire_response_read(out.data, out.len, &same, &err) == 0);
    INVARIANT(same.answer == r.answer && same.number == r.number && same.status == r.status);
    INVARIANT(!strcmp(same.detail, r.detail));
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    if (data[0] % 3 == 0)
        request(data + 1, size - 1);
    else if (data[0] % 3 == 1)
        call(data + 1, size - 1);
    else
        response(data + 1, size - 1);
    return 0;
}
