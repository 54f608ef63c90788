/* A probe: the node's knowledge of uncertain rows.
 *
 *   NONE -> POOL -> NONCE [-> UNFINAL] -> NONE  a question that fails: NONE, again after a back-off
 *
 * The pool is asked first and the nonce second. The other way round, an extrinsic that leaves
 * the pool for a block between the two questions would be in neither answer and be sent a second
 * time; this way round the later nonce sees it. What then seems to be lost is looked for in the
 * blocks of the best chain that are not final: of an account that was reaped in one of them the
 * nonce says that nothing was used. */
#include "probe.h"

#include "effects.h"
#include "nonces.h"
#include "phase.h"
#include "reconcile.h"

/* Blocks that are not final, where something seems lost: need not be read, are read, or are too
 * many. */
enum unfinal { UNFINAL_NONE, UNFINAL_READ, UNFINAL_FAR };

enum {
    UNFINAL_MAX = 64, /* blocks, see is_long */
    BEHIND_MAX = 10,  /* blocks, see alert_behind */
};

void manager__probe_stop(struct manager *m)
{
    m->probe.discard = m->probe.question != PROBE_NONE;
    m->probe.now = true;
    m->probe.used_below = m->probe.certain = 0;
    m->probe.foreign_answers = 0;
    if (m->probe.question == PROBE_NONE)
        m->probe.at = UINT64_MAX;
    if (m->phase > MANAGER_ERA_WAIT && m->phase != MANAGER_LEADING)
        manager__phase(m, MANAGER_CHAIN_WAIT);
}

static void probe_failed(struct manager *m)
{
    m->probe.unanswered = m->probe.question;
    m->probe.question = PROBE_NONE;
    m->probe.discard = false;
    m->probe.now = true;
    m->probe.at = m->now + backoff_next(&m->probe.backoff, &m->rng);
    if (m->phase > MANAGER_ERA_WAIT && m->phase != MANAGER_LEADING)
        manager__phase(m, MANAGER_CHAIN_WAIT);
}

/* A node behind the height that a row was signed at knows less than the table: its nonce would
 * make holes and resends out of rows that are long in blocks. So would one behind a block that
 * another node told of: of an account that used its nonces and was reaped in blocks that this
 * one does not have yet, it knows neither (seed 13470). */
static bool node_behind(const struct manager *m)
{
    bool behind = m->chain.finalized < m->load.max_submitted || m->chain.best < m->chain.best_known;
    return behind && !PLANTED(BEHIND_PROBED);
}

/* Tolerate a lag of BEHIND_MAX blocks; beyond it, alert and ask for another endpoint.
 */
static void alert_behind(struct manager *m)
{
    bool final = m->chain.finalized + BEHIND_MAX < m->load.max_submitted,
         best = m->chain.best + BEHIND_MAX < m->chain.best_known;
    bool asks = m->phase == MANAGER_CHAIN_WAIT || m->phase == MANAGER_ERA_WAIT;
    if (!asks || !m->chain.up || (!final && !best) || m->alerted & ALERT_BEHIND)
        return;
    if (final) {
        manager__alert_once(m, ALERT_BEHIND,
                            "the node's finalized block %llu is behind block %llu of a pending row",
                            (unsigned long long)m->chain.finalized,
                            (unsigned long long)m->load.max_submitted);
        manager__fx(m, MANAGER_FX_NODE_BEHIND)->number = m->load.max_submitted;
    } else { /* the node knows, and has left its endpoint if there is another one */
        manager__alert_once(m, ALERT_BEHIND,
                            "the node's best block %llu is behind block %llu that another node had",
                            (unsigned long long)m->chain.best,
                            (unsigned long long)m->chain.best_known);
    }
}

/* After a load, and at another node, the nonce at the best block means something only once all
 * that is final was seen: of an account that was reaped meanwhile it says that little or nothing
 * has been used, and all would be sent again. Between two blocks that is so at any time. */
static bool finalized_processed(const struct manager *m)
{
    return (!m->line.rows && !m->reconcile.on) || m->final.processed >= m->chain.finalized;
}

static enum probe_action next(const struct manager *m, bool backing_off)
{
    return probe_next(
        &(struct probe_view){.wanted = m->probe.now,
                             .phase = m->phase == MANAGER_CHAIN_WAIT || m->phase == MANAGER_LEADING,
                             .node_up = m->chain.up,
                             .asking = m->probe.question != PROBE_NONE,
                             .node_behind = node_behind(m),
                             .final_unread = !finalized_processed(m),
                             .adopting = m->writes.out[MANAGER_FX_STORE_ADOPT],
                             .backing_off = backing_off});
}

