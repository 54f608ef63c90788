/* What one answer does not prove: a doubted nonce and, with a quorum, every block are confirmed by
 * other endpoints, or by the same one again, before they are reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "support_node.h"

enum { TRUTH = 7, LIE = 3, BLOCKS = 4, LIED_AT = 2 };

static struct fake_runtime contracts;

static enum tx_doubt doubts(void *arg, const struct node_block *block, size_t index)
{
    (void)arg;
    return block->nonces[index] == LIE ? TX_DOUBTED : TX_CERTAIN;
}

static enum tx_doubt doubts_once(void *arg, const struct node_block *block, size_t index)
{
    (void)arg;
    return block->nonces[index] == LIE ? TX_TWICE : TX_CERTAIN;
}

/* The endpoint's answers to a question about one account. */
struct again {
    unsigned asked;
    unsigned lies; /* the first of them that are the lie; the rest is the truth */
};

static bool count_again(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                        const json_t *params)
{
    struct again *a = f->hook_arg;
    (void)p;
    (void)id;
    (void)params;
    if (!strcmp(method, "state_getStorage") && ++a->asked > a->lies)
        f->blocks[LIED_AT].nonce = TRUTH;
    return false;
}

/* All fakes have the same blocks; the first one lies about the nonce at one of them. */
static void start(struct node_rig *rig, size_t fakes, struct again *again)
{
    rig_start(rig, fakes, &contracts);
    for (size_t i = 0; i < fakes; i++) {
        rig->fake[i].twin = true;
        for (unsigned b = 1; b <= BLOCKS; b++) {
            fake_add(&rig->fake[i], NULL, NULL);
            rig->fake[i].blocks[b].nonce = TRUTH;
        }
        rig->fake[i].best = rig->fake[i].finalized = BLOCKS;
    }
    rig->fake[0].blocks[LIED_AT].nonce = LIE;
    rig->fake[0].hook = count_again;
    rig->fake[0].hook_arg = again;
    rig->config.doubts = doubts;
    rig->config.confirm_ms = 10;
}

static void follow(struct node_rig *rig)
{
    static const uint8_t account[32] = {7};
    rig_connect(rig);
    node_watch_account(rig->node, account, 32);
    node_follow(rig->node, 1);
}

static void expect_nonces(struct node_rig *rig, uint64_t at_the_lie)
{
    rig_wait_seen(rig, BLOCKS);
    assert_int_equal(rig->view_count, BLOCKS);
    for (unsigned i = 0; i < BLOCKS; i++) {
        assert_int_equal(rig->seen[i].head.number, i + 1);
        assert_int_equal(rig->seen[i].nonce, i + 1 == LIED_AT ? at_the_lie : TRUTH);
    }
}

/* The same endpoint takes it back: the block is read again. */
static void taken_back(void **state)
{
    (void)state;
    for (unsigned lies = 0; lies < 4; lies++) {
        struct node_rig rig;
        struct again again = {.lies = lies};
        start(&rig, 1, &again);
        follow(&rig);
        expect_nonces(&rig, TRUTH);
        assert_int_equal(again.asked, lies + 1);
        assert_int_equal(rig.down, 0);
        rig_done(&rig);
    }
}

/* It never does, and nobody else can be asked: five times, and the block is reported as it is. */
static void repeated_alone(void **state)
{
    (void)state;
    struct node_rig rig;
    struct again again = {.lies = 100};
    start(&rig, 1, &again);
    follow(&rig);
    expect_nonces(&rig, LIE);
    assert_int_equal(again.asked, 5);
    rig_done(&rig);
}

/* Where one more answer has to do, no other endpoint is asked. */
static void twice(void **state)
{
    (void)state;
    for (unsigned lies = 0; lies < 2; lies++) {
        struct node_rig rig;
        struct again again = {.lies = lies};
        start(&rig, 2, &again);
        rig.config.doubts = doubts_once;
        follow(&rig);
        expect_nonces(&rig, lies ? LIE : TRUTH);
        assert_int_equal(again.asked, 1);
        assert_null(rig.fake[1].peer);
        rig_done(&rig);
    }
}

/* Nothing is asked again where nothing is in doubt. */
static void no_doubt(void **state)
{
    (void)state;
    struct node_rig rig;
    struct again again = {.lies = 100};
    start(&rig, 2, &again);
    rig.config.doubts = NULL;
    follow(&rig);
    expect_nonces(&rig, LIE);
    assert_int_equal(again.asked, 0);
    assert_null(rig.fake[1].peer);
    rig_done(&rig);
}

static void another_one_agrees(void **state)
{
    (void)state;
    struct node_rig rig;
    struct again again = {.lies = 100};
    start(&rig, 2, &again);
    rig.fake[1].blocks[LIED_AT].nonce = LIE;
    rig.config.confirm_ms = rig_patience(500); /* nobody is given up */
    follow(&rig);
    expect_nonces(&rig, LIE);
    assert_int_equal(again.asked, 1);
    assert_int_equal(ws_server_accepted(rig.fake[1].server), 1);
    rig_done(&rig);
}

static void another_one_contradicts(void **state)
{
    (void)state;
    struct node_rig rig;
    struct again again = {.lies = 100};
    start(&rig, 2, &again);
    rig.config.confirm_ms = rig_patience(500); /* nobody is given up */
    follow(&rig);
    expect_nonces(&rig, UINT64_MAX);
    assert_int_equal(rig.down, 0);
    rig_done(&rig);
}

