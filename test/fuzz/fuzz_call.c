/* Any bytes as a call. One that checks prints as JSON, and its JSON gives a call again. */
#include <jansson.h>
#include <string.h>

#include "base/check.h"
#include "chain/codec/codec.h"
#include "fuzz_runtime.h"

/* The bytes need not be the same (padding of bit sequences is lost), but they must be a call. */
static void again(const struct metadata *md, struct buf *json)
{
    struct buf out = {0};
    struct err err;
    json_t *call = json_loadb((const char *)json->data, json->len, JSON_ALLOW_NUL, NULL);
    INVARIANT(json_is_object(call));
    const char *pallet = json_object_iter_key(json_object_iter(call));
    json_t *inner = json_object_get(call, pallet);
    if (json_is_object(inner)) {
        const char *name = json_object_iter_key(json_object_iter(inner));
        struct buf dotted = {0};
        buf_printf(&dotted, "%s.%s", pallet, name);
        char *args = json_dumps(json_object_get(inner, name), JSON_ENCODE_ANY);
        if (codec_call_from_json(md, buf_str(&dotted), args, &out, &err) == 0)
            INVARIANT(codec_check_call(md, out.data, out.len, &err) == 0);
        free(args);
        buf_done(&dotted);
    }
    json_decref(call);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct metadata *md = fuzz_runtime();
    struct buf json = {0};
    struct err err;
    if (codec_check_call(md, data, size, &err) == 0) {
        INVARIANT(codec_call_to_json(md, data, size, &json, &err) == 0);
        again(md, &json);
    } else {
        INVARIANT(codec_call_to_json(md, data, size, &json, &err) != 0 && json.len == 0);
    }
    buf_done(&json);
    return 0;
}
