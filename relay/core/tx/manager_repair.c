/* Repair: what is not certain is asked, then mended, lowest nonce first and at most once a beat.
 *
 * A beat is a best block; a chain that makes none for a while is given a slow beat of its own, because a
 * chain may make blocks only when something is sent.
 *
 * Questions are in manager_probe.c; a row is judged only by a probe that began after the row became unsure.
 */
#include <stdlib.h>
#include <string.h>

#include "manager_internal.h"

void manager__unsure(struct manager *m, struct row *row, bool at_once, bool soft)
{
    row->soft = soft;
    line_move(&m->line, row, ROW_UNSURE);
    if (at_once)
        m->probe.now = true;
    else
        m->probe.at_beat = true;
}

static bool era_over(const struct row *row, uint64_t height)
{
    return row->era_death >= 0 && height >= (uint64_t)row->era_death;
}

/* Some pool has it. Bytes whose era has ended are of no use there. `found`: by question or refusal, so that
 * no status will say it. */
void manager__pooled(struct manager *m, struct row *row, bool found)
{
    row->banned = false;
    row->was_pooled = true;
    if (row->nonce == m->probe.scout) {
        m->probe.scout = UINT64_MAX;
        m->probe.scouted = m->probe.now = true;
    }
    if (era_over(row, m->final.seen)) {
        manager__resign(m, row, REASON_ERA);
        return;
    }
    line_move(&m->line, row, ROW_POOLED);
    if (manager__restless(m, row))
        return;
    if (found && row->status != TX_FUTURE && row->status != TX_BROADCAST)
        line_status(&m->line, row, TX_READY, NULL);
}

/* New bytes at the same nonce are always safe: the chain takes one of them (I5). */
void manager__resign(struct manager *m, struct row *row, enum row_reason reason)
{
    manager__late(m, row);
    if (manager__stopped(m, row))
        return;
    if (manager__fixed(row)) {
        manager__signed_again(m, row, reason);
        return;
    }
    row->reason = (uint8_t)reason;
    line_move(&m->line, row, ROW_RESIGN);
}

static enum row_reason stale_bytes(const struct manager *m, const struct row *row)
{
    if (era_over(row, m->chain.best + 1))
        return REASON_ERA;
    if (row->spec_version != m->chain.spec_version)
        return REASON_RUNTIME;
    return row->banned ? REASON_BANNED : REASON_NONE;
}

/* A pool shows only what is ready: a row behind a missing nonce may wait there unseen, and sending it again
 * would ban it (facts: 1013). So the lowest missing nonce goes alone; once a pool has it, the next probe
 * sees what was waiting behind it, and the rest is lost for certain. */
static bool behind_scout(const struct manager *m, const struct row *row)
{
    return row->was_pooled && m->probe.scout < row->nonce && !m->probe.scouted;
}

