/* When a relay that cannot act gives its accounts up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "relay/core/poll/ability.h"

enum { BEAT_MS = 1000, HOUR_MS = 3600000, START_MS = 5000 };

/* Every combination of what is seen. */
static void what_is_lacking(void **state)
{
    (void)state;
    static const struct {
        bool ready, refused, waits, behind;
        enum ability_lack lack;
    } rows[] = {
        {false, false, false, false, ABILITY_LACKS_NO_ENDPOINT},
        {false, false, false, true, ABILITY_LACKS_NO_ENDPOINT},
        {false, false, true, false, ABILITY_LACKS_NO_ENDPOINT},
        {false, false, true, true, ABILITY_LACKS_NO_ENDPOINT},
        {false, true, false, false, ABILITY_LACKS_NO_ENDPOINT},
        {false, true, false, true, ABILITY_LACKS_NO_ENDPOINT},
        {false, true, true, false, ABILITY_LACKS_NO_ENDPOINT},
        {false, true, true, true, ABILITY_LACKS_NO_ENDPOINT},
        {true, false, false, false, ABILITY_LACKS_NOTHING},
        {true, false, false, true, ABILITY_LACKS_STUCK},
        {true, false, true, false, ABILITY_LACKS_NOTHING},
        {true, false, true, true, ABILITY_LACKS_BEHIND},
        {true, true, false, false, ABILITY_LACKS_REFUSED},
        {true, true, false, true, ABILITY_LACKS_REFUSED},
        {true, true, true, false, ABILITY_LACKS_REFUSED},
        {true, true, true, true, ABILITY_LACKS_REFUSED},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum ability_lack is =
            ability_of(rows[i].ready, rows[i].refused, rows[i].waits, rows[i].behind);
        assert_string_equal(ability_name(is), ability_name(rows[i].lack));
        assert_int_equal(!*ability_text(is), is == ABILITY_LACKS_NOTHING);
    }
}

/* A relay that leads, as it and the others look. Heights rise by that much a heartbeat. */
struct scene {
    bool ready, waits, refuses;
    unsigned own, others; /* how fast heights rise */
    size_t members;
    enum ability_lack gives_up; /* in the end */
    uint64_t after_ms;
};

static enum ability_lack play(const struct scene *s, struct ability *a, uint64_t *ret_after_ms)
{
    struct ability_seen seen = {.leads = true,
                                .ready = s->ready,
                                .waits = s->waits,
                                .best = s->ready ? 100 : 0,
                                .others_best = s->own > s->others ? 100 : 101,
                                .members = s->members};
    for (uint64_t now = START_MS; now <= START_MS + HOUR_MS; now += BEAT_MS) {
        if (s->refuses)
            ability_answer(a, false);
        enum ability_lack lack = ability_step(a, now, &seen);
        *ret_after_ms = now - START_MS;
        if (lack != ABILITY_LACKS_NOTHING)
            return lack;
        seen.best += s->own;
        seen.others_best += s->others;
        if (seen.others_best < seen.best)
            seen.others_best = seen.best;
    }
    return ABILITY_LACKS_NOTHING;
}

static void a_relay_gives_up(void **state)
{
    (void)state;
    static const struct scene scenes[] = {
        /* no endpoint; another relay's node goes on, or does not */
        {.members = 2, .others = 1, .gives_up = ABILITY_LACKS_NO_ENDPOINT, .after_ms = 10000},
        {.members = 2, .others = 0, .gives_up = ABILITY_LACKS_NOTHING},
        /* its head stands still */
        {.ready = true,
         .members = 2,
         .others = 1,
         .gives_up = ABILITY_LACKS_STUCK,
         .after_ms = 10000},
        {.ready = true, .members = 2, .others = 0, .gives_up = ABILITY_LACKS_NOTHING},
        /* behind, and moves on: only who waits for a block cannot act */
        {.ready = true, .own = 1, .members = 2, .others = 1, .gives_up = ABILITY_LACKS_NOTHING},
        {.ready = true,
         .waits = true,
         .own = 1,
         .members = 2,
         .others = 1,
         .gives_up = ABILITY_LACKS_BEHIND,
         .after_ms = 10000},
        /* it is the best one */
        {.ready = true, .own = 2, .members = 2, .others = 1, .gives_up = ABILITY_LACKS_NOTHING},
        /* it takes no submission: the third one tells */
        {.ready = true,
         .refuses = true,
         .own = 2,
         .members = 2,
         .others = 1,
         .gives_up = ABILITY_LACKS_REFUSED,
         .after_ms = 12000},
        {.ready = true, .refuses = true, .own = 2, .members = 1, .gives_up = ABILITY_LACKS_NOTHING},
    };
    for (size_t i = 0; i < ARRAY_LEN(scenes); i++) {
        struct ability a = {0};
        uint64_t after_ms;
        enum ability_lack lack = play(&scenes[i], &a, &after_ms);
        assert_string_equal(ability_name(lack), ability_name(scenes[i].gives_up));
        if (lack != ABILITY_LACKS_NOTHING)
            assert_int_equal(after_ms, scenes[i].after_ms);
    }
}

