/* An extrinsic that names one of our accounts as its signer is reported with what its signature is
 * worth. A block that holds one with a wrong signature is refused, and its endpoint is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/hex.h"
#include "node_internal.h"
#include "support_node.h"
#include "support_vectors.h"

static struct fake_runtime polkadot;
static struct keypair *alice;

enum kind { IMMORTAL, MORTAL, FORGED, FORGED_MORTAL, OTHER_RUNTIME };

/* Block `height` with one remark of Alice's, and its events. */
static void add_remark(struct node_rig *rig, enum kind kind, uint64_t height)
{
    static const uint8_t remark[] = {0, 0, 4, 'x'};
    struct fake *f = &rig->fake[0];
    bool mortal = kind == MORTAL || kind == FORGED_MORTAL;
    struct extrinsic_params params = {.nonce = 7,
                                      .era = mortal ? era_mortal(4, height - 1) : (struct era){0},
                                      .spec_version =
                                          polkadot.spec_version + (kind == OTHER_RUNTIME),
                                      .transaction_version = polkadot.transaction_version};
    struct buf bytes = {0}, text = {0}, events = {0};
    uint8_t hash[32];
    struct err err = {0};
    fake_hash(f, 0, params.genesis);
    if (mortal)
        fake_hash(f, era_birth(params.era, height - 1), params.era_block_hash);
    if (extrinsic_sign(polkadot.md, &params, alice, remark, sizeof(remark), &bytes, hash, &err))
        fail_msg("%s", err.text);
    if (kind == FORGED || kind == FORGED_MORTAL)
        bytes.data[60] ^= 1; /* of the signature */
    hex_put_0x(&text, bytes.data, bytes.len);
    json_t *list = json_array();
    json_array_append_new(list, json_string(buf_str(&text)));
    fake_events_begin(&events, 1);
    fake_event(&events, 0, true);
    fake_add(f, list, &events);
    buf_done(&bytes);
    buf_done(&text);
    buf_done(&events);
}

static void start(struct node_rig *rig)
{
    size_t len;
    rig_start(rig, 1, &polkadot);
    rig->want_signer = keypair_account_id(alice, &len);
    rig->want_signer_len = len;
    rig->verifies = true;
    for (unsigned i = 0; i < 5; i++)
        fake_add(&rig->fake[0], json_array(), NULL);
}

static void good_signatures(void **state)
{
    (void)state;
    struct node_rig rig;
    start(&rig);
    add_remark(&rig, IMMORTAL, 6);
    add_remark(&rig, MORTAL, 7);
    rig_up(&rig);
    node_follow(rig.node, 6);
    fake_set_finalized(&rig.fake[0], 7);
    rig_wait_seen(&rig, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rig.seen[i].included_count, 1);
        assert_int_equal(rig.seen[i].included.tx.signature, TX_SIGNATURE_GOOD);
    }
    assert_int_equal(rig.verified, 2);
    assert_int_equal(rig.down, 0);
    rig_done(&rig);
}

/* What is on record is not verified again. */
static void not_asked_for(void **state)
{
    (void)state;
    struct node_rig rig;
    start(&rig);
    rig.verifies = false;
    add_remark(&rig, FORGED, 6);
    rig_up(&rig);
    node_follow(rig.node, 6);
    fake_set_finalized(&rig.fake[0], 6);
    rig_wait_seen(&rig, 1);
    assert_int_equal(rig.seen[0].included.tx.signature, TX_SIGNATURE_UNKNOWN);
    assert_int_equal(rig.verified, 0);
    rig_done(&rig);
}

static void wrong_signatures(void **state)
{
    (void)state;
    static const enum kind kinds[] = {FORGED, FORGED_MORTAL, OTHER_RUNTIME};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct node_rig rig;
        start(&rig);
        add_remark(&rig, kinds[i], 6);
        rig_up(&rig);
        node_follow(rig.node, 5);
        fake_set_finalized(&rig.fake[0], 6);
        rig_wait_down(&rig, 1);
        assert_non_null(strstr(rig.why.text, "its signature is wrong"));
        assert_int_equal(rig.view_count, 1); /* block 5 */
        fake_fork(&rig.fake[0], 6);          /* the truth */
        add_remark(&rig, MORTAL, 6);
        rig_wait_seen(&rig, 2);
        assert_int_equal(rig.seen[1].included.tx.signature, TX_SIGNATURE_GOOD);
        rig_done(&rig);
    }
}

/* The node has pruned the state and the versions that were signed: the check is skipped. */
static void pruned_state(void **state)
{
    (void)state;
    struct node_rig rig;
    start(&rig);
    add_remark(&rig, FORGED, 6);
    fake_add(&rig.fake[0], json_array(), NULL);
    rig.fake[0].pruned_below = 7;
    rig.fake[0].best = rig.fake[0].finalized = 7;
    rig_up(&rig);
    node_follow(rig.node, 6);
    rig_wait_seen(&rig, 1);
    assert_int_equal(rig.seen[0].included.tx.signature, TX_SIGNATURE_UNKNOWN);
    assert_int_equal(rig.down, 0);
    rig_done(&rig);
}

/* Hashes of blocks on which eras begin are kept by number: one does not stand for another one. */
static void births_apart(void **state)
{
    (void)state;
    struct node_rig rig;
    uint64_t later = 6 + NODE_BIRTHS;
    start(&rig);
    add_remark(&rig, MORTAL, 6);
    while (rig.fake[0].count < later)
        fake_add(&rig.fake[0], json_array(), NULL);
    add_remark(&rig, MORTAL, later);
    rig_up(&rig);
    node_follow(rig.node, 6);
    fake_set_finalized(&rig.fake[0], 6);
    rig_wait_seen(&rig, 1);
    node_follow(rig.node, later);
    fake_set_finalized(&rig.fake[0], later);
    rig_wait_seen(&rig, 2);
    assert_int_equal(rig.seen[1].included.tx.signature, TX_SIGNATURE_GOOD);
    assert_int_equal(rig.down, 0);
    rig_done(&rig);
}

static bool no_hash_of_5(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                         const json_t *params)
{
    (void)f;
    if (strcmp(method, "chain_getBlockHash") != 0 ||
        json_integer_value(json_array_get(params, 0)) != 5)
        return false;
    fake_answer(p, id, json_null());
    return true;
}

/* Nothing is verified against a hash that the node does not give. */
static void birth_unknown(void **state)
{
    (void)state;
    struct node_rig rig;
    start(&rig);
    add_remark(&rig, MORTAL, 6);
    rig_up(&rig);
    node_follow(rig.node, 6);
    rig.fake[0].hook = no_hash_of_5;
    fake_set_finalized(&rig.fake[0], 6);
    rig_wait_down(&rig, 1);
    assert_non_null(strstr(rig.why.text, "an era begins with a block"));
    assert_int_equal(rig.verified, 0);
    rig_done(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_signatures),  cmocka_unit_test(not_asked_for),
        cmocka_unit_test(wrong_signatures), cmocka_unit_test(pruned_state),
        cmocka_unit_test(births_apart),     cmocka_unit_test(birth_unknown),
    };
    fake_runtime_load(&polkadot, "polkadot", 1002005, 26, "v14-polkadot");
    alice = vectors_key("ed25519");
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    keypair_free(alice);
    fake_runtime_done(&polkadot);
    return rc;
}
