/* Which relay of a site speaks for an account: the one whose message was taken last, or that
 * another relay of the site has named. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "link_internal.h"

static struct route_key key_of(size_t peer, const uint8_t account[SELECTOR_ACCOUNT_BYTES])
{
    struct route_key key;
    memset(&key, 0, sizeof(key)); /* the padding is hashed too */
    key.peer = peer;
    memcpy(key.account, account, sizeof(key.account));
    return key;
}

static struct route *find(const struct site_links *s, const struct route_key *key)
{
    struct route *r;
    HASH_FIND(hh, s->routes, key, sizeof(*key), r);
    return r;
}

const char *site__route(const struct site_links *s, size_t peer,
                        const uint8_t account[SELECTOR_ACCOUNT_BYTES])
{
    const struct route_key key = key_of(peer, account);
    const struct route *r = find(s, &key);
    return r ? r->address : NULL;
}

void site__route_set(struct site_links *s, size_t peer,
                     const uint8_t account[SELECTOR_ACCOUNT_BYTES], const char *address)
{
    const struct route_key key = key_of(peer, account);
    struct route *r = find(s, &key);
    if (r && !strcmp(r->address, address))
        return;
    if (!r) {
        r = xcalloc(1, sizeof(*r));
        r->key = key;
        HASH_ADD(hh, s->routes, key, sizeof(r->key), r);
    }
    char *copy = xstrdup(address); /* it may be the old one's */
    free(r->address);
    r->address = copy;
}

static void drop(struct site_links *s, struct route *r)
{
    HASH_DEL(s->routes, r);
    free(r->address);
    free(r);
}

void site__routes_forget(struct site_links *s, size_t peer, const char *address)
{
    struct route *r, *next;
    HASH_ITER(hh, s->routes, r, next)
    {
        if (r->key.peer == peer && !strcmp(r->address, address))
            drop(s, r);
    }
}

void site__routes_free(struct site_links *s)
{
    struct route *r, *next;
    HASH_ITER(hh, s->routes, r, next)
    {
        drop(s, r);
    }
}
