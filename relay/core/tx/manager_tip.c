/* What an attempt pays, and when it is to pay more: the account's policy, an application's bump, and the head
 * of the line that makes no progress. A pool replaces bytes at a nonce only by bytes of a higher priority
 * (facts: replacement), so every raise is at least one unit.
 *
 * Terms are kept only for rows that have any: a million rows without tips cost nothing for them. */
#include <stdlib.h>

#include "manager_internal.h"

static u128 lesser(u128 a, u128 b)
{
    return a < b ? a : b;
}

struct row_terms *manager__terms(struct row *row)
{
    if (row->terms)
        return row->terms;
    row->terms = xcalloc(1, sizeof(*row->terms));
    row->terms->max_tip = MANAGER_NO_CAP;
    row->terms->deadline_block = UINT64_MAX;
    return row->terms;
}

static u128 cap_of(const struct manager *m, u128 max_tip)
{
    return PLANTED(TIP_UNCAPPED) ? MANAGER_NO_CAP : lesser(max_tip, m->account.tip_cap);
}

u128 manager__tip_first(const struct manager *m, const struct manager_outbox_row *o)
{
    return lesser(o->has_tip ? o->tip : m->account.tip_start,
                  cap_of(m, o->has_max_tip ? o->max_tip : MANAGER_NO_CAP));
}

/* What was asked of the next attempt; a cap that was lowered meanwhile counts. */
u128 manager__tip_next(const struct manager *m, const struct row *row)
{
    const struct row_terms *t = row->terms;
    if (!t)
        return 0;
    return lesser(t->tip > t->want ? t->tip : t->want, cap_of(m, t->max_tip));
}

bool manager__tip_short(const struct manager *m, const struct row *row)
{
    return row->terms && manager__tip_next(m, row) > row->terms->tip;
}

void manager__tip_paid(struct row *row, u128 tip)
{
    if (row->terms || tip)
        manager__terms(row)->tip = tip;
}

/* New bytes of its own need an era that ends by its deadline. */
static bool can_sign(const struct manager *m, const struct row *row)
{
    return row->filler || !row->terms || row->terms->deadline_block == UINT64_MAX ||
           manager__era_period(m, row->terms->deadline_block);
}

bool manager__outbid(struct manager *m, struct row *row)
{
    if (!m->account.tip_after_blocks || manager__fixed(row) || !can_sign(m, row) ||
        !manager__tip_raise(m, row))
        return false;
    manager__resign(m, row, REASON_FEE);
    return true;
}

bool manager__tip_raise(struct manager *m, struct row *row)
{
    const struct manager_account *a = &m->account;
    u128 tip = row->terms ? row->terms->tip : 0;
    u128 cap = cap_of(m, row->terms ? row->terms->max_tip : MANAGER_NO_CAP);
    u128 step = tip / 100 * a->tip_step_percent + tip % 100 * a->tip_step_percent / 100;
    if (step < a->tip_step)
        step = a->tip_step;
    if (!step)
        step = 1;
    if (tip >= cap)
        return false;
    manager__terms(row)->want = step > cap - tip ? cap : tip + step;
    return true;
}

/* Somebody asked: the pace that keeps repair from a hot loop is not for that. */
void manager__sign_soon(struct manager *m, struct row *row)
{
    row->resigns = 0;
    if (row->resign_after > m->beat.count)
        row->resign_after = m->beat.count;
}

void manager__bump(struct manager *m, const struct manager_stop *s)
{
    struct row *row = line_at(&m->line, s->nonce);
    if (!row || row->id != s->id || !row->id || row->end || manager__fixed(row))
        return;
    if (PLANTED(BUMP_FORGOTTEN) && row->submitted_block <= m->load.max_submitted)
        return;
    struct row_terms *t = manager__terms(row);
    if (s->tip > t->want)
        t->want = s->tip;
    manager__sign_soon(m, row);
    if (row->state == ROW_UNSENT || row->state == ROW_POOLED)
        manager__restless(m, row);
}

/* A row that a pool has, or that could be sent: does it want other bytes all the same? */
bool manager__restless(struct manager *m, struct row *row)
{
    if (row->stop && !row->filler && manager__race(m, row))
        return true;
    if (manager__fixed(row) || !manager__tip_short(m, row) || !can_sign(m, row))
        return false;
    manager__resign(m, row, REASON_FEE);
    return true;
}

/* ---- the head of the line ---- */

/* The lowest nonce that is in no block yet. */
static struct row *head(const struct manager *m)
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

/* A pool does not take what pays too little for the chain's blocks out again: only new bytes help. */
static void climb(struct manager *m, struct row *row, uint32_t age)
{
    uint32_t after = m->account.tip_after_blocks;
    if (!after || row->state != ROW_POOLED || age / after <= m->head.steps)
        return;
    m->head.steps = age / after;
    manager__outbid(m, row);
}

static void skip(struct manager *m, struct row *row, uint32_t age)
{
    uint32_t after = m->account.skip_after_blocks;
    if (PLANTED(SKIP_NEVER) || !after || age < after || !row->id || row->stop || row->fixed ||
        m->hold.why != MANAGER_HOLD_NONE)
        return;
    manager__stop(row, "failed", "skipped: it held up the account for %u blocks%s%s", age,
                  row->note ? "; the last refusal: " : "", row->note ? row->note : "");
    manager__stop_now(m, row);
}

/* I6: a nonce that no pool has, below others that wait for it there. Its length is measured; what is longer
 * than the bound is told, once. */
static void gap(struct manager *m, const struct row *row)
{
    bool missing = row && row->state != ROW_POOLED && row->state != ROW_SUBMITTED;
    bool open = missing && (line_first(&m->line, ROW_POOLED, row->nonce + 1) ||
                            line_first(&m->line, ROW_UNSURE, row->nonce + 1));
    if (!open) {
        m->head.gap_since = 0;
        return;
    }
    if (!m->head.gap_since)
        m->head.gap_since = m->line.blocks;
    uint32_t age = m->line.blocks - m->head.gap_since;
    if (age > m->head.gap_longest)
        m->head.gap_longest = age;
    if (age == m->config.gap_blocks)
        manager__alert(m, "nonce %llu is missing for %u blocks below transactions that wait in the pool%s%s",
                       (unsigned long long)row->nonce, age, row->note ? "; the last refusal: " : "",
                       row->note ? row->note : "");
}

void manager__head_beat(struct manager *m)
{
    struct row *row = m->phase == MANAGER_LEADING && m->chain.up ? head(m) : NULL;
    uint64_t nonce = row ? row->nonce : UINT64_MAX;
    if (nonce != m->head.nonce) {
        m->head.nonce = nonce;
        m->head.since = m->line.blocks;
        m->head.steps = 0;
    }
    gap(m, row);
    if (!row || manager__stands_still(m))
        return;
    uint32_t age = m->line.blocks - m->head.since;
    climb(m, row, age);
    skip(m, row, age);
}
