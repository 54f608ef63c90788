/* txrelay decode: a call's or an extrinsic's bytes as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "chain/codec/codec.h"
#include "chain/codec/extrinsic.h"
#include "cli.h"
#include "command.h"

enum form { FORM_ANY, FORM_CALL, FORM_EXTRINSIC };
enum { OPT_CALL = 1000, OPT_EXTRINSIC, OPT_PLAIN, OPT_JSON };

struct args {
    struct arguments base;
    enum form form;
    bool plain, line;
    struct buf bytes;
};

static const struct argp_option options[] = {
    COMMAND_OPTIONS_METADATA,
    {"call", OPT_CALL, NULL, 0, "the bytes are a call", 0},
    {"extrinsic", OPT_EXTRINSIC, NULL, 0,
     "the bytes are an extrinsic (default: what fits, this first)", 0},
    {"plain", OPT_PLAIN, NULL, 0,
     "accounts and all bytes as 0x, calls as {\"Pallet\": {\"call\": ..}}", 0},
    {"json", OPT_JSON, NULL, 0, "on one line, for programs", 0},
    {0}};

static error_t option(struct arguments *base, int key, char *arg, struct argp_state *state)
{
    struct args *a = (struct args *)base;
    (void)arg;
    (void)state;
    switch (key) {
    case OPT_CALL:
    case OPT_EXTRINSIC:
        a->form = key == OPT_CALL ? FORM_CALL : FORM_EXTRINSIC;
        return 0;
    case OPT_PLAIN:
        a->plain = true;
        return 0;
    case OPT_JSON:
        a->line = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int read_bytes(struct args *a, struct err *err)
{
    struct buf input = {0};
    const char *text = a->base.word[0];
    int rc = 0;
    if (strcmp(text, "-") == 0) {
        rc = cli_read(stdin, "standard input", &input, err);
        text = buf_str(&input);
    }
    size_t blank = strspn(text, " \t\r\n");
    size_t len = strcspn(text + blank, " \t\r\n");
    if (rc == 0 && (!hex_decode(text + blank, len, &a->bytes) || !a->bytes.len))
        rc = err_set(err, ERR_ARGUMENT, "'%.40s' is not 0x and an even count of hexadecimal digits",
                     text + blank);
    buf_done(&input);
    return rc;
}

/* If it starts with its length and a version, as an extrinsic does, report the refusal as an
 * extrinsic. */
static bool looks_like_extrinsic(const struct buf *bytes)
{
    enum { VERSION_BITS = 0x3f };
    struct scale_in in = scale_in_of(bytes->data, bytes->len);
    size_t len = scale_get_len(&in);
    bool whole = !in.bad && len == scale_left(&in);
    unsigned version = scale_get_u8(&in) & VERSION_BITS;
    return whole && (version == 4 || version == 5);
}

static int decode(const struct args *a, const struct metadata *md, struct buf *out, struct err *err)
{
    const struct buf *b = &a->bytes;
    struct err as_call = {0};
    int rc = ERR_DECODE;
    if (a->form != FORM_CALL)
        rc = extrinsic_to_json(md, b->data, b->len, a->plain, out, err);
    if (rc == 0 || a->form == FORM_EXTRINSIC)
        return rc;
    rc = a->plain ? codec_call_to_json(md, b->data, b->len, out, &as_call)
                  : codec_call_to_readable(md, b->data, b->len, out, &as_call);
    if (rc == 0 || a->form == FORM_CALL || !looks_like_extrinsic(b))
        *err = as_call;
    return rc;
}

static int print(const struct args *a, struct buf *out)
{
    const size_t ascii = JSON_ENSURE_ASCII; /* no control sequence reaches the terminal */
    json_error_t at;
    json_t *json = json_loadb((const char *)out->data, out->len, JSON_ALLOW_NUL, &at);
    char *text = json ? json_dumps(json, ascii | (a->line ? JSON_COMPACT : JSON_INDENT(2))) : NULL;
    if (!text)
        fprintf(stderr, "txrelay: the metadata has names that cannot be shown as JSON: %s\n",
                at.text);
    else
        puts(text);
    int rc = text ? EXIT_OK : EXIT_FAILED;
    free(text);
    json_decref(json);
    return rc;
}

static int use(void *arg, const struct metadata *md)
{
    struct args *a = arg;
    struct buf out = {0};
    struct err err = {0};
    int rc = decode(a, md, &out, &err) ? cli_fail(&err) : print(a, &out);
    buf_done(&out);
    return rc;
}

static int run_decode(int argc, char **argv)
{
    struct args a = {0};
    struct config config;
    struct err err = {0};
    int rc = command_start(&command_decode, argc, argv, &a.base, false, &config);
    if (rc)
        return rc;
    rc = read_bytes(&a, &err) ? cli_fail(&err)
                              : cli_with_metadata(a.base.metadata, &config, use, &a);
    buf_done(&a.bytes);
    config_done(&config);
    return rc;
}

const struct command command_decode = {
    .name = "decode",
    .without = COMMAND_WITHOUT_DATABASE | COMMAND_WITHOUT_NAME | COMMAND_WITHOUT_CONTROL,
    .run = run_decode,
    .what = "show a call or an extrinsic as JSON",
    .options = options,
    .option = option,
    .words_min = 1,
    .words_max = 1,
    .missing = "the bytes are missing: 0x and hexadecimal digits, or - for standard input",
    .args_doc = "0x..|-",
    .doc = "Show a call or a whole extrinsic as JSON, by the chain's metadata. txrelay encode "
           "makes the same bytes of a call's JSON."};
