/* What was signed elsewhere: its nonce is given, its bytes are never made again, and it ends by
 * finalized blocks alone. */
#include "manager_harness.h"

enum { DEATH = 164 }; /* of an era that began with the block that is final when a script begins */

static const struct manager_config keyless = {.keyless = true};
static const struct manager_config keyed = {0};

struct one {
    int64_t id;
    uint64_t nonce;
    int64_t death; /* -1: immortal */
    const char *bad, *waits;
    uint64_t wait_block;
    bool waited;
};

static void looked(struct script *s)
{
    feed(s,
         (struct manager_event){.type = MANAGER_EV_REQUESTS, .requests = {.account = &s->account}});
}

static struct script *begin(const struct manager_config *config, uint64_t next)
{
    struct script *s = leading_with(config, next);
    looked(s);
    return s;
}

static void signed_bytes(uint64_t nonce, uint8_t out[BYTES_LEN])
{
    unsigned attempt = 1;
    memset(out, 0xee, BYTES_LEN);
    memcpy(out, &nonce, 8);
    memcpy(out + 8, &attempt, sizeof(attempt));
    memset(out + BYTES_LEN - CALL_LEN, (int)nonce, CALL_LEN);
}

/* The outbox's answer: so many of these, behind them so many calls; a nonce that a row waits
 * for. */
static void outbox_presigned(struct script *s, const struct one *x, unsigned count, unsigned calls,
                             int64_t reserved)
{
    struct manager_outbox_row rows[8] = {0};
    struct manager_presigned presigned[8] = {0};
    uint8_t bytes[8][BYTES_LEN];
    static const uint8_t call[CALL_LEN] = {1};
    for (unsigned i = 0; i < count; i++) {
        presigned[i] =
            (struct manager_presigned){.nonce = x[i].nonce,
                                       .call_len = CALL_LEN,
                                       .era_birth = x[i].death < 0 ? -1 : x[i].death - 64,
                                       .era_death = x[i].death,
                                       .spec_version = s->spec,
                                       .waited = x[i].waited,
                                       .waits = x[i].waits,
                                       .wait_block = x[i].wait_block};
        memcpy(presigned[i].hash, hash_of(x[i].nonce, 1), 32);
        signed_bytes(x[i].nonce, bytes[i]);
        rows[i] = (struct manager_outbox_row){.id = x[i].id,
                                              .call = bytes[i],
                                              .call_len = BYTES_LEN,
                                              .presigned = &presigned[i],
                                              .tip = 3,
                                              .bad = x[i].bad};
    }
    for (unsigned i = 0; i < calls; i++)
        rows[count + i] =
            (struct manager_outbox_row){.id = 100 + (int64_t)i, .call = call, .call_len = CALL_LEN};
    feed(s, (struct manager_event){.type = MANAGER_EV_OUTBOX,
                                   .outbox = {.rows = rows,
                                              .count = count + calls,
                                              .has_reserved = reserved >= 0,
                                              .reserved = (uint64_t)reserved}});
}

/* The admission is stored as it was asked for. */
static void signed_admitted(struct script *s)
{
    const struct manager_effect *fx = expect(s, MANAGER_FX_ADMIT);
    struct tx_attempt rows[8] = {0};
    uint8_t bytes[8][BYTES_LEN];
    size_t count = fx->sign.count;
    assert_true(fx->sign.presigned);
    for (size_t i = 0; i < count; i++) {
        const struct manager_sign_row *x = &fx->sign.rows[i];
        signed_bytes(x->nonce, bytes[i]);
        assert_int_equal(x->bytes_len, BYTES_LEN);
        assert_int_equal(x->call_len, CALL_LEN);
        s->attempts[x->nonce] = 1;
        rows[i] = (struct tx_attempt){.nonce = x->nonce,
                                      .id = x->id,
                                      .bytes = bytes[i],
                                      .bytes_len = BYTES_LEN,
                                      .call_len = CALL_LEN,
                                      .era_death = x->era_death,
                                      .spec_version = x->spec_version,
                                      .tip = x->tip};
        memcpy(rows[i].hash, x->hash, 32);
    }
    feed(s, (struct manager_event){
                .type = MANAGER_EV_STORED,
                .stored = {.write = MANAGER_FX_ADMIT, .attempts = {.rows = rows, .count = count}}});
}

/* Leading, with one of them on the wire at nonce 5 (id 1). */
static struct script *one_sent(const struct manager_config *config, int64_t death)
{
    struct script *s = begin(config, 5);
    outbox_presigned(s, &(struct one){1, 5, death, NULL, NULL, 0, false}, 1, 0, -1);
    signed_admitted(s);
    expect_submit(s, 5);
    return s;
}

static const struct tx_end *only_end(struct script *s, enum manager_effect_type type)
{
    const struct manager_effect *fx = expect(s, type);
    assert_int_equal(fx->ends.count, 1);
    return &fx->ends.rows[0];
}

