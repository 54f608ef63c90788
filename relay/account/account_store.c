/* The manager's effects that are store writes, and what they have in common with its reads
 * (op.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account/op.h"
#include "account/tally.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/plant.h"

/* New bytes may come of it: an account that leaves waits for its answer. */
static bool op_unsettles(const struct op *op)
{
    return op->effect == MANAGER_FX_WANT_OUTBOX || op->effect == MANAGER_FX_ADMIT ||
           op->effect == MANAGER_FX_RESIGN || op->effect == MANAGER_FX_FILL;
}

struct op *op_new(struct account *a, enum manager_effect_type effect, size_t count)
{
    struct op *op = xcalloc(1, sizeof(*op));
    op->account = a;
    op->generation = a->generation;
    op->effect = effect;
    op->count = count;
    a->unsettled += op_unsettles(op);
    a->service->ops++;
    return op;
}

void op_free(struct op *op)
{
    struct service *s = op->account->service;
    op->account->unsettled -= op_unsettles(op);
    store_req_done(&op->u.req);
    for (size_t i = 0; op->attempts && i < op->count; i++)
        free((void *)op->attempts[i].bytes);
    free(op->attempts);
    free(op->attempt_rows);
    free(op->found);
    signed_births_free(op);
    free(op->rows.any);
    free(op->amounts);
    buf_done(&op->filler);
    free(op);
    service_op_done(s);
}

struct op *op_of(struct store_req *req)
{
    return CONTAINER_OF(req, struct op, u.req);
}

void *op_copy(const void *rows, size_t count, size_t size)
{
    return count ? memcpy(xcalloc(count, size), rows, count * size) : NULL;
}

bool op_current(const struct op *op)
{
    return op->generation == op->account->generation;
}

void op_failed(struct op *op)
{
    struct account *a = op->account;
    int code = op->u.req.err.code;
    if (!op_current(op))
        return;
    if (err_is_refused(code) && !op->not_signed)
        log_error("store.refused", "account=%s write=%s code=%s sqlstate=%s text=\"%s\"", a->alias,
                  manager_write_name(op->effect), err_name(code), op->u.req.err.sqlstate,
                  op->u.req.err.text);
    else
        log_debug("store.failed", "account=%s write=%s code=%s text=\"%s\"", a->alias,
                  manager_write_name(op->effect), err_name(code), op->u.req.err.text);
    const char *why = op->not_signed ? op->u.req.err.text : NULL;
    account_lost(a, code);
    if (manager_write_doubtful(op->effect, code) && !a->service->standalone)
        election_doubt(a->service->election, a->index);
    if (op_current(op)) /* a lost leadership may have demoted us at once */
        account_event(a,
                      &(struct manager_event){
                          .type = MANAGER_EV_WRITE_FAILED,
                          .write_failed = {.write = op->effect, .code = code, .not_signed = why}});
}

/* ---- attempts: admit, resign, fill ---- */

static void send_stored(const struct op *op)
{
    struct manager_event ev = {.type = MANAGER_EV_STORED, .stored = {.write = op->effect}};
    ev.stored.attempts.rows = op->attempts;
    ev.stored.attempts.count = op->count;
    account_event(op->account, &ev);
}

static void attempts_stored(struct store_req *req)
{
    struct op *op = op_of(req);
    if (PLANTED(UNKNOWN_DONE) && req->err.code == ERR_DB_UNKNOWN_OUTCOME)
        err_clear(&req->err);
    if (req->err.code || !op_current(op)) {
        op_failed(op);
    } else {
        if (op->effect == MANAGER_FX_ADMIT)
            FAILPOINT("after_admit");
        tally_attempts(op);
        if (!PLANTED(SEND_UNCOMMITTED) ||
            op->effect != MANAGER_FX_ADMIT) /* else send_stored was early */
            send_stored(op);
    }
    op_free(op);
}

static bool is_filler(const struct op *op, const struct manager_sign_row *row)
{
    return op->effect == MANAGER_FX_FILL || row->filler;
}

