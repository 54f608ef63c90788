/* Repair and statuses: what is doubtful is asked, and mended at the right time, once. */
#include "manager_harness.h"

static const char *stored_state(struct script *s)
{
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_STATES);
    assert_int_equal(fx->states.count, 1);
    return fx->states.rows[0].state;
}

/* Each status is told to followers, with its block when it has one. */
static void statuses(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    static const struct {
        enum tx_status status;
        const char *name;
    } steps[] = {{TX_FUTURE, "future"},       {TX_READY, "ready"},
                 {TX_BROADCAST, "broadcast"}, {TX_IN_BLOCK, "in_block"},
                 {TX_RETRACTED, "retracted"}, {TX_READY, "ready"},
                 {TX_IN_BLOCK, "in_block"},   {TX_FINALITY_TIMEOUT, "finality_timeout"}};
    for (unsigned i = 0; i < 8; i++) {
        bool block = steps[i].status >= TX_IN_BLOCK;
        status(s, 5, steps[i].status, block ? block_of(3) : NULL);
        const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_STATES);
        assert_string_equal(fx->states.rows[0].state, steps[i].name);
        assert_int_equal(fx->states.rows[0].has_block, block);
        if (block)
            assert_memory_equal(fx->states.rows[0].block_hash, block_of(3), 32);
        assert_memory_equal(fx->states.rows[0].hash, hash_of(5, 1), 32);
        stored(s, MANAGER_FX_STORE_STATES);
    }
    script_free(s);
}

/* While one write is in flight statuses gather; the next write has the last of each row only. */
static void coalesced(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 2);
    status(s, 5, TX_READY, NULL);
    expect(s, MANAGER_FX_STORE_STATES);
    status(s, 5, TX_BROADCAST, NULL);
    status(s, 6, TX_READY, NULL);
    status(s, 5, TX_IN_BLOCK, block_of(1));
    none(s, MANAGER_FX_STORE_STATES);
    stored(s, MANAGER_FX_STORE_STATES);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_STATES);
    assert_int_equal(fx->states.count, 2);
    assert_string_equal(fx->states.rows[0].state, "in_block");
    assert_string_equal(fx->states.rows[1].state, "ready");
    stored(s, MANAGER_FX_STORE_STATES);
    none(s, MANAGER_FX_STORE_STATES);
    status(s, 6, TX_READY, NULL); /* nothing new */
    quiet(s);
    script_free(s);
}

/* A status that ends a row's doubt is not stored after its end. */
static void not_stored_after_end(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 2);
    status(s, 6, TX_READY, NULL);
    status(s, 5, TX_IN_BLOCK, block_of(1));
    finalized_ours(s, 5);
    stored(s, MANAGER_FX_STORE_STATES);
    none(s, MANAGER_FX_STORE_STATES);
    script_free(s);
}

/* A pool status that comes after in_block does not bring the row back. */
static void late_pool_status(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    status(s, 5, TX_IN_BLOCK, block_of(1));
    stored(s, MANAGER_FX_STORE_STATES);
    status(s, 5, TX_BROADCAST, NULL);
    quiet(s);
    assert_int_equal(manager_view_of(s->m).in_block, 1);
    script_free(s);
}

/* Retracted: shown as such, asked about at the next block; the pool has it again, so nothing is
 * sent. */
