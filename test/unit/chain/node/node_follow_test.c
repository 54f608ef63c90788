/* Every finalized height once, in order, with what became of the wanted extrinsics, whatever the
 * node skips. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "node_internal.h"
#include "support_node.h"
#include "support_vectors.h"

static struct fake_runtime polkadot, substrate;
static struct keypair *alice;

struct extrinsic {
    struct buf bytes;
    uint8_t hash[32];
};

/* A signed remark; it is never verified here. */
static void make_extrinsic(struct extrinsic *x, const struct fake_runtime *r, uint64_t nonce)
{
    static const uint8_t remark[] = {0, 0, 4, 'x'};
    struct extrinsic_params params = {.nonce = nonce,
                                      .spec_version = r->spec_version,
                                      .transaction_version = r->transaction_version};
    struct err err = {0};
    *x = (struct extrinsic){0};
    if (extrinsic_sign(r->md, &params, alice, remark, sizeof(remark), &x->bytes, x->hash, &err))
        fail_msg("%s", err.text);
}

static json_t *body(const struct extrinsic *x)
{
    struct buf text = {0};
    json_t *list = json_array();
    json_array_append_new(list,
                          json_string("0x1004010203")); /* an unsigned one that decodes or not */
    if (x) {
        hex_put_0x(&text, x->bytes.data, x->bytes.len);
        json_array_append_new(list, json_string(buf_str(&text)));
    }
    buf_done(&text);
    return list;
}

static void add_empty(struct fake *f, unsigned count)
{
    while (count--)
        fake_add(f, body(NULL), NULL);
}

static void expect_heights(const struct node_rig *rig, uint64_t from, size_t count)
{
    assert_int_equal(rig->view_count, count);
    for (size_t i = 0; i < count; i++) {
        uint8_t hash[32];
        fake_hash(&rig->fake[0], from + i, hash);
        assert_int_equal(rig->seen[i].head.number, from + i);
        assert_memory_equal(rig->seen[i].head.hash, hash, 32);
    }
}

static void all_heights_although_the_node_skips(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    add_empty(f, 60);
    f->finalized = f->best = 5;
    rig_connect(&rig);
    node_follow(rig.node, 2);
    rig_wait_seen(&rig, 4);
    fake_set_best(f, 40);
    fake_set_finalized(f, 38); /* 6..37 are never notified */
    rig_wait_seen(&rig, 37);
    fake_set_finalized(f, 60);
    rig_wait_seen(&rig, 59);
    expect_heights(&rig, 2, 59);
    assert_int_equal(rig.seen[0].extrinsic_count, 1);
    assert_int_equal(f->asked_events, 0);
    rig_done(&rig);
}

/* What reconciliation lives on: when a block was made, and the bytes of what it holds, with their
 * era and tip. */
static struct extrinsic mortal;
static unsigned checked;

static void check_mortal(const struct node_included *x)
{
    assert_int_equal(x->tx.bytes_len, mortal.bytes.len);
    assert_memory_equal(x->tx.bytes, mortal.bytes.data, x->tx.bytes_len);
    assert_ptr_equal(x->call + x->tx.call_len, x->tx.bytes + x->tx.bytes_len);
    assert_int_equal(x->tx.nonce, 7);
    assert_int_equal(x->tx.tip, 12);
    assert_int_equal(x->tx.era_birth, 0);
    assert_int_equal(x->tx.era_death, 64);
    checked++;
}

static void check_block(struct node_rig *rig, const struct node_block *block)
{
    (void)rig;
    if (block->head.number != 1) {
        assert_int_equal(block->time_ms, -1);
        return;
    }
    assert_int_equal(block->time_ms, 1700000000123);
    assert_int_equal(block->included_count, 1);
    check_mortal(&block->included[0]);
}

static bool mortal_pool(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                        const json_t *params)
{
    struct buf text = {0};
    (void)f;
    (void)params;
    if (strcmp(method, "author_pendingExtrinsics") != 0)
        return false;
    hex_put_0x(&text, mortal.bytes.data, mortal.bytes.len);
    fake_answer(p, id,
                json_pack("[s,s]", "0x1004010203", buf_str(&text))); /* the first is not signed */
    buf_done(&text);
    return true;
}

static void on_each(struct node_ask *a, const struct node_included *x)
{
    (void)a;
    check_mortal(x);
}

static void on_pool(struct node_ask *a)
{
    assert_int_equal(a->err.code, 0);
    checked += 100;
}

static bool pool_came(void *arg)
{
    (void)arg;
    return checked >= 100;
}

static void time_and_bytes(void **state)
{
    (void)state;
    struct node_rig rig;
    uint8_t set[2];
    char inherent[64];
    static const uint8_t remark[] = {0, 0, 4, 'x'};
    struct extrinsic_params params = {.nonce = 7,
                                      .tip = 12,
                                      .era = era_mortal(64, 0),
                                      .spec_version = polkadot.spec_version,
                                      .transaction_version = polkadot.transaction_version};
    struct err err = {0};
    mortal = (struct extrinsic){0};
    if (extrinsic_sign(polkadot.md, &params, alice, remark, sizeof(remark), &mortal.bytes,
                       mortal.hash, &err))
        fail_msg("%s", err.text);
    assert_true(metadata_find_call(polkadot.md, "Timestamp", "set", set));
    snprintf(inherent, sizeof(inherent), "0x2804%02x%02x0b7b68e5cf8b01", set[0], set[1]);
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    json_t *list = body(&mortal);
    json_array_insert_new(list, 0, json_string(inherent));
    struct buf events = {0};
    fake_events_begin(&events, 1);
    fake_event(&events, 2, true);
    fake_add(f, list, &events);
    buf_done(&events);
    add_empty(f, 1);
    size_t len;
    rig.want_signer = keypair_account_id(alice, &len);
    rig.want_signer_len = len;
    rig.on_block = check_block;
    checked = 0;
    f->hook = mortal_pool;
    rig_up(&rig);
    node_follow(rig.node, 1);
    fake_set_finalized(f, 2);
    rig_wait_seen(&rig, 2);
    assert_int_equal(checked, 1);
    struct node_ask ask = {0};
    struct buf hashes = {0};
    node_ask_pending(rig.node, &ask, &hashes, on_each, on_pool);
    assert_true(rig_wait(&rig, pool_came));
    assert_int_equal(checked, 102);
    assert_int_equal(hashes.len, 64);
    buf_done(&hashes);
    buf_done(&mortal.bytes);
    rig_done(&rig);
}

