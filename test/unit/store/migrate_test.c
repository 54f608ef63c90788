/* txrelay migrate and the check of the schema, on a real Postgres: every difference between
 * database and program. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/schema.h"
#include "store/schema_check.h"
#include "store_fixture.h"

static struct fx_pg pg;

static int suite_setup(void **state)
{
    (void)state;
    fx_pg_start(&pg, "");
    return 0;
}

static int suite_teardown(void **state)
{
    (void)state;
    fx_pg_stop(&pg);
    return 0;
}

static char *dsn_of(const char *dbname)
{
    static char out[300];
    snprintf(out, sizeof(out), "host=%s port=5432 user=postgres dbname=%s", pg.dir, dbname);
    return out;
}

static char *sql(const char *dbname, const char *text)
{
    static char out[256];
    char *got = fx_shell("psql -XAtq -v ON_ERROR_STOP=1 '%s' -c \"%s\" 2>&1", dsn_of(dbname), text);
    snprintf(out, sizeof(out), "%s", got);
    free(got);
    return out;
}

/* A database with nothing in it. */
__attribute__((format(printf, 1, 2))) static const char *with(const char *fmt, ...)
{
    static char out[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out, sizeof(out), fmt, ap);
    va_end(ap);
    return out;
}

static const char *fresh(void)
{
    static char name[32], text[64];
    static int n;
    snprintf(name, sizeof(name), "db%d", ++n);
    snprintf(text, sizeof(text), "CREATE DATABASE %s", name);
    sql("postgres", text);
    return name;
}

/* ---- running ---- */

struct run {
    struct migrate m;
    bool done;
};

static void on_migrated(struct migrate *m)
{
    CONTAINER_OF(m, struct run, m)->done = true;
}

static void migrate_dsn(struct run *r, const char *dsn, const struct schema_set *set)
{
    struct loop *l = loop_new();
    *r = (struct run){0};
    migrate_start_set(l, &r->m, dsn, set, on_migrated);
    assert_false(r->done);
    WAIT_FOR(l, r->done);
    assert_int_equal(loop_open_handles(l), 0);
    loop_free(l);
}

static void migrate_ok(const char *dbname, const struct schema_set *set, int from, bool applied)
{
    struct run r;
    migrate_dsn(&r, dsn_of(dbname), set);
    if (r.m.err.code)
        fail_msg("migrate: %s", r.m.err.text);
    assert_int_equal(r.m.from, from);
    assert_int_equal(r.m.to, (int)set->count);
    assert_int_equal(r.m.applied, applied);
}

static void migrate_refused(const char *dbname, const struct schema_set *set, int code,
                            const char *word)
{
    struct run r;
    migrate_dsn(&r, dsn_of(dbname), set);
    assert_int_equal(r.m.err.code, code);
    if (!strstr(r.m.err.text, word))
        fail_msg("'%s' is not in: %s", word, r.m.err.text);
    assert_int_equal(r.m.from, r.m.to);
    assert_false(r.m.applied);
}

struct checking {
    struct conn_query query;
    const struct schema_set *set;
    struct err err;
    enum schema_fit fit;
    char catalog[64];
    bool done;
};

static void on_checked(struct conn_query *q, const struct conn_result *r)
{
    struct checking *c = CONTAINER_OF(q, struct checking, query);
    struct schema_found found = {0};
    assert_int_equal(q->err.code, 0);
    for (int col = 0; col < SCHEMA_COLUMNS; col++)
        if (!conn_result_is_null(r, 0, col))
            found.text[col] = conn_result_get(r, 0, col, NULL);
    c->fit = schema_check(c->set, &found, &c->err);
    snprintf(c->catalog, sizeof(c->catalog), "%s", found.text[SCHEMA_COL_CATALOG]);
    c->done = true;
}

/* What a relay or `txrelay check` of this set makes of the database. */
static struct checking check(const char *dbname, const struct schema_set *set)
{
    struct loop *l = loop_new();
    struct fx_conn f = {0};
    struct conn_config config = {0};
    struct checking c = {.set = set};
    fx_conn_config(&f, &config, dsn_of(dbname));
    f.c = conn_new(l, &config);
    conn_open(f.c);
    WAIT_FOR(l, f.ups == 1);
    conn_query_start(f.c, &c.query, NULL, schema_check_sql(), 0, NULL, 0, on_checked);
    WAIT_FOR(l, c.done);
    fx_conn_close(l, &f);
    loop_free(l);
    assert_int_equal(c.err.code, c.fit == SCHEMA_FITS ? 0 : ERR_DB_SCHEMA);
    return c;
}

