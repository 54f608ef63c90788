/* Errors as problems (RFC 9457). The type is a name that docs/errors.md explains. */
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "base/check.h"
#include "base/log.h"

void api__put_problem(struct buf *out, int status, const char *code, const char *detail)
{
    json_t *p =
        json_pack("{s:o, s:s, s:i, s:s, s:s}", "type", json_sprintf("urn:txrelay:problem:%s", code),
                  "title", http_reason(status), "status", status, "code", code, "detail", detail);
    char *text = p ? json_dumps(p, JSON_COMPACT) : NULL;
    buf_puts(out, text ? text : "{}");
    buf_puts(out, "\n");
    free(text);
    json_decref(p);
}

/* What the database refused, by SQLSTATE. */
static const struct {
    const char *sqlstate;
    int status;
    const char *code, *headers;
} refusals[] = {
    {"TR010", 404, "not_found", NULL},
    {"TR011", 422, "bad_argument", NULL},
    {"TR012", 409, "key_conflict", NULL},
    {"TR013", 429, "queue_full", "Retry-After: 5\r\n"},
    {"57014", 503, "timeout", "Retry-After: 5\r\n"},
};

void api__database_problem(struct ask *k, const struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        if (strcmp(err->sqlstate, refusals[i].sqlstate) != 0)
            continue;
        api__problem(k, refusals[i].status, refusals[i].code, refusals[i].headers, err->text);
        return;
    }
    if (!strncmp(err->sqlstate, "22", 2)) {
        api__problem(k, 400, "bad_request", NULL, err->text);
    } else if (err->code == ERR_DB_UNKNOWN_OUTCOME) {
        api__problem(k, 503, "unknown_outcome", "Retry-After: 1\r\n",
                     "the connection to the database was lost before its answer, so this may have "
                     "happened: ask again with the same idempotency key, or read first");
    } else if (err_class(err->code) == ERR_CLASS_RETRY || err->code == ERR_CANCELED) {
        api__problem(k, 503, "unavailable", "Retry-After: 1\r\n",
                     "the database cannot be asked now; nothing was done");
    } else {
        log_error("http.failed", "code=%s sqlstate=%s text=\"%s\"", err_name(err->code),
                  err->sqlstate, err->text);
        api__problem(k, 500, "internal", NULL,
                     "the relay could not answer; its log has the reason (http.failed)");
    }
}
