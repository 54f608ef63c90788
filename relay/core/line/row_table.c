/* The states of a row as a table of moves. line_move, line_add and line_remove look every change up
 * in it; line.h says what the states mean, and docs/design.md shows the diagram that it prints.
 *
 * A row whose bytes are presigned has no new bytes to be signed: where others become RESIGN, it
 * backs off as UNSENT. Any state ends in ENDING when a finalized block decides the nonce: by a hash
 * of the row, by another extrinsic, or because none of the row's bytes can be included any longer.
 * A load drops all rows. */
#include "base/buf.h"
#include "line_internal.h"

static const char *const names[] = {
    [ROW_UNSENT] = "UNSENT",       [ROW_SUBMITTED] = "SUBMITTED", [ROW_POOLED] = "POOLED",
    [ROW_UNSURE] = "UNSURE",       [ROW_IN_BLOCK] = "IN_BLOCK",   [ROW_RESIGN] = "RESIGN",
    [ROW_FILL] = "FILL",           [ROW_SIGNING] = "SIGNING",     [ROW_ENDING] = "ENDING",
    [ROW_FINISHING] = "FINISHING",
};

static const struct sm_move moves[] = {
    /* the usual way: first, since most moves are looked up here */
    {SM_OUTSIDE, ROW_UNSENT, "admitted: bytes and nonce are committed"},
    {ROW_UNSENT, ROW_SUBMITTED, "submitted"},
    {ROW_SUBMITTED, ROW_POOLED, "accepted"},
    {ROW_POOLED, ROW_IN_BLOCK, "included in a best block"},
    {ROW_IN_BLOCK, ROW_ENDING, "a finalized block decides its nonce"},
    {ROW_ENDING, ROW_FINISHING, "its end is being stored"},
    {ROW_FINISHING, SM_OUTSIDE, "its end is stored"},

    {SM_OUTSIDE, ROW_UNSURE, "loaded from the database"},
    {SM_OUTSIDE, ROW_FILL, "a nonce below other rows has no transaction"},

    {ROW_UNSENT, ROW_UNSENT, "presigned bytes cannot be submitted now: back off"},
    {ROW_UNSENT, ROW_UNSURE, "runtime changed, or a late status: a pool had it and dropped it"},
    {ROW_UNSENT, ROW_IN_BLOCK, "its nonce is used"},
    {ROW_UNSENT, ROW_RESIGN, "era ended, runtime changed, or a higher tip is due"},
    {ROW_UNSENT, ROW_FILL, "stopped, and its tip cannot rise"},
    {ROW_UNSENT, ROW_ENDING,
     "a finalized block decides its nonce, or it is stopped and was never sent"},

    {ROW_SUBMITTED, ROW_UNSENT,
     "refused for now: pool full, no funds, node busy or behind, gate closed"},
    {ROW_SUBMITTED, ROW_UNSURE,
     "no answer, banned, or the pool holds another extrinsic at its nonce"},
    {ROW_SUBMITTED, ROW_IN_BLOCK, "refused as stale: its nonce is used"},
    {ROW_SUBMITTED, ROW_RESIGN,
     "bad proof, outbid, no room, era ended, or invalid: a filler is to be signed instead"},
    {ROW_SUBMITTED, ROW_FILL, "stopped, and its tip cannot rise; or invalid, and its era ended"},
    {ROW_SUBMITTED, ROW_ENDING, "a finalized block decides its nonce"},

    {ROW_POOLED, ROW_UNSURE, "dropped, no news, watch lost, another node or runtime"},
    {ROW_POOLED, ROW_UNSENT, "presigned, and its era ended while no end can be stored: back off"},
    {ROW_POOLED, ROW_RESIGN, "era ended, or a higher tip is due"},
    {ROW_POOLED, ROW_FILL, "stopped, and its tip cannot rise"},
    {ROW_POOLED, ROW_ENDING, "a finalized block decides its nonce"},

    {ROW_UNSURE, ROW_POOLED, "a probe or a status shows it in a pool"},
    {ROW_UNSURE, ROW_IN_BLOCK, "a probe or a status shows that its nonce is used"},
    {ROW_UNSURE, ROW_UNSENT, "a probe finds it nowhere: submit it again"},
    {ROW_UNSURE, ROW_UNSURE, "a probe cannot tell yet"},
    {ROW_UNSURE, ROW_RESIGN, "a probe finds it nowhere, and its bytes are no longer valid"},
    {ROW_UNSURE, ROW_FILL, "a probe finds it nowhere, and it is stopped"},
    {ROW_UNSURE, ROW_ENDING, "a finalized block decides its nonce"},

    {ROW_IN_BLOCK, ROW_IN_BLOCK, "included in another best block"},
    {ROW_IN_BLOCK, ROW_UNSURE, "retracted, finality timed out, or its nonce is unused again"},

    {ROW_RESIGN, ROW_SIGNING, "new bytes are requested"},
    {ROW_RESIGN, ROW_RESIGN, "stopped: a filler with a higher tip is to be signed instead"},
    {ROW_RESIGN, ROW_FILL, "stopped, and its tip cannot rise"},
    {ROW_RESIGN, ROW_UNSURE, "a status of its old bytes: dropped"},
    {ROW_RESIGN, ROW_IN_BLOCK, "a status or a probe: its nonce is used"},
    {ROW_RESIGN, ROW_ENDING,
     "a finalized block decides its nonce, or it is stopped and was never sent"},

    {ROW_FILL, ROW_SIGNING, "a filler is requested"},
    {ROW_FILL, ROW_UNSURE, "a status of its old bytes: dropped"},
    {ROW_FILL, ROW_IN_BLOCK, "a status of its old bytes: included"},
    {ROW_FILL, ROW_ENDING, "a finalized block decides its nonce"},
    {ROW_FILL, SM_OUTSIDE, "nothing was signed for the nonce, and it needs no filler"},

    {ROW_SIGNING, ROW_UNSENT, "new bytes are committed"},
    {ROW_SIGNING, ROW_RESIGN, "not signed, or the runtime changed meanwhile"},
    {ROW_SIGNING, ROW_FILL, "no filler was signed, or stopped meanwhile"},
    {ROW_SIGNING, ROW_ENDING, "a finalized block decided its nonce meanwhile"},
};

static const struct sm table = {names, ROW_STATES, SM_OUTSIDE, moves, ARRAY_LEN(moves)};

void line__moves(struct line *line, uint64_t nonce, unsigned from, unsigned to)
{
    _Static_assert(ARRAY_LEN(names) == ROW_STATES, "a name for each");
    _Static_assert(ARRAY_LEN(moves) <= SM_MOVES_MAX, "a bit for each");
    if (!sm_take(&table, &line->moves, from, to) && line->moves.illegal == 1)
        line->illegal_nonce = nonce;
}

const char *row_state_name(enum row_state state)
{
    return sm_name(&table, state);
}

void row_moves_dump(struct buf *out)
{
    sm_dump(&table, out);
}

void row_moves_missing(uint64_t made, struct buf *out)
{
    sm_missing(&table, made, out);
}
