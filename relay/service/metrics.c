/* The one table of metrics: what each one is called, and where the status has it. */
#define _GNU_SOURCE
#include "service/metrics.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"

enum { MS_PER_S = 1000 };

static double age(uint64_t at_ms, uint64_t now_ms)
{
    return at_ms ? (double)(now_ms - at_ms) / MS_PER_S : (double)NAN;
}

/* X(name, type, value, help): s is the service's status, p the process's. A value of NaN has no
 * sample. */
#define RELAY_METRICS(X)                                                                           \
    X("txrelay_running", GAUGE, s->phase == SERVICE_RUNNING,                                       \
      "Whether the relay has registered its accounts and is not stopping.")                        \
    X("txrelay_accounts", GAUGE, (double)s->account_count, "Accounts in the configuration.")       \
    X("txrelay_members", GAUGE, s->standalone ? (double)NAN : (double)s->members,                  \
      "Living relays of these accounts, with this one; 0 while that is not known.")                \
    X("txrelay_database_up", GAUGE, s->standalone ? (double)NAN : s->database_up,                  \
      "Whether the sessions of the database work.")                                                \
    X("txrelay_database_stale_seconds", GAUGE,                                                     \
      s->standalone ? (double)NAN : (double)s->stale_ms / MS_PER_S,                                \
      "For how long the database has been away.")                                                  \
    X("txrelay_database_requests_total", COUNTER, (double)s->store.started,                        \
      "Requests to the database.")                                                                 \
    X("txrelay_database_request_failures_total", COUNTER, (double)s->store.failed,                 \
      "Requests to the database that ended with an error.")                                        \
    X("txrelay_database_requests_in_flight", GAUGE, (double)s->store.in_flight,                    \
      "Requests to the database without an answer yet.")                                           \
    X("txrelay_database_request_seconds_total", COUNTER, (double)s->store.took_ms / MS_PER_S,      \
      "How long requests to the database took, all of them together.")                             \
    X("txrelay_listen_live", GAUGE, s->listens ? s->listen.live : (double)NAN,                     \
      "Whether the view of the listening session is current.")                                     \
    X("txrelay_listen_age_seconds", GAUGE,                                                         \
      s->listens ? age(s->listen.since_ms, now_ms) : (double)NAN,                                  \
      "Since the view of the listening session was last proved to be current.")                    \
    X("txrelay_notification_queue_ratio", GAUGE, s->listens ? s->listen.queue_usage : (double)NAN, \
      "How full the server's notification queue is.")                                              \
    X("txrelay_chain_up", GAUGE, s->chain_up, "Whether an endpoint of the chain is usable.")       \
    X("txrelay_chain_best_block", GAUGE, s->chain_up ? (double)s->best : (double)NAN,              \
      "Height of the best block of the endpoint in use.")                                          \
    X("txrelay_chain_finalized_block", GAUGE, s->chain_up ? (double)s->finalized : (double)NAN,    \
      "Height of the last final block of the endpoint in use.")                                    \
    X("txrelay_chain_best_known_block", GAUGE, s->chain_up ? (double)s->best_known : (double)NAN,  \
      "Highest block that any endpoint or relay named.")                                           \
    X("txrelay_chain_spec_version", GAUGE, s->chain_up ? s->spec_version : (double)NAN,            \
      "Spec version of the chain's runtime.")                                                      \
    X("txrelay_chain_requests_total", COUNTER, (double)s->node.requests,                           \
      "Requests to endpoints of the chain, submissions included.")                                 \
    X("txrelay_chain_request_failures_total", COUNTER, (double)s->node.failures,                   \
      "Requests to endpoints of the chain that ended with an error or without an answer.")         \
    X("txrelay_chain_request_seconds_total", COUNTER, (double)s->node.took_ms / MS_PER_S,          \
      "How long answered requests to endpoints of the chain took, all of them together.")          \
    X("txrelay_loop_lag_seconds", GAUGE, p->lag_seconds,                                           \
      "The longest that a timer was late since the last scrape.")                                  \
    X("process_resident_memory_bytes", GAUGE, p->resident_bytes, "Resident memory.")               \
    X("process_cpu_seconds_total", COUNTER, p->cpu_seconds, "CPU time, user and system.")          \
    X("process_open_fds", GAUGE, p->open_fds, "Open file descriptors.")                            \
    X("process_start_time_seconds", GAUGE, p->start_seconds, "Start of the process, since 1970.")

