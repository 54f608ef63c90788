/* Promotion: what the table, the pool and the chain say together decides what is sent, awaited or
 * filled. */
#include "manager_harness.h"

/* An account that was never used starts at the chain's nonce, without alarm. */
static void first_use(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    load(s, NULL, 0, -1);
    assert_int_equal(manager_phase(s->m), MANAGER_CHAIN_WAIT);
    expect(s, MANAGER_FX_POLL_REQUESTS);
    quiet(s);
    chain_up(s);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 100);
    assert_int_equal(manager_phase(s->m), MANAGER_PROBE_POOL_WAIT);
    expect(s, MANAGER_FX_ASK_POOL);
    quiet(s);
    pool_is(s, 0);
    assert_int_equal(manager_phase(s->m), MANAGER_PROBE_NONCE_WAIT);
    expect(s, MANAGER_FX_ASK_NONCE);
    nonce_is(s, 17);
    quiet(s); /* it is asked again */
    for (unsigned i = 0; i < 3; i++) {
        none(s, MANAGER_FX_READY);
        tick(s);
        probe(s, 17, 0);
    }
    expect(s, MANAGER_FX_READY);
    quiet(s); /* eras begin at blocks that were read */
    finalized_at(s, 100, 17, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_WANT_OUTBOX)->limit, 128);
    quiet(s);
    assert_int_equal(manager_view_of(s->m).next_nonce, 17);
    script_free(s);
}

/* The snapshot comes in chunks; each next one is asked for after the last nonce. */
static void chunks(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending rows[3];
    for (unsigned i = 0; i < 3; i++)
        rows[i] = loaded_row(s, 5 + i, "broadcast");
    promote(s);
    assert_int_equal(expect(s, MANAGER_FX_LOAD)->after_nonce, -1);
    feed(s, (struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                   .snapshot = {.rows = rows, .count = 2, .next_nonce = 8}});
    assert_int_equal(expect(s, MANAGER_FX_LOAD)->after_nonce, 6);
    assert_int_equal(manager_phase(s->m), MANAGER_LOAD_WAIT);
    feed(s, (struct manager_event){
                .type = MANAGER_EV_SNAPSHOT,
                .snapshot = {.rows = rows + 2, .count = 1, .last = true, .next_nonce = 8}});
    assert_int_equal(manager_phase(s->m), MANAGER_CHAIN_WAIT);
    assert_int_equal(manager_view_of(s->m).open, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_true(manager_knows(s->m, hash_of(5 + i, 1)));
    assert_false(manager_knows(s->m, hash_of(5, 2)));
    script_free(s);
}

/* Blocks are followed from the one after the first that could hold a row. */
static void follow_from_lowest(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending rows[2] = {loaded_row(s, 5, "broadcast"), loaded_row(s, 6, "broadcast")};
    rows[0].submitted_block = 90;
    load(s, rows, 2, 7);
    chain_up(s);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 91);
    script_free(s);
}

static struct script *promoted(const char *state, uint64_t next)
{
    struct script *s = script_new(NULL);
    struct tx_pending rows[3];
    for (unsigned i = 0; i < 3; i++)
        rows[i] = loaded_row(s, 5 + i, state);
    load(s, rows, 3, (int64_t)next);
    chain_up(s);
    return s;
}

/* Killed after the commit, before the socket: the same bytes are sent, lowest nonce first. */
static void killed_signed(void **state)
{
    (void)state;
    struct script *s = promoted("signed", 8);
    probe(s, 5, 0);
    for (unsigned i = 0; i < 3; i++)
        expect_submit(s, 5 + i);
    none(s, MANAGER_FX_RESIGN);
    none(s, MANAGER_FX_ADMIT);
    script_free(s);
}

/* Killed after the send: what the pool holds is not sent again (a duplicate would ban it). */
static void killed_pooled(void **state)
{
    (void)state;
    struct script *s = promoted("broadcast", 8);
    probe(s, 5, 3, hash_of(5, 1), hash_of(6, 1), hash_of(7, 1));
    expect(s, MANAGER_FX_READY);
    none(s, MANAGER_FX_SUBMIT);
    assert_int_equal(manager_view_of(s->m).unsure, 0);
    script_free(s);
}

