/* The session and the core. A step's effects are carried out before the next step begins; what they
 * answer at once waits in a list. */
#include "hook/hooks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/log.h"
#include "embedded.h"
#include "hooks_internal.h"

extern const struct embedded_file hook_sql_files[];
extern const size_t hook_sql_count;

enum {
    EACH = 10,
    LANES = 8,
    ANSWER_MS = 15000,
    BACKOFF_CAP_MS = 2000,
    ASK_PARAMS = 3,
    DONE_PARAMS = 5
};
enum {
    COL_WEBHOOK,
    COL_ACCOUNT,
    COL_NUMBER,
    COL_ID,
    COL_ATTEMPTS,
    COL_URL,
    COL_SALT,
    COL_SALT_BEFORE,
    COL_BODY,
    COL_DUE,
    COL_LIVE
};

static const char *const setup[] = {"SET statement_timeout = '10s'", "SET lock_timeout = '2s'",
                                    NULL};

/* A report on its way to the database, and why a lane's delivery failed until then. */
struct report {
    struct list node;
    struct hooks *hooks;
    struct conn_query query;
    uint64_t lane;
    bool asked; /* the query is under way */
    char why[HOOK_WHY];
};

static const char *sql(const char *file)
{
    for (size_t i = 0; i < hook_sql_count; i++)
        if (!strcmp(hook_sql_files[i].name, file))
            return hook_sql_files[i].text;
    UNREACHABLE();
}

static struct report *report_of(struct hooks *h, uint64_t lane)
{
    LIST_EACH (n, &h->reports) {
        struct report *r = CONTAINER_OF(n, struct report, node);
        if (r->lane == lane)
            return r;
    }
    struct report *r = xcalloc(1, sizeof(*r));
    r->hooks = h;
    r->lane = lane;
    list_append(&h->reports, &r->node);
    return r;
}

void hooks__failed(struct hooks *h, uint64_t lane, const char *why)
{
    struct report *r = report_of(h, lane);
    snprintf(r->why, sizeof(r->why), "%s", why);
}

/* ---- what is to be delivered ---- */

static const char *text_of(const struct conn_result *r, int row, int col)
{
    int len;
    return conn_result_is_null(r, row, col) ? NULL : conn_result_get(r, row, col, &len);
}

static uint64_t number_of(const struct conn_result *r, int row, int col)
{
    const char *text = text_of(r, row, col);
    return text ? strtoull(text, NULL, 10) : 0;
}

static void copy_salt(char ret[HOOK_SALT_HEX], const char *text)
{
    INVARIANT(!text || strlen(text) < HOOK_SALT_HEX);
    if (text)
        memcpy(ret, text, strlen(text) + 1);
}

static struct delivery *delivery_of(struct hooks *h, const struct conn_result *r, int row)
{
    struct delivery *d = xcalloc(1, sizeof(*d));
    const char *webhook = text_of(r, row, COL_WEBHOOK);
    INVARIANT(strlen(webhook) < sizeof(d->webhook));
    d->hooks = h;
    memcpy(d->webhook, webhook, strlen(webhook) + 1);
    d->id = number_of(r, row, COL_ID);
    d->url = xstrdup(text_of(r, row, COL_URL));
    d->body = xstrdup(text_of(r, row, COL_BODY));
    copy_salt(d->salt, text_of(r, row, COL_SALT));
    copy_salt(d->salt_before, text_of(r, row, COL_SALT_BEFORE));
    list_append(&h->deliveries, &d->node);
    return d;
}

/* Rows come in groups of one webhook and account; the last row has no webhook. */
static void take_rows(struct hooks *h, const struct conn_result *r, struct hook_event *ev)
{
    int count = conn_result_rows(r) - 1;
    INVARIANT(count >= 0);
    struct hook_row *rows = xcalloc((size_t)count + 1, sizeof(*rows));
    struct hook_rows *lanes = xcalloc((size_t)count + 1, sizeof(*lanes));
    size_t n = 0;
    for (int i = 0; i < count; i++) {
        struct delivery *d = delivery_of(h, r, i);
        int32_t account = (int32_t)number_of(r, i, COL_ACCOUNT);
        if (!n || lanes[n - 1].account != account || strcmp(lanes[n - 1].webhook, d->webhook) != 0)
            lanes[n++] =
                (struct hook_rows){.webhook = d->webhook, .account = account, .rows = &rows[i]};
        lanes[n - 1].count++;
        rows[i] = (struct hook_row){.item = d,
                                    .number = number_of(r, i, COL_NUMBER),
                                    .attempts = (uint32_t)number_of(r, i, COL_ATTEMPTS)};
    }
    h->live = number_of(r, count, COL_LIVE);
    ev->rows.lanes = lanes;
    ev->rows.count = n;
    ev->rows.due_ms =
        conn_result_is_null(r, count, COL_DUE) ? -1 : (int64_t)number_of(r, count, COL_DUE);
    ev->rows.none = h->live == 0;
    hooks__step(h, ev);
    free(lanes);
    free(rows);
}

