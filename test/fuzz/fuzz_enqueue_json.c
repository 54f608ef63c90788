/* Any bytes as a transaction in JSON, and as what is asked for later: refused by name, or a request
 * of the store whose parts are sound. */
#include <string.h>

#include "base/check.h"
#include "chain/codec/scale.h"
#include "service/enqueue_json.h"

static void enqueue(json_t *request)
{
    struct enqueue_json x = {0};
    struct err err;
    u128 amount;
    if (enqueue_json_read(&x, request, &err) == 0) {
        INVARIANT(x.req.account && x.req.call.data && x.req.retries <= 100);
        INVARIANT(x.req.not_before_ms >= 0 && x.req.deadline_ms >= 0 && x.req.delay_ms >= 0 &&
                  x.req.expires_in_ms >= 0 && x.req.deadline_block >= 0);
        INVARIANT(!x.req.tip || u128_parse(x.req.tip, &amount));
        INVARIANT(!x.req.max_tip || u128_parse(x.req.max_tip, &amount));
    } else {
        INVARIANT(err.code == ERR_ARGUMENT && err.text[0]);
    }
    enqueue_json_done(&x);
}

static void ask(const char *cmd, json_t *request)
{
    struct ask_json x = {0};
    struct err err;
    if (ask_json_read(&x, cmd, request, &err) == 0)
        INVARIANT(x.start && (x.req.account || x.req.id > 0));
    else
        INVARIANT(err.code == ERR_ARGUMENT && err.text[0]);
    ask_json_done(&x);
}

/* A request that is right but for one field, which has the bytes as its value: text, or what JSON
 * they are. */
static json_t *with_field(const uint8_t *data, size_t size)
{
    static const char *const fields[] = {
        "account",      "call", "key",     "creator",        "priority", "not_before", "deadline",
        "spec_version", "tip",  "max_tip", "deadline_block", "retries",  "id",         "unknown"};
    json_t *value = data[1] % 2
                        ? json_stringn((const char *)data + 2, size - 2)
                        : json_loadb((const char *)data + 2, size - 2, JSON_DECODE_ANY, NULL);
    json_t *request = json_pack("{s:s, s:s}", "account", "alice", "call", "0x00");
    if (value)
        json_object_set_new(request, fields[data[0] % ARRAY_LEN(fields)], value);
    return request;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const cmds[] = {"cancel", "bump", "resume"};
    json_t *request = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    if (!request && size > 2)
        request = with_field(data, size);
    if (!request)
        return 0;
    enqueue(request);
    for (size_t i = 0; i < ARRAY_LEN(cmds); i++)
        ask(cmds[i], request);
    json_decref(request);
    return 0;
}
