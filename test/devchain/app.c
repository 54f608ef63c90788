/* The running devchain: timers, blocks, waits; see app.h. */
#include "app.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "server.h"
#include "subs.h"

void app_options_default(struct app_options *o)
{
    *o = (struct app_options){
        .block_ms = 500,
        .finality_lag = 2,
        .connections_max = 100,
        .subscriptions_max = 1024,
        .follow_pins_max = 512,
        .request_bytes_max = 15728640,
        .ping_s = 30,
        .chain_name = "txrelay devchain",
    };
    o->core.pool =
        (struct pool_config){8192, 20u << 20, 512, 1u << 20, 1800000, POOL_TYPE_SINGLE_STATE, 128};
    o->core.finality_blocks_max = 512;
    o->core.keep_bytes_max = (size_t)512 << 20;
    o->core.block_extrinsics_max = 5000;
    o->core.runtime = (struct runtime){
        .version = {100, 1},
        .block_hash_count = 2400,
        .ss58_prefix = 42,
        .existential_deposit = 1000000000,
        .fee_base = 100000000,
        .fee_byte = 1000000,
        .block_ref_time_max = 2000000000000,
        .block_proof_size_max = 5u << 20,
        .block_len_max = 5u << 20,
    };
}

/* A dev_waitFor that is not answered yet. */
struct wait {
    struct list node;
    uint64_t conn;
    json_t *id;
    uint64_t blocks, finalized, submits;
};

static bool reached(const struct app *a, const struct wait *w)
{
    return a->core.chain.best->number >= w->blocks &&
           a->core.chain.finalized->number >= w->finalized && a->stats.submit_count >= w->submits;
}

static void wait_free(struct wait *w)
{
    list_remove(&w->node);
    json_decref(w->id);
    free(w);
}

static void answer_wait(struct app *a, struct wait *w)
{
    struct conn *conn = server_conn(a->server, w->conn);
    struct buf out = {0};
    struct call c = {.app = a, .out = &out, .id = w->id};
    call_result(&c, "true");
    if (conn)
        conn_send(conn, out.data, out.len);
    buf_done(&out);
    wait_free(w);
}

static void check_waits(struct app *a)
{
    struct list *next;
    for (struct list *n = a->waits.next; n != &a->waits; n = next) {
        struct wait *w = CONTAINER_OF(n, struct wait, node);
        next = n->next;
        if (reached(a, w))
            answer_wait(a, w);
    }
}

void app_wait(struct app *a, uint64_t conn, const json_t *id, uint64_t blocks, uint64_t finalized,
              uint64_t submits)
{
    struct wait *w = xcalloc(1, sizeof *w);
    *w = (struct wait){.conn = conn,
                       .id = json_deep_copy(id),
                       .blocks = blocks,
                       .finalized = finalized,
                       .submits = submits};
    list_append(&a->waits, &w->node);
    check_waits(a);
}

void app_follow_finality(struct app *a)
{
    uint64_t best = a->core.chain.best->number;
    if (!a->finality_paused && best >= a->options.finality_lag)
        core_finalize(&a->core, best - a->options.finality_lag);
    check_waits(a);
}

void app_author(struct app *a, bool empty)
{
    core_author(&a->core, loop_now_ms(a->loop), loop_wall_ms(), empty);
    app_follow_finality(a);
}

void app_author_burst(struct app *a, size_t count)
{
    core_author_burst(&a->core, loop_now_ms(a->loop), loop_wall_ms(), count);
    app_follow_finality(a);
}

bool app_reorg(struct app *a, const struct core_reorg *r)
{
    if (!core_reorg(&a->core, loop_now_ms(a->loop), loop_wall_ms(), r))
        return false;
    app_follow_finality(a);
    return true;
}

static void on_block_timer(void *arg)
{
    struct app *a = arg;
    loop_timer_at(a->block_timer, loop_now_ms(a->loop) + a->options.block_ms);
    app_author(a, false);
}

void app_schedule(struct app *a)
{
    if (a->paused || !a->options.block_ms)
        loop_timer_stop(a->block_timer);
    else
        loop_timer_at(a->block_timer, loop_now_ms(a->loop) + a->options.block_ms);
    if (!a->paused)
        app_submitted(a);
}

/* One block for all that arrived since; another follows while the pool holds what did not fit. */
static void on_instant(void *arg)
{
    struct app *a = arg;
    size_t before = a->core.pool.ready.count;
    app_author(a, false);
    if (a->core.pool.ready.count && a->core.pool.ready.count < before)
        app_submitted(a);
}

