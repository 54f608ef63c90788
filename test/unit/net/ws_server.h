/* A scripted WebSocket server inside the test process, on the test's own loop. */
#ifndef TEST_WS_SERVER_H
#define TEST_WS_SERVER_H

#include "loop/loop.h"

struct ws_server;
struct ws_peer; /* one accepted connection; valid from on_open until on_close */

struct ws_script {
    const char *cert_file, *key_file; /* both: wss */
    void (*on_open)(void *arg, struct ws_peer *p);
    void (*on_text)(void *arg, struct ws_peer *p, const char *text, size_t len);
    void (*on_close)(void *arg, struct ws_peer *p);
    void *arg;
};

struct ws_server *ws_server_new(struct loop *l, const struct ws_script *script,
                                int port); /* 0: any */
int ws_server_port(const struct ws_server *s);
/* The Authorization header of the last connection; "" without one. */
const char *ws_server_authorization(const struct ws_server *s);
/* And its path with the query. */
const char *ws_server_path(const struct ws_server *s);
unsigned ws_server_accepted(const struct ws_server *s);
void ws_server_close(struct ws_server *s, void (*cb)(void *arg), void *arg);

void ws_peer_send(struct ws_peer *p, const char *text);
void ws_peer_printf(struct ws_peer *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ws_peer_cut(struct ws_peer *p); /* close the connection now, no close frame */
/* half-open: no byte is read any more, no ping answered */
void ws_peer_stop_reading(struct ws_peer *p);
void ws_peer_set_data(struct ws_peer *p, void *data);
void *ws_peer_data(const struct ws_peer *p);

/* Run the loop until done(arg), at most so many milliseconds; false: the time passed. */
bool run_until(struct loop *l, bool (*done)(void *arg), void *arg, unsigned limit_ms);

#endif
