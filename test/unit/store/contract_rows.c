/* The way of a transaction through a store: outbox, nonce, attempts, states, end. */
#include "contract.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t block_a[32] = {0xaa, 1}, block_b[32] = {0xbb, 2};

/* ---- from the outbox to a nonce ---- */

void test_outbox_order(void **state)
{
    (void)state;
    int64_t low = fx_enqueue(&x, &a, "low", -5), first = fx_enqueue(&x, &a, "first", 0);
    int64_t second = fx_enqueue(&x, &a, "second", 0), high = fx_enqueue(&x, &a, "high", 9);
    struct store_outbox box = {.account = a.account, .epoch = a.epoch, .limit = 3};
    RUN_OK(&x, outbox, &box);
    assert_int_equal(box.count, 3);
    assert_int_equal(box.rows[0].id, high);
    assert_int_equal(box.rows[1].id, first);
    assert_int_equal(box.rows[2].id, second);
    assert_int_equal(box.rows[0].call.len, 4);
    assert_memory_equal(box.rows[0].call.data, "high", 4);
    assert_string_equal(box.rows[0].creator, "tester");
    assert_int_equal(box.rows[0].priority, 9);
    assert_int_equal(box.rows[0].deadline_ms, -1);
    store_req_done(&box.req);
    box.limit = 100;
    RUN_OK(&x, outbox, &box);
    assert_int_equal(box.count, 4);
    assert_int_equal(box.rows[3].id, low);
    store_req_done(&box.req);
    struct store_pause pause = {
        .account = a.account, .epoch = a.epoch, .suspension = "payment", .reason = "cannot pay"};
    RUN_OK(&x, pause, &pause);
    RUN_OK(&x, outbox, &box);
    assert_int_equal(box.count, 0);
    store_req_done(&box.req);
    struct store_snapshot snap = {
        .account = a.account, .epoch = a.epoch, .after_nonce = -1, .limit = 10};
    RUN_OK(&x, snapshot, &snap);
    assert_true(snap.facts.paused);
    store_req_done(&snap.req);
    pause.suspension = pause.reason = NULL;
    RUN_OK(&x, pause, &pause);
    RUN_OK(&x, outbox, &box);
    assert_int_equal(box.count, 4);
    store_req_done(&box.req);
}

/* Nothing to stop, no time ahead; a stale leader is not answered. */
void test_poll_requests(void **state)
{
    (void)state;
    fx_enqueue(&x, &a, "plain", 0);
    struct store_poll_requests look = {.account = a.account, .epoch = a.epoch};
    RUN_OK(&x, poll_requests, &look);
    assert_int_equal(look.count, 0);
    assert_false(look.has_rows);
    assert_int_equal(look.next_ms, -1);
    store_req_done(&look.req);
    look.epoch--;
    RUN(&x, poll_requests, &look);
    assert_int_equal(look.req.err.code, ERR_LOST_LEADERSHIP);
    store_req_done(&look.req);
}

void test_idempotency(void **state)
{
    (void)state;
    const uint8_t call[] = {1, 2, 3};
    struct store_enqueue r = {.account = a.alias, .call = {call, 3}, .key = "pay-7"};
    RUN_OK(&x, enqueue, &r);
    int64_t id = r.id;
    RUN_OK(&x, enqueue, &r);
    assert_int_equal(r.id, id);
    r.call.len = 2;
    RUN(&x, enqueue, &r);
    assert_int_equal(r.req.err.code, ERR_ARGUMENT);
    assert_non_null(strstr(r.req.err.text, "pay-7"));
    r.key = NULL;
    RUN_OK(&x, enqueue, &r);
    assert_int_not_equal(r.id, id);
    r.account = "nobody-at-all";
    RUN(&x, enqueue, &r);
    assert_int_equal(r.req.err.code, ERR_ARGUMENT);
    assert_non_null(strstr(r.req.err.text, "nobody-at-all"));
    r.account = a.alias;
    r.call.len = 0;
    RUN(&x, enqueue, &r);
    assert_int_equal(r.req.err.code, ERR_ARGUMENT);
    r.call.len = 3;
    r.priority = 1001;
    RUN(&x, enqueue, &r);
    assert_int_equal(r.req.err.code, ERR_ARGUMENT);
}

