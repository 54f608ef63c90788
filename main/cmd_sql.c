/* The commands that are one statement: migrate, status, history, cancel, bump, accounts, blocked, policy. */
#include <argp.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli.h"
#include "store/migrate.h"

enum { ARGS_MAX = 16 };

struct args {
    struct config_flags flags;
    const char *pos[ARGS_MAX];
    int count, max;
    const char *account, *limit, *tip;
    bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->flags;
        return 0;
    case 'T':
        if (!cli_is_number(arg, false))
            argp_error(state, "--tip is '%s'; it must be a whole number", arg);
        a->tip = arg;
        return 0;
    case 'a':
        a->account = arg;
        return 0;
    case 'N':
        a->limit = arg;
        return 0;
    case 'j':
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (a->count >= a->max)
            argp_error(state, "too many arguments: '%s'", arg);
        a->pos[a->count++] = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&cli_common_argp, 0, NULL, 0}, {0}};

static int start(const struct argp *argp, int argc, char **argv, struct args *a, int min, int max,
                 struct config *config)
{
    a->max = max;
    argp_parse(argp, argc, argv, 0, NULL, a);
    if (a->count < min) {
        fprintf(stderr, "%s: an argument is missing; --help says which\n", argv[0]);
        return EXIT_USAGE;
    }
    return cli_load(&a->flags, true, config);
}

/* The same for the commands whose first argument is a transaction. */
static int start_id(const struct argp *argp, int argc, char **argv, struct args *a, int min,
                    struct config *config)
{
    int rc = start(argp, argc, argv, a, min, 1, config);
    if (rc == 0 && a->count && !cli_is_number(a->pos[0], false)) {
        fprintf(stderr, "txrelay: the id is '%.40s'; it must be the number that enqueue gave\n", a->pos[0]);
        config_done(config);
        return EXIT_USAGE;
    }
    return rc;
}

static void print_rows(void *arg, const struct conn_result *r)
{
    const struct args *a = arg;
    if (a->json)
        cli_print_json(r);
    else
        cli_print_table(r);
}

static int run_sql(struct config *config, const char *file, int n, const struct conn_param *params,
                   void (*rows)(void *arg, const struct conn_result *r), void *arg)
{
    struct err err = {0};
    int rc = cli_query(config->file->database.url, cli_sql(file), n, params, rows, arg, &err);
    config_done(config);
    return rc ? cli_fail(&err) : EXIT_OK;
}

/* ---- migrate ---- */

struct migrating {
    struct migrate m;
    int from, to;
    struct err err;
};

static void migrated(struct migrate *m)
{
    struct migrating *x = (struct migrating *)(void *)m;
    x->err = m->err;
    x->from = m->from;
    x->to = m->to;
}

int cmd_migrate(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = parse,
        .children = children,
        .doc = "Install or update the schema. Several at once are safe; a schema that is "
               "newer than this program is refused."};
    struct args a = {0};
    struct config config;
    int rc = start(&argp, argc, argv, &a, 0, 0, &config);
    if (rc)
        return rc;
    struct migrating x = {0};
    struct loop *l = loop_new();
    migrate_start(l, &x.m, config.file->database.url, migrated);
    loop_run(l);
    loop_free(l);
    config_done(&config);
    if (x.err.code)
        return cli_fail(&x.err);
    if (x.from == x.to)
        printf("schema version %d: nothing to do\n", x.to);
    else
        printf("schema version %d -> %d\n", x.from, x.to);
    return EXIT_OK;
}

/* ---- one transaction ---- */

static const struct argp_option list_options[] = {
    {"json", 'j', NULL, 0, "JSON lines", 0},
    {"account", 'a', "ALIAS", 0, "only this account (lists)", 0},
    {"limit", 'N', "N", 0, "at most so many (lists; default 20)", 0},
    {0}};

struct found {
    struct args *args;
    bool any;
};

static void print_found(void *arg, const struct conn_result *r)
{
    struct found *f = arg;
    f->any = conn_result_rows(r) > 0;
    if (f->any)
        print_rows(f->args, r);
}

/* What is known of one transaction, or that there is none. */
static int run_found(struct args *a, struct config *config, const char *file,
                     void (*rows)(void *arg, const struct conn_result *r), const char *none)
{
    struct found found = {a, false};
    struct conn_param id = cli_text(a->pos[0]);
    int rc = run_sql(config, file, 1, &id, rows, &found);
    if (rc == EXIT_OK && !found.any) {
        fprintf(stderr, "txrelay: there is no %s %s\n", none, a->pos[0]);
        return EXIT_FAILED;
    }
    return rc;
}

int cmd_status(int argc, char **argv)
{
    static const struct argp argp = {.options = list_options,
                                     .parser = parse,
                                     .children = children,
                                     .args_doc = "[ID]",
                                     .doc = "Where is it? One transaction by id, or the latest ones."};
    struct args a = {0};
    struct config config;
    int rc = start_id(&argp, argc, argv, &a, 0, &config);
    if (rc)
        return rc;
    if (a.count)
        return run_found(&a, &config, "status.sql", print_found, "transaction");
    struct conn_param params[] = {cli_text(a.account), cli_text(a.limit ? a.limit : "20")};
    return run_sql(&config, "status_list.sql", 2, params, print_rows, &a);
}

