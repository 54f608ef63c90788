/* The type registry (scale-info's PortableRegistry): read into flat arrays, then checked once, so
 * that later walks may follow ids without checking them. */
#include "metadata_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

static const uint8_t prim_size[PRIM_COUNT] = {
    [PRIM_U8] = 1,    [PRIM_U16] = 2,   [PRIM_U32] = 4,   [PRIM_U64] = 8,
    [PRIM_U128] = 16, [PRIM_U256] = 32, [PRIM_I8] = 1,    [PRIM_I16] = 2,
    [PRIM_I32] = 4,   [PRIM_I64] = 8,   [PRIM_I128] = 16, [PRIM_I256] = 32,
};

/* The last segment of the path is the type's name; the others stay as they are. */
static void read_path(struct metadata_parse *p, struct type *t)
{
    size_t n = scale_get_len(&p->in);
    t->path_at = (uint32_t)(p->in.p - p->md->blob);
    t->path_count = (uint32_t)n;
    t->name = "";
    for (size_t i = 0; i < n && !p->in.bad; i++) {
        if (i + 1 < n)
            metadata__skip_str(p);
        else
            t->name = metadata__str(p);
    }
}

/* Does not move the names: V14's extrinsic section reads them again from params_at. */
static void skip_params(struct metadata_parse *p)
{
    size_t n = scale_get_len(&p->in);
    for (size_t i = 0; i < n && !p->in.bad; i++) {
        scale_get_bytes(&p->in, scale_get_len(&p->in));
        metadata__option_type_ref(p);
    }
}

static struct type_field *new_field(struct metadata *md)
{
    md->fields =
        metadata__append(md->fields, &md->field_count, &md->field_cap, sizeof(*md->fields));
    return &md->fields[md->field_count - 1];
}

/* The fields of one composite or variant, contiguous in md->fields. */
static void read_fields(struct metadata_parse *p, uint32_t *ret_first, uint32_t *ret_count)
{
    size_t n = scale_get_len(&p->in);
    *ret_first = (uint32_t)p->md->field_count;
    for (size_t i = 0; i < n && !p->in.bad; i++) {
        const char *name = scale_get_bool(&p->in) ? metadata__str(p) : NULL;
        uint32_t type = metadata__type_ref(p);
        bool named = scale_get_bool(&p->in);
        uint32_t type_name_at = named ? (uint32_t)(p->in.p - p->md->blob) : 0;
        if (named)
            metadata__skip_str(p);
        metadata__skip_strs(p);
        *new_field(p->md) = (struct type_field){name, type, type_name_at};
    }
    *ret_count = (uint32_t)(p->md->field_count - *ret_first);
}

static void read_variants(struct metadata_parse *p, struct type *t)
{
    struct metadata *md = p->md;
    size_t n = scale_get_len(&p->in);
    bool seen[256] = {false};
    t->first = (uint32_t)md->variant_count;
    for (size_t i = 0; i < n && !p->in.bad; i++) {
        struct type_variant v = {.name = metadata__str(p)};
        read_fields(p, &v.first, &v.count);
        v.index = scale_get_u8(&p->in);
        metadata__skip_strs(p);
        if (seen[v.index])
            p->in.bad = true;
        seen[v.index] = true;
        md->variants = metadata__append(md->variants, &md->variant_count, &md->variant_cap,
                                        sizeof(*md->variants));
        md->variants[md->variant_count - 1] = v;
    }
    t->count = (uint32_t)(md->variant_count - t->first);
}

static void read_tuple(struct metadata_parse *p, struct type *t)
{
    size_t n = scale_get_len(&p->in);
    t->first = (uint32_t)p->md->field_count;
    for (size_t i = 0; i < n && !p->in.bad; i++)
        *new_field(p->md) = (struct type_field){NULL, metadata__type_ref(p), 0};
    t->count = (uint32_t)(p->md->field_count - t->first);
}

