/* What the node's pool holds of each account that asks. The node tells all of it at a time, so one
 * question serves all that have come before it is asked: those that come while it is out wait for
 * the next one, because the answer may be older than what they want to know.
 *
 *   IDLE --an account asks--> ASKED_WAIT --answer, others wait--> ASKED_WAIT
 *                                        --answer-----------------> IDLE
 *
 * Where an account wants its extrinsics whole, their signatures are verified before it receives
 * them; for that the node is asked for the blocks on which their eras begin. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/plant.h"
#include "service/service_internal.h"

struct pool_ask {
    struct list node;
    struct account *account;
    uint64_t generation;
    bool whole;
    struct buf hashes;
    struct tx_included *pooled; /* what this account signed, with bytes of its own */
    size_t pooled_count;
};

enum { BIRTHS_MAX = 256 }; /* of one answer */

/* A block on which the era of a pooled extrinsic begins. */
struct pool_birth {
    uint64_t number;
    bool found;
    uint8_t hash[32];
};

struct service_pool {
    struct room room;
    struct node_ask ask, birth_ask;
    struct buf hashes; /* of all submitters */
    struct list waiting, sent;
    bool out, failed;
    bool untold;               /* no endpoint tells its pool: the answer is empty */
    struct pool_birth *births; /* of what was answered; the last one is being asked for */
    size_t birth_count;
};

static void note(struct pool_ask *q, const struct tx_included *x)
{
    buf_put(&q->hashes, x->hash, sizeof(x->hash));
    if (!q->whole)
        return;
    PRE(x->bytes); /* the node reports what it has decoded */
    q->pooled = xrealloc(q->pooled, (q->pooled_count + 1) * sizeof(*q->pooled));
    struct tx_included *row = &q->pooled[q->pooled_count++];
    uint8_t *bytes = xmalloc(x->bytes_len);
    memcpy(bytes, x->bytes, x->bytes_len);
    *row = *x;
    row->bytes = bytes;
}

static void on_pooled(struct node_ask *ask, const struct node_included *x)
{
    struct service_pool *p = CONTAINER_OF(ask, struct service_pool, ask);
    struct account *a;
    HASH_FIND(hh, p->room.service->by_id, x->signer, (unsigned)x->signer_len, a);
    if (a && a->pool_ask)
        note(a->pool_ask, &x->tx);
}

static void end(struct pool_ask *q, bool failed, bool untold)
{
    struct account *a = q->account;
    list_remove(&q->node);
    if (a->pool_ask == q)
        a->pool_ask = NULL;
    if (q->generation == a->generation)
        account_event(a, &(struct manager_event){
                             .type = MANAGER_EV_POOL,
                             .pool = {.failed = failed,
                                      .untold = untold,
                                      .hashes = (const uint8_t(*)[32])(const void *)q->hashes.data,
                                      .count = untold ? 0 : q->hashes.len / 32,
                                      .pooled = q->pooled,
                                      .pooled_count = untold ? 0 : q->pooled_count}});
    for (size_t i = 0; i < q->pooled_count; i++)
        free((void *)q->pooled[i].bytes);
    free(q->pooled);
    buf_done(&q->hashes);
    free(q);
}

static void ask(struct service_pool *p);

static void finish(struct service_pool *p, bool closing)
{
    free(p->births);
    p->births = NULL;
    p->birth_count = 0;
    p->out = false;
    for (struct list *i = list_first(&p->sent); i; i = list_first(&p->sent))
        end(CONTAINER_OF(i, struct pool_ask, node), p->failed, p->untold);
    if (closing)
        for (struct list *i = list_first(&p->waiting); i; i = list_first(&p->waiting))
            end(CONTAINER_OF(i, struct pool_ask, node), true, false);
    ask(p);
}

/* ---- signatures: what the database lost is adopted by its bytes ---- */

static const struct pool_birth *birth_of(const struct service_pool *p, uint64_t number)
{
    for (size_t i = 0; i < p->birth_count; i++)
        if (p->births[i].number == number)
            return &p->births[i];
    return NULL;
}

/* The next block whose hash is not known yet; UINT64_MAX: none, or too many were asked for. */
static uint64_t missing(const struct service_pool *p)
{
    if (p->birth_count == BIRTHS_MAX)
        return UINT64_MAX;
    LIST_EACH (i, &p->sent) {
        const struct pool_ask *q = CONTAINER_OF(i, struct pool_ask, node);
        for (size_t k = 0; k < q->pooled_count; k++)
            if (q->pooled[k].era_birth >= 0 && !birth_of(p, (uint64_t)q->pooled[k].era_birth))
                return (uint64_t)q->pooled[k].era_birth;
    }
    return UINT64_MAX;
}

