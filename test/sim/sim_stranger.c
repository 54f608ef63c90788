/* A login that may connect to the database and nothing else. NOTIFY needs no right: it makes up
 * statuses of transactions that are pending, of one that nobody enqueued, and ends. A reader must
 * not be told any of it, and must not miss anything because of it. Its generator is its own. */
#include <string.h>

#include "sim.h"

enum { MARK = 0x77 }; /* what is made up names a block of these bytes */

bool is_forged(const struct listen_event *ev)
{
    return ev->has_block && ev->block_hash[0] == MARK && ev->block_hash[31] == MARK;
}

static void notify(struct world *w, enum mem_channel channel, int64_t id, int64_t nonce,
                   const uint8_t *hash, const char *outcome)
{
    uint8_t account[32], block[32];
    memset(block, MARK, sizeof(block));
    account_id(w->calls[id].account, account);
    int64_t ahead_us = rng_below(&w->stranger, 2) ? 3600 * (int64_t)SECOND : 0;
    db_forge(w, &(struct mem_notice){.channel = channel,
                                     .account_id = {account, 32},
                                     .nonce = nonce,
                                     .id = id,
                                     .hash = hash,
                                     .block_hash = block,
                                     .state = "in_block",
                                     .updated_us = db_now_us(w) + ahead_us,
                                     .outcome = outcome});
}

static void forge(struct world *w, struct event *e)
{
    static const char *const outcomes[] = {NULL, "ok", "failed"};
    int64_t id = 1 + (int64_t)rng_below(&w->stranger, (uint64_t)w->next_id);
    const struct mem_row *row = mem_row_of(w->db.mem, id);
    bool pending = row && row->table == MEM_PENDING;
    uint8_t hash[32] = {MARK};
    (void)e;
    if (w->healing)
        return;
    if (w->db.up && w->next_id < IDS - 1) {
        enum mem_channel channel = rng_below(&w->stranger, 3) == 0 ? MEM_TX_REMOVED
                                   : pending                       ? MEM_TX_UPDATE
                                                                   : MEM_TX_NEW;
        notify(w, channel, id, pending ? row->nonce : 7,
               pending && row->at->count ? row->at->attempts[row->at->count - 1].hash : hash,
               channel == MEM_TX_REMOVED ? outcomes[rng_below(&w->stranger, 3)] : NULL);
    }
    later(w, rng_between(&w->stranger, SECOND, 20 * SECOND), "a stranger notifies", forge);
}

void stranger_start(struct world *w)
{
    w->stranger.state = w->seed ^ UINT64_C(0x5eed0f5727a4a6e5);
    if (w->plan.followers)
        later(w, 3 * SECOND, "a stranger notifies", forge);
}
