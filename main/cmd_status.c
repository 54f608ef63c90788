/* txrelay status: one transaction, or the latest ones. */
#include <string.h>

#include "base/hex.h"
#include "cli.h"
#include "command.h"

struct status {
    struct arguments args;
    const char *account, *limit, *hash;
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
    case 'H':
        s->hash = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void complete(struct arguments *a, struct argp_state *state)
{
    struct status *s = (struct status *)a;
    uint8_t hash[32];
    command_check_id(a, state);
    if (!s->hash)
        return;
    if (a->words)
        argp_error(state, "give either an id or --hash");
    if (strncmp(s->hash, "0x", 2) != 0 ||
        !hex_decode_fixed(s->hash, strlen(s->hash), hash, sizeof hash))
        argp_error(state, "--hash is '%.80s'; it must be 0x and 64 hexadecimal digits", s->hash);
    a->word[0] = s->hash;
}

static const struct argp_option options[] = {
    COMMAND_OPTION_JSON,
    {"account", 'a', "ALIAS", 0, "only this account (lists)", 0},
    {"hash", 'H', "0xHASH", 0, "the transaction that this extrinsic was signed for", 0},
    {"limit", 'N', "N", 0, "at most N rows (lists; default 20)", 0},
    {0}};

static int run_status(int argc, char **argv)
{
    struct status s = {0};
    struct config config;
    int rc = command_start(&command_status, argc, argv, &s.args, true, &config);
    if (rc)
        return rc;
    if (s.hash)
        return cli_run_found(&s.args, &config, "status_hash.sql", cli_print_rows,
                             "attempt in this database (they are kept for "
                             "retention.keep_days) with the hash");
    if (s.args.words)
        return cli_run_found(&s.args, &config, "status.sql", cli_print_rows, "transaction");
    struct conn_param params[] = {cli_text(s.account), cli_text(s.limit ? s.limit : "20")};
    return cli_run_sql(&config, "status_list.sql", 2, params, cli_print_rows, &s.args);
}

const struct command command_status = {
    .name = "status",
    .run = run_status,
    .what = "show one transaction by id or hash, or the latest ones",
    .options = options,
    .option = option,
    .complete = complete,
    .words_max = 1,
    .args_doc = "[ID]",
    .doc = "Show where a transaction is, by its id or by the hash of any of its extrinsics, "
           "or the latest ones."};
