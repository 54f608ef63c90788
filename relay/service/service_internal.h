/* Private to relay/: the service, which hosts the accounts and connects them with the parts that it
 * opens and closes (the store, the node, the election, ...). */
#ifndef RELAY_SERVICE_INTERNAL_H
#define RELAY_SERVICE_INTERNAL_H

#include "account/account.h"
#include "chain/node/node.h"
#include "election/election.h"
#include "relay/core/poll/ability.h"
#include "relay/service.h"
#include "relay/status.h"
#include "service/owners.h"
#include "service/room.h"
#include "store/lead.h"
#include "store/outbox.h"
#include "store/pending.h"

enum { ROOMS_MAX = 17 };

struct service {
    struct loop *loop;
    struct service_config config;
    enum service_phase phase;
    char *name, *holder, *control_address;
    bool standalone;
    struct room *rooms[ROOMS_MAX]; /* in the order of service.c */
    size_t room_count;
    size_t rooms_draining, rooms_open; /* that have not called back; that are not closed */
    struct store *store;               /* these three: NULL once their room is closed */
    struct node *node;
    struct election *election;          /* NULL: standalone */
    struct handover *handover;          /* NULL: standalone */
    struct standalone *standalone_room; /* NULL: with a database */
    struct service_poll *poll;
    struct service_pool *pool;
    struct service_obstacles *obstacles;
    struct listening *listening;      /* NULL: standalone */
    struct service_metrics *metrics;  /* NULL: none is configured */
    struct service_feeds_room *feeds; /* NULL: none is configured, or it is closed */
    struct service_sites_room *sites; /* NULL: no account has sites */
    struct account *accounts;
    size_t account_count;
    struct account *by_id;   /* uthash */
    uint64_t account_events; /* events that their managers have received */
    struct owners owners;
    struct tally_row *tally_unused;
    bool store_up, node_ready;
    char node_error[300];   /* why no endpoint is usable; "": one is */
    char store_error[300];  /* why there is no database; "": there is one, or nothing is known */
    struct ability ability; /* to act for the accounts that it leads */
    uint8_t genesis
        [32]; /* of the chain that the accounts are registered for: the node may be away since */
    const char **aliases; /* of the accounts, for their registration */
    bool other_chain;     /* the accounts are registered for another one */
    bool registered;      /* all accounts: they take part in the election */
    bool following;
    uint64_t follow_next; /* the next finalized height the node will report */
    uint64_t final_read;  /* the highest one that it has reported */
    uint64_t stale_since_ms;
    struct progress starting[START_PARTS];
    size_t ops; /* store requests in flight */
    size_t registering;
    void (*stop_cb)(void *arg);
    void *stop_arg;
};

/* The rooms, each in the file of its name. */
room_make service_control, service_pool, service_chain, service_database, service_standalone,
    service_election, service_listen, service_retention, service_poll, service_handover,
    service_obstacles, service_metrics, service_sample, service_feeds, service_http,
    service_webhooks, service_sites;

/* service_metrics.c: what its endpoint answers, for the control endpoint too */
void service_metrics_text(struct service *s, struct buf *out);
bool service_ready(const struct service *s, struct buf *ret_reasons);

/* service_feeds.c: this relay leads the account, or (epoch 0) not any more */
void service_feeds_lead(struct service *s, const struct account *a, int64_t epoch);
void service_feeds_metrics(const struct service *s, struct buf *out);

/* service_obstacles.c: this relay leads it from now on, so what a follower saw is over */
void service_obstacle_over(struct account *a);

/* service_http.c */
void service_guests_metrics(const struct service *s, struct buf *out);

/* Accounts that have sites (sites/sites.h): each wants `a->site`. */
void service_sites_lead(struct account *a, int64_t epoch); /* 0: not any more */
void service_sites_head(struct service *s, bool up); /* a new best block; up: the node is back */
void service_sites_block(struct account *a, const struct node_block *b);
void service_sites_seen(struct account *a, const struct node_block *b); /* at a follower too */
void service_sites_poll(struct account *a, const struct poll_effect *fx);
bool service_sites_knows(const struct account *a, const uint8_t hash[32]);
bool service_sites_must_verify(const struct account *a, const uint8_t hash[32], uint64_t nonce);
bool service_sites_need(const struct account *a); /* the bodies of blocks */
enum tx_doubt service_sites_doubts(const struct account *a, const struct node_block *b);
void service_sites_obstacle(const struct account *a, struct obstacle *ret);
void service_sites_metrics(const struct service *s, struct buf *out);

/* service_chain.c: what the node says */
void service_send_chain_event(
    struct account *a, enum manager_event_type type,
    const struct node_info *info); /* CHAIN_UP or RUNTIME, to its manager */
void service_follow(struct service *s, uint64_t number);

/* service_election.c: a submission was answered */
void service_submitted(struct service *s, const struct node_submit *submit);

/* service_obstacles.c: does it lead an account; does one wait for a block that the node lacks? */
bool service_leads(const struct service *s);
bool service_waits_for_block(const struct service *s);

/* service_handover.c: giving accounts up */
void service_leave(struct service *s, struct account *a, const char *reason);
void service_block(struct service *s, struct account *a, uint64_t number);

/* service_pool.c: the answer comes as MANAGER_EV_POOL; whole: with what the extrinsics say */
void account_ask_pool(struct account *a, bool whole);

/* service_listen.c; false: there is no listener (any more) */
bool service_listen_status(const struct service *s, struct listen_status *ret);

/* service_poll.c: when the table is asked; false: an answer to a query that was given up */
bool service_poll_event(struct service *s, const struct poll_event *ev);

/* status.c: who leads, as far as this relay knows; "" when no leader is known */
const char *service_leader_of(const struct service *s, const struct account *a,
                              const char **ret_address);

struct account *service_account_by_name(struct service *s,
                                        const char *name); /* alias, 0x id or address */
struct account *service_account_by_row(struct service *s, int32_t store_account);
void service_fail(struct service *s, const struct err *err); /* permanent: on_exit */
void service_op_done(struct service *s);
void service_register(struct service *s); /* once both the store and the node are up */

#endif
