/* Key files: a secret URI in the first line, or Substrate's keystore form (the URI as a JSON
 * string). A file that others may read is refused, because a warning does not undo a leak. The
 * content is in locked memory only; errors name the file, not its content. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keys_scheme.h"

enum { FILE_LEN_MAX = 4096 };

static int check_file(int fd, const char *path, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return err_set(err, ERR_IO, "key file %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_KEY, "key file %s is not a regular file: give the path of a file",
                       path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return err_set(err, ERR_KEY,
                       "key file %s belongs to user %u, who could change it: chown %u %s", path,
                       (unsigned)st.st_uid, (unsigned)geteuid(), path);
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return err_set(err, ERR_KEY,
                       "key file %s has mode %03o, open to others than its owner: chmod 600 %s",
                       path, (unsigned)st.st_mode & 0777, path);
    return 0;
}

/* text has room for FILE_LEN_MAX + 1 bytes; *ret_len is the number read. */
static int read_all(int fd, const char *path, char *text, size_t *ret_len, struct err *err)
{
    size_t len = 0;
    for (;;) {
        ssize_t n = read(fd, text + len, FILE_LEN_MAX + 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, ERR_IO, "key file %s: %s", path, strerror(errno));
        len += (size_t)n;
        if (len > FILE_LEN_MAX)
            return err_set(err, ERR_KEY,
                           "key file %s is longer than %d bytes: it must hold one secret URI", path,
                           FILE_LEN_MAX);
        if (n == 0)
            break;
    }
    *ret_len = len;
    return 0;
}

/* Unquote a JSON string in place. Only escapes that stand for the escaped character itself are
 * accepted. */
static bool unquote(char *text)
{
    const char *in = text + 1;
    char *out = text;
    for (; *in && *in != '"'; in++) {
        if (*in == '\\') {
            in++;
            if (*in != '"' && *in != '\\' && *in != '/')
                return false;
        }
        *out++ = *in;
    }
    if (*in != '"' || in[1 + strspn(in + 1, " \t\r\n")] != 0)
        return false;
    *out = 0;
    return true;
}

static int extract_uri(const char *path, char *text, size_t len, struct err *err)
{
    text[len] = 0;
    if (strlen(text) != len)
        return err_set(err, ERR_KEY, "key file %s is not text: it must hold one secret URI", path);
    if (text[0] == '"') {
        if (!unquote(text))
            return err_set(err, ERR_KEY,
                           "key file %s begins with a quote but is no keystore string", path);
    } else {
        text[strcspn(text, "\r\n")] = 0;
    }
    if (!*text) /* an empty URI would mean the development phrase */
        return err_set(err, ERR_KEY,
                       "key file %s has an empty first line: it must hold one secret URI", path);
    if (strchr(" \t", text[0]) || strchr(" \t", text[strlen(text) - 1]))
        return err_set(err, ERR_KEY,
                       "key file %s has a blank at an end of its first line, which would make "
                       "another key: remove it",
                       path);
    return 0;
}

static int open_uri(const char *path, const char *uri, enum key_scheme scheme,
                    struct keypair **ret_key, struct err *err)
{
    struct err inner;
    int rc = keypair_from_uri(uri, scheme, ret_key, &inner);
    return rc ? err_set(err, rc, "key file %s: %s", path, inner.text) : 0;
}

int keypair_from_file(const char *path, enum key_scheme scheme, struct keypair **ret_key,
                      struct err *err)
{
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* does not block on a FIFO */
    if (fd < 0)
        return err_set(err, ERR_KEY, "key file %s: %s%s", path, strerror(errno),
                       errno == ENOENT   ? ": correct the path, or make one (txrelay keys new)"
                       : errno == EACCES ? ": let this user read it (chown)"
                                         : "");
    int rc = check_file(fd, path, err);
    if (rc == 0) {
        size_t len = 0;
        char *text = keys__secret_alloc(FILE_LEN_MAX + 1);
        rc = read_all(fd, path, text, &len, err);
        if (rc == 0)
            rc = extract_uri(path, text, len, err);
        if (rc == 0)
            rc = open_uri(path, text, scheme, ret_key, err);
        sodium_free(text);
    }
    close(fd);
    return rc;
}

int key_file_new(const char *path, struct err *err)
{
    enum { SEED_LEN = 32, TEXT_LEN = 2 + 2 * SEED_LEN + 1 };
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, ERR_KEY, "key file %s: %s: %s", path, strerror(errno),
                       errno == EEXIST ? "it is not overwritten; give another name, or see what it "
                                         "is with txrelay keys show"
                                       : "give a name in a directory that you may write to");
    uint8_t *seed = keys__secret_alloc(SEED_LEN);
    char *text = keys__secret_alloc(TEXT_LEN + 1);
    randombytes_buf(seed, SEED_LEN);
    memcpy(text, "0x", 2);
    sodium_bin2hex(text + 2, 2 * SEED_LEN + 1, seed, SEED_LEN);
    text[TEXT_LEN - 1] = '\n';
    bool good = write(fd, text, TEXT_LEN) == TEXT_LEN && fsync(fd) == 0;
    int why = errno;
    sodium_free(seed);
    sodium_free(text);
    close(fd);
    if (good)
        return 0;
    unlink(path);
    return err_set(err, ERR_IO,
                   "key file %s: %s: it was removed again; make room, or give a name "
                   "on another disk",
                   path, strerror(why));
}
