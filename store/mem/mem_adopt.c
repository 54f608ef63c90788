/* leader_adopt of 17_reconcile.sql: what the chain or a pool holds, and a failover lost. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "mem/mem.h"

enum { ERALESS_BLOCKS = 1024 };
#define CLOCKS_US 60000000

static int64_t nonce_of(const void *rows, size_t i)
{
    return (int64_t)((const struct tx_found *)rows)[i].nonce;
}

static struct store_bytes call_of(const struct tx_found *in)
{
    size_t len = in->call_len < in->bytes_len ? in->call_len : in->bytes_len;
    return (struct store_bytes){in->bytes + (in->bytes_len - len), len};
}

/* The pending row that it is a later attempt of; one that was signed elsewhere is never signed
 * anew. */
static struct mem_row *later_of(const struct mem_account *a, const struct tx_found *in)
{
    int64_t nonce = (int64_t)in->nonce;
    struct mem_row *row = mem__pending(a, nonce);
    bool known = mem__attempt_of(mem__nonce_at(a, nonce), in->hash) != 0;
    return row && !known && !row->presigned && mem__same_bytes(row->call, call_of(in)) ? row : NULL;
}

static struct mem_attempt attempt_of(const struct store_adopt *r, const struct tx_found *in,
                                     uint32_t version, int64_t id)
{
    struct store_attempts w = {
        .epoch = r->epoch, .spec_version = r->spec_version, .block = r->block};
    char tip[40];
    struct store_attempt_row row = {.extrinsic = {in->bytes, in->bytes_len},
                                    .tip = u128_text(in->tip, tip),
                                    .era_birth = in->era_birth,
                                    .era_death = in->era_death};
    memcpy(row.hash, in->hash, 32);
    return mem__attempt_new(&w, &row, version, id);
}

static struct mem_row *signed_attempt(const struct mem_account *a, const struct tx_found *in)
{
    LIST_EACH (p, &a->signed_rows) {
        struct mem_row *row = CONTAINER_OF(p, struct mem_row, node);
        if (mem__same_bytes(row->call, (struct store_bytes){in->bytes, in->bytes_len}))
            return row;
    }
    return NULL;
}

/* The first that was there when the block was made; clocks may differ by a minute. */
static struct mem_row *call_row(const struct mem_account *a, const struct tx_found *in)
{
    LIST_EACH (p, &a->outbox) {
        struct mem_row *row = CONTAINER_OF(p, struct mem_row, node);
        if (mem__same_bytes(row->call, call_of(in)) &&
            (in->time_ms < 0 || row->created_us <= in->time_ms * 1000 + CLOCKS_US))
            return row;
    }
    return NULL;
}

/* The signer may have submitted it long before: only its era is known. */
static int64_t signed_block(const struct store_adopt *r, const struct tx_found *in)
{
    int64_t from = in->era_birth >= 0          ? in->era_birth
                   : r->block > ERALESS_BLOCKS ? r->block - ERALESS_BLOCKS
                                               : 0;
    return from < r->block ? from : r->block;
}

static bool adopt(struct mem_db *db, struct mem_account *a, const struct store_adopt *r,
                  const struct tx_found *in, uint32_t version)
{
    int64_t nonce = (int64_t)in->nonce;
    struct mem_row *row = later_of(a, in);
    if (row) {
        int64_t era = in->era_birth < 0 ? 0 : in->era_death - in->era_birth;
        if (era > (int64_t)a->era_longest)
            a->era_longest = (uint32_t)era;
        a->era_immortal |= in->era_death < 0;
        struct mem_attempt t =
            attempt_of(r, in, version ? version : r->transaction_version, row->id);
        mem__attempt_again(db, a, row, &t,
                           "a later attempt was found, which the database had lost");
        return true;
    }
    if (mem__pending(a, nonce) || mem__attempt_of(mem__nonce_at(a, nonce), in->hash))
        return false;
    if ((row = signed_attempt(a, in))) {
        struct mem_attempt t =
            attempt_of(r, in, version ? version : r->transaction_version, row->id);
        t.block = signed_block(r, in);
        mem__signed_pend(db, a, row, &t, nonce, call_of(in).len);
    } else if ((row = call_row(a, in))) {
        struct mem_attempt t = attempt_of(r, in, r->transaction_version, row->id);
        if (in->era_birth > t.block && !PLANTED(FORMER_LIFE))
            t.block = in->era_birth;
        mem__waiting_take(a, row);
        row->not_before_us = 0;
        mem__pend(db, a, row, nonce, &t);
        if (!a->transaction_version)
            a->transaction_version = r->transaction_version;
    } else {
        return false;
    }
    if (a->next_nonce < nonce + 1)
        a->next_nonce = nonce + 1;
    return true;
}

