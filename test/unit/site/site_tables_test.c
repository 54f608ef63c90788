/* The room with real databases: three sites, each with a Postgres of its own, links over TLS
 * between them, and one chain in memory. What the databases have on record is compared with the
 * chain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "certs.h"
#include "election/election.h"
#include "room_host.h"
#include "site/tables/tables.h"
#include "store_fixture.h"

enum { BLOCK_MS = 50, ERA = 200, POLL = 20 };

static const char *const names[HOSTS] = {"a", "b", "c"};
static const uint8_t account_id[32] = {7};
static struct certs certs;
static struct fx_pg servers[HOSTS];

struct site {
    struct host *h;
    struct fx_pg *pg;
    struct store_sites *store;
    struct site_tables *tables;
    int32_t row;
    int64_t epoch;
    bool set_up, closed;
    struct store_site_setup setup;
    int64_t next[HOSTS];
    struct store_site_member members[HOSTS];
    unsigned failures;
};

static struct world *world;
static struct site sites[HOSTS];

static const char *sql(const struct site *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static const char *sql(const struct site *s, const char *fmt, ...)
{
    static char out[512];
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    char *got = fx_pg_sql(s->pg, text);
    snprintf(out, sizeof(out), "%s", got);
    free(got);
    return out;
}

static int64_t number(const struct site *s, const char *query)
{
    return strtoll(sql(s, "%s", query), NULL, 10);
}

/* ---- the host ---- */

static void load(void *arg, struct site_account *a, uint64_t load_number)
{
    const struct site *s = site_account_ctx(a);
    (void)arg;
    site_tables_load(s->tables, load_number);
}

static void store(void *arg, struct site_account *a, uint64_t batch,
                  const struct site_room_write *writes, size_t count)
{
    const struct site *s = site_account_ctx(a);
    (void)arg;
    site_tables_store(s->tables, batch, writes, count);
}

static void failed(void *arg, const char *request, const struct err *err)
{
    struct site *s = arg;
    (void)request;
    assert_string_not_equal(err_name(err->code), "");
    s->failures++;
}

static void polled(void *arg, size_t count, int64_t next_ms)
{
    const struct site *s = arg;
    assert_int_equal(next_ms, -1);
    if (count == POLL)
        site_tables_poll(s->tables, POLL);
}

static void feed(struct site *s)
{
    static const uint8_t block[32] = {9};
    const struct chain *c = &world->chain;
    struct site_used used[ROWS_MAX];
    static struct site_tables_end ends[ROWS_MAX];
    struct site_account_view v;
    for (size_t i = 0; i < ROWS_MAX; i++)
        ends[i] = (struct site_tables_end){.outcome = "ok", .index = (int64_t)i, .fee = "1"};
    for (site_account_view(s->h->account, &v); v.core.final && v.core.final < c->final;
         site_account_view(s->h->account, &v)) {
        s->h->fed = v.core.final + 1;
        const struct site_tables_block b = {.number = s->h->fed,
                                            .hash = block,
                                            .next = c->next_at[s->h->fed],
                                            .used = used,
                                            .ends = ends,
                                            .count = chain_used(s->h, used)};
        site_tables_final(s->tables, &b);
    }
}

static void on_block(void *arg)
{
    (void)arg;
    chain_block(world);
    for (uint32_t i = 0; i < HOSTS; i++)
        if (sites[i].h->room) {
            feed(&sites[i]);
            site_tables_poll(sites[i].tables, POLL);
        }
    loop_timer_at(world->block, loop_now_ms(world->loop) + BLOCK_MS);
}

static void on_work(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < HOSTS; i++)
        host_work(&world->hosts[i]);
    loop_timer_at(world->work, loop_now_ms(world->loop) + 1);
}

/* ---- relays ---- */

