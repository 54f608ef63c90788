/* What the answer to a submission means, and what it proves about the bytes.
 *
 * Bytes that left the relay may be in some pool unless the answer proves that no pool took them. A
 * gateway gives up on a node that took them, a balancer tries a second node, a connection breaks
 * after the write. The table says for each answer what it proves; docs/answers.md shows it. */
#ifndef RELAY_ANSWER_H
#define RELAY_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "base/tx.h"

struct buf;

/* What the manager does. */
enum refusal {
    REFUSAL_NONE,        /* no refusal: a pool accepted the bytes */
    REFUSAL_STALE,       /* the nonce is used: finalized blocks will show by whom */
    REFUSAL_POOLED,      /* 1013: the pool already has it */
    REFUSAL_BANNED,      /* 1012 */
    REFUSAL_UNDERPRICED, /* 1014 */
    REFUSAL_POOL_FULL,   /* 1016 */
    REFUSAL_PAYMENT,
    REFUSAL_BAD_PROOF, /* bad signature, ancient birth: runtime or era moved */
    REFUSAL_FUTURE,
    REFUSAL_INVALID,   /* never possible: call, custom, exhausts resources, does not decode */
    REFUSAL_TRAPPED,   /* 1002: the runtime trapped on the bytes, or the node is in trouble */
    REFUSAL_TRANSPORT, /* no answer: the outcome is unknown */
    REFUSAL_GATE,      /* refused by our own gate: not sent */
    REFUSAL_BUSY,      /* node limits: subscriptions, rate, internal error: try again */
};

enum answer_proof {
    PROVES_POOLED,
    /* This submission put the bytes into no pool. Nothing is proved about an earlier submission of
     * the same bytes. */
    PROVES_NOT_TAKEN,
    PROVES_NOTHING, /* some pool may have them */
};

enum answer_from {
    ANSWER_OF_RELAY, /* the relay's own door, or its connection; first, last: enum err_code */
    ANSWER_OF_NODE,  /* JSON-RPC error codes */
    ANSWER_OF_WATCH, /* enum tx_status, of bytes that were accepted */
};

struct answer {
    enum answer_from from;
    int64_t first, last; /* codes, both included */
    /* one of them is in the text, in upper or lower case; no word: any text */
    const char *words[3];
    enum refusal means;
    enum answer_proof proves;
    const char *text;   /* polkadot-sdk's message and data, as the manager receives them */
    const char *reason; /* of what it proves */
};

/* Never NULL: an answer that no other row names is the table's last one of its source, which proves
 * nothing. text may be NULL. */
const struct answer *answer_of(int code, int64_t rpc_code, const char *text);
const struct answer *answer_of_watch(enum tx_status status);

/* The table by number; NULL behind the last row. */
const struct answer *answer_at(size_t i);
void answers_dump(struct buf *out); /* as a table of docs/answers.md */

#endif
