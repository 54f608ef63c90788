/* A real node's pool, as a submitting client sees it: each test is one or more lines of
 * behaviour.md, played on the core without a socket. Blocks in diaries are numbered in the order in
 * which they were made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "testlib.h"

#define RIG struct rig *r = rig_new(NULL)

static void normal_path(void **state)
{
    (void)state;
    RIG;
    struct diary d = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &d), 0);
    assert_string_equal(diary_text(&d), "ready");
    rig_blocks(r, 3);
    core_finalize(&r->core, 3); /* a later head: the hash told is the containing block's */
    assert_string_equal(diary_text(&d), "ready inBlock:1 finalized:1");
    rig_blocks(r, 1);
    core_finalize(&r->core, 4);
    assert_string_equal(diary_text(&d), "ready inBlock:1 finalized:1");
    assert_int_equal(r->finalized_told, 2);
    diary_done(&d);
    rig_free(r);
}

static void gap_waits_as_future(void **state)
{
    (void)state;
    RIG;
    struct diary late = {0}, first = {0};
    assert_int_equal(rig_remark(r, r->alice, 1, 0, "b", &late), 0);
    assert_string_equal(diary_text(&late), "future");
    assert_int_equal(r->core.pool.ready.count, 0);
    assert_int_equal(core_next_index(&r->core, rig_id(r->alice)), 0);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &first), 0);
    assert_string_equal(diary_text(&first), "ready");
    assert_string_equal(diary_text(&late), "future ready");
    assert_int_equal(core_next_index(&r->core, rig_id(r->alice)), 2);
    rig_block(r);
    assert_string_equal(diary_text(&first), "ready inBlock:1");
    assert_string_equal(diary_text(&late), "future ready inBlock:1");
    core_finalize(&r->core, 1);
    diary_done(&late);
    diary_done(&first);
    rig_free(r);
}

static void duplicate_bans_but_stays(void **state)
{
    (void)state;
    RIG;
    struct diary d = {0}, other = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &d), 0);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &other), 1013);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &other), 1012);
    assert_string_equal(diary_text(&other), "");
    assert_int_equal(rig_block(r)->tx_count, 2);
    assert_string_equal(diary_text(&d), "ready inBlock:1");
    core_finalize(&r->core, 1);
    diary_done(&d);
    diary_done(&other);
    rig_free(r);
}

static void included_is_banned_then_stale(void **state)
{
    (void)state;
    RIG;
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 0);
    rig_block(r);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 1012);
    r->now_ms += 1800000;
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 1012); /* lapses only with a block */
    rig_block(r);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 1010);
    assert_int_equal(r->last.validity.code, INVALID_STALE);
    rig_free(r);
}

static void a_shorter_ban_lapses_first(void **state)
{
    (void)state;
    RIG;
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 0);
    rig_block(r); /* "a" is banned for 1800 s */
    r->core.pool.config.ban_ms = 0;
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "b", NULL), 1010);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "b", NULL), 1012);
    rig_block(r);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "b", NULL), 1010);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 1012);
    rig_free(r);
}

static void refusals_ban(void **state)
{
    (void)state;
    RIG;
    struct tx_facts f = rig_facts(r);
    struct buf call = {0}, bytes = {0};
    f.spec++;
    call_remark(&call, "x");
    test_sign(&f, r->alice, 0, 0, &call, &bytes);
    assert_int_equal(rig_bytes(r, bytes.data, bytes.len, NULL), 1010);
    assert_int_equal(r->last.validity.code, INVALID_BAD_PROOF);
    assert_int_equal(rig_bytes(r, bytes.data, bytes.len, NULL), 1012);
    static const uint8_t RUBBISH[] = {12, 0x84, 1, 2};
    assert_int_equal(rig_bytes(r, RUBBISH, sizeof RUBBISH, NULL), 1002);
    assert_int_equal(rig_bytes(r, RUBBISH, sizeof RUBBISH, NULL), 1012);
    assert_int_equal(rig_bytes(r, "\x10\x84", 2, NULL), 1001);
    buf_done(&call);
    buf_done(&bytes);
    rig_free(r);
}

static struct validity no_tags(struct rig *r, const struct tx *tx, struct validity v)
{
    (void)r;
    (void)tx;
    v.no_provides = true;
    return v;
}

