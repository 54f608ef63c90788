/* Extrinsics that the chain has and the database lost.
 *
 * A failover may lose the last commits. Transactions that were admitted in them are in the outbox
 * again, or lack their newest attempt, while their extrinsics are in blocks and pools: to admit
 * them again would make them take effect twice. The database says so when it was claimed on another
 * timeline (reconcile_from); a chain nonce above the table's says so too.
 *
 *   loaded --follow from reconcile_from on, keep what we signed and no row knows-->
 *     all that is final was seen --probe: pool with bytes, nonce-->
 *     [nonces used that no final block shows: wait for finality] --> ADOPT
 *     --adopted--> load again, or, when nothing was, go on
 *
 * Which transaction an extrinsic belongs to is decided by its call, in SQL (schema/,
 * leader_adopt). */
#include "reconcile.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "effects.h"
#include "ends.h"
#include "load.h"
#include "probe.h"
#include "sign.h"
#include "stop.h"

void manager__found_clear(struct manager *m)
{
    for (size_t i = 0; i < m->reconcile.found_count; i++)
        free(m->reconcile.found[i].bytes);
    free(m->reconcile.found);
    m->reconcile.found = NULL;
    m->reconcile.found_count = 0;
    m->reconcile.adopt_due = m->reconcile.on = false;
    m->reconcile.from = 0;
    m->era_wait = (struct era_wait){0};
}

void manager__reconcile_patience(struct manager *m)
{
    PRE(m->reconcile.on);
    uint32_t era = m->config.era_period > ERA_PERIOD_MAX ? m->config.era_period : ERA_PERIOD_MAX;
    m->reconcile.end = m->chain.finalized + era;
}

/* The block after which they are looked for. Where the node invented the final height, the search
 * begins once more when that is dropped, so `from` stays what the table says. */
static uint64_t after(const struct manager *m)
{
    bool far = m->chain.finalized > m->reconcile.from + RECONCILE_BLOCKS_MAX;
    return far ? m->chain.finalized - RECONCILE_BLOCKS_MAX : m->reconcile.from;
}

uint64_t manager__reconcile_begin(struct manager *m)
{
    PRE(m->reconcile.on);
    manager__reconcile_patience(m);
    m->reconcile.after = after(m);
    if (m->reconcile.after > m->reconcile.from)
        manager__alert(
            m, "lost commits are looked for from block %llu on: from block %llu would be too far",
            (unsigned long long)m->reconcile.after, (unsigned long long)m->reconcile.from);
    return m->reconcile.after + 1;
}

bool manager__reconcile_skips(const struct manager *m)
{
    return m->reconcile.on && m->reconcile.after > after(m);
}

void manager__reconcile_loaded(struct manager *m, const struct manager_event *ev)
{
    m->reconcile.seen_block = ev->snapshot.seen_block;
    manager__clocks_loaded(m, ev);
    if (!ev->snapshot.reconcile)
        return;
    m->reconcile.on = true;
    m->reconcile.from = ev->snapshot.reconcile_from;
    manager__era_wait_loaded(m, ev);
    manager__load_reaches(m, m->reconcile.from);
}

/* ---- what is found ---- */

static bool same_call(const struct row *row, const uint8_t *call, size_t len)
{
    return row->bytes && row->call_len == len &&
           !memcmp(row->bytes + row->bytes_len - len, call, len);
}

/* Several lives of the account may have used one nonce: each extrinsic has a place of its own. */
static struct tx_found *place(struct manager *m, const uint8_t hash[32])
{
    for (size_t i = 0; i < m->reconcile.found_count; i++)
        if (!memcmp(m->reconcile.found[i].hash, hash, 32)) {
            free(m->reconcile.found[i].bytes);
            return &m->reconcile.found[i];
        }
    m->reconcile.found =
        xrealloc(m->reconcile.found, (m->reconcile.found_count + 1) * sizeof(*m->reconcile.found));
    return &m->reconcile.found[m->reconcile.found_count++];
}

static void add_found(struct manager *m, const struct tx_included *x, int64_t time_ms)
{
    struct tx_found *f = place(m, x->hash);
    *f = (struct tx_found){.nonce = x->nonce,
                           .bytes = xmalloc(x->bytes_len),
                           .bytes_len = x->bytes_len,
                           .call_len = x->call_len,
                           .era_birth = x->era_birth,
                           .era_death = x->era_death,
                           .tip = x->tip,
                           .time_ms = time_ms};
    memcpy(f->hash, x->hash, 32);
    memcpy(f->bytes, x->bytes, x->bytes_len);
}

