/* What only Postgres can show: two relays, lost sessions, unknown outcomes, the doorbell, the
 * schema's version. */
#include "base/alloc.h"
#include "schema/schema.h"
#include "store_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fx_pg pg;

static int suite_setup(void **state)
{
    (void)state;
    fx_pg_start(&pg, "");
    fx_migrate(pg.dsn);
    free(fx_pg_sql(
        &pg, "CREATE ROLE relay LOGIN IN ROLE txrelay_relay; CREATE ROLE nobody_special LOGIN"));
    return 0;
}

static int suite_teardown(void **state)
{
    (void)state;
    fx_pg_stop(&pg);
    return 0;
}

static char *sql(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *sql(const char *fmt, ...)
{
    static char out[256];
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    char *got = fx_pg_sql(&pg, text);
    snprintf(out, sizeof(out), "%s", got);
    free(got);
    return out;
}

static char *dsn_of(const char *user, const char *dbname)
{
    static char out[4][300];
    static int n;
    char *text = out[n++ % 4];
    snprintf(text, 300, "host=%s port=5432 user=%s dbname=%s", pg.dir, user, dbname);
    return text;
}

static void open_named(struct fx_store *x, struct loop *l, const char *name)
{
    struct store_pg_config config = {
        .control_dsn = dsn_of("relay", "postgres"), .use_lock = true, .application_name = name};
    fx_store_pg(x, l, &config);
    fx_store_up(x);
}

static void end(struct fx_store *x)
{
    struct loop *l = x->l;
    fx_store_close(x);
    loop_free(l);
}

static const char *locks_held(int64_t key)
{
    return sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND "
               "(classid::bigint << 32 | objid::bigint) = %lld",
               (long long)key);
}

/* ---- locks ---- */

static bool try_lock(struct fx_store *x, int64_t key)
{
    struct store_lock r = {.lock_key = key};
    RUN_OK(x, lock, &r);
    return r.got;
}

/* One of two relays has the lock; when its session ends the other one gets it. Taken thrice it is
 * dropped by one. */
static void test_two_relays(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct fx_store one, two;
    open_named(&one, l, "one");
    open_named(&two, l, "two");
    assert_true(try_lock(&one, -77));
    assert_true(try_lock(&one, -77));
    assert_true(try_lock(&one, -77));
    assert_false(try_lock(&two, -77));
    assert_string_equal(locks_held(-77), "1");
    struct store_lock drop = {.lock_key = -77};
    RUN_OK(&one, unlock, &drop);
    assert_string_equal(locks_held(-77), "0");
    assert_true(try_lock(&one, -77));
    fx_store_close(&one);
    WAIT_FOR(l, try_lock(&two, -77));
    end(&two);
}

static size_t answers;

static void on_counted(struct store_req *req)
{
    (void)req;
    answers++;
}

/* More than fit into one statement, and each learns whether it got its own. */
static void test_many_locks_at_once(void **state)
{
    (void)state;
    enum { MANY = 1203, BASE = 1000000 };
    struct loop *l = loop_new();
    struct fx_store one, two;
    open_named(&one, l, "one");
    open_named(&two, l, "two");
    for (int i = 0; i < MANY; i += 100)
        assert_true(try_lock(&two, BASE + i));
    struct store_lock *r = xcalloc(MANY, sizeof(*r));
    for (int turn = 0; turn < 2; turn++) {
        answers = 0;
        for (int i = 0; i < MANY; i++) {
            r[i] = (struct store_lock){.lock_key = BASE + i};
            store_lock_start(one.s, &r[i], on_counted);
        }
        WAIT_FOR(l, answers == MANY);
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(r[i].req.err.code, 0);
            assert_int_equal(r[i].got, i % 100 != 0);
        }
        answers = 0;
        for (int i = 0; i < MANY; i++)
            store_unlock_start(one.s, &r[i], on_counted);
        WAIT_FOR(l, answers == MANY);
        assert_string_equal(locks_held(BASE + 1), "0");
        assert_string_equal(locks_held(BASE + 100), "1");
    }
    for (int i = 0; i < MANY;
         i++) /* the store closes with some at the server, and some that wait */
        store_lock_start(one.s, &r[i], on_counted);
    answers = 0;
    fx_store_close(&one);
    assert_int_equal(answers, MANY);
    free(r);
    end(&two);
}

