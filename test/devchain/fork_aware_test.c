/* Where a fork-aware pool differs from the single-state one, as a submitting client sees it: lines
 * 15, 28 and 31 of behaviour.md. The rest of core_test.c's claims hold in both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "testlib.h"

enum { REVALIDATED_AFTER = 11 }; /* final blocks */

static void fork_aware(struct core_config *c)
{
    c->pool.type = POOL_TYPE_FORK_AWARE;
}

static void forget(struct rig *r, struct diary *d)
{
    listener_unwatch(&r->core.listener, &d->watch);
    diary_done(d);
}

static void finalize_best(struct rig *r)
{
    core_finalize(&r->core, r->core.chain.best->number);
}

static void known_until_final(void **state)
{
    (void)state;
    struct rig *r = rig_new(fork_aware);
    struct diary d = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &d), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 1013);
    assert_int_equal(r->core.pool.bans.count, 0);
    assert_int_equal(rig_block(r)->tx_count, 2);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 1013);
    finalize_best(r);
    assert_string_equal(diary_text(&d), "ready inBlock:1 finalized:1");
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL),
                     1012); /* the view banned what it included */
    pool_clear_bans(&r->core.pool);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 1010);
    assert_int_equal(r->last.validity.code, INVALID_STALE);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL),
                     1012); /* refused: not kept, and banned */
    forget(r, &d);
    rig_free(r);
}

static void reorg_is_a_second_in_block(void **state)
{
    (void)state;
    struct rig *r = rig_new(fork_aware);
    struct diary d = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &d), 0);
    rig_block(r);
    assert_true(core_reorg(&r->core, r->now_ms, r->wall_ms,
                           &(struct core_reorg){.depth = 1, .keep_txs = true}));
    assert_string_equal(diary_text(&d), "ready inBlock:1 inBlock:2");
    finalize_best(r);
    assert_string_equal(diary_text(&d), "ready inBlock:1 inBlock:2 finalized:2");
    forget(r, &d);
    rig_free(r);
}

static void reorg_back_to_the_pool_is_not_told(void **state)
{
    (void)state;
    struct rig *r = rig_new(fork_aware);
    struct diary d = {0}, d1 = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &d), 0);
    rig_block(r);
    assert_int_equal(rig_remark(r, r->alice, 1, 0, "b", &d1), 0);
    assert_true(
        core_reorg(&r->core, r->now_ms, r->wall_ms, &(struct core_reorg){.depth = 1, .length = 1}));
    assert_string_equal(diary_text(&d), "ready inBlock:1");
    assert_int_equal(r->core.pool.ready.count, 2);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 1013);
    rig_block(r);
    assert_string_equal(diary_text(&d), "ready inBlock:1 inBlock:3");
    assert_string_equal(diary_text(&d1), "ready inBlock:3");
    finalize_best(r);
    forget(r, &d);
    forget(r, &d1);
    rig_free(r);
}

static void reorg_that_loses_it(void **state)
{
    (void)state;
    struct rig *r = rig_new(fork_aware);
    struct diary d = {0}, d1 = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &d), 0);
    rig_block(r);
    assert_int_equal(rig_remark(r, r->alice, 1, 0, "b", &d1), 0);
    struct core_reorg lost = {.depth = 1, .no_resubmit = true};
    assert_true(core_reorg(&r->core, r->now_ms, r->wall_ms, &lost));
    rig_blocks(r, 3);
    assert_string_equal(diary_text(&d), "ready inBlock:1");
    assert_int_equal(r->core.pool.future.count, 1);
    assert_string_equal(diary_text(&d1), "ready"); /* a future again, and never after ready */
    forget(r, &d);
    forget(r, &d1);
    rig_free(r);
}

static void future_and_ready_once(void **state)
{
    (void)state;
    struct rig *r = rig_new(fork_aware);
    struct diary first = {0}, late = {0};
    assert_int_equal(rig_remark(r, r->alice, 1, 0, "b", &late), 0);
    assert_string_equal(diary_text(&late), "future");
    rig_blocks(r, 2);
    assert_string_equal(diary_text(&late), "future");
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &first), 0);
    assert_string_equal(diary_text(&late), "future ready");
    rig_block(r);
    assert_true(
        core_reorg(&r->core, r->now_ms, r->wall_ms, &(struct core_reorg){.depth = 1, .length = 1}));
    rig_block(r);
    assert_string_equal(diary_text(&late), "future ready inBlock:3 inBlock:5");
    forget(r, &first);
    forget(r, &late);
    rig_free(r);
}

