/* Answers as texts: every field that a request returns, times in whole STEPs, texts that name the
 * session's user or a time by their kind. */
#include "diff.h"

#include <stdio.h>
#include <string.h>

#include "base/hex.h"

static const char *kind_of(const char *text)
{
    if (text && !strncmp(text, "cancelled", 9))
        return "cancelled";
    if (text && !strncmp(text, "the deadline", 12))
        return "deadline";
    return text ? text : "NULL";
}

static void put_steps(struct buf *b, const char *name, int64_t ms)
{
    int64_t step = STEP_S * 1000;
    buf_printf(b, " %s=%lld", name, (long long)(ms >= 0 ? ms / step : -((step - 1 - ms) / step)));
}

static void put_time(struct buf *b, const char *name, int64_t ms)
{
    if (ms < 0)
        buf_printf(b, " %s=none", name);
    else
        put_steps(b, name, ms);
}

static void put_bytes(struct buf *b, const char *name, struct store_bytes x)
{
    buf_printf(b, " %s=", name);
    if (x.data)
        hex_put(b, x.data, x.len);
    else
        buf_puts(b, "NULL");
}

static void put_text(struct buf *b, const char *name, const char *text)
{
    buf_printf(b, " %s=%s", name, text ? text : "NULL");
}

static void put_facts(struct buf *b, const struct store_account *f)
{
    buf_printf(b, " facts=%d,%s,%d,%u,%s,%s,%s,%u,%u,%u,%d,%s,%s", f->paused, f->suspension,
               f->reborn, f->transaction_version, f->tip_start, f->tip_step,
               f->tip_cap ? f->tip_cap : "NULL", f->tip_step_percent, f->tip_after_blocks,
               f->skip_after_blocks, f->requeue_usurped, f->low_balance ? f->low_balance : "NULL",
               f->retry_refusals ? f->retry_refusals : "NULL");
}

static void put_claim(struct buf *b, const struct store_claim *r)
{
    buf_printf(b, " granted=%d epoch=%lld holder=%s address=%s lock=%d mid=%d", r->granted,
               (long long)r->epoch, r->current_holder, r->current_address, r->lock_held,
               r->mid_submission);
    put_steps(b, "expiry_1", r->expiry_1_left_ms);
    put_steps(b, "expiry_2", r->expiry_2_left_ms);
}

static void put_scan(struct buf *b, const struct store_scan *r)
{
    for (size_t i = 0; i < r->view_count; i++) {
        const struct store_lock_view *x = &r->seen[i];
        buf_printf(b, " [%zu taken=%d lock=%d %s %s %lld", x->index, x->taken, x->lock_held,
                   x->holder, x->address, (long long)x->epoch);
        put_steps(b, "", x->expiry_1_left_ms);
        put_steps(b, "", x->expiry_2_left_ms);
        buf_puts(b, "]");
    }
}

static void put_pending(struct buf *b, const struct tx_pending *r)
{
    char tip[40];
    buf_printf(
        b,
        " [%lld id=%lld %s %02x%02x attempt=%d block=%lld era=%lld..%lld spec=%u guard=%u tip=%s",
        (long long)r->nonce, (long long)r->id, r->state, r->hash[0], r->hash[1], r->attempt,
        (long long)r->block_number, (long long)r->era_birth, (long long)r->era_death,
        r->spec_version, r->guard, u128_text(r->tip, tip));
    put_bytes(b, "extrinsic", (struct store_bytes){r->bytes, r->bytes_len});
    put_bytes(b, "in", (struct store_bytes){r->has_block ? r->block_hash : NULL, 32});
    put_text(b, "max_tip", r->has_max_tip ? u128_text(r->max_tip, tip) : NULL);
    put_text(b, "stop", r->stop_outcome);
    put_text(b, "reason", r->stop_reason);
    put_text(b, "trace", r->trace);
    buf_printf(
        b, " last=%lld retries=%u filler=%zu call=%zu at=%llu fixed=%d own=%zu death=%lld earlier=",
        (long long)r->deadline_block, r->retries, r->filler_len, r->call_len,
        (unsigned long long)r->submitted_block, r->presigned, r->earlier_own,
        (long long)r->earlier_death);
    for (size_t i = 0; i < r->earlier_count; i++)
        hex_put(b, r->earlier[i], 4);
    buf_puts(b, "]");
}

static void put_snapshot(struct buf *b, const struct store_snapshot *r)
{
    buf_printf(b, " next=%lld used=%lld/%lld seen=%lld from=%lld", (long long)r->next_nonce,
               (long long)r->used_nonce, (long long)r->used_block, (long long)r->seen_block,
               (long long)r->reconcile_from);
    put_facts(b, &r->facts);
    for (size_t i = 0; i < r->count; i++)
        put_pending(b, &r->rows[i]);
}

static void put_outbox(struct buf *b, const struct store_outbox *r, int64_t now_ms)
{
    buf_printf(b, " reserved=%lld waits=%lld", (long long)r->reserved, (long long)r->waits_id);
    put_text(b, "for", r->waits);
    for (size_t i = 0; i < r->count; i++) {
        const struct store_outbox_row *x = &r->rows[i];
        buf_printf(b, " [%lld fixed=%d waited=%d priority=%d guard=%u last=%lld retries=%u",
                   (long long)x->id, x->presigned, x->waited, x->priority, x->guard,
                   (long long)x->deadline_block, x->retries);
        put_bytes(b, "call", x->call);
        put_text(b, "creator", x->creator);
        put_text(b, "tip", x->tip);
        put_text(b, "max_tip", x->max_tip);
        put_text(b, "trace", x->trace);
        put_time(b, "deadline", x->deadline_ms < 0 ? -1 : x->deadline_ms - now_ms);
        buf_puts(b, "]");
    }
}

