/* Shared by the files that turn JSON into SCALE bytes: encode.c walks, the others write the
 * leaves. */
#ifndef CHAIN_CODEC_ENCODE_INTERNAL_H
#define CHAIN_CODEC_ENCODE_INTERNAL_H

#include <jansson.h>

#include "base/near.h"
#include "codec_internal.h"

struct encoder {
    const struct metadata *md;
    struct buf *out;
    struct err *err;
    struct codec_path path;
};

/* encode.c */
int encode__value(struct encoder *e, uint32_t id, const json_t *value);
int encode__child(struct encoder *e, uint32_t id, const char *name, uint32_t index,
                  const json_t *value);
int encode__fields(struct encoder *e, uint32_t first, uint32_t count, const json_t *value);

/* encode_refuse.c: return ERR_ARGUMENT with the path. encode__unfit also names the expected type
 * and the given value, and ends with what to write instead. */
int encode__refuse(struct encoder *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int encode__unfit(struct encoder *e, const struct type *t, const json_t *value, const char *fmt,
                  ...) __attribute__((format(printf, 4, 5)));
int encode__too_deep(struct encoder *e);
/* The value's text. NULL: the value is not a string, or has a NUL inside (only str and bytes
 * may). */
const char *encode__text(const json_t *value);
/* Is the value text that starts with 0x? */
bool encode__is_hex(const json_t *value);

/* encode_leaf.c */
int encode__prim(struct encoder *e, const struct type *t, const json_t *value);
int encode__u256(struct encoder *e, const struct type *t, const json_t *value);
int encode__compact(struct encoder *e, const struct type *t, const json_t *value);
int encode__bytes(struct encoder *e, const struct type *t, const json_t *value);
int encode__bits(struct encoder *e, const struct type *t, const json_t *value);
int encode__era(struct encoder *e, const struct type *t,
                const json_t *value); /* {"period", "phase"} */

/* encode_account.c */
int encode__account(struct encoder *e, const struct type *t, const json_t *value);
/* Accepts a bare account for MultiAddress::Id. */
int encode__address(struct encoder *e, const struct type *t, const json_t *value);

/* encode_call.c: a call inside of a value, as {"pallet", "call", "args"} or as its bytes in 0x.
 * False: it is neither. */
bool encode__is_call(const json_t *value);
int encode__call(struct encoder *e, const json_t *value);

#endif
