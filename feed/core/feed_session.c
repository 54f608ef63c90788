/* The sessions: the messages to one or to all of them, and how a session opens, is held and
 * ends. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/plant.h"
#include "feed_internal.h"

struct feed_session_row *feed__row(struct feed_core *f, uint64_t id)
{
    struct feed_session_row *s;
    HASH_FIND(hh, f->sessions, &id, sizeof(id), s);
    return s;
}

struct feed_session_row *feed__winner(struct feed_core *f)
{
    return feed__row(f, f->copy.session);
}

bool feed__is_open(const struct feed_session_row *s)
{
    return s->state != FEED_ENDED;
}

void feed__send(struct feed_core *f, const struct feed_session_row *s, enum feed_message message,
                int64_t number)
{
    struct feed_effect *fx = feed__emit(f, FEED_FX_SEND);
    fx->session = s->id;
    fx->number = number;
    fx->send.message = message;
    f->counts.sent[message]++;
}

void feed__hold(struct feed_core *f, struct feed_session_row *s, bool held)
{
    if (s->held == held)
        return;
    s->held = held;
    feed__emit(f, held ? FEED_FX_HOLD : FEED_FX_RELEASE)->session = s->id;
}

void feed__end(struct feed_core *f, struct feed_session_row *s, enum feed_end code)
{
    if (s->state == FEED_ENDED)
        return;
    feed__hold(f, s, false);
    feed__send(f, s, FEED_MSG_END, f->last);
    f->effects[f->effect_count - 1].send.end = code;
    f->counts.ended[code]++;
    feed__session(f, s, FEED_ENDED);
}

void feed__resend(struct feed_core *f, int64_t number, const struct feed_session_row *but)
{
    for (struct feed_session_row *s = f->sessions; s; s = s->hh.next) {
        if (s == but || !feed__is_open(s))
            continue;
        if (s->state == FEED_SKIPPED)
            feed__session(f, s, FEED_PASSED);
        feed__send(f, s, FEED_MSG_RESEND, number);
    }
}

void feed__acknowledge(struct feed_core *f)
{
    for (struct feed_session_row *s = f->sessions; s; s = s->hh.next) {
        if (!feed__is_open(s))
            continue;
        if (s->state == FEED_SKIPPED)
            feed__session(f, s, FEED_PASSED);
        feed__send(f, s, FEED_MSG_ACK, f->last);
    }
}

void feed__on_open(struct feed_core *f, uint64_t id)
{
    PRE(!feed__row(f, id) && id);
    struct feed_session_row *s = xcalloc(1, sizeof(*s));
    s->id = id;
    s->publisher = -1;
    HASH_ADD(hh, f->sessions, id, sizeof(s->id), s);
    feed__opened(f);
    if (f->phase == FEED_IDLE)
        feed__end(f, s, f->leave_end);
    else if (f->open > f->config.sessions_max)
        feed__end(f, s, FEED_END_ERROR);
}

void feed__end_client(struct feed_core *f, uint64_t now, struct feed_session_row *s,
                      enum feed_end code)
{
    bool taking = s->state == FEED_TAKING;
    feed__end(f, s, code);
    if (!taking)
        return;
    feed__lose(f, now, code != FEED_END_SUCCESS);
    feed__resend(f, f->last + 1, NULL);
}

void feed__on_gone(struct feed_core *f, uint64_t now, struct feed_session_row *s)
{
    bool taking = s->state == FEED_TAKING; /* a complete copy is judged without its sender */
    feed__gone(f, s);
    HASH_DEL(f->sessions, s);
    free(s);
    if (!taking || PLANTED(FEED_DEAD_WINNER))
        return;
    feed__lose(f, now, true);
    feed__resend(f, f->last + 1, NULL);
}
