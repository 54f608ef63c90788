#include "feed/core/feed.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- effects ---- */

static struct feed_effect *emit(struct feed_core *f, enum feed_effect_type type)
{
    if (f->effect_count == f->effect_cap) {
        f->effect_cap = f->effect_cap ? f->effect_cap * 2 : 16;
        f->effects = xrealloc(f->effects, f->effect_cap * sizeof(*f->effects));
    }
    struct feed_effect *fx = &f->effects[f->effect_count++];
    *fx = (struct feed_effect){.type = type};
    return fx;
}

static void emit_copy(struct feed_core *f, enum feed_effect_type type)
{
    struct feed_effect *fx = emit(f, type);
    fx->copy = f->copy.id;
    fx->session = f->copy.session;
    fx->number = f->last + 1;
}

static void send(struct feed_core *f, const struct feed_session_row *s, enum feed_message message,
                 int64_t number)
{
    struct feed_effect *fx = emit(f, FEED_FX_SEND);
    fx->session = s->id;
    fx->number = number;
    fx->send.message = message;
    f->counts.sent[message]++;
}

static void hold(struct feed_core *f, struct feed_session_row *s, bool held)
{
    if (s->held == held)
        return;
    s->held = held;
    emit(f, held ? FEED_FX_HOLD : FEED_FX_RELEASE)->session = s->id;
}

/* ---- sessions ---- */

static struct feed_session_row *session_of(struct feed_core *f, uint64_t id)
{
    struct feed_session_row *s;
    HASH_FIND(hh, f->sessions, &id, sizeof(id), s);
    return s;
}

/* The session whose copy it is; NULL: its stream is closed. */
static struct feed_session_row *winner(struct feed_core *f)
{
    return f->copy.session ? session_of(f, f->copy.session) : NULL;
}

static void end(struct feed_core *f, struct feed_session_row *s, enum feed_end code)
{
    if (s->state == FEED_ENDED)
        return;
    hold(f, s, false);
    send(f, s, FEED_MSG_END, f->last);
    f->effects[f->effect_count - 1].send.end = code;
    f->counts.ended[code]++;
    feed__session(f, s, FEED_ENDED);
}

static bool is_open(const struct feed_session_row *s)
{
    return s->state != FEED_ENDED;
}

/* Tells all open sessions but `but` to send `number` again. */
static void resend(struct feed_core *f, int64_t number, const struct feed_session_row *but)
{
    for (struct feed_session_row *s = f->sessions; s; s = s->hh.next) {
        if (s == but || !is_open(s))
            continue;
        if (s->state == FEED_SKIPPED)
            feed__session(f, s, FEED_PASSED);
        send(f, s, FEED_MSG_RESEND, number);
    }
}

/* Acknowledges everything up to the cursor, which has moved, to all open sessions. */
static void acknowledge(struct feed_core *f)
{
    for (struct feed_session_row *s = f->sessions; s; s = s->hh.next) {
        if (!is_open(s))
            continue;
        if (s->state == FEED_SKIPPED)
            feed__session(f, s, FEED_PASSED);
        send(f, s, FEED_MSG_ACK, f->last);
    }
}

/* ---- the copy ---- */

/* A publisher whose copy was bad or late lets the others try first. */
static void bar(struct feed_core *f, int publisher, uint64_t now)
{
    PRE(publisher >= 0 && publisher < FEED_PUBLISHERS_MAX);
    if (PLANTED(FEED_LIAR_FIRST))
        return;
    f->barred |= UINT32_C(1) << publisher;
    f->barred_at = now;
}

static void unbar(struct feed_core *f)
{
    f->barred = 0;
    f->barred_at = FEED_NEVER;
}

static bool is_barred(const struct feed_core *f, int publisher)
{
    return publisher >= 0 && (f->barred >> publisher & 1);
}

/* Somebody else may send the number that this session's publisher has to leave to others. */
static bool others_may(const struct feed_core *f, const struct feed_session_row *but)
{
    for (const struct feed_session_row *s = f->sessions; s; s = s->hh.next)
        if (s != but && is_open(s) && !is_barred(f, s->publisher))
            return true;
    return false;
}

