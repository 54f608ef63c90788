/* The cursor against a modelled table: transactions are admitted, change, are sent again, lose
 * their nonce, are replaced by fillers, are cancelled and finish, while notifications are lost,
 * repeated and reordered, sessions end, and scans run in small chunks.
 *
 * Claims, for every seed: per transaction no event is older than one before it and nothing follows
 * its end; every row told was in the table like that; and once the wire is empty the reader's view
 * equals the table: at once when notifications came as Postgres sends them, else after the next
 * repair (I8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/rng.h"
#include "listen/core/cursor.h"

enum { TXS = 4000, NONCES = 6000, SCAN_ROWS = 3, OVERLAP = 400, OPS = 600, WIRE = 4096 };

/* What happened to a row: to check that what is told was once so. */
struct version {
    int64_t id, nonce, at;
    uint8_t hash;
    const char *state;
};

enum stage { NOWHERE, OUTBOX, PENDING, DONE };

struct tx {
    enum stage stage;
    int64_t nonce;
};

struct slot { /* pending row at a nonce */
    bool used;
    int64_t id, at;
    uint8_t hash;
    const char *state;
};

struct done {
    int64_t id, nonce, at;
    const char *outcome;
};

struct item { /* on the wire to the follower */
    bool answer;
    enum cursor_event_type type; /* of an answer */
    struct listen_event row;     /* of a notification */
    bool believed;               /* a relay's */
    struct listen_event *rows;
    size_t count;
    bool last;
};

struct reader {
    enum { UNTOLD, TOLD_PENDING, TOLD_REMOVED, TOLD_FINISHED } stage;
    int64_t nonce, at;
    uint8_t hash;
    const char *state;
    const char *outcome;
};

enum noise { CLEAN, REPEATED, LOSSY };

struct world {
    struct rng rng;
    uint64_t seed;
    enum noise noise;
    bool forged; /* somebody makes up notifications */
    int64_t now;
    /* the table */
    struct tx txs[TXS];
    struct slot slots[NONCES];
    int64_t next_id, next_nonce;
    struct done done[2 * OPS];
    size_t done_count;
    struct version versions[4 * OPS];
    size_t version_count;
    /* the follower */
    struct cursor *cursor;
    bool connected;
    int64_t since_us;              /* its first BEGIN */
    struct cursor_effect asked[4]; /* questions at the server, in order */
    size_t asked_count;
    struct cursor_lookup lookups[SCAN_ROWS];
    size_t lookup_count;
    struct item wire[WIRE];
    size_t wire_count;
    struct item held[WIRE];
    size_t buffered_count;
    bool pending_asked, doubt;
    /* the reader */
    struct reader readers[TXS];
    struct reader fillers[NONCES];
    size_t told;
};

#define CHECK(w, cond)                                                                             \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            print_error("seed %llu noise %d at %lld: %s\n", (unsigned long long)(w)->seed,         \
                        (int)(w)->noise, (long long)(w)->now, #cond);                              \
            assert_true(cond);                                                                     \
        }                                                                                          \
    } while (0)

static bool chance(struct world *w, uint64_t percent)
{
    return rng_below(&w->rng, 100) < percent;
}

/* ---- the table ---- */

static struct listen_event event_of(enum listen_kind kind, int64_t id, int64_t nonce)
{
    return (struct listen_event){.kind = kind,
                                 .account = 1,
                                 .id = id,
                                 .nonce = nonce,
                                 .block_number = -1,
                                 .alias = "",
                                 .state = "",
                                 .outcome = "",
                                 .error = "",
                                 .creator = ""};
}

static struct listen_event slot_event(const struct world *w, enum listen_kind kind, int64_t nonce)
{
    const struct slot *s = &w->slots[nonce];
    struct listen_event ev = event_of(kind, s->id, nonce);
    ev.has_hash = true;
    ev.hash[0] = s->hash;
    ev.state = s->state;
    ev.updated_at_us = s->at;
    return ev;
}

static struct listen_event done_event(const struct done *d)
{
    struct listen_event ev = event_of(LISTEN_FINISHED, d->id, d->nonce);
    ev.outcome = d->outcome;
    ev.updated_at_us = d->at;
    return ev;
}

static void put_item(struct world *w, const struct item *item)
{
    CHECK(w, w->wire_count < WIRE);
    w->wire[w->wire_count++] = *item;
}

