/* New bytes for a row, and fillers: who needs them, and at what pace they are signed. */
#include <string.h>

#include "admit.h"
#include "base/alloc.h"
#include "effects.h"
#include "ends.h"
#include "sign.h"
#include "stop.h"
#include "suspend.h"

/* New bytes at the same nonce are always safe: the chain takes one of them (I5). */
void manager__resign(struct manager *m, struct row *row, enum row_reason reason)
{
    PRE(!row->end && row->bytes);
    manager__late(m, row);
    if (manager__try_stop(m, row))
        return;
    if (manager__presigned(row)) {
        manager__presigned_retry(m, row, reason);
        return;
    }
    row->reason = (uint8_t)reason;
    line_move(&m->line, row, ROW_RESIGN);
}

/* Every block to the end of the era was seen and none holds the row: only new bytes can be
 * included. Rows that are in a block, unsure or unsent meet their era when that state ends. */
void manager__eras(struct manager *m)
{
    struct era_entry e;
    while (line_era_next(&m->line, m->final.processed, &e)) {
        struct row *row = line_at(&m->line, e.nonce);
        if (row && row->state == ROW_POOLED && row->era_death == (int64_t)e.death)
            manager__resign(m, row, REASON_ERA);
    }
}

static bool may_resign(const struct manager *m, const struct row *row)
{
    if (row->refused)
        return false; /* reports about the old bytes are stored first: they belong to their history
                       */
    if (manager__unborn(m, row->nonce))
        return false;
    if (row->terms && !row->filler && !row->racing &&
        manager__era_waits(m, row->terms->deadline_block))
        return false;
    return m->chain_tick.count >= row->resign_after || m->chain.runtimes != row->sign_runtime;
}

static void signing(struct manager *m, struct row *row, struct batch *b)
{
    PRE(row->state == ROW_RESIGN || row->state == ROW_FILL);
    uint32_t gap = 1;
    for (unsigned i = RESIGN_EASY; i < row->resigns && gap < RESIGN_GAP_MAX; i++)
        gap *= 2;
    row->resign_after = m->chain_tick.count + gap;
    row->sign_runtime = m->chain.runtimes;
    if (row->resigns < UINT8_MAX)
        row->resigns++;
    manager__batch_put(b, row->nonce);
    line_move(&m->line, row, ROW_SIGNING);
}

static void resign_effect(struct manager *m, const struct row *row, struct manager_sign_row *x)
{
    PRE(row->state == ROW_RESIGN && row->bytes);
    uint64_t deadline = row->terms ? row->terms->deadline_block : UINT64_MAX;
    *x = (struct manager_sign_row){
        .nonce = row->nonce,
        .id = row->id,
        .filler = row->filler || row->racing,
        .banned = row->banned,
        .tip = PLANTED(FILLER_CHEAP) && row->racing && row->terms ? row->terms->tip
                                                                  : manager__tip_next(m, row),
        .reason = row_reason_text(row->reason),
    };
    memcpy(x->hash, row->hash, 32);
    if (x->filler) {
        x->era_period = manager__period(m, row->nonce);
        x->outcome = row->stop->outcome;
        memcpy(x->error, row->stop->reason, sizeof(x->error));
        return;
    }
    x->call = row->bytes + row->bytes_len - row->call_len;
    x->call_len = row->call_len;
    x->guard = row->guard;
    x->era_period = manager__era_period(m, row->nonce, deadline);
    x->deadline_block = deadline == UINT64_MAX ? 0 : deadline;
    if (!x->era_period && deadline != UINT64_MAX)
        x->era_period =
            ERA_PERIOD_MIN; /* the best block advanced since the decision: the next tick ends it */
}

/* While a row waited for new bytes its deadline may have come too near. Checked at best blocks,
 * because finality may stall, and at final ones, because a best block that the node may have
 * invented decides nothing until a final block is near it. */
void manager__late_resigns(struct manager *m)
{
    struct row *row;
    for (uint64_t at = 0; (row = line_first(&m->line, ROW_RESIGN, at)); at = row->nonce + 1) {
        manager__late(m, row);
        manager__try_stop(m, row);
    }
}

