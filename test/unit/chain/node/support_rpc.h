/* An rpc in front of a scripted server; the method of a request says how the server behaves. */
#ifndef TEST_SUPPORT_RPC_H
#define TEST_SUPPORT_RPC_H

#include <jansson.h>

#include "chain/node/rpc.h"
#include "ws_server.h"

enum { LIMIT_MS = 20000 };

struct rig {
    struct loop *loop;
    struct ws_server *server;
    struct rpc *rpc;
    struct ws_peer *peer; /* the last one */
    char url[128];
    unsigned opened, lost, stopped;
    struct err why; /* of the last BACKOFF */
    bool server_gone, rpc_gone;
    json_t *held;  /* "hold": answered after the next call */
    unsigned seen; /* requests */
    char unsubscribed[64];
    /* Before the script below. True: it has answered. */
    bool (*hook)(struct rig *rig, struct ws_peer *p, const char *method, const json_t *id,
                 const char *params);
    void *hook_arg;
};

void rpc_rig_open(struct rig *rig);  /* loop, server, url; no client yet */
void rpc_rig_start(struct rig *rig); /* and a client that is OPEN */
void rpc_rig_done(struct rig *rig);
struct rpc_config rpc_rig_config(struct rig *rig);
void server_start(struct rig *rig, const char *cert, const char *key, int port);
void server_stop(struct rig *rig);
void client_start(struct rig *rig, const struct rpc_config *config);
void client_stop(struct rig *rig);
/* Conditions of a rig, for run_until. */
bool is_open(void *arg);
bool has_lost(void *arg);
/* Of a bool. */
bool is_true(void *arg);
void set_true(void *arg);

/* One call and what became of it. */
struct ask {
    struct rpc_call call;
    bool done;
    unsigned times;
    char *result; /* JSON text */
    unsigned *order;
    unsigned place;
};
void asked(struct rpc_call *call); /* its callback */
void ask(struct rig *rig, struct ask *a, const char *method, const char *params,
         uint32_t timeout_ms);
void await(struct rig *rig, struct ask *a);
void ask_done(struct ask *a);

#endif
