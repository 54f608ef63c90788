/* The messages of sites: each kind arrives as it was sent, with the fields of its kind and no
 * others, and whatever does not follow the rules is refused with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "election/election.h"
#include "site/wire/wire.h"

/* ---- what is sent arrives ---- */

enum { CALL = 1, EXTRINSIC = 2, HASH = 4, PLACE = 8, REASON = 16, ACKED = 32, STAGE = 64 };

/* What items of each kind have: by the comments of site.proto, not by the code. */
static const unsigned fields[SITE_MSG_COUNT] = {
    [SITE_MSG_DELEGATE] = CALL | EXTRINSIC,
    [SITE_MSG_REFUSED] = REASON,
    [SITE_MSG_PROPOSE] = EXTRINSIC,
    [SITE_MSG_GRANT] = HASH,
    [SITE_MSG_DENY] = REASON | HASH | EXTRINSIC,
    [SITE_MSG_DISPATCHED] = HASH,
    [SITE_MSG_GONE] = HASH,
    [SITE_MSG_REVERTED] = HASH,
    [SITE_MSG_HANDOVER] = HASH | PLACE,
    [SITE_MSG_CLOSED] = HASH | PLACE,
    [SITE_MSG_APPROVE] = HASH,
    [SITE_MSG_APPROVED] = HASH,
    [SITE_MSG_DISAPPROVED] = HASH | REASON,
    [SITE_MSG_ACK] = ACKED | HASH,
    [SITE_MSG_HEARTBEAT] = STAGE | HASH | PLACE,
};

static const uint8_t call[] = {0, 0, 20, 'h', 'e', 'l', 'l', 'o'};
static const uint8_t extrinsic[] = {4, 132, 1, 2, 3};

/* Everything that an item can have, whatever its kind. */
static struct site_wire_item full_item(uint32_t i)
{
    struct site_wire_item item = {
        .item = {.sender = i % SITE_MEMBERS_MAX,
                 .id = UINT64_C(1) << (i % 64),
                 .has_bytes = true,
                 .valid = true,
                 .reason = SITE_REASON_LIVE,
                 .acked = SITE_MSG_REVERTED,
                 .stage = SITE_WORK_GRANTED,
                 .bytes = {.key = 3, .nonce = UINT64_MAX - i, .death = 77 + i}},
        .call = call,
        .call_len = sizeof(call),
        .extrinsic = extrinsic,
        .extrinsic_len = sizeof(extrinsic),
        .terms = {.last = 500 + i, .tip = (u128)7 << 64 | i},
    };
    memset(item.item.bytes.hash.bytes, 'a' + (int)(i % 20), SITE_HASH_BYTES);
    return item;
}

static struct site_wire_message message(enum site_message_type type,
                                        const struct site_wire_item *items, size_t count)
{
    struct site_wire_message m = {
        .committee = 0xfedcba9876543210,
        .m = {.type = type,
              .life = UINT64_MAX,
              .number = 900,
              .answers = 1,
              .height = 500,
              .final = 498,
              .state = SITE_FLUSH,
              .down = 0x80000001,
              .blind = true,
              .count = count},
        .items = items,
    };
    for (size_t i = 0; i < sizeof(m.account); i++)
        m.account[i] = (uint8_t)(i + 1);
    return m;
}

static void same_head(const struct site_wire_message *a, const struct site_wire_message *b)
{
    assert_memory_equal(a->account, b->account, sizeof(a->account));
    assert_int_equal(a->committee, b->committee);
    assert_int_equal(a->m.type, b->m.type);
    assert_int_equal(a->m.life, b->m.life);
    assert_int_equal(a->m.number, b->m.number);
    assert_int_equal(a->m.answers, b->m.answers);
    assert_int_equal(a->m.height, b->m.height);
    assert_int_equal(a->m.final, b->m.final);
    assert_int_equal(a->m.state, b->m.state);
    assert_int_equal(a->m.down, b->m.down);
    assert_int_equal(a->m.blind, b->m.blind);
    assert_int_equal(a->m.count, b->m.count);
}

