/* A room: a part that the service hosts, such as the node, the election or the sweeps. Private to
 * relay/.
 *
 *   MADE --open--> OPEN --drain--> DRAIN_WAIT --cb--> CLOSE_WAIT --cb--> CLOSED --free--> gone
 *
 * The service makes its rooms in the order of the table in service.c and opens them in that order.
 * At its end all rooms drain at the same time; then they are closed one after the other, in the
 * reverse order, so that a room is closed before what it was built on. Memory goes last (free),
 * when no request is in flight any more.
 *
 * Starts return void. Their callback fires exactly once, from the loop, never inside the start. */
#ifndef RELAY_ROOM_H
#define RELAY_ROOM_H

#include "base/error.h"
#include "loop/loop.h"
#include "relay/status.h"

struct service;
struct room;
typedef void (*room_cb)(struct room *r);

/* Each member but `name` and `free` may be NULL: then there is nothing to do. */
struct room_ops {
    const char *name;
    void (*open)(struct room *r); /* begin; the room reports by itself what comes up later */
    void (*run)(struct room *r);  /* all accounts are registered: begin to lead */
    /* Finish what would be left half done, e.g. hand accounts over. Everything still works
     * meanwhile. */
    void (*drain)(struct room *r); /* then room_ended */
    /* Begin nothing any more, close every handle. Requests to another room may still be in flight:
     * they end at the latest when that one is closed. */
    void (*close)(struct room *r); /* then room_ended */
    void (*free)(struct room *r);  /* closed, or never opened */
    void (*status)(const struct room *r,
                   struct service_status *ret); /* not after close has called back */
};

/* The head of each room. */
struct room {
    const struct room_ops *ops;
    struct service *service;
    /* private: of drain or close, whichever is going on */
    room_cb cb;
    struct loop_task task;
};

/* Makes a room that is not open. NULL without an error: this configuration has none. With an error:
 * it cannot be made. Only rooms whose free does not need close may fail, or stand before one that
 * may. */
typedef struct room *room_make(struct service *s, struct err *err);

/* For a room: what drain or close started has ended. The callback comes from the loop, never from
 * in here. */
void room_ended(struct room *r);

/* For the service. */
void room_open(struct room *r);
void room_run(struct room *r);
void room_drain(struct room *r, room_cb cb);
void room_close(struct room *r, room_cb cb);

#endif
