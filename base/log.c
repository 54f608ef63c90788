#define _GNU_SOURCE
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* One write a line, so that lines of several processes on one file do not mix. */
void log_line(enum log_level level, const char *event, const char *fmt, ...)
{
    if (level > threshold)
        return;
    char line[2048];
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    size_t n = (size_t)snprintf(line, sizeof(line), "<%d>", (int)level);
    n += strftime(line + n, sizeof(line) - n, "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(line + n, sizeof(line) - n, ".%03ldZ %s ", now.tv_nsec / 1000000, event);
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
    va_end(ap);
    if (m > 0)
        n += (size_t)m;
    if (n > sizeof(line) - 2)
        n = sizeof(line) - 2;
    for (size_t i = 0; i < n; i++) /* a peer's text must not forge lines */
        if (line[i] == '\n' || line[i] == '\r')
            line[i] = ' ';
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, n) < 0)
        return; /* nowhere left to complain */
}
