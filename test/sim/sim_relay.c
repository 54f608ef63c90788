/* A relay's process: its life, and its accounts as relay/account.c and relay/service.c run them. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static void on_timer(struct world *w, struct event *e);

static void rearm(struct world *w, struct relay *r, int account)
{
    struct sim_account *a = &r->accounts[account];
    timer_set(w, r, &a->timer, manager_deadline(a->manager), account, "account's timer", on_timer);
}

static void on_timer(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    struct sim_account *a = &r->accounts[e->account];
    uint64_t now = local_ms(w, r);
    if (!timer_fired(&a->timer, e))
        return;
    if (manager_deadline(a->manager) <= now)
        account_event(w, r, e->account, &(struct manager_event){.type = MANAGER_EV_TICK});
    rearm(w, r, e->account);
    HOLDS(w, a->timer.at == NEVER || a->timer.at > now, "time", "r%d a%d waits for a time that has come",
          r->index, e->account);
}

bool account_gate(const struct world *w, const struct relay *r, int account)
{
    return r->accounts[account].leader && elector_gate(r->elector, account, local_ms(w, r));
}

static void effect(struct world *w, struct relay *r, int account, const struct manager_effect *fx)
{
    switch (fx->type) {
    case MANAGER_FX_LOAD:
    case MANAGER_FX_ADMIT:
    case MANAGER_FX_RESIGN:
    case MANAGER_FX_FILL:
    case MANAGER_FX_STORE_STATES:
    case MANAGER_FX_STORE_FINISH:
    case MANAGER_FX_STORE_REJECT:
    case MANAGER_FX_STORE_NONCE:
    case MANAGER_FX_STORE_REQUEUE:
    case MANAGER_FX_STORE_PAUSE:
    case MANAGER_FX_STORE_ADOPT:
    case MANAGER_FX_STORE_NOTE:
        store_effect(w, r, account, fx);
        return;
    case MANAGER_FX_LOOK:
        account_poll(w, r, account, (struct poll_event){.type = POLL_EV_WANT_REQUESTS, .serial = fx->number});
        return;
    case MANAGER_FX_WANT_OUTBOX:
        account_poll(w, r, account, (struct poll_event){.type = POLL_EV_WANT_ROWS, .limit = fx->limit});
        return;
    case MANAGER_FX_SUBMIT:
        door_submit(w, r, account, fx);
        return;
    case MANAGER_FX_UNWATCH:
        door_unwatch(w, r, account, tx_of_hash(w, fx->unwatch.hash));
        return;
    case MANAGER_FX_UNWATCH_ALL: /* everything is read again */
        r->accounts[account].beats++;
        door_unwatch_all(w, r, account);
        return;
    case MANAGER_FX_ASK_POOL:
    case MANAGER_FX_ASK_NONCE:
    case MANAGER_FX_ASK_UNFINAL:
        door_ask(w, r, account, fx);
        return;
    case MANAGER_FX_FOLLOW:
        door_follow(w, r, fx->number);
        return;
    case MANAGER_FX_RECHECK_RUNTIME:
        door_recheck_runtime(w, r);
        return;
    case MANAGER_FX_NODE_BEHIND:
        door_expect_height(w, r, fx->number);
        return;
    case MANAGER_FX_READY:
    case MANAGER_FX_ALERT:
        return;
    }
    UNREACHABLE();
}

static const char *const effects[] = {
    "LOAD",        "WANT_OUTBOX",  "ADMIT",        "RESIGN",       "FILL",        "SUBMIT",  "UNWATCH",
    "UNWATCH_ALL", "STORE_STATES", "STORE_FINISH", "STORE_REJECT", "NOTE",        "REQUEUE", "STORE_NONCE",
    "PAUSE",       "STORE_ADOPT",  "ASK_POOL",     "ASK_NONCE",    "ASK_UNFINAL", "FOLLOW",  "RECHECK",
    "NODE_BEHIND", "READY",        "ALERT",        "LOOK"};

static void trace_row(struct world *w, const struct relay *r, int account, const struct manager_effect *fx,
                      size_t count, uint64_t nonce, const char *outcome, const char *text)
{
    note_line(w, "  r%d a%d %s %llu rows %zu %s %s", r->index, account, effects[fx->type],
              (unsigned long long)nonce, count, outcome ? outcome : "", text);
}