static struct validity local_only(struct rig *r, const struct tx *tx, struct validity v)
{
    (void)r;
    (void)tx;
    v.no_propagate = true;
    return v;
}

static void some_refusals_do_not_ban(void **state)
{
    (void)state;
    RIG;
    uint8_t unsigned_remark[] = {16, 0x04, 0, 0, 0};
    assert_int_equal(rig_bytes(r, unsigned_remark, 5, NULL), 1011);
    assert_int_equal(r->last.validity.code, UNKNOWN_NO_UNSIGNED_VALIDATOR);
    assert_int_equal(rig_bytes(r, unsigned_remark, 5, NULL), 1011);
    r->verdict = local_only;
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 1018);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 1018);
    r->verdict = no_tags; /* but this one does */
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "b", NULL), 1019);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "b", NULL), 1012);
    rig_free(r);
}

static void replacement_needs_more(void **state)
{
    (void)state;
    RIG;
    struct diary old = {0}, next = {0}, fresh = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 10, "old", &old), 0);
    assert_int_equal(rig_remark(r, r->alice, 1, 0, "next", &next), 0);
    assert_int_equal(rig_remark(r, r->alice, 0, 9, "low", NULL), 1014);
    assert_int_equal(rig_remark(r, r->alice, 0, 10, "equ", NULL), 1014);
    assert_true(r->last.old_priority == r->last.new_priority);
    assert_int_equal(rig_remark(r, r->alice, 0, 10, "equ", NULL), 1014); /* no ban */
    assert_string_equal(diary_text(&old), "ready");
    assert_int_equal(rig_remark(r, r->alice, 0, 11, "new", &fresh), 0);
    char want[40];
    snprintf(want, sizeof want, "ready usurped:%02x%02x", fresh.hash[0], fresh.hash[1]);
    assert_string_equal(diary_text(&old), want);
    assert_string_equal(diary_text(&next), "ready");
    assert_int_equal(rig_block(r)->tx_count, 3);
    assert_string_equal(diary_text(&next), "ready inBlock:1");
    core_finalize(&r->core, 1);
    diary_done(&old);
    diary_done(&next);
    diary_done(&fresh);
    rig_free(r);
}

static void priority_falls_with_length(void **state)
{
    (void)state;
    RIG;
    char text[400];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(rig_remark(r, r->alice, 0, 0, text, NULL), 0);
    assert_int_equal(rig_remark(r, r->bob, 0, 0, "short", NULL), 0);
    const struct pool_tx *lng = pool_ready_at(&r->core.pool, rig_id(r->alice), 0);
    const struct pool_tx *sht = pool_ready_at(&r->core.pool, rig_id(r->bob), 0);
    uint64_t slots = (5u << 20) * 75ull / 100 / lng->tx->len;
    assert_true(lng->priority == slots && sht->priority > lng->priority);
    assert_int_equal(rig_remark(r, r->alice, 0, ~(u128)0 >> 1, text, NULL),
                     1010); /* it cannot pay that tip */
    assert_int_equal(rig_remark(r, r->alice, 0, 7, text, NULL), 0);
    assert_true(pool_ready_at(&r->core.pool, rig_id(r->alice), 0)->priority == 8 * slots);
    const struct block *b = rig_block(r);
    assert_memory_equal(b->txs[1]->signer, rig_id(r->alice), 32); /* the tip goes first */
    rig_free(r);
}

static void small_pool(struct core_config *c)
{
    c->pool.ready_count_max = 2;
    c->pool.future_count_max = 2;
}

static void limits_drop_the_lowest(void **state)
{
    (void)state;
    struct rig *r = rig_new(small_pool);
    struct diary a = {0}, a1 = {0}, b = {0}, c = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 5, "a", &a), 0);
    assert_int_equal(rig_remark(r, r->alice, 1, 50, "a", &a1), 0);
    assert_int_equal(rig_remark(r, r->bob, 0, 0, "b", &b), 1016); /* the newcomer is the lowest */
    assert_string_equal(diary_text(&a), "ready");
    assert_int_equal(rig_remark(r, r->bob, 0, 0, "b", NULL), 1012);
    assert_int_equal(rig_remark(r, r->bob, 0, 9, "b", &c),
                     0); /* alice's first goes, and its dependent */
    assert_string_equal(diary_text(&a), "ready dropped");
    assert_string_equal(diary_text(&a1), "ready dropped");
    assert_int_equal(rig_remark(r, r->alice, 0, 5, "a", NULL), 1012);
    assert_int_equal(r->core.pool.ready.count, 1);
    rig_block(r);
    core_finalize(&r->core, 1);
    assert_string_equal(diary_text(&c), "ready inBlock:1 finalized:1");
    diary_done(&a);
    diary_done(&a1);
    diary_done(&b);
    diary_done(&c);
    rig_free(r);
}