static void expect(const char *dbname, const struct schema_set *set, enum schema_fit fit,
                   const char *word)
{
    struct checking c = check(dbname, set);
    assert_int_equal(c.fit, fit);
    if (!strstr(c.err.text, word))
        fail_msg("'%s' is not in: %s", word, c.err.text);
}

/* ---- other builds: the compiled-in set with files more ---- */

enum { FILES_MAX = 64 };
struct build {
    struct schema_set set;
    struct schema_file migrations[FILES_MAX], functions[FILES_MAX];
};

static void build_of(struct build *b, const char *functions_checksum)
{
    b->set = *schema_set();
    assert_true(b->set.count < FILES_MAX && b->set.functions_count < FILES_MAX);
    memcpy(b->migrations, b->set.migrations, b->set.count * sizeof(*b->migrations));
    memcpy(b->functions, b->set.functions, b->set.functions_count * sizeof(*b->functions));
    b->set.migrations = b->migrations;
    b->set.functions = b->functions;
    b->set.functions_checksum = functions_checksum;
}

static void add_migration(struct build *b, const char *name, const char *text)
{
    b->migrations[b->set.count++] = (struct schema_file){name, text, strlen(text), name};
}

/* Behind the first file, so that it is in place before the functions that nobody defines are
 * dropped. */
static void add_functions(struct build *b, const char *text)
{
    memmove(b->functions + 2, b->functions + 1,
            (b->set.functions_count++ - 1) * sizeof(*b->functions));
    b->functions[1] = (struct schema_file){"01_more.sql", text, strlen(text), "x"};
}

/* ---- one build ---- */

static void test_install(void **state)
{
    (void)state;
    enum { RUNS = 4 };
    const char *db = fresh();
    struct loop *l = loop_new();
    struct run r[RUNS] = {0};
    int installed = 0;
    for (int i = 0; i < RUNS; i++)
        migrate_start(l, &r[i].m, dsn_of(db), on_migrated);
    for (int i = 0; i < RUNS; i++) {
        WAIT_FOR(l, r[i].done);
        assert_int_equal(r[i].m.err.code, 0);
        assert_int_equal(r[i].m.to, (int)schema_set()->count);
        assert_int_equal(r[i].m.applied, r[i].m.from == 0);
        installed += r[i].m.from == 0;
    }
    assert_int_equal(installed, 1); /* the others found nothing to do */
    loop_free(l);
    migrate_ok(db, schema_set(), (int)schema_set()->count, false);
    expect(db, schema_set(), SCHEMA_FITS, "");
}

static void test_what_is_in_the_way(void **state)
{
    (void)state;
    struct run r;
    char db[32];
    snprintf(db, sizeof(db), "%s", fresh());
    sql(db, "CREATE SCHEMA txrelay");
    migrate_refused(db, schema_set(), ERR_DB, "0001_init.sql");
    assert_string_equal(
        sql(db, "SELECT count(*) FROM pg_class WHERE relnamespace = 'txrelay'::regnamespace"), "0");
    sql(db, "CREATE TABLE txrelay.schema_version (version int, name text, checksum text)");
    migrate_refused(db, schema_set(), ERR_DB_SCHEMA, "before the first release");
    sql("postgres", "CREATE ROLE nobody_special LOGIN");
    char dsn[300];
    snprintf(dsn, sizeof(dsn), "host=%s port=5432 user=nobody_special dbname=%s", pg.dir, db);
    migrate_dsn(&r, dsn, schema_set());
    assert_int_equal(r.m.err.code, ERR_DB_DENIED);
    migrate_dsn(&r, dsn_of("not_there"), schema_set());
    assert_int_equal(r.m.err.code, ERR_DB_DENIED);
    migrate_dsn(&r, "host=/nowhere", schema_set());
    assert_int_equal(r.m.err.code, ERR_DB_UNAVAILABLE);
    migrate_dsn(&r, "not a connection string", schema_set());
    assert_int_equal(r.m.err.code, ERR_CONFIG);
}