static void read_definition(struct metadata_parse *p, struct type *t)
{
    t->kind = scale_get_u8(&p->in);
    switch ((enum type_kind)t->kind) {
    case TYPE_COMPOSITE:
        read_fields(p, &t->first, &t->count);
        return;
    case TYPE_VARIANT:
        read_variants(p, t);
        return;
    case TYPE_ARRAY:
        t->len = scale_get_u32(&p->in);
        t->inner = metadata__type_ref(p);
        return;
    case TYPE_SEQUENCE:
    case TYPE_COMPACT:
        t->inner = metadata__type_ref(p);
        return;
    case TYPE_TUPLE:
        read_tuple(p, t);
        return;
    case TYPE_PRIMITIVE:
        t->prim = scale_get_u8(&p->in);
        if (t->prim >= PRIM_COUNT)
            p->in.bad = true;
        return;
    case TYPE_BITS:
        t->inner = metadata__type_ref(p);
        t->len = metadata__type_ref(p);
        return;
    }
    p->in.bad = true;
}

int metadata__read_registry(struct metadata_parse *p)
{
    struct metadata *md = p->md;
    size_t n = scale_get_len(&p->in);
    for (size_t i = 0; i < n && !p->in.bad; i++) {
        metadata__item(p);
        uint32_t id = scale_get_compact_u32(&p->in);
        if (!p->in.bad && id != i)
            return metadata__fail(p, "type ids are not in sequence");
        struct type t = {.plain_size = TYPE_SIZE_VARIES, .inner = TYPE_NONE};
        read_path(p, &t);
        t.params_at = (uint32_t)(p->in.p - md->blob);
        skip_params(p);
        read_definition(p, &t);
        metadata__skip_strs(p);
        md->types = metadata__append(md->types, &md->type_count, &md->type_cap, sizeof(*md->types));
        md->types[i] = t;
    }
    return p->in.bad ? metadata__fail(p, "the type registry does not decode") : 0;
}

/* ---- the check: ids, then sizes, then roles ---- */

static bool in_range(const struct metadata *md, const struct type *t)
{
    bool has_inner = t->kind == TYPE_SEQUENCE || t->kind == TYPE_ARRAY || t->kind == TYPE_COMPACT;
    if ((has_inner || t->kind == TYPE_BITS) && t->inner >= md->type_count)
        return false;
    return t->kind != TYPE_BITS || t->len < md->type_count;
}

static int check_ids(struct metadata_parse *p)
{
    const struct metadata *md = p->md;
    for (size_t i = 0; i < md->type_count; i++)
        if (!in_range(md, &md->types[i]))
            return err_set(p->err, ERR_METADATA,
                           "metadata: type %zu refers to a type that does not exist", i);
    for (size_t i = 0; i < md->field_count; i++)
        if (md->fields[i].type >= md->type_count)
            return err_set(p->err, ERR_METADATA, "metadata: a field refers to type %u of %zu",
                           md->fields[i].type, md->type_count);
    return 0;
}

static uint32_t add_sizes(uint64_t a, uint64_t b)
{
    return a == TYPE_SIZE_VARIES || b == TYPE_SIZE_VARIES || a + b >= TYPE_SIZE_VARIES
               ? TYPE_SIZE_VARIES
               : (uint32_t)(a + b);
}

/* visit[id]: 0 not visited, 1 on the current path, 2 done. Only structs, tuples, arrays and
 * compacts are followed: every other type has a size of its own or takes at least one byte, so a
 * cycle through it ends with the input. A cycle of structs alone would be a value of infinite size.
 * Returns false for that, or if types are nested too deep. */
static bool find_size(struct metadata *md, uint32_t id, uint8_t *visit, unsigned depth)
{
    struct type *t = &md->types[id];
    if (visit[id] == 2)
        return true;
    if (visit[id] == 1 || depth > METADATA_NEST_MAX)
        return false;
    visit[id] = 1;
    if (t->kind == TYPE_PRIMITIVE && prim_size[t->prim]) {
        t->plain_size = prim_size[t->prim];
    } else if (t->kind == TYPE_ARRAY) {
        if (!find_size(md, t->inner, visit, depth + 1))
            return false;
        uint64_t each = md->types[t->inner].plain_size;
        if (each != TYPE_SIZE_VARIES && each * t->len < TYPE_SIZE_VARIES)
            t->plain_size = (uint32_t)(each * t->len);
        if (t->len == 0)
            t->plain_size = 0;
    } else if (t->kind ==
               TYPE_COMPACT) { /* Compact<()>, as in MultiAddress::Index, is written as nothing */
        if (!find_size(md, t->inner, visit, depth + 1))
            return false;
        if (md->types[t->inner].plain_size == 0)
            t->plain_size = 0;
    } else if (t->kind == TYPE_COMPOSITE || t->kind == TYPE_TUPLE) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < t->count; i++) {
            uint32_t field = md->fields[t->first + i].type;
            if (!find_size(md, field, visit, depth + 1))
                return false;
            sum = add_sizes(sum, md->types[field].plain_size);
        }
        t->plain_size = sum;
    }
    visit[id] = 2;
    return true;
}

