/* Options, deadlines, bumps, fillers of a stop, the way back to the outbox, holds and lives of an
 * account. */
#include "contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t block_a[32] = {0xaa, 1};
static const char *const largest = "340282366920938463463374607431768211455"; /* u128 */

static struct store_enqueue call_of(const char *call)
{
    return (struct store_enqueue){
        .account = a.alias, .call = {(const uint8_t *)call, strlen(call)}, .creator = "tester"};
}

static int64_t add(struct store_enqueue r)
{
    RUN_OK(&x, enqueue, &r);
    return r.id;
}

static void admit_tip(int64_t id, int64_t nonce, const char *tip)
{
    struct store_attempt_row row = attempt_row(id, nonce, (int)nonce);
    row.tip = tip;
    struct store_attempts r = attempts_of(&row, 1);
    RUN_OK(&x, admit, &r);
}

static void admit(int64_t id, int64_t nonce)
{
    admit_tip(id, nonce, NULL);
}

static struct store_poll_requests look(void)
{
    struct store_poll_requests r = {.account = a.account, .epoch = a.epoch};
    RUN_OK(&x, poll_requests, &r);
    return r;
}

static struct tx_end end_row(int64_t nonce, const char *outcome, int64_t block)
{
    struct tx_end row = {.nonce = (uint64_t)nonce,
                         .outcome = outcome,
                         .has_block = block >= 0,
                         .block_number = block,
                         .index = 2,
                         .error = "why"};
    fx_hash(row.hash, (int)nonce);
    memcpy(row.block_hash, block_a, 32);
    return row;
}

static void finish(int64_t nonce, const char *outcome, int64_t block)
{
    struct tx_end row = end_row(nonce, outcome, block);
    struct store_finish r = finish_of(&row, 1);
    RUN_OK(&x, finish, &r);
}

static void refused(struct store_enqueue r, const char *word)
{
    RUN(&x, enqueue, &r);
    assert_int_equal(r.req.err.code, ERR_ARGUMENT);
    if (!strstr(r.req.err.text, word))
        fail_msg("\"%s\" does not name %s", r.req.err.text, word);
}

/* ---- options ---- */

/* They go with the transaction from the outbox to its nonce. */
void test_options(void **state)
{
    (void)state;
    struct store_enqueue r = call_of("options");
    r.tip = "17";
    r.max_tip = largest;
    r.deadline_block = 5000000000;
    r.retries = 3;
    r.guard = 1003;
    int64_t id = add(r), plain = add(call_of("plain"));
    struct store_outbox box = {.account = a.account, .epoch = a.epoch, .limit = 10};
    RUN_OK(&x, outbox, &box);
    assert_int_equal(box.count, 2);
    assert_string_equal(box.rows[0].tip, "17");
    assert_string_equal(box.rows[0].max_tip, largest);
    assert_int_equal(box.rows[0].deadline_block, 5000000000);
    assert_int_equal(box.rows[0].retries, 3);
    assert_int_equal(box.rows[0].guard, 1003);
    assert_null(box.rows[1].tip);
    assert_null(box.rows[1].max_tip);
    assert_int_equal(box.rows[1].deadline_block, -1);
    assert_int_equal(box.rows[1].retries, 0);
    store_req_done(&box.req);
    admit(id, 0);
    admit(plain, 1);
    struct store_snapshot snap;
    snapshot(&snap);
    assert_amount(snap.rows[0].tip, "0"); /* what the attempt pays, not what was asked */
    assert_amount(snap.rows[0].max_tip, largest);
    assert_int_equal(snap.rows[0].deadline_block, 5000000000);
    assert_int_equal(snap.rows[0].retries, 3);
    assert_int_equal(snap.rows[0].guard, 1003);
    assert_int_equal(snap.rows[0].filler_len, 0);
    assert_null(snap.rows[0].stop_outcome);
    assert_false(snap.rows[1].has_max_tip);
    assert_int_equal(snap.rows[1].deadline_block, 0);
    assert_int_equal(snap.rows[1].guard, 0);
    assert_string_equal(snap.facts.suspension, "");
    assert_string_equal(snap.facts.tip_start, "0");
    assert_string_equal(snap.facts.tip_step, "0");
    assert_null(snap.facts.tip_cap);
    assert_null(snap.facts.low_balance);
    assert_false(snap.facts.requeue_usurped);
    assert_false(snap.facts.reborn);
    store_req_done(&snap.req);
}