static void on_rows(struct conn_query *q, const struct conn_result *r)
{
    struct hooks *h = CONTAINER_OF(q, struct hooks, ask);
    struct hook_event ev = {.type = HOOK_EV_ROWS, .failed = q->err.code != 0};
    if (!h->conn)
        return;
    if (q->err.code && err_class(q->err.code) != ERR_CLASS_RETRY)
        log_error("webhook.ask_failed", "code=%s text=\"%s\"", err_name(q->err.code), q->err.text);
    if (ev.failed)
        hooks__step(h, &ev);
    else
        take_rows(h, r, &ev);
}

static void ask(struct hooks *h)
{
    char each[12], lanes[12];
    snprintf(each, sizeof(each), "%d", EACH);
    snprintf(lanes, sizeof(lanes), "%d", LANES);
    const struct conn_param params[ASK_PARAMS] = {
        {.data = h->holder}, {.data = each}, {.data = lanes}};
    conn_query_start(h->conn, &h->ask, "leader_webhooks.sql", sql("leader_webhooks.sql"),
                     ASK_PARAMS, params, 0, on_rows);
}

/* ---- what became of it ---- */

static void on_report(struct conn_query *q, const struct conn_result *result)
{
    struct report *r = CONTAINER_OF(q, struct report, query);
    struct hooks *h = r->hooks;
    struct hook_event ev = {.type = HOOK_EV_REPORTED, .lane = r->lane, .failed = q->err.code != 0};
    (void)result;
    r->asked = false;
    if (q->err.code && err_class(q->err.code) != ERR_CLASS_RETRY)
        log_error("webhook.report_failed", "code=%s text=\"%s\"", err_name(q->err.code),
                  q->err.text);
    if (!ev.failed || !h->conn) {
        list_remove(&r->node);
        free(r);
    }
    if (h->conn)
        hooks__step(h, &ev);
}

static void report(struct hooks *h, const struct hook_effect *fx)
{
    struct report *r = report_of(h, fx->lane);
    struct buf taken = {0};
    char number[24], delay[24];
    buf_puts(&taken, "{");
    for (size_t i = 0; i < fx->taken_count; i++)
        buf_printf(&taken, "%s%" PRIu64, i ? "," : "", fx->taken[i]);
    buf_puts(&taken, "}");
    snprintf(number, sizeof(number), "%" PRIu64, fx->number);
    snprintf(delay, sizeof(delay), "%" PRIu64, fx->delay_ms);
    const struct conn_param params[DONE_PARAMS] = {{.data = buf_str(&taken)},
                                                   {.data = fx->number ? number : NULL},
                                                   {.data = fx->number ? r->why : NULL},
                                                   {.data = delay},
                                                   {.data = fx->dead ? "t" : "f"}};
    if (fx->dead)
        log_warn("webhook.given_up", "number=%s text=\"%s\"", number, r->why);
    r->asked = true;
    conn_query_start(h->conn, &r->query, "leader_webhooks_done.sql",
                     sql("leader_webhooks_done.sql"), DONE_PARAMS, params, 0, on_report);
    buf_done(&taken);
}

/* ---- the core ---- */

static void carry_out(struct hooks *h, const struct hook_effect *fx)
{
    switch (fx->type) {
    case HOOK_FX_ASK:
        ask(h);
        return;
    case HOOK_FX_SEND:
        hooks__send(fx->item, fx->lane);
        return;
    case HOOK_FX_REPORT:
        report(h, fx);
        return;
    case HOOK_FX_RELEASE:
        hooks__release(fx->item);
        return;
    }
    UNREACHABLE();
}

void hooks__step(struct hooks *h, const struct hook_event *ev)
{
    const struct hook_effect *fx;
    size_t count;
    PRE(!h->stepping);
    h->stepping = true;
    hook_step(h->core, loop_now_ms(h->loop), ev, &fx, &count);
    if (hook_bug(h->core))
        log_error("internal.bug", "part=webhooks text=\"%s\"", hook_bug(h->core));
    for (size_t i = 0; i < count; i++)
        carry_out(h, &fx[i]);
    h->stepping = false;
    uint64_t due = hook_due(h->core);
    if (due == UINT64_MAX)
        loop_timer_stop(h->timer);
    else
        loop_timer_at(h->timer, due);
}

