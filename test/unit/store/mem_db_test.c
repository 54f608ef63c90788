/* What the memory database has beside the rules that diff_test compares with Postgres: sessions
 * that end, transactions that stay open, standbys that lack commits, what followers read. The clock
 * is the test's. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/mem_db.h"

static int64_t clock_us;
static struct mem_db *db;
static struct mem_session *relay, *other, *app;
static unsigned heard; /* channels */
static size_t heard_count, ended_count;
static char heard_text[100];

static int64_t now_us(void *arg)
{
    (void)arg;
    return clock_us;
}

static void on_notice(void *arg, struct mem_session *to, const struct mem_notice *n)
{
    (void)arg;
    assert_ptr_equal(to, other);
    heard |= (unsigned)n->channel;
    heard_count++;
    snprintf(heard_text, sizeof(heard_text), "%d %lld %lld %s %s", n->account, (long long)n->nonce,
             (long long)n->id, n->state ? n->state : "-", n->outcome ? n->outcome : "-");
}

static void on_session_end(void *arg, struct mem_session *s)
{
    (void)arg;
    ended_count++;
    relay = s == relay ? NULL : relay;
    other = s == other ? NULL : other;
    app = s == app ? NULL : app;
}

static void open_sessions(void)
{
    relay = mem_session_new(db, NULL, true);
    other = mem_session_new(db, NULL, true);
    app = mem_session_new(db, NULL, true);
}

static void enroll(void)
{
    static const uint8_t id[32] = {1}, genesis[32] = {7};
    struct store_enroll r = {.alias = "alice",
                             .scheme = "sr25519",
                             .address = "5Alice",
                             .account_id = {id, 32},
                             .genesis = {genesis, 32},
                             .lock_key = 42,
                             .era_longest = 64,
                             .era_immortal = true};
    mem_session_run(relay, MEM_REQUEST_enroll, &r.req);
    assert_int_equal(r.req.err.code, 0);
    assert_int_equal(r.account, 1);
}

static struct mem_db_config config(void)
{
    return (struct mem_db_config){
        .now_us = now_us, .on_notice = on_notice, .on_session_end = on_session_end};
}

static void open_db(const struct mem_db_config *c)
{
    clock_us = 1000000000;
    heard = 0;
    heard_count = ended_count = 0;
    db = mem_db_new(c);
    open_sessions();
    enroll();
}

static int setup(void **state)
{
    (void)state;
    struct mem_db_config c = config();
    open_db(&c);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    db = mem_db_free(db);
    return 0;
}

/* ---- requests ---- */

static bool take_lock(struct mem_session *s)
{
    struct store_lock r = {.lock_key = 42};
    mem_session_run(s, MEM_REQUEST_lock, &r.req);
    return r.got;
}

static bool drop_lock(struct mem_session *s)
{
    struct store_lock r = {.lock_key = 42};
    mem_session_run(s, MEM_REQUEST_unlock, &r.req);
    return mem_lock_owner(db, 42) != s;
}

static bool arm(struct mem_session *s)
{
    struct store_doorbell r = {.account = 1};
    mem_session_run(s, MEM_REQUEST_doorbell_arm, &r.req);
    return r.armed;
}

static int64_t claim(struct mem_session *s, const char *holder)
{
    struct store_claim r = {.account = 1,
                            .holder = holder,
                            .address = "host:1",
                            .have_lock = mem_lock_owner(db, 42) == s,
                            .expiry_1_ms = 10000,
                            .expiry_2_ms = 10000};
    mem_session_run(s, MEM_REQUEST_claim, &r.req);
    assert_int_equal(r.req.err.code, 0);
    int64_t epoch = r.granted ? r.epoch : -1;
    store_req_done(&r.req);
    return epoch;
}

static int64_t enqueue(struct mem_session *s, const char *call, const char *key, int expected)
{
    struct store_enqueue r = {.account = "alice",
                              .call = {(const uint8_t *)call, strlen(call)},
                              .key = key,
                              .creator = "test"};
    mem_session_run(s, MEM_REQUEST_enqueue, &r.req);
    assert_int_equal(r.req.err.code, expected);
    return r.id;
}

