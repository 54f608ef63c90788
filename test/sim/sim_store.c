/* A client's connections to the database, and the relay's requests over them: what store/store_pg*.c and
 * relay/account_store.c do. A relay has three: control (locks, claims), work, and one that listens. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { SNAPSHOT_CHUNK = 20 };

/* ---- connections ---- */

static void link_retry(struct world *w, struct event *e);

static void link_backoff(struct world *w, struct link *l)
{
    struct event *e = relay_at(w, l->relay, l->life, w->now + backoff_next(&l->backoff, &w->rng) * MS,
                               "connect again", link_retry);
    e->p = l;
    e->a = l->number;
}

static void link_result(struct world *w, struct event *e)
{
    struct link *l = e->p;
    if (l->number != e->a || l->up)
        return;
    if (!w->db.up || w->now < l->stall_until) {
        l->number++;
        link_backoff(w, l);
        return;
    }
    l->up = true;
    l->backoff.attempt = 0;
    l->session = session_open(w, l);
    l->serial = l->session->serial;
    l->session->listens = l->kind == LINK_LISTEN;
    l->session->all = l->kind == LINK_LISTEN && l->relay < 0;
    l->on_up(w, l);
}

static void link_retry(struct world *w, struct event *e)
{
    struct link *l = e->p;
    if (l->number == e->a && !l->up)
        link_open(w, l);
}

/* A few round trips; a peer that is silent is given up after five seconds. */
void link_open(struct world *w, struct link *l)
{
    uint64_t takes = 4 * latency(w);
    if (w->now < l->stall_until)
        takes = 5 * SECOND;
    struct event *e = relay_at(w, l->relay, l->life, w->now + takes, "connected?", link_result);
    e->p = l;
    e->a = l->number;
}

static void stmt_failed(struct world *w, struct event *e)
{
    struct stmt *s = e->p;
    s->done(w, s);
    stmt_unref(s);
}

static void drop_stmt(struct event *e)
{
    stmt_unref(e->p);
}

static void fail_later(struct world *w, struct stmt *s, int code)
{
    s->code = code;
    struct event *e = relay_at(w, s->relay, s->life, w->now, "request failed", stmt_failed);
    e->p = s;
    e->drop = drop_stmt;
    e->account = s->account;
    e->a = (uint32_t)s->op;
}

static void link_is_down(struct world *w, struct event *e)
{
    struct link *l = e->p;
    l->on_down(w, l);
}

/* Nobody answers what was sent: its outcome is not known. Those callbacks come first. */
void link_lost(struct world *w, struct link *l)
{
    if (!l->up)
        return;
    l->up = false;
    l->number++;
    for (struct list *n = list_first(&l->sent); n; n = list_first(&l->sent)) {
        struct stmt *s = CONTAINER_OF(n, struct stmt, sent);
        list_remove(n);
        w->stats.unknown++;
        /* The server's end of it may still be carried out: what it finds is not what this end hears. */
        struct stmt *lost = xmalloc(sizeof(*lost));
        *lost = *s;
        lost->refs = 1;
        lost->queue = (struct list){0};
        lost->lookups = NULL;
        lost->snapshot = NULL;
        lost->outbox = NULL;
        lost->stops = NULL;
        lost->bytes = NULL;
        lost->hashes = NULL;
        lost->events = NULL;
        lost->rows = NULL;
        lost->txs = NULL;
        if (s->rows) {
            lost->rows = xcalloc(s->count, sizeof(*s->rows));
            memcpy(lost->rows, s->rows, s->count * sizeof(*s->rows));
        }
        if (s->txs) {
            lost->txs = xcalloc(s->count, sizeof(*s->txs));
            memcpy(lost->txs, s->txs, s->count * sizeof(*s->txs));
        }
        stmt_unref(s);
        fail_later(w, lost, ERR_DB_UNKNOWN_OUTCOME);
    }
    struct event *e = relay_at(w, l->relay, l->life, w->now, "connection down", link_is_down);
    e->p = l;
    link_backoff(w, l);
}

static struct session *session_of(struct world *w, const struct link *l)
{
    return l->up && l->session && l->session->serial == l->serial && w->db.up ? l->session : NULL;
}

static void close_session(struct world *w, struct event *e)
{
    struct session *s = &w->db.sessions[e->a];
    if (s->serial != e->b)
        return;
    if (s->busy || !list_empty(&s->queue)) { /* the backend reads the end of input after what is before it */
        struct event *again = later(w, 5 * MS, "session closes", close_session);
        again->a = e->a;
        again->b = e->b;
        return;
    }
    session_end(w, s, false, 0);
}

