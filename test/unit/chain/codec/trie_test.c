/* The root of a block's extrinsics agrees with real blocks and with another implementation, in both
 * layouts (test/vectors/roots.json). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/hex.h"
#include "chain/codec/trie.h"
#include "support_vectors.h"

static void expect_root(const json_t *vector, const char *key, enum trie_layout layout,
                        const struct trie_item *items, size_t count)
{
    struct buf want = {0};
    uint8_t root[32];
    vectors_hex(vector, key, &want);
    trie_ordered_root(layout, items, count, root);
    assert_int_equal(want.len, 32);
    assert_memory_equal(root, want.data, 32);
    buf_done(&want);
}

/* Item i is the byte i & 255, 1 + i * 7 % 90 times. */
static void lists(void **state)
{
    static uint8_t bytes[256][90];
    json_t *lists = json_object_get(*state, "lists"), *x;
    size_t at;
    for (size_t i = 0; i < 256; i++)
        memset(bytes[i], (int)i, sizeof(bytes[i]));
    assert_true(json_array_size(lists) > 0);
    json_array_foreach(lists, at, x)
    {
        size_t count = (size_t)json_integer_value(json_object_get(x, "count"));
        struct trie_item *items = xcalloc(count, sizeof(*items));
        for (size_t i = 0; i < count; i++)
            items[i] = (struct trie_item){bytes[i & 255], 1 + i * 7 % 90};
        expect_root(x, "v0", TRIE_V0, items, count);
        expect_root(x, "v1", TRIE_V1, items, count);
        free(items);
    }
}

static void blocks(void **state)
{
    json_t *blocks = json_object_get(*state, "blocks"), *x, *text;
    size_t at, i;
    assert_true(json_array_size(blocks) > 0);
    json_array_foreach(blocks, at, x)
    {
        json_t *list = json_object_get(x, "extrinsics");
        size_t count = json_array_size(list);
        struct buf *bytes = xcalloc(count, sizeof(*bytes)), header = {0}, root = {0};
        struct trie_item *items = xcalloc(count, sizeof(*items));
        json_array_foreach(list, i, text)
        {
            const char *hex = json_string_value(text);
            assert_true(hex_decode(hex, strlen(hex), &bytes[i]));
            items[i] = (struct trie_item){bytes[i].data, bytes[i].len};
        }
        expect_root(x, "v0", TRIE_V0, items, count);
        expect_root(x, "v1", TRIE_V1, items, count);
        vectors_hex(x, "header", &header);
        vectors_hex(x, "v0", &root);
        /* The chain's own, behind the parent, the number and the root of the state. */
        assert_memory_equal(header.data + 32 + 1 + 32, root.data, 32);
        for (i = 0; i < count; i++)
            buf_done(&bytes[i]);
        free(bytes);
        free(items);
        buf_done(&header);
        buf_done(&root);
    }
}

/* The root of nothing is that of an empty trie: the hash of one zero. */
static void nothing(void **state)
{
    static const char empty[] =
        "0x03170a2e7597b7b7e3d84c05391d139a62b157e78786d8c082f29dcf4c111314";
    struct buf text = {0};
    uint8_t root[32];
    (void)state;
    for (enum trie_layout layout = TRIE_V0; layout <= TRIE_V1; layout++) {
        trie_ordered_root(layout, NULL, 0, root);
        buf_clear(&text);
        hex_put_0x(&text, root, 32);
        assert_string_equal(buf_str(&text), empty);
    }
    buf_done(&text);
}

static int load(void **state)
{
    *state = vectors_load("roots.json");
    return 0;
}

static int unload(void **state)
{
    json_decref(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),
        cmocka_unit_test(blocks),
        cmocka_unit_test(nothing),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
