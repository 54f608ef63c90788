/* STROBE-128 in Merlin's profile: Keccak-f[1600], a rate of 166 bytes plus two for framing, and
 * only the operations meta-AD, AD, PRF and KEY. The flags have the names of the STROBE paper. */
#include "merlin.h"

#include <sodium.h>
#include <string.h>

#include "base/check.h"

enum { RATE = 166 };
enum { FLAG_I = 1, FLAG_A = 2, FLAG_C = 4, FLAG_M = 16 };
enum {
    OP_META_AD = FLAG_M | FLAG_A,
    OP_AD = FLAG_A,
    OP_PRF = FLAG_I | FLAG_A | FLAG_C,
    OP_KEY = FLAG_A | FLAG_C,
};

static void xor_at(struct merlin *t, unsigned i, uint8_t v)
{
    t->state.a[i / 8] ^= (uint64_t)v << (8 * (i % 8));
}

static uint8_t get_at(const struct merlin *t, unsigned i)
{
    return (uint8_t)(t->state.a[i / 8] >> (8 * (i % 8)));
}

static void run_f(struct merlin *t)
{
    xor_at(t, t->pos, t->pos_begin);
    xor_at(t, t->pos + 1u, 0x04);
    xor_at(t, RATE + 1, 0x80);
    sha3_permute(&t->state);
    t->pos = 0;
    t->pos_begin = 0;
}

static void advance(struct merlin *t)
{
    PRE(t->pos < RATE);
    if (++t->pos == RATE)
        run_f(t);
}

static void absorb(struct merlin *t, const void *data, size_t len)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < len; i++) {
        xor_at(t, t->pos, p[i]);
        advance(t);
    }
}

static void overwrite(struct merlin *t, const void *data, size_t len)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < len; i++) {
        xor_at(t, t->pos, get_at(t, t->pos) ^ p[i]);
        advance(t);
    }
}

static void squeeze(struct merlin *t, uint8_t *out, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        out[i] = get_at(t, t->pos);
        xor_at(t, t->pos, out[i]); /* clears the byte: it is output once */
        advance(t);
    }
}

static void begin(struct merlin *t, uint8_t op)
{
    const uint8_t head[2] = {t->pos_begin, op};
    t->pos_begin = (uint8_t)(t->pos + 1);
    absorb(t, head, sizeof(head));
    if ((op & FLAG_C) && t->pos != 0)
        run_f(t);
}

/* The label and the length are one meta-AD operation. */
static void frame(struct merlin *t, const char *label, size_t len)
{
    PRE(len <= UINT32_MAX);
    const uint8_t le[4] = {(uint8_t)len, (uint8_t)(len >> 8), (uint8_t)(len >> 16),
                           (uint8_t)(len >> 24)};
    begin(t, OP_META_AD);
    absorb(t, label, strlen(label));
    absorb(t, le, sizeof(le));
}

void keys__merlin_init(struct merlin *t, const char *label)
{
    static const char version[] = "Merlin v1.0";
    static const uint8_t head[] = {1,   RATE + 2, 1,   0,   1,   96,  'S', 'T', 'R',
                                   'O', 'B',      'E', 'v', '1', '.', '0', '.', '2'};
    *t = (struct merlin){0};
    for (unsigned i = 0; i < sizeof(head); i++)
        xor_at(t, i, head[i]);
    sha3_permute(&t->state);
    begin(t, OP_META_AD);
    absorb(t, version, sizeof(version) - 1);
    keys__merlin_append(t, "dom-sep", label, strlen(label));
}

void keys__merlin_append(struct merlin *t, const char *label, const void *msg, size_t len)
{
    frame(t, label, len);
    begin(t, OP_AD);
    absorb(t, msg, len);
}

void keys__merlin_challenge(struct merlin *t, const char *label, uint8_t *out, size_t len)
{
    frame(t, label, len);
    begin(t, OP_PRF);
    squeeze(t, out, len);
}

void keys__merlin_witness(const struct merlin *t, const char *label, const void *witness,
                          size_t witness_len, const uint8_t random[32], uint8_t *out, size_t len)
{
    struct merlin rng = *t;
    frame(&rng, label, witness_len);
    begin(&rng, OP_KEY);
    overwrite(&rng, witness, witness_len);
    begin(&rng, OP_META_AD);
    absorb(&rng, "rng", 3);
    begin(&rng, OP_KEY);
    overwrite(&rng, random, 32);
    frame(&rng, "", len);
    begin(&rng, OP_PRF);
    squeeze(&rng, out, len);
    sodium_memzero(&rng, sizeof(rng));
}
