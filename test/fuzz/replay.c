/* Runs a fuzz target without libFuzzer: a fixed stream of generated inputs (random bytes, and
 * earlier inputs cut, spliced and changed), so that ordinary, sanitizer and valgrind lanes drive
 * every parser of outside bytes. REPLAY_RUNS sets the count; valgrind's lane runs a tenth. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { KEEP = 64, LEN_MAX = 2048 };

static uint8_t kept[KEEP][LEN_MAX];
static size_t kept_len[KEEP];

static size_t generate(struct rng *r, uint8_t *out)
{
    static const uint8_t interesting[] = {0,    1,    2,    3,    4,   0x7f, 0x80, 0x84,
                                          0xfc, 0xfd, 0xfe, 0xff, '"', '{',  '[',  '/'};
    size_t from = (size_t)rng_below(r, KEEP), len = kept_len[from];
    memcpy(out, kept[from], len);
    if (!len || rng_below(r, 4) == 0) {
        len = (size_t)rng_below(r, rng_below(r, 8) ? 64 : LEN_MAX);
        for (size_t i = 0; i < len; i++)
            out[i] = (uint8_t)rng_next(r);
    }
    for (uint64_t n = rng_below(r, 6); n && len; n--) {
        size_t at = (size_t)rng_below(r, len);
        out[at] =
            rng_below(r, 2) ? interesting[rng_below(r, sizeof(interesting))] : (uint8_t)rng_next(r);
    }
    if (len && rng_below(r, 3) == 0)
        len = (size_t)rng_below(r, len + 1);
    return len;
}

int main(void)
{
    const char *text = getenv("REPLAY_RUNS");
    long runs = text ? strtol(text, NULL, 10) : getenv("TXRELAY_VALGRIND") ? 200 : 2000;
    struct rng r = {20261127};
    for (long i = 0; i < runs; i++) {
        uint8_t *input =
            malloc(LEN_MAX); /* exact size: reads past the end are seen by the sanitizer */
        if (!input)
            return 1;
        size_t len = generate(&r, input);
        uint8_t *exact = realloc(input, len ? len : 1);
        LLVMFuzzerTestOneInput(exact ? exact : input, len);
        size_t slot = (size_t)rng_below(&r, KEEP);
        memcpy(kept[slot], exact ? exact : input, len);
        kept_len[slot] = len;
        free(exact ? exact : input);
    }
    printf("%ld inputs\n", runs);
    return 0;
}
