/* The decisions of the cursor. listen/core/cursor.h has the rules and the picture. */
#include "listen/core/cursor.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "cursor_internal.h"

enum { HINTS_MAX = 100 };
static const int64_t AHEAD_US = 60 * 1000000LL;

static struct cursor_effect *emit(struct cursor *c, enum cursor_effect_type type)
{
    GROW(c->effects, c->effect_count, c->effect_cap);
    struct cursor_effect *fx = &c->effects[c->effect_count++];
    *fx = (struct cursor_effect){.type = type};
    return fx;
}

static void emit_event(struct cursor *c, enum listen_kind kind, const struct listen_event *row,
                       bool from_scan)
{
    struct cursor_effect *fx = emit(c, CURSOR_FX_EVENT);
    fx->event = *row;
    fx->event.kind = kind;
    fx->event.from_scan = from_scan;
}

static bool wanted(const struct cursor *c, const struct listen_event *row)
{
    return (!c->only_account || row->account == c->only_account) &&
           (!c->only_id || row->id == c->only_id);
}

/* ---- pending rows ---- */

/* The transaction appears at another nonce: its removal from the old one is delivered first. */
static void leave_old_place(struct cursor *c, const struct listen_event *row, bool from_scan)
{
    struct known *k = cursor__with_id(c, row->id);
    struct lookup *l = row->id ? cursor__lookup_of(c, 0, 0, row->id) : NULL;
    if (k) {
        struct listen_event ev = cursor__event_of(k, LISTEN_REMOVED);
        ev.state = ""; /* the row is freed; the reader has its state */
        ev.trace = row->trace;
        emit_event(c, LISTEN_REMOVED, &ev, from_scan);
        cursor__forget(c, k);
    }
    if (l) {
        struct listen_event ev = cursor__event_of(&l->row, LISTEN_REMOVED);
        if (l->told)
            emit_event(c, LISTEN_REMOVED, &ev, from_scan);
        cursor__lookup_drop(c, l);
    }
}

/* A row of pending_transactions as it is (scan) or as it was at updated_at (notification). */
static void see_pending(struct cursor *c, const struct listen_event *row, bool from_scan)
{
    struct known *k = cursor__at(c, row->account, row->nonce);
    const struct lookup *l = cursor__lookup_of(c, row->account, row->nonce, row->id);
    if (l && !from_scan &&
        ((l->outcome[0] && !l->hint) || (l->told && row->updated_at_us <= l->row.updated_us)))
        return; /* its end was notified, or it is older than the scan that no longer had it */
    if (k && !from_scan && row->updated_at_us < k->updated_us && !PLANTED(FOLLOW_BACK))
        return; /* older than the row of a scan */
    if (k && k->id == row->id) {
        k->mark = c->mark;
        if (from_scan)
            cursor__confirm(c, k);
        bool same = cursor__same(k, row);
        cursor__update(k, row);
        if (!same)
            emit_event(c, LISTEN_UPDATE, row, from_scan);
        return;
    }
    if (!from_scan && cursor__is_past(c, row))
        return;
    struct known *elsewhere = cursor__with_id(c, row->id);
    if (elsewhere && !from_scan && row->updated_at_us < elsewhere->updated_us)
        return;
    if (!from_scan && c->unconfirmed >= c->config.unconfirmed_max) {
        emit(c, CURSOR_FX_DOUBT);
        return;
    }
    if (k)
        cursor__ask(c, k, NULL); /* another transaction uses the nonce now */
    leave_old_place(c, row, from_scan);
    cursor__learn(c, row, from_scan);
    emit_event(c, LISTEN_NEW, row, from_scan);
}

/* ---- ends ---- */

static void emit_finished(struct cursor *c, const struct listen_event *row, bool from_scan)
{
    struct known *k =
        row->id ? cursor__with_id(c, row->id) : cursor__at(c, row->account, row->nonce);
    struct lookup *l = cursor__lookup_of(c, row->account, row->nonce, row->id);
    bool another = k && !row->id && (k->id || k->updated_us > row->updated_at_us);
    if (k && !another) /* a nonce may have had a filler before, but a transaction ends once */
        cursor__forget(c, k);
    if (l)
        cursor__lookup_drop(c, l);
    if (cursor__was_delivered(c, row))
        return;
    cursor__remember(c, row, false);
    emit_event(c, LISTEN_FINISHED, row, from_scan);
}

static void see_removed(struct cursor *c, const struct listen_event *row)
{
    struct known *k = row->nonce >= 0 ? cursor__at(c, row->account, row->nonce) : NULL;
    bool ours = k && k->id == row->id;
    if (row->outcome && row->outcome[0]) {
        if (!row->id && !ours)
            return; /* a filler that was never delivered, or whose end was */
        if (ours || !cursor__was_delivered(c, row))
            cursor__ask(c, ours ? k : NULL, row);
        return;
    }
    if (!ours)
        return; /* never delivered at this nonce, or delivered as removed */
    struct listen_event ev = cursor__event_of(k, LISTEN_REMOVED);
    ev.state = "";
    ev.trace = row->trace;
    cursor__remember(c, &ev, true);
    emit_event(c, LISTEN_REMOVED, &ev, false);
    cursor__forget(c, k);
}

