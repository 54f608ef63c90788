/* Pallets and calls by name; errors suggest similar names. */
#include "base/near.h"
#include "codec_internal.h"

/* Similar names, or the command that lists all names. */
static const char *way_out(const struct nearest_names *n, char out[NEAREST_TEXT])
{
    return n->count ? nearest_names_text(n, out) : "; txrelay encode --list shows what there is";
}

static const struct type *calls_of(const struct metadata *md, const struct metadata_pallet *p)
{
    const struct type *t = p ? metadata__type(md, p->calls) : NULL;
    return t && t->kind == TYPE_VARIANT ? t : NULL;
}

const struct metadata_pallet *codec__pallet_with_calls(const struct metadata *md, const char *name,
                                                       struct err *err)
{
    const struct metadata_pallet *p = metadata__pallet_named(md, name);
    struct nearest_names nearest = nearest_names_of(name);
    char text[NEAREST_TEXT];
    if (calls_of(md, p))
        return p;
    for (size_t i = 0; i < md->pallet_count; i++)
        if (calls_of(md, &md->pallets[i]))
            nearest_names_offer(&nearest, md->pallets[i].name);
    if (p)
        err_set(err, ERR_ARGUMENT, "the pallet %.60s has no calls", name);
    else
        err_set(err, ERR_ARGUMENT, "the chain has no such pallet: '%.60s'%s", name,
                way_out(&nearest, text));
    return NULL;
}

const struct type_variant *codec__call_named(const struct metadata *md,
                                             const struct metadata_pallet *p, const char *name,
                                             struct err *err)
{
    const struct type *calls = &md->types[p->calls];
    const struct type_variant *v = metadata__variant_named(md, calls, name);
    struct nearest_names nearest = nearest_names_of(name);
    char text[NEAREST_TEXT];
    if (v)
        return v;
    for (uint32_t i = 0; i < calls->count; i++)
        nearest_names_offer(&nearest, md->variants[calls->first + i].name);
    err_set(err, ERR_ARGUMENT, "the pallet %.60s has no such call: '%.60s'%s", p->name, name,
            way_out(&nearest, text));
    return NULL;
}