void test_options_refused(void **state)
{
    (void)state;
    struct store_enqueue r = call_of("refused");
    r.tip = "18";
    r.max_tip = "17";
    refused(r, "tip");
    refused(r, "17");
    r = call_of("refused");
    r.retries = 101;
    refused(r, "retries");
    r = call_of("refused");
    r.deadline_block = -5;
    refused(r, "deadline_block");
    r = call_of("refused");
    r.deadline_ms = 1000000000000; /* in 2001 */
    refused(r, "deadline");
    r.not_before_ms = (int64_t)loop_wall_ms() + 100000;
    r.deadline_ms = r.not_before_ms - 1;
    refused(r, "not_before");
    r = call_of("refused");
    r.tip = "340282366920938463463374607431768211456"; /* more than a chain can take */
    refused(r, "tip");
    r = call_of("refused");
    r.expires_in_ms = -1;
    refused(r, "expires_in");
    r.expires_in_ms = 1000;
    r.deadline_ms = (int64_t)loop_wall_ms() + 100000;
    refused(r, "deadline is given too");
    r = call_of("refused");
    r.delay_ms = INT64_C(31536000000001); /* a thousand years and a bit */
    refused(r, "delay");
    r.delay_ms = 1000;
    r.not_before_ms = (int64_t)loop_wall_ms() + 100000;
    refused(r, "not_before is given too");
    assert_int_equal(outbox_count(), 0);
}

/* ---- times ---- */

/* Times that count from now, by the store's own clock. */
void test_spans(void **state)
{
    (void)state;
    struct store_enqueue r = call_of("later");
    r.delay_ms = 600000;
    r.expires_in_ms = 1200000;
    int64_t before = (int64_t)loop_wall_ms(), id = add(r);
    struct store_outbox box = {.account = a.account, .epoch = a.epoch, .limit = 10};
    RUN_OK(&x, outbox, &box);
    assert_int_equal(box.count, 0);
    store_req_done(&box.req);
    r = call_of("brief");
    r.expires_in_ms = 600000;
    id = add(r);
    RUN_OK(&x, outbox, &box);
    assert_int_equal(box.count, 1);
    assert_int_equal(box.rows[0].id, id);
    assert_in_range(box.rows[0].deadline_ms, before + 600000 - 20, loop_wall_ms() + 600000 + 20);
    store_req_done(&box.req);
    struct store_poll_requests seen = look();
    assert_in_range(seen.next_ms, 1, 600000);
    store_req_done(&seen.req);
}

static bool is_ripe(void)
{
    struct store_poll_requests r = look();
    bool has_rows = r.has_rows;
    store_req_done(&r.req);
    return has_rows;
}

/* A row that waits for its time is not given out, and the look says when to come again. */
void test_not_before(void **state)
{
    (void)state;
    struct store_enqueue r = call_of("later");
    r.not_before_ms = (int64_t)loop_wall_ms() + 600;
    add(r);
    add(call_of("now"));
    assert_int_equal(outbox_count(), 1);
    struct store_poll_requests seen = look();
    assert_false(seen.has_rows);
    assert_in_range(seen.next_ms, 1, 600);
    assert_int_equal(seen.count, 0);
    store_req_done(&seen.req);
    WAIT_FOR(x.l, is_ripe());
    assert_true((int64_t)loop_wall_ms() >= r.not_before_ms - 2);
    assert_int_equal(outbox_count(), 2);
}

/* What is said of the account, asked beside one that nobody has. */
static struct store_want due(int64_t fingerprint)
{
    const int32_t accounts[] = {INT32_MAX, a.account};
    const int64_t epochs[] = {1, a.epoch}, fingerprints[] = {-1, fingerprint};
    struct store_due r = {.count = 2,
                          .accounts = accounts,
                          .epochs = epochs,
                          .fingerprints = fingerprints,
                          .ahead_ms = 2000};
    RUN_OK(&x, due, &r);
    assert_in_range(r.want_count, 1, 2);
    const struct store_want *lost = &r.wants[0];
    assert_true(lost->lost && !lost->has_requests && !lost->has_rows && lost->next_ms == -1);
    assert_int_equal(lost->index, 0);
    struct store_want want = {.next_ms = -1};
    if (r.want_count == 2) {
        want = r.wants[1];
        assert_int_equal(want.index, 1);
    }
    assert_false(want.lost);
    store_req_done(&r.req);
    return want;
}

static bool calm(int64_t fingerprint)
{
    struct store_want want = due(fingerprint);
    return !want.has_requests && !want.has_rows && want.next_ms == -1;
}

static int64_t fingerprint_now(void)
{
    struct store_poll_requests r = look();
    int64_t fingerprint = r.fingerprint;
    store_req_done(&r.req);
    return fingerprint;
}

