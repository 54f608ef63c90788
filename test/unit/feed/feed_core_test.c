/* The core of a feed takes each number once, in order, and leaves nobody waiting. The tests are
 * named after the rows of the requirements (B..) and after faults of other systems (BP..). */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "design_page.h"
#include "feed_harness.h"

#define SAYS(call, expected) assert_string_equal(call, expected)

/* ---- who may send what ---- */

static void the_cursor_is_loaded_before_a_number_is_won(void **state)
{
    (void)state;
    core_new(NULL);
    SAYS(open_session(1), "1:end NOT_LEADER -1");
    SAYS(serve(), "load 1");
    SAYS(serve(), "");
    SAYS(open_session(2), "");
    SAYS(header(2, 8), "2:skip 8");
    SAYS(loaded(1, 7), "2:resend 8");
    SAYS(header(2, 8), "2:begin 8 c1");
}

static void a_load_that_fails_is_tried_again(void **state)
{
    (void)state;
    core_new(NULL);
    serve();
    SAYS(loaded(1, -2), "");
    uint64_t due = feed_due(core);
    assert_in_range(due, now_ms + 1, now_ms + 200);
    SAYS(tick(), "");
    now_ms = due;
    SAYS(tick(), "load 2");
    SAYS(loaded(1, 3), ""); /* the answer to the former one */
    SAYS(loaded(2, FEED_NONE), "");
    assert_int_equal(feed_core_last(core), FEED_NONE);
    SAYS(open_session(1), "");
    SAYS(header(1, 0), "1:begin 0 c1");
}

static void a_stored_batch_makes_the_next_load_quick_again(void **state)
{
    (void)state;
    core_new(NULL);
    serve();
    for (uint64_t load = 1; load <= 5; load++) {
        loaded(load, -2);
        now_ms = feed_due(core);
        tick();
    }
    loaded(6, 4);
    open_sessions(1);
    send_batch(1, 5);
    verified(1, true);
    stored(1, FEED_STORED, 5);
    send_batch(1, 6);
    verified(2, true);
    SAYS(stored(2, FEED_STORED_UNKNOWN, 0), "not stored, 1:release, drop c2");
    assert_in_range(feed_due(core), now_ms + 1, now_ms + 200);
}

static void sessions_are_counted(void **state)
{
    (void)state;
    core_at(&(struct feed_config){.sessions_max = 3}, 4);
    open_sessions(3);
    assert_int_equal(feed_core_sessions(core), 3);
    SAYS(open_session(4), "4:end ERROR 4");
    assert_int_equal(feed_core_sessions(core), 3);
    SAYS(gone(4), "");
    SAYS(gone(2), "");
    assert_int_equal(feed_core_sessions(core), 2);
    SAYS(open_session(5), "");
    assert_int_equal(feed_core_sessions(core), 3);
}

static void a_batch_begins_with_its_header(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    SAYS(items(1, 1, 10), "1:end INVALID_REQUEST 4");
    SAYS(header(1, 5), ""); /* on its way when the end was sent */
    SAYS(trailer(2), "2:end INVALID_REQUEST 4");
}

static void a_stored_number_is_a_duplicate_and_the_cursor_is_told(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(3);
    SAYS(header(1, 4), "1:end DUPLICATE_BLOCK 4");
    SAYS(header(2, 1), "2:end DUPLICATE_BLOCK 4");
    SAYS(header(3, -1), "3:end INVALID_REQUEST 4");
    assert_int_equal(feed_core_counts(core)->duplicate, 1);
    assert_int_equal(feed_core_counts(core)->behind, 1);
}

