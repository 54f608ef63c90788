/* The manager's effects that are store requests, and the outbox with its doorbell. Each request is an
 * `op` that remembers the account's generation: an answer that comes after a demotion is dropped. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "chain/codec.h"
#include "internal.h"

enum { SNAPSHOT_CHUNK = 5000 };

struct op {
    struct account *account;
    uint64_t generation;
    enum manager_write write;
    enum manager_event_type done; /* what the manager hears when it is stored */
    union {
        struct store_req req;
        struct store_snapshot snapshot;
        struct store_attempts attempts;
        struct store_states states;
        struct store_finish finish;
        struct store_nonce nonce;
        struct store_outbox outbox;
        struct store_look look;
        struct store_doorbell doorbell;
    } u;
    size_t count;
    struct store_attempt_row *attempt_rows;
    struct store_state_row *state_rows;
    struct store_finish_row *finish_rows;
    struct manager_row_effect *rows; /* own copy of the effect's rows */
    struct signed_row *signed_rows;
    size_t *call_lens;
    struct buf filler;
    char (*fees)[40];
    struct loop_task task; /* a failure before anything was asked */
};

static struct op *op_new(struct account *a, enum manager_write write, enum manager_event_type done,
                         size_t count)
{
    struct op *op = xcalloc(1, sizeof(*op));
    op->account = a;
    op->generation = a->generation;
    op->write = write;
    op->done = done;
    op->count = count;
    a->service->ops++;
    return op;
}

static void op_free(struct op *op)
{
    struct service *s = op->account->service;
    store_req_done(&op->u.req);
    for (size_t i = 0; op->signed_rows && i < op->count; i++)
        buf_done(&op->signed_rows[i].bytes);
    free(op->signed_rows);
    free(op->attempt_rows);
    free(op->state_rows);
    free(op->finish_rows);
    free(op->rows);
    free(op->call_lens);
    free(op->fees);
    buf_done(&op->filler);
    free(op);
    service_op_done(s);
}

static struct op *op_of(struct store_req *req)
{
    return CONTAINER_OF(req, struct op, u.req);
}

static void copy_rows(struct op *op, const struct manager_effect *fx)
{
    op->rows = xcalloc(op->count, sizeof(*op->rows));
    memcpy(op->rows, fx->rows, op->count * sizeof(*op->rows));
}

/* True when the answer is for the account as it is now; else there is nobody to tell. */
static bool current(struct op *op)
{
    return op->generation == op->account->generation;
}

static void failed(struct op *op)
{
    struct account *a = op->account;
    int code = op->u.req.err.code;
    if (!current(op))
        return;
    if (err_class(code) == ERR_CLASS_BUG || err_class(code) == ERR_CLASS_PERMANENT)
        log_error("store.refused", "account=%s write=%d code=%s sqlstate=%s text=\"%s\"", a->alias,
                  (int)op->write, err_name(code), op->u.req.err.sqlstate, op->u.req.err.text);
    else
        log_debug("store.failed", "account=%s write=%d code=%s text=\"%s\"", a->alias, (int)op->write,
                  err_name(code), op->u.req.err.text);
    account_lost(a, code);
    if (code == ERR_DB_UNKNOWN_OUTCOME && op->write != MANAGER_WRITE_LOAD && !a->service->standalone)
        election_doubt(a->service->election, a->index); /* it may yet be carried out: a new epoch */
    if (current(op))                                    /* a lost leadership may have demoted us at once */
        account_event(
            a, &(struct manager_event){.type = MANAGER_EV_WRITE_FAILED, .write = op->write, .code = code});
}

/* ---- load ---- */

static enum manager_row_stage snapshot_stage(const char *state)
{
    if (!strcmp(state, "signed"))
        return MANAGER_ROW_SIGNED;
    return !strcmp(state, "in_block") || !strcmp(state, "finalized") ? MANAGER_ROW_IN_BLOCK
                                                                     : MANAGER_ROW_SENT;
}

