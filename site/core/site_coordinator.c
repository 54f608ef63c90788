/* The coordinator's work: what is delegated here gets a nonce and a signature, is proposed to its
 * sender, and is dispatched once it is granted. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/plant.h"
#include "site_internal.h"

/* ---- works ---- */

struct site_work *site__work(struct site_core *c, uint32_t sender, uint64_t id)
{
    struct site_work *w;
    const struct site_work_key key = {sender, id};
    HASH_FIND(hh, c->works, &key, sizeof(key), w);
    return w;
}

static struct site_work *add(struct site_core *c, uint32_t sender, uint64_t id,
                             enum site_work_state state)
{
    struct site_work *w = xcalloc(1, sizeof(*w));
    w->key = (struct site_work_key){sender, id};
    w->state = state;
    c->held += (size_t)(state == SITE_WORK_HELD);
    site__work_begins(c, state);
    HASH_ADD(hh, c->works, key, sizeof(w->key), w);
    return w;
}

struct site_work *site__add_work(struct site_core *c, uint32_t sender, uint64_t id)
{
    struct site_work *w = site__work(c, sender, id);
    PRE(!w);
    w = add(c, sender, id, SITE_WORK_HELD);
    return w;
}

void site__load_dispatch(struct site_core *c, const struct site_dispatch *d)
{
    struct site_work *w = add(c, d->sender, d->id, SITE_WORK_DISPATCHED);
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

static struct site_item item_of(const struct site_work *w)
{
    return (struct site_item){.sender = (uint32_t)w->key.sender,
                              .id = w->key.id,
                              .has_bytes = w->state > SITE_WORK_SIGNING,
                              .valid = true,
                              .bytes = w->bytes};
}

/* To the sender, which may be this site: then it follows from the tables. */
static void tell(struct site_core *c, enum site_message_type type, const struct site_work *w)
{
    struct site_item item = item_of(w);
    if (w->key.sender != c->config.self)
        site__put(c, type, (uint32_t)w->key.sender, 0, &item);
}

/* ---- delegations and grants ---- */

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
        w = add(c, sender, id, SITE_WORK_GRANTED);
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
        w = add(c, item->sender, item->id, SITE_WORK_HELD);
    } else if (w->state == SITE_WORK_PROPOSED) {
        tell(c, SITE_MSG_PROPOSE, w);
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
            tell(c, SITE_MSG_DISPATCHED, w);
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

/* ---- signatures, approvals ---- */

static size_t approved(const struct site_work *w)
{
    size_t n = 0;
    for (uint32_t bits = w->approvals; bits; bits &= bits - 1)
        n++;
    return n;
}

static void ask_approval(struct site_core *c, uint64_t now, struct site_work *w)
{
    struct site_item item = item_of(w);
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
        struct site_item item = item_of(w);
        site__consider(c, now, c->config.self, 0, &item);
    } else {
        tell(c, SITE_MSG_PROPOSE, w);
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
        ask_approval(c, now, w);
    } else {
        propose(c, now, w);
    }
}

static void approval(struct site_core *c, uint64_t now, uint32_t from, const struct site_item *item)
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
static void approve(struct site_core *c, uint64_t now, const struct site_message *m,
                    const struct site_item *item)
{
    uint32_t away = m->down & ~(UINT32_C(1) << m->from);
    bool chosen = site__choose(c, now, away) == (int)m->from;
    struct site_item answer = *item;
    answer.reason = chosen ? SITE_REASON_NONE : SITE_REASON_NOT_CHOSEN;
    site__put(c, chosen ? SITE_MSG_APPROVED : SITE_MSG_DISAPPROVED, m->from, m->number, &answer);
}

/* ---- dispatch, and the end ---- */

static void sent(struct site_core *c, uint64_t now, struct site_work *w)
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
    tell(c, SITE_MSG_DISPATCHED, w);
    sent(c, now, w);
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
static void over(struct site_core *c, uint64_t now, struct site_work *w)
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
            struct site_item item = item_of(w);
            site__letter(c, now, SITE_MSG_REVERTED, (uint32_t)w->key.sender, &item);
        }
        site__drop_work(c, w);
        return;
    }
    UNREACHABLE();
}

/* ---- messages ---- */

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
        approve(c, now, m, item);
        return;
    case SITE_MSG_APPROVED:
        approval(c, now, m->from, item);
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
        over(c, now, w);
        return;
    }
    switch (w->state) {
    case SITE_WORK_APPROVING:
        if (now >= w->since + c->config.propose_ms)
            give_up(c, now, w); /* the others choose another site, or are away */
        else if (now >= w->retry_at)
            ask_approval(c, now, w);
        return;
    case SITE_WORK_PROPOSED:
        if (w->key.sender == c->config.self)
            return;
        if (now >= w->since + c->config.propose_ms) {
            site__drop_work(c, w); /* its nonce is free; a late grant is adopted */
        } else if (now >= w->retry_at) {
            tell(c, SITE_MSG_PROPOSE, w);
            w->retry_at = now + c->config.retry_ms;
        }
        return;
    case SITE_WORK_DISPATCHED:
        if (!w->told && now >= w->retry_at) {
            tell(c, SITE_MSG_DISPATCHED, w);
            w->retry_at = now + c->config.retry_ms;
        }
        if (now >= w->send_at)
            sent(c, now, w);
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
    if (c->state == SITE_ACTIVE || c->state == SITE_FLUSH)
        site__dispatch(c);
}
