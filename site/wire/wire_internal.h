/* Private to site/wire: what the items of each kind of message have. */
#ifndef SITE_WIRE_INTERNAL_H
#define SITE_WIRE_INTERNAL_H

#include "site.pb-c.h"
#include "site/wire/wire.h"

/* Short names for what protoc-c calls things. */
typedef Txrelay__Site__V1__Frame frame_msg;
typedef Txrelay__Site__V1__Hello hello_msg;
typedef Txrelay__Site__V1__Refusal refusal_msg;
typedef Txrelay__Site__V1__Question question_msg;
typedef Txrelay__Site__V1__Answer answer_msg;
typedef Txrelay__Site__V1__Message message_msg;
typedef Txrelay__Site__V1__Item item_msg;
typedef Txrelay__Site__V1__Place place_msg;

enum field {
    FIELD_CALL = 1 << 0,
    FIELD_EXTRINSIC = 1 << 1,
    FIELD_HASH = 1 << 2,
    FIELD_PLACE = 1 << 3,
    FIELD_REASON = 1 << 4,
    FIELD_ACKED = 1 << 5,
    FIELD_STAGE = 1 << 6,
    FIELD_TERMS = 1 << 7,
};

enum how_many { ITEMS_NONE, ITEMS_ANY, ITEMS_SOME };

struct rule {
    unsigned must, may; /* fields of its items; what must be there may be there */
    enum how_many items;
};

const struct rule *site__wire_rule(enum site_message_type type);

/* A frame that is parsed; its texts and bytes are borrowed from `msg`. */
int site__wire_read_message(const message_msg *msg, struct site_wire_message *ret,
                            struct site_wire_item **ret_items, struct err *err);

#endif
