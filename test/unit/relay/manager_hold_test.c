/* Holds: payment, transaction_version, a reaped account; what is stored, and the order to go on. */
#include "manager_harness.h"

static const struct manager_config mortal = {.era_period = 64};

static struct script *leading_looking(uint64_t next)
{
    struct script *s = leading_with(NULL, next);
    feed(s,
         (struct manager_event){.type = MANAGER_EV_REQUESTS, .requests = {.account = &s->account}});
    return s;
}

/* A request poll that began after everything before. */
static void look(struct script *s)
{
    feed(s,
         (struct manager_event){.type = MANAGER_EV_REQUESTS, .requests = {.account = &s->account}});
}

static void expect_pause(struct script *s, enum manager_suspension suspension, const char *words)
{
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_PAUSE);
    assert_int_equal(fx->pause.suspension, suspension);
    if (!strstr(fx->pause.text, words))
        fail_msg("the reason is \"%s\"", fx->pause.text);
    s->account.paused = suspension != MANAGER_SUSPENSION_NONE;
    s->account.suspension = suspension;
    stored(s, MANAGER_FX_STORE_PAUSE);
}

static void order(struct script *s)
{
    s->account.reborn = s->account.suspension == MANAGER_SUSPENSION_REAPED;
    if (s->account.suspension == MANAGER_SUSPENSION_TRANSACTION_VERSION)
        s->account.transaction_version = 0;
    s->account.paused = false;
    s->account.suspension = MANAGER_SUSPENSION_NONE;
    look(s);
}

static void version(struct script *s, uint32_t transaction_version)
{
    feed(s, (struct manager_event){
                .type = MANAGER_EV_RUNTIME,
                .chain = {.spec_version = ++s->spec, .transaction_version = transaction_version}});
}

/* A block above the one at which it was heard becomes final. */
static void version_final(struct script *s, uint64_t nonce)
{
    best(s);
    while (s->finalized < s->best)
        finalized(s, nonce, 0, NULL);
}

/* ---- payment ---- */

#define CANNOT_PAY "Invalid Transaction: Inability to pay some fees (e.g. account balance too low)"

static void payment(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 1);
    admitted(s);
    refuse(s, 5, 1010, CANNOT_PAY);
    expect_alert(s, "cannot pay");
    expect_pause(s, MANAGER_SUSPENSION_PAYMENT, "cannot pay for nonce 5");
    none(s, MANAGER_FX_WANT_OUTBOX);
    best(s);
    none(s, MANAGER_FX_WANT_OUTBOX);
    expect_submit(s, 5); /* one try a block */
    refuse(s, 5, 1010, CANNOT_PAY);
    none(s, MANAGER_FX_STORE_PAUSE);
    best(s);
    expect_submit(s, 5);
    accept(s, 5);
    expect_pause(s, MANAGER_SUSPENSION_NONE, "");
    assert_int_equal(s->refusals, 2);
    script_free(s);
}

/* Whichever row is the lowest: one submission a block. */
static void payment_one_try_for_all(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 2);
    admitted(s);
    accept(s, 5);
    refuse(s, 6, 1010, CANNOT_PAY);
    expect_pause(s, MANAGER_SUSPENSION_PAYMENT, "cannot pay for nonce 6");
    best(s);
    expect_submit(s, 6);
    refuse(s, 6, 1010, CANNOT_PAY);
    status(s, 5, TX_DROPPED, NULL);
    probe(s, 5, 0);
    none(s, MANAGER_FX_SUBMIT);
    best(s);
    expect_submit(s, 5);
    script_free(s);
}

/* The row that could not pay ends, and the hold with it; the next row is no second try in that
 * block. */
static void payment_one_try_after_the_hold(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 1);
    admitted(s);
    refuse(s, 5, 1010, CANNOT_PAY);
    expect_pause(s, MANAGER_SUSPENSION_PAYMENT, "cannot pay for nonce 5");
    finalized_ours(s, 5);
    expect_pause(s, MANAGER_SUSPENSION_NONE, "");
    stored(s, MANAGER_FX_STORE_FINISH);
    outbox(s, 1);
    admitted(s);
    none(s, MANAGER_FX_SUBMIT);
    best(s);
    expect_submit(s, 6);
    accept(s, 6);
    outbox(s, 1);
    admitted(s);
    expect_submit(s, 7); /* it can pay again */
    script_free(s);
}

