/* Finalized blocks: every height once and in order, from that of node_follow on. A small pipeline
 * of slots reads ahead, one height each (slot of height h: h % NODE_PIPELINE). Blocks that are done
 * are reported in order.
 *
 *   IDLE -> HASH_WAIT -> BLOCK_WAIT -> [RUNTIME_WAIT] -> [BIRTH_WAIT] -> [EVENTS_WAIT]
 *    ^ ^        |            |               |               |               |
 *    | |        |            |               |               |        [NONCES_WAIT] -> DONE
 *    | +--------+------------+---------------+---------------+-------- failed -+         |
 *    +-------------------------------------------------------------------------- reported -+
 *
 * Steps in brackets are taken only if they are needed. LATER_WAIT (node_later.c) and REACH_WAIT
 * (node_lack.c) follow an answer that the block or its state is not there. NONCE_WAIT, one account
 * after another, takes the place of NONCES_WAIT at nodes that cannot read several at once. The
 * steps of one slot are in node_body.c, node_signatures.c, node_events.c and node_nonces.c, and its
 * end in node_slot.c. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "node_internal.h"

static void hand_out(struct node *n);

void blocks_init(struct node *n)
{
    for (size_t i = 0; i < NODE_PIPELINE; i++)
        n->slots[i].node = n;
}

void blocks_done(struct node *n)
{
    for (size_t i = 0; i < NODE_PIPELINE; i++)
        slot_clear(&n->slots[i]);
    for (size_t i = 0; i < n->account_count; i++) {
        free(n->accounts[i].key);
        free(n->accounts[i].contradicted);
    }
    free(n->accounts);
}

void blocks_reached(struct node *n)
{
    for (size_t i = 0; i < NODE_PIPELINE && n->phase == NODE_READY; i++) {
        struct slot *s = &n->slots[i];
        if (s->state == SLOT_REACH_WAIT && !lack_search(n, s->lack, s->number, &s->why) &&
            s->state == SLOT_REACH_WAIT)
            slot_decide(s);
    }
}

void blocks_reset(struct node *n)
{
    for (size_t i = 0; i < NODE_PIPELINE; i++)
        if (n->slots[i].state == SLOT_REACH_WAIT || n->slots[i].state == SLOT_LATER_WAIT)
            slot_renew(&n->slots[i]);
}

static struct slot *slot_of(struct node *n, uint64_t number)
{
    return &n->slots[number % NODE_PIPELINE];
}

static void restart(struct node *n)
{
    n->follow_restart = false;
    n->follow_next = n->follow_from;
    n->link_known = false;
    confirm_stop(n);
    slow_forget(n);
    for (size_t i = 0; i < NODE_PIPELINE; i++) {
        struct slot *s = &n->slots[i];
        if (s->state == SLOT_IDLE || s->state == SLOT_DONE || s->state == SLOT_REACH_WAIT ||
            s->state == SLOT_LATER_WAIT)
            slot_renew(s);
        else
            s->abandoned = true;
    }
}

void node_follow(struct node *n, uint64_t from_number)
{
    n->following = true;
    n->follow_from = from_number;
    n->follow_restart = true;
    if (n->handing_out)
        return; /* the block being reported stays until its callback returns */
    restart(n);
    if (n->phase == NODE_READY)
        blocks_kick(n);
}

void blocks_kick(struct node *n)
{
    if (!n->following || n->phase != NODE_READY || n->handing_out)
        return;
    hand_out(n);
    for (uint64_t h = n->follow_next;
         h < n->follow_next + NODE_PIPELINE && h <= n->info.finalized_number; h++) {
        struct slot *s = slot_of(n, h);
        if (n->phase != NODE_READY)
            return;
        if (s->state != SLOT_IDLE)
            continue;
        s->number = h;
        slot_body(s);
    }
}

/* Is the parent of this finalized block the finalized block before it? If not, the node contradicts
 * itself or another endpoint: the block is asked again, and the endpoint is left if that does not
 * help. */
static bool linked(struct node *n, struct slot *s)
{
    struct err err;
    char have[HASH_TEXT], want[HASH_TEXT];
    if (!n->link_known || s->unread || memcmp(n->link, s->head.parent, 32) == 0)
        return true;
    wire_hash_text(s->head.parent, have);
    wire_hash_text(n->link, want);
    log_warn("node.finality_disagrees", "url=%s number=%llu parent=%s reported=%s", node__url(n),
             (unsigned long long)s->number, have, want);
    err_set(&err, ERR_PROTOCOL,
            "%s: the parent of finalized block %llu is %s, reported before as finalized was %s",
            node__url(n), (unsigned long long)s->number, have, want);
    n->handing_out = true; /* slot_failed must not report blocks */
    slot_failed(s, &err);
    n->handing_out = false;
    return false;
}

/* The first of a row of them at a higher level than the others. */
static void log_unread(struct node *n, const struct slot *s)
{
    bool first = s->number != n->unread_last + 1;
    log_line(first ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG, "node.block_unread",
             "number=%llu text=\"%s\"", (unsigned long long)s->number, s->why.text);
    n->unread_last = s->number;
}

static void reported(struct account *a, uint64_t nonce)
{
    a->reported = nonce;
    free(a->contradicted);
    a->contradicted = NULL;
}

static void hand_out(struct node *n)
{
    PRE(!n->handing_out);
    for (;;) {
        struct slot *s = slot_of(n, n->follow_next);
        if (n->phase != NODE_READY || s->state != SLOT_DONE || s->number != n->follow_next ||
            !linked(n, s))
            return;
        struct node_block block = {
            .head = s->head,
            .unread = s->unread,
            .time_ms = s->time_ms,
            .spec_version = s->runtime && !s->state_pruned ? s->runtime->spec_version : 0,
            .extrinsic_count = s->extrinsic_count,
            .included = s->included,
            .included_count = s->included_count,
            .nonces = s->nonces,
            .balances = s->balances,
            .nonce_count = s->nonce_count,
        };
        if (!confirm_passed(n, s, &block))
            return;
        if (s->unread)
            log_unread(n, s);
        for (size_t i = 0; i < block.nonce_count; i++)
            if (block.nonces[i] != UINT64_MAX)
                reported(&n->accounts[i], block.nonces[i]);
        n->follow_next++;
        if (s->number > n->heard.base)
            heard_base(&n->heard, s->number);
        n->link_known = !s->unread;
        memcpy(n->link, s->head.hash, 32);
        broadcasts_stop_dead(n, &block);
        n->handing_out = true;
        if (n->config.on_finalized)
            n->config.on_finalized(n->config.arg, &block);
        n->handing_out = false;
        slot_renew(s);
        if (n->follow_restart)
            restart(n);
    }
}