static void put_requests(struct buf *b, const struct store_poll_requests *r)
{
    buf_printf(b, " ripe=%d", r->has_rows);
    put_time(b, "next", r->next_ms);
    put_facts(b, &r->facts);
    for (size_t i = 0; i < r->count; i++) {
        const struct tx_stop *x = &r->stops[i];
        char tip[40];
        buf_printf(b, " [%lld id=%lld %s %s tip=%s]", (long long)x->nonce, (long long)x->id,
                   x->outcome ? x->outcome : "bump", kind_of(x->reason), u128_text(x->tip, tip));
    }
    for (size_t i = 0; i < r->ended_count; i++) {
        const struct store_ended *x = &r->ended[i];
        buf_printf(b, " [ended id=%lld %s %s trace=%s]", (long long)x->id, x->outcome,
                   kind_of(x->error), x->trace);
    }
}

static void put_due(struct buf *b, const struct store_due *r)
{
    for (size_t i = 0; i < r->want_count; i++) {
        const struct store_want *x = &r->wants[i];
        buf_printf(b, " [%zu lost=%d look=%d ripe=%d", x->index, x->lost, x->has_requests,
                   x->has_rows);
        put_time(b, "next", x->next_ms);
        buf_puts(b, "]");
    }
}

static void put_evict(struct buf *b, const struct store_evict *r)
{
    buf_printf(b, " terminated=%d holder=%s address=%s epoch=%lld", r->terminated,
               r->current_holder, r->current_address, (long long)r->epoch);
    put_steps(b, "expiry_1", r->expiry_1_left_ms);
}

static void put_members(struct buf *b, const struct store_member *r)
{
    buf_printf(b, " best=%lld", (long long)r->best_known);
    for (size_t i = 0; i < r->count; i++)
        buf_printf(b, " %s", r->holders[i]);
}

static void put_renewed(struct buf *b, const struct store_renew *r)
{
    for (size_t i = 0; i < r->count; i++)
        buf_printf(b, " %d", r->renewed[i]);
}

const char *diff_request_name(enum mem_request what)
{
    static const char *const names[] = {
#define X(name, type) [MEM_REQUEST_##name] = #name,
        STORE_REQUESTS(X)
#undef X
    };
    return names[what];
}

static void put_fields(struct buf *b, enum mem_request what, const union any_request *u,
                       int64_t now_ms)
{
    switch (what) {
    case MEM_REQUEST_enroll:
        buf_printf(b, " account=%d", u->enroll.account);
        return;
    case MEM_REQUEST_lock:
    case MEM_REQUEST_unlock:
        buf_printf(b, " got=%d", u->lock.got);
        return;
    case MEM_REQUEST_doorbell_arm:
    case MEM_REQUEST_doorbell_disarm:
        buf_printf(b, " armed=%d", u->doorbell_arm.armed);
        return;
    case MEM_REQUEST_claim:
        put_claim(b, &u->claim);
        return;
    case MEM_REQUEST_renew:
        put_renewed(b, &u->renew);
        return;
    case MEM_REQUEST_release:
        buf_printf(b, " released=%d", u->release.released);
        return;
    case MEM_REQUEST_evict:
        put_evict(b, &u->evict);
        return;
    case MEM_REQUEST_scan:
        put_scan(b, &u->scan);
        return;
    case MEM_REQUEST_member:
        put_members(b, &u->member);
        return;
    case MEM_REQUEST_snapshot:
        put_snapshot(b, &u->snapshot);
        return;
    case MEM_REQUEST_outbox:
        put_outbox(b, &u->outbox, now_ms);
        return;
    case MEM_REQUEST_poll_requests:
        put_requests(b, &u->poll_requests);
        return;
    case MEM_REQUEST_due:
        put_due(b, &u->due);
        return;
    case MEM_REQUEST_admit:
    case MEM_REQUEST_admit_signed:
    case MEM_REQUEST_fill:
        buf_printf(b, " next=%lld", (long long)u->admit.next_nonce);
        return;
    case MEM_REQUEST_heard:
        buf_printf(b, " until=%lld", (long long)u->heard.until);
        return;
    case MEM_REQUEST_adopt:
        buf_printf(b, " adopted=%d", u->adopt.adopted);
        return;
    case MEM_REQUEST_enqueue:
        buf_printf(b, " id=%lld", (long long)u->enqueue.id);
        return;
    case MEM_REQUEST_cancel:
    case MEM_REQUEST_bump:
    case MEM_REQUEST_resume:
    case MEM_REQUEST_retry:
        buf_printf(b, " answer=%s", u->cancel.answer);
        return;
    case MEM_REQUEST_note:
    case MEM_REQUEST_attempt:
    case MEM_REQUEST_state:
    case MEM_REQUEST_finish:
    case MEM_REQUEST_reject:
    case MEM_REQUEST_requeue:
    case MEM_REQUEST_nonce:
    case MEM_REQUEST_pause:
    case MEM_REQUEST_obstacles:
    case MEM_REQUEST_relay_obstacle:
    case MEM_REQUEST_drained:
    case MEM_REQUEST_COUNT:
        return; /* whether it was done is all */
    }
}

void diff_answer(struct buf *b, enum mem_request what, const union any_request *u, int64_t now_ms)
{
    if (u->req.err.code)
        buf_printf(b, "%s %s", err_name(u->req.err.code), u->req.err.sqlstate);
    else
        put_fields(b, what, u, now_ms);
}
