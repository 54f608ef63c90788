/* Headers that may come once. */
#include "api_internal.h"
#include "base/check.h"

/* What this interface reads means nothing if it comes twice, and must not be taken for absent: a
 * key would be ignored, and the transaction enqueued again. */
const char *api__repeated_header(const struct http_request *r)
{
    static const char *const names[] = {"authorization",   "content-type",  "host",
                                        "idempotency-key", "last-event-id", "origin"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (http_header_repeats(r, names[i]))
            return names[i];
    return NULL;
}
