/* What the node says, for accounts that have sites: heads, and every finalized block in its order.
 * After lost commits a transaction is known by its call alone, so the database is asked whose call
 * an extrinsic carries before the room receives its block. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "sites/sites.h"

enum { AGAIN_MS = 5000, FEE_TEXT = 40, ERROR_TEXT = 160 };

/* A finalized block, with what of the account is in it. */
struct site_block {
    struct site_block *next;
    struct site_host *host;
    bool asking, dropped;
    uint64_t number, nonce; /* after it */
    uint8_t hash[32];
    size_t count;
    struct site_used *used;
    struct site_tables_end *ends;
    char (*errors)[ERROR_TEXT], (*fees)[FEE_TEXT];
    struct store_site_match match;
    struct store_bytes *calls; /* of the match, with bytes of their own */
    int64_t *times;
    size_t *matched; /* which of `used` they are */
};

/* ---- blocks that wait ---- */

static void block_free(struct site_block *b)
{
    for (size_t i = 0; i < b->match.count; i++)
        free((void *)b->calls[i].data);
    free(b->calls);
    free(b->times);
    free(b->matched);
    free(b->used);
    free(b->ends);
    free(b->errors);
    free(b->fees);
    free(b);
}

static void drop_all(struct site_host *h)
{
    for (struct site_block *b = h->blocks, *next; b; b = next) {
        next = b->next;
        b->dropped = true;
        if (!b->asking)
            block_free(b);
    }
    h->blocks = NULL;
    h->last = &h->blocks;
}

static void pump(struct site_host *h)
{
    for (struct site_block *b = h->blocks; b && !b->asking; b = h->blocks) {
        uint64_t next[SITE_MEMBERS_MAX] = {b->nonce};
        const struct site_tables_block told = {.number = b->number,
                                               .hash = b->hash,
                                               .next = next,
                                               .used = b->used,
                                               .ends = b->ends,
                                               .count = b->count};
        h->blocks = b->next;
        if (!h->blocks)
            h->last = &h->blocks;
        site_tables_final(h->tables, &told);
        block_free(b);
    }
}

static void on_match(struct store_site_match *r)
{
    struct site_block *b = CONTAINER_OF(r, struct site_block, match);
    struct site_host *h = b->host;
    b->asking = false;
    if (b->dropped) {
        block_free(b);
        return;
    }
    if (r->err.code) { /* it is read again */
        sites_lost(h, r->err.code);
        h->read = b->number - 1;
        drop_all(h);
        loop_timer_at(h->again, loop_now_ms(h->room->room.service->loop) + AGAIN_MS);
        return;
    }
    for (size_t i = 0; i < r->count; i++)
        b->used[b->matched[i]].id = (uint64_t)r->ids[i];
    pump(h);
}

static void match(struct site_block *b)
{
    struct site_host *h = b->host;
    b->asking = true;
    b->match.account = h->account->store_account;
    b->match.epoch = h->epoch;
    b->match.calls = b->calls;
    b->match.at_ms = b->times;
    store_site_match_start(h->room->store, &b->match, on_match);
}

/* ---- one block ---- */

static void add_match(struct site_block *b, const struct node_included *x, int64_t time_ms)
{
    size_t i = b->match.count++;
    uint8_t *call = xmalloc(x->tx.call_len + 1);
    memcpy(call, x->call, x->tx.call_len);
    b->calls[i] = (struct store_bytes){call, x->tx.call_len};
    b->times[i] = time_ms;
    b->matched[i] = b->count;
}

