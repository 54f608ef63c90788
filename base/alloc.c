#define _GNU_SOURCE
#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *p)
{
    if (!p) {
        fputs("<2>out of memory\n", stderr);
        abort();
    }
    return p;
}

void *xmalloc(size_t n)
{
    return must(malloc(n ? n : 1));
}

void *xcalloc(size_t n, size_t size)
{
    return must(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n)
{
    return must(realloc(p, n ? n : 1));
}

void *xgrow(void *list, size_t *cap, size_t size)
{
    *cap = *cap ? 2 * *cap : 16;
    return xrealloc(list, *cap * size);
}

char *xstrdup(const char *s)
{
    return must(strdup(s));
}

char *xstrndup(const char *s, size_t n)
{
    return must(strndup(s, n));
}

char *xasprintf(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = NULL;
    if (vasprintf(&s, fmt, ap) < 0)
        s = NULL;
    va_end(ap);
    return must(s);
}
