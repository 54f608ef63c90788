/* The memory of the simulated processes (sim_memory.c). */
#ifndef TEST_SIM_SIM_MEMORY_H
#define TEST_SIM_SIM_MEMORY_H

#include <stddef.h>

struct memory;

struct memory *memory_of(int index); /* of this process */
struct memory *
memory_use(struct memory *m);       /* from now on; NULL: the world's. Returns what was in use */
void memory_wipe(struct memory *m); /* all of it is free */
size_t memory_live(const struct memory *m); /* blocks that were not freed */
void *world_alloc(size_t n); /* zeroed, of the world, whoever runs; free() frees it */

#endif
