/* Rows by nonce, in a ring whose size is a power of two. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "line_internal.h"

void line__change(struct line *line, unsigned set, const struct row *row, bool member)
{
    PRE(set < SET_COUNT);
    size_t i = row->nonce & (line->cap - 1);
    if (member)
        nset_add(&line->sets[set], i);
    else
        nset_remove(&line->sets[set], i);
}

struct row *line_first(const struct line *line, unsigned set, uint64_t from)
{
    PRE(set < SET_COUNT);
    const struct nset *s = &line->sets[set];
    if (!s->count || from >= line->next)
        return NULL;
    if (from < line->low)
        from = line->low;
    size_t mask = line->cap - 1, start = from & mask;
    size_t i = nset_from(s, start);
    if (i == SIZE_MAX)
        i = nset_from(s, 0);
    uint64_t nonce = from + ((i - start) & mask);
    return i == SIZE_MAX || nonce >= line->next ? NULL : line->slots[i];
}

/* ---- the ring ---- */

static void rebuild(struct line *line, size_t cap)
{
    struct row **old = line->slots;
    struct nset sets[SET_COUNT];
    size_t old_cap = line->cap;
    memcpy(sets, line->sets, sizeof(sets));
    line->slots = xcalloc(cap, sizeof(struct row *));
    line->cap = cap;
    for (unsigned k = 0; k < SET_COUNT; k++)
        nset_init(&line->sets[k], cap);
    for (size_t i = 0; i < old_cap; i++) {
        if (!old[i])
            continue;
        line->slots[old[i]->nonce & (cap - 1)] = old[i];
        for (unsigned k = 0; k < SET_COUNT; k++)
            if (nset_has(&sets[k], i))
                nset_add(&line->sets[k], old[i]->nonce & (cap - 1));
    }
    for (unsigned k = 0; old_cap && k < SET_COUNT; k++)
        nset_done(&sets[k]);
    free(old);
}

void line_cover(struct line *line, uint64_t low, uint64_t next)
{
    PRE(low <= next && next - low <= SPAN_MAX);
    PRE(!line->rows || low <= line->low);
    size_t cap = line->cap ? line->cap : 1024;
    while (cap < next - low)
        cap *= 2;
    if (cap != line->cap)
        rebuild(line, cap);
    line->low = low;
    line->next = next;
}

void line_clear(struct line *line)
{
    for (size_t i = 0; i < line->cap && line->rows; i++)
        if (line->slots[i]) {
            line__row_free(line->slots[i]);
            line->rows--;
        }
    for (unsigned k = 0; line->cap && k < SET_COUNT; k++)
        nset_done(&line->sets[k]);
    free(line->slots);
    free(line->table);
    free(line->eras);
    line->slots = NULL;
    line->table = NULL;
    line->eras = NULL;
    line->cap = line->table_cap = line->table_count = line->era_count = line->era_cap = 0;
    line->low = line->next = line->presigned_rows = 0;
    list_init(&line->activity);
    line_cover(line, 0, 0);
}

void line_done(struct line *line)
{
    line_clear(line);
    for (unsigned k = 0; k < SET_COUNT; k++)
        nset_done(&line->sets[k]);
    free(line->slots);
    line->slots = NULL;
    line->cap = 0;
}
