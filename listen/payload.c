/* NOTIFY payloads, in the form of the triggers in schema/functions. */
#include "listen/payload.h"

#include <jansson.h>
#include <string.h>

#include "base/hex.h"
#include "base/tx.h"
#include "time_text.h"

enum { WORD_MAX = 23 /* state, outcome */, TRACE_MAX = TX_TRACE_SIZE - 1 };

static json_t *load(const char *text, size_t len)
{
    if (len == 0 || len > LISTEN_PAYLOAD_MAX)
        return NULL;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    if (root && !json_is_object(root)) {
        json_decref(root);
        root = NULL;
    }
    return root;
}

/* Each returns whether the member is valid. A member that may be missing or null stays unchanged
 * then. */

static const json_t *member(const json_t *root, const char *name)
{
    const json_t *v = json_object_get(root, name);
    return json_is_null(v) ? NULL : v;
}

static bool number(const json_t *root, const char *name, bool needed, int64_t least, int64_t most,
                   int64_t *ret)
{
    const json_t *v = member(root, name);
    if (!v)
        return !needed;
    if (!json_is_integer(v) || json_integer_value(v) < least || json_integer_value(v) > most)
        return false;
    *ret = json_integer_value(v);
    return true;
}

static bool text_of(const json_t *root, const char *name, bool needed, size_t most,
                    const char **ret)
{
    const json_t *v = member(root, name);
    if (!v)
        return !needed;
    if (!json_is_string(v) || json_string_length(v) > most)
        return false;
    *ret = json_string_value(v);
    return true;
}

static bool hash_of(const json_t *root, const char *name, bool needed, uint8_t ret[32],
                    bool *ret_has)
{
    const char *hex = NULL;
    *ret_has = false;
    if (!text_of(root, name, needed, 66, &hex))
        return false;
    if (!hex)
        return true;
    *ret_has = strlen(hex) == 66 && hex_decode_fixed(hex, 66, ret, 32);
    return *ret_has;
}

static bool account_of(const json_t *root, struct listen_event *ev)
{
    const char *hex = NULL;
    int64_t account = 0;
    if (!text_of(root, "account_id", true, 66, &hex) ||
        !number(root, "account", false, 1, INT32_MAX, &account))
        return false;
    ev->account = (int32_t)account;
    ev->account_id_len = strlen(hex) == 66 ? 32 : 20;
    return (strlen(hex) == 66 || strlen(hex) == 42) &&
           hex_decode_fixed(hex, strlen(hex), ev->account_id, ev->account_id_len);
}

static bool word_fits(const char *word)
{
    for (; *word; word++)
        if ((*word < 'a' || *word > 'z') && *word != '_')
            return false;
    return true;
}

static bool row_of(const json_t *root, enum listen_kind kind, struct listen_event *ev)
{
    bool removed = kind == LISTEN_REMOVED;
    const char *updated = NULL;
    *ev = (struct listen_event){.kind = kind,
                                .nonce = -1,
                                .block_number = -1,
                                .alias = "",
                                .state = "",
                                .outcome = "",
                                .error = "",
                                .creator = "",
                                .trace = ""};
    return account_of(root, ev) && number(root, "nonce", !removed, 0, INT64_MAX, &ev->nonce) &&
           number(root, "id", false, 1, INT64_MAX, &ev->id) &&
           hash_of(root, "hash", !removed, ev->hash, &ev->has_hash) &&
           hash_of(root, "block_hash", false, ev->block_hash, &ev->has_block) &&
           text_of(root, "state", !removed, WORD_MAX, &ev->state) && word_fits(ev->state) &&
           text_of(root, "outcome", false, WORD_MAX, &ev->outcome) && word_fits(ev->outcome) &&
           text_of(root, "creator_id", false, LISTEN_PAYLOAD_MAX, &ev->creator) &&
           text_of(root, "traceparent", false, TRACE_MAX, &ev->trace) &&
           text_of(root, "updated_at", !removed, 40, &updated) &&
           (!updated || listen__time_parse(updated, &ev->updated_at_us)) &&
           (ev->nonce >= 0 || ev->id);
}

bool listen_payload_row(const char *text, size_t len, enum listen_kind kind,
                        struct listen_payload *ret)
{
    json_t *root = load(text, len);
    *ret = (struct listen_payload){.root = root};
    if (root && row_of(root, kind, &ret->event))
        return true;
    listen_payload_done(ret);
    return false;
}

bool listen_payload_leader(const char *text, size_t len, struct listen_payload *ret)
{
    json_t *root = load(text, len);
    int64_t account = 0, epoch = 0;
    *ret = (struct listen_payload){.root = root, .leader = {.holder = "", .address = ""}};
    if (root && number(root, "account", true, 1, INT32_MAX, &account) &&
        number(root, "epoch", true, 0, INT64_MAX, &epoch) &&
        text_of(root, "holder", false, LISTEN_PAYLOAD_MAX, &ret->leader.holder) &&
        text_of(root, "address", false, LISTEN_PAYLOAD_MAX, &ret->leader.address)) {
        ret->leader.account = (int32_t)account;
        ret->leader.epoch = epoch;
        return true;
    }
    listen_payload_done(ret);
    return false;
}

bool listen_payload_wake(const char *text, size_t len, int32_t *ret_account)
{
    int64_t n = 0;
    if (len == 0 || len > 10)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        n = n * 10 + (text[i] - '0');
    }
    if (n < 1 || n > INT32_MAX)
        return false;
    *ret_account = (int32_t)n;
    return true;
}

void listen_payload_done(struct listen_payload *p)
{
    json_decref(p->root);
    p->root = NULL;
}
