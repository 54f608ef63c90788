/* After a failover that lost commits: what the chain and the pool know is searched, and adopted,
 * before anything is admitted. */
#include "manager_harness.h"

/* What the account signed at this nonce, with the call of this number. */
static struct tx_included signed_at(uint64_t nonce, unsigned attempt, uint8_t call)
{
    static uint8_t bytes[8][BYTES_LEN];
    static unsigned n;
    uint8_t *b = memset(bytes[n++ % 8], 0xdd, BYTES_LEN);
    memset(b + BYTES_LEN - CALL_LEN, call, CALL_LEN);
    struct tx_included x = {.nonce = nonce,
                            .own_signer = true,
                            .signature = TX_SIGNATURE_GOOD,
                            .bytes = b,
                            .bytes_len = BYTES_LEN,
                            .call_len = CALL_LEN,
                            .era_birth = 64,
                            .era_death = 128,
                            .tip = 3};
    memcpy(x.hash, hash_of(nonce, attempt), 32);
    x.result.outcome = DISPATCH_OK;
    return x;
}

static void block(struct script *s, uint64_t number, uint64_t account_nonce, unsigned count,
                  const struct tx_included *x)
{
    struct manager_block b = {.number = number,
                              .time_ms = 1000 * (int64_t)number,
                              .account_nonce = account_nonce,
                              .included = x,
                              .included_count = count};
    memcpy(b.hash, block_of((unsigned)number), 32);
    if (number > s->finalized)
        s->finalized = number;
    feed(s, (struct manager_event){.type = MANAGER_EV_FINALIZED, .block = &b});
}

/* Loaded as the event says, and connected; 100 is final. */
static struct script *loaded(struct manager_event snapshot)
{
    struct script *s = script_new(NULL);
    snapshot.type = MANAGER_EV_SNAPSHOT;
    snapshot.snapshot.last = true;
    snapshot.snapshot.used_block = -1;
    promote(s);
    expect(s, MANAGER_FX_LOAD);
    feed(s, snapshot);
    chain_up(s);
    return s;
}

/* Commits after block 98 may be lost. */
static struct script *doubtful(const struct tx_pending *rows, size_t count, int64_t next)
{
    return loaded((struct manager_event){.snapshot = {.rows = rows,
                                                      .count = count,
                                                      .next_nonce = next,
                                                      .used_nonce = -1,
                                                      .reconcile = true,
                                                      .reconcile_from = 98}});
}

static void questions(struct script *s, uint64_t nonce, unsigned count,
                      const struct tx_included *pooled)
{
    assert_true(expect(s, MANAGER_FX_ASK_POOL)->whole);
    uint8_t hashes[4][32];
    for (unsigned i = 0; i < count; i++)
        memcpy(hashes[i], pooled[i].hash, 32);
    feed(s, (struct manager_event){.type = MANAGER_EV_POOL,
                                   .pool = {.hashes = (const uint8_t(*)[32])hashes,
                                            .count = count,
                                            .pooled = pooled,
                                            .pooled_count = count}});
    expect(s, MANAGER_FX_ASK_NONCE);
    nonce_is(s, nonce);
}

static void nothing_was_lost(void **state)
{
    (void)state;
    struct script *s = doubtful(NULL, 0, 5);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 99);
    none(s, MANAGER_FX_ASK_POOL);
    block(s, 99, 5, 0, NULL);
    none(s, MANAGER_FX_ASK_POOL);
    block(s, 100, 5, 0, NULL);
    questions(s, 5, 0, NULL);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_ADOPT);
    assert_int_equal(fx->adopt.count, 0);
    assert_int_equal(fx->adopt.block, 98);
    assert_true(fx->adopt.done);
    none(s, MANAGER_FX_READY);
    none(s, MANAGER_FX_WANT_OUTBOX);
    stored(s, MANAGER_FX_STORE_ADOPT);
    tick(s);
    assert_false(expect(s, MANAGER_FX_ASK_POOL)->whole);
    pool_is(s, 0);
    expect(s, MANAGER_FX_ASK_NONCE);
    nonce_is(s, 5);
    expect(s, MANAGER_FX_READY);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    script_free(s);
}

/* Seed 2000056390: a node names a final block that nobody has, so far away that the search begins
 * behind the blocks of lost commits. It begins once more when that height is dropped. */
static void searched_from_an_invented_block(void **state)
{
    (void)state;
    static const uint64_t invented[] = {UINT64_C(1) << 60, 100200};
    struct tx_pending row = {0};
    for (unsigned i = 0; i < 4; i++) {
        struct script *s = script_new(NULL);
        uint64_t real = s->finalized;
        row = loaded_row(s, 5, "broadcast");
        row.submitted_block = 100;
        promote(s);
        expect(s, MANAGER_FX_LOAD);
        feed(s, (struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                       .snapshot = {.rows = &row,
                                                    .count = i % 2,
                                                    .last = true,
                                                    .next_nonce = 6,
                                                    .used_nonce = -1,
                                                    .used_block = -1,
                                                    .reconcile = true,
                                                    .reconcile_from = 98}});
        s->finalized = invented[i / 2];
        chain_up(s);
        expect_alert(s, "from block 98 would be too far");
        none(s, MANAGER_FX_STORE_ADOPT);
        s->finalized = real;
        best(s);
        assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 99);
        script_free(s);
    }
}

/* Seed 4080005248: the height was invented under a former epoch, and the node that comes up now has
 * another one: the rows of the new epoch are searched for and then probed like any others. */
static void invented_under_a_former_epoch(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    uint64_t real = s->finalized;
    s->finalized = UINT64_C(1) << 60;
    for (unsigned epoch = 0; epoch < 2; epoch++) {
        promote(s);
        expect(s, MANAGER_FX_LOAD);
        feed(s, (struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                       .snapshot = {.last = true,
                                                    .next_nonce = 6,
                                                    .used_nonce = -1,
                                                    .used_block = -1,
                                                    .reconcile = true,
                                                    .reconcile_from = 98}});
        chain_up(s);
        if (epoch == 0)
            feed(s, (struct manager_event){.type = MANAGER_EV_DEMOTED});
        s->finalized = real;
    }
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 99);
    block(s, 99, 6, 0, NULL);
    block(s, 100, 6, 0, NULL);
    questions(s, 6, 0, NULL);
    expect(s, MANAGER_FX_STORE_ADOPT);
    script_free(s);
}