/* The client's process is gone. Its host's end leaves the server in the dark for a while. */
void link_close(struct world *w, struct link *l, bool host)
{
    struct session *s = session_of(w, l);
    for (struct list *n = list_first(&l->sent); n; n = list_first(&l->sent)) {
        list_remove(n);
        stmt_unref(CONTAINER_OF(n, struct stmt, sent));
    }
    l->up = false;
    l->number++;
    if (!s)
        return;
    uint64_t at = host ? between(w, 5 * SECOND, 11 * SECOND) : latency(w);
    if (w->now + at <= s->last_in)
        at = s->last_in - w->now + 1;
    struct event *e = later(w, at, "session closes", close_session);
    e->a = (uint32_t)(s - w->db.sessions);
    e->b = s->serial;
}

static void found_out(struct world *w, struct event *e)
{
    struct link *l = e->p;
    if (l->up && l->number == e->a)
        link_lost(w, l);
}

/* One end is cut off first, the other finds out. */
void link_cut(struct world *w, struct link *l, bool client_first)
{
    struct session *s = session_of(w, l);
    if (!l->up)
        return;
    if (client_first) {
        if (s) {
            struct event *e = later(w, latency(w), "session closes", close_session);
            e->a = (uint32_t)(s - w->db.sessions);
            e->b = s->serial;
        }
        struct event *e = relay_at(w, l->relay, l->life, w->now, "connection cut", found_out);
        e->p = l;
        e->a = l->number;
    } else if (s) {
        session_end(w, s, true, w->now + latency(w));
    }
}

static void server_gives_up(struct world *w, struct event *e)
{
    struct session *s = &w->db.sessions[e->a];
    if (s->serial == e->b)
        session_end(w, s, true, e->n);
}

static void client_gives_up(struct world *w, struct event *e)
{
    struct link *l = e->p;
    if (l->number == e->a && l->up && w->now < l->stall_until)
        link_lost(w, l);
}

/* Nothing gets through for so long, either way; both ends give up after a time of their own. */
void link_stall(struct world *w, struct link *l, uint64_t us)
{
    struct session *s = session_of(w, l);
    uint64_t server = between(w, 10 * SECOND, 12 * SECOND), client = 35 * SECOND;
    l->stall_until = w->now + us;
    if (s && us > server) {
        struct event *e = later(w, server, "server gives up", server_gives_up);
        e->a = (uint32_t)(s - w->db.sessions);
        e->b = s->serial;
        e->n = l->stall_until;
    }
    if (l->up && us > client) {
        struct event *e = relay_at(w, l->relay, l->life, w->now + client, "client gives up", client_gives_up);
        e->p = l;
        e->a = l->number;
    }
}

/* ---- statements on their way ---- */

static void arrive(struct world *w, struct event *e)
{
    struct session *s = &w->db.sessions[e->a];
    if (s->serial == e->b && w->db.up)
        session_take(w, s, e->p);
    else
        stmt_unref(e->p);
}

void stmt_send(struct world *w, struct link *l, struct stmt *s)
{
    if (!l->up) {
        fail_later(w, s, ERR_DB_UNAVAILABLE);
        return;
    }
    s->link = l;
    s->link_number = l->number;
    s->sent_at = w->now;
    list_append(&l->sent, &s->sent);
    if (!session_of(w, l))
        return; /* the peer is gone: this end will find out */
    struct session *at = l->session;
    uint64_t when = w->now + latency(w);
    if (when <= at->last_in)
        when = at->last_in + 1;
    if (when < l->stall_until)
        when = l->stall_until;
    at->last_in = when;
    s->refs++;
    struct event *e = later(w, when - w->now, "statement arrives", arrive);
    e->p = s;
    e->drop = drop_stmt;
    e->a = (uint32_t)(at - w->db.sessions);
    e->b = at->serial;
}

struct stmt *stmt_new(struct world *w, struct relay *r, int account, enum op op,
                      void (*done)(struct world *w, struct stmt *s))
{
    struct stmt *s = xcalloc(1, sizeof(*s));
    (void)w;
    s->refs = 1;
    s->op = op;
    s->relay = r ? r->index : -1;
    s->life = r ? r->life : 0;
    s->account = account;
    s->done = done;
    if (r) {
        s->holder = r->holder;
        s->generation = account >= 0 ? r->accounts[account].generation : 0;
        s->epoch = account >= 0 ? r->accounts[account].epoch : 0;
    }
    return s;
}

