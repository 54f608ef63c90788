/* What one answer does not prove is asked again before its block is reported.
 *
 * There are two reasons. The owner doubts a nonce: it would suspend the account or move its next
 * nonce, which only an operator can undo. Or the configuration wants every final block from
 * several endpoints (quorum): then their hashes are compared, the nonces that changed, and
 * the events if the block holds an extrinsic of ours.
 *
 *   the block is whole --doubted, or a quorum--> every endpoint is asked (node_peer.c), again and
 *     again
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
    AGAIN_ALONE =
        5, /* repetitions of the endpoint in use, a tick apart, where it is the only one */
    LIMIT_TICKS = 15, /* a doubt waits this long for another endpoint that does not answer */
    VOTE_TICKS = 3,   /* and a contradiction for those that did not answer yet */
    TOLD_TICKS = 2,   /* node_unconfirmed reports what waits for longer */
    TOLD_MS = 10000,
};

static void tick(void *arg);
static void judge(struct node *n);

/* ---- life ---- */

void confirm_init(struct node *n, const char *const *urls)
{
    n->confirm.timer = loop_timer_new(n->loop, tick, n);
    n->second.timer = loop_timer_new(n->loop, second_tick, n);
    n->away.timer = loop_timer_new(n->loop, lack_tick, n);
    n->later.timer = loop_timer_new(n->loop, later_tick, n);
    peers_init(n, urls);
}

void confirm_done(struct node *n)
{
    if (n->confirm.timer)
        loop_timer_close(n->confirm.timer);
    if (n->second.timer)
        loop_timer_close(n->second.timer);
    if (n->away.timer)
        loop_timer_close(n->away.timer);
    if (n->later.timer)
        loop_timer_close(n->later.timer);
    free(n->confirm.nonces);
    peers_done(n);
}

void confirm_stop(struct node *n)
{
    struct confirm *c = &n->confirm;
    if (!c->on)
        return;
    c->on = false;
    loop_timer_stop(c->timer);
    peers_rest(n);
}

/* It says the same as the endpoint in use, or something else. */
void confirm_opinion(struct peer *p, enum opinion opinion)
{
    struct confirm *c = &p->node->confirm;
    PRE(c->on && opinion != OPINION_NONE);
    p->opinion = opinion;
    if (peer_in_use(p) && opinion == OPINION_SAME) {
        c->again++;
        c->again_at = loop_now_ms(p->node->loop) + node__tick_ms(p->node);
        p->opinion = OPINION_NONE; /* it is asked once more */
    }
    judge(p->node);
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
        v.same += n->peers[i].opinion == OPINION_SAME;
        v.other += n->peers[i].opinion == OPINION_OTHER;
    }
    return v;
}

static void log_votes(struct node *n, const char *what, const struct votes *v)
{
    const struct confirm *c = &n->confirm;
    log_warn(what, "url=%s number=%llu same=%zu other=%zu quorum=%u doubted=%d", node__url(n),
             (unsigned long long)c->number, v->same, v->other, n->config.quorum, c->doubted);
    for (size_t i = 0; i < n->endpoint_count; i++)
        if (n->peers[i].text[0])
            log_warn("node.opinion", "url=%s number=%llu text=\"%s\"",
                     n->endpoints[i].rpc->config.url, (unsigned long long)c->number,
                     n->peers[i].text);
}

static struct slot *slot_waiting(struct node *n)
{
    struct slot *s = &n->slots[n->confirm.number % NODE_PIPELINE];
    INVARIANT(s->state == SLOT_DONE && s->number == n->confirm.number);
    return s;
}

/* Reported until a later block has a nonce of the account that counts. */
static void contradicted(struct node *n, const struct confirm_nonce *x)
{
    struct account *a = &n->accounts[x->account];
    free(a->contradicted);
    a->contradicted = NULL;
    for (size_t i = 0; i < n->endpoint_count && !a->contradicted; i++)
        if (n->peers[i].opinion == OPINION_OTHER)
            a->contradicted = xasprintf(
                "at block %llu %s says that the account's nonce is %llu; %s %s",
                (unsigned long long)n->confirm.number, node__url(n), (unsigned long long)x->nonce,
                n->endpoints[i].rpc->config.url, n->peers[i].text);
}

const char *node_contradicted(const struct node *n, size_t account)
{
    return account < n->account_count ? n->accounts[account].contradicted : NULL;
}

