/* Requests of one account, and what becomes of their answers. */
#include "site/tables/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "tables_internal.h"

/* A request on its way. */
struct request {
    struct site_tables *tables;
    uint64_t generation;
    uint64_t number; /* of the load or batch */
    int64_t *ids;
    union {
        struct store_site_load load;
        struct store_site_rows rows;
        struct store_site_apply apply;
    };
};

static struct request *new_request(struct site_tables *t, uint64_t number)
{
    struct request *r = xcalloc(1, sizeof(*r));
    r->tables = t;
    r->generation = t->generation;
    r->number = number;
    return r;
}

static void free_request(struct request *r)
{
    free(r->ids);
    free(r);
}

static bool is_current(const struct request *r)
{
    return r->generation == r->tables->generation;
}

static void failed(const struct request *r, const char *what, const struct err *err)
{
    r->tables->config.failed(r->tables->config.arg, what, err);
}

/* ---- the load ---- */

static struct site_signed signed_of(const struct store_site_bytes *b)
{
    struct site_signed s = {
        .bytes = {.key = b->key, .nonce = (uint64_t)b->nonce, .death = (uint64_t)b->death},
        .data = b->extrinsic.data,
        .len = b->extrinsic.len};
    memcpy(s.bytes.hash.bytes, b->hash, sizeof(s.bytes.hash.bytes));
    return s;
}

static struct site_room_row row_of(const struct store_site_tx *tx)
{
    struct site_terms terms = {.last = tx->deadline_block > 0 ? (uint64_t)tx->deadline_block : 0};
    if (tx->tip && !u128_parse(tx->tip, &terms.tip))
        UNREACHABLE(); /* the table has whole numbers */
    return (struct site_room_row){.id = (uint64_t)tx->id,
                                  .call = tx->call.data,
                                  .call_len = tx->call.len,
                                  .terms = terms,
                                  .cancel = tx->cancel};
}

static void tell_loaded(struct site_tables *t, const struct store_site_load *r, uint64_t load)
{
    size_t attempts = 0, at = 0;
    for (size_t i = 0; i < r->tx_count; i++)
        attempts += r->txs[i].attempt_count;
    uint64_t next[SITE_MEMBERS_MAX] = {0};
    struct site_signed *bytes = xcalloc(attempts + 1, sizeof(*bytes));
    struct site_room_row *rows = xcalloc(r->tx_count + 1, sizeof(*rows));
    struct site_room_dispatch *dispatches = xcalloc(r->dispatch_count + 1, sizeof(*dispatches));
    for (size_t i = 0; i < r->tx_count; i++) {
        rows[i] = row_of(&r->txs[i]);
        rows[i].attempts = bytes + at;
        rows[i].count = r->txs[i].attempt_count;
        for (size_t k = 0; k < rows[i].count; k++)
            bytes[at + k] = signed_of(&r->txs[i].attempts[k]);
        knowledge_add(&t->knowledge, rows[i].id, r->txs[i].guard, &rows[i].terms);
        for (size_t k = 0; k < rows[i].count; k++)
            knowledge_grant(&t->knowledge, rows[i].id, &bytes[at + k].bytes.hash);
        at += rows[i].count;
    }
    for (size_t i = 0; i < r->dispatch_count; i++)
        dispatches[i] = (struct site_room_dispatch){.sender = r->dispatches[i].sender,
                                                    .id = (uint64_t)r->dispatches[i].id,
                                                    .attempt = signed_of(&r->dispatches[i].bytes)};
    for (size_t i = 0; i < r->next_count && i < SITE_MEMBERS_MAX; i++)
        next[i] = (uint64_t)r->next[i];
    const struct site_room_loaded loaded = {.lost = r->lost,
                                            .wait_until = (uint64_t)r->wait_until,
                                            .highest = (uint64_t)r->highest,
                                            .final = (uint64_t)r->final,
                                            .next = next,
                                            .rows = rows,
                                            .row_count = r->tx_count,
                                            .dispatches = dispatches,
                                            .dispatch_count = r->dispatch_count};
    t->loaded = true;
    site_account_loaded(t->config.account, load, &loaded);
    if (t->config.loaded)
        t->config.loaded(t->config.arg, loaded.final, next);
    free(dispatches);
    free(rows);
    free(bytes);
}

static void on_load(struct store_site_load *l)
{
    struct request *r = CONTAINER_OF(l, struct request, load);
    struct site_tables *t = r->tables;
    if (is_current(r)) {
        if (l->err.code) {
            site_account_loaded(t->config.account, r->number, NULL);
            failed(r, "load", &l->err);
        } else {
            tell_loaded(t, l, r->number);
        }
    }
    free_request(r);
}

