/* Frames: what a stream between two sites carries. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "wire/wire.h"
#include "wire_internal.h"

struct site_wire_memory {
    struct arena arena;
    struct site_wire_item *items;
};

#define CASE(name) TXRELAY__SITE__V1__FRAME__FRAME_##name

static int read_hello(const hello_msg *msg, struct site_wire_frame *ret, struct err *err)
{
    if (msg->version != SITE_WIRE_VERSION)
        return err_set(err, ERR_PROTOCOL,
                       "the site speaks version %u of the protocol, and this relay %d",
                       msg->version, SITE_WIRE_VERSION);
    if (strlen(msg->address) > SITE_WIRE_ADDRESS_MAX)
        return err_set(err, ERR_PROTOCOL, "a relay's address has at most %d bytes",
                       SITE_WIRE_ADDRESS_MAX);
    ret->type = SITE_WIRE_HELLO;
    ret->address = msg->address;
    return 0;
}

static int read_refusal(const refusal_msg *msg, struct site_wire_frame *ret, struct err *err)
{
    if (msg->account.len != SELECTOR_ACCOUNT_BYTES || (int)msg->why < SITE_WIRE_NOT_LEADER ||
        (int)msg->why > SITE_WIRE_OTHER_COMMITTEE || strlen(msg->leader) > SITE_WIRE_ADDRESS_MAX)
        return err_set(err, ERR_PROTOCOL, "a refusal of a site does not say of what, or why");
    ret->type = SITE_WIRE_REFUSAL;
    memcpy(ret->refusal.account, msg->account.data, sizeof(ret->refusal.account));
    ret->refusal.why = (enum site_wire_why)msg->why;
    ret->refusal.leader = msg->leader;
    return 0;
}

static int read_question(const question_msg *msg, struct site_wire_frame *ret, struct err *err)
{
    if (msg->account.len != SELECTOR_ACCOUNT_BYTES)
        return err_set(err, ERR_PROTOCOL, "a question of a site names no account");
    ret->type = SITE_WIRE_QUESTION;
    memcpy(ret->question, msg->account.data, sizeof(ret->question));
    return 0;
}

static int read_answer(const answer_msg *msg, struct site_wire_frame *ret, struct err *err)
{
    bool good = msg->account.len == SELECTOR_ACCOUNT_BYTES && msg->n_sites <= SITE_MEMBERS_MAX;
    for (size_t i = 0; good && i < msg->n_sites; i++)
        good = msg->sites[i][0] && strlen(msg->sites[i]) <= SITE_WIRE_NAME_MAX;
    if (!good)
        return err_set(err, ERR_PROTOCOL,
                       "an answer of a site names no account, or has too many or too long names");
    ret->type = SITE_WIRE_ANSWER;
    ret->answer = (struct site_wire_settings){.sites = (const char *const *)msg->sites,
                                              .count = msg->n_sites,
                                              .own_keys = msg->own_keys,
                                              .sticky = msg->sticky,
                                              .silence_is_down = msg->silence_is_down,
                                              .range_blocks = msg->range_blocks,
                                              .approvals = msg->approvals,
                                              .era_blocks = msg->era_blocks};
    memcpy(ret->answer.account, msg->account.data, sizeof(ret->answer.account));
    return 0;
}

static int read_frame(const frame_msg *msg, struct site_wire_memory *m, struct site_wire_frame *ret,
                      struct err *err)
{
    switch ((int)msg->frame_case) {
    case CASE(HELLO):
        return read_hello(msg->hello, ret, err);
    case CASE(MESSAGE):
        ret->type = SITE_WIRE_MESSAGE;
        return site__wire_read_message(msg->message, &ret->message, &m->items, err);
    case CASE(REFUSAL):
        return read_refusal(msg->refusal, ret, err);
    case CASE(QUESTION):
        return read_question(msg->question, ret, err);
    case CASE(ANSWER):
        return read_answer(msg->answer, ret, err);
    default:
        return err_set(err, ERR_PROTOCOL, "a frame of a site is empty, or not of this version");
    }
}

int site_wire_read(const uint8_t *data, size_t len, struct site_wire_frame *ret,
                   struct site_wire_memory **ret_memory, struct err *err)
{
    if (len > SITE_WIRE_MAX)
        return err_set(err, ERR_PROTOCOL, "a frame of a site has %zu bytes, at most %d", len,
                       SITE_WIRE_MAX);
    struct site_wire_memory *m = xcalloc(1, sizeof(*m));
    arena_init(&m->arena, len);
    *ret = (struct site_wire_frame){0};
    const frame_msg *msg = (const frame_msg *)(void *)protobuf_c_message_unpack(
        &txrelay__site__v1__frame__descriptor, &m->arena.allocator, len, data);
    int rc = msg ? read_frame(msg, m, ret, err)
                 : err_set(err, ERR_PROTOCOL, "not a Frame of site.proto, or too many short items");
    if (rc) {
        site_wire_free(m);
        return rc;
    }
    *ret_memory = m;
    return 0;
}

struct site_wire_memory *site_wire_free(struct site_wire_memory *m)
{
    if (m) {
        free(m->items);
        arena_done(&m->arena);
        free(m);
    }
    return NULL;
}

/* ---- writing ---- */

