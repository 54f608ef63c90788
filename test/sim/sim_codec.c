/* Keys and extrinsics of the simulated chain: an extrinsic is 24 bytes, its number in the
 * world's list first and its call last. The linker turns the product's calls of the chain's
 * format to here (--wrap); what surrounds them, relay/account/sign.c and account_presigned.c, runs
 * as it is. */
#include <string.h>

#include "chain/codec/codec.h"
#include "chain/codec/extrinsic.h"
#include "chain/codec/hash.h"
#include "chain/keys/extrinsic_sign.h"
#include "chain/keys/keys.h"
#include "service/service_internal.h"
#include "sim.h"
#include "sim_node.h"

struct world *simulated; /* the one that runs: these functions of the product know no world */

struct keypair {
    uint8_t id[32];
};

int __wrap_extrinsic_sign(const struct metadata *md, const struct extrinsic_params *params,
                          const struct keypair *key, const uint8_t *call, size_t call_len,
                          struct buf *ret_bytes, uint8_t ret_hash[32], struct err *err);
int __wrap_extrinsic_decode(const struct metadata *md, const uint8_t *bytes, size_t len,
                            struct extrinsic_view *ret_view, struct err *err);
bool __wrap_extrinsic_nonce(const struct metadata *md, const uint8_t *bytes, size_t len,
                            uint64_t *ret_nonce);
int __wrap_extrinsic_verify(const struct metadata *md, const struct extrinsic_view *view,
                            const struct extrinsic_params *params, bool *ret_good, struct err *err);
int __wrap_codec_check_call(const struct metadata *md, const uint8_t *call, size_t len,
                            struct err *err);
u128 __wrap_extrinsic_tip_max(const struct metadata *md);
int __wrap_sign_supported(const struct account *a, const struct metadata *md, struct err *err);
bool __wrap_metadata_find_call(const struct metadata *md, const char *pallet, const char *call,
                               uint8_t ret_index[2]);
void __wrap_hash_blake2b_256(const void *data, size_t len, uint8_t out[32]);
enum key_scheme __wrap_keypair_scheme(const struct keypair *key);
const uint8_t *__wrap_keypair_account_id(const struct keypair *key, size_t *ret_len);
struct keypair *__wrap_keypair_free(struct keypair *key);

/* ---- keys: an account's id names its number ---- */

void account_id(int account, uint8_t out[32])
{
    memset(out, 0xac, 32);
    out[0] = (uint8_t)account;
}

const char *account_alias(int account)
{
    static const char *const names[ACCOUNTS] = {"a0", "a1", "a2"};
    return names[account];
}

int account_of_id(const uint8_t *id, size_t len)
{
    return len == 32 && id[1] == 0xac && id[0] < ACCOUNTS ? id[0] : -1;
}

struct keypair *account_key(int account)
{
    static struct keypair keys[ACCOUNTS];
    account_id(account, keys[account].id);
    return &keys[account];
}

enum key_scheme __wrap_keypair_scheme(const struct keypair *key)
{
    (void)key;
    return KEY_SR25519;
}

const uint8_t *__wrap_keypair_account_id(const struct keypair *key, size_t *ret_len)
{
    *ret_len = 32;
    return key->id;
}

struct keypair *__wrap_keypair_free(struct keypair *key)
{
    (void)key;
    return NULL;
}

/* ---- extrinsics ---- */

enum { FILLER_LEN = 3 };

void bytes_of_tx(const struct world *w, uint32_t tx, uint8_t out[BYTES_LEN])
{
    int64_t id = w->chain.txs[tx].id;
    memset(out, 0, BYTES_LEN);
    memcpy(out, &tx, sizeof(tx));
    if (id)
        memcpy(out + BYTES_LEN - CALL_LEN, &id, sizeof(id));
}

size_t call_len_of_tx(const struct world *w, uint32_t tx)
{
    return w->chain.txs[tx].id ? CALL_LEN : FILLER_LEN;
}

uint32_t tx_of_bytes(const struct world *w, const uint8_t *bytes, size_t len)
{
    uint32_t tx;
    INVARIANT(len == BYTES_LEN);
    memcpy(&tx, bytes, sizeof(tx));
    return tx < w->chain.tx_count ? tx : 0;
}

/* The transaction whose call it is; 0: a filler's. */
static int64_t id_of_call(const uint8_t *call, size_t len)
{
    int64_t id = 0;
    if (len == FILLER_LEN)
        return 0;
    HOLDS(simulated, len == CALL_LEN, "call", "a call of %zu bytes is to be signed", len);
    memcpy(&id, call, sizeof(id));
    return id;
}

