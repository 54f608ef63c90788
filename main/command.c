#include "command.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "cli.h"

static const struct argp_option common_options[] = {
    {"config", 'c', "FILE", 0, "configuration file (environment: TXRELAY_CONFIG)", 90},
    {"database", 'd', "URL", 0, "libpq connection string (TXRELAY_DATABASE)", 90},
    {"endpoint", 'e', "URL[,URL]", 0, "chain nodes, ws:// or wss:// (TXRELAY_ENDPOINTS)", 90},
    {"name", 'n', "NAME", 0, "name of this relay (TXRELAY_NAME)", 90},
    {"control", 'l', "ADDRESS", 0,
     "control endpoint, unix:/path or tcp:host:port (TXRELAY_CONTROL)", 90},
    {"log-level", 'v', "LEVEL", 0, "error, warn, info or debug (TXRELAY_LOG_LEVEL)", 90},
    {0},
};

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
    struct config_flags *f = state->input;
    switch (key) {
    case 'c':
        f->path = arg;
        return 0;
    case 'd':
        f->database = arg;
        return 0;
    case 'e':
        f->endpoint = arg;
        return 0;
    case 'n':
        f->name = arg;
        return 0;
    case 'l':
        f->control = arg;
        return 0;
    case 'v':
        f->log_level = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp common_argp = {.options = common_options, .parser = parse_common};
static const struct argp_child children[] = {{&common_argp, 0, NULL, 0}, {0}};

/* ---- one command ---- */

struct parsing {
    const struct command *command;
    struct arguments *arguments;
};

static void take_word(const struct parsing *p, char *word, struct argp_state *state)
{
    struct arguments *a = p->arguments;
    if (a->words >= p->command->words_max)
        argp_error(state, "too many arguments: '%s'", word);
    a->word[a->words++] = word;
}

static void end_of_line(const struct parsing *p, struct argp_state *state)
{
    const struct command *c = p->command;
    if (p->arguments->words < c->words_min)
        argp_error(state, "%s", c->missing ? c->missing : "an argument is missing");
    if (c->complete)
        c->complete(p->arguments, state);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    const struct parsing *p = state->input;
    struct arguments *a = p->arguments;
    if (p->command->option && key > 0 && key < ARGP_KEY_END &&
        p->command->option(a, key, arg, state) == 0)
        return 0;
    switch (key) {
    case ARGP_KEY_INIT:
        if (!p->command->local)
            state->child_inputs[0] = &a->flags;
        return 0;
    case 'j':
        a->json = true;
        return 0;
    case 'N':
        a->flags.endpoint = arg;
        return 0;
    case 'm':
        a->metadata = arg;
        return 0;
    case ARGP_KEY_ARG:
        take_word(p, arg, state);
        return 0;
    case ARGP_KEY_END:
        end_of_line(p, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

void command_each_option(const struct command *c,
                         void (*each)(void *arg, const struct argp_option *option), void *arg)
{
    for (const struct argp_option *o = c->options; o && o->name; o++)
        each(arg, o);
    for (const struct argp_option *o = common_options; !c->local && o->name; o++)
        each(arg, o);
}

/* argp knows -? only. */
static void take_h(int argc, char **argv)
{
    static char help[] = "--help";
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "-h"))
            argv[i] = help;
}

void command_parse(const struct command *c, int argc, char **argv, struct arguments *a)
{
    argp_program_version = "txrelay " TXRELAY_VERSION;
    take_h(argc, argv);
    PRE(c->words_max <= COMMAND_WORDS_MAX && c->words_min <= c->words_max);
    struct parsing p = {.command = c, .arguments = a};
    struct argp argp = {.options = c->options,
                        .parser = parse,
                        .args_doc = c->args_doc,
                        .doc = c->doc,
                        .children = c->local ? NULL : children};
    argp_err_exit_status = EXIT_USAGE;
    argp_parse(&argp, argc, argv, 0, NULL, &p);
}

int command_start(const struct command *c, int argc, char **argv, struct arguments *a,
                  bool need_database, struct config *ret_config)
{
    command_parse(c, argc, argv, a);
    return cli_load(&a->flags, need_database, ret_config);
}

/* ---- words ---- */

void command_check_id(struct arguments *a, struct argp_state *state)
{
    if (a->words && !command_is_number(a->word[0], false))
        argp_error(state, "the id is '%.40s'; it must be the number that enqueue printed",
                   a->word[0]);
}

bool command_is_number(const char *text, bool negative)
{
    const char *digits = negative && *text == '-' ? text + 1 : text;
    return *digits && strspn(digits, "0123456789") == strlen(digits);
}
