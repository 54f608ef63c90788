/* txrelay status: one transaction, or the latest ones. */
#include "cli.h"
#include "command.h"

struct status {
    struct arguments args;
    const char *account, *limit;
};

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    struct status *s = (struct status *)a;
    switch (key) {
    case 'a':
        s->account = arg;
        return 0;
    case 'N':
        if (!command_is_number(arg, false))
            argp_error(state, "--limit is '%s'; it must be a whole number", arg);
        s->limit = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cmd_status(int argc, char **argv)
{
    static const struct argp_option options[] = {
        COMMAND_OPTION_JSON,
        {"account", 'a', "ALIAS", 0, "only this account (lists)", 0},
        {"limit", 'N', "N", 0, "at most N rows (lists; default 20)", 0},
        {0}};
    static const struct command command = {
        .options = options,
        .option = option,
        .complete = command_check_id,
        .words_max = 1,
        .args_doc = "[ID]",
        .doc = "Show where a transaction is, by its id, or the latest ones."};
    struct status s = {0};
    struct config config;
    int rc = command_start(&command, argc, argv, &s.args, true, &config);
    if (rc)
        return rc;
    if (s.args.words)
        return cli_run_found(&s.args, &config, "status.sql", cli_print_rows, "transaction");
    struct conn_param params[] = {cli_text(s.account), cli_text(s.limit ? s.limit : "20")};
    return cli_run_sql(&config, "status_list.sql", 2, params, cli_print_rows, &s.args);
}
