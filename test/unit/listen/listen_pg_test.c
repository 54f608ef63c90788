/* The listener on a real Postgres: what the reader was told equals the table, whatever happens to
 * the session; signals, filters, states. */
#include "fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/hex.h"
#include "base/log.h"
#include "listen/listen.h"
#include "store/migrate.h"

enum { TXS = 400, IDS_MAX = 2000, NONCES_MAX = 2000 };

static struct fx_pg pg;
static struct loop *loop;

/* ---- a reader ---- */

struct view {
    bool pending, finished;
    int64_t nonce;
    char text[160]; /* state:hash:block, or outcome */
};

struct reader {
    struct listen *l;
    struct view txs[IDS_MAX], fillers[NONCES_MAX];
    int events, scanned, lives, stales, wakes, changes;
    bool live, closed;
    int32_t woken;
    struct listen_leader change;
    char holder[80];
    int code;
    char first_error[300];
    uint64_t since_ms;
    struct listen_event last;
    char last_alias[40], last_state[40];
};

static void on_event(void *arg, const struct listen_event *ev)
{
    struct reader *r = arg;
    struct view *v = ev->id ? &r->txs[ev->id] : &r->fillers[ev->nonce];
    struct buf b = {0};
    assert_true(ev->id < IDS_MAX && ev->nonce < NONCES_MAX);
    r->events++;
    r->scanned += ev->from_scan;
    r->last = *ev;
    snprintf(r->last_alias, sizeof(r->last_alias), "%s", ev->alias);
    snprintf(r->last_state, sizeof(r->last_state), "%s", ev->state);
    assert_false(v->finished && ev->kind != LISTEN_FINISHED); /* nothing follows the end */
    assert_false(v->pending && ev->kind == LISTEN_NEW);
    assert_false(!v->pending && (ev->kind == LISTEN_UPDATE || ev->kind == LISTEN_REMOVED));
    v->pending = ev->kind == LISTEN_NEW || ev->kind == LISTEN_UPDATE;
    v->finished = ev->kind == LISTEN_FINISHED;
    v->nonce = ev->nonce;
    if (v->pending) {
        buf_printf(&b, "%s:", ev->state);
        hex_put(&b, ev->hash, 32);
        buf_puts(&b, ":");
        if (ev->has_block)
            hex_put(&b, ev->block_hash, 32);
        snprintf(v->text, sizeof(v->text), "%s", buf_str(&b));
    } else if (v->finished) {
        snprintf(v->text, sizeof(v->text), "%s", ev->outcome);
    }
    buf_done(&b);
}

static void on_state(void *arg, bool live, uint64_t since_ms, const struct err *err)
{
    struct reader *r = arg;
    assert_true(since_ms > 0);
    r->since_ms = since_ms;
    r->live = live;
    r->lives += live;
    r->stales += !live;
    r->code = err ? err->code : 0;
    if (err && !r->first_error[0])
        snprintf(r->first_error, sizeof(r->first_error), "%s", err->text);
}

static void on_wake(void *arg, int32_t account)
{
    struct reader *r = arg;
    r->wakes++;
    r->woken = account;
}

static void on_leader_change(void *arg, const struct listen_leader *change)
{
    struct reader *r = arg;
    r->changes++;
    r->change = *change;
    snprintf(r->holder, sizeof(r->holder), "%s", change->holder);
}

static struct reader *reader_open(const struct listen_config *config)
{
    struct reader *r = xcalloc(1, sizeof(*r));
    struct listen_config c = *config;
    c.dsn = pg.dsn;
    c.name = "listen-test";
    c.on_event = on_event;
    c.on_state = on_state;
    c.on_wake = on_wake;
    c.on_leader_change = on_leader_change;
    c.arg = r;
    r->l = listen_new(loop, &c);
    listen_open(r->l);
    return r;
}

static void set_true(void *arg)
{
    *(bool *)arg = true;
}

static void reader_close(struct reader *r)
{
    listen_close(r->l, set_true, &r->closed);
    assert_false(r->closed);
    WAIT_FOR(loop, r->closed);
    free(r);
}