/* Two in blocks, one in the pool: all are offered, in the order of their nonces, and what was
 * adopted is loaded. */
static void found_in_blocks_and_pool(void **state)
{
    (void)state;
    struct script *s = doubtful(NULL, 0, 5);
    struct tx_included x = signed_at(5, 1, 1), y = signed_at(6, 1, 2), z = signed_at(7, 1, 3);
    block(s, 99, 6, 1, &x);
    block(s, 100, 7, 1, &y);
    questions(s, 7, 1, &z);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_ADOPT);
    assert_int_equal(fx->adopt.count, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(fx->adopt.found[i].nonce, 5 + i);
        assert_int_equal(fx->adopt.found[i].bytes[BYTES_LEN - 1], 1 + i);
        assert_int_equal(fx->adopt.found[i].era_death, 128);
        assert_int_equal(fx->adopt.found[i].tip, 3);
        assert_int_equal(fx->adopt.found[i].time_ms, i < 2 ? 99000 + 1000 * (int)i : -1);
    }
    feed(s, (struct manager_event){.type = MANAGER_EV_STORED,
                                   .stored = {.write = MANAGER_FX_STORE_ADOPT, .adopted = 3}});
    expect_alert(s, "of 3 extrinsics that no pending transaction explains, 3 were adopted");
    expect(s, MANAGER_FX_UNWATCH_ALL);
    expect(s, MANAGER_FX_LOAD);
    none(s, MANAGER_FX_WANT_OUTBOX);
    script_free(s);
}

/* Bytes whose signature is wrong, or that nobody can verify, are not what lost commits have sent:
 * neither in blocks nor in a pool. */
static void found_and_not_signed(void **state)
{
    (void)state;
    static const enum tx_signature not [] = {TX_SIGNATURE_UNKNOWN, TX_SIGNATURE_BAD};
    struct script *s = doubtful(NULL, 0, 5);
    struct tx_included x = signed_at(5, 1, 1), pooled[2] = {signed_at(6, 1, 2), signed_at(7, 1, 3)};
    x.signature = TX_SIGNATURE_UNKNOWN;
    for (unsigned i = 0; i < 2; i++)
        pooled[i].signature = not [i];
    block(s, 99, 5, 1, &x);
    block(s, 100, 5, 0, NULL);
    questions(s, 5, 2, pooled);
    assert_int_equal(expect(s, MANAGER_FX_STORE_ADOPT)->adopt.count, 0);
    script_free(s);
}

/* The best block used a nonce that neither the table nor a final block accounts for: it is waited
 * for. */
static void waits_for_what_is_not_final(void **state)
{
    (void)state;
    struct script *s = doubtful(NULL, 0, 5);
    block(s, 99, 5, 0, NULL);
    block(s, 100, 5, 0, NULL);
    questions(s, 6, 0, NULL);
    none(s, MANAGER_FX_STORE_ADOPT);
    none(s, MANAGER_FX_READY);
    struct tx_included x = signed_at(5, 1, 1);
    block(s, 101, 6, 1, &x);
    while (!count_of(s, MANAGER_FX_ASK_POOL))
        tick(s);
    questions(s, 6, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_STORE_ADOPT)->adopt.count, 1);
    script_free(s);
}

/* Not for ever: what is not final an era later goes its own way. */
static void does_not_wait_for_ever(void **state)
{
    (void)state;
    struct script *s = doubtful(NULL, 0, 5);
    for (uint64_t n = 99; n < 100 + 64; n++)
        block(s, n, 5, 0, NULL);
    while (!count_of(s, MANAGER_FX_ASK_POOL))
        tick(s);
    probe_foreign(s, 6);
    none(s, MANAGER_FX_STORE_ADOPT);
    block(s, 164, 5, 0, NULL);
    while (!count_of(s, MANAGER_FX_ASK_POOL))
        tick(s);
    questions(s, 6, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_STORE_ADOPT)->adopt.count, 0);
    script_free(s);
}

/* A node that is behind the last renewal has nothing to say about what came after it. */
static void node_is_behind(void **state)
{
    (void)state;
    struct script *s = loaded((struct manager_event){
        .snapshot = {.next_nonce = 5, .used_nonce = -1, .reconcile = true, .reconcile_from = 103}});
    none(s, MANAGER_FX_ASK_POOL);
    for (uint64_t n = 101; n < 103; n++)
        block(s, n, 5, 0, NULL);
    none(s, MANAGER_FX_ASK_POOL);
    block(s, 103, 5, 0, NULL);
    expect(s, MANAGER_FX_ASK_POOL);
    script_free(s);
}

/* A later attempt of a pending transaction was lost, and it is in a block: its call says whose it
 * is. */
static struct script *lost_attempt(uint8_t call)
{
    struct script *s = leading_pooled(5, 1);
    struct tx_included x = signed_at(5, 7, call);
    block(s, s->finalized + 1, 6, 1, &x);
    return s;
}

static void lost_attempt_is_adopted(void **state)
{
    (void)state;
    struct script *s =
        lost_attempt(1); /* outbox() gives calls that begin with 1 and go on with 0 */
    none(s, MANAGER_FX_STORE_ADOPT);
    expect_alert(s, "which this relay did not sign");
    expect(s, MANAGER_FX_STORE_FINISH);
    script_free(s);
    s = lost_attempt(5); /* bytes of nonce 5 end with its call: so many fives */
    none(s, MANAGER_FX_STORE_FINISH);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_ADOPT);
    assert_int_equal(fx->adopt.count, 1);
    assert_false(fx->adopt.done);
    assert_true(fx->adopt.block <= 100);
    feed(s, (struct manager_event){.type = MANAGER_EV_STORED,
                                   .stored = {.write = MANAGER_FX_STORE_ADOPT, .adopted = 1}});
    expect(s, MANAGER_FX_LOAD);
    script_free(s);
}