/* By nonce, then by the block; what is in a pool comes last. */
static int in_order(const void *x, const void *y)
{
    const struct tx_found *a = *(const struct tx_found *const *)x,
                          *b = *(const struct tx_found *const *)y;
    if (a->nonce != b->nonce)
        return a->nonce > b->nonce ? 1 : -1;
    uint64_t at = (uint64_t)a->time_ms, bt = (uint64_t)b->time_ms; /* -1: after all times */
    return at != bt ? (at > bt) - (at < bt) : memcmp(a->hash, b->hash, 32);
}

static bool is_same(const struct mem_row *row, const struct tx_found *in)
{
    struct store_bytes bytes =
        row->table == MEM_OUTBOX ? call_of(in) : (struct store_bytes){in->bytes, in->bytes_len};
    return mem__same_bytes(row->call, bytes);
}

static const struct mem_row *held_in(const struct list *rows, const struct tx_found *in)
{
    LIST_EACH (p, rows) {
        const struct mem_row *row = CONTAINER_OF(p, struct mem_row, node);
        if (row->held && is_same(row, in))
            return row;
    }
    return NULL;
}

/* A row that an application holds is not passed over: it would be sent again if that rolls back. Of
 * several found extrinsics with one call each takes the next row, so any of these counts. */
static int check_free(const struct mem_account *a, const struct store_adopt *r,
                      const struct tx_found *in, struct err *err)
{
    int64_t nonce = (int64_t)in->nonce;
    if (mem__pending(a, nonce) || mem__attempt_of(mem__nonce_at(a, nonce), in->hash))
        return 0;
    const struct mem_row *held = held_in(&a->signed_rows, in), *first = call_row(a, in);
    if (!held && !signed_attempt(a, in) && first && (first->held || r->count > 1))
        held = held_in(&a->outbox, in);
    return held ? mem__held(err, held) : 0;
}

/* All of the wait was read, or it is cut short. */
static bool done_rightly(const struct mem_account *a, const struct store_adopt *r)
{
    int64_t until = mem__lost_until(a);
    return r->done && (r->read < 0 || (until >= 0 && r->read >= until));
}

void mem__adopt(struct mem_session *s, struct store_adopt *r)
{
    r->adopted = 0;
    struct mem_account *a = mem__fence(s->db, r->account, r->epoch, &r->req.err);
    if (!a ||
        (a->reconcile_from >= 0 && !done_rightly(a, r) && mem__check_reconciled(a, &r->req.err)) ||
        mem__check_rows(r->count, nonce_of, r->rows, &r->req.err))
        return;
    for (size_t i = 0; i < r->count; i++) {
        const struct mem_row *row = later_of(a, &r->rows[i]);
        if (row && row->state == MEM_FINALIZED) {
            mem__fail(&r->req.err, "TR003", "nonce %lld: what is finalized stays",
                      (long long)row->nonce);
            return;
        }
        if (check_free(a, r, &r->rows[i], &r->req.err))
            return;
    }
    uint32_t version = a->transaction_version;
    const struct tx_found **rows = xcalloc(r->count + 1, sizeof(struct tx_found *));
    for (size_t i = 0; i < r->count; i++)
        rows[i] = &r->rows[i];
    qsort(rows, r->count, sizeof(struct tx_found *), in_order);
    for (size_t i = 0; i < r->count; i++)
        r->adopted += adopt(s->db, a, r, rows[i], version);
    free(rows);
    if (r->adopted && PLANTED(ADOPTED_MEMORY))
        a->lost_since_us = -1; /* see grant */
    if (r->done && (!r->adopted || PLANTED(ADOPTED_ONCE))) {
        a->reconcile_from = a->lost_heard = -1;
        a->lost_since_us = 0;
    }
}