/* They go together, and what is wrong with one is that one's: the others are granted. */
static void test_many_claims_at_once(void **state)
{
    (void)state;
    enum { MANY = 130, WRONG = 40 };
    struct loop *l = loop_new();
    struct fx_store one, two;
    struct fx_account *a = xcalloc(MANY, sizeof(*a));
    struct store_claim *r = xcalloc(MANY, sizeof(*r));
    open_named(&one, l, "one");
    open_named(&two, l, "two");
    for (int i = 0; i < MANY; i++) {
        fx_account_new(&one, &a[i]);
        assert_true(try_lock(i == WRONG ? &two : &one, a[i].lock_key));
    }
    answers = 0;
    for (int i = 0; i < MANY; i++) {
        r[i] = (struct store_claim){.account = a[i].account,
                                    .holder = "one",
                                    .address = "host:1",
                                    .have_lock = i % 50 != 3, /* asks for itself */
                                    .expiry_1_ms = 60000,
                                    .expiry_2_ms = 60000};
        store_claim_start(one.s, &r[i], on_counted);
    }
    WAIT_FOR(l, answers == MANY);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(r[i].req.err.code, i == WRONG ? ERR_ARGUMENT : 0);
        if (i == WRONG) {
            assert_non_null(strstr(r[i].req.err.text, a[i].alias));
            continue;
        }
        assert_true(r[i].granted);
        assert_int_equal(r[i].lock_held, r[i].have_lock);
        assert_string_equal(r[i].current_holder, "one");
        assert_string_equal(r[i].current_address, "host:1");
        store_req_done(&r[i].req);
    }
    assert_string_equal(sql("SELECT count(*) FROM txrelay.leadership WHERE holder = 'one' "
                            "AND epoch = 1 AND subject BETWEEN %d AND %d AND subject <> %d",
                            a[0].account, a[MANY - 1].account, a[WRONG].account),
                        "129");
    free(a);
    free(r);
    fx_store_close(&one);
    end(&two);
}

/* A hung holder's session is ended once its claim has expired: it hears of it, and the other one
 * can lead. */
static void test_evict(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct fx_store one, two;
    struct fx_account a;
    open_named(&one, l, "one");
    open_named(&two, l, "two");
    fx_account_new(&one, &a);
    fx_account_claim(&one, &a, "one");
    struct store_evict evict = {.lock_key = a.lock_key};
    RUN_OK(&two, evict, &evict);
    assert_false(evict.terminated); /* healthy */
    assert_string_equal(evict.current_holder, "one");
    store_req_done(&evict.req);
    sql("UPDATE txrelay.relay_leases SET expiry_1 = heartbeat, expiry_2 = heartbeat "
        "WHERE holder = 'one'");
    assert_false(try_lock(&two, a.lock_key));
    RUN_OK(&two, evict, &evict);
    assert_true(evict.terminated);
    store_req_done(&evict.req);
    WAIT_FOR(l, one.control_lost == 1);
    WAIT_FOR(l, try_lock(&two, a.lock_key));
    struct store_claim claim = {.account = a.account,
                                .holder = "two",
                                .have_lock = true,
                                .expiry_1_ms = 60000,
                                .expiry_2_ms = 60000};
    RUN_OK(&two, claim, &claim);
    assert_true(claim.granted);
    assert_int_equal(claim.epoch, a.epoch + 1);
    store_req_done(&claim.req);
    WAIT_FOR(l, one.ups == 2);
    assert_false(try_lock(&one, a.lock_key));
    fx_store_close(&one);
    end(&two);
}

/* A lost control session takes every lock along: nothing is renewed until the lock is taken
 * again. */
