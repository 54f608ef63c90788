/* What one answer does not prove: a doubted nonce and, with a quorum, every block are confirmed by
 * other endpoints, or by the same one again, before they are reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/hash.h"
#include "support_node.h"

enum { TRUTH = 7, LIE = 3, BLOCKS = 4, LIED_AT = 2 };

static struct fake_runtime contracts, substrate, polkadot;

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

/* The first one does not repeat its answer as long as `lies` says; the second one counts. */
static bool deaf_again(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                       const json_t *params)
{
    const struct again *a = f->hook_arg;
    (void)p, (void)id, (void)params;
    return a->lies && !strcmp(method, "state_getStorage");
}

static bool count_asked(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                        const json_t *params)
{
    struct again *a = f->hook_arg;
    (void)p, (void)id, (void)params;
    a->asked += !strcmp(method, "state_getStorage");
    return false;
}

static bool is_past(void *arg)
{
    const struct node_rig *rig = arg;
    return loop_now_ms(rig->loop) >= rig->until_ms;
}

static bool was_asked(void *arg)
{
    return *(const unsigned *)arg > 0;
}

/* Another one agrees at once; the endpoint itself has to repeat it all the same. */
static void not_by_another_one_alone(void **state)
{
    (void)state;
    struct node_rig rig;
    struct again deaf = {.lies = 1}, other = {0};
    start(&rig, 2, &deaf);
    rig.fake[0].hook = deaf_again;
    rig.fake[1].hook = count_asked;
    rig.fake[1].hook_arg = &other;
    rig.fake[1].blocks[LIED_AT].nonce = LIE;
    rig.config.call_timeout_ms = rig_patience(300);
    follow(&rig);
    assert_true(run_until(rig.loop, was_asked, &other.asked, rig_limit()));
    rig.until_ms = loop_now_ms(rig.loop) + 50;
    assert_true(run_until(rig.loop, is_past, &rig, RIG_LIMIT_MS));
    assert_int_equal(rig.view_count, LIED_AT - 1);
    deaf.lies = 0;
    expect_nonces(&rig, LIE);
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

/* It is told from that block on, until a later one has a nonce that counts. */
static void told_contradiction(struct node_rig *rig, const struct node_block *block)
{
    const char *text = node_contradicted(rig->node, 0);
    if (block->head.number != LIED_AT)
        assert_null(text);
    else
        assert_non_null(strstr(text, "the account's nonce is 3; "));
}

static void another_one_contradicts(void **state)
{
    (void)state;
    struct node_rig rig;
    struct again again = {.lies = 100};
    start(&rig, 2, &again);
    rig.config.confirm_ms = rig_patience(500); /* nobody is given up */
    rig.on_block = told_contradiction;
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

/* ---- what an end rests on ---- */

static const char extrinsic[] = "0x1004010203";

static void set_events(struct fake *f, bool good)
{
    struct buf events = {0};
    struct fake_block *b = &f->blocks[LIED_AT];
    fake_events_begin(&events, 1);
    fake_event(&events, 0, good);
    free(b->events);
    struct buf text = {0};
    hex_put_0x(&text, events.data, events.len);
    b->events = xstrdup(buf_str(&text));
    buf_done(&text);
    buf_done(&events);
}

/* Ours is in a block, and the first endpoint says that it failed. */
static void start_included(struct node_rig *rig, size_t fakes, const uint8_t want[32])
{
    rig_start(rig, fakes, &polkadot);
    for (size_t i = 0; i < fakes; i++) {
        struct fake *f = &rig->fake[i];
        f->twin = true;
        for (unsigned b = 1; b <= BLOCKS; b++)
            fake_add(f, b == LIED_AT ? json_pack("[s]", extrinsic) : NULL, NULL);
        set_events(f, i != 0);
        f->best = f->finalized = BLOCKS;
    }
    rig->want = want;
    rig->config.quorum = 2;
    rig->config.confirm_ms = 10;
}

static void hash_of(const char *text, uint8_t ret[32])
{
    struct buf bytes = {0};
    assert_true(hex_decode(text, strlen(text), &bytes));
    hash_blake2b_256(bytes.data, bytes.len, ret);
    buf_done(&bytes);
}

/* Two against one: also where an endpoint does not tell the hash of a value. */
static void quorum_of_events(void **state)
{
    (void)state;
    for (unsigned whole = 0; whole < 2; whole++) {
        struct node_rig rig;
        uint8_t want[32];
        hash_of(extrinsic, want);
        start_included(&rig, 3, want);
        for (size_t i = 0; i < 3; i++)
            rig.fake[i].no_storage_hash = whole == 1;
        follow(&rig);
        rig_wait_seen(&rig, BLOCKS);
        assert_int_equal(rig.seen[LIED_AT - 1].included.tx.result.outcome, DISPATCH_OK);
        assert_string_equal(node_endpoint(rig.node), rig.urls[1]);
        assert_int_equal(rig.fake[2].asked_hashes > 0, !whole);
        assert_int_equal(rig.fake[2].asked_events > 0, whole);
        rig_done(&rig);
    }
}

static bool says(const struct node_rig *rig, const char *words)
{
    const char *text = node_unconfirmed(rig->node);
    return text && strstr(text, words);
}

static bool has_other_events(void *arg)
{
    return says(arg, "events of the block are others");
}

static bool differs(void *arg)
{
    return says(arg, "gives other metadata");
}

/* One against one: the block waits, and says why, until one of the two takes it back. */
static void events_that_stay_in_doubt(void **state)
{
    (void)state;
    struct node_rig rig;
    uint8_t want[32];
    hash_of(extrinsic, want);
    start_included(&rig, 2, want);
    follow(&rig);
    assert_true(rig_wait(&rig, has_other_events));
    assert_int_equal(rig.view_count, LIED_AT - 1);
    assert_true(says(&rig, "block 2 waits"));
    assert_true(says(&rig, rig.urls[1]));
    set_events(&rig.fake[1], false);
    rig_wait_seen(&rig, BLOCKS);
    assert_int_equal(rig.seen[LIED_AT - 1].included.tx.result.outcome, DISPATCH_FAILED);
    assert_null(node_unconfirmed(rig.node));
    rig_done(&rig);
}

/* What events mean depends on the metadata: one endpoint alone does not say it. */
static void quorum_of_metadata(void **state)
{
    (void)state;
    struct node_rig rig;
    uint8_t want[32];
    struct fake_runtime other = polkadot;
    other.hex = substrate.hex;
    hash_of(extrinsic, want);
    start_included(&rig, 2, want);
    set_events(&rig.fake[0], true);
    rig.fake[1].blocks[LIED_AT - 1].runtime = &other;
    follow(&rig);
    assert_true(rig_wait(&rig, differs));
    assert_int_equal(rig.view_count, LIED_AT - 1);
    rig.fake[1].blocks[LIED_AT - 1].runtime = &polkadot;
    rig_wait_seen(&rig, BLOCKS);
    rig_done(&rig);
}

/* ---- the runtime, without a quorum ---- */

static bool is_confirmed(void *arg)
{
    struct node_rig *rig = arg;
    return node_metadata_confirmed(rig->node);
}

/* The other endpoint is asked as well; one that does not answer is not waited for for ever. */
static void metadata_of_another_endpoint(void **state)
{
    (void)state;
    for (unsigned away = 0; away < 2; away++) {
        struct node_rig rig;
        struct fake_runtime other = contracts;
        struct again again = {0};
        other.hex = substrate.hex;
        start(&rig, 2, &again);
        if (away)
            fake_stop(&rig.fake[1], rig.loop);
        else
            rig.fake[1].blocks[BLOCKS].runtime = &other;
        rig.fakes = away ? 1 : 2;
        rig.config.confirm_ms = away ? rig_patience(500) : 1500;
        rig_up(&rig);
        assert_false(node_version_confirmed(rig.node));
        if (!away) {
            assert_true(rig_wait(&rig, differs));
            assert_false(node_metadata_confirmed(rig.node));
            assert_false(node_version_confirmed(rig.node));
            rig.fake[1].blocks[BLOCKS].runtime = &contracts;
        }
        assert_true(rig_wait(&rig, is_confirmed));
        assert_true(node_version_confirmed(rig.node));
        rig_done(&rig);
    }
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
    fake_runtime_load(&substrate, "node", 268, 2, "v14-substrate");
    fake_runtime_load(&polkadot, "polkadot", 1002005, 26, "v14-polkadot");
    return 0;
}

static int unload(void **state)
{
    (void)state;
    fake_runtime_done(&contracts);
    fake_runtime_done(&substrate);
    fake_runtime_done(&polkadot);
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
        cmocka_unit_test(not_by_another_one_alone),
        cmocka_unit_test(another_one_contradicts),
        cmocka_unit_test(most_contradict),
        cmocka_unit_test(others_that_say_nothing),
        cmocka_unit_test(quorum_of_two),
        cmocka_unit_test(quorum_against_an_invented_chain),
        cmocka_unit_test(quorum_of_nonces),
        cmocka_unit_test(quorum_of_events),
        cmocka_unit_test(events_that_stay_in_doubt),
        cmocka_unit_test(quorum_of_metadata),
        cmocka_unit_test(metadata_of_another_endpoint),
        cmocka_unit_test(given_up),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
