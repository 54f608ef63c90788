/* Private to relay/: one signing account of this relay, and the adapters that carry its manager's
 * effects out.
 *
 *   account.c         promotion and demotion, events in, effects out, the account's timer
 *   account_read.c    pending rows, the outbox with its doorbell, cancellations
 *   account_held.c    rows of the outbox that are passed over
 *   account_store.c   the leader's writes
 *   account_presigned.c  what was signed elsewhere
 *   account_adopt.c   what a database that lost commits does not know
 *   account_submit.c  what goes to the node
 *   tally.c           what is counted for the metrics
 *   sign.c            signatures */
#ifndef RELAY_ACCOUNT_H
#define RELAY_ACCOUNT_H

#include "base/buf.h"
#include "base/table.h"
#include "chain/node/node.h"
#include "loop/loop.h"
#include "relay/core/poll/poll.h"
#include "relay/core/poll/turn.h"
#include "relay/core/tx/manager.h"
#include "relay/core/tx/obstacle.h"
#include "relay/progress.h"
#include "relay/service.h"
#include "relay/status.h"
#include "store/outbox.h"
#include "store/sample.h"

struct service;
struct site_host;

/* Which row of the outbox an application holds, and which one that was signed elsewhere waits for
 * lower nonces, by what was read last. */
struct account_held {
    int64_t id; /* 0: none */
    char by[160];
    uint64_t since_ms, read_ms;
    uint64_t log_ms;  /* when to log it again */
    int64_t waits_id; /* 0: none */
    char waits[200];
};

/* One signing account of this relay. */
struct account {
    struct service *service;
    int index; /* in service->accounts, and the elector's index */
    char *alias;
    struct keypair *key; /* NULL: sends only presigned transactions */
    enum key_scheme scheme;
    uint8_t id[ACCOUNT_ID_MAX];
    size_t id_len;
    char address[SS58_TEXT_MAX + 8];
    int64_t lock_key;
    bool has_prefix; /* as in struct service_account */
    uint16_t prefix;
    bool has_lock_key;
    int32_t store_account; /* 0 until registered */
    bool watched;
    size_t node_index; /* then */
    enum account_role role;
    int64_t epoch;
    /* goes up at each promotion and demotion: late answers are recognised by it */
    uint64_t generation;
    struct site_host *site; /* it has several sites, and its manager rests; NULL: it has none */
    struct manager *manager;
    struct pool_ask *pool_ask; /* of the question that is out */
    /* the next chunk of a load, asked for before the manager wants it; NULL: none */
    struct op *ahead;
    struct account_held held;
    /* Since the process began: requests that were refused because another relay leads, and
     * submissions that the gate stopped. */
    uint64_t refused_total, gated_total;
    struct account_counts counts;
    struct metric_histogram stages[RELAY_STAGES]; /* since the process began */
    struct tally_row *tally_rows;                 /* uthash by nonce: tally.c */
    bool balance_known;
    u128 balance;
    bool sampled; /* what follows was read: service_sample.c */
    struct store_sample sample;
    size_t unsettled; /* store requests in flight of which new bytes may come */
    bool leaving;     /* nothing is admitted; handed over when it has settled */
    uint64_t leave_until;
    char read_error[160]; /* of a query that the database refuses each time; "": none does */
    struct obstacle_track obstacle; /* what keeps it from going on */
    struct progress progress;       /* from its promotion to its first send */
    struct turn turn;               /* finalized blocks since it leads */
    struct loop_timer *timer;       /* the manager's next deadline */
    struct submit *submits;         /* uthash by extrinsic hash */
    UT_hash_handle hh;              /* service->by_id */
};

/* account.c */
void account_init(struct account *a, struct service *s, int index,
                  const struct service_account *config);
void account_done(struct account *a);
void account_promote(struct account *a, int64_t epoch);
void account_demote(struct account *a, const char *reason);
void account_event(struct account *a,
                   const struct manager_event *ev); /* step the manager, carry the effects out */
/* Step the scheduler of polls, carry the effects out; false: an answer to a query that was given
 * up. */
bool account_poll(struct account *a, struct poll_event ev);
bool account_gate(const struct account *a);
bool account_is_managed(const struct account *a); /* led by its manager */
void account_lost(struct account *a,
                  int code); /* a fenced write failed: tell the election if it means that */

/* account_read.c: the chunk that was asked for ahead is no longer wanted */
void account_ahead_drop(struct account *a);

/* account_held.c: what a read of the outbox has found */
void account_held_read(struct account *a, const struct store_outbox *r);
/* account_held.c: it lasts */
void account_held_obstacle(const struct account *a, uint64_t now, struct obstacle *ret);

/* account_store.c, account_read.c: effects that are store requests */
void account_store_effect(struct account *a, const struct manager_effect *fx);
/* account_read.c: polls of this account, of which the scheduler hears again */
void account_fetch(struct account *a, const struct poll_effect *fx);
void account_poll_requests(struct account *a, const struct poll_effect *fx);
void account_arm(struct account *a, const struct poll_effect *fx);
void account_disarm(struct account *a);

#ifdef TXRELAY_PLANT
void account_give_back(struct account *a,
                       uint64_t nonce); /* a planted fault: the outbox has it again */
#endif

/* account_submit.c: bytes on their way to the node. They go through the gate, of the leadership
 * that `generation` names. Embedded by its owner. */
struct account_send {
    struct node_submit node;
    struct account *account;
    uint64_t generation;
    void (*sent)(struct account_send *s); /* they go to the socket now */
};
void account_send(struct account_send *t, const uint8_t *bytes, size_t len,
                  const struct node_last *last, void (*on_reply)(struct node_submit *s),
                  void (*on_status)(struct node_submit *s, enum tx_status status,
                                    const uint8_t *block_hash),
                  void (*on_lost)(struct node_submit *s));

/* account_submit.c: the node's error and its data as one text; "": the call succeeded. */
enum {
    ACCOUNT_SAID =
        sizeof(((struct rpc_call *)0)->err.text) + sizeof(((struct rpc_call *)0)->rpc_data) + 4
};
void account_said(const struct rpc_call *call, char ret_text[ACCOUNT_SAID]);

/* account_submit.c: effects that go to the node */
void account_submit(struct account *a, const struct manager_effect *fx);
void account_unwatch(struct account *a, const uint8_t hash[32]);
void account_unwatch_all(struct account *a);
size_t account_unanswered(const struct account *a); /* submissions on the wire */
void account_ask(struct account *a, const struct manager_effect *fx);

/* sign.c: check the signature of an extrinsic that is not on record here. Unknown: it was signed
 * over something that this relay does not know (a metadata hash). */
enum tx_signature account_verify(const struct tx_included *x, const struct metadata *md,
                                 const struct extrinsic_params *facts);

/* sign.c: 0 if the chain takes what this relay signs for the account. An account without a key: if
 * it takes what others sign for it. */
int sign_supported(const struct account *a, const struct metadata *md, struct err *err);
/* sign.c: one signed extrinsic for a row. The era is anchored on the finalized head. */
int sign_row(struct account *a, const struct manager_sign_row *row, const uint8_t *call,
             size_t call_len, struct tx_attempt *ret,
             struct err *err); /* ret->bytes is the caller's to free */
int sign_filler_call(struct account *a, struct buf *ret_call,
                     struct err *err); /* System.remark of nothing */

#endif
