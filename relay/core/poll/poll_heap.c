/* Which account's time comes next: a binary heap of all accounts, by poll__key. */
#include "base/alloc.h"
#include "poll_internal.h"

void poll__heap_new(struct poll *p)
{
    p->heap = xcalloc(p->config.accounts, sizeof(*p->heap));
    for (size_t i = 0; i < p->config.accounts; i++)
        p->heap[i] = p->accounts[i].heap_at = i;
}

static uint64_t key(const struct poll *p, size_t at)
{
    return poll__key(&p->accounts[p->heap[at]]);
}

static void put(struct poll *p, size_t at, size_t account)
{
    p->heap[at] = account;
    p->accounts[account].heap_at = at;
}

static void swap(struct poll *p, size_t a, size_t b)
{
    size_t account = p->heap[a];
    put(p, a, p->heap[b]);
    put(p, b, account);
}

void poll__heap_set(struct poll *p, struct poll_account *a)
{
    size_t at = a->heap_at;
    for (; at && key(p, at) < key(p, (at - 1) / 2); at = (at - 1) / 2)
        swap(p, at, (at - 1) / 2);
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < p->config.accounts; child++)
            if (key(p, child) < key(p, least))
                least = child;
        if (least == at)
            return;
        swap(p, at, least);
        at = least;
    }
}

struct poll_account *poll__heap_top(const struct poll *p)
{
    return p->config.accounts ? &p->accounts[p->heap[0]] : NULL;
}

uint64_t poll__heap_min(const struct poll *p)
{
    const struct poll_account *a = poll__heap_top(p);
    return a ? poll__key(a) : UINT64_MAX;
}
