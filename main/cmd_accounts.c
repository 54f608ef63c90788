/* txrelay accounts: the accounts, and who leads them. */
#include "cli.h"
#include "command.h"

int cmd_accounts(int argc, char **argv)
{
    static const struct argp_option options[] = {COMMAND_OPTION_JSON, {0}};
    static const struct command command = {
        .options = options, .doc = "List the accounts with their leaders, epochs and heartbeats."};
    struct arguments a = {0};
    struct config config;
    int rc = command_start(&command, argc, argv, &a, true, &config);
    if (rc)
        return rc;
    return cli_run_sql(&config, "accounts.sql", 0, NULL, cli_print_rows, &a);
}