static void on_unfinal(struct node_ask *a, const struct node_included *x)
{
    (void)a;
    assert_int_equal(x->tx.nonce, 7 + checked);
    checked += 1;
}

/* Blocks 3 to 5, from the best one down, each with its extrinsics. */
static void what_newer_blocks_hold(void **state)
{
    (void)state;
    struct node_rig rig;
    struct extrinsic x[4]; /* of nonces 9, 9, 8, 7: the newest block comes first */
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    add_empty(f, 1);
    for (unsigned i = 0; i < 4; i++) {
        make_extrinsic(&x[i], &polkadot, i ? 10 - i : 9);
        fake_add(f, body(&x[i]), NULL);
    }
    f->finalized = 2;
    f->best = 5;
    rig_up(&rig);
    struct node_ask ask = {0};
    struct buf hashes = {0};
    checked = 0;
    node_ask_above(rig.node, &ask, 2, &hashes, on_unfinal, on_pool);
    assert_true(rig_wait(&rig, pool_came));
    assert_int_equal(checked, 103);
    assert_int_equal(hashes.len, 6 * 32);
    for (unsigned i = 0; i < 3; i++)
        assert_memory_equal(hashes.data + (2 * i + 1) * 32, x[3 - i].hash, 32);
    rig_done(&rig);
    for (unsigned i = 0; i < 4; i++)
        buf_done(&x[i].bytes);
    buf_done(&hashes);
}

static void results_and_nonces(void **state)
{
    (void)state;
    struct node_rig rig;
    struct extrinsic good, bad;
    struct buf events = {0};
    uint8_t account[32] = {7}, other[32] = {8};
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    make_extrinsic(&good, &polkadot, 3);
    make_extrinsic(&bad, &polkadot, 4);
    fake_events_begin(&events, 2);
    fake_event(&events, 0, true);
    fake_event(&events, 1, true);
    fake_add(f, body(&good), &events);
    f->blocks[1].nonce = 4;
    fake_events_begin(&events, 2);
    fake_event(&events, 0, true);
    fake_event(&events, 1, false);
    fake_add(f, body(&bad), &events);
    f->blocks[2].nonce = 5;
    add_empty(f, 1);
    size_t len;
    rig.want_signer = keypair_account_id(alice, &len);
    rig.want_signer_len = len;
    rig_up(&rig);
    assert_int_equal(node_watch_account(rig.node, account, 32), 0);
    assert_int_equal(node_watch_account(rig.node, other, 32), 1);
    node_follow(rig.node, 0);
    fake_set_finalized(f, 3);
    rig_wait_seen(&rig, 4);
    expect_heights(&rig, 0, 4);
    assert_int_equal(rig.seen[0].included_count, 0);
    assert_int_equal(rig.seen[0].nonce, 0);
    const struct seen_block *s = &rig.seen[1];
    assert_int_equal(s->included_count, 1);
    assert_memory_equal(s->included.tx.hash, good.hash, 32);
    assert_int_equal(s->included.tx.index, 1);
    assert_true(s->included.is_signed);
    assert_memory_equal(s->included.signer, rig.want_signer, 32);
    assert_int_equal(s->included.tx.nonce, 3);
    assert_int_equal(s->included.tx.call_len, 4);
    assert_int_equal(s->included.tx.result.outcome, DISPATCH_OK);
    assert_int_equal(s->nonce, 4);
    assert_int_equal(s->nonce_count, 2);
    s = &rig.seen[2];
    assert_memory_equal(s->included.tx.hash, bad.hash, 32);
    assert_int_equal(s->included.tx.result.outcome, DISPATCH_FAILED);
    assert_string_equal(s->included.tx.result.error, "BadOrigin");
    assert_int_equal(s->nonce, 5);
    assert_int_equal(f->asked_events, 2);
    buf_done(&good.bytes);
    buf_done(&bad.bytes);
    buf_done(&events);
    rig_done(&rig);
}

static bool too_big(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                    const json_t *params)
{
    (void)f;
    (void)params;
    if (strcmp(method, "state_queryStorageAt") != 0)
        return false;
    fake_error(p, id, -32008, "Response is too big", NULL);
    return true;
}

/* The method is closed, or what it answers is larger than the endpoint sends: one by one then. */
static void nonces_without_query_storage(void **state)
{
    (void)state;
    for (int closed = 0; closed < 2; closed++) {
        struct node_rig rig;
        uint8_t account[32] = {7};
        rig_start(&rig, 1, &polkadot);
        struct fake *f = &rig.fake[0];
        f->no_query_storage = closed;
        f->hook = closed ? NULL : too_big;
        add_empty(f, 2);
        f->blocks[2].nonce = 9;
        f->finalized = 2;
        rig_connect(&rig);
        node_watch_account(rig.node, account, 32);
        node_watch_account(rig.node, account, 32);
        node_follow(rig.node, 1);
        rig_wait_seen(&rig, 2);
        assert_int_equal(rig.seen[0].nonce, 0);
        assert_int_equal(rig.seen[1].nonce, 9);
        assert_int_equal(rig.seen[1].nonce_count, 2);
        rig_done(&rig);
    }
}

static size_t wanted_account; /* SIZE_MAX: none */

static bool wants_account(void *arg, size_t index)
{
    (void)arg;
    return index == wanted_account;
}

static void only_the_wanted(struct node_rig *rig, const struct node_block *block)
{
    (void)rig;
    assert_int_equal(block->nonce_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(block->nonces[i] == (i == wanted_account ? 9 : UINT64_MAX));
        assert_int_equal(block->balances[i].known, i == wanted_account);
    }
}

/* Accounts that nobody wants to hear of are not asked about. */
static void wanted_accounts(void **state)
{
    (void)state;
    static const size_t cases[] = {0, 1, 2, SIZE_MAX};
    for (size_t k = 0; k < 8; k++) {
        struct node_rig rig;
        rig_start(&rig, 1, &polkadot);
        struct fake *f = &rig.fake[0];
        f->no_query_storage = k & 1;
        add_empty(f, 1);
        f->blocks[1].nonce = 9;
        f->finalized = 1;
        wanted_account = cases[k / 2];
        rig.config.wants_account = wants_account;
        rig.on_block = only_the_wanted;
        rig_connect(&rig);
        for (uint8_t i = 0; i < 3; i++) {
            uint8_t account[32] = {i};
            node_watch_account(rig.node, account, 32);
        }
        node_follow(rig.node, 1);
        rig_wait_seen(&rig, 1);
        rig_done(&rig);
    }
}

/* What the chain says of two accounts at each block: with one question for both, and one after the
 * other. */
