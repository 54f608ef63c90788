#include "wire/wire.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"

enum {
    CHUNK = 16384,
    ALIGN = 16,
    BOUND = 256 << 10, /* for short items, whose structs outweigh them */
    BOUND_FACTOR = 8,
};

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size;
    _Alignas(ALIGN) uint8_t data[];
};

static void *take(void *data, size_t n)
{
    struct arena *a = data;
    size_t need = (n + ALIGN - 1) / ALIGN * ALIGN;
    if (need < n || need > a->left)
        return NULL;
    a->left -= need;
    struct arena_chunk *c = a->chunks;
    if (!c || c->size - c->used < need) {
        size_t size = need > CHUNK ? need : CHUNK;
        c = xmalloc(sizeof(*c) + size);
        *c = (struct arena_chunk){.next = a->chunks, .size = size};
        a->chunks = c;
    }
    void *p = c->data + c->used;
    c->used += need;
    return p;
}

static void keep(void *data, void *p)
{
    (void)data;
    (void)p; /* freed with the arena */
}

void arena_init(struct arena *a, size_t message_len)
{
    *a = (struct arena){.left = BOUND + BOUND_FACTOR * message_len};
    a->allocator = (ProtobufCAllocator){.alloc = take, .free = keep, .allocator_data = a};
}

void arena_done(struct arena *a)
{
    for (struct arena_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    a->chunks = NULL;
}

void wire_put(struct buf *out, const void *message)
{
    size_t n = protobuf_c_message_get_packed_size(message);
    protobuf_c_message_pack(message, buf_grow(out, n));
    out->len += n;
}
