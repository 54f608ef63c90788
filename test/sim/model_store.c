/* The table: it checks every write against what the schema would allow, and whether it is true. */
#include <stdlib.h>
#include <string.h>

#include "model.h"

bool moody(int64_t id)
{
    return id > 0 && id % 37 == 0;
}

bool never_admitted(int64_t id)
{
    return id % 53 == 0;
}

void store_enqueue(struct world *w)
{
    if (w->next_id + 1 < ID_MAX)
        w->outbox[w->outbox_count++] = w->next_id++;
}

void store_push(struct world *w, const struct manager_effect *fx)
{
    struct write *q = &w->writes[w->write_tail++ % QUEUE_MAX];
    INVARIANT(w->write_tail - w->write_head < QUEUE_MAX);
    *q = (struct write){.type = fx->type,
                        .after_nonce = fx->after_nonce,
                        .nonce = fx->nonce,
                        .hold = fx->hold,
                        .count = fx->count};
    q->rows = xcalloc(fx->count, sizeof(*q->rows));
    if (fx->count)
        memcpy(q->rows, fx->rows, fx->count * sizeof(*q->rows));
    if (fx->type != MANAGER_FX_ADMIT && fx->type != MANAGER_FX_RESIGN && fx->type != MANAGER_FX_FILL)
        return;
    q->signed_txs = xcalloc(fx->count, sizeof(*q->signed_txs));
    for (size_t i = 0; i < fx->count; i++) { /* the door signs at once, with the runtime that it knows */
        const struct manager_row_effect *row = &fx->rows[i];
        int64_t id = fx->type == MANAGER_FX_FILL ? 0 : row->id;
        q->signed_txs[i] = tx_new(w, row->nonce, id, w->door_spec, (int64_t)w->finalized + ERA);
        if (fx->type == MANAGER_FX_RESIGN) { /* the call is the transaction's own, cut from the old bytes */
            int64_t call;
            INVARIANT(row->call_len == CALL_LEN);
            memcpy(&call, row->call, sizeof(call));
            INVARIANT(call == row->id);
        }
    }
}

static void write_done(struct write *q)
{
    free(q->rows);
    free(q->signed_txs);
    memset(q, 0, sizeof(*q));
}

/* ---- the functions of the schema ---- */

static bool outbox_take(struct world *w, int64_t id)
{
    for (size_t i = 0; i < w->outbox_count; i++)
        if (w->outbox[i] == id) {
            memmove(w->outbox + i, w->outbox + i + 1, (--w->outbox_count - i) * sizeof(*w->outbox));
            return true;
        }
    return false;
}

static void ends(struct world *w, int64_t id, const char *outcome)
{
    if (id <= 0)
        return;
    INVARIANT(!w->ended[id]); /* a terminal record never changes */
    w->ended[id] = outcome;
}

static void set_attempt(struct world *w, struct pending *p, uint32_t tx)
{
    if (p->tx != UINT32_MAX) {
        INVARIANT(p->earlier_count < EARLIER_MAX);
        p->earlier[p->earlier_count++] = p->tx;
    }
    p->tx = tx;
    p->stage = MANAGER_ROW_SIGNED;
    w->txs[tx].committed = true;
}

static struct pending *new_pending(struct world *w, uint64_t nonce, int64_t id)
{
    struct pending *p = &w->pending[nonce];
    INVARIANT(nonce < NONCE_MAX && !p->used && !w->nonce_finished[nonce]);
    *p = (struct pending){.used = true, .id = id, .tx = UINT32_MAX, .submitted = w->finalized};
    w->pending_count++;
    if ((int64_t)nonce >= w->next_nonce)
        w->next_nonce = (int64_t)nonce + 1;
    return p;
}