static void retracted_and_pooled(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    status(s, 5, TX_IN_BLOCK, block_of(1));
    stored(s, MANAGER_FX_STORE_STATES);
    status(s, 5, TX_RETRACTED, block_of(1));
    assert_string_equal(stored_state(s), "retracted");
    assert_int_equal(manager_view_of(s->m).in_block, 0);
    none(s, MANAGER_FX_ASK_POOL);
    best(s);
    probe(s, 5, 1, hash_of(5, 1));
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* Retracted and then nothing: the same bytes again. */
static void retracted_and_lost(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    status(s, 5, TX_IN_BLOCK, block_of(1));
    status(s, 5, TX_RETRACTED, block_of(1));
    best(s);
    probe(s, 5, 0);
    expect_submit(s, 5);
    script_free(s);
}

/* A retraction of a block that the row is not in any more is late news. */
static void late_retraction(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    status(s, 5, TX_IN_BLOCK, block_of(1));
    status(s, 5, TX_IN_BLOCK, block_of(2));
    stored(s, MANAGER_FX_STORE_STATES);
    expect(s, MANAGER_FX_STORE_STATES);
    status(s, 5, TX_RETRACTED, block_of(1));
    quiet(s);
    assert_int_equal(manager_view_of(s->m).in_block, 1);
    script_free(s);
}

/* A fork-aware pool retracts without a word: the next probe's nonce shows it. */
static void silent_retraction(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 2);
    status(s, 5, TX_IN_BLOCK, block_of(1));
    status(s, 6, TX_IN_BLOCK, block_of(1));
    stored(s, MANAGER_FX_STORE_STATES);
    for (unsigned i = 0; i < 4; i++)
        best(s);
    none(s, MANAGER_FX_ASK_POOL);
    best(s); /* five blocks without news */
    probe(s, 6, 0);
    none(s, MANAGER_FX_SUBMIT); /* it may have come back to the pool after that was asked */
    probe(s, 6, 0);
    expect_submit(s, 6);
    none(s, MANAGER_FX_SUBMIT);
    assert_int_equal(manager_view_of(s->m).in_block, 1);
    script_free(s);
}

static void lost_by(enum tx_status st, const char *name)
{
    struct script *s = leading_pooled(5, 1);
    best(s);
    status(s, 5, st, st == TX_USURPED ? hash_of(5, 42) : NULL);
    assert_string_equal(stored_state(s), name);
    probe(s, 5, 0);
    expect_submit(s, 5);
    script_free(s);
}

/* Invalid, dropped and usurped are doubts, not ends: the pool and the nonce are asked at once, then
 * the same bytes go again. */
static void lost_from_pool(void **state)
{
    (void)state;
    lost_by(TX_INVALID, "invalid");
    lost_by(TX_DROPPED, "dropped");
    lost_by(TX_USURPED, "usurped");
}

/* Dropped in the block in which it was sent: the next try waits for the next block. */
static void one_try_a_block(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    status(s, 5, TX_DROPPED, NULL);
    probe(s, 5, 0);
    none(s, MANAGER_FX_SUBMIT);
    none(s, MANAGER_FX_ASK_POOL);
    best(s);
    probe(s, 5, 0);
    expect_submit(s, 5);
    script_free(s);
}

/* Said to be invalid, yet in a block: nothing is done. */
static void invalid_but_included(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    status(s, 5, TX_INVALID, NULL);
    probe(s, 6, 0);
    none(s, MANAGER_FX_SUBMIT);
    assert_int_equal(manager_view_of(s->m).in_block, 1);
    finalized_ours(s, 5);
    expect(s, MANAGER_FX_STORE_FINISH);
    script_free(s);
}

