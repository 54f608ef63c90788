/* txrelay pause: stop admission for an account until it is resumed. */
#include "cli.h"
#include "command.h"

const struct command command_pause = {
    .name = "pause",
    .role = "txrelay_relay",
    .without = COMMAND_DATABASE_ONLY,
    .sql = "pause.sql",
    .print = cli_print_value,
    .what = "stop an account until it is resumed",
    .words_min = 2,
    .words_max = 2,
    .missing = "the account or the reason is missing: txrelay blocked shows the reason",
    .args_doc = "ACCOUNT REASON",
    .doc = "Give no nonce to the account's transactions until txrelay resume. Those that have a "
           "nonce go on to their end. txrelay blocked shows the account with the reason."};
