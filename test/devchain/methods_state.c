/* state_*: storage at blocks, metadata, runtime version, runtime calls. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "metadata_build.h"
#include "subs.h"

static const struct buf *metadata(struct app *a, unsigned version)
{
    struct buf *cached = &a->metadata[version - 14];
    if (!cached->len)
        metadata_build(&a->core.rt, version, cached);
    return cached;
}

static void get_metadata(struct call *c)
{
    const struct buf *m = metadata(c->app, 14);
    put_json_hex(call_begin(c), m->data, m->len);
    call_end(c);
}

static void get_runtime_version(struct call *c)
{
    struct block *b;
    if (!call_state_at(c, 0, &b))
        return;
    put_version_json(call_begin(c), c->app, b->version);
    call_end(c);
}

static void get_storage(struct call *c)
{
    struct buf key = {0}, value = {0};
    struct block *b;
    if (call_bytes(c, 0, &key) && call_state_at(c, 1, &b)) {
        bool has = storage_get(&c->app->core, b, key.data, key.len, &value);
        struct buf *out = call_begin(c);
        if (has)
            put_json_hex(out, value.data, value.len);
        else
            buf_puts(out, "null");
        call_end(c);
    }
    buf_done(&key);
    buf_done(&value);
}

static void query_storage_at(struct call *c)
{
    const json_t *keys = call_param(c, 0);
    struct block *b;
    if (!call_state_at(c, 1, &b))
        return;
    struct buf *out = call_begin(c), key = {0}, value = {0};
    buf_puts(out, "[{\"block\":");
    put_json_hex(out, b->hash, 32);
    buf_puts(out, ",\"changes\":[");
    size_t i;
    json_t *item;
    json_array_foreach(keys, i, item)
    {
        buf_clear(&key);
        buf_clear(&value);
        if (json_is_string(item))
            hex_decode(json_string_value(item), json_string_length(item), &key);
        bool has = storage_get(&c->app->core, b, key.data, key.len, &value);
        buf_puts(out, i ? ",[" : "[");
        put_json_hex(out, key.data, key.len);
        buf_put_u8(out, ',');
        if (has)
            put_json_hex(out, value.data, value.len);
        else
            buf_puts(out, "null");
        buf_put_u8(out, ']');
    }
    buf_puts(out, "]}]");
    call_end(c);
    buf_done(&key);
    buf_done(&value);
}

struct key_ref {
    const uint8_t *p;
    size_t len;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key_ref *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int d = memcmp(x->p, y->p, n);
    return d ? d : (x->len > y->len) - (x->len < y->len);
}

/* [prefix, count, start_key?, at?] */
static void get_keys_paged(struct call *c)
{
    struct buf prefix = {0}, start = {0}, keys = {0};
    struct block *b;
    size_t count = 0, given = 0;
    json_int_t limit = json_integer_value(call_param(c, 1));
    bool good = call_bytes(c, 0, &prefix) && (!call_param(c, 2) || call_bytes(c, 2, &start)) &&
                call_state_at(c, 3, &b);
    if (good) {
        storage_keys(&c->app->core, b, &keys, &count);
        struct key_ref *refs = xmalloc((count + 1) * sizeof *refs);
        const uint8_t *p = keys.data;
        for (size_t i = 0; i < count; p += 1 + *p, i++)
            refs[i] = (struct key_ref){p + 1, *p};
        qsort(refs, count, sizeof *refs, compare_keys);
        struct key_ref after = {start.data, start.len};
        struct buf *out = call_begin(c);
        buf_put_u8(out, '[');
        for (size_t i = 0; i < count && (json_int_t)given < limit; i++) {
            if (refs[i].len < prefix.len ||
                (prefix.len && memcmp(refs[i].p, prefix.data, prefix.len) != 0) ||
                (start.len && compare_keys(&refs[i], &after) <= 0))
                continue;
            if (given++)
                buf_put_u8(out, ',');
            put_json_hex(out, refs[i].p, refs[i].len);
        }
        buf_put_u8(out, ']');
        call_end(c);
        free(refs);
    }
    buf_done(&prefix);
    buf_done(&start);
    buf_done(&keys);
}

/* Runtime calls. Each reads its arguments and writes the SCALE result; false: bad arguments. */
static bool api_metadata(struct app *a, const struct block *b, struct scale_in *in, struct buf *out)
{
    (void)b;
    (void)in;
    const struct buf *m = metadata(a, 14);
    scale_put_bytes(out, m->data, m->len);
    return true;
}

static bool api_metadata_at(struct app *a, const struct block *b, struct scale_in *in,
                            struct buf *out)
{
    (void)b;
    uint32_t version = scale_get_u32(in);
    bool have = version == 14 || version == 15;
    buf_put_u8(out, have);
    if (have) {
        const struct buf *m = metadata(a, version);
        scale_put_bytes(out, m->data, m->len);
    }
    return !in->bad;
}

static bool api_metadata_versions(struct app *a, const struct block *b, struct scale_in *in,
                                  struct buf *out)
{
    (void)a;
    (void)b;
    (void)in;
    scale_put_compact(out, 2);
    scale_put_u32(out, 14);
    scale_put_u32(out, 15);
    return true;
}

