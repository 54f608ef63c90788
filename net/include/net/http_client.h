/* HTTP/1.1 as a client: one request, and the status of its answer. For receivers that nobody here
 * trusts: no redirect is followed, nothing of the answer's body is kept, and its head is bounded.
 *
 * The host is resolved once. Each address is shown to `allowed` before it is connected to, and it
 * is that very address that is connected to, so a name that means another address a moment later
 * changes nothing. Over TLS the certificate must be the host's. */
#ifndef NET_HTTP_CLIENT_H
#define NET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"
#include "net/tls.h"

struct http_call;

struct http_call_config {
    const char *url;         /* http:// or https://, without a user */
    const char *address;     /* to connect to, in place of the URL's host: unix:/path; NULL: none */
    struct tls_context *tls; /* a client's, of HTTP/1.1; borrowed. NULL: https is refused */
    const char *headers;     /* lines, each with CRLF */
    const void *body;        /* of a POST; copied */
    size_t len;
    uint32_t timeout_ms; /* from now to the end of the answer's head; 0: 10,000 */
    /* Not NULL: a GET, and the answer's body as it comes, however long it goes on. A silence of
     * timeout_ms ends it. Return false to end the call; do not cancel it from here. */
    bool (*on_part)(void *arg, int status, const void *data, size_t len);
    /* A numeric address: may it be connected to? If not, err says why. NULL: all may. */
    bool (*allowed)(void *arg, const char *address, bool tls, struct err *err);
    /* Once, from the loop: the status, or err->code is not 0 (ERR_NET: what happened; what
     * `allowed` says). Frees the call. */
    void (*on_done)(void *arg, int status, const struct err *err);
    void *arg;
};

/* NULL and *err (ERR_ARGUMENT): the URL is none. */
struct http_call *http_call_start(struct loop *l, const struct http_call_config *config,
                                  struct err *err);
void http_call_cancel(struct http_call *c); /* no callback follows */

#endif
