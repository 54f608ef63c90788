/* What holds whoever coordinates: once, nothing lost, in order, by the final chain. By single steps
 * of four_sites.h. The tests are named after the rows of the requirements (P..). */
#include "four_sites.h"

#include <stdio.h>

/* ---- once ---- */

static void split(bool apart)
{
    for (unsigned i = A; i <= D; i++)
        for (unsigned j = A; j <= D; j++)
            away[i][j] = apart && (i < C) != (j < C);
}

/* Bytes at this nonce that were signed, and that a final block has. */
static unsigned at_nonce(uint64_t nonce, bool used)
{
    unsigned n = 0;
    for (size_t i = 0; i < signed_count; i++)
        n += signed_bytes[i].nonce == nonce && (!used || used_heights[i]);
    return n;
}

static void the_chain_stops_the_second_of_two_coordinators(void **state)
{
    (void)state;
    begin_with(&(struct site_config){.own_send_ms = 1000}); /* bytes are sent more than once */
    split(true);
    for (unsigned i = A; i <= D; i++)
        for (unsigned k = 0; k < 3; k++)
            enqueue(i, 10 * (i + 1) + k);
    wait_ms(8000);
    assert_int_equal(coordinators(), 2);
    wait_ms(3000);
    for (uint64_t nonce = 0; nonce < 6; nonce++)
        assert_int_equal(at_nonce(nonce, false), 2); /* both gave each nonce */
    assert_true(submitted[0] > 1);
    for (int i = 0; i < 10; i++) {
        finalize();
        wait_ms(1000);
        for (unsigned s = A; s <= D; s++)
            for (unsigned k = 0; k < 3; k++)
                assert_in_range(effects_of(10 * (s + 1) + k), 0, 1);
    }
    finish();
    for (uint64_t nonce = 0; nonce < 12; nonce++)
        assert_int_equal(at_nonce(nonce, true), 1);
}

/* ---- nothing is lost ---- */

static void stages_in_beats(bool seen[SITE_WORK_DISPATCHED + 1])
{
    for (unsigned to = B; to <= D; to++)
        for (size_t i = 0; i < beats[A][to].message.count; i++)
            seen[beats[A][to].items[i].stage] = true;
}

static void a_switch_loses_nothing_whatever_state_it_is_in(void **state)
{
    (void)state;
    bool seen[SITE_WORK_DISPATCHED + 1] = {false};
    begin_with(&(struct site_config){.approvals = 1, .window_max = 6, .retry_ms = 3000});
    enqueue(C, 1);
    settle(); /* dispatched */
    enqueue(C, 2);
    while (!told("C>A grant 2"))
        deliver();
    site[A].stuck = true; /* the dispatch of 2 is being stored */
    settle();
    lose[SITE_MSG_PROPOSE] = 1; /* of 3 */
    enqueue(D, 3);
    settle();
    enqueue(C, 4); /* granted, behind 3 */
    settle();
    lose[SITE_MSG_APPROVE] = 3; /* of 5, to each of the others */
    enqueue(B, 5);
    settle();
    site[A].mute = true; /* 6 is being signed, and 7 gets no nonce any more */
    enqueue(B, 6);
    enqueue(D, 7);
    settle();
    wait_ms(1000); /* a heartbeat */
    stages_in_beats(seen);
    for (int stage = SITE_WORK_HELD; stage <= SITE_WORK_DISPATCHED; stage++)
        if (!seen[stage])
            fail_msg("nothing is in state %d", stage);
    all_see(4);
    wait_ms(100);
    site[A].mute = false;
    commit_late(A);
    finish();
    wait_ms(10000);
    for (unsigned i = A; i <= D; i++)
        assert_int_equal(state_of(i), SITE_IDLE);
}

/* It was dispatched, and the sender knows: then the coordinator and all pools lose it. */
static void the_sender_answers_for_it_until_the_chain_shows_it(void **state)
{
    (void)state;
    begin_with(&(struct site_config){.own_send_ms = 30000});
    enqueue(C, 7);
    settle();
    assert_int_equal(site[C].noted, 1);
    for (unsigned i = A; i <= D; i++)
        if (i != C)
            crash(i);
    submitted[0] = 0;
    wait_ms(31000);
    assert_true(submitted[0] > 0);
    assert_false(has_ended(C, 7));
    finish();
    assert_int_equal(signed_count, 1); /* the same bytes */
}

