/* What goes to the node: watched submissions through the gate, and the two questions of a probe.
 * This is the only file that sends extrinsics. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account/account.h"
#include "account/tally.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/plant.h"
#include "service/service_internal.h"

/* The gate: asked immediately before the bytes go to the socket. */
static bool gate(void *arg)
{
    struct account_send *s = arg;
    struct account *a = s->account;
    FAILPOINT("before_send");
    if (!PLANTED(GATE_SKIPPED) && (s->generation != a->generation || !account_gate(a))) {
        a->gated_total++;
        return false;
    }
    s->sent(s);
    FAILPOINT("after_gate");
    return true;
}

void account_send(struct account_send *t, const uint8_t *bytes, size_t len,
                  const struct node_last *last, void (*on_reply)(struct node_submit *s),
                  void (*on_status)(struct node_submit *s, enum tx_status status,
                                    const uint8_t *block_hash),
                  void (*on_lost)(struct node_submit *s))
{
    node_submit_start(t->account->service->node, &t->node, bytes, len, gate, t, on_reply, on_status,
                      on_lost);
    node_submit_until(&t->node, last);
}

struct submit {
    struct account_send send;
    uint64_t nonce;
    uint8_t hash[32];
    bool replied;
    struct loop_task sent;
    UT_hash_handle hh;
};

static void forget(struct submit *t)
{
    HASH_DELETE(hh, t->send.account->submits, t);
    node_submit_forget(&t->send.node);
    loop_task_cancel(&t->sent);
    free(t);
}

#ifdef TXRELAY_FAILPOINTS
static void after_send(struct loop_task *task)
{
    (void)task;
    FAILPOINT("after_send");
}
#endif

static void sent(struct account_send *s)
{
    struct submit *t = CONTAINER_OF(s, struct submit, send);
    struct account *a = s->account;
    tally_submit(a, t->nonce, t->hash);
#ifdef TXRELAY_FAILPOINTS
    loop_task_cancel(&t->sent);
    loop_post(a->service->loop, &t->sent, after_send);
#endif
}

void account_said(const struct rpc_call *call, char ret_text[ACCOUNT_SAID])
{
    ret_text[0] = 0;
    if (call->err.code)
        snprintf(ret_text, ACCOUNT_SAID, "%s%s%s", call->err.text, call->rpc_data[0] ? ": " : "",
                 call->rpc_data);
}

static void on_reply(struct node_submit *s)
{
    struct submit *t = CONTAINER_OF(s, struct submit, send.node);
    struct account *a = t->send.account;
    const struct rpc_call *call = &s->sub.call;
    char text[ACCOUNT_SAID];
    FAILPOINT("after_reply");
    service_submitted(a->service, s);
    t->replied = true;
    account_said(call, text);
    uint8_t hash[32];
    memcpy(hash, t->hash, 32);
    struct manager_event ev = {.type = MANAGER_EV_SUBMIT_REPLY,
                               .reply = {.nonce = t->nonce,
                                         .hash = hash,
                                         .code = call->err.code,
                                         .rpc_code = call->rpc_code,
                                         .text = text}};
#ifdef TXRELAY_PLANT
    int code = call->err.code;
    if (PLANTED(RESEND_RENONCE) && (code == ERR_TIMEOUT || code == ERR_NET) &&
        a->role == ACCOUNT_LEADER)
        account_give_back(a, t->nonce);
#endif
    if (call->err.code) /* no watch came of it */
        forget(t);
    account_event(a, &ev);
}

static void on_status(struct node_submit *s, enum tx_status status, const uint8_t *block_hash)
{
    struct submit *t = CONTAINER_OF(s, struct submit, send.node);
    struct account *a = t->send.account;
    uint8_t hash[32], block[32];
    memcpy(hash, t->hash, 32);
    if (block_hash)
        memcpy(block, block_hash, 32);
    struct manager_event ev = {.type = MANAGER_EV_STATUS,
                               .status = {.nonce = t->nonce,
                                          .hash = hash,
                                          .status = status,
                                          .block_hash = block_hash ? block : NULL}};
    if (tx_status_final(status))
        forget(t);
    account_event(a, &ev);
}