static void same_item(const struct site_wire_item *got, const struct site_wire_item *sent,
                      unsigned has)
{
    assert_int_equal(got->item.sender, sent->item.sender);
    assert_int_equal(got->item.id, sent->item.id);
    assert_false(got->item.valid); /* the receiver's own word */
    assert_int_equal(got->item.has_bytes, (has & (HASH | EXTRINSIC)) != 0);
    assert_int_equal(got->call_len, has & CALL ? sizeof(call) : 0);
    assert_int_equal(got->terms.last, has & CALL ? sent->terms.last : 0);
    assert_true(got->terms.tip == (has & CALL ? sent->terms.tip : 0));
    assert_int_equal(got->extrinsic_len, has & EXTRINSIC ? sizeof(extrinsic) : 0);
    if (has & CALL)
        assert_memory_equal(got->call, call, sizeof(call));
    if (has & EXTRINSIC)
        assert_memory_equal(got->extrinsic, extrinsic, sizeof(extrinsic));
    if (has & HASH)
        assert_memory_equal(got->item.bytes.hash.bytes, sent->item.bytes.hash.bytes,
                            SITE_HASH_BYTES);
    assert_int_equal(got->item.bytes.nonce, has & PLACE ? sent->item.bytes.nonce : 0);
    assert_int_equal(got->item.bytes.key, has & PLACE ? sent->item.bytes.key : 0);
    assert_int_equal(got->item.bytes.death, has & PLACE ? sent->item.bytes.death : 0);
    assert_int_equal(got->item.reason, has & REASON ? sent->item.reason : SITE_REASON_NONE);
    if (has & ACKED)
        assert_int_equal(got->item.acked, sent->item.acked);
    if (has & STAGE)
        assert_int_equal(got->item.stage, sent->item.stage);
}

static void read_ok(const struct buf *b, struct site_wire_frame *ret,
                    struct site_wire_memory **ret_memory)
{
    struct err err = {0};
    if (site_wire_read(b->data, b->len, ret, ret_memory, &err))
        fail_msg("%s", err.text);
}

static void test_every_kind_arrives_with_its_fields(void **state)
{
    (void)state;
    for (int type = 0; type < SITE_MSG_COUNT; type++) {
        struct site_wire_item items[3] = {full_item(0), full_item(31), full_item(62)};
        struct site_wire_message m =
            message((enum site_message_type)type, items, type == SITE_MSG_PROBE ? 0 : 3);
        struct buf out = {0};
        struct site_wire_frame frame;
        struct site_wire_memory *memory = NULL;
        assert_int_equal(site_wire_message_write(&out, &m), m.m.count);
        read_ok(&out, &frame, &memory);
        assert_int_equal(frame.type, SITE_WIRE_MESSAGE);
        same_head(&frame.message, &m);
        for (size_t i = 0; i < m.m.count; i++)
            same_item(&frame.message.items[i], &items[i], fields[type]);
        site_wire_free(memory);
        buf_done(&out);
    }
}

static void test_every_value_of_an_item_arrives(void **state)
{
    (void)state;
    for (int i = 0; i < SITE_MSG_COUNT; i++) {
        struct site_wire_item item = full_item(1);
        struct site_wire_frame frame;
        struct site_wire_memory *memory = NULL;
        struct buf out = {0};
        item.item.acked = (enum site_message_type)i;
        struct site_wire_message m = message(SITE_MSG_ACK, &item, 1);
        site_wire_message_write(&out, &m);
        read_ok(&out, &frame, &memory);
        assert_int_equal(frame.message.items[0].item.acked, i);
        memory = site_wire_free(memory);
        buf_clear(&out);
        item.item.stage = (enum site_work_state)(i % (SITE_WORK_DISPATCHED + 1));
        item.item.has_bytes = false;
        m = message(SITE_MSG_HEARTBEAT, &item, 1);
        m.m.state = (enum site_state)(i % (SITE_CLOSING + 1));
        site_wire_message_write(&out, &m);
        read_ok(&out, &frame, &memory);
        assert_int_equal(frame.message.items[0].item.stage, item.item.stage);
        assert_int_equal(frame.message.m.state, m.m.state);
        assert_false(frame.message.items[0].item.has_bytes);
        site_wire_free(memory);
        buf_clear(&out);
        if (i >= 1 && i < SITE_REASON_COUNT) {
            item.item.reason = (enum site_reason)i;
            m = message(SITE_MSG_REFUSED, &item, 1);
            site_wire_message_write(&out, &m);
            read_ok(&out, &frame, &memory);
            assert_int_equal(frame.message.items[0].item.reason, i);
            site_wire_free(memory);
        }
        buf_done(&out);
    }
}