/* Of the rows the first one. */
static void trace(struct world *w, const struct relay *r, int account, const struct manager_effect *fx)
{
    switch ((int)fx->type) {
    case MANAGER_FX_ADMIT:
    case MANAGER_FX_RESIGN:
    case MANAGER_FX_FILL:
        trace_row(w, r, account, fx, fx->sign.count, fx->sign.rows[0].nonce, fx->sign.rows[0].outcome,
                  fx->sign.rows[0].error);
        return;
    case MANAGER_FX_STORE_STATES:
        trace_row(w, r, account, fx, fx->states.count, fx->states.rows[0].nonce, fx->states.rows[0].state,
                  fx->states.rows[0].error);
        return;
    case MANAGER_FX_STORE_FINISH:
    case MANAGER_FX_STORE_REJECT:
    case MANAGER_FX_STORE_REQUEUE:
        trace_row(w, r, account, fx, fx->ends.count, fx->ends.rows[0].nonce, fx->ends.rows[0].outcome,
                  fx->ends.rows[0].error);
        return;
    case MANAGER_FX_STORE_NOTE:
        trace_row(w, r, account, fx, fx->notes.count, fx->notes.rows[0].nonce, NULL, fx->notes.rows[0].text);
        return;
    case MANAGER_FX_SUBMIT:
        trace_row(w, r, account, fx, 0, fx->submit.nonce, NULL, "");
        return;
    case MANAGER_FX_UNWATCH:
        trace_row(w, r, account, fx, 0, fx->unwatch.nonce, NULL, "");
        return;
    case MANAGER_FX_STORE_NONCE:
        trace_row(w, r, account, fx, 0, fx->next.nonce, NULL, "");
        return;
    case MANAGER_FX_STORE_PAUSE:
        trace_row(w, r, account, fx, 0, 0, NULL, fx->pause.text);
        return;
    case MANAGER_FX_STORE_ADOPT:
        trace_row(w, r, account, fx, fx->adopt.count, fx->adopt.block, NULL, "");
        return;
    case MANAGER_FX_ALERT:
        trace_row(w, r, account, fx, 0, 0, NULL, fx->text);
        return;
    case MANAGER_FX_ASK_UNFINAL:
    case MANAGER_FX_FOLLOW:
    case MANAGER_FX_NODE_BEHIND:
        trace_row(w, r, account, fx, 0, fx->number, NULL, "");
        return;
    default:
        trace_row(w, r, account, fx, 0, 0, NULL, "");
        return;
    }
}

void account_event(struct world *w, struct relay *r, int account, const struct manager_event *ev)
{
    struct sim_account *a = &r->accounts[account];
    const struct manager_effect *fx;
    size_t count;
    a->beats += ev->type == MANAGER_EV_BEST || ev->type == MANAGER_EV_TICK ||
                ev->type == MANAGER_EV_PROMOTED || ev->type == MANAGER_EV_GATE_OPEN ||
                ev->type == MANAGER_EV_CHAIN_UP;
    duty_event(w, r, account, ev);
    manager_step(a->manager, local_ms(w, r), ev, &fx, &count);
    for (size_t i = 0; i < count; i++) {
        if (w->tracing)
            trace(w, r, account, &fx[i]);
        duty_effect(w, r, account, &fx[i]);
        effect(w, r, account, &fx[i]);
    }
    if (w->events % 16 == 0)
        manager_check(a->manager);
    rearm(w, r, account);
}

/* Nobody rings for a row whose enqueue found the leader awake, so a leader that sleeps has seen it. */
static void check_asleep(struct world *w, const struct relay *r, int account)
{
    const struct session *owner = lock_owner(w, KIND_BELL, account);
    const struct link *l = &r->links[LINK_CONTROL];
    const struct sim_account *a = &r->accounts[account];
    if (!owner || !l->up || owner != l->session || owner->serial != l->serial ||
        w->db.t.accounts[account].epoch != a->epoch)
        return; /* its lock is gone without its knowing: it will hear of it */
    for (int64_t id = 1; id < w->db.t.next_id; id++) {
        const struct id_row *row = &w->db.t.ids[id];
        bool timed = w->db.t.accounts[account].paused || row->not_before_us ||
                     (row->deadline_us && row->deadline_us <= db_now_us(w));
        HOLDS(w, timed || row->stage != STAGE_OUTBOX || row->account != account || !row->silent, "wake",
              "r%d sleeps on account %d while transaction %lld waits, of which nobody was notified", r->index,
              account, (long long)id);
    }
}

static void on_poll_timer(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    if (timer_fired(&r->poll_timer, e))
        account_poll(w, r, 0, (struct poll_event){.type = POLL_EV_TICK});
}

