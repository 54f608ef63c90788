/* The tables of moves: the machine, a transaction at its sender, and one at its coordinator. Every
 * change is looked up here. The tables print the diagrams in docs/design.md. */
#include "base/buf.h"
#include "base/check.h"
#include "base/sm.h"
#include "site_internal.h"

static const char *const state_names[] = {
    [SITE_IDLE] = "IDLE",         [SITE_OBSERVING] = "OBSERVING", [SITE_ELECT] = "ELECT",
    [SITE_PREPARED] = "PREPARED", [SITE_ACTIVE] = "ACTIVE",       [SITE_FLUSH] = "FLUSH",
    [SITE_CLOSING] = "CLOSING",
};

static const struct sm_move state_moves[] = {
    {SITE_IDLE, SITE_OBSERVING, "a transaction is delegated, or another site coordinates"},
    {SITE_IDLE, SITE_ELECT, "chosen, and there is work"},
    {SITE_IDLE, SITE_FLUSH, "another is chosen, and dispatches are on record"},
    {SITE_OBSERVING, SITE_IDLE, "nothing is in flight any more, or this relay no longer leads"},
    {SITE_OBSERVING, SITE_ELECT, "chosen, and there is work here or elsewhere"},
    {SITE_OBSERVING, SITE_FLUSH, "another is chosen, and dispatches are on record"},
    {SITE_ELECT, SITE_PREPARED, "the others have handed over, and their dispatches are open"},
    {SITE_ELECT, SITE_ACTIVE, "no other coordinates, or the time for the handover is over"},
    {SITE_ELECT, SITE_OBSERVING, "another is chosen"},
    {SITE_ELECT, SITE_FLUSH, "another is chosen, and something is dispatched"},
    {SITE_PREPARED, SITE_ACTIVE, "what was handed over is final or dead"},
    {SITE_PREPARED, SITE_OBSERVING, "another is chosen"},
    {SITE_PREPARED, SITE_FLUSH, "another is chosen, and something is dispatched"},
    {SITE_ACTIVE, SITE_FLUSH, "another is chosen"},
    {SITE_ACTIVE, SITE_CLOSING, "no work is left"},
    {SITE_FLUSH, SITE_ELECT, "chosen again"},
    {SITE_FLUSH, SITE_CLOSING, "everything that was dispatched has ended"},
    {SITE_CLOSING, SITE_ELECT, "chosen, and there is work again"},
    {SITE_CLOSING, SITE_IDLE, "the last heartbeat is sent"},
    {SITE_CLOSING, SITE_OBSERVING, "the last heartbeat is sent, and another site coordinates"},
    {SITE_ELECT, SITE_IDLE, "this relay no longer leads"},
    {SITE_PREPARED, SITE_IDLE, "this relay no longer leads"},
    {SITE_ACTIVE, SITE_IDLE, "this relay no longer leads"},
    {SITE_FLUSH, SITE_IDLE, "this relay no longer leads"},
};

static const char *const tx_names[] = {
    [SITE_TX_WAITING] = "WAITING",   [SITE_TX_ASKED] = "ASKED",     [SITE_TX_HELD] = "HELD",
    [SITE_TX_GRANTING] = "GRANTING", [SITE_TX_GRANTED] = "GRANTED", [SITE_TX_ENDING] = "ENDING",
};

