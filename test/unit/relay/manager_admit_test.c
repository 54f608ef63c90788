/* Admission and writes: what is given a nonce, when, and what happens when the table says no or
 * nothing. */
#include "manager_harness.h"

/* Nonces are given in outbox order; nothing is sent before the commit is confirmed. */
static void in_order(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 3);
    const struct manager_effect *fx = expect(s, MANAGER_FX_ADMIT);
    assert_int_equal(fx->sign.count, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(fx->sign.rows[i].nonce, 5 + i);
        assert_int_equal(fx->sign.rows[i].id, 1 + i);
        assert_int_equal(fx->sign.rows[i].call_len, CALL_LEN);
    }
    quiet(s);
    assert_int_equal(manager_view_of(s->m).next_nonce, 5);
    s->taken[fx - s->fx] = false;
    admitted(s);
    for (unsigned i = 0; i < 3; i++)
        expect_submit(s, 5 + i);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    quiet(s);
    assert_int_equal(manager_view_of(s->m).next_nonce, 8);
    script_free(s);
}

/* One ADMIT at a time: the outbox is wanted again only after the answer. */
static void one_at_a_time(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 1);
    expect(s, MANAGER_FX_ADMIT);
    best(s);
    none(s, MANAGER_FX_WANT_OUTBOX);
    outbox(s, 1); /* nobody asked */
    none(s, MANAGER_FX_ADMIT);
    script_free(s);
}

/* A batch is never larger than batch_max or than the room in the window. */
static void batch_and_window(void **state)
{
    (void)state;
    struct script *s = leading_with(&(struct manager_config){.window_max = 10, .batch_max = 6}, 0);
    outbox(s, 6);
    admitted(s);
    assert_int_equal(expect(s, MANAGER_FX_WANT_OUTBOX)->limit, 4);
    outbox(s, 9); /* more than asked for: the rest stays in the outbox */
    const struct manager_effect *fx = expect(s, MANAGER_FX_ADMIT);
    assert_int_equal(fx->sign.count, 4);
    s->taken[fx - s->fx] = false;
    admitted(s);
    none(s, MANAGER_FX_WANT_OUTBOX);
    for (unsigned i = 0; i < 10; i++)
        accept(s, i);
    none(s, MANAGER_FX_WANT_OUTBOX); /* the window is full of rows that no block holds */
    status(s, 0, TX_IN_BLOCK, block_of(1));
    assert_int_equal(expect(s, MANAGER_FX_WANT_OUTBOX)->limit, 1);
    script_free(s);
}

/* Rows that the door found bad end with its reason; the others are admitted; the outbox waits for
 * both. */
static void bad_rows(void **state)
{
    (void)state;
    struct script *s = leading(5);
    static const uint8_t call[CALL_LEN] = {9};
    struct manager_outbox_row rows[3] = {
        {.id = 1, .call = call, .call_len = CALL_LEN},
        {.id = 2, .call = call, .call_len = CALL_LEN, .bad = "no such pallet: 99"},
        {.id = 3, .call = call, .call_len = CALL_LEN}};
    feed(s,
         (struct manager_event){.type = MANAGER_EV_OUTBOX, .outbox = {.rows = rows, .count = 3}});
    const struct manager_effect *bad = expect(s, MANAGER_FX_STORE_REJECT);
    assert_int_equal(bad->ends.count, 1);
    assert_int_equal(bad->ends.rows[0].id, 2);
    assert_string_equal(bad->ends.rows[0].outcome, "failed");
    assert_string_equal(bad->ends.rows[0].error, "no such pallet: 99");
    const struct manager_effect *fx = expect(s, MANAGER_FX_ADMIT);
    assert_int_equal(fx->sign.count, 2);
    assert_int_equal(fx->sign.rows[1].id, 3);
    assert_int_equal(fx->sign.rows[1].nonce, 6);
    s->taken[fx - s->fx] = false;
    admitted(s);
    none(s, MANAGER_FX_WANT_OUTBOX);
    stored(s, MANAGER_FX_STORE_REJECT);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    script_free(s);
}

