/* What nodes answer to bytes of an account that has sites: each answer of the table, in each place
 * that shows it. */
#include "sites_harness.h"

#include "relay/core/tx/answer.h"

static const uint8_t granted[SITE_HASH_BYTES] = {'g'};

static void answer(uint64_t nonce, int code, int64_t rpc_code, const char *text)
{
    struct rpc_call call = {.err.code = code, .rpc_code = rpc_code};
    snprintf(call.err.text, sizeof(call.err.text), "%s", text);
    sites_answered(&host, nonce, granted, &call);
}

static void refuse(uint64_t nonce, const char *text)
{
    answer(nonce, ERR_RPC, 1018, text);
}

/* As an account without sites has it: a node's error is a refusal, but where it says that the pool
 * has the bytes; the relay's own is a try. A used nonce holds up nothing. */
static void check_answer(const struct answer *a)
{
    bool node = a->from == ANSWER_OF_NODE, any = a->first == INT64_MIN;
    bool taken = a->means == REFUSAL_POOLED || (!node && a->first == ERR_OK);
    int64_t code = !any ? a->first : node ? 123456 : ERR_IO;
    led();
    answer(5, node ? ERR_RPC : (int)code, node ? code : 0, a->text);
    loop_turn(service.loop);
    if (!node && a->first == ERR_OK) {
        did_so("");
        assert_string_equal(obstacle(), "");
    } else if (!node || taken) {
        did_so("log:transaction.state ");
        assert_non_null(strstr(logged, " nonce=5 "));
        assert_non_null(strstr(logged, " state=tried "));
        assert_non_null(strstr(logged, a->text));
        assert_string_equal(obstacle(), "");
    } else {
        bool quiet = a->means == REFUSAL_STALE || a->means == REFUSAL_BANNED ||
                     a->means == REFUSAL_POOL_FULL || a->means == REFUSAL_BAD_PROOF ||
                     a->means == REFUSAL_FUTURE; /* answers to what is submitted again */
        bool holds = a->means != REFUSAL_STALE && a->means != REFUSAL_BANNED;
        did_so(quiet ? "log:transaction.state refused:g "
                     : "log:transaction.state log:account.alert refused:g ");
        assert_non_null(strstr(logged, quiet ? " state=refused " : "a node refuses nonce 5: "));
        assert_non_null(strstr(logged, a->text));
        assert_non_null(strstr(obstacle(), holds ? a->text : ""));
        assert_int_equal(!obstacle()[0], !holds);
    }
    sites_leave(&host);
    did[0] = 0;
}

static void each_answer_is_in_each_place(void **state)
{
    const struct answer *a;
    (void)state;
    for (size_t i = 0; (a = answer_at(i)); i++)
        check_answer(a);
}

static void only_the_first_nonce_in_no_block_holds_up(void **state)
{
    (void)state;
    led();
    refuse(6, "no");
    assert_string_equal(obstacle(), "");
    refuse(5, "");
    assert_string_equal(obstacle(), "nodes refuse nonce 5, the first that is in no block: refused "
                                    "without a reason");
    host.best_next = 6; /* a block that is not final has nonce 5 */
    assert_string_equal(obstacle(), "nodes refuse nonce 6, the first that is in no block: no");
    host.best_next = 7;
    assert_string_equal(obstacle(), "");
}

/* One alert for a series, which is over when nothing is refused any more. */
static void what_is_taken_is_refused_no_more(void **state)
{
    (void)state;
    led();
    refuse(5, "no");
    refuse(6, "no");
    refuse(5, "still not");
    loop_turn(service.loop);
    did_so("log:transaction.state log:account.alert log:transaction.state log:transaction.state "
           "refused:gg ");
    answer(5, ERR_OK, 0, "");
    assert_string_equal(obstacle(), "");
    answer(6, ERR_RPC, 1013, "Transaction Already Imported");
    did[0] = 0;
    refuse(5, "no");
    did_so("log:transaction.state log:account.alert ");
}

static void a_ban_keeps_what_came_before_it(void **state)
{
    (void)state;
    led();
    refuse(5, "no");
    answer(5, ERR_RPC, 1012, "banned");
    assert_string_equal(obstacle(), "nodes refuse nonce 5, the first that is in no block: banned");
}

static void blocks_end_refusals(void **state)
{
    (void)state;
    led();
    refuse(5, "no");
    refuse(6, "no");
    const struct node_included all[] = {tx('g', 5), tx('g', 6)};
    block(1001, 6, all, 1, false); /* the final one */
    assert_string_equal(obstacle(), "nodes refuse nonce 6, the first that is in no block: no");
    played.view.core.granted = 1;
    played.info.best_number = 1002;
    sites_head(&host);
    played.ask->each(played.ask, &all[1]); /* of the best chain */
    assert_string_equal(obstacle(), "");
}

static void a_new_leadership_knows_of_no_refusal(void **state)
{
    (void)state;
    led();
    refuse(5, "no");
    sites_leave(&host);
    did[0] = 0;
    loop_turn(service.loop);
    did_so(""); /* nothing is stored */
    led();
    assert_string_equal(obstacle(), "");
}

/* What stands in the way of everything comes first. */
static void trouble_comes_before_a_refusal(void **state)
{
    (void)state;
    led();
    refuse(5, "no");
    snprintf(host.trouble, sizeof(host.trouble), "trouble");
    assert_string_equal(obstacle(), "trouble");
}

/* ---- through the door ---- */

static void what_is_submitted_is_answered(void **state)
{
    const struct site_signed attempt = {.bytes.hash.bytes = {'g'}, .bytes.nonce = 5};
    (void)state;
    led();
    sites_submit(NULL, NULL, &attempt);
    played.submit->sub.call = (struct rpc_call){.err.code = ERR_RPC, .rpc_code = 1018};
    snprintf(played.submit->sub.call.rpc_data, sizeof(played.submit->sub.call.rpc_data), "data");
    snprintf(played.submit->sub.call.err.text, sizeof(played.submit->sub.call.err.text), "text");
    played.on_reply(played.submit);
    assert_string_equal(obstacle(),
                        "nodes refuse nonce 5, the first that is in no block: text: data");
    assert_null(host.submits);
    sites_submit(NULL, NULL, &attempt);
    played.on_reply(played.submit); /* the pool has it, and is watched */
    assert_string_equal(obstacle(), "");
    assert_non_null(host.submits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_answer_is_in_each_place, begin, end),
        cmocka_unit_test_setup_teardown(only_the_first_nonce_in_no_block_holds_up, begin, end),
        cmocka_unit_test_setup_teardown(what_is_taken_is_refused_no_more, begin, end),
        cmocka_unit_test_setup_teardown(a_ban_keeps_what_came_before_it, begin, end),
        cmocka_unit_test_setup_teardown(blocks_end_refusals, begin, end),
        cmocka_unit_test_setup_teardown(a_new_leadership_knows_of_no_refusal, begin, end),
        cmocka_unit_test_setup_teardown(trouble_comes_before_a_refusal, begin, end),
        cmocka_unit_test_setup_teardown(what_is_submitted_is_answered, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
