/* The answers to a submission as a table. The first row that fits is the answer's.
 *
 * Two shapes of a node's refusal are known: a real node's code, message and data ("Invalid
 * Transaction: Transaction is outdated"; polkadot-sdk, client/rpc-api/src/author/error.rs and
 * sp-runtime transaction_validity.rs) and chopsticks' message {"invalid":{"stale":null}}.
 *
 * Only an answer that the code of a node gives before its pool imports anything proves that the
 * bytes were not taken, and only where the bytes themselves are the reason. The fork-aware pool
 * offers bytes to the view of a block that is being imported while it still asks the views of
 * older blocks, so a refusal that a new block can lift proves nothing. */
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
#define WATCH(status)                                                                              \
    ANSWER_OF_WATCH, status, status,                                                               \
    {                                                                                              \
        0                                                                                          \
    }

#define FOR_WHAT_THEY_ARE                                                                          \
    "The runtime refuses the bytes for what they are. A pool imports only what passed."
#define MAY_BE_LIFTED     "The next block may lift it, and its view may have taken them already."
#define BEFORE_THE_METHOD "The server answers before it runs the method."
#define BEFORE_THE_IMPORT "The pool answers before it imports them."
#define NO_ANSWER         "The bytes may have been written before."
#define OF_A_POOL         "A pool has or had them."
#define OTHER_POOLS       "One pool let them go. Others that received them from it may keep them."

