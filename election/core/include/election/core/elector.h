/* Leadership of accounts: the pure core. One elector serves all accounts of one relay.
 * elector_step(e, now, event) changes plain data and lists effects. Design section 5; the same picture with
 * every reason comes from elector_dump():
 *
 *              bid              got             granted
 *   FOLLOWER --------> LOCK_WAIT -----> CLAIM_WAIT -------> LEADER
 *    ^ ^ ^ ^ |         |   ^              |   |               | |
 *    | | | | |  taken  |   | ended        |   |               | |
 *    | | | +-|---------+   |              |   |               | |
 *    | | |   +------> EVICT_WAIT          |   |               | |
 *    | | | lapsed         |               |   |               | |
 *    | | +--- healthy ----+               |   |               | |
 *    | +--------- denied, failed ---------+   | too late,     | | renewal refused or
 *    |                                        v not wanted    v | late, drain
 *    +------------------------------------ RELEASE_WAIT <-------+ |
 *    +---- control session lost, write refused as stale ----------+
 *
 * - Followers look before they bid: one SCAN in flight for all of them, every bid_min..bid_max ms, tells
 *   whose lock is free and whose claim has lapsed, and who leads. It writes nothing and decides nothing: what
 *   it makes us do is decided again by the statement that does it. Only an account that was heard to be free,
 *   or whose last request failed, bids by itself.
 * - A bid is the session lock first, then the claim that raises the epoch. Without use_lock only the claim.
 * - The lock is never asked for while it is held (session locks stack), and is given up when the claim is
 *   denied. Where it is taken and the claim behind it has lapsed, EVICT asks the database to end the session
 *   that has it (G11..G14; one statement looks and decides, so a healthy holder is never hit). The first in
 *   rank does so at once, the others when that did not help.
 * - Placement (elector_place.c): one BEAT a heartbeat tells the relays that live. They make a hash ring; an
 *   account that is free is bid for at once by the member that is closest to it, by the others after a delay
 *   by rank. A claim is sticky. With placement by the ring, or rotation, a leader whose account belongs to
 *   another member is told to LEAVE it: the owner stops admitting, settles, and says HAND_OVER. It keeps
 * leading, renewing and sending until then.
 * - Renewal: one statement for all accounts, every heartbeat_ms +-20 %, one in flight.
 * - The gate of an account is open iff LEADER, the store is up, and now < sent + expiry_1 - margin, where
 *   sent is when the last successful renewal (or the claim) was *sent* (monotonic, L05, L06). After the store
 *   was down it opens only when a renewal has succeeded.
 * - Any doubt shuts the gate first: control session lost, renewal refused or late, a write refused as stale.
 *   The tenure ends when the time is over; a renewal that fails is tried again until then.
 * - A write whose outcome is unknown may still be carried out at the server. In DOUBT the leader claims again
 *   (LEADER -> CLAIM_WAIT; its own name is always granted): under the new epoch the table is read either
 * after that write or without it.
 * - Each LOCK, CLAIM, EVICT, RELEASE, RENEW and SCAN is answered exactly once by the owner, failed = true
 * when the outcome is unknown. The *_WAIT states wait for that answer whatever happens meanwhile; what comes
 * too late (a claim granted after we gave up, a lock of a session that is gone) is handed back or ignored,
 * and a renewal of an earlier tenure is told apart by its epoch. UNLOCK has no answer. */
#ifndef ELECTION_ELECTOR_H
#define ELECTION_ELECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "election/core/ring.h"

struct elector;

struct elector_config {
    bool use_lock;
    uint32_t heartbeat_ms;           /* default 1000 */
    uint32_t expiry_1_ms;            /* default 5000 */
    uint32_t expiry_2_ms;            /* default 20000; == expiry_1: single-expiry mode */
    uint32_t margin_ms;              /* default 1000: gate shuts so long before expiry_1 */
    uint32_t bid_min_ms, bid_max_ms; /* followers' scan interval with jitter; default 150, 450 */
    bool ring;           /* accounts go to the member that the ring says; else who leads stays (sticky) */
    bool rotate;         /* each tenure is for the next one in the ring (ROTATE says when it ends) */
    uint32_t leaves_max; /* accounts that are told to leave in one heartbeat; default 8 */
    uint64_t seed;
    ring_hash_fn *hash; /* of the ring; needed from the first MEMBERS event on */
};

enum elector_state {
    ELECTOR_FOLLOWER,
    ELECTOR_LOCK_WAIT,
    ELECTOR_CLAIM_WAIT,
    ELECTOR_EVICT_WAIT,
    ELECTOR_LEADER,
    ELECTOR_RELEASE_WAIT
};

