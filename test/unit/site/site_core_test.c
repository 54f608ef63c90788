/* The core of the sites, by single steps of four_sites.h. The tests are named after the rows of the
 * requirements (P..). */
#include "design_page.h"
#include "four_sites.h"

/* ---- the way of a transaction ---- */

static void the_order_on_the_wire(void **state)
{
    (void)state;
    begin(4);
    enqueue(C, 7);
    settle();
    SAYS("C>A delegate 7, A>C accepted 7, A>C propose 7, C>A grant 7, A>C dispatched 7, "
         "C>A ack 7, ");
    assert_int_equal(site[C].grant_count[0], 1);
    assert_int_equal(site[A].dispatch_count, 1);
    assert_int_equal(site[C].noted, 1);
    assert_int_equal(state_of(A), SITE_ACTIVE);
    assert_int_equal(state_of(C), SITE_OBSERVING);
    finalize();
    assert_true(site[C].ended[0] && effects_of(7) == 1);
    assert_int_equal(site[A].dispatch_count, 0);
}

static void issue17_a_committee_of_one_and_an_idle_account_send_nothing(void **state)
{
    (void)state;
    begin(1);
    enqueue(A, 7);
    wait_ms(20000);
    finalize();
    assert_true(site[A].ended[0] && messages == 0);
    begin(4);
    enqueue(C, 7);
    settle();
    finalize();
    wait_ms(10000); /* the last heartbeats */
    assert_int_equal(state_of(A), SITE_IDLE);
    messages = 0;
    wait_ms(10000);
    assert_int_equal(messages, 0);
}

static void a_duplicate_delegation_changes_nothing(void **state)
{
    (void)state;
    begin(4);
    site[A].mute = true;
    enqueue(C, 7);
    settle();
    restart(C);
    settle();
    struct site_view view;
    site_core_view(site[A].core, &view);
    assert_int_equal(view.work, 1);
    assert_true(told("C>A delegate 7, A>C accepted 7, C>A delegate 7, A>C accepted 7, "));
}

static void the_former_delegate_gets_no_grant(void **state)
{
    (void)state;
    begin(4);
    site[C].stuck = false;
    enqueue(C, 7);
    away[A][C] = true; /* the proposal is lost */
    settle();
    see(C, 4);
    see(B, 4);
    settle();
    away[A][C] = false;
    wait_ms(1500); /* A proposes again */
    assert_true(told("C>A deny 7 (moved)"));
    assert_int_equal(site[A].dispatch_count, 0);
    finalize();
    assert_int_equal(effects_of(7), 1);
}

/* ---- height skew ---- */

static void a_delegate_that_is_behind_is_asked_again(void **state)
{
    (void)state;
    begin(4);
    see(C, 4);
    enqueue(C, 7);
    settle();
    SAYS("C>B delegate 7, B>C refused 7 (not chosen), ");
    wait_ms(1050);
    assert_true(told("refused 7 (not chosen), C>B delegate 7, B>C refused 7 (not chosen), "));
    see(B, 4);
    wait_ms(1050);
    assert_true(told("C>B delegate 7, B>C accepted 7, "));
    assert_false(told("C>A"));
    finalize();
    assert_true(site[C].ended[0]);
}

static void a_sender_that_is_behind_waits_for_its_own_node(void **state)
{
    (void)state;
    begin(4);
    see(A, 4);
    see(B, 4);
    enqueue(C, 7);
    settle();
    wait_ms(3000);
    SAYS("C>A delegate 7, A>C refused 7 (not chosen), "); /* no blind trust, and no hurry */
    see(C, 5);                                            /* the range counts, not the height */
    settle();
    assert_true(told("C>B delegate 7, B>C accepted 7, "));
    finalize();
    assert_true(site[C].ended[0]);
}

static void a_coordinator_goes_on_until_its_own_node_shows_the_boundary(void **state)
{
    (void)state;
    begin(4);
    see(B, 4);
    see(D, 4);
    enqueue(C, 7);
    settle();
    assert_int_equal(site[A].dispatch_count, 1);
    see(A, 4);
    settle();
    assert_int_equal(state_of(A), SITE_FLUSH);
    finalize();
    assert_int_equal(state_of(A), SITE_CLOSING);
}

static void a_switch_over_returns_what_is_not_dispatched(void **state)
{
    (void)state;
    begin(4);
    enqueue(C, 7);
    settle(); /* dispatched */
    site[A].mute = true;
    enqueue(C, 8);
    enqueue(D, 9);
    settle();
    buf_clear(&wire);
    see(A, 4);
    settle();
    assert_true(told("A>B handover 7, "));
    assert_true(told("A>C returned 8, "));
    assert_true(told("A>D returned 9, "));
    see(B, 4);
    see(C, 4);
    see(D, 4);
    wait_ms(1050);
    assert_true(told("C>B delegate 8, ") && told("D>B delegate 9, ") && !told("C>B delegate 7"));
    /* P55, P56: it prepares, and dispatches nothing before the former one's are final. */
    assert_int_equal(state_of(B), SITE_PREPARED);
    assert_int_equal(site[B].dispatch_count, 0);
    finalize();
    wait_ms(100);
    assert_int_equal(state_of(B), SITE_ACTIVE);
    finalize();
    assert_true(site[C].ended[0] && site[C].ended[1] && site[D].ended[0]);
    assert_int_equal(effects_of(7) + effects_of(8) + effects_of(9), 3);
}