static void test_control_lost(void **state)
{
    (void)state;
    struct fx_store x;
    struct fx_account a;
    open_named(&x, loop_new(), "lost");
    fx_account_new(&x, &a);
    fx_account_claim(&x, &a, "me");
    bool renewed = false;
    struct store_renew renew = {.holder = "me",
                                .count = 1,
                                .accounts = &a.account,
                                .epochs = &a.epoch,
                                .lock_keys = &a.lock_key,
                                .expiry_1_ms = 60000,
                                .expiry_2_ms = 60000,
                                .renewed = &renewed};
    RUN_OK(&x, renew, &renew);
    assert_true(renewed);
    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lost "
        "control'");
    WAIT_FOR(x.l, x.downs == 1);
    assert_int_equal(x.control_lost, 1);
    RUN(&x, renew, &renew);
    assert_int_equal(renew.req.err.code, ERR_DB_UNAVAILABLE);
    WAIT_FOR(x.l, x.ups == 2);
    RUN_OK(&x, renew, &renew);
    assert_false(renewed);
    assert_string_equal(locks_held(a.lock_key), "0");
    assert_true(try_lock(&x, a.lock_key));
    RUN_OK(&x, renew, &renew);
    assert_true(renewed);
    assert_string_equal(locks_held(a.lock_key), "1");
    /* The work session alone: the locks stay. */
    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lost "
        "work'");
    WAIT_FOR(x.l, x.ups == 3);
    assert_int_equal(x.control_lost, 1);
    RUN_OK(&x, renew, &renew);
    assert_true(renewed);
    end(&x);
}

/* A control session that gives no answer is given up in the time that was set, and a new one takes
 * its place. */