/* Said and over before the first word of it was stored: the last word is what is stored. */
static void payment_while_it_is_stored(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 1);
    admitted(s);
    refuse(s, 5, 1010, CANNOT_PAY);
    assert_int_equal(expect(s, MANAGER_FX_STORE_PAUSE)->pause.suspension,
                     MANAGER_SUSPENSION_PAYMENT);
    best(s);
    accept(s, 5);
    none(s, MANAGER_FX_STORE_PAUSE);
    none(s, MANAGER_FX_WANT_OUTBOX); /* the table still says paused: it would refuse them */
    stored(s, MANAGER_FX_STORE_PAUSE);
    assert_int_equal(expect(s, MANAGER_FX_STORE_PAUSE)->pause.suspension, MANAGER_SUSPENSION_NONE);
    none(s, MANAGER_FX_WANT_OUTBOX);
    stored(s, MANAGER_FX_STORE_PAUSE);
    outbox(s, 1);
    expect(s, MANAGER_FX_ADMIT);
    script_free(s);
}

/* The row that could not pay is gone: nothing else could find out, so it ends. */
static void payment_without_rows(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    s->account.paused = true;
    s->account.suspension = MANAGER_SUSPENSION_PAYMENT;
    load(s, NULL, 0, 5);
    chain_up(s);
    probe(s, 5, 0);
    assert_int_equal(expect(s, MANAGER_FX_STORE_PAUSE)->pause.suspension, MANAGER_SUSPENSION_NONE);
    script_free(s);
}

/* ---- the transaction version ---- */

static void version_stops(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 2);
    admitted(s);
    accept(s, 5);
    refuse_code(s, 6, ERR_NOT_LEADER);
    version(s, 7); /* it was 6 when the two were admitted */
    expect_alert(s, "transaction_version is 7");
    none(s, MANAGER_FX_RESIGN);
    none(s, MANAGER_FX_STORE_PAUSE);
    version_final(s, 5);
    expect_pause(s, MANAGER_SUSPENSION_TRANSACTION_VERSION, "accepted for 6");
    for (unsigned i = 0; i < 5; i++) {
        none(s, MANAGER_FX_RESIGN);
        none(s, MANAGER_FX_SUBMIT);
        none(s, MANAGER_FX_WANT_OUTBOX);
        best(s);
        if (count_of(s, MANAGER_FX_ASK_POOL))
            probe(s, 5, 0);
        look(s); /* the account is still paused */
    }
    order(s);
    assert_int_equal(count_of(s, MANAGER_FX_RESIGN), 1);
    script_free(s);
}

/* A request poll that began before the hold was stored knows nothing of it, and is no order. */
static void old_look_is_no_order(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 1);
    admitted(s);
    version(s, 7);
    version_final(s, 5);
    stored(s, MANAGER_FX_STORE_PAUSE);
    uint64_t wish = expect(s, MANAGER_FX_POLL_REQUESTS)->number;
    feed(s, (struct manager_event){.type = MANAGER_EV_REQUESTS,
                                   .requests = {.number = wish - 1, .account = &s->account}});
    none(s, MANAGER_FX_RESIGN);
    none(s, MANAGER_FX_WANT_OUTBOX);
    outbox(s, 1);
    none(s, MANAGER_FX_ADMIT);
    feed(s,
         (struct manager_event){.type = MANAGER_EV_REQUESTS, .requests = {.account = &s->account}});
    expect(s, MANAGER_FX_WANT_OUTBOX);
    script_free(s);
}

/* A node that shows the accepted version again may be behind the others: that is no order. */
static void version_is_back(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    version(s, 7);
    version_final(s, 5);
    expect_pause(s, MANAGER_SUSPENSION_TRANSACTION_VERSION, "");
    version(s, 6);
    look(s);
    none(s, MANAGER_FX_STORE_PAUSE);
    none(s, MANAGER_FX_RESIGN);
    outbox(s, 1);
    none(s, MANAGER_FX_ADMIT);
    script_free(s);
}

/* What an operator accepts is the version of now: the next one is another question. */
static void order_accepts_one_version(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    version(s, 7);
    version_final(s, 5);
    expect_pause(s, MANAGER_SUSPENSION_TRANSACTION_VERSION, "accepted for 6");
    order(s);
    version(s, 8);
    version_final(s, 5);
    expect_pause(s, MANAGER_SUSPENSION_TRANSACTION_VERSION, "accepted for 7");
    script_free(s);
}

/* The table keeps the version of the first admission, also when another one comes before it is
 * stored. */
static void version_of_an_admission_under_way(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 1);
    version(s, 7);
    version_final(s, 5);
    expect_pause(s, MANAGER_SUSPENSION_TRANSACTION_VERSION, "accepted for 6");
    script_free(s);
}

/* A chain that makes blocks on demand makes none after the one that brought the new runtime. It is
 * final, and the node goes on saying so: an operator is asked. */
