/* Private to rpc*.c: the connection, the calls in flight, the subscriptions. */
#ifndef CHAIN_NODE_RPC_INTERNAL_H
#define CHAIN_NODE_RPC_INTERNAL_H

#include "base/backoff.h"
#include "base/buf.h"
#include "chain/node/rpc.h"
#include "net/ws_client.h"
#include "pace.h"
#include "rpc_follow.h"

/* A hash table of intrusive chains that grows with its load. */
struct rpc_table {
    struct list *buckets;
    size_t bucket_count; /* a power of two */
    size_t count;
};

/* A notification that came before the answer that names its subscription. */
struct rpc_early {
    struct list node;
    char id[72];
    uint64_t stamp; /* it can belong only to a subscription whose call id is lower */
    size_t len;
    char text[]; /* of the item; not terminated */
};

/* The questions and subscriptions that the newer JSON-RPC serves, too (rpc_ways.c). */
enum rpc_way_kind {
    WAY_BEST,
    WAY_HASH,
    WAY_FINAL,
    WAY_HEADER,
    WAY_BLOCK,
    WAY_STORAGE,
    WAY_CALL,
    WAY_METADATA,
    WAY_HEADS,
    WAY_FINAL_HEADS,
    WAY_VERSIONS,
    WAY_COUNT
};
/* By which methods: in the order in which they are tried. */
enum rpc_via {
    VIA_OLDER,
    VIA_ARCHIVE, /* archive_v1_* */
    VIA_FOLLOW,  /* chainHead_v1_* */
    VIA_NONE,    /* all are refused */
};
struct rpc_way_choice {
    enum rpc_via via;
    bool proven; /* it has answered */
};

enum {
    RPC_KNEE_MS = 500, /* of the back-off before a connection */
    RPC_CLOSED_METHODS = 15,
};

/* Refusals of a method without a result in between, by errors of which nothing is known. */
struct rpc_closed {
    unsigned count;
    uint64_t since; /* the first of them */
    bool told;
};

enum rpc_phase {
    RPC_PHASE_CLOSED,
    RPC_PHASE_CONNECT_WAIT,
    RPC_PHASE_OPEN,
    RPC_PHASE_BACKOFF_WAIT,
    RPC_PHASE_CLOSING,
};

struct rpc {
    struct loop *loop;
    struct rpc_config config; /* url is an owned copy; ca_file is not kept */

    enum rpc_phase phase;
    struct loop_timer *retry; /* back-off */
    struct backoff backoff;
    struct rng rng;
    struct ws_client *ws;
    struct jv_doc message; /* the message being dispatched */
    uint64_t connection;   /* counts the connections that opened */
    bool proven; /* the connection delivered a message that parses: the back-off was reset */
    uint64_t opened_ms;
    uint64_t not_before_ms; /* the endpoint asked for no connection before this */

    struct loop_task drop_task; /* rpc_reconnect, rpc_stop */
    bool stopping;              /* rpc_stop: CLOSED comes next, not BACKOFF_WAIT */
    struct err drop_why;
    struct loop_task close_task;
    void (*close_cb)(void *arg);
    void *close_arg;

    /* rpc_calls.c */
    uint64_t next_id;
    uint64_t answers; /* counts answers of any call */
    /* Of calls that were written, since rpc_new: how many, how many ended with an error, and how
     * long those that were answered took, together. */
    uint64_t sent, failures, took_ms;
    struct rpc_table calls;  /* by id */
    struct list by_deadline; /* of calls; ascending */
    struct list orphans;     /* forgotten subscriptions: their late answers must be undone */
    struct loop_timer *deadline;
    struct pace pace;
    struct list paced[2]; /* calls that wait for their turn: without a gate, and with one */
    unsigned paced_turn;
    struct loop_timer *pace_timer;

    struct rpc_way_choice ways[WAY_COUNT]; /* of this connection */
    bool queries;                          /* state_queryStorageAt has answered on it */
    struct rpc_follow follow;
    struct rpc_closed closed[RPC_CLOSED_METHODS];

    /* rpc_subs.c */
    struct rpc_table subs;  /* active ones, by subscription id */
    struct list unanswered; /* subscriptions without an answer yet, by call id */
    struct list early;      /* buffered notifications */
    size_t early_count, early_bytes;
};

/* ---- rpc.c ---- */
void rpc__lose(struct rpc *r, const struct err *why); /* leave the present connection */

/* ---- rpc_calls.c ---- */
void rpc__calls_init(struct rpc *r);
void rpc__calls_done(struct rpc *r);
void rpc__calls_fail(struct rpc *r, const struct err *why); /* all of them */
void rpc__call_begin(struct rpc *r, struct rpc_call *call, const char *method, const char *params,
                     uint32_t timeout_ms, bool (*before_write)(void *arg), void *before_arg,
                     void (*cb)(struct rpc_call *call));
