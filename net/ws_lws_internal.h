/* Private to ws_context.c and ws_lws.c, which are all use of libwebsockets. */
#ifndef NET_WS_LWS_INTERNAL_H
#define NET_WS_LWS_INTERNAL_H

#include <libwebsockets.h>

#include "base/buf.h"
#include "ws_internal.h"

#define WS_PROTOCOL "ws" /* the name that callbacks go by; it is not sent */

struct ws_conn {
    struct ws_client *client;
    struct lws_context *context; /* NULL: not made yet, or destroyed */
    struct lws *wsi;             /* the present connection */
    uintptr_t generation;        /* of the present connection */
    bool connecting;             /* inside lws_client_connect_via_info */
    bool established;
    bool broken; /* a write failed */
    bool ping_due;
    bool write_asked; /* the writable callback will come; asking again costs two system calls */
    bool host_is_address;
    struct buf message;
    char why[200]; /* the most specific reason so far */
    int event_fd;  /* of the context; -1: not found */
    struct loop_task destroy_task;
    unsigned destroy_turns;
    void (*freed)(struct ws_client *c);
};

/* ---- ws_context.c ---- */
bool ws__context_make(struct ws_conn *conn);

/* ---- ws_lws.c ---- */
int ws__lws_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                     size_t len);

#endif
