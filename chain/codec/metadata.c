/* A whole metadata blob: the envelope, the sections in order, then what is resolved once; and the
 * public look-ups. Parsing is one pass over the bytes and one over the registry. */
#include "metadata_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/codec/ss58.h"

enum { MAGIC_LEN = 4 };
static const char magic[MAGIC_LEN] = {'m', 'e', 't', 'a'};

static bool has_magic(const struct scale_in *in)
{
    return scale_left(in) >= MAGIC_LEN && memcmp(in->p, magic, MAGIC_LEN) == 0;
}

/* OpaqueMetadata: a length, then the metadata to the end. */
static bool peel_opaque(struct scale_in *in)
{
    size_t len = scale_get_len(in);
    return !in->bad && len == scale_left(in) && has_magic(in);
}

/* The bytes from the magic on, for each of the three forms of input. */
static int peel(struct scale_in *in, struct err *err)
{
    if (has_magic(in))
        return 0;
    if (scale_left(in) == 1 && *in->p == 0)
        return err_set(err, ERR_METADATA,
                       "the node does not offer metadata of the version that was asked for");
    struct scale_in opaque = *in;
    struct scale_in option = *in;
    if (peel_opaque(&opaque)) {
        *in = opaque;
        return 0;
    }
    if (scale_get_u8(&option) == 1 && peel_opaque(&option)) {
        *in = option;
        return 0;
    }
    return err_set(err, ERR_METADATA,
                   "%zu bytes are not runtime metadata: they do not begin with \"meta\"",
                   scale_left(in));
}

static struct metadata *new_metadata(const struct scale_in *in)
{
    struct metadata *md = xcalloc(1, sizeof(*md));
    md->blob_len = scale_left(in);
    md->blob = xmalloc(md->blob_len);
    memcpy(md->blob, in->p, md->blob_len);
    md->type_extrinsic = md->type_call = md->type_address = md->type_signature = TYPE_NONE;
    md->type_events = md->type_event_record = md->type_dispatch_error = md->type_account =
        TYPE_NONE;
    /* Not NULL: a type without fields may take the address of its first field. */
    md->fields = metadata__append(NULL, &md->field_count, &md->field_cap, sizeof(*md->fields));
    md->variants =
        metadata__append(NULL, &md->variant_count, &md->variant_cap, sizeof(*md->variants));
    md->field_count = md->variant_count = 0;
    return md;
}

static int read_tail(struct metadata_parse *p)
{
    int rc = metadata__read_apis(p);
    if (rc != 0)
        return rc;
    metadata__item(p);
    for (int i = 0; i < 3; i++) /* outer enums: calls, events, errors */
        metadata__type_ref(p);
    size_t n = scale_get_len(&p->in); /* custom values */
    for (size_t i = 0; i < n && !p->in.bad; i++) {
        metadata__skip_str(p);
        metadata__type_ref(p);
        metadata__skip_str(p); /* a byte vector has the same shape */
    }
    return p->in.bad ? metadata__fail(p, "the end does not decode") : 0;
}

static int read_sections(struct metadata_parse *p)
{
    int rc = metadata__read_registry(p);
    if (rc == 0)
        rc = metadata__read_pallets(p);
    if (rc == 0)
        rc = metadata__read_extrinsic(p);
    if (rc == 0 && p->md->version >= 15)
        rc = read_tail(p);
    if (rc == 0 && scale_left(&p->in) > 0)
        rc = err_set(p->err, ERR_METADATA, "metadata V%u: %zu bytes are left over", p->md->version,
                     scale_left(&p->in));
    return rc;
}

/* The element of System.Events, and the error type of System.ExtrinsicFailed. */
static void resolve_events(struct metadata *md)
{
    const struct type *events = metadata__type(md, md->type_events);
    if (events && events->kind == TYPE_SEQUENCE)
        md->type_event_record = events->inner;
    const struct metadata_pallet *system = metadata__pallet_named(md, "System");
    const struct type *t = system ? metadata__type(md, system->event) : NULL;
    const struct type_variant *failed =
        t ? metadata__variant_named(md, t, "ExtrinsicFailed") : NULL;
    for (uint32_t i = 0; failed && i < failed->count; i++) {
        uint32_t field = md->fields[failed->first + i].type;
        if (md->types[field].role == ROLE_DISPATCH_ERROR)
            md->type_dispatch_error = field;
    }
}

static int parse(struct metadata_parse *p)
{
    struct metadata *md = p->md;
    scale_get_bytes(&p->in, MAGIC_LEN);
    metadata__item(p);
    md->version = scale_get_u8(&p->in);
    if (md->version < 14 || md->version > 16)
        return err_set(p->err, ERR_METADATA, "metadata V%u is not supported: V14, V15 and V16 are",
                       md->version);
    int rc = read_sections(p);
    if (rc == 0)
        rc = metadata__check_registry(p);
    if (rc == 0)
        rc = metadata__resolve_extrinsic(p);
    if (rc != 0)
        return rc;
    resolve_events(md);
    metadata__resolve_account(md);
    extrinsic__resolve_format(md);
    return 0;
}