static bool admit(struct world *w, const struct write *q)
{
    for (size_t i = 0; i < q->count; i++) {
        bool there = false;
        for (size_t k = 0; k < w->outbox_count; k++)
            there = there || w->outbox[k] == q->rows[i].id;
        if (!there)
            return false;
    }
    for (size_t i = 0; i < q->count; i++) {
        /* Contiguous: the row below is pending, finished, or was used by somebody else. */
        uint64_t nonce = q->rows[i].nonce;
        INVARIANT((int64_t)nonce == w->next_nonce || nonce == chain_nonce(w, w->best) || w->faults);
        outbox_take(w, q->rows[i].id);
        set_attempt(w, new_pending(w, nonce, q->rows[i].id), q->signed_txs[i]);
    }
    return true;
}

static bool fill(struct world *w, const struct write *q)
{
    for (size_t i = 0; i < q->count; i++) {
        uint64_t nonce = q->rows[i].nonce;
        struct pending *p = &w->pending[nonce];
        if (!p->used)
            p = new_pending(w, nonce, 0);
        ends(w, p->id, "failed");
        p->id = 0;
        set_attempt(w, p, q->signed_txs[i]);
        w->fills++;
    }
    return true;
}

static bool is_attempt(const struct pending *p, uint32_t tx)
{
    bool found = p->tx == tx;
    for (uint32_t i = 0; i < p->earlier_count; i++)
        found = found || p->earlier[i] == tx;
    return found;
}

/* The finalized chain used the nonce, by none of its attempts. */
static bool used_by_another(const struct world *w, const struct pending *p, uint64_t nonce)
{
    for (uint64_t h = 1; h <= w->finalized; h++)
        for (uint32_t i = 0; i < w->blocks[h].count; i++)
            if (w->txs[w->blocks[h].txs[i]].nonce == nonce)
                return !is_attempt(p, w->blocks[h].txs[i]);
    return false;
}

/* What is stored as an end must be true on the finalized chain. Usurped names no block: none holds an
 * attempt. */
static void finished(struct world *w, const struct pending *p, const struct manager_row_effect *row)
{
    uint32_t tx = tx_of_hash(row->hash);
    uint8_t hash[32];
    if (!row->has_block) { /* "usurped", or what was to be given up anyway */
        INVARIANT(is_attempt(p, tx) && used_by_another(w, p, row->nonce));
        return;
    }
    INVARIANT(strcmp(row->outcome, "usurped") != 0 && row->block_number > 0 &&
              (uint64_t)row->block_number <= w->finalized);
    hash_of_block(w, (uint64_t)row->block_number, hash);
    INVARIANT(!memcmp(hash, row->block_hash, 32));
    const struct block *b = &w->blocks[row->block_number];
    INVARIANT(row->index < b->count && b->txs[row->index] == tx && w->txs[tx].nonce == row->nonce);
    INVARIANT(is_attempt(p, tx));
}

static void finish_row(struct world *w, const struct manager_row_effect *row)
{
    struct pending *p = &w->pending[row->nonce];
    INVARIANT(p->used);
    finished(w, p, row);
    ends(w, p->id, row->outcome);
    w->late += tx_of_hash(row->hash) != p->tx && strcmp(row->outcome, "usurped");
    w->usurped += !strcmp(row->outcome, "usurped");
    w->nonce_finished[row->nonce] = true;
    w->pending_count--;
    *p = (struct pending){0};
}

