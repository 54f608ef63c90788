/* Creating, freeing and querying an elector. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "elector_internal.h"

enum {
    BACKOFF_BASE_MS = 200, /* store errors: exponential to a few seconds */
    BACKOFF_CAP_MS = 3000,
};

uint64_t elector__tenure_end(const struct elector *e, const struct elector_account *a)
{
    return a->sent + e->config.expiry_1_ms - e->config.margin_ms;
}

bool elector__gate_open(const struct elector *e, const struct elector_account *a, uint64_t now)
{
    return a->state == ELECTOR_LEADER && e->up && !a->suspect && now < elector__tenure_end(e, a);
}

bool elector__bids(const struct elector *e)
{
    return e->up && !e->draining && !e->retiring;
}

struct elector *elector_new(const struct elector_config *config)
{
    PRE(elector_config_check(config, NULL) == 0);
    struct elector *e = xcalloc(1, sizeof(*e));
    e->config = elector_config_defaults(config);
    e->rng.state = e->config.seed;
    e->renew_at = ELECTOR_NEVER;
    /* Fast enough for a second and a third attempt before the tenure ends. */
    uint32_t h = e->config.heartbeat_ms;
    e->scan_at = e->heartbeat_at = ELECTOR_NEVER;
    e->ring = ring_new(e->config.hash);
    e->self = -1;
    e->scan_backoff = (struct backoff){.base_ms = BACKOFF_BASE_MS, .cap_ms = BACKOFF_CAP_MS};
    e->renew_backoff = (struct backoff){.base_ms = h / 5 ? h / 5 : 1, .cap_ms = h};
    return e;
}

struct elector *elector_free(struct elector *e)
{
    if (!e)
        return NULL;
    for (size_t i = 0; i < e->count; i++) {
        free(e->accounts[i].holder);
        free(e->accounts[i].address);
        free(e->accounts[i].former);
    }
    free(e->accounts);
    free(e->heap);
    free(e->renew_accounts);
    free(e->renew_epochs);
    ring_free(e->ring);
    free(e->scan_accounts);
    free(e->scan_epochs);
    free(e->effects);
    free(e);
    return NULL;
}

int elector_add(struct elector *e)
{
    if (e->count == e->cap) {
        e->cap = e->cap ? e->cap * 2 : 16;
        e->accounts = xrealloc(e->accounts, e->cap * sizeof(*e->accounts));
        e->heap = xrealloc(e->heap, e->cap * sizeof(*e->heap));
        e->renew_accounts = xrealloc(e->renew_accounts, e->cap * sizeof(*e->renew_accounts));
        e->renew_epochs = xrealloc(e->renew_epochs, e->cap * sizeof(*e->renew_epochs));
        e->scan_accounts = xrealloc(e->scan_accounts, e->cap * sizeof(*e->scan_accounts));
        e->scan_epochs = xrealloc(e->scan_epochs, e->cap * sizeof(*e->scan_epochs));
    }
    struct elector_account *a = &e->accounts[e->count];
    *a = (struct elector_account){
        .state = ELECTOR_FOLLOWER,
        .due = elector__bids(e) ? 0 : ELECTOR_NEVER,
        .backoff = {.base_ms = BACKOFF_BASE_MS, .cap_ms = BACKOFF_CAP_MS},
        .holder = xstrdup(""),
        .address = xstrdup(""),
        .former = xstrdup(""),
    };
    int account = (int)e->count++;
    elector__heap_add(e, account);
    return account;
}

static const struct elector_account *get(const struct elector *e, int account)
{
    PRE(account >= 0 && (size_t)account < e->count);
    return &e->accounts[account];
}

bool elector_gate(const struct elector *e, int account, uint64_t now)
{
    return elector__gate_open(e, get(e, account), now);
}

enum elector_state elector_state(const struct elector *e, int account)
{
    return get(e, account)->state;
}

int64_t elector_epoch(const struct elector *e, int account)
{
    return get(e, account)->epoch;
}

const char *elector_holder(const struct elector *e, int account)
{
    return get(e, account)->holder;
}

const char *elector_address(const struct elector *e, int account)
{
    return get(e, account)->address;
}

size_t elector_renewing(const struct elector *e, const int **ret_accounts,
                        const int64_t **ret_epochs)
{
    *ret_accounts = e->renew_accounts;
    *ret_epochs = e->renew_epochs;
    return e->renewing ? e->renew_count : 0;
}

size_t elector_scanning(const struct elector *e, const int **ret_accounts,
                        const int64_t **ret_epochs)
{
    *ret_accounts = e->scan_accounts;
    *ret_epochs = e->scan_epochs;
    return e->scanning ? e->scan_count : 0;
}

uint64_t elector_deadline(const struct elector *e)
{
    uint64_t due = e->count ? e->accounts[e->heap[0]].due : ELECTOR_NEVER;
    bool renews = e->up && !e->draining && !e->renewing && e->leaders;
    if (renews && e->renew_at < due)
        due = e->renew_at;
    if (!e->scanning && e->scan_at < due)
        due = e->scan_at;
    return !e->heartbeat_in_flight && e->heartbeat_at < due ? e->heartbeat_at : due;
}