static const struct tx_note *only_note(struct script *s)
{
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_NOTE);
    assert_int_equal(fx->notes.count, 1);
    return &fx->notes.rows[0];
}

static const struct manager_sign_row *only_sign(struct script *s, enum manager_effect_type type)
{
    const struct manager_effect *fx = expect(s, type);
    assert_int_equal(fx->sign.count, 1);
    return &fx->sign.rows[0];
}

static void says(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" does not say \"%s\"", text, words);
}

/* Finalized blocks without it up to this height; nothing is ever signed for it. */
static void blocks_to(struct script *s, uint64_t height, uint64_t nonce)
{
    while (s->finalized < height) {
        finalized(s, nonce, 0, NULL);
        none(s, MANAGER_FX_FILL);
        none(s, MANAGER_FX_RESIGN);
    }
}

/* Given nonces, in the order of the nonces; sent as they are, and ended by their block. */
static void admitted_at_their_nonces(void **state)
{
    (void)state;
    struct script *s = begin(&keyless, 5);
    const struct one x[] = {{1, 6, DEATH, NULL, NULL, 0, false}, {2, 5, -1, NULL, NULL, 0, false}};
    outbox_presigned(s, x, 2, 0, -1);
    const struct manager_effect *fx = expect(s, MANAGER_FX_ADMIT);
    assert_int_equal(fx->sign.rows[0].nonce, 5);
    assert_int_equal(fx->sign.rows[0].id, 2);
    assert_int_equal(fx->sign.rows[0].from_block, s->finalized);
    assert_int_equal(fx->sign.rows[1].nonce, 6);
    assert_int_equal((int)fx->sign.rows[1].tip, 3);
    s->taken[fx - s->fx] = false;
    signed_admitted(s);
    expect_submit(s, 5);
    expect_submit(s, 6);
    assert_int_equal(manager_view_of(s->m).next_nonce, 7);
    accept(s, 5);
    finalized_ours(s, 5);
    const struct tx_end *end = only_end(s, MANAGER_FX_STORE_FINISH);
    assert_string_equal(end->outcome, "ok");
    assert_int_equal(end->id, 2);
    script_free(s);
}

/* Above the next nonce it waits, and says so once; calls of the account stay below it. */
static void waits_above_a_hole(void **state)
{
    (void)state;
    struct script *s = begin(&keyed, 5);
    outbox_presigned(s, &(struct one){1, 7, DEATH, NULL, NULL, 0, false}, 1, 4, -1);
    const struct tx_note *note = only_note(s);
    assert_int_equal(note->nonce, 7);
    assert_int_equal(note->era_death, DEATH);
    assert_int_equal(note->wait_block, 0);
    says(note->text, "what is missing below it is not filled");
    expect_alert(s, "the account's next was 5");
    const struct manager_effect *fx = expect(s, MANAGER_FX_ADMIT);
    assert_false(fx->sign.presigned);
    assert_int_equal(fx->sign.count, 2); /* 5 and 6, of four */
    s->taken[fx - s->fx] = false;
    admitted(s);
    none(s, MANAGER_FX_WANT_OUTBOX); /* not before the note is stored */
    stored(s, MANAGER_FX_STORE_NOTE);
    expect(s, MANAGER_FX_WANT_OUTBOX);
    outbox_presigned(s, NULL, 0, 2, 7); /* its turn has come, and it was not brought along */
    none(s, MANAGER_FX_ADMIT);
    outbox_presigned(s, &(struct one){1, 7, DEATH, NULL, NULL, 0, false}, 1, 2, 7);
    signed_admitted(s);
    expect_submit(s, 7);
    script_free(s);
}

/* What the door found bad ends with its reason; what it cannot judge yet is noted. */
static void as_the_door_says(void **state)
{
    (void)state;
    struct script *s = begin(&keyless, 5);
    const struct one x[] = {{1, 5, DEATH, "bad signature", NULL, 0, true},
                            {2, 5, DEATH, NULL, "its era begins later", 120, false},
                            {3, UINT64_MAX, -1, "does not decode", NULL, 0, false}};
    outbox_presigned(s, x, 3, 0, -1);
    const struct tx_end *end = only_end(s, MANAGER_FX_STORE_REJECT);
    assert_string_equal(end->outcome, "failed");
    says(end->error, "bad signature");
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_NOTE);
    assert_int_equal(fx->notes.count, 2);
    assert_int_equal(fx->notes.rows[0].id, 2);
    assert_int_equal(fx->notes.rows[0].wait_block, 120);
    assert_int_equal(fx->notes.rows[1].id, 3);
    assert_int_equal(fx->notes.rows[1].wait_block,
                     s->best); /* it may be in a block that was made under another runtime */
    none(s, MANAGER_FX_ADMIT);
    script_free(s);
}

