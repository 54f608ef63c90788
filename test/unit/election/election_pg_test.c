/* Several relays' elections in one process against a real Postgres: who leads, and how leadership
 * moves when sessions end, holders hang, claims are changed behind the back, and the database
 * restarts. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "election/election.h"
#include "store/lead.h"
#include "store/migrate.h"

enum { HEARTBEAT = 200, EXPIRY_1 = 2000, EXPIRY_2 = 4000, MARGIN = 300 };

static struct fx_pg pg;
static struct loop *loop;
static int open_gates
    [2]; /* of all nodes, by account: never above one, except as said at `allow_overlap` */
static bool allow_overlap;

struct node {
    struct store *store;
    struct election *election;
    char name[32], address[40];
    bool store_up, added, closed, store_closed, drained, use_lock;
    int32_t rows[2];
    int64_t epoch[2], last_epoch[2];
    bool gate[2];
    int promotions[2], demotions[2];
    char reason[200];
};

static const int64_t lock_keys[2] = {7001, 7002};

/* ---- one relay ---- */

static void on_state(void *arg, enum store_state state, const struct err *err)
{
    struct node *n = arg;
    (void)err;
    n->store_up = state == STORE_UP;
    if (n->added)
        election_store_state(n->election, state);
}

static void on_control_lost(void *arg)
{
    struct node *n = arg;
    if (n->added)
        election_control_lost(n->election);
}

static void on_promote(void *arg, int account, int64_t epoch)
{
    struct node *n = arg;
    assert_true(epoch > n->last_epoch[account]);
    n->epoch[account] = n->last_epoch[account] = epoch;
    n->promotions[account]++;
}

static void on_demote(void *arg, int account, const char *reason)
{
    struct node *n = arg;
    assert_false(n->gate[account]); /* the gate shut before */
    n->epoch[account] = 0;
    n->demotions[account]++;
    snprintf(n->reason, sizeof(n->reason), "%s", reason);
}

static void on_gate(void *arg, int account, bool open, const char *reason)
{
    struct node *n = arg;
    assert_non_null(reason);
    assert_int_not_equal(n->gate[account], open);
    n->gate[account] = open;
    open_gates[account] += open ? 1 : -1;
    assert_true(open_gates[account] <= 1 || allow_overlap);
}

static void on_registered(struct store_req *req)
{
    assert_int_equal(req->err.code, 0);
    store_req_done(req);
}

static void node_start(struct node *n, const char *name, bool use_lock)
{
    *n = (struct node){.use_lock = use_lock};
    snprintf(n->name, sizeof(n->name), "%s", name);
    snprintf(n->address, sizeof(n->address), "tcp:%s:1", name);
    n->store = store_pg_new(loop, &(struct store_pg_config){.control_dsn = pg.dsn,
                                                            .application_name = n->name,
                                                            .use_lock = use_lock,
                                                            .on_state = on_state,
                                                            .on_control_lost = on_control_lost,
                                                            .arg = n});
    n->election = election_new(loop, n->store,
                               &(struct election_config){.core = {.use_lock = use_lock,
                                                                  .heartbeat_ms = HEARTBEAT,
                                                                  .expiry_1_ms = EXPIRY_1,
                                                                  .expiry_2_ms = EXPIRY_2,
                                                                  .margin_ms = MARGIN},
                                                         .holder = n->name,
                                                         .address = n->address,
                                                         .on_promote = on_promote,
                                                         .on_demote = on_demote,
                                                         .on_gate = on_gate,
                                                         .arg = n});
    store_open(n->store);
    WAIT_FOR(loop, n->store_up);
    static const uint8_t ids[2][32] = {{1}, {2}}, genesis[32] = {9};
    static const char *const aliases[2] = {"alice", "bob"};
    for (int i = 0; i < 2; i++) {
        struct store_enroll r = {.alias = aliases[i],
                                 .scheme = "sr25519",
                                 .address = aliases[i],
                                 .account_id = {ids[i], 32},
                                 .genesis = {genesis, 32},
                                 .lock_key = lock_keys[i],
                                 .era_longest = 64};
        store_enroll_start(n->store, &r, on_registered);
        WAIT_FOR(loop, r.account != 0);
        n->rows[i] = r.account;
        assert_int_equal(election_add(n->election, r.account, lock_keys[i], aliases[i]), i);
    }
    n->added = true;
    election_store_state(n->election, STORE_UP);
}

static void set_true(void *arg)
{
    *(bool *)arg = true;
}

static void node_stop(struct node *n, bool drain)
{
    if (drain) {
        election_drain(n->election, set_true, &n->drained);
        assert_false(n->drained);
        WAIT_FOR(loop, n->drained);
    }
    for (int i = 0; i < 2; i++) {
        open_gates[i] -= n->gate[i];
        n->gate[i] = false;
    }
    election_close(n->election, set_true, &n->closed);
    n->added = false;
    WAIT_FOR(loop, n->closed);
    store_close(n->store, set_true, &n->store_closed);
    WAIT_FOR(loop, n->store_closed);
}

