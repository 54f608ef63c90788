/* What method handlers use: parameters in, one answer out. */
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "chain/codec/ss58.h"
#include "rpc_call.h"

void put_json_str(struct buf *b, const char *s)
{
    buf_put_u8(b, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            buf_printf(b, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            buf_printf(b, "\\u%04x", (unsigned)*s);
        else
            buf_put_u8(b, (uint8_t)*s);
    }
    buf_put_u8(b, '"');
}

void put_json_hex(struct buf *b, const void *data, size_t len)
{
    buf_put_u8(b, '"');
    hex_put_0x(b, data, len);
    buf_put_u8(b, '"');
}

void rpc__put_id(struct buf *b, const json_t *id)
{
    if (json_is_integer(id)) {
        buf_printf(b, "%lld", (long long)json_integer_value(id));
        return;
    }
    char *text = id ? json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    buf_puts(b, text ? text : "null");
    free(text);
}

struct buf *call_begin(struct call *c)
{
    buf_puts(c->out, "{\"jsonrpc\":\"2.0\",\"id\":");
    rpc__put_id(c->out, c->id);
    buf_puts(c->out, ",\"result\":");
    return c->out;
}

void call_end(struct call *c)
{
    buf_put_u8(c->out, '}');
}

void call_result(struct call *c, const char *json)
{
    buf_puts(call_begin(c), json);
    call_end(c);
}

void call_result_json(struct call *c, json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    call_result(c, text ? text : "null");
    free(text);
    json_decref(value);
}

void rpc__put_error(struct buf *out, const json_t *id, int code, const char *message,
                    const char *data)
{
    buf_puts(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    rpc__put_id(out, id);
    buf_printf(out, ",\"error\":{\"code\":%d,\"message\":", code);
    put_json_str(out, message);
    if (data) {
        buf_puts(out, ",\"data\":");
        put_json_str(out, data);
    }
    buf_puts(out, "}}");
}

void call_error(struct call *c, int code, const char *message, const char *data)
{
    rpc__put_error(c->out, c->id, code, message, data);
}

const json_t *call_param(const struct call *c, size_t i)
{
    const json_t *v = json_array_get(c->params, i);
    return json_is_null(v) ? NULL : v;
}

/* The position is the one in the text of the parameters; ours is approximate, clients must not read
 * it. */
static bool bad_param(struct call *c, const char *what)
{
    char text[160];
    snprintf(text, sizeof text, "%s at line 1 column %d", what, 2);
    call_error(c, RPC_INVALID_PARAMS, "Invalid params", text);
    return false;
}

/* Hex bytes. Blanks inside are skipped; an odd count makes the first digit a byte of its own. */
static bool parse_hex(struct call *c, const char *s, struct buf *out)
{
    if (s[0] != '0' || s[1] != 'x')
        return bad_param(c, "0x prefix is missing");
    struct buf digits = {0};
    for (const char *p = s + 2; *p; p++)
        if (!strchr(" \r\n\t", *p))
            buf_put_u8(&digits, (uint8_t)*p);
    bool good;
    if (digits.len % 2) {
        struct buf even = {0};
        buf_put_u8(&even, '0');
        buf_put(&even, digits.data, digits.len);
        good = hex_decode((const char *)even.data, even.len, out);
        buf_done(&even);
    } else {
        good = hex_decode(buf_str(&digits), digits.len, out);
    }
    buf_done(&digits);
    return good || bad_param(c, "invalid hex character");
}

bool call_bytes(struct call *c, size_t i, struct buf *out)
{
    const json_t *v = json_array_get(c->params, i);
    if (!v) {
        call_error(c, RPC_INVALID_PARAMS, "Invalid params", "No more params");
        return false;
    }
    const char *s = json_string_value(v);
    if (!s)
        return bad_param(c, "invalid type: expected a 0x-prefixed hex string");
    size_t len = json_string_length(v);
    size_t before = out->len;
    if (len >= 2 && s[0] == '0' && s[1] == 'x' && len % 2 == 0 && hex_decode(s, len, out))
        return true;
    out->len = before;
    return parse_hex(c, s, out);
}

static bool parse_hash(struct call *c, const json_t *v, uint8_t out[32])
{
    const char *s = json_string_value(v);
    if (!s)
        return bad_param(c, "invalid type: expected a 0x-prefixed hex string with length of 64");
    if (s[0] != '0' || s[1] != 'x')
        return bad_param(c, "0x prefix is missing");
    if (!hex_decode_fixed(s, json_string_length(v), out, 32))
        return bad_param(c, "invalid length, expected a 0x-prefixed hex string with length of 64");
    return true;
}

bool call_hash(struct call *c, size_t i, uint8_t out[32])
{
    return parse_hash(c, json_array_get(c->params, i), out);
}

bool call_block(struct call *c, size_t i, struct block **ret_block)
{
    const json_t *v = call_param(c, i);
    uint8_t hash[32];
    *ret_block = c->app->core.chain.best;
    if (!v)
        return true;
    if (!parse_hash(c, v, hash))
        return false;
    *ret_block = chain_block(&c->app->core.chain, hash);
    return true;
}

bool call_state_at(struct call *c, size_t i, struct block **ret_block)
{
    if (!call_block(c, i, ret_block))
        return false;
    if (*ret_block)
        return true;
    struct buf text = {0};
    buf_printf(&text, "Client error: UnknownBlock: Header was not found in the database: %s",
               json_string_value(call_param(c, i)));
    call_error(c, 4003, buf_str(&text), NULL);
    buf_done(&text);
    return false;
}

bool call_account(struct call *c, const json_t *v, uint8_t id[32])
{
    const char *s = json_string_value(v);
    size_t len = 0;
    uint8_t got[ACCOUNT_ID_MAX];
    if (!s || s[0] == '0' || !account_id_parse(s, got, &len) || len != 32)
        return bad_param(c, "Invalid ss58 address");
    memcpy(id, got, 32);
    return true;
}
