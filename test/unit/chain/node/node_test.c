/* The node door's handshake, its endpoints, its runtimes and its one-off questions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/hash.h"
#include "support_node.h"
#include "support_vectors.h"

static struct fake_runtime contracts, substrate;

static void add_blocks(struct fake *f, unsigned count)
{
    while (count--)
        fake_add(f, NULL, NULL);
}

static void handshake(void **state)
{
    (void)state;
    struct node_rig rig;
    uint8_t genesis[32], best[32], finalized[32];
    rig_start(&rig, 1, &contracts);
    struct fake *f = &rig.fake[0];
    add_blocks(f, 9);
    f->best = 9;
    f->finalized = 7;
    rig_connect(&rig);
    assert_null(node_info(rig.node));
    rig_wait_ready(&rig, 1);
    const struct node_info *info = node_info(rig.node);
    fake_hash(f, 0, genesis);
    fake_hash(f, 9, best);
    fake_hash(f, 7, finalized);
    assert_memory_equal(info->genesis, genesis, 32);
    assert_int_equal(info->spec_version, 100);
    assert_int_equal(info->transaction_version, 1);
    assert_string_equal(info->spec_name, "contracts");
    assert_int_equal(info->ss58_prefix, 42);
    assert_int_equal(info->block_hash_count, 2400);
    assert_int_equal(metadata_version(info->metadata), 14);
    assert_int_equal(info->best_number, 9);
    assert_memory_equal(info->best_hash, best, 32);
    assert_int_equal(info->finalized_number, 7);
    assert_memory_equal(info->finalized_hash, finalized, 32);
    assert_int_equal(rig.down, 0);
    rig_done(&rig);
}

/* A chain whose SS58Prefix no address can have: it gets the generic one, and nothing aborts. */
static void ss58_prefix_out_of_range(void **state)
{
    (void)state;
    struct node_rig rig;
    struct fake_runtime odd;
    fake_runtime_load(&odd, "odd", 100, 1, "v14-substrate-contracts-node");
    char *name = strstr(odd.hex, "53533538507265666978"); /* "SS58Prefix" */
    assert_non_null(name);
    char *value = strstr(name, "082a00"); /* two bytes: 42 */
    assert_non_null(value);
    assert_in_range((uintptr_t)(value - name), 20, 30); /* the type id is between them */
    memcpy(value, "08ffff", 6);
    rig_start(&rig, 1, &odd);
    rig_connect(&rig);
    rig_wait_ready(&rig, 1);
    assert_int_equal(node_info(rig.node)->ss58_prefix, 42);
    rig_done(&rig);
    fake_runtime_done(&odd);
}

static bool saw_best(void *arg)
{
    return ((struct node_rig *)arg)->best > 0;
}

static bool saw_two_bests(void *arg)
{
    return ((struct node_rig *)arg)->best > 1;
}

static void best_heads(void **state)
{
    (void)state;
    struct node_rig rig;
    uint8_t hash[32];
    rig_start(&rig, 1, &contracts);
    struct fake *f = &rig.fake[0];
    add_blocks(f, 5);
    f->best = 1;
    rig_up(&rig);
    fake_set_best(f, 5);
    assert_true(rig_wait(&rig, saw_best));
    fake_hash(f, 5, hash);
    assert_int_equal(rig.best_head.number, 5);
    assert_memory_equal(rig.best_head.hash, hash, 32);
    fake_hash(f, 4, hash);
    assert_memory_equal(rig.best_head.parent, hash, 32);
    fake_fork(f, 4); /* a reorganisation: the height falls */
    add_blocks(f, 1);
    fake_set_best(f, 4);
    assert_true(rig_wait(&rig, saw_two_bests));
    fake_hash(f, 4, hash);
    assert_memory_equal(node_info(rig.node)->best_hash, hash, 32);
    rig_done(&rig);
}

/* ---- metadata of V15 ---- */

static void load_v15(struct fake_runtime *r, const char *metadata)
{
    struct buf bytes = {0}, text = {0};
    fake_runtime_load(r, "polkadot", 2000000, 26, "v14-polkadot");
    vectors_metadata_bytes(metadata, &bytes);
    hex_put_0x(&text, bytes.data, bytes.len);
    r->has_api = true;
    r->v15_hex = xstrdup(buf_str(&text));
    buf_done(&bytes);
    buf_done(&text);
}

