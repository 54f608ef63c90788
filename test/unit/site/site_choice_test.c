/* Who coordinates, and how the sites know it: by single steps of four_sites.h. The tests are named
 * after the rows of the requirements (P..). */
#include "four_sites.h"

/* Without heartbeats. */
static unsigned sent_to(unsigned from, unsigned to)
{
    unsigned n = 0;
    for (int type = 0; type < SITE_MSG_COUNT; type++)
        n += type == SITE_MSG_HEARTBEAT ? 0 : sent[from][to][type];
    return n;
}

static unsigned beats_of(unsigned who)
{
    unsigned n = 0;
    for (unsigned to = A; to <= D; to++)
        n += sent[who][to][SITE_MSG_HEARTBEAT];
    return n;
}

static unsigned demoted_by(unsigned who)
{
    return (unsigned)site_core_counts(site[who].core)->demoted;
}

static const struct site_item *in_beat(unsigned from, unsigned to, uint64_t id)
{
    const struct post *p = &beats[from][to];
    for (size_t i = 0; i < p->message.count; i++)
        if (p->items[i].id == id)
            return &p->items[i];
    return NULL;
}

/* ---- the choice ---- */

static void no_message_elects(void **state)
{
    (void)state;
    begin(4);
    all_see(4); /* another range, and so another coordinator */
    wait_ms(3000);
    assert_int_equal(messages, 0);
    enqueue(C, 7);
    settle();
    finish();
    wait_ms(6000);
    crash(B); /* and another one by silence */
    enqueue(C, 8);
    wait_ms(9000);
    assert_true(told("C>B probe, ") && told("C>D delegate 8, "));
    /* Only a sender and its delegates had something to say: the others agree without a word. */
    for (unsigned from = A; from <= D; from++)
        for (unsigned to = A; to <= D; to++)
            if (from != C && to != C)
                assert_int_equal(sent_to(from, to), 0);
    assert_int_equal(sent_to(C, A) + sent_to(A, C), 0);
    start(B);
    finish();
}

static void chosen_by_all(unsigned expected)
{
    for (unsigned i = A; i <= D; i++)
        if (site[i].core)
            assert_int_equal(view_of(i).chosen, expected);
}

static void only_a_range_or_absence_changes_the_choice(void **state)
{
    (void)state;
    static const unsigned ranges[] = {A, B, D, A};
    uint64_t id = 0;
    begin(4);
    for (uint64_t height = 1; height < 16; height++) {
        all_see(height);
        chosen_by_all(ranges[height / 4]);
        for (unsigned i = A; i <= D; i++)
            enqueue(i, ++id); /* work does not */
        settle();
        finish();
        chosen_by_all(ranges[height / 4]);
    }
    wait_ms(6000);
    crash(A);
    enqueue(D, ++id);
    wait_ms(7500);
    assert_int_equal(view_of(D).chosen, C);
    start(A);
    wait_ms(2000);
    chosen_by_all(A);
    finish();
}

static void a_minority_may_be_down(void **state)
{
    (void)state;
    for (unsigned down = A; down <= D; down++) {
        begin(4);
        crash(down);
        for (unsigned i = A; i <= D; i++)
            if (i != down)
                enqueue(i, i + 1);
        settle();
        finish();
    }
}

/* One site goes on alone, and one that cannot reach the coordinator leaves it to the others. */
static void nobody_votes_on_who_is_away(void **state)
{
    (void)state;
    begin(4);
    for (unsigned i = A; i <= C; i++)
        crash(i);
    enqueue(D, 7);
    settle();
    finish();
    begin(4);
    away[A][D] = away[D][A] = true;
    site[A].mute = true;
    enqueue(B, 8); /* keeps A busy */
    enqueue(D, 9);
    wait_ms(8000);
    assert_true(told("D>C delegate 9, C>D accepted 9, "));
    assert_int_equal(view_of(D).chosen, C);
    assert_int_equal(view_of(B).chosen, A);
    assert_int_equal(state_of(A), SITE_ACTIVE);
    assert_int_equal(sent_to(D, B) + sent_to(C, B) + sent_to(C, A), 0);
    site[A].mute = false;
    restart(A);
    finish();
}

/* ---- heartbeats ---- */

static void a_coordinator_beats_to_all_and_accepts_from_any(void **state)
{
    (void)state;
    begin(4);
    enqueue(C, 7);
    settle();
    wait_ms(5000);
    for (unsigned to = B; to <= D; to++)
        assert_in_range(sent[A][to][SITE_MSG_HEARTBEAT], 5, 6);
    assert_int_equal(beats_of(B) + beats_of(C) + beats_of(D), 0);
    enqueue(A, 6);
    enqueue(B, 8);
    enqueue(D, 9);
    settle();
    assert_true(told("A>B accepted 8, ") && told("A>D accepted 9, "));
    assert_int_equal(site[A].dispatch_count, 4);
    finish();
}

static void a_heartbeat_lists_what_is_coordinated(void **state)
{
    (void)state;
    begin(4);
    enqueue(C, 7);
    settle(); /* dispatched: its nonce concerns all */
    site[A].mute = true;
    enqueue(C, 8); /* held: it concerns its sender */
    enqueue(D, 9);
    wait_ms(1500);
    assert_int_equal(beats[A][C].message.count, 2);
    assert_int_equal(beats[A][D].message.count, 2);
    assert_int_equal(beats[A][B].message.count, 1);
    assert_true(in_beat(A, C, 8) && in_beat(A, D, 9));
    for (unsigned to = B; to <= D; to++) {
        const struct site_item *item = in_beat(A, to, 7);
        assert_true(item && item->has_bytes && item->stage == SITE_WORK_DISPATCHED);
        assert_memory_equal(&item->bytes, &signed_bytes[0], sizeof(item->bytes));
        assert_int_equal(item->sender, C);
    }
    site[A].mute = false;
    restart(A);
    finish();
}

