#include "relay/core/poll/ability.h"

#include "base/check.h"
#include "base/plant.h"

enum is { NO, YES, ANY };

/* The first row that fits. */
static const struct rule {
    enum is ready, refused, waits, behind;
    enum ability_lack lack;
} rules[] = {
    {NO, ANY, ANY, ANY, ABILITY_LACKS_NO_ENDPOINT}, {YES, YES, ANY, ANY, ABILITY_LACKS_REFUSED},
    {YES, NO, YES, YES, ABILITY_LACKS_BEHIND},      {YES, NO, NO, YES, ABILITY_LACKS_STUCK},
    {YES, NO, ANY, NO, ABILITY_LACKS_NOTHING},
};

static bool fits(enum is want, bool is)
{
    return want == ANY || (want == YES) == is;
}

enum ability_lack ability_of(bool ready, bool refused, bool waits, bool behind)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (fits(rules[i].ready, ready) && fits(rules[i].refused, refused) &&
            fits(rules[i].waits, waits) && fits(rules[i].behind, behind))
            return rules[i].lack;
    UNREACHABLE();
}

static const struct {
    const char *name, *text;
} lacks[] = {
#define X(LACK, name, text) {name, text},
    ABILITY_LACKS(X)
#undef X
};

const char *ability_name(enum ability_lack lack)
{
    PRE((size_t)lack < ARRAY_LEN(lacks));
    return lacks[lack].name;
}

const char *ability_text(enum ability_lack lack)
{
    PRE((size_t)lack < ARRAY_LEN(lacks));
    return lacks[lack].text;
}

void ability_answer(struct ability *a, bool taken)
{
    a->refusals = taken ? 0 : a->refusals + 1;
    if (taken)
        a->patience_ms = 0;
}

static void begin(struct ability *a, uint64_t now, const struct ability_seen *seen)
{
    a->since = now;
    a->best = seen->best;
    a->others_best = seen->others_best;
}

/* What comes back for a moment is not there: an endpoint that ends its connections soon. */
static void has_all(struct ability *a, uint64_t now)
{
    if (!a->has_since)
        a->has_since = now;
    if (now >= a->has_since + ABILITY_AGAIN_MS)
        a->since = 0;
}

/* Another relay shows that it may act. */
static bool another_may(const struct ability *a, const struct ability_seen *seen)
{
    if (a->lack == ABILITY_LACKS_REFUSED)
        return seen->members > 1;
    return seen->others_best > a->others_best && seen->others_best > seen->best;
}

enum ability_lack ability_step(struct ability *a, uint64_t now, const struct ability_seen *seen)
{
    if (!seen->leads) {
        a->since = 0;
        return ABILITY_LACKS_NOTHING;
    }
    enum ability_lack lack = ability_of(seen->ready, a->refusals >= ABILITY_REFUSALS, seen->waits,
                                        seen->others_best > seen->best);
    if (lack == ABILITY_LACKS_NOTHING) {
        has_all(a, now);
        return lack;
    }
    bool moves = lack == ABILITY_LACKS_STUCK && seen->best != a->best;
    a->lack = lack;
    a->has_since = 0;
    if (!a->since || moves)
        begin(a, now, seen);
    uint64_t patience = a->patience_ms ? a->patience_ms : ABILITY_FIRST_MS;
    if (PLANTED(STUCK_KEPT) || now < a->since + patience || !another_may(a, seen))
        return ABILITY_LACKS_NOTHING;
    a->since = 0;
    a->refusals = 0;
    a->patience_ms = patience * 2 < ABILITY_MOST_MS ? patience * 2 : ABILITY_MOST_MS;
    return lack;
}
