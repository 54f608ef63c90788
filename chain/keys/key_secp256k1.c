/* The schemes ecdsa and ethereum: secp256k1 with recoverable, deterministic (RFC 6979) signatures,
 * which are r || s || recovery id. The two differ in the hash of the message (blake2b-256,
 * keccak-256) and in the account id (blake2b-256 of the compressed key, the last 20 bytes of
 * keccak-256 of the point). */
#include <pthread.h>
#include <secp256k1_recovery.h>
#include <sodium.h>
#include <string.h>

#include "base/check.h"
#include "chain/codec/crypto_init.h"
#include "chain/codec/hash.h"
#include "keys_scheme.h"
#include "secp256k1_ctx.h"

enum { COMPRESSED_LEN = 33, POINT_LEN = 65, RECOVERY_AT = 64, ETHEREUM_ID_LEN = 20 };

static secp256k1_context *context;
static pthread_once_t context_once = PTHREAD_ONCE_INIT;

static void context_make(void)
{
    uint8_t seed[32];
    crypto_init();
    // NOLINTNEXTLINE(misc-redundant-expression): the library's two flags overlap on purpose
    context = secp256k1_context_create(SECP256K1_CONTEXT_SIGN | SECP256K1_CONTEXT_VERIFY);
    INVARIANT(context);
    randombytes_buf(seed, sizeof(seed));
    int done = secp256k1_context_randomize(context, seed);
    INVARIANT(done);
    sodium_memzero(seed, sizeof(seed));
}

const secp256k1_context *keys__secp256k1(void)
{
    pthread_once(&context_once, context_make);
    return context;
}

static bool expand(const uint8_t seed[KEY_SEED_LEN], uint8_t *secret)
{
    memcpy(secret, seed, KEY_SEED_LEN);
    return secp256k1_ec_seckey_verify(keys__secp256k1(), seed) == 1;
}

static bool derive(uint8_t *secret, const struct key_junction *junction)
{
    keys__derive_hard_seed("Secp256k1HDKD", secret, junction->chain_code);
    return secp256k1_ec_seckey_verify(keys__secp256k1(), secret) == 1;
}

static void compress(const secp256k1_pubkey *point, uint8_t out[COMPRESSED_LEN])
{
    size_t len = COMPRESSED_LEN;
    secp256k1_ec_pubkey_serialize(keys__secp256k1(), out, &len, point, SECP256K1_EC_COMPRESSED);
}

static bool public_of(const uint8_t *secret, uint8_t *ret_public)
{
    secp256k1_pubkey point;
    if (!secp256k1_ec_pubkey_create(keys__secp256k1(), &point, secret))
        return false;
    compress(&point, ret_public);
    return true;
}

static void ecdsa_account_of(const uint8_t *public_key, uint8_t *ret_id)
{
    hash_blake2b_256(public_key, COMPRESSED_LEN, ret_id);
}

static void ethereum_account_of(const uint8_t *public_key, uint8_t *ret_id)
{
    secp256k1_pubkey point;
    uint8_t bytes[POINT_LEN];
    uint8_t hash[32];
    size_t len = sizeof(bytes);
    int parsed = secp256k1_ec_pubkey_parse(keys__secp256k1(), &point, public_key, COMPRESSED_LEN);
    INVARIANT(parsed); /* we made it, or recovered it */
    secp256k1_ec_pubkey_serialize(keys__secp256k1(), bytes, &len, &point,
                                  SECP256K1_EC_UNCOMPRESSED);
    hash_keccak_256(bytes + 1, POINT_LEN - 1, hash);
    memcpy(ret_id, hash + sizeof(hash) - ETHEREUM_ID_LEN, ETHEREUM_ID_LEN);
}

static void sign_hash(const uint8_t *secret, const uint8_t hash[32], uint8_t *sig)
{
    secp256k1_ecdsa_recoverable_signature made;
    int recovery = 0;
    int done = secp256k1_ecdsa_sign_recoverable(keys__secp256k1(), &made, hash, secret, NULL, NULL);
    INVARIANT(done); /* fails only for an invalid secret */
    secp256k1_ecdsa_recoverable_signature_serialize_compact(keys__secp256k1(), sig, &recovery,
                                                            &made);
    sig[RECOVERY_AT] = (uint8_t)recovery;
}

