/* What the database lost and the chain still knows, on its way from the manager to the store. */
#include <stdlib.h>
#include <string.h>

#include "account/op.h"
#include "base/alloc.h"
#include "base/check.h"

static void adopted(struct store_req *req)
{
    struct op *op = op_of(req);
    if (req->err.code || !op_current(op))
        op_failed(op);
    else
        account_event(op->account,
                      &(struct manager_event){
                          .type = MANAGER_EV_STORED,
                          .stored = {.write = op->effect, .adopted = (size_t)op->u.adopt.adopted}});
    op_free(op);
}

static void failed_later(struct loop_task *task)
{
    struct op *op = CONTAINER_OF(task, struct op, task);
    adopted(&op->u.req);
}

/* Bytes and rows in one block, after the rows. */
static struct store_adopt_row *copy_found(const struct manager_effect *fx, char (*amounts)[40])
{
    size_t bytes = 0;
    for (size_t i = 0; i < fx->adopt.count; i++)
        bytes += fx->adopt.found[i].bytes_len;
    struct store_adopt_row *rows = xcalloc(1, fx->adopt.count * sizeof(*rows) + bytes + 1);
    uint8_t *at = (uint8_t *)(rows + fx->adopt.count);
    for (size_t i = 0; i < fx->adopt.count; i++) {
        const struct manager_found *f = &fx->adopt.found[i];
        memcpy(at, f->bytes, f->bytes_len);
        rows[i] = (struct store_adopt_row){.nonce = (int64_t)f->nonce,
                                           .extrinsic = {at, f->bytes_len},
                                           .call_len = f->call_len,
                                           .tip = u128_text(f->tip, amounts[i]),
                                           .era_birth = f->era_birth,
                                           .era_death = f->era_death,
                                           .time_ms = f->time_ms};
        memcpy(rows[i].hash, f->hash, 32);
        at += f->bytes_len;
    }
    return rows;
}

void account_adopt(struct account *a, const struct manager_effect *fx)
{
    const struct node_info *info = node_info(a->service->node);
    struct op *op = op_new(a, fx->type, fx->adopt.count);
    if (!info) {
        err_set(&op->u.req.err, ERR_NET, "no node is connected");
        loop_post(a->service->loop, &op->task, failed_later);
        return;
    }
    op->amounts = xcalloc(fx->adopt.count + 1, sizeof(*op->amounts));
    op->adopt_rows = copy_found(fx, op->amounts);
    op->u.adopt = (struct store_adopt){.account = a->store_account,
                                       .epoch = a->epoch,
                                       .spec_version = info->spec_version,
                                       .transaction_version = info->transaction_version,
                                       .block = (int64_t)fx->adopt.block,
                                       .done = fx->adopt.done,
                                       .read = fx->adopt.read,
                                       .count = fx->adopt.count,
                                       .rows = op->adopt_rows};
    store_adopt_start(a->service->store, &op->u.adopt, adopted);
}

/* ---- the wait ---- */

static void heard(struct store_req *req)
{
    struct op *op = op_of(req);
    if (req->err.code || !op_current(op))
        op_failed(op);
    else
        account_event(op->account,
                      &(struct manager_event){
                          .type = MANAGER_EV_STORED,
                          .stored = {.write = op->effect, .until = (uint64_t)op->u.heard.until}});
    op_free(op);
}

void account_heard(struct account *a, const struct manager_effect *fx)
{
    struct op *op = op_new(a, fx->type, 0);
    op->u.heard = (struct store_heard){
        .account = a->store_account, .epoch = a->epoch, .heard = (int64_t)fx->number};
    store_heard_start(a->service->store, &op->u.heard, heard);
}