/* What the probe says about one row. */
static void judge(struct manager *m, struct row *row, uint64_t best_nonce)
{
    bool pooled = row->pool_seen == m->line.probe_seq;
    if (row->nonce < best_nonce) {
        if (row->state != ROW_IN_BLOCK)
            line_move(&m->line, row, ROW_IN_BLOCK);
        return;
    }
    if (pooled) {
        manager__pooled(m, row, true);
        return;
    }
    bool waits = behind_scout(m, row) || row->tried == m->beat.count;
    if (row->nonce < m->probe.scout)
        m->probe.scout = row->nonce;
    enum row_reason reason = stale_bytes(m, row);
    if (reason == REASON_NONE && manager__restless(m, row))
        return;
    if (reason != REASON_NONE) {
        manager__resign(m, row, reason);
    } else if (waits) {
        manager__unsure(m, row, false, false);
    } else {
        row->hold = 0;
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

void manager__judge_all(struct manager *m, uint64_t best_nonce)
{
    uint32_t seq = m->line.probe_seq;
    struct row *row;
    m->probe.scout = lowest_outside(m);
    /* One that waited to be sent again was in some pool all the time. */
    for (uint64_t at = 0; (row = line_first(&m->line, ROW_UNSENT, at)) && row->nonce < best_nonce;
         at = row->nonce + 1)
        line_move(&m->line, row, ROW_IN_BLOCK);
    for (uint64_t at = 0; (row = line_first(&m->line, ROW_UNSURE, at)); at = row->nonce + 1)
        if (row->seq < seq)
            judge(m, row, best_nonce);
    /* A row in a block whose nonce is free again was retracted, said or unsaid. It may have come back to the
     * pool after that was asked, so the next probe judges it. */
    for (uint64_t at = best_nonce; (row = line_first(&m->line, ROW_IN_BLOCK, at)); at = row->nonce + 1)
        if (row->seq < seq && !PLANTED(REORG_MISSED))
            manager__unsure(m, row, true, false);
    m->probe.scouted = false;
}

/* ---- beats ---- */

/* Rows without news for a while: pooled ones are asked about; those in a block are looked at by the same
 * probe's nonce. */
static void old_news(struct manager *m)
{
    struct list *node;
    while ((node = list_first(&m->line.news))) {
        struct row *row = CONTAINER_OF(node, struct row, news);
        if (m->line.blocks - row->news_block < m->config.reprobe_blocks)
            return;
        if (row->state == ROW_POOLED)
            manager__unsure(m, row, true, true);
        else
            line_news(&m->line, row);
        m->probe.now = true;
    }
}

/* An eighth a block: careful near the pool's limit, back at hundreds within some forty blocks. */
static void window_grow(struct manager *m)
{
    m->send.window += 1 + m->send.window / 8;
    if (m->send.window > m->config.window_max)
        m->send.window = m->config.window_max;
}

static bool waits_for_beat(const struct manager *m)
{
    return m->chain.up && m->phase == MANAGER_LEADING &&
           (m->probe.at_beat || m->nonces.rewind || line_count(&m->line, ROW_UNSENT) ||
            line_count(&m->line, ROW_UNSURE) || line_count(&m->line, ROW_RESIGN));
}

void manager__beat(struct manager *m, bool block)
{
    m->beat.count++;
    m->send.gate_shut =
        false; /* GATE_OPEN may have come before the refusal that it answers: ask the gate again */
    if (block) {
        m->line.blocks++;
        backoff_reset(&m->beat.stall);
        if (!m->send.full_this_block)
            window_grow(m);
        m->send.full_this_block = false;
        old_news(m);
        manager__head_beat(m);
    }
    if (m->probe.at_beat || m->nonces.rewind || line_count(&m->line, ROW_UNSURE))
        m->probe.now = true;
    m->probe.at_beat = false;
    m->beat.at = UINT64_MAX;
}

/* The slow beat is armed while something waits for one; a block disarms it. */
void manager__stall_pump(struct manager *m)
{
    if (!waits_for_beat(m))
        m->beat.at = UINT64_MAX;
    else if (m->beat.at == UINT64_MAX)
        m->beat.at = m->now + backoff_next(&m->beat.stall, &m->rng);
}

/* ---- what makes bytes useless ---- */

void manager__runtime(struct manager *m, uint32_t spec_version, uint32_t transaction_version)
{
    if (transaction_version)
        m->chain.transaction_version = transaction_version;
    manager__version_check(m);
    if (spec_version == m->chain.spec_version)
        return;
    m->chain.spec_version = spec_version;
    m->chain.runtime_block = m->chain.best;
    m->chain.runtimes++;
    m->writes.sign_beat = 0;
    struct row *row;
    for (uint64_t at = 0; (row = line_first(&m->line, SET_LIVE, at)); at = row->nonce + 1) {
        if (row->spec_version == spec_version || (row->state != ROW_UNSENT && row->state != ROW_POOLED))
            continue;
        if (row->was_out)
            manager__unsure(m, row, true, false);
        else
            manager__resign(m, row, REASON_RUNTIME); /* no pool ever had it */
    }
}

/* Every block to the end of the era was seen and none holds the row: only new bytes can be included. Rows
 * that are in a block, unsure or unsent meet their era when that state ends. */
void manager__eras(struct manager *m)
{
    struct era_entry e;
    while (line_era_next(&m->line, m->final.seen, &e)) {
        struct row *row = line_at(&m->line, e.nonce);
        if (row && row->state == ROW_POOLED && row->era_death == (int64_t)e.death)
            manager__resign(m, row, REASON_ERA);
    }
}

void manager__chain_back(struct manager *m)
{
    struct list *node, *next;
    for (node = m->line.news.next; node != &m->line.news; node = next) {
        next = node->next;
        struct row *row = CONTAINER_OF(node, struct row, news);
        if (row->state == ROW_POOLED)
            manager__unsure(m, row, true, false); /* another node, or one without its pool */
    }
    m->probe.strange = m->line.rows > 0;
    m->probe.now = true;
}

/* ---- new bytes, fillers ---- */

static bool may_resign(const struct manager *m, const struct row *row)
{
    if (row->refused)
        return false; /* what was said of the old bytes is stored first: it goes into their history */
    return m->beat.count >= row->resign_after || m->chain.runtimes != row->sign_runtime;
}

/* An era is born at a finalized block: while finality lags by a whole period, new bytes would be dead at
 * birth. Nothing is signed until it has caught up. */
bool manager__stillborn(struct manager *m)
{
    if (!m->config.era_period || m->chain.finalized + m->config.era_period > m->chain.best + 2) {
        m->alerted &= ~(unsigned)ALERT_FINALITY;
        return false;
    }
    manager__alert_once(
        m, ALERT_FINALITY, "finality lags: block %llu is finalized, %llu is best, and an era is %u blocks",
        (unsigned long long)m->chain.finalized, (unsigned long long)m->chain.best, m->config.era_period);
    return true;
}

static void signing(struct manager *m, struct row *row, struct batch *b)
{
    uint32_t gap = 1;
    for (unsigned i = RESIGN_EASY; i < row->resigns && gap < RESIGN_GAP_MAX; i++)
        gap *= 2;
    row->resign_after = m->beat.count + gap;
    row->sign_runtime = m->chain.runtimes;
    if (row->resigns < UINT8_MAX)
        row->resigns++;
    manager__batch_put(b, row->nonce);
    line_move(&m->line, row, ROW_SIGNING);
}

static void resign_effect(struct manager *m, const struct row *row, struct manager_row_effect *x)
{
    uint64_t deadline = row->terms ? row->terms->deadline_block : UINT64_MAX;
    *x = (struct manager_row_effect){
        .nonce = row->nonce,
        .id = row->id,
        .filler = row->filler || row->racing,
        .tip =
            PLANTED(FILLER_CHEAP) && row->racing && row->terms ? row->terms->tip : manager__tip_next(m, row),
        .reason = row_reason_text(row->reason),
        .block_number = -1,
    };
    memcpy(x->hash, row->hash, 32);
    if (x->filler) {
        x->era_period = m->config.era_period;
        x->outcome = row->stop->outcome;
        memcpy(x->error, row->stop->reason, sizeof(x->error));
        return;
    }
    x->call = row->bytes + row->bytes_len - row->call_len;
    x->call_len = row->call_len;
    x->guard = row->guard;
    x->era_period = manager__era_period(m, deadline);
    x->deadline_block = deadline == UINT64_MAX ? 0 : deadline;
    if (!x->era_period && deadline != UINT64_MAX)
        x->era_period = ERA_PERIOD_MIN; /* best moved on since it was decided: the next beat ends it */
}

static void resign_pump(struct manager *m)
{
    struct batch *b = &m->writes.batch[MANAGER_WRITE_RESIGN];
    struct row *row = line_first(&m->line, ROW_RESIGN, 0);
    if (m->writes.out[MANAGER_WRITE_RESIGN] || !row || !may_resign(m, row))
        return;
    manager__write_start(m, MANAGER_WRITE_RESIGN);
    struct manager_effect *fx = manager__fx_rows(m, MANAGER_FX_RESIGN, m->config.batch_max);
    fx->number = m->final.seen;
    while (row && fx->count < m->config.batch_max && may_resign(m, row)) {
        resign_effect(m, row, &fx->rows[fx->count++]);
        signing(m, row, b);
        row = line_first(&m->line, ROW_RESIGN, row->nonce + 1);
    }
}

/* Its own bytes may still be included. Fillers in its place may go on living beside another one. */
static bool own_bytes_live(const struct manager *m, const struct row *row)
{
    return row->was_out && m->final.seen < (uint64_t)(row->filler ? row->own_death : row->out_death);
}

/* The lowest row from this nonce on whose filler need not wait for old bytes. */
static struct row *fillable(const struct manager *m, uint64_t from)
{
    struct row *row = line_first(&m->line, ROW_FILL, from);
    while (row && (row->refused || (own_bytes_live(m, row) && !PLANTED(FILL_LIVE)) ||
                   (manager__hole(row) && !manager__hole_ours(m, row))))
        row = line_first(&m->line, ROW_FILL, row->nonce + 1);
    return row;
}

static void fill_pump(struct manager *m)
{
    struct batch *b = &m->writes.batch[MANAGER_WRITE_FILL];
    struct row *row = fillable(m, 0);
    if (m->writes.out[MANAGER_WRITE_FILL] || !row || m->config.keyless)
        return;
    manager__write_start(m, MANAGER_WRITE_FILL);
    struct manager_effect *fx = manager__fx_rows(m, MANAGER_FX_FILL, m->config.batch_max);
    fx->number = m->final.seen;
    for (; row && fx->count < m->config.batch_max; row = fillable(m, row->nonce + 1)) {
        bool stopped = row->reason == REASON_STOP;
        bool told = row->reason == REASON_INVALID && row->note;
        const char *reason = told ? row->note : row_reason_text(row->reason);
        fx->rows[fx->count++] = (struct manager_row_effect){
            .nonce = row->nonce,
            .id = row->id,
            .reason = stopped ? row->stop->reason : reason,
            .outcome = stopped ? row->stop->outcome : "failed",
            .tip = m->account.tip_start < m->account.tip_cap ? m->account.tip_start : m->account.tip_cap,
            .era_period = m->config.era_period,
            .block_number = -1};
        signing(m, row, b);
    }
}

void manager__sign_pump(struct manager *m)
{
    bool wish = line_count(&m->line, ROW_FILL) || line_count(&m->line, ROW_RESIGN);
    if (m->phase != MANAGER_LEADING || !m->chain.up || m->probe.strange || !wish ||
        m->beat.count < m->writes.sign_beat || manager__stands_still(m) || manager__stillborn(m))
        return;
    fill_pump(m);
    resign_pump(m);
}
