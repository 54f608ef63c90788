/* Who watches which transaction, and the statuses that each watcher receives. Also keeps, per
 * block, the watched transactions that wait for its finality. */
#ifndef DEVCHAIN_LISTENER_H
#define DEVCHAIN_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "map.h"

enum pool_status {
    STATUS_FUTURE,
    STATUS_READY,
    STATUS_BROADCAST,
    STATUS_IN_BLOCK,
    STATUS_RETRACTED,
    STATUS_FINALITY_TIMEOUT,
    STATUS_FINALIZED,
    STATUS_USURPED,
    STATUS_DROPPED,
    STATUS_INVALID,
};
bool pool_status_final(enum pool_status s);
const char *pool_status_name(enum pool_status s); /* "inBlock" */

/* One watcher of one transaction, embedded by its owner. */
struct watch {
    struct list node; /* of the entry */
    uint8_t hash[32];
};

/* hash: the block, or the usurper; NULL for the unit statuses. After a final status the watch is
 * off the list and belongs to its owner alone. */
typedef void (*listener_cb)(void *arg, struct watch *w, enum pool_status status,
                            const uint8_t *hash);

struct finality_entry; /* a block that waits */

struct listener {
    struct map entries; /* tx hash -> entry with its watches */
    struct map blocks;  /* block hash -> finality_entry */
    struct list block_order;
    size_t max_blocks;
    listener_cb cb;
    void *arg;
};

void listener_init(struct listener *l, size_t max_finality_blocks, listener_cb cb, void *arg);
void listener_done(struct listener *l); /* every watch must be gone or is forgotten */
void listener_watch(struct listener *l, struct watch *w, const uint8_t hash[32]);
void listener_unwatch(struct listener *l, struct watch *w); /* not watching: allowed */
bool listener_watched(const struct listener *l, const uint8_t hash[32]);

void listener_tell(struct listener *l, const uint8_t tx[32], enum pool_status status,
                   const uint8_t *hash);
void listener_in_block(struct listener *l, const uint8_t tx[32], const uint8_t block[32]);
void listener_retracted(struct listener *l, const uint8_t block[32]);
void listener_finalized(struct listener *l, const uint8_t block[32]);

#endif
