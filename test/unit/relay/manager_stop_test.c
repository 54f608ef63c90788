/* Deadlines, cancellations and guards: what is not signed any more, when a filler may come, how it
 * ends. */
#include "manager_harness.h"

/* What a request poll brings. */
static void stop(struct script *s, uint64_t nonce, int64_t id, const char *outcome)
{
    struct tx_stop x = {.nonce = nonce, .id = id, .outcome = outcome, .reason = "so it was said"};
    feed(s, (struct manager_event){.type = MANAGER_EV_REQUESTS,
                                   .requests = {.stops = &x, .count = 1}});
}

/* Leading with one row at nonce 5, id 1, committed and on the wire. */
static struct script *one_sent(void)
{
    struct script *s = leading_with(NULL, 5);
    outbox(s, 1);
    admitted(s);
    expect_submit(s, 5);
    return s;
}

static void expect_fill(struct script *s, uint64_t nonce, const char *outcome, const char *reason)
{
    const struct manager_effect *fx = expect(s, MANAGER_FX_FILL);
    assert_int_equal(fx->sign.count, 1);
    assert_int_equal(fx->sign.rows[0].nonce, nonce);
    assert_string_equal(fx->sign.rows[0].outcome, outcome);
    if (!strstr(fx->sign.rows[0].reason, reason))
        fail_msg("the reason is \"%s\"", fx->sign.rows[0].reason);
    s->taken[fx - s->fx] = false; /* for filled() */
}

static void ends_unused(struct script *s, const uint64_t *nonces, size_t count)
{
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(fx->ends.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(fx->ends.rows[i].nonce, nonces[i]);
        assert_string_equal(fx->ends.rows[i].outcome, "cancelled");
        assert_string_equal(fx->ends.rows[i].error, "so it was said");
        assert_false(fx->ends.rows[i].has_block);
    }
}

/* Leading; 5 is on the wire alone, and those from 6 on never were. */
static struct script *only_first_sent(unsigned count)
{
    struct script *s = leading_with(&(struct manager_config){.unanswered_max = 1}, 5);
    outbox(s, count);
    admitted(s);
    expect_submit(s, 5);
    none(s, MANAGER_FX_SUBMIT);
    return s;
}

/* Finalized blocks without ours up to this height; nothing is signed or sent on the way. */
static void blocks_to(struct script *s, uint64_t height, uint64_t nonce)
{
    while (s->finalized < height) {
        none(s, MANAGER_FX_FILL);
        none(s, MANAGER_FX_RESIGN);
        none(s, MANAGER_FX_SUBMIT);
        finalized(s, nonce, 0, NULL);
    }
}

/* The rows that are loaded know nothing of what was asked for meanwhile: a request poll follows
 * each load. */
static void a_poll_after_each_load(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    load(s, NULL, 0, 5);
    uint64_t first = expect(s, MANAGER_FX_POLL_REQUESTS)->number;
    feed(s, (struct manager_event){.type = MANAGER_EV_STORE_BACK});
    none(s, MANAGER_FX_POLL_REQUESTS);
    feed(s, (struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                   .snapshot = {.last = true, .next_nonce = 5}});
    assert_true(expect(s, MANAGER_FX_POLL_REQUESTS)->number > first);
    script_free(s);
}

/* It never left, and another one is behind it: the filler comes at once, and is sent in its
 * place. */
static void unsent(void **state)
{
    (void)state;
    struct script *s = only_first_sent(2);
    refuse_code(s, 5, ERR_NOT_LEADER);
    stop(s, 5, 1, "expired");
    expect_fill(s, 5, "expired", "so it was said");
    write_failed(s, MANAGER_FX_FILL, ERR_NET); /* it could not be signed */
    none(s, MANAGER_FX_FILL);
    best(s);
    expect_fill(s, 5, "expired", "so it was said");
    filled(s);
    expect_submit(s, 5);
    stop(s, 5, 1, "expired"); /* said again: it has ended */
    none(s, MANAGER_FX_FILL);
    accept(s, 5);
    finalized_ours(s, 5);
    assert_string_equal(expect(s, MANAGER_FX_STORE_FINISH)->ends.rows[0].outcome, "ok");
    script_free(s);
}

