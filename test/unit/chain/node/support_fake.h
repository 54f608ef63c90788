/* A fake Substrate chain behind the scripted WebSocket server: blocks are what the test says they
 * are, the answers have the shapes of a real node, and a hook may answer, spoil or swallow any
 * request. */
#ifndef TEST_SUPPORT_FAKE_H
#define TEST_SUPPORT_FAKE_H

#include <jansson.h>

#include "base/buf.h"
#include "chain/codec/metadata.h"
#include "ws_server.h"

enum { FAKE_BLOCKS = 128, FAKE_ACCOUNT_LEN = 80 };

struct fake_runtime {
    const char *spec_name;
    uint32_t spec_version, transaction_version;
    struct metadata *md;
    char *hex;    /* of the metadata, "0x.." */
    bool has_api; /* Metadata_metadata_at_version: answers v15_hex, or null when that is NULL */
    char *v15_hex;
};

struct fake_block {
    json_t *header;
    char hash[67];
    json_t *extrinsics;                 /* of hex texts */
    char *events;                       /* hex, or NULL: no entry */
    uint32_t nonce;                     /* of every account, in the state after it */
    uint64_t free;                      /* as well */
    uint32_t account_len;               /* of every AccountInfo; 0: no account exists */
    const struct fake_runtime *runtime; /* in the state after it */
};

struct fake {
    struct ws_server *server;
    struct ws_peer *peer; /* the last one */
    struct fake_block blocks[FAKE_BLOCKS];
    uint64_t count, best, finalized;
    const struct fake_runtime *runtime; /* of blocks that are added */
    bool other_hasher;                  /* the hash is not blake2b-256 of the header */
    const char *version;                /* system_version; NULL: it has no such method */
    bool twin;                          /* its blocks are like those of another twin */
    bool roots_v1;                      /* of blocks that are added */
    bool no_query_storage;
    bool no_storage_hash; /* state_getStorageHash, of the events */
    uint64_t pruned_below;
    char best_sub[24], finalized_sub[24], version_sub[24];
    unsigned subs; /* counts the ids */
    bool (*hook)(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                 const json_t *params);
    void *hook_arg;
    unsigned asked_events, asked_hashes, asked_metadata, asked_versions;
    bool gone;
};

void fake_runtime_load(struct fake_runtime *r, const char *spec_name, uint32_t spec,
                       uint32_t transaction, const char *metadata);
void fake_runtime_done(struct fake_runtime *r);

void fake_start(struct fake *f, struct loop *l, const struct fake_runtime *runtime,
                int port); /* with block 0 */
void fake_stop(struct fake *f, struct loop *l);
void fake_url(const struct fake *f, char out[64]);

/* The next block; extrinsics: taken over, NULL: none. Returns its height. */
uint64_t fake_add(struct fake *f, json_t *extrinsics, const struct buf *events);
void fake_copy(struct fake *to, const struct fake *from); /* the same blocks */
void fake_fork(struct fake *f, uint64_t height);          /* blocks from there on are taken back */
void fake_set_best(struct fake *f, uint64_t height);      /* and notify */
void fake_set_finalized(struct fake *f, uint64_t height); /* and notify */
void fake_notify(struct ws_peer *p, const char *method, const char *sub,
                 json_t *item);                                        /* takes item */
void fake_answer(struct ws_peer *p, const json_t *id, json_t *result); /* takes result */
void fake_error(struct ws_peer *p, const json_t *id, int code, const char *message,
                const char *data);
void fake_hash(const struct fake *f, uint64_t height, uint8_t out[32]);

/* One EventRecord of ExtrinsicSuccess, or of ExtrinsicFailed(BadOrigin). fake_events: the count
 * first. */
void fake_events_begin(struct buf *out, unsigned count);
void fake_event(struct buf *out, uint32_t extrinsic, bool good);

#endif