static void version_on_a_chain_without_blocks(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    while (s->finalized < s->best)
        finalized(s, 5, 0, NULL);
    version(s, 7);
    uint64_t heard_at = s->now;
    for (unsigned i = 0; !count_of(s, MANAGER_FX_STORE_PAUSE); i++) {
        assert_true(i < 100);
        tick(s);
        if (s->now < heard_at + 25000) {
            none(s, MANAGER_FX_STORE_PAUSE);
            expect(s, MANAGER_FX_RECHECK_RUNTIME);
        }
    }
    expect_pause(s, MANAGER_SUSPENSION_TRANSACTION_VERSION, "accepted for 6");
    assert_true(s->now <= heard_at + 60000);
    script_free(s);
}

/* Finality stalls below that block. After ten minutes of one node that says the same an operator is
 * asked, and can end it. */
static void version_while_finality_stalls(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    version(s, 7);
    uint64_t heard_at = s->now;
    for (; s->now < heard_at + 540000; best(s))
        none(s, MANAGER_FX_STORE_PAUSE);
    chain_down(s);
    heard_at = s->now;
    feed(s, (struct manager_event){.type = MANAGER_EV_CHAIN_UP,
                                   .chain = {.finalized = s->finalized,
                                             .best = s->best,
                                             .spec_version = s->spec,
                                             .transaction_version = 7}});
    for (; s->now < heard_at + 599000; best(s))
        none(s, MANAGER_FX_STORE_PAUSE); /* another node: it has to say so for as long */
    best(s);
    expect_pause(s, MANAGER_SUSPENSION_TRANSACTION_VERSION, "accepted for 6");
    order(s);
    version(s, 7);
    none(s, MANAGER_FX_STORE_PAUSE);
    script_free(s);
}

/* The node takes it back before the block is final: nobody is needed, and nothing was signed. */
static void version_taken_back(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    version(s, 7);
    expect(s, MANAGER_FX_RECHECK_RUNTIME);
    best(s);
    expect(s, MANAGER_FX_RECHECK_RUNTIME); /* with each block */
    pool_is(s, 0);
    nonce_is(s, 5);
    none(s, MANAGER_FX_RESIGN);
    outbox(s, 1);
    none(s, MANAGER_FX_ADMIT);
    finalized(s, 5, 0, NULL);
    assert_true(s->finalized + 1 < s->best);
    assert_true(manager_view_of(s->m).stays); /* a rotation would begin to wait anew */
    version(s, 6);
    assert_false(manager_view_of(s->m).stays);
    expect(s, MANAGER_FX_RESIGN);
    version_final(s, 5);
    none(s, MANAGER_FX_STORE_PAUSE);
    best(s);
    none(s, MANAGER_FX_RECHECK_RUNTIME);
    script_free(s);
}

/* Nothing was ever signed for another version: there is nothing to protect. */
static void first_version(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    version(s, 7);
    none(s, MANAGER_FX_STORE_PAUSE);
    script_free(s);
}

static void version_found_at_the_start(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    s->account.transaction_version = 5;
    load(s, NULL, 0, 5);
    chain_up(s);
    expect_alert(s, "transaction_version is 6");
    finals(s, 100, 5);
    version_final(s, 5);
    assert_int_equal(expect(s, MANAGER_FX_STORE_PAUSE)->pause.suspension,
                     MANAGER_SUSPENSION_TRANSACTION_VERSION);
    script_free(s);
}

/* ---- reaped ---- */

static void quiet_account(struct script *s)
{
    none(s, MANAGER_FX_SUBMIT);
    none(s, MANAGER_FX_RESIGN);
    none(s, MANAGER_FX_FILL);
    none(s, MANAGER_FX_WANT_OUTBOX);
    none(s, MANAGER_FX_STORE_FINISH);
}

/* The final nonce goes down: told and stored once, nothing is sent; heights that come again are no
 * news. */
static void reaped_while_leading(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    finalized(s, 5, 0, NULL);
    finalized(s, 0, 0, NULL);
    expect_alert(s, "was 5: the account was reaped");
    expect_pause(s, MANAGER_SUSPENSION_REAPED, "reaped");
    status(s, 5, TX_DROPPED, NULL);
    for (unsigned i = 0; i < 4; i++) {
        quiet_account(s);
        none(s, MANAGER_FX_ALERT);
        best(s);
        finalized(s, 0, 0, NULL);
    }
    script_free(s);
}

/* By the table's records nonces below 7 were used, the last of them in block 97; from there on the
 * chain says 2. */
