/* Who leads an account with sites, what operators see of it, what is polled, and blocks of the best
 * chain. */
#include "sites_harness.h"

/* ---- who leads ---- */

static void a_block_with_the_nonce_begins(void **state)
{
    (void)state;
    service_sites_lead(&account, EPOCH);
    did_so("follow1000 timer2000 ");
    block(1000, 5, NULL, 0, true); /* its body is not there */
    did_so("");
    block(1000, 5, NULL, 0, false);
    did_so("setup1000,5,1000 ");
    block(1001, 5, NULL, 0, false); /* one setup at a time */
    did_so("");
    answer_setup(0);
    did_so("lead7 head1000,0 ");
    assert_int_equal(host.phase, HOST_LED);
    service_sites_lead(&account, 0);
    did_so("lead0 ");
    service_sites_lead(&account, 0); /* it does not lead */
    did_so("");
}

/* The reading may have begun before this relay led, and the chain may make no other block. */
static void a_block_without_the_nonce_is_asked_for_again(void **state)
{
    (void)state;
    service_sites_lead(&account, EPOCH);
    block(1000, UINT64_MAX, NULL, 0, false);
    did_so("follow1000 timer2000 ");
    assert_string_equal(obstacle(), "");
    sites_chain_again(&host);
    did_so("follow1000 timer2000 ");
    assert_string_equal(obstacle(), "no finalized block has come with the account's nonce");
    block(1000, 5, NULL, 0, false);
    did_so("setup1000,5,1000 ");
    sites_chain_again(&host); /* it is on its way */
    did_so("");
    answer_setup(0);
    assert_string_equal(obstacle(), "");
    sites_chain_again(&host); /* nothing is read yet, and blocks are not what is missing */
    did_so("lead7 head1000,0 ");
}

static void nothing_begins_before_the_links_are_open(void **state)
{
    (void)state;
    struct site_tables *tables = host.tables;
    service_sites_lead(&account, EPOCH);
    host.tables = NULL;
    did[0] = 0;
    block(1000, 5, NULL, 0, false);
    did_so("");
    host.tables = tables;
    block(1000, 5, NULL, 0, false);
    did_so("setup1000,5,1000 ");
}

/* What was asked and what stood in the way are of the former leadership. */
static void a_new_leadership_begins_with_nothing(void **state)
{
    (void)state;
    led();
    service_sites_poll(&account, &(struct poll_effect){.query = POLL_QUERY_OUTBOX, .question = 3});
    snprintf(host.trouble, sizeof(host.trouble), "trouble");
    service_sites_lead(&account, 0);
    assert_string_equal(obstacle(), "");
    led();
    service_sites_poll(&account, &(struct poll_effect){.query = POLL_QUERY_OUTBOX, .question = 4});
    did_so("rows? ");
}

static void a_setup_that_fails_is_tried_again(void **state)
{
    (void)state;
    service_sites_lead(&account, EPOCH);
    block(1000, 5, NULL, 0, false);
    did[0] = 0;
    answer_setup(ERR_DB);
    did_so("timer2000 log:store.refused lost-9 ");
}

/* An answer for an older leadership leads to nothing, and the next one is set up for itself. */
static void an_old_answer_counts_for_nothing(void **state)
{
    (void)state;
    service_sites_lead(&account, EPOCH);
    block(1000, 5, NULL, 0, false);
    service_sites_lead(&account, EPOCH + 1);
    did[0] = 0;
    block(1001, 5, NULL, 0, false);
    did_so("");
    answer_setup(0);
    did_so("");
    assert_int_equal(host.phase, HOST_BLOCK);
    block(1002, 6, NULL, 0, false);
    did_so("setup1002,6,1000 ");
}

static void a_node_that_is_back_is_asked(void **state)
{
    (void)state;
    service_sites_lead(&account, EPOCH);
    did[0] = 0;
    service_sites_head(&service, false);
    did_so("");
    service_sites_head(&service, true);
    did_so("follow1000 timer2000 ");
    played.connected = false;
    service_sites_head(&service, true);
    did_so("timer2000 ");
    led();
    played.connected = true;
    service_sites_head(&service, true); /* it has what it needs */
    did_so("head1000,0 ");
}

/* It follows the chain, so that it can sign and verify as soon as it leads. */
static void a_follower_has_the_anchors_of_eras(void **state)
{
    uint8_t hash[32];
    (void)state;
    service_sites_head(&service, true);
    did_so("follow976 "); /* 1000 - ERA - ANCHOR_BEHIND */
    for (uint64_t n = 976; n <= READ; n++)
        service_sites_seen(
            &account,
            &(struct node_block){.head = {.number = n, .hash = {(uint8_t)n}}, .unread = n == 990});
    service_sites_head(&service, true);
    did_so("follow990 ");
    service_sites_seen(&account, &(struct node_block){.head = {.number = 990}});
    assert_true(sites_anchor(&host, 992, hash));
    assert_int_equal(hash[0], (uint8_t)992);
    assert_false(sites_anchor(&host, READ + 1, hash));
    const uint64_t next = 5;
    host.phase = HOST_LED;
    sites_chain_loaded(&host, READ, &next); /* no block is read again */
    assert_non_null(strstr(did, "follow1001 "));
    played.connected = false;
    host.phase = HOST_AWAY;
    did[0] = 0;
    service_sites_head(&service, true);
    did_so("");
}

