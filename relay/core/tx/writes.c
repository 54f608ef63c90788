/* What the store answered. One write of a kind is in flight at a time; any outcome that is not
 * known, and any refusal that cannot be explained, ends in reading the table again. */
#include <stdlib.h>
#include <string.h>

#include "admit.h"
#include "base/alloc.h"
#include "base/error.h"
#include "effects.h"
#include "ends.h"
#include "load.h"
#include "nonces.h"
#include "probe.h"
#include "reconcile.h"
#include "sign.h"
#include "submit.h"
#include "suspend.h"

struct manager_effect *manager__write(struct manager *m, enum manager_effect_type write)
{
    PRE(write < MANAGER_WRITE_COUNT);
    INVARIANT(!m->writes.out[write]);
    m->writes.out[write] = true;
    m->writes.batch[write].count = 0;
    return manager__fx(m, write);
}

void manager__batch_put(struct batch *b, uint64_t nonce)
{
    GROW(b->nonces, b->count, b->cap);
    b->nonces[b->count++] = nonce;
}

bool manager__writing(const struct manager *m)
{
    for (int i = 0; i < MANAGER_WRITE_COUNT; i++)
        if (m->writes.out[i])
            return true;
    return false;
}

static void lost(struct manager *m)
{
    m->fenced = true; /* DEMOTED follows; until then there are no effects */
}

/* Back to where it came from. Its pace stays as it is. */
static void unsigned_row(struct manager *m, struct row *row, bool fill)
{
    PRE(row && row->state == ROW_SIGNING);
    if (row->end)
        line_move(&m->line, row, ROW_ENDING);
    else if (fill)
        line_move(&m->line, row, ROW_FILL);
    else
        manager__resign(m, row, (enum row_reason)row->reason);
}

static bool signs(enum manager_effect_type write)
{
    return write == MANAGER_FX_ADMIT || write == MANAGER_FX_RESIGN || write == MANAGER_FX_FILL;
}

static void not_admitted(struct manager *m)
{
    if (m->admit.presigned)
        manager__probe_soon(m); /* a hole that was to be closed is there again */
    manager__admit_over(m);
    manager__chain_nonce(m, m->final.nonce,
                         "in a finalized block"); /* what was put off for these rows */
}

/* The adapter could not sign: no node, one that knows less than the one before it, or a chain that
 * does not take such a signature. Nothing was written, so nothing need be read again; it is tried
 * again in the next tick, or by what changes the node. */
static void not_signed(struct manager *m, enum manager_effect_type write)
{
    PRE(signs(write));
    const struct batch *b = &m->writes.batch[write];
    m->writes.sign_after_tick = m->chain_tick.count + 1;
    m->writes.unsigned_since_stored = true;
    if (write == MANAGER_FX_ADMIT) {
        not_admitted(m);
        return;
    }
    for (size_t i = 0; i < b->count; i++)
        unsigned_row(m, line_at(&m->line, b->nonces[i]), write == MANAGER_FX_FILL);
    if (m->final.known)
        manager__consumed(m, m->final.nonce, NULL);
}

void manager__write_failed(struct manager *m, const struct manager_event *ev)
{
    if (err_class(ev->write_failed.code) == ERR_CLASS_LOST_LEADERSHIP) {
        lost(m);
        return;
    }
    if (ev->write_failed.write == MANAGER_FX_LOAD) {
        manager__load_failed(m, ev->write_failed.code);
        return;
    }
    if (!m->writes.out[ev->write_failed.write])
        return;
    m->writes.out[ev->write_failed.write] = false;
    if (m->phase == MANAGER_LOAD_WAIT)
        return; /* everything is being read again already */
    const char *why = ev->write_failed.not_signed;
    if (signs(ev->write_failed.write) && (why || ev->write_failed.code == ERR_NET)) {
        not_signed(m, ev->write_failed.write);
        if (why && err_class(ev->write_failed.code) != ERR_CLASS_RETRY)
            manager__signing_refused(m, why);
        return;
    }
    manager__suspension_unstored(m, ev->write_failed.write);
    bool undone = ev->write_failed.code == ERR_DB_CONFLICT ||
                  (PLANTED(UNKNOWN_FAILED) && ev->write_failed.code == ERR_DB_UNKNOWN_OUTCOME);
    if (ev->write_failed.write == MANAGER_FX_ADMIT && undone &&
        m->admit.conflicts < CONFLICTS_MAX) {
        m->admit.conflicts++;
        not_admitted(m);
        return;
    }
    bool refused = err_is_refused(ev->write_failed.code);
    if (refused) {
        manager__alert(m, "a write was refused: %s; reading the table again",
                       err_text(ev->write_failed.code));
        manager__load_write_refused(m, ev->write_failed.write);
    }
    manager__reload(m, !refused && ev->write_failed.code != ERR_DB_CONFLICT);
}

