#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "hook_internal.h"

enum { SHIFT_MAX = 30 };

static uint32_t or_default(uint32_t value, uint32_t other)
{
    return value ? value : other;
}

struct hook_core *hook_core_new(const struct hook_config *config)
{
    struct hook_core *h = xcalloc(1, sizeof(*h));
    h->config = (struct hook_config){
        .sending_max = or_default(config->sending_max, 64),
        .of_webhook = or_default(config->of_webhook, 8),
        .attempts_max = or_default(config->attempts_max, 20),
        .base_ms = or_default(config->base_ms, 5000),
        .cap_ms = or_default(config->cap_ms, 7200000),
        .poll_ms = or_default(config->poll_ms, 500),
        .idle_ms = or_default(config->idle_ms, 5000),
        .retry_ms = or_default(config->retry_ms, 1000),
    };
    h->rng.state = config->seed;
    list_init(&h->lanes);
    return h;
}

/* ---- effects ---- */

static struct hook_effect *effect(struct hook_core *h, enum hook_effect_type type, uint64_t lane)
{
    GROW(h->effects, h->effect_count, h->effect_room);
    struct hook_effect *fx = &h->effects[h->effect_count++];
    *fx = (struct hook_effect){.type = type, .lane = lane};
    return fx;
}

static void release(struct hook_core *h, void *item)
{
    effect(h, HOOK_FX_RELEASE, 0)->item = item;
}

static void lane_free(struct hook_lane *l)
{
    list_remove(&l->node);
    free(l->rows);
    free(l->taken);
    free(l);
}

struct hook_core *hook_core_free(struct hook_core *h, void (*give_back)(void *item))
{
    struct list *n;
    while ((n = list_first(&h->lanes))) {
        struct hook_lane *l = CONTAINER_OF(n, struct hook_lane, node);
        for (size_t i = l->at; give_back && i < l->count; i++)
            give_back(l->rows[i].item);
        lane_free(l);
    }
    free(h->effects);
    free(h);
    return NULL;
}

/* ---- lanes ---- */

static struct hook_lane *lane_by_id(const struct hook_core *h, uint64_t id)
{
    LIST_EACH (n, &h->lanes) {
        struct hook_lane *l = CONTAINER_OF(n, struct hook_lane, node);
        if (l->id == id)
            return l;
    }
    return NULL;
}

/* Is there room for a lane of these, and none yet? */
static bool wants(const struct hook_core *h, const struct hook_rows *r)
{
    size_t of_webhook = 0;
    LIST_EACH (n, &h->lanes) {
        const struct hook_lane *l = CONTAINER_OF(n, struct hook_lane, node);
        if (strcmp(l->webhook, r->webhook) != 0)
            continue;
        of_webhook++;
        if (l->account == r->account)
            return false;
    }
    return !h->draining && r->count && of_webhook < h->config.of_webhook;
}

static void lane_end(struct hook_core *h, struct hook_lane *l)
{
    hook__move(h, l->state, SM_OUTSIDE);
    for (size_t i = l->at; i < l->count; i++)
        release(h, l->rows[i].item);
    lane_free(l);
}

static void send(struct hook_core *h, struct hook_lane *l)
{
    hook__move(h, l->state, HOOK_SENDING);
    l->state = HOOK_SENDING;
    effect(h, HOOK_FX_SEND, l->id)->item = l->rows[l->at].item;
}

/* Those that wait for their turn, the oldest one first. */
static void send_ready(struct hook_core *h)
{
    struct list *n = h->lanes.next;
    while (n != &h->lanes) {
        struct hook_lane *l = CONTAINER_OF(n, struct hook_lane, node);
        n = n->next;
        if (l->state == HOOK_READY && h->draining)
            lane_end(h, l);
        else if (l->state == HOOK_READY && h->sending < h->config.sending_max)
            send(h, l);
    }
}