static void settled(struct feed_core *f, uint64_t now, enum feed_outcome outcome)
{
    emit_copy(f, FEED_FX_SETTLED);
    struct feed_effect *fx = &f->effects[f->effect_count - 1];
    fx->settled.outcome = outcome;
    fx->settled.took_ms = now - f->copy.complete_at;
}

/* The copy ends here. The answer about it may still be under way. */
static void drop(struct feed_core *f, bool answer_comes)
{
    PRE(f->copy.id);
    emit_copy(f, FEED_FX_DROP);
    if (answer_comes) {
        INVARIANT(f->abandoned_count < f->config.abandoned_max);
        f->abandoned[f->abandoned_count++] = f->copy.id;
    }
    f->copy = (struct feed_copy){0};
}

/* True if an answer about this copy was to come although it was given up. */
static bool forget_abandoned(struct feed_core *f, uint64_t copy)
{
    for (uint32_t i = 0; i < f->abandoned_count; i++)
        if (f->abandoned[i] == copy) {
            f->abandoned[i] = f->abandoned[--f->abandoned_count];
            return true;
        }
    return false;
}

static bool waits_for_answer(const struct feed_core *f)
{
    return f->phase == FEED_VERIFY_WAIT || f->phase == FEED_STORE_WAIT;
}

static void leave(struct feed_core *f, enum feed_end code)
{
    f->leaving = false;
    f->leave_end = code;
    if (f->phase == FEED_IDLE)
        return;
    if (f->copy.id)
        drop(f, waits_for_answer(f));
    for (struct feed_session_row *s = f->sessions; s; s = s->hh.next)
        end(f, s, code);
    unbar(f);
    feed__phase(f, FEED_IDLE);
}

/* The next number is free, or the feed is left if that was to come next. */
static void free_number(struct feed_core *f)
{
    PRE(!f->copy.id);
    feed__phase(f, FEED_FREE);
    if (f->leaving)
        leave(f, f->leave_end);
}

/* The winner's copy is given up before its trailer. */
static void lose(struct feed_core *f, uint64_t now, bool barred)
{
    PRE(f->phase == FEED_COLLECT);
    if (barred)
        bar(f, f->copy.publisher, now);
    drop(f, false);
    free_number(f);
}

static void load(struct feed_core *f)
{
    feed__phase(f, FEED_LOAD_WAIT);
    emit(f, FEED_FX_LOAD)->copy = ++f->loads;
}

static void load_later(struct feed_core *f, uint64_t now)
{
    feed__phase(f, FEED_LOAD_LATER);
    f->load_at = now + backoff_next(&f->retry, &f->rng);
}

/* ---- headers ---- */

static void skip(struct feed_core *f, struct feed_session_row *s, int64_t number)
{
    if (s->state == FEED_SKIPPED && s->number == number)
        return; /* a publisher that pipelines: it has the message already */
    if (s->state == FEED_SKIPPED)
        feed__session(f, s, FEED_PASSED);
    feed__session(f, s, FEED_SKIPPED);
    s->number = number;
    f->counts.skipped++;
    if (!PLANTED(FEED_SKIP_UNTOLD))
        send(f, s, FEED_MSG_SKIP, number);
}

static void win(struct feed_core *f, struct feed_session_row *s, uint64_t won_at)
{
    feed__phase(f, FEED_COLLECT);
    feed__session(f, s, FEED_TAKING);
    s->number = f->last + 1;
    f->counts.primary++;
    f->copy = (struct feed_copy){
        .id = ++f->copies, .session = s->id, .publisher = s->publisher, .won_at = won_at};
    emit_copy(f, FEED_FX_BEGIN);
}

static bool is_stale(const struct feed_core *f, uint64_t now)
{
    return !PLANTED(FEED_STALE_KEPT) && now >= f->copy.won_at + f->config.stale_winner_ms;
}

/* Ends the winner, who was too slow, because others wait. */
static void replace(struct feed_core *f, uint64_t now)
{
    struct feed_session_row *s = winner(f);
    INVARIANT(s && s->state == FEED_TAKING);
    f->counts.stale++;
    end(f, s, FEED_END_TIMEOUT);
    lose(f, now, true);
}

