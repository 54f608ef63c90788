/* How transactions end, by finalized blocks alone; and the wait after lost commits, during which
 * nothing is granted or ended. */
#include "base/check.h"
#include "base/plant.h"
#include "site_internal.h"

bool site__waits(const struct site_core *c)
{
    return c->lost || c->wait_until > c->final;
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
void site__review_lost(struct site_core *c, uint64_t now)
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

/* ---- ends ---- */

void site__end(struct site_core *c, struct site_tx *t, enum site_end how,
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
    site__remove_tx(c, t);
}

void site__best_end(struct site_core *c)
{
    for (struct site_tx *t = c->txs; t; t = t->hh.next)
        for (size_t i = 0; i < t->grant_count && t->state == SITE_TX_GRANTED; i++)
            if (t->grants[i].bytes.key == site__key(c) && t->grants[i].bytes.nonce < c->next)
                site__end(c, t, SITE_OK, &t->grants[i].bytes);
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
        if (!site__grant_of(t, &u->bytes.hash)) {
            if (!adopts)
                continue;
            c->counts.adopted++;
        }
        if (t->state == SITE_TX_GRANTING)
            site__move_tx(c, t, SITE_TX_GRANTED);
        site__end(c, t, SITE_OK, &u->bytes);
    }
}
