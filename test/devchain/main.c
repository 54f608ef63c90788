/* devchain: options, signals, start and stop. */
#include <getopt.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "chain/codec/ss58.h"
#include "chain/keys/keys.h"

/* How an option's value is read, and where it goes in struct app_options. */
enum kind {
    KIND_U16,
    KIND_U32,
    KIND_U64,
    KIND_SIZE,
    KIND_U128,
    KIND_FLAG,
    KIND_SECONDS,
    KIND_MB,
    KIND_FUND,
    KIND_POOL_TYPE,
    KIND_VERBOSE,
    KIND_HELP
};

struct option_spec {
    const char *name;
    enum kind kind;
    size_t offset;
    uint64_t max;
};
#define AT(field) offsetof(struct app_options, field)

static const struct option_spec SPECS[] = {
    {"port", KIND_U16, AT(port), 65535},
    {"block-ms", KIND_U32, AT(block_ms), 86400000},
    {"instant", KIND_FLAG, AT(instant), 0},
    {"instant-delay-ms", KIND_U32, AT(instant_delay_ms), 86400000},
    {"finality-lag", KIND_U64, AT(finality_lag), UINT32_MAX},
    {"chopsticks-shapes", KIND_FLAG, AT(chopsticks_shapes), 0},
    {"deny-unsafe", KIND_FLAG, AT(deny_unsafe), 0},
    {"newer-rpc", KIND_FLAG, AT(newer_rpc), 0},
    {"ban-seconds", KIND_SECONDS, AT(core.pool.ban_ms), UINT32_MAX},
    {"pool-type", KIND_POOL_TYPE, AT(core.pool.type), 0},
    {"finality-timeout-blocks", KIND_U64, AT(core.pool.finality_timeout_blocks), UINT32_MAX},
    {"pool-limit", KIND_SIZE, AT(core.pool.ready_count_max), UINT32_MAX},
    {"pool-bytes", KIND_SIZE, AT(core.pool.ready_bytes_max), UINT64_MAX},
    {"future-limit", KIND_SIZE, AT(core.pool.future_count_max), UINT32_MAX},
    {"future-bytes", KIND_SIZE, AT(core.pool.future_bytes_max), UINT64_MAX},
    {"block-max-extrinsics", KIND_U32, AT(core.block_extrinsics_max), 1000000},
    {"max-block-bytes", KIND_U32, AT(core.runtime.block_len_max), 1u << 30},
    {"spec-version", KIND_U32, AT(core.runtime.version.spec), UINT32_MAX},
    {"tx-version", KIND_U32, AT(core.runtime.version.tx), UINT32_MAX},
    {"seed", KIND_U64, AT(seed), UINT64_MAX},
    {"fund", KIND_FUND, 0, 0},
    {"max-subscriptions", KIND_U32, AT(subscriptions_max), UINT32_MAX},
    {"subscription-buffer", KIND_U32, AT(subscription_buffer), UINT32_MAX},
    {"follow-pins", KIND_U32, AT(follow_pins_max), UINT32_MAX},
    {"max-connections", KIND_U32, AT(connections_max), 1000},
    {"ping-seconds", KIND_U32, AT(ping_s), 30000},
    {"keep-mb", KIND_MB, AT(core.keep_bytes_max), 1u << 20},
    {"block-hash-count", KIND_U32, AT(core.runtime.block_hash_count), UINT32_MAX},
    {"fee-base", KIND_U128, AT(core.runtime.fee_base), UINT64_MAX},
    {"fee-byte", KIND_U128, AT(core.runtime.fee_byte), UINT64_MAX},
    {"trust-signatures", KIND_FLAG, AT(core.runtime.trust_signatures), 0},
    {"genesis-ms", KIND_U64, AT(genesis_ms), UINT64_MAX},
    {"verbose", KIND_VERBOSE, 0, 0},
    {"help", KIND_HELP, 0, 0},
};
enum { SPEC_COUNT = ARRAY_LEN(SPECS) };

