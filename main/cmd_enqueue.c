/* txrelay enqueue: into the outbox by SQL, or to a relay's control endpoint as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/hex.h"
#include "cli.h"
#include "command.h"

/* The options of the transaction. Their names are those of the SQL function's arguments and of the
 * fields in JSON. */
enum send_option {
    OPT_KEY,
    OPT_PRIORITY,
    OPT_NOT_BEFORE,
    OPT_DEADLINE,
    OPT_CREATOR,
    OPT_SPEC_VERSION,
    OPT_TIP,
    OPT_MAX_TIP,
    OPT_DEADLINE_BLOCK,
    OPT_RETRIES,
    OPT_DELAY,
    OPT_EXPIRES_IN,
    OPT_TRACEPARENT,
    OPT_COUNT,
    OPT_TO
};
enum { KEY_BASE = 1000 }; /* argp keys of options without a letter */

static const struct {
    const char *name, *flag;
    bool number; /* a whole number, not negative unless it is the priority */
} table[OPT_COUNT] = {
    [OPT_KEY] = {"key", "--key", false},
    [OPT_PRIORITY] = {"priority", "--priority", true},
    [OPT_NOT_BEFORE] = {"not_before", "--not-before", false},
    [OPT_DEADLINE] = {"deadline", "--deadline", false},
    [OPT_CREATOR] = {"creator", "--creator", false},
    [OPT_SPEC_VERSION] = {"spec_version", "--spec-version", true},
    [OPT_TIP] = {"tip", "--tip", true},
    [OPT_MAX_TIP] = {"max_tip", "--max-tip", true},
    [OPT_DEADLINE_BLOCK] = {"deadline_block", "--deadline-block", true},
    [OPT_RETRIES] = {"retries", "--retries", true},
    [OPT_DELAY] = {"delay", "--delay", false},
    [OPT_EXPIRES_IN] = {"expires_in", "--expires-in", false},
    [OPT_TRACEPARENT] = {"traceparent", "--traceparent", false},
};

static const struct argp_option options[] = {
    {"key", 'k', "TEXT", 0, "idempotency key: the same key and call give the first id again", 0},
    {"priority", 'p', "N", 0, "higher goes first (default 0)", 0},
    {"not-before", 'b', "TIME", 0, "not before this time (2026-01-31T12:00:00Z)", 0},
    {"deadline", 'D', "TIME", 0, "ends as expired if it is not included by then", 0},
    {"delay", KEY_BASE + OPT_DELAY, "SPAN", 0, "not before so much time from now: 90s, 15m, 2h, 7d",
     0},
    {"expires-in", KEY_BASE + OPT_EXPIRES_IN, "SPAN", 0,
     "a deadline that counts from now: 90s, 15m, 2h, 7d", 0},
    {"deadline-block", KEY_BASE + OPT_DEADLINE_BLOCK, "N", 0, "the last block that may hold it", 0},
    {"tip", KEY_BASE + OPT_TIP, "PLANCK", 0,
     "in the chain's smallest unit (default: the account's policy)", 0},
    {"max-tip", KEY_BASE + OPT_MAX_TIP, "PLANCK", 0, "limit for bumps and the policy", 0},
    {"retries", KEY_BASE + OPT_RETRIES, "N", 0, "how often to retry after a dispatch error", 0},
    {"traceparent", KEY_BASE + OPT_TRACEPARENT, "TEXT", 0,
     "trace context (W3C) that events and the log name", 0},
    {"spec-version", KEY_BASE + OPT_SPEC_VERSION, "N", 0,
     "only under this runtime; ends as failed under another", 0},
    {"creator", 'r', "TEXT", 0, "who asks; shown with the status", 0},
    {"to", 't', "ADDRESS", 0,
     "hand it to the relay at this control endpoint instead of the database", 0},
    {0}};

struct args {
    struct arguments base;
    const char *account, *call, *to;
    const char *opt[OPT_COUNT];
};

static enum send_option option_of(int key)
{
    static const char letters[] = "kpbDr";
    static const enum send_option by_letter[] = {OPT_KEY, OPT_PRIORITY, OPT_NOT_BEFORE,
                                                 OPT_DEADLINE, OPT_CREATOR};
    const char *at = key > 0 && key < 128 ? strchr(letters, key) : NULL;
    if (at)
        return by_letter[at - letters];
    return key >= KEY_BASE && key < KEY_BASE + OPT_COUNT ? (enum send_option)(key - KEY_BASE)
                                                         : OPT_COUNT;
}

static error_t option(struct arguments *base, int key, char *arg, struct argp_state *state)
{
    struct args *a = (struct args *)base;
    enum send_option opt = option_of(key);
    if (key == 't') {
        command_address(state, "--to", arg);
        a->to = arg;
        return 0;
    }
    if (opt == OPT_COUNT)
        return ARGP_ERR_UNKNOWN;
    if (opt == OPT_TIP || opt == OPT_MAX_TIP)
        command_amount(state, table[opt].flag, arg);
    else if (table[opt].number)
        command_number(state, table[opt].flag, arg, opt == OPT_PRIORITY ? INT64_MIN : 0, INT64_MAX);
    a->opt[opt] = arg;
    return 0;
}