static void send_work(struct world *w, struct relay *r, struct stmt *s)
{
    if (r->store_up)
        stmt_send(w, &r->links[LINK_WORK], s);
    else
        fail_later(w, s, ERR_DB_UNAVAILABLE);
}

/* ---- the two sessions and their owner ---- */

static void store_moved(struct world *w, struct relay *r)
{
    r->store_up = r->links[LINK_CONTROL].up && r->links[LINK_WORK].up;
    relay_store_moved(w, r);
}

static void on_up(struct world *w, struct link *l)
{
    if (l->kind != LINK_LISTEN)
        store_moved(w, l->owner);
}

static void on_down(struct world *w, struct link *l)
{
    struct relay *r = l->owner;
    if (l->kind == LINK_LISTEN)
        return;
    r->store_up = false;
    if (l->kind == LINK_CONTROL) {
        locks_lost(w, r);
        for (int a = 0; r->running && a < w->plan.accounts; a++)
            account_wake(w, r, a, WAKE_EV_CONTROL_LOST);
        if (r->running && !r->draining)
            elect_feed(w, r, &(struct elector_event){.type = ELECTOR_EV_CONTROL_LOST});
    }
    store_moved(w, r);
}

void store_links(struct world *w, struct relay *r)
{
    for (int k = 0; k < LINKS; k++) {
        struct link *l = &r->links[k];
        uint32_t number = l->number;
        *l = (struct link){.relay = r->index,
                           .life = r->life,
                           .kind = k,
                           .owner = r,
                           .number = number + 1,
                           .backoff = {.base_ms = 50, .cap_ms = 5000},
                           .on_up = on_up,
                           .on_down = on_down};
        list_init(&l->sent);
        link_open(w, l);
    }
}

/* ---- the manager's requests (relay/account_store.c) ---- */

static struct relay *relay_of(struct world *w, const struct stmt *s)
{
    return &w->relays[s->relay];
}

static bool current(struct world *w, const struct stmt *s)
{
    return s->generation == relay_of(w, s)->accounts[s->account].generation;
}

static void lost_leadership(struct world *w, struct relay *r, int account, int code)
{
    if (err_class(code) == ERR_CLASS_LOST_LEADERSHIP)
        elect_feed(w, r, &(struct elector_event){.type = ELECTOR_EV_STALE, .account = account});
}

static void failed(struct world *w, struct stmt *s)
{
    struct relay *r = relay_of(w, s);
    if (!current(w, s))
        return;
    lost_leadership(w, r, s->account, s->code);
    bool doubts = !PLANTED(GHOST_WRITE) && !PLANTED(UNKNOWN_FAILED);
    if (s->code == ERR_DB_UNKNOWN_OUTCOME && s->op != OP_LOAD && doubts)
        elect_feed(w, r, &(struct elector_event){.type = ELECTOR_EV_DOUBT, .account = s->account});
    if (current(w, s))
        account_event(
            w, r, s->account,
            &(struct manager_event){.type = MANAGER_EV_WRITE_FAILED, .write = s->write, .code = s->code});
}

static void loaded(struct world *w, struct stmt *s)
{
    if (s->code || !current(w, s)) {
        failed(w, s);
        return;
    }
    account_event(w, relay_of(w, s), s->account,
                  &(struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                          .snapshot = s->snapshot,
                                          .count = s->out_count,
                                          .last = s->last,
                                          .next_nonce = s->next_nonce});
}

static void tell_written(struct world *w, const struct stmt *s)
{
    struct manager_written_row *rows = xcalloc(s->count, sizeof(*rows));
    uint8_t *bytes = xcalloc(s->count, BYTES_LEN);
    for (size_t i = 0; i < s->count; i++) {
        const struct tx *t = &w->chain.txs[s->txs[i]];
        uint8_t *b = bytes + i * BYTES_LEN;
        memcpy(b, &s->txs[i], sizeof(s->txs[i]));
        memcpy(b + BYTES_LEN - CALL_LEN, &t->id, CALL_LEN);
        rows[i] = (struct manager_written_row){.nonce = t->nonce,
                                               .id = t->id,
                                               .bytes = b,
                                               .bytes_len = BYTES_LEN,
                                               .call_len = CALL_LEN,
                                               .era_death = t->death,
                                               .spec_version = t->spec,
                                               .guard = s->rows[i].guard};
        hash_of_tx(s->txs[i], rows[i].hash);
    }
    account_event(w, relay_of(w, s), s->account,
                  &(struct manager_event){.type = s->event, .written = rows, .count = s->count});
    free(rows);
    free(bytes);
}

