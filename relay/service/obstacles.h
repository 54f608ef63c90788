/* Private to service_obstacles*.c: what keeps the relay itself from its work. */
#ifndef RELAY_SERVICE_OBSTACLES_H
#define RELAY_SERVICE_OBSTACLES_H

#include "relay/core/tx/obstacle.h"

struct service;
struct service_status;

struct obstacles_own {
    struct obstacle_track track;
    bool storing; /* one request at a time */
};

/* service_obstacles_own.c: once a second */
void obstacles_own_check(struct service *s, struct obstacles_own *own);
void obstacles_own_status(const struct service *s, const struct obstacles_own *own,
                          struct service_status *ret);

/* text NULL: nothing was seen. It is cut, and made printable. */
void obstacles_put(struct obstacle *ret, enum obstacle_code code, const char *text);

#endif