/* Only bad rows: no admission at all. */
static void only_bad_rows(void **state)
{
    (void)state;
    struct script *s = leading(5);
    static const uint8_t call[CALL_LEN] = {9};
    struct manager_outbox_row row = {
        .id = 1, .call = call, .call_len = CALL_LEN, .bad = "does not decode"};
    feed(s,
         (struct manager_event){.type = MANAGER_EV_OUTBOX, .outbox = {.rows = &row, .count = 1}});
    expect(s, MANAGER_FX_STORE_REJECT);
    quiet(s);
    assert_int_equal(manager_view_of(s->m).next_nonce, 5);
    script_free(s);
}

/* No admission while the chain is down. */
static void chain_down_no_admission(void **state)
{
    (void)state;
    struct script *s = leading(5);
    chain_down(s);
    outbox(s, 2);
    none(s, MANAGER_FX_ADMIT);
    none(s, MANAGER_FX_WANT_OUTBOX);
    chain_up(s);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    script_free(s);
}

/* A conflict (cancelled meanwhile) drops the batch: its nonces are given to the next one. */
static void conflict(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 2);
    expect(s, MANAGER_FX_ADMIT);
    write_failed(s, MANAGER_FX_ADMIT, ERR_DB_CONFLICT);
    none(s, MANAGER_FX_UNWATCH_ALL);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    outbox(s, 1);
    assert_int_equal(expect(s, MANAGER_FX_ADMIT)->sign.rows[0].nonce, 5);
    script_free(s);
}

/* The door could not sign: nothing was written, so nothing is read again. The next beat tries it
 * again. */
static void not_signed(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 2);
    expect(s, MANAGER_FX_ADMIT);
    write_failed(s, MANAGER_FX_ADMIT, ERR_NET);
    quiet(s);
    assert_int_equal(manager_view_of(s->m).next_nonce, 5);
    best(s);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    outbox(s, 1);
    assert_int_equal(expect(s, MANAGER_FX_ADMIT)->sign.rows[0].nonce, 5);
    write_failed(s, MANAGER_FX_ADMIT, ERR_NET);
    chain_down(s);
    none(s, MANAGER_FX_WANT_OUTBOX);
    chain_up(s); /* another node may know more: at once */
    expect(s, MANAGER_FX_WANT_OUTBOX);
    script_free(s);
}

/* A chain that makes a block only when there is an extrinsic for it makes none while rows wait in
 * the outbox for the next block: they are tried again without one, at first after ten seconds. */
static void no_block_comes(void **state)
{
    (void)state;
    for (int doubt = 0; doubt < 2; doubt++) {
        struct script *s = leading(5);
        struct manager_outbox_row row = {.id = 1, .call = (const uint8_t *)"c", .call_len = 1};
        row.waits = doubt;
        row.bad = doubt ? "the chain has no such call" : NULL;
        for (int k = 0; k < 3; k++) {
            uint64_t before = s->now;
            feed(s, (struct manager_event){.type = MANAGER_EV_OUTBOX,
                                           .outbox = {.rows = &row, .count = 1}});
            if (!doubt)
                write_failed(s, MANAGER_FX_ADMIT, ERR_NET);
            quiet(s);
            tick(s);
            assert_in_range(s->now - before, 5000, 60000);
            expect(s, MANAGER_FX_WANT_OUTBOX);
        }
        row.waits = false;
        row.bad = NULL;
        feed(s, (struct manager_event){.type = MANAGER_EV_OUTBOX,
                                       .outbox = {.rows = &row, .count = 1}});
        expect(s, MANAGER_FX_ADMIT);
        assert_int_equal(manager_deadline(s->m), UINT64_MAX); /* nothing waits any more */
        script_free(s);
    }
}

