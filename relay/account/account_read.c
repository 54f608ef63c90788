/* What the manager asks of the store: its pending rows, the outbox with its doorbell, and what the
 * table's clock, applications and operators say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account/op.h"
#include "account/tally.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "chain/codec/codec.h"
#include "chain/codec/extrinsic.h"

enum { SNAPSHOT_ROWS = 5000 };

/* ---- what the table says about the account ---- */

static u128 amount(const char *text, u128 otherwise)
{
    u128 v;
    return text && u128_parse(text, &v) ? v : otherwise;
}

static struct manager_account account_facts(const struct store_account *f)
{
    struct manager_account facts = {
        .paused = f->paused,
        .reborn = f->reborn,
        .transaction_version = f->transaction_version,
        .tip_start = amount(f->tip_start, 0),
        .tip_step = amount(f->tip_step, 0),
        .tip_cap = amount(f->tip_cap, MANAGER_NO_CAP),
        .tip_step_percent = f->tip_step_percent,
        .tip_after_blocks = f->tip_after_blocks,
        .skip_after_blocks = f->skip_after_blocks,
        .requeue_usurped = f->requeue_usurped,
        .has_low_balance = f->low_balance != NULL,
        .low_balance = amount(f->low_balance, 0),
        .suspension = manager_suspension_of(f->suspension),
    };
    if (f->retry_refusals)
        snprintf(facts.retry_refusals, sizeof(facts.retry_refusals), "%s", f->retry_refusals);
    return facts;
}

/* ---- load ---- */

static struct op *chunk_start(struct account *a, int64_t after_nonce);

static void chunk(struct op *op)
{
    struct store_snapshot *r = &op->u.snapshot;
    if (r->req.err.code || !op_current(op)) {
        op_failed(op);
        op_free(op);
        return;
    }
    /* The server reads the next one while this one is taken in. */
    if (r->count && r->count == r->limit)
        op->account->ahead = chunk_start(op->account, (int64_t)r->rows[r->count - 1].nonce);
    struct manager_account facts = account_facts(&r->facts);
    bool last = r->count < r->limit;
    int64_t seen = r->seen_block < 0 ? 0 : r->seen_block;
    int64_t from = r->reconcile_from < 0 ? 0 : r->reconcile_from;
    tally_loaded(op->account, r->rows, r->count);
    account_event(op->account,
                  &(struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                          .snapshot = {.rows = r->rows,
                                                       .count = r->count,
                                                       .last = last,
                                                       .next_nonce = r->next_nonce,
                                                       .used_nonce = r->used_nonce,
                                                       .used_block = r->used_block,
                                                       .seen_block = (uint64_t)seen,
                                                       .reconcile = r->reconcile_from >= 0,
                                                       .reconcile_from = (uint64_t)from,
                                                       .lost_since_ms = r->lost_since_ms,
                                                       .database_ms = r->database_ms,
                                                       .here_ms = (int64_t)loop_wall_ms(),
                                                       .lost_until = r->lost_until,
                                                       .immortal = r->era_immortal,
                                                       .suspension_text = r->suspension_text,
                                                       .account = &facts}});
    op_free(op);
}

static void loaded(struct store_req *req)
{
    struct op *op = op_of(req);
    struct account *a = op->account;
    if (op->dropped) {
        op_free(op);
        return;
    }
    if (op == a->ahead && !op->wanted) {
        op->arrived = true;
        return;
    }
    if (op == a->ahead)
        a->ahead = NULL;
    chunk(op);
}

static void arrived_before(struct loop_task *task)
{
    struct op *op = CONTAINER_OF(task, struct op, task);
    if (op->dropped) {
        op_free(op);
        return;
    }
    op->account->ahead = NULL;
    chunk(op);
}

static struct op *chunk_start(struct account *a, int64_t after_nonce)
{
    struct op *op = op_new(a, MANAGER_FX_LOAD, 0);
    uint32_t rows =
        a->service->config.snapshot_rows ? a->service->config.snapshot_rows : SNAPSHOT_ROWS;
    op->u.snapshot = (struct store_snapshot){
        .account = a->store_account, .epoch = a->epoch, .after_nonce = after_nonce, .limit = rows};
    store_snapshot_start(a->service->store, &op->u.snapshot, loaded);
    return op;
}

void account_ahead_drop(struct account *a)
{
    struct op *op = a->ahead;
    a->ahead = NULL;
    if (!op)
        return;
    if (op->arrived && !op->wanted)
        op_free(op);
    else
        op->dropped = true; /* its answer, or its task, is on its way */
}