static int admit(int64_t epoch, int64_t id, int64_t nonce)
{
    struct store_attempt_row row = {.id = id,
                                    .nonce = nonce,
                                    .hash = {(uint8_t)nonce, (uint8_t)id},
                                    .extrinsic = {(const uint8_t *)"signed", 6},
                                    .era_birth = -1,
                                    .era_death = -1};
    struct store_attempts r = {.account = 1,
                               .epoch = epoch,
                               .spec_version = 1,
                               .transaction_version = 1,
                               .block = 50,
                               .count = 1,
                               .rows = &row};
    mem_session_run(relay, MEM_REQUEST_admit, &r.req);
    return r.req.err.code;
}

static int finish(int64_t epoch, int64_t id, int64_t nonce)
{
    struct tx_end row = {.nonce = (uint64_t)nonce,
                         .hash = {(uint8_t)nonce, (uint8_t)id},
                         .has_block = true,
                         .block_number = 60,
                         .outcome = "ok"};
    struct store_finish r = {.account = 1, .epoch = epoch, .count = 1, .rows = &row};
    mem_session_run(relay, MEM_REQUEST_finish, &r.req);
    return r.req.err.code;
}

static int64_t wait_from(int64_t epoch, int64_t block)
{
    struct store_heard r = {.account = 1, .epoch = epoch, .heard = block};
    mem_session_run(relay, MEM_REQUEST_heard, &r.req);
    return r.until;
}

static int adopt(int64_t epoch, const char *bytes, size_t call_len, int64_t nonce, int64_t read)
{
    struct tx_found row = {.nonce = (uint64_t)nonce,
                           .hash = {9},
                           .bytes = (uint8_t *)bytes,
                           .bytes_len = strlen(bytes),
                           .call_len = call_len,
                           .era_birth = -1,
                           .era_death = -1,
                           .time_ms = -1};
    struct store_adopt r = {.account = 1,
                            .epoch = epoch,
                            .transaction_version = 1,
                            .done = true,
                            .read = read,
                            .count = 1,
                            .rows = &row};
    mem_session_run(relay, MEM_REQUEST_adopt, &r.req);
    return r.req.err.code ? -1 : r.adopted;
}

/* ---- sessions ---- */

/* Locks stack, belong to one session, and end with it. */
static void test_locks(void **state)
{
    (void)state;
    assert_true(take_lock(relay));
    assert_true(take_lock(relay));
    assert_false(take_lock(other));
    assert_false(drop_lock(relay)); /* it was taken twice */
    assert_true(drop_lock(relay));
    assert_true(take_lock(other));
    assert_ptr_equal(mem_lock_owner(db, 42), other);
    mem_session_end(other);
    assert_null(mem_lock_owner(db, 42));
    assert_int_equal(ended_count, 0); /* its owner ended it */
    other = mem_session_new(db, NULL, true);
    assert_true(take_lock(relay));
}

/* A claim whose time is over: the session that it stands on is ended, and its lock is free. */
static void test_evict(void **state)
{
    (void)state;
    struct store_evict r = {.lock_key = 42};
    take_lock(relay);
    assert_int_equal(claim(relay, "first"), 1);
    mem_session_run(other, MEM_REQUEST_evict, &r.req);
    assert_false(r.terminated);
    assert_string_equal(r.current_holder, "first");
    store_req_done(&r.req);
    clock_us += 10000000;
    mem_session_run(other, MEM_REQUEST_evict, &r.req);
    assert_true(r.terminated);
    store_req_done(&r.req);
    assert_int_equal(ended_count, 1);
    assert_null(relay);
    assert_true(take_lock(other));
    assert_int_equal(claim(other, "second"), 2);
}

/* One that has the lock and never claimed is ended when it has done the same for 5 s. One that is
 * no relay's is ended at once, and named. */
