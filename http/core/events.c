#include "http/core/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/table.h"

/* A relay's notification of an end comes after its commit, so the newest ends come from the ring
 * only after this time. */
static const int64_t SLACK_US = 2000000;

/* ---- the ring ---- */

struct slot {
    struct recent_event ev;
    UT_hash_handle hh; /* in `passing`, by id: the newest of it, if it is passing */
};

struct recent {
    struct slot *slots;
    struct slot *passing;
    size_t events_max, bytes_max, bytes;
    uint64_t first, end;
    int64_t covers;
};

struct recent *recent_new(size_t events_max, size_t bytes_max)
{
    struct recent *r = xcalloc(1, sizeof(*r));
    PRE(events_max > 0);
    r->slots = xcalloc(events_max, sizeof(*r->slots));
    r->events_max = events_max;
    r->bytes_max = bytes_max;
    r->first = r->end = 1;
    return r;
}

static struct slot *slot_of(const struct recent *r, uint64_t number)
{
    return &r->slots[number % r->events_max];
}

static void no_longer_passing(struct recent *r, struct slot *s)
{
    if (s->ev.passing && !s->ev.replaced)
        HASH_DEL(r->passing, s);
}

static void drop_oldest(struct recent *r)
{
    struct slot *s = slot_of(r, r->first);
    struct recent_event *ev = &s->ev;
    no_longer_passing(r, s);
    if (ev->updated_us >= r->covers)
        r->covers = ev->updated_us + 1;
    r->bytes -= ev->len;
    free(ev->text);
    *ev = (struct recent_event){0};
    r->first++;
}

struct recent *recent_free(struct recent *r)
{
    if (!r)
        return NULL;
    while (r->first < r->end)
        drop_oldest(r);
    free(r->slots);
    free(r);
    return NULL;
}

static void replace(struct recent *r, const struct recent_event *ev)
{
    struct slot *before = NULL;
    if (ev->id)
        HASH_FIND(hh, r->passing, &ev->id, sizeof(ev->id), before);
    if (!before)
        return;
    no_longer_passing(r, before);
    before->ev.replaced = true;
}

void recent_put(struct recent *r, const struct recent_event *ev)
{
    replace(r, ev);
    while (r->first < r->end &&
           (r->end - r->first == r->events_max || r->bytes + ev->len > r->bytes_max))
        drop_oldest(r);
    struct slot *at = slot_of(r, r->end++);
    at->ev = *ev;
    at->ev.passing = ev->passing && ev->id;
    at->ev.replaced = false;
    at->ev.text = xmalloc(ev->len);
    memcpy(at->ev.text, ev->text, ev->len);
    r->bytes += ev->len;
    if (at->ev.passing)
        HASH_ADD(hh, r->passing, ev.id, sizeof(at->ev.id), at);
}

uint64_t recent_first(const struct recent *r)
{
    return r->first;
}

uint64_t recent_end(const struct recent *r)
{
    return r->end;
}

const struct recent_event *recent_at(const struct recent *r, uint64_t number)
{
    PRE(number >= r->first && number < r->end);
    return &slot_of(r, number)->ev;
}

int64_t recent_covers(const struct recent *r)
{
    return r->covers;
}

void recent_cover_from(struct recent *r, int64_t us)
{
    if (us > r->covers)
        r->covers = us;
}

/* ---- where a reader begins ---- */

void event_id_put(const struct event_id *id, char out[EVENT_ID_TEXT])
{
    snprintf(out, EVENT_ID_TEXT, "%" PRId64 "-%08" PRIx32 "-%" PRIu64, id->position_us, id->ring,
             id->number);
}

bool event_id_parse(const char *text, struct event_id *ret)
{
    char again[EVENT_ID_TEXT];
    char *end;
    *ret = (struct event_id){.position_us = strtoll(text, &end, 10)};
    if (*end != '-')
        return false;
    ret->ring = (uint32_t)strtoul(end + 1, &end, 16);
    if (*end != '-')
        return false;
    ret->number = strtoull(end + 1, &end, 10);
    event_id_put(ret, again);
    return ret->position_us > 0 && !strcmp(again, text);
}

bool recent_resumes(const struct recent *r, uint32_t ring, const struct event_id *id)
{
    return id->ring == ring && id->number + 1 >= r->first && id->number < r->end;
}

int64_t recent_split(const struct recent *r, int64_t complete_us)
{
    int64_t split = complete_us - SLACK_US;
    if (split < r->covers)
        split = r->covers;
    return split <= complete_us ? split : INT64_MAX;
}

bool recent_is_new(const struct recent_event *ev, uint64_t number, uint64_t joined,
                   int64_t split_us)
{
    return number >= joined || (ev->ended && ev->updated_us >= split_us);
}

/* ---- what a reader wants ---- */

bool event_wanted(const struct event_filter *f, const struct recent_event *ev)
{
    bool state =
        *f->state ? !strcmp(f->state, ev->state) || !strcmp(f->state, ev->outcome) : !ev->replaced;
    return state && (!f->account || f->account == ev->account) && (!f->id || f->id == ev->id);
}

uint64_t events_pause_ms(size_t writes, size_t bytes)
{
    enum { WRITE_COSTS = 24 << 10, COST_OF_MS = 256 << 10, PAUSE_MAX_MS = 100 };
    uint64_t ms = ((uint64_t)writes * WRITE_COSTS + bytes) / COST_OF_MS;
    return ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS;
}