bool manager__probe_may(const struct manager *m)
{
    return next(m, false) == PROBE_BEGIN;
}

void manager__probe_pump(struct manager *m)
{
    alert_behind(m);
    if (next(m, m->probe.at != UINT64_MAX && m->now < m->probe.at) != PROBE_BEGIN)
        return;
    m->probe.now = false;
    m->probe.discard = false;
    m->probe.question = PROBE_POOL;
    m->line.probe_seq++;
    m->probe.at = m->now + PROBE_TIMEOUT_MS;
    if (m->phase == MANAGER_CHAIN_WAIT)
        manager__phase(m, MANAGER_PROBE_POOL_WAIT);
    manager__fx(m, MANAGER_FX_ASK_POOL)->whole = m->reconcile.on;
}

/* true: the answer belongs to the question that is open. */
static bool answered(struct manager *m, enum probe question, bool failed)
{
    if (m->probe.question != question)
        return false;
    if (m->probe.discard) {
        m->probe.discard = false;
        m->probe.question = PROBE_NONE;
        m->probe.at = UINT64_MAX;
        return false;
    }
    if (failed)
        probe_failed(m);
    return !failed;
}

void manager__pool_answer(struct manager *m, const struct manager_event *ev)
{
    if (!answered(m, PROBE_POOL, ev->pool.failed))
        return;
    m->probe.pool_untold = ev->pool.untold;
    if (ev->pool.untold)
        manager__alert_once(m, ALERT_POOL,
                            "no endpoint tells its pool: what is in it is known by submitting the "
                            "same bytes again, by nonces and by blocks");
    else
        manager__alert_over(m, ALERT_POOL);
    for (size_t i = 0; i < ev->pool.count; i++) {
        struct row *row = line_by_hash(&m->line, ev->pool.hashes[i]);
        if (row)
            row->last_pool_probe = m->line.probe_seq;
    }
    for (size_t i = 0; i < ev->pool.pooled_count && m->reconcile.on; i++)
        if (!line_by_hash(&m->line, ev->pool.pooled[i].hash))
            manager__try_collect(m, &ev->pool.pooled[i], NULL);
    m->probe.question = PROBE_NONCE;
    m->probe.at = m->now + PROBE_TIMEOUT_MS;
    if (m->phase == MANAGER_PROBE_POOL_WAIT)
        manager__phase(m, MANAGER_PROBE_NONCE_WAIT);
    manager__fx(m, MANAGER_FX_ASK_NONCE);
}

/* ---- what the answers mean ---- */

static void probe_done(struct manager *m, uint64_t nonce)
{
    PRE(m->probe.question == PROBE_NONCE || m->probe.question == PROBE_UNFINAL);
    bool first = m->phase != MANAGER_LEADING;
    if (first ? !manager__try_rebuild(m, nonce) : !manager__try_find_gaps(m, nonce)) {
        probe_failed(m);
        return;
    }
    m->probe.node_unverified = m->probe.used_unfinal = false;
    m->probe.question = PROBE_NONE;
    m->probe.at = UINT64_MAX;
    manager__alert_over(m, ALERT_GAP | ALERT_BEHIND);
    backoff_reset(&m->probe.backoff);
    manager__judge_all(m, nonce);
    manager__rewind_check(m, nonce);
}

/* Somewhere it may have been sent, and this probe found it neither in the pool nor below the
 * nonce: by the two answers alone it is lost. */
static bool seems_lost(const struct manager *m, const struct row *row, bool first)
{
    return row->last_pool_probe != m->line.probe_seq &&
           (first || row->state == ROW_UNSURE || row->state == ROW_IN_BLOCK);
}

/* The blocks above the last final one are more than an era, so nothing can be signed now: finality
 * stalls, or the node invented its best block. */
static bool is_long(const struct manager *m)
{
    uint32_t era = m->config.era_period;
    return m->chain.best > m->final.processed + (era > UNFINAL_MAX ? era : UNFINAL_MAX);
}

/* A long stretch is read for a nonce that was used and is free again, and for bytes that can still
 * be included. What else seems lost is judged when the stretch is shorter. */
