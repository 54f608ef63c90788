/* The digest of the metadata that CheckMetadataHash signs (RFC 78): the root of a tree over the
 * types that an extrinsic can contain, the description of the extrinsic, and what a wallet shows.
 *
 *   digest = blake3(1 | root | blake3(extrinsic) | spec version, name | prefix | decimals | symbol)
 *
 * The types are those that are reachable from the call, the address, the signature and the
 * extensions; they are numbered anew, in the order of their ids. A leaf of the tree is a type, or
 * one variant of an enum. All comes from V15 metadata, from which runtimes compute theirs. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "blake3.h"
#include "chain/codec/hash.h"
#include "metadata_internal.h"

/* The numbers of a type reference on the wire. Primitives come first, in our order. */
enum { REF_COMPACT_U8 = PRIM_COUNT, REF_VOID = 21, REF_ID = 22 };
enum { DEF_COMPOSITE, DEF_ENUM, DEF_SEQUENCE, DEF_ARRAY, DEF_TUPLE, DEF_BITS };
enum { DIGEST_V1 = 1, DIGEST_FORMAT = 4 };

struct digest {
    const struct metadata *md;
    uint32_t *numbers; /* by type id; TYPE_NONE: not reachable, or without bytes */
    uint8_t (*leaves)[HASH_LEN];
    size_t leaf_count, leaf_cap;
    struct buf leaf; /* the one that is written */
    struct err *err;
    int rc;
};

static void blake3_256(const void *data, size_t len, uint8_t out[HASH_LEN])
{
    blake3_hasher h;
    blake3_hasher_init(&h);
    blake3_hasher_update(&h, data, len);
    blake3_hasher_finalize(&h, out, HASH_LEN);
}

static void refuse(struct digest *d, const char *what)
{
    if (d->rc == 0)
        d->rc = err_set(d->err, ERR_METADATA, "metadata hash: %s", what);
}

/* ---- references ---- */

/* The primitive inside of structs of one field; PRIM_COUNT: there is none, because the struct is
 * empty. */
static unsigned primitive(struct digest *d, uint32_t id)
{
    for (int depth = 0; depth < METADATA_NEST_MAX; depth++) {
        const struct type *t = &d->md->types[id];
        if (t->kind == TYPE_PRIMITIVE)
            return t->prim;
        if ((t->kind != TYPE_COMPOSITE && t->kind != TYPE_TUPLE) || t->count > 1)
            break;
        if (t->count == 0)
            return PRIM_COUNT;
        id = d->md->fields[t->first].type;
    }
    refuse(d, "a compact or a bit sequence is not of a primitive");
    return PRIM_COUNT;
}

static void put_compact_ref(struct digest *d, uint32_t inner, struct buf *out)
{
    unsigned prim = primitive(d, inner);
    if (prim != PRIM_COUNT && (prim < PRIM_U8 || prim > PRIM_U256))
        refuse(d, "a compact is not of an unsigned integer");
    buf_put_u8(out, (uint8_t)(prim == PRIM_COUNT ? REF_VOID : REF_COMPACT_U8 + prim - PRIM_U8));
}

static void put_ref(struct digest *d, uint32_t id, struct buf *out)
{
    const struct type *t = &d->md->types[id];
    if (t->kind == TYPE_PRIMITIVE) {
        buf_put_u8(out, t->prim);
    } else if (t->kind == TYPE_COMPACT) {
        put_compact_ref(d, t->inner, out);
    } else if (d->numbers[id] == TYPE_NONE) {
        buf_put_u8(out, REF_VOID);
    } else {
        buf_put_u8(out, REF_ID);
        scale_put_compact(out, d->numbers[id]);
    }
}

/* ---- leaves ---- */

static void put_str(struct buf *out, const void *text, size_t len)
{
    scale_put_compact(out, len);
    buf_put(out, text, len);
}

static void put_name(struct buf *out, const char *name)
{
    put_str(out, name, strlen(name));
}

/* A text that the parser left as it was, with its length before it. */
static struct scale_in text_at(const struct metadata *md, uint32_t at)
{
    return scale_in_of(md->blob + at, md->blob_len - at);
}

static void put_text_at(struct scale_in *in, struct buf *out)
{
    size_t len = scale_get_len(in);
    const uint8_t *text = scale_get_bytes(in, len);
    INVARIANT(!in->bad);
    put_str(out, text, len);
}

