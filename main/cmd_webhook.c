/* txrelay webhook: receivers that get the outcome of each transaction. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli.h"
#include "command.h"
#include "hook/hooks.h"

enum { OPT_OUTCOME = 1000 };

struct webhook {
    struct arguments args;
    const struct verb *verb;
    struct buf accounts, outcomes; /* with commas between */
    char *key;                     /* of `secret`: the key file's */
};

struct verb {
    const char *name, *file, *words;
    int words_min, words_max;
    void (*print)(void *arg, const struct conn_result *r);
    const char *columns; /* as in struct command */
    const char *nothing; /* printed when there is no row */
};

static void print_secret(void *arg, const struct conn_result *r);

static const struct verb verbs[] = {
    {"create", "webhook_create.sql", "NAME URL", 3, 3, cli_print_value, NULL, NULL},
    {"list", "webhook_list.sql", "", 1, 1, cli_print_rows,
     "webhook=name url accounts outcomes state waiting dead",
     "there is no webhook: txrelay webhook create"},
    {"remove", "webhook_remove.sql", "NAME", 2, 2, cli_print_value, NULL, NULL},
    {"pause", "webhook_pause.sql", "NAME", 2, 2, cli_print_value, NULL, NULL},
    {"resume", "webhook_resume.sql", "NAME", 2, 2, cli_print_value, NULL, NULL},
    {"secret", "webhook_secret.sql", "NAME", 2, 2, print_secret, NULL, NULL},
    {"rotate", "webhook_rotate.sql", "NAME", 2, 2, cli_print_value, NULL, NULL},
    {"dead", "webhook_dead.sql", "NAME", 2, 2, cli_print_rows,
     "number account id attempts given_up=dead_at error", "it has given nothing up"},
    {"again", "webhook_again.sql", "NAME [NUMBER]", 2, 3, cli_print_value, NULL, NULL},
};

static void add(struct buf *list, const char *word)
{
    if (list->len)
        buf_puts(list, ",");
    buf_puts(list, word);
}

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    struct webhook *w = (struct webhook *)a;
    switch (key) {
    case 'f':
        add(&w->accounts, arg);
        return 0;
    case OPT_OUTCOME:
        command_words(state, "--outcome", arg, command_outcomes);
        add(&w->outcomes, arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void complete(struct arguments *a, struct argp_state *state)
{
    struct webhook *w = (struct webhook *)a;
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (!strcmp(verbs[i].name, a->word[0]))
            w->verb = &verbs[i];
    if (!w->verb)
        argp_error(state,
                   "there is no 'webhook %s': create, list, remove, pause, resume, secret, "
                   "rotate, dead or again",
                   a->word[0]);
    else if (a->words < w->verb->words_min || a->words > w->verb->words_max)
        argp_error(state, "webhook %s takes other words: %s", w->verb->name, w->verb->words);
    else if (w->verb != verbs && (w->accounts.len || w->outcomes.len))
        argp_error(state, "--for and --outcome are of webhook create");
    else if (a->word[2] && w->verb != verbs && !command_is_number(a->word[2], false))
        argp_error(state, "'%s' is not the number of a delivery", a->word[2]);
}

static const struct argp_option options[] = {
    COMMAND_OPTION_JSON,
    COMMAND_OPTION_WIDE,
    {"for", 'f', "ACCOUNT[,ACCOUNT]", 0, "create: the transactions of these accounts only", 0},
    {"outcome", OPT_OUTCOME, "OUTCOME[,OUTCOME]", 0,
     "create: those that end so only: ok, dispatch_error, expired, cancelled, failed, usurped, "
     "unknown",
     0},
    {0}};

static void print_secret(void *arg, const struct conn_result *r)
{
    const struct webhook *w = arg;
    char secret[HOOKS_SECRET_MAX];
    int len;
    hooks_secret(w->key, w->args.word[1], conn_result_get(r, 0, 0, &len), secret);
    puts(secret);
    explicit_bzero(secret, sizeof(secret));
}

static int read_key(struct webhook *w, const struct config *config)
{
    struct err err = {0};
    if (!config->file->webhooks.key_file)
        err_set(&err, ERR_CONFIG,
                "the configuration has no webhooks.key_file, from which secrets are derived: give "
                "that of a relay with --config");
    else
        w->key = hooks_key_read(config->file->webhooks.key_file, &err);
    return err.code ? cli_fail(&err) : 0;
}

static int run_webhook(int argc, char **argv)
{
    struct webhook w = {0};
    struct config config;
    int rc = command_start(&command_webhook, argc, argv, &w.args, true, &config);
    if (rc == 0 && w.verb->print == print_secret) {
        rc = read_key(&w, &config);
        if (rc)
            config_done(&config);
    }
    if (rc == 0) {
        w.args.columns = w.verb->columns;
        w.args.nothing = w.verb->nothing;
        struct conn_param params[4] = {cli_text(w.args.word[1]), cli_text(w.args.word[2])};
        int n = w.verb->words_max - 1;
        if (w.verb == verbs) {
            params[n++] = cli_text(w.accounts.len ? buf_str(&w.accounts) : NULL);
            params[n++] = cli_text(w.outcomes.len ? buf_str(&w.outcomes) : NULL);
        }
        rc = cli_run_sql(&config, w.verb->file, n, params, w.verb->print, &w);
    }
    if (w.key)
        explicit_bzero(w.key, strlen(w.key));
    free(w.key);
    buf_done(&w.accounts);
    buf_done(&w.outcomes);
    return rc;
}

const struct command command_webhook = {
    .name = "webhook",
    .role = "txrelay_relay",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_webhook,
    .what = "tell URLs how transactions end",
    .options = options,
    .option = option,
    .complete = complete,
    .words_min = 1,
    .words_max = 3,
    .missing = "say what: create, list, remove, pause, resume, secret, rotate, dead or again",
    .args_doc = "create NAME URL\nlist\nremove NAME\npause NAME\nresume NAME\nsecret NAME\nrotate "
                "NAME\ndead NAME\nagain NAME [NUMBER]",
    .doc = "Create a webhook: relays with webhooks.key_file post to its URL how transactions end, "
           "signed with its secret, in order per account and at least once. secret prints the "
           "secret that its receiver needs, from the key file of the configuration; rotate makes "
           "another one, and for a day both sign. dead lists what was given up after about a day "
           "of attempts; again sends it again, all of it or one number."};
