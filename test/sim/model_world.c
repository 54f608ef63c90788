/* The door of the model, its faults, and the checks that hold for the whole run. */
#include <stdlib.h>
#include <string.h>

#include "model.h"

bool chance(struct world *w, unsigned percent)
{
    return percent && rng_below(&w->rng, 100) < percent;
}

struct world *world_new(uint64_t seed)
{
    struct world *w = xcalloc(1, sizeof(*w));
    w->rng.state = seed;
    w->m = manager_new(&(struct manager_config){
        .window_max = 48, .batch_max = 16, .unanswered_max = 12, .era_period = ERA, .look_ms = UINT32_MAX});
    w->now = 1;
    w->faults = true;
    w->txs = xcalloc(TX_MAX, sizeof(*w->txs));
    w->blocks = xcalloc(BLOCK_MAX, sizeof(*w->blocks));
    w->pending = xcalloc(NONCE_MAX, sizeof(*w->pending));
    w->nonce_finished = xcalloc(NONCE_MAX, sizeof(bool));
    w->outbox = xcalloc(ID_MAX, sizeof(*w->outbox));
    w->ended = xcalloc(ID_MAX, sizeof(*w->ended));
    w->effects = xcalloc(ID_MAX, sizeof(*w->effects));
    w->spec = w->door_spec = w->blocks[0].spec = 100;
    w->pool_limit = 40;
    w->next_id = 1;
    w->beats = 1;
    w->fault_every = 8u << rng_below(&w->rng, 6); /* from hostile to fair */
    w->gate_open = true;
    for (int i = 0; i < 3; i++)
        chain_block(w);
    chain_finalize(w);
    return w;
}

void world_free(struct world *w)
{
    store_break(w, false);
    manager_free(w->m);
    free(w->txs);
    free(w->blocks);
    free(w->pending);
    free(w->nonce_finished);
    free(w->outbox);
    free(w->ended);
    free(w->effects);
    free(w);
}

void say(struct world *w, struct node_event ev)
{
    if (!w->chain_up)
        return;
    w->events[w->event_tail++ % QUEUE_MAX] = ev;
    INVARIANT(w->event_tail - w->event_head < QUEUE_MAX);
}

/* ---- effects ---- */

static void ask_node(struct world *w, const struct manager_effect *fx)
{
    uint32_t tx = 0;
    if (fx->type == MANAGER_FX_SUBMIT) {
        tx = tx_of_hash(fx->hash);
        /* Nothing is sent that was not committed before. */
        INVARIANT(tx < w->tx_count && w->txs[tx].committed && w->txs[tx].nonce == fx->nonce);
        INVARIANT(fx->bytes_len == BYTES_LEN && !memcmp(fx->bytes, &tx, sizeof(tx)));
        INVARIANT(w->txs[tx].sent_beat != w->beats); /* no hot loop */
        w->txs[tx].sent_beat = w->beats;
        w->submits++;
    }
    w->requests[w->request_tail++ % QUEUE_MAX] = (struct node_request){fx->type, tx};
    INVARIANT(w->request_tail - w->request_head < QUEUE_MAX);
}

static void unwatch_all(struct world *w)
{
    for (uint32_t i = 0; i < w->tx_count; i++)
        w->txs[i].watched = false;
    for (size_t i = w->request_head; i != w->request_tail; i++) /* sent all the same, answered to nobody */
        if (w->requests[i % QUEUE_MAX].type == MANAGER_FX_SUBMIT)
            w->requests[i % QUEUE_MAX].type = MANAGER_FX_UNWATCH;
    for (size_t i = w->event_head; i != w->event_tail; i++)
        if (w->events[i % QUEUE_MAX].type == MANAGER_EV_SUBMIT_REPLY ||
            w->events[i % QUEUE_MAX].type == MANAGER_EV_STATUS)
            w->events[i % QUEUE_MAX].type = MANAGER_EV_TICK;
}

static void carry(struct world *w, const struct manager_effect *fx)
{
    switch (fx->type) {
    case MANAGER_FX_WANT_OUTBOX:
        INVARIANT(fx->limit > 0);
        w->wanted = true;
        w->want = fx->limit;
        return;
    case MANAGER_FX_SUBMIT:
    case MANAGER_FX_ASK_POOL:
    case MANAGER_FX_ASK_NONCE:
        ask_node(w, fx);
        return;
    case MANAGER_FX_UNWATCH:
        w->txs[tx_of_hash(fx->hash)].watched = false;
        return;
    case MANAGER_FX_UNWATCH_ALL:
        w->reloads++;
        w->beats++;
        unwatch_all(w);
        return;
    case MANAGER_FX_FOLLOW:
        if (!w->stream || fx->number < w->follow_next)
            w->follow_next = fx->number;
        w->stream = true;
        return;
    case MANAGER_FX_RECHECK_RUNTIME:
        if (w->door_spec != w->spec)
            say(w, (struct node_event){.type = MANAGER_EV_RUNTIME});
        return;
    case MANAGER_FX_NODE_BEHIND: /* one node only */
    case MANAGER_FX_READY:
    case MANAGER_FX_ALERT:
    case MANAGER_FX_LOOK: /* switched off: this world knows no deadlines */
        return;
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
        store_push(w, fx);
        return;
    }
    UNREACHABLE();
}