static void a_publisher_that_is_one_behind_may_stay(void **state)
{
    (void)state;
    core_at(&(struct feed_config){.duplicate_skip_window = 5}, 10);
    open_sessions(2);
    SAYS(header(1, 10), "1:skip 10, 1:ack 10");
    SAYS(items(1, 3, 30), ""); /* the rest of the duplicate */
    SAYS(trailer(1), "");
    SAYS(header(1, 6), "1:skip 6, 1:ack 10");
    SAYS(header(1, 11), "1:begin 11 c1");
    SAYS(header(2, 5), "2:end DUPLICATE_BLOCK 10");
}

static void a_number_ahead_makes_no_gap(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    SAYS(header(1, 6), "1:end BEHIND 4");
    SAYS(header(2, 400), "2:end BEHIND 4");
    core_at(&(struct feed_config){.behind_stays_open = true}, 4);
    open_sessions(1);
    SAYS(header(1, 6), "1:behind 4");
    SAYS(items(1, 1, 10), "");
    SAYS(trailer(1), "");
    SAYS(header(1, 5), "1:begin 5 c1");
    assert_int_equal(feed_core_counts(core)->future, 1);
}

static void of_eight_publishers_one_wins(void **state)
{
    (void)state;
    struct rng rng = {14};
    core_at(NULL, FEED_NONE);
    open_sessions(8);
    for (int64_t number = 0; number < 1000; number++) {
        unsigned order[8] = {1, 2, 3, 4, 5, 6, 7, 8}, wins = 0, skips = 0;
        for (unsigned i = 7; i > 0; i--) {
            unsigned j = (unsigned)rng_below(&rng, i + 1), swapped = order[i];
            order[i] = order[j];
            order[j] = swapped;
        }
        for (unsigned i = 0; i < 8; i++) {
            const char *did = header(order[i], number);
            wins += (unsigned)(strstr(did, ":begin ") != NULL);
            skips += (unsigned)(strstr(did, ":skip ") != NULL);
        }
        assert_int_equal(wins, 1);
        assert_int_equal(skips, 7);
        assert_non_null(strstr(items(order[0], 2, 20), "keep"));
        trailer(order[0]);
        verified((uint64_t)number + 1, true);
        stored((uint64_t)number + 1, FEED_STORED, number);
    }
    assert_int_equal(feed_core_last(core), 999);
    assert_int_equal(feed_core_counts(core)->primary, 1000);
    assert_int_equal(feed_core_counts(core)->skipped, 7000);
    assert_int_equal(feed_core_counts(core)->acknowledged, 1000);
}

static void a_loser_that_pipelines_survives(void **state)
{
    (void)state;
    core_at(NULL, 0);
    open_sessions(2);
    SAYS(header(1, 1), "1:begin 1 c1");
    SAYS(header(2, 1), "2:skip 1");
    for (int i = 0; i < 50; i++) {
        SAYS(items(2, 1, 10), "");
        SAYS(trailer(2), "");
        SAYS(header(2, 1), "");
    }
    items(1, 1, 10);
    trailer(1);
    verified(1, true);
    SAYS(stored(1, FEED_STORED, 1), "acknowledged, 1:release, drop c1, 1:ack 1, 2:ack 1");
    SAYS(items(2, 1, 10), ""); /* still of the number that it lost */
    SAYS(trailer(2), "");
    SAYS(header(2, 2), "2:begin 2 c2"); /* it may compete for the next one */
}

/* ---- the way of a batch ---- */

static void a_batch_is_acknowledged_once_it_is_stored(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    SAYS(header(1, 5), "1:begin 5 c1");
    SAYS(items(1, 2, 100), "keep c1");
    SAYS(items(1, 1, 50), "keep c1");
    SAYS(trailer(1), "1:hold, verify c1");
    SAYS(verified(1, true), "store 5 c1");
    assert_int_equal(feed_core_last(core), 4);
    SAYS(stored(1, FEED_STORED, 5), "acknowledged, 1:release, drop c1, 1:ack 5, 2:ack 5");
    assert_int_equal(feed_core_last(core), 5);
    SAYS(items(1, 1, 10), "1:end INVALID_REQUEST 5"); /* between batches: no header */
    assert_int_equal(feed_core_counts(core)->items, 4);
}

