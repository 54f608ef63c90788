/* Calls and signed bytes. The core knows a transaction by its sender and id, and bytes by their
 * hash. What is kept goes when a finalized block shows that nothing can come of it. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "room_internal.h"

static bool room_for(const struct site_account *a, size_t len)
{
    return a->kept + len <= KEPT_BYTES_MAX;
}

static uint8_t *copy_of(struct site_account *a, const uint8_t *data, size_t len)
{
    uint8_t *copy = xmalloc(len + 1);
    memcpy(copy, data, len);
    a->kept += len;
    return copy;
}

const struct kept_call *site__call(const struct site_account *a, uint32_t sender, uint64_t id)
{
    struct kept_call *c;
    const struct kept_key key = {sender, id};
    HASH_FIND(hh, a->calls, &key, sizeof(key), c);
    return c;
}

bool site__cache_call(struct site_account *a, uint32_t sender, uint64_t id, const uint8_t *call,
                      size_t len, const struct site_terms *terms)
{
    struct kept_call *c;
    const struct kept_key key = {sender, id};
    HASH_FIND(hh, a->calls, &key, sizeof(key), c);
    if (c) {
        c->terms = *terms; /* its sender may have changed them */
        return true;
    }
    if (sender != a->self && !room_for(a, len))
        return false;
    c = xcalloc(1, sizeof(*c));
    *c = (struct kept_call){.key = key, .data = copy_of(a, call, len), .len = len, .terms = *terms};
    HASH_ADD(hh, a->calls, key, sizeof(c->key), c);
    return true;
}

const struct kept_bytes *site__bytes(const struct site_account *a, const struct site_hash *hash)
{
    struct kept_bytes *b;
    HASH_FIND(hh, a->bytes, hash, sizeof(*hash), b);
    return b;
}

void site__cache_bytes(struct site_account *a, const struct site_signed *s)
{
    if (!s->data || s->bytes.key >= a->members || site__bytes(a, &s->bytes.hash) ||
        !room_for(a, s->len))
        return;
    struct kept_bytes *b = xcalloc(1, sizeof(*b));
    *b = (struct kept_bytes){.bytes = s->bytes, .data = copy_of(a, s->data, s->len), .len = s->len};
    HASH_ADD(hh, a->bytes, bytes.hash, sizeof(b->bytes.hash), b);
}

struct site_signed site__signed_of(const struct site_account *a, const struct site_bytes *bytes)
{
    const struct kept_bytes *b = site__bytes(a, &bytes->hash);
    return (struct site_signed){.bytes = *bytes, .data = b ? b->data : NULL, .len = b ? b->len : 0};
}

static void drop_call(struct site_account *a, struct kept_call *c)
{
    HASH_DEL(a->calls, c);
    a->kept -= c->len;
    free(c->data);
    free(c);
}

static void drop_bytes(struct site_account *a, struct kept_bytes *b)
{
    HASH_DEL(a->bytes, b);
    a->kept -= b->len;
    free(b->data);
    free(b);
}

void site__sweep(struct site_account *a, uint64_t final, const uint64_t *next)
{
    struct kept_call *c, *next_call;
    struct kept_bytes *b, *next_bytes;
    HASH_ITER(hh, a->calls, c, next_call)
    {
        if (!site_core_knows(a->core, (uint32_t)c->key.sender, c->key.id))
            drop_call(a, c);
    }
    HASH_ITER(hh, a->bytes, b, next_bytes)
    {
        if (b->bytes.death <= final || b->bytes.nonce < next[b->bytes.key])
            drop_bytes(a, b);
    }
}

void site__cache_clear(struct site_account *a)
{
    struct kept_call *c, *next_call;
    struct kept_bytes *b, *next_bytes;
    HASH_ITER(hh, a->calls, c, next_call)
    {
        drop_call(a, c);
    }
    HASH_ITER(hh, a->bytes, b, next_bytes)
    {
        drop_bytes(a, b);
    }
}
