/* The manager's and the wake-up's requests to the database: what relay/account/account_store.c does. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { SNAPSHOT_CHUNK = 20 };

static void send_work(struct world *w, struct relay *r, struct stmt *s)
{
    if (r->store_up)
        stmt_send(w, &r->links[LINK_WORK], s);
    else
        stmt_fail_later(w, s, ERR_DB_UNAVAILABLE);
}

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
        account_event(w, r, s->account,
                      &(struct manager_event){.type = MANAGER_EV_WRITE_FAILED,
                                              .write_failed = {.write = s->write, .code = s->code}});
}

static void loaded(struct world *w, struct stmt *s)
{
    if (s->code || !current(w, s)) {
        failed(w, s);
        return;
    }
    account_event(w, relay_of(w, s), s->account,
                  &(struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                          .snapshot = {.rows = s->snapshot,
                                                       .count = s->out_count,
                                                       .last = s->last,
                                                       .next_nonce = s->next_nonce,
                                                       .account = &s->facts,
                                                       .used_nonce = s->used_nonce,
                                                       .used_block = s->used_block,
                                                       .seen_block = s->seen_block,
                                                       .reconcile = s->reconcile,
                                                       .reconcile_from = s->reconcile_from}});
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
                                               .id = t->for_id,
                                               .bytes = b,
                                               .bytes_len = BYTES_LEN,
                                               .call_len = CALL_LEN,
                                               .era_death = t->death,
                                               .spec_version = t->spec,
                                               .guard = s->rows[i].guard,
                                               .tip = t->tip};
        hash_of_tx(s->txs[i], rows[i].hash);
    }
    account_event(w, relay_of(w, s), s->account,
                  &(struct manager_event){.type = s->event, .written = {.rows = rows, .count = s->count}});
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
    if (s->code || !current(w, s)) {
        failed(w, s);
        return;
    }
    account_event(w, relay_of(w, s), s->account,
                  &(struct manager_event){.type = s->event, .adopted = s->out_count});
    bool rows = s->op == OP_REQUEUE || (s->op == OP_PAUSE && s->hold == MANAGER_HOLD_NONE);
    if (rows && current(w, s)) /* nobody rings for what came back to the outbox, or may leave it again */
        account_poll(w, relay_of(w, s), s->account, (struct poll_event){.type = POLL_EV_REQUEUED});
}

/* An era that ends in time, from a finalized block that may be newer than the one that the core knew; 0:
 * none. */
static uint32_t period_of(struct world *w, const struct stmt_row *row, uint64_t anchor)
{
    uint32_t period = row->era_period;
    HOLDS(w, period || !w->plan.era, "era", "nonce %llu is to be signed without an era",
          (unsigned long long)row->nonce);
    while (row->deadline_block && !PLANTED(DEADLINE_LONG) && period &&
           anchor + period > row->deadline_block + 1)
        period = period > 4 ? period / 2 : 0;
    return period;
}

/* Parameters from what the node said last; the era is anchored on the finalized head (relay/account/sign.c). */
static bool sign_rows(struct world *w, struct relay *r, struct stmt *s)
{
    const struct door *d = &r->door;
    s->version = version_of(w, d->spec);
    uint32_t anchor = PLANTED(ANCHOR_BEST) ? w->chain.nodes[d->node].best : d->final_block;
    s->txs = xcalloc(s->count, sizeof(*s->txs));
    for (size_t i = 0; i < s->count; i++) {
        const struct stmt_row *row = &s->rows[i];
        bool filler = s->op == OP_FILL || (s->op == OP_RESIGN && row->filler);
        int64_t id = filler ? 0 : row->id, call = 0;
        if (!filler) {
            HOLDS(w, row->call_len == CALL_LEN, "call", "nonce %llu has a call of %zu bytes",
                  (unsigned long long)row->nonce, row->call_len);
            memcpy(&call, row->call, CALL_LEN);
        }
        HOLDS(w, call == id, "call", "nonce %llu is to be signed with the call of transaction %lld, not %lld",
              (unsigned long long)row->nonce, (long long)call, (long long)id);
        uint32_t period = period_of(w, row, w->chain.blocks[anchor].number);
        if (!period && row->deadline_block)
            return false;
        s->txs[i] = tx_sign(w, &(struct tx_content){.account = s->account,
                                                    .nonce = row->nonce,
                                                    .id = id,
                                                    .for_id = s->op == OP_FILL ? 0 : row->id,
                                                    .spec = d->spec,
                                                    .anchor = anchor,
                                                    .period = period,
                                                    .tip = row->tip});
        s->rows[i].call = NULL; /* borrowed */
    }
    return true;
}

/* What was signed elsewhere is there already. */
static int take_signed(struct world *w, struct relay *r, struct stmt *s)
{
    s->version = version_of(w, r->door.spec);
    s->txs = xcalloc(s->count, sizeof(*s->txs));
    for (size_t i = 0; i < s->count; i++) {
        memcpy(&s->txs[i], s->rows[i].bytes, sizeof(s->txs[i]));
        HOLDS(w, w->db.t.ids[s->rows[i].id].fixed == s->txs[i] || w->db.lossy, "signed",
              "transaction %lld is admitted with other bytes than it was given", (long long)s->rows[i].id);
    }
    return 1;
}

