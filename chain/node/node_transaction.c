/* What the events of transactionWatch_v1 mean in the older JSON-RPC (polkadot-sdk,
 * client/rpc-spec-v2/src/transaction/event.rs, error.rs).
 *
 * The node answers each submission with an id. A refusal is the first event, with a text in place
 * of the code and data that author_submitExtrinsic answers: the table `refusals` has both, so that
 * one table of answers (docs/answers.md) decides. The same events come when a pool lets go of what
 * it had, with the texts in `endings`. */
#include "node_transaction.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "node_wire.h"

static const struct {
    const char *text; /* it begins so */
    int64_t code;
    const char *message;
    const char *data; /* before what follows `text`; NULL: no data */
} refusals[] = {
    {"Extrinsic bytes cannot be decoded", 1001, "Extrinsic has invalid format", NULL},
    {"Verification error: ", 1002, "Verification Error", ""},
    {"Invalid transaction with custom error: ", 1010, "Invalid Transaction", "Custom error: "},
    {"Invalid transaction: ", 1010, "Invalid Transaction", ""},
    {"Unknown transaction validity: ", 1011, "Unknown Transaction Validity", ""},
    {"Transaction is temporarily banned", 1012, "Transaction is temporarily banned", NULL},
    {"Transaction is already imported", 1013, "Transaction Already Imported", NULL},
    {"The priority of the transaction is too low", 1014, "Priority is too low", ""},
    {"The transaction contains a cyclic dependency", 1015, "Cycle Detected", NULL},
    {"The transaction could not enter the pool", 1016, "Immediately Dropped", ""},
    {"Transaction cannot be propagated", 1018, "Unactionable", ""},
    {"Transaction does not provide any tags", 1019, "No tags provided", ""},
    {"The provided block ID is not valid", 1020, "The provided block ID is not valid", NULL},
    {"The pool is not accepting future transactions", 1021,
     "The pool is not accepting future transactions", NULL},
};

static const struct {
    const char *text;
    enum tx_status status;
} endings[] = {
    {"Extrinsic marked as invalid", TX_INVALID},
    {"Extrinsic was rendered invalid by another extrinsic", TX_INVALID},
    {"Extrinsic dropped from the pool", TX_DROPPED},
    {"Maximum number of finality watchers", TX_DROPPED},
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void refusal(const char *text, struct transaction_event *ret)
{
    ret->kind = TRANSACTION_REFUSED;
    snprintf(ret->message, sizeof(ret->message), "%s", text);
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        if (!begins(text, refusals[i].text))
            continue;
        ret->code = refusals[i].code;
        snprintf(ret->message, sizeof(ret->message), "%s", refusals[i].message);
        if (refusals[i].data)
            snprintf(ret->data, sizeof(ret->data), "%s%s", refusals[i].data,
                     text + strlen(refusals[i].text));
        return;
    }
}

static void ending(const struct jv *item, enum tx_status status, struct transaction_event *ret)
{
    char text[160];
    jv_copy(jv_get(item, "error"), text, sizeof(text));
    ret->status = status;
    for (size_t i = 0; i < ARRAY_LEN(endings); i++)
        if (begins(text, endings[i].text)) {
            ret->kind = TRANSACTION_IS;
            ret->status = endings[i].status;
            return;
        }
    refusal(text, ret);
}

static bool in_block(const struct jv *item, enum tx_status status, struct transaction_event *ret)
{
    const struct jv *block = jv_get(item, "block");
    ret->kind = TRANSACTION_IS;
    ret->status = status;
    ret->has_block = wire_hash(jv_get(block, "hash"), ret->block);
    return ret->has_block;
}

bool transaction_event_read(const struct jv *item, struct transaction_event *ret)
{
    const struct jv *name = jv_get(item, "event");
    *ret = (struct transaction_event){.kind = TRANSACTION_OTHER};
    if (jv_equals(name, "finalized"))
        return in_block(item, TX_FINALIZED, ret);
    if (jv_equals(name, "bestChainBlockIncluded")) {
        if (!jv_is(jv_get(item, "block"), JV_NULL))
            return in_block(item, TX_IN_BLOCK, ret);
        ret->kind = TRANSACTION_NOT_IN;
        ret->status = TX_RETRACTED;
    } else if (jv_equals(name, "validated") || jv_equals(name, "broadcasted")) {
        ret->kind = TRANSACTION_IS;
        ret->status = jv_equals(name, "validated") ? TX_READY : TX_BROADCAST;
    } else if (jv_equals(name, "invalid")) {
        ending(item, TX_INVALID, ret);
    } else if (jv_equals(name, "dropped")) {
        ending(item, TX_DROPPED, ret);
    } else if (jv_equals(name, "error")) {
        ending(item, TX_DROPPED, ret);
        if (ret->kind == TRANSACTION_IS)
            ret->kind = TRANSACTION_UNTRACKED;
    }
    return true;
}
