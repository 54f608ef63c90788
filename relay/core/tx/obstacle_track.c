/* Which obstacles last (obstacle.h). */
#include <string.h>

#include "base/check.h"
#include "relay/core/tx/obstacle.h"

const char *obstacle_name(enum obstacle_code code)
{
    static const char *const names[] = {[OBSTACLE_NONE] = "",
#define X(code, name) [code] = (name),
                                        OBSTACLES(X) RELAY_OBSTACLES(X)
#undef X
    };
    PRE(code < OBSTACLE_CODES);
    return names[code];
}

bool obstacle_is_in_views(enum obstacle_code code)
{
    return code == OBSTACLE_PAUSED || code == OBSTACLE_PRESIGNED || code == OBSTACLE_ROW_HELD;
}

void obstacle_forget(struct obstacle_track *t)
{
    *t = (struct obstacle_track){0};
}

void obstacle_unstored(struct obstacle_track *t)
{
    t->unstored = true;
}

bool obstacle_lasts(const struct obstacle_track *t)
{
    return t->told_at != 0;
}

static unsigned cleared(struct obstacle_track *t, uint64_t now)
{
    if (!t->since)
        return 0;
    if (!t->clear_since)
        t->clear_since = now;
    if (!t->told_at) { /* it was over before it was reported */
        obstacle_forget(t);
        return 0;
    }
    if (now - t->clear_since < OBSTACLE_CLEAR_MS)
        return 0;
    return t->stored_at ? OBSTACLE_OVER | OBSTACLE_STORE : OBSTACLE_OVER;
}

/* Two obstacles that take turns are one standstill: `since` stays. */
static void note(struct obstacle_track *t, uint64_t now, const struct obstacle *seen)
{
    bool same = t->now.code == seen->code && !strcmp(t->now.text, seen->text);
    if (!t->since)
        t->since = now;
    t->clear_since = 0;
    t->unstored |= !same;
    if (!same)
        t->now = *seen;
}

unsigned obstacle_step(struct obstacle_track *t, uint64_t now, const struct obstacle *seen)
{
    PRE(now && seen->code < OBSTACLE_CODES);
    unsigned actions = 0;
    if (!seen->code)
        return cleared(t, now);
    note(t, now, seen);
    if (now - t->since < OBSTACLE_AFTER_MS)
        return 0;
    if (!t->told_at || now - t->told_at >= OBSTACLE_AGAIN_MS) {
        t->told_at = now;
        actions |= OBSTACLE_TELL;
    }
    if (t->unstored && (!t->stored_at || now - t->stored_at >= OBSTACLE_REFRESH_MS)) {
        t->stored_at = now;
        t->unstored = false;
        actions |= OBSTACLE_STORE;
    }
    return actions;
}