static void small_bytes(struct core_config *c)
{
    c->pool.ready_bytes_max = 500;
    c->pool.future_count_max = 2;
}

static void byte_and_future_limits(void **state)
{
    (void)state;
    struct rig *r = rig_new(small_bytes);
    struct diary f[3] = {0}, a = {0};
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(rig_remark(r, r->bob, 5 + i, 0, "f", &f[i]), 0);
    assert_string_equal(diary_text(&f[0]), "future dropped"); /* the oldest */
    assert_string_equal(diary_text(&f[1]), "future");
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &a), 0);
    char text[380];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(rig_remark(r, r->bob, 0, 100, text, NULL), 0);
    assert_string_equal(diary_text(&a), "ready dropped");
    listener_unwatch(&r->core.listener, &f[1].watch);
    listener_unwatch(&r->core.listener, &f[2].watch);
    for (unsigned i = 0; i < 3; i++)
        diary_done(&f[i]);
    diary_done(&a);
    rig_free(r);
}

static void drained_balance(void **state)
{
    (void)state;
    RIG;
    struct diary second = {0}, third = {0};
    struct buf call = {0};
    /* bob gives everything away with nonce 0; his nonces 1 and 2 were payable alone */
    call_transfer(&call, rig_id(r->alice), 1000 * DEV - 2000000000, CALL_TRANSFER_ALLOW_DEATH);
    assert_int_equal(rig_call(r, r->bob, 0, 0, &call, NULL), 0);
    assert_int_equal(rig_remark(r, r->bob, 1, 1000000000, "b", &second), 0);
    assert_int_equal(rig_remark(r, r->bob, 2, 0, "c", &third), 0);
    rig_block(r);
    assert_string_equal(diary_text(&second), "ready invalid");
    assert_string_equal(diary_text(&third), "ready invalid");
    assert_int_equal(rig_remark(r, r->bob, 1, 1000000000, "b", NULL), 1012);
    buf_done(&call);
    diary_done(&second);
    diary_done(&third);
    rig_free(r);
}

static void mortal_expires(void **state)
{
    (void)state;
    RIG;
    struct tx_facts f = rig_facts(r);
    struct buf call = {0}, bytes = {0};
    struct diary d = {0};
    rig_blocks(r, 4);
    f.era_period = 8;
    f.era_phase = 4;
    memcpy(f.birth, chain_canonical(&r->core.chain, 4)->hash, 32);
    call_remark(&call, "m");
    test_sign(&f, r->alice, 0, 0, &call, &bytes);
    assert_int_equal(rig_bytes(r, bytes.data, bytes.len, &d), 0);
    r->core.min_tip = 1; /* nobody takes it */
    rig_blocks(r, 6);
    assert_string_equal(diary_text(&d), "ready"); /* best 10 */
    rig_block(r);                                 /* best 11 = death - 1 */
    assert_string_equal(diary_text(&d), "ready invalid");
    assert_int_equal(rig_bytes(r, bytes.data, bytes.len, NULL), 1012);
    pool_clear_bans(&r->core.pool);
    assert_int_equal(rig_bytes(r, bytes.data, bytes.len, NULL), 1010);
    assert_int_equal(r->last.validity.code, INVALID_ANCIENT_BIRTH_BLOCK);
    rig_block(r);
    pool_clear_bans(&r->core.pool);
    assert_int_equal(rig_bytes(r, bytes.data, bytes.len, NULL), 1010);
    assert_int_equal(r->last.validity.code, INVALID_BAD_PROOF);
    buf_done(&call);
    buf_done(&bytes);
    diary_done(&d);
    rig_free(r);
}