static void copy_sign(struct stmt_row *to, const struct manager_sign_row *x)
{
    *to = (struct stmt_row){.nonce = x->nonce,
                            .id = x->id,
                            .call = x->call,
                            .bytes = x->bytes,
                            .call_len = x->call_len,
                            .guard = x->guard,
                            .era_period = x->era_period,
                            .deadline_block = x->deadline_block,
                            .from_block = x->from_block,
                            .tip = (uint64_t)x->tip,
                            .filler = x->filler,
                            .outcome = x->outcome,
                            .block_number = -1};
    memcpy(to->hash, x->hash, 32);
    memcpy(to->error, x->error, sizeof(to->error));
}

static void copy_state(struct stmt_row *to, const struct manager_state_row *x)
{
    *to = (struct stmt_row){
        .nonce = x->nonce, .id = x->id, .state = x->state, .has_block = x->has_block, .block_number = -1};
    memcpy(to->hash, x->hash, 32);
    memcpy(to->block_hash, x->block_hash, 32);
    memcpy(to->error, x->error, sizeof(to->error));
}

static void copy_end(struct stmt_row *to, const struct manager_end_row *x)
{
    *to = (struct stmt_row){.nonce = x->nonce,
                            .id = x->id,
                            .outcome = x->outcome,
                            .has_block = x->has_block,
                            .block_number = x->block_number,
                            .used_block = x->used_block,
                            .index = x->index};
    memcpy(to->hash, x->hash, 32);
    memcpy(to->block_hash, x->block_hash, 32);
    memcpy(to->error, x->error, sizeof(to->error));
}

static void copy_note(struct stmt_row *to, const struct manager_note_row *x)
{
    *to = (struct stmt_row){.nonce = x->nonce, .id = x->id, .wait_block = x->wait_block, .block_number = -1};
    memcpy(to->hash, x->hash, 32);
    memcpy(to->error, x->text, sizeof(to->error));
}

static void copy_rows(struct stmt *s, const struct manager_effect *fx)
{
    bool signs = s->op == OP_ADMIT || s->op == OP_RESIGN || s->op == OP_FILL;
    bool ends = s->op == OP_FINISH || s->op == OP_REQUEUE || s->op == OP_REJECT;
    s->count = signs                ? fx->sign.count
               : ends               ? fx->ends.count
               : s->op == OP_STATES ? fx->states.count
               : s->op == OP_NOTE   ? fx->notes.count
                                    : 0;
    s->rows = xcalloc(s->count, sizeof(*s->rows));
    for (size_t i = 0; i < s->count; i++)
        if (signs)
            copy_sign(&s->rows[i], &fx->sign.rows[i]);
        else if (ends)
            copy_end(&s->rows[i], &fx->ends.rows[i]);
        else if (s->op == OP_STATES)
            copy_state(&s->rows[i], &fx->states.rows[i]);
        else
            copy_note(&s->rows[i], &fx->notes.rows[i]);
}