static int leader_of(struct node *nodes, int count, int account)
{
    int leader = -1;
    for (int i = 0; i < count; i++)
        if (nodes[i].epoch[account] && election_gate(nodes[i].election, account))
            leader = i;
    return leader;
}

static void sql(const char *text)
{
    free(fx_pg_sql(&pg, text));
    fx_step(loop); /* psql blocked it: its clock is behind */
}

/* ---- tests ---- */

/* One leads, the other one follows and knows who leads and where. */
static void one_leads(void **state)
{
    (void)state;
    struct node n[2];
    node_start(&n[0], "one", true);
    WAIT_FOR(loop, n[0].gate[0] && n[0].gate[1]);
    node_start(&n[1], "two", true);
    const char *address = NULL;
    struct election_stats stats;
    for (int a = 0; a < 2; a++) {
        WAIT_FOR(loop, !strcmp(election_leader(n[1].election, a, &address), "one"));
        assert_string_equal(address, "tcp:one:1");
        assert_string_equal(election_leader(n[0].election, a, NULL), "one");
        election_stats(n[1].election, a, &stats);
        assert_int_not_equal(stats.state, ELECTOR_LEADER);
        assert_int_equal(stats.epoch, 0);
        election_stats(n[0].election, a, &stats);
        assert_int_equal(stats.state, ELECTOR_LEADER);
    }
    /* Several renewals later it is still so, under the same epoch. */
    int64_t epoch = n[0].epoch[0];
    election_stats(n[0].election, 0, &stats);
    uint64_t first = stats.renewed_at_ms;
    WAIT_FOR(loop, (election_stats(n[0].election, 0, &stats),
                    stats.renewed_at_ms > first + 2 * EXPIRY_1));
    assert_int_equal(stats.epoch, epoch);
    assert_int_equal(n[0].promotions[0], 1);
    assert_int_equal(n[1].promotions[0] + n[1].promotions[1], 0);
    node_stop(&n[0], true);
    node_stop(&n[1], true);
}

/* A drained leader is followed within the bid interval. */
static void drain_hands_over(void **state)
{
    (void)state;
    struct node n[2];
    node_start(&n[0], "one", true);
    WAIT_FOR(loop, n[0].gate[0] && n[0].gate[1]);
    node_start(&n[1], "two", true);
    int64_t epoch = n[0].epoch[0];
    node_stop(&n[0], true);
    uint64_t begun = loop_now_ms(loop);
    WAIT_FOR(loop, n[1].gate[0] && n[1].gate[1]);
    assert_true(n[1].epoch[0] == epoch + 1);
    assert_true(loop_now_ms(loop) - begun <
                EXPIRY_1); /* the lock was free: no expiry was waited for */
    node_stop(&n[1], true);
}

/* The end of the lock session ends the role, and the other one takes over without waiting. */
static void terminated_session(void **state)
{
    (void)state;
    struct node n[2];
    node_start(&n[0], "one", true);
    WAIT_FOR(loop, n[0].gate[0] && n[0].gate[1]);
    node_start(&n[1], "two", true);
    WAIT_FOR(loop, !strcmp(election_leader(n[1].election, 0, NULL), "one"));
    int64_t epoch = n[0].epoch[0];
    allow_overlap = true; /* the lock is free some moments before its owner hears that */
    sql("SELECT pg_terminate_backend(lock_pid) FROM txrelay.leadership WHERE lock_key = 7001");
    WAIT_FOR(loop, n[0].demotions[0] == 1 && n[0].demotions[1] == 1);
    assert_non_null(strstr(n[0].reason, "control session"));
    allow_overlap = false;
    for (int a = 0; a < 2; a++) {
        WAIT_FOR(loop, leader_of(n, 2, a) >= 0);
        assert_true(n[leader_of(n, 2, a)].epoch[a] > (a == 0 ? epoch : 0));
    }
    node_stop(&n[0], true);
    node_stop(&n[1], true);
}

/* A holder that hangs keeps its lock; it is replaced after its expiry and not before. */
static void hung_holder(void **state)
{
    (void)state;
    struct fx_conn hung;
    struct conn_config config;
    fx_conn_config(&hung, &config, pg.dsn);
    hung.c = conn_new(loop, &config);
    conn_open(hung.c);
    WAIT_FOR(loop, hung.ups);
    struct fx_query q = {0};
    fx_query(hung.c, &q, NULL, "SELECT pg_advisory_lock(7001)");
    WAIT_FOR(loop, q.done);
    fx_query(hung.c, &q, NULL,
             "SELECT granted FROM txrelay.accounts a, txrelay.leader_claim(a.account, 'hung', 'x', "
             "true, 1500, 3000) WHERE alias = 'alice'");
    WAIT_FOR(loop, q.done);
    assert_string_equal(q.text, "t");
    uint64_t claimed = loop_now_ms(loop);

    struct node n[2];
    node_start(&n[0], "one", true);
    node_start(&n[1], "two", true);
    WAIT_FOR(loop, leader_of(n, 2, 1) >= 0); /* the other account is not in the way of it (I10) */
    WAIT_FOR(loop, leader_of(n, 2, 0) >= 0);
    uint64_t taken = loop_now_ms(loop) - claimed;
    assert_true(taken >= 1400);
    print_message("hung holder replaced %llu ms after a claim of 1500 ms\n",
                  (unsigned long long)taken);
    WAIT_FOR(loop, hung.downs > 0);
    struct election_stats stats;
    uint64_t evicted = 0;
    for (int i = 0; i < 2; i++) {
        election_stats(n[i].election, 0, &stats);
        evicted += stats.evicted_total;
    }
    assert_int_equal(evicted, 1);
    node_stop(&n[0], true);
    node_stop(&n[1], true);
    fx_conn_close(loop, &hung);
}

