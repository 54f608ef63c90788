/* Whose an extrinsic is, with ten thousand accounts and as many extrinsics that are none of theirs:
 * no question walks over all accounts. What the accounts know is played here (--wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "service/service_internal.h"

enum { ACCOUNTS = 10000, EXTRINSICS = 20000 };

static size_t compared;
static size_t unknown; /* an account that has nothing on record; ACCOUNTS: none */

bool __wrap_manager_knows(const struct manager *m, const uint8_t hash[32]);
void __wrap_manager_each_hash(const struct manager *m,
                              void (*cb)(void *arg, const uint8_t hash[32]), void *arg);

static void hash_of(size_t n, uint8_t out[32])
{
    uint64_t x = (n + 1) * 0x9e3779b97f4a7c15u;
    memset(out, 0, 32);
    memcpy(out, &x, sizeof(x));
}

/* A manager is its account's index + 1. Each account has the hash of its index on record. */
static size_t index_of(const struct manager *m)
{
    return (uintptr_t)m - 1;
}

bool __wrap_manager_knows(const struct manager *m, const uint8_t hash[32])
{
    uint8_t own[32];
    compared++;
    hash_of(index_of(m), own);
    return index_of(m) != unknown && !memcmp(own, hash, 32);
}

void __wrap_manager_each_hash(const struct manager *m,
                              void (*cb)(void *arg, const uint8_t hash[32]), void *arg)
{
    uint8_t own[32];
    hash_of(index_of(m), own);
    if (index_of(m) != unknown)
        cb(arg, own);
}

struct world {
    struct service s;
    struct node_included *x;
    struct node_block block;
};

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    w->s.account_count = ACCOUNTS;
    w->s.accounts = xcalloc(ACCOUNTS, sizeof(*w->s.accounts));
    for (size_t i = 0; i < ACCOUNTS; i++) {
        struct account *a = &w->s.accounts[i];
        *a = (struct account){.service = &w->s,
                              .index = (int)i,
                              .role = ACCOUNT_LEADER,
                              .id_len = 32,
                              .manager = (struct manager *)(uintptr_t)(i + 1)};
        hash_of(1000000 + i, a->id);
        HASH_ADD_KEYPTR(hh, w->s.by_id, a->id, a->id_len, a);
    }
    w->x = xcalloc(EXTRINSICS, sizeof(*w->x));
    for (size_t i = 0; i < EXTRINSICS; i++)
        hash_of(ACCOUNTS + i, w->x[i].tx.hash);
    w->block = (struct node_block){.included = w->x, .included_count = EXTRINSICS};
    compared = 0;
    unknown = ACCOUNTS;
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    HASH_CLEAR(hh, w->s.by_id);
    owners_done(&w->s.owners);
    free(w->s.accounts);
    free(w->x);
    free(w);
    return 0;
}

static struct account *owner(struct world *w, size_t hash)
{
    struct node_included x = {0};
    hash_of(hash, x.tx.hash);
    return owners_of(&w->s, &x);
}

static void foreign_extrinsics_cost_no_walk(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < EXTRINSICS; i++)
        assert_null(owners_of(&w->s, &w->x[i]));
    assert_true(compared <= 5 * ACCOUNTS);
    assert_ptr_equal(owner(w, 4711), &w->s.accounts[4711]);
}

/* What was not on record, or led, when the index was made. */
static void records_of_later(void **state)
{
    struct world *w = *state;
    unknown = 9000;
    w->s.accounts[9001].role = ACCOUNT_FOLLOWER;
    for (size_t i = 0; i < 100; i++)
        assert_null(owner(w, ACCOUNTS + i));
    assert_null(owner(w, 9000));
    assert_null(owner(w, 9001));
    unknown = ACCOUNTS;
    w->s.accounts[9001].role = ACCOUNT_LEADER;
    w->s.account_events++;
    for (size_t round = 0; round < 20; round++) { /* before the index is made anew, and after */
        assert_ptr_equal(owner(w, 9000), &w->s.accounts[9000]);
        assert_ptr_equal(owner(w, 9001), &w->s.accounts[9001]);
    }
    w->s.accounts[9001].role = ACCOUNT_FOLLOWER;
    assert_null(owner(w, 9001));
}

static void hashes_come_before_signers(void **state)
{
    struct world *w = *state;
    struct node_included x = {.signer_len = 32};
    memcpy(x.signer, w->s.accounts[5].id, 32);
    hash_of(7, x.tx.hash);
    assert_ptr_equal(owners_of(&w->s, &x), &w->s.accounts[7]);
    hash_of(ACCOUNTS, x.tx.hash);
    assert_ptr_equal(owners_of(&w->s, &x), &w->s.accounts[5]);
}

/* Each account asks for its own of a block. */
static void blocks_are_listed_once(void **state)
{
    struct world *w = *state;
    hash_of(3, w->x[10].tx.hash);
    hash_of(3, w->x[EXTRINSICS - 1].tx.hash);
    hash_of(4, w->x[11].tx.hash);
    size_t found = 0;
    for (size_t i = 0; i < ACCOUNTS; i++)
        for (const struct node_included *x = owners_first(&w->s, &w->s.accounts[i], &w->block); x;
             x = owners_next(&w->s, &w->block, x))
            found++;
    assert_int_equal(found, 3);
    assert_true(compared <= 5 * ACCOUNTS);
    const struct node_included *x = owners_first(&w->s, &w->s.accounts[3], &w->block);
    assert_ptr_equal(x, &w->x[10]);
    assert_ptr_equal(owners_next(&w->s, &w->block, x), &w->x[EXTRINSICS - 1]);

    owners_hold(&w->s, &w->block);
    size_t before = compared;
    for (size_t i = 0; i < ACCOUNTS; i++) {
        w->s.account_events++; /* each one reads its own */
        owners_first(&w->s, &w->s.accounts[i], &w->block);
    }
    assert_int_equal(compared, before);
    owners_hold(&w->s, NULL);
    w->x[10].tx.hash[31] = 1;
    assert_ptr_equal(owners_first(&w->s, &w->s.accounts[3], &w->block), &w->x[EXTRINSICS - 1]);
}

static void blocks_are_not_mixed_up(void **state)
{
    struct world *w = *state;
    struct node_included other = {0};
    struct node_block b = {.included = &other, .included_count = 1};
    hash_of(8, other.tx.hash);
    assert_null(owners_first(&w->s, &w->s.accounts[8], &w->block));
    assert_ptr_equal(owners_first(&w->s, &w->s.accounts[8], &b), &other);
    assert_null(owners_first(&w->s, &w->s.accounts[8], &(struct node_block){0}));
    b.head.hash[0] = 1; /* the next block, in the same memory */
    hash_of(9, other.tx.hash);
    assert_ptr_equal(owners_first(&w->s, &w->s.accounts[9], &b), &other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(foreign_extrinsics_cost_no_walk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(records_of_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hashes_come_before_signers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(blocks_are_listed_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(blocks_are_not_mixed_up, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
