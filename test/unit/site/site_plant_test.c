/* The simulation of the sites can fail: it catches each planted fault of the core, among them the
 * variants of the protocol that are refuted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/check.h"
#include "base/plant.h"
#include "site_model.h"

enum plant plant;

enum { SEEDS = 1000 }; /* each fault is caught by one of them */

static void each_planted_fault_is_caught(void **state)
{
    (void)state;
    static const struct {
        enum plant plant;
        const char *name, *text;
    } plants[] = {
#define X(NAME, name, text) {PLANT_##NAME, name, text},
        SITE_PLANT_TABLE(X)
#undef X
    };
    for (size_t i = 0; i < ARRAY_LEN(plants); i++) {
        struct site_model_report r = {0};
        uint64_t seed = 0;
        plant = plants[i].plant;
        while (!r.violation && seed < SEEDS)
            site_model_run(++seed, false, &r);
        if (!r.violation)
            fail_msg("%s was not caught: %s", plants[i].name, plants[i].text);
        printf("%-20s seed %llu: %s\n", plants[i].name, (unsigned long long)seed, r.violation);
    }
    plant = PLANT_NONE;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_planted_fault_is_caught)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