/* The database has its reasons: then it was somebody else's, and the row ends as such. */
static void lost_attempt_is_refused(void **state)
{
    (void)state;
    struct script *s = lost_attempt(5);
    expect(s, MANAGER_FX_STORE_ADOPT);
    uint64_t height = s->finalized;
    stored(s, MANAGER_FX_STORE_ADOPT);
    uint64_t from = expect(s, MANAGER_FX_FOLLOW)->number;
    none(s, MANAGER_FX_LOAD);
    struct tx_included x = signed_at(5, 7, 5);
    for (; from < height; from++)
        block(s, from, 5, 0, NULL);
    block(s, height, 6, 1, &x);
    assert_string_equal(expect(s, MANAGER_FX_STORE_FINISH)->ends.rows[0].outcome, "usurped");
    none(s, MANAGER_FX_STORE_ADOPT);
    script_free(s);
}

/* A pool shows a lost attempt of a pending transaction, and the database refuses it. A pool proves
 * nothing: the transaction is not somebody else's before a final block shows the bytes, and then
 * the database is asked once more. */
static void refused_from_a_pool(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending row = loaded_row(s, 5, "broadcast");
    row.submitted_block = 98;
    script_free(s);
    s = doubtful(&row, 1, 6);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 99);
    block(s, 99, 5, 0, NULL);
    block(s, 100, 5, 0, NULL);
    struct tx_included x = signed_at(5, 7, 5);
    questions(s, 5, 1, &x);
    assert_int_equal(expect(s, MANAGER_FX_STORE_ADOPT)->adopt.count, 1);
    stored(s, MANAGER_FX_STORE_ADOPT);
    none(s, MANAGER_FX_FOLLOW);
    block(s, 101, 6, 1, &x);
    none(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(expect(s, MANAGER_FX_STORE_ADOPT)->adopt.count, 1);
    script_free(s);
}

/* The chain's nonce is above the table's at the first probe: the blocks since the last renewal are
 * looked through, once. */
static void chain_ran_ahead(void **state)
{
    (void)state;
    struct script *s = loaded(
        (struct manager_event){.snapshot = {.next_nonce = 5, .used_nonce = -1, .seen_block = 97}});
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 100);
    probe_foreign(s, 6);
    none(s, MANAGER_FX_READY);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 98);
    struct tx_included x = signed_at(5, 1, 1);
    block(s, 98, 6, 1, &x);
    block(s, 99, 6, 0, NULL);
    block(s, 100, 6, 0, NULL);
    while (!count_of(s, MANAGER_FX_ASK_POOL))
        tick(s);
    questions(s, 6, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_STORE_ADOPT)->adopt.count, 1);
    stored(s, MANAGER_FX_STORE_ADOPT); /* nobody's: the key is used elsewhere */
    while (!count_of(s, MANAGER_FX_ASK_POOL))
        tick(s);
    probe(s, 6, 0);
    expect(s, MANAGER_FX_READY);
    assert_int_equal(expect(s, MANAGER_FX_STORE_NONCE)->next.nonce, 6);
    script_free(s);
}

/* Seed 2000008082: a node invents a final block that is further from the doubtful ones than any
 * search goes. When that height is dropped the search begins at what the table says, and so does
 * what is stored: the height of a signature that no chain has would hold the account for ever. */
static void invented_height_moves_no_search(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    promote(s);
    expect(s, MANAGER_FX_LOAD);
    feed(s, (struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                   .snapshot = {.last = true,
                                                .next_nonce = 5,
                                                .used_nonce = -1,
                                                .used_block = -1,
                                                .reconcile = true,
                                                .reconcile_from = 98}});
    s->finalized = 1000000;
    chain_up(s);
    expect_alert(s, "lost commits are looked for from block 900000 on");
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 900001);
    s->finalized = 100;
    best(s);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 99);
    struct tx_included x = signed_at(5, 1, 1);
    block(s, 99, 6, 1, &x);
    block(s, 100, 6, 0, NULL);
    questions(s, 6, 0, NULL);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_ADOPT);
    assert_int_equal(fx->adopt.count, 1);
    assert_int_equal(fx->adopt.block, 98);
    script_free(s);
}

/* Seed 40000172: blocks that are older than every row are searched, and say nothing else. One of
 * them holds bytes of a life of the account that is over, which a row at the same nonce still knows
 * as an earlier attempt. */
static void former_life_in_old_blocks(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending row = loaded_row(s, 5, "broadcast");
    uint8_t former[32];
    memcpy(former, hash_of(5, 9), 32);
    row.submitted_block = 99;
    row.earlier = (const uint8_t(*)[32])former;
    row.earlier_count = row.earlier_own = 1;
    row.earlier_death = 70;
    script_free(s);
    s = doubtful(&row, 1, 6);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 99);
    struct tx_included x = signed_at(5, 9, 5), y = signed_at(7, 1, 2);
    struct tx_included both[] = {x, y};
    block(s, 99, 8, 2, both);
    none(s, MANAGER_FX_STORE_FINISH);
    block(s, 100, 5, 0, NULL);
    none(s, MANAGER_FX_STORE_PAUSE);
    questions(s, 5, 0, NULL);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_ADOPT);
    assert_int_equal(fx->adopt.count, 1);
    assert_int_equal(fx->adopt.found[0].nonce, 7);
    script_free(s);
}

/* The write's outcome is not known: all is read again, and looked for again. */
static void unknown_outcome(void **state)
{
    (void)state;
    struct script *s = doubtful(NULL, 0, 5);
    struct tx_included x = signed_at(5, 1, 1);
    block(s, 99, 6, 1, &x);
    block(s, 100, 6, 0, NULL);
    questions(s, 6, 0, NULL);
    expect(s, MANAGER_FX_STORE_ADOPT);
    write_failed(s, MANAGER_FX_STORE_ADOPT, ERR_DB_UNKNOWN_OUTCOME);
    expect(s, MANAGER_FX_LOAD);
    script_free(s);
}

/* Seed 20037998: the only nonces that are known to be used were somebody else's, in blocks that no
 * record names, and the account was reaped. Its next nonce is not taken back: an operator
 * judges. */
static void reaped_after_foreign_use(void **state)
{
    (void)state;
    struct script *s =
        loaded((struct manager_event){.snapshot = {.next_nonce = 6, .used_nonce = 6}});
    expect(s, MANAGER_FX_ASK_POOL);
    pool_is(s, 0);
    nonce_is(s, 0);
    none(s, MANAGER_FX_STORE_NONCE);
    none(s, MANAGER_FX_READY);
    for (uint64_t n = 100; n < 164; n++) {
        block(s, n, 0, 0, NULL);
        none(s, MANAGER_FX_STORE_PAUSE);
    }
    block(s, 164, 0, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_STORE_PAUSE)->pause.suspension,
                     MANAGER_SUSPENSION_REAPED);
    script_free(s);
}