static int find_sizes(struct metadata_parse *p)
{
    struct metadata *md = p->md;
    uint8_t *visit = xcalloc(md->type_count + 1, 1);
    int rc = 0;
    for (uint32_t i = 0; i < md->type_count && rc == 0; i++)
        if (!find_size(md, i, visit, 0))
            rc = err_set(p->err, ERR_METADATA,
                         "metadata: type %u contains itself, or is nested deeper than %d", i,
                         METADATA_NEST_MAX);
    free(visit);
    return rc;
}

enum { ERA_VARIANTS = 256 }; /* Immortal, and one mortal variant per first byte */

static bool is_option(const struct metadata *md, const struct type *t)
{
    const struct type_variant *v = &md->variants[t->first];
    return t->count == 2 && v[0].index == 0 && v[0].count == 0 && v[1].index == 1 &&
           v[1].count == 1;
}

static enum type_role role_of(const struct metadata *md, const struct type *t)
{
    if (t->kind == TYPE_VARIANT) {
        if (strcmp(t->name, "Option") == 0 && is_option(md, t))
            return ROLE_OPTION;
        if (strcmp(t->name, "Result") == 0)
            return ROLE_RESULT;
        if (strcmp(t->name, "MultiAddress") == 0)
            return ROLE_MULTI_ADDRESS;
        if (strcmp(t->name, "DispatchError") == 0)
            return ROLE_DISPATCH_ERROR;
        if (strcmp(t->name, "Era") == 0 && t->count == ERA_VARIANTS)
            return ROLE_ERA;
    }
    if (t->kind == TYPE_COMPOSITE && (t->plain_size == 32 || t->plain_size == 20) &&
        strncmp(t->name, "AccountId", 9) == 0)
        return ROLE_ACCOUNT;
    if (t->kind == TYPE_COMPOSITE && t->plain_size == 32 && t->count == 1 &&
        strcmp(t->name, "U256") == 0)
        return ROLE_U256;
    return ROLE_NONE;
}

int metadata__check_registry(struct metadata_parse *p)
{
    int rc = check_ids(p);
    if (rc == 0)
        rc = find_sizes(p);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < p->md->type_count; i++)
        p->md->types[i].role = (uint8_t)role_of(p->md, &p->md->types[i]);
    return 0;
}

/* ---- look-ups ---- */

const struct type_variant *metadata__variant(const struct metadata *md, const struct type *t,
                                             uint8_t index)
{
    PRE(t->kind == TYPE_VARIANT);
    const struct type_variant *v = &md->variants[t->first];
    if (index < t->count && v[index].index == index) /* the usual case: indices without gaps */
        return &v[index];
    for (uint32_t i = 0; i < t->count; i++)
        if (v[i].index == index)
            return &v[i];
    return NULL;
}

const struct type_variant *metadata__variant_named(const struct metadata *md, const struct type *t,
                                                   const char *name)
{
    PRE(t->kind == TYPE_VARIANT);
    const struct type_variant *v = &md->variants[t->first];
    for (uint32_t i = 0; i < t->count; i++)
        if (strcmp(v[i].name, name) == 0)
            return &v[i];
    return NULL;
}

uint32_t metadata__unwrap(const struct metadata *md, uint32_t id)
{
    const struct type *t = &md->types[id];
    while ((t->kind == TYPE_COMPOSITE || t->kind == TYPE_TUPLE) &&
           t->count == 1) { /* no cycles: checked */
        id = md->fields[t->first].type;
        t = &md->types[id];
    }
    return id;
}
