#include "store/conn_info.h"
#include "base/host.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static const char *value_of(const PQconninfoOption *o)
{
    const char *env = !o->val && o->envvar ? getenv(o->envvar) : NULL;
    return o->val ? o->val : env ? env : o->compiled ? o->compiled : "";
}

static void take(struct conn_info *ret, const PQconninfoOption *o)
{
    const char *value = value_of(o);
    bool secret = o->dispchar[0] == '*';
    if (secret && o->val && o->val[0])
        ret->has_password = ret->has_password || !strcmp(o->keyword, "password");
    if (!strcmp(o->keyword, "host") || !strcmp(o->keyword, "hostaddr"))
        ret->leaves_host = ret->leaves_host || !all_here(value);
    if (!strcmp(o->keyword, "sslmode"))
        snprintf(ret->sslmode, sizeof(ret->sslmode), "%s", value);
    if (!o->val || secret)
        return;
    buf_puts(&ret->text, ret->text.len ? " " : "");
    buf_printf(&ret->text, "%s=", o->keyword);
    put_value(&ret->text, o->val);
}

void conn_info_read(const char *dsn, struct conn_info *ret)
{
    *ret = (struct conn_info){0};
    PQconninfoOption *options = PQconninfoParse(dsn, NULL);
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        take(ret, o);
    for (PQconninfoOption *o = options; o && o->keyword; o++)
        if (o->val && o->dispchar[0] == '*')
            explicit_bzero(o->val, strlen(o->val));
    PQconninfoFree(options);
    ret->verifies_server =
        !strcmp(ret->sslmode, "verify-ca") || !strcmp(ret->sslmode, "verify-full");
}

void conn_info_done(struct conn_info *info)
{
    buf_done(&info->text);
}
