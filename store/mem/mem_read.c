/* The leader's reads: leader_outbox and leader_snapshot and leader_presigned of
 * 12_read.sql. What they return are copies, for the rows change while the caller holds them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "mem/mem.h"

enum { OUTBOX_BYTES = 16 << 20 };

/* ---- calls that may get a nonce ---- */

static bool has_rows(const struct mem_row *row, int64_t now)
{
    return row->not_before_us <= now && (!row->deadline_us || row->deadline_us > now);
}

static int64_t age_ms(const struct mem_db *db, const struct mem_row *row)
{
    return (mem_db_now_us(db) - row->created_us) / 1000;
}

static struct store_outbox_row outbox_row(struct mem_db *db, struct mem_answer *answer,
                                          const struct mem_row *row)
{
    return (struct store_outbox_row){
        .id = row->id,
        .call = mem__put_bytes(answer, row->call),
        .presigned = row->table == MEM_OUTBOX_SIGNED,
        .waited = row->table == MEM_OUTBOX_SIGNED && row->wait_block >= 0,
        .priority = row->priority,
        .deadline_ms = mem__wall_ms(db, row->deadline_us),
        .creator = mem__put_text(answer, row->creator),
        .guard = row->guard,
        .tip = row->has_tip ? mem__put_amount(answer, row->tip) : NULL,
        .max_tip = row->has_max_tip ? mem__put_amount(answer, row->max_tip) : NULL,
        .deadline_block = row->deadline_block,
        .retries = row->retries,
        .age_ms = age_ms(db, row),
        .trace = mem__put_text(answer, row->trace)};
}

/* At most `limit` rows, in the order of admission; limited in bytes, but always one. */
static size_t pick_calls(const struct mem_account *a, int64_t now, size_t limit,
                         const struct mem_row **out, const struct mem_row **ret_held)
{
    size_t n = 0, before = 0;
    *ret_held = NULL;
    LIST_EACH (p, &a->outbox) {
        const struct mem_row *row = CONTAINER_OF(p, struct mem_row, node);
        if (n == limit || before >= OUTBOX_BYTES)
            break;
        if (!has_rows(row, now))
            continue;
        if (row->held) {
            *ret_held = *ret_held ? *ret_held : row;
            continue;
        }
        before += row->call.len;
        out[n++] = row;
    }
    return n;
}

/* ---- what was signed elsewhere ---- */

static bool is_ready(const struct mem_row *row, int64_t block)
{
    return row->wait_block < 0 || row->wait_block <= block;
}

