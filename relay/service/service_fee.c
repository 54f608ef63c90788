/* Fees of calls that nobody has enqueued yet. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "service/service_internal.h"

struct service_fee {
    struct node_ask ask;
    void (*cb)(void *arg, bool known, u128 fee); /* NULL: forgotten */
    void *arg;
};

/* Around the call: length, version, MultiAddress, a signature of 64 bytes with its kind, a mortal
 * era, nonce, tip, and the mode of the metadata hash. */
enum { EXTRINSIC_AROUND = 4 + 1 + 33 + 65 + 2 + 4 + 1 + 1 };

static void answered(struct node_ask *a)
{
    struct service_fee *f = CONTAINER_OF(a, struct service_fee, ask);
    void (*cb)(void *arg, bool known, u128 fee) = f->cb;
    void *arg = f->arg;
    bool known = a->found;
    u128 fee = a->fee;
    free(f);
    if (cb)
        cb(arg, known, fee);
}

struct service_fee *service_fee_ask(struct service *s, const uint8_t *call, size_t len,
                                    void (*cb)(void *arg, bool known, u128 fee), void *arg)
{
    struct service_fee *f = xcalloc(1, sizeof(*f));
    node_ask_fee(s->node, &f->ask, call, len, len + EXTRINSIC_AROUND, answered);
    f->cb = cb;
    f->arg = arg;
    return f;
}

void service_fee_forget(struct service_fee *f)
{
    f->cb = NULL;
}