/* Whatever somebody does to what the files define is seen by every relay that starts, and migrate
 * mends it. */
static void test_changed_by_hand(void **state)
{
    (void)state;
    static const char *const changes[] = {
        "DROP FUNCTION txrelay.leader_fill",
        "DROP VIEW txrelay.blocked_accounts",
        "DROP TRIGGER leadership_epoch ON txrelay.leadership",
        "ALTER TABLE txrelay.pending_transactions DISABLE TRIGGER pending_final",
        "ALTER FUNCTION txrelay.cancel(bigint) RESET search_path",
        "ALTER VIEW txrelay.follow_kept RENAME COLUMN dropped_before TO before",
        "CREATE OR REPLACE FUNCTION txrelay.mid_submission(p_subject int) RETURNS boolean LANGUAGE "
        "sql AS 'SELECT false'",
        "DROP FUNCTION txrelay.mid_submission; CREATE FUNCTION txrelay.mid_submission(p_subject "
        "int) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'",
        "CREATE FUNCTION txrelay.enqueue(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        "CREATE OR REPLACE VIEW txrelay.follow_kept AS SELECT now() AS dropped_before",
        "CREATE VIEW txrelay.secrets AS SELECT * FROM txrelay.outbox",
        "REVOKE EXECUTE ON FUNCTION txrelay.leader_admit FROM txrelay_relay",
        "REVOKE USAGE ON SCHEMA txrelay FROM txrelay_app",
        "GRANT EXECUTE ON FUNCTION txrelay.leader_admit TO txrelay_app",
        "GRANT SELECT ON txrelay.outbox TO PUBLIC",
        "GRANT USAGE ON SEQUENCE txrelay.transaction_id TO txrelay_follower",
    };
    int version = (int)schema_set()->count;
    char db[32];
    snprintf(db, sizeof(db), "%s", fresh());
    migrate_ok(db, schema_set(), 0, true);
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        sql(db, changes[i]);
        expect(db, schema_set(), SCHEMA_OUTDATED, "changed by hand");
        migrate_ok(db, schema_set(), version, true);
        expect(db, schema_set(), SCHEMA_FITS, "");
    }
}

/* The digest is not computed again where the catalog has the rows that it was computed of: then a
 * session believes what is on record, whatever that is. */
static void test_same_catalog(void **state)
{
    (void)state;
    char db[32];
    snprintf(db, sizeof(db), "%s", fresh());
    migrate_ok(db, schema_set(), 0, true);
    char *recorded = sql(db, "SELECT catalog FROM txrelay.schema_functions");
    assert_string_equal(check(db, schema_set()).catalog, recorded);
    sql(db, "UPDATE txrelay.schema_functions SET digest = digest || ' of then'");
    expect(db, schema_set(), SCHEMA_FITS, "");
    sql(db, "CREATE FUNCTION txrelay.more() RETURNS int LANGUAGE sql AS 'SELECT 1'");
    expect(db, schema_set(), SCHEMA_OUTDATED, "changed by hand");
    sql(db, "DROP FUNCTION txrelay.more; UPDATE txrelay.schema_functions SET catalog = NULL");
    expect(db, schema_set(), SCHEMA_OUTDATED, "changed by hand");
    migrate_ok(db, schema_set(), (int)schema_set()->count, true);
    recorded = sql(db, "SELECT catalog FROM txrelay.schema_functions");
    assert_string_equal(check(db, schema_set()).catalog, recorded);
    /* What a definition names is part of it. */
    sql(db, "ALTER TABLE txrelay.leadership RENAME COLUMN holder TO held_by");
    expect(db, schema_set(), SCHEMA_OUTDATED, "changed by hand");
    sql(db, "ALTER TABLE txrelay.leadership RENAME COLUMN held_by TO holder");
    expect(db, schema_set(), SCHEMA_FITS, "");
    sql(db, "ALTER TYPE txrelay.tx_state RENAME TO state_of_tx");
    expect(db, schema_set(), SCHEMA_OUTDATED, "changed by hand");
}

