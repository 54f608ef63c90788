/* Applies the embedded schema; the states are in migrate.h. A file holds many statements, which
 * the pipeline cannot carry: the connection is a plain one. */
#include "store/migrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "schema/schema.h"
#include "sql.h"
#include "store/schema_check.h"

enum { PAUSE_FIRST_MS = 250, PAUSE_MOST_MS = 4000 };

static void on_answer(struct conn_query *q, const struct conn_result *r);

static void on_closed(void *arg)
{
    struct migrate *m = arg;
    m->pause = loop_timer_close(m->pause);
    m->cb(m);
}

static void finish(struct migrate *m, const struct err *err)
{
    if (m->state == MIGRATE_CLOSE_WAIT)
        return; /* what the closing connection answers */
    m->state = MIGRATE_CLOSE_WAIT;
    m->err = *err;
    loop_timer_stop(m->pause);
    if (err->code) {
        m->to = m->from;
        m->applied = false;
    }
    conn_close(m->conn, on_closed, m);
}

static void run(struct migrate *m, enum migrate_state state, const char *sql)
{
    m->state = state;
    conn_query_start(m->conn, &m->query, NULL, sql, 0, NULL, 0, on_answer);
}

static void run_with(struct migrate *m, enum migrate_state state, enum sql_id id, int count,
                     const struct conn_param *params)
{
    m->state = state;
    conn_query_start(m->conn, &m->query, NULL, sql__text(id), count, params, 0, on_answer);
}

/* ---- migrations: the file, then its row ---- */

static void run_migration(struct migrate *m)
{
    if (m->next == m->set->count) {
        run(m, MIGRATE_SAVE_WAIT, "SAVEPOINT functions");
        return;
    }
    const struct schema_file *file = &m->set->migrations[m->next];
    log_info("migrate.apply", "file=%s number=%zu of=%zu", file->name, m->next + 1, m->set->count);
    run(m, MIGRATE_MIGRATION_WAIT, file->sql);
}

static void record_migration(struct migrate *m)
{
    const struct schema_file *file = &m->set->migrations[m->next];
    char version[16];
    snprintf(version, sizeof(version), "%zu", m->next + 1);
    const struct conn_param params[] = {
        {.data = version}, {.data = file->name}, {.data = file->checksum}};
    run_with(m, MIGRATE_RECORD_WAIT, SQL_RECORD_MIGRATION, ARRAY_LEN(params), params);
}

/* ---- functions: all files, then the row ---- */

static void run_functions(struct migrate *m)
{
    if (m->next == m->set->functions_count) {
        run(m, MIGRATE_DIGEST_WAIT, schema_check_sql());
        return;
    }
    log_debug("migrate.apply", "file=%s", m->set->functions[m->next].name);
    run(m, MIGRATE_FUNCTIONS_WAIT, m->set->functions[m->next].sql);
}

static void note_functions(struct migrate *m, const struct schema_found *found)
{
    const struct conn_param params[] = {{.data = m->set->functions_checksum},
                                        {.data = found->text[SCHEMA_COL_FOUND]},
                                        {.data = found->text[SCHEMA_COL_CATALOG]}};
    m->applied = true;
    run_with(m, MIGRATE_NOTE_WAIT, SQL_RECORD_FUNCTIONS, ARRAY_LEN(params), params);
}

/* CREATE OR REPLACE cannot change what a function returns, the names of its arguments, or take a
 * column from a view; a relation of another kind may have the name. */
static bool is_other_shape(const char *sqlstate)
{
    return !strcmp(sqlstate, "42P13") || !strcmp(sqlstate, "42P16") || !strcmp(sqlstate, "42809");
}

/* ---- what is there ---- */

/* The first step that changes something; a dry run ends here. */
static void begin(struct migrate *m)
{
    if (!m->dry_run) {
        run_migration(m);
        return;
    }
    m->to = (int)m->set->count;
    m->applied = true;
    finish(m, &(struct err){0});
}

static void on_found(struct migrate *m, const struct conn_result *r)
{
    int found = (int)strtol(conn_result_get(r, 0, 0, NULL), NULL, 10);
    struct err err;
    if (found == 0) {
        begin(m);
    } else if (found == 1) {
        err_set(&err, ERR_DB_SCHEMA,
                "the database has a txrelay schema of a build before the first release, which "
                "cannot be upgraded: migrate a new database");
        finish(m, &err);
    } else {
        run(m, MIGRATE_CHECK_WAIT, schema_check_sql());
    }
}

