/* Rows of the outbox for accounts that have sites. The scheduler (relay/core/poll) says when, as
 * for managers: its question for rows and its question for requests are one query here. */
#include "base/check.h"
#include "base/log.h"
#include "sites/sites.h"

enum { WANT_ROWS, WANT_REQUESTS };

static void start(struct site_host *h)
{
    if (h->asked[WANT_ROWS] || h->asked[WANT_REQUESTS] ||
        !(h->waiting[WANT_ROWS] || h->waiting[WANT_REQUESTS]))
        return;
    if (!h->tables || !site_tables_poll(h->tables, POLL_ROWS)) {
        sites_poll_failed(h, false);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(h->asked); i++) {
        h->asked[i] = h->waiting[i];
        h->waiting[i] = 0;
    }
}

void service_sites_poll(struct account *a, const struct poll_effect *fx)
{
    struct site_host *h = a->site;
    h->waiting[fx->query == POLL_QUERY_OUTBOX ? WANT_ROWS : WANT_REQUESTS] = fx->question;
    start(h);
}

/* Answers each question that the poll was for; `rows` and `requests` without a question. */
static void answer(struct site_host *h, struct poll_event rows, struct poll_event requests)
{
    uint64_t asked[] = {h->asked[WANT_ROWS], h->asked[WANT_REQUESTS]};
    h->asked[WANT_ROWS] = h->asked[WANT_REQUESTS] = 0;
    rows.question = asked[WANT_ROWS];
    requests.question = asked[WANT_REQUESTS];
    if (rows.question)
        account_poll(h->account, rows);
    if (requests.question)
        account_poll(h->account, requests);
}

void sites_polled(void *arg, size_t count, int64_t next_ms)
{
    struct site_host *h = arg;
    h->trouble[0] = 0;
    answer(h, (struct poll_event){.type = count ? POLL_EV_ROWS : POLL_EV_NO_ROWS},
           (struct poll_event){.type = POLL_EV_REQUESTS, .requests = {.next_ms = next_ms}});
    sites_want(h);
    start(h);
}

void sites_poll_failed(struct site_host *h, bool refused)
{
    for (size_t i = 0; i < ARRAY_LEN(h->asked); i++) {
        h->asked[i] = h->waiting[i] ? h->waiting[i] : h->asked[i];
        h->waiting[i] = 0;
    }
    answer(h, (struct poll_event){.type = POLL_EV_OUTBOX_FAILED, .refused = refused},
           (struct poll_event){.type = POLL_EV_REQUESTS_FAILED, .refused = refused});
}

void sites_want(struct site_host *h)
{
    struct site_account_view v;
    if (h->phase != HOST_LED || !h->reading)
        return;
    site_account_view(h->site, &v);
    if (v.core.rows < ROWS_MAX)
        account_poll(h->account,
                     (struct poll_event){.type = POLL_EV_WANT_ROWS, .limit = POLL_ROWS});
}
