/* What a relay signs for an account that has sites, which bytes of others it takes, and what it
 * sends: eras that others can verify, and nothing once the account was reaped. The node, the room,
 * the tables and the signatures are played here (--wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "chain/keys/extrinsic_sign.h"
#include "sites/sites.h"

enum { ERA = 64, ANCHORS = ERA + ANCHORS_MORE, READ = 1000 };

static const uint8_t call[] = {0, 1, 2};
static struct {
    bool connected, allowed, decodes, good;
    struct node_info info;
    struct extrinsic_view view;
    struct site_terms asked; /* what the tables were asked for */
    struct extrinsic_params params, verified;
    uint64_t now;
    unsigned signatures, submitted, told, allowed_count;
    struct site_room_signed last; /* that the room received */
    size_t told_count;
} played;

static struct service service;
static struct service_sites_room room;
static char alias[] = "alice";
static struct account account;
static struct site_host host;
static struct site_anchor anchors[ANCHORS];
static char logged[2000]; /* the lines of site.not_signed */

/* ---- what is played ---- */

const struct node_info *__wrap_node_info(const struct node *n);
const struct node_info *__wrap_node_info(const struct node *n)
{
    (void)n;
    return played.connected ? &played.info : NULL;
}

void *__wrap_site_account_ctx(const struct site_account *a);
void *__wrap_site_account_ctx(const struct site_account *a)
{
    (void)a;
    return &host;
}

void __wrap_site_account_signed(struct site_account *a, const struct site_room_signed *all,
                                size_t count);
void __wrap_site_account_signed(struct site_account *a, const struct site_room_signed *all,
                                size_t count)
{
    (void)a;
    played.told++;
    played.told_count += count;
    if (count)
        played.last = all[count - 1];
}

bool __wrap_site_tables_allows(const struct site_tables *t, uint64_t id, uint32_t spec_version,
                               const struct site_terms *has);
bool __wrap_site_tables_allows(const struct site_tables *t, uint64_t id, uint32_t spec_version,
                               const struct site_terms *has)
{
    (void)t, (void)id;
    assert_int_equal(spec_version, played.info.spec_version);
    played.allowed_count++;
    played.asked = *has;
    return played.allowed;
}

int __wrap_extrinsic_sign(const struct metadata *md, const struct extrinsic_params *params,
                          const struct keypair *key, const uint8_t *bytes, size_t len,
                          struct buf *ret_bytes, uint8_t ret_hash[32], struct err *err);
int __wrap_extrinsic_sign(const struct metadata *md, const struct extrinsic_params *params,
                          const struct keypair *key, const uint8_t *bytes, size_t len,
                          struct buf *ret_bytes, uint8_t ret_hash[32], struct err *err)
{
    (void)md, (void)key, (void)err;
    played.signatures++;
    played.params = *params;
    buf_put(ret_bytes, bytes, len);
    memset(ret_hash, 1, 32);
    return 0;
}

int __wrap_extrinsic_decode(const struct metadata *md, const uint8_t *bytes, size_t len,
                            struct extrinsic_view *ret_view, struct err *err);
int __wrap_extrinsic_decode(const struct metadata *md, const uint8_t *bytes, size_t len,
                            struct extrinsic_view *ret_view, struct err *err)
{
    (void)md, (void)bytes, (void)len;
    *ret_view = played.view;
    return played.decodes ? 0 : err_set(err, ERR_DECODE, "played");
}

int __wrap_extrinsic_verify(const struct metadata *md, const struct extrinsic_view *view,
                            const struct extrinsic_params *params, bool *ret_good, struct err *err);
int __wrap_extrinsic_verify(const struct metadata *md, const struct extrinsic_view *view,
                            const struct extrinsic_params *params, bool *ret_good, struct err *err)
{
    (void)md, (void)view, (void)err;
    played.verified = *params;
    *ret_good = played.good;
    return 0;
}

void __wrap_account_send(struct account_send *t, const uint8_t *bytes, size_t len,
                         const struct node_last *last, void (*on_reply)(struct node_submit *s),
                         void (*on_status)(struct node_submit *s, enum tx_status status,
                                           const uint8_t *block_hash),
                         void (*on_lost)(struct node_submit *s));
