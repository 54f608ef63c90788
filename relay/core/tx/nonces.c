/* The next nonce: what the first probe and the chain mean for it, the holes below it, nonces
 * that are free again, and how it is stored. */
#include "nonces.h"

#include "effects.h"
#include "ends.h"
#include "phase.h"
#include "probe.h"
#include "suspend.h"

uint64_t manager__nonce_known(const struct manager *m)
{
    uint64_t known = m->line.rows || m->line.next ? m->line.next + m->admit.ahead : 0;
    /* Nonces that were given back since are free. */
    bool stored = m->phase != MANAGER_LEADING || m->nonces.rewind;
    if (stored && m->load.next_nonce > 0 && (uint64_t)m->load.next_nonce > known)
        known = (uint64_t)m->load.next_nonce;
    return m->final.nonce > known ? m->final.nonce : known;
}

/* A node may answer anything. No chain includes more than NONCES_PER_BLOCK extrinsics of an account
 * in a block, and none has nonces of 31 bits and more in use. A nonce that is stored too high could
 * only be taken back by hand. */
bool manager__nonce_absurd(struct manager *m, uint64_t nonce, uint64_t block)
{
    enum { NONCES_PER_BLOCK = 1000 };
    uint64_t ours = manager__nonce_known(m);
    uint64_t from = m->final.nonce_block ? m->final.nonce_block : m->reconcile.seen_block;
    uint64_t blocks = block > from ? block - from : 0;
    bool first = m->load.next_nonce < 0 && !m->line.rows && !m->line.next;
    uint64_t most = ours + m->config.window_max + NONCES_PER_BLOCK * (blocks + 1);
    if (PLANTED(NONCE_BELIEVED) || (nonce <= INT32_MAX && (first || nonce <= most))) {
        manager__alert_over(m, ALERT_NONCE);
        return false;
    }
    manager__alert_once(m, ALERT_NONCE,
                        "the node says that the account's nonce is %llu at block %llu, and ours is "
                        "%llu: that cannot be, so the answer is ignored",
                        (unsigned long long)nonce, (unsigned long long)block,
                        (unsigned long long)ours);
    return true;
}

/* Only this service should use the key: an account nonce above ours is foreign use, or commits that
 * the database lost. Either way those nonces are gone. */
void manager__chain_nonce(struct manager *m, uint64_t nonce, const char *where)
{
    PRE(m->phase >= MANAGER_CHAIN_WAIT);
    if (nonce <= m->line.next + m->admit.ahead)
        return;
    bool expected =
        m->nonces.rewind && nonce <= (uint64_t)m->load.next_nonce; /* the table knew of those */
    if (!expected)
        manager__alert(m,
                       "account nonce is %llu %s but ours is %llu: the key is used elsewhere or "
                       "the database lost commits",
                       (unsigned long long)nonce, where, (unsigned long long)m->line.next);
    if (m->admit.count || (m->line.rows && nonce - m->line.low > SPAN_MAX))
        return; /* rows in flight come first; what the chain used of them ends when they are here */
    line_cover(&m->line, m->line.rows ? m->line.low : nonce, nonce);
    m->nonces.given_back = UINT64_MAX;
    m->nonces.wanted = m->nonces.wanted || !expected;
}

static size_t count_holes(const struct manager *m, uint64_t from)
{
    size_t count = 0;
    for (uint64_t nonce = from; nonce < m->line.next; nonce++)
        count += !line_at(&m->line, nonce);
    return count;
}

static bool too_many(struct manager *m, uint64_t from, uint64_t count)
{
    if (count <= m->config.window_max)
        return false;
    manager__alert_once(m, ALERT_GAP,
                        "%llu nonces from the account's %llu on have no pending row: reaped "
                        "account, wrong chain or damaged table; nothing is sent. If the chain is "
                        "right: account_rewind",
                        (unsigned long long)count, (unsigned long long)from);
    return true;
}

/* Nonces without a row, from the chain's on, would block all later ones: fillers take them.
 * false: there are too many to be trusted; nothing is done. */
bool manager__try_find_gaps(struct manager *m, uint64_t best_nonce)
{
    PRE(m->phase >= MANAGER_PROBE_NONCE_WAIT);
    uint64_t from = best_nonce > m->final.nonce ? best_nonce : m->final.nonce;
    if (m->admit.presigned) { /* it may be about to close one */
        manager__probe_at_beat(m);
        return true;
    }
    if (!m->line.rows || m->suspension.why == MANAGER_SUSPENSION_REAPED)
        return true; /* nothing waits behind them: see the rewind */
    if (from < m->line.low) {
        if (too_many(m, from, m->line.low - from))
            return false;
        line_cover(&m->line, from, m->line.next);
    } else if (m->line.rows == m->line.next - m->line.low) {
        return true;
    }
    if (too_many(m, from, count_holes(m, from)))
        return false;
    for (uint64_t nonce = from; nonce < m->line.next; nonce++) {
        if (line_at(&m->line, nonce))
            continue;
        struct row *row = line_add(&m->line, nonce, ROW_FILL);
        row->reason = REASON_HOLE;
        row->submitted_block = m->final.processed;
        m->nonces.given_back = UINT64_MAX;
    }
    return true;
}