void site_tables_load(struct site_tables *t, uint64_t load)
{
    t->generation++;
    t->loaded = t->polling = false;
    knowledge_forget_all(&t->knowledge);
    best_clear(&t->best);
    struct request *r = new_request(t, load);
    r->load = (struct store_site_load){.account = t->config.row, .epoch = t->epoch};
    store_site_load_start(t->config.store, &r->load, on_load);
}

/* ---- the poll ---- */

/* Returns how many are new; the terms of the others have changed. */
static size_t tell_rows(struct site_tables *t, const struct store_site_rows *r)
{
    size_t fresh = 0;
    struct site_room_row *rows = xcalloc(r->count + 1, sizeof(*rows));
    for (size_t i = 0; i < r->count; i++) {
        rows[i] = row_of(&r->rows[i]);
        fresh += (size_t)knowledge_add(&t->knowledge, rows[i].id, r->rows[i].guard, &rows[i].terms);
    }
    if (r->count)
        site_account_rows(t->config.account, rows, r->count);
    free(rows);
    return fresh;
}

/* One that the room does not have yet is given by a later poll, and stopped by the one after it. */
static void tell_stops(struct site_tables *t, const struct store_site_rows *r)
{
    for (size_t i = 0; i < r->stop_count; i++) {
        const struct store_site_stop *stop = &r->stops[i];
        struct known *k = knowledge_of(&t->knowledge, (uint64_t)stop->id);
        if (!k)
            continue;
        snprintf(k->outcome, sizeof(k->outcome), "%s", stop->outcome);
        snprintf(k->error, sizeof(k->error), "%s", stop->error ? stop->error : "");
        site_account_cancel(t->config.account, k->id);
    }
}

static void on_rows(struct store_site_rows *s)
{
    struct request *r = CONTAINER_OF(s, struct request, rows);
    struct site_tables *t = r->tables;
    if (is_current(r)) {
        t->polling = false;
        if (s->err.code) {
            failed(r, "poll", &s->err);
        } else {
            size_t fresh = tell_rows(t, s);
            tell_stops(t, s);
            if (is_current(r))
                t->config.polled(t->config.arg, fresh, s->next_ms);
        }
    }
    free_request(r);
}

bool site_tables_poll(struct site_tables *t, uint32_t limit)
{
    if (!t->loaded || t->polling)
        return false;
    t->polling = true;
    struct request *r = new_request(t, 0);
    size_t n = 0;
    r->ids = xcalloc(HASH_COUNT(t->knowledge.known) + 1, sizeof(*r->ids));
    for (const struct known *k = t->knowledge.known; k; k = k->hh.next)
        r->ids[n++] = (int64_t)k->id;
    r->rows = (struct store_site_rows){.account = t->config.row,
                                       .epoch = t->epoch,
                                       .limit = limit,
                                       .known = r->ids,
                                       .known_count = n};
    store_site_rows_start(t->config.store, &r->rows, on_rows);
    return true;
}

/* ---- writes ---- */

static void end_in_block(const struct site_tables *t, const struct site_room_write *w,
                         struct store_site_write *ret)
{
    const struct site_tables_block *b = t->block;
    PRE(b);
    for (size_t i = 0; i < b->count; i++) {
        if (memcmp(&b->used[i].bytes.hash, &w->attempt.bytes.hash, sizeof(struct site_hash)) != 0)
            continue;
        ret->outcome = b->ends[i].outcome;
        ret->error = b->ends[i].error;
        ret->index = b->ends[i].index;
        ret->fee = b->ends[i].fee;
        ret->block = b->hash;
        ret->number = (int64_t)b->number;
        return;
    }
    UNREACHABLE();
}

static void end(const struct site_tables *t, const struct site_room_write *w,
                struct store_site_write *ret)
{
    const struct known *k = knowledge_of(&t->knowledge, w->id);
    ret->kind = STORE_SITE_END;
    if (w->end == SITE_OK) {
        end_in_block(t, w, ret);
        return;
    }
    ret->outcome = k && k->outcome[0] ? k->outcome : "cancelled";
    ret->error = k && k->error[0] ? k->error : NULL;
}

static enum store_site_kind kind_of(enum site_effect_type type)
{
    switch (type) {
    case SITE_FX_STORE_GRANT:
        return STORE_SITE_GRANT;
    case SITE_FX_STORE_DISPATCH:
        return STORE_SITE_DISPATCH;
    case SITE_FX_STORE_NOTED:
        return STORE_SITE_NOTED;
    case SITE_FX_STORE_DROP:
        return STORE_SITE_DROP;
    case SITE_FX_STORE_END:
        return STORE_SITE_END;
    case SITE_FX_STORE_FINAL:
        return STORE_SITE_FINAL;
    case SITE_FX_STORE_WAIT:
        return STORE_SITE_WAIT;
    case SITE_FX_LOAD:
    case SITE_FX_SEND:
    case SITE_FX_SIGN:
    case SITE_FX_SUBMIT:
        break; /* not stored */
    }
    UNREACHABLE();
}

