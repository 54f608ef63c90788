#include "http/core/told.h"

#include <stdlib.h>

#include "base/alloc.h"

/* A commit that is this late is notified after later changes. */
static const int64_t LATE_US = 2000000;

struct told {
    struct told_row *rows;
    size_t count, cap;
    int64_t newest_us;
    bool sorted; /* by what they name */
};

struct told *told_new(void)
{
    return xcalloc(1, sizeof(struct told));
}

struct told *told_free(struct told *t)
{
    if (t)
        free(t->rows);
    free(t);
    return NULL;
}

static int newest_first(const void *a, const void *b)
{
    const struct told_row *x = a, *y = b;
    return (x->updated_us < y->updated_us) - (x->updated_us > y->updated_us);
}

void told_put(struct told *t, const struct told_row *row)
{
    if (t->count == TOLD_MAX) {
        qsort(t->rows, t->count, sizeof(*t->rows), newest_first);
        t->count = TOLD_MAX / 2;
    }
    GROW(t->rows, t->count, t->cap);
    t->rows[t->count++] = *row;
    t->sorted = false;
    if (row->updated_us > t->newest_us)
        t->newest_us = row->updated_us;
}

static int compare(int64_t x, int64_t y)
{
    return (x > y) - (x < y);
}

static int by_name(const void *a, const void *b)
{
    const struct told_row *x = a, *y = b;
    int order = compare(x->id, y->id);
    if (!order && !x->id)
        order = compare(x->account, y->account);
    if (!order && !x->id)
        order = compare(x->nonce, y->nonce);
    return order;
}

/* A nonce may have had a filler before: of equal names the newest row counts. */
static void sort(struct told *t)
{
    size_t kept = 0;
    qsort(t->rows, t->count, sizeof(*t->rows), by_name);
    for (size_t i = 0; i < t->count; i++) {
        struct told_row *last = kept ? &t->rows[kept - 1] : NULL;
        if (!last || by_name(last, &t->rows[i]))
            t->rows[kept++] = t->rows[i];
        else if (last->updated_us < t->rows[i].updated_us)
            *last = t->rows[i];
    }
    t->count = kept;
    t->sorted = true;
}

static struct told_row *row_of(struct told *t, const struct recent_event *ev)
{
    const struct told_row key = {.id = ev->id, .nonce = ev->nonce, .account = ev->account};
    if (!t->count)
        return NULL;
    if (!t->sorted)
        sort(t);
    return bsearch(&key, t->rows, t->count, sizeof(*t->rows), by_name);
}

bool told_passes(struct told *t, const struct recent_event *ev)
{
    struct told_row *row = t ? row_of(t, ev) : NULL;
    if (!row)
        return true;
    if (row->ended)
        return !row->id && ev->updated_us > row->updated_us;
    if (ev->ended)
        return true;
    if (ev->removed && row->updated_us != INT64_MIN) {
        if (ev->nonce != row->nonce)
            return false;            /* it left this nonce before it came to the row's */
        row->updated_us = INT64_MIN; /* back in the outbox: what comes of it now is new */
        return true;
    }
    return ev->updated_us >= row->updated_us;
}

bool told_is_over(const struct told *t, const struct recent_event *ev)
{
    return ev->updated_us > t->newest_us + LATE_US;
}
