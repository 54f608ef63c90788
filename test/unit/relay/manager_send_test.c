/* Sending: order, limits, and what each answer of a node, of the wire and of the gate leads to. */
#include "manager_harness.h"

#define STALE "Invalid Transaction: Transaction is outdated"

static struct script *admitted_rows(unsigned count)
{
    struct script *s = leading(5);
    outbox(s, count);
    admitted(s);
    return s;
}

/* No more submissions on the wire than unanswered_max; the next goes with each answer, lowest
 * first. */
static void unanswered(void **state)
{
    (void)state;
    struct script *s = leading_with(&(struct manager_config){.unanswered_max = 2}, 5);
    outbox(s, 4);
    admitted(s);
    expect_submit(s, 5);
    expect_submit(s, 6);
    none(s, MANAGER_FX_SUBMIT);
    accept(s, 6);
    expect_submit(s, 7);
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* 1016: the row waits for the next block, no later one is sent before it, the window becomes
 * half of what was in flight, once a block, and bounds what is sent from then on. */
static void pool_full(void **state)
{
    (void)state;
    struct script *s = admitted_rows(5);
    refuse(s, 5, 1016, "Immediately Dropped");
    assert_int_equal(manager_view_of(s->m).window, 2);
    for (uint64_t nonce = 6; nonce <= 9; nonce++)
        refuse(s, nonce, 1016, "Immediately Dropped");
    assert_int_equal(manager_view_of(s->m).window, 2);
    none(s, MANAGER_FX_SUBMIT);
    best(s);
    assert_int_equal(manager_view_of(s->m).window, 2); /* this block had refusals */
    expect_submit(s, 5);                               /* one alone, to see whether there is room */
    none(s, MANAGER_FX_SUBMIT);
    accept(s, 5);
    expect_submit(s, 6);
    accept(s, 6);
    none(s, MANAGER_FX_SUBMIT);
    status(s, 5, TX_IN_BLOCK, block_of(101)); /* it has left the pool */
    expect_submit(s, 7);
    none(s, MANAGER_FX_SUBMIT);
    best(s);
    assert_int_equal(manager_view_of(s->m).window, 3);
    expect_submit(s, 8);
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* A full pool throws out the oldest with all that depend on it: the window shrinks as for 1016.
 * Below one that is still pooled the head of the line goes whatever the window says; the last one
 * that is missing would make all of them ready, and waits until they fit. */
static void dropped_together(void **state)
{
    (void)state;
    struct script *s = admitted_rows(4);
    for (uint64_t nonce = 5; nonce <= 8; nonce++)
        accept(s, nonce);
    best(s);
    status(s, 8, TX_DROPPED, NULL);
    assert_int_equal(manager_view_of(s->m).window, 2);
    probe(s, 5, 0);
    none(s, MANAGER_FX_SUBMIT); /* three are in the pool */
    status(s, 6, TX_DROPPED, NULL);
    assert_int_equal(manager_view_of(s->m).window, 2);
    probe(s, 5, 0);
    none(s, MANAGER_FX_SUBMIT); /* with 5 and 7 it would be three */
    status(s, 5, TX_IN_BLOCK, block_of(101));
    expect_submit(s, 6);
    accept(s, 6);
    none(s, MANAGER_FX_SUBMIT);
    status(s, 6, TX_IN_BLOCK, block_of(101));
    expect_submit(s, 8);
    script_free(s);
}

/* The window never falls below one and never grows above its maximum. */
static void window_bounds(void **state)
{
    (void)state;
    struct script *s = leading_with(&(struct manager_config){.window_max = 2}, 5);
    outbox(s, 1);
    admitted(s);
    for (unsigned i = 0; i < 4; i++) {
        refuse(s, 5, 1016, "Immediately Dropped");
        assert_int_equal(manager_view_of(s->m).window, 1);
        best(s);
        expect_submit(s, 5);
    }
    accept(s, 5);
    for (unsigned i = 0; i < 4; i++)
        best(s);
    assert_int_equal(manager_view_of(s->m).window, 2);
    script_free(s);
}

/* 1013: the pool already has it, which is success without a watch. */
static void already_imported(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse(s, 5, 1013, "Transaction Already Imported: Any { .. }");
    none(s, MANAGER_FX_SUBMIT);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_STATES);
    assert_string_equal(fx->states.rows[0].state, "tried");
    stored(s, MANAGER_FX_STORE_STATES);
    fx = expect(s, MANAGER_FX_STORE_STATES);
    assert_string_equal(fx->states.rows[0].state, "ready");
    best(s);
    quiet(s);
    finalized_ours(s, 5);
    expect(s, MANAGER_FX_STORE_FINISH);
    script_free(s);
}

/* F5: a submission without an answer goes into the history, each time, and is no refusal. */
static void no_answer_is_in_the_history(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    for (unsigned i = 0; i < 2; i++) {
        refuse_code(s, 5, ERR_NET);
        const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_STATES);
        assert_int_equal(fx->states.count, 1);
        assert_string_equal(fx->states.rows[0].state, "tried");
        assert_memory_equal(fx->states.rows[0].hash, current(s, 5), 32);
        assert_non_null(strstr(fx->states.rows[0].error, "no answer: "));
        none(s, MANAGER_FX_SUBMIT);
        pool_is(s, 0);
        nonce_is(s, 5);
        none(s, MANAGER_FX_SUBMIT); /* not before it is stored, and once a block */
        stored(s, MANAGER_FX_STORE_STATES);
        best(s);
        pool_is(s, 0);
        nonce_is(s, 5);
        expect_submit(s, 5);
    }
    script_free(s);
}