int cmd_cancel(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = parse,
        .children = children,
        .args_doc = "ID",
        .doc = "Take a transaction back: says cancelled, requested (it has a nonce; "
               "its record tells how it ended) or finished."};
    struct args a = {0};
    struct config config;
    int rc = start_id(&argp, argc, argv, &a, 1, &config);
    if (rc)
        return rc;
    struct conn_param id = cli_text(a.pos[0]);
    return run_sql(&config, "cancel.sql", 1, &id, cli_print_value, NULL);
}

int cmd_bump(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"tip", 'T', "PLANCK", 0, "the tip to pay (default: the next step of the account's policy)", 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = children,
        .args_doc = "ID",
        .doc = "Raise a transaction's tip: says queued (it has no nonce yet), requested (it is signed anew "
               "at its nonce) or finished."};
    struct args a = {0};
    struct config config;
    int rc = start_id(&argp, argc, argv, &a, 1, &config);
    if (rc)
        return rc;
    struct conn_param params[] = {cli_text(a.pos[0]), cli_text(a.tip)};
    return run_sql(&config, "bump.sql", 2, params, cli_print_value, NULL);
}

/* Columns of history.sql. */
enum history_column {
    HISTORY_NONCE,
    HISTORY_ATTEMPT,
    HISTORY_HASH,
    HISTORY_TIP,
    HISTORY_FILLER,
    HISTORY_OUTCOME,
    HISTORY_STATE,
    HISTORY_REASON,
    HISTORY_ERROR,
    HISTORY_ERROR_COUNT,
    HISTORY_SPEC_VERSION,
    HISTORY_ERA_DEATH,
    HISTORY_CREATED_AT,
    HISTORY_ENDED_AT
};

static const char *history_text(const struct conn_result *r, int row, int col)
{
    int len;
    return conn_result_is_null(r, row, col) ? NULL : conn_result_get(r, row, col, &len);
}

static void print_attempt(const struct conn_result *r, int row)
{
    const char *state = history_text(r, row, HISTORY_STATE), *reason = history_text(r, row, HISTORY_REASON),
               *death = history_text(r, row, HISTORY_ERA_DEATH),
               *end = history_text(r, row, HISTORY_ENDED_AT);
    bool filler = !strcmp(history_text(r, row, HISTORY_FILLER), "t");
    printf("%s nonce %s attempt %s: %s\n", history_text(r, row, HISTORY_CREATED_AT),
           history_text(r, row, HISTORY_NONCE), history_text(r, row, HISTORY_ATTEMPT),
           history_text(r, row, HISTORY_HASH));
    printf("    tip %s, runtime %s, %s %s%s\n", history_text(r, row, HISTORY_TIP),
           history_text(r, row, HISTORY_SPEC_VERSION), death ? "valid before block" : "valid for ever",
           death ? death : "", filler ? ", a filler that takes its place" : "");
    printf("    %s%s%s%s%s%s%s\n", history_text(r, row, HISTORY_OUTCOME), state ? ", last seen " : "",
           state ? state : "", end ? ", ended " : "", end ? end : "", reason ? ": " : "",
           reason ? reason : "");
}

/* Rows of one attempt come one after the other, one for each different error. */
static void print_history(void *arg, const struct conn_result *r)
{
    struct found *f = arg;
    int rows = conn_result_rows(r);
    f->any = rows > 0;
    if (f->args->json) {
        cli_print_json(r);
        return;
    }
    for (int i = 0; i < rows; i++) {
        const char *error = history_text(r, i, HISTORY_ERROR);
        if (!i || strcmp(history_text(r, i, HISTORY_HASH), history_text(r, i - 1, HISTORY_HASH)) != 0)
            print_attempt(r, i);
        if (error)
            printf("    %s x %s\n", history_text(r, i, HISTORY_ERROR_COUNT), error);
    }
}

int cmd_history(int argc, char **argv)
{
    static const struct argp_option options[] = {{"json", 'j', NULL, 0, "JSON lines", 0}, {0}};
    static const struct argp argp = {.options = options,
                                     .parser = parse,
                                     .children = children,
                                     .args_doc = "ID",
                                     .doc =
                                         "Every attempt that was signed for a transaction, at every nonce it "
                                         "had, oldest first, and what nodes and chain had against it."};
    struct args a = {0};
    struct config config;
    int rc = start_id(&argp, argc, argv, &a, 1, &config);
    if (rc)
        return rc;
    return run_found(&a, &config, "history.sql", print_history, "signed attempt of transaction");
}

/* ---- accounts ---- */

int cmd_accounts(int argc, char **argv)
{
    static const struct argp argp = {.options = list_options,
                                     .parser = parse,
                                     .children = children,
                                     .doc = "Accounts with their leaders, epochs and heartbeats."};
    struct args a = {0};
    struct config config;
    int rc = start(&argp, argc, argv, &a, 0, 0, &config);
    if (rc)
        return rc;
    return run_sql(&config, "accounts.sql", 0, NULL, print_rows, &a);
}

int cmd_blocked(int argc, char **argv)
{
    static const struct argp_option options[] = {{"json", 'j', NULL, 0, "JSON lines", 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = children,
        .doc = "Accounts that stand still: paused, or their first transaction is refused by the chain. Empty "
               "when all is well."};
    struct args a = {0};
    struct config config;
    int rc = start(&argp, argc, argv, &a, 0, 0, &config);
    if (rc)
        return rc;
    return run_sql(&config, "blocked.sql", 0, NULL, print_rows, &a);
}