static void on_timer(void *arg)
{
    struct hook_event ev = {.type = HOOK_EV_TICK};
    hooks__step(arg, &ev);
}

/* ---- life ---- */

static void hooks_free(struct hooks *h)
{
    loop_timer_close(h->timer);
    tls_context_free(h->tls);
    if (h->core)
        hook_core_free(h->core, NULL);
    if (h->key)
        explicit_bzero(h->key, strlen(h->key));
    free(h->key);
    free(h->holder);
    free(h);
}

struct hooks *hooks_open(struct loop *l, const struct hooks_config *config, struct err *err)
{
    struct hooks *h = xcalloc(1, sizeof(*h));
    const struct tls_config tls = {.http1 = true, .ca_file = config->ca_file};
    const struct conn_config session = {.dsn = config->dsn,
                                        .name = config->name,
                                        .setup = setup,
                                        .refuse_standby = true,
                                        .answer_timeout_ms = ANSWER_MS,
                                        .backoff_cap_ms = BACKOFF_CAP_MS};
    struct hook_config core = config->core;
    h->loop = l;
    h->tls = tls_context_new(&tls, err);
    if (!h->tls) {
        free(h);
        return NULL;
    }
    core.seed = loop_seed(l);
    h->core = hook_core_new(&core);
    h->holder = xstrdup(config->holder);
    h->key = xstrdup(config->key);
    h->allow_private = config->allow_private;
    h->timeout_ms = config->timeout_ms;
    list_init(&h->deliveries);
    list_init(&h->reports);
    h->timer = loop_timer_new(l, on_timer, h);
    h->conn = conn_new(l, &session);
    conn_open(h->conn);
    loop_timer_at(h->timer, loop_now_ms(l));
    return h;
}

int hooks_reload(struct hooks *h, struct err *err)
{
    return tls_context_reload(h->tls, err);
}

void hooks_drain(struct hooks *h)
{
    struct hook_event ev = {.type = HOOK_EV_DRAIN};
    hooks__step(h, &ev);
}

static void on_closed(void *arg)
{
    struct hooks *h = arg;
    void (*cb)(void *arg) = h->cb;
    void *cb_arg = h->cb_arg;
    struct list *n;
    while ((n = list_first(&h->reports))) { /* those of lanes whose report was not asked for */
        list_remove(n);
        free(CONTAINER_OF(n, struct report, node));
    }
    hooks_free(h);
    cb(cb_arg);
}

/* Requests under way end here: the next leader repeats them. */
void hooks_close(struct hooks *h, void (*cb)(void *arg), void *arg)
{
    struct conn *conn = h->conn;
    struct list *n;
    h->cb = cb;
    h->cb_arg = arg;
    h->conn = NULL;
    loop_timer_stop(h->timer);
    while ((n = list_first(&h->deliveries)))
        hooks__release(CONTAINER_OF(n, struct delivery, node));
    conn_close(conn, on_closed, h);
}

/* ---- metrics ---- */

void hooks_metrics(const struct hooks *h, struct buf *out)
{
    static const struct metric
        sent = {"txrelay_webhook_deliveries_total", METRIC_COUNTER,
                "Requests to receivers of webhooks, by what became of them."},
        live = {"txrelay_webhooks", METRIC_GAUGE, "Webhooks in the database."},
        sending = {"txrelay_webhook_sending", METRIC_GAUGE,
                   "Requests to receivers of webhooks that are under way."},
        took = {"txrelay_webhook_duration_seconds", METRIC_HISTOGRAM,
                "How long receivers of webhooks take to answer."};
    struct hook_counts c = hook_counts_of(h->core);
    const struct {
        const char *result;
        uint64_t value;
    } results[] = {{"taken", c.taken}, {"failed", c.failed}, {"given_up", c.dead}};
    metric_head(out, &live);
    metric_sample(out, &live, NULL, (double)h->live);
    metric_head(out, &sending);
    metric_sample(out, &sending, NULL, (double)hook_sending(h->core));
    metric_head(out, &sent);
    for (size_t i = 0; i < ARRAY_LEN(results); i++) {
        const struct metric_label labels[] = {{"result", results[i].result}, {0}};
        metric_sample(out, &sent, labels, (double)results[i].value);
    }
    metric_head(out, &took);
    metric_histogram(out, &took, NULL, &h->took);
}