static void reorg_with_the_same_transaction(void **state)
{
    (void)state;
    RIG;
    struct diary d = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &d), 0);
    rig_block(r);
    assert_true(core_reorg(&r->core, r->now_ms, r->wall_ms,
                           &(struct core_reorg){.depth = 1, .keep_txs = true}));
    assert_string_equal(diary_text(&d), "ready inBlock:1 retracted:1 inBlock:2");
    core_finalize(&r->core, 1);
    assert_string_equal(diary_text(&d), "ready inBlock:1 retracted:1 inBlock:2 finalized:2");
    assert_false(core_reorg(&r->core, r->now_ms, r->wall_ms, &(struct core_reorg){.depth = 2}));
    assert_string_equal(buf_str(&r->heads), "1 2 ");
    diary_done(&d);
    rig_free(r);
}

static void reorg_brings_it_back_to_the_pool(void **state)
{
    (void)state;
    RIG;
    struct diary d = {0}, d1 = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &d), 0);
    rig_block(r);
    assert_int_equal(rig_remark(r, r->alice, 1, 0, "b", &d1), 0);
    assert_true(
        core_reorg(&r->core, r->now_ms, r->wall_ms, &(struct core_reorg){.depth = 1, .length = 1}));
    assert_string_equal(diary_text(&d), "ready inBlock:1 retracted:1 ready");
    assert_string_equal(buf_str(&r->heads), "1 1 "); /* the number repeats */
    rig_block(r);
    assert_string_equal(diary_text(&d), "ready inBlock:1 retracted:1 ready inBlock:3");
    assert_string_equal(diary_text(&d1), "ready inBlock:3");
    core_finalize(&r->core, 2);
    diary_done(&d);
    diary_done(&d1);
    rig_free(r);
}

static void reorg_that_loses_it(void **state)
{
    (void)state;
    RIG;
    struct diary d = {0}, d1 = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &d), 0);
    rig_block(r);
    assert_int_equal(rig_remark(r, r->alice, 1, 0, "b", &d1), 0);
    struct core_reorg lost = {.depth = 1, .no_resubmit = true};
    assert_true(core_reorg(&r->core, r->now_ms, r->wall_ms, &lost));
    assert_string_equal(diary_text(&d), "ready inBlock:1 retracted:1");
    rig_blocks(r, 3);
    assert_string_equal(diary_text(&d), "ready inBlock:1 retracted:1");
    assert_int_equal(core_next_index(&r->core, rig_id(r->alice)), 0);
    assert_string_equal(diary_text(&d1), "ready future"); /* its predecessor is gone */
    listener_unwatch(&r->core.listener, &d.watch);
    listener_unwatch(&r->core.listener, &d1.watch);
    diary_done(&d);
    diary_done(&d1);
    rig_free(r);
}

/* Another transaction of the same nonce gets into a block behind the pool's back: by a reorg that
 * loses the first one from the pool's sight. */
static void rival(bool false_in_block, const char *want)
{
    RIG;
    struct diary d = {0};
    r->core.false_in_block = false_in_block;
    assert_int_equal(rig_remark(r, r->alice, 0, 5, "theirs", NULL), 0);
    rig_block(r);
    assert_true(core_reorg(&r->core, r->now_ms, r->wall_ms,
                           &(struct core_reorg){.depth = 1, .length = 1, .no_resubmit = true}));
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "ours", &d), 0);
    struct tx *theirs = chain_block(&r->core.chain, r->core.chain.side[0]->hash)->txs[1];
    struct exec x;
    struct dispatch_error e;
    exec_init(&x, &r->core.rt, r->wall_ms + 1);
    assert_int_equal(exec_apply(&x, theirs, &e).kind, VALIDITY_OK);
    struct block *b = chain_seal(&r->core.chain, x.txs, x.tx_count, &x.events, x.event_count,
                                 x.timestamp_ms, r->core.rt.version, ++r->core.salt);
    x.tx_count = 0;
    exec_done(&x);
    pool_prune(&r->core.pool, r->now_ms, b->number, b, false_in_block);
    assert_string_equal(diary_text(&d), want);
    listener_unwatch(&r->core.listener, &d.watch);
    diary_done(&d);
    rig_free(r);
}

static void false_in_block(void **state)
{
    (void)state;
    rival(true, "ready inBlock:3");
    rival(false, "ready invalid");
}

static void few_finality_blocks(struct core_config *c)
{
    c->finality_blocks_max = 3;
}