static void v15_where_the_runtime_has_it(void **state)
{
    (void)state;
    struct node_rig rig;
    struct fake_runtime r;
    load_v15(&r, "v15-polkadot");
    rig_start(&rig, 1, &r);
    rig_up(&rig);
    assert_int_equal(metadata_version(rig.info.metadata), 15);
    assert_int_equal(rig.fake[0].asked_metadata, 0);
    rig_done(&rig);
    fake_runtime_done(&r);
}

static bool tell_properties(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                            const json_t *params)
{
    (void)params;
    if (strcmp(method, "system_properties") != 0)
        return false;
    fake_answer(p, id, json_loads(f->hook_arg, 0, NULL));
    return true;
}

/* The metadata hash needs the chain's token. An endpoint that does not say which is used all the
 * same, and what the configuration says goes first. */
static void the_token_of_the_chain(void **state)
{
    (void)state;
    static const struct {
        const char *properties, *configured;
        int code;
    } cases[] = {{"{\"tokenDecimals\":10,\"tokenSymbol\":\"DOT\"}", NULL, 0},
                 {"{\"tokenDecimals\":[10,6],\"tokenSymbol\":[\"DOT\",\"USD\"]}", NULL, 0},
                 {"{\"tokenDecimals\":256,\"tokenSymbol\":\"DOT\"}", NULL, ERR_EXTENSION},
                 {"{\"tokenDecimals\":10,\"tokenSymbol\":\"\"}", NULL, ERR_EXTENSION},
                 {"{}", NULL, ERR_EXTENSION},
                 {NULL, NULL, ERR_EXTENSION}, /* the method is closed */
                 {"{\"tokenDecimals\":12,\"tokenSymbol\":\"OTHER\"}", "DOT", 0}};
    static const struct metadata_token dot = {"DOT", 10};
    struct fake_runtime r;
    load_v15(&r, "v15-polkadot");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct node_rig rig;
        struct err err = {0};
        struct extrinsic_params params = {.metadata_hash = true};
        struct buf payload = {0};
        uint8_t digest[32];
        rig_start(&rig, 1, &r);
        rig.config.token = cases[i].configured ? dot : (struct metadata_token){0};
        rig.fake[0].hook = cases[i].properties ? tell_properties : NULL;
        rig.fake[0].hook_arg = (void *)(uintptr_t)cases[i].properties;
        rig_up(&rig);
        const struct metadata *md = node_info(rig.node)->metadata;
        assert_int_equal(extrinsic_metadata_hash(md, &err), cases[i].code);
        if (!cases[i].code) {
            assert_int_equal(metadata_digest(md, &dot, digest, &err), 0);
            assert_int_equal(
                extrinsic_payload(md, &params, (const uint8_t *)"\0\0\0", 3, &payload, &err), 0);
            assert_memory_equal(payload.data + payload.len - 32, digest, 32);
        }
        buf_done(&payload);
        rig_done(&rig);
    }
    fake_runtime_done(&r);
}

static void v14_where_v15_is_not_to_be_had(void **state)
{
    (void)state;
    struct node_rig rig;
    struct fake_runtime r;
    load_v15(&r, "v15-polkadot");
    free(r.v15_hex);
    r.v15_hex = NULL; /* None */
    rig_start(&rig, 1, &r);
    rig_up(&rig);
    assert_int_equal(metadata_version(rig.info.metadata), 14);
    rig_done(&rig);
    r.v15_hex = xstrdup("0x0110deadbeef"); /* nonsense */
    rig_start(&rig, 1, &r);
    rig_up(&rig);
    assert_int_equal(metadata_version(rig.info.metadata), 14);
    rig_done(&rig);
    fake_runtime_done(&r);
}

static void unusable_metadata(void **state)
{
    (void)state;
    struct node_rig rig;
    struct fake_runtime r;
    fake_runtime_load(&r, "broken", 1, 1, "v14-polkadot");
    r.hex[200] = 0;
    rig_start(&rig, 1, &r);
    rig_connect(&rig);
    rig_wait_down(&rig, 1);
    assert_int_equal(rig.why.code, ERR_METADATA);
    assert_non_null(strstr(rig.why.text, rig.urls[0]));
    assert_int_equal(rig.ready, 0);
    rig_done(&rig);
    fake_runtime_done(&r);
}