/* ---- the wait ---- */

/* Loaded, connected, and in the wait. Block n is made at 1000 * n ms; the loss was found when block
 * 100 was final. until -1: nobody knows yet for how long. */
static struct script *waiting(const struct tx_pending *rows, size_t count, int64_t until)
{
    return loaded((struct manager_event){.snapshot = {.rows = rows,
                                                      .count = count,
                                                      .next_nonce = 5,
                                                      .used_nonce = -1,
                                                      .reconcile = true,
                                                      .reconcile_from = 98,
                                                      .lost_since_ms = 100500,
                                                      .lost_until = until}});
}

static void heard(struct script *s, uint64_t until)
{
    feed(s, (struct manager_event){.type = MANAGER_EV_STORED,
                                   .stored = {.write = MANAGER_FX_STORE_HEARD, .until = until}});
}

/* What the wait may do: read, ask for requests, store what a block shows. */
static void nothing_else(struct script *s)
{
    static const enum manager_effect_type never[] = {
        MANAGER_FX_WANT_OUTBOX,  MANAGER_FX_ADMIT,       MANAGER_FX_RESIGN,
        MANAGER_FX_FILL,         MANAGER_FX_SUBMIT,      MANAGER_FX_STORE_FINISH,
        MANAGER_FX_STORE_REJECT, MANAGER_FX_STORE_NONCE, MANAGER_FX_STORE_ADOPT,
        MANAGER_FX_STORE_NOTE,   MANAGER_FX_ASK_POOL,    MANAGER_FX_ASK_NONCE,
        MANAGER_FX_READY};
    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        none(s, never[i]);
}

static void read_on(struct script *s, uint64_t to, uint64_t nonce)
{
    for (uint64_t n = s->finalized + 1; n <= to; n++) {
        nothing_else(s);
        assert_int_equal(manager_phase(s->m), MANAGER_ERA_WAIT);
        block(s, n, nonce, 0, NULL);
    }
}

/* The height counts from the first final block that was made after the loss was found; then one
 * longest era is read. */
static void waits_an_era(void **state)
{
    (void)state;
    struct script *s = waiting(NULL, 0, -1);
    assert_int_equal(manager_phase(s->m), MANAGER_ERA_WAIT);
    block(s, 99, 5, 0, NULL);
    block(s, 100, 5, 0, NULL);
    none(s, MANAGER_FX_STORE_HEARD);
    block(s, 101, 5, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_STORE_HEARD)->number, s->best > 101 ? s->best : 101);
    block(s, 102, 5, 0, NULL);
    none(s, MANAGER_FX_STORE_HEARD);
    assert_int_equal(manager_view_of(s->m).wait_blocks, 0);
    heard(s, 165);
    expect_alert(s, "before block 165 is final and read, which is 63 blocks from now");
    assert_int_equal(manager_view_of(s->m).wait_blocks, 63);
    read_on(s, 164, 5);
    assert_int_equal(manager_view_of(s->m).wait_blocks, 1);
    nothing_else(s);
    block(s, 165, 5, 0, NULL);
    expect_alert(s, "the wait after lost commits is over");
    questions(s, 5, 0, NULL);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_ADOPT);
    assert_true(fx->adopt.done);
    assert_int_equal(fx->adopt.read, 165);
    script_free(s);
}

/* A node that is behind ends nothing too early: another relay heard of a higher block. */
static void counts_from_the_highest_block(void **state)
{
    (void)state;
    struct script *s = waiting(NULL, 0, -1);
    feed(s, (struct manager_event){.type = MANAGER_EV_BEST,
                                   .best = {.number = s->best, .best_known = 140}});
    for (uint64_t n = 99; n <= 101; n++)
        block(s, n, 5, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_STORE_HEARD)->number, 140);
    script_free(s);
}

/* The height is stored for good: one that no block follows is not, until it is dropped. */
static void counts_from_no_invented_block(void **state)
{
    (void)state;
    struct script *s = waiting(NULL, 0, -1);
    for (uint64_t n = 99; n <= 102; n++) {
        bool invented = n < 102;
        feed(s, (struct manager_event){
                    .type = MANAGER_EV_BEST,
                    .best = {.number = s->best, .best_known = invented ? UINT64_C(1) << 40 : 0}});
        block(s, n, 5, 0, NULL);
        if (invented)
            none(s, MANAGER_FX_STORE_HEARD);
    }
    assert_int_equal(expect(s, MANAGER_FX_STORE_HEARD)->number, 102);
    script_free(s);
}

/* Whose clock counts? A block is made at each second; the loss was found in second 100. */
static void counts_by_the_clocks_that_agree(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int64_t since, database, here; /* seconds that each is off */
        uint64_t heard;
    } rows[] = {
        {"all are right", 0, 0, 0, 101},
        {"the new server's is ahead", 600, 600, 0, 101},
        {"it was, and was set right", 600, 0, 0, 101},
        {"the loss was found long ago by a clock that is ahead", 595, 600, 0, 100},
        {"clocks may differ by a minute", 60, 60, 0, 161},
        {"the relay's is behind, as its blocks show", 0, 0, -90, 101},
        {"the relay's is ahead", 0, 0, 600, 101},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct script *s = loaded(
            (struct manager_event){.snapshot = {.next_nonce = 5,
                                                .used_nonce = -1,
                                                .reconcile = true,
                                                .reconcile_from = 90,
                                                .lost_since_ms = 100500 + 1000 * rows[i].since,
                                                .database_ms = 100500 + 1000 * rows[i].database,
                                                .here_ms = 100500 + 1000 * rows[i].here,
                                                .lost_until = -1}});
        print_message("%s\n", rows[i].what);
        for (uint64_t n = 91; n < rows[i].heard; n++) {
            block(s, n, 5, 0, NULL);
            none(s, MANAGER_FX_STORE_HEARD);
        }
        block(s, rows[i].heard, 5, 0, NULL);
        expect(s, MANAGER_FX_STORE_HEARD);
        script_free(s);
    }
}

