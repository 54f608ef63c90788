/* A leader's tenure: it begins with a granted claim, lasts as long as renewals succeed in time, and
 * the gate is open for no longer. */
#include "base/check.h"
#include "elector_internal.h"

void elector__report_gate(struct elector *e, struct elector_account *a, bool open,
                          const char *reason)
{
    if (open == a->gate_open)
        return;
    a->gate_open = open;
    struct elector_effect *fx = elector__emit(e, a, ELECTOR_FX_GATE);
    fx->gate.open = open;
    fx->gate.reason = reason;
}

uint64_t elector__heartbeat(struct elector *e)
{
    uint32_t h = e->config.heartbeat_ms;
    return rng_between(&e->rng, h - h / 5, h + h / 5);
}

/* Counted from when the claim or the last renewal was sent: where answers take long, most of a
 * tenure is over when it begins. */
static void plan_renewal(struct elector *e, uint64_t sent)
{
    uint64_t at = sent + elector__heartbeat(e);
    if (at < e->renew_at)
        e->renew_at = at;
}

void elector__promote(struct elector *e, struct elector_account *a)
{
    PRE(a->state == ELECTOR_CLAIM_WAIT && a->orphan_claim > 0);
    a->epoch = a->orphan_claim;
    a->orphan_claim = 0;
    a->sent = a->asked;
    a->suspect = a->hurry = a->leaving = a->unled = a->in_way = false;
    a->preferred_for = 0;
    a->evict_tries = 0;
    a->ask_at = 0;
    elector__move(e, a, ELECTOR_LEADER);
    elector__set_due(e, a, elector__tenure_end(e, a));
    elector__emit(e, a, ELECTOR_FX_PROMOTE)->epoch = a->epoch;
    elector__report_gate(e, a, true, "the claim was granted");
    if (!e->renewing)
        plan_renewal(e, a->sent);
    else if (a->sent < e->oldest_claim)
        e->oldest_claim = a->sent;
}

static void end_tenure(struct elector *e, struct elector_account *a, bool orphan_claim,
                       const char *reason)
{
    PRE(a->epoch > 0);
    int64_t epoch = a->epoch;
    a->leaving = false;
    a->orphan_claim = orphan_claim ? epoch : 0;
    a->epoch = 0;
    elector__report_gate(e, a, false, reason);
    struct elector_effect *fx = elector__emit(e, a, ELECTOR_FX_DEMOTE);
    fx->demoted.epoch = epoch;
    fx->demoted.reason = reason;
    elector__learn(a, "", "", epoch);
}

void elector__demote(struct elector *e, struct elector_account *a, uint64_t now, bool orphan_claim,
                     const char *reason)
{
    PRE(a->state == ELECTOR_LEADER);
    end_tenure(e, a, orphan_claim, reason);
    elector__retire(e, a, now, ELECTOR_BY_SCAN);
}

/* A request that is out ends in FOLLOWER by its answer. */
void elector__give_up(struct elector *e, struct elector_account *a, uint64_t now)
{
    if (a->epoch)
        end_tenure(e, a, true, "this relay has a bug: its log has an internal.bug");
    if (a->state == ELECTOR_LEADER || a->state == ELECTOR_FOLLOWER)
        elector__retire(e, a, now, ELECTOR_BY_SCAN);
}

void elector__renew(struct elector *e, uint64_t now)
{
    PRE(!e->renewing && e->leaders > 0);
    e->renewing = true;
    e->renew_sent = now;
    e->renew_at = e->oldest_claim = ELECTOR_NEVER;
    e->renew_count = 0;
    for (size_t i = 0; i < e->count; i++) {
        struct elector_account *a = &e->accounts[i];
        if (a->state != ELECTOR_LEADER)
            continue;
        a->renew_epoch = a->epoch;
        e->renew_accounts[e->renew_count] = (int)i;
        e->renew_epochs[e->renew_count++] = a->epoch;
    }
    elector__emit(e, NULL, ELECTOR_FX_RENEW);
}

void elector__on_renew_reply(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    PRE(e->renewing);
    e->renewing = false;
    if (ev->failed) {
        e->renew_at = now + backoff_next(&e->renew_backoff, &e->rng);
        return;
    }
    backoff_reset(&e->renew_backoff);
    for (size_t i = 0; i < ev->renew.count; i++) {
        struct elector_account *a = &e->accounts[ev->renew.accounts[i]];
        if (a->state != ELECTOR_LEADER || a->epoch != a->renew_epoch)
            continue; /* renewal of an earlier tenure */
        if (!ev->renew.renewed[i]) {
            elector__demote(e, a, now, true,
                            "the renewal was refused: another relay leads, or the lock is lost");
            continue;
        }
        a->sent = e->renew_sent;
        a->suspect = !e->up;
        elector__set_due(e, a, elector__tenure_end(e, a));
        bool open = elector__gate_open(e, a, now);
        elector__report_gate(e, a, open,
                             open ? "the claim was renewed" : "the renewal came too late");
    }
    plan_renewal(e, e->oldest_claim < e->renew_sent ? e->oldest_claim : e->renew_sent);
}

void elector__on_stale(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    struct elector_account *a = &e->accounts[ev->account];
    if (a->state == ELECTOR_LEADER && (ev->stale_epoch == 0 || ev->stale_epoch == a->epoch))
        elector__demote(e, a, now, false, "a write was refused: another relay leads");
}

/* The server may still execute the statement after the table has been read again. A claim raises
 * the epoch: it waits for a statement that is under way, and a later one is refused. */
void elector__on_doubt(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    static const char reason[] = "the outcome of a write is unknown: a new epoch excludes it";
    struct elector_account *a = &e->accounts[ev->account];
    if (a->state != ELECTOR_LEADER)
        return;
    if (!elector__bids(e)) {
        elector__demote(e, a, now, true, reason);
        return;
    }
    end_tenure(e, a, true, reason);
    elector__claim(e, a, now);
}
