/* The step of the sites' core: one handler per event, then a review of everything that is due.
 * site.h has the rules, site_table.c the tables of states. */
#include "site/core/site.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/plant.h"
#include "site_internal.h"

enum { REVIEWS_MAX = 8 };

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

static struct site_config with_defaults(const struct site_config *config)
{
    struct site_config c = *config;
    c.range_blocks = or_default(c.range_blocks, 1000);
    c.era_blocks = or_default(c.era_blocks, 64);
    c.beat_ms = or_default(c.beat_ms, 1000);
    c.closing_beats = or_default(c.closing_beats, 3);
    c.silence_ms = or_default(c.silence_ms, 5000);
    c.probe_ms = or_default(c.probe_ms, 2000);
    c.retry_ms = or_default(c.retry_ms, 1000);
    c.propose_ms = or_default(c.propose_ms, 10000);
    c.elect_ms = or_default(c.elect_ms, 10000);
    c.blind_ms = or_default(c.blind_ms, 60000);
    c.own_send_ms = or_default(c.own_send_ms, 30000);
    c.hole_ms = or_default(c.hole_ms, 2000);
    c.letter_ms = or_default(c.letter_ms, 60000);
    c.flight_max = or_default(c.flight_max, 1000);
    c.work_max = or_default(c.work_max, 2000);
    c.window_max = or_default(c.window_max, 1000);
    c.batch_max = or_default(c.batch_max, 500);
    return c;
}

struct site_core *site_core_new(const struct site_config *config)
{
    PRE(config->members >= 1 && config->members <= SITE_MEMBERS_MAX);
    PRE(config->self < config->members && config->approvals < config->members);
    struct site_core *c = xcalloc(1, sizeof(*c));
    c->config = with_defaults(config);
    c->ring = ring_new(config->hash);
    for (uint32_t i = 0; i < config->members; i++) {
        ring_add(c->ring, config->names[i], RING_POINTS);
        c->members[i].owes_since = SITE_NEVER;
    }
    c->config.names = NULL; /* the ring has them */
    c->load_at = SITE_NEVER;
    c->chosen = SITE_NOBODY;
    return c;
}

static void clear(struct site_core *c)
{
    site__leave(c);
    site__free_txs(c);
    site__free_works(c);
    site__forget_letters(c);
    c->foreign_count = c->write_count = c->out_count = 0;
    c->loaded = c->lost = c->wait_stored = false;
    c->wait_until = c->hole_at = 0;
    c->down = c->owed = 0;
    c->chosen = SITE_NOBODY;
    c->load_at = SITE_NEVER;
    for (size_t i = 0; i < c->config.members; i++)
        c->members[i] = (struct site_member){.owes_since = SITE_NEVER};
}

struct site_core *site_core_free(struct site_core *c)
{
    if (!c)
        return NULL;
    site__free_txs(c);
    site__free_works(c);
    for (size_t i = 0; i < c->out_cap; i++)
        free(c->outs[i].items);
    free(c->outs);
    free(c->letters);
    free(c->foreign);
    free(c->writes);
    free(c->effects);
    ring_free(c->ring);
    free(c);
    return NULL;
}

/* ---- effects ---- */

struct site_effect *site__emit(struct site_core *c, enum site_effect_type type)
{
    if (c->effect_count == c->effect_cap) {
        c->effect_cap = c->effect_cap ? c->effect_cap * 2 : 32;
        c->effects = xrealloc(c->effects, c->effect_cap * sizeof(*c->effects));
    }
    struct site_effect *fx = &c->effects[c->effect_count++];
    *fx = (struct site_effect){.type = type};
    return fx;
}

struct site_effect *site__store(struct site_core *c, enum site_effect_type type, uint32_t sender,
                                uint64_t id, const struct site_bytes *bytes)
{
    if (!c->batch_used) {
        c->batch_used = true;
        c->batch++;
    }
    if (c->write_count == c->write_cap) {
        c->write_cap = c->write_cap ? c->write_cap * 2 : 32;
        c->writes = xrealloc(c->writes, c->write_cap * sizeof(*c->writes));
    }
    struct site_write *w = &c->writes[c->write_count++];
    *w = (struct site_write){.batch = c->batch, .type = type, .sender = sender, .id = id};
    struct site_effect *fx = site__emit(c, type);
    fx->batch = c->batch;
    fx->sender = sender;
    fx->id = id;
    if (bytes)
        w->bytes = fx->bytes = *bytes;
    return fx;
}

