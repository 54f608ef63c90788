/* TLS for HTTP: certificates and keys from PEM files, mutual where a ca_file is given. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include <stdbool.h>

#include "base/error.h"

struct buf;
struct tls_context;

struct tls_config {
    bool server;
    bool http1;            /* HTTP/1.1; otherwise the protocol is HTTP/2 alone */
    const char *cert_file; /* the own certificate and its chain; a client may have none */
    const char *key_file;
    const char *own_name; /* a DNS name that the own certificate must have; NULL: any */
    /* Server: a peer must show a certificate that one of these signed; NULL: it need not show any.
     * Client: who may have signed the server's certificate; NULL: the system's. */
    const char *ca_file;
};

/* NULL: err (ERR_CONFIG) names the file: it is not there, or no PEM; the key is not the
 * certificate's, has a passphrase, or others can read it; the certificate has expired, is not valid
 * yet or lacks own_name; no certificate of ca_file can accept anybody. The strings are copied. */
struct tls_context *tls_context_new(const struct tls_config *config, struct err *err);
/* Reads the files again; new connections use them. If it fails, for the same reasons, the old ones
 * stay in force. */
int tls_context_reload(struct tls_context *t, struct err *err);
struct tls_context *tls_context_free(struct tls_context *t); /* connections go on */
/* ERR_CONFIG where a server would listen in cleartext beyond this machine. t: NULL: without TLS. */
int tls_listen_check(const struct tls_context *t, const char *address, struct err *err);

/* The own certificate, for people: its subject, and until when it is valid; "" without one. */
void tls_context_shown(const struct tls_context *t, struct buf *out);
/* Certificates that expire within two weeks, and those of ca_file that can accept nobody. */
void tls_context_cautions(const struct tls_context *t, void (*each)(void *arg, const char *text),
                          void *arg);

#endif
