/* txrelay top: what waits, and what is blocked, again and again. */
#include <stdio.h>
#include <unistd.h>

#include "cli.h"
#include "command.h"

struct top {
    struct arguments args;
    long long interval_s, count;
};

enum { OPT_INTERVAL = 1000, OPT_TIMES };

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    struct top *t = (struct top *)a;
    switch (key) {
    case OPT_INTERVAL:
        t->interval_s = command_number(state, "--interval", arg, 1, 86400);
        return 0;
    case OPT_TIMES:
        t->count = command_number(state, "--times", arg, 1, INT64_MAX);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    COMMAND_OPTION_JSON,
    COMMAND_OPTION_WIDE,
    {"interval", OPT_INTERVAL, "SECONDS", 0, "between two looks (default 2)", 0},
    {"times", OPT_TIMES, "N", 0,
     "end after N looks (default: on a terminal never, elsewhere after one)", 0},
    {0}};

static void print_top(void *arg, const struct conn_result *r)
{
    const struct arguments *a = arg;
    if (isatty(STDOUT_FILENO) && !a->json)
        fputs("\033[H\033[2J", stdout); /* clear the screen */
    cli_print_rows(arg, r);
    fflush(stdout);
}

static void on_time(void *arg)
{
    struct loop_timer **timer = arg;
    *timer = loop_timer_close(*timer);
}

static void pause_s(long long seconds)
{
    struct loop *l = loop_new();
    struct loop_timer *timer = NULL;
    timer = loop_timer_new(l, on_time, &timer);
    loop_timer_at(timer, loop_now_ms(l) + (uint64_t)seconds * 1000);
    loop_run(l);
    loop_free(l);
}

static int run_top(int argc, char **argv)
{
    struct top t = {.interval_s = 2,
                    .args.nothing = "no account is registered: run txrelay register"};
    struct config config;
    struct err err = {0};
    int rc = command_start(&command_top, argc, argv, &t.args, true, &config);
    if (rc)
        return rc;
    bool endless = !t.count && isatty(STDOUT_FILENO);
    for (long long i = 0; rc == 0 && !ferror(stdout) && (endless || i < t.count || i == 0); i++) {
        if (i)
            pause_s(t.interval_s);
        rc = cli_query(config.file->database.url, cli_sql("top.sql"), 0, NULL, print_top, &t.args,
                       &err);
    }
    config_done(&config);
    return rc ? cli_fail(&err) : EXIT_OK;
}

const struct command command_top = {
    .name = "top",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_top,
    .what = "watch what waits and what is blocked",
    .options = options,
    .option = option,
    .columns =
        "account queued pending oldest=oldest_age_s leader heartbeat=heartbeat_age_s blocked "
        "reason",
    .doc = "Show for each account how many transactions wait, how many have a nonce, for how long "
           "the oldest has been there, who leads the account, and what blocks it. On a terminal "
           "the screen is drawn again until Ctrl-C."};