static void heartbeats_keep_a_coordinator_and_their_absence_demotes_it(void **state)
{
    (void)state;
    begin(4);
    site[A].mute = true;
    enqueue(D, 7);
    wait_ms(20000); /* nothing comes of it, but it lives */
    assert_false(told("probe"));
    assert_int_equal(demoted_by(D), 0);
    assert_int_equal(sent[D][A][SITE_MSG_DELEGATE], 1);
    away[A][D] = true;
    wait_ms(3500);
    assert_false(told("probe"));
    wait_ms(4500);
    assert_true(told("D>A probe, D>C delegate 7, C>D accepted 7, "));
    assert_int_equal(demoted_by(D), 1);
    site[A].mute = false;
    restart(A);
    finish();
}

/* What the chain shows of a coordinator says nothing about it: its heartbeats do. */
static void blocks_do_not_stand_for_heartbeats(void **state)
{
    (void)state;
    begin(4);
    for (uint64_t id = 1; id <= 9; id++)
        enqueue(D, id);
    settle(); /* dispatched */
    site[A].mute = true;
    enqueue(D, 10);
    settle(); /* held */
    away[A][D] = true;
    memset(submitted, 0, sizeof(submitted));
    for (unsigned i = 0; i < 9; i++) {
        submitted[i] = 1; /* each block has one of A's */
        wait_ms(900);
        finalize();
    }
    assert_int_equal(effects_of(9), 1);
    assert_true(told("D>A probe, D>C delegate "));
    site[A].mute = false;
    away[A][D] = false;
    restart(A);
    finish();
}

/* ---- absence ---- */

static void a_coordinator_that_recovers_too_late_was_away(void **state)
{
    (void)state;
    static const uint64_t away_ms[] = {4000, 9000};
    for (unsigned late = 0; late < 2; late++) {
        begin(4);
        site[A].mute = true;
        enqueue(D, 7);
        wait_ms(2000);
        crash(A);
        site[A].mute = false;
        wait_ms(away_ms[late]);
        start(A);
        wait_ms(5000);
        assert_int_equal(demoted_by(D), late);
        assert_int_equal(site[C].dispatched, late);
        assert_int_equal(site[A].dispatched, !late);
        finish();
    }
}

static void nothing_happens(void)
{
    wait_ms(8000);
}

static void another_stands_in(void)
{
    enqueue(D, 1);
    wait_ms(8000);
    assert_int_equal(site[C].dispatched, 1);
}

static void two_stand_in(void)
{
    another_stands_in();
    crash(C);
    enqueue(D, 2);
    wait_ms(9000);
    finalize(); /* what C had dispatched */
    wait_ms(1000);
    assert_true(has_ended(D, 1));
    assert_int_equal(site[B].dispatched, 1);
    start(C);
}

static void the_ranges_go_round(void)
{
    for (uint64_t height = 4; height <= 12; height += 4) {
        enqueue(D, height);
        settle();
        all_see(height);
        wait_ms(2000);
        finalize();
    }
}

static void a_site_that_returns_needs_no_history(void **state)
{
    (void)state;
    static void (*const histories[])(void) = {nothing_happens, another_stands_in, two_stand_in,
                                              the_ranges_go_round};
    for (size_t i = 0; i < sizeof(histories) / sizeof(*histories); i++) {
        begin(4);
        crash(A);
        histories[i]();
        start(A);
        wait_ms(3000);
        enqueue(D, 20);
        wait_ms(1500);
        chosen_by_all(A);
        assert_true(in_beat(A, D, 20) != NULL);
        assert_int_equal(state_of(A) == SITE_PREPARED || state_of(A) == SITE_ACTIVE, 1);
        assert_int_equal(coordinators(), 1);
        finish();
        wait_ms(10000);
        for (unsigned k = A; k <= D; k++)
            assert_int_equal(state_of(k), SITE_IDLE);
    }
}

/* A and C see the first range, B and D the next one. */
static void sites_that_disagree_go_on_and_then_agree(void **state)
{
    (void)state;
    uint64_t two = 0;
    begin(4);
    see(B, 4);
    see(D, 4);
    for (uint64_t second = 0; second < 30; second++) {
        for (unsigned i = A; i <= D && second < 20; i++)
            enqueue(i, 10 * (second + 1) + i);
        wait_ms(1000);
        two += coordinators() == 2;
        finalize();
    }
    assert_true(two > 0);
    for (uint64_t second = 0; second < 20; second++) /* nobody waits for the others to agree */
        for (unsigned i = A; i <= D; i++)
            assert_int_equal(effects_of(10 * (second + 1) + i), 1);
    enqueue(D, 300);
    settle();
    see(A, 4);
    see(C, 4);
    wait_ms(3000); /* three heartbeats */
    assert_int_equal(coordinators(), 1);
    chosen_by_all(B);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_message_elects),
        cmocka_unit_test(only_a_range_or_absence_changes_the_choice),
        cmocka_unit_test(a_minority_may_be_down),
        cmocka_unit_test(nobody_votes_on_who_is_away),
        cmocka_unit_test(a_coordinator_beats_to_all_and_accepts_from_any),
        cmocka_unit_test(a_heartbeat_lists_what_is_coordinated),
        cmocka_unit_test(heartbeats_keep_a_coordinator_and_their_absence_demotes_it),
        cmocka_unit_test(blocks_do_not_stand_for_heartbeats),
        cmocka_unit_test(a_coordinator_that_recovers_too_late_was_away),
        cmocka_unit_test(a_site_that_returns_needs_no_history),
        cmocka_unit_test(sites_that_disagree_go_on_and_then_agree),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    done();
    return failed;
}