/* Its era: over, so near its end that it would not be sent any more, or open. */
static void eras_in_the_outbox(void **state)
{
    (void)state;
    struct script *s = begin(&keyless, 5);
    outbox_presigned(s, &(struct one){1, 9, 100, NULL, NULL, 0, false}, 1, 0, -1);
    assert_string_equal(only_end(s, MANAGER_FX_STORE_REJECT)->outcome, "expired");
    stored(s, MANAGER_FX_STORE_REJECT);
    outbox_presigned(s, &(struct one){2, 5, 103, NULL, NULL, 0, false}, 1, 0, -1);
    assert_int_equal(only_note(s)->wait_block, 103);
    stored(s, MANAGER_FX_STORE_NOTE);
    outbox_presigned(s, &(struct one){3, 5, 104, NULL, NULL, 0, false}, 1, 0, -1);
    signed_admitted(s);
    script_free(s);
}

/* A best block that a node invented ends no era: the row would wait for that, and expire. */
static void era_at_an_invented_block(void **state)
{
    (void)state;
    struct script *s = begin(&keyless, 5);
    s->best = UINT64_C(1) << 60;
    best(s);
    outbox_presigned(s, &(struct one){1, 5, DEATH, NULL, NULL, 0, false}, 1, 0, -1);
    none(s, MANAGER_FX_STORE_NOTE);
    signed_admitted(s);
    script_free(s);
}

/* A pending transaction has its nonce: it ends. A filler has it, or one that has ended: finalized
 * blocks tell. */
static void taken(void **state)
{
    (void)state;
    struct script *s = begin(&keyed, 5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    outbox_presigned(s, &(struct one){9, 5, DEATH, NULL, NULL, 0, false}, 1, 0, -1);
    const struct tx_end *end = only_end(s, MANAGER_FX_STORE_REJECT);
    assert_string_equal(end->outcome, "failed");
    says(end->error, "taken by transaction 1");
    stored(s, MANAGER_FX_STORE_REJECT);
    finalized_ours(s, 5);
    outbox_presigned(s, &(struct one){9, 5, DEATH, NULL, NULL, 0, false}, 1, 0, -1);
    const struct tx_note *note = only_note(s);
    assert_int_equal(note->wait_block, s->finalized + 1);
    script_free(s);
}

/* Two with one nonce: the first one has it, the other is looked at again. */
static void two_with_one_nonce(void **state)
{
    (void)state;
    struct script *s = begin(&keyless, 5);
    const struct one x[] = {{2, 5, DEATH, NULL, NULL, 0, false}, {1, 5, -1, NULL, NULL, 0, false}};
    outbox_presigned(s, x, 2, 0, -1);
    none(s, MANAGER_FX_STORE_REJECT);
    none(s, MANAGER_FX_STORE_NOTE);
    const struct manager_effect *fx = expect(s, MANAGER_FX_ADMIT);
    assert_int_equal(fx->sign.count, 1);
    assert_int_equal(fx->sign.rows[0].id, 1);
    script_free(s);
}

/* The chain has used its nonce: it is admitted all the same, and the blocks since its era began are
 * read again. */
static struct script *late(int64_t death)
{
    struct script *s = begin(&keyless, 9);
    finalized(s, 9, 0, NULL);
    outbox_presigned(s, &(struct one){1, 7, death, NULL, NULL, 0, false}, 1, 0, -1);
    const struct manager_effect *fx = expect(s, MANAGER_FX_ADMIT);
    assert_int_equal(fx->sign.rows[0].from_block, death < 0 ? 0 : death - 64);
    s->taken[fx - s->fx] = false;
    signed_admitted(s);
    none(s, MANAGER_FX_SUBMIT);
    assert_int_equal(manager_view_of(s->m).next_nonce, 9);
    return s;
}

static void used_by_its_own_bytes(void **state)
{
    (void)state;
    struct script *s = late(160);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 96);
    finalized_at(s, 96, 7, 0, NULL);
    finalized_at(s, 97, 8, 1, &(struct in_block){hash_of(7, 1), 7, true, DISPATCH_OK, NULL});
    const struct tx_end *end = only_end(s, MANAGER_FX_STORE_FINISH);
    assert_string_equal(end->outcome, "ok");
    assert_int_equal(end->block_number, 97);
    script_free(s);
}

