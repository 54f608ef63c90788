/* Brings the schema of a database up to the version of this program: `txrelay migrate`.
 *
 *   CONNECT_WAIT -> LOCK_WAIT -> FIND_WAIT -> VERSION_WAIT -> { APPLY_WAIT -> RECORD_WAIT }* -> COMMIT_WAIT
 * -> CLOSE_WAIT
 *
 * The whole run is one transaction behind an advisory lock: several at once are safe (the later ones find
 * nothing to do), and a failed one leaves nothing behind. A schema that is newer than the program is refused.
 */
#ifndef STORE_MIGRATE_H
#define STORE_MIGRATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "loop/loop.h"
#include "store/conn.h"

enum migrate_state {
    MIGRATE_CONNECT_WAIT,
    MIGRATE_LOCK_WAIT, /* BEGIN and the lock: another run may hold it */
    MIGRATE_FIND_WAIT, /* is there a schema at all? */
    MIGRATE_VERSION_WAIT,
    MIGRATE_APPLY_WAIT,  /* one migration file */
    MIGRATE_RECORD_WAIT, /* its row in the version table */
    MIGRATE_COMMIT_WAIT,
    MIGRATE_CLOSE_WAIT,
};

struct migrate {
    /* out */
    struct err err;
    int from, to; /* versions; from 0: there was no schema */
    /* private */
    enum migrate_state state;
    struct conn *conn;
    struct conn_query query;
    size_t next; /* index of the migration at work */
    void (*cb)(struct migrate *m);
};

/* dsn: libpq connection string of the owner of the schema. The callback fires once; m is the caller's again
 * then. */
void migrate_start(struct loop *l, struct migrate *m, const char *dsn, void (*cb)(struct migrate *m));

#endif
