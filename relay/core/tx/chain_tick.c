/* The pace of repair: uncertain rows are probed, then repaired, lowest nonce first and at most once
 * per tick.
 *
 * A tick is a best block. If the chain makes none for a while, a timer produces slow ticks,
 * because a chain may make blocks only when something is sent. */
#include "manager_internal.h"

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

static bool waits_for_beat(const struct manager *m)
{
    return m->chain.up && m->phase == MANAGER_LEADING &&
           (m->probe.at_tick || m->nonces.rewind || line_count(&m->line, ROW_UNSENT) ||
            line_count(&m->line, ROW_UNSURE) || line_count(&m->line, ROW_RESIGN));
}

void manager__chain_tick(struct manager *m, bool block)
{
    m->chain_tick.count++;
    if (m->chain.version_since != UINT64_MAX && m->chain.up)
        manager__fx(m, MANAGER_FX_RECHECK_RUNTIME);
    m->send.gate_shut =
        false; /* GATE_OPEN may have come before the refusal that it answers: ask the gate again */
    if (block) {
        m->chain_tick.block_at = m->now;
        m->line.blocks++;
        backoff_reset(&m->chain_tick.stall);
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
    if (!waits_for_beat(m))
        m->chain_tick.at = UINT64_MAX;
    else if (m->chain_tick.at == UINT64_MAX)
        m->chain_tick.at = m->now + backoff_next(&m->chain_tick.stall, &m->rng);
}