static void test_control_silent(void **state)
{
    (void)state;
    struct fx_store x;
    struct loop *l = loop_new();
    struct store_pg_config config = {.control_dsn = dsn_of("relay", "postgres"),
                                     .use_lock = true,
                                     .application_name = "silent",
                                     .control_answer_ms = 1000};
    fx_store_pg(&x, l, &config);
    fx_store_up(&x);
    assert_true(try_lock(&x, -78));
    char pid[16];
    snprintf(pid, sizeof(pid), "%s",
             sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'silent control'"));
    free(fx_shell("kill -STOP %s", pid));
    struct store_lock drop = {.lock_key = -78};
    uint64_t asked = loop_now_ms(l);
    RUN(&x, unlock, &drop);
    assert_int_equal(drop.req.err.code, ERR_DB_UNKNOWN_OUTCOME);
    assert_true(loop_now_ms(l) - asked >= 1000);
    WAIT_FOR(l, x.control_lost == 1 && x.ups == 2);
    free(fx_shell("kill -CONT %s", pid));
    WAIT_FOR(l, try_lock(&x, -78));
    end(&x);
}

/* Without locks claims work by expiry alone, and nobody sleeps behind a doorbell. */
static void test_no_lock(void **state)
{
    (void)state;
    struct fx_store x;
    struct fx_account a;
    struct store_pg_config config = {.control_dsn = dsn_of("relay", "postgres")};
    fx_store_pg(&x, loop_new(), &config);
    fx_store_up(&x);
    fx_account_new(&x, &a);
    assert_false(try_lock(&x, a.lock_key));
    struct store_doorbell bell = {.account = a.account};
    RUN_OK(&x, doorbell_arm, &bell);
    assert_false(bell.armed);
    struct store_claim claim = {
        .account = a.account, .holder = "me", .expiry_1_ms = 60000, .expiry_2_ms = 60000};
    RUN_OK(&x, claim, &claim);
    assert_true(claim.granted);
    bool renewed = false;
    struct store_renew renew = {.holder = "me",
                                .count = 1,
                                .accounts = &a.account,
                                .epochs = &claim.epoch,
                                .lock_keys = &a.lock_key,
                                .expiry_1_ms = 60000,
                                .expiry_2_ms = 60000,
                                .renewed = &renewed};
    RUN_OK(&x, renew, &renew);
    assert_true(renewed);
    store_req_done(&claim.req);
    end(&x);
}

/* ---- an application beside the relay ---- */

struct app {
    struct conn *c;
    bool up, closed;
    int wakes;
};

static void app_up(void *arg)
{
    ((struct app *)arg)->up = true;
}
static void app_closed(void *arg)
{
    ((struct app *)arg)->closed = true;
}
static void app_notify(void *arg, const char *channel, const char *payload, int pid)
{
    (void)payload;
    (void)pid;
    assert_string_equal(channel, "outbox_wake");
    ((struct app *)arg)->wakes++;
}

static void app_open(struct app *app, struct loop *l)
{
    const char *setup[] = {"LISTEN outbox_wake", NULL};
    *app = (struct app){0};
    app->c = conn_new(l, &(struct conn_config){.dsn = pg.dsn,
                                               .plain = true,
                                               .setup = setup,
                                               .on_up = app_up,
                                               .on_notify = app_notify,
                                               .arg = app});
    conn_open(app->c);
    WAIT_FOR(l, app->up);
}

static void app_sql(struct app *app, struct loop *l, const char *text)
{
    struct fx_query q = {0};
    fx_query(app->c, &q, NULL, text);
    WAIT_FOR(l, q.done);
    if (q.q.err.code)
        fail_msg("%s: %s", text, q.q.err.text);
}

static void app_close(struct app *app, struct loop *l)
{
    conn_close(app->c, app_closed, app);
    WAIT_FOR(l, app->closed);
}

/* The leader cannot fall asleep while a transaction that enqueued is open; once asleep an enqueue
 * rings. */
static void test_doorbell_rings(void **state)
{
    (void)state;
    struct fx_store x;
    struct fx_account a;
    struct app app;
    char enqueue[200];
    open_named(&x, loop_new(), "bell");
    fx_account_new(&x, &a);
    fx_account_claim(&x, &a, "me");
    app_open(&app, x.l);
    snprintf(enqueue, sizeof(enqueue), "SELECT txrelay.enqueue('%s', '\\x0102')", a.alias);
    struct store_doorbell bell = {.account = a.account};
    app_sql(&app, x.l, "BEGIN");
    app_sql(&app, x.l, enqueue);
    RUN_OK(&x, doorbell_arm, &bell);
    assert_false(bell.armed);
    app_sql(&app, x.l, "COMMIT");
    RUN_OK(&x, doorbell_arm, &bell);
    assert_true(bell.armed);
    assert_int_equal(app.wakes, 0);
    app_sql(&app, x.l, enqueue);
    WAIT_FOR(x.l, app.wakes == 1);
    RUN_OK(&x, doorbell_disarm, &bell);
    app_sql(&app, x.l, enqueue);
    RUN_OK(&x, doorbell_arm, &bell);
    assert_true(bell.armed);
    assert_int_equal(app.wakes, 1);
    app_close(&app, x.l);
    end(&x);
}

/* A write that was sent when the session was lost has an unknown outcome; one behind it too; reads
 * as well. */
static struct store_req *answered[4];
static size_t answered_count;
static void on_answered(struct store_req *req)
{
    answered[answered_count++] = req;
}

static void test_unknown_outcome(void **state)
{
    (void)state;
    struct fx_store x;
    struct fx_account a;
    struct app app;
    char text[200];
    open_named(&x, loop_new(), "unknown");
    fx_account_new(&x, &a);
    fx_account_claim(&x, &a, "me");
    fx_admit(&x, &a, 0, 1);
    app_open(&app, x.l);
    snprintf(text, sizeof(text),
             "BEGIN; SELECT FROM txrelay.leadership WHERE subject = %d FOR UPDATE", a.account);
    app_sql(&app, x.l, text);
    struct tx_report row = {.nonce = 0, .state = "ready", .block_number = -1};
    fx_hash(row.hash, 0);
    struct store_states first = {.account = a.account, .epoch = a.epoch, .count = 1, .rows = &row},
                        second = first;
    answered_count = 0;
    store_state_start(x.s, &first, on_answered);
    store_state_start(x.s, &second, on_answered);
    WAIT_FOR(x.l, !strcmp(sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
                              "application_name = 'unknown work' AND wait_event_type = 'Lock'"),
                          "1"));
    WAIT_FOR(x.l, answered_count == 2);
    assert_int_equal(first.req.err.code, ERR_DB_UNKNOWN_OUTCOME);
    assert_int_equal(second.req.err.code, ERR_DB_UNKNOWN_OUTCOME);
    app_sql(&app, x.l, "COMMIT");
    WAIT_FOR(x.l, x.ups == 2);
    struct store_snapshot snap = {
        .account = a.account, .epoch = a.epoch, .after_nonce = -1, .limit = 10};
    RUN_OK(&x, snapshot, &snap);
    assert_int_equal(snap.count, 1);
    assert_string_equal(snap.rows[0].state, "signed"); /* read again, it is known */
    store_req_done(&snap.req);
    app_close(&app, x.l);
    end(&x);
}