/* A stored next nonce above every row and above the chain: a nonce without a row was never
 * signed (nothing is sent that is not on record), so it can be taken back once nothing is open
 * and the chain is settled. */
void manager__rewind_check(struct manager *m, uint64_t best_nonce)
{
    PRE(m->phase == MANAGER_LEADING);
    if (!m->nonces.rewind || m->suspension.why == MANAGER_SUSPENSION_REAPED)
        return;
    if (best_nonce >= (uint64_t)m->load.next_nonce) {
        m->nonces.rewind = false;
        return;
    }
    if (!m->final.known || m->final.nonce != best_nonce)
        return;
    manager__drop_holes(m);
    if (m->line.rows)
        return;
    manager__alert(
        m,
        "the stored next nonce %lld is above the chain's %llu and nothing is pending: going back",
        (long long)m->load.next_nonce, (unsigned long long)best_nonce);
    line_cover(&m->line, best_nonce, best_nonce);
    m->nonces.rewind = false;
    m->nonces.wanted = m->nonces.lower = true;
}

/* Next nonce = max(the table's, highest row + 1, the chain's), except that a table's counter
 * with nothing behind it waits for the rewind. */
static void set_next(struct manager *m, uint64_t best_nonce)
{
    if (m->load.next_nonce < 0 && !m->line.rows) {
        line_cover(&m->line, best_nonce, best_nonce); /* the account's first use */
        return;
    }
    uint64_t top = m->line.rows ? m->line.next : 0;
    uint64_t db = m->load.next_nonce > 0 ? (uint64_t)m->load.next_nonce : 0;
    uint64_t floor = top > best_nonce ? top : best_nonce;
    m->nonces.rewind = db > floor && (!m->line.rows || db - floor > m->config.window_max);
    uint64_t next = m->nonces.rewind ? floor : db > top ? db : top;
    if (PLANTED(NONCE_REUSE) && m->line.rows)
        next = best_nonce > m->line.low ? best_nonce : m->line.low;
    line_cover(&m->line, m->line.rows ? m->line.low : next, next);
}

/* The first probe is answered: from here on the account is led. */
bool manager__try_rebuild(struct manager *m, uint64_t best_nonce)
{
    PRE(m->phase == MANAGER_PROBE_NONCE_WAIT);
    set_next(m, best_nonce);
    manager__chain_nonce(m, best_nonce, "at the best block");
    if (!manager__try_find_gaps(m, best_nonce))
        return false;
    manager__phase(m, MANAGER_LEADING);
    manager__fx(m, MANAGER_FX_READY);
    return true;
}

/* ---- nonces that are free again ---- */

static bool is_free(const struct manager *m, uint64_t nonce)
{
    const struct row *row = line_at(&m->line, nonce);
    return row ? manager__hole(row) : nonce >= m->nonces.given_back;
}

static enum nonce_action next(const struct manager *m)
{
    return nonce_next(
        &(struct nonce_view){.leading = m->phase == MANAGER_LEADING,
                             .unstored = m->nonces.wanted,
                             .storing = m->writes.out[MANAGER_FX_STORE_NONCE],
                             .given_back = m->config.keyless || m->nonces.given_back != UINT64_MAX,
                             .admitting = m->admit.count > 0,
                             .rewinding = m->nonces.rewind,
                             .final_known = m->final.known});
}

/* The highest nonces have no row, or lost it: the next one to be given is the lowest of these.
 * One that is free below other rows stays as a hole. */
void manager__give_back_pump(struct manager *m)
{
    if (next(m) != NONCE_GIVE_BACK)
        return;
    uint64_t low = m->line.next;
    while (low > m->final.nonce && is_free(m, low - 1))
        low--;
    if (low == m->line.next)
        return; /* those above may be given back later, or find_gaps makes holes of these */
    if (low <= m->nonces.given_back)
        m->nonces.given_back = UINT64_MAX; /* else a row is between: its nonce comes back later */
    for (uint64_t nonce = low; nonce < m->line.next; nonce++) {
        struct row *hole = line_at(&m->line, nonce);
        if (hole)
            line_remove(&m->line, hole);
    }
    line_cover(&m->line, m->line.rows ? m->line.low : low, low);
    m->nonces.wanted = m->nonces.lower = true;
}

void manager__nonce_pump(struct manager *m)
{
    if (next(m) != NONCE_STORE)
        return;
    m->nonces.wanted = false;
    struct manager_effect *fx = manager__write(m, MANAGER_FX_STORE_NONCE);
    fx->next.nonce = m->line.next;
    fx->next.lower = m->nonces.lower;
    fx->next.reborn = m->life.wanted;
    manager__life_storing(m);
    m->nonces.lower = false;
}
