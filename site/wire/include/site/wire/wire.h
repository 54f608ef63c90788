/* The messages of site.proto as plain structs: this file parses and checks incoming frames, and
 * writes outgoing ones. No other file uses the generated code. Pure.
 *
 * A message is one of the core (site/core/site.h) with an account, and with the bytes that the core
 * refers to by their hash. The receiver reads key, nonce and death from the bytes, never from the
 * message that carries them. */
#ifndef SITE_WIRE_WIRE_H
#define SITE_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/u128.h"
#include "site/core/site.h"

#define SITE_WIRE_EXCHANGE "/txrelay.site.v1.Sites/Exchange"

enum {
    SITE_WIRE_VERSION = 1,
    SITE_WIRE_MAX = 4 << 20,       /* bytes of a frame */
    SITE_WIRE_BYTES_MAX = 2000000, /* of a call or an extrinsic */
    SITE_WIRE_ITEMS_MAX = 10000,   /* of a message */
    SITE_WIRE_ADDRESS_MAX = 300,
    SITE_WIRE_NAME_MAX = 64, /* of a site */
};

enum site_wire_type {
    SITE_WIRE_HELLO,
    SITE_WIRE_MESSAGE,
    SITE_WIRE_REFUSAL,
    SITE_WIRE_QUESTION,
    SITE_WIRE_ANSWER,
};

/* Why a relay does not take a message; the values of site.proto. */
enum site_wire_why {
    SITE_WIRE_NOT_LEADER = 1,
    SITE_WIRE_UNKNOWN_ACCOUNT = 2,
    SITE_WIRE_OTHER_COMMITTEE = 3,
};
const char *site_wire_why_name(enum site_wire_why why); /* "not leader" */

/* What the bytes of a transaction must be, beside its call. */
struct site_terms {
    uint64_t last; /* the last block that may include it; 0: any */
    u128 tip;
};

struct site_wire_item {
    struct site_item item; /* `valid` is the receiver's to set: false when it was read */
    const uint8_t *call;   /* DELEGATE */
    size_t call_len;
    struct site_terms terms;  /* DELEGATE */
    const uint8_t *extrinsic; /* signed bytes; NULL: none. Read with them: has_bytes, and of `bytes`
                               * nothing but a hash that the message has beside them */
    size_t extrinsic_len;
};

struct site_wire_message {
    uint8_t account[SELECTOR_ACCOUNT_BYTES];
    uint64_t committee;    /* what site_wire_committee gives, at both ends */
    struct site_message m; /* without items; from and to are the link's to set: 0 */
    const struct site_wire_item *items;
};

/* What a site's configuration says about an account. */
struct site_wire_settings {
    uint8_t account[SELECTOR_ACCOUNT_BYTES];
    const char *const *sites; /* in the order of their names */
    size_t count;             /* 0: the account has no sites there */
    bool own_keys, sticky, silence_is_down;
    uint32_t range_blocks, approvals, era_blocks;
};

struct site_wire_frame {
    enum site_wire_type type;
    union {
        const char *address; /* HELLO: where the relay takes links */
        struct site_wire_message message;
        struct {
            uint8_t account[SELECTOR_ACCOUNT_BYTES];
            enum site_wire_why why;
            const char *leader; /* HOST:PORT; "": not known */
        } refusal;
        uint8_t question[SELECTOR_ACCOUNT_BYTES]; /* the account */
        struct site_wire_settings answer;
    };
};

/* *ret is borrowed until *ret_memory is freed by site_wire_free. An error (ERR_PROTOCOL) says what
 * is wrong with the bytes; then there is nothing to free. */
struct site_wire_memory;
int site_wire_read(const uint8_t *data, size_t len, struct site_wire_frame *ret,
                   struct site_wire_memory **ret_memory, struct err *err);
struct site_wire_memory *site_wire_free(struct site_wire_memory *m);

void site_wire_hello_write(struct buf *out, const char *address);
void site_wire_refusal_write(struct buf *out, const uint8_t account[SELECTOR_ACCOUNT_BYTES],
                             enum site_wire_why why, const char *leader);
void site_wire_question_write(struct buf *out, const uint8_t account[SELECTOR_ACCOUNT_BYTES]);
void site_wire_answer_write(struct buf *out, const struct site_wire_settings *s);
/* Appends a frame with as many of the message's items, from the first on, as fit; m.count is how
 * many there are. Returns how many it took: the rest is another frame. A heartbeat is always
 * whole. */
size_t site_wire_message_write(struct buf *out, const struct site_wire_message *m);

/* A digest of the settings that all sites of an account must share: the members, in the order of
 * their names, and the policy that chooses the coordinator. Sites whose digests differ refuse each
 * other's messages. */
uint64_t site_wire_committee(const struct site_config *config);

#endif