static void test_evict_idle(void **state)
{
    (void)state;
    struct store_evict r = {.lock_key = 42};
    take_lock(relay);
    clock_us += 6000000;
    mem_session_active(relay);
    mem_session_run(other, MEM_REQUEST_evict, &r.req);
    assert_false(r.terminated);
    store_req_done(&r.req);
    clock_us += 6000000;
    mem_session_run(other, MEM_REQUEST_evict, &r.req);
    assert_true(r.terminated);
    store_req_done(&r.req);
    mem_session_foreign(app);
    take_lock(app);
    mem_session_run(other, MEM_REQUEST_evict, &r.req);
    assert_true(r.terminated);
    assert_non_null(strstr(r.lock_holder, "backend"));
    store_req_done(&r.req);
}

/* A leader passes over a row that somebody holds, and names it; nothing else waits for it. */
static void test_held_rows(void **state)
{
    (void)state;
    take_lock(relay);
    int64_t epoch = claim(relay, "first"), first = enqueue(app, "1", NULL, 0),
            second = enqueue(app, "2", NULL, 0);
    assert_true(mem_lock_row(app, first));
    assert_false(mem_lock_row(other, first));
    assert_false(mem_lock_row(other, 77));
    struct store_outbox r = {.account = 1, .epoch = epoch, .limit = 10};
    mem_session_run(relay, MEM_REQUEST_outbox, &r.req);
    assert_int_equal(r.count, 1);
    assert_int_equal(r.rows[0].id, second);
    assert_int_equal(r.held_id, first);
    assert_non_null(strstr(r.held_by, "backend"));
    store_req_done(&r.req);
    assert_int_equal(admit(epoch, first, 0), ERR_DB_CONFLICT);
    struct tx_end end = {.id = first, .outcome = "failed"};
    struct store_finish rejected = {.account = 1, .epoch = epoch, .count = 1, .rows = &end};
    mem_session_run(relay, MEM_REQUEST_reject, &rejected.req);
    assert_int_equal(rejected.req.err.code, ERR_DB_CONFLICT);
    mem_unlock_row(app);
    mem_session_run(relay, MEM_REQUEST_outbox, &r.req);
    assert_int_equal(r.count, 2);
    assert_int_equal(r.held_id, 0);
    store_req_done(&r.req);
}

/* ---- open transactions ---- */

/* Nobody sees its rows before the commit; its leader stays awake until it is released. */
static void test_open_transaction(void **state)
{
    (void)state;
    mem_session_listen(other, MEM_LISTEN_SIGNALS);
    mem_begin(app);
    int64_t id = enqueue(app, "call", "key", 0);
    assert_null(mem_row_of(db, id));
    assert_false(arm(relay));
    enqueue(other, "call", "key", ERR_TIMEOUT); /* the key belongs to a transaction that is open */
    mem_commit(app);
    assert_int_equal(mem_row_of(db, id)->table, MEM_OUTBOX);
    assert_true(mem_row_of(db, id)->silent);
    assert_int_equal(enqueue(other, "call", "key", 0), id);
    assert_false(arm(relay));
    mem_release(app);
    assert_true(arm(relay));
    assert_int_equal(heard, 0);
    mem_begin(app);
    id = enqueue(app, "call 2", NULL, 0);
    enqueue(app, "call 3", NULL, 0);
    assert_int_equal(heard_count, 0);
    mem_commit(app);
    mem_release(app);
    assert_int_equal(heard, MEM_OUTBOX_WAKE); /* once for both */
    assert_int_equal(heard_count, 1);
    assert_false(mem_row_of(db, id)->silent);
}

static void test_roll_back(void **state)
{
    (void)state;
    mem_begin(app);
    int64_t id = enqueue(app, "call", "key", 0);
    mem_rollback(app);
    assert_null(mem_row_of(db, id));
    assert_true(arm(relay));
    assert_true(enqueue(other, "another call", "key", 0) > id); /* ids are never given twice */
    mem_begin(app);
    id = enqueue(app, "call", NULL, 0);
    mem_session_end(app); /* as one whose connection is lost */
    app = mem_session_new(db, NULL, true);
    assert_null(mem_row_of(db, id));
}