static struct schema_found found_of(const struct conn_result *r)
{
    struct schema_found found = {0};
    for (int col = 0; col < SCHEMA_COLUMNS; col++)
        if (!conn_result_is_null(r, 0, col))
            found.text[col] = conn_result_get(r, 0, col, NULL);
    return found;
}

static void on_checked(struct migrate *m, const struct conn_result *r)
{
    struct schema_found found = found_of(r);
    struct err err = {0};
    enum schema_fit fit = schema_check(m->set, &found, &err);
    m->from = m->to = schema_installed(&found);
    if (fit == SCHEMA_NEWER || fit == SCHEMA_FOREIGN) {
        finish(m, &err);
    } else if (fit == SCHEMA_FITS && found.text[SCHEMA_COL_RECORDED]) {
        if (m->dry_run)
            finish(m, &err);
        else
            run(m, MIGRATE_IDS_WAIT, sql__text(SQL_REPAIR_IDS));
    } else {
        m->next = (size_t)m->from;
        begin(m);
    }
}

/* ---- a lock that is not free ---- */

static void start_try(struct migrate *m)
{
    m->next = 0;
    m->dropped = false;
    m->tries++;
    run(m, MIGRATE_LOCK_WAIT, sql__text(SQL_BEGIN_MIGRATION));
}

static void on_pause_over(void *arg)
{
    struct migrate *m = arg;
    PRE(m->state == MIGRATE_PAUSE_WAIT);
    start_try(m);
}

/* Not free in time, or this and another session waited for each other. */
static bool is_lock_not_free(const struct migrate *m, const char *sqlstate)
{
    bool changes = m->state >= MIGRATE_MIGRATION_WAIT && m->state <= MIGRATE_COMMIT_WAIT;
    return changes && (!strcmp(sqlstate, "55P03") || !strcmp(sqlstate, "40P01"));
}

/* m->err is what failed. */
static void on_holders(struct migrate *m, const struct conn_result *r)
{
    const char *holder =
        conn_result_rows(r) ? conn_result_get(r, 0, 0, NULL) : "a transaction that has ended";
    if (loop_now_ms(m->loop) >= m->give_up_ms) {
        struct err err = {0};
        err_set(&err, m->err.code,
                "%s (%d tries) by %s: end that transaction, or run txrelay migrate again",
                m->err.text, m->tries, holder);
        memcpy(err.sqlstate, m->err.sqlstate, sizeof(err.sqlstate));
        finish(m, &err);
        return;
    }
    log_warn("migrate.waits", "tries=%d text=\"%s; nothing is locked until the next try\"",
             m->tries, holder);
    uint64_t pause = (uint64_t)PAUSE_FIRST_MS << (m->tries < 5 ? m->tries - 1 : 4);
    m->state = MIGRATE_PAUSE_WAIT;
    m->err = (struct err){0};
    loop_timer_at(m->pause, loop_now_ms(m->loop) + (pause < PAUSE_MOST_MS ? pause : PAUSE_MOST_MS));
}

/* ---- the course ---- */

static void on_failed(struct migrate *m, const struct err *failed)
{
    struct err err = *failed;
    if (m->state == MIGRATE_FUNCTIONS_WAIT && !m->dropped && is_other_shape(failed->sqlstate)) {
        run(m, MIGRATE_ROLLBACK_WAIT, "ROLLBACK TO SAVEPOINT functions");
        return;
    }
    bool is_lock = is_lock_not_free(m, failed->sqlstate);
    if (m->state == MIGRATE_MIGRATION_WAIT || m->state == MIGRATE_FUNCTIONS_WAIT) {
        const struct schema_file *files =
            m->state == MIGRATE_MIGRATION_WAIT ? m->set->migrations : m->set->functions;
        err_set(&err, failed->code, "schema file %s failed, nothing was changed: %s",
                files[m->next].name, is_lock ? "a table or view is locked" : failed->text);
        memcpy(err.sqlstate, failed->sqlstate, sizeof(err.sqlstate));
    }
    if (is_lock) {
        m->err = err;
        m->to = m->from;
        m->applied = false;
        run(m, MIGRATE_UNDO_WAIT, "ROLLBACK");
        return;
    }
    finish(m, &err);
}

static void on_locked(struct migrate *m, const struct conn_result *r)
{
    if (!m->give_up_ms)
        m->give_up_ms =
            loop_now_ms(m->loop) + (uint64_t)strtoull(conn_result_get(r, 0, 1, NULL), NULL, 10);
    run(m, MIGRATE_FIND_WAIT, sql__text(SQL_FIND_SCHEMA));
}

