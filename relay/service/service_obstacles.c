/* What keeps accounts from going on: each leader's manager is asked once a second; and what keeps
 * the relay itself from its work. What lasts goes into the log, the status and the table
 * (obstacle.h), so that operators see it within seconds and nothing waits in silence. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "service/obstacles.h"
#include "service/service_internal.h"

enum {
    CHECK_MS = 1000,
    LINES_MAX = 20,   /* of the log, in one pass: an endpoint that is gone stops all accounts */
    BATCH_MAX = 1000, /* accounts of one request */
    BEHIND_MS = 3000, /* a node that lacks a known block for longer is left for another one */
};

struct service_obstacles {
    struct room room;
    struct loop_timer *timer; /* NULL: closed */
    bool storing;             /* one request at a time */
    size_t next;              /* where the next pass begins to collect what is to be stored */
    bool behind;              /* in this pass: an account waits for a block that the node lacks */
    uint64_t behind_since;    /* 0: none does */
    struct obstacles_own own;
};

/* The request that is out, with copies of what it says. */
struct writing {
    struct store_obstacles run;
    struct service *service;
    struct store_obstacle *rows;
    struct obstacle *said;
    int *accounts; /* their indexes */
};

/* ---- what an account's leader sees ---- */

/* What endpoints do not agree about. */
static void see_endpoints(const struct service *s, const struct account *a, struct obstacle *ret)
{
    obstacles_put(ret, OBSTACLE_BEHIND, node_slow(s->node));
    obstacles_put(ret, OBSTACLE_UNCONFIRMED, node_unconfirmed(s->node));
    obstacles_put(ret, OBSTACLE_CONTRADICTED, node_contradicted(s->node, (size_t)a->index));
}

/* What only its doors know goes with what its manager knows. */
static void see(const struct service *s, const struct account *a, uint64_t now,
                struct obstacle *ret)
{
    if (a->site)
        service_sites_obstacle(a, ret);
    else
        manager_obstacle(a->manager, now, ret);
    if (ret->code == OBSTACLE_BEHIND)
        s->obstacles->behind = true;
    bool node = ret->code == OBSTACLE_NODE;
    if (node && s->node_error[0])
        snprintf(ret->text, sizeof(ret->text), "no endpoint is usable: %s", s->node_error);
    if (ret->code != OBSTACLE_WRITE && !node && a->read_error[0]) {
        ret->code = OBSTACLE_READ;
        snprintf(ret->text, sizeof(ret->text), "the database refuses to read %s", a->read_error);
    }
    if (ret->code == OBSTACLE_NONE || ret->code > OBSTACLE_UNCONFIRMED)
        see_endpoints(s, a, ret);
    if (ret->code == OBSTACLE_NONE)
        account_held_obstacle(a, now, ret);
}

/* What a follower sees: nobody leads the account. The views say so as well, where it has something
 * to do. */
static void see_unled(const struct service *s, const struct account *a, struct obstacle *ret)
{
    bool in_way;
    const char *why;
    char text[sizeof(ret->text)];
    if (!election_unled(s->election, a->index, &in_way, &why))
        return;
    if (in_way)
        snprintf(text, sizeof(text), "nobody leads it: its lock is held by %s",
                 *why ? why : "a session that is no relay's");
    else
        snprintf(text, sizeof(text), "nobody leads it, and this relay has not got it%s%s",
                 *why ? ": " : "", why);
    obstacles_put(ret, in_way ? OBSTACLE_FOREIGN_LOCK : OBSTACLE_NO_LEADER, text);
}

/* ---- the table ---- */

static void stored(struct store_req *req)
{
    struct writing *w = CONTAINER_OF(req, struct writing, run.req);
    struct service *s = w->service;
    const struct err *err = &req->err;
    if (err_is_refused(err->code))
        log_error("store.refused", "write=obstacles code=%s sqlstate=%s text=\"%s\"",
                  err_name(err->code), err->sqlstate, err->text);
    for (size_t i = 0; err->code && i < w->run.count; i++)
        if (s->accounts[w->accounts[i]].epoch == w->rows[i].epoch)
            obstacle_unstored(&s->accounts[w->accounts[i]].obstacle);
    s->obstacles->storing = false;
    store_req_done(req);
    free(w->rows);
    free(w->said);
    free(w->accounts);
    free(w);
    service_op_done(s);
}

static struct writing *writing_new(struct service *s)
{
    struct writing *w = xcalloc(1, sizeof(*w));
    w->service = s;
    w->rows = xcalloc(BATCH_MAX, sizeof(*w->rows));
    w->said = xcalloc(BATCH_MAX, sizeof(*w->said));
    w->accounts = xcalloc(BATCH_MAX, sizeof(*w->accounts));
    return w;
}

static void put(struct writing *w, const struct account *a, bool over, uint64_t now)
{
    size_t i = w->run.count++;
    bool none = over || obstacle_is_in_views(a->obstacle.now.code);
    w->said[i] = a->obstacle.now;
    w->accounts[i] = a->index;
    w->rows[i] = (struct store_obstacle){
        .account = a->store_account,
        .epoch = a->epoch,
        .code = none ? NULL : obstacle_name(w->said[i].code),
        .text = none ? NULL : w->said[i].text,
        .since_ms = (int64_t)(now - a->obstacle.since),
    };
}

/* ---- the log ---- */

