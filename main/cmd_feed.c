/* txrelay feed: create, list and steer feeds, which take numbered batches of redundant publishers;
 * and publish to one. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "cli.h"
#include "command.h"
#include "feed/push.h"

enum {
    OPT_LAST = 1000,
    OPT_OPTION,
    OPT_TO,
    OPT_KEY,
    OPT_CA,
    OPT_CERT,
    OPT_CERT_KEY,
    OPT_SERVER_NAME,
    OPT_TOKEN_FILE,
    OPT_FROM,
};
enum { KEY_BYTES = 32 };

struct feed {
    struct arguments args;
    const struct verb *verb;
    const char *last;
    struct buf options; /* a JSON object, without its end */
    struct buf keys;    /* hexadecimal, with commas between */
    struct feed_push_options push;
    bool unknown; /* show: there is no such feed */
};

/* What the first word says. The names of its words, and which of them is the first key. */
struct verb {
    const char *name, *file, *words;     /* file NULL: push, which asks no database */
    int words_min, words_max, keys_from; /* keys_from 0: it takes none */
    void (*print)(void *arg, const struct conn_result *r);
};

static void print_show(void *arg, const struct conn_result *r)
{
    struct feed *f = arg;
    f->unknown = conn_result_rows(r) == 0;
    cli_print_record(arg, r);
}

static const struct verb verbs[] = {
    /* create is the first: it has more to pass than its words. */
    {"create", "feed_create.sql", "NAME ACCOUNT KEY...", 4, COMMAND_WORDS_MAX, 3, cli_print_value},
    {"list", "feed_list.sql", "", 1, 1, 0, cli_print_rows},
    {"show", "feed_show.sql", "NAME", 2, 2, 0, print_show},
    {"publishers", "feed_publishers.sql", "NAME KEY...", 3, COMMAND_WORDS_MAX, 2, cli_print_value},
    {"pause", "feed_pause.sql", "NAME REASON", 3, 3, 0, cli_print_value},
    {"resume", "feed_resume.sql", "NAME", 2, 2, 0, cli_print_value},
    {"remove", "feed_remove.sql", "NAME", 2, 2, 0, cli_print_value},
    {"push", NULL, "NAME [FILE|DIRECTORY]", 2, 3, 0, NULL},
};

static void add_option(struct feed *f, struct argp_state *state, const char *pair)
{
    const char *equals = strchr(pair, '=');
    if (!equals || equals == pair || !command_is_number(equals + 1, false) ||
        strspn(pair, "abcdefghijklmnopqrstuvwxyz_") != (size_t)(equals - pair))
        argp_error(state, "--option '%s' is not NAME=NUMBER", pair);
    buf_printf(&f->options, "%s\"%.*s\":%s", f->options.len ? "," : "{", (int)(equals - pair), pair,
               equals + 1);
}

