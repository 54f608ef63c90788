/* The wait after a failover that lost commits: 17_reconcile.sql without leader_adopt. */
#include "mem/mem.h"

/* While an account waits, nothing is admitted, signed or ended. */
int mem__check_reconciled(const struct mem_account *a, struct err *err)
{
    if (a->reconcile_from < 0)
        return 0;
    return mem__fail(
        err, "TR003",
        "account %s is not reconciled with the chain from block %lld on, up to block %lld",
        a->alias, (long long)a->reconcile_from, (long long)mem__lost_until(a));
}

/* What is signed must be dead when the wait is over. */
int mem__check_eras(const struct mem_account *a, const struct store_attempts *r, struct err *err)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct store_attempt_row *in = &r->rows[i];
        bool longer = in->era_birth < 0 || in->era_death - in->era_birth > (int64_t)a->era_longest;
        if (in->era_death >= 0 ? longer : !a->era_immortal)
            return mem__fail(err, "TR003",
                             "an era is longer than %u blocks, which is the longest of account %s",
                             a->era_longest, a->alias);
    }
    return 0;
}

int64_t mem__lost_until(const struct mem_account *a)
{
    int64_t longest = PLANTED(WAIT_SHORT) ? 0 : (int64_t)a->era_longest;
    return a->lost_heard < 0 ? -1 : a->lost_heard + longest;
}

void mem__heard(struct mem_session *s, struct store_heard *r)
{
    r->until = -1;
    struct mem_account *a = mem__fence(s->db, r->account, r->epoch, &r->req.err);
    if (!a)
        return;
    if (r->heard < 0)
        mem__fail(&r->req.err, "TR011", "block is %lld; it must be 0 or more", (long long)r->heard);
    else if (a->reconcile_from < 0)
        mem__fail(&r->req.err, "TR003", "account %s is reconciled", a->alias);
    if (r->req.err.code)
        return;
    if (a->lost_heard < 0)
        a->lost_heard = r->heard;
    r->until = mem__lost_until(a);
}