static void on_lost(struct node_submit *s)
{
    struct submit *t = CONTAINER_OF(s, struct submit, send.node);
    struct account *a = t->send.account;
    uint8_t hash[32];
    memcpy(hash, t->hash, 32);
    struct manager_event ev = {.type = MANAGER_EV_WATCH_LOST,
                               .lost = {.nonce = t->nonce, .hash = hash}};
    forget(t);
    account_event(a, &ev);
}

void account_submit(struct account *a, const struct manager_effect *fx)
{
    account_unwatch(a, fx->submit.hash);
    struct submit *t = xcalloc(1, sizeof(*t));
    t->send = (struct account_send){.account = a, .generation = a->generation, .sent = sent};
    t->nonce = fx->submit.nonce;
    memcpy(t->hash, fx->submit.hash, 32);
    HASH_ADD(hh, a->submits, hash, 32, t);
    account_send(&t->send, fx->submit.bytes, fx->submit.bytes_len,
                 &(struct node_last){.account = a->node_index,
                                     .nonce = t->nonce,
                                     .block = fx->submit.era_death < 0
                                                  ? UINT64_MAX
                                                  : (uint64_t)fx->submit.era_death},
                 on_reply, on_status, on_lost);
}

void account_unwatch(struct account *a, const uint8_t hash[32])
{
    struct submit *t = NULL;
    HASH_FIND(hh, a->submits, hash, 32, t);
    if (t)
        forget(t);
}

void account_unwatch_all(struct account *a)
{
    struct submit *t, *next;
    HASH_ITER(hh, a->submits, t, next)
    forget(t);
}

size_t account_unanswered(const struct account *a)
{
    size_t n = 0;
    for (const struct submit *t = a->submits; t; t = t->hh.next)
        n += !t->replied;
    return n;
}

/* ---- the questions of a probe ---- */

struct ask {
    struct node_ask node;
    struct account *account;
    uint64_t generation;
    enum manager_effect_type what;
    struct buf hashes;
    uint64_t used; /* above the highest nonce of this account in blocks that are not final */
};

static bool signed_by(const struct account *a, const struct node_included *x)
{
    return x->signer_len == a->id_len && !memcmp(x->signer, a->id, a->id_len);
}

static void on_unfinal(struct node_ask *n, const struct node_included *x)
{
    struct ask *q = CONTAINER_OF(n, struct ask, node);
    if (signed_by(q->account, x) && x->tx.nonce >= q->used)
        q->used = x->tx.nonce + 1;
}

static void ask_free(struct ask *q)
{
    buf_done(&q->hashes);
    free(q);
}

static void on_answer(struct node_ask *n)
{
    struct ask *q = CONTAINER_OF(n, struct ask, node);
    struct account *a = q->account;
    bool failed = n->err.code != 0;
    struct manager_event ev;
    if (q->what == MANAGER_FX_ASK_NONCE)
        ev = (struct manager_event){.type = MANAGER_EV_NONCE,
                                    .used = {.failed = failed, .nonce = n->number}};
    else
        ev = (struct manager_event){
            .type = MANAGER_EV_UNFINAL,
            .unfinal = {.failed = failed,
                        .hashes = (const uint8_t(*)[32])(const void *)q->hashes.data,
                        .count = q->hashes.len / 32,
                        .nonce = q->used}};
    if (q->generation == a->generation)
        account_event(a, &ev);
    ask_free(q);
}

void account_ask(struct account *a, const struct manager_effect *fx)
{
    if (fx->type == MANAGER_FX_ASK_POOL) {
        account_ask_pool(a, fx->whole);
        return;
    }
    struct ask *q = xcalloc(1, sizeof(*q));
    q->account = a;
    q->generation = a->generation;
    q->what = fx->type;
    if (fx->type == MANAGER_FX_ASK_NONCE)
        node_ask_nonce(a->service->node, &q->node, a->id, a->id_len, on_answer);
    else
        node_ask_above(a->service->node, &q->node, fx->number, &q->hashes, on_unfinal, on_answer);
}
