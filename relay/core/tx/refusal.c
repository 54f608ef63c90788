/* How a node's refusal is read. Two shapes are known: a real node's code, message and data
 * ("Invalid Transaction: Transaction is outdated"; sc-rpc-api author/error.rs, sp-runtime
 * transaction_validity.rs) and chopsticks' message {"invalid":{"stale":null}}. What is not
 * understood is tried again, never given up. */
#define _GNU_SOURCE
#include <string.h>

#include "base/error.h"
#include "manager_internal.h"

static bool has(const char *text, const char *word)
{
    return strcasestr(text, word) != NULL;
}

static enum refusal invalid_transaction(const char *text)
{
    static const struct {
        const char *word;
        enum refusal means;
    } words[] = {
        {"outdated", REFUSAL_STALE},
        {"\"stale\"", REFUSAL_STALE},
        {"in the future", REFUSAL_FUTURE},
        {"\"future\"", REFUSAL_FUTURE},
        {"bad signature", REFUSAL_BAD_PROOF},
        {"\"badProof\"", REFUSAL_BAD_PROOF},
        {"ancient birth block", REFUSAL_BAD_PROOF},
        {"\"ancientBirthBlock\"", REFUSAL_BAD_PROOF},
        {"implicit data", REFUSAL_BAD_PROOF},
        {"\"indeterminateImplicit\"", REFUSAL_BAD_PROOF},
        {"inability to pay", REFUSAL_PAYMENT},
        {"\"payment\"", REFUSAL_PAYMENT},
        {"exhaust", REFUSAL_INVALID},
        {"custom", REFUSAL_INVALID},
        {"call is not expected", REFUSAL_INVALID},
        {"\"call\"", REFUSAL_INVALID},
        {"mandatory", REFUSAL_INVALID},
        {"signing address", REFUSAL_INVALID},
        {"\"badSigner\"", REFUSAL_INVALID},
        {"did not authorize", REFUSAL_INVALID},
        {"\"unknownOrigin\"", REFUSAL_INVALID},
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (has(text, words[i].word))
            return words[i].means;
    return REFUSAL_BUSY;
}

/* 1002 is the runtime trapping on the bytes, but also a node without the state to ask. */
static bool trapped(const char *text)
{
    return has(text, "wasm trap") || has(text, "unreachable") || has(text, "execution aborted");
}

static bool undecodable(const char *text)
{
    return has(text, "codec") || has(text, "decode") || has(text, "invalid format");
}

static enum refusal by_code(int64_t rpc_code, const char *text)
{
    switch (rpc_code) {
    case 1001: /* invalid format */
    case 1011: /* unknown validity: nothing of what ours needs can appear later */
    case 1019: /* no tags provided */
        return REFUSAL_INVALID;
    case 1002:
        return trapped(text) ? REFUSAL_TRAPPED : REFUSAL_BUSY;
    case 1010:
        return invalid_transaction(text);
    case 1012:
        return REFUSAL_BANNED;
    case 1013:
        return REFUSAL_POOLED;
    case 1014:
        return REFUSAL_UNDERPRICED;
    case 1016:
        return REFUSAL_POOL_FULL;
    case 1021:
        return REFUSAL_FUTURE;
    case 1040:
        return undecodable(text) ? REFUSAL_INVALID : REFUSAL_BUSY;
    case -32602: /* not hexadecimal, or not a string */
    case -32007: /* larger than the node takes */
        return REFUSAL_INVALID;
    default: /* 1015, 1018, 1020, limits, internal errors, methods that a proxy does not know */
        return REFUSAL_BUSY;
    }
}

enum refusal manager_refusal(int code, int64_t rpc_code, const char *text)
{
    if (code == ERR_RPC)
        return by_code(rpc_code, text ? text : "");
    return err_class(code) == ERR_CLASS_LOST_LEADERSHIP ? REFUSAL_GATE : REFUSAL_TRANSPORT;
}