static void report(struct hook_core *h, struct hook_lane *l)
{
    hook__move(h, l->state, HOOK_REPORT_WAIT);
    l->state = HOOK_REPORT_WAIT;
    struct hook_effect *fx = effect(h, HOOK_FX_REPORT, l->id);
    fx->taken = l->taken;
    fx->taken_count = l->taken_count;
    fx->number = l->failed_number;
    fx->delay_ms = l->delay_ms;
    fx->dead = l->dead;
}

/* ---- events ---- */

static void on_rows(struct hook_core *h, uint64_t now, const struct hook_event *ev)
{
    uint64_t wait = h->config.poll_ms;
    PRE(h->asking);
    h->asking = false;
    for (size_t i = 0; !ev->failed && i < ev->rows.count; i++) {
        const struct hook_rows *r = &ev->rows.lanes[i];
        if (!wants(h, r)) {
            for (size_t k = 0; k < r->count; k++)
                release(h, r->rows[k].item);
            continue;
        }
        struct hook_lane *l = xcalloc(1, sizeof(*l));
        l->id = ++h->last_id;
        memcpy(l->webhook, r->webhook, strlen(r->webhook) + 1);
        l->account = r->account;
        l->rows = xcalloc(r->count, sizeof(*l->rows));
        memcpy(l->rows, r->rows, r->count * sizeof(*l->rows));
        l->count = r->count;
        l->taken = xcalloc(r->count, sizeof(*l->taken));
        hook__move(h, SM_OUTSIDE, HOOK_READY);
        l->state = HOOK_READY;
        list_append(&h->lanes, &l->node);
    }
    if (ev->failed)
        wait = h->config.retry_ms;
    else if (ev->rows.none)
        wait = h->config.idle_ms;
    else if (ev->rows.due_ms >= 0 && (uint64_t)ev->rows.due_ms < wait)
        wait = (uint64_t)ev->rows.due_ms;
    h->ask_ms = now + (wait ? wait : 1);
}

/* 5 s, 10 s, 20 s, ... up to the cap, and up to a fifth more or less. */
static uint64_t delay_after(struct hook_core *h, uint32_t attempts)
{
    uint64_t delay = (uint64_t)h->config.base_ms << (attempts < SHIFT_MAX ? attempts : SHIFT_MAX);
    if (delay > h->config.cap_ms)
        delay = h->config.cap_ms;
    return rng_between(&h->rng, delay - delay / 5, delay + delay / 5);
}

/* The lane that waits for this answer. NULL: none, which only a bug of an earlier step explains. */
static struct hook_lane *awaited(const struct hook_core *h, uint64_t id, enum hook_state state)
{
    struct hook_lane *l = lane_by_id(h, id);
    bool waits = l && l->state == state;
    PRE(waits || h->trace.illegal_ever);
    return waits ? l : NULL;
}

static void on_answer(struct hook_core *h, const struct hook_event *ev)
{
    struct hook_lane *l = awaited(h, ev->lane, HOOK_SENDING);
    if (!l)
        return;
    const struct hook_row *row = &l->rows[l->at];
    release(h, row->item);
    l->at++;
    if (!ev->failed) {
        h->counts.taken++;
        l->taken[l->taken_count++] = row->number;
        if (l->at < l->count && !h->draining) {
            send(h, l);
            return;
        }
    } else {
        h->counts.failed++;
        l->failed_number = row->number;
        l->dead = row->attempts + 1 >= h->config.attempts_max;
        l->delay_ms = l->dead ? 0 : delay_after(h, row->attempts);
        h->counts.dead += l->dead;
    }
    report(h, l);
}

static void on_reported(struct hook_core *h, uint64_t now, const struct hook_event *ev)
{
    struct hook_lane *l = awaited(h, ev->lane, HOOK_REPORT_WAIT);
    if (!l)
        return;
    if (ev->failed) {
        hook__move(h, HOOK_REPORT_WAIT, HOOK_REPORT_LATER);
        l->state = HOOK_REPORT_LATER;
        l->again_ms = now + h->config.retry_ms;
        return;
    }
    lane_end(h, l);
    if (h->ask_ms > now)
        h->ask_ms = now; /* the account may have more */
}