static void notify_from(struct world *w, struct listen_event ev, bool relay)
{
    if (!w->connected)
        return;
    struct item item = {.row = ev, .believed = relay};
    if (w->noise == LOSSY && chance(w, 15))
        return;
    put_item(w, &item);
    if (w->noise != CLEAN && chance(w, 15))
        put_item(w, &item);
    size_t n = w->wire_count;
    if (w->noise != CLEAN && chance(w, 10) && n >= 2 && !w->wire[n - 1].answer &&
        !w->wire[n - 2].answer) {
        struct item swap = w->wire[n - 1];
        w->wire[n - 1] = w->wire[n - 2];
        w->wire[n - 2] = swap;
    }
}

static void notify(struct world *w, struct listen_event ev)
{
    notify_from(w, ev, true);
}

static void touch(struct world *w, int64_t nonce)
{
    struct slot *s = &w->slots[nonce];
    s->at = ++w->now;
    CHECK(w, w->version_count < ARRAY_LEN(w->versions));
    w->versions[w->version_count++] = (struct version){
        .id = s->id, .nonce = nonce, .at = s->at, .hash = s->hash, .state = s->state};
}

static void insert(struct world *w, int64_t id, int64_t nonce)
{
    w->slots[nonce] = (struct slot){
        .used = true, .id = id, .hash = (uint8_t)rng_next(&w->rng), .state = "signed"};
    touch(w, nonce);
    if (id)
        w->txs[id] = (struct tx){.stage = PENDING, .nonce = nonce};
    notify(w, slot_event(w, LISTEN_NEW, nonce));
}

/* finished_at may lie well before the commit, but not before the row's last update. */
static void record(struct world *w, int64_t id, int64_t nonce, const char *outcome)
{
    int64_t at = ++w->now - (int64_t)rng_below(&w->rng, OVERLAP / 4);
    if (nonce >= 0 && at < w->slots[nonce].at)
        at = w->slots[nonce].at;
    w->done[w->done_count++] =
        (struct done){.id = id, .nonce = nonce, .at = at, .outcome = outcome};
    if (id)
        w->txs[id] = (struct tx){.stage = DONE, .nonce = nonce};
}

static void finish(struct world *w, int64_t nonce, const char *outcome)
{
    int64_t id = w->slots[nonce].id;
    w->slots[nonce].used = false;
    record(w, id, nonce, outcome);
    struct listen_event ev = event_of(LISTEN_REMOVED, id, nonce);
    ev.outcome = outcome;
    notify(w, ev);
}

static void admit(struct world *w)
{
    int64_t id = 0;
    for (int64_t i = 1; i < w->next_id && !id; i++)
        if (w->txs[i].stage == OUTBOX)
            id = i;
    if (id)
        insert(w, id, w->next_nonce++);
}

static int64_t pick_pending(struct world *w)
{
    int64_t found = -1;
    uint64_t seen = 0;
    for (int64_t n = 0; n < w->next_nonce; n++)
        if (w->slots[n].used && rng_below(&w->rng, ++seen) == 0)
            found = n;
    return found;
}

static void change(struct world *w)
{
    static const char *const states[] = {"future",   "ready",     "broadcast",
                                         "in_block", "retracted", "dropped"};
    int64_t nonce = pick_pending(w);
    const char *before;
    if (nonce < 0)
        return;
    struct slot *s = &w->slots[nonce];
    switch (rng_below(&w->rng, 10)) {
    case 0: /* signed again */
        s->hash++;
        s->state = "signed";
        touch(w, nonce);
        notify(w, slot_event(w, LISTEN_UPDATE, nonce));
        return;
    case 1: /* ends; a filler takes the nonce */
        if (!s->id)
            return;
        finish(w, nonce, "expired");
        insert(w, 0, nonce);
        return;
    case 2: /* back to the outbox; the last nonce is given back */
        if (!s->id)
            return;
        s->used = false;
        w->txs[s->id].stage = OUTBOX;
        notify(w, event_of(LISTEN_REMOVED, s->id, nonce));
        if (nonce == w->next_nonce - 1 && w->noise == CLEAN)
            w->next_nonce--;
        return;
    case 3:
    case 4:
        s->state = "finalized";
        touch(w, nonce);
        notify(w, slot_event(w, LISTEN_UPDATE, nonce));
        finish(w, nonce, chance(w, 80) ? "ok" : "dispatch_error");
        return;
    default:
        before = s->state;
        s->state = states[rng_below(&w->rng, ARRAY_LEN(states))];
        touch(w, nonce);
        if (s->state != before) /* the trigger tells what a follower can see */
            notify(w, slot_event(w, LISTEN_UPDATE, nonce));
    }
}

