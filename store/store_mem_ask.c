/* What applications and operators ask for later, in memory: cancel and bump of schema/migrations. The leader
 * hears of it by the same call that announces a new transaction, and looks. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store_mem.h"

/* ---- amounts ---- */

bool mem__amount(const char *text, mem_amount *ret)
{
    const mem_amount max = ~(mem_amount)0;
    mem_amount v = 0;
    for (const char *p = text; *p; p++) {
        if (*p < '0' || *p > '9' || v > (max - (unsigned)(*p - '0')) / 10)
            return false;
        v = v * 10 + (unsigned)(*p - '0');
    }
    *ret = v;
    return *text != 0;
}

char *mem__amount_text(mem_amount v)
{
    char digits[40];
    size_t at = sizeof(digits);
    digits[--at] = 0;
    do {
        digits[--at] = (char)('0' + (int)(v % 10));
        v /= 10;
    } while (v);
    return xstrdup(digits + at);
}

/* ---- requests ---- */

/* The transaction, wherever it is, and its account; NULL with the answer or the error. */
static struct mem_row *find(struct store_mem *s, struct store_ask *r, struct mem_account **ret_account)
{
    r->answer = "";
    for (size_t i = 0; i < s->account_count && r->id > 0; i++) {
        struct mem_account *a = *ret_account = s->accounts[i];
        struct mem_row *row = mem__queued(a, r->id);
        for (size_t k = 0; k < a->pending_count && !row; k++)
            if (a->pending[k]->id == r->id)
                row = a->pending[k];
        if (row)
            return row;
    }
    if (r->id >= 1 && r->id <= s->last_id)
        r->answer = "finished";
    else
        err_set(&r->req.err, ERR_ARGUMENT, "id is %lld; there is no such transaction", (long long)r->id);
    return NULL;
}

static void wake(struct store_mem *s, struct mem_account *a)
{
    a->timed = true;
    if (s->config.on_wake)
        s->config.on_wake(s->config.arg, a->number);
}

void mem__cancel(struct store_mem *s, struct store_ask *r)
{
    struct mem_account *a;
    struct mem_row *row = find(s, r, &a);
    if (!row)
        return;
    if (row->nonce < 0) {
        mem__outbox_end(s, a, row, "cancelled", "cancelled on request");
        r->answer = "cancelled";
        return;
    }
    row->cancelled = true;
    r->answer = "requested";
    wake(s, a);
}

/* The tip that is asked for, or the next step: one unit more, since a memory store's accounts have no policy,
 * and only the transaction's own limit holds. */
static int bumped_tip(const struct store_ask *r, const struct mem_row *row, mem_amount current,
                      mem_amount *ret, struct err *err)
{
    mem_amount cap = ~(mem_amount)0;
    if (row->max_tip)
        mem__amount(row->max_tip, &cap);
    *ret = current < cap ? current + 1 : cap;
    if (r->tip && (!mem__amount(r->tip, ret) || *ret <= current)) {
        char *text = mem__amount_text(current);
        err_set(err, ERR_ARGUMENT, "tip is %.60s; it must be a number above the current one (%s)", r->tip,
                text);
        free(text);
    } else if (*ret > cap || (!r->tip && current >= cap)) {
        err_set(err, ERR_ARGUMENT, "tip is %.60s; it must not be above max_tip (%.60s) of transaction %lld",
                r->tip ? r->tip : "at its limit", row->max_tip ? row->max_tip : "2^128 - 1",
                (long long)row->id);
    }
    return err->code;
}

static void raise_to(char **slot, mem_amount tip)
{
    mem_amount asked;
    if (*slot && mem__amount(*slot, &asked) && asked >= tip)
        return;
    free(*slot);
    *slot = mem__amount_text(tip);
}

/* Of a queued one too the wish is noted: an admission that is under way has read it with the lower tip. */
void mem__bump(struct store_mem *s, struct store_ask *r)
{
    struct mem_account *a;
    struct mem_row *row = find(s, r, &a);
    if (!row)
        return;
    bool queued = row->nonce < 0;
    const char *now = queued ? row->tip : row->attempts[row->attempt_count - 1].tip;
    mem_amount current = 0, tip;
    if (now)
        mem__amount(now, &current);
    if (bumped_tip(r, row, current, &tip, &r->req.err))
        return;
    r->answer = queued ? "queued" : "requested";
    raise_to(&row->bump, tip);
    if (queued)
        raise_to(&row->tip, tip);
    else
        wake(s, a);
}

void mem__resume(struct store_mem *s, struct store_ask *r)
{
    struct mem_account *a = mem__find(s, r->account);
    r->answer = "";
    if (!a) {
        err_set(&r->req.err, ERR_ARGUMENT, "no such account: \"%.80s\"", r->account);
        return;
    }
    if (!strcmp(a->hold, "reaped"))
        a->reborn = true;
    else if (!strcmp(a->hold, "transaction_version"))
        a->transaction_version = 0;
    a->paused = false;
    a->hold = "";
    wake(s, a);
}
