/* One row: its memory, its states, and what a change of state means for the sets and the news list. */
#include <stdlib.h>
#include <string.h>

#include "manager_internal.h"

const char *manager__status_name(uint8_t status)
{
    static const char *const names[] = {
        [TX_FUTURE] = "future",       [TX_READY] = "ready",
        [TX_BROADCAST] = "broadcast", [TX_IN_BLOCK] = "in_block",
        [TX_RETRACTED] = "retracted", [TX_FINALITY_TIMEOUT] = "finality_timeout",
        [TX_FINALIZED] = "finalized", [TX_USURPED] = "usurped",
        [TX_DROPPED] = "dropped",     [TX_INVALID] = "invalid",
    };
    return status < ARRAY_LEN(names) ? names[status] : "signed";
}

const char *manager__reason_text(uint8_t reason)
{
    static const char *const texts[] = {
        [REASON_NONE] = "signed again",
        [REASON_BANNED] = "the node has banned these bytes",
        [REASON_ERA] = "era expired",
        [REASON_RUNTIME] = "runtime version changed",
        [REASON_PROOF] = "the node found a bad signature: runtime version or era moved",
        [REASON_HOLE] = "no transaction was recorded at this nonce",
        [REASON_INVALID] = "the node found it invalid",
        [REASON_STOP] = "stopped",
        [REASON_FEE] = "a higher tip",
    };
    return texts[reason];
}

/* ---- sets that follow from the state ---- */

static bool held(const struct row *row)
{
    return row->state == ROW_RESIGN || row->state == ROW_FILL || row->state == ROW_SIGNING ||
           (row->state == ROW_UNSURE && !row->soft);
}

static void enter(struct manager *m, struct row *row)
{
    manager__set_put(m, row->state, row, true);
    manager__set_put(m, SET_HELD, row, held(row));
    manager__set_put(m, SET_LIVE, row, !row->end);
    row->seq = m->probe_seq;
    if (row->state == ROW_POOLED || row->state == ROW_IN_BLOCK) {
        row->news_block = m->blocks;
        list_append(&m->news, &row->news);
    }
}

void manager__move(struct manager *m, struct row *row, enum row_state state)
{
    manager__row_moves(m, row->nonce, row->state, state);
    manager__set_put(m, row->state, row, false);
    list_remove(&row->news);
    row->state = (uint8_t)state;
    enter(m, row);
}

void manager__news(struct manager *m, struct row *row)
{
    row->news_block = m->blocks;
    if (!list_linked(&row->news))
        return;
    list_remove(&row->news);
    list_append(&m->news, &row->news);
}

size_t manager__not_in_block(const struct manager *m)
{
    return m->rows - m->sets[ROW_IN_BLOCK].count - m->sets[ROW_ENDING].count - m->sets[ROW_FINISHING].count;
}

/* ---- memory ---- */

struct row *manager__row_new(struct manager *m, uint64_t nonce, enum row_state state)
{
    INVARIANT(nonce >= m->low && nonce < m->next && !manager__at(m, nonce));
    struct row *row = xcalloc(1, sizeof(*row));
    row->nonce = nonce;
    row->era_death = -1;
    row->status = STATUS_SIGNED;
    row->state = (uint8_t)state;
    m->slots[nonce & (m->cap - 1)] = row;
    m->rows++;
    manager__row_moves(m, nonce, SM_OUTSIDE, state);
    enter(m, row);
    return row;
}

void manager__row_free(struct row *row)
{
    free(row->bytes);
    free(row->block_hash);
    free(row->earlier);
    free(row->end);
    free(row->note);
    free(row->stop);
    free(row->terms);
    free(row);
}

/* The row is gone; the ring's low end moves up to the next row. */
void manager__row_remove(struct manager *m, struct row *row)
{
    manager__row_moves(m, row->nonce, row->state, SM_OUTSIDE);
    for (unsigned k = 0; k < SET_COUNT; k++)
        manager__set_put(m, k, row, false);
    list_remove(&row->news);
    if (row->bytes)
        manager__hash_remove(m, row->hash, row->nonce);
    for (size_t i = 0; i < row->earlier_count; i++)
        manager__hash_remove(m, row->earlier[i], row->nonce);
    m->slots[row->nonce & (m->cap - 1)] = NULL;
    m->rows--;
    m->fixed_rows -= row->fixed;
    manager__row_free(row);
    while (m->low < m->next && !m->slots[m->low & (m->cap - 1)])
        m->low++;
}

