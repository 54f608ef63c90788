/* From the outbox to rows: nonces are given in order, one ADMIT at a time, up to the window.
 * Until ADMITTED nothing of it is real: a refused admission gives its nonces back by never
 * having taken them. */
#include "admit.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "effects.h"
#include "sign.h"
#include "suspend.h"

uint32_t manager__room(const struct manager *m)
{
    size_t used = line_not_in_block(&m->line);
    uint32_t left = used < m->send.window ? m->send.window - (uint32_t)used : 0;
    if (left && manager__unborn(m, UINT64_MAX))
        left = 1;
    return left < m->config.batch_max ? left : m->config.batch_max;
}

static bool may_admit(struct manager *m)
{
    const bool *out = m->writes.out;
    struct admit_view v = {.leading = m->phase == MANAGER_LEADING,
                           .node_up = m->chain.up,
                           .gate_closed = m->send.gate_shut,
                           .suspended =
                               m->suspension.why != MANAGER_SUSPENSION_NONE || manager__blocked(m),
                           .suspension_unstored = m->suspension.wanted,
                           .rewinding = m->nonces.rewind,
                           .nonce_unstored = m->nonces.wanted,
                           .rejecting = out[MANAGER_FX_STORE_REJECT],
                           .noting = out[MANAGER_FX_STORE_NOTE],
                           .admitting = out[MANAGER_FX_ADMIT],
                           .storing_nonce = out[MANAGER_FX_STORE_NONCE],
                           .storing_suspension = out[MANAGER_FX_STORE_PAUSE],
                           .room = manager__room(m) > 0,
                           .backing_off = m->chain_tick.count < m->writes.sign_after_tick};
    return admit_next(&v) == ADMIT_ROWS && !manager__stillborn(m) &&
           !manager__unborn(m, m->line.next);
}

void manager__admit_pump(struct manager *m)
{
    if (m->admit.wanted || !may_admit(m))
        return;
    m->admit.wanted = true;
    manager__fx(m, MANAGER_FX_WANT_OUTBOX)->limit = manager__room(m);
}

static uint64_t deadline_of(const struct manager_outbox_row *o)
{
    return o->deadline_block ? o->deadline_block : UINT64_MAX;
}

/* Why it can never be sent, and as what it ends; NULL: it can. */
static const char *bad_row(const struct manager *m, const struct manager_outbox_row *o, char *buf,
                           size_t size, const char **ret_outcome)
{
    uint64_t deadline = deadline_of(o);
    *ret_outcome = "failed";
    if (o->bad)
        return o->bad;
    if (manager__guarded(m, o->guard, buf, size))
        return buf;
    if (!manager__era_late(m, deadline))
        return NULL;
    *ret_outcome = "expired";
    snprintf(
        buf, size,
        "its deadline is block %llu: too near to be signed at block %llu, with block %llu final",
        (unsigned long long)deadline, (unsigned long long)manager__plausible_best(m),
        (unsigned long long)m->chain.finalized);
    return buf;
}

/* `more`: rejected already, with their texts. */
static void reject(struct manager *m, const struct manager_event *ev, size_t bad,
                   const struct tx_end *more, size_t count)
{
    PRE(m->phase == MANAGER_LEADING);
    if (!bad && !count)
        return;
    struct manager_effect *fx = manager__write(m, MANAGER_FX_STORE_REJECT);
    fx->ends.rows = manager__arena_add(m, xcalloc(bad + count, sizeof(*fx->ends.rows)));
    memcpy(fx->ends.rows, more, count * sizeof(*more));
    fx->ends.count = count;
    for (size_t i = 0; i < ev->outbox.count; i++) {
        char buf[200];
        if (ev->outbox.rows[i].presigned || ev->outbox.rows[i].waits)
            continue;
        const char *outcome, *why = bad_row(m, &ev->outbox.rows[i], buf, sizeof(buf), &outcome);
        if (!why)
            continue;
        struct tx_end *row = &fx->ends.rows[fx->ends.count++];
        row->id = ev->outbox.rows[i].id;
        row->outcome = outcome;
        memcpy(row->trace, ev->outbox.rows[i].origin.trace, sizeof(row->trace));
        plain_text(row->error, sizeof(row->error), why);
    }
}

