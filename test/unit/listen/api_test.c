/* libtxrelay-listen through its public header alone, on a real Postgres: several subscriptions in
 * one context, made and ended from callbacks, positions, and ends in the middle of things. */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "store/migrate.h"
#include "txrelay/listen.h"

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static struct fx_pg pg;

struct ear {
    struct txrelay *t;
    struct txrelay_subscription *s;
    int lives, stales, news, ends;
    int64_t last_id, position;
    char code[40], error[300], outcome[24];
    bool leaves, doubles; /* at the first status: ends itself; makes another one */
    struct ear *other;
};

static void listen_on(struct ear *e, struct txrelay *t, struct txrelay_options o);

static void on_event(void *arg, const struct txrelay_event *ev)
{
    struct ear *e = arg;
    assert_non_null(ev->account);
    assert_non_null(ev->error);
    assert_true(ev->position >= e->position);
    e->position = ev->position;
    e->lives += ev->kind == TXRELAY_LIVE;
    e->stales += ev->kind == TXRELAY_STALE;
    e->news += ev->kind == TXRELAY_NEW;
    e->ends += ev->kind == TXRELAY_FINISHED;
    if (ev->kind == TXRELAY_STALE) {
        snprintf(e->code, sizeof(e->code), "%s", ev->code);
        snprintf(e->error, sizeof(e->error), "%s", ev->error);
        return;
    }
    if (ev->kind == TXRELAY_LIVE)
        return;
    e->last_id = ev->id;
    assert_string_equal(ev->account, "alice");
    assert_int_equal(ev->account_id_len, 32);
    assert_int_equal(ev->account_id[0], 0xa1);
    assert_string_equal(ev->traceparent, ev->id % 2 ? "" : TRACE);
    snprintf(e->outcome, sizeof(e->outcome), "%s", ev->outcome);
    if (e->doubles)
        listen_on(e->other, e->t, (struct txrelay_options){0});
    e->doubles = false;
    if (e->leaves)
        txrelay_unsubscribe(e->s);
}

static void listen_on(struct ear *e, struct txrelay *t, struct txrelay_options o)
{
    o.callback = on_event;
    o.arg = e;
    e->t = t;
    e->s = txrelay_subscribe(t, &o);
    assert_non_null(e->s);
}

/* One turn of the program's own loop; at most so many in a minute. */
#define RUN_UNTIL(t, cond)                                                                         \
    do {                                                                                           \
        for (int turns = 0; !(cond); turns++) {                                                    \
            if (turns > 600)                                                                       \
                fail_msg("%s:%d: not in time: %s", __FILE__, __LINE__, #cond);                     \
            assert_int_equal(txrelay_run(t, 100), 0);                                              \
        }                                                                                          \
    } while (0)

static void sql(const char *text)
{
    free(fx_pg_sql(&pg, text));
}

/* Every second one has a trace context. */
static void enqueue(void)
{
    static int count;
    sql(++count % 2 ? "SELECT txrelay.enqueue('alice', '\\x00')"
                    : "SELECT txrelay.enqueue('alice', '\\x00', traceparent => '" TRACE "')");
}

static void cancel_all(void)
{
    sql("SELECT txrelay.cancel(id) FROM txrelay.outbox");
}

static void subscriptions_come_and_go(void **state)
{
    (void)state;
    struct txrelay *t = txrelay_open(pg.dsn, NULL);
    struct ear all = {0}, one = {0}, leaver = {.leaves = true}, late = {0};
    struct ear doubler = {.doubles = true, .other = &late};
    assert_true(txrelay_fd(t) >= 0);
    assert_int_equal(txrelay_timeout_ms(t), -1); /* nothing is subscribed */
    listen_on(&all, t, (struct txrelay_options){0});
    listen_on(&one, t, (struct txrelay_options){.id = 2, .account = "alice"});
    listen_on(&leaver, t, (struct txrelay_options){0});
    listen_on(&doubler, t, (struct txrelay_options){0});
    RUN_UNTIL(t, all.lives && one.lives && leaver.lives && doubler.lives);
    assert_int_equal(late.lives, 0);
    for (int i = 0; i < 3; i++)
        enqueue();
    cancel_all();
    RUN_UNTIL(t, all.ends == 3 && one.ends == 1 && doubler.ends == 3 && late.lives);
    assert_int_equal(leaver.ends, 1);
    assert_int_equal(one.last_id, 2);
    assert_string_equal(all.outcome, "cancelled");
    assert_true(all.position > 0);

    /* Whoever goes on from a position is told what it missed. */
    int64_t position = all.position;
    txrelay_unsubscribe(all.s);
    enqueue();
    cancel_all();
    struct ear again = {0};
    listen_on(&again, t, (struct txrelay_options){.since = position});
    RUN_UNTIL(t, again.lives);
    assert_int_equal(again.last_id, 4);
    assert_int_equal(all.ends, 3);
    txrelay_close(t);
}

static void refuses_what_it_cannot_do(void **state)
{
    (void)state;
    struct txrelay *t = txrelay_open(pg.dsn, "api test");
    static const struct txrelay_options bad[] = {
        {0}, {.callback = on_event, .id = -1}, {.callback = on_event, .since = -1}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        errno = 0;
        assert_null(txrelay_subscribe(t, &bad[i]));
        assert_int_equal(errno, EINVAL);
    }
    assert_int_equal(txrelay_run(t, 0), 0);
    txrelay_close(t);
    txrelay_close(NULL);
}

/* Everything that is wrong is told, again and again, and the end comes at any time. */
static void tells_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *dsn, *code;
    } wrong[] = {{"host=/nowhere/at/all", "DB_UNAVAILABLE"},
                 {"port=x", NULL},
                 {"host=127.0.0.1 port=1", "DB_UNAVAILABLE"}};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct txrelay *t = txrelay_open(wrong[i].dsn, NULL);
        struct ear e = {0};
        listen_on(&e, t, (struct txrelay_options){.stale_ms = 50});
        RUN_UNTIL(t, e.stales >= 3);
        assert_true(e.error[0]);
        if (wrong[i].code)
            assert_string_equal(e.code, wrong[i].code);
        txrelay_close(t);
    }
    struct txrelay *t =
        txrelay_open(pg.dsn, NULL); /* closed before anything ran, and while it connects */
    struct ear e = {0};
    listen_on(&e, t, (struct txrelay_options){0});
    txrelay_close(t);
    t = txrelay_open(pg.dsn, NULL);
    listen_on(&e, t, (struct txrelay_options){0});
    txrelay_process(t);
    txrelay_close(t);
    assert_int_equal(e.lives, 0);
}

struct migration {
    struct migrate m;
    bool done;
};

static void migrated(struct migrate *m)
{
    CONTAINER_OF(m, struct migration, m)->done = true;
}

static int setup(void **state)
{
    (void)state;
    log_set_level(LOG_LEVEL_ERROR);
    fx_pg_start(&pg, "");
    struct loop *loop = loop_new();
    struct migration m = {0};
    migrate_start(loop, &m.m, pg.dsn, migrated);
    WAIT_FOR(loop, m.done);
    loop_free(loop);
    sql("SELECT txrelay.relay_register('alice', decode(repeat('a1', 32), 'hex'), 'sr25519', "
        "decode(repeat('09', 32), 'hex'), 'alice-address', 7001)");
    return m.m.err.code;
}

static int teardown(void **state)
{
    (void)state;
    fx_pg_stop(&pg);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subscriptions_come_and_go),
        cmocka_unit_test(refuses_what_it_cannot_do),
        cmocka_unit_test(tells_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