void test_due(void **state)
{
    (void)state;
    int64_t fingerprint = fingerprint_now();
    assert_true(fingerprint >= 0);
    assert_true(calm(fingerprint));
    struct store_enqueue r = call_of("later");
    r.not_before_ms = (int64_t)loop_wall_ms() + 60000;
    add(r);
    assert_true(calm(fingerprint)); /* not near */
    r = call_of("soon");
    r.not_before_ms = (int64_t)loop_wall_ms() + 300;
    r.deadline_ms = (int64_t)loop_wall_ms() + 900;
    int64_t id = add(r);
    assert_in_range(due(fingerprint).next_ms, 1, 300);
    WAIT_FOR(x.l, due(fingerprint).has_rows);
    assert_in_range(due(fingerprint).next_ms, 1, 600);
    admit(id, 0);
    fingerprint = fingerprint_now();
    assert_false(due(fingerprint).has_rows);
    assert_in_range(due(fingerprint).next_ms, 1, 600);
    WAIT_FOR(x.l, due(fingerprint).has_requests);
    assert_true(due(-1).has_requests);
    assert_int_equal(due(fingerprint).next_ms, -1);
}

/* Facts that are not those of the fingerprint want a look; one that nobody knows says nothing. */
void test_due_facts(void **state)
{
    (void)state;
    int64_t fingerprint = fingerprint_now();
    struct store_pause pause = {
        .account = a.account, .epoch = a.epoch, .suspension = "payment", .reason = "x"};
    RUN_OK(&x, pause, &pause);
    assert_true(due(fingerprint).has_requests);
    assert_true(calm(-1));
    assert_int_not_equal(fingerprint_now(), fingerprint);
    assert_true(calm(fingerprint_now()));
    add(call_of("stands still"));
    assert_true(calm(fingerprint_now()));
    pause.suspension = NULL;
    RUN_OK(&x, pause, &pause);
    assert_true(due(fingerprint).has_rows && !due(fingerprint).has_requests);
    struct store_ask ask = {.id = fx_enqueue(&x, &a, "to be cancelled", 0)};
    admit(ask.id, 0);
    fingerprint = fingerprint_now();
    RUN_OK(&x, cancel, &ask);
    store_req_done(&ask.req);
    assert_true(due(fingerprint).has_requests);
}

void test_deadline_queued(void **state)
{
    (void)state;
    struct store_enqueue r = call_of("brief");
    r.deadline_ms = (int64_t)loop_wall_ms() + 400;
    int64_t id = add(r);
    struct store_outbox box = {.account = a.account, .epoch = a.epoch, .limit = 10};
    RUN_OK(&x, outbox, &box);
    assert_int_equal(box.count, 1);
    assert_in_range(box.rows[0].deadline_ms, r.deadline_ms - 20, r.deadline_ms + 20);
    store_req_done(&box.req);
    struct store_poll_requests seen = look();
    assert_in_range(seen.next_ms, 1, 400);
    store_req_done(&seen.req);
    WAIT_FOR(x.l, outbox_count() == 0);
    struct store_attempt_row row = attempt_row(id, 0, 1);
    struct store_attempts w = attempts_of(&row, 1);
    RUN(&x, admit, &w); /* as good as gone */
    assert_int_equal(w.req.err.code, ERR_DB_CONFLICT);
    seen = look(); /* it ends in here */
    assert_int_equal(seen.count, 0);
    assert_int_equal(seen.next_ms, -1);
    store_req_done(&seen.req);
    struct store_ask ask = {.id = id};
    RUN_OK(&x, cancel, &ask);
    assert_string_equal(ask.answer, "finished");
    store_req_done(&ask.req);
    if (!x.is_pg)
        assert_non_null(strstr(x.event, "expired"));
}

static size_t stops(void)
{
    struct store_poll_requests r = look();
    size_t n = r.count;
    store_req_done(&r.req);
    return n;
}

void test_deadline_pending(void **state)
{
    (void)state;
    struct store_enqueue r = call_of("brief");
    r.deadline_ms = (int64_t)loop_wall_ms() + 400;
    int64_t id = add(r);
    admit(id, 0);
    struct store_poll_requests seen = look();
    assert_int_equal(seen.count, 0);
    assert_in_range(seen.next_ms, 1, 400);
    store_req_done(&seen.req);
    WAIT_FOR(x.l, stops() == 1);
    seen = look();
    assert_int_equal(seen.stops[0].nonce, 0);
    assert_int_equal(seen.stops[0].id, id);
    assert_string_equal(seen.stops[0].outcome, "expired");
    assert_non_null(strstr(seen.stops[0].reason, "deadline"));
    assert_true(seen.stops[0].tip == 0);
    store_req_done(&seen.req);
}

/* ---- asked for later ---- */

static const char *ask_cancel(int64_t id)
{
    static char answer[20];
    struct store_ask r = {.id = id};
    RUN_OK(&x, cancel, &r);
    assert_true(strlen(r.answer) < sizeof(answer));
    memcpy(answer, r.answer, strlen(r.answer) + 1);
    store_req_done(&r.req);
    return answer;
}

