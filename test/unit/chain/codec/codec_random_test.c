/* For every type of every runtime's registry: random values are measured exactly, cut or lengthened
 * ones are not taken for whole, JSON out is JSON, and calls come back from it byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "codec_internal.h"
#include "support_vectors.h"

static const char *const runtimes[] = {"v14-polkadot",  "v15-asset-hub-polkadot",
                                       "v16-substrate", "sh-solochain-evm",
                                       "v15-kusama",    "v14-substrate-contracts-node"};

enum { CALM_DEPTH = 12, GIVE_UP_DEPTH = 30 }; /* from then on the shortest way out; none */

struct maker {
    const struct metadata *md;
    struct rng rng;
    struct buf *out;
    bool gave_up; /* the type has no value as shallow as that */
};

static void make(struct maker *m, uint32_t id, unsigned depth);

static uint32_t below(struct maker *m, uint32_t n)
{
    return (uint32_t)rng_below(&m->rng, n);
}

static void make_fields(struct maker *m, uint32_t first, uint32_t count, unsigned depth)
{
    for (uint32_t i = 0; i < count && !m->gave_up; i++)
        make(m, m->md->fields[first + i].type, depth + 1);
}

static void make_variant(struct maker *m, const struct type *t, unsigned depth)
{
    const struct type_variant *v = &m->md->variants[t->first];
    if (t->count == 0) {
        m->gave_up = true;
        return;
    }
    uint32_t pick = below(m, t->count);
    for (uint32_t i = 0; i < t->count && depth > CALM_DEPTH; i++)
        if (v[i].count < v[pick].count)
            pick = i;
    buf_put_u8(m->out, v[pick].index);
    make_fields(m, v[pick].first, v[pick].count, depth);
}

static void make_bytes(struct maker *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_put_u8(m->out, (uint8_t)rng_next(&m->rng));
}

static void make_prim(struct maker *m, enum type_prim prim)
{
    static const char *const texts[] = {"",
                                        "plain",
                                        "quote \" and \\ and \t",
                                        "\x01\x1f",
                                        "h\xc3\xa9llo \xf0\x9f\x8c\x8d",
                                        "0x",
                                        "0x12",
                                        "0xyz"};
    if (prim == PRIM_STR)
        scale_put_str(m->out, texts[below(m, 8)]);
    else if (prim == PRIM_BOOL)
        buf_put_u8(m->out, (uint8_t)below(m, 2));
    else if (prim == PRIM_CHAR)
        scale_put_u32(m->out, below(m, 0xd800));
    else
        make_bytes(m, codec__prim_size(prim));
}

static void make_compact(struct maker *m, const struct type *t)
{
    enum type_prim prim;
    if (t->plain_size == 0)
        return;
    if (!codec__compact_prim(m->md, t, &prim)) {
        m->gave_up = true;
        return;
    }
    unsigned bits = codec__prim_size(prim) * 8;
    u128 v = (u128)rng_next(&m->rng) << 64 | rng_next(&m->rng);
    scale_put_compact(m->out, (v & codec__prim_max(prim)) >> below(m, bits));
}

static void make_bits(struct maker *m, const struct type *t)
{
    unsigned store = codec__store_bits(m->md, t);
    uint32_t count = store * below(m, 4); /* whole elements: padding would not come back */
    scale_put_compact(m->out, count);
    make_bytes(m, count / 8);
}