static void open_room(struct site *s)
{
    struct host *h = s->h;
    char cert[600], key[600], ca[600], name[16], listen[120];
    struct site_links_peer peers[HOSTS];
    const char *targets[HOSTS];
    size_t count = 0;
    struct err err = {0};
    snprintf(name, sizeof(name), "%s.pem", names[h->self]);
    snprintf(cert, sizeof(cert), "%s", certs_path(&certs, name));
    snprintf(name, sizeof(name), "%s.key", names[h->self]);
    snprintf(key, sizeof(key), "%s", certs_path(&certs, name));
    snprintf(ca, sizeof(ca), "%s", certs_path(&certs, "ca.pem"));
    for (uint32_t i = 0; i < HOSTS; i++)
        if (i != h->self) {
            targets[count] = world->hosts[i].address;
            peers[count] = (struct site_links_peer){names[i], &targets[count], 1};
            count++;
        }
    snprintf(listen, sizeof(listen), "tcp:%s", h->address);
    const struct site_links_config links = {.self = names[h->self],
                                            .listen = listen,
                                            .cert_file = cert,
                                            .key_file = key,
                                            .ca_file = ca,
                                            .peers = peers,
                                            .peer_count = count,
                                            .retry_ms = 20,
                                            .retry_max_ms = 100};
    struct site_config config = {.hash = election_hash,
                                 .account = {7},
                                 .names = names,
                                 .members = HOSTS,
                                 .self = h->self,
                                 .range_blocks = world->range_blocks,
                                 .era_blocks = ERA,
                                 .beat_ms = 100,
                                 .silence_ms = 1000,
                                 .probe_ms = 500,
                                 .retry_ms = 200,
                                 .propose_ms = 2000,
                                 .elect_ms = 1000,
                                 .own_send_ms = 2000,
                                 .hole_ms = 200};
    static struct site_host_ops ops;
    ops = host_ops;
    ops.load = load;
    ops.store = store;
    h->room = site_room_open(world->loop, &links, &ops, h, &err);
    if (!h->room)
        fail_msg("%s", err.text);
    h->account = site_room_add(h->room, &config, s, &err);
    if (!h->account)
        fail_msg("%s", err.text);
}

static void on_setup(struct store_site_setup *r)
{
    CONTAINER_OF(r, struct site, setup)->set_up = true;
}

static void record_sites(struct site *s)
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        s->members[i] = (struct store_site_member){
            .name = names[i], .address = "", .key = account_id, .key_len = sizeof(account_id)};
        s->next[i] = (int64_t)world->chain.next_at[world->chain.final][i];
    }
    do {
        s->set_up = false;
        s->setup = (struct store_site_setup){.account = s->row,
                                             .epoch = s->epoch,
                                             .count = HOSTS,
                                             .members = s->members,
                                             .self = s->h->self,
                                             .range_blocks = world->range_blocks,
                                             .era_blocks = ERA,
                                             .final = (int64_t)world->chain.final,
                                             .next = s->next};
        store_site_setup_start(s->store, &s->setup, on_setup);
        WAIT_FOR(world->loop, s->set_up);
    } while (s->setup.err.code == ERR_DB_UNAVAILABLE); /* the connection is on its way */
    if (s->setup.err.code)
        fail_msg("%s", s->setup.err.text);
}

/* Another relay of the site: it has a newer epoch. */
static void start(struct site *s)
{
    char dsn[300];
    s->epoch = number(s, "UPDATE txrelay.leadership SET epoch = epoch + 1 RETURNING epoch");
    snprintf(dsn, sizeof(dsn), "host=%s port=5432 user=relay dbname=postgres", s->pg->dir);
    s->store = store_sites_new(world->loop, dsn, "test");
    record_sites(s);
    open_room(s);
    s->tables = site_tables_new(&(struct site_tables_config){.store = s->store,
                                                             .account = s->h->account,
                                                             .self = s->h->self,
                                                             .members = HOSTS,
                                                             .row = s->row,
                                                             .failed = failed,
                                                             .polled = polled,
                                                             .arg = s});
    site_tables_lead(s->tables, s->epoch);
}

static void on_closed(void *arg)
{
    ((struct site *)arg)->closed = true;
}

static void stop(struct site *s)
{
    host_forget(s->h, false);
    site_tables_lead(s->tables, 0);
    s->h->room = site_room_close(s->h->room);
    s->closed = false;
    store_sites_close(s->store, on_closed, s);
    WAIT_FOR(world->loop, s->closed);
    s->tables = site_tables_free(s->tables);
}

/* In one transaction, so that their ids follow one another. The call is that of host_call. */
static void enqueue(struct site *s, size_t count)
{
    struct database *db = &s->h->db;
    int64_t first = strtoll(sql(s,
                                "SELECT min(txrelay.enqueue('alice', decode(lpad(to_hex(%u), 2, "
                                "'0') || repeat('00', 7) "
                                "|| lpad(to_hex(k), 2, '0') || repeat('00', 7), 'hex'))) "
                                "FROM generate_series(%zu, %zu) k",
                                s->h->self, db->count + 1, db->count + count),
                            NULL, 10);
    for (size_t i = 0; i < count; i++)
        db->rows[db->count++].id = (uint64_t)first + i;
}

/* ---- the whole ---- */

