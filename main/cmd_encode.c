/* txrelay encode: a call's bytes from its pallet, its name and JSON arguments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "chain/codec/codec.h"
#include "cli.h"
#include "command.h"

enum { WORDS_MAX = 3 };

struct args {
    struct arguments base;
    const char *sql, *enqueue;
    bool list;
    struct config config;
    struct buf input; /* standard input, for "-" */
};

enum { OPT_SQL = 1000 };

static const struct argp_option options[] = {
    COMMAND_OPTIONS_METADATA,
    {"list", 'L', NULL, 0, "list the pallets, the calls of PALLET, or CALL with all of its types",
     0},
    {"sql", OPT_SQL, "ACCOUNT", 0, "print the SELECT that enqueues it", 0},
    {"enqueue", 'q', "ACCOUNT", 0, "also enqueue it; prints its id", 0},
    {0}};

static error_t option(struct arguments *base, int key, char *arg, struct argp_state *state)
{
    struct args *a = (struct args *)base;
    (void)state;
    switch (key) {
    case 'L':
        a->list = true;
        return 0;
    case OPT_SQL:
        a->sql = arg;
        return 0;
    case 'q':
        a->enqueue = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void complete(struct arguments *base, struct argp_state *state)
{
    const struct args *a = (const struct args *)base;
    if (!base->words && !a->list)
        argp_error(state, "give a pallet and a call, or --list");
    if (a->list + (a->sql != NULL) + (a->enqueue != NULL) > 1)
        argp_error(state, "only one of --list, --sql and --enqueue");
    if (a->list && base->words > 2)
        argp_error(state, "--list takes only a pallet and a call, not '%s'", base->word[2]);
}

/* "Pallet.call" stands for two words. */
static void split_dotted(struct args *a, struct buf *pallet)
{
    const char *dot =
        a->base.words && *a->base.word[0] != '{' ? strchr(a->base.word[0], '.') : NULL;
    if (!dot || a->base.words == WORDS_MAX)
        return;
    a->base.word[2] = a->base.word[1];
    a->base.word[1] = dot + 1;
    buf_put(pallet, a->base.word[0], (size_t)(dot - a->base.word[0]));
    a->base.word[0] = buf_str(pallet);
    a->base.words++;
}

/* "-" is standard input. */
static int read_input(struct args *a, struct err *err)
{
    for (int i = 0; i < a->base.words; i++) {
        if (strcmp(a->base.word[i], "-") != 0)
            continue;
        int rc = cli_read(stdin, "standard input", &a->input, err);
        if (rc)
            return rc;
        a->base.word[i] = buf_str(&a->input);
        if (strlen(a->base.word[i]) != a->input.len)
            return err_set(err, ERR_ARGUMENT, "standard input: there is a zero byte in it");
        return 0;
    }
    return 0;
}

static int encode(const struct args *a, const struct metadata *md, struct buf *out, struct err *err)
{
    if (a->base.words == 1 && a->base.word[0][strspn(a->base.word[0], " \t\r\n")] == '{')
        return codec_from_json(md, metadata_type_call(md), a->base.word[0], out, err);
    if (a->base.words == 1)
        return err_set(err, ERR_ARGUMENT,
                       "%.60s: the call is missing; txrelay encode --list %.60s lists them",
                       a->base.word[0], a->base.word[0]);
    struct buf name = {0};
    buf_printf(&name, "%s.%s", a->base.word[0], a->base.word[1]);
    int rc = codec_call_from_json(md, buf_str(&name), a->base.word[2] ? a->base.word[2] : "{}", out,
                                  err);
    buf_done(&name);
    return rc;
}

/* A text in quotes: those inside are doubled. */
static void put_literal(struct buf *out, const char *text)
{
    buf_put_u8(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            buf_put_u8(out, '\'');
        buf_put_u8(out, (uint8_t)*text);
    }
    buf_put_u8(out, '\'');
}

static int print_sql(const char *account, const struct buf *call)
{
    struct buf line = {0};
    buf_puts(&line, "SELECT txrelay.enqueue(");
    put_literal(&line, account);
    buf_puts(&line, ", decode('"); /* whatever standard_conforming_strings says */
    hex_put(&line, call->data, call->len);
    buf_puts(&line, "', 'hex'));");
    puts(buf_str(&line));
    buf_done(&line);
    return EXIT_OK;
}

static int print_hex(const struct buf *call)
{
    struct buf text = {0};
    hex_put_0x(&text, call->data, call->len);
    puts(buf_str(&text));
    buf_done(&text);
    return EXIT_OK;
}

static int use(void *arg, const struct metadata *md)
{
    const struct args *a = arg;
    struct buf out = {0};
    struct err err = {0};
    int rc = a->list ? codec_list_calls(md, a->base.word[0], a->base.word[1], &out, &err)
                     : encode(a, md, &out, &err);
    if (rc)
        rc = cli_fail(&err);
    else if (a->list)
        fputs(buf_str(&out), stdout);
    else if (a->enqueue)
        rc = cli_enqueue(a->config.file->database.url, a->enqueue, &out);
    else
        rc = a->sql ? print_sql(a->sql, &out) : print_hex(&out);
    buf_done(&out);
    return rc;
}

static int run_encode(int argc, char **argv)
{
    struct args a = {0};
    struct buf pallet = {0};
    struct err err = {0};
    command_parse(&command_encode, argc, argv, &a.base);
    int rc = cli_load(&a.base.flags, a.enqueue != NULL, &a.config);
    if (rc)
        return rc;
    split_dotted(&a, &pallet);
    rc = read_input(&a, &err) ? cli_fail(&err)
                              : cli_with_metadata(a.base.metadata, &a.config, use, &a);
    config_done(&a.config);
    buf_done(&a.input);
    buf_done(&pallet);
    return rc;
}

const struct command command_encode = {
    .name = "encode",
    .without = COMMAND_WITHOUT_NAME | COMMAND_WITHOUT_CONTROL,
    .run = run_encode,
    .what = "make a call's bytes from pallet, call and JSON arguments",
    .options = options,
    .option = option,
    .complete = complete,
    .words_max = WORDS_MAX,
    .args_doc = "PALLET CALL [ARGUMENTS]\n--list [PALLET [CALL]]\n'{\"pallet\": .., \"call\": "
                ".., \"args\": ..}'",
    .doc = "Make a call's bytes by the chain's metadata. ARGUMENTS is a JSON object by names "
           "or array by position; \"-\" reads it from standard input. Accounts are SS58 or 0x "
           "text, bytes are 0x or text, large numbers are text, enums are \"Variant\" or "
           "{\"Variant\": fields}, a call in "
           "a call is "
           "{\"pallet\", \"call\", \"args\"} or 0x."};