static void make(struct maker *m, uint32_t id, unsigned depth)
{
    const struct type *t = &m->md->types[id];
    if (depth > GIVE_UP_DEPTH || m->out->len > 20000)
        m->gave_up = true;
    if (m->gave_up)
        return;
    uint32_t count = depth > CALM_DEPTH ? 0 : below(m, 4);
    if (t->kind == TYPE_SEQUENCE && codec__is_bytes(m->md, t) && below(m, 2)) {
        make_prim(m, PRIM_STR);
        return;
    }
    switch ((enum type_kind)t->kind) {
    case TYPE_COMPOSITE:
    case TYPE_TUPLE:
        make_fields(m, t->first, t->count, depth);
        return;
    case TYPE_VARIANT:
        make_variant(m, t, depth);
        return;
    case TYPE_ARRAY:
        for (uint32_t i = 0; i < t->len && !m->gave_up; i++)
            make(m, t->inner, depth + 1);
        return;
    case TYPE_SEQUENCE:
        scale_put_compact(m->out, count);
        for (uint32_t i = 0; i < count; i++)
            make(m, t->inner, depth + 1);
        return;
    case TYPE_PRIMITIVE:
        make_prim(m, (enum type_prim)t->prim);
        return;
    case TYPE_COMPACT:
        make_compact(m, t);
        return;
    case TYPE_BITS:
        make_bits(m, t);
        return;
    }
}

static void assert_measured(const struct metadata *md, uint32_t id, const struct buf *value)
{
    struct err err = {0};
    struct scale_in in = scale_in_of(value->data, value->len);
    int rc = codec_skip(md, id, &in, &err);
    if (rc != 0)
        fprintf(stderr, "type %u: %s\n", id, err.text);
    assert_int_equal(rc, 0);
    assert_int_equal(scale_left(&in), 0);
    if (value->len) { /* the last byte belongs to it */
        in = scale_in_of(value->data, value->len - 1);
        assert_int_equal(codec_skip(md, id, &in, &err), ERR_DECODE);
        assert_true(in.bad);
    }
}

static void assert_is_json(const struct metadata *md, uint32_t id, const struct buf *value)
{
    struct err err = {0};
    struct buf text = {0};
    struct scale_in in = scale_in_of(value->data, value->len);
    json_error_t at;
    assert_int_equal(codec_to_json(md, id, &in, &text, &err), 0);
    assert_int_equal(scale_left(&in), 0);
    json_t *json = json_loadb((const char *)text.data, text.len,
                              JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &at);
    if (!json)
        fprintf(stderr, "type %u: %s: %s\n", id, at.text, buf_str(&text));
    assert_non_null(json);
    json_decref(json);
    buf_done(&text);
}

static void values_of_every_type(void **state)
{
    (void)state;
    size_t made = 0, types = 0;
    for (size_t r = 0; r < sizeof(runtimes) / sizeof(runtimes[0]); r++) {
        struct metadata *md = vectors_metadata(runtimes[r]);
        struct buf value = {0};
        struct maker m = {.md = md, .out = &value};
        m.rng.state = 1000 + r;
        types += md->type_count;
        for (uint32_t id = 0; id < md->type_count; id++) {
            buf_clear(&value);
            m.gave_up = false;
            make(&m, id, 0);
            if (m.gave_up)
                continue;
            assert_measured(md, id, &value);
            assert_is_json(md, id, &value);
            made++;
        }
        buf_done(&value);
        metadata_free(md);
    }
    assert_true(made > types * 9 / 10);
}

static void assert_comes_back(const struct metadata *md, const struct metadata_pallet *pallet,
                              const struct type_variant *call, const struct buf *value)
{
    struct err err = {0};
    struct buf text = {0}, again = {0};
    char name[160];
    assert_int_equal(codec_call_to_json(md, value->data, value->len, &text, &err), 0);
    json_t *json = json_loadb((const char *)text.data, text.len, 0, NULL);
    json_t *inner = json_object_get(json, pallet->name);
    json_t *args =
        json_is_object(inner) ? json_incref(json_object_get(inner, call->name)) : json_array();
    if (call->count == 1 && !md->fields[call->first].name) /* shown alone */
        args = json_pack("[o]", args);
    char *args_text = json_dumps(args, 0);
    json_decref(args);
    snprintf(name, sizeof(name), "%s.%s", pallet->name, call->name);
    int rc = codec_call_from_json(md, name, args_text, &again, &err);
    if (rc != 0)
        fprintf(stderr, "%s\n%s\n", err.text, args_text);
    assert_int_equal(rc, 0);
    assert_int_equal(again.len, value->len);
    assert_memory_equal(again.data, value->data, value->len);
    free(args_text);
    json_decref(json);
    buf_done(&text);
    buf_done(&again);
}

