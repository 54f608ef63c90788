/* From the outbox to rows: nonces are given in order, one ADMIT at a time, up to the window. Until ADMITTED
 * nothing of it is real: a refused admission gives its nonces back by never having taken them. */
#include <string.h>

#include "manager_internal.h"

static uint32_t room(const struct manager *m)
{
    size_t used = manager__not_in_block(m);
    uint32_t left = used < m->window ? m->window - (uint32_t)used : 0;
    return left < m->config.batch_max ? left : m->config.batch_max;
}

/* A rejected row stays in the outbox until its REJECT is stored, and a next nonce that is about to be
 * corrected must be, before rows are asked for. */
static bool may_admit(struct manager *m)
{
    return m->phase == MANAGER_LEADING && m->chain_up && !m->gate_shut && !m->rewind && !m->nonce_wanted &&
           !m->write_out[MANAGER_WRITE_ADMIT] && !m->write_out[MANAGER_WRITE_REJECT] &&
           !m->write_out[MANAGER_WRITE_NONCE] && room(m) > 0 && !manager__stillborn(m);
}

void manager__admit_pump(struct manager *m)
{
    if (m->wanted || !may_admit(m))
        return;
    m->wanted = true;
    manager__fx(m, MANAGER_FX_WANT_OUTBOX)->limit = room(m);
}

/* Why it can never be sent; NULL: it can. */
static const char *bad_row(const struct manager *m, const struct manager_outbox_row *o, char *buf,
                           size_t size)
{
    if (o->bad)
        return o->bad;
    return manager__guarded(m, o->guard, buf, size) ? buf : NULL;
}

static void reject(struct manager *m, const struct manager_event *ev, size_t bad)
{
    if (!bad)
        return;
    manager__write_start(m, MANAGER_WRITE_REJECT);
    struct manager_effect *fx = manager__fx_rows(m, MANAGER_FX_STORE_REJECT, bad);
    for (size_t i = 0; i < ev->count; i++) {
        char buf[200];
        const char *why = bad_row(m, &ev->outbox[i], buf, sizeof(buf));
        if (!why)
            continue;
        struct manager_row_effect *row = &fx->rows[fx->count++];
        row->id = ev->outbox[i].id;
        row->outcome = "failed";
        manager__plain(row->error, sizeof(row->error), why);
        row->reason = row->error;
    }
}

static void admit(struct manager *m, const struct manager_event *ev, size_t good)
{
    uint32_t max = room(m);
    if (good > max)
        good = max; /* the window shrank since they were asked for: the rest stays in the outbox */
    if (!good)
        return;
    m->admit_first = m->next;
    m->admit_runtimes = m->runtimes;
    m->admit_block = m->seen;
    manager__write_start(m, MANAGER_WRITE_ADMIT);
    struct manager_effect *fx = manager__fx_rows(m, MANAGER_FX_ADMIT, good);
    for (size_t i = 0; i < ev->count && fx->count < good; i++) {
        const struct manager_outbox_row *o = &ev->outbox[i];
        char buf[200];
        if (bad_row(m, o, buf, sizeof(buf)))
            continue;
        uint8_t *call = manager__keep(m, xmalloc(o->call_len));
        if (o->call_len)
            memcpy(call, o->call, o->call_len);
        struct manager_row_effect *row = &fx->rows[fx->count];
        row->nonce = m->next + fx->count++;
        row->id = o->id;
        row->call = call;
        row->call_len = o->call_len;
        row->guard = o->guard;
    }
    m->admit_count = (uint32_t)fx->count;
}

void manager__outbox(struct manager *m, const struct manager_event *ev)
{
    size_t bad = 0;
    if (!m->wanted)
        return;
    m->wanted = false;
    if (!may_admit(m))
        return; /* they stay in the outbox and are asked for again */
    char buf[200];
    for (size_t i = 0; i < ev->count; i++)
        bad += bad_row(m, &ev->outbox[i], buf, sizeof(buf)) != NULL;
    admit(m, ev, ev->count - bad);
    reject(m, ev, bad);
}

void manager__admitted(struct manager *m, const struct manager_event *ev)
{
    PRE(ev->count == m->admit_count && m->admit_first == m->next);
    manager__ring_cover(m, m->rows ? m->low : m->next, m->next + ev->count);
    m->admit_count = m->admit_conflicts = 0;
    for (size_t i = 0; i < ev->count; i++) {
        const struct manager_written_row *w = &ev->written[i];
        PRE(w->nonce == m->admit_first + i);
        struct row *row = manager__row_new(m, w->nonce, ROW_UNSENT);
        row->id = w->id;
        row->guard = w->guard;
        row->submitted_block = m->admit_block;
        row->sign_runtime = m->admit_runtimes;
        row->resign_after = m->beat + 1;
        manager__row_bytes(m, row, w->hash, w->bytes, w->bytes_len, w->call_len, w->era_death,
                           w->spec_version);
        if (m->runtimes != m->admit_runtimes && w->spec_version != m->spec_version)
            manager__resign(m, row, REASON_RUNTIME); /* it changed while they were signed */
    }
    if (m->fin_nonce > m->admit_first) /* somebody used these nonces while they were written */
        manager__consumed(m, m->fin_nonce, NULL);
}