/* What the reader was told, in the form of table_text. */
static char *view_text(const struct reader *r)
{
    struct buf b = {0};
    for (int i = 0; i < IDS_MAX; i++)
        if (r->txs[i].pending)
            buf_printf(&b, "%d@%lld=%s\n", i, (long long)r->txs[i].nonce, r->txs[i].text);
    for (int i = 0; i < NONCES_MAX; i++)
        if (r->fillers[i].pending)
            buf_printf(&b, "filler@%d=%s\n", i, r->fillers[i].text);
    for (int i = 0; i < IDS_MAX; i++)
        if (r->txs[i].finished)
            buf_printf(&b, "%d=%s\n", i, r->txs[i].text);
    for (int i = 0; i < NONCES_MAX; i++)
        if (r->fillers[i].finished)
            buf_printf(&b, "filler@%d ended %s\n", i, r->fillers[i].text);
    if (b.len)
        b.len--; /* psql's last newline is cut */
    char *text = xstrdup(buf_str(&b));
    buf_done(&b);
    return text;
}

static char *table_text(void)
{
    char *text = fx_pg_sql(
        &pg, "SELECT id || '@' || nonce || '=' || state || ':' || encode(hash, 'hex') || ':' || "
             "coalesce(encode(block_hash, 'hex'), '') FROM txrelay.pending_transactions WHERE id "
             "IS NOT NULL ORDER BY id; SELECT 'filler@' || nonce || '=' || state || ':' || "
             "encode(hash, 'hex') || ':' || coalesce(encode(block_hash, 'hex'), '') FROM "
             "txrelay.pending_transactions WHERE id "
             "IS NULL ORDER BY nonce; SELECT id || '=' || outcome FROM "
             "txrelay.finished_transactions WHERE id IS NOT NULL ORDER BY id; SELECT 'filler@' || "
             "nonce || ' ended ' || outcome FROM txrelay.finished_transactions WHERE id IS "
             "NULL AND requeued IS NULL "
             "ORDER BY nonce");
    fx_step(loop); /* psql blocked it */
    return text;
}

static void sql(const char *text)
{
    free(fx_pg_sql(&pg, text));
    fx_step(loop);
}

/* A session that stays: what psql notifies comes from one that is gone when anybody looks. */
static void session_open(struct fx_conn *f, const char *dsn)
{
    struct conn_config config;
    fx_conn_config(f, &config, dsn);
    f->c = conn_new(loop, &config);
    conn_open(f->c);
    WAIT_FOR(loop, f->ups);
}

static void session_sql(struct fx_conn *f, const char *text)
{
    struct fx_query q = {0};
    fx_query(f->c, &q, NULL, text);
    WAIT_FOR(loop, q.done);
    assert_int_equal(q.q.err.code, 0);
}

/* ---- a writer: a leader's calls, one transaction each, in a process of its own ---- */

#define LEADER "(SELECT account FROM txrelay.accounts WHERE alias = 'alice'), 1"
#define HASH   "ARRAY[decode(lpad(to_hex(%d), 64, '0'), 'hex')]"

static void put_state(FILE *f, int nonce, int hash, const char *state, int block)
{
    fprintf(f, "SELECT txrelay.leader_record_status(" LEADER ", ARRAY[%d], " HASH ", ARRAY['%s'], ",
            nonce, hash, state);
    if (block)
        fprintf(f, HASH ", ARRAY[%d], ARRAY[NULL]);\n", block, block);
    else
        fprintf(f, "ARRAY[NULL]::bytea[], ARRAY[NULL]::bigint[], ARRAY[NULL]);\n");
}

