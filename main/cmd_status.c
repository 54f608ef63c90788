/* txrelay status: one transaction, the latest ones, or how many there are. */
#include <string.h>

#include "base/hex.h"
#include "cli.h"
#include "command.h"

/* What a list is restricted by: the parameters of status_list.sql, in their order. */
enum filter {
    FILTER_ACCOUNT,
    FILTER_STATE,
    FILTER_OUTCOME,
    FILTER_KEY,
    FILTER_CREATOR,
    FILTER_SINCE,
    FILTER_UNTIL,
    FILTERS,
    LIST_LIMIT = FILTERS,
    LIST_PARAMS
};

struct status {
    struct arguments args;
    const char *filter[FILTERS], *limit, *hash;
    bool count;
};

static const char *const filter_names[FILTERS] = {"--account", "--state", "--outcome", "--key",
                                                  "--creator", "--since", "--until"};
static const char *const state_names[] = {
    "outbox",  "pending",   "finished",         "queued",    "signed",  "future",
    "ready",   "broadcast", "in_block",         "retracted", "dropped", "invalid",
    "usurped", "finalized", "finality_timeout", NULL};

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    static const char letters[] = "aSokrsu"; /* in the order of enum filter */
    struct status *s = (struct status *)a;
    const char *at = key > 0 && key < 128 ? strchr(letters, key) : NULL;
    if (at) {
        s->filter[at - letters] = arg;
        return 0;
    }
    switch (key) {
    case 'N':
        command_number(state, "--limit", arg, 1, 1000000);
        s->limit = arg;
        return 0;
    case 'H':
        s->hash = arg;
        return 0;
    case 'C':
        s->count = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* One transaction is asked for: nothing restricts it. */
static void check_one(const struct status *s, struct argp_state *state)
{
    const char *one = s->hash ? "--hash" : "an id";
    if (s->hash && s->args.words)
        argp_error(state, "give either an id or --hash");
    for (int i = 0; i < FILTERS; i++)
        if (s->filter[i])
            argp_error(state, "%s '%.40s' restricts a list: leave it out beside %s",
                       filter_names[i], s->filter[i], one);
    if (s->limit || s->count)
        argp_error(state, "%s is for lists: leave it out beside %s",
                   s->limit ? "--limit" : "--count", one);
}

static void complete(struct arguments *a, struct argp_state *state)
{
    struct status *s = (struct status *)a;
    uint8_t hash[32];
    command_check_id(a, state);
    if (a->words || s->hash)
        check_one(s, state);
    if (s->count && s->limit)
        argp_error(state, "--limit is for lists: leave it out beside --count");
    if (s->filter[FILTER_STATE])
        command_word(state, "--state", s->filter[FILTER_STATE], state_names);
    if (s->filter[FILTER_OUTCOME])
        command_word(state, "--outcome", s->filter[FILTER_OUTCOME], command_outcomes);
    for (int i = FILTER_SINCE; i <= FILTER_UNTIL; i++)
        if (s->filter[i])
            command_time(state, filter_names[i], s->filter[i]);
    if (!s->hash)
        return;
    if (strncmp(s->hash, "0x", 2) != 0 ||
        !hex_decode_fixed(s->hash, strlen(s->hash), hash, sizeof hash))
        argp_error(state, "--hash is '%.80s'; it must be 0x and 64 hexadecimal digits", s->hash);
    a->word[0] = s->hash;
}

static const struct argp_option options[] = {
    COMMAND_OPTION_JSON,
    COMMAND_OPTION_WIDE,
    COMMAND_OPTION_ACCOUNT,
    {"state", 'S', "STATE", 0,
     "only in this state (queued, ready, in_block ...), or outbox, pending or finished", 0},
    {"outcome", 'o', "OUTCOME", 0, "only with this outcome (ok, failed, expired ...)", 0},
    {"key", 'k', "TEXT", 0, "only with this idempotency key", 0},
    {"creator", 'r', "TEXT", 0, "only of this creator", 0},
    {"since", 's', "TIME", 0, "only those enqueued at this time or later (2026-01-31T12:00:00Z)",
     0},
    {"until", 'u', "TIME", 0, "only those enqueued before this time", 0},
    {"hash", 'H', "0xHASH", 0, "the transaction that this extrinsic was signed for", 0},
    {"limit", 'N', "N", 0, "at most N rows (lists; default 20)", 0},
    {"count", 'C', NULL, 0,
     "how many there are, by account and state, and the age of the oldest; beyond 10,000 of an "
     "account and stage the count ends, unless another filter than --account is given",
     0},
    {0}};

static int run_list(struct status *s, struct config *config)
{
    struct conn_param params[LIST_PARAMS];
    for (int i = 0; i < FILTERS; i++)
        params[i] = cli_text(s->filter[i]);
    params[LIST_LIMIT] = cli_text(s->limit ? s->limit : "20");
    s->args.nothing = "no transaction matches";
    if (!s->count)
        return cli_run_sql(config, "status_list.sql", LIST_PARAMS, params, cli_print_rows,
                           &s->args);
    s->args.wide = true;
    for (int i = FILTER_ACCOUNT + 1; i < FILTERS; i++)
        if (s->filter[i])
            return cli_run_sql(config, "status_count.sql", FILTERS, params, cli_print_rows,
                               &s->args);
    return cli_run_sql(config, "status_counts.sql", 1, params, cli_print_rows, &s->args);
}

static int run_status(int argc, char **argv)
{
    struct status s = {0};
    struct config config;
    int rc = command_start(&command_status, argc, argv, &s.args, true, &config);
    if (rc)
        return rc;
    if (s.hash)
        return cli_run_found(&s.args, &config, "status_hash.sql", cli_print_record,
                             "attempt in this database (they are kept for "
                             "retention.keep_days) with the hash",
                             NULL);
    if (s.args.words)
        return cli_run_found(&s.args, &config, "status.sql", cli_print_record, "transaction",
                             "records are kept for the retention time, and a transaction that was "
                             "not committed does not exist");
    return run_list(&s, &config);
}

const struct command command_status = {
    .name = "status",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_status,
    .what = "show one transaction by id or hash, the latest ones, or how many",
    .options = options,
    .option = option,
    .complete = complete,
    .columns = "id account state=outcome|state nonce age_s tries=attempts fee reason=waits|error",
    .words_max = 1,
    .args_doc = "[ID]",
    .doc = "Show where a transaction is, by its id or by the hash of any of its extrinsics, or the "
           "latest ones. fee is what the chain took for it, in the chain's smallest unit; reason "
           "is why it is not done yet, or why it ended."};