/* ---- to a relay ---- */

static void print_answer(void *arg, const char *line)
{
    bool *refused = arg;
    json_t *reply = json_loads(line, 0, NULL);
    const char *error = json_string_value(json_object_get(reply, "error"));
    *refused = error != NULL;
    if (error)
        fprintf(stderr, "txrelay: %s: %s\n", error,
                json_string_value(json_object_get(reply, "text")));
    else
        printf("%lld\n", (long long)json_integer_value(json_object_get(reply, "id")));
    json_decref(reply);
}

/* Amounts travel as text: they may be too large for a JSON integer. */
static json_t *option_json(enum send_option opt, const char *text)
{
    if (table[opt].number && opt != OPT_TIP && opt != OPT_MAX_TIP)
        return json_integer(strtoll(text, NULL, 10));
    return json_string(text);
}

static int enqueue_to(const struct args *a)
{
    struct err err = {0};
    bool refused = true;
    json_t *request =
        json_pack("{s:s, s:s, s:s}", "cmd", "send", "account", a->account, "call", a->call);
    for (int i = 0; i < OPT_COUNT; i++)
        if (a->opt[i])
            json_object_set_new(request, table[i].name,
                                option_json((enum send_option)i, a->opt[i]));
    char *line = json_dumps(request, JSON_COMPACT);
    int rc = cli_control(a->to, line, print_answer, &refused, &err);
    free(line);
    json_decref(request);
    if (rc)
        return cli_fail(&err);
    return refused ? EXIT_FAILED : EXIT_OK;
}

/* ---- to the database ---- */

static int enqueue_sql(const struct args *a, const char *dsn, const struct buf *call)
{
    struct err err = {0};
    struct conn_param params[2 + OPT_COUNT] = {
        cli_text(a->account),
        {.data = (const char *)call->data, .len = (int)call->len, .format = 1}};
    for (int i = 0; i < OPT_COUNT; i++)
        params[2 + i] = cli_text(a->opt[i]);
    int rc =
        cli_query(dsn, cli_sql("enqueue.sql"), 2 + OPT_COUNT, params, cli_print_value, NULL, &err);
    static const char time[] = "time like 2026-01-31T12:00:00Z",
                      span[] = "span like 90s, 15m, 2h or 7d";
    const struct cli_value values[] = {{"--deadline", a->opt[OPT_DEADLINE], time},
                                       {"--not-before", a->opt[OPT_NOT_BEFORE], time},
                                       {"--delay", a->opt[OPT_DELAY], span},
                                       {"--expires-in", a->opt[OPT_EXPIRES_IN], span}};
    return rc ? cli_fail_value(&err, values, ARRAY_LEN(values)) : EXIT_OK;
}

int cli_enqueue(const char *dsn, const char *account, const struct buf *call)
{
    struct args a = {.account = account};
    return enqueue_sql(&a, dsn, call);
}

/* "-" is standard input: an argument can hold at most 64 KiB of a call. */
static int read_call(struct args *a, struct buf *input, struct err *err)
{
    if (strcmp(a->call, "-") != 0)
        return 0;
    int rc = cli_read(stdin, "standard input", input, err);
    if (rc)
        return rc;
    while (input->len && memchr(" \t\r\n", input->data[input->len - 1], 4))
        input->len--;
    a->call = buf_str(input);
    if (strlen(a->call) != input->len)
        return err_set(err, ERR_ARGUMENT, "standard input: there is a zero byte in it");
    return 0;
}

static int run_enqueue(int argc, char **argv)
{
    struct args a = {0};
    struct config config;
    command_parse(&command_enqueue, argc, argv, &a.base);
    a.account = a.base.word[0];
    a.call = a.base.word[1];
    int rc = cli_load(&a.base.flags, !a.to, &config);
    if (rc)
        return rc;
    struct buf call = {0}, input = {0};
    struct err err = {0};
    if (read_call(&a, &input, &err)) {
        rc = cli_fail(&err);
    } else if (!hex_decode(a.call, strlen(a.call), &call) || !call.len) {
        fprintf(stderr,
                "txrelay: the call '%.40s' is not hexadecimal bytes: give 0x and two digits for "
                "each byte, as txrelay encode prints them\n",
                a.call);
        rc = EXIT_USAGE;
    } else {
        rc = a.to ? enqueue_to(&a) : enqueue_sql(&a, config.file->database.url, &call);
    }
    buf_done(&call);
    buf_done(&input);
    config_done(&config);
    return rc;
}

const struct command command_enqueue = {
    .name = "enqueue",
    .role = "txrelay_app",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_enqueue,
    .what = "put a transaction into the outbox (or hand it to a relay: --to)",
    .options = options,
    .option = option,
    .words_min = 2,
    .words_max = 2,
    .missing = "the account and the call are missing",
    .args_doc = "ACCOUNT CALL",
    .doc = "Enqueue one call (hexadecimal SCALE bytes) for an "
           "account; prints its id. '-' reads the call from standard input."};
