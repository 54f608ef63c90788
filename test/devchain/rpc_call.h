/* One JSON-RPC request at work: what a method handler sees. A handler prints its answer through
 * these helpers exactly once. */
#ifndef DEVCHAIN_RPC_CALL_H
#define DEVCHAIN_RPC_CALL_H

#include "app.h"

struct sub;

struct call {
    struct app *app;
    struct conn *conn; /* NULL: over HTTP, no subscriptions */
    const char *method;
    const json_t *params; /* array or NULL */
    const json_t *id;
    struct buf *out;     /* the whole response */
    struct sub *started; /* a subscription whose first notifications wait for the response */
    bool drop_after;     /* scripted: what this submits leaves the pool in silence */
};

enum {
    RPC_PARSE_ERROR = -32700,
    RPC_INVALID_REQUEST = -32600,
    RPC_METHOD_NOT_FOUND = -32601,
    RPC_INVALID_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_TOO_MANY_SUBSCRIPTIONS = -32006,
    RPC_OVERSIZED = -32007,
    RPC_FOLLOW_LIMIT = -32800, /* chainHead_v1 */
    RPC_NOT_PINNED = -32801,
};

struct buf *call_begin(struct call *c); /* then print the result's JSON */
void call_end(struct call *c);
void call_result(struct call *c, const char *json);
void call_result_json(struct call *c, json_t *value); /* steals */
void call_error(struct call *c, int code, const char *message,
                const char *data); /* data text or NULL */

/* Parameters. A failure prints -32602 and returns false. */
bool call_bytes(struct call *c, size_t i, struct buf *out);
bool call_hash(struct call *c, size_t i, uint8_t out[32]);
/* A block by optional hash at parameter i: best when absent. Unknown: *ret_block NULL and true. */
bool call_block(struct call *c, size_t i, struct block **ret_block);
bool call_state_at(struct call *c, size_t i,
                   struct block **ret_block); /* unknown: answers the error, false */
bool call_account(struct call *c, const json_t *v, uint8_t id[32]);
const json_t *call_param(const struct call *c, size_t i); /* NULL: absent or null */

void put_json_str(struct buf *b, const char *s);                /* quoted and escaped */
void put_json_hex(struct buf *b, const void *data, size_t len); /* "0x.." quoted */

typedef void (*method_fn)(struct call *c);
struct method {
    const char *name;
    method_fn fn;
};
extern const struct method METHODS_AUTHOR[], METHODS_CHAIN[], METHODS_STATE[], METHODS_SYSTEM[],
    METHODS_DEV[], METHODS_ARCHIVE[], METHODS_HEAD[], METHODS_TRANSACTION[];

/* What becomes of an answer. */
enum fate { FATE_SEND, FATE_CUT, FATE_DELAY, FATE_SILENT };
void rpc_handle(struct app *a, struct conn *conn, const char *text,
                size_t len); /* a WebSocket message */
bool rpc_handle_http(struct app *a, const char *text, size_t len,
                     struct buf *out); /* false: cut the connection */
void rpc_delays_done(struct app *a);
void rpc_list_methods(struct call *c);

void rpc__put_id(struct buf *b, const json_t *id);
void rpc__put_error(struct buf *out, const json_t *id, int code, const char *message,
                    const char *data);

#endif