static const struct sm_move tx_moves[] = {
    {SM_OUTSIDE, SITE_TX_WAITING, "a row of the outbox"},
    {SM_OUTSIDE, SITE_TX_GRANTED, "read from the table with live bytes"},
    {SITE_TX_WAITING, SITE_TX_ASKED, "delegated"},
    {SITE_TX_ASKED, SITE_TX_HELD, "accepted"},
    {SITE_TX_ASKED, SITE_TX_WAITING, "refused, or another site is chosen"},
    {SITE_TX_HELD, SITE_TX_WAITING, "returned, forgotten, or another site is chosen"},
    {SITE_TX_ASKED, SITE_TX_GRANTING, "proposed before the acceptance arrived"},
    {SITE_TX_HELD, SITE_TX_GRANTING, "proposed"},
    {SITE_TX_GRANTED, SITE_TX_GRANTING, "new bytes at the same place"},
    {SITE_TX_GRANTING, SITE_TX_GRANTED, "stored"},
    {SITE_TX_GRANTED, SITE_TX_WAITING, "all bytes are dead by the finalized chain"},
    {SITE_TX_WAITING, SITE_TX_ENDING, "cancelled, or its lost bytes are in a final block"},
    {SITE_TX_ASKED, SITE_TX_ENDING, "cancelled, or its lost bytes are in a final block"},
    {SITE_TX_HELD, SITE_TX_ENDING, "cancelled, or its lost bytes are in a final block"},
    {SITE_TX_GRANTED, SITE_TX_ENDING, "in a final block"},
    {SITE_TX_ENDING, SM_OUTSIDE, "stored"},
};

static const char *const work_names[] = {
    [SITE_WORK_HELD] = "HELD",
    [SITE_WORK_SIGNING] = "SIGNING",
    [SITE_WORK_APPROVING] = "APPROVING",
    [SITE_WORK_PROPOSED] = "PROPOSED",
    [SITE_WORK_GRANTED] = "GRANTED",
    [SITE_WORK_DISPATCHING] = "DISPATCHING",
    [SITE_WORK_DISPATCHED] = "DISPATCHED",
};

static const struct sm_move work_moves[] = {
    {SM_OUTSIDE, SITE_WORK_HELD, "accepted, or a filler"},
    {SM_OUTSIDE, SITE_WORK_GRANTED, "delegated with live bytes, or granted late"},
    {SM_OUTSIDE, SITE_WORK_DISPATCHED, "read from the table"},
    {SITE_WORK_HELD, SITE_WORK_SIGNING, "it has a nonce"},
    {SITE_WORK_HELD, SITE_WORK_GRANTED, "its sender has live bytes"},
    {SITE_WORK_SIGNING, SITE_WORK_HELD, "it was not signed"},
    {SITE_WORK_SIGNING, SITE_WORK_APPROVING, "signed, and approvals are needed"},
    {SITE_WORK_SIGNING, SITE_WORK_PROPOSED, "signed"},
    {SITE_WORK_SIGNING, SITE_WORK_GRANTED, "a filler is signed, or its sender has live bytes"},
    {SITE_WORK_APPROVING, SITE_WORK_PROPOSED, "enough members approved"},
    {SITE_WORK_APPROVING, SITE_WORK_HELD, "its bytes died"},
    {SITE_WORK_APPROVING, SITE_WORK_GRANTED, "its sender has live bytes"},
    {SITE_WORK_PROPOSED, SITE_WORK_GRANTED, "granted"},
    {SITE_WORK_PROPOSED, SITE_WORK_HELD, "its bytes died"},
    {SITE_WORK_GRANTED, SITE_WORK_DISPATCHING, "nothing below it is open"},
    {SITE_WORK_DISPATCHING, SITE_WORK_DISPATCHED, "stored"},
    {SITE_WORK_HELD, SM_OUTSIDE, "returned"},
    {SITE_WORK_SIGNING, SM_OUTSIDE, "returned"},
    {SITE_WORK_APPROVING, SM_OUTSIDE, "returned"},
    {SITE_WORK_PROPOSED, SM_OUTSIDE, "returned, denied or not answered"},
    {SITE_WORK_GRANTED, SM_OUTSIDE, "its bytes died"},
    {SITE_WORK_DISPATCHED, SM_OUTSIDE, "final or dead"},
};

static const struct sm machine = {state_names, ARRAY_LEN(state_names), SITE_IDLE, state_moves,
                                  ARRAY_LEN(state_moves)};
static const struct sm txs = {tx_names, ARRAY_LEN(tx_names), SM_OUTSIDE, tx_moves,
                              ARRAY_LEN(tx_moves)};