static void an_old_coordinator_that_is_behind_is_denied(void **state)
{
    (void)state;
    begin(4);
    site[A].mute = true; /* it prepares for long */
    enqueue(C, 7);
    settle();
    see(C, 4);
    see(B, 4);
    wait_ms(11000); /* for a handover that does not come */
    assert_int_equal(site[B].dispatch_count, 1);
    site[A].mute = false;
    wait_ms(1000);
    assert_int_equal(site[A].dispatch_count, 0);
    finalize();
    assert_int_equal(effects_of(7), 1);
}

static void a_coordinator_asks_the_others(void **state)
{
    (void)state;
    begin_with(&(struct site_config){.approvals = 2});
    see(B, 4);
    see(D, 4);
    enqueue(C, 7);
    settle();
    assert_true(told("B>A disapproved 7 (not chosen)") && told("D>A disapproved 7 (not chosen)"));
    assert_true(told("C>A approved 7") && !told("propose"));
    see(A, 4); /* behind: it waits for the boundary, and returns the transaction */
    see(C, 4);
    settle();
    wait_ms(1050);
    assert_true(told("A>C returned 7") || told("C>B delegate 7"));
    finalize();
    assert_true(site[C].ended[0] && effects_of(7) == 1);
}

/* Sender, old and new coordinator learn the height in any order, before or after a delegation. */
static void six_orders_of_learning_a_height(void **state)
{
    (void)state;
    static const unsigned orders[6][3] = {{A, B, C}, {A, C, B}, {B, A, C},
                                          {B, C, A}, {C, A, B}, {C, B, A}};
    for (int o = 0; o < 6; o++)
        for (int when = 0; when < 4; when++) {
            begin(3);
            site[A].mute = when % 2;
            for (int i = 0; i < 3; i++) {
                if (when == i)
                    enqueue(C, 7);
                settle();
                see(orders[o][i], 4);
                settle();
                wait_ms(200);
            }
            if (when == 3)
                enqueue(C, 7);
            site[A].mute = false;
            for (int i = 0; i < 10 && !site[C].ended[0]; i++) {
                wait_ms(1000);
                finalize();
            }
            assert_true(site[C].ended[0]);
            assert_int_equal(effects_of(7), 1);
        }
}

/* ---- failures ---- */

static void silence_a_probe_and_the_next_in_the_ranking(void **state)
{
    (void)state;
    begin(4);
    crash(A);
    enqueue(D, 7);
    wait_ms(4900);
    assert_false(told("probe"));
    wait_ms(200);
    assert_true(told("D>A probe, ") && !told("D>C"));
    wait_ms(2100);
    assert_true(told("D>C delegate 7, C>D accepted 7, "));
    finalize();
    assert_true(site[D].ended[0]);
}

static void a_preferred_site_returns(void **state)
{
    (void)state;
    begin(4);
    crash(A);
    enqueue(D, 7);
    wait_ms(7500);
    assert_int_equal(site[C].dispatch_count, 1);
    site[C].mute = true;
    enqueue(D, 8); /* held, not dispatched */
    enqueue(B, 9);
    wait_ms(8000);
    start(A); /* it hears C's heartbeat, and announces itself */
    wait_ms(2500);
    assert_true(told("C>D returned 8, ") || told("D>A delegate 8, "));
    assert_true(told("D>A delegate 8, ") && told("B>A delegate 9, "));
    assert_int_equal(state_of(C), SITE_FLUSH);
    finalize();
    wait_ms(1500);
    finalize();
    assert_true(site[D].ended[0] && site[D].ended[1] && site[B].ended[0]);
    wait_ms(6000);
    assert_int_equal(state_of(A), SITE_IDLE);
    assert_int_equal(state_of(C), SITE_IDLE);
}

static void a_partition_of_two_and_two_heals_to_one_coordinator(void **state)
{
    (void)state;
    begin(4);
    for (unsigned i = 0; i < SITES; i++)
        for (unsigned j = 0; j < SITES; j++)
            away[i][j] = (i < C) != (j < C);
    enqueue(B, 7);
    enqueue(D, 8);
    wait_ms(8000);
    assert_int_equal(state_of(A), SITE_ACTIVE);
    assert_int_equal(state_of(C), SITE_ACTIVE);
    finalize(); /* both proposed nonce 0: one of the two gets in */
    wait_ms(1000);
    finalize();
    assert_true(site[B].ended[0] && site[D].ended[0]);
    assert_int_equal(effects_of(7) + effects_of(8), 2);
    site[C].mute = true;
    enqueue(D, 9);
    wait_ms(500);
    memset(away, 0, sizeof(away));
    wait_ms(3000);
    assert_int_not_equal(state_of(C), SITE_ACTIVE);
    finalize();
    assert_true(site[D].ended[1]);
}

