/* Finds the existing names nearest to a misspelled one, for error messages. */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#include <stddef.h>

enum { NEAREST_MAX = 3, NEAREST_TEXT = 120 };

struct nearest_names {
    const char *wanted;
    const char *best[NEAREST_MAX]; /* nearest first; not owned */
    unsigned distance[NEAREST_MAX];
    size_t count; /* of best */
};

/* Borrows `wanted` and every name offered: all must outlive the struct. */
struct nearest_names nearest_names_of(const char *wanted);
void nearest_names_offer(struct nearest_names *n, const char *name);
/* "; near: a, b", or "" if no offered name is near enough. */
const char *nearest_names_text(const struct nearest_names *n, char out[NEAREST_TEXT]);

#endif
