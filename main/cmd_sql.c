/* The commands that are one statement: migrate, enqueue, status, cancel, accounts. */
#include <argp.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hex.h"
#include "cli.h"
#include "store/migrate.h"

struct args {
    struct config_flags flags;
    const char *pos[2];
    int count, max;
    const char *key, *to, *not_before, *deadline, *creator, *account, *limit;
    const char *priority, *spec_version;
    bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->flags;
        return 0;
    case 'k':
        a->key = arg;
        return 0;
    case 't':
        a->to = arg;
        return 0;
    case 'p':
        a->priority = arg;
        return 0;
    case 'b':
        a->not_before = arg;
        return 0;
    case 'D':
        a->deadline = arg;
        return 0;
    case 's':
        a->spec_version = arg;
        return 0;
    case 'r':
        a->creator = arg;
        return 0;
    case 'a':
        a->account = arg;
        return 0;
    case 'N':
        a->limit = arg;
        return 0;
    case 'j':
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (a->count >= a->max)
            argp_error(state, "too many arguments: '%s'", arg);
        a->pos[a->count++] = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&cli_common_argp, 0, NULL, 0}, {0}};

static int start(const struct argp *argp, int argc, char **argv, struct args *a, int min, int max,
                 struct config *config)
{
    a->max = max;
    argp_parse(argp, argc, argv, 0, NULL, a);
    if (a->count < min) {
        fprintf(stderr, "%s: an argument is missing; --help says which\n", argv[0]);
        return EXIT_USAGE;
    }
    return cli_load(&a->flags, !a->to, config);
}

static void print_rows(void *arg, const struct conn_result *r)
{
    const struct args *a = arg;
    if (a->json)
        cli_print_json(r);
    else
        cli_print_table(r);
}

static void print_value(void *arg, const struct conn_result *r)
{
    int len;
    (void)arg;
    if (conn_result_rows(r) && !conn_result_is_null(r, 0, 0))
        puts(conn_result_get(r, 0, 0, &len));
}

static int run_sql(struct config *config, const char *file, int n, const struct conn_param *params,
                   void (*rows)(void *arg, const struct conn_result *r), void *arg)
{
    struct err err = {0};
    int rc = cli_query(config->file->database.url, cli_sql(file), n, params, rows, arg, &err);
    config_done(config);
    return rc ? cli_fail(&err) : EXIT_OK;
}

/* ---- migrate ---- */

struct migrating {
    struct migrate m;
    int from, to;
    struct err err;
};

static void migrated(struct migrate *m)
{
    struct migrating *x = (struct migrating *)(void *)m;
    x->err = m->err;
    x->from = m->from;
    x->to = m->to;
}

int cmd_migrate(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = parse,
        .children = children,
        .doc = "Install or update the schema. Several at once are safe; a schema that is "
               "newer than this program is refused."};
    struct args a = {0};
    struct config config;
    int rc = start(&argp, argc, argv, &a, 0, 0, &config);
    if (rc)
        return rc;
    struct migrating x = {0};
    struct loop *l = loop_new();
    migrate_start(l, &x.m, config.file->database.url, migrated);
    loop_run(l);
    loop_free(l);
    config_done(&config);
    if (x.err.code)
        return cli_fail(&x.err);
    if (x.from == x.to)
        printf("schema version %d: nothing to do\n", x.to);
    else
        printf("schema version %d -> %d\n", x.from, x.to);
    return EXIT_OK;
}

/* ---- enqueue ---- */

static void print_answer(void *arg, const char *line)
{
    bool *refused = arg;
    json_t *reply = json_loads(line, 0, NULL);
    const char *error = json_string_value(json_object_get(reply, "error"));
    *refused = error != NULL;
    if (error)
        fprintf(stderr, "txrelay: %s: %s\n", error, json_string_value(json_object_get(reply, "text")));
    else
        printf("%lld\n", (long long)json_integer_value(json_object_get(reply, "id")));
    json_decref(reply);
}

static int enqueue_to(const struct args *a, struct config *config)
{
    struct err err = {0};
    bool refused = true;
    json_t *request = json_pack("{s:s, s:s, s:s, s:i}", "cmd", "send", "account", a->pos[0], "call",
                                a->pos[1], "priority", a->priority ? (int)strtol(a->priority, NULL, 10) : 0);
    if (a->key)
        json_object_set_new(request, "key", json_string(a->key));
    char *line = json_dumps(request, JSON_COMPACT);
    int rc = cli_control(a->to, line, print_answer, &refused, &err);
    free(line);
    json_decref(request);
    config_done(config);
    if (rc)
        return cli_fail(&err);
    return refused ? EXIT_FAILED : EXIT_OK;
}

