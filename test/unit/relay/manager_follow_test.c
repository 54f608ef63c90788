/* Following: finalized blocks end rows, statuses only inform, and nobody else's use of the key goes
 * unseen. */
#include "manager_harness.h"

/* A finalized block ends its rows with outcome, fee, block and index; each once. */
static void finished(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 2);
    struct in_block x[2] = {
        {hash_of(5, 1), 5, true, DISPATCH_OK, NULL},
        {hash_of(6, 1), 6, true, DISPATCH_FAILED, "Balances.InsufficientBalance"}};
    finalized(s, 7, 2, x);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(fx->ends.count, 2);
    assert_string_equal(fx->ends.rows[0].outcome, "ok");
    assert_string_equal(fx->ends.rows[0].error, "");
    assert_int_equal(fx->ends.rows[0].block_number, 101);
    assert_memory_equal(fx->ends.rows[0].block_hash, block_of(101), 32);
    assert_memory_equal(fx->ends.rows[0].hash, hash_of(5, 1), 32);
    assert_int_equal(fx->ends.rows[0].index, 2);
    assert_true(fx->ends.rows[0].has_fee && fx->ends.rows[0].fee == 12345);
    assert_string_equal(fx->ends.rows[1].outcome, "dispatch_error");
    assert_string_equal(fx->ends.rows[1].error, "Balances.InsufficientBalance");
    assert_int_equal(count_of(s, MANAGER_FX_UNWATCH), 2);
    finalized_at(s, 101, 7, 2, x); /* the same block again */
    quiet(s);
    assert_int_equal(manager_view_of(s->m).open, 2);
    stored(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(manager_view_of(s->m).open, 0);
    assert_false(manager_knows(s->m, hash_of(5, 1)));
    script_free(s);
}

/* A dispatch outcome that could not be read is not called good. */
static void outcome_unknown(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    finalized(s, 6, 1, &(struct in_block){hash_of(5, 1), 5, true, DISPATCH_NONE, NULL});
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_string_equal(fx->ends.rows[0].outcome, "unknown");
    assert_non_null(strstr(fx->ends.rows[0].error, "whose events no endpoint has"));
    assert_true(fx->ends.rows[0].has_block);
    expect_alert(s, "outcome could not be read");
    script_free(s);
}

/* R8: its nonce is used, and a block that may hold it cannot be read: not usurped, and only once
 * its bytes are dead. */
static void used_in_a_block_that_nobody_has(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    unread_at(s, ++s->finalized);
    expect_alert(s, "no endpoint has block");
    finalized(s, 6, 0, NULL);
    none(s, MANAGER_FX_STORE_FINISH);
    uint64_t from = expect(s, MANAGER_FX_FOLLOW)->number;
    for (uint64_t number = from; number <= s->finalized; number++)
        unread_at(s, number); /* it is not there this time either */
    for (int i = 0; i < 200 && !count_of(s, MANAGER_FX_STORE_FINISH); i++)
        finalized(s, 6, 0, NULL);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_string_equal(fx->ends.rows[0].outcome, "unknown");
    assert_non_null(strstr(fx->ends.rows[0].error, "no endpoint has block"));
    assert_false(fx->ends.rows[0].has_block);
    script_free(s);
}

/* Seed 18198: new bytes at a nonce whose former ones an unread block may hold. A successor has to
 * search that block too, until a nonce behind it says that it does not hold them. */
static void resigned_behind_an_unread_block(void **state)
{
    (void)state;
    for (unsigned read = 0; read < 2; read++) {
        struct script *s = leading_pooled(5, 1);
        finalized(s, 5, 0, NULL);
        unread_at(s, ++s->finalized);
        if (read)
            finalized(s, 5, 0, NULL);
        status(s, 5, TX_INVALID, NULL);
        probe(s, 5, 0);
        runtime(s, SPEC + 1);
        best(s);
        probe(s, 5, 0);
        assert_int_equal(expect(s, MANAGER_FX_RESIGN)->sign.block, read ? 103 : 101);
        script_free(s);
    }
}

