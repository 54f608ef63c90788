/* Private to relay/account/account_*.c: a store request of an account on its way. It remembers the
 * account's generation: an answer that comes after a demotion is dropped. */
#ifndef RELAY_OP_H
#define RELAY_OP_H

#include "account/account.h"
#include "service/service_internal.h"

struct op {
    struct account *account;
    uint64_t generation;
    enum manager_effect_type effect; /* that it carries out */
    union {
        struct store_req req;
#define X(name, type) struct type name;
        STORE_OUTBOX_REQUESTS(X)
        STORE_PENDING_REQUESTS(X)
#undef X
    } u;
    uint64_t question, serial; /* of a poll_effect */
    size_t count;
    struct store_attempt_row *attempt_rows;
    struct tx_found *found; /* with their bytes */
    struct births *births;  /* account_presigned.c */
    /* Own copy of the effect's rows. */
    union {
        struct manager_sign_row *sign;
        struct tx_report *states;
        struct tx_end *ends;
        struct tx_note *notes;
        void *any;
    } rows;
    struct tx_attempt *attempts; /* signed; owns their bytes */
    struct buf filler;
    char (*amounts)[40]; /* decimal texts: fees, tips */
    char text[200];
    /* a failure before anything was asked; a chunk that came before it was wanted */
    struct loop_task task;
    bool not_signed;               /* it failed before anything was asked of the store */
    bool arrived, wanted, dropped; /* account_read.c: a chunk that was asked for ahead */
};

struct op *op_new(struct account *a, enum manager_effect_type effect, size_t count);
void op_free(struct op *op);
struct op *op_of(struct store_req *req);
void *op_copy(const void *rows, size_t count, size_t size);
/* True when the answer is for the account as it is now; else it is ignored. */
bool op_current(const struct op *op);
void op_stored(struct store_req *req); /* the end of a write that returns nothing */
void op_failed(struct op *op); /* tells the election and the manager, if they are still concerned */

/* account_presigned.c: the blocks at which the eras of an answer's rows may have begun are asked
 * for, then cb; false: there are none. */
bool signed_births(struct op *op, void (*cb)(struct op *op));
bool signed_births_failed(const struct op *op);
void signed_births_free(struct op *op);
/* What the bytes say, checked; x->... as the manager wants it, bad or waits into `text`. */
void signed_check(const struct op *op, const struct store_outbox_row *o,
                  struct manager_outbox_row *row, struct manager_presigned *x, struct err *text);
int signed_take(struct op *op); /* an admission's rows, in place of signing them */
void account_note(struct account *a, const struct manager_effect *fx);
/* account_adopt.c */
void account_adopt(struct account *a, const struct manager_effect *fx);
void account_heard(struct account *a, const struct manager_effect *fx);
void account_load(struct account *a, const struct manager_effect *fx);

#endif