static void cancel(struct world *w)
{
    for (int64_t i = 1; i < w->next_id; i++) {
        if (w->txs[i].stage != OUTBOX)
            continue;
        record(w, i, -1, "cancelled");
        struct listen_event ev = event_of(LISTEN_REMOVED, i, -1);
        ev.outcome = "cancelled";
        notify_from(w, ev, false); /* the application does it */
        return;
    }
}

/* Somebody who is no relay makes up a notification. */
static void forge(struct world *w)
{
    int64_t id = 1 + (int64_t)rng_below(&w->rng, (uint64_t)w->next_id);
    struct listen_event ev = event_of((enum listen_kind)rng_below(&w->rng, 3), id,
                                      (int64_t)rng_below(&w->rng, (uint64_t)w->next_nonce + 2));
    if (ev.kind == LISTEN_REMOVED && chance(w, 60))
        ev.outcome = "usurped";
    ev.state = "made up";
    ev.has_hash = true;
    ev.updated_at_us = w->now + (int64_t)rng_below(&w->rng, 1000);
    notify_from(w, ev, false);
}

static void table_op(struct world *w)
{
    switch (rng_below(&w->rng, 8)) {
    case 0:
        w->txs[w->next_id++].stage = OUTBOX;
        return;
    case 1:
    case 2:
        admit(w);
        return;
    case 3:
        if (chance(w, 20))
            cancel(w);
        return;
    default:
        change(w);
    }
}

/* ---- the server answers ---- */

static int compare_done(const void *a, const void *b)
{
    const struct done *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->nonce != y->nonce)
        return x->nonce < y->nonce ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool after(const struct done *d, const struct cursor_effect *fx)
{
    struct done limit = {.at = fx->after.since_us, .nonce = fx->after.nonce, .id = fx->after.id};
    return fx->after.account ? compare_done(d, &limit) > 0 : d->at >= fx->after.since_us;
}

static void answer(struct world *w)
{
    struct cursor_effect fx = w->asked[0];
    struct item item = {.answer = true, .rows = xcalloc(SCAN_ROWS * 4, sizeof(*item.rows))};
    memmove(w->asked, w->asked + 1, --w->asked_count * sizeof(fx));
    if (fx.type == CURSOR_FX_SCAN_PENDING) {
        item.type = CURSOR_EV_PENDING;
        for (int64_t n = fx.after.nonce + 1; n < w->next_nonce && item.count < SCAN_ROWS; n++)
            if (w->slots[n].used)
                item.rows[item.count++] = slot_event(w, LISTEN_NEW, n);
    } else if (fx.type == CURSOR_FX_SCAN_FINISHED) {
        item.type = CURSOR_EV_FINISHED;
        struct done *sorted = xmalloc((w->done_count + 1) * sizeof(*sorted));
        memcpy(sorted, w->done, w->done_count * sizeof(*sorted));
        qsort(sorted, w->done_count, sizeof(*sorted), compare_done);
        for (size_t i = 0; i < w->done_count && item.count < SCAN_ROWS; i++)
            if (after(&sorted[i], &fx))
                item.rows[item.count++] = done_event(&sorted[i]);
        free(sorted);
    } else {
        item.type = CURSOR_EV_LOOKED_UP;
        for (size_t i = 0; i < w->lookup_count; i++)
            for (size_t k = 0; k < w->done_count; k++) {
                const struct done *d = &w->done[k];
                const struct cursor_lookup *l = &w->lookups[i];
                if (l->id ? d->id == l->id : !d->id && d->nonce == l->nonce)
                    item.rows[item.count++] = done_event(d);
            }
    }
    item.last = item.count < SCAN_ROWS;
    put_item(w, &item);
}

/* ---- the reader ---- */

static bool was_so(const struct world *w, const struct listen_event *ev)
{
    for (size_t i = 0; i < w->version_count; i++) {
        const struct version *v = &w->versions[i];
        if (v->id == ev->id && v->nonce == ev->nonce && v->at == ev->updated_at_us &&
            v->hash == ev->hash[0] && !strcmp(v->state, ev->state))
            return true;
    }
    return false;
}

