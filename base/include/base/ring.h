/* The hash ring: which member a key belongs to, and which ones come after it. It is a pure function
 * of the members' names and the key, so all who see the same members agree without communication.
 * The elector places accounts on relays with it, and the sites of an account (site/core) rank
 * themselves.
 *
 * Positions are the first 8 bytes of SHA-256, big-endian. A member's points depend only on its name
 * and on their number. Closest means the smallest circular distance in either direction, so the
 * keys of a member that leaves are shared by both neighbours of each of its points. */
#ifndef BASE_RING_H
#define BASE_RING_H

#include <stddef.h>
#include <stdint.h>

enum { RING_POINTS = 64 };

struct ring;

/* The position of a text: the first 8 bytes of its SHA-256, big-endian. It comes from outside
 * (election_hash), because the cores link nothing but base/. */
typedef uint64_t ring_hash_fn(const void *data, size_t len);

struct ring *ring_new(ring_hash_fn *hash); /* NULL: nothing may be added */
struct ring *ring_free(struct ring *r);
void ring_clear(struct ring *r);
/* Adds a member; returns its index. The name is copied. */
size_t ring_add(struct ring *r, const char *name, size_t points);

/* The position of a key. */
uint64_t ring_key(const struct ring *r, const void *data, size_t len);

size_t ring_count(const struct ring *r);
const char *ring_name(const struct ring *r, size_t member);
/* All members, the closest first; equal distances by name. `order` has room for ring_count. */
void ring_order(const struct ring *r, uint64_t key, size_t *order);

uint64_t ring_distance(uint64_t a, uint64_t b);

#endif
