/* A growable byte buffer. Zero-initialised is a valid empty buffer; buf_done frees it. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf {
    uint8_t *data; /* owned; NULL while nothing was ever put */
    size_t len;
    size_t cap;
};

void buf_done(struct buf *b);  /* frees, leaves an empty buffer */
void buf_clear(struct buf *b); /* length 0, keeps the memory */
uint8_t *buf_grow(struct buf *b,
                  size_t n); /* room for n more bytes; returns the write position, len unchanged */
void buf_put(struct buf *b, const void *data, size_t n);
void buf_put_u8(struct buf *b, uint8_t v);
void buf_puts(struct buf *b, const char *s);
/* Text for a terminal or a log: control characters (C0, DEL, C1 in UTF-8) become '?'. */
void buf_put_plain(struct buf *b, const char *text, size_t len);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *buf_str(struct buf *b); /* NUL-terminated view (the NUL is not counted in len) */

/* Copy a text from outside, made fit for a log line and for any database: printable ASCII, cut to
 * size: it ends with ".." then. */
void plain_text(char *out, size_t size, const char *text);

#endif