static void loaded(struct store_req *req)
{
    struct op *op = op_of(req);
    struct store_snapshot *r = &op->u.snapshot;
    if (req->err.code || !current(op)) {
        failed(op);
        op_free(op);
        return;
    }
    struct manager_snapshot_row *rows = xcalloc(r->count, sizeof(*rows));
    for (size_t i = 0; i < r->count; i++) {
        const struct store_pending_row *p = &r->rows[i];
        rows[i] = (struct manager_snapshot_row){
            .nonce = (uint64_t)p->nonce,
            .id = p->id,
            .bytes = p->extrinsic.data,
            .bytes_len = p->extrinsic.len,
            .call_len = p->call.len,
            .era_death = p->era_death,
            .spec_version = p->spec_version,
            .guard = p->guard,
            .submitted_block = p->submitted_block > 0 ? (uint64_t)p->submitted_block : 0,
            .earlier = p->earlier,
            .earlier_count = p->earlier_count,
        };
        rows[i].stage = snapshot_stage(p->state);
        memcpy(rows[i].hash, p->hash, 32);
    }
    account_event(op->account, &(struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                                       .snapshot = rows,
                                                       .count = r->count,
                                                       .last = r->count < r->limit,
                                                       .next_nonce = r->next_nonce});
    free(rows);
    op_free(op);
}

static void load(struct account *a, const struct manager_effect *fx)
{
    struct op *op = op_new(a, MANAGER_WRITE_LOAD, MANAGER_EV_SNAPSHOT, 0);
    op->u.snapshot = (struct store_snapshot){.account = a->store_account,
                                             .epoch = a->epoch,
                                             .after_nonce = fx->after_nonce,
                                             .limit = SNAPSHOT_CHUNK};
    store_snapshot_start(a->service->store, &op->u.snapshot, loaded);
}

/* ---- attempts: admit, resign, fill ---- */

static void attempts_stored(struct store_req *req)
{
    struct op *op = op_of(req);
    if (req->err.code || !current(op)) {
        failed(op);
        op_free(op);
        return;
    }
    if (op->write == MANAGER_WRITE_ADMIT)
        FAILPOINT("after_admit");
    struct manager_written_row *rows = xcalloc(op->count, sizeof(*rows));
    for (size_t i = 0; i < op->count; i++) {
        const struct signed_row *t = &op->signed_rows[i];
        rows[i] = (struct manager_written_row){.nonce = op->rows[i].nonce,
                                               .id = op->write == MANAGER_WRITE_FILL ? 0 : op->rows[i].id,
                                               .bytes = t->bytes.data,
                                               .bytes_len = t->bytes.len,
                                               .call_len = op->call_lens[i],
                                               .era_death = t->era_death,
                                               .spec_version = t->spec_version,
                                               .guard = op->rows[i].guard};
        memcpy(rows[i].hash, t->hash, 32);
    }
    account_event(op->account,
                  &(struct manager_event){.type = op->done, .written = rows, .count = op->count});
    free(rows);
    op_free(op);
}

static int sign_rows(struct op *op)
{
    struct account *a = op->account;
    int rc = op->write == MANAGER_WRITE_FILL ? sign_filler_call(a, &op->filler, &op->u.req.err) : 0;
    for (size_t i = 0; rc == 0 && i < op->count; i++) {
        const struct manager_row_effect *row = &op->rows[i];
        struct signed_row *t = &op->signed_rows[i];
        const uint8_t *call = op->filler.len ? op->filler.data : row->call;
        size_t len = op->filler.len ? op->filler.len : row->call_len;
        rc = sign_row(a, row->nonce, call, len, t, &op->u.req.err);
        if (rc == 0 && row->guard && row->guard != t->spec_version)
            rc = err_set(&op->u.req.err, ERR_NET,
                         "the runtime changed to spec version %u, and the call is for %u only",
                         t->spec_version, row->guard);
        if (rc)
            break;
        op->call_lens[i] = len;
        op->attempt_rows[i] = (struct store_attempt_row){
            .id = row->id,
            .nonce = (int64_t)row->nonce,
            .extrinsic = {t->bytes.data, t->bytes.len},
            .call = {t->bytes.data + t->bytes.len - len, len}, /* the call is the end of the extrinsic */
            .era_birth = t->era_birth,
            .era_death = t->era_death,
            .reason = row->reason,
            .outcome = row->outcome,
        };
        memcpy(op->attempt_rows[i].hash, t->hash, 32);
    }
    return rc;
}

