/* Events of transactionWatch_v1, and what they mean in the older JSON-RPC. */
#ifndef CHAIN_NODE_NODE_TRANSACTION_H
#define CHAIN_NODE_NODE_TRANSACTION_H

#include "chain/node/node.h"

struct transaction_event {
    enum {
        TRANSACTION_OTHER,    /* it is not known, or does not parse */
        TRANSACTION_IS,       /* a pool had the bytes: `status` */
        TRANSACTION_NOT_IN,   /* retracted: it is in no block of the best chain */
        TRANSACTION_REFUSED,  /* as the first event: the refusal below; later: `status` */
        TRANSACTION_UNTRACKED /* the server follows it no longer */
    } kind;
    enum tx_status status;
    bool has_block;
    uint8_t block[32];
    int64_t code; /* of author_submitExtrinsic for this refusal; 0: none is known */
    char message[160], data[160];
};

/* Pure. False: the event must name a block, and does not. */
bool transaction_event_read(const struct jv *item, struct transaction_event *ret);

#endif