/* An earlier attempt that gets in ends the row just as well, with its own hash. */
static void earlier_attempt(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    status(s, 5, TX_INVALID, NULL);
    probe(s, 5, 0);
    runtime(s, SPEC + 1);
    best(s);
    probe(s, 5, 0);
    resigned(s);
    accept(s, 5);
    finalized(s, 6, 1, &(struct in_block){hash_of(5, 1), 5, true, DISPATCH_OK, NULL});
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_memory_equal(fx->ends.rows[0].hash, hash_of(5, 1), 32);
    assert_string_equal(fx->ends.rows[0].outcome, "ok");
    script_free(s);
}

/* It gets in while it is being signed again: the end is stored once the new attempt is. */
static void ends_while_signing(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    runtime(s, SPEC + 1);
    probe(s, 5, 0);
    struct manager_effect resign = *expect(s, MANAGER_FX_RESIGN);
    assert_int_equal(resign.sign.count, 1);
    finalized(s, 6, 1, &(struct in_block){hash_of(5, 1), 5, true, DISPATCH_OK, NULL});
    none(s, MANAGER_FX_STORE_FINISH);
    struct tx_attempt w = {.nonce = 5,
                           .id = 1,
                           .bytes = (const uint8_t *)"12345678",
                           .bytes_len = 8,
                           .call_len = 4,
                           .spec_version = SPEC + 1};
    memcpy(w.hash, hash_of(5, 2), 32);
    feed(s, (struct manager_event){
                .type = MANAGER_EV_STORED,
                .stored = {.write = MANAGER_FX_RESIGN, .attempts = {.rows = &w, .count = 1}}});
    expect(s, MANAGER_FX_STORE_FINISH);
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* It could not be signed, by a node that is behind: it waits for the next beat as it was, and
 * nothing is read again. Seed 8011251: each time the table was read the head of the line began to
 * wait anew. */
static void not_signed(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    runtime(s, SPEC + 1);
    probe(s, 5, 0);
    expect(s, MANAGER_FX_RESIGN);
    write_failed(s, MANAGER_FX_RESIGN, ERR_NET);
    quiet(s);
    assert_int_equal(manager_view_of(s->m).open, 1);
    for (unsigned i = 0; i < 3 && !count_of(s, MANAGER_FX_RESIGN); i++)
        best(s);
    const struct manager_effect *fx = expect(s, MANAGER_FX_RESIGN);
    assert_int_equal(fx->sign.rows[0].nonce, 5);
    assert_string_equal(fx->sign.rows[0].reason, "runtime version changed");
    script_free(s);
}

/* What goes on record with bytes is the last block that was looked into, whatever the node has
 * finalized since: an older attempt may be in a block between. Seed 60010043: such a row was loaded
 * again, followed from the newer height, and ended as usurped. */
static void recorded_at_the_block_looked_into(void **state)
{
    (void)state;
    struct script *s = leading(5);
    finalized(s, 5, 0, NULL);
    outbox(s, 2);
    assert_int_equal(expect(s, MANAGER_FX_ADMIT)->sign.block, s->finalized);
    script_free(s);

    s = leading_pooled(5, 2);
    finalized(s, 5, 0, NULL);
    runtime(s, SPEC + 1);
    probe(s, 5, 0);
    assert_int_equal(expect(s, MANAGER_FX_RESIGN)->sign.block, s->finalized);
    script_free(s);
}

static void ends_while_not_signed(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    runtime(s, SPEC + 1);
    probe(s, 5, 0);
    expect(s, MANAGER_FX_RESIGN);
    finalized(s, 6, 1, &(struct in_block){hash_of(5, 1), 5, true, DISPATCH_OK, NULL});
    none(s, MANAGER_FX_STORE_FINISH);
    write_failed(s, MANAGER_FX_RESIGN, ERR_NET);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_memory_equal(fx->ends.rows[0].hash, hash_of(5, 1), 32);
    none(s, MANAGER_FX_RESIGN);
    script_free(s);
}

/* A finalized status is not the end: it may be false. */
static void finalized_status(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    status(s, 5, TX_IN_BLOCK, block_of(1));
    status(s, 5, TX_FINALIZED, block_of(1));
    none(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(manager_view_of(s->m).open, 1);
    finalized_ours(s, 5);
    expect(s, MANAGER_FX_STORE_FINISH);
    none(s, MANAGER_FX_UNWATCH); /* the watch was over */
    script_free(s);
}

/* Finalized before in_block, with no status at all, or in the wrong order: the same end. */
static void no_status(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    finalized_ours(s, 5);
    expect(s, MANAGER_FX_STORE_FINISH);
    status(s, 5, TX_IN_BLOCK, block_of(1));
    none(s, MANAGER_FX_STORE_STATES);
    script_free(s);
}

/* Heights: what was seen is ignored; a skipped one is asked for, once, before later ones are
 * used. */
static void heights(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    finalized_at(s, 103, 5, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 101);
    finalized_at(s, 101, 6, 1, &(struct in_block){hash_of(5, 1), 5, true, DISPATCH_OK, NULL});
    expect(s, MANAGER_FX_STORE_FINISH);
    finalized_at(s, 104, 6, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 102);
    finalized_at(s, 104, 6, 0, NULL); /* the node cannot give it: going on */
    none(s, MANAGER_FX_FOLLOW);
    script_free(s);
}

/* Somebody else's extrinsic took the nonce: the row ends as usurped, without a block (none holds an
 * attempt of ours); the error names the other hash. */
static void usurped(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 2);
    finalized(s, 6, 1, &(struct in_block){hash_of(5, 99), 5, true, DISPATCH_OK, NULL});
    expect_alert(s, "did not sign");
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(fx->ends.count, 1);
    assert_string_equal(fx->ends.rows[0].outcome, "usurped");
    assert_memory_equal(fx->ends.rows[0].hash, hash_of(5, 1), 32);
    assert_false(fx->ends.rows[0].has_block);
    assert_non_null(strstr(fx->ends.rows[0].error, "0500000000000000"));
    assert_int_equal(manager_view_of(s->m).open, 2);
    script_free(s);
}

/* Bytes whose signature nobody can verify are not somebody's use of the nonce: only the account's
 * nonce tells, and what it means is looked for first. */
static void unverified_signature(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    struct in_block x = {hash_of(5, 99), 5, true, DISPATCH_OK, NULL};
    s->unverified = true;
    finalized(s, 5, 1, &x);
    expect_alert(s, "cannot verify the signature");
    none(s, MANAGER_FX_STORE_FINISH);
    finalized(s, 6, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 100);
    none(s, MANAGER_FX_STORE_FINISH);
    script_free(s);
    s = leading(5);
    s->unverified = true;
    finalized(s, 5, 1, &x);
    none(s, MANAGER_FX_STORE_NONCE);
    assert_int_equal(manager_view_of(s->m).next_nonce, 5);
    assert_true(manager_must_verify(s->m, hash_of(5, 99), 5));
    assert_false(manager_must_verify(s->m, hash_of(4, 99), 4)); /* that is settled */
    script_free(s);
}

/* A false in_block: the watch says in a block, but the block holds somebody else's extrinsic. */
static void false_in_block(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    status(s, 5, TX_IN_BLOCK, block_of(101));
    status(s, 5, TX_FINALIZED, block_of(101));
    finalized(s, 6, 1, &(struct in_block){hash_of(5, 99), 5, true, DISPATCH_OK, NULL});
    assert_string_equal(expect(s, MANAGER_FX_STORE_FINISH)->ends.rows[0].outcome, "usurped");
    script_free(s);
}

/* Somebody else's extrinsic at a nonce that we have not given yet: the next one moves up, with an
 * alarm. */
static void foreign_above(void **state)
{
    (void)state;
    struct script *s = leading(5);
    finalized(s, 7, 2,
              (struct in_block[]){{hash_of(5, 99), 5, true, DISPATCH_OK, NULL},
                                  {hash_of(6, 99), 6, true, DISPATCH_OK, NULL}});
    expect_alert(s, "account nonce is 6");
    expect_alert(s, "account nonce is 7");
    assert_int_equal(expect(s, MANAGER_FX_STORE_NONCE)->next.nonce, 7);
    assert_int_equal(manager_view_of(s->m).next_nonce, 7);
    script_free(s);
}

/* Seen by the account's nonce alone. */
static void foreign_by_nonce(void **state)
{
    (void)state;
    struct script *s = leading(5);
    finalized(s, 10, 0, NULL);
    expect_alert(s, "account nonce is 10");
    assert_int_equal(expect(s, MANAGER_FX_STORE_NONCE)->next.nonce, 10);
    outbox(s, 1); /* wanted before, brought now: not while the next nonce is being corrected */
    none(s, MANAGER_FX_ADMIT);
    stored(s, MANAGER_FX_STORE_NONCE);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    outbox(s, 1);
    assert_int_equal(expect(s, MANAGER_FX_ADMIT)->sign.rows[0].nonce, 10);
    script_free(s);
}

/* Others' extrinsics are nobody's business. */
static void other_signers(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    finalized(s, 5, 1, &(struct in_block){hash_of(5, 99), 5, false, DISPATCH_OK, NULL});
    quiet(s);
    script_free(s);
}

/* The nonce is used but no block showed by what: the blocks are read once more from where the row
 * was signed; that finds it. */
static void looked_for_again(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    finalized(s, 6, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 100);
    none(s, MANAGER_FX_STORE_FINISH);
    finalized_at(s, 100, 5, 0, NULL);
    finalized_at(s, 101, 6, 1, &(struct in_block){hash_of(5, 1), 5, true, DISPATCH_OK, NULL});
    assert_string_equal(expect(s, MANAGER_FX_STORE_FINISH)->ends.rows[0].outcome, "ok");
    none(s, MANAGER_FX_ALERT);
    script_free(s);
}

/* ... or does not: then it is given up, loudly, and never looked for a third time. The node may
 * take its word back before the bytes are dead, so it is not given up earlier. */
static void looked_for_in_vain(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    finalized(s, 6, 0, NULL);
    expect(s, MANAGER_FX_FOLLOW);
    finalized_at(s, 100, 5, 0, NULL);
    quiet(s);
    uint64_t number = 101, dead = s->finalized - 1 + (uint64_t)s->era;
    for (; number < dead; number++) {
        finalized_at(s, number, 6, 0, NULL);
        none(s, MANAGER_FX_ALERT);
        none(s, MANAGER_FX_STORE_FINISH);
    }
    finalized_at(s, number, 6, 0, NULL);
    expect_alert(s, "no block showed");
    none(s, MANAGER_FX_FOLLOW);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_string_equal(fx->ends.rows[0].outcome, "usurped");
    assert_false(fx->ends.rows[0].has_block);
    script_free(s);
}

/* The node says it at a few blocks, then takes it back: the bytes take effect. */
static void nonce_taken_back(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 3);
    finalized(s, 500, 0, NULL);
    uint64_t from = expect(s, MANAGER_FX_FOLLOW)->number;
    for (uint64_t number = from; number < s->finalized + 3; number++) {
        finalized_at(s, number, 500, 0, NULL);
        none(s, MANAGER_FX_STORE_FINISH);
    }
    script_free(s);
}

