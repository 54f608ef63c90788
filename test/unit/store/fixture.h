/* What the tests of store/ share: private Postgres servers by test/harness/pg.sh, waiting for a
 * condition with a deadline, and connections whose events are recorded. */
#ifndef STORE_FIXTURE_H
#define STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include "base/check.h"
#include "store/conn.h"

enum { WAIT_MS = 60000 };

/* Run the loop until the condition holds; fails the test after WAIT_MS. */
#define WAIT_FOR(l, cond)                                                                          \
    do {                                                                                           \
        uint64_t wait_deadline = loop_now_ms(l) + WAIT_MS;                                         \
        while (!(cond)) {                                                                          \
            if (loop_now_ms(l) > wait_deadline)                                                    \
                fail_msg("%s:%d: not within %d ms: %s", __FILE__, __LINE__, WAIT_MS, #cond);       \
            fx_step(l);                                                                            \
        }                                                                                          \
    } while (0)
void fx_step(struct loop *l); /* the loop for about a millisecond */

/* Run a shell command; fails the test when it fails. Returns its output, which the caller frees. */
char *fx_shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *fx_temp_dir(void);
void fx_remove_dir(char *dir);
int fx_free_port(void);

/* A server: `options` goes to pg.sh start (--tcp PORT, -- postgres options). */
struct fx_pg {
    char *dir;
    char *dsn;
};
void fx_pg_start(struct fx_pg *pg, const char *options);
void fx_pg_restart(struct fx_pg *pg, const char *mode);
void fx_pg_stop(struct fx_pg *pg);                        /* and remove it */
char *fx_pg_sql(const struct fx_pg *pg, const char *sql); /* by psql: first row, or "" */

/* A connection and what it told. */
struct fx_conn {
    struct conn *c;
    int ups, downs, notifies;
    struct err down_err;
    char payload[64];
    bool closed;
};
void fx_conn_config(struct fx_conn *f, struct conn_config *config, const char *dsn);
void fx_conn_close(struct loop *l, struct fx_conn *f);

/* A query and its answer. */
struct fx_query {
    struct conn_query q;
    bool done;
    int rows;
    char text[128]; /* first cell */
    int *order;     /* counts answers */
    int at;
};
void fx_query(struct conn *c, struct fx_query *f, const char *name, const char *sql);
void fx_query_params(struct conn *c, struct fx_query *f, const char *name, const char *sql, int n,
                     const struct conn_param *params);

#endif
