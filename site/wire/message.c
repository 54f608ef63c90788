/* A message and its items: to and from the generated structs. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "wire/wire.h"
#include "wire_internal.h"

_Static_assert((int)TXRELAY__SITE__V1__KIND__DELEGATE == (int)SITE_MSG_DELEGATE + 1 &&
                   (int)TXRELAY__SITE__V1__KIND__PROBE == (int)SITE_MSG_PROBE + 1 &&
                   (int)SITE_MSG_PROBE + 1 == (int)SITE_MSG_COUNT,
               "a kind is the core's type and one");
_Static_assert((int)TXRELAY__SITE__V1__STATE__CLOSING == (int)SITE_CLOSING, "the core's states");
_Static_assert((int)TXRELAY__SITE__V1__REASON__WAIT + 1 == (int)SITE_REASON_COUNT,
               "the core's reasons");
_Static_assert((int)TXRELAY__SITE__V1__STAGE__STAGE_DISPATCHED == (int)SITE_WORK_DISPATCHED + 1,
               "a stage is the core's state of a work and one");

enum {
    HEAD_BYTES = 256, /* of a message without items, at most */
    ITEM_HEAD = 6,    /* tag and length of an item, at most */
};

/* ---- reading ---- */

static unsigned fields_of(const item_msg *item)
{
    return (item->call.len ? FIELD_CALL : 0) | (item->extrinsic.len ? FIELD_EXTRINSIC : 0) |
           (item->hash.len ? FIELD_HASH : 0) | (item->place ? FIELD_PLACE : 0) |
           ((int)item->reason ? FIELD_REASON : 0) | ((int)item->acked ? FIELD_ACKED : 0) |
           ((int)item->stage ? FIELD_STAGE : 0) |
           (item->last || item->tip || item->tip_high ? FIELD_TERMS : 0);
}

static bool in_range(int value, int first, int last)
{
    return value >= first && value <= last;
}

static const char *wrong_item(const item_msg *item, const struct rule *rule)
{
    unsigned has = fields_of(item);
    if ((has & rule->must) != rule->must)
        return "an item lacks a field of its kind";
    if (has & ~(rule->must | rule->may))
        return "an item has a field of another kind";
    if (item->sender >= SITE_MEMBERS_MAX || (item->place && item->place->key >= SITE_MEMBERS_MAX))
        return "a member's number is too high";
    if (item->hash.len && item->hash.len != SITE_HASH_BYTES)
        return "a hash has another length";
    if (item->place && !item->hash.len)
        return "an item has a place without a hash";
    /* Without its place nobody can tell which nonce the hash holds. */
    if ((rule->may & FIELD_PLACE) && item->hash.len && !item->place)
        return "an item has a hash without its place";
    if (item->call.len > SITE_WIRE_BYTES_MAX || item->extrinsic.len > SITE_WIRE_BYTES_MAX)
        return "a call or an extrinsic is too long";
    if (!in_range((int)item->reason, 0, SITE_REASON_COUNT - 1) ||
        !in_range((int)item->acked, 0, SITE_MSG_COUNT) ||
        !in_range((int)item->stage, 0, SITE_WORK_DISPATCHED + 1))
        return "an item has a value that is not of this version";
    return NULL;
}

static void take_item(const item_msg *from, struct site_wire_item *ret)
{
    *ret = (struct site_wire_item){
        .item = {.sender = from->sender,
                 .id = from->id,
                 .has_bytes = from->hash.len || from->extrinsic.len,
                 .reason = (enum site_reason)from->reason},
        .call = from->call.len ? from->call.data : NULL,
        .call_len = from->call.len,
        .extrinsic = from->extrinsic.len ? from->extrinsic.data : NULL,
        .extrinsic_len = from->extrinsic.len,
        .terms = {.last = from->last, .tip = (u128)from->tip_high << 64 | from->tip},
    };
    if (from->hash.len)
        memcpy(ret->item.bytes.hash.bytes, from->hash.data, SITE_HASH_BYTES);
    if (from->place) {
        ret->item.bytes.key = from->place->key;
        ret->item.bytes.nonce = from->place->nonce;
        ret->item.bytes.death = from->place->death;
    }
    if ((int)from->acked)
        ret->item.acked = (enum site_message_type)((int)from->acked - 1);
    if ((int)from->stage)
        ret->item.stage = (enum site_work_state)((int)from->stage - 1);
}

static const char *wrong_message(const message_msg *msg)
{
    if (msg->version != SITE_WIRE_VERSION)
        return "another version of the protocol";
    if (msg->account.len != SELECTOR_ACCOUNT_BYTES)
        return "an account has another length";
    if (!in_range((int)msg->kind, 1, SITE_MSG_COUNT) || !in_range((int)msg->state, 0, SITE_CLOSING))
        return "a kind or a state that is not of this version";
    if (!msg->number || !msg->life)
        return "a message without a number";
    if (msg->n_items > SITE_WIRE_ITEMS_MAX)
        return "too many items";
    enum how_many items = site__wire_rule((enum site_message_type)((int)msg->kind - 1))->items;
    if ((items == ITEMS_NONE && msg->n_items) || (items == ITEMS_SOME && !msg->n_items))
        return "a number of items that its kind does not have";
    return NULL;
}

