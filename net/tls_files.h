/* Private to net/: what TLS demands of its files. */
#ifndef NET_TLS_FILES_H
#define NET_TLS_FILES_H

#include <openssl/x509.h>

#include "base/error.h"

struct buf;

/* ERR_CONFIG: the key cannot be read, or others than its owner can read it. */
int tls__files_key(const char *path, struct err *err);
/* ERR_CONFIG: it has expired, is not valid yet, or lacks this DNS name (NULL: it may have any). */
int tls__files_own(const char *path, const X509 *cert, const char *name, struct err *err);
/* ERR_CONFIG: no certificate of the file can accept anybody: there is none, they have expired, or
 * the file lacks the certificate that signed them. */
int tls__files_authorities(const char *path, struct err *err);
/* "/CN=relay.example, until 2027-01-31 12:00:00 UTC" */
void tls__files_shown(const X509 *cert, struct buf *out);
/* Certificates that expire within two weeks, and authorities that can accept nobody. own and
 * ca_file may be NULL. */
void tls__files_cautions(const char *cert_file, X509 *own, const char *ca_file,
                         void (*each)(void *arg, const char *text), void *arg);

#endif