static void a_batch_has_a_cap(void **state)
{
    (void)state;
    core_at(&(struct feed_config){.batch_bytes_max = 100, .batch_calls_max = 3}, 4);
    open_sessions(3);
    header(1, 5);
    SAYS(items(1, 1, 100), "keep c1");
    SAYS(items(1, 1, 1), "1:end INVALID_REQUEST 4, drop c1, 2:resend 5, 3:resend 5");
    header(2, 5);
    SAYS(items(2, 3, 3), "keep c2");
    SAYS(items(2, 1, 1), "2:end INVALID_REQUEST 4, drop c2, 3:resend 5");
    header(3, 5);
    SAYS(items(3, 1, UINT64_MAX), "3:end INVALID_REQUEST 4, drop c3");
}

static void a_bad_copy_ends_its_sender_and_the_others_may_try(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(3);
    send_batch(1, 5);
    SAYS(header(2, 5), "2:skip 5");
    SAYS(verified(1, false),
         "not valid, 1:release, 1:end BAD_BLOCK_PROOF 4, drop c1, 2:resend 5, 3:resend 5");
    assert_int_equal(feed_core_last(core), 4);
    SAYS(header(2, 5), "2:begin 5 c2");
    items(2, 1, 10);
    trailer(2);
    SAYS(verified(2, true), "store 5 c2");
    SAYS(stored(2, FEED_STORED, 5), "acknowledged, 2:release, drop c2, 2:ack 5, 3:ack 5");
}

static void what_the_database_refuses_is_as_bad(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    verified(1, true);
    SAYS(stored(1, FEED_STORED_BAD, 4),
         "not valid, 1:release, 1:end BAD_BLOCK_PROOF 4, drop c1, 2:resend 5");
}

static void a_liar_that_comes_back_lets_the_others_try_first(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    header(2, 5);
    verified(1, false);
    open_session(3);
    SAYS(header_by(3, 5, 0), "3:skip 5"); /* it is faster than the other, and waits */
    SAYS(header(2, 5), "2:begin 5 c2");
    SAYS(gone(2), "drop c2, 3:resend 5");
    SAYS(header_by(3, 5, 0), "3:begin 5 c3"); /* nobody else is there */
}

static void a_liar_gets_its_turn_if_the_others_do_not_come(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    verified(1, false);
    open_session(3);
    SAYS(header_by(3, 5, 0), "3:skip 5");
    SAYS(wait_ms(9999), "");
    SAYS(wait_ms(1), "2:resend 5, 3:resend 5");
    SAYS(header_by(3, 5, 0), "3:begin 5 c2");

    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    verified(1, false);
    open_session(3);
    SAYS(header_by(3, 5, 0), "3:skip 5");
    SAYS(gone(2), "");
    SAYS(header_by(3, 5, 0), "3:begin 5 c2"); /* nobody is left that might */
}

static void a_store_without_an_answer_is_sent_again_by_all(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(3);
    send_batch(1, 5);
    verified(1, true);
    SAYS(header(2, 5), "2:skip 5");
    assert_int_equal(feed_due(core), now_ms + 30000);
    SAYS(wait_ms(29999), "");
    SAYS(wait_ms(1), "timed out, 1:release, 1:end TIMEOUT 4, drop c1, 2:resend 5, 3:resend 5");
    SAYS(header(2, 5), "2:begin 5 c2"); /* again one at a time */
    SAYS(header(3, 5), "3:skip 5");
}

static void a_lone_publisher_sends_again(void **state)
{
    (void)state;
    core_at(&(struct feed_config){.persistence_ack_ms = 500}, 4);
    open_sessions(1);
    send_batch(1, 5);
    SAYS(wait_ms(500), "timed out, 1:release, drop c1, 1:resend 5");
    SAYS(header(1, 5), "1:begin 5 c2");
}

