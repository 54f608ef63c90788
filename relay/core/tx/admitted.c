/* An admission is stored: its rows join the line. */
#include "admit.h"
#include "ends.h"
#include "sign.h"

static void set_terms(struct row *row, const struct admitting *a, u128 tip)
{
    manager__tip_paid(row, tip);
    if (a->max_tip == MANAGER_NO_CAP && a->deadline_block == UINT64_MAX && !a->retries)
        return;
    struct row_terms *t = manager__terms(row);
    t->max_tip = a->max_tip;
    t->deadline_block = a->deadline_block;
    t->retries = a->retries;
}

void manager__admit_over(struct manager *m)
{
    m->admit.count = m->admit.ahead = 0;
    m->admit.presigned = false;
}

static void pend(struct manager *m, const struct tx_attempt *w, const struct admitting *a)
{
    struct row *hole = line_at(&m->line, w->nonce);
    if (hole)
        line_remove(&m->line, hole); /* a probe found it meanwhile */
    uint64_t low = m->line.rows && m->line.low < w->nonce ? m->line.low : w->nonce;
    line_cover(&m->line, low, m->line.next > w->nonce ? m->line.next : w->nonce + 1);
    struct row *row = line_add(&m->line, w->nonce, ROW_UNSENT);
    row->id = w->id;
    line_set_presigned(&m->line, row);
    row->submitted_block = a->from_block;
    row->sign_runtime = m->admit.runtimes;
    manager__tip_paid(row, w->tip);
    line_bytes(&m->line, row, w->hash, w->bytes, w->bytes_len, w->call_len, w->era_death,
               w->spec_version);
    row_went_out(row); /* the signer has them too */
    if (m->final.regular_from > a->from_block)
        m->final.regular_from =
            a->from_block; /* it may be in a block that was older than every row */
    if (w->nonce < m->final.nonce)
        line_move(&m->line, row, ROW_IN_BLOCK);
}

static void presigned_admitted(struct manager *m, const struct manager_event *ev)
{
    PRE(m->admit.presigned);
    PRE(ev->stored.attempts.count == m->admit.count);
    for (size_t i = 0; i < ev->stored.attempts.count; i++) {
        PRE(ev->stored.attempts.rows[i].nonce == m->admit.rows[i].nonce);
        pend(m, &ev->stored.attempts.rows[i], &m->admit.rows[i]);
    }
    manager__admit_over(m);
    m->admit.conflicts = 0;
    if (m->final.known)
        manager__consumed(m, m->final.nonce, NULL);
}

void manager__admitted(struct manager *m, const struct manager_event *ev)
{
    PRE(m->phase >= MANAGER_CHAIN_WAIT && !m->writes.out[MANAGER_FX_ADMIT]);
    if (m->admit.presigned) {
        presigned_admitted(m, ev);
        return;
    }
    PRE(ev->stored.attempts.count == m->admit.count && m->admit.first == m->line.next);
    line_cover(&m->line, m->line.rows ? m->line.low : m->line.next,
               m->line.next + ev->stored.attempts.count);
    manager__admit_over(m);
    m->admit.conflicts = 0;
    for (size_t i = 0; i < ev->stored.attempts.count; i++) {
        const struct tx_attempt *w = &ev->stored.attempts.rows[i];
        PRE(w->nonce == m->admit.first + i);
        struct row *row = line_add(&m->line, w->nonce, ROW_UNSENT);
        row->id = w->id;
        row->guard = w->guard;
        row->submitted_block = m->admit.block;
        row->sign_runtime = m->admit.runtimes;
        row->resign_after = m->chain_tick.count + 1;
        set_terms(row, &m->admit.rows[i], w->tip);
        line_bytes(&m->line, row, w->hash, w->bytes, w->bytes_len, w->call_len, w->era_death,
                   w->spec_version);
        if (m->chain.runtimes != m->admit.runtimes && w->spec_version != m->chain.spec_version)
            manager__resign(m, row, REASON_RUNTIME); /* it changed while they were signed */
    }
    if (m->final.nonce >
        m->admit.first) /* another program used these nonces while they were written */
        manager__consumed(m, m->final.nonce, NULL);
}
