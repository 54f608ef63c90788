/* What a connection string says, for people and for checks: never its password. */
#ifndef STORE_CONN_INFO_H
#define STORE_CONN_INFO_H

#include <stdbool.h>

#include "base/buf.h"

struct conn_info {
    /* "host=db1 port=5432 user=relay", without secrets; "" where libpq cannot parse it */
    struct buf text;
    bool has_password; /* in the string itself */
    bool leaves_host;  /* some host is neither a socket nor a loopback address */
    char sslmode[16];  /* as libpq will use it, also from PGSSLMODE; libpq's default is "prefer" */
    bool verifies_server; /* sslmode is verify-ca or verify-full */
};

/* Reads no file and connects to nothing. conn_info_done frees *ret. */
void conn_info_read(const char *dsn, struct conn_info *ret);
void conn_info_done(struct conn_info *info);

#endif
