/* One line per fact on stderr, as logfmt (or as a JSON object with the same fields):
 *
 *   time=2026-11-27T22:00:00.123Z level=info event=leader.acquired account=alice epoch=3
 *
 * Under journald syslog's severity stands before it: "<6>time=..". A format is key=value pairs with
 * blanks between them; a value may stand in quotes. Whatever the values are, each line parses:
 * they are quoted, escaped and cut where that is needed. Use keys instead of prose. Libraries log
 * only at debug level; the one that gives up logs once. Never log a secret. docs/events.md lists
 * every event. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

enum log_level {
    LOG_LEVEL_NONE = 0, /* as a threshold: nothing is logged */
    LOG_LEVEL_ERROR = 3,
    LOG_LEVEL_WARN = 4,
    LOG_LEVEL_INFO = 6,
    LOG_LEVEL_DEBUG = 7
};

enum log_format { LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON };
void log_set_format(enum log_format format);
bool log_parse_format(const char *text, enum log_format *ret_format); /* logfmt | json */

void log_set_level(enum log_level level);
bool log_is_on(enum log_level level); /* before work that only a line needs */
bool log_parse_level(const char *text, enum log_level *ret_level); /* error | warn | info | debug */
void log_line(enum log_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Each step of each transaction has a line: at debug, or at the level that was set. */
void log_set_steps_level(enum log_level level);
enum log_level log_steps_level(void);

#define log_error(event, ...) log_line(LOG_LEVEL_ERROR, event, __VA_ARGS__)
#define log_warn(event, ...)  log_line(LOG_LEVEL_WARN, event, __VA_ARGS__)
#define log_info(event, ...)  log_line(LOG_LEVEL_INFO, event, __VA_ARGS__)
#define log_debug(event, ...) log_line(LOG_LEVEL_DEBUG, event, __VA_ARGS__)

#endif
