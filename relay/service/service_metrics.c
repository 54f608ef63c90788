/* The metrics endpoint: HTTP/1.1 GET on a loopback port, for Prometheus and for probes.
 *
 *   /metrics   metrics.h as text
 *   /healthz   200 while the loop answers
 *   /readyz    200 if the relay can work; else 503 and a line for each reason
 *
 * A request is its head alone. Connections, their number and their idle time are bounded by
 * loop/peer.h; a head has at most LINES_MAX lines. It reads nothing that a client sends but the
 * first line and the name of the host: another name than that of this host is refused, so that no
 * web page can read metrics by giving its own name a loopback address. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/host.h"
#include "base/log.h"
#include "loop/peer.h"
#include "service/entry.h"
#include "service/metrics.h"
#include "service/service_internal.h"

enum { LINES_MAX = 64, LINE_MAX_BYTES = 8192, LAG_MS = 500, MS_PER_S = 1000 };

struct request {
    struct loop_peer *peer;
    struct list node;
    char path[64];
    bool get, head; /* the method */
    bool foreign;   /* meant for another host */
    unsigned lines; /* of the head so far; 0: none */
};

struct service_metrics {
    struct room room;
    struct loop_server *server;
    struct entry entry;
    char *address;
    struct list requests; /* one for each connection */
    struct loop_timer *timer;
    uint64_t due_ms, lag_ms;
};

static void get_metrics(struct service *s, uint64_t *lag_ms, struct buf *out)
{
    struct service_status status;
    struct process_status process;
    service_status(s, &status);
    process_status(&process);
    process.lag_seconds = (double)*lag_ms / MS_PER_S;
    *lag_ms = 0;
    metrics_text(out, &status, &process, loop_now_ms(s->loop));
    service_feeds_metrics(s, out);
    service_guests_metrics(s, out);
    service_sites_metrics(s, out);
    service_status_done(&status);
}

bool service_ready(const struct service *s, struct buf *ret_reasons)
{
    struct service_status status;
    service_status(s, &status);
    bool ready = health_ready(&status, ret_reasons);
    service_status_done(&status);
    return ready;
}

void service_metrics_text(struct service *s, struct buf *out)
{
    uint64_t none = 0;
    get_metrics(s, s->metrics ? &s->metrics->lag_ms : &none, out);
}

/* ---- HTTP ---- */

static struct request *request_of(struct service_metrics *m, struct loop_peer *peer)
{
    LIST_EACH (n, &m->requests) {
        struct request *q = CONTAINER_OF(n, struct request, node);
        if (q->peer == peer)
            return q;
    }
    return NULL;
}

static void request_free(struct request *q)
{
    list_remove(&q->node);
    free(q);
}

static void respond(const struct request *q, const char *status, struct buf *body)
{
    struct buf out = {0};
    buf_printf(&out,
               "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
               "Content-Length: %zu\r\nCache-Control: no-store\r\n"
               "X-Content-Type-Options: nosniff\r\n\r\n",
               status, body->len);
    if (!q->head)
        buf_put(&out, body->data, body->len);
    loop_peer_write(q->peer, out.data, out.len);
    buf_done(&out);
}

static void serve(struct service_metrics *m, const struct request *q)
{
    struct buf body = {0};
    const char *status = "200 OK";
    if (q->foreign) {
        status = "403 Forbidden";
        buf_puts(&body, "this endpoint answers to the names of this host only\n");
    } else if (!q->get && !q->head) {
        status = "405 Method Not Allowed";
        buf_puts(&body, "GET only\n");
    } else if (!strcmp(q->path, "/metrics")) {
        get_metrics(m->room.service, &m->lag_ms, &body);
    } else if (!strcmp(q->path, "/healthz")) {
        buf_puts(&body, "ok\n");
    } else if (!strcmp(q->path, "/readyz")) {
        if (service_ready(m->room.service, &body))
            buf_puts(&body, "ready\n");
        else
            status = "503 Service Unavailable";
    } else {
        status = "404 Not Found";
        buf_puts(&body, "/metrics, /healthz, /readyz\n");
    }
    respond(q, status, &body);
    buf_done(&body);
}