static bool api_nonce(struct app *a, const struct block *b, struct scale_in *in, struct buf *out)
{
    const uint8_t *id = scale_get_bytes(in, 32);
    if (id)
        scale_put_u32(out, chain_account_at(&a->core.chain, b, id).nonce);
    return id != NULL;
}

static bool api_version(struct app *a, const struct block *b, struct scale_in *in, struct buf *out)
{
    (void)in;
    struct runtime rt = a->core.rt;
    rt.version = b->version;
    runtime_version_scale(&rt, out);
    return true;
}

/* (extrinsic as opaque bytes with its own prefix, len u32) -> RuntimeDispatchInfo */
static bool api_query_info(struct app *a, const struct block *b, struct scale_in *in,
                           struct buf *out)
{
    (void)b;
    struct tx *tx = NULL;
    const uint8_t *at = in->p;
    if (tx_decode(at, scale_left(in), &tx) != TX_DECODE_OK) {
        tx_unref(tx);
        return false;
    }
    scale_put_compact(out, tx->ref_time);
    scale_put_compact(out, tx->proof_size);
    buf_put_u8(out, 0);
    scale_put_u128(out, runtime_fee_of(&a->core.rt, tx->len));
    tx_unref(tx);
    return true;
}

/* (call, len u32) -> RuntimeDispatchInfo. Fees here depend on the length alone. */
static bool api_query_call_info(struct app *a, const struct block *b, struct scale_in *in,
                                struct buf *out)
{
    (void)b;
    size_t args = scale_left(in);
    if (args <= sizeof(uint32_t))
        return false;
    struct scale_in last = scale_in_of(in->p + args - sizeof(uint32_t), sizeof(uint32_t));
    uint32_t len = scale_get_u32(&last);
    scale_put_compact(out, 0);
    scale_put_compact(out, 0);
    buf_put_u8(out, 0);
    scale_put_u128(out, runtime_fee_of(&a->core.rt, len));
    return true;
}

static const struct {
    const char *name;
    bool (*fn)(struct app *a, const struct block *b, struct scale_in *in, struct buf *out);
} APIS[] = {
    {"Metadata_metadata", api_metadata},
    {"Metadata_metadata_at_version", api_metadata_at},
    {"Metadata_metadata_versions", api_metadata_versions},
    {"AccountNonceApi_account_nonce", api_nonce},
    {"Core_version", api_version},
    {"TransactionPaymentApi_query_info", api_query_info},
    {"TransactionPaymentCallApi_query_call_info", api_query_call_info},
};

static bool api_of(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(APIS); i++)
        if (strcmp(APIS[i].name, name) == 0)
            return true;
    return false;
}

bool runtime_api_call(struct app *a, const struct block *b, const char *name,
                      const struct buf *args, struct buf *out)
{
    struct scale_in in = scale_in_of(args->data, args->len);
    for (size_t i = 0; i < ARRAY_LEN(APIS); i++)
        if (strcmp(APIS[i].name, name) == 0)
            return APIS[i].fn(a, b, &in, out);
    return false;
}

static void state_call(struct call *c)
{
    const char *name = json_string_value(call_param(c, 0));
    struct buf args = {0}, result = {0};
    struct block *b;
    if (!call_bytes(c, 1, &args) || !call_state_at(c, 2, &b)) {
        buf_done(&args);
        return;
    }
    bool found = api_of(name), good = found && runtime_api_call(c->app, b, name, &args, &result);
    if (good) {
        put_json_hex(call_begin(c), result.data, result.len);
        call_end(c);
    } else {
        struct buf text = {0};
        buf_printf(
            &text,
            found ? "Client error: Execution failed: bad arguments of %.100s"
                  : "Client error: Execution failed: Other: Exported method %.100s is not found",
            name ? name : "");
        call_error(c, 4003, buf_str(&text), NULL);
        buf_done(&text);
    }
    buf_done(&args);
    buf_done(&result);
}

static void unsubscribe_runtime(struct call *c)
{
    subs_stop(c, SUB_RUNTIME);
}

static void unsubscribe_storage(struct call *c)
{
    subs_stop(c, SUB_STORAGE);
}

const struct method METHODS_STATE[] = {
    {"state_getMetadata", get_metadata},
    {"state_getRuntimeVersion", get_runtime_version},
    {"chain_getRuntimeVersion", get_runtime_version},
    {"state_getStorage", get_storage},
    {"state_getStorageAt", get_storage},
    {"state_queryStorageAt", query_storage_at},
    {"state_getKeysPaged", get_keys_paged},
    {"state_call", state_call},
    {"state_callAt", state_call},
    {"state_subscribeRuntimeVersion", subs_start_runtime},
    {"chain_subscribeRuntimeVersion", subs_start_runtime},
    {"state_unsubscribeRuntimeVersion", unsubscribe_runtime},
    {"chain_unsubscribeRuntimeVersion", unsubscribe_runtime},
    {"state_subscribeStorage", subs_start_storage},
    {"state_unsubscribeStorage", unsubscribe_storage},
    {NULL, NULL},
};