/* When rows were enqueued is told by the database's clock, when blocks were made by the chain's. */
static void adopts_by_the_database_s_clock(void **state)
{
    (void)state;
    for (int64_t ahead = 0; ahead <= 600000; ahead += 600000) {
        struct script *s =
            loaded((struct manager_event){.snapshot = {.next_nonce = 5,
                                                       .used_nonce = -1,
                                                       .reconcile = true,
                                                       .reconcile_from = 98,
                                                       .lost_since_ms = 100500 + ahead,
                                                       .database_ms = 100500 + ahead,
                                                       .here_ms = 100500,
                                                       .lost_until = 100}});
        block(s, 99, 5, 0, NULL);
        block(s, 100, 5, 0, NULL);
        questions(s, 5, 0, NULL);
        assert_int_equal(expect(s, MANAGER_FX_STORE_ADOPT)->adopt.ahead_ms, ahead);
        script_free(s);
    }
}

/* A chain that tells no time: the highest block when all that is final was read. */
static void counts_without_a_clock(void **state)
{
    (void)state;
    struct script *s = waiting(NULL, 0, -1);
    for (uint64_t n = 99; n <= 100; n++) {
        none(s, MANAGER_FX_STORE_HEARD);
        feed(s, (struct manager_event){.type = MANAGER_EV_FINALIZED,
                                       .block = &(struct manager_block){
                                           .number = n, .time_ms = -1, .account_nonce = 5}});
    }
    assert_true(expect(s, MANAGER_FX_STORE_HEARD)->number >= 100);
    script_free(s);
}

/* The table knows for how long. */
static void successor_goes_on(void **state)
{
    (void)state;
    struct script *s = waiting(NULL, 0, 110);
    block(s, 99, 5, 0, NULL);
    assert_int_equal(manager_view_of(s->m).wait_blocks, 11);
    none(s, MANAGER_FX_ALERT); /* more blocks are final */
    block(s, 100, 5, 0, NULL);
    expect_alert(s, "before block 110 is final and read, which is 10 blocks from now");
    read_on(s, 109, 5);
    none(s, MANAGER_FX_ALERT);
    none(s, MANAGER_FX_STORE_HEARD);
    chain_down(s);
    chain_up(s);
    nothing_else(s);
    block(s, 110, 5, 0, NULL);
    questions(s, 5, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_STORE_ADOPT)->adopt.read, 110);
    script_free(s);
}

/* Where an operator wants it so, nothing is waited for, and the table hears that. */
static void cut_short(void **state)
{
    (void)state;
    struct script *s = script_new(&(struct manager_config){.lost_search = true});
    promote(s);
    expect(s, MANAGER_FX_LOAD);
    feed(s, (struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                   .snapshot = {.last = true,
                                                .next_nonce = 5,
                                                .used_nonce = -1,
                                                .used_block = -1,
                                                .reconcile = true,
                                                .reconcile_from = 98,
                                                .lost_until = -1}});
    chain_up(s);
    block(s, 99, 5, 0, NULL);
    block(s, 100, 5, 0, NULL);
    none(s, MANAGER_FX_STORE_HEARD);
    questions(s, 5, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_STORE_ADOPT)->adopt.read, -1);
    script_free(s);
}

static void tells_of_bytes_without_an_era(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    promote(s);
    expect(s, MANAGER_FX_LOAD);
    feed(s, (struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                   .snapshot = {.last = true,
                                                .next_nonce = 5,
                                                .used_nonce = -1,
                                                .used_block = -1,
                                                .reconcile = true,
                                                .reconcile_from = 98,
                                                .lost_until = 100,
                                                .immortal = true}});
    expect_alert(s, "can take effect beside a new attempt at any time");
    chain_up(s);
    none(s, MANAGER_FX_ASK_POOL); /* it waits for what has an era all the same */
    block(s, 99, 5, 0, NULL);
    none(s, MANAGER_FX_ASK_POOL);
    block(s, 100, 5, 0, NULL);
    expect(s, MANAGER_FX_ASK_POOL);
    script_free(s);
}

/* Somebody else's extrinsic took the nonce, an application cancels, eras end: none of it is
 * recorded before the wait is over. */
static void nothing_ends(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending rows[] = {loaded_row(s, 3, "broadcast"), loaded_row(s, 4, "signed")};
    rows[0].submitted_block = rows[1].submitted_block = 98;
    script_free(s);
    s = waiting(rows, 2, 120);
    struct tx_stop stop = {
        .nonce = 4, .id = rows[1].id, .outcome = "cancelled", .reason = "cancelled by postgres"};
    feed(s, (struct manager_event){
                .type = MANAGER_EV_REQUESTS,
                .requests = {.number = s->request_poll, .stops = &stop, .count = 1}});
    struct tx_included x = signed_at(3, 9, 77);
    block(s, 99, 4, 1, &x);
    expect_alert(s, "which this relay did not sign");
    s->finalized = 99;
    read_on(s, 119, 4);
    nothing_else(s);
    block(s, 120, 4, 0, NULL);
    questions(s, 4, 0, NULL);
    none(s, MANAGER_FX_STORE_ADOPT); /* all is read: what took the nonce is adopted next */
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(fx->ends.count, 1);
    assert_string_equal(fx->ends.rows[0].outcome, "usurped");
    stored(s, MANAGER_FX_STORE_FINISH);
    expect(s, MANAGER_FX_STORE_ADOPT);
    script_free(s);
}

/* What a block shows is stored at once; what lost its nonce is in the outbox before anything is
 * adopted, for it may be what is found there. */
static void what_a_block_shows_is_stored(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending rows[] = {loaded_row(s, 3, "broadcast"), loaded_row(s, 4, "broadcast")};
    rows[0].submitted_block = rows[1].submitted_block = 98;
    uint8_t own[32];
    memcpy(own, rows[0].hash, 32);
    script_free(s);
    struct manager_account requeues = {.tip_cap = MANAGER_NO_CAP, .requeue_usurped = true};
    s = loaded((struct manager_event){.snapshot = {.rows = rows,
                                                   .count = 2,
                                                   .next_nonce = 5,
                                                   .used_nonce = -1,
                                                   .reconcile = true,
                                                   .reconcile_from = 98,
                                                   .lost_until = 102,
                                                   .account = &requeues}});
    struct tx_included x = signed_at(3, 1, 3), y = signed_at(4, 9, 77);
    memcpy(x.hash, own, 32);
    block(s, 99, 4, 1, &x);
    assert_string_equal(expect(s, MANAGER_FX_STORE_FINISH)->ends.rows[0].outcome, "ok");
    stored(s, MANAGER_FX_STORE_FINISH);
    block(s, 100, 4, 0, NULL);
    block(s, 101, 4, 0, NULL);
    block(s, 102, 5, 1, &y);
    expect(s, MANAGER_FX_STORE_REQUEUE);
    questions(s, 5, 0, NULL);
    none(s, MANAGER_FX_STORE_ADOPT);
    stored(s, MANAGER_FX_STORE_REQUEUE);
    expect(s, MANAGER_FX_STORE_ADOPT);
    script_free(s);
}

