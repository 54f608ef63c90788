/* txrelay drain: a relay stops admitting, waits for its submissions to settle, releases every
 * account and ends; the other relays lead at once. The same as SIGTERM, over its control
 * endpoint. */
#include <jansson.h>
#include <stdio.h>

#include "cli.h"
#include "command.h"

struct drain {
    struct arguments args;
    const char *to;
};

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    (void)state;
    if (key != 't')
        return ARGP_ERR_UNKNOWN;
    ((struct drain *)a)->to = arg;
    return 0;
}

static void print_answer(void *arg, const char *line)
{
    bool *refused = arg;
    json_t *reply = json_loads(line, 0, NULL);
    const char *answer = json_string_value(json_object_get(reply, "answer"));
    *refused = !answer;
    if (answer)
        printf("%s\n", answer);
    else
        fprintf(stderr, "txrelay: %s\n", line);
    json_decref(reply);
}

static const struct argp_option options[] = {
    {"to", 't', "ADDRESS", 0,
     "control endpoint of the relay (default: the one in the configuration)", 0},
    {0}};

static int run_drain(int argc, char **argv)
{
    struct drain a = {0};
    struct config config;
    struct err err = {0};
    bool refused = true;
    int rc = command_start(&command_drain, argc, argv, &a.args, false, &config);
    if (rc)
        return rc;
    const char *to = a.to ? a.to : config.file->control;
    if (!to)
        err_set(&err, ERR_CONFIG,
                "no control endpoint is given: use --to, TXRELAY_CONTROL or control in the config "
                "file");
    else
        cli_control(to, "{\"cmd\":\"drain\"}", print_answer, &refused, &err);
    rc = err.code ? cli_fail(&err) : refused ? EXIT_FAILED : EXIT_OK;
    config_done(&config);
    return rc;
}

const struct command command_drain = {.name = "drain",
                                      .without = COMMAND_WITHOUT_DATABASE | COMMAND_WITHOUT_CHAIN |
                                                 COMMAND_WITHOUT_NAME,
                                      .run = run_drain,
                                      .what = "make a relay hand over its accounts and end",
                                      .options = options,
                                      .option = option,
                                      .doc = "Make a relay hand its accounts over, and end."};
