/* The rooms that a simulated relay does not have: a control endpoint, and the standalone's
 * standard input. With them goes all that they need of sockets. */
#include "service/room.h"
#include "service/service_internal.h"

struct room *service_metrics(struct service *s, struct err *err)
{
    (void)s;
    (void)err;
    return NULL;
}

struct room *service_control(struct service *s, struct err *err)
{
    (void)s, (void)err;
    return NULL;
}

struct room *service_standalone(struct service *s, struct err *err)
{
    (void)s, (void)err;
    return NULL;
}