static struct script *reaped_at_start(struct manager_account account)
{
    struct script *s = script_new(&mortal);
    s->account = account;
    s->used_nonce = 7;
    s->used_block = 97;
    struct tx_pending rows[2] = {loaded_row(s, 7, "broadcast"), loaded_row(s, 8, "signed")};
    load(s, rows, 2, 9);
    chain_up(s);
    look(s);
    finalized_at(s, 97, 2, 0, NULL);
    if (!account.reborn)
        expect_pause(s, MANAGER_SUSPENSION_REAPED, "reaped");
    for (uint64_t n = 98; n <= 100; n++)
        finalized_at(s, n, 2, 0, NULL);
    feed(s, (struct manager_event){.type = MANAGER_EV_TICK});
    return s;
}

static void reaped_found_at_the_start(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    s->used_nonce = 7;
    s->used_block = 97;
    struct tx_pending row = loaded_row(s, 7, "broadcast");
    load(s, &row, 1, 8);
    chain_up(s);
    finalized_at(s, 97, 2, 0, NULL);
    expect_alert(s, "account nonce is 2 at block 97 and was 7");
    assert_int_equal(expect(s, MANAGER_FX_STORE_PAUSE)->pause.suspension,
                     MANAGER_SUSPENSION_REAPED);
    pool_is(s, 0);
    nonce_is(s, 2);
    assert_int_equal(manager_phase(s->m), MANAGER_LEADING);
    quiet_account(s);
    script_free(s);
}

/* Who used the nonces, and in which blocks, is unknown: by 64 blocks after the first final one they
 * are final everywhere. A height that a node invented does not put that off for ever. */
static void reaped_below_an_invented_height(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    s->used_nonce = 7; /* and no block */
    struct tx_pending row = loaded_row(s, 7, "broadcast");
    load(s, &row, 1, 8);
    uint64_t real = s->finalized;
    s->finalized = 1000000;
    chain_up(s);
    s->finalized = real;
    best(s);
    finals(s, 97, 2);
    none(s, MANAGER_FX_STORE_PAUSE);
    for (uint64_t n = real + 1; n < real + 64; n++)
        finalized_at(s, n, 2, 0, NULL);
    none(s, MANAGER_FX_STORE_PAUSE);
    finalized_at(s, real + 64, 2, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_STORE_PAUSE)->pause.suspension,
                     MANAGER_SUSPENSION_REAPED);
    script_free(s);
}

/* Seed 41000000593: the node begins anew (block 0), and jumps later. The blocks that used the
 * nonces on record are above all that this node has, and what the table tells of them counts, also
 * to a leader that led before and has read little. */
static void no_reap_at_a_node_that_begins_anew(void **state)
{
    (void)state;
    for (unsigned led = 0; led < 2; led++) {
        struct script *s = script_new(NULL);
        uint64_t real = s->finalized, best = s->best;
        if (led) {
            load(s, NULL, 0, 7);
            chain_up(s);
            feed(s, (struct manager_event){.type = MANAGER_EV_DEMOTED});
            s->used_block = 99;
        }
        s->used_nonce = 7; /* and no block, if it did not lead */
        struct tx_pending row = loaded_row(s, 7, "broadcast");
        load(s, &row, 1, 8);
        s->finalized = s->best = 0;
        chain_up(s);
        s->finalized = real;
        s->best = best;
        uint64_t last = led ? 99 : row.submitted_block + 64;
        for (uint64_t n = row.submitted_block + 1; n < last; n++)
            finalized_at(s, n, 2, 0, NULL);
        none(s, MANAGER_FX_STORE_PAUSE);
        finalized_at(s, last, 2, 0, NULL);
        assert_int_equal(expect(s, MANAGER_FX_STORE_PAUSE)->pause.suspension,
                         MANAGER_SUSPENSION_REAPED);
        script_free(s);
    }
}

/* Of nodes the one that is asked may be behind the one that spoke before: a lower nonce at its best
 * block, or in a finalized block below the records, is no news of the account. */
static void lower_nonce_of_a_lagging_node(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    s->used_nonce = 7;
    s->used_block = 99;
    struct tx_pending row = loaded_row(s, 7, "broadcast");
    load(s, &row, 1, 8);
    chain_up(s);
    finalized_at(s, 97, 5, 0, NULL);
    finalized_at(s, 98, 5, 0, NULL);
    none(s, MANAGER_FX_STORE_PAUSE);
    finals(s, 99, 7);
    expect(s, MANAGER_FX_ASK_POOL);
    pool_is(s, 0);
    nonce_is(s, 6);
    quiet_account(s);
    none(s, MANAGER_FX_STORE_PAUSE);
    assert_int_not_equal(manager_phase(s->m), MANAGER_LEADING);
    tick(s); /* it is asked again */
    expect(s, MANAGER_FX_ASK_POOL);
    pool_is(s, 0);
    nonce_is(s, 7);
    assert_int_equal(manager_phase(s->m), MANAGER_LEADING);
    script_free(s);
}

