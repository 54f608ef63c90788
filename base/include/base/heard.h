/* The highest block that any node is said to have. A height is a claim: it counts while nodes or
 * relays repeat it and is dropped after that, soon where it is far above the last block that was
 * read. A node that invents one would otherwise make its relay, and those that receive it, wait for
 * that block until they restart. One that is near may belong to a fork that finality left, on a
 * chain that makes no other block: then nobody repeats it either. */
#ifndef BASE_HEARD_H
#define BASE_HEARD_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HEARD_JUMP = 64,        /* blocks above the one that was read, up to which a height is near */
    HEARD_KEEP_MS = 60000,  /* after this long without a repetition a claim is dropped */
    HEARD_TOLD_MS = 10000,  /* one that another relay told, which repeats it with each heartbeat */
    HEARD_NEAR_MS = 300000, /* longer where it is near: nodes that lag have time to get there */
};

struct heard {
    uint64_t base; /* the last block that was read; a height that a node proved */
    struct heard_height {
        uint64_t number, until_ms;
    } near, far;
};

/* A height that may exist, as far as one who has read `base` can tell. */
bool heard_is_near(uint64_t base, uint64_t number);
/* This block was read. The base may go down: another node may have fewer blocks. */
void heard_base(struct heard *h, uint64_t number);
void heard_add(struct heard *h, uint64_t number, uint64_t now_ms);
/* A node still says so, as it does without a new block. One far above is not repeated by that. */
void heard_repeat(struct heard *h, uint64_t number, uint64_t now_ms);
/* Another relay says that it has heard of this height. */
void heard_told(struct heard *h, uint64_t number, uint64_t now_ms);
/* 0: none. */
uint64_t heard_best(struct heard *h, uint64_t now_ms);

#endif
