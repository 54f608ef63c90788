/* One question for all accounts: when, how many, and which account need not ask by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "relay/core/poll/rounds.h"

enum { START = 1000000, SOON = 5 };

/* ---- when ---- */

static struct rounds rounds_of(void)
{
    struct rounds r;
    rounds_init(&r, START, 0);
    return r;
}

static void once_a_second(void **state)
{
    (void)state;
    struct rounds r = rounds_of();
    for (uint64_t now = START; now < START + 10 * ROUND_MS; now += ROUND_MS) {
        assert_int_equal(rounds_next(&r), now);
        assert_int_equal(rounds_begin(&r, now, ROUND_SLICE), ROUND_SLICE);
        assert_int_equal(rounds_next(&r), UINT64_MAX);
        assert_int_equal(rounds_begin(&r, now + ROUND_MS, ROUND_SLICE), 0); /* one at a time */
        rounds_ended(&r, now + SOON);
        assert_int_equal(rounds_begin(&r, now + SOON, ROUND_SLICE), 0);
    }
}

static void not_together_with_other_relays(void **state)
{
    (void)state;
    struct rounds a, b;
    rounds_init(&a, START, 7);
    rounds_init(&b, START, 8);
    assert_int_not_equal(rounds_next(&a), rounds_next(&b));
    rounds_init(&a, START, UINT64_MAX);
    assert_in_range(rounds_next(&a), START, START + ROUND_MS - 1);
}

static void nothing_is_led(void **state)
{
    (void)state;
    struct rounds r = rounds_of();
    assert_int_equal(rounds_begin(&r, START, 0), 0);
    assert_int_equal(rounds_next(&r), START + ROUND_MS);
    assert_int_equal(rounds_begin(&r, START + ROUND_MS, 3), 3);
}

/* Everybody's turn comes within a second, whatever the number, and no question is longer than a slice. */
static void slices(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 999, 1000, 1001, 2500, 10000, 123456};
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        struct rounds r = rounds_of();
        size_t asked = 0, statements = 0;
        for (uint64_t now = START; now < START + ROUND_MS; now = rounds_next(&r)) {
            size_t n = rounds_begin(&r, now, counts[i]);
            assert_in_range(n, 1, ROUND_SLICE);
            asked += n;
            statements++;
            rounds_ended(&r, now);
        }
        assert_true(asked >= counts[i]);
        assert_in_range(statements, (counts[i] + ROUND_SLICE - 1) / ROUND_SLICE, counts[i] / ROUND_SLICE + 3);
    }
}

static void a_slow_answer_is_followed_by_a_rest(void **state)
{
    (void)state;
    struct rounds r = rounds_of();
    rounds_begin(&r, START, 1);
    rounds_ended(&r, START + 5 * ROUND_MS);
    assert_int_equal(rounds_next(&r), START + 5 * ROUND_MS + ROUND_PAUSE_MS);
}

/* ---- one account ---- */

/* A slow look would not be asked. */
static bool calm_is(const struct calm *c, uint64_t now)
{
    struct calm copy = *c;
    return !calm_look(&copy, now, true);
}

static struct calm calm_of(int64_t mark)
{
    struct calm c;
    calm_reset(&c);
    assert_true(calm_look(&c, START, false));
    calm_looked(&c, START, mark, -1);
    return c;
}

static void the_rounds_must_have_it(void **state)
{
    (void)state;
    struct calm c;
    calm_reset(&c);
    assert_false(calm_is(&c, START));
    calm_round(&c, START, START + SOON, false, false, -1);
    assert_false(calm_is(&c, START + SOON)); /* what the manager knows is not known */
    assert_false(calm_poll(&c, START + SOON));
    c = calm_of(7);
    assert_false(calm_is(&c, START)); /* no round had it */
    assert_true(calm_poll(&c, START));
    assert_int_equal(calm_round(&c, START, START + SOON, false, false, -1), CALM_FX_NONE);
    assert_true(calm_is(&c, START + SOON));
    assert_true(calm_is(&c, START + SOON + ROUND_COVER_MS - 1));
    assert_false(calm_poll(&c, START + SOON + ROUND_COVER_MS - 1));
    assert_false(calm_is(&c, START + SOON + ROUND_COVER_MS));
    assert_true(calm_poll(&c, START + SOON + ROUND_COVER_MS));
    assert_int_equal(calm_left(&c, START), UINT64_MAX);
    calm_reset(&c);
    assert_false(calm_is(&c, START + SOON));
}

static void only_time_goes_unasked(void **state)
{
    (void)state;
    struct calm c = calm_of(7);
    calm_round(&c, START, START, false, false, -1);
    assert_false(calm_look(&c, START + SOON, true));
    assert_true(calm_is(&c, START + SOON));
    assert_true(calm_look(&c, START + SOON, false));
    assert_false(calm_is(&c, START + SOON)); /* one is on its way */
    assert_true(calm_look(&c, START + SOON, true));
    assert_false(calm_poll(&c, START + SOON)); /* which does not make the outbox any fuller */
}

