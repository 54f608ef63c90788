/* Rows and errors of libpq in our words. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "conn/conn_internal.h"

enum { OID_NAME = 19, OID_TEXT = 25, OID_VARCHAR = 1043, OID_JSONB = 3802 };

int conn_result_rows(const struct conn_result *r)
{
    return PQntuples(r->pg);
}

int conn_result_columns(const struct conn_result *r)
{
    return PQnfields(r->pg);
}

bool conn_result_is_null(const struct conn_result *r, int row, int col)
{
    return PQgetisnull(r->pg, row, col);
}

const char *conn_result_get(const struct conn_result *r, int row, int col, int *ret_len)
{
    if (ret_len)
        *ret_len = PQgetlength(r->pg, row, col);
    return PQgetvalue(r->pg, row, col);
}

uint32_t conn_result_type(const struct conn_result *r, int col)
{
    return PQftype(r->pg, col);
}

const char *conn_result_name(const struct conn_result *r, int col)
{
    return PQfname(r->pg, col);
}

struct conn_result *conn_result_take(const struct conn_result *r)
{
    struct conn_result *kept = xmalloc(sizeof(*kept));
    *kept = *r;
    ((struct conn_result *)r)->pg = NULL; /* the one that delivers clears what is left there */
    return kept;
}

void conn_result_free(struct conn_result *r)
{
    if (!r)
        return;
    PQclear(r->pg);
    free(r);
}

/* ---- texts of a database that does not know its encoding ---- */

static void make_utf8(char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = utf8_len((const uint8_t *)text + i, len - i);
        if (!n)
            text[i] = '?';
        i += n ? n : 1;
    }
}

/* An SQL_ASCII database stores whatever bytes come, and gives them to its sessions as they are. Our
 * callers, and those who read what they write, expect UTF-8: a byte that is none becomes '?'. */
void conn__result_make_utf8(PGresult *res)
{
    for (int col = 0; col < PQnfields(res); col++) {
        Oid type = PQftype(res, col);
        if (type != OID_TEXT && type != OID_VARCHAR && type != OID_NAME && type != OID_JSONB &&
            PQfformat(res, col) == 1)
            continue; /* binary, and no text */
        for (int row = 0; row < PQntuples(res); row++)
            make_utf8(PQgetvalue(res, row, col), (size_t)PQgetlength(res, row, col));
    }
}

/* ---- errors ---- */

static const char *field(const PGresult *res, int code)
{
    const char *s = PQresultErrorField(res, code);
    return s ? s : "";
}

/* 0A000 says that a plan was changed by DDL only if it comes from there; it has a hundred other
 * meanings, which no new session changes. The name is in no language. */
bool conn__result_stale(const PGresult *res)
{
    const char *sqlstate = field(res, PG_DIAG_SQLSTATE);
    return !strcmp(sqlstate, "26000") ||
           (!strcmp(sqlstate, "0A000") &&
            !strcmp(field(res, PG_DIAG_SOURCE_FUNCTION), "RevalidateCachedQuery"));
}

/* The hint is the way out: where both do not fit, the message is cut. */
static void set_with_hint(struct err *err, int code, const char *message, const char *hint)
{
    size_t room = sizeof(err->text) - 1, tail = strlen(hint) + 2;
    if (!*hint)
        err_set(err, code, "%s", message);
    else if (strlen(message) + tail <= room)
        err_set(err, code, "%s. %s", message, hint);
    else
        err_set(err, code, "%.*s ... %s", (int)(tail + 3 < room ? room - tail - 3 : 0), message,
                hint);
}

/* Our own SQLSTATEs come with a sentence for the user and the way out as the hint; a server's
 * message gets its detail and its code. */
void conn__result_err(const PGresult *res, struct err *err)
{
    const char *sqlstate = field(res, PG_DIAG_SQLSTATE);
    const char *message = field(res, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = field(res, PG_DIAG_MESSAGE_DETAIL);
    const char *hint = field(res, PG_DIAG_MESSAGE_HINT);
    if (!*message)
        message = PQresultErrorMessage(res);
    int code = *sqlstate ? conn_map_sqlstate(sqlstate) : ERR_DB_UNAVAILABLE;
    if (conn__result_stale(res))
        code = ERR_DB_SERIALIZATION;
    if (!*sqlstate)
        err_set(err, code, "%.*s", (int)strcspn(message, "\n"), message);
    else if (!strncmp(sqlstate, "TR", 2))
        set_with_hint(err, code, message, hint);
    else if (code == ERR_DB_DENIED && *hint)
        set_with_hint(err, code, message, hint);
    else
        err_set(err, code, "%s%s%s (SQLSTATE %s)", message, *detail ? ": " : "", detail, sqlstate);
    make_utf8(err->text, strlen(err->text)); /* it may quote a value, or be cut */
    memcpy(err->sqlstate, sqlstate, strnlen(sqlstate, sizeof(err->sqlstate) - 1) + 1);
}

/* libpq's own "connection lost" has no severity. */
bool conn__result_fatal(const PGresult *res)
{
    const char *severity = field(res, PG_DIAG_SEVERITY_NONLOCALIZED);
    return !*severity || !strcmp(severity, "FATAL") || !strcmp(severity, "PANIC");
}

/* A verbose message reads `...failed: FATAL:  28P01: password ...`; the word FATAL may be
 * translated. */
static const char *find_sqlstate(const char *message)
{
    for (const char *p = strstr(message, ":  "); p; p = strstr(p + 1, ":  ")) {
        size_t n = 0;
        while (n < 5 && (isdigit((unsigned char)p[3 + n]) || isupper((unsigned char)p[3 + n])))
            n++;
        if (n == 5 && p[8] == ':' && p[9] == ' ')
            return p + 3;
    }
    return NULL;
}

/* A failure that has no PGresult: connecting, or a lost socket. */
void conn__connect_err(const PGconn *pg, struct err *err)
{
    const char *message = PQerrorMessage(pg);
    const char *at = find_sqlstate(message);
    size_t len = strcspn(message, "\n");
    if (!at || (size_t)(at - message) > len) {
        err_set(err, ERR_DB_UNAVAILABLE, "%.*s", (int)len, len ? message : "connection lost");
        if (!len)
            err_set(err, ERR_DB_UNAVAILABLE, "connection lost");
        return;
    }
    char sqlstate[6] = {0};
    memcpy(sqlstate, at, 5);
    err_set(err, conn_map_sqlstate(sqlstate), "%.*s%.*s", (int)(at - message), message,
            (int)(len - (size_t)(at - message) - 7), at + 7);
    if (err->code == ERR_DB) /* whatever keeps us from connecting */
        err->code = ERR_DB_UNAVAILABLE;
    memcpy(err->sqlstate, sqlstate, sizeof(sqlstate));
}
