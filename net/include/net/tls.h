/* TLS 1.3 for HTTP/2: certificates and keys from PEM files, mutual where a ca_file is given. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include <stdbool.h>

#include "base/error.h"

struct tls_context;

struct tls_config {
    bool server;
    const char *cert_file; /* the own certificate and its chain; a client may have none */
    const char *key_file;
    /* Server: a peer must show a certificate that one of these signed; NULL: it need not show any.
     * Client: who may have signed the server's certificate; NULL: the system's. */
    const char *ca_file;
};

/* NULL: err (ERR_CONFIG) names the file. The strings are copied. */
struct tls_context *tls_context_new(const struct tls_config *config, struct err *err);
/* Reads the files again; new connections use them. If it fails, the old ones stay in force. */
int tls_context_reload(struct tls_context *t, struct err *err);
struct tls_context *tls_context_free(struct tls_context *t); /* connections go on */

#endif