static void free_balances(bool no_query_storage)
{
    struct node_rig rig;
    uint8_t account[32] = {7}, other[32] = {8};
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    f->no_query_storage = no_query_storage;
    add_empty(f, 3);
    f->blocks[1].free = 123456789012345678;
    f->blocks[2].account_len = 0;
    f->blocks[3].account_len = FAKE_ACCOUNT_LEN - 16; /* of a runtime with another AccountData */
    f->blocks[3].nonce = 6;
    f->finalized = f->best = 3;
    rig_connect(&rig);
    node_watch_account(rig.node, account, 32);
    node_watch_account(rig.node, other, 32);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 3);
    assert_true(rig.seen[0].balance.known);
    assert_true(rig.seen[0].balance.free == 123456789012345678);
    assert_true(rig.seen[1].balance.known);
    assert_true(rig.seen[1].balance.free == 0);
    assert_int_equal(rig.seen[1].nonce, 0);
    assert_false(rig.seen[2].balance.known);
    assert_int_equal(rig.seen[2].nonce, 6);
    assert_int_equal(rig.down, 0);
    rig_done(&rig);
}

static void balances_in_one_question(void **state)
{
    (void)state;
    free_balances(false);
}

static void balances_one_by_one(void **state)
{
    (void)state;
    free_balances(true);
}

/* A node need not name the accounts that do not exist. */
static bool name_nobody(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                        const json_t *params)
{
    (void)params;
    if (strcmp(method, "state_queryStorageAt") != 0)
        return false;
    fake_answer(p, id, json_pack("[{s:s, s:[]}]", "block", f->blocks[0].hash, "changes"));
    return true;
}

static void balance_of_an_account_that_is_not_named(void **state)
{
    (void)state;
    struct node_rig rig;
    uint8_t account[32] = {7};
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    f->hook = name_nobody;
    add_empty(f, 1);
    f->finalized = f->best = 1;
    rig_connect(&rig);
    node_watch_account(rig.node, account, 32);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 1);
    assert_int_equal(rig.seen[0].nonce, 0);
    assert_true(rig.seen[0].balance.known);
    assert_true(rig.seen[0].balance.free == 0);
    rig_done(&rig);
}

/* The endpoint has pruned the state; a second one, if there is one, has not. */
static void state_pruned(size_t endpoints)
{
    struct node_rig rig;
    struct extrinsic x;
    struct buf events = {0};
    uint8_t account[32] = {7};
    rig_start(&rig, endpoints, &polkadot);
    struct fake *f = &rig.fake[0];
    make_extrinsic(&x, &polkadot, 0);
    fake_events_begin(&events, 1);
    fake_event(&events, 1, true);
    fake_add(f, body(&x), &events);
    add_empty(f, 4);
    f->finalized = f->best = 5;
    f->pruned_below = 4;
    if (endpoints == 2) {
        fake_copy(&rig.fake[1], f);
        rig.fake[1].finalized = rig.fake[1].best = 5;
    }
    rig.want = x.hash;
    rig_connect(&rig);
    node_watch_account(rig.node, account, 32);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 5);
    expect_heights(&rig, 1, 5);
    assert_int_equal(rig.seen[0].included_count, 1);
    if (endpoints == 2) {
        assert_int_equal(rig.seen[0].included.tx.result.outcome, DISPATCH_OK);
    } else {
        assert_int_equal(rig.seen[0].included.tx.result.outcome, DISPATCH_NONE);
        assert_true(rig.seen[0].nonce == UINT64_MAX);
        assert_false(rig.seen[0].balance.known);
        assert_int_equal(rig.down, 0);
    }
    assert_int_equal(rig.seen[4].nonce, 0);
    assert_true(rig.seen[4].balance.known);
    buf_done(&x.bytes);
    buf_done(&events);
    rig_done(&rig);
}

static void pruned_state(void **state)
{
    (void)state;
    state_pruned(1);
}

static void the_next_endpoint_has_the_state(void **state)
{
    (void)state;
    state_pruned(2);
}

/* The state of a block is refused once by each question after it, and is there the next time. */
static bool discarded_at_first(struct fake *f, struct ws_peer *p, const char *method,
                               const json_t *id, const json_t *params)
{
    unsigned *left = f->hook_arg;
    const char *last = json_string_value(json_array_get(params, json_array_size(params) - 1));
    unsigned bit = !strcmp(method, "state_getStorage")          ? 1
                   : !strcmp(method, "state_getRuntimeVersion") ? 2
                                                                : 0;
    bool of_block = last && (!strcmp(last, f->blocks[1].hash) || !strcmp(last, f->blocks[0].hash));
    if (!of_block || !(*left & bit))
        return false;
    *left &= ~bit;
    fake_error(p, id, 4003, "State already discarded", NULL);
    return true;
}

/* One answer does not make an outcome unknown. */
static void a_state_that_comes_later(void **state)
{
    (void)state;
    struct node_rig rig;
    struct extrinsic x;
    struct buf events = {0};
    unsigned left = 3;
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    f->hook = discarded_at_first;
    f->hook_arg = &left;
    make_extrinsic(&x, &polkadot, 0);
    fake_events_begin(&events, 1);
    fake_event(&events, 1, true);
    fake_add(f, body(&x), &events);
    add_empty(f, 4);
    f->finalized = f->best = 5;
    rig.want = x.hash;
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 5);
    assert_int_equal(left, 0);
    assert_int_equal(rig.seen[0].included.tx.result.outcome, DISPATCH_OK);
    assert_int_equal(rig.down, 0);
    buf_done(&x.bytes);
    buf_done(&events);
    rig_done(&rig);
}

static void restart_at_once(struct node_rig *rig, const struct node_block *block)
{
    if (block->head.number == 7 && rig->view_count < 10)
        node_follow(rig->node, 3);
}

static void follow_again_from_within_a_block(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    add_empty(f, 30);
    f->finalized = f->best = 30;
    rig.on_block = restart_at_once;
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 7 + 28);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(rig.seen[i].head.number, 1 + i);
    for (size_t i = 0; i < 28; i++)
        assert_int_equal(rig.seen[7 + i].head.number, 3 + i);
    rig_done(&rig);
}

static void lost_while_following(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    add_empty(f, 50);
    f->finalized = f->best = 20;
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 5);
    ws_peer_cut(f->peer);
    rig_wait_ready(&rig, 2);
    fake_set_finalized(f, 50);
    rig_wait_seen(&rig, 50);
    expect_heights(&rig, 1, 50);
    assert_true(rig.down >= 1);
    rig_done(&rig);
}

