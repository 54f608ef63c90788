/* Housekeeping in the database, once: partitions for the months to come, old ones dropped, what is
 * left of transactions that ended long ago removed, account by account.
 *
 *   CONNECT_WAIT -> AHEAD_WAIT -> DROP_WAIT -> { CLEAN_WAIT }* -> CLOSE_WAIT
 *
 * On a connection of its own, closed when it is done: a leader's writes never stand behind it.
 * Several relays at once are safe. A step that fails does not stop the others: each is a
 * transaction of its own. */
#ifndef STORE_RETENTION_H
#define STORE_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"
#include "store/conn.h"

enum store_retention_state {
    STORE_RETENTION_CONNECT_WAIT,
    STORE_RETENTION_AHEAD_WAIT,
    STORE_RETENTION_DROP_WAIT,
    STORE_RETENTION_CLEAN_WAIT, /* one account, fenced by its epoch */
    STORE_RETENTION_CLOSE_WAIT,
};

struct store_retention_account {
    int32_t account;
    int64_t epoch;
};

struct store_retention {
    uint32_t days; /* what ended longer ago may go */
    uint32_t rows; /* of one account in one run */
    size_t count;
    const struct store_retention_account *accounts; /* the caller's until the callback */
    /* out */
    struct err err;        /* the first step that failed; a leadership that was lost is none */
    int64_t made, dropped; /* partitions */
    int64_t removed;       /* rows */
    bool more;             /* an account has more to remove than `rows` */
    /* private */
    enum store_retention_state state;
    struct conn *conn;
    struct conn_query query;
    size_t next;
    void (*cb)(struct store_retention *k);
};

/* dsn: of the relay's login. The callback fires once; k is the caller's again then. */
void store_retention_start(struct loop *l, struct store_retention *k, const char *dsn,
                           const char *name, void (*cb)(struct store_retention *k));
/* ends soon, with ERR_CANCELED if it had not ended */
void store_retention_cancel(struct store_retention *k);

#endif