/* ---- failover ---- */

/* A standby lacks an admission: the row waits again, nothing is admitted before the chain was
 * asked, and what it holds is adopted. */
static void test_lost_commits(void **state)
{
    (void)state;
    take_lock(relay);
    int64_t epoch = claim(relay, "first");
    int64_t first = enqueue(app, "call 1", NULL, 0), second = enqueue(app, "call 2", NULL, 0);
    assert_int_equal(admit(epoch, first, 7), 0);
    struct mem_copy *copy = mem_copy_new(db);
    assert_int_equal(admit(epoch, second, 8), 0);
    int64_t third = enqueue(app, "call 3", NULL, 0);
    mem_db_promote(db, copy);
    copy = mem_copy_free(copy);
    assert_int_equal(ended_count, 3);
    assert_int_equal(mem_db_timeline(db), 2);
    open_sessions();
    assert_int_equal(mem_row_of(db, first)->table, MEM_PENDING);
    assert_int_equal(mem_row_of(db, second)->table, MEM_OUTBOX);
    assert_null(mem_row_of(db, third));
    assert_true(enqueue(app, "call 4", NULL, 0) > third);
    assert_int_equal(admit(epoch, second, 8), ERR_LOST_LEADERSHIP);
    take_lock(relay);
    epoch = claim(relay, "first");
    assert_int_equal(mem_account_at(db, 1)->reconcile_from, 50);
    assert_int_equal(admit(epoch, second, 8), ERR_BUG);
    assert_int_equal(wait_from(epoch, 61), 61 + 64);
    assert_int_equal(wait_from(epoch, 99), 61 + 64); /* a successor goes on with the same wait */
    assert_int_equal(adopt(epoch, "signed call 2", 6, 8, 61 + 63), -1);
    assert_int_equal(adopt(epoch, "signed call 2", 6, 8, 61 + 64), 1);
    assert_int_equal(mem_row_of(db, second)->nonce, 8);
    assert_int_equal(mem_account_at(db, 1)->next_nonce, 9);
    assert_int_equal(mem_account_at(db, 1)->reconcile_from, 50); /* its retry may be found next */
    assert_int_equal(adopt(epoch, "signed call 2", 6, 8, 61 + 64), 0);
    assert_int_equal(mem_account_at(db, 1)->reconcile_from, -1);
}

/* Without a copy nothing is lost but the sessions. */
static void test_promotion_without_loss(void **state)
{
    (void)state;
    int64_t id = enqueue(app, "call", NULL, 0);
    mem_begin(app);
    int64_t open = enqueue(app, "open", NULL, 0);
    mem_db_promote(db, NULL);
    open_sessions();
    assert_non_null(mem_row_of(db, id));
    assert_null(mem_row_of(db, open));
    mem_db_restart(db);
    open_sessions();
    assert_int_equal(mem_db_timeline(db), 2);
    assert_int_equal(ended_count, 6);
}

/* ---- followers, ends ---- */

