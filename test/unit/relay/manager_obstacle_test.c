/* What keeps an account from going on: each code of obstacle.h is made by the events that lead to
 * it, is gone when they are, and stands in docs/obstacles.md; then which of them lasts. */
#include "manager_harness.h"
#include "page.h"
#include "relay/core/tx/obstacle.h"

static bool seen_codes[OBSTACLE_CODES];

static void expect_obstacle(const struct script *s, enum obstacle_code code, const char *words)
{
    struct obstacle o;
    manager_obstacle(s->m, s->now, &o);
    if (o.code != code || !strstr(o.text, words))
        fail_msg("expected %s \"%s\", got %s \"%s\"", obstacle_name(code), words,
                 obstacle_name(o.code), o.text);
    seen_codes[code] = true;
}

static void expect_none(const struct script *s)
{
    expect_obstacle(s, OBSTACLE_NONE, "");
}

static void blocks(struct script *s, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        best(s);
}

static void node_and_load(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    expect_none(s); /* a follower */
    promote(s);
    expect_obstacle(s, OBSTACLE_NODE, "no endpoint is usable");
    chain_up(s);
    expect_obstacle(s, OBSTACLE_LOAD, "read from the database");
    script_free(s);
}

static void questions(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    load(s, NULL, 0, 5);
    chain_up(s);
    expect_obstacle(s, OBSTACLE_QUESTION, "what its pool holds");
    pool_failed(s);
    expect_obstacle(s, OBSTACLE_QUESTION, "what its pool holds");
    tick(s);
    pool_is(s, 0);
    expect_obstacle(s, OBSTACLE_QUESTION, "the account's nonce");
    nonce_is(s, 5);
    expect_obstacle(s, OBSTACLE_FINALITY, "0 was the last one read");
    finalized_at(s, s->finalized, 5, 0, NULL);
    expect_none(s);
    chain_down(s);
    expect_obstacle(s, OBSTACLE_NODE, "no endpoint");
    chain_up(s);
    expect_none(s); /* with no row open, nothing depends on what the node knows */
    script_free(s);
}

static void behind(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    s->best_known = s->best + 60;
    load(s, NULL, 0, 5);
    chain_up(s);
    best(s);
    expect_obstacle(s, OBSTACLE_BEHIND, "which another node had");
    script_free(s);
}

static void behind_a_row(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending row = loaded_row(s, 5, "ready");
    row.submitted_block = s->finalized + 100;
    load(s, &row, 1, 6);
    chain_up(s);
    expect_obstacle(s, OBSTACLE_BEHIND, "which a pending row was signed at");
    script_free(s);
}

static void refused_write(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 1);
    expect(s, MANAGER_FX_ADMIT);
    write_failed(s, MANAGER_FX_ADMIT, ERR_DB);
    expect_obstacle(s, OBSTACLE_WRITE, "(admit)");
    script_free(s);
}

/* The chain may make no later block by itself, and then the account waits for longer than a few
 * seconds. */
static void another_version(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    for (unsigned i = 7; i >= 6; i--) {
        feed(s, (struct manager_event){
                    .type = MANAGER_EV_RUNTIME,
                    .chain = {.spec_version = ++s->spec, .transaction_version = i}});
        if (i == 6)
            expect_none(s);
        else
            expect_obstacle(s, OBSTACLE_SIGNATURE,
                            "transaction_version is 7 and calls were "
                            "accepted for 6: nothing is signed");
    }
    script_free(s);
}

static void no_key(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 1);
    expect(s, MANAGER_FX_ADMIT);
    write_failed(s, MANAGER_FX_ADMIT, ERR_NET);
    expect_obstacle(s, OBSTACLE_SIGNATURE, "nothing can be signed");
    best(s);
    outbox(s, 1);
    admitted(s);
    expect_none(s);
    script_free(s);
}

/* What could not be signed was cancelled meanwhile: nothing is tried any more. */
static void nothing_to_sign_left(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 1);
    expect(s, MANAGER_FX_ADMIT);
    write_failed(s, MANAGER_FX_ADMIT, ERR_NET);
    blocks(s, 5);
    expect_none(s);
    script_free(s);
}

static void suspended(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 1);
    admitted(s);
    refuse(s, 5, 1010,
           "Invalid Transaction: Inability to pay some fees (e.g. account balance too low)");
    expect_obstacle(s, OBSTACLE_SUSPENDED, "cannot pay for nonce 5");
    script_free(s);
}

