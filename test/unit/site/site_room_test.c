/* The room: sites with real links between them, each with a database and a node in memory. Relays
 * are killed with what they had under way; every transaction takes effect once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/metrics.h"
#include "certs.h"
#include "election/election.h"
#include "page.h"
#include "room_host.h"

enum { PATIENCE_MS = 100000, BLOCK_MS = 20, BEAT_MS = 40 };

static const char *const names[HOSTS] = {"a", "b", "c"};
static struct certs certs;

static void impatient(void *arg)
{
    (void)arg;
    fail_msg("nothing happened in time");
}

static void on_block(void *arg)
{
    struct world *w = arg;
    chain_block(w);
    loop_timer_at(w->block, loop_now_ms(w->loop) + BLOCK_MS);
    loop_stop(w->loop);
}

static void on_work(void *arg)
{
    struct world *w = arg;
    for (uint32_t i = 0; i < w->members; i++)
        host_work(&w->hosts[i]);
    loop_timer_at(w->work, loop_now_ms(w->loop) + 1);
}

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    w->loop = loop_new();
    w->patience = loop_timer_new(w->loop, impatient, w);
    loop_timer_at(w->patience, loop_now_ms(w->loop) + PATIENCE_MS);
    w->block = loop_timer_new(w->loop, on_block, w);
    w->work = loop_timer_new(w->loop, on_work, w);
    loop_timer_at(w->block, loop_now_ms(w->loop));
    loop_timer_at(w->work, loop_now_ms(w->loop));
    *state = w;
    return 0;
}

static void crash(struct host *h, bool committed)
{
    host_forget(h, committed);
    h->room = site_room_close(h->room);
    h->account = NULL;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    for (uint32_t i = 0; i < w->members; i++)
        crash(&w->hosts[i], false);
    for (size_t i = 0; i < w->chain.count; i++)
        free(w->chain.all[i]);
    loop_timer_close(w->patience);
    loop_timer_close(w->block);
    loop_timer_close(w->work);
    assert_int_equal(loop_open_handles(w->loop), 0);
    loop_free(w->loop);
    free(w);
    return 0;
}

static struct site_config config_of(const struct world *w, uint32_t self)
{
    return (struct site_config){.hash = election_hash,
                                .account = {1, 2, 3},
                                .names = names,
                                .members = w->members,
                                .self = self,
                                .own_keys = w->own_keys,
                                .range_blocks = w->range_blocks,
                                .era_blocks = 200,
                                .beat_ms = BEAT_MS,
                                .silence_ms = 400,
                                .probe_ms = 200,
                                .retry_ms = 50,
                                .propose_ms = 1000,
                                .elect_ms = 500,
                                .own_send_ms = 1000,
                                .hole_ms = 100};
}

static void start_with(struct host *h, const struct site_config *config)
{
    struct world *w = h->w;
    char files[3][600];
    struct site_links_peer peers[HOSTS];
    const char *targets[HOSTS];
    size_t count = 0;
    struct err err = {0};
    static const char *const suffix[] = {".pem", ".key"};
    for (int i = 0; i < 2; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%s%s", names[h->self], suffix[i]);
        snprintf(files[i], sizeof(files[i]), "%s", certs_path(&certs, name));
    }
    snprintf(files[2], sizeof(files[2]), "%s", certs_path(&certs, "ca.pem"));
    for (uint32_t i = 0; i < w->members; i++)
        if (i != h->self) {
            targets[count] = w->hosts[i].address[0] ? w->hosts[i].address : "127.0.0.1:1";
            peers[count] = (struct site_links_peer){names[i], &targets[count], 1};
            count++;
        }
    char listen[110] = "tcp:127.0.0.1:0";
    if (h->address[0])
        snprintf(listen, sizeof(listen), "tcp:%s", h->address);
    const struct site_links_config links = {.self = names[h->self],
                                            .listen = listen,
                                            .cert_file = files[0],
                                            .key_file = files[1],
                                            .ca_file = files[2],
                                            .peers = peers,
                                            .peer_count = count,
                                            .retry_ms = 20,
                                            .retry_max_ms = 100};
    h->room = site_room_open(w->loop, &links, &host_ops, h, &err);
    if (!h->room)
        fail_msg("%s", err.text);
    snprintf(h->address, sizeof(h->address), "%s", site_links_address(site_room_links(h->room)));
    h->account = site_room_add(h->room, config, h, &err);
    if (!h->account)
        fail_msg("%s", err.text);
}

static void start(struct host *h)
{
    const struct site_config config = config_of(h->w, h->self);
    start_with(h, &config);
    site_account_lead(h->account, true);
}

/* Each site opens once to get an address, and then with those of the others. */
static void find_addresses(struct world *w, uint32_t members)
{
    w->members = members;
    w->range_blocks = w->range_blocks ? w->range_blocks : 1000000;
    for (uint32_t i = 0; i < members; i++) {
        struct host *h = &w->hosts[i];
        const struct site_config config = config_of(w, i);
        h->w = w;
        h->self = i;
        start_with(h, &config);
        crash(h, false);
    }
}

