/* The sender's duties: each transaction of this site is delegated to the site that is chosen, bytes
 * are granted only where no others can be included, and the end is read from finalized blocks. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/plant.h"
#include "site_internal.h"

/* ---- rows ---- */

struct site_tx *site__tx(struct site_core *c, uint64_t id)
{
    struct site_tx *t;
    HASH_FIND(hh, c->txs, &id, sizeof(id), t);
    return t;
}

static struct site_tx *add(struct site_core *c, uint64_t id, enum site_tx_state state)
{
    struct site_tx *t = xcalloc(1, sizeof(*t));
    t->id = id;
    t->state = state;
    t->delegate = SITE_NOBODY;
    site__tx_begins(c, state);
    HASH_ADD(hh, c->txs, id, sizeof(t->id), t);
    return t;
}

struct site_tx *site__add_tx(struct site_core *c, uint64_t id)
{
    struct site_tx *t = site__tx(c, id);
    return t ? t : add(c, id, SITE_TX_WAITING);
}

static struct site_grant *add_grant(struct site_tx *t, const struct site_bytes *bytes,
                                    uint32_t delegate)
{
    if (t->grant_count == t->grant_cap) {
        t->grant_cap = t->grant_cap ? t->grant_cap * 2 : 2;
        t->grants = xrealloc(t->grants, t->grant_cap * sizeof(*t->grants));
    }
    struct site_grant *g = &t->grants[t->grant_count++];
    *g = (struct site_grant){.bytes = *bytes, .delegate = delegate};
    return g;
}

static void remove_tx(struct site_core *c, struct site_tx *t)
{
    HASH_DEL(c->txs, t);
    free(t->grants);
    free(t);
}

void site__free_txs(struct site_core *c)
{
    struct site_tx *t, *next;
    HASH_ITER(hh, c->txs, t, next)
    {
        remove_tx(c, t);
    }
}

size_t site__open_rows(const struct site_core *c)
{
    return HASH_COUNT(c->txs);
}

/* ---- what can still be included ---- */

bool site__waits(const struct site_core *c)
{
    return c->lost || c->wait_until > c->final;
}

bool site__dead(const struct site_core *c, const struct site_bytes *bytes)
{
    uint64_t read = PLANTED(SITE_UNFINAL) ? c->height : c->final;
    return bytes->death <= read || bytes->nonce < c->final_next[bytes->key];
}

static struct site_grant *grant_of(struct site_tx *t, const struct site_hash *hash)
{
    for (size_t i = 0; i < t->grant_count; i++)
        if (site__same(&t->grants[i].bytes.hash, hash))
            return &t->grants[i];
    return NULL;
}

/* The newest bytes that may be included and are stored; NULL: none. */
static struct site_grant *live_grant(const struct site_core *c, const struct site_tx *t)
{
    for (size_t i = t->grant_count; i > 0; i--)
        if (t->grants[i - 1].stored && !site__dead(c, &t->grants[i - 1].bytes))
            return &t->grants[i - 1];
    return NULL;
}

/* The promise S-I5: granted bytes at another place that can still be included. NULL: none. */
static struct site_grant *in_the_way(const struct site_core *c, struct site_tx *t,
                                     const struct site_bytes *bytes, uint32_t from)
{
    if (PLANTED(SITE_SELF_FREE) && from == c->config.self)
        return NULL;
    for (size_t i = 0; i < t->grant_count; i++) {
        struct site_grant *g = &t->grants[i];
        if (g->bytes.nonce == bytes->nonce &&
            (g->bytes.key == bytes->key || PLANTED(SITE_NONCE_ONLY)))
            continue;
        if (PLANTED(SITE_PER_DELEGATE) && g->delegate != from)
            continue;
        if (PLANTED(SITE_SILENCE) && !t->acked)
            continue;
        if (!site__dead(c, &g->bytes))
            return g;
    }
    return NULL;
}

void site__load_row(struct site_core *c, const struct site_row *row)
{
    size_t count = PLANTED(SITE_FORGETFUL) ? 0 : row->count;
    bool live = false;
    for (size_t i = 0; i < count; i++)
        live |= !site__dead(c, &row->attempts[i]);
    struct site_tx *t = add(c, row->id, live ? SITE_TX_GRANTED : SITE_TX_WAITING);
    for (size_t i = 0; i < count; i++)
        add_grant(t, &row->attempts[i], c->config.self)->stored = true;
    t->cancel = row->cancel;
}