/* An ed25519 or ecdsa key signs the same content to the same bytes: while finality stands still there is no
 * new attempt, and what is on record is not written again. A former attempt's bytes come back when this node
 * is behind the one that they were signed by: that passes. */
static int leave_out_known(struct op *op, size_t *ret_count)
{
    size_t count = 0;
    for (size_t i = 0; i < op->count; i++) {
        bool current = !memcmp(op->signed_rows[i].hash, op->rows[i].hash, 32);
        if (!current && manager_knows(op->account->manager, op->signed_rows[i].hash))
            return err_set(&op->u.req.err, ERR_NET,
                           "this node's finalized block is older than one signed for");
        if (!current)
            op->attempt_rows[count++] = op->attempt_rows[i];
    }
    *ret_count = count;
    return 0;
}

/* What needs no answer of the store is told like one: later, from the loop. */
static void answered_later(struct loop_task *task)
{
    struct op *op = CONTAINER_OF(task, struct op, task);
    attempts_stored(&op->u.req);
}

static void attempts(struct account *a, const struct manager_effect *fx)
{
    static const struct {
        enum manager_write write;
        enum manager_event_type done;
        void (*start)(struct store *s, struct store_attempts *r, store_cb cb);
    } kinds[] = {
        [MANAGER_FX_ADMIT] = {MANAGER_WRITE_ADMIT, MANAGER_EV_ADMITTED, store_admit_start},
        [MANAGER_FX_RESIGN] = {MANAGER_WRITE_RESIGN, MANAGER_EV_RESIGNED, store_attempt_start},
        [MANAGER_FX_FILL] = {MANAGER_WRITE_FILL, MANAGER_EV_FILLED, store_fill_start},
    };
    struct op *op = op_new(a, kinds[fx->type].write, kinds[fx->type].done, fx->count);
    copy_rows(op, fx);
    op->signed_rows = xcalloc(op->count, sizeof(*op->signed_rows));
    op->attempt_rows = xcalloc(op->count, sizeof(*op->attempt_rows));
    op->call_lens = xcalloc(op->count, sizeof(*op->call_lens));
    size_t count = op->count;
    int rc = sign_rows(op);
    if (rc == 0 && op->write == MANAGER_WRITE_RESIGN)
        rc = leave_out_known(op, &count);
    if (rc || !count) {
        loop_post(a->service->loop, &op->task, answered_later);
        return;
    }
    const struct node_info *info = node_info(a->service->node);
    op->u.attempts.account = a->store_account;
    op->u.attempts.epoch = a->epoch;
    op->u.attempts.spec_version = info->spec_version;
    op->u.attempts.transaction_version = info->transaction_version;
    op->u.attempts.block = (int64_t)info->finalized_number;
    op->u.attempts.count = count;
    op->u.attempts.rows = op->attempt_rows;
    kinds[fx->type].start(a->service->store, &op->u.attempts, attempts_stored);
}

/* ---- statuses, ends, nonce ---- */

static void stored(struct store_req *req)
{
    struct op *op = op_of(req);
    if (req->err.code || !current(op))
        failed(op);
    else
        account_event(op->account, &(struct manager_event){.type = op->done});
    op_free(op);
}

static void states(struct account *a, const struct manager_effect *fx)
{
    struct op *op = op_new(a, MANAGER_WRITE_STATES, MANAGER_EV_STATES_STORED, fx->count);
    copy_rows(op, fx);
    op->state_rows = xcalloc(op->count, sizeof(*op->state_rows));
    for (size_t i = 0; i < op->count; i++) {
        const struct manager_row_effect *row = &op->rows[i];
        op->state_rows[i] = (struct store_state_row){.nonce = (int64_t)row->nonce,
                                                     .state = row->state,
                                                     .block_number = row->has_block ? row->block_number : -1,
                                                     .error = row->error[0] ? row->error : NULL};
        if (row->has_block)
            op->state_rows[i].block_hash = (struct store_bytes){row->block_hash, 32};
        memcpy(op->state_rows[i].hash, row->hash, 32);
    }
    op->u.states = (struct store_states){
        .account = a->store_account, .epoch = a->epoch, .count = op->count, .rows = op->state_rows};
    store_state_start(a->service->store, &op->u.states, stored);
}

