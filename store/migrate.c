/* Applies the embedded migrations; the states are in migrate.h. A migration file holds many statements, which
 * the pipeline cannot carry: the connection is a plain one. */
#include "store/migrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "pg_codec.h"
#include "schema/schema.h"
#include "schema_fit.h"
#include "sql.h"

static void on_answer(struct conn_query *q, const struct conn_result *r);

static void on_closed(void *arg)
{
    struct migrate *m = arg;
    m->cb(m);
}

static void finish(struct migrate *m, const struct err *err)
{
    if (m->state == MIGRATE_CLOSE_WAIT)
        return; /* what the closing connection answers */
    m->state = MIGRATE_CLOSE_WAIT;
    m->err = *err;
    conn_close(m->conn, on_closed, m);
}

static void run(struct migrate *m, enum migrate_state state, const char *sql)
{
    m->state = state;
    conn_query_start(m->conn, &m->query, NULL, sql, 0, NULL, 0, on_answer);
}

static void record(struct migrate *m, const struct schema_migration *file)
{
    char version[16];
    snprintf(version, sizeof(version), "%d", file->version);
    const struct conn_param params[] = {{.data = version}, {.data = file->name}, {.data = file->sql}};
    m->state = MIGRATE_RECORD_WAIT;
    conn_query_start(m->conn, &m->query, NULL, sql__text(SQL_RECORD_MIGRATION), ARRAY_LEN(params), params, 0,
                     on_answer);
}

/* The next file that the database lacks, or the end. */
static void apply_next(struct migrate *m)
{
    for (; m->next < schema_count(); m->next++) {
        struct schema_migration file = schema_migration(m->next);
        if (file.version > m->from) {
            log_debug("migrate.apply", "file=%s", file.name);
            run(m, MIGRATE_APPLY_WAIT, file.sql);
            return;
        }
    }
    run(m, MIGRATE_COMMIT_WAIT, "COMMIT");
}

/* Cell 0 of the only row, in text form. */
static int number(const struct conn_result *r)
{
    return conn_result_rows(r) == 1 ? (int)strtol(conn_result_get(r, 0, 0, NULL), NULL, 10) : 0;
}

static void on_version(struct migrate *m, int version)
{
    m->from = m->to = version;
    if (version > schema_latest()) {
        struct err err;
        err_set(&err, ERR_DB_SCHEMA,
                "database schema is version %d, newer than this program's %d: run the migrate of the newer "
                "txrelay, "
                "nothing was changed",
                version, schema_latest());
        finish(m, &err);
        return;
    }
    apply_next(m);
}

static void on_failed(struct migrate *m, const struct err *failed)
{
    struct err err = *failed;
    if (m->state == MIGRATE_APPLY_WAIT) {
        err_set(&err, failed->code, "migration %s failed, nothing was changed: %s",
                schema_migration(m->next).name, failed->text);
        memcpy(err.sqlstate, failed->sqlstate, sizeof(err.sqlstate));
    }
    m->to = m->from;
    finish(m, &err);
}

static void on_answer(struct conn_query *q, const struct conn_result *r)
{
    struct migrate *m = CONTAINER_OF(q, struct migrate, query);
    if (q->err.code) {
        on_failed(m, &q->err);
        return;
    }
    switch (m->state) {
    case MIGRATE_LOCK_WAIT:
        run(m, MIGRATE_FIND_WAIT, sql__text(SQL_FIND_SCHEMA));
        return;
    case MIGRATE_FIND_WAIT:
        if (number(r))
            run(m, MIGRATE_VERSION_WAIT, sql__text(SQL_CHECK_SCHEMA));
        else
            on_version(m, 0);
        return;
    case MIGRATE_VERSION_WAIT:
        on_version(m, number(r));
        return;
    case MIGRATE_APPLY_WAIT: {
        struct schema_migration file = schema_migration(m->next);
        record(m, &file);
        return;
    }
    case MIGRATE_RECORD_WAIT:
        m->to = schema_migration(m->next++).version;
        apply_next(m);
        return;
    case MIGRATE_COMMIT_WAIT:
        finish(m, &(struct err){0});
        return;
    case MIGRATE_CONNECT_WAIT:
    case MIGRATE_CLOSE_WAIT:
        break;
    }
    UNREACHABLE();
}

static void on_up(void *arg)
{
    struct migrate *m = arg;
    run(m, MIGRATE_LOCK_WAIT, sql__text(SQL_BEGIN_MIGRATION));
}

/* One round over the addresses is enough: whoever runs migrate is there to see why. */
static void on_down(void *arg, const struct err *err)
{
    finish(arg, err);
}

void migrate_start(struct loop *l, struct migrate *m, const char *dsn, void (*cb)(struct migrate *m))
{
    *m = (struct migrate){.state = MIGRATE_CONNECT_WAIT, .cb = cb};
    m->conn = conn_new(l, &(struct conn_config){.dsn = dsn,
                                                .name = "txrelay migrate",
                                                .refuse_standby = true,
                                                .plain = true,
                                                .on_up = on_up,
                                                .on_down = on_down,
                                                .arg = m});
    conn_open(m->conn);
}
