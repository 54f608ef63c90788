#include "base/shared.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"

struct shared *shared_new(size_t len)
{
    struct shared *s = xmalloc(sizeof(*s) + len);
    s->owners = 1;
    s->len = len;
    return s;
}

struct shared *shared_take(struct shared *s)
{
    PRE(s->owners > 0);
    s->owners++;
    return s;
}

struct shared *shared_drop(struct shared *s)
{
    if (s && --s->owners == 0)
        free(s);
    return NULL;
}