/* Killed with rows signed, pooled and in a block: each is treated as what it is. */
static void killed_mixed(void **state)
{
    (void)state;
    struct script *s = promoted("signed", 8);
    probe(s, 6, 1, hash_of(6, 1));
    expect_submit(s, 7);
    none(s, MANAGER_FX_SUBMIT);
    assert_int_equal(manager_view_of(s->m).in_block, 1);
    finalized_at(s, 101, 6, 1, &(struct in_block){hash_of(5, 1), 5, true, DISPATCH_OK, NULL});
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(fx->ends.rows[0].nonce, 5);
    assert_int_equal(fx->ends.rows[0].id, 505);
    script_free(s);
}

/* Killed with everything in blocks: nothing is sent, finalized blocks end the rows. */
static void killed_in_block(void **state)
{
    (void)state;
    struct script *s = promoted("in_block", 8);
    probe(s, 8, 0);
    none(s, MANAGER_FX_SUBMIT);
    assert_int_equal(manager_view_of(s->m).in_block, 3);
    script_free(s);
}

/* A block that is back-filled while the probe runs ends its row, and the probe does not bring it
 * back. */
static void block_while_probing(void **state)
{
    (void)state;
    struct script *s = promoted("broadcast", 8);
    finalized_at(s, 97, 6, 1, &(struct in_block){hash_of(5, 1), 5, true, DISPATCH_OK, NULL});
    expect(s, MANAGER_FX_STORE_FINISH);
    finals(s, 98, 6);
    pool_is(s, 0);
    nonce_is(s, 6);
    expect_submit(s, 6);
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* What a pool had once may wait there behind a missing nonce, where no question shows it: the
 * lowest goes alone, and once it is in, the pool is asked who else is there. */
static void probe_head(void **state)
{
    (void)state;
    struct script *s = promoted("broadcast", 8);
    probe(s, 5, 0);
    expect_submit(s, 5);
    none(s, MANAGER_FX_SUBMIT);
    accept(s, 5);
    probe(s, 5, 2, hash_of(5, 1), hash_of(6, 1)); /* 6 had waited for 5; 7 is lost */
    expect_submit(s, 7);
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* A pool that lost everything is filled again in two steps, not one row at a time: after the
 * first one eight are on the wire, and more as these are accepted. */
static void scout_of_many(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending rows[40];
    for (unsigned i = 0; i < 40; i++)
        rows[i] = loaded_row(s, 5 + i, "broadcast");
    load(s, rows, 40, 45);
    chain_up(s);
    probe(s, 5, 0);
    expect_submit(s, 5);
    none(s, MANAGER_FX_SUBMIT);
    accept(s, 5);
    probe(s, 5, 1, hash_of(5, 1));
    size_t sent = count_of(s, MANAGER_FX_SUBMIT);
    assert_int_equal(sent, 8);
    for (uint64_t nonce = 6; nonce < 14; nonce++) { /* more as these are answered */
        accept(s, nonce);
        sent += count_of(s, MANAGER_FX_SUBMIT);
    }
    assert_int_equal(sent, 8 + 8 + 2);
    script_free(s);
}

/* A pool that holds an earlier attempt of a row holds the row. */
static void earlier_attempt_pooled(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending row = loaded_row(s, 5, "signed");
    uint8_t earlier[1][32];
    memcpy(earlier[0], hash_of(5, 77), 32);
    row.earlier = (const uint8_t(*)[32])earlier;
    row.earlier_count = 1;
    load(s, &row, 1, 6);
    chain_up(s);
    assert_true(manager_knows(s->m, hash_of(5, 77)));
    probe(s, 5, 1, hash_of(5, 77));
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* Bytes whose era is over, or that are of another runtime, are not sent again: new ones are
 * made. */
static void useless_bytes(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending rows[2] = {loaded_row(s, 5, "signed"), loaded_row(s, 6, "signed")};
    rows[0].era_death = 103; /* best is 102: no pool takes it */
    rows[1].spec_version = SPEC - 1;
    load(s, rows, 2, 7);
    chain_up(s);
    probe(s, 5, 0);
    none(s, MANAGER_FX_SUBMIT);
    const struct manager_effect *fx = expect(s, MANAGER_FX_RESIGN);
    assert_int_equal(fx->sign.count, 2);
    assert_string_equal(fx->sign.rows[0].reason, "era expired");
    assert_string_equal(fx->sign.rows[1].reason, "runtime version changed");
    assert_int_equal(fx->sign.rows[0].call_len, CALL_LEN);
    script_free(s);
}

/* The rows rule over a chain nonce that lags behind them. */
static void next_from_rows(void **state)
{
    (void)state;
    struct script *s = promoted("broadcast", 0);
    probe(s, 5, 3, hash_of(5, 1), hash_of(6, 1), hash_of(7, 1));
    assert_int_equal(manager_view_of(s->m).next_nonce, 8);
    none(s, MANAGER_FX_STORE_NONCE);
    script_free(s);
}

/* A chain nonce above ours is foreign use or lost commits: alarm, and the next nonce moves up. */
static void chain_above(void **state)
{
    (void)state;
    struct script *s = promoted("broadcast", 8);
    probe_foreign(s, 12);
    expect_alert(s, "account nonce is 12");
    assert_int_equal(expect(s, MANAGER_FX_STORE_NONCE)->next.nonce, 12);
    none(s, MANAGER_FX_WANT_OUTBOX);
    none(s, MANAGER_FX_FILL);
    assert_int_equal(manager_view_of(s->m).in_block, 3);
    stored(s, MANAGER_FX_STORE_NONCE);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    script_free(s);
}

/* The same with no row at all. */
/* One wrong answer moves nothing, nor do several with a right one between, and the lowest of those
 * that are in a row counts. */
static void wrong_nonce_at_the_best_block(void **state)
{
    (void)state;
    static const uint64_t answers[][4] = {{12, 8, 0, 0}, {12, 12, 12, 8}, {20, 9, 30, 14}};
    for (size_t i = 0; i < 3; i++) {
        struct script *s = script_new(NULL);
        load(s, NULL, 0, 8);
        chain_up(s);
        for (size_t k = 0; k < 4 && answers[i][k]; k++) {
            while (!count_of(s, MANAGER_FX_ASK_POOL))
                tick(s);
            none(s, MANAGER_FX_READY);
            none(s, MANAGER_FX_STORE_NONCE);
            probe(s, answers[i][k], 0);
        }
        expect(s, MANAGER_FX_READY);
        assert_int_equal(manager_view_of(s->m).next_nonce, i == 2 ? 9 : 8);
        script_free(s);
    }
}

static void chain_above_empty(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    load(s, NULL, 0, 8);
    chain_up(s);
    probe_foreign(s, 9);
    expect_alert(s, "account nonce is 9");
    assert_int_equal(expect(s, MANAGER_FX_STORE_NONCE)->next.nonce, 9);
    script_free(s);
}

/* A nonce between rows that has no row is filled; later rows wait for it. */
static void hole_between(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending rows[2] = {loaded_row(s, 5, "signed"), loaded_row(s, 8, "signed")};
    load(s, rows, 2, 9);
    chain_up(s);
    probe(s, 5, 0);
    expect_submit(s, 5);
    none(s, MANAGER_FX_SUBMIT);
    const struct manager_effect *fx = expect(s, MANAGER_FX_FILL);
    assert_int_equal(fx->sign.count, 2);
    assert_int_equal(fx->sign.rows[0].nonce, 6);
    assert_int_equal(fx->sign.rows[1].nonce, 7);
    assert_int_equal(fx->sign.rows[0].id, 0);
    s->taken[fx - s->fx] = false;
    filled(s);
    expect_submit(s, 6);
    expect_submit(s, 7);
    expect_submit(s, 8);
    script_free(s);
}

/* A hole below the lowest row, from the chain's nonce on, is filled too. */
static void hole_below(void **state)
{
    (void)state;
    struct script *s = promoted("signed", 8);
    probe(s, 3, 0);
    const struct manager_effect *fx = expect(s, MANAGER_FX_FILL);
    assert_int_equal(fx->sign.count, 2);
    assert_int_equal(fx->sign.rows[0].nonce, 3);
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* A hole above the highest row, up to the stored next nonce, is filled. */
static void hole_above(void **state)
{
    (void)state;
    struct script *s = promoted("broadcast", 10);
    probe(s, 5, 3, hash_of(5, 1), hash_of(6, 1), hash_of(7, 1));
    assert_int_equal(expect(s, MANAGER_FX_FILL)->sign.count, 2);
    assert_int_equal(manager_view_of(s->m).next_nonce, 10);
    script_free(s);
}

/* A hole that the chain has used meanwhile is none: it is below the best nonce. */
static void hole_used(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending rows[2] = {loaded_row(s, 5, "broadcast"), loaded_row(s, 7, "broadcast")};
    load(s, rows, 2, 8);
    chain_up(s);
    probe(s, 7, 1, hash_of(7, 1));
    none(s, MANAGER_FX_FILL);
    script_free(s);
}

/* An account nonce far below the lowest row is a reaped account or another chain: nothing is
 * done. */
static void far_below(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending row = loaded_row(s, 1000, "broadcast");
    load(s, &row, 1, 1001);
    chain_up(s);
    probe(s, 1, 0);
    expect_alert(s, "reaped account");
    none(s, MANAGER_FX_FILL);
    none(s, MANAGER_FX_SUBMIT);
    none(s, MANAGER_FX_READY);
    assert_int_not_equal(manager_phase(s->m), MANAGER_LEADING);
    tick(s); /* and it is asked again, not in a hot loop */
    expect(s, MANAGER_FX_ASK_POOL);
    script_free(s);
}

/* A stored next nonce above the chain with nothing behind it goes back, once finalized and best
 * agree. */
static void rewind_counter(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    load(s, NULL, 0, 12);
    chain_up(s);
    probe(s, 5, 0);
    expect(s, MANAGER_FX_READY);
    none(s, MANAGER_FX_STORE_NONCE); /* no finalized block was seen yet */
    none(s, MANAGER_FX_WANT_OUTBOX);
    finalized_at(s, 100, 4, 0, NULL);
    best(s);
    probe(s, 5, 0);
    none(s, MANAGER_FX_STORE_NONCE); /* block 100 had nonce 4: not settled */
    finalized(s, 5, 0, NULL);
    best(s);
    probe(s, 5, 0);
    expect_alert(s, "going back");
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_NONCE);
    assert_int_equal(fx->next.nonce, 5);
    assert_true(fx->next.lower);
    stored(s, MANAGER_FX_STORE_NONCE);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    assert_int_equal(manager_view_of(s->m).next_nonce, 5);
    script_free(s);
}

/* Nor do holes stand in its way once nothing signed is left: a relay without the key cannot close
 * them, and what could waits for the rewind (seed 400004515). */
static void rewind_over_holes(void **state)
{
    (void)state;
    struct script *s = script_new(&(struct manager_config){.window_max = 16, .keyless = true});
    struct tx_pending row = loaded_row(s, 8, "broadcast");
    row.presigned = true;
    row.era_death = (int64_t)s->finalized + 2;
    load(s, &row, 1, 40);
    chain_up(s);
    probe(s, 5, 1, hash_of(8, 1));
    expect(s, MANAGER_FX_READY);
    assert_int_equal(manager_view_of(s->m).open, 4); /* and the holes 5, 6, 7 */
    none(s, MANAGER_FX_FILL);
    while (!count_of(s, MANAGER_FX_STORE_FINISH) && s->finalized < (uint64_t)row.era_death + 3)
        finalized(s, 5, 0, NULL);
    expect(s, MANAGER_FX_STORE_FINISH);
    stored(s, MANAGER_FX_STORE_FINISH);
    probe(s, 5, 0);
    expect_alert(s, "going back");
    assert_int_equal(expect(s, MANAGER_FX_STORE_NONCE)->next.nonce, 5);
    stored(s, MANAGER_FX_STORE_NONCE);
    assert_int_equal(manager_view_of(s->m).open, 0);
    assert_int_equal(manager_view_of(s->m).next_nonce, 5);
    script_free(s);
}

/* No rewind while the chain is on its way to the stored nonce. */
static void no_rewind(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    load(s, NULL, 0, 6);
    chain_up(s);
    probe(s, 5, 0);
    finalized_at(s, 100, 4, 0, NULL);
    best(s);
    probe(s, 6, 0);
    none(s, MANAGER_FX_STORE_NONCE);
    none(s, MANAGER_FX_ALERT);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    assert_int_equal(manager_view_of(s->m).next_nonce, 6);
    script_free(s);
}

/* A node that is behind the height at which a row was signed is not asked. */
static void node_behind(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending row = loaded_row(s, 5, "broadcast");
    row.submitted_block = 150;
    row.era_death = 214;
    load(s, &row, 1, 6);
    chain_up(s);
    none(s, MANAGER_FX_ASK_POOL);
    expect_alert(s, "behind");
    assert_int_equal(expect(s, MANAGER_FX_NODE_BEHIND)->number, 150); /* another one may not be */
    s->finalized = 150;
    feed(s, (struct manager_event){.type = MANAGER_EV_CHAIN_UP,
                                   .chain = {.finalized = 150, .best = 152, .spec_version = SPEC}});
    expect(s, MANAGER_FX_ASK_POOL);
    script_free(s);
}

/* Its final head comes up to the row while it makes no other block, and no block is left to read
 * that would tell (seed 87000000704). */
static void node_behind_comes_up(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending row = loaded_row(s, 5, "broadcast");
    row.submitted_block = 150;
    row.era_death = 214;
    load(s, &row, 1, 6);
    s->best = 149;
    chain_up(s);
    best(s);
    none(s, MANAGER_FX_ASK_POOL);
    s->finalized = 150;
    s->best--; /* the same head again */
    best(s);
    expect(s, MANAGER_FX_ASK_POOL);
    script_free(s);
}

/* The last final block is the one that the rows were signed at: the leader before has read it. */
static void finality_stands_still(void **state)
{
    (void)state;
    struct script *s = script_new(&(struct manager_config){.era_period = 64});
    struct tx_pending row = loaded_row(s, 5, "broadcast");
    row.submitted_block = s->finalized;
    row.era_death = (int64_t)s->finalized + 64;
    load(s, &row, 1, 6);
    chain_up(s);
    probe(s, 5, 1, hash_of(5, 1));
    expect(s, MANAGER_FX_WANT_OUTBOX);
    none(s, MANAGER_FX_ALERT);
    script_free(s);
}

/* Nor is one that lacks blocks which another node had: what it says of an account that was reaped
 * in one of them would have everything sent again (seed 13470). The manager waits
 * for a few blocks without a word, and reports more. */
static void node_behind_another(void **state)
{
    (void)state;
    static const uint64_t lags[] = {1, 10, 11};
    for (size_t i = 0; i < sizeof(lags) / sizeof(*lags); i++) {
        struct script *s = script_new(NULL);
        struct tx_pending row = loaded_row(s, 5, "broadcast");
        load(s, &row, 1, 6);
        uint64_t known = s->best_known = s->best + lags[i];
        feed(s, (struct manager_event){.type = MANAGER_EV_CHAIN_UP,
                                       .chain = {.finalized = s->finalized,
                                                 .best = s->best,
                                                 .best_known = known,
                                                 .spec_version = SPEC}});
        none(s, MANAGER_FX_ASK_POOL);
        if (lags[i] > 10)
            expect_alert(s, "behind");
        none(s, MANAGER_FX_ALERT);
        none(s, MANAGER_FX_NODE_BEHIND); /* the door has said so: it would repeat a claim */
        for (uint64_t b = expect(s, MANAGER_FX_FOLLOW)->number; b <= s->finalized; b++)
            finalized_at(s, b, 1, 0, NULL);
        none(s, MANAGER_FX_ASK_POOL);
        while (s->best + 1 < known)
            best(s);
        none(s, MANAGER_FX_ASK_POOL);
        best(s);
        expect(s, MANAGER_FX_ASK_POOL);
        script_free(s);
    }
}

/* The leader's own node changes under it: its rows are not judged by what the new one lacks. */
static void node_behind_the_last(void **state)
{
    (void)state;
    struct script *s = promoted("broadcast", 8);
    probe(s, 5, 3, hash_of(5, 1), hash_of(6, 1), hash_of(7, 1));
    uint64_t known = s->best_known = s->best;
    chain_down(s);
    s->best -= 2;
    feed(s, (struct manager_event){.type = MANAGER_EV_CHAIN_UP,
                                   .chain = {.finalized = s->finalized,
                                             .best = s->best,
                                             .best_known = known,
                                             .spec_version = SPEC}});
    best(s);
    none(s, MANAGER_FX_ASK_POOL);
    best(s);
    expect(s, MANAGER_FX_ASK_POOL);
    script_free(s);
}

/* A height that nobody repeats is not waited for any longer: whoever named it is gone, or made it
 * up. */
static void height_that_nobody_repeats(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending row = loaded_row(s, 5, "broadcast");
    load(s, &row, 1, 6);
    s->best_known = UINT64_C(1) << 60;
    feed(s, (struct manager_event){.type = MANAGER_EV_CHAIN_UP,
                                   .chain = {.finalized = s->finalized,
                                             .best = s->best,
                                             .best_known = s->best_known,
                                             .spec_version = SPEC}});
    for (uint64_t b = expect(s, MANAGER_FX_FOLLOW)->number; b <= s->finalized; b++)
        finalized_at(s, b, 1, 0, NULL);
    best(s);
    none(s, MANAGER_FX_ASK_POOL);
    s->best_known = 0; /* the door dropped it */
    best(s);
    expect(s, MANAGER_FX_ASK_POOL);
    script_free(s);
}

/* A node names a final block that nobody has. Nothing is signed while it does, the blocks are
 * followed from where they are, and a later answer takes the height back. */
static void final_block_that_is_not(void **state)
{
    (void)state;
    struct script *s = script_new(&(struct manager_config){.era_period = 64});
    load(s, NULL, 0, 5);
    uint64_t real = s->finalized;
    s->finalized = UINT64_C(1) << 60;
    chain_up(s);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, s->finalized);
    s->finalized = real;
    pool_is(s, 0);
    expect(s, MANAGER_FX_ASK_NONCE);
    nonce_is(s, 5);
    expect(s, MANAGER_FX_READY);
    none(s, MANAGER_FX_WANT_OUTBOX);
    best(s);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, real);
    finalized_at(s, real, 5, 0, NULL);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    s->finalized = UINT64_C(1) << 60; /* again, at a new connection */
    chain_down(s);
    chain_up(s);
    s->finalized = real;
    outbox(s, 1);
    none(s, MANAGER_FX_ADMIT);
    expect_alert(s, "is said to be final");
    best(s);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    script_free(s);
}

/* A height that is near is taken back as well, if blocks were to be followed from there. */
static void near_final_block_that_is_not(void **state)
{
    (void)state;
    struct script *s = script_new(&(struct manager_config){.era_period = 64});
    load(s, NULL, 0, 5);
    uint64_t real = s->finalized;
    s->finalized = real + 30;
    chain_up(s);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, real + 30);
    s->finalized = real;
    pool_is(s, 0);
    expect(s, MANAGER_FX_ASK_NONCE);
    nonce_is(s, 5);
    expect(s, MANAGER_FX_READY);
    best(s);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, real);
    script_free(s);
}

