/* The advisory lock of an account is derived from what it is, not from a number that somebody hands out: two
 * relays that were never told of each other agree, and two accounts do not contend (S07). */
#include <openssl/evp.h>

#include "base/check.h"
#include "election/election.h"

int64_t election_lock_key(const uint8_t genesis[32], const uint8_t *account_id, size_t len)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned int digest_len = 0;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    INVARIANT(ctx);
    INVARIANT(EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1);
    INVARIANT(EVP_DigestUpdate(ctx, genesis, 32) == 1);
    INVARIANT(EVP_DigestUpdate(ctx, account_id, len) == 1);
    INVARIANT(EVP_DigestFinal_ex(ctx, digest, &digest_len) == 1 && digest_len == 32);
    EVP_MD_CTX_free(ctx);
    uint64_t key = 0;
    for (int i = 0; i < 8; i++)
        key = key << 8 | digest[i];
    return (int64_t)key;
}
