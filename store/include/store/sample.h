/* How many transactions wait, and for how long: read again and again for the metrics, on a
 * connection of its own, so that no leader's write stands behind it. It reads at most
 * STORE_SAMPLE_ROWS rows of an account's outbox and of its pending ones. */
#ifndef STORE_SAMPLE_H
#define STORE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"

enum { STORE_SAMPLE_ROWS = 10000 };

struct store_sample {
    int32_t account;
    uint64_t waiting, pending;           /* due and without a nonce; with one */
    double waiting_age_s, pending_age_s; /* of the oldest, since it was enqueued; 0: none */
};

struct store_sampler;

/* Every every_ms ms, while the database is there. sample: once for each account. `accounts` are
 * copied. */
struct store_sampler *store_sampler_new(struct loop *l, const char *dsn, const char *name,
                                        uint32_t every_ms, const int32_t *accounts, size_t count,
                                        void (*sample)(void *arg, const struct store_sample *s),
                                        void *arg);
void store_sampler_close(struct store_sampler *s, void (*cb)(void *arg), void *arg); /* frees s */

#endif