static void finality_stall(void **state)
{
    (void)state;
    struct rig *r = rig_new(few_finality_blocks);
    struct diary d[4] = {0};
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(rig_remark(r, r->alice, i, 0, "a", &d[i]), 0);
        rig_blocks(r, 2); /* every other block holds a watched one */
    }
    assert_string_equal(diary_text(&d[0]), "ready inBlock:1 finalityTimeout:1");
    assert_string_equal(diary_text(&d[1]), "ready inBlock:3");
    core_finalize(&r->core, 8);
    assert_string_equal(diary_text(&d[3]), "ready inBlock:7 finalized:7");
    for (unsigned i = 0; i < 4; i++)
        diary_done(&d[i]);
    rig_free(r);
}

static void a_jump_is_not_told(void **state)
{
    (void)state;
    RIG;
    struct diary d = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &d), 0);
    core_author_burst(&r->core, r->now_ms, r->wall_ms, 21);
    core_finalize(&r->core, 21);
    assert_string_equal(diary_text(&d), "ready");
    assert_int_equal(chain_account_at(&r->core.chain, r->core.chain.best, rig_id(r->alice)).nonce,
                     1);
    listener_unwatch(&r->core.listener, &d.watch);
    diary_done(&d);
    rig_free(r);
}

static void dispatch_failure_is_included(void **state)
{
    (void)state;
    RIG;
    struct diary d = {0};
    struct buf call = {0};
    call_transfer(&call, rig_id(r->bob), 5000 * DEV, CALL_TRANSFER_KEEP_ALIVE);
    assert_int_equal(rig_call(r, r->alice, 0, 0, &call, &d), 0);
    const struct block *b = rig_block(r);
    core_finalize(&r->core, 1);
    assert_string_equal(diary_text(&d), "ready inBlock:1 finalized:1");
    assert_string_equal(block_outcome(b, 1), "module:10:2");
    struct account_rec rec = chain_account_at(&r->core.chain, b, rig_id(r->alice));
    assert_int_equal(rec.nonce, 1);
    assert_true(rec.free == 1000 * DEV - runtime_fee(&r->core.rt, b->txs[1]));
    buf_done(&call);
    diary_done(&d);
    rig_free(r);
}

static void which_refusal_wins(void **state)
{
    (void)state;
    RIG;
    struct tx_facts wrong = rig_facts(r);
    struct buf call = {0}, bytes = {0};
    assert_int_equal(rig_remark(r, r->bob, 0, 0, "b", NULL), 0);
    rig_block(r);
    wrong.genesis[0] ^= 1;
    call_remark(&call, "x");
    test_sign(&wrong, r->bob, 0, 0, &call, &bytes); /* bad signature and old nonce */
    assert_int_equal(rig_bytes(r, bytes.data, bytes.len, NULL), 1010);
    assert_int_equal(r->last.validity.code, INVALID_BAD_PROOF);
    assert_int_equal(rig_remark(r, r->bob, 0, 5000 * DEV, "b", NULL),
                     1010); /* old nonce and no money */
    assert_int_equal(r->last.validity.code, INVALID_STALE);
    assert_int_equal(rig_remark(r, r->charlie, 0, 0, "c", NULL), 1010); /* never funded */
    assert_int_equal(r->last.validity.code, INVALID_PAYMENT);
    assert_int_equal(rig_remark(r, r->bob, 9, 5000 * DEV, "b", NULL),
                     1010); /* ahead and no money */
    assert_int_equal(r->last.validity.code, INVALID_PAYMENT);
    buf_done(&call);
    buf_done(&bytes);
    rig_free(r);
}

static void what_the_signature_covers(void **state)
{
    (void)state;
    RIG;
    rig_blocks(r, 3);
    for (unsigned i = 0; i < 5; i++) {
        struct tx_facts f = rig_facts(r);
        struct buf call = {0}, bytes = {0};
        f.era_period = 64;
        f.era_phase = 2;
        memcpy(f.birth, chain_canonical(&r->core.chain, 2)->hash, 32);
        f.genesis[3] ^= i == 0;
        f.spec += i == 1;
        f.tx_version += i == 2;
        f.birth[5] ^= i == 3;
        call_remark(&call, "x");
        test_sign(&f, r->alice, 0, 0, &call, &bytes);
        assert_int_equal(rig_bytes(r, bytes.data, bytes.len, NULL), i == 4 ? 0 : 1010);
        if (i < 4)
            assert_int_equal(r->last.validity.code, INVALID_BAD_PROOF);
        buf_done(&call);
        buf_done(&bytes);
    }
    rig_free(r);
}