void assert_amount(u128 v, const char *text)
{
    char buf[40];
    assert_string_equal(u128_text(v, buf), text);
}

struct store_attempt_row attempt_row(int64_t id, int64_t nonce, int hash)
{
    struct store_attempt_row row = {.id = id,
                                    .nonce = nonce,
                                    .extrinsic = {(const uint8_t *)"xt", 2},
                                    .call = {(const uint8_t *)"remark", 6},
                                    .era_birth = -1,
                                    .era_death = -1,
                                    .reason = "era died",
                                    .outcome = "expired"};
    fx_hash(row.hash, hash);
    return row;
}

struct store_attempts attempts_of(const struct store_attempt_row *rows, size_t n)
{
    return (struct store_attempts){.account = a.account,
                                   .epoch = a.epoch,
                                   .spec_version = 4000000000u,
                                   .transaction_version = 26,
                                   .block = 1000,
                                   .count = n,
                                   .rows = rows};
}

size_t outbox_count(void)
{
    struct store_outbox box = {.account = a.account, .epoch = a.epoch, .limit = 1000};
    RUN_OK(&x, outbox, &box);
    size_t n = box.count;
    store_req_done(&box.req);
    return n;
}

void snapshot(struct store_snapshot *snap)
{
    *snap = (struct store_snapshot){
        .account = a.account, .epoch = a.epoch, .after_nonce = -1, .limit = 1000};
    RUN_OK(&x, snapshot, snap);
}

/* A batch is admitted as a whole or not at all. */
void test_admit(void **state)
{
    (void)state;
    struct store_nonce nonce = {.account = a.account, .epoch = a.epoch, .next_nonce = 40};
    RUN_OK(&x, nonce, &nonce);
    int64_t id[3];
    for (int i = 0; i < 3; i++)
        id[i] = fx_enqueue(&x, &a, "transfer", 0);
    struct store_attempt_row rows[3] = {attempt_row(id[0], 40, 40), attempt_row(id[1], 41, 41),
                                        attempt_row(id[2] + 1000000, 42, 42)};
    rows[1].tip = "340282366920938463463374607431768211455"; /* the largest u128 */
    rows[1].era_birth = 900;
    rows[1].era_death = 964;
    struct store_attempts r = attempts_of(rows, 3);
    RUN(&x, admit, &r);
    assert_int_equal(r.req.err.code, ERR_DB_CONFLICT);
    assert_int_equal(outbox_count(), 3);
    rows[2].id = id[2];
    rows[2].nonce = 43;
    RUN(&x, admit, &r); /* a gap */
    assert_int_equal(r.req.err.code, ERR_BUG);
    rows[2] = attempt_row(id[0], 42, 42);
    RUN(&x, admit, &r); /* one twice */
    assert_int_equal(r.req.err.code, ERR_BUG);
    assert_int_equal(outbox_count(), 3);
    rows[2].id = id[2];
    int events = x.events;
    RUN_OK(&x, admit, &r);
    assert_int_equal(r.next_nonce, 43);
    assert_int_equal(outbox_count(), 0);
    if (!x.is_pg) {
        assert_int_equal(x.events, events + 3);
        assert_string_equal(x.event, "new 42 signed 2a00 - -");
    }
    RUN(&x, admit, &r); /* again: they are gone */
    assert_int_equal(r.req.err.code, ERR_BUG);

    struct store_snapshot snap;
    snapshot(&snap);
    assert_int_equal(snap.count, 3);
    assert_int_equal(snap.next_nonce, 43);
    assert_false(snap.facts.paused);
    const struct tx_pending *row = &snap.rows[1];
    assert_int_equal(row->nonce, 41);
    assert_int_equal(row->id, id[1]);
    assert_string_equal(row->state, "signed");
    assert_memory_equal(row->hash, rows[1].hash, 32);
    assert_int_equal(row->attempt, 1);
    assert_int_equal(row->bytes_len, 2);
    assert_memory_equal(row->bytes, "xt", 2);
    assert_int_equal(row->call_len, 8);
    assert_false(row->has_block);
    assert_int_equal(row->block_number, -1);
    assert_int_equal(row->era_birth, 900);
    assert_int_equal(row->era_death, 964);
    assert_int_equal(snap.rows[0].era_birth, -1);
    assert_int_equal(snap.rows[0].era_death, -1);
    assert_int_equal(row->spec_version, 4000000000u);
    assert_amount(row->tip, rows[1].tip);
    assert_amount(snap.rows[0].tip, "0");
    assert_int_equal(row->submitted_block, 1000);
    assert_int_equal(row->earlier_count, 0);
    store_req_done(&snap.req);
    r.count = 0;
    RUN_OK(&x, admit, &r);
    assert_int_equal(r.next_nonce, 43);
}