static void put_tx(FILE *f, int n)
{
    int hash = n * 100 + 1, block = 1000000 + n;
    fprintf(f, "SELECT txrelay.enqueue('alice', '\\x%04x', creator => 'app%d');\n", n, n % 7);
    fprintf(f,
            "SELECT txrelay.leader_admit(" LEADER
            ", ARRAY(SELECT id FROM txrelay.outbox ORDER BY id LIMIT 1), "
            "ARRAY[%d], " HASH
            ", ARRAY['\\x01'::bytea], ARRAY[0], ARRAY[-1], ARRAY[-1], 1, 1, 1);\n",
            n, hash);
    put_state(f, n, hash, "ready", 0);
    put_state(f, n, hash, "broadcast", 0);
    if (n % 5 == 0) { /* signed again */
        hash++;
        fprintf(
            f,
            "SELECT txrelay.leader_attempt(" LEADER ", ARRAY[%d], " HASH
            ", ARRAY['\\x02'::bytea], ARRAY[0], ARRAY[-1], ARRAY[-1], 1, 1, 2, ARRAY['era']);\n",
            n, hash);
        put_state(f, n, hash, "ready", 0);
    }
    if (n % 11 == 6) { /* its nonce is lost: it is the next one to be admitted, at another nonce */
        fprintf(
            f,
            "SELECT txrelay.leader_requeue(" LEADER ", ARRAY[%d], " HASH
            ", ARRAY[NULL]::bytea[], ARRAY[NULL]::bigint[], ARRAY[NULL]::int[], ARRAY['usurped'], "
            "ARRAY['somebody else'], ARRAY[NULL]::numeric[]);\n",
            n, hash);
        return;
    }
    if (n % 7 == 3) { /* ends without an effect; a filler takes the nonce */
        fprintf(f,
                "SELECT txrelay.leader_fill(" LEADER ", ARRAY[%d], ARRAY['\\x00'::bytea], " HASH
                ", ARRAY['\\x03'::bytea], ARRAY[0], ARRAY[-1], ARRAY[-1], 1, 1, 2, "
                "ARRAY['expired'], ARRAY['late']);\n",
                n, n * 100 + 50);
        return;
    }
    put_state(f, n, hash, "in_block", block);
    if (n % 3 == 0)
        put_state(f, n, hash, "retracted", block);
    if (n % 4 == 1)
        return; /* stays pending */
    fprintf(f,
            "SELECT txrelay.leader_finish(" LEADER ", ARRAY[%d], " HASH ", " HASH
            ", ARRAY[%d], ARRAY[2], ARRAY['%s'], ARRAY[NULL], ARRAY[NULL]::numeric[]);\n",
            n, hash, block, block, n % 2 ? "ok" : "dispatch_error");
}

static int changes_in(const char *path)
{
    char *count = fx_shell("grep -c leader_ %s", path);
    int n = (int)strtol(count, NULL, 10);
    free(count);
    return n;
}

static void empty_tables(void)
{
    sql("SET session_replication_role = replica; TRUNCATE txrelay.outbox, "
        "txrelay.pending_transactions, txrelay.attempts, txrelay.finished_transactions; DELETE "
        "FROM txrelay.accounts; DELETE FROM txrelay.leadership; ALTER SEQUENCE "
        "txrelay.transaction_id RESTART; UPDATE txrelay.high_water SET highest_id = 0");
    sql("SELECT txrelay.relay_register('alice', decode(repeat('a1', 32), 'hex'), 'sr25519', "
        "decode(repeat('09', 32), 'hex'), 'alice-address', 7001)");
    sql("SELECT txrelay.leader_claim(account, 'writer', 'writer:1', false, 3600000, 3600000), "
        "txrelay.leader_nonce(account, 1, 0) FROM txrelay.accounts");
}

/* ---- tests ---- */

/* I8: 2,000 changes while the listener's session is ended again and again. */
static void equals_the_table(void **state)
{
    (void)state;
    empty_tables();
    char *script = xasprintf("%s/script.sql", pg.dir), *done = xasprintf("%s/done", pg.dir);
    FILE *f = fopen(script, "w");
    assert_non_null(f);
    for (int n = 0; n < TXS; n++)
        put_tx(f, n);
    fclose(f);
    int changes = changes_in(script);
    assert_true(changes >= 2000);

    struct reader *r = reader_open(&(struct listen_config){.scan_rows = 50});
    WAIT_FOR(loop, r->live);
    struct fx_conn killer;
    struct conn_config config;
    fx_conn_config(&killer, &config, pg.dsn);
    killer.c = conn_new(loop, &config);
    conn_open(killer.c);
    WAIT_FOR(loop, killer.ups);

    free(fx_shell("(psql -X -q -v ON_ERROR_STOP=1 '%s' -f %s 2>%s.log >/dev/null; echo $? "
                  ">%s.part; mv %s.part %s) </dev/null >/dev/null 2>&1 &",
                  pg.dsn, script, script, done, done, done));
    int killed = 0;
    bool finished = false;
    while (!finished) {
        int seen = r->events;
        WAIT_FOR(loop, r->events >= seen + 100 || (finished = access(done, R_OK) == 0));
        if (finished)
            break;
        struct fx_query q = {0};
        fx_query(killer.c, &q, NULL,
                 "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
                 "application_name = 'listen-test'");
        int stales = r->stales;
        WAIT_FOR(loop, q.done);
        WAIT_FOR(loop, r->stales > stales);
        killed++;
    }
    char *code = fx_shell("cat %s; cat %s.log", done, script);
    assert_string_equal(code, "0");
    free(code);

    char *table = table_text(), *view = view_text(r);
    WAIT_FOR(loop, (free(view), view = view_text(r), !strcmp(view, table)));
    print_message("%d changes, session ended %d times: %d events, %d of them from scans\n", changes,
                  killed, r->events, r->scanned);
    assert_true(killed >= 5);
    assert_true(r->lives > 5);
    assert_true(strlen(table) > 1000);

    /* Somebody who comes now sees the same, and with --since the ends as well. */
    struct reader *late = reader_open(&(struct listen_config){.since_us = 1});
    WAIT_FOR(loop, late->live);
    free(view);
    view = view_text(late);
    assert_string_equal(view, table);
    assert_int_equal(late->events, late->scanned);
    free(view);
    free(table);
    free(script);
    free(done);
    fx_conn_close(loop, &killer);
    reader_close(r);
    reader_close(late);
}

