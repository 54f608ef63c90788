/* What one answer does not prove is asked again before its block is reported.
 *
 * There are two reasons. The owner doubts a nonce: it would suspend the account or move its next
 * nonce, which only an operator can undo. Or the configuration wants every final block from
 * several endpoints (quorum): then their hashes are compared, and the nonces that changed.
 *
 *   the block is whole --doubted, or a quorum--> every endpoint is asked, again and again:
 *       the endpoint in use:  hash of the height -> nonces, on its connection
 *       each other one:       [connect -> genesis ->] final head -> hash of the height -> nonces
 *     --> enough say the same: the block is reported
 *     --> the endpoint in use contradicts itself, or most others contradict it: the block is read
 *         again, and the endpoint is left if that does not help
 *     --> another one contradicts it: the doubted nonces are reported as not known; a quorum waits
 *
 * An endpoint that does not answer says nothing. Without a quorum a doubt is settled after
 * LIMIT_TICKS also if no other endpoint answers, by the one in use alone. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "node_internal.h"

enum {
    TICK_MS = 1000,
    AGAIN_ALONE =
        5, /* repetitions of the endpoint in use, a tick apart, where it is the only one */
    LIMIT_TICKS = 15, /* so long a doubt waits for another endpoint that does not answer */
    VOTE_TICKS = 3,   /* and a contradiction for those that did not answer yet */
    TOLD_MS = 10000,
};

static void answered(struct rpc_call *call);
static void tick(void *arg);
static void judge(struct node *n);

/* ---- life ---- */

static uint64_t tick_ms(const struct node *n)
{
    return n->config.confirm_ms ? n->config.confirm_ms : TICK_MS;
}

void confirm_init(struct node *n, const char *const *urls)
{
    PRE(n->endpoint_count > 0 && !n->confirm.peers);
    n->confirm.timer = loop_timer_new(n->loop, tick, n);
    n->confirm.peers = xcalloc(n->endpoint_count, sizeof(*n->confirm.peers));
    for (size_t i = 0; i < n->endpoint_count; i++)
        n->confirm.peers[i] = (struct peer){.node = n, .endpoint = i, .url = xstrdup(urls[i])};
}

size_t confirm_close(struct node *n, void (*closed)(void *arg))
{
    size_t open = 0;
    for (size_t i = 0; n->confirm.peers && i < n->endpoint_count; i++)
        open += n->confirm.peers[i].rpc != NULL;
    for (size_t i = 0; n->confirm.peers && i < n->endpoint_count; i++)
        if (n->confirm.peers[i].rpc)
            rpc_close(n->confirm.peers[i].rpc, closed, n);
    return open;
}

void confirm_done(struct node *n)
{
    if (n->confirm.timer)
        loop_timer_close(n->confirm.timer);
    for (size_t i = 0; n->confirm.peers && i < n->endpoint_count; i++)
        free(n->confirm.peers[i].url);
    free(n->confirm.nonces);
    free(n->confirm.peers);
}

/* Connections that are not needed all the time are given back. */
static void rest(struct node *n)
{
    struct err why;
    err_set(&why, ERR_NET, "no block is to be confirmed");
    for (size_t i = 0; i < n->endpoint_count && n->config.quorum <= 1; i++) {
        struct peer *p = &n->confirm.peers[i];
        if (!p->rpc || p->stopping || rpc_state(p->rpc) == RPC_CLOSED)
            continue;
        p->stopping = true;
        rpc_stop(p->rpc, &why);
    }
}

void confirm_stop(struct node *n)
{
    struct confirm *c = &n->confirm;
    if (!c->on)
        return;
    c->on = false;
    loop_timer_stop(c->timer);
    rest(n);
}

/* ---- the questions ---- */

static bool in_use(const struct peer *p)
{
    return p->endpoint == p->node->endpoint_at;
}

static void ask(struct peer *p, enum peer_step step, const char *method, const char *params)
{
    PRE(p->step == PEER_IDLE);
    p->step = step;
    p->round = p->node->confirm.round;
    rpc_call_start(in_use(p) ? node__rpc(p->node) : p->rpc, &p->call, method, params, 0, NULL, NULL,
                   answered);
}

static void ask_hash(struct peer *p)
{
    char params[32];
    snprintf(params, sizeof(params), "[%llu]", (unsigned long long)p->node->confirm.number);
    p->nonce_next = 0;
    ask(p, PEER_HASH_WAIT, "chain_getBlockHash", params);
}

