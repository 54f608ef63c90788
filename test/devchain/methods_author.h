/* Submissions, for the methods of both JSON-RPCs. */
#ifndef DEVCHAIN_METHODS_AUTHOR_H
#define DEVCHAIN_METHODS_AUTHOR_H

#include "rpc_call.h"

struct refusal {
    int code; /* 0: accepted */
    char message[160];
    const char *data; /* NULL: none */
    char data_buf[40];
};

/* Submit bytes. Accepted: *ret_tx is a reference, and `sub` (NULL: none) watches it. */
void author_try(struct call *c, const struct buf *bytes, struct sub *sub, struct refusal *ret,
                struct tx **ret_tx);

#endif
