/* txrelay accounts: the accounts, and who leads them. */
#include "cli.h"
#include "command.h"

static const struct argp_option options[] = {
    COMMAND_OPTION_JSON, COMMAND_OPTION_WIDE, COMMAND_OPTION_ACCOUNT, {0}};

const struct command command_accounts = {
    .name = "accounts",
    .without = COMMAND_DATABASE_ONLY,
    .sql = "accounts.sql",
    .print = cli_print_rows,
    .nothing = "no account is registered: run txrelay register",
    .what = "accounts, their leaders and epochs",
    .options = options,
    .columns = "account=alias leader=holder epoch heartbeat=heartbeat_age_s next_nonce "
               "paused=suspension|paused_by reason=paused_reason",
    .doc = "List the accounts with their leaders, epochs, and the age of each leader's last "
           "heartbeat."};