/* X(name, type, value, help): a is the account's status; e its election's. LED has samples only
 * from the relay that leads the account, EACH from every relay. */
#define ACCOUNT_METRICS(EACH, LED)                                                                 \
    EACH("txrelay_leader", GAUGE, a->role == ACCOUNT_LEADER,                                       \
         "Whether this relay leads the account.")                                                  \
    EACH("txrelay_waiting", GAUGE, a->sampled ? (double)a->sample.waiting : (double)NAN,           \
         "Transactions that are due and have no nonce; at most 10000 of a kind are counted.")      \
    EACH("txrelay_waiting_oldest_seconds", GAUGE,                                                  \
         a->sampled ? a->sample.waiting_age_s : (double)NAN,                                       \
         "Age of the oldest of these, since it was enqueued; 0 without one.")                      \
    EACH("txrelay_pending", GAUGE, a->sampled ? (double)a->sample.pending : (double)NAN,           \
         "Transactions that have a nonce and no final outcome; at most 10000 are counted.")        \
    EACH("txrelay_pending_oldest_seconds", GAUGE,                                                  \
         a->sampled ? a->sample.pending_age_s : (double)NAN,                                       \
         "Age of the oldest of these, since it was enqueued; 0 without one.")                      \
    EACH("txrelay_leader_known", GAUGE, a->role == ACCOUNT_LEADER || *a->leader,                   \
         "Whether this relay knows a leader of the account.")                                      \
    EACH("txrelay_election_bids_total", COUNTER, a->elected ? (double)e->bids_total : (double)NAN, \
         "Bids for the account.")                                                                  \
    EACH("txrelay_election_acquired_total", COUNTER,                                               \
         a->elected ? (double)e->acquired_total : (double)NAN, "Leads of the account that began.") \
    EACH("txrelay_election_lost_total", COUNTER, a->elected ? (double)e->lost_total : (double)NAN, \
         "Leads of the account that were lost.")                                                   \
    EACH("txrelay_election_left_total", COUNTER, a->elected ? (double)e->left_total : (double)NAN, \
         "Leads of the account that were handed over.")                                            \
    EACH("txrelay_election_evicted_total", COUNTER,                                                \
         a->elected ? (double)e->evicted_total : (double)NAN,                                      \
         "Sessions of others that this relay ended to take the account over.")                     \
    EACH("txrelay_requests_refused_total", COUNTER, (double)a->refused_total,                      \
         "Requests at the control endpoint that were refused because another relay leads.")        \
    LED("txrelay_leader_epoch", GAUGE, (double)a->epoch, "Epoch of the present lead.")             \
    LED("txrelay_gate_open", GAUGE, a->gate_open, "Whether the leader may submit.")                \
    LED("txrelay_leaving", GAUGE, a->leaving, "Whether the account is being handed over.")         \
    LED("txrelay_election_renewed_age_seconds", GAUGE,                                             \
        a->elected ? age(e->renewed_at_ms, now_ms) : (double)NAN,                                  \
        "Since the last successful renewal of the lead was sent.")                                 \
    LED("txrelay_election_renewal_seconds", GAUGE,                                                 \
        a->elected ? (double)e->renew_ms / MS_PER_S : (double)NAN,                                 \
        "Round trip of the last renewal.")                                                         \
    LED("txrelay_election_acquisition_seconds", GAUGE,                                             \
        a->elected ? (double)e->acquire_ms / MS_PER_S : (double)NAN,                               \
        "From the last successful bid to the lead.")                                               \
    EACH("txrelay_blocked", GAUGE, led || *a->obstacle ? *a->obstacle != 0 : (double)NAN,          \
         "Whether the account makes no progress: txrelay blocked says why.")                       \
    LED("txrelay_in_flight", GAUGE, (double)a->manager.open, "Nonces in use.")                     \
    LED("txrelay_window", GAUGE, a->manager.window, "Most nonces in use that are in no block.")    \
    LED("txrelay_unsent", GAUGE, (double)a->manager.unsent,                                        \
        "Nonces whose bytes wait to be submitted.")                                                \
    LED("txrelay_unsure", GAUGE, (double)a->manager.unsure, "Nonces that wait for a probe.")       \
    LED("txrelay_in_block", GAUGE, (double)a->manager.in_block,                                    \
        "Nonces that a best block holds and no final one.")                                        \
    LED("txrelay_unanswered", GAUGE, (double)a->unanswered, "Submissions without an answer.")      \
    LED("txrelay_next_nonce", GAUGE, (double)a->manager.next_nonce,                                \
        "The nonce of the next admission.")                                                        \
    LED("txrelay_processed_block", GAUGE, (double)a->manager.processed,                            \
        "Every final block up to this one was worked through.")                                    \
    LED("txrelay_nonce_gap_blocks", GAUGE, a->manager.gap_blocks,                                  \
        "For how many blocks the present nonce gap has lasted; 0 without one.")                    \
    LED("txrelay_nonce_gaps_total", COUNTER, (double)a->manager.gaps,                              \
        "Nonce gaps below pooled transactions that began under this relay.")                       \
    LED("txrelay_nonce_gap_longest_blocks", GAUGE, a->manager.gap_longest,                         \
        "The longest nonce gap of this lead.")                                                     \
    LED("txrelay_lost_commits_wait_blocks", GAUGE, (double)a->manager.wait_blocks,                 \
        "Blocks left of the wait after lost commits; 0: none.")                                    \
    LED("txrelay_balance_planck", GAUGE, a->balance_known ? (double)a->balance : (double)NAN,      \
        "Free balance at the last final block, in the chain's smallest unit.")                     \
    EACH("txrelay_admitted_total", COUNTER, (double)a->counts.admitted,                            \
         "Transactions that this relay gave a nonce.")                                             \
    EACH("txrelay_submissions_total", COUNTER, (double)a->counts.submitted,                        \
         "Submissions that were written to a node.")                                               \
    EACH("txrelay_resubmissions_total", COUNTER, (double)a->counts.resubmitted,                    \
         "Submissions of the same bytes once more.")                                               \
    EACH("txrelay_submissions_gated_total", COUNTER, (double)a->gated_total,                       \
         "Submissions that the gate stopped.")                                                     \
    EACH("txrelay_resigned_total", COUNTER, (double)a->counts.resigned,                            \
         "New signatures at a nonce that had one.")                                                \
    EACH("txrelay_fillers_total", COUNTER, (double)a->counts.fillers, "Fillers that were signed.") \
    EACH("txrelay_requeued_total", COUNTER, (double)a->counts.requeued,                            \
         "Transactions that went back to the outbox.")                                             \
    EACH("txrelay_fees_planck_total", COUNTER, a->counts.fees,                                     \
         "Fees of finalized extrinsics, in the chain's smallest unit.")

