/* Which blocks are pinned, which is the best one, which is final?
 *
 * The server pins each block that it announces, and gives a client up that keeps too many. Blocks
 * of dead forks are unpinned when a final block rules them out, and final ones when
 * WINDOW_FINAL_MAX newer ones are final. */
#include "rpc_window.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

static void block_done(struct window_block *b)
{
    free(b->runtime);
    b->runtime = NULL;
}

void window_done(struct window *w)
{
    for (size_t i = 0; i < w->count; i++)
        block_done(&w->blocks[i]);
    free(w->blocks);
    free(w->runtime);
    *w = (struct window){0};
}

/* From the end: questions are about the newest blocks. */
static struct window_block *find(const struct window *w, const uint8_t hash[32])
{
    for (size_t i = w->count; i > 0; i--)
        if (memcmp(w->blocks[i - 1].hash, hash, 32) == 0)
            return &w->blocks[i - 1];
    return NULL;
}

const struct window_block *window_find(const struct window *w, const uint8_t hash[32])
{
    return find(w, hash);
}

const struct window_block *window_at(const struct window *w, int64_t height)
{
    const struct window_block *b = find(w, w->best);
    while (b && b->height > height)
        b = find(w, b->parent);
    return b && b->height == height ? b : NULL;
}

const char *window_runtime(const struct window *w)
{
    const struct window_block *b = find(w, w->best);
    while (b && !b->runtime)
        b = find(w, b->parent);
    return b ? b->runtime : w->runtime;
}

/* {"type":"valid","spec":{..}}; chopsticks has the version without that around it. Anything else:
 * NULL. */
static char *version_of(const struct jv *runtime)
{
    const struct jv *spec = jv_get(runtime, "specVersion") ? runtime : jv_get(runtime, "spec");
    size_t len;
    if (!jv_is(spec, JV_OBJECT))
        return NULL;
    const char *text = jv_raw(spec, &len);
    char *copy = xmalloc(len + 1);
    memcpy(copy, text, len);
    copy[len] = 0;
    return copy;
}

static struct window_block *append(struct window *w, const uint8_t hash[32],
                                   const uint8_t parent[32], int64_t height)
{
    GROW(w->blocks, w->count, w->cap);
    struct window_block *b = &w->blocks[w->count++];
    *b = (struct window_block){.height = height};
    memcpy(b->hash, hash, 32);
    memcpy(b->parent, parent, 32);
    return b;
}

/* ---- events ---- */

/* Ascending; the last one is the last final block. It is also the best one until another is
 * announced. */
static bool initialized(struct window *w, const struct jv *event)
{
    const struct jv *hashes = jv_get(event, "finalizedBlockHashes");
    uint8_t parent[32] = {0}, hash[32];
    if (!jv_is(hashes, JV_ARRAY) || hashes->count == 0 || hashes->count > WINDOW_MAX)
        return false;
    window_done(w);
    int64_t height = 1 - (int64_t)hashes->count;
    for (const struct jv *i = jv_first(hashes); i; i = jv_next(hashes, i)) {
        if (!jv_hex_fixed(i, hash, 32) || find(w, hash))
            return false;
        append(w, hash, parent, height++)->final = true;
        memcpy(parent, hash, 32);
    }
    memcpy(w->best, hash, 32);
    memcpy(w->finalized, hash, 32);
    w->runtime = version_of(jv_get(event, "finalizedBlockRuntime"));
    return true;
}

static bool new_block(struct window *w, const struct jv *event)
{
    uint8_t hash[32], parent[32];
    if (!jv_hex_fixed(jv_get(event, "blockHash"), hash, 32) ||
        !jv_hex_fixed(jv_get(event, "parentBlockHash"), parent, 32) || find(w, hash) ||
        w->count == WINDOW_MAX)
        return false;
    const struct window_block *before = find(w, parent);
    if (!before)
        return false;
    int64_t height = before->height + 1; /* append may move it */
    append(w, hash, parent, height)->runtime = version_of(jv_get(event, "newRuntime"));
    return true;
}

static bool best_changed(struct window *w, const struct jv *event)
{
    uint8_t hash[32];
    if (!jv_hex_fixed(jv_get(event, "bestBlockHash"), hash, 32) || !find(w, hash))
        return false;
    memcpy(w->best, hash, 32);
    return true;
}

static void unpin(struct window *w, size_t i, struct buf *ret_unpin)
{
    buf_put(ret_unpin, w->blocks[i].hash, 32);
    block_done(&w->blocks[i]);
    w->count--;
    memmove(&w->blocks[i], &w->blocks[i + 1], (w->count - i) * sizeof(*w->blocks));
}

/* A list of more hashes than blocks are pinned repeats some. */
static bool bounded(const struct jv *hashes)
{
    return !hashes || hashes->count <= WINDOW_MAX;
}

/* The best block stays, whatever the server says of it. */
static void unpin_pruned(struct window *w, const struct jv *hashes, struct buf *ret_unpin)
{
    uint8_t hash[32];
    for (const struct jv *i = jv_first(hashes); i; i = jv_next(hashes, i)) {
        struct window_block *b = jv_hex_fixed(i, hash, 32) ? find(w, hash) : NULL;
        if (b && !b->final && memcmp(hash, w->best, 32) != 0)
            unpin(w, (size_t)(b - w->blocks), ret_unpin);
    }
}

static void unpin_oldest(struct window *w, struct buf *ret_unpin)
{
    size_t final = 0;
    for (size_t i = 0; i < w->count; i++)
        final += w->blocks[i].final;
    for (size_t i = 0; i < w->count && final > WINDOW_FINAL_MAX;) {
        if (!w->blocks[i].final) {
            i++;
            continue;
        }
        if (w->blocks[i].runtime) {
            free(w->runtime);
            w->runtime = w->blocks[i].runtime;
            w->blocks[i].runtime = NULL;
        }
        unpin(w, i, ret_unpin);
        final--;
    }
}

static bool finalized(struct window *w, const struct jv *event, struct buf *ret_unpin)
{
    const struct jv *hashes = jv_get(event, "finalizedBlockHashes");
    const struct jv *pruned = jv_get(event, "prunedBlockHashes");
    uint8_t hash[32];
    if (!jv_is(hashes, JV_ARRAY) || hashes->count == 0 || !bounded(hashes) || !bounded(pruned))
        return false;
    for (const struct jv *i = jv_first(hashes); i; i = jv_next(hashes, i)) {
        struct window_block *b = jv_hex_fixed(i, hash, 32) ? find(w, hash) : NULL;
        if (!b)
            return false;
        b->final = true;
        memcpy(w->finalized, hash, 32);
    }
    unpin_pruned(w, pruned, ret_unpin);
    unpin_oldest(w, ret_unpin);
    return true;
}

bool window_take(struct window *w, const struct jv *event, struct buf *ret_unpin)
{
    const struct jv *name = jv_get(event, "event");
    if (jv_equals(name, "initialized"))
        return initialized(w, event);
    if (jv_equals(name, "newBlock"))
        return new_block(w, event);
    if (jv_equals(name, "bestBlockChanged"))
        return best_changed(w, event);
    if (jv_equals(name, "finalized"))
        return finalized(w, event, ret_unpin);
    return true;
}