/* What users made for themselves is no difference, and stays. */
static void test_of_users(void **state)
{
    (void)state;
    int version = (int)schema_set()->count;
    char db[32];
    snprintf(db, sizeof(db), "%s", fresh());
    migrate_ok(db, schema_set(), 0, true);
    sql("postgres", "CREATE ROLE dashboard");
    sql(db, "GRANT SELECT ON txrelay.outbox, txrelay.transactions TO dashboard");
    sql(db, "GRANT EXECUTE ON FUNCTION txrelay.cancel TO dashboard");
    sql(db, "CREATE VIEW mine AS SELECT id FROM txrelay.transactions");
    sql(db, "CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
            "CREATE TRIGGER audit AFTER INSERT ON txrelay.attempts FOR EACH ROW EXECUTE FUNCTION "
            "audit()");
    sql(db, "SELECT txrelay.ensure_partitions(4)");
    expect(db, schema_set(), SCHEMA_FITS, "");
    sql(db, "DROP FUNCTION txrelay.leader_fill");
    migrate_ok(db, schema_set(), version, true);
    assert_string_equal(
        sql(db, "SELECT has_table_privilege('dashboard', 'txrelay.transactions', 'SELECT') AND "
                "has_table_privilege('dashboard', 'txrelay.outbox', 'SELECT') AND "
                "has_function_privilege('dashboard', 'txrelay.cancel(bigint)', 'EXECUTE')"),
        "t");
    assert_string_equal(sql(db, "SELECT count(*) FROM mine"), "0");
    assert_string_equal(sql(db, "SELECT count(*) FROM pg_trigger WHERE tgname = 'audit'"), "1");
    /* One that stands in the way of a change is named, and nothing is changed. */
    sql(db, "DROP FUNCTION txrelay.status; DROP VIEW mine; DROP VIEW "
            "txrelay.transactions; CREATE "
            "VIEW txrelay.transactions AS SELECT 1 AS other; CREATE VIEW mine AS SELECT other FROM "
            "txrelay.transactions");
    migrate_refused(db, schema_set(), ERR_DB, "depend");
    assert_string_equal(sql(db, "SELECT other FROM mine"), "1");
    sql(db, "DROP VIEW mine");
    migrate_ok(db, schema_set(), version, true);
    expect(db, schema_set(), SCHEMA_FITS, "");
}

/* ---- several builds ---- */

static void test_versions(void **state)
{
    (void)state;
    static struct build two, three, four;
    int version = (int)schema_set()->count;
    char db[32];
    snprintf(db, sizeof(db), "%s", fresh());
    migrate_ok(db, schema_set(), 0, true);
    sql(db, "INSERT INTO txrelay.outbox (account, call) VALUES (1, '1')");

    build_of(&two, "functions two");
    add_migration(&two, "9002_more.sql",
                  "ALTER TABLE txrelay.outbox ADD COLUMN more int NOT NULL DEFAULT 7");
    add_functions(&two,
                  "CREATE OR REPLACE VIEW txrelay.more AS SELECT id, more FROM txrelay.outbox;"
                  "CREATE OR REPLACE FUNCTION txrelay.sum_more() RETURNS int LANGUAGE sql AS "
                  "'SELECT 1'; CREATE OR REPLACE FUNCTION txrelay.gone(int) RETURNS int LANGUAGE "
                  "sql AS 'SELECT $1'");
    expect(db, &two.set, SCHEMA_OUTDATED,
           with("is version %d, this program needs %d: run txrelay migrate", version, version + 1));
    migrate_ok(db, &two.set, version, true);
    expect(db, &two.set, SCHEMA_FITS, "");
    assert_string_equal(sql(db, "SELECT more + txrelay.gone(1) FROM txrelay.more"), "8");
    assert_string_equal(
        sql(db, "SELECT version || name FROM txrelay.schema_version ORDER BY version DESC LIMIT 1"),
        with("%d9002_more.sql", version + 1));
    expect(
        db, schema_set(), SCHEMA_NEWER,
        with("is version %d (9002_more.sql), newer than this program's %d", version + 1, version));
    migrate_refused(db, schema_set(), ERR_DB_SCHEMA, "upgrade txrelay");

    /* Another result, fewer columns, other arguments: no function of a former build is left. */
    build_of(&three, "functions three");
    add_migration(&three, "9002_more.sql", "");
    add_functions(
        &three,
        "CREATE OR REPLACE VIEW txrelay.more AS SELECT more FROM txrelay.outbox;CREATE OR REPLACE "
        "FUNCTION txrelay.sum_more() RETURNS text LANGUAGE sql AS $$SELECT 'x'$$; CREATE OR "
        "REPLACE FUNCTION txrelay.gone(text) RETURNS text LANGUAGE sql AS 'SELECT $1'");
    expect(db, &three.set, SCHEMA_OUTDATED,
           "checksum functions two, this program's functions three");
    migrate_ok(db, &three.set, version + 1, true);
    expect(db, &three.set, SCHEMA_FITS, "");
    expect(db, &two.set, SCHEMA_OUTDATED, "checksum functions three, this program's functions two");
    assert_string_equal(
        sql(db, "SELECT txrelay.sum_more() || string_agg(p.oid::regprocedure::text, ' ') FROM "
                "pg_proc p WHERE proname = 'gone'"),
        "xtxrelay.gone(text)");

    /* A file that fails leaves the former build. */
    build_of(&four, "functions four");
    add_migration(&four, "9002_more.sql", "");
    add_migration(&four, "9003_none.sql", "DROP TABLE txrelay.bumps");
    add_functions(&four, "SELECT 1/0");
    migrate_refused(db, &four.set, ERR_DB, "01_more.sql failed, nothing was changed");
    expect(db, &three.set, SCHEMA_FITS, "");

    /* The rows of a table outlive it all, and its functions leave with their build. */
    build_of(&four, "functions five");
    add_migration(&four, "9002_more.sql", "");
    migrate_ok(db, &four.set, version + 1, true);
    assert_string_equal(sql(db, "SELECT count(*) FROM pg_proc WHERE proname IN ('gone', "
                                "'sum_more') UNION ALL SELECT NULL LIMIT 1"),
                        "0");
    assert_string_equal(sql(db, "SELECT more FROM txrelay.outbox"), "7");
}

