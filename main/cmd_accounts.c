/* txrelay accounts: the accounts, and who leads them. */
#include "cli.h"
#include "command.h"

static const struct argp_option options[] = {COMMAND_OPTION_JSON, {0}};

static int run_accounts(int argc, char **argv)
{
    struct arguments a = {0};
    struct config config;
    int rc = command_start(&command_accounts, argc, argv, &a, true, &config);
    if (rc)
        return rc;
    return cli_run_sql(&config, "accounts.sql", 0, NULL, cli_print_rows, &a);
}

const struct command command_accounts = {
    .name = "accounts",
    .run = run_accounts,
    .what = "accounts, their leaders and epochs",
    .options = options,
    .doc = "List the accounts with their leaders, epochs and heartbeats."};
