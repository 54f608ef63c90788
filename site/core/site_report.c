/* What the owner may ask: who coordinates, what was counted, and what contradicts itself. */
#include "site_internal.h"

void site_core_view(const struct site_core *c, struct site_view *ret)
{
    *ret = (struct site_view){
        .state = c->state,
        .chosen = c->chosen,
        .range = site__range(c),
        .down = c->down,
        .final = c->loaded ? c->final : 0,
        .wait_until = c->wait_until,
        .rows = site__open_rows(c),
        .work = HASH_COUNT(c->works),
        .waits = c->loaded && site__waits(c),
    };
    for (const struct site_work *w = c->works; w; w = w->hh.next)
        ret->dispatched += (size_t)(w->state == SITE_WORK_DISPATCHED);
    for (const struct site_tx *t = c->txs; t; t = t->hh.next)
        ret->granted += (size_t)(t->state == SITE_TX_GRANTED);
}

bool site_core_knows(struct site_core *c, uint32_t sender, uint64_t id)
{
    return (sender == c->config.self && site__tx(c, id)) || site__work(c, sender, id);
}

const struct site_counts *site_core_counts(const struct site_core *c)
{
    return &c->counts;
}

const char *site_core_check(const struct site_core *c)
{
    size_t held = 0;
    if (c->machine_moves.illegal_ever || c->tx_moves.illegal_ever || c->work_moves.illegal_ever)
        return "a move that no table has";
    for (const struct site_work *w = c->works; w; w = w->hh.next) {
        held += (size_t)(w->state == SITE_WORK_HELD);
        if (!site__in_line(c, w))
            continue;
        for (const struct site_work *other = w->hh.next; other; other = other->hh.next)
            if (site__in_line(c, other) && other->bytes.nonce == w->bytes.nonce)
                return "two works have the same nonce";
    }
    if (held != c->held)
        return "the count of works without a nonce is wrong";
    if (!c->loaded && (c->txs || c->works || c->state != SITE_IDLE))
        return "there is work, and the tables were not read";
    for (const struct site_tx *t = c->txs; t; t = t->hh.next) {
        bool stored = false, unstored = false;
        for (size_t i = 0; i < t->grant_count; i++) {
            stored |= t->grants[i].stored;
            unstored |= !t->grants[i].stored;
        }
        if (unstored != (t->state == SITE_TX_GRANTING) && t->state != SITE_TX_ENDING)
            return "a grant is being stored, and its transaction is in another state";
        if (t->state == SITE_TX_GRANTED && !stored)
            return "a transaction is granted without bytes";
    }
    return NULL;
}
