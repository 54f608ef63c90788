/* What is made of heads and finalized blocks for an account with sites. */
#include "sites_harness.h"

static void each_block_is_told_once_and_in_order(void **state)
{
    (void)state;
    struct node_included all[] = {tx('g', 5)};
    all[0].tx.result.has_fee = true;
    all[0].tx.result.fee = 7;
    led();
    block(1001, 6, all, 1, false);
    did_so("final1001,6(5:50 ok for 7) review9,1001 want0 ");
    block(1001, 6, all, 1, false);
    block(1000, 6, NULL, 0, false);
    did_so("");
    block(1004, 6, NULL, 0, false); /* 1002 comes first */
    did_so("follow1002 ");
    block(1002, 6, NULL, 0, false);
    did_so("final1002,6 review9,1002 want0 ");
    host.reading = false;
    block(1003, 6, NULL, 0, false);
    did_so("");
    const struct node_block short_one = {.head = {.number = 1003}, .nonce_count = 0};
    host.reading = true;
    service_sites_block(&account, &short_one); /* the account is not watched yet */
    did_so("");
}

static void nothing_is_reviewed_under_a_version_that_is_not_sure(void **state)
{
    (void)state;
    led();
    played.confirmed = false;
    block(1001, 5, NULL, 0, false);
    did_so("final1001,5 want0 ");
    played.confirmed = true;
    played.connected = false;
    block(1002, 5, NULL, 0, false);
    did_so("final1002,5 want0 ");
}

static void a_body_that_nobody_has_holds_those_who_need_it(void **state)
{
    (void)state;
    led();
    block(1001, 5, NULL, 0, true); /* nothing of the account can be in it */
    did_so("final1001,5 review9,1001 want0 ");
    struct site_view needs[] = {{.rows = 1}, {.work = 1}, {.waits = true}};
    for (size_t i = 0; i < 3; i++) {
        played.view.core = needs[i];
        assert_true(service_sites_need(&account));
        block(1002, 5, NULL, 0, true);
        did_so("timer5000 ");
        assert_non_null(strstr(obstacle(), "no endpoint has the body of block 1002"));
        sites_chain_again(&host);
        did_so("follow1002 ");
    }
    played.view.core = (struct site_view){.rows = 1};
    block(1002, 5, NULL, 0, false);
    did_so("final1002,5 review9,1002 want0 ");
    assert_string_equal(obstacle(), "");
    played.view.core = (struct site_view){0};
    assert_false(service_sites_need(&account));
    played.view.core.rows = 1;
    host.reading = false;
    assert_false(service_sites_need(&account));
}

/* An extrinsic shows its nonce if its signature is good, or the bytes are known. */
static void a_block_shows_nonces_by_what_is_certain(void **state)
{
    (void)state;
    struct node_included all[4] = {tx('g', 5), tx('x', 6), tx('x', 8), tx('x', 9)};
    all[0].tx.own_signer = false;
    all[2].tx.signature = TX_SIGNATURE_UNKNOWN;
    all[3].signer[0] = 8; /* another account's */
    all[3].tx.own_signer = false;
    led();
    block(1001, UINT64_MAX, all, 4, false);
    did_so("final1001,7(5:50 ok)(6:0 ok)(8:0 ok) review9,1001 want0 ");
    block(1002, 9, NULL, 0, false); /* the node says more */
    did_so("final1002,9 review9,1002 want0 ");
    all[0].tx.result.outcome = DISPATCH_FAILED;
    all[1].tx.result.outcome = DISPATCH_NONE;
    all[0].tx.nonce = 4; /* bytes of an old block */
    block(1003, UINT64_MAX, all, 2, false);
    did_so("final1003,9(4:50 dispatch_error)(6:0 unknown) review9,1003 want0 ");
    assert_int_equal(host.reaped, 0);
    all[0] = tx('x', 30);
    all[0].tx.own_signer = false; /* of another account with the same bytes as its id */
    block(1004, UINT64_MAX, all, 1, false);
    did_so("final1004,9(30:0 ok) review9,1004 want0 ");
    all[2] = tx('d', 20);
    all[2].signer[0] = 8; /* coordinated here for another site with a key of its own */
    block(1005, UINT64_MAX, &all[2], 1, false);
    did_so("final1005,21(20:0 ok) review9,1005 want0 ");
}

