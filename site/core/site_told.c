/* What a coordinator says to the sender, and what follows for the transaction. */
#include "base/check.h"
#include "site_internal.h"

void site__back_to_waiting(struct site_core *c, struct site_tx *t, uint64_t retry_at)
{
    site__move_tx(c, t, SITE_TX_WAITING);
    t->delegate = SITE_NOBODY;
    t->retry_at = retry_at;
    t->wait_range = 0;
}

/* The coordinator has it: since this message of its life. */
static void is_there(struct site_tx *t, const struct site_message *m)
{
    t->life = m->life;
    t->accepted = m->number;
}

/* The coordinator has not the granted bytes, or no longer. */
static void is_gone(struct site_core *c, uint64_t now, struct site_tx *t)
{
    t->acked = false;
    t->again = true;
    t->retry_at = now + c->config.retry_ms;
}

static void refused(struct site_core *c, uint64_t now, const struct site_message *m,
                    struct site_tx *t, enum site_reason reason)
{
    if (t->asked != m->answers || t->delegate != (int)m->from)
        return;
    if (t->state == SITE_TX_GRANTED) {
        t->again = true;
        t->retry_at = now + c->config.retry_ms;
        return;
    }
    if (t->state != SITE_TX_ASKED)
        return;
    site__back_to_waiting(c, t, now + c->config.retry_ms);
    if (reason == SITE_REASON_NOT_CHOSEN && !c->config.sticky) {
        uint64_t theirs = selector_range(m->height, c->config.range_blocks);
        if (theirs > site__range(c)) {
            /* This site is behind: its own node has to show the new range. */
            t->wait_range = theirs;
            t->retry_at = now + c->config.silence_ms;
        }
    }
}

static void heartbeat(struct site_core *c, uint64_t now, const struct site_message *m)
{
    /* All that it has are marked; the others are missing. */
    for (size_t i = 0; i < m->count; i++) {
        const struct site_item *item = &m->items[i];
        struct site_tx *t = item->sender == c->config.self ? site__tx(c, item->id) : NULL;
        if (!t || t->delegate != (int)m->from)
            continue;
        is_there(t, m);
        if (t->state == SITE_TX_ASKED)
            site__move_tx(c, t, SITE_TX_HELD);
        if (item->stage >= SITE_WORK_GRANTED && item->has_bytes &&
            site__grant_of(t, &item->bytes.hash))
            t->acked = true;
    }
    for (struct site_tx *t = c->txs; t; t = t->hh.next) {
        if (t->delegate != (int)m->from || !t->life ||
            (t->life == m->life && m->number <= t->accepted))
            continue;
        if (t->state == SITE_TX_HELD) {
            site__back_to_waiting(c, t, now);
        } else if (t->state == SITE_TX_GRANTED && t->acked) {
            t->acked = false;
            t->again = true;
            t->retry_at = now;
        }
    }
}

static void accepted(struct site_core *c, const struct site_message *m, struct site_tx *t)
{
    if (t->asked != m->answers)
        return;
    is_there(t, m);
    if (t->state == SITE_TX_ASKED)
        site__move_tx(c, t, SITE_TX_HELD);
    else if (t->state == SITE_TX_GRANTED)
        t->acked = true;
}

static void returned(struct site_core *c, uint64_t now, struct site_tx *t, bool these_bytes)
{
    if (t->state == SITE_TX_HELD || t->state == SITE_TX_ASKED)
        site__back_to_waiting(c, t, now);
    else if (t->state == SITE_TX_GRANTED && these_bytes)
        is_gone(c, now, t);
}

static void dispatched(struct site_core *c, const struct site_message *m,
                       const struct site_item *item, struct site_tx *t, bool mine)
{
    if (!t || !item->has_bytes || !site__grant_of(t, &item->bytes.hash)) {
        site__acknowledge(c, m, item);
        return;
    }
    if (mine) {
        t->acked = true;
        is_there(t, m);
    }
    site__store(c, SITE_FX_STORE_NOTED, m->from, t->id, &item->bytes);
}

static void about(struct site_core *c, uint64_t now, const struct site_message *m,
                  const struct site_item *item)
{
    struct site_tx *t = item->sender == c->config.self ? site__tx(c, item->id) : NULL;
    bool granted = t && item->has_bytes && site__grant_of(t, &item->bytes.hash);
    bool mine = t && t->delegate == (int)m->from;
    switch (m->type) {
    case SITE_MSG_ACCEPTED:
        if (mine)
            accepted(c, m, t);
        return;
    case SITE_MSG_REFUSED:
        if (t)
            refused(c, now, m, t, item->reason);
        return;
    case SITE_MSG_PROPOSE:
        site__consider(c, now, m->from, m->number, item);
        return;
    case SITE_MSG_DISPATCHED:
        dispatched(c, m, item, t, mine);
        return;
    case SITE_MSG_GONE:
        if (mine && granted && t->state == SITE_TX_GRANTED) {
            is_gone(c, now, t);
            t->send_at = now; /* nobody but this site sends them */
        }
        return;
    case SITE_MSG_RETURNED:
    case SITE_MSG_REVERTED:
        site__acknowledge(c, m, item);
        if (mine)
            returned(c, now, t, !item->has_bytes || granted);
        return;
    case SITE_MSG_DELEGATE:
    case SITE_MSG_GRANT:
    case SITE_MSG_DENY:
    case SITE_MSG_HANDOVER:
    case SITE_MSG_CLOSED:
    case SITE_MSG_APPROVE:
    case SITE_MSG_APPROVED:
    case SITE_MSG_DISAPPROVED:
    case SITE_MSG_ACK:
    case SITE_MSG_HEARTBEAT:
    case SITE_MSG_PROBE:
    case SITE_MSG_COUNT:
        return; /* not for this role */
    }
    UNREACHABLE();
}

void site__on_sender_message(struct site_core *c, uint64_t now, const struct site_message *m)
{
    if (m->type == SITE_MSG_HEARTBEAT) {
        heartbeat(c, now, m);
        return;
    }
    for (size_t i = 0; i < m->count; i++)
        about(c, now, m, &m->items[i]);
}
