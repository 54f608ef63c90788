/* How much of an account's own a pool takes: what is remembered of its limit, and how the nonce
 * that is missing gets in when later ones fill the pool. */
#include "manager_harness.h"

static uint32_t window(const struct script *s)
{
    return manager_view_of(s->m).window;
}

/* Leading with a policy, and eight from 5 on in a pool. */
static struct script *pooled(u128 tip_cap, u128 step)
{
    struct script *s = script_new(NULL);
    s->account.tip_cap = tip_cap;
    s->account.tip_step = step;
    load(s, NULL, 0, 5);
    chain_up(s);
    probe(s, 5, 0);
    finalized_at(s, s->finalized, 5, 0, NULL);
    outbox(s, 8);
    admitted(s);
    for (uint64_t nonce = 5; nonce <= 12; nonce++)
        accept(s, nonce);
    return s;
}

/* Whoever asks finds the seven in the pool. */
static void seven_there(struct script *s)
{
    pool_is(s, 7, current(s, 5), current(s, 6), current(s, 7), current(s, 8), current(s, 9),
            current(s, 10), current(s, 11));
    nonce_is(s, 5);
}

/* How many were submitted. */
static size_t block_goes_by(struct script *s)
{
    best(s);
    size_t sent = count_of(s, MANAGER_FX_SUBMIT);
    seven_there(s);
    return sent + count_of(s, MANAGER_FX_SUBMIT);
}

/* The eighth is dropped, and found nowhere. */
static void one_too_many(struct script *s)
{
    status(s, 12, TX_DROPPED, NULL);
    assert_int_equal(window(s), 4);
    seven_there(s);
    block_goes_by(s); /* this block had one too many */
    assert_int_equal(window(s), 4);
    block_goes_by(s);
    assert_int_equal(window(s), 7);
}

/* F6: a pool that held eight holds eight. The window is back at an eighth below that within two
 * blocks, and stays there; after 16 blocks it tries for more, and after 32 when that failed. */
static void limit_is_remembered(void **state)
{
    (void)state;
    struct script *s = pooled(0, 0);
    best(s);
    one_too_many(s);
    for (unsigned i = 2; i < 15; i++) {
        assert_int_equal(block_goes_by(s), 0);
        assert_int_equal(window(s), 7);
    }
    assert_int_equal(block_goes_by(s), 1);
    assert_int_equal(window(s), 8);
    accept(s, 12);
    block_goes_by(s);
    assert_int_equal(window(s), 10);
    one_too_many(s);
    for (unsigned i = 2; i < 31; i++) {
        assert_int_equal(block_goes_by(s), 0);
        assert_int_equal(window(s), 7);
    }
    assert_int_equal(block_goes_by(s), 1);
    assert_int_equal(window(s), 8);
    script_free(s);
}

/* A pool that holds none of ours is full of others', which leave: nothing is remembered. */
static void full_of_others(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 4);
    admitted(s);
    refuse(s, 5, 1016, "Immediately Dropped");
    assert_int_equal(window(s), 2);
    best(s);
    for (uint32_t i = 3; i < 9; i++) {
        best(s);
        assert_int_equal(window(s), i);
    }
    script_free(s);
}

/* What is on the wire when a pool turns out to be full is lost: it begins with eight, and four
 * that are accepted make it one more. */
static void few_on_the_wire_at_first(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 64);
    admitted(s);
    assert_int_equal(count_of(s, MANAGER_FX_SUBMIT), 8);
    for (uint64_t nonce = 5; nonce < 8; nonce++) {
        accept(s, nonce);
        assert_int_equal(count_of(s, MANAGER_FX_SUBMIT), 1);
    }
    accept(s, 8);
    assert_int_equal(count_of(s, MANAGER_FX_SUBMIT), 2);
    script_free(s);
}

/* What a pool dropped is not in it. When it answers then that it has banned these bytes, they are
 * signed anew at once; else that answer may mean that it has them, and a probe decides. */
static void banned_after_it_was_dropped(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    best(s);
    status(s, 5, TX_DROPPED, NULL);
    probe(s, 5, 0);
    expect_submit(s, 5);
    refuse(s, 5, 1012, "Transaction is temporarily banned");
    stored(s, MANAGER_FX_STORE_STATES);
    resigned(s);
    expect_submit(s, 5);
    refuse(s, 5, 1012, "Transaction is temporarily banned"); /* nobody dropped the new ones */
    none(s, MANAGER_FX_RESIGN);
    stored(s, MANAGER_FX_STORE_STATES);
    none(s, MANAGER_FX_RESIGN);
    best(s);
    expect(s, MANAGER_FX_ASK_POOL);
    script_free(s);
}

/* ---- the nonce that is missing ---- */

