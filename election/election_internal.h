/* Private to election/election*.c: the adapter's data.
 *
 *   election.c      events, the loop's timer, the end
 *   election_ops.c  effects that are store requests, and their answers */
#ifndef ELECTION_ELECTION_INTERNAL_H
#define ELECTION_ELECTION_INTERNAL_H

#include "base/heard.h"
#include "election/election.h"
#include "store/lead.h"

enum request_kind { REQUEST_LOCK, REQUEST_CLAIM, REQUEST_EVICT, REQUEST_RELEASE, REQUEST_COUNT };

struct candidate {
    struct election *e;
    int index;
    int32_t store_account;
    int64_t lock_key;
    char *label;
    uint64_t bid_at; /* when the present bid began */
    struct {
        int code;          /* of the last answer; 0: none failed */
        uint64_t again_ms; /* when to log the same again */
        char text[160];    /* of the error */
    } said[REQUEST_COUNT];
    char in_way[160];      /* the session that has its lock; "": not known */
    uint64_t lock_told_ms; /* when to log again that another session has the lock */
    struct election_stats stats;
};

struct queued {
    struct elector_event ev;
    char *holder, *address;
    struct queued *next;
};

struct election {
    struct loop *loop;
    struct store *store;
    struct elector *core;
    struct election_config config;
    char *holder, *address;
    struct candidate **candidates; /* each its own object: requests point to it */
    size_t count;
    struct loop_timer *timer;
    size_t in_flight;

    uint64_t last_renew_ms;
    uint64_t beat_sent, beat_ms; /* the heartbeat in flight (0: none); how long the last one took */
    int64_t block;               /* sent with every renewal; -1: none */
    struct heard heard;          /* its height is sent with every heartbeat */
    uint64_t best;               /* the node's now; 0: there is none */
    int64_t serves;              /* digest of the accounts, independent of their order */

    bool running; /* an event is being handled */
    struct queued *queue, **queue_end;

    bool closing;
    struct loop_task drained_task, closed_task;
    void (*drain_cb)(void *arg);
    void *drain_arg;
    void (*close_cb)(void *arg);
    void *close_arg;
};

uint64_t election__now(const struct election *e);
void election__feed(struct election *e, const struct elector_event *ev);
/* one request fewer in flight; the last statement of an answer */
void election__answered(struct election *e);

/* Starts the request of the effect. */
void election__request(struct election *e, const struct elector_effect *fx);
/* For all accounts at once: renewals of those that are led, a scan of those that are not, the
 * heartbeat of this relay (leaving: its last). */
void election__start_renew(struct election *e);
void election__start_scan(struct election *e);
void election__start_heartbeat(struct election *e, bool leaving);

#endif
