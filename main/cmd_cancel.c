/* txrelay cancel: cancel a transaction. */
#include "cli.h"
#include "command.h"

int cmd_cancel(int argc, char **argv)
{
    static const struct command command = {
        .complete = command_check_id,
        COMMAND_ONE_ID,
        .doc = "Cancel a transaction. Prints cancelled, requested (it has a nonce; its record will "
               "show how it ended) or finished."};
    struct arguments a = {0};
    struct config config;
    int rc = command_start(&command, argc, argv, &a, true, &config);
    if (rc)
        return rc;
    struct conn_param id = cli_text(a.word[0]);
    return cli_run_sql(&config, "cancel.sql", 1, &id, cli_print_value, NULL);
}