static void ends(struct account *a, const struct manager_effect *fx)
{
    bool finish = fx->type == MANAGER_FX_STORE_FINISH;
    struct op *op = op_new(a, finish ? MANAGER_WRITE_FINISH : MANAGER_WRITE_REJECT,
                           finish ? MANAGER_EV_FINISH_STORED : MANAGER_EV_REJECT_STORED, fx->count);
    copy_rows(op, fx);
    op->fees = xcalloc(op->count, sizeof(*op->fees));
    op->finish_rows = xcalloc(op->count, sizeof(*op->finish_rows));
    for (size_t i = 0; i < op->count; i++) {
        const struct manager_row_effect *row = &op->rows[i];
        const char *error = row->error[0] ? row->error : row->reason;
        op->finish_rows[i] =
            (struct store_finish_row){.nonce = (int64_t)row->nonce,
                                      .id = row->id,
                                      .block_number = row->has_block ? row->block_number : -1,
                                      .index = row->has_block ? (int32_t)row->index : -1,
                                      .outcome = row->outcome,
                                      .error = error,
                                      .fee = row->has_fee ? u128_text(row->fee, op->fees[i]) : NULL};
        memcpy(op->finish_rows[i].hash, row->hash, 32);
        memcpy(op->finish_rows[i].block_hash, row->block_hash, 32);
    }
    op->u.finish = (struct store_finish){
        .account = a->store_account, .epoch = a->epoch, .count = op->count, .rows = op->finish_rows};
    if (finish)
        store_finish_start(a->service->store, &op->u.finish, stored);
    else
        store_reject_start(a->service->store, &op->u.finish, stored);
}

static void set_nonce(struct account *a, const struct manager_effect *fx)
{
    struct op *op = op_new(a, MANAGER_WRITE_NONCE, MANAGER_EV_NONCE_STORED, 0);
    op->u.nonce = (struct store_nonce){
        .account = a->store_account, .epoch = a->epoch, .next_nonce = (int64_t)fx->nonce, .lower = fx->lower};
    store_nonce_start(a->service->store, &op->u.nonce, stored);
}

void account_store_effect(struct account *a, const struct manager_effect *fx)
{
    if (fx->type == MANAGER_FX_LOAD)
        load(a, fx);
    else if (fx->type == MANAGER_FX_ADMIT || fx->type == MANAGER_FX_RESIGN || fx->type == MANAGER_FX_FILL)
        attempts(a, fx);
    else if (fx->type == MANAGER_FX_STORE_STATES)
        states(a, fx);
    else if (fx->type == MANAGER_FX_STORE_NONCE)
        set_nonce(a, fx);
    else
        ends(a, fx);
}

/* ---- the outbox and its doorbell ---- */

/* Rows that can never be sent are found here, where the metadata is: the manager rejects them. */
static void deliver(struct account *a, const struct store_outbox *r)
{
    const struct node_info *info = node_info(a->service->node);
    struct manager_outbox_row *rows = xcalloc(r->count, sizeof(*rows));
    struct err *errs = xcalloc(r->count, sizeof(*errs));
    for (size_t i = 0; i < r->count; i++) {
        const struct store_outbox_row *o = &r->rows[i];
        rows[i] = (struct manager_outbox_row){
            .id = o->id, .call = o->call.data, .call_len = o->call.len, .guard = o->guard};
        if (codec_check_call(info->metadata, o->call.data, o->call.len, &errs[i]))
            rows[i].bad = errs[i].text;
    }
    account_event(a, &(struct manager_event){.type = MANAGER_EV_OUTBOX, .outbox = rows, .count = r->count});
    free(errs);
    free(rows);
}

