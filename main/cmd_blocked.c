/* txrelay blocked: the accounts that are blocked, and why. */
#include "cli.h"
#include "command.h"

struct blocked {
    struct arguments args;
    const char *account;
};

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    (void)state;
    if (key != 'a')
        return ARGP_ERR_UNKNOWN;
    ((struct blocked *)a)->account = arg;
    return 0;
}

static const struct argp_option options[] = {
    COMMAND_OPTION_JSON,
    COMMAND_OPTION_WIDE,
    {"account", 'a', "ACCOUNT", 0, "only this account: alias, 0x id or address", 0},
    {0}};

static int run_blocked(int argc, char **argv)
{
    struct blocked a = {0};
    struct config config;
    int rc = command_start(&command_blocked, argc, argv, &a.args, true, &config);
    if (rc)
        return rc;
    struct conn_param account = cli_text(a.account);
    return cli_run_sql(&config, "blocked.sql", 1, &account, cli_print_rows, &a.args);
}

const struct command command_blocked = {
    .name = "blocked",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_blocked,
    .what = "list blocked accounts, and why",
    .options = options,
    .option = option,
    .columns = "account code age_s nonce id reason",
    .doc = "List the accounts that are blocked, with the reason: paused, or the chain refuses "
           "their first transaction. Prints nothing if none is."};