void test_cancel(void **state)
{
    (void)state;
    int64_t queued = add(call_of("queued")), sent = add(call_of("sent"));
    assert_string_equal(ask_cancel(queued), "cancelled");
    if (!x.is_pg)
        assert_non_null(strstr(x.event, "cancelled"));
    assert_string_equal(ask_cancel(queued), "finished");
    admit(sent, 7);
    assert_int_equal(stops(), 0);
    int wakes = x.wakes;
    assert_string_equal(ask_cancel(sent), "requested");
    if (!x.is_pg)
        assert_int_equal(x.wakes, wakes + 1);
    struct store_poll_requests seen = look();
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.stops[0].nonce, 7);
    assert_int_equal(seen.stops[0].id, sent);
    assert_string_equal(seen.stops[0].outcome, "cancelled");
    assert_non_null(strstr(seen.stops[0].reason, "cancelled"));
    store_req_done(&seen.req);
    finish(7, "ok", 20); /* it got in first */
    assert_int_equal(stops(), 0);
    assert_string_equal(ask_cancel(sent), "finished");
    struct store_ask unknown = {.id = sent + 1000000};
    RUN(&x, cancel, &unknown);
    assert_int_equal(unknown.req.err.code, ERR_ARGUMENT);
    store_req_done(&unknown.req);
}

/* The new id, or 0: it is refused. */
static int64_t ask_retry(struct store_ask r, const char *refusal)
{
    char id[30];
    snprintf(id, sizeof(id), "%lld", (long long)r.id);
    RUN(&x, retry, &r);
    int64_t made = strtoll(r.answer, NULL, 10);
    if (refusal) {
        if (r.req.err.code != ERR_ARGUMENT || !strstr(r.req.err.text, id) ||
            !strstr(r.req.err.text, refusal))
            fail_msg("\"%s\" (%s) does not say \"%s\" of %s", r.req.err.text, r.answer, refusal,
                     id);
        assert_string_equal(r.answer, "");
    } else if (r.req.err.code || made <= r.id) {
        fail_msg("retry of %s: \"%s\" %s", id, r.answer, r.req.err.text);
    }
    store_req_done(&r.req);
    return made;
}

/* It is alone in the outbox, with the call and options of test_retry; 0: nothing is. */
static void expect_again(int64_t id, int64_t deadline_ms, int64_t deadline_block)
{
    struct store_outbox box = {.account = a.account, .epoch = a.epoch, .limit = 10};
    RUN_OK(&x, outbox, &box);
    assert_int_equal(box.count, id ? 1 : 0);
    if (id) {
        assert_int_equal(box.rows[0].id, id);
        assert_int_equal(box.rows[0].call.len, 5);
        assert_memory_equal(box.rows[0].call.data, "again", 5);
        assert_string_equal(box.rows[0].creator, "tester");
        assert_string_equal(box.rows[0].tip, "7");
        assert_int_equal(box.rows[0].retries, 3);
        assert_int_equal(box.rows[0].deadline_ms, deadline_ms);
        assert_int_equal(box.rows[0].deadline_block, deadline_block);
    }
    store_req_done(&box.req);
}

/* Only what ended without effect is enqueued again, once, with the options that it had. */
void test_retry(void **state)
{
    (void)state;
    int64_t hour = ((int64_t)loop_wall_ms() / 1000 + 3600) * 1000;
    struct store_enqueue r = call_of("again");
    r.tip = "7";
    r.retries = 3;
    r.deadline_ms = hour;
    r.deadline_block = 5000000000;
    int64_t id = add(r);
    ask_retry((struct store_ask){.id = id + 1000000}, "there is no such transaction");
    ask_retry((struct store_ask){.id = id}, "which has not ended");
    assert_string_equal(ask_cancel(id), "cancelled");
    expect_again(0, 0, 0);

    int64_t second = ask_retry((struct store_ask){.id = id}, NULL);
    expect_again(second, hour, 5000000000);
    assert_int_equal(ask_retry((struct store_ask){.id = id}, NULL), second);
    expect_again(second, hour, 5000000000); /* and no other */
    assert_string_equal(ask_cancel(second), "cancelled");
    struct store_ask later = {
        .id = second, .deadline_ms = hour + 60000, .deadline_block = 6000000000};
    int64_t third = ask_retry(later, NULL);
    expect_again(third, hour + 60000, 6000000000);
    assert_int_equal(ask_retry((struct store_ask){.id = id}, NULL), second); /* though it ended */

    admit_tip(third, 0, "7");
    ask_retry((struct store_ask){.id = third}, "which has not ended");
    finish(0, "dispatch_error", 20);
    struct store_ask without = {
        .id = third, .deadline_ms = STORE_ASK_NONE, .deadline_block = STORE_ASK_NONE};
    int64_t fourth = ask_retry(without, NULL);
    expect_again(fourth, -1, -1);
    admit_tip(fourth, 1, "7");
    finish(1, "ok", 21);
    ask_retry((struct store_ask){.id = fourth}, "which took effect");
    expect_again(0, 0, 0);
}