static void log_account(const struct account *a, bool over, uint64_t now)
{
    const struct obstacle_track *t = &a->obstacle;
    if (over)
        log_info("account.goes_on", "account=%s epoch=%lld after_ms=%llu was=%s", a->alias,
                 (long long)a->epoch, (unsigned long long)(now - t->since),
                 obstacle_name(t->now.code));
    else
        log_warn("account.blocked", "account=%s epoch=%lld for_ms=%llu code=%s text=\"%s\"",
                 a->alias, (long long)a->epoch, (unsigned long long)(now - t->since),
                 obstacle_name(t->now.code), t->now.text);
}

bool service_leads(const struct service *s)
{
    for (size_t i = 0; i < s->account_count; i++)
        if (s->accounts[i].role == ACCOUNT_LEADER)
            return true;
    return false;
}

bool service_waits_for_block(const struct service *s)
{
    return s->obstacles->behind;
}

/* ---- once a second ---- */

static bool may_store(const struct service *s, const struct writing *w)
{
    return s->store_up && !s->obstacles->storing && (!w || w->run.count < BATCH_MAX);
}

static void check_account(struct service *s, struct account *a, struct writing **w, size_t *lines)
{
    uint64_t now = loop_now_ms(s->loop);
    struct obstacle seen;
    see(s, a, now, &seen);
    unsigned actions = obstacle_step(&a->obstacle, now, &seen);
    bool over = actions & OBSTACLE_OVER;
    if ((actions & OBSTACLE_STORE) && may_store(s, *w)) {
        *w = *w ? *w : writing_new(s);
        put(*w, a, over, now);
    } else if (actions & OBSTACLE_STORE) {
        obstacle_unstored(&a->obstacle);
        if (over)
            return; /* it is over at a later check, when that can be stored */
    }
    if ((actions & (OBSTACLE_TELL | OBSTACLE_OVER)) && (*lines)++ < LINES_MAX)
        log_account(a, over, now);
    if (over)
        obstacle_forget(&a->obstacle);
}

/* It has no epoch to write to the table with. */
static void check_follower(struct service *s, struct account *a, size_t *lines)
{
    uint64_t now = loop_now_ms(s->loop);
    struct obstacle seen = {0};
    if (s->standalone || s->phase != SERVICE_RUNNING || !s->store_up)
        return;
    see_unled(s, a, &seen);
    unsigned actions = obstacle_step(&a->obstacle, now, &seen);
    bool over = actions & OBSTACLE_OVER;
    if ((actions & (OBSTACLE_TELL | OBSTACLE_OVER)) && (*lines)++ < LINES_MAX)
        log_account(a, over, now);
    if (over)
        obstacle_forget(&a->obstacle);
}

void service_obstacle_over(struct account *a)
{
    if (obstacle_lasts(&a->obstacle))
        log_account(a, true, loop_now_ms(a->service->loop));
    obstacle_forget(&a->obstacle);
}

/* Some blocks behind all the time, a node would be asked nothing for ever. */
static void leave_what_is_behind(struct service *s)
{
    struct service_obstacles *o = s->obstacles;
    uint64_t now = loop_now_ms(s->loop);
    if (!o->behind || !o->behind_since)
        o->behind_since = o->behind ? now : 0;
    if (!o->behind || now < o->behind_since + BEHIND_MS)
        return;
    o->behind_since = 0;
    node_behind(s->node);
}

static void check_all(void *arg)
{
    struct service_obstacles *o = arg;
    struct service *s = o->room.service;
    struct writing *w = NULL;
    size_t lines = 0;
    o->behind = false;
    for (size_t i = 0; i < s->account_count; i++) {
        struct account *a = &s->accounts[(o->next + i) % s->account_count];
        if (a->role == ACCOUNT_LEADER)
            check_account(s, a, &w, &lines);
        else
            check_follower(s, a, &lines);
    }
    obstacles_own_check(s, &o->own);
    if (lines > LINES_MAX)
        log_warn("account.blocked", "more=%zu text=\"so are, or were, other accounts\"",
                 lines - LINES_MAX);
    if (w) {
        o->storing = true;
        o->next = (o->next + BATCH_MAX) % s->account_count; /* later ones have their turn */
        w->run.rows = w->rows;
        s->ops++;
        store_obstacles_start(s->store, &w->run, stored);
    }
    leave_what_is_behind(s);
    loop_timer_at(o->timer, loop_now_ms(s->loop) + CHECK_MS);
}

/* ---- the room ---- */

static void obstacles_begin(struct room *r)
{
    struct service *s = r->service;
    loop_timer_at(s->obstacles->timer, loop_now_ms(s->loop) + CHECK_MS);
}

static void obstacles_close(struct room *r)
{
    struct service_obstacles *o = r->service->obstacles;
    o->timer = loop_timer_close(o->timer);
    room_ended(r);
}

static void obstacles_free(struct room *r)
{
    struct service_obstacles *o = r->service->obstacles;
    loop_timer_close(o->timer);
    r->service->obstacles = NULL;
    free(o);
}

static void obstacles_status(const struct room *r, struct service_status *ret)
{
    obstacles_own_status(r->service, &r->service->obstacles->own, ret);
}

static const struct room_ops ops = {.name = "obstacles",
                                    .open = obstacles_begin, /* the database may be away */
                                    .run = obstacles_begin,
                                    .close = obstacles_close,
                                    .free = obstacles_free,
                                    .status = obstacles_status};

struct room *service_obstacles(struct service *s, struct err *err)
{
    (void)err;
    struct service_obstacles *o = s->obstacles = xcalloc(1, sizeof(*o));
    o->room = (struct room){.ops = &ops, .service = s};
    o->timer = loop_timer_new(s->loop, check_all, o);
    return &o->room;
}
