/* The one initialisation of libsodium. Threads of the pool may sign, hence pthread_once. */
#include "chain/codec/crypto_init.h"

#include <pthread.h>
#include <sodium.h>

#include "base/check.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init(void)
{
    INVARIANT(sodium_init() >= 0); /* fails only when the kernel has no random source */
}

void crypto_init(void)
{
    pthread_once(&once, init);
}
