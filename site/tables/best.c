/* The best chain above the last final block, as this site's node showed it last: its hashes,
 * without a gap. A fork replaces those from where it begins. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tables_internal.h"

static const uint8_t *hash_at(const struct best *b, uint64_t number)
{
    bool has = number >= b->first && number - b->first < b->count;
    return has ? b->hashes[number - b->first] : NULL;
}

bool best_has(const struct best *b, const uint8_t hash[32])
{
    for (size_t i = b->count; i > 0; i--)
        if (!memcmp(b->hashes[i - 1], hash, 32))
            return true;
    return false;
}

void best_take(struct best *b, uint64_t first, const uint8_t (*hashes)[32], size_t count)
{
    size_t keep = 0;
    if (hash_at(b, first) || (b->count && first == b->first + b->count))
        keep = (size_t)(first - b->first);
    else
        b->first = first;
    if (keep + count > b->room) {
        b->room = (keep + count) * 2;
        b->hashes = xrealloc(b->hashes, b->room * sizeof(*b->hashes));
    }
    if (count)
        memcpy(b->hashes[keep], hashes, count * sizeof(*hashes));
    b->count = keep + count;
}

void best_final(struct best *b, uint64_t number)
{
    size_t gone = 0;
    while (gone < b->count && b->first + gone <= number)
        gone++;
    if (!gone)
        return;
    memmove(b->hashes, b->hashes + gone, (b->count - gone) * sizeof(*b->hashes));
    b->first += gone;
    b->count -= gone;
}

void best_clear(struct best *b)
{
    free(b->hashes);
    *b = (struct best){0};
}