static error_t push_option(struct feed_push_options *o, int key, char *arg,
                           struct argp_state *state)
{
    switch (key) {
    case OPT_TO:
        o->to = arg;
        return 0;
    case OPT_KEY:
        o->key_file = arg;
        return 0;
    case OPT_CA:
        o->ca_file = arg;
        return 0;
    case OPT_CERT:
        o->cert_file = arg;
        return 0;
    case OPT_CERT_KEY:
        o->cert_key_file = arg;
        return 0;
    case OPT_SERVER_NAME:
        o->server_name = arg;
        return 0;
    case OPT_TOKEN_FILE:
        o->token_file = arg;
        return 0;
    case OPT_FROM:
        o->from = command_number(state, "--from", arg, 0, INT64_MAX - 1);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    struct feed *f = (struct feed *)a;
    switch (key) {
    case OPT_LAST:
        command_number(state, "--last", arg, -1, INT64_MAX);
        f->last = arg;
        return 0;
    case OPT_OPTION:
        add_option(f, state, arg);
        return 0;
    default:
        return push_option(&f->push, key, arg, state);
    }
}

static void add_key(struct feed *f, struct argp_state *state, const char *word)
{
    uint8_t key[KEY_BYTES];
    if (!hex_decode_fixed(word, strlen(word), key, sizeof(key)))
        argp_error(state, "'%s' is no ed25519 public key: give its 32 bytes in hexadecimal", word);
    if (f->keys.len)
        buf_puts(&f->keys, ",");
    hex_put(&f->keys, key, sizeof(key));
}

static void complete(struct arguments *a, struct argp_state *state)
{
    struct feed *f = (struct feed *)a;
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (!strcmp(verbs[i].name, a->word[0]))
            f->verb = &verbs[i];
    if (!f->verb)
        argp_error(state,
                   "there is no 'feed %s': create, list, show, publishers, pause, "
                   "resume, remove or push",
                   a->word[0]);
    else if (a->words < f->verb->words_min || a->words > f->verb->words_max)
        argp_error(state, "feed %s takes other words: %s", f->verb->name,
                   *f->verb->words ? f->verb->words : "none");
    else if ((f->last || f->options.len) && strcmp(f->verb->name, "create") != 0)
        argp_error(state, "--last and --option are of feed create");
    else if (!f->verb->file && !f->push.to)
        argp_error(state, "--to is missing: name a relay that takes the feed, as HOST:PORT");
    else if (!f->verb->file && !f->push.key_file)
        argp_error(state, "--key is missing: name the publisher's key file (txrelay keys new FILE "
                          "makes one)");
    else if (f->verb->keys_from)
        for (int i = f->verb->keys_from; i < a->words; i++)
            add_key(f, state, a->word[i]);
}

static const struct argp_option options[] = {
    COMMAND_OPTION_JSON,
    COMMAND_OPTION_WIDE,
    {"last", OPT_LAST, "N", 0, "create: the number before the first batch (default -1)", 0},
    {"option", OPT_OPTION, "NAME=N", 0, "create: an option of the feed, as in docs/feeds.md", 0},
    {"to", OPT_TO, "HOST:PORT[,...]", 0, "push: relays that take the feed; unix:/path too", 0},
    {"key", OPT_KEY, "FILE", 0, "push: the publisher's ed25519 key", 0},
    {"from", OPT_FROM, "N", 0, "push: the first batch's number, if it has none (default 0)", 0},
    {"ca", OPT_CA, "FILE", 0, "push, TLS: who signed the relays' certificates (PEM)", 0},
    {"cert", OPT_CERT, "FILE", 0, "push, TLS: the publisher's certificate (PEM)", 0},
    {"cert-key", OPT_CERT_KEY, "FILE", 0, "push, TLS: the key of --cert (PEM)", 0},
    {"server-name", OPT_SERVER_NAME, "NAME", 0,
     "push, TLS: the name in the relays' certificates (default: the host of --to)", 0},
    {"token-file", OPT_TOKEN_FILE, "FILE", 0, "push: the token that the relays demand", 0},
    {0}};

static int run_sql(struct feed *f, struct config *config)
{
    struct conn_param params[5];
    int n = 0, words = f->verb->keys_from ? f->verb->keys_from : f->args.words;
    buf_puts(&f->options, f->options.len ? "}" : "{}");
    for (int i = 1; i < words; i++)
        params[n++] = cli_text(f->args.word[i]);
    if (f->verb->keys_from)
        params[n++] = cli_text(buf_str(&f->keys));
    if (f->verb == &verbs[0]) {
        params[n++] = cli_text(buf_str(&f->options));
        params[n++] = cli_text(f->last ? f->last : "-1");
    }
    int rc = cli_run_sql(config, f->verb->file, n, params, f->verb->print, &f->args);
    if (rc || !f->unknown)
        return rc;
    fprintf(stderr, "txrelay: no such feed: \"%.80s\": txrelay feed list lists them\n",
            f->args.word[1]);
    return EXIT_FAILED;
}

static int run_push(struct feed *f)
{
    f->push.feed = f->args.word[1];
    f->push.source = f->args.words > 2 ? f->args.word[2] : "-";
    f->push.json = f->args.json;
    return feed_push(&f->push);
}

static int run_feed(int argc, char **argv)
{
    struct feed f = {.args.nothing = "there is no feed: txrelay feed create"};
    struct config config;
    command_parse(&command_feed, argc, argv, &f.args);
    int rc = 0;
    if (!f.verb->file)
        rc = run_push(&f);
    else if ((rc = cli_load(&f.args.flags, true, &config)) == 0)
        rc = run_sql(&f, &config);
    buf_done(&f.options);
    buf_done(&f.keys);
    return rc;
}

const struct command command_feed = {
    .name = "feed",
    .role = "txrelay_relay",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_feed,
    .what = "create and steer feeds of numbered batches, and publish to one",
    .options = options,
    .option = option,
    .complete = complete,
    .columns = "feed=name account last=last_number waiting oldest_age_s publishers paused "
               "leader=leader_address",
    .words_min = 1,
    .words_max = COMMAND_WORDS_MAX,
    .missing = "say what: create, list, show, publishers, pause, resume, remove or push",
    .args_doc = "create NAME ACCOUNT KEY...\nlist\nshow NAME\npublishers NAME KEY...\npause NAME "
                "REASON\nresume NAME\nremove NAME\npush NAME [FILE|DIRECTORY]",
    .doc =
        "Create a feed of an account, with the ed25519 public keys of its publishers (32 bytes "
        "in hexadecimal), or replace those keys. List feeds, or show one: its cursor, how many "
        "of its transactions wait, and who serves it. Let it take no batch until it is "
        "resumed. Remove it; its transactions stay. push: offer batches to a feed, one after the "
        "other, until each one is acknowledged; other publishers may do so with the same "
        "batches, and each number is taken once. A batch is a line of JSON from a file or "
        "standard input, or a file N.json of a directory: an array of calls, or {\"number\": "
        "N, \"calls\": [...]}. A call is hexadecimal SCALE, or an object with call, priority, "
        "tip, max_tip, not_before_ms, deadline_ms, deadline_block, retries and spec_version. It "
        "connects again by itself, and goes to the relay that leads. It prints the last number "
        "that was acknowledged; with --json each one as it comes."};
