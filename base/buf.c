#include "base/buf.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

void buf_done(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

void buf_clear(struct buf *b)
{
    b->len = 0;
}

uint8_t *buf_grow(struct buf *b, size_t n)
{
    INVARIANT(n < SIZE_MAX / 4 && b->len < SIZE_MAX / 4);
    if (b->cap - b->len < n) {
        size_t cap = b->cap ? b->cap : 64;
        while (cap - b->len < n)
            cap *= 2;
        b->data = xrealloc(b->data, cap);
        b->cap = cap;
    }
    return b->len ? b->data + b->len : b->data; /* no offset to NULL */
}

void buf_put(struct buf *b, const void *data, size_t n)
{
    if (!n)
        return;
    memcpy(buf_grow(b, n), data, n);
    b->len += n;
}

void buf_put_u8(struct buf *b, uint8_t v)
{
    buf_put(b, &v, 1);
}

void buf_puts(struct buf *b, const char *s)
{
    buf_put(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    INVARIANT(n >= 0);
    vsnprintf((char *)buf_grow(b, (size_t)n + 1), (size_t)n + 1, fmt, again);
    va_end(again);
    b->len += (size_t)n;
}

const char *buf_str(struct buf *b)
{
    *buf_grow(b, 1) = 0;
    return (const char *)b->data;
}

void buf_put_plain(struct buf *b, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint8_t c = (uint8_t)text[i], next = i + 1 < len ? (uint8_t)text[i + 1] : 0;
        bool c1 = c == 0xc2 && next >= 0x80 && next <= 0x9f;
        i += c1;
        buf_put_u8(b, c1 || c < 0x20 || c == 0x7f ? '?' : c);
    }
}

void plain_text(char *out, size_t size, const char *text)
{
    size_t i = 0;
    for (; i + 1 < size && text[i]; i++)
        out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    if (i >= 2 && text[i])
        memcpy(&out[i - 2], "..", 2);
    out[i] = 0;
}