/* ---- after a failover that lost commits ---- */

/* The row as a promoted standby has it: claimed on the timeline before, with the last renewal that
 * it kept. */
static void test_adopt(void **state)
{
    (void)state;
    static uint8_t extrinsic[] = {0x84, 1, 2, 3, 5, 6, 7}, other[] = {0x84, 9, 9};
    struct fx_store x;
    struct fx_account a;
    open_named(&x, loop_new(), "adopt");
    fx_account_new(&x, &a);
    fx_account_claim(&x, &a, "me");
    bool renewed = false;
    struct store_renew renew = {.holder = "me",
                                .count = 1,
                                .accounts = &a.account,
                                .epochs = &a.epoch,
                                .lock_keys = &a.lock_key,
                                .expiry_1_ms = 60000,
                                .expiry_2_ms = 60000,
                                .block = 40,
                                .renewed = &renewed};
    RUN_OK(&x, renew, &renew);
    assert_true(renewed);
    struct store_enqueue enqueue = {.account = a.alias, .call = {extrinsic + 4, 3}};
    RUN_OK(&x, enqueue, &enqueue);
    sql("UPDATE txrelay.leadership SET timeline = timeline - 1 WHERE subject = %d", a.account);
    renew.block = -1;
    RUN_OK(&x, renew, &renew);
    assert_false(renewed);
    struct store_snapshot snap = {
        .account = a.account, .epoch = a.epoch, .after_nonce = -1, .limit = 10};
    RUN(&x, snapshot, &snap);
    assert_int_equal(snap.req.err.code, ERR_LOST_LEADERSHIP);
    store_req_done(&snap.req);
    fx_account_claim(&x, &a, "me");
    snap = (struct store_snapshot){
        .account = a.account, .epoch = a.epoch, .after_nonce = -1, .limit = 10};
    RUN_OK(&x, snapshot, &snap);
    assert_int_equal(snap.seen_block, 40);
    assert_int_equal(snap.reconcile_from, 40);
    store_req_done(&snap.req);
    struct tx_found rows[] = {{.nonce = 7,
                               .bytes = extrinsic,
                               .bytes_len = sizeof(extrinsic),
                               .call_len = 3,
                               .tip = 12,
                               .era_birth = 64,
                               .era_death = 128,
                               .time_ms = -1},
                              {.nonce = 8,
                               .bytes = other,
                               .bytes_len = sizeof(other),
                               .call_len = 2,
                               .era_birth = -1,
                               .era_death = -1,
                               .time_ms = 1000}};
    for (int i = 0; i < 2; i++)
        fx_hash(rows[i].hash, 7 + i);
    struct store_adopt adopt = {.account = a.account,
                                .epoch = a.epoch,
                                .spec_version = 100,
                                .transaction_version = 1,
                                .block = 40,
                                .done = true,
                                .read = 60 + 4095,
                                .count = 2,
                                .rows = rows};
    struct store_heard heard = {.account = a.account, .epoch = a.epoch, .heard = 60};
    RUN_OK(&x, heard, &heard);
    assert_int_equal(heard.until, 60 + 4096);
    RUN_OK(&x, snapshot, &snap);
    assert_int_equal(snap.lost_until, 60 + 4096);
    assert_true(snap.lost_since_ms > 0);
    assert_true(snap.era_immortal);
    store_req_done(&snap.req);
    RUN(&x, adopt, &adopt);
    assert_int_equal(adopt.req.err.code, ERR_BUG); /* a block is left */
    adopt.read++;
    RUN_OK(&x, adopt, &adopt);
    assert_int_equal(adopt.adopted, 1); /* a retry of it may be found next */
    RUN_OK(&x, adopt, &adopt);
    assert_int_equal(adopt.adopted, 0);
    RUN_OK(&x, snapshot, &snap);
    assert_int_equal(snap.reconcile_from, -1);
    assert_int_equal(snap.count, 1);
    assert_int_equal(snap.next_nonce, 8);
    assert_int_equal(snap.rows[0].nonce, 7);
    assert_int_equal(snap.rows[0].id, enqueue.id);
    assert_int_equal(snap.rows[0].era_death, 128);
    assert_int_equal(snap.rows[0].submitted_block, 64); /* no block below its era holds it */
    assert_true(snap.rows[0].tip == 12);
    store_req_done(&snap.req);
    end(&x);
}