/* The next leader says what the table has of it, whatever suspended it. */
static void suspended_by_another(void **state)
{
    (void)state;
    static const struct {
        enum manager_suspension why;
        bool reborn; /* an operator's order */
        const char *stored, *said;
    } rows[] = {
        {MANAGER_SUSPENSION_PAYMENT, false, "cannot pay for nonce 7", "cannot pay for nonce 7"},
        {MANAGER_SUSPENSION_REAPED, false, "nonce 0 is below 7", "nonce 0 is below 7"},
        {MANAGER_SUSPENSION_TRANSACTION_VERSION, false, "it is 9", "it is 9"},
        {MANAGER_SUSPENSION_TRANSACTION_VERSION, false, NULL,
         "an earlier leader suspended it: transaction_version"},
        {MANAGER_SUSPENSION_NONE, true, NULL, "what is pending of its former life ends first"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct script *s = script_new(NULL);
        struct tx_pending row = loaded_row(s, 5, "ready");
        s->account.paused = !rows[i].reborn;
        s->account.reborn = rows[i].reborn;
        s->account.suspension = rows[i].why;
        s->suspension_text = rows[i].stored;
        load(s, &row, 1, 6);
        chain_up(s);
        expect_obstacle(s, OBSTACLE_SUSPENDED, rows[i].said);
        script_free(s);
    }
}

static void gate(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 1);
    admitted(s);
    refuse_code(s, 5, ERR_NOT_LEADER);
    expect_obstacle(s, OBSTACLE_GATE, "not sure that it still leads");
    feed(s, (struct manager_event){.type = MANAGER_EV_GATE_OPEN});
    expect_none(s);
    script_free(s);
}

static void no_blocks(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    s->now += 29999;
    expect_none(s);
    s->now += 1;
    expect_obstacle(s, OBSTACLE_NO_BLOCKS, "makes no blocks");
    best(s);
    expect_none(s);
    script_free(s);
}

static void finality(void **state)
{
    (void)state;
    static const struct manager_config mortal = {.era_period = 64};
    struct script *s = leading_with(&mortal, 5);
    blocks(s, 80);
    expect_obstacle(s, OBSTACLE_FINALITY, "lags by an era");
    script_free(s);

    s = leading_pooled(5, 1);
    status(s, 5, TX_IN_BLOCK, block_of(1));
    blocks(s, 58);
    expect_none(s);
    blocks(s, 3);
    expect_obstacle(s, OBSTACLE_FINALITY, "no block becomes final");
    finalized(s, 5, 0, NULL); /* without an era, but what comes behind has one */
    expect_obstacle(s, OBSTACLE_FINALITY, "behind the account's first");
    finalized(s, 5, 0, NULL);
    expect_none(s);
    script_free(s);
}

static void unread(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    unread_at(s, ++s->finalized);
    expect_none(s); /* it may still be in the pool */
    status(s, 5, TX_IN_BLOCK, block_of(1));
    expect_obstacle(s, OBSTACLE_UNREAD, "which may hold nonce 5, cannot be read");
    script_free(s);
}

static void head_and_gap(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 2);
    blocks(s, 9);
    expect_none(s);
    blocks(s, 3);
    expect_obstacle(s, OBSTACLE_HEAD, "nonce 5 holds up the account");
    script_free(s);

    s = leading(5);
    outbox(s, 2);
    admitted(s);
    accept(s, 6);
    for (unsigned i = 0; i < 13; i++) {
        refuse(s, 5, -32603, "Internal error");
        best(s);
    }
    expect_obstacle(s, OBSTACLE_GAP, "nonce 5 is missing");
    script_free(s);
}

/* Until a pool or a block has it, and only where nothing before it is on its way. */
static void refused_by_nodes(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 2);
    admitted(s);
    refuse(s, 5, -32603, "Internal error");
    expect_obstacle(s, OBSTACLE_REFUSED, "nodes refuse nonce 5");
    refuse(s, 6, -32603, "Not this one");
    for (unsigned i = 0; i < 13; i++) {
        best(s);
        expect_submit(s, 5);
        refuse(s, 5, -32603, "Not now");
        expect_obstacle(s, OBSTACLE_REFUSED, "Not now"); /* not the head, whatever its age */
    }
    best(s);
    accept(s, 5);
    expect_obstacle(s, OBSTACLE_HEAD, "it waits in the pool");
    status(s, 5, TX_IN_BLOCK, block_of(1));
    expect_obstacle(s, OBSTACLE_REFUSED, "nodes refuse nonce 6");
    script_free(s);
}

