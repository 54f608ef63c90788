/* docs/design.md shows the tables of moves that the code enforces; the diagrams on the page are
 * what they print. A test that includes this defines DESIGN_MD, the path of the page. */
#ifndef TEST_DESIGN_PAGE_H
#define TEST_DESIGN_PAGE_H

#include "page.h"

static inline void design_page_shows(void (*dump)(struct buf *out))
{
    struct buf table = {0};
    buf_puts(&table, "```mermaid\n");
    dump(&table);
    buf_puts(&table, "```\n");
    page_shows(DESIGN_MD, buf_str(&table));
    buf_done(&table);
}

#endif
