/* The status as JSON: what operators read are names, and every counter that the status has is
 * there. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "service/status_json.h"

static const char *text_at(json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    assert_non_null(text);
    return text;
}

static json_int_t count_at(json_t *o, const char *key)
{
    assert_true(json_is_integer(json_object_get(o, key)));
    return json_integer_value(json_object_get(o, key));
}

static struct account_status leader(void)
{
    return (struct account_status){
        .alias = "alice",
        .address = "5G",
        .role = ACCOUNT_LEADER,
        .epoch = 7,
        .gate_open = true,
        .leader = "relay-1",
        .leader_address = "tcp:1",
        .phase = MANAGER_PROBE_POOL_WAIT,
        .manager = {.next_nonce = 12, .open = 3, .suspension = MANAGER_SUSPENSION_PAYMENT},
        .refused_total = 6,
        .gated_total = 8,
        .elected = true,
        .election = {.state = ELECTOR_LEADER, .bids_total = 2, .renewed_at_ms = 600},
    };
}

static void test_names(void **state)
{
    (void)state;
    struct account_status account = leader();
    struct service_status s = {
        .name = "r",
        .holder = "h",
        .phase = SERVICE_DRAINING,
        .listens = true,
        .listen = {.live = true, .queue_usage = 0.5},
        .store = {.control = {.up = true}, .started = 9, .failed = 4, .in_flight = 1},
        .endpoint = "ws://n",
        .spec_name = "node",
        .account_count = 1,
        .accounts = &account};
    json_t *o = status_json(&s, 1000);
    assert_string_equal(text_at(o, "phase"), "draining");
    json_t *connections = json_object_get(o, "connections");
    assert_true(json_is_true(json_object_get(json_object_get(connections, "control"), "up")));
    assert_true(json_is_false(json_object_get(json_object_get(connections, "work"), "up")));
    json_t *listen = json_object_get(connections, "listen");
    assert_true(json_is_null(json_object_get(listen, "proved_ms_ago"))); /* never */
    assert_true(json_real_value(json_object_get(listen, "queue_usage")) == 0.5);
    assert_int_equal(count_at(json_object_get(o, "requests"), "failed_total"), 4);
    json_t *a = json_array_get(json_object_get(o, "accounts"), 0);
    assert_string_equal(text_at(a, "role"), "leader");
    assert_string_equal(text_at(a, "phase"), "probe_pool_wait");
    assert_string_equal(text_at(a, "suspension"), "payment");
    assert_int_equal(count_at(a, "next_nonce"), 12);
    assert_int_equal(count_at(a, "refused_not_leader_total"), 6);
    assert_int_equal(count_at(a, "blocked_not_leader_total"), 8);
    json_t *election = json_object_get(a, "election");
    assert_string_equal(text_at(election, "state"), elector_state_name(ELECTOR_LEADER));
    assert_int_equal(count_at(election, "renewed_ms_ago"), 400);
    json_decref(o);
}

static void test_feeds(void **state)
{
    (void)state;
    struct feed_status feeds[] = {{.name = "prices",
                                   .alias = "alice",
                                   .phase = "VERIFY_WAIT",
                                   .served = true,
                                   .last = 17,
                                   .sessions = 3,
                                   .primary = 9,
                                   .leader_address = "relay-1:9944"},
                                  {.name = "rates",
                                   .alias = "alice",
                                   .phase = "IDLE",
                                   .paused = true,
                                   .last = -1,
                                   .leader_address = ""}};
    struct service_status s = {.name = "r",
                               .holder = "h",
                               .endpoint = "",
                               .spec_name = "",
                               .feeds_open = true,
                               .feeds_known = true,
                               .feeds_address = "relay-1:9944",
                               .feed_sessions = 4,
                               .feed_count = 2,
                               .feeds = feeds};
    json_t *o = status_json(&s, 1000);
    json_t *all = json_object_get(o, "feeds");
    assert_string_equal(text_at(all, "address"), "relay-1:9944");
    assert_true(json_is_true(json_object_get(all, "known")));
    assert_int_equal(count_at(all, "sessions"), 4);
    json_t *f = json_array_get(json_object_get(all, "feeds"), 0);
    assert_string_equal(text_at(f, "feed"), "prices");
    assert_string_equal(text_at(f, "account"), "alice");
    assert_string_equal(text_at(f, "phase"), "verify_wait");
    assert_true(json_is_true(json_object_get(f, "served")));
    assert_int_equal(count_at(f, "last"), 17);
    assert_int_equal(count_at(f, "sessions"), 3);
    assert_int_equal(count_at(f, "primary"), 9);
    assert_string_equal(text_at(f, "leader_address"), "relay-1:9944");
    f = json_array_get(json_object_get(all, "feeds"), 1);
    assert_true(json_is_true(json_object_get(f, "paused")));
    assert_int_equal(count_at(f, "last"), -1);
    assert_true(json_is_null(json_object_get(f, "primary")));
    json_decref(o);
    s.feeds_open = false; /* this relay takes none */
    o = status_json(&s, 1000);
    assert_null(json_object_get(o, "feeds"));
    json_decref(o);
}

/* Without a database there is no election and no session. */
static void test_standalone(void **state)
{
    (void)state;
    struct account_status account = leader();
    account.elected = false;
    struct service_status s = {.name = "r",
                               .holder = "h",
                               .standalone = true,
                               .endpoint = "",
                               .spec_name = "",
                               .account_count = 1,
                               .accounts = &account};
    json_t *o = status_json(&s, 1000);
    assert_null(json_object_get(o, "connections"));
    json_t *a = json_array_get(json_object_get(o, "accounts"), 0);
    assert_string_equal(text_at(a, "role"), "standalone");
    assert_null(json_object_get(a, "election"));
    json_decref(o);
}

/* A value without a name would end the relay that is asked for its status. */
static void test_every_value_has_a_name(void **state)
{
    (void)state;
    for (int i = MANAGER_IDLE; i <= MANAGER_LEADING; i++)
        assert_non_null(manager_phase_name((enum manager_phase)i));
    for (int i = MANAGER_FX_ADMIT; i <= MANAGER_FX_LOAD; i++)
        assert_non_null(manager_write_name((enum manager_effect_type)i));
    for (int i = MANAGER_SUSPENSION_NONE; i <= MANAGER_SUSPENSION_TRANSACTION_VERSION; i++)
        assert_int_equal(manager_suspension_of(manager_suspension_name((enum manager_suspension)i)),
                         i);
    assert_int_equal(manager_suspension_of("operator"), MANAGER_SUSPENSION_NONE);
    assert_int_equal(manager_suspension_of(NULL), MANAGER_SUSPENSION_NONE);
    for (int i = SERVICE_STARTING; i <= SERVICE_CLOSING; i++)
        assert_non_null(service_phase_name((enum service_phase)i));
    for (int i = ACCOUNT_FOLLOWER; i <= ACCOUNT_LEADER; i++)
        assert_non_null(account_role_name((enum account_role)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_feeds),
        cmocka_unit_test(test_standalone),
        cmocka_unit_test(test_every_value_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
