/* The decisions of relay/core/poll/rounds.h. */
#include "relay/core/poll/rounds.h"

#include "base/check.h"

/* ---- when ---- */

void rounds_init(struct rounds *r, uint64_t now, uint64_t seed)
{
    *r = (struct rounds){.due_ms = now + seed % ROUND_MS,
                         .slices = 1}; /* relays begin together, and must not ask so */
}

static uint64_t beat(const struct rounds *r)
{
    return ROUND_MS / r->slices;
}

size_t rounds_begin(struct rounds *r, uint64_t now, size_t led)
{
    if (r->out || now < r->due_ms)
        return 0;
    r->slices = led ? (uint32_t)((led + ROUND_SLICE - 1) / ROUND_SLICE) : 1;
    if (r->slices > ROUND_MS)
        r->slices = ROUND_MS;
    r->begun_ms = now;
    r->due_ms = now + beat(r);
    r->out = led > 0;
    return (led + r->slices - 1) / r->slices;
}

void rounds_ended(struct rounds *r, uint64_t now)
{
    PRE(r->out);
    r->out = false;
    uint64_t rest = beat(r) < ROUND_PAUSE_MS ? beat(r) : ROUND_PAUSE_MS;
    if (r->due_ms <= now)
        r->due_ms = now + rest;
}

uint64_t rounds_next(const struct rounds *r)
{
    return r->out ? UINT64_MAX : r->due_ms;
}

/* ---- one account ---- */

void calm_reset(struct calm *c)
{
    *c = (struct calm){.mark = -1, .next_ms = UINT64_MAX};
}

void calm_begin(struct calm *c, uint64_t now)
{
    calm_reset(c);
    c->covered_ms = now + ROUND_COVER_MS;
    c->turn_ms = now;
}

bool calm_poll(const struct calm *c, uint64_t now)
{
    return now >= c->covered_ms;
}

bool calm_look(struct calm *c, uint64_t now, bool slow)
{
    if (slow && c->mark >= 0 && !c->looks && now < c->covered_ms && now < c->next_ms)
        return false;
    c->looks++;
    c->wanted = true;
    return true;
}

static uint64_t at(uint64_t now, int64_t in_ms)
{
    return in_ms < 0 ? UINT64_MAX : now + (uint64_t)in_ms;
}

/* Facts that the manager does not hear of are not known: with an answer that it does not wait for any more,
 * or none, the next look is a real one. */
void calm_looked(struct calm *c, uint64_t now, int64_t mark, int64_t next_ms)
{
    PRE(c->looks);
    c->looks--;
    c->mark = c->wanted ? mark : -1;
    c->wanted = false;
    c->next_ms = mark < 0 ? UINT64_MAX : at(now, next_ms); /* one that failed names no time */
}

void calm_asked(struct calm *c, uint64_t now)
{
    c->covered_ms = now + ROUND_LOST_MS;
}

unsigned calm_round(struct calm *c, uint64_t asked, uint64_t now, bool look, bool ripe, int64_t next_ms)
{
    uint64_t cover = c->turn_ms ? ROUND_COVER_TURNS * (now - c->turn_ms) : 0;
    if (cover < ROUND_COVER_MS)
        cover = ROUND_COVER_MS;
    c->covered_ms = now + (cover < ROUND_LOST_MS ? cover : ROUND_LOST_MS);
    c->turn_ms = now;
    c->next_ms = at(asked, next_ms); /* rather too early: then a look says it to the millisecond */
    return (look ? CALM_FX_LOOK : 0) | (ripe ? CALM_FX_RING : 0);
}

void calm_round_failed(struct calm *c)
{
    c->covered_ms = 0;
}

uint64_t calm_left(const struct calm *c, uint64_t now)
{
    if (c->next_ms == UINT64_MAX)
        return UINT64_MAX;
    return c->next_ms > now ? c->next_ms - now : 0;
}

uint64_t calm_deadline(const struct calm *c)
{
    return c->looks ? UINT64_MAX : c->next_ms;
}

bool calm_due(struct calm *c, uint64_t now)
{
    if (calm_deadline(c) > now)
        return false;
    c->next_ms = UINT64_MAX;
    return true;
}
