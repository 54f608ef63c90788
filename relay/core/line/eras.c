/* A heap of the ends of eras. Entries stay when their row changes, so they are checked when they
 * are taken out. */
#include <stdlib.h>

#include "base/alloc.h"
#include "line_internal.h"

void line__era_put(struct line *line, uint64_t death, uint64_t nonce)
{
    GROW(line->eras, line->era_count, line->era_cap);
    size_t i = line->era_count++;
    for (; i && line->eras[(i - 1) / 2].death > death; i = (i - 1) / 2)
        line->eras[i] = line->eras[(i - 1) / 2];
    line->eras[i] = (struct era_entry){death, nonce};
}

bool line_era_next(struct line *line, uint64_t height, struct era_entry *ret_entry)
{
    if (!line->era_count || line->eras[0].death > height)
        return false;
    *ret_entry = line->eras[0];
    struct era_entry last = line->eras[--line->era_count];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < line->era_count; i = k) {
        if (k + 1 < line->era_count && line->eras[k + 1].death < line->eras[k].death)
            k++;
        if (line->eras[k].death >= last.death)
            break;
        line->eras[i] = line->eras[k];
    }
    line->eras[i] = last;
    return true;
}