static void used_by_other_bytes(void **state)
{
    (void)state;
    for (int requeue = 0; requeue < 2; requeue++) {
        struct script *s = late(-1);
        s->account.requeue_usurped = requeue;
        looked(s);
        finalized_at(s, 1, 7, 0, NULL);
        finalized_at(s, 2, 8, 1, &(struct in_block){hash_of(7, 9), 7, true, DISPATCH_OK, NULL});
        expect_alert(s, "not by what was signed for it elsewhere");
        finals(s, 3, 9);
        const struct tx_end *end = only_end(s, MANAGER_FX_STORE_FINISH);
        assert_string_equal(end->outcome, "usurped");
        says(end->error, "nonce 7 was used in block 2");
        none(s, MANAGER_FX_STORE_REQUEUE); /* whatever the policy: its nonce is signed with it */
        script_free(s);
    }
}

/* It does not fit the chain as it is now, and its nonce is used: by itself, before that changed? */
static void bad_and_used(void **state)
{
    (void)state;
    struct script *s = begin(&keyless, 9);
    finalized(s, 9, 0, NULL);
    outbox_presigned(s, &(struct one){1, 7, -1, "bad signature", NULL, 0, false}, 1, 0, -1);
    none(s, MANAGER_FX_STORE_REJECT);
    signed_admitted(s);
    none(s, MANAGER_FX_SUBMIT);
    finals(s, 1, 9);
    script_free(s);
}

/* Seed 6437: another program submitted the bytes, and they are in a final block that does not
 * decode. Nothing is said of them before the account's nonce is known behind that block, and then
 * the block is read once more, for their hash. */
static void bad_and_maybe_used(void **state)
{
    (void)state;
    struct script *s = begin(&keyless, 7);
    struct one bad = {1, 7, -1, "bad signature", NULL, 0, true};
    finalized(s, UINT64_MAX, 0, NULL);
    outbox_presigned(s, &bad, 1, 0, -1);
    none(s, MANAGER_FX_STORE_REJECT);
    const struct tx_note *note = only_note(s);
    says(note->text, "bad signature");
    assert_int_equal(note->wait_block, s->finalized + 1);
    stored(s, MANAGER_FX_STORE_NOTE);
    finalized(s, 8, 0, NULL);
    stored(s, MANAGER_FX_STORE_NONCE);
    outbox_presigned(s, &bad, 1, 0, -1);
    none(s, MANAGER_FX_STORE_REJECT);
    signed_admitted(s);
    none(s, MANAGER_FX_SUBMIT);
    uint64_t last = s->finalized;
    for (uint64_t number = 1; number < last - 1; number++)
        finalized_at(s, number, 7, 0, NULL);
    finalized_at(s, last - 1, UINT64_MAX, 1,
                 &(struct in_block){.hash = current(s, 7), .outcome = DISPATCH_OK});
    assert_string_equal(only_end(s, MANAGER_FX_STORE_FINISH)->outcome, "ok");
    script_free(s);
}

/* Seed 4070005566 (lossy): its nonce is the next one, and the last final blocks told no nonce: one
 * of them may hold it, so they are read once more when the nonce turns out to be used. */
static void admitted_and_maybe_used(void **state)
{
    (void)state;
    struct script *s = begin(&keyless, 5);
    finalized(s, 5, 0, NULL);
    uint64_t known = s->finalized;
    finalized(s, UINT64_MAX, 0, NULL);
    finalized(s, UINT64_MAX, 0, NULL);
    outbox_presigned(s, &(struct one){1, 5, DEATH, NULL, NULL, 0, false}, 1, 0, -1);
    assert_int_equal(expect(s, MANAGER_FX_ADMIT)->sign.rows[0].from_block, known);
    script_free(s);
}

/* The same of one whose era has ended. */
static void expired_and_maybe_used(void **state)
{
    (void)state;
    struct script *s = begin(&keyless, 7);
    while (s->finalized < DEATH)
        finalized(s, s->finalized + 1 < DEATH ? 7 : UINT64_MAX, 0, NULL);
    outbox_presigned(s, &(struct one){1, 7, DEATH, NULL, NULL, 0, false}, 1, 0, -1);
    none(s, MANAGER_FX_STORE_REJECT);
    none(s, MANAGER_FX_ADMIT);
    assert_int_equal(only_note(s)->wait_block, DEATH + 1);
    stored(s, MANAGER_FX_STORE_NOTE);
    finalized(s, 7, 0, NULL);
    outbox_presigned(s, &(struct one){1, 7, DEATH, NULL, NULL, 0, true}, 1, 0, -1);
    assert_string_equal(only_end(s, MANAGER_FX_STORE_REJECT)->outcome, "expired");
    script_free(s);
}

/* And of one that is pending: a block that no endpoint has may hold it. */
static void era_over_and_maybe_used(void **state)
{
    (void)state;
    struct script *s = one_sent(&keyless, DEATH);
    accept(s, 5);
    while (s->finalized + 1 < DEATH)
        finalized(s, 5, 0, NULL);
    unread_at(s, ++s->finalized);
    none(s, MANAGER_FX_STORE_FINISH);
    finalized(s, 5, 0, NULL);
    assert_string_equal(only_end(s, MANAGER_FX_STORE_FINISH)->outcome, "expired");
    script_free(s);
}

