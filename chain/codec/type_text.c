/* Types as people read them: "u128", "Vec<RuntimeCall>", "(u32, bytes)". Leaves out what JSON does
 * not show: whether a value is compact or bounded. */
#include <string.h>

#include "metadata_internal.h"

enum { TEXT_DEPTH = 6, TEXT_LEN = 160 };

static const char *const prim_name[PRIM_COUNT] = {"bool", "char", "str",  "u8",   "u16",
                                                  "u32",  "u64",  "u128", "u256", "i8",
                                                  "i16",  "i32",  "i64",  "i128", "i256"};

struct text {
    const struct metadata *md;
    const bool *numbered; /* by id; NULL: none */
    struct buf *out;
};

static void put(struct text *x, uint32_t id, unsigned depth);

static void put_name(struct text *x, const struct type *t, const char *without)
{
    size_t id = (size_t)(t - x->md->types);
    buf_printf(x->out, "%.60s", *t->name ? t->name : without);
    if (x->numbered && x->numbered[id])
        buf_printf(x->out, "#%zu", id);
}

static void put_list(struct text *x, const struct type *t, unsigned depth)
{
    buf_put_u8(x->out, '(');
    for (uint32_t i = 0; i < t->count && x->out->len <= TEXT_LEN; i++) {
        buf_puts(x->out, i ? ", " : "");
        put(x, x->md->fields[t->first + i].type, depth + 1);
    }
    buf_put_u8(x->out, ')');
}

static bool is_u8(const struct metadata *md, uint32_t id)
{
    return md->types[id].kind == TYPE_PRIMITIVE && md->types[id].prim == PRIM_U8;
}

/* Containers that are written as their contents. */
static bool is_shell(const struct type *t)
{
    static const char *const shells[] = {"Bounded", "WeakBounded", "BTree"};
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
        if (strncmp(t->name, shells[i], strlen(shells[i])) == 0)
            return t->count == 1;
    return t->count == 1 && !*t->name;
}

static void put_composite(struct text *x, const struct type *t, unsigned depth)
{
    if (is_shell(t))
        put(x, x->md->fields[t->first].type, depth + 1);
    else
        put_name(x, t, "struct");
}

static void put_variant(struct text *x, const struct type *t, unsigned depth)
{
    if (t->role != ROLE_OPTION) {
        put_name(x, t, "enum");
        return;
    }
    buf_puts(x->out, "Option<");
    put(x, x->md->fields[x->md->variants[t->first + 1].first].type, depth + 1);
    buf_put_u8(x->out, '>');
}

static void put_sequence(struct text *x, const struct type *t, unsigned depth)
{
    if (is_u8(x->md, t->inner)) {
        buf_puts(x->out, "bytes");
        return;
    }
    buf_puts(x->out, "Vec<");
    put(x, t->inner, depth + 1);
    buf_put_u8(x->out, '>');
}

static void put_array(struct text *x, const struct type *t, unsigned depth)
{
    buf_put_u8(x->out, '[');
    put(x, t->inner, depth + 1);
    buf_printf(x->out, "; %u]", t->len);
}

static void put(struct text *x, uint32_t id, unsigned depth)
{
    const struct type *t = &x->md->types[id];
    if (depth > TEXT_DEPTH || x->out->len > TEXT_LEN) {
        buf_puts(x->out, "..");
        return;
    }
    switch ((enum type_kind)t->kind) {
    case TYPE_COMPOSITE:
        put_composite(x, t, depth);
        return;
    case TYPE_VARIANT:
        put_variant(x, t, depth);
        return;
    case TYPE_SEQUENCE:
        put_sequence(x, t, depth);
        return;
    case TYPE_ARRAY:
        put_array(x, t, depth);
        return;
    case TYPE_TUPLE:
        put_list(x, t, depth);
        return;
    case TYPE_PRIMITIVE:
        buf_puts(x->out, prim_name[t->prim]);
        return;
    case TYPE_COMPACT:
        put(x, t->inner, depth + 1);
        return;
    case TYPE_BITS:
        buf_puts(x->out, "bits");
        return;
    }
}

void metadata__type_text(const struct metadata *md, uint32_t id, const bool *numbered,
                         struct buf *out)
{
    struct buf text = {0};
    struct text x = {md, numbered, &text};
    put(&x, id, 0);
    buf_put(out, text.data, text.len);
    buf_done(&text);
}
