/* txrelay blocked: the accounts that are blocked, and why. */
#include "cli.h"
#include "command.h"

static const struct argp_option options[] = {COMMAND_OPTION_JSON, {0}};

static int run_blocked(int argc, char **argv)
{
    struct arguments a = {0};
    struct config config;
    int rc = command_start(&command_blocked, argc, argv, &a, true, &config);
    if (rc)
        return rc;
    return cli_run_sql(&config, "blocked.sql", 0, NULL, cli_print_rows, &a);
}

const struct command command_blocked = {.name = "blocked",
                                        .run = run_blocked,
                                        .what = "list blocked accounts, and why",
                                        .options = options,
                                        .doc = "List the accounts that are blocked, with the "
                                               "reason: paused, or the chain refuses their "
                                               "first transaction. Prints no row if none is."};
