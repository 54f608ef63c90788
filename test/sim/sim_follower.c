/* A follower: the cursor with what listen/listen*.c do around it, and a reader that keeps what it is told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { SCAN_ROWS = 12 };
#define REPAIR_US (20 * SECOND)

static void step(struct world *w, struct follower *f, const struct cursor_event *ev);

/* ---- the reader ---- */

static void read_event(struct world *w, struct follower *f, const struct listen_event *ev)
{
    if (!ev->id)
        return; /* fillers belong to nobody */
    struct view *v = &f->views[ev->id];
    note(w, "  follower %d told %lld kind %d nonce %lld %s %s", (int)(f - w->followers), (long long)ev->id,
         (int)ev->kind, (long long)ev->nonce, ev->state ? ev->state : "", ev->outcome ? ev->outcome : "");
    if (ev->kind == LISTEN_FINISHED) {
        HOLDS(w, !v->finished || w->db.lossy, "I8", "a follower is told twice that transaction %lld ended",
              (long long)ev->id);
        v->finished = true;
        v->known = false;
        snprintf(v->outcome, sizeof(v->outcome), "%s", ev->outcome);
        return;
    }
    HOLDS(w, !v->finished || w->db.lossy, "I8",
          "a follower is told of transaction %lld at nonce %lld after its end", (long long)ev->id,
          (long long)ev->nonce);
    if (ev->kind == LISTEN_REMOVED) {
        v->known = false;
        return;
    }
    HOLDS(w, !v->known || v->nonce != ev->nonce || ev->updated_at_us >= v->updated_us || w->db.lossy, "I8",
          "a follower is told that transaction %lld is %s, which is older than %s", (long long)ev->id,
          ev->state, v->state);
    HOLDS(w, !v->known || v->nonce == ev->nonce || w->db.lossy, "I8",
          "a follower is told of transaction %lld at nonce %lld and not that it left %lld", (long long)ev->id,
          (long long)ev->nonce, (long long)v->nonce);
    v->known = true;
    v->nonce = ev->nonce;
    v->tx = tx_of_hash(w, ev->hash);
    v->updated_us = ev->updated_at_us;
    snprintf(v->state, sizeof(v->state), "%s", ev->state);
}

/* ---- questions ---- */

static struct follower *asker(struct world *w, const struct stmt *s)
{
    return &w->followers[s->nonce];
}

static struct stmt *question(struct world *w, struct follower *f, enum op op,
                             void (*done)(struct world *w, struct stmt *s))
{
    struct stmt *s = stmt_new(w, NULL, 0, op, done);
    s->nonce = (uint64_t)(f - w->followers);
    s->limit = SCAN_ROWS;
    return s;
}

static void hear_held(struct world *w, struct follower *f)
{
    while (!f->scanning && f->held) {
        struct held_notice *h = f->held;
        f->held = h->next;
        if (!f->held)
            f->held_end = &f->held;
        step(w, f, &(struct cursor_event){.type = CURSOR_EV_NOTIFY, .rows = &h->ev, .count = 1});
        free(h);
    }
}

static void drop_held(struct follower *f)
{
    while (f->held) {
        struct held_notice *h = f->held;
        f->held = h->next;
        free(h);
    }
    f->held_end = &f->held;
}

static void begun(struct world *w, struct stmt *s)
{
    struct follower *f = asker(w, s);
    f->accounts_asked = false;
    if (!s->code)
        step(w, f, &(struct cursor_event){.type = CURSOR_EV_BEGIN, .now_us = s->now_us});
}

static void begin(struct world *w, struct follower *f)
{
    f->rescan = false;
    f->accounts_asked = true;
    f->repair_at = NEVER;
    stmt_send(w, &f->link, question(w, f, OP_ACCOUNTS, begun));
}

static void pending_scanned(struct world *w, struct stmt *s)
{
    struct follower *f = asker(w, s);
    f->scanning = false;
    if (s->code)
        return;
    step(w, f,
         &(struct cursor_event){
             .type = CURSOR_EV_PENDING, .rows = s->events, .count = s->out_count, .last = s->last});
    hear_held(w, f);
}

static void finished_scanned(struct world *w, struct stmt *s)
{
    if (!s->code)
        step(w, asker(w, s),
             &(struct cursor_event){
                 .type = CURSOR_EV_FINISHED, .rows = s->events, .count = s->out_count, .last = s->last});
}

static void looked_up(struct world *w, struct stmt *s)
{
    struct follower *f = asker(w, s);
    f->looking = false;
    if (!s->code)
        step(w, f,
             &(struct cursor_event){.type = CURSOR_EV_LOOKED_UP, .rows = s->events, .count = s->out_count});
}

