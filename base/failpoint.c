#include "base/failpoint.h"

#ifdef TXRELAY_FAILPOINTS

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void failpoint_hit(const char *name)
{
    static char wanted[64], action[8];
    static long left = -1;
    if (left < 0) {
        const char *env = getenv("TXRELAY_FAILPOINT");
        left = 0;
        if (env && sscanf(env, "%63[^:]:%ld:%7s", wanted, &left, action) != 3)
            left = 0;
    }
    if (left == 0 || strcmp(name, wanted) != 0 || --left > 0)
        return;
    raise(strcmp(action, "stop") == 0 ? SIGSTOP : SIGKILL);
}

#else
typedef int failpoint_not_compiled; /* an empty translation unit is not C */
#endif