/* The first answer holds another runtime's metadata, under this one's version. */
static bool other_metadata_once(struct fake *f, struct ws_peer *p, const char *method,
                                const json_t *id, const json_t *params)
{
    unsigned *left = f->hook_arg;
    (void)params;
    if (strcmp(method, "state_getMetadata") != 0 || !*left)
        return false;
    --*left;
    fake_answer(p, id, json_string(substrate.hex));
    return true;
}

static unsigned runtimes;

static bool saw_more_runtimes(void *arg)
{
    return ((struct node_rig *)arg)->runtime > runtimes;
}

static void wait_for_reading(struct node_rig *rig)
{
    runtimes = rig->runtime;
    assert_false(node_metadata_confirmed(rig->node));
    assert_true(rig_wait(rig, saw_more_runtimes));
}

/* One reading of the metadata proves nothing. Another one that differs takes its place, for every
 * later connection as well; two that agree confirm it until the connection is lost. */
static void metadata_read_again(void **state)
{
    (void)state;
    struct node_rig rig;
    unsigned wrong = 1;
    rig_start(&rig, 1, &contracts);
    rig.fake[0].hook = other_metadata_once;
    rig.fake[0].hook_arg = &wrong;
    rig_up(&rig);
    const struct metadata *first = node_info(rig.node)->metadata;
    wait_for_reading(&rig);
    const struct metadata *second = node_info(rig.node)->metadata;
    assert_ptr_not_equal(second, first);
    wait_for_reading(&rig);
    assert_ptr_equal(node_info(rig.node)->metadata, second);
    assert_true(node_metadata_confirmed(rig.node));
    ws_peer_cut(rig.fake[0].peer);
    rig_wait_ready(&rig, 2);
    assert_ptr_equal(node_info(rig.node)->metadata, second);
    wait_for_reading(&rig);
    assert_true(node_metadata_confirmed(rig.node));
    rig_done(&rig);
}

/* ---- runtimes that change ---- */

static bool saw_runtime(void *arg)
{
    return ((struct node_rig *)arg)->runtime > 0;
}

static void upgrade(struct fake *f)
{
    f->runtime = &substrate;
    add_blocks(f, 1);
    f->best = f->count - 1;
}

static void upgrade_by_notification(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 1, &contracts);
    struct fake *f = &rig.fake[0];
    rig_up(&rig);
    const struct metadata *before = rig.info.metadata;
    upgrade(f);
    fake_notify(f->peer, "state_runtimeVersion", f->version_sub,
                json_pack("{s:s, s:i, s:i}", "specName", "node", "specVersion", 268,
                          "transactionVersion", 2));
    assert_true(rig_wait(&rig, saw_runtime));
    assert_int_equal(node_info(rig.node)->spec_version, 268);
    assert_int_equal(node_info(rig.node)->transaction_version, 2);
    assert_ptr_not_equal(node_info(rig.node)->metadata, before);
    assert_int_equal(rig.ready, 1);
    rig_done(&rig);
}

static void upgrade_found_by_asking(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 1, &contracts);
    struct fake *f = &rig.fake[0];
    rig_connect(&rig);
    node_recheck_runtime(rig.node); /* not ready: nothing */
    rig_wait_ready(&rig, 1);
    node_recheck_runtime(rig.node);
    node_recheck_runtime(rig.node);
    upgrade(f);
    assert_true(rig_wait(&rig, saw_runtime));
    assert_int_equal(rig.info.spec_version, 268);
    rig_done(&rig);
    assert_int_equal(rig.runtime, 1);
}

static void upgrade_while_away(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 1, &contracts);
    struct fake *f = &rig.fake[0];
    rig_up(&rig);
    upgrade(f);
    ws_peer_cut(f->peer);
    rig_wait_ready(&rig, 2);
    assert_int_equal(rig.runtime, 1);
    assert_int_equal(node_info(rig.node)->spec_version, 268);
    assert_int_equal(f->asked_metadata, 2);
    ws_peer_cut(f->peer);
    rig_wait_ready(&rig, 3);
    assert_int_equal(f->asked_metadata, 2); /* an unchanged version: the metadata is kept */
    assert_int_equal(rig.runtime, 1);
    rig_done(&rig);
}

/* ---- endpoints ---- */