/* A chain whose hashes are not blake2b-256 of the header, as chopsticks' are not. */
static void another_hasher(void **state)
{
    (void)state;
    struct node_rig rig;
    uint8_t hash[32];
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    fake_fork(f, 0);
    f->other_hasher = true;
    rig.config.verify_blocks = false;
    add_empty(f, 13);
    rig_up(&rig);
    node_follow(rig.node, 1);
    fake_set_best(f, 12);
    fake_set_finalized(f, 11);
    rig_wait_seen(&rig, 11);
    expect_heights(&rig, 1, 11);
    fake_hash(f, 12, hash);
    assert_int_equal(node_info(rig.node)->best_number, 12);
    assert_memory_equal(rig.best_head.hash, hash, 32);
    rig_done(&rig);
}

/* The block that is asked for is answered by the one above it; *hook_arg times. */
static bool block_above(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                        const json_t *params)
{
    unsigned *times = f->hook_arg;
    const char *hash = json_string_value(json_array_get(params, 0));
    if (!*times || strcmp(method, "chain_getBlock") != 0 || strcmp(hash, f->blocks[1].hash) != 0)
        return false;
    --*times;
    fake_answer(p, id,
                json_pack("{s:{s:O, s:O}, s:n}", "block", "header", f->blocks[2].header,
                          "extrinsics", f->blocks[2].extrinsics, "justifications"));
    return true;
}

/* On a chain whose hashes are not computed, the header's height still says which block it is. */
static void another_height(void **state)
{
    (void)state;
    struct node_rig rig;
    unsigned times = 2;
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    fake_fork(f, 0);
    f->other_hasher = true;
    f->hook = block_above;
    f->hook_arg = &times;
    rig.config.verify_blocks = false;
    add_empty(f, 2);
    fake_add(f, json_pack("[s,s]", "0x1004010202", "0x1004010203"), NULL);
    add_empty(f, 1);
    f->finalized = f->best = 3;
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 3);
    assert_int_equal(times, 0);
    assert_int_equal(rig.seen[0].extrinsic_count, json_array_size(f->blocks[1].extrinsics));
    assert_int_equal(rig.seen[1].extrinsic_count, 2);
    expect_heights(&rig, 1, 3);
    assert_int_equal(rig.down, 0);
    rig_done(&rig);
}

/* With blocks to verify such a chain is refused, and the message names the way out: otherwise a
 * node could leave its blocks without any check. */
static void another_hasher_refused(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 1, &polkadot);
    rig.fake[0].other_hasher = true;
    add_empty(&rig.fake[0], 2);
    fake_set_best(&rig.fake[0], 2);
    rig_connect(&rig);
    rig_wait_down(&rig, 1);
    assert_int_equal(rig.why.code, ERR_PROTOCOL);
    assert_non_null(strstr(rig.why.text, "chain.verify_blocks: false"));
    assert_int_equal(rig.ready, 0);
    rig_done(&rig);
}

/* ---- bodies ---- */

enum body_lie { BODY_ADDED, BODY_MISSING, BODY_SWAPPED, BODY_CHANGED, HEADER_CHANGED, BODY_LIES };

/* The body of block 3 is another one than its header says, or the header another one than its hash
 * says. */
static bool lie_of_body(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                        const json_t *params)
{
    const enum body_lie *lie = f->hook_arg;
    const char *hash = json_string_value(json_array_get(params, 0));
    if (strcmp(method, "chain_getBlock") != 0 || strcmp(hash, f->blocks[3].hash) != 0)
        return false;
    json_t *header = json_deep_copy(f->blocks[3].header);
    json_t *list = json_deep_copy(f->blocks[3].extrinsics);
    switch (*lie) {
    case BODY_ADDED:
        json_array_append_new(list, json_string("0x1004010205"));
        break;
    case BODY_MISSING:
        json_array_remove(list, 1);
        break;
    case BODY_SWAPPED:
        json_array_insert(list, 2, json_array_get(list, 0));
        json_array_remove(list, 0);
        break;
    case BODY_CHANGED:
        json_array_set_new(list, 1, json_string("0x1004010204"));
        break;
    case HEADER_CHANGED: /* the root of what it sends, in a header that is not the block's */
        json_array_clear(list);
        json_object_set(header, "extrinsicsRoot",
                        json_object_get(f->blocks[1].header, "extrinsicsRoot"));
        break;
    case BODY_LIES:
        break;
    }
    fake_answer(p, id,
                json_pack("{s:{s:o, s:o}, s:n}", "block", "header", header, "extrinsics", list,
                          "justifications"));
    return true;
}

static void start_with_lie(struct node_rig *rig, const enum body_lie *lie)
{
    rig_start(rig, 1, &polkadot);
    struct fake *f = &rig->fake[0];
    fake_add(f, NULL, NULL);
    add_empty(f, 1);
    fake_add(f, json_pack("[s,s]", "0x1004010202", "0x1004010203"), NULL);
    add_empty(f, 1);
    f->finalized = f->best = 4;
    f->hook = lie_of_body;
    f->hook_arg = (void *)lie;
}

static void bodies_that_do_not_fit(void **state)
{
    (void)state;
    for (enum body_lie lie = BODY_ADDED; lie < BODY_LIES; lie++) {
        struct node_rig rig;
        start_with_lie(&rig, &lie);
        rig_connect(&rig);
        node_follow(rig.node, 1);
        rig_wait_down(&rig, 1);
        assert_int_equal(rig.why.code, ERR_PROTOCOL);
        assert_non_null(
            strstr(rig.why.text, lie == HEADER_CHANGED ? "another hash" : "extrinsicsRoot"));
        assert_int_equal(rig.view_count, 2); /* block 3 is not reported */
        rig.fake[0].hook = NULL;             /* the truth */
        rig_wait_seen(&rig, 4);
        expect_heights(&rig, 1, 4);
        assert_int_equal(rig.seen[2].extrinsic_count, 2);
        rig_done(&rig);
    }
}

static void bodies_that_nobody_verifies(void **state)
{
    (void)state;
    static const enum body_lie lie = BODY_ADDED;
    struct node_rig rig;
    start_with_lie(&rig, &lie);
    rig.config.verify_blocks = false;
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 4);
    assert_int_equal(rig.seen[2].extrinsic_count, 3);
    rig_done(&rig);
}

/* Chopsticks on this host is not verified, unless the configuration says so; no other node is
 * excused. */