/* What the gate kept back was no submission. */
static void the_gate_is_no_try(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse_code(s, 5, ERR_NOT_LEADER);
    none(s, MANAGER_FX_STORE_STATES);
    script_free(s);
}

/* 1012: asked about at the next block; found in the pool, it is left alone. */
static void banned_but_pooled(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse(s, 5, 1012, "Transaction is temporarily banned");
    quiet(s);
    best(s);
    probe(s, 5, 1, hash_of(5, 1));
    none(s, MANAGER_FX_SUBMIT);
    none(s, MANAGER_FX_RESIGN);
    script_free(s);
}

/* 1012 and in a block: finalized blocks will end it. */
static void banned_but_included(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse(s, 5, 1012, "Transaction is temporarily banned");
    best(s);
    probe(s, 6, 0);
    none(s, MANAGER_FX_RESIGN);
    assert_int_equal(manager_view_of(s->m).in_block, 1);
    script_free(s);
}

/* 1012 and nowhere: new bytes at the same nonce; later rows wait for them. */
static void banned_and_gone(void **state)
{
    (void)state;
    struct script *s = admitted_rows(2);
    accept(s, 6);
    refuse(s, 5, 1012, "Transaction is temporarily banned");
    outbox(s, 1);
    admitted(s);
    none(s, MANAGER_FX_SUBMIT); /* 7 waits for 5 */
    best(s);
    probe(s, 5, 0);
    const struct manager_effect *fx = expect(s, MANAGER_FX_RESIGN);
    assert_int_equal(fx->sign.count, 1);
    assert_int_equal(fx->sign.rows[0].nonce, 5);
    assert_string_equal(fx->sign.rows[0].reason, "the node has banned these bytes");
    assert_true(fx->sign.rows[0].banned);
    none(s, MANAGER_FX_SUBMIT);
    s->taken[fx - s->fx] = false;
    resigned(s);
    expect_submit(s, 5);
    expect_submit(s, 7);
    assert_true(manager_knows(s->m, hash_of(5, 1)));
    assert_true(manager_knows(s->m, hash_of(5, 2)));
    script_free(s);
}

/* Banned for ever: one repair a block, later fewer; never a hot loop. */
static void banned_without_end(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    unsigned resigns = 0;
    for (unsigned i = 0; i < 60; i++) {
        if (count_of(s, MANAGER_FX_SUBMIT)) {
            expect_submit(s, 5);
            refuse(s, 5, 1012, "Transaction is temporarily banned");
            none(s, MANAGER_FX_SUBMIT);
            none(s, MANAGER_FX_RESIGN);
            none(s, MANAGER_FX_ASK_POOL);
        }
        best(s);
        s->finalized++;
        if (count_of(s, MANAGER_FX_ASK_POOL))
            probe(s, 5, 0);
        if (count_of(s, MANAGER_FX_RESIGN)) {
            resigns++;
            resigned(s);
        }
    }
    assert_in_range(resigns, 5, 15);
    script_free(s);
}