static char *text(const char *s)
{
    return (char *)(uintptr_t)s;
}

void site_wire_hello_write(struct buf *out, const char *address)
{
    hello_msg hello = TXRELAY__SITE__V1__HELLO__INIT;
    frame_msg frame = TXRELAY__SITE__V1__FRAME__INIT;
    PRE(strlen(address) <= SITE_WIRE_ADDRESS_MAX);
    hello.version = SITE_WIRE_VERSION;
    hello.address = text(address);
    frame.frame_case = CASE(HELLO);
    frame.hello = &hello;
    wire_put(out, &frame);
}

void site_wire_refusal_write(struct buf *out, const uint8_t account[SELECTOR_ACCOUNT_BYTES],
                             enum site_wire_why why, const char *leader)
{
    refusal_msg refusal = TXRELAY__SITE__V1__REFUSAL__INIT;
    frame_msg frame = TXRELAY__SITE__V1__FRAME__INIT;
    PRE(strlen(leader) <= SITE_WIRE_ADDRESS_MAX);
    refusal.account.data = (uint8_t *)(uintptr_t)account;
    refusal.account.len = SELECTOR_ACCOUNT_BYTES;
    refusal.why = (Txrelay__Site__V1__Refusal__Why)why;
    refusal.leader = text(leader);
    frame.frame_case = CASE(REFUSAL);
    frame.refusal = &refusal;
    wire_put(out, &frame);
}

static ProtobufCBinaryData account_of(const uint8_t account[SELECTOR_ACCOUNT_BYTES])
{
    return (ProtobufCBinaryData){SELECTOR_ACCOUNT_BYTES, (uint8_t *)(uintptr_t)account};
}

void site_wire_question_write(struct buf *out, const uint8_t account[SELECTOR_ACCOUNT_BYTES])
{
    question_msg question = TXRELAY__SITE__V1__QUESTION__INIT;
    frame_msg frame = TXRELAY__SITE__V1__FRAME__INIT;
    question.account = account_of(account);
    frame.frame_case = CASE(QUESTION);
    frame.question = &question;
    wire_put(out, &frame);
}

void site_wire_answer_write(struct buf *out, const struct site_wire_settings *s)
{
    answer_msg answer = TXRELAY__SITE__V1__ANSWER__INIT;
    frame_msg frame = TXRELAY__SITE__V1__FRAME__INIT;
    PRE(s->count <= SITE_MEMBERS_MAX);
    answer.account = account_of(s->account);
    answer.sites = (char **)(uintptr_t)s->sites;
    answer.n_sites = s->count;
    answer.own_keys = s->own_keys;
    answer.sticky = s->sticky;
    answer.silence_is_down = s->silence_is_down;
    answer.range_blocks = s->range_blocks;
    answer.approvals = s->approvals;
    answer.era_blocks = s->era_blocks;
    frame.frame_case = CASE(ANSWER);
    frame.answer = &answer;
    wire_put(out, &frame);
}
