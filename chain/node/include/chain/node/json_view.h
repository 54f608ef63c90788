/* A view of received JSON: values point into the text, nothing is copied. A document's values are
 * in one array, which it reuses for the next text, so reading allocates nothing.
 *
 * The reader accepts exactly the texts of RFC 8259 in UTF-8, without NUL in strings. A fuzzer
 * checks that jansson, which writes what we send, accepts the same (test/fuzz/fuzz_json_view.c). A
 * missing value is NULL; every function accepts NULL and treats it as a value of another kind,
 * unless it says otherwise. */
#ifndef CHAIN_NODE_JSON_VIEW_H
#define CHAIN_NODE_JSON_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum jv_kind { JV_NULL, JV_FALSE, JV_TRUE, JV_NUMBER, JV_STRING, JV_ARRAY, JV_OBJECT };

/* One value. The values inside of it follow it in the array; in an object each one follows its key,
 * a string. */
struct jv {
    const char *text; /* as received; of a string the part between the quotes */
    uint32_t len;
    uint32_t span;  /* elements that it takes, with itself; while it is being read: its parent */
    uint32_t count; /* of the values inside */
    uint8_t kind;   /* enum jv_kind */
    bool escaped;   /* a string with backslashes */
};

struct jv_doc { /* zeroed: an empty document */
    struct jv *values;
    size_t count, cap;
};

enum { JV_DEPTH_MAX = 2048, JV_VALUES_MAX = 1 << 22 };

/* The value of the whole text. It is valid as long as the text, and until the next jv_read or
 * jv_done of the document. NULL: ret_err (ERR_PROTOCOL) says what is wrong, and at which byte. */
const struct jv *jv_read(struct jv_doc *doc, const char *text, size_t len, struct err *ret_err);
void jv_trim(struct jv_doc *doc); /* free the memory of an unusually large text */
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
const struct jv *jv_get(const struct jv *object,
                        const char *key); /* if a key is repeated: the last one */
/* The first pair of an object. False: there is none. */
bool jv_pair(const struct jv *object, const struct jv **ret_key, const struct jv **ret_value);

bool jv_equals(const struct jv *string, const char *text); /* false also if it is not a string */
/* Copy a string, cut to fit, with a NUL; returns its full length. Not a string: "". */
size_t jv_copy(const struct jv *string, char *out, size_t size);
bool jv_int(const struct jv *number, int64_t *ret); /* false: not an int64; *ret is unchanged */
/* Decode a string of hexadecimal digits, as hex_decode and hex_decode_fixed. */
bool jv_hex(const struct jv *string, struct buf *out);
bool jv_hex_fixed(const struct jv *string, uint8_t *out, size_t n);
/* The text of a value; of a string with its quotes. PRE: v is not NULL. */
const char *jv_raw(const struct jv *v, size_t *ret_len);
/* Copy the text of any value without white space between its parts, cut as by jv_copy. */
size_t jv_text(const struct jv *v, char *out, size_t size);

#endif
