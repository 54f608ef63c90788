/* The hash ring: see ring.h. Members are few (the relays of one installation, the sites of one
 * account) and the order is computed rarely, so every point is visited. */
#include "base/ring.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"

struct member {
    char *name;
    uint64_t *points;
    size_t count;
};

struct ring {
    ring_hash_fn *hash;
    struct member *members;
    size_t count;
};

uint64_t ring_distance(uint64_t a, uint64_t b)
{
    uint64_t up = a - b, down = b - a;
    return up < down ? up : down;
}

struct ring *ring_new(ring_hash_fn *hash)
{
    struct ring *r = xcalloc(1, sizeof(*r));
    r->hash = hash;
    return r;
}

void ring_clear(struct ring *r)
{
    for (size_t i = 0; i < r->count; i++) {
        free(r->members[i].name);
        free(r->members[i].points);
    }
    r->count = 0;
}

struct ring *ring_free(struct ring *r)
{
    if (!r)
        return NULL;
    ring_clear(r);
    free(r->members);
    free(r);
    return NULL;
}

size_t ring_add(struct ring *r, const char *name, size_t points)
{
    PRE(r->hash && points > 0);
    r->members = xrealloc(r->members, (r->count + 1) * sizeof(*r->members));
    struct member *m = &r->members[r->count++];
    *m = (struct member){.name = xstrdup(name), .count = points};
    m->points = xcalloc(points, sizeof(*m->points));
    struct buf text = {0};
    for (size_t i = 0; i < points; i++) {
        buf_clear(&text);
        buf_printf(&text, "%s#%zu", name, i);
        m->points[i] = r->hash(text.data, text.len);
    }
    buf_done(&text);
    return r->count - 1;
}

uint64_t ring_key(const struct ring *r, const void *data, size_t len)
{
    PRE(r->hash);
    return r->hash(data, len);
}

size_t ring_count(const struct ring *r)
{
    return r->count;
}

const char *ring_name(const struct ring *r, size_t member)
{
    PRE(member < r->count);
    return r->members[member].name;
}

static uint64_t distance_of(const struct member *m, uint64_t key)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < m->count; i++) {
        uint64_t d = ring_distance(m->points[i], key);
        if (d < least)
            least = d;
    }
    return least;
}

void ring_order(const struct ring *r, uint64_t key, size_t *order)
{
    uint64_t *distances = xcalloc(r->count, sizeof(*distances));
    for (size_t i = 0; i < r->count; i++) {
        size_t at = i;
        distances[i] = distance_of(&r->members[i], key);
        for (; at > 0; at--) {
            size_t before = order[at - 1];
            bool closer = distances[i] < distances[before] ||
                          (distances[i] == distances[before] &&
                           strcmp(r->members[i].name, r->members[before].name) < 0);
            if (!closer)
                break;
            order[at] = before;
        }
        order[at] = i;
    }
    free(distances);
}
