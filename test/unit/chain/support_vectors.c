#include "support_vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"

static void stop(const char *what, const char *detail)
{
    fprintf(stderr, "test vectors: %s: %s\n", what, detail);
    abort();
}

json_t *vectors_load(const char *name)
{
    char path[512];
    json_error_t at;
    snprintf(path, sizeof(path), "%s/%s", VECTORS_DIR, name);
    json_t *vectors = json_load_file(path, 0, &at);
    if (!vectors)
        stop(path, at.text);
    return vectors;
}

void vectors_metadata_bytes(const char *name, struct buf *out)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s.scale", METADATA_DIR, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        stop(path, "cannot be opened");
    buf_clear(out);
    size_t n;
    do {
        n = fread(buf_grow(out, 65536), 1, 65536, f);
        out->len += n;
    } while (n > 0);
    fclose(f);
}

struct metadata *vectors_metadata(const char *name)
{
    struct buf bytes = {0};
    struct metadata *md = NULL;
    struct err err = {0};
    vectors_metadata_bytes(name, &bytes);
    if (metadata_parse(bytes.data, bytes.len, &md, &err) != 0)
        stop(name, err.text);
    buf_done(&bytes);
    return md;
}

void vectors_hex(const json_t *object, const char *key, struct buf *out)
{
    const char *text = json_string_value(json_object_get(object, key));
    buf_clear(out);
    if (!text || !hex_decode(text, strlen(text), out))
        stop(key, "is not hexadecimal");
}

static void hash_of(const json_t *object, const char *key, uint8_t out[32])
{
    struct buf bytes = {0};
    vectors_hex(object, key, &bytes);
    if (bytes.len != 32)
        stop(key, "is not 32 bytes");
    memcpy(out, bytes.data, 32);
    buf_done(&bytes);
}

void vectors_params(const json_t *vectors, const json_t *runtime, struct extrinsic_params *out)
{
    const json_t *chain = json_object_get(vectors, "chain");
    json_int_t period = json_integer_value(json_object_get(chain, "era_period"));
    json_int_t anchor = json_integer_value(json_object_get(chain, "era_anchor"));
    memset(out, 0, sizeof(*out));
    hash_of(chain, "genesis", out->genesis);
    hash_of(chain, "era_block_hash", out->era_block_hash);
    out->era = era_mortal((uint32_t)period, (uint64_t)anchor);
    out->nonce = (uint64_t)json_integer_value(json_object_get(chain, "nonce"));
    out->tip = (u128)json_integer_value(json_object_get(chain, "tip"));
    out->spec_version = (uint32_t)json_integer_value(json_object_get(runtime, "spec_version"));
    out->transaction_version =
        (uint32_t)json_integer_value(json_object_get(runtime, "transaction_version"));
}

struct keypair *vectors_key(const char *scheme)
{
    static const char alith[] =
        "0x5fb92d6e98884f76de468fa3f6278f8807c48bebc13595d45af5bdc4da702133";
    enum key_scheme s;
    struct keypair *key = NULL;
    struct err err = {0};
    if (!key_scheme_parse(scheme, &s))
        stop(scheme, "is not a scheme");
    if (keypair_from_uri(s == KEY_ETHEREUM ? alith : "//Alice", s, &key, &err) != 0)
        stop(scheme, err.text);
    return key;
}
