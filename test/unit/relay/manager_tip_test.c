/* Tips: the first one, the ladder, bumps, caps; stops that race; skipping the head of the line. */
#include "manager_harness.h"

/* Leading with this policy; looks are answered by hand. */
static struct script *with_policy(struct manager_account account, uint64_t next)
{
    struct script *s = script_new(NULL);
    s->account = account;
    load(s, NULL, 0, (int64_t)next);
    chain_up(s);
    probe(s, next, 0);
    expect(s, MANAGER_FX_READY);
    finalized_at(s, s->finalized, next, 0, NULL);
    return s;
}

static void look(struct script *s, const struct tx_stop *stops, size_t count)
{
    feed(s, (struct manager_event){
                .type = MANAGER_EV_REQUESTS,
                .requests = {.stops = stops, .count = count, .account = &s->account}});
}

static void cancel(struct script *s, uint64_t nonce, int64_t id)
{
    look(s, &(struct tx_stop){.nonce = nonce, .id = id, .outcome = "cancelled", .reason = "by app"},
         1);
}

static void bump(struct script *s, uint64_t nonce, int64_t id, u128 tip)
{
    look(s, &(struct tx_stop){.nonce = nonce, .id = id, .tip = tip}, 1);
}

static void enqueue_row(struct script *s, struct manager_outbox_row row)
{
    static const uint8_t call[CALL_LEN] = {1};
    row.id = s->next_id++;
    row.call = call;
    row.call_len = CALL_LEN;
    feed(s,
         (struct manager_event){.type = MANAGER_EV_OUTBOX, .outbox = {.rows = &row, .count = 1}});
}

/* The RESIGN of the last step: one row, left for resigned(). */
static const struct manager_sign_row *resign(struct script *s)
{
    const struct manager_effect *fx = expect(s, MANAGER_FX_RESIGN);
    assert_int_equal(fx->sign.count, 1);
    s->taken[fx - s->fx] = false;
    return &fx->sign.rows[0];
}

static void beats(struct script *s, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        best(s);
}

/* ---- the first tip ---- */

static void first_tip(void **state)
{
    (void)state;
    static const struct {
        struct manager_outbox_row row;
        u128 start, cap, pays;
    } cases[] = {
        {{0}, 0, MANAGER_NO_CAP, 0},
        {{0}, 7, MANAGER_NO_CAP, 7},
        {{0}, 7, 5, 5},
        {{.has_tip = true, .tip = 9}, 7, MANAGER_NO_CAP, 9},
        {{.has_tip = true, .tip = 0}, 7, MANAGER_NO_CAP, 0},
        {{.has_tip = true, .tip = 9}, 7, 8, 8},
        {{.has_max_tip = true, .max_tip = 3}, 7, 8, 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct script *s = with_policy(
            (struct manager_account){.tip_start = cases[i].start, .tip_cap = cases[i].cap}, 5);
        enqueue_row(s, cases[i].row);
        assert_true(expect(s, MANAGER_FX_ADMIT)->sign.rows[0].tip == cases[i].pays);
        script_free(s);
    }
}

/* ---- the ladder ---- */

/* The head pays more after each three blocks in the pool, up to the cap; those behind it pay
 * nothing more. */
static void ladder(void **state)
{
    (void)state;
    struct script *s = with_policy((struct manager_account){.tip_start = 10,
                                                            .tip_step_percent = 50,
                                                            .tip_step = 2,
                                                            .tip_after_blocks = 3,
                                                            .tip_cap = 20},
                                   5);
    static const u128 pays[] = {15, 20};
    outbox(s, 2);
    admitted(s);
    accept(s, 5);
    accept(s, 6);
    best(s); /* from here on it is the head */
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned k = 0; k < 3; k++) {
            none(s, MANAGER_FX_RESIGN);
            best(s);
        }
        const struct manager_sign_row *row = resign(s);
        assert_int_equal(row->nonce, 5);
        assert_true(row->tip == pays[i]);
        assert_string_equal(row->reason, "a higher tip");
        resigned(s);
        expect_submit(s, 5);
        accept(s, 5);
    }
    for (unsigned i = 0; i < 4; i++) { /* at the cap */
        best(s);
        none(s, MANAGER_FX_RESIGN);
    }
    script_free(s);
}