/* ---- lost commits ---- */

void site__lost(struct site_core *c, uint64_t now, uint64_t highest)
{
    c->lost = true;
    c->lost_at = now;
    c->highest = highest;
    bool asks = !PLANTED(SITE_WAIT_BEHIND);
    asks = asks && !PLANTED(SITE_NO_WAIT);
    for (uint32_t i = 0; i < c->config.members; i++) {
        c->members[i].height_known = i == c->config.self;
        if (i != c->config.self && asks)
            site__put(c, SITE_MSG_PROBE, i, 0, NULL);
    }
}

/* How high the chain may have been when the lost bytes were granted: the highest that any member
 * has heard of. Members that do not answer in time are left out. */
static void review_lost(struct site_core *c, uint64_t now)
{
    if (!c->lost || c->wait_stored || !c->head_at)
        return;
    bool all = true;
    for (size_t i = 0; i < c->config.members; i++)
        all &= c->members[i].height_known;
    if (PLANTED(SITE_NO_WAIT) || (PLANTED(SITE_TOLD) && all)) {
        c->lost = false;
        return;
    }
    uint64_t highest = c->highest > c->height ? c->highest : c->height;
    if (PLANTED(SITE_WAIT_BEHIND))
        highest = c->final;
    else if (!all && now < c->lost_at + c->config.probe_ms + c->config.silence_ms)
        return;
    c->wait_until = highest + c->config.era_blocks;
    c->wait_stored = true;
    site__store(c, SITE_FX_STORE_WAIT, c->config.self, 0, NULL)->height =
        PLANTED(SITE_WAIT_MEMORY) ? 0 : c->wait_until;
}

/* The first word of each member after the loss: it may have heard of a higher block. */
void site__height_of(struct site_core *c, uint32_t member, uint64_t height)
{
    bool waits = c->lost || c->wait_stored;
    if (!waits || c->members[member].height_known)
        return;
    c->members[member].height_known = true;
    if (height > c->highest)
        c->highest = height;
    if (c->wait_stored && !c->lost && site__waits(c) &&
        height + c->config.era_blocks > c->wait_until) {
        c->wait_until = height + c->config.era_blocks;
        site__store(c, SITE_FX_STORE_WAIT, c->config.self, 0, NULL)->height = c->wait_until;
    }
}

/* ---- grants ---- */

static void deny(struct site_core *c, uint32_t to, uint64_t number, const struct site_item *item,
                 enum site_reason reason, const struct site_grant *way)
{
    struct site_item answer = *item;
    answer.reason = reason;
    answer.valid = false;
    c->counts.refused[reason]++;
    /* Only bytes on record may be sent. */
    answer.has_bytes = !way || way->stored;
    if (way)
        answer.bytes = way->bytes;
    if (to == c->config.self)
        site__denied(c, to, &answer);
    else
        site__put(c, SITE_MSG_DENY, to, number, &answer);
}

static void tell_grant(struct site_core *c, uint64_t now, struct site_tx *t,
                       const struct site_grant *g)
{
    struct site_item item = {
        .sender = c->config.self, .id = t->id, .has_bytes = true, .valid = true, .bytes = g->bytes};
    t->retry_at = now + c->config.retry_ms;
    if (t->delegate == (int)c->config.self) {
        t->acked = true;
        site__granted(c, c->config.self, &item);
    } else if (t->delegate != SITE_NOBODY) {
        site__owes(c, now, t->delegate);
        site__put(c, SITE_MSG_GRANT, (uint32_t)t->delegate, 0, &item);
    }
}