static void verify(const struct service_pool *p, const struct node_info *info,
                   struct tx_included *x)
{
    if (PLANTED(POOLED_BELIEVED)) {
        x->signature = TX_SIGNATURE_GOOD;
        return;
    }
    struct extrinsic_params facts = {.spec_version = info->spec_version,
                                     .transaction_version = info->transaction_version};
    const struct pool_birth *birth = x->era_birth >= 0 ? birth_of(p, (uint64_t)x->era_birth) : NULL;
    if (x->era_birth >= 0 && (!birth || !birth->found))
        return;
    memcpy(facts.genesis, info->genesis, 32);
    if (birth)
        memcpy(facts.era_block_hash, birth->hash, 32);
    x->signature = account_verify(x, info->metadata, &facts);
    if (x->signature == TX_SIGNATURE_BAD)
        log_warn("pool.bad_signature", "hash=%s nonce=%llu", hex_log(x->hash, 32),
                 (unsigned long long)x->nonce);
}

static void on_birth(struct node_ask *n);

static void go_on(struct service_pool *p)
{
    const struct node_info *info = node_info(p->room.service->node);
    uint64_t number = missing(p);
    if (number != UINT64_MAX) {
        p->births = xrealloc(p->births, (p->birth_count + 1) * sizeof(*p->births));
        p->births[p->birth_count++] = (struct pool_birth){.number = number};
        node_ask_hash(p->room.service->node, &p->birth_ask, number, on_birth);
        return;
    }
    p->failed = !info;
    LIST_EACH (i, &p->sent) {
        struct pool_ask *q = CONTAINER_OF(i, struct pool_ask, node);
        for (size_t k = 0; k < q->pooled_count && info; k++)
            verify(p, info, &q->pooled[k]);
    }
    finish(p, false);
}

static void on_birth(struct node_ask *n)
{
    struct service_pool *p = CONTAINER_OF(n, struct service_pool, birth_ask);
    struct pool_birth *b = &p->births[p->birth_count - 1];
    if (n->err.code) {
        p->failed = true;
        finish(p, n->err.code == ERR_CANCELED);
        return;
    }
    b->found = n->found;
    memcpy(b->hash, n->hash, 32);
    go_on(p);
}

static void on_answer(struct node_ask *n)
{
    struct service_pool *p = CONTAINER_OF(n, struct service_pool, ask);
    p->untold = n->untold;
    p->failed = n->err.code != 0 && !n->untold;
    if (p->failed)
        finish(p, n->err.code == ERR_CANCELED); /* the node is closing */
    else
        go_on(p);
}

/* An account whose earlier question was given up may wait with two: the second one has its turn
 * after the first. */
static void ask(struct service_pool *p)
{
    if (p->out || list_empty(&p->waiting))
        return;
    for (struct list *i = p->waiting.next, *after; i != &p->waiting; i = after) {
        struct pool_ask *q = CONTAINER_OF(i, struct pool_ask, node);
        after = i->next;
        if (q->account->pool_ask)
            continue;
        q->account->pool_ask = q;
        list_remove(i);
        list_append(&p->sent, i);
    }
    p->out = true;
    buf_clear(&p->hashes);
    node_ask_pending(p->room.service->node, &p->ask, &p->hashes, on_pooled, on_answer);
}

void account_ask_pool(struct account *a, bool whole)
{
    struct service_pool *p = a->service->pool;
    struct pool_ask *q = xcalloc(1, sizeof(*q));
    q->account = a;
    q->generation = a->generation;
    q->whole = whole;
    list_append(&p->waiting, &q->node);
    ask(p);
}

/* ---- the room ---- */

static void pool_free(struct room *r)
{
    struct service_pool *p = r->service->pool;
    INVARIANT(list_empty(&p->waiting) && list_empty(&p->sent));
    buf_done(&p->hashes);
    r->service->pool = NULL;
    free(p);
}

/* A question that is out ends with the node. */
static const struct room_ops ops = {.name = "pool", .free = pool_free};

struct room *service_pool(struct service *s, struct err *err)
{
    (void)err;
    s->pool = xcalloc(1, sizeof(*s->pool));
    s->pool->room = (struct room){.ops = &ops, .service = s};
    list_init(&s->pool->waiting);
    list_init(&s->pool->sent);
    return &s->pool->room;
}
