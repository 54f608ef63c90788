/* Parts that occur in every section of the metadata: names, type references, deprecations. */
#include "metadata_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

void metadata__item(struct metadata_parse *p)
{
    p->item = p->in.p;
}

int metadata__fail(struct metadata_parse *p, const char *what)
{
    p->in.bad = true;
    return err_set(p->err, ERR_METADATA, "metadata V%u of %zu bytes: %s (in the item at byte %zu)",
                   p->md->version, p->md->blob_len, what, (size_t)(p->item - p->md->blob));
}

void *metadata__append(void *array, size_t *count, size_t *cap, size_t size)
{
    PRE(*count <= *cap && size > 0);
    if (*count == *cap)
        array = xgrow(array, cap, size);
    (*count)++;
    return array;
}

/* Only identifiers: they are printed into JSON and messages without escaping. */
static bool is_name(const uint8_t *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (s[i] <= 0x20 || s[i] >= 0x7f || s[i] == '"' || s[i] == '\\')
            return false;
    return true;
}

/* Move the text one byte down, over its length prefix, to make room for a NUL: names need no
 * allocation. The prefix is not read again. */
const char *metadata__str(struct metadata_parse *p)
{
    size_t len = scale_get_len(&p->in);
    const uint8_t *s = scale_get_bytes(&p->in, len);
    if (p->in.bad || (len && !s))
        return NULL;
    if (len && !is_name(s, len)) {
        p->in.bad = true;
        return NULL;
    }
    size_t at = (size_t)(p->in.p - p->md->blob) - len - 1;
    uint8_t *to = p->md->blob + at;
    memmove(to, to + 1, len);
    to[len] = 0;
    return (const char *)to;
}

void metadata__skip_str(struct metadata_parse *p)
{
    scale_get_bytes(&p->in, scale_get_len(&p->in));
}

void metadata__skip_strs(struct metadata_parse *p)
{
    size_t n = scale_get_len(&p->in);
    for (size_t i = 0; i < n && !p->in.bad; i++)
        metadata__skip_str(p);
}

uint32_t metadata__type_ref(struct metadata_parse *p)
{
    return scale_get_compact_u32(&p->in);
}

uint32_t metadata__option_type_ref(struct metadata_parse *p)
{
    return scale_get_bool(&p->in) ? metadata__type_ref(p) : TYPE_NONE;
}

/* Not deprecated, deprecated without a note, or { note, Option<since> }. V16 only. */
void metadata__skip_deprecation(struct metadata_parse *p)
{
    if (p->md->version < 16)
        return;
    uint8_t how = scale_get_u8(&p->in);
    if (how == 2) {
        metadata__skip_str(p);
        if (scale_get_bool(&p->in))
            metadata__skip_str(p);
    } else if (how > 2) {
        p->in.bad = true;
    }
}

/* A map from variant index to deprecation. V16 only. */
void metadata__skip_enum_deprecation(struct metadata_parse *p)
{
    if (p->md->version < 16)
        return;
    size_t n = scale_get_len(&p->in);
    for (size_t i = 0; i < n && !p->in.bad; i++) {
        scale_get_u8(&p->in);
        metadata__skip_deprecation(p);
    }
}