/* 1014 while an earlier attempt of ours is out: that one is in the pool. */
static void underpriced_by_ourselves(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse(s, 5, 1012, "Transaction is temporarily banned");
    best(s);
    probe(s, 5, 0);
    resigned(s);
    refuse(s, 5, 1014, "Priority is too low: (1 vs 1)");
    none(s, MANAGER_FX_SUBMIT);
    none(s, MANAGER_FX_ALERT);
    assert_int_equal(manager_view_of(s->m).unsent, 0);
    assert_int_equal(manager_view_of(s->m).unsure, 0);
    script_free(s);
}

/* 1014 without one: somebody else uses the key; said once, and asked about at each block. */
static void underpriced_by_another(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse(s, 5, 1014, "Priority is too low: (9 vs 1)");
    expect_alert(s, "another transaction with our nonce 5");
    best(s);
    probe(s, 6, 0);
    assert_int_equal(manager_view_of(s->m).in_block, 1);
    script_free(s);
}

/* Stale, in both shapes: the nonce is used, finalized blocks will tell by what; nothing is
 * signed anew. */
static void stale(void **state)
{
    (void)state;
    static const char *const shapes[] = {STALE, "{\"invalid\":{\"stale\":null}}"};
    for (unsigned i = 0; i < 2; i++) {
        struct script *s = admitted_rows(1);
        refuse(s, 5, 1010, shapes[i]);
        none(s, MANAGER_FX_RESIGN);
        assert_int_equal(manager_view_of(s->m).in_block, 1);
        best(s);
        probe(s, 6, 0);
        quiet(s);
        script_free(s);
    }
}

/* Stale although the nonce is free (a node that lagged, a fork): the same bytes again. */
static void falsely_stale(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse(s, 5, 1010, STALE);
    best(s);
    probe(s, 5, 0);
    probe(s, 5, 0); /* not used, then; is it in the pool? */
    expect_submit(s, 5);
    script_free(s);
}

/* Payment, in both shapes: said once, the lowest alone is tried once a block, and all goes on
 * with money. */
static void payment(void **state)
{
    (void)state;
    static const char *const shapes[] = {
        "Invalid Transaction: Inability to pay some fees (e.g. account balance too low)",
        "{\"invalid\":{\"payment\":null}}"};
    for (unsigned i = 0; i < 2; i++) {
        struct script *s = admitted_rows(2);
        refuse(s, 5, 1010, shapes[i]);
        expect_alert(s, "cannot pay");
        refuse(s, 6, 1010, shapes[i]);
        none(s, MANAGER_FX_ALERT);
        for (unsigned k = 0; k < 20; k++) {
            best(s);
            expect_submit(s, 5);
            none(s, MANAGER_FX_SUBMIT);
            refuse(s, 5, 1010, shapes[i]);
            none(s, MANAGER_FX_SUBMIT);
            none(s, MANAGER_FX_ALERT);
        }
        best(s);
        expect_submit(s, 5);
        accept(s, 5);
        expect_submit(s, 6);
        script_free(s);
    }
}

/* Where blocks are milliseconds apart, it is tried more rarely: each refusal is stored. */
static void payment_fast_blocks(void **state)
{
    (void)state;
    static const char no_funds[] =
        "Invalid Transaction: Inability to pay some fees (e.g. account balance too low)";
    struct script *s = admitted_rows(2);
    refuse(s, 5, 1010, no_funds);
    refuse(s, 6, 1010, no_funds);
    uint64_t tried_at = s->now;
    for (s->now += 10; s->now < tried_at + 250; s->now += 10) {
        feed(s, (struct manager_event){.type = MANAGER_EV_BEST, .best = {.number = ++s->best}});
        none(s, MANAGER_FX_SUBMIT);
    }
    feed(s, (struct manager_event){.type = MANAGER_EV_BEST, .best = {.number = ++s->best}});
    expect_submit(s, 5);
    accept(s, 5);
    expect_submit(s, 6);
    script_free(s);
}

