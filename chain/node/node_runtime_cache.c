/* A few runtimes, by last use. Those that are in use are kept. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "node_internal.h"

enum { CACHED = 4 };

struct runtime *runtime_find(struct node *n, const struct runtime *version)
{
    LIST_EACH (pos, &n->runtimes) {
        struct runtime *r = CONTAINER_OF(pos, struct runtime, node);
        if (!r->replaced && r->spec_version == version->spec_version &&
            r->transaction_version == version->transaction_version &&
            strcmp(r->spec_name, version->spec_name) == 0)
            return r;
    }
    return NULL;
}

static void runtime_free(struct runtime *r)
{
    PRE(r->refs == 0);
    list_remove(&r->node);
    metadata_free(r->metadata);
    free(r);
}

void runtime_used(struct node *n, struct runtime *r)
{
    PRE(r->metadata);
    list_remove(&r->node);
    list_append(&n->runtimes, &r->node);
    r->refs++;
}

void runtimes_trim(struct node *n)
{
    size_t count = 0;
    LIST_EACH (pos, &n->runtimes)
        count++;
    for (struct list *pos = n->runtimes.next, *next; pos != &n->runtimes && count > CACHED;
         pos = next) {
        struct runtime *r = CONTAINER_OF(pos, struct runtime, node);
        next = pos->next;
        if (r->refs == 0) {
            runtime_free(r);
            count--;
        }
    }
}

void runtime_unref(struct runtime *r)
{
    if (r) {
        INVARIANT(r->refs > 0);
        r->refs--;
    }
}

void runtimes_done(struct node *n)
{
    runtime_unref(n->runtime);
    for (struct list *pos = list_first(&n->runtimes); pos; pos = list_first(&n->runtimes)) {
        INVARIANT(CONTAINER_OF(pos, struct runtime, node)->refs == 0);
        runtime_free(CONTAINER_OF(pos, struct runtime, node));
    }
}