/* A load begins at -1, so a chunk that was asked for ahead is never of an earlier one. */
void account_load(struct account *a, const struct manager_effect *fx)
{
    struct op *op = a->ahead;
    if (!op || fx->after_nonce < 0 || op->u.snapshot.after_nonce != fx->after_nonce ||
        !op_current(op)) {
        account_ahead_drop(a);
        chunk_start(a, fx->after_nonce);
        return;
    }
    op->wanted = true;
    if (op->arrived)
        loop_post(a->service->loop, &op->task, arrived_before);
}

/* ---- the outbox and its doorbell ---- */

/* A tip of its own that the chain's type does not hold. Those of the policy are capped instead. */
static bool tip_too_large(const struct manager_outbox_row *row, const struct metadata *md,
                          struct err *ret_why)
{
    u128 pays = row->tip < row->max_tip ? row->tip : row->max_tip;
    if (!row->has_tip || pays <= extrinsic_tip_max(md))
        return false;
    err_set(ret_why, ERR_ARGUMENT, "the tip is larger than this chain's tips can be");
    return true;
}

/* Rows that can never be sent are found here, where the metadata is: the manager rejects them. */
static void deliver(const struct op *op)
{
    struct account *a = op->account;
    const struct store_outbox *r = &op->u.outbox;
    const struct node_info *info = node_info(a->service->node);
    struct manager_outbox_row *rows = xcalloc(r->count, sizeof(*rows));
    struct manager_presigned *presigned = xcalloc(r->count, sizeof(*presigned));
    struct err *errs = xcalloc(r->count, sizeof(*errs));
    /* The first call of an account decides under which version all later ones are signed. */
    int64_t now = (int64_t)loop_now_ms(a->service->loop);
    bool accepted = manager_has_version(a->manager) || node_version_confirmed(a->service->node);
    for (size_t i = 0; i < r->count; i++) {
        const struct store_outbox_row *o = &r->rows[i];
        rows[i] = (struct manager_outbox_row){
            .id = o->id,
            .call = o->call.data,
            .call_len = o->call.len,
            .guard = o->guard,
            .has_tip = o->tip != NULL,
            .tip = amount(o->tip, 0),
            .has_max_tip = o->max_tip != NULL,
            .max_tip = amount(o->max_tip, MANAGER_NO_CAP),
            .deadline_block = o->deadline_block > 0 ? (uint64_t)o->deadline_block : 0,
            .retries = o->retries,
            .origin = {.known = true, .enqueued_ms = now - o->age_ms},
        };
        if (o->trace)
            snprintf(rows[i].origin.trace, sizeof(rows[i].origin.trace), "%s", o->trace);
        if (o->presigned)
            signed_check(op, o, &rows[i], &presigned[i], &errs[i]);
        else if (!a->key)
            rows[i].bad =
                "the relay has no key of this account: sign it elsewhere, and use enqueue_signed";
        else if (tip_too_large(&rows[i], info->metadata, &errs[i]))
            rows[i].bad = errs[i].text;
        else if (codec_check_call(info->metadata, o->call.data, o->call.len, &errs[i])) {
            if (node_metadata_confirmed(a->service->node))
                rows[i].bad = errs[i].text;
            else
                rows[i].waits = true;
        } else {
            rows[i].waits = !accepted;
        }
    }
    account_event(a, &(struct manager_event){.type = MANAGER_EV_OUTBOX,
                                             .outbox = {.rows = rows,
                                                        .count = r->count,
                                                        .has_reserved = r->reserved >= 0,
                                                        .reserved = (uint64_t)r->reserved}});
    free(errs);
    free(presigned);
    free(rows);
}

/* The scheduler receives the answer to one of its queries; false: it was given up. */
static bool answered(const struct op *op, enum poll_event_type type)
{
    return account_poll(op->account, (struct poll_event){.type = type, .question = op->question});
}

static void query_failed(struct op *op, const char *query, enum poll_event_type type)
{
    struct account *a = op->account;
    const struct err *err = &op->u.req.err;
    if (err_is_refused(err->code)) {
        log_error("store.refused", "account=%s query=%s code=%s sqlstate=%s text=\"%s\"", a->alias,
                  query, err_name(err->code), err->sqlstate, err->text);
        snprintf(a->read_error, sizeof(a->read_error), "%s: %.140s", query, err->text);
    }
    account_lost(a, err->code);
    account_poll(a, (struct poll_event){.type = type,
                                        .question = op->question,
                                        .refused = err_is_refused(err->code)});
}

static void query_worked(struct account *a, const char *query)
{
    if (!strncmp(a->read_error, query, strlen(query)))
        a->read_error[0] = 0;
}

