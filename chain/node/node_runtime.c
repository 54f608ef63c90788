/* The runtime in use: node_info shows it. It is read again when a notification names another
 * version or the owner asks, and other endpoints confirm it. */
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "node_internal.h"

/* An integer constant of 1 to 8 bytes. */
static uint64_t constant(const struct metadata *md, const char *pallet, const char *name,
                         uint64_t fallback)
{
    size_t len;
    const uint8_t *p = metadata_constant(md, pallet, name, &len);
    uint64_t value = 0;
    if (!p || len == 0 || len > 8)
        return fallback;
    for (size_t i = len; i-- > 0;)
        value = value << 8 | p[i];
    return value;
}

/* The generic prefix takes the place of one that SS58 cannot express. */
static uint16_t ss58_prefix(const struct metadata *md)
{
    enum { GENERIC = 42 };
    uint64_t prefix = constant(md, "System", "SS58Prefix", GENERIC);
    return prefix <= SS58_PREFIX_MAX ? (uint16_t)prefix : GENERIC;
}

void runtime_adopt(struct node *n, struct runtime *r)
{
    PRE(r->refs > 0 && r->metadata);
    struct node_info *info = &n->info;
    runtime_unref(n->runtime);
    n->runtime = r;
    info->spec_version = r->spec_version;
    info->transaction_version = r->transaction_version;
    memcpy(info->spec_name, r->spec_name, sizeof(info->spec_name));
    info->metadata = r->metadata;
    info->ss58_prefix = ss58_prefix(r->metadata);
    info->block_hash_count = (uint32_t)constant(r->metadata, "System", "BlockHashCount", 2400);
}

static void refetched(struct runtime_fetch *f)
{
    struct node *n = f->node;
    if (!f->runtime) {
        /* A new runtime that we cannot use is a fault: nothing may be signed for the old one. After
         * any other failure the next poll asks again. */
        if (f->err.code == ERR_METADATA && n->phase == NODE_READY)
            node__fault(n, &f->err);
        else
            log_debug("node.runtime", "url=%s error=\"%s\"", node__url(n), f->err.text);
        return;
    }
    if (n->phase != NODE_READY) {
        runtime_unref(f->runtime);
        return;
    }
    bool again = n->refetch_again;
    n->refetch_again = false;
    bool changed = f->runtime != n->runtime, told = f->again;
    if (changed)
        runtime_adopt(n, f->runtime);
    else
        runtime_unref(f->runtime);
    if (again)
        runtime_fetch_start(n, f, NULL, refetched);
    if ((changed || told) && n->config.on_runtime)
        n->config.on_runtime(n->config.arg, &n->info);
}

bool node_metadata_confirmed(struct node *n)
{
    if (n->phase != NODE_READY)
        return false;
    bool agreed = second_agrees(n, n->runtime, NULL);
    if (n->runtime->confirmed)
        return agreed;
    if (n->refetch.step == FETCH_IDLE) {
        runtime_fetch_start(n, &n->refetch, NULL, refetched);
        n->refetch.again = true;
    }
    return false;
}

bool node_version_confirmed(struct node *n)
{
    return n->phase == NODE_READY && second_agrees(n, n->runtime, NULL);
}

void node_recheck_runtime(struct node *n)
{
    if (n->phase != NODE_READY)
        return;
    if (n->refetch.step == FETCH_IDLE)
        runtime_fetch_start(n, &n->refetch, NULL, refetched);
    else
        n->refetch_again = true;
}

void runtime_changed(struct node *n, const struct jv *version)
{
    struct runtime v;
    if (!runtime_version_read(version, &v) ||
        (n->runtime && v.spec_version == n->runtime->spec_version &&
         v.transaction_version == n->runtime->transaction_version))
        return;
    node_recheck_runtime(n);
}
