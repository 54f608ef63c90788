/* Invariants over all rows and indexes, for tests and the simulator: too slow for every step of a
 * product. */
#include "line_internal.h"

static void check_row(const struct line *line, const struct row *row, size_t *hashes)
{
    for (unsigned k = 0; k < ROW_STATES; k++)
        INVARIANT(line__has(line, k, row) == (row->state == k));
    INVARIANT(line__has(line, SET_LIVE, row) == !row->end);
    INVARIANT(!row->end || row->state == ROW_SIGNING || row->state == ROW_ENDING ||
              row->state == ROW_FINISHING);
    INVARIANT(line__has(line, SET_BARRIER, row) == row__held(row));
    INVARIANT(list_linked(&row->activity) ==
              (row->state == ROW_POOLED || row->state == ROW_IN_BLOCK));
    INVARIANT(row->bytes || row->state == ROW_FILL || row->state == ROW_SIGNING);
    INVARIANT(row->was_out || row->state != ROW_POOLED);
    if (row->bytes) {
        INVARIANT(line_by_hash(line, row->hash) == row);
        INVARIANT(row->call_len <= row->bytes_len);
        ++*hashes;
    }
    for (size_t i = 0; i < row->earlier_count; i++)
        INVARIANT(line_by_hash(line, row->earlier[i]) == row);
    *hashes += row->earlier_count;
}

static void check_ring(const struct line *line)
{
    size_t rows = 0, hashes = 0, counts[SET_COUNT] = {0};
    INVARIANT(line->low <= line->next && line->next - line->low <= line->cap);
    for (size_t i = 0; i < line->cap; i++) {
        const struct row *row = line->slots[i];
        if (!row)
            continue;
        INVARIANT((row->nonce & (line->cap - 1)) == i && row->nonce >= line->low &&
                  row->nonce < line->next);
        check_row(line, row, &hashes);
        rows++;
        for (unsigned k = 0; k < SET_COUNT; k++)
            counts[k] += line__has(line, k, row);
    }
    INVARIANT(rows == line->rows && hashes == line->table_count);
    for (unsigned k = 0; k < SET_COUNT; k++)
        INVARIANT(counts[k] == line->sets[k].count);
}

static void check_activity(const struct line *line)
{
    size_t count = 0;
    uint32_t last = 0;
    LIST_EACH (node, &line->activity) {
        const struct row *row = CONTAINER_OF(node, struct row, activity);
        INVARIANT(row->activity_block >= last);
        last = row->activity_block;
        count++;
    }
    INVARIANT(count == line->sets[ROW_POOLED].count + line->sets[ROW_IN_BLOCK].count);
}

void line_check(const struct line *line)
{
    check_ring(line);
    check_activity(line);
    for (size_t i = 1; i < line->era_count; i++)
        INVARIANT(line->eras[(i - 1) / 2].death <= line->eras[i].death);
}