#define METRIC(name, type, value, help) {name, METRIC_##type, help},
static const struct metric relay_metrics[] = {RELAY_METRICS(METRIC)};
static const struct metric account_metrics[] = {ACCOUNT_METRICS(METRIC, METRIC)};

static void relay_samples(struct buf *out, const struct service_status *s,
                          const struct process_status *p, uint64_t now_ms)
{
#define VALUE(name, type, value, help) value,
    const double values[] = {RELAY_METRICS(VALUE)};
#undef VALUE
    for (size_t i = 0; i < ARRAY_LEN(relay_metrics); i++) {
        if (isnan(values[i]))
            continue;
        metric_head(out, &relay_metrics[i]);
        metric_sample(out, &relay_metrics[i], NULL, values[i]);
    }
}

/* One account's values, in the order of the table. */
static void account_values(const struct account_status *a, bool standalone, uint64_t now_ms,
                           double *ret)
{
    const struct election_stats *e = &a->election;
    bool led = standalone || a->role == ACCOUNT_LEADER;
#define EACH(name, type, value, help) value,
#define LED(name, type, value, help)  led ? (double)(value) : (double)NAN,
    const double values[] = {ACCOUNT_METRICS(EACH, LED)};
#undef EACH
#undef LED
    memcpy(ret, values, sizeof(values));
}