/* Finality timeout: the row is in a block most likely; the question settles it. */
static void finality_timeout(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    status(s, 5, TX_IN_BLOCK, block_of(1));
    status(s, 5, TX_FINALITY_TIMEOUT, block_of(1));
    probe(s, 6, 0);
    assert_int_equal(manager_view_of(s->m).in_block, 1);
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* A lost watch is not a lost transaction. */
static void watch_is_lost(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    watch_lost(s, 5);
    probe(s, 5, 1, hash_of(5, 1));
    none(s, MANAGER_FX_SUBMIT);
    finalized_ours(s, 5);
    none(s, MANAGER_FX_UNWATCH);
    script_free(s);
}

/* No news for reprobe_blocks: asked about, without holding up later nonces. */
static void silence(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    for (unsigned i = 0; i < 4; i++) {
        best(s);
        quiet(s);
    }
    best(s);
    expect(s, MANAGER_FX_ASK_POOL);
    outbox(s, 1);
    admitted(s);
    expect_submit(s, 6);
    pool_is(s, 0);
    nonce_is(s, 5);
    expect_submit(s, 5); /* evicted without a word */
    script_free(s);
}

/* A chain that makes a block only when a pool has something for it makes none after the pool has
 * lost ours. What the pool still has is asked about more and more rarely. */
static void silence_without_blocks(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    uint64_t before = s->now, first;
    tick(s);
    first = s->now - before;
    assert_true(first >= 30000);
    probe(s, 5, 1, hash_of(5, 1));
    none(s, MANAGER_FX_SUBMIT);
    for (unsigned i = 0; i < 5; i++) {
        before = s->now;
        tick(s);
        probe(s, 5, 1, hash_of(5, 1));
        none(s, MANAGER_FX_SUBMIT);
    }
    assert_true(s->now - before > first);
    tick(s);
    probe(s, 5, 0);
    tick(s); /* not twice without a block or a step of time */
    probe(s, 5, 0);
    expect_submit(s, 5);
    script_free(s);
}

/* A row that became doubtful after the questions were asked is not judged by their answers. */
static void judged_by_a_later_probe(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 2);
    best(s);
    status(s, 5, TX_DROPPED, NULL);
    expect(s, MANAGER_FX_ASK_POOL);
    status(s, 6, TX_DROPPED, NULL);
    none(s, MANAGER_FX_ASK_POOL);
    pool_is(s, 0);
    nonce_is(s, 5);
    expect_submit(s, 5);
    none(s, MANAGER_FX_SUBMIT);
    probe(s, 5, 1, hash_of(6, 1)); /* the second probe, for nonce 6 */
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* A node that answers a nonce below the finalized one lags: its answer is not used. */
static void lagging_answer(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 2);
    finalized_ours(s, 5);
    stored(s, MANAGER_FX_STORE_FINISH);
    best(s);
    status(s, 6, TX_DROPPED, NULL);
    probe(s, 3, 0);
    none(s, MANAGER_FX_FILL);
    none(s, MANAGER_FX_SUBMIT);
    tick(s);
    probe(s, 6, 0);
    expect_submit(s, 6);
    script_free(s);
}

/* A runtime upgrade: pooled rows are asked about; what the pool still has is left, the rest is
 * signed again in nonce order. */
static void runtime_upgrade(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 3);
    runtime(s, SPEC + 1);
    assert_int_equal(manager_view_of(s->m).unsure, 3);
    probe(s, 5, 1, hash_of(6, 1));
    const struct manager_effect *fx = expect(s, MANAGER_FX_RESIGN);
    assert_int_equal(fx->sign.count, 2);
    assert_int_equal(fx->sign.rows[0].nonce, 5);
    assert_int_equal(fx->sign.rows[1].nonce, 7);
    assert_string_equal(fx->sign.rows[0].reason, "runtime version changed");
    none(s, MANAGER_FX_SUBMIT);
    s->taken[fx - s->fx] = false;
    resigned(s);
    expect_submit(s, 5);
    expect_submit(s, 7);
    none(s, MANAGER_FX_SUBMIT);
    status(s, 6, TX_INVALID, NULL); /* the pool found out */
    probe(s, 5, 0);
    assert_int_equal(expect(s, MANAGER_FX_RESIGN)->sign.rows[0].nonce, 6);
    script_free(s);
}

/* Rows in a block are not touched by a runtime upgrade; rows never sent need no question. */
static void runtime_in_block_and_unsent(void **state)
{
    (void)state;
    struct script *s = leading_with(&(struct manager_config){.unanswered_max = 1}, 5);
    outbox(s, 3);
    admitted(s);
    accept(s, 5);
    status(s, 5, TX_IN_BLOCK, block_of(1));
    runtime(s, SPEC + 1); /* 6 is on the wire, 7 was never sent */
    none(s, MANAGER_FX_ASK_POOL);
    const struct manager_effect *fx = expect(s, MANAGER_FX_RESIGN);
    assert_int_equal(fx->sign.count, 1);
    assert_int_equal(fx->sign.rows[0].nonce, 7);
    script_free(s);
}

