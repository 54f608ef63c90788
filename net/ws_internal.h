/* Private to net/: the client, its queue of frames, and what it needs of libwebsockets. */
#ifndef NET_WS_INTERNAL_H
#define NET_WS_INTERNAL_H

#include "base/list.h"
#include "net/ws_client.h"

enum {
    WS_FRAME_HEADROOM = 32
}; /* libwebsockets writes the WebSocket header in front of the text */

struct ws_frame {
    struct list node;
    bool (*gate)(void *arg);
    void *gate_arg;
    void (*cb)(void *arg, enum ws_frame_end end);
    void *cb_arg;
    size_t len;
    uint8_t data[]; /* WS_FRAME_HEADROOM bytes, then the text */
};

enum ws_phase {
    WS_CLOSED,
    WS_RESOLVE_WAIT,
    WS_CONNECT_WAIT,
    WS_OPEN,
    WS_CLOSING, /* by ws_client_close */
};

struct ws_url {
    char *host;        /* without brackets */
    char *path;        /* "/..." */
    char *credentials; /* "user:password" of the url, decoded; NULL: it has none */
    uint16_t port;
    bool tls;
};

struct ws_conn;

struct ws_client {
    struct loop *loop;
    struct ws_client_config config; /* url and ca_file are owned copies; no value is 0 */
    struct ws_url url;

    enum ws_phase phase;
    struct loop_timer *deadline; /* of resolving, of the attempt on one address */
    struct loop_timer *ping;     /* while OPEN */
    struct loop_resolve resolve;
    int addr_next;
    struct loop_task next_task; /* tries the next address */
    struct err attempt_why;     /* why the last address failed */
    uint64_t retry_after_ms;    /* what its HTTP answer asked for; 0: nothing */
    bool alive;                 /* bytes came since the last ping */
    unsigned missed;            /* pings in a row without any */
    struct ws_conn *conn;

    struct list frames; /* not yet written, in order */
    struct list unsent; /* their connection ended; unsent_task reports them */
    struct loop_task unsent_task;

    void (*close_cb)(void *arg);
    void *close_arg;
};

/* ---- ws_client.c: what the connection reports. Each of them may end in ws__conn_drop. ---- */
void ws__on_open(struct ws_client *c);
void ws__on_closed(struct ws_client *c,
                   const char *why);    /* the connection, or the attempt, is over */
void ws__on_bytes(struct ws_client *c); /* the peer lives */
void ws__on_text(struct ws_client *c, const char *text, size_t len);

/* ---- ws_frame.c: the queue ---- */
void ws__frames_init(struct ws_client *c);
void ws__frames_done(struct ws_client *c);
void ws__frames_write(struct ws_client *c); /* the socket takes bytes */
/* no connection any more: report them as unsent, from the loop */
void ws__frames_end(struct ws_client *c);

/* ---- ws_url.c ---- */
int ws__url_parse(const char *text, const char *peer, struct ws_url *ret_url, struct err *err);
void ws__url_done(struct ws_url *url);

/* ---- ws_context.c and ws_lws.c: all use of libwebsockets ---- */
struct ws_conn *ws__conn_new(struct ws_client *c,
                             struct err *err); /* NULL: ca_file is not usable */
/* Start a connection to a numeric address. ws__on_open or ws__on_closed follows, later; false: it
 * failed at once and nothing follows. PRE: no connection is up. */
bool ws__conn_connect(struct ws_conn *conn, const char *addr);
/* at once; nothing is reported of this connection any more */
void ws__conn_drop(struct ws_conn *conn);
/* ws__frames_write follows, once the socket takes bytes */
void ws__conn_want_write(struct ws_conn *conn);
bool ws__conn_can_write(const struct ws_conn *conn);
/* PRE: ws__conn_can_write. Masks the frame's text in place. */
void ws__conn_write(struct ws_conn *conn, struct ws_frame *f);
void ws__conn_ping(struct ws_conn *conn);
void ws__conn_free(struct ws_conn *conn, void (*cb)(struct ws_client *c)); /* cb from the loop */

#endif
