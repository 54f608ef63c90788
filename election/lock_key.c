/* SHA-256 for the cores, which link only base/, and the key of the advisory lock. The key is
 * derived from genesis and account id and not assigned, so two relays agree on it without
 * communication, and two accounts do not contend for one lock. */
#include <openssl/sha.h>
#include <string.h>

#include "base/check.h"
#include "election/election.h"

enum { GENESIS_LEN = 32, ID_LEN_MAX = 64 };

uint64_t election_hash(const void *data, size_t len)
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    uint64_t first = 0;
    SHA256(data, len, digest);
    for (int i = 0; i < 8; i++)
        first = first << 8 | digest[i];
    return first;
}

int64_t election_lock_key(const uint8_t genesis[32], const uint8_t *account_id, size_t len)
{
    uint8_t text[GENESIS_LEN + ID_LEN_MAX];
    PRE(len <= ID_LEN_MAX);
    memcpy(text, genesis, GENESIS_LEN);
    memcpy(text + GENESIS_LEN, account_id, len);
    return (int64_t)election_hash(text, GENESIS_LEN + len);
}