static void polled(struct script *s, bool paused)
{
    s->account.paused = paused;
    feed(s,
         (struct manager_event){.type = MANAGER_EV_REQUESTS, .requests = {.account = &s->account}});
}

/* Whatever keeps what is pending comes first: that goes on. */
static void paused(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    expect_none(s);
    polled(s, true);
    expect_obstacle(s, OBSTACLE_PAUSED, "an operator paused it");
    chain_down(s);
    expect_obstacle(s, OBSTACLE_NODE, "no endpoint");
    script_free(s);

    s = leading(5);
    polled(s, true);
    expect_obstacle(s, OBSTACLE_PAUSED, "nothing new is sent");
    polled(s, false);
    expect_none(s);
    script_free(s);
}

static void unseen(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    finalized(s, 6, 0, NULL);
    expect(s, MANAGER_FX_FOLLOW);
    finalized_at(s, 100, 5, 0, NULL);
    expect_obstacle(s, OBSTACLE_UNSEEN, "read once more");
    finalized_at(s, 101, 6, 0, NULL);
    expect_obstacle(s, OBSTACLE_UNSEEN, "nonce 5 is used");
    for (uint64_t number = 102; number < s->finalized + (uint64_t)s->era; number++)
        finalized_at(s, number, 6, 0, NULL);
    expect(s, MANAGER_FX_STORE_FINISH);
    expect_none(s);
    script_free(s);
}

static void untold_pool(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    status(s, 5, TX_DROPPED, NULL);
    expect(s, MANAGER_FX_ASK_POOL);
    expect_none(s);
    feed(s, (struct manager_event){.type = MANAGER_EV_POOL, .pool = {.untold = true}});
    expect_obstacle(s, OBSTACLE_POOL, "where nonce 5 is");
    nonce_is(s, 6);
    expect_none(s);
    script_free(s);
}

static void lost_commits(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    promote(s);
    chain_up(s);
    feed(s, (struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                   .snapshot = {.last = true,
                                                .next_nonce = 5,
                                                .used_nonce = -1,
                                                .used_block = -1,
                                                .reconcile = true,
                                                .reconcile_from = s->finalized - 5,
                                                .lost_until = -1,
                                                .account = &s->account}});
    expect_obstacle(s, OBSTACLE_LOST_COMMITS, "commits may be lost");
    script_free(s);
}

/* These are the doors' own: the system tests make them (and fail if one is left out). */
static bool of_the_doors(int code)
{
    return code == OBSTACLE_READ || code == OBSTACLE_CONTRADICTED || code == OBSTACLE_UNCONFIRMED ||
           code == OBSTACLE_LISTENER || code == OBSTACLE_QUEUE || code == OBSTACLE_CLOCK ||
           code == OBSTACLE_CONTROL || code == OBSTACLE_ROW_HELD || code == OBSTACLE_PRESIGNED ||
           code == OBSTACLE_FOREIGN_LOCK || code == OBSTACLE_NO_LEADER || code == OBSTACLE_DATABASE;
}

static void each_code_was_made(void **state)
{
    (void)state;
    for (int code = OBSTACLE_NONE; code < OBSTACLE_CODES; code++)
        if (!seen_codes[code] && !of_the_doors(code))
            fail_msg("no scenario makes %s", obstacle_name((enum obstacle_code)code));
}

static void page(void **state)
{
    (void)state;
    static const char *const others[] = {
#define X(name) name,
        DATABASE_OBSTACLES(X) TRANSACTION_OBSTACLES(X)
#undef X
    };
    char row[60];
    for (int code = OBSTACLE_NONE + 1; code < OBSTACLE_CODES; code++) {
        snprintf(row, sizeof(row), "\n| `%s` |", obstacle_name((enum obstacle_code)code));
        page_shows(OBSTACLES_MD, row);
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        snprintf(row, sizeof(row), "\n| `%s` |", others[i]);
        page_shows(OBSTACLES_MD, row);
    }
}

/* ---- which of them last ---- */

static const struct obstacle none_seen;

static struct obstacle seen(enum obstacle_code code, const char *text)
{
    struct obstacle o = {.code = code};
    snprintf(o.text, sizeof(o.text), "%s", text);
    return o;
}

static unsigned step(struct obstacle_track *t, uint64_t now, struct obstacle o)
{
    return obstacle_step(t, now, &o);
}

