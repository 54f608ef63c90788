/* Many rows: a load is linear, memory stays small, and no event costs a walk over all of them. */
#include <malloc.h>
#include <time.h>

#include "base/alloc.h"
#include "manager_harness.h"

enum { ROWS = 200000, CHUNK = 5000, BYTES = 200 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void step(struct manager *m, struct manager_event ev)
{
    const struct manager_effect *fx;
    size_t count;
    manager_step(m, 1, &ev, &fx, &count);
}

static void random_hash(uint64_t nonce, uint8_t out[32])
{
    uint64_t x = nonce * 0x9e3779b97f4a7c15u + 1;
    for (unsigned i = 0; i < 4; i++, x = x * 6364136223846793005u + 1442695040888963407u)
        memcpy(out + 8 * i, &x, 8);
}

static void load_all(struct manager *m)
{
    static uint8_t bytes[BYTES];
    struct tx_pending *rows = xcalloc(CHUNK, sizeof(*rows));
    for (uint64_t first = 0; first < ROWS; first += CHUNK) {
        for (uint64_t i = 0; i < CHUNK; i++) {
            rows[i] = (struct tx_pending){.nonce = first + i,
                                          .id = (int64_t)(first + i + 1),
                                          .bytes = bytes,
                                          .bytes_len = BYTES,
                                          .call_len = 60,
                                          .era_death = (int64_t)(200 + (first + i) / 1000),
                                          .spec_version = SPEC,
                                          .submitted_block = 90};
            rows[i].state = "signed";
            random_hash(first + i, rows[i].hash);
        }
        step(m, (struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                       .snapshot = {.rows = rows,
                                                    .count = CHUNK,
                                                    .last = first + CHUNK >= ROWS,
                                                    .next_nonce = ROWS}});
    }
    free(rows);
}

static void many_rows(void **state)
{
    (void)state;
    struct manager *m = manager_new(&(struct manager_config){0});
    double start = seconds();
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    step(m, (struct manager_event){.type = MANAGER_EV_PROMOTED, .epoch = 1});
    load_all(m);
    size_t each = (mallinfo2().uordblks + mallinfo2().hblkhd - before) / ROWS;
    step(m, (struct manager_event){.type = MANAGER_EV_CHAIN_UP,
                                   .chain = {.finalized = 100, .best = 102, .spec_version = SPEC}});
    for (uint64_t number = 91; number <= 100;
         number++) /* the account is new: no block says that it is not */
        step(m, (struct manager_event){.type = MANAGER_EV_FINALIZED,
                                       .block = &(struct manager_block){.number = number}});
    step(m, (struct manager_event){.type = MANAGER_EV_POOL});
    step(m, (struct manager_event){.type = MANAGER_EV_NONCE, .used = {.nonce = 0}});
    step(m, (struct manager_event){.type = MANAGER_EV_UNFINAL});
    assert_int_equal(manager_phase(m), MANAGER_LEADING);
    double loaded = seconds() - start;
    print_message("%d rows: %.2f s to the first send, %zu bytes each\n", ROWS, loaded, each);
    assert_int_equal(manager_view_of(m).open, ROWS);
    assert_int_equal(manager_view_of(m).unsent, ROWS - 8);
    assert_true(loaded < 60); /* 2 s alone; a square law would take an hour */
#ifndef __SANITIZE_ADDRESS__
    assert_true(each < 512);
#endif
    manager_check(m);

    /* Each of these answers changes one row of 200,000. */
    start = seconds();
    for (uint64_t n = 0; n < 50000; n++) {
        uint8_t hash[32];
        random_hash(n, hash);
        step(m, (struct manager_event){.type = MANAGER_EV_SUBMIT_REPLY,
                                       .reply = {.nonce = n, .hash = hash}});
        step(m,
             (struct manager_event){
                 .type = MANAGER_EV_STATUS,
                 .status = {.nonce = n, .hash = hash, .status = TX_IN_BLOCK, .block_hash = hash}});
    }
    double sent = seconds() - start;
    print_message("100000 events: %.2f s\n", sent);
    assert_int_equal(manager_view_of(m).in_block, 50000);
    assert_true(sent < 5);
    manager_check(m);
    manager_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