void site__submit(struct site_core *c, const struct site_bytes *bytes)
{
    site__emit(c, SITE_FX_SUBMIT)->bytes = *bytes;
}

/* ---- leadership and load ---- */

static void load(struct site_core *c)
{
    c->load_at = SITE_NEVER;
    site__emit(c, SITE_FX_LOAD)->batch = ++c->loads;
}

void site__reload(struct site_core *c)
{
    clear(c);
    load(c);
}

static void on_loaded(struct site_core *c, uint64_t now, const struct site_event *ev)
{
    if (!c->led || c->loaded || ev->loaded.load != c->loads)
        return;
    if (ev->loaded.failed) {
        c->load_at = now + c->config.retry_ms;
        return;
    }
    c->loaded = true;
    c->final = ev->loaded.final;
    for (size_t i = 0; i < c->config.members; i++)
        c->final_next[i] = ev->loaded.next[i];
    c->wait_until = ev->loaded.wait_until;
    for (size_t i = 0; i < ev->loaded.row_count; i++)
        site__load_row(c, &ev->loaded.rows[i]);
    for (size_t i = 0; i < ev->loaded.dispatch_count; i++)
        site__load_dispatch(c, &ev->loaded.dispatches[i]);
    if (ev->loaded.lost)
        site__lost(c, now, ev->loaded.highest);
}

/* ---- answers of the database ---- */

static void written(struct site_core *c, uint64_t now, const struct site_write *w)
{
    struct site_item item = {
        .sender = c->config.self, .id = w->id, .has_bytes = true, .bytes = w->bytes};
    switch (w->type) {
    case SITE_FX_STORE_GRANT:
        site__on_granted(c, now, w);
        return;
    case SITE_FX_STORE_DISPATCH:
        site__on_dispatched(c, now, w);
        return;
    case SITE_FX_STORE_NOTED:
        item.acked = SITE_MSG_DISPATCHED;
        site__put(c, SITE_MSG_ACK, w->sender, 0, &item);
        return;
    case SITE_FX_STORE_END:
        site__ended(c, w->id);
        return;
    case SITE_FX_STORE_WAIT:
        c->lost = false;
        return;
    case SITE_FX_STORE_DROP:
    case SITE_FX_STORE_FINAL:
        return; /* nothing follows */
    case SITE_FX_LOAD:
    case SITE_FX_SEND:
    case SITE_FX_SIGN:
    case SITE_FX_SUBMIT:
        break; /* not stored */
    }
    UNREACHABLE();
}

static void on_stored(struct site_core *c, uint64_t now, const struct site_event *ev)
{
    size_t count = 0;
    if (ev->stored.outcome == SITE_STORED_LOST) {
        clear(c);
        c->led = false;
        return;
    }
    if (ev->stored.outcome == SITE_STORED_UNKNOWN) {
        site__reload(c);
        return;
    }
    PRE(c->write_count && c->writes[0].batch == ev->stored.batch);
    while (count < c->write_count && c->writes[count].batch == ev->stored.batch)
        count++;
    for (size_t i = 0; i < count; i++) {
        const struct site_write w = c->writes[i];
        written(c, now, &w);
    }
    memmove(c->writes, c->writes + count, (c->write_count - count) * sizeof(*c->writes));
    c->write_count -= count;
}

/* ---- the chain ---- */

static void on_final(struct site_core *c, const struct site_event *ev)
{
    if (!c->loaded || ev->final.height <= c->final)
        return;
    PRE(ev->final.height == c->final + 1);
    site__on_final_rows(c, ev);
    site__on_final_works(c, ev);
    c->final = ev->final.height;
    for (size_t i = 0; i < c->config.members; i++)
        c->final_next[i] = ev->final.next[i];
    site__store(c, SITE_FX_STORE_FINAL, c->config.self, 0, NULL)->height = c->final;
}

