/* Hosts in addresses and URLs. Does a host name mean this machine? For warnings and for what only
 * this machine may do: a name that merely begins like an address of it ("127.evil.example") is
 * another machine. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "localhost", an IPv4 address in 127.0.0.0/8, or ::1 with or without brackets; `len` bytes. */
bool host_is_loopback(const char *host, size_t len);

/* The host in the `len` bytes HOST[:PORT]: returns its length and moves *host behind the bracket of
 * an IPv6 address. 0: not a host. *ret_port: where the port starts; NULL: there is none. */
size_t host_split(const char **host, size_t len, const char **ret_port);
/* A port in `len` bytes: digits alone, 1..65535. */
bool host_port(const char *text, size_t len, uint16_t *ret_port);

/* The host of SCHEME://HOST[:PORT][/...], in its text: brackets of an IPv6 address left out.
 * Length 0: there is none. */
const char *host_of_url(const char *url, size_t *ret_len);

/* A URL for messages, logs and status: scheme, host and port. A user, a path and a query may hold a
 * password or an access key: "***" stands for them. Also for a text that is no URL. The caller
 * frees it. */
char *host_url_shown(const char *url);

/* Is a numeric address one that the whole network knows? false: this machine, a private network, a
 * link, a group, an address for documents or for later, an IPv6 address that stands for such an
 * IPv4 one, or no address. */
bool host_address_is_public(const char *numeric);

#endif