static enum unfinal must_read_unfinal(const struct manager *m, uint64_t nonce)
{
    enum unfinal need = UNFINAL_NONE;
    bool first = m->phase != MANAGER_LEADING, far = is_long(m);
    if (m->chain.best <= m->final.processed || m->suspension.why == MANAGER_SUSPENSION_REAPED ||
        PLANTED(REAP_UNSEEN))
        return UNFINAL_NONE;
    for (struct row *row = line_first(&m->line, SET_LIVE, nonce); row;
         row = line_first(&m->line, SET_LIVE, row->nonce + 1)) {
        if (!seems_lost(m, row, first))
            continue;
        if (first || !far || row->state == ROW_IN_BLOCK || !row_era_over(row, m->chain.best + 1))
            return UNFINAL_READ;
        need = UNFINAL_FAR;
    }
    return need;
}

/* A nonce above all that is known moves the next nonce, and what is signed there waits for ever if
 * the answer was wrong. So it takes several answers in a row, a back-off apart, and the lowest of
 * them counts. */
static bool try_certain(struct manager *m, uint64_t *nonce)
{
    struct probing *p = &m->probe;
    if (*nonce <= p->certain || *nonce <= manager__nonce_known(m) || PLANTED(NONCE_ONCE)) {
        p->foreign_answers = 0;
        return true;
    }
    if (!p->foreign_answers || *nonce < p->foreign)
        p->foreign = *nonce;
    if (++p->foreign_answers < FOREIGN_ANSWERS)
        return false;
    p->foreign_answers = 0;
    *nonce = p->certain = p->foreign;
    return true;
}

void manager__nonce_answer(struct manager *m, const struct manager_event *ev)
{
    if (!answered(m, PROBE_NONCE, ev->used.failed))
        return;
    uint64_t nonce = ev->used.nonce;
    if (manager__nonce_absurd(m, nonce, m->final.read)) {
        m->probe.node_unverified = true;
        probe_failed(m);
        return;
    }
    bool known = nonce >= m->life.used_nonce || m->suspension.why == MANAGER_SUSPENSION_REAPED;
    if (nonce < m->final.nonce || !known ||
        !try_certain(m, &nonce)) { /* the node lags, or the account was reaped: blocks will show */
        m->probe.node_unverified = true;
        probe_failed(m);
        return;
    }
    manager__nonces_used(m, nonce);
    bool first = m->phase != MANAGER_LEADING;
    if (first && !manager__try_reconcile(m, nonce)) {
        probe_failed(m);
        return;
    }
    if (!first)
        manager__chain_nonce(m, nonce, "at the best block");
    enum unfinal need = must_read_unfinal(m, nonce);
    m->probe.unread = need == UNFINAL_FAR;
    if (need != UNFINAL_READ) {
        probe_done(m, nonce);
        return;
    }
    m->probe.question = PROBE_UNFINAL;
    m->probe.nonce = nonce;
    m->probe.at = m->now + PROBE_TIMEOUT_MS;
    manager__fx(m, MANAGER_FX_ASK_UNFINAL)->number = m->final.processed;
}

/* A nonce from this one on was used in a block of the best chain, and is free again behind it. */
static bool used_there(const struct manager *m, const struct manager_event *ev)
{
    bool used = ev->unfinal.nonce > m->probe.nonce;
    for (size_t i = 0; i < ev->unfinal.count && !used; i++) {
        const struct row *row = line_by_hash(&m->line, ev->unfinal.hashes[i]);
        used = row && !row->end && row->nonce >= m->probe.nonce;
    }
    return used;
}

/* Such an account was reaped. Sent again, bytes of its former life would take effect in the new
 * one, too; when the block is final, following it says what became of whom. */
void manager__unfinal_answer(struct manager *m, const struct manager_event *ev)
{
    if (!answered(m, PROBE_UNFINAL, ev->unfinal.failed))
        return;
    if (!used_there(m, ev)) {
        probe_done(m, m->probe.nonce);
        return;
    }
    if (m->probe.used_unfinal) /* the first time a block may have come between the questions */
        manager__alert_once(
            m, ALERT_GAP,
            "nonces from %llu on were used in blocks that are not final and are free again: "
            "the account was reaped; nothing is sent before those blocks are final",
            (unsigned long long)m->probe.nonce);
    m->probe.used_unfinal = m->probe.node_unverified = true;
    probe_failed(m);
}

void manager__probe_tick(struct manager *m)
{
    if (m->probe.question != PROBE_NONE && m->now >= m->probe.at)
        probe_failed(m); /* the adapter owes an answer; waiting for ever would stop all repair */
}
