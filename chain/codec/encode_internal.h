/* What the files that make SCALE bytes from JSON share: encode.c walks, the others write the leaves. */
#ifndef CHAIN_CODEC_ENCODE_INTERNAL_H
#define CHAIN_CODEC_ENCODE_INTERNAL_H

#include <jansson.h>

#include "codec_internal.h"
#include "edit_distance.h"

struct encoder {
    const struct metadata *md;
    struct buf *out;
    struct err *err;
    struct codec_path path;
};

/* encode.c */
int encode__value(struct encoder *e, uint32_t id, const json_t *value);
int encode__child(struct encoder *e, uint32_t id, const char *name, uint32_t index, const json_t *value);
int encode__fields(struct encoder *e, uint32_t first, uint32_t count, const json_t *value);

/* encode_refuse.c: ERR_ARGUMENT with the path; the second form names the wanted type and the value given, and
 * ends with the way out. */
int encode__refuse(struct encoder *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int encode__unfit(struct encoder *e, const struct type *t, const json_t *value, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int encode__too_deep(struct encoder *e);
/* The value's text; NULL: it is none, or goes on after a zero (only str and bytes may hold one). */
const char *encode__text(const json_t *value);
/* 0x text at the value? */
bool encode__is_hex(const json_t *value);

/* encode_leaf.c */
int encode__prim(struct encoder *e, const struct type *t, const json_t *value);
int encode__u256(struct encoder *e, const struct type *t, const json_t *value);
int encode__compact(struct encoder *e, const struct type *t, const json_t *value);
int encode__bytes(struct encoder *e, const struct type *t, const json_t *value);
int encode__bits(struct encoder *e, const struct type *t, const json_t *value);
int encode__era(struct encoder *e, const struct type *t, const json_t *value); /* {"period", "phase"} */

/* encode_account.c */
int encode__account(struct encoder *e, const struct type *t, const json_t *value);
/* An account alone stands for MultiAddress::Id. */
int encode__address(struct encoder *e, const struct type *t, const json_t *value);

/* encode_call.c: a call inside of a value: {"pallet", "call", "args"} or its bytes as 0x. false: neither. */
bool encode__is_call(const json_t *value);
int encode__call(struct encoder *e, const json_t *value);

#endif
