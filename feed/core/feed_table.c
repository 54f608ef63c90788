/* The tables of moves: the phases of a feed and the states of a session. Every change is looked up
 * here. The tables print the diagrams in docs/design.md. */
#include "base/buf.h"
#include "base/check.h"
#include "base/sm.h"
#include "feed_internal.h"

static const char *const phase_names[] = {
    [FEED_IDLE] = "IDLE",
    [FEED_LOAD_WAIT] = "LOAD_WAIT",
    [FEED_LOAD_LATER] = "LOAD_LATER",
    [FEED_FREE] = "FREE",
    [FEED_COLLECT] = "COLLECT",
    [FEED_VERIFY_WAIT] = "VERIFY_WAIT",
    [FEED_STORE_WAIT] = "STORE_WAIT",
};

static const struct sm_move phase_moves[] = {
    {FEED_IDLE, FEED_LOAD_WAIT, "this relay leads the account"},
    {FEED_LOAD_WAIT, FEED_FREE, "the cursor is known"},
    {FEED_LOAD_WAIT, FEED_LOAD_LATER, "the cursor was not read"},
    {FEED_LOAD_LATER, FEED_LOAD_WAIT, "the time of the back-off is over"},
    {FEED_FREE, FEED_COLLECT, "a header of the next number won"},
    {FEED_COLLECT, FEED_FREE, "the winner is gone, ended or stale"},
    {FEED_COLLECT, FEED_VERIFY_WAIT, "the trailer is there"},
    {FEED_VERIFY_WAIT, FEED_STORE_WAIT, "valid"},
    {FEED_VERIFY_WAIT, FEED_FREE, "not valid, or no answer in time"},
    {FEED_STORE_WAIT, FEED_FREE,
     "stored, or stored by another, or refused for good, or no answer in time"},
    {FEED_STORE_WAIT, FEED_LOAD_LATER, "what is stored is not known"},
    {FEED_LOAD_WAIT, FEED_IDLE, "this relay no longer serves the feed"},
    {FEED_LOAD_LATER, FEED_IDLE, "this relay no longer serves the feed"},
    {FEED_FREE, FEED_IDLE, "this relay no longer serves the feed"},
    {FEED_COLLECT, FEED_IDLE, "this relay no longer serves the feed"},
    {FEED_VERIFY_WAIT, FEED_IDLE, "this relay no longer serves the feed"},
    {FEED_STORE_WAIT, FEED_IDLE, "this relay no longer serves the feed, or its epoch is stale"},
};

static const char *const session_names[] = {
    [FEED_NEW] = "NEW",         [FEED_TAKING] = "TAKING", [FEED_WAIT] = "WAIT",
    [FEED_SKIPPED] = "SKIPPED", [FEED_PASSED] = "PASSED", [FEED_ENDED] = "ENDED",
};

static const struct sm_move session_moves[] = {
    {SM_OUTSIDE, FEED_NEW, "connected"},
    {FEED_NEW, FEED_TAKING, "its header won"},
    {FEED_NEW, FEED_SKIPPED, "another has the number, or the cursor is not known"},
    {FEED_NEW, FEED_PASSED, "its number is stored already or too high, and its stream stays open"},
    {FEED_PASSED, FEED_TAKING, "its header won"},
    {FEED_PASSED, FEED_SKIPPED, "another has the number, or the cursor is not known"},
    {FEED_SKIPPED, FEED_PASSED, "the number is stored, or to be sent again"},
    {FEED_SKIPPED, FEED_TAKING, "the number became free, and it sent its header again"},
    {FEED_TAKING, FEED_WAIT, "its trailer is there"},
    {FEED_TAKING, FEED_NEW, "it began another header"},
    {FEED_WAIT, FEED_NEW, "stored, or to be sent again"},
    {FEED_WAIT, FEED_SKIPPED, "what is stored is not known"},
    {FEED_NEW, FEED_ENDED, "the end is sent"},
    {FEED_PASSED, FEED_ENDED, "the end is sent"},
    {FEED_SKIPPED, FEED_ENDED, "the end is sent"},
    {FEED_TAKING, FEED_ENDED, "the end is sent: stale, too large, or its own wish"},
    {FEED_WAIT, FEED_ENDED, "the end is sent: not valid, or not stored in time"},
    {FEED_NEW, SM_OUTSIDE, "the stream is closed"},
    {FEED_PASSED, SM_OUTSIDE, "the stream is closed"},
    {FEED_SKIPPED, SM_OUTSIDE, "the stream is closed"},
    {FEED_TAKING, SM_OUTSIDE, "the stream is closed"},
    {FEED_WAIT, SM_OUTSIDE, "the stream is closed"},
    {FEED_ENDED, SM_OUTSIDE, "the stream is closed"},
};