static void look_up(struct world *w, struct follower *f)
{
    const struct cursor_lookup *lookups;
    struct stmt *s = question(w, f, OP_LOOK_UP, looked_up);
    s->count = cursor_lookups(f->cursor, &lookups);
    s->lookups = xcalloc(s->count, sizeof(*lookups));
    memcpy(s->lookups, lookups, s->count * sizeof(*lookups));
    f->looking = true;
    stmt_send(w, &f->link, s);
}

/* ---- the cursor ---- */

static void repair(struct world *w, struct event *e)
{
    struct follower *f = &w->followers[e->a];
    if (f->link.number == e->b && f->link.up && cursor_state(f->cursor) == CURSOR_LIVE &&
        !f->accounts_asked && w->now >= f->repair_at)
        begin(w, f);
}

static void repair_in(struct world *w, struct follower *f, uint64_t us)
{
    if (f->repair_at <= w->now + us)
        return;
    f->repair_at = w->now + us;
    struct event *e = later(w, us, "follower repairs", repair);
    e->a = (uint32_t)(f - w->followers);
    e->b = f->link.number;
}

static void live(struct world *w, struct follower *f)
{
    f->live = true;
    repair_in(w, f, f->rescan ? SECOND : REPAIR_US);
}

static void scan(struct world *w, struct follower *f, const struct cursor_effect *fx)
{
    bool pending = fx->type == CURSOR_FX_SCAN_PENDING;
    struct stmt *s = question(w, f, pending ? OP_SCAN_PENDING : OP_SCAN_FINISHED,
                              pending ? pending_scanned : finished_scanned);
    s->after_account = fx->account;
    s->after_nonce = fx->nonce;
    s->after_id = fx->id;
    s->since_us = fx->since_us;
    f->scanning = f->scanning || pending;
    stmt_send(w, &f->link, s);
}

static void step(struct world *w, struct follower *f, const struct cursor_event *ev)
{
    const struct cursor_effect *fx;
    size_t count;
    cursor_step(f->cursor, ev, &fx, &count);
    for (size_t i = 0; i < count; i++) {
        switch (fx[i].type) {
        case CURSOR_FX_EVENT:
            read_event(w, f, &fx[i].event);
            break;
        case CURSOR_FX_SCAN_PENDING:
        case CURSOR_FX_SCAN_FINISHED:
            scan(w, f, &fx[i]);
            break;
        case CURSOR_FX_LOOK_UP:
            look_up(w, f);
            break;
        case CURSOR_FX_LIVE:
            live(w, f);
            break;
        case CURSOR_FX_DOUBT:
            f->rescan = true;
            if (cursor_state(f->cursor) == CURSOR_LIVE)
                repair_in(w, f, SECOND);
            break;
        }
    }
}

void follower_hear(struct world *w, struct follower *f, const struct listen_event *ev)
{
    if (cursor_state(f->cursor) == CURSOR_DOWN)
        return; /* before the scan, which will tell it */
    if (!f->scanning) {
        step(w, f, &(struct cursor_event){.type = CURSOR_EV_NOTIFY, .rows = ev, .count = 1});
        return;
    }
    struct held_notice *h = xcalloc(1, sizeof(*h));
    h->ev = *ev;
    *f->held_end = h;
    f->held_end = &h->next;
}

/* Nothing is on its way to it and nothing is open: what it was told is all there is. */
bool follower_quiet(const struct follower *f)
{
    return f->link.up && f->link.session && f->link.session->serial == f->link.serial &&
           cursor_state(f->cursor) == CURSOR_LIVE && !f->in_flight && !f->looking && !f->rescan &&
           !f->accounts_asked;
}

/* ---- life ---- */

static void on_up(struct world *w, struct link *l)
{
    begin(w, l->owner);
}

static void on_down(struct world *w, struct link *l)
{
    struct follower *f = l->owner;
    f->scanning = f->accounts_asked = f->looking = f->live = false;
    drop_held(f);
    step(w, f, &(struct cursor_event){.type = CURSOR_EV_DOWN});
}

void follower_start(struct world *w, struct follower *f)
{
    memset(f, 0, sizeof(*f));
    f->link = (struct link){.relay = -1,
                            .kind = LINK_LISTEN,
                            .owner = f,
                            .number = 1,
                            .backoff = {.base_ms = 50, .cap_ms = 5000},
                            .on_up = on_up,
                            .on_down = on_down};
    list_init(&f->link.sent);
    f->held_end = &f->held;
    f->repair_at = NEVER;
    f->cursor = cursor_new(
        &(struct cursor_config){.since_us = 1, .overlap_us = 30 * 1000000LL, .scan_rows = SCAN_ROWS});
    link_open(w, &f->link);
}

void follower_free(struct follower *f)
{
    drop_held(f);
    for (struct list *n = list_first(&f->link.sent); n; n = list_first(&f->link.sent)) {
        list_remove(n);
        stmt_unref(CONTAINER_OF(n, struct stmt, sent));
    }
    f->cursor = cursor_free(f->cursor);
}