/* Nonces that no account has are neither stored nor believed: not at a final block, and not at the
 * best one. */
static void nonce_that_cannot_be(void **state)
{
    (void)state;
    static const uint64_t absurd[] = {UINT32_MAX, 1000000};
    for (size_t i = 0; i < 2; i++) {
        struct script *s = leading_pooled(5, 1);
        finalized(s, 5, 0, NULL);
        finalized(s, absurd[i], 0, NULL);
        expect_alert(s, "that cannot be");
        quiet(s);
        assert_int_equal(manager_view_of(s->m).next_nonce, 6);
        finalized(s, 6, 1, &(struct in_block){hash_of(5, 1), 5, true, DISPATCH_OK, NULL});
        assert_string_equal(expect(s, MANAGER_FX_STORE_FINISH)->ends.rows[0].outcome, "ok");
        none(s, MANAGER_FX_STORE_PAUSE); /* it did not go down */
        chain_down(s);
        chain_up(s);
        expect(s, MANAGER_FX_ASK_POOL);
        pool_is(s, 0);
        expect(s, MANAGER_FX_ASK_NONCE);
        nonce_is(s, absurd[i]);
        expect_alert(s, "that cannot be");
        assert_int_equal(manager_view_of(s->m).next_nonce, 6);
        script_free(s);
    }
}

