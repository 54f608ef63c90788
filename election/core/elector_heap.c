/* The accounts ordered by due time, in a binary heap of indexes, so that an idle relay with ten
 * thousand accounts visits only those that are due. Every account is in it; one without a deadline
 * is never due. */
#include "base/check.h"
#include "elector_internal.h"

static struct elector_account *at(struct elector *e, size_t pos)
{
    return &e->accounts[e->heap[pos]];
}

static void swap(struct elector *e, size_t a, size_t b)
{
    int account = e->heap[a];
    e->heap[a] = e->heap[b];
    e->heap[b] = account;
    at(e, a)->heap_pos = a;
    at(e, b)->heap_pos = b;
}

static void sift(struct elector *e, size_t pos)
{
    while (pos > 0 && at(e, pos)->due < at(e, (pos - 1) / 2)->due) {
        swap(e, pos, (pos - 1) / 2);
        pos = (pos - 1) / 2;
    }
    for (;;) {
        size_t least = pos;
        for (size_t child = 2 * pos + 1; child <= 2 * pos + 2 && child < e->count; child++)
            if (at(e, child)->due < at(e, least)->due)
                least = child;
        if (least == pos)
            return;
        swap(e, pos, least);
        pos = least;
    }
}

void elector__heap_add(struct elector *e, int account)
{
    PRE((size_t)account + 1 == e->count);
    e->heap[account] = account;
    e->accounts[account].heap_pos = (size_t)account;
    sift(e, (size_t)account);
}

void elector__set_due(struct elector *e, struct elector_account *a, uint64_t due)
{
    a->due = due;
    sift(e, a->heap_pos);
}
