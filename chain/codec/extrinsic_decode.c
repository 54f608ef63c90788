/* Take extrinsics apart. The bytes come from blocks and from applications, so every length and
 * index in them is checked. */
#include <string.h>

#include "chain/codec/codec.h"
#include "extrinsic_internal.h"

static int readable(const struct metadata *md, struct err *err)
{
    const struct err *refused = &md->format.unreadable;
    return refused->code ? err_set(err, refused->code, "%s", refused->text) : 0;
}

static int malformed(struct err *err, const char *what)
{
    return err_set(err, ERR_DECODE, "extrinsic: %s", what);
}

/* The type measures the extension's bytes; then we read again the values that we need. */
static int read_extension(const struct metadata *md, size_t i, struct scale_in *in,
                          struct extrinsic_extra *extra, struct err *err)
{
    struct scale_in again = *in;
    int rc = codec_skip(md, md->extensions[i].type, in, err);
    if (rc != 0)
        return err_set(err, rc, "extrinsic: extension %.80s: %.150s", md->extensions[i].name,
                       err ? err->text : "");
    switch (md->extension_kinds[i]) {
    case EXT_MORTALITY:
        if (!era_decode(&again, &extra->era))
            return malformed(err, "the era does not decode");
        break;
    case EXT_NONCE:
        extra->nonce = scale_get_compact(&again);
        extra->has_nonce = extra->nonce <= UINT64_MAX;
        break;
    case EXT_TIP:
    case EXT_TIP_ASSET:
        extra->tip = scale_get_compact(&again);
        break;
    case EXT_METADATA_HASH:
        extra->metadata_hash_mode = scale_get_u8(&again);
        break;
    case EXT_EMPTY:
    case EXT_SPEC_VERSION:
    case EXT_TX_VERSION:
    case EXT_GENESIS:
    case EXT_NONE:
    case EXT_CONFIGURED:
    case EXT_UNKNOWN:
        break;
    }
    return 0;
}

int extrinsic__read_explicit(const struct metadata *md, struct scale_in *in,
                             struct extrinsic_extra *ret_extra, struct err *err)
{
    int rc = readable(md, err);
    *ret_extra = (struct extrinsic_extra){0};
    for (size_t i = 0; i < md->extension_count && rc == 0; i++)
        rc = read_extension(md, i, in, ret_extra, err);
    if (rc == 0 && ret_extra->nonce > UINT64_MAX)
        rc = malformed(err, "the nonce is out of range");
    return rc;
}

static int read_signer(const struct metadata *md, struct scale_in *in, struct extrinsic_view *view,
                       struct err *err)
{
    const struct extrinsic_format *format = &md->format;
    struct scale_in again = *in;
    int rc = codec_skip(md, md->type_address, in, err);
    if (rc != 0)
        return rc;
    /* For other addresses than an account id (an index, for example) the signer stays unknown, with
     * length 0. */
    if (format->address == ADDRESS_MULTI && scale_get_u8(&again) != format->address_id)
        return 0;
    view->signer_len = format->account_len;
    memcpy(view->signer, again.p, view->signer_len);
    return 0;
}

static int read_signature(const struct metadata *md, struct scale_in *in,
                          struct extrinsic_view *view, struct err *err)
{
    const struct extrinsic_format *format = &md->format;
    struct scale_in again = *in;
    int rc = codec_skip(md, md->type_signature, in, err);
    if (rc != 0)
        return rc;
    view->signature = again.p;
    view->scheme = KEY_ETHEREUM;
    if (format->signature == SIGNATURE_ETHEREUM)
        return 0;
    uint8_t index = scale_get_u8(&again);
    view->signature = again.p;
    for (int i = KEY_ED25519; i <= KEY_ECDSA; i++)
        if (format->signature_index[i] == index) {
            view->scheme = (enum key_scheme)i;
            return 0;
        }
    return malformed(err, "the signature is of a scheme that is not supported");
}

static int read_extra(const struct metadata *md, struct scale_in *in, struct extrinsic_view *view,
                      struct err *err)
{
    struct extrinsic_extra extra;
    view->extra = in->p;
    int rc = extrinsic__read_explicit(md, in, &extra, err);
    view->extra_len = (size_t)(in->p - view->extra);
    view->era = extra.era;
    view->has_nonce = extra.has_nonce;
    view->nonce = (uint64_t)extra.nonce;
    view->tip = extra.tip;
    view->metadata_hash = extra.metadata_hash_mode != 0;
    return rc;
}

