/* txrelay reconcile: search the chain for what the database has lost. */
#include "cli.h"
#include "command.h"

struct reconcile {
    struct arguments args;
    const char *block;
};

enum { OPT_BLOCK = 1000 };

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    if (key != OPT_BLOCK)
        return ARGP_ERR_UNKNOWN;
    command_number(state, "--block", arg, 0, INT64_MAX);
    ((struct reconcile *)a)->block = arg;
    return 0;
}

static const struct argp_option options[] = {
    {"block", OPT_BLOCK, "N", 0,
     "the last block that was final when the copy was made (default: the last one that a leader "
     "saw)",
     0},
    {0}};

static int run_reconcile(int argc, char **argv)
{
    struct reconcile r = {0};
    struct config config;
    int rc = command_start(&command_reconcile, argc, argv, &r.args, true, &config);
    if (rc)
        return rc;
    struct conn_param params[] = {cli_text(r.args.word[0]), cli_text(r.block)};
    return cli_run_sql(&config, "reconcile.sql", 2, params, cli_print_value, NULL);
}

const struct command command_reconcile = {
    .name = "reconcile",
    .role = "txrelay_relay",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_reconcile,
    .what = "search the chain for what a restored database has lost",
    .options = options,
    .option = option,
    .words_min = 1,
    .words_max = 1,
    .missing = "the account is missing: txrelay accounts lists them",
    .args_doc = "ACCOUNT",
    .doc = "After the database was restored from a copy, and before relays lead again: search the "
           "chain and the pools for transactions that were sent after the copy was made. Nothing "
           "gets a nonce until what lost commits may have sent can no longer be included."};
