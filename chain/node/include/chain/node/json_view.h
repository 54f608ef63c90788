/* JSON that was received, read where it lies: values point into the text, nothing is copied. The values of a
 * document stand in one array that the document keeps for the next text, so reading allocates nothing.
 *
 * Exactly the texts of RFC 8259 in UTF-8 are taken, without NUL in strings; jansson, which writes what we
 * send, agrees (test/fuzz/fuzz_json_view.c). A missing value is NULL, and what reads a
 * value takes that for one of another kind. */
#ifndef CHAIN_NODE_JSON_VIEW_H
#define CHAIN_NODE_JSON_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum jv_kind { JV_NULL, JV_FALSE, JV_TRUE, JV_NUMBER, JV_STRING, JV_ARRAY, JV_OBJECT };

/* One value. The values in it follow it in the array; in an object each one after its key, a string. */
struct jv {
    const char *text; /* as it came; of a string what is between the quotes */
    uint32_t len;
    uint32_t span;  /* elements of the array that it takes, itself included; while it is open: its parent */
    uint32_t count; /* of the values in it */
    uint8_t kind;   /* enum jv_kind */
    bool escaped;   /* a string with backslashes */
};

struct jv_doc { /* zeroed is an empty one */
    struct jv *values;
    size_t count, cap;
};

enum { JV_DEPTH_MAX = 2048, JV_VALUES_MAX = 1 << 22 };

/* The value of the whole text, valid until the document is read into again or done, and while the text is.
 * NULL: ret_err (ERR_PROTOCOL) says what is wrong at which byte. */
const struct jv *jv_read(struct jv_doc *doc, const char *text, size_t len, struct err *ret_err);
void jv_trim(struct jv_doc *doc); /* gives back what an unusually large text has taken */
void jv_done(struct jv_doc *doc);

static inline bool jv_is(const struct jv *v, enum jv_kind kind)
{
    return v && v->kind == kind;
}

/* The values of an array:  for (const struct jv *i = jv_first(a); i; i = jv_next(a, i)) */
static inline const struct jv *jv_first(const struct jv *array)
{
    return jv_is(array, JV_ARRAY) && array->count ? array + 1 : NULL;
}

static inline const struct jv *jv_next(const struct jv *array, const struct jv *item)
{
    const struct jv *next = item + item->span;
    return next < array + array->span ? next : NULL;
}

const struct jv *jv_at(const struct jv *array, size_t i);
const struct jv *jv_get(const struct jv *object, const char *key); /* the last of several of that name */
/* The first pair of an object; false: none. */
bool jv_pair(const struct jv *object, const struct jv **ret_key, const struct jv **ret_value);

bool jv_equals(const struct jv *string, const char *text); /* false also when it is no string */
/* A string into out, cut to fit, with a NUL; returns its whole length. No string: "". */
size_t jv_copy(const struct jv *string, char *out, size_t size);
bool jv_int(const struct jv *number, int64_t *ret); /* false: not an integer of that size, ret untouched */
/* Decode a string of hexadecimal; as hex_decode and hex_decode_fixed. */
bool jv_hex(const struct jv *string, struct buf *out);
bool jv_hex_fixed(const struct jv *string, uint8_t *out, size_t n);
/* The text of a value (not NULL), of a string with its quotes. */
const char *jv_raw(const struct jv *v, size_t *ret_len);
/* Any value as text without the white space between its parts, cut as in jv_copy. */
size_t jv_text(const struct jv *v, char *out, size_t size);

#endif
