/* The node: up, down, best blocks, the runtime. */
#include "chain.h"

#include "base/buf.h"
#include "base/heard.h"
#include "effects.h"
#include "probe.h"
#include "reconcile.h"
#include "sign.h"
#include "stop.h"
#include "submit.h"
#include "suspend.h"

static void hear_of(struct manager *m, uint64_t number)
{
    if (!PLANTED(HEIGHT_KEPT) || number > m->chain.best_known)
        m->chain.best_known = number > m->chain.best ? number : m->chain.best;
}

/* By this block, what is on record as used is final everywhere. A node that begins anew, or lags,
 * has fewer blocks than the table tells of. */
static uint64_t final_everywhere(const struct manager *m)
{
    uint64_t heights[] = {m->chain.finalized, m->final.read, m->load.max_submitted,
                          m->reconcile.seen_block};
    uint64_t highest = 0;
    for (size_t i = 0; i < ARRAY_LEN(heights); i++)
        highest = heights[i] > highest ? heights[i] : highest;
    return highest + ERA_PERIOD_MAX;
}

/* The node has fewer final blocks than an earlier answer named. It will reach those that are near;
 * heights far above what was read were invented by a node, and are dropped. */
static void drop_invented(struct manager *m, uint64_t number)
{
    uint64_t read = m->final.read > number ? m->final.read : number;
    /* It began at such a height. */
    bool above =
        m->final.following && (m->final.processed > read || m->final.regular_from > read + 1);
    bool far = !heard_is_near(read, m->chain.finalized);
    if ((!above && !far) || PLANTED(HEIGHT_KEPT))
        return;
    m->chain.finalized = read;
    if (m->life.used_block > final_everywhere(m))
        manager__life_used_by(m, final_everywhere(m)); /* see manager__chain_ready */
    /* Otherwise manager__chain_ready follows, and does what else is due at the start. */
    if (m->final.following && (above || manager__reconcile_skips(m)))
        manager__follow_loaded(m);
}

void manager__chain_up(struct manager *m, const struct manager_event *ev)
{
    bool back = m->phase == MANAGER_LEADING && !m->chain.up;
    m->chain.up = true;
    m->chain_tick.block_at = m->suspension.version_at = m->now;
    m->writes.sign_after_tick = 0;
    if (ev->chain.finalized > m->chain.finalized)
        m->chain.finalized = ev->chain.finalized;
    drop_invented(m, ev->chain.finalized);
    m->chain.best = ev->chain.best;
    hear_of(m, ev->chain.best_known);
    if (!m->chain.spec_version)
        m->chain.spec_version = ev->chain.spec_version;
    manager__runtime(m, ev);
    bool loaded = m->phase == MANAGER_CHAIN_WAIT || m->phase == MANAGER_ERA_WAIT;
    if (loaded && !m->final.following)
        manager__chain_ready(m);
    if (back)
        manager__chain_back(m);
}

void manager__chain_down(struct manager *m)
{
    if (!m->chain.up)
        return;
    m->chain.up = false;
    manager__probe_stop(m);
}

void manager__chain_forget(struct manager *m)
{
    m->chain.up = false;
}

void manager__final_block(struct manager *m, uint64_t number)
{
    if (number > m->chain.finalized)
        m->chain.finalized = number;
}

/* Balancers and nodes tell a head again, and an earlier one after a later one. Only a height above
 * all before is one more block; one far above it was invented, or the node begins anew. */
static bool is_next(struct manager *m, uint64_t number)
{
    uint64_t *highest = &m->chain_tick.highest;
    bool next = number > *highest || !heard_is_near(number, *highest);
    if (next)
        *highest = number;
    return next;
}

void manager__best(struct manager *m, const struct manager_event *ev)
{
    m->chain.best = ev->best.number;
    hear_of(m, ev->best.best_known);
    /* A node that was behind has caught up, and the manager reads no block that would tell it. */
    if (m->phase <= MANAGER_CHAIN_WAIT && ev->best.finalized > m->chain.finalized)
        m->chain.finalized = ev->best.finalized;
    drop_invented(m, ev->best.finalized);
    if (m->phase >= MANAGER_CHAIN_WAIT)
        manager__chain_tick(m, is_next(m, m->chain.best));
}

void manager__chain_ready(struct manager *m)
{
    PRE(m->phase >= MANAGER_CHAIN_WAIT && m->chain.up);
    manager__follow_loaded(m);
    if (m->life.used_block == UINT64_MAX)
        manager__life_used_by(m, final_everywhere(m));
    manager__probe_soon(m);
    manager__version_check(m);
    manager__signing_check(m);
}

static void rows_of_former_runtime(struct manager *m)
{
    PRE(m->chain.runtimes > 0);
    uint32_t spec_version = m->chain.spec_version;
    struct row *row;
    for (uint64_t at = 0; (row = line_first(&m->line, SET_LIVE, at)); at = row->nonce + 1) {
        if (row->spec_version == spec_version ||
            (row->state != ROW_UNSENT && row->state != ROW_POOLED))
            continue;
        if (row->was_out)
            manager__unsure(m, row, true, false);
        else
            manager__resign(m, row, REASON_RUNTIME); /* no pool ever had it */
    }
}