static void add_used(struct site_block *b, const struct node_included *x)
{
    static const char *const outcomes[] = {
        [DISPATCH_NONE] = "unknown", [DISPATCH_OK] = "ok", [DISPATCH_FAILED] = "dispatch_error"};
    const struct dispatch_result *r = &x->tx.result;
    size_t i = b->count++;
    struct site_tables_end *end = &b->ends[i];
    b->used[i].bytes.nonce = x->tx.nonce;
    memcpy(b->used[i].bytes.hash.bytes, x->tx.hash, sizeof(x->tx.hash));
    b->used[i].id = site_tables_id_of(b->host->tables, x->tx.hash);
    *end = (struct site_tables_end){.outcome = outcomes[r->outcome], .index = x->tx.index};
    if (r->outcome == DISPATCH_FAILED) {
        snprintf(b->errors[i], sizeof(b->errors[i]), "%s", r->error);
        end->error = b->errors[i];
    }
    if (r->has_fee)
        end->fee = u128_text(r->fee, b->fees[i]);
}

/* Above the nonces that the block shows for certain. */
static uint64_t shown(const struct site_host *h, const struct node_included *x)
{
    bool proven = x->tx.own_signer && x->tx.signature == TX_SIGNATURE_GOOD;
    return proven || site_account_has(h->site, x->tx.hash) ? x->tx.nonce + 1 : 0;
}

static bool is_of(const struct site_host *h, const struct node_included *x)
{
    const struct account *a = h->account;
    return (x->signer_len == a->id_len && !memcmp(x->signer, a->id, a->id_len)) ||
           site_account_has(h->site, x->tx.hash);
}

static struct site_block *block_of(struct site_host *h, const struct node_block *from)
{
    struct site_block *b = xcalloc(1, sizeof(*b));
    size_t most = from->included_count + 1;
    uint64_t nonce = from->nonces[h->account->node_index];
    b->host = h;
    b->number = from->head.number;
    b->nonce = h->next;
    memcpy(b->hash, from->head.hash, sizeof(b->hash));
    b->used = xcalloc(most, sizeof(*b->used));
    b->ends = xcalloc(most, sizeof(*b->ends));
    b->errors = xcalloc(most, sizeof(*b->errors));
    b->fees = xcalloc(most, sizeof(*b->fees));
    b->calls = xcalloc(most, sizeof(*b->calls));
    b->times = xcalloc(most, sizeof(*b->times));
    b->matched = xcalloc(most, sizeof(*b->matched));
    for (size_t i = 0; i < from->included_count; i++) {
        const struct node_included *x = &from->included[i];
        if (!is_of(h, x))
            continue;
        if (shown(h, x) > b->nonce)
            b->nonce = shown(h, x);
        if (sites_waits(h) && x->tx.bytes && !site_tables_id_of(h->tables, x->tx.hash))
            add_match(b, x, from->time_ms);
        add_used(b, x);
    }
    if (nonce != UINT64_MAX && nonce > b->nonce)
        b->nonce = nonce;
    return b;
}

/* Nothing can be said of transactions that may be in it. */
static void unread(struct site_host *h, uint64_t number)
{
    struct service *s = h->room->room.service;
    snprintf(h->trouble, sizeof(h->trouble),
             "no endpoint has the body of block %llu, which may hold its transactions",
             (unsigned long long)number);
    loop_timer_at(h->again, loop_now_ms(s->loop) + AGAIN_MS);
}

/* One reading of the runtime's version must not end what cannot be brought back. */
static void review(struct site_host *h)
{
    struct node *node = h->room->room.service->node;
    const struct node_info *info = node_info(node);
    if (info && node_version_confirmed(node))
        site_tables_review(h->tables, info->spec_version, h->read);
}

static void read_block(struct site_host *h, const struct node_block *from)
{
    struct site_block *b = block_of(h, from);
    sites_look_for_life(h, from, b->nonce);
    h->trouble[0] = 0;
    h->read = b->number;
    h->next = b->nonce;
    sites_refused_below(h, h->next);
    *h->last = b;
    h->last = &b->next;
    if (b->match.count)
        match(b);
    pump(h);
    review(h);
    sites_want(h);
    sites_look(h);
}

static bool needs(const struct site_host *h)
{
    struct site_account_view v;
    site_account_view(h->site, &v);
    return v.core.rows || v.core.work || v.core.waits;
}

