/* Name resolution, on the thread pool. A numeric address needs none: it would wait behind the names
 * of others for as long as their resolver hangs, and a resolver takes few questions at a time. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "internal.h"

struct resolving {
    uv_getaddrinfo_t uv;
    struct loop *loop;
    struct loop_resolve *owner; /* NULL after cancel */
};

static void collect(struct loop_resolve *r, const struct addrinfo *ai)
{
    for (; ai && r->count < LOOP_ADDRS_MAX; ai = ai->ai_next) {
        char *out = r->addr[r->count];
        int rc = -1;
        if (ai->ai_family == AF_INET)
            rc = uv_ip4_name((const struct sockaddr_in *)(const void *)ai->ai_addr, out,
                             LOOP_ADDR_LEN);
        else if (ai->ai_family == AF_INET6)
            rc = uv_ip6_name((const struct sockaddr_in6 *)(const void *)ai->ai_addr, out,
                             LOOP_ADDR_LEN);
        if (rc == 0)
            r->count++;
    }
}

static void resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *res)
{
    struct resolving *x = CONTAINER_OF(req, struct resolving, uv);
    struct loop_resolve *r = x->owner;
    x->loop->works--;
    if (r) {
        r->uv = NULL;
        if (status == 0)
            collect(r, res);
        if (status != 0 || !r->count)
            err_set(&r->err, ERR_NET, "name does not resolve: %s",
                    status ? uv_strerror(status) : "no address");
    }
    uv_freeaddrinfo(res);
    free(x);
    if (r)
        r->cb(r);
}

static void answered(struct loop_task *task)
{
    struct loop_resolve *r = CONTAINER_OF(task, struct loop_resolve, task);
    r->cb(r);
}

static bool numeric(const char *host, char ret[LOOP_ADDR_LEN])
{
    uint8_t address[16];
    for (int i = 0; i < 2; i++) {
        int family = i ? AF_INET6 : AF_INET;
        if (inet_pton(family, host, address) == 1)
            return inet_ntop(family, address, ret, LOOP_ADDR_LEN) != NULL;
    }
    return false;
}

void loop_resolve_start(struct loop *l, struct loop_resolve *r, const char *host,
                        void (*cb)(struct loop_resolve *r))
{
    *r = (struct loop_resolve){.cb = cb};
    if (numeric(host, r->addr[0])) {
        r->count = 1;
        loop_post(l, &r->task, answered);
        return;
    }
    struct resolving *x = xcalloc(1, sizeof(*x));
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    r->uv = x;
    x->owner = r;
    x->loop = l;
    l->works++;
    /* It fails only for invalid arguments, e.g. an overlong name: answer by callback all the
     * same. */
    if (uv_getaddrinfo(&l->uv, &x->uv, resolved, host, NULL, &hints) != 0)
        INVARIANT(uv_getaddrinfo(&l->uv, &x->uv, resolved, "invalid.", NULL, &hints) == 0);
}

void loop_resolve_cancel(struct loop_resolve *r)
{
    struct resolving *x = r->uv;
    loop_task_cancel(&r->task);
    if (!x)
        return;
    x->owner = NULL;
    r->uv = NULL;
    uv_cancel((uv_req_t *)&x->uv);
}