static void a_duplicate_does_not_touch_the_winner(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(3);
    SAYS(header(1, 5), "1:begin 5 c1");
    SAYS(header(2, 4), "2:end DUPLICATE_BLOCK 4");
    SAYS(header(3, 9), "3:end BEHIND 4");
    SAYS(items(1, 1, 10), "keep c1");
    SAYS(trailer(1), "1:hold, verify c1");
}

static void a_client_ends_its_stream(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(3);
    SAYS(client_closes(1), "1:end SUCCESS 4");
    SAYS(header(2, 5), "2:begin 5 c1");
    SAYS(client_closes(2), "2:end SUCCESS 4, drop c1, 3:resend 5");
    SAYS(not_understood(3), "3:end INVALID_REQUEST 4");
}

static void tc_e_002_a_premature_header_drops_the_partial_batch(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    header(1, 5);
    items(1, 1, 10);
    header(2, 5);
    SAYS(header(1, 5), "drop c1, 1:begin 5 c2"); /* the other one still waits */
    SAYS(header(1, 6), "drop c2, 1:end BEHIND 4, 2:resend 5");
}

static void tc_e_002_headers_without_end_do_not_keep_the_number(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    header(1, 5);
    header(2, 5);
    for (int i = 0; i < 5; i++) {
        SAYS(wait_ms(10000), "");
        header(1, 5);
    }
    SAYS(wait_ms(10000), "1:end TIMEOUT 4, drop c6, 2:resend 5");
}

static void tc_e_005_a_winner_that_dies_leaves_the_others_unharmed(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(3);
    header(1, 5);
    items(1, 1, 10);
    SAYS(header(2, 5), "2:skip 5");
    SAYS(gone(1), "drop c1, 2:resend 5, 3:resend 5");
    SAYS(header(3, 5), "3:begin 5 c2");
}

static void a_complete_batch_does_not_need_its_sender(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    SAYS(gone(1), "");
    SAYS(verified(1, true), "store 5 c1");
    SAYS(stored(1, FEED_STORED, 5), "acknowledged, drop c1, 2:ack 5");
    send_batch(2, 6);
    gone(2);
    open_session(3);
    SAYS(verified(2, false), "not valid, drop c2, 3:resend 6");
}

/* ---- stale winners ---- */

static void a_winner_that_stalls_is_replaced(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(3);
    header(1, 5);
    SAYS(header(2, 5), "2:skip 5");
    assert_int_equal(feed_due(core), now_ms + 60000);
    SAYS(wait_ms(59999), "");
    items(1, 1, 1); /* a trickle does not help */
    SAYS(wait_ms(1), "1:end TIMEOUT 4, drop c1, 2:resend 5, 3:resend 5");
    SAYS(header(3, 5), "3:begin 5 c2");
    SAYS(header(2, 5), "2:skip 5");
    SAYS(wait_ms(60000), "3:end TIMEOUT 4, drop c2, 2:resend 5"); /* BP11 */
    SAYS(header(2, 5), "2:begin 5 c3");
    assert_int_equal(feed_core_counts(core)->stale, 2);
}

static void of_the_challengers_one_wins(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(4);
    header(1, 5);
    now_ms += 60000; /* the tick comes late */
    SAYS(header(2, 5), "1:end TIMEOUT 4, drop c1, 2:begin 5 c2");
    SAYS(header(3, 5), "3:skip 5");
    SAYS(header(4, 5), "4:skip 5");
    assert_int_equal(feed_core_counts(core)->primary, 2);
}

static void a_slow_winner_without_a_challenger_goes_on(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    header(1, 5);
    SAYS(wait_ms(200000), "");
    assert_int_equal(feed_due(core), UINT64_MAX);
    SAYS(items(1, 1, 10), "keep c1");
    SAYS(trailer(1), "1:hold, verify c1");
}

