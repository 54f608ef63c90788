/* Private to the elector: its data, the table of transitions, the heap of due times. */
#ifndef ELECTION_ELECTOR_INTERNAL_H
#define ELECTION_ELECTOR_INTERNAL_H

#include "base/backoff.h"
#include "base/ring.h"
#include "base/rng.h"
#include "base/sm.h"
#include "election/core/elector.h"

#define ELECTOR_NEVER   UINT64_MAX
#define ELECTOR_BY_SCAN UINT64_MAX /* elector__retire: a scan decides when to bid */

/* One account. At most one request (LOCK, CLAIM, EVICT, RELEASE) is in flight. The *_WAIT state
 * names it and lasts until its answer, even if the result is no longer wanted: then it is handed
 * back. */
struct elector_account {
    enum elector_state state;
    int64_t epoch;        /* LEADER: the tenure's; else 0 */
    int64_t orphan_claim; /* epoch of a claim that may be ours in the table although we do not lead;
                             0 = none */
    int64_t known_epoch;  /* highest known epoch: reports of older ones are ignored */
    int64_t scan_epoch;   /* known_epoch when the scan in flight was sent */
    int64_t renew_epoch;  /* tenure that the renewal in flight was sent for */
    uint64_t sent;        /* when the last successful renewal, or the claim, was sent */
    uint64_t asked;       /* when the request in flight was sent */
    uint64_t ask_at;      /* expired but not available: no request before this time */
    uint64_t control; /* number of the control session that the lock request in flight went to */
    uint64_t due;     /* next bid (never: a scan decides), or the end of the tenure */
    size_t heap_pos;
    bool locked;         /* the control session holds the account's lock */
    bool suspect;        /* the store was down: the gate stays shut until a renewal succeeds */
    bool gate_open;      /* state of the last GATE effect */
    bool hurry;          /* notified that the account is free while a request was in flight */
    bool scanned;        /* has been a follower since the scan in flight was sent */
    bool orphan;         /* in the last scan its lock was taken without any claim */
    bool unled, in_way;  /* nobody leads it, by what was seen last; a session has its lock */
    bool evicts;         /* at `due` it evicts the hung holder and does not bid */
    uint8_t evict_tries; /* lock attempts since the holder was evicted; 0 = not evicting */
    struct backoff backoff;
    char *holder, *address;
    char *former; /* the last holder before the account became free: dead, or it released it; "" */

    uint64_t place;
    size_t preferred;          /* member of the ring as of `preferred_at` */
    uint64_t preferred_at;     /* version of the ring; 0: never computed */
    uint64_t preferred_member; /* hash of the name of the other member that the ring prefers */
    uint32_t preferred_for;    /* number of heartbeats for which it has preferred that member */
    uint32_t patience;         /* heartbeats required for a hand-over; 0: the minimum */
    uint64_t away_until;       /* handed over: no bid before this time */
    bool leaving;
    bool bug; /* it made a move in this step that the table does not have */
};

struct elector {
    struct elector_config config;
    struct rng rng;
    struct elector_account *accounts;
    size_t count, cap;
    int *heap; /* all account indexes, smallest due first */

    bool up, draining, drained;
    uint64_t control; /* number of the control session */
    struct sm_trace trace;
    char bug[SM_BUG_MAX]; /* of the last step; "": none */
    size_t busy;          /* accounts that are not FOLLOWER */
    size_t leaders;
    size_t bids; /* accounts with a lock or claim request in flight */

    uint64_t renew_at, renew_sent;
    uint64_t oldest_claim; /* of the claims granted since the renewal was sent: when it was asked */
    bool renewing;
    struct backoff renew_backoff;
    int *renew_accounts;
    int64_t *renew_epochs;
    size_t renew_count;

    uint64_t scan_at, scan_sent;
    bool scanning;
    struct backoff scan_backoff;
    int *scan_accounts;
    int64_t *scan_epochs;
    size_t scan_count;

    struct ring *ring;
    uint64_t ring_version; /* rises when the members change */
    int self;              /* index in the ring; -1: not in it */
    uint64_t heartbeat_at;
    bool heartbeat_in_flight, retiring;

    struct elector_effect *effects;
    size_t effect_count, effect_cap;
};