/* ---- new attempts ---- */

/* The nonce's end was seen while the filler that ends the transaction was written: what is left
 * to end is the filler's row, by another filler that got in or by another program's extrinsic. */
static void end_of_filler(struct row_end *end)
{
    end->tx.outcome = end->tx.has_block ? "ok" : "usurped";
    end->requeue = false;
    if (end->tx.has_block)
        end->tx.error[0] = 0;
}

static void rewritten_row(struct manager *m, struct row *row, const struct tx_attempt *w,
                          bool filled)
{
    PRE(row->state == ROW_SIGNING && w->bytes);
    bool same = row->bytes && !memcmp(row->hash, w->hash, 32);
    manager__unwatch(m, row);
    line_bytes(&m->line, row, w->hash, w->bytes, w->bytes_len, w->call_len, w->era_death,
               w->spec_version);
    row->id = w->id;
    row->filler = row->filler || row->racing;
    row->racing = false;
    if (filled) {
        row->id = 0;
        if (row->end)
            end_of_filler(row->end);
        free(row->note);
        free(row->stop);
        free(row->terms);
        row->note = NULL;
        row->stop = NULL;
        row->terms = NULL;
        row->guard = 0;
        row->filler = false;
    }
    manager__tip_paid(row, w->tip);
    row->reason = REASON_NONE;
    row->not_before_tick = same ? m->chain_tick.count + 1 : 0; /* the bytes that did not do */
    if (row->end)
        line_move(&m->line, row, ROW_ENDING);
    else if (row->spec_version != m->chain.spec_version && row->sign_runtime != m->chain.runtimes)
        manager__resign(m, row, REASON_RUNTIME); /* it changed again while it was signed */
    else
        line_move(&m->line, row, ROW_UNSENT);
    manager__used_meanwhile(m, row);
}

static void rewritten(struct manager *m, const struct manager_event *ev)
{
    enum manager_effect_type write = ev->stored.write;
    PRE(ev->stored.attempts.count == m->writes.batch[write].count);
    for (size_t i = 0; i < ev->stored.attempts.count; i++) {
        struct row *row = line_at(&m->line, ev->stored.attempts.rows[i].nonce);
        PRE(row && row->state == ROW_SIGNING);
        rewritten_row(m, row, &ev->stored.attempts.rows[i], write == MANAGER_FX_FILL);
    }
    if (m->final.known)
        manager__consumed(m, m->final.nonce, NULL); /* put off while they were signed */
}

/* ---- what follows when a write is stored; of the others nothing does ---- */

void manager__stored(struct manager *m, const struct manager_event *ev)
{
    static void (*const after[MANAGER_WRITE_COUNT])(struct manager * m,
                                                    const struct manager_event *ev) = {
        [MANAGER_FX_ADMIT] = manager__admitted,
        [MANAGER_FX_RESIGN] = rewritten,
        [MANAGER_FX_FILL] = rewritten,
        [MANAGER_FX_STORE_FINISH] = manager__ends_stored,
        [MANAGER_FX_STORE_REQUEUE] = manager__ends_stored,
        [MANAGER_FX_STORE_NONCE] = manager__nonce_stored,
        [MANAGER_FX_STORE_PAUSE] = manager__pause_stored,
        [MANAGER_FX_STORE_ADOPT] = manager__adopted,
        [MANAGER_FX_STORE_HEARD] = manager__heard_stored,
    };
    enum manager_effect_type write = ev->stored.write;
    PRE(write < MANAGER_WRITE_COUNT);
    bool out = m->writes.out[write];
    m->writes.out[write] = false;
    if (signs(write))
        m->writes.unsigned_since_stored = false;
    if (out)
        manager__load_write_stored(m, write);
    /* else the rows that it was about are no longer in memory */
    if (out && m->phase >= MANAGER_CHAIN_WAIT && after[write])
        after[write](m, ev);
}
