#include "site_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "election/election.h"
#include "site_chain.h"

enum {
    SITES = CHAIN_SITES,
    ROWS_MAX = 16, /* of a site */
    GRANTS_MAX = 64,
    DISPATCHES_MAX = 256,
    ERA = 8,
    BLOCK_MS = 1000,
    WILD_MS = 60000,
    CALM_MS = 10000,     /* for which applications go on after the faults */
    CONVERGE_MS = 30000, /* one coordinator, after the faults */
    PATIENCE_MS = 400000,
    SETTLE_MS = 40000, /* after the last end: acknowledgements, the last heartbeats */
    BEAT_MS = 500,
    FLIGHT_MAX = 8,
    BATCH_MAX = 5,
};

enum event_type {
    EV_BLOCK,
    EV_HEAD,
    EV_ARRIVE,
    EV_COMMIT,
    EV_STORED,
    EV_LOADED,
    EV_SIGNED,
    EV_TICK,
    EV_ENQUEUE,
    EV_START,
    EV_FAULT,
    EV_MEND,
};

struct event {
    uint64_t at, order;
    enum event_type type;
    unsigned who;
    uint64_t life, session, batch;
    bool flag;
    struct site_message message; /* ARRIVE; its items are the event's */
    struct site_item item;       /* SIGNED */
    struct site_effect *writes;  /* COMMIT; the event's */
    size_t count;
};

struct row {
    uint64_t id;
    uint32_t grants[GRANTS_MAX]; /* numbers of bytes */
    size_t count;
    bool ended, cancelled; /* cancelled: how it ended */
};

struct database {
    struct row rows[ROWS_MAX];
    size_t row_count;
    struct site_dispatch dispatches[DISPATCHES_MAX];
    size_t dispatch_count;
    uint64_t final, wait_until;
    bool lost;
};

struct site {
    struct site_core *core;
    struct database db, saved;
    bool wish[ROWS_MAX]; /* to cancel; what applications committed is not lost */
    uint64_t life, session;
    uint64_t tick_at;
    uint64_t commit_at; /* statements are answered in their order */
    uint64_t behind;    /* blocks that its node does not show */
    uint64_t heard;     /* the highest block that a relay of it heard of */
    bool chain_away;
};

struct model {
    struct rng rng;
    uint64_t now, order, life;
    bool print, wild;
    struct event *heap;
    size_t count, cap;
    unsigned sites;
    bool own_keys, cut[SITES][SITES];
    struct site_config config;
    uint32_t loss; /* of messages, per mille */
    struct site site[SITES];
    struct chain chain;
    uint64_t agreed_at, last_end, last_message;
    struct site_model_report *report;
};

static void violation(struct model *m, const char *text)
{
    if (m->report->violation)
        return;
    m->report->violation = text;
    m->report->at_ms = m->now;
}

/* ---- the queue ---- */

