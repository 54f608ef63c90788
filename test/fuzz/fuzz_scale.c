/* The first bytes choose reads, the rest is read: no read leaves the input, a bad reader stays bad
 * and yields zeros, and a compact number that was accepted is written back as the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "chain/codec/scale.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_compact(struct scale_in *in)
{
    const uint8_t *at = in->p;
    struct buf b = {0};
    char text[40];
    u128 again;
    u128 v = scale_get_compact(in);
    if (!in->bad) {
        scale_put_compact(&b, v);
        INVARIANT(b.len == (size_t)(in->p - at) && memcmp(b.data, at, b.len) == 0);
        INVARIANT(u128_parse(u128_text(v, text), &again) && again == v);
    }
    buf_done(&b);
}

static void read_bytes(struct scale_in *in)
{
    struct buf copy = {0};
    size_t n = scale_get_len(in);
    const uint8_t *p = scale_get_bytes(in, n);
    INVARIANT((p == NULL) == in->bad);
    if (p)
        buf_put(&copy, p, n); /* touches every byte */
    buf_done(&copy);
}

static void read_one(struct scale_in *in, uint8_t op)
{
    switch (op % 9) {
    case 0:
        scale_get_u8(in);
        break;
    case 1:
        scale_get_len(in);
        break;
    case 2:
        scale_get_u32(in);
        break;
    case 3:
        scale_get_u64(in);
        break;
    case 4:
        scale_get_u128(in);
        break;
    case 5:
        scale_get_bool(in);
        break;
    case 6:
        scale_get_compact_u32(in);
        break;
    case 7:
        read_bytes(in);
        break;
    default:
        read_compact(in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t ops = data[0] % 16 < size ? data[0] % 16 : size - 1;
    struct scale_in in = scale_in_of(data + 1 + ops, size - 1 - ops);
    for (size_t i = 0; i < ops; i++) {
        bool was_bad = in.bad;
        read_one(&in, data[1 + i]);
        INVARIANT(!was_bad || in.bad);
        INVARIANT(in.p <= in.end && (!in.bad || scale_left(&in) == 0));
    }
    in = scale_in_of(data, size);
    while (!in.bad && scale_left(&in) > 0)
        read_compact(&in);
    return 0;
}