static void used_long_ago(void **state)
{
    (void)state;
    struct script *s = begin(&keyless, 10000);
    outbox_presigned(s, &(struct one){1, 7, DEATH, NULL, NULL, 0, false}, 1, 0, -1);
    const struct tx_end *end = only_end(s, MANAGER_FX_STORE_REJECT);
    assert_string_equal(end->outcome, "usurped");
    says(end->error, "used long ago");
    none(s, MANAGER_FX_ADMIT);
    script_free(s);
}

/* Dropped, evicted, its watch lost, banned: the same bytes again, at a pace; nothing else. */
static void the_same_bytes_again(void **state)
{
    (void)state;
    struct script *s = one_sent(&keyed, DEATH);
    accept(s, 5);
    status(s, 5, TX_DROPPED, NULL);
    probe(s, 5, 0);
    none(s, MANAGER_FX_SUBMIT); /* it was sent in this block */
    stored(s, MANAGER_FX_STORE_STATES);
    best(s);
    probe(s, 5, 0);
    expect_submit(s, 5);
    refuse(s, 5, 1012, "Transaction is temporarily banned");
    unsigned sent = 0, beats = 0;
    while (beats++ < 40) {
        best(s);
        none(s, MANAGER_FX_RESIGN);
        none(s, MANAGER_FX_FILL);
        if (count_of(s, MANAGER_FX_SUBMIT)) {
            expect_submit(s, 5);
            refuse(s, 5, 1012, "Transaction is temporarily banned");
            sent++;
        } else if (count_of(s, MANAGER_FX_ASK_POOL)) {
            probe(s, 5, 0);
        }
    }
    assert_in_range(sent, 3, 12);
    script_free(s);
}

/* Refused as bad or invalid: it is tried at a pace, since only a final block ends it. */
static void refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"Invalid Transaction: Transaction has a bad signature",
                                        "Invalid Transaction: Custom error: 7"};
    for (unsigned i = 0; i < 2; i++) {
        struct script *s = one_sent(&keyed, DEATH);
        unsigned refusals = 0;
        refuse(s, 5, 1010, texts[i]);
        while (s->finalized < DEATH) {
            best(s);
            if (count_of(s, MANAGER_FX_SUBMIT)) {
                expect_submit(s, 5);
                refuse(s, 5, 1010, texts[i]);
                refusals++;
            }
            none(s, MANAGER_FX_RESIGN);
            none(s, MANAGER_FX_FILL);
            none(s, MANAGER_FX_STORE_FINISH);
            finalized(s, 5, 0, NULL);
            if (s->best < s->finalized + 2)
                s->best = s->finalized + 2;
        }
        assert_in_range(refusals, 5, 20);
        const struct tx_end *end = only_end(s, MANAGER_FX_STORE_FINISH);
        assert_string_equal(end->outcome, "expired");
        says(end->error, "the last refusal: Invalid Transaction");
        script_free(s);
    }
}

/* Its era is over and no block used its nonce: it ends and the nonce is the next one again. */
static void era_over(void **state)
{
    (void)state;
    struct script *s = one_sent(&keyless, DEATH);
    accept(s, 5);
    blocks_to(s, DEATH - 1, 5);
    none(s, MANAGER_FX_STORE_FINISH);
    finalized(s, 5, 0, NULL);
    const struct tx_end *end = only_end(s, MANAGER_FX_STORE_FINISH);
    assert_string_equal(end->outcome, "expired");
    assert_false(end->has_block);
    assert_int_equal(end->used_block, 0);
    says(end->error, "its era ended before block 164");
    stored(s, MANAGER_FX_STORE_FINISH);
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_NONCE);
    assert_int_equal(fx->next.nonce, 5);
    assert_true(fx->next.lower);
    stored(s, MANAGER_FX_STORE_NONCE);
    outbox_presigned(s, &(struct one){2, 5, 230, NULL, NULL, 0, false}, 1, 0, -1);
    signed_admitted(s);
    script_free(s);
}

/* Nor while the account is suspended because it was reaped: whether a nonce is used cannot be said
 * then. */
static void era_over_of_a_reaped_account(void **state)
{
    (void)state;
    struct script *s = one_sent(&keyless, DEATH);
    accept(s, 5);
    finalized(s, 5, 0, NULL);
    blocks_to(s, DEATH, 0);
    none(s, MANAGER_FX_STORE_FINISH);
    none(s, MANAGER_FX_SUBMIT);
    assert_int_equal(manager_view_of(s->m).unsent, 1);
    script_free(s);
}