/* The first of eight is missing, and has just been sent again. */
static struct script *head_missing(u128 tip_cap, u128 step)
{
    struct script *s = pooled(tip_cap, step);
    best(s);
    status(s, 5, TX_INVALID, NULL);
    probe(s, 5, 0);
    expect_submit(s, 5);
    stored(s, MANAGER_FX_STORE_STATES);
    return s;
}

static void no_room(struct script *s)
{
    refuse(s, 5, 1016, "Immediately Dropped");
    while (count_of(s, MANAGER_FX_STORE_STATES))
        stored(s, MANAGER_FX_STORE_STATES);
}

/* It is signed anew with a tip above theirs. */
static void signed_with(struct script *s, unsigned tip)
{
    const struct manager_effect *fx = expect(s, MANAGER_FX_RESIGN);
    assert_int_equal(fx->sign.count, 1);
    assert_int_equal(fx->sign.rows[0].nonce, 5);
    assert_int_equal(fx->sign.rows[0].tip, tip);
    s->taken[fx - s->fx] = false;
    resigned(s);
    expect_submit(s, 5);
}

/* Seed 2000012844: our later nonces fill the pool, and the missing one finds no room: it pays one
 * step more than they do. A pool may weigh other things too, so small tips are doubled then. */
static void missing_one_gets_in(void **state)
{
    (void)state;
    struct script *s = head_missing(1000000, 0);
    no_room(s);
    signed_with(s, 1);
    no_room(s);
    best(s);
    signed_with(s, 3);
    no_room(s);
    best(s);
    signed_with(s, 7);
    accept(s, 5);
    script_free(s);
}

/* Up to 65,536 units, whatever the policy allows. */
static void small_tips_only(void **state)
{
    (void)state;
    struct script *s = head_missing(1000000, 30000);
    no_room(s);
    signed_with(s, 30000);
    no_room(s);
    best(s);
    signed_with(s, 60001);
    no_room(s);
    best(s);
    signed_with(s, 65536);
    no_room(s);
    none(s, MANAGER_FX_RESIGN);
    best(s);
    none(s, MANAGER_FX_RESIGN);
    expect_submit(s, 5);
    script_free(s);
}

/* Nobody set a bound for tips: one step more than they pay, and no more. */
static void missing_one_without_a_cap(void **state)
{
    (void)state;
    struct script *s = head_missing(MANAGER_NO_CAP, 0);
    no_room(s);
    signed_with(s, 1);
    no_room(s);
    none(s, MANAGER_FX_RESIGN);
    best(s);
    none(s, MANAGER_FX_RESIGN);
    expect_submit(s, 5);
    script_free(s);
}

/* A pool shows only what is ready: behind the missing one it shows none. */
static void missing_one_below_what_is_not_shown(void **state)
{
    (void)state;
    struct script *s = pooled(MANAGER_NO_CAP, 0);
    for (unsigned i = 0; i < 5; i++)
        best(s);
    probe(s, 5, 0);
    expect_submit(s, 5);
    assert_int_equal(manager_view_of(s->m).unsure, 7);
    stored(s, MANAGER_FX_STORE_STATES);
    no_room(s);
    signed_with(s, 1);
    script_free(s);
}

/* A step of the policy that is worth something is paid once. */
static void missing_one_pays_a_step(void **state)
{
    (void)state;
    struct script *s = head_missing(MANAGER_NO_CAP, 1000000);
    no_room(s);
    signed_with(s, 1000000);
    no_room(s);
    none(s, MANAGER_FX_RESIGN);
    best(s);
    expect_submit(s, 5);
    script_free(s);
}

/* Where no tip may be paid it is sent again at each block, and waits for room. */
static void missing_one_under_a_cap(void **state)
{
    (void)state;
    struct script *s = head_missing(0, 0);
    no_room(s);
    none(s, MANAGER_FX_RESIGN);
    best(s);
    expect_submit(s, 5);
    script_free(s);
}

/* With nothing of ours in the pool a higher tip would only outbid others. */
static void others_are_not_outbid(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    s->account.tip_cap = MANAGER_NO_CAP;
    load(s, NULL, 0, 5);
    chain_up(s);
    probe(s, 5, 0);
    finalized_at(s, s->finalized, 5, 0, NULL);
    outbox(s, 1);
    admitted(s);
    no_room(s);
    none(s, MANAGER_FX_RESIGN);
    best(s);
    expect_submit(s, 5);
    script_free(s);
}

/* Seed 20000024671: later ones fill a pool that lost the first, and no tip makes room. A pool keeps
 * what has no era for ever, so without era_period only the lowest nonce that is not final has
 * none. */