/* Seed 11000300979 (lossy): the lost commits had sent a transaction back to the outbox for its
 * retry, and sent it again. A cancellation that comes in the wait does not end it by its first
 * attempt. */
static void no_stop_in_the_wait(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending row = loaded_row(s, 3, "broadcast");
    row.submitted_block = 98;
    row.retries = 1;
    uint8_t own[32];
    memcpy(own, row.hash, 32);
    script_free(s);
    s = waiting(&row, 1, 100);
    struct tx_stop stop = {
        .nonce = 3, .id = row.id, .outcome = "cancelled", .reason = "cancelled by postgres"};
    feed(s, (struct manager_event){
                .type = MANAGER_EV_REQUESTS,
                .requests = {.number = s->request_poll, .stops = &stop, .count = 1}});
    struct tx_included x = signed_at(3, 1, 3);
    memcpy(x.hash, own, 32);
    x.result.outcome = DISPATCH_FAILED;
    block(s, 99, 4, 1, &x);
    block(s, 100, 4, 0, NULL);
    none(s, MANAGER_FX_STORE_FINISH);
    expect(s, MANAGER_FX_STORE_REQUEUE);
    questions(s, 4, 0, NULL);
    stored(s, MANAGER_FX_STORE_REQUEUE);
    expect(s, MANAGER_FX_STORE_ADOPT);
    uint64_t look = s->request_poll;
    stored(s, MANAGER_FX_STORE_ADOPT);
    assert_int_equal(s->request_poll, look + 1); /* it is heard now */
    script_free(s);
}

/* The lost commits had ended a transaction and given its nonce to another one: a block shows that
 * one's extrinsic. It can be adopted once the nonce is free, so the end of the former one is stored
 * first, and the account is not reconciled before. */
static void nonce_was_given_to_another(void **state)
{
    (void)state;
    for (unsigned presigned = 0; presigned < 2; presigned++) {
        struct script *s = script_new(NULL);
        struct tx_pending row = loaded_row(s, 3, "signed");
        row.submitted_block = 98;
        row.presigned = presigned;
        script_free(s);
        s = waiting(&row, 1, 100);
        struct tx_included x = signed_at(3, 9, 77);
        block(s, 99, 4, 1, &x);
        block(s, 100, 4, 0, NULL);
        questions(s, 4, 0, NULL);
        const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
        assert_string_equal(fx->ends.rows[0].outcome, "usurped");
        assert_int_equal(fx->ends.rows[0].used_block, 99);
        none(s, MANAGER_FX_STORE_ADOPT);
        stored(s, MANAGER_FX_STORE_FINISH);
        none(s, MANAGER_FX_READY);
        fx = expect(s, MANAGER_FX_STORE_ADOPT);
        assert_int_equal(fx->adopt.count, 1);
        assert_true(fx->adopt.done);
        none(s, MANAGER_FX_STORE_FINISH);
        feed(s, (struct manager_event){.type = MANAGER_EV_STORED,
                                       .stored = {.write = MANAGER_FX_STORE_ADOPT, .adopted = 1}});
        expect(s, MANAGER_FX_LOAD);
        script_free(s);
    }
}

/* Seed 82000001790 (lossy): its era was over before the block that shows who got its nonce. */
static void nonce_was_given_to_another_after_the_end(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending row = loaded_row(s, 3, "signed");
    row.submitted_block = 98;
    row.presigned = true;
    row.era_death = 100;
    script_free(s);
    s = waiting(&row, 1, 101);
    block(s, 99, 3, 0, NULL);
    block(s, 100, 3, 0, NULL);
    none(s, MANAGER_FX_STORE_FINISH);
    struct tx_included x = signed_at(3, 9, 77);
    block(s, 101, 4, 1, &x);
    questions(s, 4, 0, NULL);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_string_equal(fx->ends.rows[0].outcome, "expired");
    assert_int_equal(fx->ends.rows[0].used_block, 101);
    none(s, MANAGER_FX_STORE_ADOPT);
    stored(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(expect(s, MANAGER_FX_STORE_ADOPT)->adopt.count, 1);
    script_free(s);
}

static void wait_of_unknown_outcome(void **state)
{
    (void)state;
    struct script *s = waiting(NULL, 0, -1);
    for (uint64_t n = 99; n <= 101; n++)
        block(s, n, 5, 0, NULL);
    expect(s, MANAGER_FX_STORE_HEARD);
    write_failed(s, MANAGER_FX_STORE_HEARD, ERR_DB_UNKNOWN_OUTCOME);
    expect(s, MANAGER_FX_LOAD);
    script_free(s);
}

/* Seed 644 (lossy): the table knows that higher nonces are used for good, and the newest attempt of
 * one below them was lost. Its call says that it is no stranger's. */
static void lost_attempt_below_used_nonces(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending row = loaded_row(s, 5, "broadcast");
    row.submitted_block = 98;
    script_free(s);
    s = loaded((struct manager_event){.snapshot = {.rows = &row,
                                                   .count = 1,
                                                   .next_nonce = 7,
                                                   .used_nonce = 7,
                                                   .reconcile = true,
                                                   .reconcile_from = 98,
                                                   .lost_until = 100}});
    struct tx_included x = signed_at(5, 7, 5);
    block(s, 99, 7, 1, &x);
    block(s, 100, 7, 0, NULL);
    none(s, MANAGER_FX_STORE_REQUEUE);
    questions(s, 7, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_STORE_ADOPT)->adopt.count, 1);
    script_free(s);
}

/* Seed 467 (lossy): the account was reaped during the wait, and a successor knows that when it
 * reads the blocks. What lost commits have sent in the former life is theirs all the same. */
