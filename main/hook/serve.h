/* Webhooks in a relay: what the service calls, made from the configuration. */
#ifndef MAIN_HOOK_SERVE_H
#define MAIN_HOOK_SERVE_H

#include "config.h"
#include "relay/service.h"

struct hooks;

struct hook_serve {
    const struct config_file *file; /* borrowed */
    struct hooks *hooks;            /* NULL: not open */
};

/* Nothing where webhooks.key_file is not given. *h must live as long as the service. ERR_CONFIG: no
 * database, or the key file is of no use. */
int hook_serve_fill(struct hook_serve *h, const struct config_file *f, struct service_config *ret,
                    struct err *err);
/* Without opening anything: what a relay would do, for people. "": it delivers no webhooks. In the
 * form that the checks of feeds, http and sites have; there is nothing to caution about. */
int hook_serve_check(const struct config_file *f, struct buf *out,
                     void (*caution)(void *arg, const char *text), void *arg, struct err *err);
void hook_serve_reload(struct hook_serve *h); /* ca_file again. Logs what happened. */

#endif