/* `below`: the nonce that the last of them has to stay below. */
static void admit(struct manager *m, const struct manager_event *ev, size_t good, uint64_t below)
{
    PRE(m->phase == MANAGER_LEADING && below >= m->line.next);
    uint64_t max = manager__room(m);
    if (max > below - m->line.next)
        max = below - m->line.next;
    if (good > max)
        good = max; /* the window shrank since the poll: the rest stays in the outbox */
    if (!good)
        return;
    m->admit.first = m->line.next;
    m->admit.runtimes = m->chain.runtimes;
    m->admit.block = m->final.processed;
    if (!m->account.transaction_version)
        m->account.transaction_version =
            m->chain.transaction_version; /* the store keeps the first one, too */
    m->admit.rows = xrealloc(m->admit.rows, good * sizeof(*m->admit.rows));
    struct manager_effect *fx = manager__write(m, MANAGER_FX_ADMIT);
    fx->sign.rows = manager__arena_add(m, xcalloc(good, sizeof(*fx->sign.rows)));
    fx->sign.block = m->admit.block;
    for (size_t i = 0; i < ev->outbox.count && fx->sign.count < good; i++) {
        const struct manager_outbox_row *o = &ev->outbox.rows[i];
        char buf[200];
        const char *outcome;
        if (o->presigned || o->waits || bad_row(m, o, buf, sizeof(buf), &outcome) ||
            manager__era_waits(m, deadline_of(o)))
            continue;
        uint8_t *call = manager__arena_add(m, xmalloc(o->call_len));
        if (o->call_len)
            memcpy(call, o->call, o->call_len);
        m->admit.rows[fx->sign.count] =
            (struct admitting){.max_tip = o->has_max_tip ? o->max_tip : MANAGER_NO_CAP,
                               .deadline_block = deadline_of(o),
                               .retries = o->retries};
        struct manager_sign_row *row = &fx->sign.rows[fx->sign.count];
        row->tip = manager__tip_first(m, o);
        row->nonce = m->line.next + fx->sign.count++;
        row->era_period = manager__era_period(m, row->nonce, deadline_of(o));
        row->deadline_block = o->deadline_block == UINT64_MAX ? 0 : o->deadline_block;
        row->id = o->id;
        row->call = call;
        row->call_len = o->call_len;
        row->guard = o->guard;
        row->origin = o->origin;
    }
    m->admit.count = m->admit.ahead = (uint32_t)fx->sign.count;
}

/* They stay in the outbox. Where nothing else was there, it is not polled again before the next
 * tick. */
static void wait_for_finality(struct manager *m, size_t waiting, size_t all)
{
    if (!waiting) {
        manager__alert_over(m, ALERT_DEADLINE);
        return;
    }
    if (waiting == all)
        m->writes.sign_after_tick = m->chain_tick.count + 1;
    manager__alert_once(m, ALERT_DEADLINE,
                        "finality lags: block %llu is finalized, %llu is best, and no era fits "
                        "before the deadlines of %zu transactions",
                        (unsigned long long)m->chain.finalized, (unsigned long long)m->chain.best,
                        waiting);
}

void manager__outbox(struct manager *m, const struct manager_event *ev)
{
    size_t bad = 0, calls = 0, waiting = 0, unproven = 0, more;
    struct tx_end *rejects;
    if (!m->admit.wanted)
        return;
    m->admit.wanted = false;
    if (!may_admit(m))
        return; /* they stay in the outbox until the next poll */
    char buf[200];
    const char *outcome;
    for (size_t i = 0; i < ev->outbox.count; i++) {
        if (ev->outbox.rows[i].presigned)
            continue;
        calls++;
        if (ev->outbox.rows[i].waits)
            unproven++;
        else if (bad_row(m, &ev->outbox.rows[i], buf, sizeof(buf), &outcome))
            bad++;
        else
            waiting += manager__era_waits(m, deadline_of(&ev->outbox.rows[i]));
    }
    uint64_t below = manager__presigned_rows(m, ev, &rejects, &more);
    admit(m, ev, calls - bad - waiting - unproven, below);
    wait_for_finality(m, waiting, ev->outbox.count);
    if (unproven && waiting + unproven == ev->outbox.count)
        m->writes.sign_after_tick = m->chain_tick.count + 1;
    reject(m, ev, bad, rejects, more);
}