/* A session whose transaction stays open and has used what the files replace. */
static void leave_open(struct loop *l, struct fx_conn *f, struct fx_query *q, const char *db)
{
    struct conn_config config;
    fx_conn_config(f, &config, dsn_of(db));
    config.plain = true;
    f->c = conn_new(l, &config);
    conn_open(f->c);
    WAIT_FOR(l, f->ups == 1);
    fx_query(f->c, q, NULL,
             "SET idle_in_transaction_session_timeout = 0; BEGIN; SELECT count(*) FROM "
             "txrelay.accounts");
    WAIT_FOR(l, q->done);
    assert_int_equal(q->q.err.code, 0);
}

/* A transaction that is open and has used what the files replace: others do not queue behind
 * migrate for long. It tries again, succeeds once that transaction has ended, and otherwise
 * gives up and names it. */
static void test_open_transaction(void **state)
{
    (void)state;
    char db[32];
    struct loop *l = loop_new();
    struct fx_conn f = {0};
    struct fx_query q = {0};
    struct run r = {0};
    snprintf(db, sizeof(db), "%s", fresh());
    migrate_ok(db, schema_set(), 0, true);
    leave_open(l, &f, &q, db);
    migrate_ok(db, schema_set(), (int)schema_set()->count, false);
    sql(db, "DROP FUNCTION txrelay.leader_fill");
    sql("postgres", with("ALTER DATABASE %s SET txrelay.migration_wait = '1s'", db));
    migrate_refused(db, schema_set(), ERR_TIMEOUT, "run txrelay migrate again");
    migrate_refused(db, schema_set(), ERR_TIMEOUT, "tries) by backend ");
    /* Autovacuum gives way to whoever waits for longer than deadlock_timeout. */
    sql("postgres", with("ALTER DATABASE %s SET deadlock_timeout = '2s'", db));
    uint64_t begun = loop_clock_ns(l);
    migrate_refused(db, schema_set(), ERR_TIMEOUT, "(1 tries) by backend ");
    assert_true(loop_clock_ns(l) - begun >= 2500000000);

    sql("postgres", with("ALTER DATABASE %s RESET ALL", db));
    fx_step(l); /* its clock stood while the other loops ran */
    migrate_start(l, &r.m, dsn_of(db), on_migrated);
    WAIT_FOR(l, r.m.state == MIGRATE_PAUSE_WAIT);
    assert_string_equal(sql(db, "SELECT count(*) FROM pg_locks WHERE NOT granted"), "0");
    WAIT_FOR(l, r.m.tries == 2);
    assert_false(r.done);
    fx_conn_close(l, &f);
    WAIT_FOR(l, r.done);
    assert_int_equal(r.m.err.code, 0);
    assert_true(r.m.applied);
    assert_int_equal(loop_open_handles(l), 0);
    loop_free(l);
    migrate_ok(db, schema_set(), (int)schema_set()->count, false);
}