static int ask_bump(int64_t id, const char *tip, const char *answer)
{
    struct store_ask r = {.id = id, .tip = tip};
    RUN(&x, bump, &r);
    int code = r.req.err.code;
    if (answer && code)
        fail_msg("bump: %s", r.req.err.text);
    if (answer)
        assert_string_equal(r.answer, answer);
    store_req_done(&r.req);
    return code;
}

static void expect_bump(int64_t nonce, const char *tip)
{
    struct store_poll_requests seen = look();
    assert_int_equal(seen.count, tip ? 1 : 0);
    if (tip) {
        assert_int_equal(seen.stops[0].nonce, nonce);
        assert_null(seen.stops[0].outcome);
        assert_null(seen.stops[0].reason);
        char text[40];
        assert_string_equal(u128_text(seen.stops[0].tip, text), tip);
    }
    store_req_done(&seen.req);
}

/* A queued transaction's tip is raised at once; a pending one's comes back from the look until an
 * attempt pays it. */
void test_bump(void **state)
{
    (void)state;
    struct store_enqueue r = call_of("bumped");
    r.max_tip = "500";
    int64_t id = add(r);
    ask_bump(id, "20", "queued");
    assert_int_equal(ask_bump(id, "20", NULL), ERR_ARGUMENT);
    assert_int_equal(ask_bump(id, "501", NULL), ERR_ARGUMENT);
    struct store_outbox box = {.account = a.account, .epoch = a.epoch, .limit = 10};
    RUN_OK(&x, outbox, &box);
    assert_string_equal(box.rows[0].tip, "20");
    store_req_done(&box.req);
    admit_tip(id, 0, "20");
    expect_bump(0, NULL);
    ask_bump(id, NULL, "requested"); /* a step of one where the policy says nothing */
    expect_bump(0, "21");
    ask_bump(id, "300", "requested");
    ask_bump(id, "200", "requested"); /* does not lower it */
    expect_bump(0, "300");
    assert_int_equal(ask_bump(id, "501", NULL), ERR_ARGUMENT);
    assert_int_equal(ask_bump(id, "0", NULL), ERR_ARGUMENT);
    struct store_attempt_row row = attempt_row(0, 0, 900);
    row.tip = "300";
    struct store_attempts w = attempts_of(&row, 1);
    RUN_OK(&x, attempt, &w);
    expect_bump(0, NULL);
    assert_int_equal(ask_bump(id, "300", NULL), ERR_ARGUMENT);
    fx_hash(row.hash, 900);
    struct tx_end end = end_row(0, "ok", 20);
    memcpy(end.hash, row.hash, 32);
    struct store_finish f = finish_of(&end, 1);
    RUN_OK(&x, finish, &f);
    ask_bump(id, "400", "finished");
    assert_int_equal(ask_bump(id + 1000000, "400", NULL), ERR_ARGUMENT);
}

/* It was raised while an admission was under way that had read it before. */
void test_bump_meets_admission(void **state)
{
    (void)state;
    int64_t id = add(call_of("bumped"));
    ask_bump(id, "20", "queued");
    admit_tip(id, 0, "3");
    expect_bump(0, "20");
    finish(0, "ok", 20);
    expect_bump(0, NULL);
}

/* Without a tip it goes one step up, as far as it may. */
void test_bump_to_the_limit(void **state)
{
    (void)state;
    struct store_enqueue r = call_of("bumped");
    r.tip = "8";
    r.max_tip = "9";
    int64_t id = add(r);
    admit_tip(id, 0, "8");
    ask_bump(id, NULL, "requested");
    expect_bump(0, "9");
    struct store_attempt_row row = attempt_row(0, 0, 900);
    row.tip = "9";
    struct store_attempts w = attempts_of(&row, 1);
    RUN_OK(&x, attempt, &w);
    assert_int_equal(ask_bump(id, NULL, NULL), ERR_ARGUMENT);
}

/* ---- fillers of a stop, refusals ---- */

static struct store_attempt_row filler_row(int64_t nonce, int hash)
{
    struct store_attempt_row row = attempt_row(0, nonce, hash);
    row.extrinsic = (struct store_bytes){(const uint8_t *)"signed filler", 13};
    row.filler_len = 3;
    return row;
}

/* The transaction keeps its nonce and its own bytes; the row says how it ends if the filler gets
 * in. */
