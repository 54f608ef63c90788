/* Text to an array of values, in one pass and without recursion: an open container holds the place of the one
 * around it. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "chain/json_view.h"
#include "json_internal.h"

enum { FIRST_CAP = 64, KEEP_CAP = 1 << 14 };

#define NO_PARENT UINT32_MAX

struct reader {
    struct jv_doc *doc;
    const char *start, *p, *end;
    uint32_t open; /* the innermost open container */
    unsigned depth;
    const char *wrong; /* why it is refused, at p */
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
    d->values[d->count++] = (struct jv){.text = text, .len = (uint32_t)len, .span = 1, .kind = (uint8_t)kind};
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

/* ---- strings ---- */

#define EVERY(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Of eight bytes: the high bit of the first that is not plain, that is a control character, a quote, a
 * backslash or not ASCII, and of none before it; the bits behind it mean nothing. */
static uint64_t not_plain(uint64_t w)
{
    uint64_t quote = w ^ EVERY('"'), backslash = w ^ EVERY('\\');
    return (w | (w - EVERY(0x20)) | (quote - EVERY(1)) | (backslash - EVERY(1))) & EVERY(0x80);
}

static bool is_plain(char c)
{
    return (uint8_t)c >= 0x20 && (uint8_t)c < 0x80 && c != '"' && c != '\\';
}

/* Nearly all that a node sends is hexadecimal. */
static const char *plain_end(const char *p, const char *end)
{
    for (; end - p >= 8; p += 8) {
        uint64_t w;
        memcpy(&w, p, sizeof(w));
        uint64_t found = not_plain(le64toh(w)); /* the first byte lowest */
        if (found)
            return p + __builtin_ctzll(found) / 8;
    }
    while (p < end && is_plain(*p))
        p++;
    return p;
}

/* The bytes of the UTF-8 sequence at p, which is not ASCII; 0: not one, overlong, a surrogate, or beyond
 * U+10FFFF. */
static size_t utf8_len(const char *p, const char *end)
{
    uint8_t lead = (uint8_t)*p;
    size_t n = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    uint32_t code = lead & (0x7fu >> n);
    if (lead < 0xc2 || lead > 0xf4 || (size_t)(end - p) < n)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3fu);
    }
    bool overlong = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
    return overlong || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? 0 : n;
}

/* At the opening quote. */
static bool string(struct reader *r)
{
    const char *text = ++r->p;
    bool escaped = false;
    uint32_t code;
    for (;;) {
        r->p = plain_end(r->p, r->end);
        if (r->p == r->end)
            return refuse(r, "the string does not end");
        if (*r->p == '"')
            break;
        if (*r->p == '\\') {
            const char *next = json__escape(r->p + 1, r->end, &code);
            if (!next)
                return refuse(r, "not an escape that may stand here");
            escaped = true;
            r->p = next;
            continue;
        }
        if ((uint8_t)*r->p < 0x20)
            return refuse(r, "a control character in a string");
        size_t n = utf8_len(r->p, r->end);
        if (!n)
            return refuse(r, "not UTF-8");
        r->p += n;
    }
    if (!add(r, JV_STRING, text, (size_t)(r->p - text)))
        return false;
    r->doc->values[r->doc->count - 1].escaped = escaped;
    r->p++;
    return true;
}

/* ---- numbers and words ---- */

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
        r->p += len; /* a letter behind it is refused for want of a comma */
        return add(r, words[i].kind, text, len);
    }
    return refuse(r, "no value begins so");
}

/* ---- structure ---- */

/* The next character that is not white space; 0 at the end, which is no character of JSON. */
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

/* Behind a value: closes what ends here. *ret_more: one more value follows. */
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

/* One value, or the opening of a container that holds one: *ret_inside. */
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