void site__consider(struct site_core *c, uint64_t now, uint32_t from, uint64_t number,
                    const struct site_item *item)
{
    struct site_tx *t = item->sender == c->config.self ? site__tx(c, item->id) : NULL;
    const struct site_bytes *bytes = &item->bytes;
    if (!t || t->cancel || t->state == SITE_TX_ENDING) {
        deny(c, from, number, item, SITE_REASON_UNKNOWN, NULL);
        return;
    }
    if (site__waits(c)) {
        deny(c, from, number, item, SITE_REASON_WAIT, NULL);
        return;
    }
    if (!item->has_bytes || !item->valid || bytes->key >= c->config.members) {
        deny(c, from, number, item, SITE_REASON_INVALID, NULL);
        return;
    }
    struct site_grant *known = grant_of(t, &bytes->hash);
    if (known && known->stored && !site__dead(c, bytes)) {
        if (t->delegate == (int)from)
            tell_grant(c, now, t, known);
        return;
    }
    if (known)
        return; /* its answer follows when it is stored */
    if (t->delegate != (int)from) {
        deny(c, from, number, item, SITE_REASON_MOVED, live_grant(c, t));
        return;
    }
    bool mortal = bytes->death <= c->final + c->config.era_blocks || PLANTED(SITE_ERA_LONG);
    mortal = mortal || PLANTED(SITE_IMMORTAL);
    if (!mortal || site__dead(c, bytes)) {
        deny(c, from, number, item, SITE_REASON_ERA, NULL);
        return;
    }
    const struct site_grant *way = in_the_way(c, t, bytes, from);
    if (way) {
        deny(c, from, number, item, SITE_REASON_LIVE, way);
        return;
    }
    add_grant(t, bytes, from);
    site__move_tx(c, t, SITE_TX_GRANTING);
    t->acked = t->again = false;
    site__store(c, SITE_FX_STORE_GRANT, c->config.self, t->id, bytes);
    if (PLANTED(SITE_EARLY))
        tell_grant(c, now, t, &t->grants[t->grant_count - 1]);
}

void site__on_granted(struct site_core *c, uint64_t now, const struct site_write *w)
{
    struct site_tx *t = site__tx(c, w->id);
    struct site_grant *g = t ? grant_of(t, &w->bytes.hash) : NULL;
    PRE(g);
    g->stored = true;
    if (t->state != SITE_TX_GRANTING)
        return; /* a final block had bytes of it meanwhile */
    for (size_t i = 0; i < t->grant_count; i++)
        if (!t->grants[i].stored)
            return; /* another one is being stored */
    site__move_tx(c, t, SITE_TX_GRANTED);
    t->send_at = now + c->config.own_send_ms;
    tell_grant(c, now, t, g);
}

/* ---- ends ---- */

static void end(struct site_core *c, struct site_tx *t, enum site_end how,
                const struct site_bytes *bytes)
{
    site__move_tx(c, t, SITE_TX_ENDING);
    site__store(c, SITE_FX_STORE_END, c->config.self, t->id, bytes)->end = how;
}

void site__ended(struct site_core *c, uint64_t id)
{
    struct site_tx *t = site__tx(c, id);
    PRE(t && t->state == SITE_TX_ENDING);
    site__tx_ends(c, t->state);
    remove_tx(c, t);
}

void site__best_end(struct site_core *c)
{
    for (struct site_tx *t = c->txs; t; t = t->hh.next)
        for (size_t i = 0; i < t->grant_count && t->state == SITE_TX_GRANTED; i++)
            if (t->grants[i].bytes.key == site__key(c) && t->grants[i].bytes.nonce < c->next)
                end(c, t, SITE_OK, &t->grants[i].bytes);
}

void site__on_final_rows(struct site_core *c, const struct site_event *ev)
{
    for (size_t i = 0; i < ev->final.count; i++) {
        const struct site_used *u = &ev->final.used[i];
        /* After lost commits a row is known by its call: the hash may be among what was lost. */
        bool adopts = (c->lost || c->wait_until >= ev->final.height) && !PLANTED(SITE_HASH_ONLY);
        struct site_tx *t = u->id ? site__tx(c, u->id) : NULL;
        if (!t || t->state == SITE_TX_ENDING)
            continue;
        if (!grant_of(t, &u->bytes.hash)) {
            if (!adopts)
                continue;
            c->counts.adopted++;
        }
        if (t->state == SITE_TX_GRANTING)
            site__move_tx(c, t, SITE_TX_GRANTED);
        end(c, t, SITE_OK, &u->bytes);
    }
}

/* ---- what the coordinator says ---- */

