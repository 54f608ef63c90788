/* The step: one event changes the state, then the pump turns what is wished and allowed now into
 * effects.
 *
 * See relay/core/tx/manager.h for the contract and state.h for the files. */
#include <stdlib.h>
#include <string.h>

#include "admit.h"
#include "base/alloc.h"
#include "chain.h"
#include "effects.h"
#include "ends.h"
#include "load.h"
#include "nonces.h"
#include "phase.h"
#include "probe.h"
#include "reconcile.h"
#include "sign.h"
#include "stop.h"
#include "submit.h"
#include "suspend.h"

struct manager *manager_new(const struct manager_config *config)
{
    struct manager *m = xcalloc(1, sizeof(*m));
    m->config = *config;
    if (!m->config.window_max)
        m->config.window_max = 256;
    if (!m->config.batch_max)
        m->config.batch_max = 128;
    if (!m->config.unanswered_max)
        m->config.unanswered_max = 64;
    if (!m->config.reprobe_blocks)
        m->config.reprobe_blocks = 5;
    if (!m->config.gap_blocks)
        m->config.gap_blocks = 10;
    if (!m->config.state_batch_max)
        m->config.state_batch_max = 512;
    manager__window_reset(m);
    manager__load_new(m);
    m->probe.backoff = (struct backoff){.base_ms = 250, .cap_ms = 5000};
    m->chain_tick.stall = (struct backoff){.base_ms = STALL_BASE_MS, .cap_ms = STALL_CAP_MS};
    m->chain_tick.silent = (struct backoff){.base_ms = STALL_SILENT_MS, .cap_ms = STALL_CAP_MS};
    m->chain_tick.at = m->probe.at = UINT64_MAX;
    m->line.blocks = m->chain_tick.count = 1;
    manager__suspension_reset(m);
    manager__forget(m);
    return m;
}

struct manager *manager_free(struct manager *m)
{
    if (!m)
        return NULL;
    manager__effects_reset(m);
    line_done(&m->line);
    manager__found_clear(m);
    for (int i = 0; i < MANAGER_WRITE_COUNT; i++)
        free(m->writes.batch[i].nonces);
    free(m->admit.rows);
    free(m->fx.list);
    free(m->fx.garbage);
    free(m);
    return NULL;
}

/* ---- events ---- */

static void on_promoted(struct manager *m, const struct manager_event *ev)
{
    manager__promote(m, ev->epoch);
}

static void on_demoted(struct manager *m, const struct manager_event *ev)
{
    (void)ev;
    manager__forget(m);
    memset(m->writes.out, 0,
           sizeof(m->writes.out)); /* the adapter drops answers of a former leadership */
    m->probe.question = PROBE_NONE;
    manager__load_drop(m);
    manager__chain_forget(m);
    m->fenced = false;
    m->chain_tick.at = m->probe.at = UINT64_MAX;
    m->phases.illegal = m->line.moves.illegal = 0;
    manager__phase(m, MANAGER_IDLE);
}

static void on_gate_open(struct manager *m, const struct manager_event *ev)
{
    (void)ev;
    manager__gate_open(m);
}

static void on_store_back(struct manager *m, const struct manager_event *ev)
{
    (void)ev;
    if (m->phase >= MANAGER_CHAIN_WAIT)
        manager__reload(m, true);
}

static void on_chain_down(struct manager *m, const struct manager_event *ev)
{
    (void)ev;
    manager__chain_down(m);
}

static void on_finalized(struct manager *m, const struct manager_event *ev)
{
    manager__finalized(m, ev->block);
}

static void on_tick(struct manager *m, const struct manager_event *ev)
{
    (void)ev;
    manager__probe_tick(m);
    if (m->now >= m->chain_tick.at)
        manager__chain_tick(m, false);
    manager__silent_tick(m);
}

static void (*const events[])(struct manager *m, const struct manager_event *ev) = {
    [MANAGER_EV_PROMOTED] = on_promoted,
    [MANAGER_EV_DEMOTED] = on_demoted,
    [MANAGER_EV_GATE_OPEN] = on_gate_open,
    [MANAGER_EV_STORE_BACK] = on_store_back,
    [MANAGER_EV_SNAPSHOT] = manager__snapshot,
    [MANAGER_EV_CHAIN_UP] = manager__chain_up,
    [MANAGER_EV_CHAIN_DOWN] = on_chain_down,
    [MANAGER_EV_RUNTIME] = manager__runtime,
    [MANAGER_EV_BEST] = manager__best,
    [MANAGER_EV_FINALIZED] = on_finalized,
    [MANAGER_EV_POOL] = manager__pool_answer,
    [MANAGER_EV_NONCE] = manager__nonce_answer,
    [MANAGER_EV_UNFINAL] = manager__unfinal_answer,
    [MANAGER_EV_OUTBOX] = manager__outbox,
    [MANAGER_EV_REQUESTS] = manager__requests_polled,
    [MANAGER_EV_STORED] = manager__stored,
    [MANAGER_EV_WRITE_FAILED] = manager__write_failed,
    [MANAGER_EV_SUBMIT_REPLY] = manager__reply,
    [MANAGER_EV_STATUS] = manager__watch_status,
    [MANAGER_EV_WATCH_LOST] = manager__watch_lost,
    [MANAGER_EV_TICK] = on_tick,
};

/* The order is the policy. A pump that prepares something for another one comes before it, and
 * what is nearest to its end goes first: a store works through its writes in this order. */
