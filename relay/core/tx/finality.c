/* Finalized blocks: the only truth about the end of a row. Every height is seen once and in
 * order. */
#include <stdlib.h>

#include "admit.h"
#include "base/hex.h"
#include "chain.h"
#include "effects.h"
#include "ends.h"
#include "nonces.h"
#include "reconcile.h"
#include "sign.h"
#include "suspend.h"

void manager__follow(struct manager *m, uint64_t from)
{
    PRE(m->phase >= MANAGER_CHAIN_WAIT);
    if (!from)
        from = 1; /* the genesis block holds nothing of ours */
    m->final.processed = from - 1;
    m->final.gap_from = 0;
    if (from <= m->final.unread_from) /* they are read once more */
        m->final.unread_from = m->final.unread_to = 0;
    m->final.at = m->now;
    m->final.following = true;
    manager__fx(m, MANAGER_FX_FOLLOW)->number = from;
}

/* Bytes that this relay cannot verify prove nothing. That the nonce is used counts all the same,
 * once the account's nonce at finalized blocks says so. */
static void unproven(struct manager *m, const struct tx_included *x,
                     const struct manager_block *block)
{
    PRE(x->signature != TX_SIGNATURE_BAD); /* the node refuses its block */
    manager__alert(m,
                   "extrinsic %s in block %llu names the account as its signer at nonce %llu; "
                   "this relay cannot verify the signature, so the extrinsic alone ends nothing",
                   hex_log(x->hash, 32), (unsigned long long)block->number,
                   (unsigned long long)x->nonce);
}

static void included(struct manager *m, const struct tx_included *x,
                     const struct manager_block *block)
{
    PRE(block->number == m->final.processed);
    struct row *row = line_by_hash(&m->line, x->hash);
    /* Used for good, also where the account's nonce at the block cannot be read. */
    uint64_t nonce = row ? row->nonce : x->nonce;
    bool proven = x->own_signer && x->signature == TX_SIGNATURE_GOOD;
    if ((row || proven) && m->final.nonce <= nonce) {
        m->final.nonce = nonce + 1;
        if (block->account_nonce == UINT64_MAX && m->final.nonce_block < block->number)
            m->final.nonce_block = block->number; /* a lower nonce of an earlier block is no reap */
    }
    if (row) {
        if (row->end && !row->end->tx.has_block && row->state == ROW_ENDING) { /* see is_lost */
            free(row->end);
            row->end = NULL;
        }
        if (!row->end)
            manager__end_ours(m, row, x, block);
        return;
    }
    row = line_at(&m->line, x->nonce);
    if (!proven) {
        if (x->own_signer && row && !row->end)
            unproven(m, x, block);
        return;
    }
    /* An account that is removed in the same block has its nonces again, and our bytes with them:
     * only a nonce that stays above this one says that it is gone. Where it could not be read, a
     * later block tells. */
    if (row && (block->account_nonce == UINT64_MAX || block->account_nonce <= x->nonce))
        return;
    if (manager__try_collect(m, x, block))
        return;
    if (row && row->end)
        manager__end_overtaken(row, block);
    else if (row)
        manager__end_usurped(m, row, x, block);
    else if (x->nonce >= m->line.next && m->phase == MANAGER_LEADING)
        manager__chain_nonce(m, x->nonce + 1, "in a finalized block");
}

/* No bytes of the row are in this block. A nonce that it shows as used may be one of a former life
 * of the account: lost commits may have left rows of two lives, which are adopted together. */
static bool is_younger(const struct row *row, uint64_t block)
{
    return row->submitted_block >= block;
}

/* Blocks are read once more, never passed over: a row of an earlier block may be in them. */
static void follow_again(struct manager *m, uint64_t from)
{
    PRE(m->final.following);
    if (from <= m->final.processed)
        manager__follow(m, from);
}

/* Nonces below the account's are used. Which extrinsic used one that no block showed is looked
 * for once more from the block the row was signed at, before the row is given up; `block` NULL:
 * look only. That the nonce is used is the word of a node: the row is given up only when no block
 * can take its bytes any more, so the same node, or another one, may take its word back. */
void manager__consumed(struct manager *m, uint64_t account_nonce, const struct manager_block *block)
{
    PRE(m->phase >= MANAGER_CHAIN_WAIT);
    uint64_t from = UINT64_MAX;
    struct row *row;
    for (uint64_t at = 0;
         (row = line_first(&m->line, SET_LIVE, at)) && row->nonce < account_nonce;) {
        at = row->nonce + 1;
        if (row->state == ROW_SIGNING || row->found || manager__try_drop_gap(m, row) ||
            (block && is_younger(row, block->number)))
            continue;
        if (row->refollowed) {
            if (block && (manager__dead(m, row) || row->out_death == INT64_MAX))
                manager__end_unseen(m, row, block);
            continue;
        }
        row->refollowed = true;
        if (row->submitted_block < from)
            from = row->submitted_block;
    }
    if (from != UINT64_MAX)
        follow_again(m, from);
}

