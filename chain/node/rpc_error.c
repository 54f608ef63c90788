/* The error answers of nodes and of the gateways before them. The first row that fits is the
 * answer's. Codes and messages: polkadot-sdk (client/rpc-api), jsonrpsee (types/src/error.rs), and
 * what public gateways answer. */
#define _GNU_SOURCE
#include "chain/node/rpc_error.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* Errors of a pool: their texts tell of limits that are not the endpoint's. */
#define POOL   1000, 1999
#define SERVER -32768, -32000
#define HTTP   400, 599
#define ANY    INT64_MIN, INT64_MAX

static const struct rpc_error_row table[] = {
    {-32006, -32006, {0}, RPC_ERROR_WATCHES, "Too many subscriptions on the connection"},
    {-32601, -32601, {0}, RPC_ERROR_METHOD, "RPC call is unsafe to be called externally"},
    {-32801, -32801, {0}, RPC_ERROR_BLOCK, "Invalid block hash"}, /* chainHead_v1: not pinned */
    {-32007, -32007, {0}, RPC_ERROR_SIZE, "Request is too big"},
    {-32008, -32008, {0}, RPC_ERROR_SIZE, "Response is too big"},
    {-32005, -32005, {0}, RPC_ERROR_PACE, "Too many requests"},
    {-32029, -32029, {0}, RPC_ERROR_PACE, "Too many requests"},
    {-32999, -32999, {0}, RPC_ERROR_PACE, "RPC rate limit exceeded"},
    {-32009, -32009, {0}, RPC_ERROR_PACE, "Server is busy, try again later"},
    {-32604, -32604, {0}, RPC_ERROR_PACE, "Server is busy, try again later"}, /* before 2023 */
    {429, 429, {0}, RPC_ERROR_PACE, "Too Many Requests"},
    {POOL, {0}, RPC_ERROR_OTHER, "Immediately Dropped"},
    {ANY,
     {"discarded", "UnknownBlock", "unknown block", "pruned", "header was not found",
      "block not found"},
     RPC_ERROR_BLOCK,
     "Client error: UnknownBlock: State already discarded for 0x11"},
    {ANY,
     {"unsafe", "method not found", "method not allowed", "method is not", "whitelist", "allowlist",
      "unsupported method"},
     RPC_ERROR_METHOD,
     "method is not available on your plan"},
    {ANY,
     {"too big", "too large", "response size", "request size", "exceeded max limit", "oversized",
      "work limit"},
     RPC_ERROR_SIZE,
     "Exceeded max limit of 15728640 bytes"},
    {SERVER,
     {"limit", "too many", "throttl", "quota", "slow down", "capacity"},
     RPC_ERROR_PACE,
     "daily request limit exceeded"},
    {HTTP,
     {"limit", "too many", "throttl", "quota", "slow down", "capacity"},
     RPC_ERROR_PACE,
     "rate limited"},
    {-32004, -32004, {0}, RPC_ERROR_DENIED, "Method not supported"},
    {401, 401, {0}, RPC_ERROR_DENIED, "Unauthorized"},
    {402, 402, {0}, RPC_ERROR_DENIED, "Payment Required"},
    {403, 403, {0}, RPC_ERROR_DENIED, "Forbidden"},
    {405, 405, {0}, RPC_ERROR_DENIED, "Not Allowed"},
    {ANY,
     {"not supported", "does not exist", "not available", "not permitted", "not authorized",
      "unauthorized", "forbidden", "denied", "disabled", "restricted", "blacklist", "your plan"},
     RPC_ERROR_DENIED,
     "access denied"},
    {ANY, {0}, RPC_ERROR_OTHER, "Internal error"},
};

static bool says(const struct rpc_error_row *row, const char *message, const char *data)
{
    for (size_t i = 0; i < ARRAY_LEN(row->words) && row->words[i]; i++)
        if (strcasestr(message, row->words[i]) || strcasestr(data, row->words[i]))
            return true;
    return !row->words[0];
}

enum rpc_error rpc_error_of(int64_t code, const char *message, const char *data)
{
    PRE(message && data);
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (code >= table[i].first && code <= table[i].last && says(&table[i], message, data))
            return table[i].means;
    UNREACHABLE();
}

const struct rpc_error_row *rpc_error_row(size_t i)
{
    return i < ARRAY_LEN(table) ? &table[i] : NULL;
}

const char *rpc_error_name(enum rpc_error e)
{
    static const char *const names[] = {
        [RPC_ERROR_NONE] = "none",
        [RPC_ERROR_METHOD] = "not this method",
        [RPC_ERROR_DENIED] = "denied",
        [RPC_ERROR_BLOCK] = "not this block",
        [RPC_ERROR_SIZE] = "too large",
        [RPC_ERROR_PACE] = "too many",
        [RPC_ERROR_WATCHES] = "too many subscriptions",
        [RPC_ERROR_OTHER] = "broken",
    };
    return names[e];
}

/* ---- "try again in 2.5 seconds", "retry_after": 30, "retry after 500ms" ---- */

enum { HOUR_MS = 3600000 };

static uint64_t time_after(const char *word)
{
    enum { NEAR = 24 }; /* characters between the word and its number */
    const char *p = word;
    while (*p && !isdigit((unsigned char)*p) && p - word < NEAR)
        p++;
    if (!isdigit((unsigned char)*p))
        return 0;
    char *end;
    double value = strtod(p, &end);
    while (*end == ' ' || *end == '"')
        end++;
    if (strncasecmp(end, "ms", 2) != 0 && strncasecmp(end, "milli", 5) != 0)
        value *= strncasecmp(end, "min", 3) == 0 ? 60000 : 1000;
    return value >= HOUR_MS ? HOUR_MS : (uint64_t)value;
}

static uint64_t said(const char *text)
{
    static const char *const words[] = {"retry", "again in", "try in", "backoff"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        const char *at = strcasestr(text, words[i]);
        uint64_t ms = at ? time_after(at + strlen(words[i])) : 0;
        if (ms)
            return ms;
    }
    return 0;
}

uint64_t rpc_error_retry_ms(const char *message, const char *data)
{
    PRE(message && data);
    uint64_t ms = said(data);
    return ms ? ms : said(message);
}