static void test_hello_and_refusal_arrive(void **state)
{
    struct buf out = {0};
    struct site_wire_frame frame;
    struct site_wire_memory *memory = NULL;
    uint8_t account[SELECTOR_ACCOUNT_BYTES] = {1, 2, 3};
    (void)state;
    site_wire_hello_write(&out, "10.0.0.1:7443");
    read_ok(&out, &frame, &memory);
    assert_int_equal(frame.type, SITE_WIRE_HELLO);
    assert_string_equal(frame.address, "10.0.0.1:7443");
    memory = site_wire_free(memory);
    for (int why = SITE_WIRE_NOT_LEADER; why <= SITE_WIRE_OTHER_COMMITTEE; why++) {
        buf_clear(&out);
        site_wire_refusal_write(&out, account, (enum site_wire_why)why, "b:1");
        read_ok(&out, &frame, &memory);
        assert_int_equal(frame.type, SITE_WIRE_REFUSAL);
        assert_int_equal(frame.refusal.why, why);
        assert_string_equal(frame.refusal.leader, "b:1");
        assert_memory_equal(frame.refusal.account, account, sizeof(account));
        assert_string_not_equal(site_wire_why_name((enum site_wire_why)why), "?");
        memory = site_wire_free(memory);
    }
    buf_done(&out);
}

static void test_question_and_answer_arrive(void **state)
{
    static const char *const sites[] = {"dublin", "oslo"};
    const struct site_wire_settings sent = {.account = {7, 8},
                                            .sites = sites,
                                            .count = 2,
                                            .own_keys = true,
                                            .sticky = true,
                                            .silence_is_down = true,
                                            .range_blocks = 50,
                                            .approvals = 1,
                                            .era_blocks = 32};
    struct buf out = {0};
    struct site_wire_frame frame;
    struct site_wire_memory *memory = NULL;
    (void)state;
    site_wire_question_write(&out, sent.account);
    read_ok(&out, &frame, &memory);
    assert_int_equal(frame.type, SITE_WIRE_QUESTION);
    assert_memory_equal(frame.question, sent.account, sizeof(sent.account));
    memory = site_wire_free(memory);
    buf_clear(&out);
    site_wire_answer_write(&out, &sent);
    read_ok(&out, &frame, &memory);
    const struct site_wire_settings *got = &frame.answer;
    assert_int_equal(frame.type, SITE_WIRE_ANSWER);
    assert_memory_equal(got->account, sent.account, sizeof(sent.account));
    assert_int_equal(got->count, 2);
    assert_string_equal(got->sites[0], "dublin");
    assert_string_equal(got->sites[1], "oslo");
    assert_true(got->own_keys && got->sticky && got->silence_is_down);
    assert_int_equal(got->range_blocks, 50);
    assert_int_equal(got->approvals, 1);
    assert_int_equal(got->era_blocks, 32);
    site_wire_free(memory);
    buf_done(&out);
}

/* ---- size ---- */

static void test_a_long_message_is_split(void **state)
{
    enum { COUNT = 40, LEN = 250000 };
    struct site_wire_item items[COUNT];
    uint8_t *long_call = xcalloc(1, LEN);
    size_t at = 0, frames = 0;
    (void)state;
    for (uint32_t i = 0; i < COUNT; i++) {
        items[i] = full_item(i);
        items[i].call = long_call;
        items[i].call_len = LEN;
    }
    while (at < COUNT) {
        struct buf out = {0};
        struct site_wire_frame frame;
        struct site_wire_memory *memory = NULL;
        struct site_wire_message m = message(SITE_MSG_DELEGATE, items + at, COUNT - at);
        size_t took = site_wire_message_write(&out, &m);
        assert_in_range(took, 1, COUNT - at);
        assert_in_range(out.len, 1, SITE_WIRE_MAX);
        read_ok(&out, &frame, &memory);
        assert_int_equal(frame.message.m.count, took);
        assert_int_equal(frame.message.m.number, m.m.number);
        assert_int_equal(frame.message.items[took - 1].item.id, items[at + took - 1].item.id);
        at += took;
        frames++;
        site_wire_free(memory);
        buf_done(&out);
    }
    assert_int_equal(frames, 3);
    free(long_call);
}

static void test_two_longest_byte_strings_fit_in_one_frame(void **state)
{
    struct site_wire_item item = full_item(0);
    uint8_t *longest = xcalloc(1, SITE_WIRE_BYTES_MAX);
    struct buf out = {0};
    struct site_wire_frame frame;
    struct site_wire_memory *memory = NULL;
    (void)state;
    item.call = item.extrinsic = longest;
    item.call_len = item.extrinsic_len = SITE_WIRE_BYTES_MAX;
    struct site_wire_message m = message(SITE_MSG_DELEGATE, &item, 1);
    assert_int_equal(site_wire_message_write(&out, &m), 1);
    read_ok(&out, &frame, &memory);
    assert_int_equal(frame.message.items[0].extrinsic_len, SITE_WIRE_BYTES_MAX);
    site_wire_free(memory);
    buf_done(&out);
    free(longest);
}