static bool first_line(struct request *q, const char *line)
{
    char method[8], version[12];
    if (sscanf(line, "%7s %63s %11s", method, q->path, version) != 3 ||
        strncmp(version, "HTTP/1.", 7) != 0)
        return false;
    q->path[strcspn(q->path, "?")] = 0;
    q->get = !strcmp(method, "GET");
    q->head = !strcmp(method, "HEAD");
    return true;
}

static bool is_local_name(const char *host)
{
    const char *port;
    size_t len = host_split(&host, strcspn(host, " \t"), &port);
    return len && host_is_loopback(host, len);
}

static void header(struct request *q, const char *line)
{
    static const char name[] = "host:";
    if (strncasecmp(line, name, sizeof(name) - 1) != 0)
        return;
    const char *host = line + sizeof(name) - 1;
    q->foreign = !is_local_name(host + strspn(host, " \t"));
}

static void end_peer(struct request *q)
{
    struct loop_peer *peer = q->peer;
    request_free(q);
    loop_peer_close(peer);
}

static void on_line(void *arg, struct loop_peer *peer, const char *line, size_t len)
{
    struct service_metrics *m = arg;
    struct request *q = request_of(m, peer);
    char text[LINE_MAX_BYTES];
    if (len && line[len - 1] == '\r')
        len--;
    if (len >= sizeof(text) || q->lines >= LINES_MAX) {
        end_peer(q);
        return;
    }
    memcpy(text, line, len);
    text[len] = 0;
    if (!len && q->lines) {
        serve(m, q);
        q->lines = 0;
        q->foreign = false;
    } else if (q->lines++) {
        header(q, text);
    } else if (!first_line(q, text)) {
        end_peer(q);
    }
}

static void on_open(void *arg, struct loop_peer *peer)
{
    struct service_metrics *m = arg;
    struct request *q = xcalloc(1, sizeof(*q));
    q->peer = peer;
    list_append(&m->requests, &q->node);
}

static void on_end(void *arg, struct loop_peer *peer, const struct err *err)
{
    (void)err;
    request_free(request_of(arg, peer));
}

/* ---- the room ---- */

/* How late the loop is, as every other timer is with it. */
static void on_timer(void *arg)
{
    struct service_metrics *m = arg;
    uint64_t now = loop_now_ms(m->room.service->loop);
    if (now - m->due_ms > m->lag_ms)
        m->lag_ms = now - m->due_ms;
    m->due_ms = now + LAG_MS;
    loop_timer_at(m->timer, m->due_ms);
}

/* It answers until the service ends, as the control endpoint does. */
static void metrics_free(struct room *r)
{
    struct service_metrics *m = CONTAINER_OF(r, struct service_metrics, room);
    m->timer = loop_timer_close(m->timer);
    entry_end(&m->entry);
    loop_server_close(m->server);
    free(m->address);
    for (struct list *n = list_first(&m->requests); n; n = list_first(&m->requests))
        request_free(CONTAINER_OF(n, struct request, node));
    r->service->metrics = NULL;
    free(m);
}

static const struct room_ops ops = {.name = "metrics", .free = metrics_free};

static int try_server(struct entry *e, struct err *err)
{
    struct service_metrics *m = CONTAINER_OF(e, struct service_metrics, entry);
    struct service *s = e->service;
    struct loop_peer_events events = {
        .on_open = on_open, .on_line = on_line, .on_end = on_end, .arg = m};
    m->server = loop_server_new(s->loop, m->address, &events, err);
    if (!m->server)
        return err->code;
    log_info("metrics.listening", "relay=%s address=%s", s->name, loop_server_address(m->server));
    return 0;
}

struct room *service_metrics(struct service *s, struct err *err)
{
    (void)err;
    if (!s->config.metrics_address)
        return NULL;
    struct service_metrics *m = xcalloc(1, sizeof(*m));
    m->room = (struct room){.ops = &ops, .service = s};
    m->entry = (struct entry){.name = "metrics", .service = s, .open = try_server};
    m->address = xstrdup(s->config.metrics_address);
    PRE(loop_address_is_local(m->address));
    list_init(&m->requests);
    m->due_ms = loop_now_ms(s->loop) + LAG_MS;
    m->timer = loop_timer_new(s->loop, on_timer, m);
    loop_timer_at(m->timer, m->due_ms);
    s->metrics = m;
    entry_begin(&m->entry);
    return &m->room;
}