static const char USAGE[] =
    "usage: devchain [options]\n"
    "  --port N                  0 (default): any free one; printed as \"listening "
    "ws://127.0.0.1:N\"\n"
    "  --block-ms N              a block every N ms (500); 0: on command only\n"
    "  --instant                 a block as soon as something was submitted (then --block-ms is 0 "
    "by default)\n"
    "  --instant-delay-ms N      and wait so long for more (0)\n"
    "  --finality-lag N          blocks between best and finalized (2; with --instant 0)\n"
    "  --chopsticks-shapes       statuses and 1010 errors in chopsticks' form\n"
    "  --deny-unsafe             refuse author_removeExtrinsic, system_dryRun\n"
    "  --newer-rpc               also the methods of the newer JSON-RPC (archive_v1_..,\n"
    "                            chainHead_v1_.., transaction_v1_.., transactionWatch_v1_..)\n"
    "  --follow-pins N           blocks that a chainHead_v1_follow may keep pinned (512)\n"
    "  --ban-seconds N           (1800)\n"
    "  --pool-type TYPE          single-state (default) or fork-aware\n"
    "  --finality-timeout-blocks N  fork-aware: an included transaction is given up when its block "
    "is so far\n"
    "                            behind and not final (128)\n"
    "  --pool-limit N            ready transactions (8192); --pool-bytes N (20 MiB)\n"
    "  --future-limit N          (512); --future-bytes N (1 MiB)\n"
    "  --block-max-extrinsics N  (5000); --max-block-bytes N (5 MiB, three quarters for "
    "transactions)\n"
    "  --spec-version N          (100); --tx-version N (1)\n"
    "  --seed N                  subscription ids and block salts repeat with the same seed\n"
    "  --fund ACCOUNT=AMOUNT     more genesis accounts (SS58 or 0x and 64 digits); may be "
    "repeated\n"
    "  --max-subscriptions N     per connection (1024); --max-connections N (100)\n"
    "  --subscription-buffer N   a subscription that a slow reader lets grow above it dies in "
    "silence (0: none does;\n"
    "                            a real node: 16)\n"
    "  --ping-seconds N          (30); 0: none\n"
    "  --keep-mb N               memory for bodies and events of old blocks (512)\n"
    "  --block-hash-count N      (2400); --fee-base N (100000000); --fee-byte N (1000000)\n"
    "  --trust-signatures        check none: for measuring what is not the chain\n"
    "  --verbose                 debug lines on standard error\n"
    "  --genesis-ms N            timestamp of genesis (now); the genesis hash depends on it\n";

static _Noreturn void die(const char *option, const char *value)
{
    fprintf(stderr,
            "devchain: --%s: '%s' is not a usable value; devchain --help lists the options\n",
            option, value);
    exit(2);
}

static uint64_t number(const char *option, const char *text, uint64_t max)
{
    char *end;
    unsigned long long v = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || v > max)
        die(option, text);
    return v;
}

static enum pool_type pool_type(const char *option, const char *text)
{
    if (strcmp(text, "fork-aware") == 0)
        return POOL_TYPE_FORK_AWARE;
    if (strcmp(text, "single-state") != 0)
        die(option, text);
    return POOL_TYPE_SINGLE_STATE;
}

struct genesis {
    struct core_change *accounts;
    size_t count;
};

static void fund(struct genesis *g, const uint8_t id[32], u128 amount)
{
    g->accounts = xrealloc(g->accounts, (g->count + 1) * sizeof *g->accounts);
    struct core_change *c = &g->accounts[g->count++];
    *c = (struct core_change){.set_free = true, .free = amount};
    memcpy(c->id, id, 32);
}

static void fund_option(struct genesis *g, const char *text)
{
    const char *eq = strchr(text, '=');
    char account[SS58_TEXT_MAX + 8] = "";
    uint8_t id[ACCOUNT_ID_MAX];
    size_t len;
    u128 amount;
    if (!eq || (size_t)(eq - text) >= sizeof account || !u128_parse(eq + 1, &amount))
        die("fund", text);
    memcpy(account, text, (size_t)(eq - text));
    if (!account_id_parse(account, id, &len) || len != 32)
        die("fund", text);
    fund(g, id, amount);
}

/* The well-known development accounts, in each scheme. */
static void fund_dev_accounts(struct genesis *g, uint8_t sudo_key[32])
{
    static const char *const URIS[] = {"//Alice", "//Bob", "//Charlie",
                                       "//Dave",  "//Eve", "//Ferdie"};
    static const enum key_scheme SCHEMES[] = {KEY_SR25519, KEY_ED25519, KEY_ECDSA};
    for (size_t s = 0; s < ARRAY_LEN(SCHEMES); s++)
        for (size_t i = 0; i < ARRAY_LEN(URIS); i++) {
            struct keypair *key;
            struct err err;
            size_t len;
            if (keypair_from_uri(URIS[i], SCHEMES[s], &key, &err)) {
                fprintf(stderr, "devchain: %s: %s\n", URIS[i], err.text);
                exit(1);
            }
            const uint8_t *id = keypair_account_id(key, &len);
            if (s == 0 && i == 0)
                memcpy(sudo_key, id, 32);
            fund(g, id, (u128)1000000 * 1000000000000u);
            keypair_free(key);
        }
}