/* On the wire when it is said: whether it was written decides which of the two ways it goes. Only
 * what was not written gives its nonce back (F8). */
static void on_the_wire(void **state)
{
    (void)state;
    for (unsigned written = 0; written < 2; written++) {
        struct script *s = one_sent();
        stop(s, 5, 1, "cancelled");
        none(s, MANAGER_FX_FILL);
        none(s, MANAGER_FX_STORE_FINISH);
        if (written)
            refuse(s, 5, 1018, "Unactionable");
        else
            refuse_code(s, 5, ERR_NOT_LEADER);
        feed(s, (struct manager_event){.type = MANAGER_EV_GATE_OPEN});
        if (!written)
            ends_unused(s, (uint64_t[]){5}, 1);
        none(s, MANAGER_FX_FILL);
        none(s, MANAGER_FX_STORE_FINISH);
        script_free(s);
    }
}

/* A pool holds it: nothing is done, and what the chain says is the record. */
static void pooled_and_included(void **state)
{
    (void)state;
    struct script *s = one_sent();
    accept(s, 5);
    stop(s, 5, 1, "expired");
    none(s, MANAGER_FX_FILL);
    none(s, MANAGER_FX_UNWATCH);
    finalized_ours(s, 5);
    assert_string_equal(expect(s, MANAGER_FX_STORE_FINISH)->ends.rows[0].outcome, "ok");
    script_free(s);
}

/* A pool holds it until its era has ended: a filler, not a new signature. */
static void pooled_to_the_end_of_its_era(void **state)
{
    (void)state;
    struct script *s = one_sent();
    accept(s, 5);
    stop(s, 5, 1, "expired");
    blocks_to(s, 101 - 1 + 64, 5);
    expect_fill(s, 5, "expired", "so it was said");
    none(s, MANAGER_FX_RESIGN);
    script_free(s);
}

/* Seed 3500005545: no endpoint has the last block of its era, which may hold it. Only the account's
 * nonce behind that block tells. */
static void last_block_is_unread(void **state)
{
    (void)state;
    for (unsigned used = 0; used < 2; used++) {
        struct script *s = one_sent();
        accept(s, 5);
        stop(s, 5, 1, "expired");
        blocks_to(s, 163, 5);
        unread_at(s, ++s->finalized);
        none(s, MANAGER_FX_FILL);
        unread_at(s, ++s->finalized);
        none(s, MANAGER_FX_FILL);
        none(s, MANAGER_FX_STORE_FINISH);
        finalized(s, 5 + used, 0, NULL);
        if (!used) {
            expect_fill(s, 5, "expired", "so it was said");
            script_free(s);
            continue;
        }
        for (uint64_t from = expect(s, MANAGER_FX_FOLLOW)->number; from <= s->finalized; from++) {
            if (from == 164 || from == 165)
                unread_at(s, from);
            else
                finalized_at(s, from, from < 164 ? 5 : 6, 0, NULL);
            none(s, MANAGER_FX_FILL);
        }
        assert_string_equal(expect(s, MANAGER_FX_STORE_FINISH)->ends.rows[0].outcome, "unknown");
        script_free(s);
    }
}

/* Lost: it is not sent again, and does not end before its era, for another pool may have it. Later
 * ones wait. */
static void lost(void **state)
{
    (void)state;
    struct script *s = one_sent();
    accept(s, 5);
    stop(s, 5, 1, "cancelled");
    status(s, 5, TX_DROPPED, NULL);
    probe(s, 5, 0);
    best(s);
    probe(s, 5, 0);
    none(s, MANAGER_FX_SUBMIT);
    none(s, MANAGER_FX_FILL);
    blocks_to(s, 101 - 1 + 64, 5);
    expect_fill(s, 5, "cancelled", "so it was said");
    script_free(s);
}

/* A filler waits for the era of bytes that a pool may have; a late status of these says that they
 * were dropped. */