static void put_fields(struct digest *d, uint32_t first, uint32_t count, struct buf *out)
{
    scale_put_compact(out, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct type_field *f = &d->md->fields[first + i];
        buf_put_u8(out, f->name != NULL);
        if (f->name)
            put_name(out, f->name);
        put_ref(d, f->type, out);
        buf_put_u8(out, f->type_name_at != 0);
        if (f->type_name_at) {
            struct scale_in in = text_at(d->md, f->type_name_at);
            put_text_at(&in, out);
        }
    }
}

/* The parser moved the last segment alone. */
static void put_path(const struct metadata *md, const struct type *t, struct buf *out)
{
    struct scale_in in = text_at(md, t->path_at);
    scale_put_compact(out, t->path_count);
    for (uint32_t i = 1; i < t->path_count; i++)
        put_text_at(&in, out);
    if (t->path_count)
        put_name(out, t->name);
}

static void put_bits(struct digest *d, const struct type *t, struct buf *out)
{
    static const uint8_t bytes[PRIM_COUNT + 1] = {
        [PRIM_U8] = 1, [PRIM_U16] = 2, [PRIM_U32] = 4, [PRIM_U64] = 8};
    unsigned store = primitive(d, t->inner);
    const char *order = d->md->types[t->len].name;
    bool lsb = strcmp(order, "Lsb0") == 0;
    if (!bytes[store] || (!lsb && strcmp(order, "Msb0") != 0))
        refuse(d, "a bit sequence has an unknown store or order");
    buf_put_u8(out, bytes[store]);
    buf_put_u8(out, lsb);
}

static void put_definition(struct digest *d, const struct type *t, struct buf *out)
{
    switch ((enum type_kind)t->kind) {
    case TYPE_COMPOSITE:
        buf_put_u8(out, DEF_COMPOSITE);
        put_fields(d, t->first, t->count, out);
        return;
    case TYPE_SEQUENCE:
        buf_put_u8(out, DEF_SEQUENCE);
        put_ref(d, t->inner, out);
        return;
    case TYPE_ARRAY:
        buf_put_u8(out, DEF_ARRAY);
        scale_put_u32(out, t->len);
        put_ref(d, t->inner, out);
        return;
    case TYPE_TUPLE:
        buf_put_u8(out, DEF_TUPLE);
        scale_put_compact(out, t->count);
        for (uint32_t i = 0; i < t->count; i++)
            put_ref(d, d->md->fields[t->first + i].type, out);
        return;
    case TYPE_BITS:
        buf_put_u8(out, DEF_BITS);
        put_bits(d, t, out);
        return;
    case TYPE_VARIANT:
    case TYPE_PRIMITIVE:
    case TYPE_COMPACT:
        break;
    }
    UNREACHABLE();
}

static void put_variant(struct digest *d, const struct type_variant *v, struct buf *out)
{
    buf_put_u8(out, DEF_ENUM);
    put_name(out, v->name);
    put_fields(d, v->first, v->count, out);
    scale_put_compact(out, v->index);
}

/* v: of an enum; else NULL. */
static void leaf(struct digest *d, uint32_t id, const struct type_variant *v)
{
    const struct type *t = &d->md->types[id];
    buf_clear(&d->leaf);
    put_path(d->md, t, &d->leaf);
    if (v)
        put_variant(d, v, &d->leaf);
    else
        put_definition(d, t, &d->leaf);
    scale_put_compact(&d->leaf, d->numbers[id]);
    d->leaves = metadata__append(d->leaves, &d->leaf_count, &d->leaf_cap, sizeof(*d->leaves));
    blake3_256(d->leaf.data, d->leaf.len, d->leaves[d->leaf_count - 1]);
}

static void find_leaves(struct digest *d)
{
    for (uint32_t id = 0; id < d->md->type_count; id++) {
        const struct type *t = &d->md->types[id];
        if (d->numbers[id] == TYPE_NONE)
            continue;
        if (t->kind != TYPE_VARIANT) {
            leaf(d, id, NULL);
            continue;
        }
        for (unsigned index = 0; index < 256; index++) {
            const struct type_variant *v = metadata__variant(d->md, t, (uint8_t)index);
            if (v)
                leaf(d, id, v);
        }
    }
}

