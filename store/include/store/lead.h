/* Who leads: accounts of this relay, their locks, claims and renewals, and the other relays.
 * Asked by election/, on the store's control session. store.h says what holds for every request. */
#ifndef STORE_LEAD_H
#define STORE_LEAD_H

#include "store/store.h"

/* An account of this relay; it gets its row, or keeps the one that it has. */
struct store_enroll {
    struct store_req req;
    const char *alias, *scheme, *address;
    struct store_bytes account_id, genesis;
    int64_t lock_key;
    bool watch_only; /* the relay has no key: only presigned transactions may be enqueued */
    /* The longest era that the relay may sign with (4..4096 blocks), and whether it may sign
     * without one. */
    uint32_t era_longest;
    bool era_immortal;
    /* The aliases of the relay's accounts, all of one chain. A new account is refused where another
     * one is registered for another chain. Borrowed until the request is sent. */
    const char *const *beside;
    size_t beside_count;
    int32_t account; /* out */
};
void store_enroll_start(struct store *s, struct store_enroll *r, store_cb cb);

/* The account's session advisory lock, on the control session. Never stacked: a second try while
 * held answers got = true without asking again. */
struct store_lock {
    struct store_req req;
    int64_t lock_key;
    bool got; /* out */
};
void store_lock_start(struct store *s, struct store_lock *r, store_cb cb);
void store_unlock_start(struct store *s, struct store_lock *r, store_cb cb);

struct store_claim {
    struct store_req req;
    int32_t account;
    const char *holder, *address;
    bool have_lock;
    uint32_t expiry_1_ms, expiry_2_ms;
    /* out */
    bool granted;
    int64_t epoch;
    const char *current_holder, *current_address; /* "" when free */
    bool lock_held, mid_submission;
    int64_t expiry_1_left_ms, expiry_2_left_ms;
};
void store_claim_start(struct store *s, struct store_claim *r, store_cb cb);

/* Renewal of every account of this relay in one statement, after verifying that the control
 * session still holds their locks (by what it was given, and by pg_locks and its backend pid;
 * pg_lead_renew.c says how often). */
struct store_renew {
    struct store_req req;
    const char *holder;
    size_t count;
    const int32_t *accounts;
    const int64_t *epochs;
    const int64_t *lock_keys; /* NULL with use_lock off */
    uint32_t expiry_1_ms, expiry_2_ms;
    int64_t block; /* highest finalized block that this relay knows; -1: none */
    bool *renewed; /* out: caller's array; lock lost counts as not renewed */
};
void store_renew_start(struct store *s, struct store_renew *r, store_cb cb);

struct store_release {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    const char *holder;
    bool released; /* out */
};
void store_release_start(struct store *s, struct store_release *r, store_cb cb);

/* End the session that holds the account's lock if its claim has expired by the rules (hung
 * holder); the store looks and decides in one statement. Also tells who claims it, and for how
 * long. */
struct store_evict {
    struct store_req req;
    int64_t lock_key;
    /* out */
    bool terminated;
    const char *current_holder, *current_address; /* "" when free */
    /* the session that has the lock without this claim, in words; "": none */
    const char *lock_holder;
    int64_t epoch;
    int64_t expiry_1_left_ms;
};
void store_evict_start(struct store *s, struct store_evict *r, store_cb cb);

/* Lock and claim of many accounts, in one statement that writes nothing. An account is left out
 * while its claim is in force under the epoch that the caller knows, with the lock that belongs
 * to the claim. */
struct store_lock_view {
    size_t index; /* in the request's arrays */
    bool taken;   /* some session has the account's lock */
    bool lock_held;
    const char *holder, *address; /* "" when free */
    int64_t epoch;
    int64_t expiry_1_left_ms, expiry_2_left_ms;
};
struct store_scan {
    struct store_req req;
    size_t count;
    const int32_t *accounts;
    const int64_t *epochs; /* the newest that the caller knows; -1: none */
    /* out */
    size_t view_count;
    const struct store_lock_view *seen; /* in the order of the request */
};
void store_scan_start(struct store *s, struct store_scan *r, store_cb cb);

/* This relay lives, or leaves: who else does. One statement a heartbeat. */
struct store_member {
    struct store_req req;
    const char *holder, *address;
    int64_t serves;  /* digest of its accounts: only relays that serve the same are members to each
                        other */
    uint32_t ttl_ms; /* a member without a heartbeat for this long is dead */
    bool leave;
    int64_t best; /* the highest block that this relay heard of; -1: none */
    /* out: in byte order, with this relay among them unless it leaves */
    size_t count;
    const char *const *holders;
    int64_t best_known; /* the highest that one of them heard of; -1: none */
};
void store_member_start(struct store *s, struct store_member *r, store_cb cb);

/* What keeps accounts from going on, for operators (obstacle.h). An account that the caller does
 * not lead under this epoch is left out. */
struct store_obstacle {
    int32_t account;
    int64_t epoch;
    const char *code, *text; /* NULL: nothing does */
    int64_t since_ms;        /* ago */
};
struct store_obstacles {
    struct store_req req;
    size_t count;
    const struct store_obstacle *rows;
};
void store_obstacles_start(struct store *s, struct store_obstacles *r, store_cb cb);

/* What keeps this relay, rather than one of its accounts, from its work; code NULL: nothing. */
struct store_relay_obstacle {
    struct store_req req;
    const char *holder;
    const char *code, *text;
    int64_t since_ms; /* ago */
};
void store_relay_obstacle_start(struct store *s, struct store_relay_obstacle *r, store_cb cb);

/* X(request, struct) */
#define STORE_LEAD_REQUESTS(X)                                                                     \
    X(enroll, store_enroll)                                                                        \
    X(lock, store_lock)                                                                            \
    X(unlock, store_lock)                                                                          \
    X(claim, store_claim)                                                                          \
    X(renew, store_renew)                                                                          \
    X(release, store_release)                                                                      \
    X(evict, store_evict)                                                                          \
    X(scan, store_scan)                                                                            \
    X(member, store_member)                                                                        \
    X(obstacles, store_obstacles)                                                                  \
    X(relay_obstacle, store_relay_obstacle)

#endif
