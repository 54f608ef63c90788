/* The leader's reads in memory: leader_outbox, leader_snapshot and leader_look of
 * schema/migrations/0004_pending.sql. What they return are copies, for the rows change while the caller holds
 * them. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store_mem.h"

void mem__facts(const struct mem_account *a, struct store_account *ret)
{
    *ret = (struct store_account){.paused = a->paused,
                                  .hold = a->hold,
                                  .reborn = a->reborn,
                                  .transaction_version = a->transaction_version,
                                  .tip_start = "0",
                                  .tip_step = "0"};
}

/* ---- copies ---- */

static const uint8_t *keep(uint8_t **at, const void *data, size_t n)
{
    uint8_t *out = *at;
    if (n)
        memcpy(out, data, n);
    *at += n;
    return out;
}

static struct store_bytes keep_bytes(uint8_t **at, struct store_bytes b)
{
    return (struct store_bytes){.data = keep(at, b.data, b.len), .len = b.len};
}

static size_t text_bytes(const char *s)
{
    return s ? strlen(s) + 1 : 0;
}

static const char *keep_text(uint8_t **at, const char *s)
{
    return s ? (const char *)keep(at, s, strlen(s) + 1) : NULL;
}

/* ---- rows to admit ---- */

static bool ripe(const struct mem_row *row, uint64_t now)
{
    return row->not_before <= now && (!row->deadline || row->deadline > now);
}

/* At most `limit` rows that may get a nonce, in the order of admission. */
static size_t pick(const struct mem_account *a, uint64_t now, uint32_t limit, const struct mem_row **out,
                   size_t *ret_bytes)
{
    size_t n = 0;
    *ret_bytes = 0;
    LIST_EACH (p, &a->outbox) {
        const struct mem_row *row = CONTAINER_OF(p, struct mem_row, node);
        if (n == limit)
            break;
        if (!ripe(row, now))
            continue;
        *ret_bytes +=
            row->call.len + text_bytes(row->creator) + text_bytes(row->tip) + text_bytes(row->max_tip);
        out[n++] = row;
    }
    return n;
}

void mem__outbox(struct store_mem *s, struct store_outbox *r)
{
    r->count = 0;
    r->rows = NULL;
    r->reserved = -1;
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a || a->paused)
        return;
    uint32_t all = (uint32_t)HASH_COUNT(a->by_id);
    const struct mem_row **rows = xcalloc(all ? all : 1, sizeof(struct mem_row *));
    size_t bytes, n = pick(a, loop_now_ms(s->base.loop), r->limit < all ? r->limit : all, rows, &bytes);
    struct store_outbox_row *out = store__arena(&r->req, n * sizeof(*out) + bytes, NULL, NULL);
    uint8_t *at = (uint8_t *)(out + n);
    uint64_t now = loop_now_ms(s->base.loop);
    for (size_t i = 0; i < n; i++) {
        const struct mem_row *row = rows[i];
        out[i] = (struct store_outbox_row){
            .id = row->id,
            .priority = row->priority,
            .deadline_ms = row->deadline ? (int64_t)(loop_wall_ms() + (row->deadline - now)) : -1,
            .guard = row->guard,
            .deadline_block = row->deadline_block,
            .retries = row->retries};
        out[i].call = keep_bytes(&at, row->call);
        out[i].creator = keep_text(&at, row->creator);
        out[i].tip = keep_text(&at, row->tip);
        out[i].max_tip = keep_text(&at, row->max_tip);
    }
    free(rows);
    r->count = n;
    r->rows = out;
}

/* ---- pending rows ---- */

static size_t row_bytes(const struct mem_row *row)
{
    const struct mem_attempt *now = &row->attempts[row->attempt_count - 1];
    return now->extrinsic.len + row->call.len + text_bytes(now->tip) + text_bytes(row->state) + 32 +
           text_bytes(row->max_tip) + text_bytes(row->stop_outcome) + text_bytes(row->stop_reason) +
           32 * (row->attempt_count - 1);
}

/* Hashes of earlier attempts: those with a call of their own, or the fillers. */
static size_t keep_earlier(const struct mem_row *row, bool fillers, uint8_t **at)
{
    size_t n = 0;
    for (size_t i = 0; i + 1 < row->attempt_count; i++)
        if (fillers == (row->attempts[i].filler_len != 0)) {
            keep(at, row->attempts[i].hash, 32);
            n++;
        }
    return n;
}

static void copy_row(struct store_pending_row *out, const struct mem_row *row, uint8_t **at)
{
    const struct mem_attempt *now = &row->attempts[row->attempt_count - 1];
    out->nonce = row->nonce;
    out->id = row->id;
    out->state = keep_text(at, row->state);
    memcpy(out->hash, now->hash, 32);
    out->attempt = (int32_t)row->attempt_count;
    out->extrinsic = keep_bytes(at, now->extrinsic);
    out->call = keep_bytes(at, row->call);
    if (row->has_block)
        out->block_hash = (struct store_bytes){.data = keep(at, row->block_hash, 32), .len = 32};
    out->block_number = row->has_block ? row->block_number : -1;
    out->era_birth = now->era_birth;
    out->era_death = now->era_death;
    out->spec_version = now->spec_version;
    out->guard = row->guard;
    out->tip = keep_text(at, now->tip);
    out->max_tip = keep_text(at, row->max_tip);
    out->deadline_block = row->deadline_block;
    out->retries = row->retries;
    out->filler_len = now->filler_len;
    out->stop_outcome = keep_text(at, row->stop_outcome);
    out->stop_reason = keep_text(at, row->stop_reason);
    out->submitted_block = now->block;
    out->earlier_count = row->attempt_count - 1;
    out->earlier_death = 0;
    for (size_t i = 0; i < out->earlier_count && out->earlier_death >= 0; i++) {
        int64_t death = row->attempts[i].era_death;
        if (death < 0 || death > out->earlier_death)
            out->earlier_death = death;
    }
    if (out->earlier_count)
        out->earlier = (const uint8_t(*)[32])(const void *)*at;
    out->earlier_own = keep_earlier(row, false, at);
    keep_earlier(row, true, at);
}