/* Bad proof and ancient birth, in both shapes: the runtime is read again, then one new signature
 * a block. */
static void bad_proof(void **state)
{
    (void)state;
    static const char *const shapes[] = {
        "Invalid Transaction: Transaction has a bad signature", "{\"invalid\":{\"badProof\":null}}",
        "Invalid Transaction: Transaction has an ancient birth block",
        "{\"invalid\":{\"ancientBirthBlock\":null}}"};
    for (unsigned i = 0; i < 4; i++) {
        struct script *s = admitted_rows(1);
        refuse(s, 5, 1010, shapes[i]);
        expect(s, MANAGER_FX_RECHECK_RUNTIME);
        none(s, MANAGER_FX_RESIGN);
        best(s);
        const struct manager_effect *fx = expect(s, MANAGER_FX_RESIGN);
        assert_int_equal(fx->sign.rows[0].nonce, 5);
        s->taken[fx - s->fx] = false;
        resigned(s);
        expect_submit(s, 5);
        script_free(s);
    }
}

/* A late status says that a block holds the bytes after all: they need not be signed again. */
static void bad_proof_and_included(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse(s, 5, 1010, "Invalid Transaction: Transaction has a bad signature");
    status(s, 5, TX_IN_BLOCK, block_of(1));
    assert_int_equal(manager_view_of(s->m).in_block, 1);
    best(s);
    none(s, MANAGER_FX_RESIGN);
    script_free(s);
}

/* The runtime had changed: new signatures at once, without waiting for a block. */
static void bad_proof_by_runtime(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse(s, 5, 1010, "Invalid Transaction: Transaction has a bad signature");
    runtime(s, SPEC + 1);
    resigned(s);
    expect_submit(s, 5);
    script_free(s);
}

/* A future refusal: the same bytes at the next block. */
static void future(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    for (unsigned i = 0; i < 5; i++) {
        refuse(s, 5, 1010, "{\"invalid\":{\"future\":null}}");
        none(s, MANAGER_FX_SUBMIT);
        none(s, MANAGER_FX_ALERT);
        best(s);
        expect_submit(s, 5);
    }
    refuse(s, 5, 1010, "{\"invalid\":{\"future\":null}}"); /* it does not go over: told once */
    expect_alert(s, "in the future");
    script_free(s);
}

/* A filler is to be signed at nonce 5 in the place of transaction 1, which a node refused. */
static const struct manager_effect *expect_race(struct script *s, const char *why)
{
    const struct manager_effect *fx = expect(s, MANAGER_FX_RESIGN);
    assert_int_equal(fx->sign.count, 1);
    assert_int_equal(fx->sign.rows[0].nonce, 5);
    assert_int_equal(fx->sign.rows[0].id, 1);
    assert_true(fx->sign.rows[0].filler);
    assert_string_equal(fx->sign.rows[0].outcome, "failed");
    assert_string_equal(fx->sign.rows[0].error, why);
    none(s, MANAGER_FX_FILL);
    return fx;
}

static void race(struct script *s, const char *why)
{
    const struct manager_effect *fx = expect_race(s, why);
    s->taken[fx - s->fx] = false;
    resigned(s);
    expect_submit(s, 5);
}

/* Invalid, in both shapes. A node that answers so may have taken the bytes all the same, so the
 * transaction does not end yet: a filler races it, and the later nonces follow. The filler is in a
 * final block: the transaction ends as failed with the node's text. */
static void invalid(void **state)
{
    (void)state;
    static const char *const shapes[] = {"Invalid Transaction: Custom error: 7",
                                         "{\"invalid\":{\"exhaustsResources\":null}}"};
    for (unsigned i = 0; i < 2; i++) {
        struct script *s = admitted_rows(2);
        accept(s, 6);
        refuse(s, 5, 1010, shapes[i]);
        none(s, MANAGER_FX_ALERT);
        race(s, shapes[i]);
        accept(s, 5);
        quiet(s);
        finalized_ours(s, 5);
        const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
        assert_int_equal(fx->ends.rows[0].id, 1);
        assert_true(fx->ends.rows[0].has_block);
        assert_string_equal(fx->ends.rows[0].outcome, "failed");
        assert_string_equal(fx->ends.rows[0].error, shapes[i]);
        script_free(s);
    }
}