/* The connection is lost between two tries. */
static void test_lost_between_two_tries(void **state)
{
    (void)state;
    char db[32];
    struct loop *l = loop_new();
    struct fx_conn f = {0};
    struct fx_query q = {0};
    struct run r = {0};
    snprintf(db, sizeof(db), "%s", fresh());
    migrate_ok(db, schema_set(), 0, true);
    leave_open(l, &f, &q, db);
    sql(db, "DROP FUNCTION txrelay.leader_fill");
    migrate_start(l, &r.m, dsn_of(db), on_migrated);
    WAIT_FOR(l, r.m.state == MIGRATE_PAUSE_WAIT);
    sql(db, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
            "'txrelay migrate' AND datname = current_database()");
    WAIT_FOR(l, r.done);
    assert_int_not_equal(r.m.err.code, 0);
    fx_conn_close(l, &f);
    assert_int_equal(loop_open_handles(l), 0);
    loop_free(l);
}

static void test_edited_migration(void **state)
{
    (void)state;
    static struct build other;
    char db[32];
    snprintf(db, sizeof(db), "%s", fresh());
    build_of(&other, schema_set()->functions_checksum);
    other.migrations[0].checksum = "0123456789abcdef0123";
    migrate_ok(db, &other.set, 0, true);
    expect(db, schema_set(), SCHEMA_FOREIGN,
           "0001_init.sql: the database has checksum 0123456789abcdef, this program ");
    migrate_refused(db, schema_set(), ERR_DB_SCHEMA, "installed from another build");
    expect(db, &other.set, SCHEMA_FITS, "");
    /* One that was left out. */
    add_migration(&other, "9002_a.sql", "SELECT 1");
    add_migration(&other, "9003_b.sql", "SELECT 1");
    int version = (int)schema_set()->count;
    migrate_ok(db, &other.set, version, true);
    sql(db, with("DELETE FROM txrelay.schema_version WHERE version = %d", version + 1));
    expect(db, &other.set, SCHEMA_FOREIGN,
           "9002_a.sql: the database does not have it, and has 9003_b.sql");
}

/* What pg_dump prints makes the same functions, views, triggers and rights again. */
static void test_restored_dump(void **state)
{
    (void)state;
    char from[32], to[32], into[300];
    snprintf(from, sizeof(from), "%s", fresh());
    snprintf(to, sizeof(to), "%s", fresh());
    migrate_ok(from, schema_set(), 0, true);
    snprintf(into, sizeof(into), "%s", dsn_of(to));
    free(fx_shell("pg_dump '%s' | psql -XAtq -v ON_ERROR_STOP=1 '%s' 2>&1", dsn_of(from), into));
    expect(to, schema_set(), SCHEMA_FITS, "");
    migrate_ok(to, schema_set(), (int)schema_set()->count, false);
}

/* After pg_upgrade the recorded digest says nothing: relays go on, and migrate computes it anew. */
static void test_digest_of_another_postgres(void **state)
{
    (void)state;
    char db[32];
    snprintf(db, sizeof(db), "%s", fresh());
    migrate_ok(db, schema_set(), 0, true);
    sql(db, "UPDATE txrelay.schema_functions SET digest = '9:' || md5('other')");
    expect(db, schema_set(), SCHEMA_FITS, "");
    migrate_ok(db, schema_set(), (int)schema_set()->count, true);
    migrate_ok(db, schema_set(), (int)schema_set()->count, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_install),          cmocka_unit_test(test_what_is_in_the_way),
        cmocka_unit_test(test_changed_by_hand),  cmocka_unit_test(test_same_catalog),
        cmocka_unit_test(test_of_users),         cmocka_unit_test(test_versions),
        cmocka_unit_test(test_open_transaction), cmocka_unit_test(test_lost_between_two_tries),
        cmocka_unit_test(test_edited_migration), cmocka_unit_test(test_digest_of_another_postgres),
        cmocka_unit_test(test_restored_dump),
    };
    return cmocka_run_group_tests(tests, suite_setup, suite_teardown);
}
