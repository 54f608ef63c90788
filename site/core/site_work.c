/* The works of a coordinator: what is delegated to this site, and what it dispatched. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "site_internal.h"

struct site_work *site__work(struct site_core *c, uint32_t sender, uint64_t id)
{
    struct site_work *w;
    const struct site_work_key key = {sender, id};
    HASH_FIND(hh, c->works, &key, sizeof(key), w);
    return w;
}

struct site_work *site__begin_work(struct site_core *c, uint32_t sender, uint64_t id,
                                   enum site_work_state state)
{
    PRE(!site__work(c, sender, id));
    struct site_work *w = xcalloc(1, sizeof(*w));
    w->key = (struct site_work_key){sender, id};
    w->state = state;
    c->held += (size_t)(state == SITE_WORK_HELD);
    site__work_begins(c, state);
    HASH_ADD(hh, c->works, key, sizeof(w->key), w);
    return w;
}

void site__load_dispatch(struct site_core *c, const struct site_dispatch *d)
{
    struct site_work *w = site__begin_work(c, d->sender, d->id, SITE_WORK_DISPATCHED);
    w->bytes = d->bytes;
    w->told = d->sender == c->config.self;
}

void site__work_state(struct site_core *c, struct site_work *w, enum site_work_state to)
{
    c->held -= (size_t)(w->state == SITE_WORK_HELD);
    c->held += (size_t)(to == SITE_WORK_HELD);
    site__move_work(c, w, to);
}

void site__drop_work(struct site_core *c, struct site_work *w)
{
    c->held -= (size_t)(w->state == SITE_WORK_HELD);
    site__work_ends(c, w->state);
    HASH_DEL(c->works, w);
    free(w);
}

void site__free_works(struct site_core *c)
{
    struct site_work *w, *next;
    HASH_ITER(hh, c->works, w, next)
    {
        HASH_DEL(c->works, w);
        free(w);
    }
    c->held = 0;
}

bool site__is_filler(const struct site_work *w)
{
    return (w->key.id & SITE_FILLER) != 0;
}

struct site_item site__item_of(const struct site_work *w)
{
    return (struct site_item){.sender = (uint32_t)w->key.sender,
                              .id = w->key.id,
                              .has_bytes = w->state > SITE_WORK_SIGNING,
                              .valid = true,
                              .bytes = w->bytes};
}

/* To the sender, which may be this site: then it follows from the tables. */
void site__report(struct site_core *c, enum site_message_type type, const struct site_work *w)
{
    struct site_item item = site__item_of(w);
    if (w->key.sender != c->config.self)
        site__put(c, type, (uint32_t)w->key.sender, 0, &item);
}