static enum tx_doubt doubt(const struct script *s, uint64_t nonce, uint64_t shown)
{
    return manager_doubts_nonce(s->m, s->finalized + 1, nonce, shown);
}

/* Asked again is what nothing explains: a nonce below one that was used, and one above those that
 * the blocks show. */
static void nonces_in_doubt(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 3);
    finalized(s, 5, 0, NULL);
    assert_int_equal(doubt(s, 5, 0), TX_CERTAIN);
    assert_int_equal(doubt(s, 6, 0), TX_DOUBTED); /* ours, and no block showed it */
    assert_int_equal(doubt(s, 6, 6), TX_CERTAIN);
    assert_int_equal(doubt(s, 7, 7), TX_CERTAIN);
    assert_int_equal(doubt(s, 8, 7), TX_DOUBTED);
    assert_int_equal(doubt(s, 4, 0), TX_DOUBTED);
    assert_int_equal(doubt(s, 5, 6), TX_DOUBTED); /* removed in the block that used it */
    finalized_ours(s, 5);
    stored(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(doubt(s, 5, 0), TX_DOUBTED);
    assert_int_equal(doubt(s, 6, 0), TX_CERTAIN);
    assert_int_equal(doubt(s, 1000000, 0), TX_DOUBTED);
    assert_int_equal(manager_doubts_nonce(s->m, s->finalized, 0, 0), TX_CERTAIN); /* was read */
    assert_int_equal(manager_doubts_nonce(s->m, s->finalized, 7, 0), TX_DOUBTED);
    script_free(s);
}