void feed(struct world *w, struct manager_event ev)
{
    const struct manager_effect *fx;
    size_t count;
    uint64_t last = 0;
    manager_step(w->m, w->now, &ev, &fx, &count);
    if (w->steps++ % 16 == 0)
        manager_check(w->m);
    INVARIANT(count == 0 || ev.type != MANAGER_EV_DEMOTED);
    for (size_t i = 0; i < count; i++) {
        if (fx[i].type == MANAGER_FX_SUBMIT) { /* within a step nonces rise */
            INVARIANT(fx[i].nonce >= last);
            last = fx[i].nonce;
        }
        carry(w, &fx[i]);
    }
}

/* ---- what is under way ---- */

static void learn_runtime(struct world *w)
{
    if (w->door_spec == w->spec)
        return;
    w->door_spec = w->spec;
    feed(w, (struct manager_event){
                .type = MANAGER_EV_RUNTIME, .spec_version = w->spec, .transaction_version = 1});
}

static void deliver_event(struct world *w)
{
    if (w->event_head == w->event_tail)
        return;
    struct node_event e = w->events[w->event_head++ % QUEUE_MAX];
    if (e.type == MANAGER_EV_BEST || e.code == ERR_NOT_LEADER)
        w->beats++;
    uint8_t hash[32];
    hash_of_tx(e.tx, hash);
    if (e.type == MANAGER_EV_RUNTIME) {
        learn_runtime(w);
        return;
    }
    struct manager_event ev = {.type = e.type,
                               .code = e.code,
                               .rpc_code = e.rpc_code,
                               .text = e.text,
                               .status = e.status,
                               .hash = hash,
                               .block_hash = e.has_hash ? e.hash : NULL,
                               .number = e.number,
                               .best = e.number};
    ev.nonce = e.type == MANAGER_EV_NONCE ? e.number : w->txs[e.tx].nonce;
    if (e.type == MANAGER_EV_POOL) { /* the hashes were taken when the node answered: tx holds how many */
        uint8_t(*list)[32] = xcalloc(POOL_MAX, 32);
        for (uint32_t i = 0; i < w->pool_count; i++)
            if (chain_ready(w, w->pool[i]))
                hash_of_tx(w->pool[i], list[ev.count++]);
        ev.hashes = (const uint8_t(*)[32])list;
        feed(w, ev);
        free(list);
        return;
    }
    feed(w, ev);
}

static void run_request(struct world *w)
{
    if (w->request_head == w->request_tail)
        return;
    struct node_request r = w->requests[w->request_head++ % QUEUE_MAX];
    struct node_event reply;
    switch ((int)r.type) {
    case MANAGER_FX_SUBMIT:
        if (!w->gate_open)
            reply = (struct node_event){.type = MANAGER_EV_SUBMIT_REPLY, .tx = r.tx, .code = ERR_NOT_LEADER};
        else
            chain_submit(w, r.tx, &reply);
        if (w->faults && w->gate_open && chance(w, 2))
            reply = (struct node_event){.type = MANAGER_EV_SUBMIT_REPLY, .tx = r.tx, .code = ERR_TIMEOUT};
        say(w, reply);
        if (!reply.code)
            say(w, (struct node_event){.type = MANAGER_EV_STATUS,
                                       .tx = r.tx,
                                       .status = chain_ready(w, r.tx) ? TX_READY : TX_FUTURE});
        return;
    case MANAGER_FX_UNWATCH: /* forgotten before it went out */
        chain_submit(w, r.tx, &reply);
        w->txs[r.tx].watched = false;
        return;
    case MANAGER_FX_ASK_POOL:
        say(w, (struct node_event){.type = MANAGER_EV_POOL});
        return;
    default:
        say(w, (struct node_event){.type = MANAGER_EV_NONCE, .number = chain_nonce(w, w->best)});
    }
}