static void open_sites(struct world *w, uint32_t members)
{
    find_addresses(w, members);
    for (uint32_t i = 0; i < members; i++)
        start(&w->hosts[i]);
}

static size_t open_rows(const struct world *w)
{
    size_t n = 0;
    for (uint32_t i = 0; i < w->members; i++)
        n += w->hosts[i].db.open;
    return n;
}

static size_t finalized(const struct world *w)
{
    size_t n = 0;
    for (uint32_t i = 0; i < w->members; i++)
        for (size_t k = 0; k < w->hosts[i].db.count; k++)
            n += chain_effects(w, i, w->hosts[i].db.rows[k].id);
    return n;
}

/* Every transaction has its effect on the chain once, or was cancelled, and its end once. */
static void check_all(const struct world *w)
{
    for (uint32_t i = 0; i < w->members; i++) {
        assert_int_equal(w->hosts[i].db.ends_twice, 0);
        for (size_t k = 0; k < w->hosts[i].db.count; k++) {
            const struct row *r = &w->hosts[i].db.rows[k];
            assert_int_equal(chain_effects(w, i, r->id), !r->cancelled);
            assert_true(r->ended);
        }
        assert_int_equal(w->hosts[i].notes[SITE_LINKS_BAD], 0);
        assert_int_equal(w->hosts[i].notes[SITE_LINKS_STRANGER], 0);
    }
}

static void run_until_all_ended(struct world *w)
{
    while (open_rows(w))
        loop_run(w->loop);
    check_all(w);
}

static struct site_account_view view(const struct host *h)
{
    struct site_account_view v;
    site_account_view(h->account, &v);
    return v;
}

/* Who orders the transactions now; waits until there is somebody. */
static struct host *coordinator(struct world *w)
{
    for (;; loop_run(w->loop))
        for (uint32_t i = 0; i < w->members; i++)
            if (w->hosts[i].room && view(&w->hosts[i]).core.state == SITE_ACTIVE)
                return &w->hosts[i];
}

static uint64_t messages(const struct world *w)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < w->members; i++)
        for (size_t k = 0; k + 1 < w->members; k++) {
            struct site_links_view v;
            site_links_view(site_room_links(w->hosts[i].room), k, &v);
            n += v.sent + v.dropped;
        }
    return n;
}

static bool all_idle(const struct world *w)
{
    for (uint32_t i = 0; i < w->members; i++) {
        struct site_account_view v = view(&w->hosts[i]);
        if (v.core.state != SITE_IDLE || v.core.work || v.core.rows || v.kept_bytes)
            return false;
    }
    return true;
}

/* ---- the tests ---- */

static void test_sites_send_through_one_account(void **state)
{
    struct world *w = *state;
    open_sites(w, 3);
    for (uint32_t i = 0; i < 3; i++)
        host_enqueue(&w->hosts[i], 50);
    run_until_all_ended(w);
    uint64_t delegated = 0;
    for (uint32_t i = 0; i < 3; i++)
        delegated += site_account_counts(w->hosts[i].account)->items[SITE_MSG_DELEGATE];
    assert_true(delegated >= 100); /* two of three sites gave theirs to the other */
}

/* P36, and I10 of memory: once all is over nobody says or keeps anything. */
static void test_an_idle_account_says_nothing(void **state)
{
    struct world *w = *state;
    open_sites(w, 3);
    host_enqueue(&w->hosts[0], 5);
    run_until_all_ended(w);
    while (!all_idle(w))
        loop_run(w->loop);
    uint64_t before = messages(w), until = loop_now_ms(w->loop) + 10 * BEAT_MS;
    while (loop_now_ms(w->loop) < until)
        loop_run(w->loop);
    assert_int_equal(messages(w), before);
    host_enqueue(&w->hosts[1], 5);
    run_until_all_ended(w);
}

static void test_a_committee_of_one_says_nothing(void **state)
{
    struct world *w = *state;
    open_sites(w, 1);
    host_enqueue(&w->hosts[0], 50);
    run_until_all_ended(w);
    assert_int_equal(messages(w), 0);
}