/* The best chain is in the next life already and no finalized block has said so: nonces below the
 * rows are not holes. */
static void holes_of_a_former_life(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    s->used_nonce = 7;
    s->used_block = 96;
    struct tx_pending row = loaded_row(s, 7, "broadcast");
    load(s, &row, 1, 8);
    chain_up(s);
    finals(s, 97, 7);
    pool_is(s, 0);
    nonce_is(s, 7);
    assert_int_equal(manager_phase(s->m), MANAGER_LEADING);
    expect_submit(s, 7);
    accept(s, 7);
    expect(s, MANAGER_FX_ASK_POOL); /* who else is there? */
    pool_is(s, 0);
    nonce_is(s, 0);
    none(s, MANAGER_FX_FILL);
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* Nobody led while rows were included and the account was reaped: its best nonce says that nothing
 * was used. */
static void reaped_while_nobody_led(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending rows[2] = {loaded_row(s, 0, "broadcast"), loaded_row(s, 1, "broadcast")};
    load(s, rows, 2, 2);
    chain_up(s);
    finalized_at(s, 97, 0, 0, NULL);
    none(s, MANAGER_FX_ASK_POOL); /* what is final was not all seen */
    finalized_at(s, 98, 2, 2,
                 (struct in_block[]){{hash_of(0, 1), 0, true, DISPATCH_OK, NULL},
                                     {hash_of(1, 1), 1, true, DISPATCH_OK, NULL}});
    assert_int_equal(expect(s, MANAGER_FX_STORE_FINISH)->ends.count, 2);
    finalized_at(s, 99, 0, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_STORE_PAUSE)->pause.suspension,
                     MANAGER_SUSPENSION_REAPED);
    finals(s, 100, 0);
    pool_is(s, 0);
    nonce_is(s, 0);
    quiet_account(s);
    script_free(s);
}

/* Two rows are in blocks, none of which is final, and behind them the account was reaped: at the
 * best block all nonces are free. */
static struct script *reaped_before_it_is_final(bool by_hash)
{
    struct script *s = script_new(&mortal);
    struct tx_pending rows[2] = {loaded_row(s, 0, "broadcast"), loaded_row(s, 1, "broadcast")};
    load(s, rows, 2, 2);
    chain_up(s);
    finals(s, 97, 0);
    pool_is(s, 0);
    feed(s, (struct manager_event){.type = MANAGER_EV_NONCE, .used = {.nonce = 0}});
    expect(s, MANAGER_FX_ASK_UNFINAL);
    none(s, MANAGER_FX_READY);
    if (by_hash)
        unfinal_is(s, hash_of(1, 1));
    else
        feed(s, (struct manager_event){.type = MANAGER_EV_UNFINAL, .unfinal = {.nonce = 1}});
    return s;
}

/* Seed 80000146: the same bytes were sent again and took effect in both lives. */
static void reaped_in_blocks_that_are_not_final(void **state)
{
    (void)state;
    for (int by_hash = 0; by_hash < 2; by_hash++) {
        struct script *s = reaped_before_it_is_final(by_hash);
        none(s, MANAGER_FX_SUBMIT);
        none(s, MANAGER_FX_READY);
        none(s, MANAGER_FX_ALERT); /* a block may have come between the questions */
        tick(s);
        pool_is(s, 0);
        feed(s, (struct manager_event){.type = MANAGER_EV_NONCE, .used = {.nonce = 0}});
        unfinal_is(s, hash_of(1, 1));
        expect_alert(s, "nonces from 0 on were used in blocks that are not final");
        none(s, MANAGER_FX_SUBMIT);
        script_free(s);
    }
}

/* A block came between the two questions. */
static void used_between_the_questions(void **state)
{
    (void)state;
    struct script *s = reaped_before_it_is_final(true);
    tick(s);
    pool_is(s, 0);
    nonce_is(s, 2);
    expect(s, MANAGER_FX_READY);
    none(s, MANAGER_FX_ALERT);
    none(s, MANAGER_FX_SUBMIT);
    script_free(s);
}

/* What a leader knows to be in a block is looked for when its nonce is free again: a retraction
 * says the same. */
