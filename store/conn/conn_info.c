#include "store/conn_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/host.h"
#include "conn/conn_internal.h"

/* A value as the string's syntax wants it: quoted where it has blanks or quotes. */
static void put_value(struct buf *out, const char *value)
{
    if (*value && !strpbrk(value, " \t\r\n'\\")) {
        buf_put_plain(out, value, strlen(value));
        return;
    }
    buf_put_u8(out, '\'');
    for (; *value; value++) {
        if (*value == '\'' || *value == '\\')
            buf_put_u8(out, '\\');
        buf_put_plain(out, value, 1);
    }
    buf_put_u8(out, '\'');
}

/* One host of a list: a socket's folder, a name or an address. */
static bool is_here(const char *host, size_t len)
{
    return len == 0 || host[0] == '/' || host[0] == '@' || host_is_loopback(host, len);
}

static bool all_here(const char *hosts)
{
    for (;;) {
        size_t len = strcspn(hosts, ",");
        if (!is_here(hosts, len))
            return false;
        if (!hosts[len])
            return true;
        hosts += len + 1;
    }
}

/* What libpq uses where the string is silent: PG.. variables, a service file, its own defaults.
 * libpq names the service by a variable only. */
static PQconninfoOption *defaults_with(const PQconninfoOption *options)
{
    const char *service = NULL, *before = getenv("PGSERVICE");
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        if (!strcmp(o->keyword, "service"))
            service = o->val;
    if (!service)
        return PQconndefaults();
    char *kept = before ? xstrdup(before) : NULL;
    setenv("PGSERVICE", service, 1);
    PQconninfoOption *defaults = PQconndefaults();
    if (kept)
        setenv("PGSERVICE", kept, 1);
    else
        unsetenv("PGSERVICE");
    free(kept);
    return defaults;
}

static const char *value_of(const PQconninfoOption *o, const PQconninfoOption *defaults)
{
    for (; !o->val && defaults && defaults->keyword; defaults++)
        if (!strcmp(defaults->keyword, o->keyword))
            return defaults->val ? defaults->val : "";
    return o->val ? o->val : "";
}

static void take(struct conn_info *ret, const PQconninfoOption *o, const PQconninfoOption *defaults)
{
    const char *value = value_of(o, defaults);
    bool secret = o->dispchar[0] == '*'; /* password, sslpassword */
    if (secret && o->val && o->val[0])
        ret->has_password = true;
    if (!strcmp(o->keyword, "host") || !strcmp(o->keyword, "hostaddr"))
        ret->leaves_host = ret->leaves_host || !all_here(value);
    if (!strcmp(o->keyword, "sslmode"))
        snprintf(ret->sslmode, sizeof(ret->sslmode), "%s", value);
    if (!strcmp(o->keyword, "user"))
        snprintf(ret->user, sizeof(ret->user), "%s", value);
    if (!strcmp(o->keyword, "dbname"))
        snprintf(ret->database, sizeof(ret->database), "%s", *value ? value : ret->user);
    if (!o->val || secret)
        return;
    buf_puts(&ret->text, ret->text.len ? " " : "");
    buf_printf(&ret->text, "%s=", o->keyword);
    put_value(&ret->text, o->val);
}

static void wipe(PQconninfoOption *options)
{
    for (PQconninfoOption *o = options; o && o->keyword; o++)
        if (o->val && o->dispchar[0] == '*')
            explicit_bzero(o->val, strlen(o->val));
    PQconninfoFree(options);
}

void conn_info_read(const char *dsn, struct conn_info *ret)
{
    *ret = (struct conn_info){0};
    if (conn__dsn_is_ambiguous(dsn)) { /* its parts may show what is meant as the password */
        ret->has_password = true;
        return;
    }
    PQconninfoOption *options = PQconninfoParse(dsn, NULL), *defaults = defaults_with(options);
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        take(ret, o, defaults);
    wipe(options);
    wipe(defaults);
    ret->verifies_server =
        !strcmp(ret->sslmode, "verify-ca") || !strcmp(ret->sslmode, "verify-full");
}

int conn_info_check(const char *dsn, struct err *err)
{
    struct conn_dsn parsed = {0};
    int rc = conn__dsn_parse(&parsed, dsn, err);
    conn__dsn_done(&parsed);
    return rc;
}

void conn_info_done(struct conn_info *info)
{
    buf_done(&info->text);
}
