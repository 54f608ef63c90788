/* The sender's duties: each transaction of this site is delegated to the site that is chosen, and
 * again when that one is silent, refuses or forgets. */
#include "base/plant.h"
#include "site_internal.h"

static void delegate(struct site_core *c, uint64_t now, struct site_tx *t, int to)
{
    const struct site_grant *g = site__live_grant(c, t);
    struct site_item item = {.sender = c->config.self, .id = t->id};
    if ((PLANTED(SITE_SELF_FREE) && to == (int)c->config.self) ||
        (PLANTED(SITE_NONCE_ONLY) && g && (int)g->bytes.key != to))
        g = NULL;
    if (g) {
        item.has_bytes = item.valid = true;
        item.bytes = g->bytes;
    }
    t->delegate = to;
    t->again = t->acked = false;
    t->life = 0;
    t->retry_at = now + c->config.retry_ms;
    if (t->state == SITE_TX_WAITING)
        site__move_tx(c, t, SITE_TX_ASKED);
    if (to == (int)c->config.self) {
        if (t->state == SITE_TX_ASKED)
            site__move_tx(c, t, SITE_TX_HELD);
        t->acked = true;
        const struct site_message own = {
            .type = SITE_MSG_DELEGATE, .from = c->config.self, .to = c->config.self};
        site__accept(c, now, &own, &item);
        return;
    }
    site__owes(c, now, to);
    t->asked = site__put(c, SITE_MSG_DELEGATE, (uint32_t)to, 0, &item);
}

static size_t in_flight(const struct site_core *c)
{
    size_t n = 0;
    for (const struct site_tx *t = c->txs; t; t = t->hh.next)
        n += (size_t)(t->state != SITE_TX_WAITING);
    return n;
}

static void review_granted(struct site_core *c, uint64_t now, struct site_tx *t, int chosen)
{
    struct site_grant *g = site__live_grant(c, t);
    if (!g) {
        if (!PLANTED(SITE_STICKY_ID) || t->delegate == SITE_NOBODY)
            site__back_to_waiting(c, t, now);
        else
            site__move_tx(c, t, SITE_TX_WAITING);
        return;
    }
    if (t->delegate >= 0 && !(c->down >> t->delegate & 1))
        site__owes(c, now, t->delegate);
    bool away = t->delegate == SITE_NOBODY ||
                (t->delegate != (int)c->config.self && (c->down >> t->delegate & 1));
    if (now >= t->send_at) {
        site__submit(c, &g->bytes);
        t->send_at = now + c->config.own_send_ms;
    }
    if (chosen == SITE_NOBODY)
        return;
    if (away && t->delegate != chosen) {
        delegate(c, now, t, chosen);
        t->send_at = t->send_at > now + c->config.retry_ms ? now + c->config.retry_ms : t->send_at;
    } else if (t->again && now >= t->retry_at) {
        delegate(c, now, t, chosen);
    } else if (!t->acked && !t->again && now >= t->retry_at) {
        if (PLANTED(SITE_SILENCE)) {
            site__back_to_waiting(c, t, now);
            return;
        }
        delegate(c, now, t, t->delegate);
    }
}

/* A transaction that this site coordinates for itself is gone there. */
static bool forgotten(struct site_core *c, const struct site_tx *t)
{
    return t->delegate == (int)c->config.self && !site__work(c, c->config.self, t->id);
}

static void review_tx(struct site_core *c, uint64_t now, struct site_tx *t, int chosen,
                      size_t *flight)
{
    if (t->cancel && t->state < SITE_TX_GRANTING &&
        (!site__waits(c) || PLANTED(SITE_CANCEL_BLIND))) {
        site__end(c, t, SITE_CANCELLED, NULL);
        return;
    }
    switch (t->state) {
    case SITE_TX_ASKED:
    case SITE_TX_HELD:
        if (t->delegate != chosen || forgotten(c, t)) {
            site__back_to_waiting(c, t, t->delegate != chosen ? now : now + c->config.retry_ms);
            break;
        }
        site__owes(c, now, chosen); /* an answer, and then heartbeats */
        if (t->state == SITE_TX_ASKED && now >= t->retry_at)
            delegate(c, now, t, chosen);
        return;
    case SITE_TX_GRANTED:
        if (t->acked && forgotten(c, t)) {
            t->acked = false;
            t->again = true;
        }
        review_granted(c, now, t, chosen);
        break;
    case SITE_TX_WAITING:
        break;
    case SITE_TX_GRANTING:
    case SITE_TX_ENDING:
        return;
    }
    if (t->state == SITE_TX_WAITING && !t->cancel && chosen != SITE_NOBODY && !site__waits(c) &&
        *flight < c->config.flight_max) {
        bool behind = t->wait_range > site__range(c);
        if (now >= t->retry_at || (t->wait_range && !behind)) {
            delegate(c, now, t, chosen);
            *flight += 1;
        }
    }
}

void site__review_sender(struct site_core *c, uint64_t now)
{
    site__review_lost(c, now);
    int chosen = c->chosen = site__choose(c, now, 0);
    size_t flight = in_flight(c);
    c->owed = 0;
    for (struct site_tx *t = c->txs, *next; t; t = next) {
        next = t->hh.next;
        review_tx(c, now, t, chosen, &flight);
    }
    site__owes_nothing(c, ~c->owed);
}