/* After each message of the way of a transaction one of the two sites is gone for good. */
static void nothing_waits_for_a_site_that_is_gone(void **state)
{
    (void)state;
    for (unsigned gone = A; gone <= C; gone += C - A)
        for (unsigned delivered = 0; delivered <= 6; delivered++) {
            begin(4);
            enqueue(C, 7);
            for (unsigned i = 0; i < delivered; i++)
                deliver();
            crash(gone);
            if (gone == A)
                finish(); /* the sender has it in a block without the coordinator */
            for (int second = 0; second < 80; second++) {
                wait_ms(1000);
                finalize();
            }
            for (unsigned i = A; i <= D; i++) {
                assert_int_equal(site[i].dispatch_count && i != gone, 0);
                if (i != gone)
                    assert_int_equal(state_of(i), SITE_IDLE);
            }
            start(gone);
            finish();
        }
}

/* Each kind that must arrive is lost twice; a second copy of everything changes nothing. */
static void letters(enum site_message_type type, bool dies)
{
    begin_with(&(struct site_config){.era_blocks = dies ? 6 : 1000});
    twice = true;
    lose[type] = 2;
    enqueue(C, 1);
    settle();
    if (dies) {
        memset(submitted, 0, sizeof(submitted)); /* no pool has it */
        for (int block = 0; block < 6; block++)
            finalize();
    }
    site[A].mute = true;
    enqueue(C, 2);
    settle();
    wait_ms(2100);
    site[A].mute = false;
    all_see(4);
    settle();
    wait_ms(4000);
    finish();
    wait_ms(4000);
    unsigned first = 0, later = 0;
    for (unsigned from = A; from <= D; from++)
        for (unsigned to = A; to <= D; to++)
            first += sent[from][to][type];
    wait_ms(10000);
    for (unsigned from = A; from <= D; from++)
        for (unsigned to = A; to <= D; to++)
            later += sent[from][to][type];
    assert_int_equal(lose[type], 0);
    assert_true(first >= 3); /* until it arrived */
    assert_int_equal(first, later);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(site[C].grant_count[i], dies && i == 0 ? 2 : 1);
}

static void what_must_arrive_is_sent_until_it_does(void **state)
{
    (void)state;
    letters(SITE_MSG_GRANT, false);
    letters(SITE_MSG_DISPATCHED, false);
    letters(SITE_MSG_RETURNED, false);
    letters(SITE_MSG_HANDOVER, false);
    letters(SITE_MSG_CLOSED, false);
    letters(SITE_MSG_REVERTED, true);
}

static void a_sender_hears_of_dead_bytes_and_of_no_retry(void **state)
{
    (void)state;
    begin_with(&(struct site_config){.own_send_ms = 2000, .era_blocks = 6});
    enqueue(C, 7);
    settle();
    buf_clear(&wire);
    for (int block = 0; block < 5; block++) {
        wait_ms(2500);
        assert_true(submitted[0] > (unsigned)block); /* again and again, in vain */
        submitted[0] = 0;
        finalize();
        submitted[0] = (unsigned)block + 1;
    }
    SAYS("");
    submitted[0] = 0;
    finalize();
    settle();
    assert_true(told("A>C reverted 7, ") && told("C>A ack 7, "));
    assert_int_equal(effects_of(7), 0);
    finish();
    assert_int_equal(site[C].grant_count[0], 2);
}

/* ---- by the final chain ---- */

static void a_block_that_is_not_final_ends_nothing(void **state)
{
    (void)state;
    begin_with(&(struct site_config){.own_send_ms = 30000});
    enqueue(C, 7);
    settle();
    unfinal = 1; /* the best block has it */
    all_see(2);
    wait_ms(5000);
    assert_false(has_ended(C, 7));
    assert_int_equal(site[A].dispatch_count, 1);
    unfinal = 0; /* another one takes its place, without it */
    submitted[0] = 0;
    all_see(3);
    wait_ms(31000);
    assert_true(submitted[0] > 0); /* sent again */
    finish();
    assert_int_equal(signed_count, 1);
}

/* ---- a switch-over ---- */

static uint64_t block_of(uint64_t id)
{
    for (size_t i = 0; i < signed_count; i++)
        if (signed_ids[i] == id && used_heights[i])
            return used_heights[i];
    fail_msg("transaction %u is in no block", (unsigned)id);
    return 0;
}