static bool carry_out(struct world *w, const struct write *q)
{
    switch ((int)q->type) {
    case MANAGER_FX_ADMIT:
        return admit(w, q);
    case MANAGER_FX_RESIGN:
        for (size_t i = 0; i < q->count; i++) {
            INVARIANT(w->pending[q->rows[i].nonce].used && w->pending[q->rows[i].nonce].id == q->rows[i].id);
            set_attempt(w, &w->pending[q->rows[i].nonce], q->signed_txs[i]);
            w->resigns++;
        }
        return true;
    case MANAGER_FX_FILL:
        return fill(w, q);
    case MANAGER_FX_STORE_STATES:
        for (size_t i = 0; i < q->count; i++) {
            struct pending *p = &w->pending[q->rows[i].nonce];
            if (!strcmp(q->rows[i].state, "refused"))
                continue; /* for the history */
            if (p->used && p->tx == tx_of_hash(q->rows[i].hash))
                p->stage = strcmp(q->rows[i].state, "in_block") ? MANAGER_ROW_SENT : MANAGER_ROW_IN_BLOCK;
        }
        return true;
    case MANAGER_FX_STORE_FINISH:
        for (size_t i = 0; i < q->count; i++)
            finish_row(w, &q->rows[i]);
        return true;
    case MANAGER_FX_STORE_REJECT:
        for (size_t i = 0; i < q->count; i++)
            if (outbox_take(w, q->rows[i].id))
                ends(w, q->rows[i].id, q->rows[i].outcome);
        return true;
    case MANAGER_FX_STORE_NONCE:
        w->next_nonce = (int64_t)q->nonce;
        return true;
    case MANAGER_FX_STORE_PAUSE:
        INVARIANT(q->hold == MANAGER_HOLD_NONE || q->hold == MANAGER_HOLD_PAYMENT);
        w->hold = q->hold;
        return true;
    case MANAGER_FX_STORE_REQUEUE:
        UNREACHABLE(); /* nobody asked for retries */
    default:
        return true; /* LOAD */
    }
}

/* ---- answers ---- */

static const struct {
    enum manager_write write;
    enum manager_event_type done;
} kinds[] = {
    [MANAGER_FX_LOAD] = {MANAGER_WRITE_LOAD, MANAGER_EV_SNAPSHOT},
    [MANAGER_FX_ADMIT] = {MANAGER_WRITE_ADMIT, MANAGER_EV_ADMITTED},
    [MANAGER_FX_RESIGN] = {MANAGER_WRITE_RESIGN, MANAGER_EV_RESIGNED},
    [MANAGER_FX_FILL] = {MANAGER_WRITE_FILL, MANAGER_EV_FILLED},
    [MANAGER_FX_STORE_STATES] = {MANAGER_WRITE_STATES, MANAGER_EV_STATES_STORED},
    [MANAGER_FX_STORE_FINISH] = {MANAGER_WRITE_FINISH, MANAGER_EV_FINISH_STORED},
    [MANAGER_FX_STORE_REJECT] = {MANAGER_WRITE_REJECT, MANAGER_EV_REJECT_STORED},
    [MANAGER_FX_STORE_NONCE] = {MANAGER_WRITE_NONCE, MANAGER_EV_NONCE_STORED},
    [MANAGER_FX_STORE_PAUSE] = {MANAGER_WRITE_PAUSE, MANAGER_EV_PAUSE_STORED},
};

void answer_done(struct answer *a)
{
    free(a->written);
    free(a->bytes);
    free(a->snapshot);
    free(a->earlier);
    memset(a, 0, sizeof(*a));
}

static void bytes_of(int64_t id, uint32_t tx, uint8_t out[BYTES_LEN])
{
    memset(out, 0, BYTES_LEN);
    memcpy(out, &tx, sizeof(tx));
    memcpy(out + BYTES_LEN - CALL_LEN, &id, sizeof(id));
}

static void written(struct world *w, const struct write *q, struct answer *a)
{
    a->written = xcalloc(q->count, sizeof(*a->written));
    a->bytes = xcalloc(q->count, BYTES_LEN);
    for (size_t i = 0; i < q->count; i++) {
        const struct tx *t = &w->txs[q->signed_txs[i]];
        uint8_t *bytes = a->bytes + i * BYTES_LEN;
        bytes_of(t->id, q->signed_txs[i], bytes);
        a->written[i] = (struct manager_written_row){.nonce = t->nonce,
                                                     .id = t->id,
                                                     .bytes = bytes,
                                                     .bytes_len = BYTES_LEN,
                                                     .call_len = CALL_LEN,
                                                     .era_death = t->death,
                                                     .spec_version = t->spec};
        hash_of_tx(q->signed_txs[i], a->written[i].hash);
    }
    a->ev.written = a->written;
    a->ev.count = q->count;
}

enum { CHUNK = 40 };