static void a_nonce_that_falls_is_another_life(void **state)
{
    (void)state;
    led();
    block(1001, 5, NULL, 0, false);
    block(1002, 4, NULL, 0, false);
    assert_int_equal(host.reaped, 1002);
    assert_non_null(strstr(obstacle(), "nonce is 4 at block 1002 and was 5"));
    did_so("final1001,5 review9,1001 want0 final1002,5 review9,1002 want0 ");
    block(1003, 3, NULL, 0, false);
    assert_int_equal(host.reaped, 1002);
    sites_chain_forget(&host);
    assert_int_equal(host.reaped, 0);
}

/* ---- after lost commits ---- */

static void calls_are_matched_before_the_block_is_told(void **state)
{
    (void)state;
    static const uint8_t call[] = {1, 2};
    const int64_t ids[] = {70}, equals[] = {1};
    struct node_included all[] = {tx('g', 5), tx('x', 6), tx('y', 7)};
    all[1].tx.bytes = all[1].call = call;
    all[1].tx.call_len = sizeof(call);
    led();
    block(1001, 8, all, 3, false);
    did_so("final1001,8(5:50 ok)(6:0 ok)(7:0 ok) review9,1001 want0 ");
    played.view.core.waits = true;
    block(1002, 8, all, 3, false);
    did_so("match1 review9,1002 want0 "); /* the one that is not known and has bytes */
    assert_memory_equal(played.match->calls[0].data, call, sizeof(call));
    assert_int_equal(played.match->at_ms[0], 5);
    block(1003, 8, NULL, 0, false); /* waits behind it */
    did_so("review9,1003 want0 ");
    played.match->ids = ids;
    played.match->equals = equals;
    played.on_match(played.match);
    did_so("final1002,8(5:50 ok)(6:70 ok)(7:0 ok) final1003,8 ");
}

static void a_match_that_fails_is_asked_again_with_its_block(void **state)
{
    (void)state;
    static const uint8_t call[] = {1};
    struct node_included x = tx('x', 6);
    x.tx.bytes = x.call = call;
    x.tx.call_len = sizeof(call);
    led();
    played.view.core.waits = true;
    block(1001, 8, &x, 1, false);
    block(1002, 8, NULL, 0, false);
    did[0] = 0;
    played.match->err = (struct err){.code = ERR_DB_UNAVAILABLE};
    played.on_match(played.match);
    assert_non_null(strstr(did, "timer5000 "));
    assert_null(strstr(did, "final"));
    assert_int_equal(host.read, 1000);
    did[0] = 0;
    block(1001, 8, &x, 1, false);
    did_so("match1 review9,1001 want0 ");
    const uint64_t next = 5;
    sites_chain_loaded(&host, READ, &next); /* its answer comes later */
    did[0] = 0;
    played.match->err = (struct err){0};
    played.on_match(played.match);
    did_so("");
}

/* ---- what the node asks ---- */

static void a_nonce_that_no_extrinsic_shows_is_doubted(void **state)
{
    (void)state;
    struct node_included all[] = {tx('x', 5), tx('x', 6)};
    all[1].signer[0] = 8;
    led();
    assert_int_equal(doubt(1001, 5, NULL, 0), TX_CERTAIN);
    assert_int_equal(doubt(1001, 6, NULL, 0), TX_DOUBTED);
    assert_int_equal(doubt(1001, 4, NULL, 0), TX_DOUBTED);
    assert_int_equal(doubt(1001, 6, all, 1), TX_CERTAIN);
    assert_int_equal(doubt(1001, 6, all, 2), TX_CERTAIN); /* another's shows nothing */
    assert_int_equal(doubt(1001, 7, all, 2), TX_DOUBTED);
    all[0].tx.signature = TX_SIGNATURE_UNKNOWN;
    assert_int_equal(doubt(1001, 6, all, 1), TX_DOUBTED);
    assert_int_equal(doubt(1002, 6, NULL, 0), TX_CERTAIN); /* it is not the next one */
    host.reaped = 1001;
    assert_int_equal(doubt(1001, 6, NULL, 0), TX_CERTAIN);
    host.reaped = 0;
    host.reading = false;
    assert_int_equal(doubt(1001, 6, NULL, 0), TX_CERTAIN);
    host.phase = HOST_BLOCK; /* all begins with it */
    assert_int_equal(doubt(1001, 5, NULL, 0), TX_TWICE);
}