static void attempts_stored(struct world *w, struct stmt *s)
{
    if (PLANTED(UNKNOWN_DONE) && s->code == ERR_DB_UNKNOWN_OUTCOME)
        s->code = 0;
    if (PLANTED(SEND_UNCOMMITTED) && s->op == OP_ADMIT)
        return; /* it was told at once */
    if (s->code || !current(w, s))
        failed(w, s);
    else
        tell_written(w, s);
}

static void stored(struct world *w, struct stmt *s)
{
    if (s->code || !current(w, s))
        failed(w, s);
    else
        account_event(w, relay_of(w, s), s->account, &(struct manager_event){.type = s->event});
}

/* Parameters from what the node said last; the era is anchored on the finalized head (relay/sign.c). */
static void sign_rows(struct world *w, struct relay *r, struct stmt *s)
{
    const struct door *d = &r->door;
    uint32_t anchor = PLANTED(ANCHOR_BEST) ? w->chain.nodes[d->node].best : d->final_block;
    s->txs = xcalloc(s->count, sizeof(*s->txs));
    for (size_t i = 0; i < s->count; i++) {
        const struct manager_row_effect *row = &s->rows[i];
        int64_t id = s->op == OP_FILL ? 0 : row->id, call = 0;
        if (s->op != OP_FILL) {
            HOLDS(w, row->call_len == CALL_LEN, "call", "nonce %llu has a call of %zu bytes",
                  (unsigned long long)row->nonce, row->call_len);
            memcpy(&call, row->call, CALL_LEN);
        }
        HOLDS(w, call == id, "call", "nonce %llu is to be signed with the call of transaction %lld, not %lld",
              (unsigned long long)row->nonce, (long long)call, (long long)id);
        s->txs[i] = tx_sign(w, s->account, row->nonce, id, d->spec, anchor);
        s->rows[i].call = NULL; /* borrowed */
    }
}

static void copy_rows(struct stmt *s, const struct manager_effect *fx)
{
    s->count = fx->count;
    s->rows = xcalloc(fx->count, sizeof(*s->rows));
    if (fx->count)
        memcpy(s->rows, fx->rows, fx->count * sizeof(*s->rows));
}

/* Of keys that sign the same content to the same bytes: no new attempts are left out (their txs become 0). */
static int leave_out_known(struct relay *r, struct stmt *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++) {
        uint8_t hash[32];
        hash_of_tx(s->txs[i], hash);
        bool same = !memcmp(hash, s->rows[i].hash, 32);
        if (!same && manager_knows(r->accounts[s->account].manager, hash))
            return ERR_NET;
        s->rows[i].index = same; /* not written, told all the same */
        count += !same;
    }
    return count ? 1 : 0;
}

static void ignored(struct world *w, struct stmt *s)
{
    (void)w;
    (void)s;
}

static void told_early(struct world *w, struct event *e)
{
    tell_written(w, e->p);
}

void store_effect(struct world *w, struct relay *r, int account, const struct manager_effect *fx)
{
    static const struct {
        enum op op;
        enum manager_write write;
        enum manager_event_type event;
        void (*done)(struct world *w, struct stmt *s);
    } kinds[] = {
        [MANAGER_FX_LOAD] = {OP_LOAD, MANAGER_WRITE_LOAD, MANAGER_EV_SNAPSHOT, loaded},
        [MANAGER_FX_ADMIT] = {OP_ADMIT, MANAGER_WRITE_ADMIT, MANAGER_EV_ADMITTED, attempts_stored},
        [MANAGER_FX_RESIGN] = {OP_RESIGN, MANAGER_WRITE_RESIGN, MANAGER_EV_RESIGNED, attempts_stored},
        [MANAGER_FX_FILL] = {OP_FILL, MANAGER_WRITE_FILL, MANAGER_EV_FILLED, attempts_stored},
        [MANAGER_FX_STORE_STATES] = {OP_STATES, MANAGER_WRITE_STATES, MANAGER_EV_STATES_STORED, stored},
        [MANAGER_FX_STORE_FINISH] = {OP_FINISH, MANAGER_WRITE_FINISH, MANAGER_EV_FINISH_STORED, stored},
        [MANAGER_FX_STORE_REJECT] = {OP_REJECT, MANAGER_WRITE_REJECT, MANAGER_EV_REJECT_STORED, stored},
        [MANAGER_FX_STORE_NONCE] = {OP_NONCE, MANAGER_WRITE_NONCE, MANAGER_EV_NONCE_STORED, stored},
    };
    struct stmt *s = stmt_new(w, r, account, kinds[fx->type].op, kinds[fx->type].done);
    s->write = kinds[fx->type].write;
    s->event = kinds[fx->type].event;
    s->after_nonce = fx->after_nonce;
    s->nonce = fx->nonce;
    s->lower = fx->lower;
    s->limit = SNAPSHOT_CHUNK;
    copy_rows(s, fx);
    bool attempts = s->op == OP_ADMIT || s->op == OP_RESIGN || s->op == OP_FILL;
    if (attempts && !r->door.ready) {
        fail_later(w, s, ERR_NET);
        return;
    }
    if (attempts) {
        sign_rows(w, r, s);
        s->signed_at = r->door.finalized;
        int rc = s->op == OP_RESIGN ? leave_out_known(r, s) : 1;
        for (size_t i = 0; i < s->count; i++)
            if (s->rows[i].guard && s->rows[i].guard != r->door.spec)
                rc = ERR_NET;
        if (rc <= 0) {
            fail_later(w, s, rc);
            return;
        }
    }
    if (PLANTED(SEND_UNCOMMITTED) && s->op == OP_ADMIT) {
        s->refs++;
        struct event *e = relay_later(w, r, 1, "told before it is committed", told_early);
        e->p = s;
    }
    send_work(w, r, s);
    if (PLANTED(FINISH_AGAIN) && s->op == OP_FINISH) {
        struct stmt *again = stmt_new(w, r, account, OP_FINISH, ignored);
        copy_rows(again, fx);
        send_work(w, r, again);
    }
}