static void on_time(struct hook_core *h, uint64_t now)
{
    LIST_EACH (n, &h->lanes) {
        struct hook_lane *l = CONTAINER_OF(n, struct hook_lane, node);
        if (l->state == HOOK_REPORT_LATER && l->again_ms <= now)
            report(h, l);
    }
    if (!h->asking && !h->draining && h->ask_ms <= now) {
        h->asking = true;
        effect(h, HOOK_FX_ASK, 0);
    }
}

void hook_step(struct hook_core *h, uint64_t now_ms, const struct hook_event *ev,
               const struct hook_effect **ret_effects, size_t *ret_count)
{
    h->effect_count = 0;
    switch (ev->type) {
    case HOOK_EV_ROWS:
        on_rows(h, now_ms, ev);
        break;
    case HOOK_EV_ANSWER:
        on_answer(h, ev);
        break;
    case HOOK_EV_REPORTED:
        on_reported(h, now_ms, ev);
        break;
    case HOOK_EV_DRAIN:
        h->draining = true;
        break;
    case HOOK_EV_TICK:
        break;
    }
    send_ready(h);
    on_time(h, now_ms);
    hook__recover(h);
    *ret_effects = h->effects;
    *ret_count = h->effect_count;
}

uint64_t hook_due(const struct hook_core *h)
{
    uint64_t due = h->asking || h->draining ? UINT64_MAX : h->ask_ms;
    LIST_EACH (n, &h->lanes) {
        const struct hook_lane *l = CONTAINER_OF(n, struct hook_lane, node);
        if (l->state == HOOK_REPORT_LATER && l->again_ms < due)
            due = l->again_ms;
    }
    return due;
}

/* ---- for its owner and tests ---- */

struct hook_counts hook_counts_of(const struct hook_core *h)
{
    return h->counts;
}

size_t hook_sending(const struct hook_core *h)
{
    return h->sending;
}

const char *hook_check(const struct hook_core *h)
{
    size_t sending = 0;
    LIST_EACH (n, &h->lanes) {
        const struct hook_lane *l = CONTAINER_OF(n, struct hook_lane, node);
        sending += l->state == HOOK_SENDING;
        if (l->at > l->count || l->taken_count > l->at)
            return "a lane has taken more than it had";
        if (l->failed_number && l->state < HOOK_REPORT_WAIT)
            return "a lane goes on after a failure";
        for (const struct list *m = n->next; m != &h->lanes; m = m->next) {
            const struct hook_lane *o = CONTAINER_OF(m, struct hook_lane, node);
            if (o->account == l->account && !strcmp(o->webhook, l->webhook))
                return "an account has two lanes of one webhook";
        }
    }
    if (sending != h->sending || sending > h->config.sending_max)
        return "the number of requests is wrong";
    return h->trace.illegal_ever ? "a move that the table does not have" : NULL;
}

bool hook_taken(int status)
{
    return status >= 200 && status < 300;
}

void hook_base64(const uint8_t *data, size_t len, char ret[HOOK_BASE64_MAX])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = ret;
    PRE(len <= 33);
    for (size_t i = 0; i < len; i += 3) {
        uint32_t v = (uint32_t)data[i] << 16 | (i + 1 < len ? (uint32_t)data[i + 1] << 8 : 0) |
                     (i + 2 < len ? data[i + 2] : 0);
        *out++ = digits[v >> 18];
        *out++ = digits[v >> 12 & 63];
        *out++ = i + 1 < len ? digits[v >> 6 & 63] : '=';
        *out++ = i + 2 < len ? digits[v & 63] : '=';
    }
    *out = 0;
}
