/* The events of transactionWatch_v1, in the words of the older JSON-RPC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "node_transaction.h"

#define HASH "0x1111111111111111111111111111111111111111111111111111111111111111"

/* Texts: polkadot-sdk, client/rpc-spec-v2/src/transaction/error.rs, transaction.rs. */
static const struct {
    const char *event;
    int kind;
    enum tx_status status;
    bool has_block;
    int64_t code;
    const char *message, *data;
} rows[] = {
    {"{\"event\":\"validated\"}", TRANSACTION_IS, TX_READY, false, 0, "", ""},
    {"{\"event\":\"broadcasted\",\"numPeers\":\"2\"}", TRANSACTION_IS, TX_BROADCAST, false, 0, "",
     ""},
    {"{\"event\":\"bestChainBlockIncluded\",\"block\":{\"hash\":\"" HASH "\",\"index\":1}}",
     TRANSACTION_IS, TX_IN_BLOCK, true, 0, "", ""},
    {"{\"event\":\"bestChainBlockIncluded\",\"block\":null}", TRANSACTION_NOT_IN, TX_RETRACTED,
     false, 0, "", ""},
    {"{\"event\":\"finalized\",\"block\":{\"hash\":\"" HASH "\",\"index\":1}}", TRANSACTION_IS,
     TX_FINALIZED, true, 0, "", ""},
    /* A pool had the bytes and let go of them. */
    {"{\"event\":\"invalid\",\"error\":\"Extrinsic marked as invalid\"}", TRANSACTION_IS,
     TX_INVALID, false, 0, "", ""},
    {"{\"event\":\"invalid\",\"error\":\"Extrinsic was rendered invalid by another extrinsic\"}",
     TRANSACTION_IS, TX_INVALID, false, 0, "", ""},
    {"{\"event\":\"dropped\",\"error\":\"Extrinsic dropped from the pool due to exceeding "
     "limits\"}",
     TRANSACTION_IS, TX_DROPPED, false, 0, "", ""},
    {"{\"event\":\"dropped\",\"error\":\"Maximum number of finality watchers has been reached\"}",
     TRANSACTION_IS, TX_DROPPED, false, 0, "", ""},
    /* It refused them. */
    {"{\"event\":\"invalid\",\"error\":\"Extrinsic bytes cannot be decoded\"}", TRANSACTION_REFUSED,
     TX_INVALID, false, 1001, "Extrinsic has invalid format", ""},
    {"{\"event\":\"invalid\",\"error\":\"Verification error: wasm trap\"}", TRANSACTION_REFUSED,
     TX_INVALID, false, 1002, "Verification Error", "wasm trap"},
    {"{\"event\":\"invalid\",\"error\":\"Invalid transaction: Transaction is outdated\"}",
     TRANSACTION_REFUSED, TX_INVALID, false, 1010, "Invalid Transaction",
     "Transaction is outdated"},
    {"{\"event\":\"invalid\",\"error\":\"Invalid transaction with custom error: 7\"}",
     TRANSACTION_REFUSED, TX_INVALID, false, 1010, "Invalid Transaction", "Custom error: 7"},
    {"{\"event\":\"invalid\",\"error\":\"Unknown transaction validity: CannotLookup\"}",
     TRANSACTION_REFUSED, TX_INVALID, false, 1011, "Unknown Transaction Validity", "CannotLookup"},
    {"{\"event\":\"invalid\",\"error\":\"Transaction is temporarily banned\"}", TRANSACTION_REFUSED,
     TX_INVALID, false, 1012, "Transaction is temporarily banned", ""},
    {"{\"event\":\"invalid\",\"error\":\"Transaction is already imported\"}", TRANSACTION_REFUSED,
     TX_INVALID, false, 1013, "Transaction Already Imported", ""},
    {"{\"event\":\"invalid\",\"error\":\"The priority of the transaction is too low (pool 18 > "
     "current 17)\"}",
     TRANSACTION_REFUSED, TX_INVALID, false, 1014, "Priority is too low",
     " (pool 18 > current 17)"},
    {"{\"event\":\"invalid\",\"error\":\"The transaction contains a cyclic dependency\"}",
     TRANSACTION_REFUSED, TX_INVALID, false, 1015, "Cycle Detected", ""},
    {"{\"event\":\"invalid\",\"error\":\"The transaction could not enter the pool because of the "
     "limit\"}",
     TRANSACTION_REFUSED, TX_INVALID, false, 1016, "Immediately Dropped", " because of the limit"},
    {"{\"event\":\"invalid\",\"error\":\"Transaction cannot be propagated and the local node does "
     "not author blocks\"}",
     TRANSACTION_REFUSED, TX_INVALID, false, 1018, "Unactionable",
     " and the local node does not author blocks"},
    {"{\"event\":\"invalid\",\"error\":\"Transaction does not provide any tags, so the pool cannot "
     "identify it\"}",
     TRANSACTION_REFUSED, TX_INVALID, false, 1019, "No tags provided",
     ", so the pool cannot identify it"},
    {"{\"event\":\"invalid\",\"error\":\"The provided block ID is not valid\"}",
     TRANSACTION_REFUSED, TX_INVALID, false, 1020, "The provided block ID is not valid", ""},
    {"{\"event\":\"invalid\",\"error\":\"The pool is not accepting future transactions\"}",
     TRANSACTION_REFUSED, TX_INVALID, false, 1021, "The pool is not accepting future transactions",
     ""},
    {"{\"event\":\"invalid\",\"error\":\"of another version\"}", TRANSACTION_REFUSED, TX_INVALID,
     false, 0, "of another version", ""},
    {"{\"event\":\"dropped\",\"error\":\"of another version\"}", TRANSACTION_REFUSED, TX_DROPPED,
     false, 0, "of another version", ""},
    {"{\"event\":\"error\",\"error\":\"out of disk\"}", TRANSACTION_REFUSED, TX_DROPPED, false, 0,
     "out of disk", ""},
    {"{\"event\":\"of another version\"}", TRANSACTION_OTHER, 0, false, 0, "", ""},
    {"7", TRANSACTION_OTHER, 0, false, 0, "", ""},
};

static bool read_event(const char *text, struct transaction_event *e)
{
    struct jv_doc doc = {0};
    const struct jv *item = jv_read(&doc, text, strlen(text), NULL);
    assert_non_null(item);
    bool good = transaction_event_read(item, e);
    jv_done(&doc);
    return good;
}

static void each_event(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct transaction_event e;
        print_message("%s\n", rows[i].event);
        assert_true(read_event(rows[i].event, &e));
        assert_int_equal(e.kind, rows[i].kind);
        assert_int_equal(e.status, rows[i].status);
        assert_int_equal(e.has_block, rows[i].has_block);
        assert_int_equal(e.code, rows[i].code);
        assert_string_equal(e.message, rows[i].message);
        assert_string_equal(e.data, rows[i].data);
    }
}

static void a_block_without_its_hash(void **state)
{
    (void)state;
    struct transaction_event e;
    assert_false(read_event("{\"event\":\"finalized\"}", &e));
    assert_false(read_event("{\"event\":\"finalized\",\"block\":null}", &e));
    assert_false(read_event("{\"event\":\"bestChainBlockIncluded\",\"block\":{\"hash\":7}}", &e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_event),
        cmocka_unit_test(a_block_without_its_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