static void set_option(struct app_options *o, struct genesis *g, const struct option_spec *s,
                       const char *text)
{
    char *at = (char *)o + s->offset;
    switch (s->kind) {
    case KIND_U16:
        *(uint16_t *)(void *)at = (uint16_t)number(s->name, text, s->max);
        break;
    case KIND_U32:
        *(uint32_t *)(void *)at = (uint32_t)number(s->name, text, s->max);
        break;
    case KIND_U64:
        *(uint64_t *)(void *)at = number(s->name, text, s->max);
        break;
    case KIND_SIZE:
        *(size_t *)(void *)at = (size_t)number(s->name, text, s->max);
        break;
    case KIND_U128:
        *(u128 *)(void *)at = number(s->name, text, s->max);
        break;
    case KIND_FLAG:
        *(bool *)(void *)at = true;
        break;
    case KIND_SECONDS:
        *(uint64_t *)(void *)at = number(s->name, text, s->max) * 1000;
        break;
    case KIND_MB:
        *(size_t *)(void *)at = (size_t)number(s->name, text, s->max) << 20;
        break;
    case KIND_FUND:
        fund_option(g, text);
        break;
    case KIND_POOL_TYPE:
        *(enum pool_type *)(void *)at = pool_type(s->name, text);
        break;
    case KIND_VERBOSE:
        log_set_level(LOG_LEVEL_DEBUG);
        break;
    case KIND_HELP:
        fputs(USAGE, stdout);
        exit(0);
    }
}

static bool takes_value(enum kind k)
{
    return k != KIND_FLAG && k != KIND_VERBOSE && k != KIND_HELP;
}

static void parse_options(int argc, char **argv, struct app_options *o, struct genesis *g)
{
    struct option options[SPEC_COUNT + 1] = {0};
    bool given[SPEC_COUNT] = {false};
    int index = 0;
    for (size_t i = 0; i < SPEC_COUNT; i++)
        options[i] = (struct option){SPECS[i].name, takes_value(SPECS[i].kind), NULL, 1};
    for (int id; (id = getopt_long(argc, argv, "", options, &index)) != -1;) {
        if (id != 1) {
            fputs(USAGE, stderr);
            exit(2);
        }
        given[index] = true;
        set_option(o, g, &SPECS[index], optarg);
    }
    if (optind < argc)
        die("(no option)", argv[optind]);
    o->core.seed = o->seed;
    for (size_t i = 0; i < SPEC_COUNT && o->instant; i++) {
        if (SPECS[i].offset == AT(block_ms) && SPECS[i].kind == KIND_U32 && !given[i])
            o->block_ms = 0;
        if (SPECS[i].offset == AT(finality_lag) && SPECS[i].kind == KIND_U64 && !given[i])
            o->finality_lag = 0;
    }
}

struct running {
    struct loop *loop;
    struct app *app;
    struct loop_signal *term, *interrupt;
    bool closing;
};

static void on_closed(void *arg)
{
    struct running *r = arg;
    r->term = loop_signal_close(r->term);
    r->interrupt = loop_signal_close(r->interrupt);
    loop_stop(r->loop);
}

static void on_signal(void *arg, int signum)
{
    struct running *r = arg;
    (void)signum;
    if (r->closing)
        return;
    r->closing = true;
    app_close(r->app, on_closed, r);
}

int main(int argc, char **argv)
{
    struct app_options options;
    struct genesis genesis = {0};
    struct err err = {0};
    struct running r = {0};
    app_options_default(&options);
    fund_dev_accounts(&genesis, options.core.runtime.sudo_key);
    parse_options(argc, argv, &options, &genesis);
    options.accounts = genesis.accounts;
    options.account_count = genesis.count;
    r.loop = loop_new();
    r.app = app_new(r.loop, &options, &err);
    free(genesis.accounts);
    if (!r.app) {
        fprintf(stderr, "devchain: %s\n", err.text);
        return 1;
    }
    r.term = loop_signal_new(r.loop, SIGTERM, on_signal, &r);
    r.interrupt = loop_signal_new(r.loop, SIGINT, on_signal, &r);
    printf("listening ws://127.0.0.1:%u\n", app_port(r.app));
    fflush(stdout);
    loop_run(r.loop);
    loop_free(r.loop);
    return 0;
}