/* ---- policy ---- */

/* What an operator sets comes with the next look and the next load; amounts keep all of their
 * digits. */
static void test_policy_facts(void **state)
{
    (void)state;
    struct fx_store x;
    struct fx_account a;
    open_named(&x, loop_new(), "policy");
    fx_account_new(&x, &a);
    fx_account_claim(&x, &a, "me");
    sql("SELECT txrelay.account_policy('%s', jsonb_build_object('tip_start', 5, 'tip_step', '7', "
        "'tip_step_percent', 20, 'tip_cap', '340282366920938463463374607431768211455', "
        "'tip_after_blocks', 11, 'skip_after_blocks', 99, 'low_balance', '12345678901234567890', "
        "'usurped', 'requeue'))",
        a.alias);
    struct store_poll_requests look = {.account = a.account, .epoch = a.epoch};
    struct store_snapshot snap = {
        .account = a.account, .epoch = a.epoch, .after_nonce = -1, .limit = 10};
    RUN_OK(&x, poll_requests, &look);
    RUN_OK(&x, snapshot, &snap);
    assert_int_equal(snap.count, 0);
    const struct store_account *both[] = {&look.facts, &snap.facts};
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        assert_string_equal(both[i]->tip_start, "5");
        assert_string_equal(both[i]->tip_step, "7");
        assert_int_equal(both[i]->tip_step_percent, 20);
        assert_string_equal(both[i]->tip_cap, "340282366920938463463374607431768211455");
        assert_int_equal(both[i]->tip_after_blocks, 11);
        assert_int_equal(both[i]->skip_after_blocks, 99);
        assert_string_equal(both[i]->low_balance, "12345678901234567890");
        assert_true(both[i]->requeue_usurped);
        assert_string_equal(both[i]->suspension, "");
        assert_false(both[i]->paused);
    }
    store_req_done(&look.req);
    store_req_done(&snap.req);
    sql("SELECT txrelay.account_pause('%s', 'lunch')", a.alias); /* an operator's: no hold */
    RUN_OK(&x, poll_requests, &look);
    assert_true(look.facts.paused);
    assert_string_equal(look.facts.suspension, "");
    store_req_done(&look.req);
    struct store_pause suspension = {.account = a.account,
                                     .epoch = a.epoch,
                                     .suspension = "reaped",
                                     .reason = "its nonce went back"};
    RUN_OK(&x, pause, &suspension);
    suspension.suspension = NULL;
    RUN_OK(&x, pause, &suspension); /* never ends the operator's */
    RUN_OK(&x, poll_requests, &look);
    assert_true(look.facts.paused);
    assert_string_equal(look.facts.suspension, "");
    store_req_done(&look.req);
    end(&x);
}

/* A bump's next step is the policy's. */
static void test_bump_by_policy(void **state)
{
    (void)state;
    struct fx_store x;
    struct fx_account a;
    open_named(&x, loop_new(), "bump");
    fx_account_new(&x, &a);
    fx_account_claim(&x, &a, "me");
    sql("SELECT txrelay.account_policy('%s', jsonb_build_object('tip_start', 100, 'tip_step', 7, "
        "'tip_step_percent', 20, 'tip_cap', 125))",
        a.alias);
    struct store_ask ask = {.id = fx_enqueue(&x, &a, "call", 0)};
    RUN_OK(&x, bump, &ask);
    assert_string_equal(ask.answer, "queued");
    store_req_done(&ask.req);
    struct store_outbox box = {.account = a.account, .epoch = a.epoch, .limit = 1};
    RUN_OK(&x, outbox, &box);
    assert_string_equal(box.rows[0].tip, "120");
    store_req_done(&box.req);
    ask.tip = "126";
    RUN(&x, bump, &ask);
    assert_int_equal(ask.req.err.code, ERR_ARGUMENT);
    assert_non_null(strstr(ask.req.err.text, "tip_cap"));
    assert_non_null(strstr(ask.req.err.text, "125"));
    store_req_done(&ask.req);
    end(&x);
}

