/* Private to net/: one TLS connection between two byte queues. No socket. */
#ifndef NET_TLS_INTERNAL_H
#define NET_TLS_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "net/tls.h"

struct tls_session;

/* host: the name that a client demands in the server's certificate; NULL for a server. */
struct tls_session *tls__session_new(struct tls_context *t, const char *host);
struct tls_session *tls__session_free(struct tls_session *s);
/* The client's first bytes. */
int tls__session_start(struct tls_session *s, struct err *err);
/* Takes bytes of the wire and gives what they contain to `plain`, which may return false: then
 * nothing more is taken. What is to be sent is in tls__session_out, also after a failure. */
int tls__session_feed(struct tls_session *s, const uint8_t *data, size_t len,
                      bool (*plain)(void *arg, const uint8_t *data, size_t len), void *arg,
                      struct err *err);
int tls__session_put(struct tls_session *s, const uint8_t *data, size_t len, struct err *err);
void tls__session_goodbye(struct tls_session *s); /* close_notify */
size_t tls__session_out(struct tls_session *s, const uint8_t **ret_data);
void tls__session_sent(struct tls_session *s); /* what tls__session_out gave is on its way */
bool tls__session_up(const struct tls_session *s);
/* The names in the peer's certificate, "DNS:a, URI:b"; "" without one. */
const char *tls__session_identity(const struct tls_session *s);

#endif
