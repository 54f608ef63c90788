/* Where System.Account stores an account's free balance: AccountInfo.data.free, on chains whose
 * balances pallet keeps it there. */
#include "base/check.h"
#include "metadata_internal.h"

#include <string.h>

enum { U128_BYTES = 16 };

/* The field of a struct with this name; *at grows by the size of the fields before it. NULL: no
 * such field, or the struct has no fixed size. */
static const struct type *field_named(const struct metadata *md, const struct type *t,
                                      const char *name, uint32_t *at)
{
    if (!t || t->kind != TYPE_COMPOSITE || t->plain_size == TYPE_SIZE_VARIES)
        return NULL;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct type_field *f = &md->fields[t->first + i];
        if (f->name && strcmp(f->name, name) == 0)
            return &md->types[f->type];
        *at += md->types[f->type].plain_size;
    }
    return NULL;
}

void metadata__resolve_account(struct metadata *md)
{
    const struct type *info = metadata__type(md, md->type_account);
    uint32_t at = 0;
    const struct type *data = field_named(md, info, "data", &at);
    const struct type *free_type = field_named(md, data, "free", &at);
    bool is_number = free_type && free_type->kind == TYPE_PRIMITIVE &&
                     (free_type->prim == PRIM_U128 || free_type->prim == PRIM_U64);
    if (is_number)
        md->account = (struct account_format){info->plain_size, at, free_type->plain_size};
}

bool metadata_account_has_free(const struct metadata *md)
{
    return md->account.free_size != 0;
}

bool metadata_account_free(const struct metadata *md, const uint8_t *info, size_t len,
                           u128 *ret_free)
{
    const struct account_format *a = &md->account;
    if (!a->free_size || len != a->size)
        return false;
    INVARIANT(a->free_at + a->free_size <= a->size);
    struct scale_in in = scale_in_of(info + a->free_at, a->free_size);
    *ret_free = a->free_size == U128_BYTES ? scale_get_u128(&in) : scale_get_u64(&in);
    return true;
}
