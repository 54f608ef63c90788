/* Runtimes: version and metadata of a block's state, a few of them cached, and the one in use. */
#ifndef CHAIN_NODE_NODE_RUNTIME_H
#define CHAIN_NODE_NODE_RUNTIME_H

#include "base/list.h"
#include "node_wire.h"

enum { SPEC_NAME = 64 };

struct runtime {
    struct list node;
    unsigned refs;
    uint32_t spec_version;
    uint32_t transaction_version;
    char spec_name[SPEC_NAME];
    struct metadata *metadata;
    uint8_t hash[32]; /* of its metadata */
    bool by_api;      /* it was read as V15, from the runtime */
    bool confirmed;   /* a second reading on this connection gave the same */
    bool agreed;      /* other endpoints gave the same */
    bool replaced;    /* a later reading gave another one; not found any more */
};

enum fetch_step {
    FETCH_IDLE,
    FETCH_BEST_WAIT,
    FETCH_VERSION_WAIT,
    FETCH_API_WAIT,
    FETCH_METADATA_WAIT,
    FETCH_TOKEN_WAIT
};

/* A query for the runtime in the state of one block, or of the best block. */
struct runtime_fetch {
    struct node *node;
    enum fetch_step step;
    struct rpc_call call;
    char at[HASH_TEXT];
    bool again;             /* read the metadata also if it is cached */
    struct runtime version; /* as far as known; TOKEN_WAIT: with its metadata */
    /* out */
    struct err err;
    bool pruned;             /* with err: the state is gone */
    struct runtime *runtime; /* a reference that the callback owns; NULL on an error */
    void (*cb)(struct runtime_fetch *f);
};

/* ---- node_runtime_fetch.c ---- */
void runtime_fetch_start(struct node *n, struct runtime_fetch *f,
                         const uint8_t *at, /* NULL: best */
                         void (*cb)(struct runtime_fetch *f));

/* ---- node_runtime_cache.c ---- */
struct runtime *runtime_find(struct node *n, const struct runtime *version); /* NULL: not cached */
/* Take a reference, and make it the last one used. A new one is added. */
void runtime_used(struct node *n, struct runtime *r);
void runtimes_trim(struct node *n); /* free those that are too many, unless they are referenced */
void runtime_unref(struct runtime *r);
void runtimes_done(struct node *n);

/* ---- node_runtime_version.c ---- */
bool runtime_version_read(const struct jv *value, struct runtime *ret_version);
/* The answer of state_call Core_version. */
bool runtime_version_decode(const struct jv *value, struct runtime *ret_version, bool *ret_api);
/* Does this version's list of APIs have the call for metadata V15? */
bool runtime_has_metadata_api(const struct jv *version);

/* ---- node_runtime.c ---- */
/* Make it the current runtime, take over the reference, and update node_info. */
void runtime_adopt(struct node *n, struct runtime *r);
void runtime_changed(struct node *n, const struct jv *version); /* a notification */

#endif
