/* txrelay health, metrics and drain: one question to a relay's control endpoint. The first two are
 * for probes, and for those who have no metrics endpoint. drain makes the relay stop admitting,
 * wait for its submissions to settle, release every account and end, as SIGTERM does; the other
 * relays lead at once. */
#include <jansson.h>
#include <stdio.h>

#include "cli.h"
#include "command.h"

struct asking {
    struct arguments args;
    const char *to;
    bool ready, answered;
};

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    if (key != 't')
        return ARGP_ERR_UNKNOWN;
    command_address(state, "--to", arg);
    ((struct asking *)a)->to = arg;
    return 0;
}

static void on_answer(void *arg, const char *line)
{
    struct asking *a = arg;
    json_t *reply = json_loads(line, 0, NULL);
    const char *text = json_string_value(json_object_get(reply, "text"));
    const char *word = json_string_value(json_object_get(reply, "answer"));
    a->answered = (text || word) && !json_object_get(reply, "error");
    a->ready = json_is_true(json_object_get(reply, "ready"));
    if (a->answered && word)
        puts(word);
    else if (a->answered)
        fputs(text, stdout);
    else
        fprintf(stderr, "txrelay: %s\n", line);
    json_decref(reply);
}

static const struct argp_option options[] = {
    {"to", 't', "ADDRESS", 0,
     "control endpoint of the relay (default: the one in the configuration)", 0},
    {0}};

/* Prints the text of the answer. An exit code, after the reason was printed. */
static int ask(const struct command *c, int argc, char **argv, const char *request,
               struct asking *a)
{
    struct config config;
    struct err err = {0};
    int rc = command_start(c, argc, argv, &a->args, false, &config);
    if (rc)
        return rc;
    const char *to = a->to ? a->to : config.file->control;
    if (!to) {
        fputs("txrelay: no control endpoint is given: use --to, TXRELAY_CONTROL or control in the "
              "config file\n",
              stderr);
        rc = EXIT_USAGE;
    } else if (cli_control(to, request, on_answer, a, &err)) {
        rc = cli_fail(&err);
    } else if (!a->answered) {
        rc = EXIT_FAILED;
    }
    config_done(&config);
    return rc;
}

static int run_health(int argc, char **argv)
{
    struct asking a = {0};
    int rc = ask(&command_health, argc, argv, "{\"cmd\":\"health\"}", &a);
    if (rc)
        return rc;
    if (a.ready)
        puts("ready");
    return a.ready ? EXIT_OK : EXIT_FAILED;
}

static int run_metrics(int argc, char **argv)
{
    struct asking a = {0};
    return ask(&command_metrics, argc, argv, "{\"cmd\":\"metrics\"}", &a);
}

static int run_drain(int argc, char **argv)
{
    struct asking a = {0};
    return ask(&command_drain, argc, argv, "{\"cmd\":\"drain\"}", &a);
}

const struct command command_health = {
    .name = "health",
    .without = COMMAND_WITHOUT_DATABASE | COMMAND_WITHOUT_CHAIN | COMMAND_WITHOUT_NAME,
    .run = run_health,
    .what = "can a relay work? exit status 0 or 1",
    .options = options,
    .option = option,
    .doc = "Ask a relay whether it can work: its accounts are registered, and the database and the "
           "chain are there. Prints \"ready\", or a line for each reason why not. Exit status: 0 "
           "ready; 1 not ready, or no answer. Its metrics endpoint answers the same at /readyz."};

const struct command command_metrics = {
    .name = "metrics",
    .without = COMMAND_WITHOUT_DATABASE | COMMAND_WITHOUT_CHAIN | COMMAND_WITHOUT_NAME,
    .run = run_metrics,
    .what = "print a relay's metrics in the text format of Prometheus",
    .options = options,
    .option = option,
    .doc = "Print the metrics of a relay in the text format of Prometheus. Its metrics endpoint "
           "answers the same at /metrics (metrics in the configuration)."};

const struct command command_drain = {.name = "drain",
                                      .without = COMMAND_WITHOUT_DATABASE | COMMAND_WITHOUT_CHAIN |
                                                 COMMAND_WITHOUT_NAME,
                                      .run = run_drain,
                                      .what = "make a relay hand over its accounts and end",
                                      .options = options,
                                      .option = option,
                                      .doc = "Make a relay hand its accounts over, and end."};