/* What would end a transaction by a nonce alone is asked again, also of blocks that are read once
 * more. */
static void nonces_in_doubt_that_end(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    uint64_t dead = s->finalized + (uint64_t)s->era;
    finalized(s, 6, 0, NULL);
    uint64_t from = expect(s, MANAGER_FX_FOLLOW)->number;
    assert_int_equal(manager_doubts_nonce(s->m, from, 5, 0), TX_CERTAIN);
    assert_int_equal(manager_doubts_nonce(s->m, from, 6, 0), TX_CERTAIN); /* it ends nothing yet */
    assert_int_equal(manager_doubts_nonce(s->m, from, 7, 0), TX_DOUBTED);
    assert_int_equal(manager_doubts_nonce(s->m, dead - 1, 6, 0), TX_CERTAIN);
    assert_int_equal(manager_doubts_nonce(s->m, dead, 6, 0), TX_DOUBTED);
    script_free(s);
}

/* The first block that is read after a load has only the table to be compared with. */
static void nonces_in_doubt_after_a_load(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    s->used_nonce = 9;
    s->used_block = 99;
    load(s, NULL, 0, 12);
    chain_up(s);
    assert_int_equal(doubt(s, 12, 12), TX_CERTAIN);
    assert_int_equal(doubt(s, 12, 0), TX_TWICE); /* who used 9 is not on record */
    assert_int_equal(doubt(s, 13, 0), TX_DOUBTED);
    assert_int_equal(doubt(s, 11, 0), TX_DOUBTED); /* the next nonce would go back */
    assert_int_equal(doubt(s, 8, 0), TX_DOUBTED);  /* below what was used for good */
    assert_int_equal(manager_doubts_nonce(s->m, 98, 0, 0), TX_CERTAIN); /* before it, read late */
    finalized_at(s, 100, 2, 0, NULL);
    assert_int_equal(manager_view_of(s->m).suspension, MANAGER_SUSPENSION_REAPED);
    assert_int_equal(doubt(s, 2, 0), TX_CERTAIN); /* as long as it is so */
    assert_int_equal(doubt(s, 3, 0), TX_DOUBTED);
    assert_int_equal(doubt(s, 1, 0), TX_DOUBTED);
    script_free(s);

    s = script_new(NULL);
    load(s, NULL, 0, -1);
    chain_up(s);
    assert_int_equal(doubt(s, 0, 0), TX_CERTAIN);
    assert_int_equal(doubt(s, 3, 0), TX_DOUBTED);
    assert_int_equal(doubt(s, 3, 3), TX_DOUBTED);
    script_free(s);

    s = script_new(NULL);
    s->used_nonce = 5;
    s->used_block = 99;
    struct tx_pending row = loaded_row(s, 5, "sent");
    load(s, &row, 1, 6);
    chain_up(s);
    assert_int_equal(doubt(s, 5, 0), TX_CERTAIN);
    assert_int_equal(doubt(s, 6, 0), TX_TWICE);
    assert_int_equal(doubt(s, 6, 6), TX_CERTAIN);
    assert_int_equal(doubt(s, 7, 0), TX_DOUBTED);
    assert_int_equal(manager_doubts_nonce(s->m, 98, 4, 0), TX_TWICE);
    script_free(s);
}

