/* What the answer to a submission means.
 *
 * No answer proves that no pool has the bytes: a gateway gives up on a node that took them, a
 * balancer tries a second node, a connection breaks after the write, a node lies. So whatever was
 * written to a socket may be in some pool. Only REFUSAL_GATE says that nothing was written.
 * docs/answers.md shows the table. */
#ifndef RELAY_ANSWER_H
#define RELAY_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    REFUSAL_INVALID,   /* never possible, it says: call, custom, exhausts resources, no SCALE */
    REFUSAL_TRAPPED,   /* 1002: the runtime trapped on the bytes, or the node is in trouble */
    REFUSAL_TRANSPORT, /* no answer: the outcome is unknown */
    REFUSAL_GATE,      /* refused by our own gate: not sent */
    REFUSAL_BUSY,      /* node limits: subscriptions, rate, internal error: try again */
};

enum answer_from {
    ANSWER_OF_RELAY, /* the relay's own door, or its connection; first, last: enum err_code */
    ANSWER_OF_NODE,  /* JSON-RPC error codes */
};

struct answer {
    enum answer_from from;
    int64_t first, last; /* codes, both included */
    /* one of them is in the text, in upper or lower case; no word: any text */
    const char *words[3];
    enum refusal means;
    const char *text;   /* polkadot-sdk's message and data, as the manager receives them */
    const char *reason; /* why some pool may have the bytes, or why none has */
};

/* Never NULL: an answer that no other row names is the table's last one of its source. text may be
 * NULL. */
const struct answer *answer_of(int code, int64_t rpc_code, const char *text);

/* Does a list of an account's policy ("ExhaustsResources,Custom:6") name this refusal? Custom alone
 * names every number. */
bool answer_listed(const char *list, const char *text);

/* The table by number; NULL behind the last row. */
const struct answer *answer_at(size_t i);
void answers_dump(struct buf *out); /* as a table of docs/answers.md */

#endif
