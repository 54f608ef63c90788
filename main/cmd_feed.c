/* txrelay feed: create, list and steer feeds, which take numbered batches of redundant publishers. */
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "cli.h"
#include "command.h"

enum { OPT_LAST = 1000, OPT_OPTION, KEY_BYTES = 32 };

struct feed {
    struct arguments args;
    const struct verb *verb;
    const char *last;
    struct buf options; /* a JSON object, without its end */
    struct buf keys;    /* hexadecimal, with commas between */
};

/* What the first word says. The names of its words, and which of them is the first key. */
struct verb {
    const char *name, *file, *words;
    int words_min, words_max, keys_from; /* keys_from 0: it takes none */
    void (*print)(void *arg, const struct conn_result *r);
};

static const struct verb verbs[] = {
    /* create is the first: it has more to pass than its words. */
    {"create", "feed_create.sql", "NAME ACCOUNT KEY...", 4, COMMAND_WORDS_MAX, 3, cli_print_value},
    {"list", "feed_list.sql", "", 1, 1, 0, cli_print_rows},
    {"show", "feed_show.sql", "NAME", 2, 2, 0, cli_print_record},
    {"publishers", "feed_publishers.sql", "NAME KEY...", 3, COMMAND_WORDS_MAX, 2, cli_print_value},
    {"pause", "feed_pause.sql", "NAME REASON", 3, 3, 0, cli_print_value},
    {"resume", "feed_resume.sql", "NAME", 2, 2, 0, cli_print_value},
    {"remove", "feed_remove.sql", "NAME", 2, 2, 0, cli_print_value},
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
        return ARGP_ERR_UNKNOWN;
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
                   "there is no 'feed %s': create, list, show, publishers, pause, resume "
                   "or remove",
                   a->word[0]);
    else if (a->words < f->verb->words_min || a->words > f->verb->words_max)
        argp_error(state, "feed %s takes other words: %s", f->verb->name,
                   *f->verb->words ? f->verb->words : "none");
    else if ((f->last || f->options.len) && strcmp(f->verb->name, "create") != 0)
        argp_error(state, "--last and --option are of feed create");
    else if (f->verb->keys_from)
        for (int i = f->verb->keys_from; i < a->words; i++)
            add_key(f, state, a->word[i]);
}

static const struct argp_option options[] = {
    COMMAND_OPTION_JSON,
    COMMAND_OPTION_WIDE,
    {"last", OPT_LAST, "N", 0, "create: the number before the first batch (default -1)", 0},
    {"option", OPT_OPTION, "NAME=N", 0, "create: an option of the feed, as in docs/feeds.md", 0},
    {0}};

static int run_feed(int argc, char **argv)
{
    struct feed f = {.args.nothing = "there is no feed: txrelay feed create"};
    struct config config;
    int rc = command_start(&command_feed, argc, argv, &f.args, true, &config);
    if (rc == 0) {
        buf_puts(&f.options, f.options.len ? "}" : "{}");
        struct conn_param params[5];
        int n = 0, words = f.verb->keys_from ? f.verb->keys_from : f.args.words;
        for (int i = 1; i < words; i++)
            params[n++] = cli_text(f.args.word[i]);
        if (f.verb->keys_from)
            params[n++] = cli_text(buf_str(&f.keys));
        if (f.verb == &verbs[0]) {
            params[n++] = cli_text(buf_str(&f.options));
            params[n++] = cli_text(f.last ? f.last : "-1");
        }
        rc = cli_run_sql(&config, f.verb->file, n, params, f.verb->print, &f.args);
    }
    buf_done(&f.options);
    buf_done(&f.keys);
    return rc;
}

const struct command command_feed = {
    .name = "feed",
    .role = "txrelay_relay",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_feed,
    .what = "create, list and steer feeds of numbered batches",
    .options = options,
    .option = option,
    .complete = complete,
    .columns = "feed=name account last=last_number waiting oldest_s publishers paused "
               "leader=leader_address",
    .words_min = 1,
    .words_max = COMMAND_WORDS_MAX,
    .missing = "say what: create, list, show, publishers, pause, resume or remove",
    .args_doc = "create NAME ACCOUNT KEY...\nlist\nshow NAME\npublishers NAME KEY...\npause NAME "
                "REASON\nresume NAME\nremove NAME",
    .doc = "Create a feed of an account, with the ed25519 public keys of its publishers (32 bytes "
           "in hexadecimal), or replace those keys. List feeds, or show one: its cursor, how many "
           "of its transactions wait, and who serves it. Let it take no batch until it is "
           "resumed. Remove it; its transactions stay."};
