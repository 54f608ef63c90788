/* txrelay check: each endpoint by itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/host.h"
#include "chain/codec/extrinsic.h"
#include "chain/node/node.h"
#include "check.h"
#include "cli.h"

enum {
    NODE_TIMEOUT_MS = 10000,
    KEPT_BLOCKS = 200, /* what a relay may need after an outage of as many blocks */
};

struct probe {
    struct loop *loop;
    struct node *node;
    struct loop_timer *timer;
    struct node_ask ask;
    struct buf hashes;
    uint64_t height; /* of the old block */
    bool done, ready;
    uint8_t genesis[32];
    char shown[300]; /* its URL */
    struct err why;
    const struct service_config *config;
};

/* Does the chain take what the relay signs for each account? */
static void check_signing(const struct service_config *c, const struct metadata *md)
{
    for (size_t i = 0; i < c->account_count; i++) {
        const struct service_account *a = &c->accounts[i];
        size_t len;
        struct extrinsic_signer signer = {a->scheme,
                                          a->key ? keypair_account_id(a->key, &len) : a->id};
        struct err err = {0};
        char text[400];
        if (!extrinsic_check_signer(md, &signer, &err))
            continue;
        snprintf(text, sizeof(text), "%s: %s", a->alias, err.text);
        check_wrong("key", text);
    }
}

/* The key is the right one, but funds that are sent to this address go to another chain. */
static void check_prefixes(const struct service_config *c, uint16_t prefix)
{
    for (size_t i = 0; i < c->account_count; i++) {
        const struct service_account *a = &c->accounts[i];
        size_t len;
        char address[SS58_TEXT_MAX], text[300];
        if (!a->has_prefix || a->prefix == prefix)
            continue;
        ss58_encode(a->key ? keypair_account_id(a->key, &len) : a->id, prefix, address);
        snprintf(text, sizeof(text),
                 "account %.60s: its address has the SS58 prefix %u, the chain's is %u: write %s",
                 a->alias, a->prefix, prefix, address);
        check_line("warn", "account", text);
    }
}

static void node_closed(void *arg)
{
    (void)arg;
}

static void end_probe(struct probe *p)
{
    if (p->done)
        return;
    p->done = true;
    p->timer = loop_timer_close(p->timer);
    node_close(p->node, node_closed, p);
}

static void check_ways(const struct probe *p)
{
    struct buf ways = {0};
    node_other_ways(p->node, &ways);
    check_line("ok", "methods",
               ways.len ? buf_str(&ways) : "it answers each one that this check needed");
    buf_done(&ways);
}

/* The oldest block that was asked for. */
static void on_finalized(void *arg, const struct node_block *block)
{
    struct probe *p = arg;
    char text[200];
    if (p->done)
        return;
    bool state = block->nonce_count && block->nonces[0] != UINT64_MAX;
    snprintf(text, sizeof(text), "block %llu, %llu blocks ago: its body is %s, its state is %s",
             (unsigned long long)block->head.number,
             (unsigned long long)(node_info(p->node)->finalized_number - block->head.number),
             block->unread ? "gone" : "there", state ? "there" : "gone");
    check_line(block->unread || !state ? "warn" : "ok", "keeps", text);
    check_ways(p);
    end_probe(p);
}

static void on_pool(struct node_ask *ask)
{
    struct probe *p = CONTAINER_OF(ask, struct probe, ask);
    static const uint8_t nobody[32] = {1};
    if (p->done)
        return;
    if (ask->err.code)
        check_line("warn", "pool", ask->err.text);
    else
        check_good("pool", "it lists its pool");
    node_watch_account(p->node, nobody, sizeof(nobody));
    node_follow(p->node, p->height);
}

static void on_ready(void *arg, const struct node_info *info)
{
    struct probe *p = arg;
    char text[300];
    struct err err = {0};
    if (p->ready)
        return;
    p->ready = true;
    memcpy(p->genesis, info->genesis, sizeof(p->genesis));
    snprintf(text, sizeof(text), "%s/%u, best %llu, finalized %llu, genesis %s", info->spec_name,
             info->spec_version, (unsigned long long)info->best_number,
             (unsigned long long)info->finalized_number, hex_log(info->genesis, 32));
    check_good("chain", text);
    check_prefixes(p->config, info->ss58_prefix);
    if (extrinsic_supported(info->metadata, &err) ||
        (p->config->metadata_hash && extrinsic_metadata_hash(info->metadata, &err))) {
        check_wrong("chain", err.text);
    } else {
        struct buf more = {0};
        buf_printf(&more, "every signed extension of this chain is supported");
        size_t len = more.len;
        buf_put(&more, "; ", 2);
        extrinsic_extensions_text(info->metadata, &more);
        if (more.len == len + 2)
            more.len = len;
        check_line("ok", "extensions", buf_str(&more));
        buf_done(&more);
        check_signing(p->config, info->metadata);
    }
    uint64_t last = info->finalized_number;
    p->height = last > KEPT_BLOCKS ? last - KEPT_BLOCKS : 1;
    if (last == 0)
        end_probe(p);
    else
        node_ask_pending(p->node, &p->ask, &p->hashes, NULL, on_pool);
}

