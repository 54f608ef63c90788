/* SCALE values for people: only what differs from the plain form (codec_json.c). encode.c accepts
 * both. */
#include <string.h>

#include "chain/codec/extrinsic.h"
#include "chain/codec/ss58.h"
#include "codec_internal.h"
#include "u256.h"

/* Accounts of 32 bytes are shown as SS58 if the chain names its prefix. */
static bool has_address(const struct codec *c, const struct type *t)
{
    return t->role == ROLE_ACCOUNT && t->plain_size == 32 && c->prefix >= 0;
}

static int print_account(struct codec *c)
{
    const uint8_t *id = NULL;
    char address[SS58_TEXT_MAX];
    int rc = codec__take(c, 32, &id);
    if (rc != 0)
        return rc;
    ss58_encode(id, (uint16_t)c->prefix, address);
    buf_printf(c->out, "\"%s\"", address);
    return 0;
}

static int print_u256(struct codec *c)
{
    const uint8_t *value = NULL;
    char digits[U256_TEXT];
    int rc = codec__take(c, U256_BYTES, &value);
    if (rc == 0)
        buf_printf(c->out, "\"%s\"", u256__text(value, digits));
    return rc;
}

/* The next variant, without reading it. NULL: none. */
static const struct type_variant *peek(const struct codec *c, const struct type *t)
{
    return scale_left(c->in) ? metadata__variant(c->md, t, *c->in->p) : NULL;
}

static bool is_account_alone(const struct codec *c, const struct type *t)
{
    const struct type_variant *v = peek(c, t);
    return v && v->count == 1 && strcmp(v->name, "Id") == 0 &&
           has_address(c, &c->md->types[c->md->fields[v->first].type]);
}

/* The calls' type of `v`, a variant of RuntimeCall. NULL: it does not agree with the list of
 * pallets. */
static const struct type *calls_of(const struct codec *c, const struct type_variant *v)
{
    const struct metadata_pallet *p =
        v && v->count == 1 ? metadata__pallet_named(c->md, v->name) : NULL;
    if (!p || p->index != v->index || p->calls != c->md->fields[v->first].type)
        return NULL;
    const struct type *t = &c->md->types[p->calls];
    return t->kind == TYPE_VARIANT ? t : NULL;
}

static int print_args(struct codec *c, const struct type_variant *call)
{
    if (call->count == 0) {
        buf_puts(c->out, "{}");
        return 0;
    }
    if (!codec__enter(&c->path, call->name, CODEC_NO_INDEX))
        return codec__fail(c, c->in->p, "nested deeper than %d levels", CODEC_DEPTH_MAX);
    int rc = codec__print_fields(c, call->first, call->count, false);
    codec__leave(&c->path);
    return rc;
}

static int print_call(struct codec *c, const struct type *t)
{
    const struct type_variant *pallet = NULL;
    const struct type_variant *call = NULL;
    int rc = codec__variant(c, t, &pallet);
    if (rc != 0)
        return rc;
    if (!codec__enter(&c->path, pallet->name, CODEC_NO_INDEX))
        return codec__fail(c, c->in->p, "nested deeper than %d levels", CODEC_DEPTH_MAX);
    rc = codec__variant(c, calls_of(c, pallet), &call);
    if (rc == 0) {
        buf_printf(c->out, "{\"pallet\":\"%s\",\"call\":\"%s\",\"args\":", pallet->name,
                   call->name);
        rc = print_args(c, call);
        buf_put_u8(c->out, '}');
    }
    codec__leave(&c->path);
    return rc;
}

/* The bytes of a sequence as text, if codec_from_json turns that text into the same bytes. */
static bool text_ahead(const struct codec *c, struct scale_in *ret_after, const uint8_t **ret_text,
                       uint32_t *ret_len)
{
    *ret_after = *c->in;
    size_t len = scale_get_len(ret_after);
    if (ret_after->bad || len == 0)
        return false;
    *ret_text = scale_get_bytes(ret_after, len);
    *ret_len = (uint32_t)len;
    return (len < 2 || memcmp(*ret_text, "0x", 2) != 0) &&
           codec__is_plain_text(*ret_text, *ret_len);
}

static bool print_text_bytes(struct codec *c)
{
    struct scale_in after;
    const uint8_t *text = NULL;
    uint32_t len = 0;
    if (!text_ahead(c, &after, &text, &len))
        return false;
    *c->in = after;
    codec__print_text(c->out, text, len);
    return true;
}

static bool print_era(struct codec *c)
{
    struct scale_in after = *c->in;
    struct era era;
    if (!era_decode(&after, &era) || era.period == 0)
        return false;
    *c->in = after;
    buf_printf(c->out, "{\"period\":%u,\"phase\":%u}", era.period, era.phase);
    return true;
}

bool codec__print_readable(struct codec *c, uint32_t id, int *ret_rc)
{
    const struct type *t = &c->md->types[id];
    *ret_rc = 0;
    if (has_address(c, t) || t->role == ROLE_U256) {
        *ret_rc = t->role == ROLE_U256 ? print_u256(c) : print_account(c);
        return true;
    }
    if (t->kind == TYPE_SEQUENCE && codec__is_bytes(c->md, t))
        return print_text_bytes(c);
    if (t->kind != TYPE_VARIANT)
        return false;
    if (t->role == ROLE_ERA)
        return print_era(c);
    if (t->role == ROLE_MULTI_ADDRESS && is_account_alone(c, t)) {
        c->in->p++;
        *ret_rc = print_account(c);
        return true;
    }
    if (id != c->md->type_call || !calls_of(c, peek(c, t)))
        return false;
    *ret_rc = print_call(c, t);
    return true;
}
