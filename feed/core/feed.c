/* The step of a feed: one handler per event, what is due by the clock, and how the feed begins and
 * ends to be served. feed.h has the rules, feed_table.c the tables of states. */
#include "feed/core/feed.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/plant.h"
#include "feed_internal.h"

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

static struct feed_config with_defaults(const struct feed_config *config)
{
    struct feed_config c = *config;
    c.persistence_ack_ms = or_default(c.persistence_ack_ms, 30000);
    c.stale_winner_ms = or_default(c.stale_winner_ms, 60000);
    c.resend_ms = or_default(c.resend_ms, 10000);
    c.retry_ms = or_default(c.retry_ms, 200);
    c.retry_max_ms = or_default(c.retry_max_ms, 10000);
    c.batch_bytes_max = c.batch_bytes_max ? c.batch_bytes_max : 16 << 20;
    c.batch_calls_max = or_default(c.batch_calls_max, 10000);
    c.sessions_max = or_default(c.sessions_max, 1024);
    c.abandoned_max = or_default(c.abandoned_max, 2);
    if (c.abandoned_max > FEED_ABANDONED_MAX)
        c.abandoned_max = FEED_ABANDONED_MAX;
    return c;
}

struct feed_core *feed_core_new(const struct feed_config *config)
{
    struct feed_core *f = xcalloc(1, sizeof(*f));
    f->config = with_defaults(config);
    f->rng.state = f->config.seed;
    f->retry = (struct backoff){.base_ms = f->config.retry_ms, .cap_ms = f->config.retry_max_ms};
    f->last = FEED_NONE;
    f->barred_at = FEED_NEVER;
    f->leave_end = FEED_END_NOT_LEADER;
    return f;
}

void feed_core_options(struct feed_core *f, const struct feed_config *config)
{
    uint32_t abandoned_max = f->config.abandoned_max;
    f->config = with_defaults(config);
    f->config.abandoned_max = abandoned_max;
}

struct feed_core *feed_core_free(struct feed_core *f)
{
    if (!f)
        return NULL;
    struct feed_session_row *s, *next;
    HASH_ITER(hh, f->sessions, s, next)
    {
        HASH_DEL(f->sessions, s);
        free(s);
    }
    free(f->effects);
    free(f);
    return NULL;
}

struct feed_effect *feed__emit(struct feed_core *f, enum feed_effect_type type)
{
    GROW(f->effects, f->effect_count, f->effect_cap);
    struct feed_effect *fx = &f->effects[f->effect_count++];
    *fx = (struct feed_effect){.type = type};
    return fx;
}

void feed__emit_copy(struct feed_core *f, enum feed_effect_type type)
{
    struct feed_effect *fx = feed__emit(f, type);
    fx->copy = f->copy.id;
    fx->session = f->copy.session;
    fx->number = f->last + 1;
}

void feed__leave(struct feed_core *f, enum feed_end code)
{
    f->leaving = false;
    f->leave_end = code;
    if (f->phase == FEED_IDLE)
        return;
    if (f->copy.id)
        feed__drop(f, feed__waits_for_answer(f));
    for (struct feed_session_row *s = f->sessions; s; s = s->hh.next)
        feed__end(f, s, code);
    feed__unbar(f);
    feed__phase(f, FEED_IDLE);
}

void feed__free_number(struct feed_core *f)
{
    PRE(!f->copy.id);
    feed__phase(f, FEED_FREE);
    if (f->leaving)
        feed__leave(f, f->leave_end);
}

static void on_serve(struct feed_core *f)
{
    if (f->phase == FEED_IDLE || f->leaving) {
        feed__leave(f, FEED_END_NOT_LEADER);
        feed__load(f);
    }
}

static void on_leave(struct feed_core *f, const struct feed_event *ev)
{
    if (ev->leave.graceful && feed__waits_for_answer(f)) {
        f->leaving = true;
        f->leave_end = ev->leave.end;
    } else {
        feed__leave(f, ev->leave.end);
    }
}

uint64_t feed_due(const struct feed_core *f)
{
    switch (f->phase) {
    case FEED_LOAD_LATER:
        return f->load_at;
    case FEED_COLLECT:
        return f->skipped && !PLANTED(FEED_STALE_KEPT) ? f->copy.won_at + f->config.stale_winner_ms
                                                       : FEED_NEVER;
    case FEED_VERIFY_WAIT:
    case FEED_STORE_WAIT:
        return PLANTED(FEED_NO_TIMEOUT) ? FEED_NEVER
                                        : f->copy.complete_at + f->config.persistence_ack_ms;
    case FEED_FREE:
        return f->barred ? f->barred_at + f->config.resend_ms : FEED_NEVER;
    case FEED_IDLE:
    case FEED_LOAD_WAIT:
        return FEED_NEVER;
    }
    UNREACHABLE();
}

static void on_tick(struct feed_core *f, uint64_t now)
{
    if (now < feed_due(f))
        return;
    switch (f->phase) {
    case FEED_LOAD_LATER:
        feed__load(f);
        return;
    case FEED_COLLECT:
        feed__replace(f, now);
        feed__resend(f, f->last + 1, NULL);
        return;
    case FEED_VERIFY_WAIT:
    case FEED_STORE_WAIT:
        feed__time_out(f, now);
        return;
    case FEED_FREE:
        feed__unbar(f);
        if (f->skipped && f->abandoned_count < f->config.abandoned_max)
            feed__resend(f, f->last + 1, NULL);
        return;
    case FEED_IDLE:
    case FEED_LOAD_WAIT:
        return;
    }
    UNREACHABLE();
}