static void on_down(void *arg, const struct err *err)
{
    struct probe *p = arg;
    if (!p->done)
        p->why = *err;
    end_probe(p);
}

static void on_late(void *arg)
{
    struct probe *p = arg;
    err_set(&p->why, ERR_TIMEOUT, "no answer within 10 s");
    end_probe(p);
}

/* What is known of all endpoints after each was tried. */
struct tried {
    uint8_t genesis[32];
    bool genesis_known;
    size_t usable, submits; /* how many a relay can use, and how many of these take submissions */
};

static void check_endpoint(const struct service_config *c, const char *const *url,
                           struct tried *tried)
{
    struct probe p = {.loop = loop_new(), .config = c};
    struct node_config config = {.urls = url,
                                 .url_count = 1,
                                 .ca_file = c->ca_file,
                                 .insecure = c->chain_insecure,
                                 .genesis = tried->genesis_known ? tried->genesis : NULL,
                                 .verify_blocks = c->verify_blocks,
                                 .allow_chopsticks = c->allow_chopsticks,
                                 .extensions = c->extensions,
                                 .extension_count = c->extension_count,
                                 .token = c->token,
                                 .on_ready = on_ready,
                                 .on_down = on_down,
                                 .on_finalized = on_finalized,
                                 .arg = &p};
    p.node = node_new(p.loop, &config, &p.why);
    if (p.node) {
        snprintf(p.shown, sizeof(p.shown), "%s", node_endpoint(p.node));
        check_line("", "endpoint", p.shown);
        p.timer = loop_timer_new(p.loop, on_late, &p);
        loop_timer_at(p.timer, loop_now_ms(p.loop) + NODE_TIMEOUT_MS);
        node_open(p.node);
        loop_run(p.loop);
    }
    if (!p.node)
        check_wrong("chain", p.why.text); /* a relay refuses it whatever the others are */
    else if (p.why.code)
        check_line(p.ready ? "warn" : "down", "chain", p.why.text);
    if (p.ready) {
        tried->usable++;
        tried->genesis_known = true;
        memcpy(tried->genesis, p.genesis, sizeof(p.genesis));
        tried->submits +=
            check_measure(p.shown, &(struct measure_endpoint){*url, c->ca_file, c->chain_insecure});
    }
    buf_done(&p.hashes);
    loop_free(p.loop);
}

/* How far each endpoint is behind the best of them. */
static void check_lags(const struct service_config *c)
{
    struct measure_endpoint *at = xcalloc(c->endpoint_count, sizeof(*at));
    bool *has = xcalloc(c->endpoint_count, sizeof(*has));
    uint64_t *best = xcalloc(c->endpoint_count, sizeof(*best)), highest = 0;
    for (size_t i = 0; i < c->endpoint_count; i++)
        at[i] = (struct measure_endpoint){c->endpoints[i], c->ca_file, c->chain_insecure};
    measure_best(at, c->endpoint_count, has, best);
    for (size_t i = 0; i < c->endpoint_count; i++)
        highest = has[i] && best[i] > highest ? best[i] : highest;
    for (size_t i = 0; i < c->endpoint_count; i++) {
        char *shown = host_url_shown(c->endpoints[i]), text[400];
        if (has[i])
            snprintf(text, sizeof(text), "%.250s: block %llu, %llu behind the best endpoint", shown,
                     (unsigned long long)best[i], (unsigned long long)(highest - best[i]));
        else
            snprintf(text, sizeof(text), "%.250s does not tell its best block", shown);
        check_line(has[i] && highest - best[i] < NODE_LAG_MAX ? "ok" : "warn", "lag", text);
        free(shown);
    }
    free(at);
    free(has);
    free(best);
}

void check_chain(const struct service_config *c)
{
    struct tried tried = {.genesis_known = c->has_genesis};
    if (c->has_genesis)
        memcpy(tried.genesis, c->genesis, sizeof(tried.genesis));
    for (size_t i = 0; i < c->endpoint_count; i++)
        check_endpoint(c, &c->endpoints[i], &tried);
    check_lags(c);
    if (!tried.usable)
        check_wrong("chain", "no endpoint is usable");
    else if (!tried.submits)
        check_wrong("chain", "no endpoint takes submissions: see the lines marked warn");
    else if (tried.usable < c->endpoint_count)
        check_caution(NULL, "chain",
                      "not every endpoint is usable: a relay passes over the others");
}
