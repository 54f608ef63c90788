/* The room of feeds: the effects of their cores, who leads, and the end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "feed_internal.h"

/* ---- steps and effects ---- */

struct feed *feed__find(struct feed_room *room, const char *name)
{
    struct feed *f;
    HASH_FIND_STR(room->feeds, name, f);
    return f && f->listed ? f : NULL;
}

int feed__publisher(const struct feed *f, const uint8_t key[FEED_KEY])
{
    for (int i = 0; i < f->publisher_count; i++)
        if (!memcmp(f->publishers[i], key, FEED_KEY))
            return i;
    return -1;
}

static void hold(struct feed *f, uint64_t session, bool held)
{
    struct feed_session *s = feed__session_of(f->room, session);
    INVARIANT(s && !s->ended); /* its core ends it after the release */
    s->ops->hold(s->ctx, held);
}

const char *feed_outcome_name(enum feed_outcome outcome)
{
    static const char *const names[] = {
        [FEED_ACKNOWLEDGED] = "acknowledged",
        [FEED_TIMED_OUT] = "timeout",
        [FEED_NOT_VALID] = "verification_failed",
        [FEED_NOT_STORED] = "not_stored",
    };
    return names[outcome];
}

static void settled(struct feed *f, const struct feed_effect *fx)
{
    metric_observe(&f->took[fx->settled.outcome], (double)fx->settled.took_ms / 1000);
    if (fx->settled.outcome == FEED_ACKNOWLEDGED)
        log_info("feed.published", "feed=%s session=%" PRIu64 " number=%" PRId64 " ms=%" PRIu64,
                 f->name, fx->session, fx->number, fx->settled.took_ms);
    else
        log_warn("feed.failed",
                 "feed=%s session=%" PRIu64 " number=%" PRId64 " outcome=%s ms=%" PRIu64, f->name,
                 fx->session, fx->number, feed_outcome_name(fx->settled.outcome),
                 fx->settled.took_ms);
}

static void load(struct feed *f, uint64_t number)
{
    f->load = number;
    f->load_after = f->room->reads;
    feed__read(f->room);
}

static void carry_out(struct feed *f, const struct feed_effect *fx)
{
    switch (fx->type) {
    case FEED_FX_LOAD:
        load(f, fx->copy);
        return;
    case FEED_FX_SEND:
        feed__deliver(f, fx);
        return;
    case FEED_FX_HOLD:
    case FEED_FX_RELEASE:
        hold(f, fx->session, fx->type == FEED_FX_HOLD);
        return;
    case FEED_FX_BEGIN:
        log_info("feed.primary", "feed=%s session=%" PRIu64 " number=%" PRId64, f->name,
                 fx->session, fx->number);
        feed__copy_begin(f, fx);
        return;
    case FEED_FX_KEEP:
        feed__copy_append(feed__copy_of(f, fx->copy), f->item, f->item_len);
        return;
    case FEED_FX_VERIFY:
        feed__copy_verify(feed__copy_of(f, fx->copy), &f->trailer);
        return;
    case FEED_FX_STORE:
        f->store_after = UINT64_MAX;
        feed__copy_store(feed__copy_of(f, fx->copy));
        return;
    case FEED_FX_DROP:
        feed__copy_drop(f, fx->copy);
        return;
    case FEED_FX_SETTLED:
        settled(f, fx);
        return;
    }
    UNREACHABLE();
}

void feed__arm(struct feed *f)
{
    uint64_t due = feed_due(f->core);
    if (due == UINT64_MAX)
        loop_timer_stop(f->timer);
    else
        loop_timer_at(f->timer, due);
}

void feed__step(struct feed *f, const struct feed_event *ev)
{
    const struct feed_effect *effects;
    size_t count;
    PRE(!f->stepping); /* a door gives nothing from inside send or hold */
    f->stepping = true;
    if (ev->type == FEED_EV_STORED)
        f->store_after = f->room->reads;
    feed_step(f->core, loop_now_ms(f->room->loop), ev, &effects, &count);
    if (feed_core_bug(f->core))
        log_error("internal.bug", "part=feeds feed=%s text=\"%s: its sessions are ended\"", f->name,
                  feed_core_bug(f->core));
    for (size_t i = 0; i < count; i++)
        carry_out(f, &effects[i]);
    f->stepping = false;
    feed__arm(f);
}

void feed__step_why_of(struct feed *f, const struct feed_event *ev, uint64_t session,
                       const char *why)
{
    f->why_session = session;
    snprintf(f->why, sizeof(f->why), "%s", why);
    feed__step(f, ev);
    f->why_session = 0;
    feed__progress(f->room);
}

void feed__step_why(struct feed *f, const struct feed_event *ev, const char *why)
{
    feed__step_why_of(f, ev, ev->session, why);
}

void feed__tick(void *arg)
{
    struct feed *f = arg;
    feed__step(f, &(struct feed_event){.type = FEED_EV_TICK});
    feed__progress(f->room);
}

/* ---- who serves a feed ---- */

static int64_t epoch_of(const struct feed_room *room, int32_t account)
{
    struct feed_lead *l;
    HASH_FIND(hh, room->leads, &account, sizeof(account), l);
    return l ? l->epoch : 0;
}

static void leave(struct feed *f, enum feed_end end, bool graceful)
{
    f->end = end;
    f->why_session = EVERY_SESSION;
    snprintf(f->why, sizeof(f->why), "%s", feed__why_not(f));
    feed__step(f, &(struct feed_event){.type = FEED_EV_LEAVE,
                                       .leave = {.end = end, .graceful = graceful}});
    f->why_session = 0;
}

