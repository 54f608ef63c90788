/* The memory store and Postgres keep the same contract: every test runs against both. */
#include "contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_internal.h"

static struct fx_pg pg;
static char relay_dsn[300]; /* with no more rights than a relay needs */

static int suite_setup(void **state)
{
    (void)state;
    fx_pg_start(&pg, "");
    fx_migrate(pg.dsn);
    free(fx_pg_sql(&pg, "CREATE ROLE relay LOGIN IN ROLE txrelay_relay"));
    snprintf(relay_dsn, sizeof(relay_dsn), "host=%s port=5432 user=relay dbname=postgres", pg.dir);
    return 0;
}

static int suite_teardown(void **state)
{
    (void)state;
    fx_pg_stop(&pg);
    return 0;
}

struct fx_store x;
struct fx_account a;

static int open_account(void)
{
    fx_store_up(&x);
    fx_account_new(&x, &a);
    fx_account_claim(&x, &a, "me");
    return 0;
}

static int setup_mem(void **state)
{
    (void)state;
    fx_store_mem(&x, loop_new());
    return open_account();
}

static int setup_pg(void **state)
{
    (void)state;
    struct store_pg_config config = {.control_dsn = relay_dsn, .use_lock = true};
    fx_store_pg(&x, loop_new(), &config);
    return open_account();
}

static int teardown(void **state)
{
    (void)state;
    fx_store_close(&x);
    assert_int_equal(loop_open_handles(x.l), 0);
    loop_free(x.l);
    return 0;
}

static const uint8_t some_bytes[3] = {0xaa, 1};

/* ---- accounts, claims ---- */

static void test_enroll(void **state)
{
    (void)state;
    uint8_t id[20] = {9}, genesis[32] = {7};
    memcpy(id + 1, a.alias, 16);
    struct store_enroll r = {.alias = "twenty",
                             .scheme = "ethereum",
                             .address = "0x09",
                             .account_id = {id, 20},
                             .genesis = {genesis, 32},
                             .lock_key = a.lock_key ^ (INT64_C(1) << 62),
                             .era_longest = 64};
    char alias[40];
    snprintf(alias, sizeof(alias), "twenty-%s", a.alias);
    r.alias = alias;
    RUN_OK(&x, enroll, &r);
    int32_t first = r.account;
    assert_int_not_equal(first, a.account);
    RUN_OK(&x, enroll, &r); /* again: the same account */
    assert_int_equal(r.account, first);
    id[0] = 8;
    RUN(&x, enroll, &r); /* another id under the alias */
    assert_int_equal(r.req.err.code, ERR_ARGUMENT);
    id[0] = 9;
    r.alias = a.alias;
    RUN(&x, enroll, &r); /* another alias for the id */
    assert_int_equal(r.req.err.code, ERR_ARGUMENT);
    assert_non_null(strstr(r.req.err.text, a.alias));
    r.genesis.len = 31;
    RUN(&x, enroll, &r);
    assert_int_equal(r.req.err.code, ERR_ARGUMENT);
}

static struct store_claim claim_of(const char *holder, uint32_t expiry_1_ms, uint32_t expiry_2_ms)
{
    return (struct store_claim){.account = a.account,
                                .holder = holder,
                                .address = "host:2",
                                .expiry_1_ms = expiry_1_ms,
                                .expiry_2_ms = expiry_2_ms};
}

/* A lock is held once however often it is asked for, and one unlock frees it; what is asked at once
 * takes turns. */
static struct store_req *seen[64];
static size_t view_count;
static void on_seen(struct store_req *req)
{
    seen[view_count++] = req;
}

static void test_lock(void **state)
{
    (void)state;
    struct store_lock r[6];
    view_count = 0;
    for (int i = 0; i < 6; i++) {
        r[i] = (struct store_lock){.lock_key = a.lock_key, .got = i == 3 || i == 5};
        if (i == 3 || i == 5)
            store_unlock_start(x.s, &r[i], on_seen);
        else
            store_lock_start(x.s, &r[i], on_seen);
    }
    WAIT_FOR(x.l, view_count == 6);
    for (int i = 0; i < 6; i++) {
        assert_ptr_equal(seen[i], &r[i].req);
        assert_int_equal(r[i].req.err.code, 0);
        assert_int_equal(r[i].got, i != 3 && i != 5);
    }
}

