/* What was answered, for the relay's metrics. */
#include <string.h>

#include "api_internal.h"
#include "base/check.h"

enum { HUNDRED = 100, MS = 1000 };

/* Why requests are refused before a statement is asked: signs of an attack. */
static const char *const refusals[] = {"unauthorized", "forbidden", "foreign_host",
                                       "foreign_origin", "too_many_requests"};

void api__count(struct ask *k, int status, const char *code)
{
    struct api_counts *c = &k->api->counts;
    size_t route = k->match.status == 200 ? (size_t)k->match.route : API_ROUTE_NONE;
    PRE(status / HUNDRED < API_CLASSES);
    c->answers[route][status / HUNDRED]++;
    for (size_t i = 0; code && i < ARRAY_LEN(refusals); i++)
        c->refused[i] += !strcmp(refusals[i], code);
    metric_observe(&c->took, (double)(loop_now_ms(k->api->loop) - k->since_ms) / MS);
}

void api_metrics(const struct api *a, struct buf *out)
{
    static const struct metric
        requests = {"txrelay_http_requests_total", METRIC_COUNTER,
                    "Requests over HTTP that were answered, by route and class of the status."},
        refused = {"txrelay_http_refused_total", METRIC_COUNTER,
                   "Requests over HTTP that were refused, by reason."},
        connections = {"txrelay_http_connections", METRIC_GAUGE,
                       "Open connections of the HTTP interface."},
        took = {"txrelay_http_duration_seconds", METRIC_HISTOGRAM,
                "From a whole request over HTTP to its answer."};
    static const char *const classes[API_CLASSES] = {"", "1xx", "2xx", "3xx", "4xx", "5xx"};
    metric_head(out, &connections);
    metric_sample(out, &connections, NULL, (double)http_server_connections(a->server));
    metric_head(out, &requests);
    for (size_t r = 0; r <= HTTP_ROUTE_COUNT; r++) {
        for (size_t i = 0; i < API_CLASSES; i++) {
            const struct metric_label labels[] = {
                {"method", r < HTTP_ROUTE_COUNT ? http_routes[r].method : "none"},
                {"route", r < HTTP_ROUTE_COUNT ? http_routes[r].path : "none"},
                {"status", classes[i]},
                {0}};
            if (a->counts.answers[r][i])
                metric_sample(out, &requests, labels, (double)a->counts.answers[r][i]);
        }
    }
    metric_head(out, &refused);
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        const struct metric_label labels[] = {{"reason", refusals[i]}, {0}};
        metric_sample(out, &refused, labels, (double)a->counts.refused[i]);
    }
    metric_head(out, &took);
    metric_histogram(out, &took, NULL, &a->counts.took);
}
