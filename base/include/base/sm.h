/* A state machine's table: each move is a row that says from which state, to which, and what happened. The
 * machine looks every change of its state up in the table. The table prints its diagram (docs/design.md shows
 * it) and names the moves that were never made (tests require that there is none). */
#ifndef BASE_SM_H
#define BASE_SM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum {
    SM_OUTSIDE = 255,  /* the state of what does not exist yet, or no longer; "[*]" in the diagram */
    SM_MOVES_MAX = 64, /* moves of one table: each is a bit of a mask */
};

struct sm_move {
    uint8_t from, to;
    const char *why; /* what happened, in one line */
};

struct sm {
    const char *const *names; /* of the states, which count from 0 */
    size_t states;
    uint8_t initial; /* SM_OUTSIDE: the moves from there say how it begins */
    const struct sm_move *moves;
    size_t count;
};

/* What a machine has done by its table. */
struct sm_trace {
    uint64_t made;         /* a bit for each move that was made */
    uint32_t illegal_ever; /* moves that the table does not have */
    uint32_t illegal;      /* the same, since the owner set this to 0 */
    uint8_t from, to;      /* the first of these */
};

/* Records a move. false: the table does not have it. */
bool sm_take(const struct sm *sm, struct sm_trace *trace, unsigned from, unsigned to);

/* The number of a move, which is its bit in a mask of moves; -1: the table does not have it. */
int sm_find(const struct sm *sm, unsigned from, unsigned to);
const char *sm_name(const struct sm *sm, unsigned state);

void sm_dump(const struct sm *sm, struct buf *out); /* as a mermaid state diagram */
/* The moves whose bits `made` lacks, a line each. */
void sm_missing(const struct sm *sm, uint64_t made, struct buf *out);

#endif