static void bodies_of_chopsticks(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        bool allowed, followed;
    } cases[] = {{"chopsticks-v1", true, true},
                 {"chopsticks-v1", false, false},
                 {"1.0.0-chopsticks", true, false},
                 {NULL, true, false}};
    static const enum body_lie lie = BODY_ADDED;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct node_rig rig;
        start_with_lie(&rig, &lie);
        rig.config.allow_chopsticks = cases[i].allowed;
        rig.fake[0].version = cases[i].version;
        rig_connect(&rig);
        node_follow(rig.node, 1);
        if (cases[i].followed)
            rig_wait_seen(&rig, 4);
        else
            rig_wait_down(&rig, 1);
        assert_true(cases[i].followed || strstr(rig.why.text, "extrinsicsRoot"));
        rig_done(&rig);
    }
}

/* A runtime of system version 2 has roots of layout V1. */
static void roots_of_both_layouts(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    for (unsigned i = 1; i <= 8; i++) {
        f->roots_v1 = i == 3 || i > 5;
        fake_add(f,
                 json_pack("[s]", "0x90" /* 36 bytes: V1 hashes them */
                                  "000102030405060708090a0b0c0d0e0f1011"
                                  "12131415161718191a1b1c1d1e1f20212223"),
                 NULL);
    }
    f->finalized = f->best = 8;
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 8);
    expect_heights(&rig, 1, 8);
    assert_int_equal(rig.down, 0);
    rig_done(&rig);
}

/* An upgrade in block 2 rules from block 3 on; each block is decoded by the runtime of its
 * parent. */
static void blocks_of_two_runtimes(void **state)
{
    (void)state;
    struct node_rig rig;
    struct extrinsic old, new;
    struct buf events = {0};
    size_t len;
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    make_extrinsic(&old, &polkadot, 1);
    make_extrinsic(&new, &substrate, 2);
    fake_events_begin(&events, 2);
    fake_event(&events, 0, true);
    fake_event(&events, 1, false);
    add_empty(f, 1);
    f->runtime = &substrate;
    fake_add(f, body(&old), &events);
    fake_add(f, body(&new), &events);
    f->finalized = f->best = 3;
    rig.want_signer = keypair_account_id(alice, &len);
    rig.want_signer_len = len;
    rig_up(&rig);
    assert_int_equal(rig.info.spec_version, substrate.spec_version);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 3);
    assert_memory_equal(rig.seen[1].included.tx.hash, old.hash, 32);
    assert_int_equal(rig.seen[1].included.tx.nonce, 1);
    assert_int_equal(rig.seen[1].included.tx.result.outcome, DISPATCH_FAILED);
    assert_memory_equal(rig.seen[2].included.tx.hash, new.hash, 32);
    assert_int_equal(rig.seen[2].included.tx.nonce, 2);
    assert_int_equal(rig.seen[2].included.tx.result.outcome, DISPATCH_FAILED);
    assert_int_equal(rig.info.spec_version, substrate.spec_version);
    assert_int_equal(f->asked_metadata, 2);
    buf_done(&old.bytes);
    buf_done(&new.bytes);
    buf_done(&events);
    rig_done(&rig);
}

static bool wants_runtime(void *arg)
{
    (void)arg;
    return true;
}

static uint32_t executed_by[8]; /* of the blocks that were reported */

static void keep_runtime(struct node_rig *rig, const struct node_block *block)
{
    (void)rig;
    assert_in_range(block->head.number, 1, ARRAY_LEN(executed_by) - 1);
    executed_by[block->head.number] = block->spec_version;
}

/* The owner wants nothing that these blocks hold. The node asks which runtime executed them only if
 * the owner wants to know it. It cannot tell where the state before a block is pruned. */
static void runtime_of_empty_blocks(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        struct node_rig rig;
        rig_start(&rig, 1, &polkadot);
        struct fake *f = &rig.fake[0];
        add_empty(f, 3);
        f->runtime = &substrate;
        add_empty(f, 2);
        f->finalized = f->best = 5;
        f->pruned_below = 2;
        rig.config.wants_runtime = k ? wants_runtime : NULL;
        rig.on_block = keep_runtime;
        rig_connect(&rig);
        node_follow(rig.node, 1);
        rig_wait_seen(&rig, 5);
        uint32_t of[] = {
            0, 0, 0, polkadot.spec_version, polkadot.spec_version, substrate.spec_version};
        for (size_t i = 1; i < ARRAY_LEN(of); i++)
            assert_int_equal(executed_by[i], k ? of[i] : 0);
        assert_int_equal(rig.down, 0);
        rig_done(&rig);
    }
}

/* A node that has finalized another block at a height that was reported: never passed on. */
static void finality_that_disagrees(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    add_empty(f, 4);
    f->finalized = f->best = 4;
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 4);
    fake_fork(f, 4);
    add_empty(f, 2);
    fake_set_finalized(f, 5);
    rig_wait_down(&rig, 1);
    assert_int_equal(rig.why.code, ERR_PROTOCOL);
    assert_non_null(strstr(rig.why.text, "parent of finalized block 5"));
    assert_int_equal(rig.view_count, 4);
    rig_done(&rig);
}

/* A subscription that the node has dropped in silence: the heads are polled. */
static bool mute_finalized(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                           const json_t *params)
{
    (void)params;
    if (strcmp(method, "chain_subscribeFinalizedHeads") != 0)
        return false;
    (void)f;
    fake_answer(p, id, json_string("silent"));
    return true;
}

static void silent_subscription(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    f->hook = mute_finalized;
    add_empty(f, 6);
    rig.config.silence_timeout_ms = rig_patience(60);
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_ready(&rig, 1);
    f->finalized = 3;
    rig_wait_seen(&rig, 3);
    f->finalized = 6;
    rig_wait_seen(&rig, 6);
    expect_heights(&rig, 1, 6);
    rig_wait_ready(&rig, 2); /* the second find has the connection made anew */
    rig_done(&rig);
}

/* An endpoint that takes fewer calls than its blocks need. */
static bool too_many(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                     const json_t *params)
{
    (void)f;
    (void)params;
    if (strcmp(method, "chain_getBlock") != 0)
        return false;
    fake_error(p, id, -32005, "Too many requests", NULL);
    return true;
}

/* And one that answers no such call. */
static bool deaf(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                 const json_t *params)
{
    (void)f;
    (void)p;
    (void)id;
    (void)params;
    return strcmp(method, "chain_getBlock") == 0;
}

