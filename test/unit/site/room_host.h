/* Hosts of the room's tests: a chain in memory, and for each site a database in memory that
 * outlives the relay in front of it. */
#ifndef TEST_ROOM_HOST_H
#define TEST_ROOM_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "site/room.h"

enum { HOSTS = 3, ROWS_MAX = 200, EXTRINSICS_MAX = 4000, BLOCKS_MAX = 20000, EXTRINSIC_BYTES = 80 };

struct extrinsic {
    struct site_signed s; /* data points into `data` */
    uint8_t data[EXTRINSIC_BYTES];
    uint64_t included; /* in this block; 0: not */
};

struct chain {
    struct extrinsic *all[EXTRINSICS_MAX]; /* that were submitted */
    size_t count;
    uint64_t height, final, next[HOSTS];
    uint64_t next_at[BLOCKS_MAX][HOSTS]; /* after each block */
};

struct row {
    uint64_t id;
    uint8_t call[16];
    struct extrinsic grants[16];
    size_t grant_count;
    bool ended, cancelled; /* cancelled: how it ended */
};

struct database {
    struct row rows[ROWS_MAX];
    size_t count, open;
    struct extrinsic dispatches[ROWS_MAX * HOSTS];
    uint32_t dispatch_senders[ROWS_MAX * HOSTS];
    uint64_t dispatch_ids[ROWS_MAX * HOSTS];
    size_t dispatch_count;
    uint64_t final, ends_twice;
};

struct job;

/* The relay of a site. */
struct host {
    struct world *w;
    uint32_t self;
    struct database db;
    struct site_room *room;
    struct site_account *account;
    struct job *jobs, **last; /* that are not answered, in their order */
    bool loaded;
    uint64_t fed; /* the last block that it was given */
    size_t submitted;
    char address[100]; /* where it takes links */
    unsigned notes[SITE_LINKS_BAD + 1];
};

struct world {
    struct loop *loop;
    struct loop_timer *patience, *block, *work;
    struct chain chain;
    struct host hosts[HOSTS];
    uint32_t members;
    bool own_keys;
    uint32_t range_blocks;
};

extern const struct site_host_ops host_ops;

void chain_block(struct world *w);            /* a new block, of which every site hears */
void host_work(struct host *h);               /* answers what is due */
void host_forget(struct host *h, bool apply); /* a crash: the jobs are gone; committed or not */
void host_enqueue(struct host *h, size_t count);
void host_call(uint32_t sender, uint64_t id, uint8_t call[16]);
/* What the site receives of block h->fed. */
size_t chain_used(const struct host *h, struct site_used used[ROWS_MAX]);
/* How often a transaction's call is in final blocks. */
size_t chain_effects(const struct world *w, uint32_t sender, uint64_t id);

#endif
