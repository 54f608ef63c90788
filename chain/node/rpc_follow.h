/* Private to rpc*.c: the subscription chainHead_v1_follow of a connection, which answers questions
 * of the older JSON-RPC that the endpoint refuses (rpc_ways.c), and three of its subscriptions. */
#ifndef CHAIN_NODE_RPC_FOLLOW_H
#define CHAIN_NODE_RPC_FOLLOW_H

#include "chain/node/rpc.h"
#include "rpc_window.h"

enum follow_state {
    FOLLOW_OFF,         /* nobody has needed it */
    FOLLOW_ASK_WAIT,    /* chainHead_v1_follow has no answer yet */
    FOLLOW_INIT_WAIT,   /* no "initialized" yet */
    FOLLOW_HEADER_WAIT, /* the height of its last final block is not known yet */
    FOLLOW_ON,
    FOLLOW_AGAIN_WAIT, /* the server ended it: it is made anew */
    FOLLOW_NONE,       /* the endpoint refuses it */
};

/* A subscription of the older JSON-RPC that follow serves. */
enum follow_watch_kind {
    FOLLOW_WATCH_BEST,
    FOLLOW_WATCH_FINAL,
    FOLLOW_WATCH_RUNTIME,
    FOLLOW_WATCH_COUNT
};

struct follow_watch {
    struct rpc_sub *sub; /* NULL: nobody subscribes */
    struct rpc *rpc;
    struct loop_task task; /* its first item */
    struct rpc_call call;  /* the header of `told` */
    uint8_t told[32];      /* the block that was notified last, or is being asked for */
    char *runtime;         /* FOLLOW_WATCH_RUNTIME: the version that was notified last */
};

enum { FOLLOW_OPERATIONS_MAX = 16 }; /* of a connection in polkadot-sdk */

struct rpc_follow {
    enum follow_state state;
    struct rpc_sub sub;
    struct err refusal; /* FOLLOW_NONE */
    enum rpc_error refused;
    struct rpc_call header; /* of the last final block of "initialized" */
    struct window window;
    uint64_t base;  /* the height of the window's height 0 */
    uint64_t times; /* counts the subscriptions */
    uint64_t begun_ms, heard_ms;
    struct list waiting; /* of rpc_way: until FOLLOW_ON, or until there is room for an operation */
    struct list asking;  /* of rpc_way: their question names this subscription */
    size_t operations;   /* of `asking`: those that end with a notification */
    struct loop_timer *timer;
    uint64_t kick_at; /* the ways that wait are to be tried again then; 0: no */
    struct follow_watch watches[FOLLOW_WATCH_COUNT];
};

#endif