int __wrap_extrinsic_sign(const struct metadata *md, const struct extrinsic_params *params,
                          const struct keypair *key, const uint8_t *call, size_t call_len,
                          struct buf *ret_bytes, uint8_t ret_hash[32], struct err *err)
{
    struct world *w = simulated;
    uint8_t bytes[BYTES_LEN];
    uint32_t anchor = params->era.period ? block_of_hash(params->era_block_hash) : 0;
    (void)md, (void)err;
    HOLDS(w, key, "key", "nonce %llu is signed without a key", (unsigned long long)params->nonce);
    HOLDS(w, !takes_no_signature(w, params->spec_version), "signing",
          "nonce %llu is signed under spec %u, which takes no signature of this key",
          (unsigned long long)params->nonce, params->spec_version);
    HOLDS(w, params->era.period || !w->plan.era, "era", "nonce %llu is signed without an era",
          (unsigned long long)params->nonce);
    HOLDS(w, params->transaction_version == version_of(w, params->spec_version), "version",
          "nonce %llu is signed under spec %u and transaction version %u",
          (unsigned long long)params->nonce, params->spec_version, params->transaction_version);
    uint32_t tx = tx_sign(w, &(struct tx_content){.account = account_of_id(key->id, 32),
                                                  .nonce = params->nonce,
                                                  .id = id_of_call(call, call_len),
                                                  .spec = params->spec_version,
                                                  .anchor = anchor,
                                                  .period = params->era.period,
                                                  .tip = (uint64_t)params->tip});
    bytes_of_tx(w, tx, bytes);
    hash_of_tx(tx, ret_hash);
    buf_put(ret_bytes, bytes, sizeof(bytes));
    return 0;
}

/* Runtimes whose extrinsics have the same signed extensions: where blocks of an earlier runtime do
 * not decode, every other upgrade changes them. */
static uint64_t layout_of(const struct world *w, uint32_t spec)
{
    return has(w, FEATURE_UNREADABLE) ? (w->seed + spec) / 2 : 0;
}

int __wrap_extrinsic_decode(const struct metadata *md, const uint8_t *bytes, size_t len,
                            struct extrinsic_view *ret_view, struct err *err)
{
    struct world *w = simulated;
    uint32_t tx = tx_of_bytes(w, bytes, len);
    const struct tx *t = &w->chain.txs[tx];
    const struct node *n = (const void *)md;
    INVARIANT(tx);
    if (!t->forged && layout_of(w, t->spec) != layout_of(w, n->info.spec_version))
        return err_set(err, ERR_METADATA, "extension CheckMetadataHash: Mode has no variant 10");
    *ret_view = (struct extrinsic_view){.is_signed = true,
                                        .signer_len = 32,
                                        .scheme = KEY_SR25519,
                                        .nonce = t->nonce,
                                        .tip = t->tip,
                                        .call_len = call_len_of_tx(w, tx),
                                        .signature = bytes};
    account_id(t->account, ret_view->signer);
    ret_view->call = bytes + len - ret_view->call_len;
    if (t->death >= 0)
        ret_view->era = era_mortal((uint32_t)(t->death - t->birth), (uint64_t)t->birth);
    return 0;
}

/* The extensions that change are behind the nonce. */
bool __wrap_extrinsic_nonce(const struct metadata *md, const uint8_t *bytes, size_t len,
                            uint64_t *ret_nonce)
{
    (void)md;
    *ret_nonce = simulated->chain.txs[tx_of_bytes(simulated, bytes, len)].nonce;
    return true;
}

int __wrap_extrinsic_verify(const struct metadata *md, const struct extrinsic_view *view,
                            const struct extrinsic_params *params, bool *ret_good, struct err *err)
{
    struct world *w = simulated;
    const struct tx *t = &w->chain.txs[tx_of_bytes(w, view->signature, BYTES_LEN)];
    (void)md, (void)err;
    bool anchored = t->death < 0 || block_of_hash(params->era_block_hash) == t->anchor;
    *ret_good = t->spec == params->spec_version && anchored && !t->forged;
    return 0;
}

u128 __wrap_extrinsic_tip_max(const struct metadata *md)
{
    (void)md;
    return UINT64_MAX; /* as much as struct tx has room for */
}

bool takes_no_signature(const struct world *w, uint32_t spec)
{
    return has(w, FEATURE_UNSIGNABLE) && spec % 3 == 2;
}

int __wrap_sign_supported(const struct account *a, const struct metadata *md, struct err *err)
{
    (void)md;
    if (takes_no_signature(simulated, node_info(a->service->node)->spec_version))
        return err_set(err, ERR_EXTENSION, "the runtime has an extension that nobody knows");
    return 0;
}

int __wrap_codec_check_call(const struct metadata *md, const uint8_t *call, size_t len,
                            struct err *err)
{
    (void)md;
    if (never_admitted(id_of_call(call, len)))
        return err_set(err, ERR_ARGUMENT, "the chain has no such call");
    return 0;
}

bool __wrap_metadata_find_call(const struct metadata *md, const char *pallet, const char *call,
                               uint8_t ret_index[2])
{
    (void)md, (void)pallet, (void)call;
    ret_index[0] = ret_index[1] = 0;
    return true;
}

void __wrap_hash_blake2b_256(const void *data, size_t len, uint8_t out[32])
{
    hash_of_tx(tx_of_bytes(simulated, data, len), out);
}
