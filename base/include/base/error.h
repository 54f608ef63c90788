/* Errors: one table of codes, each with a class that says how the caller may react. Functions
 * return 0 or a negative enum err_code; the detail (SQLSTATE, text) belongs to the request that
 * failed, in a struct err that the caller owns. A text names the thing, the value and what to
 * do. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>

enum err_class {
    ERR_CLASS_OK,
    ERR_CLASS_RETRY,           /* the same request may succeed later */
    ERR_CLASS_PERMANENT,       /* the same request always fails: report it to the user */
    ERR_CLASS_LOST_LEADERSHIP, /* stop all leader work for the account immediately */
    ERR_CLASS_CANCELED,        /* the owner withdrew the request */
    ERR_CLASS_BUG,             /* our own fault */
};

/* X(name, value, class, text) */
#define ERR_TABLE(X)                                                                               \
    X(OK, 0, OK, "ok")                                                                             \
    X(DB_UNAVAILABLE, -1, RETRY, "database not reachable")                                         \
    X(DB_UNKNOWN_OUTCOME, -2, RETRY, "connection lost before the database answered")               \
    X(DB_SERIALIZATION, -3, RETRY, "database requires a retry of the transaction")                 \
    X(DB_CONFLICT, -4, RETRY, "rows changed since they were read")                                 \
    X(DB_DENIED, -5, PERMANENT, "database refuses the login or a right")                           \
    X(DB_SCHEMA, -6, PERMANENT, "database schema does not match this program")                     \
    X(DB_READONLY, -7, RETRY, "database is a standby or read-only")                                \
    X(DB_POOLER, -8, PERMANENT, "database connection runs through a transaction pooler")           \
    X(DB, -9, PERMANENT, "database error")                                                         \
    X(LOST_LEADERSHIP, -10, LOST_LEADERSHIP, "another relay leads the account (stale epoch)")      \
    X(NOT_LEADER, -11, LOST_LEADERSHIP, "this relay does not lead the account")                    \
    X(NET, -20, RETRY, "network error")                                                            \
    X(TIMEOUT, -21, RETRY, "deadline passed")                                                      \
    X(RPC, -22, PERMANENT, "the node answered with an error")                                      \
    X(PROTOCOL, -23, RETRY, "the peer sent something that does not parse")                         \
    X(DECODE, -30, PERMANENT, "bytes do not decode")                                               \
    X(METADATA, -31, PERMANENT, "chain metadata is not usable")                                    \
    X(EXTENSION, -32, PERMANENT, "chain requires a signed extension that is not supported")        \
    X(KEY, -33, PERMANENT, "key is not usable")                                                    \
    X(KEY_MISMATCH, -34, PERMANENT, "key does not belong to the account")                          \
    X(GENESIS, -35, PERMANENT, "chain is not the configured one")                                  \
    X(CONFIG, -40, PERMANENT, "configuration is not valid")                                        \
    X(ARGUMENT, -41, PERMANENT, "bad argument")                                                    \
    X(NOT_FOUND, -42, PERMANENT, "not found")                                                      \
    X(IO, -43, RETRY, "operating system error")                                                    \
    X(CANCELED, -50, CANCELED, "canceled")                                                         \
    X(BUG, -60, BUG, "internal error, please report")

enum err_code {
#define X(name, value, class, text) ERR_##name = value,
    ERR_TABLE(X)
#undef X
};

struct err {
    int code;         /* enum err_code, 0 = ok */
    char sqlstate[6]; /* "" unless it came from the database */
    char text[300];
};

const char *err_name(int code); /* "DB_UNAVAILABLE" */
const char *err_text(int code); /* general text of the table */
enum err_class err_class(int code);
/* The same request always fails: a retry helps nothing. False for 0. */
bool err_is_refused(int code);

/* Fill *e (may be NULL) and return code, so that `return err_set(e, ERR_X, ...)` works. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void err_clear(struct err *e);

#endif
