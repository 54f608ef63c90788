/* The methods that a relay uses, by feature: docs/operation.md has the table for operators. */
#include <string.h>

#include "base/check.h"
#include "measure.h"

/* twox_128("System") ++ twox_128("Number") */
#define NUMBER_KEY "\"0x26aa394eea5630e07c48ae0c9558cef702a5c1b19ab7a04f536c519aca4983ac\""
/* A SCALE length without the bytes that it announces. */
#define NO_EXTRINSIC "[\"0xff\"]"

const struct measure_question measure_questions[] = {
    {"use", "chain_getBlockHash", "[0]", NULL, false},
    {"use", "chain_getFinalizedHead", "[]", NULL, false},
    {"use", "state_getRuntimeVersion", "[]", NULL, false},
    {"use", "state_getMetadata", "[]", NULL, false},
    {"heads", "chain_getHeader", "[]", NULL, false},
    {"heads", "chain_subscribeNewHeads", "[]", "chain_unsubscribeNewHeads", false},
    {"heads", "chain_subscribeFinalizedHeads", "[]", "chain_unsubscribeFinalizedHeads", false},
    {"heads", "state_subscribeRuntimeVersion", "[]", "state_unsubscribeRuntimeVersion", false},
    {"submit", "author_submitAndWatchExtrinsic", NO_EXTRINSIC, "author_unwatchExtrinsic", true},
    {"submit", "author_submitExtrinsic", NO_EXTRINSIC, NULL, true},
    {"submit", "transactionWatch_v1_submitAndWatch", NO_EXTRINSIC, "transactionWatch_v1_unwatch",
     true},
    {"submit", "transaction_v1_broadcast", NO_EXTRINSIC, "transaction_v1_stop", true},
    {"pool", "author_pendingExtrinsics", "[]", NULL, false},
    {"nonces", "state_getStorage", "[" NUMBER_KEY "]", NULL, false},
    {"nonces", "state_queryStorageAt", "[[" NUMBER_KEY "]]", NULL, false},
    {"nonces", "state_call", "[\"Core_version\",\"0x\"]", NULL, false},
    {"outcomes", "chain_getBlock", "[]", NULL, false},
    {"newer", "archive_v1_finalizedHeight", "[]", NULL, false},
    {"newer", "chainHead_v1_follow", "[false]", "chainHead_v1_unfollow", false},
};

size_t measure_question_count(void)
{
    _Static_assert(ARRAY_LEN(measure_questions) <= MEASURE_METHODS, "room for each");
    return ARRAY_LEN(measure_questions);
}

const char *measure_is_name(enum measure_is is)
{
    static const char *const names[MEASURE_IS] = {
        [MEASURE_OPEN] = "open",         [MEASURE_CLOSED] = "closed",
        [MEASURE_TOO_MANY] = "too many", [MEASURE_TOO_LARGE] = "too large",
        [MEASURE_BROKEN] = "broken",     [MEASURE_SILENT] = "no answer",
    };
    PRE(is < MEASURE_IS);
    return names[is];
}

enum measure_is measure_judge(const struct measure_question *q, const struct jv *error)
{
    enum { POOL_FIRST = 1000, POOL_LAST = 1999, INVALID_PARAMS = -32602 };
    char message[200], data[200];
    int64_t code = 0;
    if (!error)
        return MEASURE_OPEN;
    jv_copy(jv_get(error, "message"), message, sizeof(message));
    jv_copy(jv_get(error, "data"), data, sizeof(data));
    jv_int(jv_get(error, "code"), &code);
    if (q->submits && ((code >= POOL_FIRST && code <= POOL_LAST) || code == INVALID_PARAMS))
        return MEASURE_OPEN;
    switch (rpc_error_of(code, message, data)) {
    case RPC_ERROR_METHOD:
    case RPC_ERROR_DENIED:
        return MEASURE_CLOSED;
    case RPC_ERROR_PACE:
    case RPC_ERROR_WATCHES:
        return MEASURE_TOO_MANY;
    case RPC_ERROR_SIZE:
        return MEASURE_TOO_LARGE;
    case RPC_ERROR_NONE:
    case RPC_ERROR_BLOCK:
    case RPC_ERROR_OTHER:
        break;
    }
    return MEASURE_BROKEN;
}
