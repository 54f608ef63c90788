/* txrelay accounts: the accounts, and who leads them. */
#include "cli.h"
#include "command.h"

struct accounts {
    struct arguments args;
    const char *account;
};

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    (void)state;
    if (key != 'a')
        return ARGP_ERR_UNKNOWN;
    ((struct accounts *)a)->account = arg;
    return 0;
}

static const struct argp_option options[] = {
    COMMAND_OPTION_JSON,
    COMMAND_OPTION_WIDE,
    {"account", 'a', "ACCOUNT", 0, "only this account: alias, 0x id or address", 0},
    {0}};

static int run_accounts(int argc, char **argv)
{
    struct accounts a = {.args.nothing = "no account is registered: run txrelay register"};
    struct config config;
    int rc = command_start(&command_accounts, argc, argv, &a.args, true, &config);
    if (rc)
        return rc;
    struct conn_param account = cli_text(a.account);
    return cli_run_sql(&config, "accounts.sql", 1, &account, cli_print_rows, &a.args);
}

const struct command command_accounts = {
    .name = "accounts",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_accounts,
    .what = "accounts, their leaders and epochs",
    .options = options,
    .option = option,
    .columns = "account=alias leader=holder epoch heartbeat=heartbeat_age_s next_nonce "
               "paused=suspension|paused_by reason=paused_reason",
    .doc = "List the accounts with their leaders, epochs, and the age of each leader's last "
           "heartbeat."};
