/* Whatever publishers, relays and connections do: each number is taken once and in order, what is
 * acknowledged is stored, memory is bounded, and nobody waits for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "feed/core/feed.h"
#include "feed_model.h"

static void thousands_of_seeds_hold(void **state)
{
    (void)state;
    const char *one = getenv("FEED_SEED"), *many = getenv("FEED_SEEDS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1;
    uint64_t last = one ? first : many ? strtoull(many, NULL, 10) : 3000;
    struct feed_model_report all = {0};
    for (uint64_t seed = first; seed <= last; seed++) {
        struct feed_model_report r;
        feed_model_run(seed, one != NULL, &r);
        if (r.violation)
            fail_msg("FEED_SEED=%llu, at %llu ms: %s", (unsigned long long)seed,
                     (unsigned long long)r.at_ms, r.violation);
        all.events += r.events;
        all.batches += r.batches;
        all.crashes += r.crashes;
        all.resends += r.resends;
        all.refused += r.refused;
        all.moved |= r.moved;
    }
    printf("%llu events, %llu batches, %llu crashes, %llu resends, %llu refused\n",
           (unsigned long long)all.events, (unsigned long long)all.batches,
           (unsigned long long)all.crashes, (unsigned long long)all.resends,
           (unsigned long long)all.refused);
    if (one)
        return;
    /* The seeds reach every move: what they do not reach, they do not check. */
    struct buf missing = {0};
    feed_core_missing(all.moved, &missing);
    assert_string_equal(buf_str(&missing), "");
    buf_done(&missing);
    assert_true(all.crashes && all.resends && all.refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(thousands_of_seeds_hold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
