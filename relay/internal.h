/* Private to relay/: the service and its accounts. */
#ifndef RELAY_INTERNAL_H
#define RELAY_INTERNAL_H

#include "base/buf.h"
#include "base/table.h"
#include "chain/node/node.h"
#include "election/election.h"
#include "listen/listen.h"
#include "loop/peer.h"
#include "relay/core/poll/rounds.h"
#include "relay/core/poll/wake.h"
#include "relay/core/tx/manager.h"
#include "relay/service.h"
#include "relay/status.h"
#include "store/lead.h"
#include "store/outbox.h"
#include "store/pending.h"

/* One signing account of this relay. */
struct account {
    struct service *service;
    int index; /* in service->accounts, and the elector's index */
    char *alias;
    struct keypair *key; /* NULL: what is signed elsewhere is sent, nothing else */
    enum key_scheme scheme;
    uint8_t id[ACCOUNT_ID_MAX];
    size_t id_len;
    char address[SS58_TEXT_MAX + 8];
    int64_t lock_key;
    bool has_lock_key;
    int32_t store_account; /* 0 until registered */
    bool watched;
    enum account_role role;
    int64_t epoch;
    uint64_t generation; /* goes up at each promotion and demotion: late answers are recognised by it */
    struct manager *manager;
    struct wake wake;
    struct pool_ask *pool_ask; /* of the question that is out */
    struct calm calm;          /* may its slow questions go unasked? */
    bool polls;                /* its poll waits for the next question of service_polls.c */
    uint32_t outbox_limit;
    struct op *ahead; /* the next chunk of a load, asked for before the manager wants it; NULL: none */
    size_t unsettled; /* store requests in flight of which new bytes may come */
    bool leaving;     /* nothing is admitted; handed over when it has settled */
    uint64_t leave_until;
    uint64_t blocks;          /* finalized ones of this turn */
    struct loop_timer *timer; /* the manager's and the wake-up's next deadline */
    struct submit *submits;   /* uthash by extrinsic hash */
    UT_hash_handle hh;        /* service->by_id */
};

struct service {
    struct loop *loop;
    struct service_config config;
    enum service_phase phase;
    char *name, *holder, *control_address;
    bool standalone;
    struct store *store;
    struct listen *listen;
    struct node *node;
    struct election *election;
    struct loop_server *control;
    struct loop_stream *input;
    struct loop_timer *settle;     /* accounts that are leaving are looked at */
    struct service_keep *keep;     /* NULL: standalone */
    struct service_rounds *rounds; /* NULL: standalone */
    struct service_pool *pool;
    struct service_polls *polls; /* NULL: doorbells, standalone, or one account alone */
    struct loop_timer *health;   /* repeats the loud line while the database is away */
    struct account *accounts;
    size_t account_count;
    struct account *by_id; /* uthash */
    bool store_up, was_up, node_ready;
    bool released; /* draining: the election was told to give everything up */
    bool following;
    uint64_t follow_next; /* the next finalized height the node will report */
    uint64_t stale_since_ms;
    int down_code; /* the reason that was told last, while it is down */
    size_t ops;    /* store requests in flight */
    size_t registering;
    unsigned closing; /* parts still closing */
    void (*stop_cb)(void *arg);
    void *stop_arg;
    struct list sendings; /* control.c: requests whose peer may go first */
};

/* account.c */
void account_init(struct account *a, struct service *s, int index, const struct service_account *config);
void account_done(struct account *a);
void account_promote(struct account *a, int64_t epoch);
void account_demote(struct account *a, const char *reason);
void account_event(struct account *a,
                   const struct manager_event *ev); /* step the manager, carry the effects out */
void account_wake(struct account *a, enum wake_event ev);
void account_rearm(struct account *a); /* its timer, for what comes first */
bool account_gate(const struct account *a);
void account_lost(struct account *a,
                  int code); /* a fenced write failed: tell the election if it means that */

/* account_read.c: nobody wants the chunk that was asked for ahead any more */
void account_ahead_drop(struct account *a);

/* account_adopt.c: an extrinsic of this account, as the manager hears of it; bytes stay borrowed */
void included_of(struct manager_included *ret, const struct node_included *x);

/* account_store.c, account_read.c: effects that are store requests */
void account_store_effect(struct account *a, const struct manager_effect *fx);
void account_fetch(struct account *a);
void account_look(struct account *a);
void account_arm(struct account *a);
void account_disarm(struct account *a);

/* account_submit.c: effects that go to the node */
void account_submit(struct account *a, const struct manager_effect *fx);
void account_unwatch(struct account *a, const uint8_t hash[32]);
void account_unwatch_all(struct account *a);
size_t account_unanswered(const struct account *a); /* submissions on the wire */
void account_ask(struct account *a, const struct manager_effect *fx);

/* sign.c: one signed extrinsic for a row. The era is anchored on the finalized head. */
struct signed_row {
    struct buf bytes;
    uint8_t hash[32];
    int64_t era_birth, era_death; /* -1: immortal */
    uint32_t spec_version, transaction_version;
};
int sign_row(struct account *a, const struct manager_row_effect *row, const uint8_t *call, size_t call_len,
             struct signed_row *ret, struct err *err);
int sign_filler_call(struct account *a, struct buf *ret_call, struct err *err); /* System.remark of nothing */

/* service_chain.c: what the node says */
struct manager_event service_chain_event(enum manager_event_type type, const struct node_info *info);
int service_chain_new(struct service *s, struct err *err);
void service_follow(struct service *s, uint64_t number);

/* service_place.c: giving accounts up */
void service_place_new(struct service *s);
void service_place_free(struct service *s);
void service_leave(struct service *s, struct account *a, const char *reason);
void service_settled(struct service *s); /* service.c: nothing leaves any more */
void service_block(struct service *s, struct account *a);

/* service_keep.c: retention */
void service_keep_new(struct service *s);
void service_keep_stop(struct service *s);
void service_keep_free(struct service *s);

/* service_rounds.c: one question for all accounts that are led */
void service_rounds_new(struct service *s);
void service_rounds_stop(struct service *s);
void service_rounds_free(struct service *s);

/* service_pool.c: the answer comes as MANAGER_EV_POOL; whole: with what the extrinsics say */
void account_ask_pool(struct account *a, bool whole);
void service_pool_new(struct service *s);
void service_pool_free(struct service *s);

/* service_polls.c: polls of an outbox without doorbells. false: the account asks by itself */
bool service_poll(struct service *s, struct account *a);
void service_polls_new(struct service *s);
void service_polls_stop(struct service *s);
void service_polls_free(struct service *s);

/* status.c: who leads, as far as this relay knows; "" when nobody is known */
const char *service_leader_of(const struct service *s, const struct account *a, const char **ret_address);

/* control.c */
int control_open(struct service *s, struct err *err);
/* standalone.c */
void standalone_new(struct service *s);
void standalone_event(void *arg, const char *kind, int32_t account, int64_t nonce, int64_t id,
                      const char *state, const uint8_t hash[32], const char *outcome, const char *error);
void standalone_promote(struct service *s);

struct account *service_account_by_name(struct service *s, const char *name); /* alias, 0x id or address */
struct account *service_account_by_row(struct service *s, int32_t store_account);
void service_free(struct service *s);
void service_fail(struct service *s, const struct err *err); /* permanent: on_exit */
void service_op_done(struct service *s);
void service_register(struct service *s); /* once both the store and the node are up */

#endif
