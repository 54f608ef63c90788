/* Frames of site.proto, as a relay gets them from another site: what is taken has the promised
 * lengths, every byte of it is there, and what is written again reads the same. */
#include <string.h>

#include "base/check.h"
#include "site/wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned touch(const void *data, size_t len)
{
    unsigned sum = 0;
    for (size_t i = 0; i < len; i++)
        sum += ((const uint8_t *)data)[i];
    return sum;
}

static unsigned touch_items(const struct site_wire_message *m)
{
    unsigned sum = 0;
    INVARIANT(m->m.count <= SITE_WIRE_ITEMS_MAX);
    for (size_t i = 0; i < m->m.count; i++) {
        const struct site_wire_item *item = &m->items[i];
        INVARIANT(item->item.sender < SITE_MEMBERS_MAX);
        INVARIANT(item->item.bytes.key < SITE_MEMBERS_MAX);
        INVARIANT(item->item.reason < SITE_REASON_COUNT);
        INVARIANT(item->item.acked < SITE_MSG_COUNT);
        INVARIANT(item->item.stage <= SITE_WORK_DISPATCHED);
        INVARIANT(!item->item.valid);
        INVARIANT(item->call_len <= SITE_WIRE_BYTES_MAX);
        INVARIANT(item->extrinsic_len <= SITE_WIRE_BYTES_MAX);
        sum += touch(item->call, item->call_len) + touch(item->extrinsic, item->extrinsic_len) +
               touch(&item->item.bytes.hash, SITE_HASH_BYTES);
    }
    return sum;
}

static void message(const struct site_wire_message *m)
{
    struct buf out = {0};
    struct site_wire_frame frame;
    struct site_wire_memory *memory = NULL;
    struct err err;
    INVARIANT(m->m.type < SITE_MSG_COUNT && m->m.state <= SITE_CLOSING && m->m.number);
    unsigned sum = touch_items(m);
    INVARIANT(site_wire_message_write(&out, m) == m->m.count);
    INVARIANT(site_wire_read(out.data, out.len, &frame, &memory, &err) == 0);
    INVARIANT(frame.type == SITE_WIRE_MESSAGE && frame.message.m.count == m->m.count);
    INVARIANT(frame.message.m.type == m->m.type && frame.message.m.life == m->m.life);
    INVARIANT(touch_items(&frame.message) == sum);
    site_wire_free(memory);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct site_wire_frame frame;
    struct site_wire_memory *memory = NULL;
    struct err err;
    if (site_wire_read(data, size, &frame, &memory, &err)) {
        INVARIANT(err.text[0]);
        return 0;
    }
    switch (frame.type) {
    case SITE_WIRE_HELLO:
        INVARIANT(strlen(frame.address) <= SITE_WIRE_ADDRESS_MAX);
        break;
    case SITE_WIRE_MESSAGE:
        message(&frame.message);
        break;
    case SITE_WIRE_REFUSAL:
        INVARIANT(site_wire_why_name(frame.refusal.why)[0] != '?');
        INVARIANT(strlen(frame.refusal.leader) <= SITE_WIRE_ADDRESS_MAX);
        break;
    case SITE_WIRE_QUESTION:
        (void)touch(frame.question, sizeof(frame.question));
        break;
    case SITE_WIRE_ANSWER:
        INVARIANT(frame.answer.count <= SITE_MEMBERS_MAX);
        for (size_t i = 0; i < frame.answer.count; i++) {
            size_t len = strlen(frame.answer.sites[i]);
            INVARIANT(len && len <= SITE_WIRE_NAME_MAX);
        }
        break;
    }
    site_wire_free(memory);
    return 0;
}
