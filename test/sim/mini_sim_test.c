/* Thousands of events of a hostile world for each seed: nothing is sent uncommitted, no effect happens twice,
 * nonces stay contiguous, every transaction ends, and its record tells the truth. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

static void run(uint64_t seed, uint64_t actions, bool talk)
{
    struct world *w = world_new(seed);
    fprintf(stderr, "seed %" PRIu64 "\r", seed); /* what a failed check belongs to */
    for (uint64_t i = 0; i < actions; i++)
        world_step(w);
    world_settle(w);
    world_verify(w);
    if (talk)
        printf("seed %" PRIu64 ": %" PRIu64 " steps, %" PRId64 " transactions, %" PRIu64 " submits, %" PRIu64
               " duplicates, %" PRIu64 " new signatures, %" PRIu64 " late, %" PRIu64 " usurped, %" PRIu64
               " fillers, %" PRIu64 " crashes, %" PRIu64 " reloads, %" PRIu64 " reorgs, %" PRIu64 " blocks\n",
               seed, w->steps, w->next_id - 1, w->submits, w->duplicates, w->resigns, w->late, w->usurped,
               w->fills, w->crashes, w->reloads, w->reorgs, w->best);
    world_free(w);
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 6;
    uint64_t actions = argc > 3 ? strtoull(argv[3], NULL, 10) : 30000;
    for (uint64_t seed = first; seed < first + count; seed++)
        run(seed, actions, count <= 20);
    return 0;
}
