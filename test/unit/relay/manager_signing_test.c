/* An account for which nothing can be signed: the chain takes another kind of key, has an unknown
 * signed extension, or has no extrinsics of format v4. */
#include "manager_harness.h"

static void runtime_takes(struct script *s, uint32_t spec, const char *unsupported)
{
    s->spec = spec;
    feed(s, (struct manager_event){.type = MANAGER_EV_RUNTIME,
                                   .chain = {.spec_version = spec,
                                             .transaction_version = 6,
                                             .unsupported = unsupported}});
}

static void node_back(struct script *s, const char *unsupported)
{
    chain_down(s);
    feed(s, (struct manager_event){.type = MANAGER_EV_CHAIN_UP,
                                   .chain = {.finalized = s->finalized,
                                             .best = s->best,
                                             .spec_version = s->spec,
                                             .transaction_version = 6,
                                             .unsupported = unsupported}});
}

static void not_signed(struct script *s, enum manager_effect_type write, int code, const char *why)
{
    expect(s, write);
    feed(s,
         (struct manager_event){.type = MANAGER_EV_WRITE_FAILED,
                                .write_failed = {.write = write, .code = code, .not_signed = why}});
}

static void look(struct script *s)
{
    feed(s,
         (struct manager_event){.type = MANAGER_EV_REQUESTS, .requests = {.account = &s->account}});
}

static void expect_held(struct script *s, const char *words)
{
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_PAUSE);
    assert_int_equal(fx->pause.suspension, MANAGER_SUSPENSION_SIGNING);
    assert_string_equal(manager_suspension_name(MANAGER_SUSPENSION_SIGNING), "signing");
    if (!strstr(fx->pause.text, words))
        fail_msg("the reason is \"%s\"", fx->pause.text);
    s->account.paused = true;
    s->account.suspension = MANAGER_SUSPENSION_SIGNING;
}

static void expect_released(struct script *s)
{
    assert_int_equal(expect(s, MANAGER_FX_STORE_PAUSE)->pause.suspension, MANAGER_SUSPENSION_NONE);
    s->account.paused = false;
    s->account.suspension = MANAGER_SUSPENSION_NONE;
}

/* The writes, alerts and loads of many blocks, with a node that comes back now and then. */
static size_t costs(struct script *s, unsigned blocks, const char *unsupported)
{
    size_t sum = 0;
    for (unsigned i = 0; i < blocks; i++) {
        if (i % 10 == 9)
            node_back(s, unsupported);
        else
            best(s);
        for (int write = 0; write <= MANAGER_FX_LOAD; write++)
            sum += count_of(s, (enum manager_effect_type)write);
        sum += count_of(s, MANAGER_FX_ALERT) + count_of(s, MANAGER_FX_WANT_OUTBOX);
        if (count_of(s, MANAGER_FX_ASK_POOL))
            probe(s, 5, 0);
        look(s);
    }
    return sum;
}

/* ---- what the node's metadata says ---- */

static void unsupported_at_the_start(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    load(s, NULL, 0, 5);
    node_back(s, "a key of scheme ethereum cannot sign for this chain");
    expect_alert(s, "scheme ethereum");
    expect_held(s, "scheme ethereum");
    probe(s, 5, 0);
    stored(s, MANAGER_FX_STORE_PAUSE);
    assert_int_equal(costs(s, 200, "a key of scheme ethereum cannot sign for this chain"), 0);
    script_free(s);
}

static void unsupported_at_an_upgrade(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 2);
    admitted(s);
    accept(s, 5);
    refuse_code(s, 6, ERR_NOT_LEADER);
    runtime_takes(s, SPEC + 1, "the chain's signed extension AsPerson is not known");
    expect_alert(s, "AsPerson");
    expect_held(s, "AsPerson");
    stored(s, MANAGER_FX_STORE_PAUSE);
    none(s, MANAGER_FX_RESIGN);
    none(s, MANAGER_FX_WANT_OUTBOX);
    best(s);
    none(s, MANAGER_FX_RESIGN);
    /* for another reason: that is what operators see then */
    runtime_takes(s, SPEC + 2, "the chain takes extrinsics of format v5");
    expect_held(s, "format v5");
    stored(s, MANAGER_FX_STORE_PAUSE);
    runtime_takes(s, SPEC + 3, NULL);
    expect_released(s);
    expect(s, MANAGER_FX_RESIGN); /* what waited goes on */
    script_free(s);
}

/* The next leader's key, or its build, can do it: what the table says of the last one is over. */
static void the_next_leader_can_sign(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    s->account.paused = true;
    s->account.suspension = MANAGER_SUSPENSION_SIGNING;
    load(s, NULL, 0, 5);
    chain_up(s);
    expect_released(s);
    probe(s, 5, 0);
    finalized_at(s, s->finalized, 5, 0, NULL);
    stored(s, MANAGER_FX_STORE_PAUSE);
    outbox(s, 1);
    expect(s, MANAGER_FX_ADMIT);
    script_free(s);
}

/* An operator's order does not make the chain take it. */
static void an_order_changes_nothing(void **state)
{
    (void)state;
    struct script *s = leading(5);
    runtime_takes(s, SPEC + 1, "no such key");
    expect_held(s, "no such key");
    stored(s, MANAGER_FX_STORE_PAUSE);
    s->account.paused = false;
    s->account.suspension = MANAGER_SUSPENSION_NONE;
    look(s);
    expect_held(s, "no such key");
    none(s, MANAGER_FX_WANT_OUTBOX);
    script_free(s);
}

