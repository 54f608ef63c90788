/* Whatever sites, links, nodes and databases do: a transaction has at most one effect, its record
 * is what the chain says, nothing waits for ever, one site coordinates once the faults are over,
 * and an idle account sends nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "site_model.h"

static void many_seeds_hold(void **state)
{
    (void)state;
    const char *one = getenv("SITE_SEED"), *many = getenv("SITE_SEEDS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1;
    uint64_t last = one ? first : many ? strtoull(many, NULL, 10) : 1250;
    struct site_model_report all = {0};
    for (uint64_t seed = first; seed <= last; seed++) {
        struct site_model_report r;
        site_model_run(seed, one != NULL, &r);
        if (r.violation)
            fail_msg("SITE_SEED=%llu, at %llu ms: %s", (unsigned long long)seed,
                     (unsigned long long)r.at_ms, r.violation);
        all.events += r.events;
        all.messages += r.messages;
        all.items += r.items;
        all.rows += r.rows;
        all.crashes += r.crashes;
        all.losses += r.losses;
        all.reorganisations += r.reorganisations;
        all.demoted += r.demoted;
        all.adopted += r.adopted;
        all.fillers += r.fillers;
        all.cancelled += r.cancelled;
        all.delegated += r.delegated;
        all.healed_ms = r.healed_ms > all.healed_ms ? r.healed_ms : all.healed_ms;
        all.moved.machine |= r.moved.machine;
        all.moved.tx |= r.moved.tx;
        all.moved.work |= r.moved.work;
    }
    printf("%llu events, %llu messages with %llu items, %llu transactions, %llu delegations, "
           "%llu cancelled, %llu crashes, %llu lost databases, %llu reorganisations, %llu "
           "demotions, %llu adopted, %llu fillers, all ended %llu ms after the faults\n",
           (unsigned long long)all.events, (unsigned long long)all.messages,
           (unsigned long long)all.items, (unsigned long long)all.rows,
           (unsigned long long)all.delegated, (unsigned long long)all.cancelled,
           (unsigned long long)all.crashes, (unsigned long long)all.losses,
           (unsigned long long)all.reorganisations, (unsigned long long)all.demoted,
           (unsigned long long)all.adopted, (unsigned long long)all.fillers,
           (unsigned long long)all.healed_ms);
    if (one)
        return;
    /* The seeds reach every move: what they do not reach, they do not check. */
    struct buf missing = {0};
    site_core_missing(&all.moved, &missing);
    assert_string_equal(buf_str(&missing), "");
    buf_done(&missing);
    assert_true(all.crashes && all.losses && all.reorganisations && all.demoted && all.adopted &&
                all.fillers && all.cancelled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_seeds_hold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