static void the_times_are_settings(void **state)
{
    (void)state;
    core_at(&(struct feed_config){.persistence_ack_ms = 7, .stale_winner_ms = 9}, 4);
    open_sessions(2);
    header(1, 5);
    header(2, 5);
    assert_int_equal(feed_due(core), now_ms + 9);
    trailer(1);
    assert_int_equal(feed_due(core), now_ms + 7);
}

static void a_publisher_that_comes_back_in_the_middle_is_served(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    header(1, 5); /* it is killed, and nobody has noticed */
    header(2, 5);
    open_session(3);
    SAYS(header_by(3, 5, 0), "3:skip 5");
    SAYS(wait_ms(60000), "1:end TIMEOUT 4, drop c1, 2:resend 5, 3:resend 5");
    SAYS(header(2, 5), "2:begin 5 c2");
    SAYS(header_by(3, 5, 0), "3:skip 5");
    trailer(2);
    verified(2, true);
    SAYS(stored(2, FEED_STORED, 5), "acknowledged, 2:release, drop c2, 2:ack 5, 3:ack 5");
    /* Alone with the session that it left behind, it waits for the bar only. */
    header_by(3, 6, 0);
    open_session(4);
    SAYS(header_by(4, 6, 0), "4:skip 6");
    now_ms += 60000;
    SAYS(header(2, 6), "3:end TIMEOUT 5, drop c3, 2:begin 6 c4");
}

static void a_challenger_that_has_to_wait_does_not_make_the_others_wait(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(3);
    header(1, 5);
    open_session(4);
    now_ms += 60000;
    SAYS(header_by(4, 5, 0), "1:end TIMEOUT 4, drop c1, 4:skip 5, 2:resend 5, 3:resend 5");
    SAYS(wait_ms(10000), "2:resend 5, 3:resend 5, 4:resend 5");
}

static void nothing_of_a_resend_is_kept(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    header(1, 5);
    header(2, 5);
    SAYS(gone(1), "drop c1, 2:resend 5");
    SAYS(gone(2), "");
    SAYS(open_session(3), ""); /* a fresh publisher is not told to send what it lacks */
    SAYS(header(3, 6), "3:end BEHIND 4");
}

/* ---- answers ---- */

static void an_answer_at_once_is_not_missed(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(1);
    header(1, 5);
    SAYS(trailer(1), "1:hold, verify c1"); /* whoever verifies is asked by this very step */
    SAYS(verified(1, true), "store 5 c1");
    SAYS(stored(1, FEED_STORED, 5), "acknowledged, 1:release, drop c1, 1:ack 5");
}

static void the_cursor_moves_whatever_becomes_of_the_session(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    verified(1, true);
    gone(1);
    SAYS(stored(1, FEED_STORED, 5), "acknowledged, drop c1, 2:ack 5");
    SAYS(header(2, 5), "2:end DUPLICATE_BLOCK 5");
}

static void no_ack_passes_a_number_that_is_sent_again(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    SAYS(header(2, 6), "2:end BEHIND 4"); /* numbers are taken one at a time */
    verified(1, false);
    assert_int_equal(feed_core_counts(core)->sent[FEED_MSG_ACK], 0);
    assert_int_equal(feed_core_last(core), 4);
}

static void a_late_answer_about_a_lost_copy_changes_nothing(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    SAYS(wait_ms(30000), "timed out, 1:release, 1:end TIMEOUT 4, drop c1, 2:resend 5");
    send_batch(2, 5);
    SAYS(verified(1, false), ""); /* blames nobody */
    SAYS(verified(1, true), "");
    SAYS(verified(2, true), "store 5 c2");
    SAYS(stored(1, FEED_STORED_BAD, 4), "");
    SAYS(stored(2, FEED_STORED, 5), "acknowledged, 2:release, drop c2, 2:ack 5");
    SAYS(stored(2, FEED_STORED_UNKNOWN, 0), "");
}