static int set_up(void **state)
{
    (void)state;
    world = xcalloc(1, sizeof(*world));
    world->loop = loop_new();
    world->members = HOSTS;
    world->range_blocks = 1000000;
    world->block = loop_timer_new(world->loop, on_block, NULL);
    world->work = loop_timer_new(world->loop, on_work, NULL);
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct site *s = &sites[i];
        struct host *h = &world->hosts[i];
        *s = (struct site){.h = h, .pg = &servers[i]};
        h->w = world;
        h->self = i;
        snprintf(h->address, sizeof(h->address), "127.0.0.1:%d", fx_free_port());
        sql(s,
            "SET session_replication_role = replica; TRUNCATE txrelay.leadership, "
            "txrelay.accounts, txrelay.outbox, txrelay.attempts, txrelay.finished_transactions, "
            "txrelay.cancellations, txrelay.refusals, txrelay.site_accounts, txrelay.site_peers, "
            "txrelay.site_transactions, txrelay.site_dispatches RESTART IDENTITY");
        s->row = (int32_t)number(
            s, "SELECT txrelay.relay_register('alice', decode('07' || repeat('00', 31), 'hex'), "
               "'sr25519', decode(repeat('01', 32), 'hex'), '5alice', 42)");
        sql(s, "SELECT epoch FROM txrelay.leader_claim(%d, 'relay', 'a:1', false, 60000, 60000)",
            s->row);
    }
    while (world->chain.final < 3)
        chain_block(world);
    loop_timer_at(world->block, loop_now_ms(world->loop));
    loop_timer_at(world->work, loop_now_ms(world->loop));
    for (uint32_t i = 0; i < HOSTS; i++)
        start(&sites[i]);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < HOSTS; i++)
        if (sites[i].h->room)
            stop(&sites[i]);
    for (size_t i = 0; i < world->chain.count; i++)
        free(world->chain.all[i]);
    loop_timer_close(world->block);
    loop_timer_close(world->work);
    assert_int_equal(loop_open_handles(world->loop), 0);
    loop_free(world->loop);
    free(world);
    return 0;
}

static size_t in_blocks(void)
{
    size_t n = 0;
    for (uint32_t i = 0; i < HOSTS; i++)
        for (size_t k = 1; k <= world->hosts[i].db.count; k++)
            n += chain_effects(world, i, k);
    return n;
}

static bool all_ended(void)
{
    for (uint32_t i = 0; i < HOSTS; i++)
        if (number(&sites[i], "SELECT (SELECT count(*) FROM txrelay.outbox) + (SELECT count(*) "
                              "FROM txrelay.site_transactions) + (SELECT count(*) FROM "
                              "txrelay.site_dispatches)"))
            return false;
    return true;
}

static size_t enqueued(void)
{
    size_t n = 0;
    for (uint32_t i = 0; i < HOSTS; i++)
        n += world->hosts[i].db.count;
    return n;
}

/* Every transaction is on the chain once, and its database has that on record. */
static void check_all(void)
{
    WAIT_FOR(world->loop, in_blocks() >= enqueued());
    WAIT_FOR(world->loop, all_ended());
    for (uint32_t i = 0; i < HOSTS; i++) {
        for (size_t k = 1; k <= world->hosts[i].db.count; k++)
            assert_int_equal(chain_effects(world, i, k), 1);
        assert_int_equal(number(&sites[i], "SELECT count(*) FROM txrelay.finished_transactions "
                                           "WHERE id IS NOT NULL AND outcome = 'ok'"),
                         world->hosts[i].db.count);
        assert_int_equal(world->hosts[i].notes[SITE_LINKS_BAD], 0);
    }
}

/* ---- the tests ---- */

static void three_databases_send_through_one_account(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < HOSTS; i++)
        enqueue(&sites[i], 30);
    check_all();
    /* One site coordinated them all, and each database knows which one. */
    char first[64];
    snprintf(first, sizeof(first), "%s",
             sql(&sites[0], "SELECT string_agg(DISTINCT coordinator, ',') FROM "
                            "txrelay.finished_transactions"));
    assert_int_equal(strlen(first), 1);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_string_equal(sql(&sites[i], "SELECT string_agg(DISTINCT coordinator, ',') FROM "
                                           "txrelay.finished_transactions"),
                            first);
        assert_int_equal(sites[i].failures, 0);
    }
}

static bool one_is_dispatched(uint32_t *ret)
{
    for (*ret = 0; *ret < HOSTS; (*ret)++) {
        struct site_account_view v;
        site_account_view(sites[*ret].h->account, &v);
        if (v.core.dispatched)
            return true;
    }
    return false;
}

static void the_coordinators_relay_is_replaced(void **state)
{
    uint32_t at;
    (void)state;
    for (uint32_t i = 0; i < HOSTS; i++)
        enqueue(&sites[i], 20);
    WAIT_FOR(world->loop, one_is_dispatched(&at));
    stop(&sites[at]);
    start(&sites[at]);
    check_all();
}

