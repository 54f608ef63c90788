#include "listen/core/event.h"

#include "base/check.h"

const char *listen_kind_name(enum listen_kind kind)
{
    static const char *const names[] = {[LISTEN_NEW] = "new",
                                        [LISTEN_UPDATE] = "update",
                                        [LISTEN_REMOVED] = "removed",
                                        [LISTEN_FINISHED] = "finished"};
    PRE((size_t)kind < ARRAY_LEN(names));
    return names[kind];
}
