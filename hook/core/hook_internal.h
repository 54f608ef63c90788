/* Private to hook/core. */
#ifndef HOOK_CORE_INTERNAL_H
#define HOOK_CORE_INTERNAL_H

#include "base/list.h"
#include "base/rng.h"
#include "base/sm.h"
#include "hook/core/hook.h"

struct hook_lane {
    struct list node;
    uint64_t id;
    char webhook[HOOK_NAME_MAX];
    int32_t account;
    enum hook_state state;
    struct hook_row *rows;
    size_t count, at; /* rows[at] is the one that is sent */
    uint64_t *taken;
    size_t taken_count;
    uint64_t failed_number; /* 0: none */
    uint64_t delay_ms, again_ms;
    bool dead;
};

struct hook_core {
    struct hook_config config;
    struct rng rng;
    struct list lanes; /* in the order of their creation, so READY ones are served in turn */
    uint64_t last_id;
    size_t sending;
    bool asking, draining;
    uint64_t ask_ms; /* when to ask next */
    struct hook_counts counts;
    struct sm_trace trace;
    char bug[SM_BUG_MAX]; /* of the last step; "": none */
    struct hook_effect *effects;
    size_t effect_count, effect_room;
};

/* hook_table.c: every change of a state; SM_OUTSIDE: creation and end */
void hook__move(struct hook_core *h, unsigned from, unsigned to);
void hook__recover(struct hook_core *h); /* at the end of a step: of moves that it does not have */

#endif
