/* The head of the line: the lowest nonce that is in no block yet. When it makes no progress it
 * pays more, and in the end it is given up; a gap that it leaves below pooled rows is measured. */
#include "effects.h"
#include "sign.h"
#include "stop.h"
#include "suspend.h"

struct row *manager__head(const struct manager *m)
{
    static const uint8_t states[] = {ROW_UNSENT, ROW_SUBMITTED, ROW_POOLED, ROW_UNSURE,
                                     ROW_RESIGN, ROW_FILL,      ROW_SIGNING};
    struct row *lowest = NULL;
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        struct row *row = line_first(&m->line, states[i], 0);
        if (row && !row->end && (!lowest || row->nonce < lowest->nonce))
            lowest = row;
    }
    return lowest;
}

/* A pool does not take what pays too little for the chain's blocks out again: only new bytes
 * help. */
static void climb(struct manager *m, struct row *row, uint32_t age)
{
    PRE(!row->end && m->phase == MANAGER_LEADING);
    uint32_t after = m->account.tip_after_blocks;
    if (!after || row->state != ROW_POOLED || age / after <= m->head.steps)
        return;
    m->head.steps = age / after;
    manager__try_outbid(m, row);
}

static void skip(struct manager *m, struct row *row, uint32_t age)
{
    PRE(!row->end && m->phase == MANAGER_LEADING);
    uint32_t after = m->account.skip_after_blocks;
    if (PLANTED(SKIP_NEVER) || !after || age < after || !row->id || row->stop || row->presigned ||
        m->suspension.why != MANAGER_SUSPENSION_NONE)
        return;
    manager__stop(row, "failed", "skipped: it held up the account for %u blocks%s%s", age,
                  row->note ? "; the last refusal: " : "", row->note ? row->note : "");
    manager__stop_now(m, row);
}

/* I6: a nonce gap below pooled rows. Its length is measured; beyond the limit there is one
 * alert. */
static void gap(struct manager *m, const struct row *row)
{
    bool missing = row && row->state != ROW_POOLED && row->state != ROW_SUBMITTED;
    bool open = missing && (line_first(&m->line, ROW_POOLED, row->nonce + 1) ||
                            line_first(&m->line, ROW_UNSURE, row->nonce + 1));
    if (!open) {
        m->head.gap_since = 0;
        return;
    }
    if (!m->head.gap_since) {
        m->head.gap_since = m->line.blocks;
        m->head.gaps++;
    }
    uint32_t age = m->line.blocks - m->head.gap_since;
    if (age > m->head.gap_longest)
        m->head.gap_longest = age;
    if (age == m->config.gap_blocks)
        manager__alert(
            m, "nonce %llu is missing for %u blocks below transactions that wait in the pool%s%s",
            (unsigned long long)row->nonce, age, row->note ? "; the last refusal: " : "",
            row->note ? row->note : "");
}

void manager__head_tick(struct manager *m)
{
    struct row *row = m->phase == MANAGER_LEADING && m->chain.up ? manager__head(m) : NULL;
    uint64_t nonce = row ? row->nonce : UINT64_MAX;
    if (nonce != m->head.nonce) {
        m->head.nonce = nonce;
        m->head.since = m->line.blocks;
        m->head.steps = 0;
    }
    gap(m, row);
    if (!row || manager__blocked(m))
        return;
    uint32_t age = m->line.blocks - m->head.since;
    climb(m, row, age);
    skip(m, row, age);
}
