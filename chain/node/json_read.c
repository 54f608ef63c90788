/* Reads text into an array of values, in one pass and without recursion: an open container stores
 * the index of the container around it. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/node/json_view.h"
#include "json_internal.h"

enum { FIRST_CAP = 64, KEEP_CAP = 1 << 14 };

#define NO_PARENT UINT32_MAX

struct reader {
    struct jv_doc *doc;
    const char *start, *p, *end;
    uint32_t open; /* the innermost open container */
    unsigned depth;
    const char *wrong; /* why the text is refused, at p */
};

static bool refuse(struct reader *r, const char *why)
{
    r->wrong = why;
    return false;
}

/* ---- the array ---- */

static bool add(struct reader *r, enum jv_kind kind, const char *text, size_t len)
{
    struct jv_doc *d = r->doc;
    if (d->count == d->cap) {
        if (d->count == JV_VALUES_MAX)
            return refuse(r, "too many values");
        d->cap = d->cap ? 2 * d->cap : FIRST_CAP;
        d->values = xrealloc(d->values, d->cap * sizeof(*d->values));
    }
    d->values[d->count++] =
        (struct jv){.text = text, .len = (uint32_t)len, .span = 1, .kind = (uint8_t)kind};
    return true;
}

void jv_trim(struct jv_doc *doc)
{
    if (doc->cap > KEEP_CAP)
        jv_done(doc);
}

void jv_done(struct jv_doc *doc)
{
    free(doc->values);
    *doc = (struct jv_doc){0};
}

/* ---- scalars ---- */

/* PRE: p is at the opening quote. */
static bool string(struct reader *r)
{
    const char *text = r->p + 1, *why;
    bool escaped;
    r->p = json__string_end(text, r->end, &escaped, &why);
    if (why)
        return refuse(r, why);
    if (!add(r, JV_STRING, text, (size_t)(r->p - text)))
        return false;
    r->doc->values[r->doc->count - 1].escaped = escaped;
    r->p++;
    return true;
}

static bool digits(struct reader *r)
{
    const char *start = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
        r->p++;
    return r->p > start;
}

static bool number(struct reader *r)
{
    const char *text = r->p;
    bool good;
    if (*r->p == '-')
        r->p++;
    if (r->p < r->end && *r->p == '0') {
        r->p++;
        good = r->p == r->end || *r->p < '0' || *r->p > '9';
    } else {
        good = digits(r);
    }
    if (good && r->p < r->end && *r->p == '.') {
        r->p++;
        good = digits(r);
    }
    if (good && r->p < r->end && (*r->p == 'e' || *r->p == 'E')) {
        r->p++;
        if (r->p < r->end && (*r->p == '+' || *r->p == '-'))
            r->p++;
        good = digits(r);
    }
    return good ? add(r, JV_NUMBER, text, (size_t)(r->p - text)) : refuse(r, "not a number");
}

static bool word(struct reader *r)
{
    static const struct {
        const char *text;
        enum jv_kind kind;
    } words[] = {{"null", JV_NULL}, {"false", JV_FALSE}, {"true", JV_TRUE}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t len = strlen(words[i].text);
        if ((size_t)(r->end - r->p) < len || memcmp(r->p, words[i].text, len) != 0)
            continue;
        const char *text = r->p;
        r->p += len; /* a letter after it is refused because a comma is missing */
        return add(r, words[i].kind, text, len);
    }
    return refuse(r, "no value begins so");
}

/* ---- structure ---- */

/* The next character that is not white space; 0 at the end (0 is not valid in JSON). */
static char skip_space(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
        r->p++;
    return r->p < r->end ? *r->p : 0;
}

static bool open_container(struct reader *r, enum jv_kind kind)
{
    if (r->depth == JV_DEPTH_MAX)
        return refuse(r, "nested too deep");
    if (!add(r, kind, r->p, 0))
        return false;
    uint32_t at = (uint32_t)r->doc->count - 1;
    r->doc->values[at].span = r->open;
    r->open = at;
    r->depth++;
    r->p++;
    return true;
}

static void close_container(struct reader *r)
{
    PRE(r->open != NO_PARENT);
    struct jv *v = &r->doc->values[r->open];
    uint32_t parent = v->span;
    r->p++;
    v->len = (uint32_t)(r->p - v->text);
    v->span = (uint32_t)r->doc->count - r->open;
    r->open = parent;
    r->depth--;
}

static bool key(struct reader *r)
{
    if (skip_space(r) != '"')
        return refuse(r, "a key must be a string");
    if (!string(r))
        return false;
    if (skip_space(r) != ':')
        return refuse(r, "a colon is missing");
    r->p++;
    return true;
}

/* After a value: close the containers that end here. *ret_more: another value follows. */
static bool after_value(struct reader *r, bool *ret_more)
{
    *ret_more = false;
    while (r->open != NO_PARENT) {
        struct jv *v = &r->doc->values[r->open];
        bool object = v->kind == JV_OBJECT;
        char c = skip_space(r);
        v->count++;
        if (c == ',') {
            r->p++;
            *ret_more = true;
            return !object || key(r);
        }
        if (c != (object ? '}' : ']'))
            return refuse(r, object ? "a comma or } is missing" : "a comma or ] is missing");
        close_container(r);
    }
    return true;
}

/* Read one scalar, or open a container. *ret_inside: the container is not empty. */
static bool value(struct reader *r, bool *ret_inside)
{
    char c = skip_space(r);
    *ret_inside = false;
    if (c == '"')
        return string(r);
    if (c == '-' || (c >= '0' && c <= '9'))
        return number(r);
    if (c != '{' && c != '[')
        return word(r);
    if (!open_container(r, c == '{' ? JV_OBJECT : JV_ARRAY))
        return false;
    if (skip_space(r) == (c == '{' ? '}' : ']')) {
        close_container(r);
        return true;
    }
    *ret_inside = true;
    return c == '[' || key(r);
}

static bool whole(struct reader *r)
{
    for (bool more = true; more;) {
        bool inside;
        if (!value(r, &inside))
            return false;
        if (!inside && !after_value(r, &more))
            return false;
    }
    skip_space(r);
    return r->p == r->end || refuse(r, "more follows behind the value");
}

const struct jv *jv_read(struct jv_doc *doc, const char *text, size_t len, struct err *ret_err)
{
    struct reader r = {.doc = doc, .start = text, .p = text, .end = text + len, .open = NO_PARENT};
    doc->count = 0;
    if (len >= UINT32_MAX)
        r.wrong = "it is too long";
    else if (whole(&r))
        return doc->values;
    err_set(ret_err, ERR_PROTOCOL, "not JSON at byte %zu: %s", (size_t)(r.p - r.start), r.wrong);
    return NULL;
}