/* Two against one: the endpoint in use is left. */
static void most_contradict(void **state)
{
    (void)state;
    struct node_rig rig;
    struct again again = {.lies = 1000};
    start(&rig, 3, &again);
    rig.config.confirm_ms = rig_patience(500); /* nobody is given up */
    follow(&rig);
    expect_nonces(&rig, TRUTH);
    assert_string_equal(node_endpoint(rig.node), rig.urls[1]);
    assert_non_null(strstr(rig.why.text, "most other endpoints"));
    rig_done(&rig);
}

/* An endpoint that does not answer, or of another chain, says nothing. */
static void others_that_say_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct node_rig rig;
        struct again again = {.lies = 100};
        start(&rig, 2, &again);
        if (i == 0)
            fake_stop(&rig.fake[1], rig.loop);
        else if (i == 1)
            rig.fake[1].blocks[0].hash[65] = rig.fake[1].blocks[0].hash[65] == '0' ? '1' : '0';
        else
            rig.fake[1].finalized = LIED_AT - 1;
        rig.fakes = i == 0 ? 1 : 2;
        follow(&rig);
        expect_nonces(&rig, LIE);
        assert_true(again.asked >= 5);
        rig_done(&rig);
    }
}

/* ---- a quorum ---- */

/* The other endpoint has one final block until it was asked three times. */
static bool behind(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                   const json_t *params)
{
    struct node_rig *rig = f->hook_arg;
    (void)p;
    (void)id;
    (void)params;
    if (strcmp(method, "chain_getFinalizedHead") != 0 || rig->view_count == BLOCKS)
        return false;
    if (++rig->verified == 4)
        f->finalized = BLOCKS;
    else if (rig->verified < 4)
        assert_true(rig->view_count <= 1);
    return false;
}

static void quorum_of_two(void **state)
{
    (void)state;
    struct node_rig rig;
    struct again again = {0};
    start(&rig, 2, &again);
    rig.config.doubts = NULL;
    rig.config.quorum = 2;
    rig.fake[0].blocks[LIED_AT].nonce = TRUTH;
    rig.fake[1].finalized = 1;
    rig.fake[1].hook = behind;
    rig.fake[1].hook_arg = &rig;
    follow(&rig);
    expect_nonces(&rig, TRUTH);
    assert_true(rig.verified >= 4);
    rig_done(&rig);
}

/* The first endpoint finalizes a chain of its own. */
static void quorum_against_an_invented_chain(void **state)
{
    (void)state;
    struct node_rig rig;
    struct again again = {0};
    start(&rig, 3, &again);
    rig.config.doubts = NULL;
    rig.config.quorum = 2;
    fake_fork(&rig.fake[0], LIED_AT);
    for (unsigned b = LIED_AT; b <= BLOCKS; b++)
        fake_add(&rig.fake[0], json_pack("[s]", "0x1004010203"), NULL);
    rig.fake[0].best = rig.fake[0].finalized = BLOCKS;
    follow(&rig);
    rig_wait_seen(&rig, BLOCKS);
    for (unsigned i = 0; i < BLOCKS; i++) {
        uint8_t hash[32];
        fake_hash(&rig.fake[1], i + 1, hash);
        assert_memory_equal(rig.seen[i].head.hash, hash, 32);
    }
    assert_string_equal(node_endpoint(rig.node), rig.urls[1]);
    rig_done(&rig);
}

/* A nonce that changed is confirmed as well: one endpoint alone does not move it. */
static void quorum_of_nonces(void **state)
{
    (void)state;
    struct node_rig rig;
    struct again again = {.lies = 1000};
    start(&rig, 3, &again);
    rig.config.doubts = NULL;
    rig.config.quorum = 2;
    follow(&rig);
    expect_nonces(&rig, TRUTH);
    rig_done(&rig);
}

/* The owner starts over, or closes, while a block waits. */
static void given_up(void **state)
{
    (void)state;
    for (unsigned closes = 0; closes < 2; closes++) {
        struct node_rig rig;
        struct again again = {.lies = closes ? 100 : 2};
        start(&rig, 2, &again);
        fake_stop(&rig.fake[1], rig.loop);
        rig.fakes = 1;
        rig.config.confirm_ms = 20;
        follow(&rig);
        rig_wait_seen(&rig, 1);
        if (!closes) {
            node_follow(rig.node, 1);
            rig_wait_seen(&rig, 1 + BLOCKS);
            assert_int_equal(rig.seen[1].head.number, 1);
            assert_int_equal(rig.seen[1 + LIED_AT - 1].nonce, TRUTH);
        }
        rig_done(&rig);
    }
}

static int load(void **state)
{
    (void)state;
    fake_runtime_load(&contracts, "contracts", 100, 1, "v14-substrate-contracts-node");
    return 0;
}

static int unload(void **state)
{
    (void)state;
    fake_runtime_done(&contracts);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken_back),
        cmocka_unit_test(repeated_alone),
        cmocka_unit_test(twice),
        cmocka_unit_test(no_doubt),
        cmocka_unit_test(another_one_agrees),
        cmocka_unit_test(another_one_contradicts),
        cmocka_unit_test(most_contradict),
        cmocka_unit_test(others_that_say_nothing),
        cmocka_unit_test(quorum_of_two),
        cmocka_unit_test(quorum_against_an_invented_chain),
        cmocka_unit_test(quorum_of_nonces),
        cmocka_unit_test(given_up),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