static bool try_expect(struct manager *m, uint64_t number)
{
    if (!m->final.following || number <= m->final.processed)
        return false;
    if (number == m->final.processed + 1 || m->final.gap_from == m->final.processed + 1 ||
        PLANTED(SKIP_HEIGHT))
        return true;
    uint64_t missing = m->final.processed + 1;
    manager__follow(m, missing); /* a height was skipped: request it once */
    m->final.gap_from = missing;
    return false;
}

/* A final nonce that goes down is an account that was reaped and lives again: what was signed
 * for its former life is for an operator to judge. Heights that are read once more say nothing
 * new. */
static void new_nonce(struct manager *m, const struct manager_block *block)
{
    if (block->number <= m->final.nonce_block)
        return;
    if (block->account_nonce < m->final.nonce && !PLANTED(REAP_MISSED))
        manager__reaped(m, block->account_nonce, m->final.nonce, block->number);
    manager__former_life(m, block);
    m->final.nonce_block = block->number;
    if (m->suspension.why == MANAGER_SUSPENSION_REAPED) {
        m->final.nonce = block->account_nonce;
        manager__life_seen(m, block);
    }
}

uint64_t manager_shown_nonce(const struct manager *m, const struct tx_included *x)
{
    const struct row *row = line_by_hash(&m->line, x->hash);
    bool proven = x->own_signer && x->signature == TX_SIGNATURE_GOOD;
    return row ? row->nonce + 1 : proven ? x->nonce + 1 : 0;
}

/* The first block that is read after a load has nothing before it to be compared with. Only what is
 * on record as used, or shown by the block, is certain there; one more answer has to do for a nonce
 * that ours may have reached. */
static enum tx_doubt first_doubt(const struct manager *m, uint64_t number, uint64_t nonce,
                                 uint64_t shown)
{
    bool recorded = number >= m->life.used_block;
    uint64_t certain = recorded && m->life.used_nonce > shown ? m->life.used_nonce : shown;
    bool rewinds =
        recorded && !m->line.rows && m->load.next_nonce > 0 && nonce < (uint64_t)m->load.next_nonce;
    if (rewinds || nonce > manager__nonce_known(m))
        return TX_DOUBTED;
    return nonce > certain ? TX_TWICE : TX_CERTAIN;
}

/* Some row would end because of this nonce, and no block showed by what (manager__consumed). */
static bool ends_unseen(const struct manager *m, uint64_t number, uint64_t nonce)
{
    const struct row *row;
    for (uint64_t at = 0; (row = line_first(&m->line, SET_LIVE, at)) && row->nonce < nonce;
         at = row->nonce + 1) {
        bool waits =
            row->was_out && row->out_death != INT64_MAX && number < (uint64_t)row->out_death;
        if (row->refollowed && !waits && !is_younger(row, number))
            return true;
    }
    return false;
}

enum tx_doubt manager_doubts_nonce(const struct manager *m, uint64_t number, uint64_t nonce,
                                   uint64_t shown)
{
    bool is_reaped = m->suspension.why == MANAGER_SUSPENSION_REAPED;
    if (m->phase < MANAGER_CHAIN_WAIT || number < m->final.regular_from || PLANTED(NONCE_ONCE))
        return TX_CERTAIN;
    if (ends_unseen(m, number, nonce))
        return TX_DOUBTED;
    if (number <= m->final.nonce_block) /* it is read once more */
        return nonce > m->final.nonce && !is_reaped ? TX_DOUBTED : TX_CERTAIN;
    bool record = !is_reaped && number >= m->life.used_block;
    bool reaped = nonce < m->final.nonce || nonce < shown || (record && nonce < m->life.used_nonce);
    if (reaped)
        return TX_DOUBTED;
    if (!m->final.known)
        return first_doubt(m, number, nonce, shown);
    /* Of transactions that have ended a successor has no rows, so it does not know by what their
     * nonces were used; the table says that they are. */
    if (!is_reaped && nonce <= m->life.used_nonce)
        return record ? TX_CERTAIN : TX_TWICE;
    return nonce > m->final.nonce && nonce > shown ? TX_DOUBTED : TX_CERTAIN;
}

static void balance(struct manager *m, const struct manager_block *block)
{
    if (!block->has_balance || !m->account.has_low_balance)
        return;
    if (block->balance >= m->account.low_balance) {
        manager__alert_over(m, ALERT_BALANCE);
        return;
    }
    char has[40], should[40];
    manager__alert_once(m, ALERT_BALANCE, "the free balance is %s at block %llu; low_balance is %s",
                        u128_text(block->balance, has), (unsigned long long)block->number,
                        u128_text(m->account.low_balance, should));
}

