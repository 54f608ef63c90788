/* Accounts with their history on the best chain. Values change only through state_write, which logs
 * what was there, so that a dispatch, a dry run or a block can be taken back; a sealed block leaves
 * a diff, and each account keeps one version per block that changed it. Reading at an old block is
 * a binary search. */
#ifndef DEVCHAIN_STATE_H
#define DEVCHAIN_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chain/codec/scale.h"
#include "map.h"

struct account_rec {
    u128 free;
    uint32_t nonce;
    uint32_t providers; /* 0: the account does not exist */
};

struct account_version {
    uint64_t number;
    struct account_rec rec;
};

struct account {
    uint8_t id[32];
    /* now, at the end of the best chain or in the block that is being built */
    struct account_rec rec;
    struct account_version *versions;
    size_t version_count, version_cap;
    uint64_t mark; /* the block in which it was last put into a diff */
};

struct state_undo {
    struct account *account;
    struct account_rec old;
};

struct state {
    struct map accounts;
    struct state_undo *undo;
    size_t undo_len, undo_cap;
    uint64_t mark;
};

struct state_change {
    struct account *account;
    struct account_rec rec;
};
struct state_diff {
    struct state_change *changes; /* owned; each account once */
    size_t count;
};

void state_init(struct state *s);
void state_done(struct state *s);
struct account *state_account(struct state *s, const uint8_t id[32]); /* made when it is new */
const struct account *state_find(const struct state *s, const uint8_t id[32]);
void state_write(struct state *s, struct account *a, struct account_rec rec);

size_t state_checkpoint(const struct state *s);
void state_rollback(struct state *s, size_t checkpoint);

/* Everything written since the last seal becomes block `number`'s diff. */
void state_seal(struct state *s, uint64_t number, struct state_diff *ret_diff);
/* Take back the last sealed block. */
void state_unwind(struct state *s, uint64_t number, const struct state_diff *diff);
void state_diff_done(struct state_diff *diff);

/* The record at the end of block `number` of the best chain. */
struct account_rec state_at(const struct account *a, uint64_t number);

#endif
