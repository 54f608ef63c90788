/* The core of a feed in the order of events that no ordinary course has: each test fails without
 * one guard that the other tests do not need. */
#include "feed_harness.h"

#define SAYS(call, expected) assert_string_equal(call, expected)

/* ---- copies whose answer is still to come ---- */

static void give_up_copies(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        send_batch(1, 5);
        wait_ms(100);
    }
}

static void no_setting_keeps_more_than_eight_copies(void **state)
{
    (void)state;
    core_at(&(struct feed_config){.persistence_ack_ms = 100, .abandoned_max = 100}, 4);
    open_sessions(1);
    give_up_copies(8);
    SAYS(header(1, 5), "1:skip 5");
}

static void new_options_keep_the_bound_of_copies(void **state)
{
    (void)state;
    core_at(&(struct feed_config){.persistence_ack_ms = 100, .abandoned_max = 1}, 4);
    feed_core_options(core, &(struct feed_config){.persistence_ack_ms = 100});
    open_sessions(1);
    give_up_copies(1);
    SAYS(header(1, 5), "1:skip 5");
}

static void a_copy_of_the_former_tenure_counts_until_its_answer(void **state)
{
    (void)state;
    core_at(&(struct feed_config){.abandoned_max = 1}, 4);
    open_sessions(1);
    send_batch(1, 5);
    leave(FEED_END_NOT_LEADER, false);
    serve();
    loaded(2, 4);
    open_session(2);
    SAYS(header(2, 5), "2:skip 5");
    SAYS(verified(1, true), "2:resend 5");
    SAYS(header(2, 5), "2:begin 5 c2");
}

/* The time of a bar ends while nothing can be taken: nobody sends for nothing. */
static void nobody_is_called_while_the_copies_are_too_many(void **state)
{
    (void)state;
    core_at(&(struct feed_config){.persistence_ack_ms = 100, .abandoned_max = 1}, 4);
    open_sessions(3);
    send_batch(1, 5);
    verified(1, false); /* its publisher is barred */
    send_batch(2, 5);
    SAYS(wait_ms(100), "timed out, 2:release, 2:end TIMEOUT 4, drop c2, 3:resend 5");
    SAYS(header(3, 5), "3:skip 5");
    SAYS(wait_ms(10000), "");
    SAYS(verified(2, true), "3:resend 5");
}

static void a_late_answer_does_not_disturb_who_sends(void **state)
{
    (void)state;
    core_at(&(struct feed_config){.persistence_ack_ms = 100}, 4);
    open_sessions(3);
    send_batch(1, 5);
    wait_ms(100);
    header(2, 5);
    header(3, 5);
    SAYS(verified(1, true), "");
}

/* ---- who is called ---- */

static void nobody_is_called_who_does_not_wait(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    SAYS(verified(1, false), "not valid, 1:release, 1:end BAD_BLOCK_PROOF 4, drop c1, 2:resend 5");
    SAYS(wait_ms(10000), ""); /* 2 has been called, and has nothing yet */
    SAYS(header(2, 5), "2:begin 5 c2");
}

static void a_copy_without_sender_or_answer_is_sent_by_the_others(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(3);
    send_batch(1, 5);
    gone(1);
    SAYS(wait_ms(30000), "timed out, drop c1, 2:resend 5, 3:resend 5");
}

/* ---- who has to let others try first ---- */

static void who_closes_its_stream_may_try_again(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    header(1, 5);
    SAYS(client_closes(1), "1:end SUCCESS 4, drop c1, 2:resend 5");
    open_session(3);
    SAYS(header_by(3, 5, 0), "3:begin 5 c2");
}

static void who_breaks_the_protocol_lets_the_others_try(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    header(1, 5);
    SAYS(not_understood(1), "1:end INVALID_REQUEST 4, drop c1, 2:resend 5");
    open_session(3);
    SAYS(header_by(3, 5, 0), "3:skip 5");

    core_at(NULL, 4);
    open_sessions(2);
    header(1, 5);
    SAYS(header(1, 6), "drop c1, 1:end BEHIND 4, 2:resend 5");
    open_session(3);
    SAYS(header_by(3, 5, 0), "3:skip 5");
}

static void who_cannot_send_is_not_waited_for(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    verified(1, false);
    client_closes(2); /* ended, and not gone yet */
    open_session(3);
    SAYS(header_by(3, 5, 0), "3:begin 5 c2");

    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    verified(1, false);
    send_batch(2, 5);
    verified(2, false);
    open_session(3);
    open_session(4);
    SAYS(header_by(4, 5, 1), "4:skip 5");
    SAYS(header_by(3, 5, 0), "3:begin 5 c3"); /* the other one has lied too */
}