static void low_header(struct feed_core *f, struct feed_session_row *s, int64_t number)
{
    *(number == f->last ? &f->counts.duplicate : &f->counts.behind) += 1;
    if (f->last - number >= f->config.duplicate_skip_window) {
        end(f, s, FEED_END_DUPLICATE_BLOCK);
        return;
    }
    send(f, s, FEED_MSG_SKIP, number);
    send(f, s, FEED_MSG_ACK, f->last);
    feed__session(f, s, FEED_PASSED);
}

static void high_header(struct feed_core *f, struct feed_session_row *s)
{
    f->counts.future++;
    if (!f->config.behind_stays_open) {
        end(f, s, FEED_END_BEHIND);
        return;
    }
    send(f, s, FEED_MSG_BEHIND, f->last);
    feed__session(f, s, FEED_PASSED);
}

static void next_header(struct feed_core *f, struct feed_session_row *s, uint64_t won_at)
{
    bool full = f->abandoned_count >= f->config.abandoned_max;
    if (f->phase != FEED_FREE || full || (is_barred(f, s->publisher) && others_may(f, s)))
        skip(f, s, f->last + 1);
    else
        win(f, s, won_at);
}

static void on_header(struct feed_core *f, uint64_t now, struct feed_session_row *s,
                      const struct feed_event *ev)
{
    int64_t number = ev->header.number, given_up = FEED_NONE;
    uint64_t won_at = now;
    PRE(ev->header.publisher >= 0 && ev->header.publisher < FEED_PUBLISHERS_MAX);
    s->publisher = ev->header.publisher;
    if (s->state == FEED_TAKING) {
        /* It begins again. The time of the same number counts from its first header. */
        given_up = s->number;
        if (number == given_up)
            won_at = f->copy.won_at;
        lose(f, now, number != given_up);
        feed__session(f, s, FEED_NEW);
    }
    if (number < 0) {
        end(f, s, FEED_END_INVALID_REQUEST);
    } else if (f->phase == FEED_LOAD_WAIT || f->phase == FEED_LOAD_LATER) {
        skip(f, s, number); /* LOADED decides */
    } else if (number <= f->last) {
        low_header(f, s, number);
    } else if (number > f->last + 1 && !PLANTED(FEED_GAP)) {
        high_header(f, s);
    } else {
        if (f->phase == FEED_COLLECT && is_stale(f, now)) {
            given_up = f->last + 1;
            replace(f, now);
        }
        next_header(f, s, won_at);
    }
    if (given_up != FEED_NONE && f->phase == FEED_FREE)
        resend(f, given_up, s);
}

/* ---- items and trailer ---- */

/* The client's stream ends, for a reason of its own or with a message of ours. */
static void end_client(struct feed_core *f, uint64_t now, struct feed_session_row *s,
                       enum feed_end code)
{
    bool taking = s->state == FEED_TAKING;
    end(f, s, code);
    if (!taking)
        return;
    lose(f, now, code != FEED_END_SUCCESS);
    if (f->phase == FEED_FREE)
        resend(f, f->last + 1, NULL);
}

static void on_items(struct feed_core *f, uint64_t now, struct feed_session_row *s,
                     const struct feed_event *ev)
{
    f->counts.items += ev->items.count;
    if (s->state == FEED_SKIPPED || s->state == FEED_PASSED) {
        if (PLANTED(FEED_LOSER_ENDED))
            end(f, s, FEED_END_INVALID_REQUEST);
        return; /* of a batch that is not taken from it */
    }
    if (s->state != FEED_TAKING) {
        end_client(f, now, s, FEED_END_INVALID_REQUEST);
        return;
    }
    struct feed_copy *c = &f->copy;
    if (ev->items.bytes > f->config.batch_bytes_max ||
        ev->items.bytes + c->bytes > f->config.batch_bytes_max ||
        (uint64_t)ev->items.count + c->calls > f->config.batch_calls_max) {
        end_client(f, now, s, FEED_END_INVALID_REQUEST);
        return;
    }
    c->bytes += ev->items.bytes;
    c->calls += ev->items.count;
    emit_copy(f, FEED_FX_KEEP);
}