/* ---- what operators see ---- */

static void what_changed_is_noted(void **state)
{
    (void)state;
    sites_look(&host); /* it does not lead */
    did_so("");
    led();
    sites_look(&host);
    did_so("");
    played.view.core.state = SITE_ACTIVE;
    sites_look(&host);
    did_so("log:site.coordinator note:ACTIVE,0 ");
    played.view.core.chosen = 1;
    sites_look(&host); /* one at a time */
    did_so("");
    played.on_note(played.note);
    did_so("");
    sites_look(&host);
    did_so("log:site.coordinator note:ACTIVE,1 ");
    played.on_note(played.note);
    played.view.core.down = 2;
    sites_look(&host);
    did_so("log:site.coordinator note:ACTIVE,1 ");
    played.on_note(played.note);
    sites_look(&host);
    did_so("");
}

static void a_note_that_failed_is_written_again(void **state)
{
    (void)state;
    led();
    host.seen_state = -1;
    sites_look(&host);
    did[0] = 0;
    played.note->err = (struct err){.code = ERR_NET};
    played.on_note(played.note);
    assert_memory_equal(did, "lost", 4);
    did[0] = 0;
    sites_look(&host);
    did_so("log:site.coordinator note:IDLE,0 ");
}

static void what_stands_in_the_way_is_said(void **state)
{
    (void)state;
    led();
    assert_string_equal(obstacle(), "");
    snprintf(host.trouble, sizeof(host.trouble), "trouble");
    assert_string_equal(obstacle(), "trouble");
    host.reaped = 9;
    snprintf(host.reaped_text, sizeof(host.reaped_text), "it was reaped");
    assert_string_equal(obstacle(), "it was reaped");
    struct site_tables *tables = host.tables;
    host.tables = NULL;
    assert_non_null(strstr(obstacle(), "links"));
    played.connected = false;
    assert_string_equal(obstacle(), "no endpoint is usable");
    host.tables = tables;
}

static void a_request_that_fails_is_told(void **state)
{
    (void)state;
    const struct err net = {.code = ERR_NET}, refused = {.code = ERR_DB_DENIED, .text = "no"};
    led();
    sites_failed(&host, "store", &net);
    assert_memory_equal(did, "lost", 4); /* no line, no trouble */
    assert_string_equal(obstacle(), "");
    did[0] = 0;
    sites_failed(&host, "poll", &refused);
    assert_memory_equal(did, "log:store.refused lost", 22);
    assert_string_equal(obstacle(), "the database refuses its poll: no");
    host.epoch = 0;
    did[0] = 0;
    sites_failed(&host, "store", &net); /* there is nothing to lose */
    did_so("");
}

/* ---- polls ---- */

static void ask(enum poll_query query, uint64_t question)
{
    service_sites_poll(&account, &(struct poll_effect){.query = query, .question = question});
}

static void one_poll_answers_both_questions(void **state)
{
    (void)state;
    led();
    ask(POLL_QUERY_OUTBOX, 3);
    did_so("rows? ");
    ask(POLL_QUERY_REQUESTS, 4); /* the poll that is out began before it */
    did_so("");
    sites_polled(&host, 2, -1);
    did_so("rows3 want0 rows? ");
    sites_polled(&host, 0, 90);
    did_so("requests4 want0 ");
    snprintf(host.trouble, sizeof(host.trouble), "trouble");
    sites_polled(&host, 0, -1); /* nobody asked */
    did_so("want0 ");
    assert_string_equal(obstacle(), "");
    ask(POLL_QUERY_OUTBOX, 5);
    sites_polled(&host, 0, -1);
    did_so("rows? none5 want0 ");
}

static void a_poll_that_cannot_begin_fails(void **state)
{
    (void)state;
    struct site_tables *tables = host.tables;
    led();
    played.no_poll = true;
    ask(POLL_QUERY_OUTBOX, 3);
    did_so("rows? norows3 ");
    host.tables = NULL;
    ask(POLL_QUERY_REQUESTS, 4);
    did_so("norequests4 ");
    host.tables = tables;
    played.no_poll = false;
    ask(POLL_QUERY_OUTBOX, 5);
    ask(POLL_QUERY_OUTBOX, 6); /* in place of 5 */
    did[0] = 0;
    sites_poll_failed(&host, true);
    did_so("norows6 refused ");
    sites_polled(&host, 1, -1);
    did_so("want0 ");
}

