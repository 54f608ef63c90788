/* The grant: the sender stores the bytes that a coordinator proposes, if nothing else of the
 * transaction can still be included elsewhere. */
#include "base/check.h"
#include "base/plant.h"
#include "site_internal.h"

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

static void send_grant(struct site_core *c, uint64_t now, struct site_tx *t,
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
    struct site_grant *known = site__grant_of(t, &bytes->hash);
    if (known && known->stored && !site__dead(c, bytes)) {
        if (t->delegate == (int)from)
            send_grant(c, now, t, known);
        return;
    }
    if (known)
        return; /* its answer follows when it is stored */
    if (t->delegate != (int)from) {
        deny(c, from, number, item, SITE_REASON_MOVED, site__live_grant(c, t));
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
    site__add_grant(t, bytes, from);
    site__move_tx(c, t, SITE_TX_GRANTING);
    t->acked = t->again = false;
    site__store(c, SITE_FX_STORE_GRANT, from, t->id, bytes);
    if (PLANTED(SITE_EARLY))
        send_grant(c, now, t, &t->grants[t->grant_count - 1]);
}

void site__on_granted(struct site_core *c, uint64_t now, const struct site_write *w)
{
    struct site_tx *t = site__tx(c, w->id);
    struct site_grant *g = t ? site__grant_of(t, &w->bytes.hash) : NULL;
    PRE(g);
    g->stored = true;
    if (t->state != SITE_TX_GRANTING)
        return; /* a final block had bytes of it meanwhile */
    for (size_t i = 0; i < t->grant_count; i++)
        if (!t->grants[i].stored)
            return; /* another one is being stored */
    site__move_tx(c, t, SITE_TX_GRANTED);
    t->send_at = now + c->config.own_send_ms;
    send_grant(c, now, t, g);
}