/* A time that is known to come is not waited for by the rounds: the account asks to the millisecond. */
static void a_time_that_comes(void **state)
{
    (void)state;
    struct calm c = calm_of(7);
    calm_round(&c, START, START + SOON, false, false, 800);
    assert_int_equal(calm_left(&c, START + SOON), 800 - SOON);
    assert_true(calm_is(&c, START + 799));
    assert_false(calm_is(&c, START + 800));
    assert_int_equal(calm_left(&c, START + 900), 0);
    assert_true(calm_look(&c, START + 800, true));
    calm_looked(&c, START + 801, 7, 40);
    assert_true(calm_is(&c, START + 840));
    assert_false(calm_is(&c, START + 841));
}

/* A manager that rests hears of such a time once, and not while a look is on its way that tells it. */
static void a_time_that_wakes_who_rests(void **state)
{
    (void)state;
    struct calm c = calm_of(7);
    assert_int_equal(calm_deadline(&c), UINT64_MAX);
    calm_round(&c, START, START + SOON, false, false, 800);
    assert_int_equal(calm_deadline(&c), START + 800);
    assert_false(calm_due(&c, START + 799));
    assert_true(calm_due(&c, START + 800));
    assert_false(calm_due(&c, START + 801));
    calm_round(&c, START, START + SOON, false, false, 900);
    assert_true(calm_look(&c, START + 850, false));
    assert_false(calm_due(&c, START + 900));
    calm_looked(&c, START + 901, 7, 40);
    assert_int_equal(calm_deadline(&c), START + 941);
}

/* While a round is on its way nobody asks beside it: a server that is slow would get a thousand questions
 * more. One that failed, or never came, leaves the account to itself. */
static void a_round_on_its_way(void **state)
{
    (void)state;
    struct calm c = calm_of(7);
    calm_asked(&c, START);
    assert_true(calm_is(&c, START + 10 * ROUND_MS));
    assert_false(calm_is(&c, START + ROUND_LOST_MS));
    calm_round(&c, START, START + 10 * ROUND_MS, false, false, 8 * ROUND_MS);
    assert_false(calm_is(&c, START + 10 * ROUND_MS)); /* that time has come meanwhile */
    calm_asked(&c, START + 11 * ROUND_MS);
    calm_round_failed(&c);
    assert_true(calm_look(&c, START + 11 * ROUND_MS, true));
    calm_looked(&c, START, 7, -1);
    assert_false(calm_is(&c, START + 11 * ROUND_MS));
}

static void what_is_found_is_a_reason_to_ask(void **state)
{
    (void)state;
    struct calm c = calm_of(7);
    assert_int_equal(calm_round(&c, START, START, true, false, -1), CALM_FX_LOOK);
    assert_int_equal(calm_round(&c, START, START, false, true, -1), CALM_FX_RING);
    assert_int_equal(calm_round(&c, START, START, true, true, 5), CALM_FX_LOOK | CALM_FX_RING);
}

/* Facts that the manager did not hear of must be told by another look. */
static void an_answer_that_nobody_waits_for(void **state)
{
    (void)state;
    struct calm c = calm_of(7);
    assert_true(calm_look(&c, START, false));
    assert_true(calm_look(&c, START, true)); /* given up, asked again */
    calm_looked(&c, START, 8, -1);
    calm_looked(&c, START, 9, -1);
    calm_round(&c, START, START, false, false, -1);
    assert_false(calm_is(&c, START));
    assert_true(calm_look(&c, START, true));
    calm_looked(&c, START, -1, 0); /* it failed */
    assert_false(
        calm_due(&c, START)); /* and is not asked again at once, for as long as the database is away */
    assert_false(calm_is(&c, START));
    assert_true(calm_look(&c, START, true));
    calm_looked(&c, START, 9, -1);
    assert_true(calm_is(&c, START));
}

/* ---- both together, over a table that changes ---- */

struct world {
    struct rng rng;
    struct rounds rounds;
    struct calm calm;
    uint64_t now;
    uint64_t asked_at, answer_at; /* of the round; UINT64_MAX: none */
    bool saw_work, saw_facts;
    uint64_t saw_time;
    int64_t facts, told;              /* what the table has, what the manager was told */
    uint64_t work_since, facts_since; /* UINT64_MAX: there is none, it was told */
    uint64_t time;                    /* the next in the table; UINT64_MAX: none */
    uint64_t look_at;                 /* the manager's next slow look */
    unsigned looks, unasked;
};

static void look_now(struct world *w)
{
    uint64_t late = w->now - w->time;
    if (w->time <= w->now) {
        assert_true(late <= 2); /* to the millisecond, as long as the rounds could tell of it */
        w->time = UINT64_MAX;
    }
    w->work_since = w->facts_since = UINT64_MAX;
    w->told = w->facts;
    w->look_at = w->now + ROUND_MS;
    if (w->time < w->look_at)
        w->look_at = w->time + 1;
    calm_looked(&w->calm, w->now, w->facts, w->time == UINT64_MAX ? -1 : (int64_t)(w->time - w->now));
    w->looks++;
}