static void fetched_all(struct op *op)
{
    if (op_current(op)) {
        bool failed = signed_births_failed(op) || !node_info(op->account->service->node);
        if (!failed)
            FAILPOINT("after_fetch");
        if (answered(op, failed ? POLL_EV_OUTBOX_FAILED : POLL_EV_ROWS) && !failed)
            deliver(op);
    }
    op_free(op);
}

static void fetched(struct store_req *req)
{
    struct op *op = op_of(req);
    struct account *a = op->account;
    if (!req->err.code) {
        query_worked(a, "outbox");
        account_held_read(a, &op->u.outbox);
    }
    if (op_current(op)) {
        if (req->err.code) {
            query_failed(op, "outbox", POLL_EV_OUTBOX_FAILED);
        } else if (!node_info(a->service->node)) {
            answered(op, POLL_EV_OUTBOX_FAILED);
        } else if (!op->u.outbox.count) {
            answered(op, POLL_EV_NO_ROWS);
        } else {
            if (!signed_births(op, fetched_all))
                fetched_all(op);
            return;
        }
    }
    op_free(op);
}

static struct op *poll_new_op(struct account *a, enum manager_effect_type effect,
                              const struct poll_effect *fx)
{
    struct op *op = op_new(a, effect, 0);
    op->question = fx->question;
    op->serial = fx->serial;
    return op;
}

void account_fetch(struct account *a, const struct poll_effect *fx)
{
    struct op *op = poll_new_op(a, MANAGER_FX_WANT_OUTBOX, fx);
    struct manager_view view = manager_view_of(a->manager);
    op->u.outbox = (struct store_outbox){.account = a->store_account,
                                         .epoch = a->epoch,
                                         .limit = fx->limit,
                                         .next_nonce = (int64_t)view.next_nonce,
                                         .block = (int64_t)view.processed};
    store_outbox_start(a->service->store, &op->u.outbox, fetched);
}

/* ---- deadlines and cancellations ---- */

static void send_requests(struct op *op)
{
    const struct store_poll_requests *r = &op->u.poll_requests;
    struct manager_account facts = account_facts(&r->facts);
    account_event(op->account, &(struct manager_event){.type = MANAGER_EV_REQUESTS,
                                                       .requests = {.number = op->serial,
                                                                    .stops = r->stops,
                                                                    .count = r->count,
                                                                    .account = &facts}});
}

static void on_requests(struct store_req *req)
{
    struct op *op = op_of(req);
    const struct store_poll_requests *r = &op->u.poll_requests;
    if (!req->err.code)
        tally_ended(op->account, r->ended, r->ended_count);
    if (op_current(op) && req->err.code) {
        query_failed(op, "requests", POLL_EV_REQUESTS_FAILED);
    } else if (op_current(op)) {
        query_worked(op->account, "requests");
        struct poll_event ev = {
            .type = POLL_EV_REQUESTS,
            .question = op->question,
            .requests = {.fingerprint = r->fingerprint,
                         .next_ms = r->next_ms,
                         .has_rows = r->has_rows},
        };
        if (account_poll(op->account, ev))
            send_requests(op);
    }
    op_free(op);
}

void account_poll_requests(struct account *a, const struct poll_effect *fx)
{
    struct op *op = poll_new_op(a, MANAGER_FX_POLL_REQUESTS, fx);
    op->u.poll_requests =
        (struct store_poll_requests){.account = a->store_account, .epoch = a->epoch};
    store_poll_requests_start(a->service->store, &op->u.poll_requests, on_requests);
}

/* Also of a former tenure: the doorbell that it took is given back. */
static void armed(struct store_req *req)
{
    struct op *op = op_of(req);
    enum poll_event_type type = op->u.doorbell_arm.armed ? POLL_EV_ARMED : POLL_EV_NOT_ARMED;
    answered(op, req->err.code ? POLL_EV_ARM_FAILED : type);
    op_free(op);
}

void account_arm(struct account *a, const struct poll_effect *fx)
{
    struct op *op = poll_new_op(a, MANAGER_FX_WANT_OUTBOX, fx);
    op->u.doorbell_arm.account = a->store_account;
    store_doorbell_arm_start(a->service->store, &op->u.doorbell_arm, armed);
}

static void disarmed(struct store_req *req)
{
    op_free(op_of(req)); /* a lost session has given it back as well */
}

void account_disarm(struct account *a)
{
    struct op *op = op_new(a, MANAGER_FX_WANT_OUTBOX, 0);
    op->u.doorbell_disarm.account = a->store_account;
    store_doorbell_disarm_start(a->service->store, &op->u.doorbell_disarm, disarmed);
}