/* Pending rows come in chunks in nonce order. */
void test_snapshot_chunks(void **state)
{
    (void)state;
    fx_admit(&x, &a, 100, 25);
    struct store_snapshot snap = {
        .account = a.account, .epoch = a.epoch, .after_nonce = -1, .limit = 10};
    int64_t expect = 100;
    size_t chunks = 0;
    for (;;) {
        RUN_OK(&x, snapshot, &snap);
        for (size_t i = 0; i < snap.count; i++) {
            uint8_t hash[32];
            fx_hash(hash, (int)expect);
            assert_int_equal(snap.rows[i].nonce, expect++);
            assert_memory_equal(snap.rows[i].hash, hash, 32);
            snap.after_nonce = (int64_t)snap.rows[i].nonce;
        }
        size_t n = snap.count;
        assert_int_equal(snap.next_nonce, 125);
        store_req_done(&snap.req);
        if (!n)
            break;
        chunks++;
    }
    assert_int_equal(expect, 125);
    assert_int_equal(chunks, 3);
}

/* ---- attempts, states, ends ---- */

void test_attempt(void **state)
{
    (void)state;
    fx_admit(&x, &a, 0, 2);
    struct store_attempt_row row = attempt_row(0, 1, 501);
    row.tip = "17";
    struct store_attempts r = attempts_of(&row, 1);
    RUN_OK(&x, attempt, &r);
    fx_hash(row.hash, 502);
    RUN_OK(&x, attempt, &r);
    if (!x.is_pg)
        assert_string_equal(x.event, "update 1 signed f601 - -");
    struct store_snapshot snap;
    snapshot(&snap);
    uint8_t hash[32];
    assert_int_equal(snap.rows[1].attempt, 3);
    assert_memory_equal(snap.rows[1].hash, row.hash, 32);
    assert_amount(snap.rows[1].tip, "17");
    assert_int_equal(snap.rows[1].earlier_count, 2);
    fx_hash(hash, 1);
    assert_memory_equal(snap.rows[1].earlier[0], hash, 32);
    fx_hash(hash, 501);
    assert_memory_equal(snap.rows[1].earlier[1], hash, 32);
    assert_int_equal(snap.rows[0].attempt, 1);
    assert_int_equal(snap.rows[0].earlier_count, 0);
    store_req_done(&snap.req);
    RUN(&x, attempt, &r); /* the same bytes are no new attempt */
    assert_int_equal(r.req.err.code, ERR_BUG);
    struct store_attempt_row two[2] = {attempt_row(0, 0, 600), attempt_row(0, 7, 601)};
    r = attempts_of(two, 2);
    RUN(&x, attempt, &r); /* nonce 7 is not pending: neither is written */
    assert_int_equal(r.req.err.code, ERR_DB_CONFLICT);
    two[1].nonce = 0;
    RUN(&x, attempt, &r);
    assert_int_equal(r.req.err.code, ERR_BUG);
    snapshot(&snap);
    assert_int_equal(snap.rows[0].attempt, 1);
    store_req_done(&snap.req);
}

struct store_states states_of(const struct tx_report *rows, size_t n)
{
    return (struct store_states){.account = a.account, .epoch = a.epoch, .count = n, .rows = rows};
}

