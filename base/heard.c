#include "base/heard.h"

bool heard_is_near(uint64_t base, uint64_t number)
{
    return number <= base || number - base <= HEARD_JUMP;
}

void heard_base(struct heard *h, uint64_t number)
{
    h->base = number;
}

void heard_add(struct heard *h, uint64_t number, uint64_t now_ms)
{
    struct heard_height *slot = heard_is_near(h->base, number) ? &h->near : &h->far;
    heard_best(h, now_ms);
    if (number >= slot->number)
        *slot = (struct heard_height){number, now_ms};
}

static void drop(const struct heard *h, struct heard_height *x, uint64_t now_ms)
{
    if (!heard_is_near(h->base, x->number) && now_ms - x->at_ms >= HEARD_KEEP_MS)
        *x = (struct heard_height){0};
}

uint64_t heard_best(struct heard *h, uint64_t now_ms)
{
    drop(h, &h->near, now_ms);
    drop(h, &h->far, now_ms);
    return h->near.number > h->far.number ? h->near.number : h->far.number;
}
