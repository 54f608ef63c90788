/* What a connection string says, for people and for checks: never its password. */
#ifndef STORE_CONN_INFO_H
#define STORE_CONN_INFO_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

struct conn_info {
    /* "host=db1 port=5432 user=relay", without secrets; "" where libpq cannot parse it */
    struct buf text;
    bool has_password;           /* in the string itself; or any other secret of libpq's */
    bool leaves_host;            /* some host is neither a socket nor a loopback address */
    char user[64], database[64]; /* as libpq will use them */
    char sslmode[16]; /* as libpq will use it, also from PGSSLMODE; libpq's default is "prefer" */
    bool verifies_server; /* sslmode is verify-ca or verify-full */
};

/* Connects to nothing, and reads no file but a service file. conn_info_done frees *ret. Sets
 * PGSERVICE for a moment, so no other thread may run. */
void conn_info_read(const char *dsn, struct conn_info *ret);
void conn_info_done(struct conn_info *info);
/* ERR_CONFIG says why the string cannot be used, and shows none of its values. */
int conn_info_check(const char *dsn, struct err *err);

#endif
