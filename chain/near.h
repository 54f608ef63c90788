/* Names that look like one that does not exist: the way out of a misspelling. */
#ifndef CHAIN_NEAR_H
#define CHAIN_NEAR_H

#include <stddef.h>

enum { NEAR_MAX = 3, NEAR_TEXT = 120 };

struct near {
    const char *wanted;
    const char *best[NEAR_MAX]; /* nearest first; not owned */
    unsigned distance[NEAR_MAX];
    size_t count; /* of best */
};

/* wanted must live as long as the rest. */
struct near near__to(const char *wanted);
void near__try(struct near *n, const char *name);
/* "; near: a, b", or "" where nothing is near. */
const char *near__text(const struct near *n, char out[NEAR_TEXT]);

#endif
