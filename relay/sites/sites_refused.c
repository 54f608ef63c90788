/* What nodes answered to submitted bytes of an account that has sites. Each refusal goes into the
 * log and into the history, the first one of a series is an alert, and one of the first nonce that
 * is in no block is an obstacle: as a manager (relay/core/tx/submit.c) has it for other accounts.
 * Nothing follows from it for a transaction: its bytes are submitted again while they can be
 * included. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/log.h"
#include "relay/core/tx/answer.h"
#include "sites/sites.h"

enum { TEXT_SIZE = 200 };

/* The last refusal of a nonce that no block has used. */
struct site_refusal {
    uint64_t nonce;
    uint8_t hash[SITE_HASH_BYTES];
    bool holds; /* it may hold up the account */
    bool untold;
    char text[TEXT_SIZE];
    UT_hash_handle hh;
};

static void forget(struct site_host *h, struct site_refusal *r)
{
    HASH_DELETE(hh, h->refusals, r);
    free(r);
    h->alerted = h->alerted && h->refusals;
}

void sites_taken(struct site_host *h, uint64_t nonce)
{
    struct site_refusal *r;
    HASH_FIND(hh, h->refusals, &nonce, sizeof(nonce), r);
    if (r)
        forget(h, r);
}

void sites_refused_below(struct site_host *h, uint64_t nonce)
{
    struct site_refusal *r, *next;
    HASH_ITER(hh, h->refusals, r, next)
    if (r->nonce < nonce)
        forget(h, r);
}

void sites_refused_end(struct site_host *h)
{
    loop_task_cancel(&h->refusals_task);
    h->refusals_untold = false;
    sites_refused_below(h, UINT64_MAX);
}

/* A full pool refuses hundreds at once: they are one request. */
static void store(struct loop_task *task)
{
    struct site_host *h = CONTAINER_OF(task, struct site_host, refusals_task);
    struct site_tables_refusal *all = xcalloc(HASH_COUNT(h->refusals) + 1, sizeof(*all));
    size_t count = 0;
    h->refusals_untold = false;
    for (struct site_refusal *r = h->refusals; r; r = r->hh.next) {
        if (r->untold) {
            memcpy(all[count].hash, r->hash, sizeof(r->hash));
            all[count++].text = r->text;
        }
        r->untold = false;
    }
    if (count)
        site_tables_refused(h->tables, all, count);
    free(all);
}

/* As a manager has it: others are answers to what a successor submits again, or pass by
 * themselves. */
static bool is_alert(enum refusal means)
{
    return means == REFUSAL_INVALID || means == REFUSAL_TRAPPED || means == REFUSAL_BUSY ||
           means == REFUSAL_UNDERPRICED || means == REFUSAL_PAYMENT;
}

static void note(struct site_host *h, uint64_t nonce, const uint8_t hash[SITE_HASH_BYTES],
                 enum refusal means, const char *text)
{
    struct site_refusal *r;
    if (is_alert(means) && !h->alerted) {
        log_warn("account.alert",
                 "account=%s address=%s epoch=%lld text=\"a node refuses nonce %llu: %s\"",
                 h->account->alias, h->account->address, (long long)h->epoch,
                 (unsigned long long)nonce, text);
        h->alerted = true;
    }
    HASH_FIND(hh, h->refusals, &nonce, sizeof(nonce), r);
    if (!r) {
        r = xcalloc(1, sizeof(*r));
        r->nonce = nonce;
        HASH_ADD(hh, h->refusals, nonce, sizeof(r->nonce), r);
    }
    memcpy(r->hash, hash, sizeof(r->hash));
    /* A used nonce holds up nothing, and what is banned may be in the pool. */
    if (means != REFUSAL_BANNED)
        r->holds = means != REFUSAL_STALE;
    r->untold = true;
    snprintf(r->text, sizeof(r->text), "%s", text);
    if (!h->refusals_untold)
        loop_post(h->room->room.service->loop, &h->refusals_task, store);
    h->refusals_untold = true;
}

void sites_answered(struct site_host *h, uint64_t nonce, const uint8_t hash[SITE_HASH_BYTES],
                    const struct rpc_call *call)
{
    char said[ACCOUNT_SAID], text[TEXT_SIZE];
    account_said(call, said);
    enum refusal means = answer_of(call->err.code, call->rpc_code, said)->means;
    if (means == REFUSAL_NONE || means == REFUSAL_POOLED)
        sites_taken(h, nonce);
    if (means == REFUSAL_NONE)
        return;
    bool refused = means != REFUSAL_POOLED && means != REFUSAL_TRANSPORT && means != REFUSAL_GATE;
    plain_text(text, sizeof(text), said[0] ? said : "refused without a reason");
    log_line(log_steps_level(), "transaction.state",
             "account=%s id=%llu nonce=%llu hash=%s state=%s block=-1 text=\"%s\"",
             h->account->alias, (unsigned long long)site_tables_id_of(h->tables, hash),
             (unsigned long long)nonce, hex_log(hash, SITE_HASH_BYTES),
             refused ? "refused" : "tried", text);
    if (refused)
        note(h, nonce, hash, means, text);
}

bool sites_refused(const struct site_host *h, struct obstacle *ret)
{
    uint64_t first = h->best_next > h->next ? h->best_next : h->next;
    struct site_refusal *r;
    HASH_FIND(hh, h->refusals, &first, sizeof(first), r);
    if (!r || !r->holds)
        return false;
    ret->code = OBSTACLE_REFUSED;
    snprintf(ret->text, sizeof(ret->text),
             "nodes refuse nonce %llu, the first that is in no block: %s",
             (unsigned long long)first, r->text);
    return true;
}
