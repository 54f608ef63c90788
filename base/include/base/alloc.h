/* Memory. These abort when it is exhausted and never return NULL: a restarted relay rebuilds its
 * state from the table (I3). Adapters check sizes that come from outside. */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stddef.h>

void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), malloc, returns_nonnull));

/* Room for one more element of `list`, which has `count` of them and room for `cap` (a size_t). */
#define GROW(list, count, cap)                                                                     \
    do {                                                                                           \
        if ((count) == (cap))                                                                      \
            (list) = xgrow((list), &(cap), sizeof(__typeof__(*(list))));                           \
    } while (0)
/* Twice the room, for elements of this size. */
void *xgrow(void *list, size_t *cap, size_t size) __attribute__((returns_nonnull));

#endif
