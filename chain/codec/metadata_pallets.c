/* Pallets: names, the types of their calls, events and errors, constants, the types of
 * System.Events and System.Account. Runtime APIs are skipped. */
#include "metadata_internal.h"

#include <string.h>

/* Returns the type of the entry's value. */
static uint32_t read_storage_type(struct metadata_parse *p)
{
    uint8_t how = scale_get_u8(&p->in);
    if (how == 0) /* plain */
        return metadata__type_ref(p);
    if (how != 1)
        p->in.bad = true;
    scale_get_bytes(&p->in, scale_get_len(&p->in)); /* map: hashers, one byte each */
    metadata__type_ref(p);
    return metadata__type_ref(p);
}

static void read_storage(struct metadata_parse *p, bool is_system)
{
    if (!scale_get_bool(&p->in))
        return;
    metadata__skip_str(p); /* prefix */
    size_t n = scale_get_len(&p->in);
    for (size_t i = 0; i < n && !p->in.bad; i++) {
        const char *name = metadata__str(p);
        scale_get_u8(&p->in); /* optional or default */
        uint32_t type = read_storage_type(p);
        scale_get_bytes(&p->in, scale_get_len(&p->in));
        metadata__skip_strs(p);
        metadata__skip_deprecation(p);
        if (is_system && !p->in.bad && strcmp(name, "Events") == 0)
            p->md->type_events = type;
        if (is_system && !p->in.bad && strcmp(name, "Account") == 0)
            p->md->type_account = type;
    }
}

static uint32_t read_enum(struct metadata_parse *p)
{
    uint32_t type = metadata__option_type_ref(p);
    if (type != TYPE_NONE)
        metadata__skip_enum_deprecation(p);
    return type;
}

static void read_consts(struct metadata_parse *p, struct metadata_pallet *pallet)
{
    struct metadata *md = p->md;
    size_t n = scale_get_len(&p->in);
    pallet->first_const = (uint32_t)md->const_count;
    for (size_t i = 0; i < n && !p->in.bad; i++) {
        struct metadata_const c = {.name = metadata__str(p)};
        metadata__type_ref(p);
        c.len = (uint32_t)scale_get_len(&p->in);
        c.value = scale_get_bytes(&p->in, c.len);
        metadata__skip_strs(p);
        metadata__skip_deprecation(p);
        md->consts =
            metadata__append(md->consts, &md->const_count, &md->const_cap, sizeof(*md->consts));
        md->consts[md->const_count - 1] = c;
    }
    pallet->const_count = (uint32_t)(md->const_count - pallet->first_const);
}

/* name, Vec<(name, type)>, type, docs: methods of runtime APIs, and V16's view functions with an id
 * first. */
static void skip_functions(struct metadata_parse *p, size_t id_len)
{
    size_t n = scale_get_len(&p->in);
    for (size_t i = 0; i < n && !p->in.bad; i++) {
        scale_get_bytes(&p->in, id_len);
        metadata__skip_str(p);
        size_t inputs = scale_get_len(&p->in);
        for (size_t k = 0; k < inputs && !p->in.bad; k++) {
            metadata__skip_str(p);
            metadata__type_ref(p);
        }
        metadata__type_ref(p);
        metadata__skip_strs(p);
        metadata__skip_deprecation(p);
    }
}

static void skip_associated_types(struct metadata_parse *p)
{
    size_t n = scale_get_len(&p->in);
    for (size_t i = 0; i < n && !p->in.bad; i++) {
        metadata__skip_str(p);
        metadata__type_ref(p);
        metadata__skip_strs(p);
    }
}

static struct metadata_pallet read_pallet(struct metadata_parse *p)
{
    struct metadata_pallet pallet = {.name = metadata__str(p)};
    read_storage(p, pallet.name && strcmp(pallet.name, "System") == 0);
    pallet.calls = read_enum(p);
    pallet.event = read_enum(p);
    read_consts(p, &pallet);
    pallet.error = read_enum(p);
    if (p->md->version >= 16) {
        skip_associated_types(p);
        skip_functions(p, 32);
    }
    pallet.index = scale_get_u8(&p->in);
    if (p->md->version >= 15)
        metadata__skip_strs(p);
    metadata__skip_deprecation(p);
    return pallet;
}

/* The calls, events and errors of a pallet must be enums: look-ups by name rely on it. */
static bool is_enum_or_none(const struct metadata *md, uint32_t id)
{
    return id == TYPE_NONE || (id < md->type_count && md->types[id].kind == TYPE_VARIANT);
}

static int index_pallets(struct metadata_parse *p)
{
    struct metadata *md = p->md;
    for (size_t i = 0; i < md->pallet_count; i++) {
        struct metadata_pallet *pallet = &md->pallets[i];
        if (md->by_index[pallet->index])
            return err_set(p->err, ERR_METADATA,
                           "metadata: pallets %s and %s have the same index %u",
                           md->by_index[pallet->index]->name, pallet->name, pallet->index);
        if (!is_enum_or_none(md, pallet->calls) || !is_enum_or_none(md, pallet->event) ||
            !is_enum_or_none(md, pallet->error))
            return err_set(p->err, ERR_METADATA,
                           "metadata: calls, events or errors of pallet %s are not an enum",
                           pallet->name);
        md->by_index[pallet->index] = pallet;
    }
    return 0;
}

int metadata__read_pallets(struct metadata_parse *p)
{
    struct metadata *md = p->md;
    size_t n = scale_get_len(&p->in);
    for (size_t i = 0; i < n && !p->in.bad; i++) {
        metadata__item(p);
        struct metadata_pallet pallet = read_pallet(p);
        if (p->in.bad)
            break;
        md->pallets =
            metadata__append(md->pallets, &md->pallet_count, &md->pallet_cap, sizeof(*md->pallets));
        md->pallets[i] = pallet;
    }
    return p->in.bad ? metadata__fail(p, "a pallet does not decode") : index_pallets(p);
}

int metadata__read_apis(struct metadata_parse *p)
{
    size_t n = scale_get_len(&p->in);
    for (size_t i = 0; i < n && !p->in.bad; i++) {
        metadata__item(p);
        metadata__skip_str(p);
        skip_functions(p, 0);
        metadata__skip_strs(p);
        if (p->md->version >= 16)
            scale_get_compact_u32(&p->in); /* version of the API */
        metadata__skip_deprecation(p);
    }
    return p->in.bad ? metadata__fail(p, "a runtime API does not decode") : 0;
}
