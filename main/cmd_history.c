/* txrelay history: every attempt of one transaction. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "command.h"

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
    const char *state = history_text(r, row, HISTORY_STATE),
               *reason = history_text(r, row, HISTORY_REASON),
               *death = history_text(r, row, HISTORY_ERA_DEATH),
               *end = history_text(r, row, HISTORY_ENDED_AT);
    bool filler = !strcmp(history_text(r, row, HISTORY_FILLER), "t");
    printf("%s nonce %s attempt %s: %s\n", history_text(r, row, HISTORY_CREATED_AT),
           history_text(r, row, HISTORY_NONCE), history_text(r, row, HISTORY_ATTEMPT),
           history_text(r, row, HISTORY_HASH));
    printf("    tip %s, runtime %s, %s %s%s\n", history_text(r, row, HISTORY_TIP),
           history_text(r, row, HISTORY_SPEC_VERSION),
           death ? "valid before block" : "valid for ever", death ? death : "",
           filler ? ", a filler in its place" : "");
    printf("    %s%s%s%s%s%s%s\n", history_text(r, row, HISTORY_OUTCOME),
           state ? ", last seen " : "", state ? state : "", end ? ", ended " : "", end ? end : "",
           reason ? ": " : "", reason ? reason : "");
}

/* The rows of one attempt are adjacent, one for each different error. */
static void print_history(void *arg, const struct conn_result *r)
{
    const struct arguments *a = arg;
    if (a->json) {
        cli_print_json(r);
        return;
    }
    for (int i = 0; i < conn_result_rows(r); i++) {
        const char *error = history_text(r, i, HISTORY_ERROR);
        if (!i ||
            strcmp(history_text(r, i, HISTORY_HASH), history_text(r, i - 1, HISTORY_HASH)) != 0)
            print_attempt(r, i);
        if (error)
            printf("    %s x %s\n", history_text(r, i, HISTORY_ERROR_COUNT), error);
    }
}

static const struct argp_option options[] = {COMMAND_OPTION_JSON, {0}};

static int run_history(int argc, char **argv)
{
    struct arguments a = {0};
    struct config config;
    int rc = command_start(&command_history, argc, argv, &a, true, &config);
    if (rc)
        return rc;
    return cli_run_found(&a, &config, "history.sql", print_history,
                         "signed attempt of transaction");
}

const struct command command_history = {
    .name = "history",
    .run = run_history,
    .what = "every attempt of one transaction, with all errors",
    .options = options,
    .complete = command_check_id,
    COMMAND_ONE_ID,
    .doc = "Show every attempt that was signed for a transaction, at every nonce it had, "
           "oldest first, with each error that nodes and the chain reported."};
