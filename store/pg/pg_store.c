/* The store over Postgres: two sessions and what their owner sees of them.
 *
 *   side:  down --on_up--> CHECK_WAIT --schema fits--> fits        any --on_down--> down
 *                              |  ^                     (another schema: reconnects)
 *                 does not fit v  | recheck timer, with back-off
 *                            MISFIT
 *
 *   store: UP while both sides fit and are sessions of one database; else DOWN.
 *
 * control: locks, claims, doorbells; direct, never a standby or a pooler (use_lock off: a pooler
 * will do). work: all reads and writes, also through a pooler. */
#include "pg/pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "schema/schema.h"
#include "store/schema_check.h"

enum {
    STATEMENT_TIMEOUT_MS = 30000,
    ANSWER_GRACE_MS = 5000,
    RECHECK_BASE_MS = 200,
    RECHECK_CAP_MS = 5000
};

/* ---- state ---- */

static void report_down(struct store_pg *s, const struct err *err)
{
    bool was_up = s->base.state == STORE_UP;
    if (!was_up && s->told.code == err->code && !strcmp(s->told.text, err->text))
        return; /* nothing new */
    s->base.state = STORE_DOWN;
    s->told = *err;
    if (s->config.on_state)
        s->config.on_state(s->config.arg, STORE_DOWN, err);
}

static void check_later(struct store_pg *s)
{
    if (!loop_timer_armed(s->recheck))
        loop_timer_at(s->recheck,
                      loop_now_ms(s->base.loop) + backoff_next(&s->recheck_backoff, &s->rng));
}

static void misfit(struct store_pg *s, struct side *side, const struct err *err)
{
    side->fits = false;
    report_down(s, err);
    check_later(s);
}

static void try_up(struct store_pg *s)
{
    if (!s->control.fits || !s->work.fits)
        return;
    if (s->control.database != s->work.database || s->control.server != s->work.server) {
        struct err err;
        err_set(&err, ERR_CONFIG,
                "control_dsn and work_dsn lead to different databases or servers: a lock in one "
                "protects nothing in the other");
        misfit(s, &s->work, &err);
        return;
    }
    backoff_reset(&s->recheck_backoff);
    s->base.state = STORE_UP;
    s->told = (struct err){0};
    if (s->config.on_state)
        s->config.on_state(s->config.arg, STORE_UP, NULL);
}

/* ---- schema check ---- */

static void on_checked(struct conn_query *q, const struct conn_result *r)
{
    struct side *side = CONTAINER_OF(q, struct side, check);
    struct store_pg *s = side->s;
    struct err err = q->err;
    side->checking = false;
    if (s->closing || !conn_is_up(side->conn))
        return; /* on_up asks again */
    if (r) {
        struct pg_row row = {.r = r};
        struct schema_found found = {0};
        for (int col = 0; col < SCHEMA_COLUMNS; col++)
            found.text[col] = pg_get_text(&row, col, NULL);
        side->database = pg_get_int(&row, SCHEMA_COLUMNS, 0);
        side->server = pg_get_int(&row, SCHEMA_COLUMNS + 1, 0);
        schema_check(schema_set(), &found, &err);
    } else {
        schema_check_failed(&err, conn_login(side->conn));
    }
    if (err.code && side->fits) {
        if (err.code == ERR_DB_SCHEMA || err.code == ERR_DB_DENIED)
            conn_reconnect(side->conn,
                           &err); /* gives the locks up: another relay may have another build */
    } else if (err.code) {
        misfit(s, side, &err);
    } else if (!side->fits) {
        side->fits = true;
        try_up(s);
    }
}

static void start_check(struct side *side)
{
    if (side->checking || !conn_is_up(side->conn))
        return;
    side->checking = true;
    conn_query_start(side->conn, &side->check, NULL, schema_check_sql(), 0, NULL, 1, on_checked);
}

static void check_side(struct side *side)
{
    if (!side->fits)
        start_check(side);
}

void store_pg__check_again(struct store_pg *s)
{
    if (s->control.fits && !s->closing)
        start_check(&s->control);
}

static void recheck(void *arg)
{
    struct store_pg *s = arg;
    check_side(&s->control);
    check_side(&s->work);
}

/* ---- the sessions ---- */

static void on_up(void *arg)
{
    check_side(arg);
}

static void forget_fingerprints(struct store_pg *s)
{
    fingerprint_forget(&s->scan);
    fingerprint_forget(&s->renewal);
}

