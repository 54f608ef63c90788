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

#endif
