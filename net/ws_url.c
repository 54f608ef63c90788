/* ws://[user:password@]host[:port][/path][?query] and wss://...; IPv6 hosts in brackets. In user
 * and password %40 stands for @, and so on. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/host.h"
#include "ws_internal.h"

enum { HOST_MAX = 255, URL_MAX = 2048 };

/* What is being parsed, for refusals. */
struct source {
    const char *text;
    const char *peer;
};

static int refuse(struct err *err, const struct source *source, const char *why)
{
    char *shown = host_url_shown(source->text);
    err_set(err, ERR_CONFIG, "%s url \"%.100s\": %s; write ws://host:port or wss://host:port",
            source->peer, shown, why);
    free(shown);
    return ERR_CONFIG;
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c | 0x20) : NULL;
    return at && (c <= '9' || c >= 'A') ? (int)(at - digits) : -1;
}

/* "user:password" with its %-escapes replaced. NULL: a bad escape, a control character, or no
 * user. */
static char *credentials_of(const char *text, size_t len)
{
    char *out = xcalloc(1, len + 2);
    size_t n = 0, user = 0;
    bool good = true;
    for (size_t i = 0; i < len && good; i++) {
        char c = text[i];
        bool escaped = c == '%';
        if (escaped) {
            int high = i + 2 < len ? hex_digit(text[i + 1]) : -1,
                low = i + 2 < len ? hex_digit(text[i + 2]) : -1;
            good = high >= 0 && low >= 0;
            c = good ? (char)(high << 4 | low) : 0;
            i += 2;
        }
        good = good && (unsigned char)c >= ' ' && c != 0x7f;
        if (c == ':' && !user) {
            good = good && !escaped && n > 0; /* of a user's name nothing may be mistaken for it */
            user = n;
        }
        out[n++] = c;
    }
    if (!user)
        out[n++] = ':';
    if (good && n > 1)
        return out;
    explicit_bzero(out, len + 2);
    free(out);
    return NULL;
}

int ws__url_parse(const char *text, const char *peer, struct ws_url *ret_url, struct err *err)
{
    struct source source = {text, peer};
    struct ws_url url = {0};
    const char *rest;
    if (strlen(text) > URL_MAX)
        return refuse(err, &source, "is too long");
    if (strncmp(text, "ws://", 5) == 0)
        rest = text + 5;
    else if (strncmp(text, "wss://", 6) == 0)
        rest = text + 6;
    else
        return refuse(err, &source, "has another scheme");
    url.tls = text[2] == 's';
    for (const char *p = rest; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == '#')
            return refuse(err, &source, "has a character that does not belong there");
    size_t authority = strcspn(rest, "/?"), query = strcspn(rest, "?");
    const char *user = rest, *at = memchr(rest, '@', authority), *port;
    if (memchr(rest + authority, '@', query - authority) ||
        (at && memchr(at + 1, '@', authority - (size_t)(at + 1 - rest))))
        return refuse(err, &source,
                      "has an @ that does not belong there (in a password or path it is %40, and "
                      "/ in a password is %2F)");
    if (at) {
        authority -= (size_t)(at + 1 - rest);
        rest = at + 1;
    }
    const char *host = rest;
    size_t host_len = host_split(&host, authority, &port);
    if (host_len == 0 || host_len > HOST_MAX)
        return refuse(err, &source, "has no usable host");
    url.port = url.tls ? 443 : 80;
    if (port && !host_port(port, (size_t)(rest + authority - port), &url.port))
        return refuse(err, &source, "has no usable port");
    if (at && !(url.credentials = credentials_of(user, (size_t)(at - user))))
        return refuse(err, &source, "has no usable user and password");
    url.host = xstrndup(host, host_len);
    url.path =
        rest[authority] == '/' ? xstrdup(rest + authority) : xasprintf("/%s", rest + authority);
    *ret_url = url;
    return 0;
}

void ws__url_done(struct ws_url *url)
{
    free(url->host);
    free(url->path);
    if (url->credentials)
        explicit_bzero(url->credentials, strlen(url->credentials));
    free(url->credentials);
    *url = (struct ws_url){0};
}

int ws_url_check(const char *url, const char *peer, struct err *err)
{
    struct ws_url parsed;
    if (ws__url_parse(url, peer, &parsed, err))
        return err->code;
    ws__url_done(&parsed);
    return 0;
}