static void a_site_is_away_and_comes_back(void **state)
{
    uint32_t at;
    (void)state;
    for (uint32_t i = 0; i < HOSTS; i++)
        enqueue(&sites[i], 10);
    WAIT_FOR(world->loop, one_is_dispatched(&at));
    stop(&sites[at]);
    struct site *other = &sites[(at + 1) % HOSTS];
    enqueue(other, 10);
    WAIT_FOR(world->loop, chain_effects(world, other->h->self, other->h->db.count) == 1);
    start(&sites[at]);
    check_all();
}

static void an_older_leader_writes_nothing(void **state)
{
    struct site *s = &sites[0];
    (void)state;
    sql(s, "UPDATE txrelay.leadership SET epoch = epoch + 1");
    enqueue(s, 5);
    WAIT_FOR(world->loop, s->failures);
    assert_int_equal(number(s, "SELECT count(*) FROM txrelay.attempts"), 0);
    stop(s);
    start(s);
    check_all();
}

static void what_is_stopped_ends_in_its_database(void **state)
{
    struct site *s = &sites[1];
    (void)state;
    stop(&sites[0]); /* nobody is asked to coordinate before all are here */
    stop(&sites[2]);
    stop(s);
    enqueue(s, 1);
    sql(s, "SELECT txrelay.cancel(%lld)", (long long)s->h->db.rows[0].id);
    for (uint32_t i = 0; i < HOSTS; i++)
        start(&sites[i]);
    WAIT_FOR(world->loop, all_ended());
    assert_int_equal(number(s, "SELECT count(*) FROM txrelay.finished_transactions WHERE outcome = "
                               "'cancelled' AND error LIKE 'cancelled by %'"),
                     1);
    assert_int_equal(in_blocks(), 0);
}

static void read_hex(const char *text, uint8_t *ret, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], 0};
        ret[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
}

static bool is_state(struct site *s, const char *state)
{
    site_tables_poll(s->tables, POLL);
    return !strcmp(sql(s, "SELECT state FROM txrelay.site_transactions"), state);
}

/* A block has its bytes, then a fork of the same height, then another one without them. */
static void the_best_chain_is_seen_by_those_who_read_statuses(void **state)
{
    struct site *s = &sites[2];
    uint64_t first = world->chain.final + 1;
    uint8_t hashes[1][32] = {{1}};
    struct site_tables_seen seen = {.number = first, .block = {1}};
    struct site_tables_best best = {
        .first = first, .hashes = (const uint8_t(*)[32])hashes, .count = 1, .seen = &seen};
    (void)state;
    enqueue(s, 1);
    WAIT_FOR(world->loop, is_state(s, "broadcast"));
    loop_timer_stop(world->block);
    if (!is_state(s, "broadcast"))
        return; /* it was final already */
    read_hex(sql(s, "SELECT encode(hash, 'hex') FROM txrelay.site_transactions"), seen.hash, 32);
    best.seen_count = 1;
    assert_false(site_tables_best_has(s->tables, hashes[0]));
    site_tables_best(s->tables, &best);
    WAIT_FOR(world->loop, is_state(s, "in_block"));
    assert_true(site_tables_best_has(s->tables, hashes[0]));
    hashes[0][0] = seen.block[0] = 2;
    site_tables_best(s->tables, &best);
    hashes[0][0] = seen.block[0] = 3;
    best.seen_count = 0;
    site_tables_best(s->tables, &best);
    WAIT_FOR(world->loop, is_state(s, "retracted"));
    assert_string_equal(sql(s, "SELECT string_agg(substr(error, 7, 4), ',' ORDER BY error) FROM "
                               "txrelay.refusals"),
                        "0x01,0x02");
    loop_timer_at(world->block, loop_now_ms(world->loop));
    check_all();
}

static int open_all(void **state)
{
    (void)state;
    certs_open(&certs);
    certs_add(&certs, "a", "DNS:a");
    certs_add(&certs, "b", "DNS:b");
    certs_add(&certs, "c", "DNS:c");
    for (uint32_t i = 0; i < HOSTS; i++) {
        fx_pg_start(&servers[i], "");
        fx_migrate(servers[i].dsn);
        free(fx_pg_sql(&servers[i], "CREATE ROLE relay LOGIN IN ROLE txrelay_relay"));
    }
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < HOSTS; i++)
        fx_pg_stop(&servers[i]);
    certs_close(&certs);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as main() does */
    const struct CMUnitTest tests[] = {
        TEST(three_databases_send_through_one_account),
        TEST(the_coordinators_relay_is_replaced),
        TEST(a_site_is_away_and_comes_back),
        TEST(an_older_leader_writes_nothing),
        TEST(what_is_stopped_ends_in_its_database),
        TEST(the_best_chain_is_seen_by_those_who_read_statuses),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
