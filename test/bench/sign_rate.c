/* Signatures and checks per second of one core, by the very code the relay signs with. One line a
 * scheme: "scheme signs/s verifies/s". Argument: milliseconds for each figure (300). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "chain/keys/keys.h"

enum { MESSAGE_LEN = 180 }; /* about the payload of a small call */

struct subject {
    struct keypair *key;
    uint8_t message[MESSAGE_LEN], sig[KEY_SIG_MAX];
};

static void sign_one(struct subject *s)
{
    s->message[0]++;
    keypair_sign(s->key, s->message, MESSAGE_LEN, s->sig);
}

static void verify_one(struct subject *s)
{
    size_t len;
    const uint8_t *public_key = keypair_public(s->key, &len);
    INVARIANT(key_verify(keypair_scheme(s->key), public_key, s->message, MESSAGE_LEN, s->sig));
}

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static double rate(struct subject *s, void (*one)(struct subject *s), uint64_t span_ns)
{
    uint64_t start = clock_ns(), now = start, count = 0;
    for (; now - start < span_ns; now = clock_ns(), count += 16)
        for (int i = 0; i < 16; i++)
            one(s);
    return (double)count * 1e9 / (double)(now - start);
}

int main(int argc, char **argv)
{
    static const enum key_scheme schemes[] = {KEY_SR25519, KEY_ED25519, KEY_ECDSA};
    uint64_t span_ns = 1000000 * (argc > 1 ? strtoull(argv[1], NULL, 10) : 300);
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        struct subject s = {0};
        struct err err = {0};
        if (keypair_from_uri("//Alice", schemes[i], &s.key, &err)) {
            fprintf(stderr, "sign_rate: %s\n", err.text);
            return 1;
        }
        sign_one(&s);
        double signs = rate(&s, sign_one, span_ns);
        printf("%s %.0f %.0f\n", key_scheme_name(schemes[i]), signs, rate(&s, verify_one, span_ns));
        keypair_free(s.key);
    }
    return 0;
}
