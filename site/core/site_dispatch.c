/* The dispatch, which is the point of no return, and how it ends. */
#include "base/check.h"
#include "base/plant.h"
#include "site_internal.h"

void site__sent(struct site_core *c, uint64_t now, struct site_work *w)
{
    if (w->bytes.key != site__key(c) || w->bytes.nonce >= c->next)
        site__submit(c, &w->bytes);
    w->send_at = now + c->config.own_send_ms;
}

void site__on_dispatched(struct site_core *c, uint64_t now, const struct site_write *write)
{
    struct site_work *w = site__work(c, write->sender, write->id);
    PRE(w && w->state == SITE_WORK_DISPATCHING);
    site__work_state(c, w, SITE_WORK_DISPATCHED);
    w->told = w->key.sender == c->config.self;
    w->retry_at = now + c->config.retry_ms;
    site__report(c, SITE_MSG_DISPATCHED, w);
    site__sent(c, now, w);
}

void site__on_final_works(struct site_core *c, const struct site_event *ev)
{
    for (struct site_work *w = c->works; w; w = w->hh.next)
        for (size_t i = 0; i < ev->final.count; i++)
            if (w->state > SITE_WORK_SIGNING &&
                site__same(&w->bytes.hash, &ev->final.used[i].bytes.hash))
                w->included = true;
}

/* The bytes of a work can no longer be included, or are. */
void site__over(struct site_core *c, uint64_t now, struct site_work *w)
{
    switch (w->state) {
    case SITE_WORK_HELD:
    case SITE_WORK_DISPATCHING:
        return;
    case SITE_WORK_SIGNING:
    case SITE_WORK_APPROVING:
    case SITE_WORK_PROPOSED:
        if (w->included || site__is_filler(w))
            site__drop_work(c, w);
        else if (!PLANTED(SITE_STICKY_ID))
            site__work_state(c, w, SITE_WORK_HELD);
        return;
    case SITE_WORK_GRANTED:
        site__drop_work(c, w);
        return;
    case SITE_WORK_DISPATCHED:
        if (PLANTED(SITE_STICKY_ID) && !w->included)
            return;
        site__store(c, SITE_FX_STORE_DROP, (uint32_t)w->key.sender, w->key.id, &w->bytes);
        if (!w->included && w->key.sender != c->config.self) {
            struct site_item item = site__item_of(w);
            site__letter(c, now, SITE_MSG_REVERTED, (uint32_t)w->key.sender, &item);
        }
        site__drop_work(c, w);
        return;
    }
    UNREACHABLE();
}