static void deliver_finalized(struct world *w)
{
    if (!w->leading || !w->chain_up || !w->stream || w->follow_next > w->finalized)
        return;
    uint64_t number = w->follow_next++;
    const struct block *b = &w->blocks[number];
    struct manager_included rows[BLOCK_TXS];
    struct manager_block block = {.number = number, .account_nonce = b->nonce_after, .included = rows};
    if (w->faults && chance(w, 5))
        block.account_nonce = UINT64_MAX; /* pruned */
    hash_of_block(w, number, block.hash);
    for (uint32_t i = 0; i < b->count; i++) {
        struct manager_included *x = &rows[block.included_count++];
        *x = (struct manager_included){.index = i, .nonce = w->txs[b->txs[i]].nonce, .own_signer = true};
        x->result.outcome = w->txs[b->txs[i]].id % 11 == 5 ? DISPATCH_FAILED : DISPATCH_OK;
        hash_of_tx(b->txs[i], x->hash);
    }
    feed(w, (struct manager_event){.type = MANAGER_EV_FINALIZED, .block = &block});
}

static void deliver_outbox(struct world *w)
{
    if (!w->wanted || !w->outbox_count || !w->chain_up)
        return;
    size_t count = w->outbox_count < w->want ? w->outbox_count : w->want;
    struct manager_outbox_row *rows = xcalloc(count, sizeof(*rows));
    uint8_t *calls = xcalloc(count, CALL_LEN);
    for (size_t i = 0; i < count; i++) {
        memcpy(calls + i * CALL_LEN, &w->outbox[i], CALL_LEN);
        rows[i] = (struct manager_outbox_row){
            .id = w->outbox[i], .call = calls + i * CALL_LEN, .call_len = CALL_LEN};
        if (never_admitted(w->outbox[i]))
            rows[i].bad = "call 0 does not decode";
    }
    w->wanted = false;
    feed(w, (struct manager_event){.type = MANAGER_EV_OUTBOX, .outbox = rows, .count = count});
    free(rows);
    free(calls);
}

static void pass_time(struct world *w)
{
    w->now += rng_between(&w->rng, 1, 1500);
    if (!w->leading || manager_deadline(w->m) > w->now)
        return;
    w->beats++;
    feed(w, (struct manager_event){.type = MANAGER_EV_TICK});
    INVARIANT(manager_deadline(w->m) > w->now); /* a deadline that is met is not set again */
}

/* ---- faults ---- */

static void connect_node(struct world *w)
{
    if (!w->leading || w->chain_up)
        return;
    w->chain_up = true;
    w->door_spec = w->spec;
    feed(w, (struct manager_event){.type = MANAGER_EV_CHAIN_UP,
                                   .number = w->finalized,
                                   .best = w->best,
                                   .spec_version = w->spec,
                                   .transaction_version = 1});
}

/* Requests under way reach the node or do not; what it said is lost. */
static void lose_node(struct world *w, bool answer)
{
    struct node_event dropped;
    uint32_t *lost = xcalloc(QUEUE_MAX, sizeof(*lost));
    size_t count = 0;
    bool questions = false;
    for (size_t i = w->event_head; i != w->event_tail; i++) {
        const struct node_event *e = &w->events[i % QUEUE_MAX];
        if (e->type == MANAGER_EV_SUBMIT_REPLY)
            lost[count++] = e->tx;
        questions = questions || e->type == MANAGER_EV_POOL || e->type == MANAGER_EV_NONCE;
    }
    w->event_head = w->event_tail;
    w->chain_up = false;
    bool alive = true;
    while (w->request_head != w->request_tail) {
        struct node_request r = w->requests[w->request_head++ % QUEUE_MAX];
        alive = alive && chance(w, 60);
        bool submit = r.type == MANAGER_FX_SUBMIT;
        if (alive && (submit || r.type == MANAGER_FX_UNWATCH))
            chain_submit(w, r.tx, &dropped);
        if (submit)
            lost[count++] = r.tx;
        questions = questions || r.type == MANAGER_FX_ASK_POOL || r.type == MANAGER_FX_ASK_NONCE;
    }
    if (answer)
        feed(w, (struct manager_event){.type = MANAGER_EV_CHAIN_DOWN});
    for (size_t i = 0; answer && i < count; i++) {
        uint8_t hash[32];
        hash_of_tx(lost[i], hash);
        feed(w, (struct manager_event){.type = MANAGER_EV_SUBMIT_REPLY,
                                       .nonce = w->txs[lost[i]].nonce,
                                       .hash = hash,
                                       .code = ERR_NET});
    }
    for (uint32_t i = 0; i < w->tx_count; i++) {
        uint8_t hash[32];
        bool told = w->txs[i].watched && answer;
        w->txs[i].watched = false;
        hash_of_tx(i, hash);
        if (told)
            feed(w, (struct manager_event){
                        .type = MANAGER_EV_WATCH_LOST, .nonce = w->txs[i].nonce, .hash = hash});
    }
    if (answer && questions) {
        feed(w, (struct manager_event){.type = MANAGER_EV_POOL, .failed = true});
        feed(w, (struct manager_event){.type = MANAGER_EV_NONCE, .failed = true});
    }
    free(lost);
}