void __wrap_account_send(struct account_send *t, const uint8_t *bytes, size_t len,
                         const struct node_last *last, void (*on_reply)(struct node_submit *s),
                         void (*on_status)(struct node_submit *s, enum tx_status status,
                                           const uint8_t *block_hash),
                         void (*on_lost)(struct node_submit *s))
{
    (void)t, (void)bytes, (void)len, (void)last, (void)on_reply, (void)on_status, (void)on_lost;
    played.submitted++;
}

void __wrap_node_submit_forget(struct node_submit *s);
void __wrap_node_submit_forget(struct node_submit *s)
{
    (void)s;
}

void __wrap_log_line(enum log_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void __wrap_log_line(enum log_level level, const char *event, const char *fmt, ...)
{
    va_list ap;
    size_t used = strlen(logged);
    assert_int_equal(level, LOG_LEVEL_WARN);
    assert_string_equal(event, "site.not_signed");
    va_start(ap, fmt);
    vsnprintf(logged + used, sizeof(logged) - used, fmt, ap);
    va_end(ap);
    used = strlen(logged);
    snprintf(logged + used, sizeof(logged) - used, "\n");
}

uint64_t __wrap_loop_now_ms(const struct loop *l);
uint64_t __wrap_loop_now_ms(const struct loop *l)
{
    (void)l;
    return played.now;
}

/* ---- the account ---- */

static void know(uint64_t number)
{
    struct site_anchor *a = &anchors[number % ANCHORS];
    *a = (struct site_anchor){.known = true, .number = number};
    memcpy(a->hash, &number, sizeof(number));
}

static int begin(void **state)
{
    (void)state;
    memset(&played, 0, sizeof(played));
    memset(anchors, 0, sizeof(anchors));
    logged[0] = 0;
    played.connected = played.allowed = played.decodes = played.good = true;
    played.info = (struct node_info){.spec_version = 7, .finalized_number = READ};
    account = (struct account){.service = &service, .alias = alias, .id = {7}, .id_len = 32};
    service.loop = loop_new();
    room = (struct service_sites_room){.room = {.service = &service}};
    host = (struct site_host){.room = &room,
                              .account = &account,
                              .era_blocks = ERA,
                              .anchors = anchors,
                              .anchor_count = ANCHORS,
                              .phase = HOST_LED,
                              .reading = true,
                              .read = READ};
    for (uint64_t n = READ - ERA - ANCHOR_BEHIND; n <= READ; n++)
        know(n);
    return 0;
}

static int end(void **state)
{
    (void)state;
    sites_sign_end(&host);
    sites_submit_end(&host);
    loop_free(service.loop);
    return 0;
}

/* The bytes that the room receives; data: NULL: nothing was signed. */
static const struct site_signed *sign(uint64_t nonce, uint64_t death)
{
    unsigned before = played.signatures;
    const struct site_room_sign s = {
        .id = 5, .call = call, .call_len = sizeof(call), .nonce = nonce, .death = death, .tip = 3};
    sites_sign(NULL, NULL, &s);
    played.last = (struct site_room_signed){.id = 99};
    loop_turn(service.loop);
    assert_int_equal(played.last.id, 5);
    assert_int_equal(played.last.attempt.bytes.nonce, nonce);
    assert_int_equal(played.last.attempt.data != NULL, played.signatures - before);
    return &played.last.attempt;
}

static uint64_t signed_era(uint64_t death, uint64_t *ret_first)
{
    const struct site_signed *s = sign(5, death);
    if (!s->data)
        return 0;
    *ret_first = era_birth(played.params.era, READ);
    /* The hash is that of the era's first block, and the bytes say when they die. */
    assert_memory_equal(played.params.era_block_hash, ret_first, sizeof(*ret_first));
    assert_int_equal(s->bytes.death, *ret_first + played.params.era.period - 1);
    return played.params.era.period;
}

/* ---- what is signed ---- */

static void an_era_begins_where_all_sites_have_the_block(void **state)
{
    uint64_t first;
    (void)state;
    assert_int_equal(signed_era(READ + ERA, &first), ERA);
    assert_int_equal(first, READ - ANCHOR_BEHIND);
}

/* Its last block is the last one that may have the bytes, and it is not over already, wherever that
 * block is. */
static void an_era_ends_in_time_and_not_before_now(void **state)
{
    (void)state;
    for (uint64_t death = READ - 6; death <= READ + ERA; death++) {
        uint64_t first = 0, period = signed_era(death, &first);
        if (!period)
            continue;
        assert_in_range(first + period - 1, READ + 1, death);
        assert_true(first <= READ);
    }
    for (uint64_t death = READ - 6; death <= READ; death++)
        assert_null(sign(5, death)->data);
    assert_non_null(sign(5, READ + 4)->data);
}

static void no_era_begins_at_a_block_that_was_not_read(void **state)
{
    uint64_t first;
    (void)state;
    memset(anchors, 0, sizeof(anchors));
    assert_null(sign(5, READ + ERA)->data);
    know(READ + 1); /* it was seen, and those before it were not read yet */
    assert_null(sign(5, READ + ERA)->data);
    know(READ - 3);
    assert_int_equal(signed_era(READ + ERA, &first), ERA);
    assert_int_equal(first, READ - 3);
    host.read = 2; /* a chain that has just begun */
    assert_null(sign(5, 2)->data);
}

static void nothing_is_signed_without_a_node(void **state)
{
    (void)state;
    played.connected = false;
    assert_null(sign(5, READ + ERA)->data);
}

static void nothing_is_signed_or_sent_for_a_reaped_account(void **state)
{
    (void)state;
    const struct site_signed s = {
        .bytes = {.nonce = 5, .death = READ + 20}, .data = call, .len = 3};
    sites_submit(NULL, NULL, &s);
    assert_int_equal(played.submitted, 1);
    host.reaped = READ - 1;
    snprintf(host.reaped_text, sizeof(host.reaped_text), "the account was reaped");
    sites_submit(NULL, NULL, &s);
    assert_int_equal(played.submitted, 1);
    assert_null(sign(5, READ + ERA)->data);
}

static void the_tables_say_whether_a_row_of_this_site_may_be_signed(void **state)
{
    (void)state;
    played.allowed = false;
    assert_null(sign(5, READ + ERA)->data);
    assert_true(played.asked.tip == 3);
    host.self = 1; /* it is another site's: its sender looks at the bytes */
    assert_non_null(sign(5, READ + ERA)->data);
}

static void the_room_hears_of_signatures_while_this_relay_leads(void **state)
{
    (void)state;
    const struct site_room_sign s = {
        .id = 5, .call = call, .call_len = sizeof(call), .death = READ + ERA};
    sites_sign(NULL, NULL, &s);
    sites_sign(NULL, NULL, &s);
    loop_turn(service.loop);
    assert_int_equal(played.told, 1); /* together */
    assert_int_equal(played.told_count, 2);
    sites_sign(NULL, NULL, &s);
    host.phase = HOST_AWAY;
    loop_turn(service.loop);
    assert_int_equal(played.told, 1);
    host.phase = HOST_LED;
    sites_sign(NULL, NULL, &s);
    sites_sign_end(&host);
    loop_turn(service.loop);
    assert_int_equal(played.told, 1);
}

static void the_log_has_one_line_for_all_that_were_not_signed(void **state)
{
    (void)state;
    static const char first[] =
        "account=alice nonce=9 count=5 code=NET text=\"no node is connected\"\n";
    struct site_room_sign s = {
        .id = 5, .call = call, .call_len = sizeof(call), .death = READ + ERA};
    played.connected = false;
    for (s.nonce = 5; s.nonce < 10; s.nonce++)
        sites_sign(NULL, NULL, &s);
    loop_turn(service.loop);
    assert_string_equal(logged, first);
    for (played.now = 1000; played.now < 10000; played.now += 1000)
        sign(s.nonce, READ + ERA);
    assert_string_equal(logged, first);
    sign(11, READ + ERA);
    assert_string_equal(logged + strlen(first),
                        "account=alice nonce=11 count=10 code=NET text=\"no node is connected\"\n");
    logged[0] = 0;
    sites_sign_end(&host); /* another relay leads, and then this one again */
    sign(12, READ + ERA);
    assert_non_null(strstr(logged, "nonce=12 count=1 "));
}

/* ---- bytes of others ---- */

static bool takes(uint64_t own)
{
    struct site_bytes b = {0};
    bool good = sites_read(NULL, NULL, own, call, sizeof(call), call, sizeof(call), &b);
    if (good) {
        assert_int_equal(b.nonce, 5);
        assert_int_equal(b.death, era_death(played.view.era, READ) - 1);
    }
    return good;
}

static void good_bytes(void)
{
    begin(NULL);
    played.view = (struct extrinsic_view){.is_signed = true,
                                          .signer = {7},
                                          .signer_len = 32,
                                          .era = era_mortal(ERA, READ - ANCHOR_BEHIND),
                                          .has_nonce = true,
                                          .nonce = 5,
                                          .tip = 3,
                                          .call = call,
                                          .call_len = sizeof(call)};
}

#define REFUSES(change)                                                                            \
    do {                                                                                           \
        loop_free(service.loop);                                                                   \
        good_bytes();                                                                              \
        change;                                                                                    \
        assert_false(takes(5));                                                                    \
    } while (0)

static void bytes_of_others_are_taken_only_if_they_can_be_this_transaction(void **state)
{
    (void)state;
    static const uint8_t other[] = {0, 1, 3};
    loop_free(service.loop);
    good_bytes();
    assert_true(takes(5));
    assert_int_equal(played.asked.last, era_death(played.view.era, READ) - 1);
    assert_true(played.asked.tip == 3);
    REFUSES(played.connected = false);
    REFUSES(host.reaped = 1);
    REFUSES(played.decodes = false);
    REFUSES(played.view.is_signed = false);
    REFUSES(played.view.signer[31] = 1);
    REFUSES(played.view.signer_len = 20);
    REFUSES(played.view.has_nonce = false);
    REFUSES(played.view.call = other);
    REFUSES(played.view.call_len = 2);
    REFUSES(played.view.era = (struct era){0}; know(0));
    REFUSES(memset(anchors, 0, sizeof(anchors)));
    REFUSES(played.good = false);
    REFUSES(played.allowed = false);
}

/* The terms of a transaction of another site are that site's to judge. */
static void bytes_for_another_site_are_not_asked_about(void **state)
{
    (void)state;
    loop_free(service.loop);
    good_bytes();
    played.allowed = false;
    assert_true(takes(0));
    assert_int_equal(played.allowed_count, 0);
}

/* An era that has begun above what this relay has read is dated from the node's final block. */
static void an_era_is_dated_from_the_highest_final_block(void **state)
{
    struct site_bytes b;
    (void)state;
    loop_free(service.loop);
    good_bytes();
    played.info.finalized_number = READ + 3;
    know(READ + 1);
    played.view.era = era_mortal(16, READ + 1);
    assert_true(sites_read(NULL, NULL, 5, call, sizeof(call), call, sizeof(call), &b));
    assert_int_equal(b.death, READ + 16);
}

#define test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(an_era_begins_where_all_sites_have_the_block),
        test(an_era_ends_in_time_and_not_before_now),
        test(no_era_begins_at_a_block_that_was_not_read),
        test(nothing_is_signed_without_a_node),
        test(nothing_is_signed_or_sent_for_a_reaped_account),
        test(the_tables_say_whether_a_row_of_this_site_may_be_signed),
        test(the_room_hears_of_signatures_while_this_relay_leads),
        test(the_log_has_one_line_for_all_that_were_not_signed),
        test(bytes_of_others_are_taken_only_if_they_can_be_this_transaction),
        test(bytes_for_another_site_are_not_asked_about),
        test(an_era_is_dated_from_the_highest_final_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