void test_state(void **state)
{
    (void)state;
    fx_admit(&x, &a, 0, 3);
    struct tx_report rows[3] = {
        {.nonce = 0, .state = "ready", .block_number = -1},
        {.nonce = 1, .state = "in_block", .has_block = true, .block_number = 12},
        {.nonce = 2, .state = "dropped", .block_number = -1, .error = "pool was full"}};
    for (int i = 0; i < 3; i++)
        fx_hash(rows[i].hash, i);
    memcpy(rows[1].block_hash, block_a, 32);
    struct store_states r = states_of(rows, 3);
    int events = x.events;
    RUN_OK(&x, state, &r);
    RUN_OK(&x, state, &r); /* nothing that a follower could see */
    if (!x.is_pg)
        assert_int_equal(x.events, events + 3);
    struct store_snapshot snap;
    snapshot(&snap);
    assert_string_equal(snap.rows[0].state, "ready");
    assert_false(snap.rows[0].has_block);
    assert_string_equal(snap.rows[1].state, "in_block");
    assert_true(snap.rows[1].has_block);
    assert_memory_equal(snap.rows[1].block_hash, block_a, 32);
    assert_int_equal(snap.rows[1].block_number, 12);
    assert_string_equal(snap.rows[2].state, "dropped");
    store_req_done(&snap.req);

    /* Another attempt's hash leaves the row alone; one that was never recorded is a fault. */
    struct store_attempt_row again = attempt_row(0, 0, 700);
    struct store_attempts w = attempts_of(&again, 1);
    RUN_OK(&x, attempt, &w);
    rows[0].state = "in_block";
    rows[0].has_block = true;
    memcpy(rows[0].block_hash, block_b, 32);
    rows[0].block_number = 13;
    r = states_of(rows, 1);
    RUN_OK(&x, state, &r);
    snapshot(&snap);
    assert_string_equal(snap.rows[0].state, "signed");
    store_req_done(&snap.req);
    fx_hash(rows[0].hash, 701);
    RUN(&x, state, &r);
    assert_int_equal(r.req.err.code, ERR_BUG);
    rows[0].nonce = 99; /* ended long ago, or never known: late events are no error */
    RUN_OK(&x, state, &r);
    rows[1].has_block = false;
    r = states_of(rows + 1, 1);
    RUN(&x, state, &r);
    assert_int_equal(r.req.err.code, ERR_ARGUMENT);
    rows[1].state = "signed";
    RUN(&x, state, &r);
    assert_int_equal(r.req.err.code, ERR_BUG);
    rows[1].state = "nonsense";
    RUN(&x, state, &r);
    assert_int_equal(r.req.err.code, ERR_DB);
    r.count = 0;
    RUN_OK(&x, state, &r);
}

struct store_finish finish_of(const struct tx_end *rows, size_t n)
{
    return (struct store_finish){.account = a.account, .epoch = a.epoch, .count = n, .rows = rows};
}

void test_finish(void **state)
{
    (void)state;
    fx_admit(&x, &a, 0, 3);
    struct store_attempt_row again = attempt_row(0, 1, 800);
    struct store_attempts w = attempts_of(&again, 1);
    RUN_OK(&x, attempt, &w);
    u128 big_fee;
    assert_true(u128_parse("12345678901234567890123", &big_fee));
    struct tx_end rows[3] = {
        {.nonce = 0,
         .block_number = 20,
         .has_block = true,
         .index = 2,
         .outcome = "ok",
         .has_fee = true,
         .fee = big_fee},
        {.nonce = 1,
         .block_number = 20,
         .has_block = true,
         .index = 3,
         .outcome = "dispatch_error",
         .error = "Balances.InsufficientBalance"},
        {.nonce = 2, .outcome = "usurped", .error = "another extrinsic took the nonce"}};
    for (int i = 0; i < 3; i++) {
        fx_hash(rows[i].hash, i); /* of nonce 1 the first attempt is the one that got in */
        memcpy(rows[i].block_hash, block_a, 32);
    }
    struct store_finish r = finish_of(rows, 3);
    RUN_OK(&x, finish, &r);
    if (!x.is_pg)
        assert_string_equal(x.event,
                            "finished 2 usurped 0200 usurped another extrinsic took the nonce");
    struct store_snapshot snap;
    snapshot(&snap);
    assert_int_equal(snap.count, 0);
    assert_int_equal(snap.next_nonce, 3);
    store_req_done(&snap.req);
    r = finish_of(rows, 1);
    RUN(&x, finish, &r); /* a terminal record never changes */
    assert_int_equal(r.req.err.code, ERR_BUG);
    rows[0].nonce = 50;
    RUN(&x, finish, &r);
    assert_int_equal(r.req.err.code, ERR_DB_CONFLICT);
    fx_admit(&x, &a, 3, 1);
    rows[0].nonce = 3;
    RUN(&x, finish, &r); /* with a hash that was never signed */
    assert_int_equal(r.req.err.code, ERR_BUG);
    rows[0].has_block = false;
    RUN(&x, finish, &r);
    assert_int_equal(r.req.err.code, ERR_ARGUMENT);
    snapshot(&snap);
    assert_int_equal(snap.count, 1);
    store_req_done(&snap.req);
}

