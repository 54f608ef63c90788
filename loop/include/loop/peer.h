/* Line-oriented sockets: the relay's control endpoint and its clients. Addresses are
 * "unix:/path/to/socket" or "tcp:HOST:PORT" with a numeric host. */
#ifndef LOOP_PEER_H
#define LOOP_PEER_H

#include "loop/loop.h"

struct loop_server;
struct loop_peer;

/* What a server takes from its peers. A peer that goes beyond it is closed. */
enum {
    LOOP_LINE_MAX = 4 << 20,        /* bytes of one line */
    LOOP_PEERS_MAX = 64,            /* connections at a time; one more is closed at once */
    LOOP_UNFINISHED_MAX = 16 << 20, /* bytes of unfinished lines, of all peers together */
    LOOP_PEER_IDLE_MS = 60000,      /* without a byte, unless loop_server_idle said otherwise */
};

struct loop_peer_events {
    void (*on_open)(void *arg, struct loop_peer *peer); /* may be NULL */
    void (*on_line)(void *arg, struct loop_peer *peer, const char *line, size_t len);
    /* The peer ended (end of file, an error, or it did not open; err has the reason) and is freed
     * after this. Not called after the owner closed it. */
    void (*on_end)(void *arg, struct loop_peer *peer, const struct err *err);
    void *arg;
};

/* NULL and *err: ERR_ARGUMENT for a bad address, ERR_IO if it cannot be bound. A stale unix socket
 * without a listener is replaced. Unix sockets get mode 0600. */
struct loop_server *loop_server_new(struct loop *l, const char *address,
                                    const struct loop_peer_events *events, struct err *err);
struct loop_server *loop_server_close(struct loop_server *s); /* its peers too */
void loop_server_idle(struct loop_server *s, uint64_t ms);
/* The address with the real port, when the port was given as 0. */
const char *loop_server_address(const struct loop_server *s);

struct loop_peer *loop_peer_connect(struct loop *l, const char *address,
                                    const struct loop_peer_events *events, struct err *err);
/* The user at the other end of a unix socket; false: it is none. */
bool loop_peer_uid(const struct loop_peer *p, unsigned *ret_uid);
/* false: the address, or the server's, can be reached from other machines. */
bool loop_address_is_local(const char *address);
bool loop_address_is_unix(const char *address);
int loop_address_check(const char *address, struct err *err); /* ERR_ARGUMENT: it is none */
/* Could this process listen there now? It leaves nothing behind. ERR_IO: no; *ret_taken: because a
 * program listens there already. */
int loop_address_try(const char *address, bool *ret_taken, struct err *err);
void loop_peer_write(struct loop_peer *p, const void *data,
                     size_t len); /* copied; a slow reader is closed */
struct loop_peer *
loop_peer_close(struct loop_peer *p); /* written bytes are still flushed if that does not block */

#endif