static void fetched(struct store_req *req)
{
    struct op *op = op_of(req);
    struct account *a = op->account;
    if (current(op)) {
        if (req->err.code || !node_info(a->service->node)) {
            account_lost(a, req->err.code);
            account_wake(a, WAKE_EV_FAILED);
        } else if (!op->u.outbox.count) {
            account_wake(a, WAKE_EV_NONE);
        } else {
            account_wake(a, WAKE_EV_ROWS);
            deliver(a, &op->u.outbox);
        }
    }
    op_free(op);
}

void account_fetch(struct account *a)
{
    struct op *op = op_new(a, MANAGER_WRITE_LOAD, MANAGER_EV_OUTBOX, 0);
    op->u.outbox =
        (struct store_outbox){.account = a->store_account, .epoch = a->epoch, .limit = a->outbox_limit};
    store_outbox_start(a->service->store, &op->u.outbox, fetched);
}

/* ---- deadlines and cancellations ---- */

static void looked(struct store_req *req)
{
    struct op *op = op_of(req);
    struct account *a = op->account;
    const struct store_look *r = &op->u.look;
    if (current(op) && req->err.code) {
        if (err_class(req->err.code) == ERR_CLASS_BUG || err_class(req->err.code) == ERR_CLASS_PERMANENT)
            log_error("store.refused", "account=%s write=look code=%s sqlstate=%s text=\"%s\"", a->alias,
                      err_name(req->err.code), req->err.sqlstate, req->err.text);
        account_lost(a, req->err.code);
        if (current(op))
            account_event(a, &(struct manager_event){.type = MANAGER_EV_LOOKED, .failed = true});
    } else if (current(op)) {
        struct manager_stop *stops = xcalloc(r->count, sizeof(*stops));
        for (size_t i = 0; i < r->count; i++)
            stops[i] = (struct manager_stop){.nonce = (uint64_t)r->stops[i].nonce,
                                             .id = r->stops[i].id,
                                             .outcome = r->stops[i].outcome,
                                             .reason = r->stops[i].reason};
        account_event(a,
                      &(struct manager_event){.type = MANAGER_EV_LOOKED,
                                              .stops = stops,
                                              .count = r->count,
                                              .next_ms = r->next_ms < 0 ? UINT64_MAX : (uint64_t)r->next_ms});
        free(stops);
        if (r->ripe) /* nobody rings for a row whose time has come */
            account_wake(a, WAKE_EV_RING);
    }
    op_free(op);
}

void account_look(struct account *a)
{
    struct op *op = op_new(a, MANAGER_WRITE_LOAD, MANAGER_EV_LOOKED, 0);
    op->u.look = (struct store_look){.account = a->store_account, .epoch = a->epoch};
    store_look_start(a->service->store, &op->u.look, looked);
}

static void armed(struct store_req *req)
{
    struct op *op = op_of(req);
    if (!current(op) && !req->err.code && op->u.doorbell.armed)
        account_disarm(op->account); /* taken for a leadership that is over: the next leader needs it */
    if (current(op)) {
        enum wake_event ev = op->u.doorbell.armed ? WAKE_EV_ARMED : WAKE_EV_NOT_ARMED;
        account_wake(op->account, req->err.code ? WAKE_EV_FAILED : ev);
    }
    op_free(op);
}

void account_arm(struct account *a)
{
    struct op *op = op_new(a, MANAGER_WRITE_LOAD, MANAGER_EV_OUTBOX, 0);
    op->u.doorbell.account = a->store_account;
    store_doorbell_arm_start(a->service->store, &op->u.doorbell, armed);
}

static void disarmed(struct store_req *req)
{
    op_free(op_of(req)); /* a lost session has given it back as well */
}

void account_disarm(struct account *a)
{
    struct op *op = op_new(a, MANAGER_WRITE_LOAD, MANAGER_EV_OUTBOX, 0);
    op->u.doorbell.account = a->store_account;
    store_doorbell_disarm_start(a->service->store, &op->u.doorbell, disarmed);
}