/* With synchronous_commit off a crash of the server would lose what was submitted already. */
static void test_commits_wait_for_the_disk(void **state)
{
    (void)state;
    struct fx_store x;
    struct fx_account a;
    char *database = xstrdup(sql("SELECT current_database()"));
    sql("CREATE TABLE public.commits (setting text); CREATE FUNCTION public.note() RETURNS trigger "
        "LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN INSERT INTO public.commits VALUES "
        "(current_setting(''synchronous_commit'')); RETURN NULL; END'; "
        "CREATE TRIGGER note AFTER UPDATE ON txrelay.leadership EXECUTE FUNCTION public.note(); "
        "CREATE TRIGGER note AFTER INSERT ON txrelay.pending_transactions EXECUTE FUNCTION "
        "public.note()");
    static const char *const settings[][2] = {
        {"off", "ontrue"}, {"local", "localtrue"}, {"remote_apply", "remote_applytrue"}};
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        sql("ALTER DATABASE %s SET synchronous_commit = %s", database, settings[i][0]);
        open_named(&x, loop_new(), "commits");
        fx_account_new(&x, &a);
        fx_account_claim(&x, &a, "me");
        fx_admit(&x, &a, 0, 1);
        assert_string_equal(sql("SELECT string_agg(DISTINCT setting, ' ') || (count(*) >= 2) FROM "
                                "public.commits"),
                            settings[i][1]);
        sql("TRUNCATE public.commits");
        end(&x);
    }
    sql("ALTER DATABASE %s RESET synchronous_commit; DROP FUNCTION public.note CASCADE; DROP "
        "TABLE public.commits",
        database);
    free(database);
}

/* A role's search_path puts another function in front of one that a statement uses. */
static void test_search_path_of_the_role(void **state)
{
    (void)state;
    struct fx_store x;
    struct fx_account a;
    char *database = xstrdup(sql("SELECT current_database()"));
    sql("CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO PUBLIC; CREATE FUNCTION "
        "evil.to_timestamp(double precision) RETURNS "
        "timestamptz LANGUAGE plpgsql AS 'BEGIN RAISE ''hijacked''; END'; ALTER DATABASE %s SET "
        "search_path = evil, pg_catalog",
        database);
    open_named(&x, loop_new(), "path");
    fx_account_new(&x, &a);
    assert_true(fx_enqueue(&x, &a, "call", 0) > 0);
    end(&x);
    sql("ALTER DATABASE %s RESET search_path; DROP SCHEMA evil CASCADE", database);
    free(database);
}

/* A batch of thousands of rows with a megabyte of bytes is one statement. */
static void test_big_batch(void **state)
{
    (void)state;
    enum { N = 3000 };
    struct fx_store x;
    struct fx_account a;
    open_named(&x, loop_new(), "big");
    fx_account_new(&x, &a);
    fx_account_claim(&x, &a, "me");
    sql("SELECT txrelay.enqueue_many('%s', array_agg(decode(repeat('ab', 300), 'hex'))) FROM "
        "generate_series(1, %d)",
        a.alias, N);
    struct store_outbox box = {.account = a.account, .epoch = a.epoch, .limit = N};
    RUN_OK(&x, outbox, &box);
    assert_int_equal(box.count, N);
    struct store_attempt_row *rows = xcalloc(N, sizeof(*rows));
    uint8_t bytes[400] = {1};
    for (int i = 0; i < N; i++) {
        rows[i] = (struct store_attempt_row){.id = box.rows[i].id,
                                             .nonce = i,
                                             .extrinsic = {bytes, sizeof(bytes)},
                                             .era_birth = -1,
                                             .era_death = -1};
        fx_hash(rows[i].hash, i);
    }
    struct store_attempts r = {
        .account = a.account, .epoch = a.epoch, .block = 1, .count = N, .rows = rows};
    RUN_OK(&x, admit, &r);
    assert_int_equal(r.next_nonce, N);
    store_req_done(&box.req);
    struct store_snapshot snap = {
        .account = a.account, .epoch = a.epoch, .after_nonce = -1, .limit = N + 1};
    RUN_OK(&x, snapshot, &snap);
    assert_int_equal(snap.count, N);
    assert_memory_equal(snap.rows[N - 1].hash, rows[N - 1].hash, 32);
    assert_int_equal(snap.rows[N - 1].bytes_len, sizeof(bytes));
    store_req_done(&snap.req);
    free(rows);
    end(&x);
}

