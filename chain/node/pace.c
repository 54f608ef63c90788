#include "pace.h"

#include "base/check.h"

enum {
    SECOND_MS = 1000,
    LEAST = 200,   /* per 1000 s: one call in 5 s */
    STEP = 500,    /* per 1000 s, each second, at most */
    MOST = 100000, /* per 1000 s: then there is no limit again */
    REST_MS = 500, /* after a refusal that says nothing about time */
};

static void count_second(struct pace *p, uint64_t now)
{
    uint64_t second = now / SECOND_MS;
    if (second == p->second)
        return;
    p->count_before = second == p->second + 1 ? p->count : 0;
    p->count = 0;
    p->second = second;
}

uint64_t pace_next(const struct pace *p, uint64_t now)
{
    return p->at > now ? p->at : now;
}

void pace_sent(struct pace *p, uint64_t now)
{
    count_second(p, now);
    p->count++;
    if (!p->per_ks)
        return;
    uint64_t rested = now > SECOND_MS ? now - SECOND_MS : 0;
    if (p->at < rested)
        p->at = rested;
    p->at += 1000000 / p->per_ks;
}

void pace_refused(struct pace *p, uint64_t now, uint64_t sent_at, uint64_t retry_ms)
{
    PRE(sent_at <= now);
    uint64_t rest = now + (retry_ms ? retry_ms : REST_MS);
    if (p->at < rest && (retry_ms || sent_at >= p->cut_at))
        p->at = rest;
    if (sent_at < p->cut_at)
        return; /* of the same burst as the refusal before */
    count_second(p, now);
    unsigned seen = p->count > p->count_before ? p->count : p->count_before;
    uint64_t pace =
        p->per_ks && p->per_ks < seen * UINT64_C(1000) ? p->per_ks : seen * UINT64_C(1000);
    p->per_ks = pace / 2 < LEAST ? LEAST : pace / 2;
    p->cut_at = now + 1;
    p->raised_at = now;
}

void pace_answered(struct pace *p, uint64_t now)
{
    if (!p->per_ks || now < p->raised_at + SECOND_MS)
        return;
    p->raised_at = now;
    p->per_ks += p->per_ks / 8 < STEP ? p->per_ks / 8 : STEP;
    if (p->per_ks > MOST)
        *p = (struct pace){.second = p->second, .count = p->count, .count_before = p->count_before};
}