/* Transactions are admitted and submitted above one that is refused. */
static void invalid_holds_nobody_up(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse(s, 5, 1011, "Unknown Transaction Validity: CannotLookup");
    race(s, "Unknown Transaction Validity: CannotLookup");
    accept(s, 5);
    outbox(s, 2);
    admitted(s);
    expect_submit(s, 6);
    expect_submit(s, 7);
    script_free(s);
}

/* A filler that could not be signed is asked for again, with what it was for. */
static void filler_not_signed(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse(s, 5, 1010, "Invalid Transaction: Custom error: 7");
    expect_race(s, "Invalid Transaction: Custom error: 7");
    write_failed(s, MANAGER_FX_RESIGN, ERR_NET);
    quiet(s);
    best(s);
    expect_race(s, "Invalid Transaction: Custom error: 7");
    script_free(s);
}

/* The answer comes when every block that could hold the bytes is final: they are dead, so the
 * transaction ends with the filler's signature. */
static void invalid_after_its_era(void **state)
{
    (void)state;
    struct script *s = leading(5);
    s->era = 8;
    outbox(s, 1);
    admitted(s);
    expect_submit(s, 5);
    for (unsigned i = 0; i < 8; i++)
        finalized(s, 5, 0, NULL);
    refuse(s, 5, 1010, "Invalid Transaction: Custom error: 7");
    const struct manager_effect *fx = expect(s, MANAGER_FX_FILL);
    assert_int_equal(fx->sign.rows[0].id, 1);
    assert_string_equal(fx->sign.rows[0].outcome, "failed");
    assert_string_equal(fx->sign.rows[0].reason, "Invalid Transaction: Custom error: 7");
    s->taken[fx - s->fx] = false;
    filled(s);
    expect_submit(s, 5);
    accept(s, 5);
    finalized_ours(s, 5);
    assert_int_equal(expect(s, MANAGER_FX_STORE_FINISH)->ends.rows[0].id, 0);
    script_free(s);
}

/* The policy allows no higher tip. The filler need not pay more, because the node that refuses the
 * call has none of its bytes. So it ends within a few blocks: a relay that led for less than an era
 * would never see the end of one (seed 19579 of the simulator). */
static void invalid_without_tip(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse(s, 5, 1010, "Invalid Transaction: Custom error: 7");
    assert_true(expect_race(s, "Invalid Transaction: Custom error: 7")->sign.rows[0].tip == 0);
    script_free(s);
}

/* ... nor if a node says later that it had the bytes and dropped them. */
static void invalid_and_dropped(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse(s, 5, 1010, "Invalid Transaction: Custom error: 7");
    expect_race(s, "Invalid Transaction: Custom error: 7");
    write_failed(s, MANAGER_FX_RESIGN, ERR_NET);
    status(s, 5, TX_DROPPED, NULL);
    probe(s, 5, 0);
    best(s);
    if (!count_of(s, MANAGER_FX_RESIGN))
        probe(s, 5, 0);
    expect_race(s, "Invalid Transaction: Custom error: 7");
    script_free(s);
}

/* If the bytes are included after all, the record says so. */
static void invalid_but_included(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse(s, 5, 1010, "Invalid Transaction: Custom error: 7");
    race(s, "Invalid Transaction: Custom error: 7");
    refuse(s, 5, 1014,
           "Priority is too low: (100 vs 100)"); /* the pool has them, as it turns out */
    finalized(s, 6, 1, &(struct in_block){hash_of(5, 1), 5, true, DISPATCH_OK, NULL});
    assert_string_equal(expect(s, MANAGER_FX_STORE_FINISH)->ends.rows[0].outcome, "ok");
    script_free(s);
}