/* ---- schema ---- */

static void expect_down(struct fx_store *x, int code, const char *word)
{
    WAIT_FOR(x->l, x->downs && strstr(x->down_err.text, word));
    assert_int_equal(x->down_err.code, code);
    assert_int_equal(x->ups, 0);
    assert_int_equal(store_state(x->s), STORE_DOWN);
}

/* Without the schema, or with another one, the store is down and says what differs and what to do;
 * then it comes up. */
static void test_schema_version(void **state)
{
    (void)state;
    sql("CREATE DATABASE fresh");
    struct store_pg_config config = {.control_dsn = dsn_of("postgres", "fresh"), .use_lock = true};
    struct fx_store x;
    fx_store_pg(&x, loop_new(), &config);
    expect_down(&x, ERR_DB_SCHEMA, "run txrelay migrate");
    fx_migrate(dsn_of("postgres", "fresh"));
    WAIT_FOR(x.l, x.ups == 1);
    end(&x);

    sql("INSERT INTO txrelay.schema_version (version, name, checksum) VALUES (999, '0999_x.sql', "
        "'x')");
    fx_store_pg(&x, loop_new(), &config);
    WAIT_FOR(x.l, x.ups == 1); /* the other database is not concerned */
    end(&x);
    config.control_dsn = dsn_of("relay", "postgres");
    fx_store_pg(&x, loop_new(), &config);
    expect_down(&x, ERR_DB_SCHEMA, "version 999 (0999_x.sql), newer than this program's");
    sql("DELETE FROM txrelay.schema_version WHERE version = 999");
    sql("UPDATE txrelay.schema_version SET checksum = 'edited' WHERE version = 1");
    expect_down(&x, ERR_DB_SCHEMA, "0001_init.sql: the database has checksum edited, this program");
    sql("UPDATE txrelay.schema_version SET checksum = '%s' WHERE version = 1",
        schema_set()->migrations[0].checksum);
    sql("UPDATE txrelay.schema_functions SET checksum = 'older'");
    expect_down(&x, ERR_DB_SCHEMA, "have checksum older, this program's");
    sql("UPDATE txrelay.schema_functions SET checksum = '%s'", schema_set()->functions_checksum);
    sql("REVOKE EXECUTE ON FUNCTION txrelay.leader_claim FROM txrelay_relay");
    expect_down(&x, ERR_DB_SCHEMA, "changed by hand");
    sql("REVOKE USAGE ON SCHEMA txrelay FROM txrelay_relay");
    expect_down(&x, ERR_DB_DENIED, "GRANT txrelay_relay");
    fx_migrate(dsn_of("postgres", "postgres"));
    WAIT_FOR(x.l, x.ups == 1);
    end(&x);

    config.control_dsn = dsn_of("nobody_special", "postgres");
    fx_store_pg(&x, loop_new(), &config);
    expect_down(&x, ERR_DB_DENIED, "txrelay_relay");
    end(&x);

    config.control_dsn = dsn_of("postgres", "postgres");
    config.work_dsn = dsn_of("postgres", "fresh");
    fx_store_pg(&x, loop_new(), &config);
    expect_down(&x, ERR_CONFIG, "different databases");
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_relays),
        cmocka_unit_test(test_many_locks_at_once),
        cmocka_unit_test(test_many_claims_at_once),
        cmocka_unit_test(test_evict),
        cmocka_unit_test(test_control_lost),
        cmocka_unit_test(test_control_silent),
        cmocka_unit_test(test_no_lock),
        cmocka_unit_test(test_doorbell_rings),
        cmocka_unit_test(test_unknown_outcome),
        cmocka_unit_test(test_commits_wait_for_the_disk),
        cmocka_unit_test(test_search_path_of_the_role),
        cmocka_unit_test(test_big_batch),
        cmocka_unit_test(test_schema_version),
        cmocka_unit_test(test_policy_facts),
        cmocka_unit_test(test_bump_by_policy),
        cmocka_unit_test(test_adopt),
    };
    return cmocka_run_group_tests(tests, suite_setup, suite_teardown);
}
