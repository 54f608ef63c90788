/* Any bytes as a call and as an extrinsic, for people: what is shown makes a call again, which is
 * shown in the same way. */
#include <jansson.h>
#include <string.h>

#include "base/check.h"
#include "chain/codec/codec.h"
#include "chain/codec/extrinsic.h"
#include "fuzz_runtime.h"

/* The bytes are the same but for the padding of bit sequences: a second round changes nothing at
 * all. */
static void again(const struct metadata *md, const uint8_t *call, size_t len, struct buf *shown)
{
    struct buf bytes = {0}, twice = {0}, shown_again = {0};
    struct err err = {0};
    uint32_t type = metadata_type_call(md);
    INVARIANT(codec_from_json(md, type, buf_str(shown), &bytes, &err) == 0);
    INVARIANT(bytes.len == len && memcmp(bytes.data, call, 2) == 0);
    INVARIANT(codec_call_to_readable(md, bytes.data, bytes.len, &shown_again, &err) == 0);
    INVARIANT(shown_again.len == shown->len &&
              memcmp(shown_again.data, shown->data, shown->len) == 0);
    INVARIANT(codec_from_json(md, type, buf_str(&shown_again), &twice, &err) == 0);
    INVARIANT(twice.len == bytes.len && memcmp(twice.data, bytes.data, bytes.len) == 0);
    buf_done(&bytes);
    buf_done(&twice);
    buf_done(&shown_again);
}

static void as_extrinsic(const struct metadata *md, const uint8_t *data, size_t size, bool plain)
{
    struct buf shown = {0};
    struct err err = {0};
    if (extrinsic_to_json(md, data, size, plain, &shown, &err) == 0) {
        json_t *json = json_loadb((const char *)shown.data, shown.len,
                                  JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        INVARIANT(json_is_object(json_object_get(json, "call")));
        json_decref(json);
    } else {
        INVARIANT(shown.len == 0);
    }
    buf_done(&shown);
}

/* Most bytes have no right length in front: give them one. */
static void with_length(const struct metadata *md, const uint8_t *data, size_t size)
{
    struct buf framed = {0};
    scale_put_bytes(&framed, data, size);
    as_extrinsic(md, framed.data, framed.len, false);
    buf_done(&framed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct metadata *md = fuzz_runtime();
    struct buf shown = {0};
    struct err err = {0};
    int whole = codec_check_call(md, data, size, &err);
    INVARIANT(codec_call_to_readable(md, data, size, &shown, &err) == whole);
    if (whole == 0)
        again(md, data, size, &shown);
    else
        INVARIANT(shown.len == 0);
    buf_done(&shown);
    as_extrinsic(md, data, size, true);
    with_length(md, data, size);
    return 0;
}
