/* The service's ears at the node: chain facts and finalized blocks go to every account's
 * manager. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/plant.h"
#include "service/service_internal.h"

static void to_leaders(struct service *s, const struct manager_event *ev)
{
    for (size_t i = 0; i < s->account_count; i++)
        if (account_is_managed(&s->accounts[i]))
            account_event(&s->accounts[i], ev);
}

void service_send_chain_event(struct account *a, enum manager_event_type type,
                              const struct node_info *info)
{
    struct err err;
    bool supported = sign_supported(a, info->metadata, &err) == 0;
    account_event(
        a, &(struct manager_event){.type = type,
                                   .chain = {.finalized = info->finalized_number,
                                             .best = info->best_number,
                                             .best_known = info->best_known,
                                             .spec_version = info->spec_version,
                                             .transaction_version = info->transaction_version,
                                             .tip_max = extrinsic_tip_max(info->metadata),
                                             .unsupported = supported ? NULL : err.text}});
}

static void send_leaders(struct service *s, enum manager_event_type type,
                         const struct node_info *info)
{
    for (size_t i = 0; i < s->account_count; i++)
        if (account_is_managed(&s->accounts[i]))
            service_send_chain_event(&s->accounts[i], type, info);
}

static void heard_of(struct service *s, const struct node_info *info)
{
    if (s->election && s->registered) /* else it may be another chain's */
        election_best(s->election, info->best_number, info->finalized_number);
}

static void on_ready(void *arg, const struct node_info *info)
{
    struct service *s = arg;
    s->node_ready = true;
    s->node_error[0] = 0;
    log_info("chain.up", "genesis=%s spec=%s/%u finalized=%llu best=%llu",
             hex_log(info->genesis, 32), info->spec_name, info->spec_version,
             (unsigned long long)info->finalized_number, (unsigned long long)info->best_number);
    for (size_t i = 0; i < s->account_count; i++) {
        struct account *a = &s->accounts[i];
        if (a->watched)
            continue;
        size_t index = node_watch_account(s->node, a->id, a->id_len);
        INVARIANT(index == i);
        a->node_index = index;
        a->watched = true;
    }
    service_register(s);
    heard_of(s, info);
    send_leaders(s, MANAGER_EV_CHAIN_UP, info);
    service_sites_head(s, true);
    service_poll_event(s, &(struct poll_event){.type = POLL_EV_NODE_UP});
}

static void on_down(void *arg, const struct err *err)
{
    struct service *s = arg;
    s->node_ready = false;
    if (s->election)
        election_no_best(s->election);
    snprintf(s->node_error, sizeof(s->node_error), "%s", err->text);
    log_warn("chain.down", "code=%s text=\"%s\"", err_name(err->code), err->text);
    if (err->code == ERR_GENESIS)
        log_error("chain.none",
                  "text=\"every endpoint is of another chain; correct chain.endpoints "
                  "or chain.genesis; the relay keeps trying\"");
    if (err->code == ERR_GENESIS && s->config.on_registered)
        service_fail(s, err); /* a command that ends */
    to_leaders(s, &(struct manager_event){.type = MANAGER_EV_CHAIN_DOWN});
}

static void on_runtime(void *arg, const struct node_info *info)
{
    struct service *s = arg;
    log_info("chain.runtime", "spec=%s/%u transaction_version=%u", info->spec_name,
             info->spec_version, info->transaction_version);
    send_leaders(s, MANAGER_EV_RUNTIME, info);
}

static void on_best(void *arg, const struct node_head *head)
{
    struct service *s = arg;
    const struct node_info *info = node_info(s->node);
    heard_of(s, info);
    to_leaders(s, &(struct manager_event){.type = MANAGER_EV_BEST,
                                          .best = {.number = head->number,
                                                   .best_known = info->best_known,
                                                   .finalized = info->finalized_number}});
    service_sites_head(s, false);
}

/* Only our own extrinsics, and what else names one of our accounts as its signer: foreign use of
 * the key. */
static enum node_want wants(void *arg, const struct node_included *x)
{
    const struct account *a = owners_of(arg, x);
    if (!a || a->role != ACCOUNT_LEADER)
        return NODE_WANT_NOT;
    bool must = a->site ? service_sites_must_verify(a, x->tx.hash, x->tx.nonce)
                        : manager_must_verify(a->manager, x->tx.hash, x->tx.nonce);
    return must ? NODE_WANT_VERIFIED : NODE_WANT;
}

static enum tx_signature verify(void *arg, const struct tx_included *x, const struct metadata *md,
                                const struct extrinsic_params *facts)
{
    (void)arg;
    return account_verify(x, md, facts);
}

/* Where nothing is in flight, a block says no more than the nonce behind it. */
static bool needs(void *arg, uint64_t number)
{
    const struct service *s = arg;
    (void)number;
    for (size_t i = 0; i < s->account_count; i++) {
        const struct account *a = &s->accounts[i];
        if (a->role == ACCOUNT_LEADER &&
            (a->site ? service_sites_need(a) : manager_needs_blocks(a->manager)))
            return true;
    }
    return false;
}

/* Nor is what the chain says of accounts that other relays lead asked for: at each block, with
 * thousands of them. */
static bool wants_account(void *arg, size_t index)
{
    const struct service *s = arg;
    return s->accounts[index].role == ACCOUNT_LEADER;
}

static bool wants_runtime(void *arg)
{
    const struct service *s = arg;
    for (size_t i = 0; i < s->account_count; i++) {
        const struct account *a = &s->accounts[i];
        if (a->role == ACCOUNT_LEADER && !a->site && manager_wants_runtime(a->manager))
            return true;
    }
    return false;
}