uint64_t elector__tenure_end(const struct elector *e, const struct elector_account *a);
bool elector__gate_open(const struct elector *e, const struct elector_account *a, uint64_t now);
bool elector__bids(const struct elector *e); /* the store is up and no drain is under way */

/* ---- elector.c ---- */

struct elector_effect *
elector__emit(struct elector *e, const struct elector_account *a,
              enum elector_effect_type type); /* a NULL: not about an account */
void elector__learn(struct elector_account *a, const char *holder, const char *address,
                    int64_t epoch);

/* ---- elector_bid.c ---- */

uint64_t elector__bid_delay(struct elector *e);
/* Ask for the lock, or, where none is used, for the claim; later if too many bids are in flight. */
void elector__bid(struct elector *e, struct elector_account *a, uint64_t now);
void elector__claim(struct elector *e, struct elector_account *a, uint64_t now);
void elector__evict(struct elector *e, struct elector_account *a, uint64_t now);
void elector__bid_at(struct elector *e, struct elector_account *a, uint64_t due);
void elector__evict_at(struct elector *e, struct elector_account *a, uint64_t due);
/* Return to FOLLOWER from any state. The account bids after `delay`, or when a scan finds a reason
 * (ELECTOR_BY_SCAN). Lock and claim are released, the lock first, so that a relay that is notified
 * of the release finds it free. While the store is down both stay recorded as owed. */
void elector__retire(struct elector *e, struct elector_account *a, uint64_t now, uint64_t delay);
void elector__on_lock_reply(struct elector *e, uint64_t now, const struct elector_event *ev);
void elector__on_claim_reply(struct elector *e, uint64_t now, const struct elector_event *ev);
void elector__on_evict_reply(struct elector *e, uint64_t now, const struct elector_event *ev);
void elector__on_release_reply(struct elector *e, uint64_t now, const struct elector_event *ev);

/* ---- elector_tenure.c ---- */

void elector__report_gate(struct elector *e, struct elector_account *a, bool open,
                          const char *reason);
/* The claim was granted, and a.orphan_claim is its epoch. */
void elector__promote(struct elector *e, struct elector_account *a);
/* After a transition that no table has the account is not led: the database decides anew. */
void elector__give_up(struct elector *e, struct elector_account *a, uint64_t now);
/* The gate shuts before any effect is listed. `orphan_claim`: the claim in the table may still be
 * ours. */
void elector__demote(struct elector *e, struct elector_account *a, uint64_t now, bool orphan_claim,
                     const char *reason);
uint64_t elector__heartbeat(struct elector *e); /* with jitter */
void elector__renew(struct elector *e, uint64_t now);
void elector__on_renew_reply(struct elector *e, uint64_t now, const struct elector_event *ev);
void elector__on_stale(struct elector *e, uint64_t now, const struct elector_event *ev);
void elector__on_doubt(struct elector *e, uint64_t now, const struct elector_event *ev);

/* ---- elector_place.c ---- */

void elector__on_members(struct elector *e, uint64_t now, const struct elector_event *ev);
void elector__on_rotate(struct elector *e, uint64_t now, const struct elector_event *ev);
void elector__on_hand_over(struct elector *e, uint64_t now, const struct elector_event *ev);
void elector__on_retire(struct elector *e, uint64_t now, const struct elector_event *ev);
void elector__heartbeat_due(struct elector *e, uint64_t now);
/* Delay before a bid for an account that is free or whose holder hangs: as found by a scan, or as a
 * notification said. */
uint64_t elector__free_delay(struct elector *e, const struct elector_account *a);
uint64_t elector__heard_delay(struct elector *e, const struct elector_account *a);

/* ---- elector_scan.c ---- */

void elector__on_scan_reply(struct elector *e, uint64_t now, const struct elector_event *ev);
void elector__scan_due(struct elector *e, uint64_t now); /* scan now, or plan when */

/* ---- elector_table.c ---- */

/* The only way to change a state: checks the table of transitions. */
void elector__move(struct elector *e, struct elector_account *a, enum elector_state to);
void elector__recover(struct elector *e, uint64_t now); /* of transitions that it does not have */

void elector__heap_add(struct elector *e,
                       int account); /* its due time is set, and the heap has room */
void elector__set_due(struct elector *e, struct elector_account *a, uint64_t due);

#endif
