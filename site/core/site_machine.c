/* The machine of the account at this site: when it coordinates, what it waits for before that, and
 * how it ends. */
#include "base/check.h"
#include "site_internal.h"

bool site__is_coordinator(const struct site_core *c)
{
    return c->state >= SITE_ELECT && c->state <= SITE_ACTIVE;
}

static size_t dispatched(const struct site_core *c)
{
    size_t n = 0;
    for (const struct site_work *w = c->works; w; w = w->hh.next)
        n += (size_t)(w->state >= SITE_WORK_GRANTED);
    return n;
}

static bool others_coordinate(const struct site_core *c, uint64_t now)
{
    for (size_t i = 0; i < c->config.members; i++)
        if (i != c->config.self && site__coordinates(c, now, i))
            return true;
    return false;
}

/* Another one coordinates and has not handed over; it is in this state or a later one. */
static bool rival(const struct site_core *c, uint64_t now, enum site_state at_least)
{
    for (size_t i = 0; i < c->config.members; i++)
        if (i != c->config.self && site__coordinates(c, now, i) &&
            c->members[i].state >= at_least && c->members[i].state <= SITE_ACTIVE)
            return true;
    return false;
}

/* This site is chosen for all, or for a transaction whose sender cannot reach the others. */
static bool is_mine(struct site_core *c, uint64_t now)
{
    if (site__leads(c, now, 0))
        return true;
    for (const struct site_work *w = c->works; w; w = w->hh.next)
        if (w->stay && w->state < SITE_WORK_DISPATCHED && site__leads(c, now, w->stay))
            return true;
    return false;
}

static void elect(struct site_core *c, uint64_t now)
{
    site__move(c, now, SITE_ELECT);
    c->beat_at = now; /* it announces itself */
}

static void letter_to_successor(struct site_core *c, uint64_t now, enum site_message_type type)
{
    int to = site__choose(c, now, 0);
    if (to == SITE_NOBODY || (uint32_t)to == c->config.self)
        return;
    struct site_item item = {.sender = c->config.self};
    bool any = false;
    if (type == SITE_MSG_HANDOVER)
        for (const struct site_work *w = c->works; w; w = w->hh.next)
            if (w->state >= SITE_WORK_GRANTED) {
                any = true;
                site__letter(c, now, type, (uint32_t)to,
                             &(struct site_item){.sender = (uint32_t)w->key.sender,
                                                 .id = w->key.id,
                                                 .has_bytes = true,
                                                 .bytes = w->bytes});
            }
    if (!any)
        site__letter(c, now, type, (uint32_t)to, &item);
}

static void flush(struct site_core *c, uint64_t now)
{
    site__move(c, now, SITE_FLUSH);
    letter_to_successor(c, now, SITE_MSG_HANDOVER);
    c->beat_at = now;
}

static void closing(struct site_core *c, uint64_t now)
{
    if (c->state == SITE_FLUSH)
        letter_to_successor(c, now, SITE_MSG_CLOSED);
    site__move(c, now, SITE_CLOSING);
    c->beats = 0;
    c->beat_at = now;
}

static void not_chosen(struct site_core *c, uint64_t now)
{
    if (dispatched(c))
        flush(c, now);
    else
        site__move(c, now, SITE_OBSERVING);
}

/* One move; false: there is none. */
static bool move_once(struct site_core *c, uint64_t now)
{
    bool mine = is_mine(c, now), work = c->works != NULL;
    bool elsewhere = others_coordinate(c, now);
    switch (c->state) {
    case SITE_IDLE:
    case SITE_OBSERVING:
        /* A higher-ranked site that hears another's heartbeat takes over; with the sticky policy
         * only if it has work. */
        if (mine && (work || (!c->config.sticky && rival(c, now, SITE_ELECT))))
            return elect(c, now), true;
        if (!mine && dispatched(c))
            return flush(c, now), true;
        if (c->state == SITE_IDLE && (elsewhere || site__open_rows(c)))
            return site__move(c, now, SITE_OBSERVING), true;
        if (c->state == SITE_OBSERVING && !elsewhere && !site__open_rows(c))
            return site__move(c, now, SITE_IDLE), true;
        return false;
    case SITE_ELECT:
        if (!mine)
            return not_chosen(c, now), true;
        if (rival(c, now, SITE_PREPARED) && now < c->state_at + c->config.elect_ms)
            return false;
        site__move(c, now, c->foreign_count ? SITE_PREPARED : SITE_ACTIVE);
        return true;
    case SITE_PREPARED:
        if (!mine)
            return not_chosen(c, now), true;
        if (c->foreign_count)
            return false;
        site__move(c, now, SITE_ACTIVE);
        return true;
    case SITE_ACTIVE:
        if (!mine && work)
            return flush(c, now), true;
        if (!work)
            return closing(c, now), true;
        return false;
    case SITE_FLUSH:
        if (mine)
            return elect(c, now), true;
        if (!work)
            return closing(c, now), true;
        return false;
    case SITE_CLOSING:
        if (mine && work)
            return elect(c, now), true;
        if (c->beats < c->config.closing_beats && c->config.members > 1)
            return false;
        site__move(c, now, elsewhere || work ? SITE_OBSERVING : SITE_IDLE);
        return true;
    }
    UNREACHABLE();
}

void site__review_machine(struct site_core *c, uint64_t now)
{
    int moves = 0;
    while (move_once(c, now))
        INVARIANT(++moves < 16);
}

void site__leave(struct site_core *c)
{
    if (c->state != SITE_IDLE)
        site__move(c, 0, SITE_IDLE);
    c->beats = 0;
}

/* The receiver's transactions, and what is dispatched for anybody. */
void site__beat_to(struct site_core *c, uint32_t to)
{
    site__put(c, SITE_MSG_HEARTBEAT, to, 0, NULL);
    for (const struct site_work *w = c->works; w; w = w->hh.next) {
        bool bytes = w->state >= SITE_WORK_GRANTED;
        if (w->key.sender == to || bytes)
            site__put(c, SITE_MSG_HEARTBEAT, to, 0,
                      &(struct site_item){.sender = (uint32_t)w->key.sender,
                                          .id = w->key.id,
                                          .stage = w->state,
                                          .has_bytes = bytes,
                                          .bytes = w->bytes});
    }
}

void site__beat(struct site_core *c, uint64_t now)
{
    if (c->state < SITE_ELECT || now < c->beat_at)
        return;
    for (uint32_t to = 0; to < c->config.members; to++)
        if (to != c->config.self && !(c->asked_by >> to & 1))
            site__beat_to(c, to);
    c->beats++;
    c->beat_at = now + c->config.beat_ms;
}
