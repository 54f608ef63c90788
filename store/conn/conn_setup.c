/* Between "connected" and UP: is it a server we may use, and the statements of `setup`.
 *
 *   probes: backend pid, standby or read-only, does a session setting survive between transactions
 *     -> setup statements (pipelined), not behind a pooler -> UP
 *
 * A pooler invents the cancel key of the session, so the pid that the client received is not the
 * one that the server has. Whether it pools by session or by transaction cannot be seen by a quiet
 * client (it gets the same server again), so refuse_pooler refuses both.
 *
 * The first probe goes alone: pgbouncer 1.18 gives a server to the next client although answers are
 * on their way to one that went away in the middle of its pipeline, and that next client takes them
 * for its own (seen: "SELECT 1" was answered with a probe's pid). Nothing may be under way when
 * a pooler is refused, so the other probes, which share a round trip, are all answered before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "conn/conn_internal.h"
#include "sql.h"

enum { PROBES_QUICK = 1, PROBES_POOLER = 4 };

void conn__setup_drop(struct conn *c)
{
    for (size_t i = 0; i < c->step_count; i++) {
        list_remove(&c->steps[i].query.node);
        PQclear(c->steps[i].query.held);
        free(c->steps[i].query.call);
    }
    free(c->steps);
    c->steps = NULL;
    c->step_count = c->steps_left = 0;
}

static void new_steps(struct conn *c, size_t n)
{
    conn__setup_drop(c);
    c->steps = xcalloc(n, sizeof(*c->steps));
    c->step_count = c->steps_left = n;
    for (size_t i = 0; i < n; i++)
        c->steps[i] = (struct conn_step){.conn = c, .query.internal = true};
}

/* ---- setup statements ---- */

static void on_setup(struct conn_query *q, const struct conn_result *r)
{
    (void)r;
    struct conn *c = CONTAINER_OF(q, struct conn_step, query)->conn;
    struct err err = q->err;
    if (err.code) { /* the address fails, and the steps are gone */
        conn__address_failed(c, &err);
        return;
    }
    if (--c->steps_left)
        return;
    conn__setup_drop(c);
    conn__up(c);
}

static void setup_start(struct conn *c)
{
    if (c->pooled) {
        conn__setup_drop(c);
        conn__up(c);
        return;
    }
    conn__deadline(c, c->config.setup_timeout_ms ? c->config.setup_timeout_ms
                                                 : c->config.connect_timeout_ms);
    new_steps(c, c->setup_count);
    for (size_t i = 0; i < c->step_count; i++)
        conn__submit(c, &c->steps[i].query, NULL, c->setup[i], 0, NULL, 0, on_setup);
}

/* ---- probes ---- */

/* Columns: backend pid, standby, read-only, the token that the first probe left in the session,
 * whether read-only is set for this role alone (SQL_SET_SESSION undoes that, but not behind a
 * pooler). */
static void judge_probe(struct conn *c, const struct conn_result *r, struct err *err)
{
    int told = PQbackendPID(c->pg);
    int pid = (int)strtol(conn_result_get(r, 0, 0, NULL), NULL, 10);
    bool standby = *conn_result_get(r, 0, 1, NULL) == 't';
    bool readonly = *conn_result_get(r, 0, 2, NULL) == 't';
    bool same = !strcmp(conn_result_get(r, 0, 3, NULL), c->token);
    bool by_role = *conn_result_get(r, 0, 4, NULL) == 't';
    c->pooled |= pid != told || !same;
    readonly &= c->pooled || !by_role;
    if (c->config.refuse_standby && (standby || readonly))
        err_set(err, ERR_DB_READONLY, "database at \"%s\" port %s %s", PQhost(c->pg), PQport(c->pg),
                standby ? "is a standby: name the primary too, or wait for its promotion"
                        : "gives read-only transactions (default_transaction_read_only)");
    else if (c->pooled && c->config.refuse_pooler)
        err_set(err, ERR_DB_POOLER,
                "\"%s\" port %s is a connection pooler (told backend %d, got %d): locks and LISTEN "
                "need a direct connection to the server. Give one; a relay may also do without "
                "locks (database.use_lock: false, and a direct database.listen_url)",
                PQhost(c->pg), PQport(c->pg), told, pid);
}

static void on_probe(struct conn_query *q, const struct conn_result *r);

/* The first one leaves the token in the session, the later ones look for it. */
static void probe(struct conn *c, size_t i)
{
    const struct conn_param token = {.data = i ? NULL : c->token};
    conn__submit(c, &c->steps[i].query, NULL, sql__text(SQL_PROBE_SESSION), 1, &token, 0, on_probe);
}

static void on_probe(struct conn_query *q, const struct conn_result *r)
{
    struct conn *c = CONTAINER_OF(q, struct conn_step, query)->conn;
    bool first = c->steps_left-- == c->step_count;
    struct err err = q->err;
    if (!err.code)
        judge_probe(c, r, &err);
    if (err.code && !c->refused.code)
        c->refused = err;
    if (c->steps_left && !first)
        return;
    if (c->refused.code) {
        err = c->refused;
        conn__address_failed(c, &err);
        return;
    }
    conn__deadline(c, c->config.connect_timeout_ms);
    for (size_t i = 1; first && i < c->step_count; i++)
        probe(c, i);
    if (!c->steps_left)
        setup_start(c);
}

void conn__setup_start(struct conn *c)
{
    PQsetErrorVerbosity(c->pg, PQERRORS_DEFAULT);
    const char *encoding = PQparameterStatus(c->pg, "server_encoding");
    c->raw_texts = encoding && !strcmp(encoding, "SQL_ASCII");
    INVARIANT(PQsetnonblocking(c->pg, 1) == 0);
    INVARIANT(c->config.plain || PQenterPipelineMode(c->pg));
    conn__move(c, CONN_SETUP_WAIT);
    c->refused = (struct err){0};
    snprintf(c->token, sizeof(c->token), "%016llx", (unsigned long long)rng_next(&c->rng));
    conn__io_start(c);
    new_steps(c, c->config.refuse_pooler ? PROBES_POOLER : PROBES_QUICK);
    probe(c, 0);
}
