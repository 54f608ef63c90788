/* A transition of the elector that the table does not have: the relay survives it without leading
 * what it should not, and tests do not forgive it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "aborts.h"
#include "base/check.h"
#include "elector_internal.h"

static const struct elector_effect *effects;
static size_t count;

static void step(struct elector *e, uint64_t now, struct elector_event ev)
{
    elector_step(e, now, &ev, &effects, &count);
}

static bool has(enum elector_effect_type type)
{
    for (size_t i = 0; i < count; i++)
        if (effects[i].type == type)
            return true;
    return false;
}

static struct elector *locking(void)
{
    struct elector *e = elector_new(&(struct elector_config){.use_lock = true});
    elector_add(e);
    step(e, 1000, (struct elector_event){.type = ELECTOR_EV_STORE_UP});
    step(e, 1000, (struct elector_event){.type = ELECTOR_EV_LEADER_CHANGE, .change = {"", "", 1}});
    while (!has(ELECTOR_FX_LOCK))
        step(e, elector_deadline(e), (struct elector_event){.type = ELECTOR_EV_TICK});
    return e;
}

static struct elector *leading(void)
{
    struct elector *e = locking();
    step(e, 2000, (struct elector_event){.type = ELECTOR_EV_LOCK_REPLY, .lock = {.got = true}});
    step(e, 2000,
         (struct elector_event){.type = ELECTOR_EV_CLAIM_REPLY,
                                .claim = {.granted = true, .epoch = 7, .holder = "me"}});
    assert_int_equal(elector_state(e, 0), ELECTOR_LEADER);
    assert_null(elector_bug(e));
    elector_check(e);
    return e;
}

/* Its tenure ends with the step, and what it holds is given back. */
static void a_leader_gives_up(void **state)
{
    (void)state;
    static const enum elector_state states[] = {ELECTOR_LOCK_WAIT, ELECTOR_EVICT_WAIT};
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        struct elector *e = leading();
        elector__move(e, &e->accounts[0], states[i]);
        step(e, 2001, (struct elector_event){.type = ELECTOR_EV_TICK});
        assert_non_null(strstr(elector_bug(e), "LEADER -> "));
        assert_true(has(ELECTOR_FX_GATE) && has(ELECTOR_FX_DEMOTE));
        assert_false(elector_gate(e, 0, 2001));
        assert_true(ABORTS(elector_check(e)));
        step(e, 2002, (struct elector_event){.type = ELECTOR_EV_TICK});
        assert_null(elector_bug(e));
        elector_free(e);
    }
}

/* A follower that believes to lead without a claim releases what may be its own. */
static void a_follower_does_not_lead(void **state)
{
    (void)state;
    struct elector *e = locking();
    step(e, 2000, (struct elector_event){.type = ELECTOR_EV_LOCK_REPLY});
    assert_int_equal(elector_state(e, 0), ELECTOR_FOLLOWER);
    elector__move(e, &e->accounts[0], ELECTOR_LEADER);
    step(e, 2001, (struct elector_event){.type = ELECTOR_EV_TICK});
    assert_non_null(strstr(elector_bug(e), "FOLLOWER -> LEADER"));
    assert_int_equal(elector_state(e, 0), ELECTOR_FOLLOWER);
    assert_false(elector_gate(e, 0, 2001));
    elector_free(e);
}

/* Two requests are out: the answer that nobody waits for gives its lock back. */
static void a_stray_answer(void **state)
{
    (void)state;
    struct elector *e = locking();
    elector__evict(e, &e->accounts[0], 2000);
    step(e, 2000, (struct elector_event){.type = ELECTOR_EV_TICK});
    assert_non_null(strstr(elector_bug(e), "LOCK_WAIT -> EVICT_WAIT"));
    step(e, 2001, (struct elector_event){.type = ELECTOR_EV_LOCK_REPLY, .lock = {.got = true}});
    assert_true(has(ELECTOR_FX_UNLOCK));
    assert_int_equal(elector_state(e, 0), ELECTOR_EVICT_WAIT);
    step(e, 2002, (struct elector_event){.type = ELECTOR_EV_EVICT_REPLY});
    assert_int_equal(elector_state(e, 0), ELECTOR_FOLLOWER);
    elector_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_gives_up),
        cmocka_unit_test(a_follower_does_not_lead),
        cmocka_unit_test(a_stray_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
