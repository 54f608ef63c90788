/* Who is there, and who is chosen: the availability of the members as this site sees it, and the
 * ranking of the range that its own node sees. */
#include "base/check.h"
#include "site_internal.h"

static uint32_t bit(size_t member)
{
    return UINT32_C(1) << member;
}

uint64_t site__range(const struct site_core *c)
{
    return c->config.sticky ? 0 : selector_range(c->height, c->config.range_blocks);
}

bool site__blind(const struct site_core *c, uint64_t now)
{
    return !c->head_at || now >= c->head_at + c->config.blind_ms;
}

void site__hear(struct site_core *c, uint64_t now, const struct site_message *m)
{
    PRE(m->from < c->config.members && m->from != c->config.self);
    struct site_member *member = &c->members[m->from];
    site__height_of(c, m->from, m->height);
    member->heard_at = now;
    member->owes_since = SITE_NEVER;
    member->probe_at = 0;
    if (m->type == SITE_MSG_HEARTBEAT) {
        member->beat_at = now;
        member->state = m->state;
    } else if (m->type == SITE_MSG_HANDOVER) {
        member->state = SITE_FLUSH;
    } else if (m->type == SITE_MSG_CLOSED) {
        member->state = SITE_CLOSING;
    }
    if (m->blind)
        c->down |= bit(m->from);
    else
        c->down &= ~bit(m->from);
}

void site__owes(struct site_core *c, uint64_t now, int member)
{
    PRE(member >= 0 && (uint32_t)member < c->config.members);
    struct site_member *m = &c->members[member];
    if ((uint32_t)member == c->config.self)
        return;
    c->owed |= bit((size_t)member);
    if (m->owes_since == SITE_NEVER)
        m->owes_since = now;
}

void site__owes_nothing(struct site_core *c, uint32_t members)
{
    for (size_t i = 0; i < c->config.members; i++)
        if (members & bit(i)) {
            c->members[i].owes_since = SITE_NEVER;
            c->members[i].probe_at = 0;
        }
}

uint32_t site__adopt_view(struct site_core *c, uint64_t now, uint32_t down)
{
    uint32_t reached = 0;
    for (size_t i = 0; i < c->config.members; i++) {
        const struct site_member *m = &c->members[i];
        if (i == c->config.self || !(down & bit(i)))
            continue;
        if (m->heard_at && now < m->heard_at + c->config.silence_ms)
            reached |= bit(i);
        else
            c->down |= bit(i);
    }
    return reached;
}

static void demote(struct site_core *c, size_t member)
{
    c->members[member].owes_since = SITE_NEVER;
    c->members[member].probe_at = 0;
    c->down |= bit(member);
    c->counts.demoted++;
}

void site__review_members(struct site_core *c, uint64_t now)
{
    for (size_t i = 0; i < c->config.members; i++) {
        struct site_member *m = &c->members[i];
        if (m->owes_since == SITE_NEVER || now < m->owes_since + c->config.silence_ms)
            continue;
        if (c->config.silence_is_down) {
            demote(c, i);
        } else if (!m->probe_at) {
            m->probe_at = now;
            site__put(c, SITE_MSG_PROBE, (uint32_t)i, 0, NULL);
        } else if (now >= m->probe_at + c->config.probe_ms) {
            demote(c, i);
        }
    }
}

bool site__coordinates(const struct site_core *c, uint64_t now, size_t member)
{
    const struct site_member *m = &c->members[member];
    return m->beat_at && now < m->beat_at + c->config.silence_ms && m->state >= SITE_ELECT &&
           m->state <= SITE_FLUSH;
}

static const size_t *ranking(struct site_core *c)
{
    uint64_t range = site__range(c);
    if (!c->ranked_ever || c->ranked != range) {
        selector_rank(c->ring, c->config.account, range, c->order);
        c->ranked = range;
        c->ranked_ever = true;
    }
    return c->order;
}

/* The sticky policy: the best of those that coordinate; this site, if it has rows and is better. */
static int choose_sticky(struct site_core *c, uint64_t now, uint32_t away, const size_t *order)
{
    bool self_seen = false;
    for (size_t i = 0; i < c->config.members; i++) {
        size_t m = order[i];
        if (away & bit(m))
            continue;
        if (m == c->config.self) {
            if (site__is_coordinator(c))
                return (int)m;
            self_seen = site__open_rows(c) > 0;
        } else if (site__coordinates(c, now, m) && c->members[m].state != SITE_FLUSH) {
            return self_seen ? (int)c->config.self : (int)m;
        }
    }
    return SITE_NOBODY;
}

int site__choose(struct site_core *c, uint64_t now, uint32_t away)
{
    const size_t *order = ranking(c);
    away = (away | c->down) & ~bit(c->config.self);
    if (site__blind(c, now))
        away |= bit(c->config.self);
    if (c->config.sticky) {
        int chosen = choose_sticky(c, now, away, order);
        if (chosen != SITE_NOBODY)
            return chosen;
    }
    for (size_t i = 0; i < c->config.members; i++)
        if (!(away & bit(order[i])))
            return (int)order[i];
    return SITE_NOBODY;
}

bool site__leads(struct site_core *c, uint64_t now, uint32_t away)
{
    return site__choose(c, now, away) == (int)c->config.self;
}
