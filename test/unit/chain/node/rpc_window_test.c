/* The blocks that chainHead_v1_follow announces: which are pinned, which is the best, which is
 * final, and which are to be unpinned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "rpc_window.h"

static void hash_of(unsigned block, uint8_t out[32])
{
    memset(out, 0, 32);
    out[0] = (uint8_t)(block >> 8);
    out[31] = (uint8_t)block;
}

static const char *hex_of(unsigned block)
{
    static char texts[4][80];
    static unsigned at;
    char *text = texts[at++ % 4];
    snprintf(text, 80, "\"0x%02x%060x%02x\"", block >> 8, 0, block & 255);
    return text;
}

static bool take(struct window *w, struct buf *pins, const char *text)
{
    struct jv_doc doc = {0};
    const struct jv *event = jv_read(&doc, text, strlen(text), NULL);
    assert_non_null(event);
    bool good = window_take(w, event, pins);
    jv_done(&doc);
    return good;
}

static bool add(struct window *w, unsigned block, unsigned parent, const char *runtime)
{
    char text[400];
    struct buf pins = {0};
    snprintf(text, sizeof(text),
             "{\"event\":\"newBlock\",\"blockHash\":%s,\"parentBlockHash\":%s,\"newRuntime\":%s}",
             hex_of(block), hex_of(parent), runtime ? runtime : "null");
    bool good = take(w, &pins, text);
    assert_int_equal(pins.len, 0);
    return good;
}

static bool best(struct window *w, unsigned block)
{
    char text[200];
    struct buf pins = {0};
    snprintf(text, sizeof(text), "{\"event\":\"bestBlockChanged\",\"bestBlockHash\":%s}",
             hex_of(block));
    return take(w, &pins, text);
}

static bool final(struct window *w, struct buf *pins, unsigned block, const char *pruned)
{
    char text[600];
    snprintf(text, sizeof(text),
             "{\"event\":\"finalized\",\"finalizedBlockHashes\":[%s],\"prunedBlockHashes\":[%s]}",
             hex_of(block), pruned);
    return take(w, pins, text);
}

static void start(struct window *w)
{
    char text[600];
    struct buf pins = {0};
    *w = (struct window){0};
    snprintf(text, sizeof(text),
             "{\"event\":\"initialized\",\"finalizedBlockHashes\":[%s,%s],"
             "\"finalizedBlockRuntime\":{\"type\":\"valid\",\"spec\":{\"specVersion\":1}}}",
             hex_of(9), hex_of(10));
    assert_true(take(w, &pins, text));
}

static void expect_at(const struct window *w, int64_t height, unsigned block)
{
    uint8_t hash[32];
    hash_of(block, hash);
    const struct window_block *b = window_at(w, height);
    assert_non_null(b);
    assert_memory_equal(b->hash, hash, 32);
}

static void the_best_chain(void **state)
{
    (void)state;
    struct window w;
    uint8_t hash[32];
    start(&w);
    expect_at(&w, 0, 10);
    expect_at(&w, -1, 9);
    assert_null(window_at(&w, -2));
    assert_null(window_at(&w, 1));
    hash_of(10, hash);
    assert_memory_equal(w.best, hash, 32); /* until another one is announced */
    assert_true(add(&w, 11, 10, NULL));
    assert_true(add(&w, 211, 10, NULL));
    assert_true(add(&w, 212, 211, NULL));
    assert_null(window_at(&w, 1));
    assert_true(best(&w, 11));
    expect_at(&w, 1, 11);
    assert_true(best(&w, 212));
    expect_at(&w, 1, 211);
    expect_at(&w, 2, 212);
    window_done(&w);
}

static void the_runtime_of_the_best_block(void **state)
{
    (void)state;
    struct window w;
    struct buf pins = {0};
    start(&w);
    assert_string_equal(window_runtime(&w), "{\"specVersion\":1}");
    assert_true(add(&w, 11, 10, "{\"type\":\"valid\",\"spec\":{\"specVersion\":2}}"));
    assert_true(add(&w, 12, 11, NULL));
    assert_true(add(&w, 211, 10, "{\"type\":\"invalid\",\"error\":\"no\"}"));
    assert_string_equal(window_runtime(&w), "{\"specVersion\":1}");
    assert_true(best(&w, 12));
    assert_string_equal(window_runtime(&w), "{\"specVersion\":2}");
    assert_true(add(&w, 212, 11, "{\"specVersion\":3}")); /* chopsticks */
    assert_true(best(&w, 212));
    assert_string_equal(window_runtime(&w), "{\"specVersion\":3}");
    assert_true(best(&w, 211)); /* and back */
    assert_string_equal(window_runtime(&w), "{\"specVersion\":1}");
    assert_true(best(&w, 12));
    assert_true(final(&w, &pins, 11, ""));
    for (unsigned i = 12; i < 12 + WINDOW_FINAL_MAX; i++) {
        assert_true(add(&w, i + 1, i, NULL));
        assert_true(best(&w, i + 1));
        assert_true(final(&w, &pins, i, ""));
    }
    assert_string_equal(window_runtime(&w), "{\"specVersion\":2}"); /* its block is unpinned */
    buf_done(&pins);
    window_done(&w);
}

