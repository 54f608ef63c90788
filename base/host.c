#include "base/host.h"
#include "base/alloc.h"

#include <arpa/inet.h>
#include <stdint.h>
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

bool host_port(const char *text, size_t len, uint16_t *ret_port)
{
    unsigned value = 0;
    if (len == 0 || len > 5)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    *ret_port = (uint16_t)value;
    return value >= 1 && value <= 65535;
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

/* ---- which addresses are public ---- */

/* The first `bits` of an address. */
struct block {
    uint8_t first[16];
    unsigned bits;
};

static bool within(const uint8_t *address, const struct block *b)
{
    unsigned whole = b->bits / 8, rest = b->bits % 8;
    uint8_t mask = (uint8_t)(0xff00u >> rest);
    return !memcmp(address, b->first, whole) &&
           (!rest || (address[whole] & mask) == (b->first[whole] & mask));
}

static bool is_public_4(const uint8_t a[4])
{
    static const struct block closed[] = {{{0}, 8},
                                          {{10}, 8},
                                          {{100, 64}, 10},
                                          {{127}, 8},
                                          {{169, 254}, 16},
                                          {{172, 16}, 12},
                                          {{192, 0, 0}, 24},
                                          {{192, 0, 2}, 24},
                                          {{192, 88, 99}, 24},
                                          {{192, 168}, 16},
                                          {{198, 18}, 15},
                                          {{198, 51, 100}, 24},
                                          {{203, 0, 113}, 24},
                                          {{224}, 4},
                                          {{240}, 4}};
    for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
        if (within(a, &closed[i]))
            return false;
    return true;
}

bool host_address_is_public(const char *numeric)
{
    static const struct block mapped = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96},
                              nat64 = {{0, 0x64, 0xff, 0x9b}, 96}, relayed = {{0x20, 0x02}, 16},
                              global = {{0x20}, 3};
    static const struct block closed[] = {
        {{0x20, 0x01, 0}, 23}, {{0x20, 0x01, 0x0d, 0xb8}, 32}, {{0x3f, 0xff}, 20}};
    uint8_t a[16];
    if (inet_pton(AF_INET, numeric, a) == 1)
        return is_public_4(a);
    if (inet_pton(AF_INET6, numeric, a) != 1)
        return false;
    if (within(a, &mapped) || within(a, &nat64))
        return is_public_4(a + 12);
    if (within(a, &relayed))
        return is_public_4(a + 2);
    for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
        if (within(a, &closed[i]))
            return false;
    return within(a, &global);
}
