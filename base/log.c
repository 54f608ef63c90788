#define _GNU_SOURCE
#include "base/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/utf8.h"

enum { LINE_MAX_BYTES = 2048 };

static enum log_level threshold = LOG_LEVEL_INFO;
static enum log_level steps = LOG_LEVEL_DEBUG;
static enum log_format format = LOG_FORMAT_LOGFMT;

static const struct {
    const char *name;
    enum log_level level;
} level_names[] = {{"error", LOG_LEVEL_ERROR},
                   {"warn", LOG_LEVEL_WARN},
                   {"info", LOG_LEVEL_INFO},
                   {"debug", LOG_LEVEL_DEBUG}};

void log_set_level(enum log_level level)
{
    threshold = level;
}

bool log_is_on(enum log_level level)
{
    return level <= threshold;
}

void log_set_steps_level(enum log_level level)
{
    steps = level;
}

enum log_level log_steps_level(void)
{
    return steps;
}

bool log_parse_level(const char *text, enum log_level *ret_level)
{
    for (size_t i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
        if (!strcmp(text, level_names[i].name)) {
            *ret_level = level_names[i].level;
            return true;
        }
    }
    return false;
}

void log_set_format(enum log_format f)
{
    format = f;
}

bool log_parse_format(const char *text, enum log_format *ret_format)
{
    bool json = !strcmp(text, "json");
    if (json || !strcmp(text, "logfmt"))
        *ret_format = json ? LOG_FORMAT_JSON : LOG_FORMAT_LOGFMT;
    return json || !strcmp(text, "logfmt");
}

/* ---- fields ---- */

/* A field is cut where the line would become longer than LINE_MAX_BYTES, so that every line can be
 * parsed; what the value's escapes and the line's end need is kept free. */
static size_t room_for(const struct buf *line)
{
    enum { KEPT = 64 };
    return line->len + KEPT < LINE_MAX_BYTES ? LINE_MAX_BYTES - KEPT - line->len : 0;
}

static bool is_bare(const struct buf *value)
{
    for (size_t i = 0; i < value->len; i++)
        if (value->data[i] <= ' ' || strchr("\"=\\", value->data[i]))
            return false;
    return value->len > 0;
}

static void put_quoted(struct buf *line, const struct buf *value)
{
    size_t left = room_for(line);
    buf_put_u8(line, '"');
    for (size_t i = 0; i < value->len;) {
        size_t n = utf8_len(value->data + i, value->len - i);
        bool escape = value->data[i] == '"' || value->data[i] == '\\';
        if (n + escape > left) {
            buf_puts(line, "...");
            break;
        }
        if (escape)
            buf_put_u8(line, '\\');
        if (n)
            buf_put(line, value->data + i, n);
        else
            buf_put_u8(line, '?');
        left -= n + escape;
        i += n ? n : 1;
    }
    buf_put_u8(line, '"');
}

static void put_field(struct buf *line, const char *key, size_t key_len, const struct buf *value,
                      bool quoted, bool number)
{
    if (key_len > room_for(line))
        return;
    if (format == LOG_FORMAT_JSON)
        buf_printf(line, ",\"%.*s\":", (int)key_len, key);
    else
        buf_printf(line, " %.*s=", (int)key_len, key);
    if (number ||
        (format == LOG_FORMAT_LOGFMT && !quoted && is_bare(value) && value->len < room_for(line)))
        buf_put(line, value->data, value->len);
    else
        put_quoted(line, value);
}

/* ---- the values of a format ---- */

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
static bool put_number(struct buf *value, const char *spec, va_list *ap)
{
    const char *length = spec + 1 + strspn(spec + 1, "-+ #0123456789.");
    char last = spec[strlen(spec) - 1];
    if (!strchr("diuxXcfgp%", last) || strchr(spec, '*'))
        return false;
    if (last == '%')
        buf_put_u8(value, '%');
    else if (last == 'f' || last == 'g')
        buf_printf(value, spec, va_arg(*ap, double));
    else if (last == 'p')
        buf_printf(value, spec, va_arg(*ap, void *));
    else if (!strncmp(length, "ll", 2))
        buf_printf(value, spec, va_arg(*ap, long long));
    else if (*length == 'l' || *length == 'z' || *length == 'j' || *length == 't')
        buf_printf(value, spec, va_arg(*ap, long));
    else
        buf_printf(value, spec, va_arg(*ap, int));
    return true;
}
#pragma GCC diagnostic pop

