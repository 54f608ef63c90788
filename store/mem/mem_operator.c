/* The account itself: leader_pause, account_pause, account_resume, account_rewind and
 * account_policy of 04_policy.sql, leader_nonce of 14_admit.sql, account_reconcile of
 * 17_reconcile.sql. */
#include <string.h>

#include "base/check.h"
#include "mem/mem.h"

/* ---- pauses ---- */

/* The static text of a suspension; "" for NULL, NULL for one that there is not. */
static const char *suspension_of(const char *name)
{
    static const char *const holds[] = {"payment", "reaped", "transaction_version", "signing"};
    for (size_t i = 0; name && i < ARRAY_LEN(holds); i++)
        if (!strcmp(name, holds[i]))
            return holds[i];
    return name ? NULL : "";
}

/* The end of a pause notifies, so the leader hears of every row that waited. */
static void unpause(struct mem_account *a)
{
    LIST_EACH (n, &a->outbox)
        CONTAINER_OF(n, struct mem_row, node)->silent = false;
    a->paused = a->paused_by_operator = false;
    a->paused_us = 0;
    mem__replace(&a->paused_reason, NULL);
}

void mem__pause(struct mem_session *s, struct store_pause *r)
{
    struct mem_account *a = mem__fence(s->db, r->account, r->epoch, &r->req.err);
    const char *suspension = suspension_of(r->suspension);
    if (!a)
        return;
    if (!suspension) {
        mem__fail(&r->req.err, "TR011",
                  "suspension is \"%.40s\"; it must be payment, reaped, transaction_version, "
                  "signing",
                  r->suspension);
        return;
    }
    a->reborn = a->reborn && strcmp(suspension, "reaped") != 0;
    if (!a->paused_by_operator && *suspension) {
        a->paused_us = strcmp(a->suspension, suspension) != 0 ? mem__stamp(s->db) : a->paused_us;
        a->paused = true;
        mem__replace(&a->paused_reason, r->reason ? r->reason : suspension);
    } else if (!a->paused_by_operator) {
        unpause(a);
    }
    a->suspension = suspension;
}

int mem_account_pause(struct mem_session *s, const char *account, const char *reason,
                      struct err *err)
{
    err_clear(err);
    struct mem_account *a = mem__account_of(s->db, account, err);
    if (!a)
        return err->code;
    a->paused_us = a->paused_us ? a->paused_us : mem__stamp(s->db);
    a->paused = a->paused_by_operator = true;
    mem__replace(&a->paused_reason, reason ? reason : "");
    return 0;
}

void mem__resume(struct mem_session *s, struct store_ask *r)
{
    struct mem_account *a = mem__account_of(s->db, r->account, &r->req.err);
    r->answer = "";
    if (!a)
        return;
    a->reborn = a->reborn || !strcmp(a->suspension, "reaped");
    if (!strcmp(a->suspension, "transaction_version"))
        a->transaction_version = 0;
    unpause(a);
    a->suspension = "";
    mem__notify_wake(s->db, a);
}

/* The record of operations is not kept here. */
void mem__drained(struct mem_session *s, struct store_drained *r)
{
    (void)s;
    (void)r;
}

static bool is_immortal(const struct mem_row *row)
{
    for (size_t i = 0; i < row->at->count; i++) {
        const struct mem_attempt *t = &row->at->attempts[i];
        if (t->era_death < 0 && (!row->presigned || t->id == row->id))
            return true;
    }
    return false;
}

static int check_rewind(const struct mem_account *a, struct err *err)
{
    if (a->watch_only)
        return mem__fail(err, "TR011", "account is \"%s\", whose key no relay has", a->alias);
    if (a->reconcile_from >= 0)
        return mem__fail(err, "TR011",
                         "account is \"%s\", whose lost commits are looked for from block %lld on",
                         a->alias, (long long)a->reconcile_from);
    for (size_t i = 0; i < a->pending_count; i++)
        if (is_immortal(a->pending[i]))
            return mem__fail(
                err, "TR011",
                "account is \"%s\", whose pending nonce %lld was signed without an era", a->alias,
                (long long)a->pending[i]->nonce);
    return 0;
}

int mem_account_rewind(struct mem_session *s, const char *account, struct err *err)
{
    err_clear(err);
    struct mem_account *a = mem__account_of(s->db, account, err);
    if (!a || check_rewind(a, err))
        return err->code;
    a->lead.epoch++;
    a->reborn = true;
    a->used_nonce = a->used_block = -1;
    a->suspension = "";
    if (!a->paused_by_operator)
        unpause(a);
    mem__notify_wake(s->db, a);
    return 0;
}