static void on_trailer(struct feed_core *f, uint64_t now, struct feed_session_row *s)
{
    if (s->state == FEED_SKIPPED || s->state == FEED_PASSED)
        return;
    if (s->state != FEED_TAKING) {
        end_client(f, now, s, FEED_END_INVALID_REQUEST);
        return;
    }
    feed__session(f, s, FEED_WAIT);
    hold(f, s, true);
    f->copy.complete_at = now;
    if (PLANTED(FEED_UNVERIFIED)) {
        feed__phase(f, FEED_VERIFY_WAIT);
        feed__phase(f, FEED_STORE_WAIT);
        emit_copy(f, FEED_FX_STORE);
        return;
    }
    feed__phase(f, FEED_VERIFY_WAIT);
    emit_copy(f, FEED_FX_VERIFY);
    if (PLANTED(FEED_ACK_EARLY)) {
        f->last++;
        acknowledge(f);
        f->last--;
    }
}

/* ---- answers ---- */

/* The stream of the copy goes on with the next header. */
static void back_to_new(struct feed_core *f)
{
    struct feed_session_row *s = winner(f);
    if (!s || s->state != FEED_WAIT)
        return;
    feed__session(f, s, FEED_NEW);
    hold(f, s, false);
}

/* The copy is not valid: its sender is ended, and the others may send theirs. */
static void refuse_copy(struct feed_core *f, uint64_t now)
{
    struct feed_session_row *s = winner(f);
    settled(f, now, FEED_NOT_VALID);
    if (s)
        end(f, s, FEED_END_BAD_BLOCK_PROOF);
    bar(f, f->copy.publisher, now);
    drop(f, false);
    free_number(f);
    if (f->phase == FEED_FREE)
        resend(f, f->last + 1, NULL);
}

/* No answer in time. An answer that comes later changes nothing: the cursor decides. */
static void time_out(struct feed_core *f, uint64_t now)
{
    struct feed_session_row *s = winner(f);
    settled(f, now, FEED_TIMED_OUT);
    if (s && f->open > 1)
        end(f, s, FEED_END_TIMEOUT);
    else
        back_to_new(f);
    drop(f, true);
    free_number(f);
    if (f->phase == FEED_FREE)
        resend(f, f->last + 1, NULL);
}

static void on_verified(struct feed_core *f, uint64_t now, const struct feed_event *ev)
{
    if (ev->verified.valid) {
        feed__phase(f, FEED_STORE_WAIT);
        emit_copy(f, FEED_FX_STORE);
    } else {
        refuse_copy(f, now);
    }
}

/* The cursor is at `last`: at the copy's number, or beyond, or below what was known, because the
 * database lost commits. */
static void cursor_at(struct feed_core *f, uint64_t now, int64_t last)
{
    bool stored = last > f->last;
    settled(f, now, stored ? FEED_ACKNOWLEDGED : FEED_NOT_STORED);
    back_to_new(f);
    drop(f, false);
    if (stored) {
        f->counts.acknowledged += (uint64_t)(last - f->last);
        backoff_reset(&f->retry);
    }
    f->last = last;
    unbar(f);
    if (stored)
        acknowledge(f);
    free_number(f);
    if (!stored && f->phase == FEED_FREE)
        resend(f, f->last + 1, NULL);
}

static void unknown_store(struct feed_core *f, uint64_t now)
{
    struct feed_session_row *s = winner(f);
    settled(f, now, FEED_NOT_STORED);
    if (s) {
        feed__session(f, s, FEED_SKIPPED);
        hold(f, s, false);
    }
    drop(f, false);
    if (f->leaving) {
        leave(f, f->leave_end);
        return;
    }
    load_later(f, now);
}

