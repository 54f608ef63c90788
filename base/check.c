#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *kind, const char *cond, const char *file, int line)
{
    fprintf(stderr, "<2>bug %s failed: %s at %s:%d\n", kind, cond, file, line);
    abort();
}
