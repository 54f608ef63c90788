/* What a hostile client may send to a server: floods, bombs, resets and half frames. Each ends the
 * call or the connection with the reason that is told here, a second connection is unharmed, and no
 * queue grows beyond its cap. */
#include "h2_pair.h"

struct attacked {
    struct pair pair; /* the server's side alone; what it writes is looked at */
    unsigned calls, messages, ends;
    enum grpc_status status;
};

static struct attacked now;

static void on_message(void *arg, const uint8_t *data, size_t len)
{
    (void)arg;
    (void)data;
    (void)len;
    now.messages++;
}

static void on_end(void *arg, enum grpc_status status, const char *text)
{
    (void)arg;
    (void)text;
    now.ends++;
    now.status = status;
}

static const struct grpc_call_events events = {.on_message = on_message, .on_end = on_end};

static bool on_call(struct pair *p, struct grpc_call *call)
{
    (void)p;
    now.calls++;
    grpc_call_listen(call, &events, NULL);
    return true;
}

/* ---- frames by hand ---- */

static void put_frame(struct buf *b, uint8_t type, uint8_t flags, uint32_t stream,
                      const void *payload, size_t len)
{
    const uint8_t head[9] = {(uint8_t)(len >> 16),
                             (uint8_t)(len >> 8),
                             (uint8_t)len,
                             type,
                             flags,
                             (uint8_t)(stream >> 24),
                             (uint8_t)(stream >> 16),
                             (uint8_t)(stream >> 8),
                             (uint8_t)stream};
    buf_put(b, head, sizeof(head));
    if (len)
        buf_put(b, payload, len);
}

enum {
    DATA = 0,
    HEADERS = 1,
    PRIORITY = 2,
    RST = 3,
    SETTINGS = 4,
    PING = 6,
    GOAWAY = 7,
    WINDOW_UPDATE = 8,
    CONTINUATION = 9
};
enum { END_STREAM = 1, END_HEADERS = 4 };

/* POST /test of gRPC, without an index of the table. */
static const char request[] = "\203\206\4\5/test\1\1t\17\20\20application/grpc";

static void put_call(struct buf *b, uint32_t stream)
{
    put_frame(b, HEADERS, END_HEADERS, stream, request, sizeof(request) - 1);
}

static void open_server(const struct grpc_limits *limits)
{
    static const struct grpc_limits none;
    now = (struct attacked){0};
    now.pair = (struct pair){.now = 1000, .rng = {1}, .piece_max = 16384, .on_call = on_call};
    now.pair.client.over = true; /* nobody is there */
    side_open(&now.pair, &now.pair.server, true, limits ? limits : &none);
}

static void give(const struct buf *b)
{
    struct side *s = &now.pair.server;
    for (size_t at = 0; at < b->len && !s->over; at += 16384) {
        size_t n = b->len - at < 16384 ? b->len - at : 16384;
        uint8_t *exact = xmalloc(n);
        memcpy(exact, b->data + at, n);
        h2__conn_bytes(s->conn, now.pair.now, exact, n);
        free(exact);
        if (s->woken && !s->over)
            h2__conn_turn(s->conn, now.pair.now);
        s->woken = false;
        assert_true(s->conn->out_bytes <= 1 << 20);
    }
}

static void begin(struct buf *b)
{
    buf_puts(b, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    put_frame(b, SETTINGS, 0, 0, NULL, 0);
}

/* The last GOAWAY that the server wrote with a text; "" if there is none. */
static const char *goaway(uint32_t *ret_code)
{
    static char text[128];
    const struct buf *out = &now.pair.server.out;
    text[0] = 0;
    *ret_code = 0;
    for (size_t at = 0; at + 9 <= out->len;) {
        const uint8_t *f = out->data + at;
        size_t len = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];
        if (f[3] == GOAWAY && len >= 8) {
            *ret_code =
                (uint32_t)f[13] << 24 | (uint32_t)f[14] << 16 | (uint32_t)f[15] << 8 | f[16];
            if (len > 8)
                snprintf(text, sizeof(text), "%.*s", (int)(len - 8), (const char *)f + 17);
        }
        at += 9 + len;
    }
    return text;
}

static void finish(struct buf *b)
{
    pair_close(&now.pair);
    buf_done(b);
}

static void expect_goaway(struct buf *b, uint32_t code, const char *text)
{
    uint32_t got = 0;
    give(b);
    assert_true(now.pair.server.over);
    const char *said = goaway(&got);
    assert_int_equal(got, code);
    assert_string_equal(said, text);
    finish(b);
}

/* ---- floods ---- */

