/* txrelay cancel: cancel a transaction. */
#include "cli.h"
#include "command.h"

const struct command command_cancel = {
    .name = "cancel",
    .role = "txrelay_app",
    .without = COMMAND_DATABASE_ONLY,
    .sql = "cancel.sql",
    .print = cli_print_value,
    .what = "take a transaction back",
    .complete = command_check_id,
    COMMAND_ONE_ID,
    .doc = "Cancel a transaction. Prints cancelled, requested (it has a nonce; its record will "
           "show how it ended) or finished."};
