/* Brings the schema of a database to the one of this program: `txrelay migrate`.
 *
 *   CONNECT_WAIT -> LOCK_WAIT -> FIND_WAIT -> CHECK_WAIT --fits---------------------> IDS_WAIT
 *                                    |            |                                   ^  |
 *                                    | none       | outdated                          |  v
 *                                    v            v                                   | COMMIT_WAIT
 *           { MIGRATION_WAIT -> RECORD_WAIT }* -> SAVE_WAIT -> FUNCTIONS_WAIT* -> DIGEST_WAIT
 *                                                                 ^                -> NOTE_WAIT
 *                                                                 |                   |
 *                                                                 |     a result or column changed
 *                                                                 +-- DROP_WAIT <- ROLLBACK_WAIT
 *   COMMIT_WAIT, any failure -> CLOSE_WAIT
 *   a lock was not free: UNDO_WAIT -> HOLDERS_WAIT -> PAUSE_WAIT -> LOCK_WAIT
 *
 * The whole run is one transaction behind an advisory lock: several at once are safe (the later
 * ones find nothing to do), and a failed one leaves nothing behind. A schema that is newer than the
 * program, or has a migration with another text, is refused. A database that fits is only read: no
 * lock that others wait for.
 *
 * Statements of relays and applications queue behind a lock that a migration waits for. So it waits
 * for half a second more than deadlock_timeout at most, undoes everything, names the session that
 * is in the way, and tries again after a pause, until txrelay.migration_wait has passed. */
#ifndef STORE_MIGRATE_H
#define STORE_MIGRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"
#include "store/conn.h"

struct schema_set; /* schema/schema.h */

enum migrate_state {
    MIGRATE_CONNECT_WAIT,
    MIGRATE_LOCK_WAIT, /* BEGIN and the lock: another run may hold it */
    MIGRATE_FIND_WAIT, /* is there a schema at all? */
    MIGRATE_CHECK_WAIT,
    MIGRATE_MIGRATION_WAIT, /* one migration file */
    MIGRATE_RECORD_WAIT,    /* its row in txrelay.schema_version */
    MIGRATE_SAVE_WAIT,      /* a savepoint */
    MIGRATE_FUNCTIONS_WAIT, /* one file of functions */
    MIGRATE_ROLLBACK_WAIT,  /* a function or view cannot be replaced in place */
    MIGRATE_DROP_WAIT,      /* so all are dropped, and applied once more */
    MIGRATE_DIGEST_WAIT,
    MIGRATE_NOTE_WAIT, /* the row in txrelay.schema_functions */
    MIGRATE_IDS_WAIT,  /* the sequences, which may be behind */
    MIGRATE_COMMIT_WAIT,
    MIGRATE_UNDO_WAIT,    /* a lock was not free: ROLLBACK */
    MIGRATE_HOLDERS_WAIT, /* who has it */
    MIGRATE_PAUSE_WAIT,   /* until the next try; nothing is locked meanwhile */
    MIGRATE_CLOSE_WAIT,
};

struct migrate {
    /* out */
    struct err err;
    int from, to; /* versions; from 0: there was no schema */
    bool applied; /* functions, views, triggers and rights were applied (always with a new version)
                   */
    int64_t ids_behind; /* so many ids would have been given again: the data was copied */
    int tries;          /* 1, and one more for each time that a lock was not free */
    /* private */
    enum migrate_state state;
    const struct schema_set *set;
    struct conn *conn;
    struct conn_query query;
    size_t next; /* index of the file at work */
    bool dry_run;
    bool dropped;
    struct loop *loop;
    struct loop_timer *pause;
    uint64_t give_up_ms; /* no try begins after this */
    void (*cb)(struct migrate *m);
};

/* dsn: libpq connection string of the owner of the schema. The callback fires once; m is the
 * caller's again then. */
void migrate_start(struct loop *l, struct migrate *m, const char *dsn,
                   void (*cb)(struct migrate *m));
/* Changes nothing: m says what migrate_start would do now, but for ids_behind. It waits for one
 * that is under way. */
void migrate_dry_run(struct loop *l, struct migrate *m, const char *dsn,
                     void (*cb)(struct migrate *m));
/* With another schema than the one that is compiled in; it must live until the callback. */
void migrate_start_set(struct loop *l, struct migrate *m, const char *dsn,
                       const struct schema_set *set, void (*cb)(struct migrate *m));

#endif