static void no_ladder(void **state)
{
    (void)state;
    struct script *s = with_policy((struct manager_account){.tip_cap = MANAGER_NO_CAP}, 5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    for (unsigned i = 0; i < 4; i++) {
        best(s);
        none(s, MANAGER_FX_RESIGN);
    }
    script_free(s);
}

/* Another user of the key holds our nonce in the pool: with a ladder it is outbid, once a block. */
static void foreign_outbid(void **state)
{
    (void)state;
    struct script *s =
        with_policy((struct manager_account){.tip_after_blocks = 9, .tip_cap = MANAGER_NO_CAP}, 5);
    outbox(s, 1);
    admitted(s);
    refuse(s, 5, 1014, "Priority is too low: (9 vs 1)");
    none(s, MANAGER_FX_RESIGN);
    best(s);
    assert_true(resign(s)->tip == 1);
    resigned(s);
    expect_submit(s, 5);
    assert_string_equal(s->refusal, "Priority is too low: (9 vs 1)");
    script_free(s);
}

/* A new era's bytes pay what the old ones paid. */
static void tip_is_kept(void **state)
{
    (void)state;
    struct script *s = with_policy((struct manager_account){.tip_start = 4, .tip_cap = 9}, 5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    runtime(s, SPEC + 1);
    probe(s, 5, 0);
    assert_true(resign(s)->tip == 4);
    script_free(s);
}

/* ---- bumps ---- */

static void bumped_in_the_pool(void **state)
{
    (void)state;
    struct script *s = with_policy((struct manager_account){.tip_cap = 100}, 5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    best(s);
    bump(s, 5, 2, 50); /* another transaction's */
    none(s, MANAGER_FX_RESIGN);
    bump(s, 5, 1, 50);
    assert_true(resign(s)->tip == 50);
    resigned(s);
    expect_submit(s, 5);
    accept(s, 5);
    bump(s, 5, 1, 50); /* asked for again: it is paid */
    none(s, MANAGER_FX_RESIGN);
    script_free(s);
}

/* A pool drops the bytes while new ones wait to be signed: they are not signed before a probe. */
static void dropped_before_the_bump_is_signed(void **state)
{
    (void)state;
    struct script *s = with_policy((struct manager_account){.tip_cap = 1000}, 5);
    outbox(s, 2);
    admitted(s);
    accept(s, 5);
    accept(s, 6);
    bump(s, 5, 1, 50);
    expect(s, MANAGER_FX_RESIGN);
    bump(s, 6, 2, 50);
    none(s, MANAGER_FX_RESIGN); /* one write at a time */
    status(s, 6, TX_DROPPED, NULL);
    assert_int_equal(manager_view_of(s->m).unsure, 1);
    expect(s, MANAGER_FX_ASK_POOL);
    script_free(s);
}

static void bumped_on_the_wire(void **state)
{
    (void)state;
    struct script *s = with_policy((struct manager_account){.tip_cap = 100}, 5);
    outbox(s, 1);
    admitted(s);
    bump(s, 5, 1, 50);
    none(s, MANAGER_FX_RESIGN);
    best(s);
    accept(s, 5);
    assert_true(resign(s)->tip == 50);
    script_free(s);
}

static void bumped_beyond_the_cap(void **state)
{
    (void)state;
    struct script *s = with_policy((struct manager_account){.tip_cap = 30}, 5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    best(s);
    bump(s, 5, 1, 50);
    assert_true(resign(s)->tip == 30);
    resigned(s);
    expect_submit(s, 5);
    accept(s, 5);
    best(s);
    none(s, MANAGER_FX_RESIGN);
    script_free(s);
}

/* In a block: nothing to do, unless it leaves it again. */
static void bumped_in_a_block(void **state)
{
    (void)state;
    struct script *s = with_policy((struct manager_account){.tip_cap = 100}, 5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    status(s, 5, TX_IN_BLOCK, block_of(1));
    best(s);
    bump(s, 5, 1, 50);
    none(s, MANAGER_FX_RESIGN);
    status(s, 5, TX_RETRACTED, block_of(1));
    best(s);
    probe(s, 5, 0);
    assert_true(resign(s)->tip == 50);
    script_free(s);
}

/* ---- stops that race ---- */

/* Cancelled before its higher tip was signed: a filler that outbids the bytes in the pool is signed
 * instead. */
static void stopped_before_it_is_signed(void **state)
{
    (void)state;
    struct script *s = with_policy((struct manager_account){.tip_cap = 100}, 5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    best(s);
    chain_down(s);
    bump(s, 5, 1, 50);
    none(s, MANAGER_FX_RESIGN);
    cancel(s, 5, 1);
    none(s, MANAGER_FX_RESIGN);
    chain_up(s);
    probe(s, 5, 1, hash_of(5, 1));
    assert_true(resign(s)->filler);
    assert_true(resign(s)->tip > 0);
    script_free(s);
}

/* One row that a pool has, cancelled: a filler at its nonce that pays more is signed at once. */
static struct script *racing(void)
{
    struct script *s =
        with_policy((struct manager_account){.tip_start = 4, .tip_cap = MANAGER_NO_CAP}, 5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    best(s);
    cancel(s, 5, 1);
    const struct manager_sign_row *row = resign(s);
    assert_true(row->filler);
    assert_true(row->tip == 5);
    assert_int_equal(row->id, 1);
    assert_string_equal(row->outcome, "cancelled");
    assert_string_equal(row->error, "by app");
    none(s, MANAGER_FX_FILL);
    resigned(s);
    expect_submit(s, 5);
    return s;
}

static const struct tx_end *ended(struct script *s)
{
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(fx->ends.count, 1);
    return &fx->ends.rows[0];
}

static void race_won(void **state)
{
    (void)state;
    struct script *s = racing();
    accept(s, 5);
    finalized_ours(s, 5);
    const struct tx_end *row = ended(s);
    assert_string_equal(row->outcome, "cancelled");
    assert_string_equal(row->error, "by app");
    assert_true(row->has_block);
    assert_int_equal(row->id, 1);
    script_free(s);
}

/* The transaction's own bytes get in: the record is what the chain says. */
static void race_lost(void **state)
{
    (void)state;
    struct script *s = racing();
    refuse(s, 5, 1014, "Priority is too low: (9 vs 1)");
    none(s, MANAGER_FX_RESIGN);
    finalized(s, 6, 1, &(struct in_block){hash_of(5, 1), 5, true, DISPATCH_OK, NULL});
    assert_string_equal(ended(s)->outcome, "ok");
    script_free(s);
}

/* Whatever comes, no byte of its own is signed again: the filler is. */
static void race_goes_on(void **state)
{
    (void)state;
    struct script *s = racing();
    accept(s, 5);
    runtime(s, SPEC + 1);
    probe(s, 5, 0);
    const struct manager_sign_row *row = resign(s);
    assert_true(row->filler);
    assert_string_equal(row->outcome, "cancelled");
    resigned(s);
    finalized_ours(s, 5);
    assert_string_equal(ended(s)->outcome, "cancelled");
    script_free(s);
}

/* Neither gets in, for lack of room in blocks: once its own bytes are dead the transaction ends,
 * and what is left at its nonce is nobody's. */
static void race_without_a_winner(void **state)
{
    (void)state;
    struct script *s = racing();
    accept(s, 5);
    while (s->finalized < 164) {
        none(s, MANAGER_FX_FILL);
        none(s, MANAGER_FX_RESIGN);
        s->best = s->finalized + 2;
        best(s);
        status(s, 5, TX_READY, NULL);
        finalized(s, 5, 0, NULL);
    }
    const struct manager_effect *fx = expect(s, MANAGER_FX_FILL);
    assert_int_equal(fx->sign.rows[0].nonce, 5);
    assert_string_equal(fx->sign.rows[0].outcome, "cancelled");
    assert_string_equal(fx->sign.rows[0].reason, "by app");
    script_free(s);
}

/* No endpoint has the last block of its own bytes' era, which may hold them. Another filler is
 * signed: it leaves open which of them the block shows. */
static void race_at_an_unread_block(void **state)
{
    (void)state;
    struct script *s = racing();
    accept(s, 5);
    while (s->finalized < 163) {
        s->best = s->finalized + 2;
        best(s);
        status(s, 5, TX_READY, NULL);
        finalized(s, 5, 0, NULL);
    }
    none(s, MANAGER_FX_RESIGN);
    unread_at(s, ++s->finalized);
    assert_true(resign(s)->filler);
    none(s, MANAGER_FX_FILL);
    script_free(s);
}

/* The filler gets in while another one is written in its place: the transaction ends with that
 * write, so what is left to end is nobody's. */
static void race_won_too_late(void **state)
{
    (void)state;
    struct script *s = racing();
    uint8_t bytes[BYTES_LEN] = {9}, won[32];
    memcpy(won, current(s, 5), 32);
    accept(s, 5);
    while (s->finalized < 164) {
        best(s);
        status(s, 5, TX_READY, NULL);
        finalized(s, 5, 0, NULL);
    }
    expect(s, MANAGER_FX_FILL);
    finalized(s, 6, 1, &(struct in_block){won, 5, true, DISPATCH_OK, NULL});
    none(s, MANAGER_FX_STORE_FINISH);
    struct tx_attempt row = {.nonce = 5,
                             .bytes = bytes,
                             .bytes_len = BYTES_LEN,
                             .call_len = CALL_LEN,
                             .era_death = 228,
                             .spec_version = SPEC};
    feed(s, (struct manager_event){
                .type = MANAGER_EV_STORED,
                .stored = {.write = MANAGER_FX_FILL, .attempts = {.rows = &row, .count = 1}}});
    const struct tx_end *end = ended(s);
    assert_string_equal(end->outcome, "ok");
    assert_int_equal(end->id, 0);
    script_free(s);
}

/* Lost and cancelled: the filler need not wait for the end of the era. */
static void race_for_a_lost_one(void **state)
{
    (void)state;
    struct script *s = with_policy((struct manager_account){.tip_cap = MANAGER_NO_CAP}, 5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    status(s, 5, TX_DROPPED, NULL);
    probe(s, 5, 0);
    cancel(s, 5, 1);
    best(s);
    probe(s, 5, 0);
    assert_true(resign(s)->filler);
    script_free(s);
}

/* The next leader knows which of the attempts were fillers. */
static void race_after_a_load(void **state)
{
    (void)state;
    for (unsigned own = 0; own < 2; own++) {
        struct script *s = script_new(NULL);
        struct tx_pending row = loaded_row(s, 5, "broadcast");
        uint8_t earlier[2][32];
        memcpy(earlier[0], hash_of(5, 8), 32); /* its own */
        memcpy(earlier[1], hash_of(5, 9), 32); /* a filler */
        row.earlier = (const uint8_t(*)[32])earlier;
        row.earlier_count = 2;
        row.earlier_own = 1;
        row.filler_len = row.call_len;
        row.stop_outcome = "expired";
        row.stop_reason = "late";
        load(s, &row, 1, 6);
        chain_up(s);
        probe(s, 5, 1, hash_of(5, 1));
        finalized(s, 6, 1, &(struct in_block){earlier[own ? 0 : 1], 5, true, DISPATCH_OK, NULL});
        assert_string_equal(ended(s)->outcome, own ? "ok" : "expired");
        script_free(s);
    }
}

/* A nonce that somebody else used cannot take effect any more: cancelled is what was asked for. */
static void cancelled_and_usurped(void **state)
{
    (void)state;
    struct script *s = racing();
    s->account.requeue_usurped = true;
    look(s, NULL, 0);
    finalized(s, 6, 1, &(struct in_block){hash_of(77, 1), 5, true, DISPATCH_OK, NULL});
    none(s, MANAGER_FX_STORE_REQUEUE);
    assert_string_equal(ended(s)->outcome, "cancelled");
    script_free(s);
}

/* Immortal bytes that nothing else could stop. */
static void race_against_immortal_bytes(void **state)
{
    (void)state;
    struct script *s = with_policy((struct manager_account){.tip_cap = MANAGER_NO_CAP}, 5);
    s->era = -1;
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    best(s);
    cancel(s, 5, 1);
    assert_true(resign(s)->filler);
    script_free(s);
}

/* ---- the head of the line ---- */

static void skipped(void **state)
{
    (void)state;
    struct script *s =
        with_policy((struct manager_account){.skip_after_blocks = 6, .tip_cap = MANAGER_NO_CAP}, 5);
    outbox(s, 2);
    admitted(s);
    expect_submit(s, 5);
    refuse(s, 5, 1018, "Unactionable");
    refuse(s, 6, 1018, "Unactionable");
    for (unsigned i = 0; i < 6; i++) { /* the first block finds it at the head */
        best(s);
        none(s, MANAGER_FX_RESIGN);
        expect_submit(s, 5);
        refuse(s, 5, 1018, "Unactionable");
    }
    best(s);
    const struct manager_effect *fx = expect(s, MANAGER_FX_RESIGN);
    assert_int_equal(fx->sign.rows[0].nonce, 5);
    assert_true(fx->sign.rows[0].filler);
    assert_string_equal(fx->sign.rows[0].outcome, "failed");
    assert_non_null(strstr(fx->sign.rows[0].error, "skipped"));
    assert_non_null(strstr(fx->sign.rows[0].error, "Unactionable"));
    script_free(s);
}

static void head_again(struct script *s, uint64_t number)
{
    feed(s, (struct manager_event){.type = MANAGER_EV_BEST,
                                   .best = {.number = number, .finalized = s->finalized}});
    none(s, MANAGER_FX_RESIGN);
    expect_submit(s, 5);
    refuse(s, 5, 1018, "Unactionable");
}

/* A head that is told again, or an earlier one after it, is no block: the head of the line is not
 * given up before its time. A node that begins anew counts from there. */
static void skip_counts_blocks(void **state)
{
    (void)state;
    for (unsigned anew = 0; anew < 2; anew++) {
        struct script *s = with_policy(
            (struct manager_account){.skip_after_blocks = 6, .tip_cap = MANAGER_NO_CAP}, 5);
        outbox(s, 1);
        admitted(s);
        expect_submit(s, 5);
        refuse(s, 5, 1018, "Unactionable");
        if (anew) {
            head_again(s, 1);
            s->best = 1;
        }
        for (unsigned i = 0; i < 6 - anew; i++) {
            head_again(s, s->best + 1);
            head_again(s, s->best);
            head_again(s, s->best + 1);
            s->best++;
        }
        best(s);
        assert_non_null(strstr(expect(s, MANAGER_FX_RESIGN)->sign.rows[0].error, "skipped"));
        script_free(s);
    }
}

static void not_skipped(void **state)
{
    (void)state;
    struct script *s = with_policy((struct manager_account){.tip_cap = MANAGER_NO_CAP}, 5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    beats(s, 4);
    none(s, MANAGER_FX_RESIGN);
    none(s, MANAGER_FX_FILL);
    script_free(s);
}

/* ---- deadlines in blocks ---- */

static void era_ends_by_the_deadline(void **state)
{
    (void)state;
    static const struct {
        uint64_t deadline;
        uint32_t period;
    } cases[] = {{0, 64},   {UINT64_MAX, 64}, {200, 64}, {163, 64},
                 {162, 32}, {131, 32},        {114, 8},  {107, 8}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) { /* block 100 is final, 102 is best */
        struct script *s = leading_with(&(struct manager_config){.era_period = 64}, 5);
        enqueue_row(s, (struct manager_outbox_row){.deadline_block = cases[i].deadline});
        const struct manager_effect *fx = expect(s, MANAGER_FX_ADMIT);
        assert_int_equal(fx->sign.rows[0].era_period, cases[i].period);
        assert_int_equal(fx->sign.rows[0].deadline_block,
                         i == 1 ? 0 : cases[i].deadline); /* the door measures again */
        script_free(s);
    }
}

static void too_late_to_be_signed(void **state)
{
    (void)state;
    struct script *s = leading_with(&(struct manager_config){.era_period = 64}, 5);
    enqueue_row(s, (struct manager_outbox_row){.deadline_block = 104});
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_REJECT);
    assert_string_equal(fx->ends.rows[0].outcome, "expired");
    assert_non_null(strstr(fx->ends.rows[0].error, "104"));
    none(s, MANAGER_FX_ADMIT);
    script_free(s);
}

/* Its era is over and no other one fits: it ends, and the nonce is filled. */
static void deadline_passes(void **state)
{
    (void)state;
    struct script *s = leading_with(&(struct manager_config){.era_period = 64}, 5);
    enqueue_row(s, (struct manager_outbox_row){.deadline_block = 110});
    s->era = 8;
    admitted(s);
    accept(s, 5);
    while (s->finalized < 108) {
        none(s, MANAGER_FX_FILL);
        best(s);
        status(s, 5, TX_READY, NULL);
        finalized(s, 5, 0, NULL);
    }
    const struct manager_effect *fx = expect(s, MANAGER_FX_FILL);
    assert_string_equal(fx->sign.rows[0].outcome, "expired");
    assert_non_null(strstr(fx->sign.rows[0].reason, "110"));
    script_free(s);
}

/* While finality lags by an era nothing can be signed; that is not the deadline's doing. */
static void lag_is_not_late(void **state)
{
    (void)state;
    struct script *s = leading_with(&(struct manager_config){.era_period = 16}, 5);
    enqueue_row(s, (struct manager_outbox_row){.deadline_block = 150});
    s->era = 16;
    admitted(s);
    refuse(s, 5, 1016, "Immediately Dropped");
    while (s->best < 120) {
        best(s);
        none(s, MANAGER_FX_FILL);
        none(s, MANAGER_FX_RESIGN);
        if (count_of(s, MANAGER_FX_SUBMIT))
            refuse(s, 5, 1016, "Immediately Dropped");
        if (count_of(s, MANAGER_FX_ASK_POOL))
            probe(s, 5, 0);
    }
    while (s->finalized < 119)
        finalized(s, 5, 0, NULL);
    best(s); /* whether the old bytes are in one of the last blocks is asked first */
    none(s, MANAGER_FX_RESIGN);
    probe(s, 5, 0);
    assert_int_equal(expect(s, MANAGER_FX_RESIGN)->sign.rows[0].era_period, 16);
    script_free(s);
}

/* However far its deadline is: while finality lags further than that no era fits. */
static void waits_for_finality(void **state)
{
    (void)state;
    struct script *s = leading_with(&(struct manager_config){.era_period = 0}, 5);
    while (s->best < 170)
        best(s);
    enqueue_row(s, (struct manager_outbox_row){.deadline_block = 180});
    none(s, MANAGER_FX_STORE_REJECT);
    none(s, MANAGER_FX_ADMIT);
    none(s, MANAGER_FX_WANT_OUTBOX); /* not again before the next block */
    expect_alert(s, "finality lags");
    best(s);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    while (s->finalized < 169)
        finalized(s, 5, 0, NULL);
    enqueue_row(s, (struct manager_outbox_row){.deadline_block = 180});
    assert_int_equal(expect(s, MANAGER_FX_ADMIT)->sign.rows[0].era_period, 8);
    script_free(s);
}

/* The same for new bytes; and while they wait the deadline comes too near. */
static void new_bytes_wait_for_finality(void **state)
{
    (void)state;
    struct script *s = leading_with(&(struct manager_config){.era_period = 0}, 5);
    enqueue_row(s, (struct manager_outbox_row){.deadline_block = 180});
    s->era = 64;
    admitted(s);
    accept(s, 5);
    while (s->best < 166) {
        best(s);
        status(s, 5, TX_READY, NULL);
    }
    while (s->finalized < 164) /* the old era is over */
        finalized(s, 5, 0, NULL);
    assert_int_equal(expect(s, MANAGER_FX_RESIGN)->sign.rows[0].era_period, 16);
    script_free(s);

    s = leading_with(&(struct manager_config){.era_period = 0}, 5);
    enqueue_row(s, (struct manager_outbox_row){.deadline_block = 180});
    s->era = 8;
    admitted(s);
    accept(s, 5);
    while (s->best < 172) {
        best(s);
        status(s, 5, TX_READY, NULL);
    }
    while (s->finalized < 108)
        finalized(s, 5, 0, NULL);
    none(s, MANAGER_FX_RESIGN);
    for (; s->best < 177; best(s)) {
        none(s, MANAGER_FX_RESIGN);
        none(s, MANAGER_FX_FILL);
    }
    best(s);
    none(s, MANAGER_FX_FILL); /* a best block so far above the final one may be invented */
    while (s->finalized < 114)
        finalized(s, 5, 0, NULL);
    assert_string_equal(expect(s, MANAGER_FX_FILL)->sign.rows[0].outcome, "expired");
    script_free(s);
}

/* A best block decides it too: while finality stalls, new bytes for the call would only die
 * unincluded, and the filler is what frees the account. */
static void late_at_the_best_block(void **state)
{
    (void)state;
    struct script *s = leading_with(&(struct manager_config){.era_period = 0}, 5);
    enqueue_row(s, (struct manager_outbox_row){.deadline_block = 120});
    s->era = 8;
    admitted(s);
    accept(s, 5);
    while (s->best < 115) {
        best(s);
        status(s, 5, TX_READY, NULL);
    }
    while (s->finalized < 108) /* the old era is over, and finality lags too far for another one */
        finalized(s, 5, 0, NULL);
    for (; s->best < 117; best(s)) {
        none(s, MANAGER_FX_RESIGN);
        none(s, MANAGER_FX_FILL);
    }
    best(s);
    none(s, MANAGER_FX_RESIGN);
    assert_string_equal(expect(s, MANAGER_FX_FILL)->sign.rows[0].outcome, "expired");
    script_free(s);
}

/* ---- retries ---- */

static void retried(void **state)
{
    (void)state;
    struct script *s = leading(5);
    enqueue_row(s, (struct manager_outbox_row){.retries = 2});
    admitted(s);
    accept(s, 5);
    finalized(s, 6, 1,
              &(struct in_block){current(s, 5), 5, true, DISPATCH_FAILED,
                                 "Balances.InsufficientBalance"});
    none(s, MANAGER_FX_STORE_FINISH);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_REQUEUE);
    assert_string_equal(fx->ends.rows[0].outcome, "dispatch_error");
    assert_string_equal(fx->ends.rows[0].error, "Balances.InsufficientBalance");
    assert_true(fx->ends.rows[0].has_block);
    assert_true(fx->ends.rows[0].fee == 12345);
    stored(s, MANAGER_FX_STORE_REQUEUE);
    assert_int_equal(manager_view_of(s->m).open, 0);
    script_free(s);
}

/* What an inner failure left behind would happen twice. */
static void inner_failure_is_not_retried(void **state)
{
    (void)state;
    struct script *s = leading(5);
    enqueue_row(s, (struct manager_outbox_row){.retries = 2});
    admitted(s);
    accept(s, 5);
    s->inner = true;
    finalized(s, 6, 1,
              &(struct in_block){current(s, 5), 5, true, DISPATCH_FAILED,
                                 "Utility.BatchInterrupted[2]: X"});
    none(s, MANAGER_FX_STORE_REQUEUE);
    assert_string_equal(ended(s)->outcome, "dispatch_error");
    script_free(s);
}

static void not_retried_by_default(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    finalized(s, 6, 1, &(struct in_block){current(s, 5), 5, true, DISPATCH_FAILED, "X"});
    none(s, MANAGER_FX_STORE_REQUEUE);
    assert_string_equal(ended(s)->outcome, "dispatch_error");
    script_free(s);
}

/* ---- a usurped nonce ---- */

static void usurped_goes_back(void **state)
{
    (void)state;
    struct script *s = with_policy((struct manager_account){.requeue_usurped = true}, 5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    finalized(s, 6, 1, &(struct in_block){hash_of(77, 1), 5, true, DISPATCH_OK, NULL});
    none(s, MANAGER_FX_STORE_FINISH);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_REQUEUE);
    assert_string_equal(fx->ends.rows[0].outcome, "usurped");
    assert_false(fx->ends.rows[0].has_block);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_tip),
        cmocka_unit_test(ladder),
        cmocka_unit_test(no_ladder),
        cmocka_unit_test(foreign_outbid),
        cmocka_unit_test(tip_is_kept),
        cmocka_unit_test(bumped_in_the_pool),
        cmocka_unit_test(dropped_before_the_bump_is_signed),
        cmocka_unit_test(bumped_on_the_wire),
        cmocka_unit_test(bumped_beyond_the_cap),
        cmocka_unit_test(bumped_in_a_block),
        cmocka_unit_test(stopped_before_it_is_signed),
        cmocka_unit_test(race_won),
        cmocka_unit_test(race_lost),
        cmocka_unit_test(race_goes_on),
        cmocka_unit_test(race_without_a_winner),
        cmocka_unit_test(race_at_an_unread_block),
        cmocka_unit_test(race_won_too_late),
        cmocka_unit_test(race_for_a_lost_one),
        cmocka_unit_test(race_after_a_load),
        cmocka_unit_test(cancelled_and_usurped),
        cmocka_unit_test(race_against_immortal_bytes),
        cmocka_unit_test(skipped),
        cmocka_unit_test(skip_counts_blocks),
        cmocka_unit_test(not_skipped),
        cmocka_unit_test(era_ends_by_the_deadline),
        cmocka_unit_test(too_late_to_be_signed),
        cmocka_unit_test(deadline_passes),
        cmocka_unit_test(waits_for_finality),
        cmocka_unit_test(new_bytes_wait_for_finality),
        cmocka_unit_test(late_at_the_best_block),
        cmocka_unit_test(lag_is_not_late),
        cmocka_unit_test(retried),
        cmocka_unit_test(inner_failure_is_not_retried),
        cmocka_unit_test(not_retried_by_default),
        cmocka_unit_test(usurped_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
