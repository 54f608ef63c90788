/* Key pairs. The secret is alone in locked, guarded memory that is read-only once it is filled; the
 * public parts are in ordinary memory. key_<scheme>.c implement the schemes. */
#include "chain/keys/keys.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/codec/crypto_init.h"
#include "chain/codec/scale.h"
#include "chain/codec/ss58.h"
#include "keys_scheme.h"

struct keypair {
    enum key_scheme scheme;
    const struct key_scheme_ops *ops;
    uint8_t *secret; /* KEY_SECRET_MAX bytes of keys__secret_alloc */
    uint8_t public_key[KEY_PUBLIC_MAX];
    uint8_t account_id[ACCOUNT_ID_MAX];
    bool development;
};

static bool unlocked; /* some secret could not be kept out of swap */

static const struct key_scheme_ops *const schemes[] = {
    [KEY_ED25519] = &keys__key_ed25519,
    [KEY_SR25519] = &keys__key_sr25519,
    [KEY_ECDSA] = &keys__key_ecdsa,
    [KEY_ETHEREUM] = &keys__key_ethereum,
};

const struct key_scheme_ops *keys__key_ops(enum key_scheme scheme)
{
    PRE((unsigned)scheme < ARRAY_LEN(schemes));
    crypto_init();
    return schemes[scheme];
}

void *keys__secret_alloc(size_t n)
{
    crypto_init();
    void *p = sodium_malloc(n);
    INVARIANT(p);           /* out of memory: see base/check.h */
    if (sodium_mlock(p, n)) /* sodium_malloc tries, and does not say that it failed */
        unlocked = true;
    sodium_memzero(p, n);
    return p;
}

bool keys_are_locked(void)
{
    return !unlocked;
}

int keypair_from_uri(const char *uri, enum key_scheme scheme, struct keypair **ret_key,
                     struct err *err)
{
    const struct key_scheme_ops *ops = keys__key_ops(scheme);
    struct keypair *key = xcalloc(1, sizeof(*key));
    key->scheme = scheme;
    key->ops = ops;
    key->secret = keys__secret_alloc(KEY_SECRET_MAX);
    key->development = keys__is_development(uri);
    int rc = keys__secret_from_uri(uri, scheme, key->secret, err);
    if (rc == 0 && !ops->public_of(key->secret, key->public_key))
        rc = err_set(err, ERR_KEY, "the secret is not a valid %s key: generate another one",
                     key_scheme_name(scheme));
    if (rc != 0) {
        keypair_free(key);
        return rc;
    }
    ops->account_of(key->public_key, key->account_id);
    sodium_mprotect_readonly(key->secret);
    *ret_key = key;
    return 0;
}

struct keypair *keypair_free(struct keypair *key)
{
    if (key) {
        sodium_free(key->secret); /* wipes */
        free(key);
    }
    return NULL;
}

enum key_scheme keypair_scheme(const struct keypair *key)
{
    return key->scheme;
}

bool keypair_is_development(const struct keypair *key)
{
    return key->development;
}

const uint8_t *keypair_public(const struct keypair *key, size_t *ret_len)
{
    *ret_len = key_public_len(key->scheme);
    return key->public_key;
}

const uint8_t *keypair_account_id(const struct keypair *key, size_t *ret_len)
{
    *ret_len = key_account_id_len(key->scheme);
    return key->account_id;
}

size_t keypair_sign(const struct keypair *key, const void *msg, size_t len,
                    uint8_t sig[KEY_SIG_MAX])
{
    key->ops->sign(key->secret, key->public_key, msg, len, sig);
    return key_signature_len(key->scheme);
}

bool key_verify(enum key_scheme scheme, const uint8_t *public_key, const void *msg, size_t len,
                const uint8_t *sig)
{
    return keys__key_ops(scheme)->verify(public_key, msg, len, sig);
}

bool key_verify_account(enum key_scheme scheme, const uint8_t *account_id, size_t id_len,
                        const void *msg, size_t len, const uint8_t *sig)
{
    const struct key_scheme_ops *ops = keys__key_ops(scheme);
    return id_len == key_account_id_len(scheme) && ops->verify_account(account_id, msg, len, sig);
}

void keys__derive_hard_seed(const char *name, uint8_t seed[KEY_SEED_LEN],
                            const uint8_t chain_code[32])
{
    crypto_generichash_state state;
    struct buf head = {0};
    scale_put_str(&head, name);
    crypto_generichash_init(&state, NULL, 0, KEY_SEED_LEN);
    crypto_generichash_update(&state, head.data, head.len);
    crypto_generichash_update(&state, seed, KEY_SEED_LEN);
    crypto_generichash_update(&state, chain_code, 32);
    crypto_generichash_final(&state, seed, KEY_SEED_LEN);
    sodium_memzero(&state, sizeof(state));
    buf_done(&head);
}
