/* The answers to a submission as a table. The first row that fits is the answer's.
 *
 * The last text of a row says why a pool may have the bytes in spite of the answer.
 *
 * Two shapes of a node's refusal are known: a real node's code, message and data ("Invalid
 * Transaction: Transaction is outdated"; polkadot-sdk, client/rpc-api/src/author/error.rs and
 * sp-runtime transaction_validity.rs) and chopsticks' message {"invalid":{"stale":null}}.
 *
 * A node's own code refuses some bytes before its pool imports anything. That is no proof either:
 * the answer may be another node's than the one that has the bytes, and a node may lie. The
 * fork-aware pool offers bytes to the view of a block that is being imported while it still asks
 * the views of older blocks. */
#define _GNU_SOURCE
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "relay/core/tx/answer.h"

#define RELAY(code)                                                                                \
    ANSWER_OF_RELAY, code, code,                                                                   \
    {                                                                                              \
        0                                                                                          \
    }
#define NODE(code, ...)                                                                            \
    ANSWER_OF_NODE, code, code,                                                                    \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define NODES(first, last)                                                                         \
    ANSWER_OF_NODE, first, last,                                                                   \
    {                                                                                              \
        0                                                                                          \
    }
#define ANOTHER_NODE  "A balancer may have asked another node before, which took them."
#define MAY_BE_LIFTED "The next block may lift it, and its view may have taken them already."
#define NO_ANSWER     "The bytes may have been written before."

