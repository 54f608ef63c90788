#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/near.h"
#include "base/u128.h"
#include "cli.h"
#include "listen/listen.h"
#include "loop/peer.h"

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

/* An empty value is never meant: it is what a shell leaves of a variable that is not set. */
static void refuse_empty(const struct argp_option *options, int key, const char *arg,
                         struct argp_state *state)
{
    if (!arg || *arg)
        return;
    for (const struct argp_option *o = options; o && o->name; o++)
        if (o->key == key)
            argp_error(state, "--%s is empty: give a value, or leave the option out", o->name);
}

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
    struct config_flags *f = state->input;
    enum log_level level;
    refuse_empty(common_options, key, arg, state);
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
        command_address(state, "--control", arg);
        f->control = arg;
        return 0;
    case 'v':
        if (!log_parse_level(arg, &level))
            argp_error(state, "--log-level is '%.40s'; it must be one of: error, warn, info, debug",
                       arg);
        f->log_level = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

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
    if (!*word)
        argp_error(state, "argument %d is empty: give a value", a->words + 1);
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
    refuse_empty(p->command->options, key, arg, state);
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
    case 'w':
        a->wide = true;
        return 0;
    case COMMAND_KEY_NODE:
        a->flags.endpoint = arg;
        return 0;
    case 'm':
        a->metadata = arg;
        return 0;
    case 'a':
        a->account = arg;
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

/* ---- the common options of a command ---- */

static bool has_common(const struct command *c, int key)
{
    static const struct {
        int key;
        unsigned without;
    } some[] = {{'d', COMMAND_WITHOUT_DATABASE},
                {'e', COMMAND_WITHOUT_CHAIN},
                {'n', COMMAND_WITHOUT_NAME},
                {'l', COMMAND_WITHOUT_CONTROL}};
    for (size_t i = 0; i < ARRAY_LEN(some); i++)
        if (some[i].key == key && c->without & some[i].without)
            return false;
    return !c->local;
}

static void choose_common(const struct command *c,
                          struct argp_option ret[ARRAY_LEN(common_options)])
{
    size_t n = 0;
    for (const struct argp_option *o = common_options; o->name; o++)
        if (has_common(c, o->key))
            ret[n++] = *o;
    ret[n] = (struct argp_option){0};
}

void command_each_option(const struct command *c,
                         void (*each)(void *arg, const struct argp_option *option), void *arg)
{
    for (const struct argp_option *o = c->options; o && o->name; o++)
        each(arg, o);
    for (const struct argp_option *o = common_options; o->name; o++)
        if (has_common(c, o->key))
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
    cli_begin(c);
    argp_program_version = "txrelay " TXRELAY_VERSION;
    take_h(argc, argv);
    PRE(c->words_max <= COMMAND_WORDS_MAX && c->words_min <= c->words_max);
    a->columns = c->columns;
    if (c->nothing)
        a->nothing = c->nothing;
    struct parsing p = {.command = c, .arguments = a};
    struct argp_option common[ARRAY_LEN(common_options)];
    choose_common(c, common);
    const struct argp common_argp = {.options = common, .parser = parse_common};
    const struct argp_child children[] = {{&common_argp, 0, NULL, 0}, {0}};
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

int command_execute(const struct command *c, int argc, char **argv)
{
    PRE(!c->run != !c->sql);
    cli_harden();
    if (c->run)
        return c->run(argc, argv);
    struct arguments a = {0};
    struct config config;
    int rc = command_start(c, argc, argv, &a, true, &config);
    if (rc)
        return rc;
    struct conn_param params[COMMAND_WORDS_MAX];
    int count = 0;
    for (; count < c->words_max; count++)
        params[count] = cli_text(a.word[count]);
    if (!count)
        params[count++] = cli_text(a.account);
    return cli_run_sql(&config, c->sql, count, params, c->print, &a);
}

/* ---- words ---- */

void command_word(struct argp_state *state, const char *option, const char *word,
                  const char *const *names)
{
    char all[200] = "", near[NEAREST_TEXT];
    struct nearest_names nearest = nearest_names_of(word);
    for (; *names; names++) {
        if (!strcmp(word, *names))
            return;
        nearest_names_offer(&nearest, *names);
        size_t len = strlen(all);
        snprintf(all + len, sizeof(all) - len, "%s%s", len ? ", " : "", *names);
    }
    argp_error(state, "%s is '%.40s'; it must be one of: %s%s", option, word, all,
               nearest_names_text(&nearest, near));
}

void command_words(struct argp_state *state, const char *option, const char *list,
                   const char *const *names)
{
    char word[80];
    for (size_t n; list; list = list[n] ? list + n + 1 : NULL) {
        n = strcspn(list, ",");
        snprintf(word, sizeof(word), "%.*s", (int)n, list);
        command_word(state, option, word, names);
    }
}

const char *const command_outcomes[] = {"ok",     "dispatch_error", "expired", "cancelled",
                                        "failed", "usurped",        "unknown", NULL};

void command_amount(struct argp_state *state, const char *option, const char *text)
{
    u128 v;
    if (!u128_parse(text, &v))
        argp_error(state, "%s is '%.60s'; it must be a whole number, below 2^128", option, text);
}

void command_address(struct argp_state *state, const char *option, const char *text)
{
    struct err err = {0};
    if (loop_address_check(text, &err))
        argp_error(state, "%s: %s", option, err.text);
}

void command_time(struct argp_state *state, const char *option, const char *text)
{
    int64_t us;
    if (!listen_since_parse(text, &us) || !strchr(text, 'T'))
        argp_error(state, "%s is '%.40s'; it must be a time like 2026-01-31T12:00:00Z", option,
                   text);
}

static void check_id(struct argp_state *state, const char *text)
{
    errno = 0;
    bool fits = strtoll(text, NULL, 10) > 0 && errno == 0;
    if (!command_is_number(text, false))
        argp_error(state, "the id is '%.40s'; it must be the number that enqueue printed", text);
    else if (!fits)
        argp_error(state,
                   "the id is '%.40s'; it must be from 1 to 9223372036854775807, as the number "
                   "that enqueue printed is",
                   text);
}

void command_check_id(struct arguments *a, struct argp_state *state)
{
    for (int i = 0; i < a->words; i++)
        check_id(state, a->word[i]);
}

long long command_number(struct argp_state *state, const char *option, const char *text,
                         long long least, long long most)
{
    errno = 0;
    long long n = strtoll(text, NULL, 10);
    if (!command_is_number(text, least < 0) || errno || n < least || n > most)
        argp_error(state, "%s is '%.40s'; it must be a whole number from %lld to %lld", option,
                   text, least, most);
    return n;
}

bool command_is_number(const char *text, bool negative)
{
    const char *digits = negative && *text == '-' ? text + 1 : text;
    return *digits && strspn(digits, "0123456789") == strlen(digits);
}