/* What people are shown is the same bytes again, and those are shown in the same way. */
static void assert_readable_comes_back(const struct metadata *md, const struct buf *value)
{
    struct err err = {0};
    struct buf text = {0}, bytes = {0}, text_again = {0};
    assert_int_equal(codec_call_to_readable(md, value->data, value->len, &text, &err), 0);
    int rc = codec_from_json(md, md->type_call, buf_str(&text), &bytes, &err);
    if (rc != 0)
        fprintf(stderr, "%s\n%s\n", err.text, buf_str(&text));
    assert_int_equal(rc, 0);
    assert_int_equal(bytes.len, value->len);
    assert_memory_equal(bytes.data, value->data, value->len);
    assert_int_equal(codec_call_to_readable(md, bytes.data, bytes.len, &text_again, &err), 0);
    assert_string_equal(buf_str(&text_again), buf_str(&text));
    buf_done(&text);
    buf_done(&bytes);
    buf_done(&text_again);
}

static void make_call(struct maker *m, const struct metadata_pallet *pallet,
                      const struct type_variant *call)
{
    buf_clear(m->out);
    m->gave_up = false;
    buf_put_u8(m->out, pallet->index);
    buf_put_u8(m->out, call->index);
    make_fields(m, call->first, call->count, 2);
}

static void calls_come_back_from_json(void **state)
{
    (void)state;
    size_t done = 0, calls = 0;
    for (size_t r = 0; r < sizeof(runtimes) / sizeof(runtimes[0]); r++) {
        struct metadata *md = vectors_metadata(runtimes[r]);
        struct buf value = {0};
        struct maker m = {.md = md, .out = &value};
        m.rng.state = 2000 + r;
        for (size_t i = 0; i < md->pallet_count; i++) {
            const struct type *t = metadata__type(md, md->pallets[i].calls);
            for (uint32_t k = 0; t && k < t->count * 4; k++, calls++) {
                const struct type_variant *call = &md->variants[t->first + k / 4];
                make_call(&m, &md->pallets[i], call);
                if (m.gave_up)
                    continue;
                assert_measured(md, md->type_call, &value);
                assert_comes_back(md, &md->pallets[i], call, &value);
                assert_readable_comes_back(md, &value);
                done++;
            }
        }
        buf_done(&value);
        metadata_free(md);
    }
    assert_true(done > calls * 9 / 10);
}

/* Random damage: an answer, never a crash or a hang, and JSON exactly when it measures. */
static void damaged_calls_are_answered(void **state)
{
    (void)state;
    struct metadata *md = vectors_metadata("v14-polkadot");
    struct buf value = {0}, text = {0};
    struct err err = {0};
    struct maker m = {.md = md, .out = &value};
    m.rng.state = 77;
    for (int round = 0; round < 3000; round++) {
        buf_clear(&value);
        buf_clear(&text);
        m.gave_up = false;
        make(&m, md->type_call, 0);
        if (value.len == 0)
            continue;
        for (uint32_t n = 1 + below(&m, 3); n > 0; n--)
            value.data[below(&m, (uint32_t)value.len)] = (uint8_t)rng_next(&m.rng);
        int rc = codec_check_call(md, value.data, value.len, &err);
        assert_int_equal(codec_call_to_json(md, value.data, value.len, &text, &err), rc);
        assert_true(rc == 0 || rc == ERR_DECODE);
        assert_true(rc == 0 || text.len == 0);
    }
    buf_done(&value);
    buf_done(&text);
    metadata_free(md);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_every_type),
        cmocka_unit_test(calls_come_back_from_json),
        cmocka_unit_test(damaged_calls_are_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