void service_sites_block(struct account *a, const struct node_block *b)
{
    struct site_host *h = a->site;
    struct service *s = a->service;
    if (b->nonce_count <= a->node_index)
        return;
    bool whole = !b->unread;
    service_sites_seen(a, b);
    if (h->phase == HOST_BLOCK && whole && b->nonces[a->node_index] != UINT64_MAX)
        sites_setup(h, b->head.number, b->nonces[a->node_index]);
    if (!h->reading || b->head.number <= h->read)
        return;
    if (b->head.number > h->read + 1)
        service_follow(s, h->read + 1);
    else if (b->unread && needs(h))
        unread(h, b->head.number);
    else
        read_block(h, b);
}

/* ---- what the node asks about a block ---- */

bool service_sites_knows(const struct account *a, const uint8_t hash[32])
{
    return a->site->reading && site_account_has(a->site->site, hash);
}

bool service_sites_need(const struct account *a)
{
    return a->site->reading && needs(a->site);
}

bool service_sites_must_verify(const struct account *a, const uint8_t hash[32], uint64_t nonce)
{
    const struct site_host *h = a->site;
    return h->reading && !site_account_has(h->site, hash) && (nonce >= h->next || sites_waits(h));
}

/* From a nonce that no extrinsic shows it follows that bytes are dead. */
enum tx_doubt service_sites_doubts(const struct account *a, const struct node_block *b)
{
    const struct site_host *h = a->site;
    uint64_t expected = h->next;
    if (h->phase == HOST_BLOCK)
        return TX_TWICE;
    if (h->reaped)
        return TX_CERTAIN; /* nothing follows from it any more */
    if (!h->reading || b->head.number != h->read + 1)
        return TX_CERTAIN;
    for (size_t i = 0; i < b->included_count; i++)
        if (is_of(h, &b->included[i]) && shown(h, &b->included[i]) > expected)
            expected = shown(h, &b->included[i]);
    return b->nonces[a->node_index] == expected ? TX_CERTAIN : TX_DOUBTED;
}

/* ---- heads ---- */

static void tell_head(struct site_host *h)
{
    const struct node_info *info = node_info(h->room->room.service->node);
    if (info && h->phase == HOST_LED)
        site_account_head(h->site, info->best_number, h->best_next);
}

static void on_nonce(struct node_ask *n)
{
    struct site_host *h = CONTAINER_OF(n, struct site_host, nonce_ask);
    h->asking = false;
    if (!n->err.code)
        h->best_next = n->number;
    if (n->err.code != ERR_CANCELED)
        tell_head(h);
}

/* Only who gives nonces wants to know the next one. */
void sites_head(struct site_host *h)
{
    struct site_account_view v;
    if (h->phase == HOST_LED)
        sites_best(h);
    if (h->phase != HOST_LED || h->asking)
        return;
    site_account_view(h->site, &v);
    if (!v.core.work) {
        tell_head(h);
        return;
    }
    h->asking = true;
    node_ask_nonce(h->room->room.service->node, &h->nonce_ask, h->account->id, h->account->id_len,
                   on_nonce);
}

/* ---- life ---- */

bool sites_waits(const struct site_host *h)
{
    struct site_account_view v;
    site_account_view(h->site, &v);
    return v.core.waits;
}

void sites_chain_loaded(void *arg, uint64_t final, const uint64_t *next)
{
    struct site_host *h = arg;
    drop_all(h);
    h->reading = true;
    h->read = final;
    h->next = next[0];
    h->best_next = 0;
    service_follow(h->room->room.service, sites_first_wanted(h, final + 1));
    tell_head(h);
    sites_want(h);
    account_poll(h->account, (struct poll_event){.type = POLL_EV_WANT_REQUESTS});
}

void sites_chain_forget(struct site_host *h)
{
    drop_all(h);
    h->reading = false;
    h->reaped = 0;
    loop_timer_stop(h->again);
}

void sites_chain_again(void *arg)
{
    struct site_host *h = arg;
    if (h->reading)
        service_follow(h->room->room.service, h->read + 1);
    else
        sites_begin_again(h);
}