static void another_chain(void **state)
{
    (void)state;
    struct node_rig rig;
    uint8_t wanted[32];
    memset(wanted, 0xab, sizeof(wanted));
    rig_start(&rig, 1, &contracts);
    rig.config.genesis = wanted;
    rig_connect(&rig);
    rig_wait_down(&rig, 1);
    assert_int_equal(rig.why.code, ERR_GENESIS);
    assert_non_null(
        strstr(rig.why.text, "0xabababababababababababababababababababababababababababababababab"));
    assert_non_null(strstr(rig.why.text, rig.fake[0].blocks[0].hash));
    assert_non_null(strstr(rig.why.text, rig.urls[0]));
    assert_int_equal(rig.ready, 0);
    rig_done(&rig);
    assert_int_equal(rig.down, 1); /* the same reason is told once */
}

static void the_second_endpoint_is_the_right_one(void **state)
{
    (void)state;
    struct node_rig rig;
    uint8_t wanted[32];
    rig_start(&rig, 2, &contracts);
    fake_fork(&rig.fake[1], 0);
    fake_add(&rig.fake[1], NULL, NULL);
    rig.fake[1].blocks[0].hash[65] = rig.fake[1].blocks[0].hash[65] == '0' ? '1' : '0';
    fake_hash(&rig.fake[1], 0, wanted);
    fake_add(&rig.fake[1], NULL, NULL);
    rig.fake[1].best = 1; /* its header has the block's hash */
    rig.config.genesis = wanted;
    rig_up(&rig);
    assert_int_equal(rig.why.code, ERR_PROTOCOL); /* one of several: it is left */
    assert_non_null(strstr(rig.why.text, "another chain"));
    assert_non_null(rig.fake[1].peer);
    rig_done(&rig);
}

/* The good endpoint dies, and the other one is of another chain: the owner learns that it has to
 * wait, not that its configuration is wrong. */
static void one_of_another_chain(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 2, &contracts);
    rig.fake[1].blocks[0].hash[65] = rig.fake[1].blocks[0].hash[65] == '0' ? '1' : '0';
    rig_up(&rig);
    int port = ws_server_port(rig.fake[0].server);
    struct ws_peer *peer = rig.fake[0].peer;
    fake_stop(&rig.fake[0], rig.loop);
    assert_non_null(peer);
    rig_wait_down(&rig, 3);
    assert_int_equal(rig.why.code, ERR_PROTOCOL);
    assert_non_null(strstr(rig.why.text, "another chain"));
    fake_start(&rig.fake[0], rig.loop, &contracts, port);
    rig_wait_ready(&rig, 2);
    rig_done(&rig);
}

/* The owner refuses a chain: the next endpoint is of the right one, and nothing of the former one
 * counts, or all are of a wrong one. */
static void a_chain_that_is_refused(void **state)
{
    (void)state;
    for (unsigned same = 0; same < 2; same++) {
        struct node_rig rig;
        struct err why = {0};
        uint8_t genesis[32], other[32] = {1};
        rig_start(&rig, 2, &contracts);
        char *last = &rig.fake[1].blocks[0].hash[65];
        *last = *last == '0' ? '1' : '0';
        if (same)
            memcpy(rig.fake[1].blocks[0].hash, rig.fake[0].blocks[0].hash,
                   sizeof(rig.fake[0].blocks[0].hash));
        add_blocks(&rig.fake[0], 20);
        rig.fake[0].best = 20;
        add_blocks(&rig.fake[1], 1);
        rig.fake[1].best = 1;
        rig_up(&rig);
        memcpy(genesis, node_info(rig.node)->genesis, 32);
        err_set(&why, ERR_GENESIS, "not our chain");
        assert_true(node_refuse_chain(rig.node, other, &why));
        assert_non_null(node_info(rig.node)); /* that one was left long ago */
        assert_true(node_refuse_chain(rig.node, genesis, &why));
        assert_null(node_info(rig.node));
        if (same) {
            rig_wait_down(&rig, 2);
            assert_int_equal(rig.why.code, ERR_GENESIS);
        } else {
            rig_wait_ready(&rig, 2);
            assert_int_equal(rig.down, 1); /* it does not lag behind another chain */
            assert_memory_not_equal(node_info(rig.node)->genesis, genesis, 32);
            assert_int_equal(node_info(rig.node)->best_known, 1);
            /* The last one is refused like the others: one of them may be mended. */
            memcpy(other, node_info(rig.node)->genesis, 32);
            assert_true(node_refuse_chain(rig.node, other, &why));
            rig_wait_down(&rig, 4);
            assert_int_equal(rig.why.code, ERR_GENESIS);
            *last = *last == '0' ? '1' : '0';
            memcpy(rig.fake[1].blocks[0].hash, rig.fake[0].blocks[0].hash,
                   sizeof(rig.fake[0].blocks[0].hash));
            last = &rig.fake[1].blocks[0].hash[64];
            *last = *last == '0' ? '1' : '0';
            rig_wait_ready(&rig, 3);
        }
        rig_done(&rig);
    }
}

