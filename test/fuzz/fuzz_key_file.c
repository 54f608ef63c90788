/* Any bytes as the content of a key file: refused with an error that does not hold them, or a key
 * that signs. The first byte is the scheme. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "chain/keys/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct keypair *key = NULL;
    struct err err = {0};
    if (size == 0)
        return 0;
    enum key_scheme scheme = (enum key_scheme)(data[0] % 4);
    int fd = memfd_create("key", MFD_CLOEXEC);
    INVARIANT(fd >= 0 && fchmod(fd, 0600) == 0);
    INVARIANT(write(fd, data + 1, size - 1) == (ssize_t)size - 1);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (keypair_from_file(path, scheme, &key, &err) == 0) {
        uint8_t sig[KEY_SIG_MAX];
        size_t len;
        const uint8_t *id = keypair_account_id(key, &len);
        INVARIANT(keypair_sign(key, data, size, sig) == key_signature_len(scheme));
        INVARIANT(key_verify_account(scheme, id, len, data, size, sig));
        keypair_free(key);
    } else {
        INVARIANT(!key && err.code == ERR_KEY && strstr(err.text, path));
    }
    close(fd);
    return 0;
}
