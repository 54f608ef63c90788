/* docs/design.md shows the tables of moves that the code enforces; the diagrams on the page are
 * what they print. A test that includes this defines DESIGN_MD, the path of the page. */
#ifndef TEST_DESIGN_PAGE_H
#define TEST_DESIGN_PAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

static inline void design_page_shows(void (*dump)(struct buf *out))
{
    struct buf table = {0}, page = {0};
    char chunk[4096];
    FILE *f = fopen(DESIGN_MD, "r");
    assert_non_null(f);
    for (size_t n; (n = fread(chunk, 1, sizeof(chunk), f)) > 0;)
        buf_put(&page, chunk, n);
    fclose(f);
    buf_puts(&table, "```mermaid\n");
    dump(&table);
    buf_puts(&table, "```\n");
    if (!strstr(buf_str(&page), buf_str(&table)))
        fail_msg("docs/design.md does not show this table of moves:\n%s", buf_str(&table));
    buf_done(&table);
    buf_done(&page);
}

#endif
