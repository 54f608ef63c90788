/* `txrelay tail --http`: the same lines from a relay's HTTP interface, by a token and without the
 * database. */
#ifndef MAIN_TAIL_HTTP_H
#define MAIN_TAIL_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct tail_http_config {
    const char *address;    /* unix:/path, http://HOST:PORT of this machine, https://HOST:PORT */
    const char *token_file; /* its first line is the token */
    /* https: who signed the relay's certificate (NULL: one that the system trusts); the own
     * certificate and its key, for relays that demand one. */
    const char *ca_file, *cert_file, *key_file;
    const char *account; /* NULL: all */
    int64_t id;          /* 0: all */
    const char *since;   /* NULL: from now on */
    bool json;
};

/* Until a signal, or until the reader of standard output has gone; an exit code. */
int tail_http(const struct tail_http_config *config);

#endif