static void later_ones_have_eras(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 3);
    const struct manager_effect *fx = expect(s, MANAGER_FX_ADMIT);
    assert_int_equal(fx->sign.count, 3);
    assert_int_equal(fx->sign.rows[0].era_period, 0);
    assert_int_equal(fx->sign.rows[1].era_period, 64);
    assert_int_equal(fx->sign.rows[2].era_period, 64);
    s->taken[fx - s->fx] = false;
    admitted(s);
    script_free(s);
}

/* New bytes as well, and those of fillers. Once a final block used what is below, the nonce is the
 * lowest one. */
static void new_bytes_have_eras(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 2);
    admitted(s);
    refuse(s, 6, 1010, "Invalid Transaction: Transaction has a bad signature");
    refuse(s, 5, 1010, "Invalid Transaction: Transaction has a bad signature");
    stored(s, MANAGER_FX_STORE_STATES);
    stored(s, MANAGER_FX_STORE_STATES);
    best(s);
    const struct manager_effect *fx = expect(s, MANAGER_FX_RESIGN);
    assert_int_equal(fx->sign.count, 2);
    assert_int_equal(fx->sign.rows[0].era_period, 0);
    assert_int_equal(fx->sign.rows[1].era_period, 64);
    s->taken[fx - s->fx] = false;
    resigned(s);
    refuse(s, 6, 1010, "Invalid Transaction: Transaction has a bad signature");
    stored(s, MANAGER_FX_STORE_STATES);
    finalized(s, 6, 0, NULL);
    best(s);
    fx = expect(s, MANAGER_FX_RESIGN);
    assert_int_equal(fx->sign.rows[0].nonce, 6);
    assert_int_equal(fx->sign.rows[0].era_period, 0);
    script_free(s);
}

/* While finality lags by an era, only the lowest nonce can be signed. */
static void later_ones_wait_for_finality(void **state)
{
    (void)state;
    struct script *s = leading(5);
    while (s->best < s->finalized + 64)
        best(s);
    outbox(s, 3);
    const struct manager_effect *fx = expect(s, MANAGER_FX_ADMIT);
    assert_int_equal(fx->sign.count, 1);
    assert_int_equal(fx->sign.rows[0].era_period, 0);
    s->taken[fx - s->fx] = false;
    expect_alert(s, "finality lags");
    admitted(s);
    none(s, MANAGER_FX_WANT_OUTBOX);
    best(s);
    none(s, MANAGER_FX_WANT_OUTBOX);
    while (s->finalized + 61 < s->best)
        finalized(s, 5, 0, NULL);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    script_free(s);
}

/* Six are missing below two, and the window is four: four of them go, and more as these get into
 * blocks. The last one makes all that wait behind it ready, so it waits until they fit. */
static void repairs_fit_too(void **state)
{
    (void)state;
    struct script *s = pooled(0, 0);
    best(s);
    for (uint64_t nonce = 5; nonce <= 10; nonce++)
        status(s, nonce, TX_DROPPED, NULL);
    assert_int_equal(window(s), 4);
    pool_is(s, 0);
    nonce_is(s, 5);
    expect_submit(s, 5);
    pool_is(s, 0); /* the others were dropped after the first question */
    nonce_is(s, 5);
    none(s, MANAGER_FX_SUBMIT);
    accept(s, 5);
    pool_is(s, 1, current(s, 5)); /* behind a nonce that was missing they were not seen */
    nonce_is(s, 5);
    for (uint64_t nonce = 6; nonce <= 8; nonce++)
        expect_submit(s, nonce);
    none(s, MANAGER_FX_SUBMIT);
    for (uint64_t nonce = 6; nonce <= 8; nonce++)
        accept(s, nonce);
    none(s, MANAGER_FX_SUBMIT);
    status(s, 5, TX_IN_BLOCK, block_of(101));
    expect_submit(s, 9);
    accept(s, 9);
    status(s, 6, TX_IN_BLOCK, block_of(101));
    status(s, 7, TX_IN_BLOCK, block_of(101));
    none(s, MANAGER_FX_SUBMIT);
    status(s, 8, TX_IN_BLOCK, block_of(101));
    expect_submit(s, 10);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limit_is_remembered),
        cmocka_unit_test(full_of_others),
        cmocka_unit_test(few_on_the_wire_at_first),
        cmocka_unit_test(banned_after_it_was_dropped),
        cmocka_unit_test(missing_one_gets_in),
        cmocka_unit_test(small_tips_only),
        cmocka_unit_test(missing_one_without_a_cap),
        cmocka_unit_test(missing_one_below_what_is_not_shown),
        cmocka_unit_test(missing_one_pays_a_step),
        cmocka_unit_test(missing_one_under_a_cap),
        cmocka_unit_test(others_are_not_outbid),
        cmocka_unit_test(later_ones_have_eras),
        cmocka_unit_test(new_bytes_have_eras),
        cmocka_unit_test(later_ones_wait_for_finality),
        cmocka_unit_test(repairs_fit_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
