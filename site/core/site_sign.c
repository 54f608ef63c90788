/* From a nonce to a proposal: signatures, and approvals of other members. */
#include "site_internal.h"

static size_t approved(const struct site_work *w)
{
    size_t n = 0;
    for (uint32_t bits = w->approvals; bits; bits &= bits - 1)
        n++;
    return n;
}

void site__ask_approval(struct site_core *c, uint64_t now, struct site_work *w)
{
    struct site_item item = site__item_of(w);
    for (uint32_t i = 0; i < c->config.members; i++)
        if (i != c->config.self && !(w->approvals >> i & 1))
            site__put(c, SITE_MSG_APPROVE, i, 0, &item);
    w->retry_at = now + c->config.retry_ms;
}

static void propose(struct site_core *c, uint64_t now, struct site_work *w)
{
    site__work_state(c, w, SITE_WORK_PROPOSED);
    w->since = now;
    w->retry_at = now + c->config.retry_ms;
    if (w->key.sender == c->config.self) {
        struct site_item item = site__item_of(w);
        site__consider(c, now, c->config.self, 0, &item);
    } else {
        site__report(c, SITE_MSG_PROPOSE, w);
    }
}

void site__signed(struct site_core *c, uint64_t now, const struct site_item *item)
{
    struct site_work *w = site__work(c, item->sender, item->id);
    if (!w || w->state != SITE_WORK_SIGNING || w->bytes.nonce != item->bytes.nonce)
        return;
    if (!item->has_bytes) {
        if (site__is_filler(w)) {
            site__drop_work(c, w);
        } else {
            site__work_state(c, w, SITE_WORK_HELD);
            w->retry_at = now + c->config.retry_ms;
        }
        return;
    }
    w->bytes = item->bytes;
    w->approvals = 0;
    w->since = now;
    if (site__is_filler(w)) {
        site__work_state(c, w, SITE_WORK_GRANTED);
    } else if (c->config.approvals) {
        site__work_state(c, w, SITE_WORK_APPROVING);
        site__ask_approval(c, now, w);
    } else {
        propose(c, now, w);
    }
}

void site__approval(struct site_core *c, uint64_t now, uint32_t from, const struct site_item *item)
{
    struct site_work *w = site__work(c, item->sender, item->id);
    if (!w || w->state != SITE_WORK_APPROVING || !item->has_bytes ||
        !site__same(&w->bytes.hash, &item->bytes.hash))
        return;
    w->approvals |= UINT32_C(1) << from;
    if (approved(w) >= c->config.approvals)
        propose(c, now, w);
}

/* Another member asks: by this site's height, is that member the coordinator? */
void site__approve(struct site_core *c, uint64_t now, const struct site_message *m,
                   const struct site_item *item)
{
    uint32_t away = m->down & ~(UINT32_C(1) << m->from);
    bool chosen = site__choose(c, now, away) == (int)m->from;
    struct site_item answer = *item;
    answer.reason = chosen ? SITE_REASON_NONE : SITE_REASON_NOT_CHOSEN;
    site__put(c, chosen ? SITE_MSG_APPROVED : SITE_MSG_DISAPPROVED, m->from, m->number, &answer);
}
