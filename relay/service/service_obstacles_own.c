/* What keeps the relay itself from its work: obstacle.h lists it. It goes into the log and the
 * status, and into the table as long as there is a database to write it to. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/log.h"
#include "service/obstacles.h"
#include "service/service_internal.h"

enum { CLOCK_BACK_S = 5 };
static const double QUEUE_SHUT = 0.25; /* queue_measure in schema/functions */

/* The request that says what keeps the relay. */
struct own_writing {
    struct store_relay_obstacle run;
    struct service *service;
    struct obstacles_own *own;
    struct obstacle said;
};

/* ---- what it sees ---- */

void obstacles_put(struct obstacle *ret, enum obstacle_code code, const char *text)
{
    if (!text)
        return;
    plain_text(ret->text, sizeof(ret->text), text);
    ret->code = code;
}

/* All the rest follows from that. */
static bool see_database(const struct service *s, struct obstacle *ret)
{
    char text[sizeof(ret->text)];
    if (s->store_up)
        return false;
    snprintf(text, sizeof(text), "the relay sends nothing, because it has no database: %s",
             s->store_error[0] ? s->store_error : "the server has not answered yet");
    obstacles_put(ret, OBSTACLE_DATABASE, text);
    return true;
}

/* What keeps a relay that leads nothing from taking over: also a node that is far behind, which is
 * left. The accounts of a leader show it themselves. */
static bool see_node(const struct service *s, struct obstacle *ret)
{
    if (node_info(s->node))
        return false;
    ret->code = OBSTACLE_NODE;
    snprintf(ret->text, sizeof(ret->text), "no endpoint is usable, so it cannot take over: %s",
             s->node_error);
    return true;
}

/* Claims and renewals come back so late that leaders change although nothing is wrong with them. */
static bool see_control(const struct service *s, struct obstacle *ret)
{
    uint32_t lasts;
    uint64_t ms = election_slow(s->election, &lasts);
    if (!ms)
        return false;
    ret->code = OBSTACLE_CONTROL;
    snprintf(
        ret->text, sizeof(ret->text),
        "the session database.url answers after %llu ms, and a relay leads for %u ms without a "
        "renewal: it may lose accounts. Raise leadership.expiry_1_ms, or run it nearer to the "
        "database",
        (unsigned long long)ms, lasts);
    return true;
}

static void see_listener(const struct service *s, struct obstacle *ret)
{
    struct listen_status l;
    if (!service_listen_status(s, &l))
        return;
    if (!l.live)
        obstacles_put(ret, OBSTACLE_LISTENER, l.why);
    else if (l.queue_usage >= QUEUE_SHUT)
        obstacles_put(ret, OBSTACLE_QUEUE,
                      "the server's notification queue fills up, so nothing is notified: rows are "
                      "found by polls");
    else if (l.clock_back_s >= CLOCK_BACK_S)
        obstacles_put(ret, OBSTACLE_CLOCK,
                      "the server's clock is behind the time that the database had reached");
}

/* A relay that does not run yet has nothing else that could keep it. */
static void see(const struct service *s, struct obstacle *ret)
{
    if (see_database(s, ret) || s->phase != SERVICE_RUNNING)
        return;
    if (!see_control(s, ret) && (service_leads(s) || !see_node(s, ret)))
        see_listener(s, ret);
}

/* ---- the table ---- */

static void stored(struct store_req *req)
{
    struct own_writing *w = CONTAINER_OF(req, struct own_writing, run.req);
    struct service *s = w->service;
    if (err_is_refused(req->err.code))
        log_error("store.refused", "write=relay_obstacle code=%s sqlstate=%s text=\"%s\"",
                  err_name(req->err.code), req->err.sqlstate, req->err.text);
    if (req->err.code)
        obstacle_unstored(&w->own->track);
    w->own->storing = false;
    store_req_done(req);
    free(w);
    service_op_done(s);
}

static void store(struct service *s, struct obstacles_own *own, bool over, uint64_t now)
{
    struct own_writing *w = xcalloc(1, sizeof(*w));
    w->service = s;
    w->own = own;
    w->said = own->track.now;
    w->run = (struct store_relay_obstacle){
        .holder = s->holder,
        .code = over ? NULL : obstacle_name(w->said.code),
        .text = over ? NULL : w->said.text,
        .since_ms = (int64_t)(now - own->track.since),
    };
    own->storing = true;
    s->ops++;
    store_relay_obstacle_start(s->store, &w->run, stored);
}

/* ---- the log, the status ---- */

static void tell(const struct service *s, const struct obstacle_track *t, bool over, uint64_t now)
{
    if (over)
        log_info("relay.goes_on", "relay=%s after_ms=%llu was=%s", s->name,
                 (unsigned long long)(now - t->since), obstacle_name(t->now.code));
    else
        log_warn("relay.blocked", "relay=%s for_ms=%llu code=%s text=\"%s\"", s->name,
                 (unsigned long long)(now - t->since), obstacle_name(t->now.code), t->now.text);
}

void obstacles_own_status(const struct service *s, const struct obstacles_own *own,
                          struct service_status *ret)
{
    const struct obstacle_track *t = &own->track;
    bool blocked = obstacle_lasts(t);
    ret->obstacle = blocked ? obstacle_name(t->now.code) : "";
    ret->obstacle_text = blocked ? t->now.text : "";
    ret->obstacle_ms = blocked ? loop_now_ms(s->loop) - t->since : 0;
}

/* ---- once a second ---- */

void obstacles_own_check(struct service *s, struct obstacles_own *own)
{
    struct obstacle_track *t = &own->track;
    uint64_t now = loop_now_ms(s->loop), stored_at = t->stored_at;
    struct obstacle seen = {0};
    if (s->standalone || (s->phase != SERVICE_RUNNING && s->phase != SERVICE_STARTING))
        return;
    see(s, &seen);
    /* These two were measured seconds ago, and do not come and go. */
    if (!t->since && (seen.code == OBSTACLE_QUEUE || seen.code == OBSTACLE_CLOCK))
        t->since = now > OBSTACLE_AFTER_MS ? now - OBSTACLE_AFTER_MS : 1;
    unsigned actions = obstacle_step(t, now, &seen);
    bool over = actions & OBSTACLE_OVER;
    if ((actions & OBSTACLE_STORE) && s->store_up && !own->storing) {
        store(s, own, over, now);
    } else if (actions & OBSTACLE_STORE) {
        obstacle_unstored(t);
        t->stored_at = stored_at; /* no write began */
        if (over)
            return; /* it is over at a later check, when that can be stored */
    }
    if (actions & (OBSTACLE_TELL | OBSTACLE_OVER))
        tell(s, t, over, now);
    if (over)
        obstacle_forget(t);
}