static void on_down(void *arg, const struct err *err)
{
    struct side *side = arg;
    struct store_pg *s = side->s;
    bool had = side->fits;
    side->fits = false;
    if (side == &s->control && had) {
        s->base.state = STORE_DOWN; /* what the owner starts in its callback must fail */
        s->told = (struct err){0};
        store_pg__locks_lost(s);
        forget_fingerprints(s);
        if (s->config.on_control_lost)
            s->config.on_control_lost(s->config.arg);
        /* The server may be another one from here on: the work goes where the lock is. */
        if (!s->closing)
            conn_reconnect(s->work.conn, err);
    }
    if (!s->closing)
        report_down(s, err);
}

static struct conn *new_conn(struct store_pg *s, struct side *side, const char *dsn)
{
    const struct store_pg_config *config = &s->config;
    bool control = side == &s->control;
    char timeout[64], name[256];
    uint32_t statement_ms =
        config->statement_timeout_ms ? config->statement_timeout_ms : STATEMENT_TIMEOUT_MS;
    uint32_t answer_ms = statement_ms + ANSWER_GRACE_MS;
    if (control && config->control_answer_ms)
        answer_ms = config->control_answer_ms;
    snprintf(timeout, sizeof(timeout), "SET statement_timeout = %u", statement_ms);
    /* The server keeps 63 bytes; the role is not the part to lose. */
    snprintf(name, sizeof(name), "%.54s %s",
             config->application_name ? config->application_name : "txrelay",
             control ? "control" : "work");
    const char *setup[] = {sql__text(SQL_SET_RELAY_SESSION), timeout, NULL};
    side->s = s;
    return conn_new(s->base.loop, &(struct conn_config){
                                      .dsn = dsn,
                                      .name = name,
                                      .setup = setup,
                                      .refuse_standby = true,
                                      .refuse_pooler = control && config->use_lock,
                                      .connect_timeout_ms = config->connect_timeout_ms,
                                      .answer_timeout_ms = answer_ms,
                                      .on_up = on_up,
                                      .on_down = on_down,
                                      .arg = side,
                                  });
}

/* ---- life ---- */

static void pg_open(struct store *base)
{
    struct store_pg *s = pg_of(base);
    PRE(!s->opened);
    s->opened = true;
    conn_open(s->control.conn);
    conn_open(s->work.conn);
}

static void side_closed(void *arg)
{
    struct store_pg *s = arg;
    if (--s->closing_sides)
        return;
    void (*cb)(void *arg) = s->close_cb;
    void *cb_arg = s->close_arg;
    store_pg__locks_lost(s);
    forget_fingerprints(s);
    INVARIANT(!s->locks);
    buf_done(&s->scratch);
    free(s);
    if (cb)
        cb(cb_arg);
}

static void pg_close(struct store *base, void (*cb)(void *arg), void *arg)
{
    struct store_pg *s = pg_of(base);
    PRE(!s->closing);
    s->closing = true;
    s->base.state = STORE_DOWN;
    s->close_cb = cb;
    s->close_arg = arg;
    s->recheck = loop_timer_close(s->recheck);
    s->closing_sides = 2;
    store_pg__locks_cancel(s);
    store_pg__claims_cancel(s);
    conn_close(s->control.conn, side_closed, s);
    conn_close(s->work.conn, side_closed, s);
}

static struct store_session session_of(const struct side *side)
{
    return (struct store_session){.up = conn_is_up(side->conn),
                                  .pooled = conn_is_pooled(side->conn)};
}

static void pg_sessions(const struct store *base, struct store_status *ret)
{
    const struct store_pg *s = (const struct store_pg *)(const void *)base;
    ret->control = session_of(&s->control);
    ret->work = session_of(&s->work);
}

static const struct store_ops ops = {.open = pg_open,
                                     .close = pg_close,
                                     .sessions = pg_sessions,
#define X(name, type) .name = store_pg__##name,
                                     STORE_ENTRIES(X)
#undef X
};

struct store *store_pg_new(struct loop *l, const struct store_pg_config *config)
{
    struct store_pg *s = xcalloc(1, sizeof(*s));
    s->base = (struct store){.ops = &ops, .loop = l, .state = STORE_DOWN};
    s->config = *config;
    store_pg__locks_init(s);
    store_pg__claims_init(s);
    s->rng.state = loop_seed(l);
    s->recheck_backoff = (struct backoff){.base_ms = RECHECK_BASE_MS, .cap_ms = RECHECK_CAP_MS};
    s->recheck = loop_timer_new(l, recheck, s);
    s->control.conn = new_conn(s, &s->control, config->control_dsn);
    s->work.conn = new_conn(s, &s->work, config->work_dsn ? config->work_dsn : config->control_dsn);
    s->config.control_dsn = s->config.work_dsn = s->config.application_name = NULL;
    return &s->base;
}
