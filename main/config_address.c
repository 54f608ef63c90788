#include "config_address.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "loop/peer.h"

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static int listens(const char *key, char **address, struct err *err)
{
    struct err why = {0};
    if (!*address)
        return 0;
    if (!begins(*address, "tcp:") && !begins(*address, "unix:")) {
        char *bare = *address;
        *address = xasprintf("tcp:%s", bare);
        free(bare);
    }
    if (loop_address_check(*address, &why) == 0)
        return 0;
    return err_set(err, ERR_CONFIG, "%s: %s", key, why.text);
}

/* A name of a machine, or its number; one with colons is in brackets. */
static bool is_host(const char *text, size_t len)
{
    bool number = len > 2 && text[0] == '[' && text[len - 1] == ']';
    for (size_t i = number; i < len - number; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr(number ? ":.%" : ".-_", text[i]))
            return false;
    return len > 0 && len < 256;
}

static bool is_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    unsigned long port = strtoul(text, NULL, 10);
    return digits && digits < 6 && !text[digits] && port > 0 && port < 65536;
}

static int reached_by(const char *key, const char *address, struct err *err)
{
    const char *colon = address ? strrchr(address, ':') : NULL;
    if (!address || (colon && is_host(address, (size_t)(colon - address)) && is_port(colon + 1)))
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
    const char *host = f->http.host;
    if (listens("control", &f->control, err) || listens("metrics", &f->metrics, err) ||
        listens("feeds.listen", &f->feeds.listen, err) ||
        listens("http.listen", &f->http.listen, err) ||
        listens("sites.listen", &f->sites.listen, err) ||
        reached_by("feeds.address", f->feeds.address, err) ||
        reached_by("sites.address", f->sites.address, err) || targets(&f->sites, err))
        return err->code;
    if (host && !is_host(host, strlen(host)))
        return err_set(
            err, ERR_CONFIG,
            "http.host: '%.80s' is not the name or the number of a machine, without a port", host);
    return 0;
}
