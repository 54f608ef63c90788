/* What the layers that speak protobuf share: the memory of one parsed message, with a bound, and
 * the way to write one. protobuf-c makes up to a hundred bytes of memory out of one byte of input;
 * with an arena the parse fails instead, and all of it is freed in one step. */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

struct arena_chunk;
struct buf;

struct arena {
    ProtobufCAllocator allocator;
    struct arena_chunk *chunks;
    size_t left; /* of the bound */
};

/* For a message of so many bytes. */
void arena_init(struct arena *a, size_t message_len);
void arena_done(struct arena *a);

/* Appends a message: any of the generated structs. */
void wire_put(struct buf *out, const void *message);

#endif
