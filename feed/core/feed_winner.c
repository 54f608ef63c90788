/* Whose copy of the next number is taken: which header wins, which publishers have to wait, what
 * the winner may send until its trailer, and how it loses the number before that. */
#include "base/check.h"
#include "base/plant.h"
#include "feed_internal.h"

void feed__bar(struct feed_core *f, int publisher, uint64_t now)
{
    PRE(publisher >= 0 && publisher < FEED_PUBLISHERS_MAX);
    if (PLANTED(FEED_LIAR_FIRST))
        return;
    f->barred |= UINT32_C(1) << publisher;
    f->barred_at = now;
}

void feed__unbar(struct feed_core *f)
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
        if (s != but && feed__is_open(s) && !is_barred(f, s->publisher))
            return true;
    return false;
}

void feed__lose(struct feed_core *f, uint64_t now, bool barred)
{
    PRE(f->phase == FEED_COLLECT);
    if (barred)
        feed__bar(f, f->copy.publisher, now);
    feed__drop(f, false);
    feed__free_number(f);
}

static void skip(struct feed_core *f, struct feed_session_row *s, int64_t number)
{
    if (s->state == FEED_SKIPPED && s->number == number)
        return; /* a publisher that pipelines: it has the message already */
    feed__session(f, s, FEED_SKIPPED);
    s->number = number;
    f->counts.skipped++;
    if (!PLANTED(FEED_SKIP_UNTOLD))
        feed__send(f, s, FEED_MSG_SKIP, number);
}

static void win(struct feed_core *f, struct feed_session_row *s, uint64_t won_at)
{
    feed__phase(f, FEED_COLLECT);
    feed__session(f, s, FEED_TAKING);
    s->number = f->last + 1;
    f->counts.primary++;
    f->copy = (struct feed_copy){
        .id = ++f->copies, .session = s->id, .publisher = s->publisher, .won_at = won_at};
    feed__emit_copy(f, FEED_FX_BEGIN);
}

static bool is_stale(const struct feed_core *f, uint64_t now)
{
    return !PLANTED(FEED_STALE_KEPT) && now >= f->copy.won_at + f->config.stale_winner_ms;
}

void feed__replace(struct feed_core *f, uint64_t now)
{
    struct feed_session_row *s = feed__winner(f);
    INVARIANT(s && s->state == FEED_TAKING);
    f->counts.stale++;
    feed__end(f, s, FEED_END_TIMEOUT);
    feed__lose(f, now, true);
}

static void low_header(struct feed_core *f, struct feed_session_row *s, int64_t number)
{
    *(number == f->last ? &f->counts.duplicate : &f->counts.behind) += 1;
    if (f->last - number >= f->config.duplicate_skip_window) {
        feed__end(f, s, FEED_END_DUPLICATE_BLOCK);
        return;
    }
    feed__send(f, s, FEED_MSG_SKIP, number);
    feed__send(f, s, FEED_MSG_ACK, f->last);
    feed__session(f, s, FEED_PASSED);
}

void feed__high_header(struct feed_core *f, struct feed_session_row *s)
{
    f->counts.future++;
    if (!f->config.behind_stays_open) {
        feed__end(f, s, FEED_END_BEHIND);
        return;
    }
    feed__send(f, s, FEED_MSG_BEHIND, f->last);
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

void feed__on_header(struct feed_core *f, uint64_t now, struct feed_session_row *s,
                     const struct feed_event *ev)
{
    int64_t number = ev->header.number, given_up = FEED_NONE;
    uint64_t won_at = now;
    PRE(ev->header.publisher >= 0 && ev->header.publisher < FEED_PUBLISHERS_MAX);
    s->publisher = ev->header.publisher;
    if (s->state == FEED_TAKING) {
        /* It begins again. The time of the same number counts from its first header. */
        given_up = s->number;
        won_at = f->copy.won_at;
        feed__lose(f, now, number != given_up);
        feed__session(f, s, FEED_NEW);
    }
    if (number < 0) {
        feed__end(f, s, FEED_END_INVALID_REQUEST);
    } else if (f->phase == FEED_LOAD_WAIT || f->phase == FEED_LOAD_LATER) {
        skip(f, s, number); /* LOADED decides */
    } else if (number <= f->last) {
        low_header(f, s, number);
    } else if (number > f->last + 1 && !PLANTED(FEED_GAP)) {
        feed__high_header(f, s);
    } else {
        if (f->phase == FEED_COLLECT && is_stale(f, now)) {
            given_up = f->last + 1;
            feed__replace(f, now);
        }
        next_header(f, s, won_at);
    }
    if (given_up != FEED_NONE && f->phase == FEED_FREE)
        feed__resend(f, given_up, s);
}

void feed__on_items(struct feed_core *f, uint64_t now, struct feed_session_row *s,
                    const struct feed_event *ev)
{
    f->counts.items += ev->items.count;
    if (s->state == FEED_SKIPPED || s->state == FEED_PASSED) {
        if (PLANTED(FEED_LOSER_ENDED))
            feed__end(f, s, FEED_END_INVALID_REQUEST);
        return; /* of a batch that is not taken from it */
    }
    if (s->state != FEED_TAKING) {
        feed__end_client(f, now, s, FEED_END_INVALID_REQUEST);
        return;
    }
    struct feed_copy *c = &f->copy;
    if (ev->items.bytes > f->config.batch_bytes_max ||
        ev->items.bytes + c->bytes > f->config.batch_bytes_max ||
        (uint64_t)ev->items.count + c->calls > f->config.batch_calls_max) {
        feed__end_client(f, now, s, FEED_END_INVALID_REQUEST);
        return;
    }
    c->bytes += ev->items.bytes;
    c->calls += ev->items.count;
    feed__emit_copy(f, FEED_FX_KEEP);
}

void feed__on_trailer(struct feed_core *f, uint64_t now, struct feed_session_row *s)
{
    if (s->state == FEED_SKIPPED || s->state == FEED_PASSED)
        return;
    if (s->state != FEED_TAKING) {
        feed__end_client(f, now, s, FEED_END_INVALID_REQUEST);
        return;
    }
    feed__session(f, s, FEED_WAIT);
    feed__hold(f, s, true);
    f->copy.complete_at = now;
    if (PLANTED(FEED_UNVERIFIED)) {
        feed__phase(f, FEED_VERIFY_WAIT);
        feed__phase(f, FEED_STORE_WAIT);
        feed__emit_copy(f, FEED_FX_STORE);
        return;
    }
    feed__phase(f, FEED_VERIFY_WAIT);
    feed__emit_copy(f, FEED_FX_VERIFY);
    if (PLANTED(FEED_ACK_EARLY)) {
        f->last++;
        feed__acknowledge(f);
        f->last--;
    }
}