static const struct answer table[] = {
    {RELAY(ERR_OK), REFUSAL_NONE, PROVES_POOLED, "accepted", "The node's pool imported them."},
    {RELAY(ERR_NOT_LEADER), REFUSAL_GATE, PROVES_NOT_TAKEN, "the gate was closed",
     "The relay asks its gate before it writes to the socket, and wrote nothing."},
    {RELAY(ERR_NET), REFUSAL_TRANSPORT, PROVES_NOTHING, "connection lost, or no node is ready",
     NO_ANSWER},
    {RELAY(ERR_TIMEOUT), REFUSAL_TRANSPORT, PROVES_NOTHING, "no answer in time", NO_ANSWER},
    {RELAY(ERR_PROTOCOL), REFUSAL_TRANSPORT, PROVES_NOTHING, "an answer that does not parse",
     NO_ANSWER},
    {RELAY(ERR_CANCELED), REFUSAL_TRANSPORT, PROVES_NOTHING, "the relay is closing the connection",
     NO_ANSWER},
    {ANSWER_OF_RELAY,
     INT64_MIN,
     INT64_MAX,
     {0},
     REFUSAL_TRANSPORT,
     PROVES_NOTHING,
     "any other error",
     NO_ANSWER},

    {NODE(1001), REFUSAL_INVALID, PROVES_NOT_TAKEN,
     "Extrinsic has invalid format: Not enough data to fill buffer",
     "They do not decode, so no pool can hold them."},
    {NODE(1002, "wasm trap", "unreachable", "execution aborted"), REFUSAL_TRAPPED, PROVES_NOT_TAKEN,
     "Verification Error: Runtime error: Execution failed: Execution aborted due to trap: wasm "
     "trap: wasm `unreachable` instruction executed",
     FOR_WHAT_THEY_ARE},
    {NODE(1002), REFUSAL_BUSY, PROVES_NOTHING,
     "Verification Error: State already discarded for 0x11", "The node could not ask its runtime."},
    {NODE(1010, "outdated", "\"stale\""), REFUSAL_STALE, PROVES_NOTHING,
     "Invalid Transaction: Transaction is outdated", "These bytes may be what used the nonce."},
    {NODE(1010, "in the future", "\"future\""), REFUSAL_FUTURE, PROVES_NOTHING,
     "Invalid Transaction: Transaction will be valid in the future", MAY_BE_LIFTED},
    {NODE(1010, "bad signature", "\"badProof\""), REFUSAL_BAD_PROOF, PROVES_NOTHING,
     "Invalid Transaction: Transaction has a bad signature", MAY_BE_LIFTED},
    {NODE(1010, "ancient birth block", "\"ancientBirthBlock\""), REFUSAL_BAD_PROOF, PROVES_NOTHING,
     "Invalid Transaction: Transaction has an ancient birth block",
     "The block that they name may be known to another node."},
    {NODE(1010, "implicit data", "\"indeterminateImplicit\""), REFUSAL_BAD_PROOF, PROVES_NOTHING,
     "Invalid Transaction: The implicit data was unable to be calculated", MAY_BE_LIFTED},
    {NODE(1010, "inability to pay", "\"payment\""), REFUSAL_PAYMENT, PROVES_NOTHING,
     "Invalid Transaction: Inability to pay some fees (e.g. account balance too low)",
     MAY_BE_LIFTED},
    {NODE(1010, "exhaust"), REFUSAL_INVALID, PROVES_NOT_TAKEN,
     "Invalid Transaction: Transaction would exhaust the block limits", FOR_WHAT_THEY_ARE},
    {NODE(1010, "custom"), REFUSAL_INVALID, PROVES_NOT_TAKEN,
     "Invalid Transaction: Custom error: 7", FOR_WHAT_THEY_ARE},
    {NODE(1010, "call is not expected", "\"call\""), REFUSAL_INVALID, PROVES_NOT_TAKEN,
     "Invalid Transaction: Transaction call is not expected", FOR_WHAT_THEY_ARE},
    {NODE(1010, "mandatory"), REFUSAL_INVALID, PROVES_NOT_TAKEN,
     "Invalid Transaction: Transaction dispatch is mandatory; transactions must not be validated.",
     FOR_WHAT_THEY_ARE},
    {NODE(1010, "signing address", "\"badSigner\""), REFUSAL_INVALID, PROVES_NOT_TAKEN,
     "Invalid Transaction: Invalid signing address", FOR_WHAT_THEY_ARE},
    {NODE(1010, "did not authorize", "\"unknownOrigin\""), REFUSAL_INVALID, PROVES_NOT_TAKEN,
     "Invalid Transaction: The transaction extension did not authorize any origin",
     FOR_WHAT_THEY_ARE},
    {NODE(1010), REFUSAL_BUSY, PROVES_NOTHING, "Invalid Transaction", "It gives no reason."},
    {NODE(1011), REFUSAL_INVALID, PROVES_NOT_TAKEN, "Unknown Transaction Validity: CannotLookup",
     "Nothing that they need can appear later. A pool imports only what passed."},
    {NODE(1012), REFUSAL_BANNED, PROVES_NOTHING, "Transaction is temporarily banned",
     "The node has seen them before. A duplicate bans bytes that stay in the pool."},
    {NODE(1013), REFUSAL_POOLED, PROVES_POOLED, "Transaction Already Imported: Any { .. }",
     OF_A_POOL},
    {NODE(1014), REFUSAL_UNDERPRICED, PROVES_NOTHING, "Priority is too low: (18 vs 18)",
     "The pool holds an extrinsic at this nonce and does not name it."},
    {NODE(1015), REFUSAL_BUSY, PROVES_NOT_TAKEN, "Cycle Detected", BEFORE_THE_IMPORT},
    {NODE(1016), REFUSAL_POOL_FULL, PROVES_NOTHING,
     "Immediately Dropped: The transaction couldn't enter the pool because of the limit",
     "The pool imports them, announces them to its peers, and then drops them."},
    {NODE(1018), REFUSAL_BUSY, PROVES_NOT_TAKEN, "Unactionable", BEFORE_THE_IMPORT},
    {NODE(1019), REFUSAL_INVALID, PROVES_NOT_TAKEN, "No tags provided", BEFORE_THE_IMPORT},
    {NODE(1020), REFUSAL_BUSY, PROVES_NOTHING, "The provided block ID is not valid",
     "The node's best block changed meanwhile."},
    {NODE(1021), REFUSAL_FUTURE, PROVES_NOT_TAKEN, "The pool is not accepting future transactions",
     BEFORE_THE_IMPORT},
    {NODE(1040, "codec", "decode", "invalid format"), REFUSAL_INVALID, PROVES_NOT_TAKEN,
     "Client error: Codec error: Not enough data to fill buffer",
     "They do not decode, so no pool can hold them."},
    {NODE(1040), REFUSAL_BUSY, PROVES_NOTHING,
     "Client error: UnknownBlock: State already discarded for 0x11",
     "Any error of the node may have this code."},
    {NODE(-32006), REFUSAL_BUSY, PROVES_NOT_TAKEN, "Too many subscriptions on the connection",
     BEFORE_THE_METHOD},
    {NODE(-32007), REFUSAL_INVALID, PROVES_NOT_TAKEN, "Request is too big",
     "The server answers before it reads the request."},
    {NODES(-32099, -32000), REFUSAL_BUSY, PROVES_NOTHING, "504 Gateway Timeout",
     "Servers and gateways choose these codes: rate limits, time-outs, upstream errors."},
    {NODE(-32600), REFUSAL_BUSY, PROVES_NOTHING, "Invalid request",
     "The relay's request is valid, so something between it and the node is wrong."},
    {NODE(-32601), REFUSAL_BUSY, PROVES_NOTHING, "Method not found",
     "A balancer may have asked a node that has the method before."},
    {NODE(-32602), REFUSAL_BUSY, PROVES_NOTHING, "Invalid params",
     "The relay's parameter is valid, so something between it and the node is wrong."},
    {NODE(-32603), REFUSAL_BUSY, PROVES_NOTHING, "Internal error",
     "Gateways answer it for requests that they passed on."},
    {NODE(-32700), REFUSAL_BUSY, PROVES_NOTHING, "Parse error",
     "A gateway may mean the node's answer."},
    {NODES(-32768, -32100), REFUSAL_BUSY, PROVES_NOTHING, "RPC rate limit exceeded",
     "A limit of a gateway, which may count answers."},
    {NODES(400, 599), REFUSAL_BUSY, PROVES_NOTHING, "Bad Gateway",
     "The status of an HTTP gateway."},
    {ANSWER_OF_NODE,
     INT64_MIN,
     INT64_MAX,
     {0},
     REFUSAL_BUSY,
     PROVES_NOTHING,
     "any other code",
     "What is unknown proves nothing."},

    {WATCH(TX_FUTURE), REFUSAL_NONE, PROVES_POOLED, "future", OF_A_POOL},
    {WATCH(TX_READY), REFUSAL_NONE, PROVES_POOLED, "ready", OF_A_POOL},
    {WATCH(TX_BROADCAST), REFUSAL_NONE, PROVES_POOLED, "broadcast", OF_A_POOL},
    {WATCH(TX_IN_BLOCK), REFUSAL_STALE, PROVES_NOTHING, "inBlock",
     "It may be false, or the block retracted."},
    {WATCH(TX_RETRACTED), REFUSAL_TRANSPORT, PROVES_NOTHING, "retracted",
     "They may be in the pool again."},
    {WATCH(TX_FINALITY_TIMEOUT), REFUSAL_TRANSPORT, PROVES_NOTHING, "finalityTimeout",
     "The node stops watching, and the block may become final."},
    {WATCH(TX_FINALIZED), REFUSAL_STALE, PROVES_NOTHING, "finalized",
     "It may be false. The block itself is the proof."},
    {WATCH(TX_USURPED), REFUSAL_TRANSPORT, PROVES_NOTHING, "usurped", OTHER_POOLS},
    {WATCH(TX_DROPPED), REFUSAL_TRANSPORT, PROVES_NOTHING, "dropped", OTHER_POOLS},
    {WATCH(TX_INVALID), REFUSAL_TRANSPORT, PROVES_NOTHING, "invalid", OTHER_POOLS},
    {ANSWER_OF_WATCH,
     INT64_MIN,
     INT64_MAX,
     {0},
     REFUSAL_TRANSPORT,
     PROVES_NOTHING,
     "error, or the end of the watch",
     OTHER_POOLS},
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

const struct answer *answer_of_watch(enum tx_status status)
{
    return find(ANSWER_OF_WATCH, status, "");
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
    [REFUSAL_INVALID] = "ends the transaction",
    [REFUSAL_TRAPPED] = "retries, then ends the transaction",
    [REFUSAL_TRANSPORT] = "probes",
    [REFUSAL_GATE] = "waits for the gate",
    [REFUSAL_BUSY] = "retries",
};

static const char *const proofs[] = {
    [PROVES_POOLED] = "in a pool",
    [PROVES_NOT_TAKEN] = "not taken",
    [PROVES_NOTHING] = "nothing",
};

static void codes(const struct answer *a, struct buf *out)
{
    if (a->from == ANSWER_OF_WATCH)
        buf_puts(out, "status");
    else if (a->first == INT64_MIN)
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
    buf_puts(out, "| code | text | the leader | proves | because |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct answer *a = &table[i];
        buf_puts(out, "| ");
        codes(a, out);
        buf_printf(out, " | %s | %s | %s | %s |\n", a->text, actions[a->means], proofs[a->proves],
                   a->reason);
    }
}