int site__wire_read_message(const message_msg *msg, struct site_wire_message *ret,
                            struct site_wire_item **ret_items, struct err *err)
{
    const char *wrong = wrong_message(msg);
    const struct rule *rule =
        wrong ? NULL : site__wire_rule((enum site_message_type)((int)msg->kind - 1));
    for (size_t i = 0; !wrong && i < msg->n_items; i++)
        wrong = wrong_item(msg->items[i], rule);
    if (wrong)
        return err_set(err, ERR_PROTOCOL, "a message of a site: %s", wrong);
    *ret_items = xcalloc(msg->n_items + 1, sizeof(**ret_items));
    for (size_t i = 0; i < msg->n_items; i++)
        take_item(msg->items[i], &(*ret_items)[i]);
    *ret = (struct site_wire_message){
        .committee = msg->committee,
        .m = {.type = (enum site_message_type)((int)msg->kind - 1),
              .life = msg->life,
              .number = msg->number,
              .answers = msg->answers,
              .height = msg->height,
              .final = msg->final,
              .state = (enum site_state)msg->state,
              .down = msg->down,
              .blind = msg->blind,
              .count = msg->n_items},
        .items = *ret_items,
    };
    memcpy(ret->account, msg->account.data, sizeof(ret->account));
    return 0;
}

/* ---- writing ---- */

static ProtobufCBinaryData bytes(const uint8_t *data, size_t len)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)data, .len = len};
}

/* One item with the message that it may need. */
struct item_room {
    item_msg item;
    place_msg place;
};

static void fill_item(struct item_room *room, const struct site_wire_item *from,
                      const struct rule *rule)
{
    unsigned fields = rule->must | rule->may;
    item_msg *item = &room->item;
    PRE(from->call_len <= SITE_WIRE_BYTES_MAX && from->extrinsic_len <= SITE_WIRE_BYTES_MAX);
    txrelay__site__v1__item__init(item);
    item->sender = from->item.sender;
    item->id = from->item.id;
    if (fields & FIELD_CALL)
        item->call = bytes(from->call, from->call_len);
    if (fields & FIELD_TERMS) {
        item->last = from->terms.last;
        item->tip = (uint64_t)from->terms.tip;
        item->tip_high = (uint64_t)(from->terms.tip >> 64);
    }
    if ((fields & FIELD_EXTRINSIC) && from->extrinsic)
        item->extrinsic = bytes(from->extrinsic, from->extrinsic_len);
    if ((fields & FIELD_HASH) && from->item.has_bytes)
        item->hash = bytes(from->item.bytes.hash.bytes, SITE_HASH_BYTES);
    if ((fields & FIELD_PLACE) && from->item.has_bytes) {
        txrelay__site__v1__place__init(&room->place);
        room->place.key = from->item.bytes.key;
        room->place.nonce = from->item.bytes.nonce;
        room->place.death = from->item.bytes.death;
        item->place = &room->place;
    }
    if (fields & FIELD_REASON)
        item->reason = (Txrelay__Site__V1__Reason)from->item.reason;
    if (fields & FIELD_ACKED)
        item->acked = (Txrelay__Site__V1__Kind)((int)from->item.acked + 1);
    if (fields & FIELD_STAGE)
        item->stage = (Txrelay__Site__V1__Stage)((int)from->item.stage + 1);
    PRE((fields_of(item) & rule->must) == rule->must);
}

static void fill_head(message_msg *msg, const struct site_wire_message *from)
{
    const struct site_message *m = &from->m;
    msg->version = SITE_WIRE_VERSION;
    msg->account = bytes(from->account, sizeof(from->account));
    msg->committee = from->committee;
    msg->kind = (Txrelay__Site__V1__Kind)((int)m->type + 1);
    msg->life = m->life;
    msg->number = m->number;
    msg->answers = m->answers;
    msg->height = m->height;
    msg->final = m->final;
    msg->state = (Txrelay__Site__V1__State)m->state;
    msg->down = m->down;
    msg->blind = m->blind;
}

size_t site_wire_message_write(struct buf *out, const struct site_wire_message *from)
{
    const struct rule *rule = site__wire_rule(from->m.type);
    size_t all = from->m.count, count = 0, size = HEAD_BYTES;
    PRE(all <= SITE_WIRE_ITEMS_MAX);
    struct item_room *rooms = xcalloc(all + 1, sizeof(*rooms));
    item_msg **pointers = xcalloc(all + 1, sizeof(item_msg *));
    for (; count < all; count++) {
        fill_item(&rooms[count], &from->items[count], rule);
        pointers[count] = &rooms[count].item;
        size += ITEM_HEAD + protobuf_c_message_get_packed_size(&rooms[count].item.base);
        if (size > SITE_WIRE_MAX && count > 0)
            break;
    }
    INVARIANT(count == all || from->m.type != SITE_MSG_HEARTBEAT);
    message_msg msg = TXRELAY__SITE__V1__MESSAGE__INIT;
    frame_msg frame = TXRELAY__SITE__V1__FRAME__INIT;
    fill_head(&msg, from);
    msg.n_items = count;
    msg.items = pointers;
    frame.frame_case = TXRELAY__SITE__V1__FRAME__FRAME_MESSAGE;
    frame.message = &msg;
    wire_put(out, &frame);
    free(pointers);
    free(rooms);
    return count;
}