void test_filler_attempt(void **state)
{
    (void)state;
    fx_admit(&x, &a, 0, 1);
    struct store_attempt_row row = attempt_row(0, 0, 800);
    struct store_attempts r = attempts_of(&row, 1);
    RUN_OK(&x, attempt, &r);
    row = filler_row(0, 801);
    row.tip = "5";
    row.outcome = "cancelled";
    row.stop_reason = "cancelled by someone";
    RUN_OK(&x, attempt, &r);
    struct store_snapshot snap;
    snapshot(&snap);
    assert_int_not_equal(snap.rows[0].id, 0);
    assert_int_equal(snap.rows[0].filler_len, 3);
    assert_string_equal(snap.rows[0].stop_outcome, "cancelled");
    assert_string_equal(snap.rows[0].stop_reason, "cancelled by someone");
    assert_int_equal(snap.rows[0].call_len, 4); /* its own, as ever */
    assert_amount(snap.rows[0].tip, "5");
    assert_int_equal(snap.rows[0].earlier_count, 2);
    assert_int_equal(snap.rows[0].earlier_own, 2);
    store_req_done(&snap.req);
    fx_hash(row.hash, 802);
    row.tip = "6";
    RUN_OK(&x, attempt, &r);
    snapshot(&snap);
    assert_int_equal(snap.rows[0].earlier_count, 3);
    assert_int_equal(snap.rows[0].earlier_own, 2);
    store_req_done(&snap.req);
    fx_hash(row.hash, 803);
    row.outcome = "ok"; /* nothing that a filler could mean */
    RUN(&x, attempt, &r);
    assert_int_equal(r.req.err.code, ERR_BUG);
    row.outcome = "cancelled";
    row.filler_len = 14; /* more than there is */
    RUN(&x, attempt, &r);
    assert_int_equal(r.req.err.code, ERR_BUG);
    struct tx_end end = end_row(0, "cancelled", 30);
    struct store_finish f = finish_of(&end, 1);
    RUN(&x, finish, &f); /* its own bytes end it as the chain says */
    assert_int_equal(f.req.err.code, ERR_BUG);
    fx_hash(end.hash, 801);
    end.outcome = "ok";
    RUN(&x, finish, &f); /* and a filler never */
    assert_int_equal(f.req.err.code, ERR_BUG);
    end.outcome = "cancelled";
    RUN_OK(&x, finish, &f);
    snapshot(&snap);
    assert_int_equal(snap.count, 0);
    assert_int_equal(snap.used_nonce, 1);
    assert_int_equal(snap.used_block, 30);
    store_req_done(&snap.req);
}

/* A refusal leaves the state alone, whichever attempt it is about. */
void test_refused(void **state)
{
    (void)state;
    fx_admit(&x, &a, 0, 1);
    struct tx_report row = {.nonce = 0, .state = "ready", .block_number = -1};
    struct store_states r = states_of(&row, 1);
    fx_hash(row.hash, 0);
    RUN_OK(&x, state, &r);
    row.state = "refused";
    snprintf(row.error, sizeof(row.error), "1010: Inability to pay some fees");
    RUN_OK(&x, state, &r);
    int events = x.events;
    RUN_OK(&x, state, &r);
    if (!x.is_pg) {
        assert_int_equal(x.events, events); /* the same reason is told once */
        assert_string_equal(x.event, "update 0 ready 0000 - 1010: Inability to pay some fees");
    }
    struct store_attempt_row again = attempt_row(0, 0, 800);
    struct store_attempts w = attempts_of(&again, 1);
    RUN_OK(&x, attempt, &w);
    RUN_OK(&x, state, &r);
    struct store_snapshot snap;
    snapshot(&snap);
    assert_string_equal(snap.rows[0].state, "signed");
    store_req_done(&snap.req);
    fx_hash(row.hash, 801);
    RUN(&x, state, &r);
    assert_int_equal(r.req.err.code, ERR_BUG);
}

/* ---- back to the outbox ---- */

static int requeue(int64_t nonce, const char *outcome, int64_t block)
{
    struct tx_end row = end_row(nonce, outcome, block);
    struct store_finish r = finish_of(&row, 1);
    RUN(&x, requeue, &r);
    return r.req.err.code;
}

void test_requeue_usurped(void **state)
{
    (void)state;
    int64_t first = add(call_of("first")), second = add(call_of("second"));
    admit(first, 5);
    admit(second, 6);
    int64_t third = add(call_of("third"));
    assert_int_equal(requeue(6, "usurped", -1), 0);
    assert_int_equal(requeue(5, "failed", -1), 0);
    struct store_outbox box = {.account = a.account, .epoch = a.epoch, .limit = 10};
    RUN_OK(&x, outbox, &box);
    assert_int_equal(box.count, 3);
    assert_int_equal(box.rows[0].id, first);
    assert_int_equal(box.rows[1].id, second);
    assert_int_equal(box.rows[1].call.len, 6);
    assert_memory_equal(box.rows[1].call.data, "second", 6);
    assert_int_equal(box.rows[2].id, third);
    store_req_done(&box.req);
    struct store_snapshot snap;
    snapshot(&snap);
    assert_int_equal(snap.count, 0);
    assert_int_equal(snap.next_nonce, 7);
    assert_int_equal(snap.used_nonce, 7);
    store_req_done(&snap.req);
    if (!x.is_pg)
        assert_string_equal(x.event, "finished 5 signed 0500 failed why");
    admit(first, 7);
    admit(second, 8);
    finish(7, "ok", 20);
    finish(8, "ok", 20);
    assert_int_equal(requeue(5, "usurped", -1), ERR_DB_CONFLICT); /* ended before */
    assert_int_equal(requeue(90, "usurped", -1), ERR_DB_CONFLICT);
}