static void on_head(struct site_core *c, uint64_t now, const struct site_event *ev)
{
    c->height = ev->head.height;
    c->next = ev->head.next;
    c->head_at = now;
    if (PLANTED(SITE_BEST_END))
        site__best_end(c);
}

/* ---- messages ---- */

static void on_message(struct site_core *c, uint64_t now, const struct site_message *m)
{
    PRE(m->from < c->config.members && m->from != c->config.self);
    site__hear(c, now, m);
    if (m->type == SITE_MSG_PROBE)
        c->asked_by |= UINT32_C(1) << m->from;
    site__on_sender_message(c, now, m);
    site__on_coordinator_message(c, now, m);
}

/* ---- the step ---- */

static void review(struct site_core *c, uint64_t now)
{
    uint64_t before;
    int passes = 0;
    do {
        before = c->moves;
        site__review_members(c, now);
        site__review_foreign(c);
        site__review_machine(c, now);
        site__review_sender(c, now);
        site__review_coordinator(c, now);
    } while (c->moves != before && ++passes < REVIEWS_MAX);
    c->more = c->moves != before;
    site__resend_letters(c, now);
    for (uint32_t to = 0; to < c->config.members; to++)
        if (c->asked_by >> to & 1)
            site__beat_to(c, to); /* what it holds shows what it has forgotten */
    site__beat(c, now);
    c->asked_by = 0;
}

void site_step(struct site_core *c, uint64_t now, const struct site_event *ev,
               const struct site_effect **ret_effects, size_t *ret_count)
{
    c->effect_count = 0;
    c->batch_used = false;
    switch (ev->type) {
    case SITE_EV_LEAD:
        if (!c->led) {
            c->led = true;
            load(c);
        }
        break;
    case SITE_EV_LEAVE:
        clear(c);
        c->led = false;
        break;
    case SITE_EV_LOADED:
        on_loaded(c, now, ev);
        break;
    case SITE_EV_ROWS:
        for (size_t i = 0; c->loaded && i < ev->rows.count; i++)
            site__add_tx(c, ev->rows.ids[i]);
        break;
    case SITE_EV_CANCEL:
        if (c->loaded && site__tx(c, ev->id))
            site__tx(c, ev->id)->cancel = true;
        break;
    case SITE_EV_HEAD:
        on_head(c, now, ev);
        break;
    case SITE_EV_FINAL:
        on_final(c, ev);
        break;
    case SITE_EV_MESSAGE:
        if (c->loaded)
            on_message(c, now, &ev->message);
        break;
    case SITE_EV_SIGNED:
        for (size_t i = 0; c->loaded && i < ev->signed_.count; i++)
            site__signed(c, now, &ev->signed_.items[i]);
        break;
    case SITE_EV_STORED:
        on_stored(c, now, ev);
        break;
    case SITE_EV_TICK:
        if (c->led && !c->loaded && now >= c->load_at)
            load(c);
        break;
    }
    if (c->loaded)
        review(c, now);
    site__flush(c, now);
    *ret_effects = c->effects;
    *ret_count = c->effect_count;
}

/* ---- when ---- */

/* What was due at `now` or before is done, or waits for an event. */
static void soon(uint64_t *due, uint64_t now, uint64_t at)
{
    if (at > now && at < *due)
        *due = at;
}

static void due_tx(const struct site_core *c, uint64_t now, const struct site_tx *t, uint64_t *due)
{
    if (t->state == SITE_TX_ASKED || (t->state == SITE_TX_WAITING && !t->cancel))
        soon(due, now, t->retry_at);
    if (t->state != SITE_TX_GRANTED)
        return;
    soon(due, now, t->send_at);
    if (c->chosen != SITE_NOBODY && (!t->acked || t->again))
        soon(due, now, t->retry_at);
}

