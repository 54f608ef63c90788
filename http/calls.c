/* What can be called, and what a transaction calls: as the chain's metadata names it. */
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/codec.h"
#include "chain/codec/extrinsic.h"

/* ---- what can be called ---- */

static void put_types(struct buf *out, const struct buf *types)
{
    json_t *text = json_stringn((const char *)types->data, types->len);
    char *shown = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
    buf_printf(out, "{\"types\":%s}", shown ? shown : "\"\"");
    free(shown);
    json_decref(text);
}

void api__calls(struct ask *k)
{
    static const struct api_param list[] = {{"pallet", API_TEXT}, {"call", API_TEXT}};
    const struct metadata *md = k->api->metadata(k->api->arg);
    struct conn_param given[ARRAY_LEN(list)] = {{0}};
    struct buf out = {0}, types = {0};
    struct err err = {0};
    if (!api__take_params(k, list, ARRAY_LEN(list), given))
        return;
    if (!md) {
        api__no_chain(k, "no node of the chain answers now, so its calls are not known");
        return;
    }
    const char *pallet = given[0].data, *call = given[1].data;
    int rc = 0;
    if (call) {
        rc = codec_list_calls(md, pallet, call, &types, &err);
        put_types(&out, &types);
    } else {
        buf_puts(&out, pallet ? "{\"calls\":" : "{\"pallets\":");
        rc = codec_list_calls_json(md, pallet, &out, &err);
        buf_puts(&out, "}");
    }
    if (rc)
        api__problem(k, 404, "not_found", NULL, err.text);
    else
        api__answer(k, 200, NULL, (const char *)out.data, out.len);
    buf_done(&out);
    buf_done(&types);
}

/* ---- what a transaction calls ---- */

/* The call of an extrinsic; false: this runtime has another form. */
static bool call_of(const struct metadata *md, const struct buf *bytes, const uint8_t **ret,
                    size_t *ret_len)
{
    struct extrinsic_view view;
    struct err err = {0};
    if (extrinsic_decode(md, bytes->data, bytes->len, &view, &err))
        return false;
    *ret = view.call;
    *ret_len = view.call_len;
    return true;
}

static json_t *readable(const struct metadata *md, const uint8_t *call, size_t len)
{
    struct buf text = {0};
    struct err err = {0};
    json_t *value = NULL;
    if (codec_call_to_readable(md, call, len, &text, &err) == 0)
        value = json_loadb((const char *)text.data, text.len, JSON_ALLOW_NUL, NULL);
    buf_done(&text);
    return value ? value : json_null();
}

/* Replaces `extrinsic` by its call, and decodes the call. */
static void decode(const struct metadata *md, json_t *transaction)
{
    const char *hex = json_string_value(json_object_get(transaction, "call"));
    const char *whole = json_string_value(json_object_get(transaction, "extrinsic"));
    const char *given = hex ? hex : whole;
    struct buf bytes = {0}, shown = {0};
    if (given && md && hex_decode(given, strlen(given), &bytes)) {
        const uint8_t *call = bytes.data;
        size_t len = bytes.len;
        if (hex || call_of(md, &bytes, &call, &len)) {
            hex_put_0x(&shown, call, len);
            json_object_set_new(transaction, "call", json_string(buf_str(&shown)));
            json_object_set_new(transaction, "decoded", readable(md, call, len));
        }
    }
    json_object_del(transaction, "extrinsic");
    buf_done(&bytes);
    buf_done(&shown);
}

void api__extend_transaction(struct ask *k, const char *text, size_t len)
{
    json_t *transaction = json_loadb(text, len, JSON_DECODE_ANY, NULL);
    INVARIANT(json_is_object(transaction));
    decode(k->api->metadata(k->api->arg), transaction);
    char *out = json_dumps(transaction, JSON_COMPACT);
    api__answer(k, 200, NULL, out, strlen(out));
    free(out);
    json_decref(transaction);
}
