/* What reached the door: every submission in order, results by code, and the distinct hashes seen
 * for each (signer, nonce), which must never be more than the re-signings that a test expects. */
#ifndef DEVCHAIN_STATS_H
#define DEVCHAIN_STATS_H

#include <jansson.h>

#include "map.h"
#include "tx.h"

struct submit_record {
    uint8_t hash[32];
    uint64_t at_ms;
    uint32_t slot; /* index of its (signer, nonce), UINT32_MAX: not signed */
    int code;      /* 0 accepted, else the error code */
};

struct nonce_slot {
    uint8_t signer[32];
    uint32_t nonce;
    uint32_t submits;
    uint32_t hash_count;
    uint8_t (*hashes)[32]; /* distinct ones, in order of arrival */
};

struct stats {
    struct submit_record *submits;
    size_t submit_count, submit_cap;
    size_t pool_asked; /* author_pendingExtrinsics */
    struct nonce_slot *slots;
    size_t slot_count, slot_cap;
    struct map slot_index; /* (signer, nonce) -> slot number + 1 as a pointer */
    struct {
        int code;
        uint64_t count;
    } results[32];
    size_t result_count;
    uint64_t connections, cut, faults;
};

void stats_init(struct stats *s);
void stats_done(struct stats *s);
void stats_submit(struct stats *s, uint64_t now_ms, const struct tx *tx,
                  int code); /* tx NULL: undecodable */
/* from: first submission to list; limit 0: none. */
json_t *stats_json(const struct stats *s, size_t from, size_t limit);

#endif
