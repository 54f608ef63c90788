/* What goes to the node for accounts that have sites: bytes that are granted and, of transactions
 * that this site coordinates, dispatched. Finalized blocks alone show what became of them. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "sites/sites.h"

struct site_submit {
    struct account_send send;
    struct site_host *host;
    uint64_t nonce;
    uint8_t hash[SITE_HASH_BYTES];
    UT_hash_handle hh;
};

static void forget(struct site_submit *t)
{
    HASH_DELETE(hh, t->host->submits, t);
    node_submit_forget(&t->send.node);
    free(t);
}

static void sent(struct account_send *s)
{
    s->account->counts.submitted++;
}

static void on_reply(struct node_submit *s)
{
    struct site_submit *t = CONTAINER_OF(s, struct site_submit, send.node);
    const struct rpc_call *call = &s->sub.call;
    service_submitted(t->host->account->service, s);
    sites_answered(t->host, t->nonce, t->hash, call);
    if (call->err.code)
        forget(t); /* no watch came of it; the room sends again while it matters */
}

static void on_status(struct node_submit *s, enum tx_status status, const uint8_t *block_hash)
{
    struct site_submit *t = CONTAINER_OF(s, struct site_submit, send.node);
    (void)block_hash;
    if (tx_status_final(status))
        forget(t);
}

static void on_lost(struct node_submit *s)
{
    forget(CONTAINER_OF(s, struct site_submit, send.node));
}

void sites_submit(void *arg, struct site_account *a, const struct site_signed *attempt)
{
    struct site_host *h = site_account_ctx(a);
    struct site_submit *t;
    (void)arg;
    if (h->reaped)
        return; /* they would take effect in the new life */
    HASH_FIND(hh, h->submits, attempt->bytes.hash.bytes, SITE_HASH_BYTES, t);
    if (t)
        forget(t);
    t = xcalloc(1, sizeof(*t));
    t->host = h;
    t->send = (struct account_send){
        .account = h->account, .generation = h->account->generation, .sent = sent};
    t->nonce = attempt->bytes.nonce;
    memcpy(t->hash, attempt->bytes.hash.bytes, sizeof(t->hash));
    HASH_ADD(hh, h->submits, hash, SITE_HASH_BYTES, t);
    account_send(&t->send, attempt->data, attempt->len,
                 &(struct node_last){.account = h->account->node_index,
                                     .nonce = t->nonce,
                                     .block = attempt->bytes.death + 1},
                 on_reply, on_status, on_lost);
}

void sites_submit_end(struct site_host *h)
{
    struct site_submit *t, *next;
    HASH_ITER(hh, h->submits, t, next)
    forget(t);
    sites_refused_end(h);
}