enum elector_event_type {
    ELECTOR_EV_STORE_UP,
    ELECTOR_EV_STORE_DOWN,
    ELECTOR_EV_CONTROL_LOST,
    ELECTOR_EV_LOCK_REPLY,    /* account, ok = got, failed = the question failed */
    ELECTOR_EV_CLAIM_REPLY,   /* account, ok = granted, failed, epoch, expiry_1_left_ms.., lock_held,
                                 mid_submission */
    ELECTOR_EV_EVICT_REPLY,   /* account, ok = terminated, failed; holder (NULL: not known), address, epoch,
                                 expiry_1_left_ms */
    ELECTOR_EV_RENEW_REPLY,   /* accounts[], renewed[], count; failed */
    ELECTOR_EV_SCAN_REPLY,    /* accounts[], seen[], count: those of the scan that are no old news; failed */
    ELECTOR_EV_RELEASE_REPLY, /* account */
    ELECTOR_EV_MEMBERS,   /* names[], count: answer to BEAT, who lives; self: our index, -1: not among them;
                             failed */
    ELECTOR_EV_ROTATE,    /* account: its turn is over, by the owner's count of blocks */
    ELECTOR_EV_HAND_OVER, /* account: it is settled, or there was no more time for that */
    ELECTOR_EV_RETIRE,    /* leave everything, bid no more: DRAIN is to follow */
    ELECTOR_EV_LEADER_CHANGE, /* account, holder, address, epoch: heard over LISTEN; bids early when it says
                                 free */
    ELECTOR_EV_STALE, /* account: a fenced write of `epoch` (0: the current one) was refused: stop at once */
    ELECTOR_EV_DOUBT, /* account: the outcome of a fenced write is unknown: go on under a new epoch */
    ELECTOR_EV_DRAIN, /* give everything up, bid no more */
    ELECTOR_EV_TICK,
};
/* What a scan tells about an account. */
struct elector_seen {
    bool taken;                   /* some session has its lock */
    bool mine;                    /* the claim in the table is this relay's */
    bool lock_held;               /* the claim counts only together with the lock */
    const char *holder, *address; /* "": nobody claims it */
    int64_t epoch;
    int64_t expiry_1_left_ms, expiry_2_left_ms;
};
struct elector_event {
    enum elector_event_type type;
    int account; /* index given by elector_add */
    bool ok, failed;
    int64_t epoch;
    const char *holder, *address; /* claim reply: who leads; leader change */
    bool lock_held, mid_submission;
    int64_t expiry_1_left_ms, expiry_2_left_ms;
    size_t count;
    const int *accounts;
    const bool *renewed;
    const struct elector_seen *seen;
    const char *const *names;
    int self;
};

enum elector_effect_type {
    ELECTOR_FX_LOCK,
    ELECTOR_FX_UNLOCK,
    ELECTOR_FX_CLAIM,
    ELECTOR_FX_EVICT,
    ELECTOR_FX_RELEASE,
    ELECTOR_FX_RENEW,   /* for every LEADER account: elector_renewing() lists them */
    ELECTOR_FX_SCAN,    /* for followers: elector_scanning() lists them */
    ELECTOR_FX_BEAT,    /* leaving: this relay is no member from now on (no answer is expected) */
    ELECTOR_FX_LEAVE,   /* account, reason: stop admitting, settle, then HAND_OVER */
    ELECTOR_FX_PROMOTE, /* account, epoch */
    ELECTOR_FX_DEMOTE,  /* account, epoch that ended, reason: all leader work stops now */
    ELECTOR_FX_GATE,    /* account, open: edge, for logs and to send what was held back */
    ELECTOR_FX_DRAINED, /* every account was released, or the store is down; once */
};
struct elector_effect {
    enum elector_effect_type type;
    int account;
    int64_t epoch;
    bool have_lock;     /* claim */
    bool open;          /* gate */
    bool leaving;       /* beat */
    const char *reason; /* static text */
};

struct err;
struct buf;

struct elector *elector_new(const struct elector_config *config); /* zeros = defaults */
struct elector *elector_free(struct elector *e);
/* 0, or ERR_CONFIG with the reason: expiry_2 < expiry_1, margin or heartbeat that cannot fit... */
int elector_config_check(const struct elector_config *config, struct err *err);
struct elector_config elector_config_defaults(const struct elector_config *config); /* zeros filled */
int elector_add(struct elector *e);                                 /* index of a new account, FOLLOWER */
void elector_place(struct elector *e, int account, uint64_t place); /* where it is on the ring */

void elector_step(struct elector *e, uint64_t now, const struct elector_event *ev,
                  const struct elector_effect **ret_effects, size_t *ret_count);
uint64_t elector_deadline(const struct elector *e); /* when a TICK is wanted */

bool elector_gate(const struct elector *e, int account, uint64_t now);
enum elector_state elector_state(const struct elector *e, int account);
int64_t elector_epoch(const struct elector *e, int account);
const char *elector_holder(const struct elector *e, int account);  /* last known leader; "" */
const char *elector_address(const struct elector *e, int account); /* its address; "" */
/* Accounts and epochs that the renewal in flight covers. */
size_t elector_renewing(const struct elector *e, const int **ret_accounts, const int64_t **ret_epochs);

/* Accounts that the scan in flight covers, and the highest epoch that is known of each: what is in force
 * under that epoch, with nothing to be done about it, needs no answer. */
size_t elector_scanning(const struct elector *e, const int **ret_accounts, const int64_t **ret_epochs);

size_t elector_members(const struct elector *e);            /* that live, as last heard; 0: not heard yet */
bool elector_leaving(const struct elector *e, int account); /* LEAVE was said, HAND_OVER is awaited */

const char *elector_state_name(enum elector_state state);
void elector_dump(struct buf *out); /* the table of moves as a mermaid state diagram */

/* For tests: the moves that this elector has made, and those of the table that are not among `moved`. */
uint32_t elector_moved(const struct elector *e);
void elector_moves_missing(uint32_t moved, struct buf *out);

#endif