/* What suspends it for graver reasons stays first, and an order for that shows what is left. */
static void behind_graver_reasons(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 1);
    admitted(s);
    accept(s, 5);
    feed(s, (struct manager_event){.type = MANAGER_EV_RUNTIME,
                                   .chain = {.spec_version = SPEC + 1,
                                             .transaction_version = 7,
                                             .unsupported = "no such key"}});
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_PAUSE);
    assert_int_equal(fx->pause.suspension, MANAGER_SUSPENSION_SIGNING);
    stored(s, MANAGER_FX_STORE_PAUSE);
    best(s);
    while (s->finalized < s->best)
        finalized(s, 5, 0, NULL); /* the version is final */
    fx = expect(s, MANAGER_FX_STORE_PAUSE);
    assert_int_equal(fx->pause.suspension, MANAGER_SUSPENSION_TRANSACTION_VERSION);
    stored(s, MANAGER_FX_STORE_PAUSE);
    s->account.transaction_version = 7;
    look(s);
    expect_held(s, "no such key");
    script_free(s);
}

/* ---- what signing itself finds ---- */

/* Every permanent refusal of a signature: one hold, one alert, and nothing more under this
 * runtime. */
static void every_refusal_is_one_hold(void **state)
{
    (void)state;
    static const int codes[] = {ERR_KEY,      ERR_EXTENSION, ERR_METADATA,
                                ERR_ARGUMENT, ERR_DECODE,    ERR_BUG};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        struct script *s = leading(5);
        outbox(s, 1);
        not_signed(s, MANAGER_FX_ADMIT, codes[i], err_text(codes[i]));
        expect_alert(s, err_text(codes[i]));
        none(s, MANAGER_FX_LOAD);
        expect_held(s, err_text(codes[i]));
        stored(s, MANAGER_FX_STORE_PAUSE);
        assert_int_equal(costs(s, 200, NULL), 0);
        runtime_takes(s, SPEC + 1, NULL);
        expect_released(s);
        stored(s, MANAGER_FX_STORE_PAUSE);
        outbox(s, 1);
        expect(s, MANAGER_FX_ADMIT);
        script_free(s);
    }
}

/* The same where a row needs new bytes, or a nonce a filler (a chain without System.remark). */
static void refused_for_new_bytes_and_fillers(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    runtime(s, SPEC + 1);
    probe(s, 5, 0);
    not_signed(s, MANAGER_FX_RESIGN, ERR_ARGUMENT, "nonce 5 is too large");
    expect_held(s, "too large");
    stored(s, MANAGER_FX_STORE_PAUSE);
    assert_int_equal(costs(s, 200, NULL), 0);
    script_free(s);

    s = leading_with(&(struct manager_config){.unanswered_max = 1}, 5);
    outbox(s, 2); /* the second one keeps the nonce of the first from being given back */
    admitted(s);
    refuse_code(s, 5, ERR_NOT_LEADER);
    struct tx_stop stop = {.nonce = 5, .id = 1, .outcome = "cancelled", .reason = "as ordered"};
    feed(s, (struct manager_event){.type = MANAGER_EV_REQUESTS,
                                   .requests = {.stops = &stop, .count = 1}});
    not_signed(s, MANAGER_FX_FILL, ERR_METADATA, "the chain has no System.remark");
    expect_held(s, "System.remark");
    stored(s, MANAGER_FX_STORE_PAUSE);
    assert_int_equal(costs(s, 200, NULL), 0);
    script_free(s);
}

/* What may pass is tried again at the next block, as ever, and holds nothing. */
static void what_may_pass_holds_nothing(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 1);
    not_signed(s, MANAGER_FX_ADMIT, ERR_NET, "no node is connected");
    none(s, MANAGER_FX_STORE_PAUSE);
    best(s);
    outbox(s, 1);
    admitted(s);
    expect_submit(s, 5);
    script_free(s);
}

/* ---- tips ---- */

/* A tip rises to what the chain's type holds, and no further. */
static void the_chain_caps_tips(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    s->account.tip_start = (u128)1 << 70;
    s->account.tip_cap = (u128)1 << 80;
    load(s, NULL, 0, 5);
    feed(s, (struct manager_event){.type = MANAGER_EV_CHAIN_UP,
                                   .chain = {.finalized = s->finalized,
                                             .best = s->best,
                                             .spec_version = s->spec,
                                             .transaction_version = 6,
                                             .tip_max = UINT64_MAX}});
    probe(s, 5, 0);
    finalized_at(s, s->finalized, 5, 0, NULL);
    outbox(s, 1);
    assert_true(expect(s, MANAGER_FX_ADMIT)->sign.rows[0].tip == UINT64_MAX);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unsupported_at_the_start),
        cmocka_unit_test(unsupported_at_an_upgrade),
        cmocka_unit_test(the_next_leader_can_sign),
        cmocka_unit_test(an_order_changes_nothing),
        cmocka_unit_test(behind_graver_reasons),
        cmocka_unit_test(every_refusal_is_one_hold),
        cmocka_unit_test(refused_for_new_bytes_and_fillers),
        cmocka_unit_test(what_may_pass_holds_nothing),
        cmocka_unit_test(the_chain_caps_tips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
