#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int code;
    enum err_class class;
    const char *name;
    const char *text;
} table[] = {
#define X(name, value, class, text) {value, ERR_CLASS_##class, #name, text},
    ERR_TABLE(X)
#undef X
};

static size_t find(int code)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].code == code)
            return i;
    return sizeof(table) / sizeof(table[0]) - 1; /* an unknown code is a bug */
}

const char *err_name(int code)
{
    return table[find(code)].name;
}

const char *err_text(int code)
{
    return table[find(code)].text;
}

enum err_class err_class(int code)
{
    return table[find(code)].class;
}

bool err_is_refused(int code)
{
    enum err_class class = err_class(code);
    return class == ERR_CLASS_PERMANENT || class == ERR_CLASS_BUG;
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
    if (!e)
        return code;
    char text[sizeof(e->text)]; /* the arguments may point into e->text */
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (len >= (int)sizeof(text)) /* a reader sees that it was cut */
        memcpy(&text[sizeof(text) - 3], "..", 2);
    e->code = code;
    e->sqlstate[0] = 0;
    memcpy(e->text, text, sizeof(text));
    return code;
}

void err_clear(struct err *e)
{
    memset(e, 0, sizeof(*e));
}
