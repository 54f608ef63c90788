/* What a room reports of itself to Prometheus (docs/sites.md). */
#include "base/check.h"
#include "base/metrics.h"
#include "room_internal.h"

/* Of a link to another site. */
static const struct metric links = {"txrelay_site_links", METRIC_GAUGE,
                                    "Open streams to relays of the site."};
static const struct metric sent = {"txrelay_site_messages_sent_total", METRIC_COUNTER,
                                   "Frames that were sent to the site."};
static const struct metric bytes = {"txrelay_site_sent_bytes_total", METRIC_COUNTER,
                                    "Bytes of these frames."};
static const struct metric received = {"txrelay_site_messages_received_total", METRIC_COUNTER,
                                       "Messages that came from the site."};
static const struct metric dropped = {"txrelay_site_messages_dropped_total", METRIC_COUNTER,
                                      "Messages to the site that could not be sent."};
static const struct metric refused = {
    "txrelay_site_messages_refused_total", METRIC_COUNTER,
    "Messages that the site did not take: another relay leads "
    "the account there, or the sites are configured differently."};
/* Of an account that this relay leads at its site. */
static const struct metric coordinates = {"txrelay_site_coordinates", METRIC_GAUGE,
                                          "Whether this site coordinates the account."};
static const struct metric away = {"txrelay_site_members_away", METRIC_GAUGE,
                                   "Sites of the account that this one considers away."};
static const struct metric rows = {"txrelay_site_transactions", METRIC_GAUGE,
                                   "Transactions of this site that have not ended, in memory."};
static const struct metric work = {"txrelay_site_work", METRIC_GAUGE,
                                   "Transactions of any site that this one coordinates."};
static const struct metric dispatched = {"txrelay_site_dispatched", METRIC_GAUGE,
                                         "Of these, those that are dispatched and not final."};
static const struct metric kept = {"txrelay_site_kept_bytes", METRIC_GAUGE,
                                   "Memory for calls and signed bytes."};
static const struct metric items = {"txrelay_site_items_sent_total", METRIC_COUNTER,
                                    "Transactions in messages to other sites, by the message's "
                                    "kind."};
static const struct metric reasons = {"txrelay_site_refusals_total", METRIC_COUNTER,
                                      "Delegations and proposals that this site refused, by "
                                      "reason."};
static const struct metric demoted = {"txrelay_site_demotions_total", METRIC_COUNTER,
                                      "How often a site was silent for too long."};
static const struct metric fillers = {"txrelay_site_fillers_total", METRIC_COUNTER,
                                      "Fillers for nonces that no transaction needed."};
static const struct metric *const all[] = {
    &links, &sent, &bytes,      &received, &dropped, &refused, &coordinates, &away,
    &rows,  &work, &dispatched, &kept,     &items,   &reasons, &demoted,     &fillers};

const struct metric *site_metric(size_t i)
{
    return i < ARRAY_LEN(all) ? all[i] : NULL;
}

/* ---- links ---- */

static void peer_samples(const struct site_room *r, struct buf *out, const struct metric *m)
{
    struct site_links_view v;
    metric_head(out, m);
    for (size_t i = 0; i < r->peer_count; i++) {
        site_links_view(r->links, i, &v);
        const struct metric_label labels[] = {{"site", v.name}, {0}};
        uint64_t value = m == &links      ? v.streams
                         : m == &sent     ? v.sent
                         : m == &bytes    ? v.sent_bytes
                         : m == &received ? v.received
                         : m == &dropped  ? v.dropped
                                          : v.refused;
        metric_sample(out, m, labels, (double)value);
    }
}

/* ---- accounts ---- */

static unsigned bits(uint32_t set)
{
    unsigned n = 0;
    for (; set; set &= set - 1)
        n++;
    return n;
}

static double value_of(const struct site_account *a, const struct metric *m)
{
    struct site_account_view v;
    const struct site_counts *c = site_account_counts(a);
    site_account_view(a, &v);
    if (m == &coordinates)
        return v.core.state >= SITE_ELECT && v.core.state <= SITE_ACTIVE;
    if (m == &away)
        return bits(v.core.down);
    if (m == &rows)
        return (double)v.core.rows;
    if (m == &work)
        return (double)v.core.work;
    if (m == &dispatched)
        return (double)v.core.dispatched;
    if (m == &kept)
        return (double)v.kept_bytes;
    return (double)(m == &demoted ? c->demoted : c->fillers);
}

static void account_samples(const struct site_room *r, struct buf *out, const struct metric *m,
                            site_name_fn *name)
{
    metric_head(out, m);
    for (const struct site_account *a = r->accounts; a; a = a->next) {
        const struct metric_label labels[] = {{"account", name(a)}, {0}};
        if (a->leads)
            metric_sample(out, m, labels, value_of(a, m));
    }
}

static void count_samples(const struct site_room *r, struct buf *out, site_name_fn *name)
{
    metric_head(out, &items);
    for (const struct site_account *a = r->accounts; a; a = a->next)
        for (enum site_message_type type = 0; a->leads && type < SITE_MSG_COUNT; type++) {
            const struct metric_label labels[] = {
                {"account", name(a)}, {"kind", site_message_name(type)}, {0}};
            uint64_t n = site_account_counts(a)->items[type];
            if (n)
                metric_sample(out, &items, labels, (double)n);
        }
    metric_head(out, &reasons);
    for (const struct site_account *a = r->accounts; a; a = a->next)
        for (enum site_reason why = SITE_REASON_NONE + 1; a->leads && why < SITE_REASON_COUNT;
             why++) {
            const struct metric_label labels[] = {
                {"account", name(a)}, {"reason", site_reason_name(why)}, {0}};
            uint64_t n = site_account_counts(a)->refused[why];
            if (n)
                metric_sample(out, &reasons, labels, (double)n);
        }
}

void site_room_metrics(const struct site_room *r, site_name_fn *name, struct buf *out)
{
    static const struct metric *const of_links[] = {&links,    &sent,    &bytes,
                                                    &received, &dropped, &refused};
    static const struct metric *const of_accounts[] = {&coordinates, &away, &rows,    &work,
                                                       &dispatched,  &kept, &demoted, &fillers};
    for (size_t i = 0; i < ARRAY_LEN(of_links); i++)
        peer_samples(r, out, of_links[i]);
    for (size_t i = 0; i < ARRAY_LEN(of_accounts); i++)
        account_samples(r, out, of_accounts[i], name);
    count_samples(r, out, name);
}