void manager__runtime(struct manager *m, const struct manager_event *ev)
{
    uint32_t spec_version = ev->chain.spec_version;
    if (ev->chain.transaction_version)
        m->chain.transaction_version = ev->chain.transaction_version;
    manager__version_check(m);
    m->writes.sign_after_tick = 0;
    bool changed = spec_version != m->chain.spec_version;
    if (changed) {
        m->chain.spec_version = spec_version;
        m->chain.runtimes++;
    }
    m->chain.tip_max = ev->chain.tip_max;
    plain_text(m->chain.unsupported, sizeof(m->chain.unsupported),
               ev->chain.unsupported ? ev->chain.unsupported : "");
    manager__signing_check(m);
    if (changed)
        rows_of_former_runtime(m);
}

void manager__chain_back(struct manager *m)
{
    PRE(m->phase == MANAGER_LEADING && m->chain.up);
    struct list *node, *next;
    for (node = m->line.activity.next; node != &m->line.activity; node = next) {
        next = node->next;
        struct row *row = CONTAINER_OF(node, struct row, activity);
        if (row->state == ROW_POOLED)
            manager__unsure(m, row, true, false); /* another node, or one without its pool */
    }
    m->probe.node_unverified = m->line.rows > 0;
    manager__probe_soon(m);
}

/* ---- the pace of repair ---- */

/* Uncertain rows are probed, then repaired, lowest nonce first and at most once per tick. A tick is
 * a best block. If the chain makes none for a while, a timer produces slow ticks, because a chain
 * may make blocks only when something is sent. */

/* Rows without news for a while: pooled ones are probed; the nonce of the same probe checks
 * those in a block. */
static void probe_inactive(struct manager *m)
{
    struct list *node;
    while ((node = list_first(&m->line.activity))) {
        struct row *row = CONTAINER_OF(node, struct row, activity);
        if (m->line.blocks - row->activity_block < m->config.reprobe_blocks)
            return;
        if (row->state == ROW_POOLED)
            manager__unsure(m, row, true, true);
        else
            line_news(&m->line, row);
        manager__probe_soon(m);
    }
}

/* When rows without news are asked about although no block came: a chain that makes one when a pool
 * has something for it makes none after the pool has lost ours. */
uint64_t manager__silent_at(const struct manager *m)
{
    const struct chain_ticks *t = &m->chain_tick;
    bool asks = m->chain.up && m->phase == MANAGER_LEADING && list_first(&m->line.activity);
    uint64_t at = t->block_at + STALL_SILENT_MS;
    return !asks ? UINT64_MAX : t->silent_next > at ? t->silent_next : at;
}

void manager__silent_tick(struct manager *m)
{
    struct list *node, *next;
    if (m->now < manager__silent_at(m))
        return;
    for (node = m->line.activity.next; node != &m->line.activity; node = next) {
        next = node->next;
        struct row *row = CONTAINER_OF(node, struct row, activity);
        if (row->state == ROW_POOLED)
            manager__unsure(m, row, true, true);
    }
    manager__probe_soon(m); /* also for those in a block that was retracted without a word */
    m->chain_tick.silent_next = m->now + backoff_next(&m->chain_tick.silent, &m->rng);
}

/* What the next tick tries again, or asks again. Each of these is here: a chain that makes a block
 * only when there is an extrinsic for it (instant sealing, blocks on demand) makes none while this
 * account waits for one. */
static bool waits_for_beat(const struct manager *m)
{
    return m->chain.up && m->phase == MANAGER_LEADING &&
           (m->probe.at_tick || m->nonces.rewind || m->send.gate_shut ||
            m->writes.sign_after_tick > m->chain_tick.count ||
            m->suspension.version_since != UINT64_MAX || line_count(&m->line, ROW_UNSENT) ||
            line_count(&m->line, ROW_UNSURE) || line_count(&m->line, ROW_RESIGN));
}

void manager__chain_tick(struct manager *m, bool block)
{
    m->chain_tick.count++;
    if (m->suspension.version_since != UINT64_MAX && m->chain.up) {
        manager__fx(m, MANAGER_FX_RECHECK_RUNTIME);
        manager__version_check(m);
    }
    /* GATE_OPEN may have come before the refusal that it answers: ask the gate again. */
    manager__gate_open(m);
    if (block) {
        m->chain_tick.block_at = m->now;
        m->line.blocks++;
        backoff_reset(&m->chain_tick.stall);
        backoff_reset(&m->chain_tick.silent);
        m->chain_tick.silent_next = 0;
        manager__window_block(m);
        probe_inactive(m);
        manager__head_tick(m);
        manager__late_resigns(m);
    }
    if (m->probe.at_tick || m->nonces.rewind || line_count(&m->line, ROW_UNSURE))
        manager__probe_soon(m);
    m->probe.at_tick = false;
    m->chain_tick.at = UINT64_MAX;
}

/* The slow tick is armed while something waits for one; a block disarms it. */
void manager__stall_pump(struct manager *m)
{
    if (!waits_for_beat(m) || PLANTED(BLOCKS_ONLY))
        m->chain_tick.at = UINT64_MAX;
    else if (m->chain_tick.at == UINT64_MAX)
        m->chain_tick.at = m->now + backoff_next(&m->chain_tick.stall, &m->rng);
}
