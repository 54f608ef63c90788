/* Runs a fuzz target without libFuzzer: each seed of its folder (seeds/), then a fixed stream of
 * generated inputs (random bytes, and seeds and earlier inputs cut and changed), so that ordinary,
 * sanitizer and valgrind lanes drive every parser of outside bytes. REPLAY_RUNS sets the count;
 * valgrind's lane runs a tenth. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/rng.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { KEEP = 64, RANDOM_MAX = 2048, LEN_MAX = 16384 };

static uint8_t kept[KEEP][LEN_MAX];
static size_t kept_len[KEEP];

static size_t generate(struct rng *r, uint8_t *out)
{
    static const uint8_t interesting[] = {0,    1,    2,    3,    4,   0x7f, 0x80, 0x84,
                                          0xfc, 0xfd, 0xfe, 0xff, '"', '{',  '[',  '/'};
    size_t from = (size_t)rng_below(r, KEEP), len = kept_len[from];
    memcpy(out, kept[from], len);
    if (!len || rng_below(r, 4) == 0) {
        len = (size_t)rng_below(r, rng_below(r, 8) ? 64 : RANDOM_MAX);
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

/* In memory of exactly this size: reads past the end are seen by the sanitizer. */
static void run(const uint8_t *data, size_t len)
{
    uint8_t *exact = malloc(len ? len : 1);
    INVARIANT(exact);
    memcpy(exact, data, len);
    LLVMFuzzerTestOneInput(exact, len);
    free(exact);
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

/* The number of seeds in the target's folder: all are run, and the first ones are changed
 * afterwards. */
static size_t run_seeds(const char *target)
{
    struct dirent **names;
    struct buf dir = {0};
    buf_printf(&dir, SEEDS_DIR "/%s", target);
    int count = scandir(buf_str(&dir), &names, visible, alphasort);
    for (int i = 0; i < count; i++) {
        struct buf path = {0}, seed = {0};
        buf_printf(&path, "%s/%s", buf_str(&dir), names[i]->d_name);
        FILE *f = fopen(buf_str(&path), "rb");
        INVARIANT(f);
        for (size_t n = 1; n > 0; seed.len += n)
            n = fread(buf_grow(&seed, 4096), 1, 4096, f);
        fclose(f);
        run(seed.data, seed.len);
        if (i < KEEP && seed.len <= LEN_MAX) {
            memcpy(kept[i], seed.data, seed.len);
            kept_len[i] = seed.len;
        }
        buf_done(&path);
        buf_done(&seed);
        free(names[i]);
    }
    INVARIANT(count > 0); /* each target has seeds */
    free(names);
    buf_done(&dir);
    return (size_t)count;
}

int main(int argc, char **argv)
{
    static uint8_t input[LEN_MAX];
    INVARIANT(argc == 1);
    const char *slash = strrchr(argv[0], '/');
    size_t seeds = run_seeds(slash ? slash + 1 : argv[0]);
    const char *text = getenv("REPLAY_RUNS");
    long runs = text ? strtol(text, NULL, 10) : getenv("TXRELAY_VALGRIND") ? 200 : 2000;
    struct rng r = {20261127};
    for (long i = 0; i < runs; i++) {
        size_t len = generate(&r, input);
        run(input, len);
        size_t slot = (size_t)rng_below(&r, KEEP);
        if (slot < seeds) /* a seed stays */
            continue;
        memcpy(kept[slot], input, len);
        kept_len[slot] = len;
    }
    printf("%zu seeds, %ld inputs\n", seeds, runs);
    return 0;
}
