/* The adapter of the listen cursor: one connection that listens, and the cursor's queries.
 * listen/listen.h has the picture of the states. A failed query leads to RETRY_WAIT, which
 * reconnects after a back-off. */
#include "listen/listen.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "listen_internal.h"

enum {
    REPAIR_MS = 60000,
    PROBE_MS = 10000,
    SCAN_ROWS = 1000,
    SETUP_MS =
        40000, /* the first LISTEN of a database reads all that others have not read yet: up to
                         8 GiB */
    ANSWER_MS = 45000, /* longer than statement_timeout: the session hangs */
    RESCAN_MS = 1000,  /* least interval between repairs */
    BACKOFF_BASE_MS = 200,
    BACKOFF_CAP_MS = 5000,
};

static const int64_t ALL_US =
    86400LL * 1000000; /* a `since` on the first day of 1970: everything that is kept */

static const char *const setup_signals[] = {"SET statement_timeout = '30s'", "LISTEN leader_change",
                                            "LISTEN outbox_wake", NULL};
static const char *const setup_all[] = {"SET statement_timeout = '30s'",
                                        "LISTEN leader_change",
                                        "LISTEN outbox_wake",
                                        "LISTEN pending_tx_new",
                                        "LISTEN pending_tx_update",
                                        "LISTEN pending_tx_removed",
                                        NULL};

/* ---- reports to the owner ---- */

static void say_state(struct listen *s)
{
    s->stale_at = UINT64_MAX;
    if (!s->reported_live && s->config.stale_ms)
        s->stale_at = loop_now_ms(s->loop) + s->config.stale_ms;
    if (s->config.on_state)
        s->config.on_state(s->config.arg, s->reported_live, s->since_ms,
                           s->told.code ? &s->told : NULL);
    if (!listen__closing(s))
        listen__arm(s);
}

static void report_state(struct listen *s, bool live, const struct err *err)
{
    int code = err ? err->code : 0;
    if (live == s->reported_live && (live || code == s->told.code))
        return;
    if (live != s->reported_live)
        s->since_ms = live ? loop_now_ms(s->loop) : s->fresh_at;
    s->reported_live = live;
    s->told = err ? *err : (struct err){0};
    say_state(s);
}

void listen__proved(struct listen *s, uint64_t asked_at)
{
    if (s->reported_live && asked_at > s->fresh_at)
        s->fresh_at = asked_at;
}

static void report_event(struct listen *s, const struct listen_event *event)
{
    struct listen_event ev = *event;
    const struct account_row *a = listen__account(s, ev.account);
    ev.position_us = cursor_position(s->cursor);
    if (a) {
        ev.alias = a->alias;
        ev.account_id_len = a->id_len;
        memcpy(ev.account_id, a->id, a->id_len);
    }
    if (s->config.on_event)
        s->config.on_event(s->config.arg, &ev);
}

/* ---- catching up ---- */

/* Any session can cause a repair, so repairs take a tenth of the time at most. */
static uint64_t rescan_ms(const struct listen *s)
{
    return s->scan_ms * 10 > RESCAN_MS ? s->scan_ms * 10 : RESCAN_MS;
}

static void live(struct listen *s)
{
    uint64_t now = loop_now_ms(s->loop), took = now - s->begun_at;
    s->state = LISTEN_LIVE;
    backoff_reset(&s->backoff);
    /* A slow scan is repeated less often. */
    s->scan_ms = took;
    s->repair_at = now + (took * 20 > s->config.repair_ms ? took * 20 : s->config.repair_ms);
    if (s->rescan && s->repair_at > now + rescan_ms(s))
        s->repair_at = now + rescan_ms(s);
    if (s->begun_at > s->fresh_at)
        s->fresh_at = s->begun_at;
    report_state(s, true, NULL);
}

/* A notification was unknown or malformed, or notifications are off: read the table again. */
void listen__rescan(struct listen *s)
{
    if (s->config.signals_only)
        return;
    uint64_t soon = loop_now_ms(s->loop) + rescan_ms(s);
    s->rescan = true;
    if (s->state == LISTEN_LIVE && s->repair_at != UINT64_MAX && s->repair_at > soon)
        s->repair_at = soon;
    listen__arm(s);
}