/* What comes back for a moment does not count; what comes back for good does. */
static void an_endpoint_that_comes_and_goes(void **state)
{
    (void)state;
    static const unsigned away_of_ten[] = {8, 6};
    for (size_t i = 0; i < ARRAY_LEN(away_of_ten); i++) {
        struct ability a = {0};
        unsigned gave_up = 0;
        for (unsigned beat = 0; beat < 60; beat++) {
            bool ready = beat % 10 >= away_of_ten[i];
            struct ability_seen seen = {.leads = true,
                                        .ready = ready,
                                        .best = ready ? 100 + beat : 0,
                                        .others_best = 100 + beat,
                                        .members = 2};
            gave_up += ability_step(&a, START_MS + beat * BEAT_MS, &seen) != ABILITY_LACKS_NOTHING;
        }
        assert_int_equal(gave_up > 0, i == 0);
    }
}

/* Two relays whose endpoints take nothing give the account to each other, more and more rarely. */
static void two_that_are_equally_bad(void **state)
{
    (void)state;
    enum { MOST = 2 * 7 + 3 }; /* 21 minutes each, and what is left of the hour */
    struct ability relays[2] = {{0}};
    struct ability_seen seen = {.ready = true, .best = 7, .others_best = 7, .members = 2};
    size_t leader = 0;
    unsigned times = 0;
    for (uint64_t now = START_MS; now < START_MS + HOUR_MS; now += BEAT_MS) {
        ability_answer(&relays[leader], false);
        enum ability_lack lack = ABILITY_LACKS_NOTHING;
        for (size_t i = 0; i < ARRAY_LEN(relays); i++) {
            seen.leads = i == leader;
            enum ability_lack is = ability_step(&relays[i], now, &seen);
            lack = seen.leads ? is : lack;
        }
        times += lack == ABILITY_LACKS_REFUSED;
        leader = lack == ABILITY_LACKS_REFUSED ? 1 - leader : leader;
    }
    assert_in_range(times, 10, MOST);
}

/* A submission that was taken makes a relay as quick as before. */
static void one_that_takes_again(void **state)
{
    (void)state;
    static const struct scene scene = {.ready = true, .members = 2, .others = 1};
    struct ability a = {0};
    uint64_t after_ms;
    for (uint64_t ms = ABILITY_FIRST_MS; ms <= ABILITY_MOST_MS; ms *= 2) {
        play(&scene, &a, &after_ms);
        assert_int_equal(after_ms, ms);
    }
    play(&scene, &a, &after_ms);
    assert_int_equal(after_ms, ABILITY_MOST_MS);
    ability_answer(&a, true);
    play(&scene, &a, &after_ms);
    assert_int_equal(after_ms, ABILITY_FIRST_MS);
}

/* Who leads nothing has nothing to give up, and begins anew when it leads. */
static void a_follower(void **state)
{
    (void)state;
    struct ability a = {0};
    struct ability_seen seen = {.members = 2, .others_best = 1};
    for (unsigned beat = 0; beat < 70; beat++, seen.others_best++) {
        seen.leads = beat % 10 >= 5;
        assert_int_equal(ability_step(&a, START_MS + beat * BEAT_MS, &seen), 0);
    }
    seen.leads = true;
    for (unsigned beat = 71; beat < 75; beat++, seen.others_best++)
        assert_int_equal(ability_step(&a, START_MS + beat * BEAT_MS, &seen), 0);
    assert_int_equal(ability_step(&a, START_MS + 75 * BEAT_MS, &seen), ABILITY_LACKS_NO_ENDPOINT);
}

/* What was refused before it gave up counts no more when it leads again. */
static void one_that_leads_again(void **state)
{
    (void)state;
    struct scene scene = {.ready = true, .refuses = true, .members = 2};
    struct ability a = {0};
    uint64_t after_ms;
    assert_int_equal(play(&scene, &a, &after_ms), ABILITY_LACKS_REFUSED);
    scene.refuses = false;
    assert_int_equal(play(&scene, &a, &after_ms), ABILITY_LACKS_NOTHING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_lacking),
        cmocka_unit_test(a_relay_gives_up),
        cmocka_unit_test(an_endpoint_that_comes_and_goes),
        cmocka_unit_test(two_that_are_equally_bad),
        cmocka_unit_test(one_that_takes_again),
        cmocka_unit_test(a_follower),
        cmocka_unit_test(one_that_leads_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
