/* Lists for people: pallets, calls with their arguments, and the types that one call contains. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "codec_internal.h"

struct listing {
    const struct metadata *md;
    const bool *numbered; /* see metadata__type_text */
    struct buf *out;
};

static void put_type(const struct listing *l, uint32_t id)
{
    metadata__type_text(l->md, id, l->numbered, l->out);
}

/* "(dest: MultiAddress, value: u128)" */
static void put_args(const struct listing *l, uint32_t first, uint32_t count, const char *open,
                     const char *close)
{
    buf_puts(l->out, open);
    for (uint32_t i = 0; i < count; i++) {
        const struct type_field *f = &l->md->fields[first + i];
        buf_printf(l->out, "%s%s%s", i ? ", " : "", f->name ? f->name : "", f->name ? ": " : "");
        put_type(l, f->type);
    }
    buf_puts(l->out, close);
}

static void put_call(const struct listing *l, const struct metadata_pallet *p,
                     const struct type_variant *v)
{
    buf_printf(l->out, "%s.%s", p->name, v->name);
    put_args(l, v->first, v->count, "(", ")\n");
}

/* ---- the types in a call ---- */

/* Breadth first, each type once: `at` follows `count`. */
struct walk {
    const struct metadata *md;
    uint32_t *queue;
    size_t at, count;
    bool *seen;
};

static void visit(struct walk *w, uint32_t id)
{
    if (w->seen[id])
        return;
    w->seen[id] = true;
    w->queue[w->count++] = id;
}

static void visit_fields(struct walk *w, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        visit(w, w->md->fields[first + i].type);
}

/* Types that are well known, or that one line explains: their contents are not listed. */
static bool is_leaf(const struct metadata *md, uint32_t id)
{
    const struct type *t = &md->types[id];
    return id == md->type_call || t->role == ROLE_ACCOUNT || t->role == ROLE_MULTI_ADDRESS ||
           t->role == ROLE_ERA || t->role == ROLE_U256;
}

static void visit_below(struct walk *w, uint32_t id)
{
    const struct type *t = &w->md->types[id];
    if (is_leaf(w->md, id))
        return;
    switch ((enum type_kind)t->kind) {
    case TYPE_COMPOSITE:
    case TYPE_TUPLE:
        visit_fields(w, t->first, t->count);
        return;
    case TYPE_VARIANT:
        for (uint32_t i = 0; i < t->count; i++)
            visit_fields(w, w->md->variants[t->first + i].first,
                         w->md->variants[t->first + i].count);
        return;
    case TYPE_SEQUENCE:
    case TYPE_ARRAY:
    case TYPE_COMPACT:
        visit(w, t->inner);
        return;
    case TYPE_PRIMITIVE:
    case TYPE_BITS:
        return;
    }
}

static void put_variants(const struct listing *l, const struct type *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        const struct type_variant *v = &l->md->variants[t->first + i];
        bool named = v->count && l->md->fields[v->first].name;
        buf_printf(l->out, "    %s", v->name);
        if (v->count == 1 && !named) {
            buf_puts(l->out, ": ");
            put_type(l, l->md->fields[v->first].type);
        } else if (v->count) {
            put_args(l, v->first, v->count, named ? " { " : " (", named ? " }" : ")");
        }
        buf_put_u8(l->out, '\n');
    }
}

/* A composite or an enum that is listed by its name. */
static bool is_named(const struct type *t)
{
    return *t->name &&
           (t->kind == TYPE_COMPOSITE || (t->kind == TYPE_VARIANT && t->role != ROLE_OPTION));
}

static void explain(const struct listing *l, uint32_t id)
{
    const struct type *t = &l->md->types[id];
    if (!is_named(t))
        return;
    bool alone = t->count == 1 && t->kind == TYPE_COMPOSITE && !l->md->fields[t->first].name;
    buf_printf(l->out, "\n%s", t->name);
    if (l->numbered[id])
        buf_printf(l->out, "#%u", id);
    if (id == l->md->type_call) {
        buf_puts(l->out,
                 ": {\"pallet\": name, \"call\": name, \"args\": {..}}, or its bytes as 0x\n");
    } else if (t->role == ROLE_ACCOUNT) {
        buf_puts(l->out, t->plain_size == 32 ? ": SS58 text or 0x\n" : ": 0x\n");
    } else if (t->role == ROLE_U256) {
        buf_puts(l->out, ": a whole number\n");
    } else if (t->role == ROLE_ERA) {
        buf_puts(l->out, ": \"Immortal\" or {\"period\": number, \"phase\": number}\n");
    } else if (t->kind == TYPE_VARIANT) {
        buf_printf(l->out, ":%s one of\n",
                   t->role == ROLE_MULTI_ADDRESS ? " an account as SS58 or 0x, or" : "");
        put_variants(l, t);
    } else {
        put_args(l, t->first, t->count, alone ? ": " : ": { ", alone ? "\n" : " }\n");
    }
}

/* One call may contain several versions of a type (XCM's): types that share a name get their id. */
static void number_namesakes(const struct walk *w, bool *numbered)
{
    for (size_t i = 0; i < w->count; i++) {
        const struct type *a = &w->md->types[w->queue[i]];
        for (size_t k = 0; is_named(a) && k < w->count; k++)
            if (k != i && is_named(&w->md->types[w->queue[k]]) &&
                strcmp(a->name, w->md->types[w->queue[k]].name) == 0)
                numbered[w->queue[i]] = true;
    }
}

static void put_whole(const struct metadata *md, const struct metadata_pallet *p,
                      const struct type_variant *call, struct buf *out)
{
    struct walk w = {.md = md};
    bool *numbered = xcalloc(md->type_count + 1, sizeof(*numbered));
    struct listing l = {md, numbered, out};
    w.queue = xcalloc(md->type_count + 1, sizeof(*w.queue));
    w.seen = xcalloc(md->type_count + 1, sizeof(*w.seen));
    visit_fields(&w, call->first, call->count);
    while (w.at < w.count)
        visit_below(&w, w.queue[w.at++]);
    number_namesakes(&w, numbered);
    put_call(&l, p, call);
    for (size_t i = 0; i < w.count; i++)
        explain(&l, w.queue[i]);
    free(w.queue);
    free(w.seen);
    free(numbered);
}

/* ---- the three lists ---- */

static void list_pallets(const struct metadata *md, struct buf *out)
{
    for (size_t i = 0; i < md->pallet_count; i++) {
        const struct type *calls = metadata__type(md, md->pallets[i].calls);
        if (calls && calls->count)
            buf_printf(out, "%-32s %u call%s\n", md->pallets[i].name, calls->count,
                       calls->count == 1 ? "" : "s");
    }
}

static int list_one(const struct metadata *md, const struct metadata_pallet *p, const char *name,
                    struct buf *out, struct err *err)
{
    const struct type_variant *v = codec__call_named(md, p, name, err);
    if (!v)
        return ERR_ARGUMENT;
    put_whole(md, p, v, out);
    return 0;
}

int codec_list_calls(const struct metadata *md, const char *pallet, const char *call,
                     struct buf *out, struct err *err)
{
    if (!pallet) {
        list_pallets(md, out);
        return 0;
    }
    const struct metadata_pallet *p = codec__pallet_with_calls(md, pallet, err);
    if (!p)
        return ERR_ARGUMENT;
    if (call)
        return list_one(md, p, call, out, err);
    const struct type *calls = &md->types[p->calls];
    struct listing l = {md, NULL, out};
    for (uint32_t i = 0; i < calls->count; i++)
        put_call(&l, p, &md->variants[calls->first + i]);
    return 0;
}
