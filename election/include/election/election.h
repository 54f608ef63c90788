/* The adapter of the elector: drives it with the store, the timer and the loop's clock. */
#ifndef ELECTION_ELECTION_H
#define ELECTION_ELECTION_H

#include "base/error.h"
#include "election/core/elector.h"
#include "loop/loop.h"
#include "store/store.h"

struct election;

struct election_config {
    struct elector_config core;
    /* <network>-<account>-<hostname>-<pid>-<uuid>: here the relay's identity; copied */
    const char *holder;
    /* this relay's control endpoint, which followers name when they refuse; copied */
    const char *address;
    void (*on_promote)(void *arg, int account, int64_t epoch);
    void (*on_demote)(void *arg, int account, const char *reason);
    void (*on_gate)(void *arg, int account, bool open, const char *reason);
    /* Stop admitting, settle, then call election_hand_over. The relay leads the account until
     * then. */
    void (*on_leave)(void *arg, int account, const char *reason);
    /* With each heartbeat: the highest block that any relay of these accounts knows. May be
     * NULL. */
    void (*on_best)(void *arg, uint64_t block);
    void *arg;
};

struct election *election_new(struct loop *l, struct store *s,
                              const struct election_config *config);
/* The store's row and lock key of an account; returns the index used in the callbacks. */
int election_add(struct election *e, int32_t store_account, int64_t lock_key, const char *label);
/* The owner forwards the store's events. */
void election_store_state(struct election *e, enum store_state state);
void election_control_lost(struct election *e);
void election_leader_change(struct election *e, int32_t store_account, const char *holder,
                            const char *address, int64_t epoch);
void election_stale(struct election *e, int account); /* a fenced write was refused */

/* The highest finalized block that this relay knows. Renewals record it, so that a leader after a
 * failover knows from which block on the chain may know more than the database. */
void election_saw(struct election *e, uint64_t block);
/* The best block of this relay's node, and its final one: heartbeats carry the highest to other
 * relays, whose nodes may be behind. A height that the node does not repeat is dropped: heard.h. */
void election_best(struct election *e, uint64_t block, uint64_t finalized);
/* The node is gone, and says nothing. */
void election_no_best(struct election *e);
/* The account's place on the ring: the first 8 bytes of SHA-256(genesis || id). */
void election_place(struct election *e, int account, uint64_t place);
size_t election_members(const struct election *e); /* live ones, this relay included; 0: unknown */
void election_rotate(struct election *e, int account);    /* its turn is over: hand it over */
void election_hand_over(struct election *e, int account); /* answers on_leave */
/* Stop bidding, stop being a member, and leave every account (on_leave). election_drain must
 * follow. */
void election_retire(struct election *e);

void election_doubt(struct election *e, int account); /* the outcome of a fenced write is unknown */

bool election_gate(struct election *e, int account); /* asked immediately before bytes leave */
/* The last known leader; "" if unknown. */
const char *election_leader(const struct election *e, int account, const char **ret_address);

/* Nobody leads the account, and this relay cannot. *ret_why: the last error of its requests, or who
 * is in the way; "": not known. *ret_in_way: a session has its lock. */
bool election_unled(const struct election *e, int account, bool *ret_in_way, const char **ret_why);

/* State, counters and times of one account. */
struct election_stats {
    enum elector_state state;
    bool leaving; /* on_leave was called, election_hand_over is awaited */
    uint64_t bids_total, acquired_total, lost_total, evicted_total, left_total;
    int64_t epoch;          /* 0 unless leader */
    uint64_t renewed_at_ms; /* loop clock: when the last successful renewal or claim was sent; 0 =
                               never */
    uint64_t acquire_ms;    /* from the last successful bid to the promotion */
    uint64_t renew_ms;      /* round trip of the last renewal */
};
/* The control session's round trip in ms, if it is so long that a tenure may end although the relay
 * is healthy; 0: it is not. *ret_lasts_ms: how long a tenure lasts without a renewal. */
uint64_t election_slow(const struct election *e, uint32_t *ret_lasts_ms);
void election_stats(const struct election *e, int account, struct election_stats *ret_stats);

/* Release everything, then call cb once (immediately if the store is down). */
void election_drain(struct election *e, void (*cb)(void *arg), void *arg);
void election_close(struct election *e, void (*cb)(void *arg),
                    void *arg); /* frees; requests in flight are awaited */

/* First 8 bytes of SHA-256, big-endian: positions on the ring. */
uint64_t election_hash(const void *data, size_t len);
/* First 8 bytes of sha256(genesis || account id), big-endian, as a signed integer. */
int64_t election_lock_key(const uint8_t genesis[32], const uint8_t *account_id, size_t len);

#endif