/* ---- loads ---- */

/* The store of session 1 has no answer, and the cursor is read again. */
static const char *read_after(uint64_t copy, uint64_t load, int64_t last)
{
    verified(copy, true);
    stored(copy, FEED_STORED_UNKNOWN, 0);
    now_ms = feed_due(core);
    tick();
    return loaded(load, last);
}

static void a_store_without_sender_or_answer_is_read(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    verified(1, true);
    gone(1);
    SAYS(stored(1, FEED_STORED_UNKNOWN, 0), "not stored, drop c1");
    SAYS(header(2, 9), "2:skip 9"); /* the load decides whether that is too high */
    now_ms = feed_due(core);
    SAYS(tick(), "load 2");
    SAYS(loaded(2, 8), "2:resend 9");
    SAYS(loaded(2, 3), ""); /* it has been answered */
    assert_int_equal(feed_core_last(core), 8);
}

static void a_load_tells_everybody_what_is_stored(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    SAYS(read_after(1, 2, 5), "1:ack 5, 2:ack 5"); /* 2 waits for nothing */
}

static void a_liar_stays_behind_while_the_number_is_the_same(void **state)
{
    (void)state;
    for (int64_t last = 4; last <= 5; last++) {
        core_at(NULL, 4);
        open_sessions(3);
        send_batch(1, 5);
        verified(1, false);
        send_batch(2, 5);
        read_after(2, 2, last);
        open_session(4);
        SAYS(header_by(4, last + 1, 0), last == 4 ? "4:skip 5" : "4:begin 6 c3");
    }
}

/* The database lost commits: the room answers publishers that wait for a number, and no others. */
static void who_does_not_wait_is_not_ended_by_lost_commits(void **state)
{
    static const int64_t cursors[] = {6, 9};
    static const char *const expected[] = {"1:end BEHIND 6", "1:end BEHIND 9"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        core_at(NULL, 9);
        open_sessions(2);
        send_batch(1, 10);
        header(2, 10);
        verified(1, true);
        SAYS(stored(1, FEED_STORED, 10), "acknowledged, 1:release, drop c1, 1:ack 10, 2:ack 10");
        send_batch(1, 11);
        SAYS(read_after(2, 2, cursors[i]), expected[i]);
    }
}

/* ---- sizes ---- */

static void sizes_that_overflow_are_too_large(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    header(1, 5);
    SAYS(items(1, 2, 2), "keep c1");
    SAYS(items(1, 1, UINT64_MAX - 1), "1:end INVALID_REQUEST 4, drop c1, 2:resend 5");
    header(2, 5);
    SAYS(items(2, 2, 2), "keep c2");
    SAYS(items(2, UINT32_MAX - 1, 1), "2:end INVALID_REQUEST 4, drop c2");
}

/* ---- answers that cannot be right ---- */

static void an_answer_that_was_not_asked_for_stores_nothing(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(1);
    header(1, 5);
    SAYS(verified(1, true), ""); /* it is still being sent */
    items(1, 1, 10);
    trailer(1);
    SAYS(stored(1, FEED_STORED, 5), ""); /* it is not verified */
    assert_int_equal(feed_core_last(core), 4);
    SAYS(verified(1, true), "store 5 c1");
    SAYS(verified(1, false), "");
    SAYS(stored(1, FEED_STORED, 5), "acknowledged, 1:release, drop c1, 1:ack 5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_setting_keeps_more_than_eight_copies),
        cmocka_unit_test(new_options_keep_the_bound_of_copies),
        cmocka_unit_test(a_copy_of_the_former_tenure_counts_until_its_answer),
        cmocka_unit_test(nobody_is_called_while_the_copies_are_too_many),
        cmocka_unit_test(nobody_is_called_who_does_not_wait),
        cmocka_unit_test(a_copy_without_sender_or_answer_is_sent_by_the_others),
        cmocka_unit_test(a_late_answer_does_not_disturb_who_sends),
        cmocka_unit_test(who_closes_its_stream_may_try_again),
        cmocka_unit_test(who_breaks_the_protocol_lets_the_others_try),
        cmocka_unit_test(who_cannot_send_is_not_waited_for),
        cmocka_unit_test(a_store_without_sender_or_answer_is_read),
        cmocka_unit_test(a_load_tells_everybody_what_is_stored),
        cmocka_unit_test(a_liar_stays_behind_while_the_number_is_the_same),
        cmocka_unit_test(who_does_not_wait_is_not_ended_by_lost_commits),
        cmocka_unit_test(sizes_that_overflow_are_too_large),
        cmocka_unit_test(an_answer_that_was_not_asked_for_stores_nothing),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    core_done();
    return failed;
}