static void read_event(struct world *w, const struct listen_event *ev)
{
    struct reader *r = ev->id ? &w->readers[ev->id] : &w->fillers[ev->nonce];
    w->told++;
    CHECK(w, r->stage != TOLD_FINISHED ||
                 (ev->kind == LISTEN_FINISHED && !strcmp(r->outcome, ev->outcome)));
    switch (ev->kind) {
    case LISTEN_NEW:
    case LISTEN_UPDATE:
        CHECK(w, was_so(w, ev));
        CHECK(w, ev->updated_at_us >= r->at);
        CHECK(w, r->stage != TOLD_PENDING || r->nonce == ev->nonce); /* removed there first */
        CHECK(w, ev->kind == LISTEN_NEW || r->stage == TOLD_PENDING);
        r->stage = TOLD_PENDING;
        r->nonce = ev->nonce;
        r->at = ev->updated_at_us;
        r->hash = ev->hash[0];
        r->state = ev->state;
        return;
    case LISTEN_REMOVED:
        CHECK(w, r->stage == TOLD_PENDING && r->nonce == ev->nonce);
        r->stage = TOLD_REMOVED;
        return;
    case LISTEN_FINISHED:
        CHECK(w, ev->id == 0 || w->txs[ev->id].stage == DONE);
        r->stage = TOLD_FINISHED;
        r->outcome = ev->outcome;
        return;
    }
}

/* ---- the follower's door ---- */

static void step(struct world *w, struct cursor_event ev)
{
    const struct cursor_effect *fx;
    size_t count;
    cursor_step(w->cursor, &ev, &fx, &count);
    for (size_t i = 0; i < count; i++) {
        if (fx[i].type == CURSOR_FX_EVENT) {
            read_event(w, &fx[i].event);
        } else if (fx[i].type == CURSOR_FX_DOUBT) {
            w->doubt = true;
        } else if (fx[i].type != CURSOR_FX_LIVE) {
            CHECK(w, w->asked_count < ARRAY_LEN(w->asked));
            w->asked[w->asked_count++] = fx[i];
            w->pending_asked |= fx[i].type == CURSOR_FX_SCAN_PENDING;
            if (fx[i].type == CURSOR_FX_LOOK_UP) {
                const struct cursor_lookup *l;
                w->lookup_count = cursor_lookups(w->cursor, &l);
                CHECK(w, w->lookup_count > 0 && w->lookup_count <= SCAN_ROWS);
                memcpy(w->lookups, l, w->lookup_count * sizeof(*l));
            }
        }
    }
}

static void hear(struct world *w, const struct item *item)
{
    step(w, (struct cursor_event){
                .type = CURSOR_EV_NOTIFY,
                .notify = {.row = &item->row, .now_us = w->now, .believed = item->believed}});
}

/* What came first, or an answer that overtakes notifications: libpq hands out results first. */
static void deliver(struct world *w)
{
    size_t at = 0;
    while (at < w->wire_count && at < 5 && !w->wire[at].answer)
        at++;
    if (at == w->wire_count || !w->wire[at].answer || chance(w, 50))
        at = 0;
    struct item item = w->wire[at];
    memmove(&w->wire[at], &w->wire[at + 1], (--w->wire_count - at) * sizeof(item));
    if (!item.answer) {
        if (w->pending_asked)
            w->held[w->buffered_count++] = item;
        else
            hear(w, &item);
        return;
    }
    if (item.type == CURSOR_EV_PENDING)
        w->pending_asked = false;
    step(w, (struct cursor_event){
                .type = item.type,
                .answer = {.rows = item.rows, .count = item.count, .last = item.last}});
    free(item.rows);
    size_t i = 0;
    while (i < w->buffered_count && !w->pending_asked)
        hear(w, &w->held[i++]);
    memmove(w->held, w->held + i, (w->buffered_count - i) * sizeof(item));
    w->buffered_count -= i;
}

static void disconnect(struct world *w)
{
    for (size_t i = 0; i < w->wire_count; i++)
        free(w->wire[i].rows);
    w->wire_count = w->buffered_count = w->asked_count = 0;
    w->pending_asked = w->connected = false;
    step(w, (struct cursor_event){.type = CURSOR_EV_DOWN});
}

