#include "support_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "chain/keys/extrinsic_sign.h"

static void on_ready(void *arg, const struct node_info *info)
{
    struct node_rig *rig = arg;
    rig->ready++;
    rig->info = *info;
    INVARIANT(node_info(rig->node) == info);
}

static void on_down(void *arg, const struct err *err)
{
    struct node_rig *rig = arg;
    rig->down++;
    rig->why = *err;
    INVARIANT(node_info(rig->node) == NULL);
}

static void on_runtime(void *arg, const struct node_info *info)
{
    struct node_rig *rig = arg;
    rig->runtime++;
    rig->info = *info;
}

static void on_best(void *arg, const struct node_head *head)
{
    struct node_rig *rig = arg;
    rig->best++;
    rig->best_head = *head;
}

static void on_finalized(void *arg, const struct node_block *block)
{
    struct node_rig *rig = arg;
    INVARIANT(rig->view_count < RIG_SEEN);
    struct seen_block *s = &rig->seen[rig->view_count++];
    *s = (struct seen_block){.head = block->head,
                             .extrinsic_count = block->extrinsic_count,
                             .unread = block->unread,
                             .included_count = block->included_count,
                             .nonce_count = block->nonce_count};
    if (block->included_count)
        s->included = block->included[0];
    if (block->nonce_count) {
        s->nonce = block->nonces[0];
        s->balance = block->balances[block->nonce_count - 1];
    }
    if (rig->on_block)
        rig->on_block(rig, block);
}

static enum node_want wants(void *arg, const struct node_included *x)
{
    struct node_rig *rig = arg;
    if (rig->want && memcmp(rig->want, x->tx.hash, 32) == 0)
        return NODE_WANT;
    bool ours = rig->want_signer && x->signer_len && x->signer_len == rig->want_signer_len &&
                memcmp(x->signer, rig->want_signer, x->signer_len) == 0;
    return !ours ? NODE_WANT_NOT : rig->verifies ? NODE_WANT_VERIFIED : NODE_WANT;
}

static enum tx_signature verify(void *arg, const struct tx_included *x, const struct metadata *md,
                                const struct extrinsic_params *facts)
{
    struct node_rig *rig = arg;
    struct extrinsic_view view;
    bool good = false;
    rig->verified++;
    if (extrinsic_decode(md, x->bytes, x->bytes_len, &view, NULL) ||
        extrinsic_verify(md, &view, facts, &good, NULL))
        return TX_SIGNATURE_UNKNOWN;
    return good ? TX_SIGNATURE_GOOD : TX_SIGNATURE_BAD;
}

void rig_start(struct node_rig *rig, size_t fakes, const struct fake_runtime *runtime)
{
    *rig = (struct node_rig){.loop = loop_new(), .fakes = fakes};
    for (size_t i = 0; i < fakes; i++) {
        fake_start(&rig->fake[i], rig->loop, runtime, 0);
        fake_url(&rig->fake[i], rig->urls[i]);
        rig->url_list[i] = rig->urls[i];
    }
    rig->config = (struct node_config){
        .urls = rig->url_list,
        .url_count = fakes,
        .on_ready = on_ready,
        .on_down = on_down,
        .on_runtime = on_runtime,
        .on_best = on_best,
        .on_finalized = on_finalized,
        .wants = wants,
        .verify = verify,
        .verify_blocks = true,
        .confirm_ms = RIG_TICK_MS,
        .arg = rig,
    };
}

uint32_t rig_patience(uint32_t ms)
{
    return getenv("TXRELAY_VALGRIND") ? ms * 10 : ms;
}

uint32_t rig_limit(void)
{
    return rig_patience(RIG_LIMIT_MS);
}

void rig_connect(struct node_rig *rig)
{
    struct err err = {0};
    rig->node = node_new(rig->loop, &rig->config, &err);
    INVARIANT(rig->node);
    node_open(rig->node);
}

void rig_up(struct node_rig *rig)
{
    rig_connect(rig);
    rig_wait_ready(rig, 1);
}

static void set_true(void *arg)
{
    *(bool *)arg = true;
}

static bool is_true(void *arg)
{
    return *(bool *)arg;
}

void rig_close_node(struct node_rig *rig)
{
    node_close(rig->node, set_true, &rig->gone);
    INVARIANT(run_until(rig->loop, is_true, &rig->gone, rig_limit()));
    rig->node = NULL;
}

void rig_done(struct node_rig *rig)
{
    if (rig->node)
        rig_close_node(rig);
    for (size_t i = 0; i < rig->fakes; i++)
        fake_stop(&rig->fake[i], rig->loop);
    loop_free(rig->loop);
}

bool rig_wait(struct node_rig *rig, bool (*done)(void *arg))
{
    return run_until(rig->loop, done, rig, rig_limit());
}

struct count {
    const unsigned *have;
    const size_t *have_size;
    size_t want;
};

static bool reached(void *arg)
{
    struct count *c = arg;
    return (c->have ? *c->have : *c->have_size) >= c->want;
}

static void wait_count(struct node_rig *rig, struct count c, const char *what)
{
    if (run_until(rig->loop, reached, &c, rig_limit()))
        return;
    fprintf(stderr, "no %s: seen=%zu ready=%u down=%u why=\"%s\"\n", what, rig->view_count,
            rig->ready, rig->down, rig->why.text);
    UNREACHABLE();
}

void rig_wait_seen(struct node_rig *rig, size_t count)
{
    wait_count(rig, (struct count){.have_size = &rig->view_count, .want = count},
               "finalized blocks");
}

void rig_wait_ready(struct node_rig *rig, unsigned count)
{
    wait_count(rig, (struct count){.have = &rig->ready, .want = count}, "on_ready");
}

void rig_wait_down(struct node_rig *rig, unsigned count)
{
    wait_count(rig, (struct count){.have = &rig->down, .want = count}, "on_down");
}
