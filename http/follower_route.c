/* The route of events: whose, and from where on. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "events_internal.h"

static const int64_t END_US = 253402300800000000; /* of the year 9999: dates of SQL end somewhere */

static void on_account(struct conn_query *q, const struct conn_result *r)
{
    struct ask *k = CONTAINER_OF(q, struct ask, query);
    struct follower *f = k->follower;
    int len;
    if (q->err.code) {
        struct err err = q->err;
        free(f);
        api__database_problem(k, &err);
    } else if (!hub__has_room(k->api->hub)) {
        free(f);
        api__problem(k, 503, "unavailable", "Retry-After: 5\r\n",
                     "this relay has as many readers of events as it may have: ask another one");
    } else {
        f->filter.account = (int32_t)strtol(conn_result_get(r, 0, 0, &len), NULL, 10);
        follower__start(f, k->api->hub, k->r, k->hash);
        api__ask_free(k);
    }
}

/* NULL, or what is wrong. */
static const char *take_since(struct follower *f, const char *text)
{
    if (event_id_parse(text, &f->from))
        f->since_us = f->from.position_us;
    else if (!listen_since_parse(text, &f->since_us) || f->since_us < 1)
        f->since_us = INT64_MAX;
    if (f->since_us > END_US)
        return "Last-Event-ID and since are an id of an event, a position, or a time like "
               "2026-11-27T22:00:00Z";
    return NULL;
}

static const char *take_params(struct ask *k, struct follower *f)
{
    const struct http_params *p = &k->match.params;
    const char *why = NULL, *last = http_header(k->r, "last-event-id");
    for (size_t i = 0; i < p->count && !why; i++) {
        const char *name = p->list[i].name, *value = p->list[i].value;
        if (!strcmp(name, "id")) {
            f->filter.id = strtoll(value, NULL, 10);
            if (value[strspn(value, "0123456789")] || f->filter.id < 1 || strlen(value) > 18)
                why = "id must be a whole number from 1 on, of at most 18 digits";
        } else if (!strcmp(name, "state")) {
            if (!*value || strlen(value) >= sizeof(f->filter.state))
                why = "state is a state or an outcome";
            else
                memcpy(f->filter.state, value, strlen(value));
        } else if (!strcmp(name, "since")) {
            why = last ? NULL : take_since(f, value);
        } else if (strcmp(name, "account") != 0) {
            why = "there is no such parameter here: account, id, state, since";
        }
    }
    return why || !last || !*last ? why : take_since(f, last);
}

void api__events(struct ask *k)
{
    static const char file[] = "events_account.sql";
    struct follower *f = xcalloc(1, sizeof(*f));
    const char *why = take_params(k, f);
    struct conn_param account = {.data = http_param(&k->match.params, "account")};
    if (why) {
        free(f);
        api__problem(k, 400, "bad_request", NULL, why);
        return;
    }
    k->follower = f;
    conn_query_start(k->api->reads, &k->query, file, api__sql(file), 1, &account, 0, on_account);
}