static void due_work(const struct site_core *c, uint64_t now, const struct site_work *w,
                     uint64_t *due)
{
    if (w->state == SITE_WORK_DISPATCHED)
        soon(due, now, w->send_at);
    if (w->state != SITE_WORK_DISPATCHED || !w->told)
        soon(due, now, w->retry_at);
    if (w->state == SITE_WORK_PROPOSED || w->state == SITE_WORK_APPROVING)
        soon(due, now, w->since + c->config.propose_ms);
}

uint64_t site_due(const struct site_core *c, uint64_t now)
{
    uint64_t due = SITE_NEVER;
    if (!c->led)
        return due;
    if (!c->loaded) {
        soon(&due, now, c->load_at == SITE_NEVER ? 0 : c->load_at);
        return due;
    }
    if (c->more)
        return now + 1;
    for (size_t i = 0; i < c->config.members; i++) {
        const struct site_member *m = &c->members[i];
        if (m->owes_since != SITE_NEVER) {
            soon(&due, now, m->owes_since + c->config.silence_ms);
            soon(&due, now, m->probe_at + c->config.probe_ms);
        }
        if (site__coordinates(c, now, i))
            soon(&due, now, m->beat_at + c->config.silence_ms);
    }
    if (c->state >= SITE_ELECT)
        soon(&due, now, c->beat_at);
    if (c->state == SITE_ELECT)
        soon(&due, now, c->state_at + c->config.elect_ms);
    if (c->txs || c->works)
        soon(&due, now, c->head_at + c->config.blind_ms);
    if (c->hole_at)
        soon(&due, now, c->hole_at + c->config.hole_ms);
    if (c->lost && !c->wait_stored)
        soon(&due, now, c->lost_at + c->config.probe_ms + c->config.silence_ms);
    for (size_t i = 0; i < c->letter_count; i++)
        soon(&due, now, c->letters[i].retry_at);
    for (const struct site_tx *t = c->txs; t; t = t->hh.next)
        due_tx(c, now, t, &due);
    for (const struct site_work *w = c->works; w; w = w->hh.next)
        due_work(c, now, w, &due);
    return due;
}

/* ---- what others may ask ---- */

void site_core_view(const struct site_core *c, struct site_view *ret)
{
    *ret = (struct site_view){
        .state = c->state,
        .chosen = c->chosen,
        .range = site__range(c),
        .down = c->down,
        .final = c->loaded ? c->final : 0,
        .wait_until = c->wait_until,
        .rows = site__open_rows(c),
        .work = HASH_COUNT(c->works),
        .waits = c->loaded && site__waits(c),
    };
    for (const struct site_work *w = c->works; w; w = w->hh.next)
        ret->dispatched += (size_t)(w->state == SITE_WORK_DISPATCHED);
    for (const struct site_tx *t = c->txs; t; t = t->hh.next)
        ret->granted += (size_t)(t->state == SITE_TX_GRANTED);
}

const struct site_counts *site_core_counts(const struct site_core *c)
{
    return &c->counts;
}

const char *site_core_check(const struct site_core *c)
{
    size_t held = 0;
    for (const struct site_work *w = c->works; w; w = w->hh.next) {
        held += (size_t)(w->state == SITE_WORK_HELD);
        if (!site__in_line(c, w))
            continue;
        for (const struct site_work *other = w->hh.next; other; other = other->hh.next)
            if (site__in_line(c, other) && other->bytes.nonce == w->bytes.nonce)
                return "two works have the same nonce";
    }
    if (held != c->held)
        return "the count of works without a nonce is wrong";
    if (!c->loaded && (c->txs || c->works || c->state != SITE_IDLE))
        return "there is work, and the tables were not read";
    for (const struct site_tx *t = c->txs; t; t = t->hh.next) {
        bool stored = false, unstored = false;
        for (size_t i = 0; i < t->grant_count; i++) {
            stored |= t->grants[i].stored;
            unstored |= !t->grants[i].stored;
        }
        if (unstored != (t->state == SITE_TX_GRANTING) && t->state != SITE_TX_ENDING)
            return "a grant is being stored, and its transaction is in another state";
        if (t->state == SITE_TX_GRANTED && !stored)
            return "a transaction is granted without bytes";
    }
    return NULL;
}
