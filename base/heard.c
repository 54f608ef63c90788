#include "base/heard.h"

#include <stdbool.h>

static bool is_near(const struct heard *h, uint64_t number)
{
    return number <= h->base || number - h->base <= HEARD_JUMP;
}

void heard_base(struct heard *h, uint64_t number)
{
    h->base = number;
}

void heard_add(struct heard *h, uint64_t number, uint64_t now_ms)
{
    struct heard_height *slot = is_near(h, number) ? &h->near : &h->far;
    heard_best(h, now_ms);
    if (number >= slot->number)
        *slot = (struct heard_height){number, now_ms};
}

static void drop(const struct heard *h, struct heard_height *x, uint64_t now_ms)
{
    if (!is_near(h, x->number) && now_ms - x->at_ms >= HEARD_KEEP_MS)
        *x = (struct heard_height){0};
}

uint64_t heard_best(struct heard *h, uint64_t now_ms)
{
    drop(h, &h->near, now_ms);
    drop(h, &h->far, now_ms);
    return h->near.number > h->far.number ? h->near.number : h->far.number;
}