static void outcomes(struct buf *out, const struct service_status *s)
{
    static const struct metric metric = {"txrelay_finished_total", METRIC_COUNTER,
                                         "Transactions that ended under this relay, by outcome."};
    metric_head(out, &metric);
    for (size_t i = 0; i < s->account_count; i++)
        for (enum relay_outcome o = 0; o < RELAY_OUTCOMES; o++) {
            const struct metric_label labels[] = {{"account", s->accounts[i].alias},
                                                  {"outcome", relay_outcome_name(o)},
                                                  {NULL, NULL}};
            metric_sample(out, &metric, labels, (double)s->accounts[i].counts.outcomes[o]);
        }
}

static void endpoints(struct buf *out, const struct service_status *s)
{
    static const struct metric metric = {
        "txrelay_chain_endpoints", METRIC_GAUGE,
        "Endpoints by state: in_use, failed (tried last and not usable), other_chain, unused."};
    const struct {
        const char *state;
        size_t count;
    } states[] = {{"in_use", s->node.in_use},
                  {"failed", s->node.failed},
                  {"other_chain", s->node.other_chain},
                  {"unused", s->node.unused}};
    metric_head(out, &metric);
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        const struct metric_label labels[] = {{"state", states[i].state}, {NULL, NULL}};
        metric_sample(out, &metric, labels, (double)states[i].count);
    }
}

static void obstacles(struct buf *out, const struct service_status *s)
{
    static const struct metric metric = {
        "txrelay_blocked_seconds", METRIC_GAUGE,
        "For how long the account has made no progress, with the reason (docs/obstacles.md)."};
    bool any = false;
    for (size_t i = 0; i < s->account_count; i++) {
        const struct account_status *a = &s->accounts[i];
        const struct metric_label labels[] = {
            {"account", a->alias}, {"reason", a->obstacle}, {NULL, NULL}};
        if (!*a->obstacle)
            continue;
        if (!any)
            metric_head(out, &metric);
        any = true;
        metric_sample(out, &metric, labels, (double)a->obstacle_ms / MS_PER_S);
    }
}

static void own_obstacle(struct buf *out, const struct service_status *s)
{
    static const struct metric metric = {
        "txrelay_relay_blocked_seconds", METRIC_GAUGE,
        "For how long something has kept this relay from its work, with the reason "
        "(docs/obstacles.md)."};
    const struct metric_label labels[] = {{"reason", s->obstacle}, {NULL, NULL}};
    if (!*s->obstacle)
        return;
    metric_head(out, &metric);
    metric_sample(out, &metric, labels, (double)s->obstacle_ms / MS_PER_S);
}

static bool any_stage(const struct account_status *a)
{
    for (enum relay_stage i = 0; i < RELAY_STAGES; i++)
        if (metric_histogram_count(&a->stages[i]))
            return true;
    return false;
}

/* An account without a transaction has none of these samples, which are 76 lines each. With many
 * accounts they are added up, so that a scrape stays bounded. */
static void stages(struct buf *out, const struct service_status *s)
{
    enum { ACCOUNTS_EACH = 100 };
    static const char *const names[] = {[RELAY_STAGE_NONCE] = "nonce",
                                        [RELAY_STAGE_POOL] = "pool",
                                        [RELAY_STAGE_BLOCK] = "block",
                                        [RELAY_STAGE_FINALIZED] = "finalized"};
    static const struct metric metric = {
        "txrelay_stage_seconds", METRIC_HISTOGRAM,
        "From the enqueue until a transaction had a nonce, was in a pool, in a block, and final."};
    struct metric_histogram all[RELAY_STAGES] = {0};
    bool each = s->account_count <= ACCOUNTS_EACH;
    metric_head(out, &metric);
    for (size_t i = 0; i < s->account_count; i++) {
        const struct account_status *a = &s->accounts[i];
        for (enum relay_stage k = 0; k < RELAY_STAGES; k++) {
            const struct metric_label labels[] = {
                {"account", a->alias}, {"stage", names[k]}, {NULL, NULL}};
            if (!each)
                metric_histogram_add(&all[k], &a->stages[k]);
            else if (any_stage(a))
                metric_histogram(out, &metric, labels, &a->stages[k]);
        }
    }
    for (enum relay_stage k = 0; k < RELAY_STAGES && !each; k++) {
        const struct metric_label labels[] = {{"stage", names[k]}, {NULL, NULL}};
        metric_histogram(out, &metric, labels, &all[k]);
    }
}

