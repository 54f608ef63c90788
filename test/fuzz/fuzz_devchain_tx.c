/* Extrinsics that reach devchain: decoded, validated and, when they hold, applied and taken
 * back. */
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chain chain;
    struct buf none = {0};
    struct tx *tx = NULL;
    struct dispatch_error error;
    struct runtime rt = {.chain = &chain,
                         .version = {1, 1},
                         .block_hash_count = 16,
                         .existential_deposit = 10,
                         .fee_base = 1,
                         .block_ref_time_max = 2000000000000,
                         .block_proof_size_max = 1u << 20,
                         .block_len_max = 1u << 20,
                         .trust_signatures = true};
    chain_init(&chain, 1u << 20);
    if (tx_decode(data, size, &tx) == TX_DECODE_OK && tx->signer_kind == TX_SIGNED) {
        struct account *a = state_account(&chain.state, tx->signer);
        state_write(&chain.state, a,
                    (struct account_rec){.free = 1u << 30, .nonce = tx->nonce, .providers = 1});
    }
    chain_seal(&chain, NULL, 0, &none, 0, 0, rt.version, 0);
    if (tx) {
        runtime_validate(&rt, tx);
        exec_dry_run(&rt, tx, &error);
    }
    tx_unref(tx);
    chain_done(&chain);
    return 0;
}