static void a_late_answer_does_not_call_a_liar_back(void **state)
{
    (void)state;
    core_at(&(struct feed_config){.persistence_ack_ms = 100}, 4);
    open_sessions(2);
    send_batch(1, 5);
    wait_ms(100);
    send_batch(2, 5);
    verified(2, false);
    open_session(3);
    open_session(4);
    SAYS(header_by(3, 5, 1), "3:skip 5"); /* the publisher of the bad copy */
    SAYS(verified(1, true), "");          /* the other one still goes first */
    SAYS(header(4, 5), "4:begin 5 c3");
}

static void the_copy_that_was_given_up_may_have_been_stored(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    verified(1, true);
    wait_ms(30000);
    send_batch(2, 5);
    verified(2, true);
    SAYS(stored(2, FEED_STORED, 5), "acknowledged, 2:release, drop c2, 2:ack 5");
    SAYS(stored(1, FEED_STORED, 5), "");
    assert_int_equal(feed_core_last(core), 5);
}

static void another_relay_may_have_taken_the_number(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    header(2, 5);
    verified(1, true);
    SAYS(stored(1, FEED_STORED, 7), "acknowledged, 1:release, drop c1, 1:ack 7, 2:ack 7");
    SAYS(header(1, 8), "1:begin 8 c2");
}

static void a_lost_answer_is_read_from_the_database(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(3);
    send_batch(1, 5);
    header(2, 5);
    verified(1, true);
    SAYS(stored(1, FEED_STORED_UNKNOWN, 0), "not stored, 1:release, drop c1");
    SAYS(header(3, 5), "3:skip 5");
    now_ms = feed_due(core);
    SAYS(tick(), "load 2");
    SAYS(loaded(2, 5), "1:ack 5, 2:ack 5, 3:ack 5");

    send_batch(1, 6);
    verified(2, true);
    header(2, 6);
    stored(2, FEED_STORED_UNKNOWN, 0);
    now_ms = feed_due(core);
    tick();
    SAYS(loaded(3, 5), "1:resend 6, 2:resend 6");
    SAYS(header(2, 6), "2:begin 6 c3");
    /* The database contradicts itself: the same. */
    trailer(2);
    verified(3, true);
    SAYS(stored(3, FEED_STORED, 5), "not stored, 2:release, drop c3");
}

static void a_number_that_was_announced_during_a_load_may_be_too_high(void **state)
{
    (void)state;
    core_new(NULL);
    serve();
    open_sessions(3);
    header(1, 3);
    header(2, 5);
    header(3, 7);
    SAYS(header(3, 8), "3:skip 8");
    SAYS(loaded(1, 4), "1:ack 4, 2:resend 5, 3:end BEHIND 4");
}

static void a_database_that_lost_commits_is_followed(void **state)
{
    (void)state;
    core_at(NULL, 9);
    open_sessions(2);
    send_batch(1, 10);
    verified(1, true);
    SAYS(stored(1, FEED_STORED, 6), "not stored, 1:release, drop c1, 1:resend 7, 2:resend 7");
    assert_int_equal(feed_core_last(core), 6);
    SAYS(header(1, 7), "1:begin 7 c2");
}

static void copies_without_an_answer_are_few(void **state)
{
    (void)state;
    core_at(&(struct feed_config){.persistence_ack_ms = 100, .abandoned_max = 2}, 4);
    open_sessions(1);
    send_batch(1, 5);
    wait_ms(100);
    send_batch(1, 5);
    wait_ms(100);
    SAYS(header(1, 5), "1:skip 5"); /* nothing more is kept until one of the two answers */
    SAYS(items(1, 1, 10), "");
    SAYS(stored(77, FEED_STORED, 5), ""); /* nobody knows that copy */
    SAYS(verified(1, true), "1:resend 5");
    SAYS(header(1, 5), "1:begin 5 c3");
}