static const struct sm phases = {phase_names, ARRAY_LEN(phase_names), FEED_IDLE, phase_moves,
                                 ARRAY_LEN(phase_moves)};
static const struct sm states = {session_names, ARRAY_LEN(session_names), SM_OUTSIDE, session_moves,
                                 ARRAY_LEN(session_moves)};

enum { SESSION_BIT = 32 }; /* of the first move of a session in feed_core_moved */

static void session_moved(struct feed_core *f, unsigned from, unsigned to)
{
    sm_take(&states, &f->session_moves, from, to); /* what follows presumes the new state */
    f->open += (size_t)(from == SM_OUTSIDE);
    f->open -= (size_t)(from != SM_OUTSIDE && from != FEED_ENDED &&
                        (to == SM_OUTSIDE || to == FEED_ENDED));
    f->skipped += (size_t)(to == FEED_SKIPPED);
    f->skipped -= (size_t)(from == FEED_SKIPPED);
}

void feed__phase(struct feed_core *f, enum feed_phase to)
{
    sm_take(&phases, &f->phase_moves, f->phase, to);
    f->phase = to;
}

void feed__session(struct feed_core *f, struct feed_session_row *s, enum feed_session_state to)
{
    if (s->state == to)
        return;
    session_moved(f, s->state, to);
    s->state = to;
}

void feed__opened(struct feed_core *f)
{
    session_moved(f, SM_OUTSIDE, FEED_NEW);
}

void feed__gone(struct feed_core *f, const struct feed_session_row *s)
{
    session_moved(f, s->state, SM_OUTSIDE);
}

bool feed__illegal(const struct feed_core *f)
{
    return f->phase_moves.illegal || f->session_moves.illegal;
}

void feed__forgive(struct feed_core *f)
{
    if (!sm_bug(&phases, &f->phase_moves, f->bug))
        sm_bug(&states, &f->session_moves, f->bug);
    f->phase_moves.illegal = f->session_moves.illegal = 0;
}

const char *feed_core_bug(const struct feed_core *f)
{
    return f->bug[0] ? f->bug : NULL;
}

const char *feed_end_name(enum feed_end end)
{
    static const char *const names[] = {
        [FEED_END_SUCCESS] = "SUCCESS",
        [FEED_END_INVALID_REQUEST] = "INVALID_REQUEST",
        [FEED_END_ERROR] = "ERROR",
        [FEED_END_TIMEOUT] = "TIMEOUT",
        [FEED_END_DUPLICATE_BLOCK] = "DUPLICATE_BLOCK",
        [FEED_END_BAD_BLOCK_PROOF] = "BAD_BLOCK_PROOF",
        [FEED_END_PERSISTENCE_FAILED] = "PERSISTENCE_FAILED",
        [FEED_END_BEHIND] = "BEHIND",
        [FEED_END_NOT_LEADER] = "NOT_LEADER",
    };
    PRE(end >= FEED_END_SUCCESS && end < ARRAY_LEN(names));
    return names[end];
}

const char *feed_phase_name(enum feed_phase phase)
{
    PRE(phase < ARRAY_LEN(phase_names));
    return phase_names[phase];
}

void feed_phase_dump(struct buf *out)
{
    sm_dump(&phases, out);
}

void feed_session_dump(struct buf *out)
{
    sm_dump(&states, out);
}

uint64_t feed_core_moved(const struct feed_core *f)
{
    return f->phase_moves.made | f->session_moves.made << SESSION_BIT;
}

void feed_core_missing(uint64_t moved, struct buf *out)
{
    _Static_assert(ARRAY_LEN(phase_moves) <= SESSION_BIT, "the low bits");
    _Static_assert(ARRAY_LEN(session_moves) <= 64 - SESSION_BIT, "the high bits");
    sm_missing(&phases, moved, out);
    sm_missing(&states, moved >> SESSION_BIT, out);
}
