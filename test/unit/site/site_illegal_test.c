/* A move of the sites' core that no table has: nothing that the step decided leaves, the tables are
 * read again, and tests do not forgive it. */
#include "four_sites.h"

#include "site_internal.h"

static const struct site_effect *effects;
static size_t count;

static void step(struct site_core *c, struct site_event ev)
{
    site_step(c, now_ms, &ev, &effects, &count);
}

static void tick(struct site_core *c)
{
    step(c, (struct site_event){.type = SITE_EV_TICK});
}

static void loads_again(struct site_core *c)
{
    now_ms += config.retry_ms ? config.retry_ms : 1000;
    tick(c);
    assert_int_equal(count, 1);
    assert_int_equal(effects[0].type, SITE_FX_LOAD);
    uint64_t next[SITE_MEMBERS_MAX] = {0};
    step(c, (struct site_event){.type = SITE_EV_LOADED,
                                .loaded = {.load = effects[0].batch, .next = next}});
    assert_null(site_core_bug(c));
    assert_true(c->loaded);
}

/* The step that made the move decides nothing. */
static void recovers(struct site_core *c, const char *move)
{
    tick(c);
    assert_non_null(strstr(site_core_bug(c), move));
    assert_int_equal(count, 0);
    assert_int_equal(c->state, SITE_IDLE);
    assert_true(!c->loaded && !c->txs && !c->works);
    assert_non_null(site_core_check(c));
}

static void of_the_machine(void **state)
{
    (void)state;
    begin(4);
    struct site_core *c = site[A].core;
    site__move(c, now_ms, SITE_PREPARED);
    recovers(c, "IDLE -> PREPARED");
    loads_again(c);
    done();
}

static void of_a_transaction(void **state)
{
    (void)state;
    begin(4);
    enqueue(C, 1);
    struct site_core *c = site[C].core;
    struct site_tx *t = site__tx(c, 1);
    assert_non_null(t);
    site__move_tx(c, t, SITE_TX_GRANTED);
    t->state = SITE_TX_WAITING;
    recovers(c, "-> GRANTED");
    loads_again(c);
    done();
}

/* A write is on its way: the tables are read after its answer. */
static void of_work_while_a_write_is_out(void **state)
{
    (void)state;
    begin(4);
    struct site_core *c = site[B].core;
    struct site_work *w = site__begin_work(c, A, 1, SITE_WORK_HELD);
    uint64_t batch = site__store(c, SITE_FX_STORE_FINAL, B, 0, NULL)->batch;
    site__work_state(c, w, SITE_WORK_DISPATCHED);
    c->batch_used = false;
    recovers(c, "HELD -> DISPATCHED");
    now_ms += 100000;
    tick(c);
    assert_int_equal(count, 0);
    step(c, (struct site_event){.type = SITE_EV_STORED,
                                .stored = {.batch = batch, .outcome = SITE_STORED}});
    assert_int_equal(count, 1);
    assert_int_equal(effects[0].type, SITE_FX_LOAD);
    done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_machine),
        cmocka_unit_test(of_a_transaction),
        cmocka_unit_test(of_work_while_a_write_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
