/* Private to loop/. */
#ifndef LOOP_INTERNAL_H
#define LOOP_INTERNAL_H

#include <sys/socket.h>
#include <uv.h>

#include "loop/loop.h"

struct loop {
    uv_loop_t uv;
    uv_idle_t idle;   /* keeps the loop from blocking while tasks wait */
    uv_check_t check; /* runs the tasks, after I/O */
    struct list tasks;
    bool armed;   /* the set of events changed: the kernel learns of it only in the next round */
    size_t open;  /* handles that their owners have not closed */
    size_t works; /* unfinished work on the thread pool */
};

/* Every handle object starts with this: the uv handle is heap memory that outlives its owner. */
void loop__opened(struct loop *l);
void loop__close(struct loop *l, uv_handle_t *h, void *memory);

/* ---- address.c: addresses of sockets ---- */
union loop_endpoint {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_pipe_t pipe;
    uv_tcp_t tcp;
};

struct loop_address {
    const char *text; /* borrowed, as path is */
    bool is_unix;
    const char *path;
    struct sockaddr_storage tcp;
    char host[64];
    int port;
};

int loop__address_parse(const char *text, struct loop_address *ret, struct err *err);
/* The handle for either kind, not connected; it is open from here on. */
void loop__endpoint_init(struct loop *l, union loop_endpoint *uv, bool is_unix);
/* Takes a connected descriptor into an initialised handle. */
void loop__endpoint_open(union loop_endpoint *uv, int fd);
/* A descriptor that listens; -1: err says why it cannot. *ret_path: what to unlink at the end,
 * owned by the caller; unchanged for tcp. */
int loop__listen(const struct loop_address *a, char **ret_path, struct err *err);
/* The address with the real port, owned by the caller. */
char *loop__bound_name(int fd, const struct loop_address *a);

/* ---- accept.c: connections of a listener ---- */
struct loop_acceptor;
/* cb owns the descriptor of each connection. NULL: err says why it cannot listen. */
struct loop_acceptor *loop__acceptor_new(struct loop *l, const struct loop_address *address,
                                         void (*cb)(void *arg, int fd), void *arg, struct err *err);
struct loop_acceptor *loop__acceptor_close(struct loop_acceptor *a); /* NULL allowed */
const char *loop__acceptor_address(const struct loop_acceptor *a);

#endif
