/* Private to net/: one connection of gRPC on a socket, of either side. */
#ifndef NET_GRPC_LINK_H
#define NET_GRPC_LINK_H

#include "h2_internal.h"
#include "loop/socket.h"
#include "tls_internal.h"

struct grpc_link;

struct grpc_link_events {
    void (*on_up)(void *arg);                           /* client; may be NULL */
    bool (*on_call)(void *arg, struct grpc_call *call); /* server */
    void (*on_end)(void *arg, struct grpc_link *link, const struct err *why); /* closed by then */
};

struct grpc_link_config {
    struct loop *loop;
    struct tls_context *tls; /* NULL: cleartext */
    const char *host;        /* client with TLS: the name in the server's certificate */
    const struct grpc_limits *limits;
    const struct grpc_link_events *events;
    void *arg;
};

/* A server's: takes the socket. */
struct grpc_link *grpc__link_accept(const struct grpc_link_config *config, struct loop_socket *s);
/* A client's, to a numeric address. NULL: the address does not parse. */
struct grpc_link *grpc__link_connect(const struct grpc_link_config *config, const char *address,
                                     struct err *err);
/* At once. Its calls are gone without on_end, and no callback follows. */
struct grpc_link *grpc__link_close(struct grpc_link *link);
void grpc__link_drain(struct grpc_link *link);
/* Ends every call as UNAVAILABLE; on_end follows from the loop. */
void grpc__link_cut(struct grpc_link *link, const char *why);
const char *grpc__link_peer(const struct grpc_link *link);
struct h2_conn *grpc__link_conn(struct grpc_link *link); /* NULL: not there yet */

#endif
