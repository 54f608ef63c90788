#include "config_address.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/host.h"
#include "loop/peer.h"

static int listens(const char *key, char **address, struct err *err)
{
    struct err why = {0};
    if (!*address)
        return 0;
    if (strncmp(*address, "tcp:", 4) != 0 && strncmp(*address, "unix:", 5) != 0) {
        char *bare = *address;
        *address = xasprintf("tcp:%s", bare);
        free(bare);
    }
    if (loop_address_check(*address, &why) == 0)
        return 0;
    return err_set(err, ERR_CONFIG, "%s: %s", key, why.text);
}

/* HOST[:PORT], with a name of a machine or its number. */
static bool is_host(const char *text, const char **ret_port)
{
    const char *host = text;
    size_t len = host_split(&host, strlen(text), ret_port);
    const char *marks = host == text ? ".-_" : ":.%"; /* a number in brackets */
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)host[i]) && !strchr(marks, host[i]))
            return false;
    return len > 0 && len + 2 * (size_t)(host - text) < 256;
}

static int reached_by(const char *key, const char *address, struct err *err)
{
    const char *port = NULL;
    uint16_t number;
    if (!address || (is_host(address, &port) && port && host_port(port, strlen(port), &number)))
        return 0;
    return err_set(err, ERR_CONFIG,
                   "%s: '%.80s' is not HOST:PORT (a name or a number; [NUMBER]:PORT where it has "
                   "colons)",
                   key, address);
}

static int targets(const struct config_sites *s, struct err *err)
{
    for (uint32_t i = 0; i < s->peers_count; i++)
        for (uint32_t j = 0; j < s->peers[i].targets_count; j++)
            if (reached_by("sites.peers: targets", s->peers[i].targets[j], err))
                return err->code;
    return 0;
}

int config__addresses(struct config_file *f, struct err *err)
{
    const char *host = f->http.host, *port = NULL;
    if (listens("control", &f->control, err) || listens("metrics", &f->metrics, err) ||
        listens("feeds.listen", &f->feeds.listen, err) ||
        listens("http.listen", &f->http.listen, err) ||
        listens("sites.listen", &f->sites.listen, err) ||
        reached_by("feeds.address", f->feeds.address, err) ||
        reached_by("sites.address", f->sites.address, err) || targets(&f->sites, err))
        return err->code;
    if (host && (!is_host(host, &port) || port))
        return err_set(
            err, ERR_CONFIG,
            "http.host: '%.80s' is not the name or the number of a machine, without a port", host);
    return 0;
}
