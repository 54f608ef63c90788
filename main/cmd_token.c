/* txrelay token: who may use the HTTP interface of relays. */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/hash.h"
#include "cli.h"
#include "command.h"

enum { OPT_SCOPE = 1000, OPT_EXPIRES };
enum { SECRET_BYTES = 32 };

struct token {
    struct arguments args;
    struct buf scopes, accounts; /* with commas between */
    const char *expires;
    const char *secret;
};

static void add(struct buf *list, const char *word)
{
    if (list->len)
        buf_puts(list, ",");
    buf_puts(list, word);
}

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    struct token *t = (struct token *)a;
    static const char *const scopes[] = {"read", "enqueue", "operate", NULL};
    switch (key) {
    case OPT_SCOPE:
        command_words(state, "--scope", arg, scopes);
        add(&t->scopes, arg);
        return 0;
    case 'f':
        add(&t->accounts, arg);
        return 0;
    case OPT_EXPIRES:
        t->expires = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void complete(struct arguments *a, struct argp_state *state)
{
    const struct token *t = (const struct token *)a;
    bool create = !strcmp(a->word[0], "create"), list = !strcmp(a->word[0], "list");
    if (!create && !list && strcmp(a->word[0], "revoke") != 0)
        argp_error(state, "there is no 'token %s': create, list or revoke", a->word[0]);
    else if (a->words != (list ? 1 : 2))
        argp_error(state, "token %s takes %s", a->word[0], list ? "no more words" : "one name");
    else if (create && !t->scopes.len)
        argp_error(state, "--scope is missing: read, enqueue or operate, or several with commas");
    else if (!create && (t->scopes.len || t->accounts.len || t->expires))
        argp_error(state, "--scope, --for and --expires are of token create");
}

static const struct argp_option options[] = {
    COMMAND_OPTION_JSON,
    COMMAND_OPTION_WIDE,
    {"scope", OPT_SCOPE, "SCOPE[,SCOPE]", 0, "create: what it is good for: read, enqueue, operate",
     0},
    {"for", 'f', "ACCOUNT[,ACCOUNT]", 0, "create: enqueue for these accounts only", 0},
    {"expires", OPT_EXPIRES, "SPAN", 0,
     "create: how long it is good, like '90 days' (default: "
     "until it is revoked)",
     0},
    {0}};

/* The database has its hash: only who runs this command ever sees it. */
static void print_secret(void *arg, const struct conn_result *r)
{
    (void)r;
    puts(((const struct token *)arg)->secret);
}

static int create(struct token *t, struct config *config)
{
    uint8_t bytes[SECRET_BYTES], hash[32];
    struct buf secret = {0}, hex = {0};
    INVARIANT(getrandom(bytes, sizeof(bytes), 0) == sizeof(bytes));
    buf_puts(&secret, "txr_");
    hex_put(&secret, bytes, sizeof(bytes));
    t->secret = buf_str(&secret);
    hash_sha256(t->secret, strlen(t->secret), hash);
    hex_put(&hex, hash, sizeof(hash));
    const struct conn_param params[] = {
        cli_text(t->args.word[1]), cli_text(buf_str(&hex)), cli_text(buf_str(&t->scopes)),
        cli_text(t->accounts.len ? buf_str(&t->accounts) : NULL), cli_text(t->expires)};
    struct err err = {0};
    const struct cli_value expires = {"--expires", t->expires, "span like '90 days' or 12h"};
    int rc = cli_query(config->file->database.url, cli_sql("token_create.sql"), ARRAY_LEN(params),
                       params, print_secret, t, &err);
    rc = rc ? cli_fail_value(&err, &expires, 1) : EXIT_OK;
    config_done(config);
    explicit_bzero(bytes, sizeof(bytes));
    explicit_bzero(secret.data, secret.len);
    buf_done(&secret);
    buf_done(&hex);
    return rc;
}

static int run_token(int argc, char **argv)
{
    struct token t = {.args.nothing = "there is no token: txrelay token create"};
    struct config config;
    int rc = command_start(&command_token, argc, argv, &t.args, true, &config);
    if (rc == 0) {
        struct conn_param name = cli_text(t.args.word[1]);
        if (!strcmp(t.args.word[0], "create"))
            rc = create(&t, &config);
        else if (!strcmp(t.args.word[0], "list"))
            rc = cli_run_sql(&config, "token_list.sql", 0, NULL, cli_print_rows, &t.args);
        else
            rc = cli_run_sql(&config, "token_revoke.sql", 1, &name, cli_print_value, &t.args);
    }
    buf_done(&t.scopes);
    buf_done(&t.accounts);
    return rc;
}

const struct command command_token = {
    .name = "token",
    .role = "txrelay_relay",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_token,
    .what = "create, list and revoke tokens of the HTTP interface",
    .options = options,
    .option = option,
    .complete = complete,
    .columns = "token=name scopes accounts state created_at created_by expires_at",
    .words_min = 1,
    .words_max = 2,
    .missing = "say what: create, list or revoke",
    .args_doc = "create NAME\nlist\nrevoke NAME",
    .doc = "Create a token for the HTTP interface of relays, with its scopes, and print it. It is "
           "printed once: the database has only its hash. read: everything that a page shows. "
           "enqueue: transactions, for all accounts or for those of --for. operate: cancel, bump, "
           "retry, pause and resume. List tokens, or revoke one, which ends it at once; its name "
           "stays, because the record of operations has it."};
