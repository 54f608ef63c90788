/* ws://host[:port][/path] and wss://...; IPv6 hosts in brackets. */
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

static bool port_parse(const char *text, size_t len, uint16_t *ret_port)
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
        if ((unsigned char)*p <= ' ' || *p == '@' || *p == '#')
            return refuse(err, &source, "has a character that does not belong there");
    size_t authority = strcspn(rest, "/?");
    const char *host = rest;
    const char *port;
    size_t host_len = host_split(&host, authority, &port);
    if (host_len == 0 || host_len > HOST_MAX)
        return refuse(err, &source, "has no usable host");
    url.port = url.tls ? 443 : 80;
    if (port && !port_parse(port, (size_t)(rest + authority - port), &url.port))
        return refuse(err, &source, "has no usable port");
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
    *url = (struct ws_url){0};
}
