/* Where the tables begin and end. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "mem/mem.h"

void mem__tables_init(struct mem_tables *t)
{
    *t = (struct mem_tables){0};
}

struct mem_account *mem__account_new(struct mem_tables *t)
{
    struct mem_account *a = xcalloc(1, sizeof(*a));
    a->next_nonce = a->used_nonce = a->used_block = a->seen_block = -1;
    a->reconcile_from = a->lost_heard = -1;
    a->suspension = "";
    list_init(&a->outbox);
    list_init(&a->signed_rows);
    t->accounts = xrealloc(t->accounts, (t->account_count + 1) * sizeof(struct mem_account *));
    t->accounts[t->account_count++] = a;
    a->number = (int32_t)t->account_count;
    return a;
}

static void rows_free(struct list *rows)
{
    for (struct list *p = list_first(rows); p; p = list_first(rows)) {
        list_remove(p);
        mem__row_free(CONTAINER_OF(p, struct mem_row, node));
    }
}

static void account_free(struct mem_account *a)
{
    const char *texts[] = {
        a->alias, a->scheme, a->address, a->lead.holder, a->lead.holder_address, a->paused_reason};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        mem__drop(texts[i]);
    mem__drop_bytes(a->account_id);
    mem__drop_bytes(a->genesis);
    rows_free(&a->outbox);
    rows_free(&a->signed_rows);
    for (size_t i = 0; i < a->pending_count; i++)
        mem__row_free(a->pending[i]);
    for (size_t i = 0; i < a->nonce_count; i++)
        mem__nonce_free(a->nonces[i]);
    free(a->pending);
    free(a->nonces);
    for (size_t i = 0; i < a->cancellation_count; i++)
        mem__drop(a->cancellations[i].trace);
    free(a->cancellations);
    free(a->bumps);
    free(a);
}

static void hashes_free(struct mem_tables *t)
{
    struct mem_id *x, *next_id;
    HASH_ITER(hh, t->ids, x, next_id)
    {
        HASH_DELETE(hh, t->ids, x);
        free(x);
    }
    struct mem_key *k, *next_key;
    HASH_ITER(hh, t->keys, k, next_key)
    {
        HASH_DELETE(hh, t->keys, k);
        free(k);
    }
}

void mem__tables_done(struct mem_tables *t)
{
    for (size_t i = 0; i < t->account_count; i++)
        account_free(t->accounts[i]);
    for (size_t i = 0; i < t->finished_count; i++)
        mem__finished_done(&t->finished[i]);
    for (size_t i = 0; i < t->member_count; i++) {
        mem__drop(t->members[i].holder);
        mem__drop(t->members[i].address);
    }
    for (size_t i = 0; i < t->lease_count; i++)
        mem__drop(t->leases[i].holder);
    hashes_free(t);
    free(t->accounts);
    free(t->finished);
    free(t->members);
    free(t->leases);
    *t = (struct mem_tables){0};
}