bool manager__nonce_settled(const struct manager *m)
{
    return m->final.known && m->final.nonce_read >= m->final.read;
}

uint64_t manager_block_read(const struct manager *m)
{
    return m->final.read;
}

uint64_t manager__searched(const struct manager *m)
{
    const struct final_view *f = &m->final;
    bool hidden = f->unread_to > f->nonce_read && f->processed > f->nonce_read;
    return hidden ? f->nonce_read : f->processed;
}

/* A block that is older than every row: nothing in it can be of a row, nor is its nonce news.
 * Either may be of a life of the account that is over. */
static void search(struct manager *m, const struct manager_block *block)
{
    PRE(block->number < m->final.regular_from);
    for (size_t i = 0; i < block->included_count; i++)
        if (block->included[i].own_signer && !line_by_hash(&m->line, block->included[i].hash))
            manager__try_collect(m, &block->included[i], block);
}

/* Its former bytes were signed at an earlier block than the present ones. */
bool manager__may_be_unread(const struct manager *m, const struct row *row)
{
    return m->final.unread_to && (row->earlier_count || m->final.unread_to > row->submitted_block);
}

bool manager_needs_blocks(const struct manager *m)
{
    return m->line.rows || m->reconcile.on;
}

/* No endpoint has this block. The account goes on by its nonces, which alone can show whether a
 * transaction is in the block. */
static void unread(struct manager *m, const struct manager_block *block)
{
    if (!m->final.unread_to)
        m->final.unread_from = block->number;
    m->final.unread_to = block->number;
    struct row *row = line_first(&m->line, SET_LIVE, 0);
    if (!row || row->submitted_block >= block->number)
        return;
    manager__alert_once(
        m, ALERT_UNREAD,
        "no endpoint has block %llu, which may hold nonce %llu: its account's nonce "
        "tells",
        (unsigned long long)block->number, (unsigned long long)row->nonce);
}

static void regular(struct manager *m, const struct manager_block *block)
{
    if (block->unread && !PLANTED(UNREAD_EMPTY))
        unread(m, block);
    else
        manager__alert_over(m, ALERT_UNREAD);
    for (size_t i = 0; i < block->included_count; i++)
        included(m, &block->included[i], block);
    if (block->account_nonce != UINT64_MAX) {
        new_nonce(m, block);
        m->final.known = true;
        if (block->number > m->final.nonce_read)
            m->final.nonce_read = block->number;
        if (block->account_nonce > m->final.nonce)
            m->final.nonce = block->account_nonce;
        if (m->phase == MANAGER_LEADING)
            manager__chain_nonce(m, block->account_nonce, "in a finalized block");
        manager__consumed(m, block->account_nonce, block);
    }
    balance(m, block);
    manager__version_check(m);
    manager__late_resigns(m);
    manager__eras(m);
    manager__presigned_dead(m);
}

/* What a wait after lost commits has not read may be what they sent, so no such block is passed
 * over: it is asked for again until a node has it. */
static bool try_unread_block(struct manager *m, const struct manager_block *told)
{
    enum { AGAIN_MS = 60000 };
    struct final_view *f = &m->final;
    if (!m->era_wait.on)
        f->stuck_at = 0;
    bool next = f->following && told->number == f->processed + 1;
    if (next && told->unread && m->era_wait.on && f->stuck_at != told->number) {
        f->stuck_at = told->number;
        f->stuck_again = m->now + AGAIN_MS;
        manager__alert(m, "the wait after lost commits needs block %llu, which no endpoint has",
                       (unsigned long long)told->number);
    } else if (next && !told->unread) {
        f->stuck_at = 0;
    }
    if (f->stuck_at && m->now >= f->stuck_again) {
        f->stuck_again = m->now + AGAIN_MS;
        manager__follow(m, f->stuck_at);
    }
    return f->stuck_at != 0;
}

void manager__finalized(struct manager *m, const struct manager_block *told)
{
    PRE(told && (!told->included_count || told->included));
    manager__final_block(m, told->number);
    if (m->phase < MANAGER_CHAIN_WAIT || try_unread_block(m, told) || !try_expect(m, told->number))
        return;
    struct manager_block block = *told;
    if (block.account_nonce != UINT64_MAX &&
        manager__nonce_absurd(m, block.account_nonce, block.number))
        block.account_nonce = UINT64_MAX; /* for all that this block means */
    m->final.processed = block.number;
    m->final.at = m->now;
    if (block.spec_version) {
        m->final.spec_version = block.spec_version;
        m->final.spec_block = block.number;
    }
    if (block.number > m->final.read)
        m->final.read = block.number;
    manager__era_wait_block(m, &block);
    if (block.number < m->final.regular_from)
        search(m, &block);
    else
        regular(m, &block);
}