static bool earlier(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct model *m, struct event e)
{
    if (m->count == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 256;
        m->heap = xrealloc(m->heap, m->cap * sizeof(*m->heap));
    }
    e.order = ++m->order;
    size_t i = m->count++;
    for (; i && earlier(&e, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = e;
}

static struct event pop(struct model *m)
{
    struct event first = m->heap[0], last = m->heap[--m->count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < m->count; i = child) {
        if (child + 1 < m->count && earlier(&m->heap[child + 1], &m->heap[child]))
            child++;
        if (!earlier(&m->heap[child], &last))
            break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = last;
    return first;
}

static void free_event(struct event *e)
{
    free((void *)(uintptr_t)e->message.items);
    free(e->writes);
}

static bool chance(struct model *m, uint64_t per_mille)
{
    return rng_below(&m->rng, 1000) < per_mille;
}

/* A fault, while there are any. */
static bool wild(struct model *m, uint64_t per_mille)
{
    return m->wild && chance(m, per_mille);
}

/* ---- databases ---- */

static struct row *row_of(struct database *db, uint64_t id)
{
    for (size_t i = 0; i < db->row_count; i++)
        if (db->rows[i].id == id)
            return &db->rows[i];
    return NULL;
}

static void commit_grant(struct model *m, unsigned who, const struct site_effect *w)
{
    struct row *r = row_of(&m->site[who].db, w->id);
    struct signed_bytes *b = chain_find(&m->chain, &w->bytes.hash);
    PRE(r && b && r->count < GRANTS_MAX);
    for (size_t i = 0; i < m->chain.count; i++) {
        const struct signed_bytes *other = &m->chain.all[i];
        if (other->granted && other->sender == (int)who && other->id == w->id &&
            (other->bytes.nonce != b->bytes.nonce || other->bytes.key != b->bytes.key) &&
            !chain_dead(&m->chain, other))
            violation(m, "S-I5: bytes are granted while others at another place can be included");
    }
    if (m->site[who].db.wait_until > m->chain.final)
        violation(m, "lost commits: bytes are granted during the wait");
    if (b->bytes.death > m->chain.final + ERA)
        violation(m, "bytes are granted that live longer than the bound");
    b->granted = true;
    r->grants[r->count++] = b->number;
}

static void commit_end(struct model *m, unsigned who, const struct site_effect *w)
{
    struct row *r = row_of(&m->site[who].db, w->id);
    PRE(r);
    if (r->ended)
        violation(m, "I7: a transaction ends twice");
    r->ended = true;
    r->cancelled = w->end == SITE_CANCELLED;
    m->report->cancelled += r->cancelled;
    m->last_end = m->now;
    if (r->cancelled)
        return;
    const struct signed_bytes *b = chain_find(&m->chain, &w->bytes.hash);
    if (!b || b->id != w->id || !chain_has(b, m->chain.final))
        violation(m, "end: a transaction is recorded as ok, and no finalized block has it");
}

static void commit_dispatch(struct model *m, unsigned who, const struct site_effect *w)
{
    struct database *db = &m->site[who].db;
    struct signed_bytes *b = chain_find(&m->chain, &w->bytes.hash);
    PRE(b && db->dispatch_count < DISPATCHES_MAX);
    if (!(w->id & SITE_FILLER) && !b->granted)
        violation(m, "bytes are dispatched that were not granted");
    b->dispatched |= UINT32_C(1) << who;
    db->dispatches[db->dispatch_count++] =
        (struct site_dispatch){.sender = w->sender, .id = w->id, .bytes = w->bytes};
}

static void commit_drop(struct database *db, const struct site_effect *w)
{
    for (size_t i = 0; i < db->dispatch_count; i++)
        if (memcmp(&db->dispatches[i].bytes.hash, &w->bytes.hash, sizeof(struct site_hash)) == 0) {
            db->dispatches[i] = db->dispatches[--db->dispatch_count];
            return;
        }
}

static void commit_one(struct model *m, unsigned who, const struct site_effect *w)
{
    struct database *db = &m->site[who].db;
    switch (w->type) {
    case SITE_FX_STORE_GRANT:
        commit_grant(m, who, w);
        return;
    case SITE_FX_STORE_DISPATCH:
        commit_dispatch(m, who, w);
        return;
    case SITE_FX_STORE_DROP:
        commit_drop(db, w);
        return;
    case SITE_FX_STORE_END:
        commit_end(m, who, w);
        return;
    case SITE_FX_STORE_FINAL:
        db->final = w->height;
        return;
    case SITE_FX_STORE_WAIT:
        db->wait_until = w->height;
        db->lost = false;
        return;
    case SITE_FX_STORE_NOTED:
        return;
    case SITE_FX_LOAD:
    case SITE_FX_SEND:
    case SITE_FX_SIGN:
    case SITE_FX_SUBMIT:
        break;
    }
    UNREACHABLE();
}

/* ---- what a core wants ---- */

static void step(struct model *m, unsigned who, const struct site_event *ev);

static bool valid(struct model *m, struct site_item *item)
{
    const struct signed_bytes *b =
        item->has_bytes ? chain_find(&m->chain, &item->bytes.hash) : NULL;
    if (!b || b->sender != (int)item->sender || b->id != item->id)
        return false;
    item->bytes = b->bytes;
    return true;
}

static void send(struct model *m, unsigned who, const struct site_message *msg)
{
    if (msg->from != who || msg->to >= m->sites || msg->to == who)
        violation(m, "a message to nobody");
    if (msg->count > BATCH_MAX && msg->type != SITE_MSG_HEARTBEAT)
        violation(m, "a message has more items than a batch may have");
    m->report->messages++;
    m->report->items += msg->count;
    m->report->delegated += msg->type == SITE_MSG_DELEGATE ? msg->count : 0;
    m->last_message = m->now;
    unsigned copies = wild(m, m->loss) ? 0 : wild(m, 50) ? 2 : 1;
    if (m->cut[who][msg->to])
        copies = 0;
    for (; copies; copies--) {
        struct event e = {.type = EV_ARRIVE, .who = msg->to, .message = *msg};
        struct site_item *items = xcalloc(msg->count + 1, sizeof(*items));
        for (size_t i = 0; i < msg->count; i++) {
            items[i] = msg->items[i];
            items[i].valid = valid(m, &items[i]);
        }
        e.message.items = items;
        e.at = m->now + 1 + rng_below(&m->rng, 40);
        if (wild(m, 30))
            e.at += rng_below(&m->rng, 15000); /* very late */
        push(m, e);
    }
}

static void submit(struct model *m, unsigned who, const struct site_bytes *bytes)
{
    struct signed_bytes *b = chain_find(&m->chain, &bytes->hash);
    PRE(b);
    bool filler = (b->id & SITE_FILLER) != 0;
    if (!filler && !b->granted)
        violation(m, "S-I3: bytes are sent before they are committed at the sender");
    if (!(b->dispatched >> who & 1) && !(b->sender == (int)who && b->granted))
        violation(m, "S-I3: a site sends what it has not committed");
    if (!m->site[who].chain_away && !b->block && !wild(m, 100))
        b->pooled = true;
}

static void sign(struct model *m, unsigned who, const struct site_effect *fx)
{
    struct event e = {.at = m->now + 1 + rng_below(&m->rng, 20),
                      .type = EV_SIGNED,
                      .who = who,
                      .life = m->site[who].life};
    e.item = (struct site_item){.sender = fx->sender, .id = fx->id, .bytes = fx->bytes};
    if (!wild(m, 20)) {
        e.item.has_bytes = e.item.valid = true;
        e.item.bytes = chain_sign(&m->chain, (int)fx->sender, fx->id, fx->bytes.key,
                                  fx->bytes.nonce, fx->height)
                           ->bytes;
    }
    push(m, e);
}

static void store(struct model *m, unsigned who, const struct site_effect *effects, size_t count)
{
    struct site *s = &m->site[who];
    struct event e = {.type = EV_COMMIT,
                      .who = who,
                      .life = s->life,
                      .session = s->session,
                      .batch = effects[0].batch};
    e.writes = xcalloc(count, sizeof(*e.writes));
    memcpy(e.writes, effects, count * sizeof(*effects));
    e.count = count;
    e.at = m->now + 1 + rng_below(&m->rng, 20);
    if (wild(m, 10))
        e.at += rng_below(&m->rng, 5000);
    s->commit_at = e.at = e.at > s->commit_at ? e.at : s->commit_at + 1;
    push(m, e);
}

static void carry_out(struct model *m, unsigned who, const struct site_effect *effects,
                      size_t count)
{
    size_t stores = 0;
    struct site_effect *kept = xcalloc(count + 1, sizeof(*kept));
    for (size_t i = 0; i < count && !m->report->violation; i++) {
        const struct site_effect *fx = &effects[i];
        switch (fx->type) {
        case SITE_FX_LOAD:
            push(m, (struct event){.at = m->now + 1 + rng_below(&m->rng, 30),
                                   .type = EV_LOADED,
                                   .who = who,
                                   .life = m->site[who].life,
                                   .batch = fx->batch,
                                   .flag = wild(m, 100)});
            break;
        case SITE_FX_SEND:
            send(m, who, &fx->message);
            break;
        case SITE_FX_SIGN:
            sign(m, who, fx);
            break;
        case SITE_FX_SUBMIT:
            submit(m, who, &fx->bytes);
            break;
        case SITE_FX_STORE_GRANT:
        case SITE_FX_STORE_DISPATCH:
        case SITE_FX_STORE_NOTED:
        case SITE_FX_STORE_DROP:
        case SITE_FX_STORE_END:
        case SITE_FX_STORE_FINAL:
        case SITE_FX_STORE_WAIT:
            kept[stores++] = *fx;
            break;
        }
    }
    if (stores)
        store(m, who, kept, stores);
    free(kept);
}

static void arm(struct model *m, unsigned who)
{
    struct site *s = &m->site[who];
    uint64_t due = site_due(s->core, m->now);
    if (due == s->tick_at || due == UINT64_MAX)
        return;
    s->tick_at = due;
    push(m, (struct event){.at = due, .type = EV_TICK, .who = who, .life = s->life});
}

static void step(struct model *m, unsigned who, const struct site_event *ev)
{
    struct site *s = &m->site[who];
    const struct site_effect *effects;
    size_t count;
    site_step(s->core, m->now, ev, &effects, &count);
    carry_out(m, who, effects, count);
    const char *wrong = site_core_check(s->core);
    if (wrong)
        violation(m, wrong);
    struct site_view view;
    site_core_view(s->core, &view);
    if (view.granted > FLIGHT_MAX + ROWS_MAX)
        violation(m, "more is in flight than is allowed");
    if (!m->report->violation)
        arm(m, who);
}

/* ---- lives ---- */

static void stop(struct model *m, unsigned who)
{
    struct site *s = &m->site[who];
    if (!s->core)
        return;
    const struct site_moves moved = site_core_moved(s->core);
    const struct site_counts *counts = site_core_counts(s->core);
    m->report->moved.machine |= moved.machine;
    m->report->moved.tx |= moved.tx;
    m->report->moved.work |= moved.work;
    m->report->demoted += counts->demoted;
    m->report->adopted += counts->adopted;
    m->report->fillers += counts->fillers;
    s->core = site_core_free(s->core);
}

static void show_chain(struct model *m, unsigned who);

static void start(struct model *m, unsigned who)
{
    static const char *const names[SITES] = {"north", "south", "east", "west", "centre"};
    struct site *s = &m->site[who];
    if (s->core)
        return;
    struct site_config config = m->config;
    config.hash = election_hash;
    config.names = names;
    config.members = m->sites;
    config.self = who;
    config.life = s->life = ++m->life;
    s->session = ++m->life;
    s->commit_at = s->tick_at = 0;
    s->core = site_core_new(&config);
    step(m, who, &(struct site_event){.type = SITE_EV_LEAD});
    show_chain(m, who);
}

static void loaded(struct model *m, const struct event *e)
{
    struct site *s = &m->site[e->who];
    struct database *db = &s->db;
    struct site_row rows[ROWS_MAX];
    static struct site_bytes attempts[ROWS_MAX][GRANTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < db->row_count; i++) {
        const struct row *r = &db->rows[i];
        if (r->ended)
            continue;
        for (size_t g = 0; g < r->count; g++)
            attempts[count][g] = m->chain.all[r->grants[g] - 1].bytes;
        rows[count] = (struct site_row){
            .id = r->id, .attempts = attempts[count], .count = r->count, .cancel = s->wish[i]};
        count++;
    }
    struct site_event ev = {.type = SITE_EV_LOADED};
    ev.loaded.load = e->batch;
    ev.loaded.failed = e->flag;
    ev.loaded.lost = db->lost;
    ev.loaded.wait_until = db->wait_until;
    /* Another relay of the site may have lived on. If none did, its members and its node tell. */
    ev.loaded.highest = s->behind > 2 || chance(m, 500) ? s->heard : 0;
    ev.loaded.final = db->final;
    ev.loaded.next = m->chain.next[db->final];
    ev.loaded.rows = rows;
    ev.loaded.row_count = count;
    ev.loaded.dispatches = db->dispatches;
    ev.loaded.dispatch_count = db->dispatch_count;
    step(m, e->who, &ev);
    show_chain(m, e->who);
}

/* ---- nodes ---- */

static void final_block(struct model *m, unsigned who, uint64_t height)
{
    struct site_used used[CHAIN_BLOCK_MAX + 1];
    size_t count = 0;
    for (size_t i = 0; i < m->chain.count; i++) {
        const struct signed_bytes *b = &m->chain.all[i];
        if (b->block == height)
            used[count++] =
                (struct site_used){.bytes = b->bytes, .id = b->sender == (int)who ? b->id : 0};
    }
    step(m, who,
         &(struct site_event){
             .type = SITE_EV_FINAL,
             .final = {
                 .height = height, .next = m->chain.next[height], .used = used, .count = count}});
}

static void show_chain(struct model *m, unsigned who)
{
    struct site *s = &m->site[who];
    if (s->chain_away || !s->core)
        return;
    uint64_t best = m->chain.best > s->behind ? m->chain.best - s->behind : 1;
    uint64_t final = m->chain.final > s->behind ? m->chain.final - s->behind : 1;
    s->heard = best > s->heard ? best : s->heard;
    uint32_t key = m->own_keys ? who : 0;
    step(m, who,
         &(struct site_event){.type = SITE_EV_HEAD,
                              .head = {.height = best, .next = m->chain.next[best][key]}});
    struct site_view view;
    for (site_core_view(s->core, &view); view.final && view.final < final && !m->report->violation;
         site_core_view(s->core, &view))
        final_block(m, who, view.final + 1);
}

static void judge_final(struct model *m)
{
    for (unsigned who = 0; who < m->sites; who++)
        for (size_t i = 0; i < m->site[who].db.row_count; i++) {
            const struct row *r = &m->site[who].db.rows[i];
            unsigned effects = 0;
            for (size_t b = 0; b < m->chain.count; b++)
                effects += m->chain.all[b].sender == (int)who && m->chain.all[b].id == r->id &&
                           chain_has(&m->chain.all[b], m->chain.final);
            if (effects > 1)
                violation(m, "once: a transaction has two effects");
            if (effects && r->ended && r->cancelled)
                violation(m, "end: a transaction is recorded as cancelled, and has an effect");
        }
}

static void block(struct model *m)
{
    uint64_t final = m->chain.final;
    if (wild(m, 40)) {
        chain_reorganise(&m->chain);
        m->report->reorganisations++;
    } else if (wild(m, 30)) {
        chain_stranger(&m->chain, m->own_keys ? (uint32_t)rng_below(&m->rng, m->sites) : 0);
    } else {
        chain_build(&m->chain);
    }
    if (m->chain.final != final)
        judge_final(m);
    for (unsigned who = 0; who < m->sites; who++)
        push(m, (struct event){.at = m->now + 1 + rng_below(&m->rng, chance(m, 100) ? 1500 : 60),
                               .type = EV_HEAD,
                               .who = who});
    push(m, (struct event){.at = m->now + BLOCK_MS, .type = EV_BLOCK});
}

/* ---- faults ---- */

static void crash(struct model *m, unsigned who, uint64_t away_ms)
{
    if (!m->site[who].core)
        return;
    m->report->crashes++;
    stop(m, who);
    push(m, (struct event){.at = m->now + away_ms, .type = EV_START, .who = who});
}

static void lose_commits(struct model *m, unsigned who)
{
    struct site *s = &m->site[who];
    struct database lost = s->db;
    m->report->losses++;
    crash(m, who, 50 + rng_below(&m->rng, 3000));
    s->db = s->saved;
    /* What applications committed is there: the loss is of what the relays wrote. */
    for (size_t i = s->db.row_count; i < lost.row_count; i++)
        s->db.rows[s->db.row_count++] = (struct row){.id = lost.rows[i].id};
    s->db.lost = true;
    s->db.wait_until = 0;
}

static void cut(struct model *m)
{
    unsigned side = (unsigned)rng_below(&m->rng, 1u << m->sites);
    bool one_way = chance(m, 200);
    for (unsigned a = 0; a < m->sites; a++)
        for (unsigned b = 0; b < m->sites; b++)
            if ((side >> a & 1) && !(side >> b & 1)) {
                m->cut[a][b] = true;
                m->cut[b][a] = !one_way;
            }
}

static void mend(struct model *m, bool all)
{
    for (unsigned a = 0; a < m->sites; a++) {
        if (all || chance(m, 600))
            m->site[a].behind = 0, m->site[a].chain_away = false;
        for (unsigned b = 0; b < m->sites; b++)
            if (all || chance(m, 700))
                m->cut[a][b] = false;
    }
}

static void fault(struct model *m)
{
    if (!m->wild)
        return;
    unsigned who = (unsigned)rng_below(&m->rng, m->sites);
    struct site *s = &m->site[who];
    switch (rng_below(&m->rng, 8)) {
    case 0:
        crash(m, who, 20 + rng_below(&m->rng, 1500));
        break;
    case 1:
        crash(m, who, 5000 + rng_below(&m->rng, 20000));
        break;
    case 2:
        lose_commits(m, who);
        break;
    case 3:
    case 4:
        cut(m);
        break;
    case 5:
        s->behind = 1 + rng_below(&m->rng, 7);
        break;
    case 6:
        s->chain_away = true;
        break;
    case 7:
        if (!s->db.lost)
            s->saved = s->db;
        break;
    }
    push(m, (struct event){.at = m->now + 1000 + rng_below(&m->rng, 8000), .type = EV_MEND});
    push(m, (struct event){.at = m->now + 300 + rng_below(&m->rng, 6000), .type = EV_FAULT});
}

/* ---- the course of events ---- */

static void enqueue(struct model *m, unsigned who)
{
    struct site *s = &m->site[who];
    uint64_t ids[3];
    size_t count = 1 + rng_below(&m->rng, 3);
    for (size_t i = 0; i < count && s->db.row_count < ROWS_MAX; i++) {
        ids[i] = who * 1000 + s->db.row_count + 1;
        s->db.rows[s->db.row_count++] = (struct row){.id = ids[i]};
        m->report->rows++;
        if (s->core)
            step(m, who,
                 &(struct site_event){.type = SITE_EV_ROWS, .rows = {.ids = &ids[i], .count = 1}});
    }
    if (s->db.row_count && chance(m, 150)) {
        size_t i = rng_below(&m->rng, s->db.row_count);
        s->wish[i] = true;
        if (s->core)
            step(m, who, &(struct site_event){.type = SITE_EV_CANCEL, .id = s->db.rows[i].id});
    }
    if (m->now < WILD_MS + CALM_MS)
        push(m, (struct event){.at = m->now + 500 + rng_below(&m->rng, 16000),
                               .type = EV_ENQUEUE,
                               .who = who});
}

static void commit(struct model *m, const struct event *e)
{
    struct site *s = &m->site[e->who];
    struct event answer = {.type = EV_STORED,
                           .who = e->who,
                           .life = e->life,
                           .session = e->session,
                           .batch = e->batch,
                           .at = m->now + 5};
    bool broken = wild(m, 15);
    if (!broken || chance(m, 500))
        for (size_t i = 0; i < e->count; i++)
            commit_one(m, e->who, &e->writes[i]);
    if (broken)
        s->session = ++m->life; /* what was on its way behind it is lost with the connection */
    answer.flag = broken;
    answer.session = s->session;
    push(m, answer);
    if (wild(m, 10))
        crash(m, e->who, 20 + rng_below(&m->rng, 1500));
}

static void happen(struct model *m, const struct event *e)
{
    struct site *s = &m->site[e->who];
    bool lives = s->core && s->life == e->life;
    switch (e->type) {
    case EV_BLOCK:
        block(m);
        return;
    case EV_HEAD:
        show_chain(m, e->who);
        return;
    case EV_ARRIVE:
        if (s->core && !m->cut[e->message.from][e->who])
            step(m, e->who, &(struct site_event){.type = SITE_EV_MESSAGE, .message = e->message});
        return;
    case EV_COMMIT:
        if (lives && s->session == e->session)
            commit(m, e);
        return;
    case EV_STORED:
        if (lives && s->session == e->session) {
            if (e->flag)
                s->session = ++m->life;
            step(m, e->who,
                 &(struct site_event){
                     .type = SITE_EV_STORED,
                     .stored = {.batch = e->batch,
                                .outcome = e->flag ? SITE_STORED_UNKNOWN : SITE_STORED}});
        }
        return;
    case EV_LOADED:
        if (lives)
            loaded(m, e);
        return;
    case EV_SIGNED:
        if (lives)
            step(m, e->who,
                 &(struct site_event){.type = SITE_EV_SIGNED,
                                      .signed_ = {.items = &e->item, .count = 1}});
        return;
    case EV_TICK:
        if (lives && s->tick_at == m->now) {
            s->tick_at = 0;
            step(m, e->who, &(struct site_event){.type = SITE_EV_TICK});
        }
        return;
    case EV_ENQUEUE:
        enqueue(m, e->who);
        return;
    case EV_START:
        start(m, e->who);
        return;
    case EV_FAULT:
        fault(m);
        return;
    case EV_MEND:
        mend(m, false);
        return;
    }
    UNREACHABLE();
}

static bool finished(const struct model *m)
{
    for (unsigned who = 0; who < m->sites; who++)
        for (size_t i = 0; i < m->site[who].db.row_count; i++)
            if (!m->site[who].db.rows[i].ended)
                return false;
    return true;
}

/* After the faults: at most one site coordinates, or it is not long since. */
static void judge_coordinators(struct model *m)
{
    unsigned coordinators = 0;
    for (unsigned who = 0; who < m->sites; who++) {
        struct site_view view = {0};
        if (m->site[who].core)
            site_core_view(m->site[who].core, &view);
        coordinators += view.state >= SITE_ELECT && view.state <= SITE_ACTIVE;
    }
    if (coordinators <= 1 || m->wild)
        m->agreed_at = m->now;
    else if (m->now > m->agreed_at + CONVERGE_MS)
        violation(m, "P10: two sites coordinate for too long after the faults");
}

static void begin_world(struct model *m)
{
    static const uint32_t ranges[] = {3, 8, 20, 1000};
    m->sites = 1 + (unsigned)rng_below(&m->rng, SITES);
    m->own_keys = chance(m, 300);
    m->wild = true;
    m->loss = (uint32_t)rng_below(&m->rng, 200);
    chain_begin(&m->chain, &m->rng);
    m->config = (struct site_config){
        .account = {1},
        .own_keys = m->own_keys,
        .sticky = chance(m, 400),
        .silence_is_down = chance(m, 200),
        .range_blocks = ranges[rng_below(&m->rng, 4)],
        .approvals = chance(m, 400) ? (uint32_t)rng_below(&m->rng, m->sites) : 0,
        .era_blocks = ERA,
        .beat_ms = BEAT_MS,
        .silence_ms = 2000,
        .probe_ms = 1000,
        .retry_ms = 400,
        .propose_ms = 3000,
        .elect_ms = 3000,
        .blind_ms = 8000,
        .own_send_ms = 6000,
        .hole_ms = 800,
        .letter_ms = 20000,
        .flight_max = FLIGHT_MAX,
        .batch_max = BATCH_MAX,
        .work_max = 16,
        .window_max = 6,
    };
    for (unsigned i = 0; i < m->sites; i++) {
        m->site[i].db.final = m->site[i].saved.final = 1;
        push(m, (struct event){.at = rng_below(&m->rng, 500), .type = EV_START, .who = i});
        push(m, (struct event){.at = rng_below(&m->rng, 5000), .type = EV_ENQUEUE, .who = i});
    }
    push(m, (struct event){.at = 10, .type = EV_BLOCK});
    push(m, (struct event){.at = rng_below(&m->rng, 8000), .type = EV_FAULT});
}

static void heal(struct model *m)
{
    m->wild = false;
    mend(m, true);
    for (unsigned i = 0; i < m->sites; i++)
        start(m, i);
}

static void print_event(const struct event *e)
{
    const struct site_message *msg = &e->message;
    printf("%8llu  %d site %u", (unsigned long long)e->at, (int)e->type, e->who);
    if (e->type == EV_ARRIVE)
        printf(" %s from %u (%s), %zu items, %s", site_message_name(msg->type), msg->from,
               site_state_name(msg->state), msg->count,
               site_reason_name(msg->count ? msg->items[0].reason : SITE_REASON_NONE));
    printf("\n");
}

static void run(struct model *m)
{
    uint64_t done_at = 0;
    while (m->count && !m->report->violation) {
        struct event e = pop(m);
        m->now = e.at;
        m->report->events++;
        if (m->wild && m->now >= WILD_MS)
            heal(m);
        if (m->print)
            print_event(&e);
        happen(m, &e);
        free_event(&e);
        judge_coordinators(m);
        if (!done_at && m->now > WILD_MS + CALM_MS + 20000 && finished(m)) {
            done_at = m->now;
            m->report->healed_ms = m->last_end > WILD_MS ? m->last_end - WILD_MS : 0;
        }
        if (!done_at && m->now > WILD_MS + PATIENCE_MS)
            violation(m, "live: a transaction waits, and nothing stands in its way");
        if (done_at && m->now > done_at + SETTLE_MS) {
            if (m->last_message > done_at + SETTLE_MS - 10 * BEAT_MS)
                violation(m, "P36: an idle account sends messages");
            break;
        }
    }
}

void site_model_run(uint64_t seed, bool print, struct site_model_report *ret)
{
    struct model *m = xcalloc(1, sizeof(*m));
    *ret = (struct site_model_report){0};
    m->rng.state = seed * 0x9e3779b97f4a7c15U + 17;
    m->print = print;
    m->report = ret;
    begin_world(m);
    run(m);
    for (unsigned i = 0; i < m->sites; i++)
        stop(m, i);
    for (size_t i = 0; i < m->count; i++)
        free_event(&m->heap[i]);
    chain_done(&m->chain);
    free(m->heap);
    free(m);
}
