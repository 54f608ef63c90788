/* Private to pg_sites*.c: the connection of sites. */
#ifndef STORE_PG_PG_SITES_H
#define STORE_PG_PG_SITES_H

#include "pg/pg_session.h"
#include "store/sites.h"

struct store_sites {
    struct pg_session session;
};

/* The parameters of a fenced statement begin with these two. */
void store_sites__begin(struct store_sites *s, struct pg_args *a, int32_t account, int64_t epoch);

#endif