/* The size of the call does not matter to those who follow. */
static void large_call(void **state)
{
    (void)state;
    empty_tables();
    struct fx_conn writer;
    session_open(&writer, pg.dsn);
    struct reader *r = reader_open(&(struct listen_config){0});
    WAIT_FOR(loop, r->live);
    sql("SELECT txrelay.enqueue('alice', decode(repeat('ab', 65536), 'hex'))");
    session_sql(
        &writer,
        "SELECT txrelay.leader_admit(account, 1, ARRAY(SELECT id FROM txrelay.outbox), ARRAY[0], "
        "ARRAY[decode(repeat('cd', 32), 'hex')], ARRAY[decode(repeat('ef', 65540), 'hex')], "
        "ARRAY[0], ARRAY[-1], ARRAY[-1], 1, 1, 1) FROM txrelay.accounts");
    WAIT_FOR(loop, r->events == 1);
    assert_int_equal(r->last.kind, LISTEN_NEW);
    assert_false(r->last.from_scan);
    assert_int_equal(r->last.hash[31], 0xcd);
    assert_string_equal(r->last_alias, "alice");
    assert_string_equal(r->last_state, "signed");
    assert_int_equal(r->last.account_id_len, 32);
    fx_conn_close(loop, &writer);
    reader_close(r);
}

/* As notifications of pending rows are made, by whoever calls it. */
#define FORGE                                                                                      \
    "SELECT pg_notify('pending_tx_%s', json_build_object('account_id', '0x' || repeat('a1', 32), " \
    "'nonce', %d, 'id', %d, 'hash', '0x' || repeat('cd', 32), 'state', 'in_block', 'block_hash', " \
    "'0x' || repeat('77', 32), 'updated_at', to_char(clock_timestamp() AT TIME ZONE 'UTC', "       \
    "'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'))::text)"

/* NOTIFY needs no right: an application's login makes up a status, which no reader is told and
 * which hides nothing that a relay notifies. */
static void forged(void **state)
{
    (void)state;
    empty_tables();
    sql("CREATE ROLE shop LOGIN IN ROLE txrelay_app");
    char *dsn = xasprintf("%s user=shop", pg.dsn);
    struct fx_conn writer, shop;
    session_open(&writer, pg.dsn);
    session_open(&shop, dsn);
    sql("SELECT txrelay.enqueue('alice', '\\x00')");
    struct reader *r = reader_open(&(struct listen_config){0});
    WAIT_FOR(loop, r->live);
    session_sql(&writer, "SELECT txrelay.leader_admit(account, 1, ARRAY(SELECT id FROM "
                         "txrelay.outbox), ARRAY[0], ARRAY[decode(repeat('cd', 32), 'hex')], "
                         "ARRAY['\\xef'::bytea], ARRAY[0], ARRAY[-1], ARRAY[-1], 1, 1, 1) FROM "
                         "txrelay.accounts");
    WAIT_FOR(loop, r->events == 1);

    char *update = xasprintf(FORGE, "update", 0, 1), *new = xasprintf(FORGE, "new", 1, 77);
    session_sql(&shop, update);
    session_sql(&shop, new);
    session_sql(&writer, "SELECT txrelay.leader_record_status(account, 1, ARRAY[0], "
                         "ARRAY[decode(repeat('cd', 32), 'hex')], ARRAY['ready'], "
                         "ARRAY[NULL]::bytea[], ARRAY[NULL]::bigint[], ARRAY[NULL]) FROM "
                         "txrelay.accounts");
    WAIT_FOR(loop, r->events >= 2);
    assert_string_equal(r->last_state, "ready");
    assert_int_equal(r->events, 2);
    assert_false(r->txs[77].pending);

    /* What it may do by right is told at once: it cancels a row of the outbox. */
    session_sql(&shop, "SELECT txrelay.enqueue('alice', '\\x01')");
    session_sql(&shop, "SELECT txrelay.cancel(2)");
    WAIT_FOR(loop, r->txs[2].finished);
    assert_string_equal(r->txs[2].text, "cancelled");
    free(update);
    free(new);
    free(dsn);
    fx_conn_close(loop, &writer);
    fx_conn_close(loop, &shop);
    reader_close(r);
}