static void dropped_while_its_filler_waits(void **state)
{
    (void)state;
    struct script *s = one_sent();
    accept(s, 5);
    stop(s, 5, 1, "cancelled");
    status(s, 5, TX_DROPPED, NULL);
    probe(s, 5, 0);
    best(s);
    probe(s, 5, 0);
    assert_int_equal(manager_view_of(s->m).unsure, 0);
    status(s, 5, TX_DROPPED, NULL);
    assert_int_equal(manager_view_of(s->m).unsure, 1);
    probe(s, 5, 0);
    none(s, MANAGER_FX_SUBMIT);
    blocks_to(s, 101 - 1 + 64, 5);
    expect_fill(s, 5, "cancelled", "so it was said");
    script_free(s);
}

/* Or that they are in a block: no filler is signed while they are. */
static void included_while_its_filler_waits(void **state)
{
    (void)state;
    struct script *s = one_sent();
    accept(s, 5);
    stop(s, 5, 1, "cancelled");
    status(s, 5, TX_DROPPED, NULL);
    probe(s, 5, 0);
    best(s);
    probe(s, 5, 0);
    status(s, 5, TX_IN_BLOCK, block_of(1));
    assert_int_equal(manager_view_of(s->m).in_block, 1);
    blocks_to(s, 101 + 64, 5);
    none(s, MANAGER_FX_FILL);
    script_free(s);
}

/* Lost, stopped, and included after all: ok. */
static void lost_and_included(void **state)
{
    (void)state;
    struct script *s = one_sent();
    accept(s, 5);
    stop(s, 5, 1, "cancelled");
    status(s, 5, TX_DROPPED, NULL);
    probe(s, 5, 0);
    finalized_ours(s, 5);
    assert_string_equal(expect(s, MANAGER_FX_STORE_FINISH)->ends.rows[0].outcome, "ok");
    script_free(s);
}

/* Said while new bytes were signed: they are on record and never leave. */
static void while_it_is_signed(void **state)
{
    (void)state;
    struct script *s = one_sent();
    refuse_code(s, 5, ERR_NOT_LEADER);
    runtime(s, SPEC + 1);
    expect(s, MANAGER_FX_RESIGN);
    stop(s, 5, 1, "cancelled");
    none(s, MANAGER_FX_FILL);
    static const uint8_t bytes[BYTES_LEN] = {0};
    struct tx_attempt row = {.nonce = 5,
                             .id = 1,
                             .bytes = bytes,
                             .bytes_len = BYTES_LEN,
                             .call_len = CALL_LEN,
                             .era_death = 200,
                             .spec_version = SPEC + 1};
    memcpy(row.hash, hash_of(5, 2), 32);
    feed(s, (struct manager_event){
                .type = MANAGER_EV_STORED,
                .stored = {.write = MANAGER_FX_RESIGN, .attempts = {.rows = &row, .count = 1}}});
    feed(s, (struct manager_event){.type = MANAGER_EV_GATE_OPEN});
    none(s, MANAGER_FX_SUBMIT);
    expect_fill(s, 5, "cancelled", "so it was said");
    script_free(s);
}

/* Bytes without an era never die, so to wait would be for ever: it goes on as if nothing had been
 * said. */
static void immortal(void **state)
{
    (void)state;
    struct script *s = leading_with(NULL, 5);
    s->era = -1;
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    stop(s, 5, 1, "expired");
    status(s, 5, TX_DROPPED, NULL);
    probe(s, 5, 0);
    best(s);
    probe(s, 5, 0);
    expect_submit(s, 5);
    script_free(s);
}

/* What does not fit the row is about another one. */
static void another_row(void **state)
{
    (void)state;
    struct script *s = one_sent();
    refuse_code(s, 5, ERR_NOT_LEADER);
    stop(s, 5, 2, "expired");
    none(s, MANAGER_FX_FILL);
    stop(s, 4, 1, "expired");
    none(s, MANAGER_FX_FILL);
    script_free(s);
}

/* A leader that only read the row knows not whether it was sent: it waits for the era. */
static void after_a_load(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending row = loaded_row(s, 5, "signed");
    load(s, &row, 1, 6);
    stop(s, 5, 505, "cancelled");
    chain_up(s);
    probe(s, 5, 0);
    none(s, MANAGER_FX_SUBMIT);
    s->finalized = 96;
    blocks_to(s, 160, 5);
    expect_fill(s, 5, "cancelled", "so it was said");
    script_free(s);
}

/* ---- guard ---- */

