/* What an attempt pays, and when it is to pay more: the account's policy, an application's bump,
 * and (head.c) the head of the line that makes no progress. A pool replaces bytes at a nonce only
 * by bytes of a higher priority, so every raise is at least one unit.
 *
 * Terms are kept only for rows that have any: a million rows without tips cost nothing for them. */
#include "base/alloc.h"
#include "sign.h"
#include "stop.h"

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
    u128 cap = PLANTED(TIP_UNCAPPED) ? MANAGER_NO_CAP : lesser(max_tip, m->account.tip_cap);
    return m->chain.tip_max ? lesser(cap, m->chain.tip_max) : cap;
}

u128 manager__tip_of_filler(const struct manager *m)
{
    return lesser(m->account.tip_start, cap_of(m, MANAGER_NO_CAP));
}

u128 manager__tip_first(const struct manager *m, const struct manager_outbox_row *o)
{
    return lesser(o->has_tip ? o->tip : m->account.tip_start,
                  cap_of(m, o->has_max_tip ? o->max_tip : MANAGER_NO_CAP));
}

/* The tip requested for the next attempt, limited by the present cap. */
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

bool manager__may_sign(const struct manager *m, const struct row *row)
{
    return row->filler || !row->terms || row->terms->deadline_block == UINT64_MAX ||
           manager__era_period(m, row->nonce, row->terms->deadline_block);
}

bool manager__try_outbid(struct manager *m, struct row *row)
{
    PRE(!row->end && row->bytes);
    if (!m->account.tip_after_blocks || manager__presigned(row) || !manager__may_sign(m, row) ||
        !manager__try_raise_tip(m, row))
        return false;
    manager__resign(m, row, REASON_FEE);
    return true;
}

bool manager__try_add_tip(const struct manager *m, struct row *row, u128 more)
{
    PRE(!row->end && more);
    u128 tip = manager__tip_of(row);
    u128 cap = cap_of(m, row->terms ? row->terms->max_tip : MANAGER_NO_CAP);
    if (tip >= cap)
        return false;
    manager__terms(row)->want = more > cap - tip ? cap : tip + more;
    return true;
}

bool manager__try_raise_tip(struct manager *m, struct row *row)
{
    const struct manager_account *a = &m->account;
    u128 tip = manager__tip_of(row);
    u128 step = tip / 100 * a->tip_step_percent + tip % 100 * a->tip_step_percent / 100;
    if (step < a->tip_step)
        step = a->tip_step;
    return manager__try_add_tip(m, row, step ? step : 1);
}

/* Explicit request: skip the re-signing back-off. */
void manager__sign_soon(struct manager *m, struct row *row)
{
    row->resigns = 0;
    if (row->resign_after > m->chain_tick.count)
        row->resign_after = m->chain_tick.count;
}

void manager__bump(struct manager *m, const struct tx_stop *s)
{
    struct row *row = line_at(&m->line, s->nonce);
    if (!row || row->id != s->id || !row->id || row->end || manager__presigned(row))
        return;
    if (PLANTED(BUMP_FORGOTTEN) && row->submitted_block <= m->load.max_submitted)
        return;
    struct row_terms *t = manager__terms(row);
    if (s->tip > t->want)
        t->want = s->tip;
    manager__sign_soon(m, row);
    if (row->state == ROW_UNSENT || row->state == ROW_POOLED)
        manager__try_unblock_head(m, row);
}

/* A row that a pool has, or that could be sent: does it want other bytes all the same? */
bool manager__try_unblock_head(struct manager *m, struct row *row)
{
    PRE(!row->end && row->bytes);
    if (row->stop && !row->filler && manager__try_replace(m, row))
        return true;
    if (manager__presigned(row) || !manager__tip_short(m, row) || !manager__may_sign(m, row))
        return false;
    manager__resign(m, row, REASON_FEE);
    return true;
}