static void short_stall(struct core_config *c)
{
    c->pool.type = POOL_TYPE_FORK_AWARE;
    c->pool.finality_timeout_blocks = 3;
    c->finality_blocks_max = 1; /* counts in the other pool only */
}

static void finality_stall(void **state)
{
    (void)state;
    struct rig *r = rig_new(short_stall);
    struct diary d[3] = {0};
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(rig_remark(r, r->alice, i, 0, "a", &d[i]), 0);
        rig_block(r);
    }
    rig_block(r);
    assert_string_equal(diary_text(&d[0]), "ready inBlock:1"); /* distance 3 */
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 1013);
    rig_block(r);
    assert_string_equal(diary_text(&d[0]), "ready inBlock:1 finalityTimeout:1");
    assert_string_equal(diary_text(&d[1]), "ready inBlock:2");
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 1012); /* the mempool let go of it */
    finalize_best(r);
    assert_string_equal(diary_text(&d[0]), "ready inBlock:1 finalityTimeout:1");
    assert_string_equal(diary_text(&d[2]), "ready inBlock:3 finalized:3");
    for (unsigned i = 0; i < 3; i++)
        forget(r, &d[i]);
    rig_free(r);
}

/* bob's nonces 0 and 1 are in the pool when his money goes, by a block that holds neither. */
static void drain_bob(struct rig *r, struct diary *first, struct diary *second)
{
    struct core_change gone = {.set_free = true, .free = 2000000000};
    memcpy(gone.id, rig_id(r->bob), 32);
    assert_int_equal(rig_remark(r, r->bob, 0, 2000000000, "b", first), 0);
    assert_int_equal(rig_remark(r, r->bob, 1, 2000000000, "c", second), 0);
    core_change_account(&r->core, &gone);
    core_author(&r->core, r->now_ms, r->wall_ms, true);
}

static void invalid_comes_late(void **state)
{
    (void)state;
    struct rig *r = rig_new(fork_aware);
    struct diary first = {0}, second = {0};
    drain_bob(r, &first, &second);
    assert_int_equal(r->core.pool.ready.count, 0);
    rig_blocks(r, REVALIDATED_AFTER - 1);
    core_finalize(&r->core, REVALIDATED_AFTER - 1);
    assert_string_equal(diary_text(&first), "ready");
    assert_int_equal(rig_remark(r, r->bob, 0, 2000000000, "b", NULL), 1013);
    core_finalize(&r->core, REVALIDATED_AFTER);
    assert_string_equal(diary_text(&first), "ready invalid");
    assert_string_equal(diary_text(&second), "ready invalid");
    forget(r, &first);
    forget(r, &second);
    rig_free(r);
}

static void invalid_in_one_view_comes_back(void **state)
{
    (void)state;
    struct rig *r = rig_new(fork_aware);
    struct diary first = {0}, second = {0};
    drain_bob(r, &first, &second);
    struct core_change funds = {.set_free = true, .free = 10 * DEV};
    memcpy(funds.id, rig_id(r->bob), 32);
    core_change_account(&r->core, &funds);
    rig_block(r);
    assert_int_equal(r->core.pool.ready.count, 2);
    assert_int_equal(rig_block(r)->tx_count, 3);
    finalize_best(r);
    assert_string_equal(diary_text(&first), "ready inBlock:3 finalized:3");
    assert_string_equal(diary_text(&second), "ready inBlock:3 finalized:3");
    forget(r, &first);
    forget(r, &second);
    rig_free(r);
}

/* bob gives everything away with nonce 0; nonces 1 and 2 were payable alone. */
static void author_condemns_one(void **state)
{
    (void)state;
    struct rig *r = rig_new(fork_aware);
    struct diary second = {0}, third = {0};
    struct buf call = {0};
    call_transfer(&call, rig_id(r->alice), 1000 * DEV - 2000000000, CALL_TRANSFER_ALLOW_DEATH);
    assert_int_equal(rig_call(r, r->bob, 0, 0, &call, NULL), 0);
    assert_int_equal(rig_remark(r, r->bob, 1, 1000000000, "b", &second), 0);
    assert_int_equal(rig_remark(r, r->bob, 2, 0, "c", &third), 0);
    rig_block(r);
    assert_string_equal(diary_text(&second), "ready invalid");
    assert_int_equal(rig_remark(r, r->bob, 1, 1000000000, "b", NULL), 1012);
    assert_string_equal(diary_text(&third), "ready"); /* its dependent hears nothing */
    buf_done(&call);
    forget(r, &second);
    forget(r, &third);
    rig_free(r);
}