/* ---- who leads ---- */

static void issue16_5_another_relay_leads(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    SAYS(leave(FEED_END_NOT_LEADER, false),
         "drop c1, 1:release, 1:end NOT_LEADER 4, 2:end NOT_LEADER 4");
    SAYS(verified(1, true), "");
    SAYS(open_session(3), "3:end NOT_LEADER 4");
    SAYS(serve(), "load 2");
    SAYS(leave(FEED_END_ERROR, true), "");
    SAYS(open_session(4), "4:end ERROR 4"); /* paused */
}

static void issue16_5_a_stale_epoch_ends_the_sessions(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    verified(1, true);
    SAYS(stored(1, FEED_STORED_LOST, 0),
         "not stored, drop c1, 1:release, 1:end NOT_LEADER 4, 2:end NOT_LEADER 4");
}

static void issue16_5_a_drain_lets_the_batch_end(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    SAYS(leave(FEED_END_NOT_LEADER, true), "");
    SAYS(header(2, 5), "2:skip 5");
    verified(1, true);
    SAYS(stored(1, FEED_STORED, 5), "acknowledged, 1:release, drop c1, 1:ack 5, 2:ack 5, "
                                    "1:end NOT_LEADER 5, 2:end NOT_LEADER 5");
    assert_int_equal(feed_core_phase(core), FEED_IDLE);

    core_at(NULL, 4);
    open_sessions(2);
    header(1, 5);
    SAYS(leave(FEED_END_NOT_LEADER, true), "drop c1, 1:end NOT_LEADER 4, 2:end NOT_LEADER 4");

    core_at(NULL, 4);
    open_sessions(1);
    send_batch(1, 5);
    verified(1, true);
    leave(FEED_END_NOT_LEADER, true);
    SAYS(stored(1, FEED_STORED_UNKNOWN, 0), "not stored, 1:release, drop c1, 1:end NOT_LEADER 4");

    core_at(NULL, 4);
    open_sessions(1);
    send_batch(1, 5);
    leave(FEED_END_NOT_LEADER, true);
    SAYS(serve(), "drop c1, 1:release, 1:end NOT_LEADER 4, load 2"); /* led again meanwhile */
    SAYS(leave(FEED_END_NOT_LEADER, true), "");
}

static void issue16_5_a_new_tenure_reads_the_cursor_again(void **state)
{
    (void)state;
    core_at(NULL, 4);
    leave(FEED_END_NOT_LEADER, false);
    serve();
    SAYS(loaded(1, 4), ""); /* of the former tenure */
    SAYS(loaded(2, 8), "");
    open_sessions(1);
    SAYS(header(1, 9), "1:begin 9 c1");
    leave(FEED_END_NOT_LEADER, false);
    serve();
    loaded(3, -2);
    SAYS(leave(FEED_END_NOT_LEADER, false), "");
}

/* ---- the tables ---- */

static void every_move_of_the_tables_is_made(void **state)
{
    (void)state;
    core_done();
    struct buf missing = {0};
    feed_core_missing(all_moved, &missing);
    assert_string_equal(buf_str(&missing), "");
    buf_done(&missing);
}

static void sessions_close_in_every_state(void **state)
{
    (void)state;
    core_at(&(struct feed_config){.behind_stays_open = true}, 4);
    open_sessions(5);
    gone(5);
    header(1, 5);
    header(2, 5);
    header(3, 9);
    SAYS(header(3, 5), "3:skip 5");
    header(4, 9);
    client_closes(4);
    gone(4);
    header(2, 9);
    gone(2);
    client_closes(3);
    gone(3);
    open_session(6);
    header_by(6, 9, 5);
    client_closes(6);
    open_session(7);
    header_by(7, 5, 6);
    SAYS(gone(7), "");
    SAYS(gone(1), "drop c1");
}

