/* The metrics of a status: each one is in docs/metrics.md with its type and its words, a follower
 * has no samples of a lead, and what is not ready says why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relay/core/tx/obstacle.h"
#include "service/metrics.h"

static struct metric_histogram no_stages[RELAY_STAGES];

static struct account_status account(enum account_role role)
{
    return (struct account_status){.alias = role == ACCOUNT_LEADER ? "led" : "followed",
                                   .role = role,
                                   .epoch = 4,
                                   .leader = "r",
                                   .obstacle = role == ACCOUNT_LEADER ? "payment" : "",
                                   .obstacle_ms = 1500,
                                   .elected = true,
                                   .sampled = true,
                                   .sample = {.waiting = 7, .waiting_age_s = 2.5},
                                   .balance_known = true,
                                   .balance = 1000,
                                   .stages = no_stages,
                                   .counts = {.outcomes = {[RELAY_OUTCOME_USURPED] = 3}},
                                   .election = {.renewed_at_ms = 1000}};
}

static const char *of_relay = "listener"; /* what keeps it */

static char *text_of(struct account_status *accounts, size_t count, enum service_phase phase)
{
    const struct service_status s = {.phase = phase,
                                     .database_up = true,
                                     .chain_up = true,
                                     .chain_error = "",
                                     .obstacle = of_relay,
                                     .obstacle_ms = 2500,
                                     .listens = true,
                                     .listen = {.since_ms = 1},
                                     .account_count = count,
                                     .accounts = accounts};
    struct process_status p;
    struct buf out = {0};
    process_status(&p);
    p.lag_seconds = 0;
    metrics_text(&out, &s, &p, 3000);
    buf_str(&out);
    return (char *)out.data;
}

static void assert_has(const char *text, const char *line)
{
    if (!strstr(text, line))
        fail_msg("no '%s' in\n%s", line, text);
}

static void values(void **state)
{
    (void)state;
    struct account_status accounts[] = {account(ACCOUNT_LEADER), account(ACCOUNT_FOLLOWER)};
    char *text = text_of(accounts, 2, SERVICE_RUNNING);
    assert_has(text, "txrelay_leader{account=\"led\"} 1\ntxrelay_leader{account=\"followed\"} 0\n");
    assert_has(text, "txrelay_waiting{account=\"followed\"} 7\n");
    assert_has(text, "txrelay_waiting_oldest_seconds{account=\"led\"} 2.5\n");
    assert_has(text, "txrelay_leader_epoch{account=\"led\"} 4\n");
    assert_has(text, "txrelay_election_renewed_age_seconds{account=\"led\"} 2\n");
    assert_has(text, "txrelay_balance_planck{account=\"led\"} 1000\n");
    assert_has(text, "txrelay_finished_total{account=\"led\",outcome=\"usurped\"} 3\n");
    assert_has(text, "txrelay_blocked{account=\"led\"} 1\n");
    assert_has(text, "txrelay_blocked_seconds{account=\"led\",reason=\"payment\"} 1.5\n");
    assert_has(text, "txrelay_relay_blocked_seconds{reason=\"listener\"} 2.5\n");
    assert_null(strstr(text, "txrelay_leader_epoch{account=\"followed\"}"));
    assert_null(strstr(text, "txrelay_blocked{account=\"followed\"}"));
    assert_null(strstr(text, "txrelay_blocked_seconds{account=\"followed\""));
    free(text);
}

/* Of an account that nobody leads a follower says so. */
static void each_reason(void **state)
{
    (void)state;
    static const char *const names[] = {
#define X(code, name) name,
        OBSTACLES(X) RELAY_OBSTACLES(X)
#undef X
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct account_status a = account(ACCOUNT_FOLLOWER);
        char line[120];
        a.obstacle = of_relay = names[i];
        char *text = text_of(&a, 1, SERVICE_RUNNING);
        snprintf(line, sizeof(line),
                 "txrelay_blocked_seconds{account=\"followed\",reason=\"%s\"} 1.5\n", names[i]);
        assert_has(text, line);
        assert_has(text, "txrelay_blocked{account=\"followed\"} 1\n");
        snprintf(line, sizeof(line), "txrelay_relay_blocked_seconds{reason=\"%s\"} 2.5\n",
                 names[i]);
        assert_has(text, line);
        free(text);
    }
}

/* Each account has its own histograms, without a line for an account that has sent nothing; many
 * accounts have them together. */