static void a_coordinator_that_forgot_is_asked_again(void **state)
{
    (void)state;
    begin(4);
    site[A].mute = true;
    enqueue(C, 7);
    enqueue(D, 8);
    settle();
    crash(A);
    site[A].mute = false;
    start(A);
    wait_ms(7000); /* nothing is there to beat for: the silence shows it */
    finalize();
    assert_true(site[C].ended[0] && site[D].ended[0]);
    assert_int_equal(effects_of(7) + effects_of(8), 2);
}

static void a_restarted_coordinator_goes_on_with_what_it_dispatched(void **state)
{
    (void)state;
    begin(4);
    enqueue(C, 7);
    settle();
    memset(submitted, 0, sizeof(submitted)); /* 2C: committed, and nothing left */
    restart(A);
    wait_ms(100);
    assert_true(submitted[0]);
    assert_int_equal(site[C].noted, 2); /* told again: it does not know that it was */
    finalize();
    assert_int_equal(effects_of(7), 1);
}

static void a_sender_dies_before_its_grant_is_committed(void **state)
{
    (void)state;
    begin(4);
    site[C].stuck = true;
    enqueue(C, 7);
    settle();
    assert_false(told("grant"));
    crash(C);
    site[C].stuck = false;
    start(C);
    wait_ms(2500);
    assert_int_equal(site[C].grant_count[0], 1);
    finalize();
    assert_int_equal(effects_of(7), 1);
}

static void a_sender_dies_before_its_grant_has_left(void **state)
{
    (void)state;
    begin(4);
    away[C][A] = true;
    enqueue(C, 7);
    away[C][A] = false;
    wait_ms(1050);
    assert_int_equal(site[C].grant_count[0], 1);
    begin(4);
    enqueue(C, 7);
    while (!told("C>A grant"))
        deliver();
    forget_posts(); /* it does not arrive */
    restart(C);
    wait_ms(100);
    assert_true(told("C>A delegate 7, A>C accepted 7, A>C dispatched 7"));
    assert_int_equal(site[C].grant_count[0], 1); /* the same bytes */
    finalize();
    assert_int_equal(effects_of(7), 1);
}

static void a_notification_is_repeated_until_it_is_acknowledged(void **state)
{
    (void)state;
    begin(4);
    enqueue(C, 7);
    while (!told("A>C dispatched"))
        deliver();
    crash(C); /* it arrived nowhere */
    settle();
    start(C);
    wait_ms(1100);
    assert_true(site[C].noted >= 1);
    finalize();
    assert_true(site[C].ended[0] && effects_of(7) == 1);
}

static void a_sender_whose_coordinator_dies_after_the_grant_sends_itself(void **state)
{
    (void)state;
    begin_with(&(struct site_config){.own_send_ms = 30000});
    site[A].stuck = true;
    enqueue(C, 7);
    settle();
    assert_int_equal(site[C].grant_count[0], 1);
    crash(A);
    wait_ms(9000);
    assert_true(submitted[0]); /* the same bytes, without A */
    finalize();
    assert_true(site[C].ended[0] && effects_of(7) == 1);
}

static void the_design_page_shows_the_tables(void **state)
{
    (void)state;
    design_page_shows(site_state_dump);
    design_page_shows(site_tx_dump);
    design_page_shows(site_work_dump);
    done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_on_the_wire),
        cmocka_unit_test(issue17_a_committee_of_one_and_an_idle_account_send_nothing),
        cmocka_unit_test(a_duplicate_delegation_changes_nothing),
        cmocka_unit_test(the_former_delegate_gets_no_grant),
        cmocka_unit_test(a_delegate_that_is_behind_is_asked_again),
        cmocka_unit_test(a_sender_that_is_behind_waits_for_its_own_node),
        cmocka_unit_test(a_coordinator_goes_on_until_its_own_node_shows_the_boundary),
        cmocka_unit_test(a_switch_over_returns_what_is_not_dispatched),
        cmocka_unit_test(an_old_coordinator_that_is_behind_is_denied),
        cmocka_unit_test(a_coordinator_asks_the_others),
        cmocka_unit_test(six_orders_of_learning_a_height),
        cmocka_unit_test(silence_a_probe_and_the_next_in_the_ranking),
        cmocka_unit_test(a_preferred_site_returns),
        cmocka_unit_test(a_partition_of_two_and_two_heals_to_one_coordinator),
        cmocka_unit_test(a_coordinator_that_forgot_is_asked_again),
        cmocka_unit_test(a_restarted_coordinator_goes_on_with_what_it_dispatched),
        cmocka_unit_test(a_sender_dies_before_its_grant_is_committed),
        cmocka_unit_test(a_sender_dies_before_its_grant_has_left),
        cmocka_unit_test(a_notification_is_repeated_until_it_is_acknowledged),
        cmocka_unit_test(a_sender_whose_coordinator_dies_after_the_grant_sends_itself),
        cmocka_unit_test(the_design_page_shows_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