static void on_stored(struct feed_core *f, uint64_t now, const struct feed_event *ev)
{
    switch (ev->stored.outcome) {
    case FEED_STORED:
        if (ev->stored.last == f->last)
            unknown_store(f, now); /* it contradicts itself */
        else
            cursor_at(f, now, ev->stored.last);
        return;
    case FEED_STORED_BAD:
        refuse_copy(f, now);
        return;
    case FEED_STORED_LOST:
        settled(f, now, FEED_NOT_STORED);
        drop(f, false);
        leave(f, FEED_END_NOT_LEADER);
        return;
    case FEED_STORED_UNKNOWN:
        if (PLANTED(FEED_UNKNOWN_DONE))
            cursor_at(f, now, f->last + 1);
        else
            unknown_store(f, now);
        return;
    }
    UNREACHABLE();
}

/* The answer about a copy that was given up: another number may be won again. */
static void late_answer(struct feed_core *f, uint64_t copy)
{
    if (forget_abandoned(f, copy) && f->phase == FEED_FREE && f->skipped && !f->barred)
        resend(f, f->last + 1, NULL);
}

static void on_loaded(struct feed_core *f, uint64_t now, const struct feed_event *ev)
{
    if (f->phase != FEED_LOAD_WAIT || ev->loaded.load != f->loads)
        return;
    if (ev->loaded.failed) {
        load_later(f, now);
        return;
    }
    PRE(ev->loaded.last >= FEED_NONE);
    bool moved = ev->loaded.last > f->last;
    f->last = ev->loaded.last;
    feed__phase(f, FEED_FREE);
    if (moved)
        unbar(f);
    for (struct feed_session_row *s = f->sessions; s; s = s->hh.next) {
        if (!is_open(s))
            continue;
        bool waits = s->state == FEED_SKIPPED;
        if (waits && s->number > f->last + 1) {
            high_header(f, s);
            continue;
        }
        if (waits)
            feed__session(f, s, FEED_PASSED);
        if (waits && s->number == f->last + 1)
            send(f, s, FEED_MSG_RESEND, s->number);
        else if (waits || moved)
            send(f, s, FEED_MSG_ACK, f->last);
    }
}

/* ---- the rest ---- */

static void on_open(struct feed_core *f, uint64_t id)
{
    PRE(!session_of(f, id) && id);
    struct feed_session_row *s = xcalloc(1, sizeof(*s));
    s->id = id;
    s->publisher = -1;
    HASH_ADD(hh, f->sessions, id, sizeof(s->id), s);
    feed__opened(f);
    if (f->phase == FEED_IDLE)
        end(f, s, f->leave_end);
    else if (f->open > f->config.sessions_max)
        end(f, s, FEED_END_ERROR);
}

static void on_gone(struct feed_core *f, uint64_t now, struct feed_session_row *s)
{
    bool taking = s->state == FEED_TAKING;
    if (f->copy.session == s->id && !taking)
        f->copy.session = 0; /* a complete copy is judged without its sender */
    feed__gone(f, s);
    HASH_DEL(f->sessions, s);
    free(s);
    if (!taking || PLANTED(FEED_DEAD_WINNER))
        return;
    lose(f, now, true);
    if (f->phase == FEED_FREE)
        resend(f, f->last + 1, NULL);
}