/* kill -9 of the coordinator's relay, with its last statements committed or not. */
static void kill_coordinator(struct world *w, bool committed)
{
    open_sites(w, 3);
    for (uint32_t i = 0; i < 3; i++)
        host_enqueue(&w->hosts[i], 50);
    while (finalized(w) < 10)
        loop_run(w->loop);
    for (uint32_t i = 0; i < 3; i++)
        host_enqueue(&w->hosts[i], 30);
    struct host *killed = coordinator(w);
    crash(killed, committed);
    /* The others go on without it. */
    for (uint32_t i = 0; i < 3; i++)
        while (&w->hosts[i] != killed && w->hosts[i].db.open)
            loop_run(w->loop);
    start(killed);
    run_until_all_ended(w);
}

/* P31, P95: nothing of it is known but what it dispatched before. */
static void test_the_coordinator_is_killed_before_its_commits(void **state)
{
    kill_coordinator(*state, false);
}

/* P96: what is dispatched and was not sent is sent after the restart, or by its sender. */
static void test_the_coordinator_is_killed_after_its_commits(void **state)
{
    kill_coordinator(*state, true);
}

static void test_the_coordinator_is_killed_and_each_site_has_a_key(void **state)
{
    struct world *w = *state;
    w->own_keys = true;
    kill_coordinator(w, false);
}

/* P90: a sender that starts again delegates what it finds in its table. */
static void test_every_relay_is_killed_in_turn(void **state)
{
    struct world *w = *state;
    open_sites(w, 3);
    for (uint32_t round = 0; round < 6; round++) {
        struct host *h = &w->hosts[round % 3];
        size_t before = finalized(w);
        for (uint32_t i = 0; i < 3; i++)
            host_enqueue(&w->hosts[i], 10);
        while (finalized(w) < before + 5)
            loop_run(w->loop);
        crash(h, round % 2);
        loop_run(w->loop);
        start(h);
    }
    run_until_all_ended(w);
}

/* P22, P33, P52..P56. */
static void test_the_coordinator_changes_every_few_blocks(void **state)
{
    struct world *w = *state;
    w->range_blocks = 15;
    open_sites(w, 3);
    for (uint32_t round = 0; round < 10; round++) {
        for (uint32_t i = 0; i < 3; i++)
            host_enqueue(&w->hosts[i], 5);
        for (unsigned block = 0; block < 6; block++)
            loop_run(w->loop);
    }
    run_until_all_ended(w);
    unsigned coordinated = 0;
    for (uint32_t i = 0; i < 3; i++)
        coordinated += site_account_counts(w->hosts[i].account)->sent[SITE_MSG_PROPOSE] > 0;
    assert_true(coordinated >= 2);
}

static void test_what_is_cancelled_has_no_effect(void **state)
{
    struct world *w = *state;
    size_t cancelled = 0;
    open_sites(w, 2);
    while (!w->hosts[0].loaded || !w->hosts[1].loaded)
        loop_run(w->loop);
    for (uint32_t i = 0; i < 2; i++)
        host_enqueue(&w->hosts[i], 10);
    for (uint32_t i = 0; i < 2; i++)
        for (uint64_t id = 1; id <= 5; id++)
            site_account_cancel(w->hosts[i].account, id);
    run_until_all_ended(w);
    for (uint32_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 10; k++)
            cancelled += w->hosts[i].db.rows[k].cancelled;
    assert_int_equal(cancelled, 10);
}

/* A relay that does not lead the account takes nothing for it, and does not stand in the way. */
static void test_a_relay_that_does_not_lead_takes_nothing(void **state)
{
    struct world *w = *state;
    find_addresses(w, 2);
    const struct site_config follower = config_of(w, 1);
    start_with(&w->hosts[1], &follower);
    start(&w->hosts[0]);
    host_enqueue(&w->hosts[0], 20);
    run_until_all_ended(w);
    assert_int_equal(w->hosts[1].submitted, 0);
    assert_int_equal(view(&w->hosts[1]).kept_bytes, 0);
    site_account_lead(w->hosts[1].account, true);
    host_enqueue(&w->hosts[1], 20);
    host_enqueue(&w->hosts[0], 20);
    run_until_all_ended(w);
}

