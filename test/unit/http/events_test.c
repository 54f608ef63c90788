/* The ring of events and where a reader begins: against a table and a ring that are filled at
 * random, a reader gets each end once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "http/core/events.h"

static void put(struct recent *r, int64_t at, int64_t id, bool ended, const char *text)
{
    struct recent_event ev = {.updated_us = at,
                              .id = id,
                              .account = (int32_t)(id % 3) + 1,
                              .ended = ended,
                              .text = (char *)text,
                              .len = strlen(text)};
    snprintf(ev.state, sizeof(ev.state), "%s", ended ? "finalized" : "ready");
    snprintf(ev.outcome, sizeof(ev.outcome), "%s", ended ? "ok" : "");
    recent_put(r, &ev);
}

static void the_oldest_make_room_by_number_and_by_bytes(void **state)
{
    struct recent *r = recent_new(4, 10);
    (void)state;
    assert_int_equal(recent_first(r), 1);
    assert_int_equal(recent_end(r), 1);
    for (int i = 1; i <= 6; i++)
        put(r, 100 + i, i, false, "xx");
    assert_int_equal(recent_first(r), 3);
    assert_int_equal(recent_end(r), 7);
    assert_int_equal(recent_at(r, 3)->id, 3);
    assert_int_equal(recent_at(r, 6)->id, 6);
    assert_int_equal(recent_covers(r), 103); /* the one before is gone */
    put(r, 107, 7, false, "123456789");      /* 9 of 10 bytes */
    assert_int_equal(recent_first(r), 7);
    assert_int_equal(recent_covers(r), 107);
    put(r, 108, 8, false, "longer than all of it");
    assert_int_equal(recent_first(r), 8);
    recent_cover_from(r, 50); /* never back */
    assert_int_equal(recent_covers(r), 108);
    recent_cover_from(r, 500);
    assert_int_equal(recent_covers(r), 500);
    recent_free(r);
    assert_null(recent_free(NULL));
}

static void ids_are_read_as_they_were_written(void **state)
{
    static const struct event_id good[] = {
        {1, 0, 0}, {1796000000123456, 0x5f3a9c01, 17}, {INT64_MAX, UINT32_MAX, UINT64_MAX}};
    static const char *const bad[] = {"",
                                      "1",
                                      "1-2",
                                      "1-2-3",
                                      "x",
                                      "0-00000000-0",
                                      "-1-00000001-1",
                                      "1-00000001-1x",
                                      " 1-00000001-1",
                                      "1-00000001--1",
                                      "1-100000001-1",
                                      "99999999999999999999-00000001-1",
                                      "1-0000000A-1"};
    struct event_id id;
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        char text[EVENT_ID_TEXT];
        event_id_put(&good[i], text);
        assert_true(event_id_parse(text, &id));
        assert_true(id.position_us == good[i].position_us && id.ring == good[i].ring &&
                    id.number == good[i].number);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (event_id_parse(bad[i], &id))
            fail_msg("\"%s\" is taken for an id", bad[i]);
}

static void a_ring_goes_on_after_its_own_events_only(void **state)
{
    struct recent *r = recent_new(4, 1000);
    (void)state;
    for (int i = 1; i <= 6; i++) /* 3 to 6 are there */
        put(r, i, i, false, "x");
    for (uint64_t n = 0; n < 9; n++) {
        assert_int_equal(recent_resumes(r, 7, &(struct event_id){1, 7, n}), n >= 2 && n <= 6);
        assert_false(recent_resumes(r, 7, &(struct event_id){1, 8, n}));
    }
    assert_false(recent_resumes(r, 7, &(struct event_id){1, 7, UINT64_MAX}));
    recent_free(r);
}

static void the_split_is_where_table_and_ring_both_know_all(void **state)
{
    struct recent *r = recent_new(4, 1000);
    const int64_t s = 1000000;
    (void)state;
    recent_cover_from(r, 100 * s);
    assert_int_equal(recent_split(r, 110 * s), 108 * s);
    assert_int_equal(recent_split(r, 101 * s), 100 * s);
    assert_int_equal(recent_split(r, 100 * s), 100 * s);
    assert_int_equal(recent_split(r, 99 * s), INT64_MAX); /* an old transaction is open */
    recent_free(r);
}

static void a_filter_takes_what_fits_all_of_it(void **state)
{
    struct recent *r = recent_new(4, 1000);
    (void)state;
    put(r, 1, 7, true, "x"); /* account 2, finalized, ok */
    const struct recent_event *ev = recent_at(r, 1);
    assert_true(event_wanted(&(struct event_filter){0}, ev));
    assert_true(event_wanted(&(struct event_filter){2, 7, "ok"}, ev));
    assert_true(event_wanted(&(struct event_filter){0, 0, "finalized"}, ev));
    assert_false(event_wanted(&(struct event_filter){1, 0, ""}, ev));
    assert_false(event_wanted(&(struct event_filter){0, 8, ""}, ev));
    assert_false(event_wanted(&(struct event_filter){0, 0, "failed"}, ev));
    recent_free(r);
}

static void put_kind(struct recent *r, int64_t id, bool passing, bool ended)
{
    recent_put(r, &(struct recent_event){
                      .id = id, .ended = ended, .passing = passing, .text = (char *)"x", .len = 1});
}

