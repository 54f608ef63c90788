/* Secrets: HMAC-SHA256 of a webhook's name and salt under the key of the relays. So neither the
 * database nor a copy of it can sign, and all relays with the key file sign alike. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "chain/codec/hash.h"
#include "hooks_internal.h"

enum { KEY_MIN = 32, KEY_MAX = 1000 };

void hooks__secret_of(const char *key, const char *name, const char *salt_hex, uint8_t ret[32])
{
    char *text = xasprintf("txrelay webhook %s %s", name, salt_hex);
    hash_hmac_sha256(key, strlen(key), text, strlen(text), ret);
    free(text);
}

void hooks_secret(const char *key, const char *name, const char *salt_hex,
                  char ret[HOOKS_SECRET_MAX])
{
    uint8_t secret[32];
    char text[HOOK_BASE64_MAX];
    hooks__secret_of(key, name, salt_hex, secret);
    hook_base64(secret, sizeof(secret), text);
    snprintf(ret, HOOKS_SECRET_MAX, "whsec_%s", text);
    explicit_bzero(secret, sizeof(secret));
    explicit_bzero(text, sizeof(text));
}

char *hooks_key_read(const char *path, struct err *err)
{
    char text[KEY_MAX + 1];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        err_set(err, ERR_CONFIG, "webhooks.key_file %s: %m", path);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    ssize_t n = S_ISREG(st.st_mode) ? read(fd, text, sizeof(text) - 1) : -1;
    close(fd);
    size_t len = n > 0 ? (size_t)n : 0;
    while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    text[len] = 0;
    char *key = NULL;
    if (st.st_mode & 077)
        err_set(err, ERR_CONFIG, "webhooks.key_file %s can be read by others: chmod 600 %s", path,
                path);
    else if (len < KEY_MIN || strlen(text) != len || strchr(text, '\n'))
        err_set(err, ERR_CONFIG,
                "webhooks.key_file %s must be one line of at least 32 characters: openssl rand "
                "-base64 32",
                path);
    else
        key = xstrdup(text);
    explicit_bzero(text, sizeof(text));
    return key;
}