static int filler_call(struct op *op)
{
    bool wanted = false;
    for (size_t i = 0; i < op->count; i++)
        wanted = wanted || is_filler(op, &op->rows.sign[i]);
    return wanted ? sign_filler_call(op->account, &op->filler, &op->u.req.err) : 0;
}

static int sign_call(const struct op *op, const struct manager_sign_row *row, const uint8_t *call,
                     size_t len, struct tx_attempt *ret, struct err *err)
{
    struct manager_sign_row again = *row;
    int rc = sign_row(op->account, row, call, len, ret, err);
    if (rc || op->effect != MANAGER_FX_RESIGN)
        return rc;
    enum manager_attempt attempt = manager_attempt_of(op->account->manager, row->hash, ret->hash);
    again.era_period = manager_era_anew(attempt, row->banned, row->era_period);
    if (again.era_period == row->era_period)
        return 0;
    free((void *)ret->bytes); /* op_free has those of the second signature */
    return sign_row(op->account, &again, call, len, ret, err);
}

static int sign_rows(struct op *op)
{
    int rc = filler_call(op);
    for (size_t i = 0; rc == 0 && i < op->count; i++) {
        const struct manager_sign_row *row = &op->rows.sign[i];
        struct tx_attempt *t = &op->attempts[i];
        bool filler = is_filler(op, row);
        const uint8_t *call = filler ? op->filler.data : row->call;
        size_t len = filler ? op->filler.len : row->call_len;
        rc = sign_call(op, row, call, len, t, &op->u.req.err);
        if (rc == 0 && row->guard && row->guard != t->spec_version)
            rc = err_set(&op->u.req.err, ERR_NET,
                         "the runtime changed to spec version %u, and the call is for %u only",
                         t->spec_version, row->guard);
        if (rc)
            break;
        t->id = op->effect == MANAGER_FX_FILL ? 0 : row->id;
        op->attempt_rows[i] = (struct store_attempt_row){
            .id = row->id,
            .nonce = (int64_t)row->nonce,
            .extrinsic = {t->bytes, t->bytes_len},
            .call = {t->bytes + t->bytes_len - len, len}, /* the call is the end of the extrinsic */
            .era_birth = t->era_birth,
            .era_death = t->era_death,
            .tip = u128_text(row->tip, op->amounts[i]),
            .reason = row->reason,
            .outcome = row->outcome,
            .filler_len = row->filler ? (uint32_t)len : 0,
            .stop_reason = row->filler ? row->error : NULL,
        };
        memcpy(op->attempt_rows[i].hash, t->hash, 32);
    }
    return rc;
}

/* Only new attempts are written. */
static int leave_out_known(struct op *op, size_t *ret_count)
{
    size_t count = 0;
    for (size_t i = 0; i < op->count; i++) {
        enum manager_attempt attempt =
            manager_attempt_of(op->account->manager, op->rows.sign[i].hash, op->attempts[i].hash);
        if (attempt == MANAGER_ATTEMPT_FORMER) /* passes */
            return err_set(&op->u.req.err, ERR_NET,
                           "this node's finalized block is older than one signed for");
        if (attempt == MANAGER_ATTEMPT_NEW)
            op->attempt_rows[count++] = op->attempt_rows[i];
    }
    *ret_count = count;
    return 0;
}

#ifdef TXRELAY_PLANT
static void send_stored_early(struct loop_task *task)
{
    const struct op *op = CONTAINER_OF(task, struct op, task);
    if (op_current(op))
        send_stored(op);
}
#endif

/* Work without an answer of the store completes like a request: later, from the loop. */
static void answered_later(struct loop_task *task)
{
    struct op *op = CONTAINER_OF(task, struct op, task);
    attempts_stored(&op->u.req);
}

