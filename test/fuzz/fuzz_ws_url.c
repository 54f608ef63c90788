/* Any text as the URL of a node: refused with a reason, or a host, a port and a path that came from
 * it. The same text as a host with a port, and as what may be printed of it. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/host.h"
#include "ws_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void split(const char *text, size_t len)
{
    const char *host = text, *port;
    size_t n = host_split(&host, len, &port);
    INVARIANT(host >= text && host + n <= text + len);
    INVARIANT(!port || (port >= host + n && port <= text + len));
    (void)host_is_loopback(text, len);
    host = host_of_url(text, &n);
    INVARIANT(!n || (host >= text && host + n <= text + len));
}

/* A secret in front of the host, behind it, or in a query is never shown. */
static void shown(const char *text)
{
    static const char secret[] = "s3cret-K";
    char *with[] = {xasprintf("wss://u:%s@%s", secret, text),
                    xasprintf("ws://h/%s%s", secret, text),
                    xasprintf("ws://h?%s&k=%s", text, secret), xasprintf("%s@%s", secret, text)};
    for (size_t i = 0; i < ARRAY_LEN(with); i++) {
        char *out = host_url_shown(with[i]);
        struct ws_url url;
        struct err err = {0};
        INVARIANT(strstr(text, secret) || !strstr(out, secret));
        if (ws__url_parse(with[i], "node", &url, &err) == 0)
            ws__url_done(&url);
        else
            INVARIANT(strstr(text, secret) || !strstr(err.text, secret));
        free(out);
        free(with[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = xstrndup((const char *)data, size);
    struct ws_url url = {0};
    struct err err = {0};
    if (ws__url_parse(text, "node", &url, &err) == 0) {
        INVARIANT(url.port && url.host[0] && url.path[0] == '/');
        INVARIANT(strstr(text, url.host) && !strpbrk(url.host, "/?@# "));
    } else {
        INVARIANT(!url.host && !url.path && err.code == ERR_CONFIG && err.text[0]);
    }
    ws__url_done(&url);
    split(text, strlen(text));
    shown(text);
    free(text);
    return 0;
}