static void snapshot(struct world *w, const struct write *q, struct answer *a)
{
    size_t count = 0, hashes = 0;
    a->snapshot = xcalloc(CHUNK, sizeof(*a->snapshot));
    a->bytes = xcalloc(CHUNK, BYTES_LEN);
    a->earlier = xcalloc(CHUNK * EARLIER_MAX, 32);
    for (uint64_t n = (uint64_t)(q->after_nonce + 1); n < (uint64_t)w->next_nonce && count < CHUNK; n++) {
        const struct pending *p = &w->pending[n];
        if (!p->used)
            continue;
        const struct tx *t = &w->txs[p->tx];
        uint8_t *bytes = a->bytes + count * BYTES_LEN;
        bytes_of(p->id, p->tx, bytes);
        struct manager_snapshot_row *s = &a->snapshot[count++];
        *s = (struct manager_snapshot_row){.nonce = n,
                                           .id = p->id,
                                           .bytes = bytes,
                                           .bytes_len = BYTES_LEN,
                                           .call_len = CALL_LEN,
                                           .era_death = t->death,
                                           .spec_version = t->spec,
                                           .submitted_block = p->submitted,
                                           .earlier = (const uint8_t(*)[32])(a->earlier + hashes),
                                           .earlier_count = p->earlier_count};
        s->stage = p->stage;
        hash_of_tx(p->tx, s->hash);
        for (uint32_t i = 0; i < p->earlier_count; i++)
            hash_of_tx(p->earlier[i], a->earlier[hashes++]);
    }
    /* No tips in this world, so that nothing races a transaction's own bytes. */
    w->account = (struct manager_account){.paused = w->hold != MANAGER_HOLD_NONE, .hold = w->hold};
    a->ev.account = &w->account;
    a->ev.used_nonce = a->ev.used_block = -1;
    a->ev.snapshot = a->snapshot;
    a->ev.count = count;
    a->ev.last = count < CHUNK;
    a->ev.next_nonce = w->next_nonce ? w->next_nonce : -1;
}

static struct answer *push_answer(struct world *w, struct manager_event ev)
{
    struct answer *a = &w->answers[w->answer_tail++ % QUEUE_MAX];
    INVARIANT(w->answer_tail - w->answer_head < QUEUE_MAX);
    *a = (struct answer){.ev = ev};
    return a;
}

static void push_failure(struct world *w, const struct write *q, int code)
{
    push_answer(w, (struct manager_event){
                       .type = MANAGER_EV_WRITE_FAILED, .write = kinds[q->type].write, .code = code});
}

void store_run(struct world *w)
{
    if (w->write_head == w->write_tail)
        return;
    struct write *q = &w->writes[w->write_head++ % QUEUE_MAX];
    bool refuse = w->faults && q->type == MANAGER_FX_ADMIT && chance(w, 3);
    if (refuse || !carry_out(w, q)) {
        push_failure(w, q, ERR_DB_CONFLICT);
    } else {
        struct answer *a = push_answer(w, (struct manager_event){.type = kinds[q->type].done});
        if (q->signed_txs)
            written(w, q, a);
        if (q->type == MANAGER_FX_LOAD)
            snapshot(w, q, a);
    }
    write_done(q);
}

void store_break(struct world *w, bool answer)
{
    bool alive = true;
    while (w->write_head != w->write_tail) {
        struct write *q = &w->writes[w->write_head++ % QUEUE_MAX];
        alive = alive && chance(w, 50);
        bool done = alive && carry_out(w, q);
        (void)done;
        if (answer)
            push_failure(w, q, ERR_DB_UNKNOWN_OUTCOME);
        write_done(q);
    }
    if (answer)
        return;
    while (w->answer_head != w->answer_tail)
        answer_done(&w->answers[w->answer_head++ % QUEUE_MAX]);
}

void store_answer(struct world *w)
{
    if (w->answer_head == w->answer_tail)
        return;
    struct answer a = w->answers[w->answer_head++ % QUEUE_MAX];
    feed(w, a.ev);
    answer_done(&a);
}