static void the_new_coordinator_prepares_and_the_old_batch_comes_first(void **state)
{
    (void)state;
    begin(4);
    for (unsigned i = B; i <= D; i++)
        enqueue(i, i);
    settle();
    assert_int_equal(site[A].dispatch_count, 3);
    all_see(4);
    for (unsigned i = B; i <= D; i++)
        enqueue(i, 10 + i);
    settle();
    wait_ms(5000);
    assert_int_equal(state_of(B), SITE_PREPARED);
    for (unsigned i = B; i <= D; i++)
        assert_int_equal(site[i].grant_count[1], 1); /* all is ready */
    assert_int_equal(site[B].dispatched, 0);
    assert_int_equal(state_of(A), SITE_FLUSH);
    finalize();
    wait_ms(100);
    assert_int_equal(site[B].dispatched, 3);
    finish();
    for (unsigned i = B; i <= D; i++)
        for (unsigned j = B; j <= D; j++)
            assert_true(block_of(i) < block_of(10 + j));
}

/* What the former coordinator has dispatched above a nonce that it did not give out cannot be
 * included before that nonce is. No site may wait for an era because of it. */
static void holes_below_the_old_batch_come_before_it(void **state)
{
    (void)state;
    begin(4);
    lose[SITE_MSG_PROPOSE] = 2; /* of nonces 0 and 1 */
    enqueue(C, 1);
    settle();
    enqueue(C, 2);
    settle();
    enqueue(D, 3); /* granted at nonce 2 */
    settle();
    crash(C);
    all_see(4);
    enqueue(B, 4);
    settle();
    assert_true(told("A>B handover 3, "));
    wait_ms(5000);
    assert_int_equal(state_of(B), SITE_PREPARED);
    assert_int_equal(site[B].dispatched, 2); /* its own transaction, and a filler */
    finalize();
    assert_int_equal(effects_of(4) + effects_of(3), 2);
    start(C);
    finish();
}

struct dip {
    unsigned seconds, switches, sent;
};

/* Two transactions a second at each site; every fourth second a block becomes final. A dip is a
 * second in which nothing is dispatched. */
static struct dip dips(uint32_t range_blocks)
{
    enum { SECONDS = 300 };
    struct dip d = {0};
    unsigned before = 0;
    uint64_t id = 0;
    int chosen = A;
    begin_with(&(struct site_config){.range_blocks = range_blocks});
    for (uint64_t second = 1; second <= SECONDS; second++) {
        unsigned now = 0;
        all_see(second);
        d.switches += view_of(A).chosen != chosen;
        chosen = view_of(A).chosen;
        for (unsigned i = A; i <= D; i++) {
            enqueue(i, ++id);
            enqueue(i, ++id);
        }
        settle();
        wait_ms(1000);
        if (second % 4 == 2)
            finalize();
        for (unsigned i = A; i <= D; i++)
            now += site[i].dispatched;
        d.seconds += now == before;
        before = now;
    }
    d.sent = before;
    finish();
    return d;
}

static void the_share_of_the_dips_falls_as_the_range_grows(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {8, 16, 32, 64, 128};
    unsigned last = 0;
    printf("range  switches  seconds without a dispatch of 300  dispatched\n");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        struct dip d = dips(sizes[i]);
        printf("%5u  %8u  %33u  %10u\n", (unsigned)sizes[i], d.switches, d.seconds, d.sent);
        assert_true(d.switches > 0 && d.seconds > 0);
        assert_true(d.seconds <= 3 * d.switches); /* each is short */
        if (i)
            assert_true(d.seconds < last);
        last = d.seconds;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_chain_stops_the_second_of_two_coordinators),
        cmocka_unit_test(a_switch_loses_nothing_whatever_state_it_is_in),
        cmocka_unit_test(the_sender_answers_for_it_until_the_chain_shows_it),
        cmocka_unit_test(nothing_waits_for_a_site_that_is_gone),
        cmocka_unit_test(what_must_arrive_is_sent_until_it_does),
        cmocka_unit_test(a_sender_hears_of_dead_bytes_and_of_no_retry),
        cmocka_unit_test(a_block_that_is_not_final_ends_nothing),
        cmocka_unit_test(the_new_coordinator_prepares_and_the_old_batch_comes_first),
        cmocka_unit_test(holes_below_the_old_batch_come_before_it),
        cmocka_unit_test(the_share_of_the_dips_falls_as_the_range_grows),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    done();
    return failed;
}