/* Conflicts without end are not repeated in a hot loop: the table is read again, with back-off. */
static void conflicts_without_end(void **state)
{
    (void)state;
    struct script *s = leading(5);
    for (unsigned i = 0; i < 3; i++) {
        outbox(s, 1);
        write_failed(s, MANAGER_FX_ADMIT, ERR_DB_CONFLICT);
    }
    outbox(s, 1);
    write_failed(s, MANAGER_FX_ADMIT, ERR_DB_CONFLICT);
    expect(s, MANAGER_FX_UNWATCH_ALL);
    none(s, MANAGER_FX_LOAD);
    tick(s);
    expect(s, MANAGER_FX_LOAD);
    script_free(s);
}

static void again(struct script *s, const struct tx_pending *rows, size_t count, int64_t next)
{
    assert_int_equal(expect(s, MANAGER_FX_LOAD)->after_nonce, -1);
    feed(s, (struct manager_event){
                .type = MANAGER_EV_SNAPSHOT,
                .snapshot = {.rows = rows, .count = count, .last = true, .next_nonce = next}});
}

/* Unknown outcome of an admission that was committed: the rows are found and sent. */
static void unknown_committed(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 2);
    write_failed(s, MANAGER_FX_ADMIT, ERR_DB_UNKNOWN_OUTCOME);
    expect(s, MANAGER_FX_UNWATCH_ALL);
    none(s, MANAGER_FX_SUBMIT);
    assert_int_equal(manager_phase(s->m), MANAGER_LOAD_WAIT);
    struct tx_pending rows[2] = {loaded_row(s, 5, "signed"), loaded_row(s, 6, "signed")};
    again(s, rows, 2, 7);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 97);
    probe(s, 5, 0);
    expect_submit(s, 5);
    expect_submit(s, 6);
    assert_int_equal(manager_view_of(s->m).next_nonce, 7);
    script_free(s);
}

/* Unknown outcome of an admission that was not committed: the nonces are given again. */
static void unknown_not_committed(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 2);
    write_failed(s, MANAGER_FX_ADMIT, ERR_DB_UNKNOWN_OUTCOME);
    again(s, NULL, 0, 5);
    probe(s, 5, 0);
    expect(s, MANAGER_FX_READY);
    outbox(s, 2);
    assert_int_equal(expect(s, MANAGER_FX_ADMIT)->sign.rows[0].nonce, 5);
    script_free(s);
}

/* A call that the metadata does not have stays in the outbox until the adapter is sure; then it is
 * looked at again at once. */
static void call_in_doubt(void **state)
{
    (void)state;
    struct script *s = leading(5);
    struct manager_outbox_row row = {.id = 1, .call = (const uint8_t *)"c", .call_len = 1};
    row.waits = true;
    row.bad = "the chain has no such call";
    feed(s,
         (struct manager_event){.type = MANAGER_EV_OUTBOX, .outbox = {.rows = &row, .count = 1}});
    quiet(s); /* neither admitted nor rejected, nor polled again */
    feed(s, (struct manager_event){.type = MANAGER_EV_RUNTIME,
                                   .chain = {.spec_version = s->spec, .transaction_version = 6}});
    expect(s, MANAGER_FX_WANT_OUTBOX);
    row.waits = false;
    feed(s,
         (struct manager_event){.type = MANAGER_EV_OUTBOX, .outbox = {.rows = &row, .count = 1}});
    assert_string_equal(expect(s, MANAGER_FX_STORE_REJECT)->ends.rows[0].outcome, "failed");
    script_free(s);
}

/* The table is read only after every write in flight was answered: one could commit after the
 * snapshot. */
static void load_waits_for_writes(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    status(s, 5, TX_READY, NULL);
    expect(s, MANAGER_FX_STORE_STATES);
    outbox(s, 1);
    expect(s, MANAGER_FX_ADMIT);
    write_failed(s, MANAGER_FX_STORE_STATES, ERR_DB_UNKNOWN_OUTCOME);
    expect(s, MANAGER_FX_UNWATCH_ALL);
    none(s, MANAGER_FX_LOAD);
    write_failed(s, MANAGER_FX_ADMIT, ERR_DB_UNKNOWN_OUTCOME);
    expect(s, MANAGER_FX_LOAD);
    script_free(s);
}