/* A claim in force is refused to others and renewed by its holder; each grant raises the epoch. */
static void test_claim(void **state)
{
    (void)state;
    struct store_claim other = claim_of("other", 60000, 60000);
    RUN_OK(&x, claim, &other);
    assert_false(other.granted);
    assert_int_equal(other.epoch, a.epoch);
    assert_string_equal(other.current_holder, "me");
    assert_string_equal(other.current_address, "host:1");
    assert_true(other.lock_held);
    assert_false(other.mid_submission);
    assert_in_range(other.expiry_1_left_ms, 1, 60000);
    assert_in_range(other.expiry_2_left_ms, 60000, 120000);
    store_req_done(&other.req);

    struct store_claim mine = claim_of("me", 60000, 60000);
    mine.have_lock = true;
    RUN_OK(&x, claim, &mine);
    assert_true(mine.granted);
    assert_int_equal(mine.epoch, a.epoch + 1);
    store_req_done(&mine.req);

    struct store_claim unknown = claim_of("me", 60000, 60000), wrong = claim_of("me", 60000, 1);
    unknown.account = 99999;
    RUN(&x, claim, &unknown);
    assert_int_equal(unknown.req.err.code, ERR_ARGUMENT);
    RUN(&x, claim, &wrong);
    assert_int_equal(wrong.req.err.code, ERR_ARGUMENT);
}

/* A healthy holder is not evicted; the answer says who it is. */
static void test_evict(void **state)
{
    (void)state;
    struct store_evict r = {.lock_key = a.lock_key},
                       unknown = {.lock_key = a.lock_key + (INT64_C(1) << 50)};
    RUN_OK(&x, evict, &r);
    assert_false(r.terminated);
    assert_string_equal(r.current_holder, "me");
    assert_string_equal(r.current_address, "host:1");
    assert_int_equal(r.epoch, a.epoch);
    assert_in_range(r.expiry_1_left_ms, 1, 60000);
    store_req_done(&r.req);
    RUN_OK(&x, evict, &unknown);
    assert_false(unknown.terminated);
    assert_string_equal(unknown.current_holder, "");
    store_req_done(&unknown.req);
}

/* One look at many accounts: in the order of the question; what is known and in force is left
 * out. */
static void test_scan(void **state)
{
    (void)state;
    struct fx_account mine, unclaimed;
    fx_account_new(&x, &unclaimed);
    fx_account_new(&x, &mine);
    fx_account_claim(&x, &mine, "me");
    const int32_t accounts[] = {mine.account, 99999, unclaimed.account, a.account};
    int64_t epochs[] = {mine.epoch, -1, -1, a.epoch - 1};
    struct store_scan r = {.count = 4, .accounts = accounts, .epochs = epochs};
    RUN_OK(&x, scan, &r);
    assert_int_equal(r.view_count, 2);
    assert_int_equal(r.seen[0].index, 2);
    assert_false(r.seen[0].taken);
    assert_string_equal(r.seen[0].holder, "");
    assert_int_equal(r.seen[1].index, 3);
    assert_true(r.seen[1].taken);
    assert_true(r.seen[1].lock_held);
    assert_string_equal(r.seen[1].holder, "me");
    assert_string_equal(r.seen[1].address, "host:1");
    assert_int_equal(r.seen[1].epoch, a.epoch);
    assert_in_range(r.seen[1].expiry_1_left_ms, 1, 60000);
    assert_in_range(r.seen[1].expiry_2_left_ms, 60000, 120000);
    store_req_done(&r.req);

    struct store_lock drop = {.lock_key =
                                  mine.lock_key}; /* a claim with the lock, and the lock is gone */
    RUN_OK(&x, unlock, &drop);
    epochs[3] = a.epoch;
    RUN_OK(&x, scan, &r);
    assert_int_equal(r.view_count, 2);
    assert_int_equal(r.seen[0].index, 0);
    assert_false(r.seen[0].taken);
    assert_int_equal(r.seen[0].epoch, mine.epoch);
    assert_int_equal(r.seen[1].index, 2);
    store_req_done(&r.req);
    r.count = 0;
    RUN_OK(&x, scan, &r);
    assert_int_equal(r.view_count, 0);
    store_req_done(&r.req);
}

