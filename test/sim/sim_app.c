/* Applications: transactions that enqueue, stay open for a while, commit or roll back, and
 * cancel. They know nothing of relays. */
#include <stdio.h>
#include <string.h>

#include "sim.h"
#include "store/operator.h"

enum { ROWS_MAX = 4, OPEN_MAX = 16 };

struct app_tx {
    struct mem_session *session; /* NULL: this place is free */
    uint32_t starts;             /* of the database when it began */
    int account, count;
    int64_t ids[ROWS_MAX];
    bool committed; /* visible, its locks are not given back yet */
};

static struct app_tx slots[OPEN_MAX];

static struct app_tx *free_slot(void)
{
    for (int i = 0; i < OPEN_MAX; i++)
        if (!slots[i].session)
            return &slots[i];
    return NULL;
}

static void done(struct world *w, struct app_tx *t)
{
    for (int i = 0; i < t->count && !t->committed; i++)
        w->calls[t->ids[i]].gone = true;
    mem_session_end(t->session);
    *t = (struct app_tx){0};
}

static void release(struct world *w, struct event *e)
{
    struct app_tx *t = e->p;
    if (t->session && t->starts == e->b && w->db.starts == e->b && t->committed)
        done(w, t);
}

/* Visible first, then unlocked. */
static void end_tx(struct world *w, struct event *e)
{
    struct app_tx *t = e->p;
    if (!t->session || t->starts != w->db.starts || t->starts != e->b || t->committed)
        return; /* the database has rolled it back */
    if (e->a) {
        mem_rollback(t->session);
        done(w, t);
        return;
    }
    mem_commit(t->session);
    for (int i = 0; i < t->count; i++)
        signed_commit(w, t->ids[i]);
    for (int i = 0; i < t->count; i++)
        w->must_end[t->ids[i]] = true;
    w->stats.enqueued += (uint64_t)t->count;
    t->committed = true;
    struct event *then = later(w, between(w, 0, 300), "lock is released", release);
    then->p = t;
    then->b = t->starts;
}

static void amount_text(char out[24], int64_t v)
{
    snprintf(out, 24, "%lld", (long long)v);
}

struct wish {
    int64_t tip, not_before_us;
    int32_t priority;
    uint32_t retries;
};

static void options(struct world *w, struct call *c, struct wish *x)
{
    if (has(w, FEATURE_TIPS) && chance(w, 30))
        x->tip = (int64_t)between(w, 0, 80);
    if (has(w, FEATURE_TIPS) && chance(w, 20))
        c->max_tip = (x->tip > 0 ? x->tip : 0) + (int64_t)between(w, 0, 100);
    if (has(w, FEATURE_RETRIES) && chance(w, 60))
        x->retries = (uint32_t)between(w, 1, 5);
    if (has(w, FEATURE_LAST_BLOCK) && chance(w, 25))
        c->deadline_block =
            w->chain.blocks[w->chain.final].number + between(w, 1, chance(w, 60) ? 24 : 90);
}

/* The database's clock tells time in microseconds, the request in milliseconds: what is wished
 * for is rounded. */
static int64_t whole_ms(int64_t us)
{
    return us ? us / 1000 : 0;
}

static void enqueue(struct world *w, const struct app_tx *t, int64_t id, const struct wish *x)
{
    struct call *c = &w->calls[id];
    char tip[24], max_tip[24];
    uint8_t call[CALL_LEN];
    memcpy(call, &id, CALL_LEN);
    amount_text(tip, x->tip);
    amount_text(max_tip, c->max_tip);
    struct store_enqueue r = {.account = account_alias(t->account),
                              .call = {call, CALL_LEN},
                              .priority = x->priority,
                              .not_before_ms = whole_ms(x->not_before_us),
                              .deadline_ms = whole_ms(c->deadline_us),
                              .guard = c->guard,
                              .tip = x->tip >= 0 ? tip : NULL,
                              .max_tip = c->max_tip >= 0 ? max_tip : NULL,
                              .deadline_block = (int64_t)c->deadline_block,
                              .retries = x->retries};
    mem_session_run(t->session, MEM_REQUEST_enqueue, &r.req);
    HOLDS(w, !r.req.err.code && r.id == id, "enqueue",
          "transaction %lld is refused, or is called %lld: %s", (long long)id, (long long)r.id,
          r.req.err.text);
    store_req_done(&r.req);
}

