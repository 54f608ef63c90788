#include "base/host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

bool host_is_loopback(const char *host, size_t len)
{
    static const char name[] = "localhost";
    char text[INET6_ADDRSTRLEN + 2];
    unsigned char v4[4];
    struct in6_addr v6;
    if (len == sizeof(name) - 1 && !strncasecmp(host, name, len))
        return true;
    if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
        host++;
        len -= 2;
    }
    if (len >= sizeof(text))
        return false;
    memcpy(text, host, len);
    text[len] = 0;
    if (inet_pton(AF_INET, text, v4) == 1)
        return v4[0] == 127;
    return inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

const char *host_of_url(const char *url, size_t *ret_len)
{
    const char *scheme = strstr(url, "://");
    const char *host = scheme ? scheme + 3 : url;
    size_t authority = strcspn(host, "/?#");
    const char *at = memchr(host, '@', authority);
    *ret_len = 0;
    if (!scheme)
        return host;
    if (at) { /* what stands before it is a user, not a host */
        authority -= (size_t)(at + 1 - host);
        host = at + 1;
    }
    if (authority && host[0] == '[') {
        const char *close = memchr(host, ']', authority);
        if (close)
            *ret_len = (size_t)(close - host - 1);
        return host + 1;
    }
    const char *colon = memchr(host, ':', authority);
    *ret_len = colon ? (size_t)(colon - host) : authority;
    return host;
}