/* A row that was looked up and has not finished returned to the outbox. If a notified end is not on
 * record, the notification is ignored (any session may send one) and a scan decides. */
static void emit_unfinished(struct cursor *c, struct lookup *l)
{
    struct listen_event ev = cursor__event_of(&l->row, LISTEN_REMOVED);
    if (l->outcome[0]) {
        if (l->told && !cursor__at(c, ev.account, ev.nonce))
            cursor__learn(c, &ev, false);
        c->hints_closed |= l->hint;
        emit(c, CURSOR_FX_DOUBT);
    } else if (l->told) {
        cursor__remember(c, &ev, true);
        emit_event(c, LISTEN_REMOVED, &ev, true);
    }
    cursor__lookup_drop(c, l);
}

static void look_up(struct cursor *c)
{
    if (c->looking || c->state == CURSOR_DOWN || list_empty(&c->lookups) || PLANTED(FOLLOW_NO_END))
        return;
    c->asked_count = 0;
    LIST_EACH (n, &c->lookups) {
        struct lookup *l = CONTAINER_OF(n, struct lookup, node);
        if (c->asked_count == c->config.scan_rows)
            break;
        l->asked = true;
        c->asked[c->asked_count++] =
            (struct cursor_lookup){.account = l->row.place.account,
                                   .nonce = l->row.id ? -1 : l->row.place.nonce,
                                   .id = l->row.id};
    }
    c->looking = true;
    emit(c, CURSOR_FX_LOOK_UP);
}

/* ---- events ---- */

static void on_begin(struct cursor *c, const struct cursor_event *ev)
{
    PRE(c->state == CURSOR_DOWN || c->state == CURSOR_LIVE);
    c->state = CURSOR_PENDING;
    c->mark++;
    c->begun_us = ev->begin_us;
    if (!c->position_us) {
        c->floor_us = c->config.since_us ? c->config.since_us : ev->begin_us;
        c->position_us = c->floor_us;
    }
    struct cursor_effect *fx = emit(c, CURSOR_FX_SCAN_PENDING);
    fx->after.account = c->only_account;
    fx->after.nonce = -1;
}

static void on_down(struct cursor *c, const struct cursor_event *ev)
{
    (void)ev;
    c->state = CURSOR_DOWN;
    c->looking = false;
    LIST_EACH (n, &c->lookups)
        CONTAINER_OF(n, struct lookup, node)->asked = false;
}

/* Any session may have sent it. An application that cancelled what waited in the outbox notifies
 * its end itself, so an end is looked up: a few at a time, and none after a false one until a
 * scan. */
static void hear_hint(struct cursor *c, const struct listen_event *row)
{
    bool ends = row->kind == LISTEN_REMOVED && row->id && row->outcome[0];
    if (ends &&
        (cursor__lookup_of(c, row->account, row->nonce, row->id) || cursor__was_delivered(c, row)))
        return;
    if (ends && !c->hints_closed && c->hint_count < HINTS_MAX)
        cursor__ask_hint(c, row);
    else
        emit(c, CURSOR_FX_DOUBT);
}

static void on_notify(struct cursor *c, const struct cursor_event *ev)
{
    const struct listen_event *row = ev->notify.row;
    PRE(row);
    if (c->state == CURSOR_DOWN || !wanted(c, row))
        return; /* before BEGIN: the scan will deliver it */
    if (!ev->notify.believed && !PLANTED(FOLLOW_ANYBODY))
        hear_hint(c, row);
    else if (row->updated_at_us > ev->notify.now_us + AHEAD_US)
        emit(c, CURSOR_FX_DOUBT); /* it would hide what comes until then */
    else if (row->kind == LISTEN_REMOVED)
        see_removed(c, row);
    else
        see_pending(c, row, false);
}

/* Rows that were in no chunk. */
static void sweep(struct cursor *c)
{
    struct known *k, *next;
    HASH_ITER(by_place, c->places, k, next)
    {
        if (k->mark != c->mark)
            cursor__ask(c, k, NULL);
    }
}

static int64_t scan_from(const struct cursor *c)
{
    int64_t from =
        c->position_us == c->floor_us ? c->floor_us : c->position_us - c->config.overlap_us;
    return from < c->floor_us ? c->floor_us : from;
}

static void on_pending(struct cursor *c, const struct cursor_event *ev)
{
    PRE(c->state == CURSOR_PENDING);
    PRE(ev->answer.last || ev->answer.count > 0);
    for (size_t i = 0; i < ev->answer.count; i++)
        if (wanted(c, &ev->answer.rows[i]))
            see_pending(c, &ev->answer.rows[i], true);
    if (!ev->answer.last) {
        struct cursor_effect *fx = emit(c, CURSOR_FX_SCAN_PENDING);
        fx->after.account = ev->answer.rows[ev->answer.count - 1].account;
        fx->after.nonce = ev->answer.rows[ev->answer.count - 1].nonce;
        return;
    }
    sweep(c);
    c->state = CURSOR_FINISHED;
    struct cursor_effect *fx = emit(c, CURSOR_FX_SCAN_FINISHED);
    fx->after.since_us = scan_from(c);
    fx->after.account = 0;
    fx->after.nonce = -1;
}

