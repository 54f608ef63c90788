/* What a node's error answer means: one table for every method. Pure.
 *
 * An answer is not a broken connection. Only an answer that does not parse, or that contradicts
 * another one, is a fault of the endpoint (ERR_PROTOCOL). */
#ifndef CHAIN_NODE_RPC_ERROR_H
#define CHAIN_NODE_RPC_ERROR_H

#include <stddef.h>
#include <stdint.h>

enum rpc_error {
    RPC_ERROR_NONE,    /* no error answer */
    RPC_ERROR_METHOD,  /* this endpoint does not answer the method to us */
    RPC_ERROR_DENIED,  /* the same, or it is in trouble; no caller sees it (rpc_closed.c) */
    RPC_ERROR_BLOCK,   /* this endpoint does not have the block, its body or its state any more */
    RPC_ERROR_SIZE,    /* the request or the answer is larger than this endpoint allows */
    RPC_ERROR_PACE,    /* too many requests: the same one is good later */
    RPC_ERROR_WATCHES, /* too many subscriptions on this connection */
    RPC_ERROR_OTHER,   /* anything else: the node, or what stands before it, is in trouble */
};

/* Never RPC_ERROR_NONE. message and data may be "". */
enum rpc_error rpc_error_of(int64_t code, const char *message, const char *data);
const char *rpc_error_name(enum rpc_error e);
/* When the answer says to ask again, in ms from now; 0: it does not say. At most an hour. */
uint64_t rpc_error_retry_ms(const char *message, const char *data);

/* The table by number, for its test; NULL behind the last row. */
struct rpc_error_row {
    int64_t first, last;   /* codes, both included */
    const char *words[12]; /* one of them is in the message or the data; no word: any text */
    enum rpc_error means;
    const char *example; /* a message as a server writes it */
};
const struct rpc_error_row *rpc_error_row(size_t i);

#endif