static void the_design_page_shows_the_tables(void **state)
{
    (void)state;
    design_page_shows(feed_phase_dump);
    design_page_shows(feed_session_dump);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cursor_is_loaded_before_a_number_is_won),
        cmocka_unit_test(a_load_that_fails_is_tried_again),
        cmocka_unit_test(a_stored_batch_makes_the_next_load_quick_again),
        cmocka_unit_test(sessions_are_counted),
        cmocka_unit_test(a_batch_begins_with_its_header),
        cmocka_unit_test(a_stored_number_is_a_duplicate_and_the_cursor_is_told),
        cmocka_unit_test(a_publisher_that_is_one_behind_may_stay),
        cmocka_unit_test(a_number_ahead_makes_no_gap),
        cmocka_unit_test(of_eight_publishers_one_wins),
        cmocka_unit_test(a_loser_that_pipelines_survives),
        cmocka_unit_test(a_batch_is_acknowledged_once_it_is_stored),
        cmocka_unit_test(a_batch_has_a_cap),
        cmocka_unit_test(a_bad_copy_ends_its_sender_and_the_others_may_try),
        cmocka_unit_test(what_the_database_refuses_is_as_bad),
        cmocka_unit_test(a_liar_that_comes_back_lets_the_others_try_first),
        cmocka_unit_test(a_liar_gets_its_turn_if_the_others_do_not_come),
        cmocka_unit_test(a_store_without_an_answer_is_sent_again_by_all),
        cmocka_unit_test(a_lone_publisher_sends_again),
        cmocka_unit_test(a_duplicate_does_not_touch_the_winner),
        cmocka_unit_test(a_client_ends_its_stream),
        cmocka_unit_test(tc_e_002_a_premature_header_drops_the_partial_batch),
        cmocka_unit_test(tc_e_002_headers_without_end_do_not_keep_the_number),
        cmocka_unit_test(tc_e_005_a_winner_that_dies_leaves_the_others_unharmed),
        cmocka_unit_test(a_complete_batch_does_not_need_its_sender),
        cmocka_unit_test(a_winner_that_stalls_is_replaced),
        cmocka_unit_test(of_the_challengers_one_wins),
        cmocka_unit_test(a_slow_winner_without_a_challenger_goes_on),
        cmocka_unit_test(the_times_are_settings),
        cmocka_unit_test(a_publisher_that_comes_back_in_the_middle_is_served),
        cmocka_unit_test(a_challenger_that_has_to_wait_does_not_make_the_others_wait),
        cmocka_unit_test(nothing_of_a_resend_is_kept),
        cmocka_unit_test(an_answer_at_once_is_not_missed),
        cmocka_unit_test(the_cursor_moves_whatever_becomes_of_the_session),
        cmocka_unit_test(no_ack_passes_a_number_that_is_sent_again),
        cmocka_unit_test(a_late_answer_about_a_lost_copy_changes_nothing),
        cmocka_unit_test(a_late_answer_does_not_call_a_liar_back),
        cmocka_unit_test(the_copy_that_was_given_up_may_have_been_stored),
        cmocka_unit_test(another_relay_may_have_taken_the_number),
        cmocka_unit_test(a_lost_answer_is_read_from_the_database),
        cmocka_unit_test(a_number_that_was_announced_during_a_load_may_be_too_high),
        cmocka_unit_test(a_database_that_lost_commits_is_followed),
        cmocka_unit_test(copies_without_an_answer_are_few),
        cmocka_unit_test(issue16_5_another_relay_leads),
        cmocka_unit_test(issue16_5_a_stale_epoch_ends_the_sessions),
        cmocka_unit_test(issue16_5_a_drain_lets_the_batch_end),
        cmocka_unit_test(issue16_5_a_new_tenure_reads_the_cursor_again),
        cmocka_unit_test(sessions_close_in_every_state),
        cmocka_unit_test(every_move_of_the_tables_is_made),
        cmocka_unit_test(the_design_page_shows_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
