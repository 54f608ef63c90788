/* txrelay pause: stop admission for an account until it is resumed. */
#include "cli.h"
#include "command.h"

static int run_pause(int argc, char **argv)
{
    struct arguments a = {0};
    struct config config;
    int rc = command_start(&command_pause, argc, argv, &a, true, &config);
    if (rc)
        return rc;
    struct conn_param params[] = {cli_text(a.word[0]), cli_text(a.word[1])};
    return cli_run_sql(&config, "pause.sql", 2, params, cli_print_value, NULL);
}

const struct command command_pause = {
    .name = "pause",
    .role = "txrelay_relay",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_pause,
    .what = "stop an account until it is resumed",
    .words_min = 2,
    .words_max = 2,
    .missing = "the account or the reason is missing: txrelay blocked shows the reason",
    .args_doc = "ACCOUNT REASON",
    .doc = "Give no nonce to the account's transactions until txrelay resume. Those that have a "
           "nonce go on to their end. txrelay blocked shows the account with the reason."};