static void test_a_heartbeat_is_whole(void **state)
{
    struct site_wire_item *items = xcalloc(SITE_WIRE_ITEMS_MAX, sizeof(*items));
    struct buf out = {0};
    struct site_wire_frame frame;
    struct site_wire_memory *memory = NULL;
    (void)state;
    for (uint32_t i = 0; i < SITE_WIRE_ITEMS_MAX; i++) {
        items[i] = full_item(i);
        items[i].item.id = UINT64_MAX - i;
        items[i].item.bytes.death = UINT64_MAX;
    }
    struct site_wire_message m = message(SITE_MSG_HEARTBEAT, items, SITE_WIRE_ITEMS_MAX);
    assert_int_equal(site_wire_message_write(&out, &m), SITE_WIRE_ITEMS_MAX);
    assert_in_range(out.len, 1, SITE_WIRE_MAX);
    read_ok(&out, &frame, &memory);
    assert_int_equal(frame.message.m.count, SITE_WIRE_ITEMS_MAX);
    site_wire_free(memory);
    buf_done(&out);
    free(items);
}

/* ---- hostile bytes ---- */

static void refused(const struct buf *b, const char *why)
{
    struct site_wire_frame frame;
    struct site_wire_memory *memory = NULL;
    struct err err = {0};
    assert_int_equal(site_wire_read(b->data, b->len, &frame, &memory, &err), ERR_PROTOCOL);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static void put_varint(struct buf *b, uint64_t v)
{
    for (; v > 127; v >>= 7)
        buf_put_u8(b, (uint8_t)(v | 128));
    buf_put_u8(b, (uint8_t)v);
}

static void put_uint(struct buf *b, unsigned field, uint64_t v)
{
    put_varint(b, field << 3);
    put_varint(b, v);
}

static void put_bytes(struct buf *b, unsigned field, const void *data, size_t len)
{
    put_varint(b, field << 3 | 2);
    put_varint(b, len);
    buf_put(b, data, len);
}

/* A Message as an attacker writes it: any numbers, `items` as they are. */
struct hostile {
    uint64_t version, kind, number, state;
    size_t account_len;
    struct buf items;
};

static void put_hostile(struct buf *out, const struct hostile *h)
{
    struct buf m = {0};
    uint8_t account[128] = {0};
    static const uint8_t life[9] = {5 << 3 | 1, 1};
    put_uint(&m, 1, h->version);
    put_bytes(&m, 2, account, h->account_len);
    put_uint(&m, 4, h->kind);
    buf_put(&m, life, sizeof(life));
    put_uint(&m, 6, h->number);
    put_uint(&m, 10, h->state);
    buf_put(&m, h->items.data, h->items.len);
    buf_clear(out);
    put_bytes(out, 2, m.data, m.len);
    buf_done(&m);
}

static const struct hostile grant = {.version = 1, .kind = 5, .number = 1, .account_len = 64};

static void put_item(struct hostile *h, const struct buf *item)
{
    put_bytes(&h->items, 13, item->data, item->len);
}

static void test_a_head_that_breaks_a_rule_is_refused(void **state)
{
    struct buf out = {0}, item = {0};
    struct hostile h = grant;
    uint8_t hash[32] = {0};
    struct site_wire_frame frame;
    struct site_wire_memory *memory = NULL;
    (void)state;
    put_uint(&item, 2, 7);
    put_bytes(&item, 5, hash, sizeof(hash));
    put_item(&h, &item);
    put_hostile(&out, &h);
    read_ok(&out, &frame, &memory); /* the mother of those that follow */
    assert_int_equal(frame.message.items[0].item.id, 7);
    site_wire_free(memory);
    struct {
        struct hostile h;
        const char *why;
    } bad[] = {
        {.why = "version"}, {.why = "account"}, {.why = "kind"},
        {.why = "kind"},    {.why = "kind or"}, {.why = "number"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        bad[i].h = h;
    bad[0].h.version = 2;
    bad[1].h.account_len = 63;
    bad[2].h.kind = 0;
    bad[3].h.kind = SITE_MSG_COUNT + 1;
    bad[4].h.state = 7;
    bad[5].h.number = 0;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        put_hostile(&out, &bad[i].h);
        refused(&out, bad[i].why);
    }
    buf_done(&h.items);
    buf_done(&item);
    buf_done(&out);
}

static void test_items_that_break_a_rule_are_refused(void **state)
{
    struct buf out = {0}, item = {0};
    uint8_t bytes[32] = {0};
    (void)state;
    static const struct {
        unsigned kind, field;
        size_t len; /* of bytes; 0: the field is this number */
        uint64_t value;
        const char *why;
    } bad[] = {
        {5, 2, 0, 1, "lacks"},               /* a grant without a hash */
        {1, 4, 5, 0, "lacks"},               /* a delegation without its call */
        {4, 5, 32, 0, "lacks"},              /* a proposal without bytes */
        {3, 2, 0, 1, "lacks"},               /* a refusal without a reason */
        {16, 2, 0, 1, "lacks"},              /* an acknowledgement of nothing */
        {17, 2, 0, 1, "lacks"},              /* a heartbeat's item without a stage */
        {2, 3, 5, 0, "another kind"},        /* an acceptance with a call */
        {9, 5, 32, 0, "another kind"},       /* a returned one with a hash */
        {2, 10, 0, 9, "another kind"},       /* an acceptance with a deadline */
        {2, 12, 0, 9, "another kind"},       /* or a tip */
        {5, 5, 31, 0, "length"},             /* a short hash */
        {11, 5, 32, 0, "without its place"}, /* a handover that hides its nonce */
        {2, 1, 0, 32, "member"},             /* the 33rd member */
        {3, 7, 0, 10, "not of this version"},
        {16, 8, 0, 19, "not of this version"},
        {17, 9, 0, 8, "not of this version"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct hostile h = grant;
        h.kind = bad[i].kind;
        buf_clear(&item);
        if (bad[i].len)
            put_bytes(&item, bad[i].field, bytes, bad[i].len);
        else
            put_uint(&item, bad[i].field, bad[i].value);
        put_item(&h, &item);
        put_hostile(&out, &h);
        refused(&out, bad[i].why);
        buf_done(&h.items);
    }
    buf_done(&item);
    buf_done(&out);
}

static void test_numbers_of_items_are_checked(void **state)
{
    struct buf out = {0}, item = {0};
    (void)state;
    for (unsigned kind = 1; kind <= SITE_MSG_COUNT; kind++) {
        struct hostile h = grant;
        struct site_wire_frame frame;
        struct site_wire_memory *memory = NULL;
        h.kind = kind;
        put_hostile(&out, &h);
        if (kind >= SITE_MSG_HEARTBEAT + 1) {
            read_ok(&out, &frame, &memory);
            site_wire_free(memory);
        } else {
            refused(&out, "number of items");
        }
    }
    struct hostile h = grant;
    h.kind = SITE_MSG_PROBE + 1;
    put_item(&h, &item);
    put_hostile(&out, &h);
    refused(&out, "number of items");
    buf_done(&h.items);
    buf_done(&out);
}

/* protobuf-c makes a hundred bytes of memory out of an item of two. */
static void test_a_flood_of_short_items_is_refused(void **state)
{
    struct buf out = {0}, nothing = {0};
    struct hostile h = grant;
    (void)state;
    h.kind = SITE_MSG_ACCEPTED + 1;
    for (int i = 0; i < SITE_WIRE_ITEMS_MAX * 100; i++)
        put_item(&h, &nothing);
    put_hostile(&out, &h);
    assert_in_range(out.len, 1, SITE_WIRE_MAX);
    refused(&out, "too many short items");
    buf_done(&h.items);
    h = grant;
    h.kind = SITE_MSG_ACCEPTED + 1;
    for (int i = 0; i <= SITE_WIRE_ITEMS_MAX; i++) {
        struct buf item = {0};
        uint8_t unknown[300] = {0};
        put_bytes(&item, 100, unknown, sizeof(unknown)); /* a field of a later version */
        put_item(&h, &item);
        buf_done(&item);
    }
    put_hostile(&out, &h);
    refused(&out, "items");
    buf_done(&h.items);
    buf_done(&out);
}

static void test_a_frame_that_is_too_long_is_refused(void **state)
{
    struct buf out = {0};
    (void)state;
    memset(buf_grow(&out, SITE_WIRE_MAX + 1), 0, SITE_WIRE_MAX + 1);
    out.len = SITE_WIRE_MAX + 1;
    refused(&out, "at most");
    buf_done(&out);
}

static void test_other_frames_that_break_a_rule_are_refused(void **state)
{
    struct buf out = {0}, inner = {0};
    char address[SITE_WIRE_ADDRESS_MAX + 2];
    (void)state;
    refused(&out, "empty");
    put_uint(&inner, 1, 2);
    put_bytes(&out, 1, inner.data, inner.len);
    refused(&out, "version 2");
    buf_clear(&out);
    buf_clear(&inner);
    memset(address, 'a', sizeof(address));
    put_uint(&inner, 1, 1);
    put_bytes(&inner, 2, address, sizeof(address));
    put_bytes(&out, 1, inner.data, inner.len);
    refused(&out, "address");
    for (unsigned why = 0; why <= 4; why += 4) {
        buf_clear(&out);
        buf_clear(&inner);
        put_bytes(&inner, 1, address, 64);
        put_uint(&inner, 2, why);
        put_bytes(&out, 3, inner.data, inner.len);
        refused(&out, "refusal");
    }
    buf_done(&inner);
    buf_done(&out);
}

/* Every prefix, and every byte changed: parsed or refused, and nothing else. */
static void test_bytes_that_were_cut_or_changed(void **state)
{
    struct site_wire_item items[2] = {full_item(1), full_item(2)};
    struct site_wire_message m = message(SITE_MSG_HEARTBEAT, items, 2);
    struct buf out = {0};
    struct site_wire_frame frame;
    struct err err;
    (void)state;
    site_wire_message_write(&out, &m);
    for (size_t len = 0; len < out.len; len++) {
        struct site_wire_memory *memory = NULL;
        uint8_t *exact = xmalloc(len + 1); /* so that a read beyond it is seen */
        memcpy(exact, out.data, len);
        if (site_wire_read(exact, len, &frame, &memory, &err) == 0)
            fail_msg("%zu of %zu bytes are taken for a frame", len, out.len);
        free(exact);
    }
    for (size_t i = 0; i < out.len * 8; i++) {
        struct site_wire_memory *memory = NULL;
        out.data[i / 8] ^= (uint8_t)(1 << i % 8);
        if (site_wire_read(out.data, out.len, &frame, &memory, &err) == 0)
            site_wire_free(memory);
        else
            assert_int_equal(err.code, ERR_PROTOCOL);
        out.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    buf_done(&out);
}

/* ---- the committee ---- */

static void test_the_committee_is_what_sites_must_agree_on(void **state)
{
    const char *names[] = {"a", "b", "c"}, *others[] = {"a", "b", "d"};
    struct site_config base = {.hash = election_hash, .names = names, .members = 3};
    (void)state;
    struct site_config same = base, c[] = {base, base, base, base, base, base, base, base};
    same.self = 2;
    same.range_blocks = 1000; /* the default */
    same.beat_ms = 17;        /* each site's own affair */
    same.life = 9;
    assert_int_equal(site_wire_committee(&base), site_wire_committee(&same));
    c[0].names = others;
    c[1].members = 2;
    c[2].own_keys = true;
    c[3].sticky = true;
    c[4].range_blocks = 999;
    c[5].approvals = 1;
    c[6].era_blocks = 65;
    c[7].account[63] = 1;
    for (size_t i = 0; i < ARRAY_LEN(c); i++)
        assert_int_not_equal(site_wire_committee(&base), site_wire_committee(&c[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_arrives_with_its_fields),
        cmocka_unit_test(test_every_value_of_an_item_arrives),
        cmocka_unit_test(test_hello_and_refusal_arrive),
        cmocka_unit_test(test_question_and_answer_arrive),
        cmocka_unit_test(test_a_long_message_is_split),
        cmocka_unit_test(test_two_longest_byte_strings_fit_in_one_frame),
        cmocka_unit_test(test_a_heartbeat_is_whole),
        cmocka_unit_test(test_a_head_that_breaks_a_rule_is_refused),
        cmocka_unit_test(test_items_that_break_a_rule_are_refused),
        cmocka_unit_test(test_numbers_of_items_are_checked),
        cmocka_unit_test(test_a_flood_of_short_items_is_refused),
        cmocka_unit_test(test_a_frame_that_is_too_long_is_refused),
        cmocka_unit_test(test_other_frames_that_break_a_rule_are_refused),
        cmocka_unit_test(test_bytes_that_were_cut_or_changed),
        cmocka_unit_test(test_the_committee_is_what_sites_must_agree_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