static void test_follow(void **state)
{
    (void)state;
    struct mem_follow_row rows[10];
    int64_t ids[6];
    take_lock(relay);
    int64_t epoch = claim(relay, "first");
    mem_session_listen(other, MEM_LISTEN_ROWS);
    for (int i = 0; i < 6; i++) {
        ids[i] = enqueue(app, "call", NULL, 0);
        assert_int_equal(admit(epoch, ids[i], i), 0);
    }
    assert_int_equal(heard, MEM_TX_NEW);
    assert_int_equal(mem_scan_pending(db, 0, -1, 0, 0, 4, rows), 4);
    assert_int_equal(rows[3].nonce, 3);
    assert_string_equal(rows[3].state, "signed");
    assert_int_equal(mem_scan_pending(db, 1, 3, 0, 0, 4, rows), 2);
    assert_int_equal(rows[0].id, ids[4]);
    assert_int_equal(mem_scan_pending(db, 0, -1, 0, ids[2], 4, rows), 1);
    int64_t before = mem_follow_position(db);
    for (int i = 0; i < 3; i++)
        assert_int_equal(finish(epoch, ids[i], i), 0);
    assert_string_equal(heard_text, "1 2 3 finalized ok");
    assert_int_equal(mem_scan_finished(db, before, 0, -1, 0, 0, 0, 2, rows), 2);
    assert_int_equal(rows[1].id, ids[1]);
    assert_true(rows[1].at_us > rows[0].at_us); /* though the clock stood still */
    struct mem_follow_row last = rows[1];
    assert_int_equal(
        mem_scan_finished(db, last.at_us, last.account, last.nonce, last.id, 0, 0, 9, rows), 1);
    assert_int_equal(rows[0].id, ids[2]);
    assert_string_equal(rows[0].outcome, "ok");
    assert_int_equal(mem_find_finished(db, 6, ids, 0, NULL, NULL, 10, rows), 3);
}

/* Only the newest ends are kept, and with them what is known of their nonces. */
static void test_kept_ends(void **state)
{
    (void)state;
    struct mem_db_config c = config();
    db = mem_db_free(db);
    c.finished_most = 8;
    open_db(&c);
    take_lock(relay);
    int64_t epoch = claim(relay, "first");
    for (int64_t i = 0; i < 100; i++) {
        int64_t id = enqueue(app, "call", NULL, 0);
        assert_int_equal(admit(epoch, id, i), 0);
        assert_int_equal(finish(epoch, id, i), 0);
        assert_non_null(mem_finished_of(db, id));
    }
    assert_in_range(mem_finished_count(db), 8, 10);
    assert_in_range(mem_account_at(db, 1)->nonce_count, 8, 10);
    assert_null(mem_nonce_at(db, 1, 50));
    assert_null(mem_finished_of(db, 50));
    assert_int_equal(finish(epoch, 100, 99), ERR_BUG);        /* it has ended */
    assert_int_equal(finish(epoch, 50, 49), ERR_DB_CONFLICT); /* nothing is known of it any more */
}

static int64_t enqueue_signed(const char *bytes)
{
    struct mem_signed_call call = {.account = "alice",
                                   .extrinsic = {(const uint8_t *)bytes, strlen(bytes)},
                                   .unchecked = true};
    struct err err;
    int64_t id = 0;
    assert_int_equal(mem_enqueue_signed(app, &call, &id, &err), 0);
    return id;
}

/* The call is named if there is one. */
static void test_held_signed_row(void **state)
{
    (void)state;
    take_lock(relay);
    int64_t epoch = claim(relay, "first"), presigned = enqueue_signed("one");
    struct store_outbox r = {.account = 1, .epoch = epoch, .limit = 10};
    assert_true(mem_lock_row(app, presigned));
    mem_session_run(relay, MEM_REQUEST_outbox, &r.req);
    assert_int_equal(r.count, 0);
    assert_int_equal(r.held_id, presigned);
    assert_non_null(strstr(r.held_by, "backend"));
    store_req_done(&r.req);
    int64_t call = enqueue(app, "1", NULL, 0);
    assert_true(mem_lock_row(other, call));
    mem_session_run(relay, MEM_REQUEST_outbox, &r.req);
    assert_int_equal(r.held_id, call);
    store_req_done(&r.req);
    mem_unlock_row(app);
    mem_unlock_row(other);
    mem_session_run(relay, MEM_REQUEST_outbox, &r.req);
    assert_int_equal(r.count, 2);
    assert_int_equal(r.held_id, 0);
    store_req_done(&r.req);
}

