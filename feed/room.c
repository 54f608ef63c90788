/* The room of feeds: which feeds there are, who leads them, and the effects of their cores. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "feed_internal.h"

enum {
    READ_MS = 2000, /* how often to look for new and changed feeds */
    FIRST_MS = 50,  /* the first read failed, and publishers wait: again after this, then later */
    LOOK_MS = 200,  /* from one read to the next that publishers of unknown feeds cause */
};

static void read_rows(struct feed_room *room);

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
    if (s && !s->ended)
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
    read_rows(f->room);
}

static void carry_out(struct feed *f, const struct feed_effect *fx)
{
    switch (fx->type) {
    case FEED_FX_LOAD:
        load(f, fx->copy);
        return;
    case FEED_FX_SEND:
        feed__tell(f, fx);
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
        feed__copy_keep(feed__copy_of(f, fx->copy), f->item, f->item_len);
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

static void arm(struct feed *f)
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
    for (size_t i = 0; i < count; i++)
        carry_out(f, &effects[i]);
    f->stepping = false;
    arm(f);
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

static void on_timer(void *arg)
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

/* Serves it if this relay leads its account and it takes batches; otherwise its sessions end. */
static void serve(struct feed *f)
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

/* An operator removed the feed and created it again, or its cursor moved in another way: publishers
 * send other numbers than the core waits for. The read of this row began after the last store. */
static void renew(struct feed *f)
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
            serve(f);
    feed__progress(room);
}

/* ---- rows ---- */

static uint64_t number_of(const json_t *options, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(options, name));
}

/* Of the database, which has checked them. */
static struct feed_config config_of(struct feed_room *room, const char *options)
{
    json_t *o = json_loads(options, 0, NULL);
    struct feed_config c = {
        .persistence_ack_ms = (uint32_t)number_of(o, "persistence_ack_ms"),
        .stale_winner_ms = (uint32_t)number_of(o, "stale_winner_ms"),
        .resend_ms = (uint32_t)number_of(o, "resend_ms"),
        .duplicate_skip_window = (uint32_t)number_of(o, "duplicate_skip_window"),
        .behind_stays_open = number_of(o, "behind_stays_open") != 0,
        .batch_calls_max = (uint32_t)number_of(o, "batch_calls_max"),
        .batch_bytes_max = number_of(o, "batch_bytes_max"),
        .seed = loop_seed(room->loop),
    };
    json_decref(o);
    return c;
}

static void replace_text(char **text, const char *with)
{
    if (*text && !strcmp(*text, with))
        return;
    free(*text);
    *text = xstrdup(with);
}

static struct feed *add(struct feed_room *room, const struct feed_row *row)
{
    struct feed *f = xcalloc(1, sizeof(*f));
    struct feed_config config = config_of(room, row->options);
    f->room = room;
    f->name = xstrdup(row->name);
    f->options = xstrdup(row->options);
    f->account = row->account;
    f->core = feed_core_new(&config);
    f->end = FEED_END_NOT_LEADER;
    f->timer = loop_timer_new(room->loop, on_timer, f);
    HASH_ADD_KEYPTR(hh, room->feeds, f->name, strlen(f->name), f);
    return f;
}

static void update(struct feed_room *room, const struct feed_row *row)
{
    struct feed *f;
    HASH_FIND_STR(room->feeds, row->name, f);
    if (!f)
        f = add(room, row);
    f->listed = true;
    f->row_last = row->last;
    f->paused = row->paused;
    f->account = row->account;
    f->publisher_count = 0;
    for (size_t i = 0; i < row->publisher_count && i < FEED_PUBLISHERS_MAX; i++)
        memcpy(f->publishers[f->publisher_count++], row->publishers + i * FEED_KEY, FEED_KEY);
    replace_text(&f->leader, row->leader);
    if (strcmp(f->options, row->options) != 0) {
        struct feed_config config = config_of(room, row->options);
        replace_text(&f->options, row->options);
        feed_core_options(f->core, &config);
        arm(f);
    }
}

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

/* Answers the load that a read covers. */
static void answer_load(struct feed *f, bool failed)
{
    if (!f->load || f->load_after >= f->room->reads)
        return;
    uint64_t number = f->load;
    f->load = 0;
    feed__step(
        f, &(struct feed_event){.type = FEED_EV_LOADED,
                                .loaded = {.load = number, .failed = failed, .last = f->row_last}});
}

static void read_done(struct feed_room *room, bool failed)
{
    room->reading = false;
    for (struct feed *f = room->feeds; f; f = f->hh.next)
        answer_load(f, failed || !f->listed);
    for (struct feed_session *s = room->sessions; s; s = s->hh.next)
        feed__asked(s, failed);
    if (room->read_again)
        read_rows(room);
    else if (!room->closing)
        loop_timer_at(room->timer,
                      loop_now_ms(room->loop) +
                          (room->known ? READ_MS : backoff_next(&room->first, &room->rng)));
    feed__progress(room);
}

void feed_room_rows(struct feed_room *room, const struct feed_row *rows, size_t count)
{
    PRE(room->reading);
    room->known = true;
    for (struct feed *f = room->feeds; f; f = f->hh.next)
        f->listed = false;
    for (size_t i = 0; i < count; i++)
        update(room, &rows[i]);
    for (struct feed *f = room->feeds; f; f = f->hh.next) {
        serve(f);
        renew(f);
    }
    read_done(room, false);
}

void feed_room_no_rows(struct feed_room *room)
{
    PRE(room->reading);
    read_done(room, true);
}

/* One read at a time. A load that is asked for during one needs the next. */
static void read_rows(struct feed_room *room)
{
    room->read_again = room->reading;
    if (room->reading || room->closing)
        return;
    room->reading = true;
    room->reads++;
    room->read_at = loop_now_ms(room->loop);
    loop_timer_stop(room->timer);
    room->ops->load(room->arg);
}

void feed__look(struct feed_room *room)
{
    if (room->reading)
        room->read_again = true;
    else if (room->reads)
        loop_timer_at(room->timer, room->read_at + LOOK_MS);
}

static void on_read(void *arg)
{
    read_rows(arg);
}

/* ---- the end ---- */

struct feed_room *feed_room_new(struct loop *l, const struct feed_host_ops *ops, void *arg)
{
    struct feed_room *room = xcalloc(1, sizeof(*room));
    room->loop = l;
    room->ops = ops;
    room->arg = arg;
    room->rng.state = loop_seed(l);
    room->first = (struct backoff){.base_ms = FIRST_MS, .cap_ms = READ_MS};
    room->timer = loop_timer_new(l, on_read, room);
    loop_timer_at(room->timer, loop_now_ms(l));
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
    else if (room->closed && !copies && !room->sessions && !room->reading && !room->works)
        loop_post(room->loop, &room->task, call_closed);
}

void feed_room_drain(struct feed_room *room, void (*cb)(void *arg))
{
    PRE(!room->draining);
    room->draining = true;
    room->drained = cb;
    for (struct feed *f = room->feeds; f; f = f->hh.next)
        serve(f);
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