/* A question that could not be asked is asked again later, not at once. */
static void probe_fails(void **state)
{
    (void)state;
    struct script *s = promoted("broadcast", 8);
    none(s, MANAGER_FX_ASK_POOL);
    finals(s, 97, 5);
    expect(s, MANAGER_FX_ASK_POOL);
    pool_failed(s);
    quiet(s);
    assert_true(manager_deadline(s->m) > s->now);
    tick(s);
    expect(s, MANAGER_FX_ASK_POOL);
    script_free(s);
}

/* The chain goes down in the middle of promotion: the late answer is not used, all is asked
 * again. */
static void chain_lost_while_probing(void **state)
{
    (void)state;
    struct script *s = promoted("broadcast", 8);
    chain_down(s);
    assert_int_equal(manager_phase(s->m), MANAGER_CHAIN_WAIT);
    chain_up(s);
    none(s, MANAGER_FX_FOLLOW); /* following survives reconnects */
    pool_failed(s);             /* of the question before */
    probe(s, 5, 0);
    expect_submit(s, 5);
    script_free(s);
}

/* A demoted manager says nothing, forgets everything, and starts over when promoted. */
static void demotion(void **state)
{
    (void)state;
    struct script *s = promoted("signed", 8);
    probe(s, 5, 0);
    feed(s, (struct manager_event){.type = MANAGER_EV_DEMOTED});
    quiet(s);
    assert_int_equal(manager_phase(s->m), MANAGER_IDLE);
    assert_int_equal(manager_view_of(s->m).open, 0);
    assert_int_equal(manager_deadline(s->m), UINT64_MAX);
    accept(s, 5);
    best(s);
    finalized_at(s, 97, 6, 1, &(struct in_block){hash_of(5, 1), 5, true, DISPATCH_OK, NULL});
    quiet(s);
    promote(s);
    expect(s, MANAGER_FX_LOAD);
    script_free(s);
}

