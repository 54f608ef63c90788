/* devchain: options, signals, start and stop. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "base/check.h"
#include "base/log.h"
#include "chain/keys.h"
#include "chain/ss58.h"

enum option_id {
    OPT_PORT = 256,
    OPT_BLOCK_MS,
    OPT_INSTANT,
    OPT_INSTANT_DELAY_MS,
    OPT_FINALITY_LAG,
    OPT_CHOPSTICKS,
    OPT_DENY_UNSAFE,
    OPT_BAN_SECONDS,
    OPT_POOL_LIMIT,
    OPT_POOL_BYTES,
    OPT_FUTURE_LIMIT,
    OPT_BLOCK_MAX_EXTRINSICS,
    OPT_MAX_BLOCK_BYTES,
    OPT_SPEC_VERSION,
    OPT_TX_VERSION,
    OPT_SEED,
    OPT_FUND,
    OPT_MAX_SUBSCRIPTIONS,
    OPT_MAX_CONNECTIONS,
    OPT_PING_SECONDS,
    OPT_KEEP_MB,
    OPT_BLOCK_HASH_COUNT,
    OPT_FEE_BASE,
    OPT_FEE_BYTE,
    OPT_GENESIS_MS,
    OPT_VERBOSE,
};

static const struct option OPTIONS[] = {
    {"port", required_argument, NULL, OPT_PORT},
    {"block-ms", required_argument, NULL, OPT_BLOCK_MS},
    {"instant", no_argument, NULL, OPT_INSTANT},
    {"instant-delay-ms", required_argument, NULL, OPT_INSTANT_DELAY_MS},
    {"finality-lag", required_argument, NULL, OPT_FINALITY_LAG},
    {"chopsticks-shapes", no_argument, NULL, OPT_CHOPSTICKS},
    {"deny-unsafe", no_argument, NULL, OPT_DENY_UNSAFE},
    {"ban-seconds", required_argument, NULL, OPT_BAN_SECONDS},
    {"pool-limit", required_argument, NULL, OPT_POOL_LIMIT},
    {"pool-bytes", required_argument, NULL, OPT_POOL_BYTES},
    {"future-limit", required_argument, NULL, OPT_FUTURE_LIMIT},
    {"block-max-extrinsics", required_argument, NULL, OPT_BLOCK_MAX_EXTRINSICS},
    {"max-block-bytes", required_argument, NULL, OPT_MAX_BLOCK_BYTES},
    {"spec-version", required_argument, NULL, OPT_SPEC_VERSION},
    {"tx-version", required_argument, NULL, OPT_TX_VERSION},
    {"seed", required_argument, NULL, OPT_SEED},
    {"fund", required_argument, NULL, OPT_FUND},
    {"max-subscriptions", required_argument, NULL, OPT_MAX_SUBSCRIPTIONS},
    {"max-connections", required_argument, NULL, OPT_MAX_CONNECTIONS},
    {"ping-seconds", required_argument, NULL, OPT_PING_SECONDS},
    {"keep-mb", required_argument, NULL, OPT_KEEP_MB},
    {"block-hash-count", required_argument, NULL, OPT_BLOCK_HASH_COUNT},
    {"fee-base", required_argument, NULL, OPT_FEE_BASE},
    {"fee-byte", required_argument, NULL, OPT_FEE_BYTE},
    {"genesis-ms", required_argument, NULL, OPT_GENESIS_MS},
    {"verbose", no_argument, NULL, OPT_VERBOSE},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char USAGE[] =
    "usage: devchain [options]\n"
    "  --port N                  0 (default): any free one; printed as \"listening ws://127.0.0.1:N\"\n"
    "  --block-ms N              a block every N ms (500); 0: on command only\n"
    "  --instant                 a block as soon as something was submitted (then --block-ms is 0 by "
    "default)\n"
    "  --instant-delay-ms N      and wait so long for more (0)\n"
    "  --finality-lag N          blocks between best and finalized (2; with --instant 0)\n"
    "  --chopsticks-shapes       statuses and 1010 errors in chopsticks' form\n"
    "  --deny-unsafe             refuse author_removeExtrinsic, system_dryRun\n"
    "  --ban-seconds N           (1800)\n"
    "  --pool-limit N            ready transactions (8192); --pool-bytes N (20 MiB); --future-limit N (512)\n"
    "  --block-max-extrinsics N  (5000); --max-block-bytes N (5 MiB, three quarters for transactions)\n"
    "  --spec-version N          (100); --tx-version N (1)\n"
    "  --seed N                  subscription ids and block salts repeat with the same seed\n"
    "  --fund ACCOUNT=AMOUNT     more genesis accounts (SS58 or 0x and 64 digits); may be repeated\n"
    "  --max-subscriptions N     per connection (1024); --max-connections N (100)\n"
    "  --ping-seconds N          (30); 0: none\n"
    "  --keep-mb N               memory for bodies and events of old blocks (512)\n"
    "  --block-hash-count N      (2400); --fee-base N (100000000); --fee-byte N (1000000)\n"
    "  --genesis-ms N            timestamp of genesis (now); the genesis hash depends on it\n";

static _Noreturn void die(const char *option, const char *value)
{
    fprintf(stderr, "devchain: --%s: '%s' is not a usable value; devchain --help lists the options\n", option,
            value);
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
    static const char *const URIS[] = {"//Alice", "//Bob", "//Charlie", "//Dave", "//Eve", "//Ferdie"};
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

static void set_option(struct app_options *o, struct genesis *g, int id, const char *name, const char *v)
{
    switch (id) {
    case OPT_PORT:
        o->port = (uint16_t)number(name, v, 65535);
        break;
    case OPT_BLOCK_MS:
        o->block_ms = (uint32_t)number(name, v, 86400000);
        break;
    case OPT_INSTANT:
        o->instant = true;
        break;
    case OPT_INSTANT_DELAY_MS:
        o->instant_delay_ms = (uint32_t)number(name, v, 86400000);
        break;
    case OPT_FINALITY_LAG:
        o->finality_lag = number(name, v, UINT32_MAX);
        break;
    case OPT_CHOPSTICKS:
        o->chopsticks_shapes = true;
        break;
    case OPT_DENY_UNSAFE:
        o->deny_unsafe = true;
        break;
    case OPT_BAN_SECONDS:
        o->core.pool.ban_ms = number(name, v, UINT32_MAX) * 1000;
        break;
    case OPT_POOL_LIMIT:
        o->core.pool.ready_count_max = number(name, v, UINT32_MAX);
        break;
    case OPT_POOL_BYTES:
        o->core.pool.ready_bytes_max = number(name, v, UINT64_MAX);
        break;
    case OPT_FUTURE_LIMIT:
        o->core.pool.future_count_max = number(name, v, UINT32_MAX);
        break;
    case OPT_BLOCK_MAX_EXTRINSICS:
        o->core.block_extrinsics_max = (uint32_t)number(name, v, 1000000);
        break;
    case OPT_MAX_BLOCK_BYTES:
        o->core.runtime.block_len_max = (uint32_t)number(name, v, 1u << 30);
        break;
    case OPT_SPEC_VERSION:
        o->core.runtime.version.spec = (uint32_t)number(name, v, UINT32_MAX);
        break;
    case OPT_TX_VERSION:
        o->core.runtime.version.tx = (uint32_t)number(name, v, UINT32_MAX);
        break;
    case OPT_SEED:
        o->seed = o->core.seed = number(name, v, UINT64_MAX);
        break;
    case OPT_FUND:
        fund_option(g, v);
        break;
    case OPT_MAX_SUBSCRIPTIONS:
        o->subscriptions_max = (uint32_t)number(name, v, UINT32_MAX);
        break;
    case OPT_MAX_CONNECTIONS:
        o->connections_max = (uint32_t)number(name, v, 1000);
        break;
    case OPT_PING_SECONDS:
        o->ping_s = (uint32_t)number(name, v, 30000);
        break;
    case OPT_KEEP_MB:
        o->core.keep_bytes_max = (size_t)number(name, v, 1u << 20) << 20;
        break;
    case OPT_BLOCK_HASH_COUNT:
        o->core.runtime.block_hash_count = (uint32_t)number(name, v, UINT32_MAX);
        break;
    case OPT_FEE_BASE:
        o->core.runtime.fee_base = number(name, v, UINT64_MAX);
        break;
    case OPT_FEE_BYTE:
        o->core.runtime.fee_byte = number(name, v, UINT64_MAX);
        break;
    case OPT_GENESIS_MS:
        o->genesis_ms = number(name, v, UINT64_MAX);
        break;
    case OPT_VERBOSE:
        log_set_level(LOG_LEVEL_DEBUG);
        break;
    default:
        fputs(USAGE, id == 'h' ? stdout : stderr);
        exit(id == 'h' ? 0 : 2);
    }
}

static void parse_options(int argc, char **argv, struct app_options *o, struct genesis *g)
{
    bool block_given = false, lag_given = false;
    int index = 0;
    for (int id; (id = getopt_long(argc, argv, "h", OPTIONS, &index)) != -1;) {
        block_given |= id == OPT_BLOCK_MS;
        lag_given |= id == OPT_FINALITY_LAG;
        set_option(o, g, id, id >= 256 ? OPTIONS[index].name : "", optarg);
    }
    if (optind < argc)
        die("option", argv[optind]);
    if (o->instant && !block_given)
        o->block_ms = 0;
    if (o->instant && !lag_given)
        o->finality_lag = 0;
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