/* Deterministic signatures over one era give the same bytes again: one attempt, not two. */
static void same_bytes_again(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    runtime(s, SPEC + 1);
    probe(s, 5, 0);
    expect(s, MANAGER_FX_RESIGN);
    struct tx_attempt w = {.nonce = 5,
                           .id = 1,
                           .bytes = (const uint8_t *)"12345678",
                           .bytes_len = 8,
                           .call_len = 4,
                           .era_death = 164,
                           .spec_version = SPEC + 1};
    memcpy(w.hash, hash_of(5, 1), 32);
    feed(s, (struct manager_event){
                .type = MANAGER_EV_STORED,
                .stored = {.write = MANAGER_FX_RESIGN, .attempts = {.rows = &w, .count = 1}}});
    none(s, MANAGER_FX_SUBMIT); /* the bytes that did not do: not before a block */
    best(s);
    expect(s, MANAGER_FX_SUBMIT);
    finalized_ours(s, 5);
    expect(s, MANAGER_FX_STORE_FINISH);
    stored(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(manager_view_of(s->m).open, 0);
    script_free(s);
}

/* The database was away and may lack what was stored (txsim): the rows are read again, under the
 * same epoch. */
static void store_is_back(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    finalized_ours(s, 5);
    expect(s, MANAGER_FX_STORE_FINISH);
    stored(s, MANAGER_FX_STORE_FINISH);
    feed(s, (struct manager_event){.type = MANAGER_EV_STORE_BACK});
    expect(s, MANAGER_FX_UNWATCH_ALL);
    assert_int_equal(expect(s, MANAGER_FX_LOAD)->after_nonce, -1);
    assert_int_equal(manager_phase(s->m), MANAGER_LOAD_WAIT);
    script_free(s);
}

/* A row that waits to be sent again and whose nonce is used was in some pool all the time
 * (txsim). */
static void unsent_and_used(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 2);
    best(s);
    status(s, 5, TX_DROPPED, NULL);
    probe(s, 5, 1, hash_of(6, 1));
    expect_submit(s, 5);
    refuse(s, 5, -32000, "busy"); /* waits for the next block */
    assert_int_equal(manager_view_of(s->m).unsent, 1);
    status(s, 6, TX_DROPPED, NULL);
    probe(s, 7, 0);
    assert_int_equal(manager_view_of(s->m).in_block, 2);
    best(s);
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* Nonces that a fork gave to somebody else and took back leave a hole, which is filled. */
static void foreign_use_retracted(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    best(s);
    status(s, 5, TX_DROPPED, NULL);
    probe_foreign(s, 8); /* somebody used 6 and 7 in the best block */
    expect_alert(s, "account nonce is 8");
    stored(s, MANAGER_FX_STORE_NONCE);
    outbox(s, 1);
    admitted(s);
    expect_submit(s, 8);
    accept(s, 8);
    best(s);
    status(s, 8, TX_DROPPED, NULL);
    probe(s, 5, 0);
    const struct manager_effect *fx = expect(s, MANAGER_FX_FILL);
    assert_int_equal(fx->sign.count, 2);
    assert_int_equal(fx->sign.rows[0].nonce, 6);
    probe(s, 5, 0);
    expect_submit(s, 5); /* retracted too */
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* A door that never answers a question does not stop repair for ever. */
static void unanswered_question(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    watch_lost(s, 5);
    expect(s, MANAGER_FX_ASK_POOL);
    while (count_of(s, MANAGER_FX_ASK_POOL) == 0)
        tick(s);
    assert_true(s->now > 30000);
    script_free(s);
}

/* I6: how long a nonce is missing below others in the pool is measured, and told when it is too
 * long. */
static void gap_is_measured(void **state)
{
    (void)state;
    struct script *s = leading_with(&(struct manager_config){.gap_blocks = 3}, 5);
    outbox(s, 2);
    admitted(s);
    refuse(s, 5, 1010,
           "Invalid Transaction: Inability to pay some fees (e.g. account balance too low)");
    accept(s, 6);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(manager_view_of(s->m).gap_blocks, i ? i - 1 : 0);
        best(s);
        assert_int_equal(count_of(s, MANAGER_FX_ALERT), i == 3);
        if (i == 3)
            expect_alert(s, "nonce 5 is missing for 3 blocks");
        refuse(s, 5, 1010,
               "Invalid Transaction: Inability to pay some fees (e.g. account balance too low)");
    }
    best(s);
    accept(s, 5);
    best(s);
    assert_int_equal(manager_view_of(s->m).gap_blocks, 0);
    assert_int_equal(manager_view_of(s->m).gap_longest, 5);
    script_free(s);
}

/* A refusal that is late, or wrong: while new bytes wait for the next block, a probe finds the
 * nonce used. */
static void used_while_new_bytes_wait(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    outbox(s, 1);
    admitted(s);
    status(s, 5, TX_DROPPED, NULL);
    pool_is(s, 0);
    refuse(s, 6, 1010, "Invalid Transaction: Transaction has a bad signature");
    none(s, MANAGER_FX_RESIGN);
    nonce_is(s, 7);
    best(s);
    none(s, MANAGER_FX_RESIGN);
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* Seed 3500005774: the same while the new bytes are signed. */
static void used_while_new_bytes_are_signed(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    outbox(s, 1);
    admitted(s);
    refuse(s, 6, 1010, "Invalid Transaction: Transaction has a bad signature");
    stored(s, MANAGER_FX_STORE_STATES);
    status(s, 5, TX_DROPPED, NULL);
    best(s);
    expect(s, MANAGER_FX_RESIGN);
    pool_is(s, 0);
    nonce_is(s, 7);
    uint8_t bytes[BYTES_LEN] = {6};
    struct tx_attempt again = {.nonce = 6,
                               .id = 2,
                               .bytes = bytes,
                               .bytes_len = BYTES_LEN,
                               .call_len = CALL_LEN,
                               .era_death = 200,
                               .spec_version = SPEC};
    memcpy(again.hash, hash_of(6, 2), 32);
    feed(s, (struct manager_event){
                .type = MANAGER_EV_STORED,
                .stored = {.write = MANAGER_FX_RESIGN, .attempts = {.rows = &again, .count = 1}}});
    none(s, MANAGER_FX_SUBMIT);
    best(s);
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses),
        cmocka_unit_test(coalesced),
        cmocka_unit_test(not_stored_after_end),
        cmocka_unit_test(late_pool_status),
        cmocka_unit_test(retracted_and_pooled),
        cmocka_unit_test(retracted_and_lost),
        cmocka_unit_test(late_retraction),
        cmocka_unit_test(silent_retraction),
        cmocka_unit_test(lost_from_pool),
        cmocka_unit_test(one_try_a_block),
        cmocka_unit_test(invalid_but_included),
        cmocka_unit_test(finality_timeout),
        cmocka_unit_test(watch_is_lost),
        cmocka_unit_test(silence),
        cmocka_unit_test(silence_without_blocks),
        cmocka_unit_test(judged_by_a_later_probe),
        cmocka_unit_test(lagging_answer),
        cmocka_unit_test(runtime_upgrade),
        cmocka_unit_test(runtime_in_block_and_unsent),
        cmocka_unit_test(same_bytes_again),
        cmocka_unit_test(store_is_back),
        cmocka_unit_test(unsent_and_used),
        cmocka_unit_test(foreign_use_retracted),
        cmocka_unit_test(unanswered_question),
        cmocka_unit_test(gap_is_measured),
        cmocka_unit_test(used_while_new_bytes_wait),
        cmocka_unit_test(used_while_new_bytes_are_signed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