static void looked_for_when_its_nonce_is_free(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    status(s, 5, TX_IN_BLOCK, block_of(101));
    status(s, 5, TX_RETRACTED, block_of(101));
    best(s);
    pool_is(s, 0);
    feed(s, (struct manager_event){.type = MANAGER_EV_NONCE, .used = {.nonce = 5}});
    expect(s, MANAGER_FX_ASK_UNFINAL);
    none(s, MANAGER_FX_SUBMIT);
    unfinal_is(s, NULL);
    expect_submit(s, 5);
    script_free(s);
}

/* Seed 2000025619: a node invents a best block, or finality stalls, so the blocks that are not
 * final would be too many to be read. What seems lost may have been in one of them before the
 * account was reaped, so it gets no new bytes before they are read. */
static void not_judged_by_an_invented_block(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 1);
    s->era = 64;
    admitted(s);
    accept(s, 5);
    status(s, 5, TX_DROPPED, NULL);
    uint64_t real = s->best;
    s->best = UINT64_C(1) << 60;
    for (int i = 0; i < 3; i++) {
        best(s);
        pool_is(s, 0);
        feed(s, (struct manager_event){.type = MANAGER_EV_NONCE, .used = {.nonce = 5}});
        none(s, MANAGER_FX_ASK_UNFINAL);
        none(s, MANAGER_FX_SUBMIT);
        none(s, MANAGER_FX_RESIGN);
    }
    s->best = real;
    best(s);
    none(s, MANAGER_FX_RESIGN);
    pool_is(s, 0);
    feed(s, (struct manager_event){.type = MANAGER_EV_NONCE, .used = {.nonce = 5}});
    expect(s, MANAGER_FX_ASK_UNFINAL);
    none(s, MANAGER_FX_SUBMIT);
    unfinal_is(s, NULL);
    expect_submit(s, 5);
    script_free(s);
}

/* How many blocks are read for what seems lost: those of an era, and any number for bytes that can
 * still be included. */
static void stretch_that_is_searched(void **state)
{
    (void)state;
    static const struct {
        uint32_t era_period;
        int64_t era;
        uint64_t ahead;
        bool searched;
    } cases[] = {{0, -1, 1000, true},   {256, 64, 100, true}, {64, 64, 60, true},
                 {256, 64, 300, false}, {64, 64, 70, false},  {64, 256, 70, true}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct script *s =
            leading_with(&(struct manager_config){.era_period = cases[i].era_period}, 5);
        look(s);
        outbox(s, 1);
        s->era = cases[i].era;
        admitted(s);
        accept(s, 5);
        status(s, 5, TX_DROPPED, NULL);
        s->best = s->finalized + cases[i].ahead;
        best(s);
        pool_is(s, 0);
        feed(s, (struct manager_event){.type = MANAGER_EV_NONCE, .used = {.nonce = 5}});
        assert_int_equal(count_of(s, MANAGER_FX_ASK_UNFINAL), cases[i].searched);
        none(s, MANAGER_FX_SUBMIT);
        none(s, MANAGER_FX_RESIGN);
        script_free(s);
    }
}

/* Somebody else's extrinsic takes the nonce and with it all the money: in the end of that block the
 * nonce is free again, and our bytes are valid. */