static void reaped_in_the_wait(void **state)
{
    (void)state;
    struct manager_account reaped = {
        .tip_cap = MANAGER_NO_CAP, .paused = true, .suspension = MANAGER_SUSPENSION_REAPED};
    struct script *s = loaded((struct manager_event){.snapshot = {.next_nonce = 5,
                                                                  .used_nonce = -1,
                                                                  .reconcile = true,
                                                                  .reconcile_from = 98,
                                                                  .lost_until = 100,
                                                                  .account = &reaped}});
    struct tx_included x = signed_at(5, 1, 1);
    block(s, 99, 6, 1, &x);
    block(s, 100, 0, 0, NULL);
    questions(s, 0, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_STORE_ADOPT)->adopt.count, 1);
    script_free(s);
}

/* Seed 9000023975 and seed 4070008889 (lossy): the lost commits had begun a new life of a reaped
 * account. What is on record as used belongs to the former life, so it explains no nonce of the new
 * one. */
static void new_life_was_lost(void **state)
{
    (void)state;
    struct manager_account reaped = {
        .tip_cap = MANAGER_NO_CAP, .paused = true, .suspension = MANAGER_SUSPENSION_REAPED};
    struct script *s = loaded((struct manager_event){.snapshot = {.next_nonce = 7,
                                                                  .used_nonce = 7,
                                                                  .reconcile = true,
                                                                  .reconcile_from = 98,
                                                                  .lost_until = 100,
                                                                  .account = &reaped}});
    struct tx_included x = signed_at(0, 1, 1);
    block(s, 99, 1, 1, &x);
    block(s, 100, 1, 0, NULL);
    questions(s, 1, 0, NULL);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_ADOPT);
    assert_int_equal(fx->adopt.count, 1);
    assert_int_equal(fx->adopt.found[0].nonce, 0);
    script_free(s);
}

/* The suspension was lost as well: a block above all that are on record shows the new life. A
 * leader that died in the wait may have recorded that one too: it ended what had the nonce before,
 * and did not adopt what took it. So the database is asked by the hash. */
static void used_in_a_later_block(void **state)
{
    (void)state;
    for (int64_t recorded = 98; recorded <= 99; recorded++) {
        struct script *s = script_new(NULL);
        promote(s);
        expect(s, MANAGER_FX_LOAD);
        feed(s, (struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                       .snapshot = {.last = true,
                                                    .next_nonce = 7,
                                                    .used_nonce = 7,
                                                    .used_block = recorded,
                                                    .reconcile = true,
                                                    .reconcile_from = 98,
                                                    .lost_until = 100}});
        chain_up(s);
        struct tx_included x = signed_at(2, 1, 1);
        block(s, 99, 7, 1, &x);
        block(s, 100, 7, 0, NULL);
        questions(s, 7, 0, NULL);
        assert_int_equal(expect(s, MANAGER_FX_STORE_ADOPT)->adopt.count, 1);
        script_free(s);
    }
}

/* Seed 4070007365 (lossy): the account was reaped in the wait, and somebody else's extrinsic used
 * the nonce of a lost one again. */
static void used_in_two_lives(void **state)
{
    (void)state;
    struct script *s = loaded((struct manager_event){.snapshot = {.next_nonce = -1,
                                                                  .used_nonce = -1,
                                                                  .reconcile = true,
                                                                  .reconcile_from = 97,
                                                                  .lost_until = 100}});
    struct tx_included lost = signed_at(0, 1, 1), foreign = signed_at(0, 2, 77);
    block(s, 98, 1, 1, &lost);
    block(s, 99, 1, 1, &foreign);
    block(s, 100, 1, 0, NULL);
    questions(s, 1, 0, NULL);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_ADOPT);
    assert_int_equal(fx->adopt.count, 2);
    assert_memory_not_equal(fx->adopt.found[0].hash, fx->adopt.found[1].hash, 32);
    script_free(s);
}

/* Its bytes were alive when the search ended: later, only an operator's order ends it. */
static void stays_until_ordered(struct script *s)
{
    stored(s, MANAGER_FX_STORE_ADOPT);
    for (uint64_t number = 101; number <= 165; number++) {
        block(s, number, 1, 0, NULL);
        none(s, MANAGER_FX_STORE_REQUEUE);
        none(s, MANAGER_FX_STORE_FINISH);
    }
}

/* Seed 31000303882 (lossy): the lost commits had sent a transaction of the former life back to the
 * outbox, and sent it again in the new one. It goes back before that is adopted, if its own bytes
 * are dead. One that was not found at another nonce waits for an operator. */
static void sent_again_in_a_new_life(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool alive = i == 1, fails = i == 2, other = i == 3;
        struct manager_account reaped = {.tip_cap = MANAGER_NO_CAP,
                                         .paused = true,
                                         .requeue_usurped = !fails,
                                         .suspension = MANAGER_SUSPENSION_REAPED};
        struct script *s = script_new(NULL);
        struct tx_pending rows[2];
        for (unsigned k = 0; k < 2; k++) {
            rows[k] = loaded_row(s, 5 + k, "broadcast");
            rows[k].submitted_block = 98;
            rows[k].era_death = alive ? 160 : 100;
        }
        script_free(s);
        s = loaded((struct manager_event){.snapshot = {.rows = rows,
                                                       .count = 2,
                                                       .next_nonce = 7,
                                                       .used_nonce = -1,
                                                       .reconcile = true,
                                                       .reconcile_from = 98,
                                                       .lost_until = 100,
                                                       .account = &reaped}});
        struct tx_included x = signed_at(0, 1, other ? 77 : 6);
        block(s, 99, 1, 1, &x);
        block(s, 100, 1, 0, NULL);
        questions(s, 1, 0, NULL);
        none(s, MANAGER_FX_STORE_FINISH);
        if (i == 0) {
            none(s, MANAGER_FX_STORE_ADOPT);
            const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_REQUEUE);
            assert_int_equal(fx->ends.count, 1);
            assert_int_equal(fx->ends.rows[0].nonce, 6);
            assert_string_equal(fx->ends.rows[0].outcome, "failed");
            stored(s, MANAGER_FX_STORE_REQUEUE);
        }
        none(s, MANAGER_FX_STORE_REQUEUE);
        const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_ADOPT);
        assert_int_equal(fx->adopt.count, 1);
        assert_true(fx->adopt.done);
        if (alive)
            stays_until_ordered(s);
        script_free(s);
    }
}