static void draw_call(struct world *w, struct call *c, struct wish *x)
{
    int64_t now = db_now_us(w);
    if (chance(w, 10))
        x->not_before_us = now + (int64_t)between(w, 1, 10 * SECOND);
    if (w->plan.era && chance(w, 8))
        c->guard = w->chain.spec - (uint32_t)chance(w, 10);
    if (chance(w, 15)) /* often shorter than a transaction needs */
        c->deadline_us = now + (int64_t)between(w, 1, chance(w, 70) ? 8 * SECOND : 60 * SECOND);
    options(w, c, x);
    if (!c->deadline_us)
        return;
    int64_t earliest =
        x->not_before_us > now ? x->not_before_us : now; /* it must be later, or is refused */
    if (c->deadline_us < earliest + 2000)
        c->deadline_us = earliest + 2000;
    c->deadline_us = c->deadline_us / 1000 * 1000;
}

static void begin_tx(struct world *w)
{
    struct app_tx *t = free_slot();
    if (!t || !w->db.up || w->next_id + ROWS_MAX >= IDS)
        return;
    *t = (struct app_tx){.starts = w->db.starts};
    t->account = (int)rng_below(&w->rng, (uint64_t)w->plan.accounts);
    t->count = (int)between(w, 1, ROWS_MAX);
    t->session = mem_session_new(w->db.mem, t, w->plan.use_lock);
    mem_begin(t->session);
    for (int i = 0; i < t->count; i++) {
        int64_t id = t->ids[i] = w->next_id++;
        struct call *c = &w->calls[id];
        struct wish x = {.tip = -1};
        *c = (struct call){
            .asked = true, .account = t->account, .max_tip = -1, .bump = -1, .noted = -1};
        x.priority = chance(w, 10) ? (int32_t)between(w, 0, 4) - 2 : 0;
        draw_call(w, c, &x);
        if (!signed_elsewhere(w, t->session, id))
            enqueue(w, t, id, &x);
    }
    uint64_t open = chance(w, 60)   ? between(w, 100, 5 * MS)
                    : chance(w, 80) ? between(w, 5 * MS, 800 * MS)
                                    : between(w, SECOND, 8 * SECOND);
    struct event *e = later(w, open, "application commits", end_tx);
    e->p = t;
    e->a = chance(w, 10); /* it rolls back */
    e->b = t->starts;
}

/* Whoever sends it himself must not ask for its end; of an account without a key nobody could
 * keep it. */
static void cancel_one(struct world *w)
{
    if (!w->db.up || w->next_id < 2)
        return;
    int64_t id = (int64_t)between(w, 1, (uint64_t)w->next_id - 1);
    struct call *c = &w->calls[id];
    const struct mem_row *r = mem_row_of(w->db.mem, id);
    if (!r || r->held || c->self_sent ||
        (c->presigned && w->plan.keyless[c->account] && r->table == MEM_PENDING) ||
        (c->presigned && r->table != MEM_PENDING && db_doubtful(w, c->account)))
        return;
    c->cancelled = true;
    struct store_ask ask = {.id = id};
    mem_session_run(w->db.desk, MEM_REQUEST_cancel, &ask.req);
    HOLDS(w, !ask.req.err.code, "cancel", "transaction %lld cannot be cancelled: %s", (long long)id,
          ask.req.err.text);
    store_req_done(&ask.req);
}

static void act(struct world *w, struct event *e)
{
    (void)e;
    if (w->now >= w->plan.faults_end)
        return;
    if (has(w, FEATURE_BUMPS) && chance(w, 15))
        operator_bumps(w);
    if (chance(w, 8))
        cancel_one(w);
    else
        begin_tx(w);
    uint64_t mean = w->plan.faults_end / (w->plan.transactions ? w->plan.transactions : 1);
    later(w, chance(w, 30) ? between(w, 0, 2 * MS) : between(w, 1, 2 * mean), "application acts",
          act);
}

/* Every transaction that was open is rolled back, and its locks are gone; what was committed
 * stays. */
void app_database_lost(struct world *w)
{
    for (int i = 0; i < OPEN_MAX; i++)
        if (slots[i].session)
            done(w, &slots[i]);
}

void app_start(struct world *w)
{
    memset(slots, 0, sizeof(slots)); /* their sessions went with the last world's database */
    later(w, between(w, 0, SECOND), "application acts", act);
}
