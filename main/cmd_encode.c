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
    /* what is enqueued, by the metadata of so many endpoints */
    struct buf call, text;
    unsigned agreed;
    bool refused; /* the call is wrong, or the endpoints disagree */
};

enum { OPT_SQL = 1000 };

static const struct argp_option options[] = {
    COMMAND_OPTIONS_METADATA,
    {"list", 'L', NULL, 0, "list the pallets, the calls of PALLET, or CALL with all of its types",
     0},
    {"sql", OPT_SQL, "ACCOUNT", 0, "print the SELECT that enqueues it", 0},
    {"enqueue", 'q', "ACCOUNT", 0,
     "also enqueue it: prints its id, and what it is to standard error", 0},
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
    else
        rc = a->sql ? print_sql(a->sql, &out) : print_hex(&out);
    buf_done(&out);
    return rc;
}

/* ---- what is enqueued ---- */

static int differs(const struct args *a, const struct buf *call, struct err *err)
{
    struct buf one = {0}, other = {0};
    hex_put_0x(&one, a->call.data, a->call.len);
    hex_put_0x(&other, call->data, call->len);
    err_set(err, ERR_METADATA,
            "the endpoints disagree about the bytes of this call: %.60s by one, %.60s by another; "
            "nothing was enqueued",
            buf_str(&one), buf_str(&other));
    buf_done(&one);
    buf_done(&other);
    return err->code;
}

/* The call's bytes by this metadata: the same as by those before. */
static int agree(void *arg, const struct metadata *md)
{
    struct args *a = arg;
    struct buf out = {0};
    struct err err = {0};
    int rc = encode(a, md, &out, &err);
    if (rc == 0 && !a->agreed) {
        buf_put(&a->call, out.data, out.len);
        rc = codec_call_to_readable(md, out.data, out.len, &a->text, &err);
    } else if (rc == 0 && (out.len != a->call.len || memcmp(out.data, a->call.data, out.len))) {
        rc = differs(a, &out, &err);
    }
    buf_done(&out);
    a->agreed += rc == 0;
    a->refused = rc != 0;
    return rc ? cli_fail(&err) : 0;
}

/* A node decides which bytes a name stands for, and bytes are all that is enqueued: where several
 * are given, two must say the same. */
static int ask_all(struct args *a)
{
    const struct config_chain *c = &a->config.file->chain;
    int rc = EXIT_FAILED;
    for (uint32_t i = 0; i < c->endpoints_count && !a->refused; i++) {
        struct config_file file = *a->config.file;
        file.chain.endpoints = &c->endpoints[i];
        file.chain.endpoints_count = 1;
        rc = cli_with_metadata(NULL, &(struct config){.file = &file}, agree, a);
    }
    if (a->refused || !a->agreed)
        return rc;
    if (a->agreed > 1 || c->endpoints_count == 1)
        return EXIT_OK;
    fprintf(stderr,
            "txrelay: one endpoint of %u answered, and two must agree about the bytes of a call: "
            "correct the others, or give --metadata or one --node; nothing was enqueued\n",
            c->endpoints_count);
    return EXIT_FAILED;
}

static int enqueue(struct args *a)
{
    bool nodes = !a->base.metadata && a->config.file->chain.endpoints_count;
    int rc = nodes ? ask_all(a) : cli_with_metadata(a->base.metadata, &a->config, agree, a);
    if (rc == EXIT_OK) {
        struct buf hex = {0};
        hex_put_0x(&hex, a->call.data, a->call.len);
        fprintf(stderr, "txrelay: enqueues %s for %s: %s\n", buf_str(&a->text), a->enqueue,
                buf_str(&hex));
        buf_done(&hex);
        rc = cli_enqueue(a->config.file->database.url, a->enqueue, &a->call);
    }
    buf_done(&a->call);
    buf_done(&a->text);
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
    if (read_input(&a, &err))
        rc = cli_fail(&err);
    else
        rc = a.enqueue ? enqueue(&a) : cli_with_metadata(a.base.metadata, &a.config, use, &a);
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
