/* Life of the scheduler, its events and effects, and the time that it waits for. */
#include "relay/core/poll/poll.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "poll_internal.h"

struct poll *poll_new(const struct poll_config *config, uint64_t now)
{
    struct poll *p = xcalloc(1, sizeof(*p));
    p->config = *config;
    p->now = now;
    p->slices = 1;
    p->sweep_due =
        now + config->seed % POLL_SWEEP_MS; /* relays that begin together do not ask together */
    p->accounts = xcalloc(config->accounts, sizeof(*p->accounts));
    for (size_t i = 0; i < config->accounts; i++) {
        p->accounts[i].requests.state = POLL_REQUESTS_OFF;
        poll__outbox_init(&p->accounts[i].outbox);
        poll__requests_init(&p->accounts[i].requests);
    }
    poll__batch_init(p, &p->sweep);
    poll__batch_init(p, &p->merged);
    poll__heap_new(p);
    return p;
}

struct poll *poll_free(struct poll *p)
{
    if (!p)
        return NULL;
    poll__batch_free(&p->sweep);
    poll__batch_free(&p->merged);
    free(p->accounts);
    free(p->heap);
    free(p->effects);
    free(p);
    return NULL;
}

uint32_t poll__retry_ms(uint32_t last, uint32_t cap)
{
    PRE(cap >= POLL_RETRY_MS);
    uint32_t ms = last ? last * 2 : POLL_RETRY_MS;
    return ms < cap ? ms : cap;
}

size_t poll__index(const struct poll *p, const struct poll_account *a)
{
    return (size_t)(a - p->accounts);
}

uint64_t poll__key(const struct poll_account *a)
{
    return a->outbox.at < a->requests.at ? a->outbox.at : a->requests.at;
}

/* ---- effects ---- */

struct poll_effect *poll__emit(struct poll *p, enum poll_query query, struct poll_account *a,
                               enum poll_reason why)
{
    if (p->effects_first == p->effects_end)
        p->effects_first = p->effects_end = 0;
    GROW(p->effects, p->effects_end, p->effects_room);
    struct poll_effect *fx = &p->effects[p->effects_end++];
    *fx = (struct poll_effect){.query = query, .why = why};
    if (a) {
        fx->account = poll__index(p, a);
        fx->tenure = a->tenure;
    }
    return fx;
}

/* A tenure that ended after the effect was queued: only its doorbell is still to be given back. */
static bool obsolete(const struct poll *p, const struct poll_effect *fx)
{
    bool batch = fx->accounts != NULL;
    return !batch && fx->query != POLL_QUERY_DISARM &&
           fx->tenure != p->accounts[fx->account].tenure;
}

bool poll_take(struct poll *p, struct poll_effect *ret)
{
    while (p->effects_first < p->effects_end) {
        *ret = p->effects[p->effects_first++];
        if (obsolete(p, ret))
            continue;
        return true;
    }
    return false;
}

/* ---- events ---- */

static void not_led(struct poll *p, struct poll_account *a)
{
    if (!a->led)
        return;
    poll__outbox_off(p, a);
    poll__requests_off(p, a);
    p->led--;
    a->led = a->leaving = false;
    a->tenure++;
    a->covered_until = a->turn = 0;
}

/* It polls for itself first, and the sweeps will come to it. */
static void led(struct poll *p, struct poll_account *a)
{
    not_led(p, a);
    p->led++;
    a->led = true;
    a->tenure++;
    if (!p->config.sweeps)
        return;
    a->covered_until = p->now + POLL_COVER_MS;
    a->turn = p->now;
}

static void rang(struct poll *p, struct poll_account *a)
{
    poll__outbox_rang(p, a, POLL_WHY_RANG);
    poll__requests_now(p, a, POLL_WHY_RANG); /* it may be a cancellation, or a row with a time */
}

static bool account_event(struct poll *p, struct poll_account *a, const struct poll_event *ev)
{
    switch ((int)ev->type) {
    case POLL_EV_LED:
        led(p, a);
        return true;
    case POLL_EV_NOT_LED:
        not_led(p, a);
        return true;
    case POLL_EV_LEAVING:
        a->leaving = a->led;
        poll__outbox_off(p, a);
        return true;
    case POLL_EV_WANT_ROWS:
        poll__outbox_want(p, a, ev->limit);
        return true;
    case POLL_EV_WANT_REQUESTS:
        poll__requests_want(p, a, ev->serial);
        return true;
    case POLL_EV_RANG:
        rang(p, a);
        return true;
    case POLL_EV_REQUEUED:
        poll__outbox_rang(p, a, POLL_WHY_REQUEUED);
        return true;
    case POLL_EV_REQUESTS:
    case POLL_EV_REQUESTS_FAILED:
        return poll__requests_answered(p, a, ev);
    default:
        return poll__outbox_answered(p, a, ev);
    }
}