static const struct answer table[] = {
    {RELAY(ERR_OK), REFUSAL_NONE, "accepted", "The node's pool imported them."},
    {RELAY(ERR_NOT_LEADER), REFUSAL_GATE, "the gate was closed",
     "The relay asks its gate before it writes to the socket, and wrote nothing."},
    {RELAY(ERR_NET), REFUSAL_TRANSPORT, "connection lost, or no node is ready", NO_ANSWER},
    {RELAY(ERR_TIMEOUT), REFUSAL_TRANSPORT, "no answer in time", NO_ANSWER},
    {RELAY(ERR_PROTOCOL), REFUSAL_TRANSPORT, "an answer that does not parse", NO_ANSWER},
    {RELAY(ERR_CANCELED), REFUSAL_TRANSPORT, "the relay is closing the connection", NO_ANSWER},
    {ANSWER_OF_RELAY, INT64_MIN, INT64_MAX, {0}, REFUSAL_TRANSPORT, "any other error", NO_ANSWER},

    {NODE(1001), REFUSAL_INVALID, "Extrinsic has invalid format: Not enough data to fill buffer",
     ANOTHER_NODE},
    {NODE(1002, "wasm trap", "unreachable", "execution aborted"), REFUSAL_TRAPPED,
     "Verification Error: Runtime error: Execution failed: Execution aborted due to trap: wasm "
     "trap: wasm `unreachable` instruction executed",
     ANOTHER_NODE},
    {NODE(1002), REFUSAL_BUSY, "Verification Error: State already discarded for 0x11",
     "The node could not ask its runtime."},
    {NODE(1010, "outdated", "\"stale\""), REFUSAL_STALE,
     "Invalid Transaction: Transaction is outdated", "These bytes may be what used the nonce."},
    {NODE(1010, "in the future", "\"future\""), REFUSAL_FUTURE,
     "Invalid Transaction: Transaction will be valid in the future", MAY_BE_LIFTED},
    {NODE(1010, "bad signature", "\"badProof\""), REFUSAL_BAD_PROOF,
     "Invalid Transaction: Transaction has a bad signature", MAY_BE_LIFTED},
    {NODE(1010, "ancient birth block", "\"ancientBirthBlock\""), REFUSAL_BAD_PROOF,
     "Invalid Transaction: Transaction has an ancient birth block",
     "The block that they name may be known to another node."},
    {NODE(1010, "implicit data", "\"indeterminateImplicit\""), REFUSAL_BAD_PROOF,
     "Invalid Transaction: The implicit data was unable to be calculated", MAY_BE_LIFTED},
    {NODE(1010, "inability to pay", "\"payment\""), REFUSAL_PAYMENT,
     "Invalid Transaction: Inability to pay some fees (e.g. account balance too low)",
     MAY_BE_LIFTED},
    {NODE(1010, "exhaust"), REFUSAL_INVALID,
     "Invalid Transaction: Transaction would exhaust the block limits", ANOTHER_NODE},
    {NODE(1010, "custom"), REFUSAL_INVALID, "Invalid Transaction: Custom error: 7", ANOTHER_NODE},
    {NODE(1010, "call is not expected", "\"call\""), REFUSAL_INVALID,
     "Invalid Transaction: Transaction call is not expected", ANOTHER_NODE},
    {NODE(1010, "mandatory"), REFUSAL_INVALID,
     "Invalid Transaction: Transaction dispatch is mandatory; transactions must not be validated.",
     ANOTHER_NODE},
    {NODE(1010, "signing address", "\"badSigner\""), REFUSAL_INVALID,
     "Invalid Transaction: Invalid signing address", ANOTHER_NODE},
    {NODE(1010, "did not authorize", "\"unknownOrigin\""), REFUSAL_INVALID,
     "Invalid Transaction: The transaction extension did not authorize any origin", ANOTHER_NODE},
    {NODE(1010), REFUSAL_BUSY, "Invalid Transaction",
     "It gives no reason, so a gateway may have made it up."},
    {NODE(1011), REFUSAL_INVALID, "Unknown Transaction Validity: CannotLookup", ANOTHER_NODE},
    {NODE(1012), REFUSAL_BANNED, "Transaction is temporarily banned",
     "The node has seen them before. A duplicate bans bytes that stay in the pool."},
    {NODE(1013), REFUSAL_POOLED, "Transaction Already Imported: Any { .. }",
     "A pool has or had them."},
    {NODE(1014), REFUSAL_UNDERPRICED, "Priority is too low: (18 vs 18)",
     "The pool holds an extrinsic at this nonce and does not name it."},
    {NODE(1015), REFUSAL_BUSY, "Cycle Detected", ANOTHER_NODE},
    {NODE(1016), REFUSAL_POOL_FULL,
     "Immediately Dropped: The transaction couldn't enter the pool because of the limit",
     "The pool imports them, announces them to its peers, and then drops them."},
    {NODE(1018), REFUSAL_BUSY, "Unactionable", ANOTHER_NODE},
    {NODE(1019), REFUSAL_INVALID, "No tags provided", ANOTHER_NODE},
    {NODE(1020), REFUSAL_BUSY, "The provided block ID is not valid",
     "The node's best block changed meanwhile."},
    {NODE(1021), REFUSAL_FUTURE, "The pool is not accepting future transactions", ANOTHER_NODE},
    {NODE(1040, "codec", "decode", "invalid format"), REFUSAL_INVALID,
     "Client error: Codec error: Not enough data to fill buffer", ANOTHER_NODE},
    {NODE(1040), REFUSAL_BUSY, "Client error: UnknownBlock: State already discarded for 0x11",
     "Any error of the node may have this code."},
    {NODE(-32006), REFUSAL_BUSY, "Too many subscriptions on the connection", ANOTHER_NODE},
    {NODE(-32007), REFUSAL_INVALID, "Request is too big", ANOTHER_NODE},
    {NODES(-32099, -32000), REFUSAL_BUSY, "504 Gateway Timeout",
     "Servers and gateways choose these codes: rate limits, time-outs, upstream errors."},
    {NODE(-32600), REFUSAL_BUSY, "Invalid request",
     "The relay's request is valid, so something between it and the node is wrong."},
    {NODE(-32601), REFUSAL_BUSY, "Method not found",
     "A balancer may have asked a node that has the method before."},
    {NODE(-32602), REFUSAL_BUSY, "Invalid params",
     "The relay's parameter is valid, so something between it and the node is wrong."},
    {NODE(-32603), REFUSAL_BUSY, "Internal error",
     "Gateways answer it for requests that they passed on."},
    {NODE(-32700), REFUSAL_BUSY, "Parse error", "A gateway may mean the node's answer."},
    {NODES(-32768, -32100), REFUSAL_BUSY, "RPC rate limit exceeded",
     "A limit of a gateway, which may count answers."},
    {NODES(400, 599), REFUSAL_BUSY, "Bad Gateway", "The status of an HTTP gateway."},
    {ANSWER_OF_NODE,
     INT64_MIN,
     INT64_MAX,
     {0},
     REFUSAL_BUSY,
     "any other code",
     "Nothing is known of them."},
};

