/* Shared by the walks over SCALE values (skip, print, encode): the path of the walk, and reading of
 * scalars. */
#ifndef CHAIN_CODEC_CODEC_INTERNAL_H
#define CHAIN_CODEC_CODEC_INTERNAL_H

#include "base/check.h"
#include "chain/codec/codec.h"
#include "metadata_internal.h"

enum { CODEC_NO_INDEX = 0xffffffff };
enum {
    CODEC_JSON_MAX = 32 * 1024 * 1024
}; /* bounds the output: zero-sized elements take no input */

/* One level of the path: a name, or an element's index, or neither (a struct of one unnamed
 * field). */
struct codec_step {
    const char *name;
    uint32_t index;
};

struct codec_path {
    struct codec_step steps[CODEC_DEPTH_MAX];
    unsigned depth;
};

struct codec {
    const struct metadata *md;
    struct scale_in *in;
    const uint8_t *start; /* of the whole value; errors give offsets from here */
    struct buf *out;      /* JSON; NULL: skip without printing */
    size_t out_start;
    struct err *err;
    struct codec_path path;
    bool readable; /* see codec_to_readable */
    int prefix;    /* readable: SS58 prefix of the chain; -1: it names none */
};

/* "pallet.call.field[3]"; of a long path only the end. "" at the root. */
enum { CODEC_PATH_TEXT = 140 };
const char *codec__path_text(const struct codec_path *path, char out[CODEC_PATH_TEXT]);

/* Return ERR_DECODE with the path, the offset of `at` and the reason, and mark the input bad. */
int codec__fail(struct codec *c, const uint8_t *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Read scalars. Each returns 0, or fails as codec__fail. */
int codec__take(struct codec *c, size_t n, const uint8_t **ret_bytes);
int codec__count(struct codec *c,
                 uint32_t *ret_count); /* of elements; the caller's reads bound it */
int codec__length(struct codec *c, uint32_t *ret_len); /* of bytes; at least that many are left */
int codec__str(struct codec *c, const uint8_t **ret_text, uint32_t *ret_len); /* valid UTF-8 */
int codec__compact(struct codec *c, const struct type *t, u128 *ret_value);
int codec__bits(struct codec *c, const struct type *t, const uint8_t **ret_bytes,
                uint32_t *ret_bits);
int codec__variant(struct codec *c, const struct type *t, const struct type_variant **ret_variant);
/* May the bytes be shown as text? UTF-8, no control characters except line feed and tab, no
 * characters that are invisible or change the direction of writing. */
bool codec__is_plain_text(const uint8_t *s, uint32_t len);
int codec__check_prim(struct codec *c, enum type_prim prim,
                      const uint8_t *bytes); /* bool and char */

unsigned codec__prim_size(enum type_prim prim); /* bytes; 0: str */
bool codec__prim_is_unsigned(enum type_prim prim);
/* The unsigned primitive in a Compact, which may hold a number or a struct around one. False: it
 * holds something else. */
bool codec__compact_prim(const struct metadata *md, const struct type *t, enum type_prim *ret_prim);
u128 codec__prim_max(enum type_prim prim); /* of an unsigned primitive up to u128 */
/* Bits in one element of a bit sequence's store type. 0: not a store type. */
unsigned codec__store_bits(const struct metadata *md, const struct type *t);
bool codec__msb_first(const struct metadata *md, const struct type *t);
bool codec__is_bytes(const struct metadata *md, const struct type *t); /* Vec<u8>, [u8; n] */
/* A struct of one unnamed field, which is shown as that field. */
bool codec__is_newtype(const struct metadata *md, const struct type *t);
/* Can be shown as null: an Option, or a newtype around one. */
bool codec__is_nullable(const struct metadata *md, uint32_t id);

/* call_names.c. NULL: err is ERR_ARGUMENT and suggests similar names. */
const struct metadata_pallet *codec__pallet_with_calls(const struct metadata *md, const char *name,
                                                       struct err *err);
const struct type_variant *codec__call_named(const struct metadata *md,
                                             const struct metadata_pallet *p, const char *name,
                                             struct err *err);

/* codec_json.c: the plain form of values. */
int codec__print(struct codec *c, uint32_t id);
int codec__print_child(struct codec *c, uint32_t id, const char *name, uint32_t index);
int codec__print_fields(struct codec *c, uint32_t first, uint32_t count, bool lone);
void codec__print_text(struct buf *out, const uint8_t *s, uint32_t len); /* with its quotes */

/* decode.c: print the value if its readable form differs from the plain one. False: it does not
 * differ, and nothing was read. */
bool codec__print_readable(struct codec *c, uint32_t id, int *ret_rc);

/* Go down one level. False: CODEC_DEPTH_MAX is reached; the caller reports it. */
static inline bool codec__enter(struct codec_path *path, const char *name, uint32_t index)
{
    if (path->depth == CODEC_DEPTH_MAX)
        return false;
    path->steps[path->depth++] = (struct codec_step){name, index};
    return true;
}

static inline void codec__leave(struct codec_path *path)
{
    PRE(path->depth > 0);
    path->depth--;
}

#endif
