/* txrelay retry: enqueue transactions that ended without effect once more. */
#include <string.h>

#include "base/buf.h"
#include "cli.h"
#include "command.h"

enum filter {
    FILTER_ACCOUNT,
    FILTER_OUTCOME,
    FILTER_CREATOR,
    FILTER_SINCE,
    FILTER_UNTIL,
    FILTERS,
    LIST_LIMIT = FILTERS,
    LIST_PARAMS
};
enum { OPT_DEADLINE_BLOCK = 1000, OPT_DRY_RUN, IDS_MAX = 10000 };

struct retry {
    struct arguments args;
    const char *filter[FILTERS], *limit, *deadline, *deadline_block;
    bool filtered, dry_run;
    struct buf ids; /* an array's text: {1,2} */
};

static const char *const outcome_names[] = {"dispatch_error", "expired", "cancelled",
                                            "failed",         "usurped", NULL};

static void set_filter(struct retry *r, enum filter f, const char *value)
{
    r->filter[f] = value;
    r->filtered = true;
}

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    struct retry *r = (struct retry *)a;
    static const char letters[] = "aorsu"; /* in the order of enum filter */
    const char *at = key > 0 && key < 128 ? strchr(letters, key) : NULL;
    if (at) {
        set_filter(r, (enum filter)(at - letters), arg);
        return 0;
    }
    switch (key) {
    case 'N':
        command_number(state, "--limit", arg, 1, IDS_MAX);
        r->limit = arg;
        return 0;
    case 'D':
        r->deadline = arg;
        return 0;
    case OPT_DEADLINE_BLOCK:
        command_number(state, "--deadline-block", arg, 0, INT64_MAX);
        r->deadline_block = arg;
        return 0;
    case OPT_DRY_RUN:
        r->dry_run = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void complete(struct arguments *a, struct argp_state *state)
{
    struct retry *r = (struct retry *)a;
    command_check_id(a, state);
    if (a->words && (r->filtered || r->limit || r->dry_run))
        argp_error(state, "give either ids or a filter (with --limit and --dry-run)");
    if (!a->words && !r->filtered)
        argp_error(state, "nothing says which: give ids, or a filter such as --account");
    if (r->filter[FILTER_OUTCOME])
        command_word(state, "--outcome", r->filter[FILTER_OUTCOME], outcome_names);
    if (r->filter[FILTER_SINCE])
        command_time(state, "--since", r->filter[FILTER_SINCE]);
    if (r->filter[FILTER_UNTIL])
        command_time(state, "--until", r->filter[FILTER_UNTIL]);
    if (r->deadline && strcmp(r->deadline, "infinity") != 0)
        command_time(state, "--deadline", r->deadline);
}

static const struct argp_option options[] = {
    COMMAND_OPTION_JSON,
    {"account", 'a', "ACCOUNT", 0, "all of this account: alias, 0x id or address", 0},
    {"outcome", 'o', "OUTCOME", 0, "all with this outcome (failed, expired ...)", 0},
    {"creator", 'r', "TEXT", 0, "all of this creator", 0},
    {"since", 's', "TIME", 0, "those enqueued at this time or later (2026-01-31T12:00:00Z)", 0},
    {"until", 'u', "TIME", 0, "those enqueued before this time", 0},
    {"limit", 'N', "N", 0, "with a filter: at most N, the oldest ones (default 1000)", 0},
    {"dry-run", OPT_DRY_RUN, NULL, 0, "with a filter: list what would be retried", 0},
    {"deadline", 'D', "TIME", 0, "in place of its deadline; infinity: none", 0},
    {"deadline-block", OPT_DEADLINE_BLOCK, "N", 0, "in place of its last block; 0: none", 0},
    {0}};

static void add_id(struct retry *r, const char *id)
{
    buf_puts(&r->ids, r->ids.len ? "," : "{");
    buf_puts(&r->ids, id);
}

static void take_list(void *arg, const struct conn_result *rows)
{
    struct retry *r = arg;
    if (r->dry_run)
        cli_print_rows(&r->args, rows);
    for (int i = 0; i < conn_result_rows(rows); i++)
        add_id(r, conn_result_get(rows, i, 0, NULL));
}

static void print_retried(void *arg, const struct conn_result *rows)
{
    const struct arguments *a = arg;
    if (a->json)
        cli_print_json(rows);
    for (int i = 0; !a->json && i < conn_result_rows(rows); i++)
        printf("%s -> %s\n", conn_result_get(rows, i, 0, NULL), conn_result_get(rows, i, 1, NULL));
}

/* 0, or the reason was printed. */
static int list(struct retry *r, const struct config *config)
{
    struct err err = {0};
    struct conn_param params[LIST_PARAMS];
    for (int i = 0; i < FILTERS; i++)
        params[i] = cli_text(r->filter[i]);
    params[LIST_LIMIT] = cli_text(r->limit ? r->limit : "1000");
    int rc = cli_query(config->file->database.url, cli_sql("retry_list.sql"), LIST_PARAMS, params,
                       take_list, r, &err);
    if (rc)
        return cli_fail(&err);
    if (!r->ids.len && !r->dry_run)
        fprintf(stderr, "txrelay: %s\n", r->args.nothing);
    return EXIT_OK;
}

static int retry(struct retry *r, const struct config *config)
{
    struct err err = {0};
    buf_put_u8(&r->ids, '}');
    struct conn_param params[] = {cli_text(buf_str(&r->ids)), cli_text(r->deadline),
                                  cli_text(r->deadline_block)};
    int rc = cli_query(config->file->database.url, cli_sql("retry.sql"), 3, params, print_retried,
                       &r->args, &err);
    const struct cli_value deadline = {"--deadline", r->deadline,
                                       "time like 2026-01-31T12:00:00Z, or infinity"};
    return rc ? cli_fail_value(&err, &deadline, 1) : EXIT_OK;
}

static int run_retry(int argc, char **argv)
{
    struct retry r = {.args.nothing = "nothing to retry matches: what took effect, may have, or "
                                      "was retried is left alone"};
    struct config config;
    int rc = command_start(&command_retry, argc, argv, &r.args, true, &config);
    if (rc)
        return rc;
    for (int i = 0; i < r.args.words; i++)
        add_id(&r, r.args.word[i]);
    if (r.filtered)
        rc = list(&r, &config);
    if (rc == EXIT_OK && r.ids.len && !r.dry_run)
        rc = retry(&r, &config);
    buf_done(&r.ids);
    config_done(&config);
    return rc;
}

const struct command command_retry = {
    .name = "retry",
    .role = "txrelay_app",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_retry,
    .what = "enqueue again what ended without effect",
    .options = options,
    .option = option,
    .complete = complete,
    .columns = "id account outcome creator reason=error",
    .words_max = COMMAND_WORDS_MAX,
    .args_doc = "ID...\n--account=ACCOUNT [FILTER...]",
    .doc = "Enqueue the calls of transactions that ended without effect (failed, expired, "
           "cancelled, usurped, dispatch_error) once more, with the options that they had. Prints "
           "ID -> NEW for each; an id that was retried before gives the same new one. All or none "
           "are enqueued. The ended records stay."};