static void replacement_is_told_at_once(void **state)
{
    (void)state;
    struct rig *r = rig_new(fork_aware);
    struct diary old = {0}, next = {0}, fresh = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 10, "old", &old), 0);
    assert_int_equal(rig_remark(r, r->alice, 1, 0, "next", &next), 0);
    assert_int_equal(rig_remark(r, r->alice, 0, 9, "low", NULL), 1014);
    assert_int_equal(rig_remark(r, r->alice, 0, 9, "low", NULL), 1014); /* not kept */
    assert_int_equal(rig_remark(r, r->alice, 0, 10, "equ", NULL), 1014);
    assert_true(r->last.old_priority == r->last.new_priority);
    assert_string_equal(diary_text(&old), "ready");
    assert_int_equal(rig_remark(r, r->alice, 0, 11, "new", &fresh), 0);
    char want[40];
    snprintf(want, sizeof want, "ready usurped:%02x%02x", fresh.hash[0], fresh.hash[1]);
    assert_string_equal(diary_text(&old), want);
    assert_int_equal(rig_remark(r, r->alice, 0, 10, "old", NULL), 1014); /* not kept either */
    assert_int_equal(rig_block(r)->tx_count, 3);
    assert_string_equal(diary_text(&next), "ready inBlock:1");
    forget(r, &old);
    forget(r, &next);
    forget(r, &fresh);
    rig_free(r);
}

static void small_view(struct core_config *c)
{
    c->pool.type = POOL_TYPE_FORK_AWARE;
    c->pool.ready_count_max = 1;
    c->pool.future_count_max = 0;
}

static void dropped_when_no_view_has_it(void **state)
{
    (void)state;
    struct rig *r = rig_new(small_view);
    struct diary now = {0}, later = {0}, b = {0};
    r->core.min_tip = 1000; /* nobody is included */
    assert_int_equal(rig_remark(r, r->alice, 0, 5, "a", &now), 0);
    assert_int_equal(rig_remark(r, r->bob, 0, 4, "b", NULL), 1016);
    assert_int_equal(rig_remark(r, r->bob, 0, 9, "c", &later), 0);
    assert_string_equal(diary_text(&now), "ready dropped"); /* this view only */
    rig_block(r);
    assert_int_equal(rig_remark(r, r->alice, 0, 99, "d", &b), 0);
    assert_string_equal(diary_text(&later), "ready"); /* the view of genesis still has it */
    assert_int_equal(rig_remark(r, r->bob, 0, 9, "c", NULL), 1013);
    finalize_best(r);
    assert_string_equal(diary_text(&later), "ready dropped");
    assert_string_equal(diary_text(&b), "ready");
    forget(r, &now);
    forget(r, &later);
    forget(r, &b);
    rig_free(r);
}

static void mempool_limit(void **state)
{
    (void)state;
    struct rig *r = rig_new(small_view); /* four in the mempool */
    struct diary d[4] = {0}, high = {0};
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(rig_remark(r, r->alice, i, i == 2 ? 0 : 5, "a", &d[i]), 0);
        rig_block(r); /* not final: they stay */
    }
    assert_int_equal(rig_remark(r, r->alice, 4, 0, "a", NULL), 1016); /* none is strictly lower */
    assert_int_equal(rig_remark(r, r->alice, 4, 0, "a", NULL), 1016); /* no ban */
    assert_int_equal(rig_remark(r, r->alice, 4, 1, "a", &high), 0);
    assert_string_equal(diary_text(&d[2]), "ready inBlock:3 dropped"); /* the lowest */
    assert_string_equal(diary_text(&high), "ready");
    finalize_best(r);
    assert_string_equal(diary_text(&d[0]), "ready inBlock:1 finalized:1");
    assert_int_equal(rig_remark(r, r->bob, 0, 0, "b", NULL), 1016); /* room, but not in the view */
    for (unsigned i = 0; i < 4; i++)
        forget(r, &d[i]);
    forget(r, &high);
    rig_free(r);
}

