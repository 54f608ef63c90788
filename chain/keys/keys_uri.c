/* Secret URIs as Substrate's tools read them: PHRASE-or-0xSEED, then junctions (/soft, //hard),
 * then ///password to the end. An empty phrase is the well-known development phrase. The password
 * applies to a phrase; a 0x seed ignores it, as in Substrate's tools. Error texts name positions,
 * never contents. */
#include <sodium.h>
#include <string.h>

#include "chain/codec/hash.h"
#include "chain/codec/scale.h"
#include "keys_scheme.h"

enum { JUNCTION_MAX = 255 };

static const char dev_phrase[] =
    "bottom drive obey lake curtain smoke basket hold race lonely fit walk";

struct secret_uri {
    const char *phrase;
    size_t phrase_len;
    const char *path; /* "" or begins with a slash; no junction is empty */
    size_t path_len;
    const char *password; /* "" if there is none */
    bool is_seed;         /* the phrase is 0x and hexadecimal digits */
};

/* Read the next junction at *at: its text without slashes. Returns its number of slashes (1 or 2),
 * 0 at the end, -1 if it has no text. */
static int next_junction(const char **at, const char *end, const char **ret_text, size_t *ret_len)
{
    const char *p = *at;
    int slashes = 0;
    if (p == end)
        return 0;
    while (p < end && *p == '/' && slashes < 2) {
        p++;
        slashes++;
    }
    const char *text = p;
    while (p < end && *p != '/')
        p++;
    if (p == text)
        return -1;
    *ret_text = text;
    *ret_len = (size_t)(p - text);
    *at = p;
    return slashes;
}

static int split(const char *uri, struct secret_uri *u, struct err *err)
{
    const char *password = strstr(uri, "///");
    const char *end = password ? password : uri + strlen(uri);
    *u = (struct secret_uri){.phrase = uri, .phrase_len = strcspn(uri, "/")};
    u->path = uri + u->phrase_len;
    u->path_len = (size_t)(end - u->path);
    u->password = password ? password + 3 : "";
    if (u->phrase_len == 0) {
        u->phrase = dev_phrase;
        u->phrase_len = sizeof(dev_phrase) - 1;
    }
    u->is_seed = u->phrase_len >= 2 && u->phrase[0] == '0' && u->phrase[1] == 'x';

    const char *at = u->path, *text;
    size_t len;
    for (int step = 1, slashes; (slashes = next_junction(&at, end, &text, &len)) != 0; step++) {
        if (slashes < 0)
            return err_set(err, ERR_KEY,
                           "derivation step %d of the secret is empty: remove its slash", step);
        if (len > JUNCTION_MAX)
            return err_set(err, ERR_KEY,
                           "derivation step %d of the secret is longer than %d characters", step,
                           JUNCTION_MAX);
    }
    return 0;
}

/* A number as Rust parses a u64: a plus sign and leading zeros are allowed. */
static bool parse_u64(const char *text, size_t len, uint64_t *ret_v)
{
    uint64_t v = 0;
    if (len > 1 && *text == '+') {
        text++;
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (unsigned)(text[i] - '0'), &v))
            return false;
    }
    *ret_v = v;
    return true;
}

/* The chain code is the SCALE encoding of the number or text, padded with zeros, or its blake2b-256
 * if it is longer than a chain code. */
static void junction_of(const char *text, size_t len, bool hard, struct key_junction *ret)
{
    uint8_t encoded[2 + JUNCTION_MAX];
    size_t n = 0;
    uint64_t number;
    if (parse_u64(text, len, &number)) {
        for (; n < 8; n++)
            encoded[n] = (uint8_t)(number >> (8 * n));
    } else {
        uint32_t prefix = len < 64 ? (uint32_t)len << 2 : (uint32_t)len << 2 | 1;
        encoded[n++] = (uint8_t)prefix;
        if (len >= 64)
            encoded[n++] = (uint8_t)(prefix >> 8);
        memcpy(encoded + n, text, len);
        n += len;
    }
    *ret = (struct key_junction){.hard = hard};
    if (n > sizeof(ret->chain_code))
        hash_blake2b_256(encoded, n, ret->chain_code);
    else
        memcpy(ret->chain_code, encoded, n);
    sodium_memzero(encoded, sizeof(encoded));
}

