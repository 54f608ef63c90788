/* Bytes that several owners read; the last one that lets go of them frees them. */
#ifndef BASE_SHARED_H
#define BASE_SHARED_H

#include <stddef.h>
#include <stdint.h>

struct shared {
    size_t owners;
    size_t len;
    uint8_t data[];
};

struct shared *shared_new(size_t len); /* the caller fills it, and is its first owner */
struct shared *shared_take(struct shared *s);
struct shared *shared_drop(struct shared *s); /* NULL allowed; returns NULL */

#endif
