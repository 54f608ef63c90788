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

/* 2026-11-29 15:43:16.5+00 to the second. */
static void print_time(const char *before, const char *text)
{
    printf("%s%.10sT%.8sZ", before, text, text + 11);
}

static void print_attempt(const struct conn_result *r, int row)
{
    const char *state = history_text(r, row, HISTORY_STATE),
               *death = history_text(r, row, HISTORY_ERA_DEATH),
               *end = history_text(r, row, HISTORY_ENDED_AT);
    bool filler = !strcmp(history_text(r, row, HISTORY_FILLER), "t");
    print_time("", history_text(r, row, HISTORY_CREATED_AT));
    printf(" nonce %s attempt %s: %s%s%s", history_text(r, row, HISTORY_NONCE),
           history_text(r, row, HISTORY_ATTEMPT), history_text(r, row, HISTORY_OUTCOME),
           state ? ", last seen " : "", state ? state : "");
    if (end)
        print_time(", ended ", end);
    printf("\n    %s\n", history_text(r, row, HISTORY_HASH));
    printf("    tip %s, runtime %s, %s %s%s\n", history_text(r, row, HISTORY_TIP),
           history_text(r, row, HISTORY_SPEC_VERSION),
           death ? "valid before block" : "valid for ever", death ? death : "",
           filler ? ", a filler in its place" : "");
}

enum { LINE_MAX_CHARS = 100 };

/* A text of a node: cut to one line of 100 characters unless --wide was given. */
static void print_text(const struct arguments *a, const char *before, const char *text)
{
    int room = LINE_MAX_CHARS - (int)strlen(before) - 2, len = (int)strlen(text);
    struct buf plain = {0};
    bool cut = !a->wide && len > room;
    while (cut && room && ((unsigned char)text[room] & 0xc0) == 0x80) /* inside of a character */
        room--;
    buf_put_plain(&plain, text, (size_t)(cut ? room : len));
    printf("%s%s%s\n", before, buf_str(&plain), cut ? ".." : "");
    buf_done(&plain);
}

/* The rows of one attempt are adjacent, one for each different error. */
static void print_history(void *arg, const struct conn_result *r)
{
    const struct arguments *a = arg;
    char before[40];
    if (a->json) {
        cli_print_json(r);
        return;
    }
    for (int i = 0; i < conn_result_rows(r); i++) {
        const char *error = history_text(r, i, HISTORY_ERROR),
                   *reason = history_text(r, i, HISTORY_REASON);
        bool first = !i || strcmp(history_text(r, i, HISTORY_HASH),
                                  history_text(r, i - 1, HISTORY_HASH)) != 0;
        if (first)
            print_attempt(r, i);
        if (first && reason)
            print_text(a, "    ", reason);
        if (!error)
            continue;
        snprintf(before, sizeof(before), "    %s x ", history_text(r, i, HISTORY_ERROR_COUNT));
        print_text(a, before, error);
    }
}

static const struct argp_option options[] = {COMMAND_OPTION_JSON, COMMAND_OPTION_WIDE, {0}};

static int run_history(int argc, char **argv)
{
    struct arguments a = {0};
    struct config config;
    int rc = command_start(&command_history, argc, argv, &a, true, &config);
    if (rc)
        return rc;
    return cli_run_found(
        &a, &config, "history.sql", print_history, "signed attempt of transaction",
        "txrelay status with this id shows whether it is known, and why it waits or how it ended");
}

const struct command command_history = {
    .name = "history",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_history,
    .what = "every attempt of one transaction, with all errors",
    .options = options,
    .complete = command_check_id,
    COMMAND_ONE_ID,
    .doc = "Show every attempt that was signed for a transaction, at every nonce it had, "
           "oldest first, with each error that nodes and the chain reported."};