static struct store_site_write write_of(const struct site_tables *t,
                                        const struct site_room_write *w, char ret_tip[40])
{
    const struct site_tables_config *c = &t->config;
    const struct site_signed *s = &w->attempt;
    struct store_site_write row = {
        .kind = kind_of(w->type),
        .member = w->sender,
        .id = (int64_t)w->id, /* a filler's is below 0 */
        .bytes = {.key = s->bytes.key,
                  .nonce = (int64_t)s->bytes.nonce,
                  .death = (int64_t)s->bytes.death,
                  .extrinsic = {.data = s->data, .len = s->len}},
        .birth = -1,
        .number = -1,
        .index = -1,
    };
    memcpy(row.bytes.hash, s->bytes.hash.bytes, sizeof(row.bytes.hash));
    if (w->type == SITE_FX_STORE_GRANT && c->describe)
        c->describe(c->arg, s->data, s->len, &row, ret_tip);
    if (w->type == SITE_FX_STORE_END)
        end(t, w, &row);
    if (w->type == SITE_FX_STORE_FINAL || w->type == SITE_FX_STORE_WAIT)
        row.number = (int64_t)w->height;
    return row;
}

static void tell_stored(struct site_tables *t, const struct request *r)
{
    int code = r->apply.err.code;
    if (!code) {
        for (size_t i = 0; r->ids && r->ids[i]; i++) {
            struct known *k = knowledge_of(&t->knowledge, (uint64_t)r->ids[i]);
            if (k)
                knowledge_forget(&t->knowledge, k);
        }
        site_account_stored(t->config.account, r->number, SITE_STORED);
        return;
    }
    bool lost = err_class(code) == ERR_CLASS_LOST_LEADERSHIP;
    t->generation++; /* later batches are not answered */
    t->loaded = t->polling = false;
    if (lost)
        t->epoch = 0;
    site_account_stored(t->config.account, r->number,
                        lost ? SITE_STORED_LOST : SITE_STORED_UNKNOWN);
    failed(r, "store", &r->apply.err);
}

static void on_applied(struct store_site_apply *a)
{
    struct request *r = CONTAINER_OF(a, struct request, apply);
    if (is_current(r))
        tell_stored(r->tables, r);
    free_request(r);
}

void site_tables_store(struct site_tables *t, uint64_t batch, const struct site_room_write *writes,
                       size_t count)
{
    struct store_site_write *rows = xcalloc(count, sizeof(*rows));
    char(*tips)[40] = xcalloc(count, sizeof(*tips));
    int64_t next[SITE_MEMBERS_MAX] = {0};
    size_t ended = 0;
    bool final = false;
    struct request *r = new_request(t, batch);
    r->ids = xcalloc(count + 1, sizeof(*r->ids)); /* that end; 0 is no id */
    for (size_t i = 0; i < count; i++) {
        rows[i] = write_of(t, &writes[i], tips[i]);
        final = final || writes[i].type == SITE_FX_STORE_FINAL;
        if (writes[i].type == SITE_FX_STORE_END)
            r->ids[ended++] = rows[i].id;
        if (writes[i].type == SITE_FX_STORE_GRANT)
            knowledge_grant(&t->knowledge, writes[i].id, &writes[i].attempt.bytes.hash);
    }
    PRE(!final || t->block);
    for (uint32_t i = 0; final && i < t->config.members; i++)
        next[i] = (int64_t)t->block->next[i];
    r->apply = (struct store_site_apply){.account = t->config.row,
                                         .epoch = t->epoch,
                                         .count = count,
                                         .rows = rows,
                                         .next_count = final ? t->config.members : 0,
                                         .next = next};
    store_site_apply_start(t->config.store, &r->apply, on_applied);
    free(tips); /* the start has read them */
    free(rows);
}

/* ---- the account ---- */

uint64_t site_tables_id_of(const struct site_tables *t, const uint8_t hash[SITE_HASH_BYTES])
{
    return knowledge_granted(&t->knowledge, hash);
}

void site_tables_final(struct site_tables *t, const struct site_tables_block *b)
{
    PRE(!t->block);
    t->block = b;
    site_account_final(t->config.account, b->number, b->next, b->used, b->count);
    t->block = NULL;
    best_final(&t->best, b->number);
}

void site_tables_lead(struct site_tables *t, int64_t epoch)
{
    t->generation++;
    t->loaded = t->polling = false;
    t->epoch = epoch;
    site_account_lead(t->config.account, epoch != 0);
}

struct site_tables *site_tables_new(const struct site_tables_config *config)
{
    struct site_tables *t = xcalloc(1, sizeof(*t));
    t->config = *config;
    return t;
}

struct site_tables *site_tables_free(struct site_tables *t)
{
    if (t) {
        knowledge_forget_all(&t->knowledge);
        best_clear(&t->best);
    }
    free(t);
    return NULL;
}