static void begin(struct world *w)
{
    if (!w->since_us)
        w->since_us = w->now;
    w->doubt = false;
    step(w, (struct cursor_event){.type = CURSOR_EV_BEGIN, .begin_us = w->now});
}

static void follower_op(struct world *w)
{
    if (!w->connected) {
        if (chance(w, 10)) {
            w->connected = true;
            begin(w);
        }
        return;
    }
    if (chance(w, 1))
        disconnect(w);
    else if (w->asked_count && chance(w, 50))
        answer(w);
    else if (w->wire_count && chance(w, 90))
        deliver(w);
    else if (cursor_state(w->cursor) == CURSOR_LIVE && chance(w, 3))
        begin(w);
}

static void settle(struct world *w)
{
    while (w->wire_count || w->asked_count) {
        if (w->asked_count)
            answer(w);
        if (w->wire_count)
            deliver(w);
    }
}

static void check_equal(struct world *w)
{
    CHECK(w, cursor_state(w->cursor) == CURSOR_LIVE);
    for (int64_t id = 1; id < w->next_id; id++) {
        const struct tx *t = &w->txs[id];
        const struct reader *r = &w->readers[id];
        if (t->stage == PENDING) {
            const struct slot *s = &w->slots[t->nonce];
            CHECK(w, r->stage == TOLD_PENDING && r->nonce == t->nonce);
            CHECK(w, r->hash == s->hash && !strcmp(r->state, s->state));
        }
        CHECK(w, t->stage != OUTBOX || r->stage == UNTOLD || r->stage == TOLD_REMOVED);
        CHECK(w, t->stage != DONE || r->stage != TOLD_PENDING);
    }
    for (size_t i = 0; i < w->done_count; i++) {
        const struct done *d = &w->done[i];
        const struct reader *r = d->id ? &w->readers[d->id] : &w->fillers[d->nonce];
        if (d->at >= w->since_us)
            CHECK(w, r->stage == TOLD_FINISHED && !strcmp(r->outcome, d->outcome));
    }
    for (int64_t n = 0; n < w->next_nonce; n++)
        if (w->slots[n].used && !w->slots[n].id)
            CHECK(w, w->fillers[n].stage == TOLD_PENDING && w->fillers[n].hash == w->slots[n].hash);
}

static size_t run_seed(struct world *w, uint64_t seed, enum noise noise, bool forged)
{
    memset(w, 0, sizeof(*w));
    w->forged = forged;
    w->seed = seed;
    w->noise = noise;
    w->rng.state = seed * 40503u + (uint64_t)noise;
    w->next_id = 1;
    w->now = 100000;
    w->cursor = cursor_new(&(struct cursor_config){.overlap_us = OVERLAP, .scan_rows = SCAN_ROWS});
    for (int i = 0; i < OPS; i++) {
        table_op(w);
        if (w->forged && chance(w, 10))
            forge(w);
        for (uint64_t k = rng_below(&w->rng, 6); k; k--)
            follower_op(w);
    }
    if (!w->connected) {
        w->connected = true;
        begin(w);
    }
    settle(w);
    if (noise != CLEAN || w->doubt) { /* the repair */
        begin(w);
        settle(w);
    }
    CHECK(w, !w->doubt);
    check_equal(w);
    w->cursor = cursor_free(w->cursor);
    return w->told;
}

static void run(enum noise noise, bool forged)
{
    const char *text = getenv("CURSOR_SEEDS"); /* more, for a long run */
    uint64_t seeds = text ? strtoull(text, NULL, 10) : 400;
    struct world *w = xmalloc(sizeof(*w));
    size_t told = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++)
        told += run_seed(w, seed, noise, forged);
    assert_true(told > seeds * 100);
    free(w);
}

static void nothing_lost(void **state)
{
    (void)state;
    run(CLEAN, false);
}

static void repeated_and_reordered(void **state)
{
    (void)state;
    run(REPEATED, false);
}

static void lost_repeated_reordered(void **state)
{
    (void)state;
    run(LOSSY, false);
}

static void forged(void **state)
{
    (void)state;
    run(CLEAN, true);
    run(LOSSY, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_lost),
        cmocka_unit_test(repeated_and_reordered),
        cmocka_unit_test(lost_repeated_reordered),
        cmocka_unit_test(forged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
