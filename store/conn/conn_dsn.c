/* The connection string taken apart: libpq gets one address at a time from us, so the host list is
 * ours. PQconninfoParse does the reading; PGHOST and its like join in where the string is silent,
 * as they would inside libpq. A service file is read by libpq itself, later and with blocking
 * reads. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "conn/conn_internal.h"

enum { TIMEOUT_MAX_S = 3600 };

static void add(struct conn_dsn *d, const char *key, const char *value)
{
    d->keys = xrealloc(d->keys, (d->count + 1) * sizeof(char *));
    d->values = xrealloc(d->values, (d->count + 1) * sizeof(char *));
    d->keys[d->count] = xstrdup(key);
    d->values[d->count++] = xstrdup(value);
}

bool conn__dsn_has(const struct conn_dsn *d, const char *key)
{
    for (size_t i = 0; i < d->count; i++)
        if (!strcmp(d->keys[i], key))
            return true;
    return false;
}

/* Item i of a comma list, NULL when it is empty or the list is shorter. */
static char *list_item(const char *list, size_t i)
{
    for (; i; i--) {
        list = strchr(list, ',');
        if (!list)
            return NULL;
        list++;
    }
    size_t len = strcspn(list, ",");
    return len ? xstrndup(list, len) : NULL;
}

static size_t list_count(const char *list)
{
    size_t n = 1;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

static int split_hosts(struct conn_dsn *d, const char *host, const char *hostaddr, const char *port,
                       struct err *err)
{
    size_t hosts = list_count(host), addrs = list_count(hostaddr), ports = list_count(port);
    size_t n = *hostaddr ? addrs : hosts;
    if (*host && *hostaddr && hosts != addrs)
        return err_set(err, ERR_CONFIG, "connection string names %zu hosts but %zu hostaddr values",
                       hosts, addrs);
    if (ports != 1 && ports != n)
        return err_set(
            err, ERR_CONFIG,
            "connection string names %zu ports for %zu hosts: give one port for all, or one each",
            ports, n);
    d->hosts = xcalloc(n, sizeof(*d->hosts));
    d->host_count = n;
    for (size_t i = 0; i < n; i++) {
        d->hosts[i].host = *host ? list_item(host, i) : NULL;
        d->hosts[i].hostaddr = *hostaddr ? list_item(hostaddr, i) : NULL;
        d->hosts[i].port = list_item(port, ports == 1 ? 0 : i);
    }
    return 0;
}

static const char *value_or_env(const PQconninfoOption *o)
{
    const char *v = o->val;
    if (!v && o->envvar)
        v = getenv(o->envvar);
    return v ? v : "";
}

/* Returns true when the option was dealt with here. */
static bool take_option(struct conn_dsn *d, const PQconninfoOption *o, const char **host,
                        const char **addr, const char **port)
{
    if (!strcmp(o->keyword, "host"))
        *host = value_or_env(o);
    else if (!strcmp(o->keyword, "hostaddr"))
        *addr = value_or_env(o);
    else if (!strcmp(o->keyword, "port"))
        *port = value_or_env(o);
    else if (!strcmp(o->keyword, "target_session_attrs") &&
             (!strcmp(value_or_env(o), "read-write") || !strcmp(value_or_env(o), "primary")))
        d->want_primary = true;
    else
        return false;
    return true;
}

/* Seconds. 0: it is not given, or libpq would wait for ever, which none of ours does. */
static int take_timeout(struct conn_dsn *d, const PQconninfoOption *o, struct err *err)
{
    const char *text = value_or_env(o);
    char *end;
    long s = strtol(text, &end, 10);
    if (*end || s < 0 || s > TIMEOUT_MAX_S)
        return err_set(err, ERR_CONFIG,
                       "connect_timeout of the connection string is '%.40s'; it must be a whole "
                       "number of seconds from 1 to %d",
                       text, TIMEOUT_MAX_S);
    d->connect_timeout_ms = (uint32_t)s * 1000;
    return 0;
}

bool conn__dsn_is_ambiguous(const char *text)
{
    const char *scheme = !strncmp(text, "postgres://", 11)     ? text + 11
                         : !strncmp(text, "postgresql://", 13) ? text + 13
                                                               : NULL;
    if (!scheme)
        return false;
    const char *rest = scheme + strcspn(scheme, "@/");
    rest += *rest == '@';
    return memchr(rest, '@', strcspn(rest, "?")) != NULL;
}

/* libpq quotes parts of the string, and with them a password: only the name of an unknown option is
 * shown. */
static int set_unparsed(struct err *err, const char *text, const char *msg)
{
    static const char unknown[] = "invalid connection option";
    bool secret = strstr(text, "://") || strstr(text, "password");
    if (!secret && msg && !strncmp(msg, unknown, sizeof(unknown) - 1))
        return err_set(err, ERR_CONFIG, "connection string does not parse: %.*s",
                       (int)strcspn(msg, "\n"), msg);
    return err_set(err, ERR_CONFIG,
                   "connection string does not parse: give \"host=.. dbname=.. user=..\" or "
                   "\"postgresql://user@host/dbname\"");
}

int conn__dsn_parse(struct conn_dsn *d, const char *text, struct err *err)
{
    char *msg = NULL;
    if (conn__dsn_is_ambiguous(text))
        return err_set(err, ERR_CONFIG,
                       "connection string has an '@' or '/' inside of a user name, password or "
                       "database name: write %%40 or %%2F");
    PQconninfoOption *options = PQconninfoParse(text, &msg);
    if (!options) {
        set_unparsed(err, text, msg);
        PQfreemem(msg);
        return ERR_CONFIG;
    }
    const char *host = "", *addr = "", *port = "";
    int rc = 0;
    for (const PQconninfoOption *o = options; o->keyword; o++) {
        if (!strcmp(o->keyword, "connect_timeout"))
            rc = take_timeout(d, o, err);
        else if (!take_option(d, o, &host, &addr, &port) && o->val)
            add(d, o->keyword, o->val);
    }
    if (rc == 0)
        rc = split_hosts(d, host, addr, port, err);
    PQconninfoFree(options);
    return rc;
}

void conn__dsn_done(struct conn_dsn *d)
{
    for (size_t i = 0; i < d->count; i++) {
        explicit_bzero(d->values[i], strlen(d->values[i])); /* one of them is the password */
        free(d->keys[i]);
        free(d->values[i]);
    }
    for (size_t i = 0; i < d->host_count; i++) {
        free(d->hosts[i].host);
        free(d->hosts[i].hostaddr);
        free(d->hosts[i].port);
    }
    free(d->keys);
    free(d->values);
    free(d->hosts);
    *d = (struct conn_dsn){0};
}

bool conn__host_is_name(const struct conn_host *h)
{
    struct in6_addr scratch;
    if (h->hostaddr || !h->host || h->host[0] == '/' || h->host[0] == '@')
        return false;
    return inet_pton(AF_INET, h->host, &scratch) != 1 &&
           inet_pton(AF_INET6, h->host, &scratch) != 1;
}