const char *feed__why_not(const struct feed *f)
{
    return !f->listed ? "the feed was removed" : f->paused ? "the feed is paused" : "";
}

void feed__serve(struct feed *f)
{
    int64_t led = epoch_of(f->room, f->account);
    int64_t epoch = f->listed && !f->paused && !f->room->draining ? led : 0;
    enum feed_end end = led && !f->room->draining ? FEED_END_ERROR : FEED_END_NOT_LEADER;
    if (epoch == f->epoch && (epoch || end == f->end))
        return;
    if (f->epoch)
        log_info("feed.left", "feed=%s epoch=%" PRId64, f->name, f->epoch);
    leave(f, end, led == f->epoch);
    f->epoch = epoch;
    if (epoch) {
        log_info("feed.served", "feed=%s epoch=%" PRId64, f->name, f->epoch);
        feed__step(f, &(struct feed_event){.type = FEED_EV_SERVE});
    }
}

void feed__renew(struct feed *f)
{
    int64_t last = feed_core_last(f->core);
    bool loaded = feed_core_phase(f->core) > FEED_LOAD_LATER;
    if (!f->epoch || !loaded || f->store_after >= f->room->reads || f->row_last == last)
        return;
    log_warn("feed.renewed", "feed=%s last=%" PRId64 " before=%" PRId64, f->name, f->row_last,
             last);
    f->why_session = EVERY_SESSION;
    snprintf(f->why, sizeof(f->why), "the feed was created again, and its last number is %" PRId64,
             f->row_last);
    feed__step(f, &(struct feed_event){.type = FEED_EV_LEAVE, .leave = {.end = FEED_END_ERROR}});
    f->why_session = 0;
    feed__step(f, &(struct feed_event){.type = FEED_EV_SERVE});
}

void feed_room_lead(struct feed_room *room, int32_t account, int64_t epoch)
{
    struct feed_lead *l;
    HASH_FIND(hh, room->leads, &account, sizeof(account), l);
    if (!l) {
        l = xcalloc(1, sizeof(*l));
        l->account = account;
        HASH_ADD(hh, room->leads, account, sizeof(l->account), l);
    }
    l->epoch = epoch;
    for (struct feed *f = room->feeds; f; f = f->hh.next)
        if (f->account == account)
            feed__serve(f);
    feed__progress(room);
}

/* ---- the end ---- */

static struct feed *free_feed(struct feed *f)
{
    struct feed_room *room = f->room;
    HASH_DEL(room->feeds, f);
    loop_timer_close(f->timer);
    feed_core_free(f->core);
    free(f->name);
    free(f->leader);
    free(f->options);
    free(f);
    return NULL;
}

struct feed_room *feed_room_new(struct loop *l, const struct feed_host_ops *ops, void *arg)
{
    struct feed_room *room = xcalloc(1, sizeof(*room));
    room->loop = l;
    room->ops = ops;
    room->arg = arg;
    room->rng.state = loop_seed(l);
    feed__rows_begin(room);
    return room;
}

static bool idle(const struct feed *f)
{
    return feed_core_phase(f->core) == FEED_IDLE;
}

static void call_closed(struct loop_task *task)
{
    struct feed_room *room = CONTAINER_OF(task, struct feed_room, task);
    void (*cb)(void *arg) = room->closed;
    void *arg = room->arg;
    while (room->feeds)
        free_feed(room->feeds);
    struct feed_lead *l, *next;
    HASH_ITER(hh, room->leads, l, next)
    {
        HASH_DEL(room->leads, l);
        free(l);
    }
    free(room);
    cb(arg);
}

static void call_drained(struct loop_task *task)
{
    struct feed_room *room = CONTAINER_OF(task, struct feed_room, task);
    void (*cb)(void *arg) = room->drained;
    room->drained = NULL;
    cb(room->arg);
}

void feed__progress(struct feed_room *room)
{
    bool all_idle = true, copies = false;
    struct feed *f, *next;
    HASH_ITER(hh, room->feeds, f, next)
    {
        all_idle &= idle(f);
        copies |= f->copies != NULL;
        if (f->listed || f->stepping || !idle(f) || f->copies)
            continue;
        bool used = false;
        for (struct feed_session *s = room->sessions; s; s = s->hh.next)
            used |= s->feed == f;
        if (!used)
            free_feed(f);
    }
    if (list_linked(&room->task.node))
        return;
    if (room->drained && all_idle)
        loop_post(room->loop, &room->task, call_drained);
    else if (room->closed && !copies && !room->sessions && !room->reading)
        loop_post(room->loop, &room->task, call_closed);
}

void feed_room_drain(struct feed_room *room, void (*cb)(void *arg))
{
    PRE(!room->draining);
    room->draining = true;
    room->drained = cb;
    for (struct feed *f = room->feeds; f; f = f->hh.next)
        feed__serve(f);
    feed__progress(room);
}

void feed_room_close(struct feed_room *room, void (*cb)(void *arg))
{
    PRE(!room->closing && !room->sessions);
    room->closing = true;
    room->closed = cb;
    room->timer = loop_timer_close(room->timer);
    for (struct feed *f = room->feeds; f; f = f->hh.next)
        feed__step(
            f, &(struct feed_event){.type = FEED_EV_LEAVE, .leave = {.end = FEED_END_NOT_LEADER}});
    feed__progress(room);
}