static void latencies(void **state)
{
    (void)state;
    enum { MANY = 101 };
    struct metric_histogram slow[RELAY_STAGES] = {0};
    struct account_status accounts[MANY];
    metric_observe(&slow[RELAY_STAGE_FINALIZED], 30);
    for (size_t i = 0; i < MANY; i++)
        accounts[i] = account(ACCOUNT_FOLLOWER);
    accounts[0].stages = accounts[1].stages = slow;
    accounts[0].alias = "one";
    accounts[1].alias = "two";
    char *text = text_of(accounts, MANY - 1, SERVICE_RUNNING);
    assert_has(text, "txrelay_stage_seconds_sum{account=\"one\",stage=\"finalized\"} 30\n");
    assert_has(text, "txrelay_stage_seconds_count{account=\"two\",stage=\"finalized\"} 1\n");
    assert_has(text, "txrelay_stage_seconds_count{account=\"two\",stage=\"nonce\"} 0\n");
    assert_null(strstr(text, "txrelay_stage_seconds_count{account=\"followed\""));
    free(text);
    text = text_of(accounts, MANY, SERVICE_RUNNING);
    assert_has(text, "txrelay_stage_seconds_sum{stage=\"finalized\"} 60\n");
    assert_has(text, "txrelay_stage_seconds_count{stage=\"finalized\"} 2\n");
    assert_null(strstr(text, "txrelay_stage_seconds_count{account="));
    free(text);
}

/* Every metric has its row, and every row its metric. */
static void the_page(void **state)
{
    (void)state;
    struct account_status accounts[] = {account(ACCOUNT_LEADER)};
    char *text = text_of(accounts, 1, SERVICE_RUNNING), *rest = NULL;
    size_t metrics = 0, rows = 0;
    struct buf page = {0};
    char line[400];
    FILE *f = fopen(METRICS_MD, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        buf_puts(&page, line);
        rows += !strncmp(line, "| `txrelay_", 11) || !strncmp(line, "| `process_", 11);
    }
    fclose(f);
    for (char *at = strtok_r(text, "\n", &rest); at; at = strtok_r(NULL, "\n", &rest)) {
        char name[80], help[300], row[400], type[20] = "";
        if (sscanf(at, "# HELP %79s %299[^\n]", name, help) != 2)
            continue;
        at = strtok_r(NULL, "\n", &rest);
        assert_int_equal(sscanf(at, "# TYPE %*s %19s", type), 1);
        metrics++;
        snprintf(row, sizeof(row), "| `%s` | %s |", name, type);
        assert_has(buf_str(&page), row);
        snprintf(row, sizeof(row), " | %s |\n", help);
        assert_has(buf_str(&page), row);
    }
    assert_int_equal(metrics, rows);
    assert_true(metrics > 50);
    buf_done(&page);
    free(text);
}

static void readiness(void **state)
{
    (void)state;
    static struct feed_status feeds[] = {{.name = "rates"}, {.name = "prices", .unreadable = true}};
    static const struct {
        struct service_status status;
        const char *reasons;
    } cases[] = {
        {{.phase = SERVICE_RUNNING, .database_up = true, .chain_up = true}, ""},
        {{.phase = SERVICE_RUNNING, .standalone = true, .chain_up = true}, ""},
        {{.phase = SERVICE_RUNNING, .chain_up = true, .database_error = "no room"},
         "the database is not reachable: no room\n"},
        {{.phase = SERVICE_RUNNING, .database_up = true, .chain_error = "ws://a: away"},
         "no endpoint of the chain is usable: ws://a: away\n"},
        {{.phase = SERVICE_DRAINING, .database_up = true, .chain_up = true},
         "the relay is draining\n"},
        {{.phase = SERVICE_RUNNING, .database_up = true, .chain_up = true, .feeds_open = true},
         "the feeds were not read from the database yet\n"},
        {{.phase = SERVICE_RUNNING,
          .database_up = true,
          .chain_up = true,
          .feeds_open = true,
          .feeds_known = true,
          .feeds_failing = true},
         "the feeds cannot be read from the database\n"},
        {{.phase = SERVICE_RUNNING,
          .database_up = true,
          .chain_up = true,
          .feeds_open = true,
          .feeds_known = true,
          .feed_count = 2,
          .feeds = feeds},
         "the last number of feed prices cannot be read\n"},
        {{.phase = SERVICE_STARTING, .database_error = "", .chain_error = ""},
         "the relay is starting\nthe database is not reachable\nno endpoint of the chain is "
         "usable\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf reasons = {0};
        assert_int_equal(health_ready(&cases[i].status, &reasons), !*cases[i].reasons);
        assert_string_equal(buf_str(&reasons), cases[i].reasons);
        buf_done(&reasons);
    }
}

static void the_process(void **state)
{
    (void)state;
    struct process_status p;
    process_status(&p);
    assert_true(p.resident_bytes > 100e3 && p.resident_bytes < 10e9);
    assert_true(p.cpu_seconds >= 0 && p.start_seconds > 1.5e9);
    assert_true(p.open_fds >= 3 && p.open_fds < 1000);
    FILE *one_more = fopen("/dev/null", "r");
    double before = p.open_fds;
    process_status(&p);
    assert_true(p.open_fds == before + 1);
    fclose(one_more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),   cmocka_unit_test(each_reason), cmocka_unit_test(latencies),
        cmocka_unit_test(the_page), cmocka_unit_test(readiness),   cmocka_unit_test(the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
