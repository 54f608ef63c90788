/* Error texts for refused JSON values: the path, the expected type, the given value, what to write
 * instead. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "encode_internal.h"

enum { VALUE_TEXT = 44, TYPE_TEXT = 60, WHAT_TEXT = 220 };

struct shown {
    char text[VALUE_TEXT];
    size_t len;
};

/* Stops jansson when the buffer is full: a value may be large. */
static int show(const char *part, size_t n, void *arg)
{
    struct shown *s = arg;
    size_t room = VALUE_TEXT - 1 - s->len;
    size_t take = n < room ? n : room;
    memcpy(s->text + s->len, part, take);
    s->len += take;
    s->text[s->len] = 0;
    return take == n ? 0 : -1;
}

/* The value as JSON, cut. */
static void describe(const json_t *value, struct shown *ret)
{
    *ret = (struct shown){.len = 0};
    if (json_dump_callback(value, show, ret, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII) !=
            0 &&
        ret->len > 3)
        memcpy(ret->text + ret->len - 3, "...", 3);
}

static int refuse(struct encoder *e, const char *what)
{
    char path[CODEC_PATH_TEXT];
    codec__path_text(&e->path, path);
    return err_set(e->err, ERR_ARGUMENT, "%s%s%s", path, *path ? ": " : "", what);
}

int encode__refuse(struct encoder *e, const char *fmt, ...)
{
    char what[WHAT_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return refuse(e, what);
}

int encode__unfit(struct encoder *e, const struct type *t, const json_t *value, const char *fmt,
                  ...)
{
    char what[WHAT_TEXT];
    struct buf type = {0};
    struct shown given;
    va_list ap;
    describe(value, &given);
    metadata__type_text(e->md, (uint32_t)(t - e->md->types), NULL, &type);
    int n = snprintf(what, sizeof(what), "%.*s is wanted, not %s: ", TYPE_TEXT, buf_str(&type),
                     given.text);
    buf_done(&type);
    va_start(ap, fmt);
    vsnprintf(what + n, sizeof(what) - (size_t)n, fmt, ap);
    va_end(ap);
    return refuse(e, what);
}

int encode__too_deep(struct encoder *e)
{
    return encode__refuse(e, "nested deeper than %d levels", CODEC_DEPTH_MAX);
}

const char *encode__text(const json_t *value)
{
    const char *s = json_string_value(value);
    return s && strlen(s) == json_string_length(value) ? s : NULL;
}

bool encode__is_hex(const json_t *value)
{
    return json_is_string(value) && strncmp(json_string_value(value), "0x", 2) == 0;
}