static void copy_found(struct stmt *s, const struct manager_effect *fx)
{
    s->count = fx->adopt.count;
    s->txs = xcalloc(fx->adopt.count, sizeof(*s->txs));
    for (size_t i = 0; i < fx->adopt.count; i++)
        memcpy(&s->txs[i], fx->adopt.found[i].bytes, sizeof(s->txs[i]));
    s->signed_at = fx->adopt.block;
    s->reconcile = fx->adopt.done;
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
        [MANAGER_FX_STORE_REQUEUE] = {OP_REQUEUE, MANAGER_WRITE_REQUEUE, MANAGER_EV_REQUEUE_STORED, stored},
        [MANAGER_FX_STORE_PAUSE] = {OP_PAUSE, MANAGER_WRITE_PAUSE, MANAGER_EV_PAUSE_STORED, stored},
        [MANAGER_FX_STORE_NOTE] = {OP_NOTE, MANAGER_WRITE_NOTE, MANAGER_EV_NOTE_STORED, stored},
        [MANAGER_FX_STORE_ADOPT] = {OP_ADOPT, MANAGER_WRITE_ADOPT, MANAGER_EV_ADOPTED, stored},
    };
    struct stmt *s = stmt_new(w, r, account, kinds[fx->type].op, kinds[fx->type].done);
    s->write = kinds[fx->type].write;
    s->event = kinds[fx->type].event;
    if (fx->type == MANAGER_FX_LOAD)
        s->after_nonce = fx->after_nonce;
    if (fx->type == MANAGER_FX_STORE_NONCE) {
        s->nonce = fx->next.nonce;
        s->lower = fx->next.lower;
        s->reborn = fx->next.reborn;
    }
    if (fx->type == MANAGER_FX_ADMIT)
        s->nonce = fx->sign.next_nonce;
    if (fx->type == MANAGER_FX_STORE_PAUSE)
        s->hold = fx->pause.hold;
    s->limit = SNAPSHOT_CHUNK;
    if (s->op == OP_ADOPT)
        copy_found(s, fx);
    else
        copy_rows(s, fx);
    s->admits_fixed = s->op == OP_ADMIT && fx->sign.presigned;
    bool attempts = s->op == OP_ADMIT || s->op == OP_RESIGN || s->op == OP_FILL;
    if (attempts && !r->door.ready) {
        stmt_fail_later(w, s, ERR_NET);
        return;
    }
    if (attempts) {
        s->signed_at = fx->sign.block;
        int rc = s->admits_fixed       ? take_signed(w, r, s)
                 : !sign_rows(w, r, s) ? ERR_NET
                 : s->op == OP_RESIGN  ? leave_out_known(r, s)
                                       : 1;
        for (size_t i = 0; i < s->count; i++)
            if (s->rows[i].guard && s->rows[i].guard != r->door.spec)
                rc = ERR_NET;
        if (rc <= 0) {
            stmt_fail_later(w, s, rc);
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

static void given_back(struct world *w, struct stmt *s)
{
    if (!s->code && current(w, s))
        account_event(w, relay_of(w, s), s->account, &(struct manager_event){.type = MANAGER_EV_STORE_BACK});
}

/* Only a planted fault does this: the transaction goes back to the outbox, to get another nonce. */
void store_give_back(struct world *w, struct relay *r, int account, uint64_t nonce)
{
    struct stmt *s = stmt_new(w, r, account, OP_REQUEUE, given_back);
    s->nonce = nonce;
    send_work(w, r, s);
}

/* ---- the outbox and its doorbell ---- */

static bool answered(struct world *w, const struct stmt *s, enum poll_event_type type)
{
    struct poll_event ev = {.type = type, .question = s->question};
    return account_poll(w, relay_of(w, s), s->account, ev);
}

static void fetched(struct world *w, struct stmt *s)
{
    struct relay *r = relay_of(w, s);
    if (!current(w, s))
        return;
    if (s->code || !r->door.ready) {
        lost_leadership(w, r, s->account, s->code);
        answered(w, s, POLL_EV_OUTBOX_FAILED);
    } else if (!s->out_count) {
        answered(w, s, POLL_EV_NO_ROWS);
    } else if (answered(w, s, POLL_EV_ROWS)) {
        signed_check(w, r, s);
        account_event(w, r, s->account,
                      &(struct manager_event){.type = MANAGER_EV_OUTBOX,
                                              .outbox = {.rows = s->outbox,
                                                         .count = s->out_count,
                                                         .has_reserved = s->has_reserved,
                                                         .reserved = s->reserved}});
    }
}

void store_fetch(struct world *w, struct relay *r, int account, const struct poll_effect *fx)
{
    struct stmt *s = stmt_new(w, r, account, OP_OUTBOX, fetched);
    struct manager_view view = manager_look(r->accounts[account].manager);
    s->question = fx->question;
    s->limit = fx->limit;
    s->nonce = view.next_nonce;
    s->signed_at = view.seen;
    send_work(w, r, s);
}

static void looked(struct world *w, struct stmt *s)
{
    struct relay *r = relay_of(w, s);
    if (!current(w, s))
        return;
    if (s->code) {
        lost_leadership(w, r, s->account, s->code);
        answered(w, s, POLL_EV_REQUESTS_FAILED);
        return;
    }
    struct poll_event ev = {.type = POLL_EV_REQUESTS, .question = s->question};
    ev.requests.next_ms = s->next_ms == UINT64_MAX ? -1 : (int64_t)s->next_ms;
    ev.requests.ripe = s->ok;
    if (account_poll(w, r, s->account, ev))
        account_event(w, r, s->account,
                      &(struct manager_event){.type = MANAGER_EV_LOOKED,
                                              .looked = {.number = s->serial,
                                                         .stops = s->stops,
                                                         .count = s->out_count,
                                                         .account = &s->facts}});
}

void store_look(struct world *w, struct relay *r, int account, const struct poll_effect *fx)
{
    struct stmt *s = stmt_new(w, r, account, OP_LOOK, looked);
    s->question = fx->question;
    s->serial = fx->serial;
    send_work(w, r, s);
}

static void armed(struct world *w, struct stmt *s)
{
    answered(w, s, s->code ? POLL_EV_ARM_FAILED : s->ok ? POLL_EV_ARMED : POLL_EV_NOT_ARMED);
}

void store_arm(struct world *w, struct relay *r, int account, const struct poll_effect *fx)
{
    bool arm = fx->query == POLL_QUERY_ARM;
    struct stmt *s = stmt_new(w, r, account, arm ? OP_ARM : OP_DISARM, arm ? armed : ignored);
    s->question = fx->question;
    lock_request(w, r, KIND_BELL, s, arm);
}