static void has_opinion(struct peer *p, enum opinion opinion, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void ask_nonce(struct peer *p)
{
    const struct confirm *c = &p->node->confirm;
    char hash[HASH_TEXT];
    if (p->nonce_next == c->nonce_count) {
        has_opinion(p, OPINION_SAME, "says the same");
        return;
    }
    wire_hash_text(c->hash, hash);
    char *params =
        xasprintf("[\"%s\",\"%s\"]", p->node->accounts[c->nonces[p->nonce_next].account].key, hash);
    ask(p, PEER_NONCE_WAIT, "state_getStorage", params);
    free(params);
}

static void moved(void *arg, enum rpc_state state, const struct err *err);

static bool make_rpc(struct peer *p)
{
    const struct node *n = p->node;
    struct rpc_config config = {
        .url = p->url,
        .ca_file = n->config.ca_file,
        .insecure = n->config.insecure,
        .call_timeout_ms = n->config.call_timeout_ms,
        .silence_timeout_ms = n->config.silence_timeout_ms,
        .on_state = moved,
        .arg = p,
    };
    struct err err = {0};
    if (!p->rpc)
        p->rpc = rpc_new(n->loop, &config, &err);
    if (!p->rpc)
        snprintf(p->text, sizeof(p->text), "%.*s", (int)sizeof(p->text) - 1, err.text);
    return p->rpc != NULL;
}

/* Nothing happens while a question of this peer is open, or where it must connect first. */
static void peer_ask(struct peer *p)
{
    struct node *n = p->node;
    if (p->step != PEER_IDLE || p->opinion == OPINION_SAME)
        return; /* one that contradicts may take it back */
    if (in_use(p)) {
        if (n->phase == NODE_READY && loop_now_ms(n->loop) >= n->confirm.again_at)
            ask_hash(p);
        return;
    }
    if (!n->confirm.doubted && n->config.quorum <= 1)
        return;
    if (!make_rpc(p) || p->stopping)
        return;
    if (rpc_state(p->rpc) == RPC_CLOSED)
        rpc_open(p->rpc);
    else if (rpc_state(p->rpc) == RPC_OPEN && !p->same_chain)
        ask(p, PEER_GENESIS_WAIT, "chain_getBlockHash", "[0]");
    else if (rpc_state(p->rpc) == RPC_OPEN)
        ask(p, PEER_FINAL_WAIT, "chain_getFinalizedHead", "[]");
}

static void moved(void *arg, enum rpc_state state, const struct err *err)
{
    struct peer *p = arg;
    struct node *n = p->node;
    if (n->phase == NODE_CLOSING)
        return;
    if (state == RPC_BACKOFF)
        snprintf(p->text, sizeof(p->text), "%.*s", (int)sizeof(p->text) - 1, err->text);
    if (state == RPC_CLOSED)
        p->stopping = false;
    if (state != RPC_OPEN)
        p->same_chain = false;
    if (n->confirm.on && (state == RPC_OPEN || state == RPC_CLOSED))
        peer_ask(p);
}

/* ---- the answers ---- */

static void has_opinion(struct peer *p, enum opinion opinion, const char *fmt, ...)
{
    struct confirm *c = &p->node->confirm;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->text, sizeof(p->text), fmt, ap);
    va_end(ap);
    p->opinion = opinion;
    if (in_use(p) && opinion == OPINION_SAME) {
        c->again++;
        c->again_at = loop_now_ms(p->node->loop) + tick_ms(p->node);
        p->opinion = OPINION_NONE; /* it is asked once more */
    }
    judge(p->node);
}

static void got_genesis(struct peer *p, const struct rpc_call *call)
{
    uint8_t hash[32];
    p->same_chain = wire_hash(call->result, hash) && memcmp(hash, p->node->genesis, 32) == 0;
    if (p->same_chain)
        peer_ask(p);
    else
        snprintf(p->text, sizeof(p->text), "is of another chain");
}

static void got_final(struct peer *p, const struct rpc_call *call)
{
    uint8_t hash[32];
    char text[HASH_TEXT], params[HASH_TEXT + 8];
    if (!wire_hash(call->result, hash)) {
        snprintf(p->text, sizeof(p->text), "chain_getFinalizedHead gave no hash");
        return;
    }
    wire_hash_text(hash, text);
    snprintf(params, sizeof(params), "[\"%s\"]", text);
    ask(p, PEER_HEADER_WAIT, "chain_getHeader", params);
}

static void got_header(struct peer *p, const struct rpc_call *call)
{
    struct wire_header h;
    if (!wire_header(call->result, &h))
        snprintf(p->text, sizeof(p->text), "chain_getHeader gave no header");
    else if (h.head.number < p->node->confirm.number)
        snprintf(p->text, sizeof(p->text), "has only %llu final blocks",
                 (unsigned long long)h.head.number);
    else
        ask_hash(p);
}

