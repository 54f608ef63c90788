#include "base/host.h"
#include "base/alloc.h"

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

size_t host_split(const char **host, size_t len, const char **ret_port)
{
    const char *end = *host + len;
    *ret_port = NULL;
    if (len && **host == '[') {
        const char *close = memchr(*host, ']', len);
        if (!close || (close + 1 < end && close[1] != ':'))
            return 0;
        if (close + 1 < end)
            *ret_port = close + 2;
        (*host)++;
        return (size_t)(close - *host);
    }
    const char *colon = memchr(*host, ':', len);
    if (!colon)
        return len;
    *ret_port = colon + 1;
    return (size_t)(colon - *host);
}

const char *host_of_url(const char *url, size_t *ret_len)
{
    const char *scheme = strstr(url, "://"), *host = scheme ? scheme + 3 : url, *port;
    size_t authority = scheme ? strcspn(host, "/?#") : 0;
    const char *at = memchr(host, '@', authority);
    if (at) { /* what stands before it is a user, not a host */
        authority -= (size_t)(at + 1 - host);
        host = at + 1;
    }
    *ret_len = host_split(&host, authority, &port);
    return host;
}

char *host_url_shown(const char *url)
{
    const char *scheme = strstr(url, "://"), *rest = scheme ? scheme + 3 : url;
    size_t authority = strcspn(rest, "/?#");
    const char *at = strrchr(rest, '@');
    if (scheme && strcspn(url, "/?#@") < (size_t)(scheme - url)) /* no scheme */
        return xstrdup("***");
    if (at && at >= rest + authority) /* it is unclear where a password ends */
        return xasprintf("%.*s***", (int)(rest - url), url);
    const char *host = at ? at + 1 : rest;
    const char *path = rest + authority;
    return xasprintf("%.*s%s%.*s%s", (int)(rest - url), url, at ? "***@" : "", (int)(path - host),
                     host,
                     !*path               ? ""
                     : !strcmp(path, "/") ? "/"
                                          : "/***");
}
