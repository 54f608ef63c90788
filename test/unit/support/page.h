/* A page shows what the code prints, to the letter. */
#ifndef TEST_PAGE_H
#define TEST_PAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

static inline void page_shows(const char *path, const char *text)
{
    struct buf page = {0};
    char chunk[4096];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (size_t n; (n = fread(chunk, 1, sizeof(chunk), f)) > 0;)
        buf_put(&page, chunk, n);
    fclose(f);
    if (!strstr(buf_str(&page), text))
        fail_msg("%s does not show this:\n%s", path, text);
    buf_done(&page);
}

#endif
