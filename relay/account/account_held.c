/* Rows of the outbox that the leader passes over, and says so: one that an application holds, one
 * that was signed elsewhere and waits for lower nonces. */
#include <stdio.h>

#include "account/account.h"
#include "base/buf.h"
#include "base/log.h"
#include "service/service_internal.h"

enum {
    LOG_AGAIN_MS = 10000,
    LASTS_MS = 1500, /* before it counts: an application's statement holds its row for an instant */
    KNOWN_MS = 4000, /* the outbox is read each second while it holds a row */
};

void account_held_read(struct account *a, const struct store_outbox *r)
{
    struct account_held *h = &a->held;
    uint64_t now = loop_now_ms(a->service->loop);
    int64_t id = r->held_id;
    if (id != h->id)
        h->since_ms = now;
    h->id = id;
    h->read_ms = now;
    plain_text(h->by, sizeof(h->by), r->held_by);
    h->waits_id = r->waits_id;
    plain_text(h->waits, sizeof(h->waits), r->waits);
    if (!id || now < h->log_ms)
        return;
    h->log_ms = now + LOG_AGAIN_MS;
    log_warn("account.held", "account=%s id=%lld text=\"passed over: %s\"", a->alias, (long long)id,
             r->held_by);
}

void account_held_obstacle(const struct account *a, uint64_t now, struct obstacle *ret)
{
    const struct account_held *h = &a->held;
    if (now > h->read_ms + KNOWN_MS)
        return;
    if (h->waits_id) {
        ret->code = OBSTACLE_PRESIGNED;
        snprintf(ret->text, sizeof(ret->text), "transaction %lld waits: %s", (long long)h->waits_id,
                 h->waits);
        return;
    }
    if (!h->id || now < h->since_ms + LASTS_MS)
        return;
    ret->code = OBSTACLE_ROW_HELD;
    snprintf(ret->text, sizeof(ret->text), "transaction %lld is passed over: %s", (long long)h->id,
             h->by);
}