static void on_tick(struct feed_core *f, uint64_t now)
{
    if (now < feed_due(f))
        return;
    switch (f->phase) {
    case FEED_LOAD_LATER:
        load(f);
        return;
    case FEED_COLLECT:
        replace(f, now);
        if (f->phase == FEED_FREE)
            resend(f, f->last + 1, NULL);
        return;
    case FEED_VERIFY_WAIT:
    case FEED_STORE_WAIT:
        time_out(f, now);
        return;
    case FEED_FREE:
        unbar(f);
        if (f->skipped && f->abandoned_count < f->config.abandoned_max)
            resend(f, f->last + 1, NULL);
        return;
    case FEED_IDLE:
    case FEED_LOAD_WAIT:
        return;
    }
    UNREACHABLE();
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

/* The session that sent this; NULL: it is ended, and this was on its way before. */
static struct feed_session_row *sender(struct feed_core *f, const struct feed_event *ev)
{
    struct feed_session_row *s = session_of(f, ev->session);
    PRE(s && !s->held);
    return is_open(s) ? s : NULL;
}

static void on_serve(struct feed_core *f)
{
    if (f->phase == FEED_IDLE || f->leaving) {
        leave(f, FEED_END_NOT_LEADER);
        load(f);
    }
}

static void on_leave(struct feed_core *f, const struct feed_event *ev)
{
    if (ev->leave.graceful && waits_for_answer(f)) {
        f->leaving = true;
        f->leave_end = ev->leave.end;
    } else {
        leave(f, ev->leave.end);
    }
}

void feed_step(struct feed_core *f, uint64_t now, const struct feed_event *ev,
               const struct feed_effect **ret_effects, size_t *ret_count)
{
    struct feed_session_row *s;
    f->effect_count = 0;
    switch (ev->type) {
    case FEED_EV_SERVE:
        on_serve(f);
        break;
    case FEED_EV_LEAVE:
        on_leave(f, ev);
        break;
    case FEED_EV_LOADED:
        on_loaded(f, now, ev);
        break;
    case FEED_EV_OPEN:
        on_open(f, ev->session);
        break;
    case FEED_EV_HEADER:
        if ((s = sender(f, ev)))
            on_header(f, now, s, ev);
        break;
    case FEED_EV_ITEMS:
        if ((s = sender(f, ev)))
            on_items(f, now, s, ev);
        break;
    case FEED_EV_TRAILER:
        if ((s = sender(f, ev)))
            on_trailer(f, now, s);
        break;
    case FEED_EV_CLOSE:
    case FEED_EV_REFUSE:
        if ((s = sender(f, ev)))
            end_client(f, now, s,
                       ev->type == FEED_EV_CLOSE ? FEED_END_SUCCESS : FEED_END_INVALID_REQUEST);
        break;
    case FEED_EV_GONE:
        s = session_of(f, ev->session);
        PRE(s);
        on_gone(f, now, s);
        break;
    case FEED_EV_VERIFIED:
        if (ev->verified.copy == f->copy.id && f->phase == FEED_VERIFY_WAIT)
            on_verified(f, now, ev);
        else
            late_answer(f, ev->verified.copy);
        break;
    case FEED_EV_STORED:
        if (f->phase == FEED_STORE_WAIT &&
            (ev->stored.copy == f->copy.id || PLANTED(FEED_LATE_BELIEVED)))
            on_stored(f, now, ev);
        else
            late_answer(f, ev->stored.copy);
        break;
    case FEED_EV_TICK:
        on_tick(f, now);
        break;
    }
    *ret_effects = f->effects;
    *ret_count = f->effect_count;
}

/* ---- what others may see ---- */

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
    size_t open = 0, skipped = 0, taking = 0, waiting = 0, held = 0;
    for (const struct feed_session_row *s = f->sessions; s; s = s->hh.next) {
        open += (size_t)is_open(s);
        skipped += (size_t)(s->state == FEED_SKIPPED);
        taking += (size_t)(s->state == FEED_TAKING);
        waiting += (size_t)(s->state == FEED_WAIT);
        held += (size_t)s->held;
    }
    if (open != f->open || skipped != f->skipped || held != waiting)
        return "the counts of the sessions are wrong";
    if (taking != (size_t)(f->phase == FEED_COLLECT) || waiting > (size_t)waits_for_answer(f))
        return "the winner is not the one of the phase";
    if ((f->copy.id != 0) != (f->phase == FEED_COLLECT || waits_for_answer(f)))
        return "there is a copy where there is none, or none where there is one";
    if (f->phase == FEED_IDLE && f->open)
        return "a session is open, and the feed is not served";
    if (f->abandoned_count > f->config.abandoned_max)
        return "more is kept than is allowed";
    if (f->phase == FEED_FREE && f->skipped && !f->barred &&
        f->abandoned_count < f->config.abandoned_max)
        return "a session waits, and the core waits for nothing";
    if (f->leaving && !waits_for_answer(f))
        return "the feed is to be left, and nothing is waited for";
    return NULL;
}
