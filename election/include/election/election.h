/* The door of the elector: drives it with the store, the timer and the loop's clock. */
#ifndef ELECTION_ELECTION_H
#define ELECTION_ELECTION_H

#include "base/error.h"
#include "election/core/elector.h"
#include "loop/loop.h"
#include "store/store.h"

struct election;

struct election_config {
    struct elector_config core;
    const char
        *holder; /* <network>-<account>-<hostname>-<pid>-<uuid> (L01): here the relay's identity; copied */
    const char *address; /* where this relay can be reached, for followers' refusals; copied */
    void (*on_promote)(void *arg, int account, int64_t epoch);
    void (*on_demote)(void *arg, int account, const char *reason);
    void (*on_gate)(void *arg, int account, bool open);
    /* Stop admitting, settle, then election_hand_over. The account is led until then. */
    void (*on_leave)(void *arg, int account, const char *reason);
    /* With each heartbeat: the highest block that a relay of these accounts heard of. May be NULL. */
    void (*on_best)(void *arg, uint64_t block);
    void *arg;
};

struct election *election_new(struct loop *l, struct store *s, const struct election_config *config);
/* The store's row and lock key of an account; returns the index used in the callbacks. */
int election_add(struct election *e, int32_t store_account, int64_t lock_key, const char *label);
/* The owner forwards what the store says. */
void election_store_state(struct election *e, enum store_state state);
void election_control_lost(struct election *e);
void election_leader_change(struct election *e, int32_t store_account, const char *holder,
                            const char *address, int64_t epoch);
void election_stale(struct election *e, int account); /* a fenced write was refused */

/* The highest finalized block that this relay knows: renewals note it, so that a leader after a failover
 * knows from where on the chain may know more than the database. */
void election_saw(struct election *e, uint64_t block);
/* The highest block, final or not: heartbeats tell the other relays, whose nodes may be behind it. */
void election_best(struct election *e, uint64_t block);
/* The account's place on the ring: the first 8 bytes of SHA-256(genesis || id). */
void election_place(struct election *e, int account, uint64_t place);
size_t election_members(const struct election *e);        /* that live, this relay among them; 0: not known */
void election_rotate(struct election *e, int account);    /* its turn is over */
void election_hand_over(struct election *e, int account); /* answers on_leave */
/* Bid no more, be no member any more, and leave every account (on_leave): election_drain is to follow. */
void election_retire(struct election *e);

void election_doubt(struct election *e, int account); /* the outcome of a fenced write is unknown */

bool election_gate(struct election *e, int account); /* asked immediately before bytes leave (L06) */
/* Who leads, as last seen: "" when nobody is known. */
const char *election_leader(const struct election *e, int account, const char **ret_address);

/* State, counters and times of one account. */
struct election_stats {
    enum elector_state state;
    bool leaving; /* on_leave was called, election_hand_over is awaited */
    uint64_t bids_total, acquired_total, lost_total, evicted_total, left_total;
    int64_t epoch;          /* 0 unless leader */
    uint64_t renewed_at_ms; /* loop clock: when the last successful renewal or claim was sent; 0 = never */
    uint64_t acquire_ms;    /* from the last successful bid to the promotion */
    uint64_t renew_ms;      /* round trip of the last renewal */
};
void election_stats(const struct election *e, int account, struct election_stats *ret_stats);

/* Release everything, then cb once (also when the store is down: then at once). */
void election_drain(struct election *e, void (*cb)(void *arg), void *arg);
void election_close(struct election *e, void (*cb)(void *arg),
                    void *arg); /* frees; requests in flight are awaited */

/* First 8 bytes of SHA-256, big-endian: positions on the ring. */
uint64_t election_hash(const void *data, size_t len);
/* First 8 bytes of sha256(genesis || account id), big-endian, as a signed integer (S07). */
int64_t election_lock_key(const uint8_t genesis[32], const uint8_t *account_id, size_t len);

#endif