/* A successor reads blocks whose transactions have ended: the table says that their nonces are
 * used, and nobody waits for a second answer. */
static void no_doubt_of_what_is_on_record(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    s->used_nonce = 96;
    s->used_block = 101;
    struct tx_pending row = loaded_row(s, 96, "sent");
    row.submitted_block = 99;
    load(s, &row, 1, 97);
    chain_up(s);
    assert_int_equal(s->follow, 100);
    finalized_at(s, 100, 80, 0, NULL);
    assert_int_equal(manager_doubts_nonce(s->m, 101, 96, 0), TX_CERTAIN);
    assert_int_equal(manager_doubts_nonce(s->m, 100, 81, 0), TX_DOUBTED); /* is read once more */
    assert_int_equal(manager_doubts_nonce(s->m, 101, 97, 0), TX_DOUBTED);
    assert_int_equal(manager_doubts_nonce(s->m, 101, 79, 0), TX_DOUBTED);
    script_free(s);
}

/* At the first use of an account nothing is known of its nonce but that it is one. */
static void first_nonce_that_cannot_be(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    load(s, NULL, 0, -1);
    chain_up(s);
    pool_is(s, 0);
    expect(s, MANAGER_FX_ASK_NONCE);
    nonce_is(s, UINT32_MAX);
    expect_alert(s, "that cannot be");
    none(s, MANAGER_FX_READY);
    finalized_at(s, 100, 700000, 0, NULL);
    tick(s);
    expect(s, MANAGER_FX_ASK_POOL);
    pool_is(s, 0);
    expect(s, MANAGER_FX_ASK_NONCE);
    nonce_is(s, 700000);
    expect(s, MANAGER_FX_READY);
    assert_int_equal(manager_view_of(s->m).next_nonce, 700000);
    script_free(s);
}

