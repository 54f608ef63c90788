/* Any bytes as System.Events: refused, or results that make sense. */
#include <string.h>

#include "base/check.h"
#include "chain/codec/events.h"
#include "fuzz_runtime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct metadata *md = fuzz_runtime();
    struct dispatch_result results[8];
    struct err err;
    if (events_decode(md, data, size, results, ARRAY_LEN(results), &err) == 0)
        for (size_t i = 0; i < ARRAY_LEN(results); i++) {
            INVARIANT(memchr(results[i].error, 0, sizeof(results[i].error)));
            INVARIANT((results[i].outcome == DISPATCH_FAILED) == (results[i].error[0] != 0));
        }
    return 0;
}