/* ... also when the late answer is good: what it says is read from the table. */
static void late_good_answer(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    status(s, 5, TX_READY, NULL);
    outbox(s, 1);
    struct manager_effect *fx = &s->fx[expect(s, MANAGER_FX_ADMIT) - s->fx];
    struct manager_sign_row row = fx->sign.rows[0];
    write_failed(s, MANAGER_FX_STORE_STATES, ERR_DB_SERIALIZATION);
    struct tx_attempt w = {
        .nonce = row.nonce, .id = row.id, .bytes = (const uint8_t *)"x", .bytes_len = 1};
    feed(s, (struct manager_event){
                .type = MANAGER_EV_STORED,
                .stored = {.write = MANAGER_FX_ADMIT, .attempts = {.rows = &w, .count = 1}}});
    none(s, MANAGER_FX_SUBMIT);
    expect(s, MANAGER_FX_LOAD);
    assert_int_equal(manager_view_of(s->m).open, 0);
    script_free(s);
}

/* A stale epoch: not one more effect until the demotion. */
static void lost_leadership(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    outbox(s, 1);
    write_failed(s, MANAGER_FX_ADMIT, ERR_LOST_LEADERSHIP);
    quiet(s);
    best(s);
    status(s, 5, TX_INVALID, NULL);
    feed(s, (struct manager_event){.type = MANAGER_EV_GATE_OPEN});
    quiet(s);
    assert_int_equal(manager_deadline(s->m), UINT64_MAX);
    promote(s);
    expect(s, MANAGER_FX_LOAD);
    script_free(s);
}

/* A permanent refusal is said, and the table is read again after a while. */
static void permanent_refusal(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    status(s, 5, TX_READY, NULL);
    write_failed(s, MANAGER_FX_STORE_STATES, ERR_DB);
    expect_alert(s, "refused");
    expect(s, MANAGER_FX_UNWATCH_ALL);
    none(s, MANAGER_FX_LOAD);
    tick(s);
    expect(s, MANAGER_FX_LOAD);
    script_free(s);
}

/* A write that is refused every time is tried ever more rarely, although each load succeeds. */
static void refused_for_ever(void **state)
{
    (void)state;
    struct script *s = leading(5);
    uint64_t waits[9];
    for (unsigned i = 0; i < 9; i++) {
        outbox(s, 1);
        write_failed(s, MANAGER_FX_ADMIT, ERR_DB);
        expect(s, MANAGER_FX_UNWATCH_ALL);
        none(s, MANAGER_FX_LOAD);
        waits[i] = manager_deadline(s->m) - s->now;
        tick(s);
        again(s, NULL, 0, 5);
        probe(s, 5, 0);
        expect(s, MANAGER_FX_READY);
    }
    assert_in_range(waits[0], 100, 200);
    assert_in_range(waits[8], 5000, 10000);
    outbox(s, 1);
    admitted(s); /* so the next refusal is the first one */
    accept(s, 5);
    status(s, 5, TX_READY, NULL);
    write_failed(s, MANAGER_FX_STORE_STATES, ERR_DB);
    assert_in_range(manager_deadline(s->m) - s->now, 100, 200);
    script_free(s);
}

/* The runtime changed while a batch was signed: nothing of it is sent with the old version. */
static void runtime_while_admitting(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 1);
    struct manager_sign_row row = expect(s, MANAGER_FX_ADMIT)->sign.rows[0];
    runtime(s, SPEC + 1);
    struct tx_attempt w = {.nonce = row.nonce,
                           .id = row.id,
                           .bytes = (const uint8_t *)"12345678",
                           .bytes_len = 8,
                           .call_len = 4,
                           .era_death = 164,
                           .spec_version = SPEC};
    memcpy(w.hash, hash_of(5, 1), 32);
    feed(s, (struct manager_event){
                .type = MANAGER_EV_STORED,
                .stored = {.write = MANAGER_FX_ADMIT, .attempts = {.rows = &w, .count = 1}}});
    none(s, MANAGER_FX_SUBMIT);
    const struct manager_effect *fx = expect(s, MANAGER_FX_RESIGN);
    assert_memory_equal(fx->sign.rows[0].call ? "5678" : "", "5678", 4);
    s->attempts[5] = 1;
    s->taken[fx - s->fx] = false;
    resigned(s);
    expect_submit(s, 5);
    script_free(s);
}