static const struct sm works = {work_names, ARRAY_LEN(work_names), SM_OUTSIDE, work_moves,
                                ARRAY_LEN(work_moves)};

/* Also when it is illegal: what follows presumes the new state. */
static void take(struct site_core *c, const struct sm *sm, struct sm_trace *trace, unsigned from,
                 unsigned to)
{
    sm_take(sm, trace, from, to);
    c->moves++;
}

void site__move(struct site_core *c, uint64_t now, enum site_state to)
{
    take(c, &machine, &c->machine_moves, c->state, to);
    c->state = to;
    c->state_at = now;
}

void site__move_tx(struct site_core *c, struct site_tx *t, enum site_tx_state to)
{
    if (t->state == to)
        return;
    take(c, &txs, &c->tx_moves, t->state, to);
    t->state = to;
}

void site__move_work(struct site_core *c, struct site_work *w, enum site_work_state to)
{
    if (w->state == to)
        return;
    take(c, &works, &c->work_moves, w->state, to);
    w->state = to;
}

void site__tx_begins(struct site_core *c, enum site_tx_state to)
{
    take(c, &txs, &c->tx_moves, SM_OUTSIDE, to);
}

void site__tx_ends(struct site_core *c, enum site_tx_state from)
{
    take(c, &txs, &c->tx_moves, from, SM_OUTSIDE);
}

void site__work_begins(struct site_core *c, enum site_work_state to)
{
    take(c, &works, &c->work_moves, SM_OUTSIDE, to);
}

void site__work_ends(struct site_core *c, enum site_work_state from)
{
    take(c, &works, &c->work_moves, from, SM_OUTSIDE);
}

const char *site_state_name(enum site_state state)
{
    return sm_name(&machine, state);
}

const char *site_message_name(enum site_message_type type)
{
    static const char *const names[] = {
        "delegate",   "accepted", "refused",     "propose",  "grant",     "deny",
        "dispatched", "gone",     "returned",    "reverted", "handover",  "closed",
        "approve",    "approved", "disapproved", "ack",      "heartbeat", "probe"};
    _Static_assert(ARRAY_LEN(names) == SITE_MSG_COUNT, "a name for each");
    PRE(type < SITE_MSG_COUNT);
    return names[type];
}

const char *site_reason_name(enum site_reason reason)
{
    static const char *const names[] = {
        "none", "not chosen", "full", "blind", "unknown", "moved", "invalid", "era", "live", "wait",
    };
    _Static_assert(ARRAY_LEN(names) == SITE_REASON_COUNT, "a name for each");
    PRE(reason < SITE_REASON_COUNT);
    return names[reason];
}

void site_state_dump(struct buf *out)
{
    sm_dump(&machine, out);
}

void site_tx_dump(struct buf *out)
{
    sm_dump(&txs, out);
}

void site_work_dump(struct buf *out)
{
    sm_dump(&works, out);
}

struct site_moves site_core_moved(const struct site_core *c)
{
    return (struct site_moves){c->machine_moves.made, c->tx_moves.made, c->work_moves.made};
}

bool site__illegal(const struct site_core *c)
{
    return c->machine_moves.illegal || c->tx_moves.illegal || c->work_moves.illegal;
}

void site__forgive(struct site_core *c)
{
    if (!sm_bug(&machine, &c->machine_moves, c->bug) && !sm_bug(&txs, &c->tx_moves, c->bug))
        sm_bug(&works, &c->work_moves, c->bug);
    c->machine_moves.illegal = c->tx_moves.illegal = c->work_moves.illegal = 0;
}

const char *site_core_bug(const struct site_core *c)
{
    return c->bug[0] ? c->bug : NULL;
}

void site_core_missing(const struct site_moves *moved, struct buf *out)
{
    sm_missing(&machine, moved->machine, out);
    sm_missing(&txs, moved->tx, out);
    sm_missing(&works, moved->work, out);
}