static void passes(struct node *n, bool doubts_kept)
{
    struct confirm *c = &n->confirm;
    struct slot *s = slot_waiting(n);
    for (size_t i = 0; i < c->nonce_count; i++)
        if (c->nonces[i].doubted && !doubts_kept) {
            s->nonces[c->nonces[i].account] = UINT64_MAX;
            s->balances[c->nonces[i].account].known = false;
            contradicted(n, &c->nonces[i]);
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
    bool alone = n->endpoint_count == 1 || waited >= LIMIT_TICKS * node__tick_ms(n);
    return c->again && (v->same || (alone && c->again >= AGAIN_ALONE));
}

/* One contradiction may be followed by others, which make a majority. */
static bool all_have_voted(const struct node *n, const struct votes *v)
{
    uint64_t waited = loop_now_ms(n->loop) - n->confirm.began_at;
    return v->same + v->other + 1 == n->endpoint_count || waited >= VOTE_TICKS * node__tick_ms(n);
}

static void judge(struct node *n)
{
    struct confirm *c = &n->confirm;
    PRE(c->on);
    struct votes v = count(n);
    size_t need = n->config.quorum > 1 ? n->config.quorum - 1 : 0;
    if (n->peers[n->endpoint_at].opinion == OPINION_OTHER) {
        log_votes(n, "node.contradicts_itself", &v);
        refuses(n, "asked again, it gave another answer");
    } else if (v.other > v.same + 1) {
        log_votes(n, "node.contradicted", &v);
        refuses(n, "most other endpoints say something else");
    } else if (v.other && !need) {
        if (!c->again || !all_have_voted(n, &v))
            return;
        log_votes(n, "node.contradicted", &v);
        passes(n, false);
    } else if (v.same >= need && (!c->twice || c->again) &&
               (!c->doubted || doubt_is_settled(n, &v))) {
        passes(n, true);
    }
}

/* "url text; url text" of the other endpoints. */
static void opinions(const struct node *n, bool of_runtime, char *out, size_t size)
{
    size_t len = strlen(out);
    for (size_t i = 0; i < n->endpoint_count && len + 1 < size; i++) {
        const char *text =
            of_runtime && n->peers[i].runtime_text[0] ? n->peers[i].runtime_text : n->peers[i].text;
        if (i == n->endpoint_at || !text[0])
            continue;
        snprintf(out + len, size - len, "; %s %s", n->endpoints[i].rpc->config.url, text);
        len = strlen(out);
    }
}

const char *node_unconfirmed(struct node *n)
{
    const struct confirm *c = &n->confirm;
    const struct second *s = &n->second;
    const struct slot *broken = later_is_broken(n, TOLD_TICKS * node__tick_ms(n));
    uint64_t now = loop_now_ms(n->loop);
    char *out = n->unconfirmed;
    size_t size = sizeof(n->unconfirmed);
    if (c->on && now >= c->began_at + TOLD_TICKS * node__tick_ms(n))
        snprintf(out, size,
                 n->config.quorum > 1
                     ? "block %llu waits for the word of other endpoints than %s"
                     : "block %llu waits: an account's nonce is in doubt and is asked for again, "
                       "at %s and at each other endpoint",
                 (unsigned long long)c->number, node__url(n));
    else if (n->away.on && now >= n->away.since + TOLD_TICKS * node__tick_ms(n))
        snprintf(out, size,
                 "block %llu waits for an endpoint that is away and may have it: %s lacks it",
                 (unsigned long long)n->away.number, node__url(n));
    else if (s->on && now >= s->began_at + TOLD_TICKS * node__tick_ms(n))
        snprintf(out, size, "the metadata of %s/%u waits for the word of other endpoints than %s",
                 s->runtime->spec_name, s->runtime->spec_version, node__url(n));
    else if (broken)
        snprintf(out, size, "block %llu waits: %s answers by an error: %s",
                 (unsigned long long)n->follow_next, node__url(n), broken->why.text);
    else
        return NULL;
    opinions(n, !c->on, out, size);
    return out;
}

static void tick(void *arg)
{
    struct node *n = arg;
    struct confirm *c = &n->confirm;
    if (!c->on || n->phase != NODE_READY)
        return;
    uint64_t now = loop_now_ms(n->loop);
    for (size_t i = 0; i < n->endpoint_count; i++)
        peer_ask(&n->peers[i]);
    judge(n);
    if (!c->on)
        return;
    if (now >= c->told_at) {
        struct votes v = count(n);
        log_votes(n, "node.unconfirmed", &v);
        c->told_at = now + TOLD_MS;
    }
    loop_timer_at(c->timer, now + node__tick_ms(n));
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

static void begin(struct node *n, const struct slot *s, const struct node_block *block)
{
    struct confirm *c = &n->confirm;
    uint64_t now = loop_now_ms(n->loop);
    c->on = true;
    c->round++;
    c->number = block->head.number;
    memcpy(c->hash, block->head.hash, 32);
    c->has_events = n->config.quorum > 1 && s->has_events;
    memcpy(c->events, s->events, 32);
    c->again = 0;
    c->began_at = now;
    c->again_at = c->doubted || c->twice ? now : UINT64_MAX;
    c->told_at = now + TOLD_TICKS * node__tick_ms(n);
    for (size_t i = 0; i < n->endpoint_count; i++) {
        n->peers[i].opinion = OPINION_NONE;
        n->peers[i].text[0] = 0;
        peer_ask(&n->peers[i]);
    }
    loop_timer_at(c->timer, now + node__tick_ms(n));
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
    /* What its events mean is the metadata's to say. */
    if (n->config.quorum > 1 && s->has_events && !second_agrees(n, s->runtime, s->head.parent))
        return false;
    begin(n, s, block);
    return false;
}
