/* What the database lost and the chain still knows, on its way from the manager to the store. */
#include <stdlib.h>
#include <string.h>

#include "account/op.h"
#include "base/alloc.h"
#include "base/check.h"

static void answered(struct op *op, struct manager_event stored)
{
    stored.type = MANAGER_EV_STORED;
    stored.stored.write = op->effect;
    if (op->u.req.err.code || !op_current(op))
        op_failed(op);
    else
        account_event(op->account, &stored);
    op_free(op);
}

static void adopted(struct store_req *req)
{
    struct op *op = op_of(req);
    answered(op, (struct manager_event){.stored.adopted = (size_t)op->u.adopt.adopted});
}

static void failed_later(struct loop_task *task)
{
    struct op *op = CONTAINER_OF(task, struct op, task);
    adopted(&op->u.req);
}

/* Bytes and rows in one block, after the rows. */
static struct tx_found *copy_found(const struct manager_effect *fx)
{
    size_t bytes = 0;
    for (size_t i = 0; i < fx->adopt.count; i++)
        bytes += fx->adopt.found[i].bytes_len;
    struct tx_found *rows = xcalloc(1, fx->adopt.count * sizeof(*rows) + bytes + 1);
    uint8_t *at = (uint8_t *)(rows + fx->adopt.count);
    for (size_t i = 0; i < fx->adopt.count; i++) {
        rows[i] = fx->adopt.found[i];
        rows[i].time_ms += rows[i].time_ms < 0 ? 0 : fx->adopt.ahead_ms; /* the database's time */
        rows[i].bytes = memcpy(at, rows[i].bytes, rows[i].bytes_len);
        at += rows[i].bytes_len;
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
    op->found = copy_found(fx);
    op->u.adopt = (struct store_adopt){.account = a->store_account,
                                       .epoch = a->epoch,
                                       .spec_version = info->spec_version,
                                       .transaction_version = info->transaction_version,
                                       .block = (int64_t)fx->adopt.block,
                                       .done = fx->adopt.done,
                                       .read = fx->adopt.read,
                                       .count = fx->adopt.count,
                                       .rows = op->found};
    store_adopt_start(a->service->store, &op->u.adopt, adopted);
}

/* ---- the wait ---- */

static void heard(struct store_req *req)
{
    struct op *op = op_of(req);
    answered(op, (struct manager_event){.stored.until = (uint64_t)op->u.heard.until});
}

void account_heard(struct account *a, const struct manager_effect *fx)
{
    struct op *op = op_new(a, fx->type, 0);
    op->u.heard = (struct store_heard){
        .account = a->store_account, .epoch = a->epoch, .heard = (int64_t)fx->number};
    store_heard_start(a->service->store, &op->u.heard, heard);
}
