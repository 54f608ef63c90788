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

static struct {
    struct node_info info;
    bool connected;
    unsigned count;
    struct extrinsic_params params;
} signature;

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
    struct service s = {.final_read = read};
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

int main(void)
{
    signature.connected = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(era_begins_at_the_final_block),
        cmocka_unit_test(nothing_is_signed_at_an_invented_height),
        cmocka_unit_test(nothing_is_signed_beyond_the_deadline),
        cmocka_unit_test(nothing_is_signed_without_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