static void upgrade_makes_pooled_ones_invalid(void **state)
{
    (void)state;
    RIG;
    struct diary d = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &d), 0);
    core_upgrade(&r->core, (struct chain_version){101, 1});
    core_author(&r->core, r->now_ms, r->wall_ms, true);
    assert_int_equal(r->runtime_told, 1);
    assert_string_equal(diary_text(&d), "ready invalid");
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 0); /* signed for 101 */
    rig_block(r);
    assert_int_equal(r->runtime_told, 1);
    assert_true(core_reorg(&r->core, r->now_ms, r->wall_ms, &(struct core_reorg){.depth = 2}));
    assert_int_equal(r->core.rt.version.spec, 100); /* the upgrade was on the lost side */
    assert_int_equal(r->runtime_told, 2);
    diary_done(&d);
    rig_free(r);
}

static void reaped_account_repeats(void **state)
{
    (void)state;
    RIG;
    struct buf call = {0};
    assert_int_equal(rig_remark(r, r->bob, 0, 0, "again", NULL), 0);
    const struct block *first = rig_block(r);
    struct core_change gone = {.set_free = true}, back = {.set_free = true, .free = 10 * DEV};
    memcpy(gone.id, rig_id(r->bob), 32);
    memcpy(back.id, rig_id(r->bob), 32);
    core_change_account(&r->core, &gone);
    rig_block(r);
    assert_int_equal(rig_remark(r, r->bob, 1, 0, "x", NULL), 1010);
    assert_int_equal(r->last.validity.code, INVALID_PAYMENT);
    core_change_account(&r->core, &back);
    rig_block(r);
    pool_clear_bans(&r->core.pool);
    assert_int_equal(rig_remark(r, r->bob, 0, 0, "again", NULL), 0);
    const struct block *second = rig_block(r);
    assert_memory_equal(first->txs[1]->hash, second->txs[1]->hash, 32);
    buf_done(&call);
    rig_free(r);
}

static void state_of_old_blocks(void **state)
{
    (void)state;
    RIG;
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(rig_remark(r, r->alice, i, 0, "a", NULL), 0);
        rig_block(r);
    }
    const struct block *lost = r->core.chain.best;
    core_finalize(&r->core, 3);
    assert_true(
        core_reorg(&r->core, r->now_ms, r->wall_ms, &(struct core_reorg){.depth = 2, .length = 1}));
    for (uint64_t n = 0; n <= 3; n++)
        assert_int_equal(
            chain_account_at(&r->core.chain, chain_canonical(&r->core.chain, n), rig_id(r->alice))
                .nonce,
            n);
    assert_int_equal(chain_account_at(&r->core.chain, r->core.chain.best, rig_id(r->alice)).nonce,
                     3);
    assert_int_equal(chain_account_at(&r->core.chain, lost, rig_id(r->alice)).nonce, 5);
    assert_int_equal(chain_account_at(&r->core.chain, lost->parent, rig_id(r->alice)).nonce, 4);
    rig_free(r);
}

static void little_memory(struct core_config *c)
{
    c->keep_bytes_max = 20000;
}

static void old_bodies_are_dropped(void **state)
{
    (void)state;
    struct rig *r = rig_new(little_memory);
    for (uint32_t i = 0; i < 200; i++) {
        assert_int_equal(rig_remark(r, r->alice, i, 0, "a", NULL), 0);
        rig_block(r);
        core_finalize(&r->core, i);
    }
    assert_true(chain_canonical(&r->core.chain, 1)->pruned);
    assert_false(r->core.chain.best->pruned);
    assert_true(r->core.chain.kept_bytes <= 21000);
    assert_int_equal(
        chain_account_at(&r->core.chain, chain_canonical(&r->core.chain, 7), rig_id(r->alice))
            .nonce,
        7);
    rig_free(r);
}

static void full_block(struct core_config *c)
{
    c->block_extrinsics_max = 3;
}