/* The session that sent this; NULL: it is ended, and this was on its way before. */
static struct feed_session_row *sender(struct feed_core *f, const struct feed_event *ev)
{
    struct feed_session_row *s = feed__row(f, ev->session);
    PRE(s && !s->held);
    return feed__is_open(s) ? s : NULL;
}

/* After a move that no table has: all sessions end, the copy is dropped, and the feed is served
 * anew, if it is, from the cursor in the database. */
static void recover(struct feed_core *f, enum feed_phase before, const struct feed_event *ev)
{
    bool served = ev->type == FEED_EV_SERVE ||
                  (before != FEED_IDLE && ev->type != FEED_EV_LEAVE && !f->leaving);
    if (f->copy.id)
        feed__drop(f, f->abandoned_count < f->config.abandoned_max);
    for (struct feed_session_row *s = f->sessions; s; s = s->hh.next)
        feed__end(f, s, FEED_END_ERROR);
    f->open = f->skipped = 0;
    f->leaving = false;
    feed__unbar(f);
    f->phase = FEED_IDLE;
    if (served)
        feed__load(f);
    feed__forgive(f);
}

static void event(struct feed_core *f, uint64_t now, const struct feed_event *ev)
{
    struct feed_session_row *s;
    switch (ev->type) {
    case FEED_EV_SERVE:
        on_serve(f);
        break;
    case FEED_EV_LEAVE:
        on_leave(f, ev);
        break;
    case FEED_EV_LOADED:
        feed__on_loaded(f, now, ev);
        break;
    case FEED_EV_OPEN:
        feed__on_open(f, ev->session);
        break;
    case FEED_EV_HEADER:
        if ((s = sender(f, ev)))
            feed__on_header(f, now, s, ev);
        break;
    case FEED_EV_ITEMS:
        if ((s = sender(f, ev)))
            feed__on_items(f, now, s, ev);
        break;
    case FEED_EV_TRAILER:
        if ((s = sender(f, ev)))
            feed__on_trailer(f, now, s);
        break;
    case FEED_EV_CLOSE:
    case FEED_EV_REFUSE:
        if ((s = sender(f, ev)))
            feed__end_client(
                f, now, s, ev->type == FEED_EV_CLOSE ? FEED_END_SUCCESS : FEED_END_INVALID_REQUEST);
        break;
    case FEED_EV_GONE:
        s = feed__row(f, ev->session);
        PRE(s);
        feed__on_gone(f, now, s);
        break;
    case FEED_EV_VERIFIED:
        if (ev->verified.copy == f->copy.id && f->phase == FEED_VERIFY_WAIT)
            feed__on_verified(f, now, ev);
        else
            feed__late_answer(f, ev->verified.copy);
        break;
    case FEED_EV_STORED:
        if (f->phase == FEED_STORE_WAIT &&
            (ev->stored.copy == f->copy.id || PLANTED(FEED_LATE_BELIEVED)))
            feed__on_stored(f, now, ev);
        else
            feed__late_answer(f, ev->stored.copy);
        break;
    case FEED_EV_TICK:
        on_tick(f, now);
        break;
    }
}

void feed_step(struct feed_core *f, uint64_t now, const struct feed_event *ev,
               const struct feed_effect **ret_effects, size_t *ret_count)
{
    enum feed_phase before = f->phase;
    f->effect_count = 0;
    f->bug[0] = 0;
    event(f, now, ev);
    if (feed__illegal(f))
        recover(f, before, ev);
    *ret_effects = f->effects;
    *ret_count = f->effect_count;
}

enum feed_phase feed_core_phase(const struct feed_core *f)
{
    return f->phase;
}

int64_t feed_core_last(const struct feed_core *f)
{
    return f->last;
}

size_t feed_core_sessions(const struct feed_core *f)
{
    return f->open;
}

const struct feed_counts *feed_core_counts(const struct feed_core *f)
{
    return &f->counts;
}

const char *feed_core_check(const struct feed_core *f)
{
    if (f->phase_moves.illegal_ever || f->session_moves.illegal_ever)
        return "a move that no table has";
    size_t open = 0, skipped = 0, taking = 0, waiting = 0, held = 0;
    for (const struct feed_session_row *s = f->sessions; s; s = s->hh.next) {
        open += (size_t)feed__is_open(s);
        skipped += (size_t)(s->state == FEED_SKIPPED);
        taking += (size_t)(s->state == FEED_TAKING);
        waiting += (size_t)(s->state == FEED_WAIT);
        held += (size_t)s->held;
    }
    if (open != f->open || skipped != f->skipped || held != waiting)
        return "the counts of the sessions are wrong";
    if (taking != (size_t)(f->phase == FEED_COLLECT) || waiting > (size_t)feed__waits_for_answer(f))
        return "the winner is not the one of the phase";
    if ((f->copy.id != 0) != (f->phase == FEED_COLLECT || feed__waits_for_answer(f)))
        return "there is a copy where there is none, or none where there is one";
    if (f->phase == FEED_IDLE && f->open)
        return "a session is open, and the feed is not served";
    if (f->abandoned_count > f->config.abandoned_max)
        return "more is kept than is allowed";
    if (f->phase == FEED_FREE && f->skipped && !f->barred &&
        f->abandoned_count < f->config.abandoned_max)
        return "a session waits, and the core waits for nothing";
    if (f->leaving && !feed__waits_for_answer(f))
        return "the feed is to be left, and nothing is waited for";
    return NULL;
}
