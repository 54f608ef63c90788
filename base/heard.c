#include "base/heard.h"

bool heard_is_near(uint64_t base, uint64_t number)
{
    return number <= base || number - base <= HEARD_JUMP;
}

void heard_base(struct heard *h, uint64_t number)
{
    h->base = number;
}

static void remember(struct heard *h, uint64_t number, uint64_t now_ms, uint64_t for_ms)
{
    struct heard_height *slot = heard_is_near(h->base, number) ? &h->near : &h->far;
    uint64_t until = now_ms + for_ms;
    heard_best(h, now_ms);
    if (number > slot->number || (number == slot->number && until > slot->until_ms))
        *slot = (struct heard_height){number, until};
}

void heard_add(struct heard *h, uint64_t number, uint64_t now_ms)
{
    remember(h, number, now_ms, HEARD_KEEP_MS);
}

void heard_repeat(struct heard *h, uint64_t number, uint64_t now_ms)
{
    if (heard_is_near(h->base, number))
        heard_add(h, number, now_ms);
}

void heard_told(struct heard *h, uint64_t number, uint64_t now_ms)
{
    remember(h, number, now_ms, HEARD_TOLD_MS);
}

static void drop(const struct heard *h, struct heard_height *x, uint64_t now_ms)
{
    uint64_t longer = heard_is_near(h->base, x->number) ? HEARD_NEAR_MS : 0;
    if (x->number > h->base && now_ms >= x->until_ms + longer)
        *x = (struct heard_height){0};
}

uint64_t heard_best(struct heard *h, uint64_t now_ms)
{
    drop(h, &h->near, now_ms);
    drop(h, &h->far, now_ms);
    return h->near.number > h->far.number ? h->near.number : h->far.number;
}
