#include "http/core/request.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/host.h"
#include "base/utf8.h"

const struct http_route http_routes[HTTP_ROUTE_COUNT] = {
#define X(id, method, path, scope) {method, path, HTTP_##scope},
    HTTP_ROUTES(X)
#undef X
};

const char *http_scope_name(enum http_scope scope)
{
    static const char *const names[] = {"", "read", "enqueue", "operate"};
    PRE((size_t)scope < ARRAY_LEN(names));
    return names[scope];
}

/* ---- texts ---- */

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Well-formed UTF-8 without control characters: it can be a value of any database. */
static bool is_text(const char *text)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + strlen(text);
    while (at < end) {
        size_t len = utf8_len(at, (size_t)(end - at));
        if (!len || *at < 0x20 || *at == 0x7f)
            return false;
        at += len;
    }
    return true;
}

/* Letters of ASCII in either case, whatever the locale. */
static bool same(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char x = a[i], y = b[i];
        x = x >= 'A' && x <= 'Z' ? (char)(x | 0x20) : x;
        y = y >= 'A' && y <= 'Z' ? (char)(y | 0x20) : y;
        if (x != y || !x)
            return x == y;
    }
    return true;
}

/* Decodes `len` bytes into the room of p. NULL: a bad escape, no text, or no room. */
static const char *decode(struct http_params *p, const char *from, size_t len, bool query)
{
    char *start = p->text + p->used, *out = start;
    const char *end = from + len;
    if (len + 1 > sizeof(p->text) - p->used)
        return NULL;
    for (; from < end; from++) {
        int high = 0, low = 0;
        if (*from == '%') {
            if (end - from < 3 || (high = digit(from[1])) < 0 || (low = digit(from[2])) < 0 ||
                !(high | low))
                return NULL;
            *out++ = (char)(high << 4 | low);
            from += 2;
        } else {
            *out++ = query && *from == '+' ? ' ' : *from;
        }
    }
    *out++ = 0;
    p->used += (size_t)(out - start);
    return is_text(start) ? start : NULL;
}

const char *http_param(const struct http_params *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (!strcmp(p->list[i].name, name))
            return p->list[i].value;
    return NULL;
}

/* ---- routes ---- */

/* Does the path fit the pattern? Segments of its own become params if ret is given. */
static bool fits(const char *pattern, const char *path, size_t len, struct http_params *ret)
{
    const char *end = path + len;
    while (*pattern) {
        size_t part = strcspn(pattern + 1, "/"), given = 0;
        if (path == end || *path != '/')
            return false;
        path++;
        while (path + given < end && path[given] != '/')
            given++;
        if (pattern[1] == '{') {
            const char *name, *value;
            if (!given)
                return false;
            if (ret) {
                name = decode(ret, pattern + 2, part - 2, false);
                value = decode(ret, path, given, false);
                if (!name || !value)
                    return false;
                ret->list[ret->count].name = name;
                ret->list[ret->count++].value = value;
            }
        } else if (part != given || memcmp(pattern + 1, path, part) != 0) {
            return false;
        }
        pattern += 1 + part;
        path += given;
    }
    return path == end;
}

static const char *add_query(struct http_params *p, const char *query)
{
    while (*query) {
        size_t len = strcspn(query, "&"), name_len = strcspn(query, "=&");
        if (len) {
            bool has_value = name_len < len;
            if (p->count == HTTP_PARAMS_MAX)
                return "the query has too many parameters";
            const char *name = decode(p, query, name_len, true);
            const char *value =
                !name ? NULL
                      : decode(p, query + name_len + has_value, len - name_len - has_value, true);
            if (!value)
                return "the query is too long, or has a bad escape, or is not text in UTF-8";
            if (http_param(p, name))
                return "the query has a parameter twice, or one of the path's";
            p->list[p->count].name = name;
            p->list[p->count++].value = value;
        }
        query += len + (query[len] == '&');
    }
    return NULL;
}

static void allow(struct http_match *m, const char *method)
{
    size_t n = strlen(m->allow);
    snprintf(m->allow + n, sizeof(m->allow) - n, "%s%s%s", n ? ", " : "", method,
             !strcmp(method, "GET") ? ", HEAD" : "");
}

void http_match(const char *method, const char *target, struct http_match *ret)
{
    size_t len = strcspn(target, "?");
    *ret = (struct http_match){.status = 404};
    for (int i = 0; i < HTTP_ROUTE_COUNT; i++) {
        if (!fits(http_routes[i].path, target, len, NULL))
            continue;
        if (strcmp(http_routes[i].method, method) != 0) {
            if (ret->status == 404)
                ret->status = 405;
            allow(ret, http_routes[i].method);
            continue;
        }
        ret->route = (enum http_route_id)i;
        ret->status = 200;
        break;
    }
    if (ret->status != 200)
        return;
    if (!fits(http_routes[ret->route].path, target, len, &ret->params))
        ret->why = "the path is too long, or has a bad escape, or is not text in UTF-8";
    else if (target[len])
        ret->why = add_query(&ret->params, target + len + 1);
    if (ret->why)
        ret->status = 400;
}

/* ---- who asks ---- */

const char *http_bearer(const char *authorization)
{
    static const char scheme[] = "bearer ";
    if (!authorization || !same(authorization, scheme, sizeof(scheme) - 1))
        return NULL;
    const char *token = authorization + sizeof(scheme) - 1;
    token += strspn(token, " ");
    size_t len = strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                               "-._~+/=");
    return len && len <= HTTP_TOKEN_MAX && !token[len] ? token : NULL;
}

bool http_host_is_ours(const char *host, const char *name)
{
    const char *start = host, *port;
    size_t len = host_split(&start, strlen(host), &port);
    if (!len)
        return false;
    return host_is_loopback(start, len) || (name && strlen(name) == len && same(name, start, len));
}

bool http_origin_is_ours(const char *origin, const char *host)
{
    if (!origin)
        return true;
    const char *at = strstr(origin, "://");
    return at && same(at + 3, host, strlen(host) + 1);
}

bool http_rate_take(struct http_rate *r, uint32_t per_s, uint64_t now_ms)
{
    PRE(per_s > 0 && now_ms >= r->at_ms);
    r->level = r->at_ms ? r->level + (double)(now_ms - r->at_ms) * per_s / 1000 : per_s;
    if (r->level > per_s)
        r->level = per_s;
    r->at_ms = now_ms;
    if (r->level < 1)
        return false;
    r->level -= 1;
    return true;
}