static int by_nonce(const void *x, const void *y)
{
    const struct mem_row *a = *(const struct mem_row *const *)x,
                         *b = *(const struct mem_row *const *)y;
    uint64_t m = (uint64_t)a->nonce, n = (uint64_t)b->nonce; /* those without a nonce come last */
    if (m != n)
        return m < n ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* Whose turn has come: a row of nonces without a gap from the next one on. */
static int64_t turns_end(struct mem_row *const *rows, size_t count, const struct store_outbox *r)
{
    int64_t end = r->next_nonce;
    size_t seen = 0;
    for (size_t i = 0; i < count && seen < r->limit; i++) {
        if (rows[i]->held || rows[i]->nonce < 0 || rows[i]->nonce < r->next_nonce ||
            !is_ready(rows[i], r->block))
            continue;
        seen++;
        end += rows[i]->nonce == end;
    }
    return end;
}

static bool is_due(const struct mem_row *row, const struct store_outbox *r, int64_t turns)
{
    int64_t at = row->wait_block >= 0 ? row->wait_block : row->era_death;
    bool ready = is_ready(row, r->block);
    return (at >= 0 && at <= r->block) || (ready && (row->nonce < 0 || row->nonce < turns));
}

/* held: the first row that is passed over, unless there is one already. */
static size_t pick_signed(const struct mem_account *a, const struct store_outbox *r, size_t all,
                          const struct mem_row **out, const struct mem_row **held)
{
    struct mem_row **rows = xcalloc(all + 1, sizeof(struct mem_row *));
    size_t count = 0, n = 0;
    LIST_EACH (p, &a->signed_rows)
        rows[count++] = CONTAINER_OF(p, struct mem_row, node);
    qsort(rows, count, sizeof(struct mem_row *), by_nonce);
    int64_t turns = turns_end(rows, count, r);
    for (size_t i = 0; i < count && n < r->limit; i++) {
        if (rows[i]->held)
            *held = *held ? *held : rows[i];
        else if (is_due(rows[i], r, turns))
            out[n++] = rows[i];
    }
    free(rows);
    return n;
}

/* The lowest nonce from the next one on that a row waits for whose nonce is not free yet. */
static int64_t reserved(const struct mem_account *a, int64_t next)
{
    int64_t lowest = -1;
    LIST_EACH (p, &a->signed_rows) {
        const struct mem_row *row = CONTAINER_OF(p, struct mem_row, node);
        if (row->nonce >= 0 && row->nonce >= next && row->wait_block < 0 &&
            (lowest < 0 || row->nonce < lowest))
            lowest = row->nonce;
    }
    return lowest;
}

/* The first one that waits for lower nonces, if a leader has noted that. */
static const struct mem_row *waiting(const struct mem_account *a, int64_t next)
{
    const struct mem_row *first = NULL;
    LIST_EACH (p, &a->signed_rows) {
        const struct mem_row *row = CONTAINER_OF(p, struct mem_row, node);
        if (row->nonce > next && row->waits && (!first || by_nonce(&row, &first) < 0))
            first = row;
    }
    return first;
}

static size_t list_count(const struct list *head)
{
    size_t n = 0;
    LIST_EACH (p, head)
        n++;
    return n;
}

void mem__outbox(struct mem_session *s, struct store_outbox *r)
{
    r->count = 0;
    r->rows = NULL;
    r->reserved = -1;
    r->held_id = 0;
    r->held_by = "";
    r->waits_id = 0;
    r->waits = "";
    struct mem_account *a = mem__fence(s->db, r->account, r->epoch, &r->req.err);
    if (!a)
        return;
    struct mem_answer *answer = mem__answer(&r->req);
    const struct mem_row *first = waiting(a, r->next_nonce);
    if (first) {
        r->waits_id = first->id;
        r->waits = mem__put_text(answer, first->waits);
    }
    if (a->paused)
        return;
    size_t signed_count = list_count(&a->signed_rows), limit = r->limit;
    size_t calls = list_empty(&a->outbox) ? 0 : limit < 64 ? limit : list_count(&a->outbox);
    const struct mem_row **rows = xcalloc(calls + signed_count + 1, sizeof(struct mem_row *));
    const struct mem_row *held;
    size_t n = pick_calls(a, mem_db_now_us(s->db), limit < calls ? limit : calls, rows, &held);
    if (n)
        r->reserved = reserved(a, r->next_nonce);
    if (signed_count)
        n += pick_signed(a, r, signed_count, rows + n, &held);
    if (held) {
        char text[40];
        snprintf(text, sizeof(text), "blocked by backend %u", held->held->pid);
        r->held_id = held->id;
        r->held_by = mem__put_text(answer, text);
    }
    struct store_outbox_row *out = mem__put(answer, NULL, n * sizeof(*out));
    for (size_t i = 0; i < n; i++)
        out[i] = outbox_row(s->db, answer, rows[i]);
    free(rows);
    r->count = n;
    r->rows = out;
}

/* ---- pending rows ---- */

/* Hashes of the row's earlier attempts: those with its own call, or the fillers that were to stop
 * it. */
static size_t put_earlier(const struct mem_row *row, bool fillers, uint8_t (*out)[32],
                          int64_t *death)
{
    size_t n = 0;
    for (size_t i = 0; i + 1 < row->at->count; i++) {
        const struct mem_attempt *t = &row->at->attempts[i];
        if (fillers != (t->filler_len != 0) || !mem__is_own(row, t))
            continue;
        memcpy(out[n++], t->hash, 32);
        if (t->era_death < 0)
            *death = -1;
        else if (*death >= 0 && t->era_death > *death)
            *death = t->era_death;
    }
    return n;
}

static void copy_earlier(const struct mem_row *row, struct mem_answer *answer,
                         struct tx_pending *out)
{
    if (row->at->count < 2)
        return;
    uint8_t(*hashes)[32] = mem__put(answer, NULL, 32 * (row->at->count - 1));
    out->earlier_own = put_earlier(row, false, hashes, &out->earlier_death);
    out->earlier_count =
        out->earlier_own + put_earlier(row, true, hashes + out->earlier_own, &out->earlier_death);
    out->earlier = (const uint8_t(*)[32])hashes;
}

static void copy_row(const struct mem_db *db, const struct mem_row *row, struct mem_answer *answer,
                     struct tx_pending *out)
{
    const struct mem_attempt *now = mem__current(row);
    struct store_bytes bytes = mem__put_bytes(answer, now->extrinsic);
    *out = (struct tx_pending){.nonce = (uint64_t)row->nonce,
                               .id = row->id,
                               .state = mem_state_name(row->state),
                               .attempt = (int32_t)row->at->count,
                               .bytes = bytes.data,
                               .bytes_len = bytes.len,
                               .call_len = row->call.len,
                               .has_block = row->in.known,
                               .block_number = row->block_number,
                               .era_birth = now->era_birth,
                               .era_death = now->era_death,
                               .spec_version = now->spec_version,
                               .guard = row->guard,
                               .tip = now->tip,
                               .has_max_tip = row->has_max_tip,
                               .max_tip = row->has_max_tip ? row->max_tip : U128_MAX,
                               .deadline_block =
                                   row->deadline_block < 0 ? 0 : (uint64_t)row->deadline_block,
                               .retries = row->retries,
                               .filler_len = now->filler_len,
                               .stop_outcome = mem_outcome_name(row->stop_outcome),
                               .stop_reason = mem__put_text(answer, row->stop_reason),
                               .submitted_block = now->block < 0 ? 0 : (uint64_t)now->block,
                               .presigned = row->presigned,
                               .age_ms = age_ms(db, row),
                               .trace = mem__put_text(answer, row->trace)};
    memcpy(out->hash, row->hash, 32);
    if (row->in.known)
        memcpy(out->block_hash, row->in.hash, 32);
    copy_earlier(row, answer, out);
}

void mem__snapshot(struct mem_session *s, struct store_snapshot *r)
{
    r->count = 0;
    r->rows = NULL;
    struct mem_account *a = mem__fence(s->db, r->account, r->epoch, &r->req.err);
    if (!a)
        return;
    size_t first = mem__pending_from(a, r->after_nonce + 1), n = a->pending_count - first;
    if (n > r->limit)
        n = r->limit;
    struct mem_answer *answer = mem__answer(&r->req);
    struct tx_pending *out = mem__put(answer, NULL, n * sizeof(*out));
    for (size_t i = 0; i < n; i++)
        copy_row(s->db, a->pending[first + i], answer, &out[i]);
    r->count = n;
    r->rows = out;
    r->next_nonce = a->next_nonce;
    r->used_nonce = a->used_nonce;
    r->used_block = a->used_block;
    r->seen_block = a->seen_block > a->used_block ? a->seen_block : a->used_block;
    r->reconcile_from = a->reconcile_from;
    r->lost_since_ms = a->lost_since_us / 1000;
    r->database_ms = mem_db_now_us(s->db) / 1000;
    r->lost_until = mem__lost_until(a);
    r->era_immortal = a->era_immortal;
    r->suspension_text =
        a->paused && !a->paused_by_operator ? mem__put_text(answer, a->paused_reason) : NULL;
    mem__facts(a, answer, &r->facts);
}