static struct script *one_guarded(uint32_t guard)
{
    struct script *s = leading_with(NULL, 5);
    static const uint8_t call[CALL_LEN] = {1};
    struct manager_outbox_row rows[2] = {
        {.id = 1, .call = call, .call_len = CALL_LEN, .guard = guard},
        {.id = 2, .call = call, .call_len = CALL_LEN}};
    feed(s,
         (struct manager_event){.type = MANAGER_EV_OUTBOX, .outbox = {.rows = rows, .count = 2}});
    return s;
}

/* Another runtime at admission: rejected with both versions; the other row goes on. */
static void guard_at_admission(void **state)
{
    (void)state;
    struct script *s = one_guarded(SPEC - 1);
    const struct manager_effect *bad = expect(s, MANAGER_FX_STORE_REJECT);
    assert_int_equal(bad->ends.rows[0].id, 1);
    assert_string_equal(bad->ends.rows[0].outcome, "failed");
    assert_non_null(strstr(bad->ends.rows[0].error, "899"));
    assert_non_null(strstr(bad->ends.rows[0].error, "900"));
    assert_int_equal(expect(s, MANAGER_FX_ADMIT)->sign.rows[0].id, 2);
    script_free(s);
}

/* The runtime changes before it was written to a socket: a filler at once; the one behind it is
 * signed again. */
static void guard_before_it_was_sent(void **state)
{
    (void)state;
    struct script *s = one_guarded(SPEC);
    admitted(s);
    refuse_code(s, 5, ERR_NOT_LEADER);
    runtime(s, SPEC + 1);
    expect_fill(s, 5, "failed", "901");
    none(s, MANAGER_FX_STORE_REJECT);
    script_free(s);
}

/* The runtime changes under bytes that a pool took: no new signature, a filler at the end of the
 * era. */
static void guard_after_it_was_sent(void **state)
{
    (void)state;
    struct script *s = one_guarded(SPEC);
    admitted(s);
    accept(s, 5);
    accept(s, 6);
    runtime(s, SPEC + 1);
    probe(s, 5, 0);
    none(s, MANAGER_FX_FILL);
    assert_int_equal(expect(s, MANAGER_FX_RESIGN)->sign.rows[0].nonce, 6);
    while (s->finalized < 100 + 64) {
        none(s, MANAGER_FX_FILL);
        finalized(s, 5, 0, NULL);
    }
    expect_fill(s, 5, "failed", "900");
    script_free(s);
}

/* The current bytes are dead first: those that were signed before them may live longer, or for
 * ever. */
static void earlier_bytes_live_longer(void **state)
{
    (void)state;
    for (unsigned immortal = 0; immortal < 2; immortal++) {
        struct script *s = script_new(NULL);
        struct tx_pending row = loaded_row(s, 5, "broadcast");
        row.era_death = 130;
        row.earlier = (const uint8_t(*)[32])hash_of(5, 9);
        row.earlier_count = row.earlier_own = 1;
        row.earlier_death = immortal ? -1 : 140;
        load(s, &row, 1, 6);
        chain_up(s);
        probe(s, 5, 1, hash_of(5, 1));
        stop(s, 5, 505, "cancelled");
        s->finalized = 97;
        blocks_to(s, 129, 5);
        while (s->finalized < 139) {
            finalized(s, 5, 0, NULL);
            none(s, MANAGER_FX_FILL);
        }
        finalized(s, 5, 0, NULL);
        if (immortal)
            none(s, MANAGER_FX_FILL);
        else
            expect_fill(s, 5, "cancelled", "so it was said");
        script_free(s);
    }
}

/* ---- a nonce that is reused ---- */

/* F8: it ends at once without a filler, and the next transaction gets its nonce. */
static void a_nonce_that_was_never_sent_is_reused(void **state)
{
    (void)state;
    struct script *s = only_first_sent(2);
    stop(s, 6, 2, "cancelled");
    ends_unused(s, (uint64_t[]){6}, 1);
    none(s, MANAGER_FX_FILL);
    stored(s, MANAGER_FX_STORE_FINISH);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_NONCE);
    assert_int_equal(fx->next.nonce, 6);
    assert_true(fx->next.lower);
    stored(s, MANAGER_FX_STORE_NONCE);
    assert_int_equal(manager_view_of(s->m).next_nonce, 6);
    outbox(s, 1);
    assert_int_equal(expect(s, MANAGER_FX_ADMIT)->sign.rows[0].nonce, 6);
    script_free(s);
}