static void reaped_by_the_usurper(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    finalized(s, 5, 0, NULL);
    finalized(s, 0, 1, &(struct in_block){block_of(77), 5, true, DISPATCH_OK, NULL});
    none(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(expect(s, MANAGER_FX_STORE_PAUSE)->pause.suspension,
                     MANAGER_SUSPENSION_REAPED);
    script_free(s);
}

/* A node that lags is behind the records: it is not asked. */
static void lagging_node_is_no_reaping(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    s->used_nonce = 7;
    s->used_block = 101; /* the node's finalized block is 100 */
    load(s, NULL, 0, 7);
    chain_up(s);
    none(s, MANAGER_FX_ASK_POOL);
    none(s, MANAGER_FX_STORE_PAUSE);
    script_free(s);
}

/* After the order: the rows of the former life end once their eras are over; nonces begin anew when
 * what had ended before is dead too. */
static void life_begins_anew(void **state)
{
    (void)state;
    for (unsigned requeue = 0; requeue < 2; requeue++) {
        struct script *s = reaped_at_start((struct manager_account){.requeue_usurped = requeue});
        pool_is(s, 0);
        nonce_is(s, 2);
        order(s);
        s->finalized = 100;
        while (s->finalized < 159) {
            finalized(s, 2, 0, NULL);
            quiet_account(s);
            none(s, MANAGER_FX_STORE_REQUEUE);
            assert_true(manager_view_of(s->m).stays); /* another leader would begin to wait anew */
        }
        finalized(s, 2, 0, NULL); /* 160: both eras are over */
        const struct manager_effect *fx =
            expect(s, requeue ? MANAGER_FX_STORE_REQUEUE : MANAGER_FX_STORE_FINISH);
        assert_int_equal(fx->ends.count, 2);
        assert_string_equal(fx->ends.rows[0].outcome, "failed");
        assert_non_null(strstr(fx->ends.rows[0].error, "former life"));
        none(s, MANAGER_FX_STORE_NONCE);
        stored(s, requeue ? MANAGER_FX_STORE_REQUEUE : MANAGER_FX_STORE_FINISH);
        none(s, MANAGER_FX_STORE_NONCE);
        finalized(s, 2, 0, NULL); /* 161 = 97 + 64 */
        const struct manager_effect *nonce = expect(s, MANAGER_FX_STORE_NONCE);
        assert_int_equal(nonce->next.nonce, 2);
        assert_true(nonce->next.lower && nonce->next.reborn);
        s->account.reborn = false;
        stored(s, MANAGER_FX_STORE_NONCE);
        assert_int_equal(manager_view_of(s->m).next_nonce, 2);
        assert_false(manager_view_of(s->m).stays);
        expect(s, MANAGER_FX_WANT_OUTBOX);
        outbox(s, 1);
        assert_int_equal(expect(s, MANAGER_FX_ADMIT)->sign.rows[0].nonce, 2);
        script_free(s);
    }
}

/* Somebody used the first nonce of the new life while it was stored as the next one. */
static void life_is_used_while_it_begins(void **state)
{
    (void)state;
    struct script *s = reaped_at_start((struct manager_account){.reborn = true});
    pool_is(s, 0);
    nonce_is(s, 2);
    s->finalized = 159;
    s->best = 240;
    uint64_t n = 97;
    for (; n <= 240 && !count_of(s, MANAGER_FX_STORE_NONCE); n++) {
        finalized_at(s, n, 2, 0, NULL);
        if (count_of(s, MANAGER_FX_STORE_FINISH))
            stored(s, MANAGER_FX_STORE_FINISH);
    }
    assert_int_equal(expect(s, MANAGER_FX_STORE_NONCE)->next.nonce, 2);
    finalized_at(s, n, 3, 0, NULL);
    stored(s, MANAGER_FX_STORE_NONCE);
    none(s, MANAGER_FX_WANT_OUTBOX);
    assert_int_equal(expect(s, MANAGER_FX_STORE_NONCE)->next.nonce, 3);
    script_free(s);
}

/* The order was given, and the leader died before it was carried out. */
static void life_begins_under_the_next_leader(void **state)
{
    (void)state;
    struct script *s = reaped_at_start((struct manager_account){.reborn = true});
    pool_is(s, 0);
    nonce_is(s, 2);
    none(s, MANAGER_FX_STORE_PAUSE);
    s->finalized = 159;
    s->best = 161;
    for (uint64_t n = 101; n <= 160; n++)
        finalized_at(s, n, 2, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_STORE_FINISH)->ends.count, 2);
    script_free(s);
}

/* No endpoint has the last block of their eras, which may hold them: the nonce behind it tells. */
static void last_block_of_a_former_life(void **state)
{
    (void)state;
    struct script *s = reaped_at_start((struct manager_account){.reborn = true});
    pool_is(s, 0);
    nonce_is(s, 2);
    s->finalized = 159;
    s->best = 164;
    for (uint64_t n = 101; n <= 159; n++)
        finalized_at(s, n, 2, 0, NULL);
    unread_at(s, 160);
    unread_at(s, 161);
    none(s, MANAGER_FX_STORE_FINISH);
    finalized_at(s, 162, 2, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_STORE_FINISH)->ends.count, 2);
    script_free(s);
}

/* Bytes without an era stay valid: the account cannot go on, and says so. */
static void immortal_former_life(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    s->account.reborn = true;
    s->used_nonce = 7;
    s->used_block = 95;
    struct tx_pending row = loaded_row(s, 7, "broadcast");
    row.era_death = -1;
    load(s, &row, 1, 8);
    chain_up(s);
    probe(s, 2, 0);
    expect_alert(s, "without an era");
    for (uint64_t n = 97; n <= 300; n++) {
        finalized_at(s, n, 2, 0, NULL);
        quiet_account(s);
        none(s, MANAGER_FX_STORE_NONCE);
    }
    script_free(s);
}

/* ---- the balance ---- */