int metadata_parse(const uint8_t *bytes, size_t len, struct metadata **ret_md, struct err *err)
{
    struct scale_in in = scale_in_of(bytes, len);
    if (len > METADATA_BYTES_MAX)
        return err_set(err, ERR_METADATA, "metadata of %zu bytes is too large: %d are the most",
                       len, METADATA_BYTES_MAX);
    int rc = peel(&in, err);
    if (rc != 0)
        return rc;
    struct metadata *md = new_metadata(&in);
    struct metadata_parse p = {.md = md, .in = scale_in_of(md->blob, md->blob_len), .err = err};
    rc = parse(&p);
    if (rc != 0) {
        metadata_free(md);
        return rc;
    }
    *ret_md = md;
    return 0;
}

struct metadata *metadata_free(struct metadata *md)
{
    if (!md)
        return NULL;
    free(md->types);
    free(md->fields);
    free(md->variants);
    free(md->pallets);
    free(md->consts);
    free(md->extensions);
    extrinsic__format_done(md);
    free(md->blob);
    free(md);
    return NULL;
}

unsigned metadata_version(const struct metadata *md)
{
    return md->version;
}

unsigned metadata_extrinsic_version(const struct metadata *md)
{
    return md->extrinsic_version;
}

const char *metadata_pallet_name(const struct metadata *md, uint8_t pallet)
{
    return md->by_index[pallet] ? md->by_index[pallet]->name : NULL;
}

static const char *variant_name(const struct metadata *md, uint32_t type, uint8_t index)
{
    const struct type *t = metadata__type(md, type);
    const struct type_variant *v = t ? metadata__variant(md, t, index) : NULL;
    return v ? v->name : NULL;
}

const char *metadata_call_name(const struct metadata *md, uint8_t pallet, uint8_t call)
{
    return md->by_index[pallet] ? variant_name(md, md->by_index[pallet]->calls, call) : NULL;
}

const char *metadata_event_name(const struct metadata *md, uint8_t pallet, uint8_t event)
{
    return md->by_index[pallet] ? variant_name(md, md->by_index[pallet]->event, event) : NULL;
}

const char *metadata_error_name(const struct metadata *md, uint8_t pallet, uint8_t error)
{
    return md->by_index[pallet] ? variant_name(md, md->by_index[pallet]->error, error) : NULL;
}

const struct metadata_pallet *metadata__pallet_named(const struct metadata *md, const char *name)
{
    for (size_t i = 0; i < md->pallet_count; i++)
        if (strcmp(md->pallets[i].name, name) == 0)
            return &md->pallets[i];
    return NULL;
}

bool metadata_find_call(const struct metadata *md, const char *pallet, const char *call,
                        uint8_t ret_index[2])
{
    const struct metadata_pallet *in = metadata__pallet_named(md, pallet);
    const struct type *t = in ? metadata__type(md, in->calls) : NULL;
    const struct type_variant *v = t ? metadata__variant_named(md, t, call) : NULL;
    if (!v)
        return false;
    ret_index[0] = in->index;
    ret_index[1] = v->index;
    return true;
}

const uint8_t *metadata_constant(const struct metadata *md, const char *pallet, const char *name,
                                 size_t *ret_len)
{
    const struct metadata_pallet *in = metadata__pallet_named(md, pallet);
    for (uint32_t i = 0; in && i < in->const_count; i++) {
        const struct metadata_const *c = &md->consts[in->first_const + i];
        if (strcmp(c->name, name) == 0) {
            *ret_len = c->len;
            return c->value;
        }
    }
    return NULL;
}

int metadata__ss58_prefix(const struct metadata *md)
{
    size_t len = 0;
    const uint8_t *value = metadata_constant(md, "System", "SS58Prefix", &len);
    if (!value || len == 0 || len > 2)
        return -1;
    int prefix = len == 2 ? value[0] | value[1] << 8 : value[0];
    return prefix <= SS58_PREFIX_MAX ? prefix : -1;
}

uint32_t metadata_type_call(const struct metadata *md)
{
    return md->type_call;
}

uint32_t metadata_type_address(const struct metadata *md)
{
    return md->type_address;
}

uint32_t metadata_type_event_record(const struct metadata *md)
{
    return md->type_event_record;
}

size_t metadata_extension_count(const struct metadata *md)
{
    return md->extension_count;
}

const struct metadata_extension *metadata_extension_at(const struct metadata *md, size_t i)
{
    PRE(i < md->extension_count);
    return &md->extensions[i];
}
