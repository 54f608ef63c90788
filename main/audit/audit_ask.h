/* Questions to one endpoint, several at a time, over a connection of its own. Each function blocks;
 * it runs the loop until all answers have come. */
#ifndef MAIN_AUDIT_AUDIT_ASK_H
#define MAIN_AUDIT_AUDIT_ASK_H

#include "audit/audit_chain.h"
#include "chain/node/rpc.h"

struct asker {
    struct loop *loop;
    struct rpc *rpc;
    char *shown; /* the url without secrets */
    struct loop_timer *limit;
    struct err err; /* of the connection */
    bool open, late;
};

/* Open a connection to the first endpoint that answers. If none does, `open` stays false, and err
 * says what is wrong with the last one. */
void asker_open(struct asker *c, struct loop *l, const struct audit_chain_config *config);
void asker_close(struct asker *c);

/* One question. `take` gets a result, and returns what is wrong with it, or NULL. */
struct asker_question {
    const char *method;
    char params[200];
    const char *(*take)(void *arg, const struct jv *result);
    void *arg;
    /* private */
    struct rpc_call call;
    struct asker *asker;
    size_t *left;
    struct err *err;
};
/* Ask all of them at once and wait for all answers; the first error counts. */
int asker_ask_all(struct asker *c, struct asker_question *list, size_t count, struct err *err);
int asker_ask(struct asker *c, const char *method, const char *params,
              const char *(*take)(void *arg, const struct jv *result), void *arg, struct err *err);

/* For `take`; arg is: */
const char *asker_take_hash(void *arg, const struct jv *result);   /* uint8_t[32] */
const char *asker_take_number(void *arg, const struct jv *result); /* uint64_t, of a header */
const char *asker_take_spec(void *arg, const struct jv *result);   /* uint32_t, of a version */
const char *asker_take_bytes(void *arg, const struct jv *result);  /* struct buf: appended */
const char *asker_take_storage(void *arg,
                               const struct jv *result); /* the same; no value is an empty one */

#endif