/* All samples of one metric follow one another, so the accounts are the inner loop. */
static void account_samples(struct buf *out, const struct service_status *s, uint64_t now_ms)
{
    enum { METRICS = ARRAY_LEN(account_metrics) };
    double *values = xcalloc(s->account_count, METRICS * sizeof(*values));
    for (size_t i = 0; i < s->account_count; i++)
        account_values(&s->accounts[i], s->standalone, now_ms, &values[i * METRICS]);
    for (size_t m = 0; m < METRICS; m++) {
        bool any = false;
        for (size_t i = 0; i < s->account_count; i++) {
            const struct metric_label labels[] = {{"account", s->accounts[i].alias}, {NULL, NULL}};
            double value = values[i * METRICS + m];
            if (isnan(value))
                continue;
            if (!any)
                metric_head(out, &account_metrics[m]);
            any = true;
            metric_sample(out, &account_metrics[m], labels, value);
        }
    }
    free(values);
}

void metrics_text(struct buf *out, const struct service_status *s, const struct process_status *p,
                  uint64_t now_ms)
{
    relay_samples(out, s, p, now_ms);
    endpoints(out, s);
    account_samples(out, s, now_ms);
    outcomes(out, s);
    obstacles(out, s);
    own_obstacle(out, s);
    stages(out, s);
}

bool health_ready(const struct service_status *s, struct buf *ret_reasons)
{
    size_t before = ret_reasons->len;
    if (s->phase != SERVICE_RUNNING)
        buf_printf(ret_reasons, "the relay is %s\n", service_phase_name(s->phase));
    char progress[PROGRESS_TEXT + 40];
    service_status_progress(s, progress, sizeof(progress));
    if (s->phase == SERVICE_STARTING && progress[0])
        buf_printf(ret_reasons, "it %s\n", progress);
    if (!s->standalone && !s->database_up)
        buf_printf(ret_reasons, "the database is not reachable%s%s\n",
                   s->database_error[0] ? ": " : "", s->database_error);
    if (!s->chain_up)
        buf_printf(ret_reasons, "no endpoint of the chain is usable%s%s\n",
                   s->chain_error[0] ? ": " : "", s->chain_error);
    if (s->feeds_open && !s->feeds_known)
        buf_printf(ret_reasons, "the feeds were not read from the database yet\n");
    else if (s->feeds_failing)
        buf_printf(ret_reasons, "the feeds cannot be read from the database\n");
    for (size_t i = 0; i < s->feed_count; i++)
        if (s->feeds[i].unreadable)
            buf_printf(ret_reasons, "the last number of feed %s cannot be read\n",
                       s->feeds[i].name);
    return ret_reasons->len == before;
}

/* ---- the process ---- */

/* Fields of /proc/self/stat behind the name, which may hold blanks. */
static bool read_stat(double *ret_start_ticks, double *ret_pages)
{
    char text[1024];
    unsigned long long start;
    long pages;
    FILE *f = fopen("/proc/self/stat", "r");
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    const char *at = strrchr(text, ')');
    if (!at || sscanf(at + 1,
                      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                      "%*d %llu %*u %ld",
                      &start, &pages) != 2)
        return false;
    *ret_start_ticks = (double)start;
    *ret_pages = (double)pages;
    return true;
}

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    return clock_gettime(clock, &t) ? (double)NAN : (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void process_status(struct process_status *ret)
{
    double start, pages, fds = 0;
    *ret = (struct process_status){.resident_bytes = (double)NAN,
                                   .cpu_seconds = seconds_of(CLOCK_PROCESS_CPUTIME_ID),
                                   .start_seconds = (double)NAN,
                                   .open_fds = (double)NAN};
    if (read_stat(&start, &pages)) {
        double up = seconds_of(CLOCK_BOOTTIME), now = seconds_of(CLOCK_REALTIME);
        ret->start_seconds = now - up + start / (double)sysconf(_SC_CLK_TCK);
        ret->resident_bytes = pages * (double)sysconf(_SC_PAGESIZE);
    }
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return;
    while (readdir(dir))
        fds++;
    closedir(dir);
    enum { NOT_FILES = 3 }; /* ".", ".." and the folder itself */
    ret->open_fds = fds - NOT_FILES;
}