/* CVE-2023-44487. What is in the same read is still handled. */
static void test_rapid_resets(void **state)
{
    (void)state;
    struct buf b = {0};
    open_server(NULL);
    begin(&b);
    for (uint32_t i = 0; i < 10000; i++) {
        put_call(&b, 1 + 2 * i);
        put_frame(&b, RST, 0, 1 + 2 * i, "\0\0\0\10", 4);
    }
    give(&b);
    assert_true(now.pair.server.over);
    assert_true(now.calls < 1000);
    assert_int_equal(now.calls, now.ends);
    finish(&b);
}

static void test_pings(void **state)
{
    (void)state;
    struct buf b = {0};
    open_server(NULL);
    begin(&b);
    for (int i = 0; i < 20000; i++)
        put_frame(&b, PING, 0, 0, "12345678", 8);
    expect_goaway(&b, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
}

static void test_settings(void **state)
{
    (void)state;
    struct buf b = {0};
    open_server(NULL);
    begin(&b);
    for (int i = 0; i < 20000; i++)
        put_frame(&b, SETTINGS, 0, 0, "\0\4\0\1\0\0", 6);
    expect_goaway(&b, NGHTTP2_ENHANCE_YOUR_CALM, "too many SETTINGS");
}

static void test_empty_data(void **state)
{
    (void)state;
    struct buf b = {0};
    open_server(NULL);
    begin(&b);
    put_call(&b, 1);
    for (int i = 0; i < 20000; i++)
        put_frame(&b, DATA, 0, 1, NULL, 0);
    expect_goaway(&b, NGHTTP2_ENHANCE_YOUR_CALM, "too many empty DATA frames");
}

/* The server has to reset each stream (MadeYouReset). */
static void test_streams_that_have_to_be_reset(void **state)
{
    (void)state;
    struct buf b = {0};
    open_server(NULL);
    begin(&b);
    for (uint32_t i = 0; i < 2000; i++) {
        put_call(&b, 1 + 2 * i);
        put_frame(&b, WINDOW_UPDATE, 0, 1 + 2 * i, "\177\377\377\377", 4); /* overflows */
    }
    expect_goaway(&b, NGHTTP2_ENHANCE_YOUR_CALM, "too many streams had to be reset");
}

static void test_bytes_without_a_message(void **state)
{
    (void)state;
    static const struct {
        uint8_t type;
        const char *payload;
        size_t len;
    } rows[] = {{PRIORITY, "\0\0\0\0\20", 5}, {200, "unknown", 7}, {WINDOW_UPDATE, "\0\0\0\1", 4}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf b = {0};
        open_server(NULL);
        begin(&b);
        put_call(&b, 1);
        for (int n = 0; n < 150000; n++)
            put_frame(&b, rows[i].type, 0, 1, rows[i].payload, rows[i].len);
        expect_goaway(&b, NGHTTP2_ENHANCE_YOUR_CALM, "too many bytes without a message");
    }
}

/* ---- headers ---- */

static void test_endless_continuations(void **state)
{
    (void)state;
    struct buf b = {0};
    open_server(NULL);
    begin(&b);
    put_frame(&b, HEADERS, 0, 1, request, 5);
    for (int i = 0; i < 1000; i++)
        put_frame(&b, CONTINUATION, 0, 1, "\0\1x\1y", 5);
    give(&b);
    assert_true(now.pair.server.over);
    assert_int_equal(now.calls, 0);
    finish(&b);
}

/* Thousands of references to one long entry of the table: the headers of one call are 12 MB. */
static void test_a_bomb_of_headers(void **state)
{
    (void)state;
    struct buf b = {0}, block = {0};
    open_server(NULL);
    begin(&b);
    buf_put(&block, request, sizeof(request) - 1);
    buf_put(&block, "\100\1a\177\241\26", 6); /* a: 3,000 bytes, into the table */
    for (int i = 0; i < 3000; i++)
        buf_put_u8(&block, 'x');
    for (int i = 0; i < 4000; i++)
        buf_put_u8(&block, 0x80 | 62);
    put_frame(&b, HEADERS, END_HEADERS, 1, block.data, block.len);
    put_call(&b, 3);
    give(&b);
    assert_false(now.pair.server.over);
    assert_int_equal(now.calls, 1); /* the second one */
    buf_done(&block);
    finish(&b);
}

static void test_a_block_of_headers_that_does_not_end(void **state)
{
    (void)state;
    struct buf b = {0};
    open_server(NULL);
    begin(&b);
    put_frame(&b, HEADERS, 0, 1, request, 5);
    give(&b);
    assert_false(now.pair.server.over);
    for (int i = 0; i < 10; i++) { /* pings keep it alive */
        buf_clear(&b);
        now.pair.now += 999;
        give(&b);
        h2__conn_turn(now.pair.server.conn, now.pair.now);
        assert_false(now.pair.server.over);
    }
    now.pair.now += 11;
    h2__conn_turn(now.pair.server.conn, now.pair.now);
    assert_true(now.pair.server.over);
    assert_string_equal(now.pair.server.why.text, "a block of headers did not end in time");
    finish(&b);
}

/* ---- windows and memory ---- */

static void test_data_beyond_the_window(void **state)
{
    (void)state;
    struct buf b = {0};
    uint8_t zeros[16384] = {0};
    struct grpc_limits limits = {.window_bytes = 65535};
    open_server(&limits);
    begin(&b);
    put_call(&b, 1);
    give(&b);
    struct grpc_call *call =
        CONTAINER_OF(list_first(&now.pair.server.conn->calls), struct grpc_call, node);
    grpc_call_pause(call, true);
    buf_clear(&b);
    for (int i = 0; i < 20; i++)
        put_frame(&b, DATA, 0, 1, zeros, sizeof(zeros));
    give(&b);
    assert_int_equal(now.messages, 0);
    assert_int_equal(now.ends, 1); /* reset for its fault */
    finish(&b);
}

/* A hundred calls promise 4 MiB each and send a byte: no memory is taken for the promise. */
static void test_promises_take_no_memory(void **state)
{
    (void)state;
    struct buf b = {0};
    open_server(NULL);
    begin(&b);
    for (uint32_t i = 0; i < 100; i++) {
        put_call(&b, 1 + 2 * i);
        put_frame(&b, DATA, 0, 1 + 2 * i, "\0\0\100\0\0x", 6);
    }
    give(&b);
    assert_int_equal(now.calls, 100);
    assert_int_equal(now.pair.server.conn->partial_bytes, 600);
    LIST_EACH (n, &now.pair.server.conn->calls)
        assert_true(CONTAINER_OF(n, struct grpc_call, node)->frames.body.cap < 1024);
    finish(&b);
}

static void test_more_calls_than_are_allowed(void **state)
{
    (void)state;
    struct buf b = {0};
    open_server(NULL);
    begin(&b);
    put_frame(&b, SETTINGS, 1, 0, NULL, 0); /* it knows our limit */
    for (uint32_t i = 0; i < 150; i++)
        put_call(&b, 1 + 2 * i);
    give(&b);
    assert_int_equal(now.calls, 100);
    finish(&b);
}

/* ---- not HTTP/2, or not gRPC ---- */

static void test_other_protocols(void **state)
{
    (void)state;
    static const char *const texts[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                        "\26\3\1\2\0\1\0\1\374",
                                        "hello, is there anyone who listens here?"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct buf b = {0};
        open_server(NULL);
        buf_puts(&b, texts[i]);
        give(&b);
        assert_true(now.pair.server.over);
        finish(&b);
    }
}

/* :status of the first HEADERS that the server wrote. */
static const char *status_written(void)
{
    static char text[16];
    const struct buf *out = &now.pair.server.out;
    text[0] = 0;
    for (size_t at = 0; at + 9 <= out->len;) {
        const uint8_t *f = out->data + at;
        size_t len = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];
        if (f[3] == HEADERS) {
            nghttp2_hd_inflater *inflater = NULL;
            nghttp2_nv nv;
            int flags = 0;
            assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
            assert_true(nghttp2_hd_inflate_hd2(inflater, &nv, &flags, f + 9, len, 1) > 0);
            if (nv.namelen == 7 && !memcmp(nv.name, ":status", 7))
                snprintf(text, sizeof(text), "%.*s", (int)nv.valuelen, (const char *)nv.value);
            nghttp2_hd_inflate_del(inflater);
            break;
        }
        at += 9 + len;
    }
    return text;
}