/* Of several the highest is stopped first, so all of them come back. */
static void several_are_reused(void **state)
{
    (void)state;
    struct script *s = only_first_sent(3);
    struct tx_stop both[] = {
        {.nonce = 6, .id = 2, .outcome = "cancelled", .reason = "so it was said"},
        {.nonce = 7, .id = 3, .outcome = "cancelled", .reason = "so it was said"}};
    feed(s, (struct manager_event){.type = MANAGER_EV_REQUESTS,
                                   .requests = {.stops = both, .count = 2}});
    ends_unused(s, (uint64_t[]){6, 7}, 2);
    none(s, MANAGER_FX_FILL);
    stored(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(expect(s, MANAGER_FX_STORE_NONCE)->next.nonce, 6);
    script_free(s);
}

/* A transaction that goes on is behind it. */
static void with_one_behind_it_is_filled(void **state)
{
    (void)state;
    struct script *s = only_first_sent(3);
    stop(s, 6, 2, "cancelled");
    none(s, MANAGER_FX_STORE_FINISH);
    expect_fill(s, 6, "cancelled", "so it was said");
    script_free(s);
}

/* A key that signs deterministically makes the same bytes again without an era, and a commit that
 * was lost may have sent those. */
static void bytes_without_an_era_are_not_reused(void **state)
{
    (void)state;
    struct script *s = leading_with(&(struct manager_config){.unanswered_max = 1}, 5);
    s->era = -1;
    outbox(s, 2);
    admitted(s);
    expect_submit(s, 5);
    stop(s, 6, 2, "cancelled");
    none(s, MANAGER_FX_STORE_FINISH);
    expect_fill(s, 6, "cancelled", "so it was said");
    script_free(s);
}

/* A refusal does not prove that no pool has it: what was written is filled, or raced. */
static void what_was_sent_is_not_reused(void **state)
{
    (void)state;
    struct script *s = one_sent();
    refuse(s, 5, 1016, "Immediately Dropped");
    stored(s, MANAGER_FX_STORE_STATES);
    stop(s, 5, 1, "cancelled");
    none(s, MANAGER_FX_STORE_FINISH);
    none(s, MANAGER_FX_STORE_NONCE);
    assert_int_equal(manager_view_of(s->m).next_nonce, 6);
    script_free(s);
}

/* Rows are on their way to the nonces behind it. */
static void while_others_are_admitted_is_filled(void **state)
{
    (void)state;
    struct script *s = only_first_sent(2);
    outbox(s, 1);
    expect(s, MANAGER_FX_ADMIT);
    stop(s, 6, 2, "cancelled");
    none(s, MANAGER_FX_STORE_FINISH);
    expect_fill(s, 6, "cancelled", "so it was said");
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_poll_after_each_load),
        cmocka_unit_test(a_nonce_that_was_never_sent_is_reused),
        cmocka_unit_test(several_are_reused),
        cmocka_unit_test(with_one_behind_it_is_filled),
        cmocka_unit_test(bytes_without_an_era_are_not_reused),
        cmocka_unit_test(what_was_sent_is_not_reused),
        cmocka_unit_test(while_others_are_admitted_is_filled),
        cmocka_unit_test(unsent),
        cmocka_unit_test(on_the_wire),
        cmocka_unit_test(pooled_and_included),
        cmocka_unit_test(pooled_to_the_end_of_its_era),
        cmocka_unit_test(last_block_is_unread),
        cmocka_unit_test(lost),
        cmocka_unit_test(dropped_while_its_filler_waits),
        cmocka_unit_test(included_while_its_filler_waits),
        cmocka_unit_test(lost_and_included),
        cmocka_unit_test(while_it_is_signed),
        cmocka_unit_test(immortal),
        cmocka_unit_test(another_row),
        cmocka_unit_test(after_a_load),
        cmocka_unit_test(earlier_bytes_live_longer),
        cmocka_unit_test(guard_at_admission),
        cmocka_unit_test(guard_before_it_was_sent),
        cmocka_unit_test(guard_after_it_was_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
