/* txrelay keys: make a key file, or show the public side of one. */
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "cli.h"
#include "command.h"

enum { OPT_SCHEME = 1000, OPT_PREFIX };

struct args {
    struct arguments base;
    const char *scheme;
    unsigned prefix;
};

static error_t option(struct arguments *base, int key, char *arg, struct argp_state *state)
{
    struct args *a = (struct args *)base;
    switch (key) {
    case OPT_SCHEME:
        a->scheme = arg;
        return 0;
    case OPT_PREFIX:
        a->prefix = (unsigned)command_number(state, "--prefix", arg, 0, SS58_PREFIX_MAX);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int show(const char *path, enum key_scheme scheme, unsigned prefix)
{
    struct keypair *key;
    struct err err = {0};
    if (keypair_from_file(path, scheme, &key, &err))
        return cli_fail(&err);
    size_t public_len, id_len;
    const uint8_t *public = keypair_public(key, &public_len);
    const uint8_t *id = keypair_account_id(key, &id_len);
    struct buf text = {0};
    hex_put_0x(&text, public, public_len);
    printf("scheme      %s\npublic key  %s\n", key_scheme_name(scheme), buf_str(&text));
    printf("account id  %s\n", hex_log(id, id_len));
    if (id_len == 32) {
        char address[SS58_TEXT_MAX];
        ss58_encode(id, (uint16_t)prefix, address);
        printf("address     %s (prefix %u)\n", address, prefix);
    }
    buf_done(&text);
    keypair_free(key);
    return EXIT_OK;
}

static const struct argp_option options[] = {
    {"scheme", OPT_SCHEME, "NAME", 0, "sr25519 (default), ed25519, ecdsa or ethereum", 0},
    {"prefix", OPT_PREFIX, "N", 0, "SS58 prefix of the address shown (default 42)", 0},
    {0}};

static int run_keys(int argc, char **argv)
{
    struct args a = {.scheme = "sr25519", .prefix = 42};
    struct err err = {0};
    enum key_scheme scheme;
    command_parse(&command_keys, argc, argv, &a.base);
    const char *verb = a.base.word[0], *path = a.base.word[1];
    if (!key_scheme_parse(a.scheme, &scheme)) {
        fprintf(stderr, "txrelay: --scheme is '%s'; it must be one of: %s\n", a.scheme,
                key_scheme_names());
        return EXIT_USAGE;
    }
    if (!strcmp(verb, "new") && key_file_new(path, &err))
        return cli_fail(&err);
    if (!strcmp(verb, "new") || !strcmp(verb, "show"))
        return show(path, scheme, a.prefix);
    fprintf(stderr, "txrelay: the verb is '%s'; it must be new or show\n", verb);
    return EXIT_USAGE;
}

const struct command command_keys = {
    .name = "keys",
    .run = run_keys,
    .what = "create and inspect key files",
    .options = options,
    .option = option,
    .words_min = 2,
    .words_max = 2,
    .missing = "keys needs a verb and a file",
    .args_doc = "new|show FILE",
    .doc = "new: write a fresh random key into FILE (mode 0600, must not exist). show: print "
           "the public key and the address of the key in FILE. The secret is never printed.",
    .local = true};