static size_t told(struct store_scan *r)
{
    RUN_OK(&x, scan, r);
    size_t count = r->view_count;
    store_req_done(&r->req);
    return count;
}

/* The same question again tells nothing while nothing has changed, and what has changed at once. */
static void test_scan_again(void **state)
{
    (void)state;
    struct fx_account mine;
    fx_account_new(&x, &mine);
    fx_account_claim(&x, &mine, "me");
    const int32_t accounts[] = {mine.account, a.account};
    int64_t epochs[] = {mine.epoch, a.epoch};
    struct store_scan r = {.count = 2, .accounts = accounts, .epochs = epochs}, less = r;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(told(&r), 0);
    fx_account_claim(&x, &mine, "me");
    assert_int_equal(told(&r), 1);
    assert_int_equal(told(&r), 1);
    epochs[0] = mine.epoch;
    assert_int_equal(told(&r), 0);
    assert_int_equal(told(&r), 0);
    struct store_release end = {.account = mine.account, .epoch = mine.epoch, .holder = "me"};
    less.count = 1;
    RUN_OK(&x, release, &end);
    store_req_done(&end.req);
    assert_int_equal(told(&r), 1);
    assert_int_equal(told(&less), 1);
    less.accounts++;
    less.epochs++;
    assert_int_equal(told(&less), 0); /* another question, with the same fingerprint */
    assert_int_equal(told(&r), 1);
}

static int64_t beat_at(const char *holder, int64_t serves, uint32_t ttl_ms, bool leave,
                       int64_t best, const char *expected)
{
    char list[128] = "";
    struct store_member r = {.holder = holder,
                             .address = "host:1",
                             .serves = serves,
                             .ttl_ms = ttl_ms,
                             .leave = leave,
                             .best = best};
    RUN_OK(&x, member, &r);
    for (size_t i = 0; i < r.count; i++) {
        size_t n = strlen(list);
        snprintf(list + n, sizeof(list) - n, "%s%s", n ? " " : "", r.holders[i]);
    }
    assert_string_equal(list, expected);
    store_req_done(&r.req);
    return r.best_known;
}

static void beat(const char *holder, int64_t serves, uint32_t ttl_ms, bool leave,
                 const char *expected)
{
    beat_at(holder, serves, ttl_ms, leave, -1, expected);
}

/* Members tell each other of the highest block that one of them heard of. */
static void test_members_best(void **state)
{
    (void)state;
    int64_t ours = a.lock_key;
    assert_int_equal(beat_at("a", ours, 60000, false, -1, "a"), -1);
    assert_int_equal(beat_at("b", ours, 60000, false, 7, "a b"), 7);
    assert_int_equal(beat_at("a", ours, 60000, false, 5, "a b"), 7);
    assert_int_equal(beat_at("c", ours + 1, 60000, false, 3, "c"), 3);
    /* The height of one that has left is known for a minute. */
    assert_int_equal(beat_at("a", ours, 60000, false, INT64_MAX, "a b"), INT64_MAX);
    assert_int_equal(beat_at("a", ours, 60000, true, -1, "b"), INT64_MAX);
    assert_int_equal(beat_at("b", ours, 60000, false, -1, "b"), INT64_MAX);
    beat("b", ours, 60000, true, "");
    beat("c", ours + 1, 60000, true, "");
}

/* Members are those that serve the same accounts and were heard of within the time; who leaves is
 * gone at once. */
