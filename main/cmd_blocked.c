/* txrelay blocked: the accounts and relays that are blocked, and why. */
#include "cli.h"
#include "command.h"

static const struct argp_option options[] = {
    COMMAND_OPTION_JSON, COMMAND_OPTION_WIDE, COMMAND_OPTION_ACCOUNT, {0}};

const struct command command_blocked = {
    .name = "blocked",
    .without = COMMAND_DATABASE_ONLY,
    .sql = "blocked.sql",
    .print = cli_print_rows,
    .what = "list blocked accounts and relays, and why",
    .options = options,
    .columns = "account relay code age_s nonce id reason",
    .doc = "List the accounts that are blocked, with the reason: paused, or the chain refuses "
           "their first transaction, for example; then the relays that do not do their work. "
           "Prints nothing if there are none."};