/* A nonce of a batch in flight is used by somebody else: the batch is not stopped, its row ends as
 * usurped. */
static void foreign_while_admitting(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 2);
    struct manager_effect admit = *expect(s, MANAGER_FX_ADMIT);
    assert_int_equal(admit.sign.count, 2);
    /* feed() forgets the effects: the answer is made by hand. */
    finalized(s, 6, 1, &(struct in_block){hash_of(5, 99), 5, true, DISPATCH_OK, NULL});
    none(s, MANAGER_FX_STORE_NONCE);
    struct tx_attempt w[2];
    for (unsigned i = 0; i < 2; i++) {
        w[i] = (struct tx_attempt){.nonce = 5 + i,
                                   .id = 1 + i,
                                   .bytes = (const uint8_t *)"12345678",
                                   .bytes_len = 8,
                                   .call_len = 4,
                                   .era_death = 164,
                                   .spec_version = SPEC};
        memcpy(w[i].hash, hash_of(5 + i, 1), 32);
    }
    feed(s, (struct manager_event){
                .type = MANAGER_EV_STORED,
                .stored = {.write = MANAGER_FX_ADMIT, .attempts = {.rows = w, .count = 2}}});
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 100);
    finalized_at(s, 100, 5, 0, NULL);
    finalized_at(s, 101, 6, 1, &(struct in_block){hash_of(5, 99), 5, true, DISPATCH_OK, NULL});
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(fx->ends.count, 1);
    assert_string_equal(fx->ends.rows[0].outcome, "usurped");
    assert_memory_equal(fx->ends.rows[0].hash, hash_of(5, 1), 32);
    assert_false(fx->ends.rows[0].has_block);
    script_free(s);
}

/* Finality that lags by a whole era: nothing is signed that would be dead at birth. */
static void finality_lags(void **state)
{
    (void)state;
    struct script *s = leading_with(&(struct manager_config){.era_period = 16}, 5);
    for (unsigned i = 0; i < 20; i++)
        best(s);
    outbox(s, 1);
    none(s, MANAGER_FX_ADMIT);
    none(s, MANAGER_FX_WANT_OUTBOX);
    for (unsigned i = 0; i < 8; i++) { /* best is 122: block 109's era ends at 125 */
        none(s, MANAGER_FX_WANT_OUTBOX);
        finalized(s, 5, 0, NULL);
    }
    none(s, MANAGER_FX_WANT_OUTBOX);
    finalized(s, 5, 0, NULL);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order),
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(batch_and_window),
        cmocka_unit_test(bad_rows),
        cmocka_unit_test(only_bad_rows),
        cmocka_unit_test(chain_down_no_admission),
        cmocka_unit_test(conflict),
        cmocka_unit_test(not_signed),
        cmocka_unit_test(no_block_comes),
        cmocka_unit_test(conflicts_without_end),
        cmocka_unit_test(unknown_committed),
        cmocka_unit_test(unknown_not_committed),
        cmocka_unit_test(call_in_doubt),
        cmocka_unit_test(load_waits_for_writes),
        cmocka_unit_test(late_good_answer),
        cmocka_unit_test(lost_leadership),
        cmocka_unit_test(permanent_refusal),
        cmocka_unit_test(refused_for_ever),
        cmocka_unit_test(runtime_while_admitting),
        cmocka_unit_test(foreign_while_admitting),
        cmocka_unit_test(finality_lags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
