/* A node's refusal is read by its real meaning, in the shape of a real node and in that of
 * chopsticks. */
#include "manager_harness.h"
#include "relay/core/tx/answer.h"

static const struct {
    int64_t code;
    const char *text;
    enum refusal means;
} table[] = {
    {1001, "Extrinsic has invalid format: Not enough data to fill buffer", REFUSAL_INVALID},
    {1002,
     "Verification Error: Runtime error: Execution failed: Execution aborted due to trap: wasm "
     "trap: wasm `unreachable` instruction executed",
     REFUSAL_TRAPPED},
    {1002, "Verification Error: State already discarded for 0x11", REFUSAL_BUSY},
    {1010, "Invalid Transaction: Transaction call is not expected", REFUSAL_INVALID},
    {1010, "Invalid Transaction: Inability to pay some fees (e.g. account balance too low)",
     REFUSAL_PAYMENT},
    {1010, "Invalid Transaction: Transaction will be valid in the future", REFUSAL_FUTURE},
    {1010, "Invalid Transaction: Transaction is outdated", REFUSAL_STALE},
    {1010, "Invalid Transaction: Transaction has a bad signature", REFUSAL_BAD_PROOF},
    {1010, "Invalid Transaction: Transaction has an ancient birth block", REFUSAL_BAD_PROOF},
    {1010, "Invalid Transaction: Transaction would exhaust the block limits", REFUSAL_INVALID},
    {1010, "Invalid Transaction: Custom error: 170", REFUSAL_INVALID},
    {1010, "Invalid Transaction: A call was labelled as mandatory, but resulted in an Error.",
     REFUSAL_INVALID},
    {1010,
     "Invalid Transaction: Transaction dispatch is mandatory; transactions must not be validated.",
     REFUSAL_INVALID},
    {1010, "Invalid Transaction: Invalid signing address", REFUSAL_INVALID},
    {1010, "Invalid Transaction: The implicit data was unable to be calculated", REFUSAL_BAD_PROOF},
    {1010, "Invalid Transaction: The transaction extension did not authorize any origin",
     REFUSAL_INVALID},
    {1010, "Invalid Transaction", REFUSAL_BUSY}, /* no reason given: not a reason to give up */
    {1010, "{\"invalid\":{\"stale\":null}}", REFUSAL_STALE},
    {1010, "{\"invalid\":{\"badProof\":null}}", REFUSAL_BAD_PROOF},
    {1010, "{\"invalid\":{\"ancientBirthBlock\":null}}", REFUSAL_BAD_PROOF},
    {1010, "{\"invalid\":{\"payment\":null}}", REFUSAL_PAYMENT},
    {1010, "{\"invalid\":{\"exhaustsResources\":null}}", REFUSAL_INVALID},
    {1010, "{\"invalid\":{\"future\":null}}", REFUSAL_FUTURE},
    {1010, "{\"invalid\":{\"call\":null}}", REFUSAL_INVALID},
    {1010, "{\"invalid\":{\"custom\":7}}", REFUSAL_INVALID},
    {1010, "{\"invalid\":{\"badSigner\":null}}", REFUSAL_INVALID},
    {1011, "Unknown Transaction Validity: CannotLookup", REFUSAL_INVALID},
    {1011, "{\"unknown\":{\"cannotLookup\":null}}", REFUSAL_INVALID},
    {1011, "Error: wasm `unreachable` instruction executed", REFUSAL_INVALID},
    {1012, "Transaction is temporarily banned", REFUSAL_BANNED},
    {1013, "Transaction Already Imported: Any { .. }", REFUSAL_POOLED},
    {1014, "Priority is too low: (18 vs 18)", REFUSAL_UNDERPRICED},
    {1015, "Cycle Detected", REFUSAL_BUSY},
    {1016, "Immediately Dropped", REFUSAL_POOL_FULL},
    {1018, "Unactionable", REFUSAL_BUSY},
    {1019, "No tags provided", REFUSAL_INVALID},
    {1020, "The provided block ID is not valid", REFUSAL_BUSY},
    {1021, "The pool is not accepting future transactions", REFUSAL_FUTURE},
    {1040, "Client error: UnknownBlock: State already discarded for 0x11", REFUSAL_BUSY},
    {1040, "Client error: Codec error: Not enough data to fill buffer", REFUSAL_INVALID},
    {-32602, "Invalid params", REFUSAL_BUSY},
    {-32601, "Method not found", REFUSAL_BUSY},
    {-32603, "Internal error", REFUSAL_BUSY},
    {-32006, "Too many subscriptions on the connection", REFUSAL_BUSY},
    {-32007, "Request is too big", REFUSAL_INVALID},
    {-32009, "Server is busy, try again later", REFUSAL_BUSY},
    {-32999, "RPC rate limit exceeded", REFUSAL_BUSY},
};

static void codes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (answer_of(ERR_RPC, table[i].code, table[i].text)->means != table[i].means)
            fail_msg("%lld %s", (long long)table[i].code, table[i].text);
}