/* The room reads its tables again: what was read before, and each poll, is of the former ones. */
static void a_load_begins_anew(void **state)
{
    (void)state;
    led();
    ask(POLL_QUERY_OUTBOX, 3);
    did[0] = 0;
    sites_host_ops.load(NULL, host.site, 12);
    did_so("load12 norows3 ");
    assert_false(host.reading);
    block(1001, 6, NULL, 0, false);
    did_so("");
}

static void no_more_rows_than_there_is_room_for(void **state)
{
    (void)state;
    led();
    played.view.core.rows = ROWS_MAX;
    sites_want(&host);
    did_so("");
    played.view.core.rows = ROWS_MAX - 1;
    sites_want(&host);
    did_so("want0 ");
    host.reading = false;
    sites_want(&host);
    host.reading = true;
    host.phase = HOST_BLOCK;
    sites_want(&host);
    did_so("");
}

/* ---- blocks that are not final ---- */

static void best(uint64_t number, char hash)
{
    played.info.best_number = number;
    played.info.best_hash[0] = (uint8_t)hash;
    sites_best(&host);
}

/* The node reads this block: `has` for its parent, then `each` for what is in it. */
static bool read_best(uint64_t number, char hash, char parent, const char *txs)
{
    struct node_ask *a = played.ask;
    const uint8_t above[32] = {(uint8_t)parent};
    a->head = (struct node_head){.number = number, .hash = {(uint8_t)hash}};
    for (; *txs; txs++) {
        struct node_included x = tx(*txs, 5);
        a->each(a, &x);
    }
    return a->has(a, above);
}

static void best_blocks_are_read_while_bytes_are_granted(void **state)
{
    (void)state;
    led();
    best(1002, 'B'); /* nothing is granted */
    did_so("");
    played.view.core.granted = 1;
    best(1000, 'A'); /* it is final */
    played.best_has = 'B';
    best(1002, 'B'); /* known */
    played.best_has = 0;
    host.read = 0;
    best(1002, 'B'); /* nothing is read */
    host.read = READ;
    played.connected = false;
    best(1002, 'B');
    did_so("");
    played.connected = true;
    best(1002, 'B');
    did_so("above1000? ");
    played.best_has = 'z';
    assert_false(read_best(1002, 'B', 'A', "gx"));
    assert_true(read_best(1001, 'A', 'z', "d"));
    played.on_ask(played.ask);
    did_so("best1001:AB(g in 1002B) ");
}

static void old_blocks_of_the_best_chain_are_left_out(void **state)
{
    (void)state;
    led();
    played.view.core.granted = 1;
    best(READ + 300, 'B');
    did_so("above1044? ");
}

static void what_cannot_be_said_of_the_best_chain_is_not(void **state)
{
    (void)state;
    led();
    played.view.core.granted = 1;
    for (int i = 0; i < 5; i++) {
        best(1001, 'B');
        did_so("above1000? ");
        best(1002, 'C'); /* meanwhile */
        played.ask->head = (struct node_head){.number = 1001, .hash = {'B'}};
        if (i == 0)
            played.ask->err.code = ERR_NET;
        if (i == 1)
            played.ask->head.number = 0;
        if (i == 2)
            host.phase = HOST_BLOCK;
        if (i == 3)
            host.epoch++;
        if (i == 4)
            memset(played.ask->head.hash, 0, 32);
        played.on_ask(played.ask);
        did_so("");
        host.phase = HOST_LED;
    }
    best(1002, 'B');
    did[0] = 0;
    assert_false(read_best(1002, 0, 'A', "")); /* one without its hash among others */
    played.ask->head = (struct node_head){.number = 1001, .hash = {'A'}};
    played.on_ask(played.ask);
    did_so("");
    best(1001, 'B');
    best(1002, 'C');
    did[0] = 0;
    played.ask->head = (struct node_head){.number = 1001, .hash = {'B'}};
    played.on_ask(played.ask);
    did_so("best1001:B above1000? "); /* and the newer head */
}

#define EACH(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_follower_has_the_anchors_of_eras),
        EACH(a_block_with_the_nonce_begins),
        EACH(a_block_without_the_nonce_is_asked_for_again),
        EACH(nothing_begins_before_the_links_are_open),
        EACH(a_new_leadership_begins_with_nothing),
        EACH(a_setup_that_fails_is_tried_again),
        EACH(an_old_answer_counts_for_nothing),
        EACH(a_node_that_is_back_is_asked),
        EACH(what_changed_is_noted),
        EACH(a_note_that_failed_is_written_again),
        EACH(what_stands_in_the_way_is_said),
        EACH(a_request_that_fails_is_told),
        EACH(one_poll_answers_both_questions),
        EACH(a_poll_that_cannot_begin_fails),
        EACH(a_load_begins_anew),
        EACH(no_more_rows_than_there_is_room_for),
        EACH(best_blocks_are_read_while_bytes_are_granted),
        EACH(old_blocks_of_the_best_chain_are_left_out),
        EACH(what_cannot_be_said_of_the_best_chain_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
