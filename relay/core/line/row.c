/* One row: its memory, its state and attempts, and what a change of them means for the indexes. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "line_internal.h"

const char *row_status_name(uint8_t status)
{
    return status == STATUS_SIGNED ? "signed" : tx_status_name((enum tx_status)status);
}

const char *row_reason_text(uint8_t reason)
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
    PRE(reason < ARRAY_LEN(texts));
    return texts[reason];
}

/* ---- sets that follow from the state ---- */

bool row__held(const struct row *row)
{
    return row->state == ROW_RESIGN || row->state == ROW_FILL || row->state == ROW_SIGNING ||
           (row->state == ROW_UNSURE && !row->tentative);
}

static void enter(struct line *line, struct row *row)
{
    line__put(line, row->state, row, true);
    line__put(line, SET_BARRIER, row, row__held(row));
    line__put(line, SET_LIVE, row, !row->end);
    row->seq = line->probe_seq;
    if (row->state != ROW_RESIGN && row->state != ROW_SIGNING)
        row->racing = false;
    if (row->state == ROW_POOLED || row->state == ROW_IN_BLOCK) {
        row->activity_block = line->blocks;
        row->turned_away = false;
        list_append(&line->activity, &row->activity);
    }
}

void line_move(struct line *line, struct row *row, enum row_state state)
{
    PRE(state < ROW_STATES && line_at(line, row->nonce) == row);
    line__moves(line, row->nonce, row->state, state);
    line__put(line, row->state, row, false);
    list_remove(&row->activity);
    row->state = (uint8_t)state;
    enter(line, row);
}

void line_refresh(struct line *line, struct row *row)
{
    PRE(line_at(line, row->nonce) == row);
    line__put(line, SET_LIVE, row, !row->end);
    line__put(line, SET_DIRTY, row, row->refused || (row->unstored && !row->end));
}

void line_set_presigned(struct line *line, struct row *row)
{
    PRE(!row->presigned);
    row->presigned = true;
    line->presigned_rows++;
}

void line_news(struct line *line, struct row *row)
{
    PRE(line_at(line, row->nonce) == row);
    row->activity_block = line->blocks;
    if (!list_linked(&row->activity))
        return;
    list_remove(&row->activity);
    list_append(&line->activity, &row->activity);
}

/* ---- memory ---- */

struct row *line_add(struct line *line, uint64_t nonce, enum row_state state)
{
    PRE(state < ROW_STATES && nonce >= line->low && nonce < line->next && !line_at(line, nonce));
    struct row *row = xcalloc(1, sizeof(*row));
    row->nonce = nonce;
    row->era_death = -1;
    row->status = STATUS_SIGNED;
    row->state = (uint8_t)state;
    line->slots[nonce & (line->cap - 1)] = row;
    line->rows++;
    line__moves(line, nonce, SM_OUTSIDE, state);
    enter(line, row);
    return row;
}

void line__row_free(struct row *row)
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

void line_remove(struct line *line, struct row *row)
{
    PRE(line_at(line, row->nonce) == row);
    line__moves(line, row->nonce, row->state, SM_OUTSIDE);
    for (unsigned k = 0; k < SET_COUNT; k++)
        line__put(line, k, row, false);
    list_remove(&row->activity);
    if (row->bytes)
        line__hash_remove(line, row->hash, row->nonce);
    for (size_t i = 0; i < row->earlier_count; i++)
        line__hash_remove(line, row->earlier[i], row->nonce);
    line->slots[row->nonce & (line->cap - 1)] = NULL;
    line->rows--;
    line->presigned_rows -= row->presigned;
    line__row_free(row);
    while (line->low < line->next && !line->slots[line->low & (line->cap - 1)])
        line->low++;
}

void line_earlier(struct line *line, struct row *row, const uint8_t hash[32])
{
    bool current;
    if (row_knows(row, hash, &current) && !current)
        return;
    INVARIANT(row->earlier_count < UINT16_MAX);
    if (!row->filler)
        row->earlier_own = (uint16_t)(row->earlier_count + 1);
    row->earlier = xrealloc(row->earlier, (row->earlier_count + 1u) * sizeof(*row->earlier));
    memcpy(row->earlier[row->earlier_count++], hash, 32);
    line__hash_add(line, hash, row->nonce);
}

bool row_knows(const struct row *row, const uint8_t hash[32], bool *ret_current)
{
    bool current = row->bytes && !memcmp(row->hash, hash, 32);
    if (ret_current)
        *ret_current = current;
    for (size_t i = 0; !current && i < row->earlier_count; i++)
        if (!memcmp(row->earlier[i], hash, 32))
            return true;
    return current;
}

/* ---- attempts ---- */

void line_bytes(struct line *line, struct row *row, const uint8_t hash[32], const uint8_t *bytes,
                size_t len, size_t call_len, int64_t era_death, uint32_t spec_version)
{
    PRE(line_at(line, row->nonce) == row);
    PRE(len <= UINT32_MAX && call_len <= len);
    /* Deterministic signatures over the same era give the same bytes again: one hash, not two. */
    bool same = row->bytes && !memcmp(row->hash, hash, 32);
    if (row->bytes && !same) {
        uint8_t old[32];
        memcpy(old, row->hash, 32);
        line__hash_remove(line, old, row->nonce);
        free(row->bytes);
        row->bytes = NULL;
        line_earlier(line, row, old);
    }
    if (!same) {
        memcpy(row->hash, hash, 32);
        row->bytes = xmalloc(len);
        line__hash_add(line, hash, row->nonce);
        row->banned = row->let_go = false;
    }
    memcpy(row->bytes, bytes, len);
    row->bytes_len = (uint32_t)len;
    row->call_len = (uint32_t)call_len;
    row->era_death = era_death;
    row->spec_version = spec_version;
    row->status = STATUS_SIGNED;
    row->unstored = false; /* the store set the state with the attempt */
    line_refresh(line, row);
    if (era_death >= 0)
        line__era_put(line, (uint64_t)era_death, row->nonce);
}

void row_went_out(struct row *row)
{
    PRE(row->bytes);
    int64_t death = row->era_death < 0 ? INT64_MAX : row->era_death;
    if (!row->was_out || death > row->out_death)
        row->out_death = death;
    if (!row->filler && death > row->own_death)
        row->own_death = death;
    row->was_out = true;
}

void line_status(struct line *line, struct row *row, enum tx_status status,
                 const uint8_t *block_hash)
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
    line_refresh(line, row);
}