static bool is_slow(void *arg)
{
    enum { BLOCK_MS = 20 };
    struct node_rig *rig = arg;
    struct fake *f = &rig->fake[0];
    uint64_t *next_ms = f->hook_arg, now = loop_now_ms(rig->loop);
    if (now >= *next_ms && f->best < FAKE_BLOCKS - 1 && f->peer) {
        *next_ms = now + BLOCK_MS;
        fake_set_finalized(f, ++f->best); /* its chain goes on */
    }
    return node_slow(rig->node) || rig->down;
}

static void one_that_falls_behind(void **state)
{
    (void)state;
    static const struct {
        unsigned endpoints;
        bool (*hook)(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                     const json_t *params);
        const char *text;
    } cases[] = {
        {1, too_many, "calls a second: "},
        {2, too_many, "another endpoint may be faster"},
        {2, deaf, "it answers slowly"},
    };
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        struct node_rig rig;
        uint64_t next_ms = 0;
        unsigned endpoints = cases[c].endpoints;
        rig_start(&rig, endpoints, &polkadot);
        rig.config.confirm_ms = 5;
        for (unsigned i = 0; i < endpoints; i++) {
            add_empty(&rig.fake[i], FAKE_BLOCKS - 1);
            rig.fake[i].finalized = rig.fake[i].best = 20;
        }
        rig.fake[0].hook = cases[c].hook;
        rig.fake[0].hook_arg = &next_ms;
        rig_connect(&rig);
        node_follow(rig.node, 1);
        rig_wait_ready(&rig, 1);
        assert_true(run_until(rig.loop, is_slow, &rig, rig_limit()));
        if (endpoints == 1) {
            assert_int_equal(rig.down, 0);
            assert_non_null(strstr(node_slow(rig.node), cases[c].text));
            assert_non_null(strstr(node_slow(rig.node), "final blocks are not read yet"));
        } else {
            assert_int_equal(rig.down, 1);
            assert_non_null(strstr(rig.why.text, cases[c].text));
            assert_non_null(strstr(rig.why.text, "final blocks are not read yet"));
            rig_wait_seen(&rig, 20); /* the other one is asked */
            assert_null(node_slow(rig.node));
        }
        rig_done(&rig);
    }
}

static bool blocks_come(void *arg)
{
    struct node_rig *rig = arg;
    is_slow(rig);
    return rig->ready == 2;
}

static bool until_ms(void *arg)
{
    struct node_rig *rig = arg;
    is_slow(rig);
    return loop_now_ms(rig->loop) >= rig->until_ms;
}

/* Where the others are away, one that is slow is better than none, and it is not left again and
 * again, which would cost it a handshake each time. */
static void one_that_is_slow_and_alone(void **state)
{
    (void)state;
    struct node_rig rig;
    uint64_t next_ms = 0;
    rig_start(&rig, 2, &polkadot);
    rig.config.confirm_ms = 100;
    add_empty(&rig.fake[0], FAKE_BLOCKS - 1);
    rig.fake[0].finalized = rig.fake[0].best = 20;
    rig.fake[0].hook = too_many;
    rig.fake[0].hook_arg = &next_ms;
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_ready(&rig, 1);
    fake_stop(&rig.fake[1], rig.loop);
    assert_true(run_until(rig.loop, blocks_come, &rig, rig_limit())); /* left, and back */
    unsigned down = rig.down;
    assert_true(down >= 2);
    rig.until_ms = loop_now_ms(rig.loop) + 1000; /* ten ticks: the other one could be tried again */
    assert_true(run_until(rig.loop, until_ms, &rig, rig_limit()));
    assert_int_equal(rig.down, down);
    assert_int_equal(rig.ready, 2);
    rig_done(&rig);
}

/* The same of one that lacks a block. */
static void one_that_is_behind_and_alone(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 2, &polkadot);
    add_empty(&rig.fake[0], 4);
    rig_connect(&rig);
    rig_wait_ready(&rig, 1);
    fake_stop(&rig.fake[1], rig.loop);
    node_behind(rig.node);
    rig_wait_ready(&rig, 2);
    rig_done(&rig);
}

/* One that lacks a block for which an account waits is left for one that did not lack it lately. */
static void one_that_is_behind(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 2, &polkadot);
    for (unsigned i = 0; i < 2; i++)
        add_empty(&rig.fake[i], 4);
    rig_connect(&rig);
    rig_wait_ready(&rig, 1);
    node_behind(rig.node);
    rig_wait_ready(&rig, 2);
    assert_non_null(strstr(rig.why.text, "it is behind"));
    assert_int_equal(rig.down, 1);
    node_behind(rig.node); /* the first one was behind a moment ago */
    assert_non_null(node_info(rig.node));
    assert_int_equal(rig.down, 1);
    rig_done(&rig);
    rig_start(&rig, 1, &polkadot);
    rig_connect(&rig);
    rig_wait_ready(&rig, 1);
    node_behind(rig.node);
    assert_non_null(node_info(rig.node));
    rig_done(&rig);
}

/* And where nobody tells the finalized head when asked: the subscription is made anew, which begins
 * with it, on the same connection. */
static bool no_final_head(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                          const json_t *params)
{
    (void)params;
    unsigned *subscribed = f->hook_arg;
    *subscribed += !strcmp(method, "chain_subscribeFinalizedHeads");
    if (strcmp(method, "chain_getFinalizedHead") != 0)
        return false;
    fake_error(p, id, -32601, "Method not found", NULL);
    return true;
}

static void silent_subscription_without_the_question(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    unsigned subscribed = 0;
    f->hook = no_final_head;
    f->hook_arg = &subscribed;
    add_empty(f, 6);
    rig.config.silence_timeout_ms = rig_patience(60);
    f->finalized = f->best = 2;
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_ready(&rig, 1);
    rig_wait_seen(&rig, 2);
    f->finalized = f->best = 4; /* no notification */
    rig_wait_seen(&rig, 4);
    f->finalized = f->best = 6;
    rig_wait_seen(&rig, 6);
    expect_heights(&rig, 1, 6);
    assert_true(subscribed >= 3);
    assert_int_equal(rig.ready, 1);
    rig_done(&rig);
}

/* Wrong answers of every kind while a block is fetched: asked again, then the endpoint is left; no
 * height is lost and none comes twice. */
