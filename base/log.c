#define _GNU_SOURCE
#include "base/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"

enum { LINE_MAX_BYTES = 2048 };

static enum log_level threshold = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
    threshold = level;
}

bool log_parse_level(const char *text, enum log_level *ret_level)
{
    static const struct {
        const char *name;
        enum log_level level;
    } names[] = {{"error", LOG_LEVEL_ERROR},
                 {"warn", LOG_LEVEL_WARN},
                 {"info", LOG_LEVEL_INFO},
                 {"debug", LOG_LEVEL_DEBUG}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!strcmp(text, names[i].name)) {
            *ret_level = names[i].level;
            return true;
        }
    }
    return false;
}

/* ---- one line ---- */

/* Escapes quotes in a value, so that a peer's text cannot add fields. */
static void put_value(struct buf *line, const char *text, size_t len, bool quoted)
{
    for (size_t i = 0; i < len;) {
        size_t n = quoted ? 0 : len - i;
        while (i + n < len && text[i + n] != '"' && text[i + n] != '\\')
            n++;
        buf_put_plain(line, text + i, n);
        i += n;
        if (i < len) {
            buf_put_u8(line, '\\');
            buf_put_u8(line, (uint8_t)text[i++]);
        }
    }
}

/* One conversion of a format, for example "%.3f"; returns its end. */
static const char *spec_end(const char *at)
{
    at += 1 + strspn(at + 1, "-+ #0123456789.*");
    at += strspn(at, "hljzt");
    return *at ? at + 1 : at;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
/* Numbers are printed by the conversion itself. The compiler has checked the argument. */
static bool put_number(struct buf *line, const char *spec, va_list *ap)
{
    const char *length = spec + 1 + strspn(spec + 1, "-+ #0123456789.");
    char last = spec[strlen(spec) - 1];
    if (!strchr("diuxXcfgp%", last) || strchr(spec, '*'))
        return false;
    if (last == '%')
        buf_put_u8(line, '%');
    else if (last == 'f' || last == 'g')
        buf_printf(line, spec, va_arg(*ap, double));
    else if (last == 'p')
        buf_printf(line, spec, va_arg(*ap, void *));
    else if (!strncmp(length, "ll", 2))
        buf_printf(line, spec, va_arg(*ap, long long));
    else if (*length == 'l' || *length == 'z' || *length == 'j' || *length == 't')
        buf_printf(line, spec, va_arg(*ap, long));
    else
        buf_printf(line, spec, va_arg(*ap, int));
    return true;
}
#pragma GCC diagnostic pop

/* Texts: %s and %.*s, with escaped characters. */
static bool put_text(struct buf *line, const char *spec, bool quoted, va_list *ap)
{
    if (strcmp(spec, "%s") != 0 && strcmp(spec, "%.*s") != 0)
        return false;
    size_t most = SIZE_MAX;
    if (spec[1] == '.') {
        int n = va_arg(*ap, int);
        most = n < 0 ? 0 : (size_t)n;
    }
    const char *text = va_arg(*ap, const char *);
    put_value(line, text ? text : "(null)", text ? strnlen(text, most) : 6, quoted);
    return true;
}

/* After an unknown conversion (the test lists the known ones) the rest of the format is printed as
 * it is: an unreadable line is no reason to end a relay. */
static void put_message(struct buf *line, const char *fmt, va_list *ap)
{
    bool known = true;
    while (*fmt && known) {
        size_t n = strcspn(fmt, "%");
        buf_put(line, fmt, n);
        fmt += n;
        const char *end = *fmt ? spec_end(fmt) : fmt;
        char spec[16] = "";
        if (end == fmt || (size_t)(end - fmt) >= sizeof(spec))
            break;
        memcpy(spec, fmt, (size_t)(end - fmt));
        bool quoted = line->len && line->data[line->len - 1] == '"';
        known = end[-1] == 's' ? put_text(line, spec, quoted, ap) : put_number(line, spec, ap);
        if (known)
            fmt = end;
    }
    buf_puts(line, fmt);
}

/* One write per line, so that lines of several processes in one file do not mix. */
void log_line(enum log_level level, const char *event, const char *fmt, ...)
{
    if (level > threshold)
        return;
    char stamp[40];
    struct buf line = {0};
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(&line, "<%d>%s.%03ldZ %s ", (int)level, stamp, now.tv_nsec / 1000000, event);
    va_list ap;
    va_start(ap, fmt);
    put_message(&line, fmt, &ap);
    va_end(ap);
    if (line.len > LINE_MAX_BYTES - 1)
        line.len = LINE_MAX_BYTES - 1;
    buf_put_u8(&line, '\n');
    ssize_t written = write(STDERR_FILENO, line.data, line.len);
    (void)written; /* there is nowhere to report it */
    buf_done(&line);
}
