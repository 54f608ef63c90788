/* Private to feed/door: the door, and one stream of it. */
#ifndef FEED_DOOR_INTERNAL_H
#define FEED_DOOR_INTERNAL_H

#include "base/check.h"
#include "base/list.h"
#include "feed/door/door.h"
#include "feed/feed.h"
#include "net/grpc.h"

struct feed_door {
    struct loop *loop;
    struct feed_room *room;
    struct tls_context *tls;
    struct grpc_server *server;
    char *token_file, *token; /* NULL: none is needed */
    struct list streams;
    size_t count;
};

struct feed_wire_request;

struct feed_stream {
    struct list node;
    struct feed_door *door;
    struct grpc_call *call; /* NULL: it ended */
    struct feed_session *session;
    struct feed_wire_request *request; /* whose items are being given to the session; or NULL */
    size_t next;                       /* of its items */
    bool held;
    bool ended;            /* the end was sent */
    bool giving;           /* inside `give` */
    struct loop_task task; /* goes on after a hold */
};

void feed__stream_open(struct feed_door *d, struct grpc_call *call);
void feed__stream_gone(struct feed_stream *s); /* tells the session, frees */

#endif
