/* Private to pg_sites*.c: the connection of sites. */
#ifndef STORE_PG_PG_SITES_H
#define STORE_PG_PG_SITES_H

#include "base/buf.h"
#include "conn/pg_codec.h"
#include "sql.h"
#include "store/conn.h"
#include "store/sites.h"

struct store_sites {
    struct conn *conn;
    struct buf scratch;
    void (*closed)(void *arg);
    void *arg;
};

/* The parameters of a fenced statement begin with these two. */
void store_sites__begin(struct store_sites *s, struct pg_args *a, int32_t account, int64_t epoch);
void store_sites__ask(struct store_sites *s, struct conn_query *q, enum sql_id id,
                      struct pg_args *a,
                      void (*cb)(struct conn_query *q, const struct conn_result *r));
/* The answer does not have the shape that this program was built for. */
void store_sites__misfit(struct err *err, enum sql_id id);

#endif
