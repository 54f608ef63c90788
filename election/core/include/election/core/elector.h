/* Leadership of accounts: the pure core. One elector serves all accounts of one relay.
 * elector_step(e, now, event) changes plain data and lists effects. docs/design.md, section 4,
 * explains the rules; elector_dump() prints this picture with the reason of each transition:
 *
 *              bid              got             granted
 *   FOLLOWER --------> LOCK_WAIT -----> CLAIM_WAIT -------> LEADER
 *    ^ ^ ^ ^ |         |   ^              |   |               | |
 *    | | | | |  taken  |   | ended        |   |               | |
 *    | | | +-|---------+   |              |   |               | |
 *    | | |   +------> EVICT_WAIT          |   |               | |
 *    | | | expired        |               |   |               | |
 *    | | +--- healthy ----+               |   |               | |
 *    | +--------- denied, failed ---------+   | too late,     | | renewal refused or
 *    |                                        v not wanted    v | late, drain
 *    +------------------------------------ RELEASE_WAIT <-------+ |
 *    +---- control session lost, write refused as stale ----------+
 *
 * - Followers scan before they bid. One SCAN is in flight for all of them, every bid_min..bid_max
 *   ms. It reports which locks are free, which claims have expired, and who leads. It writes
 *   nothing and decides nothing: the statement that acts on it decides again. An account bids
 *   without a scan only if a notification said that it is free, or its last request failed.
 * - A bid is the session lock first, then the claim that raises the epoch. Without use_lock it is
 *   only the claim.
 * - A relay never requests a lock that it holds (session locks stack), and releases the lock if the
 *   claim is denied. If the lock is taken and the claim behind it has expired, EVICT asks the
 *   database to end the session that holds it. One statement checks and acts, so a healthy holder
 *   is never ended. The first in rank evicts immediately, the others if that did not help.
 * - Placement (elector_place.c): one HEARTBEAT per interval reports the live relays, which form a
 *   hash ring. The member closest to a free account bids immediately, the others after a delay by
 *   rank. A claim is sticky. With placement by the ring, or rotation, LEAVE asks the owner of an
 *   account that belongs to another member to stop admitting, settle, and answer with HAND_OVER.
 *   Until then it leads, renews and sends.
 * - Renewal: one statement for all accounts, heartbeat_ms +-20 % after the oldest of their claims
 *   and renewals was sent, one in flight. So a round trip of the control session may take a third
 *   of expiry_1 - margin, whatever comes in which order, and a heartbeat half of it.
 * - The gate of an account is open if and only if it is LEADER, the store is up, and now < sent +
 *   expiry_1 - margin, where sent is when the last successful renewal (or the claim) was *sent*
 *   (monotonic). After an outage of the store it opens only when a renewal has succeeded.
 * - Any doubt shuts the gate first: control session lost, renewal refused or late, a write refused
 *   as stale. The tenure ends when its time is over; until then a failed renewal is retried.
 * - The server may still execute a write whose outcome is unknown. In DOUBT the leader claims again
 *   (LEADER -> CLAIM_WAIT; its own name is always granted). Under the new epoch it reads the table
 *   either after that write or without it.
 * - The owner answers each LOCK, CLAIM, EVICT, RELEASE, RENEW and SCAN exactly once, with failed =
 *   true if the outcome is unknown. The *_WAIT states wait for that answer in all cases. A result
 *   that comes too late (a claim granted after the relay gave up, a lock of a lost session) is
 *   handed back or ignored; the epoch identifies a renewal of an earlier tenure. UNLOCK has no
 *   answer. */
#ifndef ELECTION_ELECTOR_H
#define ELECTION_ELECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ring.h"

struct elector;

