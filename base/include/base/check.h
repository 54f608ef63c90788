/* Assertions that stay enabled in release builds. For bugs only: never for input, network data or
 * SQL. The conditions have no side effects. */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#include <stddef.h>

_Noreturn void check_failed(const char *kind, const char *cond, const char *file, int line);

#define PRE(cond)       ((cond) ? (void)0 : check_failed("precondition", #cond, __FILE__, __LINE__))
#define INVARIANT(cond) ((cond) ? (void)0 : check_failed("invariant", #cond, __FILE__, __LINE__))
#define UNREACHABLE()   check_failed("unreachable", "reached", __FILE__, __LINE__)

#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define ARRAY_LEN(a)                    (sizeof(a) / sizeof((a)[0]))

/* These abort when memory is exhausted and never return NULL: a restarted relay rebuilds its state
 * from the table (I3). Adapters check sizes that come from outside. */
void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), malloc, returns_nonnull));

#endif