static void test_members(void **state)
{
    (void)state;
    int64_t ours = a.lock_key;
    beat("b", ours, 60000, false, "b");
    beat("a", ours, 60000, false, "a b");
    beat("c", ours + 1, 60000, false, "c");
    beat("B", ours, 60000, false, "B a b");
    beat("a", ours, 60000, true, "B b");
    beat("b", ours, 60000, false, "B b");
    uint64_t until = loop_now_ms(x.l) + 20;
    WAIT_FOR(x.l, loop_now_ms(x.l) > until);
    beat("b", ours, 10, false, "b"); /* B was not heard of for longer than that */
    beat("b", ours, 60000, true, "B");
    beat("B", ours, 60000, true, "");
    beat("c", ours + 1, 60000, true, "");
}

/* Renewal answers per account: the epoch, the holder and the lock must be right. */
static void test_renew(void **state)
{
    (void)state;
    struct fx_account b;
    fx_account_new(&x, &b);
    fx_account_claim(&x, &b, "me");
    struct fx_account unlocked;
    fx_account_new(&x, &unlocked);
    fx_account_claim(&x, &unlocked, "me");
    struct store_lock drop = {.lock_key = unlocked.lock_key};
    RUN_OK(&x, unlock, &drop);
    const int32_t accounts[] = {unlocked.account, a.account, b.account, 99999};
    const int64_t epochs[] = {unlocked.epoch, a.epoch, b.epoch - 1, 1};
    const int64_t keys[] = {unlocked.lock_key, a.lock_key, b.lock_key, 5};
    bool renewed[4] = {true, false, true, true};
    struct store_renew r = {.holder = "me",
                            .count = 4,
                            .accounts = accounts,
                            .epochs = epochs,
                            .lock_keys = keys,
                            .expiry_1_ms = 60000,
                            .expiry_2_ms = 60000,
                            .renewed = renewed};
    RUN_OK(&x, renew, &r);
    assert_false(renewed[0]); /* its lock is lost */
    assert_true(renewed[1]);
    assert_false(renewed[2]);
    assert_false(renewed[3]);
    r.lock_keys = NULL; /* locks are not used */
    RUN_OK(&x, renew, &r);
    assert_true(renewed[0]);
    assert_true(renewed[1]);
    r.holder = "other";
    RUN_OK(&x, renew, &r);
    assert_false(renewed[1]);
    r.count = 0;
    RUN_OK(&x, renew, &r);
}

enum { MANY = 210 };

/* Renews all of them; how many were, and is `odd` (-1: none) the only one that was not? */
static size_t renewed_but(struct store_renew *r, int odd)
{
    size_t count = 0;
    RUN_OK(&x, renew, r);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(r->renewed[i], i != odd);
        count += r->renewed[i];
    }
    return count;
}

/* With many accounts not all is asked each time; what is told is the same. */
static void test_renew_many(void **state)
{
    (void)state;
    static struct fx_account many[MANY];
    int32_t accounts[MANY];
    int64_t epochs[MANY], keys[MANY];
    bool renewed[MANY];
    for (size_t i = 0; i < MANY; i++) {
        fx_account_new(&x, &many[i]);
        fx_account_claim(&x, &many[i], "me");
        accounts[i] = many[i].account;
        epochs[i] = many[i].epoch;
        keys[i] = many[i].lock_key;
    }
    struct store_renew r = {.holder = "me",
                            .count = MANY,
                            .accounts = accounts,
                            .epochs = epochs,
                            .lock_keys = keys,
                            .expiry_1_ms = 60000,
                            .expiry_2_ms = 60000,
                            .renewed = renewed};
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(renewed_but(&r, -1), MANY);
    fx_account_claim(&x, &many[7], "me");
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(renewed_but(&r, 7), MANY - 1);
    epochs[7] = many[7].epoch;
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(renewed_but(&r, -1), MANY);
    struct store_lock drop = {.lock_key = keys[9]};
    RUN_OK(&x, unlock, &drop);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(renewed_but(&r, 9), MANY - 1);
}

/* Which requests were refused under an old epoch; with those that carry none they must be all that
 * there are. */