/* P06: a site with another list or policy is not spoken to; each goes on by itself. */
static void test_sites_that_differ_refuse_each_other(void **state)
{
    struct world *w = *state;
    find_addresses(w, 2);
    struct site_config other = config_of(w, 1);
    other.range_blocks = 7;
    start_with(&w->hosts[1], &other);
    site_account_lead(w->hosts[1].account, true);
    start(&w->hosts[0]);
    for (uint32_t i = 0; i < 2; i++)
        host_enqueue(&w->hosts[i], 10);
    run_until_all_ended(w);
    assert_true(w->hosts[0].notes[SITE_LINKS_REFUSED] + w->hosts[1].notes[SITE_LINKS_REFUSED] > 0);
}

static void test_an_account_that_cannot_work_is_refused(void **state)
{
    struct world *w = *state;
    find_addresses(w, 2);
    struct host *h = &w->hosts[0];
    const struct site_config good = config_of(w, 0);
    start_with(h, &good);
    static const char *const stranger[] = {"a", "x"}, *const unordered[] = {"b", "a"};
    struct site_config bad[] = {good, good, good, good, good};
    bad[0].names = stranger;
    bad[1].names = unordered;
    bad[1].self = 1;
    bad[2].self = 1; /* the links are a's */
    bad[3].approvals = 2;
    bad[4].work_max = SITE_WIRE_ITEMS_MAX + 1;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = {0};
        assert_null(site_room_add(h->room, &bad[i], h, &err));
        assert_int_equal(err.code, ERR_CONFIG);
    }
}

static const char *letter(const struct site_account *a)
{
    static const char *const letters[] = {"a", "b", "c"};
    const struct host *h = site_account_ctx(a);
    return letters[h->self];
}

static void test_the_metrics_are_those_of_the_page(void **state)
{
    struct world *w = *state;
    struct buf text = {0}, row = {0};
    open_sites(w, 3);
    for (uint32_t i = 0; i < 3; i++)
        host_enqueue(&w->hosts[i], 5);
    run_until_all_ended(w);
    for (uint32_t i = 0; i < 3; i++)
        site_room_metrics(w->hosts[i].room, letter, &text);
    static const char *const lines[] = {
        "txrelay_site_links{site=\"b\"} 1\n",
        "txrelay_site_messages_dropped_total{site=\"a\"} ",
        "txrelay_site_coordinates{account=\"a\"} ",
        "txrelay_site_members_away{account=\"b\"} 0\n",
        "txrelay_site_transactions{account=\"c\"} 0\n",
        "kind=\"delegate\"} ",
        "kind=\"propose\"} ",
        "txrelay_site_demotions_total{account=\"a\"} 0\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (!strstr(buf_str(&text), lines[i]))
            fail_msg("no %s in:\n%s", lines[i], buf_str(&text));
    static const char *const types[] = {"gauge", "counter", "histogram"};
    const struct metric *m;
    for (size_t i = 0; (m = site_metric(i)); i++) {
        char head[120];
        snprintf(head, sizeof(head), "# TYPE %s %s\n", m->name, types[m->type]);
        assert_non_null(strstr(buf_str(&text), head));
        buf_clear(&row);
        buf_printf(&row, "| `%s` | %s | ", m->name, types[m->type]);
        page_shows(SITES_MD, buf_str(&row));
        buf_clear(&row);
        buf_printf(&row, " | %s |\n", m->help);
        page_shows(SITES_MD, buf_str(&row));
    }
    buf_done(&row);
    buf_done(&text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static int open_certs(void **state)
{
    (void)state;
    certs_open(&certs);
    certs_add(&certs, "a", "DNS:a");
    certs_add(&certs, "b", "DNS:b");
    certs_add(&certs, "c", "DNS:c");
    return 0;
}

static int close_certs(void **state)
{
    (void)state;
    certs_close(&certs);
    return 0;
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as main() does */
    const struct CMUnitTest tests[] = {
        TEST(test_sites_send_through_one_account),
        TEST(test_an_idle_account_says_nothing),
        TEST(test_a_committee_of_one_says_nothing),
        TEST(test_the_coordinator_is_killed_before_its_commits),
        TEST(test_the_coordinator_is_killed_after_its_commits),
        TEST(test_the_coordinator_is_killed_and_each_site_has_a_key),
        TEST(test_every_relay_is_killed_in_turn),
        TEST(test_the_coordinator_changes_every_few_blocks),
        TEST(test_what_is_cancelled_has_no_effect),
        TEST(test_a_relay_that_does_not_lead_takes_nothing),
        TEST(test_sites_that_differ_refuse_each_other),
        TEST(test_an_account_that_cannot_work_is_refused),
        TEST(test_the_metrics_are_those_of_the_page),
    };
    return cmocka_run_group_tests(tests, open_certs, close_certs);
}