/* Fail a call from the loop, without a connection. */
void rpc__call_fail_later(struct loop *l, struct rpc_call *call, int code, const char *text,
                          void (*cb)(struct rpc_call *call));
void rpc__call_forget(struct rpc *r,
                      struct rpc_call *call); /* removes it everywhere; cb does not fire */
void rpc__call_adopt(struct rpc *r, struct rpc_call *call, uint64_t id,
                     void (*cb)(struct rpc_call *call));
/* Send a call without an owner; its answer is ignored. */
void rpc__notify(struct rpc *r, const char *method, const char *params);
void rpc__answer(struct rpc *r, const struct jv *message);
/* For rpc_paced.c: write the call now; end it with this error. */
void rpc__call_send(struct rpc *r, struct rpc_call *call, const char *params);
void rpc__call_failed(struct rpc *r, struct rpc_call *call, const struct err *why);

/* The end of a call that was asked in another way: a result, or its err. */
void rpc__call_end(struct rpc *r, struct rpc_call *call, const struct jv *result);

/* ---- rpc_closed.c: an answer has come; it may mean that the method is closed ---- */
void rpc__closed_check(struct rpc *r, struct rpc_call *call);

/* ---- rpc_paced.c: calls that wait for their turn ---- */
/* first: before all others of its kind. The call must be in no list of calls in flight. */
void rpc__call_wait(struct rpc *r, struct rpc_call *call, bool first);
void rpc__pace_due(void *arg); /* timer: struct rpc */
/* Tell the pace of this answer. True: it was "too many", and the call is repeated. */
bool rpc__pace_told(struct rpc *r, struct rpc_call *call);

/* ---- rpc_ways.c ---- */
/* True: the newer JSON-RPC is asked, and the call ends with its answer. */
bool rpc__way_begin(struct rpc *r, struct rpc_call *call, const char *params);
bool rpc__way_refused(struct rpc *r, struct rpc_call *call); /* the older one refused the call */
void rpc__way_drop(struct rpc_way *way);                     /* its call has ended */

/* ---- rpc_follow.c ---- */
void rpc__follow_init(struct rpc *r);
void rpc__follow_done(struct rpc *r);
void rpc__follow_reset(struct rpc *r); /* the connection is lost; all calls have ended */

/* ---- rpc_follow_watch.c ---- */
/* Notify this subscription from now on. False: another one of its kind is served already. */
bool rpc__watch_start(struct rpc *r, enum follow_watch_kind kind, struct rpc_sub *sub);
bool rpc__watch_stop(struct rpc *r, const struct rpc_sub *sub); /* false: it is not one */
void rpc__watches_check(struct rpc *r);                         /* the window has changed */
void rpc__watches_reset(struct rpc *r);                         /* their subscriptions have ended */
void rpc__watches_end(struct rpc *r, const struct err *why);    /* end their subscriptions */

/* ---- rpc_subs.c ---- */
void rpc__subs_init(struct rpc *r);
void rpc__subs_done(struct rpc *r);
void rpc__subs_end(struct rpc *r, const struct err *why);         /* all of them */
void rpc__sub_unanswered_end(struct rpc *r, struct rpc_sub *sub); /* its call has ended */
bool rpc__sub_accept(struct rpc *r, struct rpc_sub *sub,
                     const struct jv *id); /* false: it is not an id */
void rpc__sub_settled(struct rpc *r,
                      const char *id); /* after the call's cb: deliver what was buffered */
void rpc__notification(struct rpc *r, const struct jv *params);
/* The id goes back in the form in which it came: a string or a number. */
void rpc__end_by_id(struct rpc *r, const char *method, const char *id, bool number);
void rpc__sub_end(struct rpc *r, struct rpc_sub *sub, const struct err *why);
/* An operation of chainHead_v1 is a subscription: its items are events of follow. False: it is not
 * an id. */
bool rpc__operation_id(const struct jv *operation, char out[72]);
void rpc__notify_item(struct rpc *r, const char *id, const struct jv *item);

/* ---- rpc_table.c ---- */
void rpc__table_init(struct rpc_table *t);
void rpc__table_done(struct rpc_table *t);
struct list *rpc__table_bucket(const struct rpc_table *t, uint64_t hash);
void rpc__table_add(struct rpc_table *t, struct list *node, uint64_t hash,
                    uint64_t (*hash_of)(struct list *));
void rpc__table_remove(struct rpc_table *t, struct list *node);

#endif