/* Not while the nonce of the chain says that it was used: which bytes did that is found first. */
static void era_over_and_nonce_used(void **state)
{
    (void)state;
    struct script *s = one_sent(&keyless, DEATH);
    accept(s, 5);
    blocks_to(s, DEATH - 1, 5);
    finalized(s, 6, 0, NULL);
    none(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(expect(s, MANAGER_FX_FOLLOW)->number, 100);
    script_free(s);
}

/* The account has no key and another one waits above: the nonce is a hole, told and not filled,
 * until bytes come. */
static void hole_without_a_key(void **state)
{
    (void)state;
    struct script *s = begin(&keyless, 5);
    const struct one x[] = {{1, 5, DEATH, NULL, NULL, 0, false}, {2, 6, -1, NULL, NULL, 0, false}};
    outbox_presigned(s, x, 2, 0, -1);
    signed_admitted(s);
    accept(s, 5);
    accept(s, 6);
    blocks_to(s, DEATH, 5);
    only_end(s, MANAGER_FX_STORE_FINISH);
    stored(s, MANAGER_FX_STORE_FINISH);
    none(s, MANAGER_FX_STORE_NONCE);
    probe(s, 5, 1, hash_of(6, 1));
    for (unsigned i = 0; i < 11; i++) {
        best(s);
        none(s, MANAGER_FX_FILL);
        if (count_of(s, MANAGER_FX_ASK_POOL))
            probe(s, 5, 1, hash_of(6, 1));
    }
    expect_alert(s, "nonce 5 is missing");
    s->attempts[5] = 0;
    outbox_presigned(s, &(struct one){3, 5, 300, NULL, NULL, 0, false}, 1, 0, -1);
    signed_admitted(s);
    expect_submit(s, 5);
    assert_int_equal(manager_view_of(s->m).next_nonce, 7);
    script_free(s);
}

/* With a key the relay fills such a hole once rows of its own wait above it, and not before. */
static void hole_with_a_key(void **state)
{
    (void)state;
    struct script *s = begin(&keyed, 5);
    const struct one x[] = {{1, 5, DEATH, NULL, NULL, 0, false}, {2, 6, -1, NULL, NULL, 0, false}};
    outbox_presigned(s, x, 2, 0, -1);
    signed_admitted(s);
    accept(s, 5);
    accept(s, 6);
    blocks_to(s, DEATH, 5);
    stored(s, MANAGER_FX_STORE_FINISH);
    probe(s, 5, 1, hash_of(6, 1));
    best(s);
    none(s, MANAGER_FX_FILL);
    outbox(s, 1);
    admitted(s);
    assert_int_equal(only_sign(s, MANAGER_FX_FILL)->nonce, 5);
    script_free(s);
}

/* The runtime changed: what is immortal ends with a final block of the new one. That nodes are
 * under it proves nothing of the final blocks that are not read yet, however many there are. */
static void runtime_changed(void **state)
{
    (void)state;
    struct script *s = one_sent(&keyless, -1);
    accept(s, 5);
    assert_false(manager_wants_runtime(s->m));
    s->block_spec = SPEC;
    runtime(s, SPEC + 1);
    assert_true(manager_wants_runtime(s->m));
    probe(s, 5, 0);
    blocks_to(s, 102 + 200, 5);
    none(s, MANAGER_FX_STORE_FINISH);
    s->block_spec = 0; /* no endpoint tells it */
    finalized(s, 5, 0, NULL);
    none(s, MANAGER_FX_STORE_FINISH);
    s->block_spec = SPEC + 1;
    finalized(s, 5, 0, NULL);
    const struct tx_end *end = only_end(s, MANAGER_FX_STORE_FINISH);
    assert_string_equal(end->outcome, "failed");
    says(end->error, "for runtime spec version 900 and the chain has 901");
    script_free(s);
}

/* Seed 955: a node that begins anew describes the runtime of block 0. That is none that came after
 * the one that the bytes are signed for, however far the node jumps then. */
static void lower_runtime_is_no_change(void **state)
{
    (void)state;
    struct script *s = one_sent(&keyless, -1);
    accept(s, 5);
    runtime(s, SPEC - 1);
    s->block_spec = SPEC - 1;
    probe(s, 5, 0);
    blocks_to(s, 102 + 63, 5);
    finalized(s, 5, 0, NULL);
    none(s, MANAGER_FX_STORE_FINISH);
    script_free(s);
}

/* A block that no endpoint has may hold the bytes, although a later block is under a new runtime.
 * The account's nonce at that later block tells. */
static void runtime_changed_behind_an_unread_block(void **state)
{
    (void)state;
    struct script *s = one_sent(&keyless, -1);
    accept(s, 5);
    runtime(s, SPEC + 1);
    probe(s, 5, 0);
    s->block_spec = SPEC + 1;
    unread_at(s, ++s->finalized);
    finalized_at(s, ++s->finalized, UINT64_MAX, 0, NULL);
    none(s, MANAGER_FX_STORE_FINISH);
    finalized(s, 5, 0, NULL);
    assert_string_equal(only_end(s, MANAGER_FX_STORE_FINISH)->outcome, "failed");
    script_free(s);
}

/* A leader that hears of another runtime before it hears of the chain's height does not know since
 * when that is in force. Seed 100013334: it was taken for long ago. */
static void runtime_changed_before_the_chain_was_up(void **state)
{
    (void)state;
    struct script *s = script_new(&keyless);
    struct tx_pending row = loaded_row(s, 5, "broadcast");
    row.presigned = true;
    row.era_death = -1;
    load(s, &row, 1, 6);
    looked(s);
    s->spec = SPEC + 1;
    runtime(s, SPEC + 1);
    chain_up(s);
    finals(s, 97, 5);
    probe(s, 5, 0);
    uint64_t up = s->best;
    for (unsigned i = 0; i < 10 && !count_of(s, MANAGER_FX_SUBMIT); i++)
        best(s);
    expect_submit(s, 5);
    accept(s, 5);
    s->block_spec = SPEC;
    blocks_to(s, up + 63, 5);
    none(s, MANAGER_FX_STORE_FINISH);
    s->block_spec = SPEC + 1;
    finalized(s, 5, 0, NULL);
    assert_string_equal(only_end(s, MANAGER_FX_STORE_FINISH)->outcome, "failed");
    script_free(s);
}

/* A bump, the ladder, the policy of giving up and another's bytes in the pool: none of them is for
 * it. */
static void never_outbid(void **state)
{
    (void)state;
    struct script *s = script_new(&keyed);
    s->account = (struct manager_account){.tip_cap = 1000,
                                          .tip_start = 1,
                                          .tip_step = 5,
                                          .tip_after_blocks = 2,
                                          .skip_after_blocks = 4};
    load(s, NULL, 0, 5);
    looked(s);
    chain_up(s);
    probe(s, 5, 0);
    finalized_at(s, s->finalized, 5, 0, NULL);
    outbox_presigned(s, &(struct one){1, 5, DEATH, NULL, NULL, 0, false}, 1, 0, -1);
    signed_admitted(s);
    accept(s, 5);
    struct tx_stop bump = {.nonce = 5, .id = 1, .tip = 50};
    feed(s,
         (struct manager_event){.type = MANAGER_EV_REQUESTS,
                                .requests = {.stops = &bump, .count = 1, .account = &s->account}});
    for (unsigned i = 0; i < 12; i++) {
        none(s, MANAGER_FX_RESIGN);
        none(s, MANAGER_FX_FILL);
        best(s);
        if (count_of(s, MANAGER_FX_ASK_POOL))
            probe(s, 5, 1, hash_of(5, 1));
    }
    status(s, 5, TX_DROPPED, NULL);
    probe(s, 5, 0);
    expect_submit(s, 5);
    refuse(s, 5, 1014, "Priority is too low");
    none(s, MANAGER_FX_RESIGN);
    script_free(s);
}

/* Cancelled: with a key a filler with a higher tip races it; without one nothing can be done. */
static void cancelled(void **state)
{
    (void)state;
    for (int with_key = 0; with_key < 2; with_key++) {
        struct script *s = one_sent(with_key ? &keyed : &keyless, DEATH);
        accept(s, 5);
        struct tx_stop stop = {.nonce = 5, .id = 1, .outcome = "cancelled", .reason = "by app"};
        struct manager_account account = {.tip_cap = MANAGER_NO_CAP};
        feed(s,
             (struct manager_event){.type = MANAGER_EV_REQUESTS,
                                    .requests = {.stops = &stop, .count = 1, .account = &account}});
        none(s, MANAGER_FX_FILL);
        if (!with_key) {
            none(s, MANAGER_FX_RESIGN);
            script_free(s);
            continue;
        }
        const struct manager_sign_row *x = only_sign(s, MANAGER_FX_RESIGN);
        assert_true(x->filler);
        assert_int_equal((int)x->tip, 4);
        script_free(s);
    }
}

/* A new leader knows what it must not sign again. */
static void after_a_load(void **state)
{
    (void)state;
    struct script *s = script_new(&keyed);
    struct tx_pending row = loaded_row(s, 5, "broadcast");
    row.presigned = true;
    row.era_death = 110;
    load(s, &row, 1, 6);
    looked(s);
    s->finalized = 106;
    s->best = 107;
    chain_up(s);
    finals(s, 97, 5);
    probe(s, 5, 0);
    expect_submit(s, 5);
    refuse(s, 5, 1010, "Invalid Transaction: Transaction has a bad signature");
    while (s->finalized < 110) {
        best(s);
        if (count_of(s, MANAGER_FX_SUBMIT))
            refuse(s, 5, 1010, "Invalid Transaction: Transaction has a bad signature");
        none(s, MANAGER_FX_RESIGN);
        none(s, MANAGER_FX_FILL);
        finalized(s, 5, 0, NULL);
    }
    assert_string_equal(only_end(s, MANAGER_FX_STORE_FINISH)->outcome, "expired");
    script_free(s);
}

/* A block found other bytes with the same call at its nonce: nobody here signed those. */
static void same_call_by_others(void **state)
{
    (void)state;
    struct script *s = one_sent(&keyed, DEATH);
    accept(s, 5);
    uint8_t bytes[BYTES_LEN];
    signed_bytes(5, bytes);
    struct tx_included x = {.nonce = 5,
                            .own_signer = true,
                            .signature = TX_SIGNATURE_GOOD,
                            .bytes = bytes,
                            .bytes_len = BYTES_LEN,
                            .call_len = CALL_LEN};
    memcpy(x.hash, hash_of(5, 9), 32);
    struct manager_block block = {
        .number = ++s->finalized, .account_nonce = 6, .included = &x, .included_count = 1};
    feed(s, (struct manager_event){.type = MANAGER_EV_FINALIZED, .block = &block});
    none(s, MANAGER_FX_STORE_ADOPT);
    assert_string_equal(only_end(s, MANAGER_FX_STORE_FINISH)->outcome, "usurped");
    script_free(s);
}

/* What a failed admission takes back: the nonces, and a hole that it was to close. */
static void admission_failed(void **state)
{
    (void)state;
    static const int codes[] = {ERR_DB_CONFLICT, ERR_NET};
    for (unsigned i = 0; i < 2; i++) {
        struct script *s = begin(&keyless, 5);
        outbox_presigned(s, &(struct one){1, 5, DEATH, NULL, NULL, 0, false}, 1, 0, -1);
        expect(s, MANAGER_FX_ADMIT);
        write_failed(s, MANAGER_FX_ADMIT, codes[i]);
        assert_int_equal(manager_view_of(s->m).next_nonce, 5);
        best(s);
        outbox_presigned(s, &(struct one){1, 5, DEATH, NULL, NULL, 0, false}, 1, 0, -1);
        signed_admitted(s);
        script_free(s);
    }
}

/* The lower nonce is free before the higher one. */
static void given_back_one_after_the_other(void **state)
{
    (void)state;
    struct script *s = begin(&keyed, 5);
    const struct one two[] = {{1, 5, DEATH, NULL, NULL, 0, false},
                              {2, 6, DEATH + 1, NULL, NULL, 0, false}};
    outbox_presigned(s, two, 2, 0, -1);
    signed_admitted(s);
    accept(s, 5);
    accept(s, 6);
    while (s->finalized < DEATH)
        finalized(s, 5, 0, NULL);
    assert_int_equal(only_end(s, MANAGER_FX_STORE_FINISH)->nonce, 5);
    stored(s, MANAGER_FX_STORE_FINISH);
    none(s, MANAGER_FX_STORE_NONCE);
    finalized(s, 5, 0, NULL);
    assert_int_equal(only_end(s, MANAGER_FX_STORE_FINISH)->nonce, 6);
    stored(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(expect(s, MANAGER_FX_STORE_NONCE)->next.nonce, 5);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(admitted_at_their_nonces),
        cmocka_unit_test(waits_above_a_hole),
        cmocka_unit_test(as_the_door_says),
        cmocka_unit_test(eras_in_the_outbox),
        cmocka_unit_test(era_at_an_invented_block),
        cmocka_unit_test(taken),
        cmocka_unit_test(two_with_one_nonce),
        cmocka_unit_test(used_by_its_own_bytes),
        cmocka_unit_test(used_by_other_bytes),
        cmocka_unit_test(bad_and_used),
        cmocka_unit_test(bad_and_maybe_used),
        cmocka_unit_test(admitted_and_maybe_used),
        cmocka_unit_test(expired_and_maybe_used),
        cmocka_unit_test(era_over_and_maybe_used),
        cmocka_unit_test(used_long_ago),
        cmocka_unit_test(the_same_bytes_again),
        cmocka_unit_test(refused),
        cmocka_unit_test(era_over),
        cmocka_unit_test(era_over_of_a_reaped_account),
        cmocka_unit_test(era_over_and_nonce_used),
        cmocka_unit_test(hole_without_a_key),
        cmocka_unit_test(hole_with_a_key),
        cmocka_unit_test(runtime_changed),
        cmocka_unit_test(lower_runtime_is_no_change),
        cmocka_unit_test(runtime_changed_behind_an_unread_block),
        cmocka_unit_test(runtime_changed_before_the_chain_was_up),
        cmocka_unit_test(never_outbid),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(after_a_load),
        cmocka_unit_test(same_call_by_others),
        cmocka_unit_test(admission_failed),
        cmocka_unit_test(given_back_one_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