void mem__snapshot(struct store_mem *s, struct store_snapshot *r)
{
    r->count = 0;
    r->rows = NULL;
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a)
        return;
    size_t first = mem__lower_bound(a, r->after_nonce + 1);
    size_t n = a->pending_count - first, bytes = 0;
    if (n > r->limit)
        n = r->limit;
    for (size_t i = 0; i < n; i++)
        bytes += row_bytes(a->pending[first + i]);
    struct store_pending_row *out = store__arena(&r->req, n * sizeof(*out) + bytes, NULL, NULL);
    uint8_t *at = (uint8_t *)(out + n);
    for (size_t i = 0; i < n; i++)
        copy_row(&out[i], a->pending[first + i], &at);
    r->count = n;
    r->rows = out;
    r->next_nonce = a->next_nonce;
    r->used_nonce = a->used_nonce;
    r->used_block = a->used_block;
    r->seen_block = r->reconcile_from = -1; /* what this store forgets, it forgets with everything */
    mem__facts(a, &r->facts);
}

/* ---- what is to be stopped ---- */

struct next {
    uint64_t now, at; /* UINT64_MAX: none */
};

static void note_time(struct next *next, uint64_t at)
{
    if (at > next->now && at < next->at)
        next->at = at;
}

/* Rows of the outbox that are over end here. */
static void end_queued(struct store_mem *s, struct mem_account *a, struct next *next, bool *ret_ripe)
{
    for (struct list *p = a->outbox.next, *after; p != &a->outbox; p = after) {
        struct mem_row *row = CONTAINER_OF(p, struct mem_row, node);
        after = p->next;
        a->timed |= row->not_before || row->deadline;
        if (row->cancelled) {
            mem__outbox_end(s, a, row, "cancelled", "cancelled on request");
        } else if (row->deadline && row->deadline <= next->now) {
            mem__outbox_end(s, a, row, "expired", "the deadline passed before it was sent");
        } else {
            *ret_ripe |= !a->paused && row->not_before && row->not_before <= next->now;
            note_time(next, row->not_before);
            note_time(next, row->deadline);
        }
    }
}

/* A bump that is satisfied is forgotten. */
static bool bumped(struct mem_row *row)
{
    mem_amount asked, paid;
    if (!row->bump)
        return false;
    if (mem__amount(row->bump, &asked) && mem__amount(row->attempts[row->attempt_count - 1].tip, &paid) &&
        paid < asked)
        return true;
    free(row->bump);
    row->bump = NULL;
    return false;
}

static bool stop_of(struct mem_row *row, uint64_t now, struct store_stop *out)
{
    *out = (struct store_stop){.nonce = row->nonce, .id = row->id};
    if (!row->id)
        return false;
    if (row->cancelled) {
        out->outcome = "cancelled";
        out->reason = "cancelled on request";
    } else if (row->deadline && row->deadline <= now) {
        out->outcome = "expired";
        out->reason = "the deadline passed before it was included";
    } else if (bumped(row)) {
        out->tip = row->bump;
    }
    return out->outcome || out->tip;
}

static void collect(struct mem_account *a, struct store_look *r, struct next *next)
{
    struct store_stop stop;
    size_t n = 0, bytes = 0;
    for (size_t i = 0; i < a->pending_count; i++) {
        struct mem_row *row = a->pending[i];
        a->timed |= row->deadline || row->cancelled || row->bump;
        note_time(next, row->deadline);
        if (stop_of(row, next->now, &stop)) {
            n++;
            bytes += text_bytes(stop.tip);
        }
    }
    struct store_stop *out = store__arena(&r->req, n * sizeof(*out) + bytes, NULL, NULL);
    uint8_t *at = (uint8_t *)(out + n);
    for (size_t i = 0; r->count < n; i++) {
        if (!stop_of(a->pending[i], next->now, &stop))
            continue;
        stop.tip = keep_text(&at, stop.tip);
        out[r->count++] = stop;
    }
    r->stops = out;
}

void mem__look(struct store_mem *s, struct store_look *r)
{
    struct next next = {.now = loop_now_ms(s->base.loop), .at = UINT64_MAX};
    r->count = 0;
    r->stops = NULL;
    r->ripe = false;
    r->next_ms = -1;
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a)
        return;
    mem__facts(a, &r->facts);
    if (!a->timed)
        return;
    a->timed = false;
    end_queued(s, a, &next, &r->ripe);
    collect(a, r, &next);
    if (next.at != UINT64_MAX)
        r->next_ms = (int64_t)(next.at - next.now);
}
