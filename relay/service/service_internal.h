/* Private to relay/: the service, which hosts the accounts and connects them with the parts that it opens and
 * closes (the store, the node, the election, ...). */
#ifndef RELAY_SERVICE_INTERNAL_H
#define RELAY_SERVICE_INTERNAL_H

#include "account/account.h"
#include "chain/node/node.h"
#include "election/election.h"
#include "listen/listen.h"
#include "loop/peer.h"
#include "relay/service.h"
#include "relay/status.h"
#include "store/lead.h"
#include "store/outbox.h"
#include "store/pending.h"

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
    struct loop_timer *settle;           /* accounts that are leaving are looked at */
    struct service_retention *retention; /* NULL: standalone */
    struct service_rounds *rounds;       /* NULL: standalone */
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

/* service_chain.c: what the node says */
struct manager_event service_chain_event(enum manager_event_type type, const struct node_info *info);
int service_chain_new(struct service *s, struct err *err);
void service_follow(struct service *s, uint64_t number);

/* service_handover.c: giving accounts up */
void service_handover_new(struct service *s);
void service_handover_free(struct service *s);
void service_leave(struct service *s, struct account *a, const char *reason);
void service_settled(struct service *s); /* service.c: nothing leaves any more */
void service_block(struct service *s, struct account *a);

/* service_retention.c: retention */
void service_retention_new(struct service *s);
void service_retention_stop(struct service *s);
void service_retention_free(struct service *s);

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