static void moves_when_an_endpoint_dies_and_stays_there(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 2, &contracts);
    rig_up(&rig);
    assert_non_null(rig.fake[0].peer);
    fake_stop(&rig.fake[0], rig.loop);
    rig_wait_ready(&rig, 2);
    assert_non_null(rig.fake[1].peer);
    ws_peer_cut(rig.fake[1].peer);
    rig_wait_ready(&rig, 3);
    assert_non_null(rig.fake[1].peer);
    assert_int_equal(ws_server_accepted(rig.fake[1].server), 2);
    rig_done(&rig);
}

/* A second chain's node among the endpoints, and no genesis configured: the first node's chain is
 * the one. */
static void the_first_chain_is_kept(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 2, &contracts);
    rig.fake[1].blocks[0].hash[65] = rig.fake[1].blocks[0].hash[65] == '0' ? '1' : '0';
    rig_up(&rig);
    fake_stop(&rig.fake[0], rig.loop);
    rig_wait_down(&rig, 3);
    assert_int_equal(rig.ready, 1);
    rig_done(&rig);
}

static void an_endpoint_that_lags_is_passed_over(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 2, &contracts);
    add_blocks(&rig.fake[0], 60);
    rig.fake[0].best = rig.fake[0].finalized = 60;
    rig_up(&rig);
    ws_peer_cut(rig.fake[0].peer);
    rig_wait_ready(&rig, 2);
    assert_int_equal(rig.info.best_number, 60);
    rig.fake[0].hook = NULL;
    fake_stop(&rig.fake[0],
              rig.loop); /* what is left lags: it is refused once, then it is what there is */
    rig_wait_ready(&rig, 3);
    assert_int_equal(rig.info.best_number, 0);
    rig_done(&rig);
}

/* The first endpoint is what a fresh node believes, until somebody who knows better says so. */
static void told_of_a_height(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 2, &contracts);
    add_blocks(&rig.fake[1], 60);
    rig.fake[1].best = rig.fake[1].finalized = 60;
    rig_up(&rig);
    assert_int_equal(rig.info.best_number, 0);
    node_expect_height(rig.node, 16); /* within the bound: it stays */
    node_expect_height(rig.node, 60);
    assert_int_equal(rig.down, 0); /* not from within the call */
    rig_wait_ready(&rig, 2);
    assert_int_equal(rig.info.best_number, 60);
    assert_int_equal(rig.info.best_known, 60);
    rig_done(&rig);
}

static unsigned heard;

static bool hears_more(void *arg)
{
    const struct node_rig *rig = arg;
    return rig->best > heard;
}

/* A head far above the last one is believed only if the node has a block there. */
static void heads_that_jump(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 1, &contracts);
    struct fake *f = &rig.fake[0];
    rig_up(&rig);
    add_blocks(f, 2);
    for (unsigned i = 0; i < 2; i++) {
        json_t *header = json_deep_copy(f->blocks[1].header);
        json_object_set_new(header, "number", json_string(i ? "0xffffffffffffffff" : "0x7fffffff"));
        fake_notify(f->peer, "chain_newHead", f->best_sub, json_incref(header));
        fake_notify(f->peer, "chain_finalizedHead", f->finalized_sub, header);
    }
    fake_set_best(f, 2);
    heard = 0;
    assert_true(rig_wait(&rig, hears_more));
    assert_int_equal(rig.best_head.number, 2);
    assert_int_equal(node_info(rig.node)->best_known, 2);
    assert_int_equal(node_info(rig.node)->finalized_number, 0);
    rig_done(&rig);
}

static bool has_other_blocks(struct fake *f, struct ws_peer *p, const char *method,
                             const json_t *id, const json_t *params)
{
    const json_t *first = json_array_get(params, 0);
    if (strcmp(method, "chain_getBlockHash") != 0 || json_integer_value(first) < 100)
        return false;
    fake_answer(p, id, json_string(f->blocks[1].hash));
    return true;
}