void app_submitted(struct app *a)
{
    check_waits(a);
    if (a->options.instant && !a->paused && a->core.pool.ready.count &&
        !loop_timer_armed(a->instant_timer))
        loop_timer_at(a->instant_timer, loop_now_ms(a->loop) + a->options.instant_delay_ms);
}

void app_metadata_forget(struct app *a)
{
    buf_clear(&a->metadata[0]);
    buf_clear(&a->metadata[1]);
}

static bool may_include(void *arg, const struct tx *tx)
{
    struct app *a = arg;
    if (list_empty(&a->script.rules))
        return true;
    struct script_rule *r = script_tx(&a->script, SCRIPT_INCLUDE, tx);
    return !r || r->action != ACTION_SKIP;
}

static bool verdict(void *arg, const struct tx *tx, struct validity *ret_validity)
{
    struct app *a = arg;
    struct script_rule *r = NULL;
    if (a->verdict) {
        *ret_validity = *a->verdict;
        a->verdict = NULL; /* for the submission only, not for what it promotes */
        return true;
    }
    if (!list_empty(&a->script.rules))
        r = script_tx(&a->script, SCRIPT_VALIDATE, tx);
    if (r && r->action == ACTION_VERDICT)
        *ret_validity = r->verdict;
    return r != NULL;
}

static bool fails(void *arg, const struct tx *tx, struct dispatch_error *ret_error)
{
    struct app *a = arg;
    if (list_empty(&a->script.rules))
        return false;
    const struct script_rule *r = script_tx(&a->script, SCRIPT_DISPATCH, tx);
    if (!r || r->action != ACTION_FAIL)
        return false;
    *ret_error = r->failure;
    return true;
}

uint16_t app_port(const struct app *a)
{
    return server_port(a->server);
}

static void app_free(struct app *a)
{
    loop_task_cancel(&a->broadcasts);
    rpc_delays_done(a);
    subs_late_done(a);
    while (!list_empty(&a->waits))
        wait_free(CONTAINER_OF(list_first(&a->waits), struct wait, node));
    a->block_timer = loop_timer_close(a->block_timer);
    a->instant_timer = loop_timer_close(a->instant_timer);
    core_done(&a->core);
    script_done(&a->script);
    stats_done(&a->stats);
    map_done(&a->sub_ids);
    buf_done(&a->metadata[0]);
    buf_done(&a->metadata[1]);
    free(a);
}

struct app *app_new(struct loop *l, const struct app_options *options, struct err *err)
{
    struct app *a = xcalloc(1, sizeof *a);
    a->options = *options;
    a->loop = l;
    a->rng.state = options->seed ? options->seed : loop_seed(a->loop);
    script_init(&a->script, options->seed);
    stats_init(&a->stats);
    map_init(&a->sub_ids, 16);
    list_init(&a->delays);
    list_init(&a->late);
    list_init(&a->waits);
    for (size_t i = 0; i < ARRAY_LEN(a->subs); i++)
        list_init(&a->subs[i]);
    struct core_callbacks cb = {subs_on_status,
                                subs_on_block,
                                subs_on_finalized,
                                subs_on_runtime,
                                may_include,
                                verdict,
                                fails,
                                a};
    core_init(&a->core, &options->core, &cb);
    core_genesis(&a->core, options->accounts, options->account_count,
                 options->genesis_ms ? options->genesis_ms : loop_wall_ms());
    a->block_timer = loop_timer_new(l, on_block_timer, a);
    a->instant_timer = loop_timer_new(l, on_instant, a);
    a->server = server_new(a, l, err);
    if (!a->server) {
        app_free(a);
        return NULL;
    }
    app_schedule(a);
    return a;
}

struct closing {
    struct app *app;
    void (*cb)(void *arg);
    void *arg;
};

static void on_server_closed(void *arg)
{
    struct closing *c = arg;
    struct closing done = *c;
    free(c);
    app_free(done.app);
    done.cb(done.arg);
}

void app_close(struct app *a, void (*cb)(void *arg), void *arg)
{
    struct closing *c = xmalloc(sizeof *c);
    *c = (struct closing){a, cb, arg};
    loop_timer_stop(a->block_timer);
    loop_timer_stop(a->instant_timer);
    server_close(a->server, on_server_closed, c);
}