/* Its nonce was used by what is on record. In a block above all those it is of a later life of the
 * account, which the lost commits may have begun; where the account was reaped, the database tells
 * by the hash. So it does of the blocks that are searched: a leader before this one may have
 * recorded in the wait that a nonce is used, and died before it adopted what had used it. */
static bool on_record(const struct manager *m, const struct tx_included *x,
                      const struct manager_block *block)
{
    bool searched = block && block->number > m->reconcile.from;
    bool later = searched || (block && block->number > m->life.used_block);
    return x->nonce < m->life.used_nonce && !later &&
           m->suspension.why != MANAGER_SUSPENSION_REAPED;
}

bool manager__try_collect(struct manager *m, const struct tx_included *x,
                          const struct manager_block *block)
{
    struct row *row = line_at(&m->line, x->nonce);
    /* Of a life that is over, nothing is news but what lost commits have sent. */
    bool over = m->suspension.why == MANAGER_SUSPENSION_REAPED && !m->era_wait.on;
    bool dead = !block && m->final.known && x->nonce < m->final.nonce; /* in a pool */
    if (!x->bytes || x->signature != TX_SIGNATURE_GOOD || over || dead)
        return false;
    bool other = row && (row->presigned || row->end || row->foreign ||
                         !same_call(row, x->bytes + x->bytes_len - x->call_len, x->call_len));
    bool lost = m->reconcile.on && (row ? block != NULL : !on_record(m, x, block));
    if (!lost && (!row || other))
        return false;
    add_found(m, x, block ? block->time_ms : -1);
    if (other)
        return false; /* it is not the row's: see manager__displaced */
    if (row && block) {
        row->found = true;
        m->reconcile.adopt_due = m->reconcile.adopt_due || !m->reconcile.on;
    }
    return true;
}

/* ---- when it is enough ---- */

/* Every nonce below it was given by the table. */
static uint64_t given(const struct manager *m)
{
    uint64_t next = m->line.rows ? m->line.next : 0;
    return m->load.next_nonce > 0 && (uint64_t)m->load.next_nonce > next
               ? (uint64_t)m->load.next_nonce
               : next;
}

/* The best block used nonces that neither the table nor a final block accounts for. */
static bool unexplained(const struct manager *m, uint64_t best_nonce)
{
    return best_nonce > given(m) && best_nonce > m->final.nonce;
}

/* The chain's nonce is above ours at the first probe, on the timeline that we know: the key is used
 * elsewhere, or the database was brought back from a copy. Looked into once a leadership. */
static bool ran_ahead(const struct manager *m, uint64_t best_nonce)
{
    return !m->reconcile.done && m->load.next_nonce >= 0 && m->reconcile.seen_block &&
           best_nonce > given(m) && m->suspension.why != MANAGER_SUSPENSION_REAPED;
}

bool manager__try_reconcile(struct manager *m, uint64_t best_nonce)
{
    PRE(m->phase == MANAGER_PROBE_NONCE_WAIT);
    if (!m->reconcile.on) {
        if (!ran_ahead(m, best_nonce))
            return true;
        m->reconcile.on = true;
        m->reconcile.from = m->reconcile.seen_block;
        manager__follow_loaded(m);
    } else if (!unexplained(m, best_nonce) || m->final.processed >= m->reconcile.end) {
        m->reconcile.adopt_due = true;
    }
    return false;
}

static int by_nonce(const void *a, const void *b)
{
    const struct tx_found *x = a, *y = b;
    return (x->nonce > y->nonce) - (x->nonce < y->nonce);
}

/* No block up to this one holds any of what was found. */
static uint64_t before_all(const struct manager *m)
{
    uint64_t from = m->reconcile.on ? m->reconcile.from : UINT64_MAX;
    for (size_t i = 0; i < m->reconcile.found_count; i++) {
        const struct row *row = line_at(&m->line, m->reconcile.found[i].nonce);
        if (row && row->submitted_block < from)
            from = row->submitted_block;
    }
    return from;
}

static bool found_at(const struct manager *m, uint64_t nonce)
{
    for (size_t i = 0; i < m->reconcile.found_count; i++)
        if (m->reconcile.found[i].nonce == nonce)
            return true;
    return false;
}

/* The lost commits may have ended a row and given its nonce to another transaction, and a final
 * block shows that one's extrinsic. The database can adopt it once the nonce is free, so the row's
 * end is stored first. The account is not reconciled before both are: a successor finds the
 * extrinsic again. */