static void author_fills_blocks_in_order(void **state)
{
    (void)state;
    struct rig *r = rig_new(full_block);
    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(rig_remark(r, r->alice, i, i, "a", NULL), 0);
    assert_int_equal(rig_block(r)->tx_count, 4);
    assert_int_equal(rig_block(r)->tx_count, 4);
    assert_int_equal(rig_block(r)->tx_count, 2);
    assert_int_equal(r->core.pool.ready.count, 0);
    rig_free(r);
}

static void batches(void **state)
{
    (void)state;
    static const unsigned CALLS[] = {CALL_BATCH, CALL_BATCH_ALL, CALL_FORCE_BATCH};
    static const char *const OUTCOME[] = {"ok", "module:10:2", "ok"};
    static const u128 GIVEN[] = {1, 0, 2};
    for (unsigned i = 0; i < 3; i++) {
        RIG;
        struct buf call = {0};
        buf_put_u8(&call, (uint8_t)(CALLS[i] >> 8));
        buf_put_u8(&call, (uint8_t)CALLS[i]);
        scale_put_compact(&call, 3);
        call_transfer(&call, rig_id(r->bob), 1 * DEV, CALL_TRANSFER_ALLOW_DEATH);
        call_transfer(&call, rig_id(r->bob), 5000 * DEV, CALL_TRANSFER_ALLOW_DEATH);
        call_transfer(&call, rig_id(r->bob), 1 * DEV, CALL_TRANSFER_ALLOW_DEATH);
        assert_int_equal(rig_call(r, r->alice, 0, 0, &call, NULL), 0);
        const struct block *b = rig_block(r);
        assert_string_equal(block_outcome(b, 1), OUTCOME[i]);
        assert_true(chain_account_at(&r->core.chain, b, rig_id(r->bob)).free ==
                    (1000 + GIVEN[i]) * DEV);
        buf_done(&call);
        rig_free(r);
    }
}

static void futures_of_one_nonce_compete(void **state)
{
    (void)state;
    RIG;
    struct diary low = {0}, high = {0}, gone = {0};
    assert_int_equal(rig_remark(r, r->alice, 1, 0, "low", &low), 0);
    assert_int_equal(rig_remark(r, r->alice, 1, 9, "high", &high), 0);
    assert_int_equal(rig_remark(r, r->alice, 2, 0, "then", &gone), 0);
    assert_int_equal(r->core.pool.future.count, 3);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "first", NULL), 0);
    assert_int_equal(r->core.pool.ready.count, 3);
    assert_string_equal(diary_text(&high), "future ready");
    assert_memory_equal(diary_text(&low), "future ready usurped:", 21);
    assert_string_equal(diary_text(&gone), "future ready");
    rig_block(r);
    core_finalize(&r->core, 1);
    diary_done(&low);
    diary_done(&high);
    diary_done(&gone);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_path),
        cmocka_unit_test(gap_waits_as_future),
        cmocka_unit_test(duplicate_bans_but_stays),
        cmocka_unit_test(included_is_banned_then_stale),
        cmocka_unit_test(a_shorter_ban_lapses_first),
        cmocka_unit_test(refusals_ban),
        cmocka_unit_test(some_refusals_do_not_ban),
        cmocka_unit_test(replacement_needs_more),
        cmocka_unit_test(priority_falls_with_length),
        cmocka_unit_test(limits_drop_the_lowest),
        cmocka_unit_test(byte_and_future_limits),
        cmocka_unit_test(drained_balance),
        cmocka_unit_test(mortal_expires),
        cmocka_unit_test(reorg_with_the_same_transaction),
        cmocka_unit_test(reorg_brings_it_back_to_the_pool),
        cmocka_unit_test(reorg_that_loses_it),
        cmocka_unit_test(false_in_block),
        cmocka_unit_test(finality_stall),
        cmocka_unit_test(a_jump_is_not_told),
        cmocka_unit_test(dispatch_failure_is_included),
        cmocka_unit_test(which_refusal_wins),
        cmocka_unit_test(what_the_signature_covers),
        cmocka_unit_test(upgrade_makes_pooled_ones_invalid),
        cmocka_unit_test(reaped_account_repeats),
        cmocka_unit_test(state_of_old_blocks),
        cmocka_unit_test(old_bodies_are_dropped),
        cmocka_unit_test(author_fills_blocks_in_order),
        cmocka_unit_test(batches),
        cmocka_unit_test(futures_of_one_nonce_compete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
