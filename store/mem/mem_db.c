/* The memory database itself: its clock, its sessions with their requests and open transactions,
 * and what a failover leaves of it. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "mem/mem.h"

/* ---- clock ---- */

#define WALL_STEP_US 1000000

int64_t mem_db_now_us(const struct mem_db *db)
{
    return db->config.now_us(db->config.arg);
}

int64_t mem__stamp(struct mem_db *db)
{
    int64_t now = mem_db_now_us(db);
    db->stamp_us = now > db->stamp_us ? now : db->stamp_us + 1;
    return db->stamp_us;
}

/* What the other clock is ahead of ours. The two are read one after the other, and each counts in
 * its own ticks: only a step changes it, so a time that is given comes back as it was. */
static int64_t wall_ahead_us(struct mem_db *db)
{
    if (!db->config.wall_us)
        return 0;
    int64_t ahead = db->config.wall_us(db->config.arg) - mem_db_now_us(db);
    if (llabs(ahead - db->wall_ahead_us) >= WALL_STEP_US)
        db->wall_ahead_us = ahead;
    return db->wall_ahead_us;
}

int64_t mem__from_wall(struct mem_db *db, int64_t wall_ms)
{
    if (!wall_ms)
        return 0;
    int64_t at = wall_ms * 1000 - wall_ahead_us(db);
    if (!db->config.wall_us)
        return at;
    int64_t now = mem_db_now_us(db);
    return at > now ? at : now;
}

int64_t mem__wall_ms(struct mem_db *db, int64_t at_us)
{
    return at_us ? (at_us + wall_ahead_us(db)) / 1000 : -1;
}

/* ---- life ---- */

struct mem_db *mem_db_new(const struct mem_db_config *config)
{
    PRE(config->now_us);
    struct mem_db *db = xcalloc(1, sizeof(*db));
    db->config = *config;
    db->timeline = 1;
    list_init(&db->sessions);
    mem__tables_init(&db->t);
    return db;
}

struct mem_db *mem_db_free(struct mem_db *db)
{
    if (!db)
        return NULL;
    while (!list_empty(&db->sessions))
        mem_session_end(CONTAINER_OF(db->sessions.next, struct mem_session, node));
    mem__tables_done(&db->t);
    free(db);
    return NULL;
}

/* ---- sessions ---- */

struct mem_session *mem_session_new(struct mem_db *db, void *owner, bool use_lock)
{
    struct mem_session *s = xcalloc(1, sizeof(*s));
    s->db = db;
    s->owner = owner;
    s->pid = ++db->last_pid;
    s->use_lock = use_lock;
    s->changed_us = mem_db_now_us(db);
    list_append(&db->sessions, &s->node);
    return s;
}

void mem_session_end(struct mem_session *s)
{
    if (s->open && !s->committed)
        mem_rollback(s);
    else if (s->open)
        mem_release(s);
    mem_unlock_row(s);
    mem__locks_end(s);
    list_remove(&s->node);
    free(s);
}

void *mem_session_owner(const struct mem_session *s)
{
    return s->owner;
}

void mem_session_listen(struct mem_session *s, unsigned channels)
{
    s->channels = channels;
}

void mem_session_active(struct mem_session *s)
{
    s->changed_us = mem_db_now_us(s->db);
}

#define X(name, type)                                                                              \
    static void run_##name(struct mem_session *s, struct store_req *req)                           \
    {                                                                                              \
        mem__##name(s, CONTAINER_OF(req, struct type, req));                                       \
    }
STORE_REQUESTS(X)
#undef X

void mem_session_run(struct mem_session *s, enum mem_request what, struct store_req *req)
{
    static void (*const runs[MEM_REQUEST_COUNT])(struct mem_session * s, struct store_req * req) = {
#define X(name, type) [MEM_REQUEST_##name] = run_##name,
        STORE_REQUESTS(X)
#undef X
    };
    PRE(what < MEM_REQUEST_COUNT);
    PRE(!s->open || what == MEM_REQUEST_enqueue);
    PRE(!req->arena); /* store_req_done was forgotten */
    err_clear(&req->err);
    runs[what](s, req);
    s->changed_us = mem_db_now_us(s->db);
}

/* ---- open transactions ---- */

void mem_begin(struct mem_session *s)
{
    PRE(!s->open);
    s->open = true;
    s->committed = false;
}

static void end(struct mem_session *s)
{
    struct mem_staged *g = &s->staged;
    mem__locks_release(s);
    free(g->rows);
    free(g->wakes);
    free(g->keys);
    *g = (struct mem_staged){0};
    s->open = s->committed = false;
}

void mem_commit(struct mem_session *s)
{
    struct mem_staged *g = &s->staged;
    PRE(s->open && !s->committed);
    for (size_t i = 0; i < g->row_count; i++) {
        struct mem_row *row = g->rows[i];
        struct mem_account *a = mem__account(s->db, row->account);
        if (row->table == MEM_OUTBOX)
            mem__outbox_put(&s->db->t, a, row);
        else
            mem__signed_put(&s->db->t, a, row);
    }
    g->row_count = 0;
    mem__keys_settle(s, true);
    s->committed = true;
    for (size_t i = 0; i < g->wake_count; i++)
        mem__notify_wake(s->db, mem__account(s->db, g->wakes[i]));
}

void mem_release(struct mem_session *s)
{
    PRE(s->open && s->committed);
    end(s);
}

void mem_rollback(struct mem_session *s)
{
    struct mem_staged *g = &s->staged;
    PRE(s->open && !s->committed);
    for (size_t i = 0; i < g->row_count; i++)
        mem__row_free(g->rows[i]);
    mem__keys_settle(s, false);
    end(s);
}

static struct mem_row *waiting_row(const struct mem_db *db, int64_t id)
{
    const struct mem_id *x = mem__id(&db->t, id);
    return x && x->row && x->row->table != MEM_PENDING ? x->row : NULL;
}

bool mem_lock_row(struct mem_session *s, int64_t id)
{
    PRE(!s->held_id);
    struct mem_row *row = waiting_row(s->db, id);
    if (!row || row->held)
        return false;
    row->held = s;
    row->silent = false; /* its leader may sleep when it is let go: a poll finds it */
    s->held_id = id;
    return true;
}

void mem_unlock_row(struct mem_session *s)
{
    const struct mem_id *x = s->held_id ? mem__id(&s->db->t, s->held_id) : NULL;
    if (x && x->row && x->row->held == s)
        x->row->held = NULL;
    s->held_id = 0;
}

void mem_session_foreign(struct mem_session *s)
{
    s->foreign = true;
}

/* ---- failover ---- */

static void end_all(struct mem_db *db)
{
    while (!list_empty(&db->sessions)) {
        struct mem_session *s = CONTAINER_OF(db->sessions.next, struct mem_session, node);
        if (db->config.on_session_end)
            db->config.on_session_end(db->config.arg, s);
        mem_session_end(s);
    }
}

void mem_db_restart(struct mem_db *db)
{
    end_all(db);
}

void mem_db_promote(struct mem_db *db, const struct mem_copy *copy)
{
    end_all(db);
    db->timeline++;
    if (!copy)
        return;
    int64_t last_id = db->t.last_id;
    mem__tables_done(&db->t);
    mem__tables_copy(&db->t, &copy->t);
    if (db->t.last_id < last_id)
        db->t.last_id = last_id;
}

uint32_t mem_db_timeline(const struct mem_db *db)
{
    return db->timeline;
}