/* leader_change and outbox_wake, on a connection without other subscriptions. */
static void signals(void **state)
{
    (void)state;
    empty_tables();
    struct reader *r = reader_open(&(struct listen_config){.signals_only = true});
    WAIT_FOR(loop, r->live);
    sql("SELECT txrelay.leader_claim(account, 'writer', 'writer:1', false, 3600000, 3600000) FROM "
        "txrelay.accounts");
    WAIT_FOR(loop, r->changes == 1);
    assert_string_equal(r->holder, "writer");
    assert_int_equal(r->change.epoch, 2);
    assert_true(r->change.account > 0);
    sql("SELECT txrelay.leader_release(account, 2, 'writer') FROM txrelay.accounts");
    WAIT_FOR(loop, r->changes == 2);
    assert_string_equal(r->holder, "");

    /* The leader sleeps: another session holds the doorbell. */
    struct fx_conn sleeper;
    struct conn_config config;
    fx_conn_config(&sleeper, &config, pg.dsn);
    sleeper.c = conn_new(loop, &config);
    conn_open(sleeper.c);
    WAIT_FOR(loop, sleeper.ups);
    struct fx_query q = {0};
    fx_query(sleeper.c, &q, NULL, "SELECT pg_advisory_lock(9001, account) FROM txrelay.accounts");
    WAIT_FOR(loop, q.done);
    sql("SELECT txrelay.enqueue('alice', '\\x00')");
    WAIT_FOR(loop, r->wakes == 1);
    assert_int_equal(r->woken, r->change.account);
    fx_conn_close(loop, &sleeper);

    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
        "'listen-test'");
    WAIT_FOR(loop, r->lives == 2);
    assert_int_equal(r->events, 0);
    reader_close(r);
}

static void filters(void **state)
{
    (void)state;
    empty_tables();
    sql("SELECT txrelay.relay_register('bob', decode(repeat('b2', 20), 'hex'), 'ethereum', "
        "decode(repeat('09', 32), 'hex'), 'bob-address', 7002)");
    struct reader *nobody = reader_open(&(struct listen_config){.account = "carol"});
    WAIT_FOR(loop, nobody->code == ERR_NOT_FOUND);
    assert_non_null(strstr(nobody->first_error, "carol"));
    struct reader *bob = reader_open(
        &(struct listen_config){.account = "0xb2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2"});
    struct reader *second = reader_open(&(struct listen_config){.id = 2});
    WAIT_FOR(loop, bob->live && second->live);
    for (int n = 0; n < 3; n++) {
        char *text = xasprintf(
            "SELECT txrelay.enqueue('alice', '\\x00'); SELECT txrelay.leader_admit(" LEADER
            ", ARRAY(SELECT id FROM txrelay.outbox), ARRAY[%d], " HASH
            ", ARRAY['\\x01'::bytea], ARRAY[0], ARRAY[-1], ARRAY[-1], 1, 1, 1)",
            n, n + 1);
        sql(text);
        free(text);
    }
    WAIT_FOR(loop, second->events == 1);
    assert_int_equal(second->last.id, 2);
    assert_int_equal(bob->events, 0);
    /* A filter by id also finds it in a scan. */
    struct reader *again = reader_open(&(struct listen_config){.id = 3, .account = "alice"});
    WAIT_FOR(loop, again->live);
    assert_int_equal(again->events, 1);
    assert_int_equal(again->last.id, 3);
    reader_close(nobody);
    reader_close(bob);
    reader_close(second);
    reader_close(again);
}

/* An account that was registered after the listener came: heard, read again, told. And nonsense on
 * a channel does no harm. */