/* A filler that is refused as invalid is signed again, never filled again. */
static void invalid_filler(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse(s, 5, 1010, "Invalid Transaction: Custom error: 7");
    race(s, "Invalid Transaction: Custom error: 7");
    refuse(s, 5, 1010, "Invalid Transaction: Custom error: 7");
    expect_alert(s, "cannot be given up yet");
    none(s, MANAGER_FX_RESIGN);
    best(s);
    expect_race(s, "Invalid Transaction: Custom error: 7");
    script_free(s);
}

/* The key is gone from the configuration, so no filler can be signed: the same bytes are submitted
 * again, once a block, until a block or their era decides. */
static void invalid_without_key(void **state)
{
    (void)state;
    struct script *s = script_new(&(struct manager_config){.window_max = 16, .keyless = true});
    struct tx_pending row = loaded_row(s, 5, "broadcast");
    load(s, &row, 1, 6);
    chain_up(s);
    finals(s, s->follow, 5);
    probe(s, 5, 0);
    expect_submit(s, 5);
    refuse(s, 5, 1010, "Invalid Transaction: Custom error: 7");
    expect_alert(s, "cannot be given up yet");
    none(s, MANAGER_FX_RESIGN);
    none(s, MANAGER_FX_FILL);
    none(s, MANAGER_FX_SUBMIT);
    stored(s, MANAGER_FX_STORE_STATES);
    best(s);
    expect_submit(s, 5);
    script_free(s);
}

/* No answer: nobody knows, so the pool and the nonce are asked, and the same bytes are sent
 * again. */
static void transport(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse_code(s, 5, ERR_NET);
    probe(s, 5, 0);
    none(s, MANAGER_FX_SUBMIT); /* it was tried in this block already */
    best(s);
    probe(s, 5, 0);
    expect_submit(s, 5);
    script_free(s);
}

/* No answer, but the pool has it. */
static void transport_after_accept(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse_code(s, 5, ERR_TIMEOUT);
    probe(s, 5, 1, hash_of(5, 1));
    best(s);
    quiet(s);
    script_free(s);
}

/* A chain that makes no blocks (instant seal) is not waited for without end. */
static void stalled_chain(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse_code(s, 5, ERR_TIMEOUT);
    probe(s, 5, 0);
    uint64_t before = s->now;
    tick(s);
    assert_true(s->now - before >= 5000);
    probe(s, 5, 0);
    expect_submit(s, 5);
    script_free(s);
}

/* Refused by our own gate: not sent, nothing goes until the gate opens. */
static void gate(void **state)
{
    (void)state;
    struct script *s = leading_with(&(struct manager_config){.unanswered_max = 1}, 5);
    outbox(s, 3);
    admitted(s);
    expect_submit(s, 5);
    refuse_code(s, 5, ERR_NOT_LEADER);
    none(s, MANAGER_FX_SUBMIT);
    none(s, MANAGER_FX_ASK_POOL);
    none(s, MANAGER_FX_WANT_OUTBOX);
    feed(s, (struct manager_event){.type = MANAGER_EV_GATE_OPEN});
    expect_submit(s, 5);
    script_free(s);
}

/* The opening came before the refusal that it answers: a block later the gate is asked again. */
static void gate_race(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    feed(s, (struct manager_event){.type = MANAGER_EV_GATE_OPEN});
    refuse_code(s, 5, ERR_NOT_LEADER);
    none(s, MANAGER_FX_SUBMIT);
    best(s);
    expect_submit(s, 5);
    script_free(s);
}

/* A busy node: the same bytes at the next block, one alone first. */
static void busy(void **state)
{
    (void)state;
    struct script *s = admitted_rows(2);
    refuse(s, 5, -32006, "Too many subscriptions on the connection");
    refuse(s, 6, -32999, "RPC rate limit exceeded");
    none(s, MANAGER_FX_SUBMIT);
    best(s);
    expect_submit(s, 5);
    none(s, MANAGER_FX_SUBMIT);
    accept(s, 5);
    expect_submit(s, 6);
    script_free(s);
}

