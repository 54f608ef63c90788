/* txrelay cancel: cancel a transaction. */
#include "cli.h"
#include "command.h"

static int run_cancel(int argc, char **argv)
{
    struct arguments a = {0};
    struct config config;
    int rc = command_start(&command_cancel, argc, argv, &a, true, &config);
    if (rc)
        return rc;
    struct conn_param id = cli_text(a.word[0]);
    return cli_run_sql(&config, "cancel.sql", 1, &id, cli_print_value, NULL);
}

const struct command command_cancel = {
    .name = "cancel",
    .role = "txrelay_app",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_cancel,
    .what = "take a transaction back",
    .complete = command_check_id,
    COMMAND_ONE_ID,
    .doc = "Cancel a transaction. Prints cancelled, requested (it has a nonce; its record will "
           "show how it ended) or finished."};
