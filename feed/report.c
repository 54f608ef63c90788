/* What does the room say about itself? Each feed's state, and metrics (docs/feeds.md). */
#include "base/check.h"
#include "feed_internal.h"

static const struct metric sessions = {"txrelay_active_publish_sessions", METRIC_GAUGE,
                                       "Streams of publishers that are open."};
static const struct metric items = {"txrelay_publish_items_processed_total", METRIC_COUNTER,
                                    "Calls that publishers have sent, taken or not."};
static const struct metric headers = {"txrelay_publish_blocks_received_total", METRIC_COUNTER,
                                      "Headers of batches, by what became of them."};
static const struct metric sent = {"txrelay_publish_responses_sent_total", METRIC_COUNTER,
                                   "Messages to publishers, by type."};
static const struct metric acknowledged = {"txrelay_blocks_acknowledged_total", METRIC_COUNTER,
                                           "Batches that were acknowledged."};
static const struct metric last = {"txrelay_feed_last_number", METRIC_GAUGE,
                                   "Number of the last batch that is stored, as far as this relay "
                                   "knows."};
static const struct metric took = {"txrelay_publish_persistence_duration_seconds", METRIC_HISTOGRAM,
                                   "From the trailer of a batch until its outcome, by outcome."};
static const struct metric *const all[] = {&sessions, &last,         &items, &headers,
                                           &sent,     &acknowledged, &took};

const struct metric *feed_metric(size_t i)
{
    return i < ARRAY_LEN(all) ? all[i] : NULL;
}

static void sample(struct buf *out, const struct metric *m, const struct feed *f, const char *label,
                   const char *value, double number)
{
    const struct metric_label labels[] = {{"feed", f->name}, {label, value}, {0}};
    metric_sample(out, m, labels, number);
}

static void head_samples(struct buf *out, const struct feed *f)
{
    const struct feed_counts *c = feed_core_counts(f->core);
    sample(out, &headers, f, "status", "primary", (double)c->primary);
    sample(out, &headers, f, "status", "behind", (double)c->behind);
    sample(out, &headers, f, "status", "duplicate", (double)c->duplicate);
    sample(out, &headers, f, "status", "future_block", (double)c->future);
    sample(out, &headers, f, "status", "skipped", (double)c->skipped);
    sample(out, &headers, f, "status", "stale", (double)c->stale);
}

static void sent_samples(struct buf *out, const struct feed *f)
{
    static const char *const names[] = {[FEED_MSG_ACK] = "acknowledgement",
                                        [FEED_MSG_SKIP] = "skip",
                                        [FEED_MSG_RESEND] = "resend",
                                        [FEED_MSG_BEHIND] = "behind"};
    const struct feed_counts *c = feed_core_counts(f->core);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        sample(out, &sent, f, "type", names[i], (double)c->sent[i]);
    for (enum feed_end end = FEED_END_SUCCESS; end <= FEED_END_NOT_LEADER; end++)
        if (c->ended[end])
            sample(out, &sent, f, "type", feed_end_name(end), (double)c->ended[end]);
}

void feed_room_metrics(const struct feed_room *room, struct buf *out)
{
    metric_head(out, &sessions);
    metric_sample(out, &sessions, NULL, (double)feed_room_sessions(room));
    metric_head(out, &last);
    for (const struct feed *f = room->feeds; f; f = f->hh.next)
        sample(out, &last, f, NULL, NULL, (double)feed_core_last(f->core));
    metric_head(out, &items);
    for (const struct feed *f = room->feeds; f; f = f->hh.next)
        sample(out, &items, f, NULL, NULL, (double)feed_core_counts(f->core)->items);
    metric_head(out, &headers);
    for (const struct feed *f = room->feeds; f; f = f->hh.next)
        head_samples(out, f);
    metric_head(out, &sent);
    for (const struct feed *f = room->feeds; f; f = f->hh.next)
        sent_samples(out, f);
    metric_head(out, &acknowledged);
    for (const struct feed *f = room->feeds; f; f = f->hh.next)
        sample(out, &acknowledged, f, NULL, NULL, (double)feed_core_counts(f->core)->acknowledged);
    metric_head(out, &took);
    for (const struct feed *f = room->feeds; f; f = f->hh.next)
        for (enum feed_outcome o = FEED_ACKNOWLEDGED; o <= FEED_NOT_STORED; o++) {
            const struct metric_label labels[] = {
                {"feed", f->name}, {"outcome", feed_outcome_name(o)}, {0}};
            metric_histogram(out, &took, labels, &f->took[o]);
        }
}

size_t feed_room_sessions(const struct feed_room *room)
{
    return HASH_COUNT(room->sessions);
}

static uint64_t primary_of(const struct feed *f)
{
    for (const struct feed_copy_bytes *c = f->copies; c; c = c->hh.next)
        if (!c->dropped)
            return c->session;
    return 0;
}

bool feed_room_view(const struct feed_room *room,
                    void (*each)(void *arg, const struct feed_view *v), void *arg)
{
    for (const struct feed *f = room->feeds; f; f = f->hh.next) {
        int64_t stored = feed_core_last(f->core);
        const struct feed_view v = {.name = f->name,
                                    .account = f->account,
                                    .served = f->epoch != 0,
                                    .paused = f->paused,
                                    .phase = feed_core_phase(f->core),
                                    .last = stored > f->row_last ? stored : f->row_last,
                                    .sessions = feed_core_sessions(f->core),
                                    .primary = primary_of(f),
                                    .leader = f->leader};
        if (f->listed)
            each(arg, &v);
    }
    return room->known;
}
