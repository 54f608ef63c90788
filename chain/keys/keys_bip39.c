/* BIP39 phrases with the English list: 11 bits per word; the last bits are a checksum of the
 * entropy before them. Substrate derives the seed from the entropy (substrate-bip39), Ethereum
 * wallets from the words (BIP39). */
#include <openssl/evp.h>
#include <sodium.h>
#include <string.h>

#include "base/check.h"
#include "chain/codec/hash.h"
#include "embedded.h"
#include "keys_scheme.h"

enum {
    BITS_PER_WORD = 11,
    WORDS_MIN = 12,
    WORDS_MAX = 24,
    WORD_LEN_MAX = 8,
    BITS_LEN = (WORDS_MAX * BITS_PER_WORD + 7) / 8,
    ROUNDS = 2048,
};

/* bip39_english.txt, compiled in by cmake/embed_run.cmake. */
extern const struct embedded_file bip39_files[];

/* The index of the word in the list; -1: not in it. */
static int word_index(const char *word, size_t len)
{
    const char *line = bip39_files[0].text;
    const char *end = line + bip39_files[0].len;
    for (int i = 0; line < end; i++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        INVARIANT(stop);
        if ((size_t)(stop - line) == len && memcmp(line, word, len) == 0)
            return i;
        line = stop + 1;
    }
    return -1;
}

/* The next word at *at and its length; 0 at the end. */
static size_t next_word(const char **at, const char *end, const char **ret_word)
{
    const char *p = *at;
    while (p < end && *p == ' ')
        p++;
    *ret_word = p;
    while (p < end && *p != ' ')
        p++;
    *at = p;
    return (size_t)(p - *ret_word);
}

static void put_bits(uint8_t bits[BITS_LEN], size_t word, unsigned index)
{
    for (unsigned b = 0; b < BITS_PER_WORD; b++) {
        size_t at = word * BITS_PER_WORD + b;
        if (index >> (BITS_PER_WORD - 1 - b) & 1)
            bits[at / 8] |= (uint8_t)(0x80 >> at % 8);
    }
}

/* The words as bits. Returns the number of words, or an error. */
static int read_words(const char *phrase, size_t len, uint8_t bits[BITS_LEN], struct err *err)
{
    const char *at = phrase, *word;
    size_t word_len;
    int count = 0;
    while ((word_len = next_word(&at, phrase + len, &word)) != 0) {
        int index = word_len <= WORD_LEN_MAX ? word_index(word, word_len) : -1;
        if (index < 0)
            return err_set(err, ERR_KEY,
                           "word %d of the secret phrase is not in the English BIP39 list",
                           count + 1);
        if (count < WORDS_MAX)
            put_bits(bits, (size_t)count, (unsigned)index);
        count++;
    }
    if (count < WORDS_MIN || count > WORDS_MAX || count % 3 != 0)
        return err_set(err, ERR_KEY,
                       "the secret phrase has %d words: 12, 15, 18, 21 or 24 are possible", count);
    return count;
}

static int entropy_of(const char *phrase, size_t len, uint8_t bits[BITS_LEN], size_t *ret_len,
                      struct err *err)
{
    uint8_t hash[32];
    int words = read_words(phrase, len, bits, err);
    if (words < 0)
        return words;
    unsigned check_bits = (unsigned)words / 3;
    size_t entropy_len = (size_t)check_bits * 4;
    hash_sha256(bits, entropy_len, hash);
    uint8_t wrong = (uint8_t)((hash[0] ^ bits[entropy_len]) >> (8 - check_bits));
    sodium_memzero(hash, sizeof(hash));
    if (wrong)
        return err_set(
            err, ERR_KEY,
            "the checksum of the secret phrase is wrong: a word is mistyped or misplaced");
    *ret_len = entropy_len;
    return 0;
}

int keys__bip39_entropy(const char *phrase, size_t len, uint8_t *entropy, size_t *ret_len,
                        struct err *err)
{
    uint8_t bits[BITS_LEN] = {0};
    int rc = entropy_of(phrase, len, bits, ret_len, err);
    if (rc == 0)
        memcpy(entropy, bits, *ret_len);
    sodium_memzero(bits, sizeof(bits));
    return rc;
}

static int stretch(const void *key, size_t key_len, const char *password, uint8_t *out,
                   size_t out_len, struct err *err)
{
    static const char head[] = "mnemonic";
    size_t salt_len = sizeof(head) - 1 + strlen(password);
    if (key_len > INT32_MAX / 2 || salt_len > INT32_MAX / 2)
        return err_set(err, ERR_KEY, "the password of the secret is too long");
    uint8_t *salt = keys__secret_alloc(salt_len);
    memcpy(salt, head, sizeof(head) - 1);
    memcpy(salt + sizeof(head) - 1, password, strlen(password));
    int done = PKCS5_PBKDF2_HMAC(key, (int)key_len, salt, (int)salt_len, ROUNDS, EVP_sha512(),
                                 (int)out_len, out);
    sodium_free(salt);
    if (!done)
        return err_set(err, ERR_KEY,
                       "OpenSSL does not offer PBKDF2 with SHA-512: check its configuration");
    return 0;
}

int keys__bip39_mini_secret(const char *phrase, size_t len, const char *password, uint8_t seed[32],
                            struct err *err)
{
    uint8_t entropy[32];
    size_t entropy_len = 0;
    int rc = keys__bip39_entropy(phrase, len, entropy, &entropy_len, err);
    if (rc == 0)
        rc = stretch(entropy, entropy_len, password, seed, 32, err);
    sodium_memzero(entropy, sizeof(entropy));
    return rc;
}

/* The words with one space between them, as BIP39 hashes them. out has room for the phrase. */
static size_t normalise(const char *phrase, size_t len, char *out)
{
    const char *at = phrase, *word;
    size_t n = 0, word_len;
    while ((word_len = next_word(&at, phrase + len, &word)) != 0) {
        if (n)
            out[n++] = ' ';
        memcpy(out + n, word, word_len);
        n += word_len;
    }
    return n;
}

int keys__bip39_seed(const char *phrase, size_t len, const char *password, uint8_t seed[64],
                     struct err *err)
{
    uint8_t entropy[32];
    size_t entropy_len;
    int rc = keys__bip39_entropy(phrase, len, entropy, &entropy_len, err);
    sodium_memzero(entropy, sizeof(entropy)); /* only the words and their checksum were needed */
    if (rc != 0)
        return rc;
    for (const char *p = password; *p; p++)
        if ((unsigned char)*p >= 0x80) /* BIP39 requires NFKD text; ASCII always is */
            return err_set(err, ERR_KEY,
                           "the password of a phrase of scheme ethereum must be plain ASCII");
    char *words = keys__secret_alloc(len);
    rc = stretch(words, normalise(phrase, len, words), password, seed, 64, err);
    sodium_free(words);
    return rc;
}
