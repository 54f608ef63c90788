/* A state machine's table. Each transition is a row: from, to, and what happened. The machine
 * checks every change of its state against the table. The table prints its diagram, which
 * docs/design.md shows, and lists the transitions that were never made; tests require that there
 * are none. */
#ifndef BASE_SM_H
#define BASE_SM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum {
    SM_OUTSIDE = 255,  /* the state before creation and after the end; "[*]" in the diagram */
    SM_MOVES_MAX = 64, /* most transitions of a table: each is a bit of a mask */
    SM_BUG_MAX = 96,   /* the text of sm_bug */
};

struct sm_move {
    uint8_t from, to;
    const char *why; /* what happened, in one line */
};

struct sm {
    const char *const *names; /* of the states, which count from 0 */
    size_t states;
    uint8_t initial; /* SM_OUTSIDE: the transitions from there create it */
    const struct sm_move *moves;
    size_t count;
};

/* The history of one machine. */
struct sm_trace {
    uint64_t made;         /* a bit for each transition that was made */
    uint32_t illegal_ever; /* changes that the table does not have */
    uint32_t illegal;      /* the same, since the owner set this to 0 */
    uint8_t from, to;      /* the first of these */
};

/* Records a transition. false: the table does not have it. */
bool sm_take(const struct sm *sm, struct sm_trace *trace, unsigned from, unsigned to);

/* A transition that the table does not have is a bug, and no reason to end a user's relay. The
 * owner of the machine logs it and begins again with what is stored. True if there was one since
 * the last call: the text says which was the first. */
bool sm_bug(const struct sm *sm, struct sm_trace *trace, char ret_text[SM_BUG_MAX]);

/* For tests, which do not forgive: an INVARIANT that there never was one. */
void sm_check(const struct sm_trace *trace);

/* The number of a transition, which is its bit in a mask; -1: the table does not have it. */
int sm_find(const struct sm *sm, unsigned from, unsigned to);
const char *sm_name(const struct sm *sm, unsigned state);

void sm_dump(const struct sm *sm, struct buf *out); /* as a mermaid state diagram */
/* The transitions whose bits are missing in `made`, one per line. */
void sm_missing(const struct sm *sm, uint64_t made, struct buf *out);

#endif
