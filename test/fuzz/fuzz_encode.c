/* JSON that nearly fits: a call is shown, some of its characters are changed, and it is read again:
 * refused, or bytes that check. Input: how many changes, each as two bytes of place and one of
 * character, then the call. */
#include <string.h>

#include "base/check.h"
#include "chain/codec/codec.h"
#include "fuzz_runtime.h"

static void read_again(const struct metadata *md, struct buf *text)
{
    struct buf out = {0}, shown = {0};
    struct err err = {0};
    if (codec_from_json(md, metadata_type_call(md), buf_str(text), &out, &err) == 0) {
        INVARIANT(codec_check_call(md, out.data, out.len, &err) == 0);
        INVARIANT(codec_call_to_readable(md, out.data, out.len, &shown, &err) == 0);
    } else {
        INVARIANT(err.code == ERR_ARGUMENT && err.text[0] && out.len == 0);
    }
    buf_done(&out);
    buf_done(&shown);
}

static void change(struct buf *text, const uint8_t *changes, size_t count)
{
    for (size_t i = 0; i < count && text->len; i++, changes += 3)
        text->data[((size_t)changes[0] | (size_t)changes[1] << 8) % text->len] = changes[2];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct metadata *md = fuzz_runtime();
    struct buf text = {0};
    struct err err = {0};
    size_t count = size ? data[0] % 8 : 0;
    if (size < 1 + 3 * count + 2)
        return 0;
    const uint8_t *call = data + 1 + 3 * count;
    size_t len = size - 1 - 3 * count;
    if (codec_call_to_readable(md, call, len, &text, &err) != 0) /* then the bytes are the text */
        buf_put(&text, call, len);
    change(&text, data + 1, count);
    read_again(md, &text);
    buf_done(&text);
    return 0;
}
