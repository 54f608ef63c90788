/* A copy of all tables: what a standby has. Texts and bytes are shared with the original. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "mem/mem.h"

static struct mem_row *copy_row(const struct mem_row *from)
{
    struct mem_row *row = xmalloc(sizeof(*row));
    *row = *from;
    row->node = (struct list){0};
    row->at = NULL;
    row->held = NULL; /* a standby has no sessions */
    const char *texts[] = {row->key,   row->creator, row->trace,
                           row->waits, row->error,   row->stop_reason};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        mem__share(texts[i]);
    mem__share_bytes(row->call);
    return row;
}

static void copy_attempt(struct mem_nonce *n, const struct mem_attempt *from)
{
    struct mem_attempt t = *from;
    mem__share_bytes(t.extrinsic);
    mem__share(t.reason);
    mem__share(t.error);
    t.refusals = NULL;
    if (t.refusal_count) {
        t.refusals = xcalloc(t.refusal_count, sizeof(*t.refusals));
        memcpy(t.refusals, from->refusals, t.refusal_count * sizeof(*t.refusals));
    }
    for (size_t i = 0; i < t.refusal_count; i++)
        mem__share(t.refusals[i].error);
    mem__attempt_add(n, &t);
}

static void copy_asks(struct mem_account *a, const struct mem_account *from)
{
    a->cancellation_count = a->cancellation_cap = from->cancellation_count;
    a->bump_count = a->bump_cap = from->bump_count;
    a->cancellations = xcalloc(from->cancellation_count + 1, sizeof(*a->cancellations));
    a->bumps = xcalloc(from->bump_count + 1, sizeof(*a->bumps));
    if (from->cancellation_count)
        memcpy(a->cancellations, from->cancellations,
               from->cancellation_count * sizeof(*a->cancellations));
    for (size_t i = 0; i < a->cancellation_count; i++)
        mem__share(a->cancellations[i].trace);
    if (from->bump_count)
        memcpy(a->bumps, from->bumps, from->bump_count * sizeof(*a->bumps));
}

static void copy_columns(struct mem_account *a, const struct mem_account *from)
{
    struct mem_account empty = *a;
    *a = *from;
    a->outbox = a->signed_rows = (struct list){0};
    list_init(&a->outbox);
    list_init(&a->signed_rows);
    a->pending = empty.pending;
    a->nonces = empty.nonces;
    a->pending_count = a->pending_cap = a->nonce_count = a->nonce_cap = a->timed = 0;
    const char *texts[] = {
        a->alias, a->scheme, a->address, a->lead.holder, a->lead.holder_address, a->paused_reason};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        mem__share(texts[i]);
    mem__share_bytes(a->account_id);
    mem__share_bytes(a->genesis);
}

static void copy_account(struct mem_tables *to, const struct mem_account *from)
{
    struct mem_account *a = mem__account_new(to);
    copy_columns(a, from);
    copy_asks(a, from);
    for (size_t i = 0; i < from->nonce_count; i++) {
        struct mem_nonce *n = mem__nonce_make(a, from->nonces[i]->nonce);
        n->last_end = from->nonces[i]->last_end;
        for (size_t k = 0; k < from->nonces[i]->count; k++)
            copy_attempt(n, &from->nonces[i]->attempts[k]);
    }
    LIST_EACH (p, &from->outbox)
        mem__outbox_put(to, a, copy_row(CONTAINER_OF(p, struct mem_row, node)));
    LIST_EACH (p, &from->signed_rows)
        mem__signed_put(to, a, copy_row(CONTAINER_OF(p, struct mem_row, node)));
    for (size_t i = 0; i < from->pending_count; i++) {
        struct mem_row *row = copy_row(from->pending[i]);
        mem__pending_put(a, row, row->nonce);
        if (row->id)
            mem__id_make(to, row->id)->row = row;
    }
}

static void copy_ends(struct mem_tables *to, const struct mem_tables *from)
{
    to->finished_first = from->finished_first;
    to->finished_count = to->finished_cap = from->finished_count;
    to->finished = xcalloc(from->finished_count + 1, sizeof(*to->finished));
    for (size_t i = 0; i < from->finished_count; i++) {
        struct mem_finished *f = &to->finished[i];
        *f = from->finished[i];
        mem__share(f->error);
        mem__share(f->key);
        mem__share(f->creator);
        mem__share(f->options.trace);
        mem__share_bytes(f->call);
        if (f->id)
            mem__id_make(to, f->id)->end = from->finished_first + (int64_t)i;
    }
}

/* Those of open transactions are not in it. */
static void copy_keys(struct mem_tables *to, const struct mem_tables *from)
{
    for (const struct mem_key *k = from->keys; k; k = k->hh.next) {
        if (k->open)
            continue;
        size_t size = sizeof(*k) + strlen(k->name) + 1;
        struct mem_key *copy = xmalloc(size);
        memcpy(copy, k, size);
        HASH_ADD_STR(to->keys, name, copy);
    }
}

void mem__tables_copy(struct mem_tables *to, const struct mem_tables *from)
{
    mem__tables_init(to);
    to->last_id = from->last_id;
    for (size_t i = 0; i < from->account_count; i++)
        copy_account(to, from->accounts[i]);
    copy_ends(to, from);
    copy_keys(to, from);
    to->member_count = from->member_count;
    to->lease_count = from->lease_count;
    to->members = xcalloc(from->member_count + 1, sizeof(*to->members));
    to->leases = xcalloc(from->lease_count + 1, sizeof(*to->leases));
    for (size_t i = 0; i < from->member_count; i++) {
        to->members[i] = from->members[i];
        mem__share(to->members[i].holder);
        mem__share(to->members[i].address);
    }
    for (size_t i = 0; i < from->lease_count; i++) {
        to->leases[i] = from->leases[i];
        mem__share(to->leases[i].holder);
    }
}

struct mem_copy *mem_copy_new(const struct mem_db *db)
{
    struct mem_copy *c = xcalloc(1, sizeof(*c));
    mem__tables_copy(&c->t, &db->t);
    return c;
}

struct mem_copy *mem_copy_free(struct mem_copy *c)
{
    if (!c)
        return NULL;
    mem__tables_done(&c->t);
    free(c);
    return NULL;
}
