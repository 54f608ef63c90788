/* Applications: transactions that enqueue, stay open for a while, commit or roll back, and cancel. They know
 * nothing of relays. */
#include <string.h>

#include "sim.h"

enum { ROWS_MAX = 4 };

struct app_tx {
    bool open, rings;
    uint32_t starts; /* of the database when it began */
    int account, count;
    int64_t ids[ROWS_MAX];
};

static void unlock(struct world *w, struct event *e)
{
    if (w->db.starts == e->b)
        w->db.bell_shared[e->a]--;
}

static void release(struct world *w, const struct app_tx *t, uint64_t delay)
{
    if (t->rings)
        return; /* it does not have the lock */
    struct event *e = later(w, delay, "lock is released", unlock);
    e->a = (uint32_t)t->account;
    e->b = t->starts;
}

static void roll_back(struct world *w, const struct app_tx *t)
{
    for (int i = 0; i < t->count; i++)
        if (w->db.t.ids[t->ids[i]].stage == STAGE_OPEN)
            w->db.t.ids[t->ids[i]].stage = STAGE_NONE;
}

static void end_tx(struct world *w, struct event *e)
{
    struct app_tx *t = e->p;
    bool lost = t->starts != w->db.starts || !w->db.up;
    if (lost || e->a) {
        roll_back(w, t);
        if (!lost)
            release(w, t, 0);
    } else {
        for (int i = 0; i < t->count; i++) {
            struct id_row *row = &w->db.t.ids[t->ids[i]];
            row->stage = STAGE_OUTBOX;
            row->silent = !t->rings;
            signed_commit(w, t->ids[i]);
            w->must_end[t->ids[i]] = true;
            w->open++;
        }
        w->stats.enqueued += (uint64_t)t->count;
        if (t->rings)
            notify_signal(w, "wake", t->account);
        release(w, t, between(w, 0, 300)); /* visible first, then unlocked */
    }
    memset(t, 0, sizeof(*t));
}

enum { OPEN_MAX = 16 };
static _Thread_local struct app_tx slots[OPEN_MAX];

static struct app_tx *free_slot(void)
{
    for (int i = 0; i < OPEN_MAX; i++)
        if (!slots[i].open)
            return &slots[i];
    return NULL;
}

static void options(struct world *w, struct id_row *r)
{
    if (has(w, FEATURE_TIPS) && chance(w, 30))
        r->tip = (int64_t)between(w, 0, 80);
    if (has(w, FEATURE_TIPS) && chance(w, 20))
        r->max_tip = (r->tip > 0 ? r->tip : 0) + (int64_t)between(w, 0, 100);
    if (has(w, FEATURE_RETRIES) && chance(w, 60))
        r->retries = (uint32_t)between(w, 1, 5);
    if (has(w, FEATURE_LAST_BLOCK) && chance(w, 25))
        r->deadline_block = w->chain.blocks[w->chain.final].number + between(w, 1, chance(w, 60) ? 24 : 90);
}

static void begin_tx(struct world *w)
{
    struct app_tx *t = free_slot();
    struct tables *d = &w->db.t;
    if (!t || !w->db.up || d->next_id + ROWS_MAX >= IDS)
        return;
    *t = (struct app_tx){.open = true, .starts = w->db.starts};
    t->account = (int)rng_below(&w->rng, (uint64_t)w->plan.accounts);
    t->count = (int)between(w, 1, ROWS_MAX);
    int64_t now = db_now_us(w);
    for (int i = 0; i < t->count; i++) {
        t->ids[i] = d->next_id++;
        d->ids[t->ids[i]] = (struct id_row){.stage = STAGE_OPEN,
                                            .account = t->account,
                                            .nonce = -1,
                                            .tip = -1,
                                            .max_tip = -1,
                                            .bump = -1,
                                            .priority = chance(w, 10) ? (int32_t)between(w, 0, 4) - 2 : 0};
        if (chance(w, 10))
            d->ids[t->ids[i]].not_before_us = now + (int64_t)between(w, 1, 10 * SECOND);
        if (w->plan.era && chance(w, 8))
            d->ids[t->ids[i]].guard = w->chain.spec - (uint32_t)chance(w, 10);
        if (chance(w, 15)) /* often shorter than a transaction needs */
            d->ids[t->ids[i]].deadline_us =
                now + (int64_t)between(w, 1, chance(w, 70) ? 8 * SECOND : 60 * SECOND);
        options(w, &d->ids[t->ids[i]]);
        signed_elsewhere(w, t->ids[i]);
    }
    t->rings = lock_owner(w, KIND_BELL, t->account) != NULL;
    if (!t->rings)
        w->db.bell_shared[t->account]++;
    uint64_t open = chance(w, 60)   ? between(w, 100, 5 * MS)
                    : chance(w, 80) ? between(w, 5 * MS, 800 * MS)
                                    : between(w, SECOND, 8 * SECOND);
    struct event *e = later(w, open, "application commits", end_tx);
    e->p = t;
    e->a = chance(w, 10); /* it rolls back */
}

static void cancel_one(struct world *w)
{
    if (!w->db.up || w->db.t.next_id < 2)
        return;
    rows_cancel(w, (int64_t)between(w, 1, (uint64_t)w->db.t.next_id - 1));
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
    later(w, chance(w, 30) ? between(w, 0, 2 * MS) : between(w, 1, 2 * mean), "application acts", act);
}

/* Every transaction that was open is rolled back, and its locks are gone. */
void app_database_lost(struct world *w)
{
    for (int i = 0; i < OPEN_MAX; i++)
        if (slots[i].open)
            roll_back(w, &slots[i]);
    memset(w->db.bell_shared, 0, sizeof(w->db.bell_shared));
}

void app_start(struct world *w)
{
    memset(slots, 0, sizeof(slots));
    later(w, between(w, 0, SECOND), "application acts", act);
}
