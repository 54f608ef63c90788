/* What other endpoints say of the runtime: its version and its metadata, which decide what calls
 * and events mean. With a quorum, that number of endpoints must agree. Without one, a
 * single other endpoint is enough, and none is needed where none answers.
 *
 * An endpoint that contradicts is asked again: an upgrade may just pass. */
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "node_internal.h"

enum {
    LIMIT_TICKS = 5,  /* the wait for an endpoint that does not answer */
    AGAIN_TICKS = 10, /* then it is another block in whose state they are asked for it */
    LEAVE_TICKS = 30, /* a contradiction by most of them lasts for longer than an upgrade takes */
    TOLD_MS = 10000,
};

void second_stop(struct node *n)
{
    struct second *s = &n->second;
    if (!s->on)
        return;
    s->on = false;
    loop_timer_stop(s->timer);
    runtime_unref(s->runtime);
    s->runtime = NULL;
    peers_rest(n);
}

static void agreed(struct node *n)
{
    n->second.runtime->agreed = true;
    second_stop(n);
}

/* Owners that waited continue. */
static void settled(struct node *n)
{
    if (n->config.on_runtime)
        n->config.on_runtime(n->config.arg, &n->info);
    if (n->phase == NODE_READY)
        blocks_kick(n);
}

static void log_votes(struct node *n, size_t same, size_t other)
{
    const struct second *s = &n->second;
    log_warn("node.runtime_unconfirmed", "url=%s spec=%s/%u same=%zu other=%zu quorum=%u",
             node__url(n), s->runtime->spec_name, s->runtime->spec_version, same, other,
             n->config.quorum);
    for (size_t i = 0; i < n->endpoint_count; i++)
        if (n->peers[i].runtime_text[0])
            log_warn("node.opinion", "url=%s text=\"%s\"", n->endpoints[i].rpc->config.url,
                     n->peers[i].runtime_text);
}

static void judge(struct node *n)
{
    struct second *s = &n->second;
    PRE(s->on);
    uint64_t now = loop_now_ms(n->loop);
    size_t need = n->config.quorum > 1 ? n->config.quorum - 1 : 1, same = 0, other = 0;
    for (size_t i = 0; i < n->endpoint_count; i++) {
        same += i != n->endpoint_at && n->peers[i].of_runtime == OPINION_SAME;
        other += i != n->endpoint_at && n->peers[i].of_runtime == OPINION_OTHER;
    }
    if (same >= need) {
        agreed(n);
        settled(n);
    } else if (other > same + 1 && now >= s->began_at + LEAVE_TICKS * node__tick_ms(n)) {
        struct err err;
        log_votes(n, same, other);
        err_set(&err, ERR_PROTOCOL, "%s: most other endpoints have another runtime", node__url(n));
        node__fault(n, &err);
    } else if (n->config.quorum <= 1 && !same && !other &&
               now >= s->began_at + LIMIT_TICKS * node__tick_ms(n)) {
        second_stop(n);
        s->alone = true;
        settled(n);
    } else if (now >= s->told_at) {
        log_votes(n, same, other);
        s->told_at = now + TOLD_MS;
    }
}

void second_opinion(struct peer *p, enum opinion opinion)
{
    PRE(p->node->second.on && opinion != OPINION_NONE);
    p->of_runtime = opinion;
    memcpy(p->runtime_text, p->text, sizeof(p->runtime_text));
    judge(p->node);
}

/* What is asked about the present runtime is asked in the state of a recent block. */
static void choose_block(struct node *n, const uint8_t *at)
{
    struct second *s = &n->second;
    s->of_block = at != NULL;
    s->at_ms = loop_now_ms(n->loop);
    memcpy(s->at, at ? at : n->info.best_hash, 32);
}

void second_tick(void *arg)
{
    struct node *n = arg;
    struct second *s = &n->second;
    if (!s->on || n->phase != NODE_READY)
        return;
    uint64_t now = loop_now_ms(n->loop);
    if (!s->of_block && now >= s->at_ms + AGAIN_TICKS * node__tick_ms(n))
        choose_block(n, NULL);
    for (size_t i = 0; i < n->endpoint_count; i++)
        peer_ask(&n->peers[i]);
    judge(n);
    if (s->on)
        loop_timer_at(s->timer, now + node__tick_ms(n));
}

static void begin(struct node *n, struct runtime *r, const uint8_t *at)
{
    struct second *s = &n->second;
    uint64_t now = loop_now_ms(n->loop);
    second_stop(n);
    s->on = true;
    s->round++;
    s->runtime = r;
    r->refs++;
    choose_block(n, at);
    s->began_at = now;
    s->told_at = now + 3 * node__tick_ms(n);
    for (size_t i = 0; i < n->endpoint_count; i++) {
        n->peers[i].of_runtime = OPINION_NONE;
        n->peers[i].runtime_at = 0;
        n->peers[i].runtime_text[0] = 0;
        peer_ask(&n->peers[i]);
    }
    loop_timer_at(s->timer, now + node__tick_ms(n));
}

/* The runtime that was asked about is no longer the one in use. */
static bool outdated(const struct node *n)
{
    const struct second *s = &n->second;
    return s->runtime->replaced || (!s->of_block && s->runtime != n->runtime);
}

bool second_agrees(struct node *n, struct runtime *r, const uint8_t *at)
{
    PRE(n->phase == NODE_READY && r);
    struct second *s = &n->second;
    if (r->agreed || n->endpoint_count == 1 || (s->alone && n->config.quorum <= 1))
        return true;
    if (!s->on || (s->runtime != r && outdated(n)))
        begin(n, r, at); /* else one after the other */
    return false;
}