/* Above the nonces that the account's extrinsics in the block use for certain. */
static uint64_t shown_nonce(struct service *s, const struct account *a,
                            const struct node_block *block)
{
    uint64_t shown = 0;
    for (const struct node_included *x = owners_first(s, a, block); x;
         x = owners_next(s, block, x)) {
        uint64_t nonce = manager_shown_nonce(a->manager, &x->tx);
        shown = nonce > shown ? nonce : shown;
    }
    return shown;
}

static enum tx_doubt doubts(void *arg, const struct node_block *block, size_t index)
{
    struct service *s = arg;
    PRE(index < s->account_count);
    const struct account *a = &s->accounts[index];
    if (a->role != ACCOUNT_LEADER)
        return TX_CERTAIN;
    if (a->site)
        return service_sites_doubts(a, block);
    return manager_doubts_nonce(a->manager, block->head.number, block->nonces[index],
                                shown_nonce(s, a, block));
}

static void on_finalized(void *arg, const struct node_block *block)
{
    struct service *s = arg;
    struct tx_included *rows = xcalloc(block->included_count, sizeof(*rows));
    s->follow_next = block->head.number + 1;
    if (block->head.number > s->final_read)
        s->final_read = block->head.number;
    if (s->election)
        election_saw(s->election, block->head.number);
    owners_hold(s, block);
    for (size_t i = 0; i < s->account_count; i++) {
        struct account *a = &s->accounts[i];
        if (a->role != ACCOUNT_LEADER) {
            if (a->site)
                service_sites_seen(a, block);
            continue;
        }
        struct manager_block b = {.number = block->head.number,
                                  .time_ms = block->time_ms,
                                  .unread = block->unread,
                                  .spec_version = block->spec_version,
                                  .account_nonce = UINT64_MAX,
                                  .included = rows};
        memcpy(b.hash, block->head.hash, 32);
        if (i < block->nonce_count) {
            b.account_nonce = block->nonces[i];
            b.has_balance = block->balances[i].known;
            b.balance = block->balances[i].free;
            if (b.has_balance) {
                a->balance_known = true;
                a->balance = b.balance;
            }
        }
        for (const struct node_included *x = owners_first(s, a, block); x;
             x = owners_next(s, block, x))
            rows[b.included_count++] = x->tx;
        if (a->site)
            service_sites_block(a, block);
        else
            account_event(a, &(struct manager_event){.type = MANAGER_EV_FINALIZED, .block = &b});
        service_block(s, a, block->head.number);
    }
    owners_hold(s, NULL);
    free(rows);
}

/* One stream of finalized blocks serves all accounts: it starts over when an account needs an
 * earlier height, and the others ignore what they have seen. */
void service_follow(struct service *s, uint64_t number)
{
    if (s->following && number >= s->follow_next)
        return;
    s->following = true;
    s->follow_next = number;
    node_follow(s->node, number);
}

/* ---- the room ---- */

static void chain_open(struct room *r)
{
    node_open(r->service->node);
}

static void chain_run(struct room *r)
{
    const struct node_info *info = node_info(r->service->node);
    if (info)
        heard_of(r->service, info);
}

static void closed(void *arg)
{
    struct room *r = arg;
    r->service->node = NULL;
    room_ended(r);
}

static void chain_close(struct room *r)
{
    node_close(r->service->node, closed, r);
}

static void chain_free(struct room *r)
{
    INVARIANT(!r->service->node);
    free(r);
}

static void chain_status(const struct room *r, struct service_status *ret)
{
    const struct node_info *info = node_info(r->service->node);
    ret->endpoint = node_endpoint(r->service->node);
    node_stats(r->service->node, &ret->node);
    if (!info)
        return;
    ret->spec_name = info->spec_name;
    ret->spec_version = info->spec_version;
    ret->transaction_version = info->transaction_version;
    ret->best = info->best_number;
    ret->finalized = info->finalized_number;
    ret->best_known = info->best_known;
}

static const struct room_ops ops = {.name = "chain",
                                    .open = chain_open,
                                    .run = chain_run,
                                    .close = chain_close,
                                    .free = chain_free,
                                    .status = chain_status};

struct room *service_chain(struct service *s, struct err *err)
{
    const struct service_config *c = &s->config;
    struct node_config config = {
        .urls = c->endpoints,
        .url_count = c->endpoint_count,
        .ca_file = c->ca_file,
        .insecure = c->chain_insecure,
        .call_timeout_ms = c->call_timeout_ms,
        .genesis = c->has_genesis ? c->genesis : NULL,
        .verify_blocks = c->verify_blocks,
        .allow_chopsticks = c->allow_chopsticks,
        .extensions = c->extensions,
        .extension_count = c->extension_count,
        .token = c->token,
        .on_ready = on_ready,
        .on_down = on_down,
        .on_runtime = on_runtime,
        .on_best = on_best,
        .on_finalized = on_finalized,
        .needs = needs,
        .wants = wants,
        .verify = verify,
        .wants_account = wants_account,
        .wants_runtime = wants_runtime,
        .doubts = doubts,
        .quorum = c->quorum,
        .arg = s,
    };
    s->node = node_new(s->loop, &config, err);
    if (!s->node)
        return NULL;
    struct room *r = xcalloc(1, sizeof(*r));
    *r = (struct room){.ops = &ops, .service = s};
    return r;
}
