/* Any text as the address of a control endpoint: a socket's path and a loopback address are here,
 * and everything else is not. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "loop/peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = xstrndup((const char *)data, size);
    bool local = loop_address_is_local(text);
    if (loop_address_is_unix(text))
        INVARIANT(local && !strncmp(text, "unix:", 5));
    else if (local)
        INVARIANT(!strncmp(text, "tcp:127.", 8) || !strncmp(text, "tcp::", 5) ||
                  !strncmp(text, "tcp:0", 5));
    else
        INVARIANT(strncmp(text, "unix:/", 6) != 0 || strlen(text) > 100);
    free(text);
    return 0;
}