void test_reject(void **state)
{
    (void)state;
    int64_t first = fx_enqueue(&x, &a, "bad call", 0), second = fx_enqueue(&x, &a, "fine", 0);
    struct tx_end rows[2] = {{.id = first, .outcome = "failed", .error = "call does not decode"},
                             {.id = first + 1000000, .outcome = "expired"}};
    struct store_finish r = finish_of(rows, 2);
    RUN(&x, reject, &r);
    assert_int_equal(r.req.err.code, ERR_DB_CONFLICT);
    assert_int_equal(outbox_count(), 2);
    r.count = 1;
    RUN_OK(&x, reject, &r);
    assert_int_equal(outbox_count(), 1);
    rows[0].id = second;
    rows[0].outcome = "ok";
    RUN(&x, reject, &r);
    assert_int_equal(r.req.err.code, ERR_BUG);
}

/* A filler takes the nonce of a transaction that ends, or a new nonce; the earlier hashes stay
 * known. */
void test_fill(void **state)
{
    (void)state;
    fx_admit(&x, &a, 0, 2);
    struct store_attempt_row rows[2] = {attempt_row(0, 0, 900), attempt_row(0, 2, 902)};
    struct store_attempts r = attempts_of(rows, 2);
    RUN_OK(&x, fill, &r);
    assert_int_equal(r.next_nonce, 3);
    struct store_snapshot snap;
    snapshot(&snap);
    assert_int_equal(snap.count, 3);
    assert_int_equal(snap.next_nonce, 3);
    assert_int_equal(snap.rows[0].id, 0);
    assert_int_equal(snap.rows[0].call_len, 6);
    assert_memory_equal(snap.rows[0].hash, rows[0].hash, 32);
    assert_int_equal(snap.rows[0].earlier_count, 1);
    assert_int_not_equal(snap.rows[1].id, 0);
    assert_int_equal(snap.rows[2].id, 0);
    assert_int_equal(snap.rows[2].earlier_count, 0);
    store_req_done(&snap.req);
    rows[0] = attempt_row(0, 5, 905);
    r.count = 1;
    RUN(&x, fill, &r); /* a gap */
    assert_int_equal(r.req.err.code, ERR_BUG);
    rows[0] = attempt_row(0, 1, 901);
    rows[0].outcome = "ok";
    RUN(&x, fill, &r);
    assert_int_equal(r.req.err.code, ERR_BUG);
}

void test_nonce(void **state)
{
    (void)state;
    struct store_nonce r = {.account = a.account, .epoch = a.epoch, .next_nonce = 7};
    RUN_OK(&x, nonce, &r);
    fx_admit(&x, &a, 7, 2);
    RUN(&x, nonce, &r); /* below what is pending */
    assert_int_equal(r.req.err.code, ERR_BUG);
    r.next_nonce = 20;
    RUN_OK(&x, nonce, &r);
    r.next_nonce = 19;
    RUN(&x, nonce, &r);
    assert_int_equal(r.req.err.code, ERR_BUG);
    r.lower = true; /* on purpose */
    RUN_OK(&x, nonce, &r);
    r.next_nonce = 8;
    RUN(&x, nonce, &r); /* but never below what is pending */
    assert_int_equal(r.req.err.code, ERR_BUG);
    struct store_snapshot snap;
    snapshot(&snap);
    assert_int_equal(snap.next_nonce, 19);
    store_req_done(&snap.req);
}
