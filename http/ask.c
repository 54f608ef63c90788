/* A request on its way: its statement and its answer. It ends in http_answer, once. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "embedded.h"

extern const struct embedded_file http_sql_files[];
extern const size_t http_sql_count;

enum { LOGGED_PER_S = 5 };

const char *api__sql(const char *file)
{
    for (size_t i = 0; i < http_sql_count; i++)
        if (!strcmp(http_sql_files[i].name, file))
            return http_sql_files[i].text;
    UNREACHABLE();
}

void api__ask_free(struct ask *k)
{
    json_decref(k->body);
    free(k->text);
    buf_done(&k->call);
    free(k);
}

void api__answer(struct ask *k, int status, const char *headers, const char *body, size_t len)
{
    struct http_answer a = {.status = status,
                            .type = status < 400 ? "application/json" : "application/problem+json",
                            .headers = headers,
                            .body = body,
                            .len = len};
    api__count(k, status, status < 400 ? NULL : k->problem);
    http_answer(k->r, &a);
    api__ask_free(k);
}

void api__problem(struct ask *k, int status, const char *code, const char *headers,
                  const char *detail)
{
    struct buf body = {0};
    k->problem = code;
    api__put_problem(&body, status, code, detail);
    api__answer(k, status, headers, (const char *)body.data, body.len);
    buf_done(&body);
}

/* The log has the token's name and never the token; the path's pattern and never the path. A flood
 * of refusals is counted. */
void api__refuse(struct ask *k, int status, const char *code, const char *headers,
                 const char *detail)
{
    struct api *a = k->api;
    if (http_rate_take(&a->log, LOGGED_PER_S, loop_now_ms(a->loop))) {
        log_warn("http.refused",
                 "peer=%s status=%d method=%s route=%s token=%s reason=%s unlogged=%" PRIu64,
                 http_peer(k->r), status, http_method(k->r),
                 k->match.status == 200 ? http_routes[k->match.route].path : "none",
                 *k->who ? k->who : "none", code, a->unlogged);
        a->unlogged = 0;
    } else {
        a->unlogged++;
    }
    api__problem(k, status, code, headers, detail);
}

static void created(struct ask *k, const char *body, size_t len)
{
    json_error_t error;
    json_t *answer = json_loadb(body, len, 0, &error);
    char *location = xasprintf("Location: %s%" JSON_INTEGER_FORMAT "\r\n", k->location,
                               json_integer_value(json_object_get(answer, "id")));
    json_decref(answer);
    api__answer(k, 201, location, body, len);
    free(location);
}

static void on_rows(struct conn_query *q, const struct conn_result *r)
{
    struct ask *k = CONTAINER_OF(q, struct ask, query);
    void (*absent)(struct ask * k, bool row) = k->absent;
    int len = 0;
    if (q->err.code) {
        struct err err = q->err;
        api__database_problem(k, &err);
    } else if (!conn_result_rows(r) || conn_result_is_null(r, 0, 0)) {
        absent(k, conn_result_rows(r) > 0);
    } else {
        const char *text = conn_result_get(r, 0, 0, &len);
        if (k->location)
            created(k, text, (size_t)len);
        else if (k->extend)
            k->extend(k, text, (size_t)len);
        else
            api__answer(k, 200, NULL, text, (size_t)len);
    }
}

void api__query(struct ask *k, struct conn *c, const char *file, bool prepare, int n,
                const struct conn_param *params, void (*absent)(struct ask *k, bool row))
{
    PRE(absent);
    k->absent = absent;
    conn_query_start(c, &k->query, prepare ? file : NULL, api__sql(file), n, params, 0, on_rows);
}