static int parse_seed(const struct secret_uri *u, uint8_t seed[KEY_SEED_LEN], struct err *err)
{
    size_t n = 0;
    if (u->phrase_len != 2 + 2 * KEY_SEED_LEN ||
        sodium_hex2bin(seed, KEY_SEED_LEN, u->phrase + 2, 2 * KEY_SEED_LEN, NULL, &n, NULL) != 0 ||
        n != KEY_SEED_LEN)
        return err_set(err, ERR_KEY, "the 0x seed of the secret must have %d hexadecimal digits",
                       2 * KEY_SEED_LEN);
    return 0;
}

static int derive_path(const struct secret_uri *u, const struct key_scheme_ops *ops,
                       uint8_t *secret, struct err *err)
{
    const char *at = u->path, *text;
    size_t len;
    for (int step = 1, slashes;
         (slashes = next_junction(&at, u->path + u->path_len, &text, &len)) > 0; step++) {
        struct key_junction junction;
        if (slashes == 1 && !ops->has_soft)
            return err_set(err, ERR_KEY,
                           "derivation step %d of the secret is soft (one slash), which %s does "
                           "not have: write two slashes",
                           step, key_scheme_name(ops->scheme));
        junction_of(text, len, slashes == 2, &junction);
        bool ok = ops->derive(secret, &junction);
        sodium_memzero(&junction, sizeof(junction));
        if (!ok)
            return err_set(err, ERR_KEY,
                           "derivation step %d of the secret gives no %s key: use another", step,
                           key_scheme_name(ops->scheme));
    }
    return 0;
}

static int expand_seed(const struct key_scheme_ops *ops, const uint8_t *seed, uint8_t *secret,
                       struct err *err)
{
    if (!ops->expand(seed, secret))
        return err_set(err, ERR_KEY, "the secret is not a valid %s key: generate another one",
                       key_scheme_name(ops->scheme));
    return 0;
}

static int from_substrate_uri(const struct secret_uri *u, const struct key_scheme_ops *ops,
                              uint8_t *seed, uint8_t *secret, struct err *err)
{
    int rc = u->is_seed ? parse_seed(u, seed, err)
                        : keys__bip39_mini_secret(u->phrase, u->phrase_len, u->password, seed, err);
    if (rc == 0)
        rc = expand_seed(ops, seed, secret, err);
    return rc ? rc : derive_path(u, ops, secret, err);
}

/* Ethereum wallets derive with BIP32 and have no Substrate junctions, so a phrase needs a path. A
 * default path could sign for another account than the user means. */
static int from_ethereum_uri(const struct secret_uri *u, const struct key_scheme_ops *ops,
                             uint8_t *seed, uint8_t *secret, struct err *err)
{
    uint8_t *key = seed + 64;
    int rc;
    if (u->is_seed && u->path_len)
        return err_set(
            err, ERR_KEY,
            "a 0x seed of scheme ethereum is the key itself: remove the derivation path");
    if (!u->is_seed && !u->path_len)
        return err_set(err, ERR_KEY,
                       "a phrase of scheme ethereum needs a path: append /m/44'/60'/0'/0/0");
    if (u->is_seed) {
        rc = parse_seed(u, key, err);
    } else {
        rc = keys__bip39_seed(u->phrase, u->phrase_len, u->password, seed, err);
        if (rc == 0)
            rc = keys__bip32_derive(seed, u->path, u->path_len, key, err);
    }
    return rc ? rc : expand_seed(ops, key, secret, err);
}

int keys__secret_from_uri(const char *uri, enum key_scheme scheme, uint8_t *secret, struct err *err)
{
    const struct key_scheme_ops *ops = keys__key_ops(scheme);
    struct secret_uri u;
    int rc = split(uri, &u, err);
    if (rc != 0)
        return rc;
    uint8_t *seed = keys__secret_alloc(64 + KEY_SEED_LEN);
    rc = ops->derive ? from_substrate_uri(&u, ops, seed, secret, err)
                     : from_ethereum_uri(&u, ops, seed, secret, err);
    sodium_free(seed);
    return rc;
}

bool keys__is_development(const char *uri)
{
    size_t len = strcspn(uri, "/");
    return len == 0 || (len == sizeof(dev_phrase) - 1 && !strncmp(uri, dev_phrase, len));
}
