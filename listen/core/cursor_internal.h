/* Private to listen/core/cursor*.c: the cursor's data. */
#ifndef LISTEN_CURSOR_INTERNAL_H
#define LISTEN_CURSOR_INTERNAL_H

#include "base/table.h"

#include "base/list.h"
#include "base/plant.h"
#include "base/tx.h"
#include "listen/core/cursor.h"

enum { STATE_LEN = 24 };

struct place {
    int32_t account;
    int32_t zero; /* no padding: it is a hash key */
    int64_t nonce;
};

/* A pending row, or one that ended and is looked up. */
struct known {
    UT_hash_handle by_place, by_id; /* by_id: id != 0 only */
    struct place place;
    int64_t id;
    int64_t updated_us;
    int64_t block_number;
    uint32_t mark;  /* the last scan that had it */
    bool confirmed; /* a scan has had it */
    bool has_block;
    uint8_t hash[32], block_hash[32];
    char state[STATE_LEN];
    char trace[TX_TRACE_SIZE];
};

/* A look-up of an ended row. `told` false: the row was never delivered. */
struct lookup {
    UT_hash_handle hh;
    struct place key; /* as in struct told */
    struct list node;
    struct known row;
    bool told;
    bool hint;               /* a session that is no relay's notified it */
    char outcome[STATE_LEN]; /* as notified; "": it disappeared, perhaps to the outbox */
    bool asked;              /* it is in the query in flight; those come first in the list */
};

/* A delivered end or removal: by id, fillers by place. */
struct told {
    UT_hash_handle hh;
    struct list node;   /* in order of delivery */
    struct place place; /* of a transaction: {0, 0, id} */
    int64_t at_us;      /* finished, or of the last status before it was removed */
    bool removed;
};

struct cursor {
    struct cursor_config config;
    int32_t only_account;
    int64_t only_id;
    enum cursor_state state;
    struct known *places, *ids;
    size_t count, unconfirmed;
    uint32_t mark;
    int64_t floor_us;    /* rows that finished before this are not requested */
    int64_t position_us; /* scanned up to this position; 0: never */
    int64_t begun_us;
    struct list lookups; /* of struct lookup */
    struct lookup *lookup_keys;
    bool looking;
    size_t hint_count; /* look-ups that are hints */
    bool hints_closed; /* one was false: until the next scan the others are left to it */
    struct cursor_lookup *asked;
    size_t asked_count;
    struct told *told;
    struct list delivered_order;
    size_t delivered_count;
    struct cursor_effect *effects;
    size_t effect_count, effect_cap;
    struct list spent; /* lookups whose rows the effects of this step point to */
};

/* ---- cursor_rows.c ---- */

struct known *cursor__at(struct cursor *c, int32_t account, int64_t nonce);
struct known *cursor__with_id(struct cursor *c, int64_t id); /* 0: NULL */
struct known *cursor__learn(struct cursor *c, const struct listen_event *row, bool confirmed);
void cursor__confirm(struct cursor *c, struct known *k);
void cursor__update(struct known *k, const struct listen_event *row);
bool cursor__same(const struct known *k, const struct listen_event *row);
void cursor__forget(struct cursor *c, struct known *k);

/* Removes the row from the pending ones and looks it up. k NULL: only `row` is known. */
void cursor__ask(struct cursor *c, struct known *k, const struct listen_event *row);
/* Looks up an end of which a session that is no relay's notified. */
void cursor__ask_hint(struct cursor *c, const struct listen_event *row);
struct lookup *cursor__lookup_of(struct cursor *c, int32_t account, int64_t nonce, int64_t id);
void cursor__lookup_drop(struct cursor *c, struct lookup *l); /* freed when the next step begins */
void cursor__free_spent(struct cursor *c);

bool cursor__was_delivered(struct cursor *c, const struct listen_event *row); /* its end */
bool cursor__is_past(struct cursor *c,
                     const struct listen_event *row); /* a status from before that */
void cursor__remember(struct cursor *c, const struct listen_event *row, bool removed);
void cursor__forget_delivered(struct cursor *c, int64_t before_us);

/* The stored state of a row, as an event. */
struct listen_event cursor__event_of(const struct known *k, enum listen_kind kind);

#endif