static void not_the_node(void **state)
{
    (void)state;
    assert_int_equal(answer_of(ERR_NET, 0, "connection lost")->means, REFUSAL_TRANSPORT);
    assert_int_equal(answer_of(ERR_TIMEOUT, 0, NULL)->means, REFUSAL_TRANSPORT);
    assert_int_equal(answer_of(ERR_PROTOCOL, 0, NULL)->means, REFUSAL_TRANSPORT);
    assert_int_equal(answer_of(ERR_CANCELED, 0, NULL)->means, REFUSAL_TRANSPORT);
    assert_int_equal(answer_of(ERR_NOT_LEADER, 0, NULL)->means, REFUSAL_GATE);
    assert_int_equal(answer_of(ERR_LOST_LEADERSHIP, 0, NULL)->means, REFUSAL_TRANSPORT);
    assert_int_equal(answer_of(ERR_RPC, 1010, NULL)->means, REFUSAL_BUSY);
}

/* ---- refusals that an account's policy calls passing ---- */

#define EXHAUSTS "Invalid Transaction: Transaction would exhaust the block limits"
#define CUSTOM_6 "Invalid Transaction: Custom error: 6"

static void lists(void **state)
{
    (void)state;
    static const struct {
        const char *list, *text;
        bool listed;
    } cases[] = {
        {"", EXHAUSTS, false},
        {"ExhaustsResources", EXHAUSTS, true},
        {"ExhaustsResources", "{\"invalid\":{\"exhaustsResources\":null}}", true},
        {"ExhaustsResources", CUSTOM_6, false},
        {"Custom:6", CUSTOM_6, true},
        {"Custom:6", "{\"invalid\":{\"custom\":6}}", true},
        {"Custom:60", CUSTOM_6, false},
        {"Custom:6", "Invalid Transaction: Custom error: 60", false},
        {"Custom:6", EXHAUSTS, false},
        {"Custom", CUSTOM_6, true},
        {"Custom:5,ExhaustsResources,Custom:6", CUSTOM_6, true},
        {"Custom:5,ExhaustsResources", EXHAUSTS, true},
        {"Custom:5,Custom:7", CUSTOM_6, false},
        {"Custom", "Invalid Transaction: Transaction call is not expected", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (answer_listed(cases[i].list, cases[i].text) != cases[i].listed)
            fail_msg("\"%s\" and \"%s\"", cases[i].list, cases[i].text);
}

/* Leading with two rows on the wire, under this policy. */
static struct script *two_sent(const char *list)
{
    struct script *s = leading(5);
    snprintf(s->account.retry_refusals, sizeof(s->account.retry_refusals), "%s", list);
    s->account.tip_cap = MANAGER_NO_CAP;
    feed(s,
         (struct manager_event){.type = MANAGER_EV_REQUESTS, .requests = {.account = &s->account}});
    outbox(s, 2);
    admitted(s);
    return s;
}

/* The same bytes at each block, and the rows behind it wait for it. */
static void refused_for_now(void **state)
{
    (void)state;
    struct script *s = two_sent("ExhaustsResources,Custom:6");
    refuse(s, 5, 1010, EXHAUSTS);
    expect_alert(s, "refuses nonce 5 for now");
    stored(s, MANAGER_FX_STORE_STATES);
    refuse(s, 6, 1010, CUSTOM_6);
    stored(s, MANAGER_FX_STORE_STATES);
    for (unsigned i = 0; i < 20; i++) {
        none(s, MANAGER_FX_SUBMIT);
        best(s);
        expect_submit(s, 5);
        none(s, MANAGER_FX_SUBMIT);
        refuse(s, 5, 1010, i % 2 ? EXHAUSTS : CUSTOM_6);
        none(s, MANAGER_FX_ALERT);
        none(s, MANAGER_FX_FILL);
        none(s, MANAGER_FX_RESIGN);
        stored(s, MANAGER_FX_STORE_STATES);
    }
    best(s);
    accept(s, 5);
    expect_submit(s, 6);
    script_free(s);
}

static void ends_with_its_deadline(void **state)
{
    (void)state;
    struct script *s = two_sent("ExhaustsResources");
    struct tx_stop stop = {.nonce = 5, .id = 1, .outcome = "expired", .reason = "its deadline"};
    refuse(s, 5, 1010, EXHAUSTS);
    stored(s, MANAGER_FX_STORE_STATES);
    feed(s, (struct manager_event){.type = MANAGER_EV_REQUESTS,
                                   .requests = {.stops = &stop, .count = 1}});
    const struct manager_effect *fx = expect(s, MANAGER_FX_RESIGN);
    assert_true(fx->sign.rows[0].filler);
    assert_string_equal(fx->sign.rows[0].outcome, "expired");
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes),
        cmocka_unit_test(not_the_node),
        cmocka_unit_test(lists),
        cmocka_unit_test(refused_for_now),
        cmocka_unit_test(ends_with_its_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
