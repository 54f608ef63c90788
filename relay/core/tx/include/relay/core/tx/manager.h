/* The transaction manager of one account: a pure core. manager_step(m, now, event) changes plain
 * data and lists effects; it has no clock, socket, SQL or key. The service and the simulator run
 * the same code.
 *
 * Rules (docs/design.md, sections 1 and 3):
 * - send only after the admission commit was confirmed (I3), lowest nonce first;
 * - a nonce, once given, is never given again while any of its bytes could still be included (I5);
 * - only a finalized block that contains one of the nonce's hashes decides; watch statuses only
 *   save time;
 * - a write whose outcome is unknown is never guessed: everything is loaded again under the epoch;
 * - repair asks the pool first, then the nonce at the best block, and only then sends the same
 *   bytes.
 *
 * phase_table.c has the phases and their moves; docs/design.md, section 3, shows them. Once
 * LEADING, probes go on beside the other work without leaving the phase.
 *
 * Where the database may have lost commits, CHAIN_WAIT and the first probe also collect what the
 * blocks and the pool hold at nonces that it does not know, and ADOPT comes before LEADING
 * (reconcile.c). Before the probe, ERA_WAIT reads all final blocks in which anything that was sent
 * by a lost commit could be (era_wait.c). */
#ifndef RELAY_MANAGER_H
#define RELAY_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/core/tx/manager_account.h"
#include "relay/core/tx/manager_effect.h"
#include "relay/core/tx/manager_event.h"
#include "relay/core/tx/manager_rules.h"

struct buf;
struct manager;

struct manager_config {
    uint32_t window_max;     /* nonces in use that are not in a block yet; default 256 */
    uint32_t batch_max;      /* rows of one admission; default 128 */
    uint32_t unanswered_max; /* submissions on the wire without an answer; default 64 */
    uint32_t era_period;     /* blocks; power of two; 0 = immortal; default 64 */
    /* probe an open row after this many best blocks without news; default 5 */
    uint32_t reprobe_blocks;
    uint32_t gap_blocks; /* alert after a nonce gap below pooled transactions has lasted this many
                            blocks; default 10 */
    uint32_t state_batch_max; /* statuses of one store write; default 512 */
    bool lost_search;         /* lost commits are searched for, and no era is waited for after it */
    bool keyless; /* nothing can be signed for the account: it sends only presigned transactions */
};

enum manager_phase {
    MANAGER_IDLE,
    MANAGER_LOAD_WAIT,
    MANAGER_CHAIN_WAIT,
    MANAGER_ERA_WAIT, /* commits may be lost: what they have sent may still be included */
    MANAGER_PROBE_POOL_WAIT,
    MANAGER_PROBE_NONCE_WAIT,
    MANAGER_LEADING,
};
const char *manager_phase_name(enum manager_phase phase); /* "CHAIN_WAIT" */

struct manager *manager_new(const struct manager_config *config); /* zeros = defaults */
struct manager *manager_free(struct manager *m);

/* One event, then the effects in order. The list is valid until the next step. now: monotonic
 * ms. */
void manager_step(struct manager *m, uint64_t now, const struct manager_event *ev,
                  const struct manager_effect **ret_effects, size_t *ret_count);
uint64_t manager_deadline(const struct manager *m); /* when a TICK is wanted; UINT64_MAX: none */

/* For status, metrics and tests. */
enum manager_phase manager_phase(const struct manager *m);
struct manager_view {
    uint64_t next_nonce;
    uint64_t processed; /* every finalized block up to this one was worked through */
    size_t open;        /* nonces in use */
    size_t to_load;     /* of the rows that are being read, with `open`; 0: not known yet */
    size_t unsent;      /* committed and not on the wire */
    size_t unsure;      /* waiting for a probe */
    size_t in_block;
    uint32_t window;
    uint32_t gap_blocks;  /* the number of blocks that the present nonce gap has lasted; 0: there is
                             none */
    uint32_t gap_longest; /* of this leadership */
    bool reconciles;      /* what lost commits may have sent is not adopted yet: no stop is heard */
    uint64_t gaps;        /* that began since the manager is there */
    uint64_t wait_blocks; /* that are left of the wait after lost commits; 0: none, or not known */
    enum manager_suspension suspension;
    /* Something takes a while under one leader: a new life was ordered and has not begun, or
     * another transaction_version is waited for to be final. */
    bool stays;
};
struct manager_view manager_view_of(const struct manager *m);
/* The tables of its phases and of the states of its rows. A move that they do not have is a bug:
 * the manager drops what the step decided, alerts, and loads its rows again; manager_check fails
 * from then on. */
struct manager_moves {
    uint64_t phases, rows; /* a bit for each move of a table that was made */
};
struct manager_moves manager_moved(const struct manager *m);
void manager_phases_missing(uint64_t made,
                            struct buf *out); /* the moves without a bit, a line each */
void manager_rows_missing(uint64_t made, struct buf *out);
void manager_phases_dump(struct buf *out); /* the table as a mermaid state diagram */
void manager_rows_dump(struct buf *out);

/* INVARIANTs over the whole state, for tests and the simulator */
void manager_check(const struct manager *m);

#endif
