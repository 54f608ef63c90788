/* The extrinsic section: the format version, the types of address, call and signature, and the
 * signed extensions in the order of format v4.
 *
 * V14 names the extrinsic's type only; the others are its type parameters. V16 lists several format
 * versions and several sets of extensions; extrinsics of format v4 use set 0. */
#include "metadata_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static void add_extension(struct metadata *md, struct metadata_extension e)
{
    md->extensions = metadata__append(md->extensions, &md->extension_count, &md->extension_cap,
                                      sizeof(*md->extensions));
    md->extensions[md->extension_count - 1] = e;
}

static void read_extensions(struct metadata_parse *p)
{
    size_t n = scale_get_len(&p->in);
    for (size_t i = 0; i < n && !p->in.bad; i++) {
        struct metadata_extension e = {.name = metadata__str(p)};
        e.type = metadata__type_ref(p);
        e.additional = metadata__type_ref(p);
        add_extension(p->md, e);
    }
}

/* V16: entry 0 of the map lists the extensions of set 0 in order. Returns a reader over their
 * indices. False: there is no such entry, as on a chain without v4. */
static bool read_sets(struct metadata_parse *p, struct scale_in *ret_set, size_t *ret_len)
{
    bool found = false;
    size_t n = scale_get_len(&p->in);
    for (size_t i = 0; i < n && !p->in.bad; i++) {
        uint8_t set = scale_get_u8(&p->in);
        size_t len = scale_get_len(&p->in);
        if (set == 0) {
            found = true;
            *ret_set = p->in;
            *ret_len = len;
        }
        for (size_t k = 0; k < len && !p->in.bad; k++)
            scale_get_compact_u32(&p->in);
    }
    return found;
}

/* Keep only the extensions of the set, in its order. False: it names one that does not exist. */
static bool pick_set(struct metadata *md, struct scale_in set, size_t len)
{
    struct metadata_extension *all = md->extensions;
    size_t all_count = md->extension_count;
    md->extensions = NULL;
    md->extension_count = md->extension_cap = 0;
    bool good = true;
    for (size_t i = 0; i < len && good; i++) {
        uint32_t at = scale_get_compact_u32(&set);
        good = at < all_count;
        if (good)
            add_extension(md, all[at]);
    }
    free(all);
    return good;
}

static int read_v16(struct metadata_parse *p)
{
    struct metadata *md = p->md;
    size_t n = scale_get_len(&p->in);
    const uint8_t *versions = scale_get_bytes(&p->in, n);
    for (size_t i = 0; versions && i < n; i++)
        if (md->extrinsic_version != 4)
            md->extrinsic_version = versions[i];
    md->type_address = metadata__type_ref(p);
    md->type_call = metadata__type_ref(p);
    md->type_signature = metadata__type_ref(p);
    struct scale_in set = {0};
    size_t len = 0;
    bool found = read_sets(p, &set, &len);
    read_extensions(p);
    if (p->in.bad)
        return 0; /* the caller reports it */
    if (!pick_set(md, set, found ? len : 0))
        return metadata__fail(p, "set 0 of transaction extensions names one that does not exist");
    md->lacks_set_0 = !found;
    return 0;
}

int metadata__read_extrinsic(struct metadata_parse *p)
{
    struct metadata *md = p->md;
    int rc = 0;
    metadata__item(p);
    if (md->version == 14) {
        md->type_extrinsic = metadata__type_ref(p);
        md->extrinsic_version = scale_get_u8(&p->in);
        read_extensions(p);
        metadata__type_ref(p); /* the runtime itself */
    } else if (md->version == 15) {
        md->extrinsic_version = scale_get_u8(&p->in);
        md->type_address = metadata__type_ref(p);
        md->type_call = metadata__type_ref(p);
        md->type_signature = metadata__type_ref(p);
        metadata__type_ref(p); /* the extensions as one tuple */
        read_extensions(p);
        metadata__type_ref(p); /* the runtime itself */
    } else {
        rc = read_v16(p);
    }
    return rc == 0 && p->in.bad ? metadata__fail(p, "the extrinsic section does not decode") : rc;
}

static void read_params(struct metadata *md, uint32_t params_at)
{
    struct scale_in in = scale_in_of(md->blob + params_at, md->blob_len - params_at);
    size_t n = scale_get_len(&in);
    for (size_t i = 0; i < n && !in.bad; i++) {
        size_t len = scale_get_len(&in);
        const char *name = (const char *)scale_get_bytes(&in, len);
        uint32_t type = scale_get_bool(&in) ? scale_get_compact_u32(&in) : TYPE_NONE;
        if (in.bad)
            return;
        if (len == 7 && memcmp(name, "Address", len) == 0)
            md->type_address = type;
        else if (len == 4 && memcmp(name, "Call", len) == 0)
            md->type_call = type;
        else if (len == 9 && memcmp(name, "Signature", len) == 0)
            md->type_signature = type;
    }
}

int metadata__resolve_extrinsic(struct metadata_parse *p)
{
    struct metadata *md = p->md;
    if (md->version == 14) {
        if (md->type_extrinsic >= md->type_count)
            return err_set(p->err, ERR_METADATA, "metadata: the extrinsic's type %u does not exist",
                           md->type_extrinsic);
        read_params(md, md->types[md->type_extrinsic].params_at);
    }
    const uint32_t types[] = {md->type_address, md->type_call, md->type_signature};
    static const char *const names[] = {"address", "call", "signature"};
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (types[i] >= md->type_count)
            return err_set(p->err, ERR_METADATA, "metadata: the extrinsic has no %s type",
                           names[i]);
    if (md->types[md->type_call].kind != TYPE_VARIANT)
        return err_set(p->err, ERR_METADATA, "metadata: the call type %u is not an enum",
                       md->type_call);
    for (size_t i = 0; i < md->extension_count; i++)
        if (md->extensions[i].type >= md->type_count ||
            md->extensions[i].additional >= md->type_count)
            return err_set(p->err, ERR_METADATA,
                           "metadata: extension %s refers to a type that does not exist",
                           md->extensions[i].name);
    return 0;
}