static int read_signed(const struct metadata *md, struct scale_in *in, struct extrinsic_view *view,
                       struct err *err)
{
    int rc = readable(md, err);
    view->is_signed = true;
    if (rc == 0)
        rc = read_signer(md, in, view, err);
    if (rc == 0)
        rc = read_signature(md, in, view, err);
    return rc == 0 ? read_extra(md, in, view, err) : rc;
}

/* A general extrinsic (v5) has extensions but no signature before them; its extensions define the
 * origin. */
static int read_general(const struct metadata *md, struct scale_in *in, struct extrinsic_view *view,
                        struct err *err)
{
    if (scale_get_u8(in) != 0)
        return malformed(err, "a general extrinsic with another set of extensions than 0");
    return read_extra(md, in, view, err);
}

int extrinsic_decode(const struct metadata *md, const uint8_t *bytes, size_t len,
                     struct extrinsic_view *ret_view, struct err *err)
{
    struct scale_in in = scale_in_of(bytes, len);
    struct extrinsic_view view = {0};
    size_t body = scale_get_len(&in);
    if (in.bad || body != scale_left(&in))
        return malformed(err, "its length prefix does not match its length");
    uint8_t form = scale_get_u8(&in);
    unsigned version = form & ~(unsigned)EXTRINSIC_FORM;
    int rc = 0;
    if (form == (EXTRINSIC_SIGNED | EXTRINSIC_V4))
        rc = read_signed(md, &in, &view, err);
    else if (form == (EXTRINSIC_GENERAL | EXTRINSIC_V5))
        rc = read_general(md, &in, &view, err);
    else if (form & EXTRINSIC_FORM || (version != EXTRINSIC_V4 && version != EXTRINSIC_V5))
        rc = err_set(err, ERR_DECODE, "extrinsic: form 0x%02x is not supported", form);
    if (rc != 0)
        return rc;
    view.call = in.p;
    view.call_len = scale_left(&in);
    if (view.call_len < 2)
        return malformed(err, "it has no call");
    *ret_view = view;
    return 0;
}

bool extrinsic_nonce(const struct metadata *md, const uint8_t *bytes, size_t len,
                     uint64_t *ret_nonce)
{
    struct scale_in in = scale_in_of(bytes, len);
    struct extrinsic_view view = {0};
    struct err ignored;
    size_t body = scale_get_len(&in);
    if (in.bad || body != scale_left(&in) || scale_get_u8(&in) != (EXTRINSIC_SIGNED | EXTRINSIC_V4))
        return false;
    read_signed(md, &in, &view, &ignored);
    if (view.has_nonce)
        *ret_nonce = view.nonce;
    return view.has_nonce;
}

int extrinsic_view_payload(const struct metadata *md, const struct extrinsic_view *view,
                           const struct extrinsic_params *params, struct buf *ret_payload,
                           struct err *err)
{
    struct scale_in in = scale_in_of(view->extra, view->extra_len);
    struct extrinsic_extra extra;
    if (!view->is_signed || !view->signer_len)
        return malformed(err, "it is not signed by an account id");
    int rc = extrinsic__read_explicit(md, &in, &extra, err);
    if (rc != 0)
        return rc;
    if (extra.metadata_hash_mode > 1)
        return malformed(err, "its mode of CheckMetadataHash is not known");
    rc = extrinsic_verifiable(md, err);
    if (rc == 0 && extra.metadata_hash_mode)
        rc = extrinsic_metadata_hash(md, err);
    if (rc != 0)
        return rc;
    struct extrinsic_params at = *params;
    at.era = view->era;
    at.metadata_hash = extra.metadata_hash_mode != 0;
    buf_put(ret_payload, view->call, view->call_len);
    buf_put(ret_payload, view->extra, view->extra_len);
    extrinsic__put_implicit(md, &at, ret_payload);
    return 0;
}

int64_t extrinsic_time(const uint8_t *call, size_t call_len, const uint8_t set[2])
{
    if (call_len < 3 || memcmp(call, set, 2) != 0)
        return -1;
    struct scale_in in = scale_in_of(call + 2, call_len - 2);
    u128 ms = scale_get_compact(&in);
    return in.bad || ms > INT64_MAX ? -1 : (int64_t)ms;
}
