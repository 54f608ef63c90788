/* For a check of our keys by an independent implementation: reads lines "scheme uri msghex" from
 * standard input (the URI has _ for each blank; msghex
 * is 0x for an empty message) and answers each with "publichex sighex", or "error text". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hex.h"
#include "chain/keys/keys.h"

static void answer(struct keypair *key, const struct buf *msg)
{
    struct buf out = {0};
    uint8_t sig[KEY_SIG_MAX];
    size_t public_len;
    const uint8_t *public_key = keypair_public(key, &public_len);
    size_t sig_len = keypair_sign(key, msg->data, msg->len, sig);
    hex_put_0x(&out, public_key, public_len);
    buf_puts(&out, " ");
    hex_put_0x(&out, sig, sig_len);
    puts(buf_str(&out));
    buf_done(&out);
}

static void handle(char *line)
{
    char *rest = line;
    const char *scheme_name = strsep(&rest, " \n");
    char *uri = strsep(&rest, " \n");
    const char *hex = strsep(&rest, " \n");
    enum key_scheme scheme;
    struct keypair *key = NULL;
    struct buf msg = {0};
    struct err err;
    err_clear(&err);
    for (char *p = uri; p && *p; p++)
        if (*p == '_')
            *p = ' ';
    if (!uri || !hex || !key_scheme_parse(scheme_name, &scheme) ||
        !hex_decode(hex, strlen(hex), &msg))
        puts("error line is not: scheme uri msghex");
    else if (keypair_from_uri(uri, scheme, &key, &err) != 0)
        printf("error %s\n", err.text);
    else
        answer(key, &msg);
    keypair_free(key);
    buf_done(&msg);
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, stdin) > 0) {
        handle(line);
        fflush(stdout);
    }
    free(line);
    return 0;
}