static char refused[400];
#define REFUSED(name, r)                                                                           \
    do {                                                                                           \
        RUN(&x, name, r);                                                                          \
        assert_int_equal((r)->req.err.code, ERR_LOST_LEADERSHIP);                                  \
        snprintf(refused + strlen(refused), sizeof(refused) - strlen(refused), " " #name " ");     \
    } while (0)

static void nothing_is_left_out(void)
{
    static const char unfenced[] =
        " enroll  lock  unlock  claim  renew  release  evict  scan  member  doorbell_arm "
        " doorbell_disarm  due  obstacles  relay_obstacle  enqueue  cancel  bump  retry  resume  "
        "drained ";
    static const char *const all[] = {
#define X(name, type) " " #name " ",
        STORE_REQUESTS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (!strstr(refused, all[i]) == !strstr(unfenced, all[i]))
            fail_msg("request%sis in none or both of the lists", all[i]);
}

/* An expired claim goes to another holder; the old epoch is refused everywhere from then on. */
static void test_fencing(void **state)
{
    (void)state;
    refused[0] = 0;
    fx_admit(&x, &a, 5, 1);
    int64_t left = fx_enqueue(&x, &a, "left", 0);
    struct store_lock drop = {.lock_key = a.lock_key};
    struct store_release gone = {.account = a.account, .epoch = a.epoch, .holder = "me"};
    RUN_OK(&x, unlock, &drop);
    RUN_OK(&x, release, &gone);
    assert_true(gone.released);
    RUN_OK(&x, release, &gone); /* only once */
    assert_false(gone.released);
    struct store_claim other = claim_of("other", 60000, 60000);
    RUN_OK(&x, claim, &other);
    assert_true(other.granted);
    assert_int_equal(other.epoch, a.epoch + 1);
    store_req_done(&other.req);

    struct store_attempt_row row = {.id = left,
                                    .nonce = 6,
                                    .extrinsic = {some_bytes, 3},
                                    .call = {some_bytes, 3},
                                    .era_birth = -1,
                                    .era_death = -1,
                                    .outcome = "failed",
                                    .hash = {1}};
    struct store_attempts w = {
        .account = a.account, .epoch = a.epoch, .block = 1, .count = 1, .rows = &row};
    REFUSED(admit, &w);
    REFUSED(admit_signed, &w);
    row.nonce = 5;
    REFUSED(attempt, &w);
    REFUSED(fill, &w);
    struct tx_report st = {.nonce = 5, .state = "ready", .block_number = -1};
    struct store_states states = {.account = a.account, .epoch = a.epoch, .count = 1, .rows = &st};
    REFUSED(state, &states);
    struct tx_end end = {.nonce = 5, .id = left, .outcome = "failed"};
    struct store_finish finish = {.account = a.account, .epoch = a.epoch, .count = 1, .rows = &end};
    REFUSED(finish, &finish);
    REFUSED(reject, &finish);
    REFUSED(requeue, &finish);
    struct store_nonce nonce = {.account = a.account, .epoch = a.epoch, .next_nonce = 9};
    REFUSED(nonce, &nonce);
    struct store_pause pause = {
        .account = a.account, .epoch = a.epoch, .suspension = "payment", .reason = "x"};
    REFUSED(pause, &pause);
    struct store_snapshot snap = {
        .account = a.account, .epoch = a.epoch, .after_nonce = -1, .limit = 10};
    REFUSED(snapshot, &snap);
    struct store_outbox box = {.account = a.account, .epoch = a.epoch, .limit = 10};
    REFUSED(outbox, &box);
    struct store_adopt adopt = {.account = a.account, .epoch = a.epoch, .done = true};
    REFUSED(adopt, &adopt);
    struct store_heard heard = {.account = a.account, .epoch = a.epoch, .heard = 1};
    REFUSED(heard, &heard);
    struct store_poll_requests look = {.account = a.account, .epoch = a.epoch};
    REFUSED(poll_requests, &look);
    struct tx_note read = {.id = left, .nonce = 6, .era_death = -1, .text = "waits"};
    struct store_note note = {.account = a.account, .epoch = a.epoch, .count = 1, .rows = &read};
    REFUSED(note, &note);
    nothing_is_left_out();
    bool renewed = true;
    struct store_renew renew = {.holder = "me",
                                .count = 1,
                                .accounts = &a.account,
                                .epochs = &a.epoch,
                                .expiry_1_ms = 60000,
                                .expiry_2_ms = 60000,
                                .renewed = &renewed};
    RUN_OK(&x, renew, &renew);
    assert_false(renewed);
    int64_t unknown = -1;
    struct store_due due = {.count = 1,
                            .accounts = &a.account,
                            .epochs = &a.epoch,
                            .fingerprints = &unknown,
                            .ahead_ms = 1000};
    RUN_OK(&x, due, &due);
    assert_int_equal(due.want_count, 1);
    assert_true(due.wants[0].lost);
    assert_false(due.wants[0].has_rows); /* though a row is there */
    store_req_done(&due.req);
}

/* A hung holder that is mid-submission is replaced after the second expiry, else after the
 * first. */
static bool try_claim(const char *holder, bool *ret_mid)
{
    struct store_claim c = claim_of(holder, 60000, 60000);
    RUN_OK(&x, claim, &c);
    *ret_mid |= c.mid_submission;
    bool granted = c.granted;
    store_req_done(&c.req);
    return granted;
}

/* A renewal may shorten a lease; a claim does not. */
static void let_expire(const char *holder)
{
    bool renewed = false;
    struct store_renew renew = {.holder = holder,
                                .count = 1,
                                .accounts = &a.account,
                                .epochs = &a.epoch,
                                .expiry_1_ms = 30,
                                .expiry_2_ms = 400,
                                .block = -1,
                                .renewed = &renewed};
    RUN_OK(&x, renew, &renew);
    assert_true(renewed);
}

static void test_expiry(void **state)
{
    (void)state;
    struct store_lock drop = {.lock_key = a.lock_key};
    let_expire("me");
    RUN_OK(&x, unlock, &drop);
    bool mid = false;
    WAIT_FOR(x.l, try_claim("second", &mid));
    assert_false(mid); /* nothing was on its way */

    struct store_claim mine = claim_of("second", 60000, 60000);
    RUN_OK(&x, claim, &mine);
    a.epoch = mine.epoch;
    store_req_done(&mine.req);
    fx_admit(&x, &a, 0, 1); /* signed: it may have been sent */
    let_expire("second");
    uint64_t since = loop_now_ms(x.l);
    WAIT_FOR(x.l, try_claim("third", &mid));
    assert_true(mid);
    assert_true(loop_now_ms(x.l) - since >= 350);
}

static void test_doorbell(void **state)
{
    (void)state;
    struct store_doorbell r = {.account = a.account};
    RUN_OK(&x, doorbell_arm, &r);
    assert_true(r.armed);
    RUN_OK(&x, doorbell_arm, &r);
    assert_true(r.armed);
    RUN_OK(&x, doorbell_disarm, &r);
    assert_false(r.armed);
    RUN_OK(&x, doorbell_arm, &r);
    assert_true(r.armed);
}

/* ---- order and the end ---- */

/* Requests are answered in the order of their starts. */
static void test_order(void **state)
{
    (void)state;
    fx_admit(&x, &a, 0, 1);
    struct tx_report rows[20] = {0};
    struct store_states r[20];
    view_count = 0;
    for (int i = 0; i < 20; i++) {
        rows[i] = (struct tx_report){
            .nonce = 0, .state = i % 2 ? "broadcast" : "ready", .block_number = -1};
        fx_hash(rows[i].hash, 0);
        r[i] = states_of(&rows[i], 1);
        store_state_start(x.s, &r[i], on_seen);
    }
    WAIT_FOR(x.l, view_count == 20);
    for (int i = 0; i < 20; i++) {
        assert_ptr_equal(seen[i], &r[i].req);
        assert_int_equal(r[i].req.err.code, 0);
    }
    struct store_snapshot snap;
    snapshot(&snap);
    assert_string_equal(snap.rows[0].state, "broadcast");
    store_req_done(&snap.req);
}

/* Each request is answered exactly once when the store closes meanwhile. */
static void test_close_busy(void **state)
{
    (void)state;
    struct fx_store first = x;
    struct store_states states = states_of(NULL, 0);
    struct store_lock locks[3] = {{.lock_key = 1}, {.lock_key = 1}, {.lock_key = 1}};
    struct store_snapshot snap = {
        .account = a.account, .epoch = a.epoch, .after_nonce = -1, .limit = 10};
    struct store_claim claim = claim_of("me", 1000, 1000);
    view_count = 0;
    store_state_start(x.s, &states, on_seen);
    for (int i = 0; i < 3; i++)
        store_lock_start(x.s, &locks[i], on_seen);
    store_snapshot_start(x.s, &snap, on_seen);
    store_claim_start(x.s, &claim, on_seen);
    fx_store_close(&x);
    assert_int_equal(view_count, 6);
    const struct store_req *all[] = {&states.req,   &locks[0].req, &locks[1].req,
                                     &locks[2].req, &snap.req,     &claim.req};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i]->err.code != ERR_CANCELED)
            fail_msg("request %zu ended with %s: %s", i, err_name(all[i]->err.code),
                     all[i]->err.text);
    loop_free(first.l);
}

