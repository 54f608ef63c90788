/* The coordinator: what messages say to it, and what is due. */
#include "base/check.h"
#include "site_internal.h"

static void heard_about(struct site_core *c, uint64_t now, const struct site_message *m,
                        const struct site_item *item)
{
    struct site_work *w;
    switch (m->type) {
    case SITE_MSG_DELEGATE:
        site__accept(c, now, m, item);
        return;
    case SITE_MSG_GRANT:
        site__granted(c, m->from, item);
        return;
    case SITE_MSG_DENY:
        site__denied(c, m->from, item);
        return;
    case SITE_MSG_APPROVE:
        site__approve(c, now, m, item);
        return;
    case SITE_MSG_APPROVED:
        site__approval(c, now, m->from, item);
        return;
    case SITE_MSG_ACK:
        site__acked(c, m->from, item);
        w = site__work(c, item->sender, item->id);
        if (w && item->acked == SITE_MSG_DISPATCHED && w->key.sender == m->from)
            w->told = true;
        return;
    case SITE_MSG_HANDOVER:
    case SITE_MSG_CLOSED:
        site__foreign(c, m->from, item);
        site__acknowledge(c, m, item);
        return;
    case SITE_MSG_ACCEPTED:
    case SITE_MSG_REFUSED:
    case SITE_MSG_PROPOSE:
    case SITE_MSG_DISPATCHED:
    case SITE_MSG_GONE:
    case SITE_MSG_RETURNED:
    case SITE_MSG_REVERTED:
    case SITE_MSG_DISAPPROVED:
    case SITE_MSG_HEARTBEAT:
    case SITE_MSG_PROBE:
    case SITE_MSG_COUNT:
        return; /* not for this role */
    }
    UNREACHABLE();
}

void site__on_coordinator_message(struct site_core *c, uint64_t now, const struct site_message *m)
{
    if (m->type == SITE_MSG_HEARTBEAT || m->type == SITE_MSG_CLOSED)
        site__forget_foreign(c, m->from);
    if (m->type == SITE_MSG_HEARTBEAT) {
        for (size_t i = 0; i < m->count; i++)
            site__foreign(c, m->from, &m->items[i]);
        return;
    }
    for (size_t i = 0; i < m->count; i++)
        heard_about(c, now, m, &m->items[i]);
}

/* ---- what is due ---- */

static void give_up(struct site_core *c, uint64_t now, struct site_work *w)
{
    const struct site_item item = {.sender = (uint32_t)w->key.sender, .id = w->key.id};
    if (item.sender != c->config.self)
        site__letter(c, now, SITE_MSG_RETURNED, item.sender, &item);
    site__drop_work(c, w);
}

/* The site no longer orders it: its sender gives it to another. */
static bool give_back(struct site_core *c, uint64_t now, struct site_work *w)
{
    if (w->state >= SITE_WORK_GRANTED || site__is_filler(w) || site__leads(c, now, w->stay))
        return false;
    give_up(c, now, w);
    return true;
}

static void review_work(struct site_core *c, uint64_t now, struct site_work *w)
{
    if (give_back(c, now, w))
        return;
    if (w->state > SITE_WORK_HELD && (w->included || w->bytes.nonce < c->final_next[w->bytes.key] ||
                                      (w->state > SITE_WORK_SIGNING && site__dead(c, &w->bytes)))) {
        site__over(c, now, w);
        return;
    }
    switch (w->state) {
    case SITE_WORK_APPROVING:
        if (now >= w->since + c->config.propose_ms)
            give_up(c, now, w); /* the others choose another site, or are away */
        else if (now >= w->retry_at)
            site__ask_approval(c, now, w);
        return;
    case SITE_WORK_PROPOSED:
        if (w->key.sender == c->config.self)
            return;
        if (now >= w->since + c->config.propose_ms) {
            site__drop_work(c, w); /* its nonce is free; a late grant is adopted */
        } else if (now >= w->retry_at) {
            site__report(c, SITE_MSG_PROPOSE, w);
            w->retry_at = now + c->config.retry_ms;
        }
        return;
    case SITE_WORK_DISPATCHED:
        if (!w->told && now >= w->retry_at) {
            site__report(c, SITE_MSG_DISPATCHED, w);
            w->retry_at = now + c->config.retry_ms;
        }
        if (now >= w->send_at)
            site__sent(c, now, w);
        return;
    case SITE_WORK_HELD:
    case SITE_WORK_SIGNING:
    case SITE_WORK_GRANTED:
    case SITE_WORK_DISPATCHING:
        return;
    }
    UNREACHABLE();
}

void site__review_coordinator(struct site_core *c, uint64_t now)
{
    for (struct site_work *w = c->works, *next; w; w = next) {
        next = w->hh.next;
        review_work(c, now, w);
    }
    if (c->state == SITE_PREPARED || c->state == SITE_ACTIVE)
        site__give_nonces(c, now);
    if (c->state == SITE_PREPARED || c->state == SITE_ACTIVE || c->state == SITE_FLUSH)
        site__dispatch(c);
}