/* What is held is what the table says. */
static void claim_changed_behind_the_back(void **state)
{
    (void)state;
    struct node n;
    node_start(&n, "one", true);
    WAIT_FOR(loop, n.gate[0] && n.gate[1]);
    int64_t epoch = n.epoch[0];
    sql("UPDATE txrelay.leadership SET holder = 'other', epoch = epoch + 1 WHERE lock_key = 7001");
    WAIT_FOR(loop, n.demotions[0] == 1);
    assert_non_null(strstr(n.reason, "refused"));
    assert_int_equal(n.demotions[1], 0);
    /* The row says that it was claimed with the lock, which is ours to take: it leads again, above
     * that. */
    WAIT_FOR(loop, n.gate[0]);
    assert_true(n.epoch[0] == epoch + 2);
    node_stop(&n, true);
}

/* A write that was refused as stale ends the role of that account alone; it is bid for again. */
static void stale_write(void **state)
{
    (void)state;
    struct node n;
    node_start(&n, "one", true);
    WAIT_FOR(loop, n.gate[0] && n.gate[1]);
    int64_t epoch = n.epoch[1];
    election_stale(n.election, 1);
    assert_false(election_gate(n.election, 1));
    assert_int_equal(n.demotions[1], 1);
    WAIT_FOR(loop, n.gate[1]);
    assert_true(n.epoch[1] == epoch + 1);
    assert_int_equal(n.demotions[0], 0);
    node_stop(&n, true);
}

/* The database restarts; leadership is there again, never twice. */
static void database_restart(void **state)
{
    (void)state;
    struct node n[2];
    node_start(&n[0], "one", true);
    WAIT_FOR(loop, n[0].gate[0] && n[0].gate[1]);
    node_start(&n[1], "two", true);
    int64_t epoch = n[0].epoch[0];
    fx_pg_restart(&pg, "fast");
    fx_step(loop);
    WAIT_FOR(loop, n[0].demotions[0] == 1 && n[0].demotions[1] == 1);
    for (int a = 0; a < 2; a++)
        WAIT_FOR(loop, leader_of(n, 2, a) >= 0);
    assert_true(n[leader_of(n, 2, 0)].epoch[0] > epoch);
    node_stop(&n[0], true);
    node_stop(&n[1], true);
}

/* Without locks the claim alone decides; a holder that is gone is replaced after its expiry.
 */
static void without_locks(void **state)
{
    (void)state;
    struct node n[2];
    node_start(&n[0], "one", false);
    WAIT_FOR(loop, n[0].gate[0] && n[0].gate[1]);
    node_start(&n[1], "two", false);
    WAIT_FOR(loop, !strcmp(election_leader(n[1].election, 0, NULL), "one"));
    uint64_t gone = loop_now_ms(loop);
    node_stop(&n[0], false); /* like a crash: nothing is released */
    WAIT_FOR(loop, n[1].gate[0] && n[1].gate[1]);
    uint64_t taken = loop_now_ms(loop) - gone;
    print_message("crashed holder without lock replaced after %llu ms, expiry %d ms\n",
                  (unsigned long long)taken, EXPIRY_1);
    assert_true(taken + 2 * HEARTBEAT + MARGIN >= EXPIRY_1);
    node_stop(&n[1], true);
}

static int setup(void **state)
{
    (void)state;
    log_set_level(LOG_LEVEL_ERROR);
    fx_pg_start(&pg, "");
    loop = loop_new(); /* after it: what blocks the loop's thread lets its clock fall behind */
    return 0;
}

struct migration {
    struct migrate m;
    bool done;
};

static void migrated(struct migrate *m)
{
    CONTAINER_OF(m, struct migration, m)->done = true;
}

static void migrate(void **state)
{
    (void)state;
    struct migration m = {0};
    migrate_start(loop, &m.m, pg.dsn, migrated);
    WAIT_FOR(loop, m.done);
    if (m.m.err.code)
        fail_msg("%s", m.m.err.text);
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
        cmocka_unit_test(migrate),          cmocka_unit_test(one_leads),
        cmocka_unit_test(drain_hands_over), cmocka_unit_test(terminated_session),
        cmocka_unit_test(hung_holder),      cmocka_unit_test(claim_changed_behind_the_back),
        cmocka_unit_test(stale_write),      cmocka_unit_test(database_restart),
        cmocka_unit_test(without_locks),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