/* And only if it is the same block. */
static void heads_that_jump_elsewhere(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 1, &contracts);
    struct fake *f = &rig.fake[0];
    rig_up(&rig);
    add_blocks(f, 2);
    f->hook = has_other_blocks;
    json_t *header = json_deep_copy(f->blocks[1].header);
    json_object_set_new(header, "number", json_string("0x7fffffff"));
    fake_notify(f->peer, "chain_newHead", f->best_sub, json_incref(header));
    fake_notify(f->peer, "chain_finalizedHead", f->finalized_sub, header);
    fake_set_best(f, 2);
    heard = 0;
    assert_true(rig_wait(&rig, hears_more));
    assert_int_equal(rig.best_head.number, 2);
    assert_int_equal(node_info(rig.node)->finalized_number, 0);
    rig_done(&rig);
}

/* Where all of them lag, they are gone through once, and not again for each block that somebody
 * else has. */
static void all_lag(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 2, &contracts);
    rig_up(&rig);
    node_expect_height(rig.node, 60);
    rig_wait_ready(&rig, 2); /* the other one, which lags as well */
    unsigned down = rig.down;
    for (uint64_t height = 61; height < 64; height++) {
        node_expect_height(rig.node, height);
        heard = rig.best;
        fake_set_best(&rig.fake[1], fake_add(&rig.fake[1], NULL, NULL));
        assert_true(rig_wait(&rig, hears_more)); /* the task has run by then */
    }
    assert_int_equal(rig.down, down);
    assert_int_equal(rig.ready, 2);
    rig_done(&rig);
}

/* One that is a few blocks behind the last one is good enough, but says what that one had. */
static void behind_the_last(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 2, &contracts);
    add_blocks(&rig.fake[0], 9);
    rig.fake[0].best = 9;
    add_blocks(&rig.fake[1], 5);
    rig.fake[1].best = 5;
    rig_up(&rig);
    assert_int_equal(rig.info.best_number, 9);
    assert_int_equal(rig.info.best_known, 9);
    fake_stop(&rig.fake[0], rig.loop);
    rig_wait_ready(&rig, 2);
    assert_int_equal(rig.info.best_number, 5);
    assert_int_equal(rig.info.best_known, 9); /* and the relay waits for it */
    rig_done(&rig);
}

static bool no_version(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                       const json_t *params)
{
    (void)params;
    unsigned *left = f->hook_arg;
    if (*left == 0 || strcmp(method, "state_getRuntimeVersion") != 0)
        return false;
    (*left)--;
    fake_answer(p, id, json_string("nonsense"));
    return true;
}

static void a_handshake_that_fails_is_tried_again(void **state)
{
    (void)state;
    struct node_rig rig;
    unsigned left = 2;
    rig_start(&rig, 1, &contracts);
    rig.fake[0].hook = no_version;
    rig.fake[0].hook_arg = &left;
    rig_up(&rig);
    assert_int_equal(rig.down, 1);
    assert_int_equal(rig.why.code, ERR_PROTOCOL);
    rig_done(&rig);
}

static unsigned muted;

static bool mute(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                 const json_t *params)
{
    (void)p;
    (void)id;
    (void)params;
    if (strcmp(method, f->hook_arg) != 0)
        return false;
    muted++;
    return true;
}

static bool was_muted(void *arg)
{
    (void)arg;
    return muted > 0;
}

static void a_handshake_without_an_answer(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 2, &contracts);
    rig.fake[0].hook = mute;
    rig.fake[0].hook_arg = (void *)(uintptr_t) "state_subscribeRuntimeVersion";
    rig.config.call_timeout_ms = rig_patience(80);
    rig_up(&rig);
    assert_non_null(rig.fake[1].peer);
    rig_done(&rig);
}

static void closing_in_every_phase(void **state)
{
    (void)state;
    static const char *const methods[] = {"chain_getBlockHash", "chain_getHeader",
                                          "state_getRuntimeVersion", "state_getMetadata",
                                          "chain_subscribeNewHeads"};
    struct node_rig rig;
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        rig_start(&rig, 1, &contracts);
        muted = 0;
        rig.fake[0].hook = mute;
        rig.fake[0].hook_arg = (void *)(uintptr_t)methods[i];
        rig_connect(&rig);
        node_follow(rig.node, 0);
        assert_true(rig_wait(&rig, was_muted));
        rig_done(&rig);
    }
    rig_start(&rig, 1, &contracts); /* never opened */
    struct err err;
    rig.node = node_new(rig.loop, &rig.config, &err);
    rig_done(&rig);
    assert_int_equal(rig.ready, 0);
}