/* Not even to a leader that read the account's very first one. */
static void second_nonce_that_cannot_be(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    load(s, NULL, 0, -1);
    chain_up(s);
    probe_foreign(s, 5);
    expect(s, MANAGER_FX_READY);
    finalized(s, 5, 0, NULL);
    finalized(s, 700000, 0, NULL);
    expect_alert(s, "that cannot be");
    assert_int_equal(manager_view_of(s->m).next_nonce, 5);
    script_free(s);
}

/* That a nonce was lost is told when everything final was seen; a later block that holds our bytes
 * after all (a former life of the account, shown by a node that catches up) is the end. */
static void lost_nonce_waits_for_what_is_final(void **state)
{
    (void)state;
    for (unsigned ours = 0; ours < 2; ours++) {
        struct script *s = leading(5);
        s->finalized += 3;
        chain_up(s); /* three blocks are final that were not followed yet */
        outbox(s, 1);
        admitted(s);
        finalized_at(s, 101, 6, 1, &(struct in_block){hash_of(77, 1), 5, true, DISPATCH_OK, NULL});
        expect_alert(s, "did not sign");
        none(s, MANAGER_FX_STORE_FINISH);
        finalized_at(s, 102, 6, 0, NULL);
        none(s, MANAGER_FX_STORE_FINISH);
        if (ours)
            finalized_at(s, 103, 6, 1,
                         &(struct in_block){current(s, 5), 5, true, DISPATCH_OK, NULL});
        else
            finalized_at(s, 103, 6, 0, NULL);
        assert_string_equal(expect(s, MANAGER_FX_STORE_FINISH)->ends.rows[0].outcome,
                            ours ? "ok" : "usurped");
        script_free(s);
    }
}

/* A pruned block's unknown nonce says nothing. */
static void pruned_block(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    finalized(s, UINT64_MAX, 0, NULL);
    quiet(s);
    script_free(s);
}

/* An era that ends without inclusion: new bytes at the same nonce, lowest first. */
static void era_expires(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 2);
    best(s);
    for (unsigned i = 0; i < 63; i++) {
        finalized(s, 5, 0, NULL);
        none(s, MANAGER_FX_RESIGN);
    }
    finalized(s, 5, 0, NULL); /* block 164 */
    const struct manager_effect *fx = expect(s, MANAGER_FX_RESIGN);
    assert_int_equal(fx->sign.count, 2);
    assert_int_equal(fx->sign.rows[0].nonce, 5);
    assert_string_equal(fx->sign.rows[0].reason, "era expired");
    s->taken[fx - s->fx] = false;
    resigned(s);
    assert_int_equal(count_of(s, MANAGER_FX_UNWATCH), 2); /* of the old bytes */
    expect_submit(s, 5);
    expect_submit(s, 6);
    script_free(s);
}

/* A row in a block does not expire; retracted after its era's end it does. */
static void era_in_block(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    status(s, 5, TX_IN_BLOCK, block_of(1));
    for (unsigned i = 0; i < 64; i++) {
        finalized(s, 5, 0, NULL);
        none(s, MANAGER_FX_RESIGN);
    }
    status(s, 5, TX_RETRACTED, block_of(1));
    best(s);
    probe(s, 5, 0);
    assert_string_equal(expect(s, MANAGER_FX_RESIGN)->sign.rows[0].reason, "era expired");
    script_free(s);
}

/* An immortal row never expires. */
static void immortal(void **state)
{
    (void)state;
    struct script *s = leading(5);
    s->era = -1;
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    for (unsigned i = 0; i < 200; i++) {
        finalized(s, 5, 0, NULL);
        quiet(s);
    }
    script_free(s);
}