static void slow_look(struct world *w)
{
    if (calm_look(&w->calm, w->now, true)) {
        look_now(w);
        return;
    }
    uint64_t left = calm_left(&w->calm, w->now);
    w->look_at = w->now + (left < ROUND_MS ? left + 1 : ROUND_MS);
    w->unasked++;
}

static void round_answers(struct world *w)
{
    int64_t next = w->saw_time == UINT64_MAX ? -1 : (int64_t)(w->saw_time - w->asked_at);
    unsigned fx = calm_round(&w->calm, w->asked_at, w->now, w->saw_work || w->saw_facts, false, next);
    rounds_ended(&w->rounds, w->now);
    w->answer_at = UINT64_MAX;
    if (fx & CALM_FX_LOOK) {
        assert_true(calm_look(&w->calm, w->now, false));
        look_now(w);
    }
}

static void round_begins(struct world *w)
{
    if (!rounds_begin(&w->rounds, w->now, 1))
        return;
    w->asked_at = w->now;
    calm_asked(&w->calm, w->now);
    w->answer_at = w->now + rng_below(&w->rng, 30);
    w->saw_work = w->work_since != UINT64_MAX;
    w->saw_facts = w->calm.mark >= 0 && w->calm.mark != w->facts;
    w->saw_time = w->time < w->now + ROUND_AHEAD_MS ? w->time : UINT64_MAX;
}

static void somebody_acts(struct world *w)
{
    uint64_t what = rng_below(&w->rng, 6000);
    if (what == 0 && w->work_since == UINT64_MAX)
        w->work_since = w->now;
    if (what == 1) {
        w->facts = (int64_t)rng_below(&w->rng, 3);
        w->facts_since = w->facts == w->told ? UINT64_MAX : w->now;
    }
    if (what == 2 && w->time == UINT64_MAX) /* further off than what a round takes to tell of it */
        w->time = w->now + 2 * ROUND_MS + rng_below(&w->rng, 20 * ROUND_MS);
}

static void nothing_is_missed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct world w = {.rng = {.state = seed},
                          .now = START,
                          .answer_at = UINT64_MAX,
                          .time = UINT64_MAX,
                          .work_since = UINT64_MAX,
                          .facts_since = UINT64_MAX,
                          .look_at = START};
        rounds_init(&w.rounds, START, seed * 37);
        calm_reset(&w.calm);
        for (; w.now < START + 60 * ROUND_MS; w.now++) {
            somebody_acts(&w);
            if (w.answer_at <= w.now)
                round_answers(&w);
            round_begins(&w);
            if (w.look_at <= w.now)
                slow_look(&w);
            uint64_t oldest = w.work_since < w.facts_since ? w.work_since : w.facts_since;
            assert_true(oldest == UINT64_MAX || w.now - oldest <= ROUND_MS + 30);
        }
        assert_true(w.unasked >= 40 && w.looks <= 40);
    }
}

/* A round that takes long covers for long: what is slow is not made slower by thousands that ask for
 * themselves. */
static void slow_rounds_cover_longer(void **state)
{
    (void)state;
    struct calm c = calm_of(7);
    calm_round(&c, START, START, false, false, -1);
    uint64_t now = START + 5 * ROUND_MS;
    calm_round(&c, now, now, false, false, -1);
    assert_true(calm_is(&c, now + 15 * ROUND_MS - 1));
    assert_false(calm_is(&c, now + 15 * ROUND_MS));
    calm_round(&c, now + ROUND_MS, now + ROUND_MS, false, false, -1); /* quick again */
    assert_false(calm_is(&c, now + ROUND_MS + ROUND_COVER_MS));
    now += 2 * (uint64_t)ROUND_LOST_MS;
    calm_round(&c, now, now, false, false, -1);
    assert_false(calm_is(&c, now + ROUND_LOST_MS));
}

/* One that is led from now on has asked for itself, and the rounds will come to it. */
static void a_new_one_is_covered_for_a_while(void **state)
{
    (void)state;
    struct calm c;
    calm_begin(&c, START);
    assert_false(calm_poll(&c, START));
    assert_true(calm_poll(&c, START + ROUND_COVER_MS));
    assert_false(calm_is(&c, START)); /* its facts are not known */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_rounds_cover_longer),
        cmocka_unit_test(a_new_one_is_covered_for_a_while),
        cmocka_unit_test(once_a_second),
        cmocka_unit_test(not_together_with_other_relays),
        cmocka_unit_test(nothing_is_led),
        cmocka_unit_test(slices),
        cmocka_unit_test(a_slow_answer_is_followed_by_a_rest),
        cmocka_unit_test(the_rounds_must_have_it),
        cmocka_unit_test(only_time_goes_unasked),
        cmocka_unit_test(a_time_that_comes),
        cmocka_unit_test(a_time_that_wakes_who_rests),
        cmocka_unit_test(a_round_on_its_way),
        cmocka_unit_test(what_is_found_is_a_reason_to_ask),
        cmocka_unit_test(an_answer_that_nobody_waits_for),
        cmocka_unit_test(nothing_is_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