static bool says(const struct answer *a, const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(a->words) && a->words[i]; i++)
        if (strcasestr(text, a->words[i]))
            return true;
    return !a->words[0];
}

static const struct answer *find(enum answer_from from, int64_t code, const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].from == from && code >= table[i].first && code <= table[i].last &&
            says(&table[i], text))
            return &table[i];
    UNREACHABLE();
}

const struct answer *answer_of(int code, int64_t rpc_code, const char *text)
{
    return code == ERR_RPC ? find(ANSWER_OF_NODE, rpc_code, text ? text : "")
                           : find(ANSWER_OF_RELAY, code, "");
}

/* The first number of up to six digits in a text; -1: none. */
static long number_in(const char *text)
{
    long number = -1;
    while (*text && (*text < '0' || *text > '9'))
        text++;
    for (unsigned i = 0; i < 6 && *text >= '0' && *text <= '9'; i++)
        number = (number < 0 ? 0 : number) * 10 + (*text++ - '0');
    return number;
}

/* "Custom error: 7", or {"invalid":{"custom":7}} */
static bool says_custom(const char *text, long number)
{
    const char *at = strcasestr(text, "custom");
    return at && (number < 0 || number_in(at) == number);
}

bool answer_listed(const char *list, const char *text)
{
    for (const char *item = list; *item;) {
        const char *comma = strchr(item, ','), *colon = strchr(item, ':');
        bool has_number = colon && (!comma || colon < comma);
        if (*item == 'E' ? strcasestr(text, "exhaust") != NULL
                         : says_custom(text, has_number ? number_in(colon) : -1))
            return true;
        item = comma ? comma + 1 : "";
    }
    return false;
}

const struct answer *answer_at(size_t i)
{
    return i < ARRAY_LEN(table) ? &table[i] : NULL;
}

/* ---- the page ---- */

static const char *const actions[] = {
    [REFUSAL_NONE] = "follows it",
    [REFUSAL_STALE] = "waits for the block that uses the nonce",
    [REFUSAL_POOLED] = "follows it",
    [REFUSAL_BANNED] = "probes; signs anew if they are gone",
    [REFUSAL_UNDERPRICED] = "raises the tip or probes",
    [REFUSAL_POOL_FULL] = "retries with a smaller window",
    [REFUSAL_PAYMENT] = "suspends the account",
    [REFUSAL_BAD_PROOF] = "signs anew",
    [REFUSAL_FUTURE] = "retries",
    [REFUSAL_INVALID] = "races them with a filler",
    [REFUSAL_TRAPPED] = "retries, then races them with a filler",
    [REFUSAL_TRANSPORT] = "probes",
    [REFUSAL_GATE] = "waits for the gate",
    [REFUSAL_BUSY] = "retries",
};

static void codes(const struct answer *a, struct buf *out)
{
    if (a->first == INT64_MIN)
        buf_puts(out, a->from == ANSWER_OF_NODE ? "node" : "relay");
    else if (a->from == ANSWER_OF_RELAY)
        buf_puts(out, err_name((int)a->first));
    else if (a->first == a->last)
        buf_printf(out, "%lld", (long long)a->first);
    else
        buf_printf(out, "%lld..%lld", (long long)a->first, (long long)a->last);
}

void answers_dump(struct buf *out)
{
    buf_puts(out, "| code | text | the leader | the bytes |\n|---|---|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct answer *a = &table[i];
        buf_puts(out, "| ");
        codes(a, out);
        buf_printf(out, " | %s | %s | %s |\n", a->text, actions[a->means], a->reason);
    }
}