struct elector_config {
    bool use_lock;
    uint32_t heartbeat_ms;           /* default 1000 */
    uint32_t expiry_1_ms;            /* default 5000 */
    uint32_t expiry_2_ms;            /* default 20000; == expiry_1: single-expiry mode */
    uint32_t margin_ms;              /* default 1000: the gate shuts this long before expiry_1 */
    uint32_t bid_min_ms, bid_max_ms; /* followers' scan interval with jitter; default 150, 450 */
    bool ring; /* accounts move to the member that the ring prefers; else the leader stays (sticky)
                */
    bool rotate;         /* each tenure belongs to the next member in the ring (ROTATE ends it) */
    uint32_t leaves_max; /* most LEAVE effects per heartbeat; default 8 */
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

/* What belongs to which is the union of struct elector_event. */
enum elector_event_type {
    ELECTOR_EV_STORE_UP,
    ELECTOR_EV_STORE_DOWN,
    ELECTOR_EV_CONTROL_LOST,
    ELECTOR_EV_LOCK_REPLY,
    ELECTOR_EV_CLAIM_REPLY,
    ELECTOR_EV_EVICT_REPLY,
    ELECTOR_EV_RENEW_REPLY,
    ELECTOR_EV_SCAN_REPLY, /* accounts of the scan whose state is not outdated */
    ELECTOR_EV_RELEASE_REPLY,
    ELECTOR_EV_MEMBERS,       /* answer to HEARTBEAT: live members */
    ELECTOR_EV_ROTATE,        /* account: its turn is over; the owner counts the blocks */
    ELECTOR_EV_HAND_OVER,     /* account: it has settled, or the time for that is over */
    ELECTOR_EV_RETIRE,        /* leave every account, stop bidding; DRAIN follows */
    ELECTOR_EV_LEADER_CHANGE, /* a notification; bids early if it says free */
    ELECTOR_EV_STALE,         /* account: a fenced write was refused: stop immediately */
    ELECTOR_EV_DOUBT, /* account: the outcome of a fenced write is unknown: continue under a new
                         epoch */
    ELECTOR_EV_DRAIN, /* release every account, stop bidding */
    ELECTOR_EV_TICK,
};
/* What a scan reports about an account. */
struct elector_view {
    bool taken;                   /* some session has its lock */
    bool mine;                    /* the claim in the table is this relay's */
    bool lock_held;               /* the claim counts only together with the lock */
    const char *holder, *address; /* "": no claim */
    int64_t epoch;
    int64_t expiry_1_left_ms, expiry_2_left_ms;
};
struct elector_event {
    enum elector_event_type type;
    int account; /* index given by elector_add; of an event about one account */
    bool failed; /* of a reply: the request failed, and the union says nothing */
    union {
        struct {
            bool got;
        } lock;
        struct {
            bool granted;
            const char *holder, *address; /* who leads */
            int64_t epoch;
        } claim;
        struct {
            bool terminated;
            const char *holder, *address; /* NULL: not known */
            int64_t epoch;
        } evict;
        struct {
            size_t count;
            const int *accounts;
            const bool *renewed;
        } renew;
        struct {
            size_t count;
            const int *accounts;
            const struct elector_view *seen;
        } scan;
        struct {
            size_t count;
            const char *const *names;
            int self; /* our index; -1: none */
        } members;
        struct {
            const char *holder, *address;
            int64_t epoch;
        } change;            /* LEADER_CHANGE */
        int64_t stale_epoch; /* STALE; 0: the current one */
    };
};

/* What belongs to which is the union of struct elector_effect. */
enum elector_effect_type {
    ELECTOR_FX_LOCK,
    ELECTOR_FX_UNLOCK,
    ELECTOR_FX_CLAIM,
    ELECTOR_FX_EVICT,
    ELECTOR_FX_RELEASE,
    ELECTOR_FX_RENEW, /* for every LEADER account: elector_renewing() lists them */
    ELECTOR_FX_SCAN,  /* for followers: elector_scanning() lists them */
    ELECTOR_FX_HEARTBEAT,
    ELECTOR_FX_LEAVE, /* stop admitting, settle, then HAND_OVER */
    ELECTOR_FX_PROMOTE,
    ELECTOR_FX_DEMOTE,  /* all leader work stops now */
    ELECTOR_FX_GATE,    /* an edge, for logs and to resume sending */
    ELECTOR_FX_DRAINED, /* every account was released, or the store is down; once */
};
struct elector_effect {
    enum elector_effect_type type;
    int account; /* -1: of none */
    union {
        bool have_lock;     /* CLAIM */
        int64_t epoch;      /* RELEASE, PROMOTE */
        bool leaving;       /* HEARTBEAT: this relay stops being a member; there is no answer */
        const char *reason; /* LEAVE; static text */
        struct {
            int64_t epoch;      /* that ended */
            const char *reason; /* static text */
        } demoted;
        struct {
            bool open;
            const char *reason; /* static text */
        } gate;
    };
};

struct err;
struct buf;

struct elector *elector_new(const struct elector_config *config); /* zeros = defaults */
struct elector *elector_free(struct elector *e);
/* 0, or ERR_CONFIG with the reason: expiry_2 < expiry_1, margin or heartbeat that cannot fit... */
int elector_config_check(const struct elector_config *config, struct err *err);
struct elector_config
elector_config_defaults(const struct elector_config *config); /* zeros filled */
int elector_add(struct elector *e);                           /* index of a new account, FOLLOWER */
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
size_t elector_renewing(const struct elector *e, const int **ret_accounts,
                        const int64_t **ret_epochs);

/* Accounts of the scan in flight, with the highest known epoch of each. A claim in force under that
 * epoch needs no answer. */
size_t elector_scanning(const struct elector *e, const int **ret_accounts,
                        const int64_t **ret_epochs);

/* Nobody leads it, by what this relay has seen last, and this relay has not got it either.
 * *ret_in_way: a session has its lock. */
bool elector_unled(const struct elector *e, int account, bool *ret_in_way);

size_t elector_members(const struct elector *e); /* live members, as last reported; 0: unknown */
bool elector_leaving(const struct elector *e, int account); /* after LEAVE, before HAND_OVER */

const char *elector_state_name(enum elector_state state);
void elector_dump(struct buf *out); /* the table of transitions as a mermaid state diagram */

/* The last step made a transition that the table does not have: which one. NULL, as ever: none. The
 * account concerned is not led any more and bids again. */
const char *elector_bug(const struct elector *e);

/* For tests, which do not forgive: an INVARIANT that there never was one. */
void elector_check(const struct elector *e);
/* For tests: the transitions that this elector has made, and those of the table missing from
 * `moved`. */
uint32_t elector_moved(const struct elector *e);
void elector_moves_missing(uint32_t moved, struct buf *out);

#endif
