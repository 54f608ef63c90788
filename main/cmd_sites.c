/* txrelay sites: the sites of the accounts that have some, and who coordinates. */
#include "cli.h"
#include "command.h"

static const struct argp_option options[] = {
    COMMAND_OPTION_JSON, COMMAND_OPTION_WIDE, COMMAND_OPTION_ACCOUNT, {0}};

const struct command command_sites = {
    .name = "sites",
    .without = COMMAND_DATABASE_ONLY,
    .sql = "sites.sql",
    .print = cli_print_rows,
    .nothing = "no account has sites",
    .what = "sites of accounts, and who coordinates",
    .options = options,
    .columns = "account site self coordinates away since reason",
    .doc = "List the sites of each account that has some: which one coordinates it, since which "
           "block, and why, as the leader in this database sees it. Empty fields: no relay leads "
           "the account, or its leader has recorded nothing yet."};
