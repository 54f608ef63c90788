/* A move of a feed's core that no table has: the sessions end and the cursor is read again; the
 * relay goes on, and tests do not forgive it. */
#include <string.h>

#include "feed_harness.h"
#include "feed_internal.h"

static const struct feed_effect *effects;
static size_t count;

/* Not by step(), which does not forgive. */
static void bare(struct feed_event ev)
{
    feed_step(core, now_ms, &ev, &effects, &count);
}

static size_t number_of(enum feed_effect_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += (size_t)(effects[i].type == type);
    return n;
}

static void recovers(const char *move, size_t ended)
{
    bare((struct feed_event){.type = FEED_EV_TICK});
    assert_non_null(strstr(feed_core_bug(core), move));
    assert_int_equal(number_of(FEED_FX_SEND), ended);
    assert_int_equal(number_of(FEED_FX_LOAD), 1);
    assert_int_equal(feed_core_phase(core), FEED_LOAD_WAIT);
    assert_int_equal(feed_core_sessions(core), 0);
    assert_non_null(feed_core_check(core));

    uint64_t load = 0;
    for (size_t i = 0; i < count; i++)
        if (effects[i].type == FEED_FX_LOAD)
            load = effects[i].copy;
    bare((struct feed_event){.type = FEED_EV_LOADED, .loaded = {.load = load, .last = 4}});
    assert_null(feed_core_bug(core));
    assert_int_equal(feed_core_phase(core), FEED_FREE);
    bare((struct feed_event){.type = FEED_EV_OPEN, .session = 9});
    bare((struct feed_event){.type = FEED_EV_HEADER, .session = 9, .header = {.number = 5}});
    assert_int_equal(number_of(FEED_FX_BEGIN), 1);
    assert_null(feed_core_bug(core));
}

static void of_the_phase(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    feed__phase(core, FEED_STORE_WAIT);
    recovers("FREE -> STORE_WAIT", 2);
    core_done();
}

/* The winner is ended, and its copy dropped; the answer about it comes late. */
static void of_a_session(void **state)
{
    (void)state;
    core_at(NULL, 4);
    open_sessions(2);
    send_batch(1, 5);
    feed__session(core, feed__row(core, 1), FEED_PASSED);
    recovers("WAIT -> PASSED", 2);
    bare((struct feed_event){.type = FEED_EV_VERIFIED, .verified = {.copy = 1, .valid = true}});
    assert_null(feed_core_bug(core));
    core_done();
}

/* One that has ended begins again: the count of open sessions stays right. */
static void of_a_session_that_has_ended(void **state)
{
    (void)state;
    core_at(&(struct feed_config){.sessions_max = 2}, 4);
    open_sessions(2);
    assert_non_null(strstr(client_closes(1), "1:end SUCCESS"));
    feed__session(core, feed__row(core, 1), FEED_NEW);
    recovers("ENDED -> NEW", 2);
    core_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_phase),
        cmocka_unit_test(of_a_session),
        cmocka_unit_test(of_a_session_that_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