static void bad_url(void **state)
{
    (void)state;
    struct node_rig rig;
    struct err err = {0};
    const char *urls[] = {"ws://127.0.0.1:1", "http://127.0.0.1:1"};
    rig_start(&rig, 1, &contracts);
    rig.config.urls = urls;
    rig.config.url_count = 2;
    assert_null(node_new(rig.loop, &rig.config, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_non_null(strstr(err.text, "http://127.0.0.1:1"));
    rig_done(&rig);
}

/* ---- questions ---- */

struct question {
    struct node_ask ask;
    bool done;
};

static void answered(struct node_ask *a)
{
    struct question *q = CONTAINER_OF(a, struct question, ask);
    assert_false(q->done);
    q->done = true;
}

static bool is_true(void *arg)
{
    return *(bool *)arg;
}

static void wait_for(struct node_rig *rig, struct question *q)
{
    assert_true(run_until(rig->loop, is_true, &q->done, rig_limit()));
}

static bool pool(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                 const json_t *params)
{
    (void)f;
    (void)params;
    if (strcmp(method, "author_pendingExtrinsics") != 0)
        return false;
    fake_answer(p, id, json_pack("[s,s]", "0x0401", "0x0402"));
    return true;
}

static void questions(void **state)
{
    (void)state;
    struct node_rig rig;
    struct question early = {0}, nonce = {0}, hash = {0}, none = {0}, pending = {0};
    struct buf hashes = {0};
    uint8_t account[32] = {1}, want[32];
    rig_start(&rig, 1, &contracts);
    struct fake *f = &rig.fake[0];
    f->hook = pool;
    add_blocks(f, 3);
    f->best = 2;
    f->blocks[2].nonce = 77;
    rig_connect(&rig);
    node_ask_hash(rig.node, &early.ask, 1, answered);
    wait_for(&rig, &early);
    assert_int_equal(early.ask.err.code, ERR_NET);
    rig_wait_ready(&rig, 1);
    node_ask_nonce(rig.node, &nonce.ask, account, 32, answered);
    node_ask_hash(rig.node, &hash.ask, 3, answered);
    node_ask_hash(rig.node, &none.ask, 99, answered);
    node_ask_pending(rig.node, &pending.ask, &hashes, NULL, answered);
    wait_for(&rig, &nonce);
    assert_int_equal(nonce.ask.err.code, 0);
    assert_int_equal(nonce.ask.number, 77);
    wait_for(&rig, &hash);
    fake_hash(f, 3, want);
    assert_true(hash.ask.found);
    assert_memory_equal(hash.ask.hash, want, 32);
    wait_for(&rig, &none);
    assert_int_equal(none.ask.err.code, 0);
    assert_false(none.ask.found);
    wait_for(&rig, &pending);
    assert_int_equal(hashes.len, 64);
    hash_blake2b_256("\x04\x02", 2, want);
    assert_memory_equal(hashes.data + 32, want, 32);
    f->hook = NULL;
    pending.done = false;
    node_ask_pending(rig.node, &pending.ask, &hashes, NULL, answered);
    wait_for(&rig, &pending);
    assert_int_equal(pending.ask.err.code, ERR_RPC);
    assert_int_equal(pending.ask.call.rpc_code, -32601);
    assert_true(pending.ask.untold);
    assert_int_equal(hashes.len, 64);
    buf_done(&hashes);
    rig_done(&rig);
}

/* R6: an endpoint that answers "too many" in the middle of a handshake, also to a subscription: the
 * same connection goes on. */
static bool limited(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                    const json_t *params)
{
    unsigned *asked = f->hook_arg;
    (void)params;
    bool over = ++*asked == 3 || *asked == 4 || !strcmp(method, "chain_subscribeNewHeads");
    if (!over || *asked > 20)
        return false;
    if (!strcmp(method, "chain_subscribeNewHeads"))
        *asked = 20;
    fake_error(p, id, -32005, "Too many requests, retry in 20ms", NULL);
    return true;
}

static void a_handshake_over_the_limit(void **state)
{
    (void)state;
    struct node_rig rig;
    unsigned asked = 0;
    rig_start(&rig, 1, &contracts);
    rig.fake[0].hook = limited;
    rig.fake[0].hook_arg = &asked;
    rig_up(&rig);
    assert_int_equal(asked > 20, true);
    assert_int_equal(rig.down, 0);
    assert_int_equal(ws_server_accepted(rig.fake[0].server), 1);
    rig_done(&rig);
}

/* A gateway that gives a connection so few subscriptions that there is no room for ours, and that
 * writes numbers as decimal texts: heads are asked for. */
static bool crowded(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                    const json_t *params)
{
    unsigned *refused = f->hook_arg;
    (void)params;
    if (strstr(method, "_subscribe")) {
        ++*refused;
        fake_error(p, id, -32006, "Too many subscriptions on the connection", NULL);
        return true;
    }
    if (strcmp(method, "chain_getHeader") != 0)
        return false;
    char decimal[24];
    json_t *header =
        json_deep_copy(f->blocks[json_array_size(params) ? f->finalized : f->best].header);
    long long number = strtoll(json_string_value(json_object_get(header, "number")), NULL, 16);
    snprintf(decimal, sizeof(decimal), "%lld", number);
    json_object_set_new(header, "number", json_string(decimal));
    fake_answer(p, id, header);
    return true;
}

static bool best_is_two(void *arg)
{
    return ((struct node_rig *)arg)->best_head.number == 2;
}

static void no_room_for_subscriptions(void **state)
{
    (void)state;
    struct node_rig rig;
    unsigned refused = 0;
    rig_start(&rig, 1, &contracts);
    add_blocks(&rig.fake[0], 1);
    rig.fake[0].best = rig.fake[0].finalized = 1;
    rig.fake[0].hook = crowded;
    rig.fake[0].hook_arg = &refused;
    rig_up(&rig);
    assert_int_equal(refused, 3);
    assert_int_equal(rig.info.best_number, 1);
    add_blocks(&rig.fake[0], 1);
    rig.fake[0].best = 2;
    assert_true(rig_wait(&rig, best_is_two));
    assert_int_equal(rig.down, 0);
    assert_int_equal(ws_server_accepted(rig.fake[0].server), 1);
    rig_done(&rig);
}

static int load(void **state)
{
    (void)state;
    fake_runtime_load(&contracts, "contracts", 100, 1, "v14-substrate-contracts-node");
    fake_runtime_load(&substrate, "node", 268, 2, "v14-substrate");
    return 0;
}

static int unload(void **state)
{
    (void)state;
    fake_runtime_done(&contracts);
    fake_runtime_done(&substrate);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handshake),
        cmocka_unit_test(ss58_prefix_out_of_range),
        cmocka_unit_test(best_heads),
        cmocka_unit_test(v15_where_the_runtime_has_it),
        cmocka_unit_test(the_token_of_the_chain),
        cmocka_unit_test(v14_where_v15_is_not_to_be_had),
        cmocka_unit_test(unusable_metadata),
        cmocka_unit_test(metadata_read_again),
        cmocka_unit_test(upgrade_by_notification),
        cmocka_unit_test(upgrade_found_by_asking),
        cmocka_unit_test(upgrade_while_away),
        cmocka_unit_test(another_chain),
        cmocka_unit_test(the_second_endpoint_is_the_right_one),
        cmocka_unit_test(one_of_another_chain),
        cmocka_unit_test(a_chain_that_is_refused),
        cmocka_unit_test(moves_when_an_endpoint_dies_and_stays_there),
        cmocka_unit_test(the_first_chain_is_kept),
        cmocka_unit_test(an_endpoint_that_lags_is_passed_over),
        cmocka_unit_test(told_of_a_height),
        cmocka_unit_test(heads_that_jump),
        cmocka_unit_test(heads_that_jump_elsewhere),
        cmocka_unit_test(all_lag),
        cmocka_unit_test(behind_the_last),
        cmocka_unit_test(a_handshake_that_fails_is_tried_again),
        cmocka_unit_test(a_handshake_without_an_answer),
        cmocka_unit_test(closing_in_every_phase),
        cmocka_unit_test(bad_url),
        cmocka_unit_test(questions),
        cmocka_unit_test(a_handshake_over_the_limit),
        cmocka_unit_test(no_room_for_subscriptions),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