int cmd_enqueue(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"key", 'k', "TEXT", 0, "idempotency key: the same key and call give the first id again", 0},
        {"priority", 'p', "N", 0, "higher goes first (default 0)", 0},
        {"not-before", 'b', "TIME", 0, "not admitted earlier (timestamptz text)", 0},
        {"deadline", 'D', "TIME", 0, "ends as expired if it is not included by then", 0},
        {"spec-version", 's', "N", 0, "ends as failed rather than be signed under another runtime", 0},
        {"creator", 'r', "TEXT", 0, "who asks; shown with the status", 0},
        {"to", 't', "ADDRESS", 0, "hand it to the relay at this control endpoint instead of the database", 0},
        {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = children,
        .args_doc = "ACCOUNT CALL",
        .doc = "Enqueue one call (hexadecimal SCALE bytes) for an account; prints its id."};
    struct args a = {0};
    struct config config;
    int rc = start(&argp, argc, argv, &a, 2, 2, &config);
    if (rc)
        return rc;
    struct buf call = {0};
    if (!hex_decode(a.pos[1], strlen(a.pos[1]), &call) || !call.len) {
        fprintf(stderr, "txrelay: the call '%.40s' is not hexadecimal bytes\n", a.pos[1]);
        buf_done(&call);
        config_done(&config);
        return EXIT_USAGE;
    }
    if (a.to && (a.not_before || a.deadline || a.spec_version || a.creator)) {
        fprintf(stderr, "txrelay: --to takes --key and --priority only; leave it out to use the database\n");
        buf_done(&call);
        config_done(&config);
        return EXIT_USAGE;
    }
    if (a.to) {
        buf_done(&call);
        return enqueue_to(&a, &config);
    }
    struct conn_param params[] = {
        cli_text(a.pos[0]),     {.data = (const char *)call.data, .len = (int)call.len, .format = 1},
        cli_text(a.key),        cli_text(a.priority ? a.priority : "0"),
        cli_text(a.not_before), cli_text(a.deadline),
        cli_text(a.creator),    cli_text(a.spec_version)};
    rc = run_sql(&config, "enqueue.sql", 8, params, print_value, NULL);
    buf_done(&call);
    return rc;
}

/* ---- status, cancel, accounts ---- */

static const struct argp_option list_options[] = {
    {"json", 'j', NULL, 0, "JSON lines", 0},
    {"account", 'a', "ALIAS", 0, "only this account (lists)", 0},
    {"limit", 'N', "N", 0, "at most so many (lists; default 20)", 0},
    {0}};

struct found {
    struct args *args;
    bool any;
};

static void print_found(void *arg, const struct conn_result *r)
{
    struct found *f = arg;
    f->any = conn_result_rows(r) > 0;
    if (f->any)
        print_rows(f->args, r);
}

int cmd_status(int argc, char **argv)
{
    static const struct argp argp = {.options = list_options,
                                     .parser = parse,
                                     .children = children,
                                     .args_doc = "[ID]",
                                     .doc = "Where is it? One transaction by id, or the latest ones."};
    struct args a = {0};
    struct config config;
    int rc = start(&argp, argc, argv, &a, 0, 1, &config);
    if (rc)
        return rc;
    struct found found = {&a, false};
    if (a.count) {
        struct conn_param id = cli_text(a.pos[0]);
        rc = run_sql(&config, "status.sql", 1, &id, print_found, &found);
        if (rc == EXIT_OK && !found.any) {
            fprintf(stderr, "txrelay: there is no transaction %s\n", a.pos[0]);
            return EXIT_FAILED;
        }
        return rc;
    }
    struct conn_param params[] = {cli_text(a.account), cli_text(a.limit ? a.limit : "20")};
    return run_sql(&config, "status_list.sql", 2, params, print_rows, &a);
}

int cmd_cancel(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = parse,
        .children = children,
        .args_doc = "ID",
        .doc = "Take a transaction back: says cancelled, requested (it has a nonce; "
               "its record tells how it ended) or finished."};
    struct args a = {0};
    struct config config;
    int rc = start(&argp, argc, argv, &a, 1, 1, &config);
    if (rc)
        return rc;
    struct conn_param id = cli_text(a.pos[0]);
    return run_sql(&config, "cancel.sql", 1, &id, print_value, NULL);
}

int cmd_accounts(int argc, char **argv)
{
    static const struct argp argp = {.options = list_options,
                                     .parser = parse,
                                     .children = children,
                                     .doc = "Accounts with their leaders, epochs and heartbeats."};
    struct args a = {0};
    struct config config;
    int rc = start(&argp, argc, argv, &a, 0, 0, &config);
    if (rc)
        return rc;
    return run_sql(&config, "accounts.sql", 0, NULL, print_rows, &a);
}
