/* txrelay drain: a relay admits no more, lets what it has settle, gives every account up and ends; the others
 * lead at once. The same as SIGTERM, from wherever its control endpoint is reached. */
#include <argp.h>
#include <jansson.h>
#include <stdio.h>

#include "cli.h"

struct args {
    struct config_flags flags;
    const char *to;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->flags;
        return 0;
    case 't':
        a->to = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
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

int cmd_drain(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"to", 't', "ADDRESS", 0, "control endpoint of the relay (default: the one in the configuration)", 0},
        {0}};
    static const struct argp_child children[] = {{&cli_common_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {.options = options,
                                     .parser = parse,
                                     .children = children,
                                     .doc = "Let a relay give its accounts up in good order, and end."};
    struct args a = {0};
    struct config config;
    struct err err = {0};
    bool refused = true;
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    int rc = cli_load(&a.flags, false, &config);
    if (rc)
        return rc;
    const char *to = a.to ? a.to : config.file->control;
    if (!to)
        err_set(&err, ERR_CONFIG,
                "no control endpoint is given: use --to, TXRELAY_CONTROL or control in the config file");
    else
        cli_control(to, "{\"cmd\":\"drain\"}", print_answer, &refused, &err);
    rc = err.code ? cli_fail(&err) : refused ? EXIT_FAILED : EXIT_OK;
    config_done(&config);
    return rc;
}