static void back_to_waiting(struct site_core *c, struct site_tx *t, uint64_t retry_at)
{
    site__move_tx(c, t, SITE_TX_WAITING);
    t->delegate = SITE_NOBODY;
    t->retry_at = retry_at;
    t->wait_range = 0;
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
    back_to_waiting(c, t, now + c->config.retry_ms);
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
        t->life = m->life;
        t->accepted = m->number;
        if (t->state == SITE_TX_ASKED)
            site__move_tx(c, t, SITE_TX_HELD);
        if (item->stage >= SITE_WORK_GRANTED && item->has_bytes && grant_of(t, &item->bytes.hash))
            t->acked = true;
    }
    for (struct site_tx *t = c->txs; t; t = t->hh.next) {
        if (t->delegate != (int)m->from || !t->life ||
            (t->life == m->life && m->number <= t->accepted))
            continue;
        if (t->state == SITE_TX_HELD) {
            back_to_waiting(c, t, now);
        } else if (t->state == SITE_TX_GRANTED && t->acked) {
            t->acked = false;
            t->again = true;
            t->retry_at = now;
        }
    }
}

static void about(struct site_core *c, uint64_t now, const struct site_message *m,
                  const struct site_item *item)
{
    struct site_tx *t = item->sender == c->config.self ? site__tx(c, item->id) : NULL;
    struct site_grant *g = t && item->has_bytes ? grant_of(t, &item->bytes.hash) : NULL;
    bool mine = t && t->delegate == (int)m->from;
    switch (m->type) {
    case SITE_MSG_ACCEPTED:
        if (!mine || t->asked != m->answers)
            return;
        t->life = m->life;
        t->accepted = m->number;
        if (t->state == SITE_TX_ASKED)
            site__move_tx(c, t, SITE_TX_HELD);
        else if (t->state == SITE_TX_GRANTED)
            t->acked = true;
        return;
    case SITE_MSG_REFUSED:
        if (t)
            refused(c, now, m, t, item->reason);
        return;
    case SITE_MSG_PROPOSE:
        site__consider(c, now, m->from, m->number, item);
        return;
    case SITE_MSG_DISPATCHED:
        if (mine && g) {
            t->acked = true;
            t->life = m->life;
            t->accepted = m->number;
        }
        if (g)
            site__store(c, SITE_FX_STORE_NOTED, m->from, t->id, &item->bytes);
        else
            site__acknowledge(c, m, item);
        return;
    case SITE_MSG_GONE:
        if (mine && g && t->state == SITE_TX_GRANTED) {
            t->acked = false;
            t->again = true;
            t->retry_at = now + c->config.retry_ms;
            t->send_at = now; /* nobody but this site sends them */
        }
        return;
    case SITE_MSG_RETURNED:
    case SITE_MSG_REVERTED:
        site__acknowledge(c, m, item);
        if (!mine)
            return;
        if (t->state == SITE_TX_HELD || t->state == SITE_TX_ASKED) {
            back_to_waiting(c, t, now);
        } else if (t->state == SITE_TX_GRANTED && (!item->has_bytes || g)) {
            t->acked = false;
            t->again = true;
            t->retry_at = now + c->config.retry_ms;
        }
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

/* ---- delegation ---- */

static void delegate(struct site_core *c, uint64_t now, struct site_tx *t, int to)
{
    const struct site_grant *g = live_grant(c, t);
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
    struct site_grant *g = live_grant(c, t);
    if (!g) {
        if (!PLANTED(SITE_STICKY_ID) || t->delegate == SITE_NOBODY)
            back_to_waiting(c, t, now);
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
            back_to_waiting(c, t, now);
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
        end(c, t, SITE_CANCELLED, NULL);
        return;
    }
    switch (t->state) {
    case SITE_TX_ASKED:
    case SITE_TX_HELD:
        if (t->delegate != chosen || forgotten(c, t)) {
            back_to_waiting(c, t, t->delegate != chosen ? now : now + c->config.retry_ms);
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
    review_lost(c, now);
    int chosen = c->chosen = site__choose(c, now, 0);
    size_t flight = in_flight(c);
    c->owed = 0;
    for (struct site_tx *t = c->txs, *next; t; t = next) {
        next = t->hh.next;
        review_tx(c, now, t, chosen, &flight);
    }
    site__owes_nothing(c, ~c->owed);
}
