/* The table of a node's error answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chain/node/rpc_error.h"

static void each_row_is_found_by_its_example(void **state)
{
    (void)state;
    const struct rpc_error_row *row;
    for (size_t i = 0; (row = rpc_error_row(i)); i++) {
        int64_t code = row->first == INT64_MIN ? -1 : row->first;
        assert_int_equal(rpc_error_of(code, row->example, ""), row->means);
        assert_int_equal(rpc_error_of(code, "", row->example), row->means);
    }
}

static void answers_of_nodes_and_gateways(void **state)
{
    (void)state;
    static const struct {
        int64_t code;
        const char *message, *data;
        enum rpc_error means;
    } answers[] = {
        {4003, "Client error: Api called for an unknown Block: State already discarded for 0x11",
         "", RPC_ERROR_BLOCK},
        {4003, "Client error: UnknownBlock: Header was not found in the database", "",
         RPC_ERROR_BLOCK},
        {-32000, "Client error: Execution failed", "", RPC_ERROR_OTHER},
        {-32000, "missing", "State already discarded for 0x11", RPC_ERROR_BLOCK},
        {-32601, "Method not found", "", RPC_ERROR_METHOD},
        {-32000, "RPC call is unsafe to be called externally", "", RPC_ERROR_METHOD},
        {-32600, "method is not whitelisted", "", RPC_ERROR_METHOD},
        {-32008, "Response is too big", "Exceeded max limit of 15728640", RPC_ERROR_SIZE},
        {-32000, "response size should not greater than 10000000 bytes", "", RPC_ERROR_SIZE},
        {-32005, "Too many requests", "", RPC_ERROR_PACE},
        {-32999, "RPC rate limit", "", RPC_ERROR_PACE},
        {-32097, "compute units per second capacity", "", RPC_ERROR_PACE},
        {429, "", "", RPC_ERROR_PACE},
        {503, "quota", "", RPC_ERROR_PACE},
        {-32006, "Too many subscriptions on the connection", "", RPC_ERROR_WATCHES},
        {1016, "Immediately Dropped",
         "The transaction couldn't enter the pool because of the limit", RPC_ERROR_OTHER},
        {1010, "Invalid Transaction", "Transaction would exhaust the block limits",
         RPC_ERROR_OTHER},
        {-32004, "Method not supported", "", RPC_ERROR_DENIED},
        {-32000, "the method state_call is not supported", "", RPC_ERROR_DENIED},
        {-32600, "the method does not exist/is not available", "", RPC_ERROR_DENIED},
        {-32603, "this RPC method is disabled", "", RPC_ERROR_DENIED},
        {403, "", "", RPC_ERROR_DENIED},
        {-32003, "access denied", "", RPC_ERROR_DENIED},
        {0, "upgrade your plan", "", RPC_ERROR_DENIED},
        {-32004, "no", "", RPC_ERROR_DENIED},
        {503, "the service is not available", "", RPC_ERROR_DENIED},
        {403, "Forbidden: the daily limit is reached", "", RPC_ERROR_PACE},
        {-32000, "request denied: rate limit", "", RPC_ERROR_PACE},
        {-32009, "Server is busy", "", RPC_ERROR_PACE},
        {-32604, "Server is busy, try again later", "", RPC_ERROR_PACE},
        {-32004, "RPC work limit exceeded", "", RPC_ERROR_SIZE}, /* the same question never fits */
        {402, "Payment Required", "", RPC_ERROR_DENIED},
        {-32000, "UnknownBlock: State for this block is not available", "", RPC_ERROR_BLOCK},
        {1010, "Invalid Transaction", "this call is forbidden", RPC_ERROR_OTHER},
        {-32603, "Internal error", "", RPC_ERROR_OTHER},
        {502, "Bad Gateway", "", RPC_ERROR_OTHER},
        {0, "", "", RPC_ERROR_OTHER},
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        assert_int_equal(rpc_error_of(answers[i].code, answers[i].message, answers[i].data),
                         answers[i].means);
}

static void when_to_ask_again(void **state)
{
    (void)state;
    static const struct {
        const char *message, *data;
        uint64_t ms;
    } answers[] = {
        {"Too many requests", "", 0},
        {"Too many requests, retry after 2s", "", 2000},
        {"try again in 2.5 seconds", "", 2500},
        {"rate limited", "{\"retry_after\":30}", 30000},
        {"rate limited", "{\"Retry-After\": \"7\"}", 7000},
        {"retry in 250ms", "", 250},
        {"retry in 2 minutes", "", 120000},
        {"retry after 99999999 s", "", 3600000},
        {"retry later", "", 0},
        {"10 requests", "", 0},
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        assert_int_equal(rpc_error_retry_ms(answers[i].message, answers[i].data), answers[i].ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_found_by_its_example),
        cmocka_unit_test(answers_of_nodes_and_gateways),
        cmocka_unit_test(when_to_ask_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