static void (*const pumps[])(struct manager *m) = {
    /* Nothing else is done while rows are loaded. */
    manager__load_pump,
    /* Nothing is asked before the wait after lost commits is over. */
    manager__era_wait_pump,
    /* A probe judges only rows whose state is older than it, so it begins before this step
     * submits any. */
    manager__probe_pump,
    /* Admission waits until the table knows that a suspension began or ended. */
    manager__suspension_pump,
    /* Ends the rows of a former life, which `finish` stores, and sets the next nonce, which
     * `nonce` stores. */
    manager__reborn_pump,
    /* Adopted extrinsics make the manager load again, so they go before writes that would be
     * repeated. A probe of the first load goes before it: what its pool answer finds is adopted
     * too. */
    manager__adopt_pump,
    /* Ends are what applications wait for. */
    manager__finish_pump,
    /* Decides that the next nonce goes back; `nonce` stores it. */
    manager__give_back_pump,
    /* Admission waits until the stored next nonce is right. */
    manager__nonce_pump,
    /* Submits what is committed, lowest nonce first. It turns rows that need new bytes into
     * RESIGN or FILL, which `sign` takes in this step. */
    manager__send_pump,
    /* `send` ends stopped transactions that were never sent. No later event may come to store them:
     * a chain may make blocks only when something is sent. */
    manager__finish_pump,
    /* A refusal is stored before new bytes replace those that were refused. */
    manager__states_pump,
    /* Mends rows before admission adds others above them. */
    manager__sign_pump,
    /* New nonces come after everything that could change the next one or the room that is left. */
    manager__admit_pump,
    /* Sets the deadline of the slow tick, by what all others left waiting. */
    manager__stall_pump,
};

static void pump(struct manager *m)
{
    for (size_t i = 0; i < ARRAY_LEN(pumps) && !manager__illegal(m); i++)
        pumps[i](m);
}

void manager_step(struct manager *m, uint64_t now, const struct manager_event *ev,
                  const struct manager_effect **ret_effects, size_t *ret_count)
{
    PRE(ev->type < ARRAY_LEN(events) && events[ev->type]);
    manager__effects_reset(m);
    m->now = now;
    bool begins = ev->type == MANAGER_EV_PROMOTED || ev->type == MANAGER_EV_DEMOTED;
    if (begins || (m->phase != MANAGER_IDLE && !m->fenced)) {
        events[ev->type](m, ev);
        if (m->phase == MANAGER_IDLE || m->fenced)
            m->fx.count = 0; /* the leadership is over: no more effects */
        else
            pump(m);
        if (manager__illegal(m) && m->phase != MANAGER_IDLE && !m->fenced)
            manager__recover(m);
    }
    *ret_effects = m->fx.list;
    *ret_count = m->fx.count;
}

/* ---- looking at it ---- */

uint64_t manager_deadline(const struct manager *m)
{
    uint64_t at = UINT64_MAX;
    if (m->phase == MANAGER_IDLE || m->fenced)
        return at;
    if (m->phase == MANAGER_LOAD_WAIT)
        return m->load.out || manager__writing(m) ? at : m->load.at;
    if (m->probe.question != PROBE_NONE || manager__probe_may(m))
        at = m->probe.at;
    if (manager__silent_at(m) < at)
        at = manager__silent_at(m);
    return m->chain_tick.at < at ? m->chain_tick.at : at;
}

enum manager_phase manager_phase(const struct manager *m)
{
    return m->phase;
}

struct manager_view manager_view_of(const struct manager *m)
{
    return (struct manager_view){
        .next_nonce = m->line.next,
        .processed = m->final.processed,
        .open = m->line.rows,
        .to_load = manager__to_load(m),
        .unsent = line_count(&m->line, ROW_UNSENT),
        .unsure = line_count(&m->line, ROW_UNSURE),
        .in_block = line_count(&m->line, ROW_IN_BLOCK),
        .window = m->send.window,
        .gap_blocks = m->head.gap_since ? m->line.blocks - m->head.gap_since : 0,
        .gap_longest = m->head.gap_longest,
        .reconciles = m->reconcile.on,
        .gaps = m->head.gaps,
        .wait_blocks = manager__era_wait_left(m),
        .suspension = m->suspension.why,
        .stays = m->life.ordered || m->suspension.version_since != UINT64_MAX,
    };
}

struct manager_moves manager_moved(const struct manager *m)
{
    return (struct manager_moves){.phases = m->phases.made, .rows = m->line.moves.made};
}

void manager_rows_dump(struct buf *out)
{
    row_moves_dump(out);
}

void manager_rows_missing(uint64_t made, struct buf *out)
{
    row_moves_missing(made, out);
}

bool manager_knows(const struct manager *m, const uint8_t hash[32])
{
    return line_by_hash(&m->line, hash) != NULL;
}

void manager_each_hash(const struct manager *m, void (*cb)(void *arg, const uint8_t hash[32]),
                       void *arg)
{
    for (uint64_t nonce = m->line.low; nonce < m->line.next; nonce++) {
        const struct row *row = line_at(&m->line, nonce);
        if (row && row->bytes)
            cb(arg, row->hash);
        for (size_t i = 0; row && i < row->earlier_count; i++)
            cb(arg, row->earlier[i]);
    }
}

bool manager_must_verify(const struct manager *m, const uint8_t hash[32], uint64_t nonce)
{
    uint64_t next = m->load.next_nonce > 0 ? (uint64_t)m->load.next_nonce : 0;
    if (m->line.next > next)
        next = m->line.next;
    bool below = nonce < (m->line.rows ? m->line.low : next);
    return !manager_knows(m, hash) && (!below || m->reconcile.on || m->phase < MANAGER_CHAIN_WAIT);
}
