/* The effect of a probe, a refusal or a status on a row: unsure, pooled, or lost. Only a probe
 * that began after the row became unsure judges it (probe.c). */
#include "probe.h"
#include "sign.h"

void manager__unsure(struct manager *m, struct row *row, bool at_once, bool tentative)
{
    PRE(!row->end);
    row->tentative = tentative;
    line_move(&m->line, row, ROW_UNSURE);
    if (at_once)
        manager__probe_soon(m);
    else
        manager__probe_at_beat(m);
}

/* Some pool has it. Bytes whose era has ended are of no use there. `found`: by question or
 * refusal, so that no status will say it. */
void manager__pooled(struct manager *m, struct row *row, bool found)
{
    PRE(!row->end && row->bytes);
    row->banned = row->let_go = false;
    row->was_pooled = true;
    if (row->nonce == m->probe.probe_head) {
        m->probe.probe_head = UINT64_MAX;
        m->probe.probe_head_back = true;
        manager__probe_soon(m);
    }
    if (row_era_over(row, m->final.processed)) {
        manager__resign(m, row, REASON_ERA);
        return;
    }
    line_move(&m->line, row, ROW_POOLED);
    if (manager__try_unblock_head(m, row))
        return;
    if (found && row->status != TX_FUTURE && row->status != TX_BROADCAST)
        line_status(&m->line, row, TX_READY, NULL);
}

static enum row_reason stale_bytes(const struct manager *m, const struct row *row)
{
    if (row_era_over(row, m->chain.best + 1))
        return REASON_ERA;
    if (row->spec_version != m->chain.spec_version)
        return REASON_RUNTIME;
    return row->banned ? REASON_BANNED : REASON_NONE;
}

/* A pool shows only what is ready: a row behind a missing nonce may wait there unseen, and
 * sending it again would ban it (error 1013). So the lowest missing nonce goes alone; once a
 * pool has it, the next probe sees what was waiting behind it, and the rest is lost for certain. */
static bool behind_probe_head(const struct manager *m, const struct row *row)
{
    return row->was_pooled && m->probe.probe_head < row->nonce && !m->probe.probe_head_back;
}

/* The result of the probe for one row. */
static void judge(struct manager *m, struct row *row, uint64_t best_nonce)
{
    PRE(row->state == ROW_UNSURE && row->seq < m->line.probe_seq);
    /* Bytes that a node has banned are those that it has seen. Where it tells no pool, they may be
     * in it for as long as they are valid. */
    bool pooled =
        row->last_pool_probe == m->line.probe_seq || (m->probe.pool_untold && row->banned);
    if (row->nonce < best_nonce) {
        if (row->state != ROW_IN_BLOCK)
            line_move(&m->line, row, ROW_IN_BLOCK);
        return;
    }
    if (pooled) {
        manager__pooled(m, row, true);
        return;
    }
    bool waits = behind_probe_head(m, row) || row->submitted_tick == m->chain_tick.count;
    if (row->nonce < m->probe.probe_head)
        m->probe.probe_head = row->nonce;
    enum row_reason reason = stale_bytes(m, row);
    if (m->probe.unread || (reason != REASON_NONE && manager__unborn(m, row->nonce))) {
        /* New bytes are signed right after a probe that looked for the old ones, or not at all. */
        manager__unsure(m, row, false, false);
        return;
    }
    if (reason == REASON_NONE && manager__try_unblock_head(m, row))
        return;
    if (reason != REASON_NONE) {
        manager__resign(m, row, reason);
    } else if (waits) {
        manager__unsure(m, row, false, false);
    } else {
        row->not_before_tick = 0;
        line_move(&m->line, row, ROW_UNSENT);
    }
}

/* The lowest nonce that is on its way to a pool. */
static uint64_t lowest_outside(const struct manager *m)
{
    static const uint8_t states[] = {ROW_UNSENT, ROW_SUBMITTED, ROW_RESIGN, ROW_FILL, ROW_SIGNING};
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        const struct row *row = line_first(&m->line, states[i], 0);
        if (row && row->nonce < lowest)
            lowest = row->nonce;
    }
    return lowest;
}

static void nonce_used(struct manager *m, enum row_state state, uint64_t best_nonce)
{
    struct row *row;
    for (uint64_t at = 0; (row = line_first(&m->line, state, at)) && row->nonce < best_nonce;
         at = row->nonce + 1)
        line_move(&m->line, row, ROW_IN_BLOCK);
}

void manager__nonces_used(struct manager *m, uint64_t best_nonce)
{
    m->probe.used_below = best_nonce;
    nonce_used(m, ROW_UNSENT, best_nonce);
    nonce_used(m, ROW_RESIGN, best_nonce);
}

void manager__judge_all(struct manager *m, uint64_t best_nonce)
{
    PRE(m->phase == MANAGER_LEADING);
    uint32_t seq = m->line.probe_seq;
    struct row *row;
    m->probe.probe_head = lowest_outside(m);
    for (uint64_t at = 0; (row = line_first(&m->line, ROW_UNSURE, at)); at = row->nonce + 1)
        if (row->seq < seq)
            judge(m, row, best_nonce);
    /* A row in a block whose nonce is free again was retracted, said or unsaid. It may have come
     * back to the pool after that was asked, so the next probe judges it. */
    for (uint64_t at = best_nonce; (row = line_first(&m->line, ROW_IN_BLOCK, at));
         at = row->nonce + 1)
        if (row->seq < seq && !PLANTED(REORG_MISSED))
            manager__unsure(m, row, true, false);
    m->probe.probe_head_back = false;
}
