/* The step of the sites' core: one handler per event, then a review of everything that is due.
 * site.h has the rules, site_table.c the tables of states. */
#include "site/core/site.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/plant.h"
#include "site_internal.h"

enum { REVIEWS_MAX = 8 };

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

struct site_config site_config_filled(const struct site_config *config)
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
    c->config = site_config_filled(config);
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

void site__clear(struct site_core *c)
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

/* ---- leadership and load ---- */

static void load(struct site_core *c)
{
    c->load_at = SITE_NEVER;
    site__emit(c, SITE_FX_LOAD)->batch = ++c->loads;
}

void site__reload(struct site_core *c)
{
    site__clear(c);
    load(c);
}

/* After a move that no table has. What this step decided may be wrong, so none of it leaves. Writes
 * before it are answered first: the load would miss one that commits after it. */
static void recover(struct site_core *c, uint64_t now)
{
    uint64_t out = 0;
    for (size_t i = 0; i < c->write_count; i++)
        if (!c->batch_used || c->writes[i].batch != c->batch)
            out = c->writes[i].batch;
    if (out)
        c->stray = out;
    site__clear(c);
    c->effect_count = 0;
    if (c->led && !out)
        c->load_at = now + c->config.retry_ms;
    site__forgive(c);
}

void site__stray_stored(struct site_core *c, uint64_t batch)
{
    if (c->led && !c->loaded && batch == c->stray)
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
    c->bug[0] = 0;
    switch (ev->type) {
    case SITE_EV_LEAD:
        if (!c->led) {
            c->led = true;
            load(c);
        }
        break;
    case SITE_EV_LEAVE:
        site__clear(c);
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
        site__on_stored(c, now, ev);
        break;
    case SITE_EV_TICK:
        if (c->led && !c->loaded && now >= c->load_at)
            load(c);
        break;
    }
    if (c->loaded)
        review(c, now);
    if (site__illegal(c))
        recover(c, now);
    site__flush(c, now);
    *ret_effects = c->effects;
    *ret_count = c->effect_count;
}