/* Before it is up a store answers at once. */
static void before_open(struct fx_store *s)
{
    struct store_states states = {0};
    struct store_lock lock = {0};
    RUN(s, state, &states);
    assert_int_equal(states.req.err.code, ERR_DB_UNAVAILABLE);
    RUN(s, lock, &lock);
    assert_int_equal(lock.req.err.code, ERR_DB_UNAVAILABLE);
    fx_store_close(s);
    loop_free(s->l);
}

static void test_not_open(void **state)
{
    (void)state;
    struct fx_store s = {.l = loop_new()};
    s.s = store_mem_new(s.l, &(struct store_mem_config){0});
    before_open(&s);
    s = (struct fx_store){.l = loop_new()};
    s.s = store_pg_new(s.l, &(struct store_pg_config){.control_dsn = relay_dsn, .use_lock = true});
    before_open(&s);
}

#define BOTH(test)                                                                                 \
    {#test " mem", test, setup_mem, teardown, NULL},                                               \
    {                                                                                              \
#test " pg", test, setup_pg, teardown, NULL                                                \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_enroll),
        BOTH(test_lock),
        BOTH(test_claim),
        BOTH(test_evict),
        BOTH(test_scan),
        BOTH(test_scan_again),
        BOTH(test_members),
        BOTH(test_members_best),
        BOTH(test_renew),
        BOTH(test_renew_many),
        BOTH(test_fencing),
        BOTH(test_expiry),
        BOTH(test_outbox_order),
        BOTH(test_poll_requests),
        BOTH(test_idempotency),
        BOTH(test_admit),
        BOTH(test_snapshot_chunks),
        BOTH(test_attempt),
        BOTH(test_state),
        BOTH(test_finish),
        BOTH(test_reject),
        BOTH(test_fill),
        BOTH(test_nonce),
        BOTH(test_options),
        BOTH(test_options_refused),
        BOTH(test_not_before),
        BOTH(test_due),
        BOTH(test_due_facts),
        BOTH(test_deadline_queued),
        BOTH(test_spans),
        BOTH(test_deadline_pending),
        BOTH(test_cancel),
        BOTH(test_retry),
        BOTH(test_bump),
        BOTH(test_bump_meets_admission),
        BOTH(test_bump_to_the_limit),
        BOTH(test_filler_attempt),
        BOTH(test_refused),
        BOTH(test_requeue_usurped),
        BOTH(test_requeue_dispatch_error),
        BOTH(test_requeue_keeps_its_options),
        BOTH(test_hold),
        BOTH(test_transaction_version),
        BOTH(test_used_nonce),
        BOTH(test_reborn),
        BOTH(test_doorbell),
        BOTH(test_order),
        {"test_close_busy mem", test_close_busy, setup_mem, NULL, NULL},
        {"test_close_busy pg", test_close_busy, setup_pg, NULL, NULL},
        cmocka_unit_test(test_not_open),
    };
    return cmocka_run_group_tests(tests, suite_setup, suite_teardown);
}