static void control_lost(struct poll *p)
{
    for (size_t i = 0; i < p->config.accounts; i++) {
        poll__control_lost(p, &p->accounts[i]);
        poll__heap_set(p, &p->accounts[i]);
    }
}

/* store: the database is back; else the node. */
static void mended(struct poll *p, bool store)
{
    for (size_t i = 0; i < p->config.accounts; i++) {
        struct poll_account *a = &p->accounts[i];
        poll__outbox_mended(p, a, store);
        if (store)
            poll__requests_mended(p, a);
        poll__heap_set(p, a);
    }
    if (store)
        poll__sweep_mended(p);
}

static void tick(struct poll *p)
{
    while (poll__heap_min(p) <= p->now) {
        struct poll_account *a = poll__heap_top(p);
        poll__outbox_tick(p, a);
        poll__requests_tick(p, a);
        INVARIANT(poll__key(a) > p->now);
        poll__heap_set(p, a);
    }
    poll__batches_tick(p);
}

static bool event(struct poll *p, const struct poll_event *ev)
{
    switch ((int)ev->type) {
    case POLL_EV_SWEPT:
        return poll__swept(p, ev);
    case POLL_EV_MERGED:
        return poll__merged_answer(p, ev);
    case POLL_EV_CONTROL_LOST:
        control_lost(p);
        return true;
    case POLL_EV_STORE_UP:
    case POLL_EV_STORE_DOWN:
        p->store_up = ev->type == POLL_EV_STORE_UP;
        if (p->store_up)
            mended(p, true);
        return true;
    case POLL_EV_NODE_UP:
        mended(p, false);
        return true;
    case POLL_EV_TICK:
        tick(p);
        return true;
    default:
        break;
    }
    PRE(ev->account < p->config.accounts);
    struct poll_account *a = &p->accounts[ev->account];
    bool waited = account_event(p, a, ev);
    poll__heap_set(p, a);
    return waited;
}

bool poll_step(struct poll *p, uint64_t now, const struct poll_event *ev)
{
    p->now = now;
    bool waited = event(p, ev);
    poll__recover(p);
    return waited;
}

uint64_t poll_deadline(const struct poll *p)
{
    uint64_t account = poll__heap_min(p), batch = poll__batch_deadline(p);
    return account < batch ? account : batch;
}

/* ---- views ---- */

enum poll_state poll_outbox_state(const struct poll *p, size_t account)
{
    PRE(account < p->config.accounts);
    return p->accounts[account].outbox.state;
}

bool poll_covered(const struct poll *p, size_t account, uint64_t now)
{
    PRE(account < p->config.accounts);
    return now < p->accounts[account].covered_until;
}

static void check_account(const struct poll_account *a)
{
    const struct poll_outbox *o = &a->outbox;
    const struct poll_requests *r = &a->requests;
    bool asks =
        o->state == POLL_FETCH_WAIT || o->state == POLL_ARM_WAIT || o->state == POLL_RECHECK_WAIT;
    INVARIANT(a->led || (o->state == POLL_OFF && r->state == POLL_REQUESTS_OFF && !o->armed));
    INVARIANT(asks == (o->question != 0));
    INVARIANT((r->state == POLL_REQUESTS_WAIT) == (r->question != 0));
    INVARIANT(!o->armed || o->state != POLL_OFF);
    INVARIANT(o->armed || (o->state != POLL_ASLEEP && o->state != POLL_RECHECK_WAIT));
    INVARIANT(!o->merges || o->state == POLL_MERGE_WAIT);
    INVARIANT((o->at == UINT64_MAX) == (o->state == POLL_OFF || o->state == POLL_MERGE_WAIT));
    INVARIANT((r->at == UINT64_MAX) == (r->state == POLL_REQUESTS_OFF));
}

void poll_check(const struct poll *p)
{
    size_t led = 0, merging = 0;
    sm_check(&p->outbox_moves);
    sm_check(&p->requests_moves);
    for (size_t i = 0; i < p->config.accounts; i++) {
        check_account(&p->accounts[i]);
        led += p->accounts[i].led;
        merging += p->accounts[i].outbox.merges;
        INVARIANT(p->heap[p->accounts[i].heap_at] == i);
    }
    INVARIANT(led == p->led && merging == p->merging);
    INVARIANT(!p->merging ||
              p->merged.question); /* who waits for the next one waits for an answer */
}
