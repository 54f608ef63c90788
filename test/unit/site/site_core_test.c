/* The core of the sites, by single steps. The tests are named after the rows of the requirements
 * (P..). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "design_page.h"
#include "site/core/site.h"

static void the_design_page_shows_the_tables(void **state)
{
    (void)state;
    design_page_shows(site_state_dump);
    design_page_shows(site_tx_dump);
    design_page_shows(site_work_dump);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_design_page_shows_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
