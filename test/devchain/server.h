/* The door: WebSocket and HTTP POST on one port of 127.0.0.1, by libwebsockets on our loop. */
#ifndef DEVCHAIN_SERVER_H
#define DEVCHAIN_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "loop/loop.h"

struct app;
struct server;
struct conn;

struct server *server_new(struct app *a, struct loop *l, struct err *err);
uint16_t server_port(const struct server *s);
void server_close(struct server *s, void (*cb)(void *arg), void *arg); /* frees s before cb */

void conn_send(struct conn *c, const void *text, size_t len); /* copied */
void conn_cut(struct conn *c);    /* close soon, without a close frame; what is queued is lost */
void conn_freeze(struct conn *c); /* stays open, but nothing goes in or out any more */
struct list *conn_subs(struct conn *c);
/* the reader is so slow that the connection's buffer is full */
bool conn_backed_up(const struct conn *c);
size_t conn_sub_count(const struct conn *c);
void conn_subs_changed(struct conn *c, int by);
uint64_t conn_number(const struct conn *c);
struct conn *server_conn(const struct server *s, uint64_t number); /* NULL: gone */
size_t server_cut_all(struct server *s);
size_t server_conn_count(const struct server *s);

#endif