void test_requeue_dispatch_error(void **state)
{
    (void)state;
    struct store_enqueue r = call_of("again");
    r.retries = 1;
    int64_t id = add(r);
    admit(id, 0);
    assert_int_equal(requeue(0, "ok", 10), ERR_BUG);
    assert_int_equal(requeue(0, "dispatch_error", 10), 0);
    struct store_outbox box = {.account = a.account, .epoch = a.epoch, .limit = 10};
    RUN_OK(&x, outbox, &box);
    assert_int_equal(box.count, 1);
    assert_int_equal(box.rows[0].id, id);
    assert_int_equal(box.rows[0].retries, 0);
    store_req_done(&box.req);
    struct store_snapshot snap;
    snapshot(&snap);
    assert_int_equal(snap.used_nonce, 1);
    assert_int_equal(snap.used_block, 10);
    store_req_done(&snap.req);
    admit(id, 1);
    snapshot(&snap);
    assert_int_equal(snap.rows[0].earlier_count, 0); /* nothing of the former nonce */
    store_req_done(&snap.req);
    assert_int_equal(requeue(1, "dispatch_error", 11), ERR_BUG); /* no more */
    finish(1, "dispatch_error", 11);
}

void test_requeue_keeps_its_options(void **state)
{
    (void)state;
    struct store_enqueue r = call_of("optional");
    r.tip = "3";
    r.max_tip = "99";
    r.deadline_block = 1234;
    r.retries = 2;
    r.guard = 7;
    r.priority = 4;
    r.deadline_ms = (int64_t)loop_wall_ms() + 600000;
    r.key = "keep";
    int64_t id = add(r);
    admit(id, 0);
    struct store_attempt_row filler = filler_row(0, 800);
    struct store_attempts w = attempts_of(&filler, 1);
    RUN_OK(&x, attempt, &w);
    assert_int_equal(requeue(0, "usurped", -1), 0);
    struct store_outbox box = {.account = a.account, .epoch = a.epoch, .limit = 10};
    RUN_OK(&x, outbox, &box);
    assert_int_equal(box.count, 1);
    assert_string_equal(box.rows[0].tip, "3");
    assert_string_equal(box.rows[0].max_tip, "99");
    assert_int_equal(box.rows[0].deadline_block, 1234);
    assert_int_equal(box.rows[0].retries, 2);
    assert_int_equal(box.rows[0].guard, 7);
    assert_int_equal(box.rows[0].priority, 4);
    assert_in_range(box.rows[0].deadline_ms, r.deadline_ms - 20, r.deadline_ms + 20);
    assert_string_equal(box.rows[0].creator, "tester");
    store_req_done(&box.req);
    assert_int_equal(add(r), id); /* the key still stands for it */
    admit(id, 1);
    struct store_snapshot snap;
    snapshot(&snap);
    assert_null(snap.rows[0].stop_outcome); /* that was the other nonce's */
    store_req_done(&snap.req);
}

/* ---- the account ---- */

static void suspension(const char *name)
{
    struct store_pause r = {.account = a.account,
                            .epoch = a.epoch,
                            .suspension = name,
                            .reason = name ? "a reason" : NULL};
    RUN_OK(&x, pause, &r);
}

static void expect_suspension(const char *name, bool reborn)
{
    struct store_poll_requests seen = look();
    assert_string_equal(seen.facts.suspension, name);
    assert_int_equal(seen.facts.paused, *name != 0);
    assert_int_equal(seen.facts.reborn, reborn);
    store_req_done(&seen.req);
    struct store_snapshot snap;
    snapshot(&snap);
    assert_string_equal(snap.facts.suspension, name);
    assert_int_equal(snap.facts.paused, *name != 0);
    assert_int_equal(snap.facts.reborn, reborn);
    if (*name)
        assert_string_equal(snap.suspension_text, "a reason");
    else
        assert_null(snap.suspension_text);
    store_req_done(&snap.req);
}

static void resume(void)
{
    struct store_ask r = {.account = a.alias};
    RUN_OK(&x, resume, &r);
    assert_string_equal(r.answer, "");
    store_req_done(&r.req);
}