/* What is about to die is not sent, it would only be banned: it is signed again first. */
static void not_sent_dying(void **state)
{
    (void)state;
    struct script *s = leading(5);
    s->era = 3; /* dies at 103; best is 102 */
    outbox(s, 1);
    admitted(s);
    none(s, MANAGER_FX_SUBMIT);
    s->era = 64;
    best(s);
    resigned(s);
    expect_submit(s, 5);
    script_free(s);
}

/* STORE_FINISH is one at a time; a failure with unknown outcome reads the table, never finishes
 * twice. */
static void finish_unknown(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 2);
    finalized_ours(s, 5);
    expect(s, MANAGER_FX_STORE_FINISH);
    finalized_ours(s, 6);
    none(s, MANAGER_FX_STORE_FINISH);
    write_failed(s, MANAGER_FX_STORE_FINISH, ERR_DB_UNKNOWN_OUTCOME);
    none(s, MANAGER_FX_STORE_FINISH);
    expect(s, MANAGER_FX_LOAD);
    struct tx_pending row = loaded_row(s, 6, "in_block");
    feed(s, (struct manager_event){
                .type = MANAGER_EV_SNAPSHOT,
                .snapshot = {.rows = &row, .count = 1, .last = true, .next_nonce = 7}});
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 97);
    for (uint64_t n = 97; n < 102; n++)
        finalized_at(s, n, n < 101 ? 5 : 6, 0, NULL);
    finalized_at(s, 102, 7, 1, &(struct in_block){hash_of(6, 1), 6, true, DISPATCH_OK, NULL});
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(fx->ends.count, 1);
    assert_int_equal(fx->ends.rows[0].nonce, 6);
    script_free(s);
}

/* The account was removed in the block that used the nonce, so our bytes live again. A nonce that
 * cannot be is no proof of the opposite. */
static void used_by_another_beside_an_absurd_nonce(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    finalized(s, UINT32_MAX - 2, 1, &(struct in_block){hash_of(77, 1), 5, true, DISPATCH_OK, NULL});
    expect_alert(s, "cannot be");
    none(s, MANAGER_FX_STORE_FINISH);
    none(s, MANAGER_FX_STORE_REQUEUE);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finished),
        cmocka_unit_test(outcome_unknown),
        cmocka_unit_test(used_in_a_block_that_nobody_has),
        cmocka_unit_test(resigned_behind_an_unread_block),
        cmocka_unit_test(earlier_attempt),
        cmocka_unit_test(ends_while_signing),
        cmocka_unit_test(not_signed),
        cmocka_unit_test(recorded_at_the_block_looked_into),
        cmocka_unit_test(ends_while_not_signed),
        cmocka_unit_test(finalized_status),
        cmocka_unit_test(no_status),
        cmocka_unit_test(heights),
        cmocka_unit_test(usurped),
        cmocka_unit_test(unverified_signature),
        cmocka_unit_test(false_in_block),
        cmocka_unit_test(foreign_above),
        cmocka_unit_test(foreign_by_nonce),
        cmocka_unit_test(other_signers),
        cmocka_unit_test(looked_for_again),
        cmocka_unit_test(looked_for_in_vain),
        cmocka_unit_test(nonce_taken_back),
        cmocka_unit_test(nonce_that_cannot_be),
        cmocka_unit_test(nonces_in_doubt),
        cmocka_unit_test(nonces_in_doubt_that_end),
        cmocka_unit_test(nonces_in_doubt_after_a_load),
        cmocka_unit_test(no_doubt_of_what_is_on_record),
        cmocka_unit_test(first_nonce_that_cannot_be),
        cmocka_unit_test(second_nonce_that_cannot_be),
        cmocka_unit_test(lost_nonce_waits_for_what_is_final),
        cmocka_unit_test(pruned_block),
        cmocka_unit_test(era_expires),
        cmocka_unit_test(era_in_block),
        cmocka_unit_test(immortal),
        cmocka_unit_test(not_sent_dying),
        cmocka_unit_test(finish_unknown),
        cmocka_unit_test(used_by_another_beside_an_absurd_nonce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
