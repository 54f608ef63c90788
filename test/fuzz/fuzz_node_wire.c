/* JSON values of a node through every reader of the node door: nothing is read that was not there,
 * and a header that is complete has a hash. The items of an array are also events of chainHead_v1,
 * one after another. */
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "fuzz_runtime.h"
#include "node_internal.h"
#include "node_transaction.h"
#include "rpc_window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char header[] =
    "{\"parentHash\":\"0x0101010101010101010101010101010101010101010101010101010101010101\","
    "\"number\":\"0x00000014\",\"stateRoot\":"
    "\"0x0202020202020202020202020202020202020202020202020202020202020202\",\"extrinsicsRoot\":"
    "\"0x0303030303030303030303030303030303030303030303030303030303030303\",\"digest\":{\"logs\":["
    "\"0x06\"]}"
    "}";

static void read_all(const struct jv *value)
{
    uint8_t hash[32];
    uint64_t number;
    struct wire_header h;
    struct buf bytes = {0};
    wire_hash(value, hash);
    wire_number(value, &number);
    if (!wire_bytes(value, &bytes))
        INVARIANT(bytes.len == 0);
    if (wire_header(value, &h) && !h.complete) {
        static const uint8_t zero[32];
        INVARIANT(memcmp(h.head.hash, zero, 32) == 0);
    }
    wire_account(value, NULL, &number, NULL);
    struct node_balance balance;
    wire_account(value, fuzz_runtime(), &number, &balance);
    buf_done(&bytes);
}

/* What is unpinned was pinned, and is not any more; the last final block stays. */
static void follow(const struct jv *events)
{
    struct window w = {0};
    struct buf pins = {0};
    for (const struct jv *e = jv_first(events); e; e = jv_next(events, e)) {
        struct transaction_event t;
        transaction_event_read(e, &t);
        buf_clear(&pins);
        if (!window_take(&w, e, &pins))
            break;
        INVARIANT(pins.len % 32 == 0);
        for (size_t i = 0; i < pins.len; i += 32)
            INVARIANT(!window_find(&w, pins.data + i));
        if (w.count) {
            INVARIANT(w.count <= WINDOW_MAX && window_find(&w, w.best));
            INVARIANT(window_find(&w, w.finalized)->final);
            const struct window_block *b = window_at(&w, 0);
            INVARIANT(!b || b->height == 0);
            window_runtime(&w);
        }
    }
    buf_done(&pins);
    window_done(&w);
}

/* The input as the bytes of System.Account. */
static void account(const uint8_t *data, size_t size)
{
    struct node_balance balance;
    uint64_t nonce;
    struct buf hex = {0};
    hex_put_0x(&hex, data, size);
    struct jv value = {
        .text = (const char *)hex.data, .len = (uint32_t)hex.len, .span = 1, .kind = JV_STRING};
    bool good = wire_account(&value, fuzz_runtime(), &nonce, &balance);
    INVARIANT(good == (size >= 4));
    buf_done(&hex);
}

/* The input as JSON, and as changes to a header that is good. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[sizeof(header)];
    struct jv_doc doc = {0};
    const struct jv *value = jv_read(&doc, (const char *)data, size, NULL);
    if (value) {
        read_all(value);
        follow(value);
    }
    account(data, size);
    memcpy(text, header, sizeof(text));
    for (size_t i = 0; i + 2 < size && i < 24; i += 3)
        text[(size_t)(data[i] << 8 | data[i + 1]) % (sizeof(text) - 1)] = (char)data[i + 2];
    value = jv_read(&doc, text, strlen(text), NULL);
    if (value)
        read_all(value);
    jv_done(&doc);
    return 0;
}