static int admit_signed(int64_t epoch, const struct store_attempt_row *rows, size_t count)
{
    struct store_attempts r = {.account = 1, .epoch = epoch, .count = count, .rows = rows};
    mem_session_run(relay, MEM_REQUEST_admit_signed, &r.req);
    return r.req.err.code;
}

/* Cancelled while it is admitted with one behind it: the batch changed. Without it in the batch,
 * the one behind it is an error of the caller's. */
static void test_cancelled_while_admitted(void **state)
{
    (void)state;
    assert_true(take_lock(relay));
    int64_t epoch = claim(relay, "relay");
    struct store_attempt_row rows[] = {{.nonce = 0, .hash = {1}, .call.len = 1},
                                       {.nonce = 1, .hash = {2}, .call.len = 1},
                                       {.nonce = 2, .hash = {3}, .call.len = 1}};
    rows[0].id = enqueue_signed("one");
    rows[1].id = enqueue_signed("two");
    rows[2].id = enqueue_signed("three");
    struct store_ask r = {.id = rows[1].id};
    mem_session_run(app, MEM_REQUEST_cancel, &r.req);
    assert_string_equal(r.answer, "cancelled");
    assert_int_equal(admit_signed(epoch, rows, 3), ERR_DB_CONFLICT);
    assert_int_equal(admit_signed(epoch, rows + 2, 1), ERR_BUG);
    assert_int_equal(admit_signed(epoch, rows, 1), 0);
}

static int64_t wall_ahead_us, led;

/* Each reading is up to a millisecond late, as two clocks that are read one after the other are. */
static int64_t late_wall_us(void *arg)
{
    static unsigned readings;
    (void)arg;
    return clock_us + wall_ahead_us + (int64_t)(readings++ % 3) * 500;
}

static int64_t deadline_of(int64_t id)
{
    struct store_outbox box = {.account = 1, .epoch = led, .limit = 10};
    int64_t deadline_ms = 0;
    mem_session_run(relay, MEM_REQUEST_outbox, &box.req);
    for (size_t i = 0; i < box.count; i++)
        if (box.rows[i].id == id)
            deadline_ms = box.rows[i].deadline_ms;
    store_req_done(&box.req);
    return deadline_ms;
}

static int64_t enqueue_until(int64_t deadline_ms)
{
    struct store_enqueue r = {
        .account = "alice", .call = {(const uint8_t *)"call", 4}, .deadline_ms = deadline_ms};
    mem_session_run(app, MEM_REQUEST_enqueue, &r.req);
    assert_int_equal(r.req.err.code, 0);
    return r.id;
}

/* A reader gets a deadline as it was given, however late it reads. A step of the other clock
 * changes the time that readers get, and not the row's own. */
static void test_two_clocks(void **state)
{
    (void)state;
    struct mem_db_config c = config();
    c.wall_us = late_wall_us;
    db = mem_db_free(db);
    open_db(&c);
    assert_true(take_lock(relay));
    led = claim(relay, "relay");
    wall_ahead_us = 5000000700;
    int64_t given_ms = (clock_us + wall_ahead_us) / 1000 + 3600000;
    for (int i = 0; i < 9; i++) {
        int64_t id = enqueue_until(given_ms + i);
        for (int k = 0; k < 3; k++, clock_us += 333)
            assert_int_equal(deadline_of(id), given_ms + i);
    }
    int64_t id = enqueue_until(given_ms);
    wall_ahead_us += 60000000;
    assert_in_range(deadline_of(id), given_ms + 59999, given_ms + 60001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_locks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_evict, setup, teardown),
        cmocka_unit_test_setup_teardown(test_evict_idle, setup, teardown),
        cmocka_unit_test_setup_teardown(test_held_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_held_signed_row, setup, teardown),
        cmocka_unit_test_setup_teardown(test_open_transaction, setup, teardown),
        cmocka_unit_test_setup_teardown(test_roll_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_commits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_promotion_without_loss, setup, teardown),
        cmocka_unit_test_setup_teardown(test_follow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kept_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancelled_while_admitted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_clocks, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