static void unknown_account(void **state)
{
    (void)state;
    empty_tables();
    struct reader *r = reader_open(&(struct listen_config){0});
    WAIT_FOR(loop, r->live);
    sql("NOTIFY pending_tx_new, 'nonsense'");
    sql("SELECT txrelay.relay_register('bob', decode(repeat('b2', 20), 'hex'), 'ethereum', "
        "decode(repeat('09', 32), 'hex'), 'bob-address', 7002); SELECT "
        "txrelay.leader_claim(account, 'writer', 'writer:1', false, 3600000, 3600000), "
        "txrelay.leader_nonce(account, 1, 0) FROM txrelay.accounts WHERE alias = 'bob'; SELECT "
        "txrelay.enqueue('bob', '\\x00'); SELECT txrelay.leader_admit(account, 1, ARRAY(SELECT id "
        "FROM txrelay.outbox), ARRAY[0], "
        "ARRAY[decode(repeat('cd', 32), 'hex')], ARRAY['\\x01'::bytea], ARRAY[0], ARRAY[-1], "
        "ARRAY[-1], 1, 1, 1) FROM txrelay.accounts WHERE alias = 'bob'");
    WAIT_FOR(loop, r->events == 1);
    assert_string_equal(r->last_alias, "bob");
    assert_int_equal(r->stales, 0);
    reader_close(r);
}

/* A session that hangs is found out by the question that is not answered, and replaced. */
static void hung_session(void **state)
{
    (void)state;
    empty_tables();
    struct reader *r = reader_open(&(struct listen_config){.probe_ms = 400});
    WAIT_FOR(loop, r->live);
    char *pid =
        fx_pg_sql(&pg, "SELECT pid FROM pg_stat_activity WHERE application_name = 'listen-test'");
    fx_step(loop);
    assert_int_equal(kill((pid_t)strtol(pid, NULL, 10), SIGSTOP), 0);
    WAIT_FOR(loop, r->stales == 1);
    assert_int_equal(r->code, ERR_TIMEOUT);
    assert_true(loop_now_ms(loop) - r->since_ms >=
                200); /* since it last answered, not since it was noticed */
    WAIT_FOR(loop, r->lives == 2);
    assert_int_equal(kill((pid_t)strtol(pid, NULL, 10), SIGCONT), 0);
    free(pid);
    reader_close(r);
}

/* Stale while the database is away, told once, live again after it. */
static void database_restart(void **state)
{
    (void)state;
    empty_tables();
    struct reader *r = reader_open(&(struct listen_config){0});
    WAIT_FOR(loop, r->live);
    fx_pg_restart(&pg, "fast");
    fx_step(loop);
    WAIT_FOR(loop, r->lives == 2);
    assert_true(r->stales >= 1);
    struct listen_status status = listen_status(r->l);
    assert_true(status.live);
    assert_true(status.since_ms > 0);
    reader_close(r);
}

/* No schema: said once, tried again, closed cleanly in between. */
static void no_schema(void **state)
{
    (void)state;
    sql("ALTER SCHEMA txrelay RENAME TO elsewhere");
    struct reader *r = reader_open(&(struct listen_config){0});
    struct reader *loud = reader_open(&(struct listen_config){.stale_ms = 20});
    WAIT_FOR(loop, r->stales == 1);
    assert_int_equal(err_class(r->code), ERR_CLASS_PERMANENT);
    WAIT_FOR(loop, loud->stales >= 1);
    uint64_t since = loud->since_ms;
    WAIT_FOR(loop, loud->stales >= 6);
    assert_int_equal(loud->since_ms, since);
    assert_int_equal(r->stales, 1);
    sql("ALTER SCHEMA elsewhere RENAME TO txrelay");
    WAIT_FOR(loop, r->live && loud->live);
    reader_close(r);
    reader_close(loud);
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
    loop = loop_new(); /* after it: what blocks the loop's thread lets its clock fall behind */
    struct migration m = {0};
    migrate_start(loop, &m.m, pg.dsn, migrated);
    WAIT_FOR(loop, m.done);
    if (m.m.err.code)
        print_error("%s\n", m.m.err.text);
    return m.m.err.code;
}

static int teardown(void **state)
{
    (void)state;
    fx_pg_stop(&pg);
    loop_free(loop);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_table), cmocka_unit_test(large_call),
        cmocka_unit_test(forged),           cmocka_unit_test(signals),
        cmocka_unit_test(filters),          cmocka_unit_test(unknown_account),
        cmocka_unit_test(hung_session),     cmocka_unit_test(database_restart),
        cmocka_unit_test(no_schema),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