bool manager__displaced(const struct manager *m, const struct row *row)
{
    PRE(row->end);
    return m->reconcile.on && m->reconcile.adopt_due && !row->end->tx.has_block &&
           row->end->tx.used_block && found_at(m, row->nonce);
}

bool manager__resent(const struct manager *m, const struct row *row)
{
    for (size_t i = 0; i < m->reconcile.found_count; i++) {
        const struct tx_found *f = &m->reconcile.found[i];
        if (f->nonce != row->nonce &&
            same_call(row, f->bytes + f->bytes_len - f->call_len, f->call_len))
            return true;
    }
    return false;
}

static bool any_displaced(const struct manager *m)
{
    for (size_t i = 0; i < m->reconcile.found_count; i++) {
        const struct row *row = line_at(&m->line, m->reconcile.found[i].nonce);
        bool ends = row && row->end && manager__displaced(m, row);
        if (ends && (m->suspension.why != MANAGER_SUSPENSION_REAPED || manager__dead(m, row)))
            return true;
    }
    return false;
}

void manager__adopt_pump(struct manager *m)
{
    bool reaped = m->suspension.why == MANAGER_SUSPENSION_REAPED;
    if (m->reconcile.adopt_due && m->reconcile.on && reaped && m->phase >= MANAGER_CHAIN_WAIT)
        manager__requeue_resent(m);
    struct adopt_view v = {
        .due = m->reconcile.adopt_due,
        .loaded = m->phase >= MANAGER_CHAIN_WAIT,
        .first_probe = m->phase == MANAGER_PROBE_POOL_WAIT || m->phase == MANAGER_PROBE_NONCE_WAIT,
        .ending = m->reconcile.adopt_due && (manager__requeuing(m) || any_displaced(m)),
        .storing = m->writes.out[MANAGER_FX_STORE_ADOPT]};
    if (adopt_next(&v) != ADOPT_STORE)
        return;
    m->reconcile.adopt_due = false;
    if (m->reconcile.found_count)
        qsort(m->reconcile.found, m->reconcile.found_count, sizeof(*m->reconcile.found), by_nonce);
    struct manager_effect *fx = manager__write(m, MANAGER_FX_STORE_ADOPT);
    fx->adopt.found = m->reconcile.found;
    fx->adopt.count = m->reconcile.found_count;
    fx->adopt.block = before_all(m);
    fx->adopt.done = m->reconcile.on;
    fx->adopt.read = manager__era_wait_read(m);
    fx->adopt.ahead_ms = manager__clock_ahead_ms(m);
}

/* What was adopted is loaded with everything else; a row whose bytes were not adopted lost its
 * nonce. */
void manager__adopted(struct manager *m, const struct manager_event *ev)
{
    size_t count = ev->stored.adopted;
    PRE(m->phase >= MANAGER_CHAIN_WAIT);
    if (m->reconcile.on)
        m->reconcile.done = true;
    if (m->reconcile.found_count)
        manager__alert(m,
                       "the database lost commits, or the key is used elsewhere: of %zu extrinsics "
                       "that no pending transaction explains, %zu were adopted by their calls",
                       m->reconcile.found_count, count);
    if (count) {
        manager__reload(m, true);
        return;
    }
    uint64_t from = UINT64_MAX;
    for (size_t i = 0; i < m->reconcile.found_count; i++) {
        struct row *row = line_at(&m->line, m->reconcile.found[i].nonce);
        if (!row || !row->found)
            continue;
        row->found = false;
        row->foreign = true;
        if (row->submitted_block < from)
            from = row->submitted_block;
    }
    if (m->reconcile.on)
        manager__poll_requests(m); /* no stop was heard before */
    manager__found_clear(m);
    manager__probe_soon(m);
    if (from != UINT64_MAX)
        manager__follow(m, from);
}

/* The chain is there and the rows are loaded: follow from the first block that could hold one of
 * them. The block at submitted_block was final before the row was signed, so it cannot. Without
 * rows the newest finalized block is wanted for its account nonce. */
void manager__follow_loaded(struct manager *m)
{
    PRE(m->phase >= MANAGER_CHAIN_WAIT);
    uint64_t from = m->line.rows ? m->load.min_submitted + 1 : m->chain.finalized;
    if (m->line.rows && m->final.read < m->load.min_submitted)
        m->final.read = m->load.min_submitted; /* by the leader that signed the row */
    m->final.regular_from = from;
    if (m->reconcile.on) {
        uint64_t lost = manager__reconcile_begin(m);
        from = lost < from ? lost : from;
    }
    manager__follow(m, from);
}