/* A complete binary tree in an array: the leaves are its end, node i is over 2i + 1 and 2i + 2. */
static void find_root(const struct digest *d, uint8_t ret[HASH_LEN])
{
    size_t n = d->leaf_count;
    memset(ret, 0, HASH_LEN);
    if (!n)
        return;
    uint8_t(*nodes)[HASH_LEN] = xcalloc(2 * n - 1, sizeof(*nodes));
    memcpy(nodes[n - 1], d->leaves, n * sizeof(*nodes));
    for (size_t i = n - 1; i-- > 0;)
        blake3_256(nodes[2 * i + 1], 2 * sizeof(*nodes), nodes[i]);
    memcpy(ret, nodes[0], HASH_LEN);
    free(nodes);
}

/* ---- the rest ---- */

static void put_extrinsic(struct digest *d, struct buf *out)
{
    const struct metadata *md = d->md;
    buf_put_u8(out, DIGEST_FORMAT);
    put_ref(d, md->type_address, out);
    put_ref(d, md->type_call, out);
    put_ref(d, md->type_signature, out);
    scale_put_compact(out, md->extension_count);
    for (size_t i = 0; i < md->extension_count; i++) {
        put_name(out, md->extensions[i].name);
        put_ref(d, md->extensions[i].type, out);
        put_ref(d, md->extensions[i].additional, out);
    }
}

/* System.Version: the name of the runtime, that of its implementation, two versions. */
static bool put_runtime(const struct metadata *md, struct buf *out)
{
    size_t len = 0;
    const uint8_t *version = metadata_constant(md, "System", "Version", &len);
    struct scale_in in = scale_in_of(version, version ? len : 0);
    size_t name_len = scale_get_len(&in);
    const uint8_t *name = scale_get_bytes(&in, name_len);
    scale_get_bytes(&in, scale_get_len(&in));
    scale_get_u32(&in); /* of the authoring */
    scale_put_u32(out, scale_get_u32(&in));
    if (in.bad)
        return false;
    put_str(out, name, name_len);
    return true;
}

static void finish(struct digest *d, const struct metadata_token *token, uint8_t ret[HASH_LEN])
{
    uint8_t hash[HASH_LEN];
    struct buf out = {0};
    int prefix = metadata__ss58_prefix(d->md);
    buf_clear(&d->leaf);
    put_extrinsic(d, &d->leaf);
    buf_put_u8(&out, DIGEST_V1);
    find_root(d, hash);
    buf_put(&out, hash, sizeof(hash));
    blake3_256(d->leaf.data, d->leaf.len, hash);
    buf_put(&out, hash, sizeof(hash));
    if (!put_runtime(d->md, &out))
        refuse(d, "the constant System.Version is missing or does not decode");
    if (prefix < 0)
        refuse(d, "the constant System.SS58Prefix is missing or too large");
    buf_put_u8(&out, (uint8_t)(prefix & 0xff));
    buf_put_u8(&out, (uint8_t)(prefix >> 8 & 0xff));
    buf_put_u8(&out, token->decimals);
    put_name(&out, token->symbol);
    blake3_256(out.data, out.len, ret);
    buf_done(&out);
}

int metadata_digest(const struct metadata *md, const struct metadata_token *token,
                    uint8_t ret_digest[32], struct err *err)
{
    uint8_t digest[HASH_LEN];
    if (md->version != 15)
        return err_set(err, ERR_METADATA,
                       "metadata hash: it is computed from V15 metadata, and the node gave V%u",
                       md->version);
    if (md->extrinsic_version != DIGEST_FORMAT)
        return err_set(err, ERR_METADATA, "metadata hash: the chain takes extrinsics of format v%u",
                       md->extrinsic_version);
    struct digest d = {
        .md = md, .numbers = xcalloc(md->type_count + 1, sizeof(*d.numbers)), .err = err};
    memset(d.numbers, 0xff, (md->type_count + 1) * sizeof(*d.numbers));
    metadata__number_types(d.md, d.numbers);
    find_leaves(&d);
    finish(&d, token, digest);
    if (d.rc == 0)
        memcpy(ret_digest, digest, HASH_LEN);
    free(d.numbers);
    free(d.leaves);
    buf_done(&d.leaf);
    return d.rc;
}
