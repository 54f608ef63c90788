/* A WebSocket client for text messages: one endpoint (ws:// or wss://), one connection at a time,
 * on the loop. It resolves, connects, pings, and detects a dead peer. It does not reconnect: its
 * owner decides when to open again, and what the messages mean.
 *
 *   CLOSED -> RESOLVE_WAIT -> CONNECT_WAIT -> OPEN         (*_WAIT: suspended until a callback)
 *      ^           |           ^  |  |          |
 *      |           |           +--+  |          |     the next address of the name
 *      +-----------+-----------------+----------+     on_closed with the reason, or ws_client_drop
 *
 * Every callback fires from the loop, never inside the call that started it. Callbacks may call
 * every function below, also ws_client_close. */
#ifndef NET_WS_CLIENT_H
#define NET_WS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"

struct ws_client;

struct ws_client_config {
    const char *url;     /* ws://host[:port][/path] or wss://...; copied */
    const char *peer;    /* what the peer is, for error texts: "node"; a literal; NULL: "server" */
    const char *ca_file; /* wss: a PEM file; copied; NULL: the system's certificates */
    bool insecure;       /* wss: accept every certificate (development only) */
    uint32_t connect_timeout_ms; /* to resolve the name, and again for each address; 0: 5000 */
    uint32_t silence_timeout_ms; /* without a byte or a pong, the connection is dead; 0: 15000 */
    uint32_t message_max_bytes;  /* a longer message closes the connection; 0: 64 MiB */
    void (*on_open)(void *arg);
    /* One whole text message, borrowed during the callback; no NUL follows it. */
    void (*on_text)(void *arg, const char *text, size_t len);
    /* The attempt failed or the connection ended: once for each ws_client_open that is not dropped.
     * The error names the url. */
    void (*on_closed)(void *arg, const struct err *why);
    void *arg;
};

/* What ws_client_new would say of the url, of a peer as in ws_client_config. */
int ws_url_check(const char *url, const char *peer, struct err *err);
/* NULL: ret_err (ERR_CONFIG) says what is wrong with the url or with ca_file. */
struct ws_client *ws_client_new(struct loop *l, const struct ws_client_config *config,
                                struct err *ret_err);
/* Connect; on_open or on_closed follows. PRE: the client is CLOSED. */
void ws_client_open(struct ws_client *c);
/* How long the answer to the last attempt asked to wait before the next one (HTTP Retry-After in
 * seconds, at most an hour); 0: it did not. */
uint64_t ws_client_retry_after_ms(const struct ws_client *c);
/* End the attempt or the connection at once, without on_closed. CLOSED: nothing happens. */
void ws_client_drop(struct ws_client *c);
/* Drop the connection and free the client; cb fires once, after the last handle is closed. */
void ws_client_close(struct ws_client *c, void (*cb)(void *arg), void *arg);

/* ---- sending ---- */

enum ws_frame_end {
    WS_FRAME_WRITTEN, /* the bytes went to the socket; whether they arrive is for the peer to say */
    WS_FRAME_REFUSED, /* the gate was shut: no byte was written */
    WS_FRAME_UNSENT,  /* the connection ended first: no byte was written */
};

/* A message to be sent. The owner fills in the `len` bytes of ws_frame_text before
 * ws_client_send. */
struct ws_frame;
struct ws_frame *ws_frame_new(size_t len);
char *ws_frame_text(struct ws_frame *f);

/* Queue the frame; the client owns it from here on. Frames leave in the order of their sends.
 * gate (may be NULL) is asked immediately before the bytes go to the socket: false drops the frame.
 * cb (may be NULL) fires exactly once, unless the frame is canceled; the frame is gone by then. */
void ws_client_send(struct ws_client *c, struct ws_frame *f, bool (*gate)(void *arg),
                    void *gate_arg, void (*cb)(void *arg, enum ws_frame_end end), void *cb_arg);
/* Withdraw and free a frame whose cb has not fired: it will not be written, cb never fires. */
void ws_frame_cancel(struct ws_frame *f);

#endif