static void on_finished(struct cursor *c, const struct cursor_event *ev)
{
    PRE(c->state == CURSOR_FINISHED);
    PRE(ev->answer.last || ev->answer.count > 0);
    for (size_t i = 0; i < ev->answer.count; i++)
        if (wanted(c, &ev->answer.rows[i]))
            emit_finished(c, &ev->answer.rows[i], true);
    if (!ev->answer.last) {
        const struct listen_event *row = &ev->answer.rows[ev->answer.count - 1];
        struct cursor_effect *fx = emit(c, CURSOR_FX_SCAN_FINISHED);
        fx->after.since_us = row->updated_at_us;
        fx->after.account = row->account;
        fx->after.nonce = row->nonce;
        fx->after.id = row->id;
        return;
    }
    c->state = CURSOR_LIVE;
    c->hints_closed = false;
    if (c->begun_us > c->position_us)
        c->position_us = c->begun_us;
    cursor__forget_delivered(c, c->position_us - c->config.overlap_us);
    emit(c, CURSOR_FX_LIVE);
}

static void on_looked_up(struct cursor *c, const struct cursor_event *ev)
{
    PRE(c->looking);
    c->looking = false;
    for (size_t i = 0; i < ev->answer.count; i++) {
        const struct listen_event *row = &ev->answer.rows[i];
        struct lookup *l = cursor__lookup_of(c, row->account, row->nonce, row->id);
        if (l && l->hint && !l->told && row->updated_at_us < scan_from(c)) {
            c->hints_closed =
                true; /* no news: it was in a scan, or ended before the reader began */
            cursor__lookup_drop(c, l);
        } else if (l) { /* else a scan was faster */
            emit_finished(c, row, false);
        }
    }
    for (struct list *n = c->lookups.next, *next; n != &c->lookups; n = next) {
        struct lookup *l = CONTAINER_OF(n, struct lookup, node);
        next = n->next;
        if (!l->asked)
            break;
        emit_unfinished(c, l);
    }
}

static void (*const handlers[])(struct cursor *c, const struct cursor_event *ev) = {
    [CURSOR_EV_BEGIN] = on_begin,       [CURSOR_EV_DOWN] = on_down,
    [CURSOR_EV_NOTIFY] = on_notify,     [CURSOR_EV_PENDING] = on_pending,
    [CURSOR_EV_FINISHED] = on_finished, [CURSOR_EV_LOOKED_UP] = on_looked_up,
};

void cursor_step(struct cursor *c, const struct cursor_event *ev,
                 const struct cursor_effect **ret_effects, size_t *ret_count)
{
    PRE((size_t)ev->type < ARRAY_LEN(handlers));
    cursor__free_spent(c);
    c->effect_count = 0;
    handlers[ev->type](c, ev);
    look_up(c);
    *ret_effects = c->effects;
    *ret_count = c->effect_count;
}

/* ---- life and questions ---- */

struct cursor *cursor_new(const struct cursor_config *config)
{
    struct cursor *c = xcalloc(1, sizeof(*c));
    c->config = *config;
    if (!c->config.overlap_us)
        c->config.overlap_us = 60 * 1000000LL;
    if (!c->config.scan_rows)
        c->config.scan_rows = 1000;
    if (!c->config.unconfirmed_max)
        c->config.unconfirmed_max = 100000;
    if (!c->config.remembered_max)
        c->config.remembered_max = 200000;
    c->asked = xcalloc(c->config.scan_rows, sizeof(*c->asked));
    list_init(&c->lookups);
    list_init(&c->spent);
    list_init(&c->delivered_order);
    return c;
}

struct cursor *cursor_free(struct cursor *c)
{
    if (!c)
        return NULL;
    struct known *k, *next;
    HASH_ITER(by_place, c->places, k, next)
    cursor__forget(c, k);
    for (struct list *n = list_first(&c->lookups); n; n = list_first(&c->lookups))
        cursor__lookup_drop(c, CONTAINER_OF(n, struct lookup, node));
    cursor__free_spent(c);
    cursor__forget_delivered(c, INT64_MAX);
    free(c->asked);
    free(c->effects);
    free(c);
    return NULL;
}

void cursor_filter(struct cursor *c, int32_t account, int64_t id)
{
    PRE(c->count == 0 && c->state == CURSOR_DOWN);
    c->only_account = account;
    c->only_id = id;
}

size_t cursor_lookups(const struct cursor *c, const struct cursor_lookup **ret_lookups)
{
    *ret_lookups = c->asked;
    return c->looking ? c->asked_count : 0;
}

int64_t cursor_position(const struct cursor *c)
{
    return c->position_us ? scan_from(c) : c->config.since_us;
}

enum cursor_state cursor_state(const struct cursor *c)
{
    return c->state;
}

size_t cursor_known(const struct cursor *c)
{
    return c->count;
}
