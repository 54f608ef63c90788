/* txrelay policy: the policy of an account as key=value. The database decides which keys and values
 * are valid (txrelay.account_policy). */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli.h"
#include "command.h"

struct policy_args {
    struct arguments args;
    json_t *policy; /* NULL: read it */
};

/* 12 -> 12; a number too long for JSON's readers, and any other text -> "..."; nothing -> null. */
static json_t *value_of(const char *text)
{
    enum { EXACT_DIGITS = 15 };
    if (!*text)
        return json_null();
    if (command_is_number(text, false) && strlen(text) <= EXACT_DIGITS)
        return json_integer(strtoll(text, NULL, 10));
    return json_string(text);
}

static void add(struct policy_args *a, struct argp_state *state, const char *pair)
{
    const char *equals = strchr(pair, '=');
    if (!equals || equals == pair)
        argp_error(state, "'%s' is not key=value (key= removes a key)", pair);
    char *key = xasprintf("%.*s", (int)(equals - pair), pair);
    if (!a->policy)
        a->policy = json_object();
    if (json_object_get(a->policy, key))
        argp_error(state, "%s is given twice", key);
    if (json_object_set_new(a->policy, key, value_of(equals + 1)))
        argp_error(state, "'%s' is not text in UTF-8", pair);
    free(key);
}

static void complete(struct arguments *args, struct argp_state *state)
{
    for (int i = 1; i < args->words; i++)
        add((struct policy_args *)args, state, args->word[i]);
}

static void print_policy(void *arg, const struct conn_result *r)
{
    const struct arguments *a = arg;
    int len;
    const char *text = conn_result_rows(r) && !conn_result_is_null(r, 0, 0)
                           ? conn_result_get(r, 0, 0, &len)
                           : "{}";
    json_t *policy = json_loads(text, 0, NULL), *value;
    const char *key;
    if (a->json)
        puts(text);
    else if (!json_object_size(policy))
        puts("no policy is set");
    else
        json_object_foreach(policy, key, value)
        {
            char *shown = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
            printf("%s=%s\n", key, json_is_string(value) ? json_string_value(value) : shown);
            free(shown);
        }
    json_decref(policy);
}

static const struct argp_option options[] = {{"json", 'j', NULL, 0, "one JSON object", 0}, {0}};

static int run_policy(int argc, char **argv)
{
    struct policy_args a = {0};
    struct config config;
    int rc = command_start(&command_policy, argc, argv, &a.args, true, &config);
    if (rc == 0) {
        char *text = a.policy ? json_dumps(a.policy, JSON_COMPACT) : NULL;
        struct conn_param params[] = {cli_text(a.args.word[0]), cli_text(text)};
        rc = cli_run_sql(&config, "policy.sql", 2, params, print_policy, &a.args);
        free(text);
    }
    json_decref(a.policy);
    return rc;
}

const struct command command_policy = {
    .name = "policy",
    .role = "txrelay_relay",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_policy,
    .what = "show or set the policy of an account",
    .options = options,
    .complete = complete,
    .words_min = 1,
    .words_max = COMMAND_WORDS_MAX,
    .missing = "the account is missing",
    .args_doc = "ACCOUNT [KEY=VALUE ...]",
    .doc = "Show or set how an account's transactions are treated: tip_start, tip_step, "
           "tip_step_percent, tip_cap, tip_after_blocks, skip_after_blocks, low_balance, "
           "usurped (fail or requeue), order (any or strict), retry_refusals, priority_max, "
           "outbox_max. KEY= removes one."};