static void on_ids(struct migrate *m, const struct conn_result *r)
{
    if (!conn_result_is_null(r, 0, 0))
        m->ids_behind = strtoll(conn_result_get(r, 0, 0, NULL), NULL, 10);
    run(m, MIGRATE_COMMIT_WAIT, "COMMIT");
}

static void on_migration(struct migrate *m, const struct conn_result *r)
{
    (void)r;
    record_migration(m);
}

static void on_recorded(struct migrate *m, const struct conn_result *r)
{
    (void)r;
    m->to = (int)++m->next;
    run_migration(m);
}

/* Before the first file, and again once those of another shape are dropped. */
static void on_saved(struct migrate *m, const struct conn_result *r)
{
    (void)r;
    m->next = 0;
    run_functions(m);
}

static void on_functions(struct migrate *m, const struct conn_result *r)
{
    (void)r;
    m->next++;
    run_functions(m);
}

static void on_rolled_back(struct migrate *m, const struct conn_result *r)
{
    (void)r;
    m->dropped = true;
    run(m, MIGRATE_DROP_WAIT, sql__text(SQL_DROP_FUNCTIONS));
}

static void on_digest(struct migrate *m, const struct conn_result *r)
{
    struct schema_found found = found_of(r);
    note_functions(m, &found);
}

static void on_noted(struct migrate *m, const struct conn_result *r)
{
    (void)r;
    run(m, MIGRATE_IDS_WAIT, sql__text(SQL_REPAIR_IDS));
}

static void on_committed(struct migrate *m, const struct conn_result *r)
{
    (void)r;
    finish(m, &(struct err){0});
}

static void on_undone(struct migrate *m, const struct conn_result *r)
{
    (void)r;
    run(m, MIGRATE_HOLDERS_WAIT, sql__text(SQL_LOCK_HOLDERS));
}

/* The other states wait for no answer. */
static void (*const answered[])(struct migrate *m, const struct conn_result *r) = {
    [MIGRATE_LOCK_WAIT] = on_locked,         [MIGRATE_FIND_WAIT] = on_found,
    [MIGRATE_CHECK_WAIT] = on_checked,       [MIGRATE_MIGRATION_WAIT] = on_migration,
    [MIGRATE_RECORD_WAIT] = on_recorded,     [MIGRATE_SAVE_WAIT] = on_saved,
    [MIGRATE_FUNCTIONS_WAIT] = on_functions, [MIGRATE_ROLLBACK_WAIT] = on_rolled_back,
    [MIGRATE_DROP_WAIT] = on_saved,          [MIGRATE_DIGEST_WAIT] = on_digest,
    [MIGRATE_NOTE_WAIT] = on_noted,          [MIGRATE_IDS_WAIT] = on_ids,
    [MIGRATE_COMMIT_WAIT] = on_committed,    [MIGRATE_UNDO_WAIT] = on_undone,
    [MIGRATE_HOLDERS_WAIT] = on_holders,
};

static void on_answer(struct conn_query *q, const struct conn_result *r)
{
    struct migrate *m = CONTAINER_OF(q, struct migrate, query);
    if (q->err.code) {
        on_failed(m, &q->err);
        return;
    }
    INVARIANT(m->state < ARRAY_LEN(answered) && answered[m->state]);
    answered[m->state](m, r);
}

static void on_up(void *arg)
{
    start_try(arg);
}

/* One round over the addresses is enough: the operator sees the reason. */
static void on_down(void *arg, const struct err *err)
{
    finish(arg, err);
}

void migrate_start_set(struct loop *l, struct migrate *m, const char *dsn,
                       const struct schema_set *set, void (*cb)(struct migrate *m))
{
    PRE(set->count > 0 && set->functions_count > 0);
    *m = (struct migrate){.state = MIGRATE_CONNECT_WAIT, .set = set, .loop = l, .cb = cb};
    m->pause = loop_timer_new(l, on_pause_over, m);
    m->conn = conn_new(l, &(struct conn_config){.dsn = dsn,
                                                .name = "txrelay migrate",
                                                .refuse_standby = true,
                                                .plain = true,
                                                .on_up = on_up,
                                                .on_down = on_down,
                                                .arg = m});
    conn_open(m->conn);
}

void migrate_start(struct loop *l, struct migrate *m, const char *dsn,
                   void (*cb)(struct migrate *m))
{
    migrate_start_set(l, m, dsn, schema_set(), cb);
}

void migrate_dry_run(struct loop *l, struct migrate *m, const char *dsn,
                     void (*cb)(struct migrate *m))
{
    migrate_start(l, m, dsn, cb);
    m->dry_run = true; /* before the connection is up */
}