static bool spoil(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                  const json_t *params)
{
    (void)params;
    unsigned *left = f->hook_arg;
    if (*left == 0 || !f->version_sub[0] || /* the handshake is left alone */
        (strcmp(method, "chain_getBlock") != 0 && strcmp(method, "chain_getBlockHash") != 0))
        return false;
    switch ((*left)-- % 5) {
    case 0:
        fake_answer(p, id, json_true());
        return true;
    case 1:
        fake_answer(p, id,
                    json_pack("{s:{s:O, s:[s]}}", "block", "header", f->blocks[0].header,
                              "extrinsics", "0xzz"));
        return true;
    case 2:
        fake_error(p, id, -32603, "Internal error", NULL);
        return true;
    case 3:
        ws_peer_send(p, "{");
        fake_answer(p, id, json_integer(7));
        return true;
    default:
        fake_answer(p, id,
                    json_pack("{s:{s:O, s:s}}", "block", "header", f->blocks[f->finalized].header,
                              "extrinsics", "none"));
        return true;
    }
}

static void wrong_answers(void **state)
{
    (void)state;
    struct node_rig rig;
    unsigned left = 25;
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    f->hook = spoil;
    f->hook_arg = &left;
    add_empty(f, 20);
    f->finalized = f->best = 20;
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 20);
    expect_heights(&rig, 1, 20);
    assert_int_equal(left, 0);
    rig_done(&rig);
}

/* ---- blocks that an endpoint does not have ---- */

enum { GONE_BELOW = 12 };

/* The bodies below a height are gone; the headers are not. */
static bool no_bodies(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                      const json_t *params)
{
    const char *hash = json_string_value(json_array_get(params, 0));
    if (strcmp(method, "chain_getBlock") != 0 || !hash)
        return false;
    for (uint64_t h = 0; h < GONE_BELOW; h++)
        if (strcmp(f->blocks[h].hash, hash) == 0) {
            fake_answer(p, id, json_null());
            return true;
        }
    return false;
}

/* Not even the hashes are there, as after a warp sync. */
static bool no_hashes(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                      const json_t *params)
{
    const json_t *height = json_array_get(params, 0);
    (void)f;
    if (strcmp(method, "chain_getBlockHash") != 0 || !height || json_integer_value(height) == 0 ||
        json_integer_value(height) >= GONE_BELOW)
        return false;
    fake_answer(p, id, json_null());
    return true;
}

static bool closed_block(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                         const json_t *params)
{
    (void)f, (void)params;
    if (strcmp(method, "chain_getBlock") != 0)
        return false;
    fake_error(p, id, -32601, "Method not found", NULL);
    return true;
}

static void alone(bool (*hook)(struct fake *f, struct ws_peer *p, const char *method,
                               const json_t *id, const json_t *params),
                  uint64_t gone_below)
{
    struct node_rig rig;
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    f->hook = hook;
    add_empty(f, 20);
    f->finalized = f->best = 20;
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 20);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(rig.seen[i].head.number, i + 1);
        assert_int_equal(rig.seen[i].unread, i + 1 < gone_below);
    }
    assert_int_equal(rig.ready, 1);
    assert_int_equal(rig.down, 0); /* no connection was closed for it */
    rig_done(&rig);
}

static bool null_at_first(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                          const json_t *params)
{
    unsigned *times = f->hook_arg;
    (void)params;
    if (!*times || strcmp(method, "chain_getBlock") != 0)
        return false;
    --*times;
    fake_answer(p, id, json_null());
    return true;
}

/* A balancer asks a node that lags, and another one the next time: the body is there. */
static void a_body_that_comes_later(void **state)
{
    (void)state;
    struct node_rig rig;
    unsigned times = 2;
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    f->hook = null_at_first;
    f->hook_arg = &times;
    add_empty(f, 3);
    f->finalized = f->best = 1;
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 1);
    assert_int_equal(times, 0);
    assert_false(rig.seen[0].unread);
    assert_int_equal(rig.down, 0);
    rig_done(&rig);
}

static void bodies_that_nobody_has(void **state)
{
    (void)state;
    alone(no_bodies, GONE_BELOW);
    alone(no_hashes, GONE_BELOW);
    alone(closed_block, UINT64_MAX);
}

struct at_once {
    json_t *all;
    unsigned rounds;
};

/* The questions for the first eight bodies are answered in one message: the first one wrongly, the
 * others by null, three times; then they are answered well. */
static bool all_at_once(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                        const json_t *params)
{
    struct at_once *a = f->hook_arg;
    (void)params;
    if (strcmp(method, "chain_getBlock") != 0 || a->rounds == NODE_ATTEMPTS)
        return false;
    json_array_append_new(a->all, json_pack("{s:O, s:o}", "id", (json_t *)id, "result",
                                            json_array_size(a->all) ? json_null() : json_true()));
    if (json_array_size(a->all) < NODE_PIPELINE)
        return true;
    char *text = json_dumps(a->all, JSON_COMPACT);
    ws_peer_send(p, text);
    free(text);
    json_array_clear(a->all);
    a->rounds++;
    return true;
}

/* A soak with random lies found it: one answer is why the endpoint is left, and what came together
 * with it says that the endpoint lacks bodies. Each body is read after that. */
static void lacks_that_come_with_a_fault(void **state)
{
    (void)state;
    for (size_t endpoints = 1; endpoints <= 2; endpoints++) {
        struct node_rig rig;
        struct at_once a = {.all = json_array()};
        rig_start(&rig, endpoints, &polkadot);
        for (size_t i = 0; i < endpoints; i++) {
            if (i == 0)
                add_empty(&rig.fake[0], 40);
            else
                fake_copy(&rig.fake[i], &rig.fake[0]);
            rig.fake[i].finalized = rig.fake[i].best = 40;
        }
        rig.fake[0].hook = all_at_once;
        rig.fake[0].hook_arg = &a;
        rig_connect(&rig);
        node_follow(rig.node, 1);
        rig_wait_seen(&rig, 40);
        expect_heights(&rig, 1, 40);
        for (size_t i = 0; i < 40; i++)
            assert_false(rig.seen[i].unread);
        assert_int_equal(rig.down, 1);
        assert_non_null(strstr(rig.why.text, "chain_getBlock gave no block"));
        json_decref(a.all);
        rig_done(&rig);
    }
}

static bool no_hashes_of_heights(struct fake *f, struct ws_peer *p, const char *method,
                                 const json_t *id, const json_t *params)
{
    (void)f, (void)params;
    if (strcmp(method, "chain_getBlockHash") != 0)
        return false;
    fake_error(p, id, -32601, "Method not found", NULL);
    return true;
}