static void low_balance(void **state)
{
    (void)state;
    struct script *s = leading_looking(5);
    s->account.has_low_balance = true;
    s->account.low_balance = 100;
    look(s);
    static const struct {
        u128 balance;
        bool told;
    } steps[] = {{100, false}, {99, true}, {50, false}, {100, false}, {10, true}};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct manager_block block = {.number = ++s->finalized,
                                      .account_nonce = 5,
                                      .has_balance = true,
                                      .balance = steps[i].balance};
        feed(s, (struct manager_event){.type = MANAGER_EV_FINALIZED, .block = &block});
        assert_int_equal(count_of(s, MANAGER_FX_ALERT), steps[i].told);
    }
    script_free(s);
}

/* Seed 30045003: the account's nonce could not be read at the blocks that used nonces 5 and 6, and
 * then all is read again: the nonce of a block before them is lower, which is no reap. */
static void read_again_is_no_reap(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 2);
    runtime(s, SPEC + 1);
    probe(s, 5, 0);
    assert_int_equal(expect(s, MANAGER_FX_RESIGN)->sign.count, 2);
    uint64_t first = s->finalized + 1;
    finalized(s, UINT64_MAX, 1, &(struct in_block){hash_of(5, 1), 5, true, DISPATCH_OK, NULL});
    finalized(s, UINT64_MAX, 1, &(struct in_block){hash_of(6, 99), 6, true, DISPATCH_OK, NULL});
    struct tx_attempt w[2];
    for (unsigned i = 0; i < 2; i++) {
        w[i] = (struct tx_attempt){.nonce = 5 + i,
                                   .id = 1 + i,
                                   .bytes = (const uint8_t *)"12345678",
                                   .bytes_len = 8,
                                   .call_len = 4,
                                   .era_death = 164,
                                   .spec_version = SPEC + 1};
        memcpy(w[i].hash, hash_of(5 + i, 2), 32);
    }
    feed(s, (struct manager_event){
                .type = MANAGER_EV_STORED,
                .stored = {.write = MANAGER_FX_RESIGN, .attempts = {.rows = w, .count = 2}}});
    for (uint64_t n = expect(s, MANAGER_FX_FOLLOW)->number; n < first; n++)
        finalized_at(s, n, 5, 0, NULL);
    finalized_at(s, first, 6, 1, &(struct in_block){hash_of(5, 1), 5, true, DISPATCH_OK, NULL});
    none(s, MANAGER_FX_STORE_PAUSE);
    finalized_at(s, first + 1, 7, 1,
                 &(struct in_block){hash_of(6, 99), 6, true, DISPATCH_OK, NULL});
    none(s, MANAGER_FX_STORE_PAUSE);
    assert_int_equal(manager_view_of(s->m).unsent, 0);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payment),
        cmocka_unit_test(payment_while_it_is_stored),
        cmocka_unit_test(payment_without_rows),
        cmocka_unit_test(version_stops),
        cmocka_unit_test(old_look_is_no_order),
        cmocka_unit_test(version_on_a_chain_without_blocks),
        cmocka_unit_test(version_while_finality_stalls),
        cmocka_unit_test(version_taken_back),
        cmocka_unit_test(version_is_back),
        cmocka_unit_test(first_version),
        cmocka_unit_test(version_found_at_the_start),
        cmocka_unit_test(reaped_while_leading),
        cmocka_unit_test(reaped_found_at_the_start),
        cmocka_unit_test(reaped_below_an_invented_height),
        cmocka_unit_test(no_reap_at_a_node_that_begins_anew),
        cmocka_unit_test(lower_nonce_of_a_lagging_node),
        cmocka_unit_test(holes_of_a_former_life),
        cmocka_unit_test(reaped_while_nobody_led),
        cmocka_unit_test(reaped_in_blocks_that_are_not_final),
        cmocka_unit_test(used_between_the_questions),
        cmocka_unit_test(looked_for_when_its_nonce_is_free),
        cmocka_unit_test(not_judged_by_an_invented_block),
        cmocka_unit_test(stretch_that_is_searched),
        cmocka_unit_test(reaped_by_the_usurper),
        cmocka_unit_test(payment_one_try_for_all),
        cmocka_unit_test(payment_one_try_after_the_hold),
        cmocka_unit_test(order_accepts_one_version),
        cmocka_unit_test(version_of_an_admission_under_way),
        cmocka_unit_test(lagging_node_is_no_reaping),
        cmocka_unit_test(life_begins_anew),
        cmocka_unit_test(life_begins_under_the_next_leader),
        cmocka_unit_test(life_is_used_while_it_begins),
        cmocka_unit_test(last_block_of_a_former_life),
        cmocka_unit_test(immortal_former_life),
        cmocka_unit_test(low_balance),
        cmocka_unit_test(read_again_is_no_reap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