/* Texts: %s and %.*s, without control characters. */
static bool put_text(struct buf *value, const char *spec, va_list *ap)
{
    if (strcmp(spec, "%s") != 0 && strcmp(spec, "%.*s") != 0)
        return false;
    size_t most = SIZE_MAX;
    if (spec[1] == '.') {
        int n = va_arg(*ap, int);
        most = n < 0 ? 0 : (size_t)n;
    }
    const char *text = va_arg(*ap, const char *);
    buf_put_plain(value, text ? text : "(null)", text ? strnlen(text, most) : 6);
    return true;
}

/* One value of the format, up to its end; false: an unknown conversion (the test lists the known
 * ones), behind which no argument can be read. *ret_number: it is one decimal number. */
static bool put_value(struct buf *value, const char **fmt, bool quoted, bool *ret_number,
                      va_list *ap)
{
    const char *at = *fmt, *start = at;
    *ret_number = false;
    while (*at && *at != (quoted ? '"' : ' ')) {
        char spec[16] = "";
        const char *end = *at == '%' ? spec_end(at) : at + 1;
        if (*at != '%') {
            buf_put_u8(value, (uint8_t)*at);
        } else {
            if ((size_t)(end - at) >= sizeof(spec))
                return false;
            memcpy(spec, at, (size_t)(end - at));
            char last = end[-1];
            if (!(last == 's' ? put_text(value, spec, ap) : put_number(value, spec, ap)))
                return false;
            *ret_number = at == start && !quoted && strchr("diuf", last) &&
                          (!*end || *end == ' ') && !strpbrk(spec, "0#+ ");
        }
        at = end;
    }
    *fmt = at + (quoted && *at == '"');
    return true;
}

/* A format is key=value pairs with blanks between them; a value may stand in quotes. */
static void put_fields(struct buf *line, const char *fmt, va_list *ap)
{
    bool known = true;
    while (known && *fmt) {
        struct buf value = {0};
        bool number;
        size_t len = strcspn(fmt, "= ");
        const char *key = fmt;
        fmt += len + (fmt[len] == '=');
        bool quoted = *fmt == '"';
        fmt += quoted;
        known = put_value(&value, &fmt, quoted, &number, ap);
        put_field(line, key, len, &value, quoted, number);
        buf_done(&value);
        fmt += strspn(fmt, " ");
    }
}

/* ---- one line ---- */

static const char *level_name(enum log_level level)
{
    for (size_t i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++)
        if (level_names[i].level == level)
            return level_names[i].name;
    return "none";
}

/* Does journald read our standard error? It says so with the device and inode of its socket. */
static bool to_journal(void)
{
    const char *named = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;
    return named && sscanf(named, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
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
    if (to_journal())
        buf_printf(&line, "<%d>", (int)level);
    buf_printf(&line,
               format == LOG_FORMAT_JSON
                   ? "{\"time\":\"%s.%03ldZ\",\"level\":\"%s\",\"event\":\"%s\""
                   : "time=%s.%03ldZ level=%s event=%s",
               stamp, now.tv_nsec / 1000000, level_name(level), event);
    va_list ap;
    va_start(ap, fmt);
    put_fields(&line, fmt, &ap);
    va_end(ap);
    if (format == LOG_FORMAT_JSON)
        buf_put_u8(&line, '}');
    buf_put_u8(&line, '\n');
    ssize_t written = write(STDERR_FILENO, line.data, line.len);
    (void)written; /* there is nowhere to report it */
    buf_done(&line);
}