/* A load that fails is tried again with back-off; a permanent failure is said. */
static void load_fails(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    promote(s);
    expect(s, MANAGER_FX_LOAD);
    write_failed(s, MANAGER_FX_LOAD, ERR_DB_UNAVAILABLE);
    quiet(s);
    uint64_t first = manager_deadline(s->m) - s->now;
    assert_in_range(first, 1, 1000);
    tick(s);
    expect(s, MANAGER_FX_LOAD);
    write_failed(s, MANAGER_FX_LOAD, ERR_DB_DENIED);
    expect_alert(s, "could not be read");
    tick(s);
    assert_int_equal(expect(s, MANAGER_FX_LOAD)->after_nonce, -1);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_use),
        cmocka_unit_test(chunks),
        cmocka_unit_test(follow_from_lowest),
        cmocka_unit_test(killed_signed),
        cmocka_unit_test(killed_pooled),
        cmocka_unit_test(killed_mixed),
        cmocka_unit_test(killed_in_block),
        cmocka_unit_test(block_while_probing),
        cmocka_unit_test(probe_head),
        cmocka_unit_test(scout_of_many),
        cmocka_unit_test(earlier_attempt_pooled),
        cmocka_unit_test(useless_bytes),
        cmocka_unit_test(next_from_rows),
        cmocka_unit_test(chain_above),
        cmocka_unit_test(wrong_nonce_at_the_best_block),
        cmocka_unit_test(chain_above_empty),
        cmocka_unit_test(hole_between),
        cmocka_unit_test(hole_below),
        cmocka_unit_test(hole_above),
        cmocka_unit_test(hole_used),
        cmocka_unit_test(far_below),
        cmocka_unit_test(rewind_counter),
        cmocka_unit_test(rewind_over_holes),
        cmocka_unit_test(no_rewind),
        cmocka_unit_test(finality_stands_still),
        cmocka_unit_test(node_behind),
        cmocka_unit_test(node_behind_comes_up),
        cmocka_unit_test(node_behind_another),
        cmocka_unit_test(node_behind_the_last),
        cmocka_unit_test(height_that_nobody_repeats),
        cmocka_unit_test(final_block_that_is_not),
        cmocka_unit_test(near_final_block_that_is_not),
        cmocka_unit_test(probe_fails),
        cmocka_unit_test(chain_lost_while_probing),
        cmocka_unit_test(demotion),
        cmocka_unit_test(load_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
