/* txrelay resume: end the pause or the suspension of an account. */
#include "cli.h"
#include "command.h"

const struct command command_resume = {
    .name = "resume",
    .role = "txrelay_relay",
    .without = COMMAND_DATABASE_ONLY,
    .sql = "resume.sql",
    .print = cli_print_value,
    .what = "end the pause or the suspension of an account",
    .words_min = 1,
    .words_max = 1,
    .missing = "the account is missing: txrelay blocked lists those that are paused",
    .args_doc = "ACCOUNT",
    .doc = "End an operator's pause, and the leader's suspension. Of an account that was reaped "
           "this is the order to begin again at the chain's nonce; of one whose chain changed its "
           "transaction version, to sign the calls under the new one."};
