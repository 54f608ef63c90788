/* SCALE primitives. Only take() moves the position of a reader and sets `bad` for a short input. A
 * bad reader has no bytes left. */
#include "chain/codec/scale.h"

#include <string.h>

#include "base/check.h"

static void spoil(struct scale_in *in)
{
    in->bad = true;
    in->p = in->end;
}

/* NULL if bad. */
static const uint8_t *take(struct scale_in *in, size_t n)
{
    PRE(in->p <= in->end);
    if (in->bad || n > scale_left(in)) {
        spoil(in);
        return NULL;
    }
    const uint8_t *at = in->p;
    in->p += n;
    return at;
}

/* Little endian. */
static u128 take_le(struct scale_in *in, size_t n)
{
    PRE(n > 0 && n <= 16);
    const uint8_t *at = take(in, n);
    u128 v = 0;
    if (at)
        for (size_t i = n; i > 0; i--)
            v = v << 8 | at[i - 1];
    return v;
}

uint8_t scale_get_u8(struct scale_in *in)
{
    return (uint8_t)take_le(in, 1);
}

uint32_t scale_get_u32(struct scale_in *in)
{
    return (uint32_t)take_le(in, 4);
}

uint64_t scale_get_u64(struct scale_in *in)
{
    return (uint64_t)take_le(in, 8);
}

u128 scale_get_u128(struct scale_in *in)
{
    return take_le(in, 16);
}

bool scale_get_bool(struct scale_in *in)
{
    uint8_t v = scale_get_u8(in);
    if (v > 1)
        spoil(in);
    return v == 1;
}

/* The two low bits of the first byte give the form: one, two or four bytes with the value above
 * those bits; or (3) the number of bytes minus four in the upper bits, and the value in the
 * following bytes. */
u128 scale_get_compact(struct scale_in *in)
{
    static const size_t width[3] = {1, 2, 4};
    static const uint32_t least[3] = {0, 1u << 6, 1u << 14};
    if (in->bad || scale_left(in) == 0) {
        spoil(in);
        return 0;
    }
    unsigned mode = *in->p & 3;
    u128 v;
    bool minimal;
    if (mode < 3) {
        v = take_le(in, width[mode]) >> 2;
        minimal = v >= least[mode];
    } else {
        size_t n = 4 + (size_t)(scale_get_u8(in) >> 2);
        if (n > 16) {
            spoil(in);
            return 0;
        }
        v = take_le(in, n);
        minimal = n == 4 ? v >= 1u << 30 : v >> (8 * (n - 1)) != 0;
    }
    if (!minimal) {
        spoil(in);
        return 0;
    }
    return v;
}

uint32_t scale_get_compact_u32(struct scale_in *in)
{
    u128 v = scale_get_compact(in);
    if (v > UINT32_MAX) {
        spoil(in);
        return 0;
    }
    return (uint32_t)v;
}

size_t scale_get_len(struct scale_in *in)
{
    uint32_t n = scale_get_compact_u32(in);
    if (n > scale_left(in)) {
        spoil(in);
        return 0;
    }
    return n;
}

const uint8_t *scale_get_bytes(struct scale_in *in, size_t n)
{
    static const uint8_t nothing[1] = {0};
    if (n == 0 && !in->bad)
        return in->p ? in->p : nothing;
    return take(in, n);
}

static void put_le(struct buf *b, u128 v, size_t n)
{
    uint8_t out[16];
    for (size_t i = 0; i < n; i++, v >>= 8)
        out[i] = (uint8_t)v;
    buf_put(b, out, n);
}

void scale_put_u16(struct buf *b, uint16_t v)
{
    put_le(b, v, 2);
}

void scale_put_u32(struct buf *b, uint32_t v)
{
    put_le(b, v, 4);
}

void scale_put_u64(struct buf *b, uint64_t v)
{
    put_le(b, v, 8);
}

void scale_put_u128(struct buf *b, u128 v)
{
    put_le(b, v, 16);
}

void scale_put_compact(struct buf *b, u128 v)
{
    if (v < 1u << 6) {
        put_le(b, v << 2, 1);
    } else if (v < 1u << 14) {
        put_le(b, v << 2 | 1, 2);
    } else if (v < 1u << 30) {
        put_le(b, v << 2 | 2, 4);
    } else {
        size_t n = 4;
        while (n < 16 && v >> (8 * n))
            n++;
        buf_put_u8(b, (uint8_t)((n - 4) << 2 | 3));
        put_le(b, v, n);
    }
}

void scale_put_bytes(struct buf *b, const void *data, size_t n)
{
    PRE(n <= UINT32_MAX);
    scale_put_compact(b, n);
    buf_put(b, data, n);
}

void scale_put_str(struct buf *b, const char *s)
{
    scale_put_bytes(b, s, strlen(s));
}
