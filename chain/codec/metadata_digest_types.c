/* Which types the digest of the metadata describes, and their numbers in it (metadata_digest.c). */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "metadata_internal.h"

struct stack {
    uint32_t *ids;
    size_t count, cap;
};

static void push(struct stack *s, uint32_t id)
{
    s->ids = metadata__append(s->ids, &s->count, &s->cap, sizeof(*s->ids));
    s->ids[s->count - 1] = id;
}

static void push_fields(struct stack *s, const struct metadata *md, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        push(s, md->fields[first + i].type);
}

static void push_variants(struct stack *s, const struct metadata *md, const struct type *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        const struct type_variant *v = &md->variants[t->first + i];
        push_fields(s, md, v->first, v->count);
    }
}

/* True if the type is a leaf of its own; then what it contains is on the stack. */
static bool reach(struct stack *s, const struct metadata *md, const struct type *t)
{
    switch ((enum type_kind)t->kind) {
    case TYPE_COMPOSITE:
    case TYPE_TUPLE:
        push_fields(s, md, t->first, t->count);
        return t->count > 0;
    case TYPE_VARIANT:
        push_variants(s, md, t);
        return t->count > 0;
    case TYPE_SEQUENCE:
    case TYPE_ARRAY:
        push(s, t->inner);
        return true;
    case TYPE_BITS:
        return true;
    case TYPE_PRIMITIVE:
    case TYPE_COMPACT:
        return false;
    }
    UNREACHABLE();
}

void metadata__number_types(const struct metadata *md, uint32_t *numbers)
{
    bool *seen = xcalloc(md->type_count + 1, sizeof(*seen));
    struct stack s = {0};
    push(&s, md->type_call);
    push(&s, md->type_address);
    push(&s, md->type_signature);
    for (size_t i = 0; i < md->extension_count; i++) {
        push(&s, md->extensions[i].type);
        push(&s, md->extensions[i].additional);
    }
    while (s.count) {
        uint32_t id = s.ids[--s.count];
        INVARIANT(id < md->type_count);
        if (seen[id])
            continue;
        seen[id] = true;
        if (reach(&s, md, &md->types[id]))
            numbers[id] = 0;
    }
    uint32_t next = 0;
    for (size_t id = 0; id < md->type_count; id++)
        if (numbers[id] != TYPE_NONE)
            numbers[id] = next++;
    free(s.ids);
    free(seen);
}