static void attempts(struct account *a, const struct manager_effect *fx)
{
    static void (*const starts[])(struct store * s, struct store_attempts * r, store_cb cb) = {
        [MANAGER_FX_ADMIT] = store_admit_start,
        [MANAGER_FX_RESIGN] = store_attempt_start,
        [MANAGER_FX_FILL] = store_fill_start,
    };
    struct op *op = op_new(a, fx->type, fx->sign.count);
    op->rows.sign = op_copy(fx->sign.rows, op->count, sizeof(*op->rows.sign));
    op->attempts = xcalloc(op->count, sizeof(*op->attempts));
    op->attempt_rows = xcalloc(op->count, sizeof(*op->attempt_rows));
    op->amounts = xcalloc(op->count, sizeof(*op->amounts));
    size_t count = op->count;
    int rc = fx->sign.presigned ? signed_take(op) : sign_rows(op);
    if (rc == 0 && op->effect == MANAGER_FX_RESIGN)
        rc = leave_out_known(op, &count);
    if (rc || !count) {
        op->not_signed = rc != 0;
        loop_post(a->service->loop, &op->task, answered_later);
        return;
    }
    const struct node_info *info = node_info(a->service->node);
    op->u.attempt.account = a->store_account;
    op->u.attempt.epoch = a->epoch;
    op->u.attempt.spec_version = info->spec_version;
    op->u.attempt.transaction_version = info->transaction_version;
    op->u.attempt.block =
        (int64_t)fx->sign.block; /* the node may be further: blocks that were not looked into */
    op->u.attempt.count = count;
    op->u.attempt.rows = op->attempt_rows;
    op->u.attempt.next_nonce = (int64_t)fx->sign.next_nonce;
    if (op->effect == MANAGER_FX_ADMIT)
        FAILPOINT("before_admit");
    if (fx->sign.presigned)
        store_admit_signed_start(a->service->store, &op->u.attempt, attempts_stored);
    else
        starts[fx->type](a->service->store, &op->u.attempt, attempts_stored);
#ifdef TXRELAY_PLANT
    if (PLANTED(SEND_UNCOMMITTED) && op->effect == MANAGER_FX_ADMIT)
        loop_post(a->service->loop, &op->task, send_stored_early);
#endif
}

/* ---- statuses, ends, nonce ---- */

void op_stored(struct store_req *req)
{
    struct op *op = op_of(req);
    if (op->effect == MANAGER_FX_STORE_STATES && !req->err.code)
        FAILPOINT("after_state");
    if (req->err.code || !op_current(op)) {
        op_failed(op);
    } else {
        if (op->effect == MANAGER_FX_STORE_FINISH || op->effect == MANAGER_FX_STORE_REJECT ||
            op->effect == MANAGER_FX_STORE_REQUEUE)
            tally_ends(op);
        account_event(op->account, &(struct manager_event){.type = MANAGER_EV_STORED,
                                                           .stored = {.write = op->effect}});
    }
    op_free(op);
}

static void states(struct account *a, const struct manager_effect *fx)
{
    struct op *op = op_new(a, fx->type, fx->states.count);
    op->rows.states = op_copy(fx->states.rows, op->count, sizeof(*op->rows.states));
    tally_states(a, op->rows.states, op->count);
    op->u.state = (struct store_states){.account = a->store_account,
                                        .epoch = a->epoch,
                                        .count = op->count,
                                        .rows = op->rows.states};
    store_state_start(a->service->store, &op->u.state, op_stored);
}

/* Neither rows that go back to the outbox nor what may be admitted again is notified, and the
 * leader may be about to fall asleep: it polls the outbox. */
static void stored_and_rings(struct store_req *req)
{
    struct account *a = op_of(req)->account;
    bool back = !req->err.code && op_current(op_of(req));
    op_stored(req);
    if (back)
        account_poll(a, (struct poll_event){.type = POLL_EV_REQUEUED});
}

#ifdef TXRELAY_PLANT
static void ignored(struct store_req *req)
{
    op_free(op_of(req));
}

static void finish_again(const struct op *first)
{
    struct op *op = op_new(first->account, first->effect, first->count);
    op->rows.ends = op_copy(first->rows.ends, op->count, sizeof(*op->rows.ends));
    op->u.finish = first->u.finish;
    op->u.finish.req = (struct store_req){0};
    op->u.finish.rows = op->rows.ends;
    store_finish_start(first->account->service->store, &op->u.finish, ignored);
}

static void given_back(struct store_req *req)
{
    struct op *op = op_of(req);
    if (!req->err.code && op_current(op))
        account_event(op->account, &(struct manager_event){.type = MANAGER_EV_STORE_BACK});
    op_free(op);
}

