/* Merlin transcripts (merlin.cool) over STROBE-128 (strobe.sourceforge.io): the parts that
 * schnorrkel uses, which are messages, challenges, and random bytes for a prover. A transcript is a
 * plain value: assignment clones it. The owner wipes a transcript that has absorbed a secret. */
#ifndef CHAIN_KEYS_MERLIN_H
#define CHAIN_KEYS_MERLIN_H

#include <nettle/sha3.h>
#include <stddef.h>
#include <stdint.h>

struct merlin {
    struct sha3_state state;
    uint8_t pos;       /* next byte of the block */
    uint8_t pos_begin; /* where the current operation began, plus one; 0 = before this block */
};

void keys__merlin_init(struct merlin *t, const char *label);
void keys__merlin_append(struct merlin *t, const char *label, const void *msg, size_t len);
void keys__merlin_challenge(struct merlin *t, const char *label, uint8_t *out, size_t len);

/* Bytes for a prover's nonce. They depend on the transcript so far, on the witness (a secret) and
 * on 32 random bytes, so neither a weak random source nor a repeated message alone repeats them.
 * The transcript does not change. */
void keys__merlin_witness(const struct merlin *t, const char *label, const void *witness,
                          size_t witness_len, const uint8_t random[32], uint8_t *out, size_t len);

#endif