void manager__row_earlier(struct manager *m, struct row *row, const uint8_t hash[32])
{
    bool current;
    if (manager__row_knows(row, hash, &current) && !current)
        return;
    INVARIANT(row->earlier_count < UINT16_MAX);
    if (!row->filler)
        row->earlier_own = (uint16_t)(row->earlier_count + 1);
    row->earlier = xrealloc(row->earlier, (row->earlier_count + 1u) * sizeof(*row->earlier));
    memcpy(row->earlier[row->earlier_count++], hash, 32);
    manager__hash_add(m, hash, row->nonce);
}

bool manager__row_knows(const struct row *row, const uint8_t hash[32], bool *ret_current)
{
    bool current = row->bytes && !memcmp(row->hash, hash, 32);
    if (ret_current)
        *ret_current = current;
    for (size_t i = 0; !current && i < row->earlier_count; i++)
        if (!memcmp(row->earlier[i], hash, 32))
            return true;
    return current;
}

/* ---- the era heap ---- */

static void era_put(struct manager *m, uint64_t death, uint64_t nonce)
{
    if (m->era_count == m->era_cap) {
        m->era_cap = m->era_cap ? m->era_cap * 2 : 256;
        m->eras = xrealloc(m->eras, m->era_cap * sizeof(*m->eras));
    }
    size_t i = m->era_count++;
    for (; i && m->eras[(i - 1) / 2].death > death; i = (i - 1) / 2)
        m->eras[i] = m->eras[(i - 1) / 2];
    m->eras[i] = (struct era_entry){death, nonce};
}

bool manager__era_next(struct manager *m, uint64_t height, struct era_entry *ret_entry)
{
    if (!m->era_count || m->eras[0].death > height)
        return false;
    *ret_entry = m->eras[0];
    struct era_entry last = m->eras[--m->era_count];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < m->era_count; i = k) {
        if (k + 1 < m->era_count && m->eras[k + 1].death < m->eras[k].death)
            k++;
        if (m->eras[k].death >= last.death)
            break;
        m->eras[i] = m->eras[k];
    }
    m->eras[i] = last;
    return true;
}

/* ---- attempts ---- */

/* A committed attempt becomes the row's current one; what was current is an earlier one from now on. */
void manager__row_bytes(struct manager *m, struct row *row, const uint8_t hash[32], const uint8_t *bytes,
                        size_t len, size_t call_len, int64_t era_death, uint32_t spec_version)
{
    PRE(len <= UINT32_MAX && call_len <= len);
    /* Deterministic signatures over the same era give the same bytes again: one hash, not two. */
    bool same = row->bytes && !memcmp(row->hash, hash, 32);
    if (row->bytes && !same) {
        uint8_t old[32];
        memcpy(old, row->hash, 32);
        manager__hash_remove(m, old, row->nonce);
        free(row->bytes);
        row->bytes = NULL;
        manager__row_earlier(m, row, old);
    }
    if (!same) {
        memcpy(row->hash, hash, 32);
        row->bytes = xmalloc(len);
        manager__hash_add(m, hash, row->nonce);
        row->banned = false;
    }
    memcpy(row->bytes, bytes, len);
    row->bytes_len = (uint32_t)len;
    row->call_len = (uint32_t)call_len;
    row->era_death = era_death;
    row->spec_version = spec_version;
    row->status = STATUS_SIGNED;
    row->unstored = false; /* the store set the state with the attempt */
    manager__set_put(m, SET_DIRTY, row, row->refused);
    if (era_death >= 0)
        era_put(m, (uint64_t)era_death, row->nonce);
}

/* A node took the current bytes, or nobody knows whether one did: they may be included until their era ends.
 */
void manager__went_out(struct row *row)
{
    int64_t death = row->era_death < 0 ? INT64_MAX : row->era_death;
    if (!row->was_out || death > row->out_death)
        row->out_death = death;
    if (!row->filler && death > row->own_death)
        row->own_death = death;
    row->was_out = true;
}

void manager__unwatch(struct manager *m, struct row *row)
{
    if (!row->watched)
        return;
    row->watched = false;
    struct manager_effect *fx = manager__fx(m, MANAGER_FX_UNWATCH);
    fx->nonce = row->nonce;
    memcpy(fx->hash, row->hash, 32);
}

/* What followers see. Coalesced: only the last status of a row is stored. */
void manager__status(struct manager *m, struct row *row, enum tx_status status, const uint8_t *block_hash)
{
    bool same_block =
        block_hash ? row->block_hash && !memcmp(row->block_hash, block_hash, 32) : !row->block_hash;
    if (row->status == status && same_block)
        return;
    row->status = (uint8_t)status;
    if (!block_hash) {
        free(row->block_hash);
        row->block_hash = NULL;
    } else {
        if (!row->block_hash)
            row->block_hash = xmalloc(32);
        memcpy(row->block_hash, block_hash, 32);
    }
    row->unstored = true;
    if (!row->end)
        manager__set_put(m, SET_DIRTY, row, true);
}