void test_hold(void **state)
{
    (void)state;
    int64_t id = add(call_of("held"));
    expect_suspension("", false);
    suspension("payment");
    expect_suspension("payment", false);
    assert_int_equal(outbox_count(), 0);
    struct store_attempt_row row = attempt_row(id, 0, 0);
    struct store_attempts r = attempts_of(&row, 1);
    RUN(&x, admit, &r);
    assert_int_equal(r.req.err.code, ERR_DB_CONFLICT);
    suspension(NULL);
    expect_suspension("", false);
    assert_int_equal(outbox_count(), 1);
    suspension("payment");
    resume();
    expect_suspension("", false);
    struct store_pause bad = {
        .account = a.account, .epoch = a.epoch, .suspension = "nonsense", .reason = "x"};
    RUN(&x, pause, &bad);
    assert_int_not_equal(bad.req.err.code, 0);
    struct store_ask unknown = {.account = "nobody-at-all"};
    RUN(&x, resume, &unknown);
    assert_int_equal(unknown.req.err.code, ERR_ARGUMENT);
    store_req_done(&unknown.req);
}

/* The first admission says which one it is; another one needs an operator. */
void test_transaction_version(void **state)
{
    (void)state;
    struct store_poll_requests seen = look();
    assert_int_equal(seen.facts.transaction_version, 0);
    store_req_done(&seen.req);
    admit(add(call_of("first")), 0);
    seen = look();
    assert_int_equal(seen.facts.transaction_version, 26);
    store_req_done(&seen.req);
    struct store_attempt_row row = attempt_row(add(call_of("second")), 1, 1);
    struct store_attempts r = attempts_of(&row, 1);
    r.transaction_version = 27;
    RUN(&x, admit, &r);
    assert_int_equal(r.req.err.code, ERR_DB_CONFLICT);
    struct store_attempt_row again = attempt_row(0, 0, 800), filler = filler_row(0, 801);
    struct store_attempts w = r;
    w.rows = &again;
    RUN(&x, attempt, &w);
    assert_int_equal(w.req.err.code, ERR_DB_CONFLICT);
    w.rows = &filler; /* a filler means the same under any */
    RUN_OK(&x, attempt, &w);
    suspension("transaction_version");
    resume();
    seen = look();
    assert_int_equal(seen.facts.transaction_version, 0);
    store_req_done(&seen.req);
    RUN_OK(&x, admit, &r);
    seen = look();
    assert_int_equal(seen.facts.transaction_version, 27);
    store_req_done(&seen.req);
}

/* What finalized blocks used by what is on record: the next nonce does not go below. */
void test_used_nonce(void **state)
{
    (void)state;
    struct store_snapshot snap;
    snapshot(&snap);
    assert_int_equal(snap.used_nonce, -1);
    assert_int_equal(snap.used_block, -1);
    store_req_done(&snap.req);
    for (int64_t i = 0; i < 3; i++)
        admit(add(call_of("used")), 10 + i);
    finish(10, "ok", 40);
    finish(11, "ok", 41);
    snapshot(&snap);
    assert_int_equal(snap.used_nonce, 12);
    assert_int_equal(snap.used_block, 41);
    store_req_done(&snap.req);
    finish(12, "expired", -1); /* its nonce was never used */
    snapshot(&snap);
    assert_int_equal(snap.used_nonce, 12);
    store_req_done(&snap.req);
    struct store_nonce r = {
        .account = a.account, .epoch = a.epoch, .next_nonce = 12, .lower = true};
    RUN_OK(&x, nonce, &r);
    r.next_nonce = 11;
    RUN(&x, nonce, &r);
    assert_int_equal(r.req.err.code, ERR_DB_CONFLICT);
}

/* An account that was reaped and ordered to go on begins again at whatever nonce the chain has. */
void test_reborn(void **state)
{
    (void)state;
    admit(add(call_of("old")), 30);
    finish(30, "ok", 40);
    admit(add(call_of("dead")), 31);
    suspension("reaped");
    expect_suspension("reaped", false);
    resume();
    expect_suspension("", true);
    struct store_nonce r = {
        .account = a.account, .epoch = a.epoch, .next_nonce = 0, .reborn = true};
    RUN(&x, nonce, &r); /* while a row of the former life is there */
    assert_int_equal(r.req.err.code, ERR_BUG);
    finish(31, "failed", -1);
    r.reborn = false;
    r.lower = true;
    RUN(&x, nonce, &r);
    assert_int_equal(r.req.err.code, ERR_DB_CONFLICT);
    r.reborn = true;
    RUN_OK(&x, nonce, &r);
    expect_suspension("", false);
    struct store_snapshot snap;
    snapshot(&snap);
    assert_int_equal(snap.next_nonce, 0);
    assert_int_equal(snap.used_nonce, -1);
    assert_int_equal(snap.used_block, -1);
    store_req_done(&snap.req);
    admit(add(call_of("new")), 0);
    finish(0, "ok", 50);
    snapshot(&snap);
    assert_int_equal(snap.used_nonce, 1);
    assert_int_equal(snap.used_block, 50);
    store_req_done(&snap.req);
}