void listen__step(struct listen *s, const struct cursor_event *ev)
{
    const struct cursor_effect *fx;
    size_t count;
    cursor_step(s->cursor, ev, &fx, &count);
    for (size_t i = 0; i < count && !listen__closing(s); i++) {
        switch (fx[i].type) {
        case CURSOR_FX_EVENT:
            report_event(s, &fx[i].event);
            break;
        case CURSOR_FX_SCAN_PENDING:
            listen__scan_pending(s, &fx[i]);
            break;
        case CURSOR_FX_SCAN_FINISHED:
            listen__scan_finished(s, &fx[i]);
            break;
        case CURSOR_FX_LOOK_UP:
            listen__look_up(s);
            break;
        case CURSOR_FX_LIVE:
            live(s);
            break;
        case CURSOR_FX_DOUBT:
            listen__rescan(s);
            break;
        }
    }
    if (!listen__closing(s))
        listen__arm(s);
}

static void begin(struct listen *s)
{
    s->rescan = false;
    s->begun_at = loop_now_ms(s->loop);
    s->repair_at = UINT64_MAX; /* until it is done */
    if (s->state != LISTEN_LIVE)
        s->state = LISTEN_ACCOUNTS_WAIT;
    if (!s->sources.busy)
        listen__read_sources(s);
    listen__read_accounts(s);
    listen__arm(s);
}

/* The start position is older than the retention horizon, so finished rows may be missing: report a
 * gap, unless the reader asked for everything that is kept. */
static void report_gap(struct listen *s, int64_t kept_us)
{
    int64_t from = cursor_position(s->cursor);
    if (from > ALL_US && from < kept_us && s->config.on_gap)
        s->config.on_gap(s->config.arg, from, kept_us);
}

void listen__accounts_read(struct listen *s, int64_t now_us, int64_t kept_us)
{
    if (cursor_state(s->cursor) == CURSOR_DOWN && cursor_known(s->cursor) == 0) {
        const struct account_row *a = s->account ? listen__account_by_name(s, s->account) : NULL;
        if (s->account && !a) {
            struct err err;
            err_set(&err, ERR_NOT_FOUND,
                    "no such account: \"%.80s\"; txrelay accounts lists them (a relay registers "
                    "its own when it starts)",
                    s->account);
            listen__question_failed(s, &err);
            return;
        }
        cursor_filter(s->cursor, a ? a->number : 0, s->config.id);
    }
    if (s->state != LISTEN_LIVE)
        s->state = LISTEN_SCAN_WAIT;
    report_gap(s, kept_us);
    if (listen__closing(s))
        return;
    listen__step(s, &(struct cursor_event){.type = CURSOR_EV_BEGIN, .begin_us = now_us});
}

void listen__question_failed(struct listen *s, const struct err *err)
{
    if (s->state == LISTEN_RETRY_WAIT)
        return;
    s->state = LISTEN_RETRY_WAIT;
    s->retry_at = loop_now_ms(s->loop) + backoff_next(&s->backoff, &s->rng);
    listen__step(s, &(struct cursor_event){.type = CURSOR_EV_DOWN});
    report_state(s, false, err);
}

/* ---- connection and time ---- */

static void on_up(void *arg)
{
    struct listen *s = arg;
    if (listen__closing(s))
        return;
    s->probe_at = loop_now_ms(s->loop);
    if (s->config.signals_only) {
        s->state = LISTEN_LIVE;
        s->repair_at = UINT64_MAX;
        s->fresh_at = loop_now_ms(s->loop);
        report_state(s, true, NULL);
        if (!listen__closing(s))
            listen__arm(s);
    } else {
        s->probe_at += s->config.probe_ms;
        begin(s);
    }
}

static void on_down(void *arg, const struct err *err)
{
    struct listen *s = arg;
    if (listen__closing(s))
        return;
    s->state = LISTEN_CONNECT_WAIT;
    s->scan_pending = false;
    listen__drop_buffered(s);
    listen__sources_drop(s);
    listen__step(s, &(struct cursor_event){.type = CURSOR_EV_DOWN});
    report_state(s, false, err);
}

static void no_answer(struct listen *s)
{
    struct err err;
    err_set(&err, ERR_TIMEOUT, "the database did not answer the listener in time: reconnecting");
    conn_reconnect(s->conn, &err);
}

static uint64_t answer_due(const struct listen *s)
{
    if (s->probe.busy)
        return s->probe_at + s->config.probe_ms / 2;
    return listen__asking(s) ? s->busy_since + ANSWER_MS : UINT64_MAX;
}

