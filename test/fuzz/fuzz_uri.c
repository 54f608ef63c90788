/* Secret URIs: the first byte is the scheme. Whatever is accepted signs and verifies; whatever is
 * refused says so, with a text. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/keys/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    enum key_scheme scheme = (enum key_scheme)(data[0] % 4);
    char *uri = xstrndup((const char *)data + 1, size - 1);
    struct keypair *key = NULL;
    struct err err = {0};
    if (keypair_from_uri(uri, scheme, &key, &err) == 0) {
        uint8_t sig[KEY_SIG_MAX];
        size_t len;
        const uint8_t *id = keypair_account_id(key, &len);
        INVARIANT(keypair_sign(key, data, size, sig) == key_signature_len(scheme));
        INVARIANT(key_verify_account(scheme, id, len, data, size, sig));
        keypair_free(key);
    } else {
        INVARIANT(key == NULL && err.code == ERR_KEY && err.text[0]);
    }
    free(uri);
    return 0;
}