/* Sweeps and merged polls have no counterpart here: doorbells that nobody can have take their place. */
static void carry_out(struct world *w, struct relay *r, const struct poll_effect *fx)
{
    int account = (int)fx->account;
    switch ((int)fx->query) {
    case POLL_QUERY_OUTBOX:
        store_fetch(w, r, account, fx);
        return;
    case POLL_QUERY_REQUESTS:
        store_look(w, r, account, fx);
        return;
    case POLL_QUERY_ARM:
    case POLL_QUERY_DISARM:
        store_arm(w, r, account, fx);
        return;
    default:
        UNREACHABLE();
    }
}

bool account_poll(struct world *w, struct relay *r, int account, struct poll_event ev)
{
    bool asleep[ACCOUNTS];
    for (int a = 0; a < w->plan.accounts; a++)
        asleep[a] = poll_outbox_state(r->poll, (size_t)a) == POLL_ASLEEP;
    ev.account = (size_t)account;
    bool waited = poll_step(r->poll, local_ms(w, r), &ev);
    struct poll_effect fx;
    while (poll_take(r->poll, &fx))
        carry_out(w, r, &fx);
    poll_check(r->poll);
    for (int a = 0; a < w->plan.accounts; a++)
        if (!asleep[a] && poll_outbox_state(r->poll, (size_t)a) == POLL_ASLEEP)
            check_asleep(w, r, a);
    timer_set(w, r, &r->poll_timer, poll_deadline(r->poll), 0, "polls", on_poll_timer);
    return waited;
}

void account_rung(struct world *w, struct relay *r, int account)
{
    account_poll(w, r, account, (struct poll_event){.type = POLL_EV_RANG});
}

static void chain_facts(struct world *w, struct relay *r, int account)
{
    const struct door *d = &r->door;
    if (d->ready)
        account_event(w, r, account,
                      &(struct manager_event){.type = MANAGER_EV_CHAIN_UP,
                                              .chain = {.finalized = d->finalized,
                                                        .best = d->best,
                                                        .best_known = r->saw_best,
                                                        .spec_version = d->spec,
                                                        .transaction_version = version_of(w, d->spec)}});
}

void account_promote(struct world *w, struct relay *r, int account, int64_t epoch)
{
    struct sim_account *a = &r->accounts[account];
    note(w, "  r%d leads a%d under epoch %lld", r->index, account, (long long)epoch);
    a->generation++;
    a->leader = true;
    a->epoch = epoch;
    a->led_since = w->now;
    account_poll(w, r, account, (struct poll_event){.type = POLL_EV_LED});
    account_event(w, r, account, &(struct manager_event){.type = MANAGER_EV_PROMOTED, .epoch = epoch});
    chain_facts(w, r, account);
}

void account_demote(struct world *w, struct relay *r, int account)
{
    struct sim_account *a = &r->accounts[account];
    if (!a->leader)
        return;
    note(w, "  r%d leads a%d no more", r->index, account);
    a->generation++;
    a->leader = false;
    a->epoch = 0;
    account_event(w, r, account, &(struct manager_event){.type = MANAGER_EV_DEMOTED});
    door_unwatch_all(w, r, account);
    account_poll(w, r, account, (struct poll_event){.type = POLL_EV_NOT_LED});
}

/* ---- the service ---- */

/* Leadership begins once both the database and a node have been there. */
static void start_leading(struct world *w, struct relay *r)
{
    if (r->running || r->draining || !r->store_seen_up || !r->door.ready)
        return;
    r->running = true;
    for (int a = 0; a < w->plan.accounts; a++)
        elector_add(r->elector);
    elect_feed(w, r, &(struct elector_event){.type = ELECTOR_EV_STORE_UP});
}

void relay_store_moved(struct world *w, struct relay *r)
{
    if (r->store_up == r->store_seen_up)
        return;
    r->store_seen_up = r->store_up;
    if (r->running && !r->draining)
        elect_feed(
            w, r, &(struct elector_event){.type = r->store_up ? ELECTOR_EV_STORE_UP : ELECTOR_EV_STORE_DOWN});
    for (int a = 0; r->store_up && !w->plan.use_lock && a < w->plan.accounts; a++)
        if (r->accounts[a].leader)
            account_event(w, r, a, &(struct manager_event){.type = MANAGER_EV_STORE_BACK});
    start_leading(w, r);
}