static void promote(struct world *w)
{
    w->leading = true;
    w->wanted = w->stream = false;
    w->beats++;
    feed(w, (struct manager_event){.type = MANAGER_EV_PROMOTED, .epoch = ++w->epoch});
    if (!chance(w, 20))
        connect_node(w);
}

/* kill -9, or a lost lock: the next leader starts from the table. */
static void crash(struct world *w)
{
    w->crashes++;
    w->leading = false;
    lose_node(w, false);
    store_break(w, false);
    feed(w, (struct manager_event){.type = MANAGER_EV_DEMOTED});
    w->gate_open = true;
    promote(w);
}

static void set_gate(struct world *w, bool open)
{
    w->gate_open = open;
    w->beats++;
    if (open && w->leading)
        feed(w, (struct manager_event){.type = MANAGER_EV_GATE_OPEN});
}

static void upgrade(struct world *w)
{
    w->spec++;
    chain_block(w);
    if (chance(w, 70))
        say(w, (struct node_event){.type = MANAGER_EV_RUNTIME});
}

static void fault(struct world *w)
{
    switch (rng_below(&w->rng, 12)) {
    case 0:
        crash(w);
        return;
    case 1:
    case 2:
        w->store_breaks = true; /* at the next write */
        return;
    case 3:
    case 4:
        lose_node(w, true);
        return;
    case 5:
    case 6:
        chain_reorg(w, rng_between(&w->rng, 1, 4));
        return;
    case 7:
        for (uint64_t n = rng_between(&w->rng, 1, 12); n; n--)
            chain_evict(w, chance(w, 50));
        return;
    case 8:
        set_gate(w, !w->gate_open);
        return;
    case 9:
        if (chance(w, 20))
            upgrade(w);
        return;
    case 10:
        w->unpaid = chance(w, 30);
        return;
    default:
        w->pool_limit = (uint32_t)rng_between(&w->rng, 4, 60);
        return;
    }
}

/* ---- running ---- */

static void work(struct world *w)
{
    switch (rng_below(&w->rng, 20)) {
    case 0:
        for (uint64_t n = chance(w, 5) ? 30 : rng_below(&w->rng, 3); n; n--)
            store_enqueue(w);
        return;
    case 1:
        if (chance(w, 40))
            chain_block(w);
        return;
    case 2:
        for (uint64_t lag = rng_below(&w->rng, 12); w->finalized + lag < w->best;)
            chain_finalize(w);
        return;
    case 3:
        pass_time(w);
        return;
    case 4:
    case 5:
        deliver_finalized(w);
        return;
    case 6:
    case 7:
        deliver_outbox(w);
        return;
    case 8:
    case 9:
    case 10:
        if (w->store_breaks && w->write_head != w->write_tail) {
            w->store_breaks = false;
            store_break(w, true);
            return;
        }
        store_run(w);
        return;
    case 11:
    case 12:
    case 13:
        store_answer(w);
        return;
    case 14:
    case 15:
    case 16:
        run_request(w);
        return;
    default:
        deliver_event(w);
    }
}

void world_step(struct world *w)
{
    if (!w->leading)
        promote(w);
    if (rng_below(&w->rng, w->fault_every) == 0)
        fault(w);
    if (!w->chain_up && chance(w, 10))
        connect_node(w);
    work(w);
}

static bool at_rest(const struct world *w)
{
    return !w->outbox_count && !w->pending_count && w->finalized == w->best &&
           w->follow_next > w->finalized && manager_look(w->m).open == 0;
}

void world_settle(struct world *w)
{
    w->faults = w->unpaid = false;
    w->pool_limit = 60;
    set_gate(w, true);
    if (!w->leading)
        promote(w);
    connect_node(w);
    learn_runtime(w);
    for (int round = 0; round < 3000 && !at_rest(w); round++) {
        for (int i = 0; i < 60; i++) {
            store_run(w);
            store_answer(w);
            run_request(w);
            deliver_event(w);
            deliver_outbox(w);
            deliver_finalized(w);
        }
        pass_time(w);
        if (round % 2)
            chain_block(w);
        chain_finalize(w);
        chain_finalize(w);
    }
    INVARIANT(at_rest(w)); /* everything ends */
}

void world_verify(const struct world *w)
{
    for (int64_t id = 1; id < w->next_id; id++) {
        INVARIANT(w->ended[id]);
        bool on_chain = !strcmp(w->ended[id], "ok") || !strcmp(w->ended[id], "dispatch_error");
        INVARIANT(w->effects[id] == (on_chain ? 1u : 0u));
        INVARIANT(!never_admitted(id) || !strcmp(w->ended[id], "failed"));
    }
    /* No holes: every nonce of ours that is behind us was used, and the next one is the chain's. */
    INVARIANT((uint64_t)w->next_nonce <= chain_nonce(w, w->best) ||
              manager_look(w->m).next_nonce == chain_nonce(w, w->best));
}