/* Who has not read a state between two others does without it, unless it asked for a state. */
static void an_event_replaces_the_passing_one_before_it(void **state)
{
    static const struct event_filter any = {0}, ready = {0, 0, "ready"};
    struct recent *r = recent_new(100, 1000);
    (void)state;
    put_kind(r, 7, false, false); /* 1: it got a nonce */
    put_kind(r, 7, true, false);  /* 2 */
    put_kind(r, 8, true, false);  /* 3 */
    put_kind(r, 0, true, false);  /* 4, 5: fillers */
    put_kind(r, 0, true, false);
    for (uint64_t n = 1; n <= 5; n++)
        assert_true(event_wanted(&any, recent_at(r, n)));
    put_kind(r, 7, true, false); /* 6 */
    assert_false(event_wanted(&any, recent_at(r, 2)));
    put_kind(r, 7, false, true); /* 7: its end */
    put_kind(r, 7, true, false); /* 8: a late state; nothing passing is before it */
    static const bool wanted[] = {true, false, true, true, true, false, true, true};
    for (uint64_t n = 1; n <= 8; n++)
        if (event_wanted(&any, recent_at(r, n)) != wanted[n - 1])
            fail_msg("event %d is %s", (int)n, wanted[n - 1] ? "replaced" : "not replaced");
    struct recent_event old = *recent_at(r, 2);
    snprintf(old.state, sizeof(old.state), "ready");
    assert_true(event_wanted(&ready, &old));
    recent_free(r);
}

/* The index of passing events and the ring agree, also when the oldest ones leave. */
static void what_is_replaced_is_known_of_any_ring(void **state)
{
    enum { EVENTS = 4000, IDS = 40 };
    struct rng rng = {.state = 18};
    (void)state;
    for (size_t size = 1; size < 60; size += 7) {
        struct recent *r = recent_new(size, 1 << 20);
        for (int i = 0; i < EVENTS; i++) {
            put_kind(r, (int64_t)rng_below(&rng, IDS), rng_below(&rng, 3) != 0, false);
            for (uint64_t n = recent_first(r); n < recent_end(r); n++) {
                const struct recent_event *ev = recent_at(r, n);
                bool later = false;
                for (uint64_t k = n + 1; k < recent_end(r); k++)
                    later |= recent_at(r, k)->id == ev->id;
                assert_int_equal(ev->replaced, later && ev->passing && ev->id);
            }
        }
        recent_free(r);
    }
}

static void writes_rest_by_what_they_cost(void **state)
{
    (void)state;
    assert_int_equal(events_pause_ms(0, 0), 0);
    assert_int_equal(events_pause_ms(10, 10000), 0);      /* a few readers wait for nobody */
    assert_in_range(events_pause_ms(100, 100000), 5, 15); /* a hundred keep within 50 ms */
    assert_in_range(events_pause_ms(200, 4000000), 30, 50);
    assert_int_equal(events_pause_ms(300, 1 << 30), 100); /* never longer */
    assert_int_equal(events_pause_ms(SIZE_MAX / (32 << 10), SIZE_MAX / 2), 100);
}

/* Ends happen, are in the table at once, and are delivered to the ring up to two seconds later, in
 * another order. A reader comes at any time with any position. */
static void a_reader_gets_each_end_once(void **state)
{
    enum { ENDS = 400, SECOND = 1000000 };
    struct rng rng = {.state = 20261130};
    (void)state;
    for (int round = 0; round < 400; round++) {
        struct recent *r = recent_new(1 + rng_below(&rng, 600), 1 << 20);
        int64_t at[ENDS], told[ENDS], start = 1000LL * SECOND;
        unsigned got[ENDS] = {0};
        for (int i = 0; i < ENDS; i++) {
            at[i] = start + (int64_t)rng_below(&rng, 60 * SECOND);
            told[i] = at[i] + (int64_t)rng_below(&rng, 2 * SECOND - 1);
        }
        int64_t opened = start + (int64_t)rng_below(&rng, 20 * SECOND);
        int64_t joins = opened + (int64_t)rng_below(&rng, 50 * SECOND);
        int64_t since = start + (int64_t)rng_below(&rng, (uint32_t)(joins - start));
        recent_cover_from(r, opened);
        uint64_t joined = 0;
        int64_t split = 0;
        for (int64_t now = opened; now < start + 63LL * SECOND; now += SECOND / 20) {
            if (!joined && now >= joins) {
                joined = recent_end(r);
                split = recent_split(r, now);
                for (int i = 0; i < ENDS; i++)
                    got[i] += at[i] >= since && at[i] < now && at[i] < split;
            }
            for (int i = 0; i < ENDS; i++)
                if (told[i] > now && told[i] <= now + SECOND / 20 && at[i] >= opened)
                    put(r, at[i], i + 1, true, "x");
        }
        for (uint64_t n = recent_first(r); n < recent_end(r); n++) {
            const struct recent_event *ev = recent_at(r, n);
            if (ev->updated_us >= since && recent_is_new(ev, n, joined, split))
                got[ev->id - 1]++;
        }
        bool kept = recent_first(r) <= joined && recent_covers(r) <= split;
        for (int i = 0; kept && i < ENDS; i++)
            if (at[i] >= since && got[i] != 1)
                fail_msg("round %d: end %d came %u times", round, i, got[i]);
        recent_free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_make_room_by_number_and_by_bytes),
        cmocka_unit_test(ids_are_read_as_they_were_written),
        cmocka_unit_test(a_ring_goes_on_after_its_own_events_only),
        cmocka_unit_test(the_split_is_where_table_and_ring_both_know_all),
        cmocka_unit_test(a_filter_takes_what_fits_all_of_it),
        cmocka_unit_test(an_event_replaces_the_passing_one_before_it),
        cmocka_unit_test(what_is_replaced_is_known_of_any_ring),
        cmocka_unit_test(writes_rest_by_what_they_cost),
        cmocka_unit_test(a_reader_gets_each_end_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
