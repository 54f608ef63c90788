/* What a row is signed with, and when nothing may be signed. The node and the signature are played
 * here (--wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "account/account.h"
#include "chain/keys/extrinsic_sign.h"
#include "service/service_internal.h"

const struct node_info *__wrap_node_info(const struct node *n);
int __wrap_extrinsic_sign(const struct metadata *md, const struct extrinsic_params *params,
                          const struct keypair *key, const uint8_t *call, size_t call_len,
                          struct buf *ret_bytes, uint8_t ret_hash[32], struct err *err);

int __wrap_extrinsic_supported(const struct metadata *md, struct err *err);
int __wrap_extrinsic_metadata_hash(const struct metadata *md, struct err *err);
int __wrap_extrinsic_check_signer(const struct metadata *md, const struct extrinsic_signer *signer,
                                  struct err *err);
int __wrap_extrinsic_decode(const struct metadata *md, const uint8_t *bytes, size_t len,
                            struct extrinsic_view *ret_view, struct err *err);
int __wrap_extrinsic_verify(const struct metadata *md, const struct extrinsic_view *view,
                            const struct extrinsic_params *params, bool *ret_good, struct err *err);

static struct {
    bool hash_known; /* of the metadata */
    bool hash_signed, good;
    struct node_info info;
    bool connected;
    bool wishes_hash;
    unsigned count;
    uint64_t read_before; /* by the leaders before */
    struct extrinsic_params params;
} signature;

uint64_t __wrap_manager_block_read(const struct manager *m);

uint64_t __wrap_manager_block_read(const struct manager *m)
{
    (void)m;
    return signature.read_before;
}

int __wrap_extrinsic_supported(const struct metadata *md, struct err *err)
{
    (void)md, (void)err;
    return 0;
}

int __wrap_extrinsic_metadata_hash(const struct metadata *md, struct err *err)
{
    (void)md;
    return signature.hash_known ? 0 : err_set(err, ERR_EXTENSION, "it is not known");
}

int __wrap_extrinsic_check_signer(const struct metadata *md, const struct extrinsic_signer *signer,
                                  struct err *err)
{
    (void)md, (void)signer, (void)err;
    return 0;
}

int __wrap_extrinsic_decode(const struct metadata *md, const uint8_t *bytes, size_t len,
                            struct extrinsic_view *ret_view, struct err *err)
{
    (void)md, (void)bytes, (void)len, (void)err;
    *ret_view = (struct extrinsic_view){.metadata_hash = signature.hash_signed};
    return 0;
}

int __wrap_extrinsic_verify(const struct metadata *md, const struct extrinsic_view *view,
                            const struct extrinsic_params *params, bool *ret_good, struct err *err)
{
    (void)md, (void)view, (void)params, (void)err;
    *ret_good = signature.good;
    return 0;
}

const struct node_info *__wrap_node_info(const struct node *n)
{
    (void)n;
    return signature.connected ? &signature.info : NULL;
}

int __wrap_extrinsic_sign(const struct metadata *md, const struct extrinsic_params *params,
                          const struct keypair *key, const uint8_t *call, size_t call_len,
                          struct buf *ret_bytes, uint8_t ret_hash[32], struct err *err)
{
    (void)md, (void)key, (void)err;
    signature.count++;
    signature.params = *params;
    buf_put(ret_bytes, call, call_len);
    memset(ret_hash, 1, 32);
    return 0;
}

/* The relay has read block `read`, and the node says that `final` is final. */
static int sign(uint64_t read, uint64_t final, uint64_t deadline_block, struct tx_attempt *ret)
{
    struct service s = {.final_read = read, .config = {.metadata_hash = signature.wishes_hash}};
    struct account a = {.service = &s};
    struct manager_sign_row row = {.era_period = 64, .deadline_block = deadline_block};
    struct err err = {0};
    signature.info.finalized_number = final;
    signature.count = 0;
    int rc = sign_row(&a, &row, (const uint8_t *)"call", 4, ret, &err);
    assert_int_equal(rc, err.code);
    assert_int_equal(signature.count, rc == 0);
    free((void *)ret->bytes);
    return rc;
}

static void era_begins_at_the_final_block(void **state)
{
    (void)state;
    struct tx_attempt t;
    assert_int_equal(sign(100, 100, 0, &t), 0);
    assert_int_equal(signature.params.era.period, 64);
    assert_int_equal(t.era_birth, 100);
    assert_int_equal(t.era_death, 164);
}