static void got_hash(struct peer *p, const struct rpc_call *call)
{
    uint8_t hash[32];
    char text[HASH_TEXT];
    if (!wire_hash(call->result, hash)) {
        snprintf(p->text, sizeof(p->text), "does not know the height");
    } else if (memcmp(hash, p->node->confirm.hash, 32) != 0) {
        wire_hash_text(hash, text);
        has_opinion(p, OPINION_OTHER, "says that the block is %s", text);
    } else {
        ask_nonce(p);
    }
}

static void got_nonce(struct peer *p, const struct rpc_call *call)
{
    const struct confirm *c = &p->node->confirm;
    PRE(p->nonce_next < c->nonce_count);
    const struct confirm_nonce *x = &c->nonces[p->nonce_next];
    uint64_t nonce;
    if (!wire_account(call->result, NULL, &nonce, NULL)) {
        snprintf(p->text, sizeof(p->text), "gave an account that is not readable");
    } else if (nonce != x->nonce) {
        has_opinion(p, OPINION_OTHER, "says that the nonce is %llu, not %llu",
                    (unsigned long long)nonce, (unsigned long long)x->nonce);
    } else {
        p->nonce_next++;
        ask_nonce(p);
    }
}

/* An error proves nothing: the next tick asks again. */
static void answered(struct rpc_call *call)
{
    struct peer *p = CONTAINER_OF(call, struct peer, call);
    struct node *n = p->node;
    enum peer_step step = p->step;
    PRE(step != PEER_IDLE);
    p->step = PEER_IDLE;
    if (n->phase == NODE_CLOSING || !n->confirm.on)
        return;
    if (p->round != n->confirm.round) {
        peer_ask(p);
        return;
    }
    if (call->err.code) {
        snprintf(p->text, sizeof(p->text), "%.*s", (int)sizeof(p->text) - 1, call->err.text);
        return;
    }
    switch (step) {
    case PEER_IDLE:
        break;
    case PEER_GENESIS_WAIT:
        got_genesis(p, call);
        return;
    case PEER_FINAL_WAIT:
        got_final(p, call);
        return;
    case PEER_HEADER_WAIT:
        got_header(p, call);
        return;
    case PEER_HASH_WAIT:
        got_hash(p, call);
        return;
    case PEER_NONCE_WAIT:
        got_nonce(p, call);
        return;
    }
    UNREACHABLE();
}

/* ---- the verdict ---- */

struct votes {
    size_t same, other; /* of other endpoints */
};

static struct votes count(const struct node *n)
{
    struct votes v = {0};
    for (size_t i = 0; i < n->endpoint_count; i++) {
        if (i == n->endpoint_at)
            continue;
        v.same += n->confirm.peers[i].opinion == OPINION_SAME;
        v.other += n->confirm.peers[i].opinion == OPINION_OTHER;
    }
    return v;
}

static void tell(struct node *n, const char *what, const struct votes *v)
{
    const struct confirm *c = &n->confirm;
    log_warn(what, "url=%s number=%llu same=%zu other=%zu quorum=%u doubted=%d", node__url(n),
             (unsigned long long)c->number, v->same, v->other, n->config.quorum, c->doubted);
    for (size_t i = 0; i < n->endpoint_count; i++)
        if (c->peers[i].text[0])
            log_warn("node.opinion", "url=%s number=%llu text=\"%s\"",
                     n->endpoints[i].rpc->config.url, (unsigned long long)c->number,
                     c->peers[i].text);
}

static struct slot *slot_waiting(struct node *n)
{
    struct slot *s = &n->slots[n->confirm.number % NODE_PIPELINE];
    INVARIANT(s->state == SLOT_DONE && s->number == n->confirm.number);
    return s;
}

static void passes(struct node *n, bool doubts_kept)
{
    struct confirm *c = &n->confirm;
    struct slot *s = slot_waiting(n);
    for (size_t i = 0; i < c->nonce_count; i++)
        if (c->nonces[i].doubted && !doubts_kept) {
            s->nonces[c->nonces[i].account] = UINT64_MAX;
            s->balances[c->nonces[i].account].known = false;
        }
    s->confirmed = true;
    confirm_stop(n);
    blocks_kick(n);
}

static void refuses(struct node *n, const char *why)
{
    struct slot *s = slot_waiting(n);
    confirm_stop(n);
    slot_failed_protocol(s, why);
}

