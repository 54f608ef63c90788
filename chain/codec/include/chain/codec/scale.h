/* SCALE primitives. A reader never passes the end of its input: the first failure sets `bad`, and
 * every later read returns zero. So a caller may read a whole structure and check `bad` once. */
#ifndef CHAIN_CODEC_SCALE_H
#define CHAIN_CODEC_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/u128.h"

struct scale_in {
    const uint8_t *p; /* not owned */
    const uint8_t *end;
    bool bad;
};

static inline struct scale_in scale_in_of(const void *data, size_t len)
{
    const uint8_t *p = (const uint8_t *)data;
    return (struct scale_in){p, len ? p + len : p,
                             false}; /* NULL with length 0 is an empty input */
}

static inline size_t scale_left(const struct scale_in *in)
{
    return (size_t)(in->end - in->p);
}

uint8_t scale_get_u8(struct scale_in *in);
uint32_t scale_get_u32(struct scale_in *in);
uint64_t scale_get_u64(struct scale_in *in);
u128 scale_get_u128(struct scale_in *in);
bool scale_get_bool(struct scale_in *in);
/* Compact<u128>. Bad: the value does not fit 128 bits, or its encoding is not the shortest. */
u128 scale_get_compact(struct scale_in *in);
uint32_t scale_get_compact_u32(struct scale_in *in); /* bad above u32 */
/* The length prefix of a collection. Bad: it exceeds the number of bytes left. A collection of
 * zero-sized elements may be longer than that: read its length with scale_get_compact_u32. */
size_t scale_get_len(struct scale_in *in);
const uint8_t *scale_get_bytes(struct scale_in *in, size_t n); /* into the input; NULL if bad */

void scale_put_u16(struct buf *b, uint16_t v);
void scale_put_u32(struct buf *b, uint32_t v);
void scale_put_u64(struct buf *b, uint64_t v);
void scale_put_u128(struct buf *b, u128 v);
void scale_put_compact(struct buf *b, u128 v);
void scale_put_bytes(struct buf *b, const void *data,
                     size_t n); /* compact length, then the bytes */
void scale_put_str(struct buf *b, const char *s);

#endif
