/* Invariants over the whole state, for tests and the simulator: too slow for every step of a product. */
#include <string.h>

#include "manager_internal.h"

static void check_row(const struct manager *m, const struct row *row, size_t *hashes)
{
    for (unsigned k = 0; k < ROW_STATES; k++)
        INVARIANT(manager__set_has(m, k, row) == (row->state == k));
    INVARIANT(manager__set_has(m, SET_LIVE, row) == !row->end);
    INVARIANT(!row->end || row->state == ROW_SIGNING || row->state == ROW_ENDING ||
              row->state == ROW_FINISHING);
    bool held = row->state == ROW_RESIGN || row->state == ROW_FILL || row->state == ROW_SIGNING ||
                (row->state == ROW_UNSURE && !row->soft);
    INVARIANT(manager__set_has(m, SET_HELD, row) == held);
    INVARIANT(list_linked(&row->news) == (row->state == ROW_POOLED || row->state == ROW_IN_BLOCK));
    INVARIANT(row->bytes || row->state == ROW_FILL || row->state == ROW_SIGNING);
    INVARIANT(row->state != ROW_SUBMITTED || row->watched);
    INVARIANT(!row->stop || row->id);
    INVARIANT(row->state != ROW_FILL || row->reason != REASON_STOP || row->stop);
    if (row->bytes) {
        INVARIANT(manager__by_hash(m, row->hash) == row);
        INVARIANT(row->call_len <= row->bytes_len);
        ++*hashes;
    }
    for (size_t i = 0; i < row->earlier_count; i++)
        INVARIANT(manager__by_hash(m, row->earlier[i]) == row);
    *hashes += row->earlier_count;
}

static void check_ring(const struct manager *m)
{
    size_t rows = 0, hashes = 0, counts[SET_COUNT] = {0};
    INVARIANT(m->low <= m->next && m->next - m->low <= m->cap);
    for (size_t i = 0; i < m->cap; i++) {
        const struct row *row = m->slots[i];
        if (!row)
            continue;
        INVARIANT((row->nonce & (m->cap - 1)) == i && row->nonce >= m->low && row->nonce < m->next);
        check_row(m, row, &hashes);
        rows++;
        for (unsigned k = 0; k < SET_COUNT; k++)
            counts[k] += manager__set_has(m, k, row);
    }
    INVARIANT(rows == m->rows && hashes == m->table_count);
    for (unsigned k = 0; k < SET_COUNT; k++)
        INVARIANT(counts[k] == m->sets[k].count);
}

static void check_news(const struct manager *m)
{
    size_t count = 0;
    uint32_t last = 0;
    LIST_EACH (node, &m->news) {
        const struct row *row = CONTAINER_OF(node, struct row, news);
        INVARIANT(row->news_block >= last);
        last = row->news_block;
        count++;
    }
    INVARIANT(count == m->sets[ROW_POOLED].count + m->sets[ROW_IN_BLOCK].count);
}

void manager_check(const struct manager *m)
{
    INVARIANT(!m->illegal_moves); /* of a row or of the manager: see phase_table.c */
    check_ring(m);
    check_news(m);
    for (size_t i = 1; i < m->era_count; i++)
        INVARIANT(m->eras[(i - 1) / 2].death <= m->eras[i].death);
    INVARIANT(m->window >= 1 && m->window <= m->config.window_max);
    INVARIANT(!m->admit_count || m->write_out[MANAGER_WRITE_ADMIT]);
    INVARIANT(m->phase != MANAGER_IDLE || m->rows == 0);
}