static void requeued(struct world *w, struct stmt *s)
{
    if (!s->code && current(w, s))
        account_event(w, relay_of(w, s), s->account, &(struct manager_event){.type = MANAGER_EV_STORE_BACK});
}

/* Only a planted fault does this: the transaction goes back to the outbox, to get another nonce. */
void store_requeue(struct world *w, struct relay *r, int account, uint64_t nonce)
{
    struct stmt *s = stmt_new(w, r, account, OP_REQUEUE, requeued);
    s->nonce = nonce;
    send_work(w, r, s);
}

/* ---- the outbox and its doorbell ---- */

static void fetched(struct world *w, struct stmt *s)
{
    struct relay *r = relay_of(w, s);
    int account = s->account;
    if (!current(w, s))
        return;
    if (s->code || !r->door.ready) {
        lost_leadership(w, r, account, s->code);
        account_wake(w, r, account, WAKE_EV_FAILED);
    } else if (!s->out_count) {
        account_wake(w, r, account, WAKE_EV_NONE);
    } else {
        account_wake(w, r, account, WAKE_EV_ROWS);
        account_event(
            w, r, account,
            &(struct manager_event){.type = MANAGER_EV_OUTBOX, .outbox = s->outbox, .count = s->out_count});
    }
}

void store_fetch(struct world *w, struct relay *r, int account)
{
    struct stmt *s = stmt_new(w, r, account, OP_OUTBOX, fetched);
    s->limit = r->accounts[account].outbox_limit;
    send_work(w, r, s);
}

static void looked(struct world *w, struct stmt *s)
{
    struct relay *r = relay_of(w, s);
    if (!current(w, s))
        return;
    if (s->code) {
        lost_leadership(w, r, s->account, s->code);
        if (current(w, s))
            account_event(w, r, s->account,
                          &(struct manager_event){.type = MANAGER_EV_LOOKED, .failed = true});
        return;
    }
    account_event(
        w, r, s->account,
        &(struct manager_event){
            .type = MANAGER_EV_LOOKED, .stops = s->stops, .count = s->out_count, .next_ms = s->next_ms});
    if (s->ok)
        account_wake(w, r, s->account, WAKE_EV_RING);
}

void store_look(struct world *w, struct relay *r, int account)
{
    send_work(w, r, stmt_new(w, r, account, OP_LOOK, looked));
}

static void armed(struct world *w, struct stmt *s)
{
    struct relay *r = relay_of(w, s);
    if (!current(w, s)) {
        if (!s->code && s->ok)
            store_arm(w, r, s->account, false);
        return;
    }
    account_wake(w, r, s->account, s->code ? WAKE_EV_FAILED : s->ok ? WAKE_EV_ARMED : WAKE_EV_NOT_ARMED);
}

void store_arm(struct world *w, struct relay *r, int account, bool arm)
{
    struct stmt *s = stmt_new(w, r, account, arm ? OP_ARM : OP_DISARM, arm ? armed : ignored);
    lock_request(w, r, KIND_BELL, s, arm);
}
