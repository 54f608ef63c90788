/* In which shape does the older JSON-RPC give what the newer one answered? Headers and metadata
 * come as the hex of SCALE; values that both give alike are copied. */
#include <inttypes.h>

#include "base/hex.h"
#include "chain/codec/scale.h"
#include "rpc_ways.h"

/* A SCALE header as the older JSON. One with fields of its own is given without its digest, so the
 * block's hash cannot be computed from it. */
bool rpc__way_put_header(const struct jv *hex, struct buf *out)
{
    struct buf bytes = {0}, logs = {0};
    bool good = jv_hex(hex, &bytes);
    struct scale_in in = scale_in_of(bytes.data, bytes.len);
    const uint8_t *parent = scale_get_bytes(&in, 32);
    uint64_t number = (uint64_t)scale_get_compact(&in);
    const uint8_t *state = scale_get_bytes(&in, 32), *extrinsics = scale_get_bytes(&in, 32);
    good = good && !in.bad;
    size_t count = scale_get_len(&in);
    for (size_t i = 0; i < count && !in.bad; i++) {
        const uint8_t *from = in.p;
        uint8_t kind = scale_get_u8(&in);
        enum { OTHER = 0, CONSENSUS = 4, SEAL = 5, PRE_RUNTIME = 6, UPDATED = 8 };
        if (kind == CONSENSUS || kind == SEAL || kind == PRE_RUNTIME)
            scale_get_bytes(&in, 4);
        else if (kind != OTHER && kind != UPDATED)
            in.bad = true;
        if (kind != UPDATED)
            scale_get_bytes(&in, scale_get_len(&in));
        buf_puts(&logs, i ? ",\"" : "\"");
        hex_put_0x(&logs, from, (size_t)(in.p - from));
        buf_puts(&logs, "\"");
    }
    bool whole = !in.bad && scale_left(&in) == 0;
    if (good) {
        buf_puts(out, "{\"parentHash\":\"");
        hex_put_0x(out, parent, 32);
        buf_printf(out, "\",\"number\":\"0x%" PRIx64 "\",\"stateRoot\":\"", number);
        hex_put_0x(out, state, 32);
        buf_puts(out, "\",\"extrinsicsRoot\":\"");
        hex_put_0x(out, extrinsics, 32);
        buf_printf(out, "\"%s%s%s}", whole ? ",\"digest\":{\"logs\":[" : "",
                   whole ? buf_str(&logs) : "", whole ? "]}" : "");
    }
    buf_done(&bytes);
    buf_done(&logs);
    return good;
}

void rpc__way_put_raw(struct buf *out, const struct jv *v)
{
    size_t len;
    const char *text = jv_raw(v, &len);
    buf_put(out, text, len);
}

/* state_getMetadata answers what is in the bytes that the runtime's call returns. */
bool rpc__way_put_metadata(const struct jv *hex, struct buf *out)
{
    struct buf bytes = {0};
    bool good = jv_hex(hex, &bytes);
    struct scale_in in = scale_in_of(bytes.data, bytes.len);
    size_t len = scale_get_len(&in);
    const uint8_t *inner = scale_get_bytes(&in, len);
    good = good && !in.bad;
    if (good) {
        buf_puts(out, "\"");
        hex_put_0x(out, inner, len);
        buf_puts(out, "\"");
    }
    buf_done(&bytes);
    return good;
}

bool rpc__way_header_height(const struct jv *hex, uint64_t *ret_height)
{
    struct buf bytes = {0};
    bool good = jv_hex(hex, &bytes);
    struct scale_in in = scale_in_of(bytes.data, bytes.len);
    scale_get_bytes(&in, 32); /* parent */
    *ret_height = (uint64_t)scale_get_compact(&in);
    good = good && !in.bad && *ret_height < UINT64_C(1) << 62;
    buf_done(&bytes);
    return good;
}

void rpc__way_put_function(const struct rpc_way *w, struct buf *out)
{
    if (w->kind == WAY_METADATA) {
        buf_puts(out, ",\"Metadata_metadata\",\"0x\"]");
        return;
    }
    buf_puts(out, ",");
    rpc__way_put_raw(out, rpc__way_given(w, 0));
    buf_puts(out, ",");
    rpc__way_put_raw(out, rpc__way_given(w, 1));
    buf_puts(out, "]");
}