/* While the chain is down nothing is sent; when it is back the rows are asked about, then sent. */
static void chain_down_and_up(void **state)
{
    (void)state;
    struct script *s = admitted_rows(2);
    accept(s, 5);
    chain_down(s);
    refuse_code(s, 6, ERR_NET);
    watch_lost(s, 5);
    quiet(s);
    s->best++;
    chain_up(s);
    probe(s, 5, 1, hash_of(5, 1));
    none(s, MANAGER_FX_SUBMIT);
    best(s);
    probe(s, 5, 1, hash_of(5, 1));
    expect_submit(s, 6);
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* Another node, or the same one without its pool: rows that nobody watches are asked about as
 * well. */
static void chain_back_unwatched(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    refuse(s, 5, 1013, "Transaction Already Imported: Any { .. }");
    best(s);
    chain_down(s);
    chain_up(s);
    assert_int_equal(manager_view_of(s->m).unsure, 1);
    probe(s, 5, 0);
    expect_submit(s, 5);
    script_free(s);
}

/* An answer for bytes that are not the row's any more changes nothing. */
static void late_answer(void **state)
{
    (void)state;
    struct script *s = admitted_rows(1);
    accept(s, 5);
    feed(s, (struct manager_event){.type = MANAGER_EV_SUBMIT_REPLY,
                                   .reply = {.nonce = 5,
                                             .hash = hash_of(5, 9),
                                             .code = ERR_RPC,
                                             .rpc_code = 1010,
                                             .text = "Invalid Transaction: Custom error: 7"}});
    quiet(s);
    refuse(s, 5, 1010, "Invalid Transaction: Custom error: 7"); /* it was answered already */
    quiet(s);
    script_free(s);
}

/* A second refusal would take the place of the first in the history: the first one is stored
 * before. */
static void refusal_is_stored_first(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 2);
    admitted(s);
    accept(s, 5);
    status(s, 5, TX_READY, NULL);
    expect(s, MANAGER_FX_STORE_STATES); /* not answered yet */
    refuse(s, 6, -32000, "busy");
    best(s);
    none(s, MANAGER_FX_SUBMIT);
    assert_int_equal(s->refusals, 0);
    stored(s, MANAGER_FX_STORE_STATES);
    expect_submit(s, 6);
    assert_int_equal(s->refusals, 1);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unanswered),
        cmocka_unit_test(pool_full),
        cmocka_unit_test(refusal_is_stored_first),
        cmocka_unit_test(dropped_together),
        cmocka_unit_test(window_bounds),
        cmocka_unit_test(already_imported),
        cmocka_unit_test(no_answer_is_in_the_history),
        cmocka_unit_test(the_gate_is_no_try),
        cmocka_unit_test(banned_but_pooled),
        cmocka_unit_test(banned_but_included),
        cmocka_unit_test(banned_and_gone),
        cmocka_unit_test(banned_without_end),
        cmocka_unit_test(underpriced_by_ourselves),
        cmocka_unit_test(underpriced_by_another),
        cmocka_unit_test(stale),
        cmocka_unit_test(falsely_stale),
        cmocka_unit_test(payment),
        cmocka_unit_test(payment_fast_blocks),
        cmocka_unit_test(bad_proof),
        cmocka_unit_test(bad_proof_and_included),
        cmocka_unit_test(bad_proof_by_runtime),
        cmocka_unit_test(future),
        cmocka_unit_test(invalid),
        cmocka_unit_test(filler_not_signed),
        cmocka_unit_test(invalid_holds_nobody_up),
        cmocka_unit_test(invalid_after_its_era),
        cmocka_unit_test(invalid_without_tip),
        cmocka_unit_test(invalid_and_dropped),
        cmocka_unit_test(invalid_but_included),
        cmocka_unit_test(invalid_filler),
        cmocka_unit_test(invalid_without_key),
        cmocka_unit_test(transport),
        cmocka_unit_test(transport_after_accept),
        cmocka_unit_test(stalled_chain),
        cmocka_unit_test(gate),
        cmocka_unit_test(gate_race),
        cmocka_unit_test(busy),
        cmocka_unit_test(chain_down_and_up),
        cmocka_unit_test(chain_back_unwatched),
        cmocka_unit_test(late_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