static bool probe_due(const struct listen *s, uint64_t now)
{
    bool idle = !s->probe.busy && !listen__asking(s);
    return idle && s->state != LISTEN_CONNECT_WAIT && s->state != LISTEN_RETRY_WAIT &&
           now >= s->probe_at;
}

void listen__arm(struct listen *s)
{
    uint64_t next = answer_due(s);
    if (s->state == LISTEN_RETRY_WAIT && s->retry_at < next)
        next = s->retry_at;
    if (s->state == LISTEN_LIVE && s->repair_at < next)
        next = s->repair_at;
    if (s->probe_at < next && probe_due(s, s->probe_at))
        next = s->probe_at;
    if (s->stale_at < next)
        next = s->stale_at;
    if (next == UINT64_MAX)
        loop_timer_stop(s->timer);
    else
        loop_timer_at(s->timer, next);
}

static void on_timer(void *arg)
{
    struct listen *s = arg;
    uint64_t now = loop_now_ms(s->loop);
    if (now >= s->stale_at)
        say_state(s);
    if (listen__closing(s))
        return;
    if (now >= answer_due(s)) {
        no_answer(s);
        return;
    }
    if (s->state == LISTEN_RETRY_WAIT && now >= s->retry_at) {
        struct err again;
        err_set(&again, ERR_DB_UNAVAILABLE, "reconnecting after a failed query");
        again.code = s->told.code; /* the reported state stays */
        conn_reconnect(s->conn, &again);
        return;
    }
    if (s->state == LISTEN_LIVE && now >= s->repair_at)
        begin(s);
    if (probe_due(s, now)) {
        s->probe_at = now;
        listen__probe(s);
    }
    listen__arm(s);
}

/* ---- life ---- */

struct listen *listen_new(struct loop *l, const struct listen_config *config)
{
    struct listen *s = xcalloc(1, sizeof(*s));
    s->loop = l;
    s->config = *config;
    s->config.repair_ms = config->repair_ms ? config->repair_ms : REPAIR_MS;
    s->config.probe_ms = config->probe_ms ? config->probe_ms : PROBE_MS;
    s->config.scan_rows = config->scan_rows ? config->scan_rows : SCAN_ROWS;
    s->account = config->account ? xstrdup(config->account) : NULL;
    s->backoff = (struct backoff){.base_ms = BACKOFF_BASE_MS, .cap_ms = BACKOFF_CAP_MS};
    s->rng.state = loop_seed(l);
    s->since_ms = s->fresh_at = loop_now_ms(l);
    s->stale_at = UINT64_MAX;
    list_init(&s->held);
    s->timer = loop_timer_new(l, on_timer, s);
    s->cursor = cursor_new(
        &(struct cursor_config){.since_us = config->since_us, .scan_rows = s->config.scan_rows});
    s->conn = conn_new(l, &(struct conn_config){
                              .dsn = config->dsn,
                              .name = config->name ? config->name : "txrelay listen",
                              .setup = config->signals_only ? setup_signals : setup_all,
                              .refuse_standby = true,
                              .refuse_pooler = true,
                              .setup_timeout_ms = SETUP_MS,
                              .on_up = on_up,
                              .on_down = on_down,
                              .on_notify = listen__notified,
                              .arg = s,
                          });
    return s;
}

void listen_open(struct listen *s)
{
    conn_open(s->conn);
}

static void on_closed(void *arg)
{
    struct listen *s = arg;
    void (*cb)(void *arg) = s->close_cb;
    void *cb_arg = s->close_arg;
    cursor_free(s->cursor);
    listen__accounts_free(s);
    listen__sources_drop(s);
    listen__drop_buffered(s);
    free(s->account);
    free(s);
    cb(cb_arg);
}

void listen_close(struct listen *s, void (*cb)(void *arg), void *arg)
{
    PRE(!listen__closing(s));
    s->state = LISTEN_CLOSING_WAIT;
    s->close_cb = cb;
    s->close_arg = arg;
    s->timer = loop_timer_close(s->timer);
    conn_close(s->conn, on_closed, s);
}

int64_t listen_position(const struct listen *s)
{
    return cursor_position(s->cursor);
}

struct listen_status listen_status(const struct listen *s)
{
    return (struct listen_status){
        .live = s->reported_live,
        .since_ms = s->since_ms,
        .queue_usage = s->queue_usage,
        .clock_back_s = s->clock_back_s,
        .why = s->reported_live ? "" : s->told.text,
    };
}
