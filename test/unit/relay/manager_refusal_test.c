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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(codes), cmocka_unit_test(not_the_node)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