/* ---- policy ---- */

int mem_account_policy(struct mem_session *s, const char *account, const struct mem_policy *policy,
                       struct err *err)
{
    err_clear(err);
    struct mem_account *a = mem__account_of(s->db, account, err);
    if (!a)
        return err->code;
    if (policy->tip_after_blocks && !policy->has_tip_cap)
        return mem__fail(err, "TR011", "tip_after_blocks is %u, and there is no tip_cap",
                         policy->tip_after_blocks);
    if (policy->has_tip_cap && policy->tip_start > policy->tip_cap)
        return mem__fail(err, "TR011", "tip_start must not be above tip_cap");
    a->policy = *policy;
    mem__notify_wake(s->db, a);
    return 0;
}

/* ---- nonces ---- */

static int check_nonce(const struct mem_account *a, const struct store_nonce *r, struct err *err)
{
    int64_t last = mem__last_pending(a);
    if (mem__check_reconciled(a, err))
        return err->code;
    if (r->next_nonce < 0 || (last >= 0 && r->next_nonce <= last && !r->reborn))
        return mem__fail(err, "TR003",
                         "next nonce %lld for account %s, whose last pending nonce is %lld",
                         (long long)r->next_nonce, a->alias, (long long)last);
    if (r->reborn && last >= 0)
        return mem__fail(err, "TR003",
                         "account %s cannot begin a new life while nonce %lld is pending", a->alias,
                         (long long)last);
    if (r->reborn && !a->reborn)
        return mem__fail(err, "TR003", "no operator has ordered a new life of account %s",
                         a->alias);
    if (!r->reborn && r->next_nonce < a->next_nonce && !r->lower)
        return mem__fail(err, "TR003", "next nonce %lld for account %s is lower than %lld",
                         (long long)r->next_nonce, a->alias, (long long)a->next_nonce);
    if (!r->reborn && r->next_nonce < a->used_nonce)
        return mem__fail(
            err, "TR002",
            "nonce %lld of account %s was used in a finalized block, by what is on record",
            (long long)a->used_nonce - 1, a->alias);
    return 0;
}

static int check_free(const struct mem_account *a, struct err *err)
{
    LIST_EACH (p, &a->signed_rows)
        if (CONTAINER_OF(p, struct mem_row, node)->held)
            return mem__held(err, CONTAINER_OF(p, struct mem_row, node));
    return 0;
}

/* No record from before says anything about its nonces. */
static void begin_life(struct mem_session *s, struct mem_account *a)
{
    a->used_nonce = a->used_block = -1;
    a->reborn = false;
    a->life_since_us = mem__stamp(s->db);
    for (struct list *p = list_first(&a->signed_rows); p; p = list_first(&a->signed_rows))
        mem__end_told(s->db, a, CONTAINER_OF(p, struct mem_row, node), MEM_FAILED,
                      "the account was reaped or rewound: it may be of the former life",
                      a->lead.epoch);
}

void mem__nonce(struct mem_session *s, struct store_nonce *r)
{
    struct mem_account *a = mem__fence(s->db, r->account, r->epoch, &r->req.err);
    if (!a || check_nonce(a, r, &r->req.err) || (r->reborn && check_free(a, &r->req.err)))
        return;
    if (r->reborn)
        begin_life(s, a);
    a->next_nonce = r->next_nonce;
}

/* ---- a database that was restored ---- */

/* No attempt was signed above the block that an operator names. */
static void lower_blocks(struct mem_nonce *n, int64_t block)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->attempts[i].block > block)
            n->attempts[i].block = block;
}

int mem_account_reconcile(struct mem_session *s, const char *account, int64_t block,
                          struct err *err)
{
    err_clear(err);
    struct mem_account *a = mem__account_of(s->db, account, err);
    if (!a)
        return err->code;
    int64_t seen = a->seen_block > a->used_block ? a->seen_block : a->used_block;
    int64_t from = block >= 0 ? block : seen >= 0 ? seen : 0;
    if (a->reconcile_from < 0 || from < a->reconcile_from)
        a->reconcile_from = from;
    a->lost_since_us = mem_db_now_us(s->db);
    a->lost_heard = -1;
    for (size_t i = 0; block >= 0 && i < a->pending_count; i++)
        lower_blocks(a->pending[i]->at, a->reconcile_from);
    a->lead.timeline = UINT32_MAX; /* no real timeline: the leader has to claim again */
    return 0;
}