static void what_is_not_known_is_verified(void **state)
{
    (void)state;
    const uint8_t granted[32] = {'g'}, other[32] = {'x'};
    led();
    assert_true(service_sites_knows(&account, granted));
    assert_false(service_sites_knows(&account, other));
    assert_true(service_sites_must_verify(&account, other, 5));
    assert_false(service_sites_must_verify(&account, other, 4)); /* used long ago */
    assert_false(service_sites_must_verify(&account, granted, 5));
    played.view.core.waits = true;
    assert_true(service_sites_must_verify(&account, other, 4));
    host.reading = false;
    assert_false(service_sites_must_verify(&account, other, 5));
    assert_false(service_sites_knows(&account, granted));
}

/* ---- heads ---- */

static void who_gives_nonces_asks_for_the_next_one(void **state)
{
    (void)state;
    led();
    played.info.best_number = 1003;
    sites_head(&host); /* it coordinates nothing */
    did_so("head1003,0 ");
    played.view.core.work = 1;
    sites_head(&host);
    sites_head(&host); /* one question at a time */
    did_so("nonce? ");
    played.ask->number = 9;
    played.on_ask(played.ask);
    did_so("head1003,9 ");
    sites_head(&host);
    played.ask->err.code = ERR_NET;
    played.ask->number = 0;
    played.on_ask(played.ask);
    did_so("nonce? head1003,9 ");
    sites_head(&host);
    played.ask->err.code = ERR_CANCELED; /* the node closes */
    played.on_ask(played.ask);
    did_so("nonce? ");
    played.connected = false;
    sites_head(&host);
    played.ask->err.code = 0;
    played.on_ask(played.ask);
    did_so("nonce? ");
    host.phase = HOST_BLOCK;
    played.connected = true;
    played.view.core.granted = 1;
    sites_head(&host);
    did_so("");
}

/* ---- anchors of eras ---- */

static void blocks_are_read_from_the_first_unknown_anchor_on(void **state)
{
    (void)state;
    const uint64_t next = 5, back = ERA + ANCHOR_BEHIND;
    uint8_t hash[32];
    led();
    sites_chain_loaded(&host, READ, &next);
    did_so("follow1001 head1000,0 want0 ask0 ");
    anchors[990 % ANCHORS].known = false;
    sites_chain_loaded(&host, READ, &next);
    did_so("follow990 head1000,0 want0 ask0 ");
    anchors[990 % ANCHORS] = (struct site_anchor){.known = true, .number = 990 - ANCHORS};
    assert_false(sites_anchor(&host, 990, hash));
    block(990, 5, NULL, 0, false); /* for its hash alone */
    assert_true(sites_anchor(&host, 990, hash));
    did_so("");
    sites_chain_loaded(&host, READ, &next);
    did_so("follow1001 head1000,0 want0 ask0 ");
    anchors[(READ + 1 - back) % ANCHORS].known = false;
    sites_chain_loaded(&host, READ, &next);
    did_so("follow977 head1000,0 want0 ask0 ");
    anchors[989 % ANCHORS].known = false;
    block(989, 5, NULL, 0, true); /* without its body it may be without its hash */
    assert_false(sites_anchor(&host, 989, hash));
    sites_chain_loaded(&host, 3, &next);
    did_so("follow1 head1000,0 want0 ask0 ");
}

#define EACH(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(each_block_is_told_once_and_in_order),
        EACH(nothing_is_reviewed_under_a_version_that_is_not_sure),
        EACH(a_body_that_nobody_has_holds_those_who_need_it),
        EACH(a_block_shows_nonces_by_what_is_certain),
        EACH(a_nonce_that_falls_is_another_life),
        EACH(calls_are_matched_before_the_block_is_told),
        EACH(a_match_that_fails_is_asked_again_with_its_block),
        EACH(a_nonce_that_no_extrinsic_shows_is_doubted),
        EACH(what_is_not_known_is_verified),
        EACH(who_gives_nonces_asks_for_the_next_one),
        EACH(blocks_are_read_from_the_first_unknown_anchor_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
