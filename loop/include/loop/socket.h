/* Sockets for bytes: a listener, and connections of either side. Addresses are those of
 * loop/peer.h. Nothing is lost or reordered; what a peer does not take is queued without a limit,
 * so the owner asks loop_socket_queued before it writes more. */
#ifndef LOOP_SOCKET_H
#define LOOP_SOCKET_H

#include "base/shared.h"
#include "loop/loop.h"

struct loop_listener;
struct loop_socket;

enum { LOOP_SOCKET_READ = 16384 }; /* bytes of one read, at most */

struct loop_socket_events {
    void (*on_open)(void *arg);                                   /* of loop_socket_connect */
    void (*on_bytes)(void *arg, const uint8_t *data, size_t len); /* borrowed */
    void (*on_written)(void *arg); /* the kernel took what a loop_socket_write gave */
    /* The connection ended, or did not open. why->code is 0 at the end of file. No callback
     * follows; the owner closes the socket. */
    void (*on_end)(void *arg, const struct err *why);
};

/* on_accept owns the socket and calls loop_socket_start or loop_socket_close. NULL and *err:
 * ERR_ARGUMENT for a bad address, ERR_IO if it cannot be bound. */
struct loop_listener *loop_listener_new(struct loop *l, const char *address,
                                        void (*on_accept)(void *arg, struct loop_socket *s),
                                        void *arg, struct err *err);
struct loop_listener *loop_listener_close(struct loop_listener *s); /* its sockets stay */
const char *loop_listener_address(const struct loop_listener *s);   /* with the real port */

/* NULL: err (ERR_ARGUMENT) says what is wrong with the address. on_open or on_end follows; reading
 * begins by itself. */
struct loop_socket *loop_socket_connect(struct loop *l, const char *address,
                                        const struct loop_socket_events *events, void *arg,
                                        struct err *err);
void loop_socket_start(struct loop_socket *s, const struct loop_socket_events *events, void *arg);
void loop_socket_write(struct loop_socket *s, const void *data, size_t len); /* copied */
void loop_socket_share(struct loop_socket *s,
                       struct shared *bytes);           /* an owner of them till sent */
size_t loop_socket_queued(const struct loop_socket *s); /* bytes that the kernel has not taken */
/* The other end, for people: "192.0.2.1:4711", or "unix". */
const char *loop_socket_name(const struct loop_socket *s);
/* No callback follows. Written bytes are still flushed if that does not block. */
struct loop_socket *loop_socket_close(struct loop_socket *s);

#endif
