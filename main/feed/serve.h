/* The door of feeds in a relay: what the service calls, made from the configuration. */
#ifndef MAIN_FEED_SERVE_H
#define MAIN_FEED_SERVE_H

#include "base/buf.h"
#include "config.h"
#include "relay/service.h"

struct feed_serve {
    const struct config_feeds *config; /* borrowed */
    struct feed_door *door;            /* NULL: not open */
};

/* Nothing where feeds.listen is not given. *s must live as long as the service. ERR_CONFIG: there
 * is no database, or the values can never be right. */
int feed_serve_fill(struct feed_serve *s, const struct config_file *f, struct service_config *ret,
                    struct err *err);
/* Would the door open with this configuration? As feed_door_check; 0 too where feeds.listen is not
 * given, and nothing in `out`. */
int feed_serve_check(const struct config_file *f, struct buf *out,
                     void (*caution)(void *arg, const char *text), void *arg, struct err *err);
/* Certificates and the token, again. Logs what happened. */
void feed_serve_reload(struct feed_serve *s);

#endif
