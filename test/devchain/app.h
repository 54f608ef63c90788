/* The running devchain: the core, the clock that makes blocks, and the door of server.c. Private to
 * the program's files. */
#ifndef DEVCHAIN_APP_H
#define DEVCHAIN_APP_H

#include <jansson.h>

#include "base/rng.h"
#include "core.h"
#include "loop/loop.h"
#include "script.h"
#include "stats.h"

struct server;
struct conn;

struct app_options {
    uint16_t port;
    uint32_t block_ms; /* 0: on command only */
    bool instant;      /* a block soon after a submission */
    uint32_t instant_delay_ms;
    uint64_t finality_lag;
    bool chopsticks_shapes;
    bool deny_unsafe;
    bool newer_rpc; /* also archive_v1, chainHead_v1, transaction_v1 */
    uint32_t connections_max, subscriptions_max;
    size_t request_bytes_max;
    uint32_t subscription_buffer; /* items of one subscription that a slow reader may leave unread;
                                     0: any */
    uint32_t follow_pins_max;     /* blocks that a chainHead_v1_follow may keep pinned */
    uint32_t ping_s;
    uint64_t seed;
    uint64_t genesis_ms; /* 0: now */
    const char *chain_name;
    struct core_config core;
    struct core_change *accounts; /* genesis */
    size_t account_count;
};

struct app {
    struct app_options options;
    struct loop *loop;
    struct core core;
    struct script script;
    struct stats stats;
    struct server *server;
    struct loop_timer *block_timer, *instant_timer;
    bool paused;
    bool finality_paused;
    bool pool_blind_nonce; /* system_accountNextIndex ignores the pool */
    bool silent_upgrade;   /* runtime version subscribers are not told */
    struct rng rng;
    struct list subs[10]; /* by enum sub_kind, those that hear of every block */
    struct loop_task broadcasts;
    uint64_t operations;      /* of chainHead_v1, ever */
    struct map sub_ids;       /* 16 characters -> sub */
    struct buf metadata[2];   /* V14, V15 as hex JSON strings; built when first asked for */
    struct validity *verdict; /* scripted, for the submission at work */
    struct list delays;       /* answers that a script keeps back */
    struct list late;         /* statuses that a script keeps back */
    struct list waits;        /* dev_waitFor */
};

/* options: copied, its accounts borrowed until app_new returns. NULL: the port cannot be had (see
 * err). */
struct app *app_new(struct loop *l, const struct app_options *options, struct err *err);
uint16_t app_port(const struct app *a);
/* Closes every connection and handle; cb once when the loop has let go of all, and a is freed. */
void app_close(struct app *a, void (*cb)(void *arg), void *arg);

void app_options_default(struct app_options *o);

/* Blocks by command or timer; finality follows by the lag. */
void app_author(struct app *a, bool empty);
void app_author_burst(struct app *a, size_t count);
bool app_reorg(struct app *a, const struct core_reorg *r);
void app_submitted(struct app *a); /* something entered the pool: an instant chain makes a block */
void app_schedule(struct app *a);  /* after block_ms or paused changed */
void app_follow_finality(struct app *a);
void app_wait(struct app *a, uint64_t conn, const json_t *id, uint64_t blocks, uint64_t finalized,
              uint64_t submits);
void app_metadata_forget(struct app *a); /* another runtime */

#endif