/* Seed 31000303882 (lossy): it was adopted in a new life of a reaped account, and the blocks that
 * are read again begin in the former one, in which another transaction had its nonce. The database
 * gives no hash of that one, so its block is not the row's. */
static void adopted_in_a_later_life(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    struct tx_pending row = loaded_row(s, 0, "signed");
    row.submitted_block = 96;
    script_free(s);
    s = loaded((struct manager_event){
        .snapshot = {.rows = &row, .count = 1, .next_nonce = 1, .used_nonce = -1}});
    struct tx_included former = signed_at(0, 9, 77), own = signed_at(0, 1, 0);
    memcpy(own.hash, row.hash, 32);
    block(s, 97, 1, 1, &former);
    none(s, MANAGER_FX_STORE_FINISH);
    block(s, 98, 0, 0, NULL);
    none(s, MANAGER_FX_STORE_FINISH);
    block(s, 99, 1, 1, &own);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_string_equal(fx->ends.rows[0].outcome, "ok");
    assert_int_equal(fx->ends.rows[0].block_number, 99);
    script_free(s);
}

/* Lossy seed 41000000098: of 15 extrinsics of two lives 8 were adopted together, so the rows that
 * are loaded next are of both. The old blocks show used nonces of the former life: they are no
 * reason to pass over the blocks that hold its rows, and end nothing of the present one. */
static void rows_of_two_lives(void **state)
{
    (void)state;
    for (int era = 0; era < 2; era++) {
        struct script *s = script_new(NULL);
        struct tx_pending rows[] = {loaded_row(s, 0, "signed"), loaded_row(s, 1, "signed"),
                                    loaded_row(s, 2, "signed")};
        for (int i = 0; i < 3; i++)
            rows[i].submitted_block = i ? 50 : 97;
        rows[0].era_death = era ? rows[0].era_death : -1;
        script_free(s);
        s = doubtful(rows, 3, 3);
        assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 51);
        block(s, 51, 1, 0, NULL); /* nonce 0 of the former life */
        none(s, MANAGER_FX_FOLLOW);
        struct tx_included x = signed_at(1, 1, 1), y = signed_at(2, 1, 2);
        memcpy(x.hash, rows[1].hash, 32);
        memcpy(y.hash, rows[2].hash, 32);
        struct tx_included both[] = {x, y};
        block(s, 52, 3, 2, both);
        const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
        assert_int_equal(fx->ends.count, 2);
        assert_string_equal(fx->ends.rows[0].outcome, "ok");
        assert_string_equal(fx->ends.rows[1].outcome, "ok");
        stored(s, MANAGER_FX_STORE_FINISH);
        for (uint64_t n = 53; n < 97; n++)
            block(s, n, 3, 0, NULL);
        none(s, MANAGER_FX_STORE_FINISH);
        none(s, MANAGER_FX_FOLLOW);
        block(s, 97, 0, 0, NULL); /* the account begins anew */
        struct tx_included z = signed_at(0, 1, 3);
        memcpy(z.hash, rows[0].hash, 32);
        block(s, 98, 1, 1, &z);
        fx = expect(s, MANAGER_FX_STORE_FINISH);
        assert_int_equal(fx->ends.count, 1);
        assert_string_equal(fx->ends.rows[0].outcome, "ok");
        script_free(s);
    }
}

/* A pool may keep bytes whose nonce a final block has used. */
static void used_nonce_in_a_pool(void **state)
{
    (void)state;
    struct script *s = doubtful(NULL, 0, 5);
    block(s, 99, 6, 0, NULL);
    block(s, 100, 6, 0, NULL);
    struct tx_included pooled[] = {signed_at(5, 1, 1), signed_at(6, 1, 1)};
    questions(s, 6, 2, pooled);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_ADOPT);
    assert_int_equal(fx->adopt.count, 1);
    assert_int_equal(fx->adopt.found[0].nonce, 6);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_was_lost),
        cmocka_unit_test(searched_from_an_invented_block),
        cmocka_unit_test(invented_under_a_former_epoch),
        cmocka_unit_test(found_in_blocks_and_pool),
        cmocka_unit_test(found_and_not_signed),
        cmocka_unit_test(waits_for_what_is_not_final),
        cmocka_unit_test(does_not_wait_for_ever),
        cmocka_unit_test(node_is_behind),
        cmocka_unit_test(lost_attempt_is_adopted),
        cmocka_unit_test(lost_attempt_is_refused),
        cmocka_unit_test(refused_from_a_pool),
        cmocka_unit_test(chain_ran_ahead),
        cmocka_unit_test(invented_height_moves_no_search),
        cmocka_unit_test(unknown_outcome),
        cmocka_unit_test(former_life_in_old_blocks),
        cmocka_unit_test(reaped_after_foreign_use),
        cmocka_unit_test(waits_an_era),
        cmocka_unit_test(counts_from_the_highest_block),
        cmocka_unit_test(counts_from_no_invented_block),
        cmocka_unit_test(counts_without_a_clock),
        cmocka_unit_test(counts_by_the_clocks_that_agree),
        cmocka_unit_test(adopts_by_the_database_s_clock),
        cmocka_unit_test(successor_goes_on),
        cmocka_unit_test(cut_short),
        cmocka_unit_test(tells_of_bytes_without_an_era),
        cmocka_unit_test(nothing_ends),
        cmocka_unit_test(what_a_block_shows_is_stored),
        cmocka_unit_test(no_stop_in_the_wait),
        cmocka_unit_test(nonce_was_given_to_another),
        cmocka_unit_test(nonce_was_given_to_another_after_the_end),
        cmocka_unit_test(wait_of_unknown_outcome),
        cmocka_unit_test(lost_attempt_below_used_nonces),
        cmocka_unit_test(reaped_in_the_wait),
        cmocka_unit_test(new_life_was_lost),
        cmocka_unit_test(used_in_a_later_block),
        cmocka_unit_test(used_in_two_lives),
        cmocka_unit_test(sent_again_in_a_new_life),
        cmocka_unit_test(adopted_in_a_later_life),
        cmocka_unit_test(rows_of_two_lives),
        cmocka_unit_test(used_nonce_in_a_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
