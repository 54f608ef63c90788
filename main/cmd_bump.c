/* txrelay bump: raise a transaction's tip. */
#include "cli.h"
#include "command.h"

enum { OPT_TIP = 1000 };

struct bump {
    struct arguments args;
    const char *tip;
};

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    if (key != OPT_TIP)
        return ARGP_ERR_UNKNOWN;
    command_amount(state, "--tip", arg);
    ((struct bump *)a)->tip = arg;
    return 0;
}

static const struct argp_option options[] = {
    {"tip", OPT_TIP, "PLANCK", 0, "the tip to pay (default: the next step of the account's policy)",
     0},
    {0}};

static int run_bump(int argc, char **argv)
{
    struct bump b = {0};
    struct config config;
    int rc = command_start(&command_bump, argc, argv, &b.args, true, &config);
    if (rc)
        return rc;
    struct conn_param params[] = {cli_text(b.args.word[0]), cli_text(b.tip)};
    return cli_run_sql(&config, "bump.sql", 2, params, cli_print_value, NULL);
}

const struct command command_bump = {
    .name = "bump",
    .role = "txrelay_app",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_bump,
    .what = "raise a transaction's tip",
    .options = options,
    .option = option,
    .complete = command_check_id,
    COMMAND_ONE_ID,
    .doc = "Raise a transaction's tip. Prints queued (it has no nonce yet), requested (it is "
           "re-signed at its nonce) or finished."};