/* A list that repeats a block more often than blocks are pinned would be looked up at length. */
static void no_more_than_is_pinned(void **state)
{
    (void)state;
    enum { MOST = WINDOW_MAX };
    for (size_t count = MOST; count <= MOST + 1; count++) {
        struct window w;
        struct buf pins = {0}, list = {0}, many = {0}, pruned = {0};
        start(&w);
        for (size_t i = 0; i < count; i++)
            buf_printf(&list, "%s%s", i ? "," : "", hex_of(10));
        buf_printf(&many, "{\"event\":\"finalized\",\"finalizedBlockHashes\":[%s]}",
                   buf_str(&list));
        buf_printf(&pruned,
                   "{\"event\":\"finalized\",\"finalizedBlockHashes\":[%s],"
                   "\"prunedBlockHashes\":[%s]}",
                   hex_of(10), buf_str(&list));
        assert_int_equal(take(&w, &pins, buf_str(&many)), count == MOST);
        assert_int_equal(take(&w, &pins, buf_str(&pruned)), count == MOST);
        buf_done(&many);
        buf_done(&pruned);
        buf_done(&pins);
        buf_done(&list);
        window_done(&w);
    }
}

static void pins_are_given_back(void **state)
{
    (void)state;
    struct window w;
    struct buf pins = {0};
    uint8_t hash[32];
    start(&w);
    assert_true(add(&w, 11, 10, NULL));
    assert_true(add(&w, 211, 10, NULL));
    assert_true(add(&w, 212, 211, NULL));
    assert_true(best(&w, 11));
    char pruned[300];
    snprintf(pruned, sizeof(pruned), "%s,%s,%s", hex_of(211), hex_of(212), hex_of(77));
    assert_true(final(&w, &pins, 11, pruned));
    assert_int_equal(pins.len, 64); /* 77 was never announced */
    hash_of(211, hash);
    assert_memory_equal(pins.data, hash, 32);
    assert_null(window_find(&w, hash));
    buf_clear(&pins);
    unsigned unpinned = 0;
    for (unsigned i = 11; i < 11 + 2 * WINDOW_FINAL_MAX; i++) {
        assert_true(add(&w, i + 1, i, NULL));
        assert_true(best(&w, i + 1));
        assert_true(final(&w, &pins, i + 1, ""));
        unpinned += (unsigned)(pins.len / 32);
        buf_clear(&pins);
        assert_true(w.count <= WINDOW_FINAL_MAX);
    }
    assert_int_equal(unpinned, 3 + 2 * WINDOW_FINAL_MAX - WINDOW_FINAL_MAX); /* 9, 10, 11, .. */
    assert_null(window_at(&w, 1));
    buf_done(&pins);
    window_done(&w);
}

static void contradictions(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"event\":\"initialized\"}",
        "{\"event\":\"initialized\",\"finalizedBlockHashes\":[]}",
        "{\"event\":\"initialized\",\"finalizedBlockHashes\":[\"0x11\"]}",
        "{\"event\":\"newBlock\"}",
        "{\"event\":\"bestBlockChanged\"}",
        "{\"event\":\"finalized\"}",
        "{\"event\":\"finalized\",\"finalizedBlockHashes\":[7]}",
    };
    struct window w;
    struct buf pins = {0};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        start(&w);
        assert_false(take(&w, &pins, bad[i]));
        window_done(&w);
    }
    start(&w);
    assert_false(add(&w, 12, 11, NULL)); /* without its parent */
    assert_false(best(&w, 12));
    assert_false(final(&w, &pins, 12, ""));
    assert_true(add(&w, 11, 10, NULL));
    assert_false(add(&w, 11, 10, NULL)); /* twice */
    assert_true(take(&w, &pins, "{\"event\":\"of another version\"}"));
    buf_done(&pins);
    window_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_chain),      cmocka_unit_test(the_runtime_of_the_best_block),
        cmocka_unit_test(pins_are_given_back), cmocka_unit_test(no_more_than_is_pinned),
        cmocka_unit_test(contradictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