void account_give_back(struct account *a, uint64_t nonce)
{
    struct op *op = op_new(a, MANAGER_FX_STORE_REQUEUE, 1);
    op->rows.ends = xcalloc(1, sizeof(*op->rows.ends));
    op->rows.ends[0] = (struct tx_end){.nonce = nonce, .outcome = "failed"};
    op->u.finish = (struct store_finish){
        .account = a->store_account, .epoch = a->epoch, .count = 1, .rows = op->rows.ends};
    store_requeue_start(a->service->store, &op->u.finish, given_back);
}
#endif

static void ends(struct account *a, const struct manager_effect *fx)
{
    static void (*const starts[])(struct store * s, struct store_finish * r, store_cb cb) = {
        [MANAGER_FX_STORE_FINISH] = store_finish_start,
        [MANAGER_FX_STORE_REJECT] = store_reject_start,
        [MANAGER_FX_STORE_REQUEUE] = store_requeue_start,
    };
    bool requeue = fx->type == MANAGER_FX_STORE_REQUEUE;
    struct op *op = op_new(a, fx->type, fx->ends.count);
    op->rows.ends = op_copy(fx->ends.rows, op->count, sizeof(*op->rows.ends));
    op->u.finish = (struct store_finish){
        .account = a->store_account, .epoch = a->epoch, .count = op->count, .rows = op->rows.ends};
    starts[fx->type](a->service->store, &op->u.finish, requeue ? stored_and_rings : op_stored);
#ifdef TXRELAY_PLANT
    if (PLANTED(FINISH_AGAIN) && fx->type == MANAGER_FX_STORE_FINISH)
        finish_again(op);
#endif
}

static void pause_account(struct account *a, const struct manager_effect *fx)
{
    struct op *op = op_new(a, fx->type, 0);
    bool over = fx->pause.suspension == MANAGER_SUSPENSION_NONE;
    memcpy(op->text, fx->pause.text, sizeof(op->text));
    /* An operator sees where to send what is missing; the node's own text may be cut for it. */
    if (fx->pause.suspension == MANAGER_SUSPENSION_PAYMENT)
        snprintf(op->text, sizeof(op->text), "fund %s: %.120s", a->address, fx->pause.text);
    op->u.pause = (struct store_pause){
        .account = a->store_account,
        .epoch = a->epoch,
        .suspension = over ? NULL : manager_suspension_name(fx->pause.suspension),
        .reason = over ? NULL : op->text};
    store_pause_start(a->service->store, &op->u.pause, over ? stored_and_rings : op_stored);
}

static void set_nonce(struct account *a, const struct manager_effect *fx)
{
    struct op *op = op_new(a, fx->type, 0);
    op->u.nonce = (struct store_nonce){.account = a->store_account,
                                       .epoch = a->epoch,
                                       .next_nonce = (int64_t)fx->next.nonce,
                                       .lower = fx->next.lower,
                                       .reborn = fx->next.reborn};
    store_nonce_start(a->service->store, &op->u.nonce, op_stored);
}

void account_store_effect(struct account *a, const struct manager_effect *fx)
{
    static void (*const starts[])(struct account * a, const struct manager_effect *fx) = {
        [MANAGER_FX_ADMIT] = attempts,
        [MANAGER_FX_RESIGN] = attempts,
        [MANAGER_FX_FILL] = attempts,
        [MANAGER_FX_STORE_STATES] = states,
        [MANAGER_FX_STORE_FINISH] = ends,
        [MANAGER_FX_STORE_REJECT] = ends,
        [MANAGER_FX_STORE_REQUEUE] = ends,
        [MANAGER_FX_STORE_NONCE] = set_nonce,
        [MANAGER_FX_STORE_PAUSE] = pause_account,
        [MANAGER_FX_STORE_ADOPT] = account_adopt,
        [MANAGER_FX_STORE_HEARD] = account_heard,
        [MANAGER_FX_STORE_NOTE] = account_note,
        [MANAGER_FX_LOAD] = account_load,
    };
    PRE(fx->type < ARRAY_LEN(starts) && starts[fx->type]);
    starts[fx->type](a, fx);
}