static void test_what_is_no_call_of_grpc(void **state)
{
    (void)state;
    static const struct {
        const char *headers, *status;
    } rows[] = {
        {"\202\206\4\5/test\1\1t\17\20\20application/grpc", "405"}, /* GET */
        {"\203\206\4\5/test\1\1t\17\20\20application/json", "415"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf b = {0};
        open_server(NULL);
        begin(&b);
        put_frame(&b, HEADERS, END_HEADERS | END_STREAM, 1, rows[i].headers,
                  strlen(rows[i].headers));
        give(&b);
        assert_int_equal(now.calls, 0);
        assert_false(now.pair.server.over);
        assert_string_equal(status_written(), rows[i].status);
        finish(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rapid_resets),
        cmocka_unit_test(test_pings),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_empty_data),
        cmocka_unit_test(test_streams_that_have_to_be_reset),
        cmocka_unit_test(test_bytes_without_a_message),
        cmocka_unit_test(test_endless_continuations),
        cmocka_unit_test(test_a_bomb_of_headers),
        cmocka_unit_test(test_a_block_of_headers_that_does_not_end),
        cmocka_unit_test(test_data_beyond_the_window),
        cmocka_unit_test(test_promises_take_no_memory),
        cmocka_unit_test(test_more_calls_than_are_allowed),
        cmocka_unit_test(test_other_protocols),
        cmocka_unit_test(test_what_is_no_call_of_grpc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
