/* What follows from an answer, or from none in time: the load of the cursor, the verification and
 * the store of a complete copy, and the answers about copies that were given up. */
#include "base/check.h"
#include "base/plant.h"
#include "feed_internal.h"

bool feed__waits_for_answer(const struct feed_core *f)
{
    return f->phase == FEED_VERIFY_WAIT || f->phase == FEED_STORE_WAIT;
}

void feed__drop(struct feed_core *f, bool answer_comes)
{
    PRE(f->copy.id);
    feed__emit_copy(f, FEED_FX_DROP);
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

void feed__load(struct feed_core *f)
{
    feed__phase(f, FEED_LOAD_WAIT);
    feed__emit(f, FEED_FX_LOAD)->copy = ++f->loads;
}

static void load_later(struct feed_core *f, uint64_t now)
{
    feed__phase(f, FEED_LOAD_LATER);
    f->load_at = now + backoff_next(&f->retry, &f->rng);
}

static void settled(struct feed_core *f, uint64_t now, enum feed_outcome outcome)
{
    feed__emit_copy(f, FEED_FX_SETTLED);
    struct feed_effect *fx = &f->effects[f->effect_count - 1];
    fx->settled.outcome = outcome;
    fx->settled.took_ms = now - f->copy.complete_at;
}

/* The stream of the copy goes on with the next header. */
static void back_to_new(struct feed_core *f)
{
    struct feed_session_row *s = feed__winner(f);
    if (!s)
        return;
    feed__session(f, s, FEED_NEW);
    feed__hold(f, s, false);
}

/* The copy is not valid: its sender is ended, and the others may send theirs. */
static void refuse_copy(struct feed_core *f, uint64_t now)
{
    struct feed_session_row *s = feed__winner(f);
    settled(f, now, FEED_NOT_VALID);
    if (s)
        feed__end(f, s, FEED_END_BAD_BLOCK_PROOF);
    feed__bar(f, f->copy.publisher, now);
    feed__drop(f, false);
    feed__free_number(f);
    feed__resend(f, f->last + 1, NULL);
}

void feed__time_out(struct feed_core *f, uint64_t now)
{
    struct feed_session_row *s = feed__winner(f);
    settled(f, now, FEED_TIMED_OUT);
    if (s && f->open > 1)
        feed__end(f, s, FEED_END_TIMEOUT);
    else
        back_to_new(f);
    feed__drop(f, true);
    feed__free_number(f);
    feed__resend(f, f->last + 1, NULL);
}

void feed__on_verified(struct feed_core *f, uint64_t now, const struct feed_event *ev)
{
    if (ev->verified.valid) {
        feed__phase(f, FEED_STORE_WAIT);
        feed__emit_copy(f, FEED_FX_STORE);
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
    feed__drop(f, false);
    if (stored) {
        f->counts.acknowledged += (uint64_t)(last - f->last);
        backoff_reset(&f->retry);
    }
    f->last = last;
    feed__unbar(f);
    if (stored)
        feed__acknowledge(f);
    feed__free_number(f);
    if (!stored)
        feed__resend(f, f->last + 1, NULL);
}

static void unknown_store(struct feed_core *f, uint64_t now)
{
    struct feed_session_row *s = feed__winner(f);
    settled(f, now, FEED_NOT_STORED);
    if (s) {
        feed__session(f, s, FEED_SKIPPED);
        feed__hold(f, s, false);
    }
    feed__drop(f, false);
    if (f->leaving) {
        feed__leave(f, f->leave_end);
        return;
    }
    load_later(f, now);
}

void feed__on_stored(struct feed_core *f, uint64_t now, const struct feed_event *ev)
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
        feed__drop(f, false);
        feed__leave(f, FEED_END_NOT_LEADER);
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

void feed__late_answer(struct feed_core *f, uint64_t copy)
{
    if (forget_abandoned(f, copy) && f->phase == FEED_FREE && f->skipped && !f->barred)
        feed__resend(f, f->last + 1, NULL);
}

void feed__on_loaded(struct feed_core *f, uint64_t now, const struct feed_event *ev)
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
        feed__unbar(f);
    for (struct feed_session_row *s = f->sessions; s; s = s->hh.next) {
        if (!feed__is_open(s))
            continue;
        bool waits = s->state == FEED_SKIPPED;
        if (waits && s->number > f->last + 1) {
            feed__high_header(f, s);
            continue;
        }
        if (waits)
            feed__session(f, s, FEED_PASSED);
        if (waits && s->number == f->last + 1)
            feed__send(f, s, FEED_MSG_RESEND, s->number);
        else if (waits || moved)
            feed__send(f, s, FEED_MSG_ACK, f->last);
    }
}