void relay_chain_ready(struct world *w, struct relay *r)
{
    start_leading(w, r);
    for (int a = 0; a < w->plan.accounts; a++)
        if (r->accounts[a].leader)
            chain_facts(w, r, a);
}

static struct manager *new_manager(const struct world *w, int account)
{
    return manager_new(&(struct manager_config){.window_max = 16,
                                                .keyless = w->plan.keyless[account],
                                                .batch_max = 6,
                                                .unanswered_max = 6,
                                                .era_period = w->plan.era,
                                                .reprobe_blocks = 5,
                                                .state_batch_max = 8});
}

void relay_start(struct world *w, struct relay *r)
{
    uint32_t life = r->life + 1;
    struct link links[LINKS];
    struct door door = r->door;
    memcpy(links, r->links, sizeof(links));
    int index = r->index;
    *r = (struct relay){.index = index, .life = life, .alive = true};
    memcpy(r->links, links, sizeof(links)); /* numbers go on */
    r->door.number = door.number;
    r->door.next_sub = door.next_sub;
    r->held_end = &r->held;
    r->holder = (index + 1) * 100000 + (int)life;
    r->clock_offset_us = (int64_t)between(w, SECOND, 1000000 * SECOND);
    r->clock_ppm = (int64_t)between(w, 0, 400) - 200;
    for (int a = 0; a < w->plan.accounts; a++) {
        r->accounts[a].manager = new_manager(w, a);
        r->accounts[a].timer.at = NEVER;
    }
    r->poll_timer.at = NEVER;
    r->poll = poll_new(&(struct poll_config){.accounts = (size_t)w->plan.accounts, .doorbells = true},
                       local_ms(w, r));
    locks_free(r);
    elect_start(w, r);
    store_links(w, r);
    door_open(w, r);
}

void relay_free(struct world *w, struct relay *r)
{
    relay_drop_held(w, r);
    for (int a = 0; a < ACCOUNTS; a++) {
        for (struct submit *s = r->accounts[a].submits, *next; s; s = next) {
            next = s->next;
            free(s);
        }
        r->accounts[a].submits = NULL;
        r->accounts[a].timer.at = NEVER;
        if (r->accounts[a].manager) {
            struct manager_moves moved = manager_moved(r->accounts[a].manager);
            w->moved.phases |= moved.phases;
            w->moved.rows |= moved.rows;
        }
        r->accounts[a].manager = manager_free(r->accounts[a].manager);
    }
    for (struct told *t = r->told, *next; t; t = next) {
        next = t->next;
        free(t);
    }
    r->told = NULL;
    r->elector = elector_free(r->elector);
    r->poll = poll_free(r->poll);
    r->alive = r->paused = false;
}

/* kill -9, or the loss of its host: the peers find out at once, or after a while. */
void relay_kill(struct world *w, struct relay *r, bool host)
{
    note(w, "r%d dies%s", r->index, host ? " with its host" : "");
    w->stats.crashes++;
    for (int k = 0; k < LINKS; k++)
        link_close(w, &r->links[k], host);
    locks_free(r);
    door_close(w, r);
    relay_free(w, r);
}

static void start_again(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->a];
    if (!r->alive)
        relay_start(w, r);
}

void relay_start_later(struct world *w, struct relay *r, uint64_t us)
{
    later(w, us, "starts again", start_again)->a = (uint32_t)r->index;
}

static void end_of_process(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    relay_kill(w, r, false);
    relay_start_later(w, r, between(w, 100 * MS, 15 * SECOND));
}

void relay_drained(struct world *w, struct relay *r)
{
    for (int a = 0; a < w->plan.accounts; a++)
        account_demote(w, r, a);
    relay_later(w, r, 0, "end of process", end_of_process);
}

/* service_stop: first the elections give everything up, then the process ends. */
void relay_drain(struct world *w, struct relay *r)
{
    if (r->draining)
        return;
    r->draining = true;
    if (r->running)
        elect_feed(w, r, &(struct elector_event){.type = ELECTOR_EV_DRAIN});
    else
        relay_drained(w, r);
}

static void goes_on(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->a];
    if (r->alive && r->paused && r->life == e->b)
        relay_resume(w, r);
}

void relay_stop(struct world *w, struct relay *r, uint64_t us)
{
    if (r->paused)
        return;
    note(w, "r%d is stopped for %llu ms", r->index, (unsigned long long)(us / MS));
    r->paused = true;
    w->stats.pauses++;
    struct event *e = later(w, us, "goes on", goes_on);
    e->a = (uint32_t)r->index;
    e->b = r->life;
}
