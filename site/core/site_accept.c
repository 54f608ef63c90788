/* Delegations, and the senders' answers to proposals: what becomes work of this site, and which of
 * two bytes at a nonce is kept. */
#include "base/plant.h"
#include "site_internal.h"

/* Live bytes of a transaction become its work here. false: their nonce was given to others. */
static bool adopt(struct site_core *c, uint32_t sender, uint64_t id, const struct site_bytes *bytes)
{
    struct site_work *w = site__work(c, sender, id);
    if (w && w->state >= SITE_WORK_GRANTED)
        return site__same(&w->bytes.hash, &bytes->hash);
    if (bytes->key >= c->config.members || site__dead(c, bytes))
        return false;
    struct site_work *there = bytes->key == site__key(c) ? site__at(c, bytes->nonce) : NULL;
    if (there && there != w) {
        if (there->state >= SITE_WORK_GRANTED)
            return false;
        site__drop_work(c, there); /* only one of the two can be included */
    }
    if (w)
        site__work_state(c, w, SITE_WORK_GRANTED);
    else
        w = site__begin_work(c, sender, id, SITE_WORK_GRANTED);
    w->bytes = *bytes;
    return true;
}

static enum site_reason may_accept(struct site_core *c, uint64_t now, const struct site_message *m,
                                   const struct site_item *item)
{
    if (m->from == c->config.self)
        return SITE_REASON_NONE;
    if (site__blind(c, now))
        return SITE_REASON_BLIND;
    if (!site__leads(c, now, m->down))
        return SITE_REASON_NOT_CHOSEN;
    if (HASH_COUNT(c->works) >= c->config.work_max && !site__work(c, item->sender, item->id))
        return SITE_REASON_FULL;
    return SITE_REASON_NONE;
}

void site__accept(struct site_core *c, uint64_t now, const struct site_message *m,
                  const struct site_item *item)
{
    bool own = m->from == c->config.self;
    struct site_item answer = *item;
    if (item->sender != m->from || (item->id & SITE_FILLER))
        return;
    enum site_reason reason = may_accept(c, now, m, item);
    if (reason != SITE_REASON_NONE) {
        answer.reason = reason;
        c->counts.refused[reason]++;
        site__put(c, SITE_MSG_REFUSED, m->from, m->number, &answer);
        return;
    }
    struct site_work *w = site__work(c, item->sender, item->id);
    if (item->has_bytes && item->valid) {
        if (!adopt(c, item->sender, item->id, &item->bytes)) {
            if (!own)
                site__put(c, SITE_MSG_GONE, m->from, m->number, &answer);
            return;
        }
        w = site__work(c, item->sender, item->id);
    } else if (!w) {
        w = site__begin_work(c, item->sender, item->id, SITE_WORK_HELD);
    } else if (w->state == SITE_WORK_PROPOSED) {
        site__report(c, SITE_MSG_PROPOSE, w);
    }
    w->stay = own ? 0 : site__adopt_view(c, now, m->down);
    if (!own)
        site__put(c, SITE_MSG_ACCEPTED, m->from, m->number, &answer);
}

void site__granted(struct site_core *c, uint32_t from, const struct site_item *item)
{
    struct site_work *w = item->sender == from ? site__work(c, from, item->id) : NULL;
    if (!item->has_bytes || item->sender != from)
        return;
    if (PLANTED(SITE_BY_ID) && w && w->state == SITE_WORK_PROPOSED) {
        site__work_state(c, w, SITE_WORK_GRANTED);
        return;
    }
    if (w && w->state == SITE_WORK_PROPOSED && site__same(&w->bytes.hash, &item->bytes.hash)) {
        site__work_state(c, w, SITE_WORK_GRANTED);
        return;
    }
    if (item->valid && adopt(c, from, item->id, &item->bytes)) {
        w = site__work(c, from, item->id);
        if (w->state == SITE_WORK_DISPATCHED)
            site__report(c, SITE_MSG_DISPATCHED, w);
        return;
    }
    if (from != c->config.self)
        site__put(c, SITE_MSG_GONE, from, 0, item);
}

void site__denied(struct site_core *c, uint32_t from, const struct site_item *item)
{
    struct site_work *w = item->sender == from ? site__work(c, from, item->id) : NULL;
    if (!w || w->state >= SITE_WORK_GRANTED)
        return;
    if (item->reason == SITE_REASON_LIVE) {
        if (item->has_bytes && item->valid && adopt(c, from, item->id, &item->bytes))
            return;
        w = site__work(c, from, item->id);
    } else if (w->state != SITE_WORK_PROPOSED || (item->reason != SITE_REASON_MOVED &&
                                                  !site__same(&w->bytes.hash, &item->bytes.hash))) {
        return; /* about an earlier proposal */
    }
    if (w)
        site__drop_work(c, w);
}