/* By the answers of others, or by that of the endpoint in use alone where no other answers. */
static bool doubt_is_settled(const struct node *n, const struct votes *v)
{
    const struct confirm *c = &n->confirm;
    uint64_t waited = loop_now_ms(n->loop) - c->began_at;
    bool alone = n->endpoint_count == 1 || waited >= LIMIT_TICKS * tick_ms(n);
    return c->again && (v->same || (alone && c->again >= AGAIN_ALONE));
}

/* One contradiction may be followed by others, which make a majority. */
static bool all_have_voted(const struct node *n, const struct votes *v)
{
    uint64_t waited = loop_now_ms(n->loop) - n->confirm.began_at;
    return v->same + v->other + 1 == n->endpoint_count || waited >= VOTE_TICKS * tick_ms(n);
}

static void judge(struct node *n)
{
    struct confirm *c = &n->confirm;
    PRE(c->on);
    struct votes v = count(n);
    size_t need = n->config.quorum > 1 ? n->config.quorum - 1 : 0;
    if (c->peers[n->endpoint_at].opinion == OPINION_OTHER) {
        tell(n, "node.contradicts_itself", &v);
        refuses(n, "asked again, it gave another answer");
    } else if (v.other > v.same + 1) {
        tell(n, "node.contradicted", &v);
        refuses(n, "most other endpoints say something else");
    } else if (v.other && !need) {
        if (!c->again || !all_have_voted(n, &v))
            return;
        tell(n, "node.contradicted", &v);
        passes(n, false);
    } else if (v.same >= need && (!c->twice || c->again) &&
               (!c->doubted || doubt_is_settled(n, &v))) {
        passes(n, true);
    }
}

static void tick(void *arg)
{
    struct node *n = arg;
    struct confirm *c = &n->confirm;
    if (!c->on || n->phase != NODE_READY)
        return;
    uint64_t now = loop_now_ms(n->loop);
    for (size_t i = 0; i < n->endpoint_count; i++)
        peer_ask(&c->peers[i]);
    judge(n);
    if (!c->on)
        return;
    if (now >= c->told_at) {
        struct votes v = count(n);
        tell(n, "node.unconfirmed", &v);
        c->told_at = now + TOLD_MS;
    }
    loop_timer_at(c->timer, now + tick_ms(n));
}

/* ---- a block ---- */

static void add(struct node *n, size_t account, uint64_t nonce, enum tx_doubt doubt)
{
    struct confirm *c = &n->confirm;
    if (!c->nonces)
        c->nonces = xcalloc(n->account_count + 1, sizeof(*c->nonces));
    c->nonces[c->nonce_count++] =
        (struct confirm_nonce){.account = account, .nonce = nonce, .doubted = doubt == TX_DOUBTED};
    c->doubted = c->doubted || doubt == TX_DOUBTED;
    c->twice = c->twice || doubt == TX_TWICE;
}

/* Which of its nonces are asked for again. */
static void collect(struct node *n, const struct node_block *block)
{
    struct confirm *c = &n->confirm;
    free(c->nonces);
    c->nonces = NULL;
    c->nonce_count = 0;
    c->doubted = c->twice = false;
    for (size_t i = 0; i < block->nonce_count; i++) {
        uint64_t nonce = block->nonces[i];
        if (nonce == UINT64_MAX)
            continue;
        enum tx_doubt doubt =
            n->config.doubts ? n->config.doubts(n->config.arg, block, i) : TX_CERTAIN;
        if (doubt || (n->config.quorum > 1 && nonce != n->accounts[i].reported))
            add(n, i, nonce, doubt);
    }
}

static void begin(struct node *n, const struct node_block *block)
{
    struct confirm *c = &n->confirm;
    uint64_t now = loop_now_ms(n->loop);
    c->on = true;
    c->round++;
    c->number = block->head.number;
    memcpy(c->hash, block->head.hash, 32);
    c->again = 0;
    c->began_at = now;
    c->again_at = c->doubted || c->twice ? now : UINT64_MAX;
    c->told_at = now + 3 * tick_ms(n);
    for (size_t i = 0; i < n->endpoint_count; i++) {
        c->peers[i].opinion = OPINION_NONE;
        c->peers[i].text[0] = 0;
        peer_ask(&c->peers[i]);
    }
    loop_timer_at(c->timer, now + tick_ms(n));
}

bool confirm_passed(struct node *n, struct slot *s, const struct node_block *block)
{
    PRE(s->state == SLOT_DONE && s->number == block->head.number);
    if (s->confirmed)
        return true;
    if (n->confirm.on)
        return false;
    collect(n, block);
    if (!n->confirm.doubted && !n->confirm.twice && n->config.quorum <= 1)
        return true;
    begin(n, block);
    return false;
}
