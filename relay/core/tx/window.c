/* How much of the account's own a pool takes. A pool that is full throws out the oldest with all
 * that depend on it, so one too many costs the whole sequence: the window bounds what is in the
 * pool, and not only what is on the wire.
 *
 * How many a pool held when it was full is remembered. The window comes back to an eighth below
 * that within a few blocks, and tries for more only after a while, which doubles each time that
 * there is no room. What is on the wire when a pool turns out to be full for the first time is the
 * price of finding that out, so that begins with few and grows slowly. */
#include "sign.h"
#include "stop.h"
#include "submit.h"

enum {
    WAIT_MIN = 16, /* blocks until more than the limit is tried */
    WAIT_MAX = 1024,
    WIRE_MIN = 8,        /* submissions on the wire, at first */
    WIRE_STEP = 4,       /* accepted ones until it is one more */
    SMALL_TIP = 1 << 16, /* units of the currency, see manager__window_outbid */
};

void manager__window_reset(struct manager *m)
{
    m->send.window = m->config.window_max;
    m->send.limit = UINT32_MAX;
    m->send.limit_wait = WAIT_MIN;
    m->send.limit_from = 0;
    m->send.wire = WIRE_MIN;
    m->send.full_this_block = false;
}

/* What is asked about for lack of news counts as in the pool until an answer says otherwise. */
static size_t in_flight(const struct manager *m)
{
    return line_count(&m->line, ROW_SUBMITTED) + line_count(&m->line, ROW_POOLED) +
           line_count(&m->line, ROW_UNSURE);
}

/* Without the head of the line all others wait for ever: it always may go. Another one may, where
 * later ones are in a pool already, as long as what becomes ready with it fits. The last one that
 * is missing makes all of them ready. */
static bool may_repair(const struct manager *m, const struct row *row)
{
    const struct row *head = manager__head(m), *next = line_at(&m->line, row->nonce + 1);
    if (!head || head->nonce >= row->nonce)
        return true;
    bool last = next && next->state == ROW_POOLED;
    return line_first(&m->line, ROW_POOLED, row->nonce) && !last &&
           row->nonce - head->nonce < m->send.window;
}

bool manager__window_open(const struct manager *m, const struct row *row)
{
    return in_flight(m) < m->send.window || may_repair(m, row);
}

bool manager__wire_open(const struct manager *m)
{
    uint32_t most =
        m->send.wire < m->config.unanswered_max ? m->send.wire : m->config.unanswered_max;
    return line_count(&m->line, ROW_SUBMITTED) < (m->send.half_open ? 1 : most);
}

void manager__window_accepted(struct manager *m)
{
    if (m->send.wire < m->config.unanswered_max && ++m->send.accepted % WIRE_STEP == 0)
        m->send.wire++;
}

/* ---- the limit ---- */

/* It is known how much goes in, and too early to try for more. */
static bool limited(const struct manager *m)
{
    return m->send.limit != UINT32_MAX && m->line.blocks < m->send.limit_from;
}

static uint32_t ceiling(const struct manager *m)
{
    uint32_t most = m->send.limit - (m->send.limit + 7) / 8;
    if (!limited(m) || most > m->config.window_max)
        return m->config.window_max;
    return most ? most : 1;
}

/* It was full with this many of ours, or with more if answers are under way. Where it had none of
 * them it was full of others', which says nothing of later. */
static void limit_found(struct manager *m)
{
    uint32_t held = (uint32_t)line_count(&m->line, ROW_POOLED);
    if (!held)
        return;
    bool again = m->send.limit != UINT32_MAX && held < m->send.limit + m->send.limit / 2;
    m->send.limit_wait = again ? m->send.limit_wait * 2 : WAIT_MIN;
    if (m->send.limit_wait > WAIT_MAX)
        m->send.limit_wait = WAIT_MAX;
    m->send.limit = held;
    m->send.limit_from = m->line.blocks + m->send.limit_wait;
}

/* The pool is full: halve the window, once a block. */
void manager__window_shrink(struct manager *m)
{
    if (m->send.full_this_block)
        return;
    size_t pooled = line_count(&m->line, ROW_POOLED), most = pooled ? pooled : in_flight(m);
    limit_found(m);
    if (most < m->send.window)
        m->send.window = most ? (uint32_t)most : 1;
    if (m->send.window > 1)
        m->send.window /= 2;
    m->send.wire = WIRE_MIN;
    m->send.full_this_block = true;
}

/* Quickly back to what is known to fit, and carefully above that. */
void manager__window_block(struct manager *m)
{
    uint32_t most = ceiling(m), window = m->send.window;
    if (!m->send.full_this_block && window < most) {
        window += 1 + window / (limited(m) ? 2 : 8);
        m->send.window = window < most ? window : most;
    }
    m->send.full_this_block = false;
}

/* One of ours that the pool has, behind the missing one: a pool shows only what is ready, so it may
 * be in doubt. */
static const struct row *later_pooled(const struct manager *m, uint64_t nonce)
{
    const struct row *row = line_first(&m->line, ROW_UNSURE, nonce + 1);
    while (row && !row->was_pooled)
        row = line_first(&m->line, ROW_UNSURE, row->nonce + 1);
    return row ? row : line_first(&m->line, ROW_POOLED, nonce + 1);
}

/* A pool makes room for what pays more. What our own later nonces pay is known; how a pool weighs
 * the size of calls against tips is not, so small tips are doubled where the policy has a bound.
 * Without one the operator has allowed no more than a step. */
bool manager__window_outbid(struct manager *m, struct row *row)
{
    PRE(row->state == ROW_SUBMITTED && row->bytes);
    const struct row *later = later_pooled(m, row->nonce);
    if (!later || manager__head(m) != row || m->config.keyless || manager__presigned(row) ||
        !manager__may_sign(m, row) || PLANTED(HEAD_KEPT_OUT))
        return false;
    u128 tip = manager__tip_of(row);
    u128 left = tip < SMALL_TIP && m->account.tip_cap != MANAGER_NO_CAP ? SMALL_TIP - tip : 0;
    bool raised = false;
    if (tip <= manager__tip_of(later))
        raised = manager__try_raise_tip(m, row);
    else if (left)
        raised = manager__try_add_tip(m, row, tip < left ? tip + 1 : left);
    if (raised)
        manager__resign(m, row, REASON_FEE);
    return raised;
}