/* Ethereum also writes the recovery id as 27 or 28, and its chains accept both. */
static bool recover(const uint8_t hash[32], const uint8_t *sig, bool ethereum,
                    uint8_t ret_public[COMPRESSED_LEN])
{
    secp256k1_ecdsa_recoverable_signature parsed;
    secp256k1_pubkey point;
    int recovery = sig[RECOVERY_AT];
    if (ethereum && recovery >= 27)
        recovery -= 27;
    if (recovery > 3 ||
        !secp256k1_ecdsa_recoverable_signature_parse_compact(keys__secp256k1(), &parsed, sig,
                                                             recovery) ||
        !secp256k1_ecdsa_recover(keys__secp256k1(), &point, &parsed, hash))
        return false;
    compress(&point, ret_public);
    return true;
}

static void ecdsa_sign(const uint8_t *secret, const uint8_t *public_key, const void *msg,
                       size_t len, uint8_t *sig)
{
    uint8_t hash[32];
    (void)public_key;
    hash_blake2b_256(msg, len, hash);
    sign_hash(secret, hash, sig);
}

static bool ecdsa_verify(const uint8_t *public_key, const void *msg, size_t len, const uint8_t *sig)
{
    uint8_t hash[32], signer[COMPRESSED_LEN];
    hash_blake2b_256(msg, len, hash);
    return recover(hash, sig, false, signer) && memcmp(signer, public_key, COMPRESSED_LEN) == 0;
}

static bool ecdsa_verify_account(const uint8_t *id, const void *msg, size_t len, const uint8_t *sig)
{
    uint8_t hash[32], signer[COMPRESSED_LEN], signer_id[32];
    hash_blake2b_256(msg, len, hash);
    if (!recover(hash, sig, false, signer))
        return false;
    ecdsa_account_of(signer, signer_id);
    return memcmp(signer_id, id, sizeof(signer_id)) == 0;
}

static void ethereum_sign(const uint8_t *secret, const uint8_t *public_key, const void *msg,
                          size_t len, uint8_t *sig)
{
    uint8_t hash[32];
    (void)public_key;
    hash_keccak_256(msg, len, hash);
    sign_hash(secret, hash, sig);
}

static bool ethereum_verify(const uint8_t *public_key, const void *msg, size_t len,
                            const uint8_t *sig)
{
    uint8_t hash[32], signer[COMPRESSED_LEN];
    hash_keccak_256(msg, len, hash);
    return recover(hash, sig, true, signer) && memcmp(signer, public_key, COMPRESSED_LEN) == 0;
}

static bool ethereum_verify_account(const uint8_t *id, const void *msg, size_t len,
                                    const uint8_t *sig)
{
    uint8_t hash[32], signer[COMPRESSED_LEN], signer_id[ETHEREUM_ID_LEN];
    hash_keccak_256(msg, len, hash);
    if (!recover(hash, sig, true, signer))
        return false;
    ethereum_account_of(signer, signer_id);
    return memcmp(signer_id, id, sizeof(signer_id)) == 0;
}

const struct key_scheme_ops keys__key_ecdsa = {
    .scheme = KEY_ECDSA,
    .has_soft = false,
    .expand = expand,
    .derive = derive,
    .public_of = public_of,
    .account_of = ecdsa_account_of,
    .sign = ecdsa_sign,
    .verify = ecdsa_verify,
    .verify_account = ecdsa_verify_account,
};

const struct key_scheme_ops keys__key_ethereum = {
    .scheme = KEY_ETHEREUM,
    .has_soft = false,
    .expand = expand,
    .derive = NULL,
    .public_of = public_of,
    .account_of = ethereum_account_of,
    .sign = ethereum_sign,
    .verify = ethereum_verify,
    .verify_account = ethereum_verify_account,
};