/* The bytes' era would begin at a height that the chain reaches in years. */
static void nothing_is_signed_at_an_invented_height(void **state)
{
    (void)state;
    struct tx_attempt t;
    assert_int_equal(sign(100, 164, 0, &t), 0);
    assert_int_equal(sign(100, 165, 0, &t), ERR_NET);
    assert_int_equal(sign(0, 1000000, 0, &t), ERR_NET);
}

/* A relay that has just begun to lead, on a chain without another block: its rows tell which block
 * was read. */
static void a_new_leader_signs_where_the_one_before_has_read(void **state)
{
    (void)state;
    struct tx_attempt t;
    signature.read_before = 1000;
    assert_int_equal(sign(0, 1064, 0, &t), 0);
    assert_int_equal(t.era_birth, 1064);
    assert_int_equal(sign(0, 1065, 0, &t), ERR_NET);
    assert_int_equal(sign(1001, 1065, 0, &t), 0);
    signature.read_before = 0;
}

/* Without an era the bytes would outlive the deadline. */
static void nothing_is_signed_beyond_the_deadline(void **state)
{
    (void)state;
    struct tx_attempt t;
    assert_int_equal(sign(100, 100, 140, &t), 0);
    assert_int_equal(signature.params.era.period, 32);
    assert_int_equal(t.era_death, 132);
    assert_int_equal(sign(100, 100, 103, &t), 0);
    assert_int_equal(signature.params.era.period, 4);
    assert_int_equal(sign(100, 100, 102, &t), ERR_NET);
    assert_int_equal(sign(100, 100, 50, &t), ERR_NET);
}

static void nothing_is_signed_without_a_node(void **state)
{
    (void)state;
    struct tx_attempt t = {0};
    signature.connected = false;
    assert_int_equal(sign(100, 100, 0, &t), ERR_NET);
    signature.connected = true;
}

/* Mode 1 where the configuration wishes it, and only on a chain whose hash is known. */
static void the_metadata_hash_is_signed_where_wished(void **state)
{
    (void)state;
    struct tx_attempt t;
    for (unsigned wish = 0; wish < 2; wish++) {
        signature.wishes_hash = wish;
        assert_int_equal(sign(100, 100, 0, &t), 0);
        assert_int_equal(signature.params.metadata_hash, wish);
        for (unsigned known = 0; known < 2; known++) {
            struct service s = {.config = {.metadata_hash = wish}};
            struct account with_key = {.service = &s, .key = (struct keypair *)(uintptr_t)&s};
            struct err err = {0};
            signature.hash_known = known;
            int rc = sign_supported(&with_key, NULL, &err);
            assert_int_equal(rc, wish && !known ? ERR_EXTENSION : 0);
        }
    }
    signature.wishes_hash = false;
}

/* The relay may be wrong about the chain's token: then a signature over a metadata hash seems
 * wrong, and the endpoint that shows it is not to blame. */
static void a_metadata_hash_proves_nothing(void **state)
{
    (void)state;
    struct tx_included x = {.bytes = (const uint8_t *)"x", .bytes_len = 1};
    struct extrinsic_params facts = {0};
    const struct metadata *md = (const struct metadata *)(uintptr_t)&x;
    for (unsigned hash = 0; hash < 2; hash++) {
        signature.hash_signed = hash;
        signature.good = true;
        assert_int_equal(account_verify(&x, md, &facts), TX_SIGNATURE_GOOD);
        signature.good = false;
        assert_int_equal(account_verify(&x, md, &facts),
                         hash ? TX_SIGNATURE_UNKNOWN : TX_SIGNATURE_BAD);
    }
}

int main(void)
{
    signature.connected = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(era_begins_at_the_final_block),
        cmocka_unit_test(nothing_is_signed_at_an_invented_height),
        cmocka_unit_test(a_new_leader_signs_where_the_one_before_has_read),
        cmocka_unit_test(nothing_is_signed_beyond_the_deadline),
        cmocka_unit_test(nothing_is_signed_without_a_node),
        cmocka_unit_test(the_metadata_hash_is_signed_where_wished),
        cmocka_unit_test(a_metadata_hash_proves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