static void what_is_over_soon_is_not_told(void **state)
{
    (void)state;
    struct obstacle_track t = {0};
    assert_int_equal(step(&t, 1000, seen(OBSTACLE_NODE, "x")), 0);
    assert_int_equal(step(&t, 5999, seen(OBSTACLE_NODE, "x")), 0);
    assert_false(obstacle_lasts(&t));
    assert_int_equal(step(&t, 6000, none_seen), 0);
    assert_int_equal(step(&t, 7000, seen(OBSTACLE_NODE, "x")), 0); /* begins anew */
    assert_int_equal(step(&t, 11999, seen(OBSTACLE_NODE, "x")), 0);
}

static void what_lasts_is_told_and_taken_back(void **state)
{
    (void)state;
    struct obstacle_track t = {0};
    step(&t, 1000, seen(OBSTACLE_NODE, "x"));
    assert_int_equal(step(&t, 6000, seen(OBSTACLE_NODE, "x")), OBSTACLE_TELL | OBSTACLE_STORE);
    assert_true(obstacle_lasts(&t));
    assert_int_equal(step(&t, 7000, seen(OBSTACLE_NODE, "x")), 0);
    assert_int_equal(step(&t, 66000, seen(OBSTACLE_NODE, "x")), OBSTACLE_TELL); /* each minute */
    assert_int_equal(step(&t, 67000, none_seen), 0);
    assert_int_equal(step(&t, 69499, none_seen), 0);
    assert_int_equal(step(&t, 69500, none_seen), OBSTACLE_OVER | OBSTACLE_STORE);
    assert_int_equal(t.since, 1000);
    assert_int_equal(t.now.code, OBSTACLE_NODE);
}

/* Two that take turns are one standstill. */
static void turns(void **state)
{
    (void)state;
    struct obstacle_track t = {0};
    for (uint64_t ms = 1000; ms < 6000; ms += 1000)
        assert_int_equal(
            step(&t, ms, ms % 2000 ? seen(OBSTACLE_NODE, "x") : seen(OBSTACLE_QUESTION, "y")), 0);
    assert_int_equal(step(&t, 6000, seen(OBSTACLE_QUESTION, "y")), OBSTACLE_TELL | OBSTACLE_STORE);
    assert_int_equal(step(&t, 7000, seen(OBSTACLE_NODE, "x")), 0);
    assert_int_equal(step(&t, 11000, seen(OBSTACLE_NODE, "x")), OBSTACLE_STORE); /* another text */
    assert_int_equal(step(&t, 12000, none_seen), 0);
    assert_int_equal(step(&t, 13000, seen(OBSTACLE_NODE, "x")), 0);
    assert_int_equal(step(&t, 15000, none_seen), 0); /* not since 12000 */
    assert_int_equal(step(&t, 17400, none_seen), 0);
    assert_int_equal(step(&t, 17500, none_seen), OBSTACLE_OVER | OBSTACLE_STORE);
}

static void a_failed_write_is_repeated(void **state)
{
    (void)state;
    struct obstacle_track t = {0};
    step(&t, 1000, seen(OBSTACLE_NODE, "x"));
    assert_int_equal(step(&t, 6000, seen(OBSTACLE_NODE, "x")), OBSTACLE_TELL | OBSTACLE_STORE);
    obstacle_unstored(&t);
    assert_int_equal(step(&t, 10999, seen(OBSTACLE_NODE, "x")), 0);
    assert_int_equal(step(&t, 11000, seen(OBSTACLE_NODE, "x")), OBSTACLE_STORE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_and_load),
        cmocka_unit_test(questions),
        cmocka_unit_test(behind),
        cmocka_unit_test(behind_a_row),
        cmocka_unit_test(refused_write),
        cmocka_unit_test(no_key),
        cmocka_unit_test(another_version),
        cmocka_unit_test(nothing_to_sign_left),
        cmocka_unit_test(suspended),
        cmocka_unit_test(suspended_by_another),
        cmocka_unit_test(gate),
        cmocka_unit_test(no_blocks),
        cmocka_unit_test(finality),
        cmocka_unit_test(unread),
        cmocka_unit_test(head_and_gap),
        cmocka_unit_test(refused_by_nodes),
        cmocka_unit_test(paused),
        cmocka_unit_test(unseen),
        cmocka_unit_test(untold_pool),
        cmocka_unit_test(lost_commits),
        cmocka_unit_test(each_code_was_made),
        cmocka_unit_test(page),
        cmocka_unit_test(what_is_over_soon_is_not_told),
        cmocka_unit_test(what_lasts_is_told_and_taken_back),
        cmocka_unit_test(turns),
        cmocka_unit_test(a_failed_write_is_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