/* The method is closed from the start, or while blocks are followed: the state has the hashes. */
static void hashes_from_the_state(void **state)
{
    (void)state;
    for (unsigned later = 0; later < 2; later++) {
        struct node_rig rig;
        rig_start(&rig, 1, &polkadot);
        struct fake *f = &rig.fake[0];
        add_empty(f, 20);
        f->finalized = f->best = 20;
        if (!later)
            f->hook = no_hashes_of_heights;
        rig_up(&rig);
        f->hook = no_hashes_of_heights;
        node_follow(rig.node, 1);
        rig_wait_seen(&rig, 20);
        expect_heights(&rig, 1, 20);
        for (size_t i = 0; i < 20; i++) {
            uint8_t hash[32];
            fake_hash(f, i + 1, hash);
            assert_false(rig.seen[i].unread);
            assert_memory_equal(rig.seen[i].head.hash, hash, 32);
        }
        assert_int_equal(rig.ready, 1);
        assert_int_equal(rig.down, 0);
        rig_done(&rig);
    }
}

/* The second one has them, or a part of them: each endpoint is visited once. */
static void the_next_endpoint_is_asked(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 2, &polkadot);
    struct fake *f = &rig.fake[0], *g = &rig.fake[1];
    add_empty(f, 20);
    fake_copy(g, f);
    f->finalized = f->best = g->finalized = g->best = 20;
    f->hook = no_bodies;
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 20);
    for (size_t i = 0; i < 20; i++)
        assert_false(rig.seen[i].unread);
    assert_int_equal(rig.ready, 2);
    assert_non_null(strstr(rig.why.text, "chain_getBlock of block"));
    assert_non_null(strstr(rig.why.text, rig.urls[0]));
    rig_done(&rig);
}

/* The one that has them is away: it is waited for, and used when it is back; not for ever. */
static void the_one_that_has_them_is_away(void **state)
{
    (void)state;
    for (unsigned back = 0; back < 2; back++) {
        struct node_rig rig;
        rig_start(&rig, 2, &polkadot);
        struct fake *f = &rig.fake[0], *g = &rig.fake[1];
        add_empty(f, 20);
        f->finalized = f->best = 20;
        f->hook = no_bodies;
        rig.config.confirm_ms = back ? rig_patience(500) : 20; /* long enough, or soon over */
        int port = ws_server_port(g->server);
        fake_stop(g, rig.loop);
        rig_connect(&rig);
        node_follow(rig.node, 1);
        rig_wait_down(&rig, 2); /* it left the first one, and does not reach the second */
        rig_wait_ready(&rig, 2);
        assert_int_equal(rig.view_count, 0);
        if (back) {
            fake_start(g, rig.loop, &polkadot, port);
            fake_copy(g, f);
            g->finalized = g->best = 20;
        }
        rig.fakes = back ? 2 : 1;
        rig_wait_seen(&rig, 20);
        for (size_t i = 0; i < 20; i++)
            assert_int_equal(rig.seen[i].unread, !back && i + 1 < GONE_BELOW);
        rig_done(&rig);
    }
}

static void no_endpoint_has_them(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 2, &polkadot);
    struct fake *f = &rig.fake[0], *g = &rig.fake[1];
    add_empty(f, 20);
    fake_copy(g, f);
    f->finalized = f->best = g->finalized = g->best = 20;
    f->hook = no_bodies;
    g->hook = no_hashes;
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 20);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(rig.seen[i].head.number, i + 1);
        assert_int_equal(rig.seen[i].unread, i + 1 < GONE_BELOW);
    }
    assert_int_equal(rig.ready, 2);
    rig_done(&rig);
}

static bool nobody_needs(void *arg, uint64_t number)
{
    (void)arg, (void)number;
    return false;
}

static void what_nobody_needs_is_not_looked_for(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 2, &polkadot);
    struct fake *f = &rig.fake[0];
    f->hook = no_bodies;
    add_empty(f, 20);
    f->finalized = f->best = 20;
    rig.config.needs = nobody_needs;
    rig_connect(&rig);
    node_follow(rig.node, 1);
    rig_wait_seen(&rig, 20);
    assert_int_equal(rig.ready, 1);
    assert_null(rig.fake[1].peer);
    rig_done(&rig);
}

static int load(void **state)
{
    (void)state;
    fake_runtime_load(&polkadot, "polkadot", 1002005, 26, "v14-polkadot");
    fake_runtime_load(&substrate, "node", 268, 2, "v14-substrate");
    alice = vectors_key("ed25519");
    return 0;
}

static int unload(void **state)
{
    (void)state;
    fake_runtime_done(&polkadot);
    fake_runtime_done(&substrate);
    keypair_free(alice);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_heights_although_the_node_skips),
        cmocka_unit_test(results_and_nonces),
        cmocka_unit_test(time_and_bytes),
        cmocka_unit_test(what_newer_blocks_hold),
        cmocka_unit_test(nonces_without_query_storage),
        cmocka_unit_test(wanted_accounts),
        cmocka_unit_test(balances_in_one_question),
        cmocka_unit_test(balances_one_by_one),
        cmocka_unit_test(balance_of_an_account_that_is_not_named),
        cmocka_unit_test(pruned_state),
        cmocka_unit_test(follow_again_from_within_a_block),
        cmocka_unit_test(lost_while_following),
        cmocka_unit_test(another_hasher),
        cmocka_unit_test(another_hasher_refused),
        cmocka_unit_test(another_height),
        cmocka_unit_test(bodies_that_do_not_fit),
        cmocka_unit_test(bodies_that_nobody_verifies),
        cmocka_unit_test(bodies_of_chopsticks),
        cmocka_unit_test(roots_of_both_layouts),
        cmocka_unit_test(blocks_of_two_runtimes),
        cmocka_unit_test(runtime_of_empty_blocks),
        cmocka_unit_test(finality_that_disagrees),
        cmocka_unit_test(silent_subscription),
        cmocka_unit_test(silent_subscription_without_the_question),
        cmocka_unit_test(one_that_falls_behind),
        cmocka_unit_test(one_that_is_behind),
        cmocka_unit_test(one_that_is_behind_and_alone),
        cmocka_unit_test(one_that_is_slow_and_alone),
        cmocka_unit_test(wrong_answers),
        cmocka_unit_test(the_next_endpoint_has_the_state),
        cmocka_unit_test(a_state_that_comes_later),
        cmocka_unit_test(hashes_from_the_state),
        cmocka_unit_test(a_body_that_comes_later),
        cmocka_unit_test(bodies_that_nobody_has),
        cmocka_unit_test(lacks_that_come_with_a_fault),
        cmocka_unit_test(the_next_endpoint_is_asked),
        cmocka_unit_test(the_one_that_has_them_is_away),
        cmocka_unit_test(no_endpoint_has_them),
        cmocka_unit_test(what_nobody_needs_is_not_looked_for),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