static void removal_names_one(void **state)
{
    (void)state;
    struct rig *r = rig_new(fork_aware);
    struct diary root = {0}, next = {0};
    struct buf removed = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &root), 0);
    assert_int_equal(rig_remark(r, r->alice, 1, 0, "b", &next), 0);
    pool_remove_invalid(&r->core.pool, r->now_ms, root.hash, &removed);
    assert_int_equal(removed.len, 32);
    assert_memory_equal(removed.data, root.hash, 32);
    assert_string_equal(diary_text(&root), "ready invalid");
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 1012);
    rig_block(r);
    assert_string_equal(diary_text(&next), "ready"); /* a future now, in silence */
    assert_int_equal(r->core.pool.future.count, 1);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "other", NULL), 0);
    rig_block(r);
    assert_string_equal(diary_text(&next), "ready inBlock:2");
    buf_done(&removed);
    forget(r, &root);
    forget(r, &next);
    rig_free(r);
}

static void expired_is_told_late(void **state)
{
    (void)state;
    struct rig *r = rig_new(fork_aware);
    struct tx_facts f = rig_facts(r);
    struct buf call = {0}, bytes = {0};
    struct diary d = {0};
    f.era_period = 8;
    memcpy(f.birth, chain_canonical(&r->core.chain, 0)->hash, 32);
    call_remark(&call, "m");
    test_sign(&f, r->alice, 0, 0, &call, &bytes);
    assert_int_equal(rig_bytes(r, bytes.data, bytes.len, &d), 0);
    r->core.min_tip = 1; /* nobody takes it */
    rig_blocks(r, 8);
    assert_int_equal(r->core.pool.ready.count, 0);
    core_finalize(&r->core, 8);
    assert_string_equal(diary_text(&d), "ready");
    assert_int_equal(rig_bytes(r, bytes.data, bytes.len, NULL), 1013);
    rig_blocks(r, 3);
    finalize_best(r);
    assert_string_equal(diary_text(&d), "ready invalid");
    buf_done(&call);
    buf_done(&bytes);
    forget(r, &d);
    rig_free(r);
}

static void jump_is_told_by_finality(void **state)
{
    (void)state;
    struct rig *r = rig_new(fork_aware);
    struct diary d = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &d), 0);
    core_author_burst(&r->core, r->now_ms, r->wall_ms, 21);
    assert_string_equal(diary_text(&d), "ready");
    finalize_best(r);
    assert_string_equal(diary_text(&d), "ready finalized:1");
    rig_block(r); /* what the view still held of it is gone */
    assert_int_equal(r->core.pool.ready.count, 0);
    forget(r, &d);
    rig_free(r);
}

static void dropping_by_hand_empties_both(void **state)
{
    (void)state;
    struct rig *r = rig_new(fork_aware);
    struct diary gone = {0};
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", NULL), 0);
    assert_int_equal(pool_drop(&r->core.pool, NULL, true), 1);
    assert_int_equal(rig_remark(r, r->alice, 0, 0, "a", &gone), 0);
    assert_int_equal(pool_drop(&r->core.pool, gone.hash, false), 1);
    assert_string_equal(diary_text(&gone), "ready dropped");
    assert_int_equal(rig_block(r)->tx_count, 1);
    forget(r, &gone);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_until_final),
        cmocka_unit_test(reorg_is_a_second_in_block),
        cmocka_unit_test(reorg_back_to_the_pool_is_not_told),
        cmocka_unit_test(reorg_that_loses_it),
        cmocka_unit_test(future_and_ready_once),
        cmocka_unit_test(finality_stall),
        cmocka_unit_test(invalid_comes_late),
        cmocka_unit_test(invalid_in_one_view_comes_back),
        cmocka_unit_test(author_condemns_one),
        cmocka_unit_test(replacement_is_told_at_once),
        cmocka_unit_test(dropped_when_no_view_has_it),
        cmocka_unit_test(mempool_limit),
        cmocka_unit_test(removal_names_one),
        cmocka_unit_test(expired_is_told_late),
        cmocka_unit_test(jump_is_told_by_finality),
        cmocka_unit_test(dropping_by_hand_empties_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
