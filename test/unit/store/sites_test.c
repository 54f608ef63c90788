/* The requests of sites against a real database: each answers once, in the order of the starts, and
 * what it wrote is what the next load reads. The rules themselves are tested in
 * test/schema/test_sites.py. */
#include "base/alloc.h"
#include "store/migrate.h"
#include "store/sites.h"
#include "store_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITES = 3, ERA = 64 };

static struct fx_pg pg;
static const uint8_t key[32] = {7};

static int suite_setup(void **state)
{
    (void)state;
    fx_pg_start(&pg, "");
    fx_migrate(pg.dsn);
    free(fx_pg_sql(&pg, "CREATE ROLE relay LOGIN IN ROLE txrelay_relay"));
    return 0;
}

static int suite_teardown(void **state)
{
    (void)state;
    fx_pg_stop(&pg);
    return 0;
}

static const char *sql(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static const char *sql(const char *fmt, ...)
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

struct world {
    struct loop *l;
    struct store_sites *s;
    int32_t account;
    int64_t epoch, final;
    bool closed;
    int answers;
};

static int64_t enqueue(const char *call)
{
    return strtoll(sql("SELECT txrelay.enqueue('alice', convert_to('%s', 'UTF8'))", call), NULL,
                   10);
}

static void claim(struct world *w, const char *holder)
{
    w->epoch = strtoll(sql("SELECT epoch FROM txrelay.leader_claim(%d, '%s', 'a:1', false, 60000, "
                           "60000)",
                           w->account, holder),
                       NULL, 10);
}

static void begin(struct world *w)
{
    char dsn[300];
    *w = (struct world){.l = loop_new(), .final = 100};
    sql("SET session_replication_role = replica; TRUNCATE txrelay.leadership, txrelay.accounts, "
        "txrelay.outbox, txrelay.attempts, txrelay.finished_transactions, txrelay.cancellations, "
        "txrelay.site_accounts, txrelay.site_peers, txrelay.site_transactions, "
        "txrelay.site_dispatches RESTART IDENTITY");
    w->account = (int32_t)strtol(
        sql("SELECT txrelay.relay_register('alice', decode('07' || repeat('00', 31), 'hex'), "
            "'sr25519', decode(repeat('01', 32), 'hex'), '5alice', 42)"),
        NULL, 10);
    claim(w, "relay-a");
    snprintf(dsn, sizeof(dsn), "host=%s port=5432 user=relay dbname=postgres", pg.dir);
    w->s = store_sites_new(w->l, dsn, "test");
}

static void on_closed(void *arg)
{
    ((struct world *)arg)->closed = true;
}

static void finish(struct world *w)
{
    store_sites_close(w->s, on_closed, w);
    WAIT_FOR(w->l, w->closed);
    loop_free(w->l);
}

/* Starts a request and waits for its answer. */
static int answered;
#define ANSWER(request)                                                                            \
    static void on_##request(struct store_site_##request *r)                                       \
    {                                                                                              \
        (void)r;                                                                                   \
        answered++;                                                                                \
    }
ANSWER(setup)
ANSWER(apply)
ANSWER(note)

#define RUN_SITE(w, start, on, r)                                                                  \
    do {                                                                                           \
        int before = answered;                                                                     \
        (r)->account = (w)->account;                                                               \
        (r)->epoch = (w)->epoch;                                                                   \
        start((w)->s, (r), on);                                                                    \
        assert_int_equal(answered, before); /* never inside the start */                           \
        WAIT_FOR((w)->l, answered > before);                                                       \
    } while (0)

static int set_up(struct world *w)
{
    static const struct store_site_member members[SITES] = {
        {.name = "north", .address = "", .key = key, .key_len = 32},
        {.name = "south", .address = "south:9944", .key = key, .key_len = 32},
        {.name = "east", .address = "east:9944", .key = key, .key_len = 32}};
    static const int64_t next[SITES] = {5, 5, 5};
    struct store_site_setup r = {.count = SITES,
                                 .members = members,
                                 .range_blocks = 1000,
                                 .era_blocks = ERA,
                                 .final = w->final,
                                 .next = next};
    do
        RUN_SITE(w, store_site_setup_start, on_setup, &r);
    while (r.err.code == ERR_DB_UNAVAILABLE); /* the connection is on its way */
    return r.err.code;
}

static int apply(struct world *w, const struct store_site_write *rows, size_t count,
                 const int64_t *next)
{
    struct store_site_apply r = {
        .rows = rows, .count = count, .next = next, .next_count = next ? SITES : 0};
    RUN_SITE(w, store_site_apply_start, on_apply, &r);
    return r.err.code;
}

static struct store_site_write grant(const struct world *w, int64_t id, int64_t nonce, int n)
{
    struct store_site_write g = {
        .kind = STORE_SITE_GRANT,
        .member = 1,
        .id = id,
        .bytes = {.nonce = nonce,
                  .death = w->final + 32,
                  .extrinsic = {.data = (const uint8_t *)"\x84xyz", .len = 4}},
        .birth = w->final,
        .tip = "9",
        .spec_version = 7,
        .transaction_version = 3,
        .number = -1,
        .index = -1,
    };
    fx_hash(g.bytes.hash, n);
    return g;
}

/* ---- the load, and the poll ---- */

static void on_load(struct store_site_load *r)
{
    answered++;
    if (r->err.code)
        return;
    assert_int_equal(r->next_count, SITES);
    assert_int_equal(r->next[2], 5);
    assert_int_equal(r->final, 100);
    assert_int_equal(r->wait_until, 0);
    assert_false(r->lost);
    assert_int_equal(r->tx_count, 2);
    assert_int_equal(r->txs[0].attempt_count, 2);
    assert_int_equal(r->txs[1].attempt_count, 1);
    assert_memory_equal(r->txs[0].call.data, "call 1", 6);
    assert_true(r->txs[1].cancel && !r->txs[0].cancel);
    const struct store_site_bytes *b = &r->txs[0].attempts[1];
    uint8_t hash[32];
    fx_hash(hash, 3);
    assert_memory_equal(b->hash, hash, 32);
    assert_int_equal(b->nonce, 5);
    assert_int_equal(b->death, 132);
    assert_int_equal(b->extrinsic.len, 4);
    assert_memory_equal(b->extrinsic.data, "\x84xyz", 4);
    assert_int_equal(r->txs[0].deadline_block, -1);
    assert_int_equal(r->dispatch_count, 2); /* by id: the filler's is below 0 */
    assert_int_equal(r->dispatches[0].id, INT64_MIN + 9);
    assert_int_equal(r->dispatches[1].sender, 2);
    assert_int_equal(r->dispatches[1].bytes.extrinsic.len, 4);
}

static void what_is_written_is_loaded(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    assert_int_equal(set_up(&w), 0);
    int64_t first = enqueue("call 1"), second = enqueue("call 2");
    struct store_site_write rows[] = {
        grant(&w, first, 5, 1),         grant(&w, second, 6, 2), grant(&w, first, 5, 3),
        grant(&w, INT64_MIN + 9, 9, 4), grant(&w, 77, 8, 5),
    };
    rows[3].kind = rows[4].kind = STORE_SITE_DISPATCH;
    rows[3].member = 0;
    rows[4].member = 2;
    assert_int_equal(apply(&w, rows, 5, NULL), 0);
    sql("SELECT txrelay.cancel(%lld)", (long long)second);
    struct store_site_load load = {0};
    RUN_SITE(&w, store_site_load_start, on_load, &load);
    assert_int_equal(load.err.code, 0);
    assert_string_equal(sql("SELECT string_agg(tip || ' ' || spec_version || ' ' || era_birth || "
                            "' ' || coordinator, ',') FROM txrelay.attempts"),
                        "9 7 100 1,9 7 100 1,9 7 100 1");
    finish(&w);
}

static int64_t polled[4], stopped;
static void on_rows(struct store_site_rows *r)
{
    answered++;
    memset(polled, 0, sizeof(polled));
    stopped = 0;
    for (size_t i = 0; i < r->count; i++)
        polled[i] = r->rows[i].id;
    if (r->stop_count) {
        stopped = r->stops[0].id;
        assert_string_equal(r->stops[0].outcome, "cancelled");
        assert_string_equal(r->stops[0].error, "cancelled by postgres");
    }
}

static void the_poll_gives_what_is_not_known(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    assert_int_equal(set_up(&w), 0);
    int64_t first = enqueue("a"), second = enqueue("b"), third = enqueue("c");
    struct store_site_rows r = {.limit = 2};
    RUN_SITE(&w, store_site_rows_start, on_rows, &r);
    assert_int_equal(r.err.code, 0);
    assert_true(polled[0] == first && polled[1] == second && !polled[2]);
    assert_int_equal(r.next_ms, -1);
    sql("SELECT txrelay.cancel(%lld)", (long long)second);
    const int64_t known[] = {first, second};
    r = (struct store_site_rows){.limit = 2, .known = known, .known_count = 2};
    RUN_SITE(&w, store_site_rows_start, on_rows, &r);
    assert_true(polled[0] == third && !polled[1]);
    assert_int_equal(stopped, second);
    const struct store_site_write end = {.kind = STORE_SITE_END,
                                         .id = second,
                                         .outcome = "cancelled",
                                         .error = "x",
                                         .birth = -1,
                                         .number = -1,
                                         .index = -1};
    assert_int_equal(apply(&w, &end, 1, NULL), 0);
    assert_string_equal(sql("SELECT outcome FROM txrelay.status(%lld)", (long long)second),
                        "cancelled");
    sql("SELECT txrelay.account_pause('alice', 'x')");
    r = (struct store_site_rows){.limit = 2};
    RUN_SITE(&w, store_site_rows_start, on_rows, &r);
    assert_true(r.paused && !polled[0]);
    finish(&w);
}

/* ---- blocks ---- */

static int64_t matched[2], equals[2];
static void on_match(struct store_site_match *r)
{
    answered++;
    for (size_t i = 0; i < r->count && !r->err.code; i++) {
        matched[i] = r->ids[i];
        equals[i] = r->equals[i];
    }
}

static void a_block_ends_and_returns(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    assert_int_equal(set_up(&w), 0);
    int64_t first = enqueue("a"), second = enqueue("b");
    const struct store_site_write grants[] = {grant(&w, first, 5, 1), grant(&w, second, 5, 2)};
    assert_int_equal(apply(&w, grants, 2, NULL), 0);
    struct store_site_write rows[] = {
        grant(&w, first, 5, 1),
        grant(&w, first, 5, 1),
        {.kind = STORE_SITE_FINAL, .birth = -1, .number = 101, .index = -1}};
    rows[0].kind = STORE_SITE_NOTED;
    rows[1].kind = STORE_SITE_END;
    rows[1].outcome = "ok";
    rows[1].block = key;
    rows[1].number = 101;
    rows[1].index = 2;
    rows[1].fee = "125";
    const int64_t next[] = {6, 6, 6};
    assert_int_equal(apply(&w, rows, 3, next), 0);
    assert_string_equal(sql("SELECT outcome || block_number || fee || coordinator FROM "
                            "txrelay.status(%lld)",
                            (long long)first),
                        "ok101125south");
    assert_string_equal(sql("SELECT stage FROM txrelay.status(%lld)", (long long)second), "outbox");
    const struct store_bytes calls[] = {{.data = (const uint8_t *)"b", .len = 1},
                                        {.data = (const uint8_t *)"zz", .len = 2}};
    const int64_t at[] = {-1, -1};
    struct store_site_match m = {.count = 2, .calls = calls, .at_ms = at};
    RUN_SITE(&w, store_site_match_start, on_match, &m);
    assert_int_equal(m.err.code, 0);
    assert_true(matched[0] == second && equals[0] == 1 && !matched[1] && !equals[1]);
    const struct store_site_write state_and_wait[] = {
        {.kind = STORE_SITE_WAIT, .birth = -1, .number = 170, .index = -1}};
    assert_int_equal(apply(&w, state_and_wait, 1, NULL), 0);
    assert_string_equal(sql("SELECT wait_until FROM txrelay.sites"), "170");
    finish(&w);
}

/* ---- faults ---- */

static void errors_are_named(void **state)
{
    struct world w;
    (void)state;
    begin(&w);
    assert_int_equal(set_up(&w), 0);
    int64_t tx = enqueue("a");
    const struct store_site_write first = grant(&w, tx, 5, 1), other = grant(&w, tx, 6, 2),
                                  nobody = grant(&w, tx + 1, 7, 3);
    assert_int_equal(apply(&w, &first, 1, NULL), 0);
    assert_int_equal(apply(&w, &other, 1, NULL), ERR_BUG); /* S-I5 */
    assert_int_equal(apply(&w, &nobody, 1, NULL), ERR_DB_CONFLICT);
    struct store_site_note note = {
        .state = "ACTIVE", .coordinator = 0, .height = 91, .reason = "south is silent", .down = 2};
    RUN_SITE(&w, store_site_note_start, on_note, &note);
    assert_int_equal(note.err.code, 0);
    assert_string_equal(
        sql("SELECT state || coordinator || since_height || reason FROM txrelay.sites"),
        "ACTIVEnorth91south is silent");
    claim(&w, "relay-b");
    w.epoch--;
    assert_int_equal(apply(&w, &first, 1, NULL), ERR_LOST_LEADERSHIP);
    struct store_site_load load = {0};
    RUN_SITE(&w, store_site_load_start, on_load, &load);
    assert_int_equal(load.err.code, ERR_LOST_LEADERSHIP);
    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'test "
        "sites'");
    struct store_site_apply lost = {.rows = &first, .count = 1};
    RUN_SITE(&w, store_site_apply_start, on_apply, &lost);
    assert_true(lost.err.code == ERR_DB_UNKNOWN_OUTCOME || lost.err.code == ERR_DB_UNAVAILABLE);
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_loaded),
        cmocka_unit_test(the_poll_gives_what_is_not_known),
        cmocka_unit_test(a_block_ends_and_returns),
        cmocka_unit_test(errors_are_named),
    };
    return cmocka_run_group_tests(tests, suite_setup, suite_teardown);
}