/* Final blocks up to this one hold no bytes of the row, and a successor need not search them. A
 * block that could not be read may hold former ones, until a nonce behind it is read. */
static uint64_t held_after(const struct manager *m, const struct row *row)
{
    uint64_t searched = manager__searched(m);
    return searched > row->submitted_block ? searched : row->submitted_block;
}

static void sign_from(struct manager_effect *fx, uint64_t block)
{
    if (!fx->sign.count || block < fx->sign.block)
        fx->sign.block = block;
}

static void resign_pump(struct manager *m)
{
    struct batch *b = &m->writes.batch[MANAGER_FX_RESIGN];
    struct row *row = line_first(&m->line, ROW_RESIGN, 0);
    if (m->writes.out[MANAGER_FX_RESIGN] || !row || !may_resign(m, row))
        return;
    struct manager_effect *fx = manager__write(m, MANAGER_FX_RESIGN);
    fx->sign.rows = manager__arena_add(m, xcalloc(m->config.batch_max, sizeof(*fx->sign.rows)));
    while (row && fx->sign.count < m->config.batch_max && may_resign(m, row)) {
        sign_from(fx, held_after(m, row));
        resign_effect(m, row, &fx->sign.rows[fx->sign.count++]);
        signing(m, row, b);
        row = line_first(&m->line, ROW_RESIGN, row->nonce + 1);
    }
}

/* Its own bytes may still be included. Fillers in its place may go on living beside another one. */
static bool own_bytes_live(const struct manager *m, const struct row *row)
{
    return row->was_out &&
           manager__searched(m) < (uint64_t)(row->filler ? row->own_death : row->out_death);
}

/* The lowest row from this nonce on whose filler need not wait for old bytes. A nonce that a final
 * block used needs none: what used it may be the transaction's own bytes. */
static struct row *fillable(const struct manager *m, uint64_t from)
{
    struct row *row = line_first(&m->line, ROW_FILL, from);
    while (row && (row->refused || row->nonce < m->final.nonce || manager__unborn(m, row->nonce) ||
                   (own_bytes_live(m, row) && !PLANTED(FILL_LIVE)) ||
                   (manager__hole(row) && !manager__hole_ours(m, row))))
        row = line_first(&m->line, ROW_FILL, row->nonce + 1);
    return row;
}

static void fill_pump(struct manager *m)
{
    struct batch *b = &m->writes.batch[MANAGER_FX_FILL];
    struct row *row = fillable(m, 0);
    if (m->writes.out[MANAGER_FX_FILL] || !row || m->config.keyless)
        return;
    struct manager_effect *fx = manager__write(m, MANAGER_FX_FILL);
    fx->sign.rows = manager__arena_add(m, xcalloc(m->config.batch_max, sizeof(*fx->sign.rows)));
    for (; row && fx->sign.count < m->config.batch_max; row = fillable(m, row->nonce + 1)) {
        sign_from(fx, held_after(m, row));
        bool stopped = row->reason == REASON_STOP;
        fx->sign.rows[fx->sign.count++] = (struct manager_sign_row){
            .nonce = row->nonce,
            .id = row->id,
            .reason = stopped ? row->stop->reason : row_reason_text(row->reason),
            .outcome = stopped ? row->stop->outcome : "failed",
            .tip = manager__tip_of_filler(m),
            .era_period = manager__period(m, row->nonce)};
        signing(m, row, b);
    }
}

void manager__sign_pump(struct manager *m)
{
    struct sign_view v = {.wanted =
                              line_count(&m->line, ROW_FILL) || line_count(&m->line, ROW_RESIGN),
                          .leading = m->phase == MANAGER_LEADING,
                          .node_up = m->chain.up,
                          .node_unverified = m->probe.node_unverified,
                          .suspended = manager__blocked(m) || manager__cannot_sign(m),
                          .backing_off = m->chain_tick.count < m->writes.sign_after_tick};
    if (sign_next(&v) != SIGN_ROWS || manager__stillborn(m))
        return;
    fill_pump(m);
    resign_pump(m);
}
